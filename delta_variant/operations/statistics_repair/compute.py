"""Statistics of data files, computed from their data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...data_file.options import MAX_STATS_BYTES, MAX_STATS_PATHS
from ...data_file.reader import NativeFile, TableColumns, open_file, table_columns
from ...data_file.statistics import compute_stats
from ...log.snapshot import TableVersion
from ...protocol.schema.column_mapping import physical_name, physical_schema
from ...protocol.statistics import FileStatistics, Path
from ...protocol.types import VARIANT, DataType

__all__ = ["TableStatistics"]

ALL_PATHS = 1 << 20
ALL_BYTES = 1 << 40


@dataclass(frozen=True)
class TableStatistics:
    """The leaf columns of a table that have statistics, by physical path, and the limit of Variant paths.

    `stored` are all columns of the table, by which those of its files are found.
    """

    snapshot: TableVersion
    columns: Mapping[Path, DataType]
    max_variant_stats_paths: int
    stored: TableColumns

    @classmethod
    def of(cls, snapshot: TableVersion, max_variant_stats_paths: int = MAX_STATS_PATHS) -> TableStatistics:
        """Return the statistics that the schema, the protocol and the properties of a table require."""
        mode = snapshot.configuration.mapping_mode
        chains = snapshot.configuration.stats_columns
        columns = {tuple(physical_name(field, mode) for field in chain): chain[-1].type for chain in chains}
        limit = max_variant_stats_paths if snapshot.configuration.supports_shredding else 0
        stored = table_columns(physical_schema(snapshot.schema, mode), mode)
        return cls(snapshot, columns, limit, stored)

    def open(self, path: str) -> NativeFile:
        """Open a data file; raise DataFileError if it cannot be read."""
        return open_file(self.snapshot.store, path, self.stored)

    def compute(self, file: NativeFile, *, whole: bool = False) -> FileStatistics:
        """Return the statistics of all rows of an open data file.

        `whole=True` keeps every path of Variants and untruncated strings. Raises DataFileError.
        """
        limit = self.max_variant_stats_paths
        return compute_stats(
            file,
            [column for column, data_type in self.columns.items() if data_type == VARIANT],
            max_variant_stats_paths=ALL_PATHS if whole and limit else limit,
            max_variant_stats_bytes=ALL_BYTES if whole else MAX_STATS_BYTES,
            indexed=set(self.columns),
            shorten=not whole,
        )
