"""Typed values: how a case writes a Variant (protocol_fixtures/README.md), and when two of them are equal."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from string import hexdigits
from typing import Any, TypeAlias

__all__ = ["Difference", "TypedValue", "compare", "describe", "find_problem"]

TypedValue: TypeAlias = "Mapping[str, Any]"
"""An object of one member, a type of the Variant encoding and a payload: `{"int8": 1}`."""

NESTED = ("array", "object")
SPECIAL_FLOATS = ("NaN", "Infinity", "-Infinity", "-0.0")
DECIMAL_TEXT = re.compile(r"-?\d+(\.\d+)?", re.ASCII)
UUID_TEXT = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
DECIMAL_DIGITS = {"decimal4": 9, "decimal8": 18, "decimal16": 38}
INTEGER_BITS = {
    "int8": 8,
    "int16": 16,
    "int32": 32,
    "int64": 64,
    "date": 32,
    "timestamp": 64,
    "timestamp_ntz": 64,
    "timestamp_nanos": 64,
    "timestamp_ntz_nanos": 64,
    "time": 64,
}
EXACT_NUMBERS = ("int8", "int16", "int32", "int64", *DECIMAL_DIGITS)
NANOS = {
    "timestamp": ("timestamp", 1000),
    "timestamp_nanos": ("timestamp", 1),
    "timestamp_ntz": ("timestamp_ntz", 1000),
    "timestamp_ntz_nanos": ("timestamp_ntz", 1),
}

NOTE_LENGTH = 200


@dataclass(frozen=True)
class Difference:
    """Where two values part, and how; `equal` says that only the physical type is another."""

    path: str
    expected: str
    found: str
    equal: bool = False

    def __str__(self) -> str:
        return f"{self.path}: {self.found} in place of {self.expected}"


def compare(expected: TypedValue, found: TypedValue) -> Iterator[Difference]:
    """Yield where two typed values differ, and where equal ones have another physical type.

    Equality is that of VariantEncoding.md, "Equivalence Class": exact numbers by value, timestamps by moment;
    the order of an object's fields does not count.
    """
    pairs: list[tuple[str, TypedValue, TypedValue]] = [("$", expected, found)]
    while pairs:
        path, left, right = pairs.pop()
        (left_type, wanted), (right_type, got) = _parts(left), _parts(right)
        if left_type == right_type == "object" and wanted.keys() == got.keys():
            pairs += [(f"{path}[{name!r}]", wanted[name], got[name]) for name in reversed(wanted)]
        elif left_type == right_type == "array" and len(wanted) == len(got):
            places = range(len(wanted) - 1, -1, -1)
            pairs += [(f"{path}[{place}]", wanted[place], got[place]) for place in places]
        elif left_type in NESTED or right_type in NESTED or _key(left) != _key(right):
            yield Difference(path, describe(left), describe(right))
        elif not _same_bytes(left, right):
            yield Difference(path, describe(left), describe(right), equal=True)


def _parts(value: TypedValue) -> tuple[str, Any]:
    ((kind, payload),) = value.items()
    return kind, payload


def _key(value: TypedValue) -> tuple[str, object]:
    """Return what equal values that are neither objects nor arrays have in common."""
    kind, payload = _parts(value)
    if kind in EXACT_NUMBERS:
        return "exact", Fraction(Decimal(payload))
    if kind in NANOS:
        name, nanos = NANOS[kind]
        return name, payload * nanos
    if kind in ("float", "double"):
        return kind, _float_bytes(kind, payload)
    if kind in ("binary", "uuid"):
        return kind, payload.lower()
    return kind, payload


def _float_bytes(kind: str, payload: Any) -> bytes | str:
    number = float(payload)
    return "NaN" if number != number else struct.pack("<f" if kind == "float" else "<d", number)


def _same_bytes(left: TypedValue, right: TypedValue) -> bool:
    (left_type, wanted), (right_type, got) = _parts(left), _parts(right)
    if left_type != right_type:
        return False
    return left_type not in DECIMAL_DIGITS or _scale(wanted) == _scale(got)


def _scale(text: str) -> int:
    return len(text.partition(".")[2])


def describe(value: object, length: int = NOTE_LENGTH) -> str:
    """Return a typed value, or what holds some, as JSON text of at most about `length` characters."""
    parts: list[str] = []
    size = 0
    pieces = _pieces(value)
    while size <= length and (piece := next(pieces, None)) is not None:
        parts.append(piece)
        size += len(piece)
    text = "".join(parts)
    return text if len(text) <= length else f"{text[:length]}…"


class _Literal(str):
    """Text that is printed as it is."""


def _pieces(value: object) -> Iterator[str]:
    """Yield JSON text piece by piece, without recursion: values nest deeper than Python's stack."""
    waiting: list[object] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, _Literal):
            yield item
        elif isinstance(item, Mapping):
            waiting.append(_Literal("}"))
            for place, (name, part) in reversed(list(enumerate(item.items()))):
                waiting += [part, _Literal(f"{', ' if place else ''}{_text(name)}: ")]
            yield "{"
        elif isinstance(item, list | tuple):
            waiting.append(_Literal("]"))
            for place, part in reversed(list(enumerate(item))):
                waiting += [part, _Literal(", " if place else "")]
            yield "["
        else:
            yield _text(item)


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def find_problem(value: object) -> str | None:
    """Return what is wrong with something that should be a typed value, or None."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if not isinstance(item, dict) or len(item) != 1:
            return f"a typed value is an object of one member, and not {describe(item)}"
        ((kind, payload),) = item.items()
        if kind == "object" and isinstance(payload, dict):
            waiting += payload.values()
        elif kind == "array" and isinstance(payload, list):
            waiting += payload
        elif kind not in PAYLOADS:
            return f"no type of values is called {kind!r}" if kind not in NESTED else _wrong(kind, payload)
        elif not PAYLOADS[kind](payload):
            return _wrong(kind, payload)
    return None


def _wrong(kind: str, payload: object) -> str:
    return f"{describe(payload)} is no payload of {kind}"


def _is_integer(bits: int) -> Callable[[object], bool]:
    return lambda payload: type(payload) is int and -(1 << bits - 1) <= payload < 1 << bits - 1


def _is_decimal(digits: int) -> Callable[[object], bool]:
    # A decimal4 can hold ten digits, and one of scale 9 or 38 need not have as many.
    width = {9: 32, 18: 64, 38: 128}[digits]

    def is_valid(payload: object) -> bool:
        if not isinstance(payload, str) or not DECIMAL_TEXT.fullmatch(payload) or _scale(payload) > 38:
            return False
        return -(1 << width - 1) <= int(payload.replace(".", "")) < 1 << width - 1

    return is_valid


def _is_float(payload: object) -> bool:
    return payload in SPECIAL_FLOATS if isinstance(payload, str) else type(payload) in (int, float)


def _is_hex(payload: object) -> bool:
    return isinstance(payload, str) and len(payload) % 2 == 0 and not set(payload) - set(hexdigits)


def _is_uuid(payload: object) -> bool:
    return isinstance(payload, str) and UUID_TEXT.fullmatch(payload) is not None


PAYLOADS: Mapping[str, Callable[[object], bool]] = {
    "null": lambda payload: payload is None,
    "boolean": lambda payload: isinstance(payload, bool),
    **{kind: _is_integer(bits) for kind, bits in INTEGER_BITS.items()},
    **{kind: _is_decimal(digits) for kind, digits in DECIMAL_DIGITS.items()},
    "float": _is_float,
    "double": _is_float,
    "binary": _is_hex,
    "uuid": _is_uuid,
    "string": lambda payload: isinstance(payload, str),
}
