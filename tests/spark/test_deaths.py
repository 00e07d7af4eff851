"""A streaming driver that is killed, wherever it is, and started again, writes every row once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from spark.tables import data_files, listed_files, rows

DRIVER = Path(__file__).with_name("mortal_driver.py")
DEATHS = ("tasks", "commit", "done")
# How often the driver dies at a moment of chance besides: `make test` is in a hurry.
DEATHS_BY_CHANCE = int(os.environ.get("DEATHS_BY_CHANCE", "0"))
ROWS_OF_A_BATCH = 300


def start(folder: Path, death: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(DRIVER), str(folder), death]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    return subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_every_row_is_there_once_after_the_driver_died_at_each_step(tmp_path: Path):
    (tmp_path / "lines").mkdir()
    batches = 2 + len(DEATHS) + DEATHS_BY_CHANCE
    for batch in range(batches):
        numbers = range(batch * ROWS_OF_A_BATCH, (batch + 1) * ROWS_OF_A_BATCH)
        (tmp_path / "lines" / f"{batch:02}.txt").write_text(
            "".join(f'{{"n":{n}}}\n' for n in numbers), "utf-8"
        )

    for death in DEATHS:
        driver = start(tmp_path, death)
        _, errors = driver.communicate(timeout=180)
        assert driver.returncode == -signal.SIGKILL, errors
    for _ in range(DEATHS_BY_CHANCE):
        driver = start(tmp_path, "none")
        with pytest.raises(subprocess.TimeoutExpired):
            driver.wait(timeout=random.uniform(5, 15))
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    driver = start(tmp_path, "none")
    _, errors = driver.communicate(timeout=180)
    assert driver.returncode == 0, errors

    expected = sorted(({"n": n} for n in range(batches * ROWS_OF_A_BATCH)), key=str)
    assert rows(tmp_path / "table", n="value:n::int") == expected
    assert data_files(tmp_path / "table") == listed_files(tmp_path / "table")
