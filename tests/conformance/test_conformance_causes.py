"""The causes of findings: a deliberate mistake of an engine is one entry of the report, with its rule."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from support.documents import ROOT
from support.locations import OWN_CASES

from delta_variant_conformance.case import Case, load_cases
from delta_variant_conformance.differences import Difference, find_difference
from delta_variant_conformance.grade import Result, Status
from delta_variant_conformance.report import causes, json_report, text_lines
from delta_variant_conformance.runner import EngineRun, Run, run

WORKER = ROOT / "tests" / "support" / "faulty_worker.py"
KINDS = ("decode", "unshred", "file")

MISTAKES = {
    "int8 unsigned": ("int8: another value (read unsigned)", "E-V3", 2),
    "rest dropped": ("object: fields lost", "P-S1", 35),
    "timestamp_ntz as timestamp": (
        "timestamp_ntz: read as timestamp",
        "E-V3",
        4,
    ),
    "scale ignored": ("decimal: another value (the scale is ignored)", "P-T7", 26),
    "dates off by one": ("date: another value (off by one)", "E-V3", 2),
    "uuid little-endian": ("uuid: another value (its bytes in another order)", "E-V3", 2),
    "strings of 63 bytes": ("string: another value (cut)", "E-V2", 2),
    "arrays reversed": ("array: elements in another order", "P-S6", 15),
    "doubles rounded": ("double: another value (rounded to a float)", "P-S9 R15", 1),
    "false as true": ("boolean: another value", "E-V3", 2),
    "missing as null": ("object: fields added", "W5", 8),
    "null as SQL NULL": (
        "Variant null: read as SQL NULL",
        "W6",
        13,
    ),
    "sorted flag trusted": ("object: fields lost", "E-M7", 1),
}
"""The title, the rules, and the number of cases when this was written: no fewer find the mistake."""


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return [case for case in load_cases(OWN_CASES) if case.kind in KINDS]


def run_faulty(cases: list[Case], mistake: str) -> EngineRun:
    command = [sys.executable, str(WORKER), mistake]
    [engine] = run(cases, ["faulty"], command=lambda name: command).engines
    return engine


def test_the_worker_passes_all_cases_without_a_mistake(cases: list[Case]):
    assert causes(run_faulty(cases, "none")) == []


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_cause_that_names_what_is_wrong_and_the_rule(cases: list[Case], mistake: str):
    title, rules, number = MISTAKES[mistake]
    engine = run_faulty(cases, mistake)
    [cause] = causes(engine)
    assert (cause.status, cause.title, " ".join(cause.rules)) == ("wrong value", title, rules)
    assert len(cause.results) >= number
    assert len(cause.results) == len(engine.findings)
    lines = list(text_lines(Run(tuple(cases), (engine,))))
    assert len(lines) == 4
    assert lines[0].startswith("faulty: wrong value ")
    assert lines[0].endswith(f": {title}")


def test_a_mistake_with_many_symptoms_has_one_rule_in_all_its_causes(cases: list[Case]):
    found = causes(run_faulty(cases, "large count of one byte"))
    assert [cause.status for cause in found][:1] == ["accepted"]
    assert {cause.status for cause in found[1:]} == {"refused"}
    assert all("E-O2" in cause.rules for cause in found)


def case(name: str, *rules: str, **expect: Any) -> Case:
    return Case(name, name.partition("/")[0], Path(), rules, "keeps", "", f"About {name}", {}, expect)


@pytest.mark.parametrize(
    ("wanted", "found", "expected"),
    [
        ({"int8": -1}, {"int16": 255}, Difference("int8", "another value", frozenset({"read unsigned"}))),
        ({"int64": 5}, {"int64": -5}, Difference("int64", "another value", frozenset({"the sign is lost"}))),
        ({"decimal8": "1.0"}, {"int8": 1}, None),
        ({"double": 1.0}, {"int8": 1}, Difference("double", "read as int8")),
        ({"double": "NaN"}, {"double": 0.0}, Difference("double", "another value")),
        (None, {"null": None}, Difference("SQL NULL", "read as Variant null")),
        ({"array": [{"int8": 1}]}, {"array": []}, Difference("array", "elements lost")),
        ({"object": {"a": {"int8": 1}}}, {"object": {"a": None}}, Difference("int8", "read as SQL NULL")),
        ({"a": [{"int8": 1}, 5]}, {"a": [{"int8": 1}, 6]}, Difference("value", "another value")),
        ({"a": 1}, {"b": 1}, Difference("row", "columns lost")),
        ({"int8": 1}, {"$variant": ["010000", "ff"]}, Difference("Variant", "invalid bytes")),
        ({"int8": 1}, {"$variant": 1}, None),
    ],
)
def test_the_first_difference_of_an_answer_has_a_type_and_a_change(wanted: Any, found: Any, expected: Any):
    assert find_difference(case("file/a", rows=[wanted]), {"rows": [found]}) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[2, 1]", Difference("array", "elements in another order")),
        ("[1, 2, 3]", Difference("array", "elements added")),
        ('[1, "2"]', Difference("int8", "read as string")),
        ("[1, 3]", Difference("int8", "another value", frozenset({"off by one"}))),
        ("[1, null]", Difference("int8", "read as Variant null")),
        ("[1, 2", None),
        (f"[1, 1{'0' * 400}]", Difference("int8", "another value", frozenset())),
        (f"[1, {'[' * 5000}{']' * 5000}]", None),
    ],
)
def test_json_text_is_compared_as_the_expected_value(text: str, expected: Difference | None):
    wanted = {"array": [{"int8": 1}, {"int8": 2}]}
    assert find_difference(case("decode/a", rows=[wanted]), {"json": text}) == expected


def test_a_deep_value_is_compared_in_little_memory():
    def nested(*numbers: int) -> Any:
        value: Any = {"array": [{"int8": number} for number in numbers]}
        for _ in range(100):
            value = {"array": [value, {"null": None}]}
        return value

    found = find_difference(case("file/a", rows=[nested(1, 2)]), {"rows": [nested(2, 1)]})
    assert found == Difference("array", "elements in another order")


def test_a_number_beyond_a_double_has_no_difference_that_can_be_named():
    wanted = {"double": 1.0}
    assert find_difference(case("decode/a", rows=[wanted]), {"json": f"1{'0' * 400}"}) is None


def engine_run(*results: tuple[str, Status, str, str]) -> EngineRun:
    """Return a run of cases, each with its rules, its status and a message."""
    return EngineRun(
        "x",
        "1",
        tuple(
            Result(case(name, *rules.split()), "x", status, "", got) for name, status, rules, got in results
        ),
    )


def test_messages_that_differ_in_what_they_quote_are_one_cause():
    engine = engine_run(
        ("file/a", "refused", "P-S9 R1", "ValueError: cannot read 'a' at byte 5 of /tmp/a.parquet"),
        ("file/b", "refused", "P-S9", "ValueError: cannot read 'b.c' at byte 17 of /tmp/b.parquet\nmore"),
        ("file/c", "refused", "P-S9", "ValueError: cannot write"),
        ("file/d", "pass", "R1", ""),
    )
    assert [(cause.title, cause.rules, len(cause.results)) for cause in causes(engine)] == [
        ("ValueError: cannot read 'a' at byte 5 of /tmp/a.parquet", ("P-S9",), 2),
        ("ValueError: cannot write", ("P-S9",), 1),
    ]


@pytest.mark.parametrize(
    ("rules", "scope"),
    [
        (["R1 R2", "R1"], "of R1"),
        (["R1 R2", "R1", "R3"], "of 3 rules such as R1"),
        (["R1 R2", "R2 R1"], "of R1, R2"),
    ],
)
def test_a_cause_says_which_rules_its_cases_have(rules: list[str], scope: str):
    messages = [(f"file/{n}", "crashed", each, "exit status 3") for n, each in enumerate(rules)]
    [cause] = causes(engine_run(*messages))
    assert cause.scope == scope


def test_answers_instead_of_errors_are_grouped_by_the_rule_that_most_of_them_break():
    engine = engine_run(
        ("decode/a", "accepted", "E-M1 E-M2", "1"),
        ("decode/b", "accepted", "E-M2", "22"),
        ("decode/c", "accepted", "E-M1", "333"),
    )
    assert [(cause.rules, [each.case.id for each in cause.results]) for cause in causes(engine)] == [
        (("E-M1",), ["decode/a", "decode/c"]),
        (("E-M2",), ["decode/b"]),
    ]


def test_the_report_is_worst_first_bounded_and_complete_as_json():
    messages = [(f"file/{n}", "refused", "P-S1", f"{chr(97 + n) * 3} failed") for n in range(26)]
    engine = engine_run(*messages, ("file/z", "crashed", "P-S2", "exit status 3"))
    run_ = Run(tuple(result.case for result in engine.results), (engine,))
    lines = list(text_lines(run_))
    assert lines[:2] == ["x: crashed in 1 case of P-S2: exit status 3", "  file/z: About file/z"]
    assert lines[-1] == "x: 2 more causes; --html and --json have all"
    assert len(lines) == 4 * 25 + 1
    found = json_report(run_)["engines"][0]["causes"]
    assert len(found) == 27
    assert found[0] == {
        "status": "crashed",
        "title": "exit status 3",
        "rules": ("P-S2",),
        "example": "file/z",
        "cases": ["file/z"],
    }
