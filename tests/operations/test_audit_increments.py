"""An audit of the files that changed since a former audit, and findings as they are found."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import delta_variant as dv
from delta_variant.cli.app import app
from delta_variant.operations.audit.findings import listening


@pytest.fixture
def events(tmp_path: Path) -> dv.Table:
    """Return a table of three files, of which the second has a wrong number of rows in the log."""
    table = dv.Table(tmp_path / "events")
    for number in range(3):
        table.append([{"id": number}])
    damage(tmp_path / "events", 1)
    return table


def damage(table: Path, version: int) -> None:
    commit = table / "_delta_log" / f"{version:020}.json"
    text = commit.read_text(encoding="utf-8")
    assert r"\"numRecords\":1" in text
    commit.write_text(text.replace(r"\"numRecords\":1", r"\"numRecords\":7"), encoding="utf-8")
    (commit.parent / f"{version:020}.crc").unlink(missing_ok=True)


def places(audit: dv.Audit) -> list[tuple[str, str | None]]:
    return [(each.rule, each.file_path) for each in audit.findings if each.file_path]


def by_path(audit: dv.Audit) -> dict[str, Any]:
    return {file.path: file for file in audit.files}


def test_an_audit_since_another_has_its_findings_and_checks_only_new_files(events: dv.Table, tmp_path: Path):
    former = events.audit(data=True)
    [(rule, wrong)] = places(former)
    assert rule == "AU11"
    events.append([{"id": 3}])
    whole, after = events.audit(data=True), events.audit(data=True, since=former)
    assert places(after) == places(whole) == [("AU11", wrong)]
    assert by_path(after) == by_path(whole)
    assert after.version == 3
    # The files of the former audit are not read.
    for file in by_path(former):
        (tmp_path / "events" / file).unlink()
    assert places(events.audit(data=True, since=former)) == [("AU11", wrong)]


def test_the_files_and_findings_that_the_table_lost_are_left_out(events: dv.Table):
    former = events.audit()
    [(_, wrong)] = places(former)
    events.optimize()
    after = events.audit(since=former)
    assert places(after) == []
    assert len(after.files) == 1
    assert wrong not in by_path(after)


def test_a_file_with_other_statistics_is_checked_again(events: dv.Table):
    former = events.audit()
    events.repair_statistics(dry_run=False)
    assert places(events.audit(since=former)) == []
    broken = replace(former, findings=())
    assert by_path(events.audit(since=broken)) == by_path(events.audit())


def test_the_files_that_a_former_audit_left_out_are_checked(events: dv.Table):
    sampled = events.audit(sample=1)
    after = events.audit(since=sampled)
    assert by_path(after) == by_path(events.audit())
    assert places(after) == places(events.audit())


def test_rows_are_not_taken_for_checked_by_an_audit_without_them(events: dv.Table):
    former = events.audit()
    with pytest.raises(ValueError, match="since: expected an audit with data=True"):
        events.audit(data=True, since=former)


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["audit", *arguments])


def test_the_command_takes_the_output_of_a_former_audit(events: dv.Table, tmp_path: Path):
    table, file = str(tmp_path / "events"), tmp_path / "last.json"
    file.write_text(run(table, "--json").stdout, encoding="utf-8")
    events.append([{"id": 3}])
    whole, after = (json.loads(run(table, "--json", *more).stdout) for more in ((), ("--since", str(file))))
    assert after["findings"] == whole["findings"]
    assert len(after["findings"]) > 0
    assert after["summary"] == whole["summary"]
    assert {each["path"] for each in after["files"]} == {each["path"] for each in whole["files"]}


@pytest.mark.parametrize("text", [None, "", "{}", '{"findings": [], "summary": []}'])
def test_another_file_is_not_a_former_audit(events: dv.Table, tmp_path: Path, text: str | None):
    file = tmp_path / "last.json"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    done = run(str(tmp_path / "events"), "--since", str(file))
    assert done.exit_code == 2
    assert "expected a version, or the output of `audit --json`" in " ".join(done.stderr.split())


def test_findings_are_lines_of_json_before_the_audit_ends(events: dv.Table, tmp_path: Path):
    seen: list[Sequence[object]] = []
    with listening(lambda finding: seen.append((finding.rule, finding.file_path))):
        audit = events.audit()
    assert seen == [(each.rule, each.file_path) for each in audit.findings]
    done = run(str(tmp_path / "events"), "--jsonl")
    assert done.exit_code == 1
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines == json.loads(run(str(tmp_path / "events"), "--json").stdout)["findings"]
    assert run(str(tmp_path / "events"), "--jsonl", "--ignore", "AU11", "--severity", "error").stdout == ""
    assert "at most one of --json and --jsonl" in run("t", "--json", "--jsonl").stderr
