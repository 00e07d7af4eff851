"""The functions of Variants against those of the newest Spark: checked-in answers, and random values."""

from __future__ import annotations

import json
import random

import pyarrow as pa
import pytest
from spark import function_cases

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
