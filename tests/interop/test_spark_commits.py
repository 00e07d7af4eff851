"""Spark and deltalake read our commits of many files."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from interop.tables import load
from pyspark.sql import SparkSession

import delta_variant as dv
from delta_variant.log import commits, pending_commit, transaction
from delta_variant.log.commit_context import CommitOptions, commit_context
from delta_variant.log.conflicts import Reads
from delta_variant.log.file_tables import files_table
from delta_variant.protocol.actions import AddFile

FILES = 110_000


def add(number: int) -> AddFile:
    return AddFile(
        path=f"part-{number:06d}.parquet",
        partition_values={},
        size=1,
        modification_time=1,
        data_change=True,
        stats='{"numRecords":1}',
    )


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_spark_and_deltalake_read_commits_that_add_and_remove_more_than_100_000_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pending_commit, "_LARGEST_IN_MEMORY", 1 << 20)
    monkeypatch.setattr(commits, "LARGE_COMMIT_BYTES", 1 << 20)
    table = tmp_path / "table"
    dv.write_table(table, [{"id": 1}])
    added = files_table([add(number) for number in range(FILES)])
    transaction.add_files(
        dv.load_snapshot(table), added, context=commit_context("WRITE", {}, {}, CommitOptions())
    )
    assert len(DeltaTable(table).file_uris()) == FILES + 1
    # Spark validates the checksums of the versions that it loads.
    assert load(spark, table).count() == FILES + 1

    snapshot = dv.load_snapshot(table)
    removed = snapshot.files.slice(0, FILES)
    transaction.replace_files(
        snapshot,
        removed,
        (),
        context=commit_context("DELETE", {}, {}, CommitOptions()),
        reads=Reads(removed, lambda adds: False),
    )
    remaining = dv.load_snapshot(table).files["path"].to_pylist()
    assert len(remaining) == 1
    assert DeltaTable(table).file_uris() == [str(table / remaining[0])]
    assert [Path(name).name for name in load(spark, table).inputFiles()] == remaining
