"""Print the findings of an audit as text or JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.text import Text

from ..operations.audit import Audit
from ..operations.audit.findings import SEVERITIES, Finding
from .terminal import console, count, print_json, print_lines, printable, size_text

__all__ = ["NOUNS", "by_file", "print_findings", "print_findings_json", "scope_of", "verdict"]

STYLES = {"error": "bold red", "warning": "yellow", "info": "dim"}
NOUNS = {"error": "error", "warning": "warning", "info": "note"}


def print_findings(audit: Audit) -> None:
    """Print the scope of the audit, the findings of the table, then those of each file."""
    out = console()
    print_lines(out, scope_of(audit))
    sizes = {file.path: file for file in audit.files}
    for path, findings in by_file(audit.findings).items():
        file = sizes.get(path or "")
        rows = "" if file is None or file.rows is None else f", {count(file.rows, 'row')}"
        heading = "the table" if path is None else path
        print_lines(out, "", heading if file is None else f"{heading} ({size_text(file.bytes)}{rows})")
        for finding in findings:
            line = Text(f"  {finding.severity:<7}  ", style=STYLES[finding.severity])
            line.append(f"{finding.rule:<5}  ", style="bold")
            line.append(printable(finding.sentence), style="")
            out.print(line, soft_wrap=True)
    print_lines(out, *([""] if audit.findings else []), verdict(audit))


def scope_of(audit: Audit) -> str:
    """Return the scope of an audit: the version, and how many files and rows it covers."""
    rows = sum(file.rows or 0 for file in audit.files)
    what = "log, files and every row" if audit.data else "log and files; --data checks every row"
    counts = f"{count(len(audit.files), 'file')}, {count(rows, 'row')}"
    return f"{audit.uri}: version {audit.version}, {counts} ({what})"


def verdict(audit: Audit) -> str:
    """Return the number of findings by severity, or `nothing found`."""
    counts = [count(audit.count(each), NOUNS[each]) for each in SEVERITIES if audit.count(each)]
    return ", ".join(counts) if counts else "nothing found"


def by_file(findings: Sequence[Finding]) -> Mapping[str | None, list[Finding]]:
    """Group findings by data file, those of the table first under None, the most severe of each first."""
    groups: dict[str | None, list[Finding]] = {}
    for finding in sorted(findings, key=lambda each: each.file_path is not None):
        groups.setdefault(finding.file_path, []).append(finding)
    return {path: sorted(group, key=_severity) for path, group in groups.items()}


def _severity(finding: Finding) -> int:
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
