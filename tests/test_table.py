"""`Table`: a handle whose methods are the functions, and the places that accept it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import delta_variant as dv
from delta_variant._version import package_version
from delta_variant.errors import ArgumentTypeError, TableNotFoundError

# For each method: its function.
METHODS = {
    "snapshot": "load_snapshot",
    "scan": "read_table",
    "changes": "read_changes",
    "audit": "audit_table",
    "create": "create_table",
    "checkpoint": "write_checkpoint",
    "repair_files": "repair_files",
    "repair_log": "repair_log",
    **{
        name: name
        for name in (
            *(
                "aggregate",
                "shredded_columns",
                "describe",
                "analyze",
                "file_stats",
                "clone",
                "export",
                "history",
                "delete",
                "delete_all",
                "update",
                "merge",
            ),
            *("optimize", "vacuum", "restore", "clean_up_log", "repair_statistics", "set_properties"),
            *("unset_properties", "add_constraint", "drop_constraint", "add_columns", "drop_column"),
            *("rename_column", "change_type", "drop_feature"),
        )
    },
}
# The methods that are `write_table` with a mode, and its parameters that they lack.
WRITES = {"append": {"mode", "where", "partition_overwrite_mode"}, "overwrite": {"mode"}}
OWN = {"as_of", "to_deltalake", "exists", "head", "count", "to_pandas", "to_polars"}
HANDLE = {"table"}


def parameters(function: Any, without: set[str]) -> list[tuple[str, Any, Any, Any]]:
    """Return name, kind, default and annotation of each parameter but the handle's."""
    found = inspect.signature(function).parameters.values()
    return [
        (each.name, each.kind, each.default, each.annotation)
        for each in found
        if each.name not in {*HANDLE, "self", *without}
    ]


@pytest.mark.parametrize("method", METHODS)
def test_a_method_is_its_function(method: str):
    assert getattr(dv.Table, method) is getattr(dv, METHODS[method])


@pytest.mark.parametrize("method", WRITES)
def test_a_write_has_the_parameters_the_result_and_the_explanations_of_write_table(method: str):
    written, function = getattr(dv.Table, method), dv.write_table
    assert parameters(written, set()) == parameters(function, WRITES[method])
    assert inspect.signature(written).return_annotation == inspect.signature(function).return_annotation
    texts = (inspect.getdoc(each) or "" for each in (written, function))
    lines, explained = (text.partition("Args:")[2].partition("Example:")[0].splitlines() for text in texts)
    assert set(lines) <= set(explained)
    assert not any(line.lstrip().startswith(("mode:", "TableExistsError:")) for line in lines)


def test_every_method_is_a_function_or_selects_a_version():
    methods = {name for name, value in vars(dv.Table).items() if inspect.isfunction(value) and name[0] != "_"}
    assert methods == {*METHODS, *WRITES, *OWN}
    of_no_table = {"parse_json", "to_json", "shred", "unshred", "infer_shredding_schema", "variant_get"}
    of_no_table |= {
        "read_csv",
        "try_variant_get",
        "read_json",
        "convert",
        "sql",
        "compute_stats",
        "decode_bound",
        "encode_bound",
        "migrate_legacy",
        "progress",
    }
    # Names of other packages, for a table as their users know it.
    of_no_table |= {"read_delta", "scan_delta", "to_duckdb"}
    functions = {name for name in dv.__all__ if inspect.isfunction(getattr(dv, name))}
    assert functions - of_no_table == {*METHODS.values(), "write_table"}


@pytest.fixture
def table(tmp_path: Path) -> dv.Table:
    """Return a table with ids 1 and 2 at version 0, and 3 at version 1."""
    table = dv.Table(tmp_path / "t")
    table.overwrite(pa.table({"id": [1, 2]}), configuration={"delta.enableChangeDataFeed": "true"})
    table.append(pa.table({"id": [3]}))
    return table


def ids(scan: Any) -> list[int]:
    return sorted(scan.to_table()["id"].to_pylist())


def test_a_handle_does_no_io_until_a_method_is_called(tmp_path: Path):
    table = dv.Table("s3://no-such-bucket/t", {"AWS_REGION": "eu-central-1"})
    assert repr(table) == "<Table s3://no-such-bucket/t>"
    missing = dv.Table(tmp_path / "missing")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(TableNotFoundError):
        missing.scan()


