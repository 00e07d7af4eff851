"""ALTER TABLE: the operation that each of its clauses is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import pyarrow as pa

from .._checks import list_names
from ..errors import ExpressionError, SchemaError
from ..expressions.definitions import ColumnDefinition, parse_definition
from ..log.load import load_latest
from ..log.snapshot import Snapshot
from ..operations.alter.columns import ColumnPath, add_columns, change_type, drop_column, rename_column
from ..operations.alter.constraints import add_constraint, drop_constraint, has_constraint
from ..operations.alter.table_properties import set_properties, unset_properties
from ..operations.drop_feature import drop_feature
from ..protocol.schema.paths import resolve
from ..storage.store import TableLocation
from .grammar import StatementGrammar
from .session import NO_ROWS, Session, Statement

__all__ = ["alteration"]

Change: TypeAlias = Callable[[TableLocation], object]


def alteration(grammar: StatementGrammar) -> Statement:
    """Return the ALTER TABLE with the clause at the position; raises ExpressionError for other clauses."""
    words = next((each for each in CLAUSES if grammar.accept_words(each)), None)
    change = None if words is None else CLAUSES[words](grammar)
    if change is None or grammar.token.kind != "end":
        raise ExpressionError(f"ALTER TABLE: expected {list_names(CLAUSES)}, without further options")

    def run(table: TableLocation, session: Session) -> pa.Table:
        change(table)
        return NO_ROWS

    return run


def _added_columns(grammar: StatementGrammar) -> Change | None:
    texts = grammar.enclosed_texts() if grammar.is_next("(") else (grammar.rest(),)
    columns: dict[ColumnPath, pa.DataType | str] = {}
    for text in texts:
        column = parse_definition(text)
        if not isinstance(column, ColumnDefinition) or column != ColumnDefinition(column.name, column.type):
            return None
        columns[column.name,] = "variant" if column.type is None else column.type
    return partial(add_columns, columns=columns)


def _renamed_column(grammar: StatementGrammar) -> Change:
    column = grammar.take_qualified_name()
    grammar.expect("to")
    return partial(rename_column, column=column, new_name=grammar.take_name())


def _dropped_column(grammar: StatementGrammar) -> Change | None:
    is_optional, is_list = grammar.accept_words("if exists"), grammar.accept("(")
    columns = grammar.take_list(grammar.take_qualified_name)
    if is_list:
        grammar.expect(")")
    if len(columns) > 1:
        return None
    return _removal(partial(drop_column, column=columns[0]), is_optional, partial(_has_column, columns[0]))


def _has_column(column: Sequence[str], snapshot: Snapshot) -> bool:
    try:
        return bool(resolve(snapshot.schema, tuple(column)))
    except SchemaError:
        return False


def _changed_column(grammar: StatementGrammar) -> Change | None:
    column = grammar.take_qualified_name()
    return partial(change_type, column=column, new_type=grammar.rest()) if grammar.accept("type") else None


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


CLAUSES: Mapping[str, Callable[[StatementGrammar], Change | None]] = {
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
"""The clauses by their first words. None stands for a clause with an option that is not supported."""
