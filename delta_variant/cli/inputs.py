"""Open the input of `write` and `merge`: files of JSON, Parquet or CSV."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa
import typer

from ..errors import SourceError
from ..input.json_lines import JSON_SUFFIXES, Format, JsonLines, Origin, read_json
from ..input.tabular_files import open_csv, open_parquet
from ..storage.inputs import InputFile, list_inputs, total_size
from .options import storage_options
from .progress import Intake

__all__ = ["open_inputs"]

STANDARD_INPUT = "-"
SUFFIXES = {
    "Parquet": (".parquet",),
    "CSV": (".csv", ".csv.gz", ".csv.zst", ".csv.bz2"),
    "JSON": JSON_SUFFIXES,
}
EMPTY = "the input contains no values: check the program that produced it, or pass --allow-empty"


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
) -> Any:
    """Return the rows of inputs as an Arrow stream: paths, globs, folders, URIs, or - for standard input.

    The values of JSON files are in one column; `layout`, `records` and `columns` are those of `read_json`.
    Raise SourceError for inputs of several formats, and BadParameter for an option that does not belong to
    their format.
    """
    formats = [(text, _files(text)) for text in inputs]
    kinds = {_kind(file) for _, files in formats for file in files or ()}
    kinds |= {"JSON"} if any(files is None for _, files in formats) else set()
    if len(kinds) > 1:
        names = " and ".join(sorted(kinds))
        raise SourceError(f"cannot read {names} files as one input: write one format at a time")
    files = [file for _, found in formats for file in found or ()]
    if kinds == {"JSON"}:
        if variant_columns:
            raise typer.BadParameter("--variant-column is for Parquet and CSV; --column names that of JSON")
        sources: list[Any] = []
        for _, found in formats:
            sources += [sys.stdin.buffer] if found is None else found
        return _json(
            read_json(
                sources,
                column=column or "value",
                format=layout,
                records=records,
                columns=columns,
                progress=intake.update,
            ),
            allow_empty=allow_empty,
            intake=intake,
        )
    if column is not None:
        raise typer.BadParameter("--column is for JSON; pass --variant-column for each column of JSON text")
    if layout != "auto" or records is not None:
        raise typer.BadParameter("--format and --records are for JSON")
    reader = open_parquet(files) if kinds == {"Parquet"} else open_csv(files, variant_columns)
    return _counted(reader, total_size(files), allow_empty=allow_empty, intake=intake)


def _files(text: str) -> list[InputFile] | None:
    """Return the files of an input, None for standard input."""
    if text == STANDARD_INPUT:
        return None
    suffixes = [suffix for group in SUFFIXES.values() for suffix in group]
    return list_inputs([text], suffixes, storage_options())


def _kind(file: InputFile) -> str:
    name = file.path.lower()
    return next((kind for kind, suffixes in SUFFIXES.items() if name.endswith(suffixes)), "JSON")


def _json(lines: JsonLines, *, allow_empty: bool, intake: Intake) -> JsonLines:
    intake.begin(lines.size)
    return lines if allow_empty else NotEmpty(**vars(lines))


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
