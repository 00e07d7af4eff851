"""Conversion of schemas and Arrow batches between Spark and Delta; both use the same schema JSON."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType as SparkStruct

from ..errors import SchemaError
from ..protocol.schema.char_types import TYPE_TEXT
from ..protocol.schema.json_text import parse as parse_schema
from ..protocol.schema.json_text import to_json as schema_to_json
from ..protocol.types import (
    COMMENT,
    VARIANT,
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    is_geospatial,
    primitives_of,
)
from ..protocol.types import describe as describe_type
from .versions import arrow_schema

STRING = PrimitiveType("string")
BINARY = PrimitiveType("binary")


def from_spark(
    spark_schema: SparkStruct, variant_columns: Collection[str] = (), *, case_sensitive: bool = False
) -> StructType:
    """Return the Delta schema of a DataFrame, with a Variant for each column of `variant_columns`.

    `variant_columns` ignores case unless `case_sensitive` is set, as a Spark session does.
    All fields are nullable, as in tables that Delta's own writer creates, because Spark infers most fields as
    not null by accident. Of the fields' metadata only comments are kept. Raises SchemaError for types that
    Delta does not have, and for columns that cannot become Variants.
    """
    columns = parse_schema(spark_schema.json())
    _check_writable(columns)
    key = str if case_sensitive else str.lower
    chosen = {key(name): name for name in variant_columns}
    if missing := chosen.keys() - {key(field.name) for field in columns.fields}:
        name = min(chosen[each] for each in missing)
        raise SchemaError(f"variant_columns names {name!r}, but the data has no such column", column=name)
    names = [field.name for field in columns.fields if key(field.name) in chosen]
    if ambiguous := [name for name in names if [key(each) for each in names].count(key(name)) > 1]:
        name = chosen[key(ambiguous[0])]
        raise SchemaError(
            f"variant_columns names {name!r}, which is ambiguous: the data has the columns "
            f"{', '.join(map(repr, ambiguous))}",
            column=name,
        )
    fields = (_plain_field(field) for field in columns.fields)
    return StructType(tuple(_as_variant(field) if key(field.name) in chosen else field for field in fields))


def to_spark(columns: StructType) -> SparkStruct:
    """Return the columns as a DataFrame's schema; geospatial columns become binary columns of WKB.

    Spark pads what is compared with a column whose metadata has the type `char(n)`.
    """
    plain = StructType(tuple(_plain_field(field, (COMMENT, TYPE_TEXT)) for field in columns.fields))
    return SparkStruct.fromJson(json.loads(schema_to_json(plain)))


def cast_for_spark(batches: Iterable[pa.RecordBatch], spark_schema: SparkStruct) -> Iterator[pa.RecordBatch]:
    """Yield batches with exactly the Arrow types that Spark expects from Python.

    Spark takes the first field of a Variant struct as `value`. No field of the struct may be null, even if
    the Variant is.
    """
    schema = arrow_schema(spark_schema)
    for batch in batches:
        arrays = [_cast(array, field.type) for array, field in zip(batch.columns, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _cast(array: Any, target: Any) -> Any:
    if pa.types.is_struct(target):
        parts = [_part(array, part) for part in target]
        return pa.StructArray.from_arrays(parts, fields=list(target), mask=array.is_null())
    if pa.types.is_list(target):
        array = pa.concat_arrays([array])
        values = _cast(array.values, target.value_type)
        return pa.ListArray.from_arrays(array.offsets, values, type=target, mask=array.is_null())
    if pa.types.is_map(target):
        array = pa.concat_arrays([array])
        keys, items = _cast(array.keys, target.key_type), _cast(array.items, target.item_type)
        from_arrays: Any = pa.MapArray.from_arrays
        return from_arrays(array.offsets, keys, items, type=target, mask=array.is_null())
    return array.cast(target)


def _part(array: Any, part: pa.Field[Any]) -> Any:
    values: Any = pc.struct_field(array, [part.name])
    if not part.nullable and pa.types.is_binary(part.type):
        values = pc.if_else(array.is_null(), b"", values.cast(part.type))
    return _cast(values, part.type)


def _as_variant(field: StructField) -> StructField:
    if field.type not in (STRING, VARIANT):
        raise SchemaError(
            f"cannot store the column {field.name!r} as a Variant: expected JSON text or VARIANT, "
            f"got {describe_type(field.type)}",
            column=field.name,
        )
    return replace(field, type=VARIANT)


def _check_writable(columns: StructType) -> None:
    for field in columns.fields:
        if any(is_geospatial(PrimitiveType(name)) for name in primitives_of(field.type)):
            raise SchemaError(
                f"cannot write the column {field.name!r} because its type is {describe_type(field.type)}, "
                "and this version does not write geospatial types",
                column=field.name,
            )


def _plain_field(field: StructField, kept: Collection[str] = (COMMENT,)) -> StructField:
    metadata = {name: field.metadata[name] for name in kept if name in field.metadata}
    return StructField(field.name, _plain(field.type), True, metadata)


def _plain(data_type: DataType) -> DataType:
    if isinstance(data_type, StructType):
        return StructType(tuple(_plain_field(field) for field in data_type.fields))
    if isinstance(data_type, ArrayType):
        return ArrayType(_plain(data_type.element_type))
    if isinstance(data_type, MapType):
        return MapType(_plain(data_type.key_type), _plain(data_type.value_type))
    return BINARY if is_geospatial(data_type) else data_type
