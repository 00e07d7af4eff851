"""A snapshot that moves on by the commits since: equal to a full load, and what it reads."""

from __future__ import annotations

import copy
import gc
import pickle
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch
from weakref import ref

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.commits import commit_actions
from support.intercepted_store import commit_first, intercept
from support.memory_objects import MemoryObjects

import delta_variant as dv
from delta_variant.errors import TableNotFoundError, VersionNotFoundError
from delta_variant.log import commits, load, state
from delta_variant.log.checkpoints.writing import write_checkpoint
from delta_variant.log.commits import read_all_commits
from delta_variant.log.listing import LOG, commit_file_name
from delta_variant.log.load import load_snapshot, load_with_tombstones
from delta_variant.log.snapshot import Snapshot
from delta_variant.protocol.actions import (
    Action,
    AddFile,
    CommitInfo,
    DeletionVector,
    DomainMetadata,
    Format,
    Metadata,
    Protocol,
    RemoveFile,
    Txn,
    encode_commit,
    reconciliation_key,
)
from delta_variant.storage.store import Memo, Store

SCHEMAS = [
    f'{{"type":"struct","fields":[{{"name":"{name}","type":"long","nullable":true,"metadata":{{}}}}]}}'
    for name in "ab"
]
FEATURES = ("deletionVectors", "domainMetadata", "inCommitTimestamp", "rowTracking", "v2Checkpoint")
UNIQUE_ID = "3a0d65cd-4056-49b8-937b-95f9e3ee90e5"


def protocol(*features: str) -> Protocol:
    return Protocol(
        min_reader_version=3,
        min_writer_version=7,
        reader_features=("deletionVectors", "v2Checkpoint"),
        writer_features=(*FEATURES, *features),
    )


def metadata(identifier: str = "m", schema: str = SCHEMAS[0], **configuration: str) -> Metadata:
    return Metadata(
        id=identifier,
        format=Format(),
        schema_string=schema,
        partition_columns=(),
        configuration={f"delta.{name}": value for name, value in configuration.items()},
    )


def add(path: str, vector: DeletionVector | None = None, size: int = 1) -> AddFile:
    return AddFile(
        path=path,
        partition_values={"p": None},
        size=size,
        modification_time=1,
        data_change=True,
        stats=f'{{"numRecords":{size}}}',
        tags={"t": "x"} if size % 2 else None,
        deletion_vector=vector,
        base_row_id=size,
        default_row_commit_version=size,
    )


def remove(path: str, vector: DeletionVector | None = None) -> RemoveFile:
    # A tombstone that never expires, so that it is in every checkpoint.
    return RemoveFile(path=path, data_change=True, deletion_timestamp=10**15, deletion_vector=vector)


# --- a log in memory, and the steps that change it


@dataclass
class Log:
    """The log of a table in memory."""

    objects: MemoryObjects
    version: int = -1
    first: int = 0
    handles: list[Store] = field(default_factory=list)

    @classmethod
    def new(cls) -> Log:
        ticks = iter(range(1, 10**6))
        return cls(MemoryObjects(lambda: next(ticks)))

    def open(self) -> Store:
        """Return a store that remembers nothing."""
        return Store("mem://t", self.objects, None)

    def commit(self, *actions: Action) -> None:
        self.version += 1
        commit_actions(self.open(), self.version, actions)

    def delete(self, *names: str) -> None:
        for name in names:
            self.objects.delete(name)


def create(log: Log, identifier: str, timestamps: str = "true") -> None:
    table = metadata(identifier, enableInCommitTimestamps=timestamps)
    log.commit(protocol(), table, CommitInfo({"inCommitTimestamp": 5}))


Step = Callable[[Log], None]

PATHS = st.sampled_from(["a", "b", "c", "a%20b", "file:/x/a", "/x/a"])
VECTORS = st.sampled_from(
    [
        None,
        DeletionVector(storage_type="u", path_or_inline_dv="ab", offset=1, size_in_bytes=2, cardinality=3),
        DeletionVector(storage_type="i", path_or_inline_dv="ab", size_in_bytes=2, cardinality=4),
    ]
)
FILES = st.one_of(
    st.builds(add, PATHS, VECTORS, st.integers(1, 9)),
    st.builds(remove, PATHS, VECTORS),
)
OTHERS = st.one_of(
    st.builds(Txn, app_id=st.sampled_from("xy"), version=st.integers(0, 9)),
    st.builds(
        DomainMetadata,
        domain=st.sampled_from("de"),
        configuration=st.sampled_from("01"),
        removed=st.booleans(),
    ),
    st.builds(
        lambda schema, timestamps: metadata("m", schema, enableInCommitTimestamps=timestamps),
        st.sampled_from(SCHEMAS),
        st.sampled_from(["true", "false"]),
    ),
    st.sampled_from([(), ("appendOnly",)]).map(lambda features: protocol(*features)),
)


