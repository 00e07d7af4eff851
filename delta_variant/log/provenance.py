"""A commit before it has a version, and the actions of the version that it becomes.

See PROTOCOL.md, "Commit Provenance Information" and "In-Commit Timestamps".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec

from ..protocol import properties
from ..protocol.actions import Action, CommitInfo, Metadata, Txn, encode_parameters
from ..protocol.table_configuration import TableConfiguration
from .file_changes import FileChanges
from .row_ids import NO_ROW_IDS, assign_row_ids
from .snapshot import Snapshot

__all__ = ["EMPTY_BASE", "Base", "Clock", "CommitContext", "PendingCommit", "starts_in_commit_timestamps"]

Clock: TypeAlias = Callable[[], int]
"""Returns the time in milliseconds since 1970."""


@dataclass(frozen=True, kw_only=True)
class CommitContext:
    """Which operation commits, for whom, and when.

    `operation`, `parameters`, `metrics`, `user_metadata` and `engine_info` are fields of `commitInfo`.
    `txn_id` is unique to the commit: a writer recognizes its own commit by it. `clock` returns the time of
    each attempt. `txn` is the application transaction that the commit records, and `origin` a second one,
    which records the run that numbers the versions of `txn`.
    """

    operation: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, int | str] = field(default_factory=dict)
    user_metadata: str | None = None
    engine_info: str
    txn_id: str
    clock: Clock
    txn: Txn | None = None
    origin: Txn | None = None


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
        return assign_row_ids(adds, base.version + 1, base.high_water_mark) if self.has_row_ids else adds

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
