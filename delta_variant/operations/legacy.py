"""Read, write and migrate local Parquet files in the legacy shredding layout of an older Spark draft.

A Variant column in the legacy layout is a group of `object`, `array`, `typed_value` and `untyped_value`.
VariantShredding.md replaced it with `metadata`, `value` and `typed_value`, and no current engine reads it.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from .. import _native
from .._checks import check_option, check_path
from .._options import Compression
from .._progress import advance, begin
from ..data_file.options import FileOptions, Shredding, WriteOptions
from ..data_file.reader import LegacyMode, Projection, open_file, read
from ..data_file.writer import FileSeries, InvalidValue, WrittenFile
from ..errors import DataFileError, ShreddingError, error_location
from ..log.load import load_snapshot
from ..protocol import features
from ..storage.inputs import is_hidden
from ..storage.store import open_store
from ..storage.uris import local_location
from ..variant.shredding import ShreddingSchema
from ..variant.values import ArrowArray, to_arrow_array

__all__ = [
    "MigratedFile",
    "Migration",
    "migrate_legacy",
    "read_legacy_file",
    "shred_legacy",
    "unshred_legacy",
    "write_legacy_file",
]


def shred_legacy(variants: ArrowArray, schema: ShreddingSchema) -> pa.StructArray:
    """Return Variants as columns in the legacy layout, shredded by a schema.

    A value is stored in `typed_value` under the same conditions as for `shred`: it has the type of the
    column, or it is an exact number that the column represents without loss. Any other value is stored in
    `untyped_value`, a Variant with its own metadata.

    Args:
        variants: An Arrow array of Variants, `struct<metadata: binary, value: binary>`.
        schema: The shredding schema of the column.

    Returns:
        An array of the same length, with the groups of the legacy layout.

    Raises:
        MalformedVariantError: A value is not a valid Variant.

    Example:
        >>> import delta_variant as dv, pyarrow as pa
        >>> from delta_variant.operations.legacy import shred_legacy
        >>> schema = dv.ShreddingSchema.of({"id": pa.int64()})
        >>> shred_legacy(dv.parse_json(['{"id": 7}']), schema).field("object").type.names
        ['id']
    """
    return _native.shred_legacy(to_arrow_array(variants), schema.field)


def unshred_legacy(columns: ArrowArray, *, compat: bool = False) -> pa.StructArray:
    """Return columns in the legacy layout as Variants.

    Args:
        columns: An Arrow array with the groups of the legacy layout.
        compat: Reproduce the algorithm of the draft for columns that violate its rules: a Variant null next
            to a `typed_value` is a Variant null, and an array next to an `untyped_value` is the array.

    Returns:
        An array of Variants, `struct<metadata: binary, value: binary>`, of the same length.

    Raises:
        ShreddingError: The columns are not in the legacy layout.
        ConflictingValueError: Two columns of a row contradict each other.

    Example:
        >>> import delta_variant as dv, pyarrow as pa
        >>> from delta_variant.operations.legacy import shred_legacy, unshred_legacy
        >>> schema = dv.ShreddingSchema.of({"id": pa.int64()})
        >>> dv.to_json(unshred_legacy(shred_legacy(dv.parse_json(['{"id": 7}']), schema))).to_pylist()
        ['{"id":7}']
    """
    return _native.unshred_legacy(to_arrow_array(columns), compat)


@contextmanager
def _staging_folder(target: Path) -> Iterator[Path]:
    """Create a folder next to `target` for unfinished output, and remove it at the end.

    Raises DataFileError if the folder exists, so that two runs cannot write to the same target.
    """
    folder = target.with_name(f".{target.name}.unfinished")
    absent = [parent for parent in target.parents if not parent.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir()
    except FileExistsError as error:
        raise DataFileError(
            f"{folder} exists already: another run is writing {target}, or was killed; delete the folder if "
            "no run is active",
            file=str(target),
        ) from error
    try:
        yield folder
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):
            for parent in absent:
                parent.rmdir()
        raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


FilePath: TypeAlias = "str | PathLike[str]"


@dataclass(frozen=True)
class _LegacyFile:
    """A Parquet file that can have Variants in the legacy layout.

    `name` is relative to `folder`. `schema` is the schema of the rows, with Variants instead of legacy
    groups. `columns` are the columns with such groups, and `schemas` the shredding schemas of top-level ones.
    """

    folder: Path
    name: str
    rows: int
    schema: pa.Schema
    columns: tuple[str, ...]
    schemas: Mapping[str, ShreddingSchema]

    @property
    def path(self) -> Path:
        return self.folder / self.name


def _open_legacy_file(folder: Path, name: str) -> _LegacyFile:
    """Read the footer of a file.

    Raises DataFileError, and ShreddingError for columns that violate the rules of the legacy layout.
    """
    file = open_file(open_store(folder), name)
    before = list(file.schema)
    with error_location(file=name):
        after = [_native.legacy_column(field) for field in before]
    return _LegacyFile(
        folder,
        name,
        file.num_rows,
        pa.schema([field for field, _ in after]),
        tuple(old.name for old, (new, _) in zip(before, after, strict=True) if not new.equals(old)),
        {field.name: ShreddingSchema(schema) for field, schema in after if schema is not None},
    )


def _read_batches(file: _LegacyFile, *, compat: bool) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the rows of a file with reconstructed Variants, as at least one batch."""
    batches = _batches(file, "compat" if compat else "strict")
    first = next(batches, None)
    if first is None:
        first = pa.RecordBatch.from_pylist([], schema=file.schema)
    return first.schema, chain([first], batches)


