"""A commit before it has a version: its files, its actions and row ids, and its lines in the commit file.

See PROTOCOL.md, "Commit Provenance Information", "In-Commit Timestamps" and "Row Tracking".
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import Any, BinaryIO, cast

import msgspec
import pyarrow as pa

from ..errors import MalformedLogError, ProtocolError
from ..protocol import properties
from ..protocol.actions import (
    ADVANCES_IDENTITIES,
    ROW_TRACKING_DOMAIN,
    Action,
    AddCDCFile,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    decode_path,
    encode_commit,
    encode_parameters,
)
from ..protocol.identity_columns import differ_in_high_water_marks
from ..protocol.table_configuration import TableConfiguration
from .commit_context import CommitContext
from .file_tables import FILES_SCHEMA, add_actions, files_table, remove_actions
from .snapshot import Snapshot

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

    `snapshot` is the table that it is based on, None for a new table, and `table` the table after it.
    `table_actions` are the actions other than `commitInfo` and those of `files`.
    """

    snapshot: Snapshot | None
    table: TableConfiguration
    table_actions: tuple[Action, ...]
    files: FileChanges
    context: CommitContext
    is_blind_append: bool

    @classmethod
    def on(
        cls,
        snapshot: Snapshot,
        after: TableConfiguration | None,
        files: FileChanges,
        context: CommitContext,
        *,
        domains: Sequence[DomainMetadata] = (),
        is_blind_append: bool = False,
    ) -> PendingCommit:
        """Return a commit on top of a snapshot; `after` is None if the table stays as it is."""
        table = after or snapshot.configuration
        pairs = ((table.protocol, snapshot.protocol), (table.metadata, snapshot.metadata))
        changes = (action for action, before in pairs if action != before)
        return cls(
            snapshot, table, (*changes, *context.transactions, *domains), files, context, is_blind_append
        )

    @property
    def changes_table(self) -> bool:
        """Return whether the commit has another protocol or other metadata."""
        return any(isinstance(action, Protocol | Metadata) for action in self.table_actions)

    @cached_property
    def starts_timestamps(self) -> bool:
        """Return whether the commit is the first one of an existing table with an in-commit timestamp."""
        if self.snapshot is None or self.snapshot.configuration.enables("inCommitTimestamp"):
            return False
        return self.table.enables("inCommitTimestamp")

    @cached_property
    def advances_identities(self) -> bool:
        """Return whether the table differs only in high water marks of identity columns."""
        if (before := self.snapshot) is None:
            return False
        metadata = msgspec.structs.replace(self.table.metadata, schema_string=before.metadata.schema_string)
        return (
            self.table.protocol == before.protocol
            and metadata == before.metadata
            and differ_in_high_water_marks(self.table.schema, before.schema)
        )

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
        if self.snapshot is not None:
            fields["readVersion"] = self.snapshot.version
        fields["isBlindAppend"] = self.is_blind_append
        metrics = {**context.metrics, **self.files.rebased.metrics}
        fields["operationMetrics"] = {name: str(value) for name, value in metrics.items()}
        tags = {
            # Every operation that moves rows writes their ids and versions with them.
            "delta.rowTracking.preserved": self.table.get(properties.ENABLE_ROW_TRACKING),
            ADVANCES_IDENTITIES: self.advances_identities,
        }
        if any(tags.values()):
            fields["tags"] = {name: "true" for name, is_true in tags.items() if is_true}
        fields["engineInfo"] = context.engine_info
        fields["txnId"] = context.txn_id
        return CommitInfo(fields)


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
        yield row_id_record(greatest)


def row_id_record(high_water_mark: int) -> DomainMetadata:
    """Return the record of the greatest row id that a table has assigned."""
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


_ACTIONS_AT_ONCE = 1000
_ROWS_AT_ONCE = 20_000
_LARGEST_IN_MEMORY = 16 << 20
_COPIED_BYTES = 1 << 20


class RebasedFiles(msgspec.Struct, frozen=True):
    """The removed and added files of a commit that a rebase may replace by others.

    `before` are removed, rows of `Snapshot.files`. `after` are added, and may be the same data files.
    `metrics` are the metrics of the commit that a rebase changes.
    """

    before: pa.Table = pa.Table.from_batches([], FILES_SCHEMA)
    after: Sequence[AddFile] = ()
    metrics: Mapping[str, int] = {}


