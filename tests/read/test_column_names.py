"""Columns of data files whose names differ from those of the table by case, as Delta on Spark reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.errors import raises_at

import delta_variant as dv
from delta_variant.errors import DataFileError


def _field(name: str, data_type: Any) -> dict[str, Any]:
    return {"name": name, "type": data_type, "nullable": True, "metadata": {}}


def _struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def _table(path: Path, fields: list[dict[str, Any]], *files: pa.Table, **metadata: Any) -> None:
    """Write a table of Parquet files of another writer, with one commit."""
    (path / "_delta_log").mkdir(parents=True)
    actions: list[dict[str, Any]] = [
        {"protocol": metadata.pop("protocol", {"minReaderVersion": 1, "minWriterVersion": 2})},
        {
            "metaData": {
                "id": "x",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps(_struct(*fields)),
                "partitionColumns": [],
                "configuration": metadata.get("configuration", {}),
            }
        },
    ]
    for number, rows in enumerate(files):
        name = f"{number}.parquet"
        pq.write_table(rows, path / name, row_group_size=2)
        found = (path / name).stat()
        add = {"path": name, "partitionValues": {}, "size": found.st_size, "dataChange": True}
        actions.append({"add": {**add, "modificationTime": found.st_mtime_ns // 1_000_000}})
    text = "\n".join(map(json.dumps, actions))
    (path / "_delta_log" / f"{0:020}.json").write_text(text, encoding="utf-8")


NESTED = [
    _field("id", "long"),
    _field("s", _struct(_field("inner", "long"), _field("x", "long"))),
    _field("l", {"type": "array", "elementType": _struct(_field("a", "long")), "containsNull": True}),
    _field(
        "m",
        {
            "type": "map",
            "keyType": "string",
            "valueType": _struct(_field("b", "long")),
            "valueContainsNull": True,
        },
    ),
]


def _rows(number: int, names: str) -> pa.Table:
    """Return a row with the columns of NESTED, their names in the case of `names`."""
    case = str.upper if names == "upper" else str.lower
    value = pa.struct([(case("b"), pa.int64())])
    columns = {
        "id": pa.array([number], pa.int64()),
        "s": pa.array([{case("inner"): number, case("x"): -number}]),
        "l": pa.array([[{case("a"): number}]]),
        "m": pa.array([[("k", {case("b"): number})]], pa.map_(pa.string(), value)),
    }
    return pa.table({case(name): column for name, column in columns.items()})


def _values(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "s": {"inner": number, "x": -number},
        "l": [{"a": number}],
        "m": [("k", {"b": number})],
    }


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Return the table that CONVERT TO DELTA of Spark makes of files of mixed spelling."""
    _table(tmp_path / "t", NESTED, _rows(1, "lower"), _rows(2, "upper"))
    return tmp_path / "t"


def test_columns_and_fields_are_found_without_regard_to_case(mixed: Path):
    """Spark 4.2 with Delta 4.4 reads the same rows of this table."""
    assert dv.read_table(mixed).to_table().sort_by("id").to_pylist() == [_values(1), _values(2)]


@pytest.mark.parametrize(
    "where", ["id = 2", "s.inner = 2", "s.x < -1", "s.inner in (2, 3)", "l is not null and id > 1"]
)
def test_conditions_find_rows_of_files_in_another_case(mixed: Path, where: str):
    assert dv.read_table(mixed, where=where).to_table()["id"].to_pylist() == [2]
    assert dv.read_table(mixed, where=where, columns={"n": "s.inner"}).to_pylist() == [{"n": 2}]
    assert dv.read_table(mixed, where=where).count() == 1


def test_row_groups_of_files_in_another_case_are_skipped_by_their_statistics(tmp_path: Path):
    rows = pa.table({"ID": list(range(8)), "S": [{"INNER": number} for number in range(8)]})
    fields = [_field("id", "long"), _field("s", _struct(_field("inner", "long")))]
    _table(tmp_path / "t", fields, rows)
    for where in ("id = 5", "s.inner = 5"):
        scan = dv.read_table(tmp_path / "t", where=where)
        assert scan.to_table()["id"].to_pylist() == [5]
        assert scan.explain().rows_decoded == 2


