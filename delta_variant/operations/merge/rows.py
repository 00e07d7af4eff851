"""The rows that a merge changes and inserts, by its join and its clauses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..._arrow import Array, parts_by_bytes, row_numbers
from ...data_file.reader import filter_rows
from ...expressions.evaluate import evaluate
from ...expressions.tree import Expression, Input, literal_bytes
from ...expressions.tree import inputs as expression_inputs
from ...log.snapshot import TableVersion
from ...read.in_memory import inputs_of
from ...read.scope import Scope
from ...write.assignment import assign, replace_rows
from ...write.rewrite import ChangedBatch
from ...write.row_rules import RowRules
from .clauses import Clause, Decision, decide, equal_to, first_matching_clause
from .joining import Join, Pairs
from .sides import side_inputs, unqualify

__all__ = ["MergeRows", "columns_copied", "inputs_changed", "inputs_tested"]

NO_ROWS = pa.RecordBatch.from_pylist([], schema=pa.schema([]))


def inputs_tested(join: Sequence[Expression], clauses: Sequence[Clause]) -> list[Input]:
    """Return the inputs of the table that decide which rows change; `join` are the operands of the join."""
    conditions = [*join, *(each.predicate for each in clauses if each.predicate is not None)]
    return [unqualify(each) for each in side_inputs(conditions, "target")]


def inputs_changed(snapshot: TableVersion, others: Sequence[Input]) -> tuple[Input, ...]:
    """Return all columns of the table and further inputs."""
    columns = Scope.of(snapshot.configuration).whole_columns()
    return expression_inputs([*columns.values(), *others])


def columns_copied(
    snapshot: TableVersion, clauses: Sequence[Clause], rules: RowRules, read: Sequence[Expression]
) -> frozenset[str]:
    """Return the Variant columns of the table that no clause assigns and no expression of `read` reads."""
    scope = Scope.of(snapshot.configuration)
    inputs = [unqualify(each) for each in side_inputs(read, "target")]
    assigned = {each.column for clause in clauses for each in clause.assignments}
    return scope.variants_unread_by(inputs) - assigned - rules.columns_read


@dataclass(frozen=True)
class MergeRows:
    """The clauses of a merge, applied to rows of the table and of a source."""

    snapshot: TableVersion
    join: Join
    clauses: Sequence[Clause]
    rules: RowRules

    def decide(self, batch: pa.RecordBatch) -> tuple[Decision, Array]:
        """Return the decision for each row of a batch, and the source rows that match one of them."""
        pairs = self.join.pairs(batch)
        return decide(self.join, self.clauses, batch, pairs), pc.unique(pairs.source)

    def apply(self, batch: pa.RecordBatch, decision: Decision) -> Iterator[ChangedBatch]:
        """Yield parts of a batch of all columns of the table after a decision."""
        values = [value for clause in self.clauses if clause.action == "update" for value in clause.values]
        constants = pc.if_else(decision.changes, literal_bytes(values), 0)
        sizes = pc.add(self.join.copied_bytes(decision.source, values), constants)
        for part in parts_by_bytes(sizes):
            clause, source = (each.slice(*part) for each in (decision.clause, decision.source))
            yield self._apply(batch.slice(*part), Decision(clause, source))

    def _apply(self, batch: pa.RecordBatch, decision: Decision) -> ChangedBatch:
        scope = Scope.of(self.snapshot.configuration)
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
                pairs = Pairs(row_numbers(len(source)), source)
                whole = {name: column.filter(selected) for name, column in columns.items()}
                some = inputs_of(
                    pa.record_batch(list(whole.values()), names=list(whole)),
                    [unqualify(each) for each in side_inputs(clause.values, "target")],
                )
                values = self.join.joined(some, pairs, clause.values)
                assigned = assign(whole, clause.assignments, values)
                changed = self.rules.complete_assigned(assigned, clause.columns)
                self.rules.check_updated(changed)
                same = {name: columns[name] for name in columns if changed[name] is whole[name]}
                merged = replace_rows(columns, selected, {**changed, **same}, scope.variants)
                columns = dict(zip(columns, merged, strict=True))
        rows = pa.record_batch(list(columns.values()), names=list(columns))
        return ChangedBatch(filter_rows(rows, remaining), remaining, updated)

    def inserted(self, matched: Sequence[Array]) -> Iterator[pa.RecordBatch]:
        """Yield the source rows that are in none of `matched`, as rows of the table."""
        if all(clause.when != "not matched" for clause in self.clauses):
            return
        empty: Any = pa.array([], pa.int64())
        known = pc.unique(pa.concat_arrays([empty, *matched]))
        numbers = row_numbers(self.join.source.num_rows)
        new = numbers.filter(pc.invert(pc.is_in(numbers, value_set=known)))
        pairs = Pairs(pa.nulls(len(new), pa.int64()), new)
        chosen = first_matching_clause(self.join, self.clauses, "not matched", NO_ROWS, pairs)
        for number, clause in enumerate(self.clauses):
            if clause.when == "not matched":
                rows = new.filter(equal_to(chosen, number))
                sizes: Array = pa.repeat(literal_bytes(clause.values), len(rows))
                for part in parts_by_bytes(sizes):
                    yield self._rows_of(clause, rows.slice(*part))

    def _rows_of(self, clause: Clause, source: Array) -> pa.RecordBatch:
        fields = Scope.of(self.snapshot.configuration).schema
        nulls: dict[str, Array] = {each.name: pa.nulls(len(source), each.type) for each in fields}
        pairs = Pairs(pa.nulls(len(source), pa.int64()), source)
        values = self.join.joined(NO_ROWS, pairs, clause.values)
        columns = assign(nulls, clause.assignments, values)
        filled = {column.name for column in self.rules.computed_columns(clause.columns)}
        given = {name: column for name, column in columns.items() if name not in filled}
        return pa.record_batch(list(given.values()), names=list(given))
