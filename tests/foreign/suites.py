"""The suites of other projects whose cases have a recorded outcome, and how their cases are run.

    python tests/foreign/suites.py SUITE

records the outcomes of a suite again. It keeps the reasons of cases that are not equal, and writes TODO where
one is missing.
"""

from __future__ import annotations

import csv
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import datafusion_suite
import duckdb_suite
import sail_suite
from support.archives import OUTCOMES, CaseOutcome, read_outcomes
from support.locations import CORPORA

Outcomes: TypeAlias = Mapping[str, tuple[str, str]]


@dataclass(frozen=True)
class Suite:
    """Cases in a folder of the corpora: how they are read and run, and why some cannot be.

    `observe` returns the outcome of each case of a file, with a key of `reasons` if it is out of scope.
    """

    folder: str
    read: Callable[[Path], Mapping[str, Sequence[Any]]]
    observe: Callable[[Path, Sequence[Any], Path], Outcomes]
    reasons: Mapping[str, str]

    @property
    def recorded(self) -> list[CaseOutcome]:
        """Return the recorded outcomes."""
        return read_outcomes(CaseOutcome, f"{self.folder}.tsv")

    def counts(self) -> Counter[str]:
        """Return the number of cases with each outcome."""
        return Counter(each.outcome for each in self.recorded)


SUITES = {
    module.__name__.removesuffix("_suite"): Suite(folder, module.read_cases, module.observe, module.REASONS)
    for module, folder in (
        (sail_suite, "sail-variant"),
        (datafusion_suite, "datafusion-variant"),
        (duckdb_suite, "duckdb-variant"),
    )
}


def record(suite: Suite) -> None:
    """Write the outcomes of a suite."""
    path = OUTCOMES / f"{suite.folder}.tsv"
    known = {(each.file, each.case): each for each in suite.recorded} if path.exists() else {}
    comments = [f"# {key}: {reason}.\n" for key, reason in suite.reasons.items()]
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(
            "# The outcome of each case; `test_foreign_suites.py` checks every row. Reasons of one word:\n"
        )
        file.writelines(comments)
        rows = csv.writer(file, delimiter="\t", lineterminator="\n")
        rows.writerow(("file", "case", "outcome", "reason"))
        for name, cases in suite.read(CORPORA / suite.folder).items():
            with tempfile.TemporaryDirectory() as folder:
                observed = suite.observe(CORPORA / suite.folder, cases, Path(folder))
            for case, (outcome, reason) in observed.items():
                before = known.get((name, case))
                if outcome == "different":
                    outcome, reason = (before.outcome, before.reason) if before else (outcome, "TODO")
                rows.writerow((name, case, outcome, reason))


if __name__ == "__main__":
    record(SUITES[sys.argv[1]])
