"""Checkpoints of many files: sidecars, their summaries, and plans that read them without loading all files.

The limits are lowered, so that a few files are many.
"""

from __future__ import annotations

import errno
import json
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st
from support.commits import commit_actions
from support.errors import raises_at
from support.intercepted_store import intercept

import delta_variant as dv
from delta_variant.errors import CommitUnknownError, MalformedLogError, StoreError
from delta_variant.log import file_set
from delta_variant.log.checkpoints import ordering, reading, summaries, writing
from delta_variant.log.file_set import FileSet, Summary
from delta_variant.log.load import load_snapshot
from delta_variant.log.snapshot import Snapshot
from delta_variant.protocol import z85
from delta_variant.protocol.actions import (
    AddFile,
    CommitInfo,
    DeletionVector,
    Format,
    Metadata,
    Protocol,
    RemoveFile,
    Sidecar,
    encode_commit,
)
from delta_variant.read.plan import FilePlan, plan_files, prune_files
from delta_variant.read.query import Query
from delta_variant.storage import store
from delta_variant.storage.objects import NotWrittenError

FEATURES = ("variantType", "variantShredding", "deletionVectors", "v2Checkpoint", "timestampNtz")
PROTOCOL = Protocol(
    min_reader_version=3, min_writer_version=7, reader_features=FEATURES, writer_features=FEATURES
)
COLUMNS = [
    ("id", "long"),
    ("name", "string"),
    ("day", "date"),
    ("ts", "timestamp"),
    ("price", "decimal(10,2)"),
    ("event", "variant"),
    ("part", "string"),
    ("year", "integer"),
]
UNIQUE_ID = "80a083e8-7026-4e79-81be-64bd76c43a11"
DAY = 86_400_000


@contextmanager
def small_limits(sidecar_files: int = 4) -> Iterator[None]:
    """Treat each checkpoint as large, with few files in a sidecar, in memory and in a piece."""
    with (
        patch.object(reading, "STREAMED_BYTES", 0),
        patch.object(reading, "_PIECE_ROWS", 3),
        patch.object(writing, "SIDECAR_FILES", sidecar_files),
        patch.object(writing, "BATCH_ROWS", 5),
        patch.object(file_set, "BATCH_ROWS", 5),
        patch.object(ordering, "MAX_SORTED_FILES", 10),
        patch.object(ordering, "SAMPLED_FILES", 64),
    ):
        yield


@pytest.fixture
def _limits() -> Iterator[None]:
    with small_limits():
        yield


def metadata(*partition_columns: str, **configuration: str) -> Metadata:
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in COLUMNS]
    return Metadata(
        id="m",
        format=Format(),
        schema_string=json.dumps({"type": "struct", "fields": fields}),
        partition_columns=partition_columns,
        configuration={
            "delta.checkpointPolicy": "v2",
            "delta.enableVariantShredding": "true",
            **configuration,
        },
    )


def variant_bound(members: dict[str, Any]) -> str:
    rows = dv.parse_json(pa.array([json.dumps({f"$['{name}']": value for name, value in members.items()})]))
    metadata, value = (rows.field(name)[0].as_py() for name in ("metadata", "value"))
    return z85.encode(metadata + value)


def statistics(number: int, **others: Any) -> str:
    """Return statistics of a file whose values are in ten rows from ten times its number."""
    bounds = [number * 10, number * 10 + 9]
    sides = [
        {"id": bound, "name": f"n{bound:05d}", "event": variant_bound({"a": bound, "s": f"s{bound:05d}"})}
        for bound in bounds
    ]
    nulls = {"id": 0, "name": 0, "event": 0}
    return json.dumps(
        {"numRecords": 10, "minValues": sides[0], "maxValues": sides[1], "nullCount": nulls, **others}
    )


def add(path: str, stats: str | None = None, **others: Any) -> AddFile:
    fields = {"partition_values": {}, "size": 7, "modification_time": 1, "data_change": True, **others}
    return AddFile(path=path, stats=stats, **fields)


def remove(path: str, **others: Any) -> RemoveFile:
    return RemoveFile(path=path, deletion_timestamp=5 * DAY, data_change=True, **others)


def commit(root: Path, version: int, *actions: Any) -> store.Store:
    table = store.open_store(root)
    commit_actions(table, version, [CommitInfo({"operation": "WRITE"}), *actions])
    return table


def checkpoint(root: Path, version: int) -> None:
    writing.write_checkpoint(store.open_store(root), version, now=0, unique_id=UNIQUE_ID)


def table_of(root: Path, files: list[int], *partition_columns: str, **configuration: str) -> None:
    """Write a table of files by their numbers, and its checkpoint."""
    adds = [add(f"f{number:05d}", statistics(number)) for number in files]
    commit(root, 0, PROTOCOL, metadata(*partition_columns, **configuration), *adds)
    checkpoint(root, 0)


def forget_commits(root: Path, *versions: int) -> None:
    for version in versions:
        (root / "_delta_log" / f"{version:020d}.json").unlink()


def sidecars_of(root: Path) -> list[Sidecar]:
    (manifest,) = (root / "_delta_log").glob("*.checkpoint.*.parquet")
    rows = pq.read_table(manifest)["sidecar"].to_pylist(maps_as_pydicts="strict")
    return [msgspec.convert(row, Sidecar) for row in rows if row]


