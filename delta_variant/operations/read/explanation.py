"""Report of a read: what was scanned, what was skipped, and by which statistics."""

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
    """The cost of reading one file: its plan, the bytes read and the rows decoded."""

    plan: RowPlan
    bytes_read: int
    rows_decoded: int


@dataclass(frozen=True)
class Explanation:
    """How much of a table was read, and which statistics skipped the rest.

    Attributes:
        files: The number of files in the table.
        files_by_partition_values: The number of files skipped by partition values.
        files_by_statistics: The number of further files skipped by column statistics.
        files_by_variant_bounds: The number of further files skipped by Variant bounds.
        files_read: The number of files read.
        row_groups: The number of row groups in the files read.
        row_groups_read: The number of row groups read.
        pages: The number of pages in the row groups read; a page is a range of rows that is not split in any
            column of the predicate.
        pages_read: The number of pages read.
        bytes: The size of the table's files in bytes.
        bytes_read: The number of bytes read.
        rows_decoded: The number of rows decoded.
        rows: The number of matching rows.
        bounded_files: For each column or path of the predicate, the number of files with a bound for it. The
            other files cannot be skipped.
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
    """Return the report of a read of a table with `files` files and `size` bytes."""
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
