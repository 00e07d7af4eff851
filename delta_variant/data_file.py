"""Data files: batches into shredded Parquet and back, one file at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import count
from os import PathLike
from pathlib import Path as FilePath
from typing import Any, Generic, Literal, TypeAlias, TypeVar, get_args

import pyarrow as pa
import pyarrow.compute as pc

from . import _native
from ._checks import check_option, check_path, is_number, whole_number
from ._options import DuplicateKeys, Encoding, Floats, Numeric, OnConflict
from ._system_errors import reason_of, with_remedy
from .errors import ArgumentTypeError, DataFileError, DeltaVariantError, ShreddingError, StoreError
from .protocol.schema.arrow import is_variant as is_marked
from .protocol.statistics import FileStatistics, Path, from_report
from .storage import store
from .storage.store import Store, Upload, local_location
from .variant.moments import UTC
from .variant.shredding import MAX_DEPTH, MAX_LEAVES, UNSHREDDED, ShreddingSchema, shred
from .variant.values import VARIANT_TYPE

__all__ = [
    "Compression",
    "Draft",
    "Fault",
    "FileSeries",
    "Input",
    "NativeFile",
    "OnInvalid",
    "Projection",
    "Rows",
    "ShreddedPath",
    "Shredding",
    "Units",
    "WriteOptions",
    "WrittenFile",
    "check_layout",
    "compute_stats",
    "file_stats",
    "filter_rows",
    "infer_shredding",
    "naming",
    "numbers_are_typed",
    "open_file",
    "read",
    "shredding_of",
    "stored",
    "stored_type",
    "units",
]

Shredding: TypeAlias = "ShreddingSchema | Literal['infer'] | None"
"""The schema of every Variant column, one for each file from its first rows, or none."""

Draft: TypeAlias = Literal["strict", "compat"]
"""A Variant in the layout of the older Spark draft is read by its rules, or as its algorithm reads it."""

OnInvalid: TypeAlias = Literal["error", "reject", "null"]
Compression: TypeAlias = Literal["zstd", "snappy", "gzip", "lz4", "none"]

NativeFile: TypeAlias = _native.DataFile
"""An open Parquet file."""

Rows: TypeAlias = tuple[int, int]
"""A range of the rows of a file, its end excluded."""

ROW_GROUP_BYTES = 16 << 20
SAMPLE_BYTES = 16 << 20
"""How much of a file's first rows its shredding schema is inferred from."""

MAX_STATS_PATHS = 32
FOLDER_ATTEMPTS = 10


@dataclass(frozen=True)
class WriteOptions:
    """How data files are written; `shredding` may differ by Variant column, whose names lead to it."""

    shredding: Shredding | Mapping[Path, ShreddingSchema] = "infer"
    spark_compatible: bool = True
    target_file_size: int = 128 << 20
    compression: Compression = "zstd"
    annotate: bool = True
    numeric: Numeric = "value"
    floats: Floats = "decimal"
    duplicate_keys: DuplicateKeys = "error"
    on_invalid: OnInvalid = "error"
    max_stats_paths: int = MAX_STATS_PATHS
    sample_bytes: int = SAMPLE_BYTES

    def __post_init__(self) -> None:
        """Raise ValueError for what is no such option."""
        if isinstance(self.shredding, Mapping):
            _check_schemas(self.shredding)
        elif not isinstance(self.shredding, ShreddingSchema):
            check_option("shredding", self.shredding, ("infer", None))
        check_option("compression", self.compression, get_args(Compression))
        check_option("numeric", self.numeric, get_args(Numeric))
        check_option("floats", self.floats, get_args(Floats))
        check_option("duplicate_keys", self.duplicate_keys, get_args(DuplicateKeys))
        check_option("on_invalid", self.on_invalid, get_args(OnInvalid))
        size = self.target_file_size
        if not is_number(size) or not size >= 1:
            error = ValueError if is_number(size) else ArgumentTypeError
            raise error(f"target_file_size is a number of bytes from 1, and not {size!r}")
        whole_number("max_variant_stats_paths", self.max_stats_paths, 0)


