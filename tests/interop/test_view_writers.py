"""Views over files of Spark, DuckDB and Iceberg's Java library have the values that their writer reads."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession
from support.commits import commit_actions
from support.locations import ROOT
from support.views import by_duckdb, by_pyarrow, sorted_rows

import delta_variant as dv
from delta_variant.expressions.types import type_name
from delta_variant.protocol.actions import AddFile
from delta_variant.storage.store import open_store
from delta_variant.views import files as view_files
from delta_variant.views.files import View
from delta_variant_conformance.engines.java import start_iceberg


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(view_files.FOLDER, str(tmp_path / "cache"))


DOCUMENT = """named_struct(
    'id', id, 'even', id % 2 = 0, 'name', concat('n', id % 7), 'ratio', id / 3D,
    'price', cast(id - 50 as decimal(9, 2)) / 4, 'day', date_add(date '1969-12-01', cast(id as int)),
    'at', timestamp '1969-12-31 23:00:00' + make_interval(0, 0, 0, 0, id),
    'local', timestamp_ntz '2026-11-27 10:00:00',
    'tags', if(id % 3 = 0, array(), array('a', concat('t', id), null)),
    'user', named_struct('id', if(id % 4 = 0, null, id * 10), 'home', named_struct('zip', string(id))),
    'items', array(named_struct('sku', string(id), 'counts', array(id, null))))"""
OTHER = "named_struct('id', concat('x', id), 'name', id, 'tags', 'none', 'user', array(id))"


@pytest.mark.usefixtures("compiled_casts")
@pytest.mark.parametrize(
    ("properties", "dirty"),
    [
        ({}, False),
        ({"delta.columnMapping.mode": "name"}, True),
        ({"delta.columnMapping.mode": "id"}, False),
        ({"delta.enableDeletionVectors": "true"}, False),
    ],
    ids=["clean", "with names, dirty", "with ids", "with deletion vectors"],
)
def test_spark(
    spark_with_delta: SparkSession, tmp_path: Path, properties: Mapping[str, str], dirty: bool
) -> None:
    name = f"delta.`{tmp_path}/t`"
    texts = {"delta.enableVariantShredding": "true", **properties}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in texts.items())
    spark_with_delta.sql(
        f"create table {name} (number bigint, part string, event variant) using delta "
        f"partitioned by (part) tblproperties ({listed})"
    )
    event = f"to_variant_object({DOCUMENT})"
    event = f"case when id % 13 = 5 then null when id % 13 = 6 then parse_json('null') else {event} end"
    if dirty:
        event = f"if(id % 50 = 7, to_variant_object({OTHER}), {event})"
    spark_with_delta.sql(
        f"insert into {name} select id, if(id % 2 = 0, 'a b', null), {event} from range(300)"
    )
    if "delta.enableDeletionVectors" in properties:
        spark_with_delta.sql(f"delete from {name} where number % 10 = 3")
    view = View.of(tmp_path / "t", strict=False)
    reasons = {file.rewritten for file in view.files}
    assert (reasons == {None}) == (not dirty and "delta.enableDeletionVectors" not in properties)
    columns = {
        field.name: _cast(field.name.removeprefix("event"), type_name(field.type))
        for field in view.schema
        if field.name.startswith("event.")
    }
    assert len(columns) == 12
    selected = [
        f"{text} as `{column}`" for column, text in {"number": "number", "part": "part", **columns}.items()
    ]
    found = spark_with_delta.read.format("delta").load(f"{tmp_path}/t").selectExpr(*selected)
    expected = found.toArrow().select(view.schema.names).cast(view.schema).to_pylist()
    check(tmp_path / "t", view, expected)


DUCKDB = """{
    'id': i, 'even': i % 2 = 0, 'name': concat('n', i % 7), 'ratio': i / 3.0::double,
    'price': ((i - 50) * 0.25)::decimal(9, 2), 'day': date '1969-12-01' + i::int,
    'at': timestamptz '1969-12-31 23:00:00+00' + to_seconds(i), 'tags': ['a', concat('t', i)],
    'user': {'id': i * 10, 'home': {'zip': i::varchar}}, 'items': [{'sku': i::varchar, 'counts': [i]}]}"""
DUCKDB_TYPES = {
    "at": "timestamptz",
    "day": "date",
    "even": "boolean",
    "id": "bigint",
    "items": "struct(counts bigint[], sku varchar)[]",
    "name": "varchar",
    "price": "decimal(9, 2)",
    "ratio": "double",
    "tags": "varchar[]",
    "user.home.zip": "varchar",
    "user.id": "bigint",
}


@pytest.mark.parametrize("dirty", [False, True], ids=["clean", "dirty"])
def test_duckdb(duckdb_connection: duckdb.DuckDBPyConnection, tmp_path: Path, dirty: bool) -> None:
    event = f"if(i % 50 = 7, 'text'::variant, {DUCKDB}::variant)"
    if dirty:
        event = (
            f"if(i % 50 = 8, {{'id': concat('x', i), 'tags': 'none', 'user': 'nobody'}}::variant, {event})"
        )
    file = tmp_path / "d.parquet"
    duckdb_connection.execute(
        f"copy (select if(i % 13 = 5, null, {event}) as event from range(300) r(i)) to '{file}'"
    )
    view = adopt(tmp_path / "t", file)
    assert [file.rewritten is None for file in view.files] == [not dirty]
    outputs = ", ".join(
        f"""try_cast(event.{path} as {name}) as "event.{path}\"""" for path, name in DUCKDB_TYPES.items()
    )
    duckdb_connection.execute("set timezone = 'UTC'")
    found = duckdb_connection.sql(f"select {outputs} from '{tmp_path}/t/d.parquet'").to_arrow_table()
    check(tmp_path / "t", view, found.select(view.schema.names).cast(view.schema).to_pylist())


