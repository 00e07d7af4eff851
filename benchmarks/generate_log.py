"""Write the log of a table of many files with Variant statistics: a checkpoint and later commits.

    python benchmarks/generate_log.py TARGET [FILES [classic|v2]]

There are no data files: loading a snapshot and planning a query read only the log. The classic checkpoint has
the layout of Delta on Spark (snappy, `stats` as text, no `stats_parsed`), 300 bytes of statistics per file.
The V2 checkpoint is one of delta_variant, with sidecars, of a later version.
"""

from __future__ import annotations

import json
import random
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

FILES = 1_000_000
CHECKPOINT_VERSION = 10
COMMITS = 5
CHANGES = 200
ROWS_PER_FILE = 10_000
BATCH = 50_000

CHARACTERS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"

SCHEMA_STRING = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": name, "type": kind, "nullable": True, "metadata": {}}
            for name, kind in (("id", "long"), ("event", "variant"))
        ],
    }
)
FEATURES = ["variantType", "variantShredding"]
PROTOCOL: dict[str, Any] = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": FEATURES,
    "writerFeatures": FEATURES,
}
METADATA: dict[str, Any] = {
    "id": "5f1c9a52-7f4c-4b8e-9b11-0f6d7d1c2a77",
    "format": {"provider": "parquet", "options": {}},
    "schemaString": SCHEMA_STRING,
    "partitionColumns": [],
    "configuration": {"delta.enableVariantShredding": "true"},
    "createdTime": 1_700_000_000_000,
}

TEXT_MAP = pa.map_(pa.string(), pa.string())
CHECKPOINT_SCHEMA = pa.schema(
    [
        (
            "add",
            pa.struct(
                [
                    ("path", pa.string()),
                    ("partitionValues", TEXT_MAP),
                    ("size", pa.int64()),
                    ("modificationTime", pa.int64()),
                    ("dataChange", pa.bool_()),
                    ("stats", pa.string()),
                    ("tags", TEXT_MAP),
                ]
            ),
        ),
        (
            "remove",
            pa.struct([("path", pa.string()), ("deletionTimestamp", pa.int64()), ("dataChange", pa.bool_())]),
        ),
        (
            "metaData",
            pa.struct(
                [
                    ("id", pa.string()),
                    ("format", pa.struct([("provider", pa.string()), ("options", TEXT_MAP)])),
                    ("schemaString", pa.string()),
                    ("partitionColumns", pa.list_(pa.string())),
                    ("configuration", TEXT_MAP),
                    ("createdTime", pa.int64()),
                ]
            ),
        ),
        (
            "protocol",
            pa.struct(
                [
                    ("minReaderVersion", pa.int32()),
                    ("minWriterVersion", pa.int32()),
                    ("readerFeatures", pa.list_(pa.string())),
                    ("writerFeatures", pa.list_(pa.string())),
                ]
            ),
        ),
    ]
)

# The bounds of every file are one object with three paths. The constant part comes first, because z85 encodes
# four bytes at a time: then only the end has to be encoded for each file.
PATHS = ("$['day']", "$['type']", "$['user']['id']")
INT64, SHORT_STRING = 6 << 2, 1
VARYING_BYTES = 20


def _bound_head(kind: str) -> bytes:
    """Return the metadata and the head of the value, up to the two numbers that differ between files."""
    names = b"".join(path.encode() for path in PATHS)
    ends = [sum(map(len, PATHS[:number])) for number in range(len(PATHS) + 1)]
    metadata = bytes([0x11, len(PATHS), *ends]) + names
    text = bytes([len(kind) << 2 | SHORT_STRING]) + kind.encode()
    offsets = [len(text), 0, len(text) + 9, len(text) + 18]
    return metadata + bytes([0x02, len(PATHS), 0, 1, 2, *offsets]) + text


def _z85(data: bytes) -> str:
    blocks = []
    for (number,) in struct.iter_unpack(">I", data):
        digits = []
        for _ in range(5):
            number, digit = divmod(number, 85)
            digits.append(CHARACTERS[digit])
        blocks.append("".join(reversed(digits)))
    return "".join(blocks)


def _whole_blocks(kind: str) -> bytes:
    # The string pads the head to a whole number of blocks.
    return _bound_head(kind + "x" * (-len(_bound_head(kind)) % 4))


LEAST_HEAD, GREATEST_HEAD = (_z85(_whole_blocks(kind)) for kind in ("click", "view"))


def bound(head: str, day: int, user: int) -> str:
    """Return the z85 text of one side of the bounds of a file."""
    tail = struct.pack("<BqBq", INT64, day, INT64, user)
    return head + _z85(tail.ljust(VARYING_BYTES, b"\0"))


