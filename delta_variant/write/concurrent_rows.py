"""Row-level concurrency: commit a change of rows on top of commits that changed other rows of the same files.

A concurrent commit that marks rows of a file removes the file and adds it again with another deletion vector.
It conflicts with a change of rows in these cases:

- It deleted a row that this change marks too, or that the predicate of this change selects.
- It returned a row that was deleted, as a restore does.
- It added a row that the predicate of this change selects.

Otherwise the change is committed with the vectors of both, as if it had started after the other commit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, starmap

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
from ..log.file_tables import files_table, path_keys
from ..log.pending_commit import RebasedFiles
from ..log.snapshot import TableVersion
from ..protocol.actions import AddFile, DeletionVector, decode_path, file_key
from ..protocol.statistics import decode
from ..read.file_reader import FileReader, TableReader, files_of, load_deleted
from ..read.plan import plan_rows, prune_files
from ..storage.store import discard
from .deletion_vectors import VectorWriter, marked_add

__all__ = ["ConcurrentRows", "split_files"]


class _MergedFile(msgspec.Struct, frozen=True):
    """A file in which both commits mark rows.

    `other` is the action of the other commit. `vector` has the `count` rows that one of them marks.
    """

    other: AddFile
    vector: bytes
    count: int


class ConcurrentRows(RowReads):
    """The rows that a change selects by its predicate, None for all rows, and the files that it marks."""

    def __init__(self, table: TableVersion, predicate: Expression | None, marked: Sequence[AddFile]) -> None:
        self._table = table
        self._predicate = predicate
        self._marked = marked
        self._merged: dict[str, _MergedFile] = {}
        self._is_rebased = True
        self._files = RebasedFiles()
        self._written: tuple[str, ...] = ()

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

    def find_conflict(self, before: Vector, after: AddFile) -> str | None:
        """Return the conflict with a concurrent commit that added a file again, None if its rows permit it.

        Args:
            before: The deletion vector that the change read.
            after: The action of the concurrent commit.
        """
        path = decode_path(after.path)
        try:
            read, other = (load_deleted(self._table, each) for each in (before, after.deletion_vector))
            if subtract_rows(read, other):
                return f"returned deleted rows of {path}, which this operation read"
            deleted = subtract_rows(other, read)
            if not self._merge(after, read, other) or (deleted and self._reads(before, after, deleted)):
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
            merged = list(self._merged_adds(vectors))
            written = vectors.close()
        except BaseException:
            vectors.discard()
            raise
        discard(self._table.store, self._written)
        self._written, self._is_rebased = written, True
        others = files_table([each.other for each in self._merged.values()])
        unmerged = (each for each in files.after if file_key(each)[0] not in self._merged)
        _, before = split_files(files.before, self._merged)
        self._files = RebasedFiles(pa.concat_tables([before, others]), [*unmerged, *merged])
        return self._files

    def paths(self) -> Sequence[str]:
        """Return the paths of the vectors that a rebase wrote."""
        return self._written

    def find_unused(self, paths: Iterable[str]) -> Collection[str]:
        """Return those of some files of vectors that a rebase replaced completely."""
        if not self._merged:
            return ()
        vectors = (add.deletion_vector for add in self._files.after)
        return set(paths).difference(file_path(each) or "" for each in vectors if each is not None)

    @cached_property
    def _marked_by_key(self) -> dict[str, AddFile]:
        return {file_key(add)[0]: add for add in self._marked}

    def _merge(self, other: AddFile, read: bytes | None, deleted: bytes | None) -> bool:
        """Merge the rows that this change marks in a file with `deleted`; return False if both mark a row."""
        key = file_key(other)[0]
        if (marked := self._marked_by_key.get(key)) is None:
            return True
        ranges = subtract_rows(load_deleted(self._table, marked.deletion_vector), read)
        rows: Array = pa.array(chain.from_iterable(starmap(range, ranges)), pa.int64())
        vector, count = add_rows(deleted, rows)
        self._merged[key] = _MergedFile(other, vector, count)
        self._is_rebased = False
        return count == len(rows) + sum(end - start for start, end in subtract_rows(deleted, None))

    def _merged_adds(self, vectors: VectorWriter) -> Iterator[AddFile]:
        """Yield the actions of the merged files that still have rows."""
        for key, file in self._merged.items():
            num_records = decode(self._marked_by_key[key].stats or "").num_records
            assert num_records is not None, "a marked file has the number of its rows"
            if file.count < num_records:
                yield marked_add(file.other, vectors.add(file.vector, file.count), num_records)

    def _reads(self, before: Vector, after: AddFile, rows: Sequence[RowRange]) -> bool:
        """Return whether the predicate selects one of some rows of a file, as it was before."""
        vector = None if before is None else DeletionVector(**before)
        (file,) = files_of(files_table([msgspec.structs.replace(after, deletion_vector=vector)]))
        return self._selects(TableReader.of(self._table).open(file), rows)

    def _selects(self, file: FileReader, rows: Sequence[RowRange] | None) -> bool:
        """Return whether the predicate selects one of some rows of a file, None for all of its rows."""
        predicate = self._predicate
        if predicate is None:
            return True
        batches = () if rows == [] else file.read(expression_inputs([predicate]), rows, "error")
        return any(filter_mask(predicate, batch).true_count for batch in batches)


def split_files(files: pa.Table, keys: Collection[str]) -> tuple[pa.Table, pa.Table]:
    """Return the files, rows of `Snapshot.files`, whose path keys are among some, and the others."""
    wanted = pa.array(list(keys), pa.string())
    masks = [pc.is_in(path_keys(batch), value_set=wanted) for batch in files.to_batches()]
    mask = pa.chunked_array(masks, pa.bool_())
    return files.filter(mask), files.filter(pc.invert(mask))
