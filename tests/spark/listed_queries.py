"""A list of queries, over tables of this package and of Delta's JARs, and in Spark over its own rows.

`listed_queries.sql` has the queries and `listed_tables.sql` the rows. A line with three dashes begins a group
with its settings, and a semicolon at the end of a line ends a query. The settings are:

- `zone`, `ansi` and `case`: the values of settings of the session with which each query runs;
- `by`: who writes the tables, by default the tasks of this package; `catalog` for the tables of the catalog;
- `where`: a table; the queries are predicates on it, which `read_table` evaluates, too;
- `order=kept`: a query depends on those before it;
- `rejected=yes`: this package rejects the queries, whatever Spark does.
"""

from __future__ import annotations

import functools
import itertools
import os
import re
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from spark.queries import SPARK_FAILURES, condition
from spark.tables import write_frame

from delta_variant import spark as dvs
from delta_variant.errors import DeltaVariantError

HERE = Path(__file__).parent
OPTIONS: dict[str, dict[str, Any]] = {
    "events": {"partition_by": ["day"], "configuration": {"delta.columnMapping.mode": "name"}},
    "users": {"configuration": {"delta.enableDeletionVectors": "true"}},
}
SETTINGS = {
    "zone": "spark.sql.session.timeZone",
    "ansi": "spark.sql.ansi.enabled",
    "case": "spark.sql.caseSensitive",
}
AT_ONCE = 16
"""The number of predicates that one query compares: a query takes longer than a part of one."""
THREADS = 3
"""Queries at once: a session has time for others while one is analyzed."""
ORDERED = re.compile(r"order by[^()]*$", re.IGNORECASE)


class Group(NamedTuple):
    """Queries with one purpose, and their settings."""

    name: str
    settings: dict[str, list[str]]
    queries: list[str]


def groups(file: str) -> list[Group]:
    """Return the groups of a file."""
    found = []
    for part in re.split(r"^--- ", (HERE / file).read_text(), flags=re.MULTILINE)[1:]:
        head, text = part.split("\n", 1)
        settings = {name: values.split(",") for name, values in re.findall(r"(\w+)=(\S+)", head)}
        queries = re.split(r";$\n?", text, flags=re.MULTILINE)[:-1]
        if "where" in settings:
            queries = [*_unions(settings["where"][0], queries)]
        found.append(Group(re.sub(r"\s*\w+=\S+", "", head).strip(), settings, queries))
    return found


def _unions(table: str, predicates: list[str]) -> Iterator[str]:
    """Yield queries with the rows of some predicates each."""
    for start in range(0, len(predicates), AT_ONCE):
        parts = (
            f"select {start + number} as k, id from {table} where {predicate}"
            for number, predicate in enumerate(predicates[start : start + AT_ONCE])
        )
        yield " union all ".join(parts)


@dataclass(frozen=True)
class Outcome:
    """The rows of a query, without their order unless it has one, and its columns; or its error."""

    rows: list[str]
    columns: tuple[tuple[str, str], ...] = ()
    error: str | None = None
    is_rejected: bool = False


def _outcome(run: Callable[[str], DataFrame], query: str) -> Outcome:
    try:
        df = run(query)
        rows = [repr([_plain(cell) for cell in row]) for row in df.collect()]
    except SPARK_FAILURES as error:
        return Outcome([], error=condition(error))
    except (DeltaVariantError, ValueError) as error:
        return Outcome([], error=str(error), is_rejected=True)
    return Outcome(rows if ORDERED.search(query) else sorted(rows), tuple(df.dtypes))


def _plain(cell: Any) -> Any:
    return (cell.toPython(), cell.toJson()) if hasattr(cell, "toJson") else cell