def replace_sidecars(root: Path, sidecars: list[Sidecar]) -> None:
    """Write the checkpoint file of a table again with other sidecar actions."""
    (manifest,) = (root / "_delta_log").glob("*.checkpoint.*.parquet")
    rows = pq.read_table(manifest)
    actions: list[Any] = [None] * rows.num_rows
    for position, sidecar in enumerate(sidecars, start=rows.num_rows - len(sidecars)):
        row = msgspec.to_builtins(sidecar)
        actions[position] = {**row, "tags": list(row.get("tags", {}).items())}
    kind = rows.schema.field("sidecar").type
    index = rows.schema.get_field_index("sidecar")
    pq.write_table(rows.set_column(index, "sidecar", pa.array(actions, kind)), manifest)


def plan(snapshot: Snapshot, where: str) -> FilePlan:
    return plan_files(snapshot, Query.of(snapshot.configuration, [], where).predicate)


def plan_without_bounds(snapshot: Snapshot, predicate: Any) -> Any:
    return prune_files(snapshot.configuration, snapshot.file_set, predicate, with_bounds=False)


def loaded(root: Path) -> Snapshot:
    """Return the snapshot with all files in memory."""
    snapshot = load_snapshot(root)
    return replace(snapshot, file_set=FileSet(snapshot.files))


def paths_of(files: pa.Table) -> list[str]:
    return files["path"].to_pylist()


def opened_sidecars(root: Path, where: str) -> int:
    """Return how many sidecars a plan reads."""
    opened: list[str] = []
    table = intercept(store.open_store(root), before=lambda call, key: opened.append(key))
    plan(load_snapshot(table), where)
    return len({key for key in opened if "_sidecars" in key})


