"""The rules of `tiers.py` name files that exist, and name the tests that exceed their budget."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tiers import BUDGETS, CASES_BY_DAY, FILES, HERE, LONGEST, TIERS, lines_of_budgets, mark_cases_at_night


@pytest.mark.parametrize("file", sorted({*FILES, *LONGEST, *CASES_BY_DAY}))
def test_the_file_exists(file: str):
    assert (HERE / file).is_file()


@pytest.mark.parametrize(
    ("file", "test"), [(file, test) for file in CASES_BY_DAY for test in CASES_BY_DAY[file]]
)
def test_the_test_exists(file: str, test: str):
    assert f"def {test}(" in (HERE / file).read_text(encoding="utf-8")


def test_the_cases_of_each_change_are_spread_over_all():
    file, test = "interop/test_spark_changes.py", "test_spark_reads_exactly_the_changes_of_each_operation"
    marked: list[int] = []
    cases: list[Any] = [
        SimpleNamespace(
            name="", path=HERE / file, originalname=test, add_marker=lambda _, case=case: marked.append(case)
        )
        for case in range(6)
    ]
    mark_cases_at_night(cases)
    assert CASES_BY_DAY[file][test] == 2
    assert marked == [1, 2, 4, 5]


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
        "long: 2 tests in 44 s of 1,650 s",
        "  43 s of 40 s: a",
    ]
