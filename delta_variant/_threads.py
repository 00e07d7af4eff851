"""Threads that work for an iterator."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from .errors import DeltaVariantError


class Threads(ThreadPoolExecutor):
    """A pool for a `with` block, whose end awaits all work; after an error only the work that has begun.

    An iterator that is closed awaits nothing: the garbage collector may close it in one of its own threads,
    or while another thread starts, and then it would wait for itself.
    """

    def __init__(self, count: int) -> None:
        super().__init__(count, "delta-variant")

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Submit a call; raises DeltaVariantError if the system does not start a thread for it."""
        try:
            return super().submit(fn, *args, **kwargs)
        except RuntimeError as error:
            if str(error) != "can't start new thread":
                raise
            raise DeltaVariantError(
                "cannot start a thread because the process, its user or its container has reached a limit of "
                "threads: raise the limit, such as that of `ulimit -u`, or run fewer processes at once"
            ) from error

    def __exit__(self, kind: object, *_: object) -> None:
        self.shutdown(wait=kind is not GeneratorExit, cancel_futures=kind is not None)
