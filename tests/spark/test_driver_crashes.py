"""A streaming driver that is killed at any point and restarted writes every row exactly once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select
from time import sleep

import pytest
from spark.tables import data_files, listed_files, rows
from support import processes

DRIVER = Path(__file__).with_name("crash_driver.py")
STEPS = ("tasks", "commit", "done")
# How often the driver is killed at a random moment, and once at each step; `tools/faults.sh` has more.
RANDOM_CRASHES = int(os.environ.get("RANDOM_CRASHES", "3"))
BATCHES_PER_RUN = 3
ROWS_PER_BATCH = 100
TIMEOUT_SECONDS = 240
# A busy machine takes minutes to start a driver.
SECONDS_PER_CRASH = 120


@contextmanager
def start(folder: Path, step: str, sink: str) -> Iterator[subprocess.Popen[str]]:
    """Start a driver, which prints a line when it streams and writes errors to a file. Kill it at the end."""
    command = [sys.executable, str(DRIVER), str(folder), step, sink]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    with (
        (folder / "errors").open("w") as errors,
        processes.start(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        ) as driver,
    ):
        try:
            yield driver
        finally:
            # Its JVM and the processes for Python remain if only the driver is killed.
            processes.kill_session(driver.pid)


@pytest.mark.timeout((RANDOM_CRASHES + len(STEPS) + 1) * SECONDS_PER_CRASH)
@pytest.mark.parametrize(
    ("sink", "steps", "random_crashes"),
    [
        ("writer", ("commit",), 0),
        pytest.param("writer", STEPS, RANDOM_CRASHES, marks=pytest.mark.nightly),
        pytest.param("merger", STEPS, RANDOM_CRASHES // 3, marks=pytest.mark.nightly),
        pytest.param("format", (), RANDOM_CRASHES, marks=pytest.mark.nightly),
    ],
)
def test_every_row_is_written_once_after_crashes_at_each_step_and_at_random(
    tmp_path: Path, sink: str, steps: tuple[str, ...], random_crashes: int
):
    (tmp_path / "lines").mkdir()
    batches = 2 + len(steps) + random_crashes * BATCHES_PER_RUN
    for batch in range(batches):
        numbers = range(batch * ROWS_PER_BATCH, (batch + 1) * ROWS_PER_BATCH)
        (tmp_path / "lines" / f"{batch:02}.txt").write_text(
            "".join(f'{{"n":{n}}}\n' for n in numbers), "utf-8"
        )

    for step in steps:
        with start(tmp_path, step, sink) as driver:
            driver.communicate(timeout=TIMEOUT_SECONDS)
        assert driver.returncode == -signal.SIGKILL, (tmp_path / "errors").read_text()
    crashes = 0
    for _ in range(random_crashes):
        with start(tmp_path, "none", sink) as driver:
            assert select([driver.stdout], [], [], TIMEOUT_SECONDS)[0], "the driver did not start"
            assert driver.stdout.readline() == "streaming\n", (tmp_path / "errors").read_text()
            sleep(random.uniform(0, 2))
            processes.kill_session(driver.pid)
        crashes += driver.returncode == -signal.SIGKILL
    # On a fast machine the driver may finish before it is killed.
    assert crashes >= random_crashes // 2
    with start(tmp_path, "none", sink) as driver:
        driver.communicate(timeout=TIMEOUT_SECONDS)
    assert driver.returncode == 0, (tmp_path / "errors").read_text()

    expected = sorted(({"n": n} for n in range(batches * ROWS_PER_BATCH)), key=str)
    assert rows(tmp_path / "table", n="value:n::int") == expected
    assert data_files(tmp_path / "table") == listed_files(tmp_path / "table")
