"""Print the result or the plan of a repair as text or JSON."""

from __future__ import annotations

from .._text import count
from ..operations.statistics_repair import FileRepair, RepairResult
from .terminal import console, print_hint, print_json, print_lines

__all__ = ["print_repair", "print_repair_json"]

MAX_SHOWN_FILES = 10
MAX_REASONS = 6


def print_repair(repair: RepairResult) -> None:
    """Print the files with wrong statistics, the reasons, and what was committed."""
    out = console()
    for file in repair.files[:MAX_SHOWN_FILES]:
        verb = "has wrong statistics" if file.stats is not None else "cannot be repaired"
        print_lines(out, f"{file.path} {verb}", *_reasons(file))
    if more := len(repair.files[MAX_SHOWN_FILES:]):
        print_hint(f"and {count(more, 'more file')}: --json lists all")
    print_lines(out, *([""] if repair.files else []), _outcome(repair))


def _reasons(file: FileRepair) -> list[str]:
    shown = [f"  {reason}" for reason in file.reasons[:MAX_REASONS]]
    more = len(file.reasons) - MAX_REASONS
    return [*shown, f"  and {count(more, 'reason')} more"] if more > 0 else shown


def _outcome(repair: RepairResult) -> str:
    of_files = f"{len(repair.repairable):,} of {count(repair.num_files, 'file')}"
    if repair.version is not None:
        return f"{repair.uri}: version {repair.version} repairs the statistics of {of_files}"
    if repair.repairable:
        return f"{repair.uri}: nothing was committed; {of_files} would be repaired"
    return f"{repair.uri}: nothing to repair in {count(repair.num_files, 'file')}"


def print_repair_json(repair: RepairResult) -> None:
    """Print one JSON object."""
    report = {
        "uri": repair.uri,
        "version": repair.version,
        "read_version": repair.read_version,
        "num_files": repair.num_files,
        "files": [
            {
                "path": file.path,
                "reasons": file.reasons,
                "stats_before": file.stats_before,
                "stats": file.stats,
            }
            for file in repair.files
        ],
    }
    print_json(report)
