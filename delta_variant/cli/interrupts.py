"""Handle interrupts: SIGTERM and SIGINT end a command after it has cleaned up."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from threading import Thread, current_thread, main_thread
from time import sleep
from types import FrameType
from typing import Any

WAKE = signal.SIGURG
WAKE_SECONDS = 0.05


class Interrupted(BaseException):
    """An interrupt of a command that changes a table. The message says whether the change was committed."""


class Signals:
    """The signal that interrupted the command, or None."""

    def __init__(self) -> None:
        self.received: int | None = None

    def interrupt(self, number: int, _: FrameType | None) -> None:
        """Raise KeyboardInterrupt, so that the running operation cleans up."""
        self.received = number
        raise KeyboardInterrupt

    @property
    def status(self) -> int | None:
        """Return the exit status of a process that was ended by the signal, as shells report it."""
        return None if self.received is None else 128 + self.received


@contextmanager
def raising_signals() -> Iterator[Signals]:
    """Turn SIGINT and SIGTERM into KeyboardInterrupt while the body runs."""
    signals = Signals()
    handlers: dict[int, Any] = dict.fromkeys(_signals_to_handle(), signals.interrupt)
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
    """Interrupt the system call of the main thread when a signal arrives in another thread.

    Only the main thread runs Python's signal handlers, but native threads receive signals, too.
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
    """Handle the signal whose only purpose is to interrupt a system call."""


def _signals_to_handle() -> list[signal.Signals]:
    # Only the main thread can set handlers. Background jobs of shell scripts must keep ignoring SIGINT.
    if current_thread() is not main_thread():
        return []
    return [each for each in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(each) is not signal.SIG_IGN]


@contextmanager
def all_or_nothing(otherwise: str = "nothing was committed") -> Iterator[None]:
    """Report whether an interrupt in the body, which commits last, left a commit.

    `otherwise` is what an interrupt before the commit leaves.
    """
    # Imported here, because the start of every command imports this module.
    from ..log.transaction import CommitInterrupted

    try:
        yield
    except CommitInterrupted as interrupt:
        raise Interrupted(str(interrupt)) from interrupt
    except KeyboardInterrupt as interrupt:
        raise Interrupted(f"interrupted: {otherwise}") from interrupt
