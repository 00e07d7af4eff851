"""Compute the statistics of a data file from its data.

Memory is bounded by one batch of rows and the bounds of each column.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from os import PathLike

from .. import _native
from .._checks import check_path, to_integer
from ..errors import error_location
from ..protocol.statistics import FileStatistics, Path, from_report, variant_bytes
from ..storage.uris import local_location
from .options import MAX_STATS_BYTES, MAX_STATS_PATHS
from .shredding import variant_paths


def compute_stats(
    path: str | PathLike[str], *, max_variant_stats_paths: int = MAX_STATS_PATHS
) -> FileStatistics:
    """Compute the statistics of a Parquet file from its data, in the form of `AddFile.stats`.

    Variant columns are those annotated as VARIANT, and groups of `metadata` and `value`.

    Args:
        path: The local path of the file.
        max_variant_stats_paths: The maximum number of paths of each Variant column that get bounds.

    Returns:
        The number of rows, and the bounds and null counts of the columns.

    Raises:
        DataFileError: If the file cannot be read.
        StoreError: For the URI of a file that is not on a local disk.

    Example:
        >>> import pyarrow as pa, pyarrow.parquet as pq
        >>> pq.write_table(pa.table({"id": [1, 2]}), "ids.parquet")
        >>> compute_stats("ids.parquet").num_records
        2
    """
    check_path("path", path)
    name = str(local_location("a Parquet file", path))
    with error_location(file=name):
        file = _native.DataFile(name, name)
        return stats_of(file, list(variant_paths(file)), max_variant_stats_paths=max_variant_stats_paths)


def stats_of(
    file: _native.DataFile,
    variants: Sequence[Path],
    *,
    max_variant_stats_paths: int = MAX_STATS_PATHS,
    indexed: Collection[Path] | None = None,
    shorten: bool = True,
) -> FileStatistics:
    """Compute the statistics of an open file from all of its rows.

    `variants` are the paths of its Variant columns, including those within structs. `indexed` are the leaf
    columns that get statistics, None for all. `shorten=False` keeps long texts of ordinary columns complete.
    Raises DataFileError.
    """
    limit = to_integer("max_variant_stats_paths", max_variant_stats_paths, 0)
    columns = file.bounds([list(path) for path in variants], limit, variant_bytes(MAX_STATS_BYTES))
    return from_report(file.num_rows, columns, file.schema.names, indexed, shorten=shorten)
