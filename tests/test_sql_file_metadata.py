"""Queries can name `_metadata`, the file of each row, which stars leave out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

import delta_variant as dv
from delta_variant.errors import ExpressionError


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return a table of two files, with an `id` in each."""
    for number in range(2):
        dv.write_table(tmp_path / "t", [{"id": number}], mode="append")
    return tmp_path / "t"


@pytest.fixture
def files(table: Path) -> list[Path]:
    """Return the files of the table by the `id` in them."""
    return sorted(table.glob("*.parquet"), key=lambda file: parquet.read_table(file)["id"][0].as_py())


def rows(query: str, table: Path) -> list[Any]:
    return [tuple(each.values()) for each in dv.sql(query, t=table).to_pylist()]


@pytest.mark.parametrize(
    "query",
    [
        "select id, _metadata.file_path from t order by id",
        "select a.id, b._METADATA.file_path from t a join t b on a.id = b.id order by 1",
        "select id, p from (select *, t._metadata.file_path as p from t) order by id",
        "select min(id), _metadata.file_path from t group by _metadata.file_path order by 1",
        "select id, any_value(m.file_path) from (select id, _metadata as m from t) group by id order by id",
        "select id, max(_metadata.file_path) over (partition by id) from t order by id",
        "select id, _metadata.file_path from t where id = 0 union all "
        "select id, _metadata.file_path from t where id = 1",
    ],
)
def test_each_row_has_its_file(table: Path, files: list[Path], query: str):
    assert rows(query, table) == [(0, f"file:{files[0]}"), (1, f"file:{files[1]}")]


@pytest.mark.parametrize(
    "query",
    [
        "select * from t where _metadata.file_name = '{}'",
        "select x.* from t x where x._metadata.file_name = '{}'",
        "select a.id from t a left join t b on a.id = b.id where b._metadata.file_name = '{}'",
        "select id from t x where exists (select 1 from t y "
        "where x._metadata.file_name = y._metadata.file_name and y._metadata.file_name = '{}')",
    ],
)
def test_rows_are_found_by_their_file(table: Path, files: list[Path], query: str):
    assert rows(query.format(files[1].name), table) == [(1,)]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("select _metadata.x from t", "`x` does not exist; the fields are file_path, file_name, file_size"),
        ("select _metadata.file_name from t a join t b on a.id = b.id", "matches 2 columns: qualify it"),
        ("select _metadata.file_name from (select id from t)", "are id; a subquery in FROM"),
        ("with q as (select id from t) select q._metadata.file_name from q", "only if it selects it"),
        ("select 1 from t x where exists (select 1 from (select id from t) y where y.id = x.id"
         " and _metadata.file_size > 0)", "`_metadata.file_size` does not exist"),
        ("select input_file_name() from t", "use _metadata.file_path"),
    ],
)  # fmt: skip
def test_errors_name_the_way_out(table: Path, query: str, message: str):
    with pytest.raises(ExpressionError, match=message):
        rows(query, table)


def test_other_columns_of_the_name_take_precedence(table: Path, tmp_path: Path):
    own = {"file_path": "a", "file_name": "b", "file_size": 7}
    dv.write_table(tmp_path / "own", [{"_metadata": own}])
    query = f"select _metadata, t.id from t join delta.`{tmp_path / 'own'}` on true order by 2"
    assert rows(query, table) == [(own, 0), (own, 1)]
