"""Checkpoints, log compactions and version checksums: write them, read them back, and damage them."""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import shutil
import tarfile
from uuid import UUID

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st
from support.commits import commit_actions
from support.errors import raises_at
from support.intercepted_store import intercept
from support.tables import state_discrepancies

import delta_variant as dv
from delta_variant.errors import DeltaVariantError, MalformedLogError, UnsupportedFeatureError
from delta_variant.log import transaction
from delta_variant.log.checkpoints import writing as checkpoint_writing
from delta_variant.log.commit_context import CommitContext
from delta_variant.log.listing import commit_file_name
from delta_variant.log.load import load_protocol_and_metadata, load_snapshot, load_with_tombstones
from delta_variant.log.load import refresh as refresh_snapshot
from delta_variant.protocol.actions import (
    AddFile,
    CommitInfo,
    DeletionVector,
    DomainMetadata,
    Format,
    Metadata,
    Protocol,
    RemoveFile,
    Sidecar,
    Txn,
    encode_commit,
)
from delta_variant.protocol.table_configuration import TableConfiguration
from delta_variant.storage import store

READER_FEATURES = ("variantType", "variantShredding", "deletionVectors", "v2Checkpoint")
PROTOCOL = Protocol(
    min_reader_version=3,
    min_writer_version=7,
    reader_features=READER_FEATURES,
    writer_features=(*READER_FEATURES, "domainMetadata"),
)
FIELDS = [("id", "long"), ("day", "date"), ("event", "variant")]
SCHEMA = {
    "type": "struct",
    "fields": [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in FIELDS],
}
# Written by Databricks (corpora/delta-golden): {"$": 0}.
GOLDEN_Z85 = "0rAf3bMW#D00%Fx0000000000"
VECTOR = DeletionVector(storage_type="u", path_or_inline_dv="ab", offset=1, size_in_bytes=2, cardinality=3)
DAY = 86_400_000
UNIQUE_ID = "80a083e8-7026-4e79-81be-64bd76c43a11"


def metadata(partition_columns=(), **configuration):
    return Metadata(
        id="m",
        format=Format(),
        schema_string=json.dumps(SCHEMA),
        partition_columns=partition_columns,
        configuration=configuration,
    )


def statistics(least=GOLDEN_Z85, **others):
    text = {"numRecords": 1, "minValues": {"id": 0, "event": least}, "nullCount": {"id": 0, "event": 0}}
    return json.dumps({**text, **others}, separators=(",", ":"))


def add(path, stats=None, **others):
    fields = {"partition_values": {}, "size": 7, "modification_time": 1, "data_change": True}
    return AddFile(path=path, stats=stats or statistics(), **{**fields, **others})


def remove(path, when=0, **others):
    return RemoveFile(path=path, deletion_timestamp=when, data_change=True, **others)


def write_versions(root, *versions):
    table = store.open_store(root)
    for version, actions in enumerate(versions):
        commit_actions(table, version, [CommitInfo({"operation": "WRITE"}), *actions])
    return table


def checkpoint(table, version, now=0):
    checkpoint_writing.write_checkpoint(table, version, now=now, unique_id=UNIQUE_ID)


def forget(root, *versions):
    """Delete commits, so that only a checkpoint has their actions."""
    for version in versions:
        (root / commit_file_name(version)).unlink()


def state_of(snapshot):
    """Return all fields of a snapshot, with files in the order of their paths."""
    files = sorted(snapshot.files.to_pylist(), key=lambda row: (row["path"], str(row["deletion_vector"])))
    known = (snapshot.version, snapshot.protocol, snapshot.metadata, snapshot.txns, snapshot.domain_metadata)
    return *known, files


def checkpoint_rows(root, version, column):
    file = root / "_delta_log" / f"{version:020d}.checkpoint.parquet"
    return [row for row in pq.read_table(file, columns=[column])[column].to_pylist() if row]


FULL = (
    [PROTOCOL, metadata(), add("a"), add("b%20c", tags={"k": None}), Txn(app_id="app", version=3)],
    [
        remove("a", when=5 * DAY),
        add("d", deletion_vector=VECTOR, base_row_id=4, default_row_commit_version=1),
        DomainMetadata(domain="own", configuration="{}", removed=False),
        DomainMetadata(domain="removed", configuration="{}", removed=True),
    ],
)


