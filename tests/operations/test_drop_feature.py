"""Features that are dropped: the protocol and the rows that remain, earlier versions, and rejected calls."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from support.intercepted_store import commit_first
from support.planting import Table, plant_vector, rewrite_commit
from support.tables import append_events, commit_path, list_files, read_actions, read_by_id, read_commit

import delta_variant as dv
from delta_variant.errors import (
    CommitConflictError,
    ProtocolError,
    RetentionDurationError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from delta_variant.operations.drop_feature import plan_drop_feature
from delta_variant.operations.log_maintenance import write_checkpoint
from delta_variant.protocol.actions import Protocol
from delta_variant.protocol.clustering import NO_CLUSTERING
from delta_variant.protocol.features import FEATURES, without_feature

SHREDDING = dv.ShreddingSchema.of({"n": pa.int64()})
TEXTS = ['{"n":1}', '{"n":2,"s":"x"}', "null"]
BEFORE = {0: TEXTS[0], 1: TEXTS[1], 2: TEXTS[2], 3: TEXTS[0], 4: TEXTS[1], 5: TEXTS[2]}
PROTECTED = "delta.requireCheckpointProtectionBeforeVersion"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return a table with a shredded file and one that is not shredded."""
    append_events(tmp_path / "t", TEXTS, shredding=SHREDDING)
    append_events(tmp_path / "t", TEXTS, first=3, shredding=None)
    return tmp_path / "t"


def protocol_of(table: Path) -> tuple[int, int, list[str], list[str]]:
    """Return the versions of the protocol, and the sorted features of readers and writers."""
    found = dv.load_snapshot(table).protocol
    readers, writers = sorted(found.reader_features or ()), sorted(found.writer_features or ())
    return found.min_reader_version, found.min_writer_version, readers, writers


def members_of_files(table: Path) -> list[set[str]]:
    """Return the members of the column `event` in each file of the latest version."""
    paths = dv.load_snapshot(table).files["path"].to_pylist()
    return [{part.name for part in pq.read_schema(table / path).field("event").type} for path in paths]


# --- variants


def test_tables_without_shredding_have_the_same_rows_in_other_files(table: Path):
    assert sorted(len(names) for names in members_of_files(table)) == [2, 3]
    result = dv.drop_feature(table, "variantShredding", commit=dv.CommitOptions(metadata="so"))
    assert members_of_files(table) == [{"metadata", "value"}] * 2
    assert read_by_id(table) == BEFORE
    writers = ["appendOnly", "checkpointProtection", "invariants", "variantType"]
    assert protocol_of(table) == (3, 7, ["variantType"], writers)
    assert dv.load_snapshot(table).properties == {PROTECTED: str(result.version)}
    assert dv.audit_table(table, data=True).is_clean
    last, *others = dv.history(table)
    assert (last.version, last.operation, last.metadata) == (result.version, "DROP FEATURE", "so")
    assert last.parameters == {"featureName": "variantShredding", "truncateHistory": False}
    assert [each.metadata for each in others] == [None] * len(others)


def test_a_plan_says_what_is_removed_and_what_remains(table: Path):
    plan = plan_drop_feature(table, "variantShredding", truncate_history=False)
    assert plan.describe().sentences == (
        "version 1, drop the feature variantShredding",
        "unset delta.enableVariantShredding",
        "remove its traces from 1 file",
        "write 4 checkpoints, which keep earlier versions readable",
        "protocol: reader 3, writer 7; features: appendOnly, checkpointProtection, invariants, variantType",
    )
    [add] = read_actions(table, "add", 0)
    assert plan.describe().facts["files"] == [add["path"]]
    assert dv.load_snapshot(table).version == 1


def test_later_writes_do_not_shred(table: Path):
    dv.drop_feature(table, "variantShredding")
    append_events(table, TEXTS * 5000, first=10)
    assert members_of_files(table) == [{"metadata", "value"}] * 3


