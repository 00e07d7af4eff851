"""List the commands. Each is imported when it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import CompletionItem, TyperGroup  # type: ignore[attr-defined]

from .._version import package_version
from .confirmation import RULE
from .help import Command, Group, examples_text
from .options import with_common_options


class Row:
    """A command: its module of `commands`, the first sentence of its description, and its examples.

    The module is imported when the command runs, because the operations take longer to import than most
    answers of the command line take. Without a module, the package `delta-variant-NAME` has the command as
    an entry point.
    """

    def __init__(self, module: str, summary: str, *examples: str) -> None:
        self.module = module
        self.summary = summary
        self.examples = examples


# `--help` lists the groups and the commands in this order.
COMMANDS: Mapping[str, Mapping[str, Row]] = {
    "Write and read": {
        "write": Row(
            "write",
            "Write JSON, Parquet or CSV to a Delta table with one commit.",
            "delta-variant write events.ndjson lake/events --column event",
            "delta-variant write landing/ lake/events --mode append \\",
            "    --on-invalid reject --rejects rejects.ndjson \\",
            "    --extract day=value:time::date --partition-by day",
            "gh api /events | delta-variant write - lake/events --mode append",
            "delta-variant write 'in/*.parquet' s3://bucket/events \\",
            "    --variant-column payload --partition-by day \\",
            "    --storage-option AWS_REGION=eu-west-1",
        ),
        "create": Row(
            "schema",
            "Create a table without rows.",
            "delta-variant create lake/orders 'id bigint NOT NULL' 'event variant'",
            "delta-variant create sales 'day date' 'event variant' --partition-by day",
        ),
        "read": Row(
            "read",
            "Print rows of a table, or columns and Variant paths.",
            "delta-variant read lake/events --limit 5",
            "delta-variant read lake/events -c user=event:user.id::bigint \\",
            "    --where \"event:action::string = 'buy'\" --json | jq .user",
            "delta-variant read lake/events --version 3 --format csv > events.csv",
        ),
        "sql": Row(
            "read",
            "Print the rows of a SQL query of tables.",
            'delta-variant sql "select event:type::string as type, count(*) as n \\',
            '    from events group by all order by n desc" --table events=lake/events',
            'delta-variant sql "select name, n from users join events using (id)" \\',
            "    --table users=lake/users --table events=lake/events --json",
        ),
        "serve": Row(
            "read",
            "Serve a table as plain Parquet files over HTTP, until Ctrl-C.",
            "delta-variant serve lake/events",
            "delta-variant serve lake/events -c user=event:user.id::bigint --port 8000",
        ),
        "describe": Row(
            "schema",
            "Print the schema and properties of a table, or what its paths or those of a file have.",
            "delta-variant describe events.ndjson",
            "delta-variant describe lake/events --paths",
            "delta-variant describe lake/events --json | jq .properties",
        ),
        "convert": Row(
            "convert",
            "Write the rows of Parquet files or a Delta table to a new table with shredded Variants.",
            "delta-variant convert exports/ lake/events --column payload",
            "delta-variant convert lake/unshredded lake/shredded",
        ),
        "clone": Row(
            "convert",
            "Create a table with the rows, schema and properties of another table, without its history.",
            "delta-variant clone lake/events backup/events --version 3",
            "delta-variant clone lake/events trial/events --shallow",
        ),
        "export": Row(
            "convert",
            "Create or refresh an ordinary Delta table with the columns and the shredded paths of a table.",
            "delta-variant export lake/events plain/events",
            "delta-variant export lake/events plain/users -c user=event:user.id::bigint",
        ),
    },
    "Change rows": {
        "delete": Row(
            "rows",
            "Delete rows of a table with one commit.",
            'delta-variant delete lake/events --where "event:id::bigint = 7" --dry-run',
            "delta-variant delete lake/events --where \"day < '2026-01-01'\" --yes",
        ),
        "update": Row(
            "rows",
            "Update columns and paths within Variants with one commit.",
            "delta-variant update lake/events --set \"event:user.email='x'\" \\",
            '    --where "event:user.id::bigint = 7"',
            "delta-variant update lake/events --unset event:ip --all --yes",
        ),
        "merge": Row(
            "rows",
            "Merge files into a table with one commit: update, delete and insert rows.",
            "delta-variant merge changes.ndjson lake/users --column change \\",
            '    --on "target.id = source.change:id::bigint" \\',
            "    --when-matched-delete --where \"source.change:op::string = 'delete'\" \\",
            '    --when-matched-update --set "name = source.change:name::string" \\',
            '    --when-not-matched-insert --set "id = source.change:id::bigint" \\',
            '        --set "name = source.change:name::string"',
        ),
    },
    "Versions": {
        "history": Row(
            "maintenance",
            "Print the commits of a table, latest first.",
            "delta-variant history lake/events --limit 10",
            "delta-variant history lake/events --json | jq .operationMetrics",
        ),
        "changes": Row(
            "read",
            "Print inserted, deleted and updated rows from the change data feed of a table.",
            "delta-variant changes lake/events --start 3",
            "delta-variant changes lake/events --start 2026-11-21 --json",
        ),
        "restore": Row(
            "maintenance",
            "Restore a table to a version or timestamp with a new commit.",
            "delta-variant restore lake/events --version 3 --dry-run",
            "delta-variant restore lake/events --timestamp 2026-11-21T09:30Z --yes",
        ),
    },
    "Maintain": {
        "optimize": Row(
            "maintenance",
            "Combine small files, shred them by their current rows, and optionally sort them.",
            "delta-variant optimize lake/events --dry-run",
            "delta-variant optimize lake/events --sort-by event:user.id::bigint",
        ),
        "analyze": Row(
            "maintenance",
            "Read the files that were not analyzed before, so that `describe --paths` knows all rows.",
            "delta-variant analyze lake/events",
        ),
        "vacuum": Row(
            "maintenance",
            "Delete files that no version within the retention period references, one week by default.",
            "delta-variant vacuum lake/events --dry-run",
            "delta-variant vacuum lake/events --retention-hours 240 --yes",
        ),
        "clean-up-log": Row(
            "maintenance",
            "Delete commits and checkpoints older than the retention of the log, 30 days by default.",
            "delta-variant clean-up-log lake/events --dry-run",
            "delta-variant clean-up-log lake/events --yes",
        ),
        "checkpoint": Row(
            "maintenance",
            "Write a checkpoint of the latest version, so that readers load it faster.",
            "delta-variant checkpoint lake/events",
        ),
        "alter": Row(
            "schema",
            "Change properties, columns or constraints of a table with one commit.",
            "delta-variant alter lake/events --set delta.enableChangeDataFeed=true",
            "delta-variant alter lake/events --add-column raw=variant",
        ),
        "drop-feature": Row(
            "schema",
            "Remove a feature from the protocol, so that more readers and writers open the table.",
            "delta-variant drop-feature lake/events variantShredding --dry-run",
            "delta-variant drop-feature lake/events variantShredding --yes",
        ),
    },
    "Check": {
        "audit": Row(
            "audit",
            "Check the log, protocol, schema, files and statistics of a table.",
            "delta-variant audit lake/events",
            "delta-variant audit lake/events --data --html audit.html",
        ),
        "repair-statistics": Row(
            "audit",
            "Recompute wrong, missing and one-sided statistics from the data.",
            "delta-variant repair-statistics lake/events --dry-run",
            "delta-variant repair-statistics lake/events",
        ),
        "repair-files": Row(
            "audit",
            "Remove the entries of data files that are lost, so that the others can be read.",
            "delta-variant repair-files lake/events --dry-run",
            "delta-variant repair-files lake/events --yes",
        ),
        "repair-log": Row(
            "audit",
            "Move checkpoints and checksums that contradict the commits out of the log.",
            "delta-variant repair-log lake/events --dry-run",
            "delta-variant repair-log lake/events --yes",
        ),
        "inspect": Row(
            "statistics",
            "Print how Variant columns are shredded: type, fill rate, bytes and bounds of each path.",
            "delta-variant inspect lake/events",
            "delta-variant inspect lake/events/part-00000.parquet --json",
            "delta-variant inspect lake/events --html events.html",
        ),
        "stats": Row(
            "statistics",
            "Print the statistics in the log of a table, or compute those of a Parquet file.",
            "delta-variant stats lake/events",
            "delta-variant stats lake/events --exact --json",
        ),
        "z85": Row("statistics", "Decode and encode the Variants in statistics."),
    },
    "Other": {
        "migrate": Row(
            "convert",
            "Rewrite files of the older Spark Variant layout in the current layout.",
            "delta-variant migrate old.parquet new.parquet",
        ),
        "conformance": Row(
            "",
            "Run engines on the specification cases for reading and writing Variants.",
            "delta-variant conformance --engine ours",
            "delta-variant conformance --cases parquet-testing --html kit.html",
        ),
    },
}
ROWS = {name: row for commands in COMMANDS.values() for name, row in commands.items()}
PANELS = {name: panel for panel, commands in COMMANDS.items() for name in commands}
ENTRY_POINTS = "delta_variant.commands"
SETTINGS: Mapping[str, Any] = {"help_option_names": ["-h", "--help"]}


class Commands(Group):
    """The commands, each imported when it is needed."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # typer proposes these names for a misspelt name. `get_command` returns the commands.
        names: Any = dict.fromkeys(ROWS)
        self.commands = names

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands in the order of `--help`."""
        return list(ROWS)

    def summaries(self, ctx: Any) -> Iterator[tuple[str, str, str]]:
        """Yield the summaries of `COMMANDS`, which import no command."""
        for panel, commands in COMMANDS.items():
            yield from ((panel, name, row.summary) for name, row in commands.items())

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
        if cmd_name not in ROWS:
            return None
        found = _function_of(cmd_name)
        if found is None:
            hint = f"{cmd_name} is not installed: run pip install delta-variant-{cmd_name}"
            return None if ctx is None or ctx.resilient_parsing else ctx.fail(hint)
        single = found if isinstance(found, typer.Typer) else _app_of(found, ROWS[cmd_name].examples)
        command: Any = typer.main.get_command(single)
        command.name = cmd_name
        command.rich_help_panel = PANELS[cmd_name]
        return command


def _function_of(name: str) -> Any:
    """Return the function of a command, None if the package that has it is not installed."""
    if module := ROWS[name].module:
        return getattr(import_module(f".commands.{module}", __package__), name.replace("-", "_"))
    # Imported here because the import is slow.
    from importlib.metadata import entry_points

    return next((point.load() for point in entry_points(group=ENTRY_POINTS, name=name)), None)


def _app_of(run: Any, examples: tuple[str, ...]) -> typer.Typer:
    """Return an app whose only command is a function with the common options and its examples."""
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    declare = single.command(cls=Command, epilog=examples_text(examples), context_settings=dict(SETTINGS))
    declare(with_common_options(run))
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
        print(f"delta-variant {package_version()}")
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
