"""Load the log of a table of a million files, and plan a query, one engine and one workload per process.

    python benchmarks/planning.py ENGINE WORKLOAD TARGET

`load` loads the snapshot with the statistics of every file, as the other engines do.
Spark's `inputFiles` is the closest equivalent; it lists the files without their statistics.
`plan` selects the files, at most 2,000, whose bounds of a Variant path do not exclude a value. Other engines
cannot plan by a Variant path. Spark selects one file by a column. deltalake plans no table with shredding.
`plan_all` plans a read whose condition all files match, and `delete_all` removes all files. `checkpoint`
removes a file and writes a checkpoint.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import engines
from measure import measure, report

DAY, DAY_ID = 20_500, 5_000_000

# Returns the number of files, so that engines can be compared.
Load = Callable[[], int]


def ours(workload: str, target: Path) -> Load:
    dv = engines.ours()
    from delta_variant.log import transaction
    from delta_variant.log.checkpoints.writing import write_checkpoint
    from delta_variant.log.commit_context import CommitOptions, commit_context
    from delta_variant.log.conflicts import Reads
    from delta_variant.read.plan import plan_files
    from delta_variant.read.query import Query

    def plan(where: str) -> int:
        snapshot = dv.load_snapshot(target)
        query = Query.of(snapshot, [], where)
        return plan_files(snapshot, query.pruning, with_bounds=False).files.num_rows

    def checkpoint() -> int:
        snapshot = dv.load_snapshot(target)
        removed = plan_files(snapshot, Query.of(snapshot, [], "id = 5").predicate).files
        reads = Reads(removed, lambda adds: False)
        context = commit_context("DELETE", {}, {}, CommitOptions())
        version = transaction.replace_files(snapshot, removed, removed[:0], context=context, reads=reads)
        write_checkpoint(snapshot.store, version, now=0, unique_id=context.txn_id)
        return 1

    return {
        "load": lambda: dv.load_snapshot(target).files.num_rows,
        "plan": lambda: plan(f"event:day::bigint = {DAY}"),
        "plan_all": lambda: plan("id >= 0"),
        "delete_all": lambda: dv.delete_all(target).files_removed,
        "checkpoint": checkpoint,
    }[workload]


def deltalake(_: str, target: Path) -> Load:
    from deltalake import DeltaTable

    return lambda: int(DeltaTable(target).get_add_actions().num_rows)


def spark(workload: str, target: Path) -> Load:
    session = engines.delta_session()
    condition = {"load": "true", "plan": f"id = {DAY_ID}", "plan_all": "id >= 0"}[workload]

    def count() -> int:
        # The names of the files stay in the JVM: Python would fetch one by one.
        return len(session.read.format("delta").load(str(target)).where(condition)._jdf.inputFiles())

    return count


ENGINES: dict[str, Callable[[str, Path], Load]] = {"ours": ours, "deltalake": deltalake, "spark": spark}


def main(engine: str, workload: str, target: str) -> None:
    cost, files = measure(ENGINES[engine](workload, Path(target)))
    report(cost, rows=files)
    # The process does not end while a JVM runs.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
