"""What an audit found, for people at a terminal and for scripts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.text import Text

from ..operations.audit import Audit
from ..operations.audit.findings import SEVERITIES, Finding
from .terminal import console, count, print_json, print_lines, printable, size_text

__all__ = ["NOUNS", "by_place", "looked_at", "print_findings", "print_findings_json", "verdict"]

STYLES = {"error": "bold red", "warning": "yellow", "info": "dim"}
NOUNS = {"error": "error", "warning": "warning", "info": "note"}


def print_findings(audit: Audit) -> None:
    """Print what was looked at, the findings of the table, and those of each file."""
    out = console()
    print_lines(out, looked_at(audit))
    sizes = {file.path: file for file in audit.files}
    for place, findings in by_place(audit.findings).items():
        file = sizes.get(place or "")
        rows = "" if file is None or file.rows is None else f", {count(file.rows, 'row')}"
        heading = "the table" if place is None else place
        print_lines(out, "", heading if file is None else f"{heading} ({size_text(file.bytes)}{rows})")
        for finding in findings:
            line = Text(f"  {finding.severity:<7}  ", style=STYLES[finding.severity])
            line.append(f"{finding.rule:<5}  ", style="bold")
            line.append(printable(finding.sentence), style="")
            out.print(line, soft_wrap=True)
    print_lines(out, *([""] if audit.findings else []), verdict(audit))


def looked_at(audit: Audit) -> str:
    """Return a sentence on what was looked at."""
    rows = sum(file.rows or 0 for file in audit.files)
    what = "log, files and every row" if audit.data else "log and files; --data looks at every row"
    counts = f"{count(len(audit.files), 'file')}, {count(rows, 'row')}"
    return f"{audit.uri}: version {audit.version}, {counts} ({what})"


def verdict(audit: Audit) -> str:
    """Return a phrase on what was found."""
    counts = [count(audit.count(each), NOUNS[each]) for each in SEVERITIES if audit.count(each)]
    return ", ".join(counts) if counts else "nothing found"


def by_place(findings: Sequence[Finding]) -> Mapping[str | None, list[Finding]]:
    """Return findings by data file, those of the table first under None, the gravest of each first."""
    places: dict[str | None, list[Finding]] = {}
    for finding in sorted(findings, key=lambda each: each.file_path is not None):
        places.setdefault(finding.file_path, []).append(finding)
    return {place: sorted(found, key=_weight) for place, found in places.items()}


def _weight(finding: Finding) -> int:
    return SEVERITIES.index(finding.severity)


def print_findings_json(audit: Audit) -> None:
    """Print one JSON object."""
    report = {
        "uri": audit.uri,
        "version": audit.version,
        "data": audit.data,
        "clean": audit.is_clean,
        "counts": {severity: audit.count(severity) for severity in SEVERITIES},
        "files": [{"path": file.path, "rows": file.rows, "bytes": file.bytes} for file in audit.files],
        "findings": [dict(_present(finding)) for finding in audit.findings],
    }
    print_json(report)


def _present(finding: Finding) -> Iterator[tuple[str, Any]]:
    for name in ("rule", "severity", "sentence", "version", "file_path", "column", "path_key", "row"):
        value = getattr(finding, name)
        if value is not None:
            yield name, value
