"""Merge a source into a table: update or delete matching rows, and insert others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import pyarrow as pa

from ..._checks import check_option, check_text, options_of, texts_of
from ..._text import quote
from ...data_file.options import FileOptions, WriteOptions
from ...errors import ExpressionError, printable
from ...execution import Engine, timezone_of
from ...input.arrow_data import batches_of
from ...input.files import open_path
from ...input.invalid_json import parse_json_columns, parse_lines
from ...input.json_lines import JsonLines
from ...log.commit_context import CommitOptions
from ...log.load import load_latest
from ...log.snapshot import Snapshot
from ...protocol.schema.arrow import from_arrow, to_arrow
from ...protocol.schema.conforming import conform
from ...protocol.table_configuration import TableConfiguration
from ...protocol.types import VARIANT, PrimitiveType, StructType
from ...read.scope import Scope
from ...storage.store import TableLocation
from ...write.assignment import assignments_of
from ...write.rewrite import RewriteResult
from ...write.table_changes import extend
from .execute import MemorySource, MergeSource, execute
from .joining import JoinPredicate, Side, Sides, side_inputs
from .plan import Clause, ClauseAction, MergePlan, When

NO_UPDATES: Mapping[str, str | None] = {}
READABLE: Mapping[When, Side] = {"not matched": "source", "not matched by source": "target"}


def merge(
    table: TableLocation,
    source: Any,
    on: str,
    *,
    source_alias: str = "source",
    target_alias: str = "target",
    schema_mode: Literal["merge"] | None = None,
    variant_columns: Sequence[str] = (),
    timezone: str | None = None,
    files: FileOptions | None = None,
    commit: CommitOptions | None = None,
) -> Merge:
    """Return a merge of `source` into a table, to which you add clauses before you call `execute()`.

    The rows and keys of the source are held in memory, those of a DataFrame on the executors. The table is
    read batch by batch. In SQL text, a column does not need an alias if one of the two does not have it, or
    cannot be read by the clause.

    Args:
        table: A path, a URI, a `Table` or a `deltalake.DeltaTable`: the target of the merge.
        source: The rows of the source: Arrow data, a frame, dicts, or the result of `read_json` with
            `on_invalid="error"`, like the data of `write_table`. With a `SparkEngine` also a batch DataFrame
            of any size; one larger than `spark.sql.autoBroadcastJoinThreshold` needs an equality in `on`.
        on: An SQL predicate over both, such as `target.event:user.id::bigint = source.id`. Equalities in it
            decide which files are read.
        source_alias: The name of the source in SQL text, `"source"` by default.
        target_alias: The name of the table in SQL text, `"target"` by default.
        schema_mode: None, the default, requires a source that has all columns of the table if a clause sets
            all columns, and ignores its other columns. `"merge"` sets the columns that the source has, and
            adds those to the table that it lacks and that a clause sets, also fields of structs.
        variant_columns: The names of source columns with JSON text that become Variants. Empty by default.
        timezone: The time zone of local times in all SQL text of the merge, as in `read_table`. None, the
            default, is that of the engine of a `Table`, `"UTC"` without one.
        files: How new files are written; see `FileOptions`. None, the default, uses its defaults.
        commit: The `txn` and the metadata of the commit; see `CommitOptions`. None, the default, sets none.

    Returns:
        A `Merge` without clauses.

    Raises:
        ExpressionError: `on` cannot be parsed or bound.
        SchemaError: The source has a type that Delta does not have.
        InvalidJsonError: The source has invalid JSON.
        ArgumentTypeError: An argument has the wrong type.
        ValueError: The aliases are equal, a column of the source is larger than 2 GiB, or `read_json` has
            another `on_invalid`.

    Example:
        >>> import pyarrow as pa
        >>> from delta_variant import merge, write_table
        >>> table = "events"
        >>> result = write_table(table, pa.table({"id": [1, 2], "n": [10, 20]}))
        >>> source = pa.table({"id": [2, 3], "n": [21, 30]})
        >>> changes = merge(table, source, "target.id = source.id").when_matched_update_all()
        >>> result = changes.when_not_matched_insert_all().execute()
        >>> result.rows_updated, result.rows_inserted
        (1, 1)
    """
    files, commit = options_of("files", files, FileOptions), options_of("commit", commit, CommitOptions)
    for option, alias in (("source_alias", source_alias), ("target_alias", target_alias)):
        check_text(option, alias)
    if source_alias.lower() == target_alias.lower():
        raise ValueError(f"source_alias: expected another name than target_alias, got {source_alias!r}")
    check_option("schema_mode", schema_mode, ("merge", None))
    names = texts_of("names", "variant_columns", variant_columns)
    engine: Engine | None = getattr(table, "engine", None)
    frame: MergeSource | None = None if engine is None else engine.merge_source(source, names)
    snapshot = load_latest(table).in_timezone(timezone_of(table, timezone))
    rows = frame or _in_memory(source, names, snapshot.schema)
    before = snapshot
    if schema_mode == "merge":
        snapshot = replace(snapshot, configuration=_extended(snapshot, rows.columns))
    target = Scope.of_read(snapshot.configuration)
    sides = Sides(target_alias, target, source_alias, Scope.of_columns(rows.columns, snapshot.timezone))
    join, options = JoinPredicate.of(sides.predicate(on)), WriteOptions(files=files)
    plan = MergePlan(snapshot, before, on, join, options, commit, schema_mode=schema_mode)
    return Merge(plan, sides, partial(execute, rows, table))


def _extended(snapshot: Snapshot, source: StructType) -> TableConfiguration:
    """Return the table with the columns and the fields that only the source has."""
    by_name = {field.name.lower(): field for field in snapshot.schema.fields}
    for field in source.fields:
        # A column of another primitive type is cast, as without schema evolution.
        if field.name.lower() not in by_name or not isinstance(field.type, PrimitiveType):
            by_name[field.name.lower()] = field
    return extend(snapshot.configuration, StructType(tuple(by_name.values())), None, "merge")


def _in_memory(source: Any, names: Sequence[str], target: StructType) -> MemorySource:
    source = open_path(source, "the source", names, target)
    if isinstance(source, JsonLines):
        arrow_schema, batches = source.schema, parse_lines(source)
    else:
        arrow_schema, batches = batches_of(source, "the source", names, target)
    variants = {field.name.lower() for field in target.fields if field.type == VARIANT}
    stored = (field.name for field in arrow_schema if pa.types.is_struct(field.type))
    columns = from_arrow(arrow_schema, [*names, *(name for name in stored if name.lower() in variants)])
    # Conforming removes dictionaries and views, which Arrow cannot all join.
    conformed = [conform(batch, columns) for batch in batches]
    table = pa.Table.from_batches(conformed) if conformed else to_arrow(columns).empty_table()
    whole = table.combine_chunks().to_batches()
    if len(whole) > 1:
        raise ValueError("a column of the source is larger than 2 GiB: merge the source in parts")
    batch = whole[0] if whole else pa.RecordBatch.from_pylist([], schema=table.schema)
    return MemorySource(parse_json_columns(batch, columns), columns)


@dataclass(frozen=True)
class Merge:
    """A merge and its clauses; the first clause of a kind whose predicate is true applies to a row.

    Each `when_` method returns a new merge with another clause. Of each kind only the last clause can apply
    to all rows, since a clause after it would never apply: that raises ExpressionError. Predicates and values
    are SQL text. Clauses for matched rows read both tables, other clauses only the table that has the row.
    Keys of `updates` are columns of the table or paths in its Variants, as in `update`. A string column can
    only become a whole Variant through `cast(… as string)`, because it may be JSON text that
    `variant_columns` lacks.

    Example:
        >>> import delta_variant as dv
        >>> _ = dv.write_table("users", [{"id": 1, "n": 1}, {"id": 2, "n": 2}])
        >>> merge = dv.merge("users", [{"id": 2, "n": 5}, {"id": 3, "n": 7}], "target.id = source.id")
        >>> merge = merge.when_matched_update({"n": "target.n + source.n"}).when_not_matched_insert_all()
        >>> merge.execute()
        RewriteResult(version=1, rows_updated=1, rows_inserted=1, rows_copied=1, files_removed=1, files=<2>)
    """

    _plan: MergePlan
    _sides: Sides
    _execute: Callable[[MergePlan], RewriteResult]

    def __repr__(self) -> str:
        clauses = ", ".join(f"{each.when} {each.action}" for each in self._plan.clauses)
        uri, on = self._plan.snapshot.uri, self._plan.on
        return printable(f"<Merge into {uri} on {on}: {clauses or 'no clauses'}>")

    def when_matched_update(self, updates: Mapping[str, str | None], where: str | None = None) -> Merge:
        """Update matched rows.

        Args:
            updates: A mapping from columns and paths of the table to SQL expressions over both tables; None
                removes a path.
            where: An SQL predicate over both tables. None, the default, applies to all matched rows.

        Returns:
            The merge with this clause.

        Raises:
            ExpressionError: An SQL expression cannot be parsed or bound.

        Example:
            >>> import delta_variant as dv
            >>> _ = dv.write_table("users", [{"id": 1, "n": 1}, {"id": 2, "n": 2}])
            >>> merge = dv.merge("users", [{"id": 2, "n": 5}, {"id": 3, "n": 7}], "target.id = source.id")
            >>> merge = merge.when_matched_update({"n": "source.n"}, where="target.n < source.n")
            >>> merge.execute().rows_updated
            1
        """
        return self._with("matched", "update", where, updates)

    def when_matched_update_all(
        self, where: str | None = None, except_cols: Sequence[str] | None = None
    ) -> Merge:
        """Set all columns of matched rows to those of the source.

        Args:
            where: An SQL predicate over both tables. None, the default, applies to all matched rows.
            except_cols: The names of columns to leave unchanged. None by default.

        Returns:
            The merge with this clause.

        Raises:
            ExpressionError: `where` cannot be parsed or bound, or the source lacks a column.

        Example:
            >>> import delta_variant as dv
            >>> _ = dv.write_table("users", [{"id": 1, "n": 1}, {"id": 2, "n": 2}])
            >>> merge = dv.merge("users", [{"id": 2, "n": 5}, {"id": 3, "n": 7}], "target.id = source.id")
            >>> merge.when_matched_update_all().execute().rows_updated
            1
        """
        return self._with("matched", "update", where, self._all_columns("matched", except_cols))

    def when_matched_delete(self, where: str | None = None) -> Merge:
        """Delete matched rows.

        Args:
            where: An SQL predicate over both tables. None, the default, applies to all matched rows.

        Returns:
            The merge with this clause.

        Raises:
            ExpressionError: `where` cannot be parsed or bound.

        Example:
            >>> import delta_variant as dv
            >>> _ = dv.write_table("users", [{"id": 1, "n": 1}, {"id": 2, "n": 2}])
            >>> merge = dv.merge("users", [{"id": 2, "n": 5}, {"id": 3, "n": 7}], "target.id = source.id")
            >>> merge.when_matched_delete().execute().rows_deleted
            1
        """
        return self._with("matched", "delete", where)

    def when_not_matched_insert(self, updates: Mapping[str, str | None], where: str | None = None) -> Merge:
        """Insert source rows that do not match a row of the table.

        Args:
            updates: A mapping from columns and paths of the table to SQL expressions over the source. Other
                columns get their default or generated value, or NULL.
            where: An SQL predicate over the source. None, the default, applies to all such rows.

        Returns:
            The merge with this clause.

        Raises:
            ExpressionError: An SQL expression cannot be parsed or bound.

        Example:
            >>> import delta_variant as dv
            >>> _ = dv.write_table("users", [{"id": 1, "n": 1}, {"id": 2, "n": 2}])
            >>> merge = dv.merge("users", [{"id": 2, "n": 5}, {"id": 3, "n": 7}], "target.id = source.id")
            >>> merge.when_not_matched_insert({"id": "source.id", "n": "0"}).execute().rows_inserted
            1
        """
        return self._with("not matched", "insert", where, updates)

    def when_not_matched_insert_all(
        self, where: str | None = None, except_cols: Sequence[str] | None = None
    ) -> Merge:
        """Insert source rows that do not match a row of the table, with all columns.

        Args:
            where: An SQL predicate over the source. None, the default, applies to all such rows.
            except_cols: The names of columns to omit. None by default.

        Returns:
            The merge with this clause.

        Raises:
            ExpressionError: `where` cannot be parsed or bound, or the source lacks a column.

        Example:
            >>> import delta_variant as dv
            >>> _ = dv.write_table("users", [{"id": 1, "n": 1}, {"id": 2, "n": 2}])
            >>> merge = dv.merge("users", [{"id": 2, "n": 5}, {"id": 3, "n": 7}], "target.id = source.id")
            >>> merge.when_not_matched_insert_all(where="source.n > 5").execute().rows_inserted
            1
        """
        return self._with("not matched", "insert", where, self._all_columns("not matched", except_cols))

    def when_not_matched_by_source_update(
        self, updates: Mapping[str, str | None], where: str | None = None
    ) -> Merge:
        """Update rows of the table that do not match a source row.

        Args:
            updates: A mapping from columns and paths of the table to SQL expressions over the table; None
                removes a path.
            where: An SQL predicate over the table. None, the default, applies to all such rows.

        Returns:
            The merge with this clause.

        Raises:
            ExpressionError: An SQL expression cannot be parsed or bound.

        Example:
            >>> import delta_variant as dv
            >>> _ = dv.write_table("users", [{"id": 1, "n": 1}, {"id": 2, "n": 2}])
            >>> merge = dv.merge("users", [{"id": 2, "n": 5}, {"id": 3, "n": 7}], "target.id = source.id")
            >>> merge.when_not_matched_by_source_update({"n": "0"}).execute().rows_updated
            1
        """
        return self._with("not matched by source", "update", where, updates)

    def when_not_matched_by_source_delete(self, where: str | None = None) -> Merge:
        """Delete rows of the table that do not match a source row.

        Args:
            where: An SQL predicate over the table. None, the default, applies to all such rows.

        Returns:
            The merge with this clause.

        Raises:
            ExpressionError: `where` cannot be parsed or bound.

        Example:
            >>> import delta_variant as dv
            >>> _ = dv.write_table("users", [{"id": 1, "n": 1}, {"id": 2, "n": 2}])
            >>> merge = dv.merge("users", [{"id": 2, "n": 5}, {"id": 3, "n": 7}], "target.id = source.id")
            >>> merge.when_not_matched_by_source_delete().execute().rows_deleted
            1
        """
        return self._with("not matched by source", "delete", where)

    def execute(self) -> RewriteResult:
        """Execute the merge as one commit; after an error the table is unchanged.

        Returns:
            A `RewriteResult` with the number of inserted, updated, deleted and copied rows and the new
            version, None if no row changes.

        Raises:
            MergeAmbiguityError: Several source rows would change the same row of the table.
            CommitConflictError: A concurrent commit changed rows that this merge read.
            AmbiguousWriteError: Another run may have committed `txn`.
            ValueError: The merge has no clauses.
            DeltaVariantError: A value, a constraint or the table rejects the change; see `update`.

        Example:
            >>> import delta_variant as dv
            >>> _ = dv.write_table("users", [{"id": 1, "n": 1}, {"id": 2, "n": 2}])
            >>> merge = dv.merge("users", [{"id": 2, "n": 5}, {"id": 3, "n": 7}], "target.id = source.id")
            >>> merge.when_matched_delete().execute().version
            1
        """
        if not self._plan.clauses:
            raise ValueError(
                "the merge has no clauses: call when_matched_update or another method before execute"
            )
        return self._execute(self._plan.without_unset_columns())

    def _with(
        self,
        when: When,
        action: ClauseAction,
        where: str | None,
        updates: Mapping[str, str | None] = NO_UPDATES,
    ) -> Merge:
        sides = replace(self._sides, readable=READABLE.get(when))
        bound = None if where is None else sides.predicate(where)
        assignments = assignments_of(updates, sides.target, sides.bind)
        clause = Clause(when, action, bound, assignments, where)
        _check_sides(clause)
        _check_applies(clause, self._plan.clauses)
        return replace(self, _plan=replace(self._plan, clauses=(*self._plan.clauses, clause)))

    def _all_columns(self, rows: When, except_cols: Sequence[str] | None) -> dict[str, str | None]:
        """Return assignments of the columns of the source; `rows` names the clause in errors."""
        target, source = self._sides.target, self._sides.source
        excluded = () if except_cols is None else texts_of("names", "except_cols", except_cols)
        omitted = {target.field(name, name).name for name in excluded}
        names = [name for name in target.schema.names if name not in omitted]
        missing = [name for name in names if not source.fields(name)]
        if self._plan.schema_mode == "merge":
            names = [name for name in names if name not in missing]
        elif missing:
            raise ExpressionError(
                f"cannot set all columns in the clause for rows that are {rows} because the source lacks the "
                f"column {missing[0]!r}",
                column=missing[0],
                remedies=(("except_cols", missing), ("schema_mode", "merge")),
            )
        return {quote(name): f"{quote(self._sides.source_alias)}.{quote(name)}" for name in names}


def plan_of(merge: Merge) -> MergePlan:
    return merge._plan


def with_commit(merge: Merge, commit_of: Callable[[Snapshot, CommitOptions], CommitOptions]) -> Merge:
    """Return a merge with the commit options that a function returns for its table and its options."""
    plan = merge._plan
    return replace(merge, _plan=replace(plan, commit=commit_of(plan.snapshot, plan.commit)))


def _check_sides(clause: Clause) -> None:
    readable = READABLE.get(clause.when)
    other: Side = "source" if readable == "target" else "target"
    if readable is not None and side_inputs(clause.expressions, other):
        raise ExpressionError(
            f"a clause for rows that are {clause.when} can only read columns of the {readable}, got columns "
            f"of the {other}"
        )


def _check_applies(clause: Clause, earlier: Sequence[Clause]) -> None:
    if any(each.when == clause.when and each.predicate is None for each in earlier):
        raise ExpressionError(
            f"the clause to {clause.action} rows that are {clause.when} would never apply, since an earlier "
            "one without a condition applies to all of these rows: put that one last, or give it a condition"
        )
