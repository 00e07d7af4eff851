"""Concurrent operations in orders that seeds determine: a short form of `tools/faults.sh`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("interleavings.py")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    # A process of its own, because the clock and the thread pools of a history are virtual.
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)


@pytest.mark.timeout(900)
def test_each_of_100_interleavings_has_a_serial_order_and_leaves_a_sound_table():
    ended = run("--count", "100")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "100 interleavings" in ended.stdout


def test_changes_of_rows_of_one_file_have_a_serial_order_and_succeed_after_lost_races():
    ended = run("--count", "60", "--rows")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "60 interleavings" in ended.stdout
    for kind in ("Delete", "Merge", "Update"):
        assert f"{kind}: done after a lost race" in ended.stdout


def test_a_seed_repeats_the_same_calls_and_the_same_files():
    first, second = (run("--seed", "29") for _ in range(2))
    assert first.returncode == 0, first.stdout + first.stderr
    assert first.stdout == second.stdout
    assert re.search(r"^ +\d create _delta_log/0{19}4\.json$", first.stdout, re.MULTILINE)


@pytest.mark.timeout(900)
# The first seed is near one that failed, so that few others run before it.
@pytest.mark.parametrize(("store", "first"), [("create is not atomic", 20), ("files have no age", 180)])
def test_a_store_that_breaks_its_promise_fails_a_check_and_the_seed_repeats_it(store: str, first: int):
    explored = run("--store", store, "--first", str(first), "--count", "200", "--failures", "1")
    assert explored.returncode == 1
    (seed,) = re.findall(r"^seed (\d+)", explored.stdout, re.MULTILINE)
    repeated = run("--store", store, "--seed", seed)
    assert repeated.returncode == 1
    assert repeated.stdout in explored.stdout
