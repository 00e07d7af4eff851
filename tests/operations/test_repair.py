"""Repairs of statistics: the commit, the fields that stay, and concurrent commits."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from support.archives import unpack_spark_table
from support.errors import raises_at
from support.intercepted_store import commit_first
from support.planting import Table

import delta_variant as dv
from delta_variant.errors import CommitConflictError, UnsupportedFeatureError
from delta_variant.log import transaction
from delta_variant.log.commit_context import CommitContext


@pytest.fixture
def table(tmp_path):
    """Return a table whose statistics are wrong."""
    table = Table.write(tmp_path / "table")
    table.edit_stats(lambda statistics: statistics.update(numRecords=7))
    return table


def last_commit(table):
    lines = sorted(table.log.glob("*.json"))[-1].read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_a_dry_run_returns_the_repairs_and_commits_nothing(table):
    before = {path: path.read_bytes() for path in table.path.rglob("*") if path.is_file()}
    repair = dv.repair_statistics(table.path)
    assert (repair.read_version, repair.version, repair.num_files, repair.dry_run) == (0, None, 1, True)
    (file,) = repair.repairable
    assert file.reasons == ("numRecords is 7, but the file has 4 rows",)
    assert json.loads(file.stats)["numRecords"] == 4
    assert before == {path: path.read_bytes() for path in table.path.rglob("*") if path.is_file()}


def test_a_repair_keeps_every_other_field(table):
    fields = {
        "path": table.file.name.replace("-", "%2D"),
        "tags": {"k": "v", "n": None},
        "baseRowId": 5,
        "defaultRowCommitVersion": 0,
        "clusteringProvider": "liquid",
        "modificationTime": 7,
    }
    table.edit("add", lambda add: add.update(fields))
    (before,) = (action["add"] for action in table.actions() if "add" in action)
    data = table.file.read_bytes()
    repair = dv.repair_statistics(table.path, dry_run=False)
    assert (repair.version, repair.dry_run) == (1, False)
    info, after = last_commit(table)
    after = after["add"]
    assert after.pop("dataChange") is False
    assert json.loads(after.pop("stats"))["numRecords"] == 4
    assert after == {name: value for name, value in before.items() if name not in ("stats", "dataChange")}
    assert info["commitInfo"]["operation"] == "COMPUTE STATS"
    assert info["commitInfo"]["isBlindAppend"] is False
    assert table.file.read_bytes() == data
    assert dv.load_snapshot(table.path).num_files == 1


def test_a_repaired_table_is_not_repaired_again(table):
    dv.repair_statistics(table.path, dry_run=False)
    again = dv.repair_statistics(table.path, dry_run=False)
    assert (again.files, again.version) == ((), None)


def test_missing_variant_statistics_are_computed(tmp_path):
    with_them, without = (
        Table.write(tmp_path / "a"),
        Table.write(tmp_path / "b", files=dv.FileOptions(max_variant_stats_paths=0)),
    )
    dv.repair_statistics(without.path, dry_run=False)
    (added,) = (action["add"] for action in last_commit(without) if "add" in action)
    (written,) = (action["add"] for action in with_them.actions() if "add" in action)
    assert json.loads(added["stats"]) == json.loads(written["stats"])


@pytest.mark.parametrize(
    ("settings", "paths"),
    [
        ({"delta.dataSkippingNumIndexedCols": "1"}, 32),
        ({"delta.dataSkippingStatsColumns": "id"}, 32),
        ({}, 0),
    ],
)
def test_bounds_that_nobody_asks_for_are_not_missing(tmp_path, settings, paths):
    table = tmp_path / "t"
    dv.write_table(
        table,
        [{"id": 1, "event": {"n": 1}}],
        variant_columns=["event"],
        shredding={"event": dv.ShreddingSchema.of({"n": "bigint"})},
        configuration=settings,
        files=dv.FileOptions(max_variant_stats_paths=paths),
    )
    assert not dv.repair_statistics(table, max_variant_stats_paths=paths).files
    assert len(dv.audit_table(table).findings) == (not settings)


def test_bounds_of_few_paths_are_kept(tmp_path):
    table = Table.write(tmp_path / "table", files=dv.FileOptions(max_variant_stats_paths=1))
    assert dv.repair_statistics(table.path).files == ()


FLOATS = pa.array([0.1, 1e38, -3.4028234663852886e38], pa.float32())


def table_of_floats(path, least, greatest):
    """Write floats at the top and in a struct, with bounds as JSON numbers."""
    rows = {"f": FLOATS, "s": pa.StructArray.from_arrays([FLOATS], ["f"])}
    dv.write_table(path, pa.table(rows))
    counts, low, high = (f'{{"f":{text},"s":{{"f":{text}}}}}' for text in (0, least, greatest))
    text = f'{{"numRecords":3,"minValues":{low},"maxValues":{high},"nullCount":{counts}}}'
    Table(path).edit("add", lambda add: add.update(stats=text))
    return path


@pytest.mark.parametrize("least", ["-3.4028235E38", "-3.4028234663852886e38"])
@pytest.mark.parametrize("greatest", ["1.0E38", "9.999999680285692e+37"])
def test_bounds_with_the_float_digits_of_spark_or_deltalake_are_correct(tmp_path, least, greatest):
    path = table_of_floats(tmp_path / "t", least, greatest)
    assert dv.audit_table(path, data=True).findings == ()
    assert dv.repair_statistics(path).files == ()


def test_bounds_of_other_floats_are_wrong(tmp_path):
    path = table_of_floats(tmp_path / "t", "-3.4028235E38", "9.999999E37")
    assert [(each.rule, each.column) for each in dv.audit_table(path, data=True).findings] == [
        ("AU7", "f"),
        ("AU7", "s.f"),
    ]
    path = table_of_floats(tmp_path / "u", "-3.4028235E38", "1.0000001E38")
    assert [(each.rule, each.column) for each in dv.audit_table(path, data=True).findings] == [
        ("AU8", "f"),
        ("AU8", "s.f"),
    ]
    assert [len(file.reasons) for file in dv.repair_statistics(path).files] == [2]


def test_bounds_of_all_rows_are_wide_if_rows_are_deleted(unpack_golden):
    table = unpack_golden("d_dv")
    log_file = table / "_delta_log" / f"{4:020d}.json"
    text = log_file.read_text("utf-8")
    assert text.count('\\"tightBounds\\":false') == 1
    assert dv.repair_statistics(table).files == ()
    log_file.write_text(text.replace('\\"tightBounds\\":false', '\\"tightBounds\\":true'), "utf-8")
    (file,) = dv.repair_statistics(table, dry_run=False).files
    assert file.reasons == ("the bounds are marked as tight, but the file has a deletion vector",)
    assert json.loads(file.stats)["tightBounds"] is False
    assert dv.audit_table(table, data=True).is_clean


@pytest.fixture
def unpack_golden(corpora, tmp_path):
    """Return a function that unpacks a table of Spark."""

    def unpack(name):
        return unpack_spark_table(corpora, name, tmp_path)

    return unpack


def test_an_unreadable_file_is_reported_and_the_others_are_repaired(table):
    dv.write_table(table.path, dv.read_table(table.path).to_table(), mode="append")
    broken = last_commit(table)[-1]["add"]["path"]
    (table.path / broken).write_bytes(b"PAR1")
    repair = dv.repair_statistics(table.path, dry_run=False)
    assert [file.path for file in repair.unrepairable] == [broken]
    assert "cannot be computed" in repair.unrepairable[0].reasons[0]
    assert len(repair.repairable) == 1
    assert repair.version == 2


def test_a_concurrent_append_does_not_conflict_with_a_repair(table):
    rows = pa.table({"id": [9], "v": pa.array(["1"], pa.json_())})
    store = commit_first(table.path, lambda: dv.write_table(table.path, rows, mode="append"))
    assert dv.repair_statistics(store, dry_run=False).version == 2
    assert dv.audit_table(table.path, data=True).is_clean


@pytest.mark.parametrize("action", ["remove", "add"])
def test_a_concurrent_change_of_a_file_conflicts_with_a_repair(table, action):
    (add,) = (each["add"] for each in table.actions() if "add" in each)
    removal = {"path": add["path"], "dataChange": True, "deletionTimestamp": 1}
    other = {"remove": removal} if action == "remove" else {"add": add}
    store = commit_first(table.path, lambda: table.add_commit(1, other))
    with raises_at(CommitConflictError, table.file.name, version=1):
        dv.repair_statistics(store, dry_run=False)


def test_a_concurrent_change_of_the_metadata_conflicts_with_a_repair(table):
    (metadata,) = (each for each in table.actions() if "metaData" in each)
    store = commit_first(table.path, lambda: table.add_commit(1, metadata))
    with pytest.raises(CommitConflictError, match="changed the metadata"):
        dv.repair_statistics(store, dry_run=False)


def test_a_table_with_an_unknown_feature_is_rejected(table):
    features = ["variantType", "variantShredding"]
    table.edit_protocol(features, [*features, "wishes"])
    with pytest.raises(UnsupportedFeatureError, match="wishes"):
        dv.repair_statistics(table.path)


def test_a_constraint_does_not_prevent_a_repair(table):
    table.set_property("delta.constraints.positive", "id >= 0")
    table.edit("protocol", lambda each: each["writerFeatures"].append("checkConstraints"))
    assert dv.repair_statistics(table.path, dry_run=False).version == 1


def test_a_repair_keeps_the_encoding_of_paths(table):
    table.edit("add", lambda add: add.update(path=add["path"].replace("-", "%2D")))
    table.edit_stats(lambda statistics: statistics["nullCount"].update(v=0))
    dv.repair_statistics(table.path, dry_run=False)
    files = dv.load_snapshot(table.path).files
    assert files["path"].to_pylist() == [table.file.name]
    assert files["encoded_path"].to_pylist() == [table.file.name.replace("-", "%2D")]


def test_a_recommit_keeps_row_ids(tmp_path):
    table = Table.write(tmp_path / "table", configuration={"delta.enableRowTracking": "true"})
    before = dv.load_snapshot(table.path)
    table.edit_stats(lambda statistics: statistics["nullCount"].update(v=0))
    dv.repair_statistics(table.path, dry_run=False)
    after = dv.load_snapshot(table.path)
    for name in ("base_row_id", "default_row_commit_version"):
        assert after.files[name].to_pylist() == before.files[name].to_pylist()
    assert after.domain_metadata == before.domain_metadata


def test_a_recommit_has_no_data_change(table):
    snapshot = dv.load_snapshot(table.path)
    context = CommitContext(
        operation="COMPUTE STATS", engine_info="delta-variant/0.0.0", txn_id="t-1", clock=lambda: 1000
    )
    assert transaction.recommit_files(snapshot, [], context=context) == 1
