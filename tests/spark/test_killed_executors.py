"""Writes and merges on a cluster whose executors and Python workers are killed have each row once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from support import processes

DRIVER = Path(__file__).with_name("cluster_driver.py")
# How often the driver writes and merges a table; `make faults` does more.
RUNS = int(os.environ.get("CLUSTER_RUNS", "1"))
# A busy machine takes minutes to start the processes again.
SECONDS_PER_RUN = 600


@pytest.mark.nightly
@pytest.mark.timeout((RUNS + 1) * SECONDS_PER_RUN)
def test_rows_are_equal_after_executors_and_workers_were_killed(tmp_path: Path):
    seed = random.randrange(1 << 32)
    command = [sys.executable, str(DRIVER), str(tmp_path), str(RUNS), str(seed)]
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
            # Its JVM and the executors remain if only the driver is killed.
            with suppress(ProcessLookupError):
                os.killpg(driver.pid, signal.SIGKILL)
    message = f"seed {seed}: {output}{(tmp_path / 'errors').read_text()[-4000:]}"
    assert driver.returncode == 0, message
    *_, last = output.splitlines()
    assert last.startswith(f"run {RUNS - 1}: "), message
    assert int(last.split()[2]) >= RUNS, message
