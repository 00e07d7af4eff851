"""The conformance kit runs on Spark with Delta: one case for each function of the adapter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from support.locations import OWN_CASES

from delta_variant_conformance.case import Case
from delta_variant_conformance.corpus import load_cases
from delta_variant_conformance.engine import Engine
from delta_variant_conformance.engines import start
from delta_variant_conformance.grade import Result, grade
from delta_variant_conformance.invoke import invoke


@pytest.fixture(scope="module")
def engine(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """Return the adapter, on the session of the tests, since a process has only one."""
    return start("spark", tmp_path_factory.mktemp("engine"))


@pytest.fixture
def grade_on_spark(engine: Engine, tmp_path: Path) -> Callable[..., Result]:
    """Return a function that runs a case on Spark."""

    def ask_case(kind: str, folder: Path, given: dict[str, Any], expect: dict[str, Any]) -> Result:
        case = Case(f"{kind}/x", kind, folder, ("X",), "keeps", "section", "about", given, expect)
        return grade(case, "spark", invoke(engine, case, tmp_path))

    return ask_case


def test_spark_has_the_documented_results_in_parquet_testing(engine: Engine, corpora: Path, tmp_path: Path):
    """See protocol_fixtures/ENGINES.md for the reasons."""
    cases = {case.id: case for case in load_cases([corpora / "parquet-testing"])}
    known = {
        "case-001": "pass",
        "case-032": "refused",
        "case-040": "accepted",
        "case-043-lenient": "not offered",
    }
    for name, status in known.items():
        case = cases[f"parquet-testing/{name}"]
        assert grade(case, "spark", invoke(engine, case, tmp_path)).status == status, name


def test_spark_shreds_by_a_given_schema(grade_on_spark: Callable[..., Result], corpora: Path):
    folder = corpora / "parquet-testing" / "shredded_variant"
    # {"a": null, "d": "iceberg"}, unshredded
    given = {"file": "case-082.parquet", "column": "var", "schema": {"object": {"d": "string"}}}
    columns = [
        {
            "value": {"object": {"a": {"null": None}}},
            "typed_value": {"d": {"value": None, "typed_value": "iceberg"}},
        }
    ]
    result = grade_on_spark("shred", folder, given, {"columns": columns})
    assert (result.status, result.notes) == ("pass", ()), result.got


def test_spark_encodes_and_prints(grade_on_spark: Callable[..., Result], tmp_path: Path):
    result = grade_on_spark("encode", tmp_path, {"json": '"it\'s"'}, {"rows": [{"string": "it's"}]})
    assert result.status == "pass", result.got
    assert (
        grade_on_spark("encode", tmp_path, {"json": '{"a":'}, {"error": "InvalidJsonError"}).status == "pass"
    )
    result = grade_on_spark("decode", tmp_path, {"metadata": "010000", "value": "0c05"}, {"json": [5]})
    assert result.status == "pass", result.got


def test_spark_reads_tables_and_logs(
    grade_on_spark: Callable[..., Result], unpack_table: Callable[[str], Path]
):
    table = unpack_table("c_stats_ga")
    given = {"table": table.name, "version": 0}
    expect = {
        "version": 0,
        "reader_features": ["variantType", "variantShredding"],
        "properties": {"delta.enableVariantShredding": "true"},
        "schema": {"id": "long", "v": "variant"},
    }
    result = grade_on_spark("log", table.parent, given, expect)
    assert result.status == "pass", result.got
    assert grade_on_spark("table", table.parent, given, {"rows": []}).status == "pass"
    result = grade_on_spark("table", table.parent, {"table": table.name}, {"rows": []})
    assert (result.status, '"id": 0, "v": {"object"' in result.got) == ("wrong value", True), result.got


def test_spark_decodes_encodes_and_computes_statistics(
    grade_on_spark: Callable[..., Result], tmp_path: Path, unpack_table: Callable[[str], Path]
):
    one = {"metadata": "010000", "value": "0c01"}
    assert grade_on_spark("stats", tmp_path, {"encode": one}, {"z85": "0rr9d0rr91"}).status == "pass"
    assert grade_on_spark("stats", tmp_path, {"z85": "0rr9d0rr91"}, {"rows": [{"int8": 1}]}).status == "pass"
    file = max(unpack_table("c_stats_ga").glob("*.parquet"), key=lambda path: path.stat().st_size)
    result = grade_on_spark("stats", file.parent, {"file": file.name, "column": "v"}, {"min": {"object": {}}})
    assert (result.status, """{"$['a']": {"int64": """ in result.got) == ("wrong value", True), result.got


@pytest.mark.parametrize(
    "name",
    [
        "select/shredded_and_unshredded_files",
        "select/value_of_another_type_in_a_row_group",
        "select/last_timestamp",
        "select/binary_above_a_truncated_bound",
        "rewrite/compact_files_of_other_layouts",
        "rewrite/delete_from_objects_in_part",
    ],
)
@pytest.mark.usefixtures("compiled_casts")
def test_spark_selects_and_rewrites(engine: Engine, tmp_path: Path, name: str):
    [case] = [case for case in load_cases([OWN_CASES]) if case.id == name]
    result = grade(case, "spark", invoke(engine, case, tmp_path))
    assert result.status == "pass", result.got
