"""Every conformance case with our own functions, in this process; types and bytes must match exactly."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.locations import OWN_CASES, ROOT, list_corpus

from delta_variant_conformance.case import Case
from delta_variant_conformance.corpus import load_cases
from delta_variant_conformance.engine import Engine
from delta_variant_conformance.engines import start
from delta_variant_conformance.grade import grade
from delta_variant_conformance.invoke import invoke

CASES = load_cases([OWN_CASES, *list_corpus("parquet-testing")])
OWN_IDS = {case.id for case in load_cases([OWN_CASES])}


def parameters(cases: list[Case]) -> list[Any]:
    """Return a parameter for each case. Those of the corpora are not in the unit tier."""
    tiers = [() if case.id in OWN_IDS else pytest.mark.interop for case in cases]
    return [pytest.param(case, id=case.id, marks=tier) for case, tier in zip(cases, tiers, strict=True)]


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """Return our own engine."""
    return start("ours", tmp_path_factory.mktemp("engine"))


@pytest.mark.parametrize("case", parameters(CASES))
def test_the_case_passes(ours: Engine, case: Case, tmp_path: Path):
    result = grade(case, "ours", invoke(ours, case, tmp_path), is_ours=True)
    assert result.status == "pass", f"{case.about}: expected {result.expected}, got {result.got}"
    assert result.notes == ()


EITHER = [case for case in CASES if case.error is not None and case.has_answer]

# The cases with both a value and an error that ours reads. It raises an error for the others.
READ = """
decode/array_values_out_of_order decode/bytes_after_* decode/decimal4_of_10_digits decode/object_fields_*
decode/object_of_fields_that_share_a_value decode/object_with_gaps
file/annotated_without_a_version file/not_annotated* file/underscored_*
table/clustered_by_a_variant table/default_of_a_variant table/generated_variant
table/mapped_by_id_without_ids table/property_of_another_word
table/property_without_the_feature table/shredded_without_the_feature
unshred/element_group_null unshred/empty_object_in_value unshred/metadata_alone unshred/no_value_*
unshred/null_value_of_an_unshredded_row unshred/object_in_value unshred/rest_in_utf16_order
unshred/shredded_name_not_in_metadata
"""


@pytest.mark.parametrize("case", parameters(EITHER))
def test_ours_reads_exactly_the_listed_cases_that_allow_both(ours: Engine, case: Case, tmp_path: Path):
    is_read = any(fnmatch.fnmatchcase(case.id, pattern) for pattern in READ.split())
    wanted = {key: value for key, value in case.expect.items() if (key != "error") == is_read}
    result = grade(replace(case, expect=wanted), "ours", invoke(ours, case, tmp_path), is_ours=True)
    assert result.status == "pass", f"expected {result.expected}, got {result.got}"


def test_each_listed_case_allows_both_a_value_and_an_error():
    ids = [case.id for case in EITHER]
    assert [pattern for pattern in READ.split() if not fnmatch.filter(ids, pattern)] == []


def test_parquet_testing_is_complete(corpora: Path):
    """128 valid files, 6 invalid ones, 3 where an error or a value passes, and 28 values."""
    cases = load_cases([corpora / "parquet-testing"])
    counted = {
        "read": [
            case for case in cases if case.kind == "unshred" and case.error is None and not case.options
        ],
        "rejected": [case for case in cases if case.error is not None and not case.has_answer],
        "either": [case for case in cases if case.error is not None and case.has_answer],
        "lenient": [case for case in cases if case.options],
        "values": [case for case in cases if case.kind == "decode"],
    }
    assert {name: len(found) for name, found in counted.items()} == {
        "read": 128,
        "rejected": 6,
        "either": 3,
        "lenient": 3,
        "values": 28,
    }
    assert {case.id for case in counted["lenient"]} == {f"{case.id}-lenient" for case in counted["either"]}


def cases_named(page: str) -> Iterator[str]:
    """Yield the patterns of cases in the cells of a page: `kind/name`, or `name` of the same kind."""
    for cell in re.split(r"[|\n]", page):
        kind = ""
        for found in re.finditer(r"`(?:([a-z]+)/)?([\w*]+)`", cell):
            kind = found[1] or kind
            if kind:
                yield f"{kind}/{found[2]}"


def test_the_cases_on_the_page_of_engines_exist():
    page = (
        (ROOT / "protocol_fixtures" / "ENGINES.md")
        .read_text(encoding="utf-8")
        .partition("## The cases of this folder")[2]
    )
    patterns = list(cases_named(page))
    assert {"decode/object_field_twice_*", "unshred/typed_uuid"} <= set(patterns)
    ids = [case.id for case in CASES]
    assert [pattern for pattern in patterns if not fnmatch.filter(ids, pattern)] == []
