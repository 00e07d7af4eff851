"""ALTER TABLE: the operation that each of its clauses is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import pyarrow as pa

from .._checks import list_names
from ..errors import SchemaError
from ..expressions.type_grammar import read_type
from ..log.load import load_latest
from ..log.snapshot import Snapshot
from ..operations.alter.columns import change_type, column_type, drop_column, rename_column
from ..operations.alter.constraints import add_constraint, drop_constraint, has_constraint
from ..operations.alter.positions import Addition, Position, add_fields, change_field
from ..operations.alter.table_properties import set_properties, unset_properties
from ..operations.drop_feature import drop_feature
from ..protocol.schema.paths import resolve
from ..protocol.types import StructField
from ..storage.store import TableLocation
from .grammar import StatementGrammar
from .session import NO_ROWS, Session, Statement

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
    is_list = grammar.accept("(")
    additions = grammar.take_list(partial(_addition, grammar))
    if is_list:
        grammar.expect(")")
    return partial(add_fields, additions=additions)


def _addition(grammar: StatementGrammar) -> Addition:
    *parent, name = grammar.take_qualified_name()
    kind = read_type(grammar, of_column=True)
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
    metadata = {} if comment is None else {"comment": comment}
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
    is_optional, is_list = grammar.accept_words("if exists"), grammar.accept("(")
    columns = grammar.take_list(grammar.take_qualified_name)
    if is_list:
        grammar.expect(")")
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
    grammar.expect("(")
    check = grammar.expression_text()
    grammar.expect(")")
    return partial(add_constraint, name=name, check=check.text)


def _dropped_constraint(grammar: StatementGrammar) -> Change:
    is_optional, name = grammar.accept_words("if exists"), grammar.take_name()
    return _removal(partial(drop_constraint, name=name), is_optional, partial(has_constraint, name))


def _set_properties(grammar: StatementGrammar) -> Change:
    return partial(set_properties, values=grammar.properties())


def _unset_properties(grammar: StatementGrammar) -> Change:
    is_optional = grammar.accept_words("if exists")
    grammar.expect("(")
    names = grammar.take_list(grammar.property_key)
    grammar.expect(")")

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
