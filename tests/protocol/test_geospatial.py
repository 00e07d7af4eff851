"""Tables with geometry and geography columns: values are read as WKB, and writes are rejected."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from struct import pack
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import delta_variant as dv
from delta_variant.errors import ExpressionError, ProtocolError, UnsupportedFeatureError
from delta_variant.protocol import features
from delta_variant.protocol.schema.json_text import parse as parse_schema
from delta_variant.protocol.schema.json_text import to_json as schema_to_json
from delta_variant.protocol.types import PrimitiveType, is_geospatial

GEOMETRY = "geometry(OGC:CRS84)"
GEOGRAPHY = "geography(OGC:CRS84, spherical)"


def point(x: float, y: float) -> bytes:
    """Return a point as little-endian WKB."""
    return pack("<BIdd", 1, 1, x, y)


ROWS = [
    {"id": 1, "geom": point(1, 2), "geog": point(3, 4)},
    {"id": 2, "geom": None, "geog": point(5, 6)},
]
STATS = {
    "numRecords": 2,
    "minValues": {"id": 1, "geom": "POINT(1.0 2.0)"},
    "maxValues": {"id": 2, "geom": "POINT(1.0 2.0)"},
    "nullCount": {"id": 0, "geom": 1, "geog": 0},
}


def write_table(path: Path, feature: str | None = "geospatial") -> Path:
    """Write a table with one file of DuckDB, which has GEOMETRY columns of Parquet."""
    (path / "_delta_log").mkdir(parents=True)
    texts = "(1, 'POINT(1 2)', 'POINT(3 4)'), (2, NULL, 'POINT(5 6)')"
    with duckdb.connect() as connection:
        connection.execute(
            f"copy (select id, geom::GEOMETRY as geom, geog::GEOMETRY as geog from (values {texts}) "
            f"rows(id, geom, geog)) to '{path / 'points.parquet'}' (geoparquet_version 'V2')"
        )
        (found,) = connection.execute(
            f"select count(*) from parquet_schema('{path / 'points.parquet'}') "
            "where logical_type like 'GeometryType%'"
        ).fetchall()
    assert found == (2,)
    types = {"id": "integer", "geom": GEOMETRY, "geog": GEOGRAPHY}
    fields = [{"name": name, "type": each, "nullable": True, "metadata": {}} for name, each in types.items()]
    names = [] if feature is None else [feature]
    state = (path / "points.parquet").stat()
    actions = [
        {
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": names,
                "writerFeatures": names,
            }
        },
        {
            "metaData": {
                "id": "geo",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": fields}),
                "partitionColumns": [],
                "configuration": {},
            }
        },
        {
            "add": {
                "path": "points.parquet",
                "partitionValues": {},
                "size": state.st_size,
                "modificationTime": state.st_mtime_ns // 1_000_000,
                "dataChange": True,
                "stats": json.dumps(STATS),
            }
        },
    ]
    log = path / "_delta_log" / f"{0:020d}.json"
    log.write_text("".join(json.dumps(action) + "\n" for action in actions), encoding="utf-8")
    return path


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return a table with a geometry and a geography column."""
    return write_table(tmp_path / "geo")


@pytest.mark.parametrize("feature", ["geospatial", "geospatial-dev"])
def test_geospatial_values_are_read_as_wkb(tmp_path: Path, feature: str):
    read = dv.read_table(write_table(tmp_path / "geo", feature)).to_table()
    assert read.to_pylist() == ROWS
    assert [read.schema.field(name).type for name in ("geom", "geog")] == [pa.binary(), pa.binary()]


@pytest.mark.parametrize(
    ("columns", "where", "expected"),
    [
        (["id"], None, [{"id": 1}, {"id": 2}]),
        (["id"], "id > 1", [{"id": 2}]),
        (["id"], "geom is null", [{"id": 2}]),
        (["geog"], "geom is not null", [{"geog": point(3, 4)}]),
    ],
)
def test_columns_next_to_geospatial_ones_are_read(table: Path, columns: Any, where: Any, expected: Any):
    assert dv.read_table(table, columns=columns, where=where).to_table().to_pylist() == expected


def test_a_table_with_geospatial_columns_is_audited(table: Path):
    assert dv.audit_table(table, data=True).findings == ()


def test_a_geospatial_column_without_the_feature_is_rejected(tmp_path: Path):
    with pytest.raises(ProtocolError, match=r"geography, geometry, but .* lacks the feature geospatial"):
        dv.read_table(write_table(tmp_path / "geo", None))


@pytest.mark.parametrize(
    "write",
    [
        lambda table: dv.write_table(table, pa.table({"id": pa.array([3], pa.int32())}), mode="append"),
        lambda table: dv.delete(table, "id = 1"),
        lambda table: dv.update(table, {"id": "7"}, "id = 1"),
        lambda table: dv.optimize(table),
        lambda table: dv.add_columns(table, {"x": "int"}),
        lambda table: dv.set_properties(table, {"delta.appendOnly": "true"}),
        lambda table: dv.repair_statistics(table),
    ],
)
def test_writes_to_a_table_with_geospatial_columns_are_rejected(table: Path, write: Callable[[Path], object]):
    files = sorted(table.rglob("*"))
    with pytest.raises(UnsupportedFeatureError, match=r"cannot write to .* geospatial"):
        write(table)
    assert sorted(table.rglob("*")) == files


def test_adding_a_geospatial_column_is_rejected(tmp_path: Path):
    dv.write_table(tmp_path / "t", pa.table({"id": [1]}))
    with pytest.raises(ExpressionError, match="unknown type `geometry`"):
        dv.add_columns(tmp_path / "t", {"g": "geometry(OGC:CRS84)"})
    assert dv.load_snapshot(tmp_path / "t").version == 0


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("geometry", True),
        (GEOMETRY, True),
        ("geometry(EPSG:-1)", True),
        ("geography", True),
        ("geography(spherical)", True),
        (GEOGRAPHY, True),
        ("geometry()()", False),
        ("geometrys", False),
        ("binary", False),
    ],
)
def test_geospatial_types_go_by_their_names(name: str, expected: bool):
    assert is_geospatial(PrimitiveType(name)) is expected


def test_a_geospatial_type_comes_back_as_it_was_written():
    text = json.dumps(
        {"type": "struct", "fields": [{"name": "g", "type": GEOGRAPHY, "nullable": True, "metadata": {}}]},
        separators=(",", ":"),
    )
    assert schema_to_json(parse_schema(text)) == text
    assert features.FEATURES["geospatial"].can_append is False
