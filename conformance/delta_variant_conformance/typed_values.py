"""Typed values and shredding schemas, the formats of cases that protocol_fixtures/README.md describes."""

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

TypedValue: TypeAlias = "Mapping[str, Any]"
"""An object with one key, a type of the Variant encoding, and a payload: `{"int8": 1}`."""

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
    """A difference between two values; `equal` is True if only the physical type differs."""

    path: str
    expected: str
    found: str
    equal: bool = False

    def __str__(self) -> str:
        return f"{self.path}: expected {self.expected}, got {self.found}"


def compare(expected: TypedValue, found: TypedValue) -> Iterator[Difference]:
    """Yield the differences of two typed values, including different physical types of equal values.

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
            indices = range(len(wanted) - 1, -1, -1)
            pairs += [(f"{path}[{index}]", wanted[index], got[index]) for index in indices]
        elif left_type in NESTED or right_type in NESTED or _key(left) != _key(right):
            yield Difference(path, describe(left), describe(right))
        elif not _same_bytes(left, right):
            yield Difference(path, describe(left), describe(right), equal=True)


def _parts(value: TypedValue) -> tuple[str, Any]:
    ((kind, payload),) = value.items()
    return kind, payload


def _key(value: TypedValue) -> tuple[str, object]:
    """Return a key by which scalars are equal if they are in the same equivalence class."""
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
    """Return a typed value, or a nested value of them, as JSON text of about `length` characters at most."""
    parts: list[str] = []
    size = 0
    pieces = _pieces(value)
    while size <= length and (piece := next(pieces, None)) is not None:
        parts.append(piece)
        size += len(piece)
    text = "".join(parts)
    return text if len(text) <= length else f"{text[:length]}…"


class _Literal(str):
    """Text that is printed verbatim."""


def _pieces(value: object) -> Iterator[str]:
    """Yield JSON text in pieces, without recursion, because values may nest deeper than Python's stack."""
    waiting: list[object] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, _Literal):
            yield item
        elif isinstance(item, Mapping):
            waiting.append(_Literal("}"))
            for index, (name, part) in reversed(list(enumerate(item.items()))):
                waiting += [part, _Literal(f"{', ' if index else ''}{_text(name)}: ")]
            yield "{"
        elif isinstance(item, list | tuple):
            waiting.append(_Literal("]"))
            for index, part in reversed(list(enumerate(item))):
                waiting += [part, _Literal(", " if index else "")]
            yield "["
        else:
            yield _text(item)


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def find_problem(value: object) -> str | None:
    """Return why a value is not a valid typed value, or None."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if not isinstance(item, dict) or len(item) != 1:
            return f"expected a typed value, an object with one key, got {describe(item)}"
        ((kind, payload),) = item.items()
        if kind == "object" and isinstance(payload, dict):
            waiting += payload.values()
        elif kind == "array" and isinstance(payload, list):
            waiting += payload
        elif kind not in PAYLOADS:
            return f"unknown type {kind!r} of a typed value" if kind not in NESTED else _wrong(kind, payload)
        elif not PAYLOADS[kind](payload):
            return _wrong(kind, payload)
    return None


def _wrong(kind: str, payload: object) -> str:
    return f"invalid payload of {kind}: {describe(payload)}"


def _is_integer(bits: int) -> Callable[[object], bool]:
    return lambda payload: type(payload) is int and -(1 << bits - 1) <= payload < 1 << bits - 1


def _is_decimal(digits: int) -> Callable[[object], bool]:
    # The unscaled value of a decimal4 may have ten digits, and a scale may exceed the number of digits.
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

Schema: TypeAlias = "str | Mapping[str, Any] | None"
"""A type for a leaf, an object with one key for objects and arrays, None for `value` alone.

An example is `{"object": {"a": "int64", "b": {"array": null}}}`.
"""

DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)", re.ASCII)
LEAVES = PAYLOADS.keys() - {"null", *DECIMAL_DIGITS}


def decimal_of(leaf: str) -> tuple[int, int] | None:
    """Return precision and scale of a decimal type, or None for other types."""
    found = DECIMAL.fullmatch(leaf)
    return (int(found[1]), int(found[2])) if found else None


def payload_type(leaf: str) -> str:
    """Return the type of the typed values in a leaf. The precision of a decimal decides its type."""
    decimal = decimal_of(leaf)
    if decimal is None:
        return leaf
    return next(kind for kind, digits in DECIMAL_DIGITS.items() if decimal[0] <= digits)


def find_schema_problem(schema: object) -> str | None:
    """Return why a value is not a valid shredding schema, or None."""
    if schema is None:
        return None
    if isinstance(schema, str):
        decimal = decimal_of(schema)
        known = schema in LEAVES if decimal is None else decimal[1] <= decimal[0] <= 38
        return None if known else f"unknown type {schema!r} in a shredding schema"
    if isinstance(schema, dict) and schema.keys() == {"array"}:
        return find_schema_problem(schema["array"])
    if isinstance(schema, dict) and schema.keys() == {"object"} and isinstance(schema["object"], dict):
        return next(
            (problem for part in schema["object"].values() if (problem := find_schema_problem(part))), None
        )
    return f"invalid shredding schema {describe(schema)}"
