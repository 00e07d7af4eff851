"""Arrow types of SQL, and arrays under other types: decode encodings and views, and retype without a copy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeGuard

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as arrow_types

Array: TypeAlias = Any
"""An Arrow array. The stubs of pyarrow do not narrow arrays by their types, so mypy cannot check its uses."""

SIMPLE_TYPES: dict[str, pa.DataType] = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
"""The types without parameters that SQL and Variants have, by their names in SQL."""

COPIED_BYTES = 64 << 20
"""How many bytes of values that many rows share are copied at a time."""

KERNEL_DICTIONARIES = (pa.dictionary(pa.int32(), pa.binary()), pa.dictionary(pa.int32(), pa.string()))
"""The encodings of metadata and of text that the kernel reads."""

_BYTES = (pa.string(), pa.binary(), pa.large_string(), pa.large_binary())


def total(values: Array) -> int:
    """Return the sum of integers, or the number of true values; 0 without values."""
    return int(pc.sum(values).as_py() or 0)


def row_numbers(count: int, first: int = 0) -> Array:
    """Return `count` consecutive numbers as int64."""
    arange: Any = pa.arange  # type: ignore[attr-defined]
    return arange(first, first + count)


def value_bytes(array: Array) -> Array:
    """Return the bytes of text and binary values in each row of an array, also in a struct, as int64."""
    array = getattr(array, "storage", array)
    sizes: Array = pa.repeat(pa.scalar(0, pa.int64()), len(array))
    if arrow_types.is_struct(array.type):
        for index in range(array.type.num_fields):
            sizes = pc.add(sizes, value_bytes(array.field(index)))
    elif array.type in _BYTES:
        lengths: Array = pc.binary_length(array)
        sizes = pc.fill_null(lengths.cast(pa.int64()), 0)
    return sizes


def parts_by_bytes(sizes: Array) -> list[tuple[int, int]]:
    """Return the start and the length of parts of rows of at most `COPIED_BYTES`, or of one row."""
    if total(sizes) <= COPIED_BYTES:
        return [(0, len(sizes))]
    parts, start, size = [], 0, 0
    for end, each in enumerate(sizes.to_pylist()):
        if end > start and size + each > COPIED_BYTES:
            parts.append((start, end - start))
            start, size = end, 0
        size += each
    return [*parts, (start, len(sizes) - start)]


def is_encoded(array: Array) -> bool:
    """Return whether an array is dictionary or run-end encoded."""
    return bool(arrow_types.is_dictionary(array.type) or arrow_types.is_run_end_encoded(array.type))


def values_and_positions(array: Array) -> tuple[Array, Array]:
    """Return the values of an encoded array, and for each row the position of its value."""
    if arrow_types.is_dictionary(array.type):
        return array.dictionary, array.indices
    numbers = row_numbers(len(array.values))
    runs_type: Any = pa.run_end_encoded(array.type.run_end_type, numbers.type)
    children: Any = [array.run_ends, numbers]
    runs: Array = pa.RunEndEncodedArray.from_buffers(runs_type, len(array), [None], 0, array.offset, children)
    return array.values, pc.call_function("run_end_decode", [runs])


def decode(array: Array) -> Array:
    """Return an array without extension type, encodings and views, of which Arrow cannot take rows.

    Raises ArrowInvalid if it is too large.
    """
    while True:
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        elif is_encoded(array):
            values, positions = values_and_positions(array)
            array = plain(values).take(positions)
        elif arrow_types.is_struct(array.type) and any(map(_is_decoded, array.type)):
            return plain(array)
        else:
            return replace_view(array)


def _is_decoded(field: pa.Field[Any]) -> bool:
    """Return whether the kernel or Arrow needs a part of Variants without its encoding."""
    if arrow_types.is_string_view(field.type) or arrow_types.is_binary_view(field.type):
        return True
    is_dictionary = arrow_types.is_dictionary(field.type)
    if is_dictionary and field.name != "value" and field.type in KERNEL_DICTIONARIES:
        return False
    return bool(is_dictionary or arrow_types.is_run_end_encoded(field.type))


def plain(array: Array) -> Array:
    """Return an array without views and encodings, of which Arrow cannot take rows, also in structs."""
    if isinstance(array, pa.ExtensionArray):
        return array
    array = replace_view(array)
    if is_encoded(array):
        return decode(array)
    if is_list_view(array):
        return _list_of_view(array)
    if not arrow_types.is_struct(array.type):
        return array
    fields = list(array.type)
    parts = [plain(array.field(index)) for index, _ in enumerate(fields)]
    fields = [field.with_type(part.type) for field, part in zip(fields, parts, strict=True)]
    return pa.StructArray.from_arrays(parts, fields=fields, mask=array.is_null())


def validate(array: Array) -> None:
    """Raise ArrowInvalid for an invalid offset, view or value: Arrow does not check those of buffers."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        # A slice of nested values can have invalid ones that are not in it.
        parts = _parts_of(array)
        if parts is None:
            raise
        array.validate()
        for part in parts:
            validate(part)
    except pa.ArrowIndexError as error:
        raise pa.ArrowInvalid(str(error)) from error


