"""Fixtures and settings of every test, and the tier of each test."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from support.locations import CORPORA
from tiers import (
    DEFAULT,
    DEFAULT_OF_PATHS,
    FOLDERS,
    HERE,
    lines_of_budgets,
    mark_cases_at_night,
    rank_of,
    tier_of,
)

from delta_variant import _native
from delta_variant.data_file import reader
from delta_variant.data_file import writer as file_writer
from delta_variant.operations.optimize import layout
from delta_variant.write import copy_on_write

# Servers of the tests are on the loopback interface, which a proxy of the environment does not reach.
os.environ.update(NO_PROXY="127.0.0.1,localhost", no_proxy="127.0.0.1,localhost")
# Otherwise Spark resolves the name of this machine, which can fail or take long.
os.environ.update(SPARK_LOCAL_IP="127.0.0.1", SPARK_LOCAL_HOSTNAME="localhost")

# A command in the background of a shell ignores SIGINT, and so do all processes that it starts.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Property tests draw the same few examples in each run, and many with `--hypothesis-profile nightly`.
# A busy machine is not a fault of the code.
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", UNTIMED, max_examples=30, derandomize=True)
settings.register_profile("nightly", UNTIMED, max_examples=500)
settings.load_profile("quick")


def pytest_configure(config: pytest.Config) -> None:
    """Select the unit tier where the command names neither markers nor paths."""
    if not config.option.markexpr:
        config.option.markexpr = DEFAULT_OF_PATHS if _has_paths(config) else DEFAULT


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return a process for each core, or none for the files that a command names, which start sooner here."""
    return 0 if _has_paths(config) else os.cpu_count() or 1


def _has_paths(config: pytest.Config) -> bool:
    return config.args_source is pytest.Config.ArgsSource.ARGS


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip the folders of other tiers when only the unit tier is selected, because they import Spark."""
    is_other_tier = collection_path.parent == HERE and collection_path.name in FOLDERS
    return True if config.option.markexpr == "unit" and is_other_tier else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test with its tier, by which `-m` selects, and put the longest files first."""
    mark_cases_at_night(items)
    for item in items:
        tier = tier_of(item)
        item.add_marker(tier)
        item.user_properties.append(("tier", tier))
    items.sort(key=rank_of)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what each tier took of its budget, where a run has several processes."""
    if not terminalreporter.config.option.numprocesses:
        return
    reports = [report for reports in terminalreporter.stats.values() for report in reports]
    terminalreporter.section("budgets of the tiers")
    for line in lines_of_budgets(report for report in reports if isinstance(report, pytest.TestReport)):
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def corpora() -> Path:
    """Return the folder of the corpora. Fail where it is missing: only the unit tier runs without it."""
    if not CORPORA.is_dir():
        pytest.fail(
            f"expected the corpora in {CORPORA}, which is not a folder; run `make corpora DIR=…` and set "
            "DELTA_VARIANT_CORPORA to that folder"
        )
    return CORPORA


class _NativeOfLargeFiles:
    """The native library, with inference that shreds the paths of a file of any size."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_native, name)

    def infer(self, arrays: Any, max_leaves: int, max_depth: int, compatible: bool, *_: Any) -> Any:
        """Infer the schema that suits the rows, however few there are."""
        return _native.infer(arrays, max_leaves, max_depth, compatible)


@pytest.fixture
def small_files_are_separated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Separate residual rows from the first row on, and from files of any size."""
    create = file_writer.FileSeries.__init__

    def init(series: Any, store: Any, new_path: Any, options: Any, *others: Any, **named: Any) -> None:
        size = options.sample_bytes if options.is_residual else 1
        create(series, store, new_path, replace(options, sample_bytes=size), *others, **named)

    monkeypatch.setattr(file_writer.FileSeries, "__init__", init)
    monkeypatch.setattr(file_writer, "MIN_SEPARATED_BYTES", 0)
    monkeypatch.setattr(layout, "MIN_SEPARATED_BYTES", 0)


@pytest.fixture
def small_files_are_shredded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shred files of a few rows like large ones, so that a test of shredded files needs no large data.

    It has no effect in other processes.
    """
    monkeypatch.setattr("delta_variant.data_file.shredding._native", _NativeOfLargeFiles())


@pytest.fixture(params=[True, False], ids=["shared files", "files of their own"])
def shares_files(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Return whether rewritten small files share new files. It has no effect in other processes."""
    if not request.param:
        monkeypatch.setattr(copy_on_write, "MAX_SMALL_SHARE", 0)
    return bool(request.param)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the paths of the data files that are opened, in order."""
    paths: list[str] = []
    original = reader.open_file

    def recording(store: Any, path: str, columns: Any) -> Any:
        paths.append(path)
        return original(store, path, columns)

    monkeypatch.setattr("delta_variant.read.file_reader.open_file", recording)
    return paths
