"""Tables that histories start from, one for each combination of features that a seed draws."""

from __future__ import annotations

import gc
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

from concurrent_operations import Append, Condition, Delete, Operation, State, data
from support.memory_objects import MemoryObjects
from support.planting import inline_vector
from table_log import read_ids
from virtual_runtime import MILLISECOND, RUNTIME, START

import delta_variant as dv
from delta_variant.storage.store import Memo, Store

TABLES = 48
"""How many tables there are; a history starts from a copy of one."""

ROW_TABLES = 16
"""How many tables there are for histories of changes of rows of the same files; their numbers follow."""

ROWS, MANY_ROWS = 6, 24
"""How many rows the first file of a table has."""

URI = "memory://table"
ORPHAN = "part-00000-orphan.c000.snappy.parquet"
HOUR = 3_600_000 * MILLISECOND
RETENTION = "interval 1 hours"
FEATURES = {
    "delta.enableChangeDataFeed": 0.5,
    "delta.enableRowTracking": 0.5,
    "delta.enableInCommitTimestamps": 0.5,
    "delta.enableDeletionVectors": 0.5,
    "delta.enableVariantShredding": 0.7,
    "delta.checkpoint.writeStatsAsStruct": 0.3,
}
"""How likely a table has each feature."""

SHREDDING = dv.infer_shredding_schema(['{"n": 1, "text": "row"}'])
"""Files of few rows are not shredded by default."""


@dataclass(frozen=True)
class HistoryTable:
    """A table of some versions: its files, configuration, the state at each version and its deleted rows.

    `deleted` are the ids of rows that a deletion vector marks.
    """

    objects: MemoryObjects
    configuration: Mapping[str, str]
    options: Mapping[str, Any]
    versions: Sequence[State]
    deleted: frozenset[int]

    def has(self, feature: str) -> bool:
        return self.configuration.get(f"delta.{feature}") == "true"


def open_memory(objects: Any, memo: Memo | None = None) -> Store:
    """Return the table of a store, which may remember a snapshot as the handle of a table does."""
    return Store(URI, objects, None, memo=memo or Memo())


def remember(table: HistoryTable, version: int) -> Memo:
    """Return the memo of a handle that loaded a version of a table before its history."""
    return dv.load_snapshot(open_memory(table.objects, Memo.of_handle()), version).store.memo


@cache
def history_table(number: int) -> HistoryTable:
    """Return a table with files that a vacuum deletes: their removal is older than the retention."""
    random = Random(f"table {number}")
    RUNTIME.reset(f"table {number}", START - 2 * HOUR)
    is_of_rows = number >= TABLES
    configuration = _draw_configuration(random)
    if is_of_rows:
        configuration["delta.enableDeletionVectors"] = "true"
    is_shredded = configuration["delta.enableVariantShredding"] == "true"
    options = {"shredding": SHREDDING if is_shredded else None}
    objects = MemoryObjects(RUNTIME.store_milliseconds)
    store = open_memory(objects)
    rows = {n: ("ab"[n % 2], n) for n in range(MANY_ROWS if is_of_rows else ROWS)}
    partitions = ["day"] if not is_of_rows and random.random() < 0.5 else []
    dv.write_table(store, data(rows), configuration=configuration, partition_by=partitions, **options)
    deleted = frozenset[int]()
    if configuration["delta.enableDeletionVectors"] == "true":
        deleted = frozenset({_mark_first_row(objects)})
    versions = [State({n: row for n, row in rows.items() if n not in deleted})]
    for step in _row_steps(random, options) if is_of_rows else _steps(random, options):
        assert step.run(store) == len(versions)
        versions.append(step.apply(versions[-1], versions))
    objects.put(ORPHAN, b"")
    # Each history ends with a collection, which need not look at the tables of all other histories.
    gc.collect()
    gc.freeze()
    return HistoryTable(objects, configuration, options, versions, deleted)


def _draw_configuration(random: Random) -> dict[str, str]:
    drawn = {name: str(random.random() < probability).lower() for name, probability in FEATURES.items()}
    return drawn | {
        "delta.columnMapping.mode": random.choice(["none", "name", "id"]),
        "delta.isolationLevel": random.choice(["Serializable", "WriteSerializable"]),
        "delta.checkpointInterval": random.choice(["2", "3", "10"]),
        "delta.checkpointPolicy": random.choice(["classic", "v2"]),
        "delta.deletedFileRetentionDuration": RETENTION,
    }


def _steps(random: Random, options: Mapping[str, Any]) -> list[Operation]:
    without_statistics = {**options, "files": dv.FileOptions(max_variant_stats_paths=0)}
    return [
        Append({6: ("a", 6), 7: ("b", 7)}, None, without_statistics if random.random() < 0.5 else options),
        Delete(Condition("id in (1, 6)", lambda number, _: number in (1, 6))),
        Append({8: ("a", 8), 9: ("b", 9)}, None, options),
    ]


def _row_steps(random: Random, options: Mapping[str, Any]) -> list[Operation]:
    second = range(MANY_ROWS, MANY_ROWS + 6)
    return [Append({n: ("ab"[n % 2], n) for n in second}, None, options)] if random.random() < 0.5 else []


def _mark_first_row(objects: MemoryObjects) -> int:
    """Mark the first row of the first file by a deletion vector, and return its id."""
    key = "_delta_log/00000000000000000000.json"
    actions = [json.loads(line) for line in objects.get(key).splitlines()]
    add = next(action["add"] for action in actions if "add" in action)
    add["deletionVector"] = inline_vector(0)
    add["stats"] = json.dumps({**json.loads(add["stats"]), "tightBounds": False})
    objects.put(key, "".join(json.dumps(action) + "\n" for action in actions).encode())
    objects.delete("_delta_log/00000000000000000000.crc")
    return read_ids(objects.get(add["path"]))[0]
