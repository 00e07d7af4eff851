"""Auditing a table: log, protocol, schema, files, statistics and rows, held against the rules one by one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from ..._checks import texts_of
from ...log.snapshot import Snapshot
from ...storage.store import Store, TableLocation, open_store
from .bound_rules import BOUND_RULES
from .file_rules import COLUMN_RULES, FILE_RULES, ROW_RULES
from .findings import Finding, Severity, apply_rules
from .log_survey import LogSurvey, survey_log
from .statistics_rules import CHECKPOINT_STATISTICS_RULES, FILE_STATISTICS_RULES
from .subjects import FileSubject, TableSubject
from .table_rules import LOG_RULES, TABLE_RULES

__all__ = ["RULES", "Audit", "AuditedFile", "audit_files", "audit_table"]

THREADS = 8

RULES = (
    *LOG_RULES,
    *TABLE_RULES,
    *CHECKPOINT_STATISTICS_RULES,
    *FILE_RULES,
    *FILE_STATISTICS_RULES,
    *COLUMN_RULES,
    *BOUND_RULES,
    *ROW_RULES,
)
"""All rules, in the order in which a table is held against them."""


@dataclass(frozen=True)
class AuditedFile:
    """A data file that was looked at; `rows` is None where its footer cannot be read."""

    path: str
    rows: int | None
    bytes: int


@dataclass(frozen=True)
class Audit:
    """What was looked at, and what was found, the table's findings before those of its files.

    `data` tells whether rows were looked at. `snapshot` is None for a table that cannot be loaded.
    """

    uri: str
    version: int
    data: bool
    files: tuple[AuditedFile, ...]
    findings: tuple[Finding, ...]
    snapshot: Snapshot | None

    @property
    def is_clean(self) -> bool:
        """Tell whether there is neither an error nor a warning."""
        return all(finding.severity == "info" for finding in self.findings)

    def count(self, severity: Severity) -> int:
        """Return how many findings have a severity."""
        return sum(finding.severity == severity for finding in self.findings)


def audit_table(
    table: TableLocation,
    *,
    data: bool = False,
    files: Collection[str] | None = None,
    version: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Audit:
    """Return what breaks a rule in a table: its log, protocol, schema, files and their statistics.

    `data=True` looks at every row, too. `files` are the paths of the data files to look at, None for all. An
    audit never stops at a fault, and describes a table that readers cannot load as far as its parts can be
    read. Raises TableNotFoundError where there is no log, VersionNotFoundError for a version that it does not
    have, StoreError where it cannot be listed, ValueError for a path in `files` that the table does not have.
    """
    place = open_store(table, storage_options)
    log = survey_log(place, version)
    subject = TableSubject(log)
    chosen = _select_files(log.files, files, place)
    findings = [
        *apply_rules(LOG_RULES, log),
        *apply_rules(TABLE_RULES + CHECKPOINT_STATISTICS_RULES, subject),
    ]
    audited = _audit_files(subject, chosen, data=data)
    findings += (finding for _, found in audited for finding in found)
    return Audit(
        place.uri, log.version, data, tuple(file for file, _ in audited), tuple(findings), log.snapshot
    )


def audit_files(
    snapshot: Snapshot, files: Iterable[Mapping[str, Any]], *, data: bool
) -> list[tuple[AuditedFile, list[Finding]]]:
    """Return what breaks a rule in data files of a table, rows of `Snapshot.files`, and not in its log."""
    log = LogSurvey(snapshot.store, snapshot.version, names=(), commits=(), snapshot=snapshot)
    return _audit_files(TableSubject(log), files, data=data)


def _audit_files(
    subject: TableSubject, files: Iterable[Mapping[str, Any]], *, data: bool
) -> list[tuple[AuditedFile, list[Finding]]]:
    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(lambda add: _audit_file(FileSubject(subject, add, data)), files))


def _select_files(
    adds: Collection[Mapping[str, Any]], files: Collection[str] | None, place: Store
) -> list[Mapping[str, Any]]:
    if files is None:
        return list(adds)
    chosen = texts_of("paths", "files", files)
    unknown = sorted(set(chosen) - {add["path"] for add in adds})
    if unknown:
        raise ValueError(f"{place.uri} has no data file {unknown[0]}")
    return [add for add in adds if add["path"] in chosen]


def _audit_file(subject: FileSubject) -> tuple[AuditedFile, list[Finding]]:
    rows = None if subject.opened is None else int(subject.opened.num_rows)
    findings = [replace(finding, file_path=subject.path) for finding in _file_findings(subject)]
    return AuditedFile(subject.path, rows, int(subject.add["size"])), findings


def _file_findings(subject: FileSubject) -> Iterator[Finding]:
    yield from apply_rules((*FILE_RULES, *FILE_STATISTICS_RULES), subject)
    for column in subject.columns:
        findings = apply_rules((*COLUMN_RULES, *BOUND_RULES, *ROW_RULES), column)
        yield from (replace(finding, column=finding.column or column.name) for finding in findings)
