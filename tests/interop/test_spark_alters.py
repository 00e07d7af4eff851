"""Spark uses tables that we altered, and we use tables with constraints and generated columns of Spark."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from interop.tables import in_order, load, rows_by_spark, rows_by_us
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from spark.tables import write_frame

import delta_variant as dv
from delta_variant.errors import ConstraintViolationError

ROWS = pa.table(
    {
        "id": [1, 2, 3],
        "s": [{"a": 1, "b": "x"}, None, {"a": None, "b": "z"}],
        "day": ["m", "t", None],
        "event": pa.array(['{"n": 1}', '{"n": {"m": 2}}', None], pa.json_()),
    }
)


def sql(spark: SparkSession, table: Path, text: str) -> None:
    spark.sql(text.replace("{t}", f"delta.`{table}`"))


def assert_same(spark: SparkSession, table: Path, columns: dict[str, str], where: str | None = None) -> None:
    """Assert that Spark and we read the same rows."""
    frame = load(spark, table) if where is None else load(spark, table).where(where)
    theirs = frame.selectExpr(*(f"{text} AS {name}" for name, text in columns.items())).collect()
    assert rows_by_us(table, columns, where) == in_order(row.asDict(recursive=True) for row in theirs)


def test_spark_keeps_the_rules_of_a_table_that_we_create(spark: SparkSession, tmp_path: Path):
    table = tmp_path / "t"
    dv.create_table(
        table,
        [
            "id bigint NOT NULL COMMENT 'the key'",
            "at timestamp_ntz",
            "day date GENERATED ALWAYS AS (cast(at as date))",
            "note string DEFAULT 'none'",
            "event variant",
            "CONSTRAINT positive CHECK (id > 0)",
        ],
        partition_by="day",
    )
    sql(spark, table, "INSERT INTO {t} (id, at, event) VALUES (1, timestamp_ntz'2026-11-27 05:00:00', NULL)")
    dv.write_table(table, [{"id": 2, "at": datetime(2026, 11, 28), "event": {"n": 1}}], mode="append")
    columns = {"id": "id", "day": "day", "note": "note", "event": "to_json(event)"}
    assert_same(spark, table, columns)
    assert [row["day"] for row in rows_by_us(table, columns)] == [date(2026, 11, 27), date(2026, 11, 28)]
    described = {row.col_name: row.comment for row in spark.sql(f"DESCRIBE delta.`{table}`").collect()}
    assert described["id"] == "the key"
    for values in ("0, NULL", "NULL, NULL"):
        with pytest.raises(Py4JJavaError, match=r"CHECK constraint|NOT NULL"):
            sql(spark, table, f"INSERT INTO {{t}} (id, at) VALUES ({values})")


def test_spark_reads_and_writes_a_table_after_each_change_of_its_columns(spark: SparkSession, tmp_path: Path):
    table = tmp_path / "t"
    dv.write_table(table, ROWS.drop_columns(["event"]), partition_by="day")
    dv.add_columns(table, {"event": "variant", "s.c": "decimal(10,2)", "l": "array<struct<x:int>>"})
    columns = {"id": "id", "day": "day", "s": "s", "event": "to_json(event)", "l": "l"}
    assert_same(spark, table, columns)
    sql(
        spark,
        table,
        "INSERT INTO {t} (id, s, day, event, l) SELECT 4, named_struct('a', 4L, 'b', 'y', 'c', "
        "CAST(1.25 AS DECIMAL(10,2))), 'm', parse_json('{\"n\": 4}'), array(named_struct('x', 1))",
    )
    assert_same(spark, table, columns)
    dv.set_properties(table, {"delta.columnMapping.mode": "name", "delta.enableVariantShredding": "true"})
    dv.write_table(table, ROWS, mode="append")
    assert_same(spark, table, columns)
    dv.rename_column(table, "day", "the day")
    dv.rename_column(table, "s.a", "x.y")
    dv.rename_column(table, "event", "e")
    columns = {"id": "id", "d": "`the day`", "y": "s.`x.y`", "n": "e:n::int", "l": "l"}
    where = "`the day` = 'm' and e:n::int >= 1"
    dv.delete(table, "id = 2")
    assert_same(spark, table, columns)
    assert_same(spark, table, columns, where)
    sql(spark, table, "UPDATE {t} SET e = parse_json('{\"n\": 9}') WHERE s.`x.y` = 4")
    dv.drop_column(table, "s.b")
    dv.drop_column(table, "id")
    dv.add_columns(table, {"id": "string", "s.b": "int", ("l", "element", "y"): "date"})
    sql(spark, table, "INSERT INTO {t} (id, `the day`, e) SELECT 'new', 'w', parse_json('{\"n\": 10}')")
    columns = {"id": "id", "d": "`the day`", "s": "s", "n": "e:n::int", "l": "l"}
    assert_same(spark, table, columns)
    sql(spark, table, "ALTER TABLE {t} ADD COLUMNS (more BIGINT)")
    sql(spark, table, "ALTER TABLE {t} RENAME COLUMN id TO name")
    dv.write_table(table, pa.table({"name": ["us"], "more": [1]}), mode="append")
    assert_same(spark, table, {"name": "name", "more": "more", "d": "`the day`"})


def test_spark_supports_the_properties_that_we_set(spark: SparkSession, tmp_path: Path):
    table = tmp_path / "t"
    dv.write_table(table, ROWS)
    values = {
        "delta.enableInCommitTimestamps": "true",
        "delta.enableDeletionVectors": "true",
        "delta.checkpointPolicy": "v2",
        "delta.enableVariantShredding": "true",
        "delta.dataSkippingStatsColumns": "id,s.a,event",
        "delta.logRetentionDuration": "interval 60 days",
        "delta.autoOptimize.optimizeWrite": "false",
        "team": "us",
    }
    for name, text in values.items():
        dv.set_properties(table, {name: text})
    shown = {row["key"]: row["value"] for row in spark.sql(f"SHOW TBLPROPERTIES delta.`{table}`").collect()}
    assert {name: shown[name] for name in values} == values
    sql(spark, table, "DELETE FROM {t} WHERE id = 1")
    sql(spark, table, "INSERT INTO {t} SELECT * FROM {t}")
    dv.write_table(table, ROWS, mode="append")
    assert_same(spark, table, {"id": "id", "event": "to_json(event)"})
    versions = spark.sql(f"DESCRIBE HISTORY delta.`{table}`").collect()
    # New tables with a Variant enable shredding already, so setting it makes no commit.
    assert [row["version"] for row in versions] == list(range(len(values) + 2, -1, -1))
    dv.unset_properties(table, ["team", "delta.enableDeletionVectors", "delta.checkpointPolicy"])
    sql(spark, table, "DELETE FROM {t} WHERE id = 2")
    assert_same(spark, table, {"id": "id", "event": "to_json(event)"})


WIDENED: dict[str, tuple[pa.DataType, list[Any], str, Any]] = {
    "b": (pa.int8(), [-128, 127, None], "bigint", 2**40),
    "i": (pa.int32(), [-(2**31), 2**31 - 1, 0], "double", 0.5),
    "j": (pa.int32(), [-(2**31), 2**31 - 1, 0], "decimal(14,3)", Decimal("1.125")),
    "l": (pa.int64(), [-(2**63), 2**63 - 1, 0], "decimal(24,2)", Decimal("0.25")),
    "f": (pa.float32(), [0.1, -2.25, None], "double", 0.1),
    "d": (
        pa.date32(),
        [date(1960, 5, 5), date(2024, 2, 29), None],
        "timestamp_ntz",
        datetime(2024, 2, 29, 1),
    ),
    "m": (
        pa.decimal128(6, 2),
        [Decimal("-9999.99"), Decimal("1.25"), None],
        "decimal(10,4)",
        Decimal("0.0001"),
    ),
}
PREDICATES = [
    "b >= 127",
    "i = 2147483647",
    "j > 2147483646.5",
    "l < -9223372036854775807",
    "f > 0.1D",
    "d = timestamp_ntz'1960-05-05 00:00:00'",
    "d > timestamp_ntz'2024-02-28 23:59:59'",
    "m <= -9999.99",
]


@pytest.mark.parametrize("writer", ["us", "spark"])
def test_spark_and_we_read_the_same_columns_that_we_widened(spark: SparkSession, tmp_path: Path, writer: str):
    table = tmp_path / "t"
    old = pa.table({"id": [1, 2, 3], **{name: pa.array(each[1], each[0]) for name, each in WIDENED.items()}})
    old = old.append_column("e", pa.array([[1], [], None], pa.list_(pa.int16())))
    dv.write_table(table, old, configuration={"delta.enableTypeWidening": "true"})
    if writer == "spark":
        sql(spark, table, "INSERT OVERWRITE {t} SELECT * FROM {t}")
    for name, (_, _, new_type, _) in WIDENED.items():
        dv.change_type(table, name, new_type)
    dv.change_type(table, "e.element", "bigint")
    new = {"id": 4, "e": [2**40], **{name: each[3] for name, each in WIDENED.items()}}
    dv.write_table(table, pa.Table.from_pylist([new]), mode="append")
    columns = {name: name for name in ("id", "e", *WIDENED)}
    assert_same(spark, table, columns)
    for where in PREDICATES:
        ours = dv.read_table(table, columns=["id"], where=where.replace("0.1D", "0.1e0")).to_table()
        if writer == "spark" and where == "f > 0.1D":
            # Spark's own bound is the text 0.1, which is less than the value, so Spark skips the file.
            assert ours["id"].to_pylist() == [1]
            continue
        theirs = load(spark, table).where(where).select("id").collect()
        assert sorted(ours["id"].to_pylist()) == sorted(row["id"] for row in theirs), where
    sql(spark, table, "ALTER TABLE {t} ALTER COLUMN m TYPE DECIMAL(12, 5)")
    sql(spark, table, "UPDATE {t} SET m = 3 WHERE id = 3")
    assert_same(spark, table, columns)
    assert dv.audit_table(table, data=True).findings == ()


def test_spark_reads_partition_columns_that_we_widened(spark: SparkSession, tmp_path: Path):
    table = tmp_path / "t"
    old = pa.table({"id": [1, 2], "p": pa.array([5, None], pa.int8()), "d": [None, date(2020, 1, 1)]})
    dv.write_table(table, old, partition_by=["p", "d"], configuration={"delta.enableTypeWidening": "true"})
    dv.change_type(table, "p", "decimal(12,1)")
    dv.change_type(table, "d", "timestamp_ntz")
    new = pa.table({"id": [3], "p": [Decimal("5.5")], "d": [datetime(2020, 1, 1, 2, 3)]})
    dv.write_table(table, new, mode="append")
    assert_same(spark, table, {"id": "id", "p": "p", "d": "d"})
    assert_same(spark, table, {"id": "id"}, "p >= 5")


def test_spark_enforces_the_constraints_that_we_add_and_drops_them(spark: SparkSession, tmp_path: Path):
    table = tmp_path / "t"
    dv.write_table(table, ROWS)
    dv.add_constraint(table, "small", "id < 100 and (event:x::int is null or s.b <> 'no')")
    with pytest.raises(Py4JJavaError, match="CHECK constraint small"):
        sql(spark, table, "INSERT INTO {t} (id) VALUES (100)")
    # A constraint that is NULL is violated, in Spark and here.
    with pytest.raises(Py4JJavaError, match="CHECK constraint small"):
        sql(spark, table, "INSERT INTO {t} (day) VALUES ('x')")
    with pytest.raises(ConstraintViolationError):
        dv.write_table(table, pa.table({"day": ["x"]}), mode="append")
    sql(spark, table, "INSERT INTO {t} (id) VALUES (99)")
    sql(spark, table, "ALTER TABLE {t} DROP CONSTRAINT small")
    sql(spark, table, "ALTER TABLE {t} ADD CONSTRAINT Theirs CHECK (id > 0)")
    with pytest.raises(ConstraintViolationError, match="the CHECK constraint theirs, id > 0: id = 0"):
        dv.write_table(table, pa.table({"id": [0]}), mode="append")
    dv.drop_constraint(table, "Theirs")
    sql(spark, table, "INSERT INTO {t} (id) VALUES (0)")
    assert_same(spark, table, {"id": "id"})


def test_both_compute_the_same_generated_columns_and_defaults(spark: SparkSession, tmp_path: Path):
    table = tmp_path / "t"
    sql(
        spark,
        table,
        "CREATE TABLE {t} (id BIGINT, at TIMESTAMP, event VARIANT, "
        "day DATE GENERATED ALWAYS AS (CAST(at AS DATE)), "
        "twice DECIMAL(20,2) GENERATED ALWAYS AS (CAST(id * 2 AS DECIMAL(20,2))), "
        "text STRING GENERATED ALWAYS AS (CAST(id AS STRING)), hour INT GENERATED ALWAYS AS (HOUR(at)), "
        "month INT GENERATED ALWAYS AS (YEAR(at) * 100 + MONTH(at))) "
        "USING delta PARTITIONED BY (day)",
    )
    sql(spark, table, "ALTER TABLE {t} ADD COLUMNS (kind STRING, weight DECIMAL(6,3))")
    sql(
        spark,
        table,
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
    )
    sql(spark, table, "ALTER TABLE {t} ALTER COLUMN kind SET DEFAULT 'none'")
    sql(spark, table, "ALTER TABLE {t} ALTER COLUMN weight SET DEFAULT 2.5")
    ats = ["2026-01-01T00:00:00", "2025-12-31T23:59:59.999999", "1969-07-20T20:17:40"]
    moments = [datetime.fromisoformat(f"{text}+00:00") for text in ats]
    events = ['{"user": "x"}', '{"user": 5}', "null"]
    ours = pa.table({"id": [1, 2, None], "at": moments, "event": pa.array(events, pa.json_())})
    dv.write_table(table, ours, mode="append")
    for number, (text, event) in enumerate(zip(ats, events, strict=True), start=1):
        value = number if number < 3 else "NULL"
        sql(
            spark,
            table,
            "INSERT INTO {t} (id, at, event) VALUES"
            + f"  ({value}, TIMESTAMP'{text}Z', parse_json('{event}'))",
        )
    columns = {name: name for name in ("id", "day", "hour", "month", "twice", "text", "kind", "weight")}
    assert_same(spark, table, columns)
    rows = rows_by_us(table, columns)
    assert len(rows) == 6
    assert all(rows.count(row) == 2 for row in rows)
    dv.update(table, {"id": "id + 1"}, "id = 1")
    sql(spark, table, "UPDATE {t} SET id = id + 1 WHERE id = 2 AND text = '2'")
    assert_same(spark, table, columns)
    with pytest.raises(ConstraintViolationError, match="the generation expression of the column twice"):
        dv.write_table(table, pa.table({"id": [1], "twice": [Decimal("3.00")]}), mode="append")


def test_tasks_of_spark_check_constraints(spark: SparkSession, tmp_path: Path):

    table = tmp_path / "t"
    dv.write_table(table, ROWS)
    dv.add_constraint(table, "small", "id < 100")
    dv.add_constraint(table, "n", "coalesce(event:n::string, 'x') <> 'no'")
    good = spark.createDataFrame([(4, '{"n": "yes"}'), (5, None)], "id BIGINT, event STRING")
    write_frame(table, good, mode="append", variant_columns=["event"])
    for row in ((100, "{}"), (6, '{"n": "no"}')):
        bad = spark.createDataFrame([(7, "{}"), row], "id BIGINT, event STRING")
        before = sorted(table.rglob("*.parquet"))
        with pytest.raises(ConstraintViolationError, match="violates the CHECK constraint"):
            write_frame(table, bad, mode="append", variant_columns=["event"])
        assert sorted(table.rglob("*.parquet")) == before
    assert rows_by_spark(spark, table, {"id": "id"}) == [{"id": number} for number in range(1, 6)]
