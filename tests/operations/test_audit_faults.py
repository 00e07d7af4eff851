"""Each audit rule reports a table that violates it, and reports nothing for a valid table."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.errors import raises_at
from support.planting import (
    EMPTY,
    INT8_1,
    LIST_OF_INTS,
    METADATA_OF_A,
    OBJECT_A_1,
    OBJECT_OF_A,
    UNSHREDDED,
    Table,
    bound_of,
    column,
    group,
    inline_vector,
)

import delta_variant as dv
from delta_variant.errors import ProtocolError, SchemaError
from delta_variant.operations.audit import RULES
from delta_variant.protocol import z85
from delta_variant_conformance.parquet_footer import annotate

VIOLATIONS: dict[str, tuple[str, str, bool, Callable[[Table], None]]] = {}
FEATURES = ["variantType", "variantShredding"]

BIGINT = {"type": "bigint", "value": 1}
SIDES = ("minValues", "maxValues")


def breaks(rule: str, severity: str = "error", *, repairable: bool = False):
    """Register a function that makes a table violate a rule."""

    def register(damage):
        VIOLATIONS[f"{rule}-{damage.__name__}"] = (rule, severity, repairable, damage)
        return damage

    return register


# The log.


@breaks("L0")
def a_table_that_cannot_be_loaded(table):
    table.rewrite([action for action in table.actions() if "protocol" not in action])


@breaks("L1")
def a_line_that_is_not_an_action(table):
    table.commit.write_text(table.commit.read_text("utf-8") + '{"add": {"path":\n', "utf-8")


@breaks("L1")
def a_path_that_is_not_utf8(table):
    table.edit("add", lambda add: add.update(path="%ff.parquet"))


@breaks("L2")
def a_version_that_is_missing(table):
    table.add_commit(2, {"commitInfo": {"operation": "WRITE"}})


@breaks("L2")
def a_gap_of_many_versions(table):
    table.add_commit(2**63 - 1, {"commitInfo": {"operation": "WRITE"}})


@breaks("L3")
def two_metadata_actions(table):
    actions = table.actions()
    table.rewrite([*actions, *(action for action in actions if "metaData" in action)])


@breaks("L4")
def no_metadata(table):
    table.rewrite([action for action in table.actions() if "metaData" not in action])


@breaks("L5", "warning")
def a_checkpoint_cut_short(table):
    (table.log / f"{0:020d}.checkpoint.parquet").write_bytes(b"PAR1")


@breaks("L5", "warning")
def a_checkpoint_that_lacks_a_part(table):
    (table.log / f"{0:020d}.checkpoint.{1:010d}.{2:010d}.parquet").write_bytes(b"PAR1")


@breaks("L5", "warning")
def a_checkpoint_that_lacks_most_of_its_parts(table):
    (table.log / f"{0:020d}.checkpoint.{1:010d}.{9_999_999_999:010d}.parquet").write_bytes(b"PAR1")


@breaks("L6", "warning")
def a_last_checkpoint_that_is_not_an_object(table):
    (table.log / "_last_checkpoint").write_text("0", "utf-8")


@breaks("L6", "warning")
def a_last_checkpoint_without_its_checkpoint(table):
    (table.log / "_last_checkpoint").write_text('{"version": 0, "size": 1}', "utf-8")


@breaks("L8", "warning")
def a_checksum_of_another_state(table):
    text = json.dumps({"tableSizeBytes": 1, "numFiles": 1})
    (table.log / f"{0:020d}.crc").write_text(text, "utf-8")


@breaks("L9")
def a_commit_without_its_timestamp(table):
    table.set_property("delta.enableInCommitTimestamps", "true")
    table.edit("protocol", lambda each: each["writerFeatures"].append("inCommitTimestamp"))


def _write_compaction(table, actions):
    table.add_commit(1, {"commitInfo": {"operation": "WRITE"}})
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (table.log / f"{0:020d}.{1:020d}.compacted.json").write_text(text, "utf-8")


def _reconciled(table):
    return [action for action in table.actions() if "commitInfo" not in action]


@breaks("L10")
def a_compaction_that_is_not_reconciled(table):
    actions = _reconciled(table)
    (add,) = (action["add"] for action in actions if "add" in action)
    _write_compaction(table, [*actions, {"remove": {"path": add["path"], "dataChange": True}}])


@breaks("L10")
def a_compaction_that_cannot_be_read(table):
    _write_compaction(table, [{"add": {"path": 1}}])


@breaks("L11")
def a_compaction_that_lacks_a_file(table):
    _write_compaction(table, [action for action in _reconciled(table) if "add" not in action])


@breaks("L11")
def a_compaction_with_an_extra_file(table):
    actions = _reconciled(table)
    (add,) = (action["add"] for action in actions if "add" in action)
    _write_compaction(table, [*actions, {"remove": {"path": f"x{add['path']}", "dataChange": True}}])


@breaks("L11")
def a_compaction_with_other_properties(table):
    actions = json.loads(json.dumps(_reconciled(table)))
    (metadata,) = (action["metaData"] for action in actions if "metaData" in action)
    metadata["configuration"]["delta.appendOnly"] = "true"
    _write_compaction(table, actions)


@breaks("L12")
def a_commit_of_a_version_above_64_bits(table):
    table.add_commit(99999999999999999999, {"commitInfo": {"operation": "WRITE"}})


@breaks("L12")
def a_checkpoint_of_a_version_above_64_bits(table):
    (table.log / f"{2**63:020d}.checkpoint.parquet").write_bytes(b"PAR1")


@breaks("L12")
def a_compaction_that_ends_above_64_bits(table):
    (table.log / f"{0:020d}.{2**63:020d}.compacted.json").write_bytes(b"{}")


@breaks("L12")
def a_checksum_of_a_version_above_64_bits(table):
    (table.log / f"{2**63:020d}.crc").write_bytes(b"{}")


@breaks("L1")
def an_empty_commit(table):
    table.append()
    (table.log / f"{1:020d}.json").write_bytes(b"")


@breaks("L5", "warning")
def a_checkpoint_without_a_protocol(table):
    table.edit_checkpoint(lambda rows: rows.remove(next(row for row in rows if row["protocol"])))


@breaks("L6", "warning")
def a_last_checkpoint_of_another_size(table):
    table.edit_pointer(size=99)


@breaks("L6", "warning")
def a_last_checkpoint_with_another_checksum(table):
    table.edit_pointer(checksum="0" * 32)


@breaks("L8", "warning")
def a_checksum_of_an_older_version_that_differs(table):
    table.append()
    a_checksum_of_another_state(table)


@breaks("L13")
def a_checkpoint_that_lacks_a_file(table):
    table.edit_checkpoint(lambda rows: rows.remove(next(row for row in rows if row["add"])))


@breaks("L13")
def a_checkpoint_that_lacks_a_file_next_to_a_checksum(table):
    """The checksum agrees with the commits, so that only the checkpoint is reported."""
    table.append()
    a_checkpoint_that_lacks_a_file(table)


@breaks("L13")
def a_checkpoint_with_a_file_twice(table):
    table.edit_checkpoint(lambda rows: rows.append(next(row for row in rows if row["add"])))


@breaks("L13")
def a_checkpoint_with_another_size_of_a_file(table):
    table.edit_checkpoint(lambda rows: [add.update(size=1) for add in _of_kind(rows, "add")])


@breaks("L13")
def a_checkpoint_with_other_statistics(table):
    table.edit_checkpoint(_change_stats)


@breaks("L13")
def a_checkpoint_with_another_property(table):
    def change(rows):
        for metadata in _of_kind(rows, "metaData"):
            metadata["configuration"] = [("delta.appendOnly", "true")]

    table.edit_checkpoint(change)


@breaks("L13")
def a_checkpoint_with_another_schema(table):
    def change(rows):
        for metadata in _of_kind(rows, "metaData"):
            metadata["schemaString"] = metadata["schemaString"].replace('"id"', '"key"')

    table.edit_checkpoint(change)


@breaks("L13")
def a_checkpoint_that_lacks_a_feature(table):
    def change(rows):
        for protocol in _of_kind(rows, "protocol"):
            protocol["writerFeatures"] = ["variantType"]

    table.edit_checkpoint(change)


@breaks("L13")
def a_checkpoint_with_another_transaction(table):
    table.rewrite([*table.actions(), {"txn": {"appId": "loader", "version": 3}}])
    table.edit_checkpoint(lambda rows: [txn.update(version=2) for txn in _of_kind(rows, "txn")])


@breaks("L13")
def a_checkpoint_that_lacks_a_domain(table):
    domain = {"domain": "own", "configuration": "{}", "removed": False}
    table.rewrite([*table.actions(), {"domainMetadata": domain}])
    table.edit_protocol(FEATURES, [*FEATURES, "domainMetadata"])
    table.edit_checkpoint(lambda rows: rows.remove(next(row for row in rows if row["domainMetadata"])))


@breaks("L13")
def a_checkpoint_that_lacks_a_tombstone(table):
    now = time.time_ns() // 10**6
    remove = {"path": "x.parquet", "deletionTimestamp": now, "dataChange": True}
    table.rewrite([*table.actions(), {"remove": remove}])
    table.edit_checkpoint(lambda rows: rows.remove(next(row for row in rows if row["remove"])))


def _remove_again(table, *more):
    """Remove the file, and then again, as two writers do that did not detect the conflict."""
    (add,) = (action["add"] for action in table.actions() if "add" in action)
    remove = {"path": add["path"], "deletionTimestamp": 1, "dataChange": False}
    info = {"commitInfo": {"operation": "OPTIMIZE"}}
    copy = table.path / "copy.parquet"
    copy.write_bytes(table.file.read_bytes())
    table.add_commit(1, info, {"remove": remove}, {"add": {**add, "path": copy.name}})
    table.add_commit(2, info, {"remove": remove}, *more)


@breaks("L14", "warning")
def a_file_that_was_removed_twice(table):
    _remove_again(table)


@breaks("L14")
def a_file_that_two_commits_rewrote(table):
    (add,) = (action["add"] for action in table.actions() if "add" in action)
    _remove_again(table, {"add": {**add, "path": "other.parquet"}})
    (table.path / "other.parquet").write_bytes((table.path / "copy.parquet").read_bytes())


@breaks("L3")
def a_file_that_a_commit_adds_and_removes(table):
    (add,) = (action["add"] for action in table.actions() if "add" in action)
    remove = {"path": add["path"], "deletionTimestamp": 1, "dataChange": True}
    table.rewrite([*table.actions(), {"remove": remove}])


@breaks("L5", "warning")
def a_checkpoint_with_a_damaged_page_that_no_read_of_files_needs(table):
    """The row group of the metadata has a page of the null paths of files."""
    checkpoint = table.write_checkpoint()
    place = pq.ParquetFile(checkpoint).metadata.row_group(0).column(0)
    data = bytearray(checkpoint.read_bytes())
    end = place.data_page_offset + place.total_compressed_size
    data[end - 4 : end] = bytes(byte ^ 0xFF for byte in data[end - 4 : end])
    checkpoint.write_bytes(data)


@breaks("L5", "warning")
def a_checkpoint_whose_footer_excludes_its_files(table):
    """Readers skip the row groups whose paths of files are all null."""
    checkpoint = table.write_checkpoint()
    rows = pq.read_table(checkpoint)
    pq.write_table(rows, checkpoint, compression="none", use_dictionary=False)
    file = pq.ParquetFile(checkpoint).metadata.row_group(0).column(0)
    assert (file.path_in_schema, file.statistics.null_count) == ("add.path", len(rows) - 1)
    _replace_in_footer(checkpoint, bytes([0x16, 2 * (len(rows) - 1)]), bytes([0x16, 2 * len(rows)]))


@breaks("L15", "warning")
def a_commit_with_a_short_name(table):
    (table.log / "1.json").write_text('{"commitInfo": {}}', "utf-8")


@breaks("L15", "warning")
def a_copy_of_a_commit(table):
    (table.log / f"{0:020d} (1).json").write_text('{"commitInfo": {}}', "utf-8")


@breaks("L16")
def a_file_that_is_active_with_and_without_a_deletion_vector(table):
    table.edit_protocol([*FEATURES, "deletionVectors"], [*FEATURES, "deletionVectors"])
    (add,) = (action["add"] for action in table.actions() if "add" in action)
    table.add_commit(1, {"add": {**add, "deletionVector": inline_vector(1)}})


@breaks("L16")
def a_file_that_is_active_with_its_relative_and_its_absolute_path(table):
    """Spark reads the rows of the file twice."""
    (add,) = (action["add"] for action in table.actions() if "add" in action)
    table.add_commit(1, {"add": {**add, "path": table.file.as_uri()}})


def _track_changes(table, size):
    table.set_property("delta.enableChangeDataFeed", "true")
    table.edit_protocol(FEATURES, [*FEATURES, "changeDataFeed"])
    cdc = {"path": "_change_data/c.parquet", "partitionValues": {}, "size": size, "dataChange": False}
    table.rewrite([*table.actions(), {"cdc": cdc}])


@breaks("F10")
def a_change_file_that_is_missing(table):
    _track_changes(table, 1)


@breaks("F10")
def a_change_file_of_another_size(table):
    _track_changes(table, 1)
    (table.path / "_change_data").mkdir()
    (table.path / "_change_data" / "c.parquet").write_bytes(b"PAR1")


@breaks("F10", "info")
def a_change_file_that_vacuum_may_have_deleted(table):
    _track_changes(table, 1)
    table.edit("commitInfo", lambda info: info.update(timestamp=1))


@breaks("F10", "info")
def a_change_file_that_a_vacuum_without_retention_deleted(table):
    _track_changes(table, 1)
    now = time.time_ns() // 10**6
    table.edit("commitInfo", lambda info: info.update(timestamp=now - 1))
    parameters = {"specifiedRetentionMillis": "0"}
    vacuum = {"operation": "VACUUM START", "operationParameters": parameters, "timestamp": now}
    table.add_commit(1, {"commitInfo": vacuum})


# Protocol, schema and properties.


@breaks("T4")
def a_timestamp_ntz_without_the_feature(table):
    table.edit_schema(lambda schema: schema["fields"].append(_field("at", "timestamp_ntz")))


@breaks("T17")
def two_columns_of_one_id(table):
    _map_columns(table, 1, 1)


@breaks("T17")
def a_column_id_above_the_greatest(table):
    _map_columns(table, 1, 9)


@breaks("T17")
def a_mapped_column_without_an_id(table):
    _map_columns(table, 1, None)


def _rename_physically(table, *, keeps_files):
    """Commit other physical names with the same ids, as no ALTER TABLE does."""
    _map_columns(table, 1, 2)
    (metadata,) = (action["metaData"] for action in table.actions() if "metaData" in action)
    (add,) = (action["add"] for action in table.actions() if "add" in action)
    schema = json.loads(metadata["schemaString"])
    schema["fields"][0]["metadata"]["delta.columnMapping.physicalName"] = "other"
    remove = {"path": add["path"], "deletionTimestamp": 1, "dataChange": True}
    removes = [] if keeps_files else [{"remove": remove}]
    metadata["schemaString"] = json.dumps(schema)
    table.add_commit(1, {"commitInfo": {}}, {"metaData": metadata}, *removes)
    return metadata, {"add": add}


@breaks("T19")
def a_physical_name_that_a_commit_changes(table):
    _rename_physically(table, keeps_files=True)


@breaks("T19")
def a_mapping_that_a_commit_turns_off(table):
    metadata, add = _rename_physically(table, keeps_files=False)
    table.add_commit(2, {"commitInfo": {}}, add)
    del metadata["configuration"]["delta.columnMapping.mode"]
    table.add_commit(3, {"commitInfo": {}}, {"metaData": metadata})


def test_a_table_that_is_replaced_has_other_physical_names(table):
    _rename_physically(table, keeps_files=False)
    assert dv.audit_table(table.path).findings == ()


@breaks("T18")
def another_format_than_parquet(table):
    table.edit("metaData", lambda metadata: metadata["format"].update(provider="csv"))


def _map_columns(table, *ids):
    """Map the columns by name with these ids, under their logical names."""
    table.edit_protocol([*FEATURES, "columnMapping"], [*FEATURES, "columnMapping"])
    table.set_property("delta.columnMapping.mode", "name")
    table.set_property("delta.columnMapping.maxColumnId", "2")

    def change(schema):
        for field, column_id in zip(schema["fields"], ids, strict=True):
            mapping = {"delta.columnMapping.physicalName": field["name"]}
            field["metadata"] = mapping | ({"delta.columnMapping.id": column_id} if column_id else {})

    table.edit_schema(change)


@breaks("H4")
def a_constraint_without_the_feature(table):
    table.set_property("delta.constraints.positive", "id >= 0")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("delta.invariants", '{"expression": {"expression": "id >= 0"}}'),
        ("delta.generationExpression", "1"),
        ("delta.identity.start", 1),
        ("CURRENT_DEFAULT", "1"),
        ("delta.typeChanges", [{"fromType": "integer", "toType": "long"}]),
        ("__COLLATIONS", {"id": "spark.UTF8_LCASE"}),
    ],
)
def test_the_metadata_of_a_column_needs_a_feature(table, key, value):
    table.edit_protocol(FEATURES, FEATURES)
    table.edit_schema(lambda schema: schema["fields"][0]["metadata"].update({key: value}))
    assert ("H10", "id") in {(each.rule, each.column) for each in dv.audit_table(table.path).findings}


@pytest.mark.parametrize("feature", ["collations", "collations-preview"])
def test_a_collation_has_a_feature_under_either_name(table, feature):
    """Delta's golden tables have both names."""
    table.edit_protocol(FEATURES, [*FEATURES, feature])
    collation = {"__COLLATIONS": {"id": "spark.UTF8_LCASE"}}
    table.edit_schema(lambda schema: schema["fields"][0]["metadata"].update(collation))
    assert "H10" not in {finding.rule for finding in dv.audit_table(table.path).findings}


