"""Functions of strings, over characters (code points)."""

from __future__ import annotations

from binascii import unhexlify
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa

from ..._arrow import Array
from ...errors import ExpressionError
from ..cast import cast_values
from ..tree import Call, Expression, Literal, describe, output_type
from ..types import NUMERIC, kind_of, type_name
from .regular_expressions import (
    boolean_pattern,
    extracting_pattern,
    replacing_pattern,
    splitting_pattern,
)
from .signature import (
    Evaluation,
    Expansion,
    ScalarFunction,
    Values,
    by_kernel,
    evaluate_over_arrays,
    function,
    kernels,
    over_arrays,
    over_first,
)

TEXT = pa.string()
LIST_OF_TEXT = pa.list_(pa.field("element", TEXT))
NO_LIMIT = pa.scalar(-1)
EMPTY, SPACE = pa.scalar(""), pa.scalar(" ")
ONE = pa.scalar(1, pa.int32())


def _trim(name: str) -> ScalarFunction:
    evaluate = by_kernel(name)
    # The characters precede the text: `trim('x', text)`.
    return function(
        ("string", "string"), TEXT, lambda call, *values: evaluate(call, *reversed(values)), optional=1
    )


def _by_kernel_of_three(name: str, last: pa.Scalar[Any]) -> Evaluation:
    """Return an evaluation by the function of the kernel, whose third argument may be absent."""
    evaluate = by_kernel(name)
    return lambda call, one, other, third=last: evaluate(call, one, other, third)


def _ilike(text: Expression, pattern: Expression, *escape: Expression) -> Expression:
    if isinstance(pattern, Literal) and isinstance(pattern.value.as_py(), str):
        pattern = Literal(pa.scalar(pattern.value.as_py().lower()))
    return Call("like", (Call("lower", (text,)), pattern, *escape))


def _concat(*columns: Array) -> Array:
    return kernels.binary_join_element_wise(*columns, pa.scalar(""), null_handling="emit_null")


def _concat_ws(separator: Array, *columns: Array) -> Array:
    # Arrow leaves out rows in which all columns are NULL if it skips NULLs.
    result, is_begun = kernels.if_else(separator.is_valid(), "", separator), kernels.is_null(separator)
    for column in columns:
        following = kernels.if_else(is_begun, _concat(separator, column), column)
        result = _concat(result, kernels.if_else(column.is_valid(), following, ""))
        is_begun = kernels.or_(is_begun, column.is_valid())
    return result


def _pattern_type(
    check: Callable[..., object], result: pa.DataType, count: int = 1
) -> Callable[..., pa.DataType]:
    """Return a rule that checks the constants after the first argument: a regular expression, and others."""

    def type_of(arguments: Any) -> pa.DataType:
        constants = [each.value.as_py() for each in arguments[1 : 1 + count]]
        if None not in constants:
            check(*constants)
        return result

    return type_of


def _rlike(call: Call, text: Values, pattern: pa.Scalar[Any]) -> Values:
    if not pattern.is_valid:
        return kernels.if_else(kernels.is_null(text), None, pa.scalar(None, pa.bool_()))
    return kernels.match_substring_regex(text, boolean_pattern(pattern.as_py()))


def _split(call: Call, text: Array, pattern: Values, limit: Values = NO_LIMIT) -> Array:
    if not pattern.is_valid or not limit.is_valid:
        return pa.nulls(len(text), LIST_OF_TEXT)
    most = limit.as_py() - 1 if limit.as_py() > 0 else -1
    found = kernels.split_pattern_regex(text, splitting_pattern(pattern.as_py()), max_splits=most)
    return found.cast(LIST_OF_TEXT)


def _regexp_replace(call: Call, text: Array, pattern: Values, other: Values) -> Array:
    if not pattern.is_valid or not other.is_valid:
        return pa.nulls(len(text), TEXT)
    found, replacement = replacing_pattern(pattern.as_py(), other.as_py())
    return kernels.replace_substring_regex(text, found, replacement)


def _regexp_extract(call: Call, text: Array, pattern: Values, group: Values = ONE) -> Array:
    if not pattern.is_valid or not group.is_valid:
        return pa.nulls(len(text), TEXT)
    found = kernels.extract_regex(text, extracting_pattern(pattern.as_py(), group.as_py()))
    parts = kernels.fill_null(kernels.struct_field(found, "found"), "")
    return kernels.if_else(text.is_valid(), parts, pa.scalar(None, TEXT))


def _length(values: Values) -> Values:
    kernel = "binary_length" if kind_of(values.type) == "binary" else "utf8_length"
    return kernels.call_function(kernel, [values]).cast(pa.int32())


