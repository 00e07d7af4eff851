"""Checks of arguments, made before any work is done.

A value of the wrong type raises ArgumentTypeError, a value out of range raises ValueError.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from operator import index
from os import PathLike
from typing import Any

from .errors import ArgumentTypeError

__all__ = [
    "check_mapping",
    "check_option",
    "check_path",
    "check_text",
    "is_number",
    "is_unicode",
    "list_of",
    "one_or_more",
    "texts_of",
    "to_integer",
]


def check_text(name: str, value: object) -> None:
    """Raise ArgumentTypeError unless `value` is a str, and ValueError for one that UTF-8 cannot encode."""
    if not isinstance(value, str):
        raise ArgumentTypeError(f"{name} is {value!r}: give text")
    if not is_unicode(value):
        raise ValueError(f"{name} is {value!r}: half of a surrogate pair is no character; give whole ones")


def check_path(name: str, value: object) -> None:
    """Raise ArgumentTypeError unless `value` is a str or a path object."""
    if not isinstance(value, str | PathLike):
        raise ArgumentTypeError(f"{name}: expected a path, got {value!r}")


def is_unicode(text: str) -> bool:
    """Tell whether text has only whole characters, and no half of a surrogate pair."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def to_integer(name: str, value: Any, least: int | None = None) -> int:
    """Return an integer, NumPy's included, as an int.

    With `least`, the value must also fit into 64 bits. Raises ArgumentTypeError for a value that is not an
    integer, ValueError for one out of range.
    """
    bounds = "" if least is None else f" from {least} to 2**63 - 1"
    message = f"{name} is {value!r}: give a whole number{bounds}"
    if isinstance(value, bool):
        raise ArgumentTypeError(message)
    try:
        number = index(value)
    except TypeError:
        raise ArgumentTypeError(message) from None
    if least is not None and not least <= number < 2**63:
        raise ValueError(message)
    return number


def is_number(value: object) -> bool:
    """Tell whether a value is a number, whole or not, be it NumPy's; True and False are none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def list_of(what: str, name: str, value: Any) -> tuple[Any, ...]:
    """Return the items of a list or another iterable.

    Raises ArgumentTypeError for a value that is not iterable, and for text, bytes and mappings, whose items
    are not what the caller means.
    """
    if isinstance(value, str | bytes | bytearray | Mapping) or not isinstance(value, Iterable):
        raise ArgumentTypeError(f"{name}: expected a list of {what}, got {value!r}")
    return tuple(value)


def texts_of(what: str, name: str, value: Any) -> tuple[str, ...]:
    """Return the items of a list of texts; raises what `list_of` and `check_text` raise."""
    texts = list_of(what, name, value)
    for text in texts:
        check_text(f"an item of {name}", text)
    return texts


def one_or_more(what: str, name: str, value: Any) -> tuple[Any, ...]:
    """Return a text alone, or the items of a list; raises what `list_of` raises."""
    return (value,) if isinstance(value, str) else list_of(what, name, value)


def check_mapping(what: str, name: str, value: object) -> None:
    """Raise ArgumentTypeError unless `value` is a mapping."""
    if not isinstance(value, Mapping):
        raise ArgumentTypeError(f"{name} is {value!r}: give a dict of {what}")


def check_option(name: str, value: object, allowed: Sequence[object]) -> None:
    """Raise ValueError unless `value` is one of `allowed`, ArgumentTypeError where it has another type."""
    is_comparable = isinstance(value, tuple({type(each) for each in allowed}))
    if is_comparable and value in allowed:
        return
    error = ValueError if is_comparable else ArgumentTypeError
    raise error(f"{name} is one of {', '.join(map(repr, allowed))}, and not {value!r}")
