"""Commit the files of a write as one version of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import sleep

import msgspec
import pyarrow as pa

from ..data_file.writer import WrittenFile
from ..errors import (
    CommitConflictError,
    ConstraintViolationError,
    PredicateViolationError,
    ProtocolError,
    SchemaError,
    ShreddingNotEnabledError,
    StoreError,
    TableExistsError,
    UnsupportedFeatureError,
)
from ..expressions.tree import Call, Expression, Literal, Name
from ..input.invalid_json import Batches
from ..log import transaction as log_transaction
from ..log.commit_context import (
    CommitContext,
    CommitOptions,
    CommitResult,
    commit_context,
    is_repeated,
    transaction_of,
)
from ..log.snapshot import Snapshot, TableVersion
from ..protocol.schema.arrow import to_arrow_type
from ..protocol.schema.column_mapping import physical_name
from ..protocol.schema.partition_values import partition_value_from_string
from ..read.file_reader import TableReader
from ..read.scope import Scope
from ..storage.store import Store, discard
from .copy_on_write import overwrite_rows
from .partitions import WrittenFiles
from .preparation import Mode, WritePlan, load_existing, plan_write
from .rewrite import commit_replacement
from .router import write_files
from .row_rules import complete_rows
from .table_changes import advance

PAUSES_SECONDS = (0.1, 0.5, 1.0)
"""Before the log of a table that exists is listed again, because no file was listed."""

NOT_COMMITTED = (
    CommitConflictError,
    ConstraintViolationError,
    PredicateViolationError,
    ProtocolError,
    SchemaError,
    ShreddingNotEnabledError,
    StoreError,
    TableExistsError,
    UnsupportedFeatureError,
    ValueError,
)
"""The errors of `commit_files` that prove that nothing was committed. After others it is unknown."""


@dataclass(frozen=True, repr=False)
class WriteResult(CommitResult):
    """The result of a write.

    Attributes:
        version: The committed version, None if nothing was committed.
        metrics: The metrics of the commit, empty without a commit.
        rows: The number of rows written.
        invalid: The number of values with invalid JSON that were rejected or became SQL NULL.
        files: The files with the new rows; those of a write on Spark are decoded when they are used.
        rows_deleted: The number of rows that an overwrite deleted.
        rows_copied: The number of remaining rows that an overwrite copied to new files.
        repeated: Whether nothing was committed because the table already has the `txn` of the write.

    Example:
        >>> import delta_variant as dv
        >>> result = dv.write_table("clicks", [{"id": 1}, {"id": 2}])
        >>> result.version, result.rows, len(result.files)
        (0, 2, 1)
    """

    rows: int = 0
    invalid: int = 0
    files: Sequence[WrittenFile] = ()
    rows_deleted: int = 0
    rows_copied: int = 0
    repeated: bool = False


def result_without_writing(
    snapshot: Snapshot | None, mode: Mode, commit: CommitOptions
) -> WriteResult | None:
    """Return the result of a write that must not change the table, None if the write must proceed.

    Logs a warning if the table already has the `txn` of the write. Raises AmbiguousWriteError.
    """
    if snapshot is None:
        return None
    if mode == "ignore":
        return WriteResult(None)
    if is_repeated(snapshot, transaction_of(commit)):
        return WriteResult(None, repeated=True)
    return None


def commit_files(write: WritePlan, files: WrittenFiles, invalid: int = 0) -> WriteResult:
    """Commit the files of a write; if they cannot be committed, remove them.

    If a concurrent writer created the table, the mode of the write applies to that table: the rows are
    written again for it, or TableExistsError is raised. Raises CommitConflictError, and the errors of
    `plan_write` for the table of the other writer.
    """
    # Rejected rows have values of identity columns, too.
    rows = files.rows + (invalid if write.options.json.on_invalid == "reject" else 0)
    write = replace(write, after=advance(write.after, write.request.names, rows))
    if write.snapshot is not None and write.replaces:
        return _overwrite(write, write.snapshot, files, invalid)
    try:
        committed = _commit(write, files, invalid)
        return WriteResult(committed.version, files.rows, invalid, files.files, metrics=committed.metrics)
    except TableExistsError:
        if write.request.table.mode == "error":
            discard(write.store, files.paths())
            raise
        return _commit_to_created(write, files, invalid)
    except NOT_COMMITTED:
        discard(write.store, files.paths())
        raise


def _commit_to_created(write: WritePlan, files: WrittenFiles, invalid: int) -> WriteResult:
    """Commit the rows of a new table to the table that another writer created first.

    The rows are written again, because that table may have other columns, physical names, constraints and
    shredding.
    """
    request, store = write.request, write.store
    try:
        snapshot = _load_created(store, request.table.mode)
        done = result_without_writing(snapshot, request.table.mode, write.commit)
        if done is not None:
            return done
        again = plan_write(store, snapshot, request, write.commit)
        rows = complete_rows(_written_rows(write, files), again.after, again.options, again.predicate())
        rewritten = write_files(store, rows, again.after, again.options)
    finally:
        discard(write.store, files.paths())
    return commit_files(again, rewritten, invalid)


def _load_created(store: Store, mode: Mode) -> Snapshot:
    """Return a table that another writer created, which a listing may show late."""
    for pause in PAUSES_SECONDS:
        if (snapshot := load_existing(store, mode)) is not None:
            return snapshot
        sleep(pause)
    raise StoreError(
        f"cannot write to {store.uri} because version 0 exists, but the store lists no file of the log; "
        "check that the credentials permit listing the log, then retry",
        table=store.uri,
    )


def _written_rows(write: WritePlan, files: WrittenFiles) -> Batches:
    """Yield the rows of written files, with the columns of the data."""
    table = TableReader.of(TableVersion(write.store, 0, write.after))
    return ((batch, None) for opened in table.open_all(files.entries()) for batch in opened.read_whole())


def _commit(write: WritePlan, files: WrittenFiles, invalid: int) -> CommitResult:
    snapshot = write.snapshot
    if _changes_nothing(write, files, invalid):
        return CommitResult(None)
    if snapshot is None:
        context = _context(write, "ErrorIfExists", files, invalid)
        version = log_transaction.create_table(write.store, write.after, files.adds, context=context)
    else:
        context = _context(write, "Append", files, invalid)
        version = log_transaction.add_files(snapshot, files.adds, context=context, after=write.after)
    return CommitResult(version, metrics=context.metrics)


def _changes_nothing(write: WritePlan, files: WrittenFiles, invalid: int) -> bool:
    """Return whether a write neither adds rows nor changes the metadata of a table.

    If all values are rejected, it changes the table: a write with the same `txn` must not reject them again.
    """
    snapshot = write.snapshot
    same = snapshot is not None and write.after.metadata == snapshot.metadata
    return same and not files and not invalid


def _context(write: WritePlan, mode: str, files: WrittenFiles, invalid: int, **metrics: int) -> CommitContext:
    """Return the context of a commit that writes `files`, with further metrics."""
    partitions = msgspec.json.encode(write.after.partition_columns).decode()
    parameters = {"mode": mode, "partitionBy": partitions}
    if write.replaces and write.request.table.where is not None:
        parameters["predicate"] = write.request.table.where
    if write.options.json.on_invalid != "error":
        metrics["numInvalidValues"] = invalid
    return commit_context(
        "WRITE",
        parameters,
        {"numFiles": len(files), "numOutputRows": files.rows, "numOutputBytes": files.bytes, **metrics},
        write.commit,
    )


def _overwrite(write: WritePlan, snapshot: Snapshot, files: WrittenFiles, invalid: int) -> WriteResult:
    """Commit the replacement of rows by `files`."""
    predicate = write.replaced_rows(snapshot)
    if write.request.table.is_dynamic:
        predicate = _rows_of_partitions(write, snapshot, files)
    try:
        rewritten = overwrite_rows(snapshot, predicate, write.after, write.options, files)
    except BaseException:
        discard(write.store, files.paths())
        raise
    if not rewritten.removed.num_rows and _changes_nothing(write, files, invalid):
        return WriteResult(None)
    metrics = {
        "numRemovedFiles": rewritten.files_removed,
        "numAddedChangeFiles": len(rewritten.changes),
        "numDeletedRows": rewritten.changed,
        "numCopiedRows": rewritten.copied,
    }
    context = _context(write, "Overwrite", rewritten.files, invalid, **metrics)
    committed = commit_replacement(
        snapshot, rewritten, predicate, context, changes_selected=True, after=write.after
    )
    return WriteResult(
        committed.version,
        files.rows,
        invalid,
        files.files,
        rewritten.changed,
        rewritten.copied,
        metrics=committed.metrics,
    )


def _rows_of_partitions(write: WritePlan, snapshot: Snapshot, files: WrittenFiles) -> Expression:
    """Return the predicate of the rows in the partitions of files."""
    after = write.after
    names = {field.name: field for field in after.schema.fields if field.name in after.partition_columns}
    partitions: list[Expression] = []
    for texts in {tuple(add.partition_values.items()): add.partition_values for add in files.adds}.values():
        parts: list[Expression] = []
        for name, field in names.items():
            text = texts[physical_name(field, after.mapping_mode)]
            value = partition_value_from_string(text, field.type, after.timezone)
            literal = Literal(pa.scalar(value, to_arrow_type(field.type)))
            parts.append(Call("<=>", (Name((name,)), literal)))
        partitions.append(parts[0] if len(parts) == 1 else Call("and", tuple(parts)))
    false = Literal(pa.scalar(False))
    return Scope.of(snapshot.configuration).condition(
        Call("or", (false, *partitions)) if partitions else false
    )