def commit_of(actions: list[Action], timestamp: int | None) -> Step:
    unique = {reconciliation_key(action): action for action in actions}
    info = CommitInfo({"operation": "X"} if timestamp is None else {"inCommitTimestamp": timestamp})
    return lambda log: log.commit(info, *unique.values())


def checkpoint(log: Log) -> None:
    write_checkpoint(log.open(), log.version, now=0, unique_id=UNIQUE_ID)


def compact(count: int) -> Step:
    def run(log: Log) -> None:
        first = max(log.first, log.version - count)
        if first == log.version:
            return
        reconciled: dict[Any, Action] = {}
        for actions in list(read_all_commits(log.open()))[first - log.version - 1 :]:
            reconciled |= {reconciliation_key(each): each for each in actions}
        reconciled.pop(None, None)
        name = f"{LOG}/{first:020d}.{log.version:020d}.compacted.json"
        if reconciled:
            log.objects.put(name, encode_commit(reconciled.values()))

    return run


def clean(log: Log) -> None:
    """Delete what is before the latest version, which gets a checkpoint."""
    checkpoint(log)
    names = [name for name in log.objects.files if name.endswith(".json") and "checkpoint" not in name]
    log.delete(*(name for name in names if name < commit_file_name(log.version)))
    log.first = log.version


def replace_table(commits: int) -> Step:
    def run(log: Log) -> None:
        log.delete(*list(log.objects.files))
        log.version, log.first = -1, 0
        create(log, "another")
        for number in range(commits):
            log.commit(add(f"new-{number}", None, 3))

    return run


def refresh(log: Log) -> None:
    for handle in log.handles:
        assert contents(load_snapshot(handle)) == contents(load_snapshot(log.open()))


def refresh_with_tombstones(log: Log) -> None:
    for handle in log.handles:
        found, expected = (load_with_tombstones(each) for each in (handle, log.open()))
        assert contents(found[0]) == contents(expected[0])
        assert rows(found[1]) == rows(expected[1])


def travel(back: int) -> Step:
    def run(log: Log) -> None:
        version = max(log.first, log.version - back)
        for handle in log.handles:
            assert contents(load_snapshot(handle, version)) == contents(load_snapshot(log.open(), version))

    return run


def compact_commits(commits: list[Step]) -> Step:
    """Commit, and compact exactly what the handles have not loaded."""

    def run(log: Log) -> None:
        for step in [refresh, *commits, compact(len(commits) - 1), refresh]:
            step(log)

    return run


COMMITS = st.builds(commit_of, st.lists(st.one_of(FILES, FILES, OTHERS), max_size=4), st.integers(0, 99))
STEPS = st.one_of(
    *[COMMITS] * 3,
    st.builds(commit_of, st.lists(FILES), st.none()),
    st.lists(COMMITS, min_size=2, max_size=3).map(compact_commits),
    st.just(checkpoint),
    st.integers(1, 3).map(compact),
    st.just(clean),
    st.integers(0, 4).map(replace_table),
    st.just(refresh),
    st.just(refresh),
    st.just(refresh_with_tombstones),
    st.integers(0, 3).map(travel),
    st.just(lambda log: log.handles.append(log.open())),
)


def rows(table: pa.Table) -> list[str]:
    return sorted(map(str, table.to_pylist()))


def contents(snapshot: Snapshot) -> dict[str, Any]:
    """Return all that a snapshot has, apart from the order of its files and its store."""
    own = {name: value for name, value in vars(snapshot).items() if name not in ("store", "file_set")}
    return {**own, "files": rows(snapshot.files), "schema of files": snapshot.files.schema}


@given(st.lists(STEPS, min_size=1, max_size=16), st.sampled_from(["true", "false"]))
def test_a_refreshed_snapshot_equals_a_full_load(steps: list[Step], timestamps: str):
    log = Log.new()
    create(log, "m", timestamps)
    log.handles.append(log.open())
    for step in [refresh, *steps, refresh_with_tombstones]:
        step(log)


