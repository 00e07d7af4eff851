"""What the command `conformance` writes: results after an interrupt, JUnit XML, badges, and the page."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from delta_variant.cli.app import app
from delta_variant_conformance import command
from delta_variant_conformance.case import Case
from delta_variant_conformance.grade import Result, Status
from delta_variant_conformance.history import Change
from delta_variant_conformance.page import html_page
from delta_variant_conformance.results import badge, run_junit
from delta_variant_conformance.runner import EngineRun, Run

# It answers the first case, tells the test, and waits.
SLOW_WORKER = """
import json, sys, time
print(json.dumps({"ready": "1"}), flush=True)
number = json.loads(sys.stdin.readline())["number"]
print(json.dumps({"number": number, "outcome": "refused", "message": "not today"}), flush=True)
sys.stdin.readline()
open(sys.argv[1], "w").close()
time.sleep(60)
"""

CASES = ("--case", "encode/false", "--case", "encode/null", "--case", "encode/true")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_an_interrupted_run_reports_what_it_has(tmp_path: Path, number: signal.Signals):
    script, reached, page = tmp_path / "worker.py", tmp_path / "reached", tmp_path / "page.html"
    script.write_text(SLOW_WORKER, encoding="utf-8")
    engine = f"mine={shlex.join([sys.executable, str(script), str(reached)])}"
    program = str(Path(sys.executable).with_name("delta-variant"))
    arguments = [program, "conformance", *CASES, "--json", "--html", str(page)]
    engines = ["--engine", "pyarrow", "--engine", engine, "--engine", "polars"]
    with subprocess.Popen(
        [*arguments, *engines], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        while process.poll() is None and not reached.exists():
            time.sleep(0.05)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "delta-variant: interrupted after 4 results" in err
    found = json.loads(out)
    assert found["interrupted"] is True
    results = {each["name"]: [case["status"] for case in each["results"]] for each in found["engines"]}
    assert results == {"pyarrow": ["not offered"] * 3, "mine": ["refused"]}
    assert "mine: refused in 1 case of " in err
    text = page.read_text(encoding="utf-8")
    assert "The run was interrupted." in text
    assert 'title="mine: not run"' in text


def test_cases_are_selected_by_rule():
    done = CliRunner().invoke(app, ["conformance", "--engine", "pyarrow", "--rule", "E-V6", "--json"])
    cases = json.loads(done.stdout)["cases"]
    assert {"encode/exponent", "encode/nan_is_no_json"} <= {case["id"] for case in cases}
    assert all("E-V6" in case["rules"] for case in cases)
    wrong = CliRunner().invoke(app, ["conformance", "--case", "decode/*", "--rule", "E-V0"])
    assert wrong.exit_code == 2
    assert "no case has an id such as decode/* and the rule E-V0" in wrong.stderr.replace("\n", " ")


def test_a_log_without_a_terminal_gets_lines_of_progress(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(command, "LINE_SECONDS", 0)
    done = CliRunner().invoke(app, ["conformance", "--engine", "pyarrow", *CASES, "--json"])
    assert "pyarrow: 1 case\npyarrow: 2 cases\npyarrow: 3 cases\n" in done.stderr


def engine_run(*statuses: Status, absent: str | None = None) -> EngineRun:
    results = [
        Result(
            Case(f"decode/{n}", "decode", Path(), ("E-M1",), "keeps", "", "A value", {}, {}),
            "x<1>",
            status,
            "1",
            "2\n\x1b",
        )
        for n, status in enumerate(statuses)
    ]
    return EngineRun("x<1>", "1.0", tuple(results), absent)


def test_junit_has_a_test_case_for_each_case():
    run = Run((), (engine_run("pass", "wrong value", "not offered"), engine_run(absent="no module")))
    suite = ElementTree.fromstring(run_junit(run))
    assert {name: suite.get(name) for name in ("tests", "failures", "skipped")} == {
        "tests": "4",
        "failures": "2",
        "skipped": "1",
    }
    passed, failed, skipped, absent = suite
    assert (passed.get("classname"), passed.get("name"), len(passed)) == ("x<1>.decode", "decode/0", 0)
    [failure] = failed
    assert (failure.get("type"), failure.get("message")) == ("wrong value", "wrong value")
    assert failure.text == "A value\nrules E-M1\nexpected 1\ngot 2\n\\x1b"
    assert skipped.find("skipped") is not None
    assert absent[0].get("message") == "no module"


@pytest.mark.parametrize(
    ("statuses", "text", "color"),
    [
        (["pass"] * 9 + ["refused"], "9 of 10 cases", "#1a7f48"),
        (["pass", "not offered"], "1 of 2 cases", "#a86400"),
        (["pass", "wrong value"], "1 of 2 cases", "#c4293d"),
        (["not offered"], "0 of 1 cases", "#c4293d"),
    ],
)
def test_a_badge_has_the_passed_cases_in_a_color_by_the_score(statuses: list[Status], text: str, color: str):
    image = ElementTree.fromstring(badge(engine_run(*statuses)))
    [title, back, front, texts] = image
    assert title.text == f"Variant conformance of x<1> 1.0: {text}"
    assert [each.text for each in texts] == ["Variant conformance", text]
    assert back.get("fill") == color
    assert front.get("fill") == "#555"


def test_the_command_writes_junit_and_badges(tmp_path: Path):
    file, folder = tmp_path / "results.xml", tmp_path / "badges"
    arguments = ["--engine", "pyarrow", *CASES, "--junit", str(file), "--badges", str(folder)]
    assert CliRunner().invoke(app, ["conformance", *arguments]).exit_code == 0
    assert len(ElementTree.parse(file).getroot()) == 3
    assert [each.name for each in folder.iterdir()] == ["pyarrow.svg"]


def test_the_page_has_the_causes_the_changes_the_date_and_the_machine():
    run = Run(
        tuple(result.case for result in engine_run("pass", "refused").results),
        (engine_run("pass", "refused"),),
        "2026-11-27",
        "Plan 9, 2 CPUs",
    )
    page = html_page(run, [Change("x<1>", "0.9", "1.0", ("decode/0",), (), ())])
    assert (
        "2 cases of Variant in Parquet and Delta, for each engine, run on 2026-11-27 on Plan 9, 2 CPUs."
        in page
    )
    assert "x&lt;1&gt; 0.9 -&gt; 1.0: 1 fixed, 0 broke\n  fixed: decode/0" in page
    causes = page[page.index("<h2>Causes</h2>") : page.index('<section class="filters"')]
    assert re.findall(r'<td class="text">(.*?)</td>', causes) == ["of E-M1", "2", "decode/1"]
    assert "Changes" not in html_page(run)
