"""Add the VARIANT annotation to a Parquet column, a field of the footer that pyarrow cannot write.

The footer is a struct in Thrift's compact protocol. It is parsed only up to the column.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["annotate"]

MAGIC = b"PAR1"
STOP, I8, DOUBLE, BINARY, LIST, SET, STRUCT = 0, 3, 7, 8, 9, 10, 12
BOOLEANS, VARINTS = (1, 2), (4, 5, 6)

# Field ids in parquet.thrift.
SCHEMA, NAME, LOGICAL_TYPE = 2, 4, 10
# The union LogicalType with its member 16, a VariantType whose specification_version is 1.
VARIANT_1 = bytes([STRUCT, 16 << 1, 1 << 4 | I8, 1, STOP, STOP])


def annotate(file: Path, column: str) -> None:
    """Annotate a top-level column of a file of pyarrow as VARIANT(1); ValueError if it does not exist."""
    data = file.read_bytes()
    size = int.from_bytes(data[-8:-4], "little")
    body, footer = data[: -8 - size], data[-8 - size : -8]
    at, last_field = _end_of_element(footer, column.encode())
    header = bytes([(LOGICAL_TYPE - last_field) << 4 | STRUCT])
    footer = footer[:at] + header + VARIANT_1 + footer[at:]
    file.write_bytes(body + footer + len(footer).to_bytes(4, "little") + MAGIC)


def _end_of_element(footer: bytes, name: bytes) -> tuple[int, int]:
    """Return where the first schema element with a name ends, and the id of its last field."""
    reader = _Reader(footer)
    reader.skip_to(SCHEMA)
    for _ in range(reader.list_header()[0]):
        found, last = False, 0
        while field := reader.field(last):
            last, kind = field
            if last == NAME:
                found = reader.binary() == name
            else:
                reader.skip(kind)
        if found:
            return reader.at - 1, last
    raise ValueError(f"the file has no column {name.decode()!r}")


@dataclass
class _Reader:
    """A position in bytes of the compact protocol."""

    data: bytes
    at: int = 0

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        value = shift = 0
        while (byte := self.byte()) >= 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
        return value | byte << shift

    def binary(self) -> bytes:
        size = self.varint()
        self.at += size
        return self.data[self.at - size : self.at]

    def list_header(self) -> tuple[int, int]:
        """Return the number of elements and their type."""
        header = self.byte()
        return (header >> 4 if header < 0xF0 else self.varint()), header & 0xF

    def field(self, last: int) -> tuple[int, int] | None:
        """Return id and type of the next field, or None at the end of a struct."""
        header = self.byte()
        if header == STOP:
            return None
        zigzag = 0 if header >> 4 else self.varint()
        return (last + (header >> 4) if header >> 4 else zigzag >> 1), header & 0xF

    def skip_to(self, number: int) -> None:
        last = 0
        while field := self.field(last):
            last, kind = field
            if last == number:
                return
            self.skip(kind)
        raise ValueError("the footer has no schema")

    def skip(self, kind: int) -> None:
        if kind in VARINTS:
            self.varint()
        elif kind == BINARY:
            self.binary()
        elif kind in (LIST, SET):
            size, element = self.list_header()
            for _ in range(size):
                self.skip(element)
        elif kind == STRUCT:
            last = 0
            while field := self.field(last):
                last = field[0]
                self.skip(field[1])
        elif kind not in BOOLEANS:
            self.at += {I8: 1, DOUBLE: 8}[kind]
