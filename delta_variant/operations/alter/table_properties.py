"""Setting and unsetting table properties (PROTOCOL.md, "Table Properties", and those of each feature)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias
from uuid import uuid4

from ..._checks import texts_of
from ...errors import ProtocolError, SchemaError, UnsupportedFeatureError
from ...log.snapshot import Snapshot
from ...protocol import properties
from ...protocol.features import FEATURES
from ...protocol.properties import TableProperty
from ...protocol.schema.arrow import field_id
from ...protocol.schema.column_mapping import PHYSICAL_NAME, keep_names
from ...protocol.schema.paths import path_text
from ...protocol.schema.paths import resolve as resolve_path
from ...protocol.types import fields_of
from ...storage.store import TableLocation
from .alteration import commit_alteration, load_for_alter, mapping_mode
from .row_ids import assign_row_ids, lacks_row_ids

__all__ = ["set_properties", "unset_properties"]

FEATURE = "delta.feature."
SUPPORTED = "supported"

# Beginnings of the names of properties, and why nobody sets them.
RESERVED: Mapping[str, str] = {
    "delta.columnMapping.maxColumnId": "it counts the ids of columns",
    "delta.constraints.": "add_constraint and drop_constraint do",
    "delta.coordinatedCommits.": "this version does not know a commit coordinator",
    "delta.inCommitTimestampEnablement": (
        "it says since when delta.enableInCommitTimestamps is true, and is written with that"
    ),
    "delta.minReaderVersion": "the protocol follows from the schema, the properties and delta.feature.NAME",
    "delta.minWriterVersion": "the protocol follows from the schema, the properties and delta.feature.NAME",
    "delta.requireCheckpointProtectionBeforeVersion": "it says from where the log must be kept",
    "delta.rowTracking.materialized": "it names the column of row ids, and is written once",
}

Rule: TypeAlias = Callable[[Snapshot, dict[str, str]], None]
"""Raises for a change of properties that a table may not make, or completes the new ones."""


def set_properties(
    table: TableLocation,
    values: Mapping[str, str],
    *,
    storage_options: Mapping[str, str] | None = None,
) -> int:
    """Set table properties, as one commit, and return the version that has them.

    The protocol gets the features that a property needs, by their stable names unless the preview of one is
    there (`delta.enableVariantShredding` gives `variantShredding` and `variantType`), and a name such as
    `delta.feature.deletionVectors` with the value `supported` gives a feature by itself. With
    `delta.columnMapping.mode=name` the files stay as they are. What the files that are there have is not
    changed by any property. Before `delta.enableRowTracking=true`, rows without ids get them, by two commits
    more: one for the feature, and one for the files; so they do in a table that was left without.

    Raises ProtocolError for a value that is not allowed, for a name below `delta.` that is not known, and for
    a property that is not set by hand; UnsupportedFeatureError for what this version cannot honour;
    CommitConflictError when another commit changed metadata or protocol.
    """
    properties.check_texts(values)
    snapshot = load_for_alter(table, storage_options)
    named = {name: text for name, text in values.items() if not name.startswith(FEATURE)}
    asked = [_parse_feature(name, text) for name, text in values.items() if name.startswith(FEATURE)]
    for name, text in named.items():
        _check_not_reserved(name)
        properties.check_set(name, text)
    return _commit(
        snapshot,
        {**snapshot.configuration, **named},
        asked,
        "SET TBLPROPERTIES",
        {"properties": dict(values)},
    )


def unset_properties(
    table: TableLocation,
    names: Sequence[str],
    *,
    storage_options: Mapping[str, str] | None = None,
) -> int:
    """Take table properties away, as one commit, and return the version without them; features stay.

    Raises ProtocolError for a property that the table does not have, or that is not set by hand, and what
    `set_properties` does for the defaults that come back.
    """
    given = texts_of("names", "names", names)
    snapshot = load_for_alter(table, storage_options)
    for name in given:
        _check_not_reserved(name)
        if name not in snapshot.configuration:
            raise ProtocolError(f"{snapshot.uri} has no table property {name}")
    left = {name: text for name, text in snapshot.configuration.items() if name not in given}
    return _commit(snapshot, left, [], "UNSET TBLPROPERTIES", {"properties": list(given), "ifExists": False})


def _commit(
    snapshot: Snapshot,
    settings: dict[str, str],
    asked: Sequence[str],
    operation: str,
    parameters: Mapping[str, object],
) -> int:
    for rule in RULES:
        rule(snapshot, settings)
    mode = properties.get(settings, properties.COLUMN_MAPPING_MODE)
    begins_mapping = mode != mapping_mode(snapshot)
    gives_ids = properties.get(settings, properties.ENABLE_ROW_TRACKING) and lacks_row_ids(snapshot)
    if gives_ids:
        snapshot = assign_row_ids(snapshot)
    return commit_alteration(
        snapshot,
        columns=keep_names(snapshot.schema) if begins_mapping else None,
        configuration=settings,
        table_features=asked,
        relies_on_rows=gives_ids,
        operation=operation,
        parameters=parameters,
    )


def _check_not_reserved(name: str) -> None:
    for beginning, reason in RESERVED.items():
        if name.lower().startswith(beginning.lower()):
            raise ProtocolError(f"the table property {name} is not changed by hand: {reason}")
    if name.startswith(FEATURE):
        raise UnsupportedFeatureError(
            f"{name.removeprefix(FEATURE)} cannot be taken out of a protocol by this version"
        )


def _parse_feature(name: str, text: str) -> str:
    feature = name.removeprefix(FEATURE)
    if text != SUPPORTED:
        raise ProtocolError(f"{name} cannot be {text!r}: it must be {SUPPORTED}")
    if feature not in FEATURES or not (FEATURES[feature].can_read and FEATURES[feature].can_append):
        raise UnsupportedFeatureError(
            f"this version cannot write tables with the feature {feature}: it does not add it to one"
        )
    return feature


def _begins(snapshot: Snapshot, settings: Mapping[str, str], prop: TableProperty[bool]) -> bool:
    return properties.get(settings, prop) and not properties.get(snapshot.configuration, prop)


def _check_column_mapping(snapshot: Snapshot, settings: dict[str, str]) -> None:
    """Let tables begin to map columns by name, and nothing else (delta-spark's rule, too)."""
    before, after = mapping_mode(snapshot), properties.get(settings, properties.COLUMN_MAPPING_MODE)
    name = properties.COLUMN_MAPPING_MODE.name
    if before == after:
        return
    if (before, after) != ("none", "name"):
        raise UnsupportedFeatureError(
            f"{snapshot.uri} cannot go from {name}={before} to {after}: only from none to name can it go "
            "without its files being written anew"
        )
    for path, field in fields_of(snapshot.schema):
        if PHYSICAL_NAME in field.metadata or field_id(field) is not None:
            raise ProtocolError(
                f"the column {path_text(path)} has a physical name or an id, though {snapshot.uri} does not "
                "map columns: nobody can say what they are of"
            )


def _enable_row_tracking(snapshot: Snapshot, settings: dict[str, str]) -> None:
    """Let tables enable row tracking that do not suspend it, and name the columns that keep ids."""
    enable, suspend = properties.ENABLE_ROW_TRACKING, properties.ROW_TRACKING_SUSPENDED
    begins = _begins(snapshot, settings, enable)
    if begins or _begins(snapshot, settings, suspend):
        properties.check_row_tracking(settings)
    if not begins:
        return
    if properties.get(snapshot.configuration, suspend):
        raise ProtocolError(
            f"{snapshot.uri} suspends row tracking, so that its files get no ids: unset {suspend.name} by a "
            f"commit before the one that sets {enable.name}=true"
        )
    settings.setdefault(properties.MATERIALIZED_ROW_ID_COLUMN_NAME.name, f"_row-id-col-{uuid4()}")
    settings.setdefault(
        properties.MATERIALIZED_ROW_COMMIT_VERSION_COLUMN_NAME.name, f"_row-commit-version-col-{uuid4()}"
    )


def _reject_iceberg(snapshot: Snapshot, settings: dict[str, str]) -> None:
    for prop in (properties.ENABLE_ICEBERG_COMPAT_V1, properties.ENABLE_ICEBERG_COMPAT_V2):
        if _begins(snapshot, settings, prop):
            raise UnsupportedFeatureError(f"cannot set {prop.name}=true: this version does not honour it")


def _check_statistics_columns(snapshot: Snapshot, settings: dict[str, str]) -> None:
    """Let `delta.dataSkippingStatsColumns` name columns that are there and are in the files."""
    prop = properties.DATA_SKIPPING_STATS_COLUMNS
    if settings.get(prop.name) == snapshot.configuration.get(prop.name):
        return
    partitions = {name.lower() for name in snapshot.partition_columns}
    for path in properties.get(settings, prop) or ():
        resolve_path(snapshot.schema, path)
        if path[0].lower() in partitions:
            raise SchemaError(f"{prop.name} names the partition column {path[0]}, which has no statistics")


RULES: Sequence[Rule] = (
    _check_column_mapping,
    _enable_row_tracking,
    _reject_iceberg,
    _check_statistics_columns,
)
