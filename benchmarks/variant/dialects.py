"""The SQL of each dialect for the columns of questions.

    python benchmarks/variant/dialects.py

prints every query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from queries import QUESTIONS, Column, Question

__all__ = ["DIALECTS", "Dialect"]


@dataclass(frozen=True)
class Dialect:
    """The SQL for columns.

    Attributes:
        value: The SQL of a column of a document.
        item: The SQL of a column of an element, which is called `item`.
        items: The FROM clause that has a row for each element of an array: of its path, and of the columns.
        source: What is selected from.
    """

    value: Callable[[Column], str]
    item: Callable[[Column], str]
    items: Callable[[str, Mapping[str, Column]], str]
    source: str = "events"

    def sql(self, question: Question, needle: str) -> str:
        """Return the query of a question."""
        select = self.item if question.array else self.value
        columns = ", ".join(f"{select(column)} AS {name}" for name, column in question.columns.items())
        source = self.items(question.array, question.columns) if question.array else self.source
        return f"WITH rows AS (SELECT {columns} FROM {source}) {question.sql.format(needle=needle)}"


def _quoted(steps: Sequence[str | int], first: int = 0) -> str:
    """Return steps of fields and subscripts: `."a"."b"[1]`; `first` is the position of the first element."""
    return "".join(f"[{step + first}]" if isinstance(step, int) else f'."{step}"' for step in steps)


def _spark(document: str) -> Dialect:
    """Return Spark's functions of Variants, which this library and Sail have as well."""

    def extract(variant: str, column: Column) -> str:
        path = f"$.{column.path}" if column.path else "$"
        if column.kind == "object":
            return f"to_json(variant_get({variant}, '{path}'))"
        return f"variant_get({variant}, '{path}', '{column.kind}')"

    return Dialect(
        lambda column: extract(document, column),
        lambda column: extract("item.value", column),
        lambda array, _: f"events, LATERAL variant_explode(variant_get({document}, '$.{array}')) AS item",
    )


def _spark_text() -> Dialect:
    def extract(column: Column) -> str:
        text = f"get_json_object(event, '$.{column.path}')"
        return text if column.kind in ("string", "object") else f"CAST({text} AS {column.kind})"

    def items(array: str, columns: Mapping[str, Column]) -> str:
        fields = ", ".join(f"{each.path}: {each.kind}" for each in columns.values() if each.path)
        kind = f"array<struct<{fields}>>" if fields else "array<string>"
        texts = f"from_json(get_json_object(event, '$.{array}'), '{kind}')"
        return f"events LATERAL VIEW explode({texts}) e AS item"

    return Dialect(extract, lambda column: f"item{_dotted(column)}", items)


def _dotted(column: Column) -> str:
    return f".{column.path}" if column.path else ""


def _spark_struct() -> Dialect:
    def extract(column: Column) -> str:
        # A subscript after the end is an error in Spark.
        array, _, rest = column.path.partition("[0]")
        path = f"event.typed_value.{array}"
        return path if array == column.path else f"get({path}, 0){rest}"

    return Dialect(
        extract,
        lambda column: f"item{_dotted(column)}",
        lambda array, _: f"events LATERAL VIEW explode(event.typed_value.{array}) e AS item",
    )


DUCKDB_FILES = "read_parquet(getvariable('files'))"
DUCKDB_TYPES = {"string": "VARCHAR", "bigint": "BIGINT", "double": "DOUBLE", "object": "JSON"}


def _duckdb_variant() -> Dialect:
    def extract(variant: str, column: Column) -> str:
        return f"{variant}{_quoted(column.steps, 1)}::{DUCKDB_TYPES[column.kind]}"

    return Dialect(
        lambda column: extract("event", column),
        lambda column: extract("item", column),
        lambda array, _: (
            f"(SELECT unnest(event{_quoted(Column(array, '').steps)}::VARIANT[]) AS item FROM {DUCKDB_FILES})"
        ),
        DUCKDB_FILES,
    )


def _duckdb_text() -> Dialect:
    def extract(text: str, column: Column) -> str:
        path = f"$.{column.path}" if column.path else "$"
        return f"({text}->>'{path}')::{DUCKDB_TYPES[column.kind]}"

    return Dialect(
        lambda column: extract("event", column),
        lambda column: extract("item", column),
        lambda array, _: f"(SELECT unnest(event->'$.{array}[*]') AS item FROM {DUCKDB_FILES})",
        DUCKDB_FILES,
    )


