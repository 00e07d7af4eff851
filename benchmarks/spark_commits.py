"""Measure the memory of a driver of Spark that commits the files of many tasks, without data and Spark.

    python benchmarks/spark_commits.py FOLDER FILES [FILES …] [--row-ids]

Makes results of tasks of 1,000 files each, with statistics and five shredded paths of a Variant column. One
process reads the results of a write as Spark delivers them, and commits them to a new table. Another one
plans a deletion of a row of each file of this table, makes the messages to the tasks, and commits as many new
files. Prints for each the largest memory before and after, the CPU time, and the sizes of results and commit.
"""

from __future__ import annotations

import argparse
import json
import pickle
import resource
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import pyarrow as pa

from delta_variant.data_file.options import WriteOptions
from delta_variant.data_file.writer import ShreddedPath, WrittenFile
from delta_variant.execution import LocalExecutor
from delta_variant.log.commit_context import CommitOptions
from delta_variant.log.load import load_latest
from delta_variant.log.snapshot import strip_files
from delta_variant.operations.delete import plan_delete
from delta_variant.operations.rewrite import commit_plan, finish_rewrite, rewrite_some
from delta_variant.operations.write import WrittenRows
from delta_variant.protocol.actions import AddFile
from delta_variant.protocol.statistics import FileStatistics
from delta_variant.protocol.types import VARIANT, PrimitiveType, StructField, StructType
from delta_variant.read.plan import plan_files
from delta_variant.spark.readers import groups_of_table
from delta_variant.spark.tasks import messages, pack
from delta_variant.storage.store import open_store
from delta_variant.write.commit import commit_files
from delta_variant.write.partitions import NO_FILES, WrittenFiles
from delta_variant.write.preparation import TableOptions, WriteRequest, plan_write
from delta_variant.write.rewrite import RewrittenPart

FILES_OF_A_TASK = 1000
ROWS_OF_A_FILE = 1000
TASKS_AT_ONCE = 200
COLUMNS = StructType(
    (
        StructField("day", PrimitiveType("string")),
        StructField("id", PrimitiveType("long")),
        StructField("event", VARIANT),
    )
)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("files", nargs="*", type=int)
    parser.add_argument("--row-ids", action="store_true", help="commit to a table with row tracking")
    parser.add_argument("--here", choices=STEPS, help="commit the results of FOLDER in this process")
    arguments = parser.parse_args()
    if arguments.here:
        STEPS[arguments.here](arguments.folder, row_ids=arguments.row_ids)
        return
    flags = ["--row-ids"] if arguments.row_ids else []
    for files in arguments.files:
        with TemporaryDirectory(dir=arguments.folder) as folder:
            write_results(Path(folder), files)
            for step in STEPS:
                subprocess.run([sys.executable, __file__, folder, "--here", step, *flags], check=True)


def write_results(folder: Path, files: int) -> None:
    """Write the results of the tasks of a write, and of those that rewrite each of its files."""
    with (folder / "write").open("wb") as write, (folder / "delete").open("wb") as delete:
        for first in range(0, files, FILES_OF_A_TASK):
            old, new = (files_of_task(first, min(FILES_OF_A_TASK, files - first)) for _ in range(2))
            replaced = pa.array(list(old.paths()), pa.string())
            part = RewrittenPart(replaced, (), new, NO_FILES, len(old), old.rows - len(old))
            pickle.dump(pack(WrittenRows(old.compress(), 0)), write)
            pickle.dump(pack(part.compress()), delete)


def files_of_task(first: int, count: int) -> WrittenFiles:
    written: list[WrittenFile] = []
    adds: list[AddFile] = []
    for number in range(first, first + count):
        # The bounds of a Variant column are text that repeats little.
        bounds = [f"{uuid4().hex}{uuid4().hex}"[:60] for _ in range(2)]
        low, high = ({"id": number * ROWS_OF_A_FILE + end, "event": bounds[end > 0]} for end in (0, 999))
        paths = tuple(ShreddedPath(("user", f"f{n}"), pa.int64(), ROWS_OF_A_FILE, 0) for n in range(5))
        stats = FileStatistics(ROWS_OF_A_FILE, {"id": 0, "event": 0}, low, high)
        day = f"2026-{number % 12 + 1:02}-{number % 28 + 1:02}"
        name = f"day={day}/part-{number:05}-{uuid4()}-c000.zstd.parquet"
        file = WrittenFile(name, ROWS_OF_A_FILE, 123_456 + number % 1000, stats, {"event": paths})
        written.append(file)
        adds.append(
            AddFile(
                path=file.path,
                partition_values={"day": day},
                size=file.bytes,
                modification_time=0,
                data_change=True,
                stats=stats.to_json(),
            )
        )
    return WrittenFiles.of(written, adds)


def write(folder: Path, *, row_ids: bool) -> None:
    """Commit the results of the write to a new table."""
    configuration = {"delta.enableRowTracking": "true"} if row_ids else None
    options = TableOptions("day", None, configuration, None, None, "error", None, "UTC")
    store = open_store(str(folder / "table"))
    request = WriteRequest(COLUMNS, WriteOptions(), options)
    prepared = plan_write(store, None, request, CommitOptions())
    before, start = largest_memory(), time.process_time()
    parts = delivered(folder / "write")
    files = WrittenFiles.join(part.files for part in parts)
    result = commit_files(prepared, files)
    report("write", folder, before, start, len(result.files))


def delete(folder: Path, *, row_ids: bool) -> None:
    """Plan a deletion, make the messages to its tasks, and commit their results."""
    before, start = largest_memory(), time.process_time()
    snapshot = load_latest(str(folder / "table"))
    plan = plan_delete(snapshot.store, "id % 1000 = 1")
    candidates = plan_files(snapshot, plan.predicate)
    version, pruning = strip_files(snapshot), candidates.pruning_predicate
    groups = groups_of_table(candidates.files, TASKS_AT_ONCE)
    sent = [
        pack(partial(rewrite_some, version, group, pruning, plan.change, plan.options)) for group in groups
    ]
    parts, files = delivered(folder / "delete"), plan.options.files
    result = finish_rewrite(
        LocalExecutor(snapshot.store), snapshot, candidates, parts, (), files, partial(commit_plan, plan)
    )
    report("delete", folder, before, start, len(result.files), MiB_sent=sum(map(len, sent)) >> 20)


STEPS = {"write": write, "delete": delete}


def delivered(path: Path) -> list[Any]:
    """Return the results of tasks from the rows that Spark delivers to the driver."""
    rows: list[dict[str, bytes]] = []
    with path.open("rb") as results:
        while results.peek(1):
            rows.append({"message": pickle.load(results)})
    return messages(rows)


def report(step: str, folder: Path, before: int, start: float, files: int, **others: int) -> None:
    commit = max((folder / "table" / "_delta_log").glob("*.json"))
    measures = {
        "step": step,
        "files": files,
        "MiB_before": before,
        "MiB": largest_memory(),
        "cpu_seconds": round(time.process_time() - start, 2),
        "MiB_results": (folder / step).stat().st_size >> 20,
        "MiB_commit": commit.stat().st_size >> 20,
        **others,
    }
    print(json.dumps(measures))


def largest_memory() -> int:
    """Return the largest resident memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


if __name__ == "__main__":
    main()