def first_invalid_row(array: Array) -> int | None:
    """Return the first row of an array that `validate` rejects, None if each row alone is valid."""
    start, stop = 0, len(array)
    while start < stop:
        middle = (start + stop + 1) // 2
        try:
            validate(array.slice(start, middle - start))
        except pa.ArrowInvalid:
            if middle == start + 1:
                return start
            stop = middle
        else:
            start = middle
    return None


def _parts_of(array: Array) -> list[Array] | None:
    """Return the fields of structs or the elements of lists and maps, None if they are not known."""
    if isinstance(array, pa.StructArray):
        return [array.field(index) for index in range(array.type.num_fields)]
    if isinstance(array, pa.ListArray | pa.LargeListArray):
        offsets: Array = array.offsets
        if pc.all(pc.less_equal(offsets[:-1], offsets[1:])).as_py():
            return [array.values[offsets[0].as_py() : offsets[-1].as_py()]]
    return None


def is_list_view(array: Array) -> bool:
    """Return whether an array is a list view, with offsets of any size."""
    return bool(arrow_types.is_list_view(array.type) or arrow_types.is_large_list_view(array.type))


def _list_of_view(array: Array) -> Array:
    # Arrow's cast of list views with nulls returns invalid offsets.
    lengths: Array = pc.list_value_length(array)
    ends = pc.cumulative_sum(pc.fill_null(lengths.cast(pa.int64()), 0))
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends])
    values = plain(array.flatten())
    arrow_type = pa.large_list(array.type.value_field.with_type(values.type))
    return pa.LargeListArray.from_arrays(offsets, values, type=arrow_type, mask=array.is_null())


def replace_view(array: Array) -> Array:
    """Return a string or binary view as a large string or binary array, and any other array unchanged."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if arrow_types.is_string_view(array.type):
        return array.cast(pa.large_string())
    return array.cast(pa.large_binary()) if arrow_types.is_binary_view(array.type) else array


def retype_array(array: Array, arrow_type: pa.DataType) -> Array:
    """Return an array under another type of the same layout, without a copy."""
    retyped: Any = _Retyped(array, arrow_type)
    return pa.array(retyped)


def retype_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch under another schema of the same layout, without a copy."""
    return pa.record_batch(_Retyped(batch, schema))


@dataclass(frozen=True)
class _Retyped:
    """The buffers of `data` under another type or schema, for Arrow's C data interface."""

    data: Any
    type: pa.DataType | pa.Schema

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        return self.type.__arrow_c_schema__(), self.data.__arrow_c_array__()[1]


def is_any_list(arrow_type: pa.DataType) -> TypeGuard[pa.ListType[Any] | pa.LargeListType[Any]]:
    """Return whether a type is a list, with offsets of any size."""
    return pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type)


def arrow_type_at(found: Any, path: Iterable[str]) -> Any:
    """Return the type at a path, also of `element`, `key` and `value`, in a schema or type, else None."""
    for step in path:
        if found is None:
            return None
        if isinstance(found, pa.Schema) or arrow_types.is_struct(found):
            position = found.get_field_index(step)
            found = found.field(position).type if position >= 0 else None
        elif arrow_types.is_map(found):
            found = found.key_type if step == "key" else found.item_type
        else:
            found = getattr(found, "value_type", None)
    return found


def leaf_types(arrow_type: Any) -> Iterator[pa.DataType]:
    """Yield the types of the leaves of a type, in order."""
    # A stack, because nested generators would take a call per level for each of hundreds of leaves.
    waiting = [arrow_type]
    while waiting:
        found = waiting.pop()
        if arrow_types.is_nested(found):
            waiting += (found.field(index).type for index in reversed(range(found.num_fields)))
        else:
            yield found


def is_any_text(arrow_type: pa.DataType) -> bool:
    """Return whether a type is text, with offsets of any size or as views."""
    return bool(
        arrow_types.is_string(arrow_type)
        or arrow_types.is_large_string(arrow_type)
        or arrow_types.is_string_view(arrow_type)
    )


def is_any_binary(arrow_type: pa.DataType) -> bool:
    """Return whether a type is binary of any length, with offsets of any size or as views."""
    return bool(
        arrow_types.is_binary(arrow_type)
        or arrow_types.is_large_binary(arrow_type)
        or arrow_types.is_binary_view(arrow_type)
    )


def positions_by_number(numbers: Array) -> Iterator[tuple[int, Array]]:
    """Yield each distinct number, in ascending order, and its ascending positions."""
    order: Array = pc.sort_indices(numbers)
    runs: Any = pc.call_function("run_end_encode", [numbers.take(order)])
    first = 0
    for number, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield number, order.slice(first, end - first)
        first = end
