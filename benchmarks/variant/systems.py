"""The engines: how each opens a layout of the documents, and how it asks a question."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import engines
from dialects import DIALECTS, Dialect
from measure import busy_processors, measure, run_worker
from queries import Column, Question, Rows
from results import machine

if TYPE_CHECKING:
    import polars as pl

__all__ = ["ENGINES", "Ask", "Start", "busy_processors", "machine", "measure", "run_worker"]

Ask: TypeAlias = Callable[[Question, str], Rows]
"""Returns the rows of a question, for the id of the needle."""

Run: TypeAlias = Callable[[str], Rows]
"""Returns the rows of a query."""

Start: TypeAlias = Callable[[Path], Mapping[str, Ask]]
"""Starts an engine, and returns how it asks each layout in a folder."""

VARIANT_FUNCTIONS = {"variant": "Spark, Variant", "shredded": "Spark, Variant"}
SPARK_DIALECTS = {"string": "Spark, string", **VARIANT_FUNCTIONS, "view": "Spark, struct"}


def _by_sql(over: Callable[[str], Run], dialects: Mapping[str, str]) -> Mapping[str, Ask]:
    """Return how an engine asks each layout: in a dialect, by a function that runs SQL over the layout."""

    def ask(run: Run, dialect: Dialect) -> Ask:
        return lambda question, needle: run(dialect.sql(question, needle))

    return {layout: ask(over(layout), DIALECTS[dialect]) for layout, dialect in dialects.items()}


def delta_variant(folder: Path) -> Mapping[str, Ask]:
    dv = engines.ours()

    def over(layout: str) -> Run:
        table = dv.load_snapshot(folder / layout)
        return lambda query: [tuple(row.values()) for row in dv.sql(query, events=table)]

    return _by_sql(over, {**VARIANT_FUNCTIONS, "string": "delta_variant, string"})


def duckdb(folder: Path) -> Mapping[str, Ask]:
    import delta_variant as dv

    def over(layout: str) -> Run:
        connection = engines.duckdb_connection()
        if layout == "view":
            dv.to_duckdb(connection, "events", folder / "shredded")
        else:
            listed = ", ".join(f"'{file}'" for file in _files(folder / layout))
            # Not a view: DuckDB 2.0 reads whole Variants through it.
            connection.execute(f"SET VARIABLE files = [{listed}]").fetchall()
        return lambda query: connection.execute(query).fetchall()

    dialects = {"variant": "DuckDB, Variant", "shredded": "DuckDB, Variant", "view": "DuckDB, view"}
    return _by_sql(over, {"string": "DuckDB, string", **dialects})


def polars(folder: Path) -> Mapping[str, Ask]:
    import polars as pl

    import delta_variant as dv

    def ask(rows: Callable[[Question], pl.LazyFrame]) -> Ask:
        def answer(question: Question, needle: str) -> Rows:
            context = pl.SQLContext(rows=rows(question))
            return context.execute(question.sql.format(needle=needle), eager=True).rows()

        return answer

    def texts(question: Question) -> pl.LazyFrame:
        frame = pl.scan_parquet(_files(folder / "string"))
        types = {"string": pl.String, "object": pl.String, "bigint": pl.Int64, "double": pl.Float64}
        if question.array:
            fields = {each.path: types[each.kind] for each in question.columns.values() if each.path}
            kind = pl.List(pl.Struct(fields) if fields else pl.String)
            found = pl.col("event").str.json_path_match(f"$.{question.array}").str.json_decode(kind)
            return frame.select(found.explode().alias("item")).drop_nulls().select(**dict(_items(question)))
        columns = {
            name: pl.col("event").str.json_path_match(f"$.{each.path}").cast(types[each.kind])
            for name, each in question.columns.items()
        }
        return frame.select(**columns)

    shredded = dv.load_snapshot(folder / "shredded")

    def views(question: Question) -> pl.LazyFrame:
        if question.array:
            frame = dv.scan_delta(shredded)
            found = pl.col(f"event.{question.array}").explode().alias("item")
            return frame.select(found).drop_nulls().select(**dict(_items(question)))
        columns = {name: _expression(each) for name, each in question.columns.items()}
        return dv.scan_delta(shredded, columns=columns)

    def own(layout: str) -> Ask:
        return ask(lambda question: pl.read_delta(str(folder / layout)).lazy())

    return {
        "string": ask(texts),
        "variant": own("variant"),
        "shredded": own("shredded"),
        "view": ask(views),
    }


def _items(question: Question) -> Iterator[tuple[str, Any]]:
    import polars as pl

    for name, column in question.columns.items():
        yield name, pl.col("item").struct.field(column.path) if column.path else pl.col("item")


def _expression(column: Column) -> str:
    path = f"event:{column.path}"
    return f"to_json({path})" if column.kind == "object" else f"{path}::{column.kind}"


def spark(folder: Path) -> Mapping[str, Ask]:
    session = engines.delta_session()

    def over(layout: str) -> Run:
        if layout == "view":
            frame = session.read.parquet(str(folder / layout))
        else:
            frame = session.read.format("delta").load(str(folder / layout))
        frame.createOrReplaceTempView(layout)
        rows = _rows_of_spark(session.sql)
        return lambda query: rows(query.replace(" events", f" {layout}"))

    return _by_sql(over, SPARK_DIALECTS)


def delta_variant_on_spark(folder: Path) -> Mapping[str, Ask]:
    from delta_variant import spark as dvs

    session = engines.delta_session()

    def over(layout: str) -> Run:
        dvs.create_view(session, layout, folder / layout)
        rows = _rows_of_spark(lambda query: dvs.sql(session, query))
        return lambda query: rows(query.replace(" events", f" {layout}"))

    return _by_sql(over, VARIANT_FUNCTIONS)


def sail(folder: Path) -> Mapping[str, Ask]:
    session = engines.sail_session()

    def over(layout: str) -> Run:
        rows = _rows_of_spark(session.sql)

        def run(query: str) -> Rows:
            form = "parquet" if layout == "view" else "delta"
            session.read.format(form).load(str(folder / layout)).createOrReplaceTempView(layout)
            return rows(query.replace(" events", f" {layout}"))

        return run

    return _by_sql(over, SPARK_DIALECTS)


def _rows_of_spark(sql: Callable[[str], engines.Session]) -> Run:
    def plain(cell: Any) -> Any:
        return cell.asDict(recursive=True) if hasattr(cell, "asDict") else cell

    return lambda query: [tuple(plain(cell) for cell in row) for row in sql(query).collect()]


def chdb(folder: Path) -> Mapping[str, Ask]:
    import pyarrow as pa
    from chdb import session

    clickhouse = session.Session()
    clickhouse.query(f"SET max_threads = {engines.THREADS}")

    def over(layout: str) -> Run:
        def run(query: str) -> Rows:
            stream = clickhouse.query(query.replace("{files}", f"{folder / layout}/*.parquet"), "ArrowStream")
            table = pa.ipc.open_stream(stream.bytes()).read_all()
            return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

        return run

    # It has no functions of Variants.
    texts = dict.fromkeys(("string", "variant", "shredded"), "ClickHouse, string")
    return _by_sql(over, {**texts, "view": "ClickHouse, struct"})


def datafusion(folder: Path) -> Mapping[str, Ask]:
    from datafusion import SessionConfig, SessionContext

    def over(layout: str) -> Run:
        context = SessionContext(SessionConfig().with_target_partitions(engines.THREADS))

        def run(query: str) -> Rows:
            if not context.table_exist("events"):
                context.register_parquet("events", str(folder / layout))
            return [tuple(row.values()) for row in context.sql(query).to_pylist()]

        return run

    return _by_sql(over, {**SPARK_DIALECTS, "view": "DataFusion, struct"})


def _files(table: Path) -> list[Path]:
    """Return the data files of a table that was never rewritten."""
    return sorted(table.glob("*.parquet"))


ENGINES: Mapping[str, Start] = {
    "delta_variant": delta_variant,
    "duckdb": duckdb,
    "polars": polars,
    "chdb": chdb,
    "datafusion": datafusion,
    "spark": spark,
    "delta_variant-on-spark": delta_variant_on_spark,
    "sail": sail,
}
