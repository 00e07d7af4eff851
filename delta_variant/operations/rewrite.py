"""Rewrite the files that have changed rows by tasks, for deletes, updates and merges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, Literal

from .._arrow import total
from .._progress import begin
from ..data_file.options import FileOptions, WriteOptions
from ..execution import Description, Executor, NameFile, Task, executor_of
from ..expressions.tree import Expression
from ..log.commit_context import CommitOptions, txn_of
from ..log.snapshot import Snapshot, TableVersion, strip_files
from ..protocol.table_configuration import TableConfiguration
from ..read.file_reader import FileEntry, files_of
from ..read.log_statistics import is_of_partitions
from ..read.missing_paths import warn_of_missing_paths
from ..read.plan import FilePlan, plan_files
from ..read.predicate import PruningPredicate
from ..read.scan_rows import describe_matches
from ..storage.store import Store
from ..write.copy_on_write import remove_files, rewrite_files
from ..write.partitions import WrittenFiles
from ..write.rewrite import (
    ChangeType,
    RewriteResult,
    RewrittenFiles,
    RewrittenPart,
    RowChange,
    combine_parts,
    commit_rewrite,
    skip_repeated,
    write_whole_files,
)
from .optimize.auto_compaction import compact_partitions, compacts

REWRITE = "rewrite files with matching rows"
"""What the tasks of a change of rows do."""


@dataclass(frozen=True)
class RewritePlan:
    """A change of the rows of a table for which a bound predicate is true, None for all rows.

    `change` returns the change for the table, and can be pickled.
    """

    snapshot: Snapshot
    predicate: Expression | None
    change: Callable[[TableConfiguration], RowChange]
    operation: Literal["DELETE", "UPDATE"]
    parameters: Mapping[str, Any]
    options: WriteOptions
    commit: CommitOptions

    def describe(self) -> Description:
        """Return which rows the operation changes, and how many they are."""
        (where,) = self.parameters.get("predicate") or (None,)
        return describe_matches(self.snapshot, self.operation.lower(), where, self.predicate)


def run_rewrite(plan: RewritePlan, table: Any) -> RewriteResult:
    """Rewrite the files with changed rows, and commit them; warn of paths that no file has."""
    executor = executor_of(table, plan.snapshot.store, plan.operation, txn_of(plan.commit))
    if result := skip_repeated(plan.snapshot, plan.commit):
        executor.forget()
        return result
    if plan.operation == "DELETE" and is_of_partitions(plan.snapshot.configuration, plan.predicate):
        result = commit_plan(plan, remove_files(plan.snapshot, plan.predicate))
    else:
        candidates = plan_files(plan.snapshot, plan.predicate)
        begin("rewriting", files=candidates.files.num_rows)
        version, pruning = strip_files(plan.snapshot), candidates.pruning_predicate
        tasks = (
            partial(rewrite_some, version, files, pruning, plan.change, plan.options)
            for files in split_files(executor, candidates.files)
        )
        parts = list(executor.run(REWRITE, tasks))
        files = plan.options.files
        result = finish_rewrite(
            executor, plan.snapshot, candidates, parts, (), files, partial(commit_plan, plan)
        )
    if plan.predicate is not None and not result.rows_deleted and not result.rows_updated:
        warn_of_missing_paths(plan.snapshot, plan.snapshot.file_set, [plan.predicate])
    return result


def split_files(executor: Executor, files: Any) -> Iterator[Iterable[FileEntry]]:
    """Yield the files of each task, rows of `Snapshot.files`."""
    shares = executor.split(files_of(files), lambda file: file.size or 0, total=total(files["size"]))
    return iter(shares) if files.num_rows else iter(())


def rewrite_some(
    version: TableVersion,
    files: Iterable[FileEntry],
    pruning_predicate: PruningPredicate,
    change_of: Callable[[TableConfiguration], RowChange],
    options: WriteOptions,
    store: Store,
    name: NameFile,
) -> RewrittenPart:
    """Rewrite those of some files that contain changed rows; after an error, remove the new files."""
    version, state = replace(version, store=store), version.configuration
    change = change_of(state)
    return rewrite_files(version, files, pruning_predicate, lambda _: change, state, options, name)


def write_changes(
    version: TableVersion, files: Sequence[FileEntry], change: ChangeType, store: Store, name: NameFile
) -> WrittenFiles:
    """Write the rows of whole files to change data files."""
    return write_whole_files(replace(version, store=store), version.configuration, files, change, name)


def finish_rewrite(
    executor: Executor,
    snapshot: Snapshot,
    candidates: FilePlan,
    parts: Sequence[RewrittenPart],
    inserted: Sequence[WrittenFiles],
    files: FileOptions,
    commit: Callable[[RewrittenFiles], RewriteResult],
) -> RewriteResult:
    """Commit the files of tasks, and compact partitions if the executor or the table asks for it.

    If tasks wrote change data, the files of which all rows are new or deleted get change data, too.
    """
    executor.report(candidates.counts)
    changes: list[WrittenFiles] = []
    if any(part.changes for part in parts):
        emptied = [file for part in parts for file in part.emptied]
        new = [file for written in inserted for file in written.entries()]
        tasks = _change_tasks(executor, snapshot, emptied, new)
        changes = list(executor.run("write change data", tasks))
    rewritten = combine_parts(candidates, parts, inserted=inserted, changes=changes)
    written: Iterator[RewrittenPart | WrittenFiles] = chain(parts, inserted, changes)
    result = executor.commit(lambda: commit(rewritten), (each.paths() for each in written))
    if result.version is not None and compacts(snapshot.configuration, executor.auto_compact):
        compact_partitions(executor, snapshot, rewritten.files, files)
    return result


def _change_tasks(
    executor: Executor, snapshot: Snapshot, emptied: Sequence[FileEntry], new: Sequence[FileEntry]
) -> Iterator[Task[WrittenFiles]]:
    version = strip_files(snapshot)
    kinds: list[tuple[ChangeType, Sequence[FileEntry]]] = [("delete", emptied), ("insert", new)]
    for change, files in kinds:
        for share in executor.split(files, lambda file: file.size or 0) if files else ():
            yield partial(write_changes, version, tuple(share), change)


def commit_plan(plan: RewritePlan, rewritten: RewrittenFiles) -> RewriteResult:
    is_delete = plan.operation == "DELETE"
    changed = "numDeletedRows" if is_delete else "numUpdatedRows"
    committed = commit_rewrite(
        plan.snapshot,
        rewritten,
        predicate=plan.predicate,
        changes_selected=True,
        operation=plan.operation,
        parameters=plan.parameters,
        metrics={changed: rewritten.changed, "numCopiedRows": rewritten.copied},
        commit=plan.commit,
    )
    return RewriteResult(
        committed.version,
        metrics=committed.metrics,
        rows_deleted=rewritten.changed if is_delete else 0,
        rows_updated=0 if is_delete else rewritten.changed,
        rows_copied=rewritten.copied,
        files_removed=rewritten.files_removed,
        files=rewritten.files.files,
    )
