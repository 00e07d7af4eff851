"""The kinds of tables of docs/reference/interoperability.md, and the outcome of reading one by an engine."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

import delta_variant as dv
from support.documents import Page

PAGE = Page("docs/reference/interoperability.md")
TEXT = '{"user":{"id":7}}'

KINDS: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "`annotate=False`": {"files": dv.FileOptions(annotate=False)},
    '`compatibility="unshredded"`': {
        "shredding": "infer",
        "files": dv.FileOptions(compatibility="unshredded"),
    },
}
"""The columns of the page, and the options that a table is written with."""

FIELDS_OF_BYTES = {"metadata", "value"}
FIELDS_OF_SHREDDING = {"metadata", "value", "typed_value"}


def write(table: Path, kind: str) -> None:
    """Write a table of a kind with the Variant column `event` of one row, whose JSON text is TEXT."""
    rows = pa.table({"event": [TEXT]})
    # A file of one row is not shredded by default.
    options = {"shredding": dv.infer_shredding_schema([TEXT]), **KINDS[kind]}
    dv.write_table(table, rows, variant_columns=["event"], **options)


def expected(engine: str) -> dict[str, str]:
    """Return the outcome that the page shows for each kind."""
    lines = [line for line in PAGE.text.splitlines() if line.startswith("| ")]
    cells_of_lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    rows = cells_of_lines[cells_of_lines.index(["engine", *KINDS]) + 1 :]
    (cells,) = (row[1:] for row in rows if row[0] == engine)
    return dict(zip(KINDS, cells, strict=True))


def outcome(read: Callable[[Path], Any], table: Path) -> str:
    """Return the word of the page for what an engine returns as the Variant of the row of a table.

    `read` returns the Variant as a JSON value, or as the struct that the engine makes of it.
    """
    try:
        found = read(table)
    except (AssertionError, KeyboardInterrupt):
        raise
    except BaseException:  # Panics of Rust are not an Exception.
        return "no"
    if found == json.loads(TEXT):
        return "yes"
    assert isinstance(found, dict)
    if set(found) == FIELDS_OF_BYTES:
        assert dv.Variant(**found).to_json() == TEXT
        return "bytes"
    assert set(found) == FIELDS_OF_SHREDDING
    return "shredded"


def files(table: Path) -> str:
    """Return a glob of the data files of a table."""
    return str(table / "*.parquet")
