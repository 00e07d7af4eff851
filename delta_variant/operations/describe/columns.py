"""Say why paths of a Variant have no Parquet column, by what the inference of shredding schemas knows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pyarrow as pa

from ...log.snapshot import Snapshot
from ...protocol import properties
from ...variant.shredding import MAX_DEPTH, MAX_LEAVES, infer_shredding_schema
from .sample import Path, Sample

UNLIMITED = 100_000
MAJORITY = 0.75
"""If more than a quarter of the values of a path have other types, its column does not make rows residual."""


def reasons(
    snapshot: Snapshot, sample: Sample, variants: Collection[str], columns: Collection[tuple[str, Path]]
) -> Iterator[tuple[tuple[str, Path], str]]:
    """Yield why each path in a sample that has scalars is not in `columns`, those with a Parquet column."""
    is_shredded = snapshot.configuration.enables_shredding
    is_shredded = is_shredded and snapshot.configuration.get(properties.COMPATIBILITY) != "unshredded"
    for name in variants:
        arrays = [batch.column(name) for batch in sample.batches]
        worthwhile, frequent = (
            (_inferred(arrays), _inferred(arrays, max_leaves=UNLIMITED))
            if is_shredded and arrays
            else (set(), set())
        )
        for path, types in sample.scalar_paths(name):
            if (name, path) in columns:
                continue
            if not is_shredded:
                reason = "not shredded"
            elif None in path:
                reason = "in an array"
            elif len(path) > MAX_DEPTH:
                reason = "too deep"
            elif max(types.values()) < MAJORITY * types.total():
                reason = "mixed types"
            elif path in worthwhile:
                reason = "small file"
            elif path in frequent:
                reason = "too many"
            else:
                reason = "too rare"
            yield (name, path), reason


def _inferred(arrays: Sequence[Any], max_leaves: int = MAX_LEAVES) -> set[Path]:
    """Return the paths that are worth a column in a file of any size."""
    return set(_leaves(infer_shredding_schema(arrays, max_leaves=max_leaves).field.type, ()))


def _leaves(arrow_type: Any, path: Path) -> Iterator[Path]:
    if pa.types.is_struct(arrow_type):
        for part in arrow_type:
            yield from _leaves(part.type, (*path, part.name))
    elif not pa.types.is_null(arrow_type):
        yield path
