"""Open data files, and read and filter their rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from .. import _native
from .._options import OnConflict
from ..errors import DeltaVariantError
from ..storage import store
from ..storage.store import Store
from ..variant.moments import UTC

__all__ = [
    "Draft",
    "Input",
    "NativeFile",
    "Projection",
    "RowViolation",
    "Rows",
    "SchemaViolation",
    "Units",
    "filter_rows",
    "naming",
    "open_file",
    "read",
    "units",
]

NativeFile: TypeAlias = _native.DataFile
"""An open Parquet file."""

SchemaViolation: TypeAlias = _native.SchemaViolation
RowViolation: TypeAlias = _native.RowViolation

Rows: TypeAlias = tuple[int, int]
"""A range of the rows of a file, its end excluded."""

Draft: TypeAlias = Literal["strict", "compat"]
"""A Variant in the layout of the older Spark draft is read by its rules, or as its algorithm reads it."""


@dataclass(frozen=True)
class Projection:
    """A column of a read.

    `column` names a column of the file, and below it the struct fields that lead to a Variant. `what` is None
    for the column as it is, "path" for what lies at `path` in the Variant, cast to the type of `field`,
    "json" for its JSON text, and "position" for the numbers that rows have in the file, deleted ones counted.
    `timezone` is where the local times are of that timestamps are cast to and from.
    Where the file has no such column, `field` is all null.
    """

    field: pa.Field[Any]
    column: tuple[str, ...]
    what: Literal["path", "json", "position"] | None = None
    path: tuple[str | int, ...] = ()
    strict: bool = True
    timezone: str = UTC


class _Ranges:
    """A file in a store, as the kernel reads it: its size, its end, and then byte ranges.

    Size and end come by one request, which this thread waits for: the kernel has few.
    """

    def __init__(self, place: Store, path: str) -> None:
        self._store = place
        self._path = path
        self._size, self._end = store.read_end(place, path, _native.END_BYTES)

    def size(self) -> int:
        return self._size

    def read(self, starts: list[int], ends: list[int]) -> list[bytes]:
        end = self._end
        first = self._size - len(end)
        if min(starts, default=0) >= first and max(ends, default=0) <= first + len(end):
            return [end[start - first : stop - first] for start, stop in zip(starts, ends, strict=True)]
        return store.get_ranges(self._store, self._path, list(zip(starts, ends, strict=True)))


def open_file(place: Store, path: str) -> NativeFile:
    """Return an open data file of a table; raises DataFileError, or StoreError, which name it."""
    local = store.local_path(place, path)
    with naming(path):
        return _native.DataFile(_Ranges(place, path) if local is None else local, path)


@dataclass(frozen=True)
class Input:
    """A column whose values are asked about before they are read.

    `column` leads to it as in a Projection; `path` is the path below it where it is a Variant, else None;
    `type` is the Arrow type that its values are cast to.
    """

    column: tuple[str, ...]
    path: tuple[str, ...] | None
    type: pa.DataType


@dataclass(frozen=True)
class Units:
    """Ranges of rows of a file, and for each input what is known of it in them.

    `known` has the arrays `(min, max, all_null, no_null)` of each input, a row for each range; a null bound
    says nothing.
    """

    rows: Sequence[Rows]
    known: Sequence[Sequence[pa.Array[Any]]]


def units(
    file: NativeFile, path: str, inputs: Sequence[Input], row_groups: Sequence[int] | None = None
) -> Units:
    """Return what an open file knows of inputs in its row groups, or in the pages of some of them.

    Pages of several columns are cut into ranges that no page crosses. Errors name the file.
    """
    asked: Any = [
        (list(each.column), None if each.path is None else list(each.path), each.type) for each in inputs
    ]
    with naming(path):
        return Units(*file.units(asked, None if row_groups is None else list(row_groups)))


def read(
    file: NativeFile,
    path: str,
    projections: Sequence[Projection],
    *,
    rows: Sequence[Rows] | None = None,
    on_conflict: OnConflict = "error",
    deleted: bytes | None = None,
    draft: Draft | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of an open data file, in order, as batches of the projections' fields.

    Only the leaf columns that they need are read; of `rows`, ranges in order and apart from each other, only
    the pages that hold some. `deleted` is a deletion vector, whose rows are left out. `draft` says that whole
    Variants are in the layout of the older Spark draft, and how strictly they are read. Errors name file and
    row.
    """
    asked = [
        (
            list(each.column),
            each.what and (each.what, list(each.path), each.strict, each.timezone),
            each.field,
        )
        for each in projections
    ]
    ranges = None if rows is None else list(rows)
    with naming(path):
        yield from file.read(asked, ranges, on_conflict, deleted, draft)  # type: ignore[arg-type]


class naming:  # noqa: N801 - used as a context manager
    """Add the file's name to the errors of the kernel."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        prefix = f"{self._path}: "
        if isinstance(error, DeltaVariantError) and not str(error).startswith(prefix):
            raise type(error)(f"{prefix}{error}") from error


def filter_rows(batch: pa.RecordBatch, mask: Any) -> pa.RecordBatch:
    """Return the rows of a batch for which a mask without nulls is true.

    Where most are, as in most rewrites, this is several times as fast on structs as Arrow's own filter.
    """
    # A name ends at a NUL on its way to the kernel.
    return _native.filter_rows(batch, mask).rename_columns(batch.schema.names)
