"""The types `char(n)` and `varchar(n)` of Spark, which are strings in the schema of Delta.

Spark stores the type of a column in the metadata of its field, and the types of nested fields in that of the
top-level column: `struct<code:varchar(3),tags:array<char(2)>>`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..types import DataType, FieldPath, StructField, parts_of

TYPE_TEXT = "__CHAR_VARCHAR_TYPE_STRING"
"""The key of a field's metadata in which Spark stores the type."""

LIMITED = re.compile(r"\s*((?:var)?char)\s*\(\s*(\d+)\s*\)\s*", re.ASCII | re.IGNORECASE)
OPENING = re.compile(r"\s*(struct|array|map)\s*<", re.ASCII | re.IGNORECASE)
OTHER = re.compile(r"[\w ]+(?:\([^()]*\))?\s*", re.ASCII)
NAME = re.compile(r"\s*(?:`(?P<quoted>(?:[^`]|``)*)`|(?P<plain>[^:<>,`]+?))\s*:")


@dataclass(frozen=True)
class Width:
    """The type `char(n)` or `varchar(n)`."""

    name: str
    characters: int

    def __str__(self) -> str:
        return f"{self.name}({self.characters})"


_Parsed = Width | Mapping[str, Any] | None
"""The width of text, or the parts of a nested type by step; None for another type."""


def widths_of(field: StructField) -> dict[FieldPath, Width]:
    """Return the types of a column with a limited width, by path within it: `()` is the column itself.

    Raises ValueError for a type in the metadata that cannot be parsed.
    """
    if TYPE_TEXT not in field.metadata:
        return {}
    parsed, rest = _parse(str(field.metadata[TYPE_TEXT]))
    if rest:
        raise ValueError(rest)
    return dict(_match(parsed, field.type, ()))


def char_widths(field: StructField) -> dict[FieldPath, int]:
    """Return the characters to which a read pads each `char(n)` of a column, by path within it.

    A type that cannot be parsed has none.
    """
    try:
        widths = widths_of(field)
    except ValueError:
        return {}
    return {path: width.characters for path, width in widths.items() if width.name == "char"}


def _parse(text: str) -> tuple[_Parsed, str]:
    """Return the type at the start of text, and the rest of the text."""
    if found := LIMITED.match(text):
        return Width(found[1].lower(), int(found[2])), text[found.end() :]
    if found := OPENING.match(text):
        return _parse_parts(found[1].lower(), text[found.end() :])
    if found := OTHER.match(text):
        return None, text[found.end() :]
    raise ValueError(text)


def _parse_parts(kind: str, text: str) -> tuple[_Parsed, str]:
    parts: dict[str, _Parsed] = {}
    steps = iter({"array": ("element",), "map": ("key", "value")}.get(kind, ()))
    while not text.startswith(">"):
        if kind == "struct":
            step, text = _parse_name(text)
        else:
            step = next(steps, "")
        parts[step], text = _parse(text)
        text = text.removeprefix(",")
    return parts, text[1:].lstrip()


def _parse_name(text: str) -> tuple[str, str]:
    found = NAME.match(text)
    if found is None:
        raise ValueError(text)
    quoted = found["quoted"]
    return found["plain"] if quoted is None else quoted.replace("``", "`"), text[found.end() :]


def _match(parsed: _Parsed, data_type: DataType, path: FieldPath) -> Iterator[tuple[FieldPath, Width]]:
    """Yield the widths of the parts that `data_type` has, by their paths in it."""
    if isinstance(parsed, Width):
        yield path, parsed
    elif parsed is not None:
        by_name, parts = {step.lower(): part for step, part in parsed.items()}, parts_of(data_type)
        # Spark does not rename the fields in this text, and finds them by their positions.
        by_position = list(parsed.values()) if len(parsed) == len(parts) else [None] * len(parts)
        for (step, inner), part in zip(parts, by_position, strict=True):
            yield from _match(by_name.get(step.lower(), part), inner, (*path, step))
