"""The types `char(n)` and `varchar(n)` of Spark, which are strings in the schema of Delta."""

from __future__ import annotations

import re

from ..types import StructField

__all__ = ["TYPE_TEXT", "char_width"]

TYPE_TEXT = "__CHAR_VARCHAR_TYPE_STRING"
"""The key of a field's metadata in which Spark stores the type."""

CHAR = re.compile(r"\s*char\s*\(\s*(\d+)\s*\)\s*", re.ASCII | re.IGNORECASE)


def char_width(field: StructField) -> int | None:
    """Return the number of characters of a column of the type `char(n)`, None for any other column."""
    found = CHAR.fullmatch(str(field.metadata.get(TYPE_TEXT, "")))
    return None if found is None else int(found[1])
