"""Shredded columns put together again, by the letter of what VariantShredding.md allows a writer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .shredded_columns import TYPED_KEY
from .shredding_schema import Schema, payload_type
from .typed_values import TypedValue

__all__ = ["assemble", "typed_pair"]


def typed_pair(schema: Schema, pair: Any) -> Any:
    """Return a pair as a case writes it with a type for each leaf, as `shredded_columns` reads it."""
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
    """Return the value of a pair of columns, None where both are null; ValueError says why there is none."""
    value: TypedValue | None = pair["value"]
    typed = pair["typed_value"]
    kind = None if value is None else next(iter(value))
    nested = next(iter(schema)) if isinstance(schema, Mapping) else None
    if typed is None:
        if kind is not None and kind == nested:
            raise ValueError(f"value has the {kind} that belongs to typed_value")
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
        raise ValueError("an element is in neither value nor typed_value")
    return element


def _object(schema: Any, value: TypedValue | None, typed: Mapping[str, Any]) -> TypedValue:
    # Where nothing is left, an empty object says no more than null, and is not among the invalid rows.
    left = {} if value is None else value.get("object")
    if left is None:
        raise ValueError("beside an object in typed_value, value is no object")
    twice = sorted(left.keys() & typed.keys())
    if twice:
        raise ValueError(f"value has the shredded field {twice[0]!r}")
    fields = {name: assemble(schema["object"][name], pair) for name, pair in typed.items()}
    return {"object": {**left, **{name: field for name, field in fields.items() if field is not None}}}
