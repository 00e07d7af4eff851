"""The commands `convert`, `clone`, `export` and `migrate`, which make a table or files from existing ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import typer

from ..._text import count, size_text
from ...data_file.options import FileOptions
from ...operations.clone import clone as clone_table
from ...operations.convert import convert as convert_to_table
from ...operations.legacy import MigratedFile, Migration, migrate_legacy
from ..inputs import Intake
from ..interrupts import all_or_nothing
from ..options import (
    Columns,
    Compression,
    Json,
    ResidualRows,
    Table,
    TargetFileSize,
    Texts,
    Timestamp,
    Version,
    argument,
    handle,
    option,
    parse_columns,
    parse_pairs,
    parse_size,
)
from ..output import showing_progress
from ..report import Report, facts, headings, render
from .write import parse_shredding, report_of


def convert(
    source: Annotated[
        list[str], argument("SOURCE...", "A Delta table; or Parquet files, folders of them, globs and URIs.")
    ],
    table: Table,
    column: Annotated[
        Texts, option("A column of JSON text that becomes a Variant; repeatable.", "NAME")
    ] = None,
    partition_by: Annotated[Texts, option("Partition the table; as the source by default.", "COLUMN")] = None,
    table_property: Annotated[
        Texts, option("Set a property of the table; repeatable.", "KEY=VALUE", "--property")
    ] = None,
    shredding: Annotated[str, option("How to shred Variants, as in write.", "infer|none|SCHEMA")] = "infer",
    compression: Compression = None,
    target_file_size: TargetFileSize = "128MB",
    residual_rows: ResidualRows = "separate",
    json: Json = False,
) -> None:
    """Write the rows of Parquet files or a Delta table to a new table with shredded Variants.

    Folders such as day=2026-11-21 become partition columns. The source is not changed.
    """
    with all_or_nothing(), showing_progress() as meter:
        intake = Intake()
        result = convert_to_table(
            source,
            handle(table),
            variant_columns=column or (),
            partition_by=partition_by,
            configuration=parse_pairs("--property", table_property) or None,
            shredding=parse_shredding(shredding),
            files=FileOptions(parse_size(target_file_size), compression, residual_rows=residual_rows),
        )
    intake.bytes = meter.bytes
    render(report_of(table, result, intake, None), json=json)


def clone(
    table: Table,
    target: Annotated[str, argument("TARGET", "The path or URI of the new table.")],
    shallow: Annotated[
        bool, option("Refer to the files of the table instead of copying them.", names="--shallow")
    ] = False,
    version: Version = None,
    timestamp: Timestamp = None,
    json: Json = False,
) -> None:
    """Create a table with the rows, schema and properties of another table, without its history.

    Commands for a shallow clone need --storage-option allow_paths_outside_table=true. A vacuum of the table
    can delete files that a shallow clone needs.
    """
    with all_or_nothing(), showing_progress():
        result = clone_table(
            handle(table), handle(target), shallow=shallow, version=version, timestamp=timestamp
        )
    size = f"{count(result.files, 'file')}, {size_text(result.bytes)}"
    done = f"{target}: version {result.version} with version {result.cloned} of {table}, {size}"
    render(
        Report({"table": table, "target": target, **facts(result, "version cloned files bytes")}, [done]),
        json=json,
    )


def export(
    table: Table,
    target: Annotated[str, argument("TARGET", "The path or URI of the table to create or to refresh.")],
    column: Columns = None,
    no_strict: Annotated[
        bool, option("NULL for a value that cannot be cast to the type of its path.", names="--no-strict")
    ] = False,
    full_refresh: Annotated[
        bool, option("Export all files again, with the shredded paths of now.", names="--full-refresh")
    ] = False,
    json: Json = False,
) -> None:
    """Create or refresh an ordinary Delta table with the columns and the shredded paths of a table.

    Readers that know no Variants open it. Repeat the command to bring the target to the current version of
    the table: it reads new files only.
    """
    if column and no_strict:
        raise typer.BadParameter(
            "--no-strict is for the shredded paths: with --column, write try_cast(… as …)"
        )
    # Imported here, because other commands need no views.
    from ...views.export import export as export_table

    with all_or_nothing(), showing_progress():
        result = export_table(
            handle(table),
            handle(target),
            columns=parse_columns(column),
            strict=not no_strict,
            full_refresh=full_refresh,
        )
    if result.version is None:
        done = f"{target}: has version {result.exported} of {table} already"
    else:
        added = f"{count(result.files_added, 'file')} added, {size_text(result.bytes_added)}"
        done = f"{target}: version {result.version} with version {result.exported} of {table}, {added}"
        done += f", {count(result.files_removed, 'file')} removed"
    names = "version exported files_added files_rewritten files_removed bytes_added"
    render(Report({"table": table, "target": target, **facts(result, names)}, [done]), json=json)


def migrate(
    source: Annotated[str, argument("SOURCE", "A Parquet file in the older Spark layout, or a folder.")],
    target: Annotated[str, argument("TARGET", "A new file or folder, or an empty folder.")],
    shredding: Annotated[
        Literal["same", "infer", "none"], option("Keep the shredded paths, infer new ones, or shred nothing.")
    ] = "same",
    compat: Annotated[
        bool, option("Read contradictory columns as the legacy algorithm does.", names="--compat")
    ] = False,
    json: Json = False,
) -> None:
    """Rewrite files of the older Spark Variant layout in the current layout.

    Values, other columns, rows and file names stay the same. The source is not modified.
    """
    with all_or_nothing(), showing_progress():
        result = migrate_legacy(
            source, target, shredding=None if shredding == "none" else shredding, compat=compat
        )
    render(_report(source, target, result), json=json)


MAX_SHOWN_FILES = 24
FILES = headings("file, columns, rows: right, before: right, after: right")


def _report(source: str, target: str, result: Migration) -> Report:
    files = result.files
    json = {
        "source": source,
        "target": target,
        **{name: sum(getattr(file, name) for file in files) for name in ("rows", "bytes_before", "bytes")},
        "files": [facts(file, "path columns rows bytes_before bytes") for file in files],
        "others": result.others,
    }
    more = f"and {len(files) - MAX_SHOWN_FILES} more: --json lists all"
    return Report(
        json,
        _sentences(source, target, result),
        [(FILES, map(_cells, files[:MAX_SHOWN_FILES]))],
        more if len(files) > MAX_SHOWN_FILES else None,
    )


def _sentences(source: str, target: str, result: Migration) -> Iterator[str]:
    migrated = [file for file in result.files if file.columns]
    rows = count(sum(file.rows for file in migrated), "row")
    yield f"{target}: {count(len(migrated), 'file')} with {rows} in the current layout"
    if copied := len(result.files) - len(migrated):
        yield f"{count(copied, 'file')} had no column in the older layout: copied"
    if result.others:
        yield f"{count(len(result.others), 'file')} in {source} not .parquet: not copied"


def _cells(file: MigratedFile) -> tuple[str, ...]:
    sizes = (size_text(file.bytes_before), size_text(file.bytes))
    return file.path, ", ".join(file.columns) or "copied", f"{file.rows:,}", *sizes
