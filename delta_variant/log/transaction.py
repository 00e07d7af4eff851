"""Commits: a new table, or files for a table that there is, checked against concurrent writers and retried.

A commit is never overwritten. An append depends on the protocol, the metadata and its `txn` only, so it goes
through behind any other commit that leaves these alone. One that replaces files depends on what it read, too,
and one that commits files once more on these (PROTOCOL.md, "Commit Provenance Information", "In-Commit
Timestamps", "Row Tracking").
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from random import Random
from time import sleep
from typing import Any

import msgspec
import pyarrow as pa

from ..errors import (
    CommitConflictError,
    CommitUnknownError,
    MalformedLogError,
    ProtocolError,
    StoreError,
    TableExistsError,
    VersionExistsError,
)
from ..protocol import features, properties
from ..protocol.actions import (
    Action,
    AddCDCFile,
    AddFile,
    CommitInfo,
    DeletionVector,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    Txn,
    decode_path,
    encode_parameters,
    encode_path,
    file_key,
    path_key,
)
from ..storage.store import Store
from . import commits
from .checkpoints import writing as checkpoint_writing
from .commits import CommitActions, commit_file_time, read_next_commits
from .listing import commit_file_name
from .snapshot import Snapshot

__all__ = [
    "Clock",
    "CommitInterrupted",
    "Reads",
    "add_files",
    "create_table",
    "recommit_files",
    "replace_files",
]

_LOGGER = logging.getLogger(__name__)

Clock = Callable[[], int]
"""Gives the time in milliseconds since 1970."""

Obstacle = Callable[[Sequence[Action]], "str | None"]
"""Says what in a concurrent commit stands in the way, None where nothing does."""

CREATE_ATTEMPTS = 10
"""How often a creation is tried while an object store answers that another one is under way."""
SHORTEST_WAIT = 0.01
WAITS_GROWN = 6

ROW_TRACKING_DOMAIN = "delta.rowTracking"


class CommitInterrupted(KeyboardInterrupt):
    """An interrupt during or after a commit; the message says whether the commit happened."""


@dataclass(frozen=True)
class Reads:
    """What a commit relies on: the files that it read, and those that it would have read.

    `files` are rows of `Snapshot.files`. `may_match` says of files that others add whether they may hold a
    row that the operation asked for; `with_appends` that blind appends are looked at in any table.
    """

    files: pa.Table
    may_match: Callable[[Sequence[AddFile]], bool]
    with_appends: bool = False


def create_table(
    store: Store,
    protocol: Protocol,
    metadata: Metadata,
    adds: Sequence[AddFile] = (),
    *,
    txn: Txn | None = None,
    origin: Txn | None = None,
    operation: str = "CREATE TABLE",
    operation_parameters: Mapping[str, Any] | None = None,
    operation_metrics: Mapping[str, int | str] | None = None,
    clock: Clock,
    engine_info: str,
    txn_id: str,
) -> int:
    """Commit version 0 of a table, with its first files, and return 0.

    `origin` is a second `txn` action, which records the run that numbers the versions of `txn`. Raises
    TableExistsError when another writer was first.
    """
    provenance = _Provenance(
        operation, operation_parameters, operation_metrics, engine_info, txn_id, None, True
    )
    table_actions = tuple(action for action in (protocol, metadata, txn, origin) if action is not None)
    draft = _Draft(protocol, metadata, table_actions, tuple(adds), provenance)
    for attempt in range(CREATE_ATTEMPTS):
        if _is_first(store, 0, _actions(draft, _NOTHING, clock)):
            return 0
        if winners := _winners_of_lost_race(store, -1):
            if any(_is_own(actions, txn_id) for _, actions in winners):
                return 0
            raise TableExistsError(f"there is a Delta table at {store.uri} already")
        sleep(_pause(txn_id, attempt))
    raise CommitConflictError(
        f"{store.uri}: other writers were creating the table at the same time; try again"
    )


def add_files(
    snapshot: Snapshot,
    adds: Sequence[AddFile],
    *,
    data_change: bool = True,
    new_metadata: Metadata | None = None,
    new_protocol: Protocol | None = None,
    txn: Txn | None = None,
    origin: Txn | None = None,
    operation: str = "WRITE",
    operation_parameters: Mapping[str, Any] | None = None,
    operation_metrics: Mapping[str, int | str] | None = None,
    clock: Clock,
    engine_info: str,
    txn_id: str,
    max_attempts: int = 1000,
) -> int:
    """Commit files on top of `snapshot`, behind whatever was committed since, and return the version.

    `data_change=False` says that the files only rearrange rows. `origin` is that of `create_table`. Every
    `delta.checkpointInterval` versions a checkpoint follows, named by `txn_id` where it needs a name; that it
    cannot be written is logged and no failure. Raises CommitConflictError when a concurrent
    commit changed protocol or metadata or has a `txn` of the same application, and ProtocolError for adds
    without `numRecords` in a table that supports row tracking.
    """
    provenance = _Provenance(
        operation, operation_parameters, operation_metrics, engine_info, txn_id, snapshot.version, data_change
    )
    draft = _Draft(
        new_protocol or snapshot.protocol,
        new_metadata or snapshot.metadata,
        tuple(action for action in (new_protocol, new_metadata, txn, origin) if action is not None),
        tuple(msgspec.structs.replace(add, data_change=data_change) for add in adds),
        provenance,
    )
    return _commit_behind(
        snapshot, draft, clock, max_attempts, lambda actions: _obstacle_to_append(actions, txn)
    )


def replace_files(
    snapshot: Snapshot,
    removed: pa.Table,
    adds: Sequence[AddFile],
    *,
    reads: Reads,
    changes: Sequence[AddCDCFile] = (),
    data_change: bool = True,
    new_metadata: Metadata | None = None,
    new_protocol: Protocol | None = None,
    domains: Sequence[DomainMetadata] = (),
    txn: Txn | None = None,
    origin: Txn | None = None,
    operation: str,
    operation_parameters: Mapping[str, Any] | None = None,
    operation_metrics: Mapping[str, int | str] | None = None,
    clock: Clock,
    engine_info: str,
    txn_id: str,
    max_attempts: int = 1000,
) -> int:
    """Commit that files of `snapshot` are gone and others are there, and return the version.

    `removed` are rows of `Snapshot.files`, `changes` change data files. `data_change=False` says that the
    rows are the same. `origin` is that of `create_table`. Raises CommitConflictError when a concurrent commit
    changed protocol, metadata or one of `domains`, has a `txn` of the same application, removed a file that
    was read, or added one that would have been read: unless rows stay the same, or the table is
    `WriteSerializable` and the other commit a blind append.
    """
    provenance = _Provenance(
        operation, operation_parameters, operation_metrics, engine_info, txn_id, snapshot.version, False
    )
    file_actions: tuple[Action, ...] = (*_removes(removed, clock(), data_change), *changes)
    draft = _Draft(
        new_protocol or snapshot.protocol,
        new_metadata or snapshot.metadata,
        (
            *(each for each in (new_protocol, new_metadata, txn, origin) if each is not None),
            *domains,
            *file_actions,
        ),
        tuple(msgspec.structs.replace(add, data_change=data_change) for add in adds),
        provenance,
    )
    paths = {path_key(str(path)) for files in (reads.files, removed) for path in files["path"].to_pylist()}
    isolation = properties.get(draft.metadata.configuration, properties.ISOLATION_LEVEL)
    tolerates_appends = isolation == "WriteSerializable" and new_metadata is None and not reads.with_appends
    names = {each.domain for each in domains}

    def obstacle(actions: Sequence[Action]) -> str | None:
        found = _obstacle_to_append(actions, txn) or _removal(actions, paths) or _domain(actions, names)
        if found or not data_change or (tolerates_appends and _is_blind_append(actions)):
            return found
        return _addition(actions, reads.may_match)

    return _commit_behind(snapshot, draft, clock, max_attempts, obstacle)


def recommit_files(
    snapshot: Snapshot,
    adds: Sequence[AddFile],
    *,
    operation: str,
    operation_parameters: Mapping[str, Any] | None = None,
    operation_metrics: Mapping[str, int | str] | None = None,
    clock: Clock,
    engine_info: str,
    txn_id: str,
    max_attempts: int = 1000,
) -> int:
    """Commit files that `snapshot` has once more, with `dataChange=false`, and return the version.

    The fields of `adds` are theirs, row ids too; files without get some where the table supports row
    tracking. Raises CommitConflictError when a concurrent commit changed protocol or metadata, or removed or
    committed one of the files: what is known of it no longer holds; and ProtocolError as `add_files` does.
    """
    provenance = _Provenance(
        operation, operation_parameters, operation_metrics, engine_info, txn_id, snapshot.version, False
    )
    unchanged = tuple(msgspec.structs.replace(add, data_change=False) for add in adds)
    draft = _Draft(snapshot.protocol, snapshot.metadata, (), unchanged, provenance)
    paths = {file_key(add)[0] for add in adds}

    def obstacle(actions: Sequence[Action]) -> str | None:
        return _obstacle_to_append(actions, None) or _change_of_files(actions, paths)

    return _commit_behind(snapshot, draft, clock, max_attempts, obstacle)


def _commit_behind(
    snapshot: Snapshot, draft: _Draft, clock: Clock, max_attempts: int, obstacle: Obstacle
) -> int:
    """Commit behind whatever was committed since `snapshot`, unless an action of it is in the way."""
    txn_id = draft.provenance.txn_id
    base = _Base(
        snapshot.version, snapshot.timestamp, _high_water_mark(snapshot.domain_metadata.values(), -1)
    )
    draft = replace(draft, begins_timestamps=_begins_timestamps(snapshot, draft))
    for attempt in range(max_attempts):
        version = base.version + 1
        if draft.begins_timestamps:
            base = replace(base, timestamp=commit_file_time(snapshot.store, base.version))
        if not _is_first(snapshot.store, version, _actions(draft, base, clock)):
            winners = _winners_of_lost_race(snapshot.store, base.version)
            own = next((won for won, actions in winners if _is_own(actions, txn_id)), None)
            if own is None:
                base = _behind(base, winners, snapshot.uri, obstacle)
                sleep(_pause(txn_id, attempt))
                continue
            version = own
        _write_checkpoint_when_due(snapshot.store, version, draft.metadata.configuration, clock, txn_id)
        return version
    raise CommitConflictError(
        f"{snapshot.uri}: other writers were first {max_attempts} times, at last "
        f"with version {base.version}; try again"
    )


def _pause(txn_id: str, attempt: int) -> float:
    """Return how many seconds to wait before the next attempt: writers that all come at once lose most."""
    longest: float = SHORTEST_WAIT * 2 ** min(attempt, WAITS_GROWN)
    return Random(f"{txn_id} {attempt}").uniform(0, longest)


def _is_first(store: Store, version: int, actions: Iterable[Action]) -> bool:
    """Commit a version, or tell that it is there: of another writer, or our own whose answer was lost.

    Raises CommitUnknownError where the store gave no answer and there is no such version yet.
    """
    try:
        commits.write_commit(store, version, actions)
    except VersionExistsError:
        return False
    except KeyboardInterrupt as interrupt:
        raise CommitInterrupted(
            f"interrupted during the commit of version {version} of {store.uri}: "
            "look at its history to see whether it happened"
        ) from interrupt
    except CommitUnknownError:
        if not _winners(store, version - 1):
            raise
        return False
    return True


def _winners(store: Store, version: int) -> list[CommitActions]:
    """Return the commits behind a version, one of which may be our own.

    Raises CommitUnknownError where they cannot be read.
    """
    try:
        return read_next_commits(store, version)
    except StoreError as error:
        raise CommitUnknownError(f"{error}: whether version {version + 1} is ours is not known") from error


def _winners_of_lost_race(store: Store, version: int) -> list[CommitActions]:
    """Return the commits after a version.

    There is none where an object store answers that another put of the next version is under way: the next
    attempt decides. Raises StoreError where a local file of the next version exists and can never be read,
    such as a directory: each attempt to commit would fail in the same way.
    """
    for _ in range(2):
        if winners := _winners(store, version):
            return winners
        sleep(SHORTEST_WAIT)
    if store.local_root is None:
        return []
    name = f"{store.uri}/{commit_file_name(version + 1)}"
    raise StoreError(
        f"cannot commit version {version + 1} because {name} exists and cannot be read as a file: remove it"
    )


@dataclass(frozen=True)
class _Provenance:
    """What `commitInfo` says of a commit, but for its times."""

    operation: str
    parameters: Mapping[str, Any] | None
    metrics: Mapping[str, int | str] | None
    engine_info: str
    txn_id: str
    read_version: int | None
    is_blind_append: bool


@dataclass(frozen=True)
class _Draft:
    """A commit before it has a version: the protocol and metadata that it leaves behind, and its actions.

    `begins_timestamps` says that it is the first commit of a table to have an in-commit timestamp.
    """

    protocol: Protocol
    metadata: Metadata
    table_actions: tuple[Action, ...]
    adds: tuple[AddFile, ...]
    provenance: _Provenance
    begins_timestamps: bool = False


@dataclass(frozen=True)
class _Base:
    """What a commit takes over from the version before it; its timestamp is to be above that one's."""

    version: int
    timestamp: int | None
    high_water_mark: int


