"""Execute a merge with a source in memory: rewrite files with changed rows, and write inserted rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from ..._arrow import Array
from ...read.plan import plan_files
from ...write.copy_on_write import ChangedBatch, RowChange, rewrite_rows
from ...write.partitions import discard
from ...write.preparation import restrict_to_table
from ...write.rewrite_result import RewriteResult, skip_repeated
from ...write.router import write_files
from ...write.row_rules import RowRules, complete_rows
from .joining import Join
from .plan import MergeCounts, MergePlan, commit_merge
from .rows import MergeRows, columns_copied, inputs_changed, inputs_tested

__all__ = ["execute"]


def execute(source: pa.RecordBatch, plan: MergePlan) -> RewriteResult:
    """Commit a merge and return its result."""
    plan.check()
    snapshot = plan.snapshot
    if result := skip_repeated(snapshot, plan.commit):
        return result
    join = Join(source, plan.join)
    predicate = plan.target_predicate(join.key_values())
    target = snapshot.configuration
    state = _MergeState(MergeRows(snapshot, join, plan.clauses, RowRules.of(target)))
    rewritten = rewrite_rows(snapshot, plan_files(snapshot, predicate), state.change(), target, plan.options)
    try:
        limited = restrict_to_table(plan.options, target)
        new = state.rows.inserted(state.matched)
        batches = complete_rows(((batch, None) for batch in new), target, limited)
        inserted = write_files(snapshot.store, batches, target, limited)
    except BaseException:
        discard(snapshot.store, rewritten.paths)
        raise
    counts = MergeCounts(state.counts["update"], state.counts["delete"], inserted.rows, source.num_rows)
    return commit_merge(plan, predicate, rewritten, inserted, counts)


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
