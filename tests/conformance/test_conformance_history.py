"""The history of the conformance kit: which case a version of an engine fixed or broke."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.errors import raises_at
from typer.testing import CliRunner

from delta_variant.cli.app import app
from delta_variant_conformance.case import Case, InvalidCaseError
from delta_variant_conformance.grade import Result, Status
from delta_variant_conformance.history import CODES, Change, History, Record, load_history
from delta_variant_conformance.runner import EngineRun, Run

# A history of one case and one engine.
ENTRY = """{"cases": {"decode": ["a"]},
 "engines": {"x": [{"version": "1", "date": "2026-01-01", "outcomes": {"decode": "%s"}}]}}"""


def a_run(version: str, *engines: str, **statuses: Status) -> Run:
    """Return a run of engines in which each case, such as `decode__a`, has a status."""
    cases = [
        Case(name.replace("__", "/"), name.partition("__")[0], Path(), (), "keeps", "", "", {}, {})
        for name in statuses
    ]
    results = [Result(case, "x", status, "") for case, status in zip(cases, statuses.values(), strict=True)]
    runs = [EngineRun(name, version, tuple(results)) for name in engines or ("duckdb",)]
    return Run(tuple(cases), tuple(runs))


def test_a_new_version_reports_what_it_fixed_and_what_it_broke():
    history = History()
    before = a_run("1.0", decode__a="pass", decode__b="wrong value", file__a="refused", file__b="not offered")
    after = a_run("2.0", decode__a="crashed", decode__b="pass", file__a="wrong value", file__b="pass")
    assert history.add(before, "2026-01-01") == []
    assert history.add(after, "2026-02-01") == [
        Change("duckdb", "1.0", "2.0", ("decode/b", "file/b"), ("decode/a",), ("file/a",))
    ]
    assert [record.version for record in history.engines["duckdb"]] == ["1.0", "2.0"]


def test_a_change_is_printed_with_its_versions_and_cases():
    change = Change("duckdb", "1.0", "2.0", ("decode/b", "file/b"), ("decode/a",), ())
    assert list(change.lines()) == [
        "duckdb 1.0 -> 2.0: 2 fixed, 1 broke",
        "  fixed: decode/b, file/b",
        "  broke: decode/a",
    ]


def test_the_same_version_replaces_only_the_cases_that_it_ran():
    history = History()
    history.add(a_run("1.0", decode__a="pass", file__a="refused"), "2026-01-01")
    [change] = history.add(a_run("1.0", file__a="pass", file__b="accepted"), "2026-01-02")
    assert (change.before, change.after, change.fixed, change.broke) == ("1.0", "1.0", ("file/a",), ())
    assert next(change.lines()) == "duckdb 1.0: 1 fixed, 0 broke"
    assert history.engines["duckdb"] == [
        Record("1.0", "2026-01-02", {"decode/a": "pass", "file/a": "pass", "file/b": "accepted"})
    ]


def test_a_run_without_changes_and_an_engine_that_does_not_start_report_nothing():
    history = History()
    history.add(a_run("1.0", decode__a="pass"), "2026-01-01")
    assert history.add(a_run("1.0", decode__a="pass"), "2026-01-02") == []
    absent = Run((), (EngineRun("duckdb", absent="no module"),))
    assert history.add(absent, "2026-01-03") == []
    assert [record.date for record in history.engines["duckdb"]] == ["2026-01-02"]


def test_an_interrupted_engine_is_not_recorded():
    history = History()
    history.add(a_run("1.0", decode__a="pass", decode__b="pass"), "2026-01-01")
    [engine] = a_run("2.0", decode__a="refused").engines
    assert history.add(Run((), (replace(engine, is_interrupted=True),)), "2026-01-02") == []
    assert [record.version for record in history.engines["duckdb"]] == ["1.0"]


def test_a_new_case_is_neither_fixed_nor_broken():
    history = History()
    history.add(a_run("1.0", decode__a="pass"), "2026-01-01")
    [change] = history.add(a_run("2.0", decode__a="pass", decode__b="refused"), "2026-01-02")
    assert (change.fixed, change.broke, change.other) == ((), (), ())


def test_the_file_keeps_each_status_of_each_engine_and_version(tmp_path: Path):
    file = tmp_path / "history.json"
    history = History()
    statuses = {f"decode__{number}": status for number, status in enumerate(CODES)}
    history.add(a_run("1.0", "duckdb", "spark", **statuses), "2026-01-01")
    history.add(a_run("2.0", "duckdb", file__a="pass"), "2026-01-02")
    history.save(file)
    assert load_history(file) == history
    content = json.loads(file.read_text(encoding="utf-8"))
    first, second = content["engines"]["duckdb"]
    assert first["outcomes"] == {"decode": ".wlarct-", "file": " "}
    assert second["outcomes"] == {"decode": " " * 8, "file": "."}
    assert second["counts"] == {"pass": 1}


def test_a_history_that_does_not_exist_is_empty(tmp_path: Path):
    assert load_history(tmp_path / "none.json") == History()


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"engines": {}, "cases": 1, "engines": {"x": [{}]}}',
        ENTRY % "..",
        ENTRY % "?",
    ],
    ids=["no json", "no object", "no outcomes", "too many outcomes", "unknown code"],
)
def test_an_invalid_history_raises_an_error_with_its_file(tmp_path: Path, text: str):
    file = tmp_path / "history.json"
    file.write_text(text, encoding="utf-8")
    with raises_at(InvalidCaseError, file=str(file)):
        load_history(file)


@pytest.mark.slow
def test_the_command_records_a_run_and_prints_what_changed(tmp_path: Path):
    case = tmp_path / "cases" / "encode" / "one"
    case.mkdir(parents=True)
    entries = {"rules": ["E-V6"], "verdict": "keeps", "section": "VariantEncoding.md", "about": "A number"}
    entries |= {"input": {"json": "1"}, "expect": {"rows": [{"int8": 1}]}}
    (case / "case.json").write_text(json.dumps(entries), encoding="utf-8")
    file = tmp_path / "history.json"
    arguments = ["conformance", "--cases", str(tmp_path), "--engine", "ours", "--history", str(file)]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    history = load_history(file)
    [record] = history.engines["ours"]
    assert record.statuses == {"encode/one": "pass"}
    history.engines["ours"] = [Record("0.0.1", record.date, {"encode/one": "wrong value"})]
    history.save(file)
    result = CliRunner().invoke(app, arguments)
    assert f"ours 0.0.1 -> {record.version}: 1 fixed, 0 broke\n  fixed: encode/one\n" in result.stdout
    assert [each.version for each in load_history(file).engines["ours"]] == ["0.0.1", record.version]


def test_an_invalid_history_stops_the_command_before_an_engine_runs(tmp_path: Path):
    file = tmp_path / "history.json"
    file.write_text("{", encoding="utf-8")
    result = CliRunner().invoke(app, ["conformance", "--cases", str(tmp_path), "--history", str(file)])
    assert isinstance(result.exception, InvalidCaseError)
    assert file.read_text(encoding="utf-8") == "{"
