"""Writing a table: create and append, one commit each."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args
from urllib.parse import quote
from uuid import uuid4

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from . import commit, data_file, features, log, properties, schema, variant
from .actions import AddFile, Format, Metadata, Protocol, encode_path
from .data_file import Fault, FileSeries, WriteOptions, WrittenFile, check_option
from .data_types import VARIANT, ArrayType, DataType, MapType, StructField, StructType, primitives_of
from .errors import (
    CommitConflictError,
    InvalidJsonError,
    MalformedVariantError,
    ShreddingNotEnabledError,
    TableExistsError,
    TableNotFoundError,
)
from .json_lines import JsonLines, Origin
from .shredding import ShreddingSchema
from .snapshot import Snapshot
from .store import Store, TableLocation, open_store

__all__ = ["WriteResult", "write_table"]

Mode: TypeAlias = Literal["error", "append", "ignore"]

MAX_OPEN_PARTITIONS = 64
PARTITION_SAMPLE_BYTES = 1 << 20
"""How much is held back of each partition to infer its shredding schema from: many may be open."""

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class WriteResult:
    """What a write did.

    `version` is None when nothing was committed. `invalid` counts the values of JSON text that were left out
    or became SQL NULL.
    """

    version: int | None
    rows: int = 0
    invalid: int = 0
    files: tuple[WrittenFile, ...] = ()


def write_table(
    table: TableLocation,
    data: Any,
    *,
    mode: Mode = "error",
    partition_by: str | Sequence[str] | None = None,
    schema_mode: Literal["merge"] | None = None,
    shredding: data_file.Shredding = "infer",
    variant_columns: Sequence[str] = (),
    on_invalid: data_file.OnInvalid = "error",
    rejects: str | PathLike[str] | None = None,
    floats: Literal["decimal", "double"] = "decimal",
    duplicate_keys: Literal["error", "last"] = "error",
    target_file_size: int = 128 << 20,
    compression: data_file.Compression = "zstd",
    annotate: bool = True,
    spark_compatible: bool = True,
    max_variant_stats_paths: int = data_file.MAX_STATS_PATHS,
    configuration: Mapping[str, str] | None = None,
    name: str | None = None,
    description: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> WriteResult:
    """Write `data` to a Delta table as one commit.

    `data` is any object with `__arrow_c_stream__` or `__arrow_c_array__`, or what `read_json_lines` gives.
    Columns that become Variant: JSON text of the extension type `arrow.json`, Variants marked
    `arrow.parquet.variant`, `struct<metadata, value>` where the table has a Variant, and any column in
    `variant_columns`.

    `mode` says what happens when the table exists: `error` raises TableExistsError, `append` adds rows,
    `ignore` does nothing. `schema_mode="merge"` adds columns that the table does not have. New tables with a
    Variant column enable `delta.enableVariantShredding`, unless `shredding` is None or `configuration` says
    otherwise; `shredding="infer"` finds a shredding schema for each file where the table allows shredding.

    Text that is not JSON raises InvalidJsonError with file, line and column, and nothing is committed;
    `on_invalid="reject"` leaves the row out and appends it with the reason to the file `rejects`, and
    `on_invalid="null"` stores SQL NULL. `target_file_size` is in bytes.

    Raises SchemaError for data that does not fit, UnsupportedFeatureError for what the table demands and this
    version cannot honour, ShreddingNotEnabledError, and CommitConflictError.
    """
    options = WriteOptions(
        shredding=shredding,
        spark_compatible=spark_compatible,
        target_file_size=target_file_size,
        compression=compression,
        annotate=annotate,
        floats=floats,
        duplicate_keys=duplicate_keys,
        on_invalid=on_invalid,
        max_stats_paths=max_variant_stats_paths,
    )
    check_option("mode", mode, get_args(Mode))
    check_option("schema_mode", schema_mode, ("merge", None))
    if (on_invalid == "reject") != (rejects is not None):
        raise ValueError("rejects= names the file of on_invalid='reject': give both or none")
    place = open_store(table, storage_options)
    snapshot = _existing(place, mode)
    if snapshot is not None and mode == "ignore":
        return WriteResult(None)
    source = _Source.of(data)
    columns = schema.from_arrow(source.schema, _names_of_variants(source.schema, variant_columns))
    if snapshot is None:
        target = _new_table(
            columns, _as_tuple(partition_by), configuration, name, description, shredding, place.uri
        )
    else:
        target = _appended(snapshot, columns, _as_tuple(partition_by), configuration, schema_mode)
    with _Faults(on_invalid, rejects) as faults:
        files = _write_files(place, source, target, _allowed(options, target, place.uri), faults)
    version = _commit_or_discard(place, snapshot, target, files)
    rows = sum(file.written.rows for file in files)
    return WriteResult(version, rows, faults.count, tuple(file.written for file in files))


def _as_tuple(names: str | Sequence[str] | None) -> tuple[str, ...] | None:
    return (names,) if isinstance(names, str) else None if names is None else tuple(names)


def _existing(place: Store, mode: Mode) -> Snapshot | None:
    try:
        snapshot = log.load_snapshot(place)
    except TableNotFoundError:
        return None
    if mode == "error":
        raise TableExistsError(f"there is a Delta table at {place.uri} already: write with mode='append'")
    return snapshot


@dataclass(frozen=True)
class _Source:
    """Arrow batches to write, each with its origin where it comes from a file of JSON."""

    schema: pa.Schema
    batches: Iterable[tuple[pa.RecordBatch, Origin | None]]

    @classmethod
    def of(cls, data: Any) -> _Source:
        if isinstance(data, JsonLines):
            return cls(data.schema, data.batches())
        if hasattr(data, "__arrow_c_stream__"):
            reader = pa.RecordBatchReader.from_stream(data)
            return cls(reader.schema, ((batch, None) for batch in reader))
        batch = pa.record_batch(data)
        return cls(batch.schema, [(batch, None)])


def _names_of_variants(arrow_schema: pa.Schema, variant_columns: Sequence[str]) -> tuple[str, ...]:
    missing = [name for name in variant_columns if name not in arrow_schema.names]
    if missing:
        raise ValueError(f"variant_columns names {missing[0]!r}, and the data has no such column")
    return tuple(variant_columns)


@dataclass(frozen=True)
class _Target:
    """The table as it is after the write; the new actions are None where nothing changes."""

    protocol: Protocol
    metadata: Metadata
    columns: StructType
    new_protocol: Protocol | None
    new_metadata: Metadata | None

    @property
    def mapping_mode(self) -> schema.ColumnMappingMode:
        return properties.get(self.metadata.configuration, properties.COLUMN_MAPPING_MODE)

    @property
    def data_columns(self) -> StructType:
        """Return the columns that are in the files: all but the partition columns."""
        partitions = set(self.metadata.partition_columns)
        return StructType(tuple(field for field in self.columns.fields if field.name not in partitions))


def _new_table(
    columns: StructType,
    partition_by: tuple[str, ...] | None,
    configuration: Mapping[str, str] | None,
    name: str | None,
    description: str | None,
    shredding: data_file.Shredding,
    where: str,
) -> _Target:
    settings = dict(configuration or {})
    if shredding is not None and any(field.type == VARIANT for field in columns.fields):
        settings.setdefault(properties.ENABLE_VARIANT_SHREDDING.name, "true")
    properties.check_new(settings)
    if properties.get(settings, properties.ENABLE_ROW_TRACKING):
        settings.setdefault("delta.rowTracking.materializedRowIdColumnName", f"_row-id-col-{uuid4()}")
        version_column = "delta.rowTracking.materializedRowCommitVersionColumnName"
        settings.setdefault(version_column, f"_row-commit-version-col-{uuid4()}")
    columns = StructType(tuple(_nullable(field) for field in columns.fields))
    mode = properties.get(settings, properties.COLUMN_MAPPING_MODE)
    schema.check_new(columns, mode=mode)
    partitions = schema.check_partition_columns(columns, partition_by or ())
    columns = _mapped(columns, settings)
    metadata = Metadata(
        id=str(uuid4()),
        name=name,
        description=description,
        format=Format(provider="parquet", options={}),
        schema_string=schema.to_json(columns),
        partition_columns=partitions,
        configuration=settings,
        created_time=_now(),
    )
    protocol = features.new_table_protocol(columns, settings)
    features.check_may_append(protocol, settings, columns, where)
    return _Target(protocol, metadata, columns, protocol, metadata)


def _nullable(field: StructField) -> StructField:
    """Return a column of a new table: Arrow data is not null by chance more often than by contract."""
    return replace(field, nullable=True)


def _mapped(columns: StructType, settings: dict[str, str]) -> StructType:
    """Return the columns with ids and physical names where the table maps them; the settings keep count."""
    if properties.get(settings, properties.COLUMN_MAPPING_MODE) == "none":
        return columns
    greatest = properties.get(settings, properties.COLUMN_MAPPING_MAX_COLUMN_ID) or 0
    columns, greatest = schema.assign_column_mapping(columns, greatest, new_uuid=lambda: str(uuid4()))
    settings[properties.COLUMN_MAPPING_MAX_COLUMN_ID.name] = str(greatest)
    return columns


def _appended(
    snapshot: Snapshot,
    columns: StructType,
    partition_by: tuple[str, ...] | None,
    configuration: Mapping[str, str] | None,
    schema_mode: Literal["merge"] | None,
) -> _Target:
    if partition_by is not None and partition_by != snapshot.partition_columns:
        raise ValueError(
            f"the table is partitioned by {list(snapshot.partition_columns)}: partition_by cannot differ"
        )
    if configuration:
        raise ValueError("configuration is of new tables: an append cannot change the table's properties")
    settings = dict(snapshot.configuration)
    features.check_may_append(snapshot.protocol, settings, snapshot.schema, snapshot.uri)
    merged = schema.merge(snapshot.schema, columns, mode=schema_mode or "strict")
    if merged == snapshot.schema:
        return _Target(snapshot.protocol, snapshot.metadata, merged, None, None)
    schema.check_new(merged, mode=properties.get(settings, properties.COLUMN_MAPPING_MODE))
    merged = _mapped(merged, settings)
    protocol = features.with_needed_features(snapshot.protocol, merged, settings)
    features.check_may_append(protocol, settings, merged, snapshot.uri)
    metadata = msgspec.structs.replace(
        snapshot.metadata, schema_string=schema.to_json(merged), configuration=settings
    )
    return _Target(protocol, metadata, merged, protocol if protocol != snapshot.protocol else None, metadata)


def _allowed(options: WriteOptions, target: _Target, where: str) -> WriteOptions:
    """Return the options with no more shredding and statistics than the table allows (T8, H3)."""
    if not features.shredding_supported(target.protocol):
        options = replace(options, max_stats_paths=0)
    if features.shredding_enabled(target.protocol, target.metadata.configuration):
        return options
    if isinstance(options.shredding, ShreddingSchema):
        raise ShreddingNotEnabledError(
            f"{where} does not enable variantShredding: set {properties.ENABLE_VARIANT_SHREDDING.name}=true "
            "or write with shredding=None"
        )
    return replace(options, shredding=None)


@dataclass(frozen=True)
class _File:
    written: WrittenFile
    partition_values: Mapping[str, str | None]


@dataclass(frozen=True)
class _Rows:
    """Where the rows of a batch come from: a batch of the source, which starts at row `first`."""

    origin: Origin | None
    first: int
    positions: pa.Array[Any] | None

    def position(self, row: int) -> int:
        return row if self.positions is None else int(self.positions[row].as_py())


class _Faults:
    """What is done with values that are not valid JSON, and how many there were."""

    def __init__(self, on_invalid: data_file.OnInvalid, rejects: str | PathLike[str] | None) -> None:
        self._on_invalid = on_invalid
        self._rejects = rejects
        self._file: Any = None
        self.count = 0

    def __enter__(self) -> _Faults:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._file is not None:
            self._file.close()

    def report(self, rows: _Rows, batch: pa.RecordBatch, faults: list[Fault]) -> None:
        """Raise for the first fault, or count them all and keep the rejected rows."""
        for fault in faults:
            text = batch.column(fault.column)[fault.row].as_py()
            text = text.encode() if isinstance(text, str) else text
            where, place, reason = _place(rows, fault, text, batch.schema.names[fault.column])
            if self._on_invalid == "error":
                raise InvalidJsonError(f"{where}: {reason}")
            if self._on_invalid == "reject":
                self._keep({**place, "reason": reason, "text": text.decode(errors="backslashreplace")})
        self.count += len(faults)

    def _keep(self, reject: dict[str, Any]) -> None:
        if self._file is None:
            self._file = open(self._rejects, "ab")  # type: ignore[arg-type]  # noqa: SIM115 - closed by __exit__
        self._file.write(msgspec.json.encode(reject) + b"\n")


def _place(rows: _Rows, fault: Fault, text: bytes, column: str) -> tuple[str, dict[str, Any], str]:
    """Return where a fault is, as text and as fields of a reject, and its reason."""
    position = rows.position(fault.row)
    if rows.origin is None:
        row = rows.first + position
        where = f"row {row}, column {column!r}, byte {fault.offset + 1} of the text"
        return where, {"row": row, "byte": fault.offset + 1}, fault.message
    line, place, reason = rows.origin.locate(position, text, fault.offset, fault.message)
    where = f"{rows.origin.name}, line {line}, column {place}"
    return where, {"file": rows.origin.name, "line": line, "column": place}, reason


def _write_files(
    place: Store, source: _Source, target: _Target, options: WriteOptions, faults: _Faults
) -> list[_File]:
    writer = _PartitionedWriter(place, target, options, faults)
    try:
        first = 0
        for batch, origin in source.batches:
            writer.add(batch, origin, first)
            first += batch.num_rows
        return writer.close()
    except BaseException:
        writer.discard()
        raise


class _PartitionedWriter:
    """Splits batches by partition and hands each to the files of its partition."""

    def __init__(self, place: Store, target: _Target, options: WriteOptions, faults: _Faults) -> None:
        self._store = place
        self._target = target
        self._faults = faults
        self._partitions = target.metadata.partition_columns
        self._options = replace(options, sample_bytes=PARTITION_SAMPLE_BYTES) if self._partitions else options
        self._mode = target.mapping_mode
        self._physical = schema.physical_schema(target.data_columns, self._mode)
        self._nested = [field for field in target.columns.fields if _has_nested_variant(field)]
        self._variants = [field.name for field in self._physical.fields if field.type == VARIANT]
        chains = schema.stats_columns(target.columns, target.metadata.configuration, self._partitions)
        self._indexed = {
            tuple(schema.physical_name(field, self._mode) for field in chain) for chain in chains
        }
        self._open: dict[tuple[str | None, ...], FileSeries[_Rows]] = {}
        self._files: list[_File] = []
        self._paths: list[str] = []

    def add(self, batch: pa.RecordBatch, origin: Origin | None, first: int) -> None:
        conformed = schema.conform(batch, self._target.columns)
        _check_nested_variants(conformed, self._nested)
        for values, positions in self._split(conformed):
            part = conformed if positions is None else conformed.take(positions)
            self._series(values).add(self._renamed(part), _Rows(origin, first, positions))

    def _split(self, batch: pa.RecordBatch) -> Iterator[tuple[tuple[str | None, ...], pa.Array[Any] | None]]:
        """Yield the partition values in a batch, and the positions of their rows; None for all."""
        if not self._partitions:
            yield (), None
            return
        encoded = [self._encoded(batch, name) for name in self._partitions]
        codes: Any = pa.repeat(pa.scalar(0, pa.int64()), batch.num_rows)
        for column_codes, texts in encoded:
            codes = pc.add(pc.multiply(codes, len(texts)), column_codes)
        for code in pc.unique(codes).to_pylist():
            rest, values = code, []
            for _, texts in reversed(encoded):
                rest, index = divmod(rest, len(texts))
                values.append(texts[index])
            yield tuple(reversed(values)), pc.indices_nonzero(pc.equal(codes, code))

    def _encoded(self, batch: pa.RecordBatch, name: str) -> tuple[Any, list[str | None]]:
        column: Any = batch.column(name).dictionary_encode(null_encoding="encode")
        field = next(field for field in self._target.columns.fields if field.name == name)
        texts = [
            schema.partition_value_to_string(value, field.type) for value in column.dictionary.to_pylist()
        ]
        return column.indices.cast(pa.int64()), texts

    def _renamed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns of the files, under their physical names and with their field ids."""
        batch = batch.select([field.name for field in self._target.data_columns.fields])
        fields = schema.to_arrow(self._physical, field_ids=self._mode != "none")
        wanted = [
            field.with_type(column.type) if field.name in self._variants else field
            for field, column in zip(fields, batch.columns, strict=True)
        ]
        return pa.record_batch(_Retyped(batch, pa.schema(wanted)))

    def _series(self, values: tuple[str | None, ...]) -> FileSeries[_Rows]:
        if values not in self._open:
            if len(self._open) == MAX_OPEN_PARTITIONS:
                self._finish(next(iter(self._open)))
            self._open[values] = FileSeries(
                self._store,
                partial(self._new_path, values),
                self._options,
                self._indexed,
                self._variants,
                self._faults.report,
            )
        return self._open[values]

    def _new_path(self, values: tuple[str | None, ...]) -> str:
        folders = [
            f"{quote(name, safe='')}={NULL_PARTITION if value is None else quote(value, safe=' ')}/"
            for name, value in zip(self._partitions, values, strict=True)
        ]
        number = len(self._paths)
        path = f"{''.join(folders)}part-{number:05}-{uuid4()}-c000.{self._options.compression}.parquet"
        self._paths.append(path)
        return path

    def _finish(self, values: tuple[str | None, ...]) -> None:
        names = [
            schema.physical_name(field, self._mode)
            for name in self._partitions
            for field in self._target.columns.fields
            if field.name == name
        ]
        partition_values = MappingProxyType(dict(zip(names, values, strict=True)))
        written = self._open.pop(values).close()
        self._files.extend(_File(file, partition_values) for file in written if file.rows)
        _discard(self._store, [file.path for file in written if not file.rows])

    def close(self) -> list[_File]:
        while self._open:
            self._finish(next(iter(self._open)))
        return self._files

    def discard(self) -> None:
        self._open.clear()
        _discard(self._store, self._paths)


