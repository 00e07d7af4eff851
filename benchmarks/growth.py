"""Measure how the CPU time of operations grows with the size of a table, in each direction.

    python benchmarks/growth.py [--only NAME] [--repeat 3]

Each operation runs at n, 2n, 4n and 8n of its dimension, each time on a new table, and once at the smallest
size, whose time is the fixed cost. The exponent is the slope of the logarithm of the time above that cost:
1 is linear, 2 is quadratic. A Markdown table is printed; exponents above 1.15 have their reason in REASONS.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple

import pyarrow as pa

import delta_variant as dv

STEPS = (1, 2, 4, 8)
LIMIT = 1.15
LEAST_SECONDS = 0.02
"""Less than this at 8n, above the fixed cost, is noise."""

Operation = Callable[[Path, int], object]


class Case(NamedTuple):
    """Operations on tables that `make` writes, which grow in one dimension from `size` to eight times it."""

    dimension: str
    size: int
    make: Callable[[Path, int], object]
    operations: dict[str, Operation]


SORTS = "the pairs of matching rows are sorted"
REASONS: dict[tuple[str, str], str] = {("rows", "merge by ="): SORTS, ("rows", "merge by <=>"): SORTS}
"""Why the exponent of an operation is above the limit, by dimension and operation."""


def wide(table: Path, columns: int) -> None:
    dv.write_table(table, pa.table({"id": range(20), **{f"c{n}": [float(n)] * 20 for n in range(columns)}}))


def many_files(table: Path, files: int) -> None:
    ids = pa.table({"id": range(files), "p": range(files)})
    dv.write_table(table, ids, partition_by="p")
    dv.load_snapshot(table)


def rows_of(count: int) -> pa.Table:
    texts = [f'{{"n": {n}, "kind": "k{n % 7}"}}' for n in range(count)]
    return pa.table({"id": pa.array(range(count), pa.int64()), "v": texts})


def long(table: Path, rows: int) -> None:
    dv.write_table(table, rows_of(rows), variant_columns=["v"])


def commits(table: Path, count: int) -> None:
    properties = {"delta.checkpointInterval": "1000000", "delta.enableChangeDataFeed": "true"}
    dv.write_table(table, pa.table({"id": [0]}), configuration=properties)
    for n in range(1, count):
        dv.write_table(table, pa.table({"id": [n]}), mode="append")


def documents(table: Path, keys: int) -> None:
    """Write one file of JSON lines. No two of its 100 rows have a key in common."""
    table.mkdir()
    rows = ({f"k{row}_{n}": n for n in range(max(1, keys // 100))} for row in range(100))
    (table / "documents.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))


def deep_document(table: Path, depth: int) -> None:
    table.mkdir()
    text = '{"a": ' * depth + "1" + "}" * depth
    (table / "documents.ndjson").write_text(f"{text}\n" * 200)


def load_documents(table: Path, _: int) -> object:
    return dv.write_table(table / "t", table / "documents.ndjson", variant_columns=["v"])


def small(table: Path, _: int) -> None:
    long(table, 200)


def write_partitions(table: Path, count: int) -> object:
    """Write 50,000 rows, as many for each number of partitions."""
    rows = pa.table({"p": [n % count for n in range(50_000)], "x": range(50_000)})
    return dv.write_table(table / "t", rows, partition_by="p")


def merge(table: Path, source: pa.Table, on: str) -> object:
    return dv.merge(table, source, on).when_matched_update_all().when_not_matched_insert_all().execute()


def merge_wide(table: Path, columns: int) -> object:
    source = pa.table({"id": [3, 99], **{f"c{n}": [0.0, 1.0] for n in range(columns)}})
    return merge(table, source, "target.id = source.id")


def merge_rows(operator: str) -> Operation:
    def run(table: Path, rows: int) -> object:
        source = pa.table({"id": pa.array(range(0, 2 * rows, 4), pa.int64())})
        found = dv.merge(table, source, f"target.id {operator} source.id")
        return (
            found.when_matched_update({"v:seen": "true"})
            .when_not_matched_insert({"id": "source.id"})
            .execute()
        )

    return run


def read_where(condition: Callable[[int], str]) -> Operation:
    return lambda table, size: dv.read_table(table, where=condition(size)).to_table()


def read(table: Path, _: int) -> object:
    return dv.read_table(table).to_table()


def is_member(operand: str) -> Callable[[int], str]:
    return lambda size: f"{operand} in ({', '.join(map(str, range(size)))})"


CASES = (
    Case(
        "columns",
        500,
        wide,
        {
            "read": read,
            "update": lambda table, _: dv.update(table, {"c0": "2.0"}, "id = 3"),
            "delete": lambda table, _: dv.delete(table, "id = 3"),
            "merge": merge_wide,
            "optimize": lambda table, _: dv.optimize(table),
            "audit with data": lambda table, _: dv.audit_table(table, data=True),
        },
    ),
    Case(
        "files",
        250,
        many_files,
        {
            "read": read,
            "read with a condition": lambda table, _: dv.read_table(table, where="id >= 0").to_table(),
            "delete": lambda table, _: dv.delete(table, "id % 2 = 0"),
            "merge": lambda table, size: merge(
                table, pa.table({"id": range(size), "p": range(size)}), "target.id = source.id"
            ),
            "audit": lambda table, _: dv.audit_table(table),
            "vacuum": lambda table, _: dv.vacuum(table),
        },
    ),
    Case("partitions", 125, lambda table, _: table.mkdir(), {"write 50,000 rows": write_partitions}),
    Case(
        "rows",
        25_000,
        long,
        {
            "read": read,
            "update of a path": lambda table, _: dv.update(table, {"v:kind": "'x'"}, "id % 3 = 0"),
            "delete": lambda table, _: dv.delete(table, "v:n::int % 3 = 0"),
            "merge by =": merge_rows("="),
            "merge by <=>": merge_rows("<=>"),
            "sort": lambda table, _: dv.optimize(table, sort_by=["v:kind::string"]),
        },
    ),
    Case(
        "commits",
        50,
        commits,
        {
            "load": lambda table, _: dv.load_snapshot(table).files,
            "history": lambda table, _: dv.history(table),
            "changes": lambda table, _: dv.read_changes(table, start=0).to_table(),
            "audit": lambda table, _: dv.audit_table(table),
        },
    ),
    Case("distinct keys", 2_500, documents, {"write": load_documents}),
    Case(
        "terms of a condition",
        250,
        small,
        {
            "in": read_where(is_member("id")),
            "in, of a path": read_where(is_member("v:n::int")),
            "or": read_where(lambda size: " or ".join(f"id = {n}" for n in range(size))),
            "and": read_where(lambda size: " and ".join(f"id <> {n}" for n in range(size))),
            "update of paths": lambda table, size: dv.update(table, {f"v:p{n}": "1" for n in range(size)}),
        },
    ),
    Case("depth", 12, deep_document, {"write": load_documents}),
)


def seconds(case: Case, operation: Operation, size: int, repeat: int) -> float:
    """Return the least CPU time of an operation, each time on a new table."""
    return min(_seconds(case, operation, size) for _ in range(repeat))


def _seconds(case: Case, operation: Operation, size: int) -> float:
    folder = Path(mkdtemp())
    try:
        case.make(folder / "t", size)
        gc.collect()
        start = time.process_time()
        operation(folder / "t", size)
        return time.process_time() - start
    finally:
        shutil.rmtree(folder)


def exponent(sizes: list[int], times: list[float], fixed: float) -> float | None:
    """Return the slope of the time above the fixed cost in a log-log plot, None if it is noise."""
    above = [max(each - fixed, 1e-4) for each in times]
    if above[-1] < LEAST_SECONDS:
        return None
    x, y = [math.log(size) for size in sizes], [math.log(each) for each in above]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    slope = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return slope / sum((a - mean_x) ** 2 for a in x)


def measured(only: str | None, repeat: int) -> Iterator[tuple[str, str, list[float], float | None]]:
    for case in CASES:
        for name, operation in case.operations.items():
            if only not in (None, case.dimension, name):
                continue
            sizes = [case.size * step for step in STEPS]
            seconds(case, operation, 1, 1)  # imports modules
            fixed = seconds(case, operation, 1, repeat)
            times = [seconds(case, operation, size, repeat) for size in sizes]
            label = f"{case.dimension}, {sizes[0]:,} to {sizes[-1]:,}"
            yield label, name, times, exponent(sizes, times, fixed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="the name of a dimension or of an operation")
    parser.add_argument("--repeat", type=int, default=2, help="the runs of which the least time counts")
    arguments: Any = parser.parse_args()
    print("| dimension | operation | CPU s at n, 2n, 4n, 8n | exponent | reason above 1.15 |")
    print("|---|---|--:|--:|---|")
    unexplained = 0
    for label, name, times, found in measured(arguments.only, arguments.repeat):
        reason = REASONS.get((label.split(",")[0], name), "") if found is not None and found > LIMIT else ""
        unexplained += found is not None and found > LIMIT and not reason
        shown, figures = "noise" if found is None else f"{found:.2f}", [f"{each:.2f}" for each in times]
        print(f"| {label} | {name} | {', '.join(figures)} | {shown} | {reason} |", flush=True)
    return int(unexplained > 0)


if __name__ == "__main__":
    raise SystemExit(main())
