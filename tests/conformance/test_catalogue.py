"""The catalogue: each rule has a case that keeps it and one that breaks it, or a reason why not."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support.locations import OWN_CASES

PROJECT = Path(__file__).resolve().parents[2]
CASES = OWN_CASES / "cases"
CATALOGUE = PROJECT / "protocol_fixtures" / "README.md"

# The number of rules of each section of the catalogue, by prefix.
RULES = {
    "E": {"E-M": 11, "E-V": 7, "E-O": 9, "E-A": 3, "E-Q": 5},
    "P": {"P-S": 12, "P-T": 7, "P-X": 5},
    "R": {"R": 23},
    "W": {"W": 14},
    "O": {"O": 19},
    "T": {"T": 16},
    "H": {"H": 10},
    "Q": {"Q": 13},
    "K": {"K": 5},
    "Z": {"Z": 7},
    "ST": {"ST": 19},
    "TR": {"TR": 3},
}

HEADING = re.compile(r"### .*\((?P<sections>[A-Z, ]+)\)")
NAMED = re.compile(r"(?P<test>(?:rust/)?tests/[\w/]+\.(?:py|rs)::\w+)|(?P<case>[a-z]+/[\w*]+)")


@dataclass(frozen=True)
class Rule:
    """A row of the catalogue; a cell has cases and tests, or a reason after a dash."""

    id: str
    section: str
    text: str
    keeps: str
    breaks: str


def catalogue() -> Iterator[Rule]:
    """Yield the rows of the tables below `## Rules`."""
    sections = ""
    for line in CATALOGUE.read_text(encoding="utf-8").partition("## Rules")[2].splitlines():
        if heading := HEADING.fullmatch(line):
            sections = heading["sections"]
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if sections and len(cells) == 4 and re.match(r"[A-Z]", cells[0]) and any(map(str.isdigit, cells[0])):
            yield Rule(cells[0], sections, cells[1], cells[2], cells[3])


ROWS = list(catalogue())
SECTIONS = {letter for row in ROWS for letter in row.section.split(", ")}


@cache
def cases() -> dict[str, Any]:
    """Return each case by `kind/name`."""
    files = sorted(CASES.glob("*/*/case.json"))
    return {f"{file.parents[1].name}/{file.parent.name}": json.loads(file.read_bytes()) for file in files}


def named(cell: str) -> tuple[list[str], list[str]]:
    """Return the cases and the tests of a cell; `*` matches any part of a name."""
    matches = [] if cell.startswith("—") else list(NAMED.finditer(cell))
    return [m["case"] for m in matches if m["case"]], [m["test"] for m in matches if m["test"]]


def matching(pattern: str) -> list[str]:
    if "*" not in pattern:
        return [pattern] if pattern in cases() else []
    return [name for name in cases() if fnmatchcase(name, pattern)]


@cache
def functions(file: str) -> frozenset[str]:
    """Return the names of the functions in a test file."""
    text = (PROJECT / file).read_text(encoding="utf-8")
    if file.endswith(".rs"):
        return frozenset(re.findall(r"\bfn (\w+)", text))
    return frozenset(node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef))


def test_the_catalogue_has_rules():
    assert {"E", "P", "R", "W"} <= SECTIONS


@pytest.mark.parametrize("section", sorted(SECTIONS))
def test_every_rule_of_a_section_has_one_row(section: str):
    expected = [
        f"{prefix}{number}" for prefix, last in RULES[section].items() for number in range(1, last + 1)
    ]
    prefixes = tuple(RULES[section])
    found = [row.id for row in ROWS if re.sub(r"\d+$", "", row.id) in prefixes]
    assert found == expected


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_rule_has_a_case_for_each_verdict_or_a_reason(row: Rule):
    assert row.text, f"{row.id} has no text"
    for cell in (row.keeps, row.breaks):
        names, tests = named(cell)
        assert names or tests or re.fullmatch(r"— \w.{10,}", cell), (
            f"{row.id}: expected cases, tests or a reason, got {cell!r}"
        )


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_the_cases_of_a_rule_are_about_it(row: Rule):
    for verdict, cell in (("keeps", row.keeps), ("breaks", row.breaks)):
        for pattern in named(cell)[0]:
            found = matching(pattern)
            assert found, f"{row.id}: the case {pattern} does not exist"
            for name in found:
                case = cases()[name]
                assert row.id in case["rules"], f"{name} does not list the rule {row.id}"
                assert case["verdict"] == verdict, (
                    f"{row.id}: expected the verdict {verdict!r} of {name}, got {case['verdict']!r}"
                )


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_the_tests_of_a_rule_exist(row: Rule):
    for test in named(row.keeps)[1] + named(row.breaks)[1]:
        file, _, name = test.partition("::")
        assert (PROJECT / file).is_file(), f"{row.id}: {file} does not exist"
        assert name in functions(file), f"{row.id}: {file} has no {name}"


def test_every_case_is_in_the_catalogue():
    patterns = {name for row in ROWS for cell in (row.keeps, row.breaks) for name in named(cell)[0]}
    shown = {name for pattern in patterns for name in matching(pattern)}
    ids = {row.id for row in ROWS}
    missing = [name for name, case in cases().items() if name not in shown and ids & set(case["rules"])]
    assert missing == []


def test_cases_only_list_existing_rules():
    known = {
        f"{prefix}{number}"
        for section in RULES.values()
        for prefix, last in section.items()
        for number in range(1, last + 1)
    }
    unknown = {name: case["rules"] for name, case in cases().items() if not set(case["rules"]) <= known}
    assert unknown == {}
