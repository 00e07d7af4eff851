"""Functions of Variants and constructors of nested values: their parameters, types and evaluation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias
from typing import Literal as OneOf

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import Array
from ..errors import CastError, ExpressionError, InvalidJsonError, VariantPathError
from ..variant import changes, functions
from ..variant.constructors import (
    list_of_columns,
    map_of_entries,
    map_of_lists,
    part_field,
    struct_of_columns,
)
from ..variant.paths import parse_path
from ..variant.values import extract, parse_json, to_json
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


BUILDERS: dict[str, Callable[..., Array]] = {
    "array": lambda arrow_type, *columns: list_of_columns(columns, arrow_type.value_field),
    "named_struct": lambda arrow_type, *columns: struct_of_columns(columns, list(arrow_type)),
    "map": _build_map,
    "map_from_arrays": lambda _, keys, values: map_of_lists(keys, values),
    "map_from_entries": lambda _, entries: map_of_entries(entries),
}
"""What a constructor evaluates, called with its type and its columns."""


Parameter: TypeAlias = OneOf["variant", "string", "nested", "value", "path", "flag"]
"""A column of Variants, of strings, of a nested type or of any type, or a constant: a path or a boolean."""

Function: TypeAlias = Callable[..., Array]
"""Called with the columns, then with the constants."""

KINDS: dict[Parameter, frozenset[Kind]] = {
    "string": frozenset({"string", "null"}),
    "nested": frozenset({"nested"}),
}
EXPECTED: dict[Parameter, str] = {
    "variant": "a Variant",
    "string": "a string",
    "nested": "a struct, a map or an array",
    "path": "a path as a string literal, such as '$.user.id'",
    "flag": "true or false",
}
STRINGS = pa.list_(pa.field("element", pa.string()))


class VariantFunction(msgspec.Struct, frozen=True):
    """A function: its parameters, of which the last `optional` may be absent, and the type of its values.

    `type` is None for Variants. The last parameter may be given several times if `repeated`.
    """

    parameters: tuple[Parameter, ...]
    type: pa.DataType | None
    apply: Function
    optional: int = 0
    repeated: bool = False


def _set(function: Callable[..., Array]) -> Function:
    return lambda variants, value, path, create=True: function(
        variants, path, value, create_if_missing=create
    )


def _put(function: Callable[..., Array]) -> Function:
    return lambda variants, value, path: function(variants, path, value)


def _strip_nulls(variants: Array, include_arrays: bool = True) -> Array:
    return changes.variant_strip_nulls(variants, include_arrays=include_arrays)


CHANGES: tuple[Parameter, ...] = ("variant", "path", "value")

VARIANT_FUNCTIONS: dict[str, VariantFunction] = {
    "parse_json": VariantFunction(("string",), None, parse_json),
    "try_parse_json": VariantFunction(("string",), None, functions.try_parse_json),
    "to_variant_object": VariantFunction(("nested",), None, functions.to_variant_object),
    "is_valid_variant": VariantFunction(("variant",), pa.bool_(), functions.is_valid_variant),
    "schema_of_variant": VariantFunction(("variant",), pa.string(), functions.schema_of_variant),
    "variant_array_length": VariantFunction(("variant",), pa.int32(), functions.variant_array_length),
    "variant_contains": VariantFunction(("variant", "value"), pa.bool_(), functions.variant_contains),
    "variant_keys": VariantFunction(("variant",), STRINGS, functions.variant_keys),
    "variant_sort_key": VariantFunction(("variant",), pa.binary(), functions.variant_sort_key),
    "variant_insert": VariantFunction(CHANGES, None, _put(changes.variant_insert)),
    "try_variant_insert": VariantFunction(CHANGES, None, _put(changes.try_variant_insert)),
    "variant_set": VariantFunction((*CHANGES, "flag"), None, _set(changes.variant_set), optional=1),
    "try_variant_set": VariantFunction((*CHANGES, "flag"), None, _set(changes.try_variant_set), optional=1),
    "variant_array_append": VariantFunction(CHANGES, None, _put(changes.variant_array_append)),
    "try_variant_array_append": VariantFunction(CHANGES, None, _put(changes.try_variant_array_append)),
    "variant_delete": VariantFunction(("variant", "path"), None, changes.variant_delete, repeated=True),
    "variant_strip_nulls": VariantFunction(("variant", "flag"), None, _strip_nulls, optional=1),
}
"""The functions by their names in SQL."""

OPERATIONS: dict[str, Function] = {
    **{name: function.apply for name, function in VARIANT_FUNCTIONS.items()},
    "cast": lambda values: functions.to_variants(values, len(values)),
    "matches": functions.matches_of,
    "to_json": lambda variants, timezone: to_json(variants, timezone=timezone),
    "variant_get": lambda variants, path, target, strict, timezone: extract(
        variants, path, target, strict=strict, timezone=timezone
    ),
}
"""What a bound call evaluates: also casts, paths and JSON text of Variants that are not columns."""


def bind_variant_function(function: str, arguments: Sequence[Expression]) -> VariantCall:
    """Return the call of a function with bound arguments; raises ExpressionError for wrong ones."""
    row = VARIANT_FUNCTIONS[function]
    parameters = row.parameters
    if row.repeated:
        parameters += parameters[-1:] * (len(arguments) - len(parameters))
    least = len(row.parameters) - row.optional
    if not least <= len(arguments) <= len(parameters):
        wanted = f"at least {least}" if row.repeated else f"{least} to {len(parameters)}"
        wanted = str(least) if least == len(parameters) and not row.repeated else wanted
        raise ExpressionError(f"`{function}`: expected {wanted} argument(s), got {len(arguments)}")
    columns: list[Expression] = []
    constants: list[str | bool] = []
    for parameter, argument in zip(parameters, arguments, strict=False):
        if parameter in ("path", "flag"):
            constants.append(_constant(function, parameter, argument))
        else:
            _check(function, parameter, argument)
            columns.append(argument)
    return VariantCall(function, tuple(columns), tuple(constants), row.type)


def _constant(function: str, parameter: Parameter, argument: Expression) -> str | bool:
    value = argument.value.as_py() if isinstance(argument, Literal) else None
    if parameter == "flag" and isinstance(value, bool):
        return value
    if parameter == "path" and isinstance(value, str):
        if not parse_path(value) and not function.endswith("variant_array_append"):
            raise ExpressionError(f"`{function}`: the path $ is the Variant itself; name a field or an index")
        return value
    raise _unexpected(function, parameter, argument)


def _check(function: str, parameter: Parameter, argument: Expression) -> None:
    arrow_type = output_type(argument)
    if parameter == "value" or (parameter == "variant" and arrow_type is None):
        return
    if arrow_type is None or kind_of(arrow_type) not in KINDS.get(parameter, frozenset()):
        raise _unexpected(function, parameter, argument)


def _unexpected(function: str, parameter: Parameter, argument: Expression) -> ExpressionError:
    found = f"`{describe(argument)}` of type {type_name(output_type(argument))}"
    return ExpressionError(f"`{function}`: expected {EXPECTED[parameter]}, got {found}")


def apply(call: VariantCall, columns: Sequence[Array]) -> Array:
    """Return the values of a call for arrays of its arguments; raises CastError, which names the call."""
    build = BUILDERS.get(call.function)
    try:
        if build is not None:
            return build(call.type, *columns)
        values = OPERATIONS[call.function](*columns, *call.constants)
    except (CastError, InvalidJsonError, VariantPathError) as error:
        raise CastError(f"`{describe(call)}`: {error.message}").at(row=error.row, path=error.path) from error
    return values if call.type is None or values.type == call.type else pc.cast(values, call.type)
