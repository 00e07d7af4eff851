"""The action `.github/actions/audit` runs its step as a runner of GitHub does."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from support.documents import ROOT
from support.tables import list_files

import delta_variant as dv

FOLDER = ROOT / ".github" / "actions" / "audit"
ACTION = (FOLDER / "action.yml").read_text(encoding="utf-8")


def run_step(folder: Path, fail_on: str = "warning", data: str = "false") -> subprocess.CompletedProcess[str]:
    """Run the step that audits the table `events`, with the variables that action.yml gives it."""
    given = {"ACTION": str(FOLDER), "TABLE": "events", "FAIL_ON": fail_on, "DATA": data}
    (command,) = re.findall(r"run: (python \"\$ACTION.+)", ACTION)
    names = re.findall(r"^        ([A-Z_]+): ", ACTION[ACTION.index(command) :], re.MULTILINE)
    assert names == list(given)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, **given, "PATH": path, "RUNNER_TEMP": str(folder)}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture
def events(tmp_path: Path) -> dv.Table:
    table = dv.Table(tmp_path / "events")
    table.append([{"id": n} for n in range(3)])
    return table


def test_a_clean_table_passes_with_a_page(events, tmp_path):
    done = run_step(tmp_path, data="true")
    assert done.returncode == 0, done.stderr
    assert "'error': 0, 'warning': 0" in done.stdout
    assert "::" not in done.stdout
    assert "<html" in (tmp_path / "audit.html").read_text(encoding="utf-8")


def test_a_finding_is_an_annotation_and_fails_unless_it_never_does(events, tmp_path):
    (file,) = list_files(tmp_path / "events", "*.parquet")
    (tmp_path / "events" / file).unlink()
    done = run_step(tmp_path)
    assert done.returncode == 1, done.stderr
    assert re.search(r"^::error title=F1::the data file cannot be found", done.stdout, re.MULTILINE)
    assert run_step(tmp_path, fail_on="never").returncode == 0


def test_a_table_that_does_not_exist_fails_without_a_page(tmp_path):
    done = run_step(tmp_path, fail_on="never")
    assert done.returncode == 2
    assert "there is no Delta table" in done.stderr
    assert not (tmp_path / "audit.html").exists()


def test_text_of_a_table_does_not_start_a_command_of_the_runner(monkeypatch, capsys):
    example = {"sentence": "a%b\n::set-output name=x::y"}
    summary = [{"rule": "AU1", "severity": "info", "count": 2, "example": example}]
    report = {"uri": "t", "version": 0, "counts": {"error": 0, "warning": 0, "info": 2}, "summary": summary}
    done = subprocess.CompletedProcess([], 0, stdout=json.dumps(report))
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    assert runpy.run_path(str(FOLDER / "audit.py"))["main"]("t", "warning", "false", "page") == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == "::notice title=AU1::2 findings, such as: a%25b%0A::set-output name=x::y"
    assert second.startswith("t, version 0: ")


@pytest.mark.parametrize(("fail_on", "data"), [("sometimes", "false"), ("never", "yes")])
def test_an_unknown_value_of_an_input_is_an_error(fail_on, data, capsys):
    assert runpy.run_path(str(FOLDER / "audit.py"))["main"]("t", fail_on, data, "page") == 2
    assert "expected fail-on" in capsys.readouterr().out
