"""Encode typed values as Variant bytes and z85 text by the specifications, without `delta_variant`.

Small values only: fewer than 256 names, fields and bytes.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from typing import Any
from uuid import UUID

INTEGERS = {"int8": (0x0C, "<b"), "int16": (0x10, "<h"), "int32": (0x14, "<i"), "int64": (0x18, "<q")}
TIMES = {
    "timestamp": 0x30,
    "timestamp_ntz": 0x34,
    "time": 0x44,
    "timestamp_nanos": 0x48,
    "timestamp_ntz_nanos": 0x4C,
}
FLOATS = {"double": (0x1C, "<d"), "float": (0x38, "<f")}
DECIMALS = {"decimal4": (0x20, 4), "decimal8": (0x24, 8), "decimal16": (0x28, 16)}


def int8(number: int) -> dict[str, Any]:
    return {"int8": number}


def int64(number: int) -> dict[str, Any]:
    return {"int64": number}


def text(characters: str) -> dict[str, Any]:
    return {"string": characters}


def obj(**fields: Any) -> dict[str, Any]:
    return {"object": fields}


def arr(*elements: Any) -> dict[str, Any]:
    return {"array": list(elements)}


def encode(typed: dict[str, Any], *, names: list[str] | None = None) -> tuple[bytes, bytes]:
    """Return metadata and value of a typed value; names are sorted unless given."""
    dictionary = sorted(set(_names(typed)), key=str.encode) if names is None else names
    return metadata(dictionary), value(typed, dictionary)


def metadata(names: list[str]) -> bytes:
    """Return the metadata whose dictionary is `names`, not marked as sorted."""
    texts = [name.encode() for name in names]
    offsets = [sum(map(len, texts[:count])) for count in range(len(texts) + 1)]
    return bytes([0x01, len(texts), *offsets]) + b"".join(texts)


def value(typed: dict[str, Any], names: list[str]) -> bytes:
    """Return the value bytes of a typed value whose names are in the dictionary `names`."""
    [(kind, payload)] = typed.items()
    if kind == "null":
        return b"\x00"
    if kind == "boolean":
        return b"\x04" if payload else b"\x08"
    if kind in INTEGERS or kind in FLOATS:
        header, layout = {**INTEGERS, **FLOATS}[kind]
        return bytes([header]) + struct.pack(layout, float(payload) if kind in FLOATS else payload)
    if kind in DECIMALS:
        header, width = DECIMALS[kind]
        whole, _, fraction = payload.partition(".")
        return bytes([header, len(fraction)]) + int(whole + fraction).to_bytes(width, "little", signed=True)
    if kind == "date":
        return b"\x2c" + struct.pack("<i", payload)
    if kind in TIMES:
        return bytes([TIMES[kind]]) + struct.pack("<q", payload)
    if kind == "binary":
        data = bytes.fromhex(payload)
        return b"\x3c" + struct.pack("<I", len(data)) + data
    if kind == "uuid":
        return b"\x50" + UUID(payload).bytes
    if kind == "string":
        text = payload.encode()
        short = len(text) < 64
        return (bytes([len(text) << 2 | 1]) if short else b"\x40" + struct.pack("<I", len(text))) + text
    return _container(kind, payload, names)


def _container(kind: str, payload: Any, names: list[str]) -> bytes:
    if kind == "array":
        elements = [value(each, names) for each in payload]
        return bytes([0x03, len(elements), *_offsets(elements)]) + b"".join(elements)
    assert kind == "object", kind
    fields = sorted(payload.items(), key=lambda field: field[0].encode())
    parts = [value(each, names) for _, each in fields]
    ids = [names.index(name) for name, _ in fields]
    wide = sum(map(len, parts)) > 255
    offsets = b"".join(offset.to_bytes(2 if wide else 1, "little") for offset in _offsets(parts))
    return bytes([0x06 if wide else 0x02, len(parts), *ids]) + offsets + b"".join(parts)


def _offsets(parts: list[bytes]) -> list[int]:
    return [sum(map(len, parts[:count])) for count in range(len(parts) + 1)]


def _names(typed: dict[str, Any]) -> Iterator[str]:
    [(kind, payload)] = typed.items()
    if kind == "object":
        for name, field in payload.items():
            yield name
            yield from _names(field)
    elif kind == "array":
        for element in payload:
            yield from _names(element)


# base64.b85encode and z85 (ZeroMQ RFC 32) use different digits but the same arithmetic.
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def z85(data: bytes, *, pad: bool = True) -> str:
    """Return `data` as z85 text: zero padded to whole blocks, or with a truncated last block."""
    padded = data + bytes(-len(data) % 4) if pad else data
    return base64.b85encode(padded).decode().translate(str.maketrans(_B85, _Z85))
