"""Overwrites, deletes and updates change exactly the matching rows."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st
from support.archives import unpack_spark_table
from support.errors import raises_at
from support.intercepted_store import commit_first
from support.tables import append_events, list_files, read_by_id, read_commit

import delta_variant as dv
from delta_variant.errors import (
    CommitConflictError,
    ExpressionError,
    PredicateViolationError,
    SchemaError,
    UnsupportedFeatureError,
)
from delta_variant.log.listing import commit_file_name
from delta_variant.log.load import load_snapshot
from delta_variant.operations.write import write_table
from delta_variant.write.rewrite import RewriteResult


def read_bytes(table: Path) -> dict[int, dict[str, bytes] | None]:
    rows = dv.read_table(str(table), columns=["id", "event"]).to_table().to_pylist()
    return {row["id"]: row["event"] for row in rows}


def actions(table: Path, version: int) -> dict[str, list[dict[str, Any]]]:
    """Return the actions of a commit by their names."""
    found: dict[str, list[dict[str, Any]]] = {}
    for action in read_commit(table, version):
        ((name, body),) = action.items()
        found.setdefault(name, []).append(body)
    return found


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return a table of three files with three rows each."""
    texts = [
        ['{"n": 0}', '{"n": 1}', '{"n": 2, "s": "x"}'],
        ['{"n": 3}', "null", None],
        ['{"n": 6}', "7", "[8]"],
    ]
    for number, each in enumerate(texts):
        append_events(tmp_path / "t", each, 3 * number)
    return tmp_path / "t"


ALL = {
    0: '{"n":0}',
    1: '{"n":1}',
    2: '{"n":2,"s":"x"}',
    3: '{"n":3}',
    4: "null",
    5: None,
    6: '{"n":6}',
    7: "7",
    8: "[8]",
}


def test_delete_takes_the_rows_that_match_and_rewrites_only_their_files(table: Path):
    before = load_snapshot(table).files["path"].to_pylist()
    result = dv.delete(str(table), "event:n::bigint = 1")
    assert (result.version, result.rows_deleted, result.rows_copied, result.files_removed) == (3, 1, 2, 1)
    assert read_by_id(table) == {key: text for key, text in ALL.items() if key != 1}
    after = load_snapshot(table).files["path"].to_pylist()
    assert set(before[1:]) < set(after)
    assert [file.rows for file in result.files] == [2]


def test_delete_removes_a_file_of_matching_rows_alone_without_a_new_one(table: Path):
    result = dv.delete(str(table), "id < 3")
    assert (result.rows_deleted, result.rows_copied, result.files_removed, result.files) == (3, 0, 1, ())
    assert set(read_by_id(table)) == set(range(3, 9))


def test_delete_of_nothing_commits_nothing(table: Path):
    before = list_files(table, "*.parquet")
    assert dv.delete(str(table), "event:n::bigint = 100") == RewriteResult(None)
    assert load_snapshot(table).version == 2
    assert list_files(table, "*.parquet") == before


def test_delete_without_a_condition_empties_the_table_and_reads_nothing(table: Path):
    for path in table.glob("*.parquet"):
        path.unlink()
    result = dv.delete_all(str(table))
    assert (result.rows_deleted, result.files_removed) == (9, 3)
    assert load_snapshot(table).num_files == 0


def test_the_log_says_of_a_removed_file_all_that_it_said_of_the_file(table: Path):
    (added,) = actions(table, 0)["add"]
    dv.delete(str(table), "id = 0")
    found = actions(table, 3)
    (removed,), (info,) = found["remove"], found["commitInfo"]
    assert removed.pop("deletionTimestamp") <= info["timestamp"]
    assert removed == {
        "path": added["path"],
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": {},
        "size": added["size"],
        "stats": added["stats"],
    }
    assert info["operation"] == "DELETE"
    assert info["operationParameters"] == {"predicate": '["id = 0"]'}
    assert (info["readVersion"], info["isBlindAppend"]) == (2, False)
    assert info["operationMetrics"] == {
        "numRemovedFiles": "1",
        "numAddedFiles": "1",
        "numAddedBytes": str(found["add"][0]["size"]),
        "numAddedChangeFiles": "0",
        "numDeletedRows": "1",
        "numCopiedRows": "2",
    }
    assert json.loads(found["add"][0]["stats"])["numRecords"] == 2


