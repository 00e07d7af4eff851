"""Spark reads our checkpoints and we read its, without the commits before them."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from interop.corpus import json_table, read_lines
from interop.tables import load, rows_by_spark, rows_by_us
from pyspark.sql import SparkSession
from support.tables import read_actions

import delta_variant as dv
from delta_variant.log.checkpoints import reading as checkpoint_reading
from delta_variant.log.checkpoints import writing as checkpoint_writing
from delta_variant.log.load import load_snapshot
from delta_variant.protocol.actions import decode_path
from delta_variant.storage import store

FORMS = [("true", "false"), ("false", "true"), ("true", "true")]
COLUMNS = {"line": "line", "text": "to_json(event)"}
UNIQUE_ID = "80a083e8-7026-4e79-81be-64bd76c43a11"


def forget_commits(table: Path, before: int) -> None:
    """Delete the commits before a version, and the checksums, which may also contain the table's state."""
    for file in (table / "_delta_log").glob("*.json"):
        if file.name[:20].isdigit() and "checkpoint" not in file.name and int(file.name[:20]) < before:
            file.unlink()
    for file in (table / "_delta_log").glob("*.crc"):
        file.unlink()


@pytest.mark.parametrize("policy", ["classic", "v2"])
@pytest.mark.parametrize(("as_json", "as_struct"), FORMS)
def test_spark_reads_our_checkpoint_appends_and_keeps_our_statistics(
    spark: SparkSession, corpora: Path, tmp_path: Path, as_json: str, as_struct: str, policy: str
):
    table = tmp_path / "table"
    lines = read_lines(corpora, "github_webhooks")
    configuration = {
        "delta.checkpoint.writeStatsAsJson": as_json,
        "delta.checkpoint.writeStatsAsStruct": as_struct,
        "delta.checkpointPolicy": policy,
        "delta.checkpointInterval": "2",
    }
    dv.write_table(str(table), json_table(lines[:200]), configuration=configuration)
    dv.write_table(str(table), json_table(lines[200:300], 200), mode="append")
    dv.write_table(str(table), json_table(lines[300:], 300), mode="append")
    before, stats = rows_by_us(table, COLUMNS), _stats(table)
    assert stats
    forget_commits(table, 2)

    assert rows_by_spark(spark, table, COLUMNS) == before
    load(spark, table).limit(1).write.format("delta").mode("append").save(str(table))
    assert load(spark, table).count() == len(lines) + 1

    # When Spark writes its checkpoint it rebuilds the statistics from ours.
    _checkpoint_by_spark(spark, table)
    forget_commits(table, 3)
    kept = _stats(table)
    assert {path: _z85(kept[path]) for path in stats} == {path: _z85(text) for path, text in stats.items()}
    assert all(json.loads(text) == json.loads(kept[path]) for path, text in stats.items())


