"""The plan of a merge: its clauses, the choice of the clause that applies to a row, and the commit."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from ..._arrow import Array, row_numbers
from ..._checks import list_names
from ..._text import count
from ...data_file.options import WriteOptions
from ...errors import MergeAmbiguityError
from ...execution import Description
from ...expressions.tree import Expression
from ...log.commit_context import CommitOptions
from ...log.snapshot import Snapshot
from ...read.rows import known_rows
from ...write.assignment import Assignment
from ...write.rewrite import RewriteResult, RewrittenFiles, commit_rewrite
from ...write.table_changes import advance, check_given
from .joining import Join, JoinPredicate, KeyValues, Pairs

ClauseAction: TypeAlias = Literal["update", "delete", "insert"]
When: TypeAlias = Literal["matched", "not matched", "not matched by source"]


@dataclass(frozen=True)
class Clause:
    """An action on the rows of one kind for which the predicate is true, None for all rows of the kind."""

    when: When
    action: ClauseAction
    predicate: Expression | None
    assignments: tuple[Assignment, ...] = ()
    text: str | None = None

    @property
    def expressions(self) -> list[Expression]:
        """Return the predicate and the assigned values."""
        return self.values if self.predicate is None else [self.predicate, *self.values]

    @property
    def values(self) -> list[Expression]:
        return [each.value for each in self.assignments if each.value is not None]

    @property
    def columns(self) -> frozenset[str]:
        """Return the columns that the clause assigns as a whole or in part."""
        return frozenset(each.column for each in self.assignments)

    def describe(self) -> str:
        """Return the clause as text: its rows, its action, and the columns that it assigns."""
        where = "" if self.text is None else f" where {self.text}"
        assigned = f": set {list_names(sorted(self.columns))}" if self.assignments else ""
        return f"when {self.when} {self.action}{where}{assigned}"


@dataclass(frozen=True)
class Decision:
    """For each row of a batch of the table, the number of the clause that applies and the source row.

    Both are null for an unchanged row.
    """

    clause: Array
    source: Array

    @property
    def changes(self) -> Array:
        return self.clause.is_valid()

    def rows_of(self, number: int) -> Array:
        """Return a mask of the rows to which the clause with this number applies."""
        return equal_to(self.clause, number)


@dataclass(frozen=True)
class FileDecision:
    """The decision for the changed rows of a file, whose positions ascend."""

    positions: Array
    clause: Array
    source: Array

    @classmethod
    def join(cls, parts: Sequence[tuple[Array, Decision]]) -> FileDecision:
        """Return the decision for a file from those for its batches, with the positions of their rows."""
        columns: list[list[Array]] = [[pa.array([], pa.int64())] for _ in range(3)]
        for positions, decision in parts:
            for column, values in zip(columns, (positions, decision.clause, decision.source), strict=True):
                column.append(values.filter(decision.changes))
        return cls(*map(pa.concat_arrays, columns))

    @cached_property
    def _positions(self) -> memoryview:
        _, positions = self.positions.buffers()
        first = self.positions.offset
        return memoryview(positions).cast("q")[first : first + len(self.positions)]

    def of(self, positions: Array) -> Decision:
        """Return the decision for each row of a batch of the file, given their positions, which ascend."""
        first = end = 0
        if len(positions):
            first = bisect_left(self._positions, positions[0].as_py())
            end = bisect_right(self._positions, positions[-1].as_py())
        changed, clause, source = (
            each.slice(first, end - first) for each in (self.positions, self.clause, self.source)
        )
        found = pc.index_in(positions, value_set=changed)
        return Decision(clause.take(found), source.take(found))


def decide(join: Join, clauses: Sequence[Clause], batch: pa.RecordBatch, pairs: Pairs) -> Decision:
    """Return the decision for each row of a batch.

    Raises MergeAmbiguityError for a row that several source rows would change, unless all of them delete it.
    """
    chosen = first_matching_clause(join, clauses, "matched", batch, pairs)
    acting = chosen.is_valid()
    targets, clause, source = (each.filter(acting) for each in (pairs.target, chosen, pairs.source))
    is_again: Array = pc.equal(targets[1:], targets[:-1])
    if is_again.true_count:
        matched = [each for each in clauses if each.when == "matched"]
        if [(each.action, each.predicate) for each in matched] != [("delete", None)]:
            raise MergeAmbiguityError(
                "several source rows match the same row of the table and would change it: make the predicate "
                "of the merge narrower, or the keys of the source unique"
            )
        first: Array = pa.array([True])
        is_first = pa.concat_arrays([first, pc.invert(is_again)])
        targets, clause, source = (each.filter(is_first) for each in (targets, clause, source))
    decision = Decision(*(_placed(each, targets, batch.num_rows) for each in (clause, source)))
    if all(each.when != "not matched by source" for each in clauses):
        return decision
    rows = row_numbers(batch.num_rows)
    alone = rows.filter(pc.invert(pc.is_in(rows, value_set=pairs.target)))
    unmatched = Pairs(alone, pa.nulls(len(alone), pa.int64()))
    left = first_matching_clause(join, clauses, "not matched by source", batch, unmatched)
    return Decision(pc.coalesce(decision.clause, _placed(left, alone, batch.num_rows)), decision.source)


def _placed(values: Array, rows: Array, count: int) -> Array:
    """Return `count` values: some at the given rows, and null at others."""
    scatter: Any = pc.scatter  # type: ignore[attr-defined]
    return scatter(values, rows, max_index=count - 1) if count else values


def equal_to(numbers: Array, number: int) -> Array:
    """Return a mask, without nulls, of the numbers that are equal to `number`."""
    equal: Array = pc.equal(numbers, pa.scalar(number, pa.int64()))
    return pc.fill_null(equal, False)


def first_matching_clause(
    join: Join, clauses: Sequence[Clause], when: When, batch: pa.RecordBatch, pairs: Pairs
) -> Array:
    """Return for each pair the number of the first clause of a kind whose predicate is true, or null."""
    chosen: Array = pa.nulls(len(pairs.target), pa.int64())
    for number, clause in enumerate(clauses):
        if clause.when != when:
            continue
        is_true: Array = pa.repeat(pa.scalar(True), len(chosen))
        if clause.predicate is not None:
            is_true = join.mask(batch, pairs, clause.predicate)
        candidate = pc.if_else(is_true, pa.scalar(number, pa.int64()), pa.scalar(None, pa.int64()))
        chosen = pc.coalesce(chosen, candidate)
    return chosen


@dataclass(frozen=True)
class MergePlan:
    """A merge of a source into a table.

    `snapshot` is the table with the columns that the merge adds, `before` the table as it is. `on` is the SQL
    text of the predicate `join`.
    """

    snapshot: Snapshot
    before: Snapshot
    on: str
    join: JoinPredicate
    options: WriteOptions
    commit: CommitOptions
    clauses: tuple[Clause, ...] = ()
    schema_mode: Literal["merge"] | None = None

    def without_unset_columns(self) -> MergePlan:
        """Return the plan without new columns if no clause sets one of the columns that change."""
        old = set(self.before.schema.fields)
        changed = {field.name for field in self.snapshot.schema.fields if field not in old}
        if any(not changed.isdisjoint(clause.columns) for clause in self.clauses):
            return self
        return replace(self, snapshot=self.before)

    @property
    def reads_all_rows(self) -> bool:
        """Return whether a clause applies to rows of the table that match no source row."""
        return any(clause.when == "not matched by source" for clause in self.clauses)

    def check(self) -> None:
        """Raise the errors of `check_may_rewrite` and `check_given` for a merge that is not permitted."""
        inserts = self.inserts
        updates = [clause for clause in self.clauses if clause.action == "update"]
        self.snapshot.configuration.check_may_rewrite(
            removes_rows=len(inserts) < len(self.clauses),
            adds_rows=bool(inserts),
            assigned=frozenset().union(*(clause.columns for clause in updates)),
        )
        for clause in inserts:
            check_given(self.snapshot.configuration, clause.columns)

    @property
    def inserts(self) -> list[Clause]:
        return [clause for clause in self.clauses if clause.action == "insert"]

    @property
    def columns_inserted(self) -> frozenset[str]:
        """Return the columns to which each insert gives values."""
        given = [clause.columns for clause in self.inserts]
        return frozenset.intersection(*given) if given else frozenset()

    def describe(self) -> Description:
        """Return the size of the table and the clauses; which rows match is known after a join."""
        rows, files = known_rows(self.snapshot), self.snapshot.num_files
        size = count(files, "file") if rows is None else f"{count(rows, 'row')} in {count(files, 'file')}"
        clauses = [clause.describe() for clause in self.clauses]
        heading = f"version {self.snapshot.version}, {size}: merge on {self.on}"
        facts = {"version": self.snapshot.version, "rows": rows, "files": files, "on": self.on}
        return Description((heading, *(f"  {each}" for each in clauses)), {**facts, "clauses": clauses})

    def target_predicate(self, keys: Sequence[KeyValues]) -> Expression | None:
        """Return a predicate for the rows that may change, by the keys of the source; None if all may."""
        return None if self.reads_all_rows else self.join.target_predicate(keys)


def commit_merge(
    plan: MergePlan,
    predicate: Expression | None,
    rewritten: RewrittenFiles,
    counts: Mapping[str, int],
    source_rows: int,
) -> RewriteResult:
    """Commit the files of a merge and return its result.

    `predicate` is the target predicate, `counts` has the number of rows of each action.
    """
    committed = commit_rewrite(
        plan.before,
        rewritten,
        after=advance(plan.snapshot.configuration, plan.columns_inserted, counts["insert"]),
        predicate=predicate,
        operation="MERGE",
        parameters={"predicate": plan.on, **_predicate_parameters(plan.clauses)},
        metrics={
            "numSourceRows": source_rows,
            "numTargetRowsInserted": counts["insert"],
            "numTargetRowsUpdated": counts["update"],
            "numTargetRowsDeleted": counts["delete"],
            "numTargetRowsCopied": rewritten.copied,
        },
        commit=plan.commit,
    )
    return RewriteResult(
        committed.version,
        metrics=committed.metrics,
        rows_deleted=counts["delete"],
        rows_updated=counts["update"],
        rows_inserted=counts["insert"],
        rows_copied=rewritten.copied,
        files_removed=rewritten.files_removed,
        files=rewritten.files.files,
    )


def _predicate_parameters(clauses: Sequence[Clause]) -> Mapping[str, str]:
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