@pytest.mark.usefixtures("small_files_are_shredded")
def test_a_rewritten_file_has_statistics_of_its_rows(table: Path):
    dv.delete(str(table), "id = 2")
    (added,) = actions(table, 3)["add"]
    stats = json.loads(added["stats"])
    assert (stats["numRecords"], stats["minValues"]["id"], stats["maxValues"]["id"]) == (2, 0, 1)
    assert dv.read_table(str(table), where="event:n::bigint = 2").explain().files_by_variant_bounds == 3


@pytest.mark.parametrize("shredding", ["infer", None])
def test_copied_variants_keep_their_bytes(tmp_path: Path, shredding: Any):
    texts = [
        '{"a": 1}',
        '{"a": 300, "z": [1, 2.50, {"b": null}]}',
        '{"a": "x", "q": {"r": 1}}',
        "1.5",
        None,
        "[]",
    ]
    append_events(tmp_path / "t", texts, shredding=shredding)
    before = read_bytes(tmp_path / "t")
    dv.delete(str(tmp_path / "t"), "id = 0")
    assert read_bytes(tmp_path / "t") == {key: value for key, value in before.items() if key != 0}


def test_shredded_columns_of_copied_variants_are_unchanged(tmp_path: Path):
    texts = ['{"a": 1}', '{"a": 2.50}', '{"a": "x", "b": [1]}', None, "null", '{"a": 3, "b": [2, "y"]}']
    append_events(tmp_path / "t", texts * 2)
    (name,) = list_files(tmp_path / "t", "*.parquet")
    before = pq.read_table(tmp_path / "t" / name)
    dv.delete(str(tmp_path / "t"), "id in (0, 7)")
    dv.update(str(tmp_path / "t"), {"id": "id + 100"}, "id = 1")
    (path,) = dv.load_snapshot(str(tmp_path / "t")).files["path"].to_pylist()
    after = pq.read_table(tmp_path / "t" / path)
    staying = [row for row in range(12) if row not in (0, 7)]
    assert after["event"].to_pylist() == before["event"].take(staying).to_pylist()
    assert after.schema.field("event").type == before.schema.field("event").type
    assert dv.audit_table(str(tmp_path / "t"), data=True).findings == ()


@pytest.mark.parametrize("name", ["c_stats_ga", "c_both_preview", "d_cm_id", "d_dv"])
def test_copied_rows_of_files_that_spark_shredded_are_unchanged(tmp_path: Path, corpora: Path, name: str):
    table = str(unpack_spark_table(corpora, name, tmp_path))
    columns = {"id": "id", "text": "to_json(v)"}
    kept = dv.read_table(table, columns=columns, where="id % 2 = 0").to_table()
    # Rows are copied, and not marked by a vector.
    if name == "d_dv":
        dv.set_properties(table, {"delta.enableDeletionVectors": "false"})
    assert dv.delete(table, "id % 2 = 1").rows_copied > 0
    left = dv.read_table(table, columns=columns).to_table()
    assert sorted(left.to_pylist(), key=str) == sorted(kept.to_pylist(), key=str)
    assert not [each for each in dv.audit_table(table, data=True).findings if each.severity == "error"]


@pytest.mark.usefixtures("small_files_are_shredded")
def test_a_rewritten_file_keeps_its_shredding(table: Path):
    dv.delete(str(table), "id = 1")
    (added,) = actions(table, 3)["add"]
    group = pq.read_schema(table / added["path"]).field("event").type
    assert {part.name for part in group.field("typed_value").type} == {"n", "s"}


def test_a_row_for_which_the_predicate_is_null_remains(table: Path):
    dv.delete(str(table), "not (try_variant_get(event, '$.n', 'bigint') = 1)")
    assert set(read_by_id(table)) == {1, 4, 5, 7, 8}


