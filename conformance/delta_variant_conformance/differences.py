"""Find how an answer first differs from the expected one: the type of the value, and what became of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from . import json_text
from .case import Case
from .decoding import NotAVariantError, decode
from .invoke import VARIANT_KEY
from .shredded_columns import assemble, typed_pair
from .typed_values import DECIMAL_DIGITS, EXACT_NUMBERS, INTEGER_BITS, PAYLOADS, compare

INTEGERS = ("int8", "int16", "int32", "int64")
NUMBERS = {*EXACT_NUMBERS, "float", "double"}
TYPES = {"object", "array", *PAYLOADS}

# A mistake rarely depends on the width of a decimal, or on the unit of a timestamp.
NAMES = {
    "null": "Variant null",
    **dict.fromkeys(DECIMAL_DIGITS, "decimal"),
    "timestamp_nanos": "timestamp",
    "timestamp_ntz_nanos": "timestamp_ntz",
}

PARTS = {"object": "fields", "row": "columns", "array": "elements", "list": "items"}


@dataclass(frozen=True)
class Difference:
    """The first difference of an answer: `type` is that of the expected value.

    `hints` are the frequent mistakes that explain this value, None if the values cannot be compared.
    """

    type: str
    change: str
    hints: frozenset[str] | None = None


def find_difference(case: Case, content: Any) -> Difference | None:
    """Return the first difference of a wrong answer, None if it has another form."""
    try:
        differences = (_difference(*pair) for pair in _pairs(case, content))
        return next((each for each in differences if each is not None), None)
    except NotAVariantError:
        return Difference("Variant", "invalid bytes", None)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RuntimeError):
        return None


def _pairs(case: Case, content: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each part of the expectation with the same part of the answer."""
    if "json" in content:
        wanted = case.expect["rows"][0]
        yield wanted, _typed(wanted, json_text.parse(content["json"]))
    elif "columns" in content:
        schema = case.input["schema"]
        for wanted, found in zip(case.expect["columns"], _decoded(content["columns"]), strict=True):
            yield _assembled(schema, typed_pair(schema, wanted)), _assembled(schema, found)
    else:
        yield from ((case.expect[key], _decoded(content[key])) for key in case.expect if key in content)


def _assembled(schema: Any, pair: Any) -> Any:
    return None if pair is None else assemble(schema, pair)


def _decoded(content: Any) -> Any:
    """Return an answer with typed values instead of the bytes of Variants."""
    if isinstance(content, Mapping):
        if content.keys() == {VARIANT_KEY}:
            return decode(*map(bytes.fromhex, content[VARIANT_KEY]))
        return {name: _decoded(part) for name, part in content.items()}
    return [_decoded(part) for part in content] if isinstance(content, list) else content


def _typed(wanted: Any, found: Any) -> Any:
    """Return a JSON value as a typed value, of the expected type if JSON has no type of its own for it."""
    kind, payload = _node(wanted)
    if isinstance(found, Mapping):
        parts = payload if kind == "object" else {}
        return {"object": {name: _typed(parts.get(name), part) for name, part in found.items()}}
    if isinstance(found, list):
        parts = payload if kind == "array" and len(payload) == len(found) else [None] * len(found)
        return {"array": list(map(_typed, parts, found))}
    if found is None or isinstance(found, bool):
        return {"null" if found is None else "boolean": found}
    if kind in TYPES and json_text.is_text_of(wanted, found):
        return wanted
    if isinstance(found, str):
        return {kind if kind in TYPES - NUMBERS - {"null", "boolean", "object", "array"} else "string": found}
    if kind in INTEGERS and isinstance(found, int):
        return {kind: found}
    if kind in EXACT_NUMBERS:
        return {kind: str(found)}
    return {"float" if kind == "float" else "double": float(found)}


def _node(value: Any) -> tuple[str, Any]:
    """Return the kind of a part of an answer, and its payload."""
    if isinstance(value, Mapping):
        if len(value) == 1 and value.keys() <= TYPES:
            return next(iter(value.items()))
        return "row", value
    if value is None:
        return "SQL NULL", None
    return ("list" if isinstance(value, list) else "value"), value