_NOTHING = _Base(version=-1, timestamp=None, high_water_mark=-1)


def _actions(draft: _Draft, base: _Base, clock: Clock) -> list[Action]:
    """Return the actions of the version behind `base`.

    `commitInfo` comes first (PROTOCOL.md, "Writer Requirements for In-Commit Timestamps").
    """
    version = base.version + 1
    info = _commit_info(draft, base, clock())
    table_actions = draft.table_actions
    if draft.begins_timestamps:
        table_actions = tuple(_with_beginning(action, version, info) for action in table_actions)
    if not _gives_row_ids(draft):
        return [info, *table_actions, *draft.adds]
    adds, high_water_mark = _with_row_ids(draft.adds, version, base.high_water_mark)
    if high_water_mark == base.high_water_mark:
        return [info, *table_actions, *adds]
    mark = msgspec.json.encode({"rowIdHighWaterMark": high_water_mark}).decode()
    domain = DomainMetadata(domain=ROW_TRACKING_DOMAIN, configuration=mark, removed=False)
    return [info, *table_actions, *adds, domain]


def _gives_row_ids(draft: _Draft) -> bool:
    configuration = draft.metadata.configuration
    suspended = properties.get(configuration, properties.ROW_TRACKING_SUSPENDED)
    enabled = properties.get(configuration, properties.ENABLE_ROW_TRACKING)
    return features.supports(draft.protocol, "rowTracking") and (enabled or not suspended)


