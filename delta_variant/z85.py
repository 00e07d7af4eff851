"""The z85 text in which statistics hold a Variant (ZeroMQ RFC 32 with Delta's padding)."""

from __future__ import annotations

import struct

from .errors import InvalidZ85Error

__all__ = ["decode", "encode"]

BLOCK_BYTES = 4
BLOCK_CHARACTERS = 5


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
