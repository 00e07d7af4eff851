"""Open data files, read and filter their rows, and compute their statistics.

Rows are read as batches. Memory is bounded by one batch and the encoded pages of one row group, of the
projected columns only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from threading import Lock
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from .. import _native
from .._arrow import Array, retype_array
from .._checks import check_path, to_integer
from .._options import OnConflict
from ..errors import error_location
from ..protocol.properties import ColumnMappingMode
from ..protocol.schema.arrow import to_arrow
from ..protocol.statistics import FileStatistics, Path, from_report, variant_bytes
from ..protocol.types import StructType
from ..storage import store as storage
from ..storage.store import Store
from ..storage.uris import local_location
from ..variant.moments import UTC
from .options import MAX_STATS_BYTES, MAX_STATS_PATHS
from .shredding import variant_paths

NativeFile: TypeAlias = _native.DataFile
"""An open Parquet file."""

TableColumns: TypeAlias = "_native.TableColumns"
"""The columns of a table, which name the columns of its files."""

SchemaViolation: TypeAlias = _native.SchemaViolation
RowViolation: TypeAlias = _native.RowViolation

RowRange: TypeAlias = tuple[int, int]
"""A half-open range of the rows of a file."""

LegacyMode: TypeAlias = Literal["strict", "compat"]
"""`"strict"` enforces the rules of the legacy Spark layout; `"compat"` reproduces its reader."""


@dataclass(frozen=True)
class Projection:
    """A column of a read.

    `column` is the name of a column of the file, followed by the struct fields that lead to a Variant. `what`
    is None for the column itself, "path" for the value at `path` in the Variant, cast to the type of `field`,
    "json" for its JSON text, "position" for the row numbers in the file, which count deleted rows, and
    "stored" for the column as it is stored, with text as dictionaries in batches in which all of it is.
    `strict` states that a failed cast is an error, not null. `timezone` is the time zone of local times in
    casts of timestamps. If the file does not have the column, `field` is all null.
    """

    field: pa.Field[Any]
    column: tuple[str, ...]
    what: Literal["path", "json", "position", "stored"] | None = None
    path: tuple[str | int, ...] = ()
    strict: bool = True
    timezone: str = UTC


class RangeReader:
    """A file in a store, as the kernel reads it: its size, and byte ranges.

    One request returns the size and the end of the file, `end_bytes` of it. It is sent from the calling
    thread, because the kernel has few threads.
    """

    def __init__(self, store: Store, path: str, end_bytes: int) -> None:
        self._store = store
        self._path = path
        self._size, self._end = storage.read_end(store, path, end_bytes)

    def size(self) -> int:
        return self._size

    def read(self, starts: list[int], ends: list[int]) -> list[bytes]:
        end = self._end
        first = self._size - len(end)
        if min(starts, default=0) >= first and max(ends, default=0) <= first + len(end):
            return [end[start - first : stop - first] for start, stop in zip(starts, ends, strict=True)]
        return storage.get_ranges(self._store, self._path, list(zip(starts, ends, strict=True)))


def table_columns(physical: StructType, mode: ColumnMappingMode) -> TableColumns:
    """Return the columns of a table, by its schema with physical names, for `open_file`."""
    return _native.TableColumns(to_arrow(physical, field_ids=True), mode == "id")


def open_file(store: Store, path: str, columns: TableColumns | None = None) -> NativeFile:
    """Open a data file of a table; raises DataFileError or StoreError with the file.

    The columns of the file get the physical names that the table has for them, at every depth. They are found
    by field id if the table maps columns by id, otherwise by their exact name, else without regard to case.
    Reading a column that several columns of the file could be raises DataFileError.
    """
    local = storage.local_path(store, path)
    with error_location(file=path):
        source = RangeReader(store, path, _native.END_BYTES) if local is None else local
        return _native.DataFile(source, path, columns)


Condition: TypeAlias = "tuple[int, str, pa.Array[Any] | None]"
"""A condition on a projection: its position, an operator and any of some values, or "is not null"."""


@dataclass(frozen=True)
class Units:
    """Ranges of rows of a file, and the statistics of each input in them.

    `known` has the arrays `(min, max, all_null, no_null)` of each input, with one row for each range. A null
    bound is unknown.
    """

    rows: Sequence[RowRange]
    known: Sequence[Sequence[pa.Array[Any]]]


def read(
    file: NativeFile,
    path: str,
    projections: Sequence[Projection],
    *,
    rows: Sequence[RowRange] | None = None,
    on_conflict: OnConflict = "error",
    deleted: bytes | None = None,
    legacy_mode: LegacyMode | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of an open data file, in order, as batches with the fields of the projections.

    The parameters are those of `read_matching`.
    """
    options: Any = {"rows": rows, "on_conflict": on_conflict, "deleted": deleted, "legacy_mode": legacy_mode}
    for _, batch in read_matching(file, path, projections, (), **options):
        yield batch


