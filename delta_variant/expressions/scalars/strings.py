"""Functions of strings, over characters (code points), and their regular expressions."""

from __future__ import annotations

import re
from binascii import unhexlify
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..._arrow import Array
from ...errors import ExpressionError
from ..cast import cast_values
from ..tree import Call, Expression, Literal, describe, output_type
from ..types import NUMERIC, kind_of, type_name
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

TERMINATORS = r"\n\r\x{85}\x{2028}\x{2029}"
SPACES = r"\t\n\x0b\f\r "
# Java matches `$` before the line terminator at the end of the text, too.
END = rf"(?:\r\n|[{TERMINATORS}])?\z"
CONTROLS = {"t": r"\t", "n": r"\n", "r": r"\r", "f": r"\f", "a": r"\a", "e": r"\x1b"}
SAME = frozenset("dDwW")
OUTSIDE_CLASS = {"s": f"[{SPACES}]", "S": f"[^{SPACES}]", "b": r"\b", "B": r"\B", "A": r"\A", "z": r"\z"}
ESCAPE = re.compile(
    r"\\(?:Q(?P<quoted>.*?)(?:\\E|$)|(?P<code>x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|x\{[0-9a-fA-F]+\})"
    r"|(?P<category>[pP](?:[CLMNPSZ]|\{[CLMNPSZ][a-z]?\}))|(?P<letter>[a-zA-Z])|(?P<other>[^a-zA-Z0-9]))",
    re.DOTALL,
)
QUANTIFIER = re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})\??")
GROUP = re.compile(r"\((?:\?:|\?<[a-zA-Z][a-zA-Z0-9]*>)?(?!\?)")
FLAGS = re.compile(r"\(\?([is]+)\)")
PART = re.compile(r"\\.|\$(?P<group>[0-9])|[^$]", re.DOTALL)
REPLACEMENT = re.compile(r"(?:\\.|\$[0-9](?![0-9])|[^$\\])*", re.DOTALL)


@lru_cache(maxsize=128)
def _boolean_pattern(pattern: str) -> str:
    """Return an expression that RE2 finds in the same texts; raises ExpressionError."""
    return _Translation(pattern).result()


@lru_cache(maxsize=128)
def _splitting_pattern(pattern: str) -> str:
    """Return an expression with the same matches; raises ExpressionError if it matches empty text."""
    # Arrow looks for the next match in the rest of a text, without what precedes it.
    return _Translation(pattern, rejected="^$bBAz").result_of_characters("split by")


@lru_cache(maxsize=128)
def _replacing_pattern(pattern: str, replacement: str) -> tuple[str, str]:
    """Return an expression with the same matches, and what replaces them; raises ExpressionError."""
    translation = _Translation(pattern, rejected="$")
    found = translation.result_of_characters("replace")
    if not REPLACEMENT.fullmatch(replacement):
        raise ExpressionError(
            rf"cannot replace by {replacement!r}: `$1` is the first of at most nine groups, `\$` and `\\` "
            "are the characters themselves"
        )

    def part(each: re.Match[str]) -> str:
        if each["group"] is None:
            return each[0][-1].replace("\\", r"\\")
        _check_group(translation, int(each["group"]))
        return rf"\{each['group']}"

    return found, PART.sub(part, replacement)


@lru_cache(maxsize=128)
def _extracting_pattern(pattern: str, group: int = 1) -> str:
    """Return an expression whose group `found` matches as that of this number; raises ExpressionError."""
    translation = _Translation(pattern, rejected="" if group else "$", named=group)
    found = translation.result()
    _check_group(translation, group)
    return found if group else f"(?P<found>{found})"


def _check_group(translation: _Translation, group: int) -> None:
    if not 0 <= group <= translation.groups:
        raise ExpressionError(
            f"the regular expression {translation.pattern!r} has no group {group}; "
            f"groups: {translation.groups}"
        )


def _matches_empty(found: str) -> bool:
    """Return whether a translated expression matches empty text, wherever its assertions hold."""
    # All other characters with these letters have codes.
    characters = re.sub(r"\\[bBAz]|(?<!\[)\^", "(?:)", found)
    is_match: bool = pc.match_substring_regex(pa.scalar(""), f"^(?:{characters})$").as_py()
    return is_match


