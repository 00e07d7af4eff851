"""Auto-compaction: after a write, the small files of its partitions become large ones, in another commit.

Files of these partitions with many deleted rows are rewritten, too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import compress
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ..._arrow import Array, total
from ..._logging import get_logger
from ...data_file.options import FileOptions
from ...execution import Executor
from ...log.load import load_latest
from ...log.snapshot import Snapshot
from ...protocol import features, properties
from ...protocol.table_configuration import TableConfiguration
from ...write.partitions import WrittenFiles
from .layout import have_many_deleted_rows, large_size
from .optimize import plan_compaction, run_optimize

_LOGGER = get_logger(__name__)

MIN_FILES = 50
"""How many small files a partition of the table has before they are compacted, as in Delta on Spark."""

Partition: TypeAlias = frozenset[tuple[str, str | None]]


def compacts(configuration: TableConfiguration, auto_compact: bool | None) -> bool:
    """Return whether a table is compacted after a change: as the argument says, None as its properties say.

    A table that a catalog manages is not: only the catalog may compact it.
    """
    if configuration.supports(features.CATALOG_MANAGED):
        return False
    if auto_compact is not None:
        return auto_compact
    either = (properties.AUTO_OPTIMIZE, properties.AUTO_COMPACT)
    return any(configuration.get(prop) for prop in either)


def compact_partitions(
    executor: Executor, before: Snapshot | None, written: WrittenFiles, files: FileOptions
) -> None:
    """Compact the small files of the partitions of `written` files, and log a failure instead of raising it.

    `before` is the table before `executor` committed these files, None if it was new.
    """
    try:
        count = 0 if before is None else total(_are_small(before.files, files.target_file_size))
        if len(written) + count < MIN_FILES:
            return
        snapshot = load_latest(executor.store)
        touched = {_partition(add.partition_values) for add in written.adds}
        chosen = select_files(snapshot.files, touched, files.target_file_size)
        if chosen.num_rows:
            plan = plan_compaction(snapshot, chosen, files, reason={"auto": True})
            run_optimize(plan, executor.another("OPTIMIZE"))
    except Exception as error:
        # The write is committed: its caller must not repeat it because the compaction failed.
        uri = executor.store.uri
        _LOGGER.warning("%s: auto-compaction failed, the next write tries again: %s", uri, error)


def select_files(files: pa.Table, partitions: Collection[Partition], target: int) -> pa.Table:
    """Return the files to rewrite of `partitions`, of each that has at least `MIN_FILES` small files.

    These are the small files, and those with many deleted rows. A small file that is larger than all others
    of its partition together stays until they have grown. Otherwise each compaction would rewrite what the
    one before it wrote.
    """
    names = sorted({name for partition in partitions for name, _ in partition})
    # A key of its own lets a table without partition columns be one group.
    keys = {"all": pa.nulls(files.num_rows)}
    keys |= {f"key {name}": pc.map_lookup(files["partition_values"], name, "first") for name in names}
    columns = {
        "size": files["size"],
        "small": _are_small(files, target),
        "many": have_many_deleted_rows(files),
    }
    numbered = pa.table({"number": range(files.num_rows), **columns, **keys})
    grouped = numbered.filter(pc.field("small") | pc.field("many")).group_by(list(keys))
    groups = grouped.aggregate([("number", "count"), *((name, "list") for name in ("number", *columns))])
    chosen: set[int] = set()
    for group in groups.filter(pc.field("number_count") >= MIN_FILES).to_pylist():
        if frozenset((name, group[f"key {name}"]) for name in names) not in partitions:
            continue
        numbers = group["number_list"]
        sizes = zip((size or 0 for size in group["size_list"]), numbers, strict=True)
        found = sorted(compress(sizes, group["small_list"]))
        rest = sum(size for size, _ in found)
        while found and 2 * found[-1][0] > rest:
            rest -= found.pop()[0]
        if len(found) >= MIN_FILES:
            chosen.update(number for _, number in found)
            chosen.update(compress(numbers, group["many_list"]))
    return files.take(pa.array(sorted(chosen), pa.int64()))


def _are_small(files: pa.Table, target: int) -> Array:
    """Return for each file whether an optimization combines it with others."""
    sizes: Array = files["size"].combine_chunks()
    return pc.less(pc.fill_null(sizes, 0), pa.scalar(large_size(target)))


def _partition(values: Mapping[str, str | None]) -> Partition:
    return frozenset(values.items())
