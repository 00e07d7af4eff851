"""What arguments have to be: ValueError in a sentence for those that are not, before anything is done."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Real
from operator import index
from typing import Any

__all__ = ["check_option", "check_text", "is_number", "is_unicode", "list_of", "one_or_more", "whole_number"]


def check_text(name: str, value: object) -> None:
    """Raise ValueError for what is no text, or text that no file of UTF-8 can hold."""
    if not isinstance(value, str):
        raise ValueError(f"{name} is {value!r}: give text")
    if not is_unicode(value):
        raise ValueError(f"{name} is {value!r}: half of a surrogate pair is no character; give whole ones")


def is_unicode(text: str) -> bool:
    """Tell whether text has only whole characters, and no half of a surrogate pair."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def whole_number(name: str, value: Any, least: int | None = None) -> int:
    """Return a whole number as an int, be it NumPy's; raises ValueError for what is none, or too small.

    With a least one, it has to be one of 64 bits, too.
    """
    try:
        number = None if isinstance(value, bool) else index(value)
    except TypeError:
        number = None
    if number is None or (least is not None and not least <= number < 2**63):
        bounds = "" if least is None else f" from {least} to 2**63 - 1"
        raise ValueError(f"{name} is {value!r}: give a whole number{bounds}")
    return number


def is_number(value: object) -> bool:
    """Tell whether a value is a number, whole or not, be it NumPy's; True and False are none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def list_of(what: str, name: str, value: Any) -> tuple[Any, ...]:
    """Return what a list holds; raises ValueError for a text, and for what holds nothing."""
    if isinstance(value, str):
        raise ValueError(f"{name} is the text {value!r}: give a list of {what}")
    if not isinstance(value, Iterable):
        raise ValueError(f"{name} is {value!r}: give a list of {what}")
    return tuple(value)


def one_or_more(what: str, name: str, value: Any) -> tuple[Any, ...]:
    """Return a text alone, or what a list holds; raises ValueError for what is neither."""
    return (value,) if isinstance(value, str) else list_of(what, name, value)


def check_option(name: str, value: object, allowed: Sequence[object]) -> None:
    """Raise ValueError unless `value` is one of those allowed."""
    if value not in allowed:
        raise ValueError(f"{name} is one of {', '.join(map(repr, allowed))}, and not {value!r}")
