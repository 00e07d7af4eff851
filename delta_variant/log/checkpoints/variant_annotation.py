"""Add the VARIANT annotation to groups in a Parquet file, which pyarrow cannot write and Spark requires.

The footer is a struct in Thrift's compact protocol. Its list of schema elements has every group before its
members (parquet.thrift, `FileMetaData` and `SchemaElement`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

FOOTER_END_BYTES = 8
STOP, I8, DOUBLE, BINARY, LIST, SET, STRUCT = 0, 3, 7, 8, 9, 10, 12
BOOLEANS, VARINTS = (1, 2), (4, 5, 6)

# Field ids in parquet.thrift.
SCHEMA = 2
TYPE, REPETITION, NAME, NUM_CHILDREN, LOGICAL_TYPE = 1, 3, 4, 5, 10
BYTE_ARRAY, REQUIRED = 6, 0
# The union LogicalType with member 16, a VariantType with specification_version 1.
VARIANT_1 = bytes([STRUCT, 16 << 1, 1 << 4 | I8, 1, STOP, STOP])


def annotate(file: bytes) -> bytes:
    """Annotate the groups of binary columns `metadata` and `value` of a file of pyarrow with VARIANT(1)."""
    size = int.from_bytes(file[-8:-4], "little")
    start = len(file) - FOOTER_END_BYTES - size
    footer = file[start : start + size]
    pieces, done = [], 0
    for element in _variants(list(_elements(footer))):
        header = bytes([(LOGICAL_TYPE - element.last_field) << 4 | STRUCT])
        pieces += [footer[done : element.stop], header, VARIANT_1]
        done = element.stop
    annotated = b"".join([*pieces, footer[done:]])
    return b"".join([file[:start], annotated, len(annotated).to_bytes(4, "little"), file[-4:]])


@dataclass(frozen=True)
class _Element:
    """A schema element: its name, integers by field id, the position of its end, and the last field id."""

    name: bytes
    numbers: Mapping[int, int]
    stop: int
    last_field: int

    @property
    def is_required_bytes(self) -> bool:
        """Return whether it is a required binary leaf without an annotation."""
        plain = {TYPE: BYTE_ARRAY, REPETITION: REQUIRED}
        return self.numbers == plain and self.last_field == NAME


def _variants(elements: list[_Element]) -> Iterator[_Element]:
    for group, *members in zip(elements, elements[1:], elements[2:], strict=False):
        names = {member.name for member in members if member.is_required_bytes}
        if group.numbers.get(NUM_CHILDREN) == 2 and names == {b"metadata", b"value"}:
            yield group


def _elements(footer: bytes) -> Iterator[_Element]:
    reader = _Reader(footer)
    last = 0
    while field := reader.field(last):
        last, kind = field
        if last == SCHEMA:
            break
        reader.skip(kind)
    for _ in range(reader.list_header()[0]):
        yield reader.element()


@dataclass
class _Reader:
    """A cursor in bytes of the compact protocol."""

    data: bytes
    at: int = 0

    def element(self) -> _Element:
        name, last = b"", 0
        numbers: dict[int, int] = {}
        while field := self.field(last):
            last, kind = field
            if last == NAME:
                name = self.binary()
            elif kind in VARINTS:
                # Integers are zigzag-encoded, and the relevant ones are not negative.
                numbers[last] = self.varint() >> 1
            else:
                self.skip(kind)
        return _Element(name, numbers, self.at - 1, last)

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        value, shift = 0, 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def binary(self) -> bytes:
        size = self.varint()
        self.at += size
        return self.data[self.at - size : self.at]

    def field(self, last: int) -> tuple[int, int] | None:
        """Return id and type of the next field of a struct, None at its end."""
        header = self.byte()
        if header == STOP:
            return None
        delta, kind = header >> 4, header & 0x0F
        # A field id is zigzag-encoded and never negative.
        return (last + delta if delta else self.varint() >> 1), kind

    def list_header(self) -> tuple[int, int]:
        header = self.byte()
        size, kind = header >> 4, header & 0x0F
        return (self.varint() if size == 15 else size), kind

    def skip(self, kind: int) -> None:
        if kind == I8:
            self.at += 1
        elif kind in VARINTS:
            self.varint()
        elif kind == DOUBLE:
            self.at += 8
        elif kind == BINARY:
            self.binary()
        elif kind in (LIST, SET):
            size, item = self.list_header()
            for _ in range(size):
                self.at += 1 if item in BOOLEANS else 0
                self.skip(item)
        elif kind == STRUCT:
            while field := self.field(0):
                self.skip(field[1])
