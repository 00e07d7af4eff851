"""Write many rows by many tasks, and use a log of many files, by this library and by Delta's JARs on Spark.

    python benchmarks/spark_scale.py FOLDER [--rows 10000000] [--tasks 10000] [--files 1000000] [--rounds 5]
        [--workloads write,query,plan,append]

`write` writes JSON documents as shredded Variants, with a file from each task, and `query` groups that table
by a path. `plan` is a query that matches no file of a log without data files, and `append` commits one row on
top of it. Each runs in a session of its own, and the engines take turns. Prints a line of JSON for each with
the seconds, and the largest memory of the driver's Python, of its JVM, which is also the executor, and of a
Python worker, in MiB. At the end prints the medians and the ratio of the seconds: run it on a machine that
does nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import engines
import generate_log
from spark_memory import SMALL, Workers, peak_memory

ENGINES = ("ours", "delta")
PATH = "variant_get(event, '$.user.name', 'string')"
PROPERTIES = {"delta.enableVariantShredding": "true"}
MEASURES = ("seconds", "driver_mib", "jvm_mib", "worker_mib")


def write(spark: Any, table: Path, size: Any) -> Any:
    import delta_variant as dv
    from delta_variant import spark as dvs

    df = spark.range(0, size.rows, 1, size.tasks).selectExpr("id", SMALL)
    return dv.Table(table, engine=dvs.SparkEngine(spark)).append(df, variant_columns=["event"]).rows


def write_by_delta(spark: Any, table: Path, size: Any) -> Any:
    df = spark.range(0, size.rows, 1, size.tasks).selectExpr("id", SMALL)
    writer = df.selectExpr("id", "parse_json(event) AS event").write.format("delta")
    writer.options(**PROPERTIES).save(str(table))
    return size.rows


def query(spark: Any, table: Path, _: Any) -> Any:
    from delta_variant import spark as dvs

    found = dvs.read_table(spark, table, columns={"name": "event:user.name::string"})
    return sorted(map(tuple, found.groupBy("name").count().collect()))


def query_by_delta(spark: Any, table: Path, _: Any) -> Any:
    found = spark.read.format("delta").load(str(table)).selectExpr(f"{PATH} AS name")
    return sorted(map(tuple, found.groupBy("name").count().collect()))


def plan(spark: Any, table: Path, _: Any) -> Any:
    from delta_variant import spark as dvs

    return dvs.read_table(spark, table, columns=["id"], where="id = -1").count()


def plan_by_delta(spark: Any, table: Path, _: Any) -> Any:
    return spark.read.format("delta").load(str(table)).where("id = -1").count()


def append(spark: Any, table: Path, _: Any) -> Any:
    import delta_variant as dv
    from delta_variant import spark as dvs

    row = spark.range(1).selectExpr("id", "parse_json('{}') AS event")
    return dv.Table(table, engine=dvs.SparkEngine(spark)).append(row).version


def append_by_delta(spark: Any, table: Path, _: Any) -> Any:
    row = spark.range(1).selectExpr("id", "parse_json('{}') AS event")
    row.write.format("delta").mode("append").save(str(table))
    return spark.sql(f"DESCRIBE HISTORY delta.`{table}` LIMIT 1").first()["version"]


WORKLOADS: dict[str, dict[str, Callable[[Any, Path, Any], Any]]] = {
    "write": {"ours": write, "delta": write_by_delta},
    "query": {"ours": query, "delta": query_by_delta},
    "plan": {"ours": plan, "delta": plan_by_delta},
    "append": {"ours": append, "delta": append_by_delta},
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--files", type=int, default=generate_log.FILES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workloads", default=",".join(WORKLOADS))
    parser.add_argument("--here", help="run one workload of one engine in this process, as in write-ours")
    size = parser.parse_args()
    if size.here:
        run(size, *size.here.split("-"))
        return
    workloads = size.workloads.split(",")
    if {"plan", "append"} & set(workloads):
        shutil.rmtree(size.folder / "log", ignore_errors=True)
        generate_log.main(str(size.folder / "log"), str(size.files))
    for workload in workloads:
        compare(workload, size.rounds)


def compare(workload: str, rounds: int) -> None:
    """Run a workload by both engines in turn, and print the medians."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in ENGINES}
    for number in range(rounds):
        for name in ENGINES if number % 2 else reversed(ENGINES):
            command = [sys.executable, *sys.argv, "--here", f"{workload}-{name}"]
            output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            print(output, end="", flush=True)
            found[name].append(json.loads(output.splitlines()[-1]))
    results = {json.dumps(each["result"]) for name in ENGINES for each in found[name]}
    assert len(results) == 1, results
    medians = {
        name: {measure: statistics.median(each[measure] for each in found[name]) for measure in MEASURES}
        for name in ENGINES
    }
    ratio = medians["delta"]["seconds"] / medians["ours"]["seconds"]
    print(
        json.dumps({"workload": workload, "rounds": rounds, **medians, "ratio": round(ratio, 2)}), flush=True
    )


def run(size: argparse.Namespace, workload: str, engine: str) -> None:
    """Run a workload in a new session, and print what it took."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = engines.delta_session()
    table = prepare(size.folder, workload, engine)
    spark.range(0, 8, 1, 8).mapInArrow(lambda batches: batches, "id long").count()
    with Workers() as workers:
        begun = time.perf_counter()
        result = WORKLOADS[workload][engine](spark, table, size)
        seconds = time.perf_counter() - begun
    report = {
        "workload": workload,
        "engine": engine,
        "seconds": round(seconds, 2),
        "driver_mib": peak_memory(os.getpid()) >> 20,
        "jvm_mib": peak_memory(spark.sparkContext._gateway.proc.pid) >> 20,
        "worker_mib": workers.largest >> 20,
        "result": result if isinstance(result, int) else len(result),
    }
    print(json.dumps(report), flush=True)
    spark.stop()


def prepare(folder: Path, workload: str, engine: str) -> Path:
    """Return the table of a workload: that of `write` for `query`, a copy of the log, or a new one."""
    table = folder / ("log-of-round" if workload in ("plan", "append") else engine)
    if workload != "query":
        shutil.rmtree(table, ignore_errors=True)
    if workload in ("plan", "append"):
        shutil.copytree(folder / "log", table)
    return table


if __name__ == "__main__":
    main()
