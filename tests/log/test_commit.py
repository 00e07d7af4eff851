"""Commits: create and append, conflicts, in-commit timestamps, row ids; deltalake is the reference."""

from __future__ import annotations

import json
import multiprocessing
import os
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from support.errors import raises_at
from support.intercepted_store import intercept
from support.tables import read_commit

from delta_variant.errors import (
    CommitConflictError,
    ProtocolError,
    StoreError,
    TableExistsError,
)
from delta_variant.log import transaction
from delta_variant.log.commit_context import CommitContext
from delta_variant.log.listing import commit_file_name
from delta_variant.log.load import load_snapshot
from delta_variant.log.load import refresh as refresh_snapshot
from delta_variant.protocol.actions import (
    AddFile,
    DomainMetadata,
    Format,
    Metadata,
    Protocol,
    Txn,
    decode_commit,
    encode_path,
)
from delta_variant.protocol.table_configuration import TableConfiguration
from delta_variant.storage import store

SCHEMA = (
    '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}},'
    '{"name":"day","type":"string","nullable":true,"metadata":{}}]}'
)
PLAIN = Protocol(min_reader_version=1, min_writer_version=2)
ICT = Protocol(min_reader_version=1, min_writer_version=7, writer_features=("inCommitTimestamp",))
ROW_TRACKING = Protocol(
    min_reader_version=1, min_writer_version=7, writer_features=("rowTracking", "domainMetadata")
)
ICT_ON = {"delta.enableInCommitTimestamps": "true"}


def metadata(configuration=None, partition_columns=()):
    return Metadata(
        id="0b0a0c3e-3d2c-4b0e-9d5e-0c7b4b0f9a11",
        format=Format(),
        schema_string=SCHEMA,
        partition_columns=partition_columns,
        configuration=configuration or {},
        created_time=1,
    )


def context(operation="WRITE", clock=lambda: 1000, txn_id="t-1", **others):
    return CommitContext(
        operation=operation, engine_info="delta-variant/0.0.0", txn_id=txn_id, clock=clock, **others
    )


def data_file(root, name, rows=2, day=None):
    """Write a small Parquet file and return its AddFile."""
    columns = {"id": pa.array(range(rows), pa.int64())}
    if day is None:
        columns["day"] = pa.array(["x"] * rows, pa.string())
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return AddFile(
        path=encode_path(name),
        partition_values={} if day is None else {"day": day},
        size=path.stat().st_size,
        modification_time=5,
        data_change=True,
        stats=json.dumps({"numRecords": rows, "minValues": {"id": 0}}),
    )


def add(name="a.parquet", stats='{"numRecords":10}'):
    return AddFile(path=name, partition_values={}, size=1, modification_time=1, data_change=True, stats=stats)


def create(root, protocol=PLAIN, configuration=None, adds=(), **others):
    return transaction.create_table(
        store.open_store(root),
        TableConfiguration.of(str(root), protocol, metadata(configuration)),
        adds,
        context=context("CREATE TABLE", **others),
    )