@pytest.mark.usefixtures("_limits")
class TestWriting:
    def test_files_are_in_sidecars_of_a_bounded_number_and_other_actions_are_not(self, tmp_path):
        table_of(tmp_path, list(range(11)))
        forget_commits(tmp_path, 0)
        sidecars = sidecars_of(tmp_path)
        counts = [
            pq.read_metadata(tmp_path / "_delta_log" / "_sidecars" / each.path).num_rows for each in sidecars
        ]
        assert counts == [4, 4, 3]
        for each in sidecars:
            file = tmp_path / "_delta_log" / "_sidecars" / each.path
            assert each.size_in_bytes == file.stat().st_size
        assert paths_of(load_snapshot(tmp_path).files) == [f"f{number:05d}" for number in range(11)]

    def test_the_tags_of_the_checkpoint_and_its_pointer_count_sidecars(self, tmp_path):
        adds = [add(f"f{number}", statistics(number)) for number in range(6)]
        commit(tmp_path, 0, PROTOCOL, metadata(), *adds)
        commit(tmp_path, 1, remove("f0"))
        checkpoint(tmp_path, 1)
        (manifest,) = (tmp_path / "_delta_log").glob("*.checkpoint.*.parquet")
        (tags,) = [
            dict(row["tags"]) for row in pq.read_table(manifest)["checkpointMetadata"].to_pylist() if row
        ]
        sizes = sum(each.size_in_bytes for each in sidecars_of(tmp_path))
        schema = json.loads(tags.pop("sidecarFileSchema"))
        assert tags == {
            "numOfAddFiles": "5",
            "sidecarNumActions": "6",
            "sidecarSizeInBytes": str(sizes),
        }
        assert [field["name"] for field in schema["fields"]] == ["add", "remove"]
        pointer = json.loads((tmp_path / "_delta_log" / "_last_checkpoint").read_text())
        manifest_rows = pq.read_metadata(manifest).num_rows
        assert pointer["size"] == manifest_rows + 6
        assert pointer["numOfAddFiles"] == 5
        assert pointer["sizeInBytes"] == sizes + manifest.stat().st_size

    def test_the_schema_tag_is_omitted_where_it_depends_on_columns(self, tmp_path):
        table_of(tmp_path, list(range(6)), **{"delta.checkpoint.writeStatsAsStruct": "true"})
        (manifest,) = (tmp_path / "_delta_log").glob("*.checkpoint.*.parquet")
        (tags,) = [
            dict(row["tags"]) for row in pq.read_table(manifest)["checkpointMetadata"].to_pylist() if row
        ]
        assert "sidecarFileSchema" not in tags
        forget_commits(tmp_path, 0)
        assert [json.loads(text) for text in load_snapshot(tmp_path).files["stats"].to_pylist()] == [
            json.loads(statistics(number)) for number in range(6)
        ]

    def test_few_files_are_in_the_checkpoint_itself(self, tmp_path):
        table_of(tmp_path, list(range(4)))
        assert not (tmp_path / "_delta_log" / "_sidecars").exists()

    def test_a_classic_checkpoint_of_many_files_is_one_file(self, tmp_path):
        table_of(tmp_path, list(range(30)), **{"delta.checkpointPolicy": "classic"})
        commit(tmp_path, 1, add("f00030", statistics(30)), remove("f00007"))
        assert load_snapshot(tmp_path).file_set.listed is not None
        checkpoint(tmp_path, 1)
        forget_commits(tmp_path, 0, 1)
        (tmp_path / "_delta_log" / f"{0:020d}.checkpoint.parquet").unlink()
        expected = [f"f{number:05d}" for number in range(31) if number != 7]
        assert paths_of(load_snapshot(tmp_path).files) == expected
        assert sorted(DeltaTable(tmp_path).file_uris()) == [str(tmp_path / path) for path in expected]
        pointer = json.loads((tmp_path / "_delta_log" / "_last_checkpoint").read_text())
        assert (pointer["numOfAddFiles"], pointer["size"]) == (30, 33)

    def test_shuffled_files_are_sorted_by_the_path_that_separates_most(self, tmp_path):
        numbers = [number * 37 % 101 for number in range(101)]
        table_of(tmp_path, numbers)
        assert sorted(paths_of(load_snapshot(tmp_path).files)) == [f"f{number:05d}" for number in range(101)]
        assert opened_sidecars(tmp_path, "event:a::bigint = 505") <= 3
        assert opened_sidecars(tmp_path, "name = 'n00505'") <= 3

    def test_partitions_come_first(self, tmp_path):
        parts = ["x", "y", None]
        adds = [
            add(f"f{number}", statistics(number), partition_values={"part": parts[number % 3]})
            for number in range(48)
        ]
        commit(tmp_path, 0, PROTOCOL, metadata("part"), *adds)
        checkpoint(tmp_path, 0)
        assert opened_sidecars(tmp_path, "part = 'y'") <= 6
        assert opened_sidecars(tmp_path, "part is null") <= 6
        assert opened_sidecars(tmp_path, "coalesce(part, 'z') = 'y' and id = 70") <= 2
        assert paths_of(plan(load_snapshot(tmp_path), "part = 'y' and id = 70").files) == ["f7"]

    def test_sidecars_are_deleted_if_the_checkpoint_cannot_be_written(self, tmp_path):
        commit(tmp_path, 0, PROTOCOL, metadata(), *(add(f"f{number}", "{}") for number in range(9)))

        table = intercept(store.open_store(tmp_path), before=fail_checkpoint(NO_SPACE))
        with pytest.raises(StoreError, match="No space left"):
            writing.write_checkpoint(table, 0, now=0, unique_id=UNIQUE_ID)
        assert list((tmp_path / "_delta_log" / "_sidecars").iterdir()) == []

    def test_sidecars_remain_if_the_checkpoint_may_have_been_written(self, tmp_path):
        commit(tmp_path, 0, PROTOCOL, metadata(), *(add(f"f{number}", "{}") for number in range(9)))
        lost = fail_checkpoint(OSError(errno.EIO, "the answer was lost"))
        with pytest.raises(CommitUnknownError, match="the answer was lost"):
            writing.write_checkpoint(intercept(tmp_path, after=lost), 0, now=0, unique_id=UNIQUE_ID)
        forget_commits(tmp_path, 0)
        assert paths_of(load_snapshot(tmp_path).files) == [f"f{number}" for number in range(9)]

    def test_a_checkpoint_that_a_lost_request_has_written_is_complete(self, tmp_path):
        commit(tmp_path, 0, PROTOCOL, metadata(), *(add(f"f{number}", "{}") for number in range(9)))
        repeated = fail_checkpoint(FileExistsError("written by the request before"))
        writing.write_checkpoint(intercept(tmp_path, after=repeated), 0, now=0, unique_id=UNIQUE_ID)
        assert json.loads((tmp_path / "_delta_log" / "_last_checkpoint").read_text())["version"] == 0
        forget_commits(tmp_path, 0)
        assert paths_of(load_snapshot(tmp_path).files) == [f"f{number}" for number in range(9)]

    def test_a_checkpoint_is_written_from_the_commits_if_the_last_one_lost_a_sidecar(self, tmp_path):
        table_of(tmp_path, list(range(9)))
        commit(tmp_path, 1, remove("f00002"))
        (tmp_path / "_delta_log" / "_sidecars" / sidecars_of(tmp_path)[1].path).unlink()
        (tmp_path / "_delta_log" / "_last_checkpoint").unlink()
        writing.write_checkpoint(store.open_store(tmp_path), 1, now=0, unique_id=UNIQUE_ID[:-1] + "2")
        forget_commits(tmp_path, 0, 1)
        expected = [f"f{number:05d}" for number in range(9) if number != 2]
        assert paths_of(load_snapshot(tmp_path).files) == expected


NO_SPACE = NotWrittenError(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))


def fail_checkpoint(error: Exception) -> Callable[[str, str], None]:
    """Return an observer of calls that fails the one that creates a checkpoint."""

    def fail(call: str, key: str) -> None:
        if call == "create" and ".checkpoint." in key:
            raise error

    return fail


