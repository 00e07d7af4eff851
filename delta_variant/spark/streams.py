"""Write each micro-batch of a stream exactly once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from typing import Any

from pyspark.sql import DataFrame

from .._checks import options_of
from ..errors import UnsupportedFeatureError
from ..operations.write.committing import WriteResult
from ..storage.store import TableLocation
from ..writer.commit_context import CommitOptions, Transaction, application_txn, with_transaction
from .batches import BatchWrite, MicroBatch, is_written, number_write
from .running import check_classic
from .writing import write_table

__all__ = ["batch_writer"]


def batch_writer(
    table: TableLocation, *, app_id: str | None = None, **options: Any
) -> Callable[[DataFrame, int], Any]:
    """Return a function for `df.writeStream.foreachBatch(…)` that appends each micro-batch to a table once.

    Each batch is committed with a `txn` of `app_id` and the batch number. If Spark repeats a batch after a
    crash, the function skips the writes that are committed already. It logs a skip, and `repeated` of the
    result is True.

    A batch may write to one table several times, with one function or several. These writes are numbered in
    the order of the calls, which must be the same when Spark repeats the batch. Pass a different `app_id` to
    each writer if the batch writes from threads, or if the order may differ between runs.

    An `app_id` belongs to one query. A query with a new checkpoint counts its batches from 0 again. With the
    `app_id` of an earlier query it raises AmbiguousWriteError, because the batch numbers do not identify its
    batches. Start threads as `pyspark.InheritableThread`. Other threads do not belong to the query, and the
    function then skips a batch number that the table already has for the `app_id`.

    Args:
        table: A path, a URI or a `deltalake.DeltaTable`.
        app_id: The application id of the `txn`, by default the query's id, which lasts as long as its
            checkpoint.
        options: Arguments of `write_table`, by default `mode="append"` and `one_shredding=False`: each file
            infers its own shredding schema, so that a batch is computed only once.

    Returns:
        A function of a DataFrame and the number of the batch that returns the WriteResult. It raises the
        errors of `write_table`, AmbiguousWriteError for a write that the table may already have, and
        UnsupportedFeatureError outside a streaming query without an `app_id`.

    Raises:
        TypeError: `write_table` does not have an option.
        ValueError: `commit` of the options has a `txn`.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from delta_variant import spark as dvs
        >>> lines, table, checkpoint = (tempfile.mkdtemp() for _ in range(3))
        >>> size = Path(lines, "0.txt").write_text('{"n": 1}\\n')
        >>> write = dvs.batch_writer(table, variant_columns=["value"])
        >>> stream = spark.readStream.text(lines).writeStream.foreachBatch(write)
        >>> query = stream.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        >>> query.awaitTermination()
        >>> dvs.read_table(spark, table).count()
        1
    """
    arguments: dict[str, Any] = {"mode": "append", "one_shredding": False, **options}
    commit = options_of("commit", arguments.pop("commit", None), CommitOptions)
    if commit.txn is not None:
        raise ValueError("batch_writer sets txn itself: pass app_id instead")
    # An unknown option is an error here and not in the first batch.
    signature(write_table).bind(table, None, **arguments)

    def write_batch(df: DataFrame, batch_id: int) -> WriteResult:
        check_classic()
        batch = MicroBatch.of(df, batch_id)
        write = BatchWrite(batch, table, app_id or _query_id(batch), arguments, df)
        with number_write(write) as number:
            txn = _transaction(write, number, has_own_id=app_id is not None)
            return write_table(table, df, commit=with_transaction(commit, txn), **arguments)

    return write_batch


def _query_id(batch: MicroBatch) -> str:
    if batch.query is None:
        raise UnsupportedFeatureError(
            "the function of batch_writer was called outside a streaming query: pass it to "
            "writeStream.foreachBatch, start threads as pyspark.InheritableThread, or set app_id"
        )
    return batch.query


def _transaction(write: BatchWrite, number: int, *, has_own_id: bool) -> Transaction:
    app_id = write.app_id if number == 0 else f"{write.app_id}#{number + 1}"
    version, query = write.batch.number, write.batch.query
    if query is None or not has_own_id:
        return Transaction(application_txn(app_id, version))
    without_id = replace(write, app_id=query)
    return Transaction.of_run(app_id, version, query, None if is_written(without_id) else query)
