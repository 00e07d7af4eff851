"""The history of a table."""

from __future__ import annotations

import json
import os
import re
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from support.tables import commit_path
from typer.testing import CliRunner

import delta_variant as dv
from delta_variant.cli.app import app
from delta_variant.errors import MalformedLogError, TableNotFoundError
from delta_variant.log.checkpoints import writing as checkpoint_writing
from delta_variant.log.timestamps import version_at
from delta_variant.storage import store


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return a table that was written, appended to and deleted from."""
    for numbers in ([1, 2], [3]):
        rows = pa.table({"id": numbers, "v": pa.array([f'{{"n": {n}}}' for n in numbers], pa.json_())})
        dv.write_table(tmp_path / "t", rows, mode="append")
    dv.delete(tmp_path / "t", "v:n::bigint = 2")
    return tmp_path / "t"


def test_the_newest_commit_is_first(table):
    entries = dv.history(table)
    assert [(entry.version, entry.operation) for entry in entries] == [
        (2, "DELETE"),
        (1, "WRITE"),
        (0, "WRITE"),
    ]
    assert entries[0].parameters == {"predicate": ["v:n::bigint = 2"]}
    assert entries[0].metrics["numDeletedRows"] == 1
    assert entries[0].commit_info["readVersion"] == 1


def test_a_limit_returns_the_newest_commits(table):
    assert [entry.version for entry in dv.history(table, 2)] == [2, 1]
    assert dv.history(table, 0) == []
    with pytest.raises(ValueError, match=r"limit: expected an integer from 0 to .*, got -1"):
        dv.history(table, -1)


def test_deltalake_returns_the_same_history(tmp_path):
    for number in range(3):
        write_deltalake(tmp_path, pa.table({"id": [number]}), mode="append")
    theirs = DeltaTable(tmp_path).history()
    ours = dv.history(DeltaTable(tmp_path))
    assert [{**entry.commit_info, "version": entry.version} for entry in ours] == theirs


def test_time_travel_selects_by_the_timestamps_of_the_history(table):
    for version, seconds in enumerate([100, 90, 200]):
        os.utime(commit_path(table, version), ns=(0, seconds * 10**9))
    entries = dv.history(table)
    assert entries[0].timestamp == datetime(1970, 1, 1, 0, 3, 20, tzinfo=timezone.utc)
    assert entries[1].timestamp == datetime(1970, 1, 1, 0, 1, 40, 1000, tzinfo=timezone.utc)
    found = [dv.load_snapshot(table, timestamp=entry.timestamp).version for entry in entries]
    assert found == [2, 1, 0]


def test_in_commit_timestamps_take_precedence_over_file_times(tmp_path):
    configuration = {"delta.enableInCommitTimestamps": "true"}
    dv.write_table(tmp_path, pa.table({"id": [1]}), configuration=configuration)
    (entry,) = dv.history(tmp_path)
    os.utime(commit_path(tmp_path, 0), ns=(0, 10**9))
    assert dv.history(tmp_path) == [entry]
    assert entry.timestamp.timestamp() * 1000 == entry.commit_info["inCommitTimestamp"]


def test_a_commit_without_commit_info_is_an_entry(table):
    lines = commit_path(table, 1).read_text("utf-8").splitlines(keepends=True)
    commit_path(table, 1).write_text("".join(line for line in lines if "commitInfo" not in line), "utf-8")
    entry = dv.history(table)[1]
    assert (entry.version, entry.operation, entry.commit_info) == (1, None, {})
    assert (entry.parameters, entry.metrics) == ({}, {})


def test_commits_that_were_removed_from_the_log_are_omitted(table):
    checkpoint_writing.write_checkpoint(store.open_store(table), 1, now=0, unique_id="")
    commit_path(table, 0).unlink()
    assert [entry.version for entry in dv.history(table)] == [2, 1]


def test_the_error_of_an_invalid_commit_names_it(table):
    commit_path(table, 1).write_text('{"commitInfo":{}}\n{"add":', "utf-8")
    with pytest.raises(MalformedLogError) as caught:
        dv.history(table)
    assert str(caught.value.file).endswith("1.json")
    assert caught.value.line == 2


def test_a_folder_without_a_log_has_no_history(tmp_path):
    with pytest.raises(TableNotFoundError, match="no Delta table"):
        dv.history(tmp_path)


def test_the_command_line_prints_a_line_for_each_commit(table):
    result = CliRunner().invoke(app, ["history", str(table), "--limit", "2"])
    heading, *lines = [line.split("\t") for line in result.stdout.splitlines()]
    assert heading == ["version", "time", "operation", "parameters and metrics"]
    assert [(line[0], line[2]) for line in lines] == [("2", "DELETE"), ("1", "WRITE")]
    assert all(re.fullmatch(r"20\S+ \S+\.\d{3}Z", line[1]) for line in lines)
    assert lines[0][3].startswith('predicate=["v:n::bigint = 2"], numRemovedFiles=1')


def test_the_command_line_prints_json_for_scripts(table):
    result = CliRunner().invoke(app, ["history", str(table), "--json"])
    entries = [json.loads(line) for line in result.stdout.splitlines()]
    assert [each["version"] for each in entries] == [2, 1, 0]
    assert entries[0]["operation"] == "DELETE"
    assert version_at(store.open_store(table), entries[1]["timestamp"]) == 1
