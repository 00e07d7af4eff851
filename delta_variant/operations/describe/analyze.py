"""Read all rows of a table once, and keep sketches of each data file for `describe`.

The records are in a folder at the root of the table. Its name starts with `_`, so that it cannot have data
files (PROTOCOL.md, "Data Files"), and the vacuums of Spark and deltalake skip it. In `_delta_log`, the
records would lengthen the listings of the log: object stores list all levels of folders.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256

import msgspec
import pyarrow as pa

from ..._progress import advance, begin
from ..._threads import Threads
from ...errors import DataFileError, error_location
from ...log.load import load_with_tombstones
from ...log.snapshot import Snapshot
from ...protocol.schema import json_text
from ...protocol.schema.column_mapping import physical_name
from ...read.file_reader import FileEntry, TableReader, files_of
from ...read.query import Query
from ...storage.store import TableLocation, delete_all, list_files, open_latest, put, read_if_present
from .exact import MAX_FILES
from .sample import Path
from .sketches import SCHEMA, Figures, Sketches, merge
from .summary import PathSummary

FOLDER = "_delta_variant_sketches"
FORMAT = 1
"""The format of the records. Another one makes other names, so that all files are analyzed again."""
RECORDS_AT_ONCE = 8


@dataclass(frozen=True)
class Analysis:
    """The result of `analyze`.

    Attributes:
        version: The version of the table whose files are analyzed.
        files: The paths of the files that were read, because they had not been analyzed before.
        known: The number of the other files of the version.
        dropped: The number of records that were deleted, because no recent version has their files.

    Example:
        >>> import delta_variant as dv
        >>> _ = dv.write_table("clicks", [{"id": 1}])
        >>> result = dv.analyze("clicks")
        >>> result.version, len(result.files), result.known, result.dropped
        (0, 1, 0, 0)
    """

    version: int
    files: tuple[str, ...]
    known: int
    dropped: int


def analyze(table: TableLocation) -> Analysis:
    """Read the files of a table that were not analyzed before, so that `describe` knows all rows.

    Keeps a record of each data file in the folder `_delta_variant_sketches` of the table: for each column and
    each path of a Variant outside of arrays, its number of values and nulls, the 1,024 least hashes of its
    values, and 128 values of a random sample. Data files do not change, so that the next call reads only new
    files, those with other deletion vectors, and all of them after a change of the schema. Nothing is
    committed. Interrupted calls keep the records of the files that they have read.

    Args:
        table: A path, a URI, a `Table` or a `deltalake.DeltaTable`.

    Returns:
        An `Analysis` with the files that were read.

    Raises:
        TableNotFoundError: There is no table at this location.
        UnsupportedFeatureError: This version cannot read the table.
        DataFileError: A file cannot be read.
        StoreError: A record cannot be written.

    Example:
        >>> import delta_variant as dv
        >>> events = dv.Table("events")
        >>> _ = events.append([{"v": {"n": n % 4}} for n in range(20_000)], variant_columns=["v"])
        >>> len(events.analyze().files), events.analyze().known
        (1, 1)
        >>> path = events.describe().paths[1]
        >>> path.path, path.distinct, "distinct" in path.exact, path.deciles[0]
        ('v:n', 4, True, '0')
    """
    store = open_latest(table)
    # A record that is listed before the version is loaded is not of a later version.
    stored = set(list_files(store, FOLDER))
    snapshot, tombstones = load_with_tombstones(store)
    snapshot.configuration.check_may_read()
    files = dict(zip(_record_paths(snapshot, snapshot.files), files_of(snapshot.files), strict=True))
    new = {record: file for record, file in files.items() if record not in stored}
    begin("analyzing", files=len(new), bytes_=sum(file.size or 0 for file in new.values()))
    reader = TableReader.of(snapshot)
    with Threads(os.cpu_count() or 1) as threads:
        records = threads.map(lambda file: _record_of(reader, file), new.values())
        for (path, file), data in zip(new.items(), records, strict=True):
            put(store, path, data)
            advance(files=1, bytes_=file.size or 0)
    unused = stored.difference(files, _record_paths(snapshot, tombstones))
    delete_all(store, sorted(unused))
    paths = tuple(file.path for file in new.values())
    return Analysis(snapshot.version, paths, len(files) - len(new), len(unused))


def _record_paths(snapshot: Snapshot, files: pa.Table) -> Iterator[str]:
    """Yield the path of the record of each file, or tombstone, with its deletion vector and this schema."""
    schema = json_text.to_json(snapshot.configuration.physical_schema)
    for batch in files.select(["path", "deletion_vector"]).to_batches():
        for row in batch.to_pylist():
            text = msgspec.json.encode([FORMAT, row["path"], row["deletion_vector"], schema])
            yield f"{FOLDER}/{sha256(text).hexdigest()[:32]}.arrow"


def _record_of(reader: TableReader, entry: FileEntry) -> bytes:
    """Return the record of a data file as an Arrow stream."""
    table = reader.version.configuration
    query = Query.of(table, None, None)
    sketches = Sketches(query.schema)
    with error_location(file=entry.path):
        for batch in reader.open(entry).read(query.inputs, None, "error"):
            sketches.add(query.result(batch))
    names = {field.name: physical_name(field, table.mapping_mode) for field in table.schema.fields}
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(sketches.record(names))
    return sink.getvalue().to_pybytes()


def with_analyzed_figures(
    snapshot: Snapshot, found: Iterable[tuple[tuple[str, Path], PathSummary]]
) -> Iterator[tuple[tuple[str, Path], PathSummary]]:
    """Yield summaries with the figures of all rows, if all files of the version are analyzed."""
    records = _records(snapshot) if 0 < snapshot.num_files <= MAX_FILES else []
    mode = snapshot.configuration.mapping_mode
    names = {field.name: physical_name(field, mode) for field in snapshot.schema.fields}
    figures = dict(merge(records)) if records else {}
    for (name, path), summary in found:
        own = figures.get((names[name], path))
        if own is not None:
            summary = _with_figures(summary, own, figures[names[name], ()].rows)
        yield (name, path), summary


def _records(snapshot: Snapshot) -> list[pa.Table]:
    """Return the records of all files of a version, none if a file has none."""
    paths = set(_record_paths(snapshot, snapshot.files))
    if not paths.issubset(list_files(snapshot.store, FOLDER)):
        return []
    with Threads(RECORDS_AT_ONCE) as threads:
        # An `analyze` of a later version may delete them now.
        data = list(threads.map(lambda path: read_if_present(snapshot.store, path), sorted(paths)))
    present = [each for each in data if each is not None]
    try:
        records = [pa.ipc.open_stream(each).read_all() for each in present]
    except (pa.ArrowException, OSError) as error:
        message = f"cannot read the records in {FOLDER}: delete the folder, and analyze the table again"
        raise DataFileError(f"{message} ({error})").at(table=snapshot.uri) from error
    return records if len(records) == len(data) else []


def _with_figures(summary: PathSummary, own: Figures, rows: int) -> PathSummary:
    exact = ("filled", "nulls", "distinct") if own.is_exact else ("filled", "nulls")
    return replace(
        summary,
        filled=own.values / rows if rows else 0.0,
        nulls=own.nulls / rows if rows else 0.0,
        distinct=summary.distinct if "distinct" in summary.exact else own.distinct,
        deciles=own.deciles,
        exact=tuple(dict.fromkeys((*summary.exact, *exact))),
    )
