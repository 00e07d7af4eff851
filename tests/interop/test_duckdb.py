"""DuckDB reads every value of our shredded Parquet files."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any, Literal

import duckdb
import pyarrow as pa
import pytest
from interop.corpus import CORPORA, json_table, read_lines
from spark.function_cases import random_document

import delta_variant as dv
from delta_variant import functions
from delta_variant.operations.optimize import sorting


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
def test_duckdb_reads_one_column_of_files_whose_residual_rows_are_separate(
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
    layouts: tuple[Literal["separate", "inline"], ...] = ("separate", "inline")
    for residual_rows in layouts:
        table = tmp_path / residual_rows
        dv.write_table(str(table), data, files=dv.FileOptions(residual_rows=residual_rows))
        before = bytes_read()
        query = f"SELECT sum(event.x::BIGINT), count(event.x::BIGINT) FROM '{table}/*.parquet'"
        found = duckdb_connection.execute(query).fetchall()
        assert found == [(sum(number for number in range(3000) if number % 10), 2700)]
        read[residual_rows] = bytes_read() - before
    assert read["separate"] < read["inline"] / 2


@pytest.mark.usefixtures("small_files_are_separated", "small_files_are_shredded")
def test_duckdb_reads_one_column_of_files_that_begin_with_rows_of_another_kind(
    duckdb_connection: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A sort collects rare rows in runs, which are more than a batch of the file that they are in."""
    random = Random(8)
    clicks = [
        {"kind": "click", "click": {"id": number, "on": f"{random.getrandbits(400):x}"}}
        for number in range(39_000)
    ]
    admins = [
        {"kind": "admin", "admin": {"id": number, "by": f"{random.getrandbits(90):x}"}}
        for number in range(1_500)
    ]
    rows = [json.dumps(row) for row in [*clicks[:20_000], *admins, *clicks[20_000:]]]
    monkeypatch.setattr(sorting, "BATCH_ROWS", 1_000)
    table = dv.Table(tmp_path / "t")
    data = json_table(rows)
    batches = [*data.slice(0, 20_000).to_batches(), *data.slice(20_000).to_batches()]
    table.overwrite(pa.RecordBatchReader.from_batches(data.schema, batches))
    files = dv.FileOptions(target_file_size=1 << 20)
    written = table.optimize(sort_by="event:kind::string", reshred=True, files=files).files
    assert len(written) > 1
    duckdb_connection.execute("SET enable_external_file_cache = false")
    before = bytes_read()
    query = "SELECT event.kind::VARCHAR, count(*) FROM read_parquet(?) GROUP BY ALL ORDER BY ALL"
    found = duckdb_connection.execute(
        query, [[str(tmp_path / "t" / file.path) for file in written]]
    ).fetchall()
    assert found == [("admin", 1_500), ("click", 39_000)]
    read, size = bytes_read() - before, sum(file.bytes for file in written)
    assert read < size / 8


def test_a_variant_contains_what_duckdb_says(duckdb_connection: duckdb.DuckDBPyConnection):
    source = Random(5)
    documents = [random_document(source) for _ in range(4000)]
    pairs = [
        (one, _needle(source, one) if source.random() < 0.6 else other)
        for one, other in zip(documents, source.sample(documents, len(documents)), strict=True)
    ]
    haystacks, needles = ([json.dumps(pair[side]) for pair in pairs] for side in range(2))
    query = "SELECT variant_contains(h::JSON::VARIANT, n::JSON::VARIANT) FROM pairs"
    pairs_table = pa.table({"h": haystacks, "n": needles})
    duckdb_connection.register("pairs", pairs_table)
    expected = [answer for (answer,) in duckdb_connection.execute(query).fetchall()]
    found = functions.variant_contains(dv.parse_json(haystacks), dv.parse_json(needles)).to_pylist()
    wrong = [
        (h, n, answer)
        for h, n, answer, ours in zip(haystacks, needles, expected, found, strict=True)
        if ours != answer
    ]
    # DuckDB converts a JSON null to SQL NULL.
    assert [pair for pair in wrong if "null" not in pair[:2]] == []
    assert 1000 < expected.count(True) < 3500


def _needle(source: Random, value: Any) -> Any:
    """Return a value that mostly occurs in `value`: a part of it, without some of its fields and elements."""
    while isinstance(value, dict | list) and value and source.random() < 0.5:
        value = source.choice(list(value.values()) if isinstance(value, dict) else value)
    if isinstance(value, dict):
        return {name: _needle(source, part) for name, part in value.items() if source.random() < 0.7}
    if isinstance(value, list):
        return [_needle(source, part) for part in source.sample(value, len(value)) if source.random() < 0.7]
    return value
