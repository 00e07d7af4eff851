"""Table features: which of them a protocol requires, and which of them this library supports.

A protocol *supports* a feature that it lists or that its legacy version implies. A feature is *enabled* if
its table property is also set (PROTOCOL.md, "Table Features").
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..errors import ProtocolError, UnsupportedFeatureError
from . import properties
from .actions import CLUSTERING_DOMAIN, ROW_TRACKING_DOMAIN, Protocol
from .properties import TableProperty
from .types import VARIANT, StructType, fields_of, primitive_kinds_of

__all__ = [
    "CATALOG_MANAGED",
    "CHANGE_COLUMNS",
    "FEATURES",
    "TableFeature",
    "check_may_append",
    "check_may_change",
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

CATALOG_MANAGED = "catalogManaged"
"""The feature of tables whose commits a catalog ratifies. The catalog adds it when it creates a table."""

CHANGE_COLUMNS = frozenset({"_change_type", "_commit_version", "_commit_timestamp"})


class Unsupported(NamedTuple):
    """A construct of a table that prevents a write, as a message names it, and its column if it has one."""

    name: str
    column: str | None = None


FindUnsupported = Callable[[Mapping[str, str], StructType], Iterator[Unsupported]]


def _find_nothing(configuration: Mapping[str, str], schema: StructType) -> Iterator[Unsupported]:
    return iter(())


def _find_identity_columns(configuration: Mapping[str, str], schema: StructType) -> Iterator[Unsupported]:
    for path, field in fields_of(schema):
        if any(key.startswith("delta.identity.") for key in field.metadata):
            column = ".".join(path)
            yield Unsupported(f"the identity column {column!r}", column)


def _find_change_columns(configuration: Mapping[str, str], schema: StructType) -> Iterator[Unsupported]:
    if properties.get(configuration, properties.ENABLE_CHANGE_DATA_FEED):
        for name in (each.name for each in schema.fields if each.name.lower() in CHANGE_COLUMNS):
            yield Unsupported(f"the column {name!r}, whose name the change data feed reserves", name)


def _find_variant_defaults(configuration: Mapping[str, str], schema: StructType) -> Iterator[Unsupported]:
    for path, field in fields_of(schema):
        default = field.metadata.get("CURRENT_DEFAULT", "NULL")
        if field.type == VARIANT and str(default).strip().upper() != "NULL":
            column = ".".join(path)
            yield Unsupported(f"the default {default} of the Variant column {column!r}", column)


def _find_collations(configuration: Mapping[str, str], schema: StructType) -> Iterator[Unsupported]:
    for path, field in fields_of(schema):
        if "__COLLATIONS" in field.metadata:
            column = ".".join(path)
            yield Unsupported(f"the collation of the column {column!r}", column)


def _find_property(prop: TableProperty[bool]) -> FindUnsupported:
    def find(configuration: Mapping[str, str], schema: StructType) -> Iterator[Unsupported]:
        if properties.get(configuration, prop):
            yield Unsupported(f"the table property {prop.name}=true")

    return find


@dataclass(frozen=True)
class TableFeature:
    """A table feature, and how far this library supports it.

    `enabled_by` is the property that requires the feature if its value is not the default. `properties_from`
    is the prefix of properties that require it, `needed_by` are the primitive types that require it,
    `needed_by_key` is the prefix of keys in the metadata of columns, and `needed_by_domain` that of domains.
    `find_unsupported` yields the constructs of a table that prevent new data files although the feature does
    not, and `find_unsupported_rows` those that only prevent new rows, because rows that exist have values.
    `is_append_only` means that rows may not be removed or changed if `enabled_by` is true.
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
    needed_by_key: str | None = None
    needed_by_domain: str | None = None
    can_read: bool = True
    can_append: bool = True
    find_unsupported: FindUnsupported = _find_nothing
    find_unsupported_rows: FindUnsupported = _find_nothing
    is_append_only: bool = False


