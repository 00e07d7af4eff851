"""Exit statuses, standard output and standard error. A closed output ends a command without a traceback."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
from contextlib import suppress
from typing import TextIO

from .._system_errors import reason_of
from ..errors import StoreError

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
    from .terminal import print_hint

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
