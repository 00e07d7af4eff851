"""The rows of a table's files, of a table that can be read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import pyarrow as pa

from ..._options import OnConflict
from ...errors import CastError
from ...log.load import load_snapshot
from ...log.snapshot import Snapshot
from ...log.timestamps import Timestamp
from ...protocol import features
from ...protocol.schema.rules import check_consistent
from ...protocol.schema.widening import check_type_changes
from ...scan.plan import plan_rows
from ...scan.predicate import PruningPredicate
from ...scan.reader import FileEntry, FileReader, TableReader
from ...storage.store import TableLocation
from .explanation import FileReport
from .query import Query

__all__ = ["check_readable", "load_readable", "read_files"]


def load_readable(
    table: TableLocation | Snapshot,
    version: int | None,
    storage_options: Mapping[str, str] | None,
    timestamp: Timestamp | None = None,
) -> Snapshot:
    """Return a table as it was; raises what `read_table` does for one that this version cannot read."""
    if isinstance(table, Snapshot):
        if version is not None or timestamp is not None:
            raise ValueError("a Snapshot is of one version: give the table's path to read another")
        snapshot = table
    else:
        snapshot = load_snapshot(table, version, timestamp=timestamp, storage_options=storage_options)
    check_readable(snapshot)
    return snapshot


def check_readable(snapshot: Snapshot) -> None:
    """Raise UnsupportedFeatureError, ProtocolError or SchemaError for what this version cannot read."""
    features.check_may_read(snapshot.protocol, snapshot.schema, snapshot.uri)
    check_consistent(snapshot.schema, snapshot.partition_columns)
    check_type_changes(snapshot.schema)


def read_files(
    snapshot: Snapshot,
    query: Query,
    files: Iterable[FileEntry],
    predicate: PruningPredicate,
    on_conflict: OnConflict = "error",
    reports: list[FileReport] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the wanted rows of some files of a snapshot, whose own list of files is not looked at.

    What reading them took is added to `reports`, file by file.
    """
    table = TableReader.of(snapshot)
    for file in table.open_all(files):
        rows = plan_rows(file, predicate)
        decoded = 0
        if rows.rows != []:
            for batch in file.read(query.inputs, rows.rows, on_conflict):
                decoded += batch.num_rows
                with _naming(file):
                    result = query.result(batch)
                if result.num_rows:
                    yield result
        if reports is not None:
            reports.append(FileReport(rows, file.native.bytes_read, decoded))


@contextmanager
def _naming(file: FileReader) -> Iterator[None]:
    try:
        yield
    except CastError as error:
        raise CastError(f"{file.file.path}: {error}") from error
