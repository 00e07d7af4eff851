"""z85 text, in which statistics store Variants (ZeroMQ RFC 32 with Delta's padding)."""

from __future__ import annotations

import base64
import re

from ..errors import InvalidZ85Error

BLOCK_BYTES = 4
BLOCK_CHARACTERS = 5
PADDING = re.compile(r"#{1,3}(?!#)")
"""The padding of a last block, one `#` for each missing byte; a full block never starts with `#`."""

DIGITS = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
# base64.b85encode does the same arithmetic with other digits.
BASE85_DIGITS = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
TO_Z85 = bytes.maketrans(BASE85_DIGITS, DIGITS)
TO_BASE85 = bytes.maketrans(DIGITS, BASE85_DIGITS)
NOT_A_DIGIT = re.compile(f"[^{re.escape(DIGITS.decode('ascii'))}]")


def encode(data: bytes) -> str:
    """Return `data`, padded with zeros to blocks of four bytes, as z85 text; the length is not stored."""
    return base64.b85encode(data, pad=True).translate(TO_Z85).decode("ascii")


def decode(text: str) -> bytes:
    """Return the bytes of `text`, including padding; raises InvalidZ85Error.

    Two forms are accepted: full blocks of five characters, and the form of the examples in PROTOCOL.md, whose
    last block of n bytes is cut to n + 1 characters.
    """
    if len(text) % BLOCK_CHARACTERS == 1:
        raise InvalidZ85Error(
            f"invalid z85 text of {len(text)} characters: its last block has only one character"
        )
    if not text.isascii():
        raise InvalidZ85Error("invalid z85 text: it contains characters that are not ASCII")
    if wrong := NOT_A_DIGIT.search(text):
        raise InvalidZ85Error(f"invalid z85 character {wrong[0]!r} at position {wrong.start()}")
    try:
        return base64.b85decode(text.encode("ascii").translate(TO_BASE85))
    except ValueError as error:
        raise InvalidZ85Error("invalid z85 text: the value of a block exceeds four bytes") from error


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
