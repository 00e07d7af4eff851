"""Time travel to a version and to a timestamp (PROTOCOL.md, "In-Commit Timestamps")."""

from __future__ import annotations

import json
import os
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from support.commits import commit_actions
from support.errors import raises_at
from support.tables import commit_path, read_ids
from typer.testing import CliRunner

import delta_variant as dv
from delta_variant.cli.app import app
from delta_variant.errors import (
    MalformedLogError,
    ProtocolError,
    TimestampAfterLatestError,
    TimestampBeforeFirstError,
    VersionNotFoundError,
)
from delta_variant.log.checkpoints import writing as checkpoint_writing
from delta_variant.protocol.actions import CommitInfo, Format, Metadata, Protocol
from delta_variant.storage import store

NOON = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def commit_at(table: Path, version: int, seconds: float) -> None:
    """Set the modification time of a commit file."""
    os.utime(commit_path(table, version), ns=(0, int(at(seconds).timestamp() * 1000) * 1_000_000))


def version_at(table: Path, seconds: float) -> int:
    return dv.load_snapshot(table, timestamp=at(seconds)).version


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return a table of three versions, each with one more row, committed at noon and every ten seconds."""
    for version in range(3):
        dv.write_table(tmp_path / "t", pa.table({"id": [version]}), mode="append")
        commit_at(tmp_path / "t", version, 10 * version)
    return tmp_path / "t"


def test_a_version_has_its_rows(table):
    assert [read_ids(table, version=version) for version in range(3)] == [[0], [0, 1], [0, 1, 2]]


@pytest.mark.parametrize(("seconds", "version"), [(0, 0), (9.999, 0), (10, 1), (19.9999, 1), (20, 2)])
def test_a_timestamp_selects_the_last_version_before_it(table, seconds, version):
    assert version_at(table, seconds) == version
    assert read_ids(table, timestamp=at(seconds)) == list(range(version + 1))
    theirs = DeltaTable(table)
    theirs.load_as_version(at(seconds))
    assert theirs.version() == version


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-01T12:00:15Z",
        "2026-03-01 12:00:15",
        "2026-03-01T13:00:15+01:00",
        "2026-03-01T12:00:10.000",
        "2026-03-01T07:00:19.999-05:00",
    ],
)
def test_text_without_an_offset_is_in_utc(table, text):
    assert dv.load_snapshot(table, timestamp=text).version == 1


def test_a_date_means_midnight(table):
    commit_at(table, 0, -12 * 3600)
    assert dv.load_snapshot(table, timestamp="2026-03-01").version == 0


def test_a_timestamp_before_the_first_version_is_rejected(table):
    with raises_at(TimestampBeforeFirstError, "of 2026-03-01T12:00", version=0):
        dv.load_snapshot(table, timestamp=at(-0.001))


def test_a_timestamp_after_the_latest_version_is_rejected_as_in_spark(table):
    with raises_at(TimestampAfterLatestError, "is of 2026-03-01T12:00:20", version=2):
        dv.read_table(table, timestamp=at(20.001))


@pytest.mark.parametrize("timestamp", ["yesterday", "", "2026-13-01", "12:00", datetime(2026, 3, 1)])
def test_an_invalid_timestamp_or_one_without_a_zone_is_rejected(table, timestamp):
    with pytest.raises(ValueError, match="invalid timestamp"):
        dv.load_snapshot(table, timestamp=timestamp)


def test_version_and_timestamp_together_are_rejected(table):
    with pytest.raises(ValueError, match="got both"):
        dv.load_snapshot(table, 1, timestamp=NOON)


def test_a_snapshot_is_not_read_at_another_version(table):
    with pytest.raises(ValueError, match="a Snapshot has one version"):
        dv.read_table(dv.load_snapshot(table), version=1)


def test_a_commit_not_later_than_the_previous_one_counts_as_a_millisecond_later(table):
    commit_at(table, 1, -100)
    commit_at(table, 2, 0.001)
    assert [version_at(table, seconds) for seconds in (0, 0.001, 0.002)] == [0, 1, 2]


def test_a_version_that_was_cleaned_up_has_no_timestamp(table):
    checkpoint_writing.write_checkpoint(store.open_store(table), 1, now=0, unique_id="")
    commit_path(table, 0).unlink()
    assert version_at(table, 10) == 1
    with raises_at(TimestampBeforeFirstError, version=1):
        version_at(table, 5)


def test_a_log_with_only_checkpoints_has_versions_but_no_timestamps(table):
    checkpoint_writing.write_checkpoint(store.open_store(table), 2, now=0, unique_id="")
    for version in range(3):
        commit_path(table, version).unlink()
    assert read_ids(table, version=2) == [0, 1, 2]
    with pytest.raises(VersionNotFoundError, match="has no commits"):
        version_at(table, 20)


def in_commit_timestamps(tmp_path: Path, enabled_in: int, **lacking: str | None) -> Path:
    """Return a table whose versions have in-commit timestamps from one on, each ten seconds after the last.

    The files of all commits are a day later than what they say.
    """
    root = store.open_store(tmp_path / "t")
    schema = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'
    configuration = {"delta.enableInCommitTimestamps": "true"}
    if enabled_in:
        configuration["delta.inCommitTimestampEnablementVersion"] = str(enabled_in)
        configuration["delta.inCommitTimestampEnablementTimestamp"] = str(
            int(at(10 * enabled_in).timestamp() * 1000)
        )
    for name, value in lacking.items():
        configuration.pop(f"delta.{name}", value)
    protocol = Protocol(
        min_reader_version=1, min_writer_version=7, writer_features=("inCommitTimestamp", "appendOnly")
    )
    for version in range(5):
        info = CommitInfo({"operation": "X"})
        if version >= enabled_in:
            info.fields["inCommitTimestamp"] = int(at(10 * version).timestamp() * 1000)
        metadata = Metadata(
            id="m",
            format=Format(),
            schema_string=schema,
            partition_columns=(),
            configuration=configuration if version >= enabled_in else {},
        )
        actions = [protocol, metadata] if version in (0, enabled_in) else []
        commit_actions(root, version, [info, *actions])
        commit_at(tmp_path / "t", version, 10 * version + (86_400 if version >= enabled_in else -0.5))
    return tmp_path / "t"


def test_in_commit_timestamps_take_precedence_over_modification_times(tmp_path):
    table = in_commit_timestamps(tmp_path, 0)
    assert [version_at(table, seconds) for seconds in (0, 19, 30, 39.999, 40)] == [0, 1, 3, 3, 4]
    with pytest.raises(TimestampAfterLatestError):
        version_at(table, 41)
    with raises_at(TimestampBeforeFirstError, "12:00:00", version=0):
        version_at(table, -1)


def test_versions_before_the_enablement_have_modification_times(tmp_path):
    table = in_commit_timestamps(tmp_path, 2)
    assert [version_at(table, seconds) for seconds in (-0.5, 9, 9.5, 19.999, 20, 31, 40)] == [
        0,
        0,
        1,
        1,
        2,
        3,
        4,
    ]


def test_a_timestamp_before_the_enablement_needs_an_earlier_version(tmp_path):
    table = in_commit_timestamps(tmp_path, 2)
    checkpoint_writing.write_checkpoint(store.open_store(table), 3, now=0, unique_id="")
    for version in range(3):
        commit_path(table, version).unlink()
    with raises_at(TimestampBeforeFirstError, "of 2026-03-01T12:00:30", version=3):
        version_at(table, 15)
    assert version_at(table, 30) == 3


def test_a_commit_without_a_required_in_commit_timestamp_is_malformed(tmp_path):
    table = in_commit_timestamps(tmp_path, 0)
    for text in ("", ',"inCommitTimestamp":9223372036854775807', ',"inCommitTimestamp":-1'):
        commit_path(table, 4).write_text(f'{{"commitInfo":{{"operation":"X"{text}}}}}\n')
        with raises_at(MalformedLogError, "requires an inCommitTimestamp", version=4):
            version_at(table, 40)


def test_an_incomplete_enablement_is_rejected(tmp_path):
    table = in_commit_timestamps(tmp_path, 2, inCommitTimestampEnablementTimestamp=None)
    with pytest.raises(ProtocolError, match="has only one of"):
        version_at(table, 30)


def test_the_command_line_reads_a_version_and_a_timestamp(table):
    for option in (["--version", "1"], ["--timestamp", "2026-03-01T12:00:15"]):
        result = CliRunner().invoke(app, ["read", str(table), "--json", *option])
        assert sorted(json.loads(line)["id"] for line in result.stdout.splitlines()) == [0, 1]
