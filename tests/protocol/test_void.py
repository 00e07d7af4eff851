"""Columns of type void: files do not have them, and all values are null (PROTOCOL.md, "Void Type")."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder
from support.planting import Table

import delta_variant as dv
from delta_variant.errors import SchemaError


def field(name: str, data_type: Any) -> dict[str, Any]:
    return {"name": name, "type": data_type, "nullable": True, "metadata": {}}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def write_table(path: Path, *more: dict[str, Any], configuration: dict[str, str] | None = None) -> Path:
    """Write a table of one row with columns in its schema that its file does not have."""
    rows = {"id": [1], "v": pa.array(['{"a": 1}'], pa.json_())}
    dv.write_table(path, pa.table(rows), configuration=configuration, shredding=None)
    Table(path).edit_schema(lambda document: document["fields"].extend(more))
    return path


def rows(path: Path) -> list[dict[str, Any]]:
    columns = {"id": "id", "a": "v:a::int", "x": "x", "s": "s"}
    return dv.read_table(path, columns=columns).to_table().sort_by("id").to_pylist()


def test_rows_are_written_and_changed_next_to_void_columns(tmp_path: Path):
    nested = struct(field("n", "long"), field("y", "void"))
    settings = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "false"}
    path = write_table(tmp_path / "t", field("x", "void"), field("s", nested), configuration=settings)
    data = {"id": [2, 3], "v": pa.array(['{"a": 2}', '{"a": 3}'], pa.json_()), "s": [{"n": 2}, None]}
    dv.write_table(path, pa.table(data), mode="append")
    dv.update(path, {"v:a": "20"}, "id = 2")
    dv.delete(path, "id = 3")
    dv.optimize(path)
    assert rows(path) == [
        {"id": 1, "a": 1, "x": None, "s": None},
        {"id": 2, "a": 20, "x": None, "s": {"n": 2, "y": None}},
    ]
    for file in path.rglob("*.parquet"):
        stored = pq.read_schema(file)
        assert "x" not in stored.names
        assert "s" not in stored.names or [part.name for part in stored.field("s").type] == ["n"]
    query = QueryBuilder().register("t", DeltaTable(path)).execute("select id, x, s from t order by id")
    assert pa.table(query.read_all()).to_pylist() == [
        {"id": 1, "x": None, "s": None},
        {"id": 2, "x": None, "s": {"n": 2, "y": None}},
    ]
    assert dv.audit_table(path, data=True).findings == ()
    kinds = dv.read_changes(path, start=1).to_table()["_change_type"].to_pylist()
    assert sorted(kinds) == ["delete", "insert", "insert", "update_postimage", "update_preimage"]


def test_rows_may_have_nulls_for_a_void_column(tmp_path: Path):
    path = write_table(tmp_path / "t", field("x", "void"))
    read = dv.read_table(path).to_table()
    assert read.schema.field("x").type == pa.null()
    dv.write_table(path, read, mode="append")
    assert dv.read_table(path, columns=["id", "x"]).to_table().to_pylist() == [{"id": 1, "x": None}] * 2


@pytest.mark.parametrize(
    ("data_type", "sentence"),
    [
        ({"type": "array", "elementType": "void", "containsNull": True}, "the column 'x' is array<void>"),
        (
            {"type": "map", "keyType": "string", "valueType": "void", "valueContainsNull": True},
            "the column 'x' is map<string, void>",
        ),
        (struct(field("y", "void")), "all fields of the column 'x' are void"),
    ],
)
@pytest.mark.parametrize(
    "write",
    [
        lambda path: dv.write_table(path, pa.table({"id": [2]}), mode="append"),
        lambda path: dv.update(path, {"id": "7"}, "id = 1"),
    ],
)
def test_data_files_cannot_have_only_void_fields(
    tmp_path: Path, data_type: Any, sentence: str, write: Callable[[Path], object]
):
    path = write_table(tmp_path / "t", field("x", data_type))
    files = sorted(path.rglob("*"))
    with pytest.raises(SchemaError, match=f"cannot write data files because {sentence}"):
        write(path)
    assert sorted(path.rglob("*")) == files
