"""The rules of `tiers.py` name files that exist, and name the tests that exceed their budget."""

from __future__ import annotations

import pytest
from tiers import BUDGETS, FILES, HERE, LONGEST, TIERS, lines_of_budgets


@pytest.mark.parametrize("file", sorted({*FILES, *LONGEST}))
def test_the_file_exists(file: str):
    assert (HERE / file).is_file()


def test_every_tier_of_each_change_has_a_budget():
    assert {*BUDGETS, "nightly"} == set(TIERS)


def report(name: str, tier: str, when: str, seconds: float) -> pytest.TestReport:
    return pytest.TestReport(name, (name, 0, name), {tier: 1}, "passed", None, when, duration=seconds)


def test_a_run_names_the_tests_and_the_tiers_that_exceed_their_budget():
    reports = [report("a", "unit", "setup", 4), report("a", "unit", "call", 3)]
    reports += [report("b", "unit", "call", 1)]
    reports += [report(f"c{number}", "slow", "call", 9) for number in range(60)]
    assert list(lines_of_budgets(reports)) == [
        "unit: 2 tests in 8 s of 360 s",
        "  7 s of 5 s: a",
        "slow: 60 tests in 540 s of 480 s, exceeded",
    ]
