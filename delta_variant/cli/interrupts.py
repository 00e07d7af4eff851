"""Interrupts: SIGTERM ends a command as SIGINT does, after it has cleaned up."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from threading import Thread, current_thread, main_thread
from time import sleep
from types import FrameType
from typing import Any

from ..log.transaction import CommitInterrupted

__all__ = ["Interrupted", "all_or_nothing", "raising_signals"]


WAKE = signal.SIGURG
WAKE_SECONDS = 0.05


class Interrupted(BaseException):
    """An interrupt of a command that changes a table; the message says what became of the change."""


class Signals:
    """The signal that interrupted the command, if one did."""

    def __init__(self) -> None:
        self.received: int | None = None

    def interrupt(self, number: int, _: FrameType | None) -> None:
        """Raise KeyboardInterrupt, so that whatever was begun is cleaned up."""
        self.received = number
        raise KeyboardInterrupt

    @property
    def status(self) -> int | None:
        """Return the exit status that a shell gives a command which a signal ended."""
        return None if self.received is None else 128 + self.received


@contextmanager
def raising_signals() -> Iterator[Signals]:
    """Turn SIGINT and SIGTERM into KeyboardInterrupt while the body runs."""
    signals = Signals()
    handlers: dict[int, Any] = dict.fromkeys(_handled(), signals.interrupt)
    if handlers:
        handlers[WAKE] = _do_nothing
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        with _waking_main_thread(signals) if before else nullcontext():
            yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _waking_main_thread(signals: Signals) -> Iterator[None]:
    """Interrupt the system call that the main thread waits in when a signal arrives in another thread.

    Only the main thread runs Python's handlers, and the threads of the kernel receive signals, too.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    main = main_thread().ident
    assert main is not None

    def wake() -> None:
        while number := os.read(reader, 1):
            while signals.received is None and number[0] != WAKE:
                signal.pthread_kill(main, WAKE)
                sleep(WAKE_SECONDS)

    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    waker = Thread(target=wake, daemon=True)
    waker.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(writer)
        waker.join()
        os.close(reader)


def _do_nothing(*_: object) -> None:
    """Handle a signal that is sent for the sake of interrupting a system call."""


def _handled() -> list[signal.Signals]:
    # Python lets only its main thread set handlers. A job that a shell script runs in the background ignores
    # SIGINT, and stays that way.
    if current_thread() is not main_thread():
        return []
    return [each for each in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(each) is not signal.SIG_IGN]


@contextmanager
def all_or_nothing() -> Iterator[None]:
    """Say of an interrupt in the body, a call that commits last, what became of the change."""
    try:
        yield
    except CommitInterrupted as interrupt:
        raise Interrupted(str(interrupt)) from interrupt
    except KeyboardInterrupt as interrupt:
        raise Interrupted("interrupted: nothing was committed") from interrupt
