"""Micro-batches of a stream, each written once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame

from ..errors import UnsupportedFeatureError
from ..operations.write.committing import WriteResult
from ..operations.write.preparation import Transaction, application_txn
from ..storage.store import TableLocation
from .batches import BatchWrite, MicroBatch, is_written, number_write
from .running import check_classic
from .writing import write_table

__all__ = ["batch_writer"]


def batch_writer(
    table: TableLocation, *, app_id: str | None = None, **options: Any
) -> Callable[[DataFrame, int], Any]:
    """Return a function for `df.writeStream.foreachBatch(…)` that appends each micro-batch to a table once.

    The function takes a DataFrame and the number of the batch, and returns the WriteResult. A batch is
    committed with a `txn` of `app_id`, by default the query's id, which lasts as long as its checkpoint: a
    batch that Spark repeats after a crash skips what is committed. A skip is logged, and `repeated` of the
    result is True.

    A batch may write to one table several times, with one function or several. These writes are numbered in
    the order of the calls, which has to be the same when Spark repeats the batch. Give each write an `app_id`
    of its own where the batch makes them in threads, or where the order may change between two runs.

    An `app_id` belongs to one query. A query with a new checkpoint counts its batches from 0 again; with the
    `app_id` of an earlier query it raises AmbiguousWriteError, because it cannot tell which of its batches
    the table has. Start threads as `pyspark.InheritableThread`: others do not know the query, and then a
    batch number that the table has for the `app_id` is skipped.

    Args:
        table: A path, a URI or a `deltalake.DeltaTable`.
        app_id: The application id of the `txn`.
        options: Arguments of `write_table`. By default each file infers its own shredding schema, so that a
            batch is computed once.

    Raises:
        ValueError: `txn` is among the options.
        AmbiguousWriteError: By the function, for a write that may or may not be in the table already.
        UnsupportedFeatureError: By the function, outside a streaming query without an `app_id`.
    """
    arguments: dict[str, Any] = {"mode": "append", "one_shredding": False, **options}
    if "txn" in arguments:
        raise ValueError("txn is the batch's own: name the application by app_id")

    def write_batch(df: DataFrame, batch_id: int) -> WriteResult:
        check_classic()
        batch = MicroBatch.of(df, batch_id)
        write = BatchWrite(batch, table, app_id or _query_id(batch), arguments, df)
        with number_write(write) as number:
            txn = _transaction(write, number, has_own_id=app_id is not None)
            return write_table(df, table, txn=txn, **arguments)

    return write_batch


def _query_id(batch: MicroBatch) -> str:
    if batch.query is None:
        raise UnsupportedFeatureError(
            "batch_writer is called by no streaming query: give it to writeStream.foreachBatch, start "
            "threads as pyspark.InheritableThread, or name an app_id"
        )
    return batch.query


def _transaction(write: BatchWrite, number: int, *, has_own_id: bool) -> Transaction:
    app_id = write.app_id if number == 0 else f"{write.app_id}#{number + 1}"
    version, query = write.batch.number, write.batch.query
    if query is None or not has_own_id:
        return Transaction(application_txn(app_id, version))
    without_id = replace(write, app_id=query)
    return Transaction.of_run(app_id, version, query, None if is_written(without_id) else query)
