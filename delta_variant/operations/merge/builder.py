"""Merging a source into a table: rows that match are updated or deleted, others inserted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from ..._checks import check_text, texts_of
from ...data_file.options import DEFAULT_TARGET_FILE_SIZE, WriteOptions
from ...errors import ExpressionError
from ...log.load import load_snapshot
from ...log.snapshot import Snapshot
from ...protocol.schema.arrow import from_arrow, to_arrow
from ...protocol.schema.conforming import conform
from ...protocol.types import StructType
from ...scan.in_memory import parse_json_columns
from ...scan.scope import Scope
from ...storage.store import TableLocation
from ...variant.moments import UTC
from ...writer.arrow_input import batches_of
from ..rewrite.assignment import assignments_of
from ..rewrite.result import RewriteResult
from ..rewrite.sides import Side, Sides, side_inputs
from .clauses import Clause, ClauseAction, When
from .execute import execute
from .joining import Join

__all__ = ["Merge", "merge"]

NO_UPDATES: Mapping[str, str | None] = {}
READABLE: Mapping[When, Side] = {"not matched": "source", "not matched by source": "target"}


def merge(
    table: TableLocation,
    source: Any,
    on: str,
    *,
    source_alias: str = "source",
    target_alias: str = "target",
    variant_columns: Sequence[str] = (),
    timezone: str = UTC,
    target_file_size: int = DEFAULT_TARGET_FILE_SIZE,
    storage_options: Mapping[str, str] | None = None,
) -> Merge:
    """Return a merge of `source` into a table, to which clauses are added before `execute()`.

    `source` is any object with `__arrow_c_stream__` or `__arrow_c_array__`; its rows and keys are held in
    memory, the table is read batch by batch. `variant_columns` names columns of JSON text that become
    Variants. `on` is SQL text over both, such as `target.event:user.id::bigint = source.id`; equalities in it
    decide which files are looked at. A column that only one side has needs no alias. Local times in all SQL
    text of the merge are those of `timezone`, as in `read_table`.

    Raises ExpressionError for SQL that is not understood, SchemaError and InvalidJsonError for the source,
    ArgumentTypeError for arguments of other types.
    """
    for option, alias in (("source_alias", source_alias), ("target_alias", target_alias)):
        check_text(option, alias)
    snapshot = load_snapshot(table, storage_options=storage_options).in_timezone(timezone)
    rows, columns = _in_memory(source, variant_columns)
    sides = Sides(
        target_alias, Scope.of(snapshot.schema, snapshot.timezone), source_alias, Scope.of(columns, timezone)
    )
    options = WriteOptions(target_file_size=target_file_size)
    return Merge(snapshot, sides, on, Join.of(rows, sides.predicate(on)), options)


def _in_memory(source: Any, variant_columns: Sequence[str]) -> tuple[pa.RecordBatch, StructType]:
    arrow_schema, batches = batches_of(source, "the source")
    columns = from_arrow(arrow_schema, texts_of("names", "variant_columns", variant_columns))
    # What is conformed has no dictionaries and views, not all of which Arrow joins.
    conformed = [conform(batch, columns) for batch in batches]
    table = pa.Table.from_batches(conformed) if conformed else to_arrow(columns).empty_table()
    whole = table.combine_chunks().to_batches()
    if len(whole) > 1:
        raise ValueError("a column of the source has more than 2 GiB: merge it in parts")
    batch = whole[0] if whole else pa.RecordBatch.from_pylist([], schema=table.schema)
    return parse_json_columns(batch, columns), columns


@dataclass(frozen=True)
class Merge:
    """A merge and its clauses: of those of a kind, the first whose condition is true counts for a row.

    Each method returns a merge with one clause more. Conditions and values are SQL text; those of matched
    rows over both tables, of rows that do not match over the one that has the row. Keys of `updates` are
    columns of the table, or paths of its Variants as in `update`. A column of text becomes a whole Variant
    only where it is cast to string: else it may be JSON text that `variant_columns` does not name.
    """

    _snapshot: Snapshot
    _sides: Sides
    _on: str
    _join: Join
    _options: WriteOptions
    _clauses: tuple[Clause, ...] = ()

    def when_matched_update(self, updates: Mapping[str, str | None], predicate: str | None = None) -> Merge:
        """Update rows that match."""
        return self._with("matched", "update", predicate, updates)

    def when_matched_update_all(
        self, predicate: str | None = None, except_cols: Sequence[str] | None = None
    ) -> Merge:
        """Set all columns of rows that match to those of the source."""
        return self._with("matched", "update", predicate, self._all_columns(except_cols))

    def when_matched_delete(self, predicate: str | None = None) -> Merge:
        """Delete rows that match."""
        return self._with("matched", "delete", predicate)

    def when_not_matched_insert(
        self, updates: Mapping[str, str | None], predicate: str | None = None
    ) -> Merge:
        """Insert rows of the source that match none; columns that are not named are NULL."""
        return self._with("not matched", "insert", predicate, updates)

    def when_not_matched_insert_all(
        self, predicate: str | None = None, except_cols: Sequence[str] | None = None
    ) -> Merge:
        """Insert rows of the source that match none, with all columns."""
        return self._with("not matched", "insert", predicate, self._all_columns(except_cols))

    def when_not_matched_by_source_update(
        self, updates: Mapping[str, str | None], predicate: str | None = None
    ) -> Merge:
        """Update rows of the table that no row of the source matches."""
        return self._with("not matched by source", "update", predicate, updates)

    def when_not_matched_by_source_delete(self, predicate: str | None = None) -> Merge:
        """Delete rows of the table that no row of the source matches."""
        return self._with("not matched by source", "delete", predicate)

    def execute(self) -> RewriteResult:
        """Do it as one commit.

        Raises MergeAmbiguityError where several rows of the source would change one of the table, what
        `update` raises besides, and CommitConflictError when another commit changed what this one read;
        then, as after any error, the table is as it was.
        """
        if not self._clauses:
            raise ValueError("the merge has no clause: call when_matched_update or another before execute")
        return execute(self._snapshot, self._join, self._clauses, self._on, self._options)

    def _with(
        self,
        when: When,
        action: ClauseAction,
        predicate: str | None,
        updates: Mapping[str, str | None] = NO_UPDATES,
    ) -> Merge:
        condition = None if predicate is None else self._sides.predicate(predicate)
        assignments = assignments_of(updates, self._sides.target, self._sides.bind)
        clause = Clause(when, action, condition, assignments, predicate)
        _check_sides(clause)
        return replace(self, _clauses=(*self._clauses, clause))

    def _all_columns(self, except_cols: Sequence[str] | None) -> dict[str, str | None]:
        left_out = () if except_cols is None else texts_of("names", "except_cols", except_cols)
        names = [name for name in self._sides.target.schema.names if name not in left_out]
        return {_quoted(name): f"{_quoted(self._sides.source_alias)}.{_quoted(name)}" for name in names}


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _check_sides(clause: Clause) -> None:
    readable = READABLE.get(clause.when)
    other: Side = "source" if readable == "target" else "target"
    if readable is not None and side_inputs(clause.expressions, other):
        raise ExpressionError(f"a clause for rows that are {clause.when} reads the {readable} alone")
