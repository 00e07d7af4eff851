"""Commits of many files: their text, their memory, their retries, and how they are replayed.

The limits are lowered where a few files stand for many.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from support.commits import commit_actions
from support.errors import raises_at
from support.intercepted_store import commit_first, intercept
from support.processes import run_program
from support.tables import read_commit

import delta_variant as dv
from delta_variant.errors import CommitConflictError, MalformedLogError
from delta_variant.log import commits, pending_commit, transaction
from delta_variant.log.commit_context import CommitOptions, commit_context
from delta_variant.log.conflicts import Reads
from delta_variant.log.file_tables import add_actions, files_table
from delta_variant.log.pending_commit import CommitText
from delta_variant.log.snapshot import Snapshot
from delta_variant.protocol.actions import (
    AddCDCFile,
    AddFile,
    CommitInfo,
    DeletionVector,
    DomainMetadata,
    Format,
    Metadata,
    Protocol,
    RemoveFile,
    decode_commit,
    encode_commit,
)
from delta_variant.storage import store
from delta_variant.storage.store import Store

FEATURES = ("deletionVectors", "domainMetadata")
PROTOCOL = Protocol(
    min_reader_version=3,
    min_writer_version=7,
    reader_features=("deletionVectors",),
    writer_features=FEATURES,
)
TRACKED = msgspec.structs.replace(PROTOCOL, writer_features=(*FEATURES, "rowTracking"))
SCHEMA = {
    "type": "struct",
    "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}],
}


def metadata(**configuration: str) -> Metadata:
    return Metadata(
        id="m",
        format=Format(),
        schema_string=json.dumps(SCHEMA),
        partition_columns=(),
        configuration={f"delta.{name}": value for name, value in configuration.items()},
    )


def add(number: int) -> AddFile:
    vector = DeletionVector(
        storage_type="u", path_or_inline_dv="ab", offset=number, size_in_bytes=2, cardinality=1
    )
    return AddFile(
        path=f"f%20{number:05d}" if number % 3 else f"f{number:05d}",
        partition_values={},
        size=number,
        modification_time=1,
        data_change=True,
        stats=f'{{"numRecords":{number + 1}}}',
        tags={"t": str(number)} if number % 2 else None,
        deletion_vector=None if number % 5 else vector,
    )


def table_of(root: Path, files: int) -> Store:
    """Write a table of some files, and return its store."""
    table = store.open_store(root)
    commit_actions(table, 0, [CommitInfo({}), PROTOCOL, metadata(), *map(add, range(files))])
    return table


def replace_files(snapshot: Snapshot, removed: pa.Table, adds: Any, **others: Any) -> int:
    context = commit_context("DELETE", {}, {}, CommitOptions())
    reads = Reads(removed, lambda adds: False)
    return transaction.replace_files(snapshot, removed, adds, context=context, reads=reads, **others)


def changes(root: Path, version: int) -> list[Any]:
    """Return the actions of a commit on files, without the time of removals."""
    found = decode_commit((root / "_delta_log" / f"{version:020d}.json").read_bytes(), "x")
    return [
        msgspec.structs.replace(each, deletion_timestamp=0) if isinstance(each, RemoveFile) else each
        for each in found
        if isinstance(each, (AddFile, RemoveFile))
    ]


@pytest.fixture
def _limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat each commit as a large one."""
    monkeypatch.setattr(pending_commit, "_LARGEST_IN_MEMORY", 0)
    monkeypatch.setattr(pending_commit, "_COPIED_BYTES", 100)
    monkeypatch.setattr(commits, "LARGE_COMMIT_BYTES", 0)
    monkeypatch.setattr(commits, "_PART_BYTES", 1000)


class TestText:
    @pytest.mark.parametrize("limit", [0, 300, 1 << 20])
    def test_the_text_is_that_of_the_actions_in_memory_or_in_a_file(self, limit):
        actions = [CommitInfo({"a": 1}), *map(add, range(9))]
        with (
            patch.object(pending_commit, "_LARGEST_IN_MEMORY", limit),
            CommitText() as text,
            CommitText() as other,
        ):
            assert other.add(actions) == actions[:1]
            text.add([PROTOCOL])
            text.extend(other)
            content = text.content()
            assert isinstance(content, bytes) == (limit == 1 << 20)
            data = content if isinstance(content, bytes) else b"".join(text.parts())
            assert data == encode_commit([PROTOCOL, *actions])

    @pytest.mark.parametrize("uri", ["{tmp}/t", "memory:///large-commits"])
    @pytest.mark.usefixtures("_limits")
    def test_a_temporary_file_is_put_if_absent(self, uri, tmp_path):
        table = store.open_store(uri.format(tmp=tmp_path))
        name = "_delta_log/00000000000000000007.json"
        with CommitText() as text:
            text.add(map(add, range(50)))
            store.put_if_absent(table, name, text.content())
            assert store.read(table, name) == encode_commit(map(add, range(50)))
            with pytest.raises(dv.errors.DeltaVariantError, match="already exists"):
                store.put_if_absent(table, name, text.content())
        assert store.read(table, name) == encode_commit(map(add, range(50)))


