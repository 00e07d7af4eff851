"""Run ten queries of a bronze table on Spark: in plain SQL, and with explicit `columns` and `where`.

    python benchmarks/spark_queries.py FOLDER [--rows 1000000] [--rounds 5] [--queries buyers,purchases]

Both run in turn in one session, and return the same rows. The table is written to FOLDER, unless it is there.
Prints a line of JSON for each query with the median of the ratios of CPU time and of wall time; CPU time is
that of the driver, its JVM and the Python workers.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import engines
import measure
from pyspark.sql import DataFrame, SparkSession

HERE = Path(__file__).resolve().parent
FILES = 8


@dataclass(frozen=True)
class Query:
    """A query in SQL, and the same explicitly: the columns and rows that are read, and SQL over `{rows}`."""

    name: str
    text: str
    columns: dict[str, str]
    where: str | None = None
    rest: str = "select * from {rows}"
    others: dict[str, tuple[dict[str, str], str | None]] = field(default_factory=dict)


QUERIES = [
    Query(
        "buyers",
        "select value:user.id::bigint as user, value:ts::timestamp as ts from bronze "
        "where value:type::string = 'buy'",
        {"user": "value:user.id::bigint", "ts": "value:ts::timestamp"},
        "value:type::string = 'buy'",
    ),
    Query(
        "one user",
        "select value:ts::timestamp as ts, value:url::string as url from bronze "
        "where value:user.id::bigint = 262619",
        {"ts": "value:ts::timestamp", "url": "value:url::string"},
        "value:user.id::bigint = 262619",
    ),
    Query(
        "by type",
        "select value:type::string as type, count(*) as n from bronze group by 1",
        {"type": "value:type::string"},
        rest="select type, count(*) as n from {rows} group by 1",
    ),
    Query(
        "by country",
        "select value:geo.country::string as country, avg(try_variant_get(value, '$.dur', 'double')) as dur "
        "from bronze where value:type::string in ('buy', 'click') group by value:geo.country::string",
        {"country": "value:geo.country::string", "dur": "try_variant_get(value, '$.dur', 'double')"},
        "value:type::string in ('buy', 'click')",
        "select country, avg(dur) as dur from {rows} group by country",
    ),
    Query(
        "count",
        "select count(*) as n from bronze where value:user.age::int between 30 and 40",
        {"one": "true"},
        "value:user.age::int between 30 and 40",
        "select count(*) as n from {rows}",
    ),
    Query(
        "silver",
        "select value:id::string as id, value:ts::timestamp as ts, value:type::string as type, "
        "value:user.id::bigint as user, value:user.plan::string as plan, value:ok::boolean as ok, "
        "value:status::int as status, value:url::string as url from bronze",
        {
            "id": "value:id::string",
            "ts": "value:ts::timestamp",
            "type": "value:type::string",
            "user": "value:user.id::bigint",
            "plan": "value:user.plan::string",
            "ok": "value:ok::boolean",
            "status": "value:status::int",
            "url": "value:url::string",
        },
    ),
    Query(
        "top users",
        "select value:user.id::bigint as user, count(*) as n, max(value:ts::timestamp) as last from bronze "
        "where value:user.plan::string <> 'free' group by 1 order by n desc, user limit 10",
        {"user": "value:user.id::bigint", "ts": "value:ts::timestamp"},
        "value:user.plan::string <> 'free'",
        "select user, count(*) as n, max(ts) as last from {rows} group by 1 order by n desc, user limit 10",
    ),
    Query(
        "last event",
        "select user, type from (select value:user.id::bigint as user, value:type::string as type, "
        "row_number() over (partition by value:user.id::bigint order by value:ts::timestamp desc) as n "
        "from bronze where value:geo.country::string = 'DE') where n = 1",
        {"user": "value:user.id::bigint", "type": "value:type::string", "ts": "value:ts::timestamp"},
        "value:geo.country::string = 'DE'",
        "select user, type from (select user, type, row_number() over (partition by user order by ts desc) "
        "as n from {rows}) where n = 1",
    ),
    Query(
        "join",
        "with buys as (select value:user.id::bigint as user from bronze where value:type::string = 'buy') "
        "select b.user, count(*) as n from buys b join bronze e on e.value:user.id::bigint = b.user "
        "where e.value:type::string = 'search' group by 1",
        {"user": "value:user.id::bigint"},
        "value:type::string = 'buy'",
        "select b.user, count(*) as n from {rows} b join {searches} e on e.user = b.user group by 1",
        {"searches": ({"user": "value:user.id::bigint"}, "value:type::string = 'search'")},
    ),
    Query(
        "part of an object",
        "select to_json(value:device) as device from bronze where value:device.os::string = 'ios' "
        "and value:status::int >= 400",
        {"device": "value:device"},
        "value:device.os::string = 'ios' and value:status::int >= 400",
        "select to_json(device) as device from {rows}",
    ),
]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--queries", default=",".join(query.name for query in QUERIES))
    arguments = parser.parse_args()
    spark = engines.spark_session()
    from delta_variant import spark as dvs

    table = write(spark, arguments.folder, arguments.rows)
    dvs.create_view(spark, "bronze", table)
    for query in QUERIES:
        if query.name in arguments.queries.split(","):
            compare(spark, table, query, arguments.rounds)


def write(spark: SparkSession, folder: Path, rows: int) -> Path:
    """Return a bronze table of events."""
    import delta_variant as dv
    from delta_variant import spark as dvs

    table = folder / f"bronze-{rows}"
    if not table.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        events = folder / "events.ndjson"
        subprocess.run([sys.executable, HERE / "generate.py", events, str(rows), "--clean"], check=True)
        lines = spark.read.text(str(events)).repartition(FILES)
        dv.Table(table, engine=dvs.SparkEngine(spark)).append(lines, variant_columns=["value"])
    return table


def compare(spark: SparkSession, table: Path, query: Query, rounds: int) -> None:
    """Print the ratios of a query: plain SQL to the explicit form."""
    from delta_variant import spark as dvs

    def explicit() -> DataFrame:
        frames: dict[str, Any] = {
            name: dvs.read_table(spark, table, columns=columns, where=where)
            for name, (columns, where) in {"rows": (query.columns, query.where), **query.others}.items()
        }
        return spark.sql(query.rest, **frames)

    forms: dict[str, Callable[[], DataFrame]] = {
        "sql": lambda: dvs.sql(spark, query.text),
        "explicit": explicit,
    }
    # This also warms the session up.
    rows = {name: sorted(run().collect(), key=str) for name, run in forms.items()}
    assert rows["sql"] == rows["explicit"] != [], query.name
    costs: dict[str, list[measure.Cost]] = {name: [] for name in forms}
    for number in range(rounds):
        for name in sorted(forms, reverse=number % 2 == 0):
            costs[name].append(measure.measure(lambda run=forms[name]: _compute(run()))[0])
    pairs = list(zip(costs["sql"], costs["explicit"], strict=True))
    report = {
        "query": query.name,
        "cpu_ratio": statistics.median(a.cpu_seconds / b.cpu_seconds for a, b in pairs),
        "wall_ratio": statistics.median(a.wall_seconds / b.wall_seconds for a, b in pairs),
        "cpu_explicit": statistics.median(each.cpu_seconds for each in costs["explicit"]),
        "wall_explicit": statistics.median(each.wall_seconds for each in costs["explicit"]),
    }
    print(json.dumps(report), flush=True)


def _compute(df: DataFrame) -> None:
    df.write.format("noop").mode("overwrite").save()


if __name__ == "__main__":
    main()
