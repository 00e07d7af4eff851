"""Schema JSON to values and back (PROTOCOL.md, "Schema Serialization Format")."""

from __future__ import annotations

import json
import re
from typing import Any

from ..._checks import is_unicode
from ...errors import SchemaError
from ..types import (
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    decimal_of,
    is_geospatial,
    parts_of,
)

PRIMITIVES = frozenset(
    {
        "string",
        "long",
        "integer",
        "short",
        "byte",
        "float",
        "double",
        "boolean",
        "binary",
        "date",
        "timestamp",
        "timestamp_ntz",
        "variant",
        "void",
    }
)
MAX_PRECISION = 38
# Hostile JSON must not exhaust the stack.
MAX_DEPTH = 100
# Arrow's C interface permits 64 levels. Some enclose the column, and a map has two.
MAX_ARROW_LEVELS = 60

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def parse(text: str) -> StructType:
    """Return the schema in `text`; raises SchemaError, which has the column, for an invalid one.

    Variant is accepted in both spellings, `"variant"` and `{"type":"variant"}`.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"the table schema is not valid JSON: {error}") from error
    if _SURROGATE.search(text) and not is_unicode(json.dumps(document, ensure_ascii=False)):
        raise SchemaError("the table schema contains an unpaired surrogate")
    schema = _type(document, ())
    if not isinstance(schema, StructType):
        raise SchemaError("invalid table schema: expected a struct")
    check_levels(schema)
    return schema


def check_levels(schema: StructType) -> None:
    """Raise SchemaError for a column that nests deeper than Arrow can hand over to other libraries."""
    for field in schema.fields:
        if (levels := _arrow_levels(field.type)) > MAX_ARROW_LEVELS:
            raise SchemaError(
                f"cannot use the column {field.name!r} because it is nested {levels} levels deep: "
                f"expected at most {MAX_ARROW_LEVELS}, which Arrow can exchange; flatten the column",
                column=field.name,
            )


def _arrow_levels(data_type: DataType) -> int:
    own = 2 if isinstance(data_type, MapType) else 1
    return own + max((_arrow_levels(part) for _, part in parts_of(data_type)), default=0)


def to_json(schema: StructType) -> str:
    """Return `schema` as JSON with the keys of delta-spark, in the same order."""
    return json.dumps(_to_document(schema), separators=(",", ":"), ensure_ascii=False)


def _type(document: Any, path: tuple[str, ...]) -> DataType:
    if len(path) > MAX_DEPTH:
        raise SchemaError(f"the column {path[0]!r} is nested deeper than {MAX_DEPTH} levels", column=path[0])
    if isinstance(document, str):
        return _primitive(document, path)
    kind = document.get("type") if isinstance(document, dict) else None
    if kind == "variant":
        return PrimitiveType("variant")
    if kind == "struct":
        return StructType(tuple(_field(child, path) for child in _fields(document, path)))
    if kind == "array":
        return ArrayType(
            _type(document.get("elementType"), (*path, "element")), _flag(document, "containsNull", path)
        )
    if kind == "map":
        return MapType(
            _type(document.get("keyType"), (*path, "key")),
            _type(document.get("valueType"), (*path, "value")),
            _flag(document, "valueContainsNull", path),
        )
    raise _error(path, f"has an unknown type: {json.dumps(document)[:100]}")


def _primitive(name: str, path: tuple[str, ...]) -> PrimitiveType:
    if name in PRIMITIVES or is_geospatial(PrimitiveType(name)):
        return PrimitiveType(name)
    data_type = PrimitiveType("decimal(10,0)" if name == "decimal" else name)
    decimal = decimal_of(data_type)
    if decimal is None:
        raise _error(path, f"has the unknown type {name!r}")
    precision, scale = decimal
    if not (1 <= precision <= MAX_PRECISION and scale <= precision):
        raise _error(path, f"has the type {name}, but Delta supports at most {MAX_PRECISION} digits")
    return PrimitiveType(f"decimal({precision},{scale})")


def _field(document: Any, path: tuple[str, ...]) -> StructField:
    name = document.get("name") if isinstance(document, dict) else None
    if not isinstance(name, str):
        raise _error(path, f"has a field without a name: {json.dumps(document)[:100]}")
    metadata = document.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise _error((*path, name), "has field metadata that is not an object")
    return StructField(
        name=name,
        type=_type(document.get("type"), (*path, name)),
        nullable=_flag(document, "nullable", (*path, name)),
        metadata=metadata or {},
    )


def _fields(document: dict[str, Any], path: tuple[str, ...]) -> list[Any]:
    value = document.get("fields")
    if not isinstance(value, list):
        raise _error(path, "has no list 'fields'")
    return value


def _flag(document: dict[str, Any], key: str, path: tuple[str, ...]) -> bool:
    value = document.get(key, True)
    if not isinstance(value, bool):
        raise _error(path, f"has a {key!r} that is neither true nor false")
    return value


def _error(path: tuple[str, ...], problem: str) -> SchemaError:
    column = ".".join(path)
    return SchemaError(
        f"the column {column!r} {problem}" if path else f"the table schema {problem}", column=column or None
    )


def _to_document(data_type: DataType) -> Any:
    if isinstance(data_type, PrimitiveType):
        return data_type.name
    if isinstance(data_type, ArrayType):
        return {
            "type": "array",
            "elementType": _to_document(data_type.element_type),
            "containsNull": data_type.contains_null,
        }
    if isinstance(data_type, MapType):
        return {
            "type": "map",
            "keyType": _to_document(data_type.key_type),
            "valueType": _to_document(data_type.value_type),
            "valueContainsNull": data_type.value_contains_null,
        }
    return {"type": "struct", "fields": [_field_document(child) for child in data_type.fields]}


def _field_document(child: StructField) -> dict[str, Any]:
    return {
        "name": child.name,
        "type": _to_document(child.type),
        "nullable": child.nullable,
        "metadata": dict(child.metadata),
    }