def _batches(file: _LegacyFile, mode: LegacyMode) -> Iterator[pa.RecordBatch]:
    projections = [Projection(field, (field.name,)) for field in file.schema]
    opened = open_file(open_store(file.folder), file.name)
    for batch in read(opened, file.name, projections, legacy_mode=mode):
        # The native reader returns every column as nullable. The schema of the file has the nullability.
        own = zip(batch.schema, file.schema, strict=True)
        schema = pa.schema([field.with_nullable(known.nullable) for field, known in own])
        yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def read_legacy_file(path: FilePath, *, compat: bool = False) -> pa.RecordBatchReader:
    """Read a local Parquet file in the legacy layout.

    Args:
        path: The path of the file.
        compat: As for `unshred_legacy`.

    Returns:
        A reader of the rows, with Variants instead of the columns in the legacy layout.

    Raises:
        DataFileError: The file cannot be read, or has no column in the legacy layout.
        ShreddingError: A column violates the rules of the legacy layout.
        ConflictingValueError: Two columns of a row contradict each other.

    Example:
        >>> import delta_variant as dv, pyarrow as pa, tempfile
        >>> from delta_variant.operations.legacy import read_legacy_file, write_legacy_file
        >>> path = tempfile.mkdtemp() + "/old.parquet"
        >>> data = pa.table({"event": dv.parse_json(['{"id": 7}'])})
        >>> _ = write_legacy_file(path, data, {"event": dv.ShreddingSchema.of({"id": pa.int64()})})
        >>> dv.to_json(read_legacy_file(path).read_all()["event"]).to_pylist()
        ['{"id":7}']
    """
    local = local_location("a file in the legacy layout", path).absolute()
    file = _open_legacy_file(local.parent, local.name)
    if not file.columns:
        raise DataFileError(f"{path} has no column in the legacy layout", file=str(path))
    return pa.RecordBatchReader.from_batches(*_read_batches(file, compat=compat))


def write_legacy_file(
    path: FilePath, data: Any, shredding: Mapping[str, ShreddingSchema], *, compression: Compression = "zstd"
) -> WrittenFile:
    """Write Arrow data to a new local Parquet file in the legacy layout, for tests of readers and migrations.

    Args:
        path: The path of the new file.
        data: Arrow data with Variants: a table, a record batch or a reader.
        shredding: The shredding schema of each column to write in the legacy layout.
        compression: The Parquet compression codec.

    Returns:
        The written file.

    Raises:
        DataFileError: The path exists already, or cannot be written.
        ShreddingError: The path is within a Delta table that supports `variantShredding`, which does not
            allow the legacy layout (PROTOCOL.md, "Variant Shredding").
        ValueError: `shredding` names a column that the data does not have.

    Example:
        >>> import delta_variant as dv, pyarrow as pa, tempfile
        >>> from delta_variant.operations.legacy import write_legacy_file
        >>> data = pa.table({"event": dv.parse_json(['{"id": 7}'])})
        >>> schema = dv.ShreddingSchema.of({"id": pa.int64()})
        >>> write_legacy_file(tempfile.mkdtemp() + "/old.parquet", data, {"event": schema}).rows
        1
    """
    target = local_location("a file in the legacy layout", path).absolute()
    if target.exists():
        raise DataFileError(f"{target} exists already: pass the path of a new file", file=str(target))
    _check_no_shredding_table(target)
    reader = pa.RecordBatchReader.from_stream(data)
    if missing := set(shredding) - set(reader.schema.names):
        raise ValueError(
            f"shredding: expected columns of the data, got {', '.join(map(repr, sorted(missing)))}"
        )
    none = pa.RecordBatch.from_pylist([], schema=reader.schema)
    batches = (_shred_columns(batch, shredding) for batch in chain([none], reader))
    with _staging_folder(target) as staging:
        options = WriteOptions(shredding=None, files=FileOptions(compression=compression))
        written = _write_file(staging, target.name, batches, (), options)
        os.link(staging / target.name, target)
    return written


