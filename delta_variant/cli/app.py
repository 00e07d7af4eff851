"""List the commands and map their outcome to an exit status: 0 clean, 1 findings, 2 an error."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import version as installed_version
from typing import Annotated, Any

import typer

from ..errors import DeltaVariantError
from .common_options import with_common_options
from .confirmation import RULE
from .examples import EXAMPLES
from .exit_codes import ERROR, INTERRUPTED
from .help import Command, Group, examples_text
from .interrupts import Interrupted, raising_signals
from .output import BROKEN_PIPE, OutputFailed, check_outputs, drop_output
from .remedies import message_of
from .terminal import LogLines, console, print_lines

__all__ = ["main"]

# `--help` lists the groups and the commands in this order. The value is the module of `commands`, which is
# imported when the command is needed, so that `--version` and shell completion start quickly.
COMMANDS: Mapping[str, Mapping[str, str]] = {
    "Write and read": {
        "write": "write",
        "read": "read",
        "describe": "describe",
        "convert": "convert",
    },
    "Change rows": {"delete": "rows", "update": "rows", "merge": "merge"},
    "Versions": {"history": "maintenance", "changes": "read", "restore": "maintenance"},
    "Maintain": {"optimize": "maintenance", "vacuum": "maintenance", "alter": "schema"},
    "Check": {
        "audit": "audit",
        "repair-statistics": "audit",
        "inspect": "statistics",
        "stats": "statistics",
        "z85": "statistics",
    },
    "Other": {"migrate": "migrate", "conformance": "conformance"},
}
MODULES = {name: module for commands in COMMANDS.values() for name, module in commands.items()}
PANELS = {name: panel for panel, commands in COMMANDS.items() for name in commands}
SETTINGS: Mapping[str, Any] = {"help_option_names": ["-h", "--help"]}


class Commands(Group):
    """The commands, each imported when it is needed."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands in the order of `--help`."""
        return list(MODULES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, None for an unknown name."""
        if cmd_name not in MODULES:
            return None
        found = getattr(
            import_module(f".commands.{MODULES[cmd_name]}", __package__), cmd_name.replace("-", "_")
        )
        command: Any = typer.main.get_command(found if isinstance(found, typer.Typer) else _app_of(found))
        command.name = cmd_name
        command.rich_help_panel = PANELS[cmd_name]
        return command


def _app_of(run: Any) -> typer.Typer:
    """Return an app whose only command is a function with the common options and its examples."""
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    epilog = examples_text(EXAMPLES[run.__name__])
    single.command(cls=Command, epilog=epilog, context_settings=dict(SETTINGS))(with_common_options(run))
    return single


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=dict(SETTINGS),
    epilog=RULE,
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line, then exit the process with its status."""
    # sys.stdout is None if the stream was closed before Python started.
    if sys.stdout is None:
        _fail("cannot print because standard output is closed")
    check_outputs()
    logger, lines = logging.getLogger("delta_variant"), LogLines()
    logger.addHandler(lines)
    try:
        _run(arguments)
    except OutputFailed as failure:
        drop_output(failure.descriptor)
        if failure.is_closed_pipe:
            sys.exit(BROKEN_PIPE)
        _fail(str(failure))
    finally:
        logger.removeHandler(lines)


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
            _fail(message_of(error))


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