def test_rewrites_keep_the_values_of_files_in_another_case(mixed: Path):
    dv.update(mixed, {"id": "id + 10"}, where="s.inner = 2")
    expected = [_values(1), {**_values(2), "id": 12}]
    assert dv.read_table(mixed).to_table().sort_by("id").to_pylist() == expected
    dv.optimize(mixed)
    assert dv.read_table(mixed).to_table().sort_by("id").to_pylist() == expected
    (name,) = dv.load_snapshot(mixed).files["path"].to_pylist()
    assert pq.read_schema(mixed / name).names == ["id", "s", "l", "m"]


def test_a_merge_by_a_key_in_another_case_updates_its_row(mixed: Path):
    source = pa.table({"id": pa.array([2, 3], pa.int64())})
    merge = dv.merge(mixed, source, on="target.id = source.id")
    merge.when_matched_update({"id": "source.id * 10"}).when_not_matched_insert({"id": "source.id"}).execute()
    assert sorted(dv.read_table(mixed).to_table()["id"].to_pylist()) == [1, 3, 20]


def test_changes_of_files_in_another_case_have_their_values(mixed: Path):
    dv.set_properties(mixed, {"delta.enableChangeDataFeed": "true"})
    dv.delete(mixed, where="id = 2")
    changes = dv.read_changes(mixed, start=2).to_table().to_pylist()
    assert [(row["id"], row["s"], row["_change_type"]) for row in changes] == [
        (2, {"inner": 2, "x": -2}, "delete")
    ]


def test_audit_and_repair_find_columns_as_the_reader_does(mixed: Path):
    dv.repair_statistics(mixed, dry_run=False)
    stats = [json.loads(text) for text in dv.load_snapshot(mixed).files["stats"].to_pylist()]
    assert [(each["minValues"]["s"]["inner"], each["nullCount"]["id"]) for each in stats] == [(1, 0), (2, 0)]
    assert dv.audit_table(mixed, data=True).findings == ()


def test_a_variant_column_in_another_case_is_read(tmp_path: Path):
    texts = pa.array(['{"a": 1}', '{"a": 2}'], pa.json_())
    dv.write_table(tmp_path / "old", pa.table({"V": texts}))
    (file,) = (tmp_path / "old").glob("*.parquet")
    table = tmp_path / "t"
    dv.write_table(table, pa.table({"v": texts.slice(0, 0)}))
    (name,) = dv.load_snapshot(table).files["path"].to_pylist() or [None]
    path = name or "a.parquet"
    (table / path).write_bytes(file.read_bytes())
    if name is None:
        add = {"path": path, "partitionValues": {}, "size": file.stat().st_size, "modificationTime": 0}
        commit = json.dumps({"add": {**add, "dataChange": True}})
        (table / "_delta_log" / f"{1:020}.json").write_text(commit, encoding="utf-8")
    assert dv.read_table(table, columns={"a": "v:a::int"}).to_pylist() == [{"a": 1}, {"a": 2}]
    assert dv.read_table(table, where="v:a::int = 2").count() == 1


def test_the_exact_name_comes_first(tmp_path: Path):
    _table(tmp_path / "t", [_field("Id", "long")], pa.table({"id": [1], "Id": [2], "ID": [3]}))
    assert dv.read_table(tmp_path / "t").to_pylist() == [{"Id": 2}]


