"""The code blocks of the README run in order and print their comments. Its claims about engines hold."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from readme import Block, blocks, prose

import delta_variant as dv

ALL = list(blocks())


def run_python(block: Block, names: dict[str, Any]) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block.code, f"README.md, line {block.line}", "exec"), names)
    assert printed.getvalue().splitlines() == block.output


def run_shell(block: Block, _: dict[str, Any]) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-ec", block.code], capture_output=True, text=True, env={**os.environ, "PATH": path}
    )
    assert done.returncode == 0, f"README.md, line {block.line}: {done.stderr}"
    printed = done.stdout.splitlines()
    assert [line for line in block.output if line not in printed] == []


RUNNERS: Mapping[str, Callable[[Block, dict[str, Any]], None]] = {"python": run_python, "sh": run_shell}
"""Blocks of the kind `python spark` run in tests/spark/test_readme_on_spark.py."""


@pytest.mark.slow
def test_every_block_runs_in_order_from_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    ran = [RUNNERS[block.kind](block, names) for block in ALL if block.kind != "python spark"]
    assert len(ran) >= 12


@pytest.mark.slow
def test_the_quick_start_can_be_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    first, *_ = ALL
    shell = next(block for block in ALL if block.kind == "sh")
    for _ in range(2):
        run_python(first, {})
        run_shell(shell, {})


def test_every_block_is_of_a_kind_that_runs():
    assert {block.kind for block in ALL} == {"python", "sh", "python spark"}


def test_prose_has_no_untested_code():
    spans = re.findall(r"`([^`\n]+)`", prose())
    # A call with arguments, and a command that is not a synopsis, belong in a block.
    assert [span for span in spans if re.search(r"\bdvs?\.\w+\(.+\)", span)] == []
    commands = [span for span in spans if span.startswith("delta-variant ")]
    assert [span for span in commands if re.search(r"\s[a-z][\w.]*\s+-|\s\w+\.\w+", span)] == []


def test_names_in_prose_exist():
    named = re.findall(r"`(?:dv\.)?(\w+Error)`", prose())
    assert "CommitUnknownError" in named
    assert [name for name in named if not hasattr(dv, name)] == []


@pytest.mark.parametrize(
    ("options", "opens"),
    [
        ({}, False),
        ({"shredding": None}, True),
        ({"shredding": None, "files": dv.FileOptions(annotate=False)}, True),
    ],
)
def test_deltalake_opens_the_tables_that_the_readme_lists(
    tmp_path: Path, options: dict[str, Any], opens: bool
):
    data = pa.table({"event": pa.array(['{"n": 1}'], pa.json_())})
    dv.write_table(tmp_path / "t", data, **options)
    table = DeltaTable(tmp_path / "t")
    assert table.schema().fields[0].name == "event"
    assert len(table.history()) == 1
    if opens:
        (row,) = table.to_pyarrow_table().to_pylist()
        assert dv.Variant(**row["event"]).to_python() == {"n": 1}
    else:
        with pytest.raises(Exception, match=r"variantShredding.* not yet supported"):
            table.to_pyarrow_table()
