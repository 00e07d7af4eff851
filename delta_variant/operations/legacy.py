"""Columns and Parquet files with Variants in the legacy layout."""

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
from typing import Any, TypeAlias

import pyarrow as pa

from ... import _native
from ..._options import Compression
from ...data_file.options import FileOptions, WriteOptions
from ...data_file.reader import LegacyMode, Projection, open_file, read
from ...data_file.writer import FileSeries, InvalidValue, WrittenFile
from ...errors import DataFileError, ShreddingError, error_location
from ...log.load import load_snapshot
from ...protocol import features
from ...storage.store import open_store
from ...storage.uris import local_location
from ...variant.shredding import ShreddingSchema
from ...variant.values import ArrowArray, to_arrow_array


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
def staging_folder(target: Path) -> Iterator[Path]:
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
class LegacyFile:
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


def open_legacy_file(folder: Path, name: str) -> LegacyFile:
    """Read the footer of a file.

    Raises DataFileError, and ShreddingError for columns that violate the rules of the legacy layout.
    """
    file = open_file(open_store(folder), name)
    before = list(file.schema)
    with error_location(file=name):
        after = [_native.legacy_column(field) for field in before]
    return LegacyFile(
        folder,
        name,
        file.num_rows,
        pa.schema([field for field, _ in after]),
        tuple(old.name for old, (new, _) in zip(before, after, strict=True) if not new.equals(old)),
        {field.name: ShreddingSchema(schema) for field, schema in after if schema is not None},
    )


def read_batches(file: LegacyFile, *, compat: bool) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the rows of a file with reconstructed Variants, as at least one batch."""
    batches = _batches(file, "compat" if compat else "strict")
    first = next(batches, None)
    if first is None:
        first = pa.RecordBatch.from_pylist([], schema=file.schema)
    return first.schema, chain([first], batches)


def _batches(file: LegacyFile, mode: LegacyMode) -> Iterator[pa.RecordBatch]:
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
    file = open_legacy_file(local.parent, local.name)
    if not file.columns:
        raise DataFileError(f"{path} has no column in the legacy layout", file=str(path))
    return pa.RecordBatchReader.from_batches(*read_batches(file, compat=compat))


def write_legacy_file(
    path: FilePath,
    data: Any,
    shredding: Mapping[str, ShreddingSchema],
    *,
    compression: Compression = "zstd",
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
    with staging_folder(target) as staging:
        options = WriteOptions(shredding=None, files=FileOptions(compression=compression))
        written = write_file(staging, target.name, batches, (), options)
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


def write_file(
    folder: Path,
    name: str,
    batches: Iterable[pa.RecordBatch],
    variants: Iterable[str],
    options: WriteOptions,
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
