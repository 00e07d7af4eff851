"""Exit statuses, and escaped text on standard output and standard error.

A closed output ends a command without a traceback.
"""

from __future__ import annotations

import errno
import io
import logging
import os
import re
import signal
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, TextIO

from .._system_errors import reason_of
from ..errors import StoreError, printable

# rich is imported by the functions that print, because `--help` needs this module and not rich.
if TYPE_CHECKING:
    from rich.console import Console

    from .._progress_bar import Meter

CLEAN = 0
FINDINGS = 1
ERROR = 2
INTERRUPTED = 130
BROKEN_PIPE = 128 + signal.SIGPIPE
NAMES = {1: "standard output", 2: "standard error"}


class OutputFailed(BaseException):
    """Standard output or standard error cannot be written. Neither typer nor rich catches this exception."""

    def __init__(self, descriptor: int, error: OSError) -> None:
        super().__init__(f"cannot write to {NAMES[descriptor]}: {reason_of(error)}")
        self.descriptor = descriptor
        self.is_closed_pipe = error.errno == errno.EPIPE


class _Descriptor(io.FileIO):
    def write(self, data: object) -> int:
        try:
            return super().write(data)  # type: ignore[arg-type]
        except OSError as error:
            raise OutputFailed(self.fileno(), error) from error


def check_outputs() -> None:
    """Make failing writes to standard output and standard error raise OutputFailed."""
    sys.stdout = _checked_stream(sys.stdout)
    sys.stderr = _checked_stream(sys.stderr)


def _checked_stream(stream: TextIO) -> TextIO:
    if stream is not None and stream in (sys.__stdout__, sys.__stderr__):
        stream.flush()
        descriptor = _Descriptor(stream.fileno(), "w", closefd=False)
        stream = io.TextIOWrapper(
            io.BufferedWriter(descriptor), stream.encoding, line_buffering=descriptor.isatty()
        )
    if stream is not None:
        # Data may contain characters that the encoding of the terminal lacks.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[attr-defined]
    return stream


def drop_output(descriptor: int = 1) -> None:
    """Discard buffered text of an output that has no reader any more."""
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), descriptor)


def write_page(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a page or other content to a file. Raise StoreError, and leave no new file, if that fails."""
    # Imported here, because the start of every command imports this module.
    from .._text import size_text
    from ..storage.uris import local_location

    local = local_location("the output", path)
    data = content if isinstance(content, bytes) else content.encode()
    is_new = not local.exists()
    try:
        local.write_bytes(data)
    except OSError as error:
        if is_new:
            with suppress(OSError):
                local.unlink()
        raise StoreError(f"cannot write {path}: {reason_of(error)}", file=str(path)) from error
    print_hint(f"wrote {path}, {size_text(len(data))}")


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
    # Imported here, because --version imports this module.
    import msgspec

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


@contextmanager
def showing_progress(*, if_redirected: bool = False) -> Iterator[Meter]:
    """Observe the operations in the block, and show their progress: a bar, or lines without a terminal.

    `if_redirected=True` shows nothing while standard output is a terminal, because the results appear there.
    """
    from .._progress_bar import show_bar, show_lines

    err = console(stderr=True)
    is_quiet = not logging.getLogger("delta_variant").isEnabledFor(logging.WARNING)
    is_hidden = is_quiet or (if_redirected and console().is_terminal)
    if is_hidden or err.is_terminal:
        showing = show_bar(None if is_hidden else err)
    else:
        showing = show_lines(partial(print_lines, err))
    with showing as meter:
        yield meter
