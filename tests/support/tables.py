"""Read the commits of a table as Python values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from delta_variant.log.listing import commit_file_name

Action = dict[str, Any]
"""An action of a commit as the log stores it: `{"add": {"path": …}}`."""


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


def _read_json_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
