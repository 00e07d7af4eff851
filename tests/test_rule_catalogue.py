"""docs/audit-rules.md explains each rule that an audit can report, and no other rule."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from string import ascii_lowercase

import pytest

from delta_variant.operations.audit import RULES
from delta_variant.operations.audit.findings import SEVERITIES

ROOT = Path(__file__).resolve().parents[1]
CATALOGUE = ROOT / "docs" / "audit-rules.md"

HEADER = ["Rule", "Must hold", "Source", "Severity", "Remedy"]
ANCHOR = re.compile(r'<a id="([^"]*)"></a>')
RULE_CELL = re.compile(r'(?:<a id="(?P<anchor>[^"]+)"></a>)?(?P<id>[A-Z]+(?:-[A-Z]+)?[0-9]*)')
VARIANT_OF_RULE = re.compile(r"`((?:[A-Z]+-)?[A-Z]+[0-9]+)([a-z])`")
DEFINITION = re.compile(r"^\[([^\]]+)\]: (https://\S+)$", re.MULTILINE)
REFERENCE = re.compile(r"\[([^\]]+)\](?:\[([^\]]+)\])?")
SOURCES = (
    "PROTOCOL.md, [",
    "VariantEncoding.md, [",
    "VariantShredding.md, [",
    "parquet.thrift, [",
    "this library: ",
)
NATIVE_RULE = re.compile(r'(?:\b(?:add|refuse)\(\s*|\brule: )"([^"]+)"')


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
    cells = [cell.strip() for cell in line.removeprefix("|").removesuffix("|").split("|")]
    assert len(cells) == len(HEADER), line
    first, must_hold, source, severity, remedy = cells
    found = RULE_CELL.fullmatch(first)
    assert found is not None, line
    return Row(found["id"], found["anchor"], must_hold, source, severity, remedy)


def parse_rows(text: str) -> list[Row]:
    lines = [line for line in text.splitlines() if line.startswith("|")]
    headers = ("| " + " | ".join(HEADER) + " |", "|---" * len(HEADER) + "|")
    return [parse_row(line) for line in lines if line not in headers]


TEXT = CATALOGUE.read_text(encoding="utf-8")
ROWS = parse_rows(TEXT)


def test_the_catalogue_has_the_ids_and_severities_of_the_rule_tables():
    documented = Counter((row.id, row.severity) for row in ROWS)
    assert set(documented) == {(rule.id, rule.severity) for rule in RULES}
    assert set(documented.values()) == {1}
    assert {row.severity for row in ROWS} == set(SEVERITIES)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.id}-{row.severity}")
def test_each_row_has_a_rule_a_source_and_a_remedy(row: Row):
    assert row.must_hold.endswith(".")
    assert ". " not in row.must_hold, "the rule is one sentence"
    assert row.source.startswith(SOURCES)
    assert row.source != "this library:"
    assert row.remedy.endswith(".")


def test_each_id_has_one_anchor_in_its_first_row():
    anchors = [(row.id, row.anchor) for row in ROWS if row.anchor is not None]
    ids = list(dict.fromkeys(row.id for row in ROWS))
    assert anchors == [(rule, rule.lower()) for rule in ids]
    assert ANCHOR.findall(TEXT) == [anchor for _, anchor in anchors]


def test_the_rows_of_an_id_are_adjacent_and_the_most_severe_is_first():
    assert [rule for rule, _ in groupby(row.id for row in ROWS)] == list(
        dict.fromkeys(row.id for row in ROWS)
    )
    for row, following in pairwise(ROWS):
        if row.id == following.id:
            assert SEVERITIES.index(row.severity) < SEVERITIES.index(following.severity)


def test_each_reference_to_a_section_has_a_definition():
    # Markdown ignores the case of labels.
    defined = Counter(name.lower() for name, _ in DEFINITION.findall(TEXT))
    used = {(label or name).lower() for name, label in REFERENCE.findall(DEFINITION.sub("", TEXT))}
    assert set(defined) == used
    assert set(defined.values()) == {1}


def test_the_catalogue_names_each_rule_of_the_native_checks():
    sources = [
        (ROOT / "rust" / "src" / "check" / name).read_text("utf-8") for name in ("schema.rs", "rows.rs")
    ]
    native = {rule for source in sources for rule in NATIVE_RULE.findall(source)}
    documented = {
        f"{rule}{letter}" for rule, letter in VARIANT_OF_RULE.findall("".join(r.must_hold for r in ROWS))
    }
    assert {rule for rule in native if rule[-1].islower()} == documented
    assert {rule.rstrip(ascii_lowercase) for rule in native} <= {row.id for row in ROWS}


def test_a_native_rule_with_a_letter_is_in_the_row_of_its_id():
    for row in ROWS:
        assert {rule for rule, _ in VARIANT_OF_RULE.findall(row.must_hold)} <= {row.id}


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_the_documents_link_to_the_catalogue(document: str):
    assert "](docs/audit-rules.md)" in (ROOT / document).read_text(encoding="utf-8")
