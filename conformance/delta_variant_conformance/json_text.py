"""Compare JSON text that an engine prints with a typed value.

VariantEncoding.md no longer specifies the text (apache/parquet-format#485), so any text that represents the
whole value is correct.
"""

from __future__ import annotations

import base64
import json
import re
import struct
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from .typed_values import TypedValue

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
MOMENT = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)[ T](?P<time>\d\d:\d\d:\d\d)(?:\.(?P<fraction>\d{1,9}))?"
    r"(?P<zone>Z|[+-]\d\d(?::?\d\d)?)?",
    re.ASCII,
)
ESCAPED_BYTE = re.compile(r"\\x([0-9A-Fa-f]{2})")
TIME = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?", re.ASCII)
NANOS = {"timestamp": 1000, "timestamp_ntz": 1000, "timestamp_nanos": 1, "timestamp_ntz_nanos": 1}


def parse(text: str) -> Any:
    """Return the JSON value of a text, with exact numbers; ValueError for invalid JSON or a duplicate key."""
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=str, object_pairs_hook=_unique)
    except RecursionError as error:
        raise ValueError("the value nests too deeply") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError(f"an object has a duplicate key among {', '.join(name for name, _ in pairs)}")
    return entries


def equal(wanted: Any, found: Any) -> bool:
    """Return whether two JSON values are equal; numbers are compared by value."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return wanted.keys() == found.keys() and all(equal(wanted[name], found[name]) for name in wanted)
    if isinstance(wanted, list) and isinstance(found, list):
        return len(wanted) == len(found) and all(map(equal, wanted, found))
    if isinstance(wanted, bool) or isinstance(found, bool) or not _are_numbers(wanted, found):
        return type(wanted) is type(found) and bool(wanted == found)
    return Decimal(str(wanted)) == Decimal(str(found))


def _are_numbers(*values: Any) -> bool:
    return all(isinstance(value, int | float | Decimal) for value in values)


def is_text_of(value: TypedValue, found: Any) -> bool:
    """Return whether a JSON value of `parse` represents a typed value."""
    ((kind, payload),) = value.items()
    if kind == "object":
        return (
            isinstance(found, dict)
            and found.keys() == payload.keys()
            and all(is_text_of(part, found[name]) for name, part in payload.items())
        )
    if kind == "array":
        return isinstance(found, list) and len(found) == len(payload) and all(map(is_text_of, payload, found))
    if kind in ("null", "boolean"):
        return found is payload
    if kind in ("float", "double"):
        return _is_float(kind, payload, found)
    if kind.startswith(("int", "decimal")):
        return not isinstance(found, bool) and _are_numbers(found) and Decimal(payload) == Decimal(found)
    return isinstance(found, str) and _is_string(kind, payload, found)


def _is_float(kind: str, payload: Any, found: Any) -> bool:
    number = float(payload)
    if number != number or number in (float("inf"), float("-inf")):
        return found == str(payload) or (found is None and number != number)
    if isinstance(found, bool) or not _are_numbers(found):
        return False
    # A float may be printed with the digits of a double, or with the fewest that identify it.
    return float(found) == number or (kind == "float" and as_float(float(found)) == as_float(number))


def as_float(number: float) -> float:
    """Return the nearest number of 32 bits."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        return number


def _is_string(kind: str, payload: Any, found: str) -> bool:
    if kind == "string":
        return found == str(payload)
    if kind == "uuid":
        return found.lower() == str(payload).lower()
    if kind == "binary":
        return _is_binary(bytes.fromhex(payload), found)
    if kind == "time":
        return _time_nanos(found) == int(payload) * 1000
    if kind == "date":
        return found == _date_text(payload)
    return _moment_nanos(found, kind) == int(payload) * NANOS[kind]


def _is_binary(data: bytes, found: str) -> bool:
    """Return whether a text is base64 of the bytes, or ASCII with all other bytes escaped: `a\\xFF`."""
    unescaped = ESCAPED_BYTE.sub(lambda byte: chr(int(byte[1], 16)), found)
    return found == base64.b64encode(data).decode() or unescaped == data.decode("latin-1")


def _date_text(days: int) -> str | None:
    try:
        return (date(1970, 1, 1) + timedelta(days=days)).isoformat()
    except OverflowError:
        return None


def _time_nanos(text: str) -> int | None:
    found = TIME.fullmatch(text)
    if found is None:
        return None
    hours, minutes, seconds, fraction = found.groups(default="0")
    return (int(hours) * 3600 + int(minutes) * 60 + int(seconds)) * 10**9 + int(fraction.ljust(9, "0"))


def _moment_nanos(text: str, kind: str) -> int | None:
    """Return nanoseconds since 1970, or None if the text is not a timestamp of the kind."""
    found = MOMENT.fullmatch(text)
    if found is None or (found["zone"] is not None) == ("ntz" in kind):
        return None
    try:
        moment = datetime.fromisoformat(f"{found['day']}T{found['time']}").replace(tzinfo=timezone.utc)
    except ValueError:
        return None
    seconds = (moment - EPOCH) // timedelta(seconds=1) - _zone_seconds(found["zone"])
    return seconds * 10**9 + int((found["fraction"] or "0").ljust(9, "0"))


def _zone_seconds(zone: str | None) -> int:
    if zone in (None, "Z"):
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    return (-1 if zone[0] == "-" else 1) * (int(digits[:2]) * 3600 + int(digits[2:]) * 60)
