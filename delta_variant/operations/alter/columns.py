"""Add, rename, drop, widen, move and describe columns without rewriting data files.

See PROTOCOL.md, "Column Mapping" and "Type Widening".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, TypeAlias

import pyarrow as pa

from ..._checks import check_text, list_names
from ...errors import ArgumentTypeError, ProtocolError, SchemaError, UnsupportedFeatureError
from ...expressions.parse import parse_column_type, parse_type
from ...log.commit_context import CommitOptions, CommitResult, without_txn
from ...log.snapshot import Snapshot
from ...protocol import features, properties
from ...protocol.schema.arrow import from_arrow
from ...protocol.schema.char_types import TYPE_TEXT
from ...protocol.schema.column_mapping import stored_paths
from ...protocol.schema.evolution import is_widening, widen_type
from ...protocol.schema.rules import check_new as check_new_schema
from ...protocol.types import (
    COMMENT,
    VARIANT,
    VOID,
    DataType,
    FieldPath,
    PrimitiveType,
    StructField,
    StructType,
    describe,
    edit_fields,
    edit_type,
    fields_of,
    path_text,
    resolve,
    split_at_field,
    type_at,
)
from ...storage.store import TableLocation
from ...write.stored_sql import check_independent
from .alteration import (
    AlterationPlan,
    check_schema_may_change,
    clustering_columns,
    load_for_alter,
    plan_alteration,
)


class HasArrowSchema(Protocol):
    """A schema of any Arrow library that implements the Arrow PyCapsule interface."""

    def __arrow_c_schema__(self) -> object:
        """Return the schema as a PyCapsule of an `ArrowSchema`."""


ColumnPath: TypeAlias = str | tuple[str, ...]
"""A column or a nested field: `user.age`, "`a.b`.c" for a name with a dot, or a tuple of names.

