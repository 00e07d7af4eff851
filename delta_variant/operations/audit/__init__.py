"""Audit a table: check its log, protocol, schema, data files, statistics and rows against the rules.

docs/audit-rules.md lists the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, fields, replace
from functools import partial
from math import exp, lgamma
from random import Random
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa

from ..._checks import to_integer
from ..._html import html_table
from ..._progress import advance, begin
from ..._threads import Threads
from ...errors import printable
from ...execution import ROUNDS, Executor, NameFile, executor_of
from ...log.load import load_snapshot, open_to_read, version_to_read
from ...log.snapshot import Snapshot, TableVersion, strip_files
from ...log.timestamps import version_at
from ...protocol.actions import is_residual
from ...read.rows import select_files
from ...storage.store import Store, TableLocation
from .bound_rules import BOUND_RULES
from .constraint_rules import CONSTRAINT_RULES, ROW_CONSTRAINT_RULES
from .file_rules import COLUMN_RULES, FILE_RULES, ROW_RULES
from .findings import SEVERITIES, Finding, RuleSummary, Severity, apply_rules, report, summarize
from .log_rules import LOG_RULES
from .log_survey import LogSurvey, survey_log
from .statistics_rules import CHECKPOINT_STATISTICS_RULES, FILE_STATISTICS_RULES
from .subjects import FileSubject, TableSubject
from .table_rules import TABLE_RULES

INTEGERS = ("version", "row")
FINDINGS = pa.schema(
    [(field.name, pa.int64() if field.name in INTEGERS else pa.string()) for field in fields(Finding)]
)

SUBJECT_RULES = (*TABLE_RULES, *CONSTRAINT_RULES, *CHECKPOINT_STATISTICS_RULES)

Item = TypeVar("Item")
Result = TypeVar("Result")

CONFIDENCE, ROUNDING = 0.95, 1e-9
"""The confidence of what a sample says about all files, and the error of its computation."""

NOT_REPAIRED = ("AU18",)
"""Rules of statistics whose violations are a choice of the writer."""

RULES = (
    *LOG_RULES,
    *SUBJECT_RULES,
    *FILE_RULES,
    *ROW_CONSTRAINT_RULES,
    *FILE_STATISTICS_RULES,
    *COLUMN_RULES,
    *BOUND_RULES,
    *ROW_RULES,
)
"""All rules, in the order in which an audit applies them."""


@dataclass(frozen=True)
class AuditSample:
    """What a sample of data files says about all of them.

    Attributes:
        files: The number of files from which the sample was chosen.
        checked: The number of files of the sample.
        wrong: The number of checked files with an error or a warning.
        wrong_at_most: The number of all files that have one, at most, with 95 % confidence.

    Example:
        >>> import delta_variant as dv
        >>> events = dv.Table("events")
        >>> for day in range(3):
        ...     _ = events.append([{"day": day}])
        >>> dv.audit_table("events", sample=1).sample
        AuditSample(files=3, checked=1, wrong=0, wrong_at_most=2)
    """

    files: int
    checked: int
    wrong: int
    wrong_at_most: int


@dataclass(frozen=True)
class AuditedFile:
    """A data file that was audited.

    Attributes:
        path: The decoded path.
        rows: The number of rows in the file, deleted ones included, None if its footer cannot be read.
        bytes: The size in the log, in bytes.
        is_residual: Whether the file has the residual rows of other files.
        deleted_rows: The number of rows that the deletion vector of the file deletes.
    """

    path: str
    rows: int | None
    bytes: int
    is_residual: bool = False
    deleted_rows: int = 0


_AuditedFiles: TypeAlias = list[tuple[AuditedFile, list[Finding]]]


@dataclass(frozen=True)
class Audit:
    """The result of an audit.

    Attributes:
        uri: The table.
        version: The audited version.
        data: Whether rows were checked.
        files: The audited data files.
        findings: The violations: those of the log and the table first, then those of each file.
        snapshot: The table at `version`, None if it cannot be loaded.
        sample: What the audited files say about all files, None for an audit of all.

    Example:
        >>> import delta_variant as dv
        >>> _ = dv.write_table("clicks", [{"id": 1}])
        >>> audit = dv.audit_table("clicks", data=True)
        >>> audit.is_clean, audit.findings
        (True, ())
    """

    uri: str
    version: int
    data: bool
    files: tuple[AuditedFile, ...]
    findings: tuple[Finding, ...]
    snapshot: Snapshot | None
    sample: AuditSample | None = None

    @property
    def is_clean(self) -> bool:
        """Return whether there are neither errors nor warnings."""
        return all(finding.severity == "info" for finding in self.findings)

    def __repr__(self) -> str:
        counts = ", ".join(f"{each}={self.count(each)}" for each in SEVERITIES)
        return printable(
            f"<Audit of {self.uri} at version {self.version}: files={len(self.files)}, {counts}>"
        )

    def _repr_html_(self) -> str:
        if not self.findings:
            return html_table(repr(self)[1:-1], (), [("no findings",)])
        groups = [
            (
                each.rule,
                each.severity,
                each.count,
                each.example.file_path or "",
                each.example.message,
                each.remedy,
            )
            for each in self.summary()
        ]
        headings = ("rule", "severity", "findings", "file, of one", "message, of one", "remedy")
        return html_table(repr(self)[1:-1], headings, groups, longest=500)

    def count(self, severity: Severity) -> int:
        """Return the number of findings of a severity.

        Args:
            severity: `"error"`, `"warning"` or `"info"`.

        Example:
            >>> import delta_variant as dv
            >>> _ = dv.write_table("clicks", [{"id": 1}])
            >>> dv.audit_table("clicks").count("error")
            0
        """
        return sum(finding.severity == severity for finding in self.findings)

    def to_table(self) -> pa.Table:
        """Return the findings as an Arrow table, a row for each.

        Returns:
            A table with the columns `rule`, `severity`, `message` and `remedy` (string), `version` (int64),
            `file_path`, `column` and `path_key` (string) and `row` (int64), as in `Finding`.

        Example:
            >>> import delta_variant as dv
            >>> _ = dv.write_table("clicks", [{"id": 1}])
            >>> dv.audit_table("clicks").to_table().num_rows
            0
        """
        columns = {
            field.name: pa.array([getattr(each, field.name) for each in self.findings], field.type)
            for field in FINDINGS
        }
        return pa.table(columns, schema=FINDINGS)

    def _by_path(self) -> dict[str, tuple[AuditedFile, list[Finding]]]:
        """Return the audited files with their findings."""
        found: dict[str, tuple[AuditedFile, list[Finding]]] = {file.path: (file, []) for file in self.files}
        for finding in self.findings:
            if finding.file_path in found:
                found[finding.file_path][1].append(finding)
        return found

    def summary(self) -> tuple[RuleSummary, ...]:
        """Return the findings grouped by rule, severity and remedy.

        Returns:
            One entry per group with its counts and an example: errors before warnings before notes, and the
            most frequent first within a severity.

        Example:
            >>> import delta_variant as dv, pyarrow as pa
            >>> table = "events"
            >>> _ = dv.write_table(table, pa.table({"id": [1, 2]}))
            >>> dv.audit_table(table).summary()
            ()
        """
        return summarize(self.findings)


def audit_table(
    table: TableLocation | Snapshot,
    *,
    data: bool = False,
    files: Collection[str] | None = None,
    since: int | Audit | None = None,
    sample: int | None = None,
    version: int | None = None,
) -> Audit:
    """Check a table against the rules of docs/audit-rules.md, and return the violations.

    An audit does not stop at a violation. It checks as many parts of a table as can be read, including a
    table that readers cannot load. It changes nothing.

    Args:
        table: A path, a URI, a `Table`, a `Snapshot` or a `deltalake.DeltaTable`.
        data: Also read and check every row. Without it, the audit reads the log and the footers of the files.
        files: Decoded paths of the data files to check, relative to the table. None checks all.
        since: A former audit: the data files that it checked are not checked again, and what it found in
            those that the table still has is part of the result. A version stands for an audit of it that
            found nothing. None, the default, checks all. The log and the table are always checked.
        sample: The number of data files to check, at least 1: random ones, the same for the same version of
            the table. None, the default, checks all.
        version: The version to audit. None audits the latest.

    Returns:
        The audited files and the findings.

    Raises:
        TableNotFoundError: There is no Delta log at `table`.
        VersionNotFoundError: The table does not have `version` or `since`.
        StoreError: The log cannot be listed.
        ArgumentTypeError: `sample` is not an integer.
        ValueError: A path in `files` is not a data file of the table, `sample` is less than 1, or `data` is
            true and the former audit did not check rows.

    Example:
        >>> import delta_variant as dv, pyarrow as pa
        >>> table = "events"
        >>> _ = dv.write_table(table, pa.table({"id": [1, 2]}))
        >>> audit = dv.audit_table(table, data=True)
        >>> audit.is_clean, audit.files[0].rows
        (True, 2)
    """
    if sample is not None:
        sample = to_integer("sample", sample, 1)
    store, version = _version_to_audit(table, version)
    begin("checking the log")
    log = survey_log(store, version)
    subject = TableSubject(log)
    selected = select_files(log.files, files, store.uri)
    selected, former = (selected, []) if since is None else _split_checked(store, selected, since, data)
    num_files = len(selected)
    if sample is not None:
        selected = choose(selected, sample, log.version)
    findings = [*apply_rules(LOG_RULES, log), *apply_rules(SUBJECT_RULES, subject)]
    report([*findings, *(finding for _, found in former for finding in found)])
    if log.snapshot is None:
        audited = _audit_files(subject, selected, data=data)
    else:
        audited = _run_tasks(log.snapshot, selected, data, executor_of(table, store, "AUDIT"))
    wrong = sum(any(finding.severity != "info" for finding in found) for _, found in audited)
    findings += (finding for _, found in (*former, *audited) for finding in found)
    return Audit(
        store.uri,
        log.version,
        data,
        tuple(file for file, _ in (*former, *audited)),
        tuple(findings),
        log.snapshot,
        None if sample is None else sample_of(num_files, len(audited), wrong),
    )


def _split_checked(
    store: Store, files: Sequence[Mapping[str, Any]], since: int | Audit, data: bool
) -> tuple[list[Mapping[str, Any]], _AuditedFiles]:
    """Return the files to check, and the others with what the former audit found in them."""
    if isinstance(since, Audit) and data and not since.data:
        raise ValueError("since: expected an audit with data=True, because data=True checks rows")
    version, former = (since.version, since._by_path()) if isinstance(since, Audit) else (since, None)
    checked = set(map(_file_key, load_snapshot(store, version).files.to_pylist()))
    known = {
        file["path"]
        for file in files
        if (former is None or file["path"] in former) and _file_key(file) in checked
    }
    kept = [] if former is None else [former[path] for path in former if path in known]
    return [file for file in files if file["path"] not in known], kept


def _file_key(file: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what an audit of a file depends on: a commit may replace the statistics of a file."""
    return file["path"], repr(file["deletion_vector"]), repr(file["stats"]), repr(file["tags"])


