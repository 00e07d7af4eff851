"""DuckDB reads every value of our shredded Parquet files."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Literal

import duckdb
import pyarrow as pa
import pytest
from interop.corpus import CORPORA, json_table, read_lines

import delta_variant as dv


@pytest.mark.parametrize("name", CORPORA)
def test_duckdb_reads_every_value_of_our_shredded_files(
    duckdb_connection: duckdb.DuckDBPyConnection, corpora: Path, tmp_path: Path, name: str
):
    lines = read_lines(corpora, name)
    schema = dv.infer_shredding_schema(lines)
    dv.write_table(str(tmp_path / "table"), json_table(lines), shredding=schema)

    query = f"SELECT line, event::JSON::VARCHAR FROM '{tmp_path}/table/*.parquet'"
    found = dict(duckdb_connection.execute(query).fetchall())
    assert found.keys() == set(range(len(lines)))
    assert [
        number for number, line in enumerate(lines) if json.loads(found[number]) != json.loads(line)
    ] == []


def test_duckdb_distinguishes_names_that_differ_only_in_case(
    duckdb_connection: duckdb.DuckDBPyConnection, tmp_path: Path
):
    """DuckDB renames the second of two columns `ID` and `Id`: inference shreds only one of them."""
    line = '{"ID": 1, "Id": "two", "x": {"a": 1, "A": 2}}'
    schema = dv.infer_shredding_schema([line])
    dv.write_table(str(tmp_path / "table"), json_table([line] * 3), shredding=schema)

    query = f"SELECT DISTINCT event::JSON::VARCHAR FROM '{tmp_path}/table/*.parquet'"
    [(found,)] = duckdb_connection.execute(query).fetchall()
    assert json.loads(found) == json.loads(line)


def test_duckdb_reads_null_variant_null_and_values_that_do_not_fit_the_shredding(
    duckdb_connection: duckdb.DuckDBPyConnection, tmp_path: Path
):
    """DuckDB converts a Variant null at the root to SQL NULL, even of its own, and keeps nested ones."""
    lines = ['{"a": 1, "b": [1, 2]}', '{"a": "x", "b": {}}', '{"a": null}', "null", None, "[]", '"a"', "2.50"]
    schema = dv.ShreddingSchema.of({"a": pa.int64(), "b": [pa.int64()]})
    dv.write_table(str(tmp_path / "table"), json_table(lines), shredding=schema)

    query = f"SELECT event IS NULL, event::JSON::VARCHAR FROM '{tmp_path}/table/*.parquet' ORDER BY line"
    found = duckdb_connection.execute(query).fetchall()
    assert [is_null for is_null, _ in found] == [line in (None, "null") for line in lines]
    assert [text and json.loads(text) for _, text in found] == [line and json.loads(line) for line in lines]


def bytes_read() -> int:
    """Return how many bytes this process has read from files."""
    (line,) = (line for line in Path("/proc/self/io").read_text("ascii").splitlines() if "rchar" in line)
    return int(line.split()[1])


@pytest.mark.usefixtures("small_files_are_separated")
def test_duckdb_reads_one_column_of_files_whose_odd_rows_are_apart(
    duckdb_connection: duckdb.DuckDBPyConnection, tmp_path: Path
):
    """JSON nulls stay in the file, and `always_null` has a column: DuckDB still reads a path alone."""
    random = Random(7)
    rows: list[dict[str, object]] = []
    for number in range(3000):
        x = str(number) if number % 100 == 3 else None if number % 10 == 0 else number
        null = {"always_null": None} if number % 20 == 0 else {}
        rows.append({"x": x, "text": f"{random.getrandbits(400):x}", **null})
    data, read = json_table([json.dumps(row) for row in rows]), {}
    duckdb_connection.execute("SET enable_external_file_cache = false")
    layouts: tuple[Literal["apart", "inline"], ...] = ("apart", "inline")
    for odd_rows in layouts:
        table = tmp_path / odd_rows
        dv.write_table(str(table), data, files=dv.FileOptions(odd_rows=odd_rows))
        before = bytes_read()
        query = f"SELECT sum(event.x::BIGINT), count(event.x::BIGINT) FROM '{table}/*.parquet'"
        found = duckdb_connection.execute(query).fetchall()
        assert found == [(sum(number for number in range(3000) if number % 10), 2700)]
        read[odd_rows] = bytes_read() - before
    assert read["apart"] < read["inline"] / 2
