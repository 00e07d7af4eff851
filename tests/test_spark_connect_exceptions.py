"""The guide to Spark lists what sessions of Spark Connect lack. Only tests of that are skipped on Connect."""

from __future__ import annotations

import ast
import re

import pytest
from support.documents import ROOT, Page

TESTS = sorted((ROOT / "tests" / "spark").glob("test_*.py"))
TABLE = re.compile(r"^\| not on Spark Connect .*\n\|[-|]+\n((?:\|.*\n)+)", re.MULTILINE)
SKIPS = {"skip", "skipif", "xfail", "importorskip"}


def exceptions(guide: str) -> list[str]:
    """Return the first column of the table of a guide."""
    table = TABLE.search(guide)
    assert table, "expected a table `| not on Spark Connect | … |`"
    return [row.split("|")[1].strip() for row in table[1].splitlines()]


def calls(tree: ast.AST, *names: str) -> list[ast.Call]:
    """Return the calls of methods and functions with these names."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [call for call in found if ast.unparse(call.func).rpartition(".")[2] in names]


def classic_reasons(source: str) -> set[str]:
    """Return what the marker `classic` names in the source of tests."""
    return {ast.literal_eval(call.args[0]) for call in calls(ast.parse(source), "classic")}


def other_skips(source: str) -> list[str]:
    """Return the skips that depend on the kind of session, other than by the marker."""
    tree = ast.parse(source)
    conditional = [node for node in ast.walk(tree) if isinstance(node, ast.If)]
    guarded = [call for node in conditional if _is_about_connect(node.test) for call in calls(node, *SKIPS)]
    direct = [call for call in calls(tree, *SKIPS) if _is_about_connect(call)]
    return [ast.unparse(call) for call in guarded + direct]


def _is_about_connect(node: ast.AST) -> bool:
    return bool(re.search(r"remote|connect", ast.unparse(node), re.IGNORECASE))


def test_the_guide_lists_what_the_skipped_tests_need_and_nothing_else():
    listed = exceptions(Page("docs/guides/spark/operate.md").text)
    marked = {reason for path in TESTS for reason in classic_reasons(path.read_text("utf-8"))}
    assert marked == set(listed)
    assert len(listed) == len(marked)


def test_no_other_test_is_skipped_on_connect():
    assert {path.name: other_skips(path.read_text("utf-8")) for path in TESTS} == {
        path.name: [] for path in TESTS
    }


GUIDE = """
| not on Spark Connect | why | instead |
|---|---|---|
| `a` | b | c |
| d | e | f |

| g | h |
"""


def test_the_list_is_the_table_of_the_guide():
    assert exceptions(GUIDE) == ["`a`", "d"]


@pytest.mark.parametrize(
    ("source", "reasons"),
    [
        ('@pytest.mark.classic("RDDs")\ndef test(): ...', {"RDDs"}),
        ('CASES = [pytest.param(1, marks=pytest.mark.classic("RDDs"))]', {"RDDs"}),
        ('@pytest.mark.slow("RDDs")\ndef test(): ...', set()),
    ],
)
def test_the_reasons_are_those_of_the_marker(source: str, reasons: set[str]):
    assert classic_reasons(source) == reasons


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ('if is_remote():\n    pytest.skip("no RDDs")', 1),
        ('@pytest.mark.skipif(is_remote(), reason="no RDDs")\ndef test(): ...', 1),
        ('pytest.skip("not on Spark Connect")', 1),
        ('@pytest.mark.classic("RDDs")\ndef test(): ...', 0),
        ('if INSTALLED < (4, 1):\n    pytest.skip("since 4.1")', 0),
        ("if is_remote():\n    expected = 2", 0),
    ],
)
def test_a_skip_by_the_kind_of_session_is_found(source: str, count: int):
    assert len(other_skips(source)) == count
