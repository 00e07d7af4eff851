"""Report of a read: what was scanned, what was skipped, and by which statistics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from .._html import Html, html_bar, html_table
from ..errors import printable
from ..expressions.tree import Extraction
from ..expressions.tree import describe as describe_expression
from .plan import FilePlan, RowPlan
from .predicate import Leaf


@dataclass(frozen=True)
class FileReport:
    """The cost of reading one file: its plan, the bytes read and the rows decoded.

    With `is_residual`, it has the residual rows of other files.
    """

    plan: RowPlan
    bytes_read: int
    rows_decoded: int
    is_residual: bool = False


@dataclass
class ReadReport:
    """What a read plans and reads; it grows while the rows are read.

    A table has one plan, a change data feed several. `files` are those that were opened.
    """

    num_files: int = 0
    num_bytes: int = 0
    plans: list[FilePlan] = field(default_factory=list)
    files: list[FileReport] = field(default_factory=list)

    def add(self, plan: FilePlan) -> None:
        self.num_files += plan.num_files
        self.num_bytes += plan.num_bytes
        self.plans.append(plan)

    def explain(self, rows: int) -> Explanation:
        """Return the report of a read that found `rows` rows."""
        totals = {
            name: sum(getattr(report.plan, name) for report in self.files)
            for name in RowPlan.__struct_fields__[1:]
        }
        residual = [report for report in self.files if report.is_residual]
        bounded: Counter[str] = Counter()
        for plan in self.plans:
            for leaf, count in plan.bounded.items():
                bounded[_name(leaf)] += count
        return Explanation(
            files=self.num_files,
            files_by_partition_values=sum(plan.by_partition_values for plan in self.plans),
            files_by_statistics=sum(plan.by_statistics for plan in self.plans),
            files_by_variant_bounds=sum(plan.by_variant_bounds for plan in self.plans),
            files_read=len(self.files),
            residual_files_read=len(residual),
            **totals,
            bytes=self.num_bytes,
            # The end of a small file is read for the footer, and its pages again.
            bytes_read=min(sum(report.bytes_read for report in self.files), self.num_bytes),
            rows_decoded=sum(report.rows_decoded for report in self.files),
            residual_rows_decoded=sum(report.rows_decoded for report in residual),
            rows=rows,
            bounded_files=dict(bounded),
        )


@dataclass(frozen=True)
class Explanation:
    """How much of a table was read, and which statistics skipped the rest.

    Attributes:
        files: The number of files in the table.
        files_by_partition_values: The number of files skipped by partition values.
        files_by_statistics: The number of further files skipped by column statistics.
        files_by_variant_bounds: The number of further files skipped by Variant bounds.
        files_read: The number of files read.
        residual_files_read: The number of these with residual rows, which have a file of their own.
        row_groups: The number of row groups in the files read.
        row_groups_read: The number of row groups read.
        pages: The number of pages in the row groups read; a page is a range of rows that is not split in any
            column of the predicate.
        pages_read: The number of pages read.
        bytes: The size of the table's files in bytes.
        bytes_read: The number of bytes read, at most `bytes`: those that are read again do not count twice.
        rows_decoded: The number of rows decoded, and of those that a dictionary excludes.
        residual_rows_decoded: The number of these in files of residual rows.
        rows: The number of matching rows.
        bounded_files: For each column or path of the predicate, the number of files with a bound for it. The
            other files cannot be skipped.

    Example:
        >>> import delta_variant as dv
        >>> _ = dv.write_table("clicks", [{"id": 1}])
        >>> explanation = dv.read_table("clicks", where="id > 1").explain()
        >>> explanation.files, explanation.files_by_statistics, explanation.files_read
        (1, 1, 0)
    """

    files: int
    files_by_partition_values: int
    files_by_statistics: int
    files_by_variant_bounds: int
    files_read: int
    residual_files_read: int
    row_groups: int
    row_groups_read: int
    pages: int
    pages_read: int
    bytes: int
    bytes_read: int
    rows_decoded: int
    residual_rows_decoded: int
    rows: int
    bounded_files: dict[str, int]

    def __str__(self) -> str:
        return "\n".join(map(printable, self._lines()))

    def _repr_html_(self) -> str:
        rows: list[tuple[str, Html | str, str]] = []
        for name, read, total in self._levels():
            bar = html_bar(read / total) if total else ""
            rows.append((name, bar, f"{read:,} of {total:,} read"))
            rows += [("", "", line) for line in (self._reasons() if name == "files" else ())]
        return html_table(f"rows: {self.rows:,} found in {self.rows_decoded:,} decoded", (), rows)

    def _levels(self) -> Iterator[tuple[str, int, int]]:
        """Yield the name of each level, and how much of it was read, of how much."""
        yield "files", self.files_read, self.files
        if self.row_groups:
            yield "row groups", self.row_groups_read, self.row_groups
            yield "pages", self.pages_read, self.pages
        yield "bytes", self.bytes_read, self.bytes

    def _reasons(self) -> Iterator[str]:
        """Yield why files were skipped or read."""
        for kind, text in SKIPPED_BY.items():
            if count := getattr(self, kind):
                yield f"{count:,} skipped by {text}"
        for name, count in self.bounded_files.items():
            yield f"{count:,} of {self.files:,} have bounds of {name}"
        if self.residual_files_read:
            residual = f"{self.residual_rows_decoded:,} rows decoded"
            yield f"{self.residual_files_read:,} of those read with residual rows, {residual}"

    def _lines(self) -> Iterator[str]:
        for name, read, total in self._levels():
            share = f" ({100 * read / total:.1f} %)" if name == "bytes" and total else ""
            yield f"{name:12}{read:,} of {total:,} read{share}"
            yield from (f"{'':12}{reason}" for reason in (self._reasons() if name == "files" else ()))
        yield f"rows        {self.rows:,} found in {self.rows_decoded:,} decoded"


SKIPPED_BY = {
    "files_by_partition_values": "partition values",
    "files_by_statistics": "statistics of columns",
    "files_by_variant_bounds": "bounds of Variants",
}


def _name(leaf: Leaf) -> str:
    if leaf.path is None:
        return ".".join(leaf.names)
    return describe_expression(Extraction(leaf.names[0], leaf.path, None, fields=leaf.names[1:]))