def test_methods_read_and_change_the_table(table: dv.Table):
    assert ids(table.scan(where="id > 1")) == [2, 3]
    assert table.delete("id = 1").rows_deleted == 1
    assert table.update({"id": "id * 10"}, "id = 2").rows_updated == 1
    merge = table.merge(pa.table({"id": [20, 4]}), "target.id = source.id")
    merge.when_matched_delete().when_not_matched_insert_all().execute()
    assert ids(table.scan()) == [3, 4]
    assert [entry.operation for entry in table.history(limit=2)] == ["MERGE", "UPDATE"]
    assert table.changes(start=2, end=2).to_pylist()[0]["_change_type"] == "delete"
    assert table.audit(data=True).is_clean
    table.restore(0)
    assert ids(table.scan()) == [1, 2]
    table.set_properties({"team": "x"})
    assert table.snapshot().properties["team"] == "x"
    assert table.vacuum().files == ()
    table.delete_all()
    assert table.scan().count() == 0


def test_a_handle_is_frozen_and_compares_by_its_location(tmp_path: Path):
    table = dv.Table(tmp_path)
    with pytest.raises(AttributeError):
        table.location = "other"  # type: ignore[misc]
    assert table == dv.Table(tmp_path) == dv.Table(str(tmp_path))
    assert len({table, dv.Table(tmp_path), table.as_of(version=1)}) == 2
    assert table != dv.Table(tmp_path, {"timeout": "5s"})


@pytest.mark.parametrize("location", [None, 5, b"t", ["t"], pa.table({"id": [1]})])
def test_a_location_of_another_type_is_rejected_at_once(location: Any):
    with pytest.raises(ArgumentTypeError, match="expected a path, a URI, a Table"):
        dv.Table(location)


def test_an_empty_location_is_not_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    for call in (lambda: dv.Table(""), lambda: dv.write_table("", [{"id": 1}])):
        with pytest.raises(ValueError, match=r"expected a path, a URI, a Table or .*, got ''$"):
            call()
    assert list(tmp_path.iterdir()) == []


def test_as_of_selects_the_version_of_reads(table: dv.Table):
    first = table.as_of(version=0)
    at = table.history()[1].timestamp
    assert repr(first) == f"<Table {table.table_uri} at version 0>"
    for pinned in (first, table.as_of(timestamp=at)):
        assert ids(pinned.scan()) == [1, 2]
        assert pinned.snapshot().version == 0
        assert pinned.audit().version == 0
        assert [entry.version for entry in pinned.history()] == [0]
        assert ids(pinned.changes()) == [1, 2]
        assert ids(dv.read_table(pinned)) == [1, 2]
        assert pinned.to_deltalake().version() == 0
    assert ids(table.scan()) == [1, 2, 3]


def test_a_handle_answers_what_a_reader_asks_first(table: dv.Table):
    rows = [{"id": 1}, {"id": 2}, {"id": 3}]
    assert table.exists()
    assert (table.version, table.columns, table.count()) == (1, ["id"], 3)
    assert table.schema == pa.schema([pa.field("id", pa.int64())])
    assert sorted(table.head(2), key=str) == rows[:2]
    assert sorted(table, key=str) == rows
    assert sorted(table.to_pandas()["id"]) == sorted(table.to_polars()["id"]) == [1, 2, 3]
    assert sorted(pa.table(table)["id"].to_pylist()) == [1, 2, 3]
    first = table.as_of(0)
    assert (first.version, first.count(), len(list(first))) == (0, 2, 2)
    assert first.exists()
    table.append(first)
    assert (table.version, table.count()) == (2, 5)


def test_a_table_or_a_version_that_does_not_exist_says_so(table: dv.Table, tmp_path: Path):
    assert not dv.Table(tmp_path / "missing").exists()
    assert not table.as_of(version=7).exists()
    for ask in (lambda table: table.version, lambda table: table.head(), list):
        with pytest.raises(TableNotFoundError):
            ask(dv.Table(tmp_path / "missing"))
    (tmp_path / "bad" / "_delta_log").mkdir(parents=True)
    (tmp_path / "bad" / "_delta_log" / f"{0:020}.json").write_text("{")
    with pytest.raises(dv.DeltaVariantError):
        dv.Table(tmp_path / "bad").exists()


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.append(pa.table({"id": [9]})),
        lambda table: table.overwrite(pa.table({"id": [9]})),
        lambda table: table.delete("id = 1"),
        lambda table: table.delete_all(),
        lambda table: table.update({"id": "0"}),
        lambda table: table.merge(pa.table({"id": [9]}), "target.id = source.id"),
        lambda table: table.add_columns({"x": "int"}),
        lambda table: table.set_properties({"x": "y"}),
        lambda table: table.optimize(),
        lambda table: table.vacuum(dry_run=False),
        lambda table: table.restore(0),
        lambda table: table.repair_statistics(dry_run=False),
    ],
)
def test_an_earlier_version_cannot_be_changed(table: dv.Table, change: Any):
    for pinned in (table.as_of(version=0), table.as_of(timestamp="2999-01-01")):
        with pytest.raises(ValueError, match=r"cannot change .* at .*: pass the table without as_of"):
            change(pinned)
    assert table.snapshot().version == 1


