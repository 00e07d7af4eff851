"""The cases of other projects' suites of Variants: each has the outcome that is recorded for it.

`sail-variant.tsv`, `datafusion-variant.tsv` and `duckdb-variant.tsv` name the outcome of each case: `equal`,
`different` with the reason and whose answer is right, or `out of scope` with the reason.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest
from suites import SUITES
from support.archives import CaseOutcome
from support.locations import ROOT

FILES: dict[tuple[str, str], list[CaseOutcome]] = defaultdict(list)
for suite_name, suite in SUITES.items():
    for each in suite.recorded:
        FILES[suite_name, each.file].append(each)

CONFORMANCE = ROOT / "docs" / "about" / "conformance.md"


@pytest.mark.parametrize("name", SUITES)
def test_every_case_has_an_outcome(name: str, corpora: Path):
    suite = SUITES[name]
    cases = suite.read(corpora / suite.folder)
    listed = [(each.file, each.case) for each in suite.recorded]
    assert listed == [(file, case.name) for file, found in cases.items() for case in found]
    for each in suite.recorded:
        assert each.outcome in ("equal", "different", "out of scope")
        assert bool(each.reason) == (each.outcome != "equal")
        assert " " in each.reason or each.reason in {"", *suite.reasons}


@pytest.mark.parametrize(("name", "file"), FILES, ids=map("-".join, FILES))
def test_the_cases_of_a_file_have_their_outcomes(name: str, file: str, corpora: Path, tmp_path: Path):
    suite, recorded = SUITES[name], FILES[name, file]
    observed = suite.observe(corpora / suite.folder, suite.read(corpora / suite.folder)[file], tmp_path)
    assert observed == {each.case: expected(each, suite.reasons) for each in recorded}


def expected(recorded: CaseOutcome, reasons: Sequence[str]) -> tuple[str, str]:
    """Return the outcome that is observed: a case without our answer differs, unless a rule excludes it."""
    if recorded.outcome == "equal" or recorded.reason in reasons:
        return recorded.outcome, recorded.reason
    return "different", ""


def test_the_documentation_counts_the_outcomes():
    rows = []
    for suite in SUITES.values():
        counts = suite.counts()
        cells = (counts.total(), *(counts[outcome] for outcome in ("equal", "different", "out of scope")))
        rows.append(f"| {suite.folder} | {' | '.join(f'{cell:,}' for cell in cells)} |")
    text = CONFORMANCE.read_text(encoding="utf-8")
    assert [row for row in rows if row not in text] == []
    assert sum(suite.counts()["equal"] for suite in SUITES.values()) >= 1_100
