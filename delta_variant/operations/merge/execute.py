"""Execute a merge: tasks rewrite files with changed rows and write inserted rows, the driver commits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from ..._arrow import Array
from ..._progress import begin
from ...data_file.options import WriteOptions
from ...execution import Executor, NameFile
from ...expressions.tree import Expression
from ...log.snapshot import TableVersion, strip_files
from ...protocol.types import StructType
from ...read.file_reader import FileEntry
from ...read.plan import FilePlan, plan_files
from ...read.predicate import PruningPredicate
from ...storage.store import Store
from ...write.copy_on_write import rewrite_files
from ...write.partitions import NO_FILES, WrittenFiles
from ...write.preparation import restrict_to_table
from ...write.rewrite import (
    ChangedBatch,
    RewriteResult,
    RewrittenFiles,
    RewrittenPart,
    RowChange,
    skip_repeated,
)
from ...write.router import write_files
from ...write.row_rules import RowRules, complete_rows
from ..rewrite import finish_rewrite, rewrite_executor, split_files
from .clauses import Clause
from .joining import Join
from .plan import MergeCounts, MergePlan, commit_merge
from .rows import MergeRows, columns_copied, inputs_changed, inputs_tested

__all__ = ["MemorySource", "MergeSource", "MergeTask", "MergedFiles", "MergedPart", "execute", "insert_rows"]


@dataclass(frozen=True)
class MergedPart:
    """What a task of a merge did.

    Attributes:
        part: The files that it replaced and wrote.
        inserted: The files of new rows.
        counts: The number of rows of each action.
        matched: The source rows in memory that matched a row of the table.
    """

    part: RewrittenPart
    inserted: WrittenFiles
    counts: Mapping[str, int]
    matched: Array | None = None

    def paths(self) -> Iterator[str]:
        """Yield the paths of all files written."""
        return chain(self.part.paths(), self.inserted.paths())

    def compress(self) -> MergedPart:
        """Return the same part with compressed descriptions of its files."""
        return replace(self, part=self.part.compress(), inserted=self.inserted.compress())


@dataclass(frozen=True)
class MergedFiles:
    """What the tasks of a merge did, and the number of source rows.

    `predicate` selects the rows of the table that may match, None for all.
    """

    predicate: Expression | None
    candidates: FilePlan
    parts: Sequence[MergedPart]
    inserted: Sequence[WrittenFiles]
    source_rows: int


class MergeSource(Protocol):
    """The rows of the source of a merge."""

    @property
    def columns(self) -> StructType:
        """Return the columns of the source."""

    def check(self, plan: MergePlan) -> None:
        """Raise an error for a merge that this source does not support."""

    def rewrite(self, plan: MergePlan, executor: Executor) -> MergedFiles:
        """Rewrite the files with matching rows, and write the inserted rows, by tasks."""


def execute(
    source: MergeSource, table: Any, storage_options: Mapping[str, str] | None, plan: MergePlan
) -> RewriteResult:
    """Commit a merge and return its result."""
    plan.check()
    executor = rewrite_executor(table, plan.snapshot, plan.commit, storage_options)
    if result := skip_repeated(plan.snapshot, plan.commit):
        executor.forget()
        return result
    merged = source.rewrite(plan, executor)
    inserted = [*(each.inserted for each in merged.parts), *merged.inserted]
    counts: Counter[str] = Counter()
    for each in merged.parts:
        counts.update(each.counts)
    rows = sum(files.rows for files in inserted)
    counted = MergeCounts(counts["update"], counts["delete"], rows, merged.source_rows)

    def commit(rewritten: RewrittenFiles) -> RewriteResult:
        return commit_merge(plan, merged.predicate, rewritten, counted)

    parts, files = [each.part for each in merged.parts], plan.options.files
    return finish_rewrite(executor, plan.snapshot, merged.candidates, parts, inserted, files, commit)


@dataclass(frozen=True)
class MemorySource:
    """A source in memory, of which each task has all rows."""

    rows: pa.RecordBatch
    columns: StructType

    def check(self, plan: MergePlan) -> None:
        """Accept every merge."""

    def rewrite(self, plan: MergePlan, executor: Executor) -> MergedFiles:
        """Rewrite the files with matching rows, and write the inserted rows, by tasks."""
        join = Join(self.rows, plan.join)
        predicate = plan.target_predicate(join.key_values())
        candidates = plan_files(plan.snapshot, predicate)
        begin("rewriting", files=candidates.files.num_rows)
        version = strip_files(plan.snapshot)
        new_task = partial(MergeTask, version, candidates.pruning_predicate, join, plan.clauses, plan.options)
        parts = list(executor.run(map(new_task, split_files(executor, candidates.files))))
        inserted: list[WrittenFiles] = []
        if any(clause.when == "not matched" for clause in plan.clauses):
            matched = tuple(each.matched for each in parts if each.matched is not None)
            inserted = list(executor.run([InsertTask(version, join, plan.clauses, plan.options, matched)]))
        return MergedFiles(predicate, candidates, parts, inserted, self.rows.num_rows)


@dataclass(frozen=True)
class MergeTask:
    """Merges a source in memory into some files of a table.

    The version has no store.
    """

    snapshot: TableVersion
    pruning_predicate: PruningPredicate
    join: Join
    clauses: Sequence[Clause]
    options: WriteOptions
    files: Iterable[FileEntry]

    def run(self, store: Store, name: NameFile) -> MergedPart:
        """Return the files that are replaced and written; after an error, remove the new ones."""
        snapshot = replace(self.snapshot, store=store)
        state = snapshot.configuration
        merge = _MergeState(MergeRows(snapshot, self.join, self.clauses, RowRules.of(state)))
        change, pruning = merge.change(), self.pruning_predicate
        part = rewrite_files(snapshot, self.files, pruning, lambda _: change, state, self.options, name)
        empty: Array = pa.array([], pa.int64())
        matched = pc.unique(pa.concat_arrays([empty, *merge.matched]))
        return MergedPart(part, NO_FILES, dict(merge.counts), matched)


@dataclass(frozen=True)
class InsertTask:
    """Writes the rows of a source in memory that matched no row of the table.

    The version has no store.
    """

    snapshot: TableVersion
    join: Join
    clauses: Sequence[Clause]
    options: WriteOptions
    matched: Sequence[Array]

    def run(self, store: Store, name: NameFile) -> WrittenFiles:
        """Return the files of the new rows."""
        snapshot = replace(self.snapshot, store=store)
        rules = RowRules.of(snapshot.configuration)
        new = MergeRows(snapshot, self.join, self.clauses, rules).inserted(self.matched)
        return insert_rows(snapshot, new, self.options, name)


def insert_rows(
    snapshot: TableVersion, rows: Iterable[pa.RecordBatch], options: WriteOptions, name: NameFile
) -> WrittenFiles:
    """Write new rows of a table, and return their files."""
    state = snapshot.configuration
    limited = restrict_to_table(options, state)
    batches = complete_rows(((batch, None) for batch in rows), state, limited)
    return write_files(snapshot.store, batches, state, limited, name=name)


@dataclass(frozen=True)
class _MergeState:
    """The rows of a merge, with counts that accumulate while files are read."""

    rows: MergeRows
    counts: Counter[str] = field(default_factory=Counter)
    matched: list[Array] = field(default_factory=list)
    """The source rows that matched a row of the table, for each batch."""

    def change(self) -> RowChange:
        """Return the change of existing rows."""
        snapshot, clauses, join = self.rows.snapshot, self.rows.clauses, self.rows.join.predicate
        tested = inputs_tested(join.operands, clauses)
        read = [*join.operands, *(each for clause in clauses for each in clause.expressions)]
        copied = columns_copied(snapshot, clauses, self.rows.rules, read)
        return RowChange(tested, self._changes, inputs_changed(snapshot, tested), self._apply, copied)

    def _changes(self, batch: pa.RecordBatch) -> Array:
        decision, matched = self.rows.decide(batch)
        self.matched.append(matched)
        for number, clause in enumerate(self.rows.clauses):
            self.counts[clause.action] += decision.rows_of(number).true_count
        return decision.changes

    def _apply(self, batch: pa.RecordBatch) -> Iterator[ChangedBatch]:
        decision, _ = self.rows.decide(batch)
        return self.rows.apply(batch, decision)
