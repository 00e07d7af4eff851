"""Execute a merge: tasks rewrite files with changed rows and write inserted rows, the driver commits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import chain
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from ..._arrow import Array, parts_by_bytes, row_numbers, total
from ..._progress import begin
from ...data_file.options import WriteOptions
from ...data_file.reader import filter_rows
from ...execution import Executor, NameFile, executor_of
from ...expressions.evaluate import evaluate, inputs_of
from ...expressions.tree import Expression, Input, literal_bytes
from ...expressions.tree import inputs as expression_inputs
from ...log.commit_context import txn_of
from ...log.snapshot import TableVersion, strip_files
from ...protocol.types import StructType
from ...read.file_reader import POSITION, FileEntry, files_of
from ...read.plan import FilePlan, plan_files
from ...read.predicate import PruningPredicate, RowCondition, leading_conditions
from ...read.scope import Scope
from ...storage.store import Store
from ...write.assignment import ColumnRoles, assign, replace_rows
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
from ..rewrite import REWRITE, finish_rewrite, split_files
from .joining import Join, Pairs, side_inputs, unqualify
from .plan import (
    Clause,
    Decision,
    FileDecision,
    MergePlan,
    commit_merge,
    decide,
    equal_to,
    first_matching_clause,
)

NO_ROWS = pa.RecordBatch.from_pylist([], schema=pa.schema([]))


def inputs_tested(join: Sequence[Expression], clauses: Sequence[Clause]) -> list[Input]:
    """Return the inputs of the table that decide which rows change; `join` are the operands of the join."""
    conditions = [*join, *(each.predicate for each in clauses if each.predicate is not None)]
    return [unqualify(each) for each in side_inputs(conditions, "target")]


def inputs_changed(version: TableVersion, others: Sequence[Input]) -> tuple[Input, ...]:
    columns = Scope.of(version.configuration).whole_columns()
    return expression_inputs([*columns.values(), *others])


def column_roles(version: TableVersion, clauses: Sequence[Clause], rules: RowRules) -> ColumnRoles:
    """Return what the clauses do with the columns of the table."""
    values = [value for clause in clauses for value in clause.values]
    roles = ColumnRoles.of(
        Scope.of(version.configuration),
        rules,
        [clause.assignments for clause in clauses if clause.action == "update"],
        values=[unqualify(each) for each in side_inputs(values, "target")],
        may_remove=any(clause.action == "delete" for clause in clauses),
    )
    # A source has whole rows of which few columns differ.
    return replace(roles, compared=roles.assigned)


@dataclass(frozen=True)
class MergeRows:
    """The clauses of a merge, applied to rows of the table and of a source."""

    version: TableVersion
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
        scope = Scope.of(self.version.configuration)
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
                    pa.record_batch(whole), [unqualify(each) for each in side_inputs(clause.values, "target")]
                )
                values = self.join.joined(some, pairs, clause.values)
                assigned = assign(whole, clause.assignments, values)
                changed = self.rules.complete_assigned(assigned, clause.columns)
                self.rules.check_updated(changed)
                same = {name: columns[name] for name in columns if changed[name] is whole[name]}
                merged = replace_rows(columns, selected, {**changed, **same}, scope.variants)
                columns = dict(zip(columns, merged, strict=True))
        rows = pa.record_batch(columns)
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
        fields = Scope.of(self.version.configuration).schema
        nulls: dict[str, Array] = {each.name: pa.nulls(len(source), each.type) for each in fields}
        pairs = Pairs(pa.nulls(len(source), pa.int64()), source)
        values = self.join.joined(NO_ROWS, pairs, clause.values)
        columns = assign(nulls, clause.assignments, values)
        filled = self.rules.filled_columns(clause.columns)
        given = {name: column for name, column in columns.items() if name not in filled}
        return pa.record_batch(given)


@dataclass(frozen=True)
class MergedPart:
    """What a task of a merge did: the numbers of rows of each action, and files of changed and new rows.

    `matched` are the source rows in memory that matched a row of the table.
    """

    part: RewrittenPart
    inserted: WrittenFiles
    counts: Mapping[str, int]
    matched: Array | None = None

    def paths(self) -> Iterator[str]:
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

    def rewrite(self, plan: MergePlan, executor: Executor) -> MergedFiles:
        """Rewrite the files with matching rows, and write the inserted rows, by tasks."""


def execute(source: MergeSource, table: Any, plan: MergePlan) -> RewriteResult:
    """Commit a merge and return its result."""
    plan.check()
    executor = executor_of(table, plan.snapshot.store, "MERGE", txn_of(plan.commit))
    if result := skip_repeated(plan.snapshot, plan.commit):
        executor.forget()
        return result
    merged = source.rewrite(plan, executor)
    inserted = [*(each.inserted for each in merged.parts), *merged.inserted]
    counts: Counter[str] = Counter()
    for each in merged.parts:
        counts.update(each.counts)
    counts["insert"] = sum(files.rows for files in inserted)

    def commit(rewritten: RewrittenFiles) -> RewriteResult:
        return commit_merge(plan, merged.predicate, rewritten, counts, merged.source_rows)

    parts, files = [each.part for each in merged.parts], plan.options.files
    return finish_rewrite(executor, plan.snapshot, merged.candidates, parts, inserted, files, commit)


@dataclass(frozen=True)
class MemorySource:
    """A source in memory, of which each task has all rows."""

    rows: pa.RecordBatch
    columns: StructType

    def rewrite(self, plan: MergePlan, executor: Executor) -> MergedFiles:
        """Rewrite the files with matching rows, and write the inserted rows, by tasks."""
        join = Join(self.rows, plan.join)
        predicate = plan.target_predicate(join.key_values())
        candidates = plan_files(plan.snapshot, predicate)
        begin("rewriting", files=candidates.files.num_rows)
        version = strip_files(plan.snapshot)
        pruning, conditions = candidates.pruning_predicate, leading_conditions(predicate)
        if not plan.reads_all_rows:
            conditions += join.conditions()
        merge = partial(_merge_files, version, pruning, conditions, join, plan.clauses, plan.options)
        files = candidates.files
        if files.num_rows and executor.prefers_driver(files.num_rows, total(files["size"])):
            parts = [executor.run_on_driver(REWRITE, partial(merge, files_of(files)))]
        else:
            tasks = (partial(merge, share) for share in split_files(executor, files))
            parts = list(executor.run(REWRITE, tasks))
        inserted: list[WrittenFiles] = []
        if any(clause.when == "not matched" for clause in plan.clauses):
            matched = tuple(each.matched for each in parts if each.matched is not None)
            insert = partial(_insert_unmatched, version, join, plan.clauses, plan.options, matched)
            inserted.append(executor.run_on_driver("write inserted rows", insert))
        return MergedFiles(predicate, candidates, parts, inserted, self.rows.num_rows)


def _merge_files(
    version: TableVersion,
    pruning: PruningPredicate,
    conditions: Sequence[RowCondition],
    join: Join,
    clauses: Sequence[Clause],
    options: WriteOptions,
    files: Iterable[FileEntry],
    store: Store,
    name: NameFile,
) -> MergedPart:
    """Merge a source in memory into some files of a table; after an error, remove the new files."""
    version, state = replace(version, store=store), version.configuration
    merge = _MergeState(MergeRows(version, join, clauses, RowRules.of(state)))
    part = rewrite_files(version, files, pruning, merge.change_of(conditions), state, options, name)
    empty: Array = pa.array([], pa.int64())
    matched = pc.unique(pa.concat_arrays([empty, *merge.matched]))
    return MergedPart(part, NO_FILES, dict(merge.counts), matched)


def _insert_unmatched(
    version: TableVersion,
    join: Join,
    clauses: Sequence[Clause],
    options: WriteOptions,
    matched: Sequence[Array],
    store: Store,
    name: NameFile,
) -> WrittenFiles:
    """Write the rows of a source in memory that matched no row of the table."""
    version, rules = replace(version, store=store), RowRules.of(version.configuration)
    return insert_rows(version, MergeRows(version, join, clauses, rules).inserted(matched), options, name)


def insert_rows(
    version: TableVersion, rows: Iterable[pa.RecordBatch], options: WriteOptions, name: NameFile
) -> WrittenFiles:
    state = version.configuration
    limited = restrict_to_table(options, state)
    batches = complete_rows(((batch, None) for batch in rows), state, limited)
    return write_files(version.store, batches, state, limited, name=name)


@dataclass(frozen=True)
class _MergeState:
    """The rows of a merge, with counts that accumulate while files are read."""

    rows: MergeRows
    counts: Counter[str] = field(default_factory=Counter)
    matched: list[Array] = field(default_factory=list)
    """The source rows that matched a row of the table, for each batch."""

    def change_of(self, conditions: Sequence[RowCondition]) -> Callable[[FileEntry], RowChange]:
        """Return a function from a file to the change of its rows; those that change meet some conditions.

        The rows of a file are joined once, so that each file has a change of its own.
        """
        version, clauses, join = self.rows.version, self.rows.clauses, self.rows.join.predicate
        tested = [*inputs_tested(join.operands, clauses), POSITION]
        inputs, roles = inputs_changed(version, [POSITION]), column_roles(version, clauses, self.rows.rules)

        def change(_: FileEntry) -> RowChange:
            parts: list[tuple[Array, Decision]] = []
            whole = cache(lambda: FileDecision.join(parts))

            def changes(batch: pa.RecordBatch) -> Array:
                decision = self._decide(batch)
                parts.append((batch.column(POSITION.name), decision))
                return decision.changes

            def apply(batch: pa.RecordBatch) -> Iterator[ChangedBatch]:
                return self.rows.apply(batch, whole().of(batch.column(POSITION.name)))

            return RowChange(tested, conditions, changes, inputs, apply, roles)

        return change

    def _decide(self, batch: pa.RecordBatch) -> Decision:
        decision, matched = self.rows.decide(batch)
        self.matched.append(matched)
        for number, clause in enumerate(self.rows.clauses):
            self.counts[clause.action] += decision.rows_of(number).true_count
        return decision
