"""Reading a table: columns and paths by SQL text, and only the leaf columns that they need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from . import data_file, deletion_vectors, expression, features, log, properties, schema
from .data_file import Projection
from .data_types import VARIANT, StructField, StructType
from .expression import Column, Expression, Extraction, Input
from .snapshot import Snapshot
from .store import TableLocation
from .variant import VARIANT_TYPE, OnConflict

__all__ = ["read_table"]

ABSENT = "\0"
"""A name that no column of a Parquet file has: its rows are null."""


def read_table(
    table: TableLocation | Snapshot,
    *,
    columns: Mapping[str, str] | Sequence[str] | None = None,
    where: str | None = None,
    version: int | None = None,
    on_conflict: OnConflict = "error",
    storage_options: Mapping[str, str] | None = None,
) -> pa.RecordBatchReader:
    """Return the rows of a table as a stream of Arrow batches.

    `columns` are expressions in SQL text, by output name or as a sequence, over ordinary columns and Variant
    paths (`event:user.id::bigint`); None is every column, and a Variant column comes as `struct<metadata,
    value>` marked `arrow.parquet.variant`. `where` keeps the rows for which it is true. Casts are Spark's: a
    value that cannot be cast is an error, which `try_cast` and `try_variant_get` make null.

    Raises ExpressionError for SQL that is not understood, UnsupportedFeatureError, ProtocolError and
    SchemaError for tables that this version cannot read; while the stream is read, DataFileError,
    MalformedVariantError, ConflictingValueError (unless `on_conflict="typed"`) and CastError, which name file
    and row.
    """
    snapshot = (
        table
        if isinstance(table, Snapshot)
        else log.load_snapshot(table, version, storage_options=storage_options)
    )
    features.check_may_read(snapshot.protocol, snapshot.schema, snapshot.uri)
    schema.check_variants(snapshot.schema, snapshot.partition_columns)
    query = _Query.of(snapshot, columns, where)
    return pa.RecordBatchReader.from_batches(query.schema, query.batches(snapshot, on_conflict))


@dataclass(frozen=True)
class _Query:
    """Bound expressions, and the inputs they need."""

    outputs: Mapping[str, Expression]
    predicate: Expression | None
    inputs: tuple[Input, ...]

    @classmethod
    def of(
        cls, snapshot: Snapshot, columns: Mapping[str, str] | Sequence[str] | None, where: str | None
    ) -> _Query:
        arrow_schema = schema.to_arrow(snapshot.schema)
        variants = [field.name for field in snapshot.schema.fields if field.type == VARIANT]
        if columns is None:
            parsed: dict[str, Expression] = {name: expression.Name((name,)) for name in arrow_schema.names}
        else:
            parsed = expression.parse_columns(columns)
        outputs = {name: expression.bind(each, arrow_schema, variants) for name, each in parsed.items()}
        predicate = (
            None
            if where is None
            else expression.bind_predicate(expression.parse(where), arrow_schema, variants)
        )
        used = [*outputs.values(), *([] if predicate is None else [predicate])]
        return cls(outputs, predicate, expression.inputs(used))

    @property
    def schema(self) -> pa.Schema:
        """Return the schema of the result."""
        return pa.schema([_output_field(name, each) for name, each in self.outputs.items()])

    def batches(self, snapshot: Snapshot, on_conflict: OnConflict) -> Iterator[pa.RecordBatch]:
        table = _Table.of(snapshot)
        for file in _files(snapshot):
            for batch in table.read(file, self.inputs, on_conflict):
                result = self._result(batch)
                if result.num_rows:
                    yield result

    def _result(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self.predicate is not None:
            batch = _filtered(batch, expression.filter_mask(self.predicate, batch))
        if not self.outputs:
            return _rows_without_columns(batch.num_rows)
        arrays = [
            _cast(expression.evaluate(each, batch), field.type)
            for each, field in zip(self.outputs.values(), self.schema, strict=True)
        ]
        return pa.record_batch(arrays, schema=self.schema)


def _output_field(name: str, bound: Expression) -> pa.Field[Any]:
    output_type = expression.output_type(bound)
    return schema.variant_field(name) if output_type is None else pa.field(name, output_type)


def _filtered(batch: pa.RecordBatch, mask: Any) -> pa.RecordBatch:
    if batch.num_columns:
        return batch.filter(mask)
    return _rows_without_columns(mask.true_count)


def _rows_without_columns(count: int) -> pa.RecordBatch:
    rows: Any = pa.StructArray.from_buffers(pa.struct([]), count, [None])
    return pa.RecordBatch.from_struct_array(rows)


def _cast(array: Any, arrow_type: pa.DataType) -> Any:
    return array if array.type == arrow_type else array.cast(arrow_type)


@dataclass(frozen=True)
class _DataFile:
    """What a read needs of one AddFile."""

    path: str
    partition_values: Mapping[str, str | None]
    deletion_vector: Mapping[str, Any] | None


def _files(snapshot: Snapshot) -> Iterator[_DataFile]:
    columns = snapshot.files.select(["path", "partition_values", "deletion_vector"])
    for batch in columns.to_batches():
        for path, values, vector in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield _DataFile(path, dict(values or ()), vector)


@dataclass(frozen=True)
class _Table:
    """How the columns of a table are found in its files."""

    snapshot: Snapshot
    mode: schema.ColumnMappingMode
    fields: Mapping[str, StructField]

    @classmethod
    def of(cls, snapshot: Snapshot) -> _Table:
        mode = properties.get(snapshot.configuration, properties.COLUMN_MAPPING_MODE)
        return cls(snapshot, mode, {field.name: field for field in snapshot.schema.fields})

    def read(
        self, file: _DataFile, inputs: Sequence[Input], on_conflict: OnConflict
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file as batches of the inputs, each under its name."""
        place = self.snapshot.store
        stored = [each for each in inputs if not self._is_partition(each)]
        names = _names_by_id(data_file.open_file(place, file.path).schema) if self.mode == "id" else None
        projections = [self._projection(each, names) for each in stored]
        deleted = deletion_vectors.load(place, file.deletion_vector)
        for batch in data_file.read(place, file.path, projections, on_conflict=on_conflict, deleted=deleted):
            yield self._with_constants(batch, stored, inputs, file) if inputs else batch

    def _with_constants(
        self, batch: pa.RecordBatch, stored: Sequence[Input], inputs: Sequence[Input], file: _DataFile
    ) -> pa.RecordBatch:
        """Return what was read as the table has it, and the partition values beside it."""
        arrays = {
            expression.input_name(each): self._column(each, array)
            for each, array in zip(stored, batch.columns, strict=True)
        }
        for each in inputs:
            if self._is_partition(each):
                arrays[expression.input_name(each)] = self._constant(each, file, batch.num_rows)
        names = [expression.input_name(each) for each in inputs]
        return pa.record_batch([arrays[name] for name in names], names=names)

    def _is_partition(self, each: Input) -> bool:
        return isinstance(each, Column) and each.name in self.snapshot.partition_columns

    def _constant(self, each: Input, file: _DataFile, rows: int) -> Any:
        assert isinstance(each, Column)
        field = self.fields[each.name]
        text = file.partition_values.get(schema.physical_name(field, self.mode))
        value = schema.partition_value_from_string(text, field.type)
        constant: Any = pa.scalar(value, each.type)
        return pa.repeat(constant, rows)

    def _projection(self, each: Input, names: Mapping[int | None, str] | None) -> Projection:
        if isinstance(each, Column):
            field = self.fields[each.name]
            physical = schema.physical_schema(StructType((field,)), self.mode)
            (arrow_field,) = schema.to_arrow(physical)
            return Projection(arrow_field, (self._stored_name(field, names),))
        column = self._stored_path(each, names)
        if each.as_json:
            return Projection(pa.field("json", pa.string()), column, "json", each.path)
        target = VARIANT_TYPE if each.type is None else each.type
        return Projection(pa.field("path", target), column, "path", each.path, each.strict)

    def _stored_name(self, field: StructField, names: Mapping[int | None, str] | None) -> str:
        """Return the name of a column in the file: by field id where columns are mapped by id."""
        if names is None:
            return schema.physical_name(field, self.mode)
        return names.get(schema.field_id(field), ABSENT)

    def _stored_path(self, each: Extraction, names: Mapping[int | None, str] | None) -> tuple[str, ...]:
        field = self.fields[each.column]
        path = [self._stored_name(field, names)]
        for step in each.fields:
            assert isinstance(field.type, StructType)
            field = next(part for part in field.type.fields if part.name == step)
            path.append(schema.physical_name(field, self.mode))
        return tuple(path)

    def _column(self, each: Input, array: Any) -> Any:
        """Return a column as the table has it: cast, nested names logical, absent nested fields null."""
        if isinstance(each, Extraction):
            return array
        field = self.fields[each.name]
        physical = schema.physical_schema(StructType((field,)), self.mode)
        (stored,) = physical.fields
        nullable = StructType((StructField(stored.name, stored.type, True),))
        conformed = schema.conform(pa.record_batch([array], names=[stored.name]), nullable).column(0)
        return conformed if conformed.type == each.type else _renamed(conformed, each.type)


def _renamed(array: Any, arrow_type: pa.DataType) -> Any:
    """Return a nested array whose fields have the names of `arrow_type`, which has the same layout."""
    retyped: Any = _Retyped(array, arrow_type)
    return pa.array(retyped)


@dataclass(frozen=True)
class _Retyped:
    """An array under another type of the same layout, without a copy."""

    array: Any
    type: pa.DataType

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        return self.type.__arrow_c_schema__(), self.array.__arrow_c_array__()[1]


def _names_by_id(file_schema: pa.Schema) -> Mapping[int | None, str]:
    ids = {field.name: (field.metadata or {}).get(b"PARQUET:field_id") for field in file_schema}
    return {int(identity): name for name, identity in ids.items() if identity is not None}
