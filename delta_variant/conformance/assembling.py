"""Assemble values from shredded columns, strictly as VariantShredding.md allows writers to store them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .shredded_columns import TYPED_KEY
from .shredding_schema import Schema, payload_type
from .typed_values import TypedValue

__all__ = ["assemble", "typed_pair"]


def typed_pair(schema: Schema, pair: Any) -> Any:
    """Return a pair of a case in the form that `shredded_columns` returns, with a type for each leaf."""
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
    """Return the value of a pair of columns, or None if both are null; ValueError for an invalid pair."""
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
