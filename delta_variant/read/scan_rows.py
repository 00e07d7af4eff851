"""The rows of a scan: the columns and the filter that an engine pushes into them, and the rows of a table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import Array, total
from .._options import OnConflict
from .._progress import begin, is_observed
from .._text import count
from ..data_file.shredding import check_layout
from ..errors import ShreddingError, error_location
from ..execution import Description
from ..expressions.arrow_filter import ArrowFilter
from ..expressions.tree import Expression, Extraction, is_whole
from ..log.file_set import FileSet
from ..log.snapshot import Snapshot, TableVersion
from ..variant.paths import normalize
from ..variant.values import VARIANT_TYPE
from .explanation import ReadReport
from .file_reader import TableReader, files_of
from .log_statistics import UNEVALUABLE, is_of_partitions, partition_matches, row_counts
from .missing_paths import warn_of_missing_paths, watch_paths
from .plan import FilePlan, prune_files
from .query import Query
from .rows import RowBatches, read_files

Rows = TypeVar("Rows", bound="ScanRows")


@dataclass(frozen=True)
class ScanRows(ABC):
    """The rows of a scan, which are planned but not read: at most `limit`, None for all of them."""

    limit: int | None = field(default=None, kw_only=True)

    @property
    @abstractmethod
    def uri(self) -> str:
        """Return the URI or the path of the table."""

    @property
    @abstractmethod
    def version(self) -> int:
        """Return the version of the table."""

    @property
    @abstractmethod
    def bound(self) -> Query:
        """Return the query of the rows."""

    @abstractmethod
    def with_query(self: Rows, query: Query) -> Rows:
        """Return the rows of another query over the same rows."""

    @property
    def schema(self) -> pa.Schema:
        return self.bound.schema

    @property
    def outputs(self) -> Mapping[str, Expression]:
        """Return the columns as bound expressions, by name."""
        return self.bound.outputs

    def narrow(self: Rows, names: Collection[str], hint: Expression | None) -> Rows:
        """Return some columns of the rows for which `hint` is true, and maybe of others."""
        return self.with_query(self.bound.narrow(names, hint))

    def with_text_types(self: Rows, types: Mapping[str, pa.DataType]) -> Rows:
        """Return the rows with these types of some columns of text, `DICTIONARY` or views."""
        return self.with_query(self.bound.with_text_types(types))

    @abstractmethod
    def split(self: Rows) -> Iterator[Rows]:
        """Yield parts of all rows, in order, that can be read concurrently."""

    @abstractmethod
    def stream(self, report: ReadReport, *, ahead: bool) -> RowBatches:
        """Yield all rows; unless `ahead`, open a file only after the rows of the one before."""

    @abstractmethod
    def count_all(self) -> int:
        """Return the number of all rows, and read as little as possible."""

    def push(self: Rows, names: Collection[str] | None, condition: pc.Expression | None) -> Rows:
        """Return the columns in `names`, None for all, and those that a filter of pyarrow reads.

        Rows that cannot match the filter are left out where statistics show it. The caller filters the
        others.
        """
        wanted = set(self.outputs if names is None else names)
        hint = None
        if condition is not None:
            known = ArrowFilter.of(condition, self.outputs)
            wanted |= known.columns
            # A limit counts rows before they are filtered.
            hint = known.pruning if self.limit is None else None
        return self.narrow(wanted, hint)

    def parts(self: Rows) -> Iterator[Rows]:
        """Yield parts of the rows, in order, that can be read concurrently; a limit keeps them together."""
        return self.split() if self.limit is None else iter([self])

    def head(self: Rows, limit: int) -> Rows:
        return replace(self, limit=limit if self.limit is None else min(limit, self.limit))

    def count(self) -> int:
        """Return the number of rows, and read as little as possible."""
        if self.limit == 0:
            return 0
        rows = self.count_all()
        return rows if self.limit is None else min(rows, self.limit)

    def batches(self, report: ReadReport) -> Iterator[pa.RecordBatch]:
        """Yield the rows; with a limit, open a file only after the rows of the one before."""
        remaining = self.limit
        # Closing the rows completes the report of a file that was not read to its end.
        with closing(self.stream(report, ahead=remaining is None)) as batches:
            if remaining is None:
                yield from batches
                return
            while remaining:
                batch = next(batches, None)
                if batch is None:
                    return
                yield batch.slice(0, remaining)
                remaining -= min(remaining, batch.num_rows)


MAX_COUNTED_FILES = 1_000
"""Of more files, the number alone shows the progress well enough."""


@dataclass(frozen=True)
class TableRows(ScanRows):
    """The rows of some files of a table that match a query."""

    table: TableVersion
    files: FileSet
    query: Query
    on_conflict: OnConflict
    with_bounds: bool
    """Whether the plan has the bounds of its files, which need most of its memory."""
    plan: FilePlan

    @classmethod
    def of(
        cls, snapshot: Snapshot, query: Query, on_conflict: OnConflict, *, with_bounds: bool = False
    ) -> TableRows:
        """Plan to read rows of a snapshot, so that errors of the log are raised before any row is read."""
        files, pruning = snapshot.file_set, query.pruning
        plan = prune_files(snapshot.configuration, files, pruning, with_bounds=with_bounds)
        return cls(snapshot, files, query, on_conflict, with_bounds, plan)

    @property
    def uri(self) -> str:
        return self.table.uri

    @property
    def version(self) -> int:
        return self.table.version

    @property
    def bound(self) -> Query:
        return self.query

    def as_stored(self) -> TableRows:
        """Return the rows with Variant columns as files store them; raises ShreddingError if they differ."""
        outputs = self.query.outputs.values()
        names = {each.column for each in outputs if isinstance(each, Extraction) and is_whole(each)}
        types = _shared_types(self.table, self.plan.files, sorted(names))
        return self.with_query(msgspec.structs.replace(self.query, shredded=types))

    def with_query(self, query: Query) -> TableRows:
        has_same_files = query.predicate is self.query.predicate and query.hint is self.query.hint
        return replace(self, query=query, plan=self.plan if has_same_files else self._plan(self.files, query))

    def _plan(self, files: FileSet, query: Query) -> FilePlan:
        return prune_files(self.table.configuration, files, query.pruning, with_bounds=self.with_bounds)

    def split(self) -> Iterator[TableRows]:
        """Yield the rows of each file that may have some."""
        for row in range(self.plan.files.num_rows):
            files = FileSet(self.plan.files.slice(row, 1))
            yield replace(self, files=files, plan=self._plan(files, self.query))

    def stream(self, report: ReadReport, *, ahead: bool) -> RowBatches:
        """Return the rows; unless `ahead`, open a file only after the rows of the one before."""
        report.add(self.plan)
        begin("reading", files=self.plan.files.num_rows, rows=self._known_rows())
        rows = self._read(self.query, self.plan.files, report, ahead=ahead)
        return watch_paths(self.table, self.files, self.query, rows)

    def _known_rows(self) -> int | None:
        """Return the number of rows to decode; None if it is not needed, or takes too long to find."""
        files = self.plan.files
        # Pages may be skipped by a predicate.
        is_known = self.plan.pruning_predicate is None and files.num_rows <= MAX_COUNTED_FILES
        if not is_known or not is_observed():
            return None
        counts = row_counts(files)
        return None if counts.null_count else total(counts)

    def read(self, names: Collection[str], files: pa.Table) -> RowBatches:
        """Return some columns of the rows of some files, rows of `Snapshot.files`."""
        return self._read(self.query.narrow(names, None), files, None, ahead=True)

    def count_all(self) -> int:
        """Return the number of rows; read only files whose number the log does not say."""
        rows = self._count_rows()
        if not rows and self.query.predicate is not None:
            warn_of_missing_paths(self.table, self.files, [self.query.predicate])
        return rows

    def _count_rows(self) -> int:
        files = self.whole_files()
        if files is None:
            return self._count(self.plan.files)
        counts = row_counts(files)
        unknown: Array = pc.is_null(counts)
        return total(counts) + self._count(files.filter(unknown))

    def whole_files(self) -> pa.Table | None:
        """Return the files of which all rows match, if all others have none; None if that is unknown."""
        predicate = self.query.predicate
        if self.query.lateral is not None:
            return None
        if predicate is None:
            # A plan of all files needs less memory than the snapshot, if it is not loaded yet.
            return self.plan.files if self.plan.pruning_predicate is None else self.files.table
        if not is_of_partitions(self.table.configuration, predicate):
            return None
        files = self.files.table
        try:
            return files.filter(partition_matches(self.table.configuration, files, predicate))
        except UNEVALUABLE:
            return None

    def _count(self, files: pa.Table) -> int:
        if not files.num_rows:
            return 0
        read = self._read(self.query.without_outputs(), files, None, ahead=True)
        return sum(batch.num_rows for batch in read)

    def _read(self, query: Query, files: pa.Table, report: ReadReport | None, *, ahead: bool) -> RowBatches:
        predicate = self.plan.pruning_predicate
        return read_files(
            self.table, query, files_of(files), predicate, self.on_conflict, report, ahead=ahead
        )


def describe_matches(
    snapshot: Snapshot, verb: str, where: str | None, predicate: Expression | None
) -> Description:
    """Return the description of a change of the rows that match, which counts them.

    `predicate` is `where` bound to the table.
    """
    rows = TableRows.of(snapshot, Query.of_expressions({}, predicate), "error").count()
    which = "all rows" if where is None else f"rows where {where}"
    return Description(
        (f"version {snapshot.version}, {verb} {which}: {count(rows, 'row')}",),
        {"version": snapshot.version, "where": where, "rows": rows},
    )


def _shared_types(table: TableVersion, files: pa.Table, names: Sequence[str]) -> dict[str, pa.DataType]:
    """Return the type of each Variant column, with `metadata` as binary; files without the column agree.

    Raises ShreddingError, with the path at which files differ.
    """
    types: dict[str, pa.DataType] = {}
    for file in TableReader.of(table).open_all(files_of(files)) if names else ():
        with error_location(file=file.file.path):
            check_layout(file.native)
            for name in names:
                stored = file.stored_type(name)
                if stored is not None and types.setdefault(name, stored) != stored:
                    raise _difference(name, types[name], stored)
    return {name: _with_plain_metadata(types.get(name, VARIANT_TYPE)) for name in names}


def _difference(name: str, one: pa.DataType, other: pa.DataType) -> ShreddingError:
    path = next(_differences(one, other, ()), ())
    return ShreddingError(
        f"cannot return the column {name!r} shredded because its files differ at {normalize(path)}: pass "
        "variants='bytes', or shred all files alike with optimize(reshred=True)",
        column=name,
        path=normalize(path),
    )


def _differences(one: Any, other: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the paths of the values that two types of a Variant store differently, outermost last."""
    fields, others = _shredded_fields(one), _shredded_fields(other)
    if fields and others:
        for name in sorted(fields.keys() ^ others.keys()):
            yield (*path, name)
        for name in sorted(fields.keys() & others.keys()):
            if fields[name] != others[name]:
                yield from _differences(fields[name], others[name], (*path, name))
    yield path


def _shredded_fields(group: Any) -> dict[str, pa.DataType]:
    """Return the groups of the fields of a shredded object, none for any other value."""
    position = group.get_field_index("typed_value")
    typed: Any = pa.null() if position < 0 else group.field(position).type
    return {field.name: field.type for field in typed} if pa.types.is_struct(typed) else {}


def _with_plain_metadata(stored: Any) -> pa.DataType:
    fields = [field.with_type(pa.binary()) if field.name == "metadata" else field for field in stored]
    return pa.struct(fields)
