"""DuckDB reads our shredded Parquet files with every value right."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest
from interop.corpus import CORPORA, json_table, read_lines

import delta_variant as dv


@pytest.mark.parametrize("name", CORPORA)
def test_duckdb_reads_every_value_of_our_shredded_files(
    duckdb_connection: duckdb.DuckDBPyConnection, corpora: Path, tmp_path: Path, name: str
):
    lines = read_lines(corpora, name)
    dv.write_table(str(tmp_path / "table"), json_table(lines))

    query = f"SELECT line, event::JSON::VARCHAR FROM '{tmp_path}/table/*.parquet'"
    found = dict(duckdb_connection.execute(query).fetchall())
    assert found.keys() == set(range(len(lines)))
    assert [
        number for number, line in enumerate(lines) if json.loads(found[number]) != json.loads(line)
    ] == []