def test_files_without_shredding_are_not_rewritten(table: Path):
    [add] = read_actions(table, "add", 1)
    dv.drop_feature(table, "variantShredding")
    assert add["path"] in dv.load_snapshot(table).files["path"].to_pylist()
    assert len(read_actions(table, "remove")) == 1


def test_nested_variants_are_found(tmp_path: Path):
    variants, mark = dv.parse_json(['{"n":1}']), {"ARROW:extension:name": "arrow.parquet.variant"}
    inner = pa.field("v", variants.type, metadata=mark)
    rows = pa.table({"s": pa.StructArray.from_arrays([variants], fields=[inner])})
    dv.write_table(tmp_path, rows, shredding=SHREDDING)
    read = {"value": "to_json(s.v)"}
    assert dv.shredded_columns(tmp_path).keys() == {"s", "s.v.n"}
    dv.drop_feature(tmp_path, "variantShredding")
    assert dv.shredded_columns(tmp_path).keys() == {"s"}
    assert dv.read_table(tmp_path, columns=read).to_pylist() == [{"value": '{"n":1}'}]


def test_a_shredding_schema_without_columns_is_shredding(tmp_path: Path):
    append_events(tmp_path, TEXTS, shredding=dv.ShreddingSchema.of({"n": None}))
    assert members_of_files(tmp_path) == [{"metadata", "value", "typed_value"}]
    dv.drop_feature(tmp_path, "variantShredding")
    assert members_of_files(tmp_path) == [{"metadata", "value"}]


def test_the_variant_type_is_dropped_after_its_columns(table: Path):
    with pytest.raises(ProtocolError, match="its features variantShredding require it: drop variantShred"):
        dv.drop_feature(table, "variantType")
    dv.drop_feature(table, "variantShredding")
    with pytest.raises(ProtocolError, match="because it has the column 'event' of type variant: over"):
        dv.drop_feature(table, "variantType")
    events = dv.Table(table)
    columns = {"id": "id", "n": "event:n::int", "event": "to_json(event)"}
    events.overwrite(events.scan(columns=columns), schema_mode="overwrite")
    dv.drop_feature(table, "variantType")
    assert protocol_of(table) == (1, 7, [], ["appendOnly", "checkpointProtection", "invariants"])
    rows = DeltaTable(table).to_pyarrow_table().to_pylist()
    assert {row["id"]: row["event"] for row in rows} == BEFORE
    assert {row["id"]: row["n"] for row in rows} == {0: 1, 1: 2, 2: None, 3: 1, 4: 2, 5: None}


def test_variants_in_arrays_need_the_variant_type(tmp_path: Path):
    variant = dv.load_snapshot(Table.write(tmp_path / "other").path).arrow_schema.field("v")
    rows = pa.schema([pa.field("v", pa.list_(variant))]).empty_table()
    dv.write_table(tmp_path / "t", rows)
    with pytest.raises(ProtocolError, match="of type variant: overwrite the table without it"):
        dv.drop_feature(tmp_path / "t", "variantType")


def test_preview_names_are_dropped_like_stable_names(table: Path):
    names = ["variantType-preview", "variantShredding-preview"]
    Table(table).edit_protocol(names, [*names, "appendOnly", "invariants"])
    dv.drop_feature(table, "variantShredding-preview")
    assert members_of_files(table) == [{"metadata", "value"}] * 2
    with pytest.raises(ProtocolError, match="the column 'event'"):
        dv.drop_feature(table, "variantType-preview")
    assert protocol_of(table)[2] == ["variantType-preview"]


def test_one_of_two_names_is_dropped_without_a_rewrite(table: Path):
    names = ["variantType", "variantType-preview", "variantShredding"]
    Table(table).edit_protocol(names, [*names, "appendOnly", "invariants"])
    dv.drop_feature(table, "variantType-preview")
    assert protocol_of(table)[2] == ["variantShredding", "variantType"]
    assert read_by_id(table) == BEFORE


# --- earlier versions


