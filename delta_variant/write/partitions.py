"""Split batches by partition, write the data files of each partition, and describe the written files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from secrets import token_hex
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import Array, positions_by_number, retype_batch
from .._compressed import CompressedSequence, join
from ..data_file.options import WriteOptions
from ..data_file.shredding import infer_shredding
from ..data_file.writer import FileSeries, WrittenFile
from ..errors import MalformedVariantError, SchemaError, error_location
from ..execution import NameFile
from ..input.invalid_json import BatchOrigin, InvalidValueHandler
from ..log.commit_context import now
from ..protocol import properties
from ..protocol.actions import RESIDUAL_ROWS_TAG, AddCDCFile, AddFile, decode_path, encode_path
from ..protocol.schema.arrow import to_arrow
from ..protocol.schema.column_mapping import physical_schema
from ..protocol.schema.conforming import conform
from ..protocol.schema.partition_values import folder_of, partition_value_to_string
from ..protocol.table_configuration import TableConfiguration
from ..protocol.types import (
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    has_variant,
    primitives_of,
)
from ..read.file_reader import FileEntry
from ..storage.store import Store, discard
from ..variant import values as variant_values

MAX_OPEN_PARTITIONS = 64
PARTITION_SAMPLE_BYTES = 1 << 20
"""How many bytes of each partition are buffered to infer its shredding schema; many may be open."""

OPEN_PARTITION_BYTES = 64 << 20
"""The memory of an open partition while as many are open as may be: that of a row group, and of buffers.
Buffers of large values need more. Then fewer partitions are open."""

PartitionValues: TypeAlias = tuple[str | None, ...]


def infer_shared_shredding(
    options: WriteOptions, sample: Iterable[pa.RecordBatch], table: TableConfiguration, rows: int | None
) -> WriteOptions:
    """Return options that shred all files by one schema, inferred from a sample of their rows.

    The sample only needs the columns with Variants. `rows` is the expected number of rows of a file, None for
    a schema that suits files of any size.
    """
    fields = (field for field in table.data_columns.fields if has_variant(field.type))
    variants = StructType(tuple(replace(field, nullable=True) for field in fields))
    names = {field.name.lower() for field in variants.fields}
    columns = FileColumns.of(replace(table, schema=variants, extra_columns=()))
    selected = (
        batch.select([name for name in batch.schema.names if name.lower() in names]) for batch in sample
    )
    batches = [columns.of_files(conform(batch, variants)) for batch in selected]
    return replace(options, shredding=infer_shredding(batches, columns.variants, options, rows))


def split_by_partition(
    batch: pa.RecordBatch, table: TableConfiguration
) -> Iterator[tuple[PartitionValues, Array | None]]:
    """Yield each combination of partition values and the positions of its rows, None for all rows.

    The batch has the columns of the table.
    """
    if not table.partition_columns:
        yield (), None
        return
    encoded = [_encode_partition(batch, name, table) for name in table.partition_columns]
    codes: Any = pa.repeat(pa.scalar(0, pa.int64()), batch.num_rows)
    for column_codes, texts in encoded:
        codes = pc.add(pc.multiply(codes, len(texts)), column_codes)
    for code, positions in sorted(positions_by_number(codes), key=lambda group: group[1][0].as_py()):
        rest, values = code, []
        for _, texts in reversed(encoded):
            rest, index = divmod(rest, len(texts))
            values.append(texts[index])
        yield tuple(reversed(values)), positions


def _encode_partition(
    batch: pa.RecordBatch, name: str, table: TableConfiguration
) -> tuple[Any, list[str | None]]:
    """Return the numbers of the values of a partition column, and the text of each value."""
    column: Any = batch.column(name).dictionary_encode(null_encoding="encode")
    field = next(field for field in table.schema.fields if field.name == name)
    try:
        values = column.dictionary.to_pylist()
    except (OverflowError, ValueError) as error:
        raise SchemaError(
            f"the partition column {name!r} has a value outside the years 1 to 9999: {error}", column=name
        ) from error
    texts = [partition_value_to_string(value, field.type) for value in values]
    return column.indices.cast(pa.int64()), texts


@dataclass(frozen=True)
class FileColumns:
    """The columns that data files store, with their physical names."""

    table: TableConfiguration
    named: tuple[StructField, ...]
    physical: StructType
    variants: tuple[str, ...]

    @classmethod
    def of(cls, table: TableConfiguration) -> FileColumns:
        columns = table.data_columns
        physical = physical_schema(columns, table.mapping_mode)
        physical = StructType((*physical.fields, *table.extra_columns))
        variants = tuple(each.name for each in physical.fields if each.type == VARIANT)
        return cls(table, (*columns.fields, *table.extra_columns), physical, variants)

    def arrange(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch of the table with the columns that files store first, in their order."""
        stored = [field.name for field in self.named]
        return batch.select([*stored, *(name for name in batch.schema.names if name not in stored)])

    def of_files(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch of the table with physical names and field ids."""
        batch = batch.select([field.name for field in self.named])
        if VOID.name in primitives_of(self.table.schema):
            batch = conform(batch, StructType(self.named))
        fields = to_arrow(self.physical, field_ids=self.table.mapping_mode != "none")
        wanted = [
            field.with_type(column.type) if field.name in self.variants else field
            for field, column in zip(fields, batch.columns, strict=True)
        ]
        return retype_batch(batch, pa.schema(wanted))


class Series(Protocol):
    """Files of one partition, written one after another."""

    @property
    def memory(self) -> int:
        """Return about how many bytes of memory the series uses."""

    def add(self, rows: pa.RecordBatch, origin: BatchOrigin) -> None:
        """Write rows with the columns of files."""

    def close(self) -> list[WrittenFile]:
        """Write all rows and return all files."""

    def discard(self) -> None:
        """Remove every file that was started."""


AnySeries = TypeVar("AnySeries", bound=Series)


class PartitionedFiles(Generic[AnySeries]):
    """The files of the partitions of a write, below `folder`, of which a limited number is open.

    `new_series` returns the files of a partition, which call `new_files`.
    """

    def __init__(
        self,
        store: Store,
        table: TableConfiguration,
        options: WriteOptions,
        name: NameFile,
        max_open: int,
        folder: str,
        new_series: Callable[[PartitionValues], AnySeries],
    ) -> None:
        self._store = store
        self._folder = folder
        self._table = table
        self._name = name
        self._max_open = max_open
        self._new_series = new_series
        self._partitions = table.partition_columns
        self.options = replace(options, sample_bytes=PARTITION_SAMPLE_BYTES) if self._partitions else options
        self._physical_partitions = list(table.stored_partition_columns)
        self.columns = FileColumns.of(table)
        self._indexed = set(table.stored_stats_columns)
        self.open: dict[PartitionValues, AnySeries] = {}
        self._files: list[WrittenFile] = []
        self._adds: list[AddFile] = []
        self._paths: list[str] = []
        self._numbers = count()

    def add(self, values: PartitionValues, rows: pa.RecordBatch, origin: BatchOrigin) -> None:
        """Add rows with the columns of files, and finish the largest files while all need too much memory."""
        self.series(values).add(rows, origin)
        limit = self._max_open * OPEN_PARTITION_BYTES
        while len(self.open) > 1 and sum(series.memory for series in self.open.values()) > limit:
            self._finish(max(self.open, key=lambda each: self.open[each].memory))

    def series(self, values: PartitionValues) -> AnySeries:
        if values not in self.open:
            if len(self.open) == self._max_open:
                self._finish(next(iter(self.open)))
            self.open[values] = self._new_series(values)
        return self.open[values]

    def new_files(
        self, values: PartitionValues, invalid_values: InvalidValueHandler, *, separates: bool = False
    ) -> FileSeries[BatchOrigin]:
        return FileSeries(
            self._store,
            partial(self._new_path, values),
            self.options,
            self._indexed,
            self.columns.variants,
            invalid_values.report,
            separates=separates,
        )

    def next_name(self) -> str:
        return self._name(next(self._numbers))

    def _new_path(self, values: PartitionValues) -> str:
        folder = _random_folder(self._table) or "".join(
            f"{folder_of(name, value)}/" for name, value in zip(self._partitions, values, strict=True)
        )
        path = f"{self._folder}{folder}{self.next_name()}.{self.options.files.codec}.parquet"
        self._paths.append(path)
        return path

    def _finish(self, values: PartitionValues) -> None:
        partition_values = dict(zip(self._physical_partitions, values, strict=True))
        written = self.open[values].close()
        del self.open[values]
        kept = [file for file in written if file.rows]
        self._files += kept
        self._adds += [_add_file(file, partition_values, self._table) for file in kept]
        discard(self._store, [file.path for file in written if not file.rows])

    def close(self) -> WrittenFiles:
        while self.open:
            self._finish(next(iter(self.open)))
        return WrittenFiles.of(self._files, self._adds)

    def discard(self) -> None:
        """Remove all files written so far."""
        for series in self.open.values():
            series.discard()
        self.open.clear()
        discard(self._store, self._paths)


def _random_folder(table: TableConfiguration) -> str:
    """Return a random folder for a file of a table that randomizes prefixes, so that stores spread load."""
    if not table.get(properties.RANDOMIZE_FILE_PREFIXES):
        return ""
    length = table.get(properties.RANDOM_PREFIX_LENGTH)
    return f"{token_hex(length)[:length]}/"


def check_variants(array: Any, field: StructField) -> None:
    """Raise MalformedVariantError for an invalid Variant in a column; in lists and maps it has no row."""
    for path, variants in _variants(array, field.type, field.name):
        try:
            with error_location(column=path):
                variant_values.check(variants)
        except MalformedVariantError as error:
            if len(variants) != len(array):
                error.row = None
            raise


def _variants(array: Any, data_type: DataType, path: str) -> Iterator[tuple[str, Any]]:
    if data_type == VARIANT:
        yield path, array
    elif isinstance(data_type, StructType):
        for index, field in enumerate(data_type.fields):
            yield from _variants(pc.struct_field(array, [index]), field.type, f"{path}.{field.name}")
    elif isinstance(data_type, ArrayType):
        yield from _variants(array.flatten(), data_type.element_type, f"{path}.element")
    elif isinstance(data_type, MapType):
        yield from _variants(array.items, data_type.value_type, f"{path}.value")


def _add_file(
    file: WrittenFile, partition_values: Mapping[str, str | None], table: TableConfiguration
) -> AddFile:
    """Return the action that adds a data file to the table."""
    tight_bounds = True if table.supports("deletionVectors") else None
    return AddFile(
        path=encode_path(file.path),
        partition_values=dict(partition_values),
        size=file.bytes,
        modification_time=now(),
        data_change=True,
        stats=replace(file.stats, tight_bounds=tight_bounds).to_json(),
        tags={RESIDUAL_ROWS_TAG: "true"} if file.is_residual else None,
    )


@dataclass(frozen=True)
class WrittenFiles:
    """Files of a table that are not committed yet: data files, or change data files.

    `files` describes them for callers, `adds` has the actions that add them, in the same order.
    """

    files: Sequence[WrittenFile] = ()
    adds: Sequence[AddFile] = ()
    rows: int = 0
    bytes: int = 0

    @classmethod
    def of(cls, files: Sequence[WrittenFile], adds: Sequence[AddFile]) -> WrittenFiles:
        return cls(
            tuple(files), tuple(adds), sum(file.rows for file in files), sum(file.bytes for file in files)
        )

    @classmethod
    def join(cls, parts: Iterable[WrittenFiles]) -> WrittenFiles:
        """Return the files of all parts, compressed if those of a part are."""
        parts = list(parts)
        return cls(
            join(part.files for part in parts),
            join(part.adds for part in parts),
            sum(part.rows for part in parts),
            sum(part.bytes for part in parts),
        )

    def compress(self) -> WrittenFiles:
        """Return the same files with compressed descriptions, which a process can have of very many files."""
        return replace(self, files=CompressedSequence.of(self.files), adds=CompressedSequence.of(self.adds))

    def without(self, paths: Set[str]) -> WrittenFiles:
        if paths.isdisjoint(self.paths()):
            return self
        kept = [each for each in zip(self.files, self.adds, strict=True) if each[0].path not in paths]
        return WrittenFiles.of([file for file, _ in kept], [add for _, add in kept])

    def __len__(self) -> int:
        return len(self.adds)

    def paths(self) -> Iterator[str]:
        return (decode_path(add.path) for add in self.adds)

    def entries(self) -> Iterator[FileEntry]:
        """Yield the files as a read takes them."""
        return (
            FileEntry(
                decode_path(add.path),
                add.partition_values,
                size=add.size,
                tags=None if add.tags is None else tuple(add.tags.items()),
            )
            for add in self.adds
        )

    def change_actions(self) -> Iterator[AddCDCFile]:
        """Yield the actions that record the files as change data files."""
        return (
            AddCDCFile(path=add.path, partition_values=add.partition_values, size=add.size, data_change=False)
            for add in self.adds
        )


NO_FILES = WrittenFiles()
