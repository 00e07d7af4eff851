"""What a read read, and what it left out and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields

from ...expressions.tree import Extraction
from ...expressions.tree import describe as describe_expression
from ...scan.plan import FilePlan, RowPlan
from ...scan.predicate import Leaf

__all__ = ["Explanation", "FileReport", "explain"]


@dataclass(frozen=True)
class FileReport:
    """What reading one file took: its plan, bytes read of it, and rows decoded."""

    plan: RowPlan
    bytes_read: int
    rows_decoded: int


@dataclass(frozen=True)
class Explanation:
    """How much of a table a read read, and what the rest was skipped by.

    `files_by_…` count files that were skipped. Row groups and pages are those of the files read, and of the
    row groups kept; a page stands for rows that no page of the predicate's columns cuts. `bounded_files` has
    for each column or path of the predicate how many files have a bound of it: the others cannot be skipped.
    """

    files: int
    files_by_partition_values: int
    files_by_statistics: int
    files_by_variant_bounds: int
    files_read: int
    row_groups: int
    row_groups_read: int
    pages: int
    pages_read: int
    bytes: int
    bytes_read: int
    rows_decoded: int
    rows: int
    bounded_files: dict[str, int]

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"files       {self.files_read:,} of {self.files:,} read"
        for kind, text in SKIPPED_BY.items():
            if count := getattr(self, kind):
                yield f"            {count:,} skipped by {text}"
        for name, count in self.bounded_files.items():
            yield f"            {count:,} of {self.files:,} have bounds of {name}"
        if self.row_groups:
            yield f"row groups  {self.row_groups_read:,} of {self.row_groups:,} read"
            yield f"pages       {self.pages_read:,} of {self.pages:,} read"
        share = f" ({self.bytes_read / self.bytes:.1%})" if self.bytes else ""
        yield f"bytes       {self.bytes_read:,} of {self.bytes:,} read{share}"
        yield f"rows        {self.rows:,} found in {self.rows_decoded:,} decoded"


SKIPPED_BY = {
    "files_by_partition_values": "partition values",
    "files_by_statistics": "statistics of columns",
    "files_by_variant_bounds": "bounds of Variants",
}


def explain(plan: FilePlan, files: int, size: int, reports: Iterable[FileReport], rows: int) -> Explanation:
    """Return what a read of a table of so many files and bytes came to."""
    reports = list(reports)
    counts = [field.name for field in fields(RowPlan)[1:]]
    totals = {name: sum(getattr(report.plan, name) for report in reports) for name in counts}
    return Explanation(
        files=files,
        files_by_partition_values=plan.by_partition_values,
        files_by_statistics=plan.by_statistics,
        files_by_variant_bounds=plan.by_variant_bounds,
        files_read=len(reports),
        **totals,
        bytes=size,
        bytes_read=sum(report.bytes_read for report in reports),
        rows_decoded=sum(report.rows_decoded for report in reports),
        rows=rows,
        bounded_files={_name(leaf): count for leaf, count in plan.bounded.items()},
    )


def _name(leaf: Leaf) -> str:
    if leaf.path is None:
        return ".".join(leaf.names)
    return describe_expression(Extraction(leaf.names[0], leaf.path, None, fields=leaf.names[1:]))
