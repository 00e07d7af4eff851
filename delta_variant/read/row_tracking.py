"""Row tracking: preserve row ids when rows move to other files (PROTOCOL.md, "Row Tracking")."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import Array
from ..data_file.reader import Projection
from ..errors import ProtocolError
from ..protocol import properties
from ..protocol.properties import TableProperty
from ..protocol.schema.column_mapping import physical_name
from ..protocol.table_configuration import TableConfiguration
from ..protocol.types import PrimitiveType, StructField


class RowTracking(msgspec.Struct, frozen=True):
    """The names of the materialized row id and row commit version columns."""

    row_id: str
    commit_version: str

    @classmethod
    def of(cls, table: TableConfiguration) -> RowTracking | None:
        """Return the names for a table, None if row tracking is disabled.

        Raises ProtocolError if the table does not define the names or has columns with these names.
        """
        if not table.get(properties.ENABLE_ROW_TRACKING):
            return None
        return cls(
            _name(table, properties.MATERIALIZED_ROW_ID_COLUMN_NAME),
            _name(table, properties.MATERIALIZED_ROW_COMMIT_VERSION_COLUMN_NAME),
        )

    @property
    def columns(self) -> tuple[StructField, ...]:
        """Return the columns that files with moved rows contain."""
        return tuple(StructField(name, PrimitiveType("long")) for name in (self.row_id, self.commit_version))

    @property
    def projections(self) -> list[Projection]:
        """Return the columns of a file that `rows` needs."""
        position = Projection(pa.field("position", pa.int64()), (), "position")
        stored = (self.row_id, self.commit_version)
        return [position, *(Projection(pa.field(name, pa.int64()), (name,)) for name in stored)]

    def rows(self, base_row_id: int, default_version: int, read: list[Array]) -> pa.RecordBatch:
        """Return the row ids and commit versions of rows of a file, given the columns of `projections`."""
        positions, row_ids, versions = (array.cast(pa.int64()) for array in read)
        fresh: Array = pc.add(positions, base_row_id)
        arrays = [pc.coalesce(row_ids, fresh), pc.fill_null(versions, default_version)]
        return pa.record_batch(arrays, names=[self.row_id, self.commit_version])


def with_row_ids(table: TableConfiguration) -> TableConfiguration:
    """Return a table whose files also store the row ids and commit versions of moved rows, if it has them."""
    tracking = RowTracking.of(table)
    return table if tracking is None else replace(table, extra_columns=tracking.columns)


def append_row_ids(rows: pa.RecordBatch, moving: pa.RecordBatch | None) -> pa.RecordBatch:
    """Return rows with their row ids and commit versions as further columns."""
    if moving is None:
        return rows
    names = [*rows.schema.names, *moving.schema.names]
    return pa.record_batch([*rows.columns, *moving.columns], names=names)


def clear_commit_versions(moving: pa.RecordBatch, which: Array) -> pa.RecordBatch:
    """Return row ids and commit versions, without the version of updated rows: the commit assigns it."""
    row_ids, versions = moving.columns
    none: Array = pa.scalar(None, pa.int64())
    return pa.record_batch([row_ids, pc.if_else(which, none, versions)], names=moving.schema.names)


def _name(table: TableConfiguration, prop: TableProperty[str | None]) -> str:
    name = table.get(prop)
    if not name:
        raise ProtocolError(
            f"{table.uri} enables row tracking, but does not set {prop.name}", table=table.uri
        )
    if any(physical_name(field, table.mapping_mode) == name for field in table.schema.fields):
        raise ProtocolError(
            f"{table.uri} has a column {name!r}, but {prop.name} reserves this name",
            table=table.uri,
            column=name,
        )
    return name
