"""Two writers of different rows of one file: both commit, and nothing is lost.

Each expected result is that of the same operations one after the other, on a copy of the table.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.intercepted_store import commit_first
from support.tables import list_files, read_actions, read_by_id, read_log
from support.vectors import deleted_rows, vector_path

import delta_variant as dv
from delta_variant.errors import CommitConflictError
from delta_variant.log.load import load_snapshot
from delta_variant.write.concurrency import ConcurrentRows

pytestmark = pytest.mark.usefixtures("small_files_are_shredded")

Operation = Callable[[Any], object]

FEATURES = {
    "delta.enableDeletionVectors": "true",
    "delta.enableRowTracking": "true",
    "delta.enableChangeDataFeed": "true",
}
ROWS = 100


def rows(*ids: int) -> pa.Table:
    texts = [json.dumps({"n": number}) for number in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "event": pa.array(texts, pa.string())})


def new_table(path: Path, isolation: str = "Serializable", **properties: str) -> Path:
    """Return a table of one file, with the ids from 0 to 99."""
    configuration = {**FEATURES, "delta.isolationLevel": isolation, **properties}
    dv.write_table(path, rows(*range(ROWS)), configuration=configuration, variant_columns=["event"])
    return path


def append(*ids: int) -> Operation:
    return lambda table: dv.write_table(table, rows(*ids), mode="append", variant_columns=["event"])


def delete(where: str) -> Operation:
    return lambda table: dv.delete(table, where)


def update(where: str, value: str = "event:n::bigint + 1000") -> Operation:
    return lambda table: dv.update(table, {"event:n": value}, where)


def merge(*keys: int) -> Operation:
    """Return a merge that updates the rows of some keys, and inserts the other keys."""

    def operation(table: Any) -> None:
        clauses = dv.merge(table, pa.table({"key": pa.array(keys, pa.int64())}), "id = key")
        clauses = clauses.when_matched_update({"event:n": "key + 5000"})
        clauses.when_not_matched_insert({"id": "key", "event:n": "key"}).execute()

    return operation


def insert_new(*keys: int) -> Operation:
    """Return a merge that only inserts the keys that the table does not have."""

    def operation(table: Any) -> None:
        clauses = dv.merge(table, pa.table({"key": pa.array(keys, pa.int64())}), "id = key")
        clauses.when_not_matched_insert({"id": "key", "event:n": "key"}).execute()

    return operation


def delete_others(*keys: int) -> Operation:
    """Return a merge that deletes the rows whose ids are not among the keys."""

    def operation(table: Any) -> None:
        source = pa.table({"key": pa.array(keys, pa.int64())})
        dv.merge(table, source, "id = key").when_not_matched_by_source_delete("id < 3").execute()

    return operation


def restore(version: int) -> Operation:
    return lambda table: dv.restore(table, version)


def in_order(*operations: Operation) -> Operation:
    def operation(table: Any) -> None:
        for each in operations:
            each(table)

    return operation


def run_second(table: Path, operation: Operation, *first: Operation) -> str | None:
    """Run an operation, with others directly before its attempts to commit; return why it failed."""
    try:
        operation(commit_first(table, *(lambda each=each: each(table) for each in first)))
    except CommitConflictError as error:
        return str(error)
    return None


def vector_files(table: Path) -> set[str]:
    """Return the files of vectors that commits of a table refer to."""
    actions = (action for commit in read_log(table) for action in commit)
    paths = (vector_path(action["add"]) for action in actions if "add" in action)
    return {path for path in paths if path is not None}


def assert_sound(table: Path, *, has_changes: bool = True) -> None:
    """Check findings, unknown files, and the changes of each version."""
    assert dv.audit_table(table, data=True).findings == ()
    actions = [action for commit in read_log(table) for action in commit]
    data = {each[kind]["path"] for each in actions for kind in ("add", "cdc") if kind in each}
    assert list_files(table, "*.parquet") == data
    assert list_files(table, "*.bin") == vector_files(table)
    for version in range(1, load_snapshot(table).version + 1) if has_changes else ():
        before, after = (read_by_id(load_snapshot(table, each)) for each in (version - 1, version))
        changes = dv.read_changes(
            table,
            start=version,
            end=version,
            columns={"id": "id", "t": "_change_type", "v": "to_json(event)"},
        ).to_table()
        for change in changes.to_pylist():
            if change["t"] in ("delete", "update_preimage"):
                assert before.pop(change["id"]) == change["v"]
        added = {
            each["id"]: each["v"]
            for each in changes.to_pylist()
            if each["t"].startswith(("ins", "update_post"))
        }
        assert {**before, **added} == after
        assert before.keys().isdisjoint(added)


OTHERS: dict[str, Operation] = {
    "delete": delete("id in (5, 6)"),
    "update": update("id = 5"),
    "merge": merge(5, 200),
    "delete twice": in_order(delete("id = 5"), delete("id = 6")),
}
SECOND: dict[str, Operation] = {
    "delete": delete("id = 7"),
    "delete of many": delete("id % 3 = 1"),
    "update": update("id in (8, 50)"),
    "merge": merge(7, 300),
    "overwrite": lambda table: dv.write_table(
        table, rows(9), mode="overwrite", where="id = 9", variant_columns=["event"]
    ),
    "insert": insert_new(400),
}


@pytest.mark.parametrize("first", OTHERS)
@pytest.mark.parametrize("operation", SECOND)
def test_writers_of_different_rows_of_a_file_both_commit(tmp_path: Path, operation: str, first: str):
    table = new_table(tmp_path / "t")
    in_turn = Path(shutil.copytree(table, tmp_path / "in turn"))
    assert run_second(table, SECOND[operation], OTHERS[first]) is None
    OTHERS[first](in_turn)
    SECOND[operation](in_turn)
    assert read_by_id(table) == read_by_id(in_turn)
    assert_sound(table)


@pytest.mark.parametrize("isolation", ["Serializable", "WriteSerializable"])
@pytest.mark.parametrize(
    ("operation", "first", "reason"),
    [
        (delete("id = 5"), delete("id = 5"), "deleted rows of "),
        (update("id in (5, 8)"), delete("id = 5"), "deleted rows of "),
        (update("event:n::int in (20, 1009)"), update("id = 9"), "added rows "),
        (update("id < 10"), merge(5), "deleted rows of "),
        (merge(5, 6), merge(6, 7), "deleted rows of "),
        (merge(200), merge(200), "added rows "),
        (insert_new(5, 300), delete("id = 5"), "deleted rows of "),
        (delete_others(0, 1), update("id = 50"), "deleted rows of "),
        (delete_others(0, 1), merge(300), "added rows "),
        (delete("id >= 0"), delete("id = 5"), "removed "),
        (update("id < 90"), delete("id = 95"), "removed "),
        (delete("id = 7"), delete("id >= 0"), "removed "),
        (delete("id = 7"), update("id < 90"), "removed "),
        (delete("id = 7"), lambda table: dv.optimize(table, purge=True), "removed "),
    ],
)
def test_a_writer_of_rows_that_another_one_changed_fails_and_leaves_nothing(
    tmp_path: Path, operation: Operation, first: Operation, reason: str, isolation: str
):
    table = new_table(tmp_path / "t", isolation)
    delete("id = 99")(table)
    alone = Path(shutil.copytree(table, tmp_path / "alone"))
    found = run_second(table, operation, first)
    assert found is not None
    assert f"concurrent version 2 {reason}" in found
    first(alone)
    assert read_by_id(table) == read_by_id(alone)
    assert_sound(table)


def test_added_rows_conflict_only_if_the_predicate_selects_one_of_them(tmp_path: Path):
    """The bounds of the new file, 0 and 200, contain 7, but no row of it does."""
    table = new_table(tmp_path / "t")
    delete("id < 3")(table)
    assert run_second(table, update("id = 7"), append(0, 200)) is None
    assert read_by_id(table, "event:n::int")[7] == 1007
    assert "added rows" in str(run_second(table, update("id = 7"), append(1, 7, 201)))


def test_a_merge_may_read_a_column_that_it_adds(tmp_path: Path):
    table = new_table(tmp_path / "t")

    def operation(store: Any) -> None:
        merge = dv.merge(
            store, pa.table({"more": [7], "id": [300]}), "target.more = source.more", schema_mode="merge"
        )
        merge.when_not_matched_insert({"id": "source.id", "more": "source.more"}).execute()

    assert run_second(table, operation, in_order(delete("id = 5"), append(200))) is None
    assert set(read_by_id(table)) == {*range(ROWS), 200, 300} - {5}
    assert dv.audit_table(table, data=True).findings == ()


def test_a_delete_and_an_update_read_no_row_that_others_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    table = new_table(tmp_path / "t")
    opened: list[str] = []
    monkeypatch.setattr(ConcurrentRows, "_reads", lambda *_: opened.append("file"))
    assert run_second(table, delete("id = 7"), delete("id = 5")) is None
    assert run_second(table, update("id = 8"), delete("id = 6")) is None
    assert opened == []
    assert run_second(table, merge(9), delete("id = 10")) is None
    assert opened == ["file"]


def test_a_restore_that_returns_rows_of_the_file_conflicts(tmp_path: Path):
    table = new_table(tmp_path / "t")
    delete("id = 5")(table)
    reason = run_second(table, delete("id = 7"), restore(0))
    assert reason is not None
    assert "version 2 returned deleted rows of " in reason
    assert set(read_by_id(table)) == set(range(ROWS))


def test_a_writer_that_loses_several_races_leaves_the_vectors_of_its_last_attempt(tmp_path: Path):
    table = new_table(tmp_path / "t")
    others = [delete(f"id = {number}") for number in range(4)]
    assert run_second(table, update("id in (50, 60)"), *others) is None
    found = read_by_id(table, "event:n::int")
    assert found == {n: n + 1000 if n in (50, 60) else n for n in range(4, ROWS)}
    assert_sound(table)
    assert len(list_files(table, "*.bin")) == 5


def test_a_writer_that_fails_after_it_lost_a_race_leaves_no_vectors(tmp_path: Path):
    table = new_table(tmp_path / "t")
    reason = run_second(table, delete("id in (7, 8)"), delete("id = 1"), delete("id = 8"))
    assert reason is not None
    assert "version 2 deleted rows of " in reason
    assert_sound(table)
    assert len(list_files(table, "*.bin")) == 2


def test_a_file_of_which_both_writers_delete_all_rows_is_removed(tmp_path: Path):
    table = new_table(tmp_path / "t")
    append(500)(table)
    assert run_second(table, delete("id % 2 = 0 and id < 100"), delete("id % 2 = 1")) is None
    assert set(read_by_id(table)) == {500}
    (removed,) = read_actions(table, "remove", 3)
    assert deleted_rows(removed, lambda path: (table / path).read_bytes()) == frozenset(range(1, ROWS, 2))
    assert read_actions(table, "add", 3) == []
    metrics = read_actions(table, "commitInfo", 3)[0]["operationMetrics"]
    assert (metrics["numRemovedFiles"], metrics["numDeletionVectorsAdded"]) == ("1", "0")
    assert_sound(table)


def test_the_action_keeps_what_the_other_writer_committed(tmp_path: Path):
    """A repair commits the file again, with other statistics."""
    table = new_table(tmp_path / "t")

    def repair(table: Any) -> None:
        (add,) = read_actions(table, "add")
        stats = {**json.loads(add["stats"]), "minValues": {"id": -5}}
        tags = {"repaired": "yes"}
        text = json.dumps({"add": {**add, "stats": json.dumps(stats), "tags": tags, "dataChange": False}})
        info = json.dumps({"commitInfo": {"operation": "REPAIR", "inCommitTimestamp": 1 << 42}})
        (Path(table) / "_delta_log" / f"{1:020}.json").write_text(f"{info}\n{text}\n")

    assert run_second(table, delete("id = 7"), repair, delete("id = 8")) is None
    (add,) = read_actions(table, "add", 3)
    stats = json.loads(add["stats"])
    assert (stats["minValues"], stats["numRecords"], stats["tightBounds"]) == ({"id": -5}, ROWS, False)
    assert (add["tags"], add["baseRowId"], add["defaultRowCommitVersion"]) == ({"repaired": "yes"}, 0, 0)
    assert deleted_rows(add, lambda path: (table / path).read_bytes()) == {7, 8}


@pytest.mark.parametrize("features", [{}, {"delta.enableRowTracking": "false"}])
def test_an_optimization_marks_rows_that_were_deleted_in_the_old_files(
    tmp_path: Path, features: dict[str, str]
):
    table = new_table(tmp_path / "t", **features)
    delete("id in (0, 3, 98)")(table)
    append(*range(200, 230))(table)
    append(*range(300, 310))(table)
    others = [
        in_order(delete("id in (1, 4, 99, 200)"), update("id in (215, 309)")),
        delete("id between 300 and 304"),
    ]
    in_turn = Path(shutil.copytree(table, tmp_path / "in turn"))
    assert run_second(table, dv.optimize, *others) is None
    for each in (*others, dv.optimize):
        each(in_turn)
    assert read_by_id(table) == read_by_id(in_turn)
    (new,) = (add for add in read_actions(table, "add", load_snapshot(table).version))
    ids = pq.read_table(table / new["path"], columns=["id"])["id"].to_pylist()
    assert sorted(ids) == [1, 2, *range(4, 98), 99, *range(200, 230), *range(300, 310)]
    changed = (1, 4, 99, 200, 215, 309, *range(300, 305))
    deleted = deleted_rows(new, lambda path: (table / path).read_bytes())
    assert deleted == {ids.index(number) for number in changed}
    assert_sound(table)


def test_an_optimization_adds_no_file_of_which_all_rows_were_deleted(tmp_path: Path):
    count = 200_000
    table, random = tmp_path / "t", Random(1)
    numbers = pa.table({"id": range(count), "x": [random.random() for _ in range(count)]})
    dv.write_table(table, numbers, configuration=FEATURES)
    delete("id % 10 = 0")(table)
    small = dv.FileOptions(target_file_size=500_000)
    assert run_second(table, lambda store: dv.optimize(store, files=small), delete("id < 140000")) is None
    (add,) = read_actions(table, "add", 3)
    last = pq.read_metadata(table / add["path"]).num_rows
    assert add["deletionVector"]["cardinality"] == 126_000 - (180_000 - last)
    metrics = read_actions(table, "commitInfo", 3)[0]["operationMetrics"]
    assert (metrics["numAddedFiles"], metrics["numAddedBytes"]) == ("1", str(add["size"]))
    assert (metrics["numRemovedFiles"], metrics["numDeletionVectorsAdded"]) == ("1", "1")
    assert sorted(dv.read_table(table, columns=["id"]).to_table()["id"].to_pylist()) == [
        number for number in range(140_000, count) if number % 10
    ]
    assert_sound(table, has_changes=False)


@pytest.mark.parametrize(
    ("operation", "first", "reason"),
    [
        (dv.optimize, lambda table: dv.optimize(table, purge=True), "removed "),
        (dv.optimize, restore(1), "returned deleted rows of "),
        (dv.optimize, update("id < 90"), "removed "),
        (lambda table: dv.optimize(table, sort_by="id"), delete("id = 7"), "removed "),
    ],
)
def test_an_optimization_conflicts_with_other_changes_of_its_files(
    tmp_path: Path, operation: Operation, first: Operation, reason: str
):
    table = new_table(tmp_path / "t")
    append(200)(table)
    delete("id = 5")(table)
    found = run_second(table, operation, first)
    assert found is not None
    assert f"concurrent version 3 {reason}" in found
    assert_sound(table)


@pytest.mark.usefixtures("small_files_are_separated")
def test_an_optimization_that_separates_residual_rows_conflicts_with_a_delete(tmp_path: Path):
    """Residual rows are in other files, so that positions in the new files are not known."""
    table = new_table(tmp_path / "t", **{"delta.enableVariantShredding": "true"})
    odd = pa.table({"id": [200, 201], "event": ['{"n": "text"}', '{"n": 5}']})
    dv.write_table(table, odd, mode="append", variant_columns=["event"], shredding=None)
    found = run_second(table, dv.optimize, delete("id = 7"))
    assert found is not None
    assert "concurrent version 2 removed " in found
    assert_sound(table)
