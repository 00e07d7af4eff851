"""Columns that get a wider type; files keep the one that they have (PROTOCOL.md, "Type Widening")."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from ...errors import ProtocolError, SchemaError, UnsupportedFeatureError
from ...log.snapshot import Snapshot
from ...protocol import features, properties
from ...protocol.schema.paths import FieldPath, edit_type, path_text, resolve, type_at
from ...protocol.schema.widening import is_widening, widen_type
from ...protocol.types import VOID, DataType, PrimitiveType, StructType, describe
from ...storage.store import TableLocation
from ...writer.dependents import check_independent
from .alteration import check_schema_may_change, commit_alteration, load_for_alter
from .columns import ColumnPath, parse_column_type, parse_path

__all__ = ["change_type"]

TYPE_WIDENING = "typeWidening"


def change_type(
    table: TableLocation,
    column: ColumnPath,
    new_type: str | pa.DataType,
    *,
    storage_options: Mapping[str, str] | None = None,
) -> int:
    """Give a column, or a part of one, a wider type, as one commit, and return the version that has it.

    `new_type` is SQL text or an Arrow type. Integers become wider ones, `double` (but for `bigint`) or
    decimals that hold all of them; `float` becomes `double`, `date` becomes `timestamp_ntz`, and decimals get
    more digits before or after the point. Files that are there are read in the new type. A column of nulls
    alone, without a type, may get any (PROTOCOL.md, "Void Type").

    Raises ProtocolError unless the table sets `delta.enableTypeWidening`, SchemaError for a type that is not
    wider and for a column that a constraint or a generated column reads, UnsupportedFeatureError for what
    this version cannot honour, CommitConflictError when another commit changed metadata or protocol.
    """
    snapshot = load_for_alter(table, storage_options)
    check_schema_may_change(snapshot)
    path = resolve(snapshot.schema, parse_path(column))
    before, after = type_at(snapshot.schema, path), parse_column_type(path[-1], new_type)
    if before == after:
        return snapshot.version
    if before == VOID:
        return _commit(snapshot, path, edit_type(snapshot.schema, path, lambda _: after), after)
    if not isinstance(after, PrimitiveType) or not is_widening(before, after):
        raise SchemaError(
            f"the column {path_text(path)} cannot go from {describe(before)} to {describe(after)}: "
            "that is no type that Delta widens it to"
        )
    _check_enabled(snapshot)
    check_independent(snapshot, path)
    return _commit(snapshot, path, widen_type(snapshot.schema, path, after), after)


def _commit(snapshot: Snapshot, path: FieldPath, columns: DataType, after: DataType) -> int:
    assert isinstance(columns, StructType)
    said = {"name": path_text(path), "type": describe(after), "nullable": True}
    return commit_alteration(
        snapshot, columns=columns, operation="CHANGE COLUMN", parameters={"column": said}
    )


def _check_enabled(snapshot: Snapshot) -> None:
    prop = properties.ENABLE_TYPE_WIDENING
    if not properties.get(snapshot.configuration, prop):
        raise ProtocolError(f"{snapshot.uri} does not let its columns be widened: set {prop.name}=true first")
    if TYPE_WIDENING not in features.supported_features(snapshot.protocol):
        raise UnsupportedFeatureError(
            f"{snapshot.uri} has the preview of {TYPE_WIDENING}, whose record of changes this version does "
            f"not write: set delta.feature.{TYPE_WIDENING}=supported first"
        )
