"""Read and change many small files on Spark, by this library and by Delta, in turn, in one session.

    python benchmarks/spark_small_files.py FOLDER [--files 2000] [--rounds 5]
        [--operations scan,optimize,merge,stream]

Each file has 500 rows with a Variant. `scan` aggregates the table that `read_table` returns without columns.
`merge` updates a row in each of three quarters of the files, and inserts a third as many. `optimize` and
`merge` run on a fresh copy. `stream` reads 1,000,000 ids from 56 files, from its start to its end. Prints a
line of JSON for each round, and the median ratio of wall times for each operation: run it on a machine that
does nothing else.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import engines
from pyspark.sql import DataFrame, SparkSession
from spark_rewrites import MERGES, Merge, rows

ROWS_OF_FILE = 500
IDS, ID_FILES = 1_000_000, 56


def write(df: DataFrame, table: Path, files: int) -> None:
    split = df.repartitionByRange(files, "id")
    split.write.format("delta").option("delta.checkpointInterval", "100").save(str(table))


def summary(df: DataFrame) -> Any:
    return tuple(df.selectExpr("count(*)", "sum(id)", "sum(day)").first() or ())


def scan(spark: SparkSession, table: Path, files: int) -> Any:
    from delta_variant import spark as dvs

    return summary(dvs.read_table(spark, table))


def scan_by_delta(spark: SparkSession, table: Path, files: int = 0) -> Any:
    return summary(spark.read.format("delta").load(str(table)))


def optimize(spark: SparkSession, table: Path, files: int) -> None:
    import delta_variant as dv
    from delta_variant import spark as dvs

    dv.Table(table, engine=dvs.SparkEngine(spark)).optimize()


def optimize_by_delta(spark: SparkSession, table: Path, files: int) -> None:
    spark.sql(f"OPTIMIZE delta.`{table}`")


def changes(spark: SparkSession, files: int) -> DataFrame:
    count, changed = files * ROWS_OF_FILE, files * 3 // 4
    updates = rows(spark, 0, changed * ROWS_OF_FILE, ROWS_OF_FILE)
    return updates.unionAll(rows(spark, count, count + changed // 3)).selectExpr("id", "day + 1 day", "event")


def merge_changes(merge: Merge, spark: SparkSession, table: Path, files: int) -> None:
    merge(spark, table, changes(spark, files))


def stream(spark: SparkSession, table: Path, files: int) -> Any:
    return read_stream(spark, table, "delta_variant")


def stream_by_delta(spark: SparkSession, table: Path, files: int) -> Any:
    return read_stream(spark, table, "delta")


def read_stream(spark: SparkSession, table: Path, name: str) -> Any:
    read = spark.readStream.format(name).load(str(table))
    checkpoint = table.with_name("checkpoint")
    shutil.rmtree(checkpoint, ignore_errors=True)
    writing = read.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    query = writing.trigger(availableNow=True).start()
    query.awaitTermination()
    return sum(progress["numInputRows"] for progress in query.recentProgress)


Operation = Callable[[SparkSession, Path, int], Any]

OPERATIONS: dict[str, tuple[str, bool, dict[str, Operation]]] = {
    "scan": ("table", False, {"ours": scan, "delta": scan_by_delta}),
    "optimize": ("table", True, {"ours": optimize, "delta": optimize_by_delta}),
    "merge": ("table", True, {name: partial(merge_changes, each) for name, each in MERGES.items()}),
    "stream": ("ids", False, {"ours": stream, "delta": stream_by_delta}),
}
"""The table of each operation, whether it runs on a copy, and how both do it."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--operations", default=",".join(OPERATIONS))
    arguments = parser.parse_args()
    spark, folder = engines.delta_session(), arguments.folder
    from delta_variant import spark as dvs

    dvs.register(spark)
    shutil.rmtree(folder, ignore_errors=True)
    write(rows(spark, 0, arguments.files * ROWS_OF_FILE), folder / "table", arguments.files)
    write(spark.range(IDS), folder / "ids", ID_FILES)
    for operation in arguments.operations.split(","):
        ratios = [
            time_round(spark, folder, operation, arguments.files, number)
            for number in range(arguments.rounds + 1)
        ]
        # The first round warms the session up.
        median = statistics.median(ratios[1:])
        print(json.dumps({"operation": operation, "median_ratio": median}), flush=True)


def time_round(spark: SparkSession, folder: Path, operation: str, files: int, number: int) -> float:
    """Run an operation by both, and return the ratio of their wall times."""
    seconds, found = {}, {}
    source, is_copied, functions = OPERATIONS[operation]
    # Neither profits more than the other from what Spark and the page cache have kept.
    for name in ("ours", "delta") if number % 2 else ("delta", "ours"):
        table = folder / name if is_copied else folder / source
        if is_copied:
            shutil.rmtree(table, ignore_errors=True)
            shutil.copytree(folder / source, table)
        begun = time.perf_counter()
        found[name] = functions[name](spark, table, files)
        seconds[name] = time.perf_counter() - begun
        if is_copied:
            found[name] = scan_by_delta(spark, table)
    assert found["ours"] == found["delta"], found
    ratio = seconds["delta"] / seconds["ours"]
    print(json.dumps({"operation": operation, "round": number, **seconds, "ratio": ratio}), flush=True)
    return ratio


if __name__ == "__main__":
    main()
