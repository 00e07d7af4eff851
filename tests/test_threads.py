"""Pools of threads: they end with their block, are collected in any thread, and report that none starts."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import delta_variant as dv
from delta_variant._threads import Threads
from delta_variant.errors import DeltaVariantError


@pytest.fixture
def table(tmp_path: Path) -> str:
    for version in range(3):
        rows = [{"event": {"id": version}}]
        dv.write_table(tmp_path / "t", rows, mode="append", variant_columns=["event"])
    return str(tmp_path / "t")


def test_work_that_has_not_begun_is_cancelled_after_an_error_only():
    done: list[int] = []

    def work(number: int) -> None:
        time.sleep(0.01)
        done.append(number)

    with Threads(1) as threads:
        for number in range(5):
            threads.submit(work, number)
    assert done == [0, 1, 2, 3, 4]
    done.clear()

    def fail() -> None:
        with Threads(1) as threads:
            for number in range(5):
                threads.submit(work, number)
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        fail()
    assert len(done) < 5


def test_an_iterator_that_is_collected_in_a_thread_of_its_pool_ends_without_an_error():
    held: list[Iterator[int]] = []
    closed = threading.Event()
    errors: list[BaseException] = []

    def close() -> None:
        iterator = held.pop()
        try:
            iterator.close()
        except RuntimeError as error:
            errors.append(error)
        closed.set()

    def numbers() -> Iterator[int]:
        with Threads(2) as threads:
            yield 0
            threads.submit(lambda: (started.wait(10), close()))
            yield 1

    started = threading.Event()
    iterator = numbers()
    assert [next(iterator), next(iterator)] == [0, 1]
    held.append(iterator)
    del iterator
    started.set()
    assert closed.wait(10)
    assert errors == []


def test_an_iterator_that_is_closed_awaits_no_work():
    release, ended = threading.Event(), threading.Event()

    def work() -> None:
        release.wait(10)
        ended.set()

    def numbers() -> Iterator[int]:
        with Threads(1) as threads:
            threads.submit(work)
            yield 0

    iterator = numbers()
    next(iterator)
    iterator.close()
    assert not ended.is_set()
    release.set()
    assert ended.wait(10)


def refuse(*_: Any) -> None:
    # The text of CPython.
    raise RuntimeError("can't start new thread")


def test_a_pool_reports_that_it_cannot_start_a_thread(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Thread, "start", refuse)
    with (
        pytest.raises(DeltaVariantError, match=r"cannot start a thread .* `ulimit -u`") as caught,
        Threads(2) as pool,
    ):
        pool.submit(print)
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_other_errors_of_a_pool_are_not_changed():
    with Threads(1) as pool:
        assert pool.submit(max, 1, 2).result() == 2
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(max, 1, 2)


@pytest.mark.parametrize(
    "operation",
    [
        lambda table: dv.read_table(table).to_table(),
        dv.history,
        dv.audit_table,
        lambda table: dv.optimize(table),
    ],
)
def test_an_operation_that_starts_threads_reports_that_it_cannot(table, monkeypatch, operation):
    monkeypatch.setattr(Thread, "start", refuse)
    with pytest.raises(DeltaVariantError, match="cannot start a thread"):
        operation(table)
