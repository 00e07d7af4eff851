"""The tiers of the tests, which README.md describes, the rules that assign them, and the order of files."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent

# Strongest first: a test that two rules assign belongs to the first of their tiers.
TIERS = ("nightly", "faults", "interop", "slow", "unit")

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

# The tier of the tests in a folder, and of the tests that request a fixture, also through other fixtures.
FOLDERS = {"faults": "faults", "foreign": "interop", "interop": "interop", "spark": "interop"}
FIXTURES = {"corpora": "interop", "browser": "interop"}

# The marker expression where the command line has none: alone, and where it names files or folders.
DEFAULT = "unit"
DEFAULT_OF_PATHS = "not nightly"


def rank_of(item: pytest.Item) -> int:
    """Return the rank of the file of a test: the longest files first, all others after them."""
    file = item.path.relative_to(HERE).as_posix()
    return LONGEST.index(file) if file in LONGEST else len(LONGEST)


def tier_of(item: pytest.Item) -> str:
    """Return the tier of a test: that of its own marker, its fixtures or its folder, or else `unit`.

    A property test is slow, because it draws many examples.
    """
    assigned = {name for name in TIERS if item.get_closest_marker(name)}
    assigned.add(FOLDERS.get(item.path.relative_to(HERE).parts[0], "unit"))
    assigned.update(FIXTURES[name] for name in getattr(item, "fixturenames", ()) if name in FIXTURES)
    if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
        assigned.add("slow")
    return next(name for name in TIERS if name in assigned)
