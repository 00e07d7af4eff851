"""Row tracking: preserve row ids when rows move to other files (PROTOCOL.md, "Row Tracking")."""

from __future__ import annotations

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import Array
from ..data_file.reader import Projection
from ..errors import ProtocolError
from ..log.snapshot import Snapshot
from ..protocol import properties
from ..protocol.properties import TableProperty
from ..protocol.schema.column_mapping import physical_name
from ..protocol.types import PrimitiveType, StructField

__all__ = ["RowTracking", "append_row_ids", "clear_commit_versions"]


class RowTracking(msgspec.Struct, frozen=True):
    """The names of the materialized row id and row commit version columns."""

    row_id: str
    commit_version: str

    @classmethod
    def of(cls, snapshot: Snapshot) -> RowTracking | None:
        """Return the names for a table, None if row tracking is disabled.

        Raises ProtocolError if the table does not define the names or has columns with these names.
        """
        if not snapshot.configuration.get(properties.ENABLE_ROW_TRACKING):
            return None
        return cls(
            _name(snapshot, properties.MATERIALIZED_ROW_ID_COLUMN_NAME),
            _name(snapshot, properties.MATERIALIZED_ROW_COMMIT_VERSION_COLUMN_NAME),
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


def _name(snapshot: Snapshot, prop: TableProperty[str | None]) -> str:
    name = snapshot.configuration.get(prop)
    if not name:
        raise ProtocolError(
            f"{snapshot.uri} enables row tracking, but does not set {prop.name}", table=snapshot.uri
        )
    mode = snapshot.configuration.mapping_mode
    if any(physical_name(field, mode) == name for field in snapshot.schema.fields):
        raise ProtocolError(
            f"{snapshot.uri} has a column {name!r}, but {prop.name} reserves this name",
            table=snapshot.uri,
            column=name,
        )
    return name
