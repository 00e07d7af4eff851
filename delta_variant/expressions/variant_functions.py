"""The functions of Variants in expressions: their parameters, their types, and how they are evaluated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import Array
from ..errors import CastError, ExpressionError, InvalidJsonError, VariantPathError
from ..variant import changes, functions
from ..variant.paths import parse_path
from ..variant.values import extract, parse_json, to_json
from . import constructors, tree
from .tree import Expression, VariantCall, describe, output_type
from .types import Kind, kind_of, type_name

Parameter: TypeAlias = Literal["variant", "string", "nested", "value", "path", "flag"]
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
    value = argument.value.as_py() if isinstance(argument, tree.Literal) else None
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
    build = constructors.OPERATIONS.get(call.function)
    try:
        if build is not None:
            return build(call.type, *columns)
        values = OPERATIONS[call.function](*columns, *call.constants)
    except (CastError, InvalidJsonError, VariantPathError) as error:
        raise CastError(f"`{describe(call)}`: {error.message}").at(row=error.row, path=error.path) from error
    return values if call.type is None or values.type == call.type else pc.cast(values, call.type)