def _difference(wanted: Any, found: Any) -> Difference | None:
    waiting = [(wanted, found)]
    while waiting:
        (kind, left), (other, right) = map(_node, waiting.pop())
        if (difference := _own_difference(kind, left, other, right)) is not None:
            return difference
        if isinstance(left, Mapping):
            waiting += reversed([(part, right[name]) for name, part in left.items()])
        elif isinstance(left, list):
            waiting += reversed(list(zip(left, right, strict=True)))
    return None


def _own_difference(kind: str, left: Any, other: str, right: Any) -> Difference | None:
    """Return the difference of two values without those of their parts."""
    name, read_as = NAMES.get(kind, kind), NAMES.get(other, other)
    if name != read_as and not {kind, other} <= set(EXACT_NUMBERS):
        return Difference(name, f"read as {read_as}")
    if kind in PARTS:
        change = _change_of_parts(kind, left, right)
        return None if change is None else Difference(name, f"{PARTS[kind]} {change}")
    if kind in TYPES:
        if all(each.equal for each in compare({kind: left}, {other: right})):
            return None
        return Difference(name, "another value", _hints(kind, left, right))
    return None if json_text.equal(left, right) else Difference(name, "another value")


def _change_of_parts(kind: str, left: Any, right: Any) -> str | None:
    if isinstance(left, Mapping):
        lost, added = left.keys() - right.keys(), right.keys() - left.keys()
        return "lost" if lost else "added" if added else None
    if len(left) != len(right):
        return "lost" if len(left) > len(right) else "added"
    is_moved = kind == "array" and left != right and _unordered(left) == _unordered(right)
    return "in another order" if is_moved else None


def _unordered(value: Any) -> Any:
    """Return what is equal for values in which only the order of elements differs."""
    if isinstance(value, Mapping):
        return {name: _unordered(part) for name, part in value.items()}
    return sorted(map(_unordered, value), key=repr) if isinstance(value, list) else value


def _hints(kind: str, left: Any, right: Any) -> frozenset[str] | None:
    """Return the mistakes that explain a value, None if the values cannot be compared."""
    if isinstance(left, str) is not isinstance(right, str) and kind not in EXACT_NUMBERS:
        return None
    return frozenset(hint for hint, kinds, explains in HINTS if kind in kinds and explains(kind, left, right))


def _is_unsigned(kind: str, left: Any, right: Any) -> bool:
    return Fraction(right) - Fraction(left) == 1 << INTEGER_BITS[kind]


def _is_negated(kind: str, left: Any, right: Any) -> bool:
    return Fraction(right) == -Fraction(left)


def _is_off_by_one(kind: str, left: Any, right: Any) -> bool:
    return abs(Fraction(right) - Fraction(left)) == 1


def _has_the_digits(kind: str, left: str, right: str) -> bool:
    return left.replace(".", "").lstrip("-0") == right.replace(".", "").lstrip("-0")


def _is_rounded(kind: str, left: Any, right: Any) -> bool:
    return json_text.as_float(float(left)) == float(right)


def _is_cut(kind: str, left: str, right: str) -> bool:
    return left.startswith(right)


def _has_the_bytes(kind: str, left: str, right: str) -> bool:
    pair = (sorted(bytes.fromhex(each.replace("-", ""))) for each in (left, right))
    return next(pair) == next(pair)


MOMENTS = INTEGER_BITS.keys() - {*INTEGERS}

HINTS: tuple[tuple[str, Collection[str], Callable[[str, Any, Any], bool]], ...] = (
    ("read unsigned", INTEGERS, _is_unsigned),
    ("the sign is lost", EXACT_NUMBERS, _is_negated),
    ("off by one", {*EXACT_NUMBERS, *MOMENTS}, _is_off_by_one),
    ("the scale is ignored", DECIMAL_DIGITS, _has_the_digits),
    ("rounded to a float", ("double",), _is_rounded),
    ("cut", ("string", "binary"), _is_cut),
    ("its bytes in another order", ("uuid", "binary"), _has_the_bytes),
)
