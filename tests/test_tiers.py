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
    of_tier = [("tier", tier)]
    return pytest.TestReport(
        name, (name, 0, name), {}, "passed", None, when, duration=seconds, user_properties=of_tier
    )


def test_a_run_names_the_tests_and_the_tiers_that_exceed_their_budget():
    reports = [report("a", "long", "setup", 40), report("a", "long", "call", 3)]
    reports += [report("b", "long", "call", 1)]
    reports += [report(f"c{number}", "faults", "call", 9) for number in range(60)]
    assert list(lines_of_budgets(reports)) == [
        "faults: 60 tests in 540 s of 300 s, exceeded",
        "long: 2 tests in 44 s of 1,700 s",
        "  43 s of 40 s: a",
    ]