def test_a_column_that_several_could_be_is_rejected_and_others_are_read(tmp_path: Path):
    """Spark rejects it with "Found duplicate field(s)", and reads `v`."""
    fields = [_field("Id", "long"), _field("v", "long"), _field("s", _struct(_field("X", "long")))]
    rows = pa.table({"id": [1], "ID": [2], "v": [3], "s": [{"x": 4}]})
    _table(tmp_path / "t", fields, rows)
    with raises_at(DataFileError, '"id" and "ID"', file="0.parquet", column="Id"):
        dv.read_table(tmp_path / "t").to_table()
    with raises_at(DataFileError, '"id" and "ID"', file="0.parquet", column="Id"):
        dv.read_table(tmp_path / "t", where="Id = 7").count()
    assert dv.read_table(tmp_path / "t", columns=["v", "s"]).to_pylist() == [{"v": 3, "s": {"X": 4}}]


def _mapped(name: str, data_type: Any, identity: int, physical: str) -> dict[str, Any]:
    metadata = {"delta.columnMapping.id": identity, "delta.columnMapping.physicalName": physical}
    return {**_field(name, data_type), "metadata": metadata}


def _mapping(mode: str) -> dict[str, Any]:
    return {
        "protocol": {"minReaderVersion": 2, "minWriterVersion": 5},
        "configuration": {"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "4"},
    }


def test_physical_names_are_found_without_regard_to_case(tmp_path: Path):
    fields = [
        _mapped("a", "long", 1, "Col-1"),
        _mapped("s", _struct(_mapped("b", "long", 3, "Col-3")), 2, "Col-2"),
    ]
    rows = pa.table({"COL-1": [1], "col-2": [{"COL-3": 2}]})
    _table(tmp_path / "t", fields, rows, **_mapping("name"))
    assert dv.read_table(tmp_path / "t", where="s.b = 2").to_pylist() == [{"a": 1, "s": {"b": 2}}]


def test_the_mode_id_finds_nested_fields_by_id_alone(tmp_path: Path):
    """PROTOCOL.md, "Column Mapping": a field whose id the file lacks is null, whatever its name."""

    def field(name: str, data_type: Any, identity: int) -> pa.Field[Any]:
        return pa.field(name, data_type, metadata={"PARQUET:field_id": str(identity)})

    inner = _struct(_mapped("b", "long", 3, "p3"), _mapped("c", "long", 4, "p4"))
    fields = [_mapped("a", "long", 1, "p1"), _mapped("s", inner, 2, "p2")]
    stored = pa.struct([field("p4", pa.int64(), 3), field("p3", pa.int64(), 9)])
    schema = pa.schema([field("p1", pa.int64(), 8), field("other", pa.int64(), 1), field("S", stored, 2)])
    rows = pa.table([[7], [1], [{"p4": 30, "p3": 90}]], schema=schema)
    _table(tmp_path / "t", fields, rows, **_mapping("id"))
    assert dv.read_table(tmp_path / "t").to_pylist() == [{"a": 1, "s": {"b": 30, "c": None}}]
    assert dv.read_table(tmp_path / "t", where="s.b = 30").count() == 1
    assert dv.read_table(tmp_path / "t", where="s.c is not null").count() == 0


def test_a_column_that_a_file_has_twice_is_an_error_where_it_is_read(tmp_path: Path):
    """Spark rejects two fields of one name or id with "Found duplicate field(s)"."""
    fields = [_mapped("a", "long", 1, "p1"), _mapped("b", "long", 2, "p2")]
    names, ids = [("p1", "p1", "p2"), ("p1", "other", "p2")], [("1", "3", "2"), ("1", "1", "2")]
    for mode, stored, identities in zip(["name", "id"], names, ids, strict=True):
        schema = pa.schema(
            [
                pa.field(name, pa.int64(), metadata={"PARQUET:field_id": identity})
                for name, identity in zip(stored, identities, strict=True)
            ]
        )
        path = tmp_path / mode
        _table(path, fields, pa.Table.from_arrays([pa.array([1])] * 3, schema=schema), **_mapping(mode))
        with pytest.raises(dv.DataFileError, match='cannot tell which column of the file is "p1"') as error:
            dv.read_table(path).to_pylist()
        assert error.value.column == "a"
        assert dv.read_table(path, columns=["b"]).to_pylist() == [{"b": 1}]
