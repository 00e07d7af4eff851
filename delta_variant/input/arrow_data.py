"""Read the data that a caller passes: Arrow data, rows of Python objects, or a JSON file."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from os import PathLike
from typing import Any

import pyarrow as pa

from ..errors import ArgumentTypeError, DeltaVariantError, SchemaError
from ..protocol.schema.arrow import is_encoded_variant, is_text_or_variant, to_arrow, variant_field
from ..protocol.types import VARIANT, StructType
from ..variant.objects import variants_from_column
from .json_lines import read_json
from .python_objects import (
    batches_of_rows,
    is_pandas_frame,
    take_object_columns,
    too_large_column,
    with_object_columns,
)

__all__ = ["batches_of", "files_as_lines"]

EXPECTED = (
    "expected an object with __arrow_c_stream__ or __arrow_c_array__ that has columns, such as a pyarrow or "
    "Polars table, a list of dicts, the path of a .json or .ndjson file, or the result of read_json"
)
FILE_NAME = re.compile(r"\.(json|jsonl|ndjson)(\.(gz|bz2|xz|zst))?$", re.IGNORECASE)
# Part of Arrow's message for struct rows that are null.
NULL_ROWS = "null count"


def files_as_lines(data: Any, what: str, variants: Collection[str]) -> Any:
    """Return the values of a JSON file for its path, and other data unchanged."""
    is_name = isinstance(data, str) and FILE_NAME.search(data) is not None
    if not is_name and not isinstance(data, PathLike):
        return data
    if len(variants) > 1:
        raise ArgumentTypeError(f"{what}: a JSON file has one column, got {len(variants)} in variant_columns")
    return read_json(data, column=next(iter(variants), "value"))


def batches_of(
    data: Any, what: str, variants: Collection[str] = (), columns: StructType | None = None
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the schema and the batches of data that a caller passes, except files: see `files_as_lines`.

    Columns in `variants`, and those that are Variants in `columns`, the columns of the table, become Variants
    if they are nested. Raises ArgumentTypeError for other data; `what` names the data in messages.
    """
    known = () if columns is None else columns.fields
    names = {*variants, *(each.name for each in known if each.type == VARIANT)}
    if isinstance(data, Mapping):
        raise ArgumentTypeError(
            f"{what}: expected a list of rows, got one dict: pass [row], or pyarrow.table(data) for a dict "
            "of columns"
        )
    if isinstance(data, str):
        raise ArgumentTypeError(
            f"{what}: expected rows, or the path of a .json or .ndjson file, got {data!r}: read another file "
            "first, as with pyarrow.csv.read_csv"
        )
    if type(data).__module__.startswith("polars.") and type(data).__name__ == "LazyFrame":
        data = data.collect()
    _check_object_columns(data, what)
    # A stream of Arrow batches is an iterator, too.
    if isinstance(data, list | tuple | Iterator) and not hasattr(data, "__arrow_c_stream__"):
        types = {} if columns is None else {each.name: each.type for each in to_arrow(columns)}
        are_texts = isinstance(data, list | tuple) and data and isinstance(data[0], str)
        return batches_of_rows(data, what, variants if are_texts else names, types)
    objects: dict[str, list[Any]] = {}
    if is_pandas_frame(data):
        data, objects = take_object_columns(data, names)
    schema, batches = _arrow_batches(data, what)
    if objects:
        schema, batches = with_object_columns(schema, batches, objects)
    return _with_variants(schema, batches, variants, names)


def _check_object_columns(data: Any, what: str) -> None:
    """Raise ArgumentTypeError for a Polars column of Python objects, which is exported as their addresses."""
    if not type(data).__module__.startswith("polars."):
        return
    for name, data_type in getattr(data, "schema", {}).items():
        if str(data_type) == "Object":
            raise ArgumentTypeError(
                f"{what}: cannot read the Polars column {name!r} of type Object: convert it to another type"
            )


def _arrow_batches(data: Any, what: str) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    try:
        if hasattr(data, "__arrow_c_stream__"):
            reader = _open_reader(data)
            return reader.schema, _read(reader, what)
        batch = pa.record_batch(data)
    except (OverflowError, TypeError, ValueError, pa.ArrowException) as error:
        if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
            # Errors of conversions have two parts, of which the second names the column.
            reason = ": ".join(map(str, reversed(error.args)))
            column = None
            if isinstance(error, OverflowError) and is_pandas_frame(data):
                column = too_large_column(data)
                reason = f"{reason} of the column {column!r}: convert it to text or decimals"
            message = f"{what}: cannot read {_describe(data)} as columns: {reason}"
            raise ArgumentTypeError(message, column=column) from error
        raise ArgumentTypeError(f"{what}: {EXPECTED}, got {_describe(data)}") from error
    return batch.schema, iter([batch])


def _open_reader(data: Any) -> pa.RecordBatchReader:
    # The PyCapsule interface replaces an error of a Python iterator, such as that of a scan, by one of Arrow.
    reader = data.to_reader() if hasattr(data, "to_reader") else data
    return reader if isinstance(reader, pa.RecordBatchReader) else pa.RecordBatchReader.from_stream(reader)


def _with_variants(
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
    variants: Collection[str],
    names: Collection[str],
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return batches with Variants in place of nested columns, and of scalars that the caller names."""
    converted = [
        index
        for index, field in enumerate(schema)
        if (field.name in variants or (field.name in names and pa.types.is_nested(field.type)))
        and not is_text_or_variant(field, is_named=True)
        and not is_encoded_variant(field.type)
    ]
    for index in converted:
        schema = schema.set(index, variant_field(schema.field(index).name))

    def convert(batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = list(batch.columns)
        for index in converted:
            try:
                arrays[index] = variants_from_column(arrays[index])
            except DeltaVariantError as error:
                name = schema.field(index).name
                message = f"cannot convert the column {name!r} to Variant: {error}"
                raise SchemaError(message, column=name) from error
        return pa.record_batch(arrays, schema=schema)

    return schema, map(convert, batches) if converted else batches


def _describe(data: Any) -> str:
    return "None" if data is None else f"{type(data).__module__}.{type(data).__qualname__}"


def _read(reader: pa.RecordBatchReader, what: str) -> Iterator[pa.RecordBatch]:
    try:
        yield from reader
    except pa.ArrowInvalid as error:
        if NULL_ROWS not in str(error):
            raise
        raise ValueError(f"{what} has rows that are null instead of a struct ({error}): drop them") from error