def read_matching(
    file: NativeFile,
    path: str,
    projections: Sequence[Projection],
    conditions: Sequence[Condition],
    *,
    rows: Sequence[RowRange] | None = None,
    on_conflict: OnConflict = "error",
    deleted: bytes | None = None,
    legacy_mode: LegacyMode | None = None,
    is_count: bool = False,
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the rows that meet all conditions, and maybe others, with the number of rows read so far.

    Only the required leaf columns are read, and only the pages that contain some of `rows`, which are
    ordered, disjoint ranges. `deleted` is a deletion vector; its rows are skipped. `legacy_mode` states that
    whole Variants are in the legacy layout, and how strictly they are read. `is_count` states that only the
    number of rows is needed: batches without columns have no row that does not meet the conditions. Errors
    have file and row.
    """
    requested = [
        (
            list(each.column),
            each.what and (each.what, list(each.path), each.strict, each.timezone),
            each.field,
        )
        for each in projections
    ]
    ranges = None if rows is None else list(rows)
    tests = list(conditions)
    with error_location(file=path):
        batches = file.read(requested, ranges, on_conflict, deleted, legacy_mode, tests, is_count)  # type: ignore[arg-type]
        for batch in batches:
            yield batches.rows_read, batch


def filter_rows(batch: pa.RecordBatch, mask: Any) -> pa.RecordBatch:
    """Return the rows of a batch for which a mask without nulls is true.

    If most rows are, as in most rewrites, this is several times faster on structs than Arrow's own filter.
    """
    if mask.true_count == len(mask):
        return batch
    # The C interface of Arrow truncates a name at NUL, and arrays have no metadata of a schema.
    found = _native.filter_rows(batch, mask).rename_columns(batch.schema.names)
    return found.replace_schema_metadata(batch.schema.metadata)


VECTOR_FILES = 8
"""How many files are kept in memory during a read."""

VECTOR_END_BYTES = 1 << 20
"""How much of a file is read at once: in most cases all of it."""


class VectorFiles:
    """The files of deletion vectors of a table.

    A file has the vectors of many data files: it is read once, unless it is large.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._files: dict[str, RangeReader] = {}
        self._lock = Lock()

    def read(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return the bytes of half-open ranges `(start, end)` of a file; threads wait for each other."""
        with self._lock:
            file = self._files.get(path)
            if file is None:
                if len(self._files) == VECTOR_FILES:
                    del self._files[next(iter(self._files))]
                file = self._files[path] = RangeReader(self._store, path, VECTOR_END_BYTES)
        return file.read([start for start, _ in ranges], [end for _, end in ranges])


def replace_numbers(column: Array, numbers: Array, other: Array, replaced: Array) -> Array:
    """Return a column whose rows have ascending numbers, with some replaced by the rows of `other`.

    `replaced` has the ascending numbers of these rows. Numbers that no row has are ignored.
    """
    # The kernel compares also the names of the elements of lists.
    same = retype_array(other, column.type) if other.type == column.type else other
    return _native.replace_rows(column, numbers, same, replaced)


def compute_stats(
    path: str | PathLike[str], *, max_variant_stats_paths: int = MAX_STATS_PATHS
) -> FileStatistics:
    """Compute the statistics of a Parquet file from its data, in the form of `AddFile.stats`.

    Variant columns are those annotated as VARIANT, and groups of `metadata` and `value`.

    Args:
        path: The local path of the file.
        max_variant_stats_paths: The maximum number of paths of each Variant column that get bounds.

    Returns:
        The number of rows, and the bounds and null counts of the columns.

    Raises:
        DataFileError: If the file cannot be read.
        StoreError: For the URI of a file that is not on a local disk.

    Example:
        >>> import pyarrow as pa, pyarrow.parquet as pq
        >>> pq.write_table(pa.table({"id": [1, 2]}), "ids.parquet")
        >>> compute_stats("ids.parquet").num_records
        2
    """
    check_path("path", path)
    name = str(local_location("a Parquet file", path))
    with error_location(file=name):
        file = _native.DataFile(name, name)
        return stats_of(file, list(variant_paths(file)), max_variant_stats_paths=max_variant_stats_paths)


def stats_of(
    file: _native.DataFile,
    variants: Sequence[Path],
    *,
    max_variant_stats_paths: int = MAX_STATS_PATHS,
    indexed: Collection[Path] | None = None,
    shorten: bool = True,
) -> FileStatistics:
    """Compute the statistics of an open file from all of its rows.

    `variants` are the paths of its Variant columns, including those within structs. `indexed` are the leaf
    columns that get statistics, None for all. `shorten=False` keeps long texts of ordinary columns complete.
    Raises DataFileError.
    """
    limit = to_integer("max_variant_stats_paths", max_variant_stats_paths, 0)
    columns = file.bounds([list(path) for path in variants], limit, variant_bytes(MAX_STATS_BYTES))
    return from_report(file.num_rows, columns, file.schema.names, indexed, shorten=shorten)
