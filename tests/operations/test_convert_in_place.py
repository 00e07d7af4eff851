"""CONVERT TO DELTA: the log that Parquet files get where they are."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import delta_variant as dv
from delta_variant.errors import DataFileError, DeltaVariantError, SchemaError, SourceNotFoundError


def write(folder: Path, name: str, columns: dict[str, Any]) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def convert(folder: Path, rest: str = "") -> list[dict[str, Any]]:
    assert dv.sql(f"convert to delta parquet.`{folder}` {rest}").to_pylist() == []
    return dv.read_table(folder).to_pylist()


def test_the_columns_of_all_files_and_of_folders(tmp_path: Path):
    # Expected values: Delta 4.4 on the same files.
    required = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    (tmp_path / "day=2026-01-02").mkdir()
    pq.write_table(pa.table({"id": [1, 2]}, schema=required), tmp_path / "day=2026-01-02" / "a b.parquet")
    write(tmp_path, "day=__HIVE_DEFAULT_PARTITION__/b", {"ID": [3], "x": ["c"]})
    for name in ("_SUCCESS", ".b.crc", "_staged/c.parquet"):
        write(tmp_path, name, {"other": [1]})
    rows = convert(tmp_path, "partitioned by (day date)")
    assert sorted(rows, key=lambda row: row["id"]) == [
        {"id": 1, "x": None, "day": dt.date(2026, 1, 2)},
        {"id": 2, "x": None, "day": dt.date(2026, 1, 2)},
        {"id": 3, "x": "c", "day": None},
    ]
    snapshot = dv.load_snapshot(tmp_path)
    assert snapshot.partition_columns == ("day",)
    assert all(field.nullable for field in snapshot.schema.fields)
    stats = dv.file_stats(tmp_path).select(["path", "num_records", "min.id", "max.id"])
    assert sorted(map(tuple, (row.values() for row in stats.to_pylist()))) == [
        ("day=2026-01-02/a b.parquet", 2, 1, 2),
        ("day=__HIVE_DEFAULT_PARTITION__/b", 1, 3, 3),
    ]
    assert not [finding for finding in dv.audit_table(tmp_path).findings if finding.severity != "info"]
    # A table is left as it is.
    assert len(convert(tmp_path)) == 3
    assert [entry.operation for entry in dv.history(tmp_path)] == ["CONVERT"]


def test_a_column_in_files_and_in_folders_has_the_value_and_the_type_of_folders(tmp_path: Path):
    write(tmp_path, "id=7/a.parquet", {"id": [1], "x": [2]})
    assert convert(tmp_path, "no statistics partitioned by (id int)") == [{"id": 7, "x": 2}]
    assert dv.load_snapshot(tmp_path).files["stats"].to_pylist() == [None]


def test_variants_of_files_are_variants(tmp_path: Path):
    rows = [{"id": number, "v": {"a": number}} for number in range(3)]
    dv.write_table(tmp_path / "source", rows, variant_columns=["v"])
    (file,) = (tmp_path / "source").glob("*.parquet")
    (tmp_path / "files").mkdir()
    file.rename(tmp_path / "files" / file.name)
    assert convert(tmp_path / "files") == rows
    assert dv.read_table(tmp_path / "files", where="v:a::int = 2").to_pylist() == rows[2:]


@pytest.mark.parametrize(
    ("files", "rest", "error", "message"),
    [
        ({}, "", SourceNotFoundError, "it has no Parquet files"),
        ({"a": [1], "b": ["x"]}, "", SchemaError, "cannot convert b, whose columns differ"),
        (
            {"a": [1], "b": pa.array([1], pa.int32())},
            "",
            SchemaError,
            "cannot convert b, whose columns differ",
        ),
        ({"day=1/a": [1]}, "", SchemaError, "its folders have day, PARTITIONED BY has no columns"),
        ({"a": [1]}, "partitioned by (day int)", SchemaError, "have no columns, PARTITIONED BY has day"),
        (
            {"day=x/a": [1]},
            "partitioned by (day int)",
            SchemaError,
            "invalid partition value 'x': expected int",
        ),
        ({"a": pa.array([0], pa.timestamp("ns"))}, "", SchemaError, "'x' has nanoseconds"),
        ({"a": pa.array([[1.5]], pa.list_(pa.float16()))}, "", SchemaError, "'x' has half-precision floats"),
    ],
)
def test_what_cannot_be_converted_has_no_log(
    tmp_path: Path,
    files: dict[str, Any],
    rest: str,
    error: type[DeltaVariantError],
    message: str,
):
    for name, values in files.items():
        write(tmp_path, name, {"x": values})
    with pytest.raises(error, match=message):
        convert(tmp_path, rest)
    assert not (tmp_path / "_delta_log").exists()


def test_a_file_that_is_not_parquet(tmp_path: Path):
    write(tmp_path, "a.parquet", {"x": [1]})
    (tmp_path / "README.txt").write_text("hello")
    with pytest.raises(DataFileError, match=r"README\.txt"):
        convert(tmp_path)
    assert not (tmp_path / "_delta_log").exists()
