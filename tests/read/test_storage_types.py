"""Types of files that differ from those of the table: which ones a read accepts, as Spark's reader does."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.errors import raises_at

import delta_variant as dv
from delta_variant.errors import SchemaError

MOMENT = datetime(2026, 11, 26, 9, 30, tzinfo=UTC)
FLOAT, DOUBLE, TEXT = pa.float32(), pa.float64(), pa.string()
TIMESTAMP, NTZ = pa.timestamp("us", "UTC"), pa.timestamp("us")

# Spark's `ParquetVectorUpdaterFactory` has no updater for these pairs.
LOSSY = [
    (FLOAT, pa.array([0.1], DOUBLE)),
    (pa.decimal128(10, 2), pa.array([0.123], DOUBLE)),
    (pa.decimal128(10, 2), pa.array([0.5], FLOAT)),
    (DOUBLE, pa.array([Decimal("0.1")])),
    (pa.int32(), pa.array([1.0], DOUBLE)),
    (TEXT, pa.array([1], pa.int32())),
    (TEXT, pa.array([True])),
    (TEXT, pa.array([date(2026, 11, 26)])),
    (pa.int32(), pa.array(["1"])),
    (pa.date32(), pa.array(["2026-11-26"])),
    (pa.bool_(), pa.array([1], pa.int32())),
    (pa.int32(), pa.array([True])),
    (pa.date32(), pa.array([MOMENT], TIMESTAMP)),
    (TIMESTAMP, pa.array([1], pa.int64())),
    (TIMESTAMP, pa.array([date(2026, 11, 26)])),
    (pa.int64(), pa.array([MOMENT], TIMESTAMP)),
]
LOSSLESS = [
    (DOUBLE, pa.array([0.5], FLOAT), 0.5),
    (DOUBLE, pa.array([2**31 - 1], pa.int32()), 2147483647.0),
    (pa.int64(), pa.array([7], pa.int32()), 7),
    (pa.int16(), pa.array([7], pa.int32()), 7),
    (pa.decimal128(20, 2), pa.array([Decimal("1.5")], pa.decimal128(9, 1)), Decimal("1.50")),
    (TEXT, pa.array([b"a"]), "a"),
    (pa.binary(), pa.array(["a"]), b"a"),
    (NTZ, pa.array([date(2026, 11, 26)]), datetime(2026, 11, 26)),
    (TIMESTAMP, pa.array([MOMENT], pa.timestamp("ms", "UTC")), MOMENT),
]


def table_with(path: Path, data_type: pa.DataType, stored: Any, form: str) -> str:
    """Return a table with a column of `data_type`, whose file has the array `stored` instead."""

    def column(array: Any) -> Any:
        if form == "struct":
            return pa.StructArray.from_arrays([array], ["x"])
        return (
            pa.array([[None]], pa.list_(array.type))
            if array.null_count
            else pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), array)
        )

    wrap = column if form != "plain" else lambda array: array
    dv.write_table(path, pa.table({"id": [1], "c": wrap(pa.nulls(1, data_type))}))
    (file,) = path.glob("*.parquet")
    pq.write_table(pa.table({"id": [1], "c": wrap(stored)}), file)
    return file.name


@pytest.mark.parametrize(("form", "column"), [("plain", "c"), ("struct", "c.x"), ("list", "c.element")])
@pytest.mark.parametrize(("data_type", "stored"), LOSSY, ids=str)
def test_a_type_that_cannot_be_read_without_loss_is_refused(
    tmp_path: Path, data_type: pa.DataType, stored: Any, form: str, column: str
):
    file = table_with(tmp_path, data_type, stored, form)
    for read in (dv.read_table(tmp_path), dv.read_table(tmp_path, columns=["c"])):
        with raises_at(
            SchemaError, "the file stores .* cannot be read as .* rewrite the file", file=file, column=column
        ):
            read.to_table()
    assert dv.read_table(tmp_path, columns=["id"]).to_pylist() == [{"id": 1}]


@pytest.mark.parametrize(("data_type", "stored", "expected"), LOSSLESS, ids=str)
def test_a_type_whose_values_are_all_values_of_the_table_is_read(
    tmp_path: Path, data_type: pa.DataType, stored: Any, expected: Any
):
    table_with(tmp_path, data_type, stored, "plain")
    assert dv.read_table(tmp_path).to_pylist() == [{"id": 1, "c": expected}]


@pytest.mark.parametrize(
    ("data_type", "stored"),
    [(pa.int32(), pa.array([2**31])), (FLOAT, pa.array([2**24 + 1])), (DOUBLE, pa.array([2**53 + 1]))],
    ids=str,
)
def test_a_wider_number_is_refused_where_a_value_does_not_fit(tmp_path: Path, data_type, stored):
    file = table_with(tmp_path, data_type, stored, "plain")
    with raises_at(SchemaError, "cannot cast", file=file, column="c"):
        dv.read_table(tmp_path).to_table()


def test_an_operation_on_a_column_that_cannot_be_read_changes_nothing(tmp_path: Path):
    table_with(tmp_path, FLOAT, pa.array([0.1], DOUBLE), "plain")
    for change in (lambda: dv.update(tmp_path, {"id": "2"}), lambda: dv.optimize(tmp_path, reshred=True)):
        with raises_at(SchemaError, "cannot be read as float", column="c"):
            change()
    assert dv.load_snapshot(tmp_path).version == 0