def _version_to_audit(table: TableLocation | Snapshot, version: int | None) -> tuple[Store, int | None]:
    store, own_version, timestamp = open_to_read(table)
    if version is None:
        return store, own_version if timestamp is None else version_at(store, timestamp)
    if not isinstance(table, Snapshot):
        version_to_read(table, version, None)
    return store, version


def file_subjects(table: TableVersion, files: Iterable[Mapping[str, Any]]) -> Iterator[FileSubject]:
    """Yield data files of a table, rows of `Snapshot.files`, for the rules that read the rows."""
    subject = TableSubject(LogSurvey(table.store, table.version, table=table))
    return (FileSubject(subject, add, True) for add in files)


def statistics_findings(subject: FileSubject) -> list[Finding]:
    """Return the violations of a file that computing its statistics again repairs."""
    findings = list(apply_rules(FILE_STATISTICS_RULES, subject))
    for column in subject.columns:
        findings += (
            replace(finding, column=column.name)
            for finding in apply_rules(BOUND_RULES, column)
            if finding.rule not in NOT_REPAIRED
        )
    return findings


def _audit_some(
    version: TableVersion, files: Sequence[Mapping[str, Any]], data: bool, store: Store, name: NameFile
) -> _AuditedFiles:
    """Audit data files of a version, rows of `Snapshot.files`, without the log."""
    log = LogSurvey(store, version.version, table=replace(version, store=store))
    return _audit_files(TableSubject(log), files, data=data)


