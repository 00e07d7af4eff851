"""`delta-variant audit` and `repair-statistics`: what they print, and with which exit status."""

from __future__ import annotations

import json
import re

import pytest
from planting import Table
from typer.testing import CliRunner

from delta_variant.cli.app import app

ESCAPE = "\x1b[2J"


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def table(tmp_path):
    """Return a table without findings."""
    return Table.write(tmp_path / "table")


@pytest.fixture
def faulty(table):
    """Return a table with an error and a note."""
    table.edit_stats(lambda statistics: statistics.update(numRecords=7))
    table.edit_protocol(*[["variantType", "variantShredding", "variantType-preview"]] * 2)
    return table


def test_an_audit_of_a_clean_table_prints_its_scope(table):
    result = run("audit", table.path, "--data")
    assert result.exit_code == 0
    assert result.stdout == (
        f"{table.path}: version 0, 1 file, 4 rows (log, files and every row)\nnothing found\n"
    )


def test_an_audit_prints_findings_by_file_most_severe_first(faulty):
    result = run("audit", faulty.path)
    assert result.exit_code == 1
    lines = [line.rstrip() for line in result.stdout.splitlines()]
    assert lines[2:4] == [
        "the table",
        "  info     T3     the protocol lists both variantType and variantType-preview, two names of one "
        "feature: leave both; a feature must not be removed from a protocol",
    ]
    assert re.fullmatch(rf"{re.escape(faulty.file.name)} \(.* kB, 4 rows\)", lines[5])
    assert lines[6].startswith("  error    AU11   numRecords is 7, but the file has 4 rows: ")
    assert lines[-1] == "1 error, 1 note"


def test_notes_alone_are_a_clean_exit(table):
    table.edit_protocol(*[["variantType", "variantShredding", "variantType-preview"]] * 2)
    assert run("audit", table.path).exit_code == 0


def test_an_audit_prints_json(faulty):
    result = run("audit", faulty.path, "--json", "--file", faulty.file.name)
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert (report["version"], report["data"], report["clean"]) == (0, False, False)
    assert report["counts"] == {"error": 1, "warning": 0, "info": 1}
    assert report["files"] == [{"path": faulty.file.name, "rows": 4, "bytes": faulty.file.stat().st_size}]
    note, error = report["findings"]
    assert (note["rule"], note["severity"]) == ("T3", "info")
    assert (error["rule"], error["file_path"]) == ("AU11", faulty.file.name)


def test_an_audit_writes_a_page(faulty, tmp_path):
    page = tmp_path / "audit.html"
    assert run("audit", faulty.path, "--html", page).exit_code == 1
    assert page.read_text("utf-8").startswith("<!doctype html>")


def test_hostile_names_cannot_control_the_terminal(table):
    table.edit("add", lambda add: add.update(path=f"{ESCAPE}[red]\u202e.parquet"))
    for command in ("audit", "repair-statistics"):
        output = run(command, table.path).stdout
        assert "[red]" in output
        assert not [c for c in output if not c.isprintable() and c != "\n"]


@pytest.mark.parametrize("command", ["audit", "repair-statistics"])
def test_a_folder_without_a_table_is_an_error(tmp_path, command):
    result = run(command, tmp_path)
    assert result.exit_code != 0
    assert "there is no Delta table" in str(result.exception)


def test_a_repair_prints_its_plan_by_default(faulty):
    result = run("repair-statistics", faulty.path)
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        f"{faulty.file.name} has wrong statistics",
        "  numRecords is 7, expected 4",
        "",
        f"{faulty.path}: nothing was committed; pass --yes to commit the statistics of 1 of 1 file",
    ]
    assert len(list(faulty.log.glob("*.json"))) == 1


def test_a_repair_commits_with_yes(faulty):
    result = run("repair-statistics", faulty.path, "--yes")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == f"{faulty.path}: version 1 repairs the statistics of 1 of 1 file"
    again = run("repair-statistics", faulty.path, "--yes")
    assert again.exit_code == 0
    assert again.stdout == f"{faulty.path}: nothing to repair in 1 file\n"


def test_a_repair_prints_json(faulty):
    report = json.loads(run("repair-statistics", faulty.path, "--json").stdout)
    (file,) = report["files"]
    assert (report["read_version"], report["version"], report["num_files"]) == (0, None, 1)
    assert file["reasons"] == ["numRecords is 7, expected 4"]
    assert json.loads(file["stats_before"])["numRecords"] == 7
    assert json.loads(file["stats"])["numRecords"] == 4


def test_statistics_that_cannot_be_repaired_are_a_finding(faulty):
    faulty.file.write_bytes(b"PAR1")
    result = run("repair-statistics", faulty.path, "--yes")
    assert result.exit_code == 1
    assert f"{faulty.file.name} cannot be repaired" in result.stdout
