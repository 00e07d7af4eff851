"""Columns that are added, renamed and dropped; data files stay as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol, TypeAlias

import msgspec
import pyarrow as pa

from ..._checks import check_text
from ...errors import ArgumentTypeError, MalformedLogError, SchemaError, UnsupportedFeatureError
from ...expressions.parse import parse_type
from ...log.snapshot import Snapshot
from ...protocol import properties
from ...protocol.actions import CLUSTERING_DOMAIN
from ...protocol.schema.arrow import from_arrow
from ...protocol.schema.column_mapping import physical_name
from ...protocol.schema.paths import FieldPath, edit_fields, path_text, resolve, split_at_field, type_at
from ...protocol.schema.rules import check_new as check_new_schema
from ...protocol.types import VARIANT, DataType, StructField, StructType, describe, fields_of
from ...storage.store import TableLocation
from ...writer.dependents import check_independent
from .alteration import check_schema_may_change, commit_alteration, load_for_alter, mapping_mode

__all__ = [
    "ColumnPath",
    "Columns",
    "add_columns",
    "drop_column",
    "parse_column_type",
    "parse_path",
    "rename_column",
]


class HasArrowSchema(Protocol):
    """What a `pyarrow.Schema` has in common with the schemas of other Arrow libraries."""

    def __arrow_c_schema__(self) -> object:
        """Return the schema by Arrow's C interface."""


ColumnPath: TypeAlias = str | tuple[str, ...]
"""A column by its name, or a field within one: `user.age`, "`a.b`.c", or a tuple of steps.

Within arrays and maps a step is `element`, `key` or `value`.
"""

Columns: TypeAlias = (
    Mapping[str, str] | Mapping[str, pa.DataType] | Mapping[ColumnPath, str | pa.DataType] | HasArrowSchema
)


def add_columns(
    table: TableLocation, columns: Columns, *, storage_options: Mapping[str, str] | None = None
) -> int:
    """Add columns behind those that there are, as one commit, and return the version that has them.

    `columns` maps names, and paths of new fields in structs (`user.age`, `items.element.price`), to types, in
    SQL (`variant`, `decimal(10,2)`, `array<int>`) or in Arrow; or it is an Arrow schema. Rows that are there
    read NULL. A Variant gives the protocol what it needs, of a table of any age.

    Raises SchemaError for a column that is there already, or that no table can have; NOT NULL is not
    possible, as rows that are there have no value. CommitConflictError when another commit changed metadata
    or protocol.
    """
    snapshot = load_for_alter(table, storage_options)
    check_schema_may_change(snapshot)
    added = list(_parse_columns(columns))
    if not added:
        raise ValueError("columns is empty: name a column and its type")
    altered = snapshot.schema
    for parent, field in added:
        altered = _with_field(altered, resolve(altered, parent), field)
    check_new_schema(altered, mode=mapping_mode(snapshot))
    said = [
        {"column": {"name": path_text((*parent, field.name)), "type": describe(field.type), "nullable": True}}
        for parent, field in added
    ]
    return commit_alteration(snapshot, columns=altered, operation="ADD COLUMNS", parameters={"columns": said})


def rename_column(
    table: TableLocation,
    column: ColumnPath,
    new_name: str,
    *,
    storage_options: Mapping[str, str] | None = None,
) -> int:
    """Give a column, or a field within one, another name, as one commit, and return its version.

    Partition columns and `delta.dataSkippingStatsColumns` follow. Raises UnsupportedFeatureError for a table
    that does not map columns, SchemaError for a name that is taken, and for a column that a constraint or a
    generated column reads; CommitConflictError when another commit changed metadata or protocol.
    """
    check_text("new_name", new_name)
    snapshot = load_for_alter(table, storage_options)
    path = _resolve_mapped(snapshot, column, "renamed")
    check_independent(snapshot, path)
    new_path = (*path[:-1], new_name)

    def rename(fields: tuple[StructField, ...]) -> tuple[StructField, ...]:
        return tuple(replace(field, name=new_name) if field.name == path[-1] else field for field in fields)

    altered = edit_fields(snapshot.schema, path[:-1], rename)
    check_new_schema(altered, mode=mapping_mode(snapshot))
    partitions = snapshot.partition_columns
    if len(path) == 1:
        partitions = tuple(new_name if name == path[0] else name for name in partitions)
    return commit_alteration(
        snapshot,
        columns=altered,
        configuration=_with_statistics_of(snapshot, path, new_path),
        partition_columns=partitions,
        operation="RENAME COLUMN",
        parameters={"oldColumnPath": path_text(path), "newColumnPath": path_text(new_path)},
    )


def drop_column(
    table: TableLocation, column: ColumnPath, *, storage_options: Mapping[str, str] | None = None
) -> int:
    """Drop a column, or a field within one, as one commit, and return the version without it.

    Its values stay in the files until these are written anew, and are not read any more, not even under a
    new column of that name. Raises UnsupportedFeatureError for a table that does not map columns, SchemaError
    for a column that the table is partitioned or clustered by, or that a constraint or a generated column
    reads, and for the last one; CommitConflictError when another commit changed metadata or protocol.
    """
    snapshot = load_for_alter(table, storage_options)
    path = _resolve_mapped(snapshot, column, "dropped")
    if len(path) == 1 and path[0] in snapshot.partition_columns:
        raise SchemaError(f"{snapshot.uri} is partitioned by {path[0]}, which cannot be dropped")
    if _is_clustered_by(snapshot, path):
        raise SchemaError(f"{snapshot.uri} is clustered by {path_text(path)}, which cannot be dropped")
    check_independent(snapshot, path)

    def drop(fields: tuple[StructField, ...]) -> tuple[StructField, ...]:
        left = tuple(field for field in fields if field.name != path[-1])
        if not left and len(path) == 1:
            raise SchemaError(
                f"the column {path_text(path)} is the only one of {snapshot.uri}, which needs one"
            )
        if not left:
            raise SchemaError(f"the column {path_text(path)} is the only one of its struct: drop that")
        return left

    altered = edit_fields(snapshot.schema, path[:-1], drop)
    if len(snapshot.partition_columns) == len(altered.fields):
        raise SchemaError("a table needs a column besides its partition columns")
    return commit_alteration(
        snapshot,
        columns=altered,
        configuration=_with_statistics_of(snapshot, path, None),
        operation="DROP COLUMNS",
        parameters={"columns": [path_text(path)]},
    )


