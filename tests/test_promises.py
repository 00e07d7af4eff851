"""Each promise of a table or a caller is kept or refused as docs/reference/promises.md says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.documents import Page
from support.errors import raises_at
from support.planting import Table

import delta_variant as dv
from delta_variant.errors import (
    PredicateViolationError,
    SchemaError,
    ShreddingNotEnabledError,
    UnsupportedFeatureError,
)
from delta_variant.protocol.features import FEATURES
from delta_variant.protocol.properties import OTHER_PROPERTIES, PROPERTIES

PAGE = Page("docs/reference/promises.md")
CODE = re.compile(r"`([^`]+)`")
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE.text, re.MULTILINE | re.DOTALL))
TESTS = Path(__file__).parent

# The test of each row: a file of this folder and a function in it.
TEST_OF_ROW = {
    "CHECK constraint": "test_row_rules.test_a_flow_that_would_break_a_constraint_commits_nothing",
    "column invariant": "test_row_rules.test_an_invariant_of_a_column_holds",
    "NOT NULL, nested too": "test_row_rules.test_no_write_puts_a_null_into_a_required_column",
    "generated column": "test_row_rules.test_given_values_must_equal_the_generation_expression",
    "default": "test_row_rules.test_a_constant_default_is_the_value_of_an_absent_column",
    "identity column": "test_row_rules.test_no_write_sets_an_identity_column",
    "`varchar(n)`, `char(n)`, nested too": "test_row_rules.test_no_write_stores_text_that_is_too_long",
    "collation": "test_promises.test_a_collation_rejects_writes",
    "comments and other metadata of columns": (
        "test_promises.test_an_overwrite_keeps_the_metadata_of_a_column_in_another_case"
    ),
    "partition columns": "test_row_rules.test_an_empty_partition_value_is_the_null_that_will_be_read",
    "appendOnly": "test_merge.test_an_append_only_table_takes_inserts_alone",
    "invariants": "test_row_rules.test_an_invariant_of_a_column_holds",
    "changeDataFeed": "test_operation_matrix.test_an_operation_works_or_names_the_unsupported_feature",
    "columnMapping": "test_restore.test_column_ids_are_never_reused",
    "variantType": "test_features.test_a_variant_at_any_depth_without_the_feature_is_rejected",
    "variantShredding": (
        "test_write_features.test_without_the_property_new_files_are_unshredded_and_the_feature_remains"
    ),
    "deletionVectors": "test_operation_matrix.test_an_operation_works_or_names_the_unsupported_feature",
    "v2Checkpoint": "test_checkpoints.test_a_v2_checkpoint_is_written_if_the_policy_requires_it",
    "vacuumProtocolCheck": "test_vacuum.test_a_table_with_unknown_features_is_rejected",
    "typeWidening": "test_type_widening.test_data_of_wider_types_widens_the_columns_that_it_merges_into",
    "inCommitTimestamp": "test_commit.test_in_commit_timestamps_come_first_and_never_go_back",
    "domainMetadata": "test_snapshot.test_the_last_txn_and_domain_win_and_a_removed_domain_is_omitted",
    "rowTracking": "test_row_tracking.test_a_merge_keeps_the_ids_of_rows_and_gives_new_ones_to_new_rows",
    "clustering": "test_promises.test_clustering_columns_keep_their_statistics",
    "checkpointProtection": "test_log_cleanup.test_protected_checkpoints_expire_together_or_not_at_all",
    "materializePartitionColumns": "test_promises.test_new_files_store_partition_columns_if_asked",
    "icebergCompatV1": "test_features.test_an_unsupported_construct_prevents_appends_and_is_named",
    "icebergCompatV3": "test_promises.test_a_feature_that_is_not_written_rejects_each_change",
    "catalogManaged": "test_catalog_managed.test_a_commit_has_a_transaction_id_and_an_in_commit_timestamp",
    "catalogOwned-preview": "test_features.test_an_unknown_reader_feature_prevents_reads_and_is_named",
    "an unknown feature": "test_features.test_all_unknown_features_are_named_at_once",
    "delta.appendOnly": (
        "test_features.test_the_shredding_property_without_the_feature_prevents_only_writes"
    ),
    "delta.columnMapping.maxColumnId": "test_restore.test_column_ids_are_never_reused",
    "delta.rowTrackingSuspended": "test_row_tracking.test_suspended_row_tracking_does_not_assign_ids",
    "delta.checkpointInterval": "test_checkpoints.test_a_checkpoint_follows_each_interval",
    "delta.enableExpiredLogCleanup": (
        "test_log_cleanup.test_what_is_older_than_the_checkpoint_before_the_retention_is_deleted"
    ),
    "delta.dropFeatureTruncateHistory.retentionDuration": (
        "test_drop_feature.test_the_message_says_when_the_history_expires"
    ),
    "delta.deletedFileRetentionDuration": "test_vacuum.test_the_default_retention_is_the_table_property",
    "delta.dataSkippingNumIndexedCols": ("test_promises.test_columns_with_statistics_must_be_data_columns"),
    "delta.isolationLevel": "test_restore.test_rows_of_a_concurrent_append_are_a_conflict",
    "delta.parquet.compression.codec": "test_compression_codec.test_new_files_have_the_codec_of_the_table",
    "delta.writePartitionColumnsToParquet": ("test_promises.test_new_files_store_partition_columns_if_asked"),
    "delta.randomizeFilePrefixes": "test_promises.test_random_folders_replace_those_of_partitions",
    "deltaVariant.compatibility": "test_compatibility.test_each_operation_follows_the_property",
    "deltaVariant.export": "test_export.test_this_library_does_not_change_rows_of_an_export",
    "delta.autoOptimize": "spark/test_auto_compaction.test_the_deprecated_property_compacts_too",
    "delta.targetFileSize": "test_promises.test_an_ignored_property_changes_no_write",
    "delta.setTransactionRetentionDuration": "test_promises.test_an_ignored_property_changes_no_write",
    "delta.checkpointRetentionDuration": "test_promises.test_an_ignored_property_changes_no_write",
    "delta.dataSkippingStringPrefixLength": "test_promises.test_an_ignored_property_changes_no_write",
    "delta.enableFullRetentionRollback": "test_promises.test_an_ignored_property_changes_no_write",
    "another name that begins with `delta.`": "test_promises.test_unknown_properties_stay",
    "any other name": "test_promises.test_unknown_properties_stay",
    "`mode`, `where`": "test_promises.test_the_rows_of_an_overwrite_match_where",
    "`partition_by`": "test_promises.test_an_existing_table_is_not_partitioned_again",
    "`schema_mode`": "test_row_rules.test_columns_that_an_append_adds_are_nullable",
    "`configuration`, `name`, `description`": "test_promises.test_an_existing_table_is_not_described_again",
    "nullable=False of the Arrow schema": (
        "test_row_rules.test_an_overwrite_of_the_schema_takes_the_nullability_of_the_data"
    ),
    "`variant_columns`": "test_promises.test_options_that_the_table_excludes_are_rejected",
    "a `ShreddingSchema`": "test_promises.test_options_that_the_table_excludes_are_rejected",
    '`compatibility="unshredded"`': "test_promises.test_options_that_the_table_excludes_are_rejected",
    "`txn`": "test_commit_options.test_a_change_of_rows_with_a_txn_happens_once",
    "`metadata` of the commit": "test_promises.test_a_write_without_changes_records_nothing",
}

ROWS = pa.table({"id": [1, 2], "a": ["x", "y"]})
STATS_COLUMNS = "delta.dataSkippingStatsColumns"


def first_cells(section: str) -> list[str]:
    """Return the first cell of each row of a section's table."""
    rows = [line for line in SECTIONS[section].splitlines() if line.startswith("| ")]
    return [line.split(" | ")[0].removeprefix("| ") for line in rows[1:]]


