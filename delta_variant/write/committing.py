"""The last step of a write: its files become one version of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any
from uuid import uuid4

import msgspec

from .. import commit, features
from ..actions import AddFile, encode_path
from ..data_file import WrittenFile
from ..errors import CommitConflictError, TableExistsError
from .partitions import PartitionFile, discard
from .preparation import Preparation
from .target import now

__all__ = ["WriteResult", "commit_files"]


@dataclass(frozen=True)
class WriteResult:
    """What a write did.

    `version` is None when nothing was committed. `invalid` counts the values of JSON text that were left out
    or became SQL NULL.
    """

    version: int | None
    rows: int = 0
    invalid: int = 0
    files: tuple[WrittenFile, ...] = ()


def commit_files(write: Preparation, files: Sequence[PartitionFile], invalid: int = 0) -> WriteResult:
    """Commit the files of a write, or remove them where others were first.

    Raises CommitConflictError, and TableExistsError for a table that another writer created meanwhile.
    """
    try:
        committed = _commit(write, files)
    except (CommitConflictError, TableExistsError):
        # The commit is known not to have happened; after other errors it may have.
        discard(write.place, [file.written.path for file in files])
        raise
    written = tuple(file.written for file in files)
    return WriteResult(committed, sum(file.rows for file in written), invalid, written)


def _commit(write: Preparation, files: Sequence[PartitionFile]) -> int | None:
    target, snapshot = write.target, write.snapshot
    if snapshot is not None and not files and target.new_metadata is None:
        return None
    tight = True if features.supports(target.protocol, "deletionVectors") else None
    adds = [_add_file(file, tight) for file in files]
    partitions = msgspec.json.encode(target.metadata.partition_columns).decode()
    common: dict[str, Any] = {
        "txn": write.txn,
        "operation": "WRITE",
        "operation_metrics": {
            "numFiles": len(files),
            "numOutputRows": sum(file.written.rows for file in files),
            "numOutputBytes": sum(file.written.bytes for file in files),
        },
        "clock": now,
        "engine_info": _engine_info(),
        "txn_id": str(uuid4()),
    }
    if snapshot is None:
        parameters = {"mode": "ErrorIfExists", "partitionBy": partitions}
        return commit.create_table(
            write.place, target.protocol, target.metadata, adds, operation_parameters=parameters, **common
        )
    return commit.add_files(
        snapshot,
        adds,
        new_metadata=target.new_metadata,
        new_protocol=target.new_protocol,
        operation_parameters={"mode": "Append", "partitionBy": partitions},
        **common,
    )


def _add_file(file: PartitionFile, tight_bounds: bool | None) -> AddFile:
    return AddFile(
        path=encode_path(file.written.path),
        partition_values=dict(file.partition_values),
        size=file.written.bytes,
        modification_time=now(),
        data_change=True,
        stats=replace(file.written.stats, tight_bounds=tight_bounds).to_json(),
    )


def _engine_info() -> str:
    return f"delta-variant/{version('delta-variant')}"
