"""Views: the values that DuckDB and pyarrow read of their files are those of `read_table`."""

from __future__ import annotations

import datetime as dt
import gc
import os
import random
import resource
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import fsspec
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import convert_to_deltalake
from support.planting import plant_vector
from support.views import by_duckdb, by_pyarrow, sorted_rows
from view_queries import differences

import delta_variant as dv
from delta_variant.errors import ArgumentTypeError, CastError, DataFileError, ExpressionError
from delta_variant.expressions.types import type_name
from delta_variant.views import files as view_files
from delta_variant.views.files import View
from delta_variant.views.filesystem import VariantFileSystem

TYPES = {
    "id": pa.int64(),
    "name": pa.string(),
    "price": pa.decimal128(9, 2),
    "ratio": pa.float64(),
    "ok": pa.bool_(),
    "day": pa.date32(),
    "at": pa.timestamp("us", "UTC"),
    "local": pa.timestamp("us"),
    "tags": pa.list_(pa.string()),
    "user": pa.struct([("id", pa.int64()), ("age", pa.int32()), ("home", pa.struct([("zip", pa.string())]))]),
    "items": pa.list_(pa.struct([("sku", pa.string()), ("counts", pa.list_(pa.int64()))])),
}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv(view_files.FOLDER, str(folder))
    return folder


def value(source: random.Random, arrow_type: pa.DataType) -> Any:
    """Return a value of a type, None for Variant null."""
    if source.random() < 0.1:
        return None
    if pa.types.is_struct(arrow_type):
        return document(source, {field.name: field.type for field in arrow_type})
    if pa.types.is_list(arrow_type):
        elements = [value(source, arrow_type.value_type) for _ in range(source.choice((0, 1, 3)))]
        # Fields without columns are residual, and lists are cast as a whole.
        return [without_others(each) for each in elements]
    moment = dt.datetime(1950, 1, 1) + dt.timedelta(microseconds=source.randrange(4_000_000_000_000_000))
    made: Mapping[Any, Any] = {
        pa.int64(): source.choice((0, -1, 7, source.randrange(-(2**62), 2**62))),
        pa.int32(): source.randrange(100),
        pa.string(): source.choice(("", "a", "ä€𝄞", str(source.randrange(30)), "x" * 70)),
        pa.decimal128(9, 2): Decimal(source.randrange(-(10**9) + 1, 10**9)).scaleb(-2),
        pa.float64(): source.choice((0.0, -0.0, float("inf"), source.uniform(-1e9, 1e9))),
        pa.bool_(): source.random() < 0.5,
        pa.date32(): moment.date(),
        pa.timestamp("us", "UTC"): moment.replace(tzinfo=dt.timezone.utc),
        pa.timestamp("us"): moment,
    }
    return made[arrow_type]


def without_others(element: Any) -> Any:
    if not isinstance(element, dict):
        return element
    return {name: each for name, each in element.items() if not name.startswith("other")}


