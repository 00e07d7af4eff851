"""Convert Arrow data to the columns, the column order and the types of a table, and compare types of files.

A file may have a narrower type, as before a type change, and other units and forms of the same values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as arrow_types

from ..._arrow import (
    Array,
    decode,
    is_any_binary,
    is_any_text,
    is_encoded,
    replace_view,
    values_and_positions,
)
from ...errors import SchemaError
from ...variant.values import VARIANT_TYPE
from ..types import (
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    FieldPath,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    decimal_of,
    describe,
    is_geospatial,
)
from .arrow import is_list, to_arrow_type, variant_field
from .evolution import is_lossless

BINARY = PrimitiveType("binary")
MAX_OFFSET = 2**31 - 1

TIMESTAMP = PrimitiveType("timestamp")
SMALL = (PrimitiveType("byte"), PrimitiveType("short"))
DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}
DIGITS |= {pa.uint8(): 3, pa.uint16(): 5, pa.uint32(): 10, pa.uint64(): 20}
# The physical type of bytes and shorts is INT32, which other writers do not annotate with their width.
INTEGERS = {
    "byte": (pa.int8(), pa.int32()),
    "short": (pa.int8(), pa.int16(), pa.int32(), pa.uint8()),
    "integer": (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16()),
    "long": (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()),
}
DOUBLES = (pa.float16(), pa.float32(), pa.float64(), *INTEGERS["integer"])


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


def check_readable(stored: Any, data_type: DataType, path: FieldPath) -> None:
    """Raise SchemaError for a column that cannot be read as its type in the table.

    A conversion that fails for each value that it would change is left to the values.
    """
    for leaf, found, expected in mismatches(stored, data_type, path):
        if not _is_checked_by_value(found, expected):
            raise SchemaError(
                f"the file stores {found}, which cannot be read as {describe(expected)} without loss: "
                "rewrite the file with the type of the table"
            ).at(column=".".join(leaf))


def _is_checked_by_value(stored: Any, data_type: DataType) -> bool:
    if not isinstance(data_type, PrimitiveType):
        return False
    is_integer = arrow_types.is_integer(stored)
    if data_type.name in INTEGERS or decimal_of(data_type) is not None:
        return bool(is_integer or arrow_types.is_decimal(stored))
    if data_type.name in ("timestamp", "timestamp_ntz"):
        return bool(arrow_types.is_timestamp(stored))
    if data_type.name == "binary":
        return _is_bytes(stored, allows_text=True)
    if arrow_types.is_decimal(stored):
        return is_lossless(PrimitiveType(f"decimal({stored.precision},{stored.scale})"), data_type)
    return bool(is_integer and data_type.name in ("float", "double"))


def mismatches(
    stored: Any, data_type: DataType, path: FieldPath
) -> Iterator[tuple[FieldPath, Any, DataType]]:
    """Yield path, stored type and type of each leaf that a reader cannot convert without loss."""
    for leaf, found, expected in _leaves(stored, data_type, path):
        if not (isinstance(expected, PrimitiveType) and _fits(found, expected)):
            yield leaf, found, expected


def may_overflow(stored: Any, data_type: DataType) -> bool:
    """Return whether a column has bytes or shorts as INT32 without an annotation of their width."""
    return any(
        found == pa.int32() and expected in SMALL for _, found, expected in _leaves(stored, data_type, ())
    )


def _leaves(stored: Any, data_type: DataType, path: FieldPath) -> Iterator[tuple[FieldPath, Any, DataType]]:
    """Yield path, stored type and type of each leaf, and of a column of another structure as a whole."""
    if data_type in (VARIANT, VOID) or stored is None or arrow_types.is_null(stored):
        return
    if isinstance(data_type, StructType) and arrow_types.is_struct(stored):
        for field in data_type.fields:
            index = stored.get_field_index(field.name)
            if index >= 0:
                yield from _leaves(stored.field(index).type, field.type, (*path, field.name))
    elif isinstance(data_type, ArrayType) and is_list(stored):
        yield from _leaves(stored.value_type, data_type.element_type, (*path, "element"))
    elif isinstance(data_type, MapType) and arrow_types.is_map(stored):
        yield from _leaves(stored.key_type, data_type.key_type, (*path, "key"))
        yield from _leaves(stored.item_type, data_type.value_type, (*path, "value"))
    else:
        yield path, stored.value_type if arrow_types.is_dictionary(stored) else stored, data_type


def is_unadjusted(stored: Any, data_type: DataType) -> bool:
    """Return whether a timestamp is stored without isAdjustedToUTC, as early versions of deltalake did.

    Readers take it for UTC.
    """
    return data_type == TIMESTAMP and bool(arrow_types.is_timestamp(stored))


def _fits(stored: Any, data_type: PrimitiveType) -> bool:
    name, decimal = data_type.name, decimal_of(data_type)
    if decimal is not None:
        return _fits_decimal(stored, *decimal)
    if name in INTEGERS:
        return stored in INTEGERS[name]
    if name == "double":
        return stored in DOUBLES
    if name == "float":
        return stored in (pa.float16(), pa.float32())
    if name == "timestamp":
        return bool(arrow_types.is_timestamp(stored)) and stored.tz is not None
    if name == "timestamp_ntz":
        is_local = arrow_types.is_timestamp(stored) and stored.tz is None
        return bool(is_local or arrow_types.is_date(stored))
    if name == "date":
        return bool(arrow_types.is_date(stored))
    if name == "boolean":
        return bool(arrow_types.is_boolean(stored))
    # Writers before Parquet's logical types store text without an annotation.
    is_bytes = name in ("string", "binary") or is_geospatial(data_type)
    return is_bytes and _is_bytes(stored, allows_text=name != "binary")


def _is_bytes(stored: Any, *, allows_text: bool) -> bool:
    is_binary = is_any_binary(stored) or arrow_types.is_fixed_size_binary(stored)
    return bool(is_binary or (allows_text and is_any_text(stored)))


def _fits_decimal(stored: Any, precision: int, scale: int) -> bool:
    if stored in DIGITS:
        return DIGITS[stored] <= precision - scale
    if not arrow_types.is_decimal(stored):
        return False
    return bool(stored.scale <= scale and stored.precision - stored.scale <= precision - scale)
