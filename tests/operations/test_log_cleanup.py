"""Deletion of the expired part of a log: what remains, also when it fails or others use the table."""

from __future__ import annotations

import dataclasses
import json
import logging
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace
from support.errors import raises_at
from support.intercepted_store import intercept
from support.tables import list_files

import delta_variant as dv
from delta_variant.errors import StoreError, VersionNotFoundError
from delta_variant.log import cleanup, transaction
from delta_variant.log.commit_context import commit_context
from delta_variant.log.listing import file_span
from delta_variant.log.load import load_snapshot
from delta_variant.log.transaction import CommitInterrupted

DAY = 86_400_000
NOW = 20_000 * DAY + DAY // 2
CUTOFF = NOW // DAY * DAY - 30 * DAY
"""The midnight before which a version is expired, if another one follows until then."""

UNIQUE_IDS = ("80a083e8-7026-4e79-81be-64bd76c43a11", "3a0d65cd-4056-49b8-937b-95f9e3ee90e5")


@pytest.fixture(autouse=True)
def noon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the clock of explicit cleanups."""
    monkeypatch.setattr("delta_variant.operations.log_maintenance.now", lambda: NOW)


def set_time(file: Path, time: int) -> None:
    os.utime(file, ns=(time * 1_000_000, time * 1_000_000))


def version_of(file: Path) -> int | None:
    span = file_span(file.name)
    return None if span is None else span.first


def set_times(table: Path, times: Sequence[int]) -> None:
    """Set the modification times of all files of each version."""
    for file in (table / "_delta_log").iterdir():
        if (version := version_of(file)) is not None:
            set_time(file, times[version])


def append(table: Any, version: int, **configuration: str) -> None:
    dv.write_table(table, pa.table({"id": [version]}), mode="append", configuration=configuration or None)


def create(table: Path, versions: int = 10, interval: int = 3, **configuration: str) -> Path:
    """Create a table with an append for each version and a checkpoint of every third, all of the same day."""
    options = {"delta.checkpointInterval": str(interval), "delta.enableExpiredLogCleanup": "false"}
    dv.write_table(table, pa.table({"id": [0]}), configuration=options | configuration)
    for version in range(1, versions):
        append(table, version)
    return table


def create_aged(table: Path, last_expired: int = 7, **configuration: str) -> Path:
    """Return a table of 10 versions, of which those until one are expired; it has checkpoints 3, 6 and 9."""
    create(table, **configuration)
    set_times(table, [CUTOFF - 10 + v if v <= last_expired else CUTOFF + v for v in range(10)])
    return table


def files_of_the_log(table: Path) -> set[str]:
    return {path.removeprefix("_delta_log/") for path in list_files(table) if path.startswith("_delta_log")}


def states(table: Any, first: int) -> list[list[int]]:
    """Return the ids of each version from one on."""
    latest = dv.load_snapshot(table).version
    found = [dv.read_table(table, version=v).to_table()["id"].to_pylist() for v in range(first, latest + 1)]
    return [sorted(ids) for ids in found]


def test_what_is_older_than_the_checkpoint_before_the_retention_is_deleted(tmp_path: Path):
    table = create_aged(tmp_path / "t")
    before, remaining = files_of_the_log(table), states(table, 6)
    plan = dv.clean_up_log(table)
    assert (plan.first_version, plan.dry_run, files_of_the_log(table)) == (6, True, before)
    result = dv.clean_up_log(table, dry_run=False)
    assert (result.first_version, result.files, result.bytes) == (6, plan.files, plan.bytes)
    expected = {name for name in before if not name.startswith("_") and int(name[:20]) < 6}
    assert before - files_of_the_log(table) == expected
    assert {path.removeprefix("_delta_log/") for path in result.files} == expected
    assert len(expected) == 6 * 2 + 1
    assert states(table, 6) == remaining
    assert [entry.version for entry in dv.history(table)] == [9, 8, 7, 6]
    with raises_at(VersionNotFoundError, "its log starts at version 6", version=5):
        dv.load_snapshot(table, 5)
    assert dv.audit_table(table).is_clean
    assert dv.clean_up_log(table, dry_run=False).files == ()


@pytest.mark.parametrize(
    ("time_of_6", "first"),
    [(CUTOFF, 6), (CUTOFF + 1, 3)],
    ids=["at midnight", "after midnight"],
)
def test_the_newest_version_not_after_midnight_remains(tmp_path: Path, time_of_6: int, first: int):
    table = create(tmp_path / "t")
    set_times(table, [CUTOFF - 10 + v if v < 6 else time_of_6 + v - 6 for v in range(10)])
    assert dv.clean_up_log(table).first_version == first


def test_a_commit_that_appears_older_than_the_one_before_it_is_not_expired_first(tmp_path: Path):
    table = create(tmp_path / "t")
    set_times(table, [CUTOFF - 20, CUTOFF + 5, *(CUTOFF - 10 for _ in range(2, 10))])
    assert dv.clean_up_log(table).files == ()


def test_nothing_is_deleted_without_a_checkpoint_that_is_old_enough(tmp_path: Path):
    table = create_aged(tmp_path / "t", last_expired=2)
    assert dv.clean_up_log(table) == dv.LogCleanupResult(None, (), 0, True)


def test_a_retention_of_less_than_a_day_counts_as_a_day(tmp_path: Path):
    table = create(tmp_path / "t", **{"delta.logRetentionDuration": "interval 0 days"})
    today, yesterday = NOW // DAY * DAY, NOW // DAY * DAY - DAY
    set_times(table, [yesterday - 10 + v if v <= 4 else today - 10 + v for v in range(10)])
    assert dv.clean_up_log(table).first_version == 3
    dv.set_properties(table, {"delta.logRetentionDuration": "interval 2 days"})
    assert dv.clean_up_log(table).first_version is None


def test_a_checkpoint_that_cannot_be_read_is_not_relied_on(tmp_path: Path):
    table = create_aged(tmp_path / "t")
    remaining = states(table, 3)
    checkpoint = table / "_delta_log" / f"{6:020d}.checkpoint.parquet"
    content = bytearray(checkpoint.read_bytes())
    content[len(content) // 4 : len(content) // 2] = bytes(len(content) // 2 - len(content) // 4)
    checkpoint.write_bytes(content)
    assert dv.clean_up_log(table, dry_run=False).first_version == 3
    assert states(table, 3) == remaining
    (table / "_delta_log" / f"{3:020d}.checkpoint.parquet").write_bytes(b"")
    assert dv.clean_up_log(table).files == ()


def test_a_checkpoint_without_the_commit_of_its_version_is_not_relied_on(tmp_path: Path):
    table = create_aged(tmp_path / "t")
    (table / "_delta_log" / f"{6:020d}.json").unlink()
    assert dv.clean_up_log(table).first_version == 3


def test_compactions_hidden_companions_and_staged_commits_expire(tmp_path: Path):
    table = create_aged(tmp_path / "t")
    log, hexadecimal = table / "_delta_log", "0" * 32
    expired = [
        f"{0:020d}.{9:020d}.compacted.json",
        f"{6:020d}.{8:020d}.compacted.json",
        f".{2:020d}.json.crc",
        f".{2:020d}.checkpoint.parquet.{hexadecimal}.tmp",
        f"{4:020d}.checkpoint.{UNIQUE_IDS[0]}.json",
        f"{5:020d}.checkpoint.{1:010d}.{2:010d}.parquet",
        f"_staged_commits/{6:020d}.{UNIQUE_IDS[0]}.json",
    ]
    kept = [
        f"{7:020d}.{8:020d}.compacted.json",
        f".{6:020d}.json.crc",
        f"_staged_commits/{7:020d}.{UNIQUE_IDS[0]}.json",
        f"{2:020d}.json.backup",
        "notes.txt",
    ]
    (log / "_staged_commits").mkdir()
    commit = (log / f"{7:020d}.json").read_bytes()
    for name in (*expired, *kept):
        (log / name).write_bytes(commit)
    deleted = {path.removeprefix("_delta_log/") for path in dv.clean_up_log(table, dry_run=False).files}
    assert set(expired) <= deleted
    assert not deleted & set(kept)
    assert all((log / name).exists() for name in kept)


# --- sidecars


def write_v2(table: Path, version: int, sidecar: str, unique_id: str) -> None:
    """Replace a classic checkpoint by a manifest and a sidecar with its files."""
    log = table / "_delta_log"
    classic = log / f"{version:020d}.checkpoint.parquet"
    adds = pq.read_table(classic, columns=["add"])
    adds = adds.filter(pc.is_valid(adds["add"]))
    (log / "_sidecars").mkdir(exist_ok=True)
    pq.write_table(adds, log / "_sidecars" / sidecar)
    classic.unlink()
    snapshot = load_snapshot(table, version)
    configuration = dict(snapshot.properties)
    lines: list[dict[str, Any]] = [
        {"checkpointMetadata": {"version": version}},
        {"protocol": json.loads((log / f"{version:020d}.crc").read_bytes())["protocol"]},
        {"metaData": json.loads((log / f"{version:020d}.crc").read_bytes())["metadata"]},
        {"sidecar": {"path": sidecar, "sizeInBytes": 1, "modificationTime": 1}},
    ]
    assert configuration
    manifest = log / f"{version:020d}.checkpoint.{unique_id}.json"
    manifest.write_text("".join(json.dumps(line) + "\n" for line in lines))
    set_time(manifest, CUTOFF)


@pytest.fixture
def with_sidecars(tmp_path: Path) -> Path:
    """Return a table whose checkpoints 3 and 6 have a sidecar each, and which has two of no checkpoint."""
    table = create_aged(tmp_path / "t", **{"delta.checkpointPolicy": "v2"})
    for version, name, unique_id in zip((3, 6), ("three.parquet", "si x.parquet"), UNIQUE_IDS, strict=True):
        for file in (table / "_delta_log").glob(f"{version:020d}.checkpoint*"):
            file.rename(file.with_name(f"{version:020d}.checkpoint.parquet"))
        write_v2(table, version, name, unique_id)
    sidecars = table / "_delta_log" / "_sidecars"
    for name in ("old.parquet", "young.parquet"):
        (sidecars / name).write_bytes(b"")
    for file in sidecars.iterdir():
        set_time(file, NOW // DAY * DAY - DAY - 1)
    set_time(sidecars / "young.parquet", NOW // DAY * DAY - DAY)
    return table


def rewrite_reference(table: Path) -> None:
    manifest = table / "_delta_log" / f"{6:020d}.checkpoint.{UNIQUE_IDS[1]}.json"
    manifest.write_text(manifest.read_text().replace("si x.parquet", "si%20x.parquet"))


def test_sidecars_that_no_checkpoint_refers_to_are_deleted_after_a_day(with_sidecars: Path):
    rewrite_reference(with_sidecars)
    remaining = states(with_sidecars, 6)
    result = dv.clean_up_log(with_sidecars, dry_run=False)
    assert result.first_version == 6
    assert {path for path in result.files if "_sidecars" in path} == {
        "_delta_log/_sidecars/old.parquet",
        "_delta_log/_sidecars/three.parquet",
    }
    assert list_files(with_sidecars / "_delta_log" / "_sidecars") == {"si x.parquet", "young.parquet"}
    (with_sidecars / "_delta_log" / f"{9:020d}.checkpoint.parquet").unlink(missing_ok=True)
    assert states(with_sidecars, 6) == remaining


def test_no_sidecar_is_deleted_if_a_checkpoint_cannot_be_read(with_sidecars: Path):
    rewrite_reference(with_sidecars)
    (with_sidecars / "_delta_log" / f"{8:020d}.checkpoint.{UNIQUE_IDS[0]}.json").write_bytes(b"{")
    result = dv.clean_up_log(with_sidecars)
    assert result.first_version == 6
    assert not [path for path in result.files if "_sidecars" in path]


# --- checkpoint protection


def protect(table: Path, before: int) -> None:
    snapshot = dv.load_snapshot(table)
    features = (*(snapshot.protocol.writer_features or ()), "checkpointProtection")
    protected = {"delta.requireCheckpointProtectionBeforeVersion": str(before)}
    transaction.add_files(
        snapshot,
        (),
        context=commit_context("SET TBLPROPERTIES"),
        after=dataclasses.replace(
            snapshot.configuration,
            protocol=replace(
                snapshot.protocol, min_writer_version=7, writer_features=tuple(sorted({*features}))
            ),
            metadata=replace(snapshot.metadata, configuration={**snapshot.properties, **protected}),
        ),
    )


def test_protected_checkpoints_expire_together_or_not_at_all(tmp_path: Path):
    table = create_aged(tmp_path / "t")
    protect(table, 7)
    assert dv.clean_up_log(table).files == ()
    protect(table, 6)
    assert dv.clean_up_log(table).first_version == 6
    dv.restore(table, 8)
    assert "delta.requireCheckpointProtectionBeforeVersion" in dv.load_snapshot(table).properties


def test_commits_are_deleted_before_checkpoints(tmp_path: Path):
    table = create_aged(tmp_path / "t")
    deleted: list[str] = []

    def note(call: str, key: str) -> None:
        if call == "delete":
            deleted.append(Path(key).name)

    result = dv.clean_up_log(intercept(table, before=note), dry_run=False)
    assert [Path(path).name for path in result.files] == deleted
    assert deleted[-1] == f"{3:020d}.checkpoint.parquet"
    assert deleted[:-1] == sorted(deleted[:-1])


# --- failures, and others that use the table


def check_states(table: Path, expected: list[list[int]]) -> None:
    assert states(table, 6) == expected


def calls_of(table: Path) -> int:
    """Return the number of store calls of a dry run, and of the deletions that follow it."""
    made: list[str] = []
    result = dv.clean_up_log(intercept(table, before=lambda call, key: made.append(call)))
    return len(made) + len(result.files)


def cleanup_with(table: Path, step: int, act: Callable[[], object]) -> None:
    """Clean up the log, and do something before one of the calls of the store."""
    count = iter(range(1_000))

    def before(call: str, key: str) -> None:
        if next(count) == step:
            act()

    dv.clean_up_log(intercept(table, before=before), dry_run=False)


def test_a_cleanup_that_fails_at_any_step_leaves_the_remaining_versions_and_can_be_repeated(tmp_path: Path):
    def fail() -> None:
        raise PermissionError("lost")

    original = create_aged(tmp_path / "t")
    remaining, calls = states(original, 6), calls_of(original)
    assert calls > 15
    for step in range(calls):
        table = create_aged(tmp_path / str(step))
        # A checkpoint that cannot be fetched is not relied on, and the other failures are errors.
        with suppress(StoreError):
            cleanup_with(table, step, fail)
        assert states(table, 6) == remaining
        dv.clean_up_log(table, dry_run=False)
        assert states(table, 6) == remaining
        assert min(entry.version for entry in dv.history(table)) == 6


@pytest.mark.parametrize("other", ["append", "read", "clean up"])
def test_others_use_the_table_at_any_step_of_a_cleanup(tmp_path: Path, other: str):
    calls = calls_of(create_aged(tmp_path / "t"))
    for step in range(calls):
        table = create_aged(tmp_path / str(step))
        remaining = states(table, 6)
        # Both have loaded a version that expires.
        store = dv.load_snapshot(table, 2).store
        acts: dict[str, Callable[[], object]] = {
            "append": lambda store=store: append(store, 10),
            "read": lambda table=table, remaining=remaining: check_states(table, remaining),
            "clean up": lambda table=table: dv.clean_up_log(table, dry_run=False),
        }
        cleanup_with(table, step, acts[other])
        assert states(table, 6)[:4] == remaining
        assert load_snapshot(store).version == 9 + (other == "append")
        assert dv.audit_table(table).is_clean


def test_a_handle_of_an_expired_version_moves_on(tmp_path: Path):
    table = dv.Table(create(tmp_path / "t", versions=2))
    assert table.snapshot().version == 1
    for version in range(2, 10):
        append(tmp_path / "t", version)
    set_times(tmp_path / "t", [CUTOFF - 10 + v for v in range(10)])
    assert dv.clean_up_log(tmp_path / "t", dry_run=False).first_version == 9
    assert table.snapshot().version == 9
    append(table, 10)
    assert sorted(table.scan().to_table()["id"].to_pylist()) == list(range(11))


# --- after checkpoints


def create_expired(table: Path, **configuration: str) -> Path:
    """Return a table of 9 versions, whose next one has a checkpoint, with files of the year 1970."""
    create(table, versions=9, **{"delta.enableExpiredLogCleanup": "true", **configuration})
    for file in (table / "_delta_log").iterdir():
        set_time(file, 1000 + (version_of(file) or 0))
    return table


def first_commit(table: Path) -> int:
    return min(int(path.name[:20]) for path in (table / "_delta_log").glob("*.json"))


def test_the_first_checkpoint_of_a_day_cleans_up(tmp_path: Path):
    table = create_expired(tmp_path / "t")
    append(table, 9)
    assert first_commit(table) == 6
    assert sorted(dv.read_table(table).to_table()["id"].to_pylist()) == list(range(10))


def test_a_later_checkpoint_of_a_day_does_not_list_the_log(tmp_path: Path):
    table = create_expired(tmp_path / "t")
    os.utime(table / "_delta_log" / "_last_checkpoint")
    append(table, 9)
    assert first_commit(table) == 0


def test_a_table_can_opt_out(tmp_path: Path):
    table = create_expired(tmp_path / "t", **{"delta.enableExpiredLogCleanup": "false"})
    append(table, 9)
    assert first_commit(table) == 0
    set_times(table, [CUTOFF - 10 + v for v in range(10)])
    assert dv.clean_up_log(table).first_version == 9


def test_a_failed_cleanup_does_not_fail_the_commit(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    def fail(call: str, key: str) -> None:
        if call == "delete":
            raise PermissionError(key)

    table = create_expired(tmp_path / "t")
    with caplog.at_level(logging.WARNING, "delta_variant"):
        append(intercept(table, before=fail), 9)
    assert "the log cleanup of version 9 was not completed" in caplog.text
    assert dv.load_snapshot(table).version == 9


def test_an_interrupted_cleanup_says_that_the_commit_happened(tmp_path: Path):
    def interrupt(call: str, key: str) -> None:
        if call == "delete":
            raise KeyboardInterrupt

    table = create_expired(tmp_path / "t")
    with pytest.raises(CommitInterrupted, match="during its log cleanup"):
        append(intercept(table, before=interrupt), 9)
    assert dv.load_snapshot(table).version == 9


def test_the_first_checkpoint_of_a_table_is_one_of_a_new_day(tmp_path: Path):
    store = dv.load_snapshot(create(tmp_path / "t", versions=1)).store
    assert cleanup.is_new_day(store, NOW)
