"""Merge changes into a table on Spark: by this library and by Delta's MERGE, in turn, in one session.

    python benchmarks/spark_merge.py FOLDER [--rows 2000000] [--changes 100000] [--rounds 5]

Half of the changes update rows all over the table, the others are new rows. Each merge runs on a fresh copy
of the same table, whose Variants are shredded. Prints a line of JSON for each round, and the median ratio of
wall times: run it on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import engines
from pyspark.sql import DataFrame, SparkSession

FILES = 8
EVENT = (
    'concat(\'{"id":\', id, \',"user":{"name":"u\', id % 1000, \'"},"amount":\', id % 977, '
    '\',"tags":["a","\', id % 7, \'"]}\') AS text'
)
ON = "target.id = source.id"


def rows(spark: SparkSession, first: int, end: int, step: int = 1) -> DataFrame:
    return (
        spark.range(first, end, step)
        .selectExpr("id", "id % 100 AS day", EVENT)
        .selectExpr("id", "day", "parse_json(text) AS event")
    )


def changes(spark: SparkSession, count: int, size: int) -> DataFrame:
    """Return changes of which every second one updates a row, the same each time."""
    half = size // 2
    updates, inserts = rows(spark, 0, count, count // half), rows(spark, count, count + half)
    return updates.unionAll(inserts).selectExpr("id", "day + 1 AS day", "event")


def ours(source: DataFrame, table: Path) -> None:
    from delta_variant import spark as dvs

    merge = dvs.merge(str(table), source, ON).when_matched_update_all()
    merge.when_not_matched_insert_all().execute()


def delta(source: DataFrame, table: Path) -> None:
    source.createOrReplaceTempView("source")
    source.sparkSession.sql(
        f"MERGE INTO delta.`{table}` AS target USING source ON {ON} "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )


MERGES: dict[str, Callable[[DataFrame, Path], None]] = {"ours": ours, "delta": delta}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--changes", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    spark, folder = engines.delta_session(), arguments.folder
    from delta_variant import spark as dvs

    shutil.rmtree(folder, ignore_errors=True)
    table = rows(spark, 0, arguments.rows).repartitionByRange(FILES, "id")
    dvs.write_table(str(folder / "table"), table)
    ratios = []
    for number in range(arguments.rounds + 1):
        seconds, counts = {}, {}
        for name, merge in MERGES.items():
            copy = folder / name
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(folder / "table", copy)
            source = changes(spark, arguments.rows, arguments.changes)
            begun = time.perf_counter()
            merge(source, copy)
            seconds[name] = time.perf_counter() - begun
            read = spark.read.format("delta").load(str(copy))
            counts[name] = tuple(
                read.selectExpr("count(*)", "sum(day)", "sum(variant_get(event, '$.amount', 'int'))").first()
            )
        assert counts["ours"] == counts["delta"], counts
        ratio = seconds["delta"] / seconds["ours"]
        # The first round warms the session up.
        ratios += [ratio] if number else []
        print(json.dumps({"round": number, **seconds, "ratio": ratio}), flush=True)
    print(json.dumps({"median_ratio": statistics.median(ratios)}))


if __name__ == "__main__":
    main()
