"""The cases of published bugs: each names its bugs, is on the page of lost values, and can fail."""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conformance.test_conformance import ONE, write_case
from support.locations import OWN_CASES, ROOT

from delta_variant_conformance.case import Case, InvalidCaseError
from delta_variant_conformance.corpus import load_cases
from delta_variant_conformance.engine import Engine, VariantBytes
from delta_variant_conformance.engines import start
from delta_variant_conformance.grade import Result, grade
from delta_variant_conformance.invoke import Answer, invoke
from delta_variant_conformance.page import html_page
from delta_variant_conformance.report import json_report, text_lines
from delta_variant_conformance.runner import EngineRun, Run, run

PAGE = ROOT / "docs" / "about" / "lost-values.md"
CASES = [case for case in load_cases([OWN_CASES]) if case.guards]
BUGS = sorted({bug for case in CASES for bug in case.guards})

# Issues and pull requests that the group covers, by project, and commits of this library.
PUBLISHED = {
    "ClickHouse": [114873, 117938, 119321],
    "comet": [4084],
    "delta-kernel-rs": [3354],
    "delta": [6668, 7692],
    "duckdb": [21814, 24293, 25872],
    "hudi": [19556, 19567],
    "iceberg": [15086, 16880, 17397],
    "paimon": [6936],
    "parquet-format": [562, 565, 574],
    "spark": [54598],
    "trino": [25666],
}
OWN = {"delta_variant@27803ab", "delta_variant@e390afb"}

NULL = VariantBytes(b"\x01\0\0", b"\0")


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """Return our own engine."""
    return start("ours", tmp_path_factory.mktemp("engine"))


# The group of cases


def test_each_published_bug_has_a_case():
    published = {f"{project}#{number}" for project, numbers in PUBLISHED.items() for number in numbers}
    assert sorted((published | OWN) - set(BUGS)) == []


