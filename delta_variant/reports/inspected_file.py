"""The subjects of `inspect` and `stats`: a Parquet file, or the data files of a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from .._progress import advance, begin
from ..data_file.options import MAX_STATS_PATHS
from ..data_file.reader import open_file, table_columns
from ..data_file.shredding import variant_columns
from ..data_file.statistics import compute_stats, stats_of
from ..errors import InvalidStatisticsError, error_location
from ..log.load import load_snapshot
from ..log.snapshot import Snapshot
from ..protocol.actions import is_residual
from ..protocol.schema.column_mapping import physical_schema
from ..protocol.statistics import FileStatistics, decode_or_empty, value_at
from ..protocol.types import VARIANT, fields_of
from ..storage.store import Store, TableLocation, open_store, table_uri
from .bounds import Bounds, decode_sides


@dataclass(frozen=True)
class InspectedFile:
    """A data file with the statistics of the log, or with statistics computed from its data.

    `variants` maps the path of each Variant column in the file to its logical name. With `is_residual`, it
    has the residual rows of other files.
    """

    store: Store
    path: str
    stats: FileStatistics
    variants: Mapping[tuple[str, ...], str]
    is_residual: bool = False

    @cached_property
    def bounds(self) -> Mapping[tuple[str, ...], Mapping[str, Bounds]]:
        """Return the bounds of each Variant column by path key, empty if they cannot be decoded."""
        return {column: _bounds_or_empty(self, column) for column in self.variants}


def data_files(target: TableLocation, version: int | None, *, exact: bool = False) -> Iterator[InspectedFile]:
    """Yield a Parquet file, or the files of a table at `version`.

    `exact=True` computes the statistics of a table from its data instead of reading them from the log.
    """
    file = Path(table_uri(target))
    if not file.is_file():
        snapshot = load_snapshot(target, version)
        files = files_of(snapshot)
        yield from _compute_statistics(snapshot, files) if exact else files
        return
    folder, name = open_store(file.absolute().parent), file.name
    with error_location(file=name):
        variants = variant_columns(open_file(folder, name))
    yield InspectedFile(folder, name, compute_stats(file), {(column,): column for column in variants})


def files_of(snapshot: Snapshot) -> Iterator[InspectedFile]:
    """Yield the files of a table. Statistics that cannot be decoded are empty."""
    mode = snapshot.configuration.mapping_mode
    physical = fields_of(physical_schema(snapshot.schema, mode))
    variants = {
        path: ".".join(logical)
        for (path, field), (logical, _) in zip(physical, fields_of(snapshot.schema), strict=True)
        if field.type == VARIANT
    }
    for row in snapshot.files.select(["path", "stats", "tags"]).to_pylist():
        stats = decode_or_empty(row["stats"])
        yield InspectedFile(snapshot.store, row["path"], stats, variants, is_residual(row["tags"]))


def _compute_statistics(snapshot: Snapshot, files: Iterable[InspectedFile]) -> Iterator[InspectedFile]:
    table = snapshot.configuration
    types = table.stored_stats_columns
    stored = table_columns(physical_schema(snapshot.schema, table.mapping_mode), table.mapping_mode)
    begin("computing statistics", files=snapshot.num_files)
    for file in files:
        stats = stats_of(
            open_file(snapshot.store, file.path, stored),
            [column for column, data_type in types.items() if data_type == VARIANT],
            max_variant_stats_paths=MAX_STATS_PATHS if table.supports_shredding else 0,
            indexed=set(types),
        )
        advance(files=1, rows=stats.num_records or 0)
        yield replace(file, stats=stats)


def _bounds_or_empty(file: InspectedFile, column: tuple[str, ...]) -> Mapping[str, Bounds]:
    try:
        return _decode_bounds(file, column)
    except InvalidStatisticsError:
        return {}


def undecodable_bounds(file: InspectedFile) -> Iterator[str]:
    """Yield a message for each Variant column whose bounds cannot be decoded."""
    for column, name in file.variants.items():
        try:
            _decode_bounds(file, column)
        except InvalidStatisticsError as error:
            yield f"{file.path}: cannot decode the bounds of {name!r}: {error}"


def _decode_bounds(file: InspectedFile, column: tuple[str, ...]) -> Mapping[str, Bounds]:
    return decode_sides(value_at(file.stats.min_values, column), value_at(file.stats.max_values, column))
