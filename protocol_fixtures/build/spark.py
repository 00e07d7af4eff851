"""Write the cases of tables that Delta on Spark wrote: `python protocol_fixtures/build/spark.py`.

Needs pyspark, Java, and the JARs of Delta in PYSPARK_SUBMIT_ARGS. The rows are those of the statements.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from case_folder import new_case
from pyspark.sql import SparkSession
from variant_bytes import obj, text

SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.ui.enabled": "false",
}

ROWS: list[dict[str, Any]] = [
    {"id": 1, "name": "alpha", "metadata": obj(col_a=text("xxx"))},
    {"id": 2, "name": "bravo", "metadata": obj(col_a=text("xxx"), col_b=text("xxx"))},
    {"id": 3, "name": "charlie", "metadata": obj(col_c=text("xxx"))},
]


def compacted(session: SparkSession) -> None:
    """Q9: three files of a row each, compacted."""
    about = "A file that Spark compacted has the rows of the files before"
    section = "PROTOCOL.md, Variant data in Parquet"
    given, expect = {"table": "table"}, {"rows": ROWS}
    table = new_case("table", "compacted_by_spark", "Q9", "keeps", section, about, given, expect) / "table"
    session.sql(f"CREATE TABLE delta.`{table}` (id INT, name STRING, metadata VARIANT) USING delta")
    for number, name, json in (
        (1, "alpha", '{"col_a": "xxx"}'),
        (2, "bravo", '{"col_a": "xxx", "col_b": "xxx"}'),
        (3, "charlie", '{"col_c": "xxx"}'),
    ):
        session.sql(f"INSERT INTO delta.`{table}` VALUES ({number}, '{name}', parse_json('{json}'))")
    session.sql(f"OPTIMIZE delta.`{table}`")
    remove_checksums(table)


def remove_checksums(table: Path) -> None:
    """Remove what the protocol does not require: checksums of the file system and of versions."""
    for file in [*table.rglob("*.crc"), *table.rglob("_commits"), *table.rglob("_staged_commits")]:
        shutil.rmtree(file) if file.is_dir() else file.unlink()


if __name__ == "__main__":
    builder = SparkSession.builder.master("local[1]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    compacted(builder.getOrCreate())
