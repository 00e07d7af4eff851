"""Run the command line and map its outcome to an exit status: 0 clean, 1 findings, 2 an error.

The modules that only some runs need are imported within functions: typer and rich take most of the time of
`--version`, and it needs neither.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ..errors import DeltaVariantError
from .exit_codes import CLEAN, ERROR, INTERRUPTED
from .interrupts import Interrupted, raising_signals
from .output import BROKEN_PIPE, OutputFailed, check_outputs, drop_output
from .remedies import message_of
from .version import print_version
from .without_pandas import hide_pandas

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line, then exit the process with its status."""
    # sys.stdout is None if the stream was closed before Python started.
    if sys.stdout is None:
        _fail("cannot print because standard output is closed")
    check_outputs()
    if arguments is None:
        # The process is the command line's own.
        hide_pandas()
        arguments = sys.argv[1:]
    try:
        _run(arguments)
    except OutputFailed as failure:
        drop_output(failure.descriptor)
        if failure.is_closed_pipe:
            sys.exit(BROKEN_PIPE)
        _fail(str(failure))


def _run(arguments: Sequence[str]) -> None:
    with raising_signals() as signals:
        try:
            _answer(arguments)
        except SystemExit:
            if signals.status is None:
                sys.stdout.flush()
                raise
            # typer maps KeyboardInterrupt to an exit status of its own.
            drop_output()
            _fail("interrupted", status=signals.status)
        except Interrupted as interrupt:
            _fail(str(interrupt), status=signals.status or INTERRUPTED)
        except OSError as error:
            _fail(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error))
        except DeltaVariantError as error:
            # The text is escaped, but for the lines that mark a place in SQL.
            _fail(*message_of(error).split("\n"))
        except ValueError as error:
            _fail(str(error))


def _answer(arguments: Sequence[str]) -> None:
    """Print the version or run a command, and exit."""
    if list(arguments) == ["--version"]:
        print_version()
        sys.exit(CLEAN)
    from .app import app
    from .log_lines import printing_log

    with printing_log():
        app(list(arguments), prog_name="delta-variant")


def _fail(message: str, *lines: str, status: int = ERROR) -> None:
    from .terminal import console, print_lines

    print_lines(console(stderr=True), f"delta-variant: {message}", *lines)
    sys.exit(status)
