"""Processes that crash during any operation, full disks and read-only disks."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pytest
from crash_recovery import check_versions, crash_workers, run_crashes, state
from support.errors import raises_at
from table_operations import OPERATIONS, SHREDDING, Rows, Step, apply, data, prepare, read, rows_after

import delta_variant as dv
from delta_variant.errors import DataFileError, DeltaVariantError, MalformedLogError, StoreError
from delta_variant.log.listing import commit_file_name
from delta_variant.storage import store

CRASHES = 10
ROWS: Rows = {row: row for row in range(1, 21)}
STEP = {"present": (2, 3, 5, 7), "absent": (21, 22)}


def test_after_a_crash_at_a_random_point_a_table_has_the_rows_of_a_version(tmp_path: Path):
    counts = run_crashes(tmp_path, CRASHES, seed=7)
    assert counts.crashed.total() == CRASHES


@pytest.mark.parametrize("name", ["append", "delete"])
def test_after_a_crash_at_each_step_a_table_has_the_rows_of_a_version(tmp_path: Path, name: str):
    step = Step(name, **STEP)
    table = tmp_path / "table"
    with crash_workers() as workers:
        fatal, before, after = 0, ROWS, rows_after(ROWS, step)
        while True:
            fatal += 3
            shutil.rmtree(table, ignore_errors=True)
            # A checkpoint follows the commit.
            dv.write_table(table, data(ROWS), configuration={"delta.checkpointInterval": "1"})
            ended = workers.run(table, step, at_step=fatal)["ended"]
            found = state(table)
            assert found in (before, after)
            check_versions(table)
            if ended == 0:
                assert found == after
                break
            assert ended == -signal.SIGKILL
        assert fatal > 15
        apply(table, Step("append", (), (99,)))
        assert state(table) == after | {99: 99}


@contextmanager
def small_disk(kilobytes: int) -> Iterator[Path]:
    """Mount a file system of a size in kilobytes."""
    if os.geteuid():
        pytest.skip("only root can mount a small disk")
    folder = Path(tempfile.mkdtemp())
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
        folder.rmdir()


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def fill_disk(folder: Path, free: int) -> Path:
    """Fill the disk of a folder until `free` bytes are left, and return the file that fills it."""
    filler = folder / "filler"
    disk = os.statvfs(folder)
    filler.write_bytes(b"x" * (disk.f_bavail * disk.f_frsize - free))
    return filler


@pytest.mark.parametrize("name", sorted(OPERATIONS.keys() - {"create"}))
@pytest.mark.parametrize("free", [0, 4096, 8192, 12288, 16384, 20480])
def test_on_a_full_disk_an_operation_succeeds_or_fails_and_leaves_nothing(name: str, free: int):
    with small_disk(1024) as disk:
        table = disk / "table"
        dv.write_table(table, data(ROWS), configuration={"delta.checkpointInterval": "1"})
        no_bounds = dv.FileOptions(max_variant_stats_paths=0)
        dv.write_table(table, data({99: 99}), mode="append", shredding=SHREDDING, files=no_bounds)
        step = Step(name, **STEP)
        rows = prepare(table, ROWS | {99: 99}, step)
        before = files(table)
        filler = fill_disk(disk, free)
        with suppress(DeltaVariantError):
            apply(table, step)
            filler.unlink()
        if filler.exists():
            assert {path for path in files(table) if "#" not in path} == before
            assert state(table) == rows
            filler.unlink()
            apply(table, step)
        assert state(table) == rows_after(rows, step)


REMEDY = r"No space left on device.*; free space on this disk, then retry$"


def assert_fails_on_full_disk(
    call: Callable[[], object], error: type[DeltaVariantError], beginning: str
) -> None:
    with pytest.raises(error, match=f"^{beginning}.*{REMEDY}") as raised:
        call()
    assert "External" not in str(raised.value)


def test_on_a_full_disk_the_error_names_the_file_and_the_remedy():
    with small_disk(1024) as disk:
        table = disk / "table"
        large = pa.table({"id": [1], "event": pa.array([f'"{os.urandom(99_999).hex()}"'], pa.json_())})
        properties = {"delta.enableDeletionVectors": "true"}
        dv.write_table(table, data(ROWS), configuration=properties)
        (file,) = table.glob("*.parquet")
        filler = fill_disk(disk, 8192)
        part = f"cannot write {table}/part-"
        assert_fails_on_full_disk(lambda: dv.write_table(table, large, mode="append"), DataFileError, part)
        filler.unlink()
        filler = fill_disk(disk, 0)
        root, name = store.open_store(table), "_delta_log/00000000000000000001.json"
        for write in (store.put, store.put_if_absent):
            assert_fails_on_full_disk(lambda: write(root, name, b"x" * 9), StoreError, f"{table}/{name}: ")  # noqa: B023
        rejects = disk / "rejects.ndjson"
        text = pa.table({"id": [1], "event": ["{"]})
        options = {"json": dv.JsonOptions(on_invalid="reject", rejects=rejects), "variant_columns": ["event"]}
        assert_fails_on_full_disk(
            lambda: dv.write_table("memory://rejects", text, **options),
            StoreError,
            f"cannot write rejects to {rejects}: ",
        )
        assert files(disk) == {
            file.relative_to(disk).as_posix(),
            "table/_delta_log/00000000000000000000.json",
            "table/_delta_log/00000000000000000000.crc",
            "filler",
            "rejects.ndjson",
        }


def test_a_disk_too_full_for_a_checkpoint_has_the_commit(caplog: pytest.LogCaptureFixture):
    with small_disk(1024) as disk:
        table = disk / "table"
        dv.write_table(table, data(ROWS), configuration={"delta.checkpointInterval": "1"})
        before = files(table)
        filler = fill_disk(disk, 12288)
        dv.write_table(table, data({99: 99}), mode="append")
        assert "the checkpoint of version 1 was not written" in caplog.text
        assert not any("checkpoint" in path for path in files(table) - before if "#" not in path)
        filler.unlink()
        assert state(table) == ROWS | {99: 99}


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_a_read_only_disk_fails_writes_and_is_read(name: str):
    with small_disk(1024) as disk:
        table = disk / "table"
        if name != "create":
            dv.write_table(table, data(ROWS))
            no_bounds = dv.FileOptions(max_variant_stats_paths=0)
            dv.write_table(table, data({99: 99}), mode="append", shredding=SHREDDING, files=no_bounds)
            (table / "part-unreferenced.parquet").touch()
        step = Step(name, **STEP)
        rows = prepare(table, {} if name == "create" else ROWS | {99: 99}, step)
        before = files(table)
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        with pytest.raises(DeltaVariantError, match=r"(?i)read-only|os error 30"):
            apply(table, step)
        assert files(table) == before
        assert state(table) == rows


def truncate(data: bytes) -> bytes:
    return data[: len(data) - 20]


def truncate_after_a_line(data: bytes) -> bytes:
    return b"".join(data.splitlines(keepends=True)[:-1]) + b'{"add":'


@pytest.mark.parametrize(
    "damage", [truncate, truncate_after_a_line, lambda _: b"", lambda data: data + b"\0" * 64]
)
def test_a_partly_visible_commit_is_an_error_and_never_read_in_part(
    tmp_path: Path, damage: Callable[[bytes], bytes]
):
    dv.write_table(tmp_path, data({1: 1}))
    dv.write_table(tmp_path, data({2: 2}), mode="append")
    last = tmp_path / commit_file_name(1)
    whole = last.read_bytes()
    last.write_bytes(damage(whole))
    with raises_at(MalformedLogError, version=1):
        dv.load_snapshot(tmp_path)
    with raises_at(MalformedLogError, version=1):
        dv.write_table(tmp_path, data({3: 3}), mode="append")
    assert read(dv.load_snapshot(tmp_path, 0)) == {1: 1}
    assert dv.audit_table(tmp_path).count("error") > 0
    last.write_bytes(whole)
    dv.write_table(tmp_path, data({3: 3}), mode="append")
    assert read(tmp_path) == {1: 1, 2: 2, 3: 3}


def test_a_clock_that_goes_back_loses_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    configuration = {"delta.enableInCommitTimestamps": "true", "delta.checkpointInterval": "2"}
    dv.write_table(tmp_path, data({1: 1}), configuration=configuration)
    first = dv.load_snapshot(tmp_path).timestamp
    assert first is not None
    monkeypatch.setattr(time, "time_ns", lambda: 1_000_000_000)
    for row in range(2, 6):
        dv.write_table(tmp_path, data({row: row}), mode="append")
        dv.delete(tmp_path, f"id = {row - 1}")
    stamps = [dv.load_snapshot(tmp_path, version).timestamp for version in range(9)]
    assert stamps == list(range(first, first + 9))
    assert state(tmp_path) == {5: 5}


def test_files_that_a_crashed_writer_staged_are_ignored(tmp_path: Path):
    dv.write_table(tmp_path, data({1: 1}))
    for path in (commit_file_name(1), "_delta_log/_last_checkpoint", "part-0.parquet"):
        for staged in (f"{path}#1", f"{path.replace('part', '.part')}.tmp"):
            (tmp_path / staged).write_bytes(b'{"half":')
    dv.write_table(tmp_path, data({2: 2}), mode="append")
    assert state(tmp_path) == {1: 1, 2: 2}
    assert dv.vacuum(tmp_path).files == ()
