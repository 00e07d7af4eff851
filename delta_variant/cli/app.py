"""The commands. Exit status: 0 clean, 1 findings, 2 wrong usage or an error, which is one sentence."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Sequence
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Annotated, Literal

import typer

from ..conformance.engines import ENGINES
from ..errors import DeltaVariantError
from ..operations.audit import audit_table
from ..operations.changes import read_changes
from ..operations.delete import delete as delete_rows
from ..operations.history import history as history_of
from ..operations.legacy.migration import migrate_draft
from ..operations.optimize.optimize import optimize as optimize_table
from ..operations.read import read_table
from ..operations.restore import restore as restore_table
from ..operations.rewrite.result import RewriteResult
from ..operations.statistics_repair import repair_table
from ..operations.update import update as update_rows
from ..operations.vacuum import vacuum as vacuum_table
from ..operations.write import write_table
from ..variant.moments import UTC
from . import bounds, statistics
from .altering import alter
from .audit_page import audit_page
from .audit_text import print_findings, print_findings_json
from .conformance import conform
from .inputs import open_inputs
from .interrupts import Interrupted, all_or_nothing, raising_signals
from .migration import MigrationSummary
from .output import BROKEN_PIPE, OutputFailed, check_outputs, drop_output, write_page
from .progress import Intake
from .repair_text import print_repair, print_repair_json
from .rewriting import RewriteSummary, print_optimization, print_optimization_json
from .rows import OutputFormat, print_rows
from .shredding_tree import merge, print_tree, shredding_of
from .summary import WriteSummary
from .target import data_files, undecodable
from .terminal import LogLines, console, print_json, print_lines
from .timeline import (
    print_history,
    print_history_json,
    print_restoration,
    print_restoration_json,
    print_vacuum,
    print_vacuum_json,
)

__all__ = ["main"]

FINDINGS = 1
ERROR = 2
INTERRUPTED = 130

SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(B|kB|MB|GB|KiB|MiB|GiB)?", re.IGNORECASE | re.ASCII)
UNITS = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
NAMED_EXPRESSION = re.compile(r"(?P<name>\w+)\s*=(?!=)(?P<expression>.+)", re.DOTALL)

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
z85_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
app.command()(alter)
app.add_typer(z85_app, name="z85", help="Read and write the Variants in statistics.")

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
Version = Annotated[
    int | None, typer.Option("--version", min=0, help="The version to look at; by default the latest.")
]
Timestamp = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="The version of a time, such as 2026-11-21T09:30+01:00, or of UTC."),
]

Columns = Annotated[
    list[str] | None,
    typer.Option("--column", "-c", help="NAME=EXPRESSION, such as user=event:user.id::bigint; repeatable."),
]
Where = Annotated[str | None, typer.Option(help="Keep the rows for which this SQL is true.")]
TimeZone = Annotated[
    str, typer.Option(metavar="ZONE", help="Of local times in SQL, such as Europe/Berlin or +02:00.")
]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its status."""
    # Python has None for a stream that was closed before it began.
    if sys.stdout is None:
        _fail("standard output is closed: there is nowhere to print to")
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
            # typer has an exit status of its own for KeyboardInterrupt.
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


def _bytes_of(text: str) -> int:
    found = SIZE.fullmatch(text.strip())
    if found is None:
        raise typer.BadParameter(f"{text!r} is no size: write 128MB, or a number of bytes")
    return int(float(found[1]) * UNITS[(found[2] or "B").lower()])


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
    """Variant columns in Delta Lake tables.

    Exit status: 0 clean, 1 findings, 2 wrong usage or an error.
    """


