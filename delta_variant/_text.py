"""Format quantities and paths of Variants as readable text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .variant import paths as variant_paths

PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def quote(name: str) -> str:
    """Return a name as a quoted SQL identifier."""
    return "`" + name.replace("`", "``") + "`"


def path_text(column: str, path: Sequence[str | None]) -> str:
    """Return a Variant path in SQL syntax: `event:user.id`. `[]` stands for the elements of a list."""
    steps = "".join(f".{text}" if text[0] != "[" else text for text in map(path_step, path))
    return f"{column}:{steps.removeprefix('.')}" if steps else column


def path_step(step: str | None) -> str:
    """Return one step of a path: a plain name, a quoted name, or `[]` for the elements of a list."""
    if step is None:
        return "[]"
    return step if PLAIN_NAME.fullmatch(step) else variant_paths.normalize([step]).removeprefix("$")


def shorten(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def size_text(size: float) -> str:
    """Return a number of bytes in a readable unit: `118.1 MB`."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return count(round(size), "byte") if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"


def count(number: int, noun: str) -> str:
    """Return a number with its noun: `1 row`, `2,000 rows`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def rows_text(rows: int, deleted: int) -> str:
    """Return a number of rows, and of those that deletion vectors delete: `990 rows and 10 deleted rows`."""
    return f"{count(rows, 'row')} and {count(deleted, 'deleted row')}" if deleted else count(rows, "row")


def fill(values: int | None, rows: int, path: Sequence[str | None]) -> str:
    """Return the fill rate of a path: a share of the rows, or values per row for list elements."""
    if values is None:
        return "?"
    if not values or not rows:
        return "0"
    share = values / rows
    if None in path:
        return f"{share:.2f} per row"
    percent = f"{100 * share:.1f} %"
    return {"0.0 %": "< 0.1 %", "100.0 %": "100 %" if values == rows else "> 99.9 %"}.get(percent, percent)
