"""The threads of iterators: they end with their block, and an iterator may be collected in one of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from delta_variant._threads import Threads


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
    assert not any(thread.name.startswith("delta-variant_") for thread in threading.enumerate())


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
