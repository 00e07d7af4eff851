"""The configuration of a table: its protocol, metadata and schema, and what they permit.

A protocol *supports* a feature that it lists or that its legacy version implies. A feature is *enabled* if
its table property is also set (PROTOCOL.md, "Table Features").
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TypeAlias, TypeVar

from ..errors import ProtocolError, SchemaError, UnsupportedFeatureError
from ..protocol import features, properties
from ..variant.moments import UTC
from .actions import Metadata, Protocol
from .features import FEATURES, FindUnsupported, TableFeature
from .identity_columns import find_identities
from .properties import ColumnMappingMode, TableProperty
from .schema.column_mapping import physical_name, physical_schema
from .schema.evolution import check_type_changes
from .schema.json_text import parse as parse_schema
from .schema.rules import check_consistent, remove_void
from .types import DataType, StructField, StructType, leaf_columns, primitive_kinds_of, resolve

T = TypeVar("T")


@dataclass(frozen=True)
class TableConfiguration:
    """A table without its files, as it is or as it will be after a commit.

    `schema` is that of the metadata. `timezone` is the time zone of local times in SQL text, and of partition
    values of timestamps without a time zone. `extra_columns` are columns that new data files have in addition
    to those of the table, with these names.
    """

    uri: str
    protocol: Protocol
    metadata: Metadata
    schema: StructType
    timezone: str = UTC
    extra_columns: tuple[StructField, ...] = ()

    @classmethod
    def of(cls, uri: str, protocol: Protocol, metadata: Metadata) -> TableConfiguration:
        """Return the configuration that a log records; raises what `parse_schema` raises for the schema."""
        return cls(uri, protocol, metadata, _schema_of(metadata.schema_string))

    @property
    def properties(self) -> Mapping[str, str]:
        return self.metadata.configuration

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Return the logical names of the partition columns, in order."""
        return self.metadata.partition_columns

    @property
    def mapping_mode(self) -> ColumnMappingMode:
        return self.get(properties.COLUMN_MAPPING_MODE)

    @property
    def row_columns(self) -> StructType:
        return StructType((*self.schema.fields, *self.extra_columns))

    @property
    def stored_partition_columns(self) -> dict[str, DataType]:
        """Return the types of the partition columns in their order, by the names in `partitionValues`."""
        by_name = {field.name: field for field in self.schema.fields}
        fields = [by_name[name] for name in self.partition_columns]
        return {physical_name(field, self.mapping_mode): field.type for field in fields}

    @property
    def data_columns(self) -> StructType:
        """Return the columns that files store, which are not of type void.

        Partition columns are among them if the table has `materializePartitionColumns` or its property
        `delta.writePartitionColumnsToParquet` is true. Raises SchemaError if no column remains.
        """
        is_stored = self.supports("materializePartitionColumns") or self.get(
            properties.WRITE_PARTITION_COLUMNS
        )
        partitions = () if is_stored else self.partition_columns
        return remove_void(
            StructType(tuple(field for field in self.schema.fields if field.name not in partitions))
        )

    @property
    def physical_schema(self) -> StructType:
        """Return the schema with the names in data files; raises SchemaError for a column without one."""
        return physical_schema(self.schema, self.mapping_mode)

    @property
    def stats_columns(self) -> tuple[_ColumnPath, ...]:
        """Return the leaf columns that get statistics, each as its chain of fields from the top."""
        return stats_columns(self.schema, self.properties, self.partition_columns)

    @property
    def stored_stats_columns(self) -> dict[tuple[str, ...], DataType]:
        """Return the types of the leaf columns that get statistics, by the paths of their names in files."""
        mode = self.mapping_mode
        return {
            tuple(physical_name(field, mode) for field in chain): chain[-1].type
            for chain in self.stats_columns
        }

    def get(self, prop: TableProperty[T]) -> T:
        """Return the value of a property or its default; raises ProtocolError if its text is invalid."""
        return properties.get(self.properties, prop)

    def supports(self, feature: str) -> bool:
        """Return whether the protocol has the feature, under this name or that of its preview."""
        return features.supports(self.protocol, feature)

    def enables(self, feature: str) -> bool:
        """Return whether the protocol supports the feature, and its property is set."""
        return features.is_enabled(FEATURES[feature], self.properties) and self.supports(feature)

    @property
    def assigns_row_ids(self) -> bool:
        """Return whether a commit must assign row ids to the files that it adds."""
        suspended = self.get(properties.ROW_TRACKING_SUSPENDED)
        return self.supports("rowTracking") and (self.get(properties.ENABLE_ROW_TRACKING) or not suspended)

    @property
    def supports_shredding(self) -> bool:
        """Return whether `variantShredding` or its preview is in both lists of features."""
        return features.supports_shredding(self.protocol)

    @property
    def enables_shredding(self) -> bool:
        """Return whether new files may be shredded."""
        return self.get(properties.ENABLE_VARIANT_SHREDDING) and self.supports_shredding

    def check_may_read(self) -> None:
        """Raise an error unless this library can read the table correctly.

        Raises UnsupportedFeatureError, which names each unknown reader feature, ProtocolError if the protocol
        contradicts itself or lacks the feature of a Variant or geospatial column, and SchemaError for a
        schema that contradicts itself or the partition columns.
        """
        self._check_reader_features()
        check_consistent(self.schema, self.partition_columns)
        physical_schema(self.schema, self.mapping_mode)
        check_type_changes(self.schema)

    def check_may_commit(self) -> None:
        """Raise an error unless this library may commit to the table, even without new rows.

        Raises UnsupportedFeatureError, which names each unknown writer feature, and ProtocolError if a
        property or a type requires a feature that the protocol lacks.
        """
        self._check_reader_features()
        appendable = {name for name, feature in FEATURES.items() if feature.can_append}
        unknown = features.writer_features(self.protocol) - appendable
        self._check_version("writer", self.protocol.min_writer_version, features.WRITER_FEATURES_VERSION)
        self._check_unknown("write to", unknown)
        for feature in FEATURES.values():
            self._check_feature_of_types(feature)
            self._check_feature_of_property(feature)

    def check_may_append(self) -> None:
        """Raise an error unless this library can append to the table; includes `check_may_commit`.

        Raises UnsupportedFeatureError, which names each constraint and property that is not supported.
        """
        self.check_may_commit()
        rows = FEATURES.values()
        finders = (find for row in rows for find in (row.find_unsupported, row.find_unsupported_rows))
        self._check_supported("add rows to", finders)

    def check_may_rewrite(
        self, *, removes_rows: bool, adds_rows: bool = False, assigned: Collection[str] = ()
    ) -> None:
        """Raise an error unless this library can rewrite files of the table; includes `check_may_commit`.

        `removes_rows` means that rows are removed or changed, `adds_rows` that rows are inserted. `assigned`
        are the columns of rows of the table that get other values. Raises UnsupportedFeatureError, which
        names each construct that is not supported, or the property that forbids to change rows, and
        SchemaError for a Variant where Delta allows none.
        """
        if adds_rows:
            self.check_may_append()
        self.check_may_replace(removes_rows=removes_rows)
        self.check_may_change(assigned)
        check_consistent(self.schema, self.partition_columns)
        check_type_changes(self.schema)

    def check_may_replace(self, *, removes_rows: bool) -> None:
        """Raise the errors of `check_may_rewrite` that do not depend on the schema of stored rows."""
        self.check_may_commit()
        self._check_supported("rewrite files of", (row.find_unsupported for row in FEATURES.values()))
        forbidding = [
            f"{row.enabled_by.name}=true"
            for row in FEATURES.values()
            if row.enabled_by is not None and row.is_append_only and features.is_enabled(row, self.properties)
        ]
        if removes_rows and forbidding:
            raise UnsupportedFeatureError(
                f"cannot rewrite rows of {self.uri} because it sets {', '.join(forbidding)}", table=self.uri
            )

    def check_may_restore(self) -> None:
        """Raise UnsupportedFeatureError if files of an earlier version cannot be added to the table again.

        Constraints on single rows are not checked: they were when the rows were written.
        """
        compat = (FEATURES[name].find_unsupported for name in ("icebergCompatV1", "icebergCompatV2"))
        self._check_supported("restore", compat)

    def check_may_change(self, columns: Collection[str]) -> None:
        """Raise UnsupportedFeatureError if one of the columns, or its type, is final: an identity column."""
        for column, _ in find_identities(self.schema):
            if column in columns:
                raise UnsupportedFeatureError(
                    f"cannot change the identity column {column!r} of {self.uri}: leave it out",
                    table=self.uri,
                    column=column,
                )

    def _check_reader_features(self) -> None:
        readable = {name for name, feature in FEATURES.items() if feature.can_read}
        unknown = features.reader_features(self.protocol) - readable
        self._check_version("reader", self.protocol.min_reader_version, features.READER_FEATURES_VERSION)
        self._check_unknown("read", unknown)
        features.check_lists(self.protocol, self.uri)
        for feature in (features.VARIANT_TYPE, features.GEOSPATIAL):
            self._check_feature_of_types(feature)

    def _check_version(self, side: str, required: int, supported: int) -> None:
        if required > supported:
            raise UnsupportedFeatureError(
                f"{self.uri} requires {side} version {required}; this version supports up to {supported}",
                table=self.uri,
            )

    def _check_unknown(self, operation: str, unknown: Set[str]) -> None:
        if unknown:
            raise UnsupportedFeatureError(
                f"cannot {operation} {self.uri} because this version does not support its table features "
                f"{', '.join(sorted(unknown))}",
                table=self.uri,
            )

    def _check_supported(self, operation: str, finders: Iterable[FindUnsupported]) -> None:
        if self.get(properties.EXPORT) is not None:
            raise UnsupportedFeatureError(
                f"cannot {operation} {self.uri} because it was exported from another table: change that one "
                f"and export it again, or unset the table property {properties.EXPORT.name} of this one",
                table=self.uri,
            )
        unsupported = [each for find in finders for each in find(self.properties, self.schema)]
        if unsupported:
            names = ", ".join(each.name for each in unsupported)
            raise UnsupportedFeatureError(
                f"cannot {operation} {self.uri} because this version does not support {names}",
                table=self.uri,
                column=unsupported[0].column,
            )

    def _check_feature_of_types(self, feature: TableFeature) -> None:
        needing = sorted(primitive_kinds_of(self.schema).intersection(feature.needed_by))
        if needing and not self.supports(feature.name):
            raise ProtocolError(
                f"{self.uri} has columns of type {', '.join(needing)}, "
                f"but its protocol lacks the feature {feature.name}",
                table=self.uri,
                rule="T4" if feature is features.VARIANT_TYPE else None,
            )

    def _check_feature_of_property(self, feature: TableFeature) -> None:
        prop = feature.enabled_by
        if prop is None or not features.is_enabled(feature, self.properties) or self.supports(feature.name):
            return
        raise ProtocolError(
            f"{self.uri} sets {prop.name}={self.properties[prop.name]}, "
            f"but its protocol lacks the feature {feature.name}: add the feature or unset the property",
            table=self.uri,
            rule="H4",
        )


