"""A vacuum deletes the files that a table no longer needs, and no others."""

from __future__ import annotations

import errno
import json
import os
import time
from pathlib import Path
from threading import Lock
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from support.archives import unpack_spark_table
from support.commits import commit_actions
from support.errors import raises_at
from support.intercepted_store import commit_first, intercept
from support.tables import list_files, read_ids
from typer.testing import CliRunner

import delta_variant as dv
from delta_variant.cli import main, message_of
from delta_variant.cli.app import app
from delta_variant.errors import (
    CommitConflictError,
    DataFileError,
    DeltaVariantError,
    MalformedLogError,
    RetentionDurationError,
    StoreError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from delta_variant.log.checkpoints import writing as checkpoint_writing
from delta_variant.log.listing import commit_file_name
from delta_variant.operations.vacuum import VacuumInterrupted
from delta_variant.protocol.actions import AddFile, CommitInfo, DeletionVector, RemoveFile
from delta_variant.storage import store

DAY = 86_400_000


def append(table: Path, *numbers: int, **options: Any) -> None:
    texts = [f'{{"n": {number}}}' for number in numbers]
    days = [f"d{number % 2}" for number in numbers]
    rows = pa.table({"id": list(numbers), "day": days, "v": pa.array(texts, pa.json_())})
    dv.write_table(table, rows, **{"mode": "append", **options})


def age(table: Path, days: float = 30) -> None:
    """Make every file, and the deletion timestamps in the log, older."""
    for path in table.rglob("*"):
        if path.is_file() and not path.is_symlink():
            then = time.time() - days * 86_400
            os.utime(path, (then, then))
    for commit in (table / "_delta_log").glob("*.json"):
        lines = [json.loads(line) for line in commit.read_text("utf-8").splitlines()]
        for line in lines:
            if "remove" in line:
                line["remove"]["deletionTimestamp"] -= int(days * DAY)
        commit.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")


def put(table: Path, name: str, *, days: float = 30) -> str:
    """Write a file that no commit has into the folder of a table."""
    (table / name).parent.mkdir(parents=True, exist_ok=True)
    (table / name).write_bytes(b"x")
    then = time.time() - days * 86_400
    os.utime(table / name, (then, then))
    return name


def commit(table: Path, *actions: Any) -> None:
    state = dv.load_snapshot(table)
    commit_actions(state.store, state.version + 1, [CommitInfo({}), *actions])


def add(path: str, **fields: Any) -> AddFile:
    return AddFile(
        path=path, partition_values={"day": None}, size=1, modification_time=1, data_change=True, **fields
    )


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return a table with two data files, one for each day."""
    append(tmp_path / "t", 0, 1, partition_by=["day"])
    return tmp_path / "t"


def test_files_removed_before_the_retention_are_deleted(table):
    dv.delete(table, "day = 'd0'")
    age(table)
    removed = dv.load_snapshot(table, 0).files["path"].to_pylist()
    left = dv.load_snapshot(table).files["path"].to_pylist()
    found = dv.vacuum(table, dry_run=False)
    assert set(found.files) == set(removed) - set(left)
    assert found.bytes > 0
    assert list_files(table) & {*removed} == {*left}
    assert read_ids(table) == [1]
    assert dv.vacuum(table).files == ()


def test_a_dry_run_returns_the_same_files_and_deletes_none(table):
    dv.delete_all(table)
    age(table)
    before = list_files(table)
    dry = dv.vacuum(table)
    assert (list_files(table), dv.load_snapshot(table).version, dry.dry_run) == (before, 1, True)
    assert dv.vacuum(table, dry_run=False).files == dry.files
    assert before - list_files(table) == set(dry.files)


def test_files_removed_within_the_retention_are_kept(table):
    dv.delete_all(table)
    for path in table.rglob("*.parquet"):
        os.utime(path, (0, 0))
    assert dv.vacuum(table).files == ()
    assert read_ids(table, version=0) == [0, 1]


def test_old_files_that_no_commit_has_are_deleted(table):
    old, nested = put(table, "part-old.parquet", days=8), put(table, "day=d0/part-old.parquet", days=8)
    put(table, "part-young.parquet", days=6)
    assert set(dv.vacuum(table).files) == {old, nested}


def test_old_records_of_spark_tasks_are_deleted(table):
    old = put(table, "_delta_variant/job/run-attempt", days=8)
    put(table, "_delta_variant/job/run-other", days=6)
    put(table, "_other/job/run-attempt", days=8)
    assert dv.vacuum(table, dry_run=False).files == (old,)
    assert list_files(table / "_delta_variant") == {"job/run-other"}


def test_the_default_retention_is_the_table_property(tmp_path):
    retention = {"delta.deletedFileRetentionDuration": "interval 2 days"}
    append(tmp_path, 0, configuration=retention)
    old = put(tmp_path, "part-old.parquet", days=2.1)
    put(tmp_path, "part-young.parquet", days=1.9)
    assert dv.vacuum(tmp_path).files == (old,)


def test_a_shorter_retention_must_be_allowed_by_the_caller(table):
    young = put(table, "part-young.parquet", days=2)
    with raises_at(RetentionDurationError, r"retention of 24 hours .* for 168 hours", table=str(table)):
        dv.vacuum(table, 24)
    assert dv.vacuum(table, 24, enforce_retention_duration=False).files == (young,)
    assert dv.vacuum(table, 168).files == ()


@pytest.mark.parametrize("hours", [-1, float("nan"), float("inf")])
def test_invalid_hours_are_rejected(table, hours):
    with pytest.raises(ValueError, match="a finite number of at least 0"):
        dv.vacuum(table, hours, enforce_retention_duration=False)


def test_a_longer_retention_keeps_files_whose_tombstones_checkpoints_omit(table):
    dv.delete_all(table)
    age(table, 20)
    checkpoint_writing.write_checkpoint(store.open_store(table), 1, now=int(time.time() * 1000), unique_id="")
    append(table, 5)
    assert dv.vacuum(table, 30 * 24).files == ()
    assert len(dv.vacuum(table, 10 * 24).files) == 2


@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_files_that_only_a_checkpoint_has_are_kept(tmp_path, policy):
    table = tmp_path / "t"
    append(table, 0, configuration={"delta.checkpointPolicy": policy})
    append(table, 1)
    dv.delete(table, "id = 0")
    unique_id = "0f0e0d0c-0b0a-4908-8706-050403020100"
    checkpoint_writing.write_checkpoint(
        store.open_store(table), 2, now=int(time.time() * 1000), unique_id=unique_id
    )
    for version in range(3):
        (table / commit_file_name(version)).unlink()
    for path in table.glob("*.parquet"):
        os.utime(path, (0, 0))
    orphan = put(table, "part-orphan.parquet")
    assert dv.vacuum(table, dry_run=False).files == (orphan,)
    assert read_ids(table) == [1]
    assert len(list(table.glob("*.parquet"))) == 2


def test_hidden_files_are_kept_except_in_partition_folders(tmp_path):
    rows = pa.table({"_x": ["a"], ".y z": ["b"], "id": [1]})
    table, configuration = tmp_path / "t", {"delta.columnMapping.mode": "name"}
    dv.write_table(table, rows, partition_by=["_x", ".y z"], configuration=configuration)
    for name in ("_a/f", ".b/f", "_c.parquet", ".d.crc", "_delta_index/f", "e/_f/g", "_xy=1/f", "e/.h"):
        put(table, name)
    partitions = [put(table, "_x=1/f"), put(table, "_x=1/.y z=1/f"), put(table, "_x=1/.y%20z=2/f")]
    put(table, "_x=1/_f")
    assert sorted(dv.vacuum(table).files) == sorted(partitions)


def test_old_files_of_the_change_data_feed_are_deleted(table):
    old = [put(table, "_change_data/cdc-1.parquet"), put(table, "_change_data/day=d0/cdc-2.parquet")]
    put(table, "_change_data/cdc-3.parquet", days=6)
    put(table, "_change_data/_hidden/cdc-4.parquet")
    assert sorted(dv.vacuum(table).files) == sorted(old)


def test_deletion_vectors_of_current_and_recently_removed_files_are_kept(corpora, tmp_path):
    table = unpack_spark_table(corpora, "d_dv", tmp_path)
    for path in table.rglob("*"):
        os.utime(path, (0, 0))
    state = dv.load_snapshot(table)
    rows = dv.read_table(table).to_table().num_rows
    orphan = put(table, "deletion_vector_0f0e0d0c-0b0a-4908-8706-050403020100.bin")
    assert set(dv.vacuum(table, 8 * 24, dry_run=False).files) == {orphan}
    needed = set(state.files["path"].to_pylist())
    dv.vacuum(table, 0, dry_run=False, enforce_retention_duration=False)
    left = {path.name for path in table.iterdir() if path.is_file() and path.name[0] not in "._"}
    assert needed < left
    assert dv.read_table(table).to_table().num_rows == rows
    assert any(name.startswith("deletion_vector_") for name in left)


def test_an_invalid_deletion_vector_stops_a_vacuum(table):
    vector = DeletionVector(storage_type="x", path_or_inline_dv="?", size_in_bytes=1, cardinality=1)
    commit(table, add("part-x.parquet", deletion_vector=vector))
    put(table, "part-old.parquet")
    with pytest.raises(MalformedLogError, match="expected storage type i, p or u, got 'x'"):
        dv.vacuum(table)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a%20b%25c.parquet", "a b%c.parquet"),
        ("a%20b%25c.parquet", "a%20b%25c.parquet"),
        ("day=%25F0%259F/x.parquet", "day=%F0%9F/x.parquet"),
        ("./sub//x.parquet", "sub/x.parquet"),
        ("sub/../x.parquet", "x.parquet"),
        ("../t/x.parquet", "x.parquet"),
        ("{root}/sub/x.parquet", "sub/x.parquet"),
        ("file:{root}/x.parquet", "x.parquet"),
        ("file://{root}/sub/x.parquet", "sub/x.parquet"),
        ("s3a://other/place/x.parquet", "x.parquet"),
    ],
)
def test_a_file_is_kept_in_each_spelling_of_its_path(table, text, name):
    put(table, name)
    commit(table, add(text.format(root=table)))
    assert dv.vacuum(table).files == ()


def test_nothing_outside_the_table_is_deleted(table, tmp_path):
    outside = [tmp_path / "secret", tmp_path / "other" / "x.parquet"]
    outside[1].parent.mkdir()
    for path in outside:
        path.write_bytes(b"x")
        os.utime(path, (0, 0))
    for text in (
        "../secret",
        f"{tmp_path}/secret",
        f"file://{tmp_path}/other/x.parquet",
        "../other/x.parquet",
    ):
        commit(table, RemoveFile(path=text, data_change=True, deletion_timestamp=1))
    (table / "link").symlink_to(outside[1].parent)
    (table / "secret").symlink_to(outside[0])
    assert dv.vacuum(table, 0, dry_run=False, enforce_retention_duration=False).files == ()
    assert all(path.exists() for path in outside)


def test_targets_of_symbolic_links_within_the_table_are_kept(table):
    put(table, "stored/part-1.parquet")
    put(table, "stored/part-2.parquet")
    put(table, "single.parquet")
    (table / "day=d7").symlink_to(table / "stored")
    (table / "named.parquet").symlink_to("single.parquet")
    commit(table, add("day=d7/part-1.parquet"), add("named.parquet"))
    assert dv.vacuum(table).files == ()


def test_a_table_can_be_vacuumed_through_a_symbolic_link(table, tmp_path):
    (tmp_path / "alias").symlink_to(table)
    old = put(table, "part-old.parquet")
    assert dv.vacuum(tmp_path / "alias", dry_run=False).files == (old,)
    assert not (table / old).exists()
    assert read_ids(tmp_path / "alias") == [0, 1]


def test_a_table_within_the_table_is_kept(table):
    append(table / "inner" / "t", 7)
    age(table / "inner" / "t")
    old = put(table, "inner/part-old.parquet")
    assert dv.vacuum(table, dry_run=False).files == (old,)
    assert read_ids(table / "inner" / "t") == [7]


def test_files_of_any_name_are_deleted(table):
    names = [
        put(table, name) for name in ("a\nb", "part.parquet#1", "[b]*?", "ü %41", "x=1/.", "back\\slash")[:4]
    ]
    assert sorted(dv.vacuum(table, dry_run=False).files) == sorted(names)
    assert not any((table / name).exists() for name in names)


def test_iceberg_metadata_is_kept_for_uniform_tables(table):
    old = put(table, "metadata/v1.metadata.json")
    assert dv.vacuum(table).files == (old,)
    state = dv.load_snapshot(table)
    settings = {**state.properties, "delta.universalFormat.enabledFormats": "iceberg"}
    commit(table, type(state.metadata)(**{**_fields(state.metadata), "configuration": settings}))
    assert dv.vacuum(table).files == ()


def _fields(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__struct_fields__}


def test_a_vacuum_that_deletes_is_recorded_in_the_log(table):
    put(table, "part-old.parquet")
    dv.vacuum(table, 200, dry_run=False)
    end, start, _ = dv.history(table)
    assert (start.operation, end.operation) == ("VACUUM START", "VACUUM END")
    assert start.metrics == {"numFilesToDelete": 1, "sizeOfDataToDelete": 1}
    assert start.parameters == {
        "retentionCheckEnabled": True,
        "defaultRetentionMillis": 7 * DAY,
        "specifiedRetentionMillis": 200 * 3_600_000,
    }
    assert (end.parameters["status"], end.metrics) == ("COMPLETED", {"numDeletedFiles": 1})
    assert read_ids(table) == [0, 1]


def test_a_file_that_cannot_be_deleted_is_an_error_after_all_others(table):
    names = [put(table, f"part-{number}.parquet") for number in range(3)]

    def reject(call: str, key: str) -> None:
        if call == "delete" and key.endswith(names[1]):
            raise PermissionError(errno.EACCES, "permission denied", key)

    with pytest.raises(StoreError, match=r"1 of 3 files: .*part-1\.parquet: permission") as caught:
        dv.vacuum(intercept(table, before=reject), dry_run=False)
    assert str(caught.value.file).endswith(names[1])
    assert [(table / name).exists() for name in names] == [False, True, False]
    end = dv.history(table)[0]
    assert (end.parameters["status"], end.metrics) == ("FAILED", {"numDeletedFiles": 2})


def test_an_interrupt_cancels_the_deletions_that_have_not_started(table):
    names = [put(table, f"part-{number:03}.parquet") for number in range(200)]

    def interrupt(call: str, key: str) -> None:
        if call == "delete" and key.endswith("-050.parquet"):
            raise KeyboardInterrupt
        if call == "delete" and key[-11:] > "050.parquet":
            # The thread that cancels the others must run before they are done.
            time.sleep(0.3)

    with pytest.raises(
        VacuumInterrupted, match=r"^interrupted: \d+ of 200 unused files .* is intact$"
    ) as caught:
        dv.vacuum(intercept(table, before=interrupt), dry_run=False)
    deleted = 200 - sum((table / name).exists() for name in names)
    assert str(caught.value).startswith(f"interrupted: {deleted} of 200")
    assert 50 <= deleted < 199
    end = dv.history(table)[0]
    assert (end.operation, end.parameters["status"]) == ("VACUUM END", "FAILED")
    assert end.metrics == {"numDeletedFiles": deleted}
    assert read_ids(table) == [0, 1]
    assert len(dv.vacuum(table, dry_run=False).files) == 200 - deleted


def test_the_command_line_says_what_an_interrupted_vacuum_deleted(
    table, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    put(table, "part-1.parquet")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("delta_variant.operations.vacuum.delete_all", interrupt)
    with pytest.raises(SystemExit) as exited:
        main(["vacuum", str(table), "--yes"])
    assert exited.value.code == 130
    assert capsys.readouterr().err == (
        "delta-variant: interrupted: 0 of 1 unused files were deleted; the latest version of the table needs "
        "none of them, and is intact\n"
    )


def test_a_restore_during_the_deletions_of_a_vacuum_is_rejected(table):
    dv.delete_all(table)
    age(table)
    errors, one_at_a_time = [], Lock()

    def restore(call: str, key: str) -> None:
        with one_at_a_time:
            if call == "delete" and not errors:
                with raises_at(CommitConflictError, "has not recorded its end", version=2) as caught:
                    dv.restore(table, 0)
                errors.append(caught.value)

    assert len(dv.vacuum(intercept(table, before=restore), dry_run=False).files) == 2
    assert errors
    with raises_at(DataFileError, "files are missing", version=0):
        dv.restore(table, 0)


def test_a_vacuum_that_was_killed_prevents_restores_for_a_day(table):
    dv.delete_all(table)
    info = {"operation": "VACUUM START", "timestamp": int(time.time() * 1000)}
    commit_actions(dv.load_snapshot(table).store, 2, [CommitInfo(info)])
    with raises_at(CommitConflictError, version=2):
        dv.restore(table, 0)
    path = table / commit_file_name(2)
    path.write_text(json.dumps({"commitInfo": {**info, "timestamp": info["timestamp"] - DAY}}) + "\n")
    assert dv.restore(table, 0).files_added == 2


def test_a_file_that_a_concurrent_commit_adds_again_is_kept(table):
    dv.delete_all(table)
    age(table)
    with pytest.raises(CommitConflictError, match="nothing was deleted, retry") as caught:
        dv.vacuum(commit_first(table, lambda: dv.restore(table, 0)), dry_run=False)
    assert caught.value.version == 2
    assert str(caught.value.file).startswith("day=d")
    assert dv.history(table)[0].parameters["status"] == "FAILED"
    assert read_ids(table) == [0, 1]


def test_a_table_with_unknown_features_is_rejected(table):
    state = dv.load_snapshot(table)
    features = (*state.protocol.writer_features, "vacuumProtocolCheck", "futureFeature")
    protocol = type(state.protocol)(
        min_reader_version=3,
        min_writer_version=7,
        reader_features=(*state.protocol.reader_features, "vacuumProtocolCheck"),
        writer_features=features,
    )
    commit(table, protocol)
    with pytest.raises(UnsupportedFeatureError, match="futureFeature"):
        dv.vacuum(table)


def test_a_folder_without_a_table_is_rejected(tmp_path):
    put(tmp_path, "precious")
    with pytest.raises(TableNotFoundError):
        dv.vacuum(tmp_path, dry_run=False)
    assert (tmp_path / "precious").exists()


def test_the_command_line_lists_the_files_and_deletes_them_on_request(table):
    old = put(table, "part-old.parquet")
    result = CliRunner().invoke(app, ["vacuum", str(table), "--dry-run"])
    assert result.stdout.splitlines() == [
        old,
        f"{table}: delete 1 file, 1 byte; earlier versions that need it can no longer be read",
    ]
    result = CliRunner().invoke(
        app, ["vacuum", str(table), "--dry-run", "--json", "--retention-hours", "170"]
    )
    assert json.loads(result.stdout) == {"dry_run": True, "table": str(table), "files": [old], "bytes": 1}
    result = CliRunner().invoke(app, ["vacuum", str(table), "--yes"])
    assert result.stdout.strip() == f"{table}: 1 file deleted, 1 byte"
    short = ["vacuum", str(table), "--retention-hours", "1", "--dry-run"]
    rejected = CliRunner().invoke(app, short)
    assert isinstance(rejected.exception, RetentionDurationError)
    assert message_of(rejected.exception).endswith("nothing else uses the table: pass --no-enforce-retention")
    assert CliRunner().invoke(app, [*short, "--no-enforce-retention"]).exit_code == 0


def test_a_table_in_an_object_store_can_be_vacuumed():
    table = "memory://vacuum/t"
    append(table, 0, 1, partition_by=["day"])
    append(table, 2)
    dv.delete(table, "id = 0")
    time.sleep(0.01)
    found = dv.vacuum(table, 0, dry_run=False, enforce_retention_duration=False)
    assert len(found.files) == 1
    assert read_ids(table) == [1, 2]
    assert dv.vacuum(table, 0, enforce_retention_duration=False).files == ()
    assert [entry.operation for entry in dv.history(table, 2)] == ["VACUUM END", "VACUUM START"]
    missing = dv.load_snapshot(table, 1).files["path"].to_pylist()
    with raises_at(DataFileError, version=1) as caught:
        dv.restore(table, 1)
    assert caught.value.file in missing


@pytest.mark.parametrize("uri", ["{tmp}/t", "memory:///vacuumed"])
@pytest.mark.parametrize("configuration", [{}, {"delta.enableDeletionVectors": "true"}])
def test_a_version_whose_files_were_deleted_names_the_vacuum(uri, configuration, tmp_path):
    table = f"{uri.format(tmp=tmp_path)}-{len(configuration)}"
    append(table, 0, 1, 2, configuration={"delta.enableChangeDataFeed": "true", **configuration})
    dv.delete(table, "id = 0")
    dv.delete(table, "id = 1")
    dv.write_table(table, pa.table({"id": [9], "day": ["mon"]}), mode="overwrite")
    time.sleep(0.01)
    dv.vacuum(table, 0, dry_run=False, enforce_retention_duration=False)
    files = {version: set(dv.load_snapshot(table, version).files["path"].to_pylist()) for version in (0, 1)}
    for read in (
        lambda: dv.read_table(table, version=1).to_table(),
        lambda: dv.read_table(table, version=1, where="id + 0 > 1").count(),
        lambda: dv.aggregate(table, ["max(id + 1)"], version=1),
        lambda: dv.read_table(table, version=1).to_dataset().to_table(),
    ):
        with raises_at(
            DeltaVariantError, "a vacuum may have deleted it; read a later version", version=1
        ) as caught:
            read()
        assert caught.value.file in files[1]
        assert caught.value.table == dv.load_snapshot(table).uri
    with raises_at(DeltaVariantError, "a vacuum may have deleted it", version=0) as caught:
        dv.read_changes(table, start=0).to_table()
    assert caught.value.file in files[0]
    with raises_at(DeltaVariantError, "a vacuum may have deleted", version=1):
        dv.restore(table, 1)
    assert dv.read_table(table).count() == 1


def test_a_missing_deletion_vector_names_the_vacuum_and_the_version(tmp_path):
    table = tmp_path / "t"
    append(table, *range(4), configuration={"delta.enableDeletionVectors": "true"})
    dv.write_table(table, pa.table({"id": [7], "day": ["mon"]}), mode="append")
    vector = {
        "storageType": "u",
        "pathOrInlineDv": "vBn[lx{q8@P<9BNH/isA",
        "offset": 1,
        "sizeInBytes": 36,
        "cardinality": 2,
    }
    commit = table / commit_file_name(1)
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    for action in actions:
        if "add" in action:
            action["add"]["deletionVector"] = vector
    commit.write_text("".join(json.dumps(action) + "\n" for action in actions))
    with raises_at(DeltaVariantError, "a vacuum may have deleted it", table=str(table), version=1) as caught:
        dv.read_table(table).to_table()
    assert caught.value.file.startswith("deletion_vector_")


def test_another_error_of_a_file_does_not_blame_a_vacuum(tmp_path):
    append(tmp_path, 0)
    (file,) = tmp_path.glob("*.parquet")
    file.write_bytes(b"PAR1")
    with pytest.raises(DataFileError) as caught:
        dv.read_table(tmp_path).to_table()
    assert "vacuum" not in str(caught.value)


def test_deltalake_lists_the_same_files(tmp_path):
    append(tmp_path, 0, 2, 4)
    append(tmp_path, 1)
    dv.delete(tmp_path, "id = 2")
    for name in ("part-old.parquet", "e/f.bin", "_hidden/f", ".hidden"):
        put(tmp_path, name)
    time.sleep(0.01)
    theirs = DeltaTable(tmp_path).vacuum(0, dry_run=True, enforce_retention_duration=False, full=True)
    found = dv.vacuum(tmp_path, 0, enforce_retention_duration=False)
    assert len(found.files) == 3
    assert sorted(found.files) == sorted(theirs)
