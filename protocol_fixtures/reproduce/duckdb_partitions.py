"""Write shredded Variants in partitions with DuckDB, and open each file with pyarrow.

duckdb#24161: SHREDDING names one of two Variant columns. Run by
`python protocol_fixtures/reproduce/duckdb_partitions.py`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

ROWS = 400_000

QUERY = f"""
    SELECT i % 7 AS p, {{'a': i, 'b': 'x' || i}}::VARIANT AS v,
           CASE WHEN i % 7 < 3 THEN {{'c': i}}::VARIANT ELSE {{'d': 'y' || i}}::VARIANT END AS w
    FROM range({ROWS}) AS rows(i)
"""


def main() -> None:
    """Print the rows that can be read, and the error of each file and of the writer."""
    with tempfile.TemporaryDirectory() as folder:
        options = "FORMAT parquet, PARTITION_BY (p), SHREDDING {v: 'STRUCT(a BIGINT, b VARCHAR)'}"
        try:
            duckdb.sql(f"COPY ({QUERY}) TO '{folder}' ({options}, OVERWRITE)")
        except duckdb.Error as error:
            print(f"the writer: {error}")
        rows = 0
        for file in sorted(Path(folder).rglob("*.parquet")):
            try:
                rows += pq.read_table(file).num_rows
            except (OSError, ValueError) as error:
                print(f"{file.relative_to(folder)}: {error}")
        print(f"DuckDB {duckdb.__version__}: {rows:,} of {ROWS:,} rows can be read")


if __name__ == "__main__":
    main()
