"""Parquet files with Variants of DuckDB, Iceberg and others, compared with the values that DuckDB reads.

`variant_files.tsv` names the oracle: `recorded` is a line of DuckDB's own tests (`sql_cases.json`), and
`duckdb` the installed DuckDB. Both must agree if there is a line.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.archives import NOTHING, FileOutcome, read_outcomes

import delta_variant as dv
from delta_variant.data_file import reader
from delta_variant.data_file.reader import Projection, open_file
from delta_variant.protocol.schema.arrow import variant_field
from delta_variant.storage.store import open_store

OUTCOMES = read_outcomes(FileOutcome, "variant_files.tsv")
FOLDER = "duckdb-variant"
WHOLE_FILE = re.compile(r"from '(?:\{DATA_DIR\}|data)/parquet-testing/(variant_\w+\.parquet)';")

# VariantEncoding.md, "Encoding types": DuckDB's name of each primitive type, without the scale of decimals.
PRIMITIVES = {
    0: "VARIANT_NULL",
    1: "BOOL_TRUE",
    2: "BOOL_FALSE",
    3: "INT8",
    4: "INT16",
    5: "INT32",
    6: "INT64",
    7: "DOUBLE",
    8: "DECIMAL(9",
    9: "DECIMAL(18",
    10: "DECIMAL(38",
    11: "DATE",
    12: "TIMESTAMP_MICROS_TZ",
    13: "TIMESTAMP_MICROS",
    14: "FLOAT",
    15: "BLOB",
    16: "VARCHAR",
    17: "TIME_MICROS",
    18: "TIMESTAMP_NANOS_TZ",
    19: "TIMESTAMP_NANOS",
    20: "UUID",
}
OTHERS = {1: "VARCHAR", 2: "OBJECT", 3: "ARRAY"}


def name_of(outcome: FileOutcome) -> str:
    return outcome.file.removesuffix(".parquet")


@cache
def recorded(folder: Path) -> Mapping[str, list[str]]:
    """Return the lines of id and value that DuckDB's tests expect from each file."""
    cases = json.loads((folder / "sql_cases.json").read_text(encoding="utf-8"))
    found = ((WHOLE_FILE.fullmatch(case["sql"].strip()), case["expected"]) for case in cases)
    return {match[1]: lines for match, lines in found if match and lines}


def asked(file: Path) -> list[tuple[int, str, str]]:
    """Return id, type and text of each value according to the installed DuckDB."""
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("set timezone = 'UTC'")
        sql = f"select id, variant_typeof(var), coalesce(var::varchar, 'NULL') from '{file}'"
        return connection.execute(sql).fetchall()


def read(file: Path) -> tuple[list[int], Any]:
    """Return the ids, and the Variants as bytes."""
    opened = open_file(open_store(file.parent), file.name)
    fields = (pa.field("id", pa.int32()), variant_field("var"))
    projections = [Projection(field, (field.name,)) for field in fields]
    table = pa.Table.from_batches(reader.read(opened, file.name, projections))
    return table["id"].to_pylist(), table["var"].combine_chunks()


def type_of(value: bytes) -> str:
    """Return the start of DuckDB's name of a value's type."""
    return PRIMITIVES[value[0] >> 2] if value[0] & 3 == 0 else OTHERS[value[0] & 3]


def in_duckdb_style(text: str, kind: str) -> str:
    """Return JSON text of a value in DuckDB's format for its type."""
    if kind == "BLOB":
        return "".join(f"\\x{byte:02X}" for byte in base64.b64decode(json.loads(text)))
    shown = _shown(json.loads(text, parse_float=str, parse_int=str))
    return shown.replace("+00:00", "+00") if kind.endswith("_TZ") else shown


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"'{name}': {_shown(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_shown, value)) + "]"
    return {None: "NULL", True: "true", False: "false"}.get(value, value)


def test_every_file_is_listed(corpora: Path):
    assert sorted(each.file for each in OUTCOMES) == sorted(
        path.name for path in (corpora / FOLDER).glob("*.parquet")
    )
    assert {each.outcome for each in OUTCOMES} == {"equal"}
    for each in OUTCOMES:
        assert bool(each.note) == (each.findings != NOTHING)
        assert (each.oracle == "recorded") == (each.file in recorded(corpora / FOLDER))


@pytest.mark.parametrize("outcome", OUTCOMES, ids=name_of)
def test_a_file_has_the_values_that_duckdb_reads(outcome: FileOutcome, corpora: Path):
    file = corpora / FOLDER / outcome.file
    theirs = asked(file)
    assert len(theirs) == int(outcome.rows)
    if outcome.oracle == "recorded":
        assert [f"{row[0]}\t{row[2]}" for row in theirs] == recorded(file.parent)[file.name]
    ids, variants = read(file)
    kinds = [type_of(value) for value in variants.field("value").to_pylist()]
    texts = dv.to_json(variants).to_pylist()
    assert all(kind.startswith(ours) for ours, (_, kind, _) in zip(kinds, theirs, strict=True))
    ours = [(each, in_duckdb_style(text, kind)) for each, text, kind in zip(ids, texts, kinds, strict=True)]
    assert ours == [(each, text) for each, _, text in theirs]


@pytest.mark.parametrize("outcome", OUTCOMES, ids=name_of)
def test_a_file_is_inspected_and_has_statistics(outcome: FileOutcome, corpora: Path):
    file = corpora / FOLDER / outcome.file
    known = pq.read_table(file, columns=["id"])["id"].to_pylist()
    statistics = dv.compute_stats(file)
    assert (statistics.num_records, statistics.null_count["id"]) == (int(outcome.rows), 0)
    assert (statistics.min_values["id"], statistics.max_values["id"]) == (min(known), max(known))
    opened = open_file(open_store(file.parent), file.name)
    leaves = [tuple(leaf["path"]) for leaf in opened.inspect()["leaves"]]
    schema = pq.ParquetFile(file).schema
    assert leaves == [tuple(schema.column(number).path.split(".")) for number in range(len(schema))]
    violations = opened.check_rows(["var"], [], None, None).violations
    found = {each.rule for each in (*opened.check_schema(["var"]), *violations)}
    assert found == set(outcome.findings.split()) - {NOTHING}
