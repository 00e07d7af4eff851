"""The log: real tables with deltalake as the reference, and damaged logs."""

from __future__ import annotations

import json
import uuid

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from support.archives import GOLDEN_TABLES, SPARK_TABLES, unpack_spark_table
from support.commits import commit_actions
from support.errors import raises_at
from support.intercepted_store import intercept
from support.tables import commit_path

from delta_variant.errors import (
    MalformedLogError,
    TableNotFoundError,
    VersionExistsError,
    VersionNotFoundError,
)
from delta_variant.log import commits, listing
from delta_variant.log.commits import read_commits
from delta_variant.log.file_tables import FILES_SCHEMA
from delta_variant.log.listing import Span
from delta_variant.log.load import load_snapshot
from delta_variant.log.timestamps import CommitTimes
from delta_variant.protocol.actions import (
    AddFile,
    CheckpointMetadata,
    CommitInfo,
    Format,
    Metadata,
    Protocol,
    RemoveFile,
    Sidecar,
    encode_commit,
    encode_path,
)
from delta_variant.storage import store

PROTOCOL = Protocol(min_reader_version=1, min_writer_version=2)
METADATA = Metadata(
    id="m",
    format=Format(),
    schema_string='{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}',
    partition_columns=(),
    configuration={},
)


@pytest.fixture
def spark_table(corpora, tmp_path):
    def unpack(name):
        return unpack_spark_table(corpora, name, tmp_path)

    return unpack


def add(path, stats='{"numRecords":1}'):
    return AddFile(
        path=path, partition_values={"k": "v"}, size=1, modification_time=1, data_change=True, stats=stats
    )


def table_of(tmp_path, versions=5):
    """Write a table with one file per version; version 3 removes the file of version 1."""
    root = store.open_store(tmp_path)
    commit_actions(root, 0, [CommitInfo({"operation": "X"}), PROTOCOL, METADATA, add("f0")])
    for version in range(1, versions):
        removed = [RemoveFile(path="f1", data_change=True)] if version == 3 else []
        commit_actions(root, version, [add(f"f{version}"), *removed])
    return root


def paths(state):
    return sorted(state.files["path"].to_pylist())


def write_checkpoint(tmp_path, version, name=None, part=slice(None)):
    """Write the state of a version as one Parquet file with the actions in the slice `part`."""
    state = load_snapshot(tmp_path, version)
    rows = [{"protocol": PROTOCOL}, {"metaData": METADATA}, *({"add": add(path)} for path in paths(state))]
    text_map = pa.map_(pa.string(), pa.string())
    plain = msgspec.to_builtins(rows[part])
    schema = pa.schema(
        [
            ("protocol", pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())])),
            (
                "metaData",
                pa.struct(
                    [
                        ("id", pa.string()),
                        ("format", pa.struct([("provider", pa.string()), ("options", text_map)])),
                        ("schemaString", pa.string()),
                        ("partitionColumns", pa.list_(pa.string())),
                        ("configuration", text_map),
                    ]
                ),
            ),
            (
                "add",
                pa.struct(
                    [
                        ("path", pa.string()),
                        ("partitionValues", text_map),
                        ("size", pa.int64()),
                        ("modificationTime", pa.int64()),
                        ("dataChange", pa.bool_()),
                        ("stats", pa.string()),
                    ]
                ),
            ),
        ]
    )
    file = tmp_path / "_delta_log" / (name or f"{version:020d}.checkpoint.parquet")
    file.parent.mkdir(exist_ok=True, parents=True)
    pq.write_table(pa.Table.from_pylist(plain, schema), file)
    return file


def hint(tmp_path, text):
    (tmp_path / "_delta_log" / "_last_checkpoint").write_text(text)


def agrees_with_deltalake(folder, version=None):
    ours, theirs = load_snapshot(folder, version), DeltaTable(folder, version=version)
    described = pa.table(theirs.get_add_actions()).to_pylist()
    assert ours.version == theirs.version()
    assert json.loads(ours.metadata.schema_string) == json.loads(theirs.schema().to_json())
    assert ours.properties == theirs.metadata().configuration
    # deltalake returns the percent-encoded paths of the log.
    assert sorted((row["path"], row["size_bytes"]) for row in described) == sorted(
        (encode_path(row["path"]), row["size"]) for row in ours.files.to_pylist()
    )
    counts = {row["path"]: row["num_records"] for row in described}
    for row in ours.files.to_pylist():
        assert json.loads(row["stats"])["numRecords"] == counts[encode_path(row["path"])]


