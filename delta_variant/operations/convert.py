"""Convert Parquet files and unshredded tables by a copy with shredded Variants, or Parquet files in place."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from os import PathLike, fspath
from typing import Any, TypeVar

import msgspec
import pyarrow as pa

from .._arrow import leaf_types
from .._checks import one_or_more, texts_of
from .._progress import advance, begin
from .._threads import Threads
from ..data_file.options import FileOptions, Shredding
from ..data_file.reader import NativeFile, open_file, stats_of, table_columns
from ..data_file.shredding import variant_paths
from ..errors import MalformedLogError, SchemaError, SourceError, SourceNotFoundError, TableNotFoundError
from ..execution import NameFile, executor_of
from ..input.files import open_parquet
from ..log.commit_context import CommitOptions, CommitResult, commit_context
from ..log.load import load_snapshot
from ..log.snapshot import Snapshot
from ..log.transaction import create_table as commit_table
from ..protocol.actions import AddFile, encode_path
from ..protocol.schema.arrow import from_arrow, variant_field
from ..protocol.schema.evolution import merge
from ..protocol.schema.partition_values import parse_folders, partition_value_from_string
from ..protocol.statistics import Path
from ..protocol.table_configuration import TableConfiguration
from ..protocol.types import ArrayType, DataType, MapType, StructField, StructType
from ..storage.inputs import InputFile, is_hidden, is_remote, is_web, list_inputs
from ..storage.objects import StoredFile
from ..storage.store import (
    Store,
    TableLocation,
    open_latest,
    open_store,
    removing_new_folders,
    storage_options_of,
    walk,
)
from ..storage.uris import local_location
from ..write import table_changes
from ..write.commit import WriteResult
from ..write.preparation import load_existing
from .read import read_table
from .write import write_table

SUFFIX = ".parquet"


def convert(
    source: str | PathLike[str] | Sequence[str | PathLike[str]],
    table: TableLocation,
    *,
    variant_columns: Sequence[str] = (),
    partition_by: str | Sequence[str] | None = None,
    configuration: Mapping[str, str] | None = None,
    shredding: Shredding = "infer",
    files: FileOptions | None = None,
    commit: CommitOptions | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> WriteResult:
    """Write the rows of Parquet files or a Delta table to a new table with shredded Variants.

    The table appears with one commit, and the source is not changed. Columns in the names of Hive partition
    folders (`day=2026-11-21/`) become columns, which are integers if all of their values are, and strings
    otherwise. A Parquet column with `metadata`, `value` and perhaps `typed_value` is a Variant. Table
    properties, constraints and column mapping of a Delta source are not copied.

    Args:
        source: A Delta table; or Parquet files, folders of them, globs, and URIs.
        table: The path or URI of the new table.
        variant_columns: The names of columns with JSON text that become Variants. Empty by default.
        partition_by: The partition columns of the new table. None, the default, takes those of the source.
        configuration: Table properties of the new table. None by default.
        shredding: How to shred Variants, as in `write_table`. `"infer"` by default.
        files: How new files are written. None, the default, uses the defaults of `FileOptions`.
        commit: What the commit records for its caller. None, the default, records nothing.
        storage_options: Options of the object store of the source, with the keys of deltalake. None, the
            default, takes those of the handle `table`.

    Returns:
        A `WriteResult` with the number of rows and the new files.

    Raises:
        TableExistsError: There is a table at `table`.
        SourceNotFoundError: The source does not exist, or has no Parquet file.
        SourceError: A file cannot be read.
        SchemaError: Files have columns of different types, or a type that Delta does not have.
        InvalidJsonError: A value of `variant_columns` is not valid JSON.
        UnsupportedFeatureError: This version cannot read the Delta source.
        ArgumentTypeError: An argument has the wrong type.
        ValueError: An argument has an invalid value.

    Example:
        >>> import tempfile
        >>> import pyarrow as pa
        >>> import pyarrow.parquet as pq
        >>> from delta_variant import convert
        >>> folder = tempfile.mkdtemp()
        >>> pq.write_table(pa.table({"event": ['{"id": 7}']}), f"{folder}/events.parquet")
        >>> convert(f"{folder}/events.parquet", f"{folder}/table", variant_columns=["event"]).rows
        1
    """
    texts_of("names", "variant_columns", variant_columns)
    paths = [fspath(each) for each in ([source] if isinstance(source, str | PathLike) else source)]
    if storage_options is None:
        storage_options = storage_options_of(table)
    load_existing(open_latest(table), "error", remedies=())
    delta = _delta_table(paths, storage_options)
    if delta is None:
        rows, partitions = _parquet(paths, storage_options)
    else:
        rows, partitions = read_table(delta).to_reader(), delta.partition_columns
    return write_table(
        table,
        rows,
        variant_columns=variant_columns,
        partition_by=partitions
        if partition_by is None
        else one_or_more("names", "partition_by", partition_by),
        configuration=configuration,
        shredding=shredding,
        files=files,
        commit=commit,
    )


def _delta_table(paths: Sequence[str], storage_options: Mapping[str, str] | None) -> Snapshot | None:
    """Return the source if it is a Delta table, None if it consists of Parquet files."""
    found = []
    for path in paths:
        if _may_be_table(path):
            try:
                found.append(load_snapshot(open_store(path, storage_options)))
            except TableNotFoundError:
                continue
    if found and len(paths) > 1:
        raise SourceError(
            f"cannot convert {found[0].uri} together with other sources: convert one Delta table"
        )
    return found[0] if found else None


def _may_be_table(path: str) -> bool:
    if is_remote(path):
        return not path.endswith(SUFFIX) and "*" not in path
    return not is_web(path) and os.path.isdir(local_location("the source", path))


def _parquet(
    paths: Sequence[str], storage_options: Mapping[str, str] | None
) -> tuple[pa.RecordBatchReader, Sequence[str]]:
    files = list_inputs(paths, [SUFFIX], storage_options)
    return open_parquet(files), _hive_columns(files)


def _hive_columns(files: Sequence[InputFile]) -> list[str]:
    folders = (folder for file in files for folder in file.path.split("/")[:-1])
    return list(dict.fromkeys(folder.split("=", 1)[0] for folder in folders if "=" in folder))


Found = TypeVar("Found")

FILES_AT_ONCE = 8
UNREADABLE: Mapping[str, Callable[[pa.DataType], bool]] = {
    "nanoseconds": lambda kind: pa.types.is_timestamp(kind) and kind.unit == "ns",
    "half-precision floats": pa.types.is_float16,
    "UUIDs": lambda kind: kind == pa.uuid(),
}
"""The types of Parquet that this library reads, and Spark does not."""


def convert_in_place(
    table: TableLocation, partitions: Sequence[StructField], *, collect_stats: bool
) -> CommitResult:
    """Commit version 0 of a table with the Parquet files at its location, which are not changed.

    All columns are nullable. Names that start with `_` or `.` are not data, but for names of partitions.

    Args:
        table: The location of the files.
        partitions: The columns in the names of folders (`day=2026-11-21/`), in their order.
        collect_stats: Read the files to record their statistics. True by default.

    Returns:
        The result of the commit, without a version if there is a table already.

    Raises:
        SourceNotFoundError: There are no files.
        DataFileError: A file is not a Parquet file.
        SchemaError: Columns have different types in two files, or a type that Delta does not have; or the
            folders of a file do not have the partition columns.
    """
    store = open_latest(table)
    if load_existing(store, "ignore") is not None:
        return CommitResult(None)
    files = [file for file in walk(store) if not any(map(is_hidden, file.path.split("/")))]
    files.sort(key=lambda file: file.path)
    if not files:
        raise SourceNotFoundError(
            f"cannot convert {store.uri} because it has no Parquet files", file=store.uri
        )
    values = [_partition_values(file.path, partitions) for file in files]
    executor = executor_of(table, store, "CONVERT")
    groups = [tuple(group) for group in executor.split(files, lambda file: file.size)]
    found = executor.run("read schemas", (partial(_read_schemas, group) for group in groups))
    schemas = chain.from_iterable(found)
    names = [field.name for field in partitions]
    after = table_changes.create(
        _columns(schemas, partitions),
        tuple(names),
        configuration=None,
        name=None,
        description=None,
        enable_shredding=True,
        uri=store.uri,
    )
    stats: Sequence[str | None] = [None] * len(files)
    if collect_stats:
        tasks = (partial(_compute_statistics, after, group) for group in groups)
        stats = list(chain.from_iterable(executor.another().run("compute statistics", tasks)))
    adds = [_add_file(*each) for each in zip(files, values, stats, strict=True)]
    parameters = {
        "numFiles": len(files),
        "partitionedBy": msgspec.json.encode(names).decode(),
        "collectStats": collect_stats,
        "sourceFormat": "parquet",
    }
    context = commit_context("CONVERT", parameters, {"numConvertedFiles": len(files)})
    with removing_new_folders(store):
        return CommitResult(commit_table(store, after, adds, context=context), metrics=context.metrics)


def _partition_values(path: str, partitions: Sequence[StructField]) -> Mapping[str, str | None]:
    """Return the values of the partition columns in the folders of a file."""
    pairs = parse_folders(path)
    names = [name for name, _ in pairs]
    if [name.lower() for name in names] != [field.name.lower() for field in partitions]:
        expected = ", ".join(field.name for field in partitions) or "no columns"
        raise SchemaError(
            f"cannot convert {path}: its folders have {', '.join(names) or 'no columns'}, PARTITIONED BY has "
            f"{expected}",
            file=path,
        )
    values = [value for _, value in pairs]
    for field, value in zip(partitions, values, strict=True):
        try:
            partition_value_from_string(value, field.type)
        except MalformedLogError as error:
            raise SchemaError(f"cannot convert {path}: {error.message}", column=field.name) from error
    return {field.name: value for field, value in zip(partitions, values, strict=True)}


def _columns(schemas: Iterable[tuple[str, StructType]], partitions: Sequence[StructField]) -> StructType:
    """Return the columns of all files and the partition columns, of which files may have a copy."""
    merged = StructType(())
    for path, schema in schemas:
        columns = StructType(tuple(map(_nullable, schema.fields)))
        try:
            # A narrower type does not fit either: it is a difference in the other direction.
            merge(columns, merged, mode="merge")
            merged = merge(merged, columns, mode="merge")
        except SchemaError as error:
            raise SchemaError(
                f"cannot convert {path}, whose columns differ from those of other files: {error.message}",
                file=path,
                column=error.column,
            ) from error
    of_folders = {field.name.lower(): field for field in partitions}
    fields = [of_folders.pop(field.name.lower(), field) for field in merged.fields]
    return StructType((*fields, *of_folders.values()))


def _nullable(field: StructField) -> StructField:
    return replace(field, nullable=True, type=_nullable_parts(field.type))


def _nullable_parts(kind: DataType) -> DataType:
    if isinstance(kind, StructType):
        return StructType(tuple(map(_nullable, kind.fields)))
    if isinstance(kind, ArrayType):
        return ArrayType(_nullable_parts(kind.element_type), True)
    if isinstance(kind, MapType):
        return MapType(_nullable_parts(kind.key_type), _nullable_parts(kind.value_type), True)
    return kind


def _add_file(file: StoredFile, values: Mapping[str, str | None], stats: str | None) -> AddFile:
    return AddFile(
        path=encode_path(file.path),
        partition_values=dict(values),
        size=file.size,
        modification_time=file.modification_time,
        data_change=True,
        stats=stats,
    )


def _read_schemas(files: Sequence[StoredFile], store: Store, name: NameFile) -> list[tuple[str, StructType]]:
    """Return each schema with the path of a file that has it."""
    found = _map_files(files, lambda file: _schema_of(open_file(store, file.path), file.path))
    paths = (file.path for file in files)
    return list({repr(schema): (path, schema) for path, schema in zip(paths, found, strict=True)}.values())


def _compute_statistics(
    table: TableConfiguration, files: Sequence[StoredFile], store: Store, name: NameFile
) -> list[str]:
    """Return the JSON text of the statistics of each Parquet file that becomes a file of a table."""
    columns = table_columns(table.physical_schema, table.mapping_mode)
    indexed = {tuple(field.name for field in chain) for chain in table.stats_columns}

    def compute(file: StoredFile) -> str:
        opened = open_file(store, file.path, columns)
        return stats_of(opened, list(variant_paths(opened)), indexed=indexed).to_json()

    return _map_files(files, compute)


def _map_files(files: Sequence[StoredFile], read: Callable[[StoredFile], Found]) -> list[Found]:
    begin("converting", files=len(files))
    with Threads(FILES_AT_ONCE) as threads:
        found = []
        for each in threads.map(read, files):
            found.append(each)
            advance(files=1)
        return found


def _schema_of(file: NativeFile, path: str) -> StructType:
    """Return the columns of a file; a group of `metadata` and `value` is a Variant."""
    variants = set(variant_paths(file))
    for field in file.schema:
        leaves = list(leaf_types(field.type))
        for found in (name for name, is_type in UNREADABLE.items() if any(map(is_type, leaves))):
            raise SchemaError(
                f"cannot convert {path} because {field.name!r} has {found}, which Spark does not read: "
                "copy the rows with delta_variant.convert",
                file=path,
                column=field.name,
            )
    return from_arrow(pa.schema([_logical_field(field, (field.name,), variants) for field in file.schema]))


def _logical_field(field: pa.Field[Any], path: Path, variants: set[Path]) -> pa.Field[Any]:
    if path in variants:
        return variant_field(field.name)
    if not pa.types.is_struct(field.type):
        return field
    parts = [_logical_field(part, (*path, part.name), variants) for part in field.type]
    return field.with_type(pa.struct(parts))
