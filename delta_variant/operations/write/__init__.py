"""Write a table: create, append or overwrite as one commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal

import pyarrow as pa

from ..._checks import check_path, texts_of
from ...data_file.options import (
    DEFAULT_TARGET_FILE_SIZE,
    MAX_STATS_PATHS,
    Compression,
    OnInvalid,
    Shredding,
    WriteOptions,
)
from ...protocol.schema.arrow import from_arrow
from ...storage.store import Store, TableLocation, open_store, removing_new_folders
from ...variant.moments import UTC
from ...writer.arrow_input import batches_of
from ...writer.invalid_json import InvalidValueHandler, RejectsFile
from ...writer.json_lines import JsonLines
from ...writer.partitioned import Batches, PartitionFile, apply_row_rules, discard, write_files
from .committing import WriteResult, commit_files, result_without_writing
from .overwriting import check_overwrite_predicate
from .preparation import (
    Mode,
    PreparedWrite,
    SchemaMode,
    TableOptions,
    Transaction,
    application_transaction,
    load_existing,
    prepare,
)

__all__ = ["write_table"]

BATCH_BYTES = 64 << 20
"""How much of a batch is written at a time: files end between parts, and text has 32-bit offsets."""


def write_table(
    table: TableLocation,
    data: Any,
    *,
    mode: Mode = "error",
    partition_by: str | Sequence[str] | None = None,
    schema_mode: SchemaMode = None,
    where: str | None = None,
    timezone: str = UTC,
    shredding: Shredding = "infer",
    variant_columns: Sequence[str] = (),
    on_invalid: OnInvalid = "error",
    rejects: str | PathLike[str] | None = None,
    numeric: Literal["value", "strict"] = "value",
    floats: Literal["decimal", "double"] = "decimal",
    duplicate_keys: Literal["error", "last"] = "error",
    target_file_size: int = DEFAULT_TARGET_FILE_SIZE,
    compression: Compression = "zstd",
    annotate: bool = True,
    spark_compatible: bool = True,
    max_variant_stats_paths: int = MAX_STATS_PATHS,
    configuration: Mapping[str, str] | None = None,
    name: str | None = None,
    description: str | None = None,
    txn: tuple[str, int] | Transaction | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> WriteResult:
    """Write `data` to a Delta table as one commit.

    These columns become Variant columns: JSON text of the extension type `arrow.json`, Variants of the
    extension type `arrow.parquet.variant`, `struct<metadata, value>` if the table has a Variant column of
    that name, and the columns in `variant_columns`. Columns that the data lacks get their default or
    generated value, or NULL.

    Args:
        table: The path or URI of the table.
        data: An object with `__arrow_c_stream__` or `__arrow_c_array__`, such as a pyarrow or Polars table,
            or the result of `read_json`.
        mode: What to do if the table exists, even if another writer creates it during the write: `"error"`,
            the default, raises TableExistsError, `"append"` adds rows, `"overwrite"` replaces all rows or
            those that match `where`, `"ignore"` does nothing.
        partition_by: The partition columns of a new table. None, the default, creates a table without
            partitions. For an existing table they must be its own, except with `schema_mode="overwrite"`.
        schema_mode: None, the default, requires data that fits the table. `"merge"` adds columns that the
            table lacks, and widens types if the table sets `delta.enableTypeWidening`. `"overwrite"` gives a
            table that is completely overwritten the columns of the data.
        where: An SQL predicate that selects the rows that `mode="overwrite"` replaces. It must also be
            true for all rows of the data. A predicate over partition columns only does not read files. None,
            the default, replaces all rows.
        timezone: The time zone of local times in `where`, constraints and generated columns, as in
            `read_table`. `"UTC"` by default.
        shredding: How to shred Variants: `"infer"`, the default, infers a schema for each file if the table
            allows shredding, a `ShreddingSchema` applies to all files, None does not shred.
        variant_columns: The names of columns that become Variants. Empty by default.
        on_invalid: What to do with invalid JSON: `"error"`, the default, raises InvalidJsonError, `"reject"`
            omits the row and appends it to `rejects`, `"null"` stores SQL NULL.
        rejects: The path of the file to which `on_invalid="reject"` appends rejected values as JSON lines,
            with location and reason. None by default.
        numeric: `"value"`, the default, shreds exact numbers by value, so that an integer may be read back as
            an equal decimal. `"strict"` only shreds numbers that have the type of the shredded column, so
            that all Variants keep their types.
        floats: How JSON numbers with a fraction or exponent are stored: `"decimal"`, the default, as decimals
            where they fit, `"double"` always as doubles.
        duplicate_keys: What to do with duplicate keys of a JSON object: `"error"`, the default, treats them
            as invalid JSON, `"last"` keeps the last value.
        target_file_size: The approximate size of new files in bytes, 128 MiB by default.
        compression: The compression of new files: `"zstd"`, the default, `"snappy"`, `"gzip"`, `"lz4"` or
            `"none"`.
        annotate: Whether Variant columns get the Parquet logical type VARIANT. True by default.
        spark_compatible: Whether to infer only shredding schemas with types that Spark reads. True by
            default.
        max_variant_stats_paths: The maximum number of Variant paths with bounds in the statistics of a file,
            32 by default.
        configuration: Table properties of a new table. New tables with a Variant column set
            `delta.enableVariantShredding` to true unless this mapping sets it or `shredding` is None. None by
            default.
        name: The name of a new table. None, the default, omits it.
        description: The description of a new table. None, the default, omits it.
        txn: An application id and a version that increases with each write, which make the write idempotent:
            it is skipped with a warning if the table already has that version or a later one. None by
            default.
        storage_options: Options of the object store, with the keys of deltalake. None by default.

    Returns:
        A `WriteResult` with the committed version, the number of rows and the new files.

    Raises:
        TableExistsError: The table exists and `mode` is `"error"`.
        InvalidJsonError: A value is not valid JSON; the error has its file and line, or its row and column.
        SchemaError: The data does not fit the table, or its schema is not valid in Delta.
        ConstraintViolationError: A row violates a constraint of the table.
        PredicateViolationError: A row does not match `where`.
        UnsupportedFeatureError: This version cannot write the table.
        ShreddingNotEnabledError: `shredding` is a schema, but the table does not enable shredding.
        AmbiguousWriteError: Another run may have committed `txn`.
        CommitConflictError: A concurrent commit conflicts with this one.
        ArgumentTypeError: An argument has the wrong type.
        ValueError: An argument has an invalid value.

    Example:
        >>> import tempfile
        >>> import pyarrow as pa
        >>> from delta_variant import write_table
        >>> table = tempfile.mkdtemp()
        >>> rows = pa.table({"event": ['{"user": "ann"}', '{"user": "bob"}']})
        >>> result = write_table(table, rows, variant_columns=["event"])
        >>> result.version, result.rows
        (0, 2)
    """
    options = WriteOptions(
        shredding=shredding,
        spark_compatible=spark_compatible,
        target_file_size=target_file_size,
        compression=compression,
        annotate=annotate,
        numeric=numeric,
        floats=floats,
        duplicate_keys=duplicate_keys,
        on_invalid=on_invalid,
        max_stats_paths=max_variant_stats_paths,
    )
    table_options = TableOptions(
        partition_by, schema_mode, configuration, name, description, mode, where, timezone
    )
    if (on_invalid == "reject") != (rejects is not None):
        raise ValueError("rejects requires on_invalid='reject': pass both, or neither")
    if rejects is not None:
        check_path("rejects", rejects)
    store, transaction = open_store(table, storage_options), application_transaction(txn)
    snapshot = load_existing(store, mode)
    if result := result_without_writing(snapshot, mode, transaction):
        return result
    source = _Source.of(data)
    columns = from_arrow(source.schema, _names_of_variants(source.schema, variant_columns))
    write = prepare(store, snapshot, columns, options, table_options, transaction)
    with removing_new_folders(store):
        files, invalid = _write(write, source, rejects)
        return commit_files(write, files, invalid)


def _write(
    write: PreparedWrite, source: _Source, rejects: str | PathLike[str] | None
) -> tuple[list[PartitionFile], int]:
    """Return the files of a write and the number of values with invalid JSON."""
    with RejectsFile(rejects) as file:
        invalid_values = InvalidValueHandler(write.options.on_invalid, file.keep)
        rows = apply_row_rules(source.batches, write.state, write.options)
        batches = check_overwrite_predicate(rows, write.state.columns, write.predicate, write.options)
        files = write_files(write.store, batches, write.state, write.options, invalid_values)
        _close(file, write.store, files)
    return files, invalid_values.count


def _close(rejects: RejectsFile, store: Store, files: Sequence[PartitionFile]) -> None:
    """Close the rejects file; after an error remove the data files, so that rejects are not lost."""
    try:
        rejects.close()
    except BaseException:
        discard(store, [file.written.path for file in files])
        raise


@dataclass(frozen=True)
class _Source:
    """Arrow batches to write, each with its origin if it comes from a file of JSON."""

    schema: pa.Schema
    batches: Batches

    @classmethod
    def of(cls, data: Any) -> _Source:
        if isinstance(data, JsonLines):
            return cls(data.schema, data.batches())
        arrow_schema, batches = batches_of(data, "the data")
        return cls(arrow_schema, ((part, None) for batch in batches for part in _parts(batch)))


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a batch in parts of about `BATCH_BYTES`."""
    rows = max(1, batch.num_rows * BATCH_BYTES // max(batch.nbytes, BATCH_BYTES))
    yield from (batch.slice(first, rows) for first in range(0, max(1, batch.num_rows), rows))


def _names_of_variants(arrow_schema: pa.Schema, variant_columns: Sequence[str]) -> tuple[str, ...]:
    names = texts_of("names", "variant_columns", variant_columns)
    missing = [name for name in names if name not in arrow_schema.names]
    if missing:
        raise ValueError(f"variant_columns: the data does not have a column {missing[0]!r}")
    return names