@pytest.mark.parametrize("name", SPARK_TABLES)
def test_every_version_of_a_spark_table_is_the_same_in_deltalake(spark_table, name):
    folder = spark_table(name)
    for version in range(DeltaTable(folder).version() + 1):
        agrees_with_deltalake(folder, version)
    agrees_with_deltalake(folder)


def test_every_spark_table_is_listed(corpora):
    assert sorted(path.name for path in corpora.glob("delta-spark/*.tar.gz")) == [
        f"{n}.tar.gz" for n in SPARK_TABLES
    ]


@pytest.mark.parametrize("name", GOLDEN_TABLES)
def test_a_golden_table_is_the_same_in_deltalake(corpora, name):
    agrees_with_deltalake(corpora / "delta-golden" / name)


@pytest.mark.parametrize("name", ["d_v2ckpt", "d_ckpt_struct_nojson"])
def test_statistics_in_a_checkpoint_equal_those_of_the_commits_byte_for_byte(spark_table, name):
    """They come from `stats` unchanged, or from `stats_parsed` only."""
    folder = spark_table(name)
    by_path = {row["path"]: row["stats"] for row in load_snapshot(folder).files.to_pylist()}
    for commit in sorted((folder / "_delta_log").glob("0*[0-9].json")):
        for line in commit.read_text().splitlines():
            if added := json.loads(line).get("add"):
                assert by_path[added["path"]] == added["stats"]
    assert len(by_path) == 3


def test_a_checkpoint_with_only_struct_statistics_gives_the_text_of_the_commits(spark_table):
    """The Variants in `stats_parsed` give the same z85 strings byte for byte."""
    folder = spark_table("d_ckpt_struct_nojson")
    texts = {}
    for commit in sorted((folder / "_delta_log").glob("0*[0-9].json")):
        for line in commit.read_text().splitlines():
            if added := json.loads(line).get("add"):
                texts[added["path"]] = added["stats"]
    snapshot = load_snapshot(folder, 2)
    for version in (0, 1):
        commit_path(folder, version).unlink()
    assert load_snapshot(folder, 2).files.equals(snapshot.files)
    assert snapshot.num_files == 2
    for path, text in zip(*(snapshot.files[name].to_pylist() for name in ("path", "stats")), strict=True):
        assert "v" in json.loads(text)["minValues"]
        assert json.loads(text) == json.loads(texts[path])


def test_a_v2_checkpoint_is_sufficient_without_the_commits_before_it(spark_table):
    folder = spark_table("d_v2ckpt")
    before = load_snapshot(folder)
    for version in (0, 1):
        commit_path(folder, version).unlink()
    assert paths(load_snapshot(folder)) == paths(before)
    with pytest.raises(VersionNotFoundError, match="its log starts at version 2"):
        load_snapshot(folder, 1)


def test_deletion_vectors_are_columns_of_the_snapshot(spark_table):
    vectors = load_snapshot(spark_table("d_dv")).files["deletion_vector"].to_pylist()
    assert {vector["storage_type"] for vector in vectors if vector} == {"u"}


def test_a_percent_encoded_path_is_decoded_once(corpora):
    folder = corpora / "delta-golden" / "variant-stats-with-struct-no-checkpoint"
    found = paths(load_snapshot(folder))
    assert [path[:26] for path in found] == ["test%file%prefix-part-0000"] * 2
    assert sorted(found) == sorted(path.name for path in folder.glob("*.parquet"))


def test_every_version_can_be_loaded(tmp_path):
    table_of(tmp_path)
    assert [paths(load_snapshot(tmp_path, version)) for version in range(5)] == [
        ["f0"],
        ["f0", "f1"],
        ["f0", "f1", "f2"],
        ["f0", "f2", "f3"],
        ["f0", "f2", "f3", "f4"],
    ]
    assert load_snapshot(tmp_path).version == 4


@pytest.mark.parametrize("version", [5, -1])
def test_the_error_for_a_missing_version_has_the_latest_version(tmp_path, version):
    table_of(tmp_path)
    with raises_at(VersionNotFoundError, "its latest is 4", version=version):
        load_snapshot(tmp_path, version)


def test_a_folder_without_a_log_is_not_a_table(tmp_path):
    with pytest.raises(TableNotFoundError, match=r"there is no Delta table at .*/t"):
        load_snapshot(tmp_path / "t")
    with pytest.raises(TableNotFoundError):
        load_snapshot(tmp_path / "t", 0)


