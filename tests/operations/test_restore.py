"""Restores of tables to earlier versions."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.archives import unpack_spark_table
from support.commits import commit_actions
from support.errors import raises_at
from support.intercepted_store import commit_first
from support.tables import read_actions
from typer.testing import CliRunner

import delta_variant as dv
from delta_variant.cli.app import app
from delta_variant.errors import CommitConflictError, DataFileError, UnsupportedFeatureError
from delta_variant.log.listing import commit_file_name
from delta_variant.protocol.actions import CommitInfo, DomainMetadata, Metadata


def append(table: Path, *numbers: int, **options: Any) -> None:
    texts = [f'{{"n": {number}, "s": "x{number}"}}' for number in numbers]
    rows = pa.table({"id": pa.array(numbers, pa.int64()), "v": pa.array(texts, pa.json_())})
    dv.write_table(table, rows, **{"mode": "append", **options})


def rows(table: Path, **options: Any) -> list[tuple[Any, ...]]:
    columns = ["id", "to_json(v) as v"]
    found = dv.read_table(table, columns=columns, **options).to_table().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def edit_metadata(table: Path, *more: Any, **configuration: str | None) -> None:
    """Commit properties of a table; None unsets one."""
    state = dv.load_snapshot(table)
    settings: dict[str, Any] = {
        **state.properties,
        **{name.replace("_", "."): text for name, text in configuration.items()},
    }
    metadata = Metadata(
        id=state.metadata.id,
        format=state.metadata.format,
        schema_string=state.metadata.schema_string,
        partition_columns=state.partition_columns,
        configuration={name: text for name, text in settings.items() if text is not None},
    )
    commit_actions(state.store, state.version + 1, [CommitInfo({}), metadata, *more])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return a table of two commits with two rows each."""
    for first in (0, 2):
        append(tmp_path / "t", first, first + 1)
    return tmp_path / "t"


@pytest.fixture
def with_vectors(corpora: Path, tmp_path: Path) -> Path:
    """Return a table of Delta on Spark with a deletion vector."""
    return unpack_spark_table(corpora, "d_dv", tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        lambda table: append(table, 9),
        lambda table: dv.delete(table, "v:n::bigint in (0, 3)"),
        lambda table: dv.delete_all(table),
        lambda table: dv.update(table, {"v:s": "'other'"}, "id = 1"),
        lambda table: dv.optimize(table),
        lambda table: append(table, 7, mode="overwrite"),
        lambda table: dv.write_table(
            table, pa.table({"other": ["x"]}), mode="overwrite", schema_mode="overwrite"
        ),
    ],
    ids=["append", "delete", "delete all", "update", "optimize", "overwrite", "other columns"],
)
def test_a_restore_after_a_change_restores_rows_and_columns(table, change):
    before, state = rows(table), dv.load_snapshot(table)
    change(table)
    result = dv.restore(table, 1)
    assert (result.version, result.restored) == (3, 1)
    assert rows(table) == before
    restored = dv.load_snapshot(table)
    assert restored.schema == state.schema
    assert restored.metadata == state.metadata
    assert sorted(restored.files["path"].to_pylist()) == sorted(state.files["path"].to_pylist())
    assert dv.audit_table(table, data=True).is_clean


def test_the_commit_adds_removed_files_and_removes_added_files(table):
    dv.delete(table, "id = 0")
    append(table, 9)
    result = dv.restore(table, 1)
    adds, removes = read_actions(table, "add", 4), read_actions(table, "remove", 4)
    assert (result.files_added, result.files_removed) == (len(adds), len(removes)) == (1, 2)
    assert adds == read_actions(table, "add", 0)
    assert all(action["dataChange"] for action in adds + removes)
    (info,) = read_actions(table, "commitInfo", 4)
    assert (info["operation"], info["operationParameters"]["version"], info["isBlindAppend"]) == (
        "RESTORE",
        "1",
        False,
    )
    assert info["operationMetrics"] == {
        "tableSizeAfterRestore": str(dv.load_snapshot(table).num_bytes),
        "numOfFilesAfterRestore": "2",
        "numRemovedFiles": "2",
        "numRestoredFiles": "1",
        "removedFilesSize": str(result.bytes_removed),
        "restoredFilesSize": str(result.bytes_added),
    }


def test_a_restore_can_be_undone_by_a_restore(table):
    dv.restore(table, 0)
    assert [row[0] for row in rows(table)] == [0, 1]
    dv.restore(table, 1)
    assert [row[0] for row in rows(table)] == [0, 1, 2, 3]


def test_a_table_can_be_restored_to_a_timestamp(table):
    for version in range(2):
        os.utime(table / commit_file_name(version), ns=(0, (version + 1) * 10**12))
    result = dv.restore(table, timestamp="1970-01-01T00:20Z")
    assert (result.version, result.restored) == (2, 0)
    (info,) = read_actions(table, "commitInfo", 2)
    assert info["operationParameters"] == {"version": None, "timestamp": "1970-01-01T00:20Z"}