@app.command()
def write(
    inputs: Annotated[
        list[str], typer.Argument(metavar="INPUT...", help="JSON files, globs, or - for standard input.")
    ],
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The path or URI of a Delta table.")],
    column: Annotated[str, typer.Option(help="The Variant column that takes the values.")] = "value",
    mode: Annotated[
        Literal["error", "append", "overwrite", "ignore"],
        typer.Option(help="What to do when the table exists."),
    ] = "error",
    predicate: Annotated[
        str | None,
        typer.Option(metavar="SQL", help="With --mode overwrite: replace only rows for which this is true."),
    ] = None,
    shredding: Annotated[
        bool, typer.Option("--shredding/--no-shredding", help="Give common paths columns of their own.")
    ] = True,
    schema_mode: Annotated[
        Literal["merge", "overwrite"] | None,
        typer.Option(help="Add the column to a table that lacks it, or make it the table's only one."),
    ] = None,
    on_invalid: Annotated[
        Literal["error", "reject", "null"],
        typer.Option(help="For a line that is not valid: stop, write it to --rejects, or store NULL."),
    ] = "error",
    rejects: Annotated[
        str | None, typer.Option(metavar="FILE", help="Where rejected lines go, with their reasons.")
    ] = None,
    floats: Annotated[
        Literal["decimal", "double"], typer.Option(help="What numbers with a fraction become.")
    ] = "decimal",
    duplicate_keys: Annotated[
        Literal["error", "last"],
        typer.Option(help="For an object that has a name twice: it is invalid, or the last counts."),
    ] = "error",
    target_file_size: Annotated[str, typer.Option(metavar="SIZE", help="How big data files get.")] = "128MB",
    allow_empty: Annotated[
        bool, typer.Option("--allow-empty", help="Accept input without any value; by default it is an error.")
    ] = False,
    json: Json = False,
    timezone: TimeZone = UTC,
) -> None:
    """Write JSON lines, or arrays of JSON, to a Delta table as one commit.

    .gz, .zst, .xz and .bz2 are decompressed. Exit status 1 says that lines were rejected or stored as NULL.
    """
    if (on_invalid == "reject") != (rejects is not None):
        raise typer.BadParameter("--on-invalid reject and --rejects FILE go together")
    intake = Intake()
    lines = open_inputs(inputs, column, allow_empty=allow_empty, progress=intake.update)
    with all_or_nothing(), intake.shown(lines.size):
        result = write_table(
            table,
            lines,
            mode=mode,
            schema_mode=schema_mode,
            predicate=predicate,
            timezone=timezone,
            shredding="infer" if shredding else None,
            on_invalid=on_invalid,
            rejects=rejects,
            floats=floats,
            duplicate_keys=duplicate_keys,
            target_file_size=_bytes_of(target_file_size),
        )
    summary = WriteSummary(table, result, intake, rejects)
    if json:
        summary.print_json()
    else:
        summary.print_text()
    if result.invalid:
        raise typer.Exit(FINDINGS)


@app.command()
def read(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The path or URI of a Delta table.")],
    column: Columns = None,
    where: Where = None,
    timezone: TimeZone = UTC,
    limit: Annotated[int | None, typer.Option(min=0, help="Print so many rows at most.")] = None,
    output_format: Annotated[
        OutputFormat, typer.Option("--format", help="json is one object a line.")
    ] = "table",
    json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    version: Version = None,
    timestamp: Timestamp = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print what was read and what was skipped, instead of the rows.")
    ] = False,
) -> None:
    """Print rows of a table: whole, or columns and paths of it."""
    columns = [_named(text) for text in column] if column else None
    if explain:
        explanation = read_table(
            table,
            columns=columns,
            where=where,
            timezone=timezone,
            version=version,
            timestamp=timestamp,
            explain=True,
        )
        if json:
            print_json(explanation)
        else:
            print_lines(console(), *str(explanation).splitlines())
        return
    reader = read_table(
        table, columns=columns, where=where, timezone=timezone, version=version, timestamp=timestamp
    )
    print_rows(reader, "json" if json else output_format, limit)


@app.command()
def changes(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The path or URI of a Delta table.")],
    starting_version: Annotated[int | None, typer.Option(min=0, help="The first version; or 0.")] = None,
    ending_version: Annotated[int | None, typer.Option(min=0, help="The last; or the latest.")] = None,
    starting_timestamp: Annotated[str | None, typer.Option(metavar="TIME")] = None,
    ending_timestamp: Annotated[str | None, typer.Option(metavar="TIME")] = None,
    column: Columns = None,
    where: Where = None,
    timezone: TimeZone = UTC,
    limit: Annotated[int | None, typer.Option(min=0, help="Print so many rows at most.")] = None,
    output_format: Annotated[
        OutputFormat, typer.Option("--format", help="json is one object a line.")
    ] = "table",
    json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Print the rows that commits inserted, deleted and updated, from a table's change data feed."""
    reader = read_changes(
        table,
        starting_version=starting_version,
        ending_version=ending_version,
        starting_timestamp=starting_timestamp,
        ending_timestamp=ending_timestamp,
        columns=[_named(text) for text in column] if column else None,
        where=where,
        timezone=timezone,
    )
    print_rows(reader, "json" if json else output_format, limit)


@app.command()
def delete(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The path or URI of a Delta table.")],
    where: Annotated[
        str | None, typer.Option(metavar="SQL", help="Delete the rows for which this is true.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Delete all rows.")] = False,
    json: Json = False,
    timezone: TimeZone = UTC,
) -> None:
    """Delete rows of a table, as one commit."""
    if (where is None) != everything:
        raise typer.BadParameter("give one of --where and --all")
    with all_or_nothing():
        result = delete_rows(table, where, timezone=timezone)
    _print_rewrite(table, result, json)


@app.command()
def update(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The path or URI of a Delta table.")],
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="TARGET=SQL", help="Such as event:user.email='x'; repeatable."),
    ] = None,
    unset: Annotated[
        list[str] | None, typer.Option(metavar="PATH", help="A path to be removed; repeatable.")
    ] = None,
    where: Annotated[
        str | None, typer.Option(metavar="SQL", help="Update the rows for which this is true.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Update all rows.")] = False,
    json: Json = False,
    timezone: TimeZone = UTC,
) -> None:
    """Change columns, and paths within Variants, as one commit."""
    if (where is None) != everything:
        raise typer.BadParameter("give one of --where and --all")
    updates: dict[str, str | None] = {}
    for name, text in (*map(_assignment, assignments or ()), *((path, None) for path in unset or ())):
        if name in updates:
            raise typer.BadParameter(f"{name} is set or unset twice: say once what becomes of it")
        updates[name] = text
    with all_or_nothing():
        result = update_rows(table, updates, where, timezone=timezone)
    _print_rewrite(table, result, json)