def _check_schemas(shredding: Mapping[Path, ShreddingSchema]) -> None:
    if not all(isinstance(schema, ShreddingSchema) for schema in shredding.values()):
        got = f"shredding: expected a ShreddingSchema, got {dict(shredding)!r}"
        raise ArgumentTypeError(f"{got}: build one with ShreddingSchema.of")


@dataclass(frozen=True)
class ShreddedPath:
    """A shredded path of one file, and how many values are in `typed_value` and in the `value` beside it.

    In `path`, None stands for the elements of a list.
    """

    path: tuple[str | None, ...]
    type: pa.DataType
    typed: int
    values: int


@dataclass(frozen=True)
class WrittenFile:
    """A data file that was written; `path` is relative to the table, and not percent-encoded.

    `variants` has the shredded paths of each Variant column.
    """

    path: str
    rows: int
    bytes: int
    stats: FileStatistics
    variants: Mapping[str, tuple[ShreddedPath, ...]]


@dataclass(frozen=True)
class Fault:
    """A value that is not valid JSON: where in its batch and column, at which byte of its text, and why."""

    row: int
    column: int
    offset: int
    message: str


Context = TypeVar("Context")


class FileSeries(Generic[Context]):
    """Files of one partition, written one after another as they fill.

    Each batch comes with a context, which is handed to `report` together with the faults found in the batch;
    with `on_invalid="error"`, `report` must raise. A file's Variants are shredded by one schema, so its first
    rows are held back until they are enough to infer it from.
    """

    def __init__(
        self,
        place: Store,
        new_path: Callable[[], str],
        options: WriteOptions,
        indexed: Collection[Path] | None,
        variants: Collection[str],
        report: Callable[[Context, pa.RecordBatch, list[Fault]], None],
    ) -> None:
        self._store = place
        self._new_path = new_path
        self._options = options
        self._indexed = indexed
        self._variants = frozenset(variants)
        self._report = report
        self._held: list[tuple[pa.RecordBatch, Context]] = []
        self._held_bytes = 0
        self._open: _OpenFile | None = None
        self.files: list[WrittenFile] = []
        self.paths: list[str] = []
        """All paths that were begun, to be removed when the write fails."""

    def add(self, batch: pa.RecordBatch, context: Context) -> None:
        """Write a batch, or hold it back."""
        if self._open is not None:
            self._write(self._open, batch, context)
            return
        self._held.append((batch, context))
        self._held_bytes += batch.nbytes
        if self._options.shredding != "infer" or self._held_bytes >= self._options.sample_bytes:
            self._begin()

    def close(self) -> list[WrittenFile]:
        """Finish the file in progress and return all files."""
        if self._held:
            self._begin()
        self._end()
        return self.files

    def _begin(self) -> None:
        held, self._held, self._held_bytes = self._held, [], 0
        path = self._new_path()
        self.paths.append(path)
        batches = [batch for batch, _ in held]
        self._open = _OpenFile.create(self._store, path, batches, self._variants, self._options)
        for batch, context in held:
            self.add(batch, context)

    def _write(self, file: _OpenFile, batch: pa.RecordBatch, context: Context) -> None:
        faults = file.write(batch)
        if faults:
            self._report(context, batch, faults)
        if file.writer.bytes_written >= self._options.target_file_size:
            self._end()

    def _end(self) -> None:
        if self._open is not None:
            file, self._open = self._open, None
            self.files.append(file.close(self._options.max_stats_paths, self._indexed))

    def discard(self) -> None:
        """Remove every file that was begun."""
        if self._open is not None and self._open.upload is not None:
            with suppress(StoreError):
                self._open.upload.abort()
        self._open = None
        for path in self.paths:
            with suppress(StoreError):
                store.delete(self._store, path)


