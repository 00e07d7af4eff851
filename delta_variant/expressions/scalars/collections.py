"""Functions of arrays and maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from ..._arrow import Array, row_numbers
from ...errors import CastError, ExpressionError
from ...variant.objects import is_variant
from ..tree import ELEMENT, Call, Expression, describe, output_type
from ..types import Kind, kind_of, type_name
from .signature import (
    Evaluation,
    ScalarFunction,
    Values,
    evaluate_over_arrays,
    function,
    kernels,
    over_arrays,
    over_first,
)

TRUE = pa.scalar(True)
TRY_ELEMENT_AT = "try_element_at"
UNCOMPARED: frozenset[Kind] = frozenset({"floating", "nested"})
"""The kinds of keys for which Arrow has another equality than Spark, or none."""


def _size(values: Values) -> Values:
    if isinstance(values, pa.MapArray):
        offsets = values.offsets
        sizes = kernels.subtract(offsets[1:], offsets[:-1])
        return kernels.if_else(values.is_valid(), sizes, pa.scalar(None, pa.int32()))
    return kernels.list_value_length(values).cast(pa.int32())


def _size_type(arguments: Sequence[Expression]) -> pa.DataType:
    _collection_type("size", arguments[0])
    return pa.int32()


def _collection_type(name: str, argument: Expression, *, accepts_map: bool = True) -> Any:
    """Return the type of an array or a map; raises ExpressionError for another value."""
    arrow_type: Any = output_type(argument)
    if pa.types.is_list(arrow_type) or (accepts_map and pa.types.is_map(arrow_type)):
        return arrow_type
    expected = "an array or a map" if accepts_map else "an array"
    raise ExpressionError(
        f"`{name}`: expected {expected}, got `{describe(argument)}` of type {type_name(arrow_type)}"
    )


def _contains_type(arguments: Sequence[Expression]) -> pa.DataType:
    element = _collection_type("array_contains", arguments[0], accepts_map=False).value_type
    found = output_type(arguments[1])
    if element != found and found is not None and kind_of(found) != "null":
        raise ExpressionError(
            f"`array_contains`: expected a value of type {type_name(element)}, got {type_name(found)}: "
            "cast it"
        )
    return pa.bool_()


def _array_contains(arrays: Array, wanted: Array) -> Array:
    """Return whether an array has a value; NULL where it has not, but has a NULL."""
    rows = kernels.list_parent_indices(arrays)
    elements = kernels.list_flatten(arrays)
    equal = kernels.equal(elements, wanted.take(rows))
    if kind_of(elements.type) == "floating":
        both = kernels.and_(kernels.is_nan(elements), kernels.is_nan(wanted.take(rows)))
        equal = kernels.or_(equal, both)
    every = row_numbers(len(arrays)).cast(rows.type)
    found = kernels.is_in(every, value_set=rows.filter(kernels.fill_null(equal, False)))
    unknown = kernels.is_in(every, value_set=rows.filter(elements.is_null()))
    known = kernels.if_else(kernels.or_(found, kernels.invert(unknown)), found, pa.scalar(None, pa.bool_()))
    return kernels.if_else(
        kernels.and_(arrays.is_valid(), wanted.is_valid()), known, pa.scalar(None, pa.bool_())
    )


def _element_type(name: str, *, accepts_map: bool = True) -> Callable[[Sequence[Expression]], pa.DataType]:
    """Return the rule for the type of an element at a position, or of the value of a key."""

    def type_of(arguments: Sequence[Expression]) -> pa.DataType:
        collection = _collection_type(name, arguments[0], accepts_map=accepts_map)
        is_map = pa.types.is_map(collection)
        found: Any = output_type(arguments[1])
        kind = kind_of(collection.key_type) if is_map else "integer"
        if kind in UNCOMPARED:
            raise ExpressionError(f"`{name}`: cannot compare keys of type {type_name(collection.key_type)}")
        is_key = kind_of(found) == "integer" if kind == "integer" else found == collection.key_type
        if not is_key and kind_of(found) != "null":
            expected = f"a key of type {type_name(collection.key_type)}" if is_map else "an integer"
            raise ExpressionError(
                f"`{name}`: expected {expected}, got `{describe(arguments[1])}` of type {type_name(found)}: "
                "cast it"
            )
        field = collection.item_field if is_map else collection.value_field
        if is_variant(field):
            raise ExpressionError(f"`{name}`: cannot take a Variant out of `{describe(arguments[0])}`")
        result: pa.DataType = field.type
        return result

    return type_of


def _element(call: Call, collections: Array, places: Array) -> Array:
    if pa.types.is_null(places.type):
        places = places.cast(getattr(collections.type, "key_type", pa.int64()))
    if isinstance(collections, pa.MapArray):
        return _value_of_key(collections, places)
    places = _from_zero(call, kernels.list_value_length(collections), places.cast(pa.int64()))
    found: Array = collections.values.take(kernels.add(collections.offsets[:-1], places))
    return found


def _from_zero(call: Call, sizes: Array, places: Array) -> Array:
    """Return positions from zero on, null for none; raises CastError where the function has none."""
    if call.function in ("element_at", TRY_ELEMENT_AT):
        if kernels.any(kernels.and_(kernels.equal(places, 0), sizes.is_valid())).as_py():
            raise CastError(f"`{describe(call)}`: elements are counted from 1, or from -1 at the end")
        places = kernels.if_else(
            kernels.greater(places, 0), kernels.subtract(places, 1), kernels.add(places, sizes)
        )
    is_inside = kernels.and_(kernels.greater_equal(places, 0), kernels.less(places, sizes))
    if call.function not in ("get", TRY_ELEMENT_AT) and kernels.any(kernels.invert(is_inside)).as_py():
        row = kernels.index(is_inside, False).as_py()
        raise CastError(
            f"`{describe(call)}`: an array of length {sizes[row].as_py()} has no such element: use "
            f"`{'get' if call.function == ELEMENT else TRY_ELEMENT_AT}` to get NULL instead"
        )
    return kernels.if_else(is_inside, places, pa.scalar(None, pa.int64()))


def _value_of_key(maps: Any, wanted: Array) -> Array:
    keys, values = (pa.ListArray.from_arrays(maps.offsets, each) for each in (maps.keys, maps.items))
    rows = kernels.list_parent_indices(keys)
    matches = kernels.indices_nonzero(kernels.equal(kernels.list_flatten(keys), wanted.take(rows)))
    every = row_numbers(len(maps)).cast(rows.type)
    found: Array = kernels.index_in(every, value_set=rows.take(matches))
    found = kernels.if_else(maps.is_valid(), found, pa.scalar(None, found.type))
    return kernels.list_flatten(values).take(matches.take(found))


def _sorted_type(arguments: Sequence[Expression]) -> pa.DataType:
    collection: Any = _collection_type("sort_array", arguments[0], accepts_map=False)
    if kind_of(collection.value_type) == "nested":
        raise ExpressionError(
            f"`sort_array`: cannot compare values of type {type_name(collection.value_type)}"
        )
    found: pa.DataType = collection
    return found


def _sort_array(call: Call, arrays: Any, is_ascending: Values = TRUE) -> Array:
    """Return arrays with their elements in order, in which NaN is the greatest number."""
    if not is_ascending.is_valid:
        return kernels.if_else(False, arrays, pa.scalar(None, arrays.type))
    elements = kernels.list_flatten(arrays)
    is_null, is_floating = elements.is_null(), kind_of(elements.type) == "floating"
    columns = {
        "array": kernels.list_parent_indices(arrays),
        "null": is_null,
        "nan": kernels.fill_null(kernels.is_nan(elements), False) if is_floating else is_null,
        "value": elements,
    }
    order = "ascending" if is_ascending.as_py() else "descending"
    nulls = "descending" if is_ascending.as_py() and call.function == "sort_array" else "ascending"
    orders = ("ascending", nulls, order, order)
    places = kernels.sort_indices(pa.table(columns), sort_keys=[*zip(columns, orders, strict=True)])
    sizes = kernels.fill_null(kernels.list_value_length(arrays), 0)
    offsets: Any = pa.concat_arrays([pa.array([0], sizes.type), kernels.cumulative_sum(sizes)])
    return pa.ListArray.from_arrays(offsets, elements.take(places), type=arrays.type, mask=arrays.is_null())


ELEMENT_OF: Evaluation = partial(evaluate_over_arrays, _element)

COLLECTIONS: dict[str, ScalarFunction] = {
    **dict.fromkeys(("size", "cardinality"), function(("any",), _size_type, over_arrays(_size))),
    "array_contains": function(("any", "any"), _contains_type, over_arrays(_array_contains)),
    "sort_array": function(
        ("any", "boolean"), _sorted_type, over_first(_sort_array), optional=1, constant=(1,)
    ),
    "array_sort": function(("any",), _sorted_type, over_first(_sort_array)),
    "get": function(("any", "any"), _element_type("get", accepts_map=False), ELEMENT_OF),
    **{
        name: function(("any", "any"), _element_type(name), ELEMENT_OF)
        for name in (ELEMENT, "element_at", TRY_ELEMENT_AT)
    },
}
