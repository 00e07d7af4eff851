"""Optimize a table: compact small files, shred Variants again, and sort rows."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import zip_longest
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ..._arrow import total
from ..._checks import one_or_more, options_of
from ..._progress import advance, begin
from ..._text import count
from ..._threads import Threads
from ...data_file.options import FileOptions, WriteOptions
from ...data_file.writer import WrittenFile
from ...errors import ExpressionError, printable
from ...execution import Executor, NameFile, executor_of, new_name, timezone_of
from ...expressions.parse import parse as parse_expression
from ...expressions.tree import Expression, output_type
from ...expressions.tree import describe as describe_expression
from ...expressions.types import kind_of
from ...log.catalog import check_maintenance
from ...log.commit_context import CommitOptions, CommitResult, without_txn
from ...log.deletion_vectors import count_vectors
from ...log.load import load_latest
from ...log.snapshot import Snapshot, TableVersion, strip_files
from ...read.file_reader import FileEntry, files_of
from ...read.log_statistics import is_of_partitions, partition_matches
from ...read.missing_paths import warn_of_missing_paths
from ...read.plan import FilePlan
from ...read.row_tracking import with_row_ids
from ...read.scope import Scope
from ...storage.store import Store, TableLocation, discard
from ...write.concurrency import MovedRows
from ...write.partitions import WrittenFiles, infer_shared_shredding
from ...write.preparation import restrict_to_table
from ...write.rewrite import RewrittenFiles, commit_rewrite, locate_malformed
from ...write.router import ResidualFiles, write_files
from ...write.stored_rows import StoredRows
from .layout import Bin, FileGroup, LeafPath, is_large, plan_bins, plan_group, read_or_copy_files, read_rows
from .sorting import PLACE_BITS, SortedRun, SortOrder, orders_on_curve, sort_into_runs

Rows: TypeAlias = "pa.RecordBatch | StoredRows"

READ_COLUMNS = [field.name for field in fields(FileEntry)]
"""The columns of `Snapshot.files` that tasks need."""

WHOLE_PARTITION = 1 << 62
"""A size that all files of a partition have together at most."""

WRITE_GROUPS = "rewrite groups of files"

FILES_AT_ONCE = 2
"""The number of files that are read concurrently. The columns of one file are decoded sequentially."""


@dataclass(frozen=True, repr=False)
class OptimizeResult(CommitResult):
    """The result or the plan of an optimization.

    Attributes:
        version: The committed version, None for a dry run and if there was nothing to do.
        metrics: The metrics of the commit, empty without a commit.
        groups: The groups of files that are rewritten together.
        files: The new files, empty without a commit.

    Example:
        >>> import delta_variant as dv
        >>> _ = dv.write_table("clicks", [{"id": 1}])
        >>> _ = dv.write_table("clicks", [{"id": 2}], mode="append")
        >>> result = dv.optimize("clicks")
        >>> result.version, result.files_before, len(result.files)
        (2, 2, 1)
    """

    groups: tuple[FileGroup, ...]
    files: Sequence[WrittenFile] = ()

    @property
    def files_before(self) -> int:
        """Return the number of rewritten files."""
        return sum(len(group.paths) for group in self.groups)

    @property
    def rows_purged(self) -> int:
        """Return the number of deleted rows in the rewritten files, which the new files do not have."""
        return sum(group.rows_purged for group in self.groups)

    @property
    def bytes_before(self) -> int:
        """Return the size of the rewritten files in bytes."""
        return sum(group.bytes for group in self.groups)

    @property
    def bytes_after(self) -> int:
        """Return the size of the new files in bytes, estimated for a dry run."""
        if self.files:
            return int(self.metrics["numAddedBytes"])
        return sum(group.bytes_estimated for group in self.groups)

    def __str__(self) -> str:
        return "\n".join(map(printable, self._lines()))

    def _lines(self) -> Iterator[str]:
        if not self.groups:
            yield "nothing to do: no small files and no files with many deleted rows"
            return
        about = "" if self.files else "about "
        estimated = sum(group.files_estimated for group in self.groups)
        yield f"files   {self.files_before:,} become {len(self.files) or f'about {estimated:,}'}"
        yield f"bytes   {self.bytes_before:,} become {about}{self.bytes_after:,}"
        if self.rows_purged:
            yield f"purged  {count(self.rows_purged, 'deleted row')}"
        for name in ("gained", "dropped"):
            leaves = sorted({leaf for group in self.groups for leaf in getattr(group, name)}, key=str)
            yield from (f"{name:8}{_describe(leaf)}" for leaf in leaves)


def _describe(leaf: LeafPath) -> str:
    steps = "".join("[]" if step is None else f".{step}" for step in leaf.path).removeprefix(".")
    return f"{leaf.column}:{steps}  {leaf.type}" if steps else f"{leaf.column}  {leaf.type}"


def optimize(
    table: TableLocation,
    where: str | None = None,
    *,
    sort_by: str | Sequence[str] | None = None,
    z_order_by: str | Sequence[str] | None = None,
    reshred: bool = False,
    purge: bool = False,
    timezone: str | None = None,
    dry_run: bool = False,
    files: FileOptions | None = None,
    commit: CommitOptions | None = None,
) -> OptimizeResult:
    """Compact small files, and rewrite files with many deleted rows without those, as one commit.

    Rows do not change, so the change data feed has no changes (`dataChange=false`). The new files of a group
    have one shredding schema: that of the old files if all have the same one, otherwise a schema inferred
    from rows of all of them. With `sort_by`, it is inferred for each new file from the rows of this file.
    Variants that have the schema already are copied. Row groups of at least 4 MiB or 65,536 rows that this
    library wrote with the schema are copied as they are encoded.

    Args:
        table: A path, a URI, a `Table` or a `deltalake.DeltaTable`.
        where: SQL text over partition columns: only files of matching partitions are rewritten. None selects
            all partitions.
        sort_by: SQL text of a sort key, or a list of keys, over columns and Variant paths, such as
            `event:ts::timestamp`. All files are rewritten, and the rows of each partition are sorted over all
            its files, so that a query for few values reads few files. The keys are held in memory, and the
            rows in a temporary folder.
        z_order_by: Sort keys as in `sort_by`, but none comes first: a file has rows that are close in all
            keys, so that a query for few values of any key skips files. The rows are sorted along a Hilbert
            curve. It is ZORDER BY of Delta on Spark, and excludes `sort_by`.
        reshred: Infer the shredding schemas again, and also rewrite files whose schema differs. Small files
            get more columns than from a write, if that makes them smaller; see `infer_shredding_schema`.
        purge: Rewrite all files that have a deletion vector, so that readers of bare files see no deleted
            row, and no others, unless a sort key or `reshred` selects them: REORG TABLE … APPLY (PURGE) of
            Delta on Spark. By default, a file is rewritten if more than 5 % of its rows are deleted.
        timezone: The time zone of local times in the SQL text, as in `read_table`. None, the default, is that
            of the engine of a `Table`, `"UTC"` without one.
        dry_run: Only plan, and commit nothing. The size of the new files is estimated from a sample.
        files: How new files are written; see `FileOptions`. None, the default, uses its defaults.
        commit: The metadata of the commit; see `CommitOptions`. None, the default, sets none.

    Returns:
        The groups of rewritten files, their gained and dropped shredded paths, and the new files.

    Raises:
        TableNotFoundError: There is no Delta log at `table`.
        ExpressionError: SQL text cannot be parsed, `where` uses other columns than partition columns, or a
            sort key has no order.
        UnsupportedFeatureError: This version cannot rewrite files of the table.
        CommitConflictError: A concurrent commit removed one of the files.

    Example:
        >>> import delta_variant as dv, pyarrow as pa
        >>> table = "events"
        >>> for number in range(2):
        ...     _ = dv.write_table(table, pa.table({"id": [number]}), mode="append")
        >>> result = dv.optimize(table)
        >>> result.version, result.files_before, len(result.files)
        (2, 2, 1)
    """
    plan = plan_optimize(
        load_latest(table).in_timezone(timezone_of(table, timezone)),
        where,
        sort_by=sort_by,
        z_order_by=z_order_by,
        reshred=reshred,
        purge=purge,
        files=files,
        commit=commit,
    )
    executor = executor_of(table, plan.snapshot.store, plan.operation)
    return run_optimize(plan, executor, dry_run=dry_run)


def run_optimize(plan: OptimizePlan, executor: Executor, *, dry_run: bool = False) -> OptimizeResult:
    """Rewrite the files of a plan by tasks, and commit them unless it is a dry run."""
    warn_of_missing_paths(plan.snapshot, plan.snapshot.file_set, plan.keys)
    groups = _plan_groups(plan, executor)
    if dry_run or not groups:
        return OptimizeResult(None, tuple(groups))
    done, files, moved = _write(plan, groups, executor)
    new = WrittenFiles.join(files)
    return executor.commit(lambda: _commit_groups(plan, done, new, moved), (each.paths() for each in files))


def _plan_groups(plan: OptimizePlan, executor: Executor) -> list[FileGroup]:
    """Return the groups of files to rewrite, in the order of the bins."""
    begin("planning", files=len(plan.bins))
    bins = [replace(each, files=each.files.select(READ_COLUMNS)) for each in plan.bins]
    shares = executor.split(bins, _size_of)
    # Only an optimize returns the sizes.
    estimates, version = not plan.reason, strip_files(plan.snapshot)
    tasks = (partial(_plan_some, version, tuple(share), plan.options, estimates) for share in shares)
    groups = [group for found in executor.run("plan groups of files", tasks) for group in found]
    return [
        replace(group, files=each.files)
        for each, group in zip(plan.bins, groups, strict=True)
        if group is not None
    ]


def _size_of(files: Bin | FileGroup) -> int:
    return total(files.files["size"])


def _plan_some(
    version: TableVersion,
    bins: Sequence[Bin],
    options: WriteOptions,
    estimates: bool,
    store: Store,
    name: NameFile,
) -> list[FileGroup | None]:
    """Return how each bin is rewritten, None for one whose files stay."""
    version, groups = replace(version, store=store), []
    for each in bins:
        with locate_malformed(version, files_of(each.files)):
            groups.append(plan_group(version, each, options, estimates=estimates))
        advance(files=1)
    return groups


@dataclass(frozen=True)
class OptimizePlan:
    """The files that an optimization can rewrite, and how.

    `keys` are the bound expressions of `sort_by`, along a curve if `is_z_order`. `reason` are further
    parameters in the commit. A REORG only removes deletion vectors.
    """

    snapshot: Snapshot
    bins: tuple[Bin, ...]
    options: WriteOptions
    keys: tuple[Expression, ...]
    sort_by: tuple[str, ...]
    is_z_order: bool
    where: str | None
    commit: CommitOptions
    reason: Mapping[str, Any] = field(default_factory=dict)
    operation: Literal["OPTIMIZE", "REORG"] = "OPTIMIZE"


def plan_optimize(
    snapshot: Snapshot,
    where: str | None,
    *,
    sort_by: str | Sequence[str] | None,
    z_order_by: str | Sequence[str] | None,
    reshred: bool,
    purge: bool,
    files: FileOptions | None,
    commit: CommitOptions | None,
) -> OptimizePlan:
    """Return the plan of an optimization without opening data files. Raises the errors of `optimize`."""
    options = WriteOptions(files=options_of("files", files, FileOptions))
    commit = without_txn(commit, "optimize")
    scope = Scope.of(snapshot.configuration)
    texts = () if sort_by is None else one_or_more("expressions", "sort_by", sort_by)
    if z_order_by is not None:
        if texts:
            raise ExpressionError("sort_by and z_order_by exclude each other")
        texts = one_or_more("expressions", "z_order_by", z_order_by)
        if len(texts) > PLACE_BITS:
            raise ExpressionError(f"z_order_by: expected at most {PLACE_BITS} keys, got {len(texts)}")
    keys = _sort_keys(scope, texts)
    selected = _select_files(snapshot, scope.predicate(where), where)
    check_maintenance("optimize", snapshot.uri, snapshot.protocol)
    snapshot.configuration.check_may_rewrite(removes_rows=False)
    target = WHOLE_PARTITION if keys else options.files.target_file_size
    is_reorg = purge and not keys and not reshred
    if is_reorg:
        selected = selected.filter(pc.is_valid(selected["deletion_vector"]))
    bins = plan_bins(selected, target, everything=bool(keys), reshred=reshred, purge=purge)
    return OptimizePlan(
        snapshot,
        tuple(bins),
        restrict_to_table(options, snapshot.configuration),
        keys,
        texts,
        z_order_by is not None,
        where,
        commit,
        operation="REORG" if is_reorg else "OPTIMIZE",
    )


def plan_compaction(
    snapshot: Snapshot,
    chosen: pa.Table,
    files: FileOptions,
    *,
    reason: Mapping[str, Any],
    everything: bool = False,
    purge: bool = False,
) -> OptimizePlan:
    """Return the plan of a compaction of some files of a snapshot, as a part of another operation.

    With `everything`, all files are rewritten, with `purge` all that have a deletion vector. `reason` are
    parameters in the commit. Raises UnsupportedFeatureError if rows of the table must not be moved.
    """
    snapshot.configuration.check_may_rewrite(removes_rows=False)
    bins = plan_bins(chosen, files.target_file_size, everything=everything, reshred=False, purge=purge)
    options = restrict_to_table(WriteOptions(files=files), snapshot.configuration)
    return OptimizePlan(snapshot, tuple(bins), options, (), (), False, None, CommitOptions(), reason)


def write_rows(
    version: TableVersion,
    batches: Iterable[pa.RecordBatch | StoredRows],
    options: WriteOptions,
    name: Callable[[int], str] = new_name,
    residual: ResidualFiles | None = None,
) -> WrittenFiles:
    """Write rows of a table, as `read_rows` or `read_or_copy_files` yields them, to new files.

    `name` returns the name of each file by its number. Residual rows go to `residual`, or to files among
    those that are returned. After an error, all new files are deleted.
    """
    table = with_row_ids(version.configuration)
    return write_files(version.store, batches, table, options, name=name, residual=residual)


def _commit_groups(
    work: OptimizePlan, groups: Sequence[FileGroup], files: WrittenFiles, moved: Sequence[MovedRows]
) -> OptimizeResult:
    """Replace groups of files by new files; on conflict, delete those and raise CommitConflictError."""
    removed = pa.concat_tables(group.files for group in groups)
    rows = sum(group.rows for group in groups)
    committed = commit_rewrite(
        work.snapshot,
        RewrittenFiles(FilePlan.whole(removed), removed, files, 0, rows, moved=moved),
        predicate=None,
        data_change=False,
        operation=work.operation,
        parameters={
            "predicate": [] if work.where is None else [work.where],
            **_order_parameters(work),
            **work.reason,
        },
        metrics={
            "numRemovedBytes": sum(group.bytes for group in groups),
            "numDeletionVectorsRemoved": count_vectors(removed),
        },
        commit=work.commit,
    )
    return OptimizeResult(committed.version, tuple(groups), files.files, metrics=committed.metrics)


def _order_parameters(work: OptimizePlan) -> Mapping[str, Any]:
    if work.operation == "REORG":
        return {"applyPurge": True}
    return {"zOrderBy" if work.is_z_order else "sortBy": list(work.sort_by)}


def _sort_keys(scope: Scope, texts: Sequence[str]) -> tuple[Expression, ...]:
    keys = tuple(scope.bind(parse_expression(text)) for text in texts)
    for key in keys:
        arrow_type = output_type(key)
        if arrow_type is None or kind_of(arrow_type) == "nested":
            raise ExpressionError(
                f"cannot sort by `{describe_expression(key)}` because its values have no order: cast it, as "
                "in event:id::bigint"
            )
    return keys


def _select_files(snapshot: Snapshot, predicate: Expression | None, where: str | None) -> pa.Table:
    if predicate is None:
        return snapshot.files
    if not is_of_partitions(snapshot.configuration, predicate):
        raise ExpressionError(
            f"where: expected only partition columns, got `{where}`: optimize rewrites whole partitions",
            table=snapshot.uri,
        )
    return snapshot.files.filter(partition_matches(snapshot.configuration, snapshot.files, predicate))


def _write(
    plan: OptimizePlan, groups: Sequence[FileGroup], executor: Executor
) -> tuple[list[FileGroup], list[WrittenFiles], list[MovedRows]]:
    """Write new files; return the groups as they were written, the files of each task, and moved rows."""
    if not plan.keys:
        files, rows = sum(len(group.paths) for group in groups), sum(group.rows for group in groups)
        begin("rewriting", files=files, rows=rows)
    parts = [replace(group, files=group.files.select(READ_COLUMNS)) for group in groups]
    version = strip_files(plan.snapshot)
    orders = _sort_orders(plan, version, parts, executor)
    whole = GroupsTask(version, parts, plan.options, orders)
    if orders:
        results = executor.run_whole(WRITE_GROUPS, whole)
    else:
        shares = executor.split(parts, _size_of)
        tasks = (replace(whole, groups=tuple(share)) for share in shares)
        results = list(executor.run(WRITE_GROUPS, tasks))
    used = [options for result in results for options in result.options]
    done = [
        group.written_with(plan.snapshot, options) if options else group
        for group, options in zip_longest(groups, used)
    ]
    written = [result.files for result in results]
    if len(written) > 1:
        written = _merge_residual_files(plan, written, executor)
    return done, written, [moved for result in results for moved in result.moved]


def _sort_orders(
    plan: OptimizePlan, version: TableVersion, groups: Sequence[FileGroup], executor: Executor
) -> Sequence[SortOrder]:
    """Return the order of the rows of each group, or none if they are not sorted."""
    if not plan.keys:
        return ()
    # The curve over one key is its order.
    if plan.is_z_order and len(plan.keys) > 1:
        return orders_on_curve(version, groups, plan.keys, executor)
    return [SortOrder(plan.keys)] * len(groups)


@dataclass(frozen=True)
class WrittenGroups:
    """The new files of groups, and the options of the new files of each group, if they are known.

    `moved` are the groups whose rows keep their order.
    """

    files: WrittenFiles
    options: Sequence[Sequence[WriteOptions]] = ()
    moved: Sequence[MovedRows] = ()

    def paths(self) -> Iterator[str]:
        return self.files.paths()

    def compress(self) -> WrittenGroups:
        """Return the same files with compressed descriptions."""
        return replace(self, files=self.files.compress())


@dataclass(frozen=True)
class GroupsTask:
    """Writes the new files of groups.

    The rows of each group are sorted by one of `orders`, unless there are none.
    """

    version: TableVersion
    groups: Sequence[FileGroup]
    options: WriteOptions
    orders: Sequence[SortOrder]

    def __call__(self, store: Store, name: NameFile) -> WrittenGroups:
        """Return the new files; after an error, remove them."""
        version, written = replace(self.version, store=store), list[WrittenFiles]()
        used: list[list[WriteOptions]] = []
        moved: list[MovedRows] = []
        # The residual rows of all groups of a partition, so that they are in few files.
        residual = ResidualFiles(store, with_row_ids(version.configuration), self.options, name)
        try:
            for group, order in zip_longest(self.groups, self.orders):
                used.append([])
                separated = residual.num_rows
                with locate_malformed(version, files_of(group.files)):
                    for options, batches in _rows_of_new_files(version, group, order):
                        written.append(write_rows(version, _count_rows(batches), options, name, residual))
                        used[-1].append(options)
                if order is None and residual.num_rows == separated:
                    moved.append(MovedRows(group.paths, tuple(written[-1].paths())))
                advance(files=len(group.paths))
            return WrittenGroups(WrittenFiles.join([*written, residual.close()]), used, moved)
        except BaseException:
            discard(store, WrittenFiles.join(written).paths())
            residual.discard()
            raise


def _merge_residual_files(
    plan: OptimizePlan, written: Sequence[WrittenFiles], executor: Executor
) -> list[WrittenFiles]:
    """Return files of tasks with one residual file for each partition, and not one for each task."""
    target = plan.options.files.target_file_size
    residual: defaultdict[str, list[FileEntry]] = defaultdict(list)
    for file in (file for each in written for file in each.entries()):
        if file.is_residual and not is_large(file.size or 0, target):
            # All of its rows have their row ids, if the table tracks them.
            entry = replace(file, base_row_id=0, default_row_commit_version=0)
            residual[repr(sorted(file.partition_values.items()))].append(entry)
    parts = [files for files in residual.values() if len(files) > 1]
    options, version = replace(plan.options, is_residual=True), strip_files(plan.snapshot)
    tasks = (partial(_combine_residual, version, tuple(files), options) for files in parts)
    new = list(executor.run("combine files of residual rows", tasks))
    replaced = {file.path for files in parts for file in files}
    discard(plan.snapshot.store, replaced)
    return [*(files.without(replaced) for files in written), *new]


def _combine_residual(
    version: TableVersion, files: Sequence[FileEntry], options: WriteOptions, store: Store, name: NameFile
) -> WrittenFiles:
    """Write the rows of new residual files of a partition to one file."""
    version = replace(version, store=store)
    return write_rows(version, (batch for batch, _ in read_rows(version, files, (), options)), options, name)


def _count_rows(batches: Iterable[Rows]) -> Iterator[Rows]:
    """Yield rows, and report their number."""
    for batch in batches:
        advance(rows=batch.num_rows)
        yield batch


def _rows_of_new_files(
    version: TableVersion, group: FileGroup, order: SortOrder | None
) -> Iterator[tuple[WriteOptions, Iterator[Rows]]]:
    """Yield options and rows of each new file, or those of all files at once without an order."""
    if order is None:
        read = read_or_copy_files(version, files_of(group.files), group.options)
        return iter([(group.options, _read_ahead(read))])
    # No reference to a run is kept, so that one at a time is in memory.
    return map(partial(_sorted_file, version, group), sort_into_runs(version, group, order))


def _sorted_file(
    version: TableVersion, group: FileGroup, run: SortedRun
) -> tuple[WriteOptions, Iterator[Rows]]:
    """Return options and rows of a new file, which is shredded by its rows: they may be of one kind."""
    options = group.options
    if group.is_inferred:
        options = replace(options, shredding="infer")
        options = infer_shared_shredding(
            options, run.sample(), with_row_ids(version.configuration), run.num_rows
        )
    return options, run.rows()


def _read_ahead(files: Iterable[Iterator[Rows]]) -> Iterator[Rows]:
    """Yield the rows of files in order, and read the next file while one is written."""
    with Threads(FILES_AT_ONCE) as threads:
        begun: deque[tuple[Iterator[Rows], Future[Rows | None]]] = deque()
        for rows in files:
            begun.append((rows, threads.submit(next, rows, None)))
            if len(begun) == FILES_AT_ONCE:
                yield from _drain(threads, *begun.popleft())
        while begun:
            yield from _drain(threads, *begun.popleft())


def _drain(threads: Threads, rows: Iterator[Rows], coming: Future[Rows | None]) -> Iterator[Rows]:
    """Yield the rows of a file, starting with the one that `coming` returns."""
    while (found := coming.result()) is not None:
        coming = threads.submit(next, rows, None)
        yield found
