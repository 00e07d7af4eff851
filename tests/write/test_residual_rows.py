"""Residual rows are in files of their own, so that all other files have bounds for all their paths."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.tables import append_events, read_actions, read_by_id, read_ids
from typer.testing import CliRunner

import delta_variant as dv
from delta_variant.cli.app import app
from delta_variant.data_file import writer as file_writer
from delta_variant.data_file.writer import FileSeries
from delta_variant.operations.optimize import layout
from delta_variant.write import router, stored_rows
from delta_variant.write.partitions import PartitionedFiles

TYPED = '{"x": 1, "name": "a"}'
RESIDUAL = '{"x": "1", "name": "a"}'
NEW = '{"x": 1, "name": "a", "new": 1}'
SCHEMA = dv.ShreddingSchema.of({"x": pa.int64(), "name": pa.string()})
TRACKED = {"delta.enableRowTracking": "true"}


pytestmark = pytest.mark.usefixtures("small_files_are_separated", "small_files_are_shredded")


def files(table: str | Path) -> list[tuple[bool, list[int]]]:
    """Return for each file whether it is residual, and the ids of its rows."""
    found = []
    for row in dv.load_snapshot(str(table)).files.select(["path", "tags"]).to_pylist():
        ids = pq.read_table(Path(table) / row["path"], columns=["id"])["id"].to_pylist()
        found.append((dict(row["tags"] or ()) == {"deltaVariant.residualRows": "true"}, ids))
    return sorted(found)


def texts(count: int, *residual: int) -> list[str]:
    return [RESIDUAL if row in residual else TYPED for row in range(count)]


def test_residual_rows_have_a_file_of_their_own(tmp_path: Path):
    rows = [TYPED, RESIDUAL, TYPED, NEW, "7", "null", TYPED, '{"x": null}']
    append_events(tmp_path / "t", rows, shredding=SCHEMA)
    assert files(tmp_path / "t") == [(False, [0, 2, 5, 6, 7]), (True, [1, 3, 4])]
    assert list(read_by_id(tmp_path / "t").values()) == [
        None if text is None else json.dumps(json.loads(text), separators=(",", ":"), sort_keys=True)
        for text in rows
    ]


def test_the_result_of_a_write_names_the_residual_files(tmp_path: Path):
    rows = pa.table({"id": range(9), "event": texts(9, 3)})
    result = dv.write_table(tmp_path / "t", rows, variant_columns=["event"])
    assert [(file.is_residual, file.rows) for file in result.files] == [(False, 8), (True, 1)]
    assert result.rows == 9


def test_inline_keeps_the_order_of_rows_in_one_file(tmp_path: Path):
    append_events(tmp_path / "t", texts(9, 3), files=dv.FileOptions(residual_rows="inline"))
    assert files(tmp_path / "t") == [(False, list(range(9)))]


def test_another_value_of_the_option_is_rejected():
    with pytest.raises(ValueError, match="residual_rows"):
        dv.FileOptions(residual_rows="outline")  # type: ignore[arg-type]


def test_few_residual_rows_follow_the_other_rows_of_a_small_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(file_writer, "MIN_SEPARATED_BYTES", 1 << 20)
    append_events(tmp_path / "t", texts(9, 3, 5))
    assert files(tmp_path / "t") == [(False, [0, 1, 2, 4, 6, 7, 8, 3, 5])]


def test_rows_that_end_before_the_sample_stay_in_order(tmp_path: Path):
    rows = pa.table({"id": range(9), "event": texts(9, 3)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FileSeries, "_begin", _begin_inline(FileSeries._begin))
        dv.write_table(tmp_path / "t", rows, variant_columns=["event"])
    assert files(tmp_path / "t") == [(False, list(range(9)))]


def _begin_inline(begin: Any) -> Any:
    return lambda series, shredding, *, separates: begin(series, shredding, separates=False)


def test_an_explicit_schema_is_that_of_the_residual_rows_too(tmp_path: Path):
    schema = dv.ShreddingSchema.of({"x": pa.int64()})
    append_events(tmp_path / "t", ['{"x": 1}', '{"x": "a"}', '{"x": 3}'], shredding=schema)
    assert files(tmp_path / "t") == [(False, [0, 2]), (True, [1])]
    for path in dv.load_snapshot(str(tmp_path / "t")).files["path"].to_pylist():
        typed = pq.read_schema(tmp_path / "t" / path).field("event").type.field("typed_value").type
        assert typed.field("x").type.field("typed_value").type == pa.int64()


def test_residual_rows_have_a_schema_of_their_own(tmp_path: Path):
    append_events(tmp_path / "t", texts(40, 3, 5, 7))
    by_rows = {}
    for path in dv.load_snapshot(str(tmp_path / "t")).files["path"].to_pylist():
        file = pq.ParquetFile(tmp_path / "t" / path)
        typed = file.schema_arrow.field("event").type.field("typed_value").type
        by_rows[file.metadata.num_rows] = typed.field("x").type.field("typed_value").type
    assert by_rows == {37: pa.int64(), 3: pa.string()}


def test_unshredded_files_have_all_rows(tmp_path: Path):
    append_events(tmp_path / "t", [TYPED, "7", NEW], shredding=None)
    assert files(tmp_path / "t") == [(False, [0, 1, 2])]


def test_each_partition_has_its_residual_rows(tmp_path: Path):
    days = ["ab"[row % 2] for row in range(12)]
    rows = pa.table({"id": range(12), "event": texts(12, 3, 4, 5), "day": days})
    dv.write_table(tmp_path / "t", rows, variant_columns=["event"], partition_by=["day"])
    found = dv.load_snapshot(str(tmp_path / "t")).files.select(["partition_values", "path"]).to_pylist()
    assert files(tmp_path / "t") == [
        (False, [0, 2, 6, 8, 10]),
        (False, [1, 7, 9, 11]),
        (True, [3, 5]),
        (True, [4]),
    ]
    assert all(dict(row["partition_values"])["day"] == row["path"][4] for row in found)


def test_invalid_values_are_reported_once(tmp_path: Path):
    rows = pa.table({"id": range(4), "a": [TYPED, RESIDUAL, TYPED, "{"], "b": [TYPED, "{", TYPED, RESIDUAL]})
    for name, options in {
        "null": dv.JsonOptions(on_invalid="null"),
        "reject": dv.JsonOptions(on_invalid="reject", rejects=tmp_path / "rejects"),
    }.items():
        result = dv.write_table(tmp_path / name, rows, variant_columns=["a", "b"], json=options)
        assert result.invalid == 2
    assert files(tmp_path / "null") == [(False, [0, 2]), (True, [1, 3])]
    assert files(tmp_path / "reject") == [(False, [0, 2])]
    found = dv.read_table(tmp_path / "null", columns={"id": "id", "a": "to_json(a)", "b": "to_json(b)"})
    by_id = {row["id"]: (row["a"], row["b"]) for row in found.to_table().to_pylist()}
    assert by_id[1] == ('{"name":"a","x":"1"}', None)
    assert by_id[3] == (None, '{"name":"a","x":"1"}')


def test_files_without_residual_rows_are_skipped_by_the_path(tmp_path: Path):
    for first in (0, 100, 200):
        rows = [json.dumps({"x": first + row}) for row in range(20)]
        append_events(tmp_path / "t", [*rows, '{"x": "odd"}'], first)
    where = "try_cast(event:x as bigint) >= 200"
    assert read_ids(tmp_path / "t", where) == list(range(200, 220))
    explanation = dv.read_table(tmp_path / "t", columns=["id"], where=where).explain()
    # Files of residual rows have no bounds for the path, or other ones.
    assert (explanation.files, explanation.files_by_variant_bounds) == (6, 2)


def test_a_delete_keeps_residual_rows_separate(tmp_path: Path):
    append_events(tmp_path / "t", texts(12, 3, 4, 5))
    dv.delete(tmp_path / "t", "id in (1, 4)")
    assert files(tmp_path / "t") == [(False, [0, 2, *range(6, 12)]), (True, [3, 5])]


@pytest.mark.usefixtures("shares_files")
def test_an_update_separates_new_residual_rows(tmp_path: Path):
    append_events(tmp_path / "t", texts(12, 3))
    dv.update(tmp_path / "t", {"event:x": "'1'"}, "id = 7")
    assert files(tmp_path / "t") == [
        (False, [*range(3), *range(4, 7), *range(8, 12)]),
        (True, [3]),
        (True, [7]),
    ]
    # Rows of files of residual rows stay there, whatever they become.
    dv.update(tmp_path / "t", {"event:x": "1"}, "id = 3")
    assert (True, [3]) in files(tmp_path / "t")


@pytest.mark.usefixtures("shares_files")
def test_a_file_with_residual_rows_keeps_them_in_a_rewrite(tmp_path: Path):
    append_events(tmp_path / "t", texts(12, 3), files=dv.FileOptions(residual_rows="inline"))
    dv.delete(tmp_path / "t", "id = 1")
    assert files(tmp_path / "t") == [(False, [0, *range(2, 12)])]


def test_the_residual_rows_of_all_rewritten_files_of_a_partition_have_one_file(
    tmp_path: Path, shares_files: bool
):
    for number in range(3):
        rows = pa.table(
            {"id": range(10 * number, 10 * number + 10), "event": texts(10), "day": ["a", "b"] * 5}
        )
        dv.write_table(tmp_path / "t", rows, mode="append", variant_columns=["event"], partition_by=["day"])
    before = read_by_id(tmp_path / "t")
    dv.update(tmp_path / "t", {"event:x": "'1'"}, "id % 10 in (2, 3)")
    found = [(is_residual, sorted(ids)) for is_residual, ids in files(tmp_path / "t")]
    assert found[-2:] == [(True, [2, 12, 22]), (True, [3, 13, 23])]
    expected = [12] * 2 if shares_files else [4] * 6
    assert [len(ids) for is_residual, ids in found if not is_residual] == expected
    residual = '{"name":"a","x":"1"}'
    assert read_by_id(tmp_path / "t") == {
        row: residual if row % 10 in (2, 3) else text for row, text in before.items()
    }


@pytest.mark.usefixtures("shares_files")
def test_the_residual_rows_of_rewritten_files_keep_their_row_ids(tmp_path: Path):
    append_events(tmp_path / "t", texts(10), configuration=TRACKED)
    numbers = dv.ShreddingSchema.of({"x": pa.decimal128(18, 2), "name": pa.string()})
    append_events(tmp_path / "t", texts(10), 10, shredding=numbers)
    ids = row_ids(tmp_path / "t")
    dv.update(tmp_path / "t", {"event:x": "'1'"}, "id in (1, 11)")
    assert row_ids(tmp_path / "t") == ids
    # Files are rewritten concurrently, and their residual rows come in any order.
    assert [sorted(ids) for is_residual, ids in files(tmp_path / "t") if is_residual] == [[1, 11]]


@pytest.mark.usefixtures("shares_files")
def test_a_failed_rewrite_leaves_no_residual_files(tmp_path: Path):
    append_events(tmp_path / "t", texts(10))
    append_events(tmp_path / "t", [*texts(3), '{"x": "odd"}'], 10)
    before = set((tmp_path / "t").glob("*.parquet"))
    with pytest.raises(dv.errors.CastError):
        dv.update(tmp_path / "t", {"event:x": "cast(event:x::bigint as string)"}, "id in (3, 13)")
    assert set((tmp_path / "t").glob("*.parquet")) == before


def test_a_read_tells_how_many_residual_rows_it_decodes(tmp_path: Path):
    append_events(tmp_path / "t", texts(12, 3, 5), configuration={"delta.enableChangeDataFeed": "true"})
    explained = dv.read_table(tmp_path / "t").explain()
    assert (explained.files_read, explained.residual_files_read, explained.residual_rows_decoded) == (2, 1, 2)
    assert "            1 of those read with residual rows, 2 rows decoded\n" in str(explained)
    skipped = dv.read_table(tmp_path / "t", where="id = 0").explain()
    assert (skipped.files_read, skipped.residual_files_read, skipped.residual_rows_decoded) == (1, 0, 0)
    assert "residual rows" not in str(skipped)
    changes = dv.read_changes(tmp_path / "t", start=0).explain()
    assert (changes.files_read, changes.residual_files_read, changes.residual_rows_decoded) == (2, 1, 2)


def test_an_audit_names_the_residual_files(tmp_path: Path):
    append_events(tmp_path / "t", texts(12, 3, 5))
    audit = dv.audit_table(tmp_path / "t")
    assert sorted((file.is_residual, file.rows) for file in audit.files) == [(False, 10), (True, 2)]
    shown = CliRunner().invoke(app, ["audit", str(tmp_path / "t")]).stdout
    assert "version 0, 2 files, 12 rows, 2 residual rows separated into 1 file (" in " ".join(shown.split())
    report = json.loads(CliRunner().invoke(app, ["audit", str(tmp_path / "t"), "--json"]).stdout)
    assert sorted((file["is_residual"], file["rows"]) for file in report["files"]) == [
        (False, 10),
        (True, 2),
    ]


def test_inspect_tells_which_paths_are_clean_in_all_other_files(tmp_path: Path):
    append_events(tmp_path / "t", ['{"x": 1, "o": {"a": 1}}', '{"x": null, "o": {"a": 2}}', '{"x": "odd"}'])
    inline = dv.FileOptions(residual_rows="inline")
    mixed = ['{"x": 2, "o": {"a": 1}}', '{"x": 3, "o": {"a": 2, "new": 1}}', '{"o": {"a": 3}}']
    schema = dv.ShreddingSchema.of({"x": pa.int64(), "o": {"a": pa.int64()}})
    append_events(tmp_path / "t", mixed, 10, shredding=schema, files=inline)
    shown = CliRunner().invoke(app, ["inspect", str(tmp_path / "t"), "--json"])
    report = json.loads(shown.stdout)
    assert (report["files"], report["residual_files"], report["residual_rows"]) == (3, 1, 1)
    clean = {
        (*node["path"], node["type"]): (node.get("clean_files", 0), node.get("files", 1))
        for node in report["columns"]["event"]["paths"]
    }
    assert clean == {
        ("object",): (2, 2),
        ("o", "object"): (1, 2),
        ("o", "a", "bigint"): (1, 2),
        ("x", "bigint"): (2, 2),
        ("x", "string"): (0, 0),
    }
    (x,) = (node for node in report["columns"]["event"]["paths"] if node["path"] == ["x"] and node["files"])
    assert x["value"]["only_null"]
    text = CliRunner().invoke(app, ["inspect", str(tmp_path / "t"), "--wide"]).stdout
    assert "1 residual row separated into 1 file" in text
    cells = [line.split("\t") for line in text.splitlines()]
    shown = {row[0].strip(): row[4] for row in cells if len(row) > 4 and row[1] == "bigint"}
    assert shown == {"a": "1 of 2", "x": "all"}


@pytest.mark.usefixtures("shares_files")
def test_a_merge_separates_residual_rows(tmp_path: Path):
    append_events(tmp_path / "t", texts(6, 3))
    source = pa.table({"id": [1, 6, 7], "event": [RESIDUAL, RESIDUAL, TYPED]})
    merge = dv.merge(tmp_path / "t", source, "target.id = source.id", variant_columns=["event"])
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert files(tmp_path / "t") == [
        (False, [0, 2, 4, 5]),
        (False, [7]),
        (True, [1]),
        (True, [3]),
        (True, [6]),
    ]


@pytest.mark.usefixtures("shares_files")
def test_change_data_has_all_changed_rows(tmp_path: Path):
    append_events(tmp_path / "t", texts(6, 3), configuration={"delta.enableChangeDataFeed": "true"})
    dv.update(tmp_path / "t", {"event:x": "'1'"}, "id in (3, 4)")
    changes = dv.read_changes(tmp_path / "t", start=0).to_table()
    found = sorted(zip(changes["id"].to_pylist(), changes["_change_type"].to_pylist(), strict=True))
    inserted = [(row, "insert") for row in range(6)]
    updated = [(row, f"update_{image}") for row in (3, 4) for image in ("preimage", "postimage")]
    assert found == sorted(inserted + updated)


def append_in_turn(table: Path, count: int = 3, **options: Any) -> None:
    """Append rows to a table, ten at a time with one residual row."""
    for number in range(count):
        append_events(table, texts(10, number), 10 * number, **options)


def test_an_optimization_has_one_file_of_residual_rows_and_then_nothing_to_do(tmp_path: Path):
    append_in_turn(tmp_path / "t")
    before = read_by_id(tmp_path / "t")
    assert len(files(tmp_path / "t")) == 6
    result = dv.optimize(tmp_path / "t")
    residual = [0, 11, 22]
    expected = [(False, [row for row in range(30) if row not in residual]), (True, residual)]
    assert [(is_residual, sorted(ids)) for is_residual, ids in files(tmp_path / "t")] == expected
    assert sum(file.rows for file in result.files) == 30
    assert read_by_id(tmp_path / "t") == before
    assert dv.optimize(tmp_path / "t").version is None
    assert dv.optimize(tmp_path / "t", reshred=True).version is None


def test_an_optimization_adds_residual_rows_to_the_residual_file(tmp_path: Path):
    append_in_turn(tmp_path / "t")
    dv.optimize(tmp_path / "t")
    append_events(tmp_path / "t", [*texts(5), '{"x": true}'], 30)
    assert len(files(tmp_path / "t")) == 4
    dv.optimize(tmp_path / "t")
    assert [(is_residual, len(ids)) for is_residual, ids in files(tmp_path / "t")] == [(False, 32), (True, 4)]
    assert dv.optimize(tmp_path / "t").version is None


def test_files_that_have_residual_rows_are_separated_by_an_optimization(tmp_path: Path):
    append_in_turn(tmp_path / "t", files=dv.FileOptions(residual_rows="inline"))
    dv.optimize(tmp_path / "t", files=dv.FileOptions(residual_rows="inline"))
    assert [(is_residual, sorted(ids)) for is_residual, ids in files(tmp_path / "t")] == [
        (False, list(range(30)))
    ]
    assert dv.optimize(tmp_path / "t").version is None
    result = dv.optimize(tmp_path / "t", reshred=True)
    assert (result.groups[0].gained, result.groups[0].dropped) == ((), ())
    assert [(is_residual, len(ids)) for is_residual, ids in files(tmp_path / "t")] == [(False, 27), (True, 3)]
    assert dv.optimize(tmp_path / "t", reshred=True).version is None


def test_copied_row_groups_have_no_residual_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(file_writer, "ROW_GROUP_BYTES", 1)
    monkeypatch.setattr(stored_rows, "MIN_COPIED_BYTES", 1)
    schema = dv.ShreddingSchema.of({"x": pa.int64(), "name": pa.string()})
    for first, residual in ((0, ()), (10, (3,))):
        options = dv.FileOptions(residual_rows="inline")
        append_events(tmp_path / "t", texts(10, *residual), first, shredding=schema, files=options)
    dv.optimize(tmp_path / "t")
    (clean, ids), residual = files(tmp_path / "t")
    assert (clean, sorted(ids), residual) == (False, [*range(13), *range(14, 20)], (True, [13]))


def test_row_groups_of_a_residual_file_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(file_writer, "ROW_GROUP_BYTES", 1)
    monkeypatch.setattr(router, "SAMPLE_BYTES", 1)
    monkeypatch.setattr(stored_rows, "MIN_COPIED_BYTES", 1)
    monkeypatch.setattr(file_writer, "RESIDUAL_ROWS", 1)
    batches = [pa.record_batch({"id": [first, first + 1], "event": [TYPED, RESIDUAL]}) for first in (0, 2, 4)]
    rows = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
    dv.write_table(tmp_path / "t", rows, variant_columns=["event"], shredding=SCHEMA)
    assert files(tmp_path / "t") == [(False, [0, 2, 4]), (True, [1, 3, 5])]
    copied: list[bool] = []
    copy = FileSeries.copy

    def recording(series: FileSeries[Any], *arguments: Any, **named: Any) -> bool:
        copied.append(copy(series, *arguments, **named))
        return copied[-1]

    monkeypatch.setattr(FileSeries, "copy", recording)
    dv.delete(tmp_path / "t", "id = 3")
    assert files(tmp_path / "t") == [(False, [0, 2, 4]), (True, [1, 5])]
    assert any(copied)


def test_rows_are_sorted_within_the_files_of_each_kind(tmp_path: Path):
    for first in (0, 10):
        append_events(tmp_path / "t", texts(10, 2, 7), first)
    dv.optimize(tmp_path / "t", sort_by="-id")
    clean = [row for row in range(19, -1, -1) if row % 10 not in (2, 7)]
    assert files(tmp_path / "t") == [(False, clean), (True, [17, 12, 7, 2])]


def test_residual_rows_do_not_decide_how_sorted_files_are_shredded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    long = json.dumps({"x": 1, "name": "a" * 1000})
    append_events(tmp_path / "t", [RESIDUAL if row in (3, 90) else long for row in range(200)], 0)
    # The sample has one long row, and all residual rows.
    monkeypatch.setattr(layout, "SAMPLE_BYTES", 2000)
    (group,) = dv.optimize(tmp_path / "t", sort_by="-id").groups
    assert group.gained == ()
    clean = [row for row in range(199, -1, -1) if row not in (3, 90)]
    assert files(tmp_path / "t") == [(False, clean), (True, [90, 3])]


def test_partitions_have_residual_files_after_an_optimization(tmp_path: Path):
    for number in range(2):
        days = ["ab"[row % 2] for row in range(10)]
        rows = pa.table({"id": range(10 * number, 10 * number + 10), "event": texts(10, 2, 3), "day": days})
        dv.write_table(tmp_path / "t", rows, mode="append", variant_columns=["event"], partition_by=["day"])
    dv.optimize(tmp_path / "t")
    assert sorted((is_residual, sorted(ids)) for is_residual, ids in files(tmp_path / "t")) == [
        (False, [0, 4, 6, 8, 10, 14, 16, 18]),
        (False, [1, 5, 7, 9, 11, 15, 17, 19]),
        (True, [2, 12]),
        (True, [3, 13]),
    ]
    assert dv.optimize(tmp_path / "t").version is None


def test_rows_keep_their_ids(tmp_path: Path):
    append_events(tmp_path / "t", texts(10, 0), configuration=TRACKED)
    append_events(tmp_path / "t", texts(10, 1), 10)
    ids = row_ids(tmp_path / "t")
    assert sorted(ids.values()) == list(range(20))
    dv.update(tmp_path / "t", {"event:x": "'1'"}, "id = 7")
    dv.optimize(tmp_path / "t")
    assert len(files(tmp_path / "t")) == 2
    assert row_ids(tmp_path / "t") == ids


def row_ids(table: Path) -> dict[int, int]:
    """Return the row id of each row by its `id`."""
    snapshot = dv.load_snapshot(str(table))
    name = snapshot.properties["delta.rowTracking.materializedRowIdColumnName"]
    found = {}
    for file in snapshot.files.select(["path", "base_row_id"]).to_pylist():
        rows = pq.read_table(table / file["path"])
        stored = rows[name].to_pylist() if name in rows.column_names else [None] * rows.num_rows
        for position, (number, row_id) in enumerate(zip(rows["id"].to_pylist(), stored, strict=True)):
            found[number] = file["base_row_id"] + position if row_id is None else row_id
    return found


def test_a_failed_write_leaves_no_residual_files(tmp_path: Path):
    append_events(tmp_path / "t", texts(3))
    before = set((tmp_path / "t").glob("*.parquet"))
    rows = [pa.record_batch({"id": [7, 8], "event": [TYPED, RESIDUAL]})] * 2
    bad = pa.record_batch({"id": [9, 10], "event": [TYPED, "{"]})
    batches = pa.RecordBatchReader.from_batches(rows[0].schema, [*rows, bad])
    with pytest.raises(dv.errors.InvalidJsonError):
        dv.write_table(tmp_path / "t", batches, mode="append", variant_columns=["event"])
    assert set((tmp_path / "t").glob("*.parquet")) == before


def test_an_error_of_a_residual_file_fails_the_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def new_files(files: PartitionedFiles[Any], *arguments: Any, **named: Any) -> FileSeries[Any]:
        if files.options.is_residual:
            raise dv.errors.StoreError("the disk is full")
        return original(files, *arguments, **named)

    original = PartitionedFiles.new_files
    monkeypatch.setattr(PartitionedFiles, "new_files", new_files)
    rows = pa.table({"id": range(9), "event": texts(9, 3)})
    with pytest.raises(dv.errors.StoreError, match="the disk is full"):
        dv.write_table(tmp_path / "t", rows, variant_columns=["event"])
    assert not list(tmp_path.rglob("*.parquet"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("aé", max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.lists(st.lists(JSON, min_size=1, max_size=12), min_size=1, max_size=3),
    st.sampled_from(["separate", "inline"]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_all_rows_are_read_whatever_rows_are_residual(batches: Sequence[Sequence[Any]], residual_rows: Any):
    rows = [value for batch in batches for value in batch]
    with TemporaryDirectory() as folder:
        first = 0
        for batch in batches:
            append_events(
                folder,
                [json.dumps(each) for each in batch],
                first,
                files=dv.FileOptions(residual_rows=residual_rows),
            )
            first += len(batch)
        expected = {
            row: json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
            for row, value in enumerate(rows)
        }
        assert read_by_id(folder) == expected
        dv.optimize(folder)
        assert read_by_id(folder) == expected
        # A path is skipped by bounds in any of these files.
        found = read_ids(folder, "try_cast(event:a as bigint) = 1")
        matches = [
            row for row, value in enumerate(rows) if isinstance(value, dict) and is_one(value.get("a"))
        ]
        assert found == matches


def is_one(value: Any) -> bool:
    """Return whether a JSON value casts to 1."""
    return value is True or value in (1, "1")


def test_the_tag_is_in_the_log(tmp_path: Path):
    append_events(tmp_path / "t", texts(5, 2))
    tags = [add.get("tags") for add in read_actions(tmp_path / "t", "add")]
    assert tags == [None, {"deltaVariant.residualRows": "true"}]
