"""README's chart shows the committed results, and its table of readers says what they do."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.json
import pytest
from deltalake import write_deltalake

import delta_variant as dv

ROOT = Path(__file__).resolve().parents[1]


def test_the_chart_shows_the_committed_results(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from chart import chart

    files = sorted((ROOT / "benchmarks" / "results").glob("*.json"))
    results = [json.loads(file.read_text("utf-8")) for file in files if file.stem != "startup"]
    drawn = "\n".join(chart(results)) + "\n"
    for module in ("chart", "results", "pairs"):
        sys.modules.pop(module, None)
    assert drawn == (ROOT / "docs" / "images" / "benchmarks.svg").read_text("utf-8")


@pytest.fixture
def films(tmp_path: Path) -> Path:
    rows = [{"title": f"Film {number}", "year": 1990 + number % 30} for number in range(300)]
    rows[150]["title"] = 2012
    lines = [json.dumps(row) for row in rows]
    lines[200] = '{"title": "Cut'
    file = tmp_path / "films.ndjson"
    file.write_text("\n".join(lines) + "\n")
    return file


def test_other_readers_refuse_the_films(films: Path, tmp_path: Path):
    with pytest.raises(pa.ArrowInvalid, match=r"Column\(/title\) changed from string to number in row 150"):
        pyarrow.json.read_json(films)
    with pytest.raises(ValueError, match="Unexpected character found when decoding object value"):
        pd.read_json(films, lines=True)
    for ignore_errors in (False, True):
        with pytest.raises(pl.exceptions.ComputeError):
            pl.read_ndjson(films, ignore_errors=ignore_errors)
    with pytest.raises(duckdb.InvalidInputException):
        duckdb.sql(f"from '{films}'").fetchall()
    rows = [json.loads(line) for line in films.read_text().splitlines() if line.endswith("}")]
    with pytest.raises(pa.ArrowTypeError, match="Expected bytes, got a 'int' object"):
        write_deltalake(tmp_path / "table", pd.DataFrame(rows))


def test_duckdb_reads_a_row_of_nulls_for_the_cut_line(films: Path):
    query = f"select count(*), count(title) from read_json('{films}', ignore_errors=true)"
    assert duckdb.sql(query).fetchall() == [(300, 299)]


def test_this_library_keeps_299_films_and_says_where_one_is_cut(films: Path, tmp_path: Path):
    table, rejects = dv.Table(tmp_path / "table"), tmp_path / "rejects.ndjson"
    source = dv.read_json(films, column="film", on_invalid="reject", rejects=rejects)
    result = table.append(source)
    assert (result.rows, result.invalid) == (299, 1)
    [rejected] = [json.loads(line) for line in rejects.read_text().splitlines()]
    assert (rejected["line"], rejected["column"], rejected["reason"]) == (201, 15, "a string is not closed")
    number = table.scan(columns={"title": "film:title"}, where="film:title?::int = 2012")
    assert number.to_pylist() == [{"title": 2012}]
