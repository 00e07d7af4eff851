"""Read data files as rows of the table: resolve columns, conform types and add partition values."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any, Literal, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.types as arrow_types

from .._arrow import Array, retype_array
from .._options import OnConflict
from .._threads import Threads
from ..data_file import reader
from ..data_file.reader import (
    NativeFile,
    Projection,
    RowRange,
    TableColumns,
    Units,
    VectorFiles,
    open_file,
    table_columns,
)
from ..data_file.shredding import shredded_type, shredding_of
from ..errors import CastError, DataFileError, DeltaVariantError, ProtocolError, StoreError, error_location
from ..expressions import evaluate
from ..expressions.evaluate import ROW_NUMBERS
from ..expressions.tree import Column, Expression, Extraction, Input, input_name, is_whole
from ..expressions.tree import inputs as expression_inputs
from ..log import deletion_vectors
from ..log.snapshot import TableVersion
from ..protocol import properties
from ..protocol.actions import DeletionVector, is_residual
from ..protocol.properties import ColumnMappingMode
from ..protocol.schema.arrow import to_arrow
from ..protocol.schema.column_mapping import physical_name, physical_schema, stored_paths
from ..protocol.schema.conforming import check_readable, conform
from ..protocol.schema.partition_values import partition_value_from_string
from ..protocol.types import StructField, StructType
from ..storage.store import exists, uri_of
from ..variant.shredding import ShreddingSchema
from ..variant.values import VARIANT_TYPE
from .predicate import Leaf, RowCondition
from .row_tracking import RowTracking
from .scope import FILE_METADATA, Scope, file_metadata

FILES_AHEAD = 8
"""How many files of a remote store are opened concurrently."""

NUMBERS = Projection(pa.field("number", pa.int64()), (), "position")
"""The position of each row in its file, for errors."""

POSITION = Column("\0position", pa.int64())
"""An input for the position of each row in its file, counting deleted rows."""


Stored: TypeAlias = Literal["stored"] | None
"""The form of a Variant column as the file stores it: `stored` keeps dictionaries of text."""


@dataclass(frozen=True)
class FileEntry:
    """The fields of an AddFile that a read needs."""

    path: str
    partition_values: Mapping[str, str | None]
    deletion_vector: Mapping[str, Any] | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    size: int | None = None
    tags: Sequence[tuple[str, str | None]] | None = None

    @property
    def is_residual(self) -> bool:
        """Return whether the file has the residual rows of other files."""
        return is_residual(self.tags)


def files_of(files: pa.Table) -> Iterator[FileEntry]:
    """Yield an entry for each of the files, rows of `Snapshot.files`."""
    columns = files.select([field.name for field in dataclasses.fields(FileEntry)])
    for batch in columns.to_batches():
        rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
        for path, values, *others in rows:
            yield FileEntry(path, dict(values or ()), *others)


@contextmanager
def _explain_missing_file(table: TableVersion, path: str) -> Iterator[None]:
    """Raise errors about a file that no longer exists with the probable reason, the table and the version."""
    try:
        yield
    except (DataFileError, StoreError) as error:
        try:
            is_missing = not exists(table.store, path)
        except StoreError:
            is_missing = False
        if not is_missing:
            raise
        raise type(error)(
            "the file does not exist: a vacuum may have deleted it; read a later version, or restore the "
            "file from a backup; if neither is possible, repair_files removes the entry of the file"
        ).at(table=table.uri, version=table.version, file=path) from error


def load_deleted(
    table: TableVersion,
    vector: Mapping[str, Any] | DeletionVector | None,
    read: deletion_vectors.ReadRanges | None = None,
) -> bytes | None:
    """Return the deletion vector of a file, like `deletion_vectors.load`."""
    if vector is None:
        return None
    path = deletion_vectors.file_path(vector)
    with nullcontext() if path is None else _explain_missing_file(table, path):
        return deletion_vectors.load(table.store, vector, read)


@dataclass(frozen=True)
class TableReader:
    """Opens the files of a table and maps its columns to their columns."""

    version: TableVersion
    mode: ColumnMappingMode
    fields: Mapping[str, StructField]
    columns: TableColumns
    vectors: VectorFiles

    @classmethod
    def of(cls, version: TableVersion) -> TableReader:
        table = version.configuration
        fields = {field.name: field for field in table.schema.fields}
        columns = table_columns(table.physical_schema, table.mapping_mode)
        return cls(version, table.mapping_mode, fields, columns, VectorFiles(version.store))

    def column(self, each: Input, array: Any) -> Any:
        """Return a column in its table type: cast, with logical nested names and nulls for absent fields."""
        if isinstance(each, Extraction) or each == POSITION:
            return array
        if array.type == each.type and not arrow_types.is_nested(array.type):
            return array
        field = self.fields[each.name]
        (stored,) = physical_schema(StructType((field,)), self.mode).fields
        check_readable(array.type, stored.type, (stored.name,))
        nullable = StructType((StructField(stored.name, stored.type, True),))
        conformed = conform(pa.record_batch([array], names=[stored.name]), nullable).column(0)
        return conformed if conformed.type == each.type else retype_array(conformed, each.type)

    def logical_name(self, stored: str | None) -> str | None:
        """Return the name in the table of a column or a nested field, which an error names as stored."""
        if self.mode == "none" or stored is None:
            return stored
        paths = stored_paths(self.version.schema, self.mode)
        names = {".".join(path): ".".join(name) for name, path in paths.items()}
        return names.get(stored, stored)

    def open_all(self, files: Iterable[FileEntry]) -> Iterator[FileReader]:
        """Yield open data files in order; files of a remote store are opened ahead of the consumer."""
        return (open_file() for open_file in self.open_each(files))

    def open_each(self, files: Iterable[FileEntry]) -> Iterator[Callable[[], FileReader]]:
        """Yield a function for each data file that returns it open, like `open_all`."""
        if self.version.store.local_root is not None:
            yield from (partial(self.open, file) for file in files)
            return
        ahead: deque[Future[FileReader]] = deque()
        with Threads(FILES_AHEAD) as threads:
            for file in files:
                ahead.append(threads.submit(self.open, file))
                if len(ahead) == FILES_AHEAD:
                    yield ahead.popleft().result
            while ahead:
                yield ahead.popleft().result

    def open(self, file: FileEntry) -> FileReader:
        """Open a data file; raises DataFileError."""
        with _explain_missing_file(self.version, file.path):
            return FileReader(self, file, open_file(self.version.store, file.path, self.columns))


class _Request(msgspec.Struct, frozen=True):
    """What to read of a file: the columns of inputs and of `extra` projections, in `rows` or in all rows.

    `stored` has the Variant columns that are returned as the file stores them, and in which form. With
    `is_count`, only the number of rows that meet the conditions is needed.
    """

    inputs: Sequence[Input]
    rows: Sequence[RowRange] | None
    on_conflict: OnConflict = "error"
    extra: Sequence[Projection] = ()
    stored: Mapping[str, Stored] = {}
    conditions: Sequence[RowCondition] = ()
    is_count: bool = False


@dataclass(frozen=True)
class FileReader:
    """An open data file of a table, without the rows whose numbers are in `removed`."""

    table: TableReader
    file: FileEntry
    native: NativeFile
    removed: Array = ()

    def without(self, rows: Array) -> FileReader:
        """Return the file without some rows, given their numbers as an array."""
        return dataclasses.replace(self, removed=rows)

    @property
    def row_groups(self) -> list[RowRange]:
        ends = list(accumulate(rows for rows, _ in self.native.row_groups))
        return list(zip([0, *ends], ends, strict=False))

    @property
    def num_rows(self) -> int:
        """Return the number of rows that are not deleted, by the vector: its descriptor may state another."""
        total = self.native.num_rows
        ranges = deletion_vectors.subtract_rows(self._deleted(), None)
        return total - sum(min(end, total) - min(start, total) for start, end in ranges)

    def _deleted(self) -> bytes | None:
        table = self.table
        deleted = load_deleted(table.version, self.file.deletion_vector, table.vectors.read)
        return deletion_vectors.add_rows(deleted, self.removed)[0] if len(self.removed) else deleted

    def units(self, leaves: Sequence[Leaf], row_groups: Sequence[int] | None = None) -> Units:
        """Return the bounds of leaves in all row groups, or in the pages of the given row groups.

        The pages of several columns are split into ranges that no page crosses.
        """
        inputs: Any = [
            (list(self._stored_path(leaf.names)), None if leaf.path is None else list(leaf.path), leaf.type)
            for leaf in leaves
        ]
        with error_location(file=self.file.path):
            return Units(*self.native.units(inputs, None if row_groups is None else list(row_groups)))

    def read(
        self,
        inputs: Sequence[Input],
        rows: Sequence[RowRange] | None,
        on_conflict: OnConflict,
        shredded: Collection[str] = (),
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows in `rows`, or all rows, as batches with a column for each input.

        Variant columns in `shredded` are returned as the file stores them.
        """
        for _, batch in self.read_matching(inputs, (), rows, on_conflict, shredded):
            yield batch

    def read_whole(self, rows: Sequence[RowRange] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows in `rows`, or all rows, with the columns of the table."""
        columns = Scope.of(self.table.version.configuration).whole_columns()
        for batch in self.read(expression_inputs(columns.values()), rows, "error"):
            yield evaluate_columns(columns, batch)

    def read_matching(
        self,
        inputs: Sequence[Input],
        conditions: Sequence[RowCondition],
        rows: Sequence[RowRange] | None,
        on_conflict: OnConflict,
        shredded: Collection[str] = (),
        *,
        is_count: bool = False,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the rows that meet the conditions on inputs, and maybe others, like `read`.

        Each batch is returned with the number of rows that were read so far. With `is_count`, only the
        number of rows that meet the conditions is needed: batches in which they decide about each row have no
        columns.
        """
        stored: dict[str, Stored] = dict.fromkeys(shredded, None)
        request = _Request(inputs, rows, on_conflict, (), stored, conditions, is_count)
        for seen, batch, _ in self._read(request):
            yield seen, batch

    def read_with_row_ids(
        self,
        inputs: Sequence[Input],
        tracking: RowTracking | None,
        shredded: Mapping[str, Stored],
        rows: Sequence[RowRange] | None,
    ) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch | None]]:
        """Yield rows as batches of the inputs, and their row ids and commit versions if rows are tracked.

        The rows are those in `rows`, or all. Variant columns in `shredded` are returned in this form. Raises
        ProtocolError for a file without a base row id.
        """
        if tracking is None:
            request = _Request(inputs, rows, stored=shredded)
            yield from ((batch, None) for _, batch, _ in self._read(request))
            return
        base, version = self.file.base_row_id, self.file.default_row_commit_version
        if base is None or version is None:
            raise ProtocolError(
                "the add action has no baseRowId or no defaultRowCommitVersion, but the table sets "
                f"{properties.ENABLE_ROW_TRACKING.name}=true"
            ).at(file=self.file.path)
        request = _Request(inputs, rows, extra=tracking.projections, stored=shredded)
        for _, batch, read in self._read(request):
            yield batch, tracking.rows(base, version, read)

    def _read(self, request: _Request) -> Iterator[tuple[int, pa.RecordBatch, list[Any]]]:
        """Yield the number of rows read so far, a batch of the inputs, and columns of extra projections.

        After a strict cast of a path fails, read such paths as Variants from there on, because the
        expressions decide which rows are cast.
        """
        seen = 0
        try:
            for read, batch, others in self._read_inputs(request):
                yield read, batch, others
                seen = read
        except CastError:
            inputs = list(dict.fromkeys(map(evaluate.without_cast, request.inputs)))
            if inputs == list(request.inputs):
                raise
            numbers = [*request.extra, NUMBERS]
            again = _Request(inputs, request.rows, request.on_conflict, numbers, request.stored)
            for read, batch, others in self._read_inputs(again):
                # Each row is returned once.
                done = max(0, seen - (read - batch.num_rows))
                if done < batch.num_rows:
                    numbered = batch.append_column(ROW_NUMBERS, others.pop()).slice(done)
                    yield read, numbered, [each.slice(done) for each in others]

    def _read_inputs(self, request: _Request) -> Iterator[tuple[int, pa.RecordBatch, list[Any]]]:
        path, deleted = self.file.path, self._deleted()
        stored = [each for each in request.inputs if not self._is_constant(each)]
        read = [
            self._as_stored(each, request.stored[each.column])
            if is_whole(each) and each.column in request.stored
            else self._projection(each)
            for each in stored
        ]
        projections = [*read, *request.extra]
        by_name = {input_name(each): each for each in request.inputs}
        conditions = [
            (stored.index(each.input), each.operator, each.values)
            for each in request.conditions
            if each.input in stored
        ]
        # A condition on a partition column is not tested.
        is_count = request.is_count and len(conditions) == len(request.conditions)
        options: Any = {"on_conflict": request.on_conflict, "deleted": deleted, "is_count": is_count}
        options["rows"] = request.rows
        try:
            for seen, batch in reader.read_matching(self.native, path, projections, conditions, **options):
                is_counted = is_count and not batch.num_columns
                found = self._with_constants(batch, by_name) if by_name and not is_counted else batch
                yield seen, found, batch.columns[len(stored) :]
        except DeltaVariantError as error:
            error.column = self.table.logical_name(error.column)
            raise

    def shredded(
        self,
        names: Collection[str],
        shredding: ShreddingSchema | Mapping[Any, ShreddingSchema] | Literal["infer"] | None,
    ) -> frozenset[str]:
        """Return those of the Variant columns that the file stores with exactly this shredding."""
        if not isinstance(shredding, Mapping):
            return frozenset()
        types = {field.name: field.type for field in self.native.schema}
        paths = {name: self._stored_path((name,)) for name in names}
        return frozenset(
            name
            for name, path in paths.items()
            if path in shredding and types.get(path[0]) == shredded_type(shredding[path])
        )

    def shredding(self, names: Sequence[str]) -> ShreddingSchema | None:
        """Return how a Variant is shredded, None if the file does not have it."""
        return shredding_of(self.native).get(self._stored_path(names))

    def stored_type(self, name: str) -> pa.DataType | None:
        """Return the type of a column of the file, None if it does not have it."""
        position = self.native.schema.get_field_index(self._stored_path((name,))[0])
        return None if position < 0 else self.native.schema.field(position).type

    def _with_constants(self, batch: pa.RecordBatch, inputs: Mapping[str, Input]) -> pa.RecordBatch:
        """Return the inputs by name in their table types, with the constants of the file among them."""
        columns = iter(batch.columns)
        with error_location(file=self.file.path):
            arrays = [
                self._constant(each, batch.num_rows)
                if self._is_constant(each)
                else self.table.column(each, next(columns))
                for each in inputs.values()
            ]
        return pa.record_batch(arrays, names=list(inputs))

    def _is_constant(self, each: Input) -> bool:
        if each == FILE_METADATA:
            return True
        return isinstance(each, Column) and each.name in self.table.version.partition_columns

    def _constant(self, each: Input, rows: int) -> Any:
        assert isinstance(each, Column)
        if each == FILE_METADATA:
            return file_metadata(uri_of(self.table.version.store, self.file.path), self.file.size, rows)
        field = self.table.fields[each.name]
        text = self.file.partition_values.get(physical_name(field, self.table.mode))
        value = partition_value_from_string(text, field.type, self.table.version.timezone)
        constant: Any = pa.scalar(value, each.type)
        return pa.repeat(constant, rows)

    def _projection(self, each: Input) -> Projection:
        if each == POSITION:
            return NUMBERS
        if isinstance(each, Column):
            physical = physical_schema(StructType((self.table.fields[each.name],)), self.table.mode)
            (arrow_field,) = to_arrow(physical)
            return Projection(arrow_field, self._stored_path((each.name,)))
        column = self._stored_path((each.column, *each.fields))
        zone = each.timezone
        if each.as_json:
            return Projection(pa.field("json", pa.string()), column, "json", each.path, timezone=zone)
        target = VARIANT_TYPE if each.type is None else each.type
        return Projection(pa.field("path", target), column, "path", each.path, each.strict, zone)

    def _as_stored(self, whole: Extraction, what: Stored) -> Projection:
        """Return a projection of a Variant column in its shredded layout."""
        path = self._stored_path((whole.column,))
        return Projection(self.native.schema.field(path[0]).remove_metadata(), path, what)

    def _stored_path(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the physical names of a column and of the struct fields below it."""
        field = self.table.fields[names[0]]
        path = [physical_name(field, self.table.mode)]
        for name in names[1:]:
            assert isinstance(field.type, StructType)
            field = next(part for part in field.type.fields if part.name == name)
            path.append(physical_name(field, self.table.mode))
        return tuple(path)


def evaluate_columns(columns: Mapping[str, Expression], batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch of the values of expressions, by their names."""
    return pa.record_batch({name: evaluate.evaluate(column, batch) for name, column in columns.items()})
