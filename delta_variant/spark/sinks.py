"""The batch writer of the data source: tasks write files, and the writer commits them without a session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType as SparkStruct

from ..data_file.options import FileOptions, JsonOptions, WriteOptions
from ..errors import AmbiguousWriteError, CommitConflictError
from ..log.commit_context import CommitOptions, Transaction, transaction_of, with_transaction
from ..log.snapshot import Snapshot
from ..operations.write import WriteTask, WrittenRows
from ..protocol.actions import Metadata, Protocol
from ..storage.store import Store, open_store
from ..write.commit import commit_files, result_without_writing
from ..write.partitions import WrittenFiles
from ..write.preparation import TableOptions, WritePlan, WriteRequest, load_existing, plan_write
from .attempts import Job, commit_won, forget, names_of, remove_lost
from .batches import BATCH_ID, QUERY_ID
from .columns import from_spark
from .file_tasks import MAX_OPEN_PARTITIONS, FileTask, attempt_of, check_no_identities
from .task_errors import report_errors


@dataclass(frozen=True)
class Sink:
    """A write to a table by options of the data source.

    `before` is the table's protocol and metadata when the write started, or None for a new table.
    `metadata` is the user metadata of the commit.
    """

    request: WriteRequest
    uri: str
    storage_options: Mapping[str, str] | None = field(repr=False)
    job: Job
    task: FileTask
    before: tuple[Protocol, Metadata] | None
    metadata: str | None

    @classmethod
    def of(
        cls,
        spark_schema: SparkStruct,
        options: Mapping[str, Any],
        transaction: Transaction | None,
        *,
        overwrite: bool = False,
    ) -> Sink:
        """Return the write that options specify; raises the errors of `write_table` that precede writing."""
        store = open_store(options["path"], options["storage_options"])
        snapshot = load_existing(store, "append")
        columns = from_spark(spark_schema, options.get("variant_columns", ()))
        of_table = _table_options(options, mode="overwrite" if overwrite else "append")
        commit = with_transaction(CommitOptions(metadata=options.get("user_metadata")), transaction)
        request = WriteRequest(columns, _write_options(options), of_table)
        write = plan_write(store, snapshot, request, commit)
        check_no_identities(write.after, request.names)
        rejects = options.get("rejects")
        if rejects is not None:
            # Raise the error for a location that cannot be opened here, and send tasks what it means here.
            rejects = open_store(rejects, options["storage_options"]).uri
        # A data source cannot request sorted rows.
        task = replace(WriteTask.of(write), max_open_partitions=MAX_OPEN_PARTITIONS)
        return cls(
            request,
            store.uri,
            options["storage_options"],
            Job.of(None if transaction is None else transaction.application),
            FileTask(task, rejects, options["storage_options"], {}),
            None if snapshot is None else (snapshot.protocol, snapshot.metadata),
            options.get("user_metadata"),
        )

    def write(self, batches: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = TaskContext.get()
        query, batch = (
            None if context is None else context.getLocalProperty(name) for name in (QUERY_ID, BATCH_ID)
        )
        job, task = self.job, self.task
        if query is not None and batch is not None:
            # The next run of the batch finds the files that a killed driver left by the name of the job.
            job = job.of_batch(query, batch)
            task = replace(task, write={"query": query, "batch": int(batch)})
        with report_errors():
            store = open_store(self.uri, self.storage_options)
            attempt = attempt_of(store, job)
            rows = task.task.apply_rules((batch, None) for batch in batches)
            written = task.write_groups(store, names_of(attempt), [rows])
        return Message(attempt.identity, written, replace(self, job=job), query)

    def commit(self, received: Sequence[Message], transaction: Transaction | None) -> None:
        """Commit the files of tasks, or remove them if the table already has the transaction.

        Raises AmbiguousWriteError, CommitConflictError.
        """
        store, task = open_store(self.uri, self.storage_options), self.task.task
        commit = with_transaction(CommitOptions(metadata=self.metadata), transaction)
        snapshot = load_existing(store, "append")
        try:
            result = result_without_writing(snapshot, "append", commit)
        except AmbiguousWriteError:
            self.abort()
            raise
        if result:
            self.abort()
            forget(store, self.job)
            return
        if self.before is None:
            # If another writer has created the table since, the commit detects it and adapts the files.
            snapshot = None
        snapshot = None if snapshot is None else snapshot.in_timezone(task.table.timezone)
        self._check_same_table(snapshot)
        write = WritePlan(self.request, store, snapshot, task.table, task.options, commit)
        written = [message.written for message in received]
        files = WrittenFiles.join(each.files for each in written)
        invalid = sum(each.invalid for each in written)
        commit_won(
            lambda: commit_files(write, files, invalid),
            self.job,
            self._folders(),
            winners=[message.attempt for message in received],
            samples=[
                [path for each in written if (path := next(each.paths(), None)) is not None],
                [each.rejects for each in written if each.rejects is not None],
            ],
        )

    def abort(self) -> None:
        """Remove the files that the tasks of this write left."""
        remove_lost(self._folders(), self.job, (), of_all_runs=False)

    def _folders(self) -> list[Store]:
        locations = [self.uri, *([] if self.task.rejects is None else [self.task.rejects])]
        return [open_store(location, self.storage_options) for location in locations]

    def _check_same_table(self, snapshot: Snapshot | None) -> None:
        """Raise CommitConflictError if another commit changed the table since the write started."""
        if snapshot is None:
            return
        table, present = self.task.task.table, (snapshot.protocol, snapshot.metadata)
        if present in (self.before, (table.protocol, table.metadata)):
            return
        self.abort()
        raise CommitConflictError(
            f"protocol, schema or properties of {snapshot.uri} changed between the start of the write and "
            f"version {snapshot.version}: start the write again",
            table=snapshot.uri,
            version=snapshot.version,
        )


@dataclass
class Message(WriterCommitMessage):
    """The files of one attempt of a task, its write, and the id of its streaming query if there is one.

    The message carries the write because Spark creates a new writer for the commit. That writer would give a
    new table another id, and its columns other physical names, than the tasks did.
    """

    attempt: str
    written: WrittenRows
    sink: Sink
    query: str | None = None


def messages_of(messages: Sequence[WriterCommitMessage | None]) -> list[Message]:
    """Return the messages of the tasks that wrote rows."""
    return [message for message in messages if isinstance(message, Message)]


def abort(messages: Sequence[WriterCommitMessage | None], sink: Sink) -> None:
    """Remove the files of all tasks if a task failed. If the commit failed, it may still have happened."""
    received = messages_of(messages)
    if len(received) < len(messages):
        (received[0].sink if received else sink).abort()


class BatchSink(DataSourceArrowWriter):
    """Writes the rows of a DataFrame as one commit."""

    def __init__(self, schema: SparkStruct, options: Mapping[str, Any], *, overwrite: bool) -> None:
        if ("txn_app_id" in options) != ("txn_version" in options):
            raise ValueError("the options txn_app_id and txn_version require each other: set both or neither")
        pair = (options["txn_app_id"], options["txn_version"]) if "txn_app_id" in options else None
        self._transaction = transaction_of(CommitOptions(pair))
        self._sink = Sink.of(schema, options, self._transaction, overwrite=overwrite)

    def write(self, iterator: Any) -> WriterCommitMessage:
        return self._sink.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        if received := messages_of(messages):
            received[0].sink.commit(received, self._transaction)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        abort(messages, self._sink)


def _write_options(options: Mapping[str, Any]) -> WriteOptions:
    """Return the options of data files among options of WRITE."""
    of_files, of_json = (
        {name: value for name, value in options.items() if name in kind.__dataclass_fields__}
        for kind in (FileOptions, JsonOptions)
    )
    return WriteOptions(options.get("shredding", "infer"), FileOptions(**of_files), JsonOptions(**of_json))


def _table_options(options: Mapping[str, Any], **more: Any) -> TableOptions:
    """Return the options of the table among options of WRITE, and `more`."""
    names = TableOptions.__dataclass_fields__
    return TableOptions(**{name: value for name, value in options.items() if name in names}, **more)
