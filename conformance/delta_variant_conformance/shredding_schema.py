"""Shredding schemas in the format of cases: `{"object": {"a": "int64", "b": {"array": null}}}`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from .typed_values import PAYLOADS, describe

__all__ = ["Schema", "decimal_of", "find_problem", "payload_type"]

Schema: TypeAlias = "str | Mapping[str, Any] | None"
"""A type for a leaf, an object with one key for objects and arrays, None for `value` alone."""

DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)", re.ASCII)
LEAVES = frozenset(PAYLOADS) - {"null", "decimal4", "decimal8", "decimal16"}


def decimal_of(leaf: str) -> tuple[int, int] | None:
    """Return precision and scale of a decimal type, or None for other types."""
    found = DECIMAL.fullmatch(leaf)
    return (int(found[1]), int(found[2])) if found else None


def payload_type(leaf: str) -> str:
    """Return the type of the typed values in a leaf. The precision of a decimal decides its type."""
    decimal = decimal_of(leaf)
    if decimal is None:
        return leaf
    return next(
        kind
        for digits, kind in ((9, "decimal4"), (18, "decimal8"), (38, "decimal16"))
        if decimal[0] <= digits
    )


def find_problem(schema: object) -> str | None:
    """Return why a value is not a valid shredding schema, or None."""
    if schema is None:
        return None
    if isinstance(schema, str):
        decimal = decimal_of(schema)
        known = schema in LEAVES if decimal is None else decimal[1] <= decimal[0] <= 38
        return None if known else f"unknown type {schema!r} in a shredding schema"
    if isinstance(schema, dict) and schema.keys() == {"array"}:
        return find_problem(schema["array"])
    if isinstance(schema, dict) and schema.keys() == {"object"} and isinstance(schema["object"], dict):
        return next((problem for part in schema["object"].values() if (problem := find_problem(part))), None)
    return f"invalid shredding schema {describe(schema)}"