def test_earlier_versions_are_protected_and_can_be_read(table: Path):
    version = dv.drop_feature(table, "variantShredding").version
    assert version is not None
    checkpoints = {f"{each:020}.checkpoint.parquet" for each in range(version - 3, version + 1)}
    assert list_files(table / "_delta_log", "*.checkpoint.parquet") == checkpoints
    for each in range(version + 1):
        assert len(read_by_id(dv.Table(table).as_of(each))) == (3 if each == 0 else 6)
        features = dv.load_snapshot(table, each).protocol.reader_features
        assert ("variantShredding" in (features or ())) == (each < version)
    assert dv.clean_up_log(table).files == ()


def test_a_restore_returns_the_feature(table: Path):
    dv.drop_feature(table, "variantShredding")
    dv.restore(table, 1)
    assert "variantShredding" in protocol_of(table)[2]
    assert sorted(len(names) for names in members_of_files(table)) == [2, 3]
    assert read_by_id(table) == BEFORE


def test_changes_of_writers_alone_need_no_protection(tmp_path: Path):
    append_events(tmp_path, TEXTS, configuration={"delta.enableInCommitTimestamps": "true"})
    assert dv.drop_feature(tmp_path, "inCommitTimestamp").version == 2
    assert list_files(tmp_path / "_delta_log", "*.checkpoint.parquet") == set()
    assert "checkpointProtection" not in protocol_of(tmp_path)[3]


# --- truncated history


def age(table: Path, hours: float) -> None:
    """Make the log some hours older."""
    for file in (table / "_delta_log").iterdir():
        time = file.stat().st_mtime - hours * 3600
        os.utime(file, (time, time))


def truncate(table: Path, name: str = "variantShredding") -> int | None:
    return dv.drop_feature(table, name, truncate_history=True).version


def test_history_is_truncated_by_a_second_call_a_day_later(table: Path):
    with pytest.raises(
        RetentionDurationError, match=r"version 1 in its log needs it, .*: repeat the call aft"
    ):
        truncate(table)
    waiting = dv.load_snapshot(table).version
    age(table, 23.9)
    with pytest.raises(RetentionDurationError, match="repeat the call after"):
        truncate(table)
    assert dv.load_snapshot(table).version == waiting
    age(table, 0.2)
    assert truncate(table) == waiting + 1
    assert protocol_of(table) == (3, 7, ["variantType"], ["appendOnly", "invariants", "variantType"])
    assert dv.load_snapshot(table).properties == {}
    assert read_by_id(table) == BEFORE
    assert [each.version for each in dv.history(table)] == [waiting + 1, waiting]
    with pytest.raises(VersionNotFoundError):
        dv.load_snapshot(table, 1)
    assert dv.audit_table(table, data=True).is_clean


def test_the_message_says_when_the_history_expires(table: Path):
    dv.set_properties(table, {"delta.dropFeatureTruncateHistory.retentionDuration": "interval 3 days"})
    before = datetime.now(timezone.utc)
    with pytest.raises(RetentionDurationError) as raised:
        truncate(table)
    found = datetime.fromisoformat(str(raised.value).rpartition("after ")[2])
    assert timedelta(0) <= found - before - timedelta(days=3) <= timedelta(minutes=5)
    age(table, 71)
    with pytest.raises(RetentionDurationError):
        truncate(table)
    age(table, 2)
    truncate(table)


def test_a_retention_is_a_day_at_least(table: Path):
    dv.set_properties(table, {"delta.dropFeatureTruncateHistory.retentionDuration": "interval 1 hour"})
    for hours in (0, 20):
        age(table, hours)
        with pytest.raises(RetentionDurationError):
            truncate(table)


def test_a_feature_that_no_version_uses_is_dropped_at_once(tmp_path: Path):
    dv.write_table(tmp_path, pa.table({"id": [1]}))
    dv.set_properties(tmp_path, {"delta.feature.variantType": "supported"})
    assert truncate(tmp_path, "variantType") == 2
    assert protocol_of(tmp_path) == (1, 2, [], [])