@pytest.mark.parametrize("first", [1 << 40, 0], ids=["clean", "dirty"])
def test_iceberg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: int) -> None:
    """Iceberg shreds integers of eight bytes as such, and keeps smaller ones as residuals."""
    if shutil.which("mvn") is None:
        pytest.skip("Maven downloads the JARs")
    monkeypatch.setenv("CLASSPATH", f"{ROOT}/.cache/engines/iceberg/*")
    iceberg = start_iceberg(tmp_path)
    assert iceberg.shred is not None
    assert iceberg.read is not None
    events: list[Any] = [
        {"id": number, "name": f"n{number}", "user": {"id": number * 3}, "tags": ["a", None, f"t{number}"]}
        for number in range(first, first + 300)
    ]
    events[7:9] = [None, 5]
    dv.write_table(
        tmp_path / "plain", [{"event": event} for event in events], variant_columns=["event"], shredding=None
    )
    (plain,) = (tmp_path / "plain").glob("*.parquet")
    user = {"object": {"id": "int64"}}
    schema = {"object": {"id": "int64", "name": "string", "user": user, "tags": {"array": "string"}}}
    iceberg.shred(plain, "event", schema, tmp_path / "i.parquet")
    view = adopt(tmp_path / "t", tmp_path / "i.parquet")
    assert [file.rewritten is None for file in view.files] == [first > 0]

    def at(cell: Any, path: str) -> Any:
        value = cell and dv.Variant(cell.metadata, cell.value).to_python()
        for step in path.split(".")[1:]:
            value = value.get(step) if isinstance(value, dict) else None
        return value

    cells = iceberg.read(tmp_path / "t" / "i.parquet", "event")
    assert len(cells) == 300
    check(tmp_path / "t", view, [{name: at(cell, name) for name in view.schema.names} for cell in cells])


def adopt(table: Path, file: Path) -> View:
    """Return the view of a table of one file of another writer."""
    dv.create_table(table, ["event variant"], configuration={"delta.enableVariantShredding": "true"})
    file.rename(table / file.name)
    add = AddFile(
        path=file.name,
        partition_values={},
        size=(table / file.name).stat().st_size,
        modification_time=0,
        data_change=True,
    )
    commit_actions(open_store(table), 1, [add])
    return View.of(table, strict=False)


def _cast(path: str, name: str) -> str:
    return f"try_variant_get(event, '${path}', '{name}')"


def check(table: Path, view: View, expected: Sequence[Mapping[str, Any]]) -> None:
    names = view.schema.names
    assert sorted_rows(by_duckdb(table, view.schema, strict=False), names) == sorted_rows(expected, names)
    stored = list(view.shape.places)
    assert sorted_rows(by_pyarrow(view), stored) == sorted_rows(expected, stored)
