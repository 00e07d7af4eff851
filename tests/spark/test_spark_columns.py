"""Schemas of tables as schemas of Spark, and the reverse."""

from __future__ import annotations

import pytest
from pyspark.sql.types import ArrayType, BinaryType, GeometryType, LongType, StringType, StructField
from pyspark.sql.types import StructType as StructSchema

from delta_variant.errors import SchemaError
from delta_variant.protocol.schema.json_text import parse as parse_schema
from delta_variant.protocol.types import VARIANT
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


def test_a_name_of_several_columns_is_ambiguous_unless_case_matters():
    columns = StructSchema([StructField(name, StringType()) for name in ("Value", "value", "other")])
    with pytest.raises(SchemaError, match=r"names 'VALUE', which is ambiguous: .* 'Value', 'value'"):
        from_spark(columns, ["VALUE"])
    chosen = from_spark(columns, ["value"], case_sensitive=True)
    assert [field.name for field in chosen.fields if field.type == VARIANT] == ["value"]
    assert from_spark(columns, ["OTHER"]).fields[2].type == VARIANT