@pytest.mark.usefixtures("_limits")
class TestReuse:
    """Sidecars of four files: the first checkpoint of 40 files has ten, in order."""

    @pytest.fixture
    def table(self, tmp_path: Path) -> Path:
        table_of(tmp_path, list(range(40)))
        return tmp_path

    def sidecars(self, table: Path, version: int) -> list[Sidecar]:
        (manifest,) = (table / "_delta_log").glob(f"{version:020d}.checkpoint.*.parquet")
        rows = pq.read_table(manifest)["sidecar"].to_pylist(maps_as_pydicts="strict")
        return [msgspec.convert(row, Sidecar) for row in rows if row]

    def check(self, table: Path, version: int, expected: list[int]) -> None:
        """Check the checkpoint of a version without all that is before it, and its counts."""
        pointer = json.loads((table / "_delta_log" / "_last_checkpoint").read_text())
        sidecars = self.sidecars(table, version)
        (manifest,) = (table / "_delta_log").glob(f"{version:020d}.checkpoint.*.parquet")
        rows = pq.read_table(manifest)["checkpointMetadata"].to_pylist()
        (tags,) = [dict(row["tags"]) for row in rows if row]
        files = [table / "_delta_log" / "_sidecars" / each.path for each in sidecars]
        assert [each.size_in_bytes for each in sidecars] == [file.stat().st_size for file in files]
        num_actions = sum(pq.read_metadata(file).num_rows for file in files)
        assert tags["numOfAddFiles"] == str(len(expected)) == str(pointer["numOfAddFiles"])
        assert tags["sidecarNumActions"] == str(num_actions)
        assert tags["sidecarSizeInBytes"] == str(sum(each.size_in_bytes for each in sidecars))
        assert pointer["size"] == num_actions + pq.read_metadata(manifest).num_rows
        paths = [f"f{number:05d}" for number in expected]
        assert sorted(paths_of(load_snapshot(table).files)) == paths
        others = [
            name for name in (table / "_delta_log").iterdir() if not name.name.startswith(f"{version:020d}")
        ]
        for file in others:
            if file.is_file() and file.name != "_last_checkpoint":
                file.unlink()
        assert sorted(paths_of(load_snapshot(table).files)) == paths
        assert sorted(Path(uri).name for uri in DeltaTable(table).file_uris()) == paths

    def test_parts_of_which_no_file_changed_stay_as_they_are(self, table: Path):
        before = self.sidecars(table, 0)
        added = [add(f"f{number:05d}", statistics(number)) for number in (40, 41, 42)]
        commit(table, 1, remove("f00009"), *added, add("f00017", statistics(17), size=9))
        checkpoint(table, 1)
        after = self.sidecars(table, 1)
        assert after[:8] == [each for number, each in enumerate(before) if number not in (2, 4)]
        # The other files of two sidecars and the new ones: ten files, and a tombstone.
        assert [each.path for each in after[8:]] not in [each.path for each in before]
        assert len(after) == 8 + 3 + 1
        assert [summary.is_ordered for summary in map(summaries.summary_of, after) if summary] == [
            *[True] * 8,
            *[False] * 4,
        ]
        assert opened_sidecars(table, "id = 415") == 2
        self.check(table, 1, [number for number in range(43) if number != 9])

    def test_small_sidecars_of_later_files_are_joined(self, table: Path):
        for version in range(1, 7):
            commit(table, version, add(f"f{39 + version:05d}", statistics(39 + version)))
            checkpoint(table, version)
        summaries_of_all = [summaries.summary_of(each) for each in self.sidecars(table, 6)]
        assert [each.num_files for each in summaries_of_all if each][:10] == [4] * 10
        # Two files are half of a sidecar, which is not written again.
        assert [each.num_files for each in summaries_of_all if each][10:] == [2, 2, 2]
        self.check(table, 6, list(range(46)))

    def test_all_sidecars_are_written_again_if_a_quarter_of_the_files_is_not_in_order(self, table: Path):
        before = {each.path for each in self.sidecars(table, 0)}
        more = [add(f"f{number:05d}", statistics(number)) for number in range(40, 53)]
        commit(table, 1, *more)
        checkpoint(table, 1)
        assert before <= {each.path for each in self.sidecars(table, 1)}
        commit(table, 2, add("f00053", statistics(53)))
        checkpoint(table, 2)
        after = self.sidecars(table, 2)
        assert before.isdisjoint(each.path for each in after)
        assert all(summary.is_ordered for summary in map(summaries.summary_of, after) if summary)
        self.check(table, 2, list(range(54)))

    def test_a_removal_of_all_files_keeps_no_sidecar(self, table: Path):
        before = {each.path for each in self.sidecars(table, 0)}
        commit(table, 1, *(remove(f"f{number:05d}") for number in range(40)))
        checkpoint(table, 1)
        assert before.isdisjoint(each.path for each in self.sidecars(table, 1))
        self.check(table, 1, [])

    @pytest.mark.parametrize(
        "change",
        [
            {"delta.checkpoint.writeStatsAsStruct": "true"},
            {"delta.checkpoint.writeStatsAsJson": "false", "delta.checkpoint.writeStatsAsStruct": "true"},
        ],
        ids=str,
    )
    def test_a_property_that_changes_the_columns_of_sidecars_applies_to_all(self, table: Path, change):
        before = {each.path for each in self.sidecars(table, 0)}
        commit(table, 1, metadata(**change))
        checkpoint(table, 1)
        after = {each.path for each in self.sidecars(table, 1)}
        assert before.isdisjoint(after)
        commit(table, 2, remove("f00000"))
        checkpoint(table, 2)
        assert len(after & {each.path for each in self.sidecars(table, 2)}) == 9
        self.check(table, 2, list(range(1, 40)))

    def test_a_sidecar_with_other_actions_or_without_a_summary_is_written_again(self, table: Path):
        sidecars = self.sidecars(table, 0)
        first, *others = sidecars
        file = table / "_delta_log" / "_sidecars" / first.path
        rows = pq.read_table(file)
        pq.write_table(
            pa.concat_tables([rows, pa.table([pa.nulls(1, each.type) for each in rows.schema], rows.schema)]),
            file,
        )
        resized = msgspec.structs.replace(first, size_in_bytes=file.stat().st_size)
        summary = summaries.summary_of(first)
        assert summary is not None
        tags = summaries.tags_of(msgspec.structs.replace(summary, size_in_bytes=resized.size_in_bytes))
        replace_sidecars(
            table,
            [
                msgspec.structs.replace(resized, tags=tags),
                msgspec.structs.replace(others[0], tags={}),
                *others[1:],
            ],
        )
        commit(table, 1, add("f00040", statistics(40)))
        checkpoint(table, 1)
        assert self.sidecars(table, 1)[:8] == others[1:]
        self.check(table, 1, list(range(41)))

    def test_sidecars_of_a_checkpoint_that_another_one_followed_are_not_shared(self, table: Path):
        handle = dv.Table(table)
        before = {each.path for each in self.sidecars(table, 0)}
        known = handle.snapshot()
        commit(table, 1, add("f00040", statistics(40)))
        with patch.object(ordering, "LEAST_ORDERED", 1.1):
            checkpoint(table, 1)
        assert before.isdisjoint(each.path for each in self.sidecars(table, 1))
        commit(table, 2, remove("f00000"))
        writing.write_checkpoint(known.store, 2, now=0, unique_id=UNIQUE_ID)
        assert before.isdisjoint(each.path for each in self.sidecars(table, 2))
        self.check(table, 2, list(range(1, 41)))

    def test_an_error_deletes_new_sidecars_only(self, table: Path):
        before = {file.name for file in (table / "_delta_log" / "_sidecars").iterdir()}
        commit(table, 1, remove("f00000"), add("f00040", statistics(40)))

        with pytest.raises(StoreError, match="No space left"):
            writing.write_checkpoint(
                intercept(table, before=fail_checkpoint(NO_SPACE)), 1, now=0, unique_id=UNIQUE_ID
            )
        assert {file.name for file in (table / "_delta_log" / "_sidecars").iterdir()} == before

    def test_log_cleanup_keeps_the_sidecars_that_a_later_checkpoint_shares(self, table: Path):
        commit(table, 1, remove("f00000"))
        checkpoint(table, 1)
        shared = {each.path for each in self.sidecars(table, 1)}
        unshared = {each.path for each in self.sidecars(table, 0)} - shared
        assert len(unshared) == 1
        for file in (table / "_delta_log").rglob("*"):
            os.utime(file, (0, 0))
        (table / "_delta_log" / f"{2:020d}.json").write_bytes(encode_commit([CommitInfo({})]))
        dv.clean_up_log(table, dry_run=False)
        assert {file.name for file in (table / "_delta_log" / "_sidecars").iterdir()} == shared
        self.check_versions(table, [1, 2])

    def check_versions(self, table: Path, versions: list[int]) -> None:
        assert sorted(int(file.name[:20]) for file in (table / "_delta_log").glob("*.json")) == versions
        assert len(paths_of(load_snapshot(table).files)) == 39