def _commit_info(draft: _Draft, base: _Base, now: int) -> CommitInfo:
    provenance = draft.provenance
    fields: dict[str, Any] = {}
    if _has_in_commit_timestamps(draft):
        fields["inCommitTimestamp"] = max(now, 0 if base.timestamp is None else base.timestamp + 1)
    fields["timestamp"] = now
    fields["operation"] = provenance.operation
    fields["operationParameters"] = encode_parameters(provenance.parameters or {})
    if provenance.read_version is not None:
        fields["readVersion"] = provenance.read_version
    fields["isBlindAppend"] = provenance.is_blind_append
    fields["operationMetrics"] = {name: str(value) for name, value in (provenance.metrics or {}).items()}
    if properties.get(draft.metadata.configuration, properties.ENABLE_ROW_TRACKING):
        # Whatever moves rows writes their ids and versions with them.
        fields["tags"] = {"delta.rowTracking.preserved": "true"}
    fields["engineInfo"] = provenance.engine_info
    fields["txnId"] = provenance.txn_id
    return CommitInfo(fields)


def _has_in_commit_timestamps(table: _Draft | Snapshot) -> bool:
    return features.supports(table.protocol, "inCommitTimestamp") and properties.get(
        table.metadata.configuration, properties.ENABLE_IN_COMMIT_TIMESTAMPS
    )


