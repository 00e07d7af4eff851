"""Print escaped text and readable quantities without markup."""

from __future__ import annotations

import logging
import re
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from ..errors import printable
from ..variant import paths as variant_paths

# rich is imported by the functions that print, because `--help` needs this module and not rich.
if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "console",
    "count",
    "escaped_json",
    "fill",
    "path_step",
    "path_text",
    "print_hint",
    "print_json",
    "print_lines",
    "shorten",
    "size_text",
    "wrapped",
]

PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
WIDTH_WITHOUT_TERMINAL = 160

# In UTF-8: DEL, the C1 controls, the marks, embeddings, overrides and isolates of bidirectional text, the
# line and paragraph separators, and the byte order mark. In JSON they occur only within strings.
INVISIBLE = re.compile(
    rb"\x7f|\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]|\xef\xbb\xbf"
)


def console(*, stderr: bool = False) -> Console:
    """Return a console that prints text literally, so that names in data cannot contain markup."""
    from rich.console import Console

    made = Console(stderr=stderr, markup=False, highlight=False, emoji=False, soft_wrap=False)
    if not made.is_terminal:
        made.width = WIDTH_WITHOUT_TERMINAL
    return made


def path_text(column: str, path: Sequence[str | None]) -> str:
    """Return a Variant path in SQL syntax: `event:user.id`. `[]` stands for the elements of a list."""
    steps = "".join(f".{text}" if text[0] != "[" else text for text in map(path_step, path))
    return f"{column}:{steps.removeprefix('.')}" if steps else column


def path_step(step: str | None) -> str:
    """Return one step of a path: a plain name, a quoted name, or `[]` for the elements of a list."""
    if step is None:
        return "[]"
    return step if PLAIN_NAME.fullmatch(step) else variant_paths.normalize([step]).removeprefix("$")


def shorten(text: str, length: int) -> str:
    """Return `text`, truncated to `length` characters."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def size_text(size: float) -> str:
    """Return a number of bytes in a readable unit: `118.1 MB`."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return count(round(size), "byte") if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"


def count(number: int, noun: str) -> str:
    """Return a number with its noun: `1 row`, `2,000 rows`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def fill(values: int | None, rows: int, path: Sequence[str | None]) -> str:
    """Return the fill rate of a path: a share of the rows, or values per row for list elements."""
    if values is None:
        return "?"
    if not values or not rows:
        return "0"
    share = values / rows
    if None in path:
        return f"{share:.2f} per row"
    percent = f"{100 * share:.1f} %"
    return {"0.0 %": "< 0.1 %", "100.0 %": "100 %" if values == rows else "> 99.9 %"}.get(percent, percent)


def escaped_json(text: bytes) -> bytes:
    """Return UTF-8 JSON text with control characters and invisible characters escaped."""
    if text.isascii() and b"\x7f" not in text:
        return text
    return INVISIBLE.sub(lambda found: b"\\u%04x" % ord(found[0].decode()), text)


def print_json(value: object, *, indented: bool = False) -> None:
    """Print a value as JSON on standard output."""
    text = msgspec.json.encode(value)
    print(escaped_json(msgspec.json.format(text) if indented else text).decode())


def print_lines(out: Console, *lines: str) -> None:
    """Print lines of text, escaped."""
    from rich.text import Text

    for line in lines:
        out.print(Text(wrapped(out, printable(line))), soft_wrap=True)


def wrapped(out: Console, text: str, indent: int = 0) -> str:
    """Return `text` broken between words if it is longer than a line of a terminal.

    Words, such as paths and addresses, stay whole, so that they can be copied. `indent` is the column that
    `text` begins at, and that its other lines get.
    """
    if not out.is_terminal or len(text) <= out.width - indent:
        return text
    space = " " * indent
    lines = textwrap.wrap(
        text,
        out.width,
        initial_indent=space,
        subsequent_indent=space,
        expand_tabs=False,
        replace_whitespace=False,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines)[indent:]


def print_hint(text: str) -> None:
    """Print a line on standard error that explains what the results omit, unless --quiet is passed."""
    if logging.getLogger("delta_variant").isEnabledFor(logging.WARNING):
        print_lines(console(stderr=True), text)
