"""The functions of Variants against those of the newest Spark: checked-in answers, and random values."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa
import pytest
from spark import function_cases

import delta_variant as dv
from delta_variant import functions

CHANGES = {
    "variant_insert": functions.try_variant_insert,
    "variant_set": functions.try_variant_set,
    "variant_array_append": functions.try_variant_array_append,
}


@pytest.fixture
def newest_spark(spark):
    if tuple(map(int, spark.version.split(".")[:2])) < (4, 3):
        pytest.skip("Spark has the functions since 4.3")
    return spark


def test_the_checked_in_answers_are_those_of_spark(newest_spark):
    expected = json.loads(function_cases.ANSWERS.read_text(encoding="utf-8"))
    texts = [text for text, _ in expected]
    assert texts == list(function_cases.expressions())
    # Each expression is a query of its own, so that an error is that of one.
    chosen = random.Random(7).sample(expected, 150)
    assert [answer for _, answer in chosen] == function_cases.answers(
        newest_spark, [text for text, _ in chosen]
    )


@pytest.mark.parametrize("name", CHANGES)
def test_random_changes_have_the_results_of_spark(newest_spark, name):
    source = random.Random(name)
    paths = [function_cases.random_path(source) for _ in range(40)]
    documents = [json.dumps(function_cases.random_document(source)) for _ in range(300)]
    rows = newest_spark.createDataFrame([(text,) for text in documents], "text string")
    columns = [
        f"to_json(try_{name}(parse_json(text), '{path}', 'new')) as c{n}" for n, path in enumerate(paths)
    ]
    found = rows.selectExpr(*columns).collect()
    variants = functions.parse_json(documents)
    for position, path in enumerate(paths):
        ours = functions.to_json(CHANGES[name](variants, path, "new")).to_pylist()
        assert ours == [row[position] for row in found], path


def test_random_values_have_the_schemas_of_spark(newest_spark):
    source = random.Random(3)
    documents = [json.dumps(function_cases.random_document(source)) for _ in range(1000)]
    rows = newest_spark.createDataFrame([(text,) for text in documents], "text string")
    found = rows.selectExpr("schema_of_variant(parse_json(text))").collect()
    variants = functions.parse_json(pa.array(documents))
    assert functions.schema_of_variant(variants).to_pylist() == [row[0] for row in found]
    (merged,) = rows.selectExpr("schema_of_variant_agg(parse_json(text))").first()
    assert functions.schema_of_variant_agg(variants) == merged


def as_python(value: Any) -> Any:
    """Return a value of Spark or Arrow with structs and maps as dicts."""
    if isinstance(value, dict):
        return {name: as_python(part) for name, part in value.items()}
    if hasattr(value, "asDict"):
        return as_python(value.asDict())
    is_map = isinstance(value, list) and value and all(type(entry) is tuple for entry in value)
    if is_map:
        return {key: as_python(part) for key, part in value}
    return [as_python(part) for part in value] if isinstance(value, list) else value


@pytest.mark.parametrize("shredding", [None, "all", "some"])
def test_random_types_are_extracted_as_by_spark(newest_spark, tmp_path, shredding):
    source = random.Random(11)
    documents = [json.dumps(function_cases.random_document(source)) for _ in range(400)]
    types = ["struct<a: string, b: struct<a: bigint, c: array<string>>, d: map<string,string>>"]
    types += [function_cases.random_type(source) for _ in range(40)]
    rows = newest_spark.createDataFrame(list(enumerate(documents)), "id int, text string")
    texts = [(path, type_) for type_ in types for path in ("$", "$.a", "$.b.a", "$[1]")]
    columns = [f"try_variant_get(parse_json(text), '{path}', '{type_}')" for path, type_ in texts]
    found = rows.orderBy("id").selectExpr(*(f"{text} as c{n}" for n, text in enumerate(columns))).collect()
    table = pa.table({"id": range(400), "v": pa.array(documents, pa.json_())})
    schemas = {
        "all": {
            "a": {"a": pa.int64(), "b": [pa.string()]},
            "b": {"a": {"a": pa.int64()}, "c": pa.bool_()},
            "c": [{"a": pa.int64(), "c": pa.string()}],
            "d": None,
        },
        "some": {"a": pa.int64(), "b": {"a": pa.string()}, "d": [[pa.int64()]]},
    }
    schema = dv.ShreddingSchema.of(schemas[shredding]) if shredding else None
    dv.write_table(tmp_path / "t", table, shredding=schema)
    ours = dv.read_table(
        tmp_path / "t",
        columns={f"c{n}": text.replace("parse_json(text)", "v") for n, text in enumerate(columns)},
    ).to_table()
    for position, text in enumerate(columns):
        expected = [as_python(row[position]) for row in found]
        is_map = "map<" in text
        value = [as_python(each) for each in ours.column(position).to_pylist()]
        if is_map:
            # An empty map is an empty list in Arrow.
            value, expected = (json.loads(json.dumps(each).replace("{}", "[]")) for each in (value, expected))
        assert value == expected, text
