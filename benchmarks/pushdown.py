"""Query paths of a table through its dataset, and the same values as plain typed Parquet columns.

    python benchmarks/pushdown.py EVENTS [--rows 2000000] [--pairs 5] [--folder FOLDER]

EVENTS is a file of JSON lines of `generate.py`. The table has one Variant column. It is queried through a
dataset, as an export with the paths as columns, and in DuckDB through a view. The plain file has the paths as
columns, too, with the same compression. Both are queried by one engine in one process, in turn, after an
untimed run.
Prints the medians of wall and CPU time, and of their ratios with the range. DataFusion and Daft are measured
if they are installed. Daft has no reader of datasets: it reads the columns that a query needs from each
fragment, and filters the rows itself.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from measure import measure

import delta_variant as dv

PATHS = {
    "user": "event:user.id::bigint",
    "type": "event:type::string",
    "x": "try_cast(event:x as bigint)",
    "lat": "try_cast(event:geo.lat as double)",
}
ROW_GROUP_ROWS = 200_000
THREADS = 2

SQL = {
    "sum": 'select sum("user") from source',
    "filter": 'select count(*) from source where "user" < 100000',
    "group": "select type, count(*) from source group by type order by type",
    "dirty": "select count(*) from source where x > 900000",
    "two": "select type, avg(lat) from source where x > 500000 group by type order by type",
}
FRAMES: Mapping[str, Callable[[pl.LazyFrame], pl.LazyFrame]] = {
    "sum": lambda frame: frame.select(pl.col("user").sum()),
    "filter": lambda frame: frame.filter(pl.col("user") < 100_000).select(pl.len()),
    "group": lambda frame: frame.group_by("type").agg(pl.len()).sort("type"),
    "dirty": lambda frame: frame.filter(pl.col("x") > 900_000).select(pl.len()),
    "two": lambda frame: (
        frame.filter(pl.col("x") > 500_000).group_by("type").agg(pl.col("lat").mean()).sort("type")
    ),
}


def prepare(events: Path, rows: int, folder: Path) -> None:
    """Write the table and the plain files, unless the folder has them."""
    if folder.exists():
        return
    with events.open(encoding="utf-8") as lines:
        texts = (list(chunk) for chunk in iter(lambda: list(islice(lines, 100_000)), []))
        schema = pa.schema([("event", pa.string())])
        batches = (pa.record_batch([chunk], schema=schema) for chunk in texts)
        source = pa.RecordBatchReader.from_batches(schema, islice(batches, -(-rows // 100_000)))
        dv.write_table(folder / "table", source, variant_columns=["event"])
    (folder / "plain").mkdir()
    scan = dv.read_table(folder / "table", columns=PATHS)
    with pq.ParquetWriter(folder / "plain" / "0.parquet", scan.schema, compression="zstd") as writer:
        writer.write_table(scan.to_table(), row_group_size=ROW_GROUP_ROWS)
    dv.export(folder / "table", folder / "export", columns=PATHS)


def by_duckdb(source: Any, query: str) -> Any:
    with duckdb.connect() as connection:
        if isinstance(source, Path):
            connection.execute(f"create view source as from read_parquet('{source}/*.parquet')")
        else:
            connection.register("source", source.to_dataset(read_dictionary="type"))
        return connection.sql(SQL[query]).fetchall()


def by_duckdb_view(source: Any, query: str) -> Any:
    if isinstance(source, Path):
        return by_duckdb(source, query)
    with duckdb.connect() as connection:
        dv.to_duckdb(connection, "source", source.uri, columns=PATHS)
        return connection.sql(SQL[query]).fetchall()


def by_polars(source: Any, query: str) -> Any:
    frame = pl.scan_parquet(source / "*.parquet") if isinstance(source, Path) else source.to_lazyframe()
    return FRAMES[query](frame).collect().rows()


def by_datafusion(source: Any, query: str) -> Any:
    from datafusion import SessionConfig, SessionContext

    context = SessionContext(SessionConfig().with_target_partitions(THREADS))
    if isinstance(source, Path):
        context.register_parquet("source", str(source))
    else:
        context.register_dataset("source", source.to_dataset(string_views=True))
    return [tuple(row.values()) for row in context.sql(SQL[query]).to_pylist()]


def by_chdb(source: Any, query: str) -> Any:
    import chdb

    sql = SQL[query].replace(" source", f" file('{source}/*.parquet')")
    return [
        tuple(row.values())
        for row in chdb.query(f"{sql} settings max_threads = {THREADS}", "ArrowTable").to_pylist()
    ]


def by_daft(source: Any, query: str) -> Any:
    import daft
    import daft_fragments

    if isinstance(source, Path):
        frame = daft.read_parquet(f"{source}/*.parquet")
    else:
        frame = daft_fragments.read(source.to_dataset(read_dictionary="type"))
    return [tuple(row.values()) for row in daft.sql(SQL[query], source=frame).to_pylist()]


ENGINES: Mapping[str, Callable[[Any, str], Any]] = {
    "duckdb": by_duckdb,
    "duckdb view": by_duckdb_view,
    "duckdb export": by_duckdb,
    "polars": by_polars,
    "polars export": by_polars,
    **({"datafusion": by_datafusion, "datafusion export": by_datafusion} if find_spec("datafusion") else {}),
    **({"chdb export": by_chdb} if find_spec("chdb") else {}),
    **({"daft": by_daft} if find_spec("daft") else {}),
}


def compare(engine: str, query: str, folder: Path, pairs: int) -> str:
    """Return a line with the figures of a query on both sources; raises unless their results agree."""
    run = ENGINES[engine]
    plain = folder / "plain"
    costs: dict[str, list[Any]] = {"ours": [], "plain": []}
    for number in range(pairs + 1):
        results = {}
        for name in ("ours", "plain") if number % 2 else ("plain", "ours"):
            source = plain if name == "plain" else _source(engine, folder)
            cost, results[name] = measure(lambda source=source: run(source, query))
            if number:
                costs[name].append(cost)
        assert _rounded(results["ours"]) == _rounded(results["plain"]), (engine, query)
    figures = []
    for what in ("wall_seconds", "cpu_seconds"):
        ours, theirs = ([getattr(cost, what) for cost in costs[name]] for name in ("ours", "plain"))
        ratios = [one / other for one, other in zip(ours, theirs, strict=True) if other]
        shown = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})" if ratios else "-"
        kind = what.partition("_")[0]
        figures.append(f"{kind} {statistics.median(ours):.3f} / {statistics.median(theirs):.3f} s = {shown}")
    return f"{engine:17} {query:7} {', '.join(figures)}"


def _source(engine: str, folder: Path) -> Any:
    is_export = engine.endswith("export")
    return folder / "export" if is_export else dv.read_table(folder / "table", columns=PATHS)


def _rounded(rows: Any) -> Any:
    return [tuple(round(value, 6) if isinstance(value, float) else value for value in row) for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("events", type=Path)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="keep the table and the plain files here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary) / "data"
        prepare(options.events, options.rows, folder)
        for engine in ENGINES:
            for query in SQL:
                print(compare(engine, query, folder, options.pairs), flush=True)


if __name__ == "__main__":
    main()
