"""A pipeline on Spark: change events to bronze, silver and gold tables, with maintenance and monitoring.

    python examples/spark_pipeline.py LANDING FOLDER [--master local[2]] [STEP ...]

LANDING is a folder of `.ndjson` files with change events of Debezium for the entries of Bioregistry.

- `bronze` keeps each event as a shredded Variant. Lines that are not JSON go to `quarantine`.
- `silver` has the current entries, with typed columns. Events are merged by their key.
- `gold` counts the entries of each license.

The steps run in the order in which they are given, by default `check stream monitor`:

- `check` ends with an error if the executors cannot work on the tables.
- `stream` processes new files, each event exactly once, also after a crash.
- `rebuild` computes silver and gold again from all of bronze, as after a change of their columns.
- `correct` changes rows of silver in SQL.
- `maintain` compacts, repairs statistics, removes unreferenced files and audits each row.
- `monitor` prints the commits of each table with their metrics.

`docs/guides/spark-pipeline.md` explains it. `make demo-spark` runs it on two releases of Bioregistry.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming.query import StreamingQuery

import delta_variant as dv
from delta_variant import spark as dvs

EVENT = {
    "prefix": "coalesce(event:after.prefix::string, event:before.prefix::string)",
    "op": "event:op::string",
    "lsn": "event:source.lsn::bigint",
    "entry": "event:after",
}
"""The columns of an event, as paths of bronze."""

ENTRY = {
    "name": "variant_get(entry, '$.name', 'string')",
    "license": "coalesce(variant_get(entry, '$.license', 'string'), 'unknown')",
    "deprecated": "coalesce(variant_get(entry, '$.deprecated', 'boolean'), false)",
    "homepage": "variant_get(entry, '$.homepage', 'string')",
}
"""The typed columns of silver, from the entry of an event."""

CREATE_SILVER = """
CREATE TABLE IF NOT EXISTS {silver} (
  prefix STRING, name STRING, license STRING, deprecated BOOLEAN, homepage STRING, entry VARIANT, lsn BIGINT
) TBLPROPERTIES (
  'delta.enableChangeDataFeed' = 'true',
  'delta.enableDeletionVectors' = 'true',
  'delta.enableVariantShredding' = 'true',
  'delta.autoOptimize.autoCompact' = 'true'
)
"""
"""The change feed tells gold which licenses changed, and deletion vectors keep merges of few rows small."""

CREATE_GOLD = "CREATE TABLE IF NOT EXISTS {gold} (license STRING, entries BIGINT, deprecated BIGINT)"

CORRECTIONS = (
    """
    MERGE INTO {silver} AS target
    USING (
      SELECT * FROM VALUES ('Apache', 'Apache-2.0'), ('GPL-3.0', 'GPL-3.0-only') AS names (spelling, license)
    ) AS source
    ON target.license = source.spelling
    WHEN MATCHED THEN UPDATE SET license = source.license
    """,
    "UPDATE {silver} SET license = 'custom' WHERE license LIKE 'http%'",
    "DELETE FROM {silver} WHERE deprecated AND homepage IS NULL",
)
"""What people change in silver in addition to the events. The next `stream` counts again what changed."""

SILVER = ["prefix", *ENTRY, "entry", "lsn"]
GOLD = ["license", "entries", "deprecated"]


@dataclass(frozen=True)
class Pipeline:
    """The locations of the pipeline, and how many files a micro-batch reads.

    On Spark Connect, the functions of a stream are pickled: they use these locations and no session.
    """

    landing: str
    folder: str
    files_per_batch: int = 100

    @property
    def bronze(self) -> str:
        return f"{self.folder}/bronze"

    @property
    def silver(self) -> str:
        return f"{self.folder}/silver"

    @property
    def gold(self) -> str:
        return f"{self.folder}/gold"

    @property
    def tables(self) -> tuple[str, ...]:
        return self.bronze, self.silver, self.gold

    @property
    def quarantine(self) -> str:
        return f"{self.folder}/quarantine"


def check(spark: SparkSession, pipeline: Pipeline) -> None:
    """Compare the executors with the driver; raises RuntimeError for a difference that breaks later steps."""
    found = dvs.check_cluster(spark, pipeline.bronze)
    print(found)
    if found.problems:
        raise RuntimeError(f"the executors cannot run the pipeline: {found.problems[0]}")


def create_tables(spark: SparkSession, pipeline: Pipeline) -> None:
    """Create silver and gold, which streams read or merge into before they have rows."""
    for statement in (CREATE_SILVER, CREATE_GOLD):
        run(spark, pipeline, statement)


def run(spark: SparkSession, pipeline: Pipeline, statement: str) -> DataFrame:
    """Run SQL in which `{silver}` and `{gold}` are tables of the pipeline."""
    tables = {table.rpartition("/")[2]: f"delta.`{table}`" for table in pipeline.tables}
    return dvs.sql(spark, statement.format(**tables))


def stream(spark: SparkSession, pipeline: Pipeline) -> None:
    """Process what is new, table by table. Each query ends at the rows that were there when it started."""
    create_tables(spark, pipeline)
    for name, start in (("bronze", to_bronze), ("silver", to_silver), ("gold", to_gold)):
        writer = start(spark, pipeline).queryName(name)
        writer = writer.option("checkpointLocation", f"{pipeline.folder}/checkpoints/{name}")
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        report_progress(name, query)


def to_bronze(spark: SparkSession, pipeline: Pipeline) -> Any:
    """Return the stream that appends each line to bronze, and those that are not JSON to the quarantine."""
    lines = spark.readStream.option("pathGlobFilter", "*.ndjson")
    lines = lines.option("maxFilesPerTrigger", pipeline.files_per_batch)
    events = lines.text(pipeline.landing).selectExpr("value AS event", "_metadata.file_name AS file")
    quarantine = dv.JsonOptions(on_invalid="reject", rejects=pipeline.quarantine)
    write = dvs.batch_writer(
        pipeline.bronze, app_id="bronze", variant_columns=["event"], json=quarantine, auto_compact=True
    )
    size = sql.sum(sql.octet_length("event")).alias("bytes")
    return events.observe("lines", size).writeStream.foreachBatch(write)


def to_silver(spark: SparkSession, pipeline: Pipeline) -> Any:
    """Return the stream that merges the events of bronze into silver."""
    table = spark.readStream.format("delta_variant").option("maxFilesPerTrigger", pipeline.files_per_batch)
    events = table.option("columns", json.dumps(EVENT)).load(pipeline.bronze)

    target = dv.Table(pipeline.silver, engine=dvs.SparkEngine(spark))

    def merge_events(batch: DataFrame) -> dv.Merge:
        # An event that arrives again, or late, has a lower number than the row.
        is_newer = "source.lsn > target.lsn"
        merge = target.merge(typed(last_events(batch), "op"), "target.prefix = source.prefix")
        merge = merge.when_matched_delete(f"source.op = 'd' AND {is_newer}")
        columns = {name: f"source.{name}" for name in SILVER}
        merge = merge.when_matched_update(columns, where=is_newer)
        return merge.when_not_matched_insert(columns, where="source.op <> 'd'")

    return events.writeStream.foreachBatch(dvs.batch_merger(merge_events, app_id="silver"))


def to_gold(spark: SparkSession, pipeline: Pipeline) -> Any:
    """Return the stream that counts the entries again of each license with changes in silver."""
    feed = spark.readStream.format("delta_variant").option("readChangeFeed", True)
    changes = feed.option("columns", "license").load(pipeline.silver)

    target = dv.Table(pipeline.gold, engine=dvs.SparkEngine(spark))

    def merge_counts(batch: DataFrame) -> dv.Merge:
        entries = dvs.read_table(batch.sparkSession, pipeline.silver, columns=["license", "deprecated"])
        # A license without an entry has no count.
        counts = batch.select("license").distinct().join(counted(entries), "license", "left")
        merge = target.merge(counts, "target.license = source.license")
        merge = merge.when_matched_delete("source.entries IS NULL")
        columns = {name: f"source.{name}" for name in GOLD}
        merge = merge.when_matched_update(columns)
        return merge.when_not_matched_insert(columns, where="source.entries IS NOT NULL")

    return changes.writeStream.foreachBatch(dvs.batch_merger(merge_counts, app_id="gold"))


def last_events(events: DataFrame) -> DataFrame:
    """Return the last event of each entry."""
    last = events.groupBy("prefix").agg(sql.max_by(sql.struct("op", "lsn", "entry"), "lsn").alias("last"))
    return last.select("prefix", "last.*")


def typed(events: DataFrame, *more: str) -> DataFrame:
    """Return events with the columns of silver, and more of their own columns."""
    return events.selectExpr("*", *(f"{text} AS {name}" for name, text in ENTRY.items())).select(
        *SILVER, *more
    )


def counted(entries: DataFrame) -> DataFrame:
    """Return the rows of gold for entries of silver."""
    deprecated = sql.count_if("deprecated").alias("deprecated")
    return entries.groupBy("license").agg(sql.count("*").alias("entries"), deprecated)


def rebuild(spark: SparkSession, pipeline: Pipeline) -> None:
    """Compute silver and gold again in batches. Later events are merged as before."""
    create_tables(spark, pipeline)
    events = dvs.read_table(spark, pipeline.bronze, columns=EVENT)
    current = typed(last_events(events).where("op <> 'd'"))
    engine = dvs.SparkEngine(spark)
    print(f"   silver: {dv.Table(pipeline.silver, engine=engine).overwrite(current)}")
    entries = dvs.read_table(spark, pipeline.silver, columns=["license", "deprecated"])
    print(f"   gold:   {dv.Table(pipeline.gold, engine=engine).overwrite(counted(entries))}")


def correct(spark: SparkSession, pipeline: Pipeline) -> None:
    """Change rows of silver in SQL, as analysts do. Later events of a row replace the change."""
    for statement in CORRECTIONS:
        counts = run(spark, pipeline, statement).first().asDict()
        print(f"   {statement.split()[0]}: {counts}")


def maintain(spark: SparkSession, pipeline: Pipeline) -> None:
    """Compact each table, complete its statistics, remove unreferenced files and audit every row.

    Raises RuntimeError for a table with errors.
    """
    for table in pipeline.tables:
        handle = dv.Table(table, engine=dvs.SparkEngine(spark))
        dvs.sql(spark, f"OPTIMIZE delta.`{table}`")
        handle.repair_statistics(dry_run=False)
        dvs.sql(spark, f"VACUUM delta.`{table}`")
        audit = handle.audit(data=True)
        print(
            f"   {table}: version {audit.version}, {len(audit.files)} files, {len(audit.findings)} findings"
        )
        if audit.count("error"):
            raise RuntimeError(f"the audit of {table} found {audit.count('error')} errors")


def monitor(spark: SparkSession, pipeline: Pipeline) -> list[dict[str, Any]]:
    """Print and return the latest commits of each table: what a dashboard or an alert reads."""
    found = []
    for table in pipeline.tables:
        for row in dvs.sql(spark, f"DESCRIBE HISTORY delta.`{table}` LIMIT 10").collect():
            metrics = {name: int(value) for name, value in (row["operationMetrics"] or {}).items()}
            metrics = {name: value for name, value in metrics.items() if value}
            batch = (row["operationParameters"] or {}).get("epochId")
            batch = None if batch is None else int(batch)
            found.append({"table": table, "version": row["version"], "batch": batch, **metrics})
            print(f"   {table} version {row['version']}, {row['operation']}, batch {batch}: {metrics}")
    return found


def report_progress(name: str, query: StreamingQuery) -> None:
    """Print what Spark knows about each micro-batch. The commits of the tables have more: see `monitor`."""
    for each in query.recentProgress:
        rows = f"{each.numInputRows:,} rows in {each.batchDuration:,} ms"
        print(f"   {name}: batch {each.batchId}, {rows}", each.observedMetrics or "")


STEPS: dict[str, Callable[[SparkSession, Pipeline], Any]] = {
    "check": check,
    "stream": stream,
    "rebuild": rebuild,
    "correct": correct,
    "maintain": maintain,
    "monitor": monitor,
}


def main() -> None:
    arguments = parse_arguments()
    spark = start(arguments.master)
    pipeline = Pipeline(arguments.landing, arguments.folder, arguments.files_per_batch)
    for number, step in enumerate(arguments.steps or ("check", "stream", "monitor"), 1):
        print(f"\n== {number}. {step} ==", flush=True)
        STEPS[step](spark, pipeline)
    dvs.read_table(spark, pipeline.gold).orderBy("entries", ascending=False).show(5)
    spark.stop()


def start(master: str | None) -> SparkSession:
    """Return a session; spark-submit and Databricks set the master themselves."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("delta_variant pipeline")
    if master:
        # A local session: few rows do not need the 200 shuffle partitions of a cluster.
        builder = builder.master(master).config("spark.sql.shuffle.partitions", "2")
        builder = builder.config("spark.log.level", "ERROR").config("spark.ui.showConsoleProgress", "false")
    spark = builder.getOrCreate()
    dvs.register(spark)
    return spark


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("landing", help="a folder of .ndjson files")
    parser.add_argument("folder", help="the folder of tables, checkpoints and quarantine")
    parser.add_argument("steps", nargs="*", choices=[[], *STEPS], metavar="STEP", help="steps in order")
    parser.add_argument("--files-per-batch", type=int, default=100, help="the limit of a micro-batch")
    parser.add_argument("--master", default=None, help="such as local[2]; omit with spark-submit")
    return parser.parse_args()


if __name__ == "__main__":
    main()
