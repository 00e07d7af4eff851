"""Processes that write to one table at once: a short form of `make faults`."""

from __future__ import annotations

from pathlib import Path

import pytest
from buckets import Bucket
from racers import race


@pytest.mark.parametrize("deletes", [False, True])
def test_writers_that_race_on_a_disk_lose_and_repeat_nothing(tmp_path: Path, deletes: bool):
    commits = race(str(tmp_path / "table"), writers=4, appends=20, deletes=deletes).commits
    assert commits == (88 if deletes else 80)


@pytest.mark.parametrize("deletes", [False, True])
def test_writers_that_race_on_s3_lose_and_repeat_nothing(bucket: Bucket, deletes: bool):
    commits = race(bucket.table(), writers=4, appends=10, deletes=deletes, options=bucket.options).commits
    assert commits == (44 if deletes else 40)


def test_creators_that_race_on_a_disk_make_one_table_of_all_rows(tmp_path: Path):
    for number in range(3):
        race(str(tmp_path / f"table {number}"), writers=4, appends=2, creates=True)


def test_creators_that_race_on_s3_make_one_table_of_all_rows(bucket: Bucket):
    for number in range(3):
        race(bucket.table(str(number)), writers=4, appends=2, creates=True, options=bucket.options)
