"""The library in forked processes whose parent has used it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.processes import WAIT, start

import delta_variant as dv
from delta_variant.errors import StoreError

# Python 3.12 and later warn about every fork of a process with threads.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "event": ['{"a":1}', '{"a":"x"}', None]})


def parse(text: str) -> str:
    (parsed,) = dv.to_json(dv.parse_json([text])).to_pylist()
    return str(parsed)


def append(table: str) -> int:
    return dv.write_table(table, ROWS, variant_columns=["event"], mode="append").version


def read(table: str) -> list[Any]:
    columns = {"id": "id", "a": "event:a::string"}
    return dv.read_table(table, columns=columns, where="id < 3").to_table().to_pylist()


def delete(table: str) -> int:
    return dv.delete(table, "id = 3").rows_deleted


def in_a_fork(function: Callable[..., Any], *arguments: object) -> Any:
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return pool.apply_async(function, arguments).get(timeout=WAIT)


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Return a table that this process has written and read, so that all its threads have started."""
    location = str(tmp_path / "t")
    dv.write_table(location, ROWS, variant_columns=["event"])
    assert parse('{"b": 1}') == '{"b":1}'
    assert len(read(location)) == 2
    return location


def test_a_forked_process_parses_json(table: str):
    assert in_a_fork(parse, '{"a": [1, 2]}') == '{"a":[1,2]}'


def test_a_forked_process_reads_a_table(table: str):
    assert in_a_fork(read, table) == [{"id": 1, "a": "1"}, {"id": 2, "a": "x"}]


def test_a_forked_process_writes_a_table(table: str):
    assert in_a_fork(append, table) == 1
    assert in_a_fork(delete, table) == 2
    assert dv.read_table(table).to_table().num_rows == 4
    assert dv.audit_table(table, data=True).count("error") == 0


def test_a_fork_of_a_fork_works(table: str):
    assert in_a_fork(_read_in_a_fork, table) == [{"id": 1, "a": "1"}, {"id": 2, "a": "x"}]


def _read_in_a_fork(table: str) -> Any:
    assert parse("1") == "1"
    # The workers of a pool may have no children of their own, but a process may.
    ours, theirs = multiprocessing.get_context("fork").Pipe()
    child = os.fork()
    if not child:
        theirs.send(read(table))
        os._exit(0)
    try:
        assert ours.poll(WAIT)
        return ours.recv()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_the_parent_process_works_after_a_fork(table: str):
    in_a_fork(parse, "1")
    assert append(table) == 1
    assert len(read(table)) == 4


def read_remote(table: str) -> str:
    try:
        dv.load_snapshot(table)
    except StoreError as error:
        return str(error)
    return "no error"


def test_an_object_store_raises_an_error_in_a_forked_process():
    dv.write_table("memory://forks/t", ROWS, variant_columns=["event"])
    message = in_a_fork(read_remote, "memory://forks/t")
    assert "cannot access an object store from this forked process" in message
    assert "multiprocessing.get_context('spawn') or 'forkserver'" in message


FORK_THEN_STOP = """
import os, signal, sys
import delta_variant as dv
dv.parse_json(["1"])
if not os.fork():
    print("ready", flush=True)
    while True:
        dv.parse_json(["1"] * 1000)
os.wait()
"""


def test_sigint_ends_a_forked_process():
    command = [sys.executable, "-c", FORK_THEN_STOP]
    with start(command, stdout=subprocess.PIPE, start_new_session=True) as parent:
        try:
            assert parent.stdout.readline() == b"ready\n"
            os.killpg(parent.pid, signal.SIGINT)
            # Both processes end; the pipe closes with the last of them.
            assert parent.communicate(timeout=WAIT)[0] == b""
        finally:
            # The group exists as long as one of its processes does.
            with suppress(ProcessLookupError):
                os.killpg(parent.pid, signal.SIGKILL)
