"""Rewrite the footer of a Parquet file, to add annotations and statistics that pyarrow cannot write.

The footer is Thrift's compact protocol; it is read whole into plain objects, changed, and written again.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MAGIC = b"PAR1"

# Types of the compact protocol.
TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)

# Fields of FileMetaData and SchemaElement in parquet.thrift.
SCHEMA, ROW_GROUPS = 2, 4
REPETITION, NAME, NUM_CHILDREN, CONVERTED, SCALE, PRECISION, LOGICAL = 3, 4, 5, 6, 7, 8, 10

# Fields of RowGroup, ColumnChunk and ColumnMetaData.
COLUMNS, META_DATA, PATH_IN_SCHEMA, STATISTICS = 1, 3, 3, 12

# Members of the union LogicalType.
LOGICAL_TYPES = {"MAP": 2, "LIST": 3, "ENUM": 4, "JSON": 12, "BSON": 13, "UUID": 14, "VARIANT": 16}

Struct = dict[int, tuple[int, Any]]
"""A Thrift struct: field id to its type and its value."""


@dataclass
class Element:
    """One node of the schema, with its children."""

    fields: Struct
    children: list[Element] = field(default_factory=list)

    @property
    def name(self) -> str:
        return str(self.fields[NAME][1].decode())

    @name.setter
    def name(self, name: str) -> None:
        self.fields[NAME] = (BINARY, name.encode())

    def at(self, *path: str) -> Element:
        """Return the node at a path of names below this one; raises ValueError if it does not exist."""
        node = self
        for step in path:
            found = [child for child in node.children if child.name == step]
            if not found:
                raise ValueError(f"the file has no column {step!r}")
            [node] = found
        return node

    def set_repetition(self, repetition: str) -> None:
        self.fields[REPETITION] = (I32, ["required", "optional", "repeated"].index(repetition))

    def set_logical(self, union: Struct | None) -> None:
        """Annotate the node with a logical type alone, or with nothing."""
        self.fields.pop(CONVERTED, None)
        self.fields.pop(LOGICAL, None)
        if union is not None:
            self.fields[LOGICAL] = (STRUCT, union)


def logical_type(name: str) -> Struct:
    """Return a logical type without parameters."""
    return {LOGICAL_TYPES[name]: (STRUCT, {})}


def annotate(path: Path, column: str, *, version: int | None = 1) -> None:
    """Annotate a top-level column of a file as VARIANT, with a version of the specification or without.

    Raises ValueError if the column does not exist.
    """
    parameters: Struct = {} if version is None else {1: (BYTE, version)}
    variant: Struct = {LOGICAL_TYPES["VARIANT"]: (STRUCT, parameters)}
    rewrite_schema(path, lambda root: root.at(column).set_logical(variant))


def rewrite_schema(path: Path, change: Callable[[Element], None]) -> None:
    """Call `change` with the root of a file's schema; the result must fit the pages.

    Column chunks get the paths of the changed schema, as the format requires.
    """
    start, footer = _footer(path)
    kind, elements = footer[SCHEMA][1]
    root = _tree(iter(elements))
    change(root)
    footer[SCHEMA] = (LIST, (kind, _flat(root)))
    for row_group in footer[ROW_GROUPS][1][1]:
        for chunk, leaf in zip(row_group[COLUMNS][1][1], _leaves(root), strict=True):
            chunk[META_DATA][1][PATH_IN_SCHEMA] = (LIST, (BINARY, leaf))
    _write_footer(path, start, footer)


def rewrite_statistics(path: Path, column: str, change: Callable[[Struct], None]) -> None:
    """Call `change` with the statistics of a column in each row group; `v.typed_value` is such a path."""
    start, footer = _footer(path)
    changed = 0
    for row_group in footer[ROW_GROUPS][1][1]:
        for chunk in row_group[COLUMNS][1][1]:
            metadata = chunk[META_DATA][1]
            if b".".join(metadata[PATH_IN_SCHEMA][1][1]).decode() == column:
                change(metadata[STATISTICS][1])
                changed += 1
    assert changed, f"{path} has no column {column}"
    _write_footer(path, start, footer)


def _footer(path: Path) -> tuple[int, Struct]:
    """Return where the footer starts, and its content."""
    data = path.read_bytes()
    (size,) = struct.unpack("<I", data[-8:-4])
    assert data[-4:] == MAGIC, path
    start = len(data) - 8 - size
    return start, Reader(data[start:-8]).struct()


def _write_footer(path: Path, start: int, footer: Struct) -> None:
    written = _struct(footer)
    path.write_bytes(path.read_bytes()[:start] + written + struct.pack("<I", len(written)) + MAGIC)


def _tree(elements: Any) -> Element:
    fields = next(elements)
    count = fields.get(NUM_CHILDREN, (I32, 0))[1]
    return Element(fields, [_tree(elements) for _ in range(count)])


def _leaves(element: Element) -> list[list[bytes]]:
    """Return the paths of the leaves below a node."""
    paths = []
    for child in element.children:
        name = child.name.encode()
        paths += [[name, *path] for path in _leaves(child)] if child.children else [[name]]
    return paths


def _flat(element: Element) -> list[Struct]:
    fields = dict(element.fields)
    if element.children:
        fields[NUM_CHILDREN] = (I32, len(element.children))
    return [fields, *(each for child in element.children for each in _flat(child))]


class Reader:
    """Reads the compact protocol."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def struct(self) -> Struct:
        fields: Struct = {}
        identity = 0
        while (header := self._byte()) != 0:
            kind, delta = header & 0x0F, header >> 4
            identity = identity + delta if delta else self._zigzag()
            fields[identity] = (kind, kind == TRUE if kind in (TRUE, FALSE) else self._value(kind))
        return fields

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _take(self, size: int) -> bytes:
        self._at += size
        return self._data[self._at - size : self._at]

    def _value(self, kind: int) -> Any:
        if kind in (I16, I32, I64):
            return self._zigzag()
        if kind in (TRUE, FALSE, BYTE):
            return self._byte()
        if kind == DOUBLE:
            return self._take(8)
        if kind == BINARY:
            return self._take(self._varint())
        if kind == STRUCT:
            return self.struct()
        assert kind in (LIST, SET), f"a footer has no value of type {kind}"
        header = self._byte()
        size = self._varint() if header >> 4 == 15 else header >> 4
        return header & 0x0F, [self._value(header & 0x0F) for _ in range(size)]


def _struct(fields: Struct) -> bytes:
    out, previous = bytearray(), 0
    for identity, (kind, value) in sorted(fields.items()):
        actual = (TRUE if value else FALSE) if kind in (TRUE, FALSE) else kind
        delta = identity - previous
        out += bytes([delta << 4 | actual]) if 0 < delta < 16 else bytes([actual]) + _zigzag(identity)
        out += b"" if kind in (TRUE, FALSE) else _value(kind, value)
        previous = identity
    return bytes(out) + b"\x00"


def _value(kind: int, value: Any) -> bytes:
    if kind in (I16, I32, I64):
        return _zigzag(value)
    if kind in (TRUE, FALSE, BYTE):
        return bytes([value & 0xFF])
    if kind == DOUBLE:
        return bytes(value)
    if kind == BINARY:
        return _varint(len(value)) + bytes(value)
    if kind == STRUCT:
        return _struct(value)
    element, values = value
    size = (
        bytes([len(values) << 4 | element])
        if len(values) < 15
        else bytes([0xF0 | element]) + _varint(len(values))
    )
    return size + b"".join(_value(element, each) for each in values)


def _zigzag(value: int) -> bytes:
    return _varint(value << 1 if value >= 0 else (-value << 1) - 1)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
