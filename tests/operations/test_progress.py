"""The progress that operations report to an observer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from threading import Event, Timer
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from rich.progress import Progress
from typer.testing import CliRunner

import delta_variant as dv
from delta_variant import _progress_bar
from delta_variant._progress import advance, begin, observe
from delta_variant._progress_bar import Meter, show_bar
from delta_variant.cli.app import app
from delta_variant.operations.audit import THREADS, check_files


@dataclass
class Recorder:
    """Records the phases of an operation: name, totals, and what was done."""

    phases: list[dict[str, Any]] = field(default_factory=list)

    def begin(self, phase: str, files: int | None, bytes_: int | None, rows: int | None) -> None:
        totals = {"phase": phase, "total": files, "size": bytes_, "total_rows": rows}
        self.phases.append({**totals, "files": 0, "bytes": 0, "rows": 0})

    def advance(self, files: int, bytes_: int, rows: int) -> None:
        for name, number in (("files", files), ("bytes", bytes_), ("rows", rows)):
            self.phases[-1][name] += number


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Return a table of three files with ten rows each."""
    uri = str(tmp_path / "t")
    for first in (0, 10, 20):
        dv.write_table(uri, pa.table({"id": range(first, first + 10)}), mode="append")
    return uri


def read(table: str) -> None:
    dv.read_table(table).to_table()


def delete(table: str) -> None:
    dv.delete(table, "id = 1 or id = 21")


