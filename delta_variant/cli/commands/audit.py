"""The commands `audit`, `repair-statistics`, `repair-files` and `repair-log`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Annotated, Literal, TypeAlias

import typer

from ..._text import count
from ...operations.audit import Audit, audit_table
from ...operations.audit.findings import SEVERITIES, Severity, listening
from ...operations.file_repair import plan_file_repair, run_file_repair
from ...operations.log_repair import plan_log_repair, run_log_repair
from ...operations.statistics_repair import FileRepair, RepairResult
from ...operations.statistics_repair import repair_statistics as repair_statistics_of
from ...reports.audit_formats import audit_junit, audit_sarif
from ...reports.audit_page import audit_page
from ...reports.rule_texts import rules
from ..audit_report import (
    Selection,
    print_finding_json,
    print_findings,
    print_findings_json,
    print_summary,
    read_audit,
    read_places,
)
from ..confirmation import confirm
from ..interrupts import all_or_nothing
from ..options import DryRun, Json, Page, Table, Text, Texts, Version, Yes, handle, option
from ..output import FINDINGS, write_page
from ..progress import showing_progress
from ..report import Report, facts, render
from ..terminal import print_hint

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
    selection = Selection(severity, _known(rule or ()), _known(ignore or ()), read_places(baseline))
    former = _former(since)
    with showing_progress(), listening(partial(print_finding_json, selection)) if jsonl else nullcontext():
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
        (print_findings if list_all else print_summary)(found, selection, limit)
    failing = SEVERITIES[: SEVERITIES.index(fail_on) + 1] if fail_on != "never" else ()
    if any(found.count(each) for each in failing):
        raise typer.Exit(FINDINGS)


def _former(since: str | None) -> int | Audit | None:
    """Return the version of a former audit, or the audit in a file."""
    if since is None:
        return None
    return int(since) if since.isdecimal() else read_audit(since)


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
