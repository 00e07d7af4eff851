"""Spark's answers to functions of Variants in Sail's tests: documented examples and scenarios."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import sqlglot
from select_driver import Driver, is_variant

from delta_variant import functions
from delta_variant.errors import DeltaVariantError

Lines = list[tuple[str, ...]]

REASONS = {
    "nullability": "whether a result may be NULL, which the types of this library do not say",
    "plan": "the text of a plan of Sail",
    "statement": "statements that create and alter tables; tests/interop compares tables with Spark",
}


@dataclass(frozen=True)
class Case:
    """A query with the rows that Spark returns, None for an error, or a reason why it is out of scope."""

    name: str
    sql: str
    expected: Lines | None
    is_ordered: bool = False
    reason: str = ""


def read_cases(corpus: Path) -> dict[str, list[Case]]:
    """Return the cases of both files; `7.2` is the second example of the seventh scenario."""
    gold = json.loads((corpus / "gold.json").read_text(encoding="utf-8"))["tests"]
    scenarios = json.loads((corpus / "scenarios.json").read_text(encoding="utf-8"))
    examples = ((each["input"]["query"], [(line,) for line in each["input"]["result"]]) for each in gold)
    return {
        "gold.json": [Case(str(number), *each) for number, each in enumerate(examples, 1)],
        "scenarios.json": [
            case for number, each in enumerate(scenarios, 1) for case in _cases_of(str(number), each["steps"])
        ],
    }


def _cases_of(name: str, steps: Sequence[dict[str, Any]]) -> Iterator[Case]:
    query = next((each["text"] for each in steps if each["step"] == "query"), "")
    last = steps[-1]
    reasons = {
        "nullability": last["step"] == "query schema",
        "plan": last["step"] == "query plan matches snapshot",
        "statement": any("template" in each["step"] for each in steps),
    }
    if reason := next((reason for reason, holds in reasons.items() if holds), None):
        yield Case(name, query, None, reason=reason)
        return
    table = last.get("table") or []
    examples = next((index for index, row in enumerate(table) if row[0] == "case"), len(table))
    expected = None if last["step"].startswith("query error") else table[1:examples]
    names, *rows = table[examples:] or [["case"], [""]]
    for index, row in enumerate(rows, 1):
        texts = {f"<{key}>": value for key, value in zip(names, row, strict=True)}
        filled = (
            None if expected is None else [tuple(_fill(cell, texts) for cell in line) for line in expected]
        )
        suffix = f".{index}" if names != ["case"] or row != [""] else ""
        yield Case(name + suffix, _fill(query, texts), filled, last["step"].endswith("ordered"))


def _fill(text: str, values: dict[str, str]) -> str:
    return re.sub("|".join(map(re.escape, values)), lambda match: values[match[0]], text)


def answer(sql: str) -> Lines:
    """Return our rows as Spark prints them."""
    rows = Driver("databricks").select(sql)
    return list(zip(*(_texts(rows, name) for name in rows.schema.names), strict=True))


def _texts(rows: pa.Table, name: str) -> list[str]:
    if is_variant(rows.schema.field(name)):
        texts = functions.to_json(rows[name]).to_pylist()
    else:
        is_float = pa.types.is_floating(rows.schema.field(name).type)
        text = f"to_json(cast(`{name}` as variant))" if is_float else f"cast(`{name}` as string)"
        texts = Driver("databricks").value(sqlglot.parse_one(text, read="databricks"), rows)[1].to_pylist()
    return ["NULL" if text is None else text for text in texts]


def observe(corpus: Path, cases: Sequence[Case], folder: Path) -> dict[str, tuple[str, str]]:
    """Return the outcome of each case of a file, and a key of REASONS if it is out of scope."""
    return {case.name: _outcome(case) for case in cases}


def _outcome(case: Case) -> tuple[str, str]:
    if case.reason:
        return "out of scope", case.reason
    try:
        found: Lines | None = answer(case.sql)
    except DeltaVariantError:
        found = None
    if found is not None and case.expected is not None and not case.is_ordered:
        return ("equal" if sorted(found) == sorted(case.expected) else "different"), ""
    return ("equal" if found == case.expected else "different"), ""
