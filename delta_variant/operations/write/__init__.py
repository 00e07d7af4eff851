"""Writing a table: create, append and overwrite, one commit each."""

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
"""How much of a batch is written at a time: files end between, and text has offsets of 32 bits in a table."""


def write_table(
    table: TableLocation,
    data: Any,
    *,
    mode: Mode = "error",
    partition_by: str | Sequence[str] | None = None,
    schema_mode: SchemaMode = None,
    predicate: str | None = None,
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

    `data` is any object with `__arrow_c_stream__` or `__arrow_c_array__`, or what `read_json_lines` gives.
    Columns that become Variant: JSON text of the extension type `arrow.json`, Variants marked
    `arrow.parquet.variant`, `struct<metadata, value>` where the table has a Variant, and any column in
    `variant_columns`.

    `mode` says what happens when the table exists: `error` raises TableExistsError, `append` adds rows,
    `overwrite` replaces all rows, or with `predicate` those for which this SQL is true, which then has to be
    true of the data, too; `ignore` does nothing. A predicate over partition columns reads no file. The same
    holds for a table that another writer creates while the data is written.
    `predicate`, and the constraints and generated columns of the table, have their local times in `timezone`,
    as in `read_table`.
    `schema_mode="merge"` adds columns that the table does not have, and widens those of which the data has a
    wider type where the table sets `delta.enableTypeWidening`; `schema_mode="overwrite"` gives a table
    that is overwritten whole the columns of the data, and with `partition_by` other partitions. New tables
    with a Variant column enable `delta.enableVariantShredding`, unless `shredding` is None or `configuration`
    says otherwise; `shredding="infer"` finds a shredding schema for each file where the table allows
    shredding.
    `numeric="strict"` shreds only the numbers of Variants that have the column's own type, so that all come
    back with the type that they had; numbers in JSON text have none to keep.

    Text that is not JSON raises InvalidJsonError with file, line and column, and nothing is committed;
    `on_invalid="reject"` leaves the row out and appends it with the reason to the file `rejects`, and
    `on_invalid="null"` stores SQL NULL. `target_file_size` is in bytes.

    `txn` is the id of an application and a version that grows with its writes: a write is skipped if the
    table already has its version or a later one, so that a write can be repeated. A skip is logged, and
    `repeated` of the result is True.

    Columns that the data does not have are NULL, or what the table's default or generation expression says.

    Raises SchemaError for data that does not fit, UnsupportedFeatureError for what the table demands and this
    version cannot honour, ConstraintViolationError for a row that a constraint of the table is not true of,
    ShreddingNotEnabledError, PredicateViolationError, and CommitConflictError.
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
        partition_by, schema_mode, configuration, name, description, mode, predicate, timezone
    )
    if (on_invalid == "reject") != (rejects is not None):
        raise ValueError("rejects= names the file of on_invalid='reject': give both or none")
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
    """Return the files of a write, and how many values of it were not valid JSON."""
    with RejectsFile(rejects) as file:
        invalid_values = InvalidValueHandler(write.options.on_invalid, file.keep)
        rows = apply_row_rules(source.batches, write.state, write.options)
        batches = check_overwrite_predicate(rows, write.state.columns, write.predicate, write.options)
        files = write_files(write.store, batches, write.state, write.options, invalid_values)
        _close(file, write.store, files)
    return files, invalid_values.count


def _close(rejects: RejectsFile, store: Store, files: Sequence[PartitionFile]) -> None:
    """Close the file of rejects, or remove the data files: rows that nobody can look up would be lost."""
    try:
        rejects.close()
    except BaseException:
        discard(store, [file.written.path for file in files])
        raise


@dataclass(frozen=True)
class _Source:
    """Arrow batches to write, each with its origin where it comes from a file of JSON."""

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
        raise ValueError(f"variant_columns names {missing[0]!r}, and the data has no such column")
    return names
