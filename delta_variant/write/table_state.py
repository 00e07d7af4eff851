"""The state of a table after a write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from ..data_file.options import WriteOptions
from ..errors import SchemaError, ShreddingNotEnabledError, UnsupportedFeatureError
from ..log.snapshot import Snapshot
from ..protocol import features, properties
from ..protocol.actions import Metadata, Protocol
from ..protocol.properties import ColumnMappingMode
from ..protocol.schema.column_mapping import assign_column_mapping, physical_name
from ..protocol.schema.rules import remove_void
from ..protocol.statistics import Path
from ..protocol.types import VARIANT, StructField, StructType
from ..read.row_tracking import RowTracking
from ..variant.moments import UTC
from ..variant.shredding import ShreddingSchema
from .row_rules import RowRules

__all__ = [
    "TableState",
    "assign_column_ids",
    "restrict_to_table",
    "with_row_tracking_columns",
]


@dataclass(frozen=True)
class TableState:
    """The table after a write; `new_protocol` and `new_metadata` are None if they do not change."""

    protocol: Protocol
    metadata: Metadata
    columns: StructType
    new_protocol: Protocol | None = None
    new_metadata: Metadata | None = None
    extra_columns: tuple[StructField, ...] = ()
    """Columns that files have in addition to those of the table, with these names."""
    timezone: str = UTC
    """The time zone of local times in the SQL text of constraints and generated columns."""

    @classmethod
    def of(cls, snapshot: Snapshot) -> TableState:
        """Return the current state of a table."""
        return cls(snapshot.protocol, snapshot.metadata, snapshot.schema, timezone=snapshot.timezone)

    @property
    def mapping_mode(self) -> ColumnMappingMode:
        """Return the column mapping mode."""
        return properties.get(self.metadata.configuration, properties.COLUMN_MAPPING_MODE)

    def row_rules(self) -> RowRules:
        """Return the rules for new rows; raises UnsupportedFeatureError for unsupported expressions."""
        settings, partitions = self.metadata.configuration, self.metadata.partition_columns
        return RowRules.of(self.row_columns, settings, self.timezone, partitions)

    @property
    def row_columns(self) -> StructType:
        """Return the columns of rows to write."""
        return StructType((*self.columns.fields, *self.extra_columns))

    @property
    def data_columns(self) -> StructType:
        """Return the columns that files store: all except partition columns and columns of type void.

        Raises SchemaError if no column remains.
        """
        partitions = set(self.metadata.partition_columns)
        fields = tuple(field for field in self.columns.fields if field.name not in partitions)
        return remove_void(StructType(fields))


def assign_column_ids(
    columns: StructType, configuration: Mapping[str, str]
) -> tuple[StructType, dict[str, str]]:
    """Return columns with ids and physical names if the table maps columns, and the configuration to commit.

    The configuration records the greatest id (`delta.columnMapping.maxColumnId`).
    """
    settings = dict(configuration)
    if properties.get(settings, properties.COLUMN_MAPPING_MODE) == "none":
        return columns, settings
    greatest = properties.get(settings, properties.COLUMN_MAPPING_MAX_COLUMN_ID) or 0
    columns, greatest = assign_column_mapping(columns, greatest, new_uuid=lambda: str(uuid4()))
    settings[properties.COLUMN_MAPPING_MAX_COLUMN_ID.name] = str(greatest)
    return columns, settings


def restrict_to_table(options: WriteOptions, state: TableState, where: str) -> WriteOptions:
    """Return options with the file properties of a table, without shredding and statistics that it excludes.

    Files are shredded only if the table enables variantShredding, and have Variant bounds only if it supports
    the feature (PROTOCOL.md, "Writer Requirements for Variant Shredding", "Variant Statistics"). The files of
    a table for readers without shredding have no annotation either. Schemas by the names of columns are then
    those of paths in files. `where` is the table's URI. Raises ShreddingNotEnabledError if the options have
    an explicit shredding schema, SchemaError if they have one for another column than a Variant,
    UnsupportedFeatureError if they ask for files whose readers do not open the table.
    """
    options = _with_schemas(options, state, where)
    settings, files = state.metadata.configuration, options.files
    if files.compression is None:
        files = replace(files, compression=properties.get(settings, properties.COMPRESSION_CODEC))
    if not features.supports_shredding(state.protocol):
        files = replace(files, max_variant_stats_paths=0)
    elif files.compatibility == "unshredded":
        raise UnsupportedFeatureError(
            f"cannot write {where} for readers without shredding because its protocol has the feature "
            "variantShredding: write a new table with compatibility='unshredded'",
            table=where,
        )
    is_unshredded = properties.get(settings, properties.COMPATIBILITY) == "unshredded"
    if is_unshredded or files.compatibility == "unshredded":
        files = replace(files, annotate=False)
    page_version = properties.get(settings, properties.PARQUET_FORMAT_VERSION)
    options = replace(options, files=files, page_version=page_version)
    if (
        features.supports_shredding(state.protocol)
        and properties.get(settings, properties.ENABLE_VARIANT_SHREDDING)
        and not is_unshredded
    ):
        return options
    if isinstance(options.shredding, ShreddingSchema) or options.schemas:
        raise ShreddingNotEnabledError(
            f"{where} does not enable variantShredding: set its property "
            f"{properties.ENABLE_VARIANT_SHREDDING.name}=true, or do not shred",
            table=where,
            remedies=(("shredding", None),),
        )
    return replace(options, shredding=None)


def _with_schemas(options: WriteOptions, state: TableState, where: str) -> WriteOptions:
    """Return options that infer the schemas of all columns but those that `shredding` names."""
    shredding: Any = options.shredding
    if not isinstance(shredding, Mapping) or not any(isinstance(name, str) for name in shredding):
        return options
    variants = {each.name: each for each in state.columns.fields if each.type == VARIANT}
    schemas: dict[Path, ShreddingSchema] = {}
    for name, schema in shredding.items():
        if name not in variants:
            raise SchemaError(
                f"shredding: expected the names of Variant columns, got {name!r}; those of {where} are "
                f"{', '.join(variants) or 'none'}",
                column=name,
                table=where,
            )
        schemas[(physical_name(variants[name], state.mapping_mode),)] = schema
    return replace(options, shredding="infer", schemas=schemas)


def with_row_tracking_columns(state: TableState, tracking: RowTracking | None) -> TableState:
    """Return a state whose files also store the row ids and commit versions of moved rows."""
    return state if tracking is None else replace(state, extra_columns=tracking.columns)
