"""Changes of table properties and columns: the commits, what reads return, and what is rejected."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st
from support.errors import raises_at
from support.intercepted_store import commit_first
from support.planting import Table
from support.tables import read_commit, read_rows

import delta_variant as dv
from delta_variant.errors import (
    CommitConflictError,
    MalformedLogError,
    ProtocolError,
    SchemaError,
    UnsupportedFeatureError,
)
from delta_variant.log.listing import commit_file_name
from delta_variant.protocol import features
from delta_variant.protocol.types import (
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    edit_type,
    fields_of,
    split_at_field,
    type_at,
)
from delta_variant.protocol.types import describe as describe_type
from delta_variant.protocol.types import resolve as resolve_path

ROWS = pa.table({"id": [1, 2], "s": [{"a": 1, "b": "x"}, None], "day": ["m", "t"]})
COLUMN_MAPPING = {"delta.columnMapping.mode": "name"}


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Return a table of two rows with a protocol before table features."""
    uri = str(tmp_path / "t")
    dv.write_table(uri, ROWS, partition_by="day")
    return uri


def actions_of(table: str, version: int) -> dict[str, Any]:
    """Return the actions of a commit that has one of each kind."""
    commit = read_commit(table, version)
    return {name: body for action in commit for name, body in action.items()}


def fields_by_name(table: str) -> dict[str, StructField]:
    found = fields_of(dv.load_snapshot(table).schema)
    return {".".join(path): field for path, field in found}


# Properties


def test_enabling_shredding_adds_the_stable_features_to_a_legacy_protocol(table: str):
    """The protocol lists the features of its old versions, too (PROTOCOL.md, "Table Features")."""
    assert dv.set_properties(table, {"delta.enableVariantShredding": "true"}).version == 1
    protocol = dv.load_snapshot(table).protocol
    assert (protocol.min_reader_version, protocol.min_writer_version) == (3, 7)
    assert set(protocol.reader_features) == {"variantType", "variantShredding"}
    assert set(protocol.writer_features) == {"variantType", "variantShredding", "appendOnly", "invariants"}
    info = actions_of(table, 1)["commitInfo"]
    assert (info["operation"], info["isBlindAppend"]) == ("SET TBLPROPERTIES", False)
    assert json.loads(info["operationParameters"]["properties"]) == {"delta.enableVariantShredding": "true"}
    assert set(actions_of(table, 1)) == {"commitInfo", "protocol", "metaData"}


def test_enabling_shredding_adds_no_stable_name_next_to_the_preview(table: str):
    dv.set_properties(table, {"delta.feature.variantShredding-preview": "supported"})
    dv.set_properties(table, {"delta.enableVariantShredding": "true"})
    names = set(dv.load_snapshot(table).protocol.writer_features)
    assert "variantShredding-preview" in names
    assert "variantShredding" not in names


def test_unsetting_a_property_keeps_its_feature(table: str):
    """PROTOCOL.md, "Active Features"."""
    dv.set_properties(table, {"delta.enableVariantShredding": "true"})
    before = dv.load_snapshot(table).protocol
    dv.set_properties(table, {"delta.enableVariantShredding": "false"})
    assert dv.unset_properties(table, ["delta.enableVariantShredding"]).version == 3
    after = dv.load_snapshot(table)
    assert after.protocol == before
    assert after.properties == {}