@lru_cache(maxsize=16)
def _schema_of(text: str) -> StructType:
    """Return the schema of a metaData action, which most commits do not change."""
    return parse_schema(text)


_ColumnPath: TypeAlias = tuple[StructField, ...]


def stats_columns(
    schema: StructType, configuration: Mapping[str, str], partition_columns: Collection[str] = ()
) -> tuple[_ColumnPath, ...]:
    """Return the leaf columns that get statistics, each as its chain of fields from the top, in schema order.

    A Variant, an array or a map is one leaf. `delta.dataSkippingStatsColumns` names the columns without
    regard to case, a struct for all columns in it. Without it, these are the first
    `delta.dataSkippingNumIndexedCols` leaves.
    """
    partitions = {name.lower() for name in partition_columns}
    data_fields = tuple(field for field in schema.fields if field.name.lower() not in partitions)
    leaves = leaf_columns(StructType(data_fields))
    named = properties.get(configuration, properties.DATA_SKIPPING_STATS_COLUMNS)
    if named is not None:
        wanted = {tuple(step.lower() for step in name) for name in named}
        return tuple(leaf for leaf in leaves if _is_within(leaf, wanted))
    number = properties.get(configuration, properties.DATA_SKIPPING_NUM_INDEXED_COLS)
    return tuple(leaves if number == -1 else islice(leaves, number))


def check_stats_columns(
    schema: StructType, configuration: Mapping[str, str], partition_columns: Collection[str], table: str
) -> None:
    """Raise SchemaError if `delta.dataSkippingStatsColumns` names a column that cannot have statistics.

    Its names must be columns of the schema, but not partition columns. Delta on Spark checks it too with
    each change of the metadata.
    """
    prop = properties.DATA_SKIPPING_STATS_COLUMNS
    partitions = {name.lower() for name in partition_columns}
    for path in properties.get(configuration, prop) or ():
        name = ".".join(path)
        try:
            resolve(schema, path)
        except SchemaError as error:
            message = f"{prop.name} names {name!r}: {error.message}; add it, or set the property without it"
            raise SchemaError(message, table=table, column=name) from error
        if path[0].lower() in partitions:
            raise SchemaError(
                f"{prop.name} names {path[0]!r}, but partition columns have no statistics: remove it",
                table=table,
                column=path[0],
            )


def _is_within(leaf: _ColumnPath, wanted: Collection[tuple[str, ...]]) -> bool:
    names = tuple(field.name.lower() for field in leaf)
    return any(names[:length] in wanted for length in range(1, len(names) + 1))
