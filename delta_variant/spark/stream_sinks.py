"""The stream writer of the data source. PySpark 4.1 and newer have the interface that it implements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType as SparkStruct

from .._logging import log_context
from ..errors import DeltaVariantError, UnsupportedFeatureError
from ..log.commit_context import Transaction, application_txn
from ..storage import store as storage
from ..storage.store import open_store
from .batches import name_batch
from .locations import LOCAL_FS, locate
from .sinks import Sink, abort, messages_of


class StreamSink(DataSourceStreamArrowWriter):
    """Appends each micro-batch exactly once: the `txn` of its commit is the query's id and the batch number.

    If the user sets an application id, it is bound to the query: another query with the same id raises
    AmbiguousWriteError.
    """

    def __init__(
        self, schema: SparkStruct, options: Mapping[str, Any], checkpoint: str | None, default_fs: str
    ) -> None:
        self._app_id = options.get("txn_app_id")
        self._checkpoint = checkpoint
        self._default_fs = default_fs
        if self._app_id is None and checkpoint is None:
            raise UnsupportedFeatureError(
                "exactly-once writes of a stream need an id that outlives the query: set the option "
                "checkpointLocation or txn_app_id"
            )
        self._sink = Sink.of(schema, options, None)

    def write(self, iterator: Any) -> WriterCommitMessage:
        return self._sink.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's
        if received := messages_of(messages):
            query = received[0].query
            with log_context(name_batch(query, batchId)):
                received[0].sink.commit(received, self._transaction(batchId, query))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's
        abort(messages, self._sink)

    def _transaction(self, batch: int, query: str | None) -> Transaction:
        if self._app_id is None:
            own = query_of(self._checkpoint or "", self._default_fs)
            return Transaction(application_txn(own, batch), query=own)
        # The tasks report the query, because its checkpoint may be in a store that is not accessible here.
        assert query is not None
        return Transaction.of_query(self._app_id, batch, query, query)


class _Query(msgspec.Struct):
    id: str


def query_of(checkpoint: str, default_fs: str = LOCAL_FS) -> str:
    """Return the id of the query with a checkpoint at a path or URI. It lasts as long as the checkpoint."""
    try:
        # Hadoop writes file:/path instead of file:///path.
        text = checkpoint.removeprefix("file:") if checkpoint[:7] != "file://" else checkpoint
        store = open_store(locate(text, LOCAL_FS if text != checkpoint else default_fs))
        return msgspec.json.decode(storage.read(store, "metadata"), type=_Query).id
    except (DeltaVariantError, msgspec.MsgspecError) as error:
        raise UnsupportedFeatureError(
            f"cannot read the id of the query from its checkpoint {checkpoint}: {error}; set the option "
            "txn_app_id to an id that only this query uses, or write with delta_variant.spark.batch_writer"
        ) from error