def test_a_commit_is_never_overwritten(tmp_path):
    root = table_of(tmp_path)
    before = commit_path(tmp_path, 4).read_bytes()
    with pytest.raises(VersionExistsError, match=r"00000000000000000004\.json already exists"):
        commit_actions(root, 4, [add("x")])
    assert commit_path(tmp_path, 4).read_bytes() == before


def test_read_commits_returns_the_commits_after_a_version(tmp_path):
    root = table_of(tmp_path)
    assert [version for version, _ in read_commits(root, 2)] == [3, 4]
    assert read_commits(root, 4) == []


@pytest.mark.parametrize("missing", [0, 2])
def test_the_error_for_a_missing_commit_has_its_file_and_version(tmp_path, missing):
    table_of(tmp_path)
    commit_path(tmp_path, missing).unlink()
    with pytest.raises(MalformedLogError, match="is missing") as caught:
        load_snapshot(tmp_path)
    assert caught.value.version == missing
    assert str(caught.value.file).endswith(f"{missing:020d}.json")


def test_a_listing_may_miss_commits_that_were_created_concurrently(tmp_path, monkeypatch):
    """A folder is not listed at one time: the listing may have version 4, and not the versions 1 and 2."""
    root = table_of(tmp_path)
    complete = listing.list_log(root, None)

    def list_partly(*arguments):
        found = store.list_file_info(*arguments)
        return [file for file in found if not file.path.endswith(("1.json", "2.json"))]

    monkeypatch.setattr(listing, "list_file_info", list_partly)
    assert listing.list_log(root, None) == complete
    assert paths(load_snapshot(tmp_path)) == ["f0", "f2", "f3", "f4"]


def test_commits_are_only_needed_after_a_checkpoint(tmp_path):
    table_of(tmp_path)
    write_checkpoint(tmp_path, 2)
    commit_path(tmp_path, 1).unlink()
    assert paths(load_snapshot(tmp_path)) == ["f0", "f2", "f3", "f4"]
    commit_path(tmp_path, 3).unlink()
    with raises_at(MalformedLogError, "is missing", version=3):
        load_snapshot(tmp_path)
    assert load_snapshot(tmp_path, 2).version == 2


def test_the_error_for_a_malformed_line_has_file_line_and_version(tmp_path):
    table_of(tmp_path)
    with commit_path(tmp_path, 2).open("a") as file:
        file.write('{"add":3}\n')
    with pytest.raises(
        MalformedLogError, match=r"00000000000000000002\.json, line 2: Expected `object"
    ) as caught:
        load_snapshot(tmp_path)
    assert caught.value.version == 2


@pytest.mark.parametrize(
    "text",
    [
        '{"version":2,"size":6}',
        '{"version":1}',
        '{"version":99}',
        '{"version":-1}',
        "{",
        "",
        '{"version":"x"}',
    ],
)
def test_last_checkpoint_is_only_a_hint(tmp_path, text):
    table_of(tmp_path)
    write_checkpoint(tmp_path, 2)
    hint(tmp_path, text)
    assert paths(load_snapshot(tmp_path)) == ["f0", "f2", "f3", "f4"]
    assert paths(load_snapshot(tmp_path, 1)) == ["f0", "f1"]


@pytest.mark.parametrize("with_hint", [False, True])
def test_a_corrupt_checkpoint_is_ignored_if_older_files_have_its_actions(tmp_path, with_hint):
    table_of(tmp_path)
    checkpoint = write_checkpoint(tmp_path, 2)
    checkpoint.write_bytes(b"PAR1 not really")
    if with_hint:
        hint(tmp_path, '{"version":2,"size":6}')
    assert paths(load_snapshot(tmp_path)) == ["f0", "f2", "f3", "f4"]
    commit_path(tmp_path, 0).unlink()
    with raises_at(MalformedLogError, "cannot read the checkpoint", file=str(checkpoint), version=2):
        load_snapshot(tmp_path)


def test_a_checkpoint_without_protocol_is_not_used(tmp_path):
    table_of(tmp_path)
    write_checkpoint(tmp_path, 2, part=slice(1, None))
    assert paths(load_snapshot(tmp_path)) == ["f0", "f2", "f3", "f4"]


def test_a_multi_part_checkpoint_is_used_when_it_is_complete(tmp_path):
    table_of(tmp_path)
    names = [f"{2:020d}.checkpoint.{part:010d}.{2:010d}.parquet" for part in (1, 2)]
    first = write_checkpoint(tmp_path, 2, names[0], slice(None, 3))
    assert paths(load_snapshot(tmp_path)) == ["f0", "f2", "f3", "f4"]
    state = load_snapshot(tmp_path, 2)
    rest = write_checkpoint(tmp_path, 2, "rest.parquet", slice(3, None))
    rest.rename(tmp_path / "_delta_log" / names[1])
    commit_path(tmp_path, 0).unlink()
    assert paths(load_snapshot(tmp_path, 2)) == paths(state)
    first.unlink()
    with raises_at(MalformedLogError, "is missing", version=0):
        load_snapshot(tmp_path, 2)