class TestRoundTrip:
    """A checkpoint preserves the state that was written to it."""

    def test_a_checkpoint_alone_gives_the_same_snapshot(self, tmp_path):
        table = write_versions(tmp_path, *FULL)
        before = state_of(load_snapshot(tmp_path))
        checkpoint(table, 1)
        forget(tmp_path, 0, 1)
        assert state_of(load_snapshot(tmp_path)) == before

    @pytest.mark.parametrize(
        ("as_json", "as_struct"), [("true", "false"), ("false", "true"), ("true", "true")]
    )
    def test_every_z85_string_is_preserved_byte_for_byte(self, tmp_path, as_json, as_struct):
        """PROTOCOL.md, "Per-file Statistics"."""
        configuration = {
            "delta.checkpoint.writeStatsAsJson": as_json,
            "delta.checkpoint.writeStatsAsStruct": as_struct,
        }
        table = write_versions(tmp_path, [PROTOCOL, metadata(**configuration), add("a"), add("b")])
        checkpoint(table, 0)
        (columns,) = {tuple(sorted(row)) for row in checkpoint_rows(tmp_path, 0, "add")}
        assert ("stats" in columns, "stats_parsed" in columns) == (as_json == "true", as_struct == "true")
        assert load_snapshot(tmp_path).files["stats"].to_pylist() == [statistics()] * 2

    def test_statistics_in_neither_form_are_omitted(self, tmp_path):
        without_vectors = msgspec.structs.replace(
            PROTOCOL, reader_features=("variantType",), writer_features=("variantType",)
        )
        configuration = {"delta.checkpoint.writeStatsAsJson": "false"}
        table = write_versions(tmp_path, [without_vectors, metadata(**configuration), add("a")])
        checkpoint(table, 0)
        assert load_snapshot(tmp_path).files["stats"].to_pylist() == [None]

    @pytest.mark.parametrize(
        ("feature", "cluster_by"),
        [("delta.enableDeletionVectors", None), ("delta.enableRowTracking", None), ("", "n")],
    )
    def test_statistics_that_a_feature_requires_are_text(self, tmp_path, feature, cluster_by):
        """PROTOCOL.md, "Writer Requirement for Deletion Vectors", "Row Tracking" and "Clustered Table"."""
        features = {feature: "true"} if feature else {}
        configuration = {"delta.checkpoint.writeStatsAsJson": "false", **features}
        dv.create_table(tmp_path, {"n": "int"}, configuration=configuration, cluster_by=cluster_by)
        dv.write_table(tmp_path, [{"n": n} for n in range(9)], mode="append")
        dv.delete(tmp_path, "n = 3")
        before = dv.file_stats(tmp_path)
        dv.write_checkpoint(tmp_path)
        forget(tmp_path, 0, 1, 2)
        assert dv.file_stats(tmp_path) == before
        assert not dv.audit_table(tmp_path).findings

    def test_a_file_without_statistics_gets_none_from_other_files(self, tmp_path):
        configuration = {"delta.checkpoint.writeStatsAsStruct": "true"}
        bare = msgspec.structs.replace(add("b"), stats=None)
        table = write_versions(tmp_path, [PROTOCOL, metadata(**configuration), add("a"), bare])
        checkpoint(table, 0)
        assert load_snapshot(tmp_path).files["stats"].to_pylist() == [statistics(), None]

    def test_a_file_with_only_a_count_keeps_it_when_others_have_bounds(self, tmp_path):
        configuration = {
            "delta.checkpoint.writeStatsAsStruct": "true",
            "delta.checkpoint.writeStatsAsJson": "false",
        }
        counted = '{"numRecords":3}'
        table = write_versions(tmp_path, [PROTOCOL, metadata(**configuration), add("a"), add("b", counted)])
        checkpoint(table, 0)
        forget(tmp_path, 0)
        assert load_snapshot(tmp_path).files["stats"].to_pylist() == [statistics(), counted]

    def test_partition_values_are_columns_if_statistics_are(self, tmp_path):
        configuration = {"delta.checkpoint.writeStatsAsStruct": "true"}
        adds = [add("a", partition_values={"day": "2024-02-29"}), add("b", partition_values={"day": None})]
        table = write_versions(tmp_path, [PROTOCOL, metadata(("day",), **configuration), *adds])
        checkpoint(table, 0)
        days = [str(row["partitionValues_parsed"]["day"]) for row in checkpoint_rows(tmp_path, 0, "add")]
        assert days == ["2024-02-29", "None"]
        assert load_snapshot(tmp_path).files["partition_values"].to_pylist() == [
            [("day", "2024-02-29")],
            [("day", None)],
        ]

    def test_a_z85_string_that_cannot_be_decoded_is_null_as_a_column_and_unchanged_as_text(self, tmp_path):
        """PROTOCOL.md, "Per-file Statistics"."""
        configuration = {"delta.checkpoint.writeStatsAsStruct": "true"}
        table = write_versions(tmp_path, [PROTOCOL, metadata(**configuration), add("a", statistics("~"))])
        checkpoint(table, 0)
        (row,) = checkpoint_rows(tmp_path, 0, "add")
        assert row["stats_parsed"]["minValues"] == {"id": 0, "day": None, "event": None}
        assert row["stats"] == statistics("~")

    def test_paths_keep_the_encoding_of_the_log(self, tmp_path):
        table = write_versions(tmp_path, [PROTOCOL, metadata(), add("%61")], [add("b%20c")], [add("d")])
        for version in (1, 2):
            checkpoint(table, version)
        paths = [row["path"] for row in checkpoint_rows(tmp_path, 2, "add")]
        assert sorted(paths) == ["%61", "b%20c", "d"]