OBJECTS = {
    "user": ("id", "name", "plan", "age"),
    "device": ("os", "ver", "model", "screen.w", "screen.h"),
}
"""The paths of the objects. A view by `to_duckdb` has each as a column, and queries put objects together."""


def _duckdb_view() -> Dialect:
    def extract(column: Column) -> str:
        if column.kind == "object":
            return _literal(f"event.{column.path}", [each.split(".") for each in OBJECTS[column.path]])
        path, bracket, rest = column.path.partition("[0]")
        first = f"[1]{rest}" if bracket else ""
        return f'"event.{path}"{first}::{DUCKDB_TYPES[column.kind]}'

    return Dialect(
        extract,
        lambda column: f"item{_quoted(column.steps)}",
        lambda array, _: f'(SELECT unnest("event.{array}") AS item FROM events)',
    )


def _literal(path: str, leaves: Sequence[Sequence[str]]) -> str:
    members = {}
    for name in dict.fromkeys(leaf[0] for leaf in leaves):
        below = [leaf[1:] for leaf in leaves if leaf[0] == name and leaf[1:]]
        members[name] = _literal(f"{path}.{name}", below) if below else f'"{path}.{name}"'
    listed = ", ".join(f"'{name}': {value}" for name, value in members.items())
    return f"{{{listed}}}"


CLICKHOUSE_TYPES = {"string": "String", "bigint": "Int64", "double": "Float64"}


def _clickhouse_text() -> Dialect:
    def extract(text: str, column: Column) -> str:
        steps = [str(step + 1) if isinstance(step, int) else f"'{step}'" for step in column.steps]
        if column.kind == "object":
            return f"JSONExtractRaw({', '.join([text, *steps])})"
        kind = f"'Nullable({CLICKHOUSE_TYPES[column.kind]})'"
        return f"JSONExtract({', '.join([text, *steps, kind])})"

    def items(array: str, _: Mapping[str, Column]) -> str:
        steps = ", ".join(f"'{step}'" for step in Column(array, "").steps)
        return f"{CLICKHOUSE_FILES} ARRAY JOIN JSONExtractArrayRaw(assumeNotNull(event), {steps}) AS item"

    return Dialect(
        lambda column: extract("event", column),
        lambda column: extract("item", column),
        items,
        CLICKHOUSE_FILES,
    )


CLICKHOUSE_FILES = "file('{files}', Parquet)"


def _clickhouse_struct() -> Dialect:
    def extract(column: Column) -> str:
        path = f"event.typed_value{_quoted(column.steps, 1)}"
        if column.kind == "object":
            return f"toJSONString({path})"
        return f"CAST({path} AS Nullable({CLICKHOUSE_TYPES[column.kind]}))"

    return Dialect(
        extract,
        lambda column: f"item{_quoted(column.steps)}",
        lambda array, _: (
            f"{CLICKHOUSE_FILES} ARRAY JOIN event.typed_value{_quoted(Column(array, '').steps)} AS item"
        ),
        CLICKHOUSE_FILES,
    )


TYPED = "event['typed_value']"


def _datafusion_struct() -> Dialect:
    def path(start: str, column: Column) -> str:
        steps = (f"[{step + 1}]" if isinstance(step, int) else f"['{step}']" for step in column.steps)
        return start + "".join(steps)

    def extract(column: Column) -> str:
        found = path(TYPED, column)
        return f"CAST({found} AS DOUBLE)" if column.kind == "double" else found

    return Dialect(
        extract,
        lambda column: path("item", column),
        lambda array, _: f"(SELECT unnest({path(TYPED, Column(array, ''))}) AS item FROM events)",
    )


DIALECTS = {
    "Spark, Variant": _spark("event"),
    "Spark, string": _spark_text(),
    "Spark, struct": _spark_struct(),
    "delta_variant, string": _spark("parse_json(event)"),
    "DuckDB, Variant": _duckdb_variant(),
    "DuckDB, string": _duckdb_text(),
    "DuckDB, view": _duckdb_view(),
    "ClickHouse, string": _clickhouse_text(),
    "ClickHouse, struct": _clickhouse_struct(),
    "DataFusion, struct": _datafusion_struct(),
}


def lines() -> Iterator[str]:
    """Yield every query, each with its dialect."""
    for name, question in QUESTIONS.items():
        yield f"-- {question.kind}, {name}: {question.text}"
        for title, dialect in DIALECTS.items():
            yield f"-- {title}\n{dialect.sql(question, '…')};"
        yield ""


if __name__ == "__main__":
    print("\n".join(lines()))
