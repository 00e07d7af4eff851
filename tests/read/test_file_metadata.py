"""The column `_metadata` has the file of each row."""

from __future__ import annotations

from pathlib import Path

import pytest

import delta_variant as dv
from delta_variant.errors import ExpressionError
from delta_variant.read.scope import file_metadata

PATH = "_metadata.file_path"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return a table of two partitions, with a file in each."""
    dv.write_table(tmp_path / "t", [{"id": 1, "p": "a b"}, {"id": 2, "p": "c"}], partition_by="p")
    return tmp_path / "t"


def test_each_row_has_its_file(table: Path):
    (file,) = (table / "p=c").iterdir()
    found = dv.read_table(table, columns={"id": "id", "file": "_METADATA"}, where="id = 2").to_pylist()
    metadata = {"file_path": f"file:{file}", "file_name": file.name, "file_size": file.stat().st_size}
    assert found == [{"id": 2, "file": metadata}]
    assert dv.read_table(table, columns=["id"], where=f"{PATH} = 'file:{file}'").to_pylist() == [{"id": 2}]
    assert dv.Table(table).scan(where=f"{PATH} LIKE '%/p=a\\%20b/%' AND id > 0").count() == 1


def test_all_columns_do_not_include_it(table: Path):
    assert dv.read_table(table).schema.names == ["id", "p"]


def test_a_column_of_the_table_with_the_name_takes_precedence(tmp_path: Path):
    rows = [{"_metadata": {"file_path": "a", "file_name": "b", "file_size": 7}}]
    dv.write_table(tmp_path, rows)
    assert dv.read_table(tmp_path, columns=["_metadata"]).to_pylist() == rows
    assert dv.read_table(tmp_path).to_pylist() == rows


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("_metadata.x", "`x` does not exist; the fields are file_path, file_name, file_size"),
        (f"{PATH}.x", f"`{PATH}` is string, which has no fields"),
    ],
)
def test_unknown_fields_are_rejected_by_name(table: Path, column: str, message: str):
    with pytest.raises(ExpressionError, match=message):
        dv.read_table(table, columns=[column])


def test_a_file_in_an_object_store_has_its_uri():
    (found,) = file_metadata("s3://bucket/t/p=a b/f.parquet", 3, 1).to_pylist()
    assert found == {"file_path": "s3://bucket/t/p=a%20b/f.parquet", "file_name": "f.parquet", "file_size": 3}