def key_of(cell: str) -> str:
    """Return the key of a row in TEST_OF_ROW: its first name if that is a feature or a property."""
    first = (CODE.findall(cell) or [cell])[0]
    return first if first in {*FEATURES, *PROPERTIES, *OTHER_PROPERTIES} else cell


def test_each_row_names_a_test_that_exists():
    rows = [key_of(cell) for section in SECTIONS for cell in first_cells(section)]
    assert rows == list(TEST_OF_ROW)
    for test in TEST_OF_ROW.values():
        file, name = test.split(".")
        assert f"def {name}(" in next(TESTS.rglob(f"{file}.py")).read_text(encoding="utf-8"), test


def test_each_feature_and_each_property_has_one_row():
    features = [name for cell in first_cells("Table features") for name in CODE.findall(cell)]
    assert sorted(features) == sorted(FEATURES)
    listed = [name for cell in first_cells("Table properties") for name in CODE.findall(cell)]
    assert sorted({*listed} - {"delta."}) == sorted({*PROPERTIES, *OTHER_PROPERTIES})
    assert len(listed) == len(set(listed))


def test_each_ignored_property_is_in_the_limits():
    ignored = [
        name
        for line in SECTIONS["Table properties"].splitlines()
        if "| ignored" in line
        for name in CODE.findall(line.split(" | ")[0])
    ]
    assert ignored
    assert {*ignored} <= {*CODE.findall(Page("docs/about/limits.md").text)}


