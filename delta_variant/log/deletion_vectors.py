"""Deletion vectors: the rows of a data file that are deleted (PROTOCOL.md, Deletion Vectors)."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import Array
from ..errors import DataFileError, InvalidZ85Error, MalformedLogError
from ..protocol import z85
from ..protocol.actions import DeletionVector, decode_path
from ..storage import store
from ..storage.store import Store

__all__ = ["file_path", "load", "subtract_rows"]

FILE_VERSION = 1
SIZE_BYTES = 4
CHECKSUM_BYTES = 4
UUID_CHARACTERS = 20

MAGIC = 1_681_511_377

# The words and limits of the Roaring format.
PLAIN_COOKIE = 12_346
RUN_COOKIE = 12_347
OFFSETS_FROM = 4
ARRAY_CARDINALITY = 4096
CONTAINER_BITS = 1 << 16
CONTAINERS = 1 << 16

# Java reads these with their sign.
HIGHS = 1 << 31


def load(table: Store, descriptor: DeletionVector | Mapping[str, Any] | None) -> bytes | None:
    """Return the serialized bitmap of the deleted rows, whose form is for the kernel to check.

    `descriptor` is that of an AddFile, or its row of `Snapshot.files["deletion_vector"]`; None stands for
    no deletion vector, in and out. Raises MalformedLogError for a descriptor that cannot be understood,
    StoreError for a file that cannot be read, DataFileError for one whose bytes are not what they should be.
    """
    if descriptor is None:
        return None
    if isinstance(descriptor, Mapping):
        descriptor = DeletionVector(**descriptor)
    path = file_path(descriptor)
    return _inline(descriptor) if path is None else _stored(table, path, descriptor)


def file_path(descriptor: DeletionVector | Mapping[str, Any]) -> str | None:
    """Return the path of the file that has a deletion vector, None for one in the log itself.

    Raises MalformedLogError for a descriptor that cannot be understood.
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
                raise MalformedLogError(f"{path!r} does not end with the uuid of a deletion vector")
            name = f"deletion_vector_{UUID(bytes=uuid)}.bin"
            return f"{prefix}/{name}" if prefix else name
        case other:
            raise MalformedLogError(f"a deletion vector has storage type {other!r}: i, p and u are known")


def subtract_rows(deleted: bytes | None, others: bytes | None) -> list[tuple[int, int]]:
    """Return the rows that one deletion vector has and another has not, as half-open ranges in order.

    Both are serialized bitmaps, None for one without rows. Raises DataFileError for what is no such bitmap.
    """
    try:
        rows, known = _rows(deleted), _rows(others)
    except (struct.error, ValueError, pa.ArrowException) as error:
        raise DataFileError(f"malformed deletion vector: {error}") from error
    return _ranges(rows.filter(pc.invert(pc.is_in(rows, value_set=known))))


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
    """Return the numbers in a `RoaringBitmapArray`, in order (PROTOCOL.md, "Deletion Vector Format")."""
    if data is None:
        return pa.array([], pa.int64())
    magic, count = struct.unpack_from("<IQ", data)
    if magic != MAGIC:
        raise ValueError("it does not begin with its magic number")
    parts, position = [pa.array([], pa.int64())], struct.calcsize("<IQ")
    for _ in range(count):
        (high,) = struct.unpack_from("<I", data, position)
        if high >= HIGHS:
            raise ValueError(f"it has the key {high}")
        found, position = _bitmap(data, position + struct.calcsize("<I"), high << 32)
        parts += found
    return pa.concat_arrays(parts)


def _bitmap(data: bytes, position: int, base: int) -> tuple[list[Array], int]:
    """Return the numbers in a Roaring bitmap of 32 bits, container by container, and where it ends."""
    (cookie,) = struct.unpack_from("<I", data, position)
    position += 4
    if cookie & 0xFFFF == RUN_COOKIE:
        count = (cookie >> 16) + 1
        flags = data[position : position + (count + 7) // 8]
        position += len(flags)
    elif cookie == PLAIN_COOKIE:
        (count,) = struct.unpack_from("<I", data, position)
        if count > CONTAINERS:
            raise ValueError(f"it has {count} containers")
        flags, position = bytes((count + 7) // 8), position + 4
    else:
        raise ValueError(f"its cookie is {cookie}")
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
    """Return the low 16 bits of the numbers in a container, and where it ends."""
    if is_run:
        (count,) = struct.unpack_from("<H", data, position)
        pairs = struct.unpack_from(f"<{2 * count}H", data, position + 2)
        runs = (range(start, start + more + 1) for start, more in zip(pairs[::2], pairs[1::2], strict=True))
        return pa.array(list(chain.from_iterable(runs)), pa.int64()), position + 2 + 4 * count
    is_array = cardinality <= ARRAY_CARDINALITY
    end = position + (2 * cardinality if is_array else CONTAINER_BITS // 8)
    if end > len(data):
        raise ValueError("it ends within a container")
    buffer = pa.py_buffer(data[position:end])
    array: Any = pa.Array
    if is_array:
        return array.from_buffers(pa.uint16(), cardinality, [None, buffer]), end
    return pc.indices_nonzero(array.from_buffers(pa.bool_(), CONTAINER_BITS, [None, buffer])), end


def _inline(descriptor: DeletionVector) -> bytes:
    data, size = _decode(descriptor.path_or_inline_dv, z85.decode_padded), descriptor.size_in_bytes
    if not 0 <= len(data) - size < z85.BLOCK_BYTES:
        raise MalformedLogError(
            f"an inline deletion vector has {len(data)} bytes, and its descriptor says {size}"
        )
    return data[:size]


def _decode(text: str, decode: Callable[[str], bytes] = z85.decode) -> bytes:
    try:
        return decode(text)
    except InvalidZ85Error as error:
        raise MalformedLogError(f"deletion vector {text!r}: {error}") from error


def _stored(table: Store, path: str, descriptor: DeletionVector) -> bytes:
    # Without an offset the vector is the first of its file, behind the version.
    start = 1 if descriptor.offset is None else descriptor.offset
    if start < 1 or descriptor.size_in_bytes < 0:
        raise MalformedLogError(f"the deletion vector in {path} has an impossible offset or size")
    end = start + SIZE_BYTES + descriptor.size_in_bytes + CHECKSUM_BYTES
    version, framed = store.get_ranges(table, path, [(0, 1), (start, end)])
    if version != bytes([FILE_VERSION]):
        raise DataFileError(f"{path} has deletion vectors of version {version.hex()}, and only 1 is known")
    size = int.from_bytes(framed[:SIZE_BYTES], "big")
    data, checksum = framed[SIZE_BYTES:-CHECKSUM_BYTES], framed[-CHECKSUM_BYTES:]
    if size != descriptor.size_in_bytes or len(data) != size:
        raise DataFileError(
            f"the deletion vector at byte {start} of {path} has {size} bytes, and its descriptor says "
            f"{descriptor.size_in_bytes}"
        )
    if zlib.crc32(data) != int.from_bytes(checksum, "big"):
        raise DataFileError(f"the deletion vector at byte {start} of {path} does not match its checksum")
    return data
