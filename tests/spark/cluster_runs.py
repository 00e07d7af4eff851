"""Run a driver of a cluster in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from support import processes


def run_driver(driver: str, folder: Path, runs: int, *arguments: str, seconds_per_run: int) -> None:
    """Run `driver`, a module of this folder, and check that each of its runs met what it is about.

    The driver takes the folder, the number of runs and the arguments. After each run it prints the line
    `run NUMBER: COUNT …`, where COUNT is that of all runs so far.
    """
    command = [sys.executable, str(Path(__file__).with_name(driver)), str(folder), str(runs), *arguments]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    with (
        (folder / "errors").open("w") as errors,
        processes.start(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        try:
            output, _ = process.communicate(timeout=runs * seconds_per_run)
        finally:
            # The JVM and the executors remain if only the driver is killed.
            processes.kill_session(process.pid)
    message = f"{arguments}: {output}{(folder / 'errors').read_text()[-4000:]}"
    assert process.returncode == 0, message
    *_, last = output.splitlines()
    assert last.startswith(f"run {runs - 1}: "), message
    assert int(last.split()[2]) >= runs, message