class _Translation:
    r"""The translation of a regular expression of Java to one of RE2, which Arrow uses.

    A construct that RE2 lacks, or matches in another way than Java, raises ExpressionError. `\b` is the
    boundary of ASCII words, as in Java 19 and later.

    `rejected` are assertions that raise. With `named`, a group that has this number is named `found`, and the
    others do not capture.
    """

    def __init__(self, pattern: str, *, rejected: str = "", named: int | None = None) -> None:
        self.pattern = pattern
        self.position = 0
        self.rejected = rejected
        self.named = named
        # Where groups are used: their matches differ from those of Java where an iteration is empty.
        self.captures = named is not None or rejected == "$"
        self.groups = 0
        self.parts: list[str] = []
        # Where the groups begin that are open, and the parts of the last one that was closed.
        self.opened: list[int] = []
        self.group: list[str] = []
        self.ignores_case = False
        self.dot = f"[^{TERMINATORS}]"

    def result(self) -> str:
        flags = FLAGS.match(self.pattern)
        if flags is not None:
            self.position = flags.end()
            self.ignores_case = "i" in flags[1]
            self.dot = r"(?s:.)" if "s" in flags[1] else self.dot
        while self.position < len(self.pattern):
            self.parts.append(self._next())
        found = "".join(self.parts)
        try:
            pc.match_substring_regex(pa.scalar(""), found)
        except pa.ArrowInvalid as error:
            raise self._refusal(str(error)) from error
        return found

    def result_of_characters(self, use: str) -> str:
        """Return the expression; raises ExpressionError if it matches empty text."""
        found = self.result()
        if _matches_empty(found):
            raise ExpressionError(
                f"cannot {use} the regular expression {self.pattern!r} because it matches empty text: use an "
                "expression that matches at least one character"
            )
        return found

    def _refusal(self, what: str) -> ExpressionError:
        return ExpressionError(
            f"the regular expression {self.pattern!r} is not supported: {what}; rewrite it, or query the "
            "scan with DuckDB or Polars"
        )

    def _take(self, expression: re.Pattern[str], what: str) -> re.Match[str]:
        found = expression.match(self.pattern, self.position)
        if found is None:
            raise self._refusal(f"{what} at {self.pattern[self.position :]!r}")
        self.position = found.end()
        return found

    def _next(self) -> str:
        character = self.pattern[self.position]
        match character:
            case "\\":
                return self._escape()
            case "[":
                return self._class()
            case "(":
                return self._group()
            case "*" | "+" | "?" | "{":
                return self._quantifier()
        self.position += 1
        if character in "^$" and character in self.rejected:
            remedy = r" (`\z` is the end of the text)" if self.rejected == "$" else ""
            raise self._refusal(f"the assertion {character!r}{remedy}")
        if character == "$":
            return self._end()
        if character == ")" and self.opened:
            self.group = [*self.parts[self.opened.pop() :], ")"]
        if character in "^|)":
            return character
        return self.dot if character == "." else self._literal(character)

    def _quantifier(self) -> str:
        quantifier = self._take(QUANTIFIER, "a quantifier")[0]
        if not self.parts or self.pattern[self.position : self.position + 1] in ("+", "*", "?"):
            raise self._refusal(f"the quantifier {quantifier!r}")
        is_of_group = self.parts[-1] == ")" and quantifier[0] != "?"
        if self.captures and is_of_group and _matches_empty("".join(self.group)):
            raise self._refusal("a repeated group that matches empty text")
        return quantifier

    def _group(self) -> str:
        self.opened.append(len(self.parts))
        if self._take(GROUP, "a group")[0] == "(?:":
            return "(?:"
        self.groups += 1
        if self.named is None:
            return "("
        return "(?P<found>" if self.groups == self.named else "(?:"

    def _end(self) -> str:
        rest = self.pattern[self.position :]
        if rest.strip(")") and (self.opened or not rest.startswith("|")):
            raise self._refusal("`$` before the end")
        if self.opened and self.captures:
            raise self._refusal("`$` in a group")
        return END

    def _literal(self, character: str) -> str:
        if self.ignores_case and character.isascii() and character.isalpha():
            return f"[{character.lower()}{character.upper()}]"
        return _code(character)

    def _escape(self) -> str:
        escape = self._take(ESCAPE, "an escape")
        if escape["quoted"] is not None:
            return "".join(map(self._literal, escape["quoted"]))
        letter = escape["letter"]
        if letter in OUTSIDE_CLASS:
            if letter in self.rejected:
                raise self._refusal(f"the assertion {escape[0]!r}")
            return OUTSIDE_CLASS[letter]
        found = self._character(escape)
        return self._literal(found) if len(found) == 1 else found

    def _character(self, escape: re.Match[str]) -> str:
        """Return a character, or the expression of several, for an escape in or outside of a class."""
        if escape["code"] is not None:
            return chr(int(escape["code"][1:].strip("{}"), 16))
        if escape["category"] is not None:
            if self.ignores_case:
                raise self._refusal(f"{escape[0]!r} without regard to case")
            return escape[0]
        letter = escape["letter"]
        if letter is None:
            return escape["other"] or ""
        if letter in SAME:
            return escape[0]
        if letter not in CONTROLS:
            raise self._refusal(f"the escape {escape[0]!r}")
        return CONTROLS[letter]

    def _class(self) -> str:
        self.position += 1
        negated = self.pattern.startswith("^", self.position)
        self.position += negated
        parts: list[str] = []
        while not self.pattern.startswith("]", self.position):
            parts.append(self._range())
        if not parts:
            raise self._refusal("an empty class")
        self.position += 1
        return f"[{'^' if negated else ''}{''.join(parts)}]"

    def _range(self) -> str:
        first = self._member()
        dash = self.pattern.startswith("-", self.position)
        if not dash or self.pattern.startswith("-]", self.position):
            return self._cased(first, first)
        self.position += 1
        last = self._member()
        if len(first) > 1 or len(last) > 1:
            raise self._refusal("a range of classes")
        return self._cased(first, last)

    def _member(self) -> str:
        rest = self.pattern[self.position :]
        if not rest or rest[0] == "[" or rest.startswith("&&"):
            raise self._refusal("a class that is not closed" if not rest else f"{rest[:2]!r} in a class")
        if rest[0] != "\\":
            self.position += 1
            return rest[0]
        escape = self._take(ESCAPE, "an escape")
        if escape["quoted"] is not None:
            raise self._refusal("a quotation in a class")
        return SPACES if escape["letter"] == "s" else self._character(escape)

    def _cased(self, first: str, last: str) -> str:
        """Return a range of a class; one of several characters is an expression already."""
        if len(first) > 1:
            return first
        found = f"{_code(first)}-{_code(last)}" if first != last else _code(first)
        if not self.ignores_case:
            return found
        for low, high, shift in (("a", "z", -32), ("A", "Z", 32)):
            begin, end = max(first, low), min(last, high)
            if begin <= end:
                found += f"{chr(ord(begin) + shift)}-{chr(ord(end) + shift)}"
        return found


