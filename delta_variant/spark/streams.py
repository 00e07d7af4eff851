"""Write or merge each micro-batch of a stream exactly once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import fields, replace
from inspect import signature
from typing import Any

from pyspark.sql import DataFrame

from .._checks import options_of
from .._logging import log_context
from ..errors import UnsupportedFeatureError
from ..log.commit_context import CommitOptions, Transaction, application_txn, with_transaction
from ..log.snapshot import Snapshot
from ..operations.merge.builder import Merge, with_commit
from ..operations.write import write_table
from ..storage.store import TableLocation
from ..write.commit import WriteResult
from ..write.rewrite import RewriteResult
from .batches import BatchWrite, MicroBatch, is_written, number_write
from .engine import RecalledTables, SparkEngine, locate_for

ENGINE_OPTIONS = [field.name for field in fields(SparkEngine) if field.kw_only]


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
    function then skips a batch number that the table already has for the `app_id`. So it does on Spark
    Connect, which does not name the query: set an `app_id`, and a new one with a new checkpoint.

    Args:
        table: A path, a URI, a `deltalake.DeltaTable` or a name, as in `read_table`.
        app_id: The application id of the `txn`, by default the query's id, which lasts as long as its
            checkpoint.
        options: Arguments of `write_table`, by default `mode="append"`, and options of `SparkEngine`.

    Returns:
        A function of a DataFrame and the number of the batch that returns the WriteResult. It raises the
        errors of `write_table`, AmbiguousWriteError for a write that the table may already have, and
        UnsupportedFeatureError outside a streaming query, or on Spark Connect, without an `app_id`.

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
    arguments: dict[str, Any] = {"mode": "append", **options}
    commit = options_of("commit", arguments.pop("commit", None), CommitOptions)
    if commit.txn is not None:
        raise ValueError("batch_writer sets txn itself: pass app_id instead")
    # A micro-batch reads the commits since the one before, and not the whole log.
    tables = RecalledTables()
    of_engine = {name: arguments.pop(name) for name in ENGINE_OPTIONS if name in arguments}
    # An unknown option is an error here and not in the first batch.
    signature(write_table).bind(table, None, **arguments)

    def write_batch(df: DataFrame, batch_id: int) -> WriteResult:
        batch, engine = MicroBatch.of(df, batch_id), SparkEngine(df.sparkSession, **of_engine)
        with log_context(str(batch)):
            with tables.of_batch():
                target = locate_for(engine, table)
            write = BatchWrite(batch, target, app_id or _query_id(batch, "batch_writer"), arguments, df)
            with _transaction(write, has_own_id=app_id is not None) as txn:
                return write_table(target, df, commit=with_transaction(commit, txn), **arguments)

    return write_batch


def batch_merger(
    build: Callable[[DataFrame], Merge], *, app_id: str | None = None
) -> Callable[[DataFrame, int], Any]:
    """Return a function for `df.writeStream.foreachBatch(…)` that merges each micro-batch into a table once.

    `build` returns the merge of a micro-batch, and the function executes it. Each merge is committed with a
    `txn` of `app_id` and the batch number. If Spark repeats a batch after a crash, the function skips the
    merge that is committed already. It logs a skip, and `repeated` of the result is True.

    A batch may merge into one table several times, and write to it with `batch_writer`. What `batch_writer`
    says about `app_id`, the order of the calls and threads holds here, too.

    Args:
        build: A function of a DataFrame that returns a merge with its clauses, which it does not execute.
        app_id: The application id of the `txn`, by default the query's id, which lasts as long as its
            checkpoint.

    Returns:
        A function of a DataFrame and the number of the batch that returns the RewriteResult. It raises the
        errors of `merge` and of its `execute()`, AmbiguousWriteError for a merge that the table may already
        have, UnsupportedFeatureError outside a streaming query without an `app_id`, and ValueError if the
        merge has a `txn`.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import delta_variant as dv
        >>> from delta_variant import spark as dvs
        >>> lines, table, checkpoint = (tempfile.mkdtemp() for _ in range(3))
        >>> size = Path(lines, "0.txt").write_text('2\\n3\\n')
        >>> result = dv.write_table(table, [{"id": 1}, {"id": 2}])
        >>> target = dv.Table(table, engine=dvs.SparkEngine(spark))
        >>> def build(batch):
        ...     merge = target.merge(batch, "target.id = source.id")
        ...     return merge.when_not_matched_insert_all()
        >>> stream = spark.readStream.text(lines).selectExpr("bigint(value) AS id")
        >>> stream = stream.writeStream.foreachBatch(dvs.batch_merger(build))
        >>> query = stream.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        >>> query.awaitTermination()
        >>> dvs.read_table(spark, table).count()
        3
    """

    tables = RecalledTables()

    def merge_batch(df: DataFrame, batch_id: int) -> RewriteResult:
        batch = MicroBatch.of(df, batch_id)
        with ExitStack() as numbered, log_context(str(batch)):

            def commit_of(snapshot: Snapshot, commit: CommitOptions) -> CommitOptions:
                if commit.txn is not None:
                    raise ValueError("batch_merger sets txn itself: pass app_id instead")
                own_id = app_id or _query_id(batch, "batch_merger")
                write = BatchWrite(batch, snapshot.uri, own_id, build, df)
                txn = numbered.enter_context(_transaction(write, has_own_id=app_id is not None))
                return with_transaction(commit, txn)

            with tables.of_batch():
                merge = build(df)
            return with_commit(merge, commit_of).execute()

    return merge_batch


def _query_id(batch: MicroBatch, function: str) -> str:
    if batch.query is None:
        raise UnsupportedFeatureError(
            f"cannot identify the streaming query because {function} runs outside of one, or on Spark "
            "Connect: set app_id to an id that only this query uses, or, in a classic session, pass the "
            "function to writeStream.foreachBatch and start threads as pyspark.InheritableThread"
        )
    return batch.query


@contextmanager
def _transaction(write: BatchWrite, *, has_own_id: bool) -> Iterator[Transaction]:
    """Yield the transaction of a write of a micro-batch; the block makes the write."""
    with number_write(write) as number:
        app_id = write.app_id if number == 0 else f"{write.app_id}#{number + 1}"
        version, query = write.batch.number, write.batch.query
        if query is None or not has_own_id:
            yield Transaction(application_txn(app_id, version), query=query)
        else:
            without_id = replace(write, app_id=query)
            unnamed = None if is_written(without_id) else query
            yield Transaction.of_query(app_id, version, query, unnamed)