@pytest.mark.usefixtures("_limits")
class TestSummaries:
    def test_a_plan_opens_only_sidecars_whose_summaries_do_not_exclude_matches(self, tmp_path):
        table_of(tmp_path, list(range(40)))
        assert opened_sidecars(tmp_path, "id = 55") == 1
        assert opened_sidecars(tmp_path, "event:a::bigint between 30 and 90") == 3
        assert opened_sidecars(tmp_path, "id = 1000") == 0
        assert opened_sidecars(tmp_path, "id is not null") == 10
        assert opened_sidecars(tmp_path, "name is null") == 0

    def test_files_of_skipped_sidecars_are_counted_by_what_skipped_them(self, tmp_path):
        table_of(tmp_path, list(range(40)))
        streamed = plan(load_snapshot(tmp_path), "event:a::bigint = 55")
        whole = plan(loaded(tmp_path), "event:a::bigint = 55")
        assert streamed.files.equals(whole.files)
        for name in ("num_files", "num_bytes", "by_partition_values", "by_statistics", "by_variant_bounds"):
            assert getattr(streamed, name) == getattr(whole, name)
        assert streamed.bounded == whole.bounded

    @pytest.mark.parametrize("where", ["id >= 55", "event:a::bigint >= 55", "id is not null", None])
    def test_a_plan_without_bounds_has_the_same_files_and_their_rows(self, tmp_path, where):
        vector = DeletionVector(
            storage_type="u", path_or_inline_dv="ab", offset=1, size_in_bytes=2, cardinality=3
        )
        table_of(tmp_path, list(range(30)))
        others = [add("f00031"), add("f00032", '{"numRecords":"x"}', deletion_vector=vector)]
        commit(tmp_path, 1, *others, add("f00033", statistics(33), tags={"a": "b"}), remove("f00020"))
        snapshot = load_snapshot(tmp_path)
        predicate = None if where is None else Query.of(snapshot.configuration, [], where).predicate
        expected = plan_files(loaded(tmp_path), predicate)
        found = plan_without_bounds(snapshot, predicate)
        assert snapshot.file_set.listed is not None
        without = [name for name in expected.files.column_names if name != "stats"]
        assert found.files.select(without).equals(expected.files.select(without))
        stats = dict(zip(paths_of(found.files), found.files["stats"].to_pylist(), strict=True))
        assert {stats[f"f{number:05d}"] for number in (7, 19) if where is None} <= {'{"numRecords":10}'}
        assert stats["f00029"] == '{"numRecords":10}'
        # Those of later commits are in memory.
        assert (stats["f00031"], stats["f00033"]) == (None, statistics(33))
        assert (found.num_files, found.num_bytes) == (expected.num_files, expected.num_bytes)
        assert found.by_statistics == expected.by_statistics

    @pytest.mark.parametrize("where", ["id = 55", None])
    def test_a_plan_without_bounds_uses_other_files_of_the_log_if_a_sidecar_is_missing(self, tmp_path, where):
        table_of(tmp_path, list(range(30)))
        snapshot = load_snapshot(tmp_path)
        predicate = None if where is None else Query.of(snapshot.configuration, [], where).predicate
        (tmp_path / "_delta_log" / "_sidecars" / sidecars_of(tmp_path)[1].path).unlink()
        expected = ["f00005"] if where else [f"f{number:05d}" for number in range(30)]
        assert paths_of(plan_without_bounds(snapshot, predicate).files) == expected

    @pytest.mark.parametrize(
        "damage",
        [
            lambda text: None,
            lambda text: "",
            lambda text: text[:-9],
            lambda text: "[" * 100_000,
            lambda text: text.replace('"sizeInBytes":', '"sizeInBytes":1'),
            lambda text: text.replace('"sidecar":"', '"sidecar":"x'),
            lambda text: text.replace('"stats":', '"statistics":'),
            lambda text: json.dumps({**json.loads(text), "stats": "{"}),
            lambda text: json.dumps({**json.loads(text), "partitionValues": "x"}),
        ],
    )
    def test_a_summary_that_is_missing_malformed_or_of_another_file_has_no_effect(self, tmp_path, damage):
        table_of(tmp_path, list(range(12)))
        tag = summaries.SUMMARY_TAG
        replace_sidecars(
            tmp_path,
            [
                msgspec.structs.replace(each, tags={tag: damage(each.tags[tag])})
                for each in sidecars_of(tmp_path)
            ],
        )
        assert opened_sidecars(tmp_path, "id = 55") == 3
        assert paths_of(plan(load_snapshot(tmp_path), "id = 55").files) == ["f00005"]

    def test_a_bound_that_one_file_lacks_is_not_in_the_summary(self, tmp_path):
        lacking = json.loads(statistics(3))
        del lacking["maxValues"]["id"]
        texts = [statistics(number) for number in range(8)]
        texts[3] = json.dumps(lacking)
        adds = [add(f"f{number}", text) for number, text in enumerate(texts)]
        commit(tmp_path, 0, PROTOCOL, metadata(), *adds)
        checkpoint(tmp_path, 0)
        assert paths_of(plan(load_snapshot(tmp_path), "id = 1000").files) == ["f3"]
        assert opened_sidecars(tmp_path, "name = 'x'") == 0

    def test_files_without_values_do_not_hide_the_bounds_of_others(self, tmp_path):
        empty = json.dumps({"numRecords": 5, "nullCount": {"id": 5, "name": 5, "event": 5}})
        texts = [statistics(number) for number in range(12)]
        texts[2] = empty
        adds = [add(f"f{number}", text) for number, text in enumerate(texts)]
        commit(tmp_path, 0, PROTOCOL, metadata(), *adds)
        checkpoint(tmp_path, 0)
        assert opened_sidecars(tmp_path, "id = 115") == 1
        assert paths_of(plan(load_snapshot(tmp_path), "id is null").files) == ["f2"]

    def test_a_decimal_between_integers_is_within_the_bounds_of_the_summary(self, tmp_path):
        def stats(number: int) -> str:
            least, greatest = variant_bound({"a": number}), variant_bound({"a": number + 0.5})
            return json.dumps(
                {"numRecords": 1, "minValues": {"event": least}, "maxValues": {"event": greatest}}
            )

        commit(tmp_path, 0, PROTOCOL, metadata(), *(add(f"f{number}", stats(number)) for number in range(8)))
        checkpoint(tmp_path, 0)
        where = "event:a::decimal(10,2) > 7.2"
        assert paths_of(plan(load_snapshot(tmp_path), where).files) == ["f7"]