class TestContents:
    """What PROTOCOL.md requires of a checkpoint in addition to the snapshot."""

    @pytest.mark.parametrize(("now", "kept"), [(12 * DAY - 1, ["a"]), (12 * DAY, [])])
    def test_a_tombstone_is_kept_until_it_expires(self, tmp_path, now, kept):
        checkpoint(write_versions(tmp_path, *FULL), 1, now=now)
        assert [row["path"] for row in checkpoint_rows(tmp_path, 1, "remove")] == kept

    def test_the_retention_of_the_table_applies_to_tombstones(self, tmp_path):
        configuration = {"delta.deletedFileRetentionDuration": "interval 1 day 2 hours"}
        first = [PROTOCOL, metadata(**configuration), add("a"), add("b")]
        table = write_versions(tmp_path, first, [remove("a", when=0), remove("b", when=1)])
        checkpoint(table, 1, now=DAY + 2 * 3_600_000)
        assert [row["path"] for row in checkpoint_rows(tmp_path, 1, "remove")] == ["b"]

    def test_a_tombstone_is_copied_to_later_checkpoints_until_its_file_is_added_again(self, tmp_path):
        table = write_versions(tmp_path, *FULL, [add("x")], [add("a")])
        checkpoint(table, 1)
        forget(tmp_path, 0, 1)
        checkpoint(table, 2)
        checkpoint(table, 3)
        assert [row["path"] for row in checkpoint_rows(tmp_path, 2, "remove")] == ["a"]
        assert checkpoint_rows(tmp_path, 3, "remove") == []

    def test_file_actions_have_no_data_change_and_removed_domains_are_omitted(self, tmp_path):
        checkpoint(write_versions(tmp_path, *FULL), 1)
        changes = [
            row["dataChange"] for kind in ("add", "remove") for row in checkpoint_rows(tmp_path, 1, kind)
        ]
        assert changes == [False, False, False]
        assert [row["domain"] for row in checkpoint_rows(tmp_path, 1, "domainMetadata")] == ["own"]

    def test_last_checkpoint_has_version_size_and_checksum(self, tmp_path):
        checkpoint(write_versions(tmp_path, *FULL), 1)
        file = tmp_path / "_delta_log" / f"{1:020d}.checkpoint.parquet"
        pointer = json.loads((tmp_path / "_delta_log" / "_last_checkpoint").read_text())
        assert pointer.pop("checksum")
        # protocol, metaData, txn, domainMetadata, two adds and a remove.
        assert pointer == {
            "version": 1,
            "size": 7,
            "sizeInBytes": file.stat().st_size,
            "numOfAddFiles": 2,
        }
        assert pq.ParquetFile(file).metadata.num_rows == 7

    def test_last_checkpoint_only_goes_back_if_it_was_wrong(self, tmp_path):
        table = write_versions(tmp_path, *FULL)
        checkpoint(table, 1)
        checkpoint(table, 0)
        hint = tmp_path / "_delta_log" / "_last_checkpoint"
        assert json.loads(hint.read_text())["version"] == 1
        hint.write_text('{"version":99}')
        checkpoint(table, 0)
        assert json.loads(hint.read_text())["version"] == 0

    @pytest.mark.parametrize("policy", ["classic", "v2"])
    def test_a_v2_checkpoint_is_written_if_the_policy_requires_it(self, tmp_path, policy):
        table = write_versions(tmp_path, [PROTOCOL, metadata(**{"delta.checkpointPolicy": policy}), add("a")])
        before = state_of(load_snapshot(tmp_path))
        checkpoint(table, 0)
        forget(tmp_path, 0)
        assert state_of(load_snapshot(tmp_path)) == before
        (file,) = (tmp_path / "_delta_log").glob("*.checkpoint*")
        unique = f".{UUID(UNIQUE_ID)}" if policy == "v2" else ""
        assert file.name == f"{0:020d}.checkpoint{unique}.parquet"
        rows = pq.read_table(file).to_pylist()
        assert [row.get("checkpointMetadata") for row in rows][:1] == (
            [{"version": 0, "tags": [("numOfAddFiles", "1")]}] if policy == "v2" else [None]
        )

    def test_a_table_with_an_unknown_feature_gets_no_checkpoint(self, tmp_path):
        protocol = Protocol(min_reader_version=1, min_writer_version=7, writer_features=("fromTheFuture",))
        table = write_versions(tmp_path, [protocol, metadata()])
        with pytest.raises(UnsupportedFeatureError, match="fromTheFuture"):
            checkpoint(table, 0)
        assert not list((tmp_path / "_delta_log").glob("*checkpoint*"))


