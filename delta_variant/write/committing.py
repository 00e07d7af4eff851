"""The last step of a write: its files become one version of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import msgspec

from .. import commit
from ..data_file import WrittenFile
from ..errors import CommitConflictError, StoreError, TableExistsError
from ..snapshot import Snapshot
from ..table_files import (
    PartitionFile,
    Rewritten,
    add_file,
    cdc_file,
    delete_rows,
    discard,
    engine_info,
    may_hold,
    now,
    with_inserted,
)
from .preparation import Overwrite, Preparation

__all__ = ["WriteResult", "commit_files"]


@dataclass(frozen=True)
class WriteResult:
    """What a write did.

    `version` is None when nothing was committed. `invalid` counts the values of JSON text that were left out
    or became SQL NULL. `files` hold the new rows. An overwrite took `rows_deleted` away, and wrote
    `rows_copied` of the table's own anew, which stay.
    """

    version: int | None
    rows: int = 0
    invalid: int = 0
    files: tuple[WrittenFile, ...] = ()
    rows_deleted: int = 0
    rows_copied: int = 0


def commit_files(write: Preparation, files: Sequence[PartitionFile], invalid: int = 0) -> WriteResult:
    """Commit the files of a write, or remove them where others were first.

    Raises CommitConflictError, and TableExistsError for a table that another writer created meanwhile.
    """
    written = tuple(file.written for file in files)
    rows = sum(file.rows for file in written)
    if write.snapshot is not None and write.overwrite is not None:
        committed, rewritten = _overwrite(write, write.snapshot, write.overwrite, files)
        return WriteResult(committed, rows, invalid, written, rewritten.changed, rewritten.copied)
    try:
        return WriteResult(_commit(write, files), rows, invalid, written)
    except (CommitConflictError, StoreError, TableExistsError):
        # The commit is known not to have happened; after other errors it may have.
        _discard(write, files)
        raise


def _discard(write: Preparation, files: Sequence[PartitionFile]) -> None:
    discard(write.place, [file.written.path for file in files])


def _commit(write: Preparation, files: Sequence[PartitionFile]) -> int | None:
    target, snapshot = write.target, write.snapshot
    if snapshot is not None and not files and target.new_metadata is None:
        return None
    adds = [add_file(file, target, now()) for file in files]
    if snapshot is None:
        return commit.create_table(
            write.place, target.protocol, target.metadata, adds, **_said(write, "ErrorIfExists", files)
        )
    return commit.add_files(
        snapshot,
        adds,
        new_metadata=target.new_metadata,
        new_protocol=target.new_protocol,
        **_said(write, "Append", files),
    )


def _said(write: Preparation, mode: str, files: Sequence[PartitionFile], **metrics: int) -> dict[str, Any]:
    """Return what the commit says of the write."""
    partitions = msgspec.json.encode(write.target.metadata.partition_columns).decode()
    parameters = {"mode": mode, "partitionBy": partitions}
    if write.overwrite is not None and write.overwrite.text is not None:
        parameters["predicate"] = write.overwrite.text
    return {
        "txn": write.txn,
        "operation": "WRITE",
        "operation_parameters": parameters,
        "operation_metrics": {
            "numFiles": len(files),
            "numOutputRows": sum(file.written.rows for file in files),
            "numOutputBytes": sum(file.written.bytes for file in files),
            **metrics,
        },
        "clock": now,
        "engine_info": engine_info(),
        "txn_id": str(uuid4()),
    }


def _overwrite(
    write: Preparation, snapshot: Snapshot, overwrite: Overwrite, files: Sequence[PartitionFile]
) -> tuple[int, Rewritten]:
    """Commit that `files` take the place of rows, and return the version and what is gone."""
    predicate = overwrite.predicate
    try:
        rewritten = delete_rows(snapshot, predicate, write.target, write.options)
    except BaseException:
        _discard(write, files)
        raise
    rewritten = with_inserted(snapshot, write.target, rewritten, files)
    metrics = {
        "numRemovedFiles": rewritten.removed.num_rows,
        "numAddedChangeFiles": len(rewritten.changes),
        "numDeletedRows": rewritten.changed,
        "numCopiedRows": rewritten.copied,
    }
    try:
        version = commit.replace_files(
            snapshot,
            rewritten.removed,
            [add_file(file, write.target, now()) for file in rewritten.files],
            changes=[cdc_file(file) for file in rewritten.changes],
            reads=commit.Reads(rewritten.plan.files, lambda adds: may_hold(snapshot, predicate, adds)),
            new_metadata=write.target.new_metadata,
            new_protocol=write.target.new_protocol,
            **_said(write, "Overwrite", rewritten.files, **metrics),
        )
    except (CommitConflictError, StoreError):
        discard(write.place, rewritten.paths)
        raise
    return version, rewritten