@pytest.mark.parametrize("policy", ["classic", "v2"])
@pytest.mark.parametrize(("as_json", "as_struct"), FORMS)
def test_we_read_the_checkpoint_of_spark_with_its_statistics(
    spark: SparkSession, tmp_path: Path, as_json: str, as_struct: str, policy: str
):
    table = tmp_path / "table"
    spark.sql(
        f"""CREATE TABLE delta.`{table}` (id BIGINT, i SMALLINT, f FLOAT, d DOUBLE, m DECIMAL(10,2), s STRING,
        dt DATE, ts TIMESTAMP, ntz TIMESTAMP_NTZ, event VARIANT, st STRUCT<x: INT, w: VARIANT>, p STRING,
        q TIMESTAMP) USING delta PARTITIONED BY (p, q) TBLPROPERTIES (
        'delta.enableVariantShredding' = 'true', 'delta.feature.variantShredding' = 'supported',
        'delta.checkpoint.writeStatsAsJson' = '{as_json}', 'delta.checkpointPolicy' = '{policy}',
        'delta.checkpoint.writeStatsAsStruct' = '{as_struct}', 'delta.checkpointInterval' = '2')"""
    )
    for first in (0, 10):
        spark.sql(
            f"""INSERT INTO delta.`{table}` SELECT id, id, id + 0.1, id * 1e20, id + 0.5,
            concat('a\\"b', id, repeat('x', 40)), DATE'2020-01-01', TIMESTAMP'1500-01-01 00:00:00.123456',
            TIMESTAMP_NTZ'2020-01-01 00:00:00.5', parse_json('{{"a":' || id || '}}'),
            named_struct('x', 1, 'w', parse_json('{{"b":' || id || '}}')), 'a b%',
            TIMESTAMP'2020-01-01 00:00:00' FROM range({first}, {first + 10}, 1, 1)"""
        )
    expected = {decode_path(add["path"]): add["stats"] for add in read_actions(table, "add")}
    assert any((table / "_delta_log").glob(f"{2:020d}.checkpoint*"))
    forget_commits(table, 2)

    kept = {add["path"]: add["stats"] for add in load_snapshot(table).files.to_pylist()}
    # Parsed bounds before 1973 get an offset, by which scans widen them: Delta on Spark 3.2 cut some.
    assert {path: json.loads(text.replace('.123+00:00"', '.123Z"')) for path, text in kept.items()} == {
        path: json.loads(text) for path, text in expected.items()
    }
    assert rows_by_us(table, {"id": "id"}) == [
        {"id": n} for n in sorted(range(20), key=lambda n: str({"id": n}))
    ]

    # The same through our checkpoint on top of Spark's.
    assert dv.write_checkpoint(table) == 2
    assert {add["path"]: add["stats"] for add in load_snapshot(table).files.to_pylist()} == kept
    assert load(spark, table).count() == 20


@pytest.mark.usefixtures("small_files_are_shredded", "compiled_casts")
def test_spark_reads_the_bounds_in_our_columns_as_variants(spark: SparkSession, tmp_path: Path):
    table = tmp_path / "table"
    configuration = {"delta.checkpoint.writeStatsAsStruct": "true", "delta.checkpointInterval": "1"}
    dv.write_table(str(table), json_table(['{"a": 1}', '{"a": 7}']), configuration=configuration)
    dv.write_table(str(table), json_table(['{"a": 9}'], 2), mode="append")

    (checkpoint,) = (table / "_delta_log").glob("*.checkpoint.parquet")
    adds = pq.read_table(checkpoint, columns=["add"])["add"].to_pylist()
    greatest = [add["stats_parsed"]["maxValues"]["event"] for add in adds if add]
    texts = dv.to_json(
        pa.array(greatest, pa.struct([("metadata", pa.binary()), ("value", pa.binary())]))
    ).to_pylist()
    assert sorted(texts) == ["""{"$['a']":7}""", """{"$['a']":9}"""]
    forget_commits(table, 1)
    assert load(spark, table).where("variant_get(event, '$.a', 'int') > 6").count() == 2


def _stats(table: Path) -> dict[str, str]:
    rows = load_snapshot(table).files.select(["path", "stats"]).to_pylist()
    return {row["path"]: row["stats"] for row in rows}


def _z85(text: str) -> list[object]:
    stats = json.loads(text)
    return [stats["minValues"].get("event"), stats["maxValues"].get("event")]


def _checkpoint_by_spark(spark: SparkSession, table: Path) -> None:
    jvm = spark._jvm
    loader = jvm.Thread.currentThread().getContextClassLoader()
    companion = jvm.java.lang.Class.forName("org.apache.spark.sql.delta.DeltaLog$", True, loader)
    delta_log = companion.getField("MODULE$").get(None)
    delta_log.clearCache()
    delta_log.forTable(spark._jsparkSession, str(table)).checkpoint()


