"""`timezone=`: the time zone of literals, casts and partition values without one."""

from __future__ import annotations

import datetime as dt
import json
import re
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from cli.test_cli import run
from hypothesis import given
from hypothesis import strategies as st
from support.planting import Table
from support.tables import read_ids

import delta_variant as dv
from delta_variant.errors import ConstraintViolationError
from delta_variant.expressions.cast import cast_values
from delta_variant.variant.values import VARIANT_TYPE, set_path

TOKYO = "Asia/Tokyo"
ZONES = ["Asia/Tokyo", "America/Los_Angeles", "Asia/Kolkata", "America/St_Johns", "Europe/Berlin", "UTC"]
INSTANT, LOCAL = pa.timestamp("us", "UTC"), pa.timestamp("us")
MICROSECOND = dt.timedelta(microseconds=1)


def at(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(f"{text}+00:00")


# In Tokyo, days start at 15:00 UTC.
MOMENTS = ["2023-12-31 14:59:59", "2023-12-31 15:00:00", "2024-01-01 03:00:00", "2024-01-01 12:00:00"]


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Return a table with four timestamps, each in its own file."""
    uri = str(tmp_path / "t")
    for number, moment in enumerate(MOMENTS):
        rows = {"id": [number], "ts": pa.array([at(moment)], INSTANT), "event": [json.dumps({"s": moment})]}
        dv.write_table(uri, pa.table(rows), mode="append", variant_columns=["event"])
    return uri


def ids(table: str, where: str, timezone: str = TOKYO) -> list[int]:
    return read_ids(table, where, timezone=timezone)


@pytest.mark.parametrize(
    ("where", "tokyo", "utc"),
    [
        ("ts >= timestamp'2024-01-01 00:00:00'", [1, 2, 3], [2, 3]),
        ("ts = '2024-01-01 12:00:00'", [2], [3]),
        ("ts < date'2024-01-01'", [0], [0, 1]),
        ("ts::date = date'2024-01-01'", [1, 2, 3], [2, 3]),
        ("hour(ts) = 12", [2], [3]),
        ("year(ts) = 2023", [0], [0, 1]),
        ("ts::string = '2024-01-01 12:00:00'", [2], [3]),
        ("ts::timestamp_ntz = timestamp_ntz'2024-01-01 00:00:00'", [1], []),
        ("event:s::timestamp = ts", [], [0, 1, 2, 3]),
        ("event:s::timestamp = timestamp'2024-01-01 03:00:00'", [2], [2]),
        ("event:s::timestamp = timestamp'2024-01-01 03:00:00Z'", [3], [2]),
        ("ts >= timestamp'2024-01-01 00:00:00 Europe/Berlin'", [2, 3], [2, 3]),
    ],
)
def test_a_condition_has_its_local_times_in_the_time_zone(
    table: str, where: str, tokyo: list[int], utc: list[int]
):
    assert (ids(table, where), ids(table, where, "UTC")) == (tokyo, utc)
    assert ids(table, where, "+09:00") == tokyo


def test_files_are_skipped_by_local_times(table: str):
    where = "ts >= '2024-01-01 12:00:00'"
    explanation = dv.read_table(table, where=where, timezone=TOKYO).explain()
    assert (explanation.files_by_statistics, explanation.rows) == (2, 2)


def test_rows_are_deleted_updated_and_merged_by_local_times(table: str):
    where = "ts = '2024-01-01 12:00:00'"
    assert dv.update(table, {"ts": "'2024-06-01 09:00:00'"}, where, timezone=TOKYO).rows_updated == 1
    assert ids(table, "ts = timestamp'2024-06-01 00:00:00Z'", "UTC") == [2]
    assert dv.delete(table, "ts = '2024-06-01 09:00:00'", timezone=TOKYO).rows_deleted == 1
    source = pa.table({"key": ["2024-01-01 21:00:00"]})
    merge = dv.merge(table, source, "ts = key::timestamp", timezone=TOKYO)
    assert merge.when_matched_delete().execute().rows_deleted == 1
    assert ids(table, "true") == [0, 1]


def test_an_overwrite_replaces_the_rows_of_local_times(table: str):
    rows = pa.table({"id": [9], "ts": pa.array([at("2024-01-01 00:00:00")], INSTANT)})
    dv.write_table(table, rows, mode="overwrite", where="ts::date = '2024-01-01'", timezone=TOKYO)
    assert ids(table, "true") == [0, 9]


def test_constraints_are_checked_by_local_times(table: str):
    with pytest.raises(ConstraintViolationError, match="early"):
        dv.add_constraint(table, "early", "ts::date <= '2024-01-01'", timezone="Pacific/Kiritimati")
    dv.add_constraint(table, "early", "ts::date <= '2024-01-01'", timezone=TOKYO)
    rows = pa.table({"id": [9], "ts": pa.array([at("2024-01-01 15:00:00")], INSTANT)})
    with pytest.raises(ConstraintViolationError, match="early"):
        dv.write_table(table, rows, mode="append", timezone=TOKYO)
    dv.write_table(table, rows, mode="append")
    assert ids(table, "id = 9") == [9]


def test_a_generated_column_is_of_local_time(tmp_path: Path):
    uri = str(tmp_path / "t")
    dv.write_table(uri, pa.table({"ts": pa.array([], INSTANT), "day": pa.array([], pa.date32())}))

    def generate(document: dict) -> None:
        document["fields"][1]["metadata"]["delta.generationExpression"] = "CAST(ts AS DATE)"

    Table(tmp_path / "t").edit_schema(generate)
    rows = pa.table({"ts": pa.array([at("2023-12-31 15:00:00")], INSTANT)})
    dv.write_table(uri, rows, mode="append", timezone=TOKYO)
    dv.write_table(uri, rows, mode="append")
    days = dv.read_table(uri).to_table()["day"].to_pylist()
    assert sorted(days) == [dt.date(2023, 12, 31), dt.date(2024, 1, 1)]


def test_changes_are_read_by_local_times(tmp_path: Path):
    uri = str(tmp_path / "t")
    rows = pa.table({"id": [0, 1], "ts": pa.array([at(MOMENTS[0]), at(MOMENTS[1])], INSTANT)})
    dv.write_table(uri, rows, configuration={"delta.enableChangeDataFeed": "true"})
    changes = dv.read_changes(uri, columns=["id"], where="year(ts) = 2024", timezone=TOKYO)
    assert changes.to_table()["id"].to_pylist() == [1]


def test_a_partition_value_without_time_zone_is_local_time(tmp_path: Path):
    uri = str(tmp_path / "t")
    rows = pa.table({"id": [1], "ts": pa.array([at("2024-01-01 00:00:00")], INSTANT)})
    dv.write_table(uri, rows, partition_by=["ts"])
    (log,) = (tmp_path / "t" / "_delta_log").glob("*0.json")
    text = log.read_text(encoding="utf-8")
    assert '"ts":"2024-01-01T00:00:00.000000Z"' in text
    log.write_text(text.replace("2024-01-01T00:00:00.000000Z", "2024-01-01 00:00:00"), encoding="utf-8")
    for timezone, instant in ((TOKYO, "2023-12-31 15:00:00"), ("UTC", "2024-01-01 00:00:00")):
        assert dv.read_table(uri, timezone=timezone).to_table()["ts"].to_pylist() == [at(instant)]
        assert ids(uri, f"ts = timestamp'{instant}Z'", timezone) == [1]


def test_variants_are_cast_and_printed_in_the_time_zone():
    stamps = pa.array([at("2024-01-01 00:00:00")], INSTANT)
    variants = dv.try_variant_get(dv.parse_json(['{"s": "2024-01-01 00:00:00"}']), "$.s")
    (read,) = dv.variant_get(variants, "$", "timestamp", timezone=TOKYO).to_pylist()
    assert read == at("2023-12-31 15:00:00")
    made = dv.variant_get(_variant_of(stamps), "$", "string", timezone=TOKYO).to_pylist()
    assert made == ["2024-01-01 09:00:00"]
    assert dv.to_json(_variant_of(stamps), timezone=TOKYO).to_pylist() == ['"2024-01-01 09:00:00+09:00"']


def _variant_of(values: pa.Array) -> pa.StructArray:
    return set_path(pa.nulls(len(values), VARIANT_TYPE), (), values)


@pytest.mark.parametrize("name", ["Mars/Phobos", "europe/berlin", "", "+25:00", "utc", "UTC\ud800"])
def test_an_unknown_time_zone_is_named(table: str, name: str):
    message = re.escape(f"unknown time zone {name!r}: pass a region")
    with pytest.raises(ValueError, match=message):
        dv.read_table(table, timezone=name)
    with pytest.raises(ValueError, match=message):
        dv.write_table(table, pa.table({"id": [1]}), mode="append", timezone=name)


def test_the_command_line_takes_a_time_zone(table: str):
    where = ("--where", "ts = '2024-01-01 12:00:00'", "--timezone", TOKYO)
    assert run("read", table, "--column", "id", *where, "--json").stdout == '{"id":2}\n'
    assert run("update", table, "--yes", "--set", "id=7", *where, "--json").exit_code == 0
    assert json.loads(run("delete", table, "--yes", *where, "--json").stdout)["rows_deleted"] == 1
    assert ids(table, "true") == [0, 1, 3]


moments = st.datetimes(dt.datetime(1, 1, 3), dt.datetime(9999, 12, 29)) | st.sampled_from(
    [
        dt.datetime(2024, 3, 31, 2, 30),
        dt.datetime(2024, 10, 27, 2, 30),
        dt.datetime(2024, 3, 10, 2, 0),
        dt.datetime(2024, 11, 3, 1, 0),
    ]
)


@given(st.sampled_from(ZONES), st.lists(moments, min_size=1))
def test_local_times_are_those_of_the_rules_of_pep_495(zone: str, moments: list[dt.datetime]):
    """With `fold=0`, Python takes the offset before a transition, as `java.time` does."""
    instants = [moment.replace(tzinfo=ZoneInfo(zone)).astimezone(dt.timezone.utc) for moment in moments]
    local = pa.array(moments, LOCAL)
    cast = cast_values(local, INSTANT, strict=True, timezone=zone)
    # Neither Python nor any time zone has fractions of a second in offsets.
    assert cast.to_pylist() == instants
    expected = [instant.astimezone(ZoneInfo(zone)).replace(tzinfo=None) for instant in instants]
    assert cast_values(cast, LOCAL, strict=True, timezone=zone).to_pylist() == expected
