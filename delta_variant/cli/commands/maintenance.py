"""The commands `optimize`, `analyze`, `history`, `restore`, `vacuum`, `clean-up-log` and `checkpoint`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any

import typer

from ..._text import count, path_text, size_text
from ...data_file.options import FileOptions
from ...log.commit_context import CommitResult
from ...operations.describe.analyze import analyze as analyze_files
from ...operations.history import HistoryEntry, parameters_text
from ...operations.history import history as history_of
from ...operations.log_maintenance import plan_log_cleanup, run_log_cleanup, write_checkpoint
from ...operations.optimize.layout import LeafPath
from ...operations.optimize.optimize import OptimizeResult
from ...operations.optimize.optimize import optimize as optimize_table
from ...operations.restore import RestoreResult, plan_restore, run_restore
from ...operations.vacuum import plan_vacuum, run_vacuum
from ...variant.moments import UTC
from ..confirmation import confirm
from ..interrupts import all_or_nothing
from ..options import (
    DryRun,
    Expanded,
    Json,
    ResidualRows,
    Table,
    TargetFileSize,
    Text,
    Texts,
    Timestamp,
    TimeZone,
    Wide,
    Yes,
    handle,
    option,
    parse_size,
)
from ..output import showing_progress
from ..report import Layout, Report, facts, headings, render


def optimize(
    table: Table,
    where: Annotated[Text, option("Optimize only partitions that match.", "SQL")] = None,
    sort_by: Annotated[
        Texts, option("Sort by a column or path, such as event:user.id::bigint; repeatable.", "SQL")
    ] = None,
    z_order_by: Annotated[
        Texts, option("Sort by several columns or paths that count alike; repeatable.", "SQL")
    ] = None,
    reshred: Annotated[bool, option("Infer new shredding schemas for all files.", names="--reshred")] = False,
    purge: Annotated[
        bool,
        option("Rewrite all files with deleted rows, not only those with more than 5 %.", names="--purge"),
    ] = False,
    target_file_size: TargetFileSize = "128MB",
    residual_rows: ResidualRows = "separate",
    dry_run: DryRun = False,
    json: Json = False,
    timezone: TimeZone = UTC,
) -> None:
    """Combine small files, shred them by their current rows, and optionally sort them."""
    size = parse_size(target_file_size)
    with all_or_nothing(), showing_progress():
        result = optimize_table(
            handle(table),
            where,
            timezone=timezone,
            sort_by=sort_by,
            z_order_by=z_order_by,
            reshred=reshred,
            purge=purge,
            files=FileOptions(target_file_size=size, residual_rows=residual_rows),
            dry_run=dry_run,
        )
    render(_optimization(table, result), json=json)


def _optimization(table: str, result: OptimizeResult) -> Report:
    changed = {
        name: sorted({leaf for group in result.groups for leaf in getattr(group, name)}, key=str)
        for name in ("gained", "dropped")
    }
    json = {
        "table": table,
        **facts(result, "version files_before bytes_before bytes_after rows_purged"),
        "rows": sum(group.rows for group in result.groups),
        "files": [facts(file, "path rows bytes") for file in result.files],
        **{
            name: [{"path": path_text(each.column, each.path), "type": each.type} for each in leaves]
            for name, leaves in changed.items()
        },
    }
    return Report(json, _optimization_lines(table, result, changed))


def _optimization_lines(
    table: str, result: OptimizeResult, changed: dict[str, list[LeafPath]]
) -> Iterator[str]:
    if not result.groups:
        yield f"{table}: nothing to do"
        return
    done = f"version {result.version}" if result.version is not None else "dry run"
    about = "" if result.files else "about "
    new = count(len(result.files), "file") if result.files else f"{len(result.groups)} or more"
    yield f"{table}: {done}, {count(result.files_before, 'file')} to {new}"
    yield f"{size_text(result.bytes_before)} to {about}{size_text(result.bytes_after)}"
    if result.rows_purged:
        yield f"purged {count(result.rows_purged, 'deleted row')}"
    for name, leaves in changed.items():
        yield from (f"{name} {path_text(each.column, each.path)} ({each.type})" for each in leaves)


def analyze(table: Table, json: Json = False) -> None:
    """Read the files that were not analyzed before, so that `describe --paths` knows all rows.

    Keeps numbers of values, nulls and distinct values, and their distribution, in a folder of the table.
    """
    with showing_progress():
        result = analyze_files(handle(table))
    done = f"{count(len(result.files), 'file')} analyzed, {result.known:,} known before"
    report = [f"{table}: version {result.version}, {done}"]
    render(Report({"table": table, **asdict(result)}, report), json=json)


def history(
    table: Table,
    limit: Annotated[int | None, option("Maximum number of commits.", "N", min=0)] = None,
    wide: Wide = False,
    expanded: Expanded = False,
    json: Json = False,
) -> None:
    """Print the commits of a table, latest first.

    With --json, one object per commit: its commitInfo, version and timestamp.
    """
    entries = history_of(handle(table), limit)
    render(_history(entries), json=json, layout=Layout(wide, expanded))


COMMITS = headings("version: right, time: key, operation, parameters and metrics")


def _history(entries: Sequence[HistoryEntry]) -> Report:
    json = [
        {**entry.commit_info, "version": entry.version, "timestamp": entry.timestamp} for entry in entries
    ]
    return Report(json, tables=[(COMMITS, map(_commit_cells, entries))])


def _commit_cells(entry: HistoryEntry) -> tuple[Any, ...]:
    # As `restore --timestamp` takes it: `2026-11-21 09:30:00.000Z`.
    time = entry.timestamp.isoformat(sep=" ", timespec="milliseconds").replace("+00:00", "Z")
    details = parameters_text({**entry.parameters, **entry.metrics})
    return entry.version, time, entry.operation or "", details


def restore(
    table: Table,
    version: Annotated[int | None, option("The version to restore.", "N", min=0)] = None,
    timestamp: Timestamp = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Restore a table to a version or timestamp with a new commit."""
    if (version is None) == (timestamp is None):
        raise typer.BadParameter("pass exactly one of --version and --timestamp")
    make = partial(plan_restore, handle(table), version, timestamp=timestamp)
    plan = confirm("restore", table, make, yes=yes, dry_run=dry_run, json=json)
    with all_or_nothing(), showing_progress():
        result = run_restore(plan, table)
    render(Report(_facts(table, result), _restoration_lines(table, result)), json=json)


