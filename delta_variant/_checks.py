"""Checks of arguments, which run before any other work.

A value of the wrong type raises ArgumentTypeError, a value out of range raises ValueError.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from numbers import Real
from operator import index
from os import PathLike
from typing import Any, TypeVar

from .errors import ArgumentTypeError

Options = TypeVar("Options")

MAX_LISTED = 10


def check_installed(module: str, requirement: str) -> None:
    """Raise ModuleNotFoundError with the command that installs a module, unless it is installed."""
    if find_spec(module) is None:
        raise ModuleNotFoundError(f"{module} is not installed: run pip install '{requirement}'", name=module)


def list_names(names: Iterable[str], sought: str | None = None) -> str:
    """Return names for a message, the first ten of many, with the one that is like `sought`."""
    listed = list(names)
    text = ", ".join(listed[:MAX_LISTED]) + (", …" if len(listed) > MAX_LISTED else "")
    close = None if sought is None else nearest(sought, listed)
    return text if close is None else f"{text}; did you mean {close}?"


def nearest(sought: str, names: Iterable[str]) -> str | None:
    """Return the name that is most like `sought`, in any case, or None if none is like it."""
    # Imported here because only messages need it.
    from difflib import get_close_matches

    by_lower = {name.lower(): name for name in names}
    close = get_close_matches(sought.lower(), by_lower, n=1)
    return by_lower[close[0]] if close else None


def check_text(name: str, value: object) -> None:
    """Raise ArgumentTypeError unless `value` is a str, and ValueError for one that UTF-8 cannot encode."""
    if not isinstance(value, str):
        raise ArgumentTypeError(f"{name}: expected a string, got {value!r}")
    if not is_unicode(value):
        raise ValueError(f"{name}: {value!r} contains an unpaired surrogate; pass valid Unicode text")


def check_path(name: str, value: object) -> None:
    """Raise ArgumentTypeError unless `value` is a str or a path object."""
    if not isinstance(value, str | PathLike):
        raise ArgumentTypeError(f"{name}: expected a path, got {value!r}")


def is_unicode(text: str) -> bool:
    """Return whether text contains no unpaired surrogate."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def to_integer(name: str, value: Any, least: int | None = None) -> int:
    """Return an integer, including one of NumPy, as an int.

    With `least`, the value must be at least that and fit into 64 bits. Raises ArgumentTypeError for a value
    that is not an integer, ValueError for one out of range.
    """
    bounds = "" if least is None else f" from {least} to 2**63 - 1"
    message = f"{name}: expected an integer{bounds}, got {value!r}"
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
    """Return whether a value is a real number, including one of NumPy but not a bool."""
    return isinstance(value, Real) and not isinstance(value, bool)


def list_of(what: str, name: str, value: Any) -> tuple[Any, ...]:
    """Return the items of a list or another iterable.

    Raises ArgumentTypeError for a value that is not iterable, and for text, bytes and mappings, because
    callers do not mean their characters, bytes and keys.
    """
    if isinstance(value, str | bytes | bytearray | Mapping) or not isinstance(value, Iterable):
        raise ArgumentTypeError(f"{name}: expected a list of {what}, got {value!r}")
    return tuple(value)


def texts_of(what: str, name: str, value: Any) -> tuple[str, ...]:
    """Return the items of a list of strings; raises what `list_of` and `check_text` raise."""
    texts = list_of(what, name, value)
    for text in texts:
        check_text(f"an item of {name}", text)
    return texts


def one_or_more(what: str, name: str, value: Any) -> tuple[Any, ...]:
    """Return a single string as a tuple, or the items of a list; raises what `list_of` raises."""
    return (value,) if isinstance(value, str) else list_of(what, name, value)


def options_of(name: str, value: object, kind: type[Options]) -> Options:
    """Return an object of options, the default ones for None; raises ArgumentTypeError for another type."""
    if value is None:
        return kind()
    if not isinstance(value, kind):
        raise ArgumentTypeError(f"{name}: expected {kind.__name__}, got {value!r}")
    return value


def check_mapping(what: str, name: str, value: object) -> None:
    """Raise ArgumentTypeError unless `value` is a mapping."""
    if not isinstance(value, Mapping):
        raise ArgumentTypeError(f"{name}: expected a dict of {what}, got {value!r}")


def check_option(name: str, value: object, allowed: Sequence[object]) -> None:
    """Raise ValueError unless `value` is one of `allowed`, ArgumentTypeError if it has another type."""
    is_comparable = isinstance(value, tuple({type(each) for each in allowed}))
    if is_comparable and value in allowed:
        return
    error = ValueError if is_comparable else ArgumentTypeError
    close = nearest(value, map(str, allowed)) if isinstance(value, str) else None
    hint = "" if close is None else f"; did you mean {close!r}?"
    raise error(f"{name}: expected one of {', '.join(map(repr, allowed))}, got {value!r}{hint}")