def _run_tasks(
    snapshot: Snapshot, files: Sequence[Mapping[str, Any]], data: bool, executor: Executor
) -> _AuditedFiles:
    groups = executor.split(files, lambda file: file["size"] or 0, rounds=ROUNDS)
    tasks = (partial(_audit_some, strip_files(snapshot), tuple(group), data) for group in groups)
    return [file for audited in executor.run("audit files", tasks) for file in audited]


def _audit_files(subject: TableSubject, files: Iterable[Mapping[str, Any]], *, data: bool) -> _AuditedFiles:
    chosen = list(files)
    begin("checking files", files=len(chosen), bytes_=sum(int(add["size"]) for add in chosen))
    audited = []
    for each in check_files((FileSubject(subject, add, data) for add in chosen), _audit_file):
        audited.append(each)
        report(each[1])
        advance(rows=each[0].rows or 0)
    return audited


def _audit_file(subject: FileSubject) -> tuple[AuditedFile, list[Finding]]:
    rows = None if subject.opened is None else int(subject.opened.num_rows)
    findings = [replace(finding, file_path=subject.path) for finding in _file_findings(subject)]
    add = subject.add
    deleted = (add["deletion_vector"] or {}).get("cardinality") or 0
    file = AuditedFile(subject.path, rows, int(add["size"]), is_residual(add["tags"]), deleted)
    return file, findings


