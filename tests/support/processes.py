"""Processes that end with the test that started them, and the output of those on a terminal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

WAIT = 60
"""Seconds to wait for a process that should end by itself."""


@contextmanager
def start(command: Sequence[str | Path], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """Start a process, and kill it at the end. `Popen` alone waits, also for a process that never ends."""
    with subprocess.Popen(command, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def run_program(program: str, *arguments: str | Path) -> str:
    """Run Python code in a process of its own, and return what it prints."""
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def kill_session(leader: int) -> None:
    """Kill all processes of the session of a process, which may have ended and have other groups."""
    for process in map(int, filter(str.isdecimal, os.listdir("/proc"))):
        with suppress(ProcessLookupError):
            if os.getsid(process) == leader:
                os.kill(process, signal.SIGKILL)


def read_terminal(reader: int) -> str:
    """Return what was written to a terminal, after all processes have closed it, and close this end.

    A process waits if nobody reads what it writes.
    """
    shown = bytearray()
    # Reading fails with an error when the other end is closed.
    with suppress(OSError):
        while piece := os.read(reader, 1 << 16):
            shown += piece
    os.close(reader)
    return shown.decode()
