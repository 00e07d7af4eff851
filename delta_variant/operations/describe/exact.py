"""Replace figures of a sample by those of all rows, where the statistics in the log prove them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..._arrow import SIMPLE_TYPES
from ..._text import quote, shorten
from ...log.snapshot import Snapshot
from ...read.aggregate import known_aggregates
from ...read.log_statistics import file_bounds
from ...read.predicate import Leaf
from ...read.prune import Bounds
from .sample import MAX_CHARACTERS, Path
from .summary import PathSummary

MAX_FILES = 1_000
"""The statistics of a table of more files take longer than the sample."""

FINER: Mapping[str, pa.DataType] = {
    "tinyint": pa.decimal128(38, 18),
    "smallint": pa.decimal128(38, 18),
    "int": pa.decimal128(38, 18),
    "bigint": pa.decimal128(38, 18),
    "date": pa.timestamp("us"),
}
"""The types whose bounds in the log are values, and types that show whether a Variant has a finer value."""


def with_exact_figures(
    snapshot: Snapshot,
    rows: int | None,
    columns: Mapping[str, str | None],
    found: Iterable[tuple[tuple[str, Path], PathSummary]],
) -> Iterator[PathSummary]:
    """Yield summaries with the figures of all rows where the log has them.

    `columns` has the SQL type of each column, None for Variants.
    """
    summaries = dict(found)
    if not rows or snapshot.num_files > MAX_FILES:
        yield from summaries.values()
        return
    typed = _typed_paths(snapshot, summaries)
    for (name, path), each in summaries.items():
        kind, expression = columns[name] if not path else typed.get((name, path)), quote(name)
        if path:
            expression = f"{expression}:{each.path[len(name) + 1 :]}::{kind}"
        yield each if kind is None else _with_figures(snapshot, rows, each, expression, kind)


def _with_figures(
    snapshot: Snapshot, rows: int, each: PathSummary, expression: str, kind: str
) -> PathSummary:
    names = {"filled": f"count({expression})"}
    if kind in SIMPLE_TYPES or kind.startswith("decimal("):
        names |= {"min": f"min({expression})", "max": f"max({expression})"}
    known = known_aggregates(snapshot, names)
    figures: dict[str, Any] = {}
    for name, value in known.items():
        if name == "filled":
            filled = value.as_py() / rows
            figures |= {"filled": filled, "nulls": 1 - filled}
        else:
            figures[name] = _text(value)
    others = (name for name in each.exact if name not in figures)
    return replace(each, **figures, exact=(*others, *figures))


def _typed_paths(
    snapshot: Snapshot, summaries: Mapping[tuple[str, Path], PathSummary]
) -> dict[tuple[str, Path], str]:
    """Return the type of each path of a Variant whose bounds in all files are of one type of `FINER`."""
    kinds = {
        (name, path): next(iter(each.types))
        for (name, path), each in summaries.items()
        if path and None not in path and len(each.types) == 1 and each.types.keys() <= FINER.keys()
    }
    # Few paths have bounds: the first file tells.
    for files in (snapshot.files.slice(0, 1), snapshot.files):
        leaves = {key: _leaves(key, kind) for key, kind in kinds.items()}
        every = [leaf for pair in leaves.values() for leaf in pair]
        bounds = file_bounds(snapshot.configuration, files, every)
        for key, (own, finer) in leaves.items():
            if own not in bounds or not _are_whole(bounds[own], bounds[finer]):
                del kinds[key]
    return kinds


def _leaves(key: tuple[str, Path], kind: str) -> tuple[Leaf, Leaf]:
    (name, path) = key
    steps: Any = path
    return Leaf((name,), steps, SIMPLE_TYPES[kind]), Leaf((name,), steps, FINER[kind])


def _are_whole(own: Bounds, finer: Bounds) -> bool:
    """Return whether all files have bounds, which are the same in both types."""
    pairs: list[Any] = [(own.min, finer.min), (own.max, finer.max)]
    equal = (pc.equal(values.cast(others.type), others) for values, others in pairs)
    return all(pc.all(pc.fill_null(each, False)).as_py() for each in equal)


def _text(value: Any) -> str | None:
    text = value.cast(pa.string()).as_py()
    return None if text is None else shorten(text, MAX_CHARACTERS)
