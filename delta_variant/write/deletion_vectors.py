"""Mark deleted rows of data files by deletion vectors, so that the files stay as they are.

See PROTOCOL.md, "Deletion Vectors" and "Deletion Vector Format".
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import uuid4

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import Array
from ..log.deletion_vectors import FILE_VERSION, SIZE_BYTES, add_rows
from ..log.file_tables import add_actions
from ..protocol import z85
from ..protocol.actions import AddFile, DeletionVector, decode_path
from ..protocol.statistics import decode_or_empty
from ..read.file_reader import FileReader, load_deleted
from ..storage.store import Store, discard, put

MOST_DELETED = 0.5
"""The share of the rows of a file up to which they are marked. A file with more deleted rows is rewritten, so
that a scan reads at most twice the rows that it returns."""


def prefers_vector(file: FileReader, count: int, *, removes: bool) -> bool:
    """Return whether to mark `count` more rows of a file instead of rewriting it.

    If the change only `removes` rows, and the table has a change data feed, always: rows that vectors delete
    are changes without change data files.
    """
    table, vector = file.table.version.configuration, file.file.deletion_vector
    if not table.enables("deletionVectors"):
        return False
    deleted = count + (0 if vector is None else int(vector["cardinality"]))
    is_few = deleted <= MOST_DELETED * file.native.num_rows
    return is_few or (removes and table.enables("changeDataFeed"))


FILE_BYTES = 64 << 20
"""The size from which a file of vectors is written: it is in memory until then, and offsets have 32 bits."""


@dataclass(frozen=True)
class MarkedFile:
    """A data file with a new deletion vector, and the number of its rows, deleted ones included."""

    path: str
    vector: DeletionVector
    num_records: int


class VectorWriter:
    """Writes the vectors of many data files to few files of the table.

    No vector is in the log: VACUUM of Delta 4.4 on Spark fails for a table that has one there.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._written: list[str] = []
        self._begin()

    def _begin(self) -> None:
        self._uuid = uuid4()
        self._content = bytearray([FILE_VERSION])

    def mark(self, file: FileReader, rows: Array) -> MarkedFile:
        """Return a file with rows deleted by their numbers, in addition to those that are deleted before."""
        table = file.table
        deleted = load_deleted(table.version, file.file.deletion_vector, table.vectors.read)
        return MarkedFile(file.file.path, self.add(*add_rows(deleted, rows)), file.native.num_rows)

    def add(self, data: bytes, count: int) -> DeletionVector:
        """Return the descriptor of a serialized vector of `count` rows."""
        size = {"size_in_bytes": len(data), "cardinality": count}
        name, offset = z85.encode(self._uuid.bytes), len(self._content)
        self._content += len(data).to_bytes(SIZE_BYTES, "big") + data
        self._content += zlib.crc32(data).to_bytes(4, "big")
        if len(self._content) >= FILE_BYTES:
            self._write()
        return DeletionVector(storage_type="u", path_or_inline_dv=name, offset=offset, **size)

    def close(self) -> tuple[str, ...]:
        """Write the last file, and return the paths of all."""
        if len(self._content) > 1:
            self._write()
        return tuple(self._written)

    def discard(self) -> None:
        """Remove the files written so far."""
        discard(self._store, self._written)

    def _write(self) -> None:
        path = f"deletion_vector_{self._uuid}.bin"
        self._written.append(path)
        put(self._store, path, bytes(self._content))
        self._begin()


def marked_adds(files: pa.Table, marked: Iterable[MarkedFile]) -> Iterator[AddFile]:
    """Yield the actions that add files, rows of `Snapshot.files`, again with their new vectors.

    Their bounds are wide from now on (PROTOCOL.md, "Per-file Statistics").
    """
    by_path = {each.path: each for each in marked}
    rows = files.filter(pc.is_in(files["path"], value_set=pa.array(list(by_path), pa.string())))
    for path, add in zip(rows["path"].to_pylist(), add_actions(rows), strict=True):
        file = by_path[str(path)]
        yield marked_add(add, file.vector, file.num_records)


def marked_add(add: AddFile, vector: DeletionVector, num_records: int) -> AddFile:
    """Return the action that adds a file again with another vector; `num_records` counts all of its rows."""
    stats = replace(decode_or_empty(add.stats), num_records=num_records, tight_bounds=False)
    return msgspec.structs.replace(add, deletion_vector=vector, stats=stats.to_json())


def count_records(add: AddFile) -> int:
    """Return the number of rows of a file, deleted ones included; -1 if its statistics do not have it."""
    number = decode_or_empty(add.stats).num_records
    return -1 if number is None else number


def vector_metrics(removed: pa.Table, adds: Sequence[AddFile], operation: str) -> Mapping[str, int]:
    """Return the metrics of an operation on the vectors of files, none if it has no file with a vector.

    As in Delta on Spark, a vector that replaces another one is added and updated, and the other one removed.
    `removed` are rows of `Snapshot.files`.
    """
    before = removed.filter(pc.is_valid(removed["deletion_vector"]))["path"].to_pylist()
    after = [decode_path(add.path) for add in adds if add.deletion_vector is not None]
    if not before and not after:
        return {}
    counts = {"Added": len(after), "Removed": len(before), "Updated": len(set(after).intersection(before))}
    target = "Target" if operation == "MERGE" else ""
    return {f"num{target}DeletionVectors{name}": count for name, count in counts.items()}
