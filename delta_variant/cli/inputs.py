"""Open the input of `write` and `merge`: files of JSON, Parquet or CSV."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, takewhile
from typing import Any, Literal

import pyarrow as pa
import typer

from .._progress import advance, begin
from ..errors import SourceError, TableNotFoundError
from ..input.files import kind_of, list_files, open_csv, open_parquet
from ..input.json_lines import Format, JsonLines, Origin, read_json
from ..log.load import load_latest
from ..protocol.types import StructType
from ..storage.inputs import InputFile, total_size
from ..storage.store import TableLocation
from .options import storage_options

STANDARD_INPUT = "-"
EMPTY = "the input contains no values: check the program that produced it, or pass --allow-empty"


class Intake:
    """Counts the input of a write."""

    def __init__(self) -> None:
        self.bytes = 0
        self.rows = 0
        self.started = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    def begin(self, size: int | None) -> None:
        """Show the counts of JSON input of `size` bytes; Parquet and CSV report their progress themselves."""
        begin("writing", bytes_=size)

    def update(self, bytes_read: int, rows: int) -> None:
        """Record the totals so far."""
        advance(bytes_=bytes_read - self.bytes, rows=rows - self.rows)
        self.bytes, self.rows = bytes_read, rows


@dataclass(frozen=True)
class NotEmpty(JsonLines):
    """JSON files with at least one value in total."""

    def batches(self) -> Iterator[tuple[pa.RecordBatch, Origin]]:
        """Yield the values. Raise SourceError at the end if there were none."""
        is_empty = True
        for batch in super().batches():
            is_empty = False
            yield batch
        if is_empty:
            raise SourceError(EMPTY)


@dataclass(frozen=True)
class Head(JsonLines):
    """The first values of JSON files."""

    head_bytes: int = 0

    def batches(self) -> Iterator[tuple[pa.RecordBatch, Origin]]:
        """Yield the values of about the first `head_bytes` bytes."""
        remaining = self.head_bytes
        for batch, origin in super().batches():
            yield batch, origin
            remaining -= batch.nbytes
            if remaining <= 0:
                return


def first_rows(data: Any, size: int) -> Any:
    """Return about the first `size` bytes of the rows that `open_inputs` returned."""
    if isinstance(data, JsonLines):
        return Head(**vars(data), head_bytes=size)
    sizes: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in takewhile(lambda _: sum(sizes) < size, data):
            sizes.append(batch.nbytes)
            yield batch

    return pa.RecordBatchReader.from_batches(data.schema, batches())


def open_inputs(
    inputs: Sequence[str],
    column: str | None,
    variant_columns: Sequence[str],
    *,
    allow_empty: bool,
    intake: Intake,
    layout: Format = "auto",
    records: str | None = None,
    columns: Mapping[str, str] | None = None,
    decimal: Literal[".", ","] = ".",
    table: TableLocation | None = None,
) -> Any:
    """Return the rows of inputs as an Arrow stream: paths, globs, folders, URIs, or - for standard input.

    The values of JSON files are in one column; the other options are those of `read_json` and `read_csv`.
    The rows of Parquet and CSV are for `table`, or for any table.
    Raise SourceError for inputs of several formats, and BadParameter for an option that does not belong to
    their format.
    """
    sources: list[Any] = []
    for text in inputs:
        sources += [sys.stdin.buffer] if text == STANDARD_INPUT else list_files(text, storage_options())
    files = [source for source in sources if isinstance(source, InputFile)]
    kind = kind_of(files)
    if kind != "CSV" and decimal != ".":
        raise typer.BadParameter("--decimal is for CSV")
    if kind != "JSON" and len(files) < len(sources):
        raise SourceError(f"cannot read {kind} files and standard input, which is JSON, as one input")
    if kind == "JSON":
        if variant_columns:
            raise typer.BadParameter("--variant-column is for Parquet and CSV; --column names that of JSON")
        lines = read_json(
            sources,
            column=column or "value",
            format=layout,
            records=records,
            columns=columns,
            progress=intake.update,
        )
        intake.begin(lines.size)
        return lines if allow_empty else NotEmpty(**vars(lines))
    if column is not None:
        raise typer.BadParameter("--column is for JSON; pass --variant-column for each column of JSON text")
    if layout != "auto" or records is not None:
        raise typer.BadParameter("--format and --records are for JSON")
    known = None if table is None else _columns_of(table)
    if kind == "Parquet":
        reader = open_parquet(files, variant_columns, columns=columns, known=known)
    else:
        reader = open_csv(files, variant_columns, columns=columns, decimal=decimal, known=known)
    return _counted(reader, total_size(files), allow_empty=allow_empty, intake=intake)


def _columns_of(table: TableLocation) -> StructType | None:
    try:
        return load_latest(table).schema
    except TableNotFoundError:
        return None


def _counted(
    reader: pa.RecordBatchReader, size: int | None, *, allow_empty: bool, intake: Intake
) -> pa.RecordBatchReader:
    """Return a reader that counts its rows. Raise SourceError if there are none."""
    first = next((batch for batch in reader if batch.num_rows), None)
    if first is None and not allow_empty:
        raise SourceError(EMPTY)
    intake.bytes = size or 0

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in chain(() if first is None else (first,), reader):
            intake.rows += batch.num_rows
            yield batch

    return pa.RecordBatchReader.from_batches(reader.schema, batches())
