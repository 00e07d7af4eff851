"""The command `convert`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from ...data_file.options import FileOptions
from ...operations.convert import convert as convert_to_table
from ..arguments import Json, ResidualRows, Table, TargetFileSize, Texts, parse_pairs, parse_size
from ..common_options import storage_options
from ..interrupts import all_or_nothing
from ..progress import Intake, showing_progress
from ..shredding_option import parse_shredding
from ..write_summary import WriteSummary

__all__ = ["convert"]


def convert(
    source: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="A Delta table; or Parquet files, folders of them, globs and URIs.",
        ),
    ],
    table: Table,
    column: Annotated[
        Texts,
        typer.Option(
            "--column", metavar="NAME", help="A column of JSON text that becomes a Variant; repeatable."
        ),
    ] = None,
    partition_by: Annotated[
        Texts,
        typer.Option(
            "--partition-by", metavar="COLUMN", help="Partition the table; as the source by default."
        ),
    ] = None,
    table_property: Annotated[
        Texts,
        typer.Option("--property", metavar="KEY=VALUE", help="Set a property of the table; repeatable."),
    ] = None,
    shredding: Annotated[
        str, typer.Option(metavar="infer|none|SCHEMA", help="How to shred Variants, as in write.")
    ] = "infer",
    compression: Annotated[
        Literal["zstd", "snappy", "gzip", "lz4", "none"] | None,
        typer.Option(help="The compression of data files; by default that of the table, or zstd."),
    ] = "zstd",
    target_file_size: TargetFileSize = "128MB",
    residual_rows: ResidualRows = "separate",
    json: Json = False,
) -> None:
    """Write the rows of Parquet files or a Delta table to a new table with shredded Variants.

    Folders such as day=2026-11-21 become partition columns. The source is not changed.
    """
    with all_or_nothing(), showing_progress() as meter:
        intake = Intake(meter)
        result = convert_to_table(
            source,
            table,
            variant_columns=column or (),
            partition_by=partition_by,
            configuration=parse_pairs("--property", table_property) or None,
            shredding=parse_shredding(shredding),
            files=FileOptions(parse_size(target_file_size), compression, residual_rows=residual_rows),
            storage_options=storage_options(),
        )
    intake.bytes = meter.bytes
    summary = WriteSummary(table, result, intake, None)
    if json:
        summary.print_json()
    else:
        summary.print_text()
