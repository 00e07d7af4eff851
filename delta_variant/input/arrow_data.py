"""Read the data that a caller passes: Arrow data, rows of Python objects, or a JSON file."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any
from uuid import UUID

import pyarrow as pa

from .._arrow import validate
from .._checks import is_unicode
from ..errors import ArgumentTypeError, DeltaVariantError, SchemaError
from ..protocol.schema.arrow import is_encoded_variant, is_text_or_variant, to_arrow, variant_field
from ..protocol.types import VARIANT, StructType
from ..variant.objects import variants_from_column, variants_from_objects
from .python_columns import AMBIGUOUS_TEXT, array_of, check_unchanged, with_all_fields

EXPECTED = (
    "expected an object with __arrow_c_stream__ or __arrow_c_array__ that has columns, such as a pyarrow or "
    "Polars table, a list of dicts, the path of a JSON, CSV or Parquet file, or the result of read_json"
)
# Part of Arrow's message for struct rows that are null.
NULL_ROWS = "null count"
# The column of pyarrow for a level without a name in the index of a data frame.
UNNAMED_INDEX = re.compile(r"__index_level_\d+__")


def batches_of(
    data: Any, what: str, variants: Collection[str] = (), columns: StructType | None = None
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the schema and the batches of data that a caller passes, except files: see `open_path`.

    Columns in `variants`, and those that are Variants in `columns`, the columns of the table, become Variants
    if they are nested. Raises ArgumentTypeError for other data; `what` names the data in messages.
    """
    table = _TableColumns.of(columns, variants)
    if isinstance(data, Mapping):
        raise ArgumentTypeError(
            f"{what}: expected a list of rows, got one dict: pass [row], or pyarrow.table(data) for a dict "
            "of columns"
        )
    if isinstance(data, str):
        raise ArgumentTypeError(
            f"{what}: expected rows, or the path of a folder or a JSON, CSV or Parquet file, got {data!r}: "
            "pass read_json(…) or read_csv(…) for a file with another suffix"
        )
    if type(data).__module__.startswith("polars.") and type(data).__name__ == "LazyFrame":
        data = data.collect()
    _check_object_columns(data, what)
    # A stream of Arrow batches is an iterator, too.
    if isinstance(data, list | tuple | Iterator) and not hasattr(data, "__arrow_c_stream__"):
        return _batches_of_rows(data, what, table)
    objects: dict[str, list[Any]] = {}
    if _is_pandas_frame(data):
        data, objects = _take_object_columns(_with_uuid_texts(data), table)
    schema, batches = _arrow_batches(data, what)
    if _is_pandas_frame(data):
        schema, batches = _without_unnamed_index(schema, batches)
        _check_frame(data, schema)
    if objects:
        schema, batches = _with_object_columns(schema, batches, objects)
    return _with_variants(schema, map(_valid, batches), table)


@dataclass(frozen=True)
class _TableColumns:
    """The columns of a table, by names in lower case, and the columns that the caller names as Variants."""

    types: Mapping[str, pa.DataType]
    variants: Mapping[str, str]
    named: Collection[str]

    @classmethod
    def of(cls, columns: StructType | None, named: Collection[str]) -> _TableColumns:
        fields = () if columns is None else columns.fields
        types = {} if columns is None else {each.name.lower(): each.type for each in to_arrow(columns)}
        variants = {each.name.lower(): each.name for each in fields if each.type == VARIANT}
        return cls(types, variants, named)

    def is_variant(self, name: object) -> bool:
        return isinstance(name, str) and (name in self.named or name.lower() in self.variants)


