"""Register the commands and map their outcome to an exit status: 0 clean, 1 findings, 2 an error."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version as installed_version
from typing import Annotated

import typer

from ..errors import DeltaVariantError
from .commands.audit import audit, repair_statistics
from .commands.conformance import conformance
from .commands.maintenance import history, optimize, restore, vacuum
from .commands.read import changes, read
from .commands.rows import delete, update
from .commands.schema import alter
from .commands.statistics import decode, encode, inspect, stats
from .commands.write import migrate, write
from .exit_codes import ERROR, INTERRUPTED
from .interrupts import Interrupted, raising_signals
from .output import BROKEN_PIPE, OutputFailed, check_outputs, drop_output
from .terminal import LogLines, console, print_lines

__all__ = ["main"]

# `--help` lists the commands in this order.
COMMANDS: tuple[Callable[..., None], ...] = (
    alter,
    write,
    read,
    changes,
    delete,
    update,
    optimize,
    history,
    restore,
    vacuum,
    inspect,
    stats,
    conformance,
    migrate,
    audit,
    repair_statistics,
)
Z85_COMMANDS: tuple[Callable[..., None], ...] = (decode, encode)

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
z85_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
for command in COMMANDS:
    app.command()(command)
for command in Z85_COMMANDS:
    z85_app.command()(command)
app.add_typer(z85_app, name="z85", help="Decode and encode the Variants in statistics.")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line, then exit the process with its status."""
    # sys.stdout is None if the stream was closed before Python started.
    if sys.stdout is None:
        _fail("cannot print because standard output is closed")
    check_outputs()
    logging.getLogger("delta_variant").addHandler(LogLines(logging.WARNING))
    try:
        _run(arguments)
    except OutputFailed as failure:
        drop_output(failure.descriptor)
        if failure.is_closed_pipe:
            sys.exit(BROKEN_PIPE)
        _fail(str(failure))


def _run(arguments: Sequence[str] | None) -> None:
    with raising_signals() as signals:
        try:
            app(arguments, prog_name="delta-variant")
        except SystemExit:
            if signals.status is None:
                sys.stdout.flush()
                raise
            # typer maps KeyboardInterrupt to an exit status of its own.
            drop_output()
            _fail("interrupted", signals.status)
        except Interrupted as interrupt:
            _fail(str(interrupt), signals.status or INTERRUPTED)
        except OSError as error:
            _fail(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error))
        except (DeltaVariantError, ValueError) as error:
            _fail(str(error))


def _fail(message: str, status: int = ERROR) -> None:
    print_lines(console(stderr=True), f"delta-variant: {message}")
    sys.exit(status)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"delta-variant {installed_version('delta-variant')}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Read, write and maintain Delta Lake tables with Variant columns.

    Exit status: 0 clean, 1 findings, 2 wrong usage or an error.
    """
