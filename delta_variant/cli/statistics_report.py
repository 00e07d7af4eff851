"""Print the statistics of data files as text or JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from .._text import path_text
from ..errors import InvalidStatisticsError
from ..protocol.statistics import leaves_of, value_at
from ..reports.inspected_file import InspectedFile
from ..variant import paths as variant_paths
from .tables import Heading, Layout, print_table
from .terminal import console, print_lines

__all__ = ["json_report", "print_tables"]

HEADINGS: tuple[Heading, ...] = (
    ("column", "key"),
    ("type", "left"),
    ("nulls", "right"),
    ("min", "left"),
    ("max", "left"),
)


def json_report(file: InspectedFile) -> dict[str, Any]:
    """Return the path, the `stats` object of the `add` action, and the decoded Variant bounds of a file."""
    variants = {name: file.bounds[path] for path, name in file.variants.items()}
    return {"path": file.path, "stats": msgspec.Raw(file.stats.to_json().encode()), "variants": variants}


def print_tables(file: InspectedFile, layout: Layout) -> None:
    """Print a table with a row for each column and each path of a Variant column."""
    out = console()
    records = "unknown" if file.stats.num_records is None else f"{file.stats.num_records:,}"
    print_lines(out, f"{file.path}: {records} rows")
    print_table(out, HEADINGS, _rows(file), layout)


def _rows(file: InspectedFile) -> Iterator[tuple[str, ...]]:
    stats = file.stats
    members = (stats.null_count, stats.min_values, stats.max_values)
    known = (path for member in members for path, _ in leaves_of(member))
    for path in dict.fromkeys([*known, *file.variants]):
        nulls = value_at(stats.null_count, path)
        count = f"{nulls:,}" if type(nulls) is int else _cell(nulls)
        if path not in file.variants:
            sides = [_cell(value_at(side, path)) for side in (stats.min_values, stats.max_values)]
            yield ".".join(path), "", count, *sides
            continue
        name = file.variants[path]
        yield name, "variant", count, "", ""
        for path_key, bounds in file.bounds[path].items():
            yield f"  {_path_text(name, path_key)}", bounds.type, "", _cell(bounds.min), _cell(bounds.max)


_ENCODER = msgspec.json.Encoder(decimal_format="number")


def _cell(value: Any) -> str:
    return "" if value is None else _ENCODER.encode(value).decode()


def _path_text(name: str, path_key: str) -> str:
    try:
        return path_text(name, variant_paths.parse(path_key))
    except InvalidStatisticsError:
        return f"{name} {path_key}"
