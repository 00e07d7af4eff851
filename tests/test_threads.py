"""A machine that starts no more threads is an error that says so."""

from __future__ import annotations

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
