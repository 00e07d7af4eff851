"""Clones are the same in one process, by tasks, and as Delta makes them. Delta reads and writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from support.tables import read_commit

import delta_variant as dv
from delta_variant.errors import StoreError
from delta_variant.spark import SparkEngine
from delta_variant.spark.executor import SparkExecutor
from delta_variant.typing import Engine

OUTSIDE = {"allow_paths_outside_table": "true"}
COLUMNS = "id bigint, `p a` string, n bigint GENERATED ALWAYS AS IDENTITY (START WITH 5 INCREMENT BY 2)"
PROPERTIES = {
    "delta.columnMapping.mode": "name",
    "delta.enableChangeDataFeed": "true",
    "delta.enableDeletionVectors": "true",
    "delta.enableInCommitTimestamps": "true",
    "delta.enableRowTracking": "true",
    "team": "us",
}


def rows(table: Path) -> list[tuple[Any, ...]]:
    found = dv.read_table(dv.Table(table, OUTSIDE)).to_pylist()
    return sorted(tuple(row.values()) for row in found)


def actions(table: Path) -> dict[str, list[Any]]:
    """Return the actions of version 0 by kind, with JSON texts in them as values."""
    found: dict[str, list[Any]] = {}
    for each in read_commit(table, 0):
        for kind, action in each.items():
            for name in {"configuration", "schemaString", "stats"} & set(action):
                if isinstance(action[name], str):
                    action[name] = json.loads(action[name])
            found.setdefault(kind, []).append(action)
    return found


@pytest.fixture
def source(spark_with_delta: SparkSession, tmp_path: Path) -> Path:
    """Return a table of Delta with every kind of metadata, and a deletion vector in a file."""
    table, spark = tmp_path / "a sour ce%ü", spark_with_delta
    settings = ", ".join(f"'{name}' = '{value}'" for name, value in PROPERTIES.items())
    partitioned = "USING delta PARTITIONED BY (`p a`)"
    spark.sql(f"CREATE TABLE delta.`{table}` ({COLUMNS}) {partitioned} TBLPROPERTIES ({settings})")
    values = "SELECT id, concat('x y%', id % 2) FROM range(10)"
    spark.sql(f"INSERT INTO delta.`{table}` (id, `p a`) {values}").collect()
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 4").collect()
    return table


def test_a_shallow_clone_is_that_of_delta(spark_with_delta: SparkSession, source: Path, tmp_path: Path):
    dv.clone(source, tmp_path / "ours", shallow=True)
    spark_with_delta.sql(f"CREATE TABLE delta.`{tmp_path}/theirs` SHALLOW CLONE delta.`{source}`").collect()
    ours, theirs = actions(tmp_path / "ours"), actions(tmp_path / "theirs")
    assert ours.keys() == theirs.keys()
    assert ours["protocol"] == theirs["protocol"]
    for found in (ours, theirs):
        # Each clone has an id, names of columns and an order of files of its own.
        [metadata], [domain], [info] = found["metaData"], found["domainMetadata"], found["commitInfo"]
        del metadata["id"]
        for name in ("materializedRowIdColumnName", "materializedRowCommitVersionColumnName"):
            assert metadata["configuration"].pop(f"delta.rowTracking.{name}")
        domain["configuration"].pop("domainName", None)
        found["add"].sort(key=lambda add: add["path"])
        numbers = sorted(range(len(found["add"])), key=lambda index: found["add"][index]["baseRowId"])
        counts = [found["add"][index]["stats"]["numRecords"] for index in numbers]
        assert [found["add"][index].pop("baseRowId") for index in numbers] == [
            sum(counts[:index]) for index in range(len(counts))
        ]
        info["operationParameters"]["sourceVersion"] = int(info["operationParameters"]["sourceVersion"])
    for kind in ("metaData", "domainMetadata", "add"):
        assert ours[kind] == theirs[kind], kind
    assert any("deletionVector" in add for add in ours["add"])
    [our_info], [their_info] = ours["commitInfo"], theirs["commitInfo"]
    assert our_info["operationParameters"].pop("isShallow") == "true"
    for name in ("operation", "operationParameters", "operationMetrics"):
        assert our_info[name] == their_info[name], name


def test_delta_reads_and_writes_clones(spark_with_delta: SparkSession, source: Path, tmp_path: Path):
    table, spark, expected = tmp_path / "shallow", spark_with_delta, rows(source)
    dv.clone(source, tmp_path / "deep")
    assert sorted(map(tuple, spark.table(f"delta.`{tmp_path}/deep`").collect())) == expected
    files = {path: path.read_bytes() for path in source.rglob("*.*")}
    dv.clone(source, table, shallow=True)
    assert sorted(map(tuple, spark.table(f"delta.`{table}`").collect())) == expected
    spark.sql(f"INSERT INTO delta.`{table}` (id, `p a`) VALUES (20, 'z')").collect()
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 5").collect()
    by_delta = sorted(map(tuple, spark.table(f"delta.`{table}`").collect()))
    assert rows(table) == by_delta
    # The values of the identity column go on after those of the source.
    greatest = max(n for _, _, n in expected)
    assert [n for key, _, n in by_delta if key == 20] == [greatest + 2]
    assert sorted(key for key, _, _ in by_delta) == [0, 1, 2, 3, 6, 7, 8, 9, 20]
    found = spark.sql(f"SELECT _metadata.row_id FROM delta.`{table}`").collect()
    assert len(set(found)) == len(by_delta)
    assert dv.Table(table, OUTSIDE).audit(data=True).is_clean
    assert {path: path.read_bytes() for path in files} == files


def test_each_engine_copies_all_files(engine: Engine | None, tmp_path: Path):
    for number in range(6):
        data = [{"id": number, "day": f"d {number}"}]
        dv.write_table(tmp_path / "t", data, partition_by="day", mode="append")
    handle = dv.Table(tmp_path / "t", engine=engine)
    assert handle.clone(tmp_path / "c", version=4).files == 5
    assert [key for key, _ in rows(tmp_path / "c")] == [0, 1, 2, 3, 4]
    next((tmp_path / "t").rglob("*.parquet")).unlink()
    with pytest.raises(StoreError, match="there is no file"):
        handle.clone(tmp_path / "d")
    assert not (tmp_path / "d").exists()


def test_copies_that_the_driver_does_not_find_are_not_committed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    dv.write_table(tmp_path / "t", [{"id": 1}])
    monkeypatch.setattr(SparkExecutor, "run", lambda *_: iter([None]))
    with pytest.raises(StoreError, match="executors have a disk of their own"):
        dv.Table(tmp_path / "t", engine=SparkEngine(spark)).clone(tmp_path / "c")
    assert not (tmp_path / "c").exists()