def _begins_timestamps(snapshot: Snapshot, draft: _Draft) -> bool:
    return _has_in_commit_timestamps(draft) and not _has_in_commit_timestamps(snapshot)


def _with_beginning(action: Action, version: int, info: CommitInfo) -> Action:
    """Return the metadata with the version and the time from which on timestamps are in the commits."""
    if not isinstance(action, Metadata):
        return action
    configuration = {
        **action.configuration,
        properties.IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION.name: str(version),
        properties.IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP.name: str(info.in_commit_timestamp),
    }
    return msgspec.structs.replace(action, configuration=configuration)


def _with_row_ids(adds: Iterable[AddFile], version: int, high_water_mark: int) -> tuple[list[AddFile], int]:
    numbered: list[AddFile] = []
    for add in adds:
        if add.base_row_id is None:
            add = msgspec.structs.replace(
                add, base_row_id=high_water_mark + 1, default_row_commit_version=version
            )
            high_water_mark += _num_records(add)
        numbered.append(add)
    return numbered, high_water_mark


class _NumRecords(msgspec.Struct, rename="camel"):
    num_records: int


def _num_records(add: AddFile) -> int:
    try:
        return msgspec.json.decode(add.stats or "", type=_NumRecords).num_records
    except msgspec.MsgspecError as error:
        raise ProtocolError(
            f"the statistics of {add.path} have no numRecords: a table that supports rowTracking needs them"
        ) from error


class _HighWaterMark(msgspec.Struct, rename="camel"):
    row_id_high_water_mark: int


def _high_water_mark(actions: Iterable[Action], known: int) -> int:
    for action in actions:
        if isinstance(action, DomainMetadata) and action.domain == ROW_TRACKING_DOMAIN and not action.removed:
            try:
                mark = msgspec.json.decode(action.configuration, type=_HighWaterMark).row_id_high_water_mark
            except msgspec.MsgspecError as error:
                raise MalformedLogError(
                    f"the domain {ROW_TRACKING_DOMAIN} has no rowIdHighWaterMark: {error}"
                ) from error
            known = max(known, mark)
    return known


