"""Convert Arrow data to the columns, the column order and the types of a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as arrow_types

from ..._arrow import Array, decode, is_encoded, replace_view, values_and_positions
from ...errors import SchemaError
from ...variant.values import VARIANT_TYPE
from ..types import VARIANT, ArrayType, DataType, MapType, PrimitiveType, StructField, StructType, describe
from .arrow import is_list, to_arrow_type, variant_field

BINARY = PrimitiveType("binary")
MAX_OFFSET = 2**31 - 1


def conform(batch: pa.RecordBatch, schema: StructType) -> pa.RecordBatch:
    """Return `batch` with the columns of `schema`: its names, order and Arrow types, absent columns null.

    Casts are lossless. Variant columns are returned unchanged, as Variant bytes or JSON text. Raises
    SchemaError, which has the column, for a value that does not fit its type and for a null in a NOT NULL
    column.
    """
    find = _finder(batch.schema.names)
    arrays, fields = [], []
    for field in schema.fields:
        index = find(field.name)
        source = pa.nulls(batch.num_rows) if index is None else batch.column(index)
        array = _conform_field(source, field, (field.name,))
        arrays.append(array)
        fields.append(_arrow_field(field, array))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _finder(names: Sequence[str]) -> Callable[[str], int | None]:
    """Return a function that finds a name: the same one, else one that differs by case only."""
    exact = {name: index for index, name in enumerate(names)}
    lowered = {name.lower(): index for index, name in enumerate(names)}
    return lambda name: exact.get(name, lowered.get(name.lower()))


def _arrow_field(field: StructField, array: Array) -> pa.Field[Any]:
    is_bytes = field.type == VARIANT and arrow_types.is_struct(array.type)
    metadata = variant_field(field.name).metadata if is_bytes else None
    return pa.field(field.name, array.type, field.nullable, metadata)


def _conform_field(array: Array, field: StructField, path: tuple[str, ...]) -> Array:
    conformed = _conform(array, field.type, path)
    if not field.nullable and conformed.null_count:
        raise _null_error(path, conformed.null_count)
    return conformed


def _conform(array: Array, data_type: DataType, path: tuple[str, ...]) -> Array:
    if isinstance(array, pa.ExtensionArray):
        return _conform(array.storage, data_type, path)
    if is_encoded(array):
        return _conform_encoded(array, data_type, path)
    if data_type == VARIANT and not arrow_types.is_null(array.type):
        return decode(array) if len(path) == 1 else _conform_nested_variant(array, path)
    if isinstance(data_type, StructType) and arrow_types.is_struct(array.type):
        return _conform_struct(array, data_type, path)
    if isinstance(data_type, ArrayType) and is_list(array.type):
        return _conform_list(array, data_type, path)
    if isinstance(data_type, MapType) and arrow_types.is_map(array.type):
        return _conform_map(array, data_type, path)
    return _cast(array, data_type, path)


def _conform_encoded(array: Array, data_type: DataType, path: tuple[str, ...]) -> Array:
    values, positions = values_and_positions(array)
    if arrow_types.is_nested(values.type):
        # Arrow cannot take rows of nested arrays that contain views. Conformed arrays do not contain any.
        return _take(_conform(values, data_type, path), positions, path)
    return _conform(_take(replace_view(values), positions, path), data_type, path)


def _conform_struct(array: Array, struct: StructType, path: tuple[str, ...]) -> Array:
    find = _finder([part.name for part in array.type])
    parts, fields = [], []
    for field in struct.fields:
        index = find(field.name)
        source = pa.nulls(len(array)) if index is None else pc.struct_field(array, [index])
        part = _conform(source, field.type, (*path, field.name))
        if not field.nullable and _count_nulls_within(array, part):
            raise _null_error((*path, field.name), _count_nulls_within(array, part))
        parts.append(part)
        fields.append(_arrow_field(field, part))
    return pa.StructArray.from_arrays(parts, fields=fields, mask=array.is_null())


def _count_nulls_within(struct: Array, part: Array) -> int:
    visible = part.filter(struct.is_valid()) if struct.null_count else part
    return int(visible.null_count)


def _conform_nested_variant(array: Array, path: tuple[str, ...]) -> Array:
    """Return nested Variants with the parts in the order of the Parquet layout."""
    if not arrow_types.is_struct(array.type):
        raise SchemaError(
            f"the nested column {'.'.join(path)!r} is JSON text, which is parsed in top-level columns only: "
            "pass it through parse_json first, or cast it to string in the data to store the text",
            column=".".join(path),
        )
    hidden = array.is_null()
    parts = [
        pc.if_else(hidden, b"", _conform(pc.struct_field(array, [part.name]), BINARY, path))
        for part in VARIANT_TYPE
    ]
    if any(part.null_count for part in parts):
        column = ".".join(path)
        raise SchemaError(f"the column {column!r} has a Variant without metadata or value", column=column)
    return pa.StructArray.from_arrays(parts, fields=list(VARIANT_TYPE), mask=hidden)


def _conform_map(array: Array, data_type: MapType, path: tuple[str, ...]) -> Array:
    start, stop = array.offsets[0].as_py(), array.offsets[-1].as_py()
    keys = _conform(array.keys.slice(start, stop - start), data_type.key_type, (*path, "key"))
    value = StructField("value", data_type.value_type, data_type.value_contains_null)
    items = _conform_field(array.items.slice(start, stop - start), value, (*path, "value"))
    offsets = pc.subtract(array.offsets, start)
    key_field: Any = pa.field("key", keys.type, False)
    value_field: Any = _arrow_field(value, items)
    map_type: Any = pa.map_(key_field, value_field)
    return pa.MapArray.from_arrays(offsets, keys, items, type=map_type, mask=array.is_null())


def _conform_list(array: Array, data_type: ArrayType, path: tuple[str, ...]) -> Array:
    element = StructField("element", data_type.element_type, data_type.contains_null)
    values = _conform_field(_flatten(array, path), element, (*path, "element"))
    lengths: Array = pc.list_value_length(array)
    ends = pc.cumulative_sum(pc.fill_null(lengths, 0).cast(pa.int32()))
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    list_type = pa.list_(_arrow_field(element, values))
    return pa.ListArray.from_arrays(offsets, values, type=list_type, mask=array.is_null())


def _flatten(array: Array, path: tuple[str, ...]) -> Array:
    try:
        return array.flatten()
    except pa.ArrowException as error:
        message = f"cannot read a list of type {array.type}: {error}"
        raise SchemaError(message).at(column=".".join(path)) from error


def _take(values: Array, positions: Array, path: tuple[str, ...]) -> Array:
    try:
        return values.take(positions)
    except pa.ArrowInvalid as error:
        column = ".".join(path)
        raise SchemaError(
            f"the column {column!r} is too large: {error}; write fewer rows per batch", column=column
        ) from error


def _null_error(path: tuple[str, ...], nulls: int) -> SchemaError:
    column = ".".join(path)
    found = "1 null" if nulls == 1 else f"{nulls:,} nulls"
    return SchemaError(f"the column {column!r} is NOT NULL, but has {found}", column=column)


def _cast(array: Array, data_type: DataType, path: tuple[str, ...]) -> Array:
    target = to_arrow_type(data_type)
    if array.type == target:
        return array
    if array.nbytes > MAX_OFFSET:
        # Arrow's cast of views overflows the offsets without an error.
        array = replace_view(array)
    try:
        return _compact(array).cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        message = f"cannot cast to {describe(data_type)}: {error}: round or cast the values first"
        raise SchemaError(message).at(column=".".join(path)) from error


def _compact(array: Array) -> Array:
    """Copy a slice of large text: Arrow's cast checks the offsets within the whole buffer."""
    if not (arrow_types.is_large_string(array.type) or arrow_types.is_large_binary(array.type)):
        return array
    if array.get_total_buffer_size() <= MAX_OFFSET:
        return array
    return pa.concat_arrays([array, array.slice(0, 0)])
