"""The tiers of the tests (README.md), the rules that assign them, their budgets, and the order of files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

HERE = Path(__file__).resolve().parent

# Strongest first: a test that two rules assign belongs to the first of their tiers.
TIERS = ("nightly", "long", "faults", "interop", "slow", "unit")


class Budget(NamedTuple):
    """The seconds that a tier may take, as the sum over its tests, and the most that one test may take."""

    tier: float
    test: float


# On two quiet cores. A busy machine exceeds them, so a run prints what exceeds them, and does not fail.
BUDGETS = {
    "unit": Budget(360, 10),
    "slow": Budget(420, 15),
    "interop": Budget(420, 25),
    "faults": Budget(300, 20),
    "long": Budget(1700, 40),
}

# The files that take longest run first, so that no process waits for one of them at the end.
LONGEST = (
    "interop/test_spark_timeline.py",
    "spark/test_driver_crashes.py",
    "spark/test_session_timezones.py",
    "faults/test_interleavings.py",
    "spark/test_streams.py",
    "spark/test_merging_by_tasks.py",
    "interop/test_spark_row_tracking.py",
    "interop/test_spark_feed.py",
    "interop/test_spark_writes.py",
    "interop/test_spark_reads.py",
    "read/test_skipping.py",
)

# The tiers of the tests in a folder or a file, and of tests that request a fixture, also through other ones.
FOLDERS = {
    "faults": "faults",
    "foreign": "interop",
    "integrations": "nightly",
    "interop": "interop",
    "spark": "long",
}
FILES = {
    "cli/test_cli_terminal.py": "long",
    "conformance/test_adapters.py": "interop",
    "conformance/test_archive.py": "interop",
    "faults/test_concurrent_writers.py": "long",
    "faults/test_unity_catalog.py": "long",
    "interop/test_conformance_java.py": "long",
    "interop/test_conformance_spark.py": "long",
    "interop/test_kernel_unity_catalog.py": "long",
    "interop/test_parse_json_differential.py": "long",
    "interop/test_spark_alters.py": "long",
    "interop/test_spark_changes.py": "long",
    "interop/test_spark_checkpoints.py": "long",
    "interop/test_spark_checksums.py": "long",
    "interop/test_spark_feed.py": "long",
    "interop/test_spark_foreign.py": "long",
    "interop/test_spark_pipeline.py": "long",
    "interop/test_spark_repairs.py": "long",
    "interop/test_spark_rewrites.py": "long",
    "interop/test_spark_row_tracking.py": "long",
    "interop/test_spark_statistics.py": "long",
    "interop/test_spark_timeline.py": "long",
    "interop/test_spark_vectors.py": "long",
    "interop/test_spark_writes.py": "long",
    "interop/test_view_writers.py": "long",
    "spark/test_core.py": "interop",
    "spark/test_executors.py": "interop",
    "spark/test_locations.py": "interop",
    "spark/test_spark_api.py": "interop",
    "spark/test_spark_columns.py": "interop",
    "spark/test_statement_rewriting.py": "interop",
    "spark/test_statements.py": "interop",
}
FIXTURES = {"corpora": "interop", "browser": "interop"}

# The marker expression where the command line has none: alone, and where it names files or folders.
DEFAULT = "unit"
DEFAULT_OF_PATHS = "not nightly"


def first_by_day(values: Iterable[Any], count: int = 1) -> list[Any]:
    """Return the parameters of a test whose first values run in each change, and the others at night."""
    by_day, at_night = list(values)[:count], list(values)[count:]
    tuples = (value if isinstance(value, tuple) else (value,) for value in at_night)
    return [*by_day, *(pytest.param(*value, marks=pytest.mark.nightly) for value in tuples)]


def rank_of(item: pytest.Item) -> int:
    """Return the rank of the file of a test: the longest files first, all others after them."""
    file = item.path.relative_to(HERE).as_posix()
    return LONGEST.index(file) if file in LONGEST else len(LONGEST)


def tier_of(item: pytest.Item) -> str:
    """Return the tier of a test: that of its marker, its fixtures, its file or its folder, or else `unit`.

    A property test is slow, because it draws many examples.
    """
    assigned = {name for name in TIERS if item.get_closest_marker(name)}
    file = item.path.relative_to(HERE)
    assigned.add(FILES.get(file.as_posix()) or FOLDERS.get(file.parts[0], "unit"))
    assigned.update(FIXTURES[name] for name in getattr(item, "fixturenames", ()) if name in FIXTURES)
    if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
        assigned.add("slow")
    return next(name for name in TIERS if name in assigned)


def lines_of_budgets(reports: Iterable[pytest.TestReport]) -> Iterator[str]:
    """Yield a line for each tier, and one for each test that exceeds its budget."""
    seconds: dict[str, dict[str, float]] = {tier: defaultdict(float) for tier in BUDGETS}
    for report in reports:
        tier = dict(report.user_properties).get("tier")
        if tier in seconds:
            seconds[tier][report.nodeid] += report.duration
    for tier, tests in seconds.items():
        budget, total = BUDGETS[tier], sum(tests.values())
        if tests:
            exceeded = ", exceeded" if total > budget.tier else ""
            yield f"{tier}: {len(tests):,} tests in {total:,.0f} s of {budget.tier:,.0f} s{exceeded}"
        for test, spent in sorted(tests.items(), key=lambda item: -item[1]):
            if spent > budget.test:
                yield f"  {spent:.0f} s of {budget.test:.0f} s: {test}"
