"""Change rows of a table on Spark, by this library and by Delta's SQL, in turn, in one session.

    python benchmarks/spark_rewrites.py FOLDER [--rows 2000000] [--changes 100000] [--rounds 5]
        [--operations merge,delete,update] [--vectors]

Half of the changes of a merge update rows all over the table, the others are new rows. DELETE and UPDATE
change as many rows of all files, chosen by a path of the Variant. Each operation runs on a fresh copy of the
same table, whose Variants are shredded; with `--vectors` it enables deletion vectors. Prints a line of JSON
for each round, and the median ratio of wall times for each operation: run it on a machine that does nothing
else.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import engines
from pyspark.sql import DataFrame, SparkSession

FILES = 8
EVENT = (
    'concat(\'{"id":\', id, \',"user":{"name":"u\', id % 1000, \'"},"amount":\', id % 977, '
    '\',"tags":["a","\', id % 7, \'"]}\') AS text'
)
ON = "target.id = source.id"
VARIANT_ID = "variant_get(event, '$.id', 'bigint')"


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


def merge(spark: SparkSession, table: Path, source: DataFrame) -> None:
    import delta_variant as dv
    from delta_variant import spark as dvs

    merging = dv.Table(table, engine=dvs.SparkEngine(spark)).merge(source, ON)
    merging.when_matched_update_all().when_not_matched_insert_all().execute()


def merge_by_delta(spark: SparkSession, table: Path, source: DataFrame) -> None:
    source.createOrReplaceTempView("source")
    spark.sql(
        f"MERGE INTO delta.`{table}` AS target USING source ON {ON} "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )


Merge = Callable[[SparkSession, Path, DataFrame], None]

MERGES: dict[str, Merge] = {"ours": merge, "delta": merge_by_delta}


def merge_changes(merge: Merge, spark: SparkSession, table: Path, size: Size) -> None:
    merge(spark, table, changes(spark, size.rows, size.changes))


def delete(spark: SparkSession, table: Path, size: Size) -> None:
    import delta_variant as dv
    from delta_variant import spark as dvs

    dv.Table(table, engine=dvs.SparkEngine(spark)).delete(f"event:id::bigint % {size.step} = 0")


def delete_by_delta(spark: SparkSession, table: Path, size: Size) -> None:
    spark.sql(f"DELETE FROM delta.`{table}` WHERE {VARIANT_ID} % {size.step} = 0")


def update(spark: SparkSession, table: Path, size: Size) -> None:
    import delta_variant as dv
    from delta_variant import spark as dvs

    dv.Table(table, engine=dvs.SparkEngine(spark)).update(
        {"day": "day + 1"}, f"event:id::bigint % {size.step} = 0"
    )


def update_by_delta(spark: SparkSession, table: Path, size: Size) -> None:
    spark.sql(f"UPDATE delta.`{table}` SET day = day + 1 WHERE {VARIANT_ID} % {size.step} = 0")


@dataclass(frozen=True)
class Size:
    """The rows of a table, and how many an operation changes."""

    rows: int
    changes: int

    @property
    def step(self) -> int:
        return self.rows // self.changes


Operation = Callable[[SparkSession, Path, Size], None]

OPERATIONS: dict[str, dict[str, Operation]] = {
    "merge": {name: partial(merge_changes, each) for name, each in MERGES.items()},
    "delete": {"ours": delete, "delta": delete_by_delta},
    "update": {"ours": update, "delta": update_by_delta},
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--changes", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--operations", default=",".join(OPERATIONS))
    parser.add_argument("--vectors", action="store_true")
    arguments = parser.parse_args()
    spark, folder = engines.delta_session(), arguments.folder
    import delta_variant as dv
    from delta_variant import spark as dvs

    shutil.rmtree(folder, ignore_errors=True)
    table = rows(spark, 0, arguments.rows).repartitionByRange(FILES, "id")
    configuration = {"delta.enableDeletionVectors": "true"} if arguments.vectors else None
    dv.Table(folder / "table", engine=dvs.SparkEngine(spark)).append(table, configuration=configuration)
    size = Size(arguments.rows, arguments.changes)
    for operation in arguments.operations.split(","):
        ratios = [
            time_round(spark, folder, operation, size, number) for number in range(arguments.rounds + 1)
        ]
        # The first round warms the session up.
        median = statistics.median(ratios[1:])
        print(json.dumps({"operation": operation, "median_ratio": median}), flush=True)


def time_round(spark: SparkSession, folder: Path, operation: str, size: Size, number: int) -> float:
    """Run an operation by both on copies of the table, and return the ratio of their wall times."""
    seconds, counts = {}, {}
    # Neither profits more than the other from what Spark and the page cache have kept.
    for name in ("ours", "delta") if number % 2 else ("delta", "ours"):
        copy = folder / name
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder / "table", copy)
        begun = time.perf_counter()
        OPERATIONS[operation][name](spark, copy, size)
        seconds[name] = time.perf_counter() - begun
        read = spark.read.format("delta").load(str(copy))
        counts[name] = tuple(
            read.selectExpr("count(*)", "sum(day)", "sum(variant_get(event, '$.amount', 'int'))").first()
        )
    assert counts["ours"] == counts["delta"], counts
    ratio = seconds["delta"] / seconds["ours"]
    print(json.dumps({"operation": operation, "round": number, **seconds, "ratio": ratio}), flush=True)
    return ratio


if __name__ == "__main__":
    main()
