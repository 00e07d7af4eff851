"""A commit before it has a version, the actions of the version that it becomes, and its row ids.

See PROTOCOL.md, "Commit Provenance Information", "In-Commit Timestamps" and "Row Tracking".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from ..errors import MalformedLogError, ProtocolError
from ..protocol import properties
from ..protocol.actions import (
    ROW_TRACKING_DOMAIN,
    Action,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    decode_path,
    encode_parameters,
)
from ..protocol.table_configuration import TableConfiguration
from .commit_context import CommitContext
from .file_changes import FileChanges
from .snapshot import Snapshot

__all__ = [
    "EMPTY_BASE",
    "NO_ROW_IDS",
    "Base",
    "PendingCommit",
    "read_high_water_mark",
    "starts_in_commit_timestamps",
]

NO_ROW_IDS = -1
"""The high water mark of a table that has not assigned a row id."""


@dataclass(frozen=True)
class Base:
    """The version that a commit follows: its in-commit timestamp, and the greatest row id of the table."""

    version: int
    timestamp: int | None
    high_water_mark: int


EMPTY_BASE = Base(version=-1, timestamp=None, high_water_mark=NO_ROW_IDS)
"""The base of version 0."""


@dataclass(frozen=True)
class PendingCommit:
    """A commit before it has a version.

    `table` is the table after the commit. `table_actions` are the actions other than `commitInfo` and those
    of `files`. `starts_timestamps` states that the commit is the first one of the table with an in-commit
    timestamp.
    """

    table: TableConfiguration
    table_actions: tuple[Action, ...]
    files: FileChanges
    context: CommitContext
    read_version: int | None
    is_blind_append: bool
    starts_timestamps: bool = False

    def actions_after(self, base: Base) -> list[Action]:
        """Return the actions of the version after `base`, without those of `files`.

        `commitInfo` is the first one (PROTOCOL.md, "Writer Requirements for In-Commit Timestamps").
        """
        version = base.version + 1
        info = self._commit_info(base)
        table_actions = self.table_actions
        if self.starts_timestamps:
            table_actions = tuple(_record_start(action, version, info) for action in table_actions)
        return [info, *table_actions]

    def adds_after(self, base: Base) -> Iterator[Action]:
        """Yield the actions of the files that the version after `base` adds, and the greatest row id.

        Raises ProtocolError if a file that needs row ids has no `numRecords`.
        """
        adds = self.files.adds()
        return _assign_row_ids(adds, base.version + 1, base.high_water_mark) if self.has_row_ids else adds

    @property
    def has_row_ids(self) -> bool:
        """Return whether the added files have row ids, which depend on the version before."""
        return self.table.assigns_row_ids

    def _commit_info(self, base: Base) -> CommitInfo:
        context, now = self.context, self.context.clock()
        fields: dict[str, Any] = {}
        if self.table.enables("inCommitTimestamp"):
            fields["inCommitTimestamp"] = max(now, 0 if base.timestamp is None else base.timestamp + 1)
        fields["timestamp"] = now
        fields["operation"] = context.operation
        fields["operationParameters"] = encode_parameters(context.parameters)
        if context.user_metadata is not None:
            fields["userMetadata"] = context.user_metadata
        if self.read_version is not None:
            fields["readVersion"] = self.read_version
        fields["isBlindAppend"] = self.is_blind_append
        fields["operationMetrics"] = {name: str(value) for name, value in context.metrics.items()}
        if self.table.get(properties.ENABLE_ROW_TRACKING):
            # Every operation that moves rows writes their ids and versions with them.
            fields["tags"] = {"delta.rowTracking.preserved": "true"}
        fields["engineInfo"] = context.engine_info
        fields["txnId"] = context.txn_id
        return CommitInfo(fields)


def starts_in_commit_timestamps(snapshot: Snapshot, pending: PendingCommit) -> bool:
    """Return whether a commit enables in-commit timestamps, which `snapshot` does not have."""
    tables = (pending.table, snapshot.configuration)
    return [table.enables("inCommitTimestamp") for table in tables] == [True, False]


def _record_start(action: Action, version: int, info: CommitInfo) -> Action:
    """Return the action; if it is the metadata, with the first version that has an in-commit timestamp."""
    if not isinstance(action, Metadata):
        return action
    configuration = {
        **action.configuration,
        properties.IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION.name: str(version),
        properties.IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP.name: str(info.in_commit_timestamp),
    }
    return msgspec.structs.replace(action, configuration=configuration)


class _HighWaterMark(msgspec.Struct, rename="camel"):
    row_id_high_water_mark: int


class _NumRecords(msgspec.Struct, rename="camel"):
    num_records: int


def _assign_row_ids(adds: Iterable[AddFile], version: int, high_water_mark: int) -> Iterator[Action]:
    """Yield the files of a version, each with row ids, and the record of the greatest id if it is a new one.

    A file that has row ids keeps them. Raises ProtocolError for any other file without `numRecords`.
    """
    greatest = high_water_mark
    for add in adds:
        if add.base_row_id is None:
            add = msgspec.structs.replace(add, base_row_id=greatest + 1, default_row_commit_version=version)
            greatest += _num_records(add)
        yield add
    if greatest > high_water_mark:
        yield _record(greatest)


def _record(high_water_mark: int) -> DomainMetadata:
    text = msgspec.json.encode(_HighWaterMark(high_water_mark)).decode()
    return DomainMetadata(domain=ROW_TRACKING_DOMAIN, configuration=text, removed=False)


def read_high_water_mark(actions: Iterable[Action], known: int) -> int:
    """Return the greatest row id that actions record, or `known` if that is greater.

    Raises MalformedLogError for a record without `rowIdHighWaterMark`.
    """
    for action in actions:
        if isinstance(action, DomainMetadata) and action.domain == ROW_TRACKING_DOMAIN and not action.removed:
            try:
                mark = msgspec.json.decode(action.configuration, type=_HighWaterMark).row_id_high_water_mark
            except msgspec.MsgspecError as error:
                raise MalformedLogError(
                    f"cannot read rowIdHighWaterMark in the domain {ROW_TRACKING_DOMAIN}: {error}"
                ) from error
            known = max(known, mark)
    return known


def _num_records(add: AddFile) -> int:
    try:
        return msgspec.json.decode(add.stats or "", type=_NumRecords).num_records
    except msgspec.MsgspecError as error:
        raise ProtocolError(
            f"the statistics of {add.path} lack numRecords, which a table with rowTracking needs",
            file=decode_path(add.path),
        ) from error
