"""Shred Variants to columns by VariantShredding.md, without `delta_variant`."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
from variant_bytes import encode

Json = dict[str, Any]

UNSHREDDED = pa.struct(
    [pa.field("metadata", pa.binary(), nullable=False), pa.field("value", pa.binary(), nullable=False)]
)

KINDS = {
    "bool": "boolean",
    "int8": "int8",
    "int16": "int16",
    "int32": "int32",
    "int64": "int64",
    "float": "float",
    "double": "double",
    "string": "string",
    "date32[day]": "date",
    "timestamp[us, tz=UTC]": "timestamp",
    "timestamp[us]": "timestamp_ntz",
    "timestamp[ns, tz=UTC]": "timestamp_nanos",
    "timestamp[ns]": "timestamp_ntz_nanos",
    "time64[us]": "time",
    "binary": "binary",
    "fixed_size_binary[16]": "uuid",
}


def group_type(typed_value: pa.DataType, *, is_top: bool = True) -> pa.DataType:
    """Return the group of a Variant whose values have an Arrow type; an object is a struct."""
    top = [pa.field("metadata", pa.binary(), nullable=False)] if is_top else []
    parts = [pa.field("value", pa.binary()), pa.field("typed_value", _typed_value(typed_value))]
    return pa.struct([*top, *parts])


def _typed_value(kind: Any) -> pa.DataType:
    if pa.types.is_struct(kind):
        groups = [(field.name, group_type(field.type, is_top=False)) for field in kind]
        return pa.struct([pa.field(name, group, nullable=False) for name, group in groups])
    if pa.types.is_list(kind):
        element = group_type(kind.value_type, is_top=False)
        return pa.list_(pa.field("element", element, nullable=False))
    return kind


def unshredded(typed: Json | None) -> Json | None:
    """Return a typed value as the one row of an unshredded Variant."""
    if typed is None:
        return None
    metadata, value = encode(typed)
    return {"metadata": metadata, "value": value}


def shredded(typed: Json | None, kind: pa.DataType) -> Json | None:
    """Return a typed value as the row of a group of `group_type(kind)`."""
    if typed is None:
        return None
    metadata, _ = encode(typed)
    return {"metadata": metadata, **_shred(typed, kind, sorted(_names(typed), key=str.encode))}


def _shred(typed: Json | None, kind: Any, names: list[str]) -> Json:
    if typed is None:
        return {"value": None, "typed_value": None}
    [(name, payload)] = typed.items()
    if name == "object" and pa.types.is_struct(kind):
        fields = {field.name: _shred(payload.get(field.name), field.type, names) for field in kind}
        rest = {key: each for key, each in payload.items() if key not in fields}
        return {
            "value": encode({"object": rest}, names=names)[1] if rest else None,
            "typed_value": fields,
        }
    if name == "array" and pa.types.is_list(kind):
        return {"value": None, "typed_value": [_shred(each, kind.value_type, names) for each in payload]}
    if name == _kind(kind):
        return {"value": None, "typed_value": _payload(name, payload)}
    return {"value": encode(typed, names=names)[1], "typed_value": None}


def _kind(kind: Any) -> str | None:
    if pa.types.is_decimal(kind):
        return "decimal4" if kind.precision <= 9 else "decimal8" if kind.precision <= 18 else "decimal16"
    return KINDS.get(str(kind))


def _payload(name: str, payload: Any) -> Any:
    if name.startswith("decimal"):
        return Decimal(payload)
    if name in ("binary", "uuid"):
        return bytes.fromhex(payload.replace("-", ""))
    return float(payload) if name in ("float", "double") else payload


def _names(typed: Json) -> set[str]:
    [(name, payload)] = typed.items()
    if name == "object":
        return set(payload).union(*(_names(each) for each in payload.values()))
    return set().union(*(_names(each) for each in payload)) if name == "array" else set()
