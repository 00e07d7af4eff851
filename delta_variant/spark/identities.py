"""Assign the values of identity columns to the rows of a DataFrame."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from .._text import quote
from ..protocol.identity_columns import IdentityColumn
from .running import row_in_partition


def assign_identities(df: DataFrame, identities: Sequence[IdentityColumn]) -> DataFrame:
    """Return the rows with values of the columns, by their positions among all rows.

    The rows are stored on the executors, and the query fails if some are lost: rows that Spark computes again
    may be in other partitions, and would repeat values. Raises ConstraintViolationError for a value that is
    not a bigint.
    """
    stored = df.localCheckpoint()
    partition = sql.spark_partition_id()
    counts = {row["partition"]: row["count"] for row in _counted(stored).collect()}
    numbers = [counts.get(number, 0) for number in range(max(counts, default=-1) + 1)]
    *first, total = accumulate(numbers, initial=0)
    starts = sql.split(sql.lit(",".join(map(str, first)) or "0"), ",").cast("array<bigint>")
    position = starts[partition] + row_in_partition()
    for identity in identities if total else ():
        identity.value(total - 1)
    values = [
        (sql.lit(identity.first) + position * sql.lit(identity.step)).cast("bigint").alias(identity.name)
        for identity in identities
    ]
    return stored.select(*(sql.col(quote(name)) for name in stored.columns), *values)


def _counted(df: DataFrame) -> DataFrame:
    return df.groupBy(sql.spark_partition_id().alias("partition")).count()