@pytest.mark.parametrize("as_struct", ["true", "false"])
def test_spark_reads_our_sidecars_checkpoints_on_top_and_cleans_up(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_struct: str
):
    monkeypatch.setattr(checkpoint_writing, "SIDECAR_FILES", 2)
    monkeypatch.setattr(checkpoint_reading, "STREAMED_BYTES", 0)
    table = tmp_path / "table"
    configuration = {"delta.checkpointPolicy": "v2", "delta.checkpoint.writeStatsAsStruct": as_struct}
    dv.write_table(str(table), json_table(['{"a": 0}']), configuration=configuration)
    for line in range(1, 5):
        dv.write_table(str(table), json_table([f'{{"a": {line}}}'], line), mode="append")
    dv.delete(str(table), where="line = 1")
    checkpoint_writing.write_checkpoint(store.open_store(table), 5, now=0, unique_id=UNIQUE_ID)
    sidecars = {file.name for file in (table / "_delta_log" / "_sidecars").iterdir()}
    assert len(sidecars) == 3
    forget_commits(table, 5)

    expected = [0, 2, 3, 4]
    assert sorted(row.line for row in load(spark, table).select("line").collect()) == expected
    matching = load(spark, table).where("variant_get(event, '$.a', 'int') >= 3").select("line")
    assert sorted(row.line for row in matching.collect()) == [3, 4]

    # The checkpoint of Spark has sidecars of its own, and its cleanup leaves those of ours.
    load(spark, table).limit(1).write.format("delta").mode("append").save(str(table))
    _checkpoint_by_spark(spark, table)
    spark.sql(f"VACUUM delta.`{table}`")
    assert sidecars <= {file.name for file in (table / "_delta_log" / "_sidecars").iterdir()}
    assert dv.read_table(str(table), where="event:a::int >= 3").count() in (2, 3)
    forget_commits(table, 6)
    assert dv.read_table(str(table)).count() == 5


DAY = 86_400


def test_the_log_cleanup_of_spark_keeps_the_sidecars_that_our_checkpoints_share(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(checkpoint_writing, "SIDECAR_FILES", 2)
    monkeypatch.setattr(checkpoint_reading, "STREAMED_BYTES", 0)
    table, log = tmp_path / "table", tmp_path / "table" / "_delta_log"
    configuration = {
        "delta.checkpointPolicy": "v2",
        "delta.checkpointInterval": "1000",
        "delta.logRetentionDuration": "interval 2 days",
    }
    dv.write_table(str(table), json_table(['{"a": 0}']), configuration=configuration)
    for line in range(1, 12):
        dv.write_table(str(table), json_table([f'{{"a": {line}}}'], line), mode="append")
    checkpoint_writing.write_checkpoint(store.open_store(table), 11, now=0, unique_id=UNIQUE_ID)
    first = {file.name for file in (log / "_sidecars").iterdir()}
    set_age(log, 5)
    dv.delete(str(table), where="line = 0")
    checkpoint_writing.write_checkpoint(store.open_store(table), 12, now=0, unique_id=UNIQUE_ID)
    (manifest,) = log.glob(f"{12:020d}.checkpoint.*")
    rows = pq.read_table(manifest)["sidecar"].to_pylist()
    second = {row["path"] for row in rows if row}
    shared = first & second
    assert (len(first), len(shared)) == (6, 5)
    for file in (*log.glob(f"{12:020d}.*"), *(log / "_sidecars" / name for name in second - first)):
        set_age(file, 1)

    load(spark, table).limit(1).write.format("delta").mode("append").save(str(table))
    _checkpoint_by_spark(spark, table)
    remaining = sorted(file.name[:20] for file in log.glob("*.json") if ".checkpoint." not in file.name)
    assert remaining == [f"{12:020d}", f"{13:020d}"]
    assert not list(log.glob(f"{11:020d}.*"))
    sidecars = {file.name for file in (log / "_sidecars").iterdir()}
    assert second <= sidecars
    assert sidecars.isdisjoint(first - shared)
    expected = list(range(1, 12))
    assert sorted(dv.read_table(str(table), version=12).to_table()["line"].to_pylist()) == expected
    earlier = spark.read.format("delta").option("versionAsOf", 12).load(str(table))
    assert sorted(row.line for row in earlier.select("line").collect()) == expected
    assert dv.read_table(str(table)).count() == 12


def set_age(path: Path, days: int) -> None:
    """Set the modification time of a file, or of all files below a folder."""
    then = time.time() - days * DAY
    for file in path.rglob("*") if path.is_dir() else [path]:
        os.utime(file, (then, then))
