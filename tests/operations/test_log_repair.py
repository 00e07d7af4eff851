"""Repairs of a log: each fault of a file derived from commits, and those that commits cannot decide."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable
from support.planting import Table
from test_audit_faults import VIOLATIONS
from typer.testing import CliRunner

import delta_variant as dv
from delta_variant.cli.app import app
from delta_variant.errors import MalformedLogError
from delta_variant.storage.store import open_store, put, read_if_present

DERIVED = ("L5", "L6", "L8", "L10", "L11", "L13")
MARKS = [name for name, (rule, *_) in VIOLATIONS.items() if rule == "F14"]
FAULTS = [name for name, (rule, *_) in VIOLATIONS.items() if rule in DERIVED]


def of_log(table: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (table / "_delta_log").iterdir() if file.is_file()}


@pytest.mark.parametrize("name", FAULTS)
def test_a_repair_leaves_a_log_without_findings_and_keeps_the_files(tmp_path: Path, name: str):
    damaged = Table.write(tmp_path / "t")
    VIOLATIONS[name][3](damaged)
    before = of_log(tmp_path / "t")
    assert {each.rule for each in dv.audit_table(tmp_path / "t").findings} & {*DERIVED}
    listed = dv.repair_log(tmp_path / "t")
    assert listed.dry_run
    assert of_log(tmp_path / "t") == before
    result = dv.repair_log(tmp_path / "t", dry_run=False)
    assert result.files == listed.files != ()
    assert not {each.rule for each in dv.audit_table(tmp_path / "t").findings} & {*DERIVED}
    for file in result.files:
        assert (tmp_path / "t" / str(result.folder) / file).read_bytes() == before[file]
    commits = {file: data for file, data in before.items() if len(file) == len(f"{0:020}.json")}
    assert commits.items() <= of_log(tmp_path / "t").items()


@pytest.mark.parametrize("name", MARKS)
def test_a_mark_of_row_ids_is_raised_by_a_commit(tmp_path: Path, name: str):
    damaged = Table.write(tmp_path / "t")
    VIOLATIONS[name][3](damaged)
    table = dv.Table(tmp_path / "t")
    version = table.version
    assert dv.repair_log(tmp_path / "t").row_id_mark is not None
    assert table.version == version
    result = table.repair_log(dry_run=False)
    assert result.version == table.version == version + 1
    assert "F14" not in {each.rule for each in table.audit().findings}
    (commit,) = (file for file in (tmp_path / "t" / "_delta_log").glob(f"{result.version:020}.json"))
    (domain,) = (
        line for line in map(json.loads, commit.read_text().splitlines()) if "domainMetadata" in line
    )
    assert json.loads(domain["domainMetadata"]["configuration"]) == {"rowIdHighWaterMark": result.row_id_mark}


def test_rows_that_a_checkpoint_hides_are_read_again(tmp_path: Path):
    planted = Table.write(tmp_path / "t")
    rows = dv.read_table(tmp_path / "t").count()
    planted.edit_checkpoint(lambda rows: rows.remove(next(row for row in rows if row["add"])))
    table = dv.Table(tmp_path / "t")
    assert table.count() == len(DeltaTable(tmp_path / "t").file_uris()) == 0
    result = table.repair_log(dry_run=False)
    assert (result.checkpoint, result.files[0]) == (0, f"{0:020}.checkpoint.parquet")
    assert table.count() == rows
    assert len(DeltaTable(tmp_path / "t").file_uris()) == 1
    assert table.vacuum(dry_run=False).files == ()
    assert (tmp_path / "t" / str(result.folder) / result.files[0]).exists()


def test_a_checkpoint_without_its_commits_is_the_evidence(tmp_path: Path):
    planted = Table.write(tmp_path / "t")
    planted.append()
    planted.edit_checkpoint(lambda rows: rows.remove(next(row for row in rows if row["add"])))
    planted.commit.unlink()
    (planted.log / f"{0:020}.crc").unlink()
    with pytest.raises(MalformedLogError, match="it begins with a checkpoint, which can be the wrong one"):
        dv.repair_log(tmp_path / "t")
    (planted.log / f"{0:020}.checkpoint.parquet").write_bytes(b"PAR1")
    with pytest.raises(MalformedLogError, match="a commit is missing or cannot be read"):
        dv.repair_log(tmp_path / "t", dry_run=False)


def test_two_witnesses_against_the_commits_are_not_moved(tmp_path: Path):
    planted = Table.write(tmp_path / "t")
    planted.edit_checkpoint(lambda rows: rows.remove(next(row for row in rows if row["add"])))
    checksum = json.dumps({"tableSizeBytes": 0, "numFiles": 0, "numMetadata": 1, "numProtocol": 1})
    (planted.log / f"{0:020}.crc").write_text(checksum)
    before = of_log(tmp_path / "t")
    with pytest.raises(MalformedLogError, match="the checksum of version 0 contradict its commits"):
        dv.repair_log(tmp_path / "t", dry_run=False)
    assert of_log(tmp_path / "t") == before


def test_a_sound_log_stays_as_it_is(tmp_path: Path):
    planted = Table.write(tmp_path / "t")
    planted.write_checkpoint()
    before = of_log(tmp_path / "t")
    assert dv.repair_log(tmp_path / "t", dry_run=False) == dv.repair_log(tmp_path / "t", dry_run=False)
    assert of_log(tmp_path / "t") == before
    assert not (tmp_path / "t" / "_log_set_aside").exists()


def test_a_log_in_an_object_store_is_repaired():
    uri = "memory://log-repair/t"
    dv.write_table(uri, [{"id": 1}])
    put(open_store(uri), f"_delta_log/{0:020}.crc", b"{}")
    result = dv.repair_log(uri, dry_run=False)
    assert result.files == (f"{0:020}.crc",)
    assert read_if_present(open_store(uri), f"_delta_log/{0:020}.crc") is None
    assert read_if_present(open_store(uri), f"{result.folder}/{0:020}.crc") == b"{}"


def test_the_command_line_asks_first(tmp_path: Path):
    planted = Table.write(tmp_path / "t")
    (planted.log / f"{0:020}.crc").write_text("{}")
    planned = CliRunner().invoke(app, ["repair-log", str(tmp_path / "t"), "--dry-run"])
    assert planned.stdout.splitlines() == [
        f"{0:020}.crc",
        f"{tmp_path / 't'}: move 1 file from _delta_log to _log_set_aside",
    ]
    refused = CliRunner().invoke(app, ["repair-log", str(tmp_path / "t")])
    assert "there is no terminal to ask on: pass --yes" in str(refused.exception)
    done = CliRunner().invoke(app, ["repair-log", str(tmp_path / "t"), "--yes", "--json"])
    assert json.loads(done.stdout)["files"] == [f"{0:020}.crc"]