def test_delete_by_partition_does_not_read_files(tmp_path: Path):
    rows = pa.table({"id": [1, 2, 3, 4], "day": ["a", "a", "b", None]})
    dv.write_table(str(tmp_path / "t"), rows, partition_by=["day"])
    for path in (tmp_path / "t").rglob("*.parquet"):
        path.write_bytes(b"unreadable")
    result = dv.delete(str(tmp_path / "t"), "day = 'a'")
    assert (result.rows_deleted, result.files_removed) == (2, 1)
    assert dv.delete(str(tmp_path / "t"), "day is null").rows_deleted == 1
    (left,) = load_snapshot(tmp_path / "t").files["partition_values"].to_pylist()
    assert left == [("day", "b")]


def test_a_path_is_removed_as_the_log_has_it(tmp_path: Path):
    """Spark compares encoded paths and does not encode non-ASCII letters."""
    table = tmp_path / "t"
    dv.write_table(str(table), pa.table({"id": [1, 2], "city": ["Zürich", "Z"]}), partition_by=["city"])
    commit = table / commit_file_name(0)
    text = commit.read_text("utf-8")
    assert "%25C3%25BC" in text
    for path in list(table.rglob("*.parquet")):
        if "%C3%BC" in path.parent.name:
            path.parent.rename(table / "city=Zürich")
    commit.write_text(text.replace("city=Z%25C3%25BCrich", "city=Zürich"), "utf-8")
    assert sorted(dv.read_table(str(table)).to_table()["id"].to_pylist()) == [1, 2]
    dv.delete(str(table), "city = 'Zürich'")
    (removed,) = actions(table, 1)["remove"]
    assert removed["path"].startswith("city=Zürich/")
    assert dv.read_table(str(table)).to_table()["id"].to_pylist() == [2]


def test_a_checkpoint_keeps_how_paths_are_spelled(table: Path):
    commit = table / commit_file_name(2)
    commit.write_text(commit.read_text("utf-8").replace("part-", "part%2D"), "utf-8")
    DeltaTable(table).create_checkpoint()
    for version in range(3):
        (table / commit_file_name(version)).unlink()
    checkpoint = table / "_delta_log" / f"{2:020}.checkpoint.parquet"
    spelled = {add["path"] for add in pq.read_table(checkpoint)["add"].to_pylist() if add}
    dv.delete_all(str(table))
    assert {remove["path"] for remove in actions(table, 3)["remove"]} == spelled


def test_a_table_that_does_not_allow_a_delete_is_unchanged(tmp_path: Path):
    settings = {"delta.appendOnly": "true"}
    dv.write_table(str(tmp_path / "t"), pa.table({"id": [1, 2]}), configuration=settings)
    before = list_files(tmp_path / "t", "*.parquet")
    with pytest.raises(UnsupportedFeatureError, match=r"delta\.appendOnly=true"):
        dv.delete(str(tmp_path / "t"), "id = 1")
    assert list_files(tmp_path / "t", "*.parquet") == before


def test_a_condition_that_is_not_understood_is_an_error(table: Path):
    with raises_at(ExpressionError, column="nothing"):
        dv.delete(str(table), "nothing = 1")


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_columns_of_any_mapping_keep_their_values(tmp_path: Path, mode: str):
    settings = {"delta.columnMapping.mode": mode}
    append_events(tmp_path / "t", ['{"n": 1}', '{"n": 2}', '{"n": "x"}'], configuration=settings)
    before = read_bytes(tmp_path / "t")
    dv.delete(str(tmp_path / "t"), "event:n::string = '2'")
    assert read_bytes(tmp_path / "t") == {0: before[0], 2: before[2]}


def test_in_commit_timestamps_and_row_ids_go_on(tmp_path: Path):
    settings = {"delta.enableInCommitTimestamps": "true"}
    append_events(tmp_path / "t", ['{"n": 1}', '{"n": 2}'], configuration=settings)
    dv.delete(str(tmp_path / "t"), "id = 0")
    first, second = (actions(tmp_path / "t", version)["commitInfo"][0] for version in (0, 1))
    assert second["inCommitTimestamp"] > first["inCommitTimestamp"]


