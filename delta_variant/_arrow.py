"""Arrow arrays that have their values apart from their rows: dictionaries and run-end encoding."""

from __future__ import annotations

from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as arrow_types

__all__ = ["decoded", "is_encoded", "values_and_positions", "without_view"]

# The stubs of pyarrow do not narrow an array by the predicates of pyarrow.types.
Array: TypeAlias = Any


def is_encoded(array: Array) -> bool:
    """Say whether an array has its values apart from its rows."""
    return bool(arrow_types.is_dictionary(array.type) or arrow_types.is_run_end_encoded(array.type))


def values_and_positions(array: Array) -> tuple[Array, Array]:
    """Return the values of an encoded array, and for each row the position of its value."""
    if arrow_types.is_dictionary(array.type):
        return array.dictionary, array.indices
    numbers: Any = pa.array(range(len(array.values)), pa.int64())
    runs_type: Any = pa.run_end_encoded(array.type.run_end_type, numbers.type)
    children: Any = [array.run_ends, numbers]
    runs: Array = pa.RunEndEncodedArray.from_buffers(runs_type, len(array), [None], 0, array.offset, children)
    return array.values, pc.call_function("run_end_decode", [runs])


def decoded(array: Array) -> Array:
    """Return an array without extension type and encodings; ArrowInvalid where it is too large."""
    while True:
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        elif is_encoded(array):
            values, positions = values_and_positions(array)
            array = without_view(values).take(positions)
        else:
            return array


def without_view(array: Array) -> Array:
    """Return views of text or bytes as large text or bytes, and any other array as it is."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if arrow_types.is_string_view(array.type):
        return array.cast(pa.large_string())
    return array.cast(pa.large_binary()) if arrow_types.is_binary_view(array.type) else array
