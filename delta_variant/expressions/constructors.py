"""The constructors of arrays, structs and maps in expressions: their parameters and their evaluation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from .._arrow import Array
from ..errors import ExpressionError
from ..variant.constructors import (
    list_of_columns,
    map_of_entries,
    map_of_lists,
    part_field,
    struct_of_columns,
)
from .tree import Expression, Literal, VariantCall, describe, output_type
from .types import MAX_PRECISION, Kind, kind_of, type_name

Unify = Callable[[str, list[Expression]], list[Expression]]
"""Returns expressions cast to their common type, for messages about a function."""

KEY_KINDS: frozenset[Kind] = frozenset(
    {"integer", "decimal", "string", "boolean", "binary", "date", "timestamp", "timestamp_ntz"}
)
EMPTY: dict[str, pa.Scalar[Any]] = {
    "array": pa.scalar([], pa.list_(pa.field("element", pa.null()))),
    "named_struct": pa.scalar({}, pa.struct([])),
}


def _array(function: str, arguments: list[Expression], unify: Unify) -> Expression:
    parts = unify(function, arguments)
    return VariantCall(function, tuple(parts), (), pa.list_(_field("element", function, parts[0])))


def _named_struct(function: str, arguments: list[Expression], unify: Unify) -> Expression:
    _check_pairs(function, arguments, "a name and a value")
    names = [_name(function, each) for each in arguments[::2]]
    for position, name in enumerate(names):
        if name in names[:position]:
            raise ExpressionError(f"`{function}`: two fields are named {name!r}; rename one of them")
    values = arguments[1::2]
    fields = [_field(name, function, value) for name, value in zip(names, values, strict=True)]
    return VariantCall(function, tuple(values), (), pa.struct(fields))


def _map(function: str, arguments: list[Expression], unify: Unify) -> Expression:
    _check_pairs(function, arguments, "a key and a value")
    keys, values = unify(function, arguments[::2]), unify(function, arguments[1::2])
    key_type = _key_type(function, output_type(keys[0]), keys[0])
    pairs = [each for pair in zip(keys, values, strict=True) for each in pair]
    value: Any = _field("value", function, values[0])
    return VariantCall(function, tuple(pairs), (), pa.map_(key_type, value))


def _map_from_arrays(function: str, arguments: list[Expression], unify: Unify) -> Expression:
    _check_count(function, arguments, 2)
    keys, values = (_list_type(function, each) for each in arguments)
    key_type = _key_type(function, keys.value_type, arguments[0])
    value: Any = values.value_field.with_name("value")
    return VariantCall(function, tuple(arguments), (), pa.map_(key_type, value))


def _map_from_entries(function: str, arguments: list[Expression], unify: Unify) -> Expression:
    _check_count(function, arguments, 1)
    pair: Any = _list_type(function, arguments[0]).value_type
    if not pa.types.is_struct(pair) or pair.num_fields != 2:
        raise ExpressionError(
            f"`{function}`: expected an array of structs with two fields, a key and a value, got "
            f"`{describe(arguments[0])}`"
        )
    key, value = list[Any](pair)
    key_type = _key_type(function, key.type, arguments[0])
    value = value.with_name("value")
    return VariantCall(function, tuple(arguments), (), pa.map_(key_type, value))


CONSTRUCTORS: dict[str, Callable[[str, list[Expression], Unify], Expression]] = {
    "array": _array,
    "named_struct": _named_struct,
    "map": _map,
    "map_from_arrays": _map_from_arrays,
    "map_from_entries": _map_from_entries,
}
"""The constructors by their names in SQL; the parser makes a `named_struct` of a `struct`."""


def bind_constructor(function: str, arguments: list[Expression], unify: Unify) -> Expression:
    """Return a constructor of bound arguments; raises ExpressionError for wrong ones."""
    if not arguments and function in EMPTY:
        return Literal(EMPTY[function])
    return CONSTRUCTORS[function](function, arguments, unify)


def _check_count(function: str, arguments: Sequence[Expression], count: int) -> None:
    if len(arguments) != count:
        raise ExpressionError(f"`{function}`: expected {count} argument(s), got {len(arguments)}")


def _check_pairs(function: str, arguments: Sequence[Expression], pair: str) -> None:
    if len(arguments) % 2 or not arguments:
        raise ExpressionError(f"`{function}`: expected pairs of {pair}, got {len(arguments)} argument(s)")


def _name(function: str, argument: Expression) -> str:
    name = argument.value.as_py() if isinstance(argument, Literal) else None
    if not isinstance(name, str):
        raise ExpressionError(
            f"`{function}`: expected the name of a field as a string literal, got `{describe(argument)}`"
        )
    return name


def _key_type(function: str, arrow_type: pa.DataType | None, argument: Expression) -> Any:
    if arrow_type is None or kind_of(arrow_type) not in KEY_KINDS:
        raise ExpressionError(
            f"`{function}`: expected keys of a simple type that is not floating-point, got "
            f"`{describe(argument)}` of type {type_name(output_type(argument))}"
        )
    return arrow_type


def _list_type(function: str, argument: Expression) -> Any:
    arrow_type: Any = output_type(argument)
    if arrow_type is None or not pa.types.is_list(arrow_type):
        raise ExpressionError(
            f"`{function}`: expected an array, got `{describe(argument)}` of type {type_name(arrow_type)}"
        )
    return arrow_type


def _field(name: str, function: str, part: Expression) -> pa.Field[Any]:
    arrow_type = output_type(part)
    if arrow_type is not None and pa.types.is_decimal256(arrow_type):
        raise ExpressionError(
            f"`{function}` requires {type_name(arrow_type)}, but a decimal has at most {MAX_PRECISION} digits"
        )
    return part_field(name, arrow_type)


def _build_map(arrow_type: Any, *columns: Array) -> Array:
    keys = list_of_columns(columns[::2], pa.field("element", arrow_type.key_type))
    return map_of_lists(keys, list_of_columns(columns[1::2], arrow_type.item_field))


OPERATIONS: dict[str, Callable[..., Array]] = {
    "array": lambda arrow_type, *columns: list_of_columns(columns, arrow_type.value_field),
    "named_struct": lambda arrow_type, *columns: struct_of_columns(columns, list(arrow_type)),
    "map": _build_map,
    "map_from_arrays": lambda _, keys, values: map_of_lists(keys, values),
    "map_from_entries": lambda _, entries: map_of_entries(entries),
}
"""What a constructor evaluates, called with its type and its columns."""
