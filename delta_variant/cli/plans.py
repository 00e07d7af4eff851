"""The plans of destructive commands: rows and files that a command will remove."""

from __future__ import annotations

from collections.abc import Sequence

from .._text import count, size_text
from ..data_file.options import WriteOptions
from ..errors import TableNotFoundError
from ..execution import Description, Plan
from ..log.commit_context import CommitOptions
from ..log.load import load_snapshot
from ..log.snapshot import Snapshot
from ..operations.log_cleanup import LogCleanupResult
from ..operations.read import read_table
from ..protocol.types import StructType, sql_type
from ..read.rows import count_rows, known_rows
from ..storage.store import open_latest
from ..write.preparation import TableOptions, WriteRequest, load_existing, prepare
from .options import handle

__all__ = [
    "describe",
    "plan_drop",
    "plan_log_cleanup",
    "plan_merge",
    "plan_overwrite",
    "plan_rewrite",
    "plan_write",
]


def describe(table: str, plan: Plan) -> Description:
    """Return the description of a plan, with the table as the user names it."""
    described = plan.describe()
    first, *others = described.sentences
    return Description((f"{table}: {first}", *others), {"table": table, **described.facts}, described.files)


def plan_rewrite(table: str, where: str | None, timezone: str, verb: str) -> Description:
    """Return the plan of a command that deletes, updates or replaces the rows that match."""
    snapshot = load_snapshot(handle(table))
    rows = _matching_rows(snapshot, where, timezone)
    which = "all rows" if where is None else f"rows where {where}"
    return Description(
        (f"{table}: version {snapshot.version}, {verb} {which}: {count(rows, 'row')}",),
        {"table": table, "version": snapshot.version, "where": where, "rows": rows},
    )


def _matching_rows(snapshot: Snapshot, where: str | None, timezone: str) -> int:
    if where is None:
        return count_rows(snapshot, snapshot.files)
    return read_table(snapshot, where=where, timezone=timezone).count()


def plan_overwrite(table: str, where: str | None, timezone: str) -> Description:
    """Return the plan of a write that replaces rows, which may create the table."""
    try:
        return plan_rewrite(table, where, timezone, "replace")
    except TableNotFoundError:
        facts = {"table": table, "version": None, "where": where, "rows": 0}
        return Description((f"{table}: create the table; there are no rows to replace",), facts)


def plan_write(table: str, columns: StructType, options: WriteOptions, request: TableOptions) -> Description:
    """Return the plan of a write of data with `columns`, which the write would accept.

    It has the columns of a table that the write creates or changes. The rows are not read.
    """
    store = open_latest(handle(table))
    snapshot = load_existing(store, request.mode)
    if snapshot is not None and request.mode == "ignore":
        nothing = f"{table}: version {snapshot.version}, write nothing because the table exists"
        return Description((nothing,), {"table": table, "version": snapshot.version})
    after = prepare(store, snapshot, WriteRequest(columns, options, request), CommitOptions()).after
    if request.overwrite:
        plan = plan_overwrite(table, request.where, request.timezone)
    else:
        version = None if snapshot is None else snapshot.version
        action = "create the table" if version is None else f"version {version}, append rows"
        plan = Description((f"{table}: {action}",), {"table": table, "version": version})
    if snapshot is not None and after.metadata == snapshot.metadata:
        return plan
    fields = [{"name": field.name, "type": sql_type(field.type)} for field in after.schema.fields]
    partitions = after.partition_columns
    lines = [f"  {field['name']} {field['type']}" for field in fields]
    lines += [f"  partitioned by {', '.join(partitions)}"] if partitions else []
    facts = {"columns": fields, "partition_columns": partitions}
    return Description((*plan.sentences, *lines), {**plan.facts, **facts})


def plan_merge(table: str, source: Sequence[str], clauses: Sequence[str]) -> Description:
    """Return the plan of a merge: its source, its clauses, and the size of the table.

    Which rows match is known only after both sides are read. The statistics give the rows of the table.
    """
    snapshot = load_snapshot(handle(table))
    rows = known_rows(snapshot)
    size = count(snapshot.num_files, "file")
    size = size if rows is None else f"{count(rows, 'row')} in {size}"
    heading = f"{table}: version {snapshot.version}, {size}: merge {', '.join(source)}"
    return Description(
        (heading, *(f"  {clause}" for clause in clauses)),
        {
            "table": table,
            "version": snapshot.version,
            "rows": rows,
            "files": snapshot.num_files,
            "source": list(source),
            "clauses": list(clauses),
        },
    )


def plan_log_cleanup(table: str, found: LogCleanupResult) -> Description:
    """Return the plan of a cleanup of the log: the files that it deletes."""
    files = f"{count(len(found.files), 'file')} of the log, {size_text(found.bytes)}"
    heading = f"{table}: delete {files}; versions before {found.first_version} can no longer be loaded"
    return Description(
        (heading if found.files else f"{table}: no file of the log has expired",),
        {
            "table": table,
            "first_version": found.first_version,
            "files": list(found.files),
            "bytes": found.bytes,
        },
        found.files,
    )


def plan_drop(table: str, column: str) -> Description:
    """Return the plan of dropping a column."""
    snapshot = load_snapshot(handle(table))
    return Description(
        (f"{table}: version {snapshot.version}, drop the column {column!r} with its values",),
        {"table": table, "version": snapshot.version, "column": column},
    )
