"""Query the files that `write.py` wrote, one engine and one query per process.

    python benchmarks/read.py ENGINE QUERY TARGET

`count` counts the events with x > 900000, warm: the medians of five runs after an untimed one.
`paths` counts the values of two paths that have values of other types, warm as well.
`pruned` counts the events with 500000 <= x < 505000 in a table that is sorted by x.
`selective` sums a path over the events with 500000 <= x < 505000, warm as well, in a table that is
sorted by x without values of other types: one file in a hundred contains matches.
`json` converts every event to JSON text, once, and counts the rows.
`files` reads one path of a table of a thousand files, warm as well.
`stats` computes the statistics of all files from their data; it counts the values of the shredded paths.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import engines
from measure import measure, report, size_of

# Runs one query and returns the number of rows, so that engines can be compared.
Query = Callable[[], int]


def ours(target: Path) -> dict[str, Query]:
    import pyarrow.compute as pc

    dv = engines.ours()
    # The first use of a public name imports its modules.
    read_table = dv.read_table

    def count() -> int:
        batches = read_table(str(target), columns=[], where="event:x::bigint > 900000").to_batches()
        return sum(batch.num_rows for batch in batches)

    def selective() -> int:
        columns = {"user": "event:user.id::bigint"}
        where = "event:x::bigint >= 500000 and event:x::bigint < 505000"
        return int(pc.sum(read_table(str(target), columns=columns, where=where).to_table()["user"]).as_py())

    def json() -> int:
        return sum(
            batch.num_rows
            for batch in read_table(str(target), columns={"text": "to_json(event)"}).to_batches()
        )

    def stats() -> int:
        files = sorted(target.glob("*.parquet"))
        for file in files:
            dv.compute_stats(file)
        return sum(_leaf_values(file) for file in files)

    def files() -> int:
        batches = read_table(str(target / "ours"), columns={"x": "try_cast(event:x as bigint)"}).to_batches()
        return sum(batch.num_rows for batch in batches)

    def pruned() -> int:
        found = "try_cast(event:x as bigint)"
        where = f"{found} >= 500000 and {found} < 505000"
        return read_table(str(target), columns=[], where=where).explain().rows

    return {
        "count": count,
        "selective": selective,
        "json": json,
        "stats": stats,
        "files": files,
        "pruned": pruned,
    }


def _leaf_values(file: Path) -> int:
    """Return the number of values and nulls in the shredded paths of a file."""
    import pyarrow.parquet as pq

    footer = pq.read_metadata(file)
    groups = (footer.row_group(number) for number in range(footer.num_row_groups))
    leaves = (group.column(leaf) for group in groups for leaf in range(group.num_columns))
    return sum(leaf.num_values for leaf in leaves if leaf.path_in_schema.endswith(".typed_value"))


def duckdb(target: Path) -> dict[str, Query]:
    connection = engines.duckdb_connection()
    # Bytes cached by an earlier run would not be counted.
    connection.execute("SET enable_external_file_cache = false")
    events = f"FROM '{target}/*.parquet'"

    def number(sql: str) -> int:
        row = connection.execute(sql).fetchone()
        return int(row[0])

    return {
        "count": lambda: number(f"SELECT count(*) {events} WHERE event.x::BIGINT > 900000"),
        "paths": lambda: (
            number(f"SELECT count(TRY_CAST(event.x AS BIGINT)) {events}")
            + number(f"SELECT count(TRY_CAST(event.geo.lat AS DECIMAL(18, 3))) {events}")
        ),
        "selective": lambda: number(
            f"SELECT sum(event.user.id::BIGINT) {events} "
            "WHERE event.x::BIGINT >= 500000 AND event.x::BIGINT < 505000"
        ),
        # The sum of lengths creates every text and retains none.
        "json": lambda: number(f"SELECT count(length(event::JSON::VARCHAR)) {events}"),
    }


def spark(target: Path) -> dict[str, Query]:
    session = engines.spark_session()
    session.read.parquet(str(target)).createOrReplaceTempView("events")
    return _spark_sql(session)


def ours_on_spark(target: Path) -> dict[str, Query]:
    from delta_variant import spark as dvs

    session = engines.spark_session()

    def selective() -> int:
        columns = {"user": "event:user.id::bigint"}
        where = "event:x::bigint >= 500000 and event:x::bigint < 505000"
        found = dvs.read_table(session, target, columns=columns, where=where)
        return int(found.selectExpr("sum(user)").collect()[0][0])

    return {"selective": selective}


def delta_on_spark(target: Path) -> dict[str, Query]:
    session = engines.delta_session()
    session.read.format("delta").load(str(target)).createOrReplaceTempView("events")
    return _spark_sql(session)


def sail(target: Path) -> dict[str, Query]:
    session = engines.sail_session()
    session.read.format("delta").load(str(target)).createOrReplaceTempView("events")
    return _spark_sql(session)


def _spark_sql(session: engines.Session) -> dict[str, Query]:
    def number(sql: str) -> int:
        return int(session.sql(sql).collect()[0][0])

    return {
        "count": lambda: number(
            "SELECT count(*) FROM events WHERE try_variant_get(event, '$.x', 'bigint') > 900000"
        ),
        "selective": lambda: number(
            "SELECT sum(try_variant_get(event, '$.user.id', 'bigint')) FROM events "
            "WHERE try_variant_get(event, '$.x', 'bigint') >= 500000 "
            "AND try_variant_get(event, '$.x', 'bigint') < 505000"
        ),
        "json": lambda: number("SELECT count(nullif(length(to_json(event)), 0)) FROM events"),
    }


def clickhouse(target: Path) -> dict[str, Query]:
    session = engines.clickhouse_session(target)

    def number(sql: str) -> int:
        return int(str(session.query(sql)))

    return {
        "count": lambda: number("SELECT count() FROM bench.events WHERE event.x.:Int64 > 900000"),
        "json": lambda: number("SELECT countIf(length(toJSONString(event)) > 0) FROM bench.events"),
    }


def pyarrow(target: Path) -> dict[str, Query]:
    """Read typed columns. They contain no Variant, so there is no text of whole events to compare."""
    import pyarrow.dataset

    events = pyarrow.dataset.dataset(target)
    return {"count": lambda: int(events.count_rows(filter=pyarrow.dataset.field("x") > 900_000))}


ENGINES: dict[str, Callable[[Path], dict[str, Query]]] = {
    "ours": ours,
    "ours-inline": ours,
    "ours-unshredded": ours,
    "duckdb": duckdb,
    "spark": spark,
    "ours-on-spark": ours_on_spark,
    "delta-spark": delta_on_spark,
    "sail": sail,
    "clickhouse": clickhouse,
    "pyarrow": pyarrow,
}


def main(engine: str, query: str, folder: str) -> None:
    target = Path(folder)
    run = ENGINES[engine](target)[query]
    if query in ("count", "paths", "pruned", "selective", "files"):
        run()
        runs = [measure(run) for _ in range(5)]
        cost, rows = runs[-1]
        cost = replace(
            cost,
            wall_seconds=statistics.median(run.wall_seconds for run, _ in runs),
            cpu_seconds=statistics.median(run.cpu_seconds for run, _ in runs),
        )
    else:
        cost, rows = measure(run)
    report(cost, rows=rows, bytes_of_table=size_of(target))
    # The process does not end while Sail's server runs.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
