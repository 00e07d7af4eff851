"""Exported tables: what other readers of Delta find in them is what `read_table` finds in the source."""

from __future__ import annotations

import datetime as dt
import json
import os
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from support.planting import plant_vector
from support.tables import read_commit
from support.views import sorted_rows
from test_views import expected, rows, typed_columns, write

import delta_variant as dv
from delta_variant.errors import CastError, SchemaError, TableExistsError, UnsupportedFeatureError
from delta_variant.read.file_reader import TableReader
from delta_variant.views import export as exporting
from delta_variant.views import files as view_files
from delta_variant.views.files import View


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(view_files.FOLDER, str(tmp_path / "cache"))


def at(row: Mapping[str, Any], steps: Sequence[str]) -> Any:
    """Return the value at the path of fields, None below NULL."""
    found: Any = row
    for step in steps:
        found = None if found is None else found[step]
    return found


def by_deltalake(target: Path) -> list[dict[str, Any]]:
    return DeltaTable(target).to_pyarrow_table().to_pylist()


def by_polars(target: Path) -> list[dict[str, Any]]:
    return pl.scan_delta(str(target)).collect().to_arrow().to_pylist()  # type: ignore[no-any-return]


def by_duckdb(target: Path) -> list[dict[str, Any]]:
    """Return the rows of the files that deltalake finds, read as a folder of Parquet."""
    files = DeltaTable(target).file_uris()
    options = "hive_partitioning = true, hive_types_autocast = false, union_by_name = true"
    found: Any = duckdb.sql(f"select * from read_parquet({files}, {options})").to_arrow_table()
    schema = dv.load_snapshot(target).arrow_schema
    return found.select(schema.names).cast(schema).to_pylist()  # type: ignore[no-any-return]


READERS = (by_deltalake, by_polars, by_duckdb, lambda target: dv.read_table(target).to_pylist())


def check(source: Path, target: Path) -> None:
    """Check that readers find the rows of the source, and that the log of the target is right."""
    origin = json.loads(dv.load_snapshot(target).properties["deltaVariant.export"])
    columns = origin["columns"]
    places = {} if origin["isFlat"] else View.of(source, columns).shape.places
    wanted = sorted_rows(expected(source, columns), list(columns))
    for read in READERS:
        found = [{name: at(row, places.get(name, (name,))) for name in columns} for row in read(target)]
        assert sorted_rows(found, list(columns)) == wanted, read
    assert not dv.audit_table(target, data=True).findings
    # A vacuum of another library deletes files of earlier versions only.
    live = set(DeltaTable(target).file_uris())
    removed = DeltaTable(target).vacuum(0, dry_run=True, enforce_retention_duration=False)
    on_disk = {str(path) for path in target.rglob("*.parquet") if "_delta_log" not in path.parts}
    assert on_disk - live == {str(target / path) for path in removed}