def _code(character: str) -> str:
    """Return an expression of one character, in or outside of a class."""
    return character if character.isalnum() and character.isascii() else rf"\x{{{ord(character):x}}}"


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
    return kernels.match_substring_regex(text, _boolean_pattern(pattern.as_py()))


def _split(call: Call, text: Array, pattern: Values, limit: Values = NO_LIMIT) -> Array:
    if not pattern.is_valid or not limit.is_valid:
        return pa.nulls(len(text), LIST_OF_TEXT)
    most = limit.as_py() - 1 if limit.as_py() > 0 else -1
    found = kernels.split_pattern_regex(text, _splitting_pattern(pattern.as_py()), max_splits=most)
    return found.cast(LIST_OF_TEXT)


def _regexp_replace(call: Call, text: Array, pattern: Values, other: Values) -> Array:
    if not pattern.is_valid or not other.is_valid:
        return pa.nulls(len(text), TEXT)
    found, replacement = _replacing_pattern(pattern.as_py(), other.as_py())
    return kernels.replace_substring_regex(text, found, replacement)


def _regexp_extract(call: Call, text: Array, pattern: Values, group: Values = ONE) -> Array:
    if not pattern.is_valid or not group.is_valid:
        return pa.nulls(len(text), TEXT)
    found = kernels.extract_regex(text, _extracting_pattern(pattern.as_py(), group.as_py()))
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
RLIKE = function(("string", "string"), _pattern_type(_boolean_pattern, pa.bool_()), _rlike, constant=(1,))
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
        _pattern_type(_splitting_pattern, LIST_OF_TEXT),
        over_first(_split),
        optional=1,
        constant=(1, 2),
    ),
    "regexp_replace": function(
        ("string", "string", "string"),
        _pattern_type(_replacing_pattern, TEXT, 2),
        over_first(_regexp_replace),
        constant=(1, 2),
    ),
    "regexp_extract": function(
        ("string", "string", "int"),
        _pattern_type(_extracting_pattern, TEXT, 2),
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
