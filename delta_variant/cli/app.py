"""List the commands. Each is imported when it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import CompletionItem, TyperGroup  # type: ignore[attr-defined]

from .common_options import with_common_options
from .confirmation import RULE
from .examples import EXAMPLES
from .help import Command, Group, examples_text
from .version import print_version

__all__ = ["app"]

# `--help` lists the groups and the commands in this order. The values are the module of `commands` and the
# summary, which is the first sentence of the command's description. The module is imported when the command
# runs, because the operations take longer to import than most answers of the command line take.
COMMANDS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Write and read": {
        "write": ("write", "Write JSON, Parquet or CSV to a Delta table with one commit."),
        "read": ("read", "Print rows of a table, or columns and Variant paths."),
        "describe": ("describe", "Print the schema, properties, features, protocol and size of a table."),
        "convert": (
            "convert",
            "Write the rows of Parquet files or a Delta table to a new table with shredded Variants.",
        ),
    },
    "Change rows": {
        "delete": ("rows", "Delete rows of a table with one commit."),
        "update": ("rows", "Update columns and paths within Variants with one commit."),
        "merge": ("merge", "Merge files into a table with one commit: update, delete and insert rows."),
    },
    "Versions": {
        "history": ("maintenance", "Print the commits of a table, latest first."),
        "changes": (
            "read",
            "Print inserted, deleted and updated rows from the change data feed of a table.",
        ),
        "restore": ("maintenance", "Restore a table to a version or timestamp with a new commit."),
    },
    "Maintain": {
        "optimize": (
            "maintenance",
            "Combine small files, shred them by their current rows, and optionally sort them.",
        ),
        "vacuum": (
            "maintenance",
            "Delete files that no version within the retention period references, one week by default.",
        ),
        "clean-up-log": (
            "maintenance",
            "Delete commits and checkpoints older than the retention of the log, 30 days by default.",
        ),
        "alter": ("schema", "Change properties, columns or constraints of a table with one commit."),
    },
    "Check": {
        "audit": ("audit", "Check the log, protocol, schema, files and statistics of a table."),
        "repair-statistics": ("audit", "Recompute wrong, missing and one-sided statistics from the data."),
        "inspect": (
            "statistics",
            "Print how Variant columns are shredded: type, fill rate, bytes and bounds of each path.",
        ),
        "stats": (
            "statistics",
            "Print the statistics in the log of a table, or compute those of a Parquet file.",
        ),
        "z85": ("statistics", "Decode and encode the Variants in statistics."),
    },
    "Other": {
        "migrate": (
            "migrate",
            "Rewrite files of the older Spark Variant layout in the current layout.",
        ),
        "conformance": (
            "conformance",
            "Run engines on the specification cases for reading and writing Variants.",
        ),
    },
}
MODULES = {name: module for commands in COMMANDS.values() for name, (module, _) in commands.items()}
PANELS = {name: panel for panel, commands in COMMANDS.items() for name in commands}
SETTINGS: Mapping[str, Any] = {"help_option_names": ["-h", "--help"]}


class Commands(Group):
    """The commands, each imported when it is needed."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # typer proposes these names for one that is misspelt. `get_command` returns their commands.
        names: Any = dict.fromkeys(MODULES)
        self.commands = names

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands in the order of `--help`."""
        return list(MODULES)

    def summaries(self, ctx: Any) -> Iterator[tuple[str, str, str]]:
        """Yield the summaries of `COMMANDS`, which import no command."""
        for panel, commands in COMMANDS.items():
            yield from ((panel, name, summary) for name, (_, summary) in commands.items())

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments. Completion of the first word has none, and typer is slow at defaults."""
        if ctx.resilient_parsing and not args:
            return []
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Return the completions of the name of a command, which import no command, or of an option."""
        if incomplete.startswith("-"):
            return super(TyperGroup, self).shell_complete(ctx, incomplete)
        summaries = ((name, summary) for _, name, summary in self.summaries(ctx))
        return [CompletionItem(name, help=text) for name, text in summaries if name.startswith(incomplete)]

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


def _print_version(wanted: bool) -> None:
    if wanted:
        print_version()
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