@pytest.mark.usefixtures("_limits")
class TestCommits:
    def test_rows_of_a_table_are_committed_as_their_actions(self, tmp_path):
        snapshot = dv.load_snapshot(table_of(tmp_path, 30))
        added = files_table([add(number) for number in range(40, 60)])
        replace_files(snapshot, snapshot.files, added)
        replace_files(snapshot, snapshot.files.slice(0, 0), list(add_actions(added)), data_change=False)
        removed = [action for action in changes(tmp_path, 1) if isinstance(action, RemoveFile)]
        assert [(each.path, each.size, each.stats, each.tags) for each in removed] == [
            (each.path, each.size, each.stats, each.tags) for each in map(add, range(30))
        ]
        adds = [add(number) for number in range(40, 60)]
        assert changes(tmp_path, 1)[30:] == adds
        assert changes(tmp_path, 2) == [msgspec.structs.replace(each, data_change=False) for each in adds]

    def test_the_checksum_counts_what_is_left(self, tmp_path):
        snapshot = dv.load_snapshot(table_of(tmp_path, 30))
        replace_files(snapshot, snapshot.files.slice(10), files_table([add(77)]))
        checksum = json.loads((tmp_path / "_delta_log" / f"{1:020d}.crc").read_text())
        assert (checksum["numFiles"], checksum["tableSizeBytes"]) == (11, sum(range(10)) + 77)
        assert (checksum["numDeletedRecordsOpt"], checksum["numDeletionVectorsOpt"]) == (2, 2)

    def test_a_retry_assigns_row_ids_again(self, tmp_path):
        table = store.open_store(tmp_path)
        commit_actions(table, 0, [CommitInfo({}), TRACKED, metadata(enableRowTracking="true")])
        domain = DomainMetadata(
            domain="delta.rowTracking", configuration='{"rowIdHighWaterMark":9}', removed=False
        )
        snapshot = dv.load_snapshot(commit_first(table, lambda: _append(tmp_path, [domain])))
        transaction.add_files(
            snapshot, files_table([add(1), add(2)]), context=commit_context("WRITE", {}, {}, CommitOptions())
        )
        adds = [line["add"] for line in read_commit(tmp_path, 2) if "add" in line]
        assert [(each["baseRowId"], each["defaultRowCommitVersion"]) for each in adds] == [(10, 2), (12, 2)]
        (record,) = [line["domainMetadata"] for line in read_commit(tmp_path, 2) if "domainMetadata" in line]
        assert json.loads(record["configuration"]) == {"rowIdHighWaterMark": 14}
        checksum = json.loads((tmp_path / "_delta_log" / f"{2:020d}.crc").read_text())
        assert [each["configuration"] for each in checksum["domainMetadata"]] == [record["configuration"]]

    def test_a_retry_reads_the_concurrent_commits_only_and_encodes_files_once(self, tmp_path):
        table_of(tmp_path, 30)
        read: list[str] = []
        observed = intercept(
            tmp_path, before=lambda call, key: call != "create" and read.append(Path(key).name)
        )
        snapshot = dv.load_snapshot(commit_first(observed, lambda: _append(tmp_path, [add(77)])))
        read.clear()
        encoded: list[int] = []

        def count(actions: Any) -> bytes:
            encoded.append(len(actions))
            return encode_commit(actions)

        with patch.object(pending_commit, "encode_commit", count):
            assert replace_files(snapshot, snapshot.files, []) == 2
        commits_read = [name for name in read if name.endswith(".json") and name[:20].isdigit()]
        # The commit before, and whether there is another one after it.
        assert sorted(commits_read) == [f"{1:020d}.json", f"{2:020d}.json", f"{3:020d}.json"]
        assert encoded == [30, 1, 1]
        assert len(changes(tmp_path, 2)) == 30

    def test_change_data_files_are_committed_before_others_and_encoded_once(self, tmp_path):
        table = table_of(tmp_path, 2)
        snapshot = dv.load_snapshot(commit_first(table, lambda: _append(tmp_path, [add(77)])))
        recorded = [
            AddCDCFile(path=f"_change_data/{n}", partition_values={}, size=n, data_change=False)
            for n in range(3)
        ]
        assert replace_files(snapshot, snapshot.files.slice(1), [add(9)], changes=iter(recorded)) == 2
        found = decode_commit((tmp_path / "_delta_log" / f"{2:020d}.json").read_bytes(), "x")
        assert found[1:4] == recorded
        assert [type(each) for each in found] == [CommitInfo, *3 * [AddCDCFile], RemoveFile, AddFile]

    def test_a_concurrent_removal_of_a_read_file_conflicts(self, tmp_path):
        table = table_of(tmp_path, 30)
        removal = RemoveFile(path="f%2000007", data_change=True, deletion_timestamp=1)
        snapshot = dv.load_snapshot(commit_first(table, lambda: _append(tmp_path, [removal])))
        with raises_at(CommitConflictError, version=1) as caught:
            replace_files(snapshot, snapshot.files, [])
        assert "removed f 00007, which this operation read" in str(caught.value)

    def test_another_removal_does_not_conflict(self, tmp_path):
        table = table_of(tmp_path, 30)
        removal = RemoveFile(path="f%2000007", data_change=True, deletion_timestamp=1)
        snapshot = dv.load_snapshot(commit_first(table, lambda: _append(tmp_path, [removal])))
        others = snapshot.files.filter(pc.not_equal(snapshot.files["path"], "f 00007"))
        assert replace_files(snapshot, others, []) == 2
        assert dv.load_snapshot(tmp_path).num_files == 0