def test_a_version_of_a_version_is_rejected(table: dv.Table):
    with pytest.raises(ValueError, match="as_of selected one"):
        dv.read_table(table.as_of(version=0), version=1)
    with pytest.raises(ValueError, match="pass either a version or a timestamp"):
        table.as_of()
    with pytest.raises(ValueError, match="pass either a version or a timestamp"):
        table.as_of(1, timestamp="2026-01-01")


def test_functions_accept_handles_and_snapshots(table: dv.Table):
    snapshot = table.as_of(version=0).snapshot()
    assert ids(dv.read_table(table)) == [1, 2, 3]
    assert dv.load_snapshot(snapshot) is snapshot
    assert ids(dv.read_changes(snapshot)) == [1, 2]
    assert [entry.version for entry in dv.history(snapshot)] == [0]
    assert dv.audit_table(snapshot).version == 0
    with pytest.raises(ArgumentTypeError, match="expected a path"):
        dv.delete(snapshot, "id = 1")  # type: ignore[arg-type]


def test_a_delta_table_reads_its_version_and_changes_the_table(table: dv.Table):
    import deltalake

    first = deltalake.DeltaTable(table.table_uri, version=0)
    assert ids(dv.read_table(first)) == [1, 2]
    assert ids(dv.read_table(first, version=1)) == [1, 2, 3]
    assert dv.load_snapshot(first).version == 0
    dv.delete(first, "id = 3")
    assert ids(table.scan()) == [1, 2]
    assert ids(dv.Table(first).scan()) == [1, 2]
    assert table.to_deltalake().version() == 2


def test_the_options_of_a_handle_are_used(tmp_path: Path):
    from delta_variant.storage.store import open_store

    options = {"allow_paths_outside_table": "true"}
    table = dv.Table(tmp_path, options)
    assert open_store(table).outside == options
    assert open_store(table, {}).outside is None
    assert dv.Table(table).storage_options == options

    import deltalake

    dv.write_table(tmp_path, pa.table({"id": [1]}))
    handle = deltalake.DeltaTable(tmp_path, storage_options={"timeout": "7s"})
    assert dv.Table(handle).storage_options == {"timeout": "7s"}


def test_the_arrow_schema_of_a_snapshot_is_that_of_a_scan(tmp_path: Path):
    table = dv.Table(tmp_path / "mixed")
    table.append(
        pa.table({"id": [1], "event": ["{}"], "day": pa.array([3], pa.date32())}), variant_columns=["event"]
    )
    found = table.snapshot().arrow_schema
    assert found.equals(table.scan().schema, check_metadata=True)
    assert [found.field(name).type for name in ("id", "day")] == [pa.int64(), pa.date32()]


@pytest.mark.parametrize(
    ("module", "requirement", "call"),
    [
        ("deltalake", "delta_variant[deltalake]", lambda table: table.to_deltalake()),
        ("pandas", "pandas", lambda table: table.scan().to_pandas()),
        ("polars", "polars", lambda table: table.scan().to_polars()),
        ("duckdb", "delta_variant[sql]", lambda table: dv.sql("select * from t", t=table)),
        ("pyspark", "delta_variant[spark]", lambda table: import_module("delta_variant.spark")),
    ],
)
def test_a_package_that_is_not_installed_is_named_with_the_command_for_it(
    module: str,
    requirement: str,
    call: Callable[[dv.Table], object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    table = dv.Table(tmp_path / "t")
    table.append([{"id": 1}])
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, "delta_variant.spark", raising=False)
    with pytest.raises(ModuleNotFoundError) as raised:
        call(table)
    assert raised.value.name == module
    assert str(raised.value) == f"{module} is not installed: run pip install '{requirement}'"


def test_a_table_that_cannot_be_read_has_html_that_says_so(tmp_path: Path):
    """A traceback in the first cell of a notebook would look like a failure."""
    assert "no table yet" in dv.Table(tmp_path / "events")._repr_html_()
    (tmp_path / "t" / "_delta_log").mkdir(parents=True)
    (tmp_path / "t" / "_delta_log" / f"{0:020}.json").write_text("{")
    assert "cannot read the table" in dv.Table(tmp_path / "t")._repr_html_()


def test_a_copy_without_metadata_of_a_distribution_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A folder on PYTHONPATH, or an executable of PyInstaller, has none."""
    monkeypatch.setattr(metadata, "distributions", lambda **_: iter(()))
    package_version.cache_clear()
    try:
        dv.write_table(tmp_path / "t", [{"id": 1}])
        commit = (tmp_path / "t" / "_delta_log" / f"{0:020}.json").read_text()
    finally:
        package_version.cache_clear()
    assert '"engineInfo":"delta-variant/unknown"' in commit
    assert dv.__version__ == "unknown"
