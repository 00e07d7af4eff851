"""Compute the statistics of a data file from its data."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from os import PathLike

from .. import _native
from .._checks import check_path, to_integer
from ..errors import error_location
from ..protocol.statistics import FileStatistics, Path, from_report
from ..storage.store import local_location
from .layout import variant_paths
from .options import MAX_STATS_PATHS

__all__ = ["compute_stats", "file_stats"]


def file_stats(
    path: str | PathLike[str], *, max_variant_stats_paths: int = MAX_STATS_PATHS
) -> FileStatistics:
    """Return the statistics of any Parquet file, computed from its data as `AddFile.stats` has them.

    Variant columns are those annotated as VARIANT, and groups of `metadata` and `value`. Raises
    DataFileError, and StoreError for the URI of a file that is not on a local disk.
    """
    check_path("path", path)
    name = str(local_location("a Parquet file", path))
    with error_location(file=name):
        file = _native.DataFile(name, name)
        return compute_stats(file, list(variant_paths(file)), max_variant_stats_paths=max_variant_stats_paths)


def compute_stats(
    file: _native.DataFile,
    variants: Sequence[Path],
    *,
    max_variant_stats_paths: int = MAX_STATS_PATHS,
    indexed: Collection[Path] | None = None,
    shorten: bool = True,
) -> FileStatistics:
    """Return the statistics of an open file, computed from all rows of its data.

    `variants` are its Variant columns, through structs, `indexed` the leaf columns that have statistics, None
    for all. `shorten=False` keeps long texts of ordinary columns whole. Raises DataFileError.
    """
    limit = to_integer("max_variant_stats_paths", max_variant_stats_paths, 0)
    columns = file.bounds([list(path) for path in variants], limit)
    return from_report(file.num_rows, columns, file.schema.names, indexed, shorten=shorten)
