"""The commands `audit`, `repair-statistics`, `repair-files` and `repair-log`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from json import loads
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import rich.text
import typer
from rich.console import Console
from rich.style import Style

from ..._text import count, size_text
from ...errors import printable
from ...operations.audit import Audit, AuditedFile, audit_table
from ...operations.audit.findings import SEVERITIES, Finding, RuleSummary, Severity, listening, summarize
from ...operations.log_maintenance import plan_log_repair, run_log_repair
from ...operations.repair import FileRepair, RepairResult, plan_file_repair, run_file_repair
from ...operations.repair import repair_statistics as repair_statistics_of
from ...reports.audit import NOUNS, audit_junit, audit_page, audit_sarif, rule_url, rules, scope_of
from ..confirmation import confirm
from ..interrupts import all_or_nothing
from ..options import DryRun, Json, Page, Table, Text, Texts, Version, Yes, handle, option
from ..output import (
    FINDINGS,
    console,
    print_hint,
    print_json,
    print_lines,
    showing_progress,
    wrapped,
    write_page,
)
from ..report import Report, facts, render

FailOn: TypeAlias = Literal["error", "warning", "info", "never"]


def audit(
    table: Table,
    data: Annotated[bool, option("Check every row, too.", names="--data")] = False,
    file: Annotated[Texts, option("Check only this data file; repeatable.", "FILE")] = None,
    since: Annotated[
        Text,
        option(
            "Do not check the data files of a former audit: its version, or the output of its --json, whose "
            "findings are reported again.",
            "N|FILE",
        ),
    ] = None,
    sample: Annotated[
        int | None, option("Check N random data files, and say what they mean for all.", "N", min=1)
    ] = None,
    version: Version = None,
    html: Page = None,
    sarif: Annotated[Text, option("Write the findings in SARIF.", "FILE")] = None,
    junit: Annotated[Text, option("Write a test case for each rule as JUnit XML.", "FILE")] = None,
    severity: Annotated[Severity, option("Print only findings of at least this severity.")] = "info",
    rule: Annotated[Texts, option("Print only findings of this rule; repeatable.", "ID")] = None,
    ignore: Annotated[Texts, option("Leave out the findings of this rule; repeatable.", "ID")] = None,
    baseline: Annotated[
        Text, option("Leave out the findings in the output of --json of an audit before.", "FILE")
    ] = None,
    fail_on: Annotated[
        FailOn, option("The least severity of a finding for exit status 1.", names="--fail-on")
    ] = "warning",
    limit: Annotated[int | None, option("Maximum number of lines of findings.", "N", min=1)] = None,
    list_all: Annotated[
        bool, option("Print every finding by file instead of a line per rule.", names="--all")
    ] = False,
    jsonl: Annotated[
        bool, option("Print each finding as a line of JSON as soon as it is found.", names="--jsonl")
    ] = False,
    json: Json = False,
) -> None:
    """Check the log, protocol, schema, files and statistics of a table.

    Prints a line per violated rule, errors first. Exit status 1 means that a finding is an error or a
    warning, or what --fail-on says, whatever is printed.
    """
    if json and jsonl:
        raise typer.BadParameter("pass at most one of --json and --jsonl")
    selection = Selection(severity, _known(rule or ()), _known(ignore or ()), _read_places(baseline))
    former = _former(since)
    with showing_progress(), listening(partial(_print_finding_json, selection)) if jsonl else nullcontext():
        found = audit_table(
            handle(table), data=data, files=file, since=former, sample=sample, version=version
        )
    kept = selection.keep(found.findings)
    if len(kept) < len(found.findings):
        print_hint(
            f"{count(len(found.findings) - len(kept), 'finding')} left out: ignored, or in the baseline"
        )
    found = replace(found, findings=tuple(kept))
    writers: list[tuple[str | None, Callable[[Audit], str]]] = [
        (html, audit_page),
        (sarif, audit_sarif),
        (junit, audit_junit),
    ]
    for path, text in writers:
        if path is not None:
            write_page(path, text(found))
    if json:
        print_findings_json(found, selection)
    elif not jsonl:
        (_print_findings if list_all else print_summary)(found, selection, limit)
    failing = SEVERITIES[: SEVERITIES.index(fail_on) + 1] if fail_on != "never" else ()
    if any(found.count(each) for each in failing):
        raise typer.Exit(FINDINGS)


def _former(since: str | None) -> int | Audit | None:
    """Return the version of a former audit, or the audit in a file."""
    if since is None:
        return None
    return int(since) if since.isdecimal() else _read_audit(since)


def _known(names: Sequence[str]) -> frozenset[str]:
    """Return rule ids in upper case. Raise BadParameter for an id that the catalogue does not have."""
    known = rules()
    for name in names:
        if name.upper() not in known:
            raise typer.BadParameter(f"unknown rule {name!r}: expected one of {', '.join(known)}")
    return frozenset(name.upper() for name in names)


def repair_statistics(
    table: Table,
    file: Annotated[Texts, option("Repair only this data file; repeatable.", "FILE")] = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Recompute wrong, missing and one-sided statistics from the data.

    Data files are not changed. Exit status 1 means that some statistics still need repair.
    """
    with all_or_nothing(), showing_progress():
        result = repair_statistics_of(handle(table), dry_run=dry_run, files=file)
    render(_report(result), json=json)
    if result.unrepairable or (result.repairable and dry_run):
        raise typer.Exit(FINDINGS)


