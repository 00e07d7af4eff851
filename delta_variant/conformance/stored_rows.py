"""Read the rows of a Delta table as stored: its log and its columns, without the code of an engine."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq

from . import shredded_columns

__all__ = ["read_stored"]


def read_stored(table: Path, column: str) -> list[Mapping[str, Any]]:
    """Return `schema` and `rows` of each file: `id`, and the columns of the Variant, as `shredded_columns`.

    The log has only commits in JSON, as that of a case after one more commit.
    """
    return [_file(table / unquote(path), column) for path in sorted(_live_files(table))]


def _live_files(table: Path) -> set[str]:
    live: set[str] = set()
    for action in _actions(table):
        if "add" in action:
            live.add(action["add"]["path"])
        elif "remove" in action:
            live.discard(action["remove"]["path"])
    return live


def _actions(table: Path) -> Iterator[Mapping[str, Any]]:
    for commit in sorted((table / "_delta_log").glob("*[0-9].json")):
        # The adds of a commit follow its removes here, because one commit may replace a file by itself.
        actions = [json.loads(line) for line in commit.read_text(encoding="utf-8").splitlines() if line]
        yield from sorted(actions, key=lambda action: "add" in action)


def _file(path: Path, column: str) -> Mapping[str, Any]:
    pairs = shredded_columns.read(path, column)
    ids = pq.read_table(path, columns=["id"]).column("id").to_pylist()
    rows = [{"id": number, "pair": pair} for number, pair in zip(ids, pairs, strict=True)]
    return {"schema": shredded_columns.schema_of(path, column), "rows": rows}
