"""Describe in which field two actions differ, for messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

__all__ = ["describe_difference", "differences"]

MAX_SHOWN = 60
"""How many characters of a value a message shows, around the first that differs."""


def describe_difference(name: str, stated: object, expected: object) -> str | None:
    """Return a phrase for the first field in which two values differ, None if they are equal.

    Actions and JSON texts are compared field by field, so that the phrase names the field.
    """
    return next(differences(name, stated, expected), None)


def differences(name: str, stated: Any, expected: Any) -> Iterator[str]:
    """Yield a phrase for each field in which two values differ."""
    if stated == expected:
        return
    stated, expected = _parts(stated), _parts(expected)
    if stated == expected:
        return
    if isinstance(stated, Mapping) and isinstance(expected, Mapping):
        for key in dict.fromkeys((*expected, *stated)):
            yield from _members(f"{name}.{key}", stated, expected, key)
    elif _is_list(stated) and _is_list(expected):
        for index in range(max(len(stated), len(expected))):
            yield from _members(f"{name}[{index}]", dict(enumerate(stated)), dict(enumerate(expected)), index)
    else:
        start = _first_difference(stated, expected)
        yield f"{name} is {_shown(stated, start)}, expected {_shown(expected, start)}"


def _members(name: str, stated: Mapping[Any, Any], expected: Mapping[Any, Any], key: object) -> Iterator[str]:
    if key not in stated:
        yield f"{name} is missing, expected {_shown(expected[key])}"
    elif key not in expected:
        yield f"{name} is {_shown(stated[key])}, expected none"
    else:
        yield from differences(name, stated[key], expected[key])


def _parts(value: Any) -> Any:
    """Return an action or the text of a JSON object or list as its parts, and any other value unchanged."""
    if isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value)
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
            return value
    return value


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _first_difference(stated: object, expected: object) -> int:
    if not (isinstance(stated, str) and isinstance(expected, str)):
        return 0
    pairs = enumerate(zip(stated, expected, strict=False))
    return next((index for index, (one, other) in pairs if one != other), min(len(stated), len(expected)))


def _shown(value: object, start: int = 0) -> str:
    """Return the part of a value around the character `start`."""
    if not isinstance(value, str):
        text = repr(_parts(value))
        return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
    begin = max(0, start - MAX_SHOWN // 2) if len(value) > MAX_SHOWN else 0
    part = value[begin : begin + MAX_SHOWN]
    return ("…" if begin else "") + repr(part) + ("…" if begin + MAX_SHOWN < len(value) else "")
