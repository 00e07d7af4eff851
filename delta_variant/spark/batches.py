"""Identities of the writes within a micro-batch, by which a repeated batch skips the committed ones.

Spark repeats a batch after a failure, with the same number and the same rows. A batch may write to one table
more than once, so its number does not identify a write. Each write has an application id: the caller's, or
the query's. Within one run of a batch, the writes with one application id to one table are numbered in the
order of the calls. If one thread makes the calls, that order is the same in each run.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.utils import is_remote

from ..errors import AmbiguousWriteError
from ..storage.store import TableLocation, location_key
from .monitoring import EXECUTION_ID

QUERY_ID = "sql.streaming.queryId"
BATCH_ID = "streaming.sql.batchId"
STREAM_THREAD = "stream execution thread"

REMEDY = "pass app_id= to batch_writer or batch_merger, a different one for each write"


def name_batch(query: str | None, number: int) -> str:
    """Return how messages name a micro-batch; the query may be unknown."""
    return f"batch {number}" if query is None else f"query {query}, batch {number}"


@dataclass(frozen=True)
class MicroBatch:
    """One run of a micro-batch.

    `query` is None if the thread does not belong to a streaming query, or on Spark Connect. `is_own_thread`
    is False in threads that the batch starts.
    """

    query: str | None
    run: str
    number: int
    is_own_thread: bool

    @classmethod
    def of(cls, df: DataFrame, number: int) -> MicroBatch:
        session: Any = df.sparkSession
        if is_remote():
            # The function runs in a process of its own, which Spark does not tell about the query.
            return cls(None, session.session_id, number, False)
        context = session.sparkContext
        query = context.getLocalProperty(QUERY_ID)
        # Each start of a query clones the session, and each batch is an execution.
        execution = context.getLocalProperty(EXECUTION_ID) if query else None
        run = execution or session._jsparkSession.sessionUUID()
        thread = context._jvm.java.lang.Thread.currentThread().getName()
        return cls(query, run, number, thread.startswith(STREAM_THREAD))

    def __str__(self) -> str:
        """Return how messages name the batch."""
        return name_batch(self.query, self.number)


@dataclass(frozen=True)
class BatchWrite:
    """A call of a writer in a batch; `writer` is the same object in all calls of one writer."""

    batch: MicroBatch
    table: TableLocation
    app_id: str
    writer: object
    df: DataFrame

    @property
    def key(self) -> tuple[str | None, str, str]:
        return self.batch.query, location_key(self.table), self.app_id

    def repeats(self, other: BatchWrite) -> bool:
        """Return whether two calls of a batch write the same rows with the same writer."""
        return self.writer is other.writer and self.df.sameSemantics(other.df)


@dataclass
class _Calls:
    """The calls that a run of a batch has made with one application id for one table."""

    last: BatchWrite
    thread: int
    done: int = 0
    has_failed: bool = True

    def next_number(self, write: BatchWrite) -> int:
        """Return the number of the next call; raises AmbiguousWriteError if it may differ between runs."""
        table = write.key[1]
        subject = f"batch {write.batch.number} writes more than once to {table} as {write.app_id!r}"
        is_same = write.repeats(self.last)
        if write.batch.query is None:
            if is_same:
                return 0
            raise AmbiguousWriteError(
                f"{subject}, and the writes cannot be distinguished outside the thread of a streaming query; "
                f"{REMEDY}",
                table=table,
            )
        if not write.batch.is_own_thread or self.thread != threading.get_ident():
            raise AmbiguousWriteError(
                f"{subject} from threads, whose order may differ between runs; {REMEDY}", table=table
            )
        if self.has_failed and not is_same:
            raise AmbiguousWriteError(
                f"{subject}, and a write before this one failed, so the next run of the batch would number "
                f"them differently; let the batch fail, or {REMEDY}",
                table=table,
            )
        return self.done


_LOCK = threading.Lock()
# The calls of the latest batch, by `BatchWrite.key`.
_CALLS: dict[tuple[str | None, str, str], _Calls] = {}


def is_written(write: BatchWrite) -> bool:
    """Return whether this run of the batch has written to the table with the application id."""
    with _LOCK:
        calls = _CALLS.get(write.key)
        return calls is not None and _is_same_run(calls.last.batch, write.batch)


@contextmanager
def number_write(write: BatchWrite) -> Iterator[int]:
    """Yield the number of a write among those of this run of the batch with the same application id.

    A call that repeats a failed write gets the number of that write. Raises AmbiguousWriteError if another
    run of the batch may number the write differently.
    """
    with _LOCK:
        calls = _CALLS.get(write.key)
        if calls is None or not _is_same_run(calls.last.batch, write.batch):
            calls = _CALLS[write.key] = _Calls(write, threading.get_ident())
            number = 0
        else:
            number = calls.next_number(write)
        calls.last, calls.has_failed = write, True
    yield number
    calls.done, calls.has_failed = number + 1, False


def _is_same_run(batch: MicroBatch, other: MicroBatch) -> bool:
    return (batch.run, batch.number) == (other.run, other.number)