@pytest.mark.parametrize("is_flat", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_readers_find_the_rows_of_the_source_after_each_change(
    tmp_path: Path, seed: int, is_flat: bool
) -> None:
    source, target, made = tmp_path / "s", tmp_path / "t", random.Random(seed)
    options: dict[str, Any] = {"partition_by": ["part"]} if seed % 2 else {}
    mode = ("none", "name", "id")[seed % 3]
    options["configuration"] = {"delta.columnMapping.mode": mode, "delta.enableDeletionVectors": "true"}
    write(source, rows(made, 200, dirty=0.02), **options)
    first = dv.export(source, target, columns=typed_columns() if is_flat else None, strict=is_flat)
    assert (first.version, first.exported, first.files_removed) == (0, 0, 0)
    assert 0 < first.files_rewritten <= first.files_added
    check(source, target)
    write(source, [{**row, "part": "a"} for row in rows(made, 20)], mode="append")
    plant_vector(source, 1, 1)
    changes = (
        lambda: dv.delete(source, "number < 10"),
        lambda: dv.optimize(source),
        lambda: dv.restore(source, 1),
    )
    for change in changes:
        change()
        assert dv.export(source, target).version is not None
        check(source, target)
    assert dv.export(source, target).version is None


def small(path: Path, *events: Any, types: Mapping[str, Any] | None = None, **options: Any) -> None:
    shredding = dv.ShreddingSchema.of(types or {"x": pa.int64()})
    write(path, [{"event": event} for event in events], shredding=shredding, **options)


def exported(path: Path) -> list[Any]:
    """Return what the root of each exported Variant has, as deltalake reads it."""
    return sorted((row["event"]["typed_value"] for row in by_deltalake(path)), key=repr)


def test_the_log_is_that_of_an_ordinary_table_and_names_its_source(tmp_path: Path) -> None:
    small(tmp_path / "s", {"x": 1}, {"x": 5}, {})
    dv.export(tmp_path / "s", tmp_path / "t", commit=dv.CommitOptions(metadata="nightly"))
    info, protocol, metadata, txn, add = (
        next(iter(each.values())) for each in read_commit(tmp_path / "t", 0)
    )
    assert protocol == {"minReaderVersion": 1, "minWriterVersion": 2}
    assert json.loads(metadata["configuration"].pop("deltaVariant.export")) == {
        "table": str(tmp_path / "s"),
        "id": dv.load_snapshot(tmp_path / "s").metadata.id,
        "columns": {"event.x": "variant_get(`event`, '$.x', 'bigint')"},
        "isFlat": False,
    }
    assert metadata["configuration"] == {}
    assert info["operationParameters"] == {"source": f"delta.`file:{tmp_path}/s`", "sourceVersion": "0"}
    assert info["userMetadata"] == "nightly"
    assert (txn["appId"], txn["version"]) == ("deltaVariant.export", 0)
    path = {"event": {"typed_value": {"x": 1}}}
    assert json.loads(add["stats"]) == {
        "numRecords": 3,
        "minValues": path,
        "maxValues": {"event": {"typed_value": {"x": 5}}},
        "nullCount": path,
    }
    assert add["tags"] == {"deltaVariant.source": next((tmp_path / "s").glob("*.parquet")).name}


def test_statistics_are_those_that_a_footer_proves(tmp_path: Path) -> None:
    moment = dt.datetime(2026, 1, 2, 3, 4, 5, 678901, dt.timezone.utc)
    event = {
        "s": "ä" * 40, "d": Decimal("-1.50"), "day": dt.date(2026, 1, 2), "at": moment,
        "f": 0.5, "b": True, "l": [1], "none": None,
    }  # fmt: skip
    types = {
        "s": pa.string(), "d": pa.decimal128(9, 2), "day": pa.date32(), "at": pa.timestamp("us", "UTC"),
        "f": pa.float64(), "b": pa.bool_(), "l": pa.list_(pa.int64()), "none": pa.int32(),
    }  # fmt: skip
    small(tmp_path / "s", event, types=types)
    dv.export(tmp_path / "s", tmp_path / "t")
    (add,) = (each["add"] for each in read_commit(tmp_path / "t", 0) if "add" in each)
    stats = json.loads(add["stats"], parse_float=Decimal)
    bounds = {
        "d": Decimal("-1.50"),
        "day": "2026-01-02",
        "at": "2026-01-02T03:04:05.678Z",
        "f": Decimal("0.5"),
    }
    assert stats["minValues"]["event"]["typed_value"] == {**bounds, "s": "ä" * 32}
    assert stats["maxValues"]["event"]["typed_value"] == {**bounds, "s": "ä" * 31 + "å"}
    nulls = {"s": 0, "d": 0, "day": 0, "at": 0, "f": 0, "b": 0, "none": 1}
    assert stats["nullCount"]["event"]["typed_value"] == nulls


def test_rows_with_nan_have_no_bounds(tmp_path: Path) -> None:
    types = {"f": pa.float64()}
    small(tmp_path / "s", {"f": 1.0}, {"f": float("nan")}, types=types)
    dv.export(tmp_path / "s", tmp_path / "t")
    (add,) = (each["add"] for each in read_commit(tmp_path / "t", 0) if "add" in each)
    assert json.loads(add["stats"]) == {
        "numRecords": 2, "minValues": {}, "maxValues": {}, "nullCount": {"event": {"typed_value": {"f": 0}}}
    }  # fmt: skip


def test_the_bytes_of_a_clean_file_are_those_of_the_data_file(tmp_path: Path) -> None:
    small(tmp_path / "s", *({"x": n, "y": str(n)} for n in range(1000)))
    dv.export(tmp_path / "s", tmp_path / "t")
    (file,) = View.of(tmp_path / "s").files
    (stored,), (copied,) = ((tmp_path / each).glob("*.parquet") for each in "st")
    assert copied.read_bytes() == stored.read_bytes()[: file.data_end] + file.footer
    assert pq.ParquetFile(copied).metadata.row_group(0).column(0).statistics.max == 999


@pytest.mark.parametrize("columns", [None, ["event:x::bigint as x"]])
def test_a_file_with_few_bytes_of_the_columns_has_only_their_chunks(
    tmp_path: Path, columns: list[str] | None
) -> None:
    made = random.Random(1)
    small(tmp_path / "s", *({"x": n, "text": made.randbytes(60).hex()} for n in range(2000)))
    result = dv.export(tmp_path / "s", tmp_path / "t", columns=columns)
    assert result.files_rewritten == 0
    assert result.bytes_added < dv.load_snapshot(tmp_path / "s").num_bytes / 4
    found = by_deltalake(tmp_path / "t")
    values = [row["event"]["typed_value"]["x"] if columns is None else row["x"] for row in found]
    assert sorted(values) == list(range(2000))
    # Views may be of any size, and their cache is limited.
    assert not (tmp_path / "cache").exists()


def test_a_refresh_opens_only_new_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        small(tmp_path / "s", {"x": number}, **({"mode": "append"} if number else {}))
    dv.export(tmp_path / "s", tmp_path / "t")
    small(tmp_path / "s", {"x": 5}, mode="append")
    opened: list[str] = []
    original = TableReader.open
    monkeypatch.setattr(
        TableReader, "open", lambda self, file: (opened.append(file.path), original(self, file))[1]
    )
    result = dv.export(tmp_path / "s", tmp_path / "t")
    assert (result.version, result.files_added, result.files_removed, len(opened)) == (1, 1, 0, 1)
    assert exported(tmp_path / "t") == [{"x": number} for number in range(6)]
    # A commit without files, and none at all.
    dv.set_properties(tmp_path / "s", {"owner": "ann"})
    for _ in range(2):
        assert dv.export(tmp_path / "s", tmp_path / "t").version is None
    assert DeltaTable(tmp_path / "t").version() == 1


def test_columns_stay_until_others_are_given(tmp_path: Path) -> None:
    small(tmp_path / "s", {"x": 1, "y": "a"})
    dv.export(tmp_path / "s", tmp_path / "t")
    small(tmp_path / "s", {"x": 2, "y": "b"}, types={"x": pa.int64(), "y": pa.string()}, mode="append")
    dv.export(tmp_path / "s", tmp_path / "t")
    assert exported(tmp_path / "t") == [{"x": 1}, {"x": 2}]
    result = dv.export(tmp_path / "s", tmp_path / "t", full_refresh=True)
    assert (result.files_added, result.files_removed) == (2, 2)
    # The value of the first file is not in a column of its own.
    assert exported(tmp_path / "t") == [{"x": 1, "y": "a"}, {"x": 2, "y": "b"}]
    table = DeltaTable(tmp_path / "t").metadata().id
    for _ in range(2):
        dv.export(tmp_path / "s", tmp_path / "t", columns=["event:y::string as y", "1 as one"])
        found = sorted(by_deltalake(tmp_path / "t"), key=repr)
        assert found == [{"y": y, "one": 1} for y in "ab"]
    assert (DeltaTable(tmp_path / "t").version(), DeltaTable(tmp_path / "t").metadata().id) == (3, table)
    dv.export(tmp_path / "s", tmp_path / "t")
    assert DeltaTable(tmp_path / "t").version() == 3


def test_an_export_of_an_empty_table_gets_the_paths_of_its_first_file(tmp_path: Path) -> None:
    dv.create_table(tmp_path / "s", {"n": pa.int64(), "event": "variant"})
    dv.export(tmp_path / "s", tmp_path / "t")
    assert dv.export(tmp_path / "s", tmp_path / "t").version is None
    shredding = dv.ShreddingSchema.of({"x": pa.int64()})
    dv.write_table(tmp_path / "s", [{"n": 1, "event": {"x": 2}}], mode="append", shredding=shredding)
    dv.export(tmp_path / "s", tmp_path / "t")
    assert by_deltalake(tmp_path / "t") == [{"n": 1, "event": {"typed_value": {"x": 2}}}]


def test_given_columns_stay_also_without_files(tmp_path: Path) -> None:
    dv.create_table(tmp_path / "s", {"n": pa.int64(), "event": "variant"})
    dv.export(tmp_path / "s", tmp_path / "t", columns={"x": "event:x::bigint"})
    dv.write_table(tmp_path / "s", [{"n": 1, "event": {"x": 2}}], mode="append")
    dv.export(tmp_path / "s", tmp_path / "t")
    assert by_deltalake(tmp_path / "t") == [{"x": 2}]


def test_a_column_of_another_type_replaces_all_files(tmp_path: Path) -> None:
    configuration = {"delta.enableTypeWidening": "true"}
    dv.create_table(tmp_path / "s", {"n": pa.int32(), "event": "variant"}, configuration=configuration)
    dv.write_table(tmp_path / "s", [{"n": 1, "event": None}], mode="append")
    dv.export(tmp_path / "s", tmp_path / "t")
    dv.change_type(tmp_path / "s", "n", "bigint")
    dv.export(tmp_path / "s", tmp_path / "t")
    assert DeltaTable(tmp_path / "t").schema().to_arrow() is not None
    assert DeltaTable(tmp_path / "t").to_pyarrow_table().schema.field("n").type == pa.int64()
    assert DeltaTable(tmp_path / "t").to_pyarrow_table()["n"].to_pylist() == [1]


def test_a_value_that_cannot_be_cast_leaves_the_target_as_it_was(tmp_path: Path) -> None:
    small(tmp_path / "s", {"x": 1})
    dv.export(tmp_path / "s", tmp_path / "t")
    small(tmp_path / "s", {"x": "one"}, mode="append")
    before = sorted((tmp_path / "t").rglob("*"))
    with pytest.raises(CastError, match="one"):
        dv.export(tmp_path / "s", tmp_path / "t")
    assert sorted((tmp_path / "t").rglob("*")) == before
    dv.export(tmp_path / "s", tmp_path / "t", strict=False, full_refresh=True)
    assert exported(tmp_path / "t") == [{"x": 1}, {"x": None}]


def test_paths_may_have_characters_that_delta_gives_to_no_new_column(tmp_path: Path) -> None:
    small(tmp_path / "s", {"a b,=;{}()": 1}, types={"a b,=;{}()": pa.int64()})
    dv.export(tmp_path / "s", tmp_path / "t")
    for read in READERS:
        assert read(tmp_path / "t") == [{"event": {"typed_value": {"a b,=;{}()": 1}}}]
    assert not dv.audit_table(tmp_path / "t", data=True).findings


def test_names_that_differ_only_by_case_are_rejected(tmp_path: Path) -> None:
    small(tmp_path / "s", {"a": 1, "A": 2}, types={"a": pa.int64(), "A": pa.int64()})
    with pytest.raises(SchemaError, match=r"differ at most by case"):
        dv.export(tmp_path / "s", tmp_path / "t")
    assert not (tmp_path / "t").exists()


def test_a_table_without_shredded_paths_needs_columns(tmp_path: Path) -> None:
    dv.write_table(tmp_path / "s", [{"event": {"x": 1}}], variant_columns=["event"], shredding=None)
    with pytest.raises(SchemaError, match=r"pass columns, such as event:user\.id::bigint"):
        dv.export(tmp_path / "s", tmp_path / "t")
    dv.export(tmp_path / "s", tmp_path / "t", columns=["event:x::int as x"])
    assert by_deltalake(tmp_path / "t") == [{"x": 1}]


def test_a_target_of_another_source_is_rejected(tmp_path: Path) -> None:
    for name in ("s", "other"):
        small(tmp_path / name, {"x": 1})
    dv.export(tmp_path / "s", tmp_path / "t")
    with pytest.raises(TableExistsError, match=r"was exported from another one, .*s: pass another path"):
        dv.export(tmp_path / "other", tmp_path / "t")
    with pytest.raises(TableExistsError, match="is not an export"):
        dv.export(tmp_path / "s", tmp_path / "other")
    with pytest.raises(TableExistsError, match="is not an export"):
        dv.export(tmp_path / "s", tmp_path / "s")


def test_this_library_does_not_change_rows_of_an_export(tmp_path: Path) -> None:
    small(tmp_path / "s", {"x": 1})
    dv.export(tmp_path / "s", tmp_path / "t")
    target = tmp_path / "t"
    plain = dv.read_table(target).to_table()
    verbs = {
        "write": lambda: dv.write_table(target, plain, mode="append"),
        "overwrite": lambda: dv.write_table(target, plain, mode="overwrite"),
        "delete": lambda: dv.delete(target, "event is null"),
        "delete_all": lambda: dv.delete_all(target),
        "update": lambda: dv.update(target, {"event": "null"}),
        "optimize": lambda: dv.optimize(target),
        "restore": lambda: dv.restore(target, 0),
    }
    for name, verb in verbs.items():
        with pytest.raises(UnsupportedFeatureError, match=r"unset the table property deltaVariant\.export"):
            raise AssertionError(f"{name}: {verb()}")
    dv.unset_properties(target, ["deltaVariant.export"])
    verbs["write"]()
    assert len(by_deltalake(target)) == 2


def test_changes_of_other_writers_are_undone(tmp_path: Path) -> None:
    for number in range(3):
        small(tmp_path / "s", {"x": number}, **({"mode": "append"} if number else {}))
    dv.export(tmp_path / "s", tmp_path / "t")
    DeltaTable(tmp_path / "t").optimize.compact()
    assert len(DeltaTable(tmp_path / "t").file_uris()) == 1
    result = dv.export(tmp_path / "s", tmp_path / "t")
    assert (result.files_added, result.files_removed) == (3, 1)
    assert exported(tmp_path / "t") == [{"x": number} for number in range(3)]


def test_deletion_vectors_of_other_writers_are_undone(tmp_path: Path) -> None:
    small(tmp_path / "s", {"x": 0}, {"x": 1})
    dv.export(tmp_path / "s", tmp_path / "t")
    plant_vector(tmp_path / "t", 0, 1)
    assert dv.read_table(tmp_path / "t").to_table().num_rows == 1
    result = dv.export(tmp_path / "s", tmp_path / "t")
    assert (result.files_added, result.files_removed) == (1, 1)
    assert exported(tmp_path / "t") == [{"x": 0}, {"x": 1}]


@pytest.mark.parametrize("is_new", [True, False])
def test_an_export_that_loses_a_race_finds_the_work_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_new: bool
) -> None:
    small(tmp_path / "s", {"x": 1})
    if not is_new:
        dv.export(tmp_path / "s", tmp_path / "t")
        small(tmp_path / "s", {"x": 2}, mode="append")
    original, results = exporting._commit, []

    def commit_second(*arguments: Any) -> int:
        monkeypatch.setattr(exporting, "_commit", original)
        results.append(dv.export(tmp_path / "s", tmp_path / "t"))
        return original(*arguments)

    monkeypatch.setattr(exporting, "_commit", commit_second)
    assert dv.export(tmp_path / "s", tmp_path / "t").version is None
    assert [each.version for each in results] == [0 if is_new else 1]
    files = DeltaTable(tmp_path / "t").file_uris()
    assert {str(path) for path in (tmp_path / "t").glob("*.parquet")} == set(files)


