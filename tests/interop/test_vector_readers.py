"""Engines read tables with deletion vectors as docs/reference/interoperability.md lists."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import chdb
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder
from interop.test_kernel_unity_catalog import JARS
from interop.test_kernel_unity_catalog import SOURCE as KERNEL
from support.interoperability import cells
from support.locations import ROOT

import delta_variant as dv

FILE_ROWS = 2000
DAYS = ("a", "b", "c")
ENGINES = ROOT / ".cache" / "engines"
"""The engines with packages of their own, which `tools/engines.sh` installs."""

Found: TypeAlias = tuple[int, int]
"""The number of rows, and the sum of their ids."""

KINDS: Mapping[str, Callable[[dv.Table], Any]] = {
    "deletion vectors": lambda table: None,
    "`optimize(purge=True)`": lambda table: table.optimize(purge=True),
    "`drop_feature`": lambda table: table.drop_feature("deletionVectors"),
}
"""The columns of the page, and what is done to the table with vectors before it is read."""


def make(path: Path) -> Found:
    """Write a table with vectors by a delete, an update and a merge, in files that several of them share."""
    table = dv.Table(path)
    for number, day in enumerate(DAYS):
        ids = range(number * FILE_ROWS, (number + 1) * FILE_ROWS)
        rows = pa.table({"id": ids, "day": [day] * FILE_ROWS, "text": [f"t{each}" for each in ids]})
        configuration = None if number else {"delta.enableDeletionVectors": "true"}
        table.append(rows, partition_by=["day"], configuration=configuration)
    table.delete("id % 5 = 0 and day <> 'c'")
    table.update({"id": "id + 10000"}, "id in (1, 4001)")
    merge = table.merge(pa.table({"key": [2, -1]}), "id = key").when_matched_delete()
    merge.when_not_matched_insert({"id": "key", "day": "'a'", "text": "'new'"}).execute()
    stored = {each["storage_type"] for each in table.snapshot().files["deletion_vector"].to_pylist() if each}
    assert stored == {"u"}
    deleted = {*range(0, 2 * FILE_ROWS, 5), 1, 4001, 2}
    left = [each for each in range(3 * FILE_ROWS) if each not in deleted] + [10_001, 14_001, -1]
    return len(left), sum(left)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Found]]:
    """Return the table of each kind, and what it has."""
    folder, found = tmp_path_factory.mktemp("vectors"), {}
    for number, (kind, change) in enumerate(KINDS.items()):
        expected = make(folder / str(number))
        change(dv.Table(folder / str(number)))
        found[kind] = folder / str(number), expected
    return found


def of_ids(ids: pa.ChunkedArray[Any] | pa.Array[Any]) -> Found:
    return len(ids), sum(ids.to_pylist())


def files(table: Path) -> list[str]:
    """Return the paths of the data files of a table."""
    return [str(table / path) for path in dv.load_snapshot(table).files["path"].to_pylist()]


def by_query_builder(table: Path) -> Found:
    query = QueryBuilder().register("t", DeltaTable(table)).execute("select id from t")
    return of_ids(pa.table(query.read_all())["id"])


def by_deltalake_count(table: Path) -> Found:
    ids = dv.read_table(table, columns=["id"]).to_table()["id"]
    return DeltaTable(table).count(), sum(ids.to_pylist())


def by_chdb(table: Path) -> Found:
    answer = chdb.query(f"select count(), sum(id) from deltaLakeLocal('{table}')", "JSONCompact")
    ((count, total),) = json.loads(str(answer))["data"]
    return int(count), int(total)


def by_duckdb_files(table: Path) -> Found:
    ((count, total),) = duckdb.sql(f"select count(*), sum(id) from read_parquet({files(table)})").fetchall()
    return count, int(total)


def by_view(table: Path) -> Found:
    with duckdb.connect() as connection:
        dv.to_duckdb(connection, "t", table)
        ((count, total),) = connection.sql("select count(*), sum(id) from t").fetchall()
        return count, int(total)


def by_export(table: Path) -> Found:
    target = table.with_name(f"export of {table.name}")
    dv.export(table, target)
    return of_ids(DeltaTable(target).to_pyarrow_table()["id"])


def in_engine(name: str, code: str) -> Callable[[Path], Found]:
    """Return a reader that runs code, which prints what it finds, with the packages of an engine."""

    def read(table: Path) -> Found:
        if not (ENGINES / name).is_dir():
            pytest.skip("`tools/engines.sh` installs the engines")
        environment = {**os.environ, "PYTHONPATH": str(ENGINES / name)}
        command = [sys.executable, "-c", code, str(ENGINES / name), str(table)]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=True, env=environment
        )
        count, total = done.stdout.split()
        return int(count), int(total)

    return read


DUCKDB_DELTA = """
import sys, duckdb
from pathlib import Path
connection = duckdb.connect()
(extension,) = Path(sys.argv[1]).rglob("delta.duckdb_extension")
connection.load_extension(str(extension))
print(*connection.sql(f"select count(*), sum(id) from delta_scan('{sys.argv[2]}')").fetchone())
"""

KERNEL_RS = """
import sys, pyarrow as pa
from delta_kernel_rust_sharing_wrapper import PythonInterface, ScanBuilder, Table
location = f"file://{sys.argv[2]}/"
interface = PythonInterface(location)
batches = ScanBuilder(Table(location).snapshot(interface)).build().execute(interface)
ids = pa.Table.from_batches(batches)["id"].to_pylist()
print(len(ids), sum(ids))
"""

READERS: Mapping[str, Callable[[Path], Found]] = {
    "delta_variant": lambda table: of_ids(dv.read_table(table, columns=["id"]).to_table()["id"]),
    "delta-kernel-rs": in_engine("delta-kernel", KERNEL_RS),
    "deltalake, `QueryBuilder`": by_query_builder,
    "deltalake, `DeltaTable.to_pyarrow_table`": lambda table: of_ids(
        DeltaTable(table).to_pyarrow_table()["id"]
    ),
    "deltalake, `DeltaTable.count`": by_deltalake_count,
    "Polars, `scan_delta`": lambda table: of_ids(
        pl.scan_delta(table).select("id").collect()["id"].to_arrow()
    ),
    "ClickHouse (chdb), `deltaLakeLocal`": by_chdb,
    "DuckDB 1.4.4, its extension `delta`": in_engine("duckdb-delta", DUCKDB_DELTA),
    "DuckDB, `dv.to_duckdb`": by_view,
    "DuckDB, `read_parquet` of the files": by_duckdb_files,
    "pyarrow, `pq.read_table` of the files": lambda table: of_ids(
        pa.concat_tables(pq.read_table(path, columns=["id"]) for path in files(table))["id"]
    ),
    "deltalake, of a `dv.export`": by_export,
}


def outcome(read: Callable[[Path], Found], table: Path, expected: Found) -> str:
    """Return the word of the page for what an engine finds in a table."""
    try:
        found = read(table)
    except (AssertionError, KeyboardInterrupt):
        raise
    except Exception:
        return "no"
    assert found[0] >= expected[0]
    return "yes" if found == expected else "deleted rows"


@pytest.mark.parametrize("reader", READERS)
def test_an_engine_reads_the_tables_that_the_page_lists(
    reader: str, tables: dict[str, tuple[Path, Found]], monkeypatch: pytest.MonkeyPatch
):
    # chdb reads only files below the working directory.
    monkeypatch.chdir(next(iter(tables.values()))[0].parent)
    found = [outcome(READERS[reader], *each) for each in tables.values()]
    assert found == cells(["engine", *KINDS], reader)


def test_delta_kernel_for_java_reads_the_tables_that_the_page_lists(tables: dict[str, tuple[Path, Found]]):
    if shutil.which("mvn") is None:
        pytest.skip("Maven downloads the JARs")
    command = ["java", "-Xmx1g", "-cp", f"{JARS}/*", str(KERNEL), *(str(path) for path, _ in tables.values())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    ids = [json.loads(line.partition(" ")[2]) for line in done.stdout.splitlines()]
    assert [(len(each), sum(each)) for each in ids] == [expected for _, expected in tables.values()]
    assert cells(["engine", *KINDS], "delta-kernel (Java)") == ["yes"] * len(KINDS)


def test_spark_reads_the_tables_that_the_page_lists(spark: Any, tables: dict[str, tuple[Path, Found]]):
    def read(table: Path) -> Found:
        frame = spark.read.format("delta").load(str(table))
        ((count, total),) = frame.selectExpr("count(*)", "sum(id)").collect()
        return count, total

    found = [outcome(read, *each) for each in tables.values()]
    assert found == cells(["engine", *KINDS], "Spark with Delta")


def test_deltalake_names_the_feature_that_it_does_not_support(tables: dict[str, tuple[Path, Found]]):
    with pytest.raises(Exception, match=r"reader features: {'deletionVectors'}.* not yet supported"):
        DeltaTable(tables["deletion vectors"][0]).to_pyarrow_table()
