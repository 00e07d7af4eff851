"""Table features: what a protocol asks of a reader and a writer, and what this library does about it.

*Supported* is a feature that the protocol lists, or that a legacy version implies; *enabled* is one whose
table property is set besides (PROTOCOL.md, "Table Features").
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import ProtocolError, UnsupportedFeatureError
from . import properties
from .actions import Protocol
from .properties import TableProperty
from .types import VARIANT, StructType, fields_of, primitive_kinds_of

__all__ = [
    "CHANGE_COLUMNS",
    "FEATURES",
    "TableFeature",
    "check_may_append",
    "check_may_commit",
    "check_may_read",
    "check_may_restore",
    "check_may_rewrite",
    "enables_shredding",
    "new_table_protocol",
    "supported_features",
    "supports",
    "supports_shredding",
    "with_features",
    "with_features_of",
    "with_needed_features",
]

READER_FEATURES_VERSION = 3
WRITER_FEATURES_VERSION = 7

CHANGE_COLUMNS = frozenset({"_change_type", "_commit_version", "_commit_timestamp"})

Obstacles = Callable[[Mapping[str, str], StructType], Iterator[str]]


def _no_obstacle(configuration: Mapping[str, str], schema: StructType) -> Iterator[str]:
    return iter(())


def _identities(configuration: Mapping[str, str], schema: StructType) -> Iterator[str]:
    for path, field in fields_of(schema):
        if any(key.startswith("delta.identity.") for key in field.metadata):
            yield f"the identity of the column {'.'.join(path)}"


def _names_of_changes(configuration: Mapping[str, str], schema: StructType) -> Iterator[str]:
    if properties.get(configuration, properties.ENABLE_CHANGE_DATA_FEED):
        taken = (each.name for each in schema.fields if each.name.lower() in CHANGE_COLUMNS)
        yield from (f"the column {name}, whose name is one of the change data feed" for name in taken)


def _variant_defaults(configuration: Mapping[str, str], schema: StructType) -> Iterator[str]:
    for path, field in fields_of(schema):
        default = field.metadata.get("CURRENT_DEFAULT", "NULL")
        if field.type == VARIANT and str(default).strip().upper() != "NULL":
            yield f"the default {default} of the Variant column {'.'.join(path)}"


def _enabled(prop: TableProperty[bool]) -> Obstacles:
    def obstacles(configuration: Mapping[str, str], schema: StructType) -> Iterator[str]:
        if properties.get(configuration, prop):
            yield f"the table property {prop.name}=true"

    return obstacles


@dataclass(frozen=True)
class TableFeature:
    """A table feature, and how far this library honours it.

    `enabled_by` is the property that needs the feature when its value is not the default, `properties_from`
    what the names of properties that need it begin with; `needed_by` the primitive types that need it.
    `find_unsupported` yields what stands in the way of an append, in a table that can have the feature and
    yet be appended to. `is_append_only` says that no row may go or change where `enabled_by` is true.
    """

    name: str
    is_reader_writer: bool = False
    legacy_reader_version: int | None = None
    legacy_writer_version: int | None = None
    preview_of: str | None = None
    requires: tuple[str, ...] = ()
    enabled_by: TableProperty[Any] | None = None
    properties_from: str | None = None
    needed_by: tuple[str, ...] = ()
    can_read: bool = True
    can_append: bool = True
    find_unsupported: Obstacles = _no_obstacle
    is_append_only: bool = False


VARIANT_TYPE = TableFeature("variantType", is_reader_writer=True, needed_by=("variant",))
VARIANT_SHREDDING = TableFeature(
    "variantShredding",
    is_reader_writer=True,
    requires=("variantType",),
    enabled_by=properties.ENABLE_VARIANT_SHREDDING,
)
# PROTOCOL.md does not have it yet; Delta's kernels store the values as WKB, as Parquet has them.
GEOSPATIAL = TableFeature(
    "geospatial", is_reader_writer=True, needed_by=("geometry", "geography"), can_append=False
)

_ROWS = (
    TableFeature(
        "appendOnly",
        legacy_writer_version=2,
        enabled_by=properties.APPEND_ONLY,
        is_append_only=True,
    ),
    TableFeature("invariants", legacy_writer_version=2),
    TableFeature("checkConstraints", legacy_writer_version=3, properties_from="delta.constraints."),
    TableFeature(
        "changeDataFeed",
        legacy_writer_version=4,
        enabled_by=properties.ENABLE_CHANGE_DATA_FEED,
        find_unsupported=_names_of_changes,
    ),
    TableFeature("generatedColumns", legacy_writer_version=4),
    TableFeature(
        "columnMapping",
        is_reader_writer=True,
        legacy_reader_version=2,
        legacy_writer_version=5,
        enabled_by=properties.COLUMN_MAPPING_MODE,
    ),
    TableFeature("identityColumns", legacy_writer_version=6, find_unsupported=_identities),
    VARIANT_TYPE,
    TableFeature("variantType-preview", is_reader_writer=True, preview_of="variantType"),
    VARIANT_SHREDDING,
    TableFeature("variantShredding-preview", is_reader_writer=True, preview_of="variantShredding"),
    TableFeature("timestampNtz", is_reader_writer=True, needed_by=("timestamp_ntz",)),
    TableFeature("deletionVectors", is_reader_writer=True, enabled_by=properties.ENABLE_DELETION_VECTORS),
    TableFeature("v2Checkpoint", is_reader_writer=True, enabled_by=properties.CHECKPOINT_POLICY),
    TableFeature("vacuumProtocolCheck", is_reader_writer=True),
    TableFeature("typeWidening", is_reader_writer=True, enabled_by=properties.ENABLE_TYPE_WIDENING),
    TableFeature("typeWidening-preview", is_reader_writer=True, preview_of="typeWidening"),
    TableFeature("inCommitTimestamp", enabled_by=properties.ENABLE_IN_COMMIT_TIMESTAMPS),
    TableFeature("inCommitTimestamp-preview", preview_of="inCommitTimestamp"),
    TableFeature("domainMetadata"),
    TableFeature(
        "rowTracking",
        requires=("domainMetadata",),
        enabled_by=properties.ENABLE_ROW_TRACKING,
    ),
    TableFeature("clustering", requires=("domainMetadata",)),
    TableFeature("allowColumnDefaults", find_unsupported=_variant_defaults),
    TableFeature("checkpointProtection"),
    TableFeature(
        "icebergCompatV1",
        requires=("columnMapping",),
        find_unsupported=_enabled(properties.ENABLE_ICEBERG_COMPAT_V1),
    ),
    TableFeature(
        "icebergCompatV2",
        requires=("columnMapping",),
        find_unsupported=_enabled(properties.ENABLE_ICEBERG_COMPAT_V2),
    ),
    TableFeature("icebergCompatV3", can_append=False),
    TableFeature("icebergWriterCompatV1", can_append=False),
    TableFeature("icebergWriterCompatV3", can_append=False),
    TableFeature("materializePartitionColumns", can_append=False),
    GEOSPATIAL,
    TableFeature("geospatial-dev", is_reader_writer=True, preview_of="geospatial", can_append=False),
    TableFeature("catalogManaged", is_reader_writer=True, can_read=False, can_append=False),
    TableFeature(
        "catalogOwned-preview",
        is_reader_writer=True,
        preview_of="catalogManaged",
        can_read=False,
        can_append=False,
    ),
)

FEATURES: Mapping[str, TableFeature] = {feature.name: feature for feature in _ROWS}


def supported_features(protocol: Protocol) -> frozenset[str]:
    """Return the names of all features that `protocol` supports, those of legacy versions included."""
    return _reader_features(protocol) | _writer_features(protocol)


def supports(protocol: Protocol, name: str) -> bool:
    """Say whether `protocol` supports the feature `name`, under this name or that of a preview (T3)."""
    return _has(supported_features(protocol), name)


def supports_shredding(protocol: Protocol) -> bool:
    """Say whether `variantShredding`, under either name, is in both lists (H1)."""
    return all(
        _has(features, VARIANT_SHREDDING.name)
        for features in (_reader_features(protocol), _writer_features(protocol))
    )


def enables_shredding(protocol: Protocol, configuration: Mapping[str, str]) -> bool:
    """Say whether new files may be shredded: supported, and the table property is true (H2, H3)."""
    enabled = properties.get(configuration, properties.ENABLE_VARIANT_SHREDDING)
    return enabled and supports_shredding(protocol)


def check_may_read(protocol: Protocol, schema: StructType, where: str) -> None:
    """Raise unless this library reads the table at `where` rightly.

    `UnsupportedFeatureError` names each reader feature that it does not know; `ProtocolError` says where the
    protocol contradicts itself (T5) or has no feature for a Variant (T4) or geospatial column.
    """
    if protocol.min_reader_version > READER_FEATURES_VERSION:
        raise UnsupportedFeatureError(
            f"{where} asks for reader version {protocol.min_reader_version}; this version reads up to 3"
        )
    unknown = [name for name in sorted(_reader_features(protocol)) if not _can_read(name)]
    if unknown:
        raise UnsupportedFeatureError(
            f"{where} uses table features that this version cannot read: {', '.join(unknown)}"
        )
    _check_lists(protocol, where)
    for feature in (VARIANT_TYPE, GEOSPATIAL):
        _check_type_feature(feature, protocol, schema, where)


def check_may_append(
    protocol: Protocol, configuration: Mapping[str, str], schema: StructType, where: str
) -> None:
    """Raise unless this library appends to the table at `where` rightly; includes `check_may_commit`.

    `UnsupportedFeatureError` names each constraint and property that it cannot honour.
    """
    check_may_commit(protocol, configuration, schema, where)
    obstacles = [each for row in _ROWS for each in row.find_unsupported(configuration, schema)]
    if obstacles:
        raise UnsupportedFeatureError(
            f"cannot append to {where}: this version does not honour {', '.join(obstacles)}"
        )


def check_may_commit(
    protocol: Protocol, configuration: Mapping[str, str], schema: StructType, where: str
) -> None:
    """Raise unless this library may commit to the table at `where`, be it no new rows.

    `UnsupportedFeatureError` names each writer feature that it does not know; `ProtocolError` a property or a
    type that needs a feature which the protocol lacks (H4).
    """
    check_may_read(protocol, schema, where)
    if protocol.min_writer_version > WRITER_FEATURES_VERSION:
        raise UnsupportedFeatureError(
            f"{where} asks for writer version {protocol.min_writer_version}; this version writes up to 7"
        )
    refused = [name for name in sorted(_writer_features(protocol)) if not _can_append(name)]
    if refused:
        raise UnsupportedFeatureError(
            f"{where} uses table features that this version cannot write: {', '.join(refused)}"
        )
    for feature in _ROWS:
        _check_type_feature(feature, protocol, schema, where)
        _check_property_feature(feature, protocol, configuration, where)


def check_may_rewrite(
    protocol: Protocol,
    configuration: Mapping[str, str],
    schema: StructType,
    where: str,
    *,
    removes_rows: bool,
) -> None:
    """Raise unless this library rewrites rows of the table at `where` rightly; includes `check_may_append`.

    `removes_rows` says that some are no longer there, or no longer as they were. `UnsupportedFeatureError`
    names the table property that stands in the way.
    """
    check_may_append(protocol, configuration, schema, where)
    obstacles = [
        f"{row.enabled_by.name}=true"
        for row in _ROWS
        if row.enabled_by is not None and row.is_append_only and _is_enabled(row, configuration)
    ]
    if removes_rows and obstacles:
        raise UnsupportedFeatureError(f"cannot rewrite rows of {where}: it sets {', '.join(obstacles)}")


def check_may_restore(configuration: Mapping[str, str], schema: StructType, where: str) -> None:
    """Raise UnsupportedFeatureError where files of an earlier version cannot become part of the table again.

    What constrains single rows did so when they were written.
    """
    obstacles = [
        each
        for name in ("identityColumns", "icebergCompatV1", "icebergCompatV2")
        for each in FEATURES[name].find_unsupported(configuration, schema)
    ]
    if obstacles:
        raise UnsupportedFeatureError(
            f"cannot restore {where}: this version does not honour {', '.join(obstacles)}"
        )


def new_table_protocol(schema: StructType, configuration: Mapping[str, str]) -> Protocol:
    """Return the least protocol of a new table: versions 1 and 2, and what schema and properties need."""
    return with_needed_features(Protocol(min_reader_version=1, min_writer_version=2), schema, configuration)


def with_needed_features(
    protocol: Protocol, schema: StructType, configuration: Mapping[str, str]
) -> Protocol:
    """Return `protocol` with the features that schema and properties need; itself when it has them all.

    What is there stays: a preview name counts as the feature (T3), and legacy versions become the features
    that they stand for (T2).
    """
    present, types = supported_features(protocol), primitive_kinds_of(schema)
    needed = [row.name for row in _ROWS if _is_needed(row, types, configuration)]
    return with_features(protocol, [name for name in needed if not _has(present, name)])


def with_features(protocol: Protocol, names: Collection[str]) -> Protocol:
    """Return `protocol` with features of FEATURES and those that they require; itself when it has them all.

    What is there stays: legacy versions become the features that they stand for (T2).
    """
    missing = frozenset(names) - supported_features(protocol)
    required = {required for name in missing for required in FEATURES[name].requires}
    added = (missing | required) - supported_features(protocol)
    return _with_added(protocol, added) if added else protocol


def with_features_of(protocol: Protocol, other: Protocol) -> Protocol:
    """Return `protocol` with the features of another besides, all of them known; itself when it has them."""
    added = supported_features(other) - supported_features(protocol)
    return _with_added(protocol, added) if added else protocol


def _with_added(protocol: Protocol, added: frozenset[str]) -> Protocol:
    features = _reader_features(protocol) | _writer_features(protocol) | added
    reader_writer = frozenset(
        name for name in features if name in FEATURES and FEATURES[name].is_reader_writer
    )
    listed_reader = protocol.min_reader_version >= READER_FEATURES_VERSION
    if added & reader_writer or listed_reader:
        return Protocol(
            min_reader_version=READER_FEATURES_VERSION,
            min_writer_version=WRITER_FEATURES_VERSION,
            reader_features=_in_order(protocol.reader_features, _reader_features(protocol) | reader_writer),
            writer_features=_in_order(protocol.writer_features, features),
        )
    return Protocol(
        min_reader_version=protocol.min_reader_version,
        min_writer_version=WRITER_FEATURES_VERSION,
        writer_features=_in_order(protocol.writer_features, features),
    )


def _in_order(listed: tuple[str, ...] | None, features: frozenset[str]) -> tuple[str, ...]:
    before = listed or ()
    return (*before, *(name for name in FEATURES if name in features and name not in before))


def _is_needed(feature: TableFeature, types: frozenset[str], configuration: Mapping[str, str]) -> bool:
    beginning = feature.properties_from
    is_named = beginning is not None and any(name.lower().startswith(beginning) for name in configuration)
    return is_named or not types.isdisjoint(feature.needed_by) or _is_enabled(feature, configuration)


def _is_enabled(feature: TableFeature, configuration: Mapping[str, str]) -> bool:
    prop = feature.enabled_by
    return prop is not None and properties.get(configuration, prop) != prop.default


def _has(features: frozenset[str], name: str) -> bool:
    return name in features or any(row.name in features for row in _ROWS if row.preview_of == name)


def _reader_features(protocol: Protocol) -> frozenset[str]:
    if protocol.min_reader_version >= READER_FEATURES_VERSION:
        return frozenset(protocol.reader_features or ())
    version = protocol.min_reader_version
    return frozenset(row.name for row in _ROWS if (row.legacy_reader_version or version + 1) <= version)


def _writer_features(protocol: Protocol) -> frozenset[str]:
    if protocol.min_writer_version >= WRITER_FEATURES_VERSION:
        return frozenset(protocol.writer_features or ())
    return frozenset(
        row.name
        for row in _ROWS
        if row.legacy_writer_version is not None
        and row.legacy_writer_version <= protocol.min_writer_version
        and (row.legacy_reader_version or 1) <= protocol.min_reader_version
    )


def _can_read(name: str) -> bool:
    return name in FEATURES and FEATURES[name].can_read


def _can_append(name: str) -> bool:
    return name in FEATURES and FEATURES[name].can_append


def _check_lists(protocol: Protocol, where: str) -> None:
    reader_version, writer_version = protocol.min_reader_version, protocol.min_writer_version
    reads_lists = reader_version >= READER_FEATURES_VERSION
    writes_lists = writer_version >= WRITER_FEATURES_VERSION
    if reads_lists and not writes_lists:
        raise ProtocolError(
            f"{where} has reader version {reader_version} with writer version {writer_version}"
        )
    for name, listed, features in (
        ("readerFeatures", reads_lists, protocol.reader_features),
        ("writerFeatures", writes_lists, protocol.writer_features),
    ):
        if listed and features is None:
            raise ProtocolError(f"the protocol of {where} has no {name}")
        if not listed and features:
            raise ProtocolError(f"the protocol of {where} has {name}, but its version is too low for a list")
    _check_one_sided(protocol, where)


def _check_one_sided(protocol: Protocol, where: str) -> None:
    reader, writer = _reader_features(protocol), _writer_features(protocol)
    for name in sorted(frozenset(protocol.reader_features or ()) - writer):
        raise ProtocolError(
            f"the protocol of {where} lists {name} in readerFeatures but not in writerFeatures"
        )
    for name in sorted(writer - reader):
        if name in FEATURES and FEATURES[name].is_reader_writer:
            raise ProtocolError(
                f"the protocol of {where} lists {name} in writerFeatures but not in readerFeatures"
            )


def _check_type_feature(feature: TableFeature, protocol: Protocol, schema: StructType, where: str) -> None:
    needing = sorted(primitive_kinds_of(schema).intersection(feature.needed_by))
    if needing and not supports(protocol, feature.name):
        raise ProtocolError(
            f"{where} has columns of the type {', '.join(needing)}, "
            f"but its protocol lacks the feature {feature.name}"
        )


def _check_property_feature(
    feature: TableFeature, protocol: Protocol, configuration: Mapping[str, str], where: str
) -> None:
    prop = feature.enabled_by
    if prop is None or not _is_enabled(feature, configuration) or supports(protocol, feature.name):
        return
    raise ProtocolError(
        f"{where} sets {prop.name}={configuration[prop.name]}, "
        f"but its protocol lacks the feature {feature.name}: add the feature or unset the property"
    )
