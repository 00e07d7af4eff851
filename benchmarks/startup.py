"""Measure the start: CPU time of imports, of the command line and of the first query, and the download size.

python benchmarks/startup.py
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

ROUNDS = 9
OPTIONAL_MODULES = ("pyspark", "pandas", "duckdb", "pysail", "chdb", "typer", "rich")
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


def render(seconds: Mapping[str, float]) -> Iterator[str]:
    """Yield a line for each figure, with its target."""
    for name, taken in seconds.items():
        other, target = TARGETS.get(name, ("", 0.0))
        above = f"{taken - seconds.get(other, 0.0):.3f}" if target else ""
        text = f"{above} above {other}" if other in seconds else above
        yield f"  {name:<24} {taken:.3f}" + (f"  {text} (at most {target:.2f})" if target else "")


def optional_modules(module: str) -> list[str]:
    """Return the optional dependencies that `import module` loads."""
    statement = f"import sys, {module}; print(*[name for name in {OPTIONAL_MODULES} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", statement], check=True, capture_output=True, text=True)
    return done.stdout.split()


def wheel_megabytes(folder: Path) -> float | None:
    """Return the size of the newest wheel in `folder`, or None without a wheel."""
    wheels = sorted(folder.glob("*.whl"), key=lambda wheel: wheel.stat().st_mtime)
    return round(wheels[-1].stat().st_size / 1e6, 2) if wheels else None


def main() -> None:
    print(f"CPU seconds, least of {ROUNDS}")
    print(*render(cpu_seconds()), sep="\n")


if __name__ == "__main__":
    main()
