"""`read_changes`: the rows that commits inserted, deleted and updated (PROTOCOL.md, "Add CDC File")."""

from __future__ import annotations

import json
import os
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.commits import commit_actions
from support.errors import raises_at
from support.planting import inline_vector
from support.tables import read_actions
from typer.testing import CliRunner

import delta_variant as dv
from delta_variant.cli.app import app
from delta_variant.errors import (
    ArgumentTypeError,
    ChangesNotRecordedError,
    ExpressionError,
    MalformedLogError,
    SchemaError,
    TimestampAfterLatestError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from delta_variant.log.checkpoints import writing as checkpoint_writing
from delta_variant.log.listing import commit_file_name
from delta_variant.protocol.actions import CommitInfo, Metadata, RemoveFile

FEED = {"delta.enableChangeDataFeed": "true"}
COLUMNS = ["id", "to_json(v) as v", "_change_type", "_commit_version"]


def append(table: Path, *numbers: int, **options: Any) -> None:
    texts = [f'{{"n": {number}}}' for number in numbers]
    days = [f"d{number % 2}" for number in numbers]
    rows = pa.table({"id": pa.array(numbers, pa.int64()), "day": days, "v": pa.array(texts, pa.json_())})
    new = {} if (table / "_delta_log").exists() else {"configuration": FEED}
    dv.write_table(table, rows, **{"mode": "append", **new, **options})


def changes(table: Path, **options: Any) -> list[tuple[Any, ...]]:
    """Return version, type, `id` and `v` of changes, sorted."""
    read = dv.read_changes(table, columns=COLUMNS, **options).to_table().to_pylist()
    return sorted((row["_commit_version"], row["_change_type"], row["id"], row["v"]) for row in read)


def commit(table: Path, *actions: Any) -> None:
    state = dv.load_snapshot(table)
    commit_actions(state.store, state.version + 1, [CommitInfo({}), *actions])


def set_metadata(table: Path, *more: Any, **fields: Any) -> None:
    metadata = dv.load_snapshot(table).metadata
    values = {name: getattr(metadata, name) for name in metadata.__struct_fields__}
    commit(table, Metadata(**{**values, **fields}), *more)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return a table with a change data feed and two files of two rows."""
    append(tmp_path / "t", 0, 1)
    append(tmp_path / "t", 2, 3)
    return tmp_path / "t"


def test_appended_rows_are_inserted(table):
    assert changes(table) == [
        (version, "insert", number, f'{{"n":{number}}}')
        for version, number in ((0, 0), (0, 1), (1, 2), (1, 3))
    ]


def test_an_update_has_preimages_and_postimages(table):
    dv.update(table, {"v:n": "10"}, "id = 1")
    assert changes(table, start=2) == [
        (2, "update_postimage", 1, '{"n":10}'),
        (2, "update_preimage", 1, '{"n":1}'),
    ]


def test_deleted_rows_are_deleted(table):
    dv.delete(table, "id = 1")
    dv.delete(table, "day = 'd0'")
    assert changes(table, start=2) == [
        (2, "delete", 1, '{"n":1}'),
        (3, "delete", 0, '{"n":0}'),
        (3, "delete", 2, '{"n":2}'),
    ]


def test_rows_that_are_only_moved_do_not_change(table):
    dv.optimize(table)
    assert changes(table, start=2) == []


@pytest.mark.parametrize("options", [{}, {"partition_by": ["day"]}, {"mapping": "name"}, {"mapping": "id"}])
def test_changes_lead_from_each_version_to_the_next(tmp_path, options):
    table, options = tmp_path / "t", dict(options)
    mapping = options.pop("mapping", None)
    configuration = {**FEED, **({"delta.columnMapping.mode": mapping} if mapping else {})}
    append(table, *range(6), configuration=configuration, **options)
    append(table, *range(6, 12))
    dv.update(table, {"v:n": "id + 100", "day": "'d0'"}, "id in (2, 3, 7)")
    dv.delete(table, "id in (0, 8, 9)")
    dv.delete(table, "day = 'd1'")
    append(table, 20, 21, mode="overwrite", where="id >= 20")
    source = pa.table({"key": [20, 30], "day": ["d0", "d1"]})
    merge = dv.merge(table, source, "target.id = key").when_matched_update({"v:merged": "source.day"})
    merge.when_not_matched_insert({"id": "key", "day": "source.day", "v:n": "key"}).execute()
    dv.restore(table, 3)
    dv.delete_all(table)
    latest = dv.load_snapshot(table).version
    columns = ["id", "day", "to_json(v) as v"]
    state: Counter[Any] = Counter()
    read = (
        dv.read_changes(table, columns=[*columns, "_change_type", "_commit_version"]).to_table().to_pylist()
    )
    for version in range(latest + 1):
        for row in read:
            if row["_commit_version"] == version:
                sign = 1 if row["_change_type"] in ("insert", "update_postimage") else -1
                state[row["id"], row["day"], row["v"]] += sign
        rows = dv.read_table(table, version=version, columns=columns).to_table().to_pylist()
        assert +state == Counter(tuple(row.values()) for row in rows)
        assert not -state
    assert len(read) > 30


def test_all_columns_are_returned_with_the_columns_of_the_feed(table):
    os.utime(table / commit_file_name(1), ns=(0, 1_500_000_000))
    os.utime(table / commit_file_name(0), ns=(0, 1_000_000_000))
    read = dv.read_changes(table, start=1).to_table()
    assert read.schema.names == ["id", "day", "v", "_change_type", "_commit_version", "_commit_timestamp"]
    assert read.schema.types[3:] == [pa.string(), pa.int64(), pa.timestamp("us", "UTC")]
    assert read.schema.field("v").metadata[b"ARROW:extension:name"] == b"arrow.parquet.variant"
    assert set(read["_commit_timestamp"].to_pylist()) == {
        datetime(1970, 1, 1, 0, 0, 1, 500_000, timezone.utc)
    }


def test_in_commit_timestamps_are_the_times_of_changes(tmp_path):
    append(tmp_path, 1, configuration={**FEED, "delta.enableInCommitTimestamps": "true"})
    os.utime(tmp_path / commit_file_name(0), ns=(0, 0))
    (entry,) = dv.history(tmp_path)
    assert dv.read_changes(tmp_path).to_table()["_commit_timestamp"].to_pylist() == [entry.timestamp]


def test_columns_and_predicates_may_read_the_columns_of_the_feed(table):
    dv.update(table, {"v:n": "10"}, "id = 1")
    where = "_change_type = 'update_postimage' or (_commit_version = 0 and v:n::int = 0)"
    read = dv.read_changes(table, columns={"n": "v:n::int", "at": "_commit_version + 1"}, where=where)
    assert sorted(read.to_pylist(), key=str) == [{"n": 0, "at": 1}, {"n": 10, "at": 3}]
    with raises_at(ExpressionError, column="nothing"):
        dv.read_changes(table, where="nothing = 1")


def test_files_of_versions_that_a_condition_excludes_are_not_read(table):
    for path in dv.load_snapshot(table, 0).files["path"].to_pylist():
        (table / path).unlink()
    assert [row[2] for row in changes(table, where="_commit_version > 0")] == [2, 3]
    assert [row[2] for row in changes(table, where="id > 1")] == [2, 3]


def test_a_range_has_both_of_its_ends(table):
    append(table, 4)
    assert [row[2] for row in changes(table, start=1, end=1)] == [2, 3]
    assert [row[2] for row in changes(table, end=1)] == [0, 1, 2, 3]


def test_a_range_is_given_by_times_too(table):
    append(table, 4)
    for version in range(3):
        os.utime(table / commit_file_name(version), ns=(0, (version + 1) * 10 * 10**9))

    def found(**options: str) -> list[int]:
        return [row[2] for row in changes(table, **options)]

    assert found(start="1970-01-01T00:00:20Z") == [2, 3, 4]
    assert found(start="1970-01-01T00:00:20.001Z") == [4]
    assert found(start="1970-01-01T00:00:00Z") == [0, 1, 2, 3, 4]
    assert found(end="1970-01-01T00:00:29.999Z") == [0, 1, 2, 3]
    assert found(end="2026-01-01") == [0, 1, 2, 3, 4]
    with raises_at(TimestampAfterLatestError, version=2):
        found(start="1970-01-01T00:00:31Z")


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"start": 1, "end": 0}, ValueError, "ends at version 0, before it starts"),
        ({"start": -1}, ValueError, "start: expected an integer from 0 to .*, got -1"),
        ({"end": -1}, ValueError, "end: expected an integer from 0 to .*, got -1"),
        ({"start": "0"}, ValueError, "invalid timestamp '0': expected ISO 8601"),
        ({"end": [1]}, ArgumentTypeError, r"end: expected a version, .*, got \[1\]"),
        ({"start": 1.5}, ArgumentTypeError, "start: expected an integer from 0 to .*, got 1.5"),
        ({"start": True}, ArgumentTypeError, "start: expected a version, .*, got True"),
    ],
)
def test_an_invalid_range_is_rejected(table, options, error, sentence):
    with pytest.raises(error, match=sentence):
        dv.read_changes(table, **options)


@pytest.mark.parametrize("end", ["start", "end"])
def test_a_range_beyond_the_latest_version_is_rejected(table, end):
    with raises_at(VersionNotFoundError, version=2):
        dv.read_changes(table, **{end: 2})


def test_removed_commits_are_an_error_with_the_version(table):
    checkpoint_writing.write_checkpoint(dv.load_snapshot(table).store, 1, now=0, unique_id="")
    (table / commit_file_name(0)).unlink()
    with raises_at(VersionNotFoundError, "may have been cleaned up", version=0):
        dv.read_changes(table)
    assert [row[2] for row in changes(table, start=1)] == [2, 3]


def test_a_version_without_a_change_data_feed_is_an_error(tmp_path):
    table = tmp_path / "t"
    append(table, 0, configuration={})
    with raises_at(ChangesNotRecordedError, r"delta\.enableChangeDataFeed", table=str(table), version=0):
        dv.read_changes(table)
    state = dv.load_snapshot(table)
    features = (*state.protocol.writer_features, "changeDataFeed")
    protocol = type(state.protocol)(
        min_reader_version=3,
        min_writer_version=7,
        reader_features=state.protocol.reader_features,
        writer_features=features,
    )
    on = {**state.properties, **FEED}
    set_metadata(table, protocol, configuration=on)
    append(table, 1)
    set_metadata(table, configuration=state.properties)
    append(table, 2)
    set_metadata(table, configuration=on)
    with pytest.raises(ChangesNotRecordedError) as first:
        dv.read_changes(table)
    with pytest.raises(ChangesNotRecordedError) as fourth:
        dv.read_changes(table, start=1)
    assert (first.value.version, fourth.value.version) == (0, 3)
    assert changes(table, start=1, end=2) == [(2, "insert", 1, '{"n":1}')]
    assert changes(table, start=5) == []


def test_a_property_without_the_feature_records_nothing(table):
    state = dv.load_snapshot(table)
    features = tuple(name for name in state.protocol.writer_features if name != "changeDataFeed")
    protocol = type(state.protocol)(
        min_reader_version=3,
        min_writer_version=7,
        reader_features=state.protocol.reader_features,
        writer_features=features,
    )
    commit(table, protocol)
    with raises_at(ChangesNotRecordedError, version=2):
        dv.read_changes(table)


def test_columns_that_came_later_are_null_before(table):
    rows = pa.table({"id": [9], "day": ["d"], "v": pa.array(["1"], pa.json_()), "more": ["x"]})
    dv.write_table(table, rows, mode="append", schema_mode="merge")
    read = dv.read_changes(table, columns=["id", "more"]).to_table().to_pylist()
    assert {row["id"]: row["more"] for row in read} == {0: None, 1: None, 2: None, 3: None, 9: "x"}
    assert dv.read_changes(table, end=1).schema.names[:3] == ["id", "day", "v"]


@pytest.mark.parametrize(
    ("change", "column", "sentence"),
    [
        (lambda fields: fields.pop(0), "id", "was dropped or renamed"),
        (lambda fields: fields[0].update(name="key"), "id", "was dropped or renamed"),
        (lambda fields: fields[0].update(type="string"), "id", "changed its type from long"),
        (lambda fields: fields[0].update(nullable=False), "id", "was nullable"),
        (
            lambda fields: fields.append({"name": "new", "type": "long", "nullable": False, "metadata": {}}),
            "new",
            "did not exist",
        ),
    ],
)
def test_changed_columns_are_named_in_the_error(table, change, column, sentence):
    schema = json.loads(dv.load_snapshot(table).metadata.schema_string)
    change(schema["fields"])
    set_metadata(table, schema_string=json.dumps(schema))
    with raises_at(SchemaError, sentence, version=0, column=column):
        dv.read_changes(table)
    assert len(changes(table, end=1)) == 4
    assert dv.read_changes(table, start=2).to_table().num_rows == 0


def test_columns_that_were_removed_with_their_rows_are_named(table):
    dv.write_table(table, pa.table({"other": ["x"]}), mode="overwrite", schema_mode="overwrite")
    with raises_at(SchemaError, "was dropped", column="id", version=1):
        dv.read_changes(table, start=2)


def test_a_replaced_column_of_the_same_name_is_an_error(tmp_path):
    table = tmp_path / "t"
    append(table, 0, configuration={**FEED, "delta.columnMapping.mode": "name"})
    schema = json.loads(dv.load_snapshot(table).metadata.schema_string)
    schema["fields"][0]["metadata"] = {
        "delta.columnMapping.id": 9,
        "delta.columnMapping.physicalName": "col-other",
    }
    set_metadata(table, schema_string=json.dumps(schema))
    with raises_at(SchemaError, "was replaced by another column of the same name", column="id"):
        dv.read_changes(table)


def test_widened_types_are_read_as_they_are_at_the_end(tmp_path):
    table = tmp_path / "t"
    rows = pa.table({"id": pa.array([1, 2], pa.int32()), "x": ["a", "b"]})
    dv.write_table(table, rows, configuration={**FEED, "delta.enableTypeWidening": "true"})
    schema = json.loads(dv.load_snapshot(table).metadata.schema_string)
    changed = [{"fromType": "integer", "toType": "long", "tableVersion": 1}]
    schema["fields"][0].update(type="long", metadata={"delta.typeChanges": changed})
    set_metadata(table, schema_string=json.dumps(schema))
    read = dv.read_changes(table, columns=["id"]).to_table()
    assert (read.schema.types, sorted(read["id"].to_pylist())) == ([pa.int64()], [1, 2])


def test_changed_partition_columns_are_an_error(table):
    set_metadata(table, partition_columns=("day",))
    with raises_at(SchemaError, "the partition columns changed", version=0):
        dv.read_changes(table)


def test_a_table_with_a_reserved_column_name_is_rejected(table):
    text = dv.load_snapshot(table).metadata.schema_string
    set_metadata(table, schema_string=text.replace('"day"', '"_Change_type"'))
    with raises_at(SchemaError, "the change data feed reserves the name", column="_Change_type"):
        dv.read_changes(table, start=2)


def test_a_table_that_cannot_be_read_is_rejected(table):
    state = dv.load_snapshot(table)
    features = (*state.protocol.reader_features, "future")
    commit(
        table,
        type(state.protocol)(
            min_reader_version=3,
            min_writer_version=7,
            reader_features=features,
            writer_features=(*state.protocol.writer_features, "future"),
        ),
    )
    with pytest.raises(UnsupportedFeatureError, match="future"):
        dv.read_changes(table)


def test_rows_that_a_deletion_vector_marks_are_deleted_and_come_back(tmp_path):
    table = tmp_path / "t"
    configuration = {**FEED, "delta.enableDeletionVectors": "true"}
    append(table, *range(6), configuration=configuration)
    (add,) = read_actions(table, "add", 0)

    def mark(before: list[int], after: list[int]) -> None:
        old, new = ({"deletionVector": inline_vector(*rows)} if rows else {} for rows in (before, after))
        remove = {"path": add["path"], "deletionTimestamp": 1, "dataChange": True, "partitionValues": {}}
        lines = [{"commitInfo": {}}, {"remove": {**remove, **old}}, {"add": {**add, **new}}]
        name = table / commit_file_name(dv.load_snapshot(table).version + 1)
        name.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")

    mark([], [1, 2, 5])
    mark([1, 2, 5], [0, 2])
    mark([0, 2], [])
    told = [(version, what, number) for version, what, number, _ in changes(table, start=1)]
    assert told == [
        *((1, "delete", number) for number in (1, 2, 5)),
        (2, "delete", 0),
        (2, "insert", 1),
        (2, "insert", 5),
        *((3, "insert", number) for number in (0, 2)),
    ]
    assert [row[2] for row in changes(table, start=1, where="v:n::int > 4")] == [5, 5]
    assert dv.read_changes(table, start=3, columns=[]).to_table().num_rows == 2


def test_a_remove_action_without_partition_values_is_an_error(tmp_path):
    table = tmp_path / "t"
    append(table, 0, 1, partition_by=["day"])
    (path, *_) = dv.load_snapshot(table).files["path"].to_pylist()
    commit(table, RemoveFile(path=path, data_change=True))
    with raises_at(MalformedLogError, "has no partitionValues", version=1, file=path):
        dv.read_changes(table, start=1).to_table()


def test_the_command_line_prints_changes(table):
    dv.delete(table, "id = 1")
    arguments = ["changes", str(table), "--start", "2", "-c", "id", "-c", "_change_type", "--json"]
    result = CliRunner().invoke(app, arguments)
    assert json.loads(result.stdout) == {"id": 1, "_change_type": "delete"}
    at = dv.history(table)[0].timestamp.isoformat()
    by_time = CliRunner().invoke(app, [*arguments[:2], "--start", at, "--end", at, *arguments[4:]])
    assert by_time.stdout == result.stdout
