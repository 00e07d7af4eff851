"""Schemas of tables as schemas of Spark, and the reverse."""

from __future__ import annotations

import pytest
from pyspark.sql.types import ArrayType, BinaryType, GeometryType, LongType, StructField
from pyspark.sql.types import StructType as StructSchema

from delta_variant.errors import SchemaError
from delta_variant.protocol.schema.json_text import parse as parse_schema
from delta_variant.spark.columns import from_spark, to_spark


def test_spark_reads_geospatial_columns_as_wkb_and_writes_none():
    columns = parse_schema(
        StructSchema([StructField("g", ArrayType(GeometryType(4326))), StructField("id", LongType())]).json()
    )
    assert to_spark(columns) == StructSchema(
        [StructField("g", ArrayType(BinaryType())), StructField("id", LongType())]
    )
    with pytest.raises(SchemaError, match="its type is array<geometry"):
        from_spark(StructSchema([StructField("g", ArrayType(GeometryType(4326)))]))
