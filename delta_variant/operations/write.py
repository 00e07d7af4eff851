"""Write a table: create, append or overwrite as one commit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import pyarrow as pa

from .._checks import list_names, options_of, texts_of
from ..data_file.options import FileOptions, JsonOptions, Shredding, WriteOptions
from ..execution import Engine, Executor, LocalExecutor, NameFile, executor_of, timezone_of
from ..expressions.tree import Expression
from ..input.arrow_data import batches_of
from ..input.files import open_path
from ..input.invalid_json import Batches, InvalidValueHandler, RejectsFile
from ..input.json_lines import JsonLines
from ..log.commit_context import CommitOptions, txn_of
from ..protocol.schema.arrow import from_arrow
from ..protocol.table_configuration import TableConfiguration
from ..protocol.types import StructType
from ..storage.store import Store, TableLocation, discard, open_latest, removing_new_folders
from ..write.commit import WriteResult, commit_files, result_without_writing
from ..write.partitions import MAX_OPEN_PARTITIONS, WrittenFiles
from ..write.preparation import (
    Mode,
    PartitionOverwriteMode,
    SchemaMode,
    TableOptions,
    WritePlan,
    WriteRequest,
    load_existing,
    plan_write,
)
from ..write.router import write_files
from ..write.row_rules import complete_rows
from .optimize.auto_compaction import compact_partitions, compacts

BATCH_BYTES = 64 << 20
"""How much of a batch is written at a time: files end between parts, and text has 32-bit offsets."""


def write_table(
    table: TableLocation,
    data: Any,
    *,
    mode: Mode = "error",
    where: str | None = None,
    partition_overwrite_mode: PartitionOverwriteMode = "static",
    partition_by: str | Sequence[str] | None = None,
    schema_mode: SchemaMode = None,
    variant_columns: Sequence[str] = (),
    shredding: Shredding = "infer",
    configuration: Mapping[str, str] | None = None,
    name: str | None = None,
    description: str | None = None,
    timezone: str | None = None,
    files: FileOptions | None = None,
    json: JsonOptions | None = None,
    commit: CommitOptions | None = None,
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
            of dicts, a list of JSON texts for the one column in `variant_columns`, the path of a file or a
            folder of JSON, CSV or Parquet, or the result of `read_json` or `read_csv`. With a `SparkEngine`
            also a batch DataFrame, which executors write.
        mode: What to do if the table exists, even if another writer creates it during the write: `"error"`,
            the default, raises TableExistsError, `"append"` adds rows, `"overwrite"` replaces all rows or
            those that match `where`, `"ignore"` does nothing.
        where: An SQL predicate that selects the rows that `mode="overwrite"` replaces. It must also be
            true for all rows of the data. A predicate over partition columns only does not read files. None,
            the default, replaces all rows.
        partition_overwrite_mode: `"static"`, the default, or `"dynamic"` to replace the partitions that the
            data has rows for, with `mode="overwrite"` and without `where`; the other partitions stay.
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
            `read_table`. None, the default, is that of the engine of a `Table`, `"UTC"` without one.
        files: How data files are written; see `FileOptions`. None, the default, uses its defaults.
        json: How JSON text becomes Variants, and what happens to text that is not JSON; see `JsonOptions`.
            None, the default, uses the options of `read_json` for its result, and the defaults otherwise.
        commit: The `txn` and the metadata of the commit; see `CommitOptions`. None, the default, sets none.

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
    timezone = timezone_of(table, timezone)
    table_options = TableOptions(
        partition_by,
        schema_mode,
        configuration,
        name,
        description,
        mode,
        where,
        timezone,
        partition_overwrite_mode,
    )
    variants = texts_of("names", "variant_columns", variant_columns)
    engine: Engine | None = getattr(table, "engine", None)
    frame: SourceRows | None = None if engine is None else engine.rows_to_write(data, variants)
    store = open_latest(table)
    executor = LocalExecutor(store) if frame is None else executor_of(table, store, "WRITE", txn_of(commit))
    snapshot = load_existing(store, mode)
    if result := result_without_writing(snapshot, mode, commit):
        executor.forget()
        return result
    known = None if snapshot is None or schema_mode == "overwrite" else snapshot.schema
    source = frame or ArrowRows.of(data, variants, known)
    request = WriteRequest(source.columns, options, table_options)
    write = plan_write(store, snapshot, request, commit)
    with removing_new_folders(store):
        parts = source.write(write, executor)
        written = WrittenFiles.join(part.files for part in parts)
        invalid, paths = sum(part.invalid for part in parts), (part.paths() for part in parts)
        result = executor.commit(lambda: commit_files(write, written, invalid), paths)
    if compacts(write.after, executor.auto_compact):
        compact_partitions(executor, snapshot, written, options.files)
    return result


@dataclass(frozen=True)
class WrittenRows:
    """Files with rows of a source.

    `invalid` counts the values that are not valid JSON. `rejects` is the name of a file of such values, if
    they are written to a folder.
    """

    files: WrittenFiles
    invalid: int
    rejects: str | None = None

    def paths(self) -> Iterator[str]:
        return self.files.paths()

    def compress(self) -> WrittenRows:
        """Return the same files with compressed descriptions."""
        return replace(self, files=self.files.compress())


class SourceRows(Protocol):
    """The rows of a write."""

    @property
    def columns(self) -> StructType:
        """Return the columns of the rows."""

    def write(self, write: WritePlan, executor: Executor) -> Sequence[WrittenRows]:
        """Write the rows by tasks; after an error, remove the new files."""


@dataclass(frozen=True)
class WriteTask:
    """Writes rows to data files of a table.

    `predicate` must be true for all rows. One open partition is enough if the rows are sorted by the table's
    partitions.
    """

    table: TableConfiguration
    options: WriteOptions
    predicate: Expression | None
    max_open_partitions: int = MAX_OPEN_PARTITIONS

    @classmethod
    def of(cls, write: WritePlan) -> WriteTask:
        return cls(write.after, write.options, write.predicate())

    def apply_rules(self, batches: Batches) -> Batches:
        """Complete rows and check them; iterating raises the error for a row that is not allowed."""
        return complete_rows(batches, self.table, self.options, self.predicate)

    def write(
        self, store: Store, name: NameFile, groups: Iterable[Batches], invalid_values: InvalidValueHandler
    ) -> WrittenFiles:
        """Write groups of rows that the rules have passed, each to files of its own."""
        return WrittenFiles.join(
            write_files(
                store,
                rows,
                self.table,
                self.options,
                invalid_values,
                name=name,
                max_open_partitions=self.max_open_partitions,
            )
            for rows in groups
        )


def _write_rows(task: WriteTask, rows: Batches, store: Store, name: NameFile) -> WrittenRows:
    """Write the rows that this process reads, and return the new files."""
    json = task.options.json
    with RejectsFile(json.rejects) as file:
        invalid_values = InvalidValueHandler(json.on_invalid, file.keep)
        files = task.write(store, name, [task.apply_rules(rows)], invalid_values)
        _close(file, store, files)
    return WrittenRows(files, invalid_values.count)


def _close(rejects: RejectsFile, store: Store, files: WrittenFiles) -> None:
    """Close the rejects file; after an error remove the data files, so that rejects are not lost."""
    try:
        rejects.close()
    except BaseException:
        discard(store, files.paths())
        raise


@dataclass(frozen=True)
class ArrowRows:
    """Arrow batches to write, each with its origin if it comes from a file of JSON."""

    columns: StructType
    batches: Batches

    @classmethod
    def of(cls, data: Any, variants: Sequence[str], known: StructType | None) -> ArrowRows:
        """Return the rows of the data of a write; `known` are the columns of the table."""
        data = open_path(data, "the data", variants, known)
        batches: Batches
        if isinstance(data, JsonLines):
            arrow_schema, batches = data.schema, data.batches()
        else:
            arrow_schema, whole = batches_of(data, "the data", variants, known)
            batches = ((part, None) for batch in whole for part in _parts(batch))
        _check_names(arrow_schema, variants)
        return cls(from_arrow(arrow_schema, variants), batches)

    def write(self, write: WritePlan, executor: Executor) -> Sequence[WrittenRows]:
        """Write the rows; after an error, remove the new files."""
        task = partial(_write_rows, WriteTask.of(write), self.batches)
        return list(executor.run("write files", [task]))


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a batch in parts of about `BATCH_BYTES`."""
    rows = max(1, batch.num_rows * BATCH_BYTES // max(batch.nbytes, BATCH_BYTES))
    yield from (batch.slice(first, rows) for first in range(0, max(1, batch.num_rows), rows))


def _check_names(arrow_schema: pa.Schema, variants: Sequence[str]) -> None:
    missing = [name for name in variants if name not in arrow_schema.names]
    if missing:
        raise ValueError(
            f"variant_columns: the data does not have a column {missing[0]!r}; its columns are "
            f"{list_names(arrow_schema.names, missing[0])}"
        )
