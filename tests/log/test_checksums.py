"""Version checksums of commits, and what is read from them (PROTOCOL.md, "Version Checksum File")."""

from __future__ import annotations

import json
import logging
import zlib
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.intercepted_store import commit_first, intercept
from support.planting import plant_vector
from support.tables import append_events, list_files, read_actions, state_discrepancies

import delta_variant as dv
from delta_variant.log.load import load_protocol_and_metadata, load_snapshot
from delta_variant.log.transaction import CommitInterrupted
from delta_variant.storage.store import open_store

TIMESTAMPS = {"delta.enableInCommitTimestamps": "true"}


def checksum_path(table: Path, version: int) -> Path:
    return table / "_delta_log" / f"{version:020d}.crc"


def read_checksum(table: Path, version: int) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(checksum_path(table, version).read_bytes())
    return fields


def test_a_checksum_has_the_state_of_its_version(tmp_path: Path):
    dv.write_table(tmp_path, [{"id": 1}], configuration=TIMESTAMPS)
    dv.write_table(tmp_path, [{"id": 2}], mode="append", commit=dv.CommitOptions(txn=("loader", 7)))
    (metadata,), (protocol,) = read_actions(tmp_path, "metaData"), read_actions(tmp_path, "protocol")
    (txn,), (_, info) = read_actions(tmp_path, "txn"), read_actions(tmp_path, "commitInfo")
    found = read_checksum(tmp_path, 1)
    fields, crc, _ = checksum_path(tmp_path, 1).read_bytes().rpartition(b',"deltaVariant.crc32":')
    assert (crc != b"", found.pop("deltaVariant.crc32")) == (True, f"{zlib.crc32(fields):08x}")
    assert found == {
        "txnId": info["txnId"],
        "tableSizeBytes": sum(add["size"] for add in read_actions(tmp_path, "add")),
        "numFiles": 2,
        "numMetadata": 1,
        "numProtocol": 1,
        "inCommitTimestampOpt": info["inCommitTimestamp"],
        "setTransactions": [txn],
        "domainMetadata": [],
        "metadata": metadata,
        "protocol": protocol,
    }
    assert checksum_path(tmp_path, 1).read_bytes().endswith(b"}\n")


def test_a_checksum_with_a_changed_bit_is_not_used(tmp_path: Path):
    dv.write_table(tmp_path, [{"id": 1}], description="the right text")
    right = load_protocol_and_metadata(open_store(tmp_path), 0)
    file = checksum_path(tmp_path, 0)
    file.write_bytes(file.read_bytes().replace(b"the right text", b"the wrong text"))
    assert load_protocol_and_metadata(open_store(tmp_path), 0) == right
    assert [each.rule for each in dv.audit_table(tmp_path).findings] == ["L8"]


def test_a_checksum_counts_deletion_vectors_and_has_domains(tmp_path: Path):
    properties = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}
    dv.write_table(tmp_path, [{"id": number} for number in range(5)], configuration=properties)
    assert read_checksum(tmp_path, 0)["numDeletionVectorsOpt"] == 0
    plant_vector(tmp_path, 0, 1, 3)
    dv.write_table(tmp_path, [{"id": 6}], mode="append")
    found = read_checksum(tmp_path, 1)
    assert (found["numDeletedRecordsOpt"], found["numDeletionVectorsOpt"]) == (2, 1)
    (domain,) = found["domainMetadata"]
    assert (domain["domain"], domain["removed"]) == ("delta.rowTracking", False)
    assert json.loads(domain["configuration"]) == {"rowIdHighWaterMark": 5}


def test_the_checksum_of_a_version_after_a_lost_race_has_the_files_of_all(tmp_path: Path):
    append_events(tmp_path, ["1"])

    def append() -> None:
        append_events(tmp_path, ["2"], first=1)

    append_events(commit_first(tmp_path, append, append), ["3"], first=2)
    assert read_checksum(tmp_path, 3)["numFiles"] == 4
    for version in range(4):
        assert state_discrepancies(load_snapshot(tmp_path, version)) == []


def test_a_commit_with_a_lost_answer_has_a_checksum(tmp_path: Path):
    def lose_the_answer(call: str, key: str) -> None:
        if call == "create" and key.endswith(".json"):
            raise FileExistsError(key)

    for version in range(2):
        append_events(intercept(tmp_path, after=lose_the_answer), [str(version)], first=version)
        assert read_checksum(tmp_path, version)["numFiles"] == version + 1


def test_a_checksum_that_exists_is_kept(tmp_path: Path):
    append_events(tmp_path, ["1"])
    checksum_path(tmp_path, 1).write_bytes(b"{}")
    append_events(tmp_path, ["2"], first=1)
    assert checksum_path(tmp_path, 1).read_bytes() == b"{}"


