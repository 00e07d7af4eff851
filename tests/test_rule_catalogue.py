"""docs/audit-rules.md explains each rule that an audit can report, and no other rule.

Ids in the comments and docstrings of the repository are ids that a catalogue of the repository explains.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from itertools import groupby, pairwise

import pytest
from support.rule_catalogue import CATALOGUE, REFERENCE, ROOT, TEXTS, Row, parse_rows, rule_texts

from delta_variant.operations.audit import RULES
from delta_variant.operations.audit.file_rules import NATIVE_ROW_RULES, NATIVE_SCHEMA_RULES
from delta_variant.operations.audit.findings import SEVERITIES

ANCHOR = re.compile(r'<a id="([^"]*)"></a>')
VARIANT_OF_RULE = re.compile(r"`((?:[A-Z]+-)?[A-Z]+[0-9]+)([a-z])`")
DEFINITION = re.compile(r"^\[([^\]]+)\]: (https://\S+)$", re.MULTILINE)
SOURCES = (
    "PROTOCOL.md, [",
    "VariantEncoding.md, [",
    "VariantShredding.md, [",
    "parquet.thrift, [",
    "this library: ",
)
NATIVE_CODE = re.compile(r'"((?:[A-Z]-)?[A-Z]{1,2}[0-9]*[a-z]?)"')

CASES = ROOT / "protocol_fixtures" / "README.md"
CASE_ID = re.compile(r"^\| ((?:[A-Z]-)?[A-Z]+[0-9]+) \|", re.MULTILINE)
CITATION = re.compile(r"\b(?:[EP]-[A-Z][0-9]*|(?:AU|ST|TR|[A-Z])[1-9][0-9]*)\b(?![.-][0-9a-z])")
REQUIREMENTS = re.compile(r"\brequirements?(?:\.md|:?\s+(?:[A-Z]+-?[A-Z]*)?[0-9])")
NOT_RULES = {"C1", "S3", "V1", "V2"}
"""Names in the form of an id: control characters, the object store, and versions of formats."""


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


def test_the_package_contains_the_texts_of_the_catalogue():
    assert TEXTS.read_text(encoding="utf-8") == rule_texts(), "run `python tests/support/rule_catalogue.py`"


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


@pytest.mark.parametrize(
    ("source", "rules"), [("schema.rs", NATIVE_SCHEMA_RULES), ("rows.rs", NATIVE_ROW_RULES)]
)
def test_the_tables_of_native_rules_have_the_codes_of_the_native_checks(source: str, rules):
    text = (ROOT / "rust" / "src" / "check" / source).read_text("utf-8")
    codes = [code for code, _, _ in rules]
    assert sorted(codes) == sorted(set(NATIVE_CODE.findall(text)))


def test_the_catalogue_names_each_code_with_a_letter():
    documented = {
        f"{rule}{letter}" for rule, letter in VARIANT_OF_RULE.findall("".join(r.must_hold for r in ROWS))
    }
    codes = {code for code, _, _ in (*NATIVE_SCHEMA_RULES, *NATIVE_ROW_RULES)}
    assert {code for code in codes if code[-1].islower()} == documented


def test_a_code_with_a_letter_is_in_the_row_of_its_id():
    for row in ROWS:
        assert {rule for rule, _ in VARIANT_OF_RULE.findall(row.must_hold)} <= {row.id}


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_the_documents_link_to_the_catalogue(document: str):
    assert "](docs/audit-rules.md)" in (ROOT / document).read_text(encoding="utf-8")


def python_prose(source: str) -> Iterator[tuple[int, str]]:
    """Yield the comments and docstrings of a Python file, each with its line."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and "noqa" not in token.string:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.lineno, str(node.value.value)


def rust_prose(source: str) -> Iterator[tuple[int, str]]:
    """Yield the comments of a Rust file that have a line of their own, each with its line."""
    for number, line in enumerate(source.splitlines(), start=1):
        if line.lstrip().startswith("//"):
            yield number, line


def unexplained(explained: set[str], prose: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield the citations that no catalogue explains, each with the line of its comment or docstring."""
    for number, text in prose:
        yield from ((number, each) for each in REQUIREMENTS.findall(text))
        yield from ((number, each) for each in CITATION.findall(text) if each not in explained)


IDS = {row.id for row in ROWS} | set(CASE_ID.findall(CASES.read_text("utf-8"))) | NOT_RULES


@pytest.mark.parametrize(
    ("folder", "suffix", "prose"),
    [
        ("conformance", ".py", python_prose),
        ("delta_variant", ".py", python_prose),
        ("tests", ".py", python_prose),
        ("rust", ".rs", rust_prose),
    ],
)
def test_each_id_in_the_sources_is_explained(folder: str, suffix: str, prose):
    files = sorted(path for path in (ROOT / folder).rglob(f"*{suffix}") if "target" not in path.parts)
    assert files
    texts = {path: path.read_text("utf-8") for path in files}
    found = [
        f"{path.relative_to(ROOT)}:{line}: {citation}"
        for path, text in texts.items()
        # Most files need not be parsed to see it.
        if any(unexplained(IDS, iter([(1, text)])))
        for line, citation in unexplained(IDS, prose(text))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("comment", "citations"),
    [
        ("# Bounds are wide (ST15).", []),
        ("# Bounds are wide (AU99).", ["AU99"]),
        ("# Bounds are wide (X10, E-Q9).", ["X10", "E-Q9"]),
        ("# Tables in S3 have V2 checkpoints, U+10FFFF, INT96 and z85.", []),
        ("# Bounds are wide (requirements 6.5).", ["requirements 6"]),
        ("# Bounds are wide (requirements ST15, requirements.md).", ["requirements ST1", "requirements.md"]),
        ('"""Bounds are wide (AU99)."""', ["AU99"]),
        ('TYPE = "AU99"', []),
    ],
)
def test_a_citation_that_nothing_explains_is_found(comment: str, citations: list[str]):
    assert [each for _, each in unexplained(IDS, python_prose(comment))] == citations
