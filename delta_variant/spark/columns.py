"""Columns between Spark and Delta: schemas by their JSON, which both write alike, and batches of Arrow."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType as SparkStruct

from delta_variant import schema
from delta_variant.data_types import (
    VARIANT,
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from delta_variant.errors import SchemaError

__all__ = ["for_spark", "from_spark", "quoted", "to_spark"]

COMMENT = "comment"
STRING = PrimitiveType("string")


def from_spark(spark_schema: SparkStruct, variant_columns: Collection[str] = ()) -> StructType:
    """Return the Delta schema of a DataFrame, with a Variant for each column of `variant_columns`.

    All is nullable, as in the tables that Delta's own writer creates: Spark says of most data by chance that
    it is not null. Of the fields' metadata only comments are kept. Raises SchemaError for types that Delta
    does not have, and for columns that cannot become Variants.
    """
    columns = schema.parse(spark_schema.json())
    if missing := set(variant_columns) - {field.name for field in columns.fields}:
        raise SchemaError(f"variant_columns names {', '.join(sorted(missing))}, which the data does not have")
    fields = (_plain_field(field) for field in columns.fields)
    return StructType(
        tuple(_as_variant(field) if field.name in variant_columns else field for field in fields)
    )


def to_spark(columns: StructType) -> SparkStruct:
    """Return the schema of a DataFrame that has the columns."""
    plain = StructType(tuple(_plain_field(field) for field in columns.fields))
    return SparkStruct.fromJson(json.loads(schema.to_json(plain)))


def quoted(name: str) -> str:
    """Return a column's name as SQL text."""
    return "`" + name.replace("`", "``") + "`"


def for_spark(batches: Iterator[pa.RecordBatch], columns: StructType) -> Iterator[pa.RecordBatch]:
    """Yield batches as Spark takes them from Python: it takes the first part of a Variant for `value`."""
    names = [field.name for field in columns.fields]
    for batch in batches:
        arrays = [
            _for_spark(array, field.type) for array, field in zip(batch.columns, columns.fields, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, names=names)


def _for_spark(array: Any, data_type: DataType) -> Any:
    if data_type == VARIANT:
        parts = [pc.struct_field(array, [name]) for name in ("value", "metadata")]
        return pa.StructArray.from_arrays(parts, ["value", "metadata"], mask=array.is_null())
    if isinstance(data_type, PrimitiveType):
        return array
    if isinstance(data_type, StructType):
        parts = [
            _for_spark(pc.struct_field(array, [index]), field.type)
            for index, field in enumerate(data_type.fields)
        ]
        return pa.StructArray.from_arrays(
            parts, [field.name for field in data_type.fields], mask=array.is_null()
        )
    array = pa.concat_arrays([array])
    if isinstance(data_type, ArrayType):
        values = _for_spark(array.values, data_type.element_type)
        return pa.ListArray.from_arrays(array.offsets, values, mask=array.is_null())
    items = _for_spark(array.items, data_type.value_type)
    map_type: Any = pa.map_(array.type.key_type, items.type)
    return pa.MapArray.from_arrays(array.offsets, array.keys, items, type=map_type, mask=array.is_null())


def _as_variant(field: StructField) -> StructField:
    if field.type not in (STRING, VARIANT):
        raise SchemaError(
            f"the column {field.name} cannot become a Variant: it is {schema.describe(field.type)}, "
            "neither JSON text nor VARIANT"
        )
    return replace(field, type=VARIANT)


def _plain_field(field: StructField) -> StructField:
    comment = {COMMENT: field.metadata[COMMENT]} if COMMENT in field.metadata else {}
    return StructField(field.name, _plain(field.type), True, comment)


def _plain(data_type: DataType) -> DataType:
    if isinstance(data_type, StructType):
        return StructType(tuple(_plain_field(field) for field in data_type.fields))
    if isinstance(data_type, ArrayType):
        return ArrayType(_plain(data_type.element_type))
    if isinstance(data_type, MapType):
        return MapType(_plain(data_type.key_type), _plain(data_type.value_type))
    return data_type
