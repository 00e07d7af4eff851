"""The names of partition folders in the syntax of Hive, such as `day=2026-11-21`."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

NULL = "__HIVE_DEFAULT_PARTITION__"

# Polars and DuckDB decode values, but not names.
_ENCODED_BY_HIVE = re.compile(r"""[\x00-\x1f\x7f"#%'*/:=?\\{\[\]^]""")


def encode_name(name: str) -> str:
    """Return the name of a column as Hive and Spark write it in the name of a folder."""
    return _ENCODED_BY_HIVE.sub(lambda match: f"%{ord(match[0]):02X}", name)


def folder_of(name: str, value: str | None) -> str:
    """Return the name of the folder of a partition value."""
    return f"{encode_name(name)}={NULL if value is None else quote(value, safe=' ')}"


def parse_folder(folder: str) -> tuple[str, str | None] | None:
    """Return the column and the value of a folder, None for a folder that is not of a partition."""
    name, equals, value = folder.partition("=")
    return (unquote(name), None if value == NULL else unquote(value)) if equals else None
