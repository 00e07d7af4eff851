"""The tasks that read the files of a table with our kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa
from pyspark.sql.types import StructType as SparkStruct

from .._arrow import total
from .._options import OnConflict
from .._packing import pack_by_size
from .._redaction import redact_location
from ..execution import GROUP_BYTES
from ..expressions.char_padding import padded_column
from ..log.snapshot import TableVersion
from ..operations.changes import ChangedFile, ChangeFeed, query_of_changes
from ..protocol.schema.arrow import from_arrow
from ..protocol.schema.char_types import TYPE_TEXT
from ..protocol.types import StructType
from ..read.explanation import ReadReport
from ..read.file_reader import FileEntry, files_of
from ..read.predicate import pruning_predicate_of
from ..read.query import Query
from ..read.rows import read_files
from .columns import cast_for_spark, to_spark
from .tasks import TaskTable, unpack_batches

Columns: TypeAlias = "Mapping[str, str] | Sequence[str] | None"
File = TypeVar("File", bound="FileEntry | ChangedFile")


def size_of(file: FileEntry | ChangedFile) -> int:
    """Return the bytes of a file, 0 if they are not known."""
    return (file.file if isinstance(file, ChangedFile) else file).size or 0


def file_groups(files: Sequence[File], tasks: int) -> Iterator[tuple[File, ...]]:
    """Yield files in groups of similar size, at least one for each concurrent task if there are enough."""
    return _groups(files, sum(map(size_of, files)), tasks)


def groups_of_table(files: pa.Table, tasks: int) -> Iterator[tuple[FileEntry, ...]]:
    """Yield rows of `Snapshot.files` in the groups of `file_groups`, one at a time."""
    return _groups(files_of(files), total(files["size"]), tasks)


def _groups(files: Iterable[File], size: int, tasks: int) -> Iterator[tuple[File, ...]]:
    return map(tuple, pack_by_size(files, size_of, min(GROUP_BYTES, size // max(tasks, 1) + 1)))


@dataclass(frozen=True)
class FileReader:
    """Reads groups of files of a table."""

    table: TaskTable
    columns: Columns
    where: str | None
    on_conflict: OnConflict

    @property
    def name(self) -> str:
        """Return what Spark's plans show: the table and its version."""
        return (
            f"delta_variant READ {redact_location(self.table.configuration.uri)} version {self.table.version}"
        )

    @property
    def schema(self) -> SparkStruct:
        query, columns = self.query, self.table.configuration.schema.fields
        types = {each.name: each.metadata for each in columns if TYPE_TEXT in each.metadata}
        sources = {name: padded_column(each) for name, each in query.outputs.items()} if types else {}
        fields = (
            replace(each, metadata=types.get(sources.get(each.name) or "", each.metadata))
            for each in from_arrow(query.schema).fields
        )
        return to_spark(StructType(tuple(fields)))

    @property
    def query(self) -> Query:
        return Query.of(self.table.configuration, self.columns, self.where)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the matching rows of each group of files."""
        for group in unpack_batches(batches):
            yield from self.read(group)

    def read(self, files: Sequence[Any]) -> Iterator[pa.RecordBatch]:
        """Yield the matching rows of files, with the types that Spark expects."""
        yield from cast_for_spark(self.rows(self.table.open(), files), self.schema)

    def rows(self, table: TableVersion, files: Sequence[Any]) -> Iterator[pa.RecordBatch]:
        query, pruning_predicate = self.query, None
        if query.predicate is not None:
            pruning_predicate = pruning_predicate_of(query.predicate, table.partition_columns)
        yield from read_files(table, query, files, pruning_predicate, self.on_conflict)


@dataclass(frozen=True)
class ChangeReader(FileReader):
    """Reads groups of files with changes, whose table has the schema of the changes."""

    @property
    def query(self) -> Query:
        return query_of_changes(self.table.configuration, self.columns, self.where)

    def rows(self, table: TableVersion, files: Sequence[Any]) -> Iterator[pa.RecordBatch]:
        feed = ChangeFeed.of(table, self.columns, self.where, self.on_conflict)
        return feed.read(files, ReadReport(), ahead=True)