def test_many_checkpoints_leave_few_row_groups_of_tombstones(tmp_path):
    versions = [[remove(f"f{number}"), add(f"f{number + 1}")] for number in range(1, 40)]
    table = write_versions(tmp_path, [PROTOCOL, metadata(), add("f1")], *versions)
    for version in range(40):
        checkpoint(table, version)
    forget(tmp_path, *range(39))
    assert [row["path"] for row in checkpoint_rows(tmp_path, 39, "remove")] == [
        f"f{number}" for number in range(1, 40)
    ]
    file = tmp_path / "_delta_log" / f"{39:020d}.checkpoint.parquet"
    # One of table actions, one of files, and the powers of two in 39.
    assert pq.read_metadata(file).num_row_groups == 2 + 4


def test_only_the_bounds_of_variants_are_annotated_as_variants(tmp_path):
    """A user's struct may have fields with the names of the parts of a Variant."""
    pair = [
        {"name": name, "type": "string", "nullable": True, "metadata": {}} for name in ("metadata", "value")
    ]
    struct = {"name": "s", "type": {"type": "struct", "fields": pair}, "nullable": True, "metadata": {}}
    text = json.dumps({**SCHEMA, "fields": [*SCHEMA["fields"], struct]})
    stats = statistics(nullCount={"s": {"metadata": 0, "value": 1}})
    bound = json.loads(stats)
    bound["minValues"]["s"] = {"metadata": "a", "value": "b"}
    own = msgspec.structs.replace(
        metadata(
            **{"delta.checkpoint.writeStatsAsStruct": "true", "delta.checkpoint.writeStatsAsJson": "false"}
        ),
        schema_string=text,
    )
    table = write_versions(tmp_path, [PROTOCOL, own, add("a", json.dumps(bound))])
    checkpoint(table, 0)
    file = pq.ParquetFile(tmp_path / "_delta_log" / f"{0:020d}.checkpoint.parquet")
    lines = [line.strip() for line in str(file.schema).splitlines() if "Variant" in line]
    assert lines == ["optional group field_id=-1 event (Variant(1)) {"] * 2
    assert json.loads(load_snapshot(tmp_path).files["stats"][0].as_py()) == bound


class TestDeltalake:
    """deltalake and this library read each other's checkpoints."""

    def test_deltalake_reads_our_checkpoint(self, tmp_path):
        protocol = Protocol(min_reader_version=1, min_writer_version=2)
        schema = json.dumps({"type": "struct", "fields": SCHEMA["fields"][:1]})
        plain = msgspec.structs.replace(
            metadata(**{"delta.checkpoint.writeStatsAsStruct": "true"}), schema_string=schema
        )
        table = write_versions(tmp_path, [protocol, plain, add("a"), add("b")], [remove("a"), add("c%20d")])
        checkpoint(table, 1)
        forget(tmp_path, 0, 1)
        rows = pa.table(DeltaTable(tmp_path).get_add_actions(flatten=True)).to_pylist()
        assert [(row["path"], row["num_records"], row["min.id"]) for row in rows] == [
            ("b", 1, 0),
            ("c%20d", 1, 0),
        ]

    def test_this_library_reads_the_checkpoint_of_deltalake(self, tmp_path):
        write_versions(tmp_path, *FULL[:1], [remove("a"), add("e")])
        before = state_of(load_snapshot(tmp_path))
        DeltaTable(tmp_path).create_checkpoint()
        forget(tmp_path, 0)
        assert state_of(load_snapshot(tmp_path)) == before


def context(operation="WRITE", txn_id=UNIQUE_ID):
    return CommitContext(operation=operation, engine_info="test", txn_id=txn_id, clock=lambda: 1000)


