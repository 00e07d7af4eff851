"""Features that Delta on Spark drops from one copy of a table, and this library from the other."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from support.tables import append_events, read_actions, read_by_id

import delta_variant as dv

# The feature, and the statements on the table `{t}` with the column `id` before the drop.
CASES: list[tuple[str, Sequence[str]]] = [
    (
        "deletionVectors",
        [
            "alter table {t} set tblproperties ('delta.enableDeletionVectors' = true)",
            "delete from {t} where id = 3",
            "delete from {t} where id = 4",
        ],
    ),
    ("v2Checkpoint", ["alter table {t} set tblproperties ('delta.checkpointPolicy' = 'v2')"]),
    (
        "vacuumProtocolCheck",
        ["alter table {t} set tblproperties ('delta.feature.vacuumProtocolCheck' = 'supported')"],
    ),
    (
        "checkConstraints",
        ["alter table {t} add constraint c check (id >= 0)", "alter table {t} drop constraint c"],
    ),
    ("rowTracking", ["alter table {t} set tblproperties ('delta.enableRowTracking' = true)"]),
    ("domainMetadata", ["alter table {t} set tblproperties ('delta.feature.domainMetadata' = 'supported')"]),
    ("inCommitTimestamp", ["alter table {t} set tblproperties ('delta.enableInCommitTimestamps' = true)"]),
    (
        "materializePartitionColumns",
        ["alter table {t} set tblproperties ('delta.enableMaterializePartitionColumnsFeature' = true)"],
    ),
    (
        "typeWidening",
        [
            "alter table {t} set tblproperties ('delta.enableTypeWidening' = true)",
            "alter table {t} alter column n type bigint",
        ],
    ),
]


def protocol_of(table: Path) -> dict[str, Any]:
    """Return the last protocol in the log, with sorted lists."""
    last = read_actions(table, "protocol")[-1]
    return {key: sorted(value) if isinstance(value, list) else value for key, value in last.items()}


@pytest.mark.parametrize(("feature", "statements"), CASES)
def test_the_protocol_is_that_of_delta_without_the_feature(
    spark_with_delta: SparkSession, tmp_path: Path, feature: str, statements: Sequence[str]
):
    spark, table, other = spark_with_delta, tmp_path / "t", tmp_path / "other"
    spark.range(10).selectExpr("id", "int(id) n").write.format("delta").save(str(table))
    for statement in statements:
        spark.sql(statement.format(t=f"delta.`{table}`"))
    before = dv.load_snapshot(table).version
    shutil.copytree(table, other)
    spark.sql(f"alter table delta.`{other}` drop feature {feature}")
    dv.drop_feature(table, feature)
    assert protocol_of(table) == protocol_of(other)
    assert tombstones_of(table) == tombstones_of(other)
    assert (feature == "deletionVectors") == bool(tombstones_of(table))
    assert rows_in_spark(spark, table) == rows_in_spark(spark, other) != []
    for version in range(before + 1):
        expected = rows_in_spark(spark, other, version)
        assert rows_in_spark(spark, table, version) == expected
        assert sorted(dv.Table(table).as_of(version).scan().to_table()["id"].to_pylist()) == expected
    assert schema_of(table) == schema_of(other)
    spark.sql(f"insert into delta.`{table}` values (100, 100)")
    assert 100 in dv.read_table(table).to_table()["id"].to_pylist()


def schema_of(table: Path) -> Any:
    """Return the last schema in the log."""
    return json.loads(read_actions(table, "metaData")[-1]["schemaString"])


def rows_in_spark(spark: SparkSession, table: Path, version: int | None = None) -> list[int]:
    """Return the sorted values of `id` in Spark, by default in the latest version."""
    text = "" if version is None else f" version as of {version}"
    return sorted(row.id for row in spark.sql(f"select id from delta.`{table}`{text}").collect())


def tombstones_of(table: Path) -> set[str]:
    """Return the paths of deletion vectors that commits remove as files."""
    removed = {each["path"] for each in read_actions(table, "remove")}
    return {path for path in removed if path.endswith(".bin")}


def age(table: Path) -> None:
    """Make the log of a table older than a day."""
    for file in (table / "_delta_log").iterdir():
        time = file.stat().st_mtime - 25 * 3600
        os.utime(file, (time, time))


@pytest.mark.parametrize("feature", ["deletionVectors", "v2Checkpoint"])
def test_history_is_truncated_as_by_delta(spark_with_delta: SparkSession, tmp_path: Path, feature: str):
    spark, table, other = spark_with_delta, tmp_path / "t", tmp_path / "other"
    spark.range(10).write.format("delta").save(str(table))
    for statement in dict(CASES)[feature]:
        spark.sql(statement.format(t=f"delta.`{table}`"))
    shutil.copytree(table, other)
    drop = f"alter table delta.`{other}` drop feature {feature} truncate history"
    with pytest.raises(Exception, match="DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD"):
        spark.sql(drop)
    with pytest.raises(dv.RetentionDurationError):
        dv.drop_feature(table, feature, truncate_history=True)
    age(table)
    age(other)
    spark.sql("clear cache")
    spark.sql(drop)
    dv.drop_feature(table, feature, truncate_history=True)
    assert protocol_of(table) == protocol_of(other) == {"minReaderVersion": 1, "minWriterVersion": 2}
    assert rows_in_spark(spark, table) == rows_in_spark(spark, other) != []


def test_delta_reads_and_writes_a_table_without_shredding(spark_with_delta: SparkSession, tmp_path: Path):
    spark, table = spark_with_delta, tmp_path / "t"
    texts = [f'{{"n":{number}}}' for number in range(9)]
    append_events(table, texts, shredding=dv.ShreddingSchema.of({"n": pa.int64()}))
    version = dv.drop_feature(table, "variantShredding").version
    query = "select id, to_json(event) event from delta.`{}` version as of {} order by id"
    for each in (0, version):
        assert [row.event for row in spark.sql(query.format(table, each)).collect()] == texts
    spark.sql(f"insert into delta.`{table}` values (9, parse_json('{{\"n\":9}}'))")
    assert read_by_id(table)[9] == '{"n":9}'
    assert dv.shredded_columns(table).keys() == {"id", "event"}
    dv.Table(table).overwrite(
        dv.read_table(table, columns={"id": "id", "n": "event:n::int"}), schema_mode="overwrite"
    )
    dv.drop_feature(table, "variantType")
    assert protocol_of(table)["minReaderVersion"] == 1
    assert [row.n for row in spark.sql(f"select n from delta.`{table}` order by id").collect()] == list(
        range(10)
    )
