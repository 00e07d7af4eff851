"""Measure the CPU seconds, wall time and peak memory of a function, including child processes."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

Result = TypeVar("Result")

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Cost:
    """The cost of a measured function, without the start of its process or of a JVM."""

    cpu_seconds: float
    wall_seconds: float
    peak_megabytes: float
    megabytes_in: float
    """Bytes read from files and sockets, whether from a disk or its cache."""


@dataclass(frozen=True)
class Outcome:
    """The report of one engine for one flow: its figures by name, or the reason of its failure."""

    engine: str
    facts: Mapping[str, Any]
    failure: str | None = None


def measure(work: Callable[[], Result]) -> tuple[Cost, Result]:
    """Run `work` and return its cost and its result.

    CPU is user and system time of this process and its descendants. The peak is the sum of the peaks of these
    processes, so it is exact if one process does the work.
    """
    read, children = _megabytes_in(), _cpu_seconds_of_children()
    own, start = time.process_time(), time.perf_counter()
    result = work()
    wall, own = time.perf_counter() - start, time.process_time() - own
    cpu = own + _cpu_seconds_of_children() - children
    read = _megabytes_in() - read
    return Cost(round(cpu, 4), round(wall, 4), round(_peak_megabytes(), 1), round(read, 3)), result


def busy_processors(seconds: float = 2) -> float:
    """Return how many processors were busy, on average over some seconds."""

    def busy() -> int:
        fields = [int(text) for text in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
        # Idle and waiting for a disk; the last two are part of the first two.
        return sum(fields[:8]) - fields[3] - fields[4]

    before = busy()
    time.sleep(seconds)
    return round((busy() - before) / os.sysconf("SC_CLK_TCK") / seconds, 2)


def size_of(path: Path) -> int:
    """Return the bytes of a file, or of all files below a folder."""
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def report(cost: Cost, **facts: object) -> None:
    """Print the report of a worker as the last line of its output."""
    # Some engines print while they stop, or never stop, so the line is printed before.
    print(json.dumps({**asdict(cost), **facts}), flush=True)


def run_worker(
    script: Path,
    engine: str,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    timeout: float = 900,
    interpreter: str | Path = sys.executable,
) -> Outcome:
    """Run `script engine arguments…` in its own process and return its report."""
    command = [str(interpreter), str(script), engine, *arguments]
    # Installed packages are compiled; else each run would compile the sources of an editable installation.
    inherited = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            env={**inherited, **(environment or {})},
            # Spark's workers import packages from the current folder first.
            cwd=script.parent,
        )
    except subprocess.TimeoutExpired:
        return Outcome(engine, {}, f"did not end within {timeout:.0f} s")
    lines = done.stdout.splitlines()
    if done.returncode == 0 and lines and lines[-1].startswith("{"):
        return Outcome(engine, json.loads(lines[-1]))
    return Outcome(engine, {}, _last_words(done.stderr) or f"exit status {done.returncode}")


def _last_words(text: str) -> str:
    """Return the line of a failed worker's output that most likely contains the reason, truncated."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next(
        (line for line in reversed(lines) if "Error" in line or "Exception" in line), "".join(lines[-1:])
    )[:160]


def _cpu_seconds_of_children() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Fields 14 to 17 of /proc/PID/stat: user and system time of the process, then of its children.
    running = sum(sum(map(int, _stat(process)[11:15])) for process in _processes() if process != os.getpid())
    return ended.ru_utime + ended.ru_stime + running / TICKS_PER_SECOND


def _peak_megabytes() -> float:
    peaks = (_field(process, "status", "VmHWM") for process in _processes())
    return sum(peaks) / 1024


def _megabytes_in() -> float:
    return sum(_field(process, "io", "rchar") for process in _processes()) / 1e6


def peak_of(word: str) -> float:
    """Return the highest peak in MB of a descendant, not a JVM, whose command line contains a word."""
    peaks = (_field(process, "status", "VmHWM") for process in _processes() if _is_of(process, word))
    return round(max(peaks, default=0) / 1024, 1)


def _is_of(process: int, word: str) -> bool:
    try:
        command = Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return word in command and "java" not in command.split("\0")[0] and process != os.getpid()


def _processes() -> Iterator[int]:
    """Yield this process and all its descendants."""
    parents = {
        int(entry.name): _parent(int(entry.name)) for entry in Path("/proc").iterdir() if entry.name.isdigit()
    }
    family = [os.getpid()]
    for process in family:
        family.extend(child for child, parent in parents.items() if parent == process)
    yield from family


def _parent(process: int) -> int:
    stat = _stat(process)
    return int(stat[1]) if stat else 0


def _stat(process: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the state on, or no fields if the process has ended."""
    try:
        # The program name, in brackets, may contain spaces.
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def _field(process: int, file: str, field: str) -> int:
    """Return a number in a file of /proc/PID, or 0 if the process has ended."""
    try:
        lines = Path(f"/proc/{process}/{file}").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{field}:")), 0)