OPERATIONS: dict[str, tuple[Callable[[str], object], str, int]] = {
    "read": (read, "reading", 30),
    "audit": (dv.audit_table, "checking files", 30),
    "repair": (dv.repair_statistics, "comparing statistics", 0),
    "optimize": (dv.optimize, "rewriting", 30),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_reports_all_files_and_rows(table: str, name: str):
    run, phase, rows = OPERATIONS[name]
    recorder = Recorder()
    with observe(recorder):
        run(table)
    last = recorder.phases[-1]
    assert (last["phase"], last["total"], last["files"], last["rows"]) == (phase, 3, 3, rows)
    assert last["size"] in (None, last["bytes"])
    assert last["total_rows"] in (None, rows)


def test_a_read_knows_its_rows_unless_some_may_be_skipped(table: str):
    recorder = Recorder()
    with observe(recorder):
        read(table)
        dv.read_table(table, where="id < 15").to_table()
    assert [(each["total"], each["total_rows"]) for each in recorder.phases] == [(3, 30), (2, None)]


def test_a_sort_and_the_rewrite_after_it_report_all_rows(table: str):
    recorder = Recorder()
    with observe(recorder):
        dv.optimize(table, sort_by="id")
    assert [(each["phase"], each["total_rows"], each["rows"]) for each in recorder.phases[-2:]] == [
        ("sorting", 30, 30),
        ("rewriting", 30, 30),
    ]


def test_the_bar_moves_within_a_file(table: str):
    with Progress(disable=True) as bar:
        meter = Meter(bar)
        meter.begin("reading", 1, None, 200)
        meter.advance(0, 0, 50)
        assert bar.tasks[0].percentage == 25


def test_a_bar_shows_the_phase_and_the_counts_and_then_disappears(table: str):
    shown = StringIO()
    with show_bar(Console(file=shown, force_terminal=True, width=80)):
        dv.optimize(table)
    assert "rewriting" in shown.getvalue()
    assert "3/3 files" in shown.getvalue()
    # The line is erased at the end.
    assert shown.getvalue().endswith("\x1b[1A\x1b[2K")


def test_progress_shows_nothing_where_standard_error_is_not_a_terminal(
    table: str, capfd: pytest.CaptureFixture[str]
):
    with dv.progress():
        assert dv.optimize(table).files_before == 3
    assert capfd.readouterr() == ("", "")


def test_a_long_check_of_a_file_reports_the_bytes_read_so_far():
    recorder, reported = Recorder(), Event()

    class Observed(Recorder):
        def advance(self, files: int, bytes_: int, rows: int) -> None:
            recorder.advance(files, bytes_, rows)
            if bytes_ == 40:
                reported.set()

    def check(file: Any) -> str:
        file.bytes_read = 40
        return "reported" if reported.wait(30) else "not reported"

    recorder.begin("checking files", 1, 100, None)
    with observe(Observed()):
        assert list(check_files([file_of(100)], check)) == ["reported"]
    assert (recorder.phases[-1]["files"], recorder.phases[-1]["bytes"]) == (1, 100)


def test_no_check_of_a_file_begins_after_an_error():
    begun, ends = [], Event()

    def check(file: Any) -> None:
        begun.append(file)
        if len(begun) == 1:
            raise ValueError("broken")
        ends.wait(30)

    timer = Timer(1, ends.set)
    timer.start()
    with pytest.raises(ValueError, match="broken"):
        list(check_files([file_of(1) for _ in range(100)], check))
    timer.join()
    assert len(begun) <= THREADS + 1


def file_of(size: int) -> Any:
    return SimpleNamespace(add={"size": size}, bytes_read=0)


def test_a_delete_reports_the_files_that_may_match(table: str):
    recorder = Recorder()
    with observe(recorder):
        delete(table)
    assert [(each["phase"], each["total"], each["files"]) for each in recorder.phases] == [
        ("rewriting", 2, 2)
    ]


def test_a_conversion_reports_the_bytes_of_its_source(tmp_path: Path):
    for number in range(2):
        pq.write_table(pa.table({"id": range(10)}), tmp_path / f"{number}.parquet")
    recorder = Recorder()
    with observe(recorder):
        dv.convert(tmp_path, tmp_path / "t")
    (phase,) = recorder.phases
    size = sum(path.stat().st_size for path in tmp_path.glob("*.parquet"))
    assert phase == {
        "phase": "writing", "total": 2, "size": size, "total_rows": None,
        "files": 2, "bytes": size, "rows": 20
    }  # fmt: skip


def test_nothing_is_reported_without_an_observer():
    recorder = Recorder()
    with observe(recorder):
        begin("reading")
    begin("writing")
    advance(files=1)
    assert [each["phase"] for each in recorder.phases] == ["reading"]


@pytest.mark.parametrize(
    ("counts", "wide", "narrow"),
    [
        (
            {"files": 3, "total_files": 12, "bytes": 40_000_000, "total_bytes": 99_000_000, "rows": 5_000},
            "3/12 files  40.0 MB of 99.0 MB, 20.0 MB/s  5,000 rows, 2,500/s",
            "3/12 files  5,000 rows, 2,500/s",
        ),
        (
            {"files": 1, "total_files": 1, "bytes": 40_000, "total_bytes": 40_000},
            "1/1 file  40.0 kB of 40.0 kB, 20.0 kB/s",
            "1/1 file  40.0 kB, 20.0 kB/s",
        ),
        (
            {"bytes": 40_000_000, "total_bytes": 99_000_000, "rows": 5_000},
            "40.0 MB of 99.0 MB, 20.0 MB/s  5,000 rows, 2,500/s",
            "40.0 MB, 20.0 MB/s  5,000 rows",
        ),
        ({"files": 7}, "7 files", "7 files"),
    ],
)
def test_the_bar_has_a_rate_at_any_width(monkeypatch, counts: dict[str, int], wide: str, narrow: str):
    monkeypatch.setattr("time.monotonic", lambda: 12.0)
    assert Meter(started=10.0, **counts).text() == wide
    assert Meter(started=10.0, is_narrow=True, **counts).text() == narrow


def test_a_log_without_a_terminal_gets_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch):
    now = [100.0]
    monkeypatch.setattr(_progress_bar.time, "monotonic", lambda: now[0])
    lines: list[str] = []
    with observe(Meter(print_line=lines.append, started=100.0, printed=100.0)):
        begin("checking files", files=4)
        for second in (4, 11, 15, 22):
            now[0] = 100.0 + second
            advance(files=1)
    assert lines == ["checking files: 2/4 files", "checking files: 4/4 files"]


def test_a_command_prints_its_progress_without_a_terminal_and_a_quiet_one_does_not(
    table: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(_progress_bar, "LINE_SECONDS", 0)
    done = CliRunner().invoke(app, ["audit", table])
    assert "checking files: 3/3 files" in done.stderr
    assert "checking files" not in done.stdout
    assert "checking" not in CliRunner().invoke(app, ["--quiet", "audit", table]).stderr