def planted(path: Path, rows: pa.Table, metadata: dict[str, dict[str, Any]], **options: Any) -> Path:
    """Create a table and set the field metadata of its columns."""
    dv.write_table(path, rows, **options)

    def change(document: dict[str, Any]) -> None:
        for field in document["fields"]:
            field["metadata"].update(metadata.get(field["name"], {}))

    Table(path).edit_schema(change)
    return path


# Options of the caller that only a new table has


@pytest.mark.parametrize("option", ["name", "description"])
@pytest.mark.parametrize(
    "mode", [{}, {"mode": "overwrite"}, {"mode": "overwrite", "schema_mode": "overwrite"}]
)
def test_an_existing_table_is_not_described_again(tmp_path: Path, option: str, mode: dict[str, Any]):
    write = {"mode": "append", **mode}
    dv.write_table(tmp_path / "t", ROWS, **{option: "first"})
    with pytest.raises(ValueError, match=f"{option}: expected that of the existing table, 'first', got"):
        dv.write_table(tmp_path / "t", ROWS, **write, **{option: "second"})
    # A loop that creates the table and then appends can pass the same options each time.
    assert dv.write_table(tmp_path / "t", ROWS, **write, **{option: "first"}).version == 1
    assert getattr(dv.load_snapshot(tmp_path / "t").metadata, option) == "first"


def test_the_properties_of_an_existing_table_may_be_passed_again_but_not_changed(tmp_path: Path):
    same = {"delta.checkpointInterval": "5"}
    dv.write_table(tmp_path / "t", ROWS, configuration=same)
    assert dv.write_table(tmp_path / "t", ROWS, mode="append", configuration=same).version == 1
    for other in ({"delta.checkpointInterval": "6"}, {**same, "owner": "us"}):
        with pytest.raises(
            ValueError, match=r"cannot set .*: omit it, or alter the table \(set_properties\)"
        ):
            dv.write_table(tmp_path / "t", ROWS, mode="append", configuration=other)


# Properties


def paths_of(table: Path) -> list[str]:
    return [file.relative_to(table).as_posix() for file in sorted(table.rglob("*.parquet"))]


