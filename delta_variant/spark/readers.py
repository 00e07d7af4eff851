"""The tasks that read the files of a table with our kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType as SparkStruct

from .._arrow import total
from .._options import OnConflict
from .._packing import pack_evenly
from .._redaction import redact_location
from ..errors import CastError
from ..execution import GROUP_BYTES
from ..expressions.char_padding import padded_column
from ..expressions.evaluate import evaluate, without_cast
from ..expressions.tree import Expression, Literal, input_name, is_strict_cast
from ..log.snapshot import TableVersion
from ..operations.changes import ChangedFile, ChangeFeed, query_of_changes
from ..protocol.schema.arrow import from_arrow, variant_field
from ..protocol.schema.char_types import TYPE_TEXT
from ..protocol.types import StructType
from ..read.explanation import ReadReport
from ..read.file_reader import FileEntry, files_of
from ..read.predicate import pruning_predicate_of
from ..read.query import Query
from ..read.rows import read_files
from ..variant.values import extract
from .columns import cast_for_spark, to_spark
from .tasks import TaskTable, unpack_batches

Columns: TypeAlias = "Mapping[str, str] | Sequence[str] | None"
File = TypeVar("File", bound="FileEntry | ChangedFile")


def size_of(file: FileEntry | ChangedFile) -> int:
    """Return the bytes of a file, 0 if they are not known."""
    return (file.file if isinstance(file, ChangedFile) else file).size or 0


def file_groups(files: Sequence[File], tasks: int) -> Iterator[tuple[File, ...]]:
    """Yield files in groups of similar size, one for each concurrent task if there are enough."""
    return _groups(files, sum(map(size_of, files)), tasks)


def groups_of_table(files: pa.Table, tasks: int) -> Iterator[tuple[FileEntry, ...]]:
    """Yield rows of `Snapshot.files` in the groups of `file_groups`, one at a time."""
    return _groups(files_of(files), total(files["size"]), tasks)


def _groups(files: Iterable[File], size: int, tasks: int) -> Iterator[tuple[File, ...]]:
    return map(tuple, pack_evenly(files, size_of, size, max(tasks, 1), GROUP_BYTES))


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


VARIANTS: Any = pa.list_(variant_field("element"))


class LenientQuery(Query, frozen=True):
    """A query whose batches have all rows, and the Variants that cannot be cast, if a cast fails.

    The output `failed` has an array of Variants for a row with a failed cast, one for each strict cast among
    the outputs, else NULL.
    """

    failed: str | None = None

    @classmethod
    def of_outputs(
        cls, outputs: Mapping[str, Expression], predicate: Expression | None, failed: str | None
    ) -> LenientQuery:
        """Return the query for bound expressions; the output `failed` is added."""
        added = {} if failed is None else {failed: Literal(pa.scalar(None, VARIANTS))}
        query = cls({}, predicate, (), failed=failed)._with({**outputs, **added}, None)
        assert isinstance(query, LenientQuery)
        return query

    def result(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the outputs for the rows that match the predicate, or for all rows if a cast fails."""
        try:
            return super().result(batch)
        except CastError:
            return self._all_rows(batch)

    def _all_rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays: dict[str, Any] = {}
        failed = []
        for name, each in self.outputs.items():
            if not is_strict_cast(each):
                arrays[name] = evaluate(each, batch)
                continue
            arrays[name], rest = _cast_or_keep(each, batch)
            failed.append(rest)
        if self.failed is not None:
            arrays[self.failed] = _arrays_of_failed(failed, batch.num_rows)
        schema = self.schema
        return pa.record_batch([arrays[name].cast(schema.field(name).type) for name in arrays], schema=schema)


def _cast_or_keep(each: Any, batch: pa.RecordBatch) -> tuple[Any, Any]:
    """Return the values of a strict cast, NULL where it fails, and the Variants where it does."""
    if input_name(each) in batch.schema.names:
        return batch.column(input_name(each)), pa.nulls(batch.num_rows, VARIANTS.value_type)
    raw: Any = batch.column(input_name(without_cast(each)))
    found = extract(raw, (), each.type, strict=False, timezone=each.timezone)
    parts = [raw.field(name).cast(pa.binary()) for name in ("metadata", "value")]
    is_failed = pc.and_(found.is_null(), raw.is_valid())
    kept = pa.StructArray.from_arrays(
        [pc.if_else(is_failed, part, b"") for part in parts],
        fields=list(VARIANTS.value_type),
        mask=pc.invert(is_failed),
    )
    return found, kept


def _arrays_of_failed(failed: Sequence[Any], rows: int) -> Any:
    """Return for each row the array of its Variants, NULL for a row without any."""
    has_any = pa.repeat(pa.scalar(False), rows)
    for each in failed:
        has_any = pc.or_(has_any, each.is_valid())
    flags = [bool(each) for each in has_any.to_pylist()]
    numbers = [number * rows + row for row, flag in enumerate(flags) if flag for number in range(len(failed))]
    offsets = [0]
    for flag in flags:
        offsets.append(offsets[-1] + flag * len(failed))
    values = pa.concat_arrays(failed).take(pa.array(numbers, pa.int64()))
    from_arrays: Any = pa.ListArray.from_arrays
    return from_arrays(pa.array(offsets, pa.int32()), values, type=VARIANTS, mask=pc.invert(has_any))


@dataclass(frozen=True)
class QueryReader(FileReader):
    """Reads groups of files of a table for a query that is bound already."""

    bound: LenientQuery

    @property
    def query(self) -> LenientQuery:
        return self.bound
