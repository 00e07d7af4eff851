"""The command `write`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from ...data_file.options import FileOptions, JsonOptions, WriteOptions
from ...log.commit_context import CommitOptions
from ...operations.write import write_table
from ...protocol.schema.arrow import from_arrow
from ...variant.moments import UTC
from ...write.preparation import TableOptions
from ..arguments import (
    DryRun,
    Json,
    ResidualRows,
    Table,
    TargetFileSize,
    Texts,
    TimeZone,
    Yes,
    parse_pairs,
    parse_size,
)
from ..common_options import storage_options
from ..confirmation import confirm, print_plan
from ..exit_codes import FINDINGS
from ..inputs import open_inputs
from ..interrupts import all_or_nothing
from ..plans import plan_overwrite, plan_write
from ..progress import Intake, showing_progress
from ..shredding_option import parse_shredding
from ..write_summary import WriteSummary

__all__ = ["write"]


def write(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT...",
            help="Files of JSON, Parquet or CSV: paths, folders, globs, s3:// or https:// URIs, or - for "
            "JSON on standard input.",
        ),
    ],
    table: Table,
    mode: Annotated[
        Literal["error", "append", "overwrite", "ignore"],
        typer.Option(help="What to do if the table exists."),
    ] = "error",
    where: Annotated[
        str | None,
        typer.Option(metavar="SQL", help="With --mode overwrite, replace only rows that match."),
    ] = None,
    column: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The Variant column for the values of JSON files; value by default."
        ),
    ] = None,
    variant_column: Annotated[
        Texts,
        typer.Option(
            "--variant-column",
            metavar="NAME",
            help="A column of JSON text in Parquet or CSV that becomes a Variant; repeatable.",
        ),
    ] = None,
    partition_by: Annotated[
        Texts,
        typer.Option("--partition-by", metavar="COLUMN", help="Partition a new table; repeatable."),
    ] = None,
    table_property: Annotated[
        Texts,
        typer.Option("--property", metavar="KEY=VALUE", help="Set a property of a new table; repeatable."),
    ] = None,
    shredding: Annotated[
        str,
        typer.Option(
            metavar="infer|none|SCHEMA",
            help='Infer which paths to shred, shred none, or those of a JSON text or file, such as {"id": '
            '"bigint"}.',
        ),
    ] = "infer",
    schema_mode: Annotated[
        Literal["merge", "overwrite"] | None,
        typer.Option(help="Add new columns to the schema, or replace the schema."),
    ] = None,
    on_invalid: Annotated[
        Literal["error", "reject", "null"],
        typer.Option(help="For invalid JSON: stop, write it to --rejects, or store NULL."),
    ] = "error",
    rejects: Annotated[
        str | None, typer.Option(metavar="FILE", help="The file for rejected values and their reasons.")
    ] = None,
    floats: Annotated[
        Literal["decimal", "double"], typer.Option(help="The type of JSON numbers with a fraction.")
    ] = "decimal",
    duplicate_keys: Annotated[
        Literal["error", "last"],
        typer.Option(help="For duplicate names in an object: reject it, or use the last value."),
    ] = "error",
    compression: Annotated[
        Literal["zstd", "snappy", "gzip", "lz4", "none"] | None,
        typer.Option(help="The compression of data files; by default that of the table, or zstd."),
    ] = "zstd",
    target_file_size: TargetFileSize = "128MB",
    residual_rows: ResidualRows = "separate",
    txn: Annotated[
        str | None,
        typer.Option(
            metavar="APP:VERSION", help="Skip the write if the table has this version of the application."
        ),
    ] = None,
    metadata: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="User metadata of the commit, which history shows."),
    ] = None,
    allow_empty: Annotated[
        bool,
        typer.Option("--allow-empty", help="Accept input without any row, which is an error by default."),
    ] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    json: Json = False,
    timezone: TimeZone = UTC,
) -> None:
    """Write JSON, Parquet or CSV to a Delta table with one commit.

    .gz, .zst, .xz and .bz2 are decompressed. Exit status 1 means that values were rejected or stored as NULL.
    """
    if (on_invalid == "reject") != (rejects is not None):
        raise typer.BadParameter(
            "--on-invalid reject and --rejects FILE require each other: pass both, or neither"
        )
    if mode != "overwrite" and (where is not None or schema_mode == "overwrite"):
        raise typer.BadParameter("--where and --schema-mode overwrite require --mode overwrite")
    properties = parse_pairs("--property", table_property)
    transaction = parse_transaction(txn)
    shredded = parse_shredding(shredding)
    files = FileOptions(parse_size(target_file_size), compression, residual_rows=residual_rows)
    if mode == "overwrite" and not dry_run:
        confirm("write --mode overwrite", lambda: plan_overwrite(table, where, timezone), yes=yes)
    with all_or_nothing(), showing_progress() as meter:
        intake = Intake(meter)
        data = open_inputs(inputs, column, variant_column or (), allow_empty=allow_empty, intake=intake)
        if dry_run:
            options = TableOptions(
                partition_by, schema_mode, properties or None, mode=mode, where=where, timezone=timezone
            )
            columns = from_arrow(data.schema, variant_column or ())
            print_plan(plan_write(table, columns, WriteOptions(shredded, files), options), json=json)
            return
        result = write_table(
            table,
            data,
            mode=mode,
            schema_mode=schema_mode,
            partition_by=partition_by,
            where=where,
            timezone=timezone,
            shredding=shredded,
            variant_columns=variant_column or (),
            configuration=properties or None,
            files=files,
            json=JsonOptions(on_invalid, rejects, floats, duplicate_keys),
            commit=CommitOptions(txn=transaction, metadata=metadata),
            storage_options=storage_options(),
        )
    summary = WriteSummary(table, result, intake, rejects)
    if json:
        summary.print_json()
    else:
        summary.print_text()
    if result.invalid:
        raise typer.Exit(FINDINGS)


def parse_transaction(text: str | None) -> tuple[str, int] | None:
    """Return the application id and the version in APP:VERSION. Raise BadParameter for another text."""
    if text is None:
        return None
    app_id, colon, version = text.rpartition(":")
    if not colon or not app_id or not version.isdecimal():
        raise typer.BadParameter(f"invalid --txn {text!r}: expected APP:VERSION, such as loader:7")
    return app_id, int(version)
