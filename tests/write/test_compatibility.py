"""`compatibility="unshredded"`: tables that deltalake and Polars open, also after later writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from support.errors import raises_at

import delta_variant as dv
from delta_variant.errors import ProtocolError, ShreddingNotEnabledError, UnsupportedFeatureError

PROPERTY = "deltaVariant.compatibility"
UNSHREDDED = dv.FileOptions(compatibility="unshredded")
ROWS = [{"id": n, "event": {"user": {"id": n}}} for n in range(4)]
SCHEMA = dv.ShreddingSchema.of({"user": {"id": pa.int64()}})


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return a table of two files for readers without shredding; only the first write names them."""
    path = tmp_path / "t"
    dv.write_table(path, ROWS[:2], variant_columns=["event"], files=UNSHREDDED)
    dv.write_table(path, ROWS[2:], mode="append")
    return path


def merge(table: Path) -> Any:
    source = [{"id": 0, "event": {"user": {"id": 9}}}, {"id": 7, "event": {"user": {"id": 7}}}]
    merged = dv.merge(table, source, on="target.id = source.id")
    return merged.when_matched_update_all().when_not_matched_insert_all().execute()


def check_readable_by_others(table: Path) -> None:
    """Raise unless deltalake and Polars read the Variants of a table, and all files have the plain layout."""
    texts = dv.read_table(table, columns=["to_json(event) as event"]).to_table()["event"].to_pylist()
    rows = DeltaTable(table).to_pyarrow_table()["event"]
    assert sorted(dv.to_json(rows.combine_chunks()).to_pylist()) == sorted(texts)
    frame = pl.scan_delta(str(table)).collect()
    assert sorted(dv.Variant(**each).to_json() for each in frame["event"]) == sorted(texts)
    snapshot = dv.load_snapshot(table)
    assert snapshot.properties[PROPERTY] == "unshredded"
    for path in snapshot.files["path"].to_pylist():
        file = pq.ParquetFile(table / path)
        assert "Variant" not in str(file.schema)
        assert "typed_value" not in str(file.schema)


@pytest.mark.parametrize(
    "write",
    [
        lambda table: dv.write_table(table, ROWS, mode="append"),
        lambda table: dv.write_table(table, ROWS, mode="overwrite"),
        lambda table: dv.write_table(table, ROWS, mode="overwrite", where="id < 4"),
        lambda table: dv.write_table(
            table, ROWS, mode="overwrite", schema_mode="overwrite", variant_columns=["event"]
        ),
        lambda table: dv.delete(table, "id = 1"),
        lambda table: dv.update(table, {"event:user.id": "5"}, where="id = 1"),
        merge,
        lambda table: dv.optimize(table),
        lambda table: dv.optimize(table, sort_by="event:user.id::bigint", reshred=True),
        lambda table: dv.restore(table, version=0),
    ],
    ids=[
        *("append", "overwrite", "replace", "replace the schema", "delete", "update", "merge", "optimize"),
        *("sort", "restore"),
    ],
)
def test_each_operation_follows_the_property(write: Callable[[Path], Any], table: Path):
    before = dv.load_snapshot(table).version
    write(table)
    assert dv.load_snapshot(table).version == before + 1
    check_readable_by_others(table)


def test_the_property_alone_decides(tmp_path: Path):
    configuration = {PROPERTY: "unshredded"}
    dv.write_table(tmp_path / "t", ROWS, variant_columns=["event"], configuration=configuration)
    check_readable_by_others(tmp_path / "t")


def test_a_table_without_variants_remembers_it_for_later_columns(tmp_path: Path):
    dv.write_table(tmp_path / "t", [{"id": 0}], files=UNSHREDDED)
    dv.write_table(tmp_path / "t", ROWS, mode="append", schema_mode="merge", variant_columns=["event"])
    assert "typed_value" not in str(pq.ParquetFile(max((tmp_path / "t").glob("*.parquet"))).schema)
    assert DeltaTable(tmp_path / "t").to_pyarrow_table().num_rows == 5


def test_an_explicit_schema_is_rejected(table: Path):
    with pytest.raises(ShreddingNotEnabledError):
        dv.write_table(table, ROWS, mode="append", shredding=SCHEMA)


def test_a_table_with_the_feature_is_not_written_for_readers_without_it(tmp_path: Path):
    dv.write_table(tmp_path / "t", ROWS, variant_columns=["event"])
    with raises_at(UnsupportedFeatureError, "variantShredding", table=str(tmp_path / "t")):
        dv.write_table(tmp_path / "t", ROWS, mode="append", files=UNSHREDDED)
    with raises_at(UnsupportedFeatureError, "variantShredding", table=str(tmp_path / "t")):
        dv.delete(tmp_path / "t", "id = 1", files=UNSHREDDED)


def test_a_table_cannot_both_enable_and_exclude_shredding(table: Path, tmp_path: Path):
    enable = {"delta.enableVariantShredding": "true"}
    with pytest.raises(ProtocolError, match="exclude each other"):
        dv.set_properties(table, enable)
    with pytest.raises(ProtocolError, match="exclude each other"):
        dv.write_table(
            tmp_path / "u", ROWS, variant_columns=["event"], files=UNSHREDDED, configuration=enable
        )
    dv.write_table(tmp_path / "v", ROWS, variant_columns=["event"])
    with pytest.raises(ProtocolError, match="exclude each other"):
        dv.set_properties(tmp_path / "v", {PROPERTY: "unshredded"})


def test_an_unset_property_shreds_again(table: Path):
    dv.unset_properties(table, [PROPERTY])
    dv.set_properties(table, {"delta.enableVariantShredding": "true"})
    dv.write_table(table, ROWS, mode="append", shredding=SCHEMA)
    added = dv.read_table(table, where="id >= 0").count()
    assert added == 8
    files = [str(pq.ParquetFile(path).schema) for path in table.glob("*.parquet")]
    assert sum("typed_value" in text for text in files) == 1


@pytest.mark.parametrize("value", ["shredded", True])
def test_other_values_are_rejected(value: Any, tmp_path: Path):
    with pytest.raises(ValueError, match="compatibility"):
        dv.FileOptions(compatibility=value)
    with pytest.raises(ProtocolError, match=PROPERTY):
        dv.write_table(tmp_path / "t", ROWS, configuration={PROPERTY: "no"})
