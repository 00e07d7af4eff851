"""INSERT, UPDATE, DELETE and MERGE."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa

from .._text import quote
from ..errors import ExpressionError
from ..expressions.lexer import parts_of_name
from ..expressions.literals import literal_text
from ..log.load import load_latest
from ..log.snapshot import Snapshot
from ..operations.delete import delete, delete_all
from ..operations.merge import builder
from ..operations.merge.plan import When as Matched
from ..operations.update import update
from ..operations.write import write_table
from ..protocol.types import (
    DataType,
    PrimitiveType,
    StructField,
    StructType,
    default_of,
    map_parts,
    parts_of,
    sql_type,
)
from ..storage.store import TableLocation
from .grammar import DEFAULT
from .session import NO_ROWS, Rows, Session, Target, Text

Assignments: TypeAlias = tuple[tuple[Text, Text], ...]


class Insert(msgspec.Struct, frozen=True):
    """INSERT INTO and INSERT OVERWRITE: the rows of VALUES, or a query.

    The values of `partition` that are None come from the rows.
    """

    target: Target
    rows: tuple[tuple[Text, ...], ...] | str
    columns: tuple[str, ...] | None
    by_name: bool
    partition: Mapping[str, Text | None]
    is_overwrite: bool
    replaced: Text | None

    def __call__(self, table: TableLocation, session: Session) -> pa.Table:
        """Write the rows; the statement returns none."""
        snapshot = load_latest(table)
        columns, fixed = named(snapshot.schema), self._fixed(snapshot)
        given = self._columns(columns, fixed)
        query = self.rows
        rows = session.rows(query if isinstance(query, str) else _values_query(query, given))
        if self.by_name:
            given = [field_of(columns, name) for name in rows.names]
        elif len(rows.names) != len(given):
            expected = ", ".join(each.name for each in given)
            raise ExpressionError(f"INSERT: expected the values of {expected}, got {len(rows.names)}")
        if self.by_name or self._has_columns(snapshot, rows):
            rows = _with_fields_by_name(rows, given)
        if listed := next((each.name for each in given if each.name in fixed), None):
            raise ExpressionError(
                f"INSERT: PARTITION has the value of {listed!r}: leave out the column", column=listed
            )
        cells = {each.name: (f"c{number}", each.type) for number, each in enumerate(given)}
        cells |= {name: (text.text, field_of(columns, name).type) for name, text in fixed.items()}
        is_dynamic = self.is_overwrite and session.is_dynamic
        where = None if is_dynamic else self._where({name: cells[name] for name in fixed})
        write_table(
            table,
            rows.select(cells),
            mode="overwrite" if self.is_overwrite or where else "append",
            where=where,
            timezone=session.timezone,
            partition_overwrite_mode="dynamic" if is_dynamic else "static",
        )
        return NO_ROWS

    def _fixed(self, snapshot: Snapshot) -> dict[str, Text]:
        """Return the values of PARTITION by their columns."""
        columns, partition = named(snapshot.schema), snapshot.partition_columns
        values = {field_of(columns, name).name: text for name, text in self.partition.items()}
        for name in values:
            if name not in partition:
                raise ExpressionError(f"PARTITION: {name!r} is not a partition column", column=name)
        return {name: text for name, text in values.items() if text is not None}

    def _columns(self, columns: Mapping[str, StructField], fixed: Mapping[str, Text]) -> list[StructField]:
        """Return the columns that the rows have by position: in the order of the table, as in Spark."""
        if self.columns is not None:
            found = [field_of(columns, name) for name in self.columns]
            for number, each in enumerate(found):
                if each in found[:number]:
                    raise ExpressionError(
                        f"INSERT: the column {each.name!r} is listed twice", column=each.name
                    )
            return found
        return [each for each in columns.values() if each.name not in fixed]

    def _has_columns(self, snapshot: Snapshot, rows: Rows) -> bool:
        """Return whether rows have the columns of the table with their types.

        Delta matches the fields of their structs by name, and casts those of other rows by position.
        """
        columns = snapshot.schema.fields
        if self.columns is not None or list(rows.names) != [each.name for each in columns]:
            return False
        return all(map(_has_fields, (each.type for each in columns), rows.types))

    def _where(self, fixed: Mapping[str, tuple[str, DataType]]) -> str | None:
        """Return the condition of the rows that are replaced, None for all or none."""
        if self.replaced is not None:
            return self.replaced.text
        tests = [
            f"{quote(name)} <=> cast({text} as {sql_type(kind)})" for name, (text, kind) in fixed.items()
        ]
        return " and ".join(tests) or None if self.is_overwrite else None


def _has_fields(table: DataType, given: DataType) -> bool:
    """Return whether a type is that of a table but for the order of the fields in structs."""
    if isinstance(table, StructType) and isinstance(given, StructType):
        fields = dict(parts_of(given))
        return fields.keys() == dict(parts_of(table)).keys() and all(
            _has_fields(part, fields[name]) for name, part in parts_of(table)
        )
    if isinstance(table, PrimitiveType) or type(table) is not type(given):
        return table == given
    return all(
        _has_fields(one, other) for (_, one), (_, other) in zip(parts_of(table), parts_of(given), strict=True)
    )


def _with_fields_by_name(rows: Rows, columns: Sequence[StructField]) -> Rows:
    """Return rows with the fields of structs in the order of those of columns with the same names."""
    if all(isinstance(each.type, PrimitiveType) for each in columns):
        return rows
    pairs = zip(columns, rows.types, strict=True)
    return rows.in_order([_in_order(column.type, given) for column, given in pairs])


def _in_order(table: DataType, given: DataType) -> DataType:
    if isinstance(table, PrimitiveType) or type(table) is not type(given):
        return given
    parts = dict(parts_of(table))
    if isinstance(table, StructType) and isinstance(given, StructType):
        fields = named(given)
        if len(fields) != len(given.fields) or fields.keys() != named(table).keys():
            return given
        parts = {fields[each.name.lower()].name: each.type for each in table.fields}
        given = StructType(tuple(fields[each.name.lower()] for each in table.fields))
    return map_parts(given, lambda step, part: _in_order(parts[step], part))


def _values_query(values: Sequence[Sequence[Text]], columns: Sequence[StructField]) -> str:
    rows = (
        ", ".join(
            _default_text(columns[number]) if text is DEFAULT and number < len(columns) else text.text
            for number, text in enumerate(row)
        )
        for row in values
    )
    return f"values {', '.join(f'({row})' for row in rows)}"


class Update(msgspec.Struct, frozen=True):
    """UPDATE; without `where`, of all rows."""

    target: Target
    assignments: Assignments
    where: Text | None

    def __call__(self, table: TableLocation, session: Session) -> pa.Table:
        """Update the rows, and return their number."""
        scope = _Names.of(table, self.target, session)
        where = None if self.where is None else scope.text(self.where)
        assignments = [(column, value.with_values(session)) for column, value in self.assignments]
        result = update(table, scope.updates(assignments), where, timezone=session.timezone)
        return _affected(result.rows_updated)


class Delete(msgspec.Struct, frozen=True):
    """DELETE; without `where`, of all rows."""

    target: Target
    where: Text | None

    def __call__(self, table: TableLocation, session: Session) -> pa.Table:
        """Delete the rows, and return their number."""
        if self.where is None:
            return _affected(delete_all(table).rows_deleted)
        scope = _Names.of(table, self.target, session)
        return _affected(delete(table, scope.text(self.where), timezone=session.timezone).rows_deleted)


@dataclass(frozen=True)
class _Names:
    """The columns of a table, and what the text of a statement calls its tables.

    `row` is the qualifier of the updated row.
    """

    columns: Mapping[str, StructField]
    tables: Sequence[tuple[Sequence[tuple[str, ...]], str]]
    has_column: Callable[[str], bool]
    row: str = ""

    @classmethod
    def of(cls, table: TableLocation, target: Target, session: Session) -> _Names:
        """Return the names of a statement about one table, whose columns need no qualifier."""
        columns = named(load_latest(table).schema)
        return cls(columns, [(target.qualifiers(session.full_name(target.name)), "")], columns.__contains__)

    def text(self, text: Text) -> str:
        """Return the text of an expression with the qualifiers that operations know."""
        return text.qualified(self.tables, self.has_column)

    def updates(self, assignments: Iterable[tuple[Text, Text]]) -> dict[str, str | None]:
        """Return assignments as those of `update`: the SQL text of each column.

        Raises ExpressionError for a path that is unknown, or assigned twice.
        """
        tables = [(qualifiers, "") for qualifiers, _ in self.tables]
        values: dict[str, Any] = {}
        for column, value in assignments:
            path = parts_of_name(column.qualified(tables, self.has_column))
            part, level = field_of(self.columns, path[0]), values
            for name in path[1:]:
                level = level.setdefault(part.name, {})
                if not isinstance(part.type, StructType) or not isinstance(level, dict):
                    raise ExpressionError(
                        f"cannot set {'.'.join(path)!r}: it is set twice, or not in a struct"
                    )
                part = field_of(named(part.type), name)
            if part.name in level:
                raise ExpressionError(f"the column {'.'.join(path)!r} is set twice", column=path[0])
            level[part.name] = _default_text(part) if value is DEFAULT else self.text(value)
        fields = {each.name: each for each in self.columns.values()}
        return {
            quote(name): value
            if isinstance(value, str)
            else _struct(fields[name], self.row + quote(name), value)
            for name, value in values.items()
        }


def _affected(rows: int) -> pa.Table:
    return pa.table({"num_affected_rows": pa.array([rows], pa.int64())})


class When(msgspec.Struct, frozen=True):
    """A clause of MERGE: it deletes rows, or assigns to columns; to all of them without `updates`."""

    rows: Matched
    where: Text | None
    is_delete: bool = False
    updates: Assignments | None = None


class Merge(msgspec.Struct, frozen=True):
    """MERGE INTO; `evolves` is WITH SCHEMA EVOLUTION."""

    target: Target
    query: str
    source: Target
    on: Text
    clauses: tuple[When, ...]
    evolves: bool

    def __call__(self, table: TableLocation, session: Session) -> pa.Table:
        """Merge the rows of the source, and return the numbers of changed rows."""
        columns, rows = named(load_latest(table).schema), session.rows(self.query)
        aliases = _aliases(self.target, self.source)
        names = [each.qualifiers(session.full_name(each.name)) for each in (self.target, self.source)]
        # What both tables are called names neither.
        own = [[name for name in each if name not in other] for each, other in (names, names[::-1])]
        known = {*columns, *map(str.lower, rows.names)}
        tables = list(zip(own, aliases, strict=True))
        scope = _Names(columns, tables, known.__contains__, row=f"{quote(aliases[0])}.")
        merge = builder.merge(
            table,
            rows.data,
            scope.text(self.on),
            target_alias=aliases[0],
            source_alias=aliases[1],
            schema_mode="merge" if self.evolves else None,
            timezone=session.timezone,
        )
        for clause in self.clauses:
            merge = _with_clause(merge, clause, scope)
        result = merge.execute()
        counts = {
            "num_affected_rows": result.rows_updated + result.rows_deleted + result.rows_inserted,
            "num_updated_rows": result.rows_updated,
            "num_deleted_rows": result.rows_deleted,
            "num_inserted_rows": result.rows_inserted,
        }
        return pa.table({name: pa.array([number], pa.int64()) for name, number in counts.items()})


def _aliases(target: Target, source: Target) -> tuple[str, str]:
    found = target.alias or target.name[-1], source.alias or source.name[-1]
    return found if found[0].lower() != found[1].lower() else ("target", "source")


def _with_clause(merge: builder.Merge, clause: When, scope: _Names) -> builder.Merge:
    where = None if clause.where is None else scope.text(clause.where)
    if clause.is_delete:
        is_matched = clause.rows == "matched"
        return (merge.when_matched_delete if is_matched else merge.when_not_matched_by_source_delete)(where)
    if clause.updates is None:
        is_matched = clause.rows == "matched"
        return (merge.when_matched_update_all if is_matched else merge.when_not_matched_insert_all)(where)
    add = {
        "matched": merge.when_matched_update,
        "not matched": merge.when_not_matched_insert,
        "not matched by source": merge.when_not_matched_by_source_update,
    }
    return add[clause.rows](scope.updates(clause.updates), where)


def named(schema: StructType) -> dict[str, StructField]:
    """Return the fields of a struct by their names in lower case."""
    return {field.name.lower(): field for field in schema.fields}


def field_of(fields: Mapping[str, StructField], name: str) -> StructField:
    """Return the field of a name in any case; raises ExpressionError."""
    found = fields.get(name.lower())
    if found is None:
        names = ", ".join(field.name for field in fields.values())
        raise ExpressionError(f"unknown column {name!r}: the table has {names}", column=name)
    return found


def _default_text(column: StructField) -> str:
    return default_of(column) or "null"


def _struct(column: StructField, path: str, values: Mapping[str, Any]) -> str:
    """Return the SQL text of a struct of which some fields change."""
    assert isinstance(column.type, StructType)
    parts = []
    for part in column.type.fields:
        inner = f"{path}.{quote(part.name)}"
        value = values.get(part.name, inner)
        if isinstance(value, dict):
            value = _struct(part, inner, value)
        elif isinstance(part.type, PrimitiveType):
            value = f"cast({value} as {sql_type(part.type)})"
        parts.append(f"{literal_text(part.name)}, {value}")
    return f"named_struct({', '.join(parts)})"
