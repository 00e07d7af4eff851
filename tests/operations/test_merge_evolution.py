"""Merges that add columns of the source, and sources without some columns; deltalake reads the result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import delta_variant as dv

ON = "target.id = source.id"


def rows_of(table: Path) -> list[Any]:
    return sorted(deltalake.DeltaTable(table).to_pyarrow_table().to_pylist(), key=lambda row: row["id"])


@pytest.fixture
def table(tmp_path: Path) -> dv.Table:
    table = dv.Table(tmp_path / "t")
    table.append(pa.table({"id": [1, 2], "n": [10, 20]}))
    return table


def test_all_columns_of_the_source_are_set_and_added(table: dv.Table):
    source = pa.table({"id": [2, 3], "note": ["b", "c"]})
    merge = table.merge(source, ON, schema_mode="merge")
    result = merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert (result.rows_updated, result.rows_inserted) == (1, 1)
    # Delta: an update leaves a column that the source lacks, an insert sets it to NULL.
    assert rows_of(Path(table.table_uri)) == [
        {"id": 1, "n": 10, "note": None},
        {"id": 2, "n": 20, "note": "b"},
        {"id": 3, "n": None, "note": "c"},
    ]
    assert table.as_of(0).columns == ["id", "n"]
    assert table.audit(data=True).is_clean


def test_columns_are_added_if_no_row_matches(table: dv.Table):
    # Delta on Spark 4.2 commits version 1, with the column.
    merge = table.merge(pa.table({"id": [9], "note": ["b"]}), ON, schema_mode="merge")
    assert merge.when_matched_update_all().execute().version == 1
    assert rows_of(Path(table.table_uri)) == [
        {"id": 1, "n": 10, "note": None},
        {"id": 2, "n": 20, "note": None},
    ]
    assert table.audit(data=True).is_clean


def test_a_table_with_a_key_that_is_not_null_gets_columns(tmp_path: Path):
    table = dv.Table(tmp_path)
    table.create(["id bigint NOT NULL", "s struct<a: int>"])
    table.append([{"id": 1, "s": {"a": 1}}])
    merge = table.merge([{"id": 1, "note": "x"}, {"id": 2, "note": "y"}], ON, schema_mode="merge")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert table.head() == [{"id": 1, "s": {"a": 1}, "note": "x"}, {"id": 2, "s": None, "note": "y"}]


def test_only_columns_that_a_clause_sets_are_added(table: dv.Table):
    source = pa.table({"id": [2], "n": [21], "x": [1], "y": [2]})
    merge = table.merge(source, ON, schema_mode="merge")
    merge.when_matched_update({"n": "source.n"}).execute()
    assert table.columns == ["id", "n"]
    merge = table.merge(source, ON, schema_mode="merge")
    merge.when_matched_update_all(except_cols=["y"]).execute()
    assert {"id": 2, "n": 21, "x": 1} in [{k: v for k, v in row.items() if k != "y"} for row in table]


def test_an_insert_gets_the_default_of_a_column_that_the_source_lacks(tmp_path: Path):
    table = dv.Table(tmp_path)
    table.create(["id bigint", "note string DEFAULT 'none'"])
    merge = table.merge([{"id": 1}], ON, schema_mode="merge")
    merge.when_not_matched_insert_all().execute()
    assert table.head() == [{"id": 1, "note": "none"}]


def test_a_variant_and_fields_of_structs_are_added(tmp_path: Path):
    table = dv.Table(tmp_path)
    table.append(pa.table({"id": [1], "s": [{"a": 1}]}))
    source = pa.table({"id": [1], "s": [{"a": 2, "b": "x"}], "event": ['{"n": 1}']})
    merge = table.merge(source, ON, schema_mode="merge", variant_columns=["event"])
    merge.when_matched_update_all().execute()
    assert table.head() == [{"id": 1, "s": {"a": 2, "b": "x"}, "event": {"n": 1}}]


def test_without_it_a_partial_source_is_rejected_and_other_columns_are_ignored(table: dv.Table):
    merge = table.merge(pa.table({"id": [2], "note": ["b"]}), ON)
    with pytest.raises(dv.ExpressionError, match="the source lacks the column 'n'"):
        merge.when_matched_update_all()
    table.merge(pa.table({"id": [2], "n": [5], "note": ["b"]}), ON).when_matched_update_all().execute()
    assert table.columns == ["id", "n"]
    with pytest.raises(ValueError, match="schema_mode"):
        table.merge([{"id": 1}], ON, schema_mode="overwrite")  # type: ignore[arg-type]


def test_the_same_column_of_another_type_is_cast(table: dv.Table):
    merge = table.merge(pa.table({"id": [2], "n": ["7"]}), ON, schema_mode="merge")
    merge.when_matched_update_all().execute()
    assert rows_of(Path(table.table_uri)) == [{"id": 1, "n": 10}, {"id": 2, "n": 7}]
