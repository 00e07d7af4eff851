"""Check text of the types `char(n)` and `varchar(n)` of Spark, which are strings in the schema of Delta.

Spark stores the type of a column in the metadata of its field, and the types of nested fields in that of the
top-level column: `struct<code:varchar(3),tags:array<char(2)>>`. Like Delta on Spark, writes do not pad text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import Array, row_numbers
from ..errors import ConstraintViolationError, UnsupportedFeatureError
from ..protocol.schema.char_types import TYPE_TEXT
from ..protocol.schema.paths import FieldPath, parts_of, path_text
from ..protocol.types import DataType, StructField, StructType, fields_of
from .invalid_json import RowLocator

__all__ = ["TextWidths"]

LIMITED = re.compile(r"\s*((?:var)?char)\s*\(\s*(\d+)\s*\)\s*", re.ASCII | re.IGNORECASE)
OPENING = re.compile(r"\s*(struct|array|map)\s*<", re.ASCII | re.IGNORECASE)
OTHER = re.compile(r"[\w ]+(?:\([^()]*\))?\s*", re.ASCII)
NAME = re.compile(r"\s*(?:`(?P<quoted>(?:[^`]|``)*)`|(?P<plain>[^:<>,`]+?))\s*:")

MAX_SHOWN = 100
"""How many characters of a value a message shows."""


@dataclass(frozen=True)
class Width:
    """The type `char(n)` or `varchar(n)`."""

    name: str
    characters: int

    def __str__(self) -> str:
        return f"{self.name}({self.characters})"


@dataclass(frozen=True)
class TextWidths:
    """The types of text whose width is limited, by path, which may have steps such as `element`."""

    by_path: Mapping[FieldPath, Width]

    @classmethod
    def of(cls, columns: StructType) -> TextWidths:
        """Return the widths of columns; raises UnsupportedFeatureError for a type that cannot be parsed."""
        fields = [(path, field) for path, field in fields_of(columns) if TYPE_TEXT in field.metadata]
        return cls(dict(width for path, field in fields for width in _widths_of(path, field)))

    def check(self, batch: pa.RecordBatch, locate: RowLocator, subject: str) -> None:
        """Raise ConstraintViolationError for a value with more characters than its type allows.

        See `RowConstraint.check` for `locate` and `subject`.
        """
        for path, width in self.by_path.items():
            text, rows = _values(batch.column(path[0]), path[1:], row_numbers(batch.num_rows))
            characters: Array = pc.utf8_length(text)
            is_long: Any = pc.greater(characters, pa.scalar(width.characters))
            position = pc.index(is_long, True).as_py()
            if position >= 0:
                value = text[position].as_py()
                shown = value if len(value) <= MAX_SHOWN else f"{value[:MAX_SHOWN]}…"
                raise ConstraintViolationError(
                    f"{subject} violates {width} of the column {path_text(path)}: {shown!r} has "
                    f"{len(value)} characters",
                    column=".".join(path),
                ).at(**locate(rows[position].as_py()))


def _values(array: Array, path: FieldPath, rows: Array) -> tuple[Array, Array]:
    """Return the values at a path within an array, and the row of each; `rows` are those of the array."""
    if not path:
        return array, rows
    if pa.types.is_struct(array.type):
        # Fields of null structs are null in the result, whatever their buffers have.
        return _values(pc.struct_field(array, path[0]), path[1:], rows)
    if pa.types.is_map(array.type):
        entries = pa.ListArray.from_arrays(array.offsets, array.keys if path[0] == "key" else array.items)
    else:
        entries = array
    return _values(entries.flatten(), path[1:], rows.take(pc.list_parent_indices(entries)))


_Parsed = Width | Mapping[str, Any] | None
"""The width of text, or the parts of a nested type by step; None for another type."""


def _widths_of(path: FieldPath, field: StructField) -> Iterator[tuple[FieldPath, Width]]:
    text = str(field.metadata[TYPE_TEXT])
    try:
        parsed, rest = _parse(text)
        if rest:
            raise ValueError(rest)
    except ValueError as error:
        raise UnsupportedFeatureError(
            f"cannot parse the type {text!r} of the column {path_text(path)}: write with an engine that "
            "supports it",
            column=".".join(path),
        ) from error
    yield from _match(parsed, field.type, path)


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
        # Spark does not rename the fields in this text, and goes by their positions.
        by_position = list(parsed.values()) if len(parsed) == len(parts) else [None] * len(parts)
        for (step, inner), part in zip(parts, by_position, strict=True):
            yield from _match(by_name.get(step.lower(), part), inner, (*path, step))
