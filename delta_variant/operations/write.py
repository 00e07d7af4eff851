"""Write a table: create, append or overwrite as one commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from .._checks import list_names, options_of, texts_of
from ..data_file.options import FileOptions, JsonOptions, Shredding, WriteOptions
from ..input.arrow_data import batches_of, files_as_lines
from ..input.invalid_json import Batches, InvalidValueHandler, RejectsFile
from ..input.json_lines import JsonLines
from ..log.commit_context import CommitOptions
from ..protocol.schema.arrow import from_arrow
from ..protocol.types import StructType
from ..storage.store import Store, TableLocation, discard, open_latest, removing_new_folders
from ..variant.moments import UTC
from ..write.commit import WriteResult, commit_files, result_without_writing
from ..write.preparation import (
    Mode,
    PreparedWrite,
    SchemaMode,
    TableOptions,
    WriteRequest,
    load_existing,
    prepare,
)
from ..write.router import write_files
from ..write.row_rules import complete_rows
from ..write.written_files import WrittenFiles

__all__ = ["write_table"]

BATCH_BYTES = 64 << 20
"""How much of a batch is written at a time: files end between parts, and text has 32-bit offsets."""


def write_table(
    table: TableLocation,
    data: Any,
    *,
    mode: Mode = "error",
    where: str | None = None,
    partition_by: str | Sequence[str] | None = None,
    schema_mode: SchemaMode = None,
    variant_columns: Sequence[str] = (),
    shredding: Shredding = "infer",
    configuration: Mapping[str, str] | None = None,
    name: str | None = None,
    description: str | None = None,
    timezone: str = UTC,
    files: FileOptions | None = None,
    json: JsonOptions | None = None,
    commit: CommitOptions | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> WriteResult:
    """Write `data` to a Delta table as one commit.

    These columns become Variant columns: JSON text of the extension type `arrow.json`, Variants of the
    extension type `arrow.parquet.variant`, `struct<metadata, value>` if the table has a Variant column of
    that name, and the columns in `variant_columns`. Columns that the data lacks get their default or
    generated value, or NULL.

    Args:
        table: A path, a URI, a `Table` or a `deltalake.DeltaTable`.
        data: Arrow data (any object with `__arrow_c_stream__` or `__arrow_c_array__`, such as a pyarrow,
            pandas or Polars table, a DuckDB relation or a `Scan`), a Polars LazyFrame, a list or an iterator
            of dicts, a list of JSON texts for the one column in `variant_columns`, the path of a `.json`,
            `.jsonl` or `.ndjson` file, which may be compressed, or the result of `read_json`.
        mode: What to do if the table exists, even if another writer creates it during the write: `"error"`,
            the default, raises TableExistsError, `"append"` adds rows, `"overwrite"` replaces all rows or
            those that match `where`, `"ignore"` does nothing.
        where: An SQL predicate that selects the rows that `mode="overwrite"` replaces. It must also be
            true for all rows of the data. A predicate over partition columns only does not read files. None,
            the default, replaces all rows.
        partition_by: The partition columns of a new table. None, the default, creates a table without
            partitions. For an existing table they must be its own, except with `schema_mode="overwrite"`.
        schema_mode: None, the default, requires data that fits the table. `"merge"` adds columns that the
            table lacks, and widens types if the table sets `delta.enableTypeWidening`. `"overwrite"` gives a
            table that is completely overwritten the columns of the data.
        variant_columns: The names of columns that become Variants: JSON text is parsed; structs, maps, lists,
            scalars and Python objects are converted with their types. So are nested columns and Python
            objects where the table has a Variant column. Null within a struct is Variant null, and a missing
            key of a dict stays missing. In a pandas column of dicts, a row that is None, NaN, NaT or NA is
            NULL. Empty by default.
        shredding: How to shred Variants: `"infer"`, the default, infers a schema for each file if the table
            allows shredding, and only shreds paths that save bytes, of which small files have none. A
            `ShreddingSchema` applies to all files, None does not shred.
        configuration: Table properties of a new table. New tables with a Variant column set
            `delta.enableVariantShredding` to true unless this mapping sets it or `shredding` is None. None by
            default.
        name: The name of a new table. None, the default, omits it.
        description: The description of a new table. None, the default, omits it.
        timezone: The time zone of local times in `where`, constraints and generated columns, as in
            `read_table`. `"UTC"` by default.
        files: How data files are written; see `FileOptions`. None, the default, uses its defaults.
        json: How JSON text becomes Variants, and what happens to text that is not JSON; see `JsonOptions`.
            None, the default, uses the options of `read_json` for its result, and the defaults otherwise.
        commit: The `txn` and the metadata of the commit; see `CommitOptions`. None, the default, sets none.
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
        AmbiguousWriteError: Another run may have committed the `txn` of `commit`.
        CommitConflictError: A concurrent commit conflicts with this one.
        ArgumentTypeError: An argument has the wrong type.
        ValueError: An argument has an invalid value.

    Example:
        >>> import pyarrow as pa
        >>> from delta_variant import write_table
        >>> table = "events"
        >>> rows = pa.table({"event": ['{"user": "ann"}', '{"user": "bob"}']})
        >>> result = write_table(table, rows, variant_columns=["event"])
        >>> result.version, result.rows
        (0, 2)
    """
    if json is None and isinstance(data, JsonLines):
        json = data.json
    options = WriteOptions(
        shredding, options_of("files", files, FileOptions), options_of("json", json, JsonOptions)
    )
    commit = options_of("commit", commit, CommitOptions)
    table_options = TableOptions(
        partition_by, schema_mode, configuration, name, description, mode, where, timezone
    )
    store = open_latest(table, storage_options)
    snapshot = load_existing(store, mode)
    if result := result_without_writing(snapshot, mode, commit):
        return result
    known = None if snapshot is None or schema_mode == "overwrite" else snapshot.schema
    variants = texts_of("names", "variant_columns", variant_columns)
    source = _Source.of(data, variants, known)
    _check_names(source.schema, variants)
    columns = from_arrow(source.schema, variants)
    write = prepare(store, snapshot, WriteRequest(columns, options, table_options), commit)
    with removing_new_folders(store):
        written, invalid = _write(write, source)
        return commit_files(write, written, invalid)


def _write(write: PreparedWrite, source: _Source) -> tuple[WrittenFiles, int]:
    """Return the files of a write and the number of values with invalid JSON."""
    json = write.options.json
    with RejectsFile(json.rejects) as file:
        invalid_values = InvalidValueHandler(json.on_invalid, file.keep)
        rows = complete_rows(source.batches, write.after, write.options, write.predicate())
        files = write_files(write.store, rows, write.after, write.options, invalid_values)
        _close(file, write.store, files)
    return files, invalid_values.count


def _close(rejects: RejectsFile, store: Store, files: WrittenFiles) -> None:
    """Close the rejects file; after an error remove the data files, so that rejects are not lost."""
    try:
        rejects.close()
    except BaseException:
        discard(store, files.paths())
        raise


@dataclass(frozen=True)
class _Source:
    """Arrow batches to write, each with its origin if it comes from a file of JSON."""

    schema: pa.Schema
    batches: Batches

    @classmethod
    def of(cls, data: Any, variants: Sequence[str], columns: StructType | None) -> _Source:
        data = files_as_lines(data, "the data", variants)
        if isinstance(data, JsonLines):
            return cls(data.schema, data.batches())
        arrow_schema, batches = batches_of(data, "the data", variants, columns)
        return cls(arrow_schema, ((part, None) for batch in batches for part in _parts(batch)))


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a batch in parts of about `BATCH_BYTES`."""
    rows = max(1, batch.num_rows * BATCH_BYTES // max(batch.nbytes, BATCH_BYTES))
    yield from (batch.slice(first, rows) for first in range(0, max(1, batch.num_rows), rows))


def _check_names(arrow_schema: pa.Schema, variants: Sequence[str]) -> None:
    missing = [name for name in variants if name not in arrow_schema.names]
    if missing:
        raise ValueError(
            f"variant_columns: the data does not have a column {missing[0]!r}; its columns are "
            f"{list_names(arrow_schema.names)}"
        )