def stats(file: int) -> str:
    """Return the statistics of a file: days and ids increase from file to file, users are random."""
    first = file * ROWS_PER_FILE
    day, user = 20_000 + file // 1000, (file * 2_654_435_761) % 1_000_000_007
    least = bound(LEAST_HEAD, day, user)
    greatest = bound(GREATEST_HEAD, day + 1, user + 5_000)
    return (
        f'{{"numRecords":{ROWS_PER_FILE},"minValues":{{"id":{first},"event":"{least}"}},'
        f'"maxValues":{{"id":{first + ROWS_PER_FILE - 1},"event":"{greatest}"}},'
        f'"nullCount":{{"id":0,"event":0}}}}'
    )


def path(file: int) -> str:
    return f"part-{file:05d}-{(file * 2_654_435_761) % 2**64:016x}-7c1d-4e5f-c000.snappy.parquet"


def add(file: int) -> dict[str, Any]:
    return {
        "path": path(file),
        "partitionValues": {},
        "size": 1_000_000 + file % 1000,
        "modificationTime": 1_700_000_000_000 + file,
        "dataChange": True,
        "stats": stats(file),
    }


def write_checkpoint(folder: Path, files: int) -> None:
    """Write the checkpoint of `files` files and the pointer to it."""
    name = folder / f"{CHECKPOINT_VERSION:020d}.checkpoint.parquet"
    with pq.ParquetWriter(name, CHECKPOINT_SCHEMA, compression="snappy") as writer:
        table_actions: list[dict[str, Any]] = [{"protocol": PROTOCOL}, {"metaData": METADATA}]
        writer.write_table(pa.Table.from_pylist(table_actions, CHECKPOINT_SCHEMA))
        for first in range(0, files, BATCH):
            numbers = range(first, min(first + BATCH, files))
            rows = [{"add": {**add(number), "dataChange": False}} for number in numbers]
            writer.write_table(pa.Table.from_pylist(rows, CHECKPOINT_SCHEMA))
    hint = {"version": CHECKPOINT_VERSION, "size": files + 2, "numOfAddFiles": files}
    (folder / "_last_checkpoint").write_text(json.dumps(hint))


def commits(files: int) -> Iterator[list[dict[str, Any]]]:
    """Yield the actions of the commits after the checkpoint. Each removes files of any age and adds some."""
    chance = random.Random(7)
    removed_files = chance.sample(range(files), min(files, COMMITS * CHANGES))
    for number in range(COMMITS):
        first = files + number * CHANGES
        removed = removed_files[number * CHANGES : (number + 1) * CHANGES]
        yield [
            {"commitInfo": {"timestamp": 1_700_000_000_000 + number, "operation": "WRITE"}},
            *({"add": add(file)} for file in range(first, first + CHANGES)),
            *(
                {"remove": {"path": path(file), "deletionTimestamp": 1_800_000_000_000, "dataChange": True}}
                for file in removed
            ),
        ]


def upgrade(target: Path) -> None:
    """Enable V2 checkpoints in a log, and replace its classic checkpoint by one with sidecars."""
    from delta_variant.log.checkpoints.writing import write_checkpoint
    from delta_variant.storage.store import open_store

    folder, version = target / "_delta_log", CHECKPOINT_VERSION + COMMITS + 1
    features = [*FEATURES, "v2Checkpoint"]
    protocol = {**PROTOCOL, "readerFeatures": features, "writerFeatures": features}
    configuration = {**METADATA["configuration"], "delta.checkpointPolicy": "v2"}
    actions = [{"protocol": protocol}, {"metaData": {**METADATA, "configuration": configuration}}]
    write_commit(folder, version, actions)
    write_checkpoint(open_store(target), version, now=0, unique_id=METADATA["id"])
    (folder / f"{CHECKPOINT_VERSION:020d}.checkpoint.parquet").unlink()


def write_commit(folder: Path, version: int, actions: list[dict[str, Any]]) -> None:
    lines = (json.dumps(action, separators=(",", ":")) for action in actions)
    (folder / f"{version:020d}.json").write_text("\n".join(lines) + "\n")


def main(target: str, files: str = str(FILES), form: str = "classic") -> None:
    folder = Path(target) / "_delta_log"
    folder.mkdir(parents=True)
    write_checkpoint(folder, int(files))
    for version, actions in enumerate(commits(int(files)), start=CHECKPOINT_VERSION + 1):
        write_commit(folder, version, actions)
    if form == "v2":
        upgrade(Path(target))


if __name__ == "__main__":
    main(*sys.argv[1:])
