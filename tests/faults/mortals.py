"""Operations in processes that are killed by SIGKILL, at a step that is counted or at a time.

`python mortals.py` reads a line of JSON for each operation and answers with one. It forks a process for each,
which is faster than to start Python anew.
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
from threading import Lock
from typing import Any

from operations import Step, apply, data

from delta_variant import _native
from delta_variant.expressions.parse import parse as parse_expression
from delta_variant.storage.objects import LocalFiles

STORE_CALLS = ("get", "get_ranges", "get_end", "head", "list_files", "put", "create", "delete")
"""What the store does, and so what an operation's steps are; a data file's writes are others."""

LONGEST_LIFE = 120.0

# A process that dies must not take a lock of others with it: this one is of its threads alone.
steps = RawValue("i", 0)
counting = Lock()


def count_step(fatal: int | None) -> None:
    with counting:
        steps.value += 1
        reached = steps.value
    if reached == fatal:
        os.kill(os.getpid(), signal.SIGKILL)


def stepping(call: Callable[..., Any], fatal: int | None) -> Callable[..., Any]:
    """Return a function that counts a step before and one behind each call, and dies at the fatal one."""

    def stepped(*arguments: Any, **options: Any) -> Any:
        count_step(fatal)
        result = call(*arguments, **options)
        count_step(fatal)
        return result

    return stepped


def watch(fatal: int | None) -> None:
    """Count the steps of this process, and let it die at the fatal one."""
    for name in STORE_CALLS:
        setattr(LocalFiles, name, stepping(getattr(LocalFiles, name), fatal))
    # Between a staged file and its link, a death leaves both or one of them.
    for name in ("link", "replace"):
        setattr(os, name, stepping(getattr(os, name), fatal))

    native = _native.DataFileWriter

    class Writer:
        def __init__(self, *arguments: Any, **options: Any) -> None:
            count_step(fatal)
            self._writer = native(*arguments, **options)
            self.write = stepping(self._writer.write, fatal)
            self.close = stepping(self._writer.close, fatal)

        @property
        def bytes_written(self) -> int:
            return self._writer.bytes_written

    _native.DataFileWriter = Writer  # type: ignore[misc]


def run(order: dict[str, Any]) -> dict[str, Any]:
    """Carry out an operation in a process of its own, and say how that ended."""
    steps.value = 0
    started = time.monotonic()
    process = os.fork()
    if not process:
        _live(order)
    handle = os.pidfd_open(process)
    if not select.select([handle], [], [], order.get("after", LONGEST_LIFE))[0]:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    os.close(handle)
    ended = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    return {"ended": ended, "steps": steps.value, "seconds": time.monotonic() - started}


def _live(order: dict[str, Any]) -> None:
    try:
        watch(order.get("at_step"))
        apply(order["table"], Step(order["name"], tuple(order["present"]), tuple(order["absent"])))
    except BaseException as error:
        print(f"{order['name']}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)


def main() -> None:
    # What is imported at first use is imported once, and not by each process.
    data({1: 1})
    parse_expression("id in (1)")
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
