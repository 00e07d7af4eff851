"""Paths into a Variant as text: the normalized path keys of statistics, and the paths that users write."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..errors import ArgumentTypeError, ExpressionError, InvalidStatisticsError

__all__ = ["MAX_INDEX", "normalize", "parse", "parse_path"]

MAX_INDEX = 2**31 - 1
STEP = re.compile(
    r"""\.(?P<name>[^.\[]+) | \['(?P<single>[^']*)'\] | \["(?P<double>[^"]*)"\] | \[(?P<index>[0-9]+)\]""",
    re.VERBOSE | re.ASCII,
)


def normalize(names: Sequence[str | int]) -> str:
    """Return the normalized path (RFC 9535 section 2.7) that leads through the object members `names`."""
    # jsonpath_rfc9535 loads a regular expression engine, which would cost every import of delta_variant.
    from jsonpath_rfc9535 import JSONPathNode

    return JSONPathNode(value=None, location=tuple(names), parent=None, root=None).path()


def parse(path_key: str) -> tuple[str, ...]:
    """Return the member names of `path_key`, the exact inverse of `normalize`.

    Any RFC 9535 path of single member names is read: upper-case hexadecimal digits, needless escapes and
    shorthand names do no harm. `InvalidStatisticsError` for anything else: an index is never part of a key.
    """
    from jsonpath_rfc9535 import JSONPathError
    from jsonpath_rfc9535 import compile as compile_path

    try:
        segments = compile_path(path_key).segments
    except (JSONPathError, UnicodeEncodeError, RecursionError) as error:
        raise InvalidStatisticsError(f"{path_key!r} is not a JSON path: {error}") from error
    return tuple(_member_name(segment, path_key) for segment in segments)


def _member_name(segment: object, path_key: str) -> str:
    from jsonpath_rfc9535.segments import JSONPathChildSegment
    from jsonpath_rfc9535.selectors import NameSelector

    if isinstance(segment, JSONPathChildSegment) and len(segment.selectors) == 1:
        selector = segment.selectors[0]
        if isinstance(selector, NameSelector):
            return selector.name
    raise InvalidStatisticsError(f"{path_key!r} has the step {segment}; a path key has member names only")


def parse_path(text: str) -> tuple[str | int, ...]:
    """Return the steps of a path in the grammar of Spark's `variant_get`: names are str, array indexes int.

    After `$` come `.name`, `['name']`, `["name"]` and `[index]`. A `.name` runs to the next `.` or `[`.
    Quoted names have no escapes: a name with one quote goes between the other. `ExpressionError` says where
    a path goes wrong; ArgumentTypeError is for a path that is not text.
    """
    if not isinstance(text, str):
        raise ArgumentTypeError(f"the path is {text!r}: give text")
    if not text.startswith("$"):
        raise ExpressionError(f"the path {text!r} must start with $")
    return tuple(_steps(text))


def _steps(text: str) -> Iterator[str | int]:
    position = 1
    while position < len(text):
        step = STEP.match(text, position)
        if step is None:
            raise ExpressionError(
                f"the path {text!r} goes wrong at position {position}: expected .name, ['name'] or [index]"
            )
        yield _index(step["index"], text) if step.lastgroup == "index" else step[step.lastgroup or 0]
        position = step.end()


def _index(digits: str, text: str) -> int:
    # Longer digits would cost more to convert than to refuse.
    if len(digits) > 10 or int(digits) > MAX_INDEX:
        raise ExpressionError(f"the path {text!r} has the index {digits[:20]}; the greatest is {MAX_INDEX}")
    return int(digits)
