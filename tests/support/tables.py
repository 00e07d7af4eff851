"""Append rows to a table, and read its commits, rows and file names as Python values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

import delta_variant as dv
from delta_variant.log.checksum import checksum_discrepancies, checksum_path
from delta_variant.log.file_tables import add_actions
from delta_variant.log.listing import commit_file_name
from delta_variant.log.replay import ReplayedState
from delta_variant.storage import store as storage
from delta_variant.storage.store import TableLocation

Action = dict[str, Any]
"""An action of a commit as the log stores it: `{"add": {"path": …}}`."""


def append_events(
    table: TableLocation,
    texts: Sequence[str | None],
    first: int = 0,
    columns: Mapping[str, Any] | None = None,
    **options: Any,
) -> None:
    """Append JSON texts as the Variant column `event`, with `id` counted from `first` and more `columns`."""
    ids = list(range(first, first + len(texts)))
    rows = pa.table({"id": ids, "event": pa.array(texts, pa.string()), **(columns or {})})
    dv.write_table(table, rows, mode="append", variant_columns=["event"], **options)


def commit_path(table: str | Path, version: int) -> Path:
    """Return the path of the commit file of a version."""
    return Path(table) / commit_file_name(version)


def read_commit(table: str | Path, version: int) -> list[Action]:
    """Return the actions of one commit, in their order."""
    return _read_json_lines(commit_path(table, version))


def read_log(table: str | Path) -> list[list[Action]]:
    """Return the actions of each commit in the log, oldest commit first."""
    return [_read_json_lines(path) for path in sorted((Path(table) / "_delta_log").glob("*.json"))]


def read_actions(table: str | Path, kind: str, version: int | None = None) -> list[dict[str, Any]]:
    """Return the fields of the actions of a kind, such as `"add"`, in one commit or by default in all."""
    commits = read_log(table) if version is None else [read_commit(table, version)]
    return [action[kind] for commit in commits for action in commit if kind in action]


def read_rows(table: str | Path, *columns: str) -> list[dict[str, Any]]:
    """Return the rows of a table sorted by their text; by default with all columns."""
    rows = dv.read_table(table, columns=list(columns) or None).to_table().to_pylist()
    return sorted(rows, key=str)


def read_ids(table: str | Path, where: str | None = None, **options: Any) -> list[int]:
    """Return the sorted values of the column `id`."""
    read = dv.read_table(table, columns=["id"], where=where, **options).to_table()
    return sorted(read["id"].to_pylist())


def read_by_id(table: str | Path, expression: str = "to_json(event)") -> dict[int, Any]:
    """Return the value of an expression for each `id`, in the order of the ids, which must be unique."""
    read = dv.read_table(table, columns={"id": "id", "value": expression}).to_table()
    rows = read.sort_by("id").to_pylist()
    assert len({row["id"] for row in rows}) == len(rows), "an id occurs twice"
    return {row["id"]: row["value"] for row in rows}


def list_files(folder: str | Path, pattern: str = "*") -> set[str]:
    """Return the paths of all files in a folder whose names match a pattern, relative to the folder."""
    root = Path(folder)
    return {path.relative_to(root).as_posix() for path in root.rglob(pattern) if path.is_file()}


def _read_json_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def state_discrepancies(snapshot: dv.Snapshot) -> list[str]:
    """Return how the checksum file of a snapshot's version differs from the snapshot."""
    data = storage.read_if_present(snapshot.store, checksum_path(snapshot.version))
    if data is None:
        return []
    state = ReplayedState(snapshot.store)
    table_actions = [*snapshot.txns.values(), *snapshot.domain_metadata.values()]
    state.apply(snapshot.version, [snapshot.protocol, snapshot.metadata, *table_actions])
    state.apply(snapshot.version, add_actions(snapshot.files))
    state.timestamp = snapshot.timestamp
    return checksum_discrepancies(data, state)
