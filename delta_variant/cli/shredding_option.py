"""The value of `--shredding`: `infer`, `none`, or a schema in JSON with SQL types."""

from __future__ import annotations

import os
from typing import Any

import msgspec
import pyarrow as pa
import typer

from ..data_file.options import Shredding
from ..expressions.parse import parse_type
from ..variant.shredding import ShreddingSchema

__all__ = ["parse_shredding"]

EXPECTED = (
    'expected infer, none, a schema such as {"user": {"id": "bigint"}, "tags": ["string"]}, or its file'
)


def parse_shredding(text: str) -> Shredding:
    """Return how Variants are shredded. Raise BadParameter for text that is neither a schema nor a file."""
    if text in ("infer", "none"):
        return "infer" if text == "infer" else None
    if not text.lstrip().startswith(("{", "[", '"')):
        if not os.path.isfile(text):
            raise typer.BadParameter(f"--shredding: {EXPECTED}, got {text!r}")
        with open(text, encoding="utf-8") as file:
            text = file.read()
    try:
        spec = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise typer.BadParameter(f"--shredding: {EXPECTED} ({error})") from error
    return ShreddingSchema.of(_spec(spec))


def _spec(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _spec(part) for name, part in value.items()}
    if isinstance(value, list) and len(value) == 1:
        return [_spec(value[0])]
    if value is None:
        return None
    arrow_type = parse_type(value) if isinstance(value, str) else None
    if arrow_type is None or pa.types.is_nested(arrow_type):
        raise typer.BadParameter(
            f"--shredding: expected a SQL type such as bigint, an object, an array of one item, or null, got "
            f"{value!r}"
        )
    return arrow_type
