"""Parquet files whose Variants are in the draft's layout."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from ... import _native
from ...data_file.options import Compression, WriteOptions
from ...data_file.reader import Draft, Projection, naming, open_file, read
from ...data_file.writer import Fault, FileSeries, WrittenFile
from ...errors import DataFileError, ShreddingError
from ...log.load import load_snapshot
from ...protocol import features
from ...storage.store import local_location, open_store
from ...variant.shredding import ShreddingSchema
from .columns import shred_draft
from .staging import staged

__all__ = [
    "DraftFile",
    "FilePath",
    "batches_of",
    "open_draft",
    "read_draft_file",
    "write_draft_file",
    "write_file",
]

FilePath: TypeAlias = "str | PathLike[str]"


@dataclass(frozen=True)
class DraftFile:
    """A Parquet file that may have Variants in the draft's layout; `name` is relative to `folder`.

    `schema` is that of its rows, with Variants in place of the draft's groups. `columns` are those that have
    such groups, and `schemas` the shredding schemas of those that are one.
    """

    folder: Path
    name: str
    rows: int
    schema: pa.Schema
    columns: tuple[str, ...]
    schemas: Mapping[str, ShreddingSchema]

    @property
    def path(self) -> Path:
        """Return where the file is."""
        return self.folder / self.name


def open_draft(folder: Path, name: str) -> DraftFile:
    """Return what the footer says.

    Raises DataFileError, and ShreddingError for columns that break the rules of the draft.
    """
    file = open_file(open_store(folder), name)
    before = list(file.schema)
    with naming(name):
        after = [_native.legacy_column(field) for field in before]
    return DraftFile(
        folder,
        name,
        file.num_rows,
        pa.schema([field for field, _ in after]),
        tuple(old.name for old, (new, _) in zip(before, after, strict=True) if not new.equals(old)),
        {field.name: ShreddingSchema(schema) for field, schema in after if schema is not None},
    )


def batches_of(file: DraftFile, *, compat: bool) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the rows of a file, its Variants put together, as one batch at least."""
    batches = _batches(file, "compat" if compat else "strict")
    first = next(batches, None)
    if first is None:
        first = pa.RecordBatch.from_pylist([], schema=file.schema)
    return first.schema, chain([first], batches)


def _batches(file: DraftFile, draft: Draft) -> Iterator[pa.RecordBatch]:
    projections = [Projection(field, (field.name,)) for field in file.schema]
    opened = open_file(open_store(file.folder), file.name)
    for batch in read(opened, file.name, projections, draft=draft):
        # The kernel gives every column as nullable; whether it is the file knows.
        own = zip(batch.schema, file.schema, strict=True)
        schema = pa.schema([field.with_nullable(known.nullable) for field, known in own])
        yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def read_draft_file(path: FilePath, *, compat: bool = False) -> pa.RecordBatchReader:
    """Return the rows of a Parquet file, with Variants in place of the columns of the draft.

    Raises DataFileError for a file without any, and else what `unshred_draft` raises, naming file and row.
    """
    local = local_location("a file of the older Spark draft", path).absolute()
    file = open_draft(local.parent, local.name)
    if not file.columns:
        raise DataFileError(f"{path} has no column in the layout of the older Spark draft")
    return pa.RecordBatchReader.from_batches(*batches_of(file, compat=compat))


def write_draft_file(
    path: FilePath,
    data: Any,
    shredding: Mapping[str, ShreddingSchema],
    *,
    compression: Compression = "zstd",
) -> WrittenFile:
    """Write Arrow data to a new Parquet file, the Variants that `shredding` names in the draft's layout.

    Engines do not read such a file any more; it is for tests of those that should. Raises ShreddingError
    within a Delta table that supports `variantShredding`, which allows the present layout only (PROTOCOL.md,
    "Variant Shredding"), and DataFileError for a path that is taken.
    """
    target = local_location("a file of the older Spark draft", path).absolute()
    if target.exists():
        raise DataFileError(f"{target} exists already: name a file that does not")
    _check_no_shredding_table(target)
    reader = pa.RecordBatchReader.from_stream(data)
    if missing := set(shredding) - set(reader.schema.names):
        raise ValueError(f"the data has no column {', '.join(sorted(missing))}")
    none = pa.RecordBatch.from_pylist([], schema=reader.schema)
    batches = (_with_draft(batch, shredding) for batch in chain([none], reader))
    with staged(target) as staging:
        options = WriteOptions(shredding=None, compression=compression)
        written = write_file(staging, target.name, batches, (), options)
        os.link(staging / target.name, target)
    return written


def _check_no_shredding_table(path: Path) -> None:
    tables = [folder for folder in path.parents if (folder / "_delta_log").is_dir()]
    for table in tables:
        if features.shredding_supported(load_snapshot(table).protocol):
            raise ShreddingError(
                f"{table} is a Delta table with variantShredding, which allows no file in the layout of the "
                "older Spark draft: add rows to it with write_table"
            )


def _with_draft(batch: pa.RecordBatch, shredding: Mapping[str, ShreddingSchema]) -> pa.RecordBatch:
    for name, schema in shredding.items():
        column = shred_draft(batch.column(name), schema)
        # Without the name of the Variant extension: the annotation VARIANT stands for the present layout.
        field = pa.field(name, column.type, batch.schema.field(name).nullable)
        batch = batch.set_column(batch.schema.get_field_index(name), field, column)
    return batch


def write_file(
    folder: Path,
    name: str,
    batches: Iterable[pa.RecordBatch],
    variants: Iterable[str],
    options: WriteOptions,
) -> WrittenFile:
    """Write batches, one at least, to one file."""
    options = replace(options, target_file_size=sys.maxsize)
    series = FileSeries[None](open_store(folder), lambda: name, options, None, tuple(variants), _no_faults)
    for batch in batches:
        series.add(batch, None)
    (written,) = series.close()
    return written


def _no_faults(_context: None, _batch: pa.RecordBatch, _faults: list[Fault]) -> None:
    """Do nothing: only JSON text has faults."""
