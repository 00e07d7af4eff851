"""The budgets of requests and of commits: tries, time, waits and warnings."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from obstore.exceptions import GenericError

import delta_variant as dv
from delta_variant.errors import CommitConflictError, CommitUnknownError, StoreError
from delta_variant.log import transaction
from delta_variant.log.transaction import CommitAttempts
from delta_variant.storage import request
from delta_variant.storage.request import Retries
from delta_variant.storage.store import Store, open_store
from delta_variant.write import commit

BROKEN = "Generic S3 error: Error performing PUT http://h/k in 1ms - x\n retries: %d,\n kind: Interrupted,"
BROKEN_BODY = "Generic S3 error: HTTP error: request or response body error\n kind: Interrupted,"


class Clock:
    """A clock that only waits advance: by the time of the wait, or by `step` if that is longer."""

    def __init__(self) -> None:
        self.now = 0.0
        self.step = 0.0
        self.waits: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += max(seconds, self.step)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (request, transaction):
        monkeypatch.setattr(module, "monotonic", clock.monotonic)
        monkeypatch.setattr(module, "sleep", clock.sleep)
    return clock


def fail(*errors: str) -> tuple[list[int], Any]:
    """Return a list that counts calls, and a function that raises errors, the last one for ever."""
    calls: list[int] = []

    def send() -> None:
        calls.append(1)
        raise GenericError(errors[min(len(calls), len(errors)) - 1])

    return calls, send


def test_a_request_is_repeated_as_often_as_the_budget_allows(clock):
    calls, send = fail(BROKEN % 0)
    with pytest.raises(GenericError):
        Retries(most=3).run("x", send)
    assert (len(calls), clock.waits) == (4, [0.1, 0.2, 0.4])


@pytest.mark.parametrize(("error", "expected"), [(BROKEN % 2, 2), (BROKEN_BODY, 1), ("404", 1)])
def test_the_repetitions_of_the_client_count(clock, error, expected):
    """Three tries of the client leave one of four; it has repeated a body as often as it may."""
    calls, send = fail(error)
    with pytest.raises(GenericError):
        Retries(most=3).run("x", send)
    assert len(calls) == expected


def test_no_repetition_begins_after_the_time(clock, caplog):
    clock.step = 70.0
    calls, send = fail(BROKEN % 0)
    with pytest.raises(GenericError):
        Retries(most=100, seconds=180).run("x", send)
    assert len(calls) == 4
    assert "x: the request took 210 s, 4 tries failed" in caplog.text


@pytest.fixture
def store(tmp_path: Any) -> Store:
    return open_store(tmp_path / "t")


def lose(attempts: CommitAttempts, *, is_hidden: bool = False) -> None:
    while True:
        attempts.lose(5, is_hidden=is_hidden)


def test_a_commit_ends_after_its_attempts_or_its_time(clock, store, monkeypatch):
    monkeypatch.setattr(transaction, "MAX_ATTEMPTS", 7)
    with pytest.raises(CommitConflictError, match="within 7 attempts and 0 seconds"):
        lose(CommitAttempts(store, "id"))
    monkeypatch.setattr(transaction, "MAX_ATTEMPTS", 1000)
    clock.step = 50.0
    with pytest.raises(CommitConflictError, match="within 13 attempts and 600 seconds") as caught:
        lose(CommitAttempts(store, "id"))
    assert caught.value.version == 5


@pytest.mark.parametrize(("most", "attempts"), [(1000, 10), (3, 3)])
def test_a_commit_that_may_be_this_one_ends_as_unknown(clock, store, monkeypatch, most, attempts):
    monkeypatch.setattr(transaction, "MAX_ATTEMPTS", most)
    with pytest.raises(CommitUnknownError, match="exists, but does not return it"):
        lose(CommitAttempts(store, "id"), is_hidden=True)
    assert len(clock.waits) == attempts - 1


def test_the_bound_of_a_wait_grows_and_shrinks_with_the_time_waited(clock, store, monkeypatch):
    monkeypatch.setattr("delta_variant.log.transaction.Random", lambda _: Longest())
    monkeypatch.setattr(transaction, "MAX_ATTEMPTS", 40)
    clock.step = 0.5
    attempts = CommitAttempts(store, "id")
    with pytest.raises(CommitConflictError):
        lose(attempts)
    assert clock.waits[:3] == [0.01, 0.02, 0.04]
    assert max(clock.waits) < 0.1
    assert clock.waits[20] == pytest.approx(0.64 / 11**2)
    assert clock.waits[3:] == sorted(clock.waits[3:], reverse=True)


class Longest:
    def uniform(self, shortest: float, longest: float) -> float:
        return longest


def test_a_commit_that_waits_long_is_logged_with_doubling_intervals(clock, store, caplog):
    caplog.set_level(logging.WARNING)
    clock.step = 10.0
    with pytest.raises(CommitConflictError):
        lose(CommitAttempts(store, "id"))
    assert [record.getMessage().split("first ")[1] for record in caplog.records] == [
        f"{times} times in {seconds} s, retrying"
        for times, seconds in [(4, 30), (7, 60), (13, 120), (25, 240), (49, 480)]
    ]


def test_a_table_that_exists_and_is_not_listed_is_an_error_after_a_few_tries(tmp_path, monkeypatch):
    dv.write_table(tmp_path / "t", [{"id": 1}])
    monkeypatch.setattr(commit, "sleep", lambda _: None)
    for module in ("operations.write", "write.commit"):
        monkeypatch.setattr(f"delta_variant.{module}.load_existing", lambda *_: None)
    with pytest.raises(StoreError, match="lists no file of the log; check that the credentials permit"):
        dv.write_table(tmp_path / "t", [{"id": 2}], mode="append")
    assert len(list((tmp_path / "t").glob("*.parquet"))) == 1
