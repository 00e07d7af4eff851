"""CREATE TABLE, with and without rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec
import pyarrow as pa

from ..errors import ExpressionError
from ..log.load import load_latest
from ..operations.alter.table_properties import set_properties
from ..operations.create import create_table
from ..operations.write import write_table
from ..protocol.features import supported_features
from ..storage.store import TableLocation
from .session import NO_ROWS, Session

__all__ = ["Create"]

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
        if self.query is None:
            self._create(table)
        else:
            self._write(table, session, self.query)
        self._add_features(table)
        return NO_ROWS

    def _add_features(self, table: TableLocation) -> None:
        """Add the features that neither the columns nor the other properties need."""
        known = supported_features(load_latest(table).protocol)
        names = self.properties.keys() - self._settings.keys()
        missing = {name: self.properties[name] for name in names if name.removeprefix(FEATURE) not in known}
        if missing:
            set_properties(table, missing)

    def _create(self, table: TableLocation) -> None:
        if self.mode == "overwrite":
            raise ExpressionError("CREATE OR REPLACE TABLE needs a query (AS SELECT …)")
        create_table(
            table,
            self.columns,
            mode=self.mode,
            partition_by=self.partition_by or None,
            cluster_by=self.cluster_by or None,
            configuration=self._settings,
            description=self.comment,
        )

    def _write(self, table: TableLocation, session: Session, query: str) -> None:
        if self.columns or self.cluster_by:
            what = "columns of its own" if self.columns else "CLUSTER BY"
            raise ExpressionError(
                f"CREATE TABLE AS SELECT with {what}: create the table, then INSERT INTO it"
            )
        write_table(
            table,
            session.rows(query).data,
            mode=self.mode,
            schema_mode="overwrite" if self.mode == "overwrite" else None,
            partition_by=self.partition_by,
            configuration=self._settings,
            description=self.comment,
        )
