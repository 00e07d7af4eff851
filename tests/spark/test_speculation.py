"""Writes of which Spark runs a slow task twice have each row once, and no files of the slow attempt."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from support import processes

DRIVER = Path(__file__).with_name("speculation_driver.py")
RUNS = int(os.environ.get("CLUSTER_RUNS", "2"))
SECONDS_PER_RUN = 240


@pytest.mark.nightly
@pytest.mark.timeout((RUNS + 1) * SECONDS_PER_RUN)
def test_the_copy_of_a_slow_task_wins_and_the_slow_one_leaves_nothing(tmp_path: Path):
    command = [sys.executable, str(DRIVER), str(tmp_path), str(RUNS)]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    with (
        (tmp_path / "errors").open("w") as errors,
        processes.start(
            command,
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        ) as driver,
    ):
        try:
            output, _ = driver.communicate(timeout=RUNS * SECONDS_PER_RUN)
        finally:
            # The cluster and its executors are in the process group.
            with suppress(ProcessLookupError):
                os.killpg(driver.pid, signal.SIGKILL)
    message = f"{output}{(tmp_path / 'errors').read_text()[-4000:]}"
    assert driver.returncode == 0, message
    *_, last = output.splitlines()
    assert last.startswith(f"run {RUNS - 1}: "), message
    assert int(last.split()[2]) >= RUNS, message