class TestAutomaticCheckpoints:
    """A checkpoint is written after a commit every `delta.checkpointInterval` versions."""

    def versions(self, root, interval, until, before=lambda call, key: None):
        table = intercept(root, before=before)
        own = metadata(**({} if interval is None else {"delta.checkpointInterval": interval}))
        created = TableConfiguration.of(table.uri, PROTOCOL, own)
        transaction.create_table(table, created, context=context("CREATE TABLE"))
        for version in range(1, until + 1):
            unique = str(UUID(int=version))
            transaction.add_files(
                refresh_snapshot(load_snapshot(table)), [add(f"f{version}")], context=context(txn_id=unique)
            )
        return sorted(int(file.name[:20]) for file in (root / "_delta_log").glob("*.checkpoint.parquet"))

    @pytest.mark.parametrize(("interval", "expected"), [(None, [10]), ("4", [4, 8]), ("1000", [])])
    def test_a_checkpoint_follows_each_interval(self, tmp_path, interval, expected):
        assert self.versions(tmp_path, interval, 11) == expected

    def test_a_failed_checkpoint_is_logged_and_the_commit_succeeds(self, tmp_path, caplog):
        def fail(call, key):
            if call == "put" and ".checkpoint." in key:
                raise OSError(errno.EIO, "the disk is broken")

        with caplog.at_level(logging.WARNING):
            assert self.versions(tmp_path, "2", 3, fail) == []
        assert load_snapshot(tmp_path).version == 3
        assert [record.getMessage() for record in caplog.records] == [
            f"{tmp_path}: the checkpoint of version 2 was not written"
        ]

    def test_a_commit_succeeds_with_an_invalid_interval(self, tmp_path):
        assert self.versions(tmp_path, "often", 2) == []


class TestOtherFormsOfCheckpoints:
    """Forms that are read but not written."""

    def test_parquet_sidecars_of_a_json_manifest_and_of_a_parquet_one_are_read(self, tmp_path):
        table = write_versions(tmp_path, *FULL)
        before = state_of(load_snapshot(tmp_path))
        checkpoint(table, 1)
        folder = tmp_path / "_delta_log"
        classic = folder / f"{1:020d}.checkpoint.parquet"
        whole = pq.read_table(classic)
        (folder / "_sidecars").mkdir()
        pq.write_table(whole.select(["add", "remove"]), folder / "_sidecars" / "files.parquet")
        sidecar = Sidecar(path="files.parquet", size_in_bytes=1, modification_time=1)
        manifest = [PROTOCOL, metadata(), Txn(app_id="app", version=3), FULL[1][2], sidecar]
        classic.unlink()
        (folder / f"{1:020d}.checkpoint.{UNIQUE_ID}.json").write_bytes(encode_commit(manifest))
        forget(tmp_path, 0, 1)
        assert state_of(load_snapshot(tmp_path)) == before

        (folder / f"{1:020d}.checkpoint.{UNIQUE_ID}.json").unlink()
        others = whole.drop_columns(["add", "remove"])
        rows = [{"path": "files.parquet", "sizeInBytes": 1, "modificationTime": 1}]
        rows += [None] * (others.num_rows - 1)
        pq.write_table(others.append_column("sidecar", [rows]), classic)
        assert state_of(load_snapshot(tmp_path)) == before

    def test_statistics_in_columns_only_may_be_shredded(self, tmp_path):
        """PROTOCOL.md lets a Variant group be shredded; delta-spark never does."""
        table = write_versions(
            tmp_path, [PROTOCOL, metadata(**{"delta.checkpoint.writeStatsAsStruct": "true"}), add("a")]
        )
        checkpoint(table, 0)
        file = tmp_path / "_delta_log" / f"{0:020d}.checkpoint.parquet"
        (row,) = checkpoint_rows(tmp_path, 0, "add")
        bound = row["stats_parsed"]["minValues"]["event"]
        group = pa.struct([("value", pa.binary()), ("typed_value", pa.int64())])
        shredded = pa.struct(
            [("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", pa.struct([("$", group)]))]
        )
        typed = {"metadata": bound["metadata"], "value": None, "typed_value": {"$": {"typed_value": 0}}}
        parsed = pa.struct([("numRecords", pa.int64()), ("minValues", pa.struct([("event", shredded)]))])
        add_type = pa.struct([("path", pa.string()), ("size", pa.int64()), ("stats_parsed", parsed)])
        adds = [None, None, {"path": "a", "size": 7, "stats_parsed": {"minValues": {"event": typed}}}]
        whole = pq.read_table(file).drop_columns(["add"]).append_column("add", pa.array(adds, add_type))
        pq.write_table(whole, file)
        text = f'{{"minValues":{{"event":"{GOLDEN_Z85}"}}}}'
        assert load_snapshot(tmp_path).files["stats"].to_pylist() == [text]

    @pytest.mark.parametrize("keep", [0.2, 0.6, 0.99])
    def test_the_commits_are_read_instead_of_a_truncated_checkpoint(self, tmp_path, keep):
        table = write_versions(tmp_path, *FULL)
        before = state_of(load_snapshot(tmp_path))
        checkpoint(table, 1)
        file = tmp_path / "_delta_log" / f"{1:020d}.checkpoint.parquet"
        file.write_bytes(file.read_bytes()[: int(file.stat().st_size * keep)])
        assert state_of(load_snapshot(tmp_path)) == before

    @given(st.integers(0, 20_000), st.binary(min_size=1, max_size=8))
    def test_a_damaged_checkpoint_is_read_or_raises_a_delta_variant_error(self, tmp_path_factory, at, junk):
        root = tmp_path_factory.mktemp("damaged")
        table = write_versions(root, *FULL)
        checkpoint(table, 1)
        forget(root, 0)
        file = root / "_delta_log" / f"{1:020d}.checkpoint.parquet"
        data = bytearray(file.read_bytes())
        at %= len(data)
        data[at : at + len(junk)] = junk
        file.write_bytes(data)
        with contextlib.suppress(DeltaVariantError):
            load_snapshot(root)
        shutil.rmtree(root)