def test_a_checksum_that_cannot_be_written_does_not_fail_the_commit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    append_events(tmp_path, ["1"])

    def fail(call: str, key: str) -> None:
        if key.endswith(".crc"):
            raise PermissionError(key)

    with caplog.at_level(logging.WARNING, "delta_variant"):
        append_events(intercept(tmp_path, before=fail), ["2"], first=1)
    assert "the checksum of version 1 was not written" in caplog.text
    assert dv.load_snapshot(tmp_path).version == 1
    assert list_files(tmp_path, "*.crc") == {f"_delta_log/{0:020d}.crc"}


def test_an_interrupt_during_a_checksum_says_that_the_commit_happened(tmp_path: Path):
    append_events(tmp_path, ["1"])

    def interrupt(call: str, key: str) -> None:
        if key.endswith(".crc"):
            raise KeyboardInterrupt

    with pytest.raises(CommitInterrupted, match=r"of version 1 of .*, during its checksum"):
        append_events(intercept(tmp_path, before=interrupt), ["2"], first=1)
    assert dv.load_snapshot(tmp_path).version == 1


def test_transactions_are_omitted_if_they_are_many_or_expire(tmp_path: Path):
    dv.write_table(tmp_path / "many", [{"id": 1}])
    for number in range(101):
        txn = dv.CommitOptions(txn=(f"application {number}", 1))
        dv.write_table(tmp_path / "many", [{"id": 1}], mode="append", commit=txn)
    assert len(read_checksum(tmp_path / "many", 100)["setTransactions"]) == 100
    assert "setTransactions" not in read_checksum(tmp_path / "many", 101)
    expiry = {"delta.setTransactionRetentionDuration": "interval 7 days"}
    dv.write_table(tmp_path / "expiring", [{"id": 1}], configuration=expiry)
    assert "setTransactions" not in read_checksum(tmp_path / "expiring", 0)


# --- what is read from checksums


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return a table of 13 versions with a checkpoint of version 10."""
    dv.write_table(tmp_path / "t", [{"id": 0}], configuration=TIMESTAMPS)
    for number in range(1, 13):
        dv.write_table(tmp_path / "t", [{"id": number}], mode="append")
    return tmp_path / "t"


def reads_of(table: Path, operate: Any) -> set[str]:
    """Return the names of the files that an operation on a store reads."""
    read: set[str] = set()

    def note(call: str, key: str) -> None:
        if call.startswith("get"):
            read.add(Path(key).name)

    operate(intercept(table, before=note))
    return read


def test_the_history_reads_the_checksum_instead_of_the_checkpoint(table: Path):
    found = reads_of(table, lambda store: dv.history(store, limit=1))
    assert found == {"_last_checkpoint", f"{12:020d}.crc", f"{12:020d}.json"}


def test_protocol_and_metadata_of_a_version_are_those_of_the_log(table: Path):
    dv.add_columns(table, {"name": "string"})
    for version in (5, 12, 13):
        snapshot = load_snapshot(table, version)
        expected = (snapshot.protocol, snapshot.metadata)
        read = reads_of(table, partial(load_protocol_and_metadata, version=version))
        assert read == {f"{version:020d}.crc"}
        assert load_protocol_and_metadata(open_store(table), version) == expected


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"\xff", b'{"numFiles": 1}', b"[" * 100_000],
    ids=["empty", "cut", "a list", "not UTF-8", "incomplete", "deep"],
)
def test_a_checksum_that_cannot_be_read_is_ignored_and_reported(table: Path, content: bytes):
    expected = dv.history(table)
    checksum_path(table, 12).write_bytes(content)
    assert dv.history(table) == expected
    assert dv.read_table(table).count() == 13
    (finding,) = dv.audit_table(table).findings
    assert (finding.rule, finding.severity, finding.version) == ("L8", "warning", 12)


@pytest.mark.parametrize("name", ["numMetadata", "numProtocol"])
def test_a_checksum_with_several_protocols_or_metadata_is_ignored(table: Path, name: str):
    wrong = {**read_checksum(table, 12), name: 2}
    wrong["metadata"]["configuration"] = {}
    checksum_path(table, 12).write_text(json.dumps(wrong))
    _, metadata = load_protocol_and_metadata(open_store(table), 12)
    assert metadata.configuration["delta.enableInCommitTimestamps"] == "true"
    assert {finding.rule for finding in dv.audit_table(table).findings} == {"L8"}


def test_a_checksum_that_is_a_folder_is_ignored(table: Path):
    checksum_path(table, 12).unlink()
    checksum_path(table, 12).mkdir()
    assert len(dv.history(table)) == 13


def test_counts_that_contradict_the_log_are_reported_and_not_used(table: Path):
    wrong = {**read_checksum(table, 12), "numFiles": 7, "tableSizeBytes": 1}
    checksum_path(table, 12).write_text(json.dumps(wrong))
    assert dv.read_table(table).count() == 13
    assert dv.load_snapshot(table).num_files == 13
    messages = [finding.message for finding in dv.audit_table(table).findings]
    size = dv.load_snapshot(table).num_bytes
    assert [message.split(": ")[1] for message in messages] == [
        f"tableSizeBytes is 1, expected {size}",
        "numFiles is 7, expected 13",
    ]