VARIANT_TYPE = TableFeature("variantType", is_reader_writer=True, needed_by=("variant",))
VARIANT_SHREDDING = TableFeature(
    "variantShredding",
    is_reader_writer=True,
    requires=("variantType",),
    enabled_by=properties.ENABLE_VARIANT_SHREDDING,
)
# Not in PROTOCOL.md yet. Delta's kernels store the values as WKB, like Parquet.
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
    TableFeature("invariants", legacy_writer_version=2, needed_by_key="delta.invariants"),
    TableFeature("checkConstraints", legacy_writer_version=3, properties_from="delta.constraints."),
    TableFeature(
        "changeDataFeed",
        legacy_writer_version=4,
        enabled_by=properties.ENABLE_CHANGE_DATA_FEED,
        find_unsupported=_find_change_columns,
    ),
    TableFeature("generatedColumns", legacy_writer_version=4, needed_by_key="delta.generationExpression"),
    TableFeature(
        "columnMapping",
        is_reader_writer=True,
        legacy_reader_version=2,
        legacy_writer_version=5,
        enabled_by=properties.COLUMN_MAPPING_MODE,
    ),
    TableFeature(
        "identityColumns",
        legacy_writer_version=6,
        needed_by_key="delta.identity.",
        find_unsupported_rows=_find_identity_columns,
    ),
    VARIANT_TYPE,
    TableFeature("variantType-preview", is_reader_writer=True, preview_of="variantType"),
    VARIANT_SHREDDING,
    TableFeature("variantShredding-preview", is_reader_writer=True, preview_of="variantShredding"),
    TableFeature("timestampNtz", is_reader_writer=True, needed_by=("timestamp_ntz",)),
    TableFeature("deletionVectors", is_reader_writer=True, enabled_by=properties.ENABLE_DELETION_VECTORS),
    TableFeature("v2Checkpoint", is_reader_writer=True, enabled_by=properties.CHECKPOINT_POLICY),
    TableFeature("vacuumProtocolCheck", is_reader_writer=True),
    TableFeature(
        "typeWidening",
        is_reader_writer=True,
        enabled_by=properties.ENABLE_TYPE_WIDENING,
        needed_by_key="delta.typeChanges",
    ),
    TableFeature("typeWidening-preview", is_reader_writer=True, preview_of="typeWidening"),
    TableFeature("inCommitTimestamp", enabled_by=properties.ENABLE_IN_COMMIT_TIMESTAMPS),
    TableFeature("inCommitTimestamp-preview", preview_of="inCommitTimestamp"),
    TableFeature("domainMetadata", needed_by_domain=""),
    TableFeature(
        "rowTracking",
        requires=("domainMetadata",),
        enabled_by=properties.ENABLE_ROW_TRACKING,
        needed_by_domain=ROW_TRACKING_DOMAIN,
    ),
    TableFeature("clustering", requires=("domainMetadata",), needed_by_domain=CLUSTERING_DOMAIN),
    TableFeature(
        "allowColumnDefaults", needed_by_key="CURRENT_DEFAULT", find_unsupported_rows=_find_variant_defaults
    ),
    TableFeature("checkpointProtection"),
    TableFeature(
        "icebergCompatV1",
        requires=("columnMapping",),
        find_unsupported=_find_property(properties.ENABLE_ICEBERG_COMPAT_V1),
    ),
    TableFeature(
        "icebergCompatV2",
        requires=("columnMapping",),
        find_unsupported=_find_property(properties.ENABLE_ICEBERG_COMPAT_V2),
    ),
    TableFeature("icebergCompatV3", can_append=False),
    TableFeature("icebergWriterCompatV1", can_append=False),
    TableFeature("icebergWriterCompatV3", can_append=False),
    TableFeature("materializePartitionColumns", can_append=False),
    # Not in PROTOCOL.md yet: constraints and bounds of text depend on its collation.
    TableFeature(
        "collations",
        needed_by_key="__COLLATIONS",
        can_append=False,
        find_unsupported=_find_collations,
    ),
    GEOSPATIAL,
    TableFeature("geospatial-dev", is_reader_writer=True, preview_of="geospatial", can_append=False),
    TableFeature(CATALOG_MANAGED, is_reader_writer=True),
    TableFeature(
        "catalogOwned-preview",
        is_reader_writer=True,
        preview_of=CATALOG_MANAGED,
        can_read=False,
        can_append=False,
    ),
)

FEATURES: Mapping[str, TableFeature] = {feature.name: feature for feature in _ROWS}


def supported_features(protocol: Protocol) -> frozenset[str]:
    """Return the names of all features that `protocol` supports, including those of legacy versions."""
    return _reader_features(protocol) | _writer_features(protocol)


def supports(protocol: Protocol, name: str) -> bool:
    """Return whether `protocol` supports the feature `name`, under this name or that of its preview."""
    return _has(supported_features(protocol), name)


def supports_shredding(protocol: Protocol) -> bool:
    """Return whether `variantShredding` or its preview is in both lists of features."""
    return all(
        _has(features, VARIANT_SHREDDING.name)
        for features in (_reader_features(protocol), _writer_features(protocol))
    )


def enables_shredding(protocol: Protocol, configuration: Mapping[str, str]) -> bool:
    """Return whether new files may be shredded: the feature is supported and the property is true."""
    enabled = properties.get(configuration, properties.ENABLE_VARIANT_SHREDDING)
    return enabled and supports_shredding(protocol)


