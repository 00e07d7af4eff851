"""Small tables, and how faults are planted in their logs, files and statistics."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

import delta_variant as dv
from delta_variant.log.checkpoints import writing as checkpoint_writing
from delta_variant.protocol import z85
from delta_variant.reports import bounds
from delta_variant.storage.store import open_store

ROWS = [
    '{"a": 1, "b": "x", "d": 1.5, "tags": ["t"]}',
    '{"a": 2, "b": "y", "d": 2.5, "tags": []}',
    '{"a": 3, "b": "z", "d": 3.5, "tags": ["u", "v"]}',
    None,
]

METADATA_OF_A = bytes.fromhex("01010001") + b"a"
"""The dictionary of one name, `a`."""

INT8_1 = bytes.fromhex("0c01")
OBJECT_A_1 = bytes.fromhex("0201000002") + INT8_1
EMPTY = bytes.fromhex("010000")

UNSHREDDED = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)])


def group(typed: pa.DataType | None, *, value: bool = True) -> pa.StructType:
    """Return the type of a field's or element's group."""
    fields = [pa.field("value", pa.binary())] if value else []
    return pa.struct([*fields, *([pa.field("typed_value", typed)] if typed is not None else [])])


def column(typed: pa.DataType | None) -> pa.StructType:
    """Return the type of a shredded Variant column."""
    return pa.struct([pa.field("metadata", pa.binary(), False), *group(typed)])


OBJECT_OF_A = column(pa.struct([pa.field("a", group(pa.int64()), False)]))
LIST_OF_INTS = column(pa.list_(pa.field("element", group(pa.int64()), False)))


@dataclass(frozen=True)
class Table:
    """A table of one commit with one file, which faults are planted in."""

    path: Path

    @classmethod
    def write(cls, path: Path, **options: Any) -> Table:
        """Write the columns `id` and `v`, a shredded Variant."""
        columns = {"id": pa.array(range(len(ROWS)), pa.int64()), "v": pa.array(ROWS, pa.json_())}
        dv.write_table(path, pa.table(columns), **{"shredding": dv.infer_shredding_schema(ROWS), **options})
        return cls(path)

    @property
    def log(self) -> Path:
        """Return the folder of the log."""
        return self.path / "_delta_log"

    @property
    def commit(self) -> Path:
        """Return the first commit."""
        return self.log / f"{0:020d}.json"

    @property
    def file(self) -> Path:
        """Return the data file."""
        (file,) = self.path.glob("*.parquet")
        return file

    def actions(self) -> list[dict[str, Any]]:
        """Return the actions of the first commit."""
        return [json.loads(line) for line in self.commit.read_text(encoding="utf-8").splitlines()]

    def rewrite(self, actions: list[dict[str, Any]]) -> None:
        """Put other actions in the first commit."""
        rewrite_commit(self.commit, actions)

    def edit(self, kind: str, change: Callable[[dict[str, Any]], object]) -> None:
        """Change an action of the first commit."""
        actions = self.actions()
        for action in actions:
            if kind in action:
                change(action[kind])
        self.rewrite(actions)

    def edit_stats(self, change: Callable[[dict[str, Any]], object]) -> None:
        """Change the statistics of the file."""

        def edit(add: dict[str, Any]) -> None:
            statistics = json.loads(add["stats"])
            change(statistics)
            add["stats"] = json.dumps(statistics)

        self.edit("add", edit)

    def edit_schema(self, change: Callable[[dict[str, Any]], object]) -> None:
        """Change the schema of the table."""

        def edit(metadata: dict[str, Any]) -> None:
            schema = json.loads(metadata["schemaString"])
            change(schema)
            metadata["schemaString"] = json.dumps(schema)

        self.edit("metaData", edit)

    def set_property(self, name: str, text: str) -> None:
        """Set a table property."""
        self.edit("metaData", lambda metadata: metadata["configuration"].update({name: text}))

    def edit_protocol(self, reader: list[str], writer: list[str]) -> None:
        """Put other features in the two lists of the protocol."""
        self.edit("protocol", lambda each: each.update(readerFeatures=reader, writerFeatures=writer))

    def set_bound(self, side: str, text: Any) -> None:
        """Put another entry in minValues or maxValues for the Variant."""
        self.edit_stats(lambda statistics: statistics[side].update(v=text))

    def set_bounds(self, least: dict[str, Any], greatest: dict[str, Any] | None = None) -> None:
        """Put other bounds in the statistics, each a JSON object from path keys to typed values."""
        self.set_bound("minValues", bounds.encode(json.dumps(least)))
        self.set_bound("maxValues", bounds.encode(json.dumps(least if greatest is None else greatest)))

    def shift_bounds(self, key: str, least: Any, greatest: Any) -> None:
        """Put other bounds of one path in the statistics, and leave the rest."""
        for side, value in (("minValues", least), ("maxValues", greatest)):
            text = next(json.loads(a["add"]["stats"]) for a in self.actions() if "add" in a)[side]["v"]
            known = {name: _typed(each) for name, each in bounds.decode(text).items()}
            known.pop(key, None)
            self.set_bound(side, bounds.encode(json.dumps(known | ({} if value is None else {key: value}))))

    def replace_file(self, variants: pa.Array[Any], **options: Any) -> None:
        """Put a file with other Variants in the place of the file, and drop its statistics."""
        ids = pa.array(range(len(variants)), pa.int64())
        pq.write_table(pa.table({"id": ids, "v": variants}), self.file, **options)
        size = self.file.stat().st_size
        self.edit("add", lambda add: (add.update(size=size), add.pop("stats", None)))

    def replace_rows(self, column_type: pa.DataType, *rows: Any, **options: Any) -> None:
        """Put a file of these rows in the place of the file."""
        self.replace_file(pa.array(list(rows), column_type), **options)

    def write_checkpoint(self) -> Path:
        """Write the checkpoint of the first commit, and return its file."""
        checkpoint_writing.write_checkpoint(open_store(self.path), 0, now=0, unique_id="")
        (checkpoint,) = self.log.glob("*.checkpoint.parquet")
        return checkpoint

    def edit_checkpoint(self, change: Callable[[list[dict[str, Any]]], object]) -> None:
        """Write the checkpoint of the first commit with other rows, each with one action."""
        checkpoint = self.write_checkpoint()
        rows = pq.read_table(checkpoint).to_pylist()
        change(rows)
        pq.write_table(pa.Table.from_pylist(rows, pq.read_schema(checkpoint)), checkpoint)

    def edit_pointer(self, **fields: Any) -> None:
        """Write a checkpoint, and change fields of `_last_checkpoint`."""
        self.write_checkpoint()
        pointer = self.log / "_last_checkpoint"
        pointer.write_text(json.dumps({**json.loads(pointer.read_text("utf-8")), **fields}), "utf-8")

    def append(self, **options: Any) -> None:
        """Append the rows again, as the next version."""
        columns = {"id": pa.array(range(len(ROWS)), pa.int64()), "v": pa.array(ROWS, pa.json_())}
        dv.write_table(self.path, pa.table(columns), mode="append", **options)

    def add_commit(self, version: int, *actions: dict[str, Any]) -> None:
        """Add a commit."""
        text = "".join(json.dumps(action) + "\n" for action in actions)
        (self.log / f"{version:020d}.json").write_text(text, encoding="utf-8")


def _typed(each: bounds.TypedValue) -> dict[str, Any]:
    return {"type": each.type, "value": json.loads(bytes(each.value))}


def bound_of(value: bytes, keys: list[str]) -> str:
    """Return the text of a bound with a dictionary of path keys and a hand-made value."""
    names = [key.encode() for key in keys]
    offsets = [sum(map(len, names[:count])) for count in range(len(names) + 1)]
    metadata = bytes([1, len(names), *offsets]) + b"".join(names)
    return z85.encode(metadata + value)


def inline_vector(*rows: int) -> dict[str, Any]:
    """Return the descriptor of a deletion vector of some rows (PROTOCOL.md, "Deletion Vector Format")."""
    numbers = b"".join(row.to_bytes(2, "little") for row in sorted(rows))
    container = bytes.fromhex("3a300000 01000000 0000") + (len(rows) - 1).to_bytes(2, "little")
    bitmap = bytes.fromhex("d1d33964 0100000000000000 00000000") + container + bytes([16, 0, 0, 0]) + numbers
    return {
        "storageType": "i",
        "pathOrInlineDv": z85.encode(bitmap + bytes(-len(bitmap) % 4)),
        "sizeInBytes": len(bitmap),
        "cardinality": len(rows),
    }


def plant_vector(table: Path, version: int, *rows: int) -> None:
    """Let a deletion vector mark rows of the one file that a commit adds; the table has to support those."""
    plant_descriptor(table, version, inline_vector(*rows))


def plant_vector_file(table: Path, version: int, *rows: int) -> None:
    """Do as `plant_vector`, with a vector in a file (PROTOCOL.md, "Deletion Vector File Storage Format")."""
    inline, uuid = inline_vector(*rows), uuid4()
    data = z85.decode(inline["pathOrInlineDv"])[: inline["sizeInBytes"]]
    framed = b"\1" + len(data).to_bytes(4, "big") + data + zlib.crc32(data).to_bytes(4, "big")
    (table / f"deletion_vector_{uuid}.bin").write_bytes(framed)
    stored = {"storageType": "u", "pathOrInlineDv": z85.encode(uuid.bytes), "offset": 1}
    plant_descriptor(table, version, {**inline, **stored})


def plant_descriptor(table: Path, version: int, descriptor: dict[str, Any]) -> None:
    """Give the one file that a commit adds the descriptor of a deletion vector."""
    commit = table / "_delta_log" / f"{version:020d}.json"
    actions = [json.loads(line) for line in commit.read_text(encoding="utf-8").splitlines()]
    (add,) = (action["add"] for action in actions if "add" in action)
    add["deletionVector"] = descriptor
    # Bounds still cover deleted rows.
    add["stats"] = json.dumps({**json.loads(add["stats"]), "tightBounds": False})
    rewrite_commit(commit, actions)


def rewrite_commit(commit: Path, actions: list[dict[str, Any]]) -> None:
    """Put other actions in a commit, and delete the checksums of the table, which have the state before."""
    commit.write_text("".join(json.dumps(action) + "\n" for action in actions), encoding="utf-8")
    for checksum in commit.parent.glob("*.crc"):
        checksum.unlink()
