"""Writes and merges on a cluster whose executors and Python workers are killed have each row once."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from spark.cluster_runs import run_driver

# How often the driver writes and merges a table; `tools/faults.sh` does more.
RUNS = int(os.environ.get("CLUSTER_RUNS", "1"))
# A busy machine takes minutes to start the processes again.
SECONDS_PER_RUN = 600


@pytest.mark.nightly
@pytest.mark.timeout((RUNS + 1) * SECONDS_PER_RUN)
def test_rows_are_equal_after_executors_and_workers_were_killed(tmp_path: Path):
    seed = str(random.randrange(1 << 32))
    run_driver("cluster_driver.py", tmp_path, RUNS, seed, seconds_per_run=SECONDS_PER_RUN)