CONDITIONS = st.recursive(
    st.sampled_from(
        [
            "event:n::bigint > 2",
            "event:n::bigint = id",
            "event:n::double <> 3",
            "event:s::string = 'x'",
            "event:n is null",
            "event:s::string like 'x%'",
            "id % 2 = 0",
            "id between 2 and 5",
            "day = 'a'",
            "day is null",
            "null",
            "true",
        ]
    ),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]} and {pair[1]})"),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]} or {pair[1]})"),
        inner.map(lambda one: f"(not {one})"),
    ),
    max_leaves=4,
)
VALUES = st.builds(
    lambda n, s: json.dumps({key: value for key, value in (("n", n), ("s", s)) if value != "absent"}),
    st.one_of(st.integers(-3, 8), st.none(), st.just("absent"), st.just(2.5)),
    st.sampled_from(["x", "xy", "", None, "absent"]),
)


@given(
    files=st.lists(st.lists(st.one_of(st.none(), VALUES), min_size=1, max_size=5), min_size=1, max_size=3),
    days=st.lists(st.sampled_from(["a", "b", None]), min_size=15, max_size=15),
    partitioned=st.booleans(),
    where=CONDITIONS,
)
def test_delete_leaves_exactly_the_rows_for_which_the_condition_is_not_true(files, days, partitioned, where):
    with TemporaryDirectory() as folder:
        table, start = f"{folder}/t", 0
        for texts in files:
            ids = list(range(start, start + len(texts)))
            rows = pa.table(
                {
                    "id": ids,
                    "event": pa.array(texts, pa.string()),
                    "day": pa.array(days[start : start + len(texts)], pa.string()),
                }
            )
            partition_by = ["day"] if partitioned and not start else None
            dv.write_table(table, rows, mode="append", variant_columns=["event"], partition_by=partition_by)
            start += len(texts)
        columns = {"id": "id", "day": "day", "event": "event"}
        before = {row["id"]: row for row in dv.read_table(table, columns=columns).to_table().to_pylist()}
        deleted = set(dv.read_table(table, columns=["id"], where=where).to_table()["id"].to_pylist())
        result = dv.delete(table, where)
        left = {row["id"]: row for row in dv.read_table(table, columns=columns).to_table().to_pylist()}
        assert left == {key: row for key, row in before.items() if key not in deleted}
        assert result.rows_deleted == len(deleted)
        known = DeltaTable(table)
        assert known.version() == load_snapshot(table).version
        described = pa.table(known.get_add_actions()).to_pylist()
        assert sum(each["num_records"] for each in described) == len(left)


# --- overwrite


def day_table(table: Path, **options: Any) -> None:
    rows = pa.table({"id": [1, 2, 3, 4], "day": ["a", "a", "b", None]})
    dv.write_table(str(table), rows, **options)


def days(table: Path) -> list[tuple[int, str | None]]:
    rows = dv.read_table(str(table), columns=["id", "day"]).to_table().to_pylist()
    return sorted((row["id"], row["day"]) for row in rows)


def test_overwrite_replaces_all_rows_and_keeps_id_and_properties(table: Path):
    before = load_snapshot(table)
    rows = pa.table({"id": [100], "event": pa.array(['{"m": 1}'], pa.string())})
    result = write_table(str(table), rows, mode="overwrite", variant_columns=["event"])
    assert (result.version, result.rows, result.rows_deleted, result.rows_copied) == (3, 1, 9, 0)
    assert read_by_id(table) == {100: '{"m":1}'}
    assert load_snapshot(table).metadata == before.metadata
    found = actions(table, 3)
    assert len(found["remove"]) == 3
    assert found["commitInfo"][0]["operationParameters"] == {"mode": "Overwrite", "partitionBy": "[]"}
    assert dv.read_table(str(table), version=2).to_table().num_rows == 9


def test_overwrite_creates_a_table_that_is_not_there(tmp_path: Path):
    assert write_table(tmp_path / "t", pa.table({"id": [1]}), mode="overwrite").version == 0