def test_a_restore_without_changes_commits_nothing(table):
    assert dv.restore(table, 1).version is None
    dv.delete(table, "id = 0")
    dv.restore(table, 1)
    assert dv.restore(table, 1).version is None
    assert dv.load_snapshot(table).version == 3


def test_a_restore_without_a_version_or_timestamp_is_rejected(table):
    with pytest.raises(ValueError, match="pass the version or the timestamp"):
        dv.restore(table)


def test_the_protocol_keeps_its_features(table):
    columns = {"id": [5], "v": pa.array(["1"], pa.json_()), "at": pa.array([0], pa.timestamp("us"))}
    dv.write_table(table, pa.table(columns), mode="append", schema_mode="merge")
    protocol = dv.load_snapshot(table).protocol
    assert "timestampNtz" in protocol.writer_features
    dv.restore(table, 1)
    assert dv.load_snapshot(table).protocol == protocol
    assert dv.load_snapshot(table).schema == dv.load_snapshot(table, 1).schema


def test_a_dropped_feature_is_restored_with_the_files_that_can_need_it(table):
    state = dv.load_snapshot(table)
    features = [*state.protocol.reader_features, "deletionVectors"]
    more = state.protocol.__class__(
        min_reader_version=3, min_writer_version=7, reader_features=features, writer_features=features
    )
    commit_actions(state.store, 2, [CommitInfo({}), more])
    append(table, 9)
    commit_actions(state.store, 4, [CommitInfo({}), state.protocol])
    dv.restore(table, 3)
    assert "deletionVectors" in dv.load_snapshot(table).protocol.reader_features


def test_a_missing_file_is_an_error_and_nothing_is_committed(table):
    dv.delete_all(table)
    missing = dv.load_snapshot(table, 1).files["path"].to_pylist()[0]
    (table / missing).unlink()
    with raises_at(DataFileError, "files are missing", table=str(table), version=1, file=missing):
        dv.restore(table, 1)
    assert dv.load_snapshot(table).version == 2


def test_a_missing_deletion_vector_is_an_error(with_vectors):
    latest = dv.load_snapshot(with_vectors)
    assert latest.files["deletion_vector"].null_count < latest.num_files
    dv.delete_all(with_vectors)
    vectors = list(with_vectors.glob("**/deletion_vector_*.bin"))
    for path in vectors:
        path.unlink()
    with raises_at(DataFileError, "files are missing", version=latest.version) as caught:
        dv.restore(with_vectors, latest.version)
    assert caught.value.file in {path.name for path in vectors}


def test_a_restore_restores_deletion_vectors(with_vectors):
    latest = dv.load_snapshot(with_vectors).version
    counts = [dv.read_table(with_vectors, version=each).to_table().num_rows for each in range(latest + 1)]
    assert len(set(counts)) > 2
    for version in range(latest, -1, -1):
        dv.restore(with_vectors, version)
        assert dv.read_table(with_vectors).to_table().num_rows == counts[version]


def test_an_append_only_table_rejects_a_restore_that_removes_files(table):
    edit_metadata(table, delta_appendOnly="true")
    append(table, 9)
    with raises_at(UnsupportedFeatureError, r"delta\.appendOnly=true and 1 files", version=1):
        dv.restore(table, 1)
    assert dv.load_snapshot(table).version == 3


@pytest.mark.parametrize("isolation", ["Serializable", "WriteSerializable"])
def test_rows_of_a_concurrent_append_are_a_conflict(table, isolation):
    edit_metadata(table, delta_isolationLevel=isolation)
    dv.delete(table, "id = 0")
    with raises_at(CommitConflictError, "added rows", version=4):
        dv.restore(commit_first(table, lambda: append(table, 9)), 2)
    assert 9 in [row[0] for row in rows(table)]


def test_files_that_a_concurrent_commit_removes_are_a_conflict(table):
    with raises_at(CommitConflictError, "removed", version=2):
        dv.restore(commit_first(table, lambda: dv.optimize(table)), 0)


def test_a_concurrent_vacuum_is_a_conflict_only_if_removed_files_come_back(table):
    def vacuum() -> None:
        dv.vacuum(table, 0, dry_run=False, enforce_retention_duration=False)

    dv.delete(table, "id = 0")
    with raises_at(CommitConflictError, "started a vacuum", version=3):
        dv.restore(commit_first(table, vacuum), 0)
    before = rows(table)
    append(table, 9)
    (table / "part-orphan.parquet").touch()
    assert dv.restore(commit_first(table, vacuum), dv.load_snapshot(table).version - 1).version is not None
    assert rows(table) == before


