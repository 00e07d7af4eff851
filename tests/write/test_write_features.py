"""Writes to the tables of the protocol cases follow the rules of their Variant features."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.errors import raises_at
from support.locations import OWN_CASES
from support.tables import list_files

import delta_variant as dv
from delta_variant import write_table
from delta_variant.errors import ProtocolError, SchemaError, ShreddingNotEnabledError, UnsupportedFeatureError

CASES = OWN_CASES / "cases"


@pytest.fixture
def fixture_table(tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that copies the table of a protocol case and returns its folder."""

    def copy(name: str) -> Path:
        return Path(shutil.copytree(CASES / name / "table", tmp_path / "table"))

    return copy


def test_not_null_lets_variant_nulls_in_and_keeps_sql_nulls_out(fixture_table: Callable[[str], Path]):
    """PROTOCOL.md, "Variant Data Type"."""
    table = fixture_table("table/not_null_variant_null")
    before = list_files(table)

    def rows_with(text: str | None) -> pa.Table:
        return pa.table({"id": [9], "v": pa.array([text], pa.json_())})

    with raises_at(SchemaError, "NOT NULL", column="v"):
        write_table(table, rows_with(None), mode="append")
    with pytest.raises(SchemaError, match="'v' is declared as non-nullable"):
        write_table(table, rows_with("no json"), mode="append", json=dv.JsonOptions(on_invalid="null"))
    assert list_files(table) == before
    assert write_table(table, rows_with("null"), mode="append").version == 1


@pytest.mark.parametrize("name", ["table/default_of_a_variant", "table/property_without_the_feature"])
def test_a_required_writer_feature_rejects_the_append(name: str, fixture_table: Callable[[str], Path]):
    """A default that is not NULL, and the shredding property without its feature (audit rules X8, H4)."""
    table = fixture_table(name)
    before = list_files(table)
    with pytest.raises(
        (UnsupportedFeatureError, ProtocolError), match=r"CURRENT_DEFAULT|default|variantShredding"
    ):
        write_table(table, pa.table({"id": [9]}), mode="append")
    assert list_files(table) == before


@pytest.mark.parametrize("name", ["table/partitioned_by_variant", "table/variant_as_map_key"])
def test_a_variant_that_delta_does_not_allow_rejects_the_append(
    name: str, fixture_table: Callable[[str], Path]
):
    """A map key, a partition column and a generated column (audit rules T6, T7)."""
    table = fixture_table(name)
    with pytest.raises(SchemaError, match="Variant"):
        write_table(table, pa.table({"id": [9]}), mode="append")


def test_without_the_property_new_files_are_unshredded_and_the_feature_remains(
    fixture_table: Callable[[str], Path],
):
    """PROTOCOL.md, "Writer Requirements for Variant Shredding"."""
    table = fixture_table("log/property_off_again")
    before = dv.load_snapshot(table).protocol
    rows = pa.table({"id": [3], "v": pa.array(['{"a":3}'], pa.json_())})
    result = write_table(table, rows, mode="append")
    parts = pq.ParquetFile(table / result.files[0].path).schema_arrow.field("v").type
    assert [part.name for part in parts] == ["metadata", "value"]
    assert dv.load_snapshot(table).protocol == before
    schema = dv.ShreddingSchema.of({"a": pa.int64()})
    with pytest.raises(ShreddingNotEnabledError, match="enableVariantShredding"):
        write_table(table, rows, mode="append", shredding=schema)
    texts = dv.read_table(table, columns={"id": "id", "v": "to_json(v)"}).to_table().to_pylist()
    assert sorted(row["v"] for row in texts) == ['{"a":1}', '{"a":2}', '{"a":3}']


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("table/shredding_feature_preview", ["variantType", "variantShredding-preview"]),
        (
            "table/shredding_feature_both_names",
            ["variantType", "variantShredding", "variantShredding-preview"],
        ),
        ("table/type_feature_preview", ["variantType-preview"]),
        ("table/type_feature_both_names", ["variantType", "variantType-preview"]),
    ],
)
def test_an_append_leaves_the_names_of_the_features_as_they_are(
    name: str, names: list[str], fixture_table: Callable[[str], Path]
):
    """A table keeps the preview names of its features (audit rule T3)."""
    table = fixture_table(name)
    write_table(table, pa.table({"id": [9], "v": pa.array(["1"], pa.json_())}), mode="append")
    protocol = dv.load_snapshot(table).protocol
    assert (list(protocol.reader_features or ()), list(protocol.writer_features or ())) == (names, names)


@pytest.mark.parametrize("annotate", [True, False])
def test_the_annotation_can_be_omitted_for_old_readers(annotate: bool, tmp_path: Path):
    """Some older readers reject the logical type VARIANT."""
    data = pa.table({"v": pa.array(['{"a":1}'], pa.json_())})
    result = write_table(tmp_path / "t", data, files=dv.FileOptions(annotate=annotate))
    file = tmp_path / "t" / result.files[0].path
    assert ("Variant" in str(pq.ParquetFile(file).schema)) is annotate
    assert dv.read_table(tmp_path / "t", columns=["v:a::int"]).to_table().to_pydict() == {"v:a::int": [1]}