@pytest.mark.parametrize("arrow_type", [pa.string(), pa.binary()], ids=str)
@pytest.mark.parametrize("field", ["path", "stats"])
def test_invalid_utf_8_in_a_checkpoint_is_an_error(tmp_path, field, arrow_type):
    table = write_versions(tmp_path, [PROTOCOL, metadata(), add("a"), add("b")])
    checkpoint(table, 0)
    file = tmp_path / "_delta_log" / f"{0:020d}.checkpoint.parquet"
    rows = pq.read_table(file)
    adds = rows["add"].combine_chunks()
    texts = pa.array([b"\xff" if row else None for row in adds.to_pylist()], pa.binary())
    texts = texts.view(pa.string()) if arrow_type == pa.string() else texts
    children = [texts if name == field else adds.field(name) for name in adds.type.names]
    invalid = pa.StructArray.from_arrays(children, names=adds.type.names, mask=adds.is_null())
    pq.write_table(rows.set_column(rows.column_names.index("add"), "add", invalid), file)
    forget(tmp_path, 0)
    (tmp_path / commit_file_name(1)).write_bytes(encode_commit([CommitInfo({})]))
    with pytest.raises(MalformedLogError, match=r"cannot read the checkpoint: .*(?i:utf)") as caught:
        load_snapshot(tmp_path)
    assert caught.value.file.endswith(file.name)


def test_the_files_of_a_checkpoint_are_not_in_the_default_memory_pool(tmp_path):
    files = [add(f"{number}.parquet", stats="x" * 1000) for number in range(10_000)]
    checkpoint(write_versions(tmp_path, [PROTOCOL, metadata(), *files]), 0)
    forget(tmp_path, 0)
    before = pa.default_memory_pool().bytes_allocated()
    (tmp_path / commit_file_name(1)).write_bytes(encode_commit([remove("5.parquet")]))
    snapshot = load_snapshot(tmp_path)
    assert snapshot.num_files == len(files) - 1
    assert snapshot.files.nbytes > 10_000_000
    assert pa.default_memory_pool().bytes_allocated() - before < 5_000_000