def test_history_with_shredded_files_needs_the_feature_without_its_property(table: Path):
    dv.set_properties(table, {"delta.enableVariantShredding": "false"})
    write_checkpoint(table)
    delete = dv.delete(table, "id < 3")
    age(table, 48)
    dv.clean_up_log(table)
    for version in range(2):
        commit_path(table, version).unlink()
    with pytest.raises(RetentionDurationError, match="version 2 in its log needs it"):
        truncate(table)
    assert delete.version == 3
    assert read_by_id(table).keys() == {3, 4, 5}


def test_history_of_deleted_files_counts_as_a_use(table: Path):
    dv.set_properties(table, {"delta.enableVariantShredding": "false"})
    write_checkpoint(table)
    for version in range(2):
        commit_path(table, version).unlink()
    dv.delete(table, "id < 3")
    dv.vacuum(table, 0, dry_run=False, enforce_retention_duration=False)
    with pytest.raises(RetentionDurationError, match="version 2 in its log needs it"):
        truncate(table)


def test_a_v2_checkpoint_in_the_log_needs_its_feature(tmp_path: Path):
    append_events(tmp_path, TEXTS, configuration={"delta.checkpointPolicy": "v2"})
    append_events(tmp_path, TEXTS, first=3)
    write_checkpoint(tmp_path)
    dv.set_properties(tmp_path, {"delta.checkpointPolicy": "classic"})
    for version in range(2):
        commit_path(tmp_path, version).unlink()
    (tmp_path / "_delta_log" / f"{1:020}.crc").unlink()
    with pytest.raises(RetentionDurationError, match="version 1 in its log needs it"):
        truncate(tmp_path, "v2Checkpoint")


def test_the_protection_is_dropped_with_the_history(table: Path):
    dropped = dv.drop_feature(table, "variantShredding").version
    with pytest.raises(ValueError, match="pass truncate_history=True"):
        dv.drop_feature(table, "checkpointProtection")
    with pytest.raises(RetentionDurationError, match=f"version {(dropped or 0) - 1} in its log needs it"):
        truncate(table, "checkpointProtection")
    age(table, 24.1)
    truncate(table, "checkpointProtection")
    assert protocol_of(table) == (3, 7, ["variantType"], ["appendOnly", "invariants", "variantType"])
    assert dv.load_snapshot(table).properties == {}
    assert min(each.version for each in dv.history(table)) >= (dropped or 0)
    assert read_by_id(table) == BEFORE


def test_other_writers_append_to_a_table_without_features(table: Path):
    dv.drop_feature(table, "variantShredding")
    plain = dv.read_table(table, columns={"id": "id", "event": "to_json(event)"})
    dv.Table(table).overwrite(plain, schema_mode="overwrite")
    dv.drop_feature(table, "variantType")
    rows = pa.table({"id": pa.array([9], pa.int64()), "event": ["x"]})
    with pytest.raises(Exception, match="checkpointProtection"):
        write_deltalake(table, rows, mode="append")
    age(table, 25)
    truncate(table, "checkpointProtection")
    assert protocol_of(table) == (1, 2, [], [])
    write_deltalake(table, rows, mode="append")
    assert read_by_id(table, "event") == {**BEFORE, 9: "x"}


def test_history_is_not_truncated_for_features_of_writers(table: Path):
    with pytest.raises(ValueError, match="readers do not need the feature 'appendOnly', so that earlier"):
        truncate(table, "appendOnly")


# --- other features


def test_files_with_deletion_vectors_are_rewritten(table: Path):
    dv.set_properties(table, {"delta.enableDeletionVectors": "true"})
    plant_vector(table, 0, 1)
    dv.drop_feature(table, "deletionVectors")
    assert dv.load_snapshot(table).files["deletion_vector"].null_count == 2
    assert read_by_id(table) == {number: text for number, text in BEFORE.items() if number != 1}
    assert "delta.enableDeletionVectors" not in dv.load_snapshot(table).properties
    assert protocol_of(table)[2] == ["variantShredding", "variantType"]
    assert sorted(len(names) for names in members_of_files(table)) == [2, 3]
    assert dv.audit_table(table, data=True).is_clean


