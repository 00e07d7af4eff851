"""Columns of timestamps in nanoseconds, an RFC of Delta: such tables are rejected before anything is lost."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from support.planting import Table

import delta_variant as dv
from delta_variant.errors import SchemaError, UnsupportedFeatureError

FEATURES = ["timestampNanos", "timestampNtz"]


def write_table(path: Path) -> Table:
    """Write a table of one row whose protocol has the feature of the RFC."""
    dv.write_table(path, pa.table({"id": [1]}))
    table = Table(path)
    table.edit_protocol(FEATURES, FEATURES)
    table.edit("protocol", lambda protocol: protocol.update(minReaderVersion=3, minWriterVersion=7))
    return table


@pytest.mark.parametrize("name", ["timestamp_nanos", "timestamp_nanos_ntz", "timestampNanos"])
def test_a_column_in_nanoseconds_is_rejected_by_its_type(tmp_path, name):
    table = write_table(tmp_path / "t")
    column = {"name": "at", "type": name, "nullable": True, "metadata": {}}
    table.edit_schema(lambda schema: schema["fields"].append(column))
    rows = pa.table({"id": [2], "at": pa.array([1], pa.timestamp("ns", "UTC"))})
    for operation in (
        lambda: dv.load_snapshot(table.path),
        lambda: dv.read_table(table.path, columns=["id"]),
        lambda: dv.write_table(table.path, rows, mode="append"),
        lambda: dv.delete(table.path, "id = 1"),
    ):
        with pytest.raises(SchemaError, match=f"the column 'at' has the unknown type '{name}'"):
            operation()
    assert any("unknown type" in finding.message for finding in dv.audit_table(table.path).findings)


def test_the_feature_is_rejected_by_its_name_before_there_is_such_a_column(tmp_path):
    table = write_table(tmp_path / "t")
    with pytest.raises(UnsupportedFeatureError, match="timestampNanos"):
        dv.read_table(table.path)
    with pytest.raises(UnsupportedFeatureError, match="timestampNanos"):
        dv.write_table(table.path, pa.table({"id": [2]}), mode="append")


def test_nanoseconds_of_arrow_are_written_only_where_microseconds_hold_them(tmp_path):
    exact = pa.table({"at": pa.array([1_000, None], pa.timestamp("ns", "UTC"))})
    dv.write_table(tmp_path / "t", exact)
    assert dv.read_table(tmp_path / "t").schema.field("at").type == pa.timestamp("us", "UTC")
    lossy = pa.table({"at": pa.array([1_001], pa.timestamp("ns", "UTC"))})
    with pytest.raises(SchemaError, match="at"):
        dv.write_table(tmp_path / "t", lossy, mode="append")
    assert dv.read_table(tmp_path / "t").count() == 2