def _check_no_shredding_table(path: Path) -> None:
    tables = [folder for folder in path.parents if (folder / "_delta_log").is_dir()]
    for table in tables:
        if features.supports_shredding(load_snapshot(table).protocol):
            raise ShreddingError(
                f"cannot write {path} because {table} is a Delta table with variantShredding, which does not "
                "allow the legacy layout: use write_table to add rows",
                table=str(table),
                file=str(path),
            )


def _shred_columns(batch: pa.RecordBatch, shredding: Mapping[str, ShreddingSchema]) -> pa.RecordBatch:
    for name, schema in shredding.items():
        column = shred_legacy(batch.column(name), schema)
        # The field has no Variant extension type: the VARIANT annotation means the current layout.
        field = pa.field(name, column.type, batch.schema.field(name).nullable)
        batch = batch.set_column(batch.schema.get_field_index(name), field, column)
    return batch


def _write_file(
    folder: Path, name: str, batches: Iterable[pa.RecordBatch], variants: Iterable[str], options: WriteOptions
) -> WrittenFile:
    """Write at least one batch to one file."""
    options = replace(options, files=replace(options.files, target_file_size=sys.maxsize))
    series = FileSeries[None](
        open_store(folder), lambda: name, options, None, tuple(variants), _ignore_invalid
    )
    for batch in batches:
        series.add(batch, None)
    (written,) = series.close()
    return written


def _ignore_invalid(_context: None, _batch: pa.RecordBatch, _values: list[InvalidValue]) -> None:
    """Do nothing, because only JSON text can have invalid values."""


NewShredding: TypeAlias = "Shredding | Literal['same']"


@dataclass(frozen=True)
class MigratedFile:
    """A file of a migration.

    Attributes:
        path: The path relative to the source and to the target.
        rows: The number of rows.
        bytes_before: The size of the source file, in bytes.
        bytes: The size of the new file, in bytes.
        columns: The columns that were in the legacy layout. A file without any was copied.
        written: The new file with its shredding schemas, None for a copied file.
    """

    path: str
    rows: int
    bytes_before: int
    bytes: int
    columns: tuple[str, ...] = ()
    written: WrittenFile | None = None


@dataclass(frozen=True)
class Migration:
    """The result of a migration.

    Attributes:
        files: The Parquet files of the target.
        others: The other files of the source, which were not copied.

    Example:
        >>> import delta_variant as dv, pyarrow as pa
        >>> from delta_variant.operations.legacy import write_legacy_file
        >>> data = pa.table({"event": dv.parse_json(['{"id": 7}'])})
        >>> _ = write_legacy_file("old.parquet", data, {"event": dv.ShreddingSchema.of({"id": pa.int64()})})
        >>> migration = dv.migrate_legacy("old.parquet", "new.parquet")
        >>> [file.rows for file in migration.files], migration.others
        ([1], ())
    """

    files: tuple[MigratedFile, ...]
    others: tuple[str, ...] = ()