@dataclass(frozen=True)
class _OpenFile:
    """A file in progress; `upload` is that of a remote one, which is there once it is whole."""

    path: str
    uri: str
    writer: _native.DataFileWriter
    upload: Upload | None
    names: tuple[str, ...]

    @classmethod
    def create(
        cls,
        place: Store,
        path: str,
        sample: Sequence[pa.RecordBatch],
        variants: Collection[str],
        options: WriteOptions,
    ) -> _OpenFile:
        schema = sample[0].schema
        local = store.local_path(place, path)
        upload = Upload(place, path) if local is None else None
        encodings = [
            _encoding(
                (field.name,),
                field,
                [batch.column(index) for batch in sample],
                options,
                is_variant=field.name in variants,
            )
            for index, field in enumerate(schema)
        ]
        new_writer = partial(
            _native.DataFileWriter,
            local or upload,  # type: ignore[arg-type]
            schema,
            encodings,
            numeric=options.numeric,
            floats=options.floats,
            duplicate_keys=options.duplicate_keys,
            on_invalid=options.on_invalid,
            annotate=options.annotate,
            compression=options.compression,
            row_group_bytes=ROW_GROUP_BYTES,
        )
        with _naming_writes(store.uri_of(place, path)):
            writer = new_writer() if local is None else _in_folder(local.parent, new_writer)
        return cls(path, store.uri_of(place, path), writer, upload, tuple(schema.names))

    def write(self, batch: pa.RecordBatch) -> list[Fault]:
        """Write a batch and return the values that are not valid JSON."""
        with _naming_writes(self.uri):
            return [Fault(*fault) for fault in self.writer.write(batch)]

    def close(self, max_stats_paths: int, indexed: Collection[Path] | None) -> WrittenFile:
        with _naming_writes(self.uri):
            report = self.writer.close(max_stats_paths)
        if self.upload is not None:
            self.upload.close()
        variants = {
            name: tuple(ShreddedPath(tuple(path), *rest) for path, *rest in column["paths"])
            for name, column in zip(self.names, report["columns"], strict=True)
            if isinstance(column, dict)
        }
        statistics = from_report(report["rows"], report["columns"], self.names, indexed)
        return WrittenFile(self.path, report["rows"], report["bytes"], statistics, variants)


@contextmanager
def _naming_writes(uri: str) -> Iterator[None]:
    try:
        yield
    except DataFileError as error:
        raise DataFileError(f"cannot write {uri}: {with_remedy(str(error))}") from error


def _in_folder(folder: FilePath, new_writer: Callable[[], _native.DataFileWriter]) -> _native.DataFileWriter:
    """Return a writer of a file in a folder, which another writer that fails may remove at the same time."""
    for attempt in count():
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataFileError(f"cannot create {folder}: {reason_of(error)}") from error
        try:
            return new_writer()
        except DataFileError:
            if attempt == FOLDER_ATTEMPTS or folder.exists():
                raise
    raise AssertionError


def infer_shredding(
    batches: Sequence[pa.RecordBatch], variants: Collection[str], options: WriteOptions
) -> dict[Path, ShreddingSchema]:
    """Return a shredding schema for each Variant of batches of one schema, at the top and within structs."""
    found: dict[Path, ShreddingSchema] = {}
    for index, field in enumerate(batches[0].schema if batches else ()):
        arrays = [batch.column(index) for batch in batches]
        for path, parts in _variant_arrays((field.name,), field, arrays, is_variant=field.name in variants):
            found[path] = ShreddingSchema(_inferred(parts, options))
    return found


def _variant_arrays(
    path: Path, field: pa.Field[Any], arrays: Sequence[Any], *, is_variant: bool
) -> Iterator[tuple[Path, Sequence[Any]]]:
    if is_variant:
        yield path, arrays
    elif pa.types.is_struct(field.type):
        for index, part in enumerate(field.type):
            parts = [pc.struct_field(array, [index]) for array in arrays]
            yield from _variant_arrays((*path, part.name), part, parts, is_variant=is_marked(part))


