"""`create_table`: columns, rules and protocol of a table without rows; deltalake is the reader."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from support.tables import read_actions, read_commit

import delta_variant as dv

DEFINITIONS = [
    "id bigint NOT NULL COMMENT 'the key'",
    "at timestamp",
    "`day` date GENERATED ALWAYS AS (cast(at as date))",
    "note string DEFAULT 'a, b' NOT NULL",
    "size decimal(10,2)",
    "CONSTRAINT Positive CHECK (id > 0)",
]


def protocol_of(table: Path) -> dict[str, Any]:
    [protocol] = read_actions(table, "protocol", 0)
    return protocol


def test_deltalake_reads_the_columns_the_properties_and_the_partitions(tmp_path: Path):
    table = dv.Table(tmp_path)
    result = table.create(DEFINITIONS, partition_by="day", name="orders", description="all of them")
    assert result.version == 0
    other = deltalake.DeltaTable(tmp_path)
    assert (other.version(), other.metadata().name, other.metadata().description) == (
        0,
        "orders",
        "all of them",
    )
    assert other.metadata().partition_columns == ["day"]
    assert other.metadata().configuration == {"delta.constraints.positive": "id > 0"}
    fields = {field.name: field for field in other.schema().fields}
    assert {name: (str(field.type), field.nullable) for name, field in fields.items()} == {
        "id": ('PrimitiveType("long")', False),
        "at": ('PrimitiveType("timestamp")', True),
        "day": ('PrimitiveType("date")', True),
        "note": ('PrimitiveType("string")', False),
        "size": ('PrimitiveType("decimal(10,2)")', True),
    }
    assert fields["id"].metadata == {"comment": "the key"}
    assert fields["day"].metadata == {"delta.generationExpression": "cast(at as date)"}
    assert fields["note"].metadata == {"CURRENT_DEFAULT": "'a, b'"}
    # PROTOCOL.md, "Generated Columns", "Default Columns", "CHECK Constraints".
    features = set(protocol_of(tmp_path)["writerFeatures"])
    assert features == {
        "appendOnly",
        "invariants",
        "checkConstraints",
        "generatedColumns",
        "allowColumnDefaults",
    }
    assert table.audit().is_clean


def test_rows_follow_the_rules_of_the_definitions(tmp_path: Path):
    table = dv.Table(tmp_path)
    table.create(DEFINITIONS)
    table.append([{"id": 1, "at": dt.datetime(2026, 11, 27, 5, tzinfo=dt.timezone.utc)}])
    [row] = table
    assert (row["day"], row["note"], row["size"]) == (dt.date(2026, 11, 27), "a, b", None)
    with pytest.raises(dv.errors.ConstraintViolationError, match="positive"):
        table.append([{"id": 0}])
    with pytest.raises(dv.SchemaError, match="'id' is NOT NULL"):
        table.append([{"id": None}])


def test_columns_are_definitions_a_mapping_or_an_arrow_schema(tmp_path: Path):
    schema = pa.schema(
        [pa.field("id", pa.int64(), nullable=False), pa.field("s", pa.struct({"a": pa.int32()}))]
    )
    dv.create_table(tmp_path / "arrow", schema)
    dv.create_table(tmp_path / "sql", ["id bigint NOT NULL", "s struct<a: int>"])
    dv.create_table(tmp_path / "mapping", {"id": "bigint", "s": pa.struct({"a": pa.int32()})})
    schemas = [deltalake.DeltaTable(tmp_path / name).schema() for name in ("arrow", "sql", "mapping")]
    assert schemas[0] == schemas[1]
    assert [field.nullable for field in schemas[2].fields] == [True, True]
    dv.create_table(tmp_path / "variant", ["v variant", "constraint string"])
    assert "variantShredding" in protocol_of(tmp_path / "variant")["readerFeatures"]
    assert dv.Table(tmp_path / "variant").columns == ["v", "constraint"]


def test_text_of_limited_width_has_the_metadata_of_spark(tmp_path: Path):
    dv.create_table(tmp_path, ["a CHAR(3) NOT NULL COMMENT 'x'", "b varchar(5)", "varchar int"])
    dv.add_columns(tmp_path, {"c": "character(2)"})
    dv.sql(f"alter table delta.`{tmp_path}` add columns (d varchar(7) comment 'hi')")
    schema = json.loads(dv.load_snapshot(tmp_path).metadata.schema_string)
    assert [(field["name"], field["metadata"]) for field in schema["fields"]] == [
        ("a", {"comment": "x", "__CHAR_VARCHAR_TYPE_STRING": "char(3)"}),
        ("b", {"__CHAR_VARCHAR_TYPE_STRING": "varchar(5)"}),
        ("varchar", {}),
        ("c", {"__CHAR_VARCHAR_TYPE_STRING": "char(2)"}),
        ("d", {"comment": "hi", "__CHAR_VARCHAR_TYPE_STRING": "varchar(7)"}),
    ]
    with pytest.raises(dv.errors.ConstraintViolationError, match=r"char\(3\)"):
        dv.write_table(tmp_path, [{"a": "abcd"}], mode="append")
    for text in ("a varchar(0)", "a struct<b: varchar(3)>", "a char"):
        with pytest.raises(dv.ExpressionError):
            dv.create_table(tmp_path / "t", [text])


def test_a_table_that_exists_is_not_touched(tmp_path: Path):
    dv.write_table(tmp_path, [{"id": 1}])
    with pytest.raises(dv.TableExistsError, match=r"pass mode='ignore'$"):
        dv.create_table(tmp_path, ["id bigint"])
    assert dv.create_table(tmp_path, ["other bigint"], mode="ignore").version is None
    assert dv.Table(tmp_path).columns == ["id"]


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        (["id bigint NOT"], dv.ExpressionError, "character 14: expected `null`, got the end"),
        (["id bigint PRIMARY KEY"], dv.ExpressionError, "expected NOT NULL, DEFAULT value, .* got `PRIMARY`"),
        (["id int GENERATED ALWAYS AS IDENTITY"], dv.SchemaError, "'id' because it is integer: expected big"),
        (["id bigint GENERATED ALWAYS AS IDENTITY (INCREMENT BY 0)"], dv.SchemaError, "INCREMENT BY is 0"),
        (["id bigint GENERATED ALWAYS AS IDENTITY DEFAULT 5"], dv.SchemaError, "also has a default"),
        ([f"id bigint GENERATED ALWAYS AS IDENTITY (START WITH {1 << 63})"], dv.SchemaError, "not a bigint"),
        (["id bigint GENERATED ALWAYS AS IDENTITY (START WITH 1.5)"], dv.ExpressionError, "an integer"),
        (
            ["id bigint GENERATED ALWAYS AS IDENTITY (START WITH 1 START WITH 2)"],
            dv.ExpressionError,
            "start of an identity column is given twice",
        ),
        (["id bigint GENERATED BY DEFAULT AS (1)"], dv.ExpressionError, "expected `identity`"),
        (["id biggint"], dv.ExpressionError, "did you mean bigint"),
        (["m map<variant, int>"], dv.ExpressionError, "a Variant cannot be the key of a map"),
        (["id bigint COMMENT 5"], dv.ExpressionError, "expected a string, got `5`"),
        (["id int", "n int GENERATED ALWAYS AS (m + 1)"], dv.UnsupportedFeatureError, "`m` does not exist"),
        (["id int", "CONSTRAINT c CHECK (m > 1)"], dv.UnsupportedFeatureError, "`m` does not exist"),
        (["id int", "ID int"], dv.SchemaError, "differ at most by case"),
        ({"a.b": "int"}, dv.SchemaError, "cannot create the field 'b' in 'a'"),
        ([], ValueError, "columns is empty"),
        (
            "id int",
            dv.errors.ArgumentTypeError,
            "expected a list of SQL definitions of columns, got 'id int'",
        ),
    ],
)
def test_definitions_that_no_table_can_have_are_rejected(
    tmp_path: Path, columns: Any, error: type[Exception], message: str
):
    with pytest.raises(error, match=message):
        dv.create_table(tmp_path / "t", columns)
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("is_sql", [False, True])
def test_a_column_can_have_variants_inside_its_type(tmp_path: Path, is_sql: bool):
    """The names of types are those of PROTOCOL.md, "Schema Serialization Format"."""
    columns = ["a array<variant>", "m map<string, variant>", "s struct<n: struct<v: variant>>"]
    if is_sql:
        dv.sql(f"create table t ({', '.join(columns)})", t=tmp_path)
    else:
        dv.create_table(tmp_path, columns)
    actions = actions_of(tmp_path)
    types = {each["name"]: each["type"] for each in json.loads(actions["metaData"]["schemaString"])["fields"]}
    assert types["a"]["elementType"] == types["m"]["valueType"] == "variant"
    assert types["s"]["fields"][0]["type"]["fields"][0]["type"] == "variant"
    assert "variantType" in actions["protocol"]["readerFeatures"]
    value = "parse_json('[1]')"
    values = f"array({value}), map('k', {value}), named_struct('n', named_struct('v', {value}))"
    dv.sql(f"insert into t select {values}", t=tmp_path)
    assert dv.read_table(tmp_path).to_pylist() == [{"a": [[1]], "m": [("k", [1])], "s": {"n": {"v": [1]}}}]


def actions_of(table: Path) -> dict[str, dict[str, Any]]:
    return {kind: action for each in read_commit(table, 0) for kind, action in each.items()}


CLUSTERED = ["id bigint", "`a.b` date", "s struct<x: struct<y: string>, n: decimal(5,2)>", "v variant"]


def test_a_clustered_table_names_its_columns(tmp_path: Path):
    dv.create_table(tmp_path, CLUSTERED, cluster_by=["`A.B`", "s.x.y", ("s", "n"), "id"])
    actions = actions_of(tmp_path)
    # The domain of delta-spark; tests/spark/test_clustering_on_spark.py compares whole commits.
    assert json.loads(actions["domainMetadata"]["configuration"]) == {
        "clusteringColumns": [["a.b"], ["s", "x", "y"], ["s", "n"], ["id"]],
        "domainName": "delta.clustering",
    }
    assert {"clustering", "domainMetadata"} <= set(actions["protocol"]["writerFeatures"])
    table = dv.Table(tmp_path)
    table.append([{"id": 1, "v": {"a": 1}}])
    table.optimize()
    assert table.audit(data=True).is_clean
    with pytest.raises(dv.SchemaError, match="clustering column"):
        table.set_properties({"delta.dataSkippingStatsColumns": "id"})
    with pytest.raises(dv.UnsupportedFeatureError, match=r"clustered .*: run ALTER TABLE … CLUSTER BY NONE"):
        table.overwrite([{"id": "x"}], schema_mode="overwrite")
    assert table.scan().to_pylist() == [{"id": 1, "a.b": None, "s": None, "v": {"a": 1}}]


def test_a_mapped_table_is_clustered_by_physical_names(tmp_path: Path):
    mapped = {"delta.columnMapping.mode": "name"}
    dv.create_table(tmp_path, CLUSTERED, cluster_by="s.n", configuration=mapped)
    [column] = json.loads(actions_of(tmp_path)["domainMetadata"]["configuration"])["clusteringColumns"]
    fields = {
        field["name"]: field
        for field in json.loads(actions_of(tmp_path)["metaData"]["schemaString"])["fields"]
    }
    inner = {field["name"]: field for field in fields["s"]["type"]["fields"]}
    name = "delta.columnMapping.physicalName"
    assert column == [fields["s"]["metadata"][name], inner["n"]["metadata"][name]]
    dv.rename_column(tmp_path, "s.n", "m")
    assert dv.audit_table(tmp_path).is_clean


@pytest.mark.parametrize(
    ("cluster_by", "configuration", "sentence"),
    [
        (["id", "a", "b", "c", "d"], {}, "by 5 columns because Delta supports 4"),
        (["id", "ID"], {}, "'id' because it is named twice"),
        (["nope"], {}, "there is no column 'nope'"),
        (["v"], {}, "'v' because it is variant: expected a number"),
        (["f"], {}, "'f' because it is boolean"),
        (["s"], {}, "'s' because it is struct<x: long>"),
        (["l.element"], {}, "keeps no statistics"),
        (["a"], {"delta.dataSkippingNumIndexedCols": "1"}, "'a' because the table keeps no statistics of it"),
        (["a"], {"delta.dataSkippingStatsColumns": "id"}, "'a' because the table keeps no statistics of it"),
    ],
)
def test_columns_that_delta_does_not_cluster_by_are_rejected(
    tmp_path: Path, cluster_by: list[str], configuration: dict[str, str], sentence: str
):
    columns = ["id bigint", *(f"{name} int" for name in "abcd"), "v variant", "f boolean"]
    columns += ["s struct<x: bigint>", "l array<int>"]
    with pytest.raises(dv.SchemaError, match=sentence):
        dv.create_table(tmp_path / "t", columns, cluster_by=cluster_by, configuration=configuration)
    assert not (tmp_path / "t").exists()


def test_partitions_are_not_clustered(tmp_path: Path):
    with pytest.raises(ValueError, match="expected partition_by or cluster_by, got both"):
        dv.create_table(tmp_path / "t", ["id bigint", "p int"], partition_by="p", cluster_by="id")
    assert dv.create_table(tmp_path / "t", ["id bigint"], cluster_by=[]).version == 0
    assert "domainMetadata" not in actions_of(tmp_path / "t")
