"""Change a copy of a table, one engine and one workload per process.

    python benchmarks/rewrite.py ENGINE WORKLOAD SOURCE TARGET

`generate_rewrites.py` writes the table, `generate_plain.py` that of `merge-few`. `delete` and `update`
change one row in a hundred, in every file. `merge` sets all columns of one row in forty, of which the last
one changes, and inserts as many; `merge-few` does so with 1,000 rows. `optimize` combines all files. `scan`
reads two columns 20 times after such a delete. The engine `ours-vectors` is this library where the table
enables deletion vectors. deltalake has no Variants and rewrites the same bytes as binary columns.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import engines
import pyarrow as pa
import pyarrow.compute as pc
from measure import measure, report, size_of

# Returns the number of rows or files, so that engines can be compared.
Rewrite = Callable[[], int]

CHANGED = "id % 100 = 7"
MATCH = "target.id = source.id"
SCANS = 20
MERGED_SHARE = {"merge": 40, "merge-few": 40_000}


def ours(workload: str, target: Path) -> Rewrite:
    dv = engines.ours()
    # The first use of a public name imports its modules.
    delete, update, merge, optimize, read = dv.delete, dv.update, dv.merge, dv.optimize, dv.read_table

    def merge_rows(source: pa.Table) -> int:
        merging = merge(target, source, MATCH)
        result = merging.when_matched_update_all().when_not_matched_insert_all().execute()
        return int(result.rows_updated + result.rows_inserted)

    if workload in MERGED_SHARE:
        source = in_other_process(changes_of_ours, target, MERGED_SHARE[workload])
        return lambda: merge_rows(source)
    if workload == "scan":
        delete(target, CHANGED)
        scan = read(target, columns={"id": "id", "x": "event:x::bigint"})
        # A rewrite of all files has warmed the process up, and a delete by vectors has not.
        scan.to_table()
        return lambda: sum(scan.to_table().num_rows for _ in range(SCANS))
    return {
        "delete": lambda: delete(target, CHANGED).rows_deleted,
        "update": lambda: update(target, {"id": "-id"}, CHANGED).rows_updated,
        "optimize": lambda: optimize(target).files_before,
    }[workload]


def with_vectors(workload: str, target: Path) -> Rewrite:
    engines.ours().set_properties(target, {"delta.enableDeletionVectors": "true"})
    return ours(workload, target)


def deltalake(workload: str, target: Path) -> Rewrite:
    from deltalake import DeltaTable

    def merge_rows(source: pa.Table) -> int:
        merging = DeltaTable(target).merge(source, MATCH, source_alias="source", target_alias="target")
        found = merging.when_matched_update_all().when_not_matched_insert_all().execute()
        return int(found["num_target_rows_updated"] + found["num_target_rows_inserted"])

    if workload in MERGED_SHARE:
        source = in_other_process(changes_of_deltalake, target, MERGED_SHARE[workload])
        return lambda: merge_rows(source)

    def metric(name: str, run: Callable[[], Mapping[str, Any]]) -> Rewrite:
        return lambda: int(run()[name])

    table = DeltaTable(target)
    return {
        "delete": metric("num_deleted_rows", lambda: table.delete(CHANGED)),
        "update": metric("num_updated_rows", lambda: table.update({"id": "-id"}, predicate=CHANGED)),
        "optimize": metric("numFilesRemoved", table.optimize.compact),
    }[workload]


def in_other_process(work: Callable[[Path, int], pa.Table], target: Path, share: int) -> pa.Table:
    """Return a result of another process, so that its memory does not count as that of the measured merge."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(work, target, share).result()


def changes_of_ours(target: Path, share: int) -> pa.Table:
    return changes(engines.ours().read_table(target).to_dataset(), share)


def changes_of_deltalake(target: Path, share: int) -> pa.Table:
    from deltalake import DeltaTable

    return changes(DeltaTable(target).to_pyarrow_dataset(), share)


def changes(table: Any, share: int) -> pa.Table:
    """Return one row in `share` of a dataset, whose ids are consecutive numbers, and as many new ones.

    The first ones have the value of another row in their last column.
    """
    count = table.count_rows()
    rows = table.to_table(filter=pc.field("id").isin(pa.array(range(7, count, share), pa.int64())))
    rows, last = rows.combine_chunks(), rows.schema.names[-1]
    others = rows.take(pa.array([*range(1, rows.num_rows), 0]))
    changed = rows.set_column(rows.num_columns - 1, last, others[last])
    return pa.concat_tables([changed, rows.set_column(0, "id", pc.add(rows["id"], count))])


ENGINES: dict[str, Callable[[str, Path], Rewrite]] = {
    "ours": ours,
    "ours-vectors": with_vectors,
    "deltalake": deltalake,
}


def main(engine: str, workload: str, source: str, folder: str) -> None:
    target, original = Path(folder), Path(source)
    shutil.rmtree(target, ignore_errors=True)
    own = original / engine.partition("-")[0]
    shutil.copytree(own if own.exists() else original, target)
    work = ENGINES[engine](workload, target)
    before = {file for file in target.rglob("*") if file.is_file()}
    cost, rows = measure(work)
    written = sum(size_of(file) for file in target.rglob("*") if file.is_file() and file not in before)
    report(cost, rows=rows, bytes_out=written)


if __name__ == "__main__":
    main(*sys.argv[1:])
