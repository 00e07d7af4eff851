"""DuckDB's tests of Variants: which of its recorded answers DuckDB has for rows in files of this library.

Tables and Parquet files with Variants are replaced by files of ours before a query reads them, and casts to
VARIANT within a query pass through a file as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlglot
from duckdb_session import Rows, Session, Source

from delta_variant.errors import DeltaVariantError

PLACEHOLDER = re.compile(r"\{(?!TEST_DIR\}|DATA_DIR\})[a-z_0-9]+\}")
INTERNALS = re.compile(
    r"\bstats\(|pragma_|parquet_schema|parquet_metadata|\bglob\(|^\s*(explain|set|reset|checkpoint|pragma)\b",
    re.IGNORECASE,
)
LARGE = re.compile(
    r"tpcds|tpch|big_table|list_of_variant|zonemap|parquet_shredding_bug|variant_shredding.test_slow|stats_merging"
)
REASONS = {
    "loop": "a loop over values that the corpus does not have",
    "error": "the text of an error of DuckDB",
    "internals": "settings, plans, statistics or storage of DuckDB",
    "large": "a file of many rows, or of tables that an extension generates",
    "duckdb": "DuckDB itself has another answer: its version differs, or a file or an extension is missing",
    "type": "a value whose type Parquet Variants do not have, or that has another one there",
    "no Variant": "does not read or write Variants that could be ours",
}


@dataclass(frozen=True)
class Case:
    """A statement or a query of a test file, and the lines that DuckDB's authors expect."""

    name: str
    file: str
    kind: str
    arg: str
    sql: str
    expected: Sequence[str]

    @property
    def label(self) -> str | None:
        """Return the name that this query shares with others that have the same rows."""
        words = self.arg.split()
        return words[2] if len(words) > 2 else None

    def sort(self, lines: Sequence[str]) -> Rows:
        """Return the lines, sorted if the order of the rows is open."""
        return sorted(lines) if "rowsort" in self.arg.split() else list(lines)


@cache
def read_cases(corpus: Path) -> Mapping[str, list[Case]]:
    """Return the cases of each test file; their names are their numbers in the suite."""
    files: dict[str, list[Case]] = {}
    for number, each in enumerate(json.loads((corpus / "sql_cases.json").read_text(encoding="utf-8")), 1):
        case = Case(str(number), each["file"], each["kind"], each["arg"], each["sql"], each["expected"] or ())
        files.setdefault(case.file, []).append(case)
    return files


def excluded(case: Case) -> str | None:
    """Return why a case cannot be asked, a key of REASONS, or None."""
    rules = (
        ("large", LARGE.search(case.file)),
        ("loop", PLACEHOLDER.search(case.sql)),
        ("error", "error" in case.arg.split()),
        ("internals", INTERNALS.search(case.sql)),
    )
    return next((reason for reason, holds in rules if holds), None)


@dataclass(frozen=True)
class Answer:
    """The lines of a query, or whether the rows that a statement wrote are equal; None for an error."""

    value: Rows | bool | None
    passed: int = 0
    error: str = ""


def run(corpus: Path, cases: Sequence[Case], folder: Path, source: Source) -> list[Answer]:
    """Return the answer to each case of a file, in order."""
    folder.mkdir()
    session = Session(corpus, folder, source)
    answers = []
    for case in cases:
        try:
            answers.append(Answer(_answer(session, case), session.passed))
        except (duckdb.Error, DeltaVariantError, sqlglot.ParseError, pytest.fail.Exception) as error:
            answers.append(Answer(None, error=str(error)))
    session.connection.close()
    return answers


def _answer(session: Session, case: Case) -> Rows | bool | None:
    reason = excluded(case)
    if reason == "loop":
        return None
    if case.kind == "statement":
        return session.execute(case.sql) if reason == "internals" else session.state(case.sql)
    return case.sort(session.ask(case.sql))


def observe(corpus: Path, cases: Sequence[Case], folder: Path) -> dict[str, tuple[str, str]]:
    """Return the outcome of each case of a file, and a key of REASONS if it is out of scope."""
    if LARGE.search(cases[0].file):
        return {case.name: ("out of scope", "large") for case in cases}
    ours = run(corpus, cases, folder / "ours", "ours")
    answers = {case.name: answer for case, answer in zip(cases, ours, strict=True)}
    unclear = [case for case in cases if not excluded(case) and _is_unclear(case, answers[case.name])]
    sources: tuple[Source, ...] = ("duckdb", "arrow") if unclear else ()
    others = [run(corpus, cases, folder / source, source) for source in sources]
    labels: dict[str | None, Any] = {}
    found = {}
    for case, *theirs in zip(cases, *others, strict=False) if others else ((case,) for case in cases):
        expected = True if case.kind == "statement" else case.sort(case.expected)
        if case.label and theirs:
            expected = labels.setdefault(case.label, expected or theirs[0].value)
        found[case.name] = _outcome(case, expected, answers[case.name], theirs)
    return found


def _is_unclear(case: Case, answer: Answer) -> bool:
    """Return whether DuckDB has to say what it answers on its own."""
    expected = True if case.kind == "statement" else case.sort(case.expected)
    return bool(case.label) or answer.value != expected


def _outcome(case: Case, expected: Any, ours: Answer, others: Sequence[Answer]) -> tuple[str, str]:
    reason = excluded(case)
    if reason is None and ours.value == expected:
        reason = "" if ours.passed else "no Variant"
    elif reason is None:
        differing = (
            name for name, each in zip(("duckdb", "type"), others, strict=True) if each.value != expected
        )
        reason = next(differing, None)
    if reason:
        return "out of scope", reason
    return ("different" if reason is None else "equal"), ""
