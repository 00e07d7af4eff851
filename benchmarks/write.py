"""Write JSON lines to a shredded table, one engine per process.

python benchmarks/write.py ENGINE SOURCE TARGET
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import engines
from measure import measure, peak_of, report, size_of

# Runs one engine after its imports and server are loaded. It returns the written bytes if that is not the
# size of the folder, or figures of its own.
Work = Callable[[], int | dict[str, float] | None]


def ours(source: Path, target: Path) -> Work:
    return _ours(source, target, "infer")


def ours_inline(source: Path, target: Path) -> Work:
    return _ours(source, target, "infer", "inline")


def ours_unshredded(source: Path, target: Path) -> Work:
    return _ours(source, target, None)


def ours_string(source: Path, target: Path) -> Work:
    """Write a column of JSON text, which is not parsed."""
    dv = engines.ours()
    from pyarrow import csv

    write_table = dv.write_table

    def work() -> None:
        whole_lines = csv.ParseOptions(delimiter="\x01", quote_char=False)
        names = csv.ReadOptions(column_names=["event"], block_size=16 << 20)
        lines = csv.open_csv(source, read_options=names, parse_options=whole_lines)
        write_table(str(target), lines, shredding=None)

    return work


def _ours(
    source: Path,
    target: Path,
    shredding: Literal["infer"] | None,
    residual_rows: Literal["separate", "inline"] = "separate",
) -> Work:
    dv = engines.ours()
    files = dv.FileOptions(residual_rows=residual_rows)
    # The first use of a public name imports its modules.
    read_json, write_table = dv.read_json, dv.write_table

    def work() -> None:
        events = read_json(str(source), column="event")
        write_table(str(target), events, shredding=shredding, files=files)

    return work


def command_line(source: Path, target: Path) -> Work:
    """Run the command, whose start counts."""
    program = "from delta_variant.cli import main; main()"
    command = [sys.executable, "-c", program, "write", str(source), str(target), "--column", "event"]

    def work() -> None:
        subprocess.run(command, check=True, capture_output=True)

    return work


def orjson(source: Path, target: Path) -> Work:
    """Parse each line. The workload differs: nothing is written."""
    from orjson import loads

    def work() -> int:
        with source.open("rb") as lines:
            for line in lines:
                loads(line)
        return 0

    return work


def duckdb(source: Path, target: Path) -> Work:
    return _duckdb(source, target, "VARIANT")


def duckdb_string(source: Path, target: Path) -> Work:
    return _duckdb(source, target, "VARCHAR")


def _duckdb(source: Path, target: Path, kind: str) -> Work:
    connection = engines.duckdb_connection()
    target.mkdir()

    def work() -> None:
        connection.execute(
            f"COPY (SELECT json::{kind} AS event FROM read_ndjson_objects('{source}')) "
            f"TO '{target}/events.parquet' (FORMAT parquet)"
        )

    return work


def spark(source: Path, target: Path) -> Work:
    return _spark(source, target, "parse_json(value)")


def spark_unshredded(source: Path, target: Path) -> Work:
    return _spark(source, target, "parse_json(value)", "false")


def spark_string(source: Path, target: Path) -> Work:
    return _spark(source, target, "value")


def _spark(source: Path, target: Path, expression: str, shredding: str = "true") -> Work:
    session = engines.spark_session({"spark.sql.variant.writeShredding.enabled": shredding})
    events = session.read.text(str(source)).selectExpr(f"{expression} AS event")
    return lambda: events.write.parquet(str(target))


def ours_on_spark(source: Path, target: Path) -> Work:
    import delta_variant as dv
    from delta_variant import spark as dvs

    session = engines.spark_session()
    lines = session.read.text(str(source))

    def write(rows: engines.Session, folder: Path) -> engines.Session:
        return dv.Table(folder, engine=dvs.SparkEngine(session)).append(rows, variant_columns=["value"])

    def work() -> dict[str, float]:
        result = write(lines, target)
        paths = [path for file in result.files for path in file.variants["value"]]
        typed = sum(path.typed for path in paths)
        values = sum(path.values for path in paths)
        return {"worker_megabytes": peak_of("pyspark"), "typed_percent": 100 * typed / (typed + values)}

    # The small job of the JVM also starts its Python workers.
    with tempfile.TemporaryDirectory() as folder:
        write(session.range(1000).selectExpr("CAST(id AS STRING) AS value"), Path(folder) / "table")
    return work


def sail(source: Path, target: Path) -> Work:
    session = engines.sail_session()
    session.sql(
        f"CREATE TABLE events (event VARIANT) USING delta LOCATION '{target}' "
        "TBLPROPERTIES ('delta.enableVariantShredding' = 'true')"
    )
    session.read.text(str(source)).createOrReplaceTempView("lines")

    def work() -> None:
        session.sql("INSERT INTO events SELECT parse_json(value) AS event FROM lines").collect()

    return work


def clickhouse(source: Path, target: Path) -> Work:
    session = engines.clickhouse_session(target)
    session.query("CREATE DATABASE bench")
    session.query("CREATE TABLE bench.events (event JSON) ENGINE = MergeTree ORDER BY tuple()")

    def work() -> int:
        session.query(
            "INSERT INTO bench.events SELECT json AS event "
            f"FROM file('{source}', 'JSONAsObject', 'json JSON')"
        )
        # The folder retains merged parts for some minutes, and the engine's own logs.
        active = session.query(
            "SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = 'bench'"
        )
        return int(str(active))

    return work


def pyarrow(source: Path, target: Path) -> Work:
    """Write typed columns. The workload differs: it accepts only clean events and keeps no Variant."""
    import pyarrow.json
    import pyarrow.parquet

    target.mkdir()

    def work() -> None:
        table = pyarrow.json.read_json(source)
        pyarrow.parquet.write_table(table, target / "events.parquet", compression="zstd", compression_level=1)

    return work


ENGINES: dict[str, Callable[[Path, Path], Work]] = {
    "ours": ours,
    "ours-inline": ours_inline,
    "ours-unshredded": ours_unshredded,
    "ours-string": ours_string,
    "command-line": command_line,
    "orjson": orjson,
    "duckdb": duckdb,
    "duckdb-string": duckdb_string,
    "spark": spark,
    "spark-unshredded": spark_unshredded,
    "spark-string": spark_string,
    "ours-on-spark": ours_on_spark,
    "sail": sail,
    "clickhouse": clickhouse,
    "pyarrow": pyarrow,
}


def main(engine: str, source: str, target: str) -> None:
    cost, result = measure(ENGINES[engine](Path(source), Path(target)))
    facts = result if isinstance(result, dict) else {}
    bytes_out = result if isinstance(result, int) else size_of(Path(target))
    report(cost, bytes_out=bytes_out, **facts)
    # The process does not end while Sail's server runs.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
