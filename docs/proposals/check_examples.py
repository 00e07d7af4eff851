"""Check the encoded examples of the proposals in this folder: `python docs/proposals/check_examples.py`.

It needs only Python. Each example is a z85 text next to JSON: the text must decode to a Variant with this
value, and must be what encoding its bytes returns. Timestamps are compared as text.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from itertools import pairwise
from operator import mul
from pathlib import Path
from typing import Any

DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
ROW = re.compile(r"^\| .* \| `(0r[^`]+)` \| `(\{.*\})` \|$", re.MULTILINE)
MEMBER = re.compile(r'"(0r[^"]+)"')
HEX = re.compile(r"\| `([0-9a-f]{2}(?: [0-9a-f]{2})*)` \|")
EXAMPLES = {
    "0rJl95HpNdvjbtatpi(cu0wW^cTu=P0096c4jMddzy]{KA+PA73&{td": {"$['a']": "min-string", "$['b']['c']": 1},
    "0rJl95HpNdvjbtatpi(cu0wW^cTu=P009693lsp#A+O%1BpqWW": {"$['a']": "variant", "$['b']['c']": 100},
}
"""The bounds of the example in PROTOCOL.md, by their texts."""
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def decode_z85(text: str) -> bytes:
    """Return the bytes of a text of whole blocks (ZeroMQ RFC 32)."""
    if len(text) % 5:
        raise ValueError(f"{text}: {len(text)} characters are not a multiple of five")
    blocks = (text[start : start + 5] for start in range(0, len(text), 5))
    powers = [85**place for place in (4, 3, 2, 1, 0)]
    numbers = (sum(map(mul, map(DIGITS.index, block), powers)) for block in blocks)
    return b"".join(number.to_bytes(4, "big") for number in numbers)


def encode_z85(data: bytes) -> str:
    """Return bytes as text, with zeros up to a multiple of four."""
    padded = data + bytes(-len(data) % 4)
    numbers = (int.from_bytes(padded[start : start + 4], "big") for start in range(0, len(padded), 4))
    return "".join(DIGITS[number // 85**place % 85] for number in numbers for place in (4, 3, 2, 1, 0))


def split(data: bytes) -> tuple[list[str], bytes]:
    """Return the names of the metadata, and what follows them (VariantEncoding.md, "Metadata")."""
    width = (data[0] >> 6) + 1
    count = int.from_bytes(data[1 : 1 + width], "little")
    start = 1 + width * (count + 2)
    places = range(1 + width, start, width)
    offsets = [int.from_bytes(data[place : place + width], "little") for place in places]
    names = [data[start + first : start + last].decode() for first, last in pairwise(offsets)]
    return names, data[start + offsets[-1] :]


def decode_value(names: list[str], data: bytes) -> tuple[Any, int]:
    """Return a value and its length in bytes; only types of the examples (VariantEncoding.md, "Value")."""
    kind, header = data[0] & 3, data[0] >> 2
    if kind == 1:
        return data[1 : 1 + header].decode(), 1 + header
    if kind == 2:
        return _decode_object(names, data)
    if kind == 0 and header in (3, 4, 5, 6):
        length = 1 << (header - 3)
        return int.from_bytes(data[1 : 1 + length], "little", signed=True), 1 + length
    if kind == 0 and header == 8:
        unscaled = int.from_bytes(data[2:6], "little", signed=True)
        return Decimal(unscaled).scaleb(-data[1]), 6
    if kind == 0 and header == 12:
        micros = int.from_bytes(data[1:9], "little", signed=True)
        return (EPOCH + timedelta(microseconds=micros)).isoformat().replace("+00:00", "Z"), 9
    raise ValueError(f"no example has the header {data[0]:#04x}")


def _decode_object(names: list[str], data: bytes) -> tuple[dict[str, Any], int]:
    if data[0] >> 2:
        raise ValueError("the objects of the examples have ids and offsets of one byte")
    count = data[1]
    ids, offsets = data[2 : 2 + count], data[2 + count : 3 + 2 * count]
    start = 3 + 2 * count
    values = [decode_value(names, data[start + offset :])[0] for offset in offsets[:count]]
    fields = dict(zip((names[each] for each in ids), values, strict=True))
    return fields, start + offsets[count]


def problem_of(text: str, expected: Any) -> str | None:
    """Return what is wrong with an example, None if nothing is."""
    data = decode_z85(text)
    names, rest = split(data)
    found, length = decode_value(names, rest)
    end = len(data) - len(rest) + length
    if found != expected:
        return f"{text}: expected {expected}, got {found}"
    if encode_z85(data[:end]) != text:
        return f"{text}: encoding its {end} bytes returns {encode_z85(data[:end])}"
    return None


def examples(folder: Path) -> Iterator[tuple[str, Any]]:
    """Yield each encoded text of the proposals with its value."""
    for page in sorted(folder.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        yield from ((row[1], json.loads(row[2], parse_float=Decimal)) for row in ROW.finditer(text))
        yield from ((member[1], EXAMPLES[member[1]]) for member in MEMBER.finditer(text))


def bytes_of_tables(page: Path) -> bytes:
    """Return the bytes in the tables of a page, in order."""
    return b"".join(bytes.fromhex(row[1]) for row in HEX.finditer(page.read_text(encoding="utf-8")))


def main() -> int:
    """Print each problem, and return 1 if there is one."""
    folder = Path(__file__).parent
    found = list(examples(folder))
    problems = [problem for text, value in found if (problem := problem_of(text, value))]
    example = decode_z85(next(iter(EXAMPLES)))
    for name in ("z85-examples.md", "adaptive-metadata.md"):
        listed = bytes_of_tables(folder / name)
        if listed + bytes(len(example) - len(listed)) != example:
            problems.append(f"{name}: the bytes in the table are not those of the example")
    print("\n".join(problems) or f"{len(found)} examples decode to their values")
    return 1 if problems or not found else 0


if __name__ == "__main__":
    sys.exit(main())
