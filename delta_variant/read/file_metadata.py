"""The column `_metadata` of Spark: the file of a row."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from ..expressions.tree import Column

METADATA = "_metadata"
NOT_SELECTED = f"a subquery in FROM has {METADATA} only if it selects it: {METADATA}.file_path as path"
"""Why a query does not find the column, and what to write."""

TYPE = pa.struct([("file_path", pa.string()), ("file_name", pa.string()), ("file_size", pa.int64())])
FILE_METADATA = Column("\0metadata", TYPE)
"""An input for the file of each row; no column of a table has the name."""

# What a URI of Java escapes. It keeps other characters that are not ASCII.
_ESCAPED = re.compile(r"[\x00-\x20\"#%<>?\[\\\]^`{|}\x7f]")


def file_metadata(uri: str, size: int | None, rows: int) -> Any:
    """Return the file at a path or URI for a number of rows, with the values of Spark's `_metadata`."""
    path = _ESCAPED.sub(lambda found: quote(found[0]), uri)
    values = (f"file:{path}" if path.startswith("/") else path, path.rpartition("/")[2], size)
    scalar: Any = pa.scalar(dict(zip(TYPE.names, values, strict=True)), TYPE)
    return pa.repeat(scalar, rows)
