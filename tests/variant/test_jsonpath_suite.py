"""The JSONPath Compliance Test Suite: `variant_get` returns what RFC 9535 says, or rejects the path.

Paths have the grammar of Spark's `variant_get`, which differs from the RFC: quoted names have no escapes, and
a name after a point ends only at the next point or bracket. Each case has one of the outcomes below.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache
from typing import Any

import pytest
from support.locations import CORPORA

from delta_variant import parse_json, to_json, variant_get
from delta_variant.errors import ExpressionError
from delta_variant.variant import paths

pytestmark = pytest.mark.usefixtures("corpora")

# What Spark's grammar and that of the RFC both accept, and read alike: names, indexes and [*].
NAME = r"""\.[^\W\d]\w*|\['[^'\\\x00-\x1f]*'\]|\["[^"\\\x00-\x1f]*"\]"""
COMMON = re.compile(rf"\$(?:{NAME}|\[(?:0|[1-9]\d{{0,8}})\]|\[\*\])*")
# What only Spark's grammar accepts, or what it reads as other names.
OF_SPARK = re.compile(r"""\$(?:\.[^.\[]+|\['[^']*'\]|\["[^"]*"\]|\[\d+\])+""")

OUTCOMES = {
    "equal": 28,
    "rejected: not a path": 149,
    "rejected: slices, filters, lists and descendants": 400,
    "different: a path of Spark": 126,
}


@cache
def cases() -> list[dict[str, Any]]:
    tests: list[dict[str, Any]] = json.loads((CORPORA / "jsonpath-cts" / "cts.json").read_text("utf-8"))[
        "tests"
    ]
    return tests


def found(case: dict[str, Any]) -> list[Any]:
    """Return the values that `variant_get` finds."""
    variants = parse_json([json.dumps(case["document"])])
    (text,) = to_json(variant_get(variants, case["selector"])).to_pylist()
    value = [] if text is None else json.loads(text)
    return value if text is None or "[*]" in case["selector"] else [value]


def outcome(case: dict[str, Any]) -> str:
    selector, is_valid = case["selector"], not case.get("invalid_selector")
    try:
        paths.parse_pattern(selector)
    except ExpressionError:
        return f"rejected: {'slices, filters, lists and descendants' if is_valid else 'not a path'}"
    if is_valid and COMMON.fullmatch(selector):
        expected = case.get("results") or [case["result"]]
        assert found(case) in expected, case["name"]
        return "equal"
    assert OF_SPARK.fullmatch(selector), case["name"]
    return "different: a path of Spark"


def test_each_case_has_an_outcome():
    assert Counter(map(outcome, cases())) == OUTCOMES
    assert sum(OUTCOMES.values()) == len(cases()) == 703


def test_every_path_of_names_indexes_and_wildcards_is_accepted():
    valid = [case["selector"] for case in cases() if not case.get("invalid_selector")]
    common = [selector for selector in valid if COMMON.fullmatch(selector)]
    assert len(common) == OUTCOMES["equal"]


def test_normalized_paths_of_names_are_read_and_written_alike():
    keys = {key for case in cases() for key in case.get("result_paths", ())}
    of_names = [key for key in keys if not re.search(r"\[\d+\]", key)]
    assert len(of_names) == 28
    assert [key for key in of_names if paths.normalize(paths.parse(key)) != key] == []