def test_a_json_checkpoint_with_inline_files_is_read(tmp_path):
    root = table_of(tmp_path)
    name = f"_delta_log/{2:020d}.checkpoint.{uuid.UUID(int=7)}.json"
    actions = [CheckpointMetadata(version=2), PROTOCOL, METADATA, *(add(f"f{n}") for n in range(3))]
    store.put(root, name, encode_commit(actions))
    commit_path(tmp_path, 0).unlink()
    assert paths(load_snapshot(tmp_path)) == ["f0", "f2", "f3", "f4"]


def test_a_checkpoint_without_its_sidecar_is_not_used(tmp_path):
    root = table_of(tmp_path)
    name = f"_delta_log/{2:020d}.checkpoint.{uuid.UUID(int=7)}.json"
    sidecar = Sidecar(path="lost.parquet", size_in_bytes=1, modification_time=1)
    store.put(root, name, encode_commit([CheckpointMetadata(version=2), PROTOCOL, METADATA, sidecar]))
    assert paths(load_snapshot(tmp_path)) == ["f0", "f2", "f3", "f4"]


def test_a_log_compaction_a_checksum_and_a_temporary_file_are_not_commits(tmp_path):
    root = table_of(tmp_path)
    for name in (
        f"{0:020d}.{9:020d}.compacted.json",
        f"{9:020d}.crc",
        f".{9:020d}.json.tmp",
        f"_sidecars/{9:020d}.json",
    ):
        store.put(root, f"_delta_log/{name}", b"{")
    assert load_snapshot(tmp_path).version == 4


@pytest.mark.parametrize(
    "name",
    [
        f"{2**63:020d}.json",
        "99999999999999999999.json",
        "\u0661" * 20 + ".json",
        f"{2**63:020d}.checkpoint.parquet",
        f"{2**63:020d}.checkpoint.{1:010d}.{1:010d}.parquet",
        f"{0:020d}.{2**63:020d}.compacted.json",
    ],
)
def test_a_number_beyond_64_bits_is_not_a_version(tmp_path, name):
    root = table_of(tmp_path)
    store.put(root, f"_delta_log/{name}", b"{")
    assert load_snapshot(tmp_path).version == 4
    assert list(CommitTimes.of(root).modified) == [0, 1, 2, 3, 4]
    assert [version for version, _ in read_commits(root, 2)] == [3, 4]


def test_a_log_with_only_impossible_versions_is_not_a_table(tmp_path):
    store.put(store.open_store(tmp_path), "_delta_log/99999999999999999999.json", b"{}")
    with pytest.raises(TableNotFoundError):
        load_snapshot(tmp_path)


def test_a_checkpoint_hint_beyond_64_bits_is_ignored(tmp_path):
    store.put(table_of(tmp_path), "_delta_log/_last_checkpoint", b'{"version": 9223372036854775808}')
    assert load_snapshot(tmp_path).version == 4


def test_the_greatest_version_cannot_be_followed_by_another(tmp_path):
    with pytest.raises(MalformedLogError, match="9223372036854775807, is the greatest"):
        commit_actions(store.open_store(tmp_path), 2**63, [add("a")])
    assert list(tmp_path.iterdir()) == []


def test_files_of_commits_and_checkpoints_have_one_schema(tmp_path):
    table_of(tmp_path)
    write_checkpoint(tmp_path, 2)
    for version in (1, 2, 4):
        assert load_snapshot(tmp_path, version).files.schema == FILES_SCHEMA


def test_at_most_16_commits_are_fetched_ahead(tmp_path):
    table_of(tmp_path, versions=40)
    fetched = []
    table = intercept(tmp_path, before=lambda call, key: fetched.append(key))
    spans = [Span(version, version) for version in range(40)]
    for number, _ in enumerate(commits.read_spans(table, spans)):
        assert len(fetched) <= number + 1 + 16
    assert len(fetched) == 40


def test_a_load_does_not_replace_the_default_memory_pool(tmp_path, monkeypatch):
    pools = []
    monkeypatch.setattr(pa, "set_memory_pool", pools.append)
    table_of(tmp_path)
    write_checkpoint(tmp_path, 2)
    load_snapshot(tmp_path)
    assert pools == []
