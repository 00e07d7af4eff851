"""The systems that JSONBench's queries run on: how each loads the documents, and how it asks the queries."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import engines
import polars_queries
from measure import measure, size_of
from results import machine

__all__ = ["SYSTEMS", "Rows", "System", "machine", "measure", "size_of"]

Rows: TypeAlias = list[tuple[Any, ...]]
Ask: TypeAlias = Callable[[int], Rows]

QUERIES = Path(__file__).resolve().parent / "queries"

SORT = tuple(
    f"try_variant_get(data, '$.{path}', '{kind}')"
    for path, kind in (
        ("kind", "string"),
        ("commit.operation", "string"),
        ("commit.collection", "string"),
        ("did", "string"),
        ("time_us", "bigint"),
    )
)
"""The order of rows that JSONBench's own entry for ClickHouse has."""


@dataclass(frozen=True)
class System:
    """A system under test.

    Attributes:
        title: Its name in the results.
        load: Loads files of documents into a folder.
        open: Opens the folder and returns a function that runs a query by its number, from 0, and returns
            its rows.
        version: Returns the version of the system.
        size: Returns the bytes of the loaded data, None for those of all files in the folder.
        data: The name of the folder, if another system loads the same data.
    """

    title: str
    load: Callable[[Sequence[Path], Path], None]
    open: Callable[[Path], Ask]
    version: Callable[[], str]
    size: Callable[[Path], int] | None = None
    data: str | None = None


def statements(name: str) -> list[str]:
    """Return the five queries of a file in `queries/`."""
    return [text.strip() for text in (QUERIES / f"{name}.sql").read_text("utf-8").split(";") if text.strip()]


def load_ours(documents: Sequence[Path], folder: Path) -> None:
    import delta_variant as dv

    table = dv.Table(folder / "bluesky")
    table.overwrite(dv.read_json(list(documents), column="data"))
    table.optimize(sort_by=list(SORT))
    table.vacuum(0, dry_run=False, enforce_retention_duration=False)


def duckdb_over(files: Sequence[Path]) -> Ask:
    connection = engines.duckdb_connection()
    paths = ", ".join(f"'{file}'" for file in files)
    # Not a view: DuckDB 2.0 reads whole Variants through it.
    connection.execute(f"SET VARIABLE files = [{paths}]").fetchall()
    queries = statements("duckdb-variant")
    return lambda number: connection.execute(queries[number]).fetchall()


def ours_through_duckdb(folder: Path) -> Ask:
    import delta_variant as dv

    table = folder / "bluesky"
    return duckdb_over([table / path for path in dv.load_snapshot(table).files["path"].to_pylist()])


def ours_through_sql(folder: Path) -> Ask:
    import delta_variant as dv

    table = dv.Table(folder / "bluesky")
    queries = statements("spark")
    return lambda number: [tuple(row.values()) for row in dv.sql(queries[number], bluesky=table)]


def ours_through_polars(folder: Path) -> Ask:
    import delta_variant as dv

    frame = dv.Table(folder / "bluesky").scan(columns=polars_queries.COLUMNS).to_lazyframe()
    return lambda number: polars_queries.QUERIES[number](frame).collect().rows()


def ours_through_spark(folder: Path) -> Ask:
    session = engines.delta_session()
    # The queries ask for the hour of a day in UTC.
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.read.format("delta").load(str(folder / "bluesky")).createOrReplaceTempView("bluesky")
    queries = statements("spark")
    return lambda number: [tuple(row) for row in session.sql(queries[number]).collect()]


def load_duckdb_text(documents: Sequence[Path], folder: Path) -> None:
    connection = engines.duckdb_connection()
    folder.mkdir()
    connection.execute(f"ATTACH '{folder / 'bluesky.duckdb'}' AS data (STORAGE_VERSION 'latest')")
    names = ", ".join(f"'{each}'" for each in documents)
    connection.execute(
        f"CREATE TABLE data.bluesky AS SELECT json AS data FROM read_ndjson_objects([{names}], "
        "ignore_errors = false, maximum_object_size = 1048576000)"
    )
    connection.close()


def duckdb_text(folder: Path) -> Ask:
    connection = engines.duckdb_connection()
    connection.execute(f"ATTACH '{folder / 'bluesky.duckdb'}' AS data (READ_ONLY)")
    connection.execute("USE data")
    queries = statements("duckdb-json")
    return lambda number: connection.execute(queries[number]).fetchall()


def load_duckdb_parquet(documents: Sequence[Path], folder: Path) -> None:
    connection = engines.duckdb_connection()
    folder.mkdir()
    names = ", ".join(f"'{each}'" for each in documents)
    connection.execute(
        f"COPY (SELECT json::VARIANT AS data FROM read_ndjson_objects([{names}])) "
        f"TO '{folder / 'bluesky.parquet'}' (FORMAT parquet, COMPRESSION zstd)"
    )


def duckdb_parquet(folder: Path) -> Ask:
    return duckdb_over([folder / "bluesky.parquet"])


def load_clickhouse(documents: Sequence[Path], folder: Path) -> None:
    session = engines.clickhouse_session(folder)
    session.query("CREATE DATABASE bench")
    session.query((QUERIES / "clickhouse-table.sql").read_text("utf-8"))
    for each in documents:
        session.query(
            f"INSERT INTO bench.bluesky SELECT json AS data FROM file('{each}', 'JSONAsObject', 'json JSON')"
        )
    session.query("OPTIMIZE TABLE bench.bluesky FINAL")
    session.close()


def clickhouse(folder: Path) -> Ask:
    import json

    session = engines.clickhouse_session(folder)
    session.query("USE bench")
    queries = statements("clickhouse")

    def ask(number: int) -> Rows:
        text = str(session.query(queries[number], "JSONCompactEachRow"))
        return [tuple(json.loads(line)) for line in text.splitlines()]

    return ask


def clickhouse_size(folder: Path) -> int:
    session = engines.clickhouse_session(folder)
    active = "SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = 'bench'"
    return int(str(session.query(active)))


def package_version(*packages: str) -> Callable[[], str]:
    return lambda: ", ".join(f"{each} {version(each)}" for each in packages)


DUCKDB = package_version("duckdb")

SYSTEMS = {
    "ours-duckdb": System(
        "delta_variant through DuckDB",
        load_ours,
        ours_through_duckdb,
        package_version("delta-variant", "duckdb"),
        data="ours",
    ),
    "ours-sql": System(
        "delta_variant, `dv.sql`",
        load_ours,
        ours_through_sql,
        package_version("delta-variant", "duckdb"),
        data="ours",
    ),
    "ours-polars": System(
        "delta_variant through Polars",
        load_ours,
        ours_through_polars,
        package_version("delta-variant", "polars"),
        data="ours",
    ),
    "ours-spark": System(
        "delta_variant through Spark with Delta Lake",
        load_ours,
        ours_through_spark,
        package_version("delta-variant", "pyspark"),
        data="ours",
    ),
    "clickhouse": System(
        "ClickHouse",
        load_clickhouse,
        clickhouse,
        package_version("chdb", "chdb-core"),
        clickhouse_size,
    ),
    "duckdb-json": System("DuckDB, JSON text", load_duckdb_text, duckdb_text, DUCKDB),
    "duckdb-parquet": System("DuckDB, its shredded Parquet", load_duckdb_parquet, duckdb_parquet, DUCKDB),
}
