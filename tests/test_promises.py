"""Each promise of a table or a caller is kept or refused as docs/reference/promises.md says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from planting import Table
from support.errors import raises_at

import delta_variant as dv
from delta_variant.errors import SchemaError, UnsupportedFeatureError

ROWS = pa.table({"id": [1, 2], "a": ["x", "y"]})
STATS_COLUMNS = "delta.dataSkippingStatsColumns"


def planted(path: Path, rows: pa.Table, metadata: dict[str, dict[str, Any]], **options: Any) -> Path:
    """Create a table and set the field metadata of its columns."""
    dv.write_table(path, rows, **options)

    def change(document: dict[str, Any]) -> None:
        for field in document["fields"]:
            field["metadata"].update(metadata.get(field["name"], {}))

    Table(path).edit_schema(change)
    return path


# Options of the caller that only a new table has


@pytest.mark.parametrize("option", ["name", "description"])
@pytest.mark.parametrize(
    "mode", [{}, {"mode": "overwrite"}, {"mode": "overwrite", "schema_mode": "overwrite"}]
)
def test_an_existing_table_is_not_described_again(tmp_path: Path, option: str, mode: dict[str, Any]):
    write = {"mode": "append", **mode}
    dv.write_table(tmp_path / "t", ROWS, **{option: "first"})
    with pytest.raises(ValueError, match=f"{option}: expected that of the existing table, 'first', got"):
        dv.write_table(tmp_path / "t", ROWS, **write, **{option: "second"})
    # A loop that creates the table and then appends can pass the same options each time.
    assert dv.write_table(tmp_path / "t", ROWS, **write, **{option: "first"}).version == 1
    assert getattr(dv.load_snapshot(tmp_path / "t").metadata, option) == "first"


def test_the_properties_of_an_existing_table_may_be_passed_again_but_not_changed(tmp_path: Path):
    same = {"delta.checkpointInterval": "5"}
    dv.write_table(tmp_path / "t", ROWS, configuration=same)
    assert dv.write_table(tmp_path / "t", ROWS, mode="append", configuration=same).version == 1
    for other in ({"delta.checkpointInterval": "6"}, {**same, "owner": "us"}):
        with pytest.raises(ValueError, match=r"cannot set .*: omit it, or call set_properties"):
            dv.write_table(tmp_path / "t", ROWS, mode="append", configuration=other)


# Properties


def paths_of(table: Path) -> list[str]:
    return [file.relative_to(table).as_posix() for file in sorted(table.rglob("*.parquet"))]


def test_random_folders_replace_those_of_partitions(tmp_path: Path):
    table = tmp_path / "t"
    random = {"delta.randomizeFilePrefixes": "true", "delta.enableChangeDataFeed": "true"}
    dv.write_table(table, ROWS, partition_by="a", configuration=random)
    assert all(re.fullmatch(r"[0-9a-f]{2}/part-[^/]+", path) for path in paths_of(table))
    dv.set_properties(table, {"delta.randomPrefixLength": "7"})
    before = {*paths_of(table)}
    dv.update(table, {"id": "id + 1"}, where="a = 'x'")
    written = {*paths_of(table)} - before
    patterns = (r"[0-9a-f]{7}/part-[^/]+", r"_change_data/[0-9a-f]{7}/cdc-[^/]+")
    assert [sum(re.fullmatch(each, path) is not None for path in written) for each in patterns] == [1, 1]
    rows = sorted(map(tuple, (row.values() for row in dv.read_table(table).to_pylist())))
    assert rows == [(2, "x"), (2, "y")]


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [("id,b", {}, "no column 'b'"), ("A", {"partition_by": "a"}, "'A', but partition columns")],
)
def test_columns_with_statistics_must_be_data_columns(tmp_path: Path, names, options, message):
    settings = {STATS_COLUMNS: names}
    with raises_at(SchemaError, message):
        dv.write_table(tmp_path / "t", ROWS, configuration=settings, **options)
    wider = ROWS.append_column("b", pa.array([1, 2]))
    dv.write_table(tmp_path / "t", wider, configuration=settings)
    # Delta on Spark checks the property with each change of the metadata, too.
    with raises_at(SchemaError, message):
        dv.write_table(tmp_path / "t", ROWS, mode="overwrite", schema_mode="overwrite", **options)


def test_clustering_columns_keep_their_statistics(tmp_path: Path):
    dv.write_table(tmp_path / "t", ROWS)
    table = Table(tmp_path / "t")
    domain = {"clusteringColumns": [["a"]], "domainName": "delta.clustering"}
    action = {"domain": "delta.clustering", "configuration": json.dumps(domain), "removed": False}
    table.rewrite([*table.actions(), {"domainMetadata": action}])
    for settings in ({STATS_COLUMNS: "id"}, {"delta.dataSkippingNumIndexedCols": "1"}):
        with raises_at(SchemaError, "no statistics of the clustering column a", column="a"):
            dv.set_properties(table.path, settings)
    assert dv.set_properties(table.path, {"delta.dataSkippingNumIndexedCols": "2"}).version == 1


# Metadata of columns


def test_an_overwrite_keeps_the_metadata_of_a_column_in_another_case(tmp_path: Path):
    comment = {"a": {"comment": "why", "__CHAR_VARCHAR_TYPE_STRING": "varchar(1)"}}
    table = planted(tmp_path / "t", ROWS, comment)
    dv.write_table(table, ROWS.rename_columns(["id", "A"]), mode="overwrite", schema_mode="overwrite")
    (field,) = (field for field in dv.load_snapshot(table).schema.fields if field.name == "A")
    assert field.metadata == comment["a"]


def test_an_overwrite_keeps_the_columns_that_a_generated_column_reads(tmp_path: Path):
    table = planted(tmp_path / "t", ROWS, {"a": {"delta.generationExpression": "cast(id as string)"}})
    with raises_at(SchemaError, "the generated column a of .* reads", column="id"):
        dv.write_table(table, ROWS.select(["a"]), mode="overwrite", schema_mode="overwrite")
    dv.write_table(table, ROWS.select(["id"]), mode="overwrite", schema_mode="overwrite")


@pytest.mark.parametrize(
    "write",
    [
        lambda table: dv.write_table(table, ROWS, mode="append"),
        lambda table: dv.update(table, {"id": "0"}, where="a = 'X'"),
        lambda table: dv.delete(table, "a = 'X'"),
    ],
    ids=["append", "update", "delete"],
)
def test_a_collation_rejects_writes(tmp_path: Path, write):
    table = planted(tmp_path / "t", ROWS, {"a": {"__COLLATIONS": {"a": "spark.UTF8_LCASE"}}})
    with raises_at(UnsupportedFeatureError, "the collation of the column 'a'", column="a"):
        write(table)
    assert dv.load_snapshot(table).version == 0