def test_unchanged_properties_are_not_committed(table: str):
    dv.set_properties(table, {"delta.appendOnly": "true", "owner": "us"})
    assert dv.set_properties(table, {"owner": "us"}).version is None
    assert dv.load_snapshot(table).version == 1


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"delta.enableVariantShredding": "bla"}, ProtocolError, "'bla'.*true or false"),
        ({"delta.enableVariantShreding": "true"}, ProtocolError, "did you mean delta.enableVariantShredding"),
        ({"delta.appendonly": "true"}, ProtocolError, "did you mean delta.appendOnly"),
        ({"delta.logRetentionDuration": "soon"}, ProtocolError, "expected a duration"),
        ({"delta.columnMapping.maxColumnId": "9"}, ProtocolError, "counts the ids"),
        ({"delta.constraints.c": "id > 0"}, ProtocolError, "add_constraint"),
        ({"delta.inCommitTimestampEnablementVersion": "1"}, ProtocolError, "is written with it"),
        ({"delta.minReaderVersion": "3"}, ProtocolError, "directly: the protocol follows"),
        ({"delta.columnMapping.mode": "id"}, UnsupportedFeatureError, "from none to name"),
        ({"delta.enableIcebergCompatV2": "true"}, UnsupportedFeatureError, "IcebergCompatV2=true"),
        ({"delta.feature.appendOnly": "on"}, ProtocolError, "expected 'supported'"),
        ({"delta.feature.catalogManaged": "supported"}, UnsupportedFeatureError, "catalogManaged"),
        ({"delta.feature.whatever": "supported"}, UnsupportedFeatureError, "whatever"),
        ({"delta.dataSkippingStatsColumns": "id,nothing"}, SchemaError, "no column '?nothing"),
        ({"delta.dataSkippingStatsColumns": "day"}, SchemaError, "'day', but partition columns"),
        ({"delta.appendOnly": True}, ValueError, "text|str"),
    ],
)
def test_an_invalid_property_is_rejected(table: str, values, error, message):
    with pytest.raises(error, match=message):
        dv.set_properties(table, {"owner": "us", **values})
    assert dv.load_snapshot(table).version == 0


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("nothing", ProtocolError, "no table property 'nothing'"),
        ("delta.columnMapping.mode", UnsupportedFeatureError, "from name to none"),
        ("delta.columnMapping.maxColumnId", ProtocolError, "directly: it counts the ids"),
        ("delta.feature.columnMapping", ProtocolError, r"call drop_feature\('columnMapping'\)"),
    ],
)
def test_a_property_that_cannot_be_unset_is_rejected(tmp_path: Path, name, error, message):
    table = str(tmp_path / "t")
    dv.write_table(table, ROWS, configuration=COLUMN_MAPPING)
    with pytest.raises(error, match=message):
        dv.unset_properties(table, [name])
    with pytest.raises(UnsupportedFeatureError, match="from name to none"):
        dv.set_properties(table, {"delta.columnMapping.mode": "none"})


def test_in_commit_timestamps_start_with_the_version_that_enables_them(table: str):
    """PROTOCOL.md, "Writer Requirements for In-Commit Timestamps", 4 and 5."""
    later = time.time() + 3600
    os.utime(Path(table) / commit_file_name(0), (later, later))
    assert dv.set_properties(table, {"delta.enableInCommitTimestamps": "true"}).version == 1
    actions = actions_of(table, 1)
    timestamp = actions["commitInfo"]["inCommitTimestamp"]
    assert timestamp > later * 1000
    configuration = actions["metaData"]["configuration"]
    assert configuration["delta.inCommitTimestampEnablementVersion"] == "1"
    assert configuration["delta.inCommitTimestampEnablementTimestamp"] == str(timestamp)
    dv.write_table(table, ROWS, mode="append")
    assert actions_of(table, 2)["commitInfo"]["inCommitTimestamp"] > timestamp


def test_row_tracking_can_be_enabled_when_all_rows_have_ids(tmp_path: Path):
    """PROTOCOL.md, "Writer Requirements for Row Tracking"."""
    table = str(tmp_path / "t")
    dv.write_table(table, ROWS.slice(0, 0))
    dv.set_properties(table, {"delta.feature.rowTracking": "supported"})
    assert "domainMetadata" in dv.load_snapshot(table).protocol.writer_features
    dv.write_table(table, ROWS, mode="append")
    dv.set_properties(table, {"delta.enableRowTracking": "true"})
    configuration = dv.load_snapshot(table).properties
    assert configuration["delta.rowTracking.materializedRowIdColumnName"].startswith("_row-id-col-")
    with pytest.raises(ProtocolError, match="directly: it is the name of an internal column"):
        dv.unset_properties(table, ["delta.rowTracking.materializedRowIdColumnName"])


