"""Write, read and check version checksum files (PROTOCOL.md, "Version Checksum File").

They are optional. One that cannot be read is ignored, and the audit reports one that differs from the log.
Ours have neither `allFiles` nor histograms: their size does not depend on the number of files.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import msgspec
import pyarrow.compute as pc

from ..errors import MalformedLogError, StoreError, VersionExistsError
from ..protocol import features
from ..protocol.actions import DomainMetadata, Metadata, Protocol, Txn, decode_path
from ..storage.store import Store, put_if_absent, read_if_present
from .listing import LOG
from .snapshot import Snapshot

__all__ = ["checksum_discrepancies", "read_protocol_and_metadata", "write_checksum"]

TXN_RETENTION = "delta.setTransactionRetentionDuration"

_MOST_ACTIONS = 100
"""The number of `txn` or `domainMetadata` actions up to which a checksum has them, so that it stays small."""

_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, MalformedLogError)


class _FileSizeHistogram(msgspec.Struct, rename="camel"):
    sorted_bin_boundaries: list[int]
    file_counts: list[int]
    total_bytes: list[int]


class _File(msgspec.Struct):
    path: str


class _Checksum(msgspec.Struct, rename="camel", omit_defaults=True):
    table_size_bytes: int
    num_files: int
    num_metadata: int
    num_protocol: int
    metadata: Metadata
    protocol: Protocol
    in_commit_timestamp_opt: int | None = None
    set_transactions: list[Txn] | None = None
    domain_metadata: list[DomainMetadata] | None = None
    file_size_histogram: _FileSizeHistogram | None = None
    # The name that delta-spark writes by default before version 4.2.
    histogram_opt: _FileSizeHistogram | None = None
    all_files: list[_File] | None = None
    num_deleted_records_opt: int | None = None
    num_deletion_vectors_opt: int | None = None
    txn_id: str | None = None


def write_checksum(snapshot: Snapshot, txn_id: str) -> None:
    """Write the checksum file of a version that was committed with `txn_id`, unless the file exists.

    Raises StoreError if that is not possible.
    """
    data = msgspec.json.encode(_checksum_of(snapshot, txn_id))
    with suppress(VersionExistsError):
        put_if_absent(snapshot.store, _path(snapshot.version), data + b"\n")


def _checksum_of(snapshot: Snapshot, txn_id: str) -> _Checksum:
    checksum = _Checksum(
        table_size_bytes=snapshot.num_bytes,
        num_files=snapshot.num_files,
        num_metadata=1,
        num_protocol=1,
        metadata=snapshot.metadata,
        protocol=snapshot.protocol,
        in_commit_timestamp_opt=snapshot.timestamp,
        txn_id=txn_id,
    )
    # Which of the others are live depends on the time at which they are read.
    if len(snapshot.txns) <= _MOST_ACTIONS and TXN_RETENTION not in snapshot.configuration:
        checksum.set_transactions = list(snapshot.txns.values())
    if len(snapshot.domain_metadata) <= _MOST_ACTIONS:
        checksum.domain_metadata = list(snapshot.domain_metadata.values())
    if features.supports(snapshot.protocol, "deletionVectors"):
        checksum.num_deleted_records_opt, checksum.num_deletion_vectors_opt = _count_vectors(snapshot)
    return checksum


def read_protocol_and_metadata(store: Store, version: int) -> tuple[Protocol, Metadata] | None:
    """Return the protocol and metadata in a version's checksum file, None if it is missing or invalid."""
    try:
        data = read_if_present(store, _path(version))
        checksum = msgspec.json.decode(data or b"", type=_Checksum)
    except (*_UNREADABLE, StoreError):
        return None
    is_valid = checksum.num_protocol == checksum.num_metadata == 1
    return (checksum.protocol, checksum.metadata) if is_valid else None


def _path(version: int) -> str:
    return f"{LOG}/{version:020d}.crc"


def checksum_discrepancies(snapshot: Snapshot) -> list[str]:
    """Return a sentence for each field of the version's checksum file that differs from the log.

    The list is empty if the file does not exist. Raises StoreError if it cannot be fetched.
    """
    path = _path(snapshot.version)
    data = read_if_present(snapshot.store, path)
    if data is None:
        return []
    try:
        checksum = msgspec.json.decode(data, type=_Checksum)
        facts = list(_facts(checksum, snapshot))
    except _UNREADABLE as error:
        return [f"cannot read {path}: {error}"]
    return [
        f"{path} has {name} {_short(recorded)}, expected {_short(computed)} from the log"
        for name, recorded, computed in facts
        if recorded is not None and recorded != computed
    ]


def _facts(checksum: _Checksum, snapshot: Snapshot) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, recorded and computed value of each field; recorded is None for an absent field."""
    yield "tableSizeBytes", checksum.table_size_bytes, snapshot.num_bytes
    yield "numFiles", checksum.num_files, snapshot.num_files
    yield "numMetadata", checksum.num_metadata, 1
    yield "numProtocol", checksum.num_protocol, 1
    yield "metadata", checksum.metadata, snapshot.metadata
    yield "protocol", _as_sets(checksum.protocol), _as_sets(snapshot.protocol)
    yield "inCommitTimestampOpt", checksum.in_commit_timestamp_opt, snapshot.timestamp
    yield "setTransactions", _by_text(checksum.set_transactions), _by_text(snapshot.txns.values())
    yield "domainMetadata", _by_text(checksum.domain_metadata), _by_text(snapshot.domain_metadata.values())
    yield from _vector_facts(checksum, snapshot)
    if checksum.all_files is not None:
        recorded = sorted(decode_path(file.path) for file in checksum.all_files)
        yield "allFiles", recorded, sorted(snapshot.files["path"].to_pylist())
    for name, histogram in (
        ("fileSizeHistogram", checksum.file_size_histogram),
        ("histogramOpt", checksum.histogram_opt),
    ):
        if histogram is not None:
            recorded_bins = (histogram.file_counts, histogram.total_bytes)
            yield name, recorded_bins, _bins(snapshot, histogram.sorted_bin_boundaries)


def _vector_facts(checksum: _Checksum, snapshot: Snapshot) -> Iterator[tuple[str, Any, Any]]:
    records, vectors = _count_vectors(snapshot)
    yield "numDeletedRecordsOpt", checksum.num_deleted_records_opt, records
    yield "numDeletionVectorsOpt", checksum.num_deletion_vectors_opt, vectors


def _count_vectors(snapshot: Snapshot) -> tuple[int, int]:
    """Return the number of deleted records, and the number of deletion vectors."""
    cardinality = pc.struct_field(snapshot.files["deletion_vector"], "cardinality")
    return pc.sum(cardinality).as_py() or 0, pc.count(cardinality).as_py()


def _bins(snapshot: Snapshot, boundaries: list[int]) -> tuple[list[int], list[int]]:
    counts, totals = [0] * len(boundaries), [0] * len(boundaries)
    sizes: Any = pc.value_counts(snapshot.files["size"])
    for row in sizes.to_pylist():
        number = bisect_right(boundaries, row["values"]) - 1
        counts[number] += row["counts"]
        totals[number] += row["values"] * row["counts"]
    return counts, totals


def _as_sets(protocol: Protocol) -> tuple[Any, ...]:
    lists = (protocol.reader_features, protocol.writer_features)
    versions = (protocol.min_reader_version, protocol.min_writer_version)
    return (*versions, *(None if names is None else sorted(names) for names in lists))


def _by_text(actions: Iterable[Txn | DomainMetadata] | None) -> list[str] | None:
    return None if actions is None else sorted(msgspec.json.encode(action).decode() for action in actions)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