def _has_nested_variant(field: StructField) -> bool:
    return field.type != VARIANT and VARIANT.name in primitives_of(StructType((field,)))


def _check_nested_variants(batch: pa.RecordBatch, fields: Iterable[StructField]) -> None:
    """Raise MalformedVariantError for what is no Variant; the kernel itself checks those at the top."""
    for field in fields:
        for path, variants in _nested_variants(batch.column(field.name), field.type, field.name):
            try:
                variant.check(variants)
            except MalformedVariantError as error:
                raise MalformedVariantError(f"{path}, {error}") from error


def _nested_variants(array: Any, data_type: DataType, path: str) -> Iterator[tuple[str, Any]]:
    if data_type == VARIANT:
        yield path, array
    elif isinstance(data_type, StructType):
        for index, field in enumerate(data_type.fields):
            yield from _nested_variants(pc.struct_field(array, [index]), field.type, f"{path}.{field.name}")
    elif isinstance(data_type, ArrayType):
        yield from _nested_variants(array.flatten(), data_type.element_type, f"{path}.element")
    elif isinstance(data_type, MapType):
        yield from _nested_variants(array.items, data_type.value_type, f"{path}.value")


@dataclass(frozen=True)
class _Retyped:
    """A batch under another schema of the same layout, without a copy."""

    batch: pa.RecordBatch
    schema: pa.Schema

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        batch: Any = self.batch
        return self.schema.__arrow_c_schema__(), batch.__arrow_c_array__()[1]


