"""Print the findings of an audit as text or JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

import typer
from rich.console import Console
from rich.style import Style
from rich.text import Text

from .._text import count, size_text
from ..errors import printable
from ..operations.audit import Audit, AuditedFile
from ..operations.audit.findings import SEVERITIES, Finding, RuleSummary, Severity, summarize
from ..reports.audit_page import NOUNS, scope_of
from ..reports.rule_texts import rule_url
from .report import facts
from .terminal import console, print_hint, print_json, print_lines, wrapped

STYLES = {"error": "bold red", "warning": "yellow", "info": "dim"}

LINKING_PROGRAMS = ("iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "rio")
LINKING_TERMINALS = ("xterm-kitty", "alacritty", "foot", "foot-extra", "xterm-ghostty", "wezterm")
FIRST_LINKING_VTE = 5000
"""Terminals that support hyperlinks. Other terminals can print the address instead of hiding it."""


Place: TypeAlias = tuple[str | int | None, ...]
"""The rule of a finding, and where it is."""

PLACE = ("rule", "version", "file_path", "column", "path_key", "row")
FACTS = ("rule", "severity", "sentence", *PLACE[1:])
"""The facts of a finding in JSON."""


@dataclass(frozen=True)
class Selection:
    """The findings to print: of at least this severity, and of these rules; all rules if empty.

    Findings of ignored rules and at known places are left out of the audit.
    """

    severity: Severity = "info"
    rules: Collection[str] = ()
    ignored: Collection[str] = ()
    known: Collection[Place] = ()

    def keep(self, findings: Sequence[Finding]) -> list[Finding]:
        """Return the findings that are neither ignored nor known."""
        return [
            each for each in findings if each.rule not in self.ignored and _place_of(each) not in self.known
        ]

    def of(self, findings: Sequence[Finding]) -> list[Finding]:
        least = SEVERITIES.index(self.severity)
        return [
            each
            for each in findings
            if SEVERITIES.index(each.severity) <= least and (not self.rules or each.rule in self.rules)
        ]


def print_summary(audit: Audit, selection: Selection, limit: int | None = None) -> None:
    """Print the scope of the audit and a line for each rule that is violated, errors first."""
    out = console()
    print_lines(out, scope_of(audit))
    found = selection.of(audit.findings)
    summaries = summarize(found)
    for each in summaries[:limit]:
        _print_finding(out, each.severity, each.rule, f"{_occurrences(each)}{each.example.sentence}")
    _print_rest(out, len(summaries), limit, "rule")
    print_lines(out, *_conclusion(audit, found))
    if len(found) > len(summaries):
        print_hint("--all lists every finding")


def _occurrences(summary: RuleSummary) -> str:
    """Return how often and where a rule is violated, as the beginning of a sentence."""
    example = summary.example.file_path
    if summary.count == 1:
        return f"{example}: " if example is not None else ""
    where = f" in {count(summary.files, 'file')}" if summary.files else ""
    such_as = f", such as {example}" if example is not None else ""
    return f"{count(summary.count, 'finding')}{where}{such_as}: "


def print_findings(audit: Audit, selection: Selection, limit: int | None = None) -> None:
    """Print the scope of the audit, the findings of the table, then the findings of each file."""
    out = console()
    print_lines(out, scope_of(audit))
    sizes = {file.path: file for file in audit.files}
    found = selection.of(audit.findings)
    for path, findings in _by_file(found[:limit]).items():
        file = sizes.get(path or "")
        rows = "" if file is None or file.rows is None else f", {count(file.rows, 'row')}"
        heading = "the table" if path is None else path
        print_lines(out, "", heading if file is None else f"{heading} ({size_text(file.bytes)}{rows})")
        for finding in findings:
            _print_finding(out, finding.severity, finding.rule, finding.sentence)
    _print_rest(out, len(found), limit, "finding")
    print_lines(out, *([""] if found else []), *_conclusion(audit, found))


def _print_finding(out: Console, severity: Severity, rule: str, sentence: str) -> None:
    """Print one line. The rule is a link to the catalogue on terminals that support links."""
    line = Text(f"  {NOUNS[severity]:<7}  ", style=STYLES[severity])
    url = rule_url(rule) if supports_links(out) else None
    line.append(rule, style=Style(bold=True, link=url))
    line.append(" " * max(7 - len(rule), 2))
    line.append(wrapped(out, printable(sentence), indent=len(line)), style="not bold")
    out.print(line, soft_wrap=True)


def supports_links(out: Console) -> bool:
    """Return whether the output is a terminal that is known to support hyperlinks (OSC 8)."""
    if not out.is_terminal or out.is_dumb_terminal:
        return False
    vte = os.environ.get("VTE_VERSION", "")
    return (
        os.environ.get("TERM_PROGRAM") in LINKING_PROGRAMS
        or os.environ.get("TERM") in LINKING_TERMINALS
        or "WT_SESSION" in os.environ
        or (vte.isdecimal() and int(vte) >= FIRST_LINKING_VTE)
    )


def _print_rest(out: Console, number: int, limit: int | None, noun: str) -> None:
    if limit is not None and number > limit:
        print_lines(out, f"  and {count(number - limit, f'more {noun}')}")


def _conclusion(audit: Audit, found: Sequence[Finding]) -> Iterator[str]:
    yield _verdict(audit)
    if len(found) < len(audit.findings):
        yield f"{count(len(found), 'finding')} of {len(audit.findings):,} selected"


def _verdict(audit: Audit) -> str:
    """Return the number of findings by severity, or `nothing found`."""
    counts = [count(audit.count(each), NOUNS[each]) for each in SEVERITIES if audit.count(each)]
    return ", ".join(counts) if counts else "nothing found"


def _by_file(findings: Sequence[Finding]) -> Mapping[str | None, list[Finding]]:
    """Group findings by data file, the most severe first. None, the first group, is the table itself."""
    groups: dict[str | None, list[Finding]] = {}
    for finding in sorted(findings, key=lambda each: each.file_path is not None):
        groups.setdefault(finding.file_path, []).append(finding)
    ranks = {severity: rank for rank, severity in enumerate(SEVERITIES)}
    return {path: sorted(group, key=lambda each: ranks[each.severity]) for path, group in groups.items()}


def print_findings_json(audit: Audit, selection: Selection) -> None:
    """Print one JSON object with the counts of the audit, and the selected findings and their summary."""
    found = selection.of(audit.findings)
    report = {
        **facts(audit, "uri version data"),
        **({} if audit.sample is None else {"sample": asdict(audit.sample)}),
        "clean": audit.is_clean,
        "counts": {severity: audit.count(severity) for severity in SEVERITIES},
        "files": [asdict(file) for file in audit.files],
        "summary": [_summary(each) for each in summarize(found)],
        "findings": [dict(_present(finding)) for finding in found],
    }
    print_json(report)


def print_finding_json(selection: Selection, finding: Finding) -> None:
    """Print a finding as a line of JSON at once, if it is selected."""
    if selection.of(selection.keep([finding])):
        print_json(dict(_present(finding)))
        sys.stdout.flush()


def _summary(summary: RuleSummary) -> dict[str, Any]:
    names = "rule severity count files remedy"
    return {**facts(summary, names), "example": dict(_present(summary.example))}


def _place_of(finding: Finding) -> Place:
    """Return the rule of a finding, and where it is."""
    return tuple(getattr(finding, name) for name in PLACE)


def read_places(path: str | None) -> frozenset[Place]:
    """Return the places of the findings in a file with the output of `print_findings_json`, none without one.

    Raises BadParameter for another file.
    """
    if path is None:
        return frozenset()
    try:
        found = json.loads(Path(path).read_text("utf-8"))["findings"]
        return frozenset(tuple(each.get(name) for name in PLACE) for each in found)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise typer.BadParameter(f"expected the output of `audit --json` in {path}: {error}") from error


def read_audit(path: str) -> Audit:
    """Return the audit in the output of `print_findings_json`. Raise BadParameter for another file."""
    try:
        found = json.loads(Path(path).read_text("utf-8"))
        remedies = {(each["rule"], each["remedy"]) for each in found["summary"]}
        return Audit(
            found["uri"],
            found["version"],
            found["data"],
            tuple(AuditedFile(**each) for each in found["files"]),
            tuple(_finding(each, remedies) for each in found["findings"]),
            None,
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError, StopIteration) as error:
        message = f"expected a version, or the output of `audit --json`, in {path}: {error}"
        raise typer.BadParameter(message) from error


def _finding(given: Mapping[str, Any], remedies: Collection[tuple[str, str]]) -> Finding:
    """Return a finding with the message and the remedy of its sentence."""
    places = {name: value for name, value in given.items() if name != "sentence"}
    endings = ((f": {remedy}", remedy) for rule, remedy in remedies if rule == given["rule"])
    ending, remedy = next(each for each in endings if given["sentence"].endswith(each[0]))
    return Finding(message=given["sentence"].removesuffix(ending), remedy=remedy, **places)


def _present(finding: Finding) -> Iterator[tuple[str, Any]]:
    yield from ((name, value) for name in FACTS if (value := getattr(finding, name)) is not None)