def _behind(base: _Base, winners: Sequence[CommitActions], uri: str, obstacle: Obstacle) -> _Base:
    """Return the base behind the commits that came first, or raise CommitConflictError for one in the way."""
    for version, actions in winners:
        if (found := obstacle(actions)) is not None:
            raise CommitConflictError(
                f"{uri}: version {version}, committed meanwhile, {found}; load the table again and retry"
            )
        timestamps = (action.in_commit_timestamp for action in actions if isinstance(action, CommitInfo))
        base = replace(
            base,
            version=version,
            timestamp=next(timestamps, None),
            high_water_mark=_high_water_mark(actions, base.high_water_mark),
        )
    return base


def _obstacle_to_append(actions: Sequence[Action], txn: Txn | None) -> str | None:
    for action in actions:
        if isinstance(action, Protocol):
            return "changed the protocol"
        if isinstance(action, Metadata):
            return "changed the metadata"
        if isinstance(action, Txn) and txn is not None and action.app_id == txn.app_id:
            return f"has a transaction of the same application {txn.app_id}"
    return None


def _removal(actions: Sequence[Action], paths: Set[str]) -> str | None:
    removed = (file_key(action)[0] for action in actions if isinstance(action, RemoveFile))
    gone = next((path for path in removed if path in paths), None)
    return None if gone is None else f"removed {gone}, which this operation read"


def _domain(actions: Sequence[Action], names: Set[str]) -> str | None:
    changed = (action.domain for action in actions if isinstance(action, DomainMetadata))
    return next((f"changed the domain {domain}" for domain in changed if domain in names), None)


def _change_of_files(actions: Sequence[Action], paths: Set[str]) -> str | None:
    for action in actions:
        if isinstance(action, AddFile | RemoveFile) and file_key(action)[0] in paths:
            verb = "removed" if isinstance(action, RemoveFile) else "committed"
            return f"{verb} {decode_path(action.path)}"
    return None


def _addition(actions: Sequence[Action], may_match: Callable[[Sequence[AddFile]], bool]) -> str | None:
    # What was only rearranged was in files that another action of the same commit removed.
    adds = [action for action in actions if isinstance(action, AddFile) and action.data_change]
    return "added rows that this operation may have to see" if adds and may_match(adds) else None


def _is_blind_append(actions: Sequence[Action]) -> bool:
    infos = (action for action in actions if isinstance(action, CommitInfo))
    return any(info.fields.get("isBlindAppend") is True for info in infos)


def _removes(files: pa.Table, now: int, data_change: bool) -> list[RemoveFile]:
    """Return the tombstones of files, with all that a reader of changes or row ids needs of them."""
    rows = (row for batch in files.to_batches() for row in batch.to_pylist(maps_as_pydicts="lossy"))
    return [
        RemoveFile(
            path=row["encoded_path"] or encode_path(row["path"]),
            deletion_timestamp=now,
            data_change=data_change,
            extended_file_metadata=True,
            partition_values=row["partition_values"] or {},
            size=row["size"],
            stats=row["stats"],
            tags=row["tags"],
            deletion_vector=row["deletion_vector"] and DeletionVector(**row["deletion_vector"]),
            base_row_id=row["base_row_id"],
            default_row_commit_version=row["default_row_commit_version"],
        )
        for row in rows
    ]


def _write_checkpoint_when_due(
    store: Store, version: int, configuration: Mapping[str, str], clock: Clock, txn_id: str
) -> None:
    try:
        if version % properties.get(configuration, properties.CHECKPOINT_INTERVAL) == 0:
            checkpoint_writing.write_checkpoint(store, version, now=clock(), unique_id=txn_id)
    except KeyboardInterrupt as interrupt:
        raise CommitInterrupted(
            f"interrupted after the commit of version {version} of {store.uri}, during its checkpoint"
        ) from interrupt
    except Exception:  # the version is committed: nothing that goes wrong behind it may say otherwise
        _LOGGER.warning("%s: the checkpoint of version %d was not written", store.uri, version, exc_info=True)


def _is_own(actions: Iterable[Action], txn_id: str) -> bool:
    # A store that repeats a put whose answer was lost says "exists already" of what it wrote itself.
    return any(isinstance(action, CommitInfo) and action.fields.get("txnId") == txn_id for action in actions)