def sections() -> Mapping[str, str]:
    """Return the text of each section of the page by its heading."""
    parts = re.split(r"^### (.+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("bug", BUGS)
def test_the_page_names_the_cases_of_each_bug(bug: str):
    [text] = [text for heading, text in sections().items() if bug in re.split(r"[ ,]+", heading)]
    patterns = re.findall(r"`([a-z]+/[\w*]+)`", text)
    missing = [
        case.id
        for case in CASES
        if bug in case.guards and not any(fnmatch.fnmatchcase(case.id, pattern) for pattern in patterns)
    ]
    assert missing == []


def test_the_page_names_only_bugs_and_cases_that_exist():
    named = [bug for heading in sections() for bug in re.split(r"[ ,]+", heading)]
    assert sorted(named) == BUGS
    ids = [case.id for case in CASES]
    patterns = re.findall(r"`([a-z]+/[\w*]+)`", PAGE.read_text(encoding="utf-8"))
    assert [pattern for pattern in patterns if not fnmatch.filter(ids, pattern)] == []


def test_the_page_has_the_number_of_cases_and_bugs():
    assert f" {len(CASES)} cases for {len(BUGS)} bugs." in PAGE.read_text(encoding="utf-8")


def test_duckdb_selects_from_the_files_of_a_table():
    """Bounds in footers, several layouts, and a condition for each type of literal."""
    names = (
        "binary_above_a_truncated_bound",
        "last_timestamp",
        "missing_path_is_no_empty_text",
        "path_in_part_of_an_object_nested",
        "shredded_and_unshredded_files",
        "value_of_another_type_in_a_row_group",
    )
    cases = [case for case in CASES if case.id.removeprefix("select/") in names]
    rewrite = next(case for case in CASES if case.kind == "rewrite")
    [engine] = run([*cases, rewrite], ["duckdb"]).engines
    assert [result.status for result in engine.results] == ["pass"] * len(names) + ["not offered"]


# An engine that loses the last value of each answer, as the engines with the bugs did.


def lose_last(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a reader that answers without its last row, also where it should raise an error."""

    def read(*arguments: Any, **options: Any) -> list[Any]:
        try:
            return list(function(*arguments, **options))[:-1]
        except Exception:
            return []

    return read


def null_variants(file: Path, column: str) -> None:
    """Replace the Variants of a file by nulls, as a rewrite that reads only `value` does."""
    table = pq.read_table(file)
    rows = table.column(column).combine_chunks()
    rows = rows.storage if isinstance(rows, pa.ExtensionArray) else rows
    members = [rows.field(index) for index in range(rows.type.num_fields)]
    nulls = pa.StructArray.from_arrays(members, fields=list(rows.type), mask=pa.array([True] * len(rows)))
    pq.write_table(table.set_column(table.schema.get_field_index(column), column, nulls), file)


def broken(ours: Engine) -> Engine:
    """Return our engine with functions that lose values."""

    def rewrite(folder: Path, deleted: int | None) -> None:
        ours.rewrite(folder, deleted)
        for file in folder.glob("*.parquet"):
            null_variants(file, "v")

    def shred(file: Path, column: str, schema: Any, out: Path) -> None:
        out.write_bytes(file.read_bytes())
        null_variants(out, column)

    return replace(
        ours,
        name="broken",
        read=lose_last(ours.read),
        read_table=lose_last(ours.read_table),
        select=lose_last(ours.select),
        rewrite=rewrite,
        shred=shred,
        collect_stats=lambda file, column: {"min": None, "max": None},
        to_json=lambda file, column: "null",
        parse_json=lambda text: NULL,
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_an_engine_that_loses_the_value_fails_the_case(ours: Engine, case: Case, tmp_path: Path):
    result = grade(case, "broken", invoke(broken(ours), case, tmp_path))
    assert result.is_finding
    if case.has_answer:
        assert result.status == "wrong value", result
        assert result.effect == ("altered" if case.kind == "decode" else "lost"), result
    else:
        assert result.status == "accepted", result


@pytest.mark.parametrize(
    ("wanted", "found", "effect"),
    [
        ([{"int8": 1}], [None], "lost"),
        ([{"int8": 1}], [{"null": None}], "lost"),
        ([{"int8": 1}], [], "lost"),
        ([{"object": {"a": {"int8": 1}}}], [{"object": {}}], "lost"),
        ([{"object": {"a": {"int8": 1}}}], [{"object": {"a": {"null": None}}}], "lost"),
        ([{"array": [{"int8": 1}]}], [{"array": []}], "lost"),
        ([{"int8": 1}], [{"int8": 2}], "altered"),
        ([{"int8": 1}], [{"string": "1"}], "altered"),
        ([{"int8": 1}], [{"int8": 1}, {"int8": 1}], "altered"),
        ([{"null": None}], [{"int8": 1}], "altered"),
        ([None], [{"int8": 1}], "altered"),
        ([{"object": {}}], [{"object": {"a": {"int8": 1}}}], "altered"),
    ],
)
def test_a_wrong_answer_is_lost_or_altered(tmp_path: Path, wanted: Any, found: Any, effect: str):
    folder = write_case(tmp_path, "file", "x", input={"file": "f"}, expect={"rows": wanted})
    (folder / "f").touch()
    [case] = load_cases([tmp_path])
    answer = Answer("answered", {"rows": [each and {"$variant": encoded(each)} for each in found]})
    result = grade(case, "other", answer)
    assert (result.status, result.effect) == ("wrong value", effect)


def encoded(typed: Mapping[str, Any]) -> list[str]:
    """Return the bytes of one of the values of the test above, in hex."""
    values = {
        '{"null": null}': "00",
        '{"int8": 1}': "0c01",
        '{"int8": 2}': "0c02",
        '{"string": "1"}': "0531",
        '{"array": []}': "030000",
        '{"object": {}}': "020000",
        '{"object": {"a": {"int8": 1}}}': "020100" + "0002" + "0c01",
        '{"object": {"a": {"null": null}}}': "020100" + "0001" + "00",
    }
    return ["0101000161", values[json.dumps(typed)]]


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ({"value": b"\x0c\2", "typed_value": 1}, "value and typed_value are both set"),
        ({"value": None, "typed_value": 2}, 'expected {"int64": 1}, got {"int64": 2}'),
        ({"value": None, "typed_value": None}, 'expected {"int64": 1}, got {"null": null}'),
        (None, 'expected {"object": {"a": {"int64": 1}}}, got null'),
    ],
)
def test_a_rewrite_is_judged_by_the_stored_columns(
    ours: Engine, tmp_path: Path, pair: dict[str, Any] | None, message: str
):
    case = next(case for case in CASES if case.id == "rewrite/compact_shredded_files")

    def rewrite(folder: Path, deleted: int | None) -> None:
        file = folder / "part-0.parquet"
        table = pq.read_table(file)
        rows = table.column("v").to_pylist()
        if pair is None:
            rows[0] = None
        else:
            rows[0]["typed_value"]["a"] = pair
        storage = getattr(table.schema.field("v").type, "storage_type", table.schema.field("v").type)
        pq.write_table(table.set_column(1, "v", pa.array(rows, storage)), file)

    result = grade(case, "x", invoke(replace(ours, rewrite=rewrite), case, tmp_path))
    assert result.status == "wrong value"
    found = result.got.replace('{"object": {}}', 'expected {"int64": 1}, got {"null": null}')
    assert message in found


# Cases and reports


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("decode", {"guards": []}, "expected guards to be a list of at least one bug, such as duckdb#24293"),
        ("decode", {"guards": ["duckdb 24293"]}, "expected guards to be a list of at least one bug"),
        ("decode", {"guards": "duckdb#24293"}, "expected guards to be a list of at least one bug"),
        ("select", {"where": ["like", "x"]}, "expected where to be one of =, <, <=, >, >=, is null"),
        ("select", {"where": ["is null", 1]}, "expected where to be one of"),
        ("select", {"where": ["="]}, "expected where to be one of"),
        ("select", {"type": "int9"}, "unknown type 'int9'"),
        ("select", {"path": "a"}, "expected path to be a list of text"),
        ("rewrite", {"compact": False}, "expected compact to be true"),
        ("rewrite", {"compact": True, "delete": 1}, "expected one of compact, delete in input"),
        ("rewrite", {"delete": "1"}, "expected delete to be an integer >= 0"),
    ],
)
def test_an_invalid_case_raises_an_error(tmp_path: Path, kind: str, change: dict[str, Any], message: str):
    given = {"decode": ONE, "select": {"table": "t", "path": [], "type": "int64"}, "rewrite": {"table": "t"}}
    entries = {"input": given[kind], "expect": {"rows": [{"int8": 1}] if kind == "decode" else [{"id": 1}]}}
    if "guards" in change:
        entries.update(change)
    else:
        entries["input"] = {**given[kind], **change}
    (write_case(tmp_path, kind, "x", **entries) / "t").mkdir()
    with pytest.raises(InvalidCaseError, match=re.escape(message)):
        load_cases([tmp_path])


def test_reports_show_the_effect_and_the_bugs():
    case = next(case for case in CASES if case.id == "rewrite/compact_shredded_files")
    result = Result(case, "x", "wrong value", "1", "2", effect="lost")
    run = Run((case,), (EngineRun("x", "1", (result,)),))
    assert next(text_lines(run)).startswith("x: wrong value (lost) [hudi#19556] in 1 case of Q9: ")
    assert "lost values: hudi#19556" in html_page(run)
    report = json.loads(json.dumps(json_report(run)))
    assert report["cases"][0]["guards"] == ["hudi#19556"]
    assert report["engines"][0]["results"][0]["effect"] == "lost"