class Tables:
    """The tables of the queries: as Spark's own rows, written by this package, and by Delta's JARs."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self._folder = folder
        self._frames: dict[str, DataFrame] = {}
        *tables, catalog = groups("listed_tables.sql")
        for group in tables:
            self._frames[group.name] = spark.sql(group.queries[0]).localCheckpoint()
            self._write(group.name, self._frames[group.name].repartitionByRange(2, "id"))
        orders = """select id, parse_json(concat('{"a":', id, '}')) as v from range(1, 4)"""
        self._write("orders", spark.sql(orders))
        for statement in catalog.queries:
            spark.sql(statement.format(tasks=folder / "tasks", jars=folder / "jars"))
        self._frames["chars"] = spark.table("shop.plain_padded")
        shutil.copytree(folder / "jars" / "chars", folder / "tasks" / "chars")
        for version in range(5):
            at = datetime(2024, 1, 1 + version, tzinfo=timezone.utc).timestamp()
            os.utime(folder / f"jars/history/_delta_log/{version:020}.json", (at, at))

    def _write(self, name: str, rows: DataFrame) -> None:
        options = OPTIONS.get(name, {})
        write_frame(self._folder / "tasks" / name, rows, **options)
        writer = rows.write.format("delta").partitionBy(*options.get("partition_by", ()))
        writer.save(str(self._folder / "jars" / name))

    def drop(self) -> None:
        """Drop what is in the catalog."""
        for name in ("shop", "archive"):
            self.spark.sql(f"drop schema {name} cascade")
        self.spark.catalog.dropTempView("temporary")

    def runs(self, settings: dict[str, list[str]]) -> Iterator[tuple[str, Callable[[str], DataFrame]]]:
        """Yield each way to run queries, Spark's first, while its tables are there."""
        writers = settings.get("by", ["tasks"])
        if writers == ["catalog"]:
            yield from (("Spark", self.spark.sql), ("catalog", partial(dvs.sql, self.spark)))
            return
        for name, df in self._frames.items():
            df.createOrReplaceTempView(name)
        yield "Spark", self.spark.sql
        for name in self._frames:
            self.spark.catalog.dropTempView(name)
        for writer in writers:
            for name in self._frames:
                dvs.create_view(self.spark, name, self._folder / writer / name)
            if "where" in settings:
                yield f"read_table, {writer}", partial(self._select, self._folder / writer)
            yield writer, partial(dvs.sql, self.spark)
            for name in self._frames:
                dvs.drop_view(self.spark, name)

    def _select(self, folder: Path, query: str) -> DataFrame:
        """Return the result of a query of predicates by `read_table`."""
        pattern = re.compile(r"select (\d+) as k, id from (\w+) where (.*)", re.DOTALL)
        frames = []
        for part in query.split(" union all "):
            found = pattern.fullmatch(part)
            assert found is not None
            columns = {"k": found[1], "id": "id"}
            frames.append(dvs.read_table(self.spark, folder / found[2], columns=columns, where=found[3]))
        return functools.reduce(DataFrame.unionAll, frames)


def differences(tables: Tables, group: Group) -> Iterator[str]:
    """Yield a text for each query with another outcome than in Spark."""
    conf = tables.spark.conf
    names = [name for name in group.settings if name in SETTINGS]
    for values in itertools.product(*(group.settings[name] for name in names)):
        settings = dict(zip((SETTINGS[name] for name in names), values, strict=True))
        before = {name: conf.get(name) for name in settings}
        for name, value in settings.items():
            conf.set(name, value)
        try:
            for text in _differences(tables, group):
                yield f"{', '.join(values)} {text}"
        finally:
            for name, old in before.items():
                conf.set(name, old)


def _differences(tables: Tables, group: Group) -> Iterator[str]:
    expected: list[Outcome] = []
    with ThreadPoolExecutor(1 if "order" in group.settings else THREADS) as threads:
        for run, execute in tables.runs(group.settings):
            outcomes = [*threads.map(partial(_outcome, execute), group.queries)]
            expected = expected or outcomes
            for query, wanted, got in zip(group.queries, expected, outcomes, strict=True):
                is_expected = got.is_rejected if "rejected" in group.settings else wanted == got
                if run != "Spark" and not is_expected:
                    yield f"{group.name} by {run}: {query}\n  Spark: {wanted}\n  here:  {got}"
