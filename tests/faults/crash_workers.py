"""Operations in processes that SIGKILL ends, at a counted step or after a time.

`python crash_workers.py` reads a line of JSON for each operation and answers with one. It forks a process for
each operation, which is faster than starting Python again.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from multiprocessing.sharedctypes import RawValue
from pathlib import Path
from threading import Lock
from typing import Any

from table_operations import Step, apply, data

from delta_variant import _native
from delta_variant.expressions.parse import parse as parse_expression

sys.path.append(str(Path(__file__).parents[1]))

from support.intercepted_store import intercept

LONGEST_RUN = 120.0

# A killed process must not hold a lock that other processes need: only threads of one process share this one.
steps = RawValue("i", 0)
counting = Lock()


def count_step(fatal: int | None) -> None:
    """Count a step of this process, and kill the process at the fatal one."""
    with counting:
        steps.value += 1
        reached = steps.value
    if reached == fatal:
        os.kill(os.getpid(), signal.SIGKILL)


def with_steps(call: Callable[..., Any], fatal: int | None) -> Callable[..., Any]:
    """Return a function that counts a step before and after each call."""

    def counted(*arguments: Any, **options: Any) -> Any:
        count_step(fatal)
        result = call(*arguments, **options)
        count_step(fatal)
        return result

    return counted


def count_file_writes(fatal: int | None) -> None:
    """Count the steps of this process that are not calls of a table's store."""
    # A crash between the staged file and its link leaves both or one of them.
    for name in ("link", "replace"):
        setattr(os, name, with_steps(getattr(os, name), fatal))

    native = _native.DataFileWriter

    class Writer:
        def __init__(self, *arguments: Any, **options: Any) -> None:
            count_step(fatal)
            self._writer = native(*arguments, **options)
            self.separate = self._writer.separate
            self.take_residual_rows = self._writer.take_residual_rows
            self.write = with_steps(self._writer.write, fatal)
            self.flush = with_steps(self._writer.flush, fatal)
            self.close = with_steps(self._writer.close, fatal)

        @property
        def bytes_written(self) -> int:
            return self._writer.bytes_written

    _native.DataFileWriter = Writer  # type: ignore[misc]


def run(order: dict[str, Any]) -> dict[str, Any]:
    """Run an operation in a process of its own, and return how that process ended."""
    steps.value = 0
    started = time.monotonic()
    process = os.fork()
    if not process:
        _run_here(order)
    handle = os.pidfd_open(process)
    if not select.select([handle], [], [], order.get("after", LONGEST_RUN))[0]:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    os.close(handle)
    ended = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    return {"ended": ended, "steps": steps.value, "seconds": time.monotonic() - started}


def _run_here(order: dict[str, Any]) -> None:
    fatal = order.get("at_step")
    try:
        count_file_writes(fatal)
        store = intercept(
            order["table"], before=lambda *_: count_step(fatal), after=lambda *_: count_step(fatal)
        )
        apply(store, Step(order["name"], tuple(order["present"]), tuple(order["absent"])))
    except BaseException as error:
        print(f"{order['name']}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)


def main() -> None:
    # Modules that are imported at first use are imported once, and not by each process.
    data({1: 1})
    parse_expression("id in (1)")
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
