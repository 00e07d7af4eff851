"""Load a table for reading, and read rows from its files."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterable, Mapping
from typing import TypeAlias

import pyarrow as pa

from ..._options import OnConflict
from ..._progress import advance
from ...errors import error_location
from ...log.load import load_snapshot
from ...log.snapshot import Snapshot
from ...log.timestamps import Timestamp
from ...protocol import features
from ...protocol.schema.rules import check_consistent
from ...protocol.schema.widening import check_type_changes
from ...scan.plan import plan_rows
from ...scan.predicate import PruningPredicate
from ...scan.reader import FileEntry, TableReader
from ...storage.store import TableLocation
from .explanation import FileReport, ReadReport
from .query import Query

__all__ = ["RowBatches", "check_readable", "load_readable", "read_files"]

RowBatches: TypeAlias = Generator[pa.RecordBatch, None, None]
"""Rows that are read as they are requested; closing it stops the read."""

_LOGGER = logging.getLogger(__name__)


def load_readable(
    table: TableLocation | Snapshot,
    version: int | None,
    storage_options: Mapping[str, str] | None,
    timestamp: Timestamp | None = None,
) -> Snapshot:
    """Return a version of a table; raises the errors of `read_table` if this version cannot read it."""
    snapshot = load_snapshot(table, version, timestamp=timestamp, storage_options=storage_options)
    check_readable(snapshot)
    return snapshot


def check_readable(snapshot: Snapshot) -> None:
    """Raise UnsupportedFeatureError, ProtocolError or SchemaError if this version cannot read a table."""
    features.check_may_read(snapshot.protocol, snapshot.schema, snapshot.uri)
    check_consistent(snapshot.schema, snapshot.partition_columns)
    check_type_changes(snapshot.schema)


def read_files(
    snapshot: Snapshot,
    query: Query,
    files: Iterable[FileEntry],
    predicate: PruningPredicate,
    on_conflict: OnConflict = "error",
    report: ReadReport | None = None,
    *,
    ahead: bool = True,
) -> RowBatches:
    """Yield the matching rows of `files`, ignoring the files of the snapshot itself.

    Adds each opened file to `report`. Unless `ahead`, a file is opened after the rows of the one before.
    """
    table = TableReader.of(snapshot)
    for file in table.open_all(files) if ahead else map(table.open, files):
        rows = plan_rows(file, predicate)
        decoded = 0
        try:
            if rows.rows != []:
                for batch in file.read(query.inputs, rows.rows, on_conflict):
                    decoded += batch.num_rows
                    advance(rows=batch.num_rows)
                    with error_location(file=file.file.path):
                        result = query.result(batch)
                    if result.num_rows:
                        yield result
        finally:
            # A limit closes this generator in the middle of a file.
            if report is not None:
                report.files.append(FileReport(rows, file.native.bytes_read, decoded))
        _LOGGER.debug("read %s: %d rows decoded, %d bytes", file.file.path, decoded, file.native.bytes_read)
        advance(files=1)
