"""What commits record for their callers, and what the operations that commit return."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import delta_variant as dv
from delta_variant.errors import ArgumentTypeError

RUN = dv.CommitOptions(metadata={"run": "42", "by": "Ä"})
SOURCE = pa.table({"id": [1, 9], "n": [10, 90], "small": [1, 9]})


def merge(table: Path, commit: dv.CommitOptions) -> dv.RewriteResult:
    clauses = dv.merge(table, SOURCE, "target.id = source.id", commit=commit)
    return clauses.when_matched_update_all().when_not_matched_insert_all().execute()


def write(table: Path, commit: dv.CommitOptions) -> dv.WriteResult:
    return dv.write_table(table, pa.table({"id": [5], "n": [5]}), mode="append", commit=commit)


def vacuum(table: Path, commit: dv.CommitOptions) -> dv.VacuumResult:
    dv.delete(table, "id = 1")
    return dv.vacuum(table, 0, dry_run=False, enforce_retention_duration=False, commit=commit)


def repair(table: Path, commit: dv.CommitOptions) -> dv.RepairResult:
    files = dv.FileOptions(max_variant_stats_paths=0)
    texts = pa.table({"id": [3], "n": [3], "v": ['{"a": 1}']})
    options: dict[str, Any] = {"variant_columns": ["v"], "schema_mode": "merge", "files": files}
    dv.set_properties(table, {"delta.enableVariantShredding": "true"})
    dv.write_table(table, texts, mode="append", **options)
    return dv.repair_statistics(table, dry_run=False, commit=commit)


Operation = Callable[[Path, dv.CommitOptions], dv.CommitResult]
ROWS: Mapping[str, Operation] = {
    "write": write,
    "delete": lambda table, commit: dv.delete(table, where="id = 1", commit=commit),
    "delete all": lambda table, commit: dv.delete_all(table, commit=commit),
    "update": lambda table, commit: dv.update(table, {"n": "n + 1"}, where="id = 1", commit=commit),
    "merge": merge,
}
OTHERS: Mapping[str, Operation] = {
    "optimize": lambda table, commit: dv.optimize(table, sort_by="id", commit=commit),
    "restore": lambda table, commit: dv.restore(table, 0, commit=commit),
    "vacuum": vacuum,
    "repair": repair,
    "set": lambda table, commit: dv.set_properties(table, {"owner": "us"}, commit=commit),
    "unset": lambda table, commit: dv.unset_properties(table, ["team"], commit=commit),
    "add": lambda table, commit: dv.add_columns(table, {"x": "int"}, commit=commit),
    "rename": lambda table, commit: dv.rename_column(table, "n", "m", commit=commit),
    "drop": lambda table, commit: dv.drop_column(table, "n", commit=commit),
    "type": lambda table, commit: dv.change_type(table, "small", "bigint", commit=commit),
    "constrain": lambda table, commit: dv.add_constraint(table, "c", "id > 0", commit=commit),
    "release": lambda table, commit: dv.drop_constraint(table, "positive", commit=commit),
}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return a table with two files of rows and a commit that each operation can follow."""
    configuration = {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true", "team": "us"}
    small = pa.array([1, 2], pa.int32())
    rows = pa.table({"id": [1, 2], "n": [1, 2], "small": small})
    dv.write_table(tmp_path / "t", rows, configuration=configuration)
    dv.write_table(tmp_path / "t", pa.table({"id": [3, 4], "n": [3, 4]}), mode="append")
    dv.add_constraint(tmp_path / "t", "positive", "id > 0")
    return tmp_path / "t"


@pytest.mark.usefixtures("small_files_are_shredded")
@pytest.mark.parametrize("name", [*ROWS, *OTHERS])
def test_every_operation_returns_its_version_and_records_the_metadata(table: Path, name: str):
    result = {**ROWS, **OTHERS}[name](table, RUN)
    (entry,) = dv.history(table, 1)
    assert isinstance(result, dv.CommitResult)
    assert result.version == entry.version == dv.load_snapshot(table).version
    assert entry.metadata == {"run": "42", "by": "Ä"}
    assert dict(result.metrics) == dict(entry.metrics)
    assert len(repr(result)) < 200
    assert "\n" not in repr(result)


@pytest.mark.parametrize("name", ROWS)
def test_a_change_of_rows_with_a_txn_happens_once(table: Path, name: str, caplog: Any):
    commit = dv.CommitOptions(txn=("loader", 7))
    first = ROWS[name](table, commit)
    with caplog.at_level(logging.WARNING):
        again = ROWS[name](table, commit)
    assert first.version == dv.load_snapshot(table).version == 3
    assert again == type(again)(None, repeated=True)  # type: ignore[call-arg]
    assert "version 7 of the application 'loader'" in caplog.text
    assert ROWS[name](table, dv.CommitOptions(txn=("loader", 8))).version in (4, None)


@pytest.mark.parametrize("name", OTHERS)
def test_an_operation_that_changes_no_rows_rejects_a_txn(table: Path, name: str):
    with pytest.raises(ValueError, match="does not support txn"):
        OTHERS[name](table, dv.CommitOptions(txn=("loader", 7)))
    assert "loader" not in dv.load_snapshot(table).txns


def test_deltalake_reads_the_metadata_as_text(table: Path):
    dv.delete(table, "id = 1", commit=RUN)
    dv.delete(table, "id = 2", commit=dv.CommitOptions(metadata="nightly"))
    newest, before, *_ = DeltaTable(table).history()
    assert newest["userMetadata"] == "nightly"
    assert before["userMetadata"] == '{"run":"42","by":"Ä"}'
    assert [entry.metadata for entry in dv.history(table, 3)] == ["nightly", {"run": "42", "by": "Ä"}, None]


@pytest.mark.parametrize("metadata", [5, ["x"], b"x", {"x": object()}, {"x": "\ud800"}])
def test_metadata_that_is_neither_text_nor_json_is_rejected(metadata: Any):
    with pytest.raises(ArgumentTypeError, match="metadata"):
        dv.CommitOptions(metadata=metadata)


@pytest.mark.parametrize(
    ("name", "kind"), [("files", "FileOptions"), ("json", "JsonOptions"), ("commit", "CommitOptions")]
)
def test_options_of_another_type_are_rejected(table: Path, name: str, kind: str):
    with pytest.raises(ArgumentTypeError, match=f"{name}: expected {kind}, got "):
        dv.write_table(table, SOURCE, mode="append", **{name: {"txn": 5}})
    assert dv.load_snapshot(table).version == 2


def test_file_options_apply_to_each_operation_that_writes_files(table: Path):
    files = dv.FileOptions(compression="snappy")
    results = [
        dv.delete(table, "id = 1", files=files),
        dv.update(table, {"n": "0"}, "id = 2", files=files),
        dv.merge(table, SOURCE, "target.id = source.id", files=files).when_not_matched_insert_all().execute(),
        dv.optimize(table, files=files),
    ]
    paths = [file.path for result in results for file in result.files]
    assert len(paths) >= len(results)
    assert all(".snappy." in path for path in paths)


def test_a_result_prints_counts_instead_of_files(tmp_path: Path):
    rows = pa.table({"p": range(50), "n": range(50)})
    result = dv.write_table(tmp_path / "t", rows, partition_by="p")
    assert repr(result) == "WriteResult(version=0, rows=50, files=<50>)"
    assert (
        repr(dv.delete_all(tmp_path / "t")) == "RewriteResult(version=1, rows_deleted=50, files_removed=50)"
    )