def test_overwrite_with_no_rows_empties_the_table(tmp_path: Path):
    day_table(tmp_path / "t")
    none = pa.table({"id": pa.array([], pa.int64()), "day": pa.array([], pa.string())})
    assert write_table(tmp_path / "t", none, mode="overwrite").rows_deleted == 4
    assert days(tmp_path / "t") == []


def test_overwrite_may_read_the_table_that_it_replaces(table: Path):
    write_table(str(table), dv.read_table(str(table), where="id < 2"), mode="overwrite")
    assert read_by_id(table) == {0: '{"n":0}', 1: '{"n":1}'}


@pytest.mark.parametrize("partition_by", [None, ["day"]])
def test_overwrite_by_a_predicate_replaces_the_rows_that_match(tmp_path: Path, partition_by):
    day_table(tmp_path / "t", partition_by=partition_by)
    rows = pa.table({"id": [9], "day": ["a"]})
    result = write_table(tmp_path / "t", rows, mode="overwrite", where="day = 'a'")
    assert days(tmp_path / "t") == [(3, "b"), (4, None), (9, "a")]
    assert (result.rows, result.rows_deleted, result.rows_copied) == (1, 2, 0 if partition_by else 2)
    assert actions(tmp_path / "t", 1)["commitInfo"][0]["operationParameters"]["predicate"] == "day = 'a'"


def test_overwrite_of_partitions_does_not_read_files(tmp_path: Path):
    day_table(tmp_path / "t", partition_by=["day"])
    for path in (tmp_path / "t").rglob("*.parquet"):
        path.write_bytes(b"unreadable")
    rows = pa.table({"id": [9], "day": ["a"]})
    assert write_table(tmp_path / "t", rows, mode="overwrite", where="day = 'a'").rows_deleted == 2


def test_overwrite_by_a_variant_path(table: Path):
    texts = pa.table({"id": [50, 51], "event": pa.array(['{"n": 7}', '{"n": 6}'], pa.string())})
    where = "try_variant_get(event, '$.n', 'bigint') >= 3"
    write_table(str(table), texts, mode="overwrite", where=where, variant_columns=["event"])
    expected = {key: text for key, text in ALL.items() if key not in (3, 6)}
    assert read_by_id(table) == {**expected, 50: '{"n":7}', 51: '{"n":6}'}


@pytest.mark.parametrize("text", ['{"n": 1}', '{"m": 5}', None])
def test_an_overwrite_rejects_a_new_row_that_does_not_match(table: Path, text: str | None):
    before = list_files(table, "*.parquet")
    rows = pa.table({"id": [50, 51], "event": pa.array(['{"n": 7}', text], pa.string())})
    with raises_at(PredicateViolationError, "the row does not match the predicate", row=1):
        write_table(
            str(table), rows, mode="overwrite", where="event:n::bigint >= 3", variant_columns=["event"]
        )
    assert list_files(table, "*.parquet") == before
    assert read_by_id(table) == ALL


def test_overwrite_by_a_predicate_leaves_rejected_rows_out(table: Path, tmp_path: Path):
    rows = pa.table({"id": [50, 51], "event": pa.array(['{"n": 7}', "{"], pa.string())})
    result = write_table(
        str(table),
        rows,
        mode="overwrite",
        where="try_variant_get(event, '$.n', 'bigint') >= 3",
        variant_columns=["event"],
        json=dv.JsonOptions(on_invalid="reject", rejects=tmp_path / "rejects"),
    )
    assert (result.rows, result.invalid, result.rows_deleted) == (1, 1, 2)


