"""Measure the import time and the download size.

python benchmarks/startup.py MODULE
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

OPTIONAL_MODULES = ("pyspark", "pandas", "duckdb", "pysail", "chdb", "typer", "rich")


def import_seconds(module: str, *, runs: int = 5) -> float:
    """Return the least wall time of `import module`, without the start of Python."""
    return round(_seconds(f"import {module}", runs) - _seconds("pass", runs), 3)


def _seconds(statement: str, runs: int) -> float:
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", statement], check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return min(times)


def optional_modules(module: str) -> list[str]:
    """Return the optional dependencies that `import module` loads."""
    statement = f"import sys, {module}; print(*[name for name in {OPTIONAL_MODULES} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", statement], check=True, capture_output=True, text=True)
    return done.stdout.split()


def wheel_megabytes(folder: Path) -> float | None:
    """Return the size of the newest wheel in `folder`, or None without a wheel."""
    wheels = sorted(folder.glob("*.whl"), key=lambda wheel: wheel.stat().st_mtime)
    return round(wheels[-1].stat().st_size / 1e6, 2) if wheels else None


def main(module: str) -> None:
    facts = {"import_seconds": import_seconds(module), "optional_modules": optional_modules(module)}
    print(json.dumps(facts))


if __name__ == "__main__":
    main(*sys.argv[1:])
