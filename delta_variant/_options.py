"""The types of the options that the native library takes."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import pyarrow as pa

__all__ = ["DuplicateKeys", "Encoding", "Floats", "JsonKind", "Numeric", "OnConflict"]

DuplicateKeys: TypeAlias = Literal["error", "last"]
"""What happens to a JSON object with two fields of one name."""

Encoding: TypeAlias = "tuple[Literal['json', 'variant'], pa.Field[Any]] | list[Encoding] | None"
"""What a column becomes in a file: a Variant shredded by a schema, a struct of such columns, or itself, as a
Variant does that is shredded already."""

Floats: TypeAlias = Literal["decimal", "double"]
"""What a JSON number with a fraction becomes."""

JsonKind: TypeAlias = Literal["number", "string"]

Numeric: TypeAlias = Literal["value", "strict"]
"""Which exact numbers are shredded: those that the column holds without loss, or those of its own type."""

OnConflict: TypeAlias = Literal["error", "typed"]
"""What happens where `value` and `typed_value` contradict each other."""
