"""Engines open the tables that docs/reference/interoperability.md lists, and no others."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from support import interoperability
from support.interoperability import KINDS, files

import delta_variant as dv


def read_here(table: Path) -> Any:
    (text,) = pa.table(dv.read_table(table, columns=["to_json(event) as event"]))["event"].to_pylist()
    return json.loads(text)


def read_by_duckdb(table: Path) -> Any:
    relation = duckdb.sql(f"select event, typeof(event), event::json from read_parquet('{files(table)}')")
    ((value, kind, text),) = relation.fetchall()
    return json.loads(text) if kind == "VARIANT" else value


def read_by_pandas(table: Path) -> Any:
    (path,) = table.glob("*.parquet")
    return pd.read_parquet(path)["event"][0]


ENGINES: dict[str, Callable[[Path], Any]] = {
    "delta_variant": read_here,
    "deltalake": lambda table: DeltaTable(table).to_pyarrow_table()["event"][0].as_py(),
    "Polars, `scan_delta`": lambda table: pl.scan_delta(table).collect()["event"][0],
    "Polars, `scan_parquet` of the files": lambda table: pl.scan_parquet(files(table)).collect()["event"][0],
    "DuckDB, `read_parquet` of the files": read_by_duckdb,
    "pyarrow, `pq.read_table` of the files": lambda table: pq.read_table(*table.glob("*.parquet"))["event"][
        0
    ].as_py(),
    "pandas, `read_parquet` of the files": read_by_pandas,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_opens_the_tables_that_the_page_lists(engine: str, kind: str, tmp_path: Path):
    interoperability.write(tmp_path / "t", kind)
    found = interoperability.outcome(ENGINES[engine], tmp_path / "t")
    assert found == interoperability.expected(engine)[kind]


def test_deltalake_names_the_feature_that_it_does_not_support(tmp_path: Path):
    interoperability.write(tmp_path / "t", "default")
    table = DeltaTable(tmp_path / "t")
    assert table.schema().fields[0].name == "event"
    assert len(table.history()) == 1
    with pytest.raises(Exception, match=r"variantShredding.* not yet supported"):
        table.to_pyarrow_table()


def test_the_page_quotes_the_errors_of_deltalake_and_polars(tmp_path: Path):
    interoperability.write(tmp_path / "t", "default")
    (path,) = (tmp_path / "t").glob("*.parquet")
    readers: dict[str, Callable[[], Any]] = {
        "deltalake": lambda: DeltaTable(tmp_path / "t").to_pyarrow_table(),
        "Polars, `scan_delta` and `read_delta`": lambda: pl.read_delta(str(tmp_path / "t")),
        "Polars, `read_parquet` of a file": lambda: pl.read_parquet(path),
    }
    lines = [
        line.split("|")[1:-1] for line in interoperability.PAGE.text.splitlines() if line.startswith("|")
    ]
    quoted = {cells[0].strip(): cells[1].strip() for cells in lines}
    for reader, read in readers.items():
        with pytest.raises(Exception, match=re.escape(quoted[reader])):
            read()