def test_a_restore_keeps_in_commit_timestamps(tmp_path):
    table = tmp_path / "t"
    append(table, 1)
    state = dv.load_snapshot(table)
    protocol = state.protocol.__class__(
        min_reader_version=3,
        min_writer_version=7,
        reader_features=state.protocol.reader_features,
        writer_features=(*state.protocol.writer_features, "inCommitTimestamp"),
    )
    enabled = {
        "delta_enableInCommitTimestamps": "true",
        "delta_inCommitTimestampEnablementVersion": "1",
        "delta_inCommitTimestampEnablementTimestamp": "4000000000000",
    }
    edit_metadata(table, protocol, **enabled)
    append(table, 2)
    dv.restore(table, 0)
    configuration = dv.load_snapshot(table).properties
    assert configuration["delta.inCommitTimestampEnablementVersion"] == "1"
    assert "inCommitTimestamp" in read_actions(table, "commitInfo", 3)[0]
    assert [row[0] for row in rows(table)] == [1]


def test_column_ids_are_never_reused(tmp_path):
    table = tmp_path / "t"
    append(table, 1, configuration={"delta.columnMapping.mode": "name"})
    more = pa.table({"id": [2], "v": pa.array(["1"], pa.json_()), "more": ["x"]})
    dv.write_table(table, more, mode="append", schema_mode="merge")
    greatest = dv.load_snapshot(table).properties["delta.columnMapping.maxColumnId"]
    dv.restore(table, 0)
    assert rows(table) == [(1, '{"n":1,"s":"x1"}')]
    assert dv.load_snapshot(table).properties["delta.columnMapping.maxColumnId"] == greatest


def test_a_version_without_column_mapping_cannot_be_restored(tmp_path):
    table = tmp_path / "t"
    append(table, 1, configuration={"delta.columnMapping.mode": "name"})
    edit_metadata(table, delta_columnMapping_mode="none")
    edit_metadata(table, delta_columnMapping_mode="name")
    with raises_at(UnsupportedFeatureError, "mode none, and the mode cannot change from name", version=1):
        dv.restore(table, 1)


def test_rows_keep_their_ids(tmp_path):
    table = tmp_path / "t"
    append(table, 1, 2, configuration={"delta.enableRowTracking": "true"})
    append(table, 3)
    before = dv.load_snapshot(table).files.select(["path", "base_row_id", "default_row_commit_version"])
    dv.delete_all(table)
    dv.restore(table, 1)
    append(table, 4)
    after = dv.load_snapshot(table)
    kept = after.files.select(before.column_names).to_pylist()
    assert before.num_rows == 2
    assert all(row in kept for row in before.to_pylist())
    assert sorted(after.files["base_row_id"].to_pylist()) == [0, 2, 3]


def test_a_restore_restores_clustering_columns(table):
    def cluster(*columns: str) -> None:
        names = [[column] for column in columns]
        text = json.dumps(
            {"clusteringColumns": names, "domainName": "delta.clustering"}, separators=(",", ":")
        )
        state = dv.load_snapshot(table)
        domain = DomainMetadata(domain="delta.clustering", configuration=text, removed=False)
        features = (*state.protocol.writer_features, "clustering", "domainMetadata")
        protocol = state.protocol.__class__(
            min_reader_version=3,
            min_writer_version=7,
            reader_features=state.protocol.reader_features,
            writer_features=tuple(dict.fromkeys(features)),
        )
        commit_actions(state.store, state.version + 1, [CommitInfo({}), protocol, domain])

    cluster("id")
    cluster("v")
    dv.restore(table, 2)
    assert '["id"]' in dv.load_snapshot(table).domain_metadata["delta.clustering"].configuration
    dv.restore(table, 1)
    assert (
        '"clusteringColumns":[]' in dv.load_snapshot(table).domain_metadata["delta.clustering"].configuration
    )
    assert dv.restore(table, 1).version is None


def test_a_restore_keeps_transactions_of_applications(table):
    append(table, 9, commit=dv.CommitOptions(txn=("app", 7)))
    dv.restore(table, 1)
    assert dv.load_snapshot(table).txns["app"].version == 7


@pytest.mark.parametrize("mode", ["none", "name"])
def test_identity_values_are_never_assigned_twice(tmp_path, mode):
    table = dv.Table(tmp_path / "t")
    columns = ["id bigint GENERATED ALWAYS AS IDENTITY (START WITH 5 INCREMENT BY -2)", "v string"]
    table.create(columns, configuration={"delta.columnMapping.mode": mode})
    for value in "abc":
        table.append([{"v": value}])
    assert table.restore(1).version == 4
    assert table.restore(1).version is None
    table.append([{"v": "d"}])
    # Delta on Spark keeps the high water mark, too.
    assert sorted((row["v"], row["id"]) for row in table) == [("a", 5), ("d", -1)]


def test_the_command_line_restores_and_prints_the_result(table):
    dv.delete(table, "id = 0")
    result = CliRunner().invoke(app, ["restore", str(table), "--version", "1", "--yes"])
    first, second = result.stdout.splitlines()
    assert first.endswith("t: version 3 restores version 1")
    assert second.startswith("1 file added, ")
    assert "; 1 file removed, " in second
    result = CliRunner().invoke(app, ["restore", str(table), "--version", "1", "--yes", "--json"])
    assert json.loads(result.stdout)["version"] is None
    assert CliRunner().invoke(app, ["restore", str(table)]).exit_code == 2
