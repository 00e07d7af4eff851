"""Updates and merges by deletion vectors: what they write, and that they leave the rows that a model has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from operations.test_marked_deletes import VECTORS, commit_of, data_files, ids, table_of
from support.vectors import deleted_rows
from write.test_row_tracking import tracked

import delta_variant as dv
from delta_variant.errors import ConstraintViolationError

SHREDDED = {"delta.enableVariantShredding": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
Rows = dict[int, tuple[int, str]]


def rows_of(table: dv.Table, **options: Any) -> Rows:
    columns = {"id": "id", "n": "event:n::int", "text": "text"}
    found = dv.read_table(table, columns=columns, **options).to_table().to_pylist()
    rows = {row["id"]: (row["n"], row["text"]) for row in found}
    assert len(rows) == len(found)
    return rows


def data(rows: Rows) -> pa.Table:
    events = pa.array([json.dumps({"n": n}) for n, _ in rows.values()], pa.json_())
    return pa.table(
        {"id": pa.array(rows, pa.int64()), "event": events, "text": [t for _, t in rows.values()]}
    )


def test_an_update_writes_the_changed_rows_alone(tmp_path: Path):
    table = table_of(tmp_path / "t", 4000, files=4)
    before = data_files(table)
    result = table.update({"event:n": "-1"}, where="event:n::int = 3")
    assert (result.rows_updated, result.rows_copied, result.files_removed, len(result.files)) == (
        400,
        0,
        0,
        1,
    )
    (new,) = data_files(table) - before
    assert pq.read_metadata(tmp_path / "t" / new).num_rows == 400
    commit = commit_of(table, 4)
    marked = [add for add in commit["add"] if add["path"] != new]
    assert {add["path"] for add in marked} == before == {remove["path"] for remove in commit["remove"]}
    for add in marked:
        rows = deleted_rows(add, lambda path: (tmp_path / "t" / path).read_bytes())
        assert rows == {row for row in range(1000) if row % 10 == 3}
        assert json.loads(add["stats"])["tightBounds"] is False
    assert ids(table) == list(range(4000))
    assert ids(table, where="event:n::int = -1") == list(range(3, 4000, 10))
    assert table.audit(data=True).findings == ()


def test_new_files_are_shredded_like_those_of_the_rows(tmp_path: Path):
    table = dv.Table(tmp_path / "t")
    rows = {number: (number, "a") for number in range(300)}
    schema = dv.infer_shredding_schema(['{"n": 1}'])
    table.append(data(rows), shredding=schema, configuration={**VECTORS, **SHREDDED})
    (old,) = data_files(table)
    table.update({"text": "'b'"}, where="id % 100 = 0")
    (new,) = data_files(table) - {old}
    schemas = [pq.ParquetFile(tmp_path / "t" / path).schema for path in (old, new)]
    assert "typed_value" in str(schemas[0])
    assert schemas[0].equals(schemas[1])


def test_rows_of_files_that_are_shredded_differently_are_in_one_file(tmp_path: Path):
    table = dv.Table(tmp_path / "t")
    texts = ['{"n": 1}', '{"s": "x", "n": 1.5}', '{"n": [1, 2]}', "7"]
    for number, text in enumerate(texts):
        rows = pa.table(
            {"id": range(number * 100, number * 100 + 100), "event": pa.array([text] * 100, pa.json_())}
        )
        shredding = None if number == 2 else dv.infer_shredding_schema([text])
        table.append(rows, shredding=shredding, configuration=None if number else {**VECTORS, **SHREDDED})
    before = events_of(table)
    table.update({"id": "id + 1000"}, where="id % 10 = 0")
    assert len(vectors_of(table)) == 4
    assert events_of(table) == {row + 1000 * (row % 10 == 0): event for row, event in before.items()}
    assert table.audit(data=True).findings == ()


def test_a_merge_marks_rows_and_writes_new_ones(tmp_path: Path):
    table = table_of(tmp_path / "t", 3000, files=3)
    before = data_files(table)
    source = pa.table({"id": [1, 2, 1500, 5000], "delete": [True, False, False, False]})
    merge = table.merge(source, "target.id = source.id")
    merge = merge.when_matched_delete("source.delete").when_matched_update({"event:n": "-1"})
    merge = merge.when_not_matched_by_source_update({"event:n": "-2"}, "target.id = 2999")
    result = merge.when_not_matched_insert({"id": "source.id"}).execute()
    assert (result.rows_deleted, result.rows_updated, result.rows_inserted) == (1, 3, 1)
    assert (result.rows_copied, result.files_removed) == (0, 0)
    assert before < data_files(table)
    assert ids(table) == [0, *range(2, 3000), 5000]
    assert ids(table, where="event:n::int = -1") == [2, 1500]
    assert ids(table, where="event:n::int = -2") == [2999]
    assert table.audit(data=True).findings == ()


def test_a_file_of_which_most_rows_change_is_rewritten(tmp_path: Path):
    table = table_of(tmp_path / "t", 2000, files=2, **FEED)
    result = table.update({"event:n": "-1"}, where="id < 501 or id = 1500")
    assert (result.rows_updated, result.rows_copied, result.files_removed) == (502, 499, 1)
    assert sorted(row["cardinality"] for row in vectors_of(table)) == [1]
    changes = table.changes(start=2).to_table()["_change_type"].to_pylist()
    assert sorted(changes) == ["update_postimage"] * 502 + ["update_preimage"] * 502
    assert ids(table, where="event:n::int = -1") == [*range(501), 1500]


def vectors_of(table: dv.Table) -> list[dict[str, Any]]:
    return [row for row in table.snapshot().files["deletion_vector"].to_pylist() if row is not None]


def test_a_row_that_violates_a_constraint_leaves_no_file(tmp_path: Path):
    table = table_of(tmp_path / "t", 3000, files=3, **FEED)
    table.add_constraint("small", "id < 5000")
    before = {file.name for file in (tmp_path / "t").rglob("*") if file.is_file()}
    with pytest.raises(ConstraintViolationError):
        table.update({"id": "id + 2100"}, where="id % 100 = 0")
    assert {file.name for file in (tmp_path / "t").rglob("*") if file.is_file()} == before


def test_values_that_an_update_does_not_set_keep_their_bytes(tmp_path: Path):
    texts = [
        '{"n": 1}',
        '{"n": 1.0}',
        '{"n": 1e0, "m": [1.50, "x"]}',
        '{"n": "1"}',
        "null",
        '{"m": {"k": 300}}',
    ]
    table = dv.Table(tmp_path / "t")
    events = pa.array(texts * 50, pa.json_())
    table.append(
        pa.table({"id": range(300), "event": events}),
        shredding=dv.infer_shredding_schema(['{"n": 1, "m": [1.5]}']),
        files=dv.FileOptions(numeric="strict", residual_rows="inline"),
        configuration={**VECTORS, **SHREDDED},
    )
    before = events_of(table)
    table.update({"id": "id + 1000"}, where="id % 7 < 3")
    assert len(vectors_of(table)) == 1
    assert events_of(table) == {row + 1000 * (row % 7 < 3): event for row, event in before.items()}


def events_of(table: dv.Table) -> dict[int, dict[str, bytes]]:
    rows = dv.read_table(table).to_table()
    return dict(zip(rows["id"].to_pylist(), rows["event"].to_pylist(), strict=True))


Changes = st.lists(
    st.tuples(st.sampled_from(["update", "merge", "delete"]), st.integers(3, 40), st.integers(0, 39)),
    max_size=5,
)
PROPERTIES: list[dict[str, str]] = [
    {},
    FEED,
    {"delta.enableRowTracking": "true", "delta.columnMapping.mode": "name"},
]


@settings(deadline=None, max_examples=12)
@given(Changes, st.sampled_from(PROPERTIES), st.booleans())
def test_any_changes_leave_the_rows_of_a_model(
    tmp_path_factory: pytest.TempPathFactory,
    changes: list[tuple[str, int, int]],
    properties: dict[str, str],
    is_partitioned: bool,
):
    path = tmp_path_factory.mktemp("t") / "t"
    table, model = dv.Table(path), {number: (number % 10, "ab"[number % 2]) for number in range(300)}
    partitions = ["text"] if is_partitioned else []
    table.append(data(model), partition_by=partitions, configuration={**VECTORS, **properties})
    ids_before = tracked(path) if "delta.enableRowTracking" in properties else {}
    for step, (name, divisor, rest) in enumerate(changes):
        before, chosen = dict(model), [number for number in model if number % divisor == rest]
        if name == "delete":
            table.delete(f"id % {divisor} = {rest}")
            model = {number: row for number, row in model.items() if number not in chosen}
        elif name == "update":
            table.update({"event:n": str(step + 50), "text": "'c'"}, where=f"id % {divisor} = {rest}")
            model |= dict.fromkeys(chosen, (step + 50, "c"))
        else:
            source = {**dict.fromkeys(chosen, (step + 80, "a")), 1000 + step: (0, "b")}
            merge = table.merge(data(source), "target.id = source.id")
            merge.when_matched_update_all().when_not_matched_insert_all().execute()
            model |= source
        assert rows_of(table) == model
        if properties == FEED and model != before:
            check_changes(table, before, model)
    after = tracked(path) if ids_before else {}
    kept = ids_before.keys() & after.keys()
    assert {number: after[number][0] for number in kept} == {n: ids_before[n][0] for n in kept}
    assert len({row_id for row_id, _ in after.values()}) == len(after)
    assert table.audit(data=True).findings == ()


def check_changes(table: dv.Table, before: Rows, after: Rows) -> None:
    found = table.changes(start=table.version).to_table()
    kinds: dict[str, set[int]] = {}
    for number, kind in zip(found["id"].to_pylist(), found["_change_type"].to_pylist(), strict=True):
        kinds.setdefault(kind, set()).add(number)
    updated = kinds.get("update_postimage", set())
    assert kinds.get("update_preimage", set()) == updated
    assert {number for number in before.keys() & after.keys() if before[number] != after[number]} <= updated
    assert kinds.get("delete", set()) == before.keys() - after.keys()
    assert kinds.get("insert", set()) == after.keys() - before.keys()


def test_assigned_values_can_read_assigned_columns(tmp_path: Path):
    table = dv.Table(tmp_path / "t")
    rows = pa.table({"id": range(100), "a": range(100, 200), "b": range(200, 300), "c": ["x"] * 100})
    table.append(rows, configuration=VECTORS)
    table.update({"a": "b", "b": "a", "c": "'y'"}, where="id = 7")
    merge = table.merge(pa.table({"key": [8], "d": [1]}), "target.id = source.key")
    merge.when_matched_update({"a": "target.b + source.d", "b": "source.d", "c": "'z'"}).execute()
    assert len(vectors_of(table)) == 1
    found = dv.read_table(table, where="id in (7, 8)").to_table().sort_by("id").to_pylist()
    assert found == [{"id": 7, "a": 207, "b": 107, "c": "y"}, {"id": 8, "a": 209, "b": 1, "c": "z"}]


def test_auto_compaction_is_a_property_that_one_process_keeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("delta_variant.operations.optimize.auto_compaction.MIN_FILES", 4)
    table = table_of(tmp_path / "t", 1000, **{"delta.autoOptimize.autoCompact": "true"})
    for number in range(3):
        table.update({"event:n": "-1"}, where=f"id % 50 = {number}")
    operations = [entry.operation for entry in table.history()]
    assert operations == ["OPTIMIZE", "UPDATE", "UPDATE", "UPDATE", "WRITE"]
    assert (table.snapshot().num_files, vectors_of(table)) == (1, [])
    assert ids(table, where="event:n::int = -1") == [number for number in range(1000) if number % 50 < 3]


def test_a_condition_can_read_a_column_that_gets_a_constant(tmp_path: Path):
    table = dv.Table(tmp_path / "t")
    rows = pa.table({"id": pa.array(range(10), pa.int64()), "state": ["open"] * 3 + ["done"] * 7})
    table.append(rows, configuration={"delta.enableDeletionVectors": "true"})
    assert table.update({"state": "'done'"}, where="state = 'open' and id < 2").rows_updated == 2
    merge = table.merge(pa.table({"key": [2, 3]}), "id = key")
    merge.when_matched_update({"state": "'paid'", "id": "key"}, "state = 'open'").execute()
    found = dv.read_table(table).to_table().sort_by("id").to_pylist()
    assert found == [{"id": n, "state": "paid" if n == 2 else "done"} for n in range(10)]