@breaks("H10")
def a_generated_column_without_the_feature(table):
    generation = {"delta.generationExpression": "1"}
    table.edit_schema(lambda schema: schema["fields"][0]["metadata"].update(generation))


@breaks("H10")
def a_domain_without_the_feature(table):
    domain = {"domain": "own", "configuration": "{}", "removed": False}
    table.rewrite([*table.actions(), {"domainMetadata": domain}])


@breaks("H10")
def clustering_columns_without_the_feature(table):
    table.edit_protocol(FEATURES, [*FEATURES, "domainMetadata"])
    domain = {
        "domain": "delta.clustering",
        "configuration": '{"clusteringColumns":[["id"]]}',
        "removed": False,
    }
    table.rewrite([*table.actions(), {"domainMetadata": domain}])


@breaks("H10")
def a_deletion_vector_without_the_feature(table):
    table.edit("add", lambda add: add.update(deletionVector=inline_vector(1)))


@breaks("H10")
def row_ids_without_the_feature(table):
    table.edit("add", lambda add: add.update(baseRowId=0, defaultRowCommitVersion=0))


def _track_rows(table, mark):
    """Give the file of each version the row ids 0 to 3."""
    table.set_property("delta.enableRowTracking", "true")
    table.edit_protocol(FEATURES, [*FEATURES, "domainMetadata", "rowTracking"])
    table.edit("add", lambda add: add.update(baseRowId=0, defaultRowCommitVersion=0))
    text = json.dumps({"rowIdHighWaterMark": mark})
    domain = {"domain": "delta.rowTracking", "configuration": text, "removed": False}
    table.rewrite([*table.actions(), {"domainMetadata": domain}])


