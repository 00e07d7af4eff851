"""Spark with Delta opens the tables that docs/reference/interoperability.md lists."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from support import interoperability


@pytest.mark.parametrize("kind", interoperability.KINDS)
def test_spark_opens_the_tables_that_the_page_lists(spark: SparkSession, kind: str, tmp_path: Path):
    def read(table: Path) -> Any:
        frame = spark.read.format("delta").load(str(table))
        assert frame.schema["event"].dataType.typeName() == "variant"
        ((text,),) = frame.selectExpr("to_json(event)").collect()
        return json.loads(text)

    interoperability.write(tmp_path / "t", kind)
    found = interoperability.outcome(read, tmp_path / "t")
    assert found == interoperability.expected("Spark with Delta")[kind]