@pytest.mark.parametrize("mapping", ["none", "name"])
@pytest.mark.parametrize(
    ("prop", "are_stored"),
    [
        ("delta.enableMaterializePartitionColumnsFeature", True),
        ("delta.writePartitionColumnsToParquet", True),
        ("delta.appendOnly", False),
    ],
)
def test_new_files_store_partition_columns_if_asked(
    tmp_path: Path, prop: str, are_stored: bool, mapping: str
):
    # A row group is copied from this many rows.
    count, table = 1 << 16, dv.Table(tmp_path)
    old = pa.table({"p": pa.array(["a", "b"] * count), "id": range(2 * count)})
    settings = {"delta.columnMapping.mode": mapping, "delta.enableChangeDataFeed": "true"}
    table.append(old, partition_by="p", configuration=settings)
    table.set_properties({prop: "true" if are_stored else "false"})
    changes: list[Callable[[], object]] = [
        lambda: table.update({"id": "-1"}, "id = 7"),
        lambda: table.delete("id = 8"),
        lambda: table.update({"p": "'c'"}, "id = 9"),
        lambda: table.append([{"id": -2, "p": "a"}]),
        lambda: table.merge([{"id": 10, "p": "a"}], "target.id = source.id").when_matched_delete().execute(),
        lambda: table.optimize(),
    ]
    known = set(tmp_path.rglob("*.parquet"))
    for change in changes:
        change()
        new = {path for path in tmp_path.rglob("*.parquet") if "_delta_log" not in path.parts} - known
        assert new
        counts = {pq.read_metadata(path).num_columns - ("_change_data" in path.parts) for path in new}
        assert counts == {1 + are_stored}
        known |= new
    kept = {row: "ab"[row % 2] for row in range(2 * count) if row not in (7, 8, 10)}
    rows = table.scan(columns=["id", "p"]).to_table().to_pylist()
    assert {row["id"]: row["p"] for row in rows} == {**kept, 9: "c", -1: "b", -2: "a"}
    assert dv.audit_table(tmp_path, data=True).is_clean


def test_random_folders_replace_those_of_partitions(tmp_path: Path):
    table = tmp_path / "t"
    random = {"delta.randomizeFilePrefixes": "true", "delta.enableChangeDataFeed": "true"}
    dv.write_table(table, ROWS, partition_by="a", configuration=random)
    assert all(re.fullmatch(r"[0-9a-f]{2}/part-[^/]+", path) for path in paths_of(table))
    dv.set_properties(table, {"delta.randomPrefixLength": "7"})
    before = {*paths_of(table)}
    dv.update(table, {"id": "id + 1"}, where="a = 'x'")
    written = {*paths_of(table)} - before
    patterns = (r"[0-9a-f]{7}/part-[^/]+", r"_change_data/[0-9a-f]{7}/cdc-[^/]+")
    assert [sum(re.fullmatch(each, path) is not None for path in written) for each in patterns] == [1, 1]
    rows = sorted(map(tuple, (row.values() for row in dv.read_table(table).to_pylist())))
    assert rows == [(2, "x"), (2, "y")]


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [("id,b", {}, "no column 'b'"), ("A", {"partition_by": "a"}, "'A', but partition columns")],
)
def test_columns_with_statistics_must_be_data_columns(tmp_path: Path, names, options, message):
    settings = {STATS_COLUMNS: names}
    with raises_at(SchemaError, message):
        dv.write_table(tmp_path / "t", ROWS, configuration=settings, **options)
    wider = ROWS.append_column("b", pa.array([1, 2]))
    dv.write_table(tmp_path / "t", wider, configuration=settings)
    # Delta on Spark checks the property with each change of the metadata, too.
    with raises_at(SchemaError, message):
        dv.write_table(tmp_path / "t", ROWS, mode="overwrite", schema_mode="overwrite", **options)


