"""Show that DuckDB loses rows of a file that Spark wrote, with the packages of the Python path.

Half of the values are strings, which the shredding by a number leaves in `value`, and half are Variant null.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import duckdb
from pyspark.sql import SparkSession

SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.log.level": "OFF",
    "spark.sql.parquet.variant.annotateLogicalType.enabled": "true",
    "spark.sql.variant.inferShreddingSchema": "false",
    "spark.sql.variant.forceShreddingSchemaForTest": "a bigint",
}
ROWS = """
SELECT if(id < 20000, parse_json(concat('{"a": "text ', id, '"}')), parse_json('{"a": null}')) AS v
FROM range(0, 40000, 1, 1)
"""


def main() -> None:
    """Print the number of rows whose path is not null, as Spark and DuckDB count them."""
    builder = SparkSession.builder.master("local[1]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    with tempfile.TemporaryDirectory() as scratch:
        folder = str(Path(scratch) / "t")
        session.sql(ROWS).write.option("parquet.block.size", "100000").parquet(folder)
        condition = "variant_get(v, '$.a', 'string') IS NOT NULL"
        print(f"Spark {session.version}: {session.read.parquet(folder).where(condition).count()}")
        query = f"SELECT count(*) FROM '{folder}/*.parquet' WHERE v.a::VARCHAR IS NOT NULL"
        [[count]] = duckdb.sql(query).fetchall()
        print(f"DuckDB {duckdb.__version__}: {count}")


if __name__ == "__main__":
    main()
