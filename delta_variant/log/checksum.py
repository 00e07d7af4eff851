"""Write, read and check version checksum files (PROTOCOL.md, "Version Checksum File").

They are optional. One that cannot be read is ignored, and the audit reports one that differs from the log.
Ours have neither `allFiles` nor histograms: their size does not depend on the number of files. They end with
the CRC-32 of the other fields, because readers use the metadata without the log.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from ..errors import MalformedLogError, StoreError, VersionExistsError
from ..protocol.actions import DomainMetadata, Metadata, Protocol, Txn, decode_path
from ..storage.store import Store, put_if_absent, read_if_present
from .deletion_vectors import count_deleted_rows, count_vectors
from .listing import LOG
from .replay import ReplayedState
from .snapshot import Snapshot

_CRC = b',"deltaVariant.crc32":"'
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
    # Old files of Databricks have neither.
    metadata: Metadata | None = None
    protocol: Protocol | None = None
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
        put_if_absent(snapshot.store, checksum_path(snapshot.version), _seal(data[:-1]) + b"\n")


def _seal(fields: bytes) -> bytes:
    return fields + _CRC + f'{zlib.crc32(fields):08x}"}}'.encode()


def _decode(data: bytes) -> _Checksum:
    """Decode a file; raises one of _UNREADABLE."""
    fields, crc, _ = data.rpartition(_CRC)
    if crc and _seal(fields) != data.rstrip():
        raise MalformedLogError("its fields do not match its CRC-32")
    return msgspec.json.decode(data, type=_Checksum)


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
    if len(snapshot.txns) <= _MOST_ACTIONS and TXN_RETENTION not in snapshot.properties:
        checksum.set_transactions = list(snapshot.txns.values())
    if len(snapshot.domain_metadata) <= _MOST_ACTIONS:
        checksum.domain_metadata = list(snapshot.domain_metadata.values())
    if snapshot.configuration.supports("deletionVectors"):
        checksum.num_deleted_records_opt = count_deleted_rows(snapshot.files)
        checksum.num_deletion_vectors_opt = count_vectors(snapshot.files)
    return checksum


def read_protocol_and_metadata(store: Store, version: int) -> tuple[Protocol, Metadata] | None:
    """Return the protocol and metadata in a version's checksum file, None if it is missing or invalid."""
    try:
        checksum = _decode(read_if_present(store, checksum_path(version)) or b"")
    except (*_UNREADABLE, StoreError):
        return None
    if checksum.protocol is None or checksum.metadata is None:
        return None
    is_valid = checksum.num_protocol == checksum.num_metadata == 1
    return (checksum.protocol, checksum.metadata) if is_valid else None


def checksum_path(version: int) -> str:
    """Return the path of a version's checksum file, relative to the table's root."""
    return f"{LOG}/{version:020d}.crc"


def checksum_discrepancies(data: bytes, state: ReplayedState) -> list[str]:
    """Return a sentence for each field of a version's checksum file that differs from the table's state."""
    path = checksum_path(state.version)
    try:
        checksum = _decode(data)
        facts = [fact for fact in _facts(checksum, state) if fact[1] is not None]
    except _UNREADABLE as error:
        return [f"cannot read {path}: {error}"]
    found = (next(differences(*fact), None) for fact in facts)
    return [f"{path} differs from the log: {difference}" for difference in found if difference is not None]


def _facts(checksum: _Checksum, state: ReplayedState) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, recorded and computed value of each field; recorded is None for an absent field."""
    yield "tableSizeBytes", checksum.table_size_bytes, state.num_bytes
    yield "numFiles", checksum.num_files, len(state.files)
    yield "numMetadata", checksum.num_metadata, 1
    yield "numProtocol", checksum.num_protocol, 1
    yield "metadata", checksum.metadata, state.metadata
    stated, found = (each and each.sorted() for each in (checksum.protocol, state.protocol))
    yield "protocol", stated, found
    yield "inCommitTimestampOpt", checksum.in_commit_timestamp_opt, state.timestamp
    yield "setTransactions", _by_name(checksum.set_transactions), _by_name(state.txns.values())
    yield "domainMetadata", _by_name(checksum.domain_metadata), _by_name(state.domains.values())
    yield "numDeletedRecordsOpt", checksum.num_deleted_records_opt, state.num_deleted
    yield "numDeletionVectorsOpt", checksum.num_deletion_vectors_opt, state.num_vectors
    if checksum.all_files is not None:
        recorded = sorted(decode_path(file.path) for file in checksum.all_files)
        yield "allFiles", recorded, state.paths()
    for name, histogram in (
        ("fileSizeHistogram", checksum.file_size_histogram),
        ("histogramOpt", checksum.histogram_opt),
    ):
        if histogram is not None:
            counts, totals = state.histogram(histogram.sorted_bin_boundaries)
            yield f"{name}.fileCounts", histogram.file_counts, counts
            yield f"{name}.totalBytes", histogram.total_bytes, totals


def _by_name(actions: Iterable[Txn | DomainMetadata] | None) -> dict[str, Txn | DomainMetadata] | None:
    if actions is None:
        return None
    return {each.app_id if isinstance(each, Txn) else each.domain: each for each in actions}


MAX_SHOWN = 60
"""How many characters of a value a message shows, around the first that differs."""


def differences(name: str, stated: Any, expected: Any) -> Iterator[str]:
    """Yield a phrase for each field in which two values differ.

    Actions and JSON texts are compared field by field, so that the phrase names the field.
    """
    if stated == expected:
        return
    stated, expected = _parts(stated), _parts(expected)
    if stated == expected:
        return
    if isinstance(stated, Mapping) and isinstance(expected, Mapping):
        for key in dict.fromkeys((*expected, *stated)):
            yield from _members(f"{name}.{key}", stated, expected, key)
    elif _is_list(stated) and _is_list(expected):
        for index in range(max(len(stated), len(expected))):
            yield from _members(f"{name}[{index}]", dict(enumerate(stated)), dict(enumerate(expected)), index)
    else:
        start = _first_difference(stated, expected)
        yield f"{name} is {_shown(stated, start)}, expected {_shown(expected, start)}"


def _members(name: str, stated: Mapping[Any, Any], expected: Mapping[Any, Any], key: object) -> Iterator[str]:
    if key not in stated:
        yield f"{name} is missing, expected {_shown(expected[key])}"
    elif key not in expected:
        yield f"{name} is {_shown(stated[key])}, expected none"
    else:
        yield from differences(name, stated[key], expected[key])


def _parts(value: Any) -> Any:
    """Return an action or the text of a JSON object or list as its parts, and any other value unchanged."""
    if isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value)
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
            return value
    return value


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _first_difference(stated: object, expected: object) -> int:
    if not (isinstance(stated, str) and isinstance(expected, str)):
        return 0
    pairs = enumerate(zip(stated, expected, strict=False))
    return next((index for index, (one, other) in pairs if one != other), min(len(stated), len(expected)))


def _shown(value: object, start: int = 0) -> str:
    """Return the part of a value around the character `start`."""
    if not isinstance(value, str):
        text = repr(_parts(value))
        return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
    begin = max(0, start - MAX_SHOWN // 2) if len(value) > MAX_SHOWN else 0
    part = value[begin : begin + MAX_SHOWN]
    return ("…" if begin else "") + repr(part) + ("…" if begin + MAX_SHOWN < len(value) else "")
