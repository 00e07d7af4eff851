"""Measure the start: CPU time of imports, of the command line and of the first query.

python benchmarks/startup.py
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROUNDS = 9
PEERS = ("deltalake", "duckdb", "polars")
ROWS = 1000
WRITE = """
import sys, delta_variant, pyarrow
rows = pyarrow.table({"id": range(ROWS), "event": [f'{{"a": {row}}}' for row in range(ROWS)]})
delta_variant.write_table(sys.argv[1], rows, variant_columns=["event"])
""".replace("ROWS", str(ROWS))
QUERY = """
import sys, delta_variant
scan = delta_variant.read_table(sys.argv[1], columns=["id", "event:a::int as a"], where="event:a::int < 5")
assert scan.to_table().num_rows == 5
"""
CLI = "from delta_variant.cli import main; main()"

# The program of each figure, the figure that it is compared with, and the CPU seconds that it may take more.
# The first query imports the modules that it needs, so its target is the sum of 0.10 for the import and 0.15.
TARGETS: Mapping[str, tuple[str, float]] = {
    "import delta_variant": ("import pyarrow", 0.10),
    "delta-variant --version": ("nothing", 0.08),
    "delta-variant --help": ("nothing", 0.25),
    "first query": ("import pyarrow", 0.25),
}


def programs(table: str) -> Mapping[str, Sequence[str]]:
    """Return the arguments of Python for each figure. `table` is read by the first query."""
    peers = [name for name in PEERS if find_spec(name) is not None]
    return {
        "python": ["-c", "pass"],
        "import pyarrow": ["-c", "import pyarrow"],
        "import delta_variant": ["-c", "import pyarrow, delta_variant"],
        "delta-variant --version": ["-c", CLI, "--version"],
        "delta-variant --help": ["-c", CLI, "--help"],
        "first query": ["-c", QUERY, table],
        **{f"import {name}": ["-c", f"import {name}"] for name in peers},
    }


def cpu_seconds(rounds: int = ROUNDS) -> dict[str, float]:
    """Return the least user and system time of each program over rounds that run all of them."""
    # Without compiled modules, each start would compile the sources of an editable installation.
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as folder:
        table = str(Path(folder) / "table")
        subprocess.run([sys.executable, "-c", WRITE, table], check=True, env=environment)
        commands = programs(table)
        # The first round compiles modules and is not counted.
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(rounds + 1):
            for name, arguments in commands.items():
                times[name].append(_cpu_seconds_of([sys.executable, *arguments], environment))
    return {name: min(seconds[1:]) for name, seconds in times.items()}


def _cpu_seconds_of(command: Sequence[str], environment: Mapping[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def results(rounds: int = ROUNDS) -> dict[str, Any]:
    """Return the figures of all programs, with their targets."""
    seconds = cpu_seconds(rounds)
    rows = []
    for name, taken in seconds.items():
        other, target = TARGETS.get(name, ("", None))
        more = None if target is None else taken - seconds.get(other, 0.0)
        rows.append({"name": name, "seconds": taken, "other": other, "more": more, "target": target})
    return {"date": f"{datetime.now(timezone.utc):%Y-%m-%d}", "rounds": rounds, "programs": rows}


def main() -> None:
    print(f"CPU seconds, least of {ROUNDS}")
    for row in results()["programs"]:
        more = (
            ""
            if row["more"] is None
            else f"  {row['more']:.3f} above {row['other']}, at most {row['target']}"
        )
        print(f"  {row['name']:<24} {row['seconds']:.3f}{more}")


if __name__ == "__main__":
    main()
