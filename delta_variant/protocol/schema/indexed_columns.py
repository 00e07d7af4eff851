"""The columns that get statistics (PROTOCOL.md, "Per-file Statistics")."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import TypeAlias

from ...errors import SchemaError
from .. import properties
from ..types import StructField, StructType
from .paths import resolve

__all__ = ["ColumnPath", "check_stats_columns", "stats_columns"]

ColumnPath: TypeAlias = tuple[StructField, ...]


def stats_columns(
    schema: StructType, configuration: Mapping[str, str], partition_columns: Collection[str] = ()
) -> tuple[ColumnPath, ...]:
    """Return the leaf columns that get statistics, each as its chain of fields from the top, in schema order.

    A Variant, an array or a map is one leaf. `delta.dataSkippingStatsColumns` names the columns without
    regard to case, a struct for all columns in it. Without it, these are the first
    `delta.dataSkippingNumIndexedCols` leaves.
    """
    partitions = {name.lower() for name in partition_columns}
    data_fields = tuple(field for field in schema.fields if field.name.lower() not in partitions)
    leaves = _leaves(StructType(data_fields), ())
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


def _leaves(struct: StructType, parents: ColumnPath) -> Iterator[ColumnPath]:
    for field in struct.fields:
        if isinstance(field.type, StructType):
            yield from _leaves(field.type, (*parents, field))
        else:
            yield (*parents, field)


def _is_within(leaf: ColumnPath, wanted: Collection[tuple[str, ...]]) -> bool:
    names = tuple(field.name.lower() for field in leaf)
    return any(names[:length] in wanted for length in range(1, len(names) + 1))
