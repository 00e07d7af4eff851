"""What arguments have to be: ValueError in a sentence for those that are not, before anything is done."""

from __future__ import annotations

from operator import index
from typing import Any

__all__ = ["check_text", "is_unicode", "whole_number"]


def check_text(name: str, value: object) -> None:
    """Raise ValueError for what is no text, or text that no file of UTF-8 can hold."""
    if not isinstance(value, str):
        raise ValueError(f"{name} is {value!r}: give text")
    if not is_unicode(value):
        raise ValueError(f"{name} is {value!r}: half of a surrogate pair is no character; give whole ones")


def is_unicode(text: str) -> bool:
    """Tell whether text has only whole characters, and no half of a surrogate pair."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def whole_number(name: str, value: Any, least: int, greatest: int = 2**63 - 1) -> int:
    """Return a whole number as an int, be it NumPy's; raises ValueError for what is none in these bounds."""
    try:
        number = None if isinstance(value, bool) else index(value)
    except TypeError:
        number = None
    if number is None or not least <= number <= greatest:
        bounds = f"from {least}" if number is None or number < least else f"up to {greatest}"
        raise ValueError(f"{name} is {value!r}: give a whole number {bounds}")
    return number