def parse_path(column: ColumnPath) -> FieldPath:
    """Return the steps of a path; raises SchemaError for text that is none, ArgumentTypeError for no
    text."""
    if not isinstance(column, str | tuple | list):
        raise ArgumentTypeError(f"a column is {column!r}: give its name, or a tuple of steps to a field")
    for step in (column,) if isinstance(column, str) else column:
        check_text("the name of a column", step)
    if not isinstance(column, str):
        path = tuple(column)
    else:
        try:
            (path,) = properties.column_names(column)
        except ValueError as error:
            raise SchemaError(
                f"{column!r} is no name of a column: put backticks around a name with a dot or a comma"
            ) from error
    if not path:
        raise SchemaError("the name of a column is empty")
    return path


def parse_column_type(name: str, written: str | pa.DataType) -> DataType:
    """Return the type that SQL text or an Arrow type stands for."""
    if not isinstance(written, str | pa.DataType):
        raise ArgumentTypeError(f"the type of {name} is {written!r}: give SQL text, or an Arrow type")
    if not isinstance(written, str):
        (field,) = _from_arrow(pa.schema([pa.field(name, written)])).fields
        return field.type
    arrow_type = parse_type(written)
    return VARIANT if arrow_type is None else parse_column_type(name, arrow_type)


def _parse_columns(columns: Columns) -> Iterator[tuple[FieldPath, StructField]]:
    """Yield the new fields, each with the path of its struct."""
    if isinstance(columns, Mapping):
        for column, written in columns.items():
            path = parse_path(column)
            yield path[:-1], StructField(path[-1], parse_column_type(path[-1], written))
    else:
        yield from (((), field) for field in _from_arrow(_arrow_schema(columns)).fields)


def _arrow_schema(columns: Any) -> pa.Schema:
    try:
        return pa.schema(columns)
    except TypeError as error:
        raise ArgumentTypeError(
            f"columns is {columns!r}: give a dict of names to types, or an Arrow schema"
        ) from error


def _from_arrow(arrow_schema: pa.Schema) -> StructType:
    columns = from_arrow(arrow_schema)
    for path, field in fields_of(columns):
        if not field.nullable:
            raise SchemaError(
                f"the column {path_text(path)} is NOT NULL, and rows that are there would be null: make it "
                "nullable"
            )
    return columns


def _with_field(columns: StructType, parent: FieldPath, field: StructField) -> StructType:
    def add(fields: tuple[StructField, ...]) -> tuple[StructField, ...]:
        if any(each.name.lower() == field.name.lower() for each in fields):
            raise SchemaError(f"there is a column {path_text((*parent, field.name))} already")
        return (*fields, field)

    return edit_fields(columns, parent, add)


def _resolve_mapped(snapshot: Snapshot, column: ColumnPath, done: str) -> FieldPath:
    """Return the path of a field that may have another name than in the files."""
    check_schema_may_change(snapshot)
    path = resolve(snapshot.schema, parse_path(column))
    if mapping_mode(snapshot) == "none":
        raise UnsupportedFeatureError(
            f"{snapshot.uri} finds columns in its files by their names, so that none can be {done}: set the "
            f"table property {properties.COLUMN_MAPPING_MODE.name}=name first"
        )
    if split_at_field(snapshot.schema, path)[1]:
        raise SchemaError(f"{path_text(path)} is part of an array or a map, and no column")
    return path


def _with_statistics_of(snapshot: Snapshot, path: FieldPath, new_path: FieldPath | None) -> dict[str, str]:
    """Return the properties with the columns that have statistics under their new names, or without them."""
    settings = dict(snapshot.configuration)
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


class _Clustering(msgspec.Struct, rename="camel"):
    clustering_columns: list[str | list[str]] = []


def _is_clustered_by(snapshot: Snapshot, path: FieldPath) -> bool:
    domain = snapshot.domain_metadata.get(CLUSTERING_DOMAIN)
    if domain is None:
        return False
    try:
        columns = msgspec.json.decode(domain.configuration, type=_Clustering).clustering_columns
    except msgspec.MsgspecError as error:
        raise MalformedLogError(
            f"the domain {CLUSTERING_DOMAIN} of {snapshot.uri} is not understood: {error}"
        ) from error
    names = [[each] if isinstance(each, str) else each for each in columns]
    physical = _physical_path(snapshot, path)
    return any(name[: len(physical)] == physical for name in names)


def _physical_path(snapshot: Snapshot, path: FieldPath) -> list[str]:
    mode, physical = mapping_mode(snapshot), []
    for length, step in enumerate(path):
        parent = type_at(snapshot.schema, path[:length])
        fields = parent.fields if isinstance(parent, StructType) else ()
        names = [physical_name(field, mode) for field in fields if field.name == step]
        physical.append(names[0] if names else step)
    return physical
