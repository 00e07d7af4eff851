"""What has to be true of a table after concurrent operations: each check raises AssertionError."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import permutations
from typing import Any, TypeAlias
from urllib.parse import quote, unquote

from concurrent_operations import (
    PROPERTY,
    Operation,
    Read,
    ReadChanges,
    Restore,
    Row,
    State,
    Vacuum,
    read_changes,
    read_rows,
)
from history_tables import ORPHAN, HistoryTable, open_memory
from scheduler import Outcome
from support.memory_objects import MemoryObjects
from support.tables import state_discrepancies
from support.vectors import vector_path
from table_log import TableLog, content, physical_names

import delta_variant as dv
from delta_variant.errors import (
    CommitConflictError,
    CommitUnknownError,
    DataFileError,
    SchemaError,
    StoreError,
)

Replayed: TypeAlias = tuple[dict[str, Any], dict[str, Any], dict[str, Any]]
NEW_COLUMNS = frozenset({"id", "day", "event"})


@dataclass(frozen=True)
class History:
    """Operations that ran concurrently on a table, and how they ended."""

    table: HistoryTable
    objects: MemoryObjects
    operations: Sequence[Operation]
    outcomes: Sequence[Outcome]
    log: TableLog = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "log", TableLog.read(self.objects))

    @cached_property
    def first(self) -> int:
        """Return the first version that an operation of the history committed."""
        return len(self.table.versions)

    @cached_property
    def replayed(self) -> list[Replayed]:
        return list(self.log.replay())

    @cached_property
    def states(self) -> list[State]:
        """Return the state at each version, as files and log say it; those before the history are known."""
        later = (self._state(*self.replayed[version]) for version in range(self.first, self.log.version + 1))
        return [*self.table.versions, *later]

    def _state(self, live: dict[str, Any], table: dict[str, Any], _: object) -> State:
        rows: dict[int, Row] = {}
        for add in live.values():
            for row in self.log.rows(add, table["metaData"]):
                assert row.id not in rows, f"the row {row.id} is there twice"
                rows[row.id] = content(row)
        settings = table["metaData"]["configuration"]
        return State(
            rows,
            frozenset(physical_names(table["metaData"])) - NEW_COLUMNS,
            frozenset((name, text) for name, text in settings.items() if name.startswith(PROPERTY)),
            frozenset((key[4:], body["version"]) for key, body in table.items() if key.startswith("txn ")),
        )

    def ran(self, *kinds: type[Operation]) -> bool:
        return any(isinstance(operation, kinds) for operation in self.operations)


def check_errors(history: History) -> None:
    """Each failure is one that a caller has to expect, and committed nothing."""
    for operation, outcome in zip(history.operations, history.outcomes, strict=True):
        error = outcome.error
        if error is None:
            continue
        if not _is_expected(history, operation, outcome):
            raise AssertionError(f"{operation} raised {type(error).__name__}: {error}") from error
        if not isinstance(operation, Vacuum) and not isinstance(error, CommitUnknownError):
            assert not outcome.commits, f"{operation} committed {outcome.commits} and raised {error}"


def _is_expected(history: History, operation: Operation, outcome: Outcome) -> bool:
    error = outcome.error
    if isinstance(error, CommitConflictError):
        return True
    if isinstance(error, CommitUnknownError):
        return outcome.lost_answers > 0
    # A vacuum deletes files that only versions from before the history have.
    reads_old = isinstance(operation, Restore | ReadChanges) or (
        isinstance(operation, Read) and operation.version is not None
    )
    if history.ran(Vacuum) and reads_old and _is_missing_file(error):
        return True
    changes_schema = any(each.changes_schema for each in history.operations)
    return isinstance(operation, ReadChanges) and changes_schema and isinstance(error, SchemaError)


def _is_missing_file(error: BaseException | None) -> bool:
    """Return whether an error says that a data file does not exist."""
    while isinstance(error, StoreError):
        error = error.__cause__
    # A restore checks that the files exist.
    return isinstance(error, FileNotFoundError | DataFileError)


def check_commits(history: History) -> None:
    """Each version was committed by one operation, and each operation returned the version it committed."""
    committed = sorted(version for outcome in history.outcomes for version in outcome.commits)
    assert committed == list(range(history.first, history.log.version + 1)), committed
    for operation, outcome in zip(history.operations, history.outcomes, strict=True):
        if outcome.error is None and not isinstance(operation, Vacuum | Read | ReadChanges):
            returned = [] if outcome.result is None else [outcome.result]
            assert outcome.commits == returned, f"{operation} returned {returned}, {outcome.commits}"


def check_serial_order(history: History) -> None:
    """The state at each version is that of some serial order of the operations committed so far.

    In a `Serializable` table that is the order of the commits.
    """
    is_serializable = history.table.configuration["delta.isolationLevel"] == "Serializable"
    order = _commit_order(history)
    for version in range(history.first, history.log.version + 1):
        done = [operation for first, operation in order if first <= version]
        orders = [tuple(done)] if is_serializable else permutations(done)
        found = history.states[version]
        assert any(_apply_all(history, each) == found for each in orders), (
            f"version {version} is {found}, the operations in the order of their commits give "
            f"{_apply_all(history, done)}"
        )
    for operation, outcome in zip(history.operations, history.outcomes, strict=True):
        if outcome.error is None and not outcome.commits:
            states = history.states[history.first - 1 :]
            assert any(operation.apply(state, history.table.versions) == state for state in states), (
                f"{operation} committed nothing, but changes each version"
            )


def _commit_order(history: History) -> list[tuple[int, Operation]]:
    pairs = [
        (outcome.commits[0], operation)
        for operation, outcome in zip(history.operations, history.outcomes, strict=True)
        if outcome.commits
    ]
    return sorted(pairs, key=lambda pair: pair[0])


def _apply_all(history: History, operations: Sequence[Operation]) -> State:
    state = history.table.versions[-1]
    for operation in operations:
        state = operation.apply(state, history.table.versions)
    return state


def check_reads(history: History) -> None:
    """Each read returned the rows of its version, and each read of changes those between versions."""
    for operation, outcome in zip(history.operations, history.outcomes, strict=True):
        if outcome.error is not None:
            continue
        if isinstance(operation, Read):
            version, rows = outcome.result
            assert rows == history.states[version].rows, f"{operation} of version {version} returned {rows}"
        if isinstance(operation, ReadChanges):
            last = max((change[0] for change in outcome.result), default=operation.first)
            _check_changes(history, outcome.result, operation.first, last)


def _check_changes(
    history: History, changes: Sequence[tuple[int, str, int, Row]], first: int, last: int
) -> None:
    for version in range(first, last + 1):
        before = history.states[version - 1].rows if version else {}
        after = history.states[version].rows
        net: Counter[tuple[int, Row]] = Counter()
        for number, kind, key, row in changes:
            if number == version:
                net[key, row] += 1 if kind in ("insert", "update_postimage") else -1
        net = Counter({pair: count for pair, count in net.items() if count})
        expected = Counter(dict.fromkeys(after.items() - before.items(), 1))
        expected.update(dict.fromkeys(before.items() - after.items(), -1))
        assert net == expected, f"changes of version {version}: {net}, expected {expected}"


def check_files(history: History) -> None:
    """No version that can be read lacks a file, and no file is left that no commit refers to."""
    stored = {key for key in history.objects.files if not key.startswith("_delta_log/")}
    oldest = history.log.version if history.ran(Vacuum) else 0
    for version in range(oldest, history.log.version + 1):
        live = history.replayed[version][0]
        vectors = {path for add in live.values() if (path := vector_path(add)) is not None}
        missing = ({unquote(path) for path in live} | vectors) - stored
        assert not missing, f"version {version} lacks {missing}"
    if not any(isinstance(outcome.error, CommitUnknownError) for outcome in history.outcomes):
        files = [body for commit in history.log.commits for kind, body in commit if kind in ("add", "cdc")]
        referred = {path for body in files for path in (unquote(body["path"]), vector_path(body))}
        assert stored <= referred | {ORPHAN}, f"no commit refers to {stored - referred}"


def check_row_tracking(history: History) -> None:
    """A row keeps its id, which no other row has, and its commit version is that of its content."""
    if not history.table.has("enableRowTracking"):
        return
    ids: dict[int, int] = {}
    for version in range(history.first - 1, history.log.version + 1):
        live, table, _ = history.replayed[version]
        for add in live.values():
            rows = history.log.rows(add, table["metaData"])
            for position, row in zip(history.log.positions(add), rows, strict=True):
                row_id = add["baseRowId"] + position if row.row_id is None else row.row_id
                assert ids.setdefault(row.id, row_id) == row_id, (
                    f"the row {row.id} has the ids {ids[row.id]}, {row_id}"
                )
                wrote = add["defaultRowCommitVersion"] if row.version is None else row.version
                assert wrote <= version, f"the row {row.id} of version {version} was committed by {wrote}"
                assert history.states[wrote].rows.get(row.id) == content(row), (
                    f"the row {row.id} of version {version} is not that of {wrote}, its commit version"
                )
    assert len(set(ids.values())) == len(ids), f"rows share an id: {ids}"


def check_timestamps(history: History) -> None:
    """In-commit timestamps increase."""
    if history.table.has("enableInCommitTimestamps"):
        infos = [dict(commit)["commitInfo"]["inCommitTimestamp"] for commit in history.log.commits]
        assert infos == sorted(set(infos)), infos


def check_checkpoints(history: History) -> None:
    """A snapshot of a version with a checkpoint is what its commits say."""
    store = open_memory(history.objects)
    listed = [key for key in history.objects.files if key.startswith("_delta_log/") and ".checkpoint." in key]
    versions = {int(key.removeprefix("_delta_log/")[:20]) for key in listed}
    for version in {each for each in versions if each >= history.first} | {history.log.version}:
        _check_snapshot(dv.load_snapshot(store, version), *history.replayed[version])


def _check_snapshot(
    snapshot: Any, live: Mapping[str, Any], table: Mapping[str, Any], _: Mapping[str, Any]
) -> None:
    found = {
        file["encoded_path"] or quote(file["path"], safe="/=-_.%:"): file
        for file in snapshot.files.to_pylist()
    }
    assert found.keys() == live.keys(), f"version {snapshot.version}: {found.keys() ^ live.keys()}"
    for path, add in live.items():
        file = found[path]
        assert dict(file["partition_values"]) == add["partitionValues"]
        for name, key in _SAME_FIELDS.items():
            assert file[name] == add.get(key), f"version {snapshot.version}, {path}: {name} {file[name]}"
        assert (file["deletion_vector"] is None) == ("deletionVector" not in add)
    assert dict(snapshot.properties) == table["metaData"]["configuration"]
    assert snapshot.metadata.schema_string == table["metaData"]["schemaString"]
    assert set(snapshot.protocol.writer_features or ()) == set(table["protocol"].get("writerFeatures", ()))
    for prefix, kept in (("txn ", snapshot.txns), ("domain ", snapshot.domain_metadata)):
        expected = {
            key.removeprefix(prefix)
            for key, body in table.items()
            if key.startswith(prefix) and not body.get("removed")
        }
        assert set(kept) == expected


_SAME_FIELDS = {
    "size": "size",
    "modification_time": "modificationTime",
    "base_row_id": "baseRowId",
    "default_row_commit_version": "defaultRowCommitVersion",
    "stats": "stats",
}


def check_library_reads(history: History) -> None:
    """The library reads the latest version, its changes and the audit as the files have them."""
    store = open_memory(history.objects)
    assert read_rows(store) == history.states[-1].rows
    if history.table.has("enableChangeDataFeed") and history.log.version >= history.first:
        changes_schema = any(each.changes_schema for each in history.operations)
        try:
            changes = read_changes(store, history.first)
        except (SchemaError, StoreError, DataFileError):
            assert changes_schema or history.ran(Vacuum)
        else:
            _check_changes(history, changes, history.first, history.log.version)


def check_audit(history: History) -> None:
    """An audit of all data finds no error."""
    findings = dv.audit_table(open_memory(history.objects), data=True).findings
    assert not (errors := [each for each in findings if each.severity == "error"]), errors


def check_checksums(history: History) -> None:
    """Each checksum is that of its version."""
    store = open_memory(history.objects)
    for version in range(history.log.version + 1):
        assert not (wrong := state_discrepancies(dv.load_snapshot(store, version))), wrong


CHECKS = (
    check_errors,
    check_commits,
    check_files,
    check_serial_order,
    check_reads,
    check_row_tracking,
    check_timestamps,
    check_checkpoints,
    check_checksums,
    check_library_reads,
    check_audit,
)
