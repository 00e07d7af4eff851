"""Compare version checksum files with the state that they describe (PROTOCOL.md, "Version Checksum File").

They are optional and no reader needs them, so a wrong one is reported and never prevents a read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import pyarrow.compute as pc

from ..errors import MalformedLogError
from ..protocol.actions import DomainMetadata, Metadata, Protocol, Txn, decode_path
from ..storage.store import read_if_present
from .listing import LOG
from .snapshot import Snapshot

__all__ = ["checksum_discrepancies"]


class _FileSizeHistogram(msgspec.Struct, rename="camel"):
    sorted_bin_boundaries: list[int]
    file_counts: list[int]
    total_bytes: list[int]


class _File(msgspec.Struct):
    path: str


class _Checksum(msgspec.Struct, rename="camel"):
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
    all_files: list[_File] | None = None
    num_deleted_records_opt: int | None = None
    num_deletion_vectors_opt: int | None = None


def checksum_discrepancies(snapshot: Snapshot) -> list[str]:
    """Return a sentence for each field of the version's checksum file that differs from the log.

    The list is empty if the file does not exist. Raises StoreError if it cannot be fetched.
    """
    path = f"{LOG}/{snapshot.version:020d}.crc"
    data = read_if_present(snapshot.store, path)
    if data is None:
        return []
    try:
        checksum = msgspec.json.decode(data, type=_Checksum)
        facts = list(_facts(checksum, snapshot))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, MalformedLogError) as error:
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
    if (histogram := checksum.file_size_histogram) is not None:
        recorded_bins = (histogram.file_counts, histogram.total_bytes)
        yield "fileSizeHistogram", recorded_bins, _bins(snapshot, histogram.sorted_bin_boundaries)


def _vector_facts(checksum: _Checksum, snapshot: Snapshot) -> Iterator[tuple[str, Any, Any]]:
    cardinality = pc.struct_field(snapshot.files["deletion_vector"], "cardinality")
    yield "numDeletedRecordsOpt", checksum.num_deleted_records_opt, pc.sum(cardinality).as_py() or 0
    yield "numDeletionVectorsOpt", checksum.num_deletion_vectors_opt, pc.count(cardinality).as_py()


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