def _encoding(
    path: Path, field: pa.Field[Any], arrays: Sequence[Any], options: WriteOptions, *, is_variant: bool
) -> Encoding:
    """Return what a column becomes: Variants are shredded at the top and within structs."""
    if is_variant and _is_shredded(field.type):
        return None
    if is_variant:
        kind: Literal["json", "variant"] = "variant" if pa.types.is_struct(field.type) else "json"
        return kind, _shredding_schema(path, arrays, options)
    if not pa.types.is_struct(field.type):
        return None
    parts = [
        _encoding(
            (*path, part.name),
            part,
            [pc.struct_field(array, [index]) for array in arrays],
            options,
            is_variant=is_marked(part),
        )
        for index, part in enumerate(field.type)
    ]
    return parts if any(parts) else None


@lru_cache(maxsize=64)
def stored_type(schema: ShreddingSchema) -> pa.DataType:
    """Return the Arrow type in which a file stores Variants that are shredded by a schema."""
    return stored(pa.array([], VARIANT_TYPE), schema, "strict").type


def stored(variants: pa.Array[Any], schema: ShreddingSchema, numeric: Numeric) -> pa.StructArray:
    """Return Variants as a file stores them, shredded by a schema."""
    shredded = shred(variants, schema, numeric=numeric)
    parts = [shredded.field(index) for index in range(shredded.type.num_fields)]
    parts[0] = parts[0].dictionary_encode()
    fields = [field.with_type(part.type) for field, part in zip(shredded.type, parts, strict=True)]
    return pa.StructArray.from_arrays(parts, fields=fields, mask=shredded.is_null())


def filter_rows(batch: pa.RecordBatch, mask: Any) -> pa.RecordBatch:
    """Return the rows of a batch for which a mask without nulls is true.

    Where most are, as in most rewrites, this is several times as fast on structs as Arrow's own filter.
    """
    # A name ends at a NUL on its way to the kernel.
    return _native.filter_rows(batch, mask).rename_columns(batch.schema.names)


def _is_shredded(arrow_type: pa.DataType) -> bool:
    return pa.types.is_struct(arrow_type) and arrow_type.get_field_index("typed_value") >= 0


def _shredding_schema(path: Path, arrays: Sequence[Any], options: WriteOptions) -> pa.Field[Any]:
    shredding = options.shredding
    if isinstance(shredding, Mapping):
        shredding = shredding.get(path)
    if isinstance(shredding, ShreddingSchema):
        return shredding.field
    if shredding is None:
        return UNSHREDDED.field
    return _inferred(arrays, options)


def _inferred(arrays: Sequence[Any], options: WriteOptions) -> pa.Field[Any]:
    return _native.infer(list(arrays), MAX_LEAVES, MAX_DEPTH, options.spark_compatible)


@dataclass(frozen=True)
class Projection:
    """A column of a read.

    `column` names a column of the file, and below it the struct fields that lead to a Variant. `what` is None
    for the column as it is, "path" for what lies at `path` in the Variant, cast to the type of `field`,
    "json" for its JSON text, and "position" for the numbers that rows have in the file, deleted ones counted.
    `timezone` is where the local times are of that timestamps are cast to and from.
    Where the file has no such column, `field` is all null.
    """

    field: pa.Field[Any]
    column: tuple[str, ...]
    what: Literal["path", "json", "position"] | None = None
    path: tuple[str | int, ...] = ()
    strict: bool = True
    timezone: str = UTC


END_BYTES = 64 << 10
"""How much of the end of a file the kernel asks for first."""


