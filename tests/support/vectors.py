"""Decode deletion vectors by the specifications alone, for tests of what the library writes.

See PROTOCOL.md, "Deletion Vector Format", and the format of Roaring bitmaps.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from uuid import UUID

from delta_variant.protocol import z85

__all__ = ["deleted_rows", "vector_path"]

MAGIC, PLAIN, RUNS = 1_681_511_377, 12_346, 12_347


def vector_path(add: Mapping[str, Any]) -> str | None:
    """Return the path of the file that has the vector of an action, None if no file has it."""
    vector = add.get("deletionVector")
    if vector is None or vector["storageType"] == "i":
        return None
    return f"deletion_vector_{UUID(bytes=z85.decode(vector['pathOrInlineDv']))}.bin"


def deleted_rows(add: Mapping[str, Any], read: Callable[[str], bytes]) -> frozenset[int]:
    """Return the rows that the vector of an `add` or `remove` action deletes; `read` returns a file."""
    vector = add.get("deletionVector")
    if vector is None:
        return frozenset()
    size, text = vector["sizeInBytes"], vector["pathOrInlineDv"]
    path = vector_path(add)
    if path is None:
        rows = frozenset(_rows(z85.decode(text)[:size]))
    else:
        file = read(path)
        start = vector["offset"] + 4
        data = file[start : start + size]
        assert file[0] == 1
        assert file[start - 4 : start] == size.to_bytes(4, "big")
        assert file[start + size : start + size + 4] == zlib.crc32(data).to_bytes(4, "big")
        rows = frozenset(_rows(data))
    assert len(rows) == vector["cardinality"]
    return rows


def _rows(data: bytes) -> Iterator[int]:
    magic, count = struct.unpack_from("<IQ", data)
    assert magic == MAGIC
    position = 12
    for _ in range(count):
        (high,) = struct.unpack_from("<I", data, position)
        found, position = _bitmap(data, position + 4)
        yield from ((high << 32) + row for row in found)
    assert position == len(data)


def _bitmap(data: bytes, position: int) -> tuple[list[int], int]:
    cookie, count = struct.unpack_from("<II", data, position)
    runs, position = b"", position + 8
    if cookie & 0xFFFF == RUNS:
        count, position = (cookie >> 16) + 1, position - 4
        runs = data[position : position + (count + 7) // 8]
        position += len(runs)
    else:
        assert cookie == PLAIN
    header = struct.unpack_from(f"<{2 * count}H", data, position)
    position += 4 * count * (2 if not runs or count >= 4 else 1)
    rows: list[int] = []
    for index in range(count):
        first, length = header[2 * index] << 16, header[2 * index + 1] + 1
        if runs and runs[index // 8] >> index % 8 & 1:
            (pairs,) = struct.unpack_from("<H", data, position)
            for pair in range(pairs):
                start, more = struct.unpack_from("<HH", data, position + 2 + 4 * pair)
                rows += range(first + start, first + start + more + 1)
            position += 2 + 4 * pairs
        elif length <= 4096:
            rows += (first + low for low in struct.unpack_from(f"<{length}H", data, position))
            position += 2 * length
        else:
            bits = int.from_bytes(data[position : position + 8192], "little")
            rows += (first + low for low in range(1 << 16) if bits >> low & 1)
            position += 8192
    return rows, position
