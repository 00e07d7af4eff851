"""The rows of a scan, and the columns and the filter that an engine pushes into them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from ..expressions.arrow_filter import ArrowFilter
from ..expressions.tree import Expression
from .explanation import ReadReport
from .rows import RowBatches

if TYPE_CHECKING:
    import pyarrow.compute as pc

__all__ = ["ScanRows"]

Rows = TypeVar("Rows", bound="ScanRows")


@dataclass(frozen=True)
class ScanRows(ABC):
    """The rows of a scan, which are planned but not read: at most `limit`, None for all of them."""

    limit: int | None = field(default=None, kw_only=True)

    @property
    @abstractmethod
    def uri(self) -> str:
        """Return the URI or the path of the table."""

    @property
    @abstractmethod
    def version(self) -> int:
        """Return the version of the table."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """Return the schema of the rows."""

    @property
    @abstractmethod
    def outputs(self) -> Mapping[str, Expression]:
        """Return the columns as bound expressions, by name."""

    @abstractmethod
    def narrow(self: Rows, names: Collection[str], hint: Expression | None) -> Rows:
        """Return some columns of the rows for which `hint` is true, and maybe of others."""

    @abstractmethod
    def with_dictionaries(self: Rows, names: Collection[str]) -> Rows:
        """Return the rows with some columns of text as dictionaries."""

    @abstractmethod
    def split(self: Rows) -> Iterator[Rows]:
        """Yield parts of all rows, in order, that can be read concurrently."""

    @abstractmethod
    def stream(self, report: ReadReport, *, ahead: bool) -> RowBatches:
        """Yield all rows; unless `ahead`, open a file only after the rows of the one before."""

    @abstractmethod
    def count_all(self) -> int:
        """Return the number of all rows, and read as little as possible."""

    def push(self: Rows, names: Collection[str] | None, condition: pc.Expression | None) -> Rows:
        """Return the columns in `names`, None for all, and those that a filter of pyarrow reads.

        Rows that cannot match the filter are left out where statistics show it. The caller filters the
        others.
        """
        wanted = set(self.outputs if names is None else names)
        hint = None
        if condition is not None:
            known = ArrowFilter.of(condition, self.outputs)
            wanted |= known.columns
            # A limit counts rows before they are filtered.
            hint = known.pruning if self.limit is None else None
        return self.narrow(wanted, hint)

    def parts(self: Rows) -> Iterator[Rows]:
        """Yield parts of the rows, in order, that can be read concurrently; a limit keeps them together."""
        return self.split() if self.limit is None else iter([self])

    def head(self: Rows, limit: int) -> Rows:
        """Return the first rows, at most `limit`."""
        return replace(self, limit=limit if self.limit is None else min(limit, self.limit))

    def count(self) -> int:
        """Return the number of rows, and read as little as possible."""
        if self.limit == 0:
            return 0
        rows = self.count_all()
        return rows if self.limit is None else min(rows, self.limit)

    def batches(self, report: ReadReport) -> Iterator[pa.RecordBatch]:
        """Yield the rows; with a limit, open a file only after the rows of the one before."""
        remaining = self.limit
        # Closing the rows completes the report of a file that was not read to its end.
        with closing(self.stream(report, ahead=remaining is None)) as batches:
            if remaining is None:
                yield from batches
                return
            while remaining:
                batch = next(batches, None)
                if batch is None:
                    return
                yield batch.slice(0, remaining)
                remaining -= min(remaining, batch.num_rows)