@given(st.lists(COMMITS, min_size=1, max_size=8), st.integers(0, 8), st.integers(0, 300))
def test_commits_are_replayed_as_tables_as_they_are_as_actions(
    steps: list[Step], checkpoint_after: int, part_bytes: int
):
    log = Log.new()
    create(log, "m")
    for number, step in enumerate(steps):
        if number == checkpoint_after:
            checkpoint(log)
        step(log)
    expected = load_with_tombstones(log.open())
    with patch.object(commits, "LARGE_COMMIT_BYTES", 0), patch.object(commits, "_PART_BYTES", part_bytes):
        found = load_with_tombstones(log.open())
    assert contents(found[0]) == contents(expected[0])
    assert rows(found[1]) == rows(expected[1])


# --- what is read


@dataclass
class Calls:
    """The calls of a store that read, with the names of the files."""

    made: list[tuple[str, str]] = field(default_factory=list)

    def note(self, call: str, key: str) -> None:
        if call in ("get", "get_ranges", "get_end", "head", "list_files"):
            self.made.append((call, Path(key).name))

    def taken(self) -> list[tuple[str, str]]:
        found, self.made = self.made, []
        return found


LISTING = ("list_files", "_delta_log")


def commit_read(version: int) -> tuple[str, str]:
    return "get", f"{version:020d}.json"


@pytest.fixture
def calls() -> Calls:
    return Calls()


@pytest.fixture
def table(tmp_path: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch) -> dv.Table:
    """Return a handle of a table at version 11 with a checkpoint of version 10, whose reads are counted."""
    for number in range(12):
        dv.write_table(tmp_path / "t", pa.table({"id": [number]}), mode="append")
    observed = intercept(tmp_path / "t", before=calls.note).objects
    monkeypatch.setattr("delta_variant.storage.store._LOCAL", observed)
    return dv.Table(tmp_path / "t")


def test_the_second_append_of_a_handle_reads_only_the_commit_of_the_first(table: dv.Table, calls: Calls):
    table.append(pa.table({"id": [12]}))
    assert {name for _, name in calls.taken()} >= {"_last_checkpoint", f"{10:020d}.checkpoint.parquet"}
    table.append(pa.table({"id": [13]}))
    assert calls.taken() == [LISTING, commit_read(12)]
    dv.write_table(table.table_uri, pa.table({"id": [14]}), mode="append")
    calls.taken()
    table.append(pa.table({"id": [15]}))
    assert sorted(calls.taken()) == sorted([LISTING, commit_read(13), commit_read(14)])


@pytest.mark.parametrize(
    "operate",
    [
        lambda table: table.scan(where="id = 3").to_table(),
        lambda table: table.aggregate({"n": "count(*)"}),
        lambda table: table.history(limit=0),
        lambda table: table.snapshot(),
        lambda table: table.as_of(version=11),
    ],
)
def test_an_operation_reads_nothing_of_a_log_that_did_not_change(table: dv.Table, calls: Calls, operate: Any):
    table.snapshot()
    calls.taken()
    operate(table)
    of_the_log = [call for call in calls.taken() if not call[1].startswith("part-")]
    assert set(of_the_log) <= {LISTING}


@pytest.mark.parametrize(
    "operate",
    [
        lambda table: table.delete("id = 3"),
        lambda table: table.update({"id": "id + 100"}, "id = 4"),
        lambda table: table.set_properties({"delta.appendOnly": "false"}),
        lambda table: table.optimize(),
    ],
)
def test_a_change_reads_no_checkpoint_and_no_old_commit(table: dv.Table, calls: Calls, operate: Any):
    table.snapshot()
    calls.taken()
    operate(table)
    assert not [call for call in calls.taken() if not call[1].startswith("part-") and call != LISTING]
    assert dv.load_snapshot(table.table_uri).version == 12


def test_a_lost_race_reads_only_the_commits_of_the_others(table: dv.Table, calls: Calls):
    def append(number: int) -> None:
        dv.write_table(table.table_uri, pa.table({"id": [number]}), mode="append")
        calls.taken()

    store = intercept(commit_first(table.table_uri, lambda: append(12), lambda: append(13)))
    load_snapshot(store)
    dv.write_table(store, pa.table({"id": [14]}), mode="append")
    # After each race, the commits are read that follow the known ones, and two that do not exist yet.
    assert {name for _, name in calls.taken()} <= {f"{version:020d}.json" for version in (13, 14, 15)}
    assert table.snapshot().version == 14


