"""z85 text, in which statistics store Variants (ZeroMQ RFC 32 with Delta's padding)."""

from __future__ import annotations

import re
import struct

from ..errors import InvalidZ85Error

__all__ = ["decode", "decode_padded", "encode"]

BLOCK_BYTES = 4
BLOCK_CHARACTERS = 5
PADDING = re.compile(r"#{1,3}(?!#)")
"""The padding of a last block, one `#` for each missing byte; a full block never starts with `#`."""


def encode(data: bytes) -> str:
    """Return `data`, padded with zeros to blocks of four bytes, as z85 text; the length is not stored."""
    # Imported on demand: zmq loads a C library.
    from zmq.utils import z85

    return z85.encode(data + bytes(-len(data) % BLOCK_BYTES)).decode("ascii")


def decode(text: str) -> bytes:
    """Return the bytes of `text`, including padding; raises InvalidZ85Error.

    Two forms are accepted: full blocks of five characters, and the form of the examples in PROTOCOL.md, whose
    last block of n bytes is cut to n + 1 characters.
    """
    from zmq.utils import z85

    if len(text) % BLOCK_CHARACTERS == 1:
        raise InvalidZ85Error(
            f"invalid z85 text of {len(text)} characters: its last block has only one character"
        )
    missing = -len(text) % BLOCK_CHARACTERS
    try:
        # Padding with the highest digit restores the bytes, because cutting rounded the block down.
        padded = z85.decode(text + "#" * missing)
    except KeyError as error:
        position = text.index(chr(error.args[0]))
        raise InvalidZ85Error(f"invalid z85 character {text[position]!r} at position {position}") from error
    except struct.error as error:
        raise InvalidZ85Error("invalid z85 text: the value of a block exceeds four bytes") from error
    except ValueError as error:
        raise InvalidZ85Error("invalid z85 text: it contains characters that are not ASCII") from error
    return padded[: len(padded) - missing]


def decode_padded(text: str) -> bytes:
    """Return the bytes of `text`, whose last block may be padded with `#`: `##093` has two bytes.

    The Rust crate `z85`, which delta-kernel-rs uses, pads data of any length in this way.
    """
    last = text[-BLOCK_CHARACTERS:] if len(text) % BLOCK_CHARACTERS == 0 else ""
    padding = PADDING.match(last)
    if padding is None:
        return decode(text)
    missing = len(padding[0])
    number = decode("0" * missing + last[missing:])
    if any(number[:missing]):
        raise InvalidZ85Error(f"invalid z85 text: the value of the last block exceeds {4 - missing} bytes")
    return decode(text[:-BLOCK_CHARACTERS]) + number[missing:]
