"""Row-level concurrency: commit a change of rows on top of commits that changed other rows of the same files.

A commit that marked rows of a file conflicts with a change of rows in these cases:

- It deleted a row that this change marks too, or that the predicate of this change selects.
- It returned a row that was deleted, as a restore does.
- It added a row that the predicate of this change selects.

Otherwise the change is committed with the vectors of both, as if it had started after the other commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, starmap

import msgspec
import pyarrow as pa

from .._arrow import Array
from ..data_file.reader import RowRange
from ..errors import DeltaVariantError
from ..expressions.evaluate import filter_mask
from ..expressions.tree import Expression
from ..expressions.tree import inputs as expression_inputs
from ..log.deletion_vectors import add_rows, subtract_rows
from ..log.file_set import FileSet
from ..log.file_tables import files_table
from ..log.pending_commit import RebasedFiles
from ..log.snapshot import TableVersion
from ..protocol.actions import AddFile, DeletionVector, file_key
from ..read.file_reader import FileReader, TableReader, files_of, load_deleted
from ..read.plan import plan_rows, prune_files
from .concurrent_vectors import AddedAgain, ConcurrentVectors, split_files
from .deletion_vectors import VectorWriter, count_records, marked_add, vector_metrics


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
        before, self._rewritten = split_files(removed, self._marked_by_key)
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

    def _may_follow(self, file: AddedAgain) -> bool:
        if file.key in self._marked_by_key and not self._merge(file):
            return False
        return self._changes_selected or not file.deleted or not self._reads(file)

    def _merge(self, file: AddedAgain) -> bool:
        """Merge the vectors of both commits in a file; return False if both mark a row."""
        rows = self._own_rows(file)
        vector, count = add_rows(file.rows_after, rows)
        self._merged[file.key] = vector, count
        self._follow(file.after)
        return count == len(rows) + sum(end - start for start, end in subtract_rows(file.rows_after, None))

    def _own_rows(self, file: AddedAgain) -> Array:
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

    def _reads(self, file: AddedAgain) -> bool:
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
