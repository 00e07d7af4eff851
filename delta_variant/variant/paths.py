"""Paths into a Variant: the normalized path keys of statistics, and the paths that users write."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import takewhile

from .._checks import is_unicode
from ..errors import ArgumentTypeError, ExpressionError, InvalidStatisticsError

MAX_INDEX = 2**31 - 1
CACHED_KEYS = 2**14
# A name whose normalized form has no escapes, and the path key of such names (RFC 9535, section 2.7).
# Surrogates are not Unicode text. jsonpath_rfc9535 handles all other paths. It is imported on demand, because
# it loads a second regular expression engine, and few paths have escapes.
UNESCAPED = r"[^'\\\x00-\x1f\ud800-\udfff]*"
UNESCAPED_NAME = re.compile(UNESCAPED)
UNESCAPED_KEY = re.compile(rf"\$(?:\['{UNESCAPED}'\])*")
STEP = re.compile(
    r"""\.(?P<name>[^.\[]+) | \['(?P<single>[^']*)'\] | \["(?P<double>[^"]*)"\] |
        \[(?P<index>[0-9]+)\] | \[(?P<wildcard>\*)\]""",
    re.VERBOSE | re.ASCII,
)


def normalize(names: Sequence[str | int]) -> str:
    """Return the normalized path (RFC 9535, section 2.7) of nested members: names are str, indexes int."""
    if all(isinstance(name, str) and UNESCAPED_NAME.fullmatch(name) for name in names):
        return "$" + "".join(f"['{name}']" for name in names)
    from jsonpath_rfc9535 import JSONPathNode

    return JSONPathNode(value=None, location=tuple(names), parent=None, root=None).path()


# The files of a table have bounds of the same paths, and several audit rules parse each key.
@lru_cache(maxsize=CACHED_KEYS)
def parse(path_key: str) -> tuple[str, ...]:
    """Return the member names of `path_key`, the exact inverse of `normalize`.

    Accepts every RFC 9535 path of single member names, including upper-case hexadecimal digits, unnecessary
    escapes and shorthand names. Raises InvalidStatisticsError for other paths: a key never has an index.
    """
    if UNESCAPED_KEY.fullmatch(path_key):
        return tuple(path_key[3:-2].split("']['")) if len(path_key) > 1 else ()
    from jsonpath_rfc9535 import JSONPathError
    from jsonpath_rfc9535 import compile as compile_path

    try:
        segments = compile_path(path_key).segments
    except (JSONPathError, UnicodeEncodeError, RecursionError) as error:
        raise InvalidStatisticsError(f"invalid path key {path_key!r}: {error}", path=path_key) from error
    return tuple(_member_name(segment, path_key) for segment in segments)


def _member_name(segment: object, path_key: str) -> str:
    from jsonpath_rfc9535.segments import JSONPathChildSegment
    from jsonpath_rfc9535.selectors import NameSelector

    if isinstance(segment, JSONPathChildSegment) and len(segment.selectors) == 1:
        selector = segment.selectors[0]
        if isinstance(selector, NameSelector):
            return selector.name
    raise InvalidStatisticsError(
        f"invalid path key {path_key!r}: expected member names only, got the step {segment}", path=path_key
    )


def parse_path(text: str) -> tuple[str | int, ...]:
    """Return the steps of a path in the grammar of Spark's `variant_get`: names are str, array indexes int.

    A path is `$` and then `.name`, `['name']`, `["name"]` and `[index]`. A `.name` ends before the next `.`
    or `[`. Quoted names have no escapes: enclose a name that contains one quote in the other. Raises
    ExpressionError, which names the position, for an invalid path, and ArgumentTypeError for one that is not
    a string.
    """
    steps = tuple(step for step in parse_pattern(text) if step is not None)
    if len(steps) < len(parse_pattern(text)):
        raise ExpressionError(f"invalid path {text!r}: only variant_get accepts the wildcard [*]", path=text)
    return steps


def parse_pattern(text: str) -> tuple[str | int | None, ...]:
    """Return the steps of a path that may have wildcards: `[*]` is None, others are as in `parse_path`."""
    if not isinstance(text, str):
        raise ArgumentTypeError(f"path: expected a string, got {text!r}")
    if not is_unicode(text):
        raise ExpressionError(f"invalid path {text!r}: pass valid Unicode text", path=text)
    if not text.startswith("$"):
        raise ExpressionError(f"invalid path {text!r}: expected a path that starts with $", path=text)
    return tuple(_steps(text))


def split_pattern(
    pattern: Sequence[str | int | None],
) -> tuple[tuple[str | int, ...], tuple[str | int | None, ...]]:
    """Return the steps before the first wildcard, and the others."""
    before = tuple(takewhile(lambda step: step is not None, pattern))
    return tuple(step for step in before if step is not None), tuple(pattern[len(before) :])


def _steps(text: str) -> Iterator[str | int | None]:
    position = 1
    while position < len(text):
        step = STEP.match(text, position)
        if step is None:
            raise ExpressionError(
                f"invalid path {text!r}: expected .name, ['name'] or [index] at position {position}",
                path=text,
            )
        kind = step.lastgroup or "wildcard"
        yield _index(step["index"], text) if kind == "index" else None if kind == "wildcard" else step[kind]
        position = step.end()


def _index(digits: str, text: str) -> int:
    # Digits are limited before conversion, because converting thousands of them is slow.
    if len(digits) > 10 or int(digits) > MAX_INDEX:
        raise ExpressionError(
            f"invalid path {text!r}: expected an index up to {MAX_INDEX}, got {digits[:20]}", path=text
        )
    return int(digits)