def test_a_change_data_feed_is_rejected_next_to_a_column_of_its_names(tmp_path: Path):
    table = str(tmp_path / "t")
    dv.write_table(table, pa.table({"_Change_Type": [1]}))
    with raises_at(SchemaError, "change data feed", column="_Change_Type"):
        dv.set_properties(table, {"delta.enableChangeDataFeed": "true"})


# Commits


def test_a_concurrent_append_does_not_conflict_with_an_alteration(table: str):
    store = commit_first(table, lambda: dv.write_table(table, ROWS, mode="append"))
    assert dv.add_columns(store, {"c": "int"}).version == 2
    assert len(read_rows(table)) == 4


def test_in_commit_timestamps_record_the_committed_version(table: str):
    store = commit_first(table, lambda: dv.write_table(table, ROWS, mode="append"))
    assert dv.set_properties(store, {"delta.enableInCommitTimestamps": "true"}).version == 2
    configuration = actions_of(table, 2)["metaData"]["configuration"]
    assert configuration["delta.inCommitTimestampEnablementVersion"] == "2"


def test_two_concurrent_alterations_conflict(table: str):
    store = commit_first(table, lambda: dv.set_properties(table, {"owner": "us"}))
    with raises_at(CommitConflictError, "changed the metadata", version=1):
        dv.add_columns(store, {"c": "int"})
    assert [field.name for field in dv.load_snapshot(table).schema.fields] == ["id", "s", "day"]


def test_a_concurrent_alteration_conflicts_with_a_write(table: str):
    store = commit_first(table, lambda: dv.set_properties(table, COLUMN_MAPPING))
    with raises_at(CommitConflictError, "changed the protocol", version=1):
        dv.write_table(store, ROWS, mode="append")
    assert len(read_rows(table)) == 2


# Columns that are added


def test_a_variant_can_be_added_to_a_table_with_a_legacy_protocol(table: str):
    assert dv.add_columns(table, {"event": "variant"}).version == 1
    protocol = dv.load_snapshot(table).protocol
    assert set(protocol.writer_features) == {"variantType", "appendOnly", "invariants"}
    dv.write_table(
        table,
        pa.table({"id": [3], "day": ["m"], "event": ['{"a":1}']}),
        mode="append",
        variant_columns=["event"],
    )
    assert read_rows(table, "id", "event:a::int as a") == [
        {"id": 1, "a": None},
        {"id": 2, "a": None},
        {"id": 3, "a": 1},
    ]
    assert actions_of(table, 1)["commitInfo"]["operation"] == "ADD COLUMNS"


def test_fields_can_be_added_to_nested_columns_and_read_null(table: str):
    types: dict[Any, Any] = {
        "s.c": "decimal(10,2)",
        ("s", "d.e"): pa.list_(pa.struct([("f", pa.int32())])),
        "m": "map<string,struct<x:int>>",
    }
    dv.set_properties(table, COLUMN_MAPPING)
    dv.add_columns(table, types)
    dv.add_columns(table, {("m", "value", "y"): "timestamp", ("s", "d.e", "element", "g"): pa.json_()})
    found = fields_by_name(table)
    assert {name: describe_type(found[name].type) for name in ("s.c", "m.value.y", "s.d.e.element.g")} == {
        "s.c": "decimal(10,2)",
        "m.value.y": "timestamp",
        "s.d.e.element.g": "variant",
    }
    assert read_rows(table, "id", "s")[0] == {"id": 1, "s": {"a": 1, "b": "x", "c": None, "d.e": None}}


def test_columns_can_be_added_by_an_arrow_schema(table: str):
    dv.add_columns(table, pa.schema([pa.field("v", pa.json_()), pa.field("n", pa.int64())]))
    assert {name: describe_type(field.type) for name, field in fields_by_name(table).items()} == {
        "id": "long",
        "s": "struct<a: long, b: string>",
        "s.a": "long",
        "s.b": "string",
        "day": "string",
        "v": "variant",
        "n": "long",
    }


