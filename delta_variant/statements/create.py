"""CREATE TABLE, with and without rows, and CONVERT TO DELTA."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec
import pyarrow as pa

from ..errors import ExpressionError
from ..expressions.definitions import ColumnDefinition, parse_definition
from ..log.commit_context import CommitResult
from ..log.load import load_latest
from ..operations.alter.columns import column_type
from ..operations.alter.table_properties import set_properties
from ..operations.convert import convert_in_place
from ..operations.create import create_table
from ..operations.write import write_table
from ..protocol.features import supported_features
from ..protocol.properties import ENABLE_VARIANT_SHREDDING
from ..protocol.types import StructField
from ..storage.store import TableLocation, open_latest
from ..write.preparation import load_existing
from .session import NO_ROWS, Session

FEATURE = "delta.feature."


class Create(msgspec.Struct, frozen=True):
    """CREATE TABLE; `overwrite` is CREATE OR REPLACE. `columns` are SQL definitions."""

    mode: Literal["error", "ignore", "overwrite"]
    columns: tuple[str, ...] = ()
    provider: Literal["delta"] = "delta"
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    location: str | None = None
    comment: str | None = None
    properties: Mapping[str, str] = msgspec.field(default_factory=dict)
    query: str | None = None

    @property
    def _settings(self) -> Mapping[str, str]:
        return {name: text for name, text in self.properties.items() if not name.startswith(FEATURE)}

    def __call__(self, table: TableLocation, session: Session) -> pa.Table:
        """Create the table; the statement returns no rows."""
        query = self.query
        result = self._create(table) if query is None else self._write(table, session, query)
        # IF NOT EXISTS leaves a table as it is.
        if result.version is not None:
            self._add_features(table)
        return NO_ROWS

    def _add_features(self, table: TableLocation) -> None:
        """Add the features that neither the columns nor the other properties need."""
        known = supported_features(load_latest(table).protocol)
        names = self.properties.keys() - self._settings.keys()
        missing = {name: self.properties[name] for name in names if name.removeprefix(FEATURE) not in known}
        if missing:
            set_properties(table, missing)

    def _create(self, table: TableLocation) -> CommitResult:
        if self.mode == "overwrite":
            raise ExpressionError("CREATE OR REPLACE TABLE needs a query (AS SELECT …)")
        return create_table(
            table,
            self.columns,
            mode=self.mode,
            partition_by=self.partition_by or None,
            cluster_by=self.cluster_by or None,
            configuration=self._settings,
            description=self.comment,
        )

    def _write(self, table: TableLocation, session: Session, query: str) -> CommitResult:
        if self.columns or self.cluster_by:
            what = "columns of its own" if self.columns else "CLUSTER BY"
            raise ExpressionError(
                f"CREATE TABLE AS SELECT with {what}: create the table, then INSERT INTO it"
            )
        if self.mode == "overwrite":
            self._check_replaceable(table)
        return write_table(
            table,
            session.rows(query).data,
            mode=self.mode,
            schema_mode="overwrite" if self.mode == "overwrite" else None,
            partition_by=self.partition_by,
            configuration=self._settings,
            description=self.comment,
        )

    def _check_replaceable(self, table: TableLocation) -> None:
        """Raise ExpressionError for a table whose properties or comment the new one would keep."""
        snapshot = load_existing(open_latest(table), "overwrite")
        if snapshot is None:
            return
        kept = sorted(snapshot.properties.keys() - {ENABLE_VARIANT_SHREDDING.name})
        if kept or snapshot.metadata.description != self.comment:
            raise ExpressionError(
                f"CREATE OR REPLACE TABLE would keep the comment and the properties of {snapshot.uri} "
                f"({', '.join(kept) or 'none'}), which Spark replaces: use INSERT OVERWRITE, or another "
                "location"
            )


def convert_table(
    table: TableLocation, session: Session, *, partitions: tuple[str, ...], collect_stats: bool
) -> pa.Table:
    """Convert the Parquet files at a location; the statement returns no rows, and leaves a table as it is."""
    convert_in_place(table, [_partition(text) for text in partitions], collect_stats=collect_stats)
    return NO_ROWS


def _partition(text: str) -> StructField:
    column = parse_definition(text)
    if not isinstance(column, ColumnDefinition) or column != ColumnDefinition(column.name, column.type):
        raise ExpressionError(f"PARTITIONED BY: expected a name and a type, got {text!r}")
    return StructField(column.name, column_type(column.name, column.type or "variant"), True)