def test_create_and_append_write_the_required_fields_and_no_nulls(tmp_path):
    assert create(tmp_path, parameters={"partitionBy": [], "description": None}) == 0
    version = transaction.add_files(
        load_snapshot(tmp_path),
        [add()],
        context=context(
            txn_id="t-2",
            parameters={"mode": "Append", "partitionBy": ["day"]},
            metrics={"numFiles": 1},
        ),
    )
    assert version == 1
    assert read_commit(tmp_path, 0)[0]["commitInfo"]["operationParameters"] == {
        "partitionBy": "[]",
        "description": None,
    }
    assert read_commit(tmp_path, 0)[1] == {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    assert read_commit(tmp_path, 0)[2]["metaData"]["format"] == {"provider": "parquet", "options": {}}
    assert read_commit(tmp_path, 1) == [
        {
            "commitInfo": {
                "timestamp": 1000,
                "operation": "WRITE",
                "operationParameters": {"mode": "Append", "partitionBy": '["day"]'},
                "readVersion": 0,
                "isBlindAppend": True,
                "operationMetrics": {"numFiles": "1"},
                "engineInfo": "delta-variant/0.0.0",
                "txnId": "t-2",
            }
        },
        {
            "add": {
                "path": "a.parquet",
                "partitionValues": {},
                "size": 1,
                "modificationTime": 1,
                "dataChange": True,
                "stats": '{"numRecords":10}',
            }
        },
    ]


def test_deltalake_reads_files_rows_schema_and_version_and_its_checkpoint_keeps_stats(tmp_path):
    root = store.open_store(tmp_path)
    names = ["day=a b%2F/100% #ü.parquet", "day=/plain.parquet", "day=x/last.parquet"]
    adds = [
        data_file(tmp_path, name, rows=3, day=day) for name, day in zip(names, ["a b/", "", "x"], strict=True)
    ]
    table = TableConfiguration.of(root.uri, PLAIN, metadata(partition_columns=("day",)))
    transaction.create_table(root, table, adds[:2], context=context("CREATE TABLE"))
    transaction.add_files(load_snapshot(tmp_path), adds[2:], context=context(txn_id="t-2"))
    ours, theirs = load_snapshot(tmp_path), DeltaTable(tmp_path)
    assert theirs.version() == ours.version == 1
    assert json.loads(theirs.schema().to_json()) == json.loads(SCHEMA)
    assert theirs.count() == 9
    described = pa.table(theirs.get_add_actions()).to_pylist()
    assert sorted(row["num_records"] for row in described) == [3, 3, 3]
    assert sorted(ours.files["path"].to_pylist()) == sorted(names)
    for name in names:
        assert store.local_path(root, name).is_file()
    theirs.create_checkpoint()
    assert (tmp_path / "_delta_log" / "00000000000000000001.checkpoint.parquet").exists()
    (tmp_path / commit_file_name(0)).unlink()
    again = load_snapshot(tmp_path)
    assert by_path(again) == by_path(ours)
    assert (again.protocol.min_writer_version, again.metadata) == (2, ours.metadata)


def by_path(snapshot):
    columns = ["path", "partition_values", "size", "modification_time", "stats"]
    return sorted(snapshot.files.select(columns).to_pylist(), key=lambda row: row["path"])


def test_create_rejects_an_existing_table(tmp_path):
    create(tmp_path)
    with pytest.raises(TableExistsError, match="already"):
        create(tmp_path, txn_id="t-2")
    assert len(read_commit(tmp_path, 0)) == 3


def test_a_create_with_a_lost_answer_recognizes_its_own_commit(tmp_path):
    create(tmp_path)
    assert create(tmp_path) == 0


def test_an_append_succeeds_after_another_append(tmp_path):
    create(tmp_path)
    stale = load_snapshot(tmp_path)
    assert transaction.add_files(stale, [add("a")], context=context(txn_id="a")) == 1
    assert transaction.add_files(stale, [add("b")], context=context(txn_id="b")) == 2
    assert sorted(refresh_snapshot(stale).files["path"].to_pylist()) == ["a", "b"]


def test_an_append_with_a_lost_answer_is_not_committed_twice(tmp_path):
    create(tmp_path)

    def lose_the_answer(call, key):
        # A store that repeats a put finds the file that its first attempt wrote.
        if call == "create":
            raise FileExistsError(key)

    snapshot = load_snapshot(intercept(tmp_path, after=lose_the_answer))
    assert transaction.add_files(snapshot, [add()], context=context(txn_id="lost")) == 1
    assert load_snapshot(tmp_path).version == 1


def test_an_append_conflicts_with_a_concurrent_change_of_metadata(tmp_path):
    create(tmp_path)
    stale = load_snapshot(tmp_path)
    after = replace(stale.configuration, metadata=metadata({"a": "b"}))
    transaction.add_files(stale, [], after=after, context=context(txn_id="a"))
    with raises_at(CommitConflictError, "changed the metadata", version=1):
        transaction.add_files(stale, [add()], context=context(txn_id="b"))
    assert load_snapshot(tmp_path).version == 1


def test_an_append_conflicts_with_a_concurrent_change_of_protocol(tmp_path):
    create(tmp_path)
    stale = load_snapshot(tmp_path)
    after = replace(stale.configuration, protocol=ICT)
    transaction.add_files(stale, [], after=after, context=context(txn_id="a"))
    with raises_at(CommitConflictError, "changed the protocol", version=1):
        transaction.add_files(stale, [add()], context=context(txn_id="b"))


def test_an_append_conflicts_only_with_a_transaction_of_its_application(tmp_path):
    create(tmp_path)
    stale = load_snapshot(tmp_path)
    mine, other = Txn(app_id="mine", version=1), Txn(app_id="other", version=1)
    transaction.add_files(stale, [], context=context(txn_id="a", txn=mine))
    with raises_at(CommitConflictError, "transaction of the same application 'mine'", version=1):
        transaction.add_files(stale, [], context=context(txn_id="b", txn=mine))
    assert transaction.add_files(stale, [], context=context(txn_id="c", txn=other)) == 2
    assert refresh_snapshot(stale).txns == {
        "mine": Txn(app_id="mine", version=1),
        "other": Txn(app_id="other", version=1),
    }


def test_an_append_gives_up_after_max_attempts(tmp_path, monkeypatch):
    monkeypatch.setattr("delta_variant.log.transaction.MAX_ATTEMPTS", 1)
    create(tmp_path)
    stale = load_snapshot(tmp_path)
    transaction.add_files(stale, [], context=context(txn_id="a"))
    with raises_at(CommitConflictError, "within 1 attempts", version=1):
        transaction.add_files(stale, [], context=context(txn_id="b"))


def _a_folder(path):
    path.mkdir()


def _a_link_to_nowhere(path):
    path.symlink_to("nowhere.json")


def _a_pipe(path):
    os.mkfifo(path)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no named pipes in folders")
@pytest.mark.parametrize("obstruct", [_a_folder, _a_link_to_nowhere, _a_pipe])
def test_a_version_that_can_be_neither_read_nor_committed_fails_immediately(tmp_path, obstruct):
    create(tmp_path)
    calls = []
    stale = load_snapshot(intercept(tmp_path, before=lambda call, _: calls.append(call)))
    obstruct(tmp_path / commit_file_name(1))
    with raises_at(StoreError, file=str(tmp_path / commit_file_name(1)), version=1):
        transaction.add_files(stale, [add()], context=context(txn_id="a"))
    assert calls.count("create") <= 1


def test_a_first_version_that_is_a_folder_is_not_a_table(tmp_path):
    (tmp_path / commit_file_name(0)).mkdir(parents=True)
    with raises_at(
        StoreError, "exists and cannot be read", file=str(tmp_path / commit_file_name(0)), version=0
    ):
        create(tmp_path)


def test_a_checkpoint_that_is_a_folder_is_not_used(tmp_path):
    create(tmp_path, adds=[add()])
    (tmp_path / "_delta_log" / f"{0:020d}.checkpoint.parquet").mkdir()
    assert load_snapshot(tmp_path).num_files == 1
    assert transaction.add_files(load_snapshot(tmp_path), [add("b")], context=context(txn_id="a")) == 1


def test_in_commit_timestamps_come_first_and_never_go_back(tmp_path):
    create(tmp_path, ICT, ICT_ON, clock=lambda: 5000)
    stale = load_snapshot(tmp_path)
    assert stale.timestamp == 5000
    transaction.add_files(stale, [add("a")], context=context(clock=lambda: 4000, txn_id="a"))
    transaction.add_files(stale, [add("b")], context=context(clock=lambda: 4000, txn_id="b"))
    transaction.add_files(
        refresh_snapshot(stale), [add("c")], context=context(clock=lambda: 9000, txn_id="c")
    )
    first = [read_commit(tmp_path, version)[0] for version in range(4)]
    assert [line["commitInfo"]["inCommitTimestamp"] for line in first] == [5000, 5001, 5002, 9000]
    assert next(iter(first[1]["commitInfo"])) == "inCommitTimestamp"


def test_no_in_commit_timestamp_if_the_feature_is_not_enabled(tmp_path):
    create(tmp_path, ICT)
    assert "inCommitTimestamp" not in read_commit(tmp_path, 0)[0]["commitInfo"]


def test_the_in_commit_timestamp_of_a_checkpoint_is_read_from_its_commit(tmp_path):
    create(tmp_path, ICT, ICT_ON, clock=lambda: 5000)
    write_checkpoint(tmp_path, 0, load_snapshot(tmp_path))
    assert load_snapshot(tmp_path).timestamp == 5000


def write_checkpoint(root, version, snapshot):
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["inCommitTimestamp"]}
    fields = json.loads(read_commit(root, version)[2]["metaData"]["schemaString"])
    assert fields["type"] == "struct"
    meta = {
        "id": snapshot.metadata.id,
        "format": {"provider": "parquet", "options": []},
        "schemaString": SCHEMA,
        "partitionColumns": [],
        "configuration": list(snapshot.properties.items()),
    }
    text_map = pa.map_(pa.string(), pa.string())
    meta_type = pa.struct(
        [
            ("id", pa.string()),
            ("format", pa.struct([("provider", pa.string()), ("options", text_map)])),
            ("schemaString", pa.string()),
            ("partitionColumns", pa.list_(pa.string())),
            ("configuration", text_map),
        ]
    )
    table = pa.table({"protocol": [protocol, None], "metaData": pa.array([None, meta], meta_type)})
    pq.write_table(table, root / "_delta_log" / f"{version:020d}.checkpoint.parquet")