def migrate_legacy(
    source: FilePath,
    target: FilePath,
    *,
    shredding: NewShredding = "same",
    compat: bool = False,
    compression: Compression = "zstd",
) -> Migration:
    """Rewrite a Parquet file in the legacy layout, or a folder of such files, in the current layout.

    Values, row order, other columns and the relative paths of files stay the same. A Parquet file without a
    legacy column is copied. The target appears only when the migration is complete; after an error it is
    unchanged. The source is not modified.

    Args:
        source: A local Parquet file or a folder.
        target: A path that does not exist, or an empty folder.
        shredding: How to shred the columns: `"same"` keeps the schema of the file, `"infer"` infers a schema
            from the values, a `ShreddingSchema` is used as given, and None does not shred. Variants within
            structs, lists and maps are never shredded.
        compat: As for `unshred_legacy`.
        compression: The Parquet compression codec of the new files.

    Returns:
        The migrated and copied files.

    Raises:
        DataFileError: The source has no column in the legacy layout, is a Delta table, or cannot be read; or
            the target exists already.
        ShreddingError: A column violates the rules of the legacy layout.
        ConflictingValueError: Two columns of a row contradict each other.

    Example:
        >>> import delta_variant as dv, pyarrow as pa, tempfile
        >>> from delta_variant.operations.legacy import write_legacy_file
        >>> folder = tempfile.mkdtemp()
        >>> data = pa.table({"event": dv.parse_json(['{"id": 7}'])})
        >>> schema = dv.ShreddingSchema.of({"id": pa.int64()})
        >>> _ = write_legacy_file(f"{folder}/old.parquet", data, {"event": schema})
        >>> migration = dv.migrate_legacy(f"{folder}/old.parquet", f"{folder}/new.parquet")
        >>> [file.columns for file in migration.files]
        [('event',)]
    """
    if not isinstance(shredding, ShreddingSchema):
        check_option("shredding", shredding, ("same", "infer", None))
    check_path("source", source)
    check_path("target", target)
    source = local_location("the source of a migration", source).resolve()
    target = local_location("the target of a migration", target).resolve()
    _check_locations(source, target)
    files, others = _list_files(source)
    if not any(file.columns for file in files):
        raise DataFileError(
            f"{source} has no column in the legacy layout: there is nothing to migrate", file=str(source)
        )
    with _staging_folder(target) as staging:
        begin("migrating", files=len(files), bytes_=sum(file.path.stat().st_size for file in files))
        migrated = []
        for file in files:
            migrated.append(_migrate(file, staging, shredding, compat, compression))
            advance(files=1, bytes_=migrated[-1].bytes_before, rows=migrated[-1].rows)
        _publish(staging, source, target)
    return Migration(tuple(migrated), tuple(others))


def _check_locations(source: Path, target: Path) -> None:
    if not source.exists():
        raise DataFileError(f"there is no file or folder {source}", file=str(source))
    if target == source or source in target.parents:
        raise DataFileError(f"the target {target} is within the source: pass another path", file=str(target))
    is_empty_folder = source.is_dir() and target.is_dir() and not any(target.iterdir())
    if target.exists() and not is_empty_folder:
        raise DataFileError(f"{target} exists already: pass the path of a new target", file=str(target))


def _list_files(source: Path) -> tuple[list[_LegacyFile], list[str]]:
    """Return the Parquet files of the source, and the names of its other files that are not hidden."""
    if source.is_file():
        return [_open_legacy_file(source.parent, source.name)], []
    if any(source.rglob("_delta_log")):
        raise DataFileError(
            f"cannot migrate {source} because it contains a Delta table, whose log determines the valid "
            "files and rows: copy those files to another folder and migrate that",
            file=str(source),
        )
    paths = sorted(path.relative_to(source) for path in source.rglob("*") if path.is_file())
    names = [path.as_posix() for path in paths if not any(map(is_hidden, path.parts))]
    files = [_open_legacy_file(source, name) for name in names if name.endswith(".parquet")]
    if not files:
        raise DataFileError(f"{source} has no files with names that end in .parquet", file=str(source))
    return files, [name for name in names if not name.endswith(".parquet")]


def _migrate(
    file: _LegacyFile, folder: Path, shredding: NewShredding, compat: bool, compression: Compression
) -> MigratedFile:
    size = file.path.stat().st_size
    if not file.columns:
        (folder / file.name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file.path, folder / file.name)
        return MigratedFile(file.name, file.rows, size, size)
    same: dict[tuple[str, ...], ShreddingSchema] = {(name,): schema for name, schema in file.schemas.items()}
    options = WriteOptions(
        shredding=same if shredding == "same" else shredding, files=FileOptions(compression=compression)
    )
    _, batches = _read_batches(file, compat=compat)
    with error_location(file=file.name):
        written = _write_file(folder, file.name, batches, file.schemas, options)
    return MigratedFile(file.name, written.rows, size, written.bytes, file.columns, written)


def _publish(staging: Path, source: Path, target: Path) -> None:
    if source.is_file():
        # A link fails if the target exists. A rename would replace it.
        os.link(staging / source.name, target)
        return
    if target.exists():
        target.rmdir()
    staging.rename(target)
