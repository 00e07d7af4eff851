"""Fit what a shredded column costs: the constants of rust/src/infer/prices.rs.

    python benchmarks/shredding_costs.py

Each figure is the difference of two files that differ only in the number of shredded leaves. Their values are
constants, which take no bytes in either form.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import engines
import pyarrow as pa

dv = engines.ours()
INT = pa.int64()
Spec = Any


def main() -> None:
    leaf, short = leaf_bytes(name=8), leaf_bytes(name=4)
    long_text, text = (
        leaf_bytes(value="a" * 64, spec=pa.string()),
        leaf_bytes(value="a" * 4, spec=pa.string()),
    )
    one_page, pages = leaf_bytes(rows=1_000), leaf_bytes(rows=100_000)
    nested = leaf_bytes(parent="p" * 8) - leaf
    objects = marginal(lambda name: {name: {"leaf": 7}}, lambda name: {name: {"leaf": INT}})
    elements = leaf_bytes(in_list=True) - leaf_bytes(parent="list")
    name = (leaf - short) / 4
    parent = nested / 2 - 8
    rows = {
        "LEAF": leaf - 8 * name,
        "GROUP": objects - leaf_bytes(name=4, parent="p" * 8),
        "NAME": name,
        "PARENT": parent,
        "TEXT": (long_text - text) / 60,
        "PAGE": (pages - one_page) / 6,
        "LEVELS, 200 elements": elements,
        "ms for one leaf": leaf_milliseconds(),
    }
    for constant, figure in rows.items():
        print(f"{constant:24} {figure:8.2f}")


def leaf_bytes(
    *,
    rows: int = 100,
    name: int = 8,
    value: object = 7,
    spec: Spec = INT,
    parent: str | None = None,
    in_list: bool = False,
) -> float:
    """Return the bytes that one more leaf takes."""

    def around(content: object) -> object:
        if in_list:
            return {"list": [content, content] if content == members else [content]}
        return content if parent is None else {parent: content}

    names = [f"{number:04}".ljust(name, "x") for number in range(40)]
    members = dict.fromkeys(names, value)
    row = json.dumps(around(members))
    sizes = [file_bytes([row] * rows, around(dict.fromkeys(names[:count], spec))) for count in (20, 40)]
    return (sizes[1] - sizes[0]) / 20


def marginal(value: Callable[[str], dict[str, Any]], spec: Callable[[str], dict[str, Any]]) -> float:
    """Return the bytes that one more field takes, which is an object or a list."""
    names = [f"{number:08}" for number in range(20)]
    row = json.dumps({key: each for name in names for key, each in value(name).items()})
    specs = [{key: each for name in names[:count] for key, each in spec(name).items()} for count in (10, 20)]
    few, many = (file_bytes([row] * 100, each) for each in specs)
    return (many - few) / 10


def file_bytes(rows: list[str], spec: Spec) -> int:
    with TemporaryDirectory() as folder:
        (file,) = write(folder, rows, dv.ShreddingSchema.of(spec)).files
        return int(file.bytes)


def leaf_milliseconds() -> float:
    """Return the CPU time that one more leaf takes in a file of few rows."""
    names = [f"{number:08}" for number in range(80)]
    rows = [
        json.dumps({name: row * number % 1_000 for number, name in enumerate(names)}) for row in range(100)
    ]

    def milliseconds(count: int) -> float:
        schema = dv.ShreddingSchema.of(dict.fromkeys(names[:count], INT))
        with TemporaryDirectory() as folder:
            start = time.process_time()
            write(folder, rows, schema)
            return (time.process_time() - start) * 1_000

    return statistics.median((milliseconds(80) - milliseconds(20)) / 60 for _ in range(9))


def write(folder: str, rows: list[str], schema: Any) -> Any:
    data = pa.table({"event": rows})
    return dv.write_table(Path(folder) / "table", data, variant_columns=["event"], shredding=schema)


if __name__ == "__main__":
    main()
