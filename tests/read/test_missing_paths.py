"""A misspelt path is NULL in every row: a warning names the path that the files have."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import delta_variant as dv

FILM = {"title": "Alien", "IMDB Rating": 8.5, "crew": {"director": "Scott"}, "cast": [{"name": "Weaver"}]}


@pytest.fixture
def table(tmp_path: Path) -> dv.Table:
    """Return a table of two files. Only the second file has a field `Titel`."""
    films = dv.Table(tmp_path / "films")
    films.append([{"m": FILM}, {"m": {"title": "Heat"}}, {"m": None}], variant_columns=["m"])
    films.append([{"m": {"Titel": "Das Boot", "title": None}}])
    return films


def proposals(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [each.getMessage().partition("no file has a value of ")[2] for each in caplog.records]
    caplog.clear()
    return [text for text in found if text]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ("m:titles::string", "`m:titles`: did you mean `m:title`?"),
        ("m:TITLE", "`m:TITLE`: did you mean `m:title`?"),
        ("m:crew.directr::string", "`m:crew.directr`: did you mean `m:crew.director`?"),
        ("m:crw.director", "`m:crw`: did you mean `m:crew`?"),
        ("m:['imdb rating']::double", "`m:['imdb rating']`: did you mean `m:['IMDB Rating']`?"),
    ],
)
def test_a_path_that_no_file_has_is_named_with_a_similar_one(
    table: dv.Table, caplog: pytest.LogCaptureFixture, column: str, expected: str
):
    assert {row["x"] for row in table.scan(columns={"x": column}).to_pylist()} == {None}
    assert proposals(caplog) == [expected]
    where = f"{column} is not null"
    assert table.scan(where=where).to_pylist() == []
    assert proposals(caplog) == [expected]
    assert table.scan(where=where).count() == 0
    assert proposals(caplog) == [expected]
    assert table.delete(where).rows_deleted == 0
    assert proposals(caplog) == [expected]
    assert table.update({"m:seen": "true"}, where).rows_updated == 0
    assert proposals(caplog) == [expected]
    table.optimize(sort_by=f"cast({column} as string)", dry_run=True)
    assert proposals(caplog) == [expected]


@pytest.mark.parametrize(
    "column",
    [
        "m:title::string",
        "m:Titel::string",  # a field of one file
        "try_cast(m:title as int)",  # no value has the type
        "m:budget::int",  # similar to no name
        "m:cast[0].name",
        "m:cast[7].name",
        "m:crew.director.first",  # not an object
    ],
)
def test_a_path_that_a_file_has_and_one_without_a_similar_name_cause_no_warning(
    table: dv.Table, caplog: pytest.LogCaptureFixture, column: str
):
    table.scan(columns={"x": column}).to_pylist()
    table.scan(where=f"{column} is null and {column} is not null").to_pylist()
    table.scan(columns={"x": "m:titles"}, limit=1).to_pylist()  # the other rows were not read
    assert proposals(caplog) == []


def test_an_unknown_column_is_an_error_that_proposes_a_column_or_a_path(table: dv.Table):
    with pytest.raises(dv.ExpressionError, match=r"`title` does not exist; .* did you mean `m:title`\?"):
        table.scan(where="title = 'Heat'").to_pylist()
    dv.write_table(table.table_uri + "2", [{"name": 1, "n": {"a": 1}}])
    with pytest.raises(dv.ExpressionError, match=r"`nme` does not exist; .* did you mean `name`\?"):
        dv.read_table(table.table_uri + "2", where="nme = 1")


def test_deep_values_are_read_although_a_path_is_missing(tmp_path: Path):
    depth = 1000
    dv.write_table(tmp_path / "t", pa.table({"m": ["[" * depth + "]" * depth]}), variant_columns=["m"])
    assert dv.read_table(tmp_path / "t", where="m:titles is not null").to_pylist() == []