def test_new_columns_of_a_mapped_table_get_new_ids_and_physical_names(tmp_path: Path):
    """PROTOCOL.md, "Writer Requirements for Column Mapping"."""
    table = str(tmp_path / "t")
    dv.write_table(table, ROWS, configuration=COLUMN_MAPPING)
    before = int(dv.load_snapshot(table).properties["delta.columnMapping.maxColumnId"])
    dv.add_columns(table, {"x y": "struct<z:int>"})
    found = fields_by_name(table)
    ids = [found[name].metadata["delta.columnMapping.id"] for name in ("x y", "x y.z")]
    assert ids == [before + 1, before + 2]
    assert found["x y"].metadata["delta.columnMapping.physicalName"].startswith("col-")
    assert dv.load_snapshot(table).properties["delta.columnMapping.maxColumnId"] == str(before + 2)


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ({"ID": "int"}, SchemaError, "column ID exists already"),
        ({"s.A": "int"}, SchemaError, "column s.A exists already"),
        ({"id.x": "int"}, SchemaError, "long"),
        ({"t.x": "int"}, SchemaError, "id, s, day"),
        ({"x y": "int"}, SchemaError, "delta.columnMapping.mode=name"),
        ({"m": pa.map_(pa.json_(), pa.int32())}, SchemaError, "Variant keys"),
        ({"n": pa.null()}, SchemaError, "nulls|void|type"),
        ({"n": "no type"}, dv.DeltaVariantError, "no type"),
        ({"a..b": "int"}, SchemaError, "invalid column name 'a..b'"),
        (pa.schema([pa.field("n", pa.int64(), False)]), SchemaError, "column n as NOT NULL"),
        (
            pa.schema([pa.field("n", pa.struct([pa.field("x", pa.int8(), False)]))]),
            SchemaError,
            "column n.x as NOT NULL",
        ),
        ({}, ValueError, "columns is empty"),
    ],
)
def test_an_invalid_new_column_is_rejected(table: str, columns, error, message):
    with pytest.raises(error, match=message):
        dv.add_columns(table, columns)
    assert dv.load_snapshot(table).version == 0


# Column mapping


def test_mapping_an_existing_table_keeps_its_files_and_their_names(table: str):
    """PROTOCOL.md, "Column Mapping". The physical names are the previous names."""
    before = read_rows(table)
    assert dv.set_properties(table, COLUMN_MAPPING).version == 1
    snapshot = dv.load_snapshot(table)
    assert {"columnMapping"} <= set(snapshot.protocol.reader_features) & set(
        snapshot.protocol.writer_features
    )
    found = fields_by_name(table)
    names = {name: field.metadata["delta.columnMapping.physicalName"] for name, field in found.items()}
    assert names == {"id": "id", "s": "s", "s.a": "a", "s.b": "b", "day": "day"}
    ids = sorted(field.metadata["delta.columnMapping.id"] for field in found.values())
    assert ids == [1, 2, 3, 4, 5]
    assert snapshot.properties["delta.columnMapping.maxColumnId"] == "5"
    assert read_rows(table) == before
    dv.write_table(table, ROWS, mode="append")
    assert len(read_rows(table)) == 4


def test_column_mapping_is_rejected_where_columns_have_its_metadata_already(tmp_path: Path):
    table = str(tmp_path / "t")
    dv.write_table(table, ROWS, configuration=COLUMN_MAPPING)

    Table(Path(table)).edit(
        "metaData", lambda metadata: metadata["configuration"].pop("delta.columnMapping.mode")
    )
    with raises_at(ProtocolError, "column mapping metadata", column="id"):
        dv.set_properties(table, COLUMN_MAPPING)


