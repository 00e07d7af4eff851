"""We read every value of the tables that Spark writes."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from interop.corpus import CORPORA, read_lines, write_texts
from interop.tables import load, rows_by_spark, rows_by_us
from pyspark.sql import Row, SparkSession
from pyspark.sql.types import VariantVal
from support.archives import GOLDEN_TABLES, SPARK_TABLES

import delta_variant as dv

SHREDDED = (
    "TBLPROPERTIES ('delta.enableVariantShredding' = 'true', 'delta.feature.variantShredding' = 'supported')"
)


@pytest.mark.parametrize("name", CORPORA)
def test_we_read_every_value_of_a_shredded_table(
    spark: SparkSession, corpora: Path, tmp_path: Path, name: str
):
    table = tmp_path / "table"
    texts = write_texts(read_lines(corpora, name), tmp_path / "texts.ndjson")
    spark.sql(f"CREATE TABLE delta.`{table}` (line BIGINT, event VARIANT) USING delta {SHREDDED}")
    parsed = spark.read.schema("line BIGINT, text STRING").json(str(texts))
    parsed.selectExpr("line", "parse_json(text) AS event").write.format("delta").mode("append").save(
        str(table)
    )

    columns = {"line": "line", "text": "to_json(event)"}
    assert rows_by_us(table, columns) == rows_by_spark(spark, table, columns)


@pytest.mark.parametrize("name", [*SPARK_TABLES, *GOLDEN_TABLES])
def test_we_read_every_value_of_a_table_of_the_corpora_with_its_type_and_as_text(
    spark: SparkSession, corpora: Path, unpack_table: Callable[[str], Path], name: str
):
    """Compare all rows and columns, the type and value of each part of every Variant, and its JSON."""
    table = unpack_table(name) if name in SPARK_TABLES else corpora / "delta-golden" / name
    frame = load(spark, table)
    theirs = [comparable(row) for row in frame.collect()]
    found = dv.read_table(table).to_table()
    assert found.column_names == frame.columns
    assert sorted(map(repr, theirs)) == sorted(repr(comparable(row)) for row in found.to_pylist())
    assert theirs
    columns = {
        f"c{index}": f"to_json(`{column}`)" if kind == "variant" else f"`{column}`"
        for index, (column, kind) in enumerate(frame.dtypes)
        if not kind.startswith(("struct", "array", "map"))
    }
    # The tables have neither a common key nor an order of rows.
    assert rows_by_us(table, columns) == rows_by_spark(spark, table, columns)


def comparable(value: Any) -> Any:
    """Return a row of either side in a common form: sorted names, Variants as parts with their types."""
    if isinstance(value, VariantVal):
        return typed(dv.Variant(bytes(value.metadata), bytes(value.value)).to_python())
    if isinstance(value, Row):
        return {name: comparable(part) for name, part in sorted(value.asDict().items())}
    if isinstance(value, dict):
        if set(value) == {"metadata", "value"}:
            return typed(dv.Variant(value["metadata"], value["value"]).to_python())
        return {name: comparable(part) for name, part in sorted(value.items())}
    if isinstance(value, list) and value and type(value[0]) is tuple:
        return {key: comparable(part) for key, part in sorted(value)}
    if isinstance(value, list):
        return [comparable(part) for part in value]
    return bytes(value) if isinstance(value, bytearray) else value


def typed(value: Any) -> Any:
    """Return a Variant's value with the types of its parts; Spark has one type for all exact numbers."""
    if isinstance(value, dict):
        return {name: typed(part) for name, part in sorted(value.items())}
    if isinstance(value, list):
        return [typed(part) for part in value]
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return "exact number", f"{Decimal(value).normalize():f}"
    return type(value).__name__, value


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_we_read_variants_within_structs_arrays_and_maps(spark: SparkSession, tmp_path: Path, mode: str):
    table = tmp_path / "table"
    properties = SHREDDED.removesuffix(")") + f", 'delta.columnMapping.mode' = '{mode}')"
    event = 'parse_json(format_string(\'{"a":%d,"b":"%s"}\', id, id))'
    spark.sql(
        f"CREATE TABLE delta.`{table}` USING delta {properties} AS SELECT id, "
        f"named_struct('event', {event}, 'inner', named_struct('v', {event})) AS s, "
        f"array({event}, NULL, parse_json('null')) AS l, map('key', {event}, 'none', NULL) AS m "
        "FROM range(0, 20, 1, 1)"
    )
    if mode != "none":
        spark.sql(f"ALTER TABLE delta.`{table}` RENAME COLUMN s.inner TO renamed")
    inner = "renamed" if mode != "none" else "inner"

    paths = {"id": "id", "event": "to_json(s.event)", "v": f"s.{inner}.v:a::bigint"}
    assert rows_by_us(table, paths) == rows_by_spark(spark, table, paths)

    rows = dv.read_table(str(table)).to_table().to_pylist()
    assert len(rows) == 20
    for row in rows:
        number, text = row["id"], f'{{"a":{row["id"]},"b":"{row["id"]}"}}'
        assert _text(row["s"]["event"]) == _text(row["s"][inner]["v"]) == text, number
        assert [_text(value) for value in row["l"]] == [text, None, "null"], number
        assert [(key, _text(value)) for key, value in row["m"]] == [("key", text), ("none", None)], number


def _text(variant: dict[str, bytes] | None) -> str | None:
    return variant and dv.Variant(variant["metadata"], variant["value"]).to_json()