def _discard(place: Store, paths: Iterable[str]) -> None:
    from .errors import StoreError
    from .store import delete

    for path in paths:
        with suppress(StoreError):
            delete(place, path)


def _commit_or_discard(
    place: Store, snapshot: Snapshot | None, target: _Target, files: Sequence[_File]
) -> int | None:
    try:
        return _commit(place, snapshot, target, files)
    except (CommitConflictError, TableExistsError):
        # The commit is known not to have happened; after other errors it may have.
        _discard(place, [file.written.path for file in files])
        raise


def _commit(place: Store, snapshot: Snapshot | None, target: _Target, files: Sequence[_File]) -> int | None:
    if snapshot is not None and not files and target.new_metadata is None:
        return None
    tight = True if features.supports(target.protocol, "deletionVectors") else None
    adds = [_add_file(file, tight) for file in files]
    partitions = msgspec.json.encode(target.metadata.partition_columns).decode()
    common: dict[str, Any] = {
        "operation": "WRITE",
        "operation_metrics": {
            "numFiles": len(files),
            "numOutputRows": sum(file.written.rows for file in files),
            "numOutputBytes": sum(file.written.bytes for file in files),
        },
        "clock": _now,
        "engine_info": _engine_info(),
        "txn_id": str(uuid4()),
    }
    if snapshot is None:
        parameters = {"mode": "ErrorIfExists", "partitionBy": partitions}
        return commit.create_table(
            place, target.protocol, target.metadata, adds, operation_parameters=parameters, **common
        )
    return commit.add_files(
        snapshot,
        adds,
        new_metadata=target.new_metadata,
        new_protocol=target.new_protocol,
        operation_parameters={"mode": "Append", "partitionBy": partitions},
        **common,
    )


def _add_file(file: _File, tight_bounds: bool | None) -> AddFile:
    return AddFile(
        path=encode_path(file.written.path),
        partition_values=dict(file.partition_values),
        size=file.written.bytes,
        modification_time=_now(),
        data_change=True,
        stats=replace(file.written.stats, tight_bounds=tight_bounds).to_json(),
    )


def _now() -> int:
    return time.time_ns() // 1_000_000


def _engine_info() -> str:
    from importlib.metadata import version

    return f"delta-variant/{version('delta-variant')}"
