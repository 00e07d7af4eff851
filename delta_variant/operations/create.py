"""Create a table without rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import msgspec

from .._checks import check_option, list_of, one_or_more
from ..errors import SchemaError
from ..expressions.parse import ColumnDefinition, ConstraintDefinition, IdentityDefinition, parse_definition
from ..log.commit_context import CommitOptions, CommitResult, commit_context, without_txn
from ..log.transaction import create_table as commit_table
from ..protocol import features
from ..protocol.actions import DomainMetadata
from ..protocol.clustering import clustering_of
from ..protocol.identity_columns import find_identities, identity_metadata
from ..protocol.properties import CONSTRAINT, column_names_text
from ..protocol.schema.char_types import TYPE_TEXT
from ..protocol.table_configuration import TableConfiguration
from ..protocol.types import (
    COMMENT,
    DEFAULT,
    GENERATION_EXPRESSION,
    DataType,
    PrimitiveType,
    StructField,
    StructType,
    describe,
)
from ..storage.store import TableLocation, open_latest, removing_new_folders
from ..write import table_changes
from ..write.preparation import TableOptions, load_existing
from ..write.row_rules import RowRules
from .alter.columns import ColumnPath, Columns, column_type, parse_columns, parse_path

LONG = PrimitiveType("long")


def create_table(
    table: TableLocation,
    columns: Columns | Sequence[str],
    *,
    mode: Literal["error", "ignore"] = "error",
    partition_by: str | Sequence[str] | None = None,
    cluster_by: str | Sequence[ColumnPath] | None = None,
    configuration: Mapping[str, str] | None = None,
    name: str | None = None,
    description: str | None = None,
    commit: CommitOptions | None = None,
) -> CommitResult:
    """Create a table without rows, as version 0.

    Args:
        table: A path, a URI or a `Table`.
        columns: SQL definitions, such as `["id bigint NOT NULL COMMENT 'key'", "event variant",
            "day date GENERATED ALWAYS AS (cast(event:at::timestamp as date))", "note string DEFAULT ''",
            "CONSTRAINT positive CHECK (id > 0)"]`. Or a mapping from names to types, or an Arrow schema.
        mode: What to do if the table exists: `"error"`, the default, raises TableExistsError, `"ignore"` does
            nothing.
        partition_by: The partition columns. None, the default, creates a table without partitions.
        cluster_by: At most four clustering columns, instead of partitions: names, or paths of nested fields
            such as `user.age`. Spark's OPTIMIZE sorts by them. None, the default, creates a table without.
        configuration: Table properties. A table with a Variant column sets `delta.enableVariantShredding` to
            true unless this mapping sets it. None by default.
        name: The name of the table. None, the default, omits it.
        description: The description of the table. None, the default, omits it.
        commit: The metadata of the commit; see `CommitOptions`. None, the default, sets none.

    Returns:
        A `CommitResult` with version 0, or None if the table exists and `mode` is `"ignore"`.

    Raises:
        TableExistsError: The table exists and `mode` is `"error"`.
        ExpressionError: A definition cannot be parsed, or an expression names an unknown column.
        SchemaError: The columns are not valid in a Delta table, or Delta does not cluster by one of
            `cluster_by`.
        ProtocolError: A table property is unknown or invalid.
        UnsupportedFeatureError: This version cannot write such a table.
        ArgumentTypeError: An argument has the wrong type.
        ValueError: `columns` is empty, an argument has an invalid value, or `partition_by` and `cluster_by`
            are given.

    Example:
        >>> import delta_variant as dv
        >>> columns = ["id bigint NOT NULL", "event variant", "note string DEFAULT 'none'"]
        >>> dv.create_table("orders", columns).version
        0
        >>> _ = dv.write_table("orders", [{"id": 1, "event": {"n": 2}}], mode="append")
        >>> dv.read_table("orders").to_pylist()
        [{'id': 1, 'event': {'n': 2}, 'note': 'none'}]
    """
    check_option("mode", mode, ("error", "ignore"))
    commit = without_txn(commit, "create_table")
    options = TableOptions(
        partition_by, configuration=configuration, name=name, description=description, mode=mode
    )
    clustering = [parse_path(column) for column in one_or_more("columns", "cluster_by", cluster_by or ())]
    if clustering and partition_by:
        raise ValueError("expected partition_by or cluster_by, got both: Delta does not cluster partitions")
    fields, constraints = _parse_definitions(columns)
    store = open_latest(table)
    if load_existing(store, mode, remedies=(("mode", "ignore"),)) is not None:
        return CommitResult(None)
    after = table_changes.create(
        StructType(fields),
        options.partition_columns,
        {**constraints, **(configuration or {})},
        name,
        description,
        enable_shredding=True,
        uri=store.uri,
    )
    _check_partitions(after)
    domains: list[DomainMetadata] = []
    if clustering:
        domains = [clustering_of(after, clustering)]
        after = replace(after, protocol=features.with_features(after.protocol, ["clustering"]))
    # Reject expressions that no write of this library could evaluate.
    RowRules.of(after).computed_columns([])
    parameters: dict[str, Any] = {
        "isManaged": "false",
        "description": description,
        "partitionBy": msgspec.json.encode(after.partition_columns).decode(),
        "clusterBy": [column_names_text((path,)) for path in clustering],
        "properties": msgspec.json.encode(dict(configuration or {})).decode(),
    }
    context = commit_context("CREATE TABLE", parameters, commit=commit)
    with removing_new_folders(store):
        return CommitResult(commit_table(store, after, context=context, domains=domains))


def _parse_definitions(columns: Columns | Sequence[str]) -> tuple[tuple[StructField, ...], dict[str, str]]:
    """Return the columns, and the constraints as table properties."""
    fields: list[StructField] = []
    constraints: dict[str, str] = {}
    if isinstance(columns, Mapping) or hasattr(columns, "__arrow_c_schema__"):
        for parent, field in parse_columns(columns):
            if parent:
                raise SchemaError(
                    f"cannot create the field {field.name!r} in {'.'.join(parent)!r}: give the column the "
                    "type struct<…>",
                    column=field.name,
                )
            fields.append(field)
    else:
        for text in list_of("SQL definitions of columns", "columns", columns):
            parsed = parse_definition(text)
            if isinstance(parsed, ConstraintDefinition):
                constraints[f"{CONSTRAINT}{parsed.name.lower()}"] = parsed.check
                continue
            known = {
                DEFAULT: parsed.default,
                GENERATION_EXPRESSION: parsed.generated,
                COMMENT: parsed.comment,
                TYPE_TEXT: parsed.text_type,
            }
            metadata: dict[str, Any] = {key: value for key, value in known.items() if value is not None}
            delta_type = column_type(parsed.name, "variant" if parsed.type is None else parsed.type)
            if parsed.identity is not None:
                metadata |= _identity_metadata(parsed, parsed.identity, delta_type)
            fields.append(StructField(parsed.name, delta_type, parsed.nullable, metadata))
    if not fields:
        raise ValueError("columns is empty: pass at least one column with its type")
    return tuple(fields), constraints


def _identity_metadata(
    column: ColumnDefinition, identity: IdentityDefinition, delta_type: DataType
) -> dict[str, Any]:
    """Return the metadata of an identity column; raises SchemaError for one that Delta does not permit."""
    reasons = {
        f"it is {describe(delta_type)}: expected bigint": delta_type != LONG,
        "it also has a default: remove one": column.default is not None,
        "INCREMENT BY is 0": identity.step == 0,
        "START WITH or INCREMENT BY is not a bigint": any(
            not -(1 << 63) <= number < 1 << 63 for number in (identity.start, identity.step)
        ),
    }
    for reason, is_true in reasons.items():
        if is_true:
            raise SchemaError(
                f"cannot create the identity column {column.name!r} because {reason}", column=column.name
            )
    return identity_metadata(identity.start, identity.step, allows_explicit=not identity.is_always)


def _check_partitions(table: TableConfiguration) -> None:
    """Raise SchemaError for a table that is partitioned by an identity column, as Delta on Spark does."""
    for name, _ in find_identities(table.schema):
        if name in table.partition_columns:
            raise SchemaError(
                f"cannot partition {table.uri} by the identity column {name!r}: each row would have a "
                "partition of its own",
                table=table.uri,
                column=name,
            )