def test_renamed_columns_keep_their_values_partitions_and_statistics(table: str):
    dv.set_properties(table, {**COLUMN_MAPPING, "delta.dataSkippingStatsColumns": "ID, s.a"})
    dv.add_columns(table, {"v": "variant"})
    dv.rename_column(table, "DAY", "the day")
    dv.rename_column(table, "s.a", "x.y")
    dv.rename_column(table, "id", "number")
    dv.rename_column(table, "v", "event")
    snapshot = dv.load_snapshot(table)
    assert snapshot.partition_columns == ("the day",)
    assert snapshot.properties["delta.dataSkippingStatsColumns"] == "number,s.`x.y`"
    row = {"number": 3, "s": {"x.y": 3, "b": "z"}, "the day": "m", "event": '{"a":1}'}
    dv.write_table(table, pa.Table.from_pylist([row]), mode="append", variant_columns=["event"])
    assert read_rows(table, "number", "s", "`the day`", "to_json(event) as event") == [
        {"number": 1, "s": {"x.y": 1, "b": "x"}, "the day": "m", "event": None},
        {"number": 2, "s": None, "the day": "t", "event": None},
        row,
    ]
    assert dv.read_table(table, where="number = 3").explain().files_read == 1
    assert dv.read_table(table, where="`the day` = 't'").to_table().num_rows == 1
    info = actions_of(table, 4)["commitInfo"]
    assert (info["operation"], info["operationParameters"]) == (
        "RENAME COLUMN",
        {"oldColumnPath": "s.a", "newColumnPath": "s.x.y"},
    )


def test_a_new_column_does_not_read_values_of_a_dropped_one(table: str):
    dv.set_properties(table, {**COLUMN_MAPPING, "delta.dataSkippingStatsColumns": "id,s"})
    dv.drop_column(table, "s.a")
    dv.drop_column(table, "id")
    assert dv.load_snapshot(table).properties["delta.dataSkippingStatsColumns"] == "s"
    assert read_rows(table) == [{"s": None, "day": "t"}, {"s": {"b": "x"}, "day": "m"}]
    dv.add_columns(table, {"id": "bigint", "s.a": "string"})
    assert read_rows(table, "id", "s") == [{"id": None, "s": None}, {"id": None, "s": {"b": "x", "a": None}}]
    assert dv.load_snapshot(table).properties["delta.columnMapping.maxColumnId"] == "7"


@pytest.mark.parametrize(
    ("change", "column", "message"),
    [
        (lambda t: dv.rename_column(t, "id", "S"), "s", "case"),
        (lambda t: dv.rename_column(t, "nothing", "x"), "nothing", "no column"),
        (lambda t: dv.rename_column(t, ("l", "element"), "x"), "l.element", "part of an array"),
        (lambda t: dv.drop_column(t, "day"), "day", "partition column"),
        (lambda t: dv.drop_column(t, "u.only"), "u.only", "the only field"),
        (lambda t: dv.drop_column(t, "`"), "`", "invalid column name"),
    ],
)
def test_an_invalid_change_of_columns_is_rejected(table: str, change, column, message):
    dv.set_properties(table, COLUMN_MAPPING)
    dv.add_columns(table, {"l": "array<int>", "u": "struct<only:int>"})
    with raises_at(SchemaError, message, column=column):
        change(table)
    assert dv.load_snapshot(table).version == 2


@pytest.mark.parametrize(
    "change", [lambda t: dv.rename_column(t, "id", "x"), lambda t: dv.drop_column(t, "id")]
)
def test_a_change_of_names_is_rejected_without_column_mapping(table: str, change):
    with raises_at(
        UnsupportedFeatureError, r"delta\.columnMapping\.mode=name first", table=table, column="id"
    ):
        change(table)


def test_the_last_column_next_to_partition_columns_cannot_be_dropped(tmp_path: Path):
    table = str(tmp_path / "t")
    dv.write_table(table, ROWS.select(["id", "day"]), partition_by="day", configuration=COLUMN_MAPPING)
    with raises_at(SchemaError, "every other column", column="id"):
        dv.drop_column(table, "id")


@pytest.mark.parametrize("as_text", [False, True])
def test_a_clustering_column_cannot_be_dropped(tmp_path: Path, as_text: bool):
    table = str(tmp_path / "t")
    dv.write_table(table, ROWS, configuration=COLUMN_MAPPING)
    physical = fields_by_name(table)["s.a"].metadata["delta.columnMapping.physicalName"]
    parent = fields_by_name(table)["s"].metadata["delta.columnMapping.physicalName"]
    columns = [parent] if as_text else [[parent, physical]]
    domain = {"clusteringColumns": columns, "domainName": "delta.clustering"}

    planted = Table(Path(table))
    action = {"domain": "delta.clustering", "configuration": json.dumps(domain), "removed": False}
    planted.rewrite([*planted.actions(), {"domainMetadata": action}])
    for column in ("s",) if as_text else ("s.a", "s"):
        with raises_at(SchemaError, "clustering column", column=column):
            dv.drop_column(table, column)
    dv.drop_column(table, "s.b")
    dv.rename_column(table, "s.a", "c")
    planted.add_commit(3, {"domainMetadata": {**action, "configuration": "{"}})
    with pytest.raises(MalformedLogError, match=r"the domain delta\.clustering") as damaged:
        dv.drop_column(table, "id")
    assert damaged.value.table == table


