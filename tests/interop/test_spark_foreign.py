"""Tables of other writers that only delta-spark can check."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.archives import unpack

import delta_variant as dv
from delta_variant.errors import MalformedLogError

KERNEL = "delta-kernel"
PATHS = [f"canonicalized-paths-{kind}-{variant}" for kind in ("normal", "special") for variant in "ab"]
# Feeds that deltalake does not read, because it decodes percent signs in file names and does not support
# column mapping, with the first version that has a feed.
FEEDS = {
    "cdf-table-backtick-column-names": 0,
    "cdf-table-data-change": 0,
    "cdf-table-delete-conditional-all-rows": 0,
    "cdf-table-delete-conditional-two-rows": 0,
    "cdf-table-delete-unconditional": 0,
    "cdf-table-partitioned": 0,
    "cdf-table-simple": 0,
    "cdf-table-update-ops": 0,
    "cdf-column-mapping-name-mode": 1,
}


@pytest.fixture
def locate(corpora: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that unpacks an archive of delta-kernel-rs and returns its table's folder."""

    def find(archive: str) -> Path:
        folder = unpack(corpora / KERNEL / f"{archive}.tar.zst", tmp_path)
        (log,) = folder.rglob("_delta_log")
        return log.parent

    return find


@pytest.mark.parametrize("name", PATHS)
def test_a_file_is_removed_by_another_spelling_of_its_path(
    name: str, spark_with_delta: SparkSession, locate: Callable[[str], Path]
):
    table = locate(f"golden/{name}")
    assert spark_with_delta.read.format("delta").load(str(table)).collect() == []
    assert dv.read_table(table).to_table().num_rows == 0


@pytest.mark.parametrize("name", FEEDS)
def test_spark_and_we_read_the_same_changes(
    name: str, spark_with_delta: SparkSession, locate: Callable[[str], Path]
):
    table, first = locate(f"data/{name}"), FEEDS[name]
    feed = spark_with_delta.read.format("delta").options(readChangeFeed=True, startingVersion=first)
    ours = dv.read_changes(table, start=first).to_table()
    theirs = feed.load(str(table)).toArrow()
    names = [column for column in ours.column_names if column != "_commit_timestamp"]
    assert sorted(theirs.column_names) == sorted(ours.column_names)
    rows = [sorted(each.select(names).to_pylist(), key=repr) for each in (ours, theirs)]
    assert rows[0] == rows[1]
    assert rows[0] != []


def test_spark_reads_a_missing_schema_as_no_columns_and_we_raise(
    spark_with_delta: SparkSession, locate: Callable[[str], Path]
):
    """PROTOCOL.md, "Change Metadata", requires schemaString; without it the columns are unknown."""
    table = locate("golden/deltalog-commit-info")
    assert spark_with_delta.read.format("delta").load(str(table)).columns == []
    with pytest.raises(MalformedLogError, match="`schemaString`"):
        dv.load_snapshot(table)