def check_may_read(protocol: Protocol, schema: StructType, table: str) -> None:
    """Raise an error unless this library can read `table` correctly.

    Raises UnsupportedFeatureError, which names each unknown reader feature, and ProtocolError if the protocol
    contradicts itself or lacks the feature of a Variant or geospatial column.
    """
    if protocol.min_reader_version > READER_FEATURES_VERSION:
        raise UnsupportedFeatureError(
            f"{table} requires reader version {protocol.min_reader_version}; this version supports up to 3",
            table=table,
        )
    unknown = [name for name in sorted(_reader_features(protocol)) if not _can_read(name)]
    if unknown:
        raise UnsupportedFeatureError(
            f"cannot read {table} because this version does not support its table features "
            f"{', '.join(unknown)}",
            table=table,
        )
    _check_lists(protocol, table)
    for feature in (VARIANT_TYPE, GEOSPATIAL):
        _check_type_feature(feature, protocol, schema, table)


def check_may_append(
    protocol: Protocol, configuration: Mapping[str, str], schema: StructType, table: str
) -> None:
    """Raise an error unless this library can append to `table` correctly; includes `check_may_commit`.

    Raises UnsupportedFeatureError, which names each constraint and property that is not supported.
    """
    check_may_commit(protocol, configuration, schema, table)
    finders = (find for row in _ROWS for find in (row.find_unsupported, row.find_unsupported_rows))
    _check_supported("add rows to", finders, configuration, schema, table)


def _check_supported(
    operation: str,
    finders: Iterable[FindUnsupported],
    configuration: Mapping[str, str],
    schema: StructType,
    table: str,
) -> None:
    unsupported = [each for find in finders for each in find(configuration, schema)]
    if unsupported:
        names = ", ".join(each.name for each in unsupported)
        raise UnsupportedFeatureError(
            f"cannot {operation} {table} because this version does not support {names}",
            table=table,
            column=unsupported[0].column,
        )


def check_may_commit(
    protocol: Protocol, configuration: Mapping[str, str], schema: StructType, table: str
) -> None:
    """Raise an error unless this library may commit to `table`, even without new rows.

    Raises UnsupportedFeatureError, which names each unknown writer feature, and ProtocolError if a property
    or a type requires a feature that the protocol lacks.
    """
    check_may_read(protocol, schema, table)
    if protocol.min_writer_version > WRITER_FEATURES_VERSION:
        raise UnsupportedFeatureError(
            f"{table} requires writer version {protocol.min_writer_version}; this version supports up to 7",
            table=table,
        )
    unknown = [name for name in sorted(_writer_features(protocol)) if not _can_append(name)]
    if unknown:
        raise UnsupportedFeatureError(
            f"cannot write to {table} because this version does not support its table features "
            f"{', '.join(unknown)}",
            table=table,
        )
    for feature in _ROWS:
        _check_type_feature(feature, protocol, schema, table)
        _check_property_feature(feature, protocol, configuration, table)


def check_may_rewrite(
    protocol: Protocol,
    configuration: Mapping[str, str],
    schema: StructType,
    table: str,
    *,
    removes_rows: bool,
) -> None:
    """Raise an error unless this library can rewrite files of `table`; includes `check_may_commit`.

    `removes_rows` means that rows are removed or changed. Raises UnsupportedFeatureError, which names each
    construct that is not supported, or the table property that forbids to change rows.
    """
    check_may_commit(protocol, configuration, schema, table)
    finders = (row.find_unsupported for row in _ROWS)
    _check_supported("rewrite files of", finders, configuration, schema, table)
    forbidding = [
        f"{row.enabled_by.name}=true"
        for row in _ROWS
        if row.enabled_by is not None and row.is_append_only and _is_enabled(row, configuration)
    ]
    if removes_rows and forbidding:
        raise UnsupportedFeatureError(
            f"cannot rewrite rows of {table} because it sets {', '.join(forbidding)}", table=table
        )


def check_may_restore(configuration: Mapping[str, str], schema: StructType, table: str) -> None:
    """Raise UnsupportedFeatureError if files of an earlier version cannot be added to `table` again.

    Constraints on single rows are not checked: they were when the rows were written.
    """
    finders = (
        _find_identity_columns,
        *(FEATURES[name].find_unsupported for name in ("icebergCompatV1", "icebergCompatV2")),
    )
    _check_supported("restore", finders, configuration, schema, table)