class _Ranges:
    """A file in a store, as the kernel reads it: its size, its end, and then byte ranges.

    Size and end come by one request, which this thread waits for: the kernel has few.
    """

    def __init__(self, place: Store, path: str) -> None:
        self._store = place
        self._path = path
        self._size, self._end = store.read_end(place, path, END_BYTES)

    def size(self) -> int:
        return self._size

    def read(self, starts: list[int], ends: list[int]) -> list[bytes]:
        end = self._end
        first = self._size - len(end)
        if min(starts, default=0) >= first and max(ends, default=0) <= first + len(end):
            return [end[start - first : stop - first] for start, stop in zip(starts, ends, strict=True)]
        return store.get_ranges(self._store, self._path, list(zip(starts, ends, strict=True)))


def open_file(place: Store, path: str) -> NativeFile:
    """Return an open data file of a table; raises DataFileError, or StoreError, which name it."""
    local = store.local_path(place, path)
    with naming(path):
        return _native.DataFile(_Ranges(place, path) if local is None else local, path)


@dataclass(frozen=True)
class Input:
    """A column whose values are asked about before they are read.

    `column` leads to it as in a Projection; `path` is the path below it where it is a Variant, else None;
    `type` is the Arrow type that its values are cast to.
    """

    column: tuple[str, ...]
    path: tuple[str, ...] | None
    type: pa.DataType


@dataclass(frozen=True)
class Units:
    """Ranges of rows of a file, and for each input what is known of it in them.

    `known` has the arrays `(min, max, all_null, no_null)` of each input, a row for each range; a null bound
    says nothing.
    """

    rows: Sequence[Rows]
    known: Sequence[Sequence[pa.Array[Any]]]


def units(
    file: NativeFile, path: str, inputs: Sequence[Input], row_groups: Sequence[int] | None = None
) -> Units:
    """Return what an open file knows of inputs in its row groups, or in the pages of some of them.

    Pages of several columns are cut into ranges that no page crosses. Errors name the file.
    """
    asked: Any = [
        (list(each.column), None if each.path is None else list(each.path), each.type) for each in inputs
    ]
    with naming(path):
        return Units(*file.units(asked, None if row_groups is None else list(row_groups)))


