"""Statements that define tables: CREATE TABLE, CONVERT TO DELTA and ALTER TABLE."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal, TypeAlias

import msgspec
import pyarrow as pa

from .._checks import list_names
from ..errors import ExpressionError, SchemaError
from ..expressions.definitions import ColumnDefinition, parse_definition
from ..expressions.types import read_column_type
from ..log.commit_context import CommitResult
from ..log.load import load_latest
from ..log.snapshot import Snapshot
from ..operations.alter.columns import (
    Addition,
    Position,
    add_fields,
    change_field,
    change_type,
    column_type,
    drop_column,
    rename_column,
)
from ..operations.alter.constraints import add_constraint, drop_constraint, has_constraint
from ..operations.alter.table_properties import set_properties, unset_properties
from ..operations.convert import convert_in_place
from ..operations.create import create_table
from ..operations.drop_feature import drop_feature
from ..operations.write import write_table
from ..protocol.features import supported_features
from ..protocol.properties import ENABLE_VARIANT_SHREDDING, FEATURE
from ..protocol.schema.char_types import TYPE_TEXT
from ..protocol.schema.paths import resolve
from ..protocol.types import COMMENT, StructField
from ..storage.store import TableLocation, open_latest
from ..write.preparation import load_existing
from .grammar import StatementGrammar
from .session import NO_ROWS, Session, Statement


class Create(msgspec.Struct, frozen=True):
    """CREATE TABLE; `overwrite` is CREATE OR REPLACE. `columns` are SQL definitions."""

    mode: Literal["error", "ignore", "overwrite"]
    columns: tuple[str, ...] = ()
    provider: Literal["delta"] = "delta"
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    location: str | None = None
    comment: str | None = None
    properties: Mapping[str, str] = msgspec.field(default_factory=dict)
    query: str | None = None

    @property
    def _settings(self) -> Mapping[str, str]:
        return {name: text for name, text in self.properties.items() if not name.startswith(FEATURE)}

    def __call__(self, table: TableLocation, session: Session) -> pa.Table:
        """Create the table; the statement returns no rows."""
        query = self.query
        result = self._create(table) if query is None else self._write(table, session, query)
        # IF NOT EXISTS leaves a table as it is.
        if result.version is not None:
            self._add_features(table)
        return NO_ROWS

    def _add_features(self, table: TableLocation) -> None:
        """Add the features that neither the columns nor the other properties need."""
        known = supported_features(load_latest(table).protocol)
        names = self.properties.keys() - self._settings.keys()
        missing = {name: self.properties[name] for name in names if name.removeprefix(FEATURE) not in known}
        if missing:
            set_properties(table, missing)

    def _create(self, table: TableLocation) -> CommitResult:
        if self.mode == "overwrite":
            raise ExpressionError("CREATE OR REPLACE TABLE needs a query (AS SELECT …)")
        return create_table(
            table,
            self.columns,
            mode=self.mode,
            partition_by=self.partition_by or None,
            cluster_by=self.cluster_by or None,
            configuration=self._settings,
            description=self.comment,
        )

    def _write(self, table: TableLocation, session: Session, query: str) -> CommitResult:
        if self.columns or self.cluster_by:
            what = "columns of its own" if self.columns else "CLUSTER BY"
            raise ExpressionError(
                f"CREATE TABLE AS SELECT with {what}: create the table, then INSERT INTO it"
            )
        if self.mode == "overwrite":
            self._check_replaceable(table)
        return write_table(
            table,
            session.rows(query).data,
            mode=self.mode,
            schema_mode="overwrite" if self.mode == "overwrite" else None,
            partition_by=self.partition_by,
            configuration=self._settings,
            description=self.comment,
        )

    def _check_replaceable(self, table: TableLocation) -> None:
        """Raise ExpressionError for a table whose properties or comment the new one would keep."""
        snapshot = load_existing(open_latest(table), "overwrite")
        if snapshot is None:
            return
        kept = sorted(snapshot.properties.keys() - {ENABLE_VARIANT_SHREDDING.name})
        if kept or snapshot.metadata.description != self.comment:
            raise ExpressionError(
                f"CREATE OR REPLACE TABLE would keep the comment and the properties of {snapshot.uri} "
                f"({', '.join(kept) or 'none'}), which Spark replaces: use INSERT OVERWRITE, or another "
                "location"
            )


def convert_table(
    table: TableLocation, session: Session, *, partitions: tuple[str, ...], collect_stats: bool
) -> pa.Table:
    """Convert the Parquet files at a location; the statement returns no rows, and leaves a table as it is."""
    convert_in_place(table, [_partition(text) for text in partitions], collect_stats=collect_stats)
    return NO_ROWS


def _partition(text: str) -> StructField:
    column = parse_definition(text)
    if not isinstance(column, ColumnDefinition) or column != ColumnDefinition(column.name, column.type):
        raise ExpressionError(f"PARTITIONED BY: expected a name and a type, got {text!r}")
    return StructField(column.name, column_type(column.name, column.type or "variant"), True)


Change: TypeAlias = Callable[[TableLocation], object]


def alteration(grammar: StatementGrammar) -> Statement:
    """Return the ALTER TABLE with the clause at the position; raises ExpressionError for other clauses."""
    words = next((each for each in CLAUSES if grammar.accept_words(each)), None)
    if words is None:
        grammar.fail(f"one of {list_names(CLAUSES)}")
    change = CLAUSES[words](grammar)

    def run(table: TableLocation, session: Session) -> pa.Table:
        change(table)
        return NO_ROWS

    return run


def _added_columns(grammar: StatementGrammar) -> Change:
    take_list = grammar.enclosed_list if grammar.is_next("(") else grammar.take_list
    return partial(add_fields, additions=take_list(partial(_addition, grammar)))


def _addition(grammar: StatementGrammar) -> Addition:
    *parent, name = grammar.take_qualified_name()
    kind, text_type = read_column_type(grammar)
    comment = position = None
    while grammar.is_next("comment", "first", "after"):
        if grammar.accept("comment"):
            comment = grammar.string()
        else:
            position = _position(grammar)
    if grammar.is_next("not", "default", "generated"):
        grammar.fail(
            "COMMENT, FIRST, AFTER or the end", "a new column is nullable and has no default, as in Delta"
        )
    known = {COMMENT: comment, TYPE_TEXT: text_type}
    metadata = {key: text for key, text in known.items() if text is not None}
    field = StructField(name, column_type(name, "variant" if kind is None else kind), True, metadata)
    return Addition(tuple(parent), field, position)


def _position(grammar: StatementGrammar) -> Position | None:
    """Return the place in FIRST or AFTER, None without such a clause."""
    if grammar.accept("first"):
        return Position(None)
    return Position(grammar.take_name()) if grammar.accept("after") else None


def _renamed_column(grammar: StatementGrammar) -> Change:
    column = grammar.take_qualified_name()
    grammar.expect("to")
    return partial(rename_column, column=column, new_name=grammar.take_name())


def _dropped_column(grammar: StatementGrammar) -> Change:
    is_optional = grammar.accept_words("if exists")
    take_list = grammar.enclosed_list if grammar.is_next("(") else grammar.take_list
    columns = take_list(grammar.take_qualified_name)
    if len(columns) > 1:
        grammar.fail("one column", "drop columns one by one")
    return _removal(partial(drop_column, column=columns[0]), is_optional, partial(_has_column, columns[0]))


def _has_column(column: Sequence[str], snapshot: Snapshot) -> bool:
    try:
        return bool(resolve(snapshot.schema, tuple(column)))
    except SchemaError:
        return False


def _changed_column(grammar: StatementGrammar) -> Change:
    column = grammar.take_qualified_name()
    if grammar.accept("type"):
        return partial(change_type, column=column, new_type=grammar.rest())
    if grammar.accept("comment"):
        return partial(change_field, column=column, comment=grammar.string())
    position = _position(grammar)
    if position is None:
        remedy = "NOT NULL and defaults are for CREATE TABLE, other names for RENAME COLUMN"
        grammar.fail("`type`, `comment`, `first` or `after`", remedy)
    return partial(change_field, column=column, position=position)


def _added_constraint(grammar: StatementGrammar) -> Change:
    name = grammar.take_name()
    grammar.expect("check")
    return partial(add_constraint, name=name, check=grammar.enclosed(grammar.expression_text).text)


def _dropped_constraint(grammar: StatementGrammar) -> Change:
    is_optional, name = grammar.accept_words("if exists"), grammar.take_name()
    return _removal(partial(drop_constraint, name=name), is_optional, partial(has_constraint, name))


def _set_properties(grammar: StatementGrammar) -> Change:
    return partial(set_properties, values=grammar.properties())


def _unset_properties(grammar: StatementGrammar) -> Change:
    is_optional = grammar.accept_words("if exists")
    names = grammar.enclosed_list(grammar.property_key)

    def unset(table: TableLocation) -> None:
        known = load_latest(table).properties if is_optional else names
        if found := [name for name in names if name in known]:
            unset_properties(table, found)

    return unset


def _removal(change: Change, is_optional: bool, exists: Callable[[Snapshot], bool]) -> Change:
    """Return a change that with IF EXISTS does nothing if there is nothing to remove."""

    def remove(table: TableLocation) -> None:
        if not is_optional or exists(load_latest(table)):
            change(table)

    return remove


def _dropped_feature(grammar: StatementGrammar) -> Change:
    name = grammar.string() if grammar.token.kind == "string" else grammar.take_name()
    return partial(drop_feature, name=name, truncate_history=grammar.accept_words("truncate history"))


CLAUSES: Mapping[str, Callable[[StatementGrammar], Change]] = {
    "add columns": _added_columns,
    "add column": _added_columns,
    "add constraint": _added_constraint,
    "rename column": _renamed_column,
    "drop columns": _dropped_column,
    "drop column": _dropped_column,
    "drop constraint": _dropped_constraint,
    "drop feature": _dropped_feature,
    "alter [column]": _changed_column,
    "change [column]": _changed_column,
    "set tblproperties": _set_properties,
    "unset tblproperties": _unset_properties,
}
"""The clauses by their first words."""