def repair_files(table: Table, yes: Yes = False, dry_run: DryRun = False, json: Json = False) -> None:
    """Remove the entries of data files that are lost, so that the others can be read.

    The rows of these files are lost, too: restore the files from a backup if there is one.
    """
    make = partial(plan_file_repair, handle(table))
    plan = confirm("repair-files", table, make, yes=yes, dry_run=dry_run, json=json)
    with all_or_nothing(), showing_progress():
        result = run_file_repair(plan)
    version = "" if result.version is None else f"version {result.version}, "
    done = f"{table}: {version}{count(len(result.files), 'lost file')} removed"
    render(Report({"table": table, **facts(result, "version files rows")}, [done]), json=json)


def repair_log(table: Table, yes: Yes = False, dry_run: DryRun = False, json: Json = False) -> None:
    """Move checkpoints and checksums that contradict the commits out of the log.

    They are kept in _log_set_aside, and a new checkpoint takes the place of a wrong one.
    """
    make = partial(plan_log_repair, handle(table))
    plan = confirm("repair-log", table, make, yes=yes, dry_run=dry_run, json=json)
    with all_or_nothing(), showing_progress():
        result = run_log_repair(plan)
    done = f"{table}: {count(len(result.files), 'file')} moved to {result.folder}"
    lines = [done if result.files else f"{table}: no file of the log contradicts its commits"]
    if result.version is not None:
        lines.append(f"{table}: version {result.version}, rowIdHighWaterMark is {result.row_id_mark:,}")
    answer = facts(result, "files folder checkpoint row_id_mark version")
    render(Report({"table": table, **answer}, lines), json=json)


MAX_SHOWN_FILES = 10
MAX_REASONS = 6


def _report(repair: RepairResult) -> Report:
    json = {
        **facts(repair, "uri version read_version num_files"),
        "files": [facts(file, "path reasons stats_before stats") for file in repair.files],
    }
    more = len(repair.files[MAX_SHOWN_FILES:])
    hint = f"and {count(more, 'more file')}: --json lists all" if more else None
    return Report(json, _lines(repair), hint=hint)


def _lines(repair: RepairResult) -> Iterator[str]:
    for file in repair.files[:MAX_SHOWN_FILES]:
        yield f"{file.path} {'has wrong statistics' if file.stats is not None else 'cannot be repaired'}"
        yield from _reasons(file)
    if repair.files:
        yield ""
    of_files = f"{len(repair.repairable):,} of {count(repair.num_files, 'file')}"
    if repair.version is not None:
        yield f"{repair.uri}: version {repair.version} repairs the statistics of {of_files}"
    elif repair.repairable:
        yield f"{repair.uri}: nothing was committed; {of_files} would be repaired"
    else:
        yield f"{repair.uri}: nothing to repair in {count(repair.num_files, 'file')}"


def _reasons(file: FileRepair) -> Iterator[str]:
    yield from (f"  {reason}" for reason in file.reasons[:MAX_REASONS])
    if (more := len(file.reasons) - MAX_REASONS) > 0:
        yield f"  and {count(more, 'reason')} more"


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


def _print_findings(audit: Audit, selection: Selection, limit: int | None = None) -> None:
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
    line = rich.text.Text(f"  {NOUNS[severity]:<7}  ", style=STYLES[severity])
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


def _print_finding_json(selection: Selection, finding: Finding) -> None:
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


def _read_places(path: str | None) -> frozenset[Place]:
    """Return the places of the findings in a file with the output of `print_findings_json`, none without one.

    Raises BadParameter for another file.
    """
    if path is None:
        return frozenset()
    try:
        found = loads(Path(path).read_text("utf-8"))["findings"]
        return frozenset(tuple(each.get(name) for name in PLACE) for each in found)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise typer.BadParameter(f"expected the output of `audit --json` in {path}: {error}") from error


def _read_audit(path: str) -> Audit:
    """Return the audit in the output of `print_findings_json`. Raise BadParameter for another file."""
    try:
        found = loads(Path(path).read_text("utf-8"))
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