class TestCompactions:
    """PROTOCOL.md, "Log Compaction Files"."""

    VERSIONS = (
        [PROTOCOL, metadata(), add("a")],
        [add("b"), Txn(app_id="app", version=1)],
        [remove("a"), add("c")],
        [add("d"), remove("b"), Txn(app_id="app", version=2)],
    )
    SUM_1_TO_2 = (add("b"), remove("a"), add("c"), Txn(app_id="app", version=1))

    def compact(self, root, first, last, actions):
        file = root / "_delta_log" / f"{first:020d}.{last:020d}.compacted.json"
        file.write_bytes(encode_commit(actions))
        return file

    def test_a_compaction_replaces_its_commits(self, tmp_path):
        write_versions(tmp_path, *self.VERSIONS)
        before = [state_of(load_snapshot(tmp_path, version)) for version in (2, 3)]
        self.compact(tmp_path, 1, 2, self.SUM_1_TO_2)
        forget(tmp_path, 1, 2)
        assert [state_of(load_snapshot(tmp_path, version)) for version in (2, 3)] == before
        with raises_at(MalformedLogError, "is missing", version=1):
            load_snapshot(tmp_path, 1)

    def test_the_commits_are_read_instead_of_a_malformed_compaction(self, tmp_path):
        write_versions(tmp_path, *self.VERSIONS)
        before = state_of(load_snapshot(tmp_path))
        self.compact(tmp_path, 1, 2, self.SUM_1_TO_2).write_text('{"add":')
        assert state_of(load_snapshot(tmp_path)) == before
        forget(tmp_path, 2)
        with pytest.raises(MalformedLogError) as caught:
            load_snapshot(tmp_path)
        assert str(caught.value.file).endswith("00000000000000000002.compacted.json")
        assert caught.value.line == 1

    def test_a_compaction_beyond_the_requested_version_is_not_used(self, tmp_path):
        write_versions(tmp_path, *self.VERSIONS)
        before = state_of(load_snapshot(tmp_path, 2))
        self.compact(tmp_path, 1, 3, [add("wrong")])
        assert state_of(load_snapshot(tmp_path, 2)) == before

    # Databricks writes compactions that are not reconciled, newest action first.
    NEWEST_FIRST = (
        remove("a"),
        add("c"),
        DomainMetadata(domain="d", configuration="new", removed=False),
        Txn(app_id="app", version=2),
        metadata(round="new"),
        Protocol(min_reader_version=1, min_writer_version=2),
        remove("b"),
        add("a"),
        add("b"),
        add("b"),
        DomainMetadata(domain="d", configuration="old", removed=False),
        Txn(app_id="app", version=1),
        metadata(round="old"),
        PROTOCOL,
    )

    def test_the_first_action_of_a_key_is_used_in_an_unreconciled_compaction(self, tmp_path):
        (tmp_path / "_delta_log").mkdir()
        self.compact(tmp_path, 0, 2, self.NEWEST_FIRST)
        (tmp_path / "_delta_log" / f"{3:020d}.json").write_bytes(encode_commit([add("e")]))
        snapshot, tombstones = load_with_tombstones(store.open_store(tmp_path))
        assert sorted(snapshot.files["path"].to_pylist()) == ["c", "e"]
        assert sorted(tombstones["path"].to_pylist()) == ["a", "b"]
        assert (snapshot.protocol.min_reader_version, snapshot.protocol.min_writer_version) == (1, 2)
        assert snapshot.properties == {"round": "new"}
        assert snapshot.txns["app"].version == 2
        assert snapshot.domain_metadata["d"].configuration == "new"
        protocol, last = load_protocol_and_metadata(store.open_store(tmp_path), 3)
        assert (protocol.min_writer_version, last.configuration) == (2, {"round": "new"})

    def test_the_commits_are_read_instead_of_an_unreconciled_compaction(self, tmp_path):
        write_versions(tmp_path, *self.VERSIONS)
        root = store.open_store(tmp_path)
        before, tombstones = load_with_tombstones(root)
        # Neither the first nor the last action of each key is right.
        self.compact(tmp_path, 1, 2, [add("a"), remove("a"), add("c"), remove("c"), *self.SUM_1_TO_2[3:]])
        after, tombstones_after = load_with_tombstones(root)
        assert (state_of(after), tombstones_after) == (state_of(before), tombstones)

    def test_a_damaged_commit_of_an_unreconciled_compaction_is_not_needed(self, tmp_path):
        write_versions(tmp_path, *self.VERSIONS)
        self.compact(tmp_path, 1, 2, [remove("a"), add("c"), add("a"), add("b")])
        (tmp_path / "_delta_log" / f"{2:020d}.json").write_text('{"add":')
        assert sorted(load_snapshot(tmp_path, 3).files["path"].to_pylist()) == ["c", "d"]

    def test_the_in_commit_timestamp_is_read_from_the_commit(self, tmp_path):
        features = ("inCommitTimestamp",)
        protocol = Protocol(min_reader_version=1, min_writer_version=7, writer_features=features)
        on = metadata(**{"delta.enableInCommitTimestamps": "true"})
        table = store.open_store(tmp_path)
        commit_actions(table, 0, [CommitInfo({"inCommitTimestamp": 5}), protocol, on])
        commit_actions(table, 1, [CommitInfo({"inCommitTimestamp": 9}), add("a")])
        commit_actions(table, 2, [CommitInfo({"inCommitTimestamp": 12}), add("b")])
        self.compact(tmp_path, 0, 1, [protocol, on, add("a")])
        assert [load_snapshot(tmp_path, version).timestamp for version in (0, 1, 2)] == [5, 9, 12]
        checkpoint(table, 2)
        assert load_snapshot(tmp_path).timestamp == 12


