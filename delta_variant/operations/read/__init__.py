"""Reading a table: columns and paths by SQL text; what provably holds no wanted row is not read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, overload

import pyarrow as pa

from ..._options import OnConflict
from ...log.snapshot import Snapshot
from ...log.timestamps import Timestamp
from ...scan.plan import plan_files
from ...scan.reader import files_of
from ...storage.store import TableLocation
from ...variant.moments import UTC
from .explanation import Explanation, FileReport
from .explanation import explain as _explain
from .query import Query
from .rows import load_readable, read_files

__all__ = ["read_table"]


@overload
def read_table(
    table: TableLocation | Snapshot,
    *,
    columns: Mapping[str, str] | Sequence[str] | None = None,
    where: str | None = None,
    version: int | None = None,
    timestamp: Timestamp | None = None,
    timezone: str = UTC,
    on_conflict: OnConflict = "error",
    storage_options: Mapping[str, str] | None = None,
    explain: Literal[False] = False,
) -> pa.RecordBatchReader: ...


@overload
def read_table(
    table: TableLocation | Snapshot,
    *,
    columns: Mapping[str, str] | Sequence[str] | None = None,
    where: str | None = None,
    version: int | None = None,
    timestamp: Timestamp | None = None,
    timezone: str = UTC,
    on_conflict: OnConflict = "error",
    storage_options: Mapping[str, str] | None = None,
    explain: Literal[True],
) -> Explanation: ...


def read_table(
    table: TableLocation | Snapshot,
    *,
    columns: Mapping[str, str] | Sequence[str] | None = None,
    where: str | None = None,
    version: int | None = None,
    timestamp: Timestamp | None = None,
    timezone: str = UTC,
    on_conflict: OnConflict = "error",
    storage_options: Mapping[str, str] | None = None,
    explain: bool = False,
) -> pa.RecordBatchReader | Explanation:
    """Return the rows of a table as a stream of Arrow batches, or those that it had earlier.

    `version` or `timestamp` give the table as it was then; see `load_snapshot`. `columns` are expressions in
    SQL text, by output name or as a sequence, over ordinary columns and Variant paths
    (`event:user.id::bigint`); None is every column, and a Variant column comes as `struct<metadata, value>`
    marked `arrow.parquet.variant`. `where` keeps the rows for which it is true. Casts are Spark's: a value
    that cannot be cast is an error, which `try_cast` and `try_variant_get` make null; of rows that `where`
    leaves out, and of which `and` or `or` know enough, nothing is cast. Dates, and timestamps and text
    without time zone, are local times in `timezone` when they are cast to or from timestamps: a region such
    as `Europe/Berlin` or an offset such as `+02:00`. Files, row groups and pages that provably hold no such
    row are skipped, and so are the errors that they hold. With `explain` the rows are read and counted, and
    what was read and skipped is returned instead of them.

    Raises ValueError for an unknown time zone, ExpressionError for SQL that is not understood,
    UnsupportedFeatureError, ProtocolError and SchemaError for tables that this version cannot read; while the
    stream is read, DataFileError, MalformedVariantError, ConflictingValueError (unless `on_conflict="typed"`)
    and CastError, which name file and row.
    """
    snapshot = load_readable(table, version, storage_options, timestamp).in_timezone(timezone)
    query = Query.of(snapshot, columns, where)
    plan = plan_files(snapshot, query.predicate)
    reports: list[FileReport] = []
    batches = read_files(snapshot, query, files_of(plan.files), plan.pruning_predicate, on_conflict, reports)
    if not explain:
        return pa.RecordBatchReader.from_batches(query.schema, batches)
    rows = sum(batch.num_rows for batch in batches)
    return _explain(plan, snapshot.num_files, snapshot.num_bytes, reports, rows)
