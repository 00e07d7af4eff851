"""Select data files of a table by path."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeVar

from .._checks import texts_of

__all__ = ["select_files"]

Row = TypeVar("Row", bound=Mapping[str, Any])


def select_files(files: Collection[Row], paths: Collection[str] | None, table: str) -> list[Row]:
    """Return those of `files`, rows of `Snapshot.files`, that have one of the paths; None selects all.

    Raises ValueError for a path that the table does not have.
    """
    if paths is None:
        return list(files)
    selected = set(texts_of("paths", "files", paths))
    unknown = sorted(selected - {file["path"] for file in files})
    if unknown:
        raise ValueError(f"{table} has no data file {unknown[0]!r}")
    return [file for file in files if file["path"] in selected]
