"""Read deletion vectors, the deleted rows of a data file (PROTOCOL.md, "Deletion Vectors")."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, TypeAlias
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from .. import _native
from .._arrow import Array, total
from ..errors import DataFileError, InvalidZ85Error, MalformedLogError
from ..protocol import z85
from ..protocol.actions import DeletionVector, decode_path
from ..storage import store as storage
from ..storage.store import Store

FILE_VERSION = 1
SIZE_BYTES = 4
CHECKSUM_BYTES = 4
UUID_CHARACTERS = 20

FILE_NAME = re.compile(r"deletion_vector_[0-9a-f-]{36}\.bin")


ReadRanges: TypeAlias = Callable[[str, Sequence[tuple[int, int]]], list[bytes]]
"""Returns the bytes of half-open ranges `(start, end)` of a file."""


def load(
    store: Store, descriptor: DeletionVector | Mapping[str, Any] | None, read: ReadRanges | None = None
) -> bytes | None:
    """Return the serialized bitmap of the deleted rows, which the kernel validates, or None.

    `descriptor` is that of an AddFile, or its row of `Snapshot.files["deletion_vector"]`. `read` reads the
    file of the vector, by default from the store. Raises MalformedLogError for an invalid descriptor,
    StoreError for a file that cannot be read, and DataFileError for a file with invalid content.
    """
    if descriptor is None:
        return None
    if isinstance(descriptor, Mapping):
        descriptor = DeletionVector(**descriptor)
    path = file_path(descriptor)
    if path is None:
        return _decode_inline(descriptor)
    return _read_file(read or partial(storage.get_ranges, store), path, descriptor)


def file_path(descriptor: DeletionVector | Mapping[str, Any]) -> str | None:
    """Return the path of the file of a deletion vector, None for one that is stored inline in the log.

    Raises MalformedLogError for an invalid descriptor.
    """
    if isinstance(descriptor, Mapping):
        descriptor = DeletionVector(**descriptor)
    path = descriptor.path_or_inline_dv
    match descriptor.storage_type:
        case "i":
            return None
        case "p":
            return decode_path(path)
        case "u":
            return _relative_path(path)
        case other:
            raise MalformedLogError(
                f"invalid deletion vector: expected storage type i, p or u, got {other!r}"
            )


def is_file_of_vectors(path: str) -> bool:
    """Return whether a path has the name of a file of deletion vectors."""
    return FILE_NAME.fullmatch(path.rpartition("/")[2]) is not None


# Many vectors of a table are in one file.
@lru_cache(maxsize=64)
def _relative_path(path: str) -> str:
    prefix, uuid = path[:-UUID_CHARACTERS], _decode(path[-UUID_CHARACTERS:])
    if len(uuid) != len(UUID(int=0).bytes):
        raise MalformedLogError(f"invalid deletion vector path {path!r}: it does not end with a UUID")
    name = f"deletion_vector_{UUID(bytes=uuid)}.bin"
    return f"{prefix}/{name}" if prefix else name


def paths_of(files: pa.Table) -> Iterator[str]:
    """Yield the paths of data files, rows of `Snapshot.files`, and of the files of their deletion vectors."""
    for batch in files.select(["path", "deletion_vector"]).to_batches():
        for path, vector in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield path
            if vector is not None and (stored := file_path(vector)) is not None:
                yield stored


def count_deleted_rows(files: pa.Table) -> int:
    """Return the number of rows that the deletion vectors of files, rows of `Snapshot.files`, delete."""
    return total(pc.struct_field(files["deletion_vector"], "cardinality").cast(pa.decimal128(38)))


def count_vectors(files: pa.Table) -> int:
    """Return the number of files, rows of `Snapshot.files`, that have a deletion vector."""
    return files.num_rows - files["deletion_vector"].null_count


def add_rows(deleted: bytes | None, rows: Array) -> tuple[bytes, int]:
    """Return a serialized bitmap of the rows in `deleted`, None for an empty one, and in an array of int64.

    Also return the number of its rows. Raises DataFileError for an invalid bitmap.
    """
    return _native.add_deleted_rows(deleted, rows)


def subtract_rows(deleted: bytes | None, others: bytes | None) -> list[tuple[int, int]]:
    """Return the rows in `deleted` but not in `others`, as ordered half-open ranges.

    Both are serialized bitmaps, None for an empty one. Raises DataFileError for an invalid bitmap.
    """
    return _native.subtract_deleted_rows(deleted, others)


def _decode_inline(descriptor: DeletionVector) -> bytes:
    data, size = _decode_padded(descriptor.path_or_inline_dv), descriptor.size_in_bytes
    if not 0 <= len(data) - size < z85.BLOCK_BYTES:
        raise MalformedLogError(
            f"invalid inline deletion vector: expected {size} bytes, as in its descriptor, got {len(data)}"
        )
    return data[:size]


# A table is read more often than its vectors change, and to decode a text costs as much as to read a file.
@lru_cache(maxsize=256)
def _decode_padded(text: str) -> bytes:
    return _decode(text, z85.decode_padded)


def _decode(text: str, decode: Callable[[str], bytes] = z85.decode) -> bytes:
    try:
        return decode(text)
    except InvalidZ85Error as error:
        raise MalformedLogError(f"invalid deletion vector {text!r}: {error.message}") from error


def _read_file(read: ReadRanges, path: str, descriptor: DeletionVector) -> bytes:
    start = _first_vector(read, path, descriptor) if descriptor.offset is None else descriptor.offset
    if (start < 1 and descriptor.offset is not None) or descriptor.size_in_bytes < 0:
        raise MalformedLogError(
            f"invalid deletion vector in {path}: offset {start}, size {descriptor.size_in_bytes}", file=path
        )
    end = start + SIZE_BYTES + descriptor.size_in_bytes + CHECKSUM_BYTES
    version, framed = read(path, [(0, 1), (start, end)])
    if start and version != bytes([FILE_VERSION]):
        raise DataFileError(
            f"cannot read deletion vectors in {path}: expected format version {FILE_VERSION}, got "
            f"{int.from_bytes(version, 'big')}",
            file=path,
        )
    size = int.from_bytes(framed[:SIZE_BYTES], "big")
    data, checksum = framed[SIZE_BYTES:-CHECKSUM_BYTES], framed[-CHECKSUM_BYTES:]
    if size != descriptor.size_in_bytes or len(data) != size:
        raise DataFileError(
            f"invalid deletion vector at byte {start} of {path}: expected {descriptor.size_in_bytes} bytes, "
            f"as in its descriptor, got {size}",
            file=path,
        )
    if zlib.crc32(data) != int.from_bytes(checksum, "big"):
        raise DataFileError(
            f"invalid deletion vector at byte {start} of {path}: its checksum differs", file=path
        )
    return data


def _first_vector(read: ReadRanges, path: str, descriptor: DeletionVector) -> int:
    """Return where the vector of a descriptor without an offset starts.

    delta-spark reads it at byte 0 (delta#6436), where a file without a format version has its size.
    delta-kernel-rs reads it after the format version.
    """
    (start,) = read(path, [(0, SIZE_BYTES)])
    return 0 if int.from_bytes(start, "big") == descriptor.size_in_bytes else 1
