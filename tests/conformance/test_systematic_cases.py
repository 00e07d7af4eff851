"""The cases of protocol_fixtures/build/systematic.py: every type, boundary value and layout."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from support.locations import OWN_CASES, ROOT

from delta_variant_conformance.case import Case
from delta_variant_conformance.corpus import load_cases
from delta_variant_conformance.decoding import PRIMITIVES
from delta_variant_conformance.engines import start
from delta_variant_conformance.grade import grade
from delta_variant_conformance.invoke import Answer, invoke

pytestmark = pytest.mark.slow

SCRIPT = ROOT / "protocol_fixtures" / "build" / "systematic.py"


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    folder = tmp_path_factory.mktemp("systematic")
    subprocess.run([sys.executable, str(SCRIPT), str(folder)], check=True, capture_output=True, timeout=200)
    return load_cases([folder])


def test_the_kit_has_at_least_5000_cases_with_them(cases: list[Case]):
    assert len(load_cases([OWN_CASES, cases[0].folder.parents[2]])) >= 5000
    assert Counter(case.kind for case in cases) == {
        "unshred": 2895,
        "select": 804,
        "shred": 435,
        "decode": 261,
        "encode": 171,
        "stats": 117,
        "table": 84,
    }


def test_each_primitive_type_has_cases_of_each_kind(cases: list[Case]):
    for kind in ("unshred", "shred", "decode"):
        text = "".join(str(case.expect) for case in cases if case.kind == kind)
        names = {name for name, _, _ in PRIMITIVES.values()}
        assert {name for name in names if f"'{name}':" not in text} - {"null"} == set()


def test_this_library_passes_all_of_them(cases: list[Case], tmp_path: Path):
    ours = start("ours", tmp_path)
    failed = []
    for number, case in enumerate(cases):
        scratch = tmp_path / str(number)
        scratch.mkdir()
        result = grade(case, "ours", invoke(ours, case, scratch), is_ours=True)
        if result.status != "pass":
            failed.append((case.id, result.expected, result.got))
    assert failed == []


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        # The field is lost, the element is null, and a text is an empty one.
        ("int64_largest_in_a_field", [["0101000166", "020000"]]),
        ("int64_largest_in_an_element", [["010000", "0301000100"]]),
        ("string_ascii_in_typed_value", [["010000", "01"]]),
    ],
)
def test_a_lost_or_altered_value_is_found(cases: list[Case], name: str, rows: list[list[str]]):
    [case] = [case for case in cases if case.id == f"unshred/{name}"]
    answer = Answer("answered", {"rows": [{"$variant": row} for row in rows]})
    assert grade(case, "liar", answer).status == "wrong value"
