"""The kinds of tables of docs/reference/interoperability.md, and the outcome of reading one by an engine."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
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

VIEWS = ("reader", "`variant://`", "URLs", "`dv.export`")
"""The heading of the table of views."""

FIELDS_OF_BYTES = {"metadata", "value"}
FIELDS_OF_SHREDDING = {"metadata", "value", "typed_value"}


def write(table: Path, kind: str) -> None:
    """Write a table of a kind with the Variant column `event` of one row, whose JSON text is TEXT."""
    rows = pa.table({"event": [TEXT]})
    # A file of one row is not shredded by default.
    options = {"shredding": dv.infer_shredding_schema([TEXT]), **KINDS[kind]}
    dv.write_table(table, rows, variant_columns=["event"], **options)


def cells(heading: Sequence[str], engine: str) -> list[str]:
    """Return the row of an engine in the table of the page with a heading."""
    lines = [line for line in PAGE.text.splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    found = next(row for row in rows[rows.index(list(heading)) + 1 :] if row[0] == engine)
    return found[1:]


def expected(engine: str) -> dict[str, str]:
    """Return the outcome that the page shows for each kind."""
    return dict(zip(KINDS, cells(["engine", *KINDS], engine), strict=True))


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
