"""Dates and timestamps of files in the legacy calendar of Spark: the values that Spark 4.2 reads."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.errors import raises_at
from support.planting import Table

import delta_variant as dv
from delta_variant.errors import DataFileError

LEGACY = {"org.apache.spark.version": "3.5.1", "org.apache.spark.legacyDateTime": ""}

DAYS = {
    -719164: -719162,
    -682945: -682944,
    -354220: -354226,
    -171596: -171605,
    -141428: -141438,
    -141427: -141427,
}

FIRST = "1500-03-01"
"""The date of the day -171605."""

MOMENTS = {
    "UTC": {
        -68579184252518214: -68578838652518214,
        -59006448000000001: -59006275200000001,
        -30604611600000000: -30605043600000000,
        -12219292800000001: -12220156800000001,
    },
    "America/New_York": {
        -59006430000000000: -59006343838000000,
        -52694913600000000: -52694913838000000,
        -14825786400000000: -14826650638000000,
        -2717650800000000: -2717650800000000,
    },
    "Asia/Kolkata": {
        -59006467800000000: -59006382808000000,
        -17981587800000001: -17982280408000001,
        -3645235808000000: -3645237208000000,
        -2208988800000001: -2208988270000001,
        -2208988800000000: -2208988800000000,
    },
    "+02:00": {-59006440800000000: -59006354400000000, -12219285600000001: -12219285600000001},
    "GMT+2": {-59006458800000000: -59006286000000000, -12219303600000001: -12220167600000001},
}


def _write(path: Path, rows: pa.Table, keys: dict[str, str], **options: Any) -> Path:
    """Make a table whose only file is one of Spark with these keys in its footer."""
    dv.write_table(path, rows)
    (file,) = path.glob("*.parquet")
    pq.write_table(rows.replace_schema_metadata(keys), file, **options)
    # Statistics are those of the moments that Spark reads, or missing.
    Table(path).edit("add", lambda add: add.pop("stats") and add.update(size=file.stat().st_size))
    return path


def _micros(values: Any) -> pa.Array:
    return pa.array(values, pa.timestamp("us", "UTC"))


@pytest.mark.parametrize(
    "keys",
    [LEGACY, {"org.apache.spark.version": "2.4.8"}, {**LEGACY, "org.apache.spark.timeZone": "Asia/Tokyo"}],
)
def test_dates_are_those_of_the_gregorian_calendar(tmp_path: Path, keys: dict[str, str]):
    stored = pa.array([*DAYS, None], pa.int32()).cast(pa.date32())
    rows = pa.table(
        {"d": stored, "s": pa.StructArray.from_arrays([stored], ["d"]), "l": [[each] for each in stored]}
    )
    table = _write(tmp_path / "t", rows, keys)
    expected = pa.array([*DAYS.values(), None], pa.int32()).cast(pa.date32())
    read = dv.read_table(table).to_table()
    assert read["d"].combine_chunks().equals(expected)
    assert [row["d"] for row in read["s"].to_pylist()] == expected.to_pylist()
    assert [row[0] for row in read["l"].to_pylist()] == expected.to_pylist()


FORMATS: dict[str, dict[str, Any]] = {
    "us": {},
    "ms": {"coerce_timestamps": "ms", "allow_truncated_timestamps": True},
    "int96": {"use_deprecated_int96_timestamps": True},
}


@pytest.mark.parametrize("zone", MOMENTS)
@pytest.mark.parametrize("unit", FORMATS)
def test_timestamps_are_the_local_times_of_the_writer(tmp_path: Path, zone: str, unit: str):
    step = 1000 if unit == "ms" else 1
    stored, expected = (
        [each // step * step for each in values] for values in zip(*MOMENTS[zone].items(), strict=True)
    )
    keys = {**LEGACY, "org.apache.spark.legacyINT96": "", "org.apache.spark.timeZone": zone}
    lists = pa.array([[each] for each in stored], pa.list_(pa.timestamp("us", "UTC")))
    table = _write(tmp_path / "t", pa.table({"t": _micros(stored), "l": lists}), keys, **FORMATS[unit])
    read = dv.read_table(table).to_table()
    assert read["t"].combine_chunks().equals(_micros(expected))
    assert read["l"].combine_chunks().flatten().equals(_micros(expected))


def test_only_marked_columns_are_in_the_legacy_calendar(tmp_path: Path):
    """Timestamps without a time zone never are, and INT96 and others have marks of their own."""
    stored = [-59006448000000001, 0]
    rows = pa.table({"t": _micros(stored), "n": pa.array(stored, pa.timestamp("us"))})
    utc = {"org.apache.spark.timeZone": "UTC"}
    for number, keys in enumerate(
        ({}, {"org.apache.spark.version": "3.0.1"}, {**LEGACY, "org.apache.spark.legacyINT96": ""})
    ):
        read = dv.read_table(_write(tmp_path / str(number), rows, {**keys, **utc})).to_table()
        moved = [-59006275200000001, 0] if "org.apache.spark.legacyDateTime" in keys else stored
        assert read["t"].combine_chunks().equals(_micros(moved))
        assert read["n"].combine_chunks().equals(pa.array(stored, pa.timestamp("us")))
    only_datetime = _write(tmp_path / "int96", rows, {**LEGACY, **utc}, use_deprecated_int96_timestamps=True)
    assert dv.read_table(only_datetime).to_table()["t"].combine_chunks().equals(_micros(stored))
    since = {"org.apache.spark.version": "3.0.1", **utc}
    older = _write(tmp_path / "older", rows, since, use_deprecated_int96_timestamps=True)
    assert dv.read_table(older).to_table()["t"][0].value == -59006275200000001


@pytest.mark.parametrize(
    ("zone", "first", "reason"),
    [
        (None, -30604611600000000, "does not state org.apache.spark.timeZone"),
        ("Mars/Base", -30604611600000000, 'the rules of its time zone "Mars/Base" are not known'),
        ("America/New_York", -63167219200000000, "before the year 1"),
    ],
)
def test_values_whose_moment_is_unknown_are_rejected_and_others_are_read(
    tmp_path: Path, zone: str | None, first: int, reason: str
):
    rows = pa.table({"id": [1, 2], "s": pa.StructArray.from_arrays([_micros([first, 0])], ["t"])})
    keys = LEGACY if zone is None else {**LEGACY, "org.apache.spark.timeZone": zone}
    table = _write(tmp_path / "t", rows, keys)
    with raises_at(DataFileError, reason, column="s.t") as caught:
        dv.read_table(table).to_table()
    assert caught.value.file is not None
    assert "datetimeRebaseModeInWrite=CORRECTED" in str(caught.value)
    assert dv.read_table(table, columns=["id"]).to_pylist() == [{"id": 1}, {"id": 2}]
    later = _write(tmp_path / "later", rows.slice(1), keys)
    assert dv.read_table(later).to_table()["s"][0].as_py()["t"] == datetime(1970, 1, 1, tzinfo=timezone.utc)


def test_row_groups_are_not_skipped_by_bounds_of_the_legacy_calendar(tmp_path: Path):
    stored = pa.array([-171596, -141427, 0, 19723], pa.int32()).cast(pa.date32())
    rows = pa.table({"d": stored, "t": _micros([-12219292800000001, 0, 1, 2])})
    keys = {**LEGACY, "org.apache.spark.timeZone": "UTC"}
    table = _write(tmp_path / "t", rows, keys, row_group_size=1, write_page_index=True)
    for where in (
        "d = date '1500-03-01'",
        "d <= date '1500-03-01'",
        "t = timestamp '1582-10-04 23:59:59.999999Z'",
    ):
        assert dv.read_table(table, where=where).count() == 1, where
    assert dv.read_table(table, where="d = date '2024-01-01'").count() == 1
    assert dv.read_table(table, where="d = date '1500-03-10'").count() == 0


def test_rewrites_store_the_moments_that_were_read(tmp_path: Path):
    rows = pa.table(
        {
            "id": [1, 2],
            "d": pa.array([-171596, 0], pa.int32()).cast(pa.date32()),
            "t": _micros([-12219292800000001, 0]),
        }
    )
    table = _write(tmp_path / "t", rows, {**LEGACY, "org.apache.spark.timeZone": "UTC"})
    before = dv.read_table(table).to_table().sort_by("id")
    assert before["d"].combine_chunks().cast(pa.int32()).to_pylist() == [-171605, 0]
    dv.update(table, {"id": "3"}, where="id = 2")
    after = dv.read_table(table).to_table().sort_by("id")
    assert after.drop_columns("id").equals(before.drop_columns("id"))
    (name,) = dv.load_snapshot(table).files["path"].to_pylist()
    footer = pq.read_metadata(table / name).metadata or {}
    assert not any(key.startswith(b"org.apache.spark") for key in footer)
    assert pq.read_table(table / name)["d"].cast(pa.int32()).to_pylist()[0] == -171605
    assert dv.audit_table(table, data=True).findings == ()


def test_audit_and_repair_compare_the_moments_of_the_gregorian_calendar(tmp_path: Path):
    """Delta on Spark writes the bounds of a file in LEGACY mode as the moments that it reads."""
    rows = pa.table({"d": pa.array([-171596, 0], pa.int32()).cast(pa.date32())})
    table = _write(tmp_path / "t", rows, LEGACY)
    dv.repair_statistics(table, dry_run=False)
    statistics = json.loads(dv.load_snapshot(table).files["stats"][0].as_py())
    assert statistics["minValues"]["d"] == dv.read_table(table).to_pylist()[0]["d"].isoformat() == FIRST
    assert dv.audit_table(table, data=True).findings == ()
