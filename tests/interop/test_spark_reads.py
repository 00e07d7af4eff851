"""Spark reads every value of the tables that we write."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from interop.corpus import CORPORA, json_table, read_lines, write_texts
from interop.tables import in_order, load, rows_by_spark, rows_by_us
from pyspark.sql import DataFrame, SparkSession
from support.tables import read_actions

import delta_variant as dv

# Shredding with numeric="value" keeps a number's value and may change its type within the exact numbers.
TYPES = r"regexp_replace(schema_of_variant({}), 'BIGINT|DECIMAL\\(\\d+,\\d+\\)', 'NUMBER')"

READERS = [(vectorized, pushed) for vectorized in (True, False) for pushed in (True, False)]
VECTORIZED, PUSHED = "spark.sql.parquet.enableVectorizedReader", "spark.sql.variant.pushVariantIntoScan"

EVENTS = ['{"a": 1, "b": {"c": "x"}}', '{"a": 2.5, "b": {"c": "y"}}', '{"a": "z"}', "[1, null]", "null", None]


@pytest.mark.usefixtures("small_files_are_shredded")
@pytest.mark.parametrize("shredding", ["infer", None])
@pytest.mark.parametrize("name", CORPORA)
def test_spark_reads_every_value_as_its_parse_json_returns_it(
    spark: SparkSession, corpora: Path, tmp_path: Path, name: str, shredding: Literal["infer"] | None
):
    lines = read_lines(corpora, name)
    table = tmp_path / "table"
    dv.write_table(str(table), json_table(lines), shredding=shredding)

    ours = load(spark, table)
    assert ours.count() == len(lines)
    assert _different_lines(ours, _parsed_by_spark(spark, lines, tmp_path)) == []


@pytest.mark.usefixtures("small_files_are_separated", "small_files_are_shredded")
def test_spark_reads_residual_files(spark: SparkSession, tmp_path: Path):
    table = tmp_path / "table"
    residual = {3: '{"x": "3"}', 5: '{"new": true, "x": 5}', 7: "7", 8: '{"x": null}'}
    lines = [residual.get(number, f'{{"x": {number}}}') for number in range(200)]
    result = dv.write_table(str(table), json_table(lines))
    assert [(file.is_residual, file.rows) for file in result.files] == [(False, 197), (True, 3)]
    expected = [{"line": number, "text": line.replace(" ", "")} for number, line in enumerate(lines)]
    columns = {"line": "line", "text": "to_json(event)"}
    assert rows_by_spark(spark, table, columns) == in_order(expected)
    # Spark rewrites files of both kinds.
    spark.sql(f"DELETE FROM delta.`{table}` WHERE line IN (1, 3)")
    left = [row for row in expected if row["line"] not in (1, 3)]
    assert rows_by_spark(spark, table, columns) == rows_by_us(table, columns) == in_order(left)


def test_spark_reads_rare_fields_with_columns_without_typed_values(spark: SparkSession, tmp_path: Path):
    """Inference gives rare objects and arrays such columns, and keeps their values in `value`."""
    rare = {1: {"account": {"active": True}}, 2: {"list": [1, "a"]}, 3: {"count": 3}, 4: {"none": None}}
    rows = [{"n": number, **rare.get(number % 50, {})} for number in range(200)]
    texts = [json.dumps(row, separators=(",", ":"), sort_keys=True) for row in rows]
    spec = {"n": pa.int64(), "count": pa.int64(), **dict.fromkeys(("account", "list", "none"), pa.string())}
    result = dv.write_table(tmp_path / "t", json_table(texts), shredding=dv.ShreddingSchema.of(spec))
    (file,) = result.files
    assert {path.path[0]: (path.typed, path.values) for path in file.variants["event"]} == {
        "account": (0, 4),
        "count": (4, 0),
        "list": (0, 4),
        "n": (200, 0),
        "none": (0, 4),
    }
    columns = {"line": "line", "text": "to_json(event)", "active": "event:account.active::boolean"}
    expected = [
        {"line": line, "text": text, "active": True if line % 50 == 1 else None}
        for line, text in enumerate(texts)
    ]
    assert rows_by_spark(spark, tmp_path / "t", columns) == in_order(expected)
    assert rows_by_us(tmp_path / "t", columns) == in_order(expected)


def test_spark_reads_variants_without_annotation(spark: SparkSession, tmp_path: Path):
    data = pa.table({"id": range(len(EVENTS)), "event": pa.array(EVENTS, pa.json_())})
    dv.write_table(tmp_path / "t", data, shredding=None, files=dv.FileOptions(annotate=False))
    found = load(spark, tmp_path / "t").selectExpr("id", "to_json(event) as event").orderBy("id").collect()
    read = [row.event and json.loads(row.event) for row in found]
    assert read == [text and json.loads(text) for text in EVENTS]


def test_spark_finds_rows_with_nan_which_is_greater_than_all_numbers(spark: SparkSession, tmp_path: Path):
    nan = float("nan")
    data = {"id": [0, 1, 2], "f": [1.0, nan, 7.0], "g": pa.array([nan, 1.0, 7.0], pa.float32())}
    dv.write_table(tmp_path, pa.table(data))
    found = {
        condition: sorted(row.id for row in load(spark, tmp_path).where(condition).collect())
        for condition in ("f > 100", "f <> 1", "g >= double('NaN')", "not (g <= 5)")
    }
    assert found == {"f > 100": [1], "f <> 1": [1, 2], "g >= double('NaN')": [0], "not (g <= 5)": [0, 2]}


@pytest.mark.parametrize(("vectorized", "pushed"), READERS)
def test_all_readers_of_spark_agree_on_our_paths(
    spark: SparkSession,
    configured: Callable[[str, str], None],
    corpora: Path,
    tmp_path: Path,
    vectorized: bool,
    pushed: bool,
):
    lines = read_lines(corpora, "github_webhooks")
    table = tmp_path / "table"
    dv.write_table(str(table), json_table(lines))
    configured(VECTORIZED, str(vectorized).lower())
    configured(PUSHED, str(pushed).lower())

    parsed = [json.loads(line) for line in lines]
    found = load(spark, table).selectExpr(
        "line",
        "event:sender.id::bigint AS id",
        "event:sender.login::string AS login",
        "event:action AS action",
    )
    expected = [
        (line, sender.get("id"), sender.get("login"), value.get("action"))
        for line, value in enumerate(parsed)
        for sender in [value.get("sender", {})]
    ]
    rows = found.selectExpr("line", "id", "login", "action::string").collect()
    assert sorted(map(tuple, rows), key=str) == sorted(expected, key=str)


def test_spark_distinguishes_names_that_differ_only_in_case(spark: SparkSession, tmp_path: Path):
    lines = ['{"ID": 1, "Id": "two", "x": {"a": 1, "A": 2}}'] * 3
    schema = dv.ShreddingSchema.of({"ID": pa.int64(), "Id": pa.string(), "x": {"a": pa.int64(), "A": None}})
    dv.write_table(str(tmp_path / "table"), json_table(lines), shredding=schema)

    paths = {name.replace(".", ""): f"event:{name}::string" for name in ("ID", "Id", "x.a", "x.A")}
    found = load(spark, tmp_path / "table").selectExpr(*paths.values(), "to_json(event)").distinct()
    assert [tuple(row) for row in found.collect()] == [
        ("1", "two", "1", "2", '{"ID":1,"Id":"two","x":{"A":2,"a":1}}')
    ]


@pytest.mark.usefixtures("small_files_are_shredded")
@pytest.mark.parametrize("shredding", ["infer", None])
@pytest.mark.parametrize("name", ["g_types", "g_scalar", "g_names", "g_missing"])
def test_spark_reads_back_its_own_values_of_every_type_from_our_table(
    spark: SparkSession,
    unpack_table: Callable[[str], Path],
    tmp_path: Path,
    name: str,
    shredding: Literal["infer"] | None,
):
    original = unpack_table(name)
    dv.write_table(str(tmp_path / "ours"), dv.read_table(str(original)), shredding=shredding)

    columns = [name for name, kind in load(spark, original).dtypes if kind == "variant"]
    selected = {
        f"{what}{index}": expression.format(f"`{column}`")
        for index, column in enumerate(columns)
        for what, expression in (("text", "to_json({})"), ("types", TYPES))
    }
    assert rows_by_spark(spark, tmp_path / "ours", selected) == rows_by_spark(spark, original, selected)


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_spark_reads_variants_within_structs_arrays_and_maps(spark: SparkSession, tmp_path: Path, mode: str):
    table = tmp_path / "table"
    dv.write_table(str(table), _nested(), configuration={"delta.columnMapping.mode": mode})

    texts = {
        "id": "id",
        "s": "to_json(s.event)",
        "l": "transform(l, each -> to_json(each))",
        "m": "transform_values(m, (key, each) -> to_json(each))",
    }
    assert rows_by_spark(spark, table, texts) == [
        {"id": 1, "s": '{"a":1}', "l": ['{"a":1}'], "m": {"a": '{"a":1}'}},
        {"id": 2, "s": "2", "l": ["2"], "m": {"b": "2"}},
        {"id": 3, "s": None, "l": [None], "m": {"c": None}},
    ]


@pytest.mark.parametrize(("vectorized", "pushed"), READERS)
def test_spark_reads_ordinary_columns_of_every_type_and_encoding(
    spark: SparkSession,
    configured: Callable[[str, str], None],
    tmp_path: Path,
    vectorized: bool,
    pushed: bool,
):
    table = tmp_path / "table"
    columns = _ordinary_columns(5_000)
    dv.write_table(str(table), columns)
    [file] = table.glob("*.parquet")
    group = pq.read_metadata(file).row_group(0)
    used = {encoding for index in range(group.num_columns) for encoding in group.column(index).encodings}
    assert {"DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY"} <= used

    configured(VECTORIZED, str(vectorized).lower())
    configured(PUSHED, str(pushed).lower())
    texts = [name for name in columns.column_names if name not in ("event", "binary")]
    found = (
        load(spark, table).selectExpr(*texts, "hex(binary) AS binary", "to_json(event) AS event").toArrow()
    )
    found = found.sort_by("long")
    for name in texts:
        assert found[name].to_pylist() == columns[name].to_pylist(), name
    assert found["binary"].to_pylist() == [
        value and value.hex().upper() for value in columns["binary"].to_pylist()
    ]
    assert found["event"].to_pylist() == [
        value and json.dumps(json.loads(value), separators=(",", ":"))
        for value in columns["event"].to_pylist()
    ]


@pytest.mark.parametrize(
    "configuration",
    [
        {"delta.columnMapping.mode": "name"},
        {"delta.columnMapping.mode": "id"},
        {"delta.enableInCommitTimestamps": "true"},
        {"delta.enableRowTracking": "true"},
        {"delta.enableDeletionVectors": "true"},
        {"delta.checkpointPolicy": "v2"},
        {"delta.appendOnly": "true"},
    ],
    ids=lambda configuration: next(iter(configuration)),
)
def test_spark_reads_and_appends_to_a_partitioned_table_of_ours(
    spark: SparkSession, tmp_path: Path, configuration: dict[str, str]
):
    table = tmp_path / "table"
    dv.write_table(str(table), _partitioned(0), partition_by=["day", "kind"], configuration=configuration)
    dv.write_table(str(table), _partitioned(100), mode="append")
    columns = {"line": "line", "day": "day", "kind": "kind", "text": "to_json(event)"}

    expected = in_order(_partitioned_rows(0) + _partitioned_rows(100))
    assert rows_by_spark(spark, table, columns) == expected
    assert rows_by_us(table, columns) == expected

    spark.sql(
        f"INSERT INTO delta.`{table}` "
        "SELECT line + 200, day, kind, event FROM delta.`{table}` WHERE line < 100".format(table=table)
    )
    expected = in_order([*expected, *_partitioned_rows(200)])
    assert rows_by_us(table, columns) == expected
    assert rows_by_us(table, columns, where="kind = 'a b/c' and event:a::string = '1'") == [
        row for row in expected if row["kind"] == "a b/c" and row["text"] == '{"a":1,"b":{"c":"x"}}'
    ]

    dv.write_table(str(table), _partitioned(300), mode="append")
    assert rows_by_spark(spark, table, columns) == in_order([*expected, *_partitioned_rows(300)])


def test_spark_reads_the_row_ids_that_we_assign(spark: SparkSession, tmp_path: Path):
    table = tmp_path / "table"
    tracked = {"delta.enableRowTracking": "true"}
    dv.write_table(str(table), json_table(["1", "2"]), configuration=tracked)
    dv.write_table(str(table), json_table(["3"], 2), mode="append")
    load(spark, table).selectExpr("line + 3 AS line", "event").write.format("delta").mode("append").save(
        str(table)
    )
    dv.write_table(str(table), json_table(["7"], 6), mode="append")

    columns = {"line": "line", "id": "_metadata.row_id", "version": "_metadata.row_commit_version"}
    rows = sorted(rows_by_spark(spark, table, columns), key=lambda row: row["line"])
    assert [row["version"] for row in rows] == [0, 0, 1, 2, 2, 2, 3]
    assert sorted(row["id"] for row in rows) == list(range(7))
    assert [rows[index]["id"] for index in (0, 1, 2, 6)] == [0, 1, 2, 6]


def test_columns_that_an_append_adds_are_null_in_the_rows_before(spark: SparkSession, tmp_path: Path):
    table = tmp_path / "table"
    dv.write_table(str(table), pa.table({"line": pa.array([0], pa.int64())}))
    dv.write_table(str(table), json_table(['{"a":1}'], 1), mode="append", schema_mode="merge")

    assert rows_by_spark(spark, table, {"line": "line", "text": "to_json(event)"}) == in_order(
        [{"line": 0, "text": None}, {"line": 1, "text": '{"a":1}'}]
    )


def test_history_and_detail_report_our_operations(spark: SparkSession, tmp_path: Path):
    table = tmp_path / "table"
    dv.write_table(
        str(table), _partitioned(0), partition_by=["day"], name="events", description="what happened"
    )
    dv.write_table(str(table), _partitioned(100), mode="append")

    newest, oldest = spark.sql(f"DESCRIBE HISTORY delta.`{table}`").collect()
    assert [(row.version, row.operation) for row in (newest, oldest)] == [(1, "WRITE"), (0, "WRITE")]
    assert newest.operationParameters == {"mode": "Append", "partitionBy": '["day"]'}
    assert newest.operationMetrics == {
        "numFiles": "3",
        "numOutputRows": "12",
        "numOutputBytes": str(sum(add["size"] for add in read_actions(table, "add")[3:])),
    }
    assert (newest.readVersion, newest.isBlindAppend) == (0, True)
    assert newest.engineInfo.startswith("delta-variant/")

    [detail] = spark.sql(f"DESCRIBE DETAIL delta.`{table}`").collect()
    assert (detail.name, detail.description) == ("events", "what happened")
    assert (detail.numFiles, detail.partitionColumns) == (6, ["day"])
    assert detail.sizeInBytes == sum(add["size"] for add in read_actions(table, "add"))
    assert {"variantType", "variantShredding"} <= set(detail.tableFeatures)
    assert dict(detail.properties)["delta.enableVariantShredding"] == "true"


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM {table} WHERE line % 3 = 0",
        "UPDATE {table} SET event = parse_json('[1]') WHERE line % 3 = 0",
        "OPTIMIZE {table}",
        "ALTER TABLE {table} ADD COLUMN more VARIANT",
    ],
)
def test_we_read_our_table_after_spark_changed_it(spark: SparkSession, tmp_path: Path, change: str):
    table = tmp_path / "table"
    vectors = {"delta.enableDeletionVectors": "true"}
    dv.write_table(str(table), json_table([f'{{"a":{i}}}' for i in range(50)]), configuration=vectors)
    dv.write_table(str(table), json_table([f'{{"a":{i}}}' for i in range(50, 90)], 50), mode="append")
    spark.sql(change.format(table=f"delta.`{table}`"))

    columns = {"line": "line", "text": "to_json(event)"}
    theirs = rows_by_spark(spark, table, columns)
    assert rows_by_us(table, columns) == theirs
    assert dv.load_snapshot(str(table)).version == 2

    dv.write_table(str(table), json_table(['"new"'], 90), mode="append")
    theirs = in_order([*theirs, {"line": 90, "text": '"new"'}])
    assert rows_by_spark(spark, table, columns) == rows_by_us(table, columns) == theirs


def _parsed_by_spark(spark: SparkSession, lines: list[str], folder: Path) -> DataFrame:
    texts = spark.read.schema("line BIGINT, text STRING").json(
        str(write_texts(lines, folder / "texts.ndjson"))
    )
    return texts.selectExpr("line", "parse_json(text) AS event")


def _different_lines(ours: DataFrame, expected: DataFrame) -> list[tuple[int, str, str]]:
    """Return some of the lines whose text differs, or whose types differ other than in exact numbers."""
    joined = ours.alias("ours").join(expected.alias("theirs"), "line", "full_outer")
    both = joined.selectExpr(
        "line",
        "to_json(ours.event) AS ours",
        "to_json(theirs.event) AS theirs",
        f"{TYPES.format('ours.event')} AS our_types",
        f"{TYPES.format('theirs.event')} AS their_types",
    )
    different = both.where("NOT (ours <=> theirs AND our_types <=> their_types)").limit(3)
    return [tuple(row) for row in different.collect()]


def _partitioned(first: int) -> pa.Table:
    rows = _partition_keys(first)
    return pa.table(
        {
            "line": pa.array([line for line, _, _, _ in rows], pa.int64()),
            "day": pa.array([day for _, day, _, _ in rows], pa.date32()),
            "kind": pa.array([kind for _, _, kind, _ in rows], pa.string()),
            "event": pa.array([event for _, _, _, event in rows], pa.json_()),
        }
    )


def _partition_keys(first: int) -> list[tuple[int, dt.date | None, str | None, str | None]]:
    days, kinds = (dt.date(2026, 2, 28), dt.date(1, 1, 1), None), ("a b/c", "ä=%20:", None, "1")
    return [
        (first + i, days[i % 3], kinds[i % 4], EVENTS[i % len(EVENTS)]) for i in range(len(days) * len(kinds))
    ]


def _partitioned_rows(first: int) -> list[dict[str, object]]:
    return [
        {
            "line": line,
            "day": day,
            "kind": kind,
            "text": event and json.dumps(json.loads(event), separators=(",", ":")),
        }
        for line, day, kind, event in _partition_keys(first)
    ]


def _nested() -> pa.Table:
    """Return three rows with a Variant in a struct, in an array and in a map."""
    variants = dv.parse_json(['{"a":1}', "2", None])
    marked = {"ARROW:extension:name": "arrow.parquet.variant", "ARROW:extension:metadata": ""}

    def variant(name: str) -> pa.Field:
        return pa.field(name, variants.type, metadata=marked)

    offsets = pa.array(range(4), pa.int32())
    struct = pa.StructArray.from_arrays([variants], fields=[variant("event")])
    array = pa.ListArray.from_arrays(offsets, variants, type=pa.list_(variant("element")))
    keyed = pa.map_(pa.string(), variant("value"))
    mapped = pa.MapArray.from_arrays(offsets, pa.array(["a", "b", "c"]), variants, type=keyed)
    return pa.table({"id": pa.array([1, 2, 3], pa.int64()), "s": struct, "l": array, "m": mapped})


def _ordinary_columns(count: int) -> pa.Table:
    """Return a column of each Delta type, with nulls, and text of high and low cardinality."""
    moment = dt.datetime(1969, 12, 31, 23, 59, 59, 999_999)

    def column(arrow_type: pa.DataType, value: Callable[[int], object]) -> pa.Array:
        return pa.array([None if i % 7 == 3 else value(i) for i in range(count)], arrow_type)

    return pa.table(
        {
            "long": pa.array(range(count), pa.int64()),
            "scattered": column(pa.int64(), lambda i: (i * 0x9E3779B97F4A7C15) % 2**63 * (-1) ** i),
            "integer": column(pa.int32(), lambda i: i * 7919 * (-1) ** i),
            "short": column(pa.int16(), lambda i: i % 3),
            "byte": column(pa.int8(), lambda i: i % 128 - 128),
            "float": column(pa.float32(), lambda i: i / 4),
            "double": column(pa.float64(), lambda i: i / 3),
            "boolean": column(pa.bool_(), lambda i: i % 2 == 0),
            "text": column(pa.string(), lambda i: f"text {i} é"),
            "few": column(pa.string(), lambda i: f"few {i % 5}"),
            "binary": column(pa.binary(), lambda i: bytes([i % 256, 0, 255])),
            "date": column(pa.date32(), lambda i: dt.date(1900, 1, 1) + dt.timedelta(days=i * 13)),
            "ntz": column(pa.timestamp("us"), lambda i: moment + dt.timedelta(microseconds=i)),
            "decimal9": column(pa.decimal128(9, 2), lambda i: Decimal(i - 2_500) / 100),
            "decimal18": column(pa.decimal128(18, 4), lambda i: Decimal(i * 10**12) / 10_000),
            "decimal38": column(pa.decimal128(38, 10), lambda i: -Decimal(i * 10**24) / 10**10),
            "event": pa.array(
                [None if i % 7 == 3 else f'{{"a":{i},"b":"text {i}","c":[{i % 2}]}}' for i in range(count)],
                pa.json_(),
            ),
        }
    )
