"""`delta-variant audit` and `repair-statistics`: what they print, and with which exit status."""

from __future__ import annotations

import io
import json
import re
from email.message import Message
from xml.etree import ElementTree

import pytest
from rich.console import Console
from support.planting import Table
from typer.testing import CliRunner

import delta_variant as dv
from delta_variant.cli.app import app
from delta_variant.cli.commands import audit as audit_commands
from delta_variant.cli.commands.audit import Selection, supports_links
from delta_variant.reports import audit as audit_reports
from delta_variant.reports import bounds

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
    result = run("audit", faulty.path, "--all")
    assert result.exit_code == 1
    lines = [line.rstrip() for line in result.stdout.splitlines()]
    assert lines[2:4] == [
        "the table",
        "  note     T3     the protocol lists both variantType and variantType-preview, two names of one "
        "feature: drop the preview with drop_feature when all readers know the stable name",
    ]
    assert re.fullmatch(rf"{re.escape(faulty.file.name)} \(.* kB, 4 rows\)", lines[5])
    assert lines[6].startswith("  error    AU11   numRecords is 7, but the file has 4 rows: ")
    assert lines[-1] == "1 error, 1 note"


@pytest.fixture
def flood(table):
    """Return a table of 1,000 files: each has the same note for two paths, and 400 have an error."""
    lower = bounds.encode("{\"$['a']\": 1, \"$['d']\": 1.5}")
    file = table.file
    (add,) = [action["add"] for action in table.actions() if "add" in action]
    statistics = {"nullCount": {}, "minValues": {"v": lower}, "maxValues": {"v": bounds.encode("{}")}}
    actions = [action for action in table.actions() if "add" not in action]
    for number in range(1000):
        name = f"part-{number}.parquet"
        (table.path / name).hardlink_to(file)
        text = json.dumps({"numRecords": 4 if number < 600 else 7, **statistics})
        actions.append({"add": {**add, "path": name, "stats": text}})
    table.rewrite(actions)
    return table


def test_an_audit_summarizes_a_flood_of_findings_by_rule(flood, capsys):
    audit = dv.audit_table(flood.path)
    summary = audit.summary()
    assert [(each.rule, each.severity, each.count, each.files) for each in summary] == [
        ("AU11", "error", 400, 400),
        ("X3", "info", 2000, 1000),
    ]
    assert (summary[1].example.path_key, summary[1].example.file_path) == ("$['a']", "part-0.parquet")
    remedy = "if the rows are right, run `delta-variant repair-statistics`"
    assert summary[0].remedy == f"{remedy}; until then a reader that skips by it loses rows"
    audit_commands.print_summary(audit, Selection())
    error, note, counts = capsys.readouterr().out.splitlines()[1:4]
    assert error == (
        "  error    AU11   400 findings in 400 files, such as part-600.parquet: numRecords is 7, but the "
        "file has 4 rows: if the rows are right, run `delta-variant repair-statistics`; until then a reader "
        "that skips by it loses rows"
    )
    assert note.startswith(
        "  note     X3     2,000 findings in 1,000 files, such as part-0.parquet: the path $['a'] of v is "
        "only in minValues: allowed, "
    )
    assert counts == "400 errors, 2,000 notes"
    audit_commands.print_findings_json(audit, Selection())
    report = json.loads(capsys.readouterr().out)
    assert len(report["findings"]) == 2400
    assert [(each["rule"], each["count"], each["files"]) for each in report["summary"]] == [
        ("AU11", 400, 400),
        ("X3", 2000, 1000),
    ]


def test_findings_are_selected_by_severity_and_rule(faulty):
    def rules(*options):
        return re.findall(
            r"^  (?:error|warning|note) +(\w+)", run("audit", faulty.path, *options).stdout, re.M
        )

    assert rules() == ["AU11", "T3"]
    assert rules("--severity", "error") == ["AU11"]
    assert rules("--severity", "warning") == ["AU11"]
    assert rules("--severity", "info") == ["AU11", "T3"]
    assert rules("--rule", "t3") == ["T3"]
    assert rules("--rule", "T3", "--rule", "AU11") == ["AU11", "T3"]
    assert rules("--rule", "T3", "--all") == ["T3"]
    assert rules("--rule", "L0") == []
    assert rules("--limit", "1") == ["AU11"]
    selected = run("audit", faulty.path, "--rule", "T3")
    assert selected.exit_code == 1
    assert selected.stdout.splitlines()[-2:] == ["1 error, 1 note", "1 finding of 2 selected"]
    assert "  and 1 more rule\n" in run("audit", faulty.path, "--limit", "1").stdout
    report = json.loads(run("audit", faulty.path, "--json", "--severity", "error").stdout)
    assert [each["rule"] for each in report["findings"]] == ["AU11"]
    assert report["counts"] == {"error": 1, "warning": 0, "info": 1}


