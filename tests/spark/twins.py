"""Pairs of equal tables: one is changed by one process, the other by tasks of Spark."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from spark.tables import data_files, listed_files
from support.planting import plant_vector
from support.tables import read_actions

import delta_variant as dv
from delta_variant.protocol import properties

CHANGE_FEED = {"delta.enableChangeDataFeed": "true"}

# Metrics that depend on how rows are distributed over files.
METRICS_OF_FILES = {"numAddedFiles", "numAddedBytes", "numAddedChangeFiles"}


@dataclass(frozen=True)
class Feature:
    """The properties of a table; `deleted` has the rows of a file, by its version, that a vector marks."""

    configuration: Mapping[str, str] = field(default_factory=dict)
    partition_by: Sequence[str] = ()
    deleted: Mapping[int, Sequence[int]] = field(default_factory=dict)


FEATURES = {
    "plain": Feature(),
    "partitioned": Feature(CHANGE_FEED, partition_by=["day"]),
    "deletion vectors": Feature(
        {"delta.enableDeletionVectors": "true", **CHANGE_FEED}, deleted={0: (2, 5), 3: (0,)}
    ),
    "change data feed": Feature(CHANGE_FEED),
    "row tracking": Feature({"delta.enableRowTracking": "true"}),
    "mapped by name": Feature({"delta.columnMapping.mode": "name", **CHANGE_FEED}, partition_by=["day"]),
    "mapped by id": Feature({"delta.columnMapping.mode": "id"}),
    "constraints": Feature({"delta.constraints.natural": "id >= 0 and coalesce(event:n::bigint, 1) < 500"}),
}


def make(table: Path, feature: Feature, source: random.Random, files: int = 5, rows: int = 30) -> None:
    """Write a table of random rows, with increasing ids in each file."""
    for number in range(files):
        ids = range(number * rows, (number + 1) * rows)
        data = {
            "id": list(ids),
            "day": [source.choice(["a", "b", None]) for _ in ids],
            "n": [source.choice([None, *range(10)]) for _ in ids],
            "event": pa.array([random_event(source) for _ in ids], pa.json_()),
        }
        dv.write_table(
            table,
            pa.table(data, schema=pa.schema({**dict.fromkeys(("id", "n"), pa.int64()), **TEXTS})),
            mode="append",
            partition_by=feature.partition_by,
            configuration=feature.configuration if number == 0 else None,
        )
    for version, deleted in feature.deleted.items():
        plant_vector(table, version, *deleted)


TEXTS = {"day": pa.string(), "event": pa.json_()}


def random_event(source: random.Random) -> str | None:
    if source.random() < 0.1:
        return None
    return json.dumps({"n": source.randrange(10), "s": source.choice(["x", "y", 1])})


def twins(folder: Path, feature: Feature, source: random.Random) -> tuple[Path, Path]:
    """Return two equal tables."""
    make(folder / "here", feature, source)
    shutil.copytree(folder / "here", folder / "there")
    return folder / "here", folder / "there"


def outcome(change: Callable[[], dv.RewriteResult]) -> Any:
    """Return the counts of a result, or the class of the error and the column: tasks may find another row."""
    try:
        result = change()
    except (dv.DeltaVariantError, ValueError) as error:
        return type(error), getattr(error, "column", None)
    counts = ("rows_deleted", "rows_updated", "rows_inserted", "rows_copied", "files_removed", "repeated")
    return result.version, {name: getattr(result, name) for name in counts}


def content(table: Path) -> dict[str, Any]:
    """Return what the latest version of a table has, apart from how its rows are distributed over files."""
    snapshot = dv.load_snapshot(table)
    columns = ["id", "day", "n", "to_json(event) as event"]
    rows = dv.read_table(table, columns=columns).to_pylist()
    (*_, info) = read_actions(table, "commitInfo")
    metrics = {name: n for name, n in info["operationMetrics"].items() if name not in METRICS_OF_FILES}
    found = {
        "rows": sorted(rows, key=str),
        "operation": (info["operation"], info["operationParameters"], metrics),
        "version": snapshot.version,
        "txns": {name: txn.version for name, txn in snapshot.txns.items()},
        "read": info.get("readVersion"),
    }
    if properties.get(snapshot.properties, properties.ENABLE_CHANGE_DATA_FEED):
        changes = ["_change_type", "_commit_version", *columns]
        feed = dv.read_changes(table, start=snapshot.version, columns=changes).to_table().to_pylist()
        found["changes"] = sorted(feed, key=str)
    return found


def orphans(table: Path) -> set[str]:
    """Return the files of a table that no version and no change feed has."""
    known = {action["path"] for kind in ("add", "cdc") for action in read_actions(table, kind)}
    return {path for path in data_files(table) - listed_files(table) - known if "deletion_vector" not in path}
