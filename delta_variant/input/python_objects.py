"""Read Python objects that a caller passes: rows of dicts or JSON texts, and columns of pandas frames.

The Arrow form of a column of dicts has every key in every row, so columns of frames become Variants here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

import pyarrow as pa

from ..errors import ArgumentTypeError, DeltaVariantError
from ..expressions.types import type_name
from ..protocol.schema.arrow import variant_field
from ..variant.objects import variants_from_objects

__all__ = [
    "batches_of_rows",
    "is_pandas_frame",
    "take_object_columns",
    "too_large_column",
    "with_object_columns",
]

ROWS_PER_BATCH = 16_384
"""How many rows of an iterator are read at a time. The first of them decide the columns and their types."""

NESTED = (dict, list, tuple)

NOT_CONVERTIBLE = (pa.ArrowException, OverflowError, TypeError)
"""What pyarrow raises for values that do not have the type of a column."""


def batches_of_rows(
    rows: Iterable[Any], what: str, variants: Collection[str], types: Mapping[str, pa.DataType]
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the schema and the batches of rows.

    All rows of a list, or the first ones of an iterator, decide the columns. Columns in `variants` are
    Variants, those in `types` have that type, and the values decide the type of the others. A missing key is
    null. Raises ArgumentTypeError for other rows; `what` names them in messages.
    """
    remaining = iter(rows)
    is_list = isinstance(rows, Sequence)
    first = list(remaining) if is_list else list(islice(remaining, ROWS_PER_BATCH))
    if not first:
        raise ArgumentTypeError(f"{what}: expected at least one row: pass an Arrow table with a schema")
    if isinstance(first[0], str):
        return _batches_of_texts(chain(first, remaining), what, variants)
    names = list(dict.fromkeys(name for row in _checked(first, what, 0) for name in row))
    schema = pa.schema([_field(name, first, variants, types) for name in names])

    def batches() -> Iterator[pa.RecordBatch]:
        start = 0
        everything = chain(first, remaining)
        while part := list(islice(everything, ROWS_PER_BATCH)):
            yield _batch(_checked(part, what, start), schema, variants, start)
            start += len(part)

    return schema, batches()


def _batches_of_texts(
    texts: Iterator[Any], what: str, variants: Collection[str]
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    if len(variants) != 1:
        raise ArgumentTypeError(f"{what}: JSON texts need one column: pass variant_columns with its name")
    (name,) = variants
    schema = pa.schema([pa.field(name, pa.string())])

    def batches() -> Iterator[pa.RecordBatch]:
        while part := list(islice(texts, ROWS_PER_BATCH)):
            yield pa.record_batch([_array(part, pa.string(), name)], schema=schema)

    return schema, batches()


def _checked(rows: list[Any], what: str, start: int) -> list[Mapping[str, Any]]:
    for number, row in enumerate(rows, start):
        if not isinstance(row, Mapping) or not all(isinstance(name, str) for name in row):
            raise ArgumentTypeError(
                f"{what}: expected rows that are dicts with column names, got {repr(row)[:100]}"
            ).at(row=number)
    return rows


def _field(
    name: str, rows: list[Mapping[str, Any]], variants: Collection[str], types: Mapping[str, pa.DataType]
) -> pa.Field[Any]:
    if name in variants:
        return variant_field(name)
    if name in types:
        return pa.field(name, types[name])
    return pa.field(name, _array([row.get(name) for row in rows], None, name).type)


def _batch(
    rows: list[Mapping[str, Any]], schema: pa.Schema, variants: Collection[str], start: int
) -> pa.RecordBatch:
    for number, row in enumerate(rows, start):
        if new := row.keys() - set(schema.names):
            raise ArgumentTypeError(
                f"the column {min(new)!r} is not in the first {ROWS_PER_BATCH:,} rows: pass a list of rows"
            ).at(row=number)
    arrays = []
    for field in schema:
        values = [row.get(field.name) for row in rows]
        is_variant = field.name in variants
        arrays.append(
            _variants(values, field.name, start) if is_variant else _array(values, field.type, field.name)
        )
    return pa.record_batch(arrays, schema=schema)


def _variants(values: list[Any], name: str, start: int) -> pa.StructArray:
    """Return the objects of a column, whose first row has the number `start`, as Variants.

    Raises ArgumentTypeError for an object without a counterpart, and for text, which can be JSON or a string.
    """
    for number, value in enumerate(values, start):
        if isinstance(value, str):
            raise ArgumentTypeError(
                "cannot tell whether text in a Variant column is JSON or a string: pass "
                "Variant.from_json(text) or Variant.from_python(text)"
            ).at(row=number, column=name)
    try:
        return variants_from_objects(values)
    except DeltaVariantError as error:
        error.at(column=name).row = None if error.row is None else error.row + start
        raise


def _array(values: list[Any], arrow_type: pa.DataType | None, name: str) -> Any:
    try:
        return pa.array(values, arrow_type)
    except NOT_CONVERTIBLE as error:
        remedy = "name the column in variant_columns, or pass values of one type"
        message = f"cannot convert the column {name!r}{_reason(values, arrow_type, error)}: {remedy}"
        raise ArgumentTypeError(message, column=name) from error


def _reason(values: list[Any], arrow_type: pa.DataType | None, error: Exception) -> str:
    """Return the first value that does not have the type of the column or else of the values before it."""
    for value in values:
        try:
            found: Any = pa.array([value], arrow_type)
        except NOT_CONVERTIBLE:
            expected = "" if arrow_type is None else f" to {type_name(arrow_type)}"
            return f"{expected} because of the value {repr(value)[:100]}"
        if value is not None:
            arrow_type = found.type
    return f" ({error})"


def is_pandas_frame(data: Any) -> bool:
    """Return whether data is a DataFrame of pandas, which is not imported."""
    return type(data).__module__.startswith("pandas.") and type(data).__name__ == "DataFrame"


def take_object_columns(frame: Any, names: Collection[str]) -> tuple[Any, dict[str, list[Any]]]:
    """Return a frame whose columns of Python objects are empty, and the values of these columns.

    They are those in `names` that have a dict or a list. Missing values of pandas become None.
    """
    if not frame.columns.is_unique:
        return frame, {}
    found = {name: frame[name] for name in names if name in frame.columns and frame[name].dtype == object}
    columns = {
        name: column.where(column.notna(), None).tolist()
        for name, column in found.items()
        if any(isinstance(value, NESTED) for value in column)
    }
    return (frame.assign(**dict.fromkeys(columns)) if columns else frame), columns


def too_large_column(frame: Any) -> str | None:
    """Return the first column of a frame with an integer that no type of Arrow has."""
    for name in frame.columns:
        try:
            pa.Array.from_pandas(frame[name])
        except OverflowError:
            return str(name)
        except (pa.ArrowException, TypeError, ValueError):
            continue
    return None


def with_object_columns(
    schema: pa.Schema, batches: Iterator[pa.RecordBatch], columns: dict[str, list[Any]]
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return batches that have the values of `columns` as Variants, a missing key as a missing field."""
    for name in columns:
        schema = schema.set(schema.get_field_index(name), variant_field(name))

    def convert() -> Iterator[pa.RecordBatch]:
        start = 0
        for batch in batches:
            for first in range(0, batch.num_rows, ROWS_PER_BATCH):
                part = batch.slice(first, ROWS_PER_BATCH)
                arrays = list(part.columns)
                for name, values in columns.items():
                    objects = values[start : start + part.num_rows]
                    arrays[schema.get_field_index(name)] = _variants(objects, name, start)
                yield pa.record_batch(arrays, schema=schema)
                start += part.num_rows

    return schema, convert()
