"""Writes of which Spark runs a slow task twice have each row once, and no files of the slow attempt."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from spark.cluster_runs import run_driver

RUNS = int(os.environ.get("CLUSTER_RUNS", "2"))
SECONDS_PER_RUN = 240


@pytest.mark.nightly
@pytest.mark.timeout((RUNS + 1) * SECONDS_PER_RUN)
def test_the_copy_of_a_slow_task_wins_and_the_slow_one_leaves_nothing(tmp_path: Path):
    run_driver("speculation_driver.py", tmp_path, RUNS, seconds_per_run=SECONDS_PER_RUN)
