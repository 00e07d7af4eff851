"""Deletion vectors: the rows of a data file that are deleted (PROTOCOL.md, Deletion Vectors)."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from . import store, z85
from .actions import DeletionVector, decode_path
from .errors import DataFileError, InvalidZ85Error, MalformedLogError
from .store import Store

__all__ = ["file_path", "load"]

FILE_VERSION = 1
SIZE_BYTES = 4
CHECKSUM_BYTES = 4
UUID_CHARACTERS = 20


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


def _inline(descriptor: DeletionVector) -> bytes:
    data, size = _decode(descriptor.path_or_inline_dv), descriptor.size_in_bytes
    if not 0 <= len(data) - size < z85.BLOCK_BYTES:
        raise MalformedLogError(
            f"an inline deletion vector has {len(data)} bytes, and its descriptor says {size}"
        )
    return data[:size]


def _decode(text: str) -> bytes:
    try:
        return z85.decode(text)
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
