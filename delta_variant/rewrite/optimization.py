"""Optimizing: small files become one, Variants are shredded by what they have become, and rows are sorted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from delta_variant import expression, log, skipping
from delta_variant.data_file import WriteOptions, WrittenFile
from delta_variant.errors import ExpressionError
from delta_variant.expression import Expression
from delta_variant.snapshot import Snapshot
from delta_variant.store import TableLocation
from delta_variant.table_files import (
    Faults,
    FilePlan,
    PartitionFile,
    Rewritten,
    RowTracking,
    Scope,
    Target,
    allowed,
    discard,
    is_of_partitions,
    tracked,
    write_files,
)
from delta_variant.variant import Numeric

from .layout import FileGroup, LeafPath, chosen_files, group_files, rows_of
from .permission import check_may_rewrite
from .result import commit_rewritten

__all__ = ["Optimization", "optimize"]

# The stubs of pyarrow do not narrow arrays by their types.
Array: TypeAlias = Any


@dataclass(frozen=True)
class Optimization:
    """What an optimization does: the groups of files that are written anew, and the files in their place.

    `version` is None and `files` are empty for a dry run, and where there is nothing to do.
    """

    version: int | None
    groups: tuple[FileGroup, ...]
    files: tuple[WrittenFile, ...] = field(default=())

    @property
    def files_before(self) -> int:
        """Return how many files are written anew."""
        return sum(len(group.paths) for group in self.groups)

    @property
    def bytes_before(self) -> int:
        """Return what these take."""
        return sum(group.bytes for group in self.groups)

    @property
    def bytes_after(self) -> int:
        """Return what the new files take; in a dry run about what they would."""
        if self.files:
            return sum(file.bytes for file in self.files)
        return sum(group.bytes_estimated for group in self.groups)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        if not self.groups:
            yield "nothing to do: no files are small, and none hold deleted rows"
            return
        about = "" if self.files else "about "
        yield f"files   {self.files_before:,} become {len(self.files) or f'about {len(self.groups):,}'}"
        yield f"bytes   {self.bytes_before:,} become {about}{self.bytes_after:,}"
        for name in ("gained", "dropped"):
            leaves = sorted({leaf for group in self.groups for leaf in getattr(group, name)}, key=str)
            yield from (f"{name:8}{_text(leaf)}" for leaf in leaves)


def _text(leaf: LeafPath) -> str:
    steps = "".join("[]" if step is None else f".{step}" for step in leaf.path).removeprefix(".")
    return f"{leaf.column}:{steps}  {leaf.type}" if steps else f"{leaf.column}  {leaf.type}"


def optimize(
    table: TableLocation,
    where: str | None = None,
    *,
    sort_by: str | Sequence[str] | None = None,
    reshred: bool = False,
    numeric: Numeric = "value",
    target_file_size: int = 128 << 20,
    dry_run: bool = False,
    storage_options: Mapping[str, str] | None = None,
) -> Optimization:
    """Write small files of each partition as one, and files with deleted rows without them, as one commit.

    New files are shredded by one schema for each group, inferred from rows of all its files, and exact
    numbers are shredded as a write shreds them, or with `numeric="strict"` only by their own type. With
    `reshred`, files whose paths have changed since they were written are written anew, too. With `sort_by`,
    SQL text of columns and Variant paths, all files are, each partition in that order over all its files, so
    that a query of a few values reads few of them; the keys are held in memory, and rows lie in a temporary
    folder meanwhile. `where` is over partition columns alone.

    `dry_run` commits nothing and gives the plan: groups of files, paths gained and dropped, bytes before and,
    by a sample, after. The rows are the same, so readers of changes see none (`dataChange=false`).

    Raises ExpressionError for SQL that is not understood, UnsupportedFeatureError for a table whose rows may
    not be moved, CommitConflictError when another commit removed one of the files.
    """
    snapshot = log.load_snapshot(table, storage_options=storage_options)
    scope = Scope.of(snapshot.schema)
    keys = _sort_keys(scope, sort_by)
    files = _chosen(snapshot, scope.predicate(where), where)
    check_may_rewrite(snapshot, removes_rows=False)
    target = Target.of(snapshot)
    options = allowed(WriteOptions(numeric=numeric, target_file_size=target_file_size), target, snapshot.uri)
    groups = group_files(snapshot, files, options, everything=bool(keys), reshred=reshred)
    if dry_run or not groups:
        return Optimization(None, tuple(groups))
    written = _write(snapshot, target, groups, keys)
    paths = [path for group in groups for path in group.paths]
    removed = chosen_files(snapshot, paths)
    rows = sum(group.rows for group in groups)
    rewritten = Rewritten(FilePlan(None, removed, 0, 0, 0, {}), removed, tuple(written), 0, rows)
    version = commit_rewritten(
        snapshot,
        rewritten,
        asked=None,
        data_change=False,
        operation="OPTIMIZE",
        parameters={"predicate": [] if where is None else [where], "sortBy": list(_texts(sort_by))},
        metrics={"numRemovedBytes": sum(group.bytes for group in groups)},
    )
    return Optimization(version, tuple(groups), tuple(file.written for file in written))


def _texts(sort_by: str | Sequence[str] | None) -> Sequence[str]:
    return [] if sort_by is None else [sort_by] if isinstance(sort_by, str) else sort_by


def _sort_keys(scope: Scope, sort_by: str | Sequence[str] | None) -> list[Expression]:
    keys = [scope.bind(expression.parse(text)) for text in _texts(sort_by)]
    for key in keys:
        arrow_type = expression.output_type(key)
        if arrow_type is None or expression.kind_of(arrow_type) == "nested":
            raise ExpressionError(
                f"`{expression.describe(key)}` has no order: cast it, as in event:id::bigint"
            )
    return keys


def _chosen(snapshot: Snapshot, predicate: Expression | None, where: str | None) -> pa.Table:
    if predicate is None:
        return snapshot.files
    if not is_of_partitions(snapshot, predicate):
        raise ExpressionError(
            f"`{where}` is over more than partition columns: optimize takes whole partitions"
        )
    return snapshot.files.filter(skipping.partition_matches(snapshot, predicate))


def _write(
    snapshot: Snapshot, target: Target, groups: Sequence[FileGroup], keys: Sequence[Expression]
) -> list[PartitionFile]:
    target = tracked(target, RowTracking.of(snapshot))
    written: list[PartitionFile] = []
    try:
        for group in groups:
            for batches in _runs(snapshot, group, keys):
                rows = ((batch, None) for batch in batches)
                written += write_files(snapshot.store, rows, target, group.options, Faults("error"))
    except BaseException:
        discard(snapshot.store, [file.written.path for file in written])
        raise
    return written


def _runs(
    snapshot: Snapshot, group: FileGroup, keys: Sequence[Expression]
) -> Iterator[Iterator[pa.RecordBatch]]:
    """Yield the rows of each new file, or of all where they have no order."""
    if not keys:
        yield (batch for batch, _ in rows_of(snapshot, group.paths))
        return
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        count = -(-max(group.bytes_estimated, 1) // group.options.target_file_size)
        buckets = _spilled(snapshot, group, keys, folder, count)
        for path in buckets:
            yield iter([_in_order(path, len(keys))])


def _spilled(
    snapshot: Snapshot, group: FileGroup, keys: Sequence[Expression], folder: Path, count: int
) -> list[Path]:
    """Write rows to as many files as there are to be, each with those that follow the last one's in order."""
    bucket_of = _buckets(snapshot, group, keys, count)
    paths = [folder / f"{number}.arrow" for number in range(count)]
    writers: dict[int, Any] = {}
    first = 0
    with ExitStack() as stack:
        for batch, values in rows_of(snapshot, group.paths, keys):
            places = bucket_of.slice(first, batch.num_rows)
            first += batch.num_rows
            whole = _with_keys(batch, values)
            for number in pc.unique(places).to_pylist():
                if number not in writers:
                    options = pa.ipc.IpcWriteOptions(compression="zstd")
                    opened = pa.ipc.new_file(str(paths[number]), whole.schema, options=options)
                    writers[number] = stack.enter_context(opened)
                writers[number].write_batch(whole.filter(pc.equal(places, number)))
    return [path for path in paths if path.exists()]


def _buckets(snapshot: Snapshot, group: FileGroup, keys: Sequence[Expression], count: int) -> Array:
    """Return for each row of a group, in the order of reading, the number of the file that it goes to."""
    names = _key_names(len(keys))
    values = (values for _, values in rows_of(snapshot, group.paths, keys))
    table = pa.Table.from_batches([pa.record_batch(each, names=names) for each in values])
    order = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in table.column_names])
    rank = pc.sort_indices(order)
    return pc.divide(pc.multiply(rank.cast(pa.int64()), count), max(1, table.num_rows))


def _key_names(count: int) -> list[str]:
    return [f"\0key{number}" for number in range(count)]


def _with_keys(batch: pa.RecordBatch, values: Sequence[Array]) -> pa.RecordBatch:
    return pa.record_batch([*batch.columns, *values], names=[*batch.schema.names, *_key_names(len(values))])


def _in_order(path: Path, keys: int) -> pa.RecordBatch:
    with pa.memory_map(str(path)) as source:
        table = pa.ipc.open_file(source).read_all()
        names = _key_names(keys)
        order = pc.sort_indices(table.select(names), sort_keys=[(name, "ascending") for name in names])
        found = table.drop_columns(names).take(order).combine_chunks().to_batches()
        return found[0]
