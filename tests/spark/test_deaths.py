"""A streaming driver that is killed, wherever it is, and started again, writes every row once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from time import sleep

from spark.tables import data_files, listed_files, rows

DRIVER = Path(__file__).with_name("mortal_driver.py")
DEATHS = ("tasks", "commit", "done")
# How often the driver dies at a moment of chance besides.
DEATHS_BY_CHANCE = int(os.environ.get("DEATHS_BY_CHANCE", "10"))
BATCHES_OF_A_LIFE = 3
ROWS_OF_A_BATCH = 100
LONGEST = 240


def start(folder: Path, death: str) -> subprocess.Popen[str]:
    """Start a driver, which says when it streams, and keeps its errors in a file."""
    command = [sys.executable, str(DRIVER), str(folder), death]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    with (folder / "errors").open("w") as errors:
        return subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )


def test_every_row_is_there_once_after_the_driver_died_at_each_step_and_by_chance(tmp_path: Path):
    (tmp_path / "lines").mkdir()
    batches = 2 + len(DEATHS) + DEATHS_BY_CHANCE * BATCHES_OF_A_LIFE
    for batch in range(batches):
        numbers = range(batch * ROWS_OF_A_BATCH, (batch + 1) * ROWS_OF_A_BATCH)
        (tmp_path / "lines" / f"{batch:02}.txt").write_text(
            "".join(f'{{"n":{n}}}\n' for n in numbers), "utf-8"
        )

    for death in DEATHS:
        with start(tmp_path, death) as driver:
            driver.communicate(timeout=LONGEST)
        assert driver.returncode == -signal.SIGKILL, (tmp_path / "errors").read_text()
    deaths = 0
    for _ in range(DEATHS_BY_CHANCE):
        with start(tmp_path, "none") as driver:
            assert driver.stdout.readline() == "streaming\n", (tmp_path / "errors").read_text()
            sleep(random.uniform(0, 2))
            os.killpg(driver.pid, signal.SIGKILL)
        deaths += driver.returncode == -signal.SIGKILL
    # On a fast machine there may be nothing left to do.
    assert deaths >= DEATHS_BY_CHANCE // 2
    with start(tmp_path, "none") as driver:
        driver.communicate(timeout=LONGEST)
    assert driver.returncode == 0, (tmp_path / "errors").read_text()

    expected = sorted(({"n": n} for n in range(batches * ROWS_OF_A_BATCH)), key=str)
    assert rows(tmp_path / "table", n="value:n::int") == expected
    assert data_files(tmp_path / "table") == listed_files(tmp_path / "table")
