"""Check text of the types `char(n)` and `varchar(n)`. Like Delta on Spark, writes do not pad text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import Array, row_numbers
from ..errors import ConstraintViolationError, UnsupportedFeatureError
from ..input.invalid_json import RowLocator
from ..protocol.schema.char_types import TYPE_TEXT, Width, widths_of
from ..protocol.schema.paths import FieldPath, path_text
from ..protocol.types import StructField, StructType, fields_of

MAX_SHOWN = 100
"""How many characters of a value a message shows."""


@dataclass(frozen=True)
class TextWidths:
    """The types of text whose width is limited, by path, which may have steps such as `element`."""

    by_path: Mapping[FieldPath, Width]

    @classmethod
    def of(cls, columns: StructType) -> TextWidths:
        """Return the widths of columns; raises UnsupportedFeatureError for a type that cannot be parsed."""
        return cls(dict(width for path, field in fields_of(columns) for width in _widths(path, field)))

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


def _widths(path: FieldPath, field: StructField) -> Iterator[tuple[FieldPath, Width]]:
    try:
        found = widths_of(field)
    except ValueError as error:
        raise UnsupportedFeatureError(
            f"cannot parse the type {field.metadata[TYPE_TEXT]!r} of the column {path_text(path)}: write "
            "with an engine that supports it",
            column=".".join(path),
        ) from error
    yield from (((*path, *inner), width) for inner, width in found.items())
