"""Table features: which of them a protocol requires, and which of them this library supports.

A protocol *supports* a feature that it lists or that its legacy version implies. A feature is *enabled* if
its table property is also set (PROTOCOL.md, "Table Features").
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..errors import ProtocolError, UnsupportedFeatureError
from . import properties
from .actions import CLUSTERING_DOMAIN, ROW_TRACKING_DOMAIN, Protocol
from .identity_columns import find_identities
from .properties import TableProperty
from .types import (
    DEFAULT,
    GENERATION_EXPRESSION,
    IDENTITY,
    INVARIANTS,
    TYPE_CHANGES,
    StructType,
    fields_of,
    primitive_kinds_of,
    variant_defaults,
)

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


def _find_unassignable(configuration: Mapping[str, str], schema: StructType) -> Iterator[Unsupported]:
    for column, identity in find_identities(schema):
        if identity is None:
            yield Unsupported(f"the identity column {column!r}, whose definition is invalid", column)


def _find_change_columns(configuration: Mapping[str, str], schema: StructType) -> Iterator[Unsupported]:
    if properties.get(configuration, properties.ENABLE_CHANGE_DATA_FEED):
        for name in (each.name for each in schema.fields if each.name.lower() in CHANGE_COLUMNS):
            yield Unsupported(f"the column {name!r}, whose name the change data feed reserves", name)


def _find_variant_defaults(configuration: Mapping[str, str], schema: StructType) -> Iterator[Unsupported]:
    for column, default in variant_defaults(schema):
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

    @property
    def base_name(self) -> str:
        """Return the stable name of the feature if this row is its preview, else its name."""
        return self.preview_of or self.name

    @property
    def lowest_reader_version(self) -> int:
        return self.legacy_reader_version or (READER_FEATURES_VERSION if self.is_reader_writer else 1)


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
        "appendOnly", legacy_writer_version=2, enabled_by=properties.APPEND_ONLY, is_append_only=True
    ),
    TableFeature("invariants", legacy_writer_version=2, needed_by_key=INVARIANTS),
    TableFeature("checkConstraints", legacy_writer_version=3, properties_from=properties.CONSTRAINT),
    TableFeature(
        "changeDataFeed",
        legacy_writer_version=4,
        enabled_by=properties.ENABLE_CHANGE_DATA_FEED,
        find_unsupported=_find_change_columns,
    ),
    TableFeature("generatedColumns", legacy_writer_version=4, needed_by_key=GENERATION_EXPRESSION),
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
        needed_by_key=IDENTITY,
        find_unsupported_rows=_find_unassignable,
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
        needed_by_key=TYPE_CHANGES,
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
    TableFeature("allowColumnDefaults", needed_by_key=DEFAULT, find_unsupported_rows=_find_variant_defaults),
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
    TableFeature("materializePartitionColumns", enabled_by=properties.ENABLE_MATERIALIZE_PARTITION_COLUMNS),
    # Not in PROTOCOL.md yet: constraints and bounds of text depend on its collation.
    TableFeature(
        "collations", needed_by_key="__COLLATIONS", can_append=False, find_unsupported=_find_collations
    ),
    TableFeature("collations-preview", preview_of="collations", can_append=False),
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
    return reader_features(protocol) | writer_features(protocol)


def supports(protocol: Protocol, name: str) -> bool:
    """Return whether `protocol` supports the feature `name`, under this name or that of its preview."""
    return _has(supported_features(protocol), name)


def supports_shredding(protocol: Protocol) -> bool:
    """Return whether `variantShredding` or its preview is in both lists of features."""
    return all(
        _has(features, VARIANT_SHREDDING.name)
        for features in (reader_features(protocol), writer_features(protocol))
    )


def new_table_protocol(schema: StructType, configuration: Mapping[str, str]) -> Protocol:
    """Return the lowest protocol of a new table that has the features that schema and properties require."""
    protocol = with_needed_features(
        Protocol(min_reader_version=1, min_writer_version=2), schema, configuration
    )
    keys = {key for _, field in fields_of(schema) for key in field.metadata}
    return with_features(
        protocol, [row.name for row in _ROWS if any(key.startswith(row.needed_by_key or " ") for key in keys)]
    )


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
    features = reader_features(protocol) | writer_features(protocol) | added
    reader_writer = frozenset(
        name for name in features if name in FEATURES and FEATURES[name].is_reader_writer
    )
    listed_reader = protocol.min_reader_version >= READER_FEATURES_VERSION
    if added & reader_writer or listed_reader:
        return Protocol(
            min_reader_version=READER_FEATURES_VERSION,
            min_writer_version=WRITER_FEATURES_VERSION,
            reader_features=_in_order(protocol.reader_features, reader_features(protocol) | reader_writer),
            writer_features=_in_order(protocol.writer_features, features),
        )
    return Protocol(
        min_reader_version=protocol.min_reader_version,
        min_writer_version=WRITER_FEATURES_VERSION,
        writer_features=_in_order(protocol.writer_features, features),
    )


def without_feature(protocol: Protocol, name: str, added: Collection[str] = ()) -> Protocol:
    """Return the lowest protocol that has the features of `protocol` and `added`, but not `name`.

    Features that are exactly those of legacy versions become these versions, as in Delta on Spark. All
    features are known.
    """
    remaining = (supported_features(protocol) | frozenset(added)) - {name}
    rows = [FEATURES[each] for each in remaining]
    reader = max((row.lowest_reader_version for row in rows), default=1)
    writer = max((row.legacy_writer_version or WRITER_FEATURES_VERSION for row in rows), default=1)
    legacy = Protocol(min_reader_version=reader, min_writer_version=writer)
    if writer < WRITER_FEATURES_VERSION and supported_features(legacy) == remaining:
        return legacy
    reader_writer = frozenset(row.name for row in rows if row.is_reader_writer)
    return Protocol(
        min_reader_version=reader,
        min_writer_version=WRITER_FEATURES_VERSION,
        reader_features=(
            _in_order(protocol.reader_features, reader_writer) if reader >= READER_FEATURES_VERSION else None
        ),
        writer_features=_in_order(protocol.writer_features, remaining),
    )


def has_other_name(protocol: Protocol, name: str) -> bool:
    """Return whether `protocol` also has the feature under its stable name or that of its preview."""
    return _has(supported_features(protocol) - {name}, FEATURES[name].base_name)


def dependent_features(protocol: Protocol, name: str) -> list[str]:
    """Return the features of `protocol` that require the feature `name`."""
    base = FEATURES[name].base_name
    present = supported_features(protocol)
    return sorted(each for each in present if base in FEATURES[FEATURES[each].base_name].requires)


def find_uses(
    name: str, schema: StructType, configuration: Mapping[str, str], domains: Collection[str]
) -> Iterator[str]:
    """Yield the parts of a table that require the feature `name`: properties, columns and domains."""
    feature = FEATURES[FEATURES[name].base_name]
    prop, beginning, key = feature.enabled_by, feature.properties_from, feature.needed_by_key
    if prop is not None and is_enabled(feature, configuration):
        yield f"the table property {prop.name}={configuration[prop.name]}"
    if beginning is not None:
        found = (each for each in configuration if each.lower().startswith(beginning))
        yield from (f"the table property {each}" for each in found)
    for path, field in fields_of(schema):
        column = f"the column {'.'.join(path)!r}"
        if not isinstance(field.type, StructType):
            kinds = sorted(primitive_kinds_of(field.type).intersection(feature.needed_by))
            yield from (f"{column} of type {kind}" for kind in kinds)
        if key is not None:
            yield from (f"{each} of {column}" for each in field.metadata if each.startswith(key))
    if feature.needed_by_domain is not None:
        beginning = feature.needed_by_domain
        yield from (f"the metadata domain {each}" for each in domains if each.startswith(beginning))


def _in_order(listed: tuple[str, ...] | None, features: frozenset[str]) -> tuple[str, ...]:
    before = tuple(name for name in listed or () if name in features)
    return (*before, *(name for name in FEATURES if name in features and name not in before))


def _is_needed(feature: TableFeature, types: frozenset[str], configuration: Mapping[str, str]) -> bool:
    beginning = feature.properties_from
    is_named = beginning is not None and any(name.lower().startswith(beginning) for name in configuration)
    return is_named or not types.isdisjoint(feature.needed_by) or is_enabled(feature, configuration)


def is_enabled(feature: TableFeature, configuration: Mapping[str, str]) -> bool:
    """Return whether the property of the feature differs from its default."""
    prop = feature.enabled_by
    return prop is not None and properties.get(configuration, prop) != prop.default


def _has(features: frozenset[str], name: str) -> bool:
    return name in features or any(row.name in features for row in _ROWS if row.preview_of == name)


def reader_features(protocol: Protocol) -> frozenset[str]:
    """Return the names of the features that a reader must support."""
    if protocol.min_reader_version >= READER_FEATURES_VERSION:
        return frozenset(protocol.reader_features or ())
    version = protocol.min_reader_version
    return frozenset(row.name for row in _ROWS if (row.legacy_reader_version or version + 1) <= version)


def writer_features(protocol: Protocol) -> frozenset[str]:
    """Return the names of the features that a writer must support."""
    if protocol.min_writer_version >= WRITER_FEATURES_VERSION:
        return frozenset(protocol.writer_features or ())
    return frozenset(
        row.name
        for row in _ROWS
        if row.legacy_writer_version is not None
        and row.legacy_writer_version <= protocol.min_writer_version
        and (row.legacy_reader_version or 1) <= protocol.min_reader_version
    )


def check_lists(protocol: Protocol, table: str) -> None:
    """Raise ProtocolError if the versions and the lists of features contradict each other."""
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
    reader, writer = reader_features(protocol), writer_features(protocol)
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