def test_an_audit_permits_the_removal_of_files_of_deletion_vectors(tmp_path: Path):
    dv.write_table(
        tmp_path, pa.table({"id": range(100)}), configuration={"delta.enableDeletionVectors": "true"}
    )
    dv.delete(tmp_path, "id = 7")
    dv.drop_feature(tmp_path, "deletionVectors")
    version = dv.load_snapshot(tmp_path).version
    removed = [
        action["remove"]["path"]
        for v in range(2, version + 1)
        for action in read_commit(tmp_path, v)
        if "remove" in action
    ]
    assert [path for path in removed if path.endswith(".bin")]
    assert dv.audit_table(tmp_path).is_clean


def test_row_ids_are_forgotten(table: Path):
    dv.set_properties(table, {"delta.enableRowTracking": "true"})
    dv.drop_feature(table, "rowTracking")
    snapshot = dv.load_snapshot(table)
    assert snapshot.files["base_row_id"].null_count == snapshot.files.num_rows == 2
    assert snapshot.domain_metadata == {}
    assert [name for name in snapshot.properties if "row" in name.lower()] == []
    append_events(table, TEXTS, first=6)
    assert dv.load_snapshot(table).files["base_row_id"].null_count == 3
    assert dv.audit_table(table, data=True).is_clean
    dv.drop_feature(table, "domainMetadata")
    assert "domainMetadata" not in protocol_of(table)[3]


