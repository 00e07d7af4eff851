"""Micro-batches of a stream, each written once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame

from delta_variant.errors import UnsupportedFeatureError
from delta_variant.store import TableLocation

from .writing import write_table

__all__ = ["batch_writer"]

QUERY_ID = "sql.streaming.queryId"


def batch_writer(
    table: TableLocation, *, app_id: str | None = None, **options: Any
) -> Callable[[DataFrame, int], None]:
    """Return a function for `df.writeStream.foreachBatch(…)` that appends each micro-batch to a table once.

    A batch is committed with a `txn` of `app_id`, by default the query's id, which lasts as long as its
    checkpoint: what is repeated after a crash is not written again. `options` are arguments of `write_table`;
    each file infers its own shredding schema unless they say otherwise, so that a batch is computed once.
    """
    arguments: dict[str, Any] = {"mode": "append", "one_shredding": False, **options}
    if "txn" in arguments:
        raise ValueError("txn is the batch's own: name the application by app_id")

    def write_batch(df: DataFrame, batch_id: int) -> None:
        write_table(df, table, txn=(app_id or _query_id(df), batch_id), **arguments)

    return write_batch


def _query_id(df: DataFrame) -> str:
    identity: str | None = df.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
    if identity is None:
        raise UnsupportedFeatureError(
            "batch_writer is called by no streaming query: give it to writeStream.foreachBatch, or name an "
            "app_id"
        )
    return identity