def test_overwrite_of_the_schema_keeps_the_id_and_upgrades_the_protocol(tmp_path: Path):
    day_table(tmp_path / "t", partition_by=["day"])
    before = load_snapshot(tmp_path / "t")
    rows = pa.table({"id": ["x"], "event": pa.array(["{}"], pa.string())})
    options: dict[str, Any] = {"mode": "overwrite", "schema_mode": "overwrite", "variant_columns": ["event"]}
    with raises_at(SchemaError, "cannot partition by", column="day"):
        write_table(tmp_path / "t", rows, **options)
    write_table(tmp_path / "t", rows, partition_by=[], **options)
    after = load_snapshot(tmp_path / "t")
    assert (after.metadata.id, after.partition_columns) == (before.metadata.id, ())
    assert [(field.name, field.type.name) for field in after.schema.fields] == [
        ("id", "string"),
        ("event", "variant"),
    ]
    assert set(after.protocol.reader_features or ()) == {"variantType"}
    assert dv.read_table(str(tmp_path / "t"), version=0).to_table().num_rows == 4
    assert dv.read_table(str(tmp_path / "t")).to_table()["id"].to_pylist() == ["x"]


def test_overwrite_of_a_mapped_schema_gives_new_columns_new_ids(tmp_path: Path):
    rows = pa.table({"id": [1], "x": [1]})
    dv.write_table(str(tmp_path / "t"), rows, configuration={"delta.columnMapping.mode": "name"})
    before = load_snapshot(tmp_path / "t")
    new = pa.table({"id": [2], "x": ["two"]})
    write_table(tmp_path / "t", new, mode="overwrite", schema_mode="overwrite")
    after = load_snapshot(tmp_path / "t")
    assert after.schema.fields[0] == before.schema.fields[0]
    assert after.schema.fields[1].metadata["delta.columnMapping.id"] == 3
    assert after.properties["delta.columnMapping.maxColumnId"] == "3"
    assert dv.read_table(str(tmp_path / "t")).to_table().to_pylist() == [{"id": 2, "x": "two"}]


def test_an_overwrite_merges_columns_into_remaining_rows(tmp_path: Path):
    day_table(tmp_path / "t")
    rows = pa.table({"id": [9], "day": ["a"], "extra": [1.5]})
    write_table(tmp_path / "t", rows, mode="overwrite", schema_mode="merge", where="day = 'a'")
    found = dv.read_table(str(tmp_path / "t")).to_table().to_pylist()
    assert sorted((row["id"], row["extra"]) for row in found) == [(3, None), (4, None), (9, 1.5)]


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "append", "where": "id = 1"},
        {"mode": "append", "schema_mode": "overwrite"},
        {"mode": "overwrite", "schema_mode": "overwrite", "where": "id = 1"},
    ],
)
def test_contradictory_options_are_rejected(tmp_path: Path, options: dict[str, Any]):
    day_table(tmp_path / "t")
    with pytest.raises(ValueError, match="overwrite"):
        write_table(tmp_path / "t", pa.table({"id": [1]}), **options)


# --- concurrency


def append_n(table: Path, n: int) -> Any:
    return lambda: append_events(table, [json.dumps({"n": n})], 100)


@pytest.mark.usefixtures("small_files_are_shredded")
def test_a_delete_commits_after_an_append_without_matching_rows(table: Path):
    result = dv.delete(commit_first(table, append_n(table, 50)), "event:n::bigint = 1")
    assert result.version == 4
    assert set(read_by_id(table)) == {*ALL, 100} - {1}


def test_a_delete_conflicts_with_an_append_that_may_have_matching_rows(table: Path):
    with raises_at(CommitConflictError, "added rows", version=3):
        dv.delete(commit_first(table, append_n(table, 1)), "event:n::bigint = 1")
    assert set(read_by_id(table)) == {*ALL, 100}
    assert len(list_files(table, "*.parquet")) == 4


def test_a_delete_ignores_appends_where_only_writes_are_serializable(tmp_path: Path):
    settings = {"delta.isolationLevel": "WriteSerializable"}
    append_events(tmp_path / "t", ['{"n": 1}', '{"n": 2}'], configuration=settings)
    store = commit_first(tmp_path / "t", append_n(tmp_path / "t", 1))
    assert dv.delete(store, "event:n::bigint = 1").version == 2
    assert set(read_by_id(tmp_path / "t")) == {1, 100}


def test_two_deletes_of_one_file_conflict_and_those_of_two_do_not(table: Path):
    with pytest.raises(CommitConflictError, match=r"removed part-.* which this operation read"):
        dv.delete(commit_first(table, lambda: dv.delete(table, "id = 0")), "id = 1")
    assert dv.delete(commit_first(table, lambda: dv.delete(table, "id = 1")), "id = 8").version == 5
    assert set(read_by_id(table)) == set(ALL) - {0, 1, 8}


