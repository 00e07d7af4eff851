"""Convert Parquet files to a table where they are: the first commit of a log adds them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import msgspec
import pyarrow as pa

from .._progress import advance, begin
from .._threads import Threads
from ..data_file.options import MAX_STATS_BYTES
from ..data_file.reader import NativeFile, open_file, table_columns
from ..data_file.shredding import variant_paths
from ..data_file.statistics import stats_of
from ..errors import MalformedLogError, SchemaError, SourceNotFoundError
from ..execution import NameFile, executor_of
from ..log.commit_context import CommitResult, commit_context
from ..log.transaction import create_table as commit_table
from ..protocol.actions import AddFile, encode_path
from ..protocol.partition_folders import parse_folder
from ..protocol.schema.arrow import from_arrow, variant_field
from ..protocol.schema.merging import merge
from ..protocol.schema.partition_values import partition_value_from_string
from ..protocol.statistics import Path
from ..protocol.table_configuration import TableConfiguration
from ..protocol.types import ArrayType, DataType, MapType, StructField, StructType
from ..storage.objects import StoredFile
from ..storage.store import Store, TableLocation, open_latest, removing_new_folders, walk
from ..write import table_changes
from ..write.preparation import load_existing

Found = TypeVar("Found")

FILES_AT_ONCE = 8
UNREADABLE: Mapping[str, Callable[[pa.DataType], bool]] = {
    "nanoseconds": lambda kind: pa.types.is_timestamp(kind) and kind.unit == "ns",
    "half-precision floats": pa.types.is_float16,
    "UUIDs": lambda kind: kind == pa.uuid(),
}
"""The types of Parquet that this library reads, and Spark does not."""


def convert_in_place(
    table: TableLocation, partitions: Sequence[StructField] = (), *, collect_stats: bool = True
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
    files = sorted((file for file in walk(store) if _is_data(file.path)), key=lambda file: file.path)
    if not files:
        raise SourceNotFoundError(
            f"cannot convert {store.uri} because it has no Parquet files", file=store.uri
        )
    values = [_partition_values(file.path, partitions) for file in files]
    executor = executor_of(table, store, "CONVERT")
    groups = [tuple(group) for group in executor.split(files, lambda file: file.size)]
    schemas = (each for found in executor.run(SchemaTask(group) for group in groups) for each in found)
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
        tasks = (StatisticsTask(after, group) for group in groups)
        stats = [text for found in executor.another().run(tasks) for text in found]
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


def _is_data(path: str) -> bool:
    return not any(part[:1] in "._" and "=" not in part for part in path.split("/"))


def _partition_values(path: str, partitions: Sequence[StructField]) -> Mapping[str, str | None]:
    """Return the values of the partition columns in the folders of a file."""
    pairs = [pair for folder in path.split("/")[:-1] if (pair := parse_folder(folder))]
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


@dataclass(frozen=True)
class SchemaTask:
    """Reads the columns of Parquet files."""

    step: ClassVar[str] = "read schemas"
    files: Sequence[StoredFile]

    def run(self, store: Store, name: NameFile) -> list[tuple[str, StructType]]:
        """Return each schema with the path of a file that has it."""
        found = _map_files(self.files, lambda file: _schema_of(open_file(store, file.path), file.path))
        paths = (file.path for file in self.files)
        return list(
            {repr(schema): (path, schema) for path, schema in zip(paths, found, strict=True)}.values()
        )


@dataclass(frozen=True)
class StatisticsTask:
    """Computes the statistics of Parquet files that become files of a table."""

    step: ClassVar[str] = "compute statistics"
    table: TableConfiguration
    files: Sequence[StoredFile]

    def run(self, store: Store, name: NameFile) -> list[str]:
        """Return the JSON text of the statistics of each file."""
        columns = table_columns(self.table.physical_schema, self.table.mapping_mode)
        indexed = {tuple(field.name for field in chain) for chain in self.table.stats_columns}

        def compute(file: StoredFile) -> str:
            opened = open_file(store, file.path, columns)
            paths = list(variant_paths(opened))
            return stats_of(opened, paths, max_variant_stats_bytes=MAX_STATS_BYTES, indexed=indexed).to_json()

        return _map_files(self.files, compute)


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
        for found in (name for name, is_type in UNREADABLE.items() if any(map(is_type, _leaves(field.type)))):
            raise SchemaError(
                f"cannot convert {path} because {field.name!r} has {found}, which Spark does not read: copy "
                "the rows with delta_variant.convert",
                file=path,
                column=field.name,
            )
    return from_arrow(pa.schema([_logical_field(field, (field.name,), variants) for field in file.schema]))


def _leaves(kind: Any) -> Iterator[pa.DataType]:
    if not pa.types.is_nested(kind):
        yield kind
        return
    for number in range(kind.num_fields):
        yield from _leaves(kind.field(number).type)


def _logical_field(field: pa.Field[Any], path: Path, variants: set[Path]) -> pa.Field[Any]:
    if path in variants:
        return variant_field(field.name)
    if not pa.types.is_struct(field.type):
        return field
    parts = [_logical_field(part, (*path, part.name), variants) for part in field.type]
    return field.with_type(pa.struct(parts))
