"""The rows of a table that an engine changed, as stored: live rows, their ids, and changes of commits.

The log has only commits in JSON, as that of a case after more commits.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote

import pyarrow.parquet as pq

from . import shredded_columns
from .deletion_vectors import deleted_rows

Action: TypeAlias = Mapping[str, Any]
Rows: TypeAlias = Mapping[str, Any]
"""`schema`, the shredding of a file, and `rows`: `id`, `pair`, the columns of the Variant, and more."""

MATERIALIZED = "delta.rowTracking.materializedRowIdColumnName"


@dataclass
class _Log:
    """The live files of a table by path, and the name of its column with materialized row ids."""

    files: dict[str, Action] = field(default_factory=dict)
    id_column: str | None = None

    def apply(self, actions: Sequence[Action]) -> None:
        for action in actions:
            if "remove" in action:
                self.files.pop(action["remove"]["path"], None)
            elif "metaData" in action:
                self.id_column = action["metaData"]["configuration"].get(MATERIALIZED)
        # One commit may replace a file by itself, with another deletion vector.
        self.files |= {action["add"]["path"]: action["add"] for action in actions if "add" in action}


def _commits(table: Path) -> list[Path]:
    return sorted((table / "_delta_log").glob("*[0-9].json"))


def _actions(commit: Path) -> list[Action]:
    return [json.loads(line) for line in commit.read_text(encoding="utf-8").splitlines() if line]


def read_stored(table: Path, column: str) -> list[Rows]:
    """Return the live rows of each file, with `row_id`, None without row tracking."""
    log = _Log()
    for commit in _commits(table):
        log.apply(_actions(commit))
    return [_live_rows(table, log.files[path], column, log.id_column) for path in sorted(log.files)]


def _live_rows(table: Path, add: Action, column: str, id_column: str | None) -> Rows:
    """Return the rows of a file that its deletion vector leaves, with the `position` of each."""
    path = table / unquote(add["path"])
    pairs = shredded_columns.read(path, column)
    names = {"id", id_column or ""} & set(pq.read_schema(path).names)
    columns = pq.read_table(path, columns=sorted(names)).to_pydict()
    stored = columns.get(id_column or "", [None] * len(pairs))
    first = add.get("baseRowId")
    deleted = deleted_rows(table, add.get("deletionVector"))
    rows = []
    for position, (number, pair) in enumerate(zip(columns["id"], pairs, strict=True)):
        if position not in deleted:
            row_id = stored[position]
            if row_id is None and first is not None:
                row_id = first + position
            rows.append({"id": number, "pair": pair, "row_id": row_id, "position": position})
    return {"schema": shredded_columns.schema_of(path, column), "rows": rows}


def read_changes(table: Path, before: Path, column: str) -> list[Rows]:
    """Return the rows that the commits after those of a table before changed, with `_change_type`.

    A commit without change files deletes the rows of the files that it removes, and inserts those of others.
    """
    log = _Log()
    changes: list[Rows] = []
    known = {commit.name for commit in _commits(before)}
    for commit in _commits(table):
        actions, old = _actions(commit), dict(log.files)
        log.apply(actions)
        if commit.name not in known:
            files = [table / unquote(each["cdc"]["path"]) for each in actions if "cdc" in each]
            changes += (_change_file(file, column) for file in files)
            if not files and any(each.get("remove", {}).get("dataChange") for each in actions):
                changes += _derived(table, old, log.files, column)
    return changes


def _change_file(file: Path, column: str) -> Rows:
    pairs = shredded_columns.read(file, column)
    columns = pq.read_table(file, columns=["id", "_change_type"]).to_pydict()
    rows = [
        {"id": number, "pair": pair, "_change_type": kind}
        for number, kind, pair in zip(columns["id"], columns["_change_type"], pairs, strict=True)
    ]
    return {"schema": shredded_columns.schema_of(file, column), "rows": rows}


def _derived(
    table: Path, old: Mapping[str, Action], new: Mapping[str, Action], column: str
) -> Iterator[Rows]:
    for kind, files, others in (("delete", old, new), ("insert", new, old)):
        for path in sorted(files):
            if files[path] != others.get(path):
                found = _live_rows(table, files[path], column, None)
                kept = _live_rows(table, others[path], column, None)["rows"] if path in others else ()
                positions = {row["position"] for row in kept}
                rows = [row for row in found["rows"] if row["position"] not in positions]
                yield {**found, "rows": [{**row, "_change_type": kind} for row in rows]}