@pytest.mark.usefixtures("_limits")
class TestStreaming:
    def test_later_commits_replace_files_of_sidecars(self, tmp_path):
        table_of(tmp_path, list(range(12)))
        vector = DeletionVector(storage_type="u", path_or_inline_dv="ab", size_in_bytes=2, cardinality=3)
        commit(
            tmp_path,
            1,
            remove("f00005"),
            remove("f00006"),
            add("f00006", statistics(6), deletion_vector=vector),
            add("g", statistics(5)),
        )
        snapshot = load_snapshot(tmp_path)
        assert paths_of(plan(snapshot, "id between 55 and 65").files) == ["f00006", "g"]
        assert snapshot.file_set.listed is not None
        assert (snapshot.num_files, snapshot.num_bytes) == (12, 84)
        assert snapshot.in_timezone("Europe/Berlin").file_set.listed is not None

    def test_a_commit_writes_no_checksum_for_which_all_files_would_be_read(self, tmp_path):
        dv.write_table(tmp_path, [{"id": 1}])
        checkpoint(tmp_path, 0)
        dv.write_table(tmp_path, [{"id": 2}], mode="append")
        assert sorted(path.name for path in tmp_path.glob("_delta_log/*.crc")) == [f"{0:020d}.crc"]
        assert sorted(dv.read_table(tmp_path).to_pylist(), key=str) == [{"id": 1}, {"id": 2}]

    def test_all_files_are_loaded_when_they_are_used(self, tmp_path):
        table_of(tmp_path, list(range(12)))
        snapshot = load_snapshot(tmp_path)
        copy = snapshot.in_timezone("Europe/Berlin")
        assert snapshot.files.num_rows == 12
        assert snapshot.file_set.listed is None
        assert copy.files is snapshot.files

    def test_the_number_of_rows_needs_no_bounds_of_files(self, tmp_path):
        table_of(tmp_path, list(range(30)))
        vector = DeletionVector(
            storage_type="u", path_or_inline_dv="ab", offset=1, size_in_bytes=2, cardinality=3
        )
        commit(tmp_path, 1, add("f00030", statistics(30), deletion_vector=vector))
        snapshot = load_snapshot(tmp_path)
        assert dv.read_table(snapshot).count() == 307
        assert snapshot.file_set.listed is not None

    def test_a_missing_sidecar_is_an_error_that_names_it(self, tmp_path):
        table_of(tmp_path, list(range(12)))
        commit(tmp_path, 1, add("g", statistics(50)))
        forget_commits(tmp_path, 0)
        lost = sidecars_of(tmp_path)[1].path
        file = str(tmp_path / "_delta_log" / "_sidecars" / lost)
        Path(file).unlink()
        snapshot = load_snapshot(tmp_path)
        with raises_at(MalformedLogError, "cannot read the checkpoint: there is no file", file=file):
            plan(snapshot, "id = 55")
        with pytest.raises(MalformedLogError, match=lost):
            _ = snapshot.files
        # No file of it can match.
        assert paths_of(plan(snapshot, "id = 5").files) == ["f00000"]

    def test_commits_are_read_instead_of_a_missing_sidecar(self, tmp_path):
        table_of(tmp_path, list(range(12)))
        commit(tmp_path, 1, add("g", statistics(5)), remove("f00006"))
        (tmp_path / "_delta_log" / "_sidecars" / sidecars_of(tmp_path)[1].path).unlink()
        snapshot = load_snapshot(tmp_path)
        assert snapshot.num_files == 12
        assert paths_of(plan(load_snapshot(tmp_path), "id between 55 and 65").files) == ["f00005", "g"]

    def test_a_multi_part_checkpoint_is_streamed(self, tmp_path):
        table_of(tmp_path, list(range(12)), **{"delta.checkpointPolicy": "classic"})
        folder = tmp_path / "_delta_log"
        whole = pq.read_table(folder / f"{0:020d}.checkpoint.parquet")
        for part, start in ((1, 0), (2, 6)):
            name = f"{0:020d}.checkpoint.{part:010d}.{2:010d}.parquet"
            pq.write_table(whole.slice(start, whole.num_rows if part == 2 else 6), folder / name)
        (folder / f"{0:020d}.checkpoint.parquet").unlink()
        forget_commits(tmp_path, 0)
        snapshot = load_snapshot(tmp_path)
        assert paths_of(plan(snapshot, "id in (25, 105)").files) == ["f00002", "f00010"]
        assert snapshot.file_set.listed is not None

    def test_a_file_that_is_read_in_ranges_gives_the_same_files(self, tmp_path):
        table_of(tmp_path, list(range(30)), **{"delta.checkpointPolicy": "classic"})
        forget_commits(tmp_path, 0)
        expected = load_snapshot(tmp_path).files
        with patch.object(reading, "_READ_AT_ONCE_BYTES", 10):
            assert load_snapshot(tmp_path).files.equals(expected)
            with patch.object(reading, "local_path", lambda store, path: None):
                assert load_snapshot(tmp_path).files.equals(expected)

    def test_a_read_plans_once(self, tmp_path, caplog):
        dv.write_table(str(tmp_path), pa.table({"id": [1, 2], "name": ["a", "b"]}))
        commit(tmp_path, 1, PROTOCOL, replace_policy(load_snapshot(tmp_path).metadata))
        checkpoint(tmp_path, 1)
        caplog.set_level(logging.INFO, "delta_variant.read.plan")
        scan = dv.read_table(str(tmp_path), where="id > 1")
        assert scan.to_table().to_pylist() == [{"id": 2, "name": "b"}]
        assert scan.count() == 1
        assert len([record for record in caplog.records if "reading 1 of 1 files" in record.message]) == 1