@breaks("F9")
def row_ids_without_the_version_of_the_commit(table):
    _track_rows(table, 3)
    table.edit("add", lambda add: add.pop("defaultRowCommitVersion"))


@breaks("F9")
def a_row_commit_version_later_than_the_table(table):
    _track_rows(table, 3)
    table.edit("add", lambda add: add.update(defaultRowCommitVersion=1))


@breaks("F9")
def a_negative_row_id(table):
    _track_rows(table, 3)
    table.edit("add", lambda add: add.update(baseRowId=-1))


@breaks("F13")
def two_files_of_the_same_row_ids(table):
    _track_rows(table, 3)
    (add,) = (action["add"] for action in table.actions() if "add" in action)
    (table.path / "copy.parquet").write_bytes(table.file.read_bytes())
    table.add_commit(1, {"commitInfo": {}}, {"add": {**add, "path": "copy.parquet", "baseRowId": 3}})


@breaks("F14")
def row_ids_above_the_high_water_mark(table):
    _track_rows(table, 2)


@breaks("F14")
def row_ids_without_a_high_water_mark(table):
    _track_rows(table, 3)
    table.rewrite([action for action in table.actions() if "domainMetadata" not in action])


@breaks("F11", "warning")
def a_modification_time_in_seconds(table):
    table.edit("add", lambda add: add.update(modificationTime=add["modificationTime"] // 1000))


@breaks("F11", "warning")
def a_modification_time_before_1970(table):
    table.edit("add", lambda add: add.update(modificationTime=-1))


@breaks("F11", "warning")
def a_modification_time_in_microseconds(table):
    table.edit("add", lambda add: add.update(modificationTime=add["modificationTime"] * 1000))


@breaks("T1")
def a_type_that_delta_does_not_have(table):
    table.edit_schema(lambda schema: schema["fields"][1].update(type="variante"))


@breaks("T1", "warning")
def the_type_as_an_object(table):
    table.edit_schema(lambda schema: schema["fields"][1].update(type={"type": "variant"}))


@breaks("T3", "info")
def two_names_of_the_type(table):
    table.edit_protocol([*FEATURES, "variantType-preview"], [*FEATURES, "variantType-preview"])


@breaks("X9", "info")
def two_names_of_shredding(table):
    table.edit_protocol([*FEATURES, "variantShredding-preview"], [*FEATURES, "variantShredding-preview"])


@breaks("T4")
def a_variant_in_a_protocol_without_it(table):
    table.edit_protocol(["timestampNtz"], ["timestampNtz"])


@breaks("T5")
def a_feature_in_one_list(table):
    table.edit_protocol(FEATURES, ["variantType"])


@breaks("T5")
def a_version_without_its_list(table):
    table.edit("protocol", lambda each: each.pop("readerFeatures"))


@breaks("T6")
def a_variant_as_the_key_of_a_map(table):
    key = {"type": "map", "keyType": "variant", "valueType": "string", "valueContainsNull": True}
    table.edit_schema(lambda schema: schema["fields"].append(_field("m", key)))


@breaks("T7")
def a_variant_partition_column(table):
    table.edit("metaData", lambda metadata: metadata.update(partitionColumns=["v"]))


def _cluster(table, configuration):
    domain = {"domain": "delta.clustering", "configuration": configuration, "removed": False}
    table.rewrite([*table.actions(), {"domainMetadata": domain}])


@breaks("T7")
def a_variant_clustering_column(table):
    """Delta on Spark and the kernels write a list of names for each column."""
    _cluster(table, '{"clusteringColumns":[["v"]]}')


@breaks("T7")
def a_variant_clustering_column_as_a_string(table):
    """PROTOCOL.md, "Writer Requirements for Clustered Table": the example has a string for each column."""
    _cluster(table, '{"clusteringColumns":["id", "v"]}')


@breaks("T20")
def a_clustering_column_that_the_table_lacks(table):
    table.edit_protocol(FEATURES, [*FEATURES, "clustering", "domainMetadata"])
    _cluster(table, '{"clusteringColumns":[["id"], ["other"]]}')


@breaks("T20")
def a_clustering_domain_that_is_not_json(table):
    table.edit_protocol(FEATURES, [*FEATURES, "clustering", "domainMetadata"])
    _cluster(table, '{"clusteringColumns":')


@breaks("T7")
def a_generated_variant(table):
    metadata = {"delta.generationExpression": "parse_json(x)"}
    table.edit_schema(lambda schema: schema["fields"][1].update(metadata=metadata))


@breaks("T11")
def a_column_without_a_physical_name(table):
    table.set_property("delta.columnMapping.mode", "name")


@breaks("T11")
def a_file_without_field_ids(table):
    table.set_property("delta.columnMapping.mode", "id")


@breaks("T13")
def an_iceberg_compatibility_that_forbids_variants(table):
    table.set_property("delta.enableIcebergCompatV2", "true")


@breaks("T14")
def a_partition_column_that_the_schema_does_not_have(table):
    table.edit("metaData", lambda metadata: metadata.update(partitionColumns=["nowhere"]))


@breaks("T14")
def a_partition_column_in_another_case(table):
    table.edit("metaData", lambda metadata: metadata.update(partitionColumns=["ID"]))


@breaks("T14")
def a_partition_column_named_twice(table):
    table.edit("metaData", lambda metadata: metadata.update(partitionColumns=["id", "id"]))


@breaks("T14")
def a_partition_column_that_is_a_struct(table):
    table.edit_schema(lambda schema: schema["fields"].append(_field("s", {"type": "struct", "fields": []})))
    table.edit("metaData", lambda metadata: metadata.update(partitionColumns=["s"]))


@breaks("T14")
def two_columns_of_one_name(table):
    table.edit_schema(lambda schema: schema["fields"].append(schema["fields"][0]))


@breaks("T16", "warning")
def two_columns_that_differ_by_case(table):
    table.edit_schema(lambda schema: schema["fields"].append(_field("ID", "long")))


@breaks("T16", "warning")
def two_nested_fields_that_differ_by_case(table):
    fields = [_field("a", "long"), _field("A", "long")]
    elements = {"type": "struct", "fields": fields}
    array = {"type": "array", "elementType": elements, "containsNull": True}
    table.edit_schema(lambda schema: schema["fields"].append(_field("s", array)))


@breaks("X8", "warning")
def a_default_that_is_not_null(table):
    metadata = {"CURRENT_DEFAULT": "parse_json('1')"}
    table.edit_schema(lambda schema: schema["fields"][1].update(metadata=metadata))


@breaks("H4")
def a_property_without_its_feature(table):
    table.edit_protocol(["variantType"], ["variantType"])


@breaks("H5", "warning")
def a_property_that_is_neither_true_nor_false(table):
    table.set_property("delta.enableVariantShredding", "yes")


@breaks("H8")
def a_shredded_file_without_the_feature(table):
    table.edit_protocol(["variantType"], ["variantType"])


@breaks("H9")
def shredding_without_the_type(table):
    table.edit_protocol(["variantShredding"], ["variantShredding"])


@breaks("S1", "warning")
def an_internal_key_of_spark(table):
    metadata = {"__VARIANT_METADATA_KEY": {}}
    table.edit_schema(lambda schema: schema["fields"][1].update(metadata=metadata))


@breaks("S2", "warning")
def a_feature_of_the_future(table):
    table.edit_protocol([*FEATURES, "wishes"], [*FEATURES, "wishes"])


# Data files.


@breaks("F1")
def a_missing_file(table):
    table.file.unlink()


@breaks("F2")
def a_file_of_another_size(table):
    table.edit("add", lambda add: add.update(size=1))


@breaks("F3")
def a_file_cut_short(table):
    data = table.file.read_bytes()
    table.file.write_bytes(data[: len(data) // 2])


@breaks("F4")
def a_partition_value_without_its_column(table):
    table.edit("add", lambda add: add.update(partitionValues={"day": "1"}))


@breaks("F6")
def a_missing_deletion_vector(table):
    vector = {
        "storageType": "u",
        "pathOrInlineDv": "^-aqEH.-t@S}K{vb[*k^",
        "sizeInBytes": 4,
        "cardinality": 1,
    }
    table.edit("add", lambda add: add.update(deletionVector=vector))


@breaks("F7")
def a_deletion_vector_with_too_many_rows(table):
    vector = {"storageType": "i", "pathOrInlineDv": "00000", "sizeInBytes": 4, "cardinality": 9}
    table.edit("add", lambda add: add.update(deletionVector=vector))


@breaks("F8")
def a_page_that_cannot_be_decoded(table):
    data = bytearray(table.file.read_bytes())
    data[4:400] = bytes(396)
    table.file.write_bytes(data)


@breaks("F9")
def a_file_without_row_ids(table):
    features = [*FEATURES, "rowTracking", "domainMetadata"]
    table.edit_protocol(FEATURES, features)
    table.set_property("delta.enableRowTracking", "true")


@breaks("T10")
def a_column_of_text(table):
    table.replace_file(pa.array(["{}"]))


# The Parquet schema of a Variant column.


@breaks("P-S1")
def a_group_without_metadata(table):
    table.replace_rows(pa.struct([("value", pa.binary())]), {"value": INT8_1})


@breaks("P-S1", "warning")
def nullable_metadata(table):
    fields = pa.struct([("metadata", pa.binary()), pa.field("value", pa.binary(), False)])
    table.replace_rows(fields, {"metadata": EMPTY, "value": INT8_1})


@breaks("P-S2", "info")
def a_group_without_annotation(table):
    table.replace_rows(UNSHREDDED, {"metadata": EMPTY, "value": INT8_1})


@breaks("P-S2")
def an_annotation_of_another_version(table):
    a_group_without_annotation(table)
    annotate(table.file, "v")
    data = table.file.read_bytes()
    version = bytes([12, 16 << 1, 1 << 4 | 3, 1, 0, 0])
    assert data.count(version) == 1
    table.file.write_bytes(data.replace(version, version[:3] + b"\x02" + version[4:]))


@breaks("P-S3", "info")
def a_nullable_value(table):
    table.replace_rows(column(None), {"metadata": EMPTY, "value": INT8_1})


@breaks("P-S4")
def a_group_of_metadata_alone(table):
    table.replace_rows(pa.struct([pa.field("metadata", pa.binary(), False)]), {"metadata": EMPTY})


@breaks("P-S4", "info")
def a_typed_value_without_a_value(table):
    fields = pa.struct([pa.field("metadata", pa.binary(), False), ("typed_value", pa.int64())])
    table.replace_rows(fields, {"metadata": EMPTY, "typed_value": 1})


@breaks("P-S6")
def a_list_of_plain_elements(table):
    table.replace_rows(column(pa.list_(pa.int64())), {"metadata": EMPTY, "typed_value": [1]})


@breaks("P-S7")
def a_nullable_field_group(table):
    fields = column(pa.struct([pa.field("a", group(pa.int64()), True)]))
    table.replace_rows(fields, {"metadata": METADATA_OF_A, "typed_value": {"a": {"typed_value": 1}}})


@breaks("O1")
def the_legacy_layout(table):
    fields = pa.struct([pa.field("untyped_value", pa.binary()), pa.field("typed_value", pa.int64())])
    table.replace_rows(fields, {"typed_value": 1})


@breaks("P-S9")
def a_typed_value_that_is_unsigned(table):
    table.replace_rows(column(pa.uint32()), {"metadata": EMPTY, "typed_value": 1})


@breaks("P-X1", "warning")
def a_column_with_an_underscore(table):
    fields = pa.struct([*UNSHREDDED, pa.field("_x", pa.int64())])
    table.replace_rows(fields, {"metadata": EMPTY, "value": INT8_1, "_x": 1})


@breaks("P-X2")
def an_extra_column(table):
    fields = pa.struct([*UNSHREDDED, pa.field("x", pa.int64())])
    table.replace_rows(fields, {"metadata": EMPTY, "value": INT8_1, "x": 1})


@breaks("W10")
def a_nullable_element_group(table):
    fields = column(pa.list_(pa.field("element", group(pa.int64()), True)))
    table.replace_rows(fields, {"metadata": EMPTY, "typed_value": [{"typed_value": 1}]})


@breaks("W14", "warning")
def a_footer_without_null_counts(table):
    row = {"metadata": EMPTY, "typed_value": 1}
    table.replace_rows(column(pa.int64()), row, write_statistics=False)


@breaks("P-T", "warning")
def a_type_that_spark_rejects(table):
    table.replace_rows(column(pa.time64("us")), {"metadata": EMPTY, "typed_value": 1})


# Rows.


@breaks("R2", "warning")
def a_row_without_value_and_typed_value(table):
    table.replace_rows(column(pa.int64()), {"metadata": EMPTY})


@breaks("R3")
def an_element_without_value_and_typed_value(table):
    table.replace_rows(LIST_OF_INTS, {"metadata": EMPTY, "typed_value": [{}]})


@breaks("R5")
def a_scalar_in_both(table):
    table.replace_rows(column(pa.int64()), {"metadata": EMPTY, "value": INT8_1, "typed_value": 1})


@breaks("R6")
def a_scalar_next_to_an_object(table):
    table.replace_rows(OBJECT_OF_A, {"metadata": METADATA_OF_A, "value": INT8_1, "typed_value": {"a": {}}})


@breaks("R7")
def a_field_in_both(table):
    typed = {"a": {"typed_value": 1}}
    table.replace_rows(OBJECT_OF_A, {"metadata": METADATA_OF_A, "value": OBJECT_A_1, "typed_value": typed})


@breaks("R8")
def an_object_that_is_not_shredded(table):
    table.replace_rows(OBJECT_OF_A, {"metadata": METADATA_OF_A, "value": OBJECT_A_1})


@breaks("R9")
def an_array_that_is_not_shredded(table):
    table.replace_rows(LIST_OF_INTS, {"metadata": EMPTY, "value": bytes.fromhex("030000")})


@breaks("R10")
def a_name_that_metadata_lacks(table):
    table.replace_rows(OBJECT_OF_A, {"metadata": EMPTY, "typed_value": {"a": {"typed_value": 1}}})


@breaks("R11")
def metadata_that_is_null(table):
    fields = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
    table.replace_rows(fields, {"value": INT8_1})


@breaks("R12")
def a_value_of_no_bytes(table):
    table.replace_rows(UNSHREDDED, {"metadata": EMPTY, "value": b""})


@breaks("R13", "info")
def a_value_that_would_fit(table):
    table.replace_rows(column(pa.int64()), {"metadata": EMPTY, "value": INT8_1})


@breaks("R14")
def a_field_whose_group_is_null(table):
    fields = column(pa.struct([pa.field("a", group(pa.int64()), True)]))
    table.replace_rows(fields, {"metadata": METADATA_OF_A, "typed_value": {"a": None}})


@breaks("P-S3")
def a_value_that_is_null(table):
    table.replace_rows(column(None), {"metadata": EMPTY})


@breaks("W7")
def an_empty_object_next_to_a_shredded_object(table):
    row = {"metadata": METADATA_OF_A, "value": bytes.fromhex("020000"), "typed_value": {"a": {}}}
    table.replace_rows(OBJECT_OF_A, row)


@breaks("E-M")
def metadata_of_another_version(table):
    table.replace_rows(UNSHREDDED, {"metadata": bytes.fromhex("020000"), "value": INT8_1})


@breaks("E-M9", "warning")
def bytes_after_a_value(table):
    table.replace_rows(UNSHREDDED, {"metadata": EMPTY, "value": INT8_1 + b"\0"})


@breaks("E-V")
def a_value_cut_short(table):
    table.replace_rows(UNSHREDDED, {"metadata": EMPTY, "value": bytes.fromhex("18")})


@breaks("E-V3")
def a_time_outside_the_day(table):
    table.replace_rows(column(pa.time64("us")), {"metadata": EMPTY, "typed_value": 0})
    typed = pa.array([86_400_000_000], pa.int64()).view(pa.time64("us"))
    parts = [pa.array([EMPTY]), pa.nulls(1, pa.binary()), typed]
    fields = list(column(pa.time64("us")))
    table.replace_file(pa.StructArray.from_arrays(parts, fields=fields))


@breaks("E-V4", "warning")
def a_type_of_the_future(table):
    table.replace_rows(UNSHREDDED, {"metadata": EMPTY, "value": bytes([21 << 2])})


@breaks("E-V5")
def a_decimal4_of_ten_digits(table):
    value = bytes([8 << 2, 0]) + (2**31 - 1).to_bytes(4, "little")
    table.replace_rows(UNSHREDDED, {"metadata": EMPTY, "value": value})


METADATA_OF_A_B = bytes.fromhex("0102000102") + b"ab"


@breaks("E-O3")
def fields_out_of_order(table):
    value = bytes.fromhex("02020100000204") + INT8_1 + INT8_1
    table.replace_rows(UNSHREDDED, {"metadata": METADATA_OF_A_B, "value": value})


@breaks("E-O5")
def a_field_twice(table):
    value = bytes.fromhex("02020000000204") + INT8_1 + INT8_1
    table.replace_rows(UNSHREDDED, {"metadata": METADATA_OF_A, "value": value})


@breaks("E-O7")
def a_field_without_a_name(table):
    value = bytes.fromhex("0201090002") + INT8_1
    table.replace_rows(UNSHREDDED, {"metadata": METADATA_OF_A, "value": value})


@breaks("X15", "warning")
def fields_in_the_order_of_utf16(table):
    names = ["\U00010000".encode(), "\ue000".encode()]
    metadata = bytes([1, 2, 0, 4, 7]) + b"".join(names)
    value = bytes.fromhex("02020001000204") + INT8_1 + INT8_1
    table.replace_rows(UNSHREDDED, {"metadata": metadata, "value": value})


# Statistics: their text.


@breaks("ST19", repairable=True)
def statistics_that_are_not_json(table):
    table.edit("add", lambda add: add.update(stats="{"))


@breaks("ST19", repairable=True)
def bounds_that_are_a_list(table):
    table.edit_stats(lambda statistics: statistics.update(minValues=[1]))


@breaks("AU1", repairable=True)
def a_bound_that_is_not_z85(table):
    table.set_bound("minValues", "~~~~~")


@breaks("AU1", repairable=True)
def a_bound_that_is_not_a_variant(table):
    table.set_bound("maxValues", "00000")


@breaks("Z7", repairable=True)
def a_bound_that_is_an_object(table):
    table.set_bound("minValues", {"a": 1})


@breaks("AU2", repairable=True)
def a_bound_that_is_a_number(table):
    table.set_bound("minValues", z85.encode(EMPTY + INT8_1))


@breaks("AU3", repairable=True)
def a_bound_that_is_null(table):
    text = bound_of(bytes.fromhex("020100000100"), ["$['a']"])
    table.set_bound("minValues", text)


@breaks("AU4", "warning", repairable=True)
def a_path_key_in_shorthand(table):
    table.set_bounds({"$.a": {"type": "bigint", "value": 1}})


@breaks("AU4", repairable=True)
def a_path_key_that_is_not_a_path(table):
    table.set_bounds({"a": {"type": "bigint", "value": 1}})


@breaks("AU5", repairable=True)
def bounds_of_two_types(table):
    table.set_bounds({"$['a']": BIGINT}, {"$['a']": {"type": "string", "value": "x"}})


@breaks("AU6", repairable=True)
def bounds_within_an_array(table):
    table.set_bounds({"$['tags']['x']": BIGINT})


@breaks("X3", "info", repairable=True)
def a_one_sided_bound(table):
    table.shift_bounds("$['a']", BIGINT, None)


@breaks("AU12", "warning", repairable=True)
def bounds_without_the_feature(table):
    table.edit_protocol(["variantType"], ["variantType"])
    table.edit("metaData", lambda metadata: metadata.update(configuration={}))


@breaks("AU13", "warning", repairable=True)
def an_unknown_column(table):
    table.edit_stats(lambda statistics: statistics["nullCount"].update(ghost=0))


@breaks("AU14", repairable=True)
def a_bound_that_is_nan(table):
    nan = bytes([7 << 2]) + bytes.fromhex("000000000000f87f")
    text = bound_of(bytes.fromhex("0201000009") + nan, ["$['d']"])
    table.set_bound("minValues", text)
    table.set_bound("maxValues", text)


@breaks("AU14", "warning", repairable=True)
def a_zero_of_the_wrong_sign(table):
    zero = bytes([7 << 2]) + bytes(8)
    text = bound_of(bytes.fromhex("0201000009") + zero, ["$['d']"])
    table.set_bound("minValues", text)
    table.set_bound("maxValues", text)


@breaks("AU15", repairable=True)
def bounds_of_two_scales(table):
    least = {"type": "decimal(18,1)", "value": 1.5}
    table.shift_bounds("$['d']", least, {"type": "decimal(18,2)", "value": 3.5})


@breaks("AU15", repairable=True)
def a_bound_of_too_many_digits(table):
    decimal = bytes([8 << 2, 0]) + (2**31 - 1).to_bytes(4, "little")
    table.set_bound("maxValues", bound_of(bytes.fromhex("0201000006") + decimal, ["$['a']"]))


@breaks("AU16", "warning", repairable=True)
def bounds_that_are_padded_with_ones(table):
    value = bytes.fromhex("0201000002") + INT8_1
    names = bytes([1, 1, 0, 6]) + b"$['a']"
    table.set_bound("minValues", z85.encode(names + value + b"\1\1\1"))


@breaks("AU16", "warning", repairable=True)
def a_value_before_its_metadata(table):
    value = bytes.fromhex("0201000002") + INT8_1
    names = bytes([1, 1, 0, 6]) + b"$['a']"
    table.set_bound("minValues", z85.encode(value + names))


@breaks("AU18", "info")
def bounds_of_forty_paths(table):
    keys = {f"$['k{number:02d}']": BIGINT for number in range(40)}
    table.set_bounds(keys)


@breaks("AU19", repairable=True)
def bounds_of_another_type_than_the_file(table):
    table.set_bounds({"$['a']": {"type": "string", "value": "x"}})


@breaks("AU19", "warning", repairable=True)
def bounds_of_a_path_that_is_not_shredded(table):
    table.set_bounds({"$['nowhere']": BIGINT})


# Statistics, compared with the data.


@breaks("AU7", repairable=True)
def a_row_below_the_bounds(table):
    table.shift_bounds("$['a']", {"type": "bigint", "value": 2}, {"type": "bigint", "value": 3})


@breaks("AU7", repairable=True)
def a_row_above_the_bounds(table):
    table.shift_bounds("$['b']", {"type": "string", "value": "x"}, {"type": "string", "value": "y"})


@breaks("AU7", repairable=True)
def an_ordinary_value_outside_its_bounds(table):
    table.edit_stats(lambda statistics: statistics["maxValues"].update(id=1))


@breaks("AU8", "warning", repairable=True)
def bounds_wider_than_the_data(table):
    table.shift_bounds("$['a']", {"type": "bigint", "value": 0}, {"type": "bigint", "value": 3})


@breaks("AU8", "warning", repairable=True)
def ordinary_bounds_wider_than_the_data(table):
    table.edit_stats(lambda statistics: statistics["minValues"].update(id=-1))


@breaks("AU8", "warning", repairable=True)
def bounds_of_a_column_of_nulls(table):
    _add_column(table, "x", "long", pa.nulls(4, pa.int64()))
    table.edit_stats(lambda stats: [stats["nullCount"].update(x=4), stats["maxValues"].update(x=1)])


@breaks("AU9", repairable=True)
def a_variant_null_within_bounds(table):
    rows = [{"metadata": EMPTY, "typed_value": 1}, {"metadata": EMPTY, "value": b"\0"}]
    table.replace_rows(column(pa.int64()), *rows)
    _state(table, {"numRecords": 2, "nullCount": {"id": 0, "v": 0}}, {"$": BIGINT}, {"id": [0, 1]})


@breaks("AU14", repairable=True)
def a_nan_within_bounds(table):
    rows = [{"metadata": EMPTY, "typed_value": each} for each in (1.5, float("nan"))]
    table.replace_rows(column(pa.float64()), *rows)
    bound = {"$": {"type": "double", "value": 1.5}}
    _state(table, {"numRecords": 2, "nullCount": {"id": 0, "v": 0}}, bound, {"id": [0, 1]})


@breaks("F12")
def a_null_count_of_a_column_that_the_file_lacks(table):
    """The count says that the column had values, as in the table `parsed-stats` of delta-kernel-rs."""
    field = {"name": "x", "type": "long", "nullable": True, "metadata": {}}
    table.edit_schema(lambda document: document["fields"].append(field))
    table.edit_stats(lambda statistics: statistics["nullCount"].update(x=0))


@breaks("AU10", repairable=True)
def too_few_nulls(table):
    table.edit_stats(lambda statistics: statistics["nullCount"].update(v=0))


@breaks("AU10", repairable=True)
def more_nulls_than_rows(table):
    table.edit_stats(lambda statistics: statistics["nullCount"].update(id=9))


@breaks("AU11", repairable=True)
def too_many_rows(table):
    table.edit_stats(lambda statistics: statistics.update(numRecords=7))


def _change_stats(rows):
    for add in _of_kind(rows, "add"):
        add["stats"] = add["stats"].replace('"numRecords":4', '"numRecords":5')


def _of_kind(rows, kind):
    return [row[kind] for row in rows if row[kind] is not None]


@breaks("AU20", repairable=True)
def a_text_for_a_number(table):
    table.edit_stats(lambda statistics: statistics["minValues"].update(id="0"))


@breaks("AU20", repairable=True)
def a_null_count_of_the_paths_of_a_variant(table):
    """The RFC of shredding says that null counts are not captured for individual paths."""
    table.edit_stats(lambda statistics: statistics["nullCount"].update(v={"a": 0}))


@breaks("AU20", repairable=True)
def a_null_count_that_is_a_text(table):
    table.edit_stats(lambda statistics: statistics["nullCount"].update(id="0"))


@pytest.mark.parametrize(
    ("arrow_type", "value", "bound", "is_valid"),
    [
        (pa.date32(), 0, "1970/01/01", False),
        (pa.date32(), 4_000_000, "+12921-08-26", True),
        (pa.date32(), 0, "1970-02-30", False),
        (pa.date32(), 0, "1970-1-1", False),
        (pa.date32(), 0, "1970-01-01T00:00:00.000Z", False),
        (pa.date32(), 0, "1970-W01-4", False),
        (pa.date32(), 0, 0, False),
        (pa.int64(), 0, False, False),
        (pa.map_(pa.string(), pa.int64()), [("k", 1)], {"key": "k"}, False),
        (pa.decimal128(5, 2), 1, "1.00", False),
        (pa.decimal128(5, 2), 1, 1.00, True),
        (pa.float64(), float("nan"), "NaN", True),
        (pa.float64(), 1.5, "1.5", False),
        (pa.bool_(), True, 1, False),
        (pa.bool_(), True, True, True),
        (pa.timestamp("us", "UTC"), 0, 0, False),
        (pa.timestamp("us", "UTC"), 0, "1970-01-01T24:00:00.000Z", False),
        (pa.timestamp("us", "UTC"), 0, "1970-01-01T00:53:28.000+00:53:28", True),
        (pa.timestamp("us"), 0, "1970-01-01 00:00:00", True),
        (pa.timestamp("us", "UTC"), 0, "1970-01-01T00:00:00.000Z", True),
        (pa.struct([("n", pa.int64())]), {"n": 1}, 1, False),
        (pa.struct([("n", pa.int64())]), {"n": 1}, {"n": 1}, True),
        (pa.list_(pa.int64()), [1], [1], False),
        (pa.list_(pa.int64()), [1], {"element": 1}, False),
        (pa.string(), "x", 1, False),
    ],
)
def test_a_bound_has_the_form_of_its_type(tmp_path, arrow_type, value, bound, is_valid):
    """The forms are those that PROTOCOL.md, "Per-file Statistics", and Spark write."""
    dv.write_table(tmp_path / "t", pa.table({"x": pa.array([value], arrow_type)}))
    Table(tmp_path / "t").edit_stats(lambda stats: [stats[side].update(x=bound) for side in SIDES])
    rules = {each.rule for each in dv.audit_table(tmp_path / "t", data=True).findings}
    assert ("AU20" in rules) is not is_valid
    dv.repair_statistics(tmp_path / "t", dry_run=False)
    assert dv.audit_table(tmp_path / "t", data=True).findings == ()


@breaks("AU21", "info", repairable=True)
def a_file_without_statistics(table):
    table.edit("add", lambda add: add.pop("stats"))


@breaks("AU21", "info", repairable=True)
def an_ordinary_column_without_bounds(table):
    table.edit_stats(lambda statistics: statistics["minValues"].pop("id"))


@breaks("AU22", "warning")
def tight_bounds_next_to_a_deletion_vector(table):
    _delete(table, 1)
    table.edit_stats(lambda statistics: statistics.update(tightBounds=True))


def _delete(table, *rows, **fields):
    """Let a deletion vector mark rows of the file."""
    table.edit_protocol([*FEATURES, "deletionVectors"], [*FEATURES, "deletionVectors"])
    table.edit("add", lambda add: add.update(deletionVector={**inline_vector(*rows), **fields}))
    table.edit_stats(lambda statistics: statistics.update(tightBounds=False))


@breaks("F7")
def a_deletion_vector_of_another_cardinality(table):
    _delete(table, 1, 2, cardinality=1)


@breaks("F7")
def a_deletion_vector_with_a_row_twice(table):
    _delete(table, 1, 1)


@breaks("F7")
def a_deletion_vector_with_a_row_beyond_the_file(table):
    _delete(table, 5000)


# Columns of files, and rows against the schema.


def _rewrite_file(table, change, **options):
    """Put other columns in the place of the file. The statistics stay."""
    rows = pq.ParquetFile(table.file).read()
    pq.write_table(change(rows), table.file, **options)
    table.edit("add", lambda add: add.update(size=table.file.stat().st_size))


def _add_column(table, name, data_type, values, metadata=None, nullable=True):
    """Add a column to the table and its file."""
    field = {"name": name, "type": data_type, "nullable": nullable, "metadata": metadata or {}}
    table.edit_schema(lambda schema: schema["fields"].append(field))
    _rewrite_file(table, lambda rows: rows.append_column(name, values))


@breaks("T10")
def a_number_that_is_stored_as_text(table):
    _rewrite_file(table, lambda rows: rows.set_column(0, "id", rows["id"].cast(pa.string())))


@pytest.mark.parametrize(
    ("data_type", "stored", "is_valid"),
    [
        ("timestamp_ntz", pa.timestamp("us", "UTC"), False),
        ("timestamp", pa.timestamp("ns", "UTC"), True),
        ("decimal(5,2)", pa.decimal128(5, 3), False),
        ("decimal(5,2)", pa.decimal128(4, 1), True),
        ("integer", pa.int64(), False),
        ("short", pa.int32(), True),
        ("byte", pa.int32(), True),
        ("byte", pa.int16(), False),
        ("long", pa.int32(), True),
        ("double", pa.float32(), True),
        ("float", pa.float64(), False),
        ("string", pa.binary(), True),
        ("binary", pa.string(), False),
        ("date", pa.timestamp("us"), False),
    ],
)
def test_a_column_of_a_file_has_a_type_that_readers_convert_without_loss(table, data_type, stored, is_valid):
    _add_column(table, "x", data_type, pa.nulls(4, stored))
    found = [each.column for each in dv.audit_table(table.path).findings if each.rule == "T10"]
    assert found == ([] if is_valid else ["x"])


@breaks("T10")
def a_value_beyond_its_type(table):
    _add_column(table, "x", "short", pa.array([1, -32768, 32768, None], pa.int32()))


@pytest.mark.parametrize(("value", "is_valid"), [(-128, True), (127, True), (128, False), (-129, False)])
def test_values_of_wider_storage_are_compared_with_the_range_of_the_type(table, value, is_valid):
    _add_column(
        table,
        "x",
        {"type": "array", "elementType": "byte", "containsNull": True},
        pa.array([[1, value], [], None, [None]], pa.list_(pa.int32())),
    )
    found = [each.column for each in dv.audit_table(table.path, data=True).findings if each.rule == "T10"]
    assert found == ([] if is_valid else ["x"])


@breaks("T10", "info")
def a_timestamp_that_is_stored_as_local_time(table):
    _add_column(table, "x", "timestamp", pa.nulls(4, pa.timestamp("us")))


def _make_not_null(table, column):
    def change(schema):
        schema["fields"][column]["nullable"] = False

    table.edit_schema(change)


@breaks("N1")
def a_missing_column_that_is_not_null(table):
    _make_not_null(table, 0)
    _rewrite_file(table, lambda rows: rows.drop_columns(["id"]))


@breaks("N1")
def a_null_in_a_column_that_is_not_null(table):
    _make_not_null(table, 1)


@breaks("N1")
def a_null_in_a_nested_field_that_is_not_null(table):
    nested = {"type": "struct", "fields": [{**_field("n", "long"), "nullable": False}]}
    _add_column(table, "s", nested, pa.array([{"n": 1}, {"n": None}, None, {"n": 2}]))


@breaks("N1")
def a_null_in_an_array_that_does_not_allow_it(table):
    numbers = {"type": "array", "elementType": "long", "containsNull": False}
    _add_column(table, "x", numbers, pa.array([[1], [], None, [None]]))


@breaks("N1")
def a_null_in_a_nested_map_that_does_not_allow_it(table):
    numbers = {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": False}
    nested = {"type": "struct", "fields": [_field("m", numbers)]}
    stored = pa.struct([("m", pa.map_(pa.string(), pa.int64()))])
    _add_column(table, "x", nested, pa.array([None, {"m": None}, {"m": []}, {"m": [("k", None)]}], stored))


@breaks("F12")
def a_missing_column_with_bounds(table):
    _rewrite_file(table, lambda rows: rows.drop_columns(["id"]))


@breaks("F12")
def a_missing_variant_with_bounds(table):
    _rewrite_file(table, lambda rows: rows.drop_columns(["v"]))


@breaks("F12")
def a_missing_variant_with_fewer_nulls_than_rows(table):
    a_missing_variant_with_bounds(table)
    table.edit_stats(lambda statistics: [statistics[side].pop("v") for side in SIDES])


@pytest.mark.parametrize(
    "damage",
    [
        a_missing_column_with_bounds,
        a_missing_variant_with_bounds,
        a_missing_variant_with_fewer_nulls_than_rows,
        a_null_count_of_a_column_that_the_file_lacks,
    ],
)
def test_a_repair_keeps_the_evidence_of_a_lost_column(table, damage):
    damage(table)
    table.edit_stats(lambda statistics: statistics.update(numRecords=7))
    dv.repair_statistics(table.path, dry_run=False)
    found = dv.audit_table(table.path, data=True).findings
    assert [each.rule for each in found if each.severity != "info"] == ["F12"]


def _make_identity(table, **metadata):
    """Make the column `id`, with the values 0 to 3, an identity column."""
    table.edit_protocol(FEATURES, [*FEATURES, "identityColumns"])
    metadata = {"start": 0, "step": 1, "highWaterMark": 3, "allowExplicitInsert": False, **metadata}
    named = {f"delta.identity.{key}": value for key, value in metadata.items() if value is not None}
    table.edit_schema(lambda schema: schema["fields"][0].update(metadata=named))


@breaks("N4")
def a_high_water_mark_below_a_value(table):
    _make_identity(table, highWaterMark=2)


@breaks("N4")
def an_identity_column_without_a_high_water_mark(table):
    _make_identity(table, highWaterMark=None)


@breaks("N4")
def a_falling_identity_above_its_last_value(table):
    _make_identity(table, start=3, step=-1, highWaterMark=1)


@breaks("N4")
def an_identity_column_of_step_zero(table):
    _make_identity(table, step=0)


@breaks("N4")
def a_high_water_mark_that_is_a_text(table):
    _make_identity(table, highWaterMark="3")


@pytest.mark.parametrize(
    "metadata",
    [{}, {"highWaterMark": 9}, {"start": 3, "step": -1, "highWaterMark": 0}, {"allowExplicitInsert": True}],
)
def test_identity_columns_with_valid_marks_have_no_findings(tmp_path, metadata):
    table = Table.write(tmp_path / "table")
    by_default = {"highWaterMark": 1} if "allowExplicitInsert" in metadata else {}
    _make_identity(table, **metadata, **by_default)
    assert dv.audit_table(table.path, data=True).findings == ()


@breaks("N2")
def a_row_that_violates_a_constraint(table):
    table.edit_protocol(FEATURES, [*FEATURES, "checkConstraints"])
    table.set_property("delta.constraints.small", "id < 3")


@pytest.mark.parametrize(
    ("width", "data_type", "values", "row"),
    [
        ("varchar(2)", "string", ["a", "äö", "abc", None], 2),
        ("char(2)", "string", ["a", "ab", None, "abc"], 3),
        ("varchar(3)", "string", ["a", "ab", None, "abc"], None),
        (
            "array<varchar(2)>",
            {"type": "array", "elementType": "string", "containsNull": True},
            [["ab"], [], None, ["a", "abc"]],
            3,
        ),
        (
            "map<varchar(1),varchar(2)>",
            {"type": "map", "keyType": "string", "valueType": "string", "valueContainsNull": True},
            pa.array([[("k", "abc")], [], None, None], pa.map_(pa.string(), pa.string())),
            0,
        ),
        (
            "struct<n:varchar(2)>",
            {"type": "struct", "fields": [{"name": "n", "type": "string", "nullable": True, "metadata": {}}]},
            [{"n": "ab"}, {"n": "abc"}, None, {"n": None}],
            1,
        ),
    ],
)
def test_text_is_not_longer_than_spark_declares(table, width, data_type, values, row):
    array = values if isinstance(values, pa.Array) else pa.array(values)
    _add_column(table, "x", data_type, array, {"__CHAR_VARCHAR_TYPE_STRING": width})
    found = [each.row for each in dv.audit_table(table.path, data=True).findings if each.rule == "N2"]
    assert found == ([] if row is None else [row])


@breaks("N2")
def a_row_that_violates_an_invariant(table):
    table.edit_protocol(FEATURES, [*FEATURES, "invariants"])
    text = json.dumps({"expression": {"expression": "id > 0"}})
    table.edit_schema(lambda schema: schema["fields"][0]["metadata"].update({"delta.invariants": text}))


@breaks("N2")
def a_row_that_differs_from_its_generated_value(table):
    table.edit_protocol(FEATURES, [*FEATURES, "generatedColumns"])
    generation = {"delta.generationExpression": "id + 1"}
    _add_column(table, "g", "long", pa.array([1, 2, 3, 9]), generation)


@breaks("N3", "info")
def a_constraint_that_this_version_cannot_evaluate(table):
    table.edit_protocol(FEATURES, [*FEATURES, "checkConstraints"])
    table.set_property("delta.constraints.odd", "unknown_function(id) > 1")


def _lower_a_bound(table):
    """Replace the upper bound 3 of `id` in the footer by 1."""
    _rewrite_file(table, lambda rows: rows, compression="none", use_dictionary=False)
    data = bytearray(table.file.read_bytes())
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    bound = (3).to_bytes(8, "little")
    at = data.index(bound, footer)
    while at >= 0:
        data[at] = 1
        at = data.find(bound, at + 8)
    table.file.write_bytes(data)


@breaks("W15")
def a_bound_in_the_footer_that_excludes_a_row(table):
    _lower_a_bound(table)


@breaks("W15")
def a_bound_in_the_page_index_that_excludes_a_row(table):
    _rewrite_file(table, lambda rows: rows, compression="none", use_dictionary=False, write_page_index=True)
    data = bytearray(table.file.read_bytes())
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    at = data.rindex((3).to_bytes(8, "little"), 0, footer)
    data[at] = 1
    table.file.write_bytes(data)


def _replace_in_footer(path, old, new):
    data = bytearray(path.read_bytes())
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    at = data.index(old, footer)
    data[at : at + len(old)] = new
    path.write_bytes(data)


NULLS = pa.array([None] * 300 + list(range(100)))
ZIGZAG_300, ZIGZAG_299 = bytes.fromhex("d804"), bytes.fromhex("d604")


@pytest.fixture
def with_nulls(tmp_path):
    """Return a table with 300 nulls in a column, written with a page index."""
    dv.write_table(tmp_path / "t", pa.table({"x": NULLS}))
    table = Table(tmp_path / "t")
    _rewrite_file(table, lambda rows: rows, write_page_index=True, max_rows_per_page=400)
    assert dv.audit_table(table.path, data=True).findings == ()
    return table


def _wrong_in_footer(table):
    findings = dv.audit_table(table.path, data=True).findings
    assert {each.rule for each in findings} <= {"W15"}
    return [each.message for each in findings]


def test_null_counts_of_row_groups_are_compared_with_the_rows(with_nulls):
    """The third field of Statistics in the footer is the count (parquet.thrift)."""
    _replace_in_footer(with_nulls.file, b"\x16" + ZIGZAG_300, b"\x16" + ZIGZAG_299)
    assert _wrong_in_footer(with_nulls) == ["row group 0: null_count of x is 299, but the values have 300"]


def test_null_counts_of_pages_are_compared_with_the_rows(with_nulls):
    """The index has a list of one 64-bit count (parquet.thrift, ColumnIndex)."""
    data, counts = with_nulls.file.read_bytes(), b"\x19\x16" + ZIGZAG_300
    assert data.count(counts) == 1
    with_nulls.file.write_bytes(data.replace(counts, b"\x19\x16" + ZIGZAG_299))
    message = "row group 0, page 0: null_count of x is 299, but the values have 300"
    assert _wrong_in_footer(with_nulls) == [message]


def test_pages_that_are_said_to_be_null_are_compared_with_the_rows(with_nulls):
    """The index begins with a list of one Boolean, 2 or 0 for false (parquet.thrift, ColumnIndex)."""
    data = with_nulls.file.read_bytes()
    (flags,) = (each for each in (b"\x19\x11\x02\x19", b"\x19\x11\x00\x19") if data.count(each) == 1)
    with_nulls.file.write_bytes(data.replace(flags, b"\x19\x11\x01\x19"))
    (message,) = _wrong_in_footer(with_nulls)
    assert message.startswith("row group 0, page 0: null_page of x is true")


def _with_bloom_filter(table, column):
    options = {column: {"ndv": 10, "fpp": 0.01}}
    _rewrite_file(table, lambda rows: rows, bloom_filter_options=options)
    leaf = pq.ParquetFile(table.file).metadata.row_group(0).column(0)
    assert leaf.bloom_filter_offset is not None
    return leaf.bloom_filter_offset, leaf.bloom_filter_offset + leaf.bloom_filter_length


@pytest.mark.parametrize(
    ("leaf", "values"),
    [
        ("x", pa.array([1, None, -(2**63)])),
        ("x", pa.array([1, 2], pa.int32())),
        ("x", pa.array([1, 2], pa.date32())),
        ("x", pa.array([1, 2], pa.timestamp("us", "UTC"))),
        ("x", pa.array([-0.0, 0.0, float("nan")])),
        ("x", pa.array(["", "ä" * 100])),
        ("x", pa.array([b"", b"\xff"])),
        ("x.list.element", pa.array([[1, 2], [], None])),
        ("x.n", pa.array([{"n": 1}, None])),
    ],
)
def test_a_bloom_filter_has_all_values(tmp_path, leaf, values):
    dv.write_table(tmp_path / "t", pa.table({"x": values}))
    table = Table(tmp_path / "t")
    _, end = _with_bloom_filter(table, leaf)
    assert _wrong_in_footer(table) == []
    data = bytearray(table.file.read_bytes())
    # One block of the filter is 32 bytes; without bits it has no value.
    data[end - 32 : end] = bytes(32)
    table.file.write_bytes(data)
    (message,) = _wrong_in_footer(table)
    assert message.startswith(f"row group 0: the Bloom filter of {leaf} is without ")


@breaks("W15")
def a_bloom_filter_that_cannot_be_read(table):
    begin, _ = _with_bloom_filter(table, "id")
    data = bytearray(table.file.read_bytes())
    data[begin] = 0xFF
    table.file.write_bytes(data)


@breaks("AU14", repairable=True)
def a_nan_above_an_upper_bound(table):
    _add_column(table, "x", "double", pa.array([1.0, float("nan"), 2.0, 3.0]))
    table.edit_stats(
        lambda stats: [stats[side].update(x=bound) for side, bound in zip(SIDES, (1.0, 3.0), strict=True)]
    )
    table.edit_stats(lambda stats: stats["nullCount"].update(x=0))


@pytest.mark.parametrize(("text", "bound"), [("z" * 100, "z" * 63 + "{"), ("\U0010ffff" * 40, None)])
def test_bounds_that_deltalake_shortens_are_correct(tmp_path, text, bound):
    """delta-rs keeps 64 bytes and raises the last character, or has no bound."""
    dv.write_table(tmp_path / "t", pa.table({"s": [text, "a"]}))
    stats = {"numRecords": 2, "nullCount": {"s": 0}, "minValues": {"s": "a"}, "maxValues": {"s": bound}}
    Table(tmp_path / "t").edit("add", lambda add: add.update(stats=json.dumps(stats)))
    assert dv.audit_table(tmp_path / "t", data=True).findings == ()
    assert dv.repair_statistics(tmp_path / "t").files == ()


def test_a_repair_keeps_bounds_of_booleans(tmp_path):
    dv.write_table(tmp_path / "t", pa.table({"flag": [False] * 3, "x": [1, 2, 3]}))
    table = Table(tmp_path / "t")
    table.edit_stats(lambda stats: [stats[side].update(flag=False) for side in SIDES])
    assert dv.audit_table(table.path, data=True).findings == ()
    assert dv.repair_statistics(table.path).files == ()
    table.edit_stats(lambda stats: stats["minValues"].update(x=2))
    (file,) = dv.repair_statistics(table.path).files
    assert json.loads(file.stats)["maxValues"] == {"flag": False, "x": 3}


def _exchange_ids(table, mode, ids):
    """Map `id` to the column `w` of the file and the reverse, by the field ids of the file."""
    _add_column(table, "w", "long", pa.array([5, 6, 7, 8]))
    table.edit_protocol([*FEATURES, "columnMapping"], [*FEATURES, "columnMapping"])
    table.set_property("delta.columnMapping.mode", mode)
    table.set_property("delta.columnMapping.maxColumnId", "3")

    def change(schema):
        for field in schema["fields"]:
            number = {"id": 2, "w": 1, "v": 3}[field["name"]]
            field["metadata"] = {
                "delta.columnMapping.id": number,
                "delta.columnMapping.physicalName": field["name"],
            }

    def number(rows):
        fields = [
            field.with_metadata({"PARQUET:field_id": str(ids[field.name])}) if field.name in ids else field
            for field in rows.schema
        ]
        return pa.Table.from_arrays(rows.columns, schema=pa.schema(fields))

    table.edit_schema(change)
    _rewrite_file(table, number)


@breaks("T11")
def columns_whose_ids_are_exchanged(table):
    _exchange_ids(table, "id", {"id": 1, "w": 2, "v": 3})


@breaks("T11")
def columns_whose_ids_are_exchanged_in_a_table_mapped_by_name(table):
    _exchange_ids(table, "name", {"id": 1, "w": 2, "v": 3})


@breaks("T11")
def a_column_of_a_file_without_its_id(table):
    _exchange_ids(table, "id", {"id": 2, "v": 3})


def test_a_file_that_is_older_than_the_mapping_by_name_has_no_ids(table):
    _exchange_ids(table, "name", {})
    assert "T11" not in {each.rule for each in dv.audit_table(table.path).findings}


def test_bounds_of_another_column_are_found_in_a_table_mapped_by_name(table):
    """The physical names of two columns are exchanged in the file, but not in the statistics."""
    _add_column(table, "w", "long", pa.array([5, 6, 7, 8]))
    for side, bound in zip(SIDES, (5, 8), strict=True):
        table.edit_stats(lambda stats, side=side, bound=bound: stats[side].update(w=bound))
    assert dv.audit_table(table.path, data=True).count("error") == 0
    _rewrite_file(table, lambda rows: rows.rename_columns(["w", "v", "id"]))
    found = dv.audit_table(table.path, data=True).findings
    assert {(each.rule, each.column) for each in found if each.severity == "error"} >= {
        ("AU7", "id"),
        ("AU7", "w"),
    }


@breaks("AU17")
def two_different_statistics_of_one_file(table):
    table.set_property("delta.checkpoint.writeStatsAsStruct", "true")
    table.edit_checkpoint(_change_stats)


@breaks("ST15")
def a_deletion_vector_without_a_count_of_rows(table):
    vector = {"storageType": "i", "pathOrInlineDv": "00000", "sizeInBytes": 4, "cardinality": 1}
    table.edit("add", lambda add: add.update(deletionVector=vector))
    table.edit_stats(lambda statistics: statistics.pop("numRecords"))


@breaks("ST10", "info", repairable=True)
def no_bounds_at_all(table):
    table.edit_stats(lambda statistics: [statistics[side].pop("v") for side in ("minValues", "maxValues")])


def _field(name, data_type):
    return {"name": name, "type": data_type, "nullable": True, "metadata": {}}


def _state(table, statistics, bound, ids):
    """Set the statistics of the file: one bound of `v` for both sides, and the bounds of `id`."""
    low, high = ids["id"]
    sides = {"minValues": {"id": low}, "maxValues": {"id": high}}
    table.edit("add", lambda add: add.update(stats=json.dumps({**statistics, **sides})))
    table.set_bounds(bound)


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """Return a table without violations."""
    return Table.write(tmp_path_factory.mktemp("clean") / "table")


@pytest.fixture
def table(clean, tmp_path):
    """Return a copy of the clean table that a test can damage."""
    shutil.copytree(clean.path, tmp_path / "table")
    return Table(tmp_path / "table")


@pytest.mark.parametrize("data", [False, True])
def test_a_clean_table_has_no_findings(clean, data):
    assert dv.audit_table(clean.path, data=data).findings == ()


@pytest.mark.parametrize("name", VIOLATIONS)
def test_an_audit_reports_the_violation(table, name):
    rule, severity, _, damage = VIOLATIONS[name]
    damage(table)
    audit = dv.audit_table(table.path, data=True)
    found = [finding for finding in audit.findings if (finding.rule, finding.severity) == (rule, severity)]
    assert found, [(finding.rule, finding.severity, finding.sentence) for finding in audit.findings]
    assert all(finding.sentence for finding in found)
    assert severity == "info" or not audit.is_clean
    _assert_repair_agrees(table, audit)


def _assert_repair_agrees(table, audit):
    """Check that a repair has work exactly where the audit advises it, and that each then finds nothing."""
    try:
        repair = dv.repair_statistics(table.path)
    except dv.errors.DeltaVariantError:
        return  # This version cannot load the table or commit to it.
    advised = {each.file_path for each in audit.findings if "repair-statistics" in each.remedy}
    unreadable = {each.file_path for each in audit.findings if each.rule in UNREADABLE_FILES}
    assert {file.path for file in repair.files} - unreadable == advised - unreadable


UNREADABLE_FILES = ("F1", "F3", "F6", "F7", "F8", "T10")
"""Rules of files whose statistics cannot be computed."""


@pytest.mark.parametrize("name", [name for name, violation in VIOLATIONS.items() if violation[2]])
def test_a_repair_removes_the_violation(table, name):
    rule, severity, _, damage = VIOLATIONS[name]
    damage(table)
    assert dv.repair_statistics(table.path).repairable
    repair = dv.repair_statistics(table.path, dry_run=False)
    assert repair.version == 1
    audit = dv.audit_table(table.path, data=True)
    assert not [f for f in audit.findings if (f.rule, f.severity) == (rule, severity)]
    assert [f for f in audit.findings if f.rule.startswith(("AU", "ST", "Z"))] == []
    assert dv.repair_statistics(table.path).files == ()


REJECTED_BY_READS = ("T4", "T5", "T6", "T7", "T14")
# Reads do not use clustering columns and generation expressions, and need no feature to read timestamp_ntz.
READABLE = {
    "T4-a_timestamp_ntz_without_the_feature",
    "T7-a_variant_clustering_column",
    "T7-a_variant_clustering_column_as_a_string",
    "T7-a_generated_variant",
}
UNREADABLE = [name for name, (rule, *_) in VIOLATIONS.items() if rule in REJECTED_BY_READS]


@pytest.mark.parametrize("name", [name for name in UNREADABLE if name not in READABLE])
def test_the_error_of_a_read_has_the_rule_of_the_finding(table, name):
    rule, _, _, damage = VIOLATIONS[name]
    damage(table)
    with pytest.raises((ProtocolError, SchemaError)) as caught:
        dv.read_table(table.path)
    assert caught.value.rule == rule


def test_the_error_of_a_write_has_the_rule_of_names_that_differ_by_case(tmp_path):
    with raises_at(SchemaError, rule="T16", column="ID"):
        dv.write_table(tmp_path / "t", pa.table({"id": [1], "ID": [2]}))


def test_every_rule_has_a_table_that_violates_it():
    violated = {(rule, severity) for rule, severity, _, _ in VIOLATIONS.values()}
    lacking = {(rule.id, rule.severity) for rule in RULES} - violated
    # pyarrow cannot write files that violate these. Rust tests do.
    assert lacking == {("P-S10", "error"), ("E-M11", "error")}
    assert len(VIOLATIONS) >= 40