@app.command()
def optimize(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The path or URI of a Delta table.")],
    where: Annotated[
        str | None, typer.Option(metavar="SQL", help="Only partitions for which this is true.")
    ] = None,
    sort_by: Annotated[
        list[str] | None,
        typer.Option(metavar="SQL", help="Sort by a column or path: event:user.id::bigint; repeatable."),
    ] = None,
    reshred: Annotated[
        bool, typer.Option("--reshred", help="Also files whose paths have changed since they were written.")
    ] = False,
    target_file_size: Annotated[str, typer.Option(metavar="SIZE", help="How big data files get.")] = "128MB",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan, and change nothing.")] = False,
    json: Json = False,
    timezone: TimeZone = UTC,
) -> None:
    """Write small files as one, shredded by what their rows have become, and sorted if you like."""
    size = _bytes_of(target_file_size)
    with all_or_nothing():
        result = optimize_table(
            table,
            where,
            timezone=timezone,
            sort_by=sort_by,
            reshred=reshred,
            target_file_size=size,
            dry_run=dry_run,
        )
    if json:
        print_optimization_json(table, result)
    else:
        print_optimization(table, result)


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise typer.BadParameter(f"--set {text!r} is no TARGET=SQL")
    return name.strip(), value


def _print_rewrite(table: str, result: RewriteResult, json: bool) -> None:
    summary = RewriteSummary(table, result)
    if json:
        summary.print_json()
    else:
        summary.print_text()


def _named(text: str) -> str:
    found = NAMED_EXPRESSION.fullmatch(text)
    return f"{found['expression']} as `{found['name']}`" if found else text


@app.command()
def history(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The path or URI of a Delta table.")],
    limit: Annotated[int | None, typer.Option(min=0, help="Print so many commits at most.")] = None,
    json: Json = False,
) -> None:
    """Print what happened to a table, the latest commit first.

    With --json, one object a commit: what it says of itself, its version and its time.
    """
    entries = history_of(table, limit)
    if json:
        print_history_json(entries)
    else:
        print_history(entries)


@app.command()
def restore(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The path or URI of a Delta table.")],
    version: Annotated[int | None, typer.Option("--version", min=0, help="What is to come back.")] = None,
    timestamp: Timestamp = None,
    json: Json = False,
) -> None:
    """Bring a table back to what it was at a version or a time, by a new commit."""
    if (version is None) == (timestamp is None):
        raise typer.BadParameter("give one of --version and --timestamp")
    with all_or_nothing():
        restoration = restore_table(table, version, timestamp=timestamp)
    if json:
        print_restoration_json(table, restoration)
    else:
        print_restoration(table, restoration)


@app.command()
def vacuum(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The path or URI of a Delta table.")],
    yes: Annotated[
        bool, typer.Option("--yes/--dry-run", help="Delete the files; by default they are only named.")
    ] = False,
    retention_hours: Annotated[
        float | None, typer.Option(min=0, help="Keep files for so long; by default what the table says.")
    ] = None,
    enforce: Annotated[
        bool,
        typer.Option("--enforce-retention/--no-enforce-retention", help="Refuse hours below the table's."),
    ] = True,
    json: Json = False,
) -> None:
    """Delete files that no version within the retention needs, a week unless the table says otherwise."""
    result = vacuum_table(table, retention_hours, not yes, enforce)
    if json:
        print_vacuum_json(table, result)
    else:
        print_vacuum(table, result)


@app.command()
def inspect(
    target: Annotated[str, typer.Argument(metavar="FILE|TABLE", help="A Parquet file, or a Delta table.")],
    version: Version = None,
    json: Json = False,
) -> None:
    """Print how Variant columns are shredded: each path, its type, how full it is, its bytes and bounds."""
    shredding = merge([shredding_of(file) for file in data_files(target, version)])
    if json:
        print_json(shredding)
    else:
        print_tree(target, shredding)


