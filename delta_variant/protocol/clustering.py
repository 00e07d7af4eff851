"""The metadata domain of clustered tables (PROTOCOL.md, "Clustered Table")."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..errors import MalformedLogError, SchemaError
from .actions import CLUSTERING_DOMAIN, DomainMetadata
from .schema.column_mapping import physical_name
from .table_configuration import TableConfiguration
from .types import DECIMAL, FieldPath, PrimitiveType, describe, path_text, resolve, type_at

MOST_COLUMNS = 4
SORTED_TYPES = frozenset(
    ("byte", "date", "double", "float", "integer", "long", "short", "string", "timestamp", "timestamp_ntz")
)
"""The types, in addition to decimals, of columns that Delta on Spark clusters by."""

NO_CLUSTERING = f'{{"clusteringColumns":[],"domainName":"{CLUSTERING_DOMAIN}"}}'
"""The configuration of the domain in a table that is no longer clustered, as delta-spark writes it."""


class _Clustering(msgspec.Struct, rename="camel"):
    clustering_columns: list[str | list[str]] = []


def clustering_of(table: TableConfiguration, columns: Sequence[FieldPath]) -> DomainMetadata:
    """Return the domain of a table that is clustered by columns, as delta-spark writes it.

    Raises SchemaError for columns that Delta on Spark does not cluster by: more than four, a column twice,
    without statistics, or of a type without an order.
    """
    paths = [resolve(table.schema, column) for column in columns]
    if len(paths) > MOST_COLUMNS:
        raise SchemaError(
            f"cannot cluster {table.uri} by {len(paths)} columns because Delta supports {MOST_COLUMNS}: name "
            "fewer",
            table=table.uri,
        )
    indexed = {tuple(field.name for field in leaf): leaf for leaf in table.stats_columns}
    for index, path in enumerate(paths):
        if (reason := _reason_against(table, path, path in indexed, path in paths[:index])) is not None:
            name = path_text(path)
            raise SchemaError(
                f"cannot cluster {table.uri} by {name!r} because {reason}", table=table.uri, column=name
            )
    names = [[physical_name(field, table.mapping_mode) for field in indexed[path]] for path in paths]
    text = msgspec.json.encode({"clusteringColumns": names, "domainName": CLUSTERING_DOMAIN}).decode()
    return DomainMetadata(domain=CLUSTERING_DOMAIN, configuration=text, removed=False)


def _reason_against(
    table: TableConfiguration, path: FieldPath, is_indexed: bool, is_repeated: bool
) -> str | None:
    data_type = type_at(table.schema, path)
    name = data_type.name if isinstance(data_type, PrimitiveType) else ""
    if name not in SORTED_TYPES and not DECIMAL.fullmatch(name):
        return f"it is {describe(data_type)}: expected a number, a string, a date or a timestamp"
    if is_repeated:
        return "it is named twice: remove one"
    if not is_indexed:
        return "the table keeps no statistics of it: set delta.dataSkippingStatsColumns with it"
    return None


def decode_clustering_columns(configuration: str) -> tuple[tuple[str, ...], ...]:
    """Return the physical paths of the clustering columns in a domain's configuration.

    The example in PROTOCOL.md has a string for each column. Delta on Spark, delta-kernel-java and
    delta-kernel-rs write a list of names instead, which can also lead to a nested column. Both are accepted.

    Raises:
        MalformedLogError: The configuration has neither form.
    """
    try:
        columns = msgspec.json.decode(configuration, type=_Clustering).clustering_columns
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise MalformedLogError(f"cannot decode the domain {CLUSTERING_DOMAIN}: {error}") from error
    return tuple((each,) if isinstance(each, str) else tuple(each) for each in columns)
