"""Decode the deletion vectors of actions with the decoder of the conformance kit, which is not the library's.

See PROTOCOL.md, "Deletion Vector Format".
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from delta_variant_conformance.deletion_vectors import from_z85, rows_of


def vector_path(add: Mapping[str, Any]) -> str | None:
    """Return the path of the file that has the vector of an action, None if no file has it."""
    vector = add.get("deletionVector")
    if vector is None or vector["storageType"] == "i":
        return None
    return f"deletion_vector_{UUID(bytes=from_z85(vector['pathOrInlineDv']))}.bin"


def deleted_rows(add: Mapping[str, Any], read: Callable[[str], bytes]) -> frozenset[int]:
    """Return the rows that the vector of an `add` or `remove` action deletes; `read` returns a file."""
    vector = add.get("deletionVector")
    if vector is None:
        return frozenset()
    size, text = vector["sizeInBytes"], vector["pathOrInlineDv"]
    path = vector_path(add)
    if path is None:
        rows = frozenset(rows_of(from_z85(text)[:size]))
    else:
        file = read(path)
        start = vector["offset"] + 4
        data = file[start : start + size]
        assert file[0] == 1
        assert file[start - 4 : start] == size.to_bytes(4, "big")
        assert file[start + size : start + size + 4] == zlib.crc32(data).to_bytes(4, "big")
        rows = frozenset(rows_of(data))
    assert len(rows) == vector["cardinality"]
    return rows
