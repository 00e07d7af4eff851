"""The command `write`, and the report of what was written."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

import msgspec
import typer

from ..._text import count, fill, path_text, size_text
from ...data_file.options import FileOptions, JsonOptions, Shredding, WriteOptions
from ...errors import ArgumentTypeError
from ...execution import Description
from ...expressions.types import type_name
from ...log.commit_context import CommitOptions
from ...operations.read import read_table
from ...operations.write import write_table
from ...protocol.schema.arrow import from_arrow
from ...storage.store import open_latest
from ...variant.moments import UTC
from ...variant.shredding import ShreddingSchema
from ...write.commit import WriteResult
from ...write.preparation import TableOptions, WritePlan, WriteRequest, load_existing, plan_write
from ..confirmation import confirm
from ..inputs import Intake, first_rows, open_inputs
from ..interrupts import all_or_nothing
from ..options import (
    Compression,
    DryRun,
    Json,
    ResidualRows,
    Table,
    TargetFileSize,
    Text,
    Texts,
    TimeZone,
    VariantColumns,
    Yes,
    argument,
    handle,
    option,
    parse_pairs,
    parse_size,
)
from ..output import FINDINGS, showing_progress
from ..report import Report, facts, headings, json_lines, render


def write(
    inputs: Annotated[
        list[str],
        argument(
            "INPUT...",
            "Files of JSON, Parquet or CSV: paths, folders, globs, s3:// or https:// URIs, or - for "
            "JSON on standard input.",
        ),
    ],
    table: Table,
    mode: Annotated[
        Literal["error", "append", "overwrite", "ignore"], option("What to do if the table exists.")
    ] = "error",
    where: Annotated[Text, option("With --mode overwrite, replace only rows that match.", "SQL")] = None,
    partition_overwrite_mode: Annotated[
        Literal["static", "dynamic"],
        option("With --mode overwrite, dynamic replaces only the partitions that the input has."),
    ] = "static",
    column: Annotated[
        Text, option("The Variant column for the values of JSON files; value by default.", "NAME")
    ] = None,
    layout: Annotated[
        Literal["auto", "lines", "array", "documents"],
        option("How JSON files separate values; auto looks at their start.", names="--format"),
    ] = "auto",
    records: Annotated[
        Text,
        option("The field of JSON documents whose array has the values, or a path: $.data.items.", "FIELD"),
    ] = None,
    variant_column: VariantColumns = None,
    decimal: Annotated[Literal[".", ","], option("The decimal point of numbers in CSV.")] = ".",
    extract: Annotated[
        Texts,
        option(
            "Add a column of an SQL expression over --column, or _metadata.file_path, or set the type of "
            "a column of CSV, as in zip=zip::string; repeatable.",
            "NAME=SQL",
        ),
    ] = None,
    partition_by: Annotated[Texts, option("Partition a new table; repeatable.", "COLUMN")] = None,
    table_property: Annotated[
        Texts, option("Set a property of a new table; repeatable.", "KEY=VALUE", "--property")
    ] = None,
    shredding: Annotated[
        str,
        option(
            'Infer which paths to shred, shred none, or those of a JSON text or file, such as {"id": '
            '"bigint"}.',
            "infer|none|SCHEMA",
        ),
    ] = "infer",
    schema_mode: Annotated[
        Literal["merge", "overwrite"] | None, option("Add new columns to the schema, or replace the schema.")
    ] = None,
    on_invalid: Annotated[
        Literal["error", "reject", "null"],
        option("For invalid JSON: stop, write it to --rejects, or store NULL."),
    ] = "error",
    rejects: Annotated[Text, option("The file for rejected values and their reasons.", "FILE")] = None,
    floats: Annotated[
        Literal["decimal", "double"], option("The type of JSON numbers with a fraction.")
    ] = "decimal",
    duplicate_keys: Annotated[
        Literal["error", "last"],
        option("For duplicate names in an object: reject it, or use the last value."),
    ] = "error",
    compression: Compression = None,
    target_file_size: TargetFileSize = "128MB",
    residual_rows: ResidualRows = "separate",
    txn: Annotated[
        Text, option("Skip the write if the table has this version of the application.", "APP:VERSION")
    ] = None,
    metadata: Annotated[Text, option("User metadata of the commit, which history shows.", "TEXT")] = None,
    allow_empty: Annotated[
        bool, option("Accept input without any row, which is an error by default.", names="--allow-empty")
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
    if partition_overwrite_mode == "dynamic" and (mode != "overwrite" or where is not None):
        raise typer.BadParameter(
            "--partition-overwrite-mode dynamic requires --mode overwrite without --where"
        )
    properties = parse_pairs("--property", table_property)
    transaction = parse_transaction(txn)
    shredded = parse_shredding(shredding)
    files = FileOptions(parse_size(target_file_size), compression, residual_rows=residual_rows)
    read = partial(
        open_inputs,
        inputs,
        column,
        variant_column or (),
        allow_empty=allow_empty,
        layout=layout,
        records=records,
        columns=parse_pairs("--extract", extract),
        decimal=decimal,
        table=None if schema_mode == "overwrite" else handle(table),
    )

    def plan() -> WritePlan | Preview:
        store, data = open_latest(handle(table)), read(intake=Intake())
        columns = from_arrow(data.schema, variant_column or ())
        options = TableOptions(
            partition_by,
            schema_mode,
            properties or None,
            mode=mode,
            where=where,
            timezone=timezone,
            partition_overwrite_mode=partition_overwrite_mode,
        )
        request = WriteRequest(columns, WriteOptions(shredded, files), options)
        planned = plan_write(store, load_existing(store, mode), request, CommitOptions())
        nothing = planned.snapshot is not None and mode == "ignore"
        parsing = JsonOptions(floats=floats, duplicate_keys=duplicate_keys)
        return preview(planned, data, variant_column or (), parsing) if dry_run and not nothing else planned

    if dry_run or (mode == "overwrite" and not yes):
        confirm("write --mode overwrite", table, plan, yes=yes, dry_run=dry_run, json=json)
    with all_or_nothing(), showing_progress():
        intake = Intake()
        data = read(intake=intake)
        result = write_table(
            handle(table),
            data,
            mode=mode,
            schema_mode=schema_mode,
            partition_by=partition_by,
            where=where,
            partition_overwrite_mode=partition_overwrite_mode,
            timezone=timezone,
            shredding=shredded,
            variant_columns=variant_column or (),
            configuration=properties or None,
            files=files,
            json=JsonOptions(on_invalid, rejects, floats, duplicate_keys),
            commit=CommitOptions(txn=transaction, metadata=metadata),
        )
    render(report_of(table, result, intake, rejects), json=json)
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


SCHEMA = 'expected infer, none, a schema such as {"user": {"id": "bigint"}, "tags": ["string"]}, or its file'


def parse_shredding(text: str) -> Shredding:
    """Return how Variants are shredded. Raise BadParameter for text that is neither a schema nor a file."""
    if text in ("infer", "none"):
        return "infer" if text == "infer" else None
    if not text.lstrip().startswith(("{", "[", '"')):
        if not os.path.isfile(text):
            raise typer.BadParameter(f"--shredding: {SCHEMA}, got {text!r}")
        with open(text, encoding="utf-8") as file:
            text = file.read()
    try:
        return ShreddingSchema.of(msgspec.json.decode(text))
    except msgspec.DecodeError as error:
        raise typer.BadParameter(f"--shredding: {SCHEMA} ({error})") from error
    except (ArgumentTypeError, ValueError) as error:
        raise typer.BadParameter(f"--shredding: {error}") from error


SAMPLE_BYTES = 32 << 20
"""How much of the input a preview reads: files of this size have all the columns of larger ones."""

MAX_SHOWN_ROWS = 3


@dataclass(frozen=True)
class Preview:
    """A plan, and the result of writing the first rows to a table that is discarded.

    `rows` are some of them, and `rejects` some of the values that are not valid JSON.
    """

    plan: WritePlan
    sample: WriteResult
    rows: tuple[Any, ...]
    rejects: tuple[Mapping[str, Any], ...]

    def describe(self) -> Description:
        """Return what happens to the table, and what its first rows are like."""
        described, fills = self.plan.describe(), list(_fills(self.sample))
        sample = {
            **facts(self.sample, "rows invalid"),
            "shredded": fills,
            "first_rows": self.rows,
            "rejects": self.rejects,
        }
        lines = [f"a sample of {count(self.sample.rows, 'row')}, such as"]
        lines += [f"  {msgspec.json.encode(row).decode()}" for row in self.rows]
        if fills:
            lines.append("paths with a column")
            for each in sorted(fills, key=lambda each: -each.typed)[:MAX_SHOWN_PATHS]:
                path, kind, typed, _ = _cells(each, self.sample.rows)
                lines.append(f"  {path} {kind}, {typed}")
        if self.sample.invalid:
            lines.append(count(self.sample.invalid, "invalid value"))
            lines += [f"  {_location(each)}: {each['reason']}" for each in self.rejects]
        return Description((*described.sentences, *lines), {**described.facts, "sample": sample})


def preview(plan: WritePlan, data: Any, variants: Sequence[str], json: JsonOptions) -> Preview:
    """Return a plan with the result of a write of the first rows of the data."""
    with TemporaryDirectory(prefix="delta-variant-") as folder:
        table, rejects = os.path.join(folder, "table"), os.path.join(folder, "rejects")
        result = write_table(
            table,
            first_rows(data, SAMPLE_BYTES),
            partition_by=plan.after.partition_columns or None,
            timezone=plan.after.timezone,
            variant_columns=variants,
            shredding=plan.options.shredding,
            files=plan.options.files,
            json=replace(json, on_invalid="reject", rejects=rejects),
        )
        rows = json_lines(read_table(table).to_reader(), MAX_SHOWN_ROWS)
        shown = tuple(msgspec.Raw(line) for lines in rows for line in lines.splitlines())
        return Preview(plan, result, shown, tuple(_first_rejects(rejects)) if result.invalid else ())


def _first_rejects(path: str) -> Iterator[Mapping[str, Any]]:
    with open(path, "rb") as file:
        yield from map(msgspec.json.decode, islice(file, MAX_SHOWN_ROWS))


def _location(reject: Mapping[str, Any]) -> str:
    if "line" in reject:
        return f"{reject['file']}, line {reject['line']}, column {reject['column']}"
    return f"row {reject['row']}, byte {reject['byte']}"


MAX_SHOWN_PATHS = 24
PATHS = headings("shredded path: key, type, typed_value: right, value: right")


@dataclass(frozen=True)
class PathFill:
    """A shredded path in all files of a write: the number of values in `typed_value` and in `value`."""

    column: str
    path: tuple[str | None, ...]
    type: str
    typed: int
    values: int


def report_of(table: str, result: WriteResult, intake: Intake, rejects: str | None) -> Report:
    """Return the report of a write: its counts, and the shredded paths, the fullest first."""
    fills = list(_fills(result))
    json = {
        "table": table,
        **facts(result, "version rows"),
        "residual_rows": _residual_rows(result),
        **facts(result, "invalid rows_deleted rows_copied"),
        "rejects": rejects,
        "seconds": round(intake.seconds, 3),
        "bytes_in": intake.bytes,
        "bytes_out": _bytes_out(result),
        "files": [facts(file, "path rows bytes") for file in result.files],
        "shredded": fills,
    }
    rows = [_cells(each, result.rows) for each in sorted(fills, key=lambda each: -each.typed)]
    more = f"and {len(rows) - MAX_SHOWN_PATHS} more: delta-variant inspect {table} lists all paths"
    return Report(
        json,
        _sentences(table, result, intake, rejects),
        [(PATHS, rows[:MAX_SHOWN_PATHS])] if rows else (),
        more if len(rows) > MAX_SHOWN_PATHS else None,
    )


def _residual_rows(result: WriteResult) -> int:
    return sum(file.rows for file in result.files if file.is_residual)


def _bytes_out(result: WriteResult) -> int:
    return sum(file.bytes for file in result.files)


def _sentences(table: str, result: WriteResult, intake: Intake, rejects: str | None) -> Iterator[str]:
    if result.version is None:
        yield f"{table}: nothing was written"
        return
    rows, files = count(result.rows, "row"), count(len(result.files), "file")
    yield f"{table}: version {result.version}, {rows} in {files}"
    sizes = f"{size_text(intake.bytes)} in, {size_text(_bytes_out(result))} out"
    yield f"{sizes}, {intake.seconds:.1f} s, {result.rows / max(intake.seconds, 1e-6):,.0f} rows/s"
    if residual := _residual_rows(result):
        own = count(sum(file.is_residual for file in result.files), "file")
        yield f"{count(residual, 'residual row')} separated into {own}"
    if result.rows_deleted or result.rows_copied:
        copied = f", {count(result.rows_copied, 'row')} copied" if result.rows_copied else ""
        yield f"{count(result.rows_deleted, 'row')} replaced{copied}"
    if result.invalid:
        fate = f"rejected: see {rejects}" if rejects else "stored as NULL"
        yield f"{count(result.invalid, 'invalid value')} {fate}"


def _cells(each: PathFill, rows: int) -> tuple[str, ...]:
    filled = (fill(each.typed, rows, each.path), fill(each.values, rows, each.path))
    return path_text(each.column, each.path), each.type, *filled


def _fills(result: WriteResult) -> Iterator[PathFill]:
    """Yield the shredded paths of all files, once for each type of a path."""
    counts: defaultdict[tuple[Any, ...], list[int]] = defaultdict(lambda: [0, 0])
    for file in result.files:
        for column, paths in file.variants.items():
            for each in paths:
                total = counts[column, each.path, type_name(each.type)]
                total[0] += each.typed
                total[1] += each.values
    for (column, path, name), (typed, values) in counts.items():
        yield PathFill(column, path, name, typed, values)
