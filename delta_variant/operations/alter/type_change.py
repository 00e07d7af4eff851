"""Widen the types of columns without rewriting data files (PROTOCOL.md, "Type Widening")."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from ...errors import ProtocolError, SchemaError, UnsupportedFeatureError
from ...log.commit_context import CommitOptions, CommitResult
from ...log.snapshot import Snapshot
from ...protocol import features, properties
from ...protocol.schema.paths import FieldPath, edit_type, path_text, resolve, type_at
from ...protocol.schema.widening import is_widening, widen_type
from ...protocol.types import VOID, DataType, PrimitiveType, StructType, describe
from ...storage.store import TableLocation
from ...write.stored_sql import check_independent
from .alteration import check_schema_may_change, commit_alteration, load_for_alter, metadata_options
from .columns import ColumnPath, parse_column_type, parse_path

__all__ = ["change_type"]

TYPE_WIDENING = "typeWidening"


def change_type(
    table: TableLocation,
    column: ColumnPath,
    new_type: str | pa.DataType,
    *,
    commit: CommitOptions | None = None,
    storage_options: Mapping[str, str] | None = None,
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
        storage_options: Options of the object store, as deltalake names them.

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
    commit = metadata_options(commit, "change_type")
    snapshot = load_for_alter(table, storage_options)
    check_schema_may_change(snapshot)
    path = resolve(snapshot.schema, parse_path(column))
    before, after = type_at(snapshot.schema, path), parse_column_type(path[-1], new_type)
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
    return commit_alteration(
        snapshot, columns=columns, operation="CHANGE COLUMN", parameters={"column": parameter}, commit=commit
    )


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
