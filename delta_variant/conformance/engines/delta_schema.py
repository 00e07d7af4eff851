"""Convert a table's `schemaString` to the types of cases of the kind `log`."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["column_types"]


def column_types(schema_string: str) -> dict[str, str]:
    """Return the type of each column: `long`, `array<variant>`, `struct<a: long>`."""
    return {field["name"]: _text(field["type"]) for field in json.loads(schema_string)["fields"]}


def _text(data_type: Any) -> str:
    if isinstance(data_type, str):
        return data_type
    if data_type["type"] == "array":
        return f"array<{_text(data_type['elementType'])}>"
    if data_type["type"] == "map":
        return f"map<{_text(data_type['keyType'])}, {_text(data_type['valueType'])}>"
    if data_type["type"] == "struct":
        fields = (f"{field['name']}: {_text(field['type'])}" for field in data_type["fields"])
        return f"struct<{', '.join(fields)}>"
    return _text(data_type["type"])
