"""Processes that write to one table at the same time: a short form of `tools/faults.sh`."""

from __future__ import annotations

from pathlib import Path

import pytest
from buckets import Bucket
from concurrent_writers import run_writers
from row_writers import run_row_writers


@pytest.mark.parametrize("deletes", [False, True])
def test_concurrent_writers_on_a_disk_lose_and_repeat_nothing(tmp_path: Path, deletes: bool):
    commits = run_writers(str(tmp_path / "table"), writers=4, appends=20, deletes=deletes).commits
    assert commits == (88 if deletes else 80)


@pytest.mark.parametrize("deletes", [False, True])
def test_concurrent_writers_on_s3_lose_and_repeat_nothing(bucket: Bucket, deletes: bool):
    options = bucket.options
    commits = run_writers(bucket.table(), writers=4, appends=10, deletes=deletes, options=options).commits
    assert commits == (44 if deletes else 40)


def test_concurrent_creators_on_a_disk_make_one_table_of_all_rows(tmp_path: Path):
    for number in range(3):
        run_writers(str(tmp_path / f"table {number}"), writers=4, appends=2, creates=True)


def test_concurrent_creators_on_s3_make_one_table_of_all_rows(bucket: Bucket):
    for number in range(3):
        run_writers(bucket.table(str(number)), writers=4, appends=2, creates=True, options=bucket.options)


@pytest.mark.parametrize("kills", [0, 2])
def test_writers_of_rows_of_one_file_lose_and_repeat_nothing(tmp_path: Path, kills: int):
    counts = run_row_writers(tmp_path / "table", writers=3, changes=5, kills=kills)
    assert (counts.commits, counts.conflicts) == (15, 0)
    # Fast writers end before all of them.
    assert min(kills, 1) <= counts.kills <= kills