Within arrays and maps the names are `element`, `key` and `value`.
"""

Columns: TypeAlias = (
    Mapping[str, str] | Mapping[str, pa.DataType] | Mapping[ColumnPath, str | pa.DataType] | HasArrowSchema
)


def add_columns(
    table: TableLocation, columns: Columns, *, commit: CommitOptions | None = None
) -> CommitResult:
    """Add columns after the existing ones, as one commit.

    Existing rows read NULL in the new columns. A new Variant column adds `variantType` to the protocol,
    whatever its version was.

    Args:
        table: A path, a URI, a `Table` or a `deltalake.DeltaTable`.
        columns: A mapping from names, or paths of new fields in structs (`user.age`, `items.element.price`),
            to types: SQL text (`variant`, `decimal(10,2)`, `array<int>`) or Arrow types. Or an Arrow schema.
        commit: The metadata of the commit; see `CommitOptions`. None, the default, sets none.

    Returns:
        A `CommitResult` with the committed version, None if nothing changes.

    Raises:
        SchemaError: A column exists already, is not nullable, or is not valid in a Delta table.
        ArgumentTypeError: `columns` or one of its items has the wrong type.
        ValueError: `columns` is empty.
        UnsupportedFeatureError: This version cannot change the schema of the table.
        CommitConflictError: A concurrent commit changed the metadata or the protocol.

    Example:
        >>> import delta_variant as dv, pyarrow as pa
        >>> table = "events"
        >>> _ = dv.write_table(table, pa.table({"id": [1]}))
        >>> dv.add_columns(table, {"event": "variant", "price": "decimal(10,2)"}).version
        1
    """
    return add_fields(table, [Addition(*each) for each in parse_columns(columns)], commit=commit)


def rename_column(
    table: TableLocation, column: ColumnPath, new_name: str, *, commit: CommitOptions | None = None
) -> CommitResult:
    """Rename a column or a nested field, as one commit.

    Partition columns and `delta.dataSkippingStatsColumns` use the new name afterwards.

    Args:
        table: A path, a URI, a `Table` or a `deltalake.DeltaTable`. The table must use column mapping.
        column: The column, or the path of a nested field.
        new_name: The new name, without the path of the struct.
        commit: The metadata of the commit; see `CommitOptions`. None, the default, sets none.

    Returns:
        A `CommitResult` with the committed version, None if nothing changes.

    Raises:
        UnsupportedFeatureError: The table does not use column mapping, or this version cannot change its
            schema.
        SchemaError: There is no such column, the name exists already, or a constraint or a generated column
            uses the column.
        CommitConflictError: A concurrent commit changed the metadata or the protocol.

    Example:
        >>> import delta_variant as dv, pyarrow as pa
        >>> table = "events"
        >>> mapping = {"delta.columnMapping.mode": "name"}
        >>> _ = dv.write_table(table, pa.table({"id": [1]}), configuration=mapping)
        >>> dv.rename_column(table, "id", "event_id").version
        1
    """
    commit = without_txn(commit, "rename_column")
    check_text("new_name", new_name)
    snapshot = load_for_alter(table)
    path = _resolve_mapped(snapshot, column, "rename")
    check_independent(snapshot.configuration, path)
    new_path = (*path[:-1], new_name)

    def rename(fields: tuple[StructField, ...]) -> tuple[StructField, ...]:
        return tuple(replace(field, name=new_name) if field.name == path[-1] else field for field in fields)

    altered = edit_fields(snapshot.schema, path[:-1], rename)
    check_new_schema(altered, mode=snapshot.configuration.mapping_mode)
    partitions = snapshot.partition_columns
    if len(path) == 1:
        partitions = tuple(new_name if name == path[0] else name for name in partitions)
    return plan_alteration(
        snapshot,
        columns=altered,
        configuration=_with_statistics_of(snapshot, path, new_path),
        partition_columns=partitions,
        operation="RENAME COLUMN",
        parameters={"oldColumnPath": path_text(path), "newColumnPath": path_text(new_path)},
        commit=commit,
    ).run()


def drop_column(
    table: TableLocation, column: ColumnPath, *, commit: CommitOptions | None = None
) -> CommitResult:
    """Drop a column or a nested field, as one commit.

    The values stay in the data files until those are rewritten, but no read returns them, not even for a new
    column of the same name.

    Args:
        table: A path, a URI, a `Table` or a `deltalake.DeltaTable`. The table must use column mapping.
        column: The column, or the path of a nested field.
        commit: The metadata of the commit; see `CommitOptions`. None, the default, sets none.

    Returns:
        A `CommitResult` with the committed version, None if nothing changes.

    Raises:
        UnsupportedFeatureError: The table does not use column mapping, or this version cannot change its
            schema.
        SchemaError: There is no such column, it is the last one, the table is partitioned or clustered by it,
            or a constraint or a generated column uses it.
        CommitConflictError: A concurrent commit changed the metadata or the protocol.

    Example:
        >>> import delta_variant as dv, pyarrow as pa
        >>> table = "events"
        >>> mapping = {"delta.columnMapping.mode": "name"}
        >>> _ = dv.write_table(table, pa.table({"id": [1], "note": ["a"]}), configuration=mapping)
        >>> dv.drop_column(table, "note").version
        1
    """
    return plan_drop_column(table, column, commit=commit).run()


def plan_drop_column(
    table: TableLocation, column: ColumnPath, *, commit: CommitOptions | None = None
) -> AlterationPlan:
    """Return the plan of `drop_column`; raises the errors of its arguments and of the table."""
    commit = without_txn(commit, "drop_column")
    snapshot = load_for_alter(table)
    path = _resolve_mapped(snapshot, column, "drop")
    name, uri = path_text(path), snapshot.uri

    def cannot_drop(what: str) -> SchemaError:
        return SchemaError(f"cannot drop {what}", table=uri, column=".".join(path))

    if len(path) == 1 and path[0] in snapshot.partition_columns:
        raise cannot_drop(f"the partition column {path[0]!r} of {uri}")
    physical = stored_paths(snapshot.schema, snapshot.configuration.mapping_mode)[path]
    if any(column[: len(physical)] == physical for column in clustering_columns(snapshot)):
        raise cannot_drop(f"the clustering column {name} of {uri}")
    check_independent(snapshot.configuration, path)

    def drop(fields: tuple[StructField, ...]) -> tuple[StructField, ...]:
        remaining = tuple(field for field in fields if field.name != path[-1])
        if not remaining and len(path) == 1:
            raise cannot_drop(f"{name}, the only column of {uri}")
        if not remaining:
            raise cannot_drop(f"{name}, the only field of its struct: drop the struct")
        return remaining

    altered = edit_fields(snapshot.schema, path[:-1], drop)
    if len(snapshot.partition_columns) == len(altered.fields):
        raise cannot_drop(f"{name}: every other column of {uri} is a partition column")
    return plan_alteration(
        snapshot,
        columns=altered,
        configuration=_with_statistics_of(snapshot, path, None),
        operation="DROP COLUMNS",
        parameters={"columns": [name]},
        commit=commit,
    )


def parse_path(column: ColumnPath) -> FieldPath:
    """Return the names of a column's path.

    Raises SchemaError for text that is not a path, and ArgumentTypeError for anything but text.
    """
    if not isinstance(column, str | tuple | list):
        raise ArgumentTypeError(f"column: expected a name or a tuple of names, got {column!r}")
    for step in (column,) if isinstance(column, str) else column:
        check_text("the name of a column", step)
    if not isinstance(column, str):
        path = tuple(column)
    else:
        try:
            (path,) = properties.column_names(column)
        except ValueError as error:
            raise SchemaError(
                f"invalid column name {column!r}: use backticks around a name with a dot or a comma",
                column=column,
            ) from error
    if not path:
        raise SchemaError("the name of a column is empty")
    return path


def column_type(name: str, written: str | pa.DataType) -> DataType:
    """Return the Delta type of SQL text or an Arrow type."""
    if not isinstance(written, str | pa.DataType):
        raise ArgumentTypeError(
            f"type of {name!r}: expected SQL text or an Arrow type, got {written!r}", column=name
        )
    if not isinstance(written, str):
        (field,) = from_arrow(pa.schema([pa.field(name, written)])).fields
        return field.type
    arrow_type = parse_type(written, of_column=True)
    return VARIANT if arrow_type is None else column_type(name, arrow_type)


def parse_columns(columns: Columns) -> Iterator[tuple[FieldPath, StructField]]:
    """Yield each new field with the path of its struct."""
    if isinstance(columns, Mapping):
        for column, written in columns.items():
            path = parse_path(column)
            yield path[:-1], _new_field(path[-1], written)
    else:
        yield from (((), field) for field in from_arrow(_arrow_schema(columns)).fields)


def _new_field(name: str, written: str | pa.DataType) -> StructField:
    if not isinstance(written, str):
        return StructField(name, column_type(name, written))
    arrow_type, text_type = parse_column_type(written)
    delta_type = VARIANT if arrow_type is None else column_type(name, arrow_type)
    return StructField(name, delta_type, True, {} if text_type is None else {TYPE_TEXT: text_type})


def _arrow_schema(columns: Any) -> pa.Schema:
    try:
        return pa.schema(columns)
    except TypeError as error:
        raise ArgumentTypeError(
            f"columns: expected a mapping from names to types or an Arrow schema, got {columns!r}"
        ) from error


def _resolve_mapped(snapshot: Snapshot, column: ColumnPath, verb: str) -> FieldPath:
    """Return the path of a field that column mapping allows to change."""
    check_schema_may_change(snapshot)
    path = _resolve_field(snapshot, parse_path(column), verb)
    if snapshot.configuration.mapping_mode == "none":
        raise UnsupportedFeatureError(
            f"cannot {verb} {path_text(path)} because {snapshot.uri} does not use column mapping: set the "
            f"table property {properties.COLUMN_MAPPING_MODE.name}=name first",
            table=snapshot.uri,
            column=".".join(path),
        )
    return path


def _with_statistics_of(snapshot: Snapshot, path: FieldPath, new_path: FieldPath | None) -> dict[str, str]:
    """Return the properties with the columns that have statistics under their new names, or without them."""
    settings = dict(snapshot.properties)
    named = properties.get(settings, properties.DATA_SKIPPING_STATS_COLUMNS)
    if named is None:
        return settings
    kept: list[FieldPath] = []
    for name in named:
        if [step.lower() for step in name[: len(path)]] != [step.lower() for step in path]:
            kept.append(name)
        elif new_path is not None:
            kept.append((*new_path, *name[len(path) :]))
    if tuple(kept) != named:
        settings[properties.DATA_SKIPPING_STATS_COLUMNS.name] = properties.column_names_text(tuple(kept))
    return settings


TYPE_WIDENING = "typeWidening"


def change_type(
    table: TableLocation,
    column: ColumnPath,
    new_type: str | pa.DataType,
    *,
    commit: CommitOptions | None = None,
) -> CommitResult:
    """Widen the type of a column or a nested field, as one commit.

    An integer can become a wider integer, a decimal that represents all its values or, except for `bigint`, a
    `double`. A `float` can become a `double`, a `date` a `timestamp_ntz`, and a decimal one with more digits
    before or after the point. Reads convert the values of existing files. A `void` column can become any type
    (PROTOCOL.md, "Void Type").

    Args:
        table: A path, a URI, a `Table` or a `deltalake.DeltaTable`.
        column: The column, or the path of a nested field.
        new_type: The new type as SQL text or an Arrow type.
        commit: The metadata of the commit; see `CommitOptions`. None, the default, sets none.

    Returns:
        A `CommitResult` with the committed version, None if nothing changes.

    Raises:
        ProtocolError: The table does not set `delta.enableTypeWidening=true`.
        SchemaError: There is no such column, the type is not wider, or a constraint or a generated column
            uses the column.
        ArgumentTypeError: `column` or `new_type` has the wrong type.
        UnsupportedFeatureError: This version cannot change the schema of the table.
        CommitConflictError: A concurrent commit changed the metadata or the protocol.

    Example:
        >>> import delta_variant as dv, pyarrow as pa
        >>> table = "events"
        >>> widening = {"delta.enableTypeWidening": "true"}
        >>> _ = dv.write_table(table, pa.table({"n": pa.array([1], pa.int32())}), configuration=widening)
        >>> dv.change_type(table, "n", "bigint").version
        1
    """
    commit = without_txn(commit, "change_type")
    snapshot = load_for_alter(table)
    check_schema_may_change(snapshot)
    path = resolve(snapshot.schema, parse_path(column))
    before, after = type_at(snapshot.schema, path), column_type(path[-1], new_type)
    if before == after:
        return CommitResult(None)
    if before == VOID:
        return _commit(snapshot, path, edit_type(snapshot.schema, path, lambda _: after), after, commit)
    if not isinstance(after, PrimitiveType) or not is_widening(before, after):
        raise SchemaError(
            f"cannot change the type of {path_text(path)} from {describe(before)} to {describe(after)}: "
            "expected a wider type",
            table=snapshot.uri,
            column=".".join(path),
        )
    _check_enabled(snapshot)
    snapshot.configuration.check_may_change([".".join(path)])
    check_independent(snapshot.configuration, path)
    return _commit(snapshot, path, widen_type(snapshot.schema, path, after), after, commit)


def _commit(
    snapshot: Snapshot, path: FieldPath, columns: DataType, after: DataType, commit: CommitOptions
) -> CommitResult:
    assert isinstance(columns, StructType)
    parameter = {"name": path_text(path), "type": describe(after), "nullable": True}
    return plan_alteration(
        snapshot, columns=columns, operation="CHANGE COLUMN", parameters={"column": parameter}, commit=commit
    ).run()


def _check_enabled(snapshot: Snapshot) -> None:
    prop = properties.ENABLE_TYPE_WIDENING
    if not snapshot.configuration.get(prop):
        raise ProtocolError(
            f"cannot widen a column of {snapshot.uri}: set {prop.name}=true first", table=snapshot.uri
        )
    if TYPE_WIDENING not in features.supported_features(snapshot.protocol):
        raise UnsupportedFeatureError(
            f"cannot widen a column of {snapshot.uri} because this version does not write the type changes "
            f"of the preview of {TYPE_WIDENING}: set delta.feature.{TYPE_WIDENING}=supported first",
            table=snapshot.uri,
        )


class Position(NamedTuple):
    """The place of a field in its struct: after another field, None for the first place."""

    after: str | None

    def __str__(self) -> str:
        """Return the clause of ALTER TABLE."""
        return "FIRST" if self.after is None else f"AFTER {self.after}"


class Addition(NamedTuple):
    """A new field, the path of its struct, and its place there, None for the last one."""

    parent: FieldPath
    field: StructField
    position: Position | None = None


def add_fields(
    table: TableLocation, additions: Sequence[Addition], *, commit: CommitOptions | None = None
) -> CommitResult:
    """Add fields one after the other, as one commit; raises the errors of `add_columns`."""
    commit = without_txn(commit, "add_columns")
    snapshot = load_for_alter(table)
    check_schema_may_change(snapshot)
    if not additions:
        raise ValueError("columns is empty: pass at least one column with its type")
    altered, parameters = snapshot.schema, []
    for addition in additions:
        _check_nullable(addition.field)
        altered = _with_field(altered, addition)
        path = (*addition.parent, addition.field.name)
        parameters.append(_parameter(path, addition.field, addition.position))
    check_new_schema(altered, mode=snapshot.configuration.mapping_mode)
    return plan_alteration(
        snapshot, columns=altered, operation="ADD COLUMNS", parameters={"columns": parameters}, commit=commit
    ).run()


def change_field(
    table: TableLocation, column: FieldPath, *, comment: str | None = None, position: Position | None = None
) -> CommitResult:
    """Give a field a comment or another place in its struct, as one commit.

    Raises SchemaError if there is no such field, or none of the name to place it after.
    """
    snapshot = load_for_alter(table)
    check_schema_may_change(snapshot)
    path = _resolve_field(snapshot, column, "change")
    changed: list[StructField] = []

    def change(fields: tuple[StructField, ...]) -> tuple[StructField, ...]:
        field = next(each for each in fields if each.name == path[-1])
        if comment is not None:
            field = replace(field, metadata={**field.metadata, COMMENT: comment})
        changed.append(field)
        if position is None:
            return tuple(field if each.name == field.name else each for each in fields)
        return _placed(tuple(each for each in fields if each.name != field.name), field, position)

    altered = edit_fields(snapshot.schema, path[:-1], change)
    return plan_alteration(
        snapshot,
        columns=altered,
        operation="CHANGE COLUMN",
        parameters=_parameter(path, changed[0], position),
    ).run()


def _resolve_field(snapshot: Snapshot, column: FieldPath, verb: str) -> FieldPath:
    """Return the path of a column or of a struct field; raises SchemaError for other parts of columns."""
    path = resolve(snapshot.schema, column)
    if split_at_field(snapshot.schema, path)[1]:
        raise SchemaError(
            f"cannot {verb} {path_text(path)}: expected a column or a struct field, got a part of an array "
            "or a map",
            table=snapshot.uri,
            column=".".join(path),
        )
    return path


def _parameter(path: FieldPath, field: StructField, position: Position | None) -> dict[str, Any]:
    column = {
        "name": path_text(path),
        "type": describe(field.type),
        "nullable": True,
        "metadata": {name: text for name, text in field.metadata.items() if name == COMMENT},
    }
    return {"column": column} if position is None else {"column": column, "position": str(position)}


def _with_field(columns: StructType, addition: Addition) -> StructType:
    parent, field = resolve(columns, addition.parent), addition.field

    def add(fields: tuple[StructField, ...]) -> tuple[StructField, ...]:
        if any(each.name.lower() == field.name.lower() for each in fields):
            where = (*parent, field.name)
            raise SchemaError(f"the column {path_text(where)} exists already", column=".".join(where))
        return _placed(fields, field, addition.position)

    return edit_fields(columns, parent, add)


def _placed(
    fields: tuple[StructField, ...], field: StructField, position: Position | None
) -> tuple[StructField, ...]:
    if position is None:
        return (*fields, field)
    if position.after is None:
        return (field, *fields)
    names = [each.name.lower() for each in fields]
    if position.after.lower() not in names:
        known = list_names([each.name for each in fields], position.after)
        raise SchemaError(
            f"cannot place {field.name!r} after {position.after!r}: expected one of {known}",
            column=field.name,
        )
    index = names.index(position.after.lower()) + 1
    return (*fields[:index], field, *fields[index:])


def _check_nullable(added: StructField) -> None:
    for path, field in fields_of(StructType((added,))):
        if not field.nullable:
            raise SchemaError(
                f"cannot add the column {path_text(path)} as NOT NULL because existing rows have no value: "
                "make it nullable",
                column=".".join(path),
            )
