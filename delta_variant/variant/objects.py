"""Rows as Python objects, and columns without Variants for libraries that do not know the type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.types as arrow_types

from .. import _native
from .._arrow import is_any_list, is_encoded, plain, retype_array, values_and_positions
from ..errors import CastError, SchemaError, error_location
from .values import EXTENSION, Variant, to_json

VariantForm: TypeAlias = Literal["python", "json", "bytes"]
"""How Variants are returned: as Python objects, as JSON text, or as dicts of `metadata` and `value`."""

Converter: TypeAlias = Callable[[Any], Any]

# What pyarrow raises for a date or a time outside of the years 1 to 9999, and for nanoseconds.
UNREPRESENTABLE = (OverflowError, ValueError)


def rows_of(batch: pa.RecordBatch, form: VariantForm) -> list[dict[str, Any]]:
    """Return the rows of a batch as dicts; raises CastError for a value that Python cannot represent."""
    if not batch.num_columns:
        return [{} for _ in range(batch.num_rows)]
    columns = []
    for column, field in zip(batch.columns, batch.schema, strict=True):
        with error_location(column=field.name):
            columns.append(_objects(column, field, form))
    names = batch.schema.names
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def check_representable(table: pa.Table, cause: Exception) -> None:
    """Raise CastError for a value that Python cannot represent, for which a conversion raised `cause`."""
    for name in table.column_names:
        first = 0
        for chunk in table.column(name).chunks:
            _raise_unrepresentable(chunk, name, first, cause)
            first += len(chunk)


def columns_of_objects(table: pa.Table, form: VariantForm) -> dict[int, list[Any]]:
    """Return the values of the columns that contain Variants, by the position of the column."""
    columns = {}
    for index, field in enumerate(table.schema):
        if contains_variants(field):
            with error_location(column=field.name):
                chunks = table.column(index).chunks
                columns[index] = [value for chunk in chunks for value in _objects(chunk, field, form)]
    return columns


def variants_as_json(table: pa.Table) -> pa.Table:
    """Return a table with strings of JSON in place of Variants, at any depth."""
    for index, values in columns_of_objects(table, "json").items():
        field = _json_field(table.schema.field(index))
        table = table.set_column(index, field, pa.array(values, field.type))
    return table


def variants_from_objects(values: list[Any]) -> pa.StructArray:
    """Return Python objects as Variants, with null for None.

    Raises ArgumentTypeError for an object without a counterpart, with `row`.
    """
    return _native.from_python(values, False)


def variants_from_column(array: Any) -> pa.StructArray:
    """Return a column of structs, maps, lists or scalars as Variants.

    Values keep their types. Null stays null, and is Variant null within a value, as in Spark's
    `to_variant_object`. Raises SchemaError for a type without a counterpart, and for a value that the
    corresponding type does not have, such as a time with nanoseconds.
    """
    try:
        if is_encoded(array):
            values, positions = values_and_positions(array)
            array = plain(values).take(positions)
        else:
            array = plain(array)
        # Arrow does not cast extension types within structs.
        stored = retype_array(array, _nested(array.type, _storage))
        target = _nested(array.type, _convertible)
        converted = stored if stored.type == target else stored.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaError(f"cannot convert {array.type} to Variant: {error}") from error
    return _native.variants_of(converted)


_SCALARS: dict[str, pa.DataType] = {
    "uint8": pa.int16(),
    "uint16": pa.int32(),
    "uint32": pa.int64(),
    "uint64": pa.decimal128(20, 0),
    "halffloat": pa.float32(),
    "date64[ms]": pa.date32(),
    "time32[s]": pa.time64("us"),
    "time32[ms]": pa.time64("us"),
    "time64[ns]": pa.time64("us"),
}
"""Types that Variants do not have, and the next wider type that they have."""


def _storage(arrow_type: Any) -> Any:
    return arrow_type.storage_type if isinstance(arrow_type, pa.BaseExtensionType) else arrow_type


def _convertible(arrow_type: Any) -> Any:
    """Return a type that the kernel converts to Variants, with the same values."""
    if isinstance(arrow_type, pa.Bool8Type):
        return pa.bool_()
    if isinstance(arrow_type, pa.UuidType):
        return arrow_type.storage_type
    if isinstance(arrow_type, pa.BaseExtensionType):
        return _nested(arrow_type.storage_type, _convertible)
    if arrow_types.is_dictionary(arrow_type) or arrow_types.is_run_end_encoded(arrow_type):
        return _nested(arrow_type.value_type, _convertible)
    if arrow_types.is_fixed_size_binary(arrow_type):
        return pa.binary()
    if arrow_types.is_timestamp(arrow_type) and arrow_type.unit in ("s", "ms"):
        return pa.timestamp("us", arrow_type.tz)
    if arrow_types.is_decimal256(arrow_type) and arrow_type.precision <= pa.decimal128(38).precision:
        return pa.decimal128(arrow_type.precision, arrow_type.scale)
    return _SCALARS.get(str(arrow_type), arrow_type)


def _nested(
    arrow_type: Any, change: Callable[[Any], Any], of_variant: Callable[[Any], Any] = lambda field: field
) -> Any:
    """Return a type whose types within structs, maps and lists are changed, and the fields of Variants."""

    def part(field: Any) -> Any:
        if is_variant(field):
            return of_variant(field)
        return field.with_type(_nested(field.type, change, of_variant))

    if arrow_types.is_struct(arrow_type):
        return pa.struct([part(each) for each in arrow_type])
    if arrow_types.is_map(arrow_type):
        return pa.map_(part(arrow_type.key_field), part(arrow_type.item_field))
    if arrow_types.is_large_list(arrow_type):
        return pa.large_list(part(arrow_type.value_field))
    if arrow_types.is_fixed_size_list(arrow_type):
        return pa.list_(part(arrow_type.value_field), arrow_type.list_size)
    if arrow_types.is_list(arrow_type):
        return pa.list_(part(arrow_type.value_field))
    return change(arrow_type)


def contains_variants(field: pa.Field[Any]) -> bool:
    return _converter(field, "json") is not None


def is_variant(field: pa.Field[Any]) -> bool:
    return EXTENSION.items() <= (field.metadata or {}).items()


def _objects(array: Any, field: pa.Field[Any], form: VariantForm) -> list[Any]:
    if is_variant(field) and form != "bytes":
        # Whole columns are converted by the kernel, nested Variants one by one.
        objects: list[Any] = to_json(array).to_pylist() if form == "json" else _native.to_python_list(array)
        return objects
    try:
        values: list[Any] = array.to_pylist()
    except UNREPRESENTABLE as error:
        _raise_unrepresentable(array, field.name, 0, error)
        raise
    convert = _converter(field, form)
    return values if convert is None else list(map(convert, values))


def _raise_unrepresentable(array: Any, name: str, first: int, cause: Exception) -> None:
    """Raise CastError for a value that Python cannot represent, in a column whose first row is `first`."""
    for position, value in enumerate(array):
        try:
            value.as_py()
        except UNREPRESENTABLE:
            raise CastError(
                f"Python cannot represent {_describe(value)} of the column {name!r} ({cause}): cast the "
                "column to string, or read it with to_table",
                column=name,
            ).at(row=first + position) from cause


def _describe(value: pa.Scalar[Any]) -> str:
    try:
        return f"the value {value.cast(pa.string()).as_py()}"
    except pa.ArrowException:
        return f"a value of the type {value.type}"


def _converter(field: pa.Field[Any], form: VariantForm) -> Converter | None:
    """Return a function that converts the Variants in a value of `to_pylist`, None if there are none."""
    if form == "bytes":
        return None
    if is_variant(field):
        return _optional(_to_text if form == "json" else _to_objects)
    arrow_type: Any = field.type
    if arrow_types.is_struct(arrow_type):
        parts = {part.name: _converter(part, form) for part in arrow_type}
        known = {name: part for name, part in parts.items() if part is not None}
        convert = _optional(lambda value: {**value, **{name: known[name](value[name]) for name in known}})
        return convert if known else None
    is_map = arrow_types.is_map(arrow_type)
    if not is_map and not is_any_list(arrow_type):
        return None
    inner = _converter(arrow_type.item_field if is_map else arrow_type.value_field, form)
    if inner is None:
        return None
    if is_map:
        return _optional(lambda entries: [(key, inner(value)) for key, value in entries])
    return _optional(lambda values: list(map(inner, values)))


def _to_objects(value: dict[str, bytes]) -> Any:
    return _native.to_python(value["metadata"], value["value"])


def _to_text(value: dict[str, bytes]) -> str:
    return Variant(**value).to_json()


def _optional(convert: Converter) -> Converter:
    return lambda value: None if value is None else convert(value)


def _json_field(field: pa.Field[Any]) -> pa.Field[Any]:
    """Return a field with strings in place of Variants."""
    if is_variant(field):
        return pa.field(field.name, pa.string(), field.nullable)
    return field.with_type(_nested(field.type, lambda other: other, _json_field))