class FileChanges(msgspec.Struct, frozen=True):
    """The files that a commit removes and adds.

    `removed` are rows of `Snapshot.files`. They are removed at `removed_at`, in milliseconds since 1970.
    `added` are actions, or rows of `Snapshot.files`, which need less memory. `data_change=False` states that
    the rows of the table stay the same. `changes` are change data files, and are iterated over once.
    `rebased` are further files, which may differ between attempts to commit.
    """

    added: Sequence[AddFile] | pa.Table = ()
    removed: pa.Table = pa.Table.from_batches([], FILES_SCHEMA)
    removed_at: int = 0
    data_change: bool = True
    changes: Iterable[AddCDCFile] = ()
    rebased: RebasedFiles = RebasedFiles()

    def fixed_adds(self) -> Iterator[AddFile]:
        """Yield the actions of the added files that are the same in each attempt."""
        added = add_actions(self.added) if isinstance(self.added, pa.Table) else self.added
        return self._with_data_change(added)

    def rebased_adds(self) -> Iterator[AddFile]:
        """Yield the actions of the other added files."""
        return self._with_data_change(self.rebased.after)

    def adds(self) -> Iterator[AddFile]:
        return chain(self.fixed_adds(), self.rebased_adds())

    def fixed_removes(self) -> Iterator[RemoveFile]:
        """Yield the actions of the removed files that are the same in each attempt."""
        return remove_actions(self.removed, self.removed_at, data_change=self.data_change)

    def rebased_removes(self) -> Iterator[RemoveFile]:
        """Yield the actions of the other removed files."""
        return remove_actions(self.rebased.before, self.removed_at, data_change=self.data_change)

    def removed_table(self) -> pa.Table:
        return pa.concat_tables([self.removed, self.rebased.before])

    def added_table(self) -> pa.Table:
        """Return all added files as rows of `Snapshot.files`; those of actions have no statistics."""
        if isinstance(self.added, pa.Table):
            return pa.concat_tables([self.added, *_tables_of(self.rebased.after)])
        return pa.concat_tables([*_tables_of(self.added), *_tables_of(self.rebased.after)])

    def _with_data_change(self, adds: Iterable[AddFile]) -> Iterator[AddFile]:
        return (msgspec.structs.replace(add, data_change=self.data_change) for add in adds)


def _tables_of(adds: Sequence[AddFile]) -> Iterator[pa.Table]:
    """Yield tables of files without statistics, at least one."""
    yield pa.Table.from_batches([], FILES_SCHEMA)
    for row in range(0, len(adds), _ROWS_AT_ONCE):
        some = adds[row : row + _ROWS_AT_ONCE]
        yield files_table([msgspec.structs.replace(add, stats=None) for add in some])


class CommitText:
    """Lines of a commit file, which are in a temporary file if they are long.

    They are encoded while they are added, so that the actions need not be in memory at the same time.
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._file: BinaryIO | None = None

    def __enter__(self) -> CommitText:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, actions: Iterable[Action]) -> list[Action]:
        """Append the lines of actions, and return those that are not on files."""
        others: list[Action] = []
        remaining = iter(actions)
        while some := list(islice(remaining, _ACTIONS_AT_ONCE)):
            self._append(encode_commit(some))
            others += [action for action in some if not isinstance(action, (AddFile, RemoveFile))]
        return others

    def extend(self, other: CommitText) -> None:
        """Append the lines of another text."""
        for part in other.parts():
            self._append(part)

    def parts(self) -> Iterator[bytes]:
        if self._file is None:
            yield from self._parts
            return
        self._file.seek(0)
        while part := self._file.read(_COPIED_BYTES):
            yield part

    def content(self) -> bytes | BinaryIO:
        if self._file is None:
            return b"".join(self._parts)
        self._file.flush()
        return self._file

    def _append(self, data: bytes) -> None:
        if self._file is None and self._size + len(data) > _LARGEST_IN_MEMORY:
            self._file = cast(BinaryIO, tempfile.TemporaryFile(prefix="delta-variant-commit-"))  # noqa: SIM115
            self._file.writelines(self._parts)
            self._parts.clear()
        self._size += len(data)
        if self._file is None:
            self._parts.append(data)
        else:
            self._file.write(data)
