"""Build columns of arrays, structs and maps from columns, with the names of Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as arrow_types

from .. import _native
from .._arrow import Array, decode
from .._checks import check_text
from ..errors import ArgumentTypeError, CastError
from .functions import is_variant_type
from .values import EXTENSION, VARIANT_TYPE, ArrowArray, to_arrow_array


def array(*columns: ArrowArray) -> pa.ListArray[Any]:
    """Return lists with an element for each column.

    Args:
        columns: Arrow arrays of one type and one length, at least one. Variants stay Variants.

    Returns:
        An array of lists. Null stays a null element.

    Raises:
        ArgumentTypeError: The arrays differ in type or length, or there is none.

    Example:
        >>> import pyarrow as pa
        >>> from delta_variant.functions import array, to_json, to_variant_object
        >>> pairs = array(pa.array([1, 2]), pa.array([3, None]))
        >>> to_json(to_variant_object(pairs)).to_pylist()
        ['[1,3]', '[2,null]']
    """
    parts = _columns("array", columns)
    return list_of_columns(parts, part_field("element", _type_of(_one_type("array", parts))))


def named_struct(*names_and_columns: Any) -> pa.StructArray:
    """Return structs with a field for each column.

    Args:
        names_and_columns: A name, an Arrow array with its values, the next name, and so on.

    Returns:
        An array of structs, none of which is null. A field of Variants has the extension name
        `arrow.parquet.variant`.

    Raises:
        ArgumentTypeError: A name is not a string or repeats, or the arrays differ in length.
        ValueError: A name has an unpaired surrogate.

    Example:
        >>> import pyarrow as pa
        >>> from delta_variant.functions import named_struct, to_json, to_variant_object
        >>> structs = named_struct("id", pa.array([1, 2]), "name", pa.array(["ann", None]))
        >>> to_json(to_variant_object(structs)).to_pylist()
        ['{"id":1,"name":"ann"}', '{"id":2,"name":null}']
    """
    names = names_and_columns[::2]
    if len(names_and_columns) % 2 or not all(isinstance(name, str) for name in names):
        raise ArgumentTypeError("named_struct: expected pairs of a name and an array")
    for name in names:
        check_text("the name of a field", name)
    if len(set(names)) < len(names):
        raise ArgumentTypeError(f"named_struct: expected different names, got {', '.join(map(repr, names))}")
    parts = _columns("named_struct", names_and_columns[1::2])
    fields = [part_field(name, _type_of(part)) for name, part in zip(names, parts, strict=True)]
    return struct_of_columns(parts, fields)


def create_map(*keys_and_values: ArrowArray) -> pa.MapArray[Any, Any]:
    """Return maps with an entry for each pair of columns.

    Args:
        keys_and_values: Arrow arrays: keys, their values, the next keys, and so on.

    Returns:
        An array of maps, none of which is null.

    Raises:
        ArgumentTypeError: The arrays differ in length, or keys or values in type.
        CastError: A key is null, or a map has it twice; `row` is the row.

    Example:
        >>> import pyarrow as pa
        >>> from delta_variant.functions import create_map, to_json, to_variant_object
        >>> maps = create_map(pa.array(["a", "b"]), pa.array([1, 2]))
        >>> to_json(to_variant_object(maps)).to_pylist()
        ['{"a":1}', '{"b":2}']
    """
    parts = _columns("create_map", keys_and_values)
    if len(parts) % 2:
        raise ArgumentTypeError("create_map: expected pairs of arrays, the keys and their values")
    keys, values = parts[::2], parts[1::2]
    key_type = keys[0].type
    if is_variant_type(key_type) or arrow_types.is_nested(key_type) or arrow_types.is_null(key_type):
        raise ArgumentTypeError(f"create_map: expected keys of a simple type, got {key_type}")
    return map_of_lists(
        list_of_columns(keys, part_field("element", _one_type("create_map", keys).type)),
        list_of_columns(values, part_field("element", _type_of(_one_type("create_map", values)))),
    )


def _columns(function: str, columns: Sequence[Any]) -> list[Array]:
    arrays = [to_arrow_array(each) for each in columns]
    if not arrays:
        raise ArgumentTypeError(f"{function}: expected at least one array")
    lengths = {len(each) for each in arrays}
    if len(lengths) > 1:
        raise ArgumentTypeError(f"{function}: expected arrays of one length, got {sorted(lengths)}")
    return arrays


def _one_type(function: str, arrays: Sequence[Array]) -> Array:
    """Return the first array; raises ArgumentTypeError if the others have other types."""
    types = {_type_of(each) for each in arrays}
    if len(types) > 1:
        found = ", ".join(sorted("variant" if each is None else str(each) for each in types))
        raise ArgumentTypeError(f"{function}: expected arrays of one type, got {found}")
    return arrays[0]


def _type_of(array: Array) -> pa.DataType | None:
    """Return the type of an array, None for Variants."""
    return None if is_variant_type(array.type) else array.type


def part_field(name: str, arrow_type: pa.DataType | None) -> pa.Field[Any]:
    """Return the field of a part of a nested type; None is the type of Variants."""
    if arrow_type is None:
        return pa.field(name, VARIANT_TYPE, metadata=EXTENSION)
    return pa.field(name, arrow_type)


def struct_of_columns(columns: Sequence[Array], fields: Sequence[pa.Field[Any]]) -> pa.StructArray:
    """Return structs of columns in the types of the fields."""
    arrays = [conform_part(column, field) for column, field in zip(columns, fields, strict=True)]
    return pa.StructArray.from_arrays(arrays, fields=list(fields))


def list_of_columns(columns: Sequence[Array], field: pa.Field[Any]) -> pa.ListArray[Any]:
    """Return lists with an element for each column, all in the type of the field."""
    count, width = len(columns[0]), len(columns)
    joined = pa.concat_arrays([conform_part(column, field) for column in columns])
    positions = row_numbers(count * width)
    rows = pc.divide(positions, width)
    # Element `column` of `row` is at `column * count + row` of the joined columns.
    sources = pc.add(pc.multiply(pc.subtract(positions, pc.multiply(rows, width)), count), rows)
    offsets: Array = pc.multiply(row_numbers(count + 1), width).cast(pa.int32())
    return pa.ListArray.from_arrays(offsets, joined.take(sources), type=pa.list_(field))


def conform_part(array: Array, field: pa.Field[Any]) -> Array:
    """Return an array in the type of a field; Variants may be encoded, or absent from a file."""
    if array.type == field.type:
        return array
    if not is_variant_type(array.type):
        return pa.nulls(len(array), field.type) if array.null_count == len(array) else array.cast(field.type)
    if array.type.get_field_index("typed_value") >= 0:
        array = _native.unshred(array, "error")
    parts = [decode(array.field(part.name)).cast(part.type) for part in VARIANT_TYPE]
    return pa.StructArray.from_arrays(parts, fields=list(VARIANT_TYPE), mask=array.is_null())


def row_numbers(count: int) -> Array:
    """Return the numbers from 0, without Python objects."""
    one: Array = pa.repeat(pa.scalar(1, pa.int64()), count)
    return pc.call_function("cumulative_sum", [one], pc.CumulativeOptions(pa.scalar(-1, pa.int64())))


def map_of_lists(keys: Array, values: Array) -> pa.MapArray[Any, Any]:
    """Return maps of lists of keys and lists of values, null where a list is null.

    Raises CastError, with `row`, if a key is null or repeats, or two lists differ in length.
    """
    is_known: Array = pc.and_(keys.is_valid(), values.is_valid())
    keys, values = (_null_unless(is_known, each) for each in (keys, values))
    _reject_first(pc.not_equal(_lengths(keys), _lengths(values)), "a map needs as many values as keys")
    rows: Array = pc.list_parent_indices(keys)
    flat: Array = keys.flatten()
    _reject_first(flat.is_null(), "a key of a map is null", rows)
    by_key = pa.table({"row": rows, "key": flat}).group_by(["row", "key"], use_threads=False)
    counts = by_key.aggregate([([], "count_all")]).combine_chunks()
    is_repeated: Array = pc.greater(_column(counts, "count_all"), pa.scalar(1, pa.int64()))
    _reject_first(is_repeated, "a map has a key twice", _column(counts, "row"))
    map_type: Any = pa.map_(keys.type.value_type, values.type.value_field.with_name("value"))
    found: Any = pa.MapArray.from_arrays(_starts(keys), flat, values.flatten(), type=map_type)
    return found  # type: ignore[no-any-return]


def map_of_entries(entries: Array) -> pa.MapArray[Any, Any]:
    """Return maps of lists of pairs, null where a list or a pair in it is null; see `map_of_lists`."""
    rows: Array = pc.list_parent_indices(entries)
    rows_with_null = rows.filter(entries.flatten().is_null())
    entries = _null_unless(pc.invert(pc.is_in(row_numbers(len(entries)), rows_with_null)), entries)
    starts, pairs = _starts(entries), entries.flatten()
    keys, values = (
        pa.ListArray.from_arrays(
            starts, pc.struct_field(pairs, [index]), type=pa.list_(field.with_name("element"))
        )
        for index, field in enumerate(entries.type.value_type)
    )
    return map_of_lists(keys, values)


def _null_unless(is_kept: Array, lists: Array) -> Array:
    return pc.if_else(is_kept, lists, pa.scalar(None, lists.type))


def _lengths(lists: Array) -> Array:
    lengths: Array = pc.list_value_length(lists)
    filled: Array = pc.fill_null(lengths, 0)
    return filled.cast(pa.int32())


def _starts(lists: Array) -> Array:
    """Return where each list starts in the flattened lists, null for a null list, and the end of the last."""
    ends = pc.call_function("cumulative_sum", [_lengths(lists)])
    offsets: Array = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    starts: Array = pc.if_else(lists.is_valid(), offsets[:-1], pa.scalar(None, pa.int32()))
    return pa.concat_arrays([starts, offsets[-1:]])


def _column(table: pa.Table, name: str) -> Array:
    return table[name].combine_chunks()


def _reject_first(is_wrong: Array, message: str, rows: Array | None = None) -> None:
    """Raise CastError with the row of the first value that is wrong."""
    position = pc.index(is_wrong, True).as_py()
    if position >= 0:
        row = position if rows is None else rows[position].as_py()
        raise CastError(message).at(row=row)
