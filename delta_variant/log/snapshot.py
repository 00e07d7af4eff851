"""A table at one version: where it is, how it is configured, and its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import pyarrow as pa

from .._html import html_table
from .._text import count, size_text
from ..errors import printable
from ..protocol.actions import DomainMetadata, Metadata, Protocol, Txn
from ..protocol.schema.arrow import to_arrow
from ..protocol.table_configuration import TableConfiguration
from ..protocol.types import StructType, sql_type
from ..storage.store import Store
from ..variant.moments import check_timezone
from .file_set import FileSet

Version = TypeVar("Version", bound="TableVersion")


@dataclass(frozen=True, eq=False)
class TableVersion:
    """A table at one version, without a list of its files: enough to read and write files of the table."""

    store: Store
    version: int
    configuration: TableConfiguration

    def in_timezone(self: Version, timezone: str) -> Version:
        """Return the snapshot with local times in another time zone.

        Args:
            timezone: The time zone of local times in SQL text, as in `read_table`.

        Raises:
            ValueError: The time zone is unknown.

        Example:
            >>> import delta_variant as dv
            >>> _ = dv.write_table("clicks", [{"id": 1}])
            >>> dv.load_snapshot("clicks").in_timezone("Europe/Berlin").timezone
            'Europe/Berlin'
        """
        check_timezone(timezone)
        return replace(self, configuration=replace(self.configuration, timezone=timezone))

    @property
    def uri(self) -> str:
        """Return the URI or the path of the table."""
        return self.configuration.uri

    @property
    def protocol(self) -> Protocol:
        """Return the protocol of the table."""
        return self.configuration.protocol

    @property
    def metadata(self) -> Metadata:
        """Return the metadata of the table."""
        return self.configuration.metadata

    @property
    def schema(self) -> StructType:
        """Return the schema of the table."""
        return self.configuration.schema

    @property
    def timezone(self) -> str:
        """Return the time zone of local times."""
        return self.configuration.timezone

    @property
    def arrow_schema(self) -> pa.Schema:
        """Return the schema as Arrow types, as a scan of all columns returns it."""
        return to_arrow(self.schema)

    @property
    def properties(self) -> Mapping[str, str]:
        """Return the texts of the table properties."""
        return self.configuration.properties

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Return the logical names of the partition columns, in order."""
        return self.metadata.partition_columns


@dataclass(frozen=True, repr=False, eq=False)
class Snapshot(TableVersion):
    """The state of a table at one version.

    `files` has one row for each logical file (FILES_SCHEMA). The files of a large checkpoint are loaded when
    `files` is first used; a read that selects files does not use it. `timestamp` is the in-commit timestamp
    of the version in milliseconds since 1970, None if the table does not have them.

    Example:
        >>> import delta_variant as dv
        >>> _ = dv.write_table("clicks", [{"id": 1}])
        >>> snapshot = dv.load_snapshot("clicks")
        >>> snapshot.version, snapshot.num_files, snapshot.arrow_schema.names
        (0, 1, ['id'])
    """

    file_set: FileSet
    txns: Mapping[str, Txn]
    domain_metadata: Mapping[str, DomainMetadata]
    timestamp: int | None = None

    @property
    def files(self) -> pa.Table:
        """Return the files, with one row for each logical file."""
        return self.file_set.table

    @property
    def num_files(self) -> int:
        """Return the number of logical files."""
        return self.file_set.num_files

    @property
    def num_bytes(self) -> int:
        """Return the total size of all data files in bytes."""
        return self.file_set.num_bytes

    def __repr__(self) -> str:
        features = sorted({*(self.protocol.reader_features or ()), *(self.protocol.writer_features or ())})
        lines = [
            f"Snapshot of {self.uri}",
            f"  version     {self.version}",
            f"  files       {self.num_files:,} ({self.num_bytes:,} bytes)",
            f"  protocol    {self.protocol.min_reader_version}, {self.protocol.min_writer_version}",
            f"  features    {', '.join(features)}",
            f"  partitions  {', '.join(self.partition_columns)}",
            *(f"  property    {name} = {value}" for name, value in sorted(self.properties.items())),
            *(
                f"  column      {field.name} {sql_type(field.type)}{'' if field.nullable else ' not null'}"
                for field in self.schema.fields
            ),
        ]
        return "\n".join(printable(line) for line in lines if line.split()[1:])

    def _repr_html_(self) -> str:
        size = f"{count(self.num_files, 'file')}, {size_text(self.num_bytes)}"
        columns = [
            (each.name, sql_type(each.type), "" if each.nullable else "not null")
            for each in self.schema.fields
        ]
        shown = html_table(f"{self.uri}, version {self.version}: {size}", ("column", "type", ""), columns)
        properties = sorted(self.properties.items())
        return shown + (html_table("", ("property", "value"), properties) if properties else "")


def strip_files(table: TableVersion) -> TableVersion:
    """Return a version as it is sent to tasks, which open its store and do not need its list of files."""
    no_store: Any = None
    return TableVersion(no_store, table.version, table.configuration)
