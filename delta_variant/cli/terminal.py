"""Print escaped text without markup."""

from __future__ import annotations

import logging
import re
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from ..errors import printable

# rich is imported by the functions that print, because `--help` needs this module and not rich.
if TYPE_CHECKING:
    from rich.console import Console

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


class _LogLines(logging.Handler):
    """A log handler that prints to standard error, escaped. Only warnings and errors omit their logger."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a message and its exception."""
        error = record.exc_info[1] if record.exc_info else None
        reason = f": {error}" if error is not None else ""
        source = "delta-variant" if record.levelno >= logging.WARNING else record.name
        print_lines(console(stderr=True), f"{source}: {record.getMessage()}{reason}")


@contextmanager
def printing_log() -> Iterator[None]:
    """Print the messages that `delta_variant` logs while the body runs."""
    logger, lines = logging.getLogger("delta_variant"), _LogLines()
    logger.addHandler(lines)
    try:
        yield
    finally:
        logger.removeHandler(lines)