def check_may_change(columns: Collection[str], schema: StructType, table: str) -> None:
    """Raise UnsupportedFeatureError if one of the columns, or its type, is final: an identity column."""
    for identity in _find_identity_columns({}, schema):
        if identity.column in columns:
            raise UnsupportedFeatureError(
                f"cannot change {identity.name} of {table}: leave it out of the changed columns",
                table=table,
                column=identity.column,
            )


def new_table_protocol(schema: StructType, configuration: Mapping[str, str]) -> Protocol:
    """Return the lowest protocol of a new table that has the features that schema and properties require."""
    return with_needed_features(Protocol(min_reader_version=1, min_writer_version=2), schema, configuration)


def with_needed_features(
    protocol: Protocol, schema: StructType, configuration: Mapping[str, str]
) -> Protocol:
    """Return `protocol` with the features that schema and properties require, itself if it has them all.

    Its own features are kept: a preview counts as the feature, and legacy versions become the features that
    they imply (PROTOCOL.md, "Table Features").
    """
    present, types = supported_features(protocol), primitive_kinds_of(schema)
    needed = [row.name for row in _ROWS if _is_needed(row, types, configuration)]
    return with_features(protocol, [name for name in needed if not _has(present, name)])


def with_features(protocol: Protocol, names: Collection[str]) -> Protocol:
    """Return `protocol` with features of FEATURES and those that they require, itself if it has them all.

    Its own features are kept: legacy versions become the features that they imply. Raises
    UnsupportedFeatureError if the table would become one that a catalog manages.
    """
    missing = frozenset(names) - supported_features(protocol)
    if CATALOG_MANAGED in missing:
        raise UnsupportedFeatureError(
            f"cannot add the table feature {CATALOG_MANAGED} because a catalog must create the table with it"
        )
    required = {required for name in missing for required in FEATURES[name].requires}
    added = (missing | required) - supported_features(protocol)
    return _with_added(protocol, added) if added else protocol


def with_features_of(protocol: Protocol, other: Protocol) -> Protocol:
    """Return `protocol` with the features of `other`, which are all known, itself if it has them all."""
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


def _check_lists(protocol: Protocol, table: str) -> None:
    reader_version, writer_version = protocol.min_reader_version, protocol.min_writer_version
    reads_lists = reader_version >= READER_FEATURES_VERSION
    writes_lists = writer_version >= WRITER_FEATURES_VERSION
    if reads_lists and not writes_lists:
        raise ProtocolError(
            f"{table} has reader version {reader_version}, which requires writer version 7, "
            f"but writer version {writer_version}",
            table=table,
            rule="T5",
        )
    for name, listed, features in (
        ("readerFeatures", reads_lists, protocol.reader_features),
        ("writerFeatures", writes_lists, protocol.writer_features),
    ):
        if listed and features is None:
            raise ProtocolError(f"the protocol of {table} has no {name}", table=table, rule="T5")
        if not listed and features:
            raise ProtocolError(
                f"the protocol of {table} has {name}, but its version is too low for them",
                table=table,
                rule="T5",
            )
    _check_one_sided(protocol, table)


def _check_one_sided(protocol: Protocol, table: str) -> None:
    reader, writer = _reader_features(protocol), _writer_features(protocol)
    for name in sorted(frozenset(protocol.reader_features or ()) - writer):
        raise ProtocolError(
            f"the protocol of {table} lists {name} in readerFeatures but not in writerFeatures",
            table=table,
            rule="T5",
        )
    for name in sorted(writer - reader):
        if name in FEATURES and FEATURES[name].is_reader_writer:
            raise ProtocolError(
                f"the protocol of {table} lists {name} in writerFeatures but not in readerFeatures",
                table=table,
                rule="T5",
            )


def _check_type_feature(feature: TableFeature, protocol: Protocol, schema: StructType, table: str) -> None:
    needing = sorted(primitive_kinds_of(schema).intersection(feature.needed_by))
    if needing and not supports(protocol, feature.name):
        raise ProtocolError(
            f"{table} has columns of type {', '.join(needing)}, "
            f"but its protocol lacks the feature {feature.name}",
            table=table,
            rule="T4" if feature is VARIANT_TYPE else None,
        )


def _check_property_feature(
    feature: TableFeature, protocol: Protocol, configuration: Mapping[str, str], table: str
) -> None:
    prop = feature.enabled_by
    if prop is None or not _is_enabled(feature, configuration) or supports(protocol, feature.name):
        return
    raise ProtocolError(
        f"{table} sets {prop.name}={configuration[prop.name]}, "
        f"but its protocol lacks the feature {feature.name}: add the feature or unset the property",
        table=table,
        rule="H4",
    )