KILLED = """
import os, sys
from delta_variant.views import export
original, opened = export.open_file, []
def open_file(*arguments):
    opened.append(1)
    if len(opened) == 3:
        os._exit(9)
    return original(*arguments)
export.open_file = open_file
export.export(*sys.argv[1:])
"""


def test_a_process_that_is_killed_leaves_the_target_as_it_was(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path / "s"), str(tmp_path / "t")]
    small(tmp_path / "s", {"x": 0})
    dv.export(tmp_path / "s", tmp_path / "t")
    for number in range(1, 6):
        small(tmp_path / "s", {"x": number}, mode="append")
    assert subprocess.run(command, env=os.environ, check=False).returncode == 9
    assert DeltaTable(tmp_path / "t").version() == 0
    # Each file that has a name is complete.
    for path in (tmp_path / "t").glob("*.parquet"):
        assert pq.ParquetFile(path).read().num_rows == 1
    dv.export(tmp_path / "s", tmp_path / "t")
    assert exported(tmp_path / "t") == [{"x": number} for number in range(6)]


def test_a_table_in_an_object_store_is_exported_by_ranges(tmp_path: Path) -> None:
    source, target = "memory://test_export/s", "memory://test_export/t"
    schema = dv.ShreddingSchema.of({"x": pa.int64()})
    dv.write_table(source, [{"event": {"x": 1}}], variant_columns=["event"], shredding=schema)
    for each in (target, tmp_path / "t"):
        assert dv.export(source, each).version == 0
        assert dv.read_table(each).to_pylist() == [{"event": {"typed_value": {"x": 1}}}]
        assert dv.export(source, each, columns={"x": "event:x::bigint"}).files_rewritten == 0
        assert dv.read_table(each).to_pylist() == [{"x": 1}]
