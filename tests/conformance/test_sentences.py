"""Each normative sentence of the specifications has conformance cases."""

from __future__ import annotations

import csv
from fnmatch import filter as matching
from pathlib import Path

import pytest
from support.locations import OWN_CASES

from delta_variant_conformance.case import load_cases

with (OWN_CASES / "SENTENCES.tsv").open(encoding="utf-8", newline="") as file:
    SENTENCES = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))

# The sentences of each specification, as a review of them counted.
COUNTS = {
    "parquet-variant-shredding.md": 49,
    "delta-variant-type-rfc.md": 18,
    "delta-variant-shredding-rfc.md": 15,
    "spark-shredding-draft-repo-copy.md": 27,
}


def test_every_sentence_has_cases_that_exist():
    ids = [case.id for case in load_cases(OWN_CASES)]
    for each in SENTENCES:
        patterns = each["cases"].split()
        assert patterns, each["sentence"]
        assert [pattern for pattern in patterns if not matching(ids, pattern)] == [], each["sentence"]


@pytest.mark.parametrize("specification", COUNTS)
def test_the_sentences_are_those_of_the_specification(corpora: Path, specification: str):
    text = " ".join((corpora.parent / "specs" / specification).read_text(encoding="utf-8").split())
    found = [each["sentence"] for each in SENTENCES if each["specification"] == specification]
    assert len(set(found)) == COUNTS[specification]
    assert [sentence for sentence in found if " ".join(sentence.split()) not in text] == []