def _file_findings(subject: FileSubject) -> Iterator[Finding]:
    yield from apply_rules((*FILE_RULES, *ROW_CONSTRAINT_RULES, *FILE_STATISTICS_RULES), subject)
    for column in subject.columns:
        findings = apply_rules((*COLUMN_RULES, *BOUND_RULES, *ROW_RULES), column)
        yield from (replace(finding, column=finding.column or column.name) for finding in findings)


THREADS = 8
REPORT_SECONDS = 0.2
"""The time after which the bytes read of a file are reported, although its check goes on."""


def check_files(files: Iterable[FileSubject], check: Callable[[FileSubject], Result]) -> Iterator[Result]:
    """Yield the result of each check in order, and report the bytes of the files.

    After an error or an interrupt, no other check begins.
    """
    running: dict[int, FileSubject] = {}
    sizes: list[int] = []
    begun: list[Future[Result]] = []

    def run(file: FileSubject) -> Result:
        running[id(file)] = file
        try:
            return check(file)
        finally:
            del running[id(file)]

    with Threads(THREADS) as threads:
        for file in files:
            sizes.append(int(file.add["size"]))
            begun.append(threads.submit(run, file))
        reported = done = 0
        for size, future in zip(sizes, begun, strict=True):
            while not wait([future], REPORT_SECONDS).done:
                known = (min(file.bytes_read, int(file.add["size"])) for file in list(running.values()))
                read = done + sum(known)
                advance(bytes_=max(read - reported, 0))
                reported = max(read, reported)
            done += size
            advance(files=1, bytes_=max(done - reported, 0))
            reported = max(done, reported)
            yield future.result()


def choose(items: Sequence[Item], number: int, seed: int) -> list[Item]:
    """Return items in their order, each with the same chance, and the same items for the same seed."""
    chosen = Random(seed).sample(range(len(items)), min(number, len(items)))
    return [items[index] for index in sorted(chosen)]


def sample_of(files: int, checked: int, wrong: int) -> AuditSample:
    """Return what a sample says, by the exact (hypergeometric) distribution of its wrong files.

    A number of wrong files is possible if a sample with so few of them is not improbable.
    """
    low, high = wrong, files - checked + wrong
    while low < high:
        middle = (low + high + 1) // 2
        if _probability(files, checked, middle, wrong) > 1 - CONFIDENCE + ROUNDING:
            low = middle
        else:
            high = middle - 1
    return AuditSample(files, checked, wrong, low)


def _probability(files: int, checked: int, wrong: int, found: int) -> float:
    """Return the probability that a sample has at most `found` of the wrong files."""
    least = max(0, checked - (files - wrong))
    logs = (
        _log_choose(wrong, number)
        + _log_choose(files - wrong, checked - number)
        - _log_choose(files, checked)
        for number in range(least, min(found, wrong) + 1)
    )
    return sum(map(exp, logs))


def _log_choose(count: int, number: int) -> float:
    return lgamma(count + 1) - lgamma(number + 1) - lgamma(count - number + 1)
