"""The z85 text in which statistics hold a Variant (ZeroMQ RFC 32 with Delta's padding)."""

from __future__ import annotations

import re
import struct

from ..errors import InvalidZ85Error

__all__ = ["decode", "decode_padded", "encode"]

BLOCK_BYTES = 4
BLOCK_CHARACTERS = 5
PADDING = re.compile(r"#{1,3}(?!#)")
"""How a last block begins that lacks as many bytes; no block of four bytes begins with the digit `#`."""


def encode(data: bytes) -> str:
    """Return `data`, zero padded to whole blocks of four bytes, as z85 text; the length is not stored."""
    # zmq loads a C library, which would cost every import of delta_variant.
    from zmq.utils import z85

    return z85.encode(data + bytes(-len(data) % BLOCK_BYTES)).decode("ascii")


def decode(text: str) -> bytes:
    """Return the bytes of `text`, padding included; `InvalidZ85Error` says what is wrong with it.

    Two printed forms are read: whole blocks of five characters, and that of the protocol's own examples,
    whose last block of n bytes is cut to n + 1 characters.
    """
    from zmq.utils import z85

    if len(text) % BLOCK_CHARACTERS == 1:
        raise InvalidZ85Error(
            f"z85 text cannot end in a block of one character: it has {len(text)} characters"
        )
    missing = -len(text) % BLOCK_CHARACTERS
    try:
        # The highest digit undoes the cut: it lifts the rounded block back above the bytes it came from.
        padded = z85.decode(text + "#" * missing)
    except KeyError as error:
        position = text.index(chr(error.args[0]))
        raise InvalidZ85Error(f"{text[position]!r} at position {position} is not a z85 character") from error
    except struct.error as error:
        raise InvalidZ85Error("a block of the z85 text is greater than four bytes can hold") from error
    except ValueError as error:
        raise InvalidZ85Error("z85 text has ASCII characters only") from error
    return padded[: len(padded) - missing]


def decode_padded(text: str) -> bytes:
    """Return what `decode` does, also of text whose last block `#` pads: `##093` has two bytes.

    The Rust crate `z85`, with which delta-kernel-rs encodes, writes data of any length so.
    """
    last = text[-BLOCK_CHARACTERS:] if len(text) % BLOCK_CHARACTERS == 0 else ""
    padding = PADDING.match(last)
    if padding is None:
        return decode(text)
    missing = len(padding[0])
    number = decode("0" * missing + last[missing:])
    if any(number[:missing]):
        raise InvalidZ85Error(f"the last block of the z85 text is greater than {4 - missing} bytes can hold")
    return decode(text[:-BLOCK_CHARACTERS]) + number[missing:]
