"""Statements about a table as a whole: those that create, alter and maintain it, and those that show it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias

import msgspec
import pyarrow as pa

from .._checks import list_names
from ..errors import ExpressionError, SchemaError
from ..expressions.parse import ColumnDefinition, parse_definition
from ..expressions.types import read_column_type, type_name
from ..log.commit_context import CommitResult
from ..log.load import load_latest
from ..log.snapshot import Snapshot
from ..log.timestamps import from_milliseconds, to_instant
from ..operations.alter.alteration import clustering_columns
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
from ..operations.history import history
from ..operations.optimize.optimize import optimize
from ..operations.restore import restore
from ..operations.vacuum import vacuum
from ..operations.write import write_table
from ..protocol import features
from ..protocol.actions import encode_parameters
from ..protocol.features import supported_features
from ..protocol.properties import ENABLE_VARIANT_SHREDDING, FEATURE, column_names_text
from ..protocol.schema.arrow import is_variant, to_arrow
from ..protocol.schema.char_types import TYPE_TEXT
from ..protocol.types import COMMENT, StructField, resolve
from ..storage.store import TableLocation, open_latest, uri_of
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
    "set tblproperties": lambda grammar: partial(set_properties, values=grammar.properties()),
    "unset tblproperties": _unset_properties,
}
"""The clauses by their first words."""


TEXTS: Any = pa.map_(pa.string(), pa.string())
HISTORY: Mapping[str, pa.DataType] = {
    "version": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "userId": pa.string(),
    "userName": pa.string(),
    "operation": pa.string(),
    "operationParameters": TEXTS,
    "readVersion": pa.int64(),
    "isolationLevel": pa.string(),
    "isBlindAppend": pa.bool_(),
    "operationMetrics": TEXTS,
    "userMetadata": pa.string(),
    "engineInfo": pa.string(),
}
"""The columns of DESCRIBE HISTORY that are facts of a commit, of those that Delta on Spark has."""
OPTIMIZED = pa.schema(
    {
        "path": pa.string(),
        "metrics": pa.struct([("numFilesAdded", pa.int64()), ("numFilesRemoved", pa.int64())]),
    }
)
COLUMNS = pa.schema(dict.fromkeys(("col_name", "data_type", "comment"), pa.string()))
PARTITION_TITLES = (("# Partition Information", "", ""), ("# col_name", "data_type", "comment"))


def optimize_table(
    table: TableLocation,
    session: Session,
    *,
    where: str | None,
    z_order_by: tuple[str, ...] = (),
    purge: bool = False,
) -> pa.Table:
    """Combine small files, and return the numbers of files."""
    result = optimize(table, where, z_order_by=z_order_by or None, purge=purge, timezone=session.timezone)
    metrics = {"numFilesAdded": len(result.files), "numFilesRemoved": result.files_before}
    row = {"path": open_latest(table).uri, "metrics": metrics}
    return pa.Table.from_pylist([row], schema=OPTIMIZED)


def vacuum_table(
    table: TableLocation, session: Session, *, hours: float | None, is_dry_run: bool
) -> pa.Table:
    """Delete unused files, and return the location of the table, those of the files for DRY RUN."""
    store, result = open_latest(table), vacuum(table, hours, dry_run=is_dry_run)
    paths = [uri_of(store, path) for path in result.files] if is_dry_run else [store.uri]
    return pa.table({"path": pa.array(paths, pa.string())})


def restore_table(
    table: TableLocation, session: Session, *, version: int | None = None, timestamp: str | None = None
) -> pa.Table:
    """Restore an earlier version, and return the numbers and sizes of files."""
    moment = None if timestamp is None else to_instant(timestamp, session.timezone)
    result = restore(table, version, timestamp=moment)
    after = load_latest(table)
    numbers = {
        "table_size_after_restore": after.num_bytes,
        "num_of_files_after_restore": after.num_files,
        "num_removed_files": result.files_removed,
        "num_restored_files": result.files_added,
        "removed_files_size": result.bytes_removed,
        "restored_files_size": result.bytes_added,
    }
    return pa.table({name: pa.array([number], pa.int64()) for name, number in numbers.items()})


def show_history(table: TableLocation, session: Session, *, limit: int | None) -> pa.Table:
    """Return the commits of a table, newest first."""
    rows = []
    for entry in history(table, limit):
        info = {name: entry.commit_info.get(name) for name in HISTORY}
        texts = {name: _texts(info[name]) for name in ("operationParameters", "operationMetrics")}
        rows.append({**info, **texts, "version": entry.version, "timestamp": entry.timestamp})
    return pa.Table.from_pylist(rows, schema=pa.schema(HISTORY))


def _texts(values: Any) -> list[tuple[str, str | None]] | None:
    """Return the entries of a mapping as text, as a commit has them or would have them."""
    if not isinstance(values, Mapping):
        return None
    return list(encode_parameters(values).items())


def show_columns(table: TableLocation, session: Session) -> pa.Table:
    """Return the columns of a table, and those of its partitions again, after two rows of titles."""
    snapshot = load_latest(table)
    types = (type_name(None if is_variant(each) else each.type, "") for each in to_arrow(snapshot.schema))
    rows = {
        field.name: (field.name, text, field.metadata.get(COMMENT))
        for field, text in zip(snapshot.schema.fields, types, strict=True)
    }
    partitions = [rows[name] for name in snapshot.partition_columns]
    titles = PARTITION_TITLES if partitions else ()
    shown = [dict(zip(COLUMNS.names, row, strict=True)) for row in (*rows.values(), *titles, *partitions)]
    return pa.Table.from_pylist(shown, schema=COLUMNS)


def show_detail(table: TableLocation, session: Session) -> pa.Table:
    snapshot = load_latest(table)
    metadata, protocol = snapshot.metadata, snapshot.protocol
    created = metadata.created_time
    moment, names = pa.timestamp("us", "UTC"), pa.list_(pa.string())
    facts: dict[str, tuple[pa.DataType, Any]] = {
        "format": (pa.string(), "delta"),
        "id": (pa.string(), metadata.id),
        "name": (pa.string(), metadata.name),
        "description": (pa.string(), metadata.description),
        "location": (pa.string(), snapshot.uri),
        "createdAt": (moment, None if created is None else from_milliseconds(created)),
        "lastModified": (moment, history(table, 1)[0].timestamp),
        "partitionColumns": (names, snapshot.partition_columns),
        "clusteringColumns": (names, [column_names_text((path,)) for path in clustering_columns(snapshot)]),
        "numFiles": (pa.int64(), snapshot.num_files),
        "sizeInBytes": (pa.int64(), snapshot.num_bytes),
        "properties": (TEXTS, list(snapshot.properties.items())),
        "minReaderVersion": (pa.int32(), protocol.min_reader_version),
        "minWriterVersion": (pa.int32(), protocol.min_writer_version),
        "tableFeatures": (names, sorted(features.supported_features(protocol))),
    }
    return pa.table({name: pa.array([value], kind) for name, (kind, value) in facts.items()})


def show_properties(table: TableLocation, session: Session, *, key: str | None) -> pa.Table:
    """Return the properties of a table, or one of them, with the versions and features of its protocol."""
    snapshot = load_latest(table)
    protocol = snapshot.protocol
    values = {
        **snapshot.properties,
        "delta.minReaderVersion": str(protocol.min_reader_version),
        "delta.minWriterVersion": str(protocol.min_writer_version),
        **{f"{FEATURE}{name}": "supported" for name in features.supported_features(protocol)},
    }
    if key is not None:
        missing = f"Table {snapshot.uri} does not have property: {key}"
        values = {key: values.get(key, missing)}
    keys = sorted(values)
    columns = {"key": keys, "value": [values[each] for each in keys]}
    return pa.table({name: pa.array(texts, pa.string()) for name, texts in columns.items()})