def _hex_type(arguments: Any) -> pa.DataType:
    arrow_type = output_type(arguments[0])
    if arrow_type is not None and kind_of(arrow_type) == "nested":
        raise ExpressionError(
            f"`hex`: cannot convert `{describe(arguments[0])}` of type {type_name(arrow_type)}"
        )
    return TEXT


def _hex(call: Call, values: Array) -> Array:
    cast = partial(cast_values, values, strict=True, timezone=call.timezone)
    if kind_of(values.type) in NUMERIC:
        texts = [None if each is None else f"{each % 2**64:X}" for each in cast(pa.int64()).to_pylist()]
    else:
        known = cast(pa.binary()) if kind_of(values.type) == "binary" else cast(TEXT).cast(pa.binary())
        texts = [None if each is None else each.hex().upper() for each in known.to_pylist()]
    return pa.array(texts, TEXT)


def _unhex(text: str | None) -> bytes | None:
    try:
        return None if text is None else unhexlify("0" * (len(text) % 2) + text)
    except ValueError:
        return None


SUBSTRING = function(("text", "int", "int"), TEXT, by_kernel("substring"), optional=1)
RLIKE = function(("string", "string"), _pattern_type(boolean_pattern, pa.bool_()), _rlike, constant=(1,))
LOCATE = function(("string", "string", "int"), pa.int32(), _by_kernel_of_three("locate", ONE), optional=1)

STRINGS: dict[str, ScalarFunction | Expansion] = {
    "length": function(("sized",), pa.int32(), lambda _, values: _length(values)),
    **dict.fromkeys(
        ("len", "char_length", "character_length"), Expansion(lambda value: Call("length", (value,)), 1, 1)
    ),
    "upper": function(("string",), TEXT, by_kernel("upper")),
    "ucase": Expansion(lambda text: Call("upper", (text,)), 1, 1),
    "lower": function(("string",), TEXT, by_kernel("lower")),
    "lcase": Expansion(lambda text: Call("lower", (text,)), 1, 1),
    "initcap": function(("string",), TEXT, by_kernel("initcap")),
    "hex": function(("any",), _hex_type, partial(evaluate_over_arrays, _hex)),
    "unhex": function(
        ("string",),
        pa.binary(),
        over_arrays(lambda text: pa.array(map(_unhex, text.to_pylist()), pa.binary())),
    ),
    **{name: _trim(name) for name in ("trim", "ltrim", "rtrim")},
    "substring": SUBSTRING,
    "substr": SUBSTRING,
    "left": Expansion(lambda text, length: Call("substring", (text, Literal(ONE), length)), 2, 2),
    "right": function(("text", "int"), TEXT, by_kernel("right")),
    "repeat": function(("string", "int"), TEXT, by_kernel("repeat")),
    "reverse": function(("text",), TEXT, lambda _, text: kernels.utf8_reverse(text)),
    **{
        name: function(("text", "int", "string"), TEXT, _by_kernel_of_three(name, SPACE), optional=1)
        for name in ("lpad", "rpad")
    },
    **dict.fromkeys(("locate", "position"), LOCATE),
    "instr": Expansion(lambda text, search: Call("locate", (search, text)), 2, 2),
    "split_part": function(("string", "string", "int"), TEXT, by_kernel("split_part")),
    "concat": function(("text",), TEXT, over_arrays(_concat), is_repeated=True),
    "concat_ws": function(("string", "string"), TEXT, over_arrays(_concat_ws), optional=1, is_repeated=True),
    "replace": function(
        ("string", "string", "string"), TEXT, _by_kernel_of_three("replace", EMPTY), optional=1
    ),
    "split": function(
        ("string", "string", "int"),
        _pattern_type(splitting_pattern, LIST_OF_TEXT),
        over_first(_split),
        optional=1,
        constant=(1, 2),
    ),
    "regexp_replace": function(
        ("string", "string", "string"),
        _pattern_type(replacing_pattern, TEXT, 2),
        over_first(_regexp_replace),
        constant=(1, 2),
    ),
    "regexp_extract": function(
        ("string", "string", "int"),
        _pattern_type(extracting_pattern, TEXT, 2),
        over_first(_regexp_extract),
        optional=1,
        constant=(1, 2),
    ),
    **dict.fromkeys(("rlike", "regexp_like", "regexp"), RLIKE),
    "ilike": Expansion(_ilike, 2, 3),
    **{
        name: function(("text", "text"), pa.bool_(), by_kernel(name))
        for name in ("contains", "startswith", "endswith")
    },
}
