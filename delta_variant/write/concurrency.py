"""Row-level concurrency: rebase a commit on top of others that marked rows of the same files.

A concurrent commit that marks rows of a file removes the file and adds it again with another deletion vector.
It conflicts with a change of rows in these cases:

- It deleted a row that this change marks too, or that the predicate of this change selects.
- It returned a row that was deleted, as a restore does.
- It added a row that the predicate of this change selects.

Otherwise the change is committed with the vectors of both, as if it had started after the other commit. An
optimization moves rows: if new files have the rows of old ones in the same order, rows that were deleted in
the old files are marked by deletion vectors in the new ones. So it and a delete by vectors do not conflict.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, chain, starmap

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import Array
from ..data_file.reader import RowRange
from ..errors import DeltaVariantError
from ..expressions.evaluate import filter_mask
from ..expressions.tree import Expression
from ..expressions.tree import inputs as expression_inputs
from ..log.conflicts import RowReads, Vector
from ..log.deletion_vectors import add_rows, file_path, subtract_rows
from ..log.file_set import FileSet
from ..log.file_tables import add_actions, files_table, path_keys
from ..log.pending_commit import RebasedFiles
from ..log.snapshot import TableVersion
from ..protocol.actions import AddFile, DeletionVector, decode_path, file_key
from ..read.file_reader import FileReader, TableReader, files_of, load_deleted
from ..read.plan import plan_rows, prune_files
from ..storage.store import discard
from .deletion_vectors import VectorWriter, count_records, marked_add, vector_metrics


class _AddedAgain(msgspec.Struct, frozen=True):
    """A file that another commit added again with another vector.

    The serialized vectors are `rows_before`, None without deleted rows, and `rows_after`. `deleted` are the
    rows that only the new one has.
    """

    before: Vector
    after: AddFile
    rows_before: bytes | None
    rows_after: bytes | None
    deleted: Sequence[RowRange]

    @property
    def key(self) -> str:
        return file_key(self.after)[0]


class ConcurrentVectors(RowReads):
    """The files that a commit read, and the vectors that it writes again after a lost race."""

    def __init__(self, table: TableVersion) -> None:
        self._table = table
        self._others: dict[str, AddFile] = {}
        """The latest actions of other commits on files whose rows this commit moves or marks, by path key."""
        self._is_rebased = True
        self._files = RebasedFiles()
        self._written: tuple[str, ...] = ()

    def find_conflict(self, before: Vector, after: AddFile) -> str | None:
        """Return the conflict with a concurrent commit that added a file again, None if its rows permit it.

        Args:
            before: The deletion vector that the operation read.
            after: The action of the concurrent commit.
        """
        path = decode_path(after.path)
        try:
            read, other = (load_deleted(self._table, each) for each in (before, after.deletion_vector))
            if subtract_rows(read, other):
                return f"returned deleted rows of {path}, which this operation read"
            if not self._may_follow(_AddedAgain(before, after, read, other, subtract_rows(other, read))):
                return f"deleted rows of {path}, which this operation read"
        except DeltaVariantError as error:
            return f"changed {path}, and its rows cannot be compared: {error.message}"
        return None

    def rebase(self, files: RebasedFiles) -> RebasedFiles:
        """Return the files with the vectors of both commits, which are written to the table."""
        if self._is_rebased:
            return files
        vectors = VectorWriter(self._table.store)
        try:
            adds = list(self._adds(vectors))
            written = vectors.close()
        except BaseException:
            vectors.discard()
            raise
        discard(self._table.store, self._written)
        self._written, self._is_rebased = written, True
        _, unchanged = _split_files(files.before, self._others)
        before = pa.concat_tables([unchanged, files_table([*self._others.values()])])
        self._files = RebasedFiles(before, adds, self._count(before, adds))
        return self._files

    @property
    def metrics(self) -> Mapping[str, int]:
        """Return the metrics of the commit that a rebase changed."""
        return self._files.metrics

    def paths(self) -> Sequence[str]:
        """Return the paths of the vectors that a rebase wrote."""
        return self._written

    def find_unused(self, paths: Iterable[str]) -> Collection[str]:
        """Return those of some files of vectors that a rebase replaced completely."""
        if not self._others:
            return ()
        vectors = (add.deletion_vector for add in self._files.after)
        return set(paths).difference(file_path(each) or "" for each in vectors if each is not None)

    @abstractmethod
    def divide(
        self, removed: pa.Table, adds: Sequence[AddFile]
    ) -> tuple[pa.Table, Sequence[AddFile], RebasedFiles]:
        """Divide removed and added files into those that stay the same after a lost race, and the others.

        `removed` are rows of `Snapshot.files`.
        """

    @abstractmethod
    def may_match(self, adds: Sequence[AddFile]) -> bool:
        """Return whether files that other commits add may have a row that the operation has to see."""

    @abstractmethod
    def _may_follow(self, file: _AddedAgain) -> bool:
        """Return whether the commit can follow one that deleted rows of a file."""

    @abstractmethod
    def _adds(self, vectors: VectorWriter) -> Iterator[AddFile]:
        """Yield the actions of all files that the commit adds on top of the others."""

    @abstractmethod
    def _count(self, removed: pa.Table, adds: Sequence[AddFile]) -> Mapping[str, int]:
        """Return metrics of a commit that removes some files and adds others."""

    def _follow(self, other: AddFile) -> None:
        """Let the next attempt follow an action of another commit."""
        self._others[file_key(other)[0]] = other
        self._is_rebased = False


def _split_files(files: pa.Table, keys: Collection[str]) -> tuple[pa.Table, pa.Table]:
    """Return the files, rows of `Snapshot.files`, whose path keys are among some, and the others."""
    wanted = pa.array(list(keys), pa.string())
    masks = [pc.is_in(path_keys(batch), value_set=wanted) for batch in files.to_batches()]
    mask = pa.chunked_array(masks, pa.bool_())
    return files.filter(mask), files.filter(pc.invert(mask))


class ConcurrentRows(ConcurrentVectors):
    """The rows that a change selects by its predicate, None for all rows, and the files that it marks.

    `changes_selected` states that it changes each selected row. So other rows that are deleted do not matter.
    """

    def __init__(
        self,
        table: TableVersion,
        predicate: Expression | None,
        marked: Sequence[AddFile],
        operation: str,
        *,
        changes_selected: bool,
    ) -> None:
        super().__init__(table)
        self._predicate = predicate
        self._marked = marked
        self._operation = operation
        self._changes_selected = changes_selected
        self._rewritten = files_table([])
        self._own: dict[str, Array] = {}
        self._merged: dict[str, tuple[bytes, int]] = {}
        """The vectors with the rows of both commits, by path key, and the numbers of their rows."""

    def divide(
        self, removed: pa.Table, adds: Sequence[AddFile]
    ) -> tuple[pa.Table, Sequence[AddFile], RebasedFiles]:
        """Return the files that are rewritten, those that are new, and those whose rows are marked."""
        before, self._rewritten = _split_files(removed, self._marked_by_key)
        return self._rewritten, adds, RebasedFiles(before, self._marked)

    def may_match(self, adds: Sequence[AddFile]) -> bool:
        """Return whether the predicate selects a row of added files, which are read if bounds permit it.

        A file that cannot be read may have such a row.
        """
        plan = prune_files(self._table.configuration, FileSet(files_table(adds)), self._predicate)
        if self._predicate is None:
            return plan.files.num_rows > 0
        try:
            return any(
                self._selects(file, plan_rows(file, plan.pruning_predicate).rows)
                for file in map(TableReader.of(self._table).open, files_of(plan.files))
            )
        except DeltaVariantError:
            return True

    @cached_property
    def _marked_by_key(self) -> dict[str, AddFile]:
        return {file_key(add)[0]: add for add in self._marked}

    def _may_follow(self, file: _AddedAgain) -> bool:
        if file.key in self._marked_by_key and not self._merge(file):
            return False
        return self._changes_selected or not file.deleted or not self._reads(file)

    def _merge(self, file: _AddedAgain) -> bool:
        """Merge the vectors of both commits in a file; return False if both mark a row."""
        rows = self._own_rows(file)
        vector, count = add_rows(file.rows_after, rows)
        self._merged[file.key] = vector, count
        self._follow(file.after)
        return count == len(rows) + sum(end - start for start, end in subtract_rows(file.rows_after, None))

    def _own_rows(self, file: _AddedAgain) -> Array:
        if file.key not in self._own:
            own = load_deleted(self._table, self._marked_by_key[file.key].deletion_vector)
            ranges = subtract_rows(own, file.rows_before)
            self._own[file.key] = pa.array(chain.from_iterable(starmap(range, ranges)), pa.int64())
        return self._own[file.key]

    def _adds(self, vectors: VectorWriter) -> Iterator[AddFile]:
        for key, marked in self._marked_by_key.items():
            if key not in self._merged:
                yield marked
                continue
            vector, count = self._merged[key]
            if count < count_records(marked):
                yield marked_add(self._others[key], vectors.add(vector, count), count_records(marked))

    def _count(self, removed: pa.Table, adds: Sequence[AddFile]) -> Mapping[str, int]:
        whole = pa.concat_tables([self._rewritten, removed])
        vectors = vector_metrics(whole, adds, self._operation)
        return {"numRemovedFiles": whole.num_rows - len(adds), **vectors}

    def _reads(self, file: _AddedAgain) -> bool:
        """Return whether the predicate selects a deleted row of a file, as it was before."""
        vector = None if file.before is None else DeletionVector(**file.before)
        (entry,) = files_of(files_table([msgspec.structs.replace(file.after, deletion_vector=vector)]))
        return self._selects(TableReader.of(self._table).open(entry), file.deleted)

    def _selects(self, file: FileReader, rows: Sequence[RowRange] | None) -> bool:
        """Return whether the predicate selects one of some rows of a file, None for all of its rows."""
        predicate = self._predicate
        if predicate is None:
            return True
        batches = () if rows == [] else file.read(expression_inputs([predicate]), rows, "error")
        return any(filter_mask(predicate, batch).true_count for batch in batches)


class MovedRows(msgspec.Struct, frozen=True):
    """Paths of new files, and of the old files whose rows they have in the same order."""

    sources: Sequence[str]
    targets: Sequence[str]


class ConcurrentMoves(ConcurrentVectors):
    """The rows that an optimization moved to new files from `removed`, rows of `Snapshot.files`."""

    def __init__(
        self, table: TableVersion, removed: pa.Table, adds: Sequence[AddFile], moved: Sequence[MovedRows]
    ) -> None:
        super().__init__(table)
        self._removed = removed
        self._new = adds
        self._moved = moved
        self._deleted: dict[str, list[int]] = {}
        """The rows that other commits deleted in old files, by path key, without rows deleted before."""

    @cached_property
    def _starts(self) -> Mapping[str, tuple[MovedRows, int]]:
        """For each old file, by path key, the files of its rows, and the number of its first row in them."""
        sources = {decode_path(add.path): add for add in add_actions(self._removed)}
        starts: dict[str, tuple[MovedRows, int]] = {}
        for moved in self._moved:
            files = [sources[path] for path in moved.sources]
            counts = [count_records(add) - _cardinality(add) for add in files]
            # The sums differ if the statistics of a file do not have its number of rows.
            if sum(counts) == sum(count_records(self._new_by_path[path]) for path in moved.targets):
                first = accumulate(counts, initial=0)
                starts |= {file_key(add)[0]: (moved, start) for add, start in zip(files, first, strict=False)}
        return starts

    @cached_property
    def _new_by_path(self) -> Mapping[str, AddFile]:
        return {decode_path(add.path): add for add in self._new}

    def divide(
        self, removed: pa.Table, adds: Sequence[AddFile]
    ) -> tuple[pa.Table, Sequence[AddFile], RebasedFiles]:
        """Return no files that stay the same, because rows of any new file may be marked."""
        return removed.slice(0, 0), (), RebasedFiles(removed, adds)

    def may_match(self, adds: Sequence[AddFile]) -> bool:
        """Return True: an optimization that changed rows would have to see all."""
        return True

    def find_unused(self, paths: Iterable[str]) -> Collection[str]:
        """Return the new files of which no row is left; an optimization writes no vectors itself."""
        if not self._others:
            return ()
        return self._new_by_path.keys() - {decode_path(add.path) for add in self._files.after}

    def _may_follow(self, file: _AddedAgain) -> bool:
        if file.deleted and file.key not in self._starts:
            return False
        self._deleted[file.key] = list(_number_without(file.deleted, subtract_rows(file.rows_before, None)))
        self._follow(file.after)
        return True

    def _adds(self, vectors: VectorWriter) -> Iterator[AddFile]:
        deleted = self._deleted_in_new_files()
        for path, add in self._new_by_path.items():
            rows = deleted.get(path)
            if not rows:
                yield add
            elif len(rows) < count_records(add):
                vector, count = add_rows(None, pa.array(sorted(rows), pa.int64()))
                yield marked_add(add, vectors.add(vector, count), count_records(add))

    def _count(self, removed: pa.Table, adds: Sequence[AddFile]) -> Mapping[str, int]:
        vectors = vector_metrics(removed, adds, "OPTIMIZE")
        return {"numAddedFiles": len(adds), "numAddedBytes": sum(add.size for add in adds), **vectors}

    def _deleted_in_new_files(self) -> Mapping[str, list[int]]:
        found: dict[str, list[int]] = defaultdict(list)
        for key, rows in self._deleted.items():
            if not rows:
                continue
            moved, start = self._starts[key]
            ends = accumulate(count_records(self._new_by_path[path]) for path in moved.targets)
            first, remaining = 0, [start + row for row in rows]
            for path, end in zip(moved.targets, ends, strict=True):
                found[path] += [row - first for row in remaining if first <= row < end]
                first = end
        return found


def _cardinality(add: AddFile) -> int:
    return 0 if add.deletion_vector is None else add.deletion_vector.cardinality


def _number_without(rows: Sequence[RowRange], others: Sequence[RowRange]) -> Iterator[int]:
    """Yield the numbers that some rows have if other rows, which are different, are not counted."""
    skipped, remaining = 0, list(reversed(others))
    for start, end in rows:
        for row in range(start, end):
            while remaining and remaining[-1][0] < row:
                first, last = remaining.pop()
                skipped += last - first
            yield row - skipped