def read(
    file: NativeFile,
    path: str,
    projections: Sequence[Projection],
    *,
    rows: Sequence[Rows] | None = None,
    on_conflict: OnConflict = "error",
    deleted: bytes | None = None,
    draft: Draft | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of an open data file, in order, as batches of the projections' fields.

    Only the leaf columns that they need are read; of `rows`, ranges in order and apart from each other, only
    the pages that hold some. `deleted` is a deletion vector, whose rows are left out. `draft` says that whole
    Variants are in the layout of the older Spark draft, and how strictly they are read. Errors name file and
    row.
    """
    asked = [
        (
            list(each.column),
            each.what and (each.what, list(each.path), each.strict, each.timezone),
            each.field,
        )
        for each in projections
    ]
    ranges = None if rows is None else list(rows)
    with naming(path):
        yield from file.read(asked, ranges, on_conflict, deleted, draft)  # type: ignore[arg-type]


class naming:  # noqa: N801 - used as a context manager
    """Add the file's name to the errors of the kernel."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        prefix = f"{self._path}: "
        if isinstance(error, DeltaVariantError) and not str(error).startswith(prefix):
            raise type(error)(f"{prefix}{error}") from error


def file_stats(
    path: str | PathLike[str], *, max_variant_stats_paths: int = MAX_STATS_PATHS
) -> FileStatistics:
    """Return the statistics of any Parquet file, computed from its data as `AddFile.stats` has them.

    Variant columns are those annotated as VARIANT, and groups of `metadata` and `value`. Raises
    DataFileError, and StoreError for the URI of a file that is not on a local disk.
    """
    check_path("path", path)
    name = str(local_location("a Parquet file", path))
    with naming(name):
        file = _native.DataFile(name, name)
        return compute_stats(
            file, list(_variant_paths(file)), max_variant_stats_paths=max_variant_stats_paths
        )


def compute_stats(
    file: _native.DataFile,
    variants: Sequence[Path],
    *,
    max_variant_stats_paths: int = MAX_STATS_PATHS,
    indexed: Collection[Path] | None = None,
    shorten: bool = True,
) -> FileStatistics:
    """Return the statistics of an open file, computed from all rows of its data.

    `variants` are its Variant columns, through structs, `indexed` the leaf columns that have statistics, None
    for all. `shorten=False` keeps long texts of ordinary columns whole. Raises DataFileError.
    """
    limit = whole_number("max_variant_stats_paths", max_variant_stats_paths, 0)
    columns = file.bounds([list(path) for path in variants], limit)
    return from_report(file.num_rows, columns, file.schema.names, indexed, shorten=shorten)


def shredding_of(file: _native.DataFile) -> Mapping[Path, ShreddingSchema]:
    """Return the shredding schema of each Variant of a file, at the top and within structs.

    Raises ShreddingError for a Variant in the layout of the older Spark draft, or of no layout allowed.
    """
    return {path: ShreddingSchema.of_column(_column_type(file.schema, path)) for path in _variant_paths(file)}


def numbers_are_typed(file: _native.DataFile) -> bool:
    """Say whether shredded paths of numbers have all of their values in `typed_value`.

    Then `numeric="value"` leaves each value of the file the type that it has.
    """
    leaves = {tuple(leaf["path"]): leaf for leaf in file.inspect()["leaves"]}
    return all(
        leaf["null_count"] == leaf["num_values"]
        for path, leaf in leaves.items()
        if path[-1] == "value" and _is_number(leaves.get((*path[:-1], "typed_value")))
    )


def _is_number(leaf: Mapping[str, Any] | None) -> bool:
    return leaf is not None and leaf["logical_type"] != "STRING"


def _column_type(fields: Any, path: Path) -> Any:
    found = fields.field(fields.get_field_index(path[0])).type
    return _column_type(found, path[1:]) if path[1:] else found


def variant_columns(file: _native.DataFile) -> list[str]:
    """Return the names of the top-level columns of a file that are Variants.

    Raises DataFileError for an annotation of another version than 1 (requirements P-S2), and ShreddingError
    for a Variant in the layout of the older Spark draft.
    """
    return [path[0] for path in _variant_paths(file) if len(path) == 1]


def _variant_paths(file: _native.DataFile) -> Iterator[Path]:
    """Yield the paths of the Variants of a file, at the top and within structs."""
    check_layout(file)
    annotated = dict(_annotated(file))
    for field in file.schema:
        yield from _variants_in(field, (), annotated)


def check_layout(file: _native.DataFile) -> None:
    """Raise ShreddingError for a file that has a Variant in the layout of the older Spark draft."""
    for field in file.schema:
        if not _native.draft_column(field)[0].equals(field):
            raise ShreddingError(
                f"column {field.name} is shredded in the layout of the older Spark draft (object, array, "
                "typed_value, untyped_value): `delta-variant migrate SOURCE TARGET` writes the file anew in "
                "the present layout"
            )


def _variants_in(field: pa.Field[Any], parents: Path, annotated: Collection[Path]) -> Iterator[Path]:
    path = (*parents, field.name)
    if path in annotated or _is_variant_group(field.type):
        yield path
    elif pa.types.is_struct(field.type):
        for part in field.type:
            yield from _variants_in(part, path, annotated)


def _annotated(file: _native.DataFile) -> Iterator[tuple[Path, int | None]]:
    for path, version in file.inspect()["variants"]:
        if version not in (None, 1):
            raise DataFileError(
                f"column {'.'.join(path)} is VARIANT({version}), and only VARIANT(1) is known"
            )
        yield tuple(path), version


def _is_variant_group(arrow_type: pa.DataType) -> bool:
    if not pa.types.is_struct(arrow_type):
        return False
    names = {part.name for part in arrow_type}
    return "metadata" in names and bool(names & {"value", "typed_value"}) and names <= VARIANT_MEMBERS


VARIANT_MEMBERS = {"metadata", "value", "typed_value"}
