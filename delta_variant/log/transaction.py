"""Commits: create a table, or commit to one on top of concurrent commits, with retries.

A commit never overwrites another one. A writer that loses the race for a version checks the concurrent
commits for conflicts, and tries the next version.

Writers do not know of each other, so they wait for random times. The bound of the wait doubles with each lost
race, which relieves the store, and shrinks with the square of the time since the first one, which lets the
writers that have waited longest commit before others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from time import monotonic, sleep

import msgspec
import pyarrow as pa

from .._logging import get_logger
from ..errors import (
    CommitConflictError,
    CommitUnknownError,
    StoreError,
    TableExistsError,
    TableNotFoundError,
    VersionExistsError,
)
from ..protocol import features, properties
from ..protocol.actions import Action, AddCDCFile, AddFile, DomainMetadata, commit_infos
from ..protocol.table_configuration import TableConfiguration
from ..storage.store import Store, file_info
from . import catalog, cleanup, commits
from .checkpoints import writing as checkpoint_writing
from .checksum import write_checksum
from .commit_context import CommitContext
from .commits import CommitActions, read_next_commits
from .conflicts import (
    FindConflict,
    Reads,
    RowReads,
    append_conflicts,
    recommit_conflicts,
    replacement_conflicts,
)
from .listing import commit_file_name, commit_path, managing_catalog
from .pending_commit import (
    EMPTY_BASE,
    NO_ROW_IDS,
    Base,
    CommitText,
    FileChanges,
    PendingCommit,
    RebasedFiles,
    read_high_water_mark,
)
from .replay import Commit, CommitTables, as_checkpoint, replay
from .snapshot import Snapshot

_LOGGER = get_logger(__name__)

HIDDEN_PAUSE = 0.01
"""Seconds before a commit that exists, but is not visible, is read again."""


class CommitInterrupted(KeyboardInterrupt):
    """An interrupt during or after a commit; the message says whether the commit happened."""


def create_table(
    store: Store,
    table: TableConfiguration,
    adds: Sequence[AddFile] | pa.Table = (),
    *,
    context: CommitContext,
    domains: Sequence[DomainMetadata] = (),
) -> int:
    """Commit version 0 of a table, with its first files, and return 0.

    `adds` are actions, or rows of `Snapshot.files`.

    Raises TableExistsError if another writer created the table first, and CommitUnknownError if the store
    answers that version 0 exists, but does not return it.
    """
    actions: tuple[Action, ...] = (table.protocol, table.metadata, *context.transactions, *domains)
    pending = PendingCommit(None, table, actions, FileChanges(adds), context, is_blind_append=True)
    with _fixed_lines(pending) as fixed:
        attempts = CommitAttempts(store, context.txn_id)
        while True:
            if (created := _attempt(store, pending, fixed, EMPTY_BASE)) is not None:
                _write_checksum(store, None, 0, (), created, context)
                return 0
            if concurrent := _commits_after_lost_race(store, -1):
                if any(_is_own(actions, context.txn_id) for _, actions in concurrent):
                    _write_checksum(store, None, 0, [concurrent[0][1]], None, context)
                    return 0
                raise TableExistsError(
                    f"a Delta table already exists at {store.uri}: another writer has just created it, "
                    "run the operation again",
                    table=store.uri,
                )
            attempts.lose(0, is_hidden=True)


def add_files(
    snapshot: Snapshot,
    adds: Sequence[AddFile] | pa.Table,
    *,
    context: CommitContext,
    data_change: bool = True,
    after: TableConfiguration | None = None,
) -> int:
    """Commit files on top of `snapshot` and everything committed since, and return the version.

    `adds` are actions, or rows of `Snapshot.files`. `data_change=False` states that the files only rearrange
    rows. `after` is the table after the commit, None if it stays as it is. A checkpoint follows every
    `delta.checkpointInterval` versions, named by the `txn_id` of the context if it needs a name, and each
    version gets a checksum. The first checkpoint of a day deletes the expired part of the log. A failure of
    these is logged and not raised. Raises CommitConflictError if a concurrent commit changed the protocol or
    the metadata or has a `txn` of the same application, and ProtocolError for files without `numRecords` in a
    table that supports row tracking.
    """
    files = FileChanges(adds, data_change=data_change)
    pending = PendingCommit.on(snapshot, after, files, context, is_blind_append=data_change)
    find_conflict = append_conflicts(context.txn, changes_table=pending.changes_table)
    return _commit_with_retries(snapshot, pending, find_conflict)


def replace_files(
    snapshot: Snapshot,
    removed: pa.Table,
    adds: Sequence[AddFile] | pa.Table,
    *,
    context: CommitContext,
    reads: Reads,
    rebased: RebasedFiles | None = None,
    changes: Iterable[AddCDCFile] = (),
    data_change: bool = True,
    after: TableConfiguration | None = None,
    domains: Sequence[DomainMetadata] = (),
) -> int:
    """Commit the removal of files of `snapshot` and the files that replace them, and return the version.

    `removed` are rows of `Snapshot.files`, `adds` are actions or such rows, `changes` are change data files.
    `rebased` are further files, which `reads.rows` may replace by others after a lost race.
    `data_change=False` states that the rows are the same. Raises CommitConflictError if a concurrent commit
    changed the protocol, the metadata or one of `domains`, has a `txn` of the same application, removed a
    file of `reads`, or added one that the operation would have read. An added file does not conflict if the
    rows stay the same, or if the table is `WriteSerializable` and the concurrent commit is a blind append.
    """
    files = FileChanges(adds, removed, context.clock(), data_change, changes, rebased or RebasedFiles())
    pending = PendingCommit.on(snapshot, after, files, context, domains=domains)
    find_conflict = replacement_conflicts(
        files,
        reads,
        domains,
        context.txn,
        changes_table=pending.changes_table,
        changes_rows=data_change,
        tolerates_appends=(
            pending.table.get(properties.ISOLATION_LEVEL) == "WriteSerializable"
            and pending.table.metadata == snapshot.metadata
            and not reads.with_appends
        ),
    )
    return _commit_with_retries(snapshot, pending, find_conflict, reads.rows)


def change_next(
    snapshot: Snapshot,
    after: TableConfiguration,
    *,
    context: CommitContext,
    domains: Sequence[DomainMetadata],
) -> int:
    """Commit another protocol or metadata as the version that follows `snapshot`, and return the version.

    Raises CommitConflictError if another writer committed that version.
    """
    pending = PendingCommit.on(snapshot, after, FileChanges(data_change=False), context, domains=domains)
    return _commit_with_retries(snapshot, pending, lambda actions: "was committed first")


def recommit_files(snapshot: Snapshot, adds: Sequence[AddFile] | pa.Table, *, context: CommitContext) -> int:
    """Commit files of `snapshot` again, with `dataChange=false`, and return the version.

    `adds` are actions or rows of `Snapshot.files`, and keep all their fields, including row ids. Files
    without row ids get some if the table supports row tracking. Raises CommitConflictError if a concurrent
    commit changed the protocol or the metadata, or removed or committed one of the files; and ProtocolError
    as `add_files` does.
    """
    changes = FileChanges(adds, data_change=False)
    pending = PendingCommit.on(snapshot, None, changes, context)
    return _commit_with_retries(snapshot, pending, recommit_conflicts(changes.added_table(), context.txn))


@contextmanager
def _fixed_lines(pending: PendingCommit) -> Iterator[CommitText]:
    """Encode the lines of a commit that are the same in each attempt."""
    with CommitText() as text:
        text.add(pending.files.changes)
        text.add(pending.files.fixed_removes())
        if not pending.has_row_ids:
            text.add(pending.files.fixed_adds())
        yield text


def _attempt(
    store: Store, pending: PendingCommit, fixed: CommitText, base: Base
) -> Callable[[], CommitTables] | None:
    """Commit the version after `base`, or return None if the version exists.

    Returns a function that returns the commit as tables: an error of the conversion must not look like an
    error of the commit.
    """
    actions, files = pending.actions_after(base), pending.files
    with CommitText() as text:
        text.add(actions)
        text.extend(fixed)
        text.add(files.rebased_removes())
        if pending.has_row_ids:
            actions += text.add(pending.adds_after(base))
        else:
            text.add(files.rebased_adds())
        if not _try_commit(store, base.version + 1, text, actions):
            return None
    return lambda: CommitTables(actions, files.added_table(), files.removed_table())


def _commit_with_retries(
    snapshot: Snapshot, pending: PendingCommit, find_conflict: FindConflict, rows: RowReads | None = None
) -> int:
    """Commit on top of everything committed since `snapshot`, unless one of those commits conflicts."""
    with _fixed_lines(pending) as fixed:
        return _commit_lines(snapshot, pending, fixed, find_conflict, rows)


def _commit_lines(
    snapshot: Snapshot,
    pending: PendingCommit,
    fixed: CommitText,
    find_conflict: FindConflict,
    rows: RowReads | None,
) -> int:
    store, context = snapshot.store, pending.context
    catalog.check_access(store, pending.table.protocol)
    high_water_mark = read_high_water_mark(snapshot.domain_metadata.values(), NO_ROW_IDS)
    base = Base(snapshot.version, snapshot.timestamp, high_water_mark)
    since: list[Commit] = []
    attempts = CommitAttempts(store, context.txn_id)
    while True:
        version = base.version + 1
        if pending.starts_timestamps:
            base = replace(
                base, timestamp=file_info(store, commit_path(store, base.version)).modification_time
            )
        committed = _attempt(store, pending, fixed, base)
        if committed is None:
            _LOGGER.info("%s: version %d was committed concurrently, retrying", store.uri, version)
            concurrent = _commits_after_lost_race(store, base.version)
            own = next((number for number, actions in concurrent if _is_own(actions, context.txn_id)), None)
            since += [actions for number, actions in concurrent if own is None or number <= own]
            if own is None:
                base = _rebase(base, concurrent, snapshot.uri, find_conflict)
                if rows is not None:
                    rebased = rows.rebase(pending.files.rebased)
                    pending = replace(pending, files=msgspec.structs.replace(pending.files, rebased=rebased))
                attempts.lose(version, is_hidden=not concurrent)
                continue
            version = own
        is_published = _publish(store, version)
        _write_checksum(store, snapshot, version, since, committed, context)
        if is_published:
            _write_checkpoint_when_due(store, version, pending)
        return version


def _try_commit(store: Store, version: int, text: CommitText, actions: Sequence[Action]) -> bool:
    """Commit a version, or return False if it exists.

    That version is of another writer, or this commit itself if the answer of the store was lost. Raises
    CommitUnknownError if the store gave no answer and the version does not exist yet.
    """
    try:
        commits.write_commit(store, version, text.content(), actions)
    except VersionExistsError:
        return False
    except KeyboardInterrupt as interrupt:
        raise CommitInterrupted(
            f"interrupted during the commit of version {version} of {store.uri}: "
            "check its history to see whether it happened"
        ) from interrupt
    except CommitUnknownError:
        if not _commits_after(store, version - 1):
            raise
        return False
    _LOGGER.info("committed version %d of %s", version, store.uri)
    return True


def _commits_after(store: Store, version: int) -> list[CommitActions]:
    """Return the commits after a version, oldest first. One of them may be this commit.

    Raises CommitUnknownError if they cannot be read.
    """
    try:
        return read_next_commits(store, version)
    except (StoreError, TableNotFoundError) as error:
        raise CommitUnknownError(
            f"cannot determine whether version {version + 1} is this commit: {error.message}; check the "
            "table before retrying",
            table=store.uri,
            version=version + 1,
        ).at(file=error.file) from error


def _commits_after_lost_race(store: Store, version: int) -> list[CommitActions]:
    """Return the commits after a version, oldest first.

    The list is empty if an object store answers that another put of the next version is in progress. The next
    attempt decides. Raises StoreError if a local file of the next version exists and can never be read, such
    as a directory: each attempt to commit would fail in the same way.
    """
    for _ in range(2):
        if concurrent := _commits_after(store, version):
            return concurrent
        sleep(HIDDEN_PAUSE)
    if store.local_root is None:
        return []
    name = f"{store.uri}/{commit_file_name(version + 1)}"
    raise StoreError(
        f"cannot commit version {version + 1} because {name} exists and cannot be read as a file; remove it",
        table=store.uri,
        file=name,
        version=version + 1,
    )


def _is_own(actions: Iterable[Action], txn_id: str) -> bool:
    # A store that repeats a put whose answer was lost reports its own file as an existing one.
    return any(info.fields.get("txnId") == txn_id for info in commit_infos(actions))


def _rebase(base: Base, concurrent: Sequence[CommitActions], uri: str, find_conflict: FindConflict) -> Base:
    """Return the base after the concurrent commits; raise CommitConflictError if one of them conflicts."""
    for version, actions in concurrent:
        if (conflict := find_conflict(actions)) is not None:
            raise CommitConflictError(
                f"cannot commit to {uri} because concurrent version {version} {conflict}; "
                "load the table again and retry",
                table=uri,
                version=version,
            )
        timestamp = next((info.in_commit_timestamp for info in commit_infos(actions)), None)
        base = Base(version, timestamp, read_high_water_mark(actions, base.high_water_mark))
    return base


def _publish(store: Store, version: int) -> bool:
    """Publish the commits that the catalog has ratified; return whether that succeeded.

    Only published versions may have checkpoints. The commits of other tables are published already.
    """
    managing = managing_catalog(store)
    is_published = managing is None
    if managing is not None:
        with _after_commit(store, version, "publication", "completed"):
            catalog.publish(store, managing)
            is_published = True
    return is_published


def _write_checksum(
    store: Store,
    snapshot: Snapshot | None,
    version: int,
    commits: Sequence[Commit],
    committed: Callable[[], CommitTables] | None,
    context: CommitContext,
) -> None:
    """Write the checksum of a version: of `commits` after a snapshot, and the commit of `committed`."""
    with _after_commit(store, version, "checksum", "written"):
        # The files of a large checkpoint are not read for their number.
        if snapshot is None or snapshot.file_set.listed is None:
            base = None if snapshot is None else as_checkpoint(snapshot)
            since = [*commits, *(() if committed is None else [committed()])]
            write_checksum(replay(store, version, base, since), context.txn_id)


def _write_checkpoint_when_due(store: Store, version: int, pending: PendingCommit) -> None:
    context, table = pending.context, pending.table
    now, is_new_day = context.clock(), False
    with _after_commit(store, version, "checkpoint", "written"):
        if version % table.get(properties.CHECKPOINT_INTERVAL) == 0:
            is_new_day = cleanup.is_new_day(store, now)
            checkpoint_writing.write_checkpoint(store, version, now=now, unique_id=context.txn_id)
            _LOGGER.info("wrote a checkpoint of version %d of %s", version, store.uri)
    with _after_commit(store, version, "log cleanup", "completed"):
        cleans_up = table.get(properties.ENABLE_EXPIRED_LOG_CLEANUP)
        if is_new_day and cleans_up and not table.supports(features.CATALOG_MANAGED):
            cleanup.delete_expired(store, cleanup.find_expired(store, table, now))


@contextmanager
def _after_commit(store: Store, version: int, what: str, done: str) -> Iterator[None]:
    """Log a failure of what follows a commit: an error would imply that the commit did not happen."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        raise CommitInterrupted(
            f"interrupted after the commit of version {version} of {store.uri}, during its {what}"
        ) from interrupt
    except Exception:
        _LOGGER.warning("%s: the %s of version %d was not %s", store.uri, what, version, done, exc_info=True)


