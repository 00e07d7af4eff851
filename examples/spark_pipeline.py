"""Stream JSON lines to a bronze table and bronze to silver with Spark, and audit both tables.

    python examples/spark_pipeline.py LINES FOLDER [--master local[2]]

LINES is a folder of `.ndjson` files. `bronze` keeps every line as a shredded Variant; invalid JSON goes to
`rejects`. `silver` has some paths as typed columns. Streams write both tables: started again, the pipeline
processes each new line once. The paths are those of Bioregistry, of which `make demo` creates a file.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from delta_variant import JsonOptions
from delta_variant import spark as dvs

SILVER = {
    "prefix": "entry:prefix::string",
    "name": "entry:name::string",
    "license": "entry:license::string",
    "deprecated": "coalesce(entry:deprecated::boolean, false)",
    "homepage": "entry:homepage::string",
}


def main() -> None:
    arguments = parse_arguments()
    spark = start(arguments.master)
    bronze, silver = f"{arguments.folder}/bronze", f"{arguments.folder}/silver"

    step(f"1. {arguments.lines} to {bronze}: JSON lines to a shredded Variant")
    run(lines_to_bronze(spark, arguments.lines, bronze, arguments.folder))
    dvs.read_table(spark, bronze).selectExpr("count(*) AS rows", "count(entry:license) AS licensed").show()

    step(f"2. {bronze} to {silver}: paths to typed columns")
    run(bronze_to_silver(spark, bronze, silver, arguments.folder))
    where = "license like 'CC0%' and not deprecated"
    dvs.read_table(spark, silver, columns=["prefix", "name", "license"], where=where).show(5, truncate=40)

    step("3. Audit of both tables, every row of them")
    for table in (bronze, silver):
        report(dvs.audit_table(spark, table, data=True))
    spark.stop()


def lines_to_bronze(spark: SparkSession, lines: str, bronze: str, folder: str) -> Any:
    """Return a stream that writes each line to the bronze table once."""
    text = (
        spark.readStream.option("pathGlobFilter", "*.ndjson").text(lines).withColumnRenamed("value", "entry")
    )
    write = dvs.batch_writer(
        bronze, variant_columns=["entry"], json=JsonOptions(on_invalid="reject", rejects=f"{folder}/rejects")
    )
    return text.writeStream.foreachBatch(write).option("checkpointLocation", f"{folder}/checkpoints/bronze")


def bronze_to_silver(spark: SparkSession, bronze: str, silver: str, folder: str) -> Any:
    """Return a stream of the rows of bronze into a table of typed columns."""
    paths = ", ".join(f'"{name}": "{path}"' for name, path in SILVER.items())
    table = spark.readStream.format("delta_variant").option("columns", f"{{{paths}}}").load(bronze)
    write: Callable[[DataFrame, int], None] = dvs.batch_writer(silver)
    return table.writeStream.foreachBatch(write).option("checkpointLocation", f"{folder}/checkpoints/silver")


def run(stream: Any) -> None:
    """Process all available rows, and print the progress of each micro-batch."""
    query: StreamingQuery = stream.trigger(availableNow=True).start()
    query.awaitTermination()
    for progress in query.recentProgress:
        print(f"   batch {progress.batchId}: {progress.numInputRows:,} rows in {progress.batchDuration:,} ms")


def report(audit: Any) -> None:
    counts = ", ".join(f"{audit.count(severity)} {severity}s" for severity in ("error", "warning"))
    print(f"   {audit.uri}: version {audit.version}, {len(audit.files)} files, {counts}")
    for finding in audit.findings:
        if finding.severity != "info":
            print(f"   {finding.rule}: {finding.sentence}")


def step(text: str) -> None:
    print(f"\n== {text} ==", flush=True)


def start(master: str | None) -> SparkSession:
    """Return a session; spark-submit sets the master itself."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("delta_variant pipeline").config("spark.log.level", "ERROR")
    builder = builder.config("spark.ui.showConsoleProgress", "true")
    spark = (builder.master(master) if master else builder).getOrCreate()
    dvs.register(spark)
    return spark


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="JSON lines to bronze, bronze to silver, and an audit.")
    parser.add_argument("lines", help="a folder of .ndjson files")
    parser.add_argument("folder", help="the folder of the tables, checkpoints and rejects")
    parser.add_argument("--master", default=None, help="such as local[2]; omit with spark-submit")
    return parser.parse_args()


if __name__ == "__main__":
    main()
