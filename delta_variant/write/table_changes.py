"""The table after a write: created, appended to, or overwritten."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Literal
from uuid import uuid4

import msgspec

from ..errors import SchemaError, UnsupportedFeatureError
from ..log.commit_context import now
from ..log.snapshot import Snapshot
from ..protocol import features, properties
from ..protocol.actions import CLUSTERING_DOMAIN, Format, Metadata
from ..protocol.identity_columns import advance_identities, explicit_identities
from ..protocol.schema.column_mapping import assign_column_mapping
from ..protocol.schema.evolution import find_widenings, widen_type
from ..protocol.schema.evolution import merge as merge_schemas
from ..protocol.schema.json_text import to_json as schema_to_json
from ..protocol.schema.rules import check_consistent, check_partition_columns
from ..protocol.schema.rules import check_new as check_new_schema
from ..protocol.table_configuration import TableConfiguration, check_stats_columns
from ..protocol.types import VARIANT, DataType, StructField, StructType
from .stored_sql import check_independent, check_read_columns_stay


def create(
    columns: StructType,
    partition_by: tuple[str, ...] | None,
    configuration: Mapping[str, str] | None,
    name: str | None,
    description: str | None,
    enable_shredding: bool,
    uri: str,
) -> TableConfiguration:
    """Return a new table; `uri` is its location.

    Raises SchemaError and ProtocolError for an invalid schema or configuration, UnsupportedFeatureError for
    a table that this version cannot write.
    """
    settings = dict(configuration or {})
    is_unshredded = properties.get(settings, properties.COMPATIBILITY) == "unshredded"
    if enable_shredding and not is_unshredded and _is_shredded(columns):
        settings.setdefault(properties.ENABLE_VARIANT_SHREDDING.name, "true")
    properties.check_new(settings)
    if properties.get(settings, properties.ENABLE_ROW_TRACKING):
        settings = {**name_row_id_columns(), **settings}
    mode = properties.get(settings, properties.COLUMN_MAPPING_MODE)
    check_new_schema(columns, mode=mode)
    partitions = check_partition_columns(columns, partition_by or ())
    check_stats_columns(columns, settings, partitions, uri)
    columns, settings = _assign_column_ids(columns, settings)
    metadata = Metadata(
        id=str(uuid4()),
        name=name,
        description=description,
        format=Format(provider="parquet", options={}),
        schema_string=schema_to_json(columns),
        partition_columns=partitions,
        configuration=settings,
        created_time=now(),
    )
    protocol = features.new_table_protocol(columns, settings)
    table = TableConfiguration(uri, protocol, metadata, columns)
    table.check_may_append()
    return table


def name_row_id_columns() -> dict[str, str]:
    """Return properties with new names of the columns that row tracking adds to data files."""
    return {
        properties.MATERIALIZED_ROW_ID_COLUMN_NAME.name: f"_row-id-col-{uuid4()}",
        properties.MATERIALIZED_ROW_COMMIT_VERSION_COLUMN_NAME.name: f"_row-commit-version-col-{uuid4()}",
    }


def _is_shredded(data_type: DataType) -> bool:
    """Return whether a write can shred values of the type: Variants that are not in arrays or maps."""
    if isinstance(data_type, StructType):
        return any(_is_shredded(field.type) for field in data_type.fields)
    return data_type == VARIANT


def extend(
    table: TableConfiguration,
    columns: StructType,
    partition_by: tuple[str, ...] | None,
    schema_mode: Literal["merge"] | None,
) -> TableConfiguration:
    """Return an existing table after an append, with columns that the data adds.

    Raises SchemaError for data that does not fit, UnsupportedFeatureError for a table that this version
    cannot append to, ValueError for options of new tables.
    """
    if partition_by is not None and partition_by != table.partition_columns:
        raise ValueError(
            f"the partition columns of the table are {list(table.partition_columns)}, got "
            f"{list(partition_by)}: omit them"
        )
    table.check_may_append()
    check_consistent(table.schema, table.partition_columns)
    before = _widened(table, columns) if schema_mode == "merge" else table.schema
    merged = merge_schemas(before, columns, mode=schema_mode or "strict")
    if merged == table.schema:
        return table
    check_new_schema(merged, mode=table.mapping_mode)
    after = change(table, columns=merged)
    after.check_may_append()
    return after


def _widened(table: TableConfiguration, columns: StructType) -> StructType:
    """Return the columns of the table with the wider types of the data if the table allows type widening."""
    widened = table.schema
    is_supported = "typeWidening" in features.supported_features(table.protocol)
    if not is_supported or not table.get(properties.ENABLE_TYPE_WIDENING):
        return widened
    for path, new_type in find_widenings(table.schema, columns):
        check_independent(table, path)
        widened = widen_type(widened, path, new_type)
    return widened


def overwrite(
    snapshot: Snapshot, columns: StructType, partition_by: tuple[str, ...] | None
) -> TableConfiguration:
    """Return an existing table whose columns are replaced by those of the data.

    The table keeps its id and properties, and columns of the same type, whose names differ at most by case,
    keep their metadata. Raises SchemaError for an invalid schema, UnsupportedFeatureError for a table that
    this version cannot overwrite.
    """
    table = snapshot.configuration
    table.check_may_append()
    columns = StructType(tuple(_keep_field(field, table.schema) for field in columns.fields))
    check_new_schema(columns, mode=table.mapping_mode)
    partitions = check_partition_columns(
        columns, table.partition_columns if partition_by is None else partition_by
    )
    _check_clustering(snapshot)
    check_read_columns_stay(table, columns)
    check_stats_columns(columns, table.properties, partitions, table.uri)
    after = change(table, columns=columns, partition_columns=partitions)
    after.check_may_append()
    return after


def change(
    table: TableConfiguration,
    *,
    columns: StructType | None = None,
    configuration: Mapping[str, str] | None = None,
    partition_columns: Sequence[str] | None = None,
    table_features: Collection[str] = (),
) -> TableConfiguration:
    """Return a table with other metadata, None for each part that stays.

    The protocol gains `table_features` and the features that the schema and the properties require.
    """
    columns, settings = _assign_column_ids(
        table.schema if columns is None else columns,
        table.properties if configuration is None else configuration,
    )
    protocol = features.with_features(table.protocol, table_features)
    metadata = msgspec.structs.replace(
        table.metadata,
        schema_string=(table.metadata.schema_string if columns == table.schema else schema_to_json(columns)),
        partition_columns=table.partition_columns if partition_columns is None else tuple(partition_columns),
        configuration=settings,
    )
    protocol = features.with_needed_features(protocol, columns, settings)
    return replace(table, protocol=protocol, metadata=metadata, schema=columns)


def check_given(table: TableConfiguration, given: Collection[str]) -> None:
    """Raise SchemaError if a write of these columns gives values that only a writer may assign."""
    for identity in explicit_identities(table.schema, given):
        raise SchemaError(
            f"cannot write values of {identity.name!r} to {table.uri} because the column is GENERATED ALWAYS "
            "AS IDENTITY: leave it out",
            table=table.uri,
            column=identity.name,
        )


def advance(table: TableConfiguration, given: Collection[str], rows: int) -> TableConfiguration:
    """Return a table after a write of rows of the columns `given`, with the last values of its identities."""
    columns = advance_identities(table.schema, given, rows)
    return table if columns == table.schema else change(table, columns=columns)


def _assign_column_ids(
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


def _keep_field(field: StructField, columns: StructType) -> StructField:
    name = field.name.lower()
    same = (each for each in columns.fields if each.name.lower() == name and each.type == field.type)
    return next((replace(field, metadata=each.metadata) for each in same), field)


def _check_clustering(snapshot: Snapshot) -> None:
    if CLUSTERING_DOMAIN in snapshot.domain_metadata:
        raise UnsupportedFeatureError(
            f"cannot overwrite the schema of {snapshot.uri} because the table is clustered (domain "
            f"{CLUSTERING_DOMAIN}): run ALTER TABLE … CLUSTER BY NONE on Spark first, or write to a new "
            "table",
            table=snapshot.uri,
        )