def test_a_version_of_a_handle_is_loaded_once(table: dv.Table, calls: Calls):
    old = table.as_of(version=5)
    assert old.scan().count() == 6
    calls.taken()
    assert old.scan().count() == 6
    assert set(calls.taken()) <= {LISTING}


def test_the_latest_version_is_found_by_a_listing(table: dv.Table, calls: Calls):
    store = intercept(table.table_uri, before=calls.note)
    assert state.latest_version(store) == 11
    assert set(calls.taken()) == {("get", "_last_checkpoint"), LISTING}


# --- when the log does not continue the snapshot


def test_a_table_that_was_replaced_at_the_same_version_is_loaded_again(tmp_path: Path):
    table = dv.Table(tmp_path / "t")
    table.append([{"id": 1}])
    assert table.scan().to_pylist() == [{"id": 1}]
    shutil.rmtree(tmp_path / "t")
    dv.write_table(tmp_path / "t", [{"id": 2}])
    assert table.scan().to_pylist() == [{"id": 2}]


def test_a_table_that_was_deleted_is_not_found(tmp_path: Path):
    table = dv.Table(tmp_path / "t")
    table.append([{"id": 1}])
    assert table.snapshot().version == 0
    shutil.rmtree(tmp_path / "t")
    with pytest.raises(TableNotFoundError):
        table.snapshot()


def test_the_error_for_a_version_that_does_not_exist_is_that_of_a_full_load(tmp_path: Path):
    table = dv.Table(tmp_path / "t")
    table.append([{"id": 1}])
    store = dv.load_snapshot(table).store
    with pytest.raises(VersionNotFoundError) as caught:
        load_snapshot(store, 3)
    assert caught.value.version == 3


def test_many_commits_are_read_from_a_checkpoint_instead(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(state, "_MOST_COMMITS", 3)
    log, calls = Log.new(), Calls()
    create(log, "m")
    store = replace(intercept(log.open(), before=calls.note), memo=Memo.of_handle())
    load_snapshot(store)
    for number in range(3):
        log.commit(add(str(number)))
    calls.taken()
    load_snapshot(store)
    assert calls.taken() == [LISTING, commit_read(1), commit_read(2), commit_read(3)]
    for number in range(3, 7):
        log.commit(add(str(number)))
    checkpoint(log)
    log.commit(add("last"))
    assert contents(load_snapshot(store)) == contents(load_snapshot(log.open()))
    assert ("get_end", f"{7:020d}.checkpoint.parquet") in calls.taken()


def test_a_snapshot_does_not_change_when_its_handle_moves_on(tmp_path: Path):
    table = dv.Table(tmp_path / "t")
    table.append([{"id": 1}])
    before = table.snapshot()
    kept = contents(before)
    table.append([{"id": 2}])
    table.delete("id = 1")
    assert table.snapshot().version == 2
    assert contents(before) == kept
    assert load.refresh(before).version == 2


def test_only_a_handle_keeps_a_snapshot_that_nothing_else_uses(tmp_path: Path):
    table = dv.Table(tmp_path / "t")
    table.append([{"id": 1}])
    gc.disable()
    try:
        of_handle, of_path = ref(table.snapshot()), ref(dv.load_snapshot(tmp_path / "t"))
        assert of_handle() is not None
        # The snapshot refers to its store, but no cycle keeps it until the garbage collector runs.
        assert of_path() is None
    finally:
        gc.enable()


def test_a_snapshot_moves_on_while_it_is_used():
    log, calls = Log.new(), Calls()
    create(log, "m")
    snapshot = load_snapshot(intercept(log.open(), before=calls.note))
    log.commit(add("1"))
    calls.taken()
    assert load_snapshot(snapshot.store).version == 1
    assert calls.taken() == [LISTING, commit_read(1)]


def test_a_snapshot_of_many_commits_has_few_batches():
    log = Log.new()
    create(log, "m")
    store = log.open()
    for number in range(100):
        log.commit(add(f"f{number}"))
        assert load_snapshot(store).files["path"].num_chunks <= 7
    assert load_snapshot(store).files["path"].to_pylist() == [f"f{number}" for number in range(100)]


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda table: pickle.loads(pickle.dumps(table))])
def test_a_copy_of_a_handle_does_not_have_its_snapshot(tmp_path: Path, duplicate: Any):
    table = dv.Table(tmp_path / "t")
    table.append([{"id": 1}])
    table.snapshot()
    assert duplicate(table)._memo.loaded is None
    assert duplicate(table) == table