MAX_ATTEMPTS = 1000
DEADLINE_SECONDS = 600.0
HIDDEN_ATTEMPTS = 10
"""How often a commit is tried while the store answers that its version exists, but does not return it."""

SHORTEST_WAIT = 0.01
LONGEST_WAIT = 0.64
WARNED_SECONDS = 30.0


class CommitAttempts:
    """Counts the lost races of a commit, and waits after each."""

    def __init__(self, store: Store, txn_id: str) -> None:
        self._store = store
        self._txn_id = txn_id
        self._lost = self._hidden = 0
        self._start = monotonic()
        self._next_warning = WARNED_SECONDS

    def lose(self, version: int, *, is_hidden: bool) -> None:
        """Wait after an attempt to commit a version that exists.

        Args:
            version: The version.
            is_hidden: Whether the store does not return the commit that has the version.

        Raises:
            CommitUnknownError: If the store keeps answering so, because the commit may be this one.
            CommitConflictError: After too many attempts, or too long.
        """
        self._lost += 1
        self._hidden = self._hidden + 1 if is_hidden else 0
        waited = monotonic() - self._start
        is_last = self._lost >= MAX_ATTEMPTS or waited >= DEADLINE_SECONDS
        if is_hidden and (is_last or self._hidden == HIDDEN_ATTEMPTS):
            raise self._unknown(version)
        if is_last:
            raise CommitConflictError(
                f"cannot commit to {self._store.uri} within {self._lost} attempts and {waited:.0f} seconds "
                "because other writers committed first each time; retry when fewer writers are active",
                table=self._store.uri,
                version=version,
            )
        if waited >= self._next_warning:
            self._next_warning = 2 * waited
            _LOGGER.warning(
                "%s: other writers committed first %d times in %.0f s, retrying",
                self._store.uri,
                self._lost,
                waited,
            )
        sleep(self._pause(waited))

    def _pause(self, waited: float) -> float:
        growing = SHORTEST_WAIT * 2 ** min(self._lost - 1, 10)
        longest: float = min(growing, LONGEST_WAIT / (1 + waited) ** 2)
        return Random(f"{self._txn_id} {self._lost}").uniform(0, longest)

    def _unknown(self, version: int) -> CommitUnknownError:
        name = f"{self._store.uri}/{commit_file_name(version)}"
        return CommitUnknownError(
            f"cannot determine whether version {version} is this commit because the store answers that "
            f"{name} exists, but does not return it; check that the credentials permit reading the log, and "
            "check the table before retrying",
            table=self._store.uri,
            version=version,
        )
