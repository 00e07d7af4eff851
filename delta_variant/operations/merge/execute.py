"""Execute a merge as one commit: rewrite files with changed rows, and write inserted rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from ..._arrow import Array
from ...data_file.options import WriteOptions
from ...data_file.reader import filter_rows
from ...expressions.evaluate import evaluate
from ...expressions.tree import inputs as expression_inputs
from ...log.snapshot import Snapshot
from ...scan.in_memory import inputs_of
from ...scan.plan import plan_files
from ...scan.scope import Scope
from ...writer.commit_context import CommitOptions
from ...writer.constraints import RowRules
from ...writer.copy_on_write import ChangedBatch, RowChange, rewrite_rows
from ...writer.invalid_json import InvalidValueHandler
from ...writer.partitioned import PartitionFile, apply_row_rules, discard, write_files
from ...writer.table_state import TableState, restrict_to_table
from ..rewrite.assignment import assign, check_constraints, replace_rows
from ..rewrite.permission import check_may_rewrite
from ..rewrite.result import RewriteResult, commit_rewrite, skip_repeated
from ..rewrite.sides import side_inputs, unqualify
from .clauses import Clause, decide, equal_to, first_matching_clause
from .joining import Join, Pairs

__all__ = ["execute"]

NO_ROWS = pa.RecordBatch.from_pylist([], schema=pa.schema([]))


def execute(
    snapshot: Snapshot,
    join: Join,
    clauses: Sequence[Clause],
    on: str,
    options: WriteOptions,
    commit: CommitOptions,
) -> RewriteResult:
    """Commit a merge and return its result."""
    changes_rows = any(clause.when != "not matched" for clause in clauses)
    check_may_rewrite(snapshot, removes_rows=changes_rows)
    if result := skip_repeated(snapshot, commit):
        return result
    reads_all_rows = any(clause.when == "not matched by source" for clause in clauses)
    predicate = None if reads_all_rows else join.target_predicate()
    target = TableState.of(snapshot)
    rows = _MergeState(snapshot, join, clauses, target.row_rules())
    rewritten = rewrite_rows(snapshot, plan_files(snapshot, predicate), rows.change(), target, options)
    inserted: list[PartitionFile] = []
    try:
        limited = restrict_to_table(options, target, snapshot.uri)
        batches = apply_row_rules(((batch, None) for batch in rows.inserted()), target, limited)
        inserted = write_files(snapshot.store, batches, target, limited, InvalidValueHandler("error"))
    except BaseException:
        discard(snapshot.store, rewritten.paths)
        raise
    rows_inserted = sum(file.written.rows for file in inserted)
    updated, deleted = rows.counts["update"], rows.counts["delete"]
    committed = commit_rewrite(
        snapshot,
        rewritten,
        predicate=predicate,
        inserted=inserted,
        operation="MERGE",
        parameters={"predicate": on, **_predicate_parameters(clauses)},
        metrics={
            "numSourceRows": join.source.num_rows,
            "numTargetRowsInserted": rows_inserted,
            "numTargetRowsUpdated": updated,
            "numTargetRowsDeleted": deleted,
            "numTargetRowsCopied": rewritten.copied,
        },
        commit=commit,
    )
    return RewriteResult(
        committed.version,
        metrics=committed.metrics,
        rows_deleted=deleted,
        rows_updated=updated,
        rows_inserted=rows_inserted,
        rows_copied=rewritten.copied,
        files_removed=rewritten.removed.num_rows,
        files=tuple(file.written for file in (*rewritten.files, *inserted)),
    )


def _predicate_parameters(clauses: Sequence[Clause]) -> dict[str, str]:
    """Return the parameters of `commitInfo` for the clauses, as Delta on Spark writes them."""
    names = {
        "matched": "matchedPredicates",
        "not matched": "notMatchedPredicates",
        "not matched by source": "notMatchedBySourcePredicates",
    }
    return {
        name: msgspec.json.encode(
            [
                {"actionType": each.action, **({} if each.text is None else {"predicate": each.text})}
                for each in clauses
                if each.when == when
            ]
        ).decode()
        for when, name in names.items()
    }


@dataclass(frozen=True)
class _MergeState:
    """The rows that a merge changes, with counts that accumulate while files are read."""

    snapshot: Snapshot
    join: Join
    clauses: Sequence[Clause]
    rules: RowRules
    counts: Counter[str] = field(default_factory=Counter)
    matched: list[Array] = field(default_factory=list)
    """The source rows that matched a row of the table, for each batch."""

    def change(self) -> RowChange:
        """Return the change of existing rows."""
        conditions = [*self.join.conditions, *(each.predicate for each in self.clauses if each.predicate)]
        everything = [*conditions, *(each for clause in self.clauses for each in clause.expressions)]
        tested, read = (
            [unqualify(each) for each in side_inputs(expressions, "target")]
            for expressions in (conditions, everything)
        )
        scope = Scope.of(self.snapshot.schema, self.snapshot.timezone)
        inputs = expression_inputs([*scope.whole_columns().values(), *tested])
        assigned = {each.column for clause in self.clauses for each in clause.assignments}
        copied = scope.variants_unread_by(read) - assigned - self.rules.columns_read
        return RowChange(tested, self._changes, inputs, self._apply, copied)

    def _changes(self, batch: pa.RecordBatch) -> Array:
        pairs = self.join.pairs(batch)
        self.matched.append(pc.unique(pairs.source))
        decision = decide(self.join, self.clauses, batch, pairs)
        for number, clause in enumerate(self.clauses):
            self.counts[clause.action] += decision.rows_of(number).true_count
        return decision.changes

    def _apply(self, batch: pa.RecordBatch) -> ChangedBatch:
        scope = Scope.of(self.snapshot.schema, self.snapshot.timezone)
        decision = decide(self.join, self.clauses, batch, self.join.pairs(batch))
        columns = {name: evaluate(each, batch) for name, each in scope.whole_columns().items()}
        remaining: Array = pa.repeat(pa.scalar(True), batch.num_rows)
        updated: Array = pa.repeat(pa.scalar(False), batch.num_rows)
        for number, clause in enumerate(self.clauses):
            selected = decision.rows_of(number)
            if clause.action == "delete":
                remaining = pc.and_not(remaining, selected)
            elif clause.action == "update" and selected.true_count:
                updated = pc.or_(updated, selected)
                source = decision.source.filter(selected)
                pairs = Pairs(pa.array(range(len(source)), pa.int64()), source)
                whole = {name: column.filter(selected) for name, column in columns.items()}
                some = inputs_of(
                    pa.record_batch(list(whole.values()), names=list(whole)),
                    [unqualify(each) for each in side_inputs(clause.values, "target")],
                )
                values = self.join.joined(some, pairs, clause.values)
                changed = self.rules.regenerate(assign(whole, clause.assignments, values), clause.columns)
                check_constraints(self.rules, changed)
                same = {name: columns[name] for name in columns if changed[name] is whole[name]}
                merged = replace_rows(columns, selected, {**changed, **same}, scope.variants)
                columns = dict(zip(columns, merged, strict=True))
        rows = pa.record_batch(list(columns.values()), names=list(columns))
        return ChangedBatch(filter_rows(rows, remaining), remaining, updated)

    def inserted(self) -> list[pa.RecordBatch]:
        """Return the source rows without a match, as rows of the table."""
        if all(clause.when != "not matched" for clause in self.clauses):
            return []
        empty: Any = pa.array([], pa.int64())
        known = pc.unique(pa.concat_arrays([empty, *self.matched]))
        numbers: Any = pa.array(range(self.join.source.num_rows), pa.int64())
        new = numbers.filter(pc.invert(pc.is_in(numbers, value_set=known)))
        pairs = Pairs(pa.nulls(len(new), pa.int64()), new)
        chosen = first_matching_clause(self.join, self.clauses, "not matched", NO_ROWS, pairs)
        return [
            self._rows_of(clause, new.filter(equal_to(chosen, number)))
            for number, clause in enumerate(self.clauses)
            if clause.when == "not matched"
        ]

    def _rows_of(self, clause: Clause, source: Array) -> pa.RecordBatch:
        fields = Scope.of(self.snapshot.schema, self.snapshot.timezone).schema
        nulls: dict[str, Array] = {each.name: pa.nulls(len(source), each.type) for each in fields}
        pairs = Pairs(pa.nulls(len(source), pa.int64()), source)
        values = self.join.joined(NO_ROWS, pairs, clause.values)
        columns = assign(nulls, clause.assignments, values)
        filled = {column.name for column in self.rules.computed_columns(clause.columns)}
        given = {name: column for name, column in columns.items() if name not in filled}
        return pa.record_batch(list(given.values()), names=list(given))
