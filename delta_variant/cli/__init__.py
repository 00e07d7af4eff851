"""The command line `delta-variant`. Exit statuses: 0 for a clean result, 1 for findings, 2 for an error.

The modules that only some runs need are imported within functions: typer and rich take most of the time of
`--version`, and it needs neither.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from .._pandas import hide_pandas
from .._version import package_version
from ..errors import DeltaVariantError
from .interrupts import Interrupted, raising_signals
from .output import (
    BROKEN_PIPE,
    CLEAN,
    ERROR,
    INTERRUPTED,
    OutputFailed,
    check_outputs,
    console,
    drop_output,
    print_lines,
    printing_log,
)


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
        except KeyboardInterrupt:
            # Outside of typer, for example while modules are imported.
            drop_output()
            _fail("interrupted", status=signals.status or INTERRUPTED)
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
        print(f"delta-variant {package_version()}")
        sys.exit(CLEAN)
    from .app import app

    with printing_log():
        app(list(arguments), prog_name="delta-variant")


def _fail(message: str, *lines: str, status: int = ERROR) -> None:
    print_lines(console(stderr=True), f"delta-variant: {message}", *lines)
    sys.exit(status)


OPTIONS: Mapping[tuple[str, object], str] = {
    ("enforce_retention_duration", False): "--no-enforce-retention",
    ("mode", "ignore"): "--if-not-exists",
    ("on_invalid", "reject"): "--on-invalid reject --rejects FILE",
    ("shredding", None): "--shredding none",
}
"""The options of arguments that differ by more than dashes."""

OTHER_WAYS: Mapping[str, str] = {
    "columns": "--extract NAME=SQL and --partition-by NAME",
    "except_cols": "--set for each column to set",
}
"""Options of the command line that replace an argument of Python."""


def message_of(error: DeltaVariantError) -> str:
    """Return the message of an error, whose remedies are options of the command line."""
    return error.text(_option)


def _option(name: str, value: object) -> str:
    if name in OTHER_WAYS:
        return OTHER_WAYS[name]
    return OPTIONS.get((name, value)) or f"--{name.replace('_', '-')} {value}"