def test_new_checkpoints_are_classic_without_v2(tmp_path: Path):
    append_events(
        tmp_path, TEXTS, configuration={"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "1"}
    )
    append_events(tmp_path, TEXTS, first=3)
    version = dv.drop_feature(tmp_path, "v2Checkpoint").version
    append_events(tmp_path, TEXTS, first=6)
    assert version is not None
    names = list_files(tmp_path / "_delta_log", f"{version:020}.checkpoint*")
    assert names == {f"{version:020}.checkpoint.parquet"}
    assert sorted(read_by_id(tmp_path)) == list(range(9))


def test_commits_have_no_timestamps_after_in_commit_timestamps(tmp_path: Path):
    append_events(tmp_path, TEXTS)
    dv.set_properties(tmp_path, {"delta.enableInCommitTimestamps": "true"})
    dv.drop_feature(tmp_path, "inCommitTimestamp")
    append_events(tmp_path, TEXTS, first=3)
    assert "inCommitTimestamp" in read_commit(tmp_path, 1)[0]["commitInfo"]
    assert "inCommitTimestamp" not in read_commit(tmp_path, 4)[0]["commitInfo"]
    assert [name for name in dv.load_snapshot(tmp_path).properties if "nCommit" in name] == []
    assert [each.version for each in dv.history(tmp_path)] == [4, 3, 2, 1, 0]


WIDE = pa.schema(
    [
        ("id", pa.int64()),
        ("s", pa.struct([("a", pa.decimal128(12, 2)), ("b", pa.int16())])),
        ("l", pa.list_(pa.float64())),
        ("m", pa.map_(pa.string(), pa.timestamp("us"))),
    ]
)


def test_files_with_narrow_types_are_rewritten(tmp_path: Path):
    day = date(2026, 1, 2)
    narrow = pa.schema(
        [
            ("id", pa.int32()),
            ("s", pa.struct([("a", pa.decimal128(10, 2)), ("b", pa.int16())])),
            ("l", pa.list_(pa.float32())),
            ("m", pa.map_(pa.string(), pa.date32())),
        ]
    )
    row = {"id": 1, "s": {"a": Decimal("1.50"), "b": 2}, "l": [0.5, None], "m": [("k", day)]}
    dv.write_table(
        tmp_path,
        pa.Table.from_pylist([row], narrow),
        configuration={"delta.enableTypeWidening": "true", "delta.columnMapping.mode": "name"},
    )
    changes = {"id": "bigint", "s.a": "decimal(12,2)", "l.element": "double", "m.value": "timestamp_ntz"}
    for column, kind in changes.items():
        dv.change_type(tmp_path, column, kind)
    wide = {**row, "id": 2, "m": [("k", datetime(2026, 1, 2))]}
    dv.write_table(tmp_path, pa.Table.from_pylist([wide], WIDE), mode="append")
    [before] = dv.load_snapshot(tmp_path, 0).files["path"].to_pylist()
    dv.drop_feature(tmp_path, "typeWidening")
    paths = dv.load_snapshot(tmp_path).files["path"].to_pylist()
    assert (before in paths, len(paths)) == (False, 2)
    for path in paths:
        columns = pq.read_schema(tmp_path / path).types
        assert [columns[0], columns[1].field(0).type, columns[1].field(1).type] == [
            pa.int64(),
            pa.decimal128(12, 2),
            pa.int16(),
        ]
        assert columns[2].value_type == pa.float64()
        assert columns[3].item_type == pa.timestamp("us")
    assert "typeChanges" not in dv.load_snapshot(tmp_path).metadata.schema_string
    rows = dv.read_table(tmp_path).to_table().sort_by("id").to_pylist()
    assert rows == [{**row, "m": wide["m"]}, wide]
    assert protocol_of(tmp_path)[2] == ["columnMapping", "timestampNtz"]
    assert dv.audit_table(tmp_path, data=True).is_clean


def test_clustering_is_dropped_without_clustering_columns(tmp_path: Path):
    dv.create_table(tmp_path, ["id bigint"], cluster_by=["id"])
    with pytest.raises(ProtocolError, match=r"it has the metadata domain .*: run ALTER TABLE … CLUSTER BY N"):
        dv.drop_feature(tmp_path, "clustering")
    with pytest.raises(ProtocolError, match="its features clustering require it: drop clustering first"):
        dv.drop_feature(tmp_path, "domainMetadata")
    none = {"domain": "delta.clustering", "configuration": NO_CLUSTERING, "removed": False}
    rewrite_commit(commit_path(tmp_path, 1), [{"domainMetadata": none}])
    dv.drop_feature(tmp_path, "clustering")
    dv.drop_feature(tmp_path, "domainMetadata")
    assert dv.load_snapshot(tmp_path).domain_metadata == {}
    assert protocol_of(tmp_path) == (1, 2, [], [])


# The feature, the properties and the columns that need it, and what an error says about them.
NEEDED: list[tuple[str, Mapping[str, str], Sequence[str], str]] = [
    ("appendOnly", {"delta.appendOnly": "true"}, [], "property delta.appendOnly=true: unset it with unset_p"),
    ("changeDataFeed", {"delta.enableChangeDataFeed": "true"}, [], "enableChangeDataFeed=true: unset it"),
    ("checkConstraints", {}, ["CONSTRAINT c CHECK (id > 0)"], "delta.constraints.c: drop it with drop_c"),
    ("columnMapping", {"delta.columnMapping.mode": "name"}, [], "mode=name: write the rows to a new table"),
    ("timestampNtz", {}, ["t timestamp_ntz"], "the column 't' of type timestamp_ntz: overwrite"),
    ("allowColumnDefaults", {}, ["d int DEFAULT 1"], "CURRENT_DEFAULT of the column 'd': write the rows"),
    (
        "generatedColumns",
        {},
        ["g bigint GENERATED ALWAYS AS (id + 1)"],
        "generationExpression of the column 'g'",
    ),
]


@pytest.mark.parametrize(("feature", "properties", "columns", "message"), NEEDED)
def test_features_that_a_table_needs_are_rejected_with_the_way_out(
    tmp_path: Path, feature: str, properties: Mapping[str, str], columns: Sequence[str], message: str
):
    dv.create_table(tmp_path, ["id bigint", *columns], configuration=properties)
    before = protocol_of(tmp_path)
    with pytest.raises(ProtocolError, match=message):
        dv.drop_feature(tmp_path, feature)
    assert (dv.load_snapshot(tmp_path).version, protocol_of(tmp_path)) == (0, before)


UNUSED = ["appendOnly", "changeDataFeed", "checkConstraints", "columnMapping", "timestampNtz", "typeWidening"]


@pytest.mark.parametrize("feature", UNUSED)
def test_features_that_a_table_does_not_need_are_dropped(tmp_path: Path, feature: str):
    dv.write_table(tmp_path, pa.table({"id": [1]}))
    dv.set_properties(tmp_path, {f"delta.feature.{feature}": "supported"})
    dv.drop_feature(tmp_path, feature)
    assert feature not in protocol_of(tmp_path)[3]
    assert protocol_of(tmp_path)[2] == []
    assert DeltaTable(tmp_path).to_pyarrow_table().to_pylist() == [{"id": 1}]


@pytest.mark.parametrize("name", ["variantshredding", "deletionVectors", "delta.appendOnly", ""])
def test_features_that_a_table_does_not_have_are_rejected(table: Path, name: str):
    with pytest.raises(ProtocolError, match="does not have it: its features are appendOnly, invariants, var"):
        dv.drop_feature(table, name)


def test_tables_with_unknown_features_are_rejected(table: Path):
    Table(table).edit_protocol(["variantType"], ["variantType", "appendOnly", "invariants", "future"])
    with pytest.raises(UnsupportedFeatureError, match="future"):
        dv.drop_feature(table, "variantType")


# --- concurrent writers

STEPS = 5
"""The commits before the last one: the property, the files, and three with checkpoints."""


def test_appends_before_the_last_commit_are_kept(table: Path):
    def append() -> None:
        append_events(table, TEXTS, first=6)

    version = dv.drop_feature(commit_first(table, *[append] * (STEPS + 1)), "variantShredding").version
    assert version == 1 + STEPS + 1 + STEPS + 1
    assert dv.load_snapshot(table).properties == {PROTECTED: str(version)}
    assert members_of_files(table) == [{"metadata", "value"}] * 8


def add_again(table: Path) -> None:
    """Add a copy of the first file, as a writer does that ignores the properties."""
    actions = [action for action in read_commit(table, 0) if action.keys() & {"add", "commitInfo"}]
    [add] = [action["add"] for action in actions if "add" in action]
    (table / "copy.parquet").write_bytes((table / add["path"]).read_bytes())
    add["path"] = "copy.parquet"
    rewrite_commit(commit_path(table, dv.load_snapshot(table).version + 1), actions)


@pytest.mark.parametrize(
    "act",
    [lambda table: dv.set_properties(table, {"delta.enableVariantShredding": "true"}), add_again],
    ids=["the property", "a file"],
)
def test_a_concurrent_use_of_the_feature_is_a_conflict(table: Path, act: Callable[[Path], object]):
    store = commit_first(table, *[None] * STEPS, lambda: act(table))
    with pytest.raises(CommitConflictError, match="because a concurrent writer used it again: repeat the ca"):
        dv.drop_feature(store, "variantShredding")
    assert "variantShredding" in protocol_of(table)[2]
    dv.drop_feature(table, "variantShredding")
    assert "variantShredding" not in protocol_of(table)[2]
    assert members_of_files(table)[0] == {"metadata", "value"}


def test_files_that_are_added_during_the_rewrite_are_rewritten(table: Path):
    dv.drop_feature(commit_first(table, None, lambda: add_again(table)), "variantShredding")
    assert members_of_files(table) == [{"metadata", "value"}] * 3


def test_a_file_that_is_removed_during_the_rewrite_is_a_conflict(table: Path):
    store = commit_first(table, None, lambda: dv.delete(table, "id < 3"))
    with pytest.raises(CommitConflictError, match="which this operation read"):
        dv.drop_feature(store, "variantShredding")
    dv.drop_feature(table, "variantShredding")
    assert sorted(read_by_id(table)) == [3, 4, 5]


def test_two_writers_drop_a_feature_once(table: Path):
    other = partial(dv.drop_feature, table, "variantShredding")
    with pytest.raises(ProtocolError, match="does not have it"):
        dv.drop_feature(commit_first(table, *[None] * STEPS, other), "variantShredding")
    assert [each.operation for each in dv.history(table)].count("DROP FEATURE") == 1


class StoppedError(Exception):
    """A process that ends."""


@pytest.mark.parametrize("step", range(STEPS + 1))
def test_an_interrupted_call_can_be_repeated(table: Path, step: int):
    def stop() -> None:
        raise StoppedError

    with pytest.raises(StoppedError):
        dv.drop_feature(commit_first(table, *[None] * step, stop), "variantShredding")
    assert read_by_id(table) == BEFORE
    dv.drop_feature(table, "variantShredding")
    assert read_by_id(table) == BEFORE
    assert members_of_files(table) == [{"metadata", "value"}] * 2


# --- protocols

LEGACY = ["appendOnly", "invariants"]
TO_4 = [*LEGACY, "checkConstraints", "changeDataFeed", "generatedColumns"]

# The features of a protocol, the dropped one, and the versions and lists of Delta on Spark.
PROTOCOLS: list[tuple[list[str], str, tuple[int, int, list[str] | None, list[str] | None]]] = [
    ([*LEGACY, "variantType"], "variantType", (1, 2, None, None)),
    ([*LEGACY, "checkConstraints", "rowTracking"], "rowTracking", (1, 3, None, None)),
    ([*TO_4, "deletionVectors"], "deletionVectors", (1, 4, None, None)),
    ([*TO_4, "columnMapping", "v2Checkpoint"], "v2Checkpoint", (2, 5, None, None)),
    ([*TO_4, "columnMapping", "identityColumns", "clustering"], "clustering", (2, 6, None, None)),
    ([*TO_4, "identityColumns", "columnMapping"], "columnMapping", (1, 6, None, None)),
    (["appendOnly"], "appendOnly", (1, 1, None, None)),
    (["domainMetadata", "variantType"], "variantType", (1, 7, None, ["domainMetadata"])),
    (
        ["columnMapping", "appendOnly", "v2Checkpoint"],
        "v2Checkpoint",
        (2, 7, None, ["columnMapping", "appendOnly"]),
    ),
    (
        ["columnMapping", "appendOnly", "timestampNtz", "variantType"],
        "variantType",
        (3, 7, ["columnMapping", "timestampNtz"], ["columnMapping", "appendOnly", "timestampNtz"]),
    ),
]


@pytest.mark.parametrize(("present", "dropped", "expected"), PROTOCOLS)
def test_the_protocol_without_a_feature_is_the_lowest_one(
    present: list[str], dropped: str, expected: tuple[int, int, list[str] | None, list[str] | None]
):
    readers = [name for name in present if FEATURES[name].is_reader_writer]
    before = Protocol(
        min_reader_version=3,
        min_writer_version=7,
        reader_features=tuple(readers),
        writer_features=tuple(present),
    )
    found = without_feature(before, dropped)
    listed = [each and list(each) for each in (found.reader_features, found.writer_features)]
    assert (found.min_reader_version, found.min_writer_version, *listed) == expected


def test_a_legacy_protocol_is_listed_without_a_feature():
    found = without_feature(Protocol(min_reader_version=1, min_writer_version=3), "invariants")
    assert (found.min_reader_version, found.min_writer_version) == (1, 7)
    assert found.writer_features == ("appendOnly", "checkConstraints")
    assert found.reader_features is None