def test_row_ids_are_assigned_with_row_tracking_and_increase_on_retry(tmp_path):
    create(tmp_path, ROW_TRACKING, adds=[add("a"), add("b", '{"numRecords":5}')])
    stale = load_snapshot(tmp_path)
    assert stale.domain_metadata["delta.rowTracking"].configuration == '{"rowIdHighWaterMark":14}'
    transaction.add_files(stale, [add("c")], context=context(txn_id="c"))
    transaction.add_files(stale, [add("d"), add("e")], context=context(txn_id="d"))
    files = refresh_snapshot(stale)
    rows = files.files.select(["path", "base_row_id", "default_row_commit_version"]).to_pylist()
    assert sorted(tuple(row.values()) for row in rows) == [
        ("a", 0, 0),
        ("b", 10, 0),
        ("c", 15, 1),
        ("d", 25, 2),
        ("e", 35, 2),
    ]
    assert files.domain_metadata["delta.rowTracking"] == DomainMetadata(
        domain="delta.rowTracking", configuration='{"rowIdHighWaterMark":44}', removed=False
    )


@pytest.mark.parametrize("stats", [None, "{}", "nonsense"])
def test_row_tracking_rejects_an_add_without_num_records(tmp_path, stats):
    create(tmp_path, ROW_TRACKING)
    with pytest.raises(ProtocolError, match="lack numRecords"):
        transaction.add_files(load_snapshot(tmp_path), [add(stats=stats)], context=context(txn_id="a"))
    assert load_snapshot(tmp_path).version == 0


