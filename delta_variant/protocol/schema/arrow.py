"""Delta types as Arrow types and back.

A Variant is `struct<metadata: binary not null, value: binary not null>`, and its field has the extension name
`arrow.parquet.variant` in its metadata. The extension type itself is never registered.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.types as arrow_types

from ..._arrow import is_any_binary, is_any_text
from ..._checks import list_names
from ...errors import SchemaError
from ...variant.values import EXTENSION, VARIANT_TYPE
from ..types import (
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    decimal_of,
    is_geospatial,
)
from .column_mapping import COLUMN_ID
from .json_text import check_levels

EXTENSION_NAME = b"ARROW:extension:name"
EXTENSION_METADATA = b"ARROW:extension:metadata"
FIELD_ID = b"PARQUET:field_id"
VARIANT_EXTENSIONS = ("arrow.json", "arrow.parquet.variant")


TO_ARROW: Mapping[str, pa.DataType] = MappingProxyType(
    {
        "string": pa.string(),
        "long": pa.int64(),
        "integer": pa.int32(),
        "short": pa.int16(),
        "byte": pa.int8(),
        "float": pa.float32(),
        "double": pa.float64(),
        "boolean": pa.bool_(),
        "binary": pa.binary(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "timestamp_ntz": pa.timestamp("us"),
        "variant": VARIANT_TYPE,
        "void": pa.null(),
    }
)

# Unsigned integers become the next wider type, so that every value fits; deltalake keeps the width.
FROM_ARROW: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (arrow_types.is_int8, "byte"),
    (arrow_types.is_int16, "short"),
    (arrow_types.is_int32, "integer"),
    (arrow_types.is_int64, "long"),
    (arrow_types.is_uint8, "short"),
    (arrow_types.is_uint16, "integer"),
    (arrow_types.is_uint32, "long"),
    (arrow_types.is_uint64, "decimal(20,0)"),
    (arrow_types.is_float16, "float"),
    (arrow_types.is_float32, "float"),
    (arrow_types.is_float64, "double"),
    (arrow_types.is_boolean, "boolean"),
    (is_any_text, "string"),
    (is_any_binary, "binary"),
    (arrow_types.is_fixed_size_binary, "binary"),
    (arrow_types.is_date, "date"),
    (arrow_types.is_null, "void"),
)
MAX_PRECISION = 38
WITHOUT_STORAGE = ("arrow.opaque", "pandas.period")
"""Extension types whose stored numbers or bytes have another meaning than the values."""


def is_variant(field: pa.Field[Any]) -> bool:
    """Return whether an Arrow field is marked as a Variant: as Variant bytes, or as JSON text to convert."""
    name = (
        getattr(field.type, "extension_name", None)
        or (field.metadata or {}).get(EXTENSION_NAME, b"").decode()
    )
    return name in VARIANT_EXTENSIONS


def storage_of(arrow_type: pa.DataType) -> pa.DataType:
    """Return the type inside extension types, dictionaries and run-end encoding."""
    while True:
        if isinstance(arrow_type, pa.BaseExtensionType):
            arrow_type = arrow_type.storage_type
        elif arrow_types.is_dictionary(arrow_type) or arrow_types.is_run_end_encoded(arrow_type):
            arrow_type = arrow_type.value_type
        else:
            return arrow_type


def from_arrow(schema: pa.Schema, variant_columns: Collection[str] = ()) -> StructType:
    """Return the Delta schema of Arrow data.

    A field with one of the extensions `arrow.json` and `arrow.parquet.variant` is a Variant at any depth, and
    so is a column in `variant_columns`, by its exact name. Timestamps of any unit become microseconds, with a
    time zone `timestamp`, without one `timestamp_ntz`. Unsigned integers become the next wider type. A column
    of type null becomes `void`. Raises SchemaError for a column of a type that Delta does not have.
    """
    unknown = set(variant_columns) - set(schema.names)
    if unknown:
        names = ", ".join(map(repr, sorted(unknown)))
        raise SchemaError(
            f"variant_columns names columns that the data does not have: {names}; its columns are "
            f"{list_names(schema.names)}",
            column=min(unknown),
        )
    columns = StructType(tuple(_from_field(field, (), variant_columns) for field in schema))
    check_levels(columns)
    return columns


def to_arrow(schema: StructType, *, field_ids: bool = False) -> pa.Schema:
    """Return the Arrow schema of `schema`; `field_ids` adds column mapping ids as Parquet field ids."""
    return pa.schema([_to_field(field, field_ids) for field in schema.fields])


def to_arrow_type(data_type: DataType, *, field_ids: bool = False) -> pa.DataType:
    if isinstance(data_type, StructType):
        return pa.struct([_to_field(child, field_ids) for child in data_type.fields])
    if isinstance(data_type, ArrayType):
        return pa.list_(_part("element", data_type.element_type, data_type.contains_null, field_ids))
    if isinstance(data_type, MapType):
        key: Any = _part("key", data_type.key_type, False, field_ids)
        value: Any = _part("value", data_type.value_type, data_type.value_contains_null, field_ids)
        return pa.map_(key, value)
    if is_geospatial(data_type):
        return pa.binary()
    decimal = decimal_of(data_type)
    return pa.decimal128(*decimal) if decimal else TO_ARROW[data_type.name]


def variant_field(name: str, *, nullable: bool = True) -> pa.Field[Any]:
    return _to_field(StructField(name, VARIANT, nullable), field_ids=False)


def field_id(field: StructField) -> int | None:
    """Return the Parquet field id of `field`, which column mapping assigns, or None."""
    column_id = field.metadata.get(COLUMN_ID)
    return column_id if isinstance(column_id, int) else None


def _to_field(field: StructField, field_ids: bool) -> pa.Field[Any]:
    metadata: dict[bytes, bytes] = {}
    if field.type == VARIANT:
        metadata = {**EXTENSION, EXTENSION_METADATA: b""}
    if field_ids and (column_id := field_id(field)) is not None:
        metadata[FIELD_ID] = str(column_id).encode()
    arrow_type = to_arrow_type(field.type, field_ids=field_ids)
    return pa.field(field.name, arrow_type, field.nullable, metadata or None)


def _part(name: str, data_type: DataType, nullable: bool, field_ids: bool) -> pa.Field[Any]:
    return _to_field(StructField(name, data_type, nullable), field_ids)


def _from_field(
    field: pa.Field[Any], path: tuple[str, ...], variant_columns: Collection[str] = ()
) -> StructField:
    where = (*path, field.name)
    if field.name in variant_columns or is_variant(field):
        _check_variant(field, where, field.name in variant_columns)
        return StructField(field.name, VARIANT, field.nullable)
    return StructField(field.name, _from_type(field.type, where), field.nullable)


def is_text_or_variant(field: pa.Field[Any], *, is_named: bool) -> bool:
    """Return whether a field can be a Variant column as it is: JSON text, or `struct<metadata, value>`.

    Binary is JSON text, for example a message of Kafka, only if the caller names the column.
    """
    storage = storage_of(field.type)
    if is_any_text(storage) or arrow_types.is_null(storage) or _is_variant_storage(storage):
        return True
    is_binary = _primitive_name(storage) == "binary" and not arrow_types.is_fixed_size_binary(storage)
    return is_named and is_binary


def _check_variant(field: pa.Field[Any], path: tuple[str, ...], is_named: bool) -> None:
    if is_text_or_variant(field, is_named=is_named):
        return
    name = ".".join(path)
    raise SchemaError(
        f"cannot convert the column {name!r} to Variant: expected JSON text or "
        f"struct<metadata: binary, value: binary>, got {field.type}",
        column=name,
    )


def _is_variant_storage(arrow_type: pa.DataType) -> bool:
    if not arrow_types.is_struct(arrow_type):
        return False
    parts = {part.name: _primitive_name(storage_of(part.type)) for part in arrow_type}
    return parts == {"metadata": "binary", "value": "binary"}


def is_encoded_variant(arrow_type: pa.DataType) -> bool:
    """Return whether a type has the binary members of a Variant, whatever its other members are.

    Such a struct is a Variant in another layout, for example shredded, and not an object with these keys.
    """
    storage = storage_of(arrow_type)
    if not arrow_types.is_struct(storage):
        return False
    binary = {part.name for part in storage if _primitive_name(storage_of(part.type)) == "binary"}
    return "untyped_value" in binary or {"metadata", "value"} <= binary


def _from_type(arrow_type: pa.DataType, path: tuple[str, ...]) -> DataType:
    if isinstance(arrow_type, pa.Bool8Type):
        return PrimitiveType("boolean")
    storage: Any = storage_of(arrow_type)
    if arrow_types.is_struct(storage):
        return StructType(tuple(_from_field(part, path) for part in storage))
    if arrow_types.is_map(storage):
        value = _from_field(storage.item_field.with_name("value"), path)
        key = _from_field(storage.key_field.with_name("key"), path)
        return MapType(key.type, value.type, value.nullable)
    if is_list(storage):
        element = _from_field(storage.value_field.with_name("element"), path)
        return ArrayType(element.type, element.nullable)
    name = _primitive_name(storage)
    if name is None or getattr(arrow_type, "extension_name", None) in WITHOUT_STORAGE:
        column = ".".join(path)
        raise SchemaError(
            f"the column {column!r} has the type {arrow_type}, which Delta does not have: cast it, or leave "
            "it out",
            column=column,
        )
    return VOID if name == VOID.name else PrimitiveType(name)


def is_list(arrow_type: pa.DataType) -> bool:
    """Return whether an Arrow type is a list in any layout."""
    return bool(
        arrow_types.is_list(arrow_type)
        or arrow_types.is_large_list(arrow_type)
        or arrow_types.is_fixed_size_list(arrow_type)
        or arrow_types.is_list_view(arrow_type)
        or arrow_types.is_large_list_view(arrow_type)
    )


def _primitive_name(arrow_type: pa.DataType) -> str | None:
    if arrow_types.is_timestamp(arrow_type):
        return "timestamp_ntz" if arrow_type.tz is None else "timestamp"
    if arrow_types.is_decimal(arrow_type):
        precision, scale = arrow_type.precision, arrow_type.scale
        return (
            f"decimal({precision},{scale})"
            if precision <= MAX_PRECISION and 0 <= scale <= precision
            else None
        )
    return next((name for is_type, name in FROM_ARROW if is_type(arrow_type)), None)