def test_clustering_columns_keep_their_statistics(tmp_path: Path):
    dv.write_table(tmp_path / "t", ROWS)
    table = Table(tmp_path / "t")
    domain = {"clusteringColumns": [["a"]], "domainName": "delta.clustering"}
    action = {"domain": "delta.clustering", "configuration": json.dumps(domain), "removed": False}
    table.rewrite([*table.actions(), {"domainMetadata": action}])
    for settings in ({STATS_COLUMNS: "id"}, {"delta.dataSkippingNumIndexedCols": "1"}):
        with raises_at(SchemaError, "no statistics of the clustering column a", column="a"):
            dv.set_properties(table.path, settings)
    assert dv.set_properties(table.path, {"delta.dataSkippingNumIndexedCols": "2"}).version == 1


# Metadata of columns


def test_an_overwrite_keeps_the_metadata_of_a_column_in_another_case(tmp_path: Path):
    comment = {"a": {"comment": "why", "__CHAR_VARCHAR_TYPE_STRING": "varchar(1)"}}
    table = planted(tmp_path / "t", ROWS, comment)
    dv.write_table(table, ROWS.rename_columns(["id", "A"]), mode="overwrite", schema_mode="overwrite")
    (field,) = (field for field in dv.load_snapshot(table).schema.fields if field.name == "A")
    assert field.metadata == comment["a"]


def test_an_overwrite_keeps_the_columns_that_a_generated_column_reads(tmp_path: Path):
    table = planted(tmp_path / "t", ROWS, {"a": {"delta.generationExpression": "cast(id as string)"}})
    with raises_at(SchemaError, "the generated column a of .* reads", column="id"):
        dv.write_table(table, ROWS.select(["a"]), mode="overwrite", schema_mode="overwrite")
    dv.write_table(table, ROWS.select(["id"]), mode="overwrite", schema_mode="overwrite")


@pytest.mark.parametrize(
    "write",
    [
        lambda table: dv.write_table(table, ROWS, mode="append"),
        lambda table: dv.update(table, {"id": "0"}, where="a = 'X'"),
        lambda table: dv.delete(table, "a = 'X'"),
    ],
    ids=["append", "update", "delete"],
)
def test_a_collation_rejects_writes(tmp_path: Path, write):
    table = planted(tmp_path / "t", ROWS, {"a": {"__COLLATIONS": {"a": "spark.UTF8_LCASE"}}})
    with raises_at(UnsupportedFeatureError, "the collation of the column 'a'", column="a"):
        write(table)
    assert dv.load_snapshot(table).version == 0


# Promises without a test elsewhere


CHANGES = {
    "append": lambda table: dv.write_table(table, ROWS, mode="append"),
    "overwrite": lambda table: dv.write_table(table, ROWS, mode="overwrite"),
    "update": lambda table: dv.update(table, {"id": "0"}),
    "delete": lambda table: dv.delete(table, "id = 1"),
    "optimize": dv.optimize,
    "restore": lambda table: dv.restore(table, 0),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", ["icebergCompatV3", "collations", "collations-preview", "unknown"])
def test_a_feature_that_is_not_written_rejects_each_change(tmp_path: Path, name: str, change: str):
    table = Table(tmp_path / "t")
    dv.write_table(table.path, ROWS)
    dv.write_table(table.path, ROWS, mode="append")
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["appendOnly", name]}
    table.add_commit(2, {"protocol": protocol})
    with raises_at(UnsupportedFeatureError, f"does not support its table features {name}"):
        CHANGES[change](table.path)
    assert dv.read_table(table.path).to_table().num_rows == 4


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("delta.targetFileSize", "1"),
        ("delta.tuneFileSizesForRewrites", "true"),
        ("delta.setTransactionRetentionDuration", "interval 1 second"),
        ("delta.checkpointRetentionDuration", "interval 1 second"),
        ("delta.dataSkippingStringPrefixLength", "1"),
        ("delta.enableFullRetentionRollback", "false"),
    ],
)
def test_an_ignored_property_changes_no_write(tmp_path: Path, name: str, text: str):
    rows = ROWS.set_column(1, "a", pa.array(["x" * 20, "y" * 20]))
    once = dv.CommitOptions(txn=("loader", 1))
    (file,) = dv.write_table(tmp_path / "t", rows, configuration={name: text}, commit=once).files
    assert (file.stats.min_values["a"], file.stats.max_values["a"]) == ("x" * 20, "y" * 20)
    assert dv.write_table(tmp_path / "t", rows, mode="append", commit=once).repeated


