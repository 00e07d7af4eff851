"""The columns of shredded files as stored: read with pyarrow, and assembled by the rules for writers.

pyarrow does not interpret Variants, so that no engine is involved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq

from .engine import VariantBytes
from .typed_values import DECIMAL_DIGITS, Schema, TypedValue, payload_type

TYPED_KEY = "$typed"
"""The only key of an object that represents a leaf of `typed_value`: its typed value."""

Pair: TypeAlias = dict[str, Any]


def read(file: Path, column: str) -> list[Pair | None]:
    """Return `value` and `typed_value` of each row, with the metadata of the row in each `value`.

    None is SQL NULL. Raises ValueError for a type that `typed_value` cannot have.
    """
    rows = _storage(pq.read_table(file, columns=[column]).column(column).combine_chunks())
    if not pa.types.is_struct(rows.type) or "metadata" not in {field.name for field in rows.type}:
        raise ValueError(f"expected the column {column!r} to be a Variant, got {rows.type}")
    return [_row(rows, row) for row in range(len(rows))]


def schema_of(file: Path, column: str) -> Schema:
    """Return the shredding schema of a column, with `string` for each leaf: its type is in the rows."""
    return _schema(pq.read_schema(file).field(column).type)


def _schema(group: Any) -> Schema:
    group = getattr(group, "storage_type", group)
    typed = next((field.type for field in group if field.name == "typed_value"), None)
    if typed is None:
        return None
    if pa.types.is_struct(typed):
        return {"object": {field.name: _schema(field.type) for field in typed}}
    return {"array": _schema(typed.value_type)} if _is_list(typed) else "string"


def _is_list(arrow_type: Any) -> bool:
    return bool(pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type))


def _storage(array: Any) -> Any:
    return array.storage if isinstance(array, pa.ExtensionArray) else array


def _row(rows: Any, row: int) -> Pair | None:
    if not rows[row].is_valid:
        return None
    metadata = rows.field("metadata")[row].as_py()
    return _pair(rows, row, metadata)


def _pair(group: Any, row: int, metadata: bytes) -> Pair:
    names = {field.name for field in group.type}
    value = group.field("value")[row].as_py() if "value" in names else None
    typed = _storage(group.field("typed_value")) if "typed_value" in names else None
    is_typed = typed is not None and typed[row].is_valid
    return {
        "value": None if value is None else VariantBytes(metadata, value),
        "typed_value": _typed(typed, row, metadata) if is_typed else None,
    }


def _typed(array: Any, row: int, metadata: bytes) -> Any:
    if pa.types.is_struct(array.type):
        fields = [(field.name, _storage(array.field(field.name))) for field in array.type]
        return {name: _pair(part, row, metadata) for name, part in fields}
    if _is_list(array.type):
        start, end = array.offsets[row].as_py(), array.offsets[row + 1].as_py()
        elements = _storage(array.values)
        return [_pair(elements, each, metadata) for each in range(start, end)]
    return {TYPED_KEY: _leaf(array[row])}


def _leaf(scalar: Any) -> Mapping[str, Any]:
    arrow_type = scalar.type
    if pa.types.is_decimal(arrow_type):
        kind = next(kind for kind, digits in DECIMAL_DIGITS.items() if arrow_type.precision <= digits)
        return {kind: format(scalar.as_py(), "f")}
    if pa.types.is_timestamp(arrow_type):
        name = "timestamp" if arrow_type.tz else "timestamp_ntz"
        return {name if arrow_type.unit == "us" else f"{name}_nanos": scalar.value}
    if arrow_type not in LEAVES:
        raise ValueError(f"typed_value cannot have the type {arrow_type}")
    kind, convert = LEAVES[arrow_type]
    return {kind: convert(scalar)}


def _float(scalar: Any) -> float | str:
    number: float = scalar.as_py()
    return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity", "-0.0": "-0.0"}.get(str(number), number)


def _python(scalar: Any) -> Any:
    return scalar.as_py()


LEAVES: Mapping[pa.DataType, tuple[str, Callable[[Any], Any]]] = {
    pa.bool_(): ("boolean", _python),
    pa.int8(): ("int8", _python),
    pa.int16(): ("int16", _python),
    pa.int32(): ("int32", _python),
    pa.int64(): ("int64", _python),
    pa.float32(): ("float", _float),
    pa.float64(): ("double", _float),
    pa.date32(): ("date", lambda scalar: scalar.value),
    pa.time64("us"): ("time", lambda scalar: scalar.value),
    pa.binary(): ("binary", lambda scalar: scalar.as_py().hex()),
    pa.string(): ("string", _python),
    pa.binary(16): ("uuid", lambda scalar: str(UUID(bytes=scalar.as_py()))),
}


def typed_pair(schema: Schema, pair: Any) -> Any:
    """Return a pair of a case in the form that `read` returns, with a type for each leaf."""
    if pair is None:
        return None
    return {"value": pair["value"], "typed_value": _typed_payload(schema, pair["typed_value"])}


def _typed_payload(schema: Schema, payload: Any) -> Any:
    if payload is None or schema is None:
        return None
    if isinstance(schema, str):
        return {TYPED_KEY: {payload_type(schema): payload}}
    if "array" in schema:
        return [typed_pair(schema["array"], element) for element in payload]
    return {name: typed_pair(part, payload[name]) for name, part in schema["object"].items()}


def assemble(schema: Any, pair: Any) -> TypedValue | None:
    """Return the value of a pair of columns, or None if both are null.

    Raises ValueError for a pair that VariantShredding.md does not allow writers to store.
    """
    value: TypedValue | None = pair["value"]
    typed = pair["typed_value"]
    kind = None if value is None else next(iter(value))
    nested = next(iter(schema)) if isinstance(schema, Mapping) else None
    if typed is None:
        if kind is not None and kind == nested:
            raise ValueError(f"value contains the {kind} that belongs in typed_value")
        return value
    if isinstance(typed, Mapping) and TYPED_KEY not in typed:
        return _object(schema, value, typed)
    if value is not None:
        raise ValueError("value and typed_value are both set")
    if isinstance(typed, Mapping):
        leaf: TypedValue = typed[TYPED_KEY]
        return leaf
    return {"array": [_element(schema["array"], element) for element in typed]}


def _element(schema: Schema, pair: Any) -> TypedValue:
    element = assemble(schema, pair)
    if element is None:
        raise ValueError("both value and typed_value of an element are null")
    return element


def _object(schema: Any, value: TypedValue | None, typed: Mapping[str, Any]) -> TypedValue:
    # If no fields remain, an empty object in `value` is equivalent to null, and not invalid.
    remaining = {} if value is None else value.get("object")
    if remaining is None:
        raise ValueError("typed_value is an object, but value is not")
    duplicates = sorted(remaining.keys() & typed.keys())
    if duplicates:
        raise ValueError(f"value contains the shredded field {duplicates[0]!r}")
    fields = {name: assemble(schema["object"][name], pair) for name, pair in typed.items()}
    return {"object": {**remaining, **{name: field for name, field in fields.items() if field is not None}}}
