"""Read deletion vectors, the deleted rows of a data file (PROTOCOL.md, "Deletion Vectors")."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import Array
from ..errors import DataFileError, InvalidZ85Error, MalformedLogError
from ..protocol import z85
from ..protocol.actions import DeletionVector, decode_path
from ..storage import store as storage
from ..storage.store import Store

__all__ = ["file_path", "load", "paths_of", "subtract_rows"]

FILE_VERSION = 1
SIZE_BYTES = 4
CHECKSUM_BYTES = 4
UUID_CHARACTERS = 20

MAGIC = 1_681_511_377

# The constants of the Roaring format.
PLAIN_COOKIE = 12_346
RUN_COOKIE = 12_347
OFFSETS_FROM = 4
ARRAY_CARDINALITY = 4096
CONTAINER_BITS = 1 << 16
CONTAINERS = 1 << 16

# Java reads keys as signed integers.
HIGHS = 1 << 31


def load(store: Store, descriptor: DeletionVector | Mapping[str, Any] | None) -> bytes | None:
    """Return the serialized bitmap of the deleted rows, which the kernel validates, or None.

    `descriptor` is that of an AddFile, or its row of `Snapshot.files["deletion_vector"]`. Raises
    MalformedLogError for an invalid descriptor, StoreError for a file that cannot be read, and DataFileError
    for a file with invalid content.
    """
    if descriptor is None:
        return None
    if isinstance(descriptor, Mapping):
        descriptor = DeletionVector(**descriptor)
    path = file_path(descriptor)
    return _decode_inline(descriptor) if path is None else _read_file(store, path, descriptor)


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
            prefix, uuid = path[:-UUID_CHARACTERS], _decode(path[-UUID_CHARACTERS:])
            if len(uuid) != len(UUID(int=0).bytes):
                raise MalformedLogError(f"invalid deletion vector path {path!r}: it does not end with a UUID")
            name = f"deletion_vector_{UUID(bytes=uuid)}.bin"
            return f"{prefix}/{name}" if prefix else name
        case other:
            raise MalformedLogError(
                f"invalid deletion vector: expected storage type i, p or u, got {other!r}"
            )


def paths_of(files: pa.Table) -> Iterator[str]:
    """Yield the paths of data files, rows of `Snapshot.files`, and of the files of their deletion vectors."""
    for batch in files.select(["path", "deletion_vector"]).to_batches():
        for path, vector in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield path
            if vector is not None and (stored := file_path(vector)) is not None:
                yield stored


def subtract_rows(deleted: bytes | None, others: bytes | None) -> list[tuple[int, int]]:
    """Return the rows in `deleted` but not in `others`, as ordered half-open ranges.

    Both are serialized bitmaps, None for an empty one. Raises DataFileError for an invalid bitmap.
    """
    try:
        rows, excluded = _rows(deleted), _rows(others)
    except (struct.error, ValueError, pa.ArrowException) as error:
        raise DataFileError(f"malformed deletion vector: {error}") from error
    return _ranges(rows.filter(pc.invert(pc.is_in(rows, value_set=excluded))))


def _ranges(rows: Array) -> list[tuple[int, int]]:
    if not len(rows):
        return []
    followers = rows.slice(1)
    steps: Array = pc.subtract(followers, rows.slice(0, len(followers)))
    is_break: Array = pc.not_equal(steps, pa.scalar(1))
    breaks = pc.indices_nonzero(is_break)
    starts = pa.concat_arrays([rows.slice(0, 1), followers.take(breaks)])
    lasts = pa.concat_arrays([rows.take(breaks), rows.slice(len(followers))])
    return [(start, last + 1) for start, last in zip(starts.to_pylist(), lasts.to_pylist(), strict=True)]


def _rows(data: bytes | None) -> Array:
    """Return the values of a `RoaringBitmapArray` in order (PROTOCOL.md, "Deletion Vector Format")."""
    if data is None:
        return pa.array([], pa.int64())
    magic, count = struct.unpack_from("<IQ", data)
    if magic != MAGIC:
        raise ValueError(f"expected the magic number {MAGIC}, got {magic}")
    parts, position = [pa.array([], pa.int64())], struct.calcsize("<IQ")
    for _ in range(count):
        (high,) = struct.unpack_from("<I", data, position)
        if high >= HIGHS:
            raise ValueError(f"invalid key {high}")
        found, position = _bitmap(data, position + struct.calcsize("<I"), high << 32)
        parts += found
    return pa.concat_arrays(parts)


def _bitmap(data: bytes, position: int, base: int) -> tuple[list[Array], int]:
    """Return the values of a 32-bit Roaring bitmap, one array for each container, and its end."""
    (cookie,) = struct.unpack_from("<I", data, position)
    position += 4
    if cookie & 0xFFFF == RUN_COOKIE:
        count = (cookie >> 16) + 1
        flags = data[position : position + (count + 7) // 8]
        position += len(flags)
    elif cookie == PLAIN_COOKIE:
        (count,) = struct.unpack_from("<I", data, position)
        if count > CONTAINERS:
            raise ValueError(f"invalid number of containers: {count}")
        flags, position = bytes((count + 7) // 8), position + 4
    else:
        raise ValueError(f"invalid cookie {cookie}")
    header = struct.unpack_from(f"<{2 * count}H", data, position)
    has_offsets = cookie == PLAIN_COOKIE or count >= OFFSETS_FROM
    position += 4 * count * (2 if has_offsets else 1)
    found = []
    for index in range(count):
        key, cardinality = header[2 * index], header[2 * index + 1] + 1
        is_run = bool(flags[index // 8] >> index % 8 & 1)
        rows, position = _container(data, position, cardinality, is_run=is_run)
        found.append(pc.add(rows.cast(pa.int64()), base + (key << 16)))
    return found, position


def _container(data: bytes, position: int, cardinality: int, *, is_run: bool) -> tuple[Array, int]:
    """Return the low 16 bits of the values of a container, and its end."""
    if is_run:
        (count,) = struct.unpack_from("<H", data, position)
        pairs = struct.unpack_from(f"<{2 * count}H", data, position + 2)
        runs = (range(start, start + more + 1) for start, more in zip(pairs[::2], pairs[1::2], strict=True))
        return pa.array(list(chain.from_iterable(runs)), pa.int64()), position + 2 + 4 * count
    is_array = cardinality <= ARRAY_CARDINALITY
    end = position + (2 * cardinality if is_array else CONTAINER_BITS // 8)
    if end > len(data):
        raise ValueError("a container is truncated")
    buffer = pa.py_buffer(data[position:end])
    array: Any = pa.Array
    if is_array:
        return array.from_buffers(pa.uint16(), cardinality, [None, buffer]), end
    return pc.indices_nonzero(array.from_buffers(pa.bool_(), CONTAINER_BITS, [None, buffer])), end


def _decode_inline(descriptor: DeletionVector) -> bytes:
    data, size = _decode(descriptor.path_or_inline_dv, z85.decode_padded), descriptor.size_in_bytes
    if not 0 <= len(data) - size < z85.BLOCK_BYTES:
        raise MalformedLogError(
            f"invalid inline deletion vector: expected {size} bytes, as in its descriptor, got {len(data)}"
        )
    return data[:size]


def _decode(text: str, decode: Callable[[str], bytes] = z85.decode) -> bytes:
    try:
        return decode(text)
    except InvalidZ85Error as error:
        raise MalformedLogError(f"invalid deletion vector {text!r}: {error.message}") from error


def _read_file(store: Store, path: str, descriptor: DeletionVector) -> bytes:
    start = _first_vector(store, path, descriptor) if descriptor.offset is None else descriptor.offset
    if (start < 1 and descriptor.offset is not None) or descriptor.size_in_bytes < 0:
        raise MalformedLogError(
            f"invalid deletion vector in {path}: offset {start}, size {descriptor.size_in_bytes}",
            file=path,
        )
    end = start + SIZE_BYTES + descriptor.size_in_bytes + CHECKSUM_BYTES
    version, framed = storage.get_ranges(store, path, [(0, 1), (start, end)])
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


def _first_vector(store: Store, path: str, descriptor: DeletionVector) -> int:
    """Return where the vector of a descriptor without an offset starts.

    delta-spark reads it at byte 0 (delta#6436), where a file without a format version has its size.
    delta-kernel-rs reads it after the format version.
    """
    (start,) = storage.get_ranges(store, path, [(0, SIZE_BYTES)])
    return 0 if int.from_bytes(start, "big") == descriptor.size_in_bytes else 1