def test_unknown_properties_stay(tmp_path: Path):
    table = Table(tmp_path / "t")
    dv.write_table(table.path, ROWS, configuration={"owner": "us"})
    table.set_property("delta.fromTheFuture", "1")
    for change in ("append", "update", "delete", "optimize"):
        CHANGES[change](table.path)
    wider = ROWS.append_column("b", ROWS["id"])
    dv.write_table(table.path, wider, mode="append", schema_mode="merge")
    dv.write_table(table.path, ROWS, mode="overwrite", schema_mode="overwrite")
    assert dv.load_snapshot(table.path).properties == {"owner": "us", "delta.fromTheFuture": "1"}


def test_the_rows_of_an_overwrite_match_where(tmp_path: Path):
    with raises_at(PredicateViolationError, row=1):
        dv.write_table(tmp_path / "t", ROWS, mode="overwrite", where="id = 1")
    dv.write_table(tmp_path / "t", ROWS)
    with raises_at(PredicateViolationError, row=0):
        dv.write_table(tmp_path / "t", ROWS, mode="overwrite", where="id = 2")
    with pytest.raises(ValueError, match="where requires mode='overwrite'"):
        dv.write_table(tmp_path / "t", ROWS, mode="append", where="id > 0")


def test_an_existing_table_is_not_partitioned_again(tmp_path: Path):
    dv.write_table(tmp_path / "t", ROWS, partition_by="a")
    with pytest.raises(ValueError, match=r"partition columns .*\['a'\], got \['id'\]: omit them"):
        dv.write_table(tmp_path / "t", ROWS, mode="overwrite", partition_by="id")
    dv.write_table(tmp_path / "t", ROWS, mode="append", partition_by="a")
    dv.write_table(tmp_path / "t", ROWS, mode="overwrite", schema_mode="overwrite", partition_by="id")
    assert dv.load_snapshot(tmp_path / "t").partition_columns == ("id",)


def test_options_that_the_table_excludes_are_rejected(tmp_path: Path):
    event = pa.table({"event": ['{"n": 1}']})
    options = {"mode": "append", "variant_columns": ["event"]}
    with pytest.raises(ValueError, match="does not have a column 'other'"):
        dv.write_table(tmp_path / "t", event, variant_columns=["other"])
    dv.write_table(tmp_path / "plain", event, variant_columns=["event"], shredding=None)
    schema = dv.ShreddingSchema.of({"n": pa.int64()})
    with pytest.raises(ShreddingNotEnabledError):
        dv.write_table(tmp_path / "plain", event, **options, shredding=schema)
    dv.write_table(tmp_path / "t", event, variant_columns=["event"])
    unshredded = dv.FileOptions(compatibility="unshredded")
    with raises_at(UnsupportedFeatureError, "for readers without shredding"):
        dv.write_table(tmp_path / "t", event, **options, files=unshredded)


def test_a_write_without_changes_records_nothing(tmp_path: Path):
    commit = dv.CommitOptions(txn=("loader", 1), metadata="run 1")
    dv.write_table(tmp_path / "t", ROWS)
    assert dv.write_table(tmp_path / "t", ROWS.slice(0, 0), mode="append", commit=commit).version is None
    assert dv.delete(tmp_path / "t", "id = 9", commit=commit).version is None
    assert dv.write_table(tmp_path / "t", ROWS, mode="append", commit=commit).version == 1
    assert dv.history(tmp_path / "t", limit=1)[0].metadata == "run 1"
