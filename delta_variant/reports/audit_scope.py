"""The scope of an audit as one sentence, and the nouns of its severities."""

from __future__ import annotations

from .._text import count
from ..operations.audit import Audit

__all__ = ["NOUNS", "scope_of"]

NOUNS = {"error": "error", "warning": "warning", "info": "note"}


def scope_of(audit: Audit) -> str:
    """Return the scope of an audit: the version, and how many files and rows it covers."""
    rows = sum(file.rows or 0 for file in audit.files)
    what = "log, files and every row" if audit.data else "log and files; --data checks every row"
    counts = f"{count(len(audit.files), 'file')}, {count(rows, 'row')}"
    if residual := [file.rows or 0 for file in audit.files if file.is_residual]:
        own = count(len(residual), "file")
        counts = f"{counts}, {count(sum(residual), 'residual row')} separated into {own}"
    return f"{audit.uri}: version {audit.version}, {counts} ({what})"