def document(source: random.Random, types: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object with some of the fields of these types, and maybe others."""
    found = {name: value(source, each) for name, each in types.items() if source.random() < 0.8}
    if source.random() < 0.2:
        found[f"other{source.randrange(3)}"] = source.choice((1, "one", [1, {"a": None}], {}))
    return found


def rows(source: random.Random, count: int, dirty: float = 0.0) -> list[dict[str, Any]]:
    """Return rows with a Variant that is an object, another value, Variant null, or NULL."""
    made = []
    for number in range(count):
        event: Any = document(source, TYPES)
        if source.random() < dirty:
            event[source.choice(list(TYPES))] = source.choice(("text", 1, [1], {"a": 1}))
        if source.random() < 0.1:
            event = source.choice((None, dv.Variant.from_python(None), 5, dv.Variant.from_python("text"), []))
        made.append({"number": number, "part": source.choice(("a", "b é/", None)), "event": event})
    return made


def write(path: Path, found: Sequence[Mapping[str, Any]], **options: Any) -> None:
    shredding = options.pop("shredding", dv.ShreddingSchema.of(TYPES))
    dv.write_table(path, found, variant_columns=["event"], shredding=shredding, **options)


def expected(path: Path, columns: Mapping[str, str]) -> list[dict[str, Any]]:
    return dv.read_table(path, columns=columns).to_pylist()


def typed_columns() -> dict[str, str]:
    """Return a column for each path of TYPES."""

    def paths(types: Mapping[str, Any], parents: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        for name, each in types.items():
            steps = (*parents, name)
            if pa.types.is_struct(each):
                yield from paths({field.name: field.type for field in each}, steps)
            else:
                path, text = ".".join(steps), type_name(each)
                yield f"event.{path}", f"try_variant_get(event, '$.{path}', '{text}')"

    return {"number": "number", "part": "part", **dict(paths(TYPES, ()))}


@pytest.mark.parametrize("seed", range(12))
def test_values_are_those_of_read_table(tmp_path: Path, seed: int) -> None:
    source = random.Random(seed)
    options: dict[str, Any] = {"partition_by": ["part"]} if seed % 3 == 1 else {}
    if seed % 4 == 2:
        options["configuration"] = {"delta.columnMapping.mode": source.choice(("name", "id"))}
    if seed % 4 == 3:
        options["configuration"] = {"delta.parquet.format.version": "2.12.0"}
    write(tmp_path / "t", rows(source, 300, dirty=0.02 if seed % 2 else 0.0), **options)
    write(tmp_path / "t", rows(source, 50), mode="append")
    columns = typed_columns()
    view = View.of(tmp_path / "t", columns)
    wanted = expected(tmp_path / "t", columns)
    found = by_duckdb(tmp_path / "t", view.schema, columns=columns)
    assert sorted_rows(found, list(columns)) == sorted_rows(wanted, list(columns))
    stored = list(view.shape.places)
    assert sorted_rows(by_pyarrow(view), stored) == sorted_rows(wanted, stored)
    # The residual rows of a dirty table are in files of their own.
    reasons = [file.rewritten for file in view.files]
    assert any(reasons) == bool(seed % 2)
    assert not all(reasons)


def documents(path: Path, *found: Any, types: Mapping[str, Any], **options: Any) -> View:
    """Write documents, and return the view of all typed paths."""
    write(path, [{"event": each} for each in found], shredding=dv.ShreddingSchema.of(types), **options)
    return View.of(path)


def reasons(view: View) -> list[str | None]:
    return [file.rewritten for file in view.files]


SHOWN: Mapping[str, tuple[Mapping[str, Any], list[Any]]] = {
    "a missing field and Variant null": ({"x": pa.int64()}, [{"x": 1}, {"x": None}, {}]),
    "fields without columns": ({"x": pa.int64()}, [{"x": 1, "y": 2}, {"y": {"z": 1}}]),
    "values that are not objects": ({"x": pa.int64()}, [{"x": 1}, 5, None, []]),
    "a value in place of an object": ({"o": pa.struct([("x", pa.int64())])}, [{"o": {"x": 1}}, {"o": 3}]),
    "Variant null in a list": ({"l": pa.list_(pa.int64())}, [{"l": [1, None]}, {"l": None}, {}]),
}
REWRITTEN: Mapping[str, tuple[Mapping[str, Any], list[Any], str]] = {
    "another type": ({"x": pa.int64()}, [{"x": 1}, {"x": "2"}], "other types at $['x']"),
    "another type in a list": ({"l": pa.list_(pa.int64())}, [{"l": [1, "2"]}], "other types at $['l'][*]"),
    "a value in place of a list": ({"l": pa.list_(pa.int64())}, [{"l": [1]}, {"l": "[]"}], "at $['l']"),
    "fields without columns in a list": (
        {"l": pa.list_(pa.struct([("x", pa.int64())]))},
        [{"l": [{"x": 1, "y": 1}]}],
        "other types at $['l'][*]",
    ),
}


@pytest.mark.parametrize("name", SHOWN)
def test_a_footer_shows(tmp_path: Path, name: str) -> None:
    types, found = SHOWN[name]
    view = documents(tmp_path / "t", *found, types=types)
    assert set(reasons(view)) == {None}
    columns = dv.shredded_columns(tmp_path / "t")
    del columns["event"]
    rows = expected(
        tmp_path / "t", {each: columns.get(each, "event:l::array<bigint>") for each in view.shape.places}
    )
    assert sorted_rows(by_pyarrow(view), list(view.shape.places)) == sorted_rows(
        rows, list(view.shape.places)
    )


@pytest.mark.parametrize("name", REWRITTEN)
def test_rows_are_written_again_for(tmp_path: Path, name: str) -> None:
    types, found, reason = REWRITTEN[name]
    documents(tmp_path / "t", *found, types=types)
    view = View.of(tmp_path / "t", strict=False)
    assert [each for each in reasons(view) if each is not None and reason in each]


def test_a_clean_file_is_not_copied(tmp_path: Path, cache: Path) -> None:
    view = documents(tmp_path / "t", {"x": 1}, {"x": 2}, types={"x": pa.int64()})
    (file,) = view.files
    data = (tmp_path / "t" / file.path).read_bytes()
    assert file.footer[-4:] == b"PAR1"
    assert data[: file.data_end] + file.footer == file.open().read()
    assert not cache.exists()
    # Statistics and pages of the data file.
    (stored,) = (tmp_path / "t").glob("*.parquet")
    ours, theirs = (pq.ParquetFile(each).metadata.row_group(0) for each in (file.open(), stored))
    leaves = {each.path_in_schema: each for each in map(theirs.column, range(theirs.num_columns))}
    shown = ours.column(0)
    assert shown.path_in_schema == "event.typed_value.x"
    assert (shown.statistics.min, shown.statistics.max) == (1, 2)
    assert shown.data_page_offset == leaves["event.typed_value.x.typed_value"].data_page_offset


def test_rows_are_written_once(tmp_path: Path, cache: Path) -> None:
    documents(tmp_path / "t", {"x": 1}, {"x": "2"}, types={"x": pa.int64()})
    columns = {"x": "event:x::bigint"}
    first = View.of(tmp_path / "t", columns)
    assert sorted(each["x"] for each in by_pyarrow(first)) == [1, 2]
    written = {path: path.stat().st_ino for path in cache.iterdir()}
    again = View.of(tmp_path / "t", columns)
    assert sorted(each["x"] for each in by_pyarrow(again)) == [1, 2]
    assert {path: path.stat().st_ino for path in cache.iterdir()} == written
    assert sorted(each["y"] for each in by_pyarrow(View.of(tmp_path / "t", {"y": "event:x::int"}))) == [1, 2]


def test_a_file_of_the_cache_that_cannot_be_written_is_named_and_removed(cache: Path) -> None:
    rows = pa.record_batch({"a": [random.Random(0).randbytes(99_999)]})
    earlier = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, earlier[1]))
    try:
        with pytest.raises(
            DataFileError, match=r"cannot write .*/cache/.*: File too large .*; raise the limit"
        ):
            view_files.cached("key", rows.schema, lambda: [rows])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, earlier)
    assert list(cache.iterdir()) == []


def test_the_cache_forgets_the_files_that_were_not_used(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = pa.schema([("x", pa.int64())])

    def file(key: str) -> Path:
        return view_files.cached(key, schema, lambda: [pa.record_batch([pa.array([1])], schema=schema)])

    first, second = file("first"), file("second")
    for path, time in ((first, 2), (second, 1)):
        os.utime(path, (time, time))
    monkeypatch.setattr(view_files, "MAX_BYTES", 2 * first.stat().st_size)
    third = file("third")
    assert {*cache.iterdir()} == {first, third}
    monkeypatch.setattr(view_files, "MAX_BYTES", 0)
    # What was used within a day stays.
    assert {*cache.iterdir(), file("fourth")} - {first} == {third, file("fourth")}


def test_a_failed_write_leaves_no_file(cache: Path) -> None:
    schema = pa.schema([("x", pa.int64())])

    def rows() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([pa.array([1])], schema=schema)
        raise CastError("broken")

    with pytest.raises(CastError, match="broken"):
        view_files.cached("key", schema, rows)
    assert not list(cache.iterdir())


def test_a_value_that_cannot_be_cast_is_an_error_with_its_place(tmp_path: Path) -> None:
    write(tmp_path / "t", [{"event": {"x": 1}}, {"event": {"x": "two"}}],
          shredding=dv.ShreddingSchema.of({"x": pa.int64()}))  # fmt: skip
    with pytest.raises(CastError, match="two") as caught:
        View.of(tmp_path / "t").files  # noqa: B018
    assert (caught.value.file is not None, caught.value.row, caught.value.path) == (True, 1, "$['x']")
    found = View.of(tmp_path / "t", strict=False)
    assert sorted(each["event.x"] is None for each in by_pyarrow(found)) == [False, True]


def test_a_file_with_another_shredding_has_the_types_of_all_files(tmp_path: Path) -> None:
    documents(tmp_path / "t", {"x": 1, "y": "a"}, types={"x": pa.int32(), "y": pa.string()})
    write(tmp_path / "t", [{"event": {"x": 2**40}}], mode="append",
          shredding=dv.ShreddingSchema.of({"x": pa.int64()}))  # fmt: skip
    view = View.of(tmp_path / "t")
    assert view.schema.field("event.x").type == pa.int64()
    assert reasons(view).count(None) == 0
    rows = [(each["event.x"], each["event.y"]) for each in by_duckdb(tmp_path / "t", view.schema)]
    assert sorted(rows, key=repr) == [(1, "a"), (2**40, None)]


def test_deleted_rows_are_not_shown(tmp_path: Path) -> None:
    configuration = {"delta.enableDeletionVectors": "true"}
    documents(
        tmp_path / "t", {"x": 1}, {"x": 2}, {"x": 3}, types={"x": pa.int64()}, configuration=configuration
    )
    plant_vector(tmp_path / "t", 0, 1)
    view = View.of(tmp_path / "t")
    assert reasons(view) == ["the file has a deletion vector"]
    assert by_pyarrow(view) == [{"event.x": 1}, {"event.x": 3}]
    # Another vector of the same file.
    plant_vector(tmp_path / "t", 0, 0, 1)
    assert by_pyarrow(View.of(tmp_path / "t")) == [{"event.x": 3}]


def test_a_table_in_an_object_store_is_read_by_ranges() -> None:
    table = "memory://test_views/t"
    found = [{"part": "a", "event": {"x": number}} for number in range(100)]
    dv.write_table(table, found, variant_columns=["event"], partition_by=["part"],
                   shredding=dv.ShreddingSchema.of({"x": pa.int64()}))  # fmt: skip
    with duckdb.connect() as connection:
        dv.to_duckdb(connection, "view", table)
        query = """select part, sum("event.x") from view where "event.x" > 10 group by part"""
        assert connection.sql(query).fetchall() == [("a", sum(range(11, 100)))]


def test_any_expression_is_a_column(tmp_path: Path) -> None:
    documents(tmp_path / "t", {"x": 1}, types={"x": pa.int64()})
    columns = {"event": "event:x::bigint + 1", "text": "to_json(event)", "x": "event:x::bigint"}
    schema = View.of(tmp_path / "t", columns).schema
    assert by_duckdb(tmp_path / "t", schema, columns=columns) == [{"event": 2, "text": '{"x":1}', "x": 1}]


def test_a_path_and_a_path_below_it_are_columns(tmp_path: Path) -> None:
    documents(tmp_path / "t", {"o": {"x": 1}}, types={"o": pa.struct([("x", pa.int64())])})
    columns = {"o": "event:o::struct<x:bigint>", "x": "event:o.x::bigint", "again": "event:o.x::bigint"}
    schema = View.of(tmp_path / "t", columns).schema
    assert by_duckdb(tmp_path / "t", schema, columns=columns) == [{"o": {"x": 1}, "x": 1, "again": 1}]


TWINS = {"ab": 1, "aB": 2, "AB": 3, "o": {"x": 4, "X": 5}, "O": {"x": 6}, "": 7}


def test_names_may_differ_by_case_only(tmp_path: Path) -> None:
    types = {each: pa.int64() for each in ("ab", "aB", "AB", "")}
    types |= {"o": pa.struct([("x", pa.int64()), ("X", pa.int64())]), "O": pa.struct([("x", pa.int64())])}
    documents(tmp_path / "t", TWINS, types=types)
    columns = {"ab": "event:ab::int", "upper": "event:AB::int", "mixed": "event:aB::int"}
    columns |= {
        "Event": "event:o.X::int",
        "ox": "event:o.x::int",
        "part": "event:O.x::int",
        "no": "event:['']::int",
    }
    schema = View.of(tmp_path / "t", columns).schema
    expected = {"ab": 1, "upper": 3, "mixed": 2, "Event": 5, "ox": 4, "part": 6, "no": 7}
    assert by_duckdb(tmp_path / "t", schema, columns=columns) == [expected]


@pytest.mark.parametrize("columns", [None, {"x": "event:x::bigint + 1"}])
def test_a_file_that_was_deleted_is_an_error_with_a_remedy(
    tmp_path: Path, cache: Path, columns: dict[str, str] | None
) -> None:
    documents(tmp_path / "t", {"x": 1}, types={"x": pa.int64()})
    (file,) = View.of(tmp_path / "t", columns).files
    for folder in (tmp_path / "t", cache):
        for each in folder.glob("*.parquet"):
            each.unlink()
    with pytest.raises(FileNotFoundError, match=r"by a vacuum: create the view again: '.*\.parquet'"):
        file.open()


def test_a_whole_variant_is_rejected(tmp_path: Path) -> None:
    documents(tmp_path / "t", {"x": 1}, types={"x": pa.int64()})
    with pytest.raises(ExpressionError, match=r"cannot show the Variant 'event' .* to_json\(event\)"):
        View.of(tmp_path / "t", ["event"])


def test_a_view_of_duckdb_needs_a_column(tmp_path: Path) -> None:
    dv.write_table(tmp_path / "t", [{"event": {"a": 1}}], variant_columns=["event"], shredding=None)
    with pytest.raises(ExpressionError, match=r"cannot create a view without columns: .* pass columns"):
        dv.to_duckdb(duckdb.connect(), "t", tmp_path / "t")
    dv.to_duckdb(connection := duckdb.connect(), "t", tmp_path / "t", columns={"a": "event:a::bigint"})
    assert connection.sql("select a from t").fetchall() == [(1,)]


def test_an_empty_table_is_an_empty_view_of_its_types(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("tags", pa.list_(pa.string()))])
    dv.create_table(tmp_path / "t", schema)
    assert by_duckdb(tmp_path / "t", schema) == []


def test_a_view_of_duckdb_skips_what_statistics_exclude(tmp_path: Path) -> None:
    for part in range(3):
        found = [{"event": {"x": part * 1000 + number}, "part": part} for number in range(1000)]
        write(tmp_path / "t", found, mode="append", partition_by=["part"],
              shredding=dv.ShreddingSchema.of({"x": pa.int64()}))  # fmt: skip
    with duckdb.connect() as connection:
        dv.to_duckdb(connection, "view", tmp_path / "t")
        dv.to_duckdb(connection, "other", tmp_path / "t", columns=["part"], version=0)
        assert connection.sql('select count(*) from view where "event.x" = 1500').fetchall() == [(1,)]
        plan = connection.sql(
            'explain select "event.x" from view where part = 1 and "event.x" = 5'
        ).fetchall()
        assert "Scanning Files: 1/1" in plan[0][1]
        assert "Filters: event.typed_value.x = 5" in plan[0][1]
        assert connection.sql("select count(*) from other").fetchall() == [(1000,)]


@pytest.mark.parametrize("shown", [True, False])
def test_rows_with_nan_are_not_skipped(tmp_path: Path, shown: bool) -> None:
    # NaN is greater than all numbers, in Spark and in DuckDB; pyarrow writes bounds of the other numbers.
    numbers = pa.array([1.0, float("nan"), 4.0])
    table = tmp_path / "t"
    table.mkdir()
    pq.write_table(pa.table({"x": numbers, "f": numbers.cast(pa.float32())}), table / "0.parquet")
    convert_to_deltalake(table)
    columns = {"x": "x" if shown else "x + 0", "f": "f"}
    connection = duckdb.connect()
    dv.to_duckdb(connection, "t", table, columns=columns)
    assert [file.rewritten is None for file in View.of(table, columns).files] == [shown]
    for condition in ("x > 5", "f >= 5", "x = 'nan'::double", "not (f <= 5)"):
        assert connection.sql(f"select count(*) from t where {condition}").fetchall() == [(1,)], condition


def test_a_file_of_the_cache_that_is_opened_was_used(tmp_path: Path, cache: Path) -> None:
    documents(tmp_path / "t", {"x": 1}, types={"x": pa.int64()})
    (file,) = View.of(tmp_path / "t", {"y": "event:x::bigint + 1"}).files
    (stored,) = cache.iterdir()
    os.utime(stored, (1, 1))
    file.open().close()
    assert stored.stat().st_mtime > 1


def test_frames_have_a_column_for_each_path(tmp_path: Path) -> None:
    documents(tmp_path / "t", {"x": 1, "l": ["a"], "y": 2}, {"l": []},
              types={"x": pa.int64(), "l": pa.list_(pa.string())})  # fmt: skip
    frame = dv.scan_delta(tmp_path / "t")
    assert frame.collect_schema() == {
        "event": pl.String,
        "event.l": pl.List(pl.String),
        "event.x": pl.Int64,
    }
    assert frame.filter(pl.col("event.x") == 1).collect().rows() == [('{"l":["a"],"x":1,"y":2}', ["a"], 1)]
    found = dv.read_delta(tmp_path / "t", where="event:x::int = 1")
    assert found.columns.tolist() == ["event", "event.l", "event.x"]
    assert (found["event"][0], list(found["event.l"][0]), found["event.x"][0]) == (
        {"l": ["a"], "x": 1, "y": 2},
        ["a"],
        1,
    )
    assert dv.scan_delta(tmp_path / "t", columns=["event:y::int as y"]).collect().rows() == [(2,), (None,)]


def test_a_cached_file_has_the_schema_of_its_view(tmp_path: Path) -> None:
    """The struct of a Variant depends on whether the table lets it be NULL."""
    dv.create_table(tmp_path / "t", ["event variant not null"])
    write(tmp_path / "t", [{"event": {"x": 1}}, {"event": {"x": "2"}}], mode="append",
          shredding=dv.ShreddingSchema.of({"x": pa.int64()}))  # fmt: skip
    assert View.of(tmp_path / "t").shape.places == {"event.x": ("event", "x")}
    assert sorted(each["event.x"] for each in by_pyarrow(View.of(tmp_path / "t"))) == [1, 2]
    dv.write_table(tmp_path / "t", [{"event": {"x": 3}}], mode="append", variant_columns=["event"])
    (log,) = (tmp_path / "t" / "_delta_log").glob("*0.json")
    log.write_text(log.read_text("utf-8").replace('nullable\\":false', 'nullable\\":true'), "utf-8")
    for checksum in log.parent.glob("*.crc"):
        checksum.unlink()
    view = View.of(str(tmp_path / "t"))
    assert view.shape.places == {"event.x": ("event", "typed_value", "x")}
    assert sorted(each["event.x"] for each in by_pyarrow(view)) == [1, 2, 3]


def test_a_connection_may_have_another_file_system_of_views(tmp_path: Path) -> None:
    documents(tmp_path / "t", {"x": 1}, types={"x": pa.int64()})
    before = len(VariantFileSystem._added)
    with duckdb.connect() as connection:
        connection.register_filesystem(VariantFileSystem(columns=["event:x::string as other"]))
        dv.to_duckdb(connection, "view", tmp_path / "t")
        assert connection.sql("select * from view").fetchall() == [(1,)]
        assert len(VariantFileSystem._added) == before + 1
    del connection
    gc.collect()
    assert len(VariantFileSystem._added) == before


class TestFileSystem:
    """A table as a folder for readers of Parquet."""

    @pytest.fixture
    def table(self, tmp_path: Path) -> str:
        found = [{"id": number, "part": "ab"[number % 2], "event": {"x": number}} for number in range(10)]
        shredding = dv.ShreddingSchema.of({"x": pa.int64()})
        write(tmp_path / "t", found, partition_by=["part"], shredding=shredding)
        fsspec.register_implementation("variant", VariantFileSystem, clobber=True)
        VariantFileSystem.clear_instance_cache()
        return f"{tmp_path}/t"

    def test_pandas_reads_it(self, table: str) -> None:
        frame = pd.read_parquet(f"variant://{table}")
        assert sorted(frame["id"]) == list(range(10))
        assert sorted(each["typed_value"]["x"] for each in frame["event"]) == list(range(10))

    def test_pyarrow_filters_it(self, table: str) -> None:
        dataset = ds.dataset(f"{table}", filesystem=fsspec.filesystem("variant"), partitioning="hive")
        condition = (ds.field("event", "typed_value", "x") > 6) & (ds.field("part") == "b")
        assert sorted(dataset.to_table(filter=condition)["id"].to_pylist()) == [7, 9]

    def test_duckdb_finds_files_by_a_pattern(self, table: str) -> None:
        with duckdb.connect() as connection:
            connection.register_filesystem(fsspec.filesystem("variant"))
            query = f"select sum(event.typed_value.x) from 'variant://{table}/*/*.parquet' where part = 'a'"
            assert connection.sql(query).fetchall() == [(20,)]

    def test_folders_are_listed(self, table: str) -> None:
        files = fsspec.filesystem("variant")
        assert files.ls(f"variant://{table}", detail=False) == [f"{table}/part=a", f"{table}/part=b"]
        (name,) = files.ls(f"{table}/part=a", detail=False)
        assert files.isfile(name)
        assert files.isdir(f"{table}/part=a")
        assert files.size(name) == len(files.cat_file(name))
        assert files.cat_file(name, 0, 4) == b"PAR1"

    @pytest.mark.parametrize("path", ["", "/part=c", "/part=a/x.parquet"])
    def test_what_is_not_there_is_not_found(self, table: str, tmp_path: Path, path: str) -> None:
        files = fsspec.filesystem("variant")
        for found in (files.ls, files.info, files.open):
            with pytest.raises(FileNotFoundError):
                found(f"{table}{path}" if path else f"{tmp_path}/no_table")

    def test_it_cannot_be_written(self, table: str) -> None:
        with pytest.raises(PermissionError, match="can only be read"):
            fsspec.filesystem("variant").open(f"{table}/x.parquet", "wb")

    def test_a_commit_is_seen_by_new_objects_or_when_the_cache_is_invalidated(self, table: str) -> None:
        files = fsspec.filesystem("variant")
        assert len(files.glob(f"{table}/*/*.parquet")) == 2
        write(Path(table), [{"id": 10, "part": "c", "event": {"x": 10}}], mode="append")
        assert len(files.glob(f"{table}/*/*.parquet")) == 2
        # A new object, such as pandas gets for each call, reads the latest version.
        assert len(fsspec.filesystem("variant").glob(f"{table}/*/*.parquet")) == 3
        files.invalidate_cache(table)
        assert len(files.glob(f"{table}/*/*.parquet")) == 3


@pytest.mark.parametrize("seed", range(4))
def test_engines_return_the_same_rows(tmp_path: Path, seed: int) -> None:
    assert not list(differences(seed, 12, tmp_path))


@pytest.mark.parametrize("name", ["Straße", "a b", "a:b=%c", "q'\"x*?[]{}", "_p", ".p"])
def test_a_partition_column_can_have_any_name(tmp_path: Path, name: str) -> None:
    found = [{"id": 1, name: "ü b/%=*"}, {"id": 2, name: None}]
    options = {"delta.columnMapping.mode": "name"}
    dv.write_table(tmp_path / "t", found, partition_by=[name], configuration=options)
    connection = duckdb.connect()
    dv.to_duckdb(connection, "shown", tmp_path / "t")
    assert connection.sql("select * from shown order by id").fetchall() == [(1, "ü b/%=*"), (2, None)]
    assert dv.scan_delta(tmp_path / "t").collect().sort("id").to_dicts() == found
    dataset = ds.dataset(str(tmp_path / "t"), filesystem=VariantFileSystem(), partitioning="hive")
    assert dataset.to_table(columns=["id", name]).sort_by("id").to_pylist() == found


@pytest.mark.parametrize(
    ("type_text", "value"),
    [
        ("timestamp", dt.datetime(2026, 11, 29, 1, 2, 3, 123456, dt.timezone.utc)),
        ("timestamp_ntz", dt.datetime(2026, 11, 29, 1, 2, 3, 123456)),
        ("decimal(10,2)", Decimal("1.50")),
        ("date", dt.date(2026, 11, 29)),
        ("double", -0.5),
        ("boolean", True),
        ("binary", b"ab"),
        ("string", "__HIVE_DEFAULT_PARTITION__"),
    ],
)
def test_a_partition_column_can_have_any_type(tmp_path: Path, type_text: str, value: Any) -> None:
    table = dv.Table(tmp_path / "t")
    table.create([f"part {type_text}", "id int"], partition_by="part")
    table.append(pa.table({"part": pa.array([value, None]), "id": pa.array([1, 2], pa.int32())}))
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    dv.to_duckdb(connection, "shown", table)
    found = connection.sql("select part from shown order by id").to_arrow_table()["part"].to_pylist()
    assert found == [value, None]


def test_the_name_of_a_database_is_not_a_connection(tmp_path: Path):
    dv.write_table(tmp_path / "t", [{"id": 1}])
    with pytest.raises(
        ArgumentTypeError, match=r"expected a connection of DuckDB, got 'a.db': pass duckdb.connect"
    ):
        dv.to_duckdb("a.db", "x", tmp_path / "t")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "read",
    [
        lambda path, **options: dv.to_duckdb(duckdb.connect(), "t", path, **options),
        dv.scan_delta,
        dv.read_delta,
        lambda path, **options: dv.export(path, path.with_name("exported"), **options),
        lambda path, **options: VariantFileSystem(**options),
    ],
    ids=["to_duckdb", "scan_delta", "read_delta", "export", "VariantFileSystem"],
)
def test_strict_is_rejected_with_expressions_and_if_it_is_no_boolean(tmp_path: Path, read: Any) -> None:
    dv.write_table(tmp_path / "t", pa.table({"n": [1]}))
    with pytest.raises(ValueError, match="without columns"):
        read(tmp_path / "t", columns={"n": "n"}, strict=False)
    with pytest.raises(ValueError, match="strict: expected"):
        read(tmp_path / "t", strict="yes")
    assert not (tmp_path / "exported").exists()