def _append(root: Path, actions: list[Any]) -> None:
    table = store.open_store(root)
    commit_actions(table, dv.load_snapshot(table).version + 1, [CommitInfo({}), *actions])


@pytest.mark.usefixtures("_limits")
class TestMalformed:
    def test_the_line_of_an_error_is_that_of_the_file(self, tmp_path):
        table_of(tmp_path, 30)
        file = tmp_path / "_delta_log" / f"{0:020d}.json"
        text = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(b"".join([*text[:20], b'{"add":7}\n', *text[20:]]))
        with raises_at(MalformedLogError, line=21, version=0):
            dv.load_snapshot(tmp_path)

    @pytest.mark.parametrize(
        ("action", "kind"), [(add(3), "add"), (add(5), "add"), (PROTOCOL, "protocol")], ids=repr
    )
    def test_a_duplicate_is_an_error(self, tmp_path, action, kind):
        table_of(tmp_path, 30)
        with (tmp_path / "_delta_log" / f"{0:020d}.json").open("ab") as file:
            file.write(encode_commit([action]))
        with raises_at(MalformedLogError, line=34, version=0) as caught:
            dv.load_snapshot(tmp_path)
        assert f"a commit can have only one {kind}" in str(caught.value)

    def test_an_empty_file_is_an_error(self, tmp_path):
        table_of(tmp_path, 3)
        (tmp_path / "_delta_log" / f"{1:020d}.json").write_bytes(b"")
        with raises_at(MalformedLogError, version=1):
            dv.load_snapshot(tmp_path, 1)


MEASURE = """
import sys, resource
import delta_variant as dv
from delta_variant.expressions import parse
snapshot = dv.load_snapshot(sys.argv[1])
snapshot.files
del snapshot
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(dv.delete_all(sys.argv[1]).files_removed, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
def test_the_removal_of_many_files_needs_less_memory_than_their_actions(tmp_path):
    files = 120_000
    padding = "x" * 250
    adds = (
        msgspec.structs.replace(add(number), stats=f'{{"numRecords":1,"minValues":{{"a":"{padding}"}}}}')
        for number in range(files)
    )
    with CommitText() as text:
        actions = text.add([CommitInfo({}), PROTOCOL, metadata()])
        text.add(adds)
        commits.write_commit(store.open_store(tmp_path), 0, text.content(), actions)
    removed, kilobytes = map(int, run_program(MEASURE, tmp_path).split())
    assert removed == files
    # The actions of these files and their text are 250 MB.
    assert kilobytes < 100_000
    assert dv.load_snapshot(tmp_path).num_files == 0