@app.command()
def stats(
    target: Annotated[str, typer.Argument(metavar="FILE|TABLE", help="A Parquet file, or a Delta table.")],
    version: Version = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Compute those of a table from its data, as a Parquet file's are.")
    ] = False,
    json: Json = False,
) -> None:
    """Print the statistics of data files: those in a table's log, or those computed from a Parquet file.

    With --json, one object a file. Exit status 1 says that bounds cannot be decoded.
    """
    faults: list[str] = []
    for file in data_files(target, version, exact=exact):
        if json:
            print_json(statistics.json_report(file))
        else:
            statistics.print_tables(file)
        faults += undecodable(file)
    if faults:
        print_lines(console(stderr=True), *faults)
        raise typer.Exit(FINDINGS)


@app.command()
def conformance(
    cases: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIR",
            help="Cases, or a checkout of parquet-testing; repeatable. By default protocol_fixtures.",
        ),
    ] = None,
    engine: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help=f"One of {', '.join(ENGINES)}; repeatable. By default all."),
    ] = None,
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Write one page with all details.")] = None,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds that an engine has for a case.")] = 60,
    json: Json = False,
) -> None:
    """Hold engines against the cases of the specifications: who reads and writes Variants right.

    Exit status 1 says that an engine named by --engine, or with none named this library, did not pass all; 2
    that it did not start.
    """
    unknown = [name for name in engine or () if name not in ENGINES]
    if unknown:
        raise typer.BadParameter(f"no engine is called {unknown[0]!r}: there are {', '.join(ENGINES)}")
    status = conform(cases or ["protocol_fixtures"], engine or [], html, json, timeout)
    if status:
        raise typer.Exit(status)


@app.command()
def migrate(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A Parquet file of the older Spark draft, or a folder.")
    ],
    target: Annotated[
        str,
        typer.Argument(metavar="TARGET", help="A file or folder that does not exist, or an empty folder."),
    ],
    shredding: Annotated[
        Literal["same", "infer", "none"],
        typer.Option(help="Which paths get columns of their own: the same, those that pay, or none."),
    ] = "same",
    compat: Annotated[
        bool,
        typer.Option("--compat", help="Read columns that contradict each other as the draft's algorithm."),
    ] = False,
    json: Json = False,
) -> None:
    """Write files in the Variant layout of the older Spark draft anew in the present layout.

    Values, other columns, rows and file names stay. The source is only read.
    """
    with all_or_nothing():
        result = migrate_draft(
            source, target, shredding=None if shredding == "none" else shredding, compat=compat
        )
    summary = MigrationSummary(source, target, result)
    if json:
        summary.print_json()
    else:
        summary.print_text()


@app.command()
def audit(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The path or URI of a Delta table.")],
    data: Annotated[bool, typer.Option("--data", help="Look at every row, too.")] = False,
    file: Annotated[
        list[str] | None, typer.Option("--file", help="Look at this data file only; repeatable.")
    ] = None,
    version: Version = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", dir_okay=False, help="Write a page for a browser.")
    ] = None,
    json: Json = False,
) -> None:
    """Find what is wrong with a table: its log, protocol, schema, files and statistics.

    Exit status 1 says that there is an error or a warning among the findings.
    """
    found = audit_table(table, data=data, files=file, version=version)
    if html is not None:
        write_page(html, audit_page(found))
    if json:
        print_findings_json(found)
    else:
        print_findings(found)
    if not found.is_clean:
        raise typer.Exit(FINDINGS)


@app.command()
def repair(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The path or URI of a Delta table.")],
    yes: Annotated[
        bool, typer.Option("--yes/--dry-run", help="Commit the statistics; by default the plan is shown.")
    ] = False,
    file: Annotated[
        list[str] | None, typer.Option("--file", help="Repair this data file only; repeatable.")
    ] = None,
    json: Json = False,
) -> None:
    """Compute statistics that are wrong, absent or one-sided from the data, and commit them.

    No data file is touched. Exit status 1 says that there is something left to repair.
    """
    with all_or_nothing():
        result = repair_table(table, dry_run=not yes, files=file)
    if json:
        print_repair_json(result)
    else:
        print_repair(result)
    if result.unrepairable or (result.repairable and not yes):
        raise typer.Exit(FINDINGS)


@z85_app.command()
def decode(
    text: Annotated[
        str, typer.Argument(help="What minValues or maxValues of AddFile.stats have for a Variant column.")
    ],
) -> None:
    """Print the Variant in a statistics string as JSON: each path's value, and the type that holds it."""
    print_json(bounds.decode(text), indented=True)


@z85_app.command()
def encode(
    text: Annotated[str, typer.Argument(metavar="JSON", help="An object from paths to values.")],
) -> None:
    """Print a JSON object from paths to values as a statistics string.

    A value gets the type that parse_json gives it, or the one that {"type": "bigint", "value": 1} says.
    """
    print(bounds.encode(text))