def test_an_unknown_rule_is_rejected(faulty):
    result = run("audit", faulty.path, "--rule", "AU99")
    assert result.exit_code == 2
    assert "unknown rule 'AU99'" in result.output


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, False),
        ({"TERM": "xterm-256color"}, False),
        ({"TERM_PROGRAM": "Apple_Terminal"}, False),
        ({"VTE_VERSION": "4602"}, False),
        ({"VTE_VERSION": "new"}, False),
        ({"VTE_VERSION": "6003"}, True),
        ({"TERM_PROGRAM": "vscode"}, True),
        ({"TERM": "xterm-kitty"}, True),
        ({"WT_SESSION": "1"}, True),
    ],
)
def test_rules_are_links_only_on_terminals_that_support_them(environment, expected, monkeypatch):
    for name in ("TERM", "TERM_PROGRAM", "VTE_VERSION", "WT_SESSION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    terminal = Console(force_terminal=True, file=io.StringIO(), _environ={"TERM": "xterm"})
    assert supports_links(terminal) is expected
    assert not supports_links(Console(file=io.StringIO()))


def test_a_rule_links_to_its_anchor_in_the_catalogue(faulty, monkeypatch, capsys):
    monkeypatch.setattr(audit_reports, "_documentation", lambda: "https://example.com/audit-rules/")
    output = io.StringIO()
    terminal = Console(force_terminal=True, file=output, _environ={"TERM": "xterm"}, width=200)
    monkeypatch.setattr(audit_commands, "console", lambda **_: terminal)
    monkeypatch.setenv("TERM_PROGRAM", "WezTerm")
    audit_commands.print_summary(dv.audit_table(faulty.path), Selection())
    assert ";https://example.com/audit-rules/#au11\x1b\\" in output.getvalue()


def test_the_catalogue_is_at_the_address_of_the_sources(monkeypatch):
    urls = Message()
    urls["Project-URL"] = "Homepage, https://example.com"
    monkeypatch.setattr(audit_reports, "metadata", lambda _: urls)
    assert audit_reports._documentation.__wrapped__() is None
    urls["Project-URL"] = "Source, https://example.com/delta-variant"
    expected = "https://example.com/delta-variant/blob/main/docs/audit-rules.md"
    assert audit_reports._documentation.__wrapped__() == expected


def test_notes_alone_are_a_clean_exit(table):
    table.edit_protocol(*[["variantType", "variantShredding", "variantType-preview"]] * 2)
    assert run("audit", table.path).exit_code == 0


def test_an_audit_prints_json(faulty):
    result = run("audit", faulty.path, "--json", "--file", faulty.file.name)
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert (report["version"], report["data"], report["clean"]) == (0, False, False)
    assert report["counts"] == {"error": 1, "warning": 0, "info": 1}
    size = faulty.file.stat().st_size
    expected = {"path": faulty.file.name, "rows": 4, "bytes": size, "is_residual": False, "deleted_rows": 0}
    assert report["files"] == [expected]
    note, error = report["findings"]
    assert (note["rule"], note["severity"]) == ("T3", "info")
    assert (error["rule"], error["file_path"]) == ("AU11", faulty.file.name)


def test_an_audit_writes_a_page(faulty, tmp_path):
    page = tmp_path / "audit.html"
    assert run("audit", faulty.path, "--html", page).exit_code == 1
    assert page.read_text("utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize(("fail_on", "expected"), [("error", 1), ("warning", 1), ("info", 1), ("never", 0)])
def test_the_exit_status_follows_the_least_severity(faulty, fail_on, expected):
    assert run("audit", faulty.path, "--fail-on", fail_on).exit_code == expected
    assert run("audit", faulty.path, "--ignore", "au11", "--fail-on", fail_on).exit_code == (
        fail_on == "info"
    )


def test_an_audit_leaves_out_the_findings_of_a_baseline(faulty, tmp_path):
    baseline = tmp_path / "known.json"
    baseline.write_text(run("audit", faulty.path, "--json").stdout, encoding="utf-8")
    result = run("audit", faulty.path, "--baseline", baseline)
    assert result.exit_code == 0
    assert result.stdout.endswith("nothing found\n")
    assert result.stderr == "2 findings left out: ignored, or in the baseline\n"
    faulty.edit_stats(lambda statistics: statistics.pop("numRecords"))
    report = json.loads(run("audit", faulty.path, "--baseline", baseline, "--json").stdout)
    assert {each["rule"] for each in report["findings"]}.isdisjoint({"T3"})


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"findings": [1]}'])
def test_another_file_is_not_a_baseline(table, tmp_path, text):
    (tmp_path / "known.json").write_text(text, encoding="utf-8")
    result = run("audit", table.path, "--baseline", tmp_path / "known.json")
    assert result.exit_code == 2
    assert "expected the output of `audit --json`" in " ".join(result.stderr.split())


def test_an_audit_does_not_check_the_files_of_a_version_again(faulty):
    dv.Table(faulty.path).append([{"id": 1}])
    assert run("audit", faulty.path, "--since", "0").exit_code == 0
    assert "1 file, 1 row " in run("audit", faulty.path, "--since", "0").stdout
    assert run("audit", faulty.path).exit_code == 1
    assert "has no version 7" in str(run("audit", faulty.path, "--since", "7").exception)


def test_an_audit_writes_sarif(faulty, tmp_path):
    run("audit", faulty.path, "--sarif", tmp_path / "audit.sarif")
    (found,) = json.loads((tmp_path / "audit.sarif").read_text(encoding="utf-8"))["runs"]
    assert [rule["id"] for rule in found["tool"]["driver"]["rules"]] == ["T3", "AU11"]
    assert found["originalUriBaseIds"]["TABLE"]["uri"] == f"{faulty.path.as_uri()}/"
    places = {
        each["ruleId"]: (each["level"], each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"])
        for each in found["results"]
    }
    assert places == {"T3": ("note", "_delta_log/"), "AU11": ("error", faulty.file.name)}


def test_an_audit_writes_a_test_case_for_each_rule(faulty, tmp_path):
    run("audit", faulty.path, "--junit", tmp_path / "audit.xml")
    suite = ElementTree.parse(tmp_path / "audit.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == (str(len(suite)), "1")
    assert len(suite) == len(audit_reports.rules())
    (failed,) = [case for case in suite if case.find("failure") is not None]
    assert failed.get("name", "").startswith("AU11: ")
    assert "numRecords is 7, but the file has 4 rows" in (failed.find("failure").text or "")


def test_hostile_names_cannot_control_the_terminal(table):
    table.edit("add", lambda add: add.update(path=f"{ESCAPE}[red]\u202e.parquet"))
    for command in (["audit"], ["audit", "--all"], ["repair-statistics"]):
        output = run(*command, table.path).stdout
        assert "[red]" in output
        assert not [c for c in output if not c.isprintable() and c != "\n"]


@pytest.mark.parametrize("command", ["audit", "repair-statistics"])
def test_a_folder_without_a_table_is_an_error(tmp_path, command):
    result = run(command, tmp_path)
    assert result.exit_code != 0
    assert "there is no Delta table" in str(result.exception)


def test_a_repair_prints_its_plan(faulty):
    result = run("repair-statistics", faulty.path, "--dry-run")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        f"{faulty.file.name} has wrong statistics",
        "  numRecords is 7, but the file has 4 rows",
        "",
        f"{faulty.path}: nothing was committed; 1 of 1 file would be repaired",
    ]
    assert len(list(faulty.log.glob("*.json"))) == 1


def test_a_repair_commits(faulty):
    result = run("repair-statistics", faulty.path)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == f"{faulty.path}: version 1 repairs the statistics of 1 of 1 file"
    again = run("repair-statistics", faulty.path)
    assert again.exit_code == 0
    assert again.stdout == f"{faulty.path}: nothing to repair in 1 file\n"


def test_a_repair_prints_json(faulty):
    report = json.loads(run("repair-statistics", faulty.path, "--dry-run", "--json").stdout)
    (file,) = report["files"]
    assert (report["read_version"], report["version"], report["num_files"]) == (0, None, 1)
    assert file["reasons"] == ["numRecords is 7, but the file has 4 rows"]
    assert json.loads(file["stats_before"])["numRecords"] == 7
    assert json.loads(file["stats"])["numRecords"] == 4


def test_statistics_that_cannot_be_repaired_are_a_finding(faulty):
    faulty.file.write_bytes(b"PAR1")
    result = run("repair-statistics", faulty.path)
    assert result.exit_code == 1
    assert f"{faulty.file.name} cannot be repaired" in result.stdout