def replace_policy(metadata: Metadata) -> Metadata:
    configuration = {**metadata.configuration, "delta.checkpointPolicy": "v2"}
    return msgspec.structs.replace(metadata, configuration=configuration)


UNEVALUABLE = "part::int = 3"
PREDICATES = [
    "id = 5",
    "id > 7",
    "id is null",
    "id is not null and name >= 'n3'",
    "name = 'n2'",
    "name like 'n1%'",
    "day = date'2024-01-03'",
    "ts >= timestamp'2024-01-04 00:00:00'",
    "price < 2.5",
    "event:a::bigint = 3",
    "event:a::double < 2.5",
    "event:s::string = 's2'",
    "event:a::bigint > 6 or event:s::string < 's1'",
    "not (id < 4)",
    "part = 'x'",
    "part is null or id = 3",
    "length(part) = 0 and event:a::bigint > 2",
    "year > 2020 and id < 5",
    UNEVALUABLE,
    "part = 'x' and year is null",
]
VALUES = st.integers(0, 9)
PARTS = st.sampled_from(["x", "y", "3", "", None])
YEARS = st.sampled_from(["2019", "2021", None])


def _moment(value: int) -> str:
    return datetime(2024, 1, 1 + value, tzinfo=timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")


@st.composite
def texts_of_statistics(draw: st.DrawFn) -> str | None:
    """Draw the text of statistics: of values, of nulls only, without some bounds, malformed or missing."""
    kind = draw(st.sampled_from(["values"] * 6 + ["nulls", "missing", "malformed"]))
    if kind != "values":
        nulls = json.dumps({"numRecords": 2, "nullCount": dict.fromkeys(["id", "name", "event"], 2)})
        return {"nulls": nulls, "missing": None, "malformed": '{"numRecords": '}[kind]
    names = ["id", "name", "day", "ts", "price", "event"]
    lacking = draw(st.sets(st.sampled_from([(side, name) for side in (0, 1) for name in names]), max_size=2))
    low = draw(VALUES)
    ends = low, draw(st.integers(low, 9))
    paths = draw(st.sampled_from([("a", "s"), ("a",), ("s",), ("a", "z")]))
    members: list[dict[str, Any]] = []
    for side, end in enumerate(ends):
        a = end + draw(st.sampled_from([0, 0, 0.5])) * (1 if side else -1)
        event = {name: value for name, value in (("a", a), ("s", f"s{end}"), ("z", True)) if name in paths}
        values = {
            "id": end,
            "name": f"n{end}",
            "day": date(2024, 1, 1 + end).isoformat(),
            "ts": _moment(end),
            "price": end,
            "event": variant_bound(event),
        }
        members.append({name: value for name, value in values.items() if (side, name) not in lacking})
    nulls = draw(st.dictionaries(st.sampled_from(["id", "name", "event"]), st.integers(0, 2), max_size=3))
    return json.dumps({"numRecords": 3, "minValues": members[0], "maxValues": members[1], "nullCount": nulls})


VECTORS = st.sampled_from([None, None, None, "ab", "cd"]).map(
    lambda text: (
        text
        and DeletionVector(storage_type="u", path_or_inline_dv=text, size_in_bytes=2, cardinality=1, offset=1)
    )
)


@st.composite
def adds(draw: st.DrawFn, numbers: st.SearchStrategy[int]) -> AddFile:
    return add(
        f"f%20{draw(numbers)}",
        draw(texts_of_statistics()),
        partition_values={"part": draw(PARTS), "year": draw(YEARS)},
        deletion_vector=draw(VECTORS),
        size=draw(VALUES),
    )


@st.composite
def commits(draw: st.DrawFn) -> list[AddFile | RemoveFile]:
    changed = draw(st.lists(adds(st.integers(0, 59)), max_size=6, unique_by=lambda each: each.path))
    return [
        each
        if draw(st.booleans())
        else RemoveFile(
            path=each.path, deletion_timestamp=1, data_change=True, deletion_vector=each.deletion_vector
        )
        for each in changed
    ]


@given(
    files=st.lists(adds(st.integers(0, 49)), max_size=30, unique_by=lambda each: each.path),
    between=st.lists(commits(), max_size=2),
    tail=st.lists(commits(), max_size=2),
    partitions=st.sampled_from([("part", "year"), ("part",), ()]),
    policy=st.sampled_from(["v2", "v2", "classic"]),
    as_struct=st.sampled_from(["false", "false", "true"]),
    where=st.sampled_from(PREDICATES),
    sidecar_files=st.integers(2, 7),
)
def test_a_plan_over_a_streamed_checkpoint_selects_what_a_plan_over_all_files_does(
    files: list[AddFile],
    between: list[list[Any]],
    tail: list[list[Any]],
    partitions: tuple[str, ...],
    policy: str,
    as_struct: str,
    where: str,
    sidecar_files: int,
) -> None:
    configuration = {
        "delta.checkpointPolicy": policy,
        "delta.checkpoint.writeStatsAsJson": "true",
        "delta.checkpoint.writeStatsAsStruct": as_struct,
    }
    with TemporaryDirectory() as folder, small_limits(sidecar_files):
        root = Path(folder)
        commit(root, 0, PROTOCOL, metadata(*partitions, **configuration), *files)
        for version, actions in enumerate(between, start=1):
            commit(root, version, *actions)
        if between:
            checkpoint(root, 0)
        for version, actions in enumerate(tail, start=len(between) + 1):
            commit(root, version, *actions)
        expected = plan(load_snapshot(root), where) if not between else None
        without = plan(loaded(root), where)
        checkpoint(root, len(between))
        streamed, whole = plan(load_snapshot(root), where), plan(loaded(root), where)
        if where != UNEVALUABLE:
            assert streamed.files.equals(whole.files)
        elif whole.num_files == whole.files.num_rows:
            # All files that are pruned together are selected if one of them has an error.
            failing = pc.invert(pc.is_in(_parts_of(whole.files), value_set=pa.array(["3", "", None])))
            assert set(_keys(whole.files.filter(failing))) <= set(_keys(streamed.files))
        assert _keys(whole.files) == _keys(without.files)
        assert expected is None or _keys(expected.files) == _keys(without.files)
        if not tail:
            assert streamed.num_files == whole.num_files
            assert streamed.num_bytes == whole.num_bytes


def _parts_of(files: pa.Table) -> Any:
    return pc.map_lookup(files["partition_values"], "part", "first")


def _keys(files: pa.Table) -> list[Any]:
    return sorted((str(row) for row in files.to_pylist()), key=str)


def test_a_summary_survives_its_text() -> None:
    summary = Summary("a.parquet", 3, 2, 9, '{"numRecords":4}', [{"p": None}, {"p": "x"}])
    sidecar = Sidecar(path="a.parquet", size_in_bytes=3, modification_time=0, tags=summaries.tags_of(summary))
    assert summaries.summary_of(sidecar) == summary