def test_a_rearrangement_has_no_data_change(tmp_path):
    create(tmp_path)
    transaction.add_files(load_snapshot(tmp_path), [add()], data_change=False, context=context(txn_id="a"))
    info, added = read_commit(tmp_path, 1)
    assert info["commitInfo"]["isBlindAppend"] is False
    assert added["add"]["dataChange"] is False


def _append_ten(folder: str, writer: int) -> None:
    for number in range(10):
        snapshot = load_snapshot(folder)
        name = f"{writer}-{number}"
        transaction.add_files(snapshot, [add(name)], context=context(txn_id=name))


@pytest.mark.slow
def test_eight_concurrent_processes_append_each_file_once(tmp_path):
    create(
        tmp_path,
        Protocol(
            min_reader_version=1,
            min_writer_version=7,
            writer_features=("rowTracking", "domainMetadata", "inCommitTimestamp"),
        ),
        ICT_ON,
    )
    context = multiprocessing.get_context("spawn")
    writers = [
        context.Process(target=_append_ten, args=(str(tmp_path), writer), daemon=True) for writer in range(8)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(timeout=120)
    assert [writer.exitcode for writer in writers] == [0] * 8
    snapshot = load_snapshot(tmp_path)
    assert snapshot.version == 80
    assert sorted(snapshot.files["path"].to_pylist()) == sorted(
        f"{w}-{n}" for w in range(8) for n in range(10)
    )
    assert sorted(snapshot.files["base_row_id"].to_pylist()) == list(range(0, 800, 10))
    stamps = [read_commit(tmp_path, version)[0]["commitInfo"]["inCommitTimestamp"] for version in range(81)]
    assert stamps == list(range(1000, 1081))
    data = (tmp_path / commit_file_name(80)).read_bytes()
    assert len(decode_commit(data, "80")) == 3
