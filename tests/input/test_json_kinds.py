"""Each kind of JSON file of the documentation loads with one call and with one command."""

from __future__ import annotations

import json
import re
import shlex
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from support.documents import Page
from support.json_files import FILES
from typer.testing import CliRunner

import delta_variant as dv
from delta_variant.cli.app import app

ROW = re.compile(
    r"^\| .+ \| .+ \| `(?P<call>dv\.read_json.+)` \| `delta-variant (?P<command>write .+)` \|$", re.M
)
KINDS = [
    (found["call"], found["command"]) for found in ROW.finditer(Page("docs/reference/json-files.md").text)
]


def source_of(call: str) -> str:
    return call.split('"')[1]


def to_json_numbers(value: Any) -> Any:
    """Return a value with the numbers of Python's json: a Variant has decimals."""
    if isinstance(value, dict):
        return {name: to_json_numbers(part) for name, part in value.items()}
    if isinstance(value, list):
        return list(map(to_json_numbers, value))
    return float(value) if isinstance(value, Decimal) else value


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Write the files to the working folder."""
    monkeypatch.chdir(tmp_path)
    for name, file in FILES.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(file.content)


@pytest.mark.parametrize(("call", "command"), KINDS, ids=[source_of(call) for call, _ in KINDS])
@pytest.mark.usefixtures("files")
def test_a_kind_of_file_loads_as_python_reads_it(call: str, command: str):
    source = source_of(call)
    loaded = [file for name, file in FILES.items() if name == source or name.startswith(f"{source}")]
    expected = [{"value": value} for file in loaded for value in file.values]
    dv.write_table("from_python", eval(call, {"dv": dv}))
    run = CliRunner().invoke(app, shlex.split(command))
    assert run.exit_code == 0, run.output
    for table in ("from_python", "t"):
        assert [to_json_numbers(row) for row in dv.read_table(table).to_pylist()] == expected


def test_the_page_has_all_kinds():
    assert len(KINDS) >= 30
    named = tuple(source_of(call) for call, _ in KINDS)
    assert [name for name in FILES if not name.startswith(named)] == []


def test_the_values_are_those_of_python():
    assert json.loads(FILES["items.json"].text)["items"] == FILES["items.json"].values
    assert [json.loads(line) for line in FILES["mongo.json"].text.splitlines()] == FILES["mongo.json"].values