def test_an_append_commits_after_a_delete_and_an_overwrite(table: Path):
    append_events(commit_first(table, lambda: dv.delete(table, "id = 0")), ["1"], 100)
    assert set(read_by_id(table)) == {*ALL, 100} - {0}


def test_an_overwrite_conflicts_with_any_row_that_it_would_not_replace(table: Path):
    rows = pa.table({"id": [9], "event": pa.array(["1"], pa.string())})
    options: dict[str, Any] = {"mode": "overwrite", "variant_columns": ["event"]}
    before = list_files(table, "*.parquet")
    with pytest.raises(CommitConflictError, match="added rows"):
        write_table(commit_first(table, append_n(table, 1)), rows, **options)
    assert len(list_files(table, "*.parquet")) == len(before) + 1
    with pytest.raises(CommitConflictError, match="removed"):
        write_table(commit_first(table, lambda: dv.delete(table, "id = 0")), rows, **options)


def test_overwrites_of_two_partitions_do_not_conflict(tmp_path: Path):
    table = tmp_path / "t"
    day_table(table, partition_by=["day"])

    def replace(day: str, number: int, location: Any = table) -> Any:
        rows = pa.table({"id": [number], "day": [day]})
        return write_table(location, rows, mode="overwrite", where=f"day = '{day}'")

    assert replace("b", 20, commit_first(table, lambda: replace("a", 10))).version == 2
    assert days(table) == [(4, None), (10, "a"), (20, "b")]
    with pytest.raises(CommitConflictError, match="removed"):
        replace("a", 12, commit_first(table, lambda: replace("a", 11)))


def test_a_change_of_metadata_is_a_conflict(table: Path):
    rows = pa.table({"id": [9], "event": pa.array(["1"], pa.string()), "more": [1]})
    options: dict[str, Any] = {"mode": "append", "schema_mode": "merge", "variant_columns": ["event"]}
    with pytest.raises(CommitConflictError, match="changed the metadata"):
        dv.delete(commit_first(table, lambda: dv.write_table(table, rows, **options)), "id = 0")


def sizes(result: RewriteResult) -> list[int]:
    """Return the numbers of rows of the new files, in ascending order."""
    return sorted(file.rows for file in result.files)


def test_files_below_a_hundredth_of_the_target_size_share_a_new_one(table: Path):
    smallest = min(load_snapshot(table).files["size"].to_pylist())
    every = "id % 3 = 0"
    limit = dv.FileOptions(target_file_size=100 * smallest)
    large = dv.update(str(table), {"event:new": "1"}, every, files=limit)
    assert (large.files_removed, sizes(large)) == (3, [3, 3, 3])
    small = dv.update(str(table), {"event:new": "2"}, every)
    assert (small.files_removed, sizes(small)) == (3, [9])
    again = dv.update(str(table), {"event:new": "3"}, "id = 0")
    assert (again.files_removed, sizes(again)) == (1, [9])
    assert read_by_id(table)[2] == ALL[2]


@pytest.mark.usefixtures("small_files_are_shredded")
def test_files_with_other_columns_do_not_share_a_new_one(tmp_path: Path):
    types = [pa.int64(), pa.string(), pa.bool_(), pa.float64(), pa.date32(), pa.binary()]
    for number, arrow_type in enumerate([*types, *types]):
        schema = dv.ShreddingSchema.of({"x": arrow_type})
        append_events(tmp_path / "t", ['{"y": 1}', '{"y": 2}'], 2 * number, shredding=schema)
    before = read_by_id(tmp_path / "t")
    result = dv.delete(str(tmp_path / "t"), "id % 2 = 0")
    # Of six kinds four share files.
    assert (result.files_removed, sizes(result)) == (12, [1] * 4 + [2] * 4)
    assert read_by_id(tmp_path / "t") == {number: before[number] for number in range(1, 24, 2)}
