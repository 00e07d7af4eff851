"""Compute the statistics of a file again where an audit finds them wrong or incomplete.

Entries without a finding are kept: those of other writers are valid in forms that this library does not
write. So are the entries of columns that the file lacks or has in another type, which are evidence of lost
data.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ...data_file.options import MAX_STATS_BYTES
from ...data_file.statistics import compute_stats
from ...protocol import features
from ...protocol.statistics import FileStatistics, Path, leaves_of, put_at, value_at
from ..audit import statistics_findings
from ..audit.findings import Finding
from ..audit.subjects import FileSubject

__all__ = ["repair_file"]

ROUNDS = 3
"""How often statistics are computed: those of rows that cannot be read are left out in the next round."""

OF_ALL_COLUMNS = ("ST19", "AU22")
"""Rules whose violations are about the statistics of all columns."""


def repair_file(
    subject: FileSubject, findings: Iterable[Finding], max_variant_stats_paths: int
) -> FileStatistics | None:
    """Return statistics in which an audit finds nothing wrong, None if they cannot be computed.

    Raises DataFileError.
    """
    computed = _compute(subject, max_variant_stats_paths)
    wrong: set[str | None] = set()
    without_bounds: set[str | None] = set()
    for _ in range(ROUNDS):
        found = list(findings)
        wrong |= {each.column for each in found}
        is_whole = any(each.rule in OF_ALL_COLUMNS for each in found)
        repaired = _merged(subject, computed, None if is_whole else wrong, without_bounds)
        if is_whole:
            subject = subject.with_stats(None)
        after = [
            each
            for each in statistics_findings(subject.with_stats(repaired.to_json()))
            if each.severity != "info"
        ]
        if not after:
            return repaired
        without_bounds |= {each.column for each in after}
        findings = after
    return None


def _compute(subject: FileSubject, max_variant_stats_paths: int) -> FileStatistics:
    variants = [column.path for column in subject.table.variants if column.has_bounds]
    stats = compute_stats(
        subject.opened,
        variants,
        max_variant_stats_paths=max_variant_stats_paths,
        max_variant_stats_bytes=MAX_STATS_BYTES,
    )
    return subject.without_mismatches(stats)


def _merged(
    subject: FileSubject,
    computed: FileStatistics,
    wrong: set[str | None] | None,
    without_bounds: Collection[str | None],
) -> FileStatistics:
    """Return computed entries of the columns in `wrong`, all for None, and of those without an entry."""
    stated, table = subject.stats, subject.table
    vector, protocol = subject.add["deletion_vector"], table.protocol
    has_vectors = protocol is not None and features.supports(protocol, "deletionVectors")
    # Bounds of all rows are wide if some rows are deleted (PROTOCOL.md, "Per-file Statistics").
    tight = False if vector is not None else True if has_vectors else None
    evidence = {*subject.lost_columns, *(path for path, _, _ in subject.mismatches)}
    names = {column.path: column.name for column in table.variants}

    def merge(side: Mapping[str, Any], of_data: Mapping[str, Any], *, is_bound: bool) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for path in dict.fromkeys((*(path for path, _ in leaves_of(side)), *table.indexed)):
            name = names.get(path, ".".join(path))
            # Statistics of the wrong form can have parts of a column that has none, such as keys of a map.
            parents = {".".join(path[:length]) for length in range(1, len(path))}
            is_wrong = wrong is None or not wrong.isdisjoint({name, *parents})
            is_kept = path in evidence or not (is_wrong or not _is_column(subject, path))
            value = value_at(side, path) if is_kept else None
            if value is None and path not in evidence and path in table.indexed:
                value = value_at(of_data, path)
            if value is not None and not (is_bound and name in without_bounds):
                put_at(merged, path, value)
        return merged

    return replace(
        stated,
        num_records=computed.num_records,
        null_count=merge(stated.null_count, _with_missing(subject, computed), is_bound=False),
        min_values=merge(stated.min_values, computed.min_values, is_bound=True),
        max_values=merge(stated.max_values, computed.max_values, is_bound=True),
        tight_bounds=tight,
    )


def _is_column(subject: FileSubject, path: Path) -> bool:
    return path in subject.table.indexed or subject.column(path) is not None


def _with_missing(subject: FileSubject, computed: FileStatistics) -> Mapping[str, Any]:
    """Return the null counts with those of the columns that the file lacks: all rows are null."""
    counts: dict[str, Any] = {}
    for path, count in _null_counts(subject, computed):
        put_at(counts, path, count)
    return counts


def _null_counts(subject: FileSubject, computed: FileStatistics) -> Iterator[tuple[Path, Any]]:
    yield from leaves_of(computed.null_count)
    for path in subject.table.indexed:
        if subject.lacks(path) and value_at(subject.stats.null_count, path) is not None:
            yield path, computed.num_records
