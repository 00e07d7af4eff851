"""`delta_variant.spark.sql` and `read_table` have the rows, the columns and the errors of Spark."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from interop.conftest import HAS_DELTA
from pyspark.sql import SparkSession
from spark.listed_queries import Group, Tables, differences, groups


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tables]:
    if not HAS_DELTA:
        pytest.skip("Delta has no JARs for this version of PySpark")
    found = Tables(spark, tmp_path_factory.mktemp("listed"))
    yield found
    found.drop()


@pytest.mark.nightly
@pytest.mark.parametrize("group", groups("listed_queries.sql"), ids=lambda group: group.name)
def test_listed_queries_have_the_outcome_that_they_have_in_spark(tables: Tables, group: Group):
    assert list(differences(tables, group)) == []
