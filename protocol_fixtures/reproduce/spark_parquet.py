"""Run the cases of the kind `select` on the Parquet files of their tables, with the Spark of the Python path.

Delta's JARs exist for some versions of Spark only, and conditions skip row groups without Delta as well.
Prints each case that does not pass.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import SparkSession

from delta_variant_conformance.corpus import load_cases
from delta_variant_conformance.engine import Engine, Query
from delta_variant_conformance.engines.spark import select_rows
from delta_variant_conformance.grade import grade
from delta_variant_conformance.invoke import invoke
from delta_variant_conformance.report import status_text

SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.log.level": "OFF",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.variant.pushVariantIntoScan": "true",
}


def main() -> None:
    """Print the version, and each case that does not pass."""
    builder = SparkSession.builder.master("local[1]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()

    def select(folder: Path, query: Query) -> Sequence[Mapping[str, Any]]:
        column = f"`{query.column}` {'variant' if query.path else query.type}"
        # A pattern, because Spark ignores a folder with a name like _delta_log only below the path.
        return select_rows(session.read.schema(f"id bigint, {column}").parquet(f"{folder}/*.parquet"), query)

    engine = Engine("spark", pyspark.__version__, select=select)
    print(f"spark {engine.version}")
    results = []
    for case in load_cases([Path(__file__).parents[1]]):
        if case.kind == "select":
            with tempfile.TemporaryDirectory() as scratch:
                results.append(grade(case, engine.name, invoke(engine, case, Path(scratch))))
    for result in results:
        if result.status != "pass":
            print(f"{result.case.id}: {status_text(result)}: {' '.join(result.got.split())[:200]}")
    print(f"{sum(result.status == 'pass' for result in results)} of {len(results)} cases pass")


if __name__ == "__main__":
    main()
