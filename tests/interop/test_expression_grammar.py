"""2,000 random expressions of the whole grammar have the values, the types and the errors of Spark."""

from __future__ import annotations

from collections import Counter

import pytest
from pyspark.sql import SparkSession
from support.expression_grammar import BUNDLE, Expressions, Here, There, compare

pytestmark = pytest.mark.nightly
ZONE = "spark.sql.session.timeZone"


@pytest.mark.parametrize(("seed", "zone"), [(1, "UTC"), (2, "Australia/Adelaide")])
def test_random_expressions_mean_what_they_mean_in_spark(spark: SparkSession, seed: int, zone: str):
    before = spark.conf.get(ZONE)
    try:
        there, here, found = There(spark, zone), Here(zone), Counter[str]()
        expressions = Expressions(seed)
        different = []
        for _ in range(1000 // BUNDLE):
            texts = [expressions.draw() for _ in range(BUNDLE)]
            different += compare(texts, here, there, found)
    finally:
        spark.conf.set(ZONE, before)
    assert different == []
    # The comparison is of values, not of errors.
    assert found["equal"] > 400
