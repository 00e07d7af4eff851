"""Rows of docs/audit-rules.md. `python tests/support/rule_catalogue.py` writes them for the audit page."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CATALOGUE = ROOT / "docs" / "audit-rules.md"
TEXTS = ROOT / "delta_variant" / "reports" / "rule_texts.json"

HEADER = ["Rule", "Must hold", "Source", "Severity", "Remedy"]
RULE_CELL = re.compile(r'(?:<a id="(?P<anchor>[^"]+)"></a>)?(?P<id>[A-Z]+(?:-[A-Z]+)?[0-9]*)')
REFERENCE = re.compile(r"\[([^\]]+)\](?:\[([^\]]+)\])?")


@dataclass(frozen=True)
class Row:
    """One row of the catalogue."""

    id: str
    anchor: str | None
    must_hold: str
    source: str
    severity: str
    remedy: str


def parse_row(line: str) -> Row:
    """Return a line of a table as a row."""
    cells = [cell.strip() for cell in line.removeprefix("|").removesuffix("|").split("|")]
    assert len(cells) == len(HEADER), line
    first, must_hold, source, severity, remedy = cells
    found = RULE_CELL.fullmatch(first)
    assert found is not None, line
    return Row(found["id"], found["anchor"], must_hold, source, severity, remedy)


def parse_rows(text: str) -> list[Row]:
    """Return the rows of all tables of the catalogue."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    headers = ("| " + " | ".join(HEADER) + " |", "|---" * len(HEADER) + "|")
    return [parse_row(line) for line in lines if line not in headers]


def plain_text(markdown: str) -> str:
    """Return a cell without links and code marks."""
    return REFERENCE.sub(r"\1", markdown).replace("`", "")


def rule_texts() -> str:
    """Return the rows as the JSON text that the package contains."""
    rows = parse_rows(CATALOGUE.read_text(encoding="utf-8"))
    texts = [
        {
            "rule": row.id,
            "severity": row.severity,
            "must_hold": plain_text(row.must_hold),
            "source": plain_text(row.source),
        }
        for row in rows
    ]
    return "[\n" + ",\n".join(json.dumps(each, ensure_ascii=False) for each in texts) + "\n]\n"


if __name__ == "__main__":
    TEXTS.write_text(rule_texts(), encoding="utf-8")