class TestChecksums:
    """PROTOCOL.md, "Version Checksum File"."""

    def test_the_checksums_of_spark_agree_with_the_log(self, corpora, tmp_path):
        checked = 0
        for archive in sorted(corpora.glob("delta-spark/*.tar.gz")):
            with tarfile.open(archive) as files:
                files.extractall(tmp_path, filter="data")
            root = tmp_path / archive.name.removesuffix(".tar.gz")
            for version in range(load_snapshot(root).version + 1):
                assert state_discrepancies(load_snapshot(root, version)) == []
                checked += (root / "_delta_log" / f"{version:020d}.crc").exists()
        assert checked == 64

    def fields(self):
        return {
            "tableSizeBytes": 14,
            "numFiles": 2,
            "numMetadata": 1,
            "numProtocol": 1,
            "metadata": msgspec.to_builtins(metadata()),
            "protocol": msgspec.to_builtins(PROTOCOL),
            "setTransactions": [{"appId": "app", "version": 3}],
            "domainMetadata": [{"domain": "own", "configuration": "{}", "removed": False}],
            "fileSizeHistogram": {
                "sortedBinBoundaries": [0, 5],
                "fileCounts": [0, 2],
                "totalBytes": [0, 14],
            },
            "allFiles": [{"path": "b%20c"}, {"path": "d"}],
            "numDeletedRecordsOpt": 3,
            "numDeletionVectorsOpt": 1,
            "unknown": {},
        }

    def discrepancies(self, root, fields):
        write_versions(root, *FULL)
        (root / "_delta_log" / f"{1:020d}.crc").write_text(json.dumps(fields))
        return state_discrepancies(load_snapshot(root))

    def test_a_correct_or_missing_checksum_has_no_discrepancies(self, tmp_path):
        assert self.discrepancies(tmp_path, self.fields()) == []
        assert state_discrepancies(load_snapshot(tmp_path, 0)) == []

    @pytest.mark.parametrize(
        ("name", "value", "sentence"),
        [
            ("tableSizeBytes", 13, "tableSizeBytes is 13, expected 14"),
            ("numFiles", 3, "numFiles is 3, expected 2"),
            ("numMetadata", 2, "numMetadata is 2, expected 1"),
            ("setTransactions", [], "setTransactions.app is missing, expected {"),
            ("domainMetadata", [], "domainMetadata.own is missing, expected {"),
            ("allFiles", [{"path": "d"}], "allFiles[0] is 'd', expected 'b c'"),
            ("numDeletedRecordsOpt", 4, "numDeletedRecordsOpt is 4, expected 3"),
            ("inCommitTimestampOpt", 4, "inCommitTimestampOpt is 4, expected None"),
            ("numFiles", None, "Expected `int`, got `null`"),
        ],
    )
    def test_a_wrong_checksum_is_reported_and_the_table_can_be_read(self, tmp_path, name, value, sentence):
        (found,) = self.discrepancies(tmp_path, {**self.fields(), name: value})
        assert f"_delta_log/{1:020d}.crc" in found
        assert sentence in found


KEYS = st.tuples(st.sampled_from("abc% ü"), st.sampled_from([None, VECTOR]))


@given(
    commits=st.lists(st.dictionaries(KEYS, st.booleans(), max_size=4), min_size=1, max_size=8),
    data=st.data(),
)
def test_a_replay_with_checkpoints_equals_a_replay_without(tmp_path_factory, commits, data):
    root = tmp_path_factory.mktemp("replay")
    versions = [
        [
            (add if is_added else remove)(path.replace("%", "%25"), deletion_vector=vector)
            for (path, vector), is_added in actions.items()
        ]
        for actions in commits
    ]
    configuration = {
        "delta.checkpoint.writeStatsAsStruct": "true",
        "delta.checkpoint.writeStatsAsJson": "false",
    }
    table = write_versions(root, [PROTOCOL, metadata(**configuration)], *versions)
    without = [state_of(load_snapshot(root, version)) for version in range(len(commits) + 1)]
    for version in sorted(data.draw(st.sets(st.integers(0, len(commits)), max_size=3))):
        checkpoint(table, version)
    assert [state_of(load_snapshot(root, version)) for version in range(len(commits) + 1)] == without
    shutil.rmtree(root)