@pytest.mark.parametrize(
    ("check", "column", "free"),
    [
        ("id > 0 and s.b is not null", "s", "day"),
        ("upper(S.b) > 'A'", "s.b", "s.a"),
        ("soundex(S.b) > 'A'", "s.a", "id"),
        ("s.b <> 'id'", "s.b", "s.a"),
    ],
)
def test_a_column_of_a_constraint_cannot_be_renamed(tmp_path: Path, check: str, column: str, free: str):
    table = str(tmp_path / "t")
    dv.write_table(table, ROWS, configuration=COLUMN_MAPPING)
    Table(Path(table)).set_property("delta.constraints.c", check)
    with raises_at(SchemaError, "because the CHECK constraint c of", column=column):
        dv.rename_column(table, column, "x")
    dv.rename_column(table, free, "x")


def test_deltalake_reads_a_table_with_added_columns(table: str):
    dv.add_columns(table, {"c": "int", "s.d": "string"})
    dv.set_properties(table, {"delta.appendOnly": "true", "owner": "us"})
    theirs = DeltaTable(table)
    assert theirs.version() == 2
    assert theirs.metadata().configuration == {"delta.appendOnly": "true", "owner": "us"}
    columns = theirs.to_pyarrow_table().sort_by("id").to_pydict()
    assert columns["c"] == [None, None]
    assert columns["s"] == [{"a": 1, "b": "x", "d": None}, None]


# Paths in schemas

NAMES = st.sampled_from(["a", "b", "c", "A b"])


def types() -> st.SearchStrategy[DataType]:
    leaves = st.sampled_from(["long", "variant", "decimal(9,2)"]).map(PrimitiveType)

    def nested(parts: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
        fields = st.dictionaries(NAMES, parts, min_size=1, max_size=3).map(
            lambda found: StructType(tuple(StructField(*each) for each in found.items()))
        )
        return st.one_of(fields, parts.map(ArrayType), st.builds(MapType, parts, parts))

    return st.recursive(leaves, nested, max_leaves=8)


@given(types())
def test_editing_a_type_by_its_path_changes_only_that_type(data_type: DataType):
    columns = StructType((StructField("top", data_type),))
    binary = PrimitiveType("binary")
    for path, _ in fields_of(columns):
        assert resolve_path(columns, tuple(step.upper() for step in path)) == path
        edited = edit_type(columns, path, lambda _: binary)
        assert type_at(edited, path) == binary
        assert edit_type(edited, path, lambda _, at=path: type_at(columns, at)) == columns
        assert split_at_field(columns, path) == (path, ())
        if isinstance(type_at(columns, path), ArrayType):
            assert split_at_field(columns, (*path, "element")) == (path, ("element",))


def test_a_feature_is_added_with_the_features_that_it_requires(table: str):
    protocol = dv.load_snapshot(table).protocol
    added = features.with_features(protocol, ["rowTracking"])
    assert set(added.writer_features) == {"rowTracking", "domainMetadata", "appendOnly", "invariants"}
    assert features.with_features(added, ["rowTracking", "invariants"]) is added


@pytest.mark.parametrize("written", ["strng", "array<strng>", "numbr(5,2)", "varchr(5)"])
def test_an_unknown_type_of_a_column_is_rejected_with_the_types(tmp_path: Path, written: str):
    dv.write_table(tmp_path, [{"id": 1}])
    known = r"expected one of tinyint, smallint, int, bigint, .*, variant(; did you mean string\?)?$"
    with pytest.raises(dv.ExpressionError, match=known):
        dv.add_columns(tmp_path, {"new": written})