def _facts(table: str, result: CommitResult) -> dict[str, Any]:
    """Return the attributes of a result without the metrics, which `history` prints."""
    return {"table": table, **{name: value for name, value in asdict(result).items() if name != "metrics"}}


def _restoration_lines(table: str, result: RestoreResult) -> Iterator[str]:
    if result.version is None:
        yield f"{table}: already equal to version {result.restored}"
        return
    yield f"{table}: version {result.version} restores version {result.restored}"
    added = f"{count(result.files_added, 'file')} added, {size_text(result.bytes_added)}"
    yield f"{added}; {count(result.files_removed, 'file')} removed, {size_text(result.bytes_removed)}"


def vacuum(
    table: Table,
    retention_hours: Annotated[
        float | None,
        option("Keep files for this long. By default the table's property decides.", "HOURS", min=0),
    ] = None,
    enforce: Annotated[
        bool,
        option(
            "Reject hours below the table's retention.", names="--enforce-retention/--no-enforce-retention"
        ),
    ] = True,
    yes: Yes = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Delete files that no version within the retention period references, one week by default."""
    make = partial(plan_vacuum, handle(table), retention_hours, enforce_retention_duration=enforce)
    plan = confirm("vacuum", table, make, yes=yes, dry_run=dry_run, json=json)
    with all_or_nothing("nothing was deleted"), showing_progress():
        result = run_vacuum(plan, table)
    done = f"{table}: {count(len(result.files), 'file')} deleted, {size_text(result.bytes)}"
    render(Report(_facts(table, result), [done]), json=json)


def clean_up_log(table: Table, yes: Yes = False, dry_run: DryRun = False, json: Json = False) -> None:
    """Delete commits and checkpoints older than the retention of the log, 30 days by default."""
    make = partial(plan_log_cleanup, handle(table))
    plan = confirm("clean-up-log", table, make, yes=yes, dry_run=dry_run, json=json)
    with all_or_nothing("the remaining versions can be loaded"), showing_progress():
        result = run_log_cleanup(plan)
    done = f"{table}: {count(len(result.files), 'file')} of the log deleted, {size_text(result.bytes)}"
    remaining = f"; the log begins at version {result.first_version}" if result.files else ""
    render(Report({"table": table, **asdict(result)}, [done + remaining]), json=json)


def checkpoint(table: Table, json: Json = False) -> None:
    """Write a checkpoint of the latest version, so that readers load it faster.

    Commits write one every delta.checkpointInterval versions.
    """
    with all_or_nothing(), showing_progress():
        version = write_checkpoint(handle(table))
    done = f"{table}: checkpoint of version {version}"
    render(Report({"table": table, "version": version}, [done]), json=json)