def _valid(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch; raises SchemaError for text and decimals that a reader of their file would reject."""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            validate(column)
        except pa.ArrowInvalid as error:
            message = f"the column {name!r} has an invalid value: {error}: repair it, or pass it as binary"
            raise SchemaError(message, column=name) from error
    return batch


def _check_object_columns(data: Any, what: str) -> None:
    """Raise ArgumentTypeError for a Polars column that Arrow lacks: Python objects and 128-bit integers."""
    if not type(data).__module__.startswith("polars."):
        return
    for name, data_type in getattr(data, "schema", {}).items():
        if str(data_type) in ("Object", "Int128", "UInt128"):
            raise ArgumentTypeError(
                f"{what}: cannot read the Polars column {name!r} of type {data_type}: convert it to another "
                "type"
            )


def _arrow_batches(data: Any, what: str) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    if isinstance(data, pa.StructArray):
        data = _batch_of_structs(data, what)
    if isinstance(data, pa.ChunkedArray) and pa.types.is_struct(data.type):
        return pa.schema(data.type), (_batch_of_structs(chunk, what) for chunk in data.chunks)
    try:
        if hasattr(data, "__arrow_c_stream__"):
            reader = _open_reader(data)
            return reader.schema, _read(reader, what)
        batch = pa.record_batch(data)
    except (OverflowError, TypeError, ValueError, pa.ArrowException) as error:
        if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
            # Errors of conversions have two parts, of which the second names the column.
            is_text = isinstance(error, UnicodeError)
            reason = str(error) if is_text else ": ".join(map(str, reversed(error.args)))
            column = None
            if isinstance(error, OverflowError) and _is_pandas_frame(data):
                column = _too_large_column(data)
                reason = f"{reason} of the column {column!r}: convert it to text or decimals"
            elif not is_text and len(error.args) > 1 and not isinstance(error, pa.ArrowNotImplementedError):
                reason += ": name the column in variant_columns, or pass values of one type"
            message = f"{what}: cannot read {_describe(data)} as columns: {reason}"
            raise ArgumentTypeError(message, column=column) from error
        raise ArgumentTypeError(f"{what}: {EXPECTED}, got {_describe(data)}") from error
    return batch.schema, iter([batch])


def _batch_of_structs(rows: Any, what: str) -> pa.RecordBatch:
    """Return structs as rows; Arrow's own import rejects a slice of them."""
    if rows.null_count:
        row = rows.is_null().index(True).as_py()
        raise ArgumentTypeError(f"{what} has rows that are null instead of a struct: drop them").at(row=row)
    return pa.RecordBatch.from_struct_array(rows)


def _open_reader(data: Any) -> pa.RecordBatchReader:
    # The PyCapsule interface replaces an error of a Python iterator, such as that of a scan, by one of Arrow.
    reader = data.to_reader() if hasattr(data, "to_reader") else data
    return reader if isinstance(reader, pa.RecordBatchReader) else pa.RecordBatchReader.from_stream(reader)


def _with_variants(
    schema: pa.Schema, batches: Iterator[pa.RecordBatch], table: _TableColumns
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return batches with Variants in place of nested columns, and of scalars that the caller names."""
    converted = [
        index
        for index, field in enumerate(schema)
        if (field.name in table.named or (table.is_variant(field.name) and pa.types.is_nested(field.type)))
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
    name = f"{type(data).__module__}.{type(data).__qualname__}".removeprefix("builtins.")
    return "None" if data is None else name


def _read(reader: pa.RecordBatchReader, what: str) -> Iterator[pa.RecordBatch]:
    try:
        for batch in reader:
            # pyarrow does not check the batches that Python code passes to a reader.
            if batch.schema.names != reader.schema.names:
                raise ArgumentTypeError(
                    f"{what}: expected batches with the columns {reader.schema.names}, as the schema of the "
                    f"reader, got {batch.schema.names}: pass batches of one schema"
                )
            yield batch
    except pa.ArrowInvalid as error:
        if NULL_ROWS not in str(error):
            raise
        message = f"{what} has rows that are null instead of a struct ({error}): drop them"
        raise ArgumentTypeError(message) from error


ROWS_PER_BATCH = 16_384
"""How many rows of an iterator are read at a time. The first of them decide the columns and their types."""

CONVERSIONS: Mapping[str, str] = {
    "from_struct_array": "pyarrow.Table.from_batches(batches)",
    "__dataclass_fields__": "dataclasses.asdict(row) for each row",
    "_asdict": "row._asdict() for each row",
    "model_dump": "row.model_dump() for each row",
}
"""Attributes of rows that are not dicts, each with the call that converts the rows."""


def _batches_of_rows(
    rows: Iterable[Any], what: str, table: _TableColumns
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the schema and the batches of rows.

    All rows of a list, or the first ones of an iterator, decide the columns. Those of the table have its
    types, and the values decide the type of the others. A missing key is null. Raises ArgumentTypeError for
    other rows; `what` names them in messages.
    """
    remaining = iter(rows)
    is_list = isinstance(rows, Sequence)
    first = list(remaining) if is_list else list(islice(remaining, ROWS_PER_BATCH))
    if not first:
        raise ArgumentTypeError(f"{what}: expected at least one row: pass an Arrow table with a schema")
    if isinstance(first[0], str):
        return _batches_of_texts(chain(first, remaining), what, table.named or table.variants.values())
    names = list(dict.fromkeys(name for row in _checked(first, what, 0) for name in row))
    for name in names:
        if not is_unicode(name):
            raise ArgumentTypeError(
                f"{what}: the column name {name!r} is not Unicode text: rename the column"
            )
    schema = pa.schema([_field(name, first, table) for name in names])
    variants = set(filter(table.is_variant, names))

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
            yield pa.record_batch([array_of(part, pa.string(), name)], schema=schema)

    return schema, batches()


def _checked(rows: list[Any], what: str, start: int) -> list[Mapping[str, Any]]:
    for number, row in enumerate(rows, start):
        if not isinstance(row, Mapping) or not all(isinstance(name, str) for name in row):
            remedy = next((f": pass {call}" for name, call in CONVERSIONS.items() if hasattr(row, name)), "")
            raise ArgumentTypeError(
                f"{what}: expected rows that are dicts with column names, got {repr(row)[:100]}{remedy}"
            ).at(row=number)
    return rows


def _field(name: str, rows: list[Mapping[str, Any]], table: _TableColumns) -> pa.Field[Any]:
    if table.is_variant(name):
        return variant_field(name)
    values = [row.get(name) for row in rows]
    if (known := table.types.get(name.lower())) is not None:
        return pa.field(name, with_all_fields(known, values, name))
    return pa.field(name, array_of(values, None, name).type)


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
        if start and not is_variant and with_all_fields(field.type, values, field.name) != field.type:
            raise ArgumentTypeError(
                f"the column has fields that the first {ROWS_PER_BATCH:,} rows lack: pass a list of rows",
                column=field.name,
            ).at(row=start)
        arrays.append(
            _variants(values, field.name, start) if is_variant else array_of(values, field.type, field.name)
        )
    return pa.record_batch(arrays, schema=schema)


def _variants(values: list[Any], name: str, start: int) -> pa.StructArray:
    """Return the objects of a column, whose first row has the number `start`, as Variants.

    Raises ArgumentTypeError for an object without a counterpart, and for text, which can be JSON or a string.
    """
    for number, value in enumerate(values, start):
        if isinstance(value, str):
            raise ArgumentTypeError(AMBIGUOUS_TEXT).at(row=number, column=name)
    try:
        return variants_from_objects(values)
    except DeltaVariantError as error:
        error.at(column=name).row = None if error.row is None else error.row + start
        raise


def _is_pandas_frame(data: Any) -> bool:
    """Return whether data is a DataFrame of pandas, which is not imported."""
    return type(data).__module__.startswith("pandas.") and type(data).__name__ == "DataFrame"


def _without_unnamed_index(
    schema: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Leave out the index of a frame, such as that of filtered rows, if it has no name."""
    names = [name for name in schema.names if not UNNAMED_INDEX.fullmatch(name)]
    if len(names) == len(schema.names):
        return schema, batches
    kept = pa.schema(map(schema.field, names))
    return kept, (batch.select(names) for batch in batches)


def _check_frame(frame: Any, schema: pa.Schema) -> None:
    """Raise ArgumentTypeError for an index or a Python object that Arrow changes."""
    for name in frame.index.names:
        if name is not None and name in frame.columns:
            raise ArgumentTypeError(
                f"the index of the frame and a column are both called {name!r}: drop the index with "
                "reset_index(drop=True), or rename it",
                column=str(name),
            )
    for position, dtype in enumerate(frame.dtypes):
        if dtype.kind == "O" and dtype.name == "object":
            field = schema.field(position)
            check_unchanged(frame.iloc[:, position].dropna(), field.type, field.name)


def _with_uuid_texts(frame: Any) -> Any:
    """Return a frame with text in place of UUIDs, as for rows: pyarrow gives them a type that Delta lacks."""
    for position in range(frame.shape[1]):
        column = frame.iloc[:, position]
        if column.dtype == object and isinstance(next(iter(column.dropna()), None), UUID):
            frame = frame.copy(deep=False)
            frame.isetitem(position, column.map(str, na_action="ignore"))
    return frame


def _take_object_columns(frame: Any, table: _TableColumns) -> tuple[Any, dict[str, list[Any]]]:
    """Return a frame whose columns of Python objects are empty, and the values of these columns.

    They are Variants that have a value other than JSON text. Missing values of pandas become None.
    """
    if not frame.columns.is_unique:
        return frame, {}
    names = filter(table.is_variant, frame.columns)
    found = {name: frame[name] for name in names if frame[name].dtype == object}
    columns = {
        name: column.where(column.notna(), None).tolist()
        for name, column in found.items()
        if not all(isinstance(value, str | bytes) for value in column.dropna())
    }
    return (frame.assign(**dict.fromkeys(columns)) if columns else frame), columns


def _too_large_column(frame: Any) -> str | None:
    """Return the first column of a frame with an integer that no type of Arrow has."""
    for name in frame.columns:
        try:
            pa.Array.from_pandas(frame[name])
        except OverflowError:
            return str(name)
        except (pa.ArrowException, TypeError, ValueError):
            continue
    return None


def _with_object_columns(
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
