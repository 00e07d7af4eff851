"""Set and unset table properties (PROTOCOL.md, "Table Properties" and the sections of the features)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import pyarrow.compute as pc

from ..._checks import list_names, texts_of
from ...errors import CommitConflictError, ProtocolError, SchemaError, UnsupportedFeatureError
from ...log import transaction
from ...log.commit_context import CommitOptions, CommitResult, commit_context, without_txn
from ...log.load import refresh as refresh_snapshot
from ...log.snapshot import Snapshot
from ...protocol import properties
from ...protocol.features import FEATURES
from ...protocol.properties import CONSTRAINT, FEATURE, TableProperty
from ...protocol.schema.arrow import field_id
from ...protocol.schema.column_mapping import PHYSICAL_NAME, keep_names, physical_name
from ...protocol.table_configuration import check_stats_columns, stats_columns
from ...protocol.types import fields_of, path_text
from ...storage.store import TableLocation
from ...write.table_changes import name_row_id_columns
from .alteration import clustering_columns, load_for_alter, plan_alteration

ROW_TRACKING = "rowTracking"


def _lacks_row_ids(snapshot: Snapshot) -> bool:
    """Return whether rows of a file, or rows that a concurrent writer adds, can have no ids."""
    enabled = snapshot.configuration.get(properties.ENABLE_ROW_TRACKING)
    return not enabled or snapshot.files["base_row_id"].null_count > 0


def _assign_row_ids(snapshot: Snapshot) -> Snapshot:
    """Commit row ids for all files without them (PROTOCOL.md, "Row Tracking"), and return the new snapshot.

    The protocol gains the feature first, so that every writer assigns ids to the rows that it adds. Raises
    CommitConflictError if a concurrent commit changed one of the files or the metadata, and ProtocolError for
    a file whose number of rows the log does not have.
    """
    latest = _commit_row_ids(snapshot)
    if latest.metadata != snapshot.metadata:
        raise CommitConflictError(
            f"a concurrent commit changed the metadata of {snapshot.uri}: retry",
            table=snapshot.uri,
            version=latest.version,
        )
    return latest


def _commit_row_ids(snapshot: Snapshot) -> Snapshot:
    if not snapshot.configuration.supports(ROW_TRACKING):
        parameters = {"properties": {f"{FEATURE}{ROW_TRACKING}": "supported"}}
        plan_alteration(
            snapshot, table_features=[ROW_TRACKING], operation="SET TBLPROPERTIES", parameters=parameters
        ).run()
        snapshot = refresh_snapshot(snapshot)
    files = snapshot.files.filter(pc.is_null(snapshot.files["base_row_id"]))
    if not files.num_rows:
        return snapshot
    context = commit_context("ROW TRACKING BACKFILL", metrics={"numFiles": files.num_rows})
    transaction.recommit_files(snapshot, files, context=context)
    return refresh_snapshot(snapshot)


SUPPORTED = "supported"

# Prefixes of the properties that cannot be set directly, each with the reason.
RESERVED: Mapping[str, str] = {
    "delta.columnMapping.maxColumnId": "it counts the ids of columns",
    CONSTRAINT: "use add_constraint and drop_constraint",
    "delta.coordinatedCommits.": "this version does not support coordinated commits",
    "delta.inCommitTimestampEnablement": (
        "it records when delta.enableInCommitTimestamps was set, and is written with it"
    ),
    "delta.minReaderVersion": "the protocol follows from the schema, the properties and delta.feature.NAME",
    "delta.minWriterVersion": "the protocol follows from the schema, the properties and delta.feature.NAME",
    "delta.requireCheckpointProtectionBeforeVersion": "it is the first version whose log must be kept",
    "delta.rowTracking.materialized": "it is the name of an internal column, and is written once",
}

Rule: TypeAlias = Callable[[Snapshot, dict[str, str]], None]
"""Raises for a change of properties that the table does not allow, or completes the new properties."""


def set_properties(
    table: TableLocation, values: Mapping[str, str], *, commit: CommitOptions | None = None
) -> CommitResult:
    """Set table properties, as one commit.

    The protocol gains the features that a property requires: `delta.enableVariantShredding=true` adds
    `variantShredding` and `variantType`, unless the table has their preview names. A name such as
    `delta.feature.deletionVectors` with the value `supported` adds a feature by itself. No property changes
    existing data files. Before `delta.enableRowTracking=true`, two more commits, without the metadata of
    `commit`, add the feature and assign ids to existing rows without them.

    Args:
        table: A path, a URI, a `Table` or a `deltalake.DeltaTable`.
        values: The properties and their values, as text.
        commit: The metadata of the commit; see `CommitOptions`. None, the default, sets none.

    Returns:
        A `CommitResult` with the committed version, None if nothing changes.

    Raises:
        ProtocolError: A value is invalid, a property below `delta.` is unknown, or it cannot be set directly.
        UnsupportedFeatureError: This version does not support the property or the feature.
        SchemaError: `delta.dataSkippingStatsColumns` names an unknown column or a partition column.
        CommitConflictError: A concurrent commit changed the metadata or the protocol.

    Example:
        >>> import delta_variant as dv, pyarrow as pa
        >>> table = "events"
        >>> _ = dv.write_table(table, pa.table({"id": [1]}))
        >>> dv.set_properties(table, {"delta.appendOnly": "true"}).version
        1
    """
    commit = without_txn(commit, "set_properties")
    properties.check_texts(values)
    snapshot = load_for_alter(table)
    settings = {name: text for name, text in values.items() if not name.startswith(FEATURE)}
    added_features = [_parse_feature(name, text) for name, text in values.items() if name.startswith(FEATURE)]
    for name, text in settings.items():
        _check_not_reserved(name)
        properties.check_set(name, text)
    return _commit(
        snapshot,
        {**snapshot.properties, **settings},
        added_features,
        "SET TBLPROPERTIES",
        {"properties": dict(values)},
        commit,
    )


def unset_properties(
    table: TableLocation, names: Sequence[str], *, commit: CommitOptions | None = None
) -> CommitResult:
    """Unset table properties, as one commit. Table features stay.

    Args:
        table: A path, a URI, a `Table` or a `deltalake.DeltaTable`.
        names: The names of the properties.
        commit: The metadata of the commit; see `CommitOptions`. None, the default, sets none.

    Returns:
        The version of the table without the properties.

    Raises:
        ProtocolError: The table does not have a property, or it cannot be unset directly.
        UnsupportedFeatureError: This version does not support the resulting properties.
        CommitConflictError: A concurrent commit changed the metadata or the protocol.

    Example:
        >>> import delta_variant as dv, pyarrow as pa
        >>> table = "events"
        >>> _ = dv.write_table(table, pa.table({"id": [1]}), configuration={"delta.appendOnly": "true"})
        >>> dv.unset_properties(table, ["delta.appendOnly"]).version
        1
    """
    commit = without_txn(commit, "unset_properties")
    given = texts_of("names", "names", names)
    snapshot = load_for_alter(table)
    for name in given:
        _check_not_reserved(name)
        if name not in snapshot.properties:
            known = list_names(sorted(snapshot.properties), name) or "none"
            raise ProtocolError(
                f"{snapshot.uri} has no table property {name!r}: its properties are {known}",
                table=snapshot.uri,
            )
    remaining = {name: text for name, text in snapshot.properties.items() if name not in given}
    return _commit(
        snapshot, remaining, [], "UNSET TBLPROPERTIES", {"properties": list(given), "ifExists": False}, commit
    )


def _commit(
    snapshot: Snapshot,
    settings: dict[str, str],
    added_features: Sequence[str],
    operation: str,
    parameters: Mapping[str, object],
    commit: CommitOptions,
) -> CommitResult:
    for rule in RULES:
        rule(snapshot, settings)
    mode = properties.get(settings, properties.COLUMN_MAPPING_MODE)
    enables_mapping = mode != snapshot.configuration.mapping_mode
    assigns_ids = properties.get(settings, properties.ENABLE_ROW_TRACKING) and _lacks_row_ids(snapshot)
    if assigns_ids:
        snapshot = _assign_row_ids(snapshot)
    return plan_alteration(
        snapshot,
        columns=keep_names(snapshot.schema) if enables_mapping else None,
        configuration=settings,
        table_features=added_features,
        relies_on_rows=assigns_ids,
        operation=operation,
        parameters=parameters,
        commit=commit,
    ).run()


def _check_not_reserved(name: str) -> None:
    for prefix, reason in RESERVED.items():
        if name.lower().startswith(prefix.lower()):
            raise ProtocolError(f"cannot set or unset the table property {name!r} directly: {reason}")
    if name.startswith(FEATURE):
        feature = name.removeprefix(FEATURE)
        raise ProtocolError(
            f"cannot unset {name} because it is not a property: call drop_feature({feature!r})"
        )


def _parse_feature(name: str, text: str) -> str:
    feature = name.removeprefix(FEATURE)
    if text != SUPPORTED:
        raise ProtocolError(f"invalid table property {name}={text!r}, expected {SUPPORTED!r}")
    if feature not in FEATURES or not (FEATURES[feature].can_read and FEATURES[feature].can_append):
        raise UnsupportedFeatureError(
            f"cannot add the feature {feature!r} because this version cannot write tables with it"
        )
    return feature


def _enables(snapshot: Snapshot, settings: Mapping[str, str], prop: TableProperty[bool]) -> bool:
    return properties.get(settings, prop) and not snapshot.configuration.get(prop)


def _check_column_mapping(snapshot: Snapshot, settings: dict[str, str]) -> None:
    """Allow no change of the column mapping mode but from `none` to `name`, like delta-spark."""
    before = snapshot.configuration.mapping_mode
    after = properties.get(settings, properties.COLUMN_MAPPING_MODE)
    name = properties.COLUMN_MAPPING_MODE.name
    if before == after:
        return
    if (before, after) != ("none", "name"):
        raise UnsupportedFeatureError(
            f"cannot change {name} of {snapshot.uri} from {before} to {after}: only a change from none to "
            "name needs no rewrite of the data files",
            table=snapshot.uri,
        )
    for path, field in fields_of(snapshot.schema):
        if PHYSICAL_NAME in field.metadata or field_id(field) is not None:
            raise ProtocolError(
                f"the column {path_text(path)} has column mapping metadata, but {snapshot.uri} does not use "
                "column mapping: remove the metadata first",
                table=snapshot.uri,
                column=".".join(path),
            )


def _enable_row_tracking(snapshot: Snapshot, settings: dict[str, str]) -> None:
    """Reject row tracking for a table that suspends it, and add the names of the materialized columns."""
    enable, suspend = properties.ENABLE_ROW_TRACKING, properties.ROW_TRACKING_SUSPENDED
    enables = _enables(snapshot, settings, enable)
    if enables or _enables(snapshot, settings, suspend):
        properties.check_row_tracking(settings)
    if not enables:
        return
    if snapshot.configuration.get(suspend):
        raise ProtocolError(
            f"cannot set {enable.name}=true because {snapshot.uri} sets {suspend.name}=true and its files "
            f"get no ids: unset {suspend.name} in an earlier commit",
            table=snapshot.uri,
        )
    for name, column in name_row_id_columns().items():
        settings.setdefault(name, column)


def _check_compatibility(snapshot: Snapshot, settings: dict[str, str]) -> None:
    """Reject to exclude shredding from a table that enables it, and the reverse."""
    names = (properties.COMPATIBILITY.name, properties.ENABLE_VARIANT_SHREDDING.name)
    if any(settings.get(name) != snapshot.properties.get(name) for name in names):
        properties.check_compatibility(settings)


def _reject_iceberg(snapshot: Snapshot, settings: dict[str, str]) -> None:
    for prop in (properties.ENABLE_ICEBERG_COMPAT_V1, properties.ENABLE_ICEBERG_COMPAT_V2):
        if _enables(snapshot, settings, prop):
            raise UnsupportedFeatureError(
                f"cannot set {prop.name}=true because this version does not support it", table=snapshot.uri
            )


def _check_statistics_columns(snapshot: Snapshot, settings: dict[str, str]) -> None:
    prop = properties.DATA_SKIPPING_STATS_COLUMNS
    if settings.get(prop.name) == snapshot.properties.get(prop.name):
        return
    check_stats_columns(snapshot.schema, settings, snapshot.partition_columns, snapshot.uri)


def _keep_clustering_statistics(snapshot: Snapshot, settings: dict[str, str]) -> None:
    """Reject properties without statistics of a clustering column (PROTOCOL.md, "Clustered Table")."""
    names = (properties.DATA_SKIPPING_STATS_COLUMNS.name, properties.DATA_SKIPPING_NUM_INDEXED_COLS.name)
    if all(settings.get(name) == snapshot.properties.get(name) for name in names):
        return
    mode = snapshot.configuration.mapping_mode
    leaves = stats_columns(snapshot.schema, settings, snapshot.partition_columns)
    indexed = {tuple(physical_name(field, mode) for field in leaf) for leaf in leaves}
    missing = [path_text(path) for path in clustering_columns(snapshot) if path not in indexed]
    if missing:
        raise SchemaError(
            f"cannot set {' or '.join(names)} of {snapshot.uri} because its files would have no statistics "
            f"of the clustering column {missing[0]}: include it",
            table=snapshot.uri,
            column=missing[0],
        )


RULES: Sequence[Rule] = (
    _check_column_mapping,
    _enable_row_tracking,
    _check_compatibility,
    _reject_iceberg,
    _check_statistics_columns,
    _keep_clustering_statistics,
)
