"""The rows of a scan, and the columns and the filter that an engine pushes into them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from ..expressions.arrow_filter import ArrowFilter
from ..expressions.tree import Expression
from .explanation import ReadReport
from .rows import RowBatches

if TYPE_CHECKING:
    import pyarrow.compute as pc

__all__ = ["LimitedRows", "Rows"]


class Rows(Protocol):
    """The rows of a scan, which are planned but not read."""

    @property
    def uri(self) -> str:
        """The URI or the path of the table."""

    @property
    def version(self) -> int:
        """The version of the table."""

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows."""

    @property
    def outputs(self) -> Mapping[str, Expression]:
        """The columns as bound expressions, by name."""

    def narrow(self, names: Collection[str], hint: Expression | None) -> Rows:
        """Return some columns of the rows for which `hint` is true, and maybe of others."""

    def with_dictionaries(self, names: Collection[str]) -> Rows:
        """Return the rows with some columns of text as dictionaries."""

    def parts(self) -> Iterator[Rows]:
        """Yield parts of the rows, in order, that can be read concurrently."""

    def batches(self, report: ReadReport, *, ahead: bool) -> RowBatches:
        """Return the rows; unless `ahead`, open a file only after the rows of the one before."""

    def count(self) -> int:
        """Return the number of rows, and read as little as possible."""


@dataclass(frozen=True)
class LimitedRows:
    """At most `limit` rows of a table or of its changes, None for all of them."""

    rows: Rows
    limit: int | None

    @property
    def schema(self) -> pa.Schema:
        """Return the schema of the rows."""
        return self.rows.schema

    def push(self, names: Collection[str] | None, condition: pc.Expression | None) -> LimitedRows:
        """Return the columns in `names`, None for all, and those that a filter of pyarrow reads.

        Rows that cannot match the filter are left out where statistics show it. The caller filters the
        others.
        """
        outputs = self.rows.outputs
        wanted = set(outputs if names is None else names)
        hint = None
        if condition is not None:
            known = ArrowFilter.of(condition, outputs)
            wanted |= known.columns
            # A limit counts rows before they are filtered.
            hint = known.pruning if self.limit is None else None
        return LimitedRows(self.rows.narrow(wanted, hint), self.limit)

    def parts(self) -> Iterator[LimitedRows]:
        """Yield parts of the rows, in order, that can be read concurrently; a limit keeps them together."""
        if self.limit is None:
            yield from (LimitedRows(part, None) for part in self.rows.parts())
        else:
            yield self

    def with_dictionaries(self, names: Collection[str]) -> LimitedRows:
        """Return the rows with some columns of text as dictionaries."""
        return LimitedRows(self.rows.with_dictionaries(names), self.limit)

    def head(self, limit: int) -> LimitedRows:
        """Return the first rows, at most `limit`."""
        return LimitedRows(self.rows, limit if self.limit is None else min(limit, self.limit))

    def count(self) -> int:
        """Return the number of rows, and read as little as possible."""
        if self.limit == 0:
            return 0
        rows = self.rows.count()
        return rows if self.limit is None else min(rows, self.limit)

    def batches(self, report: ReadReport) -> Iterator[pa.RecordBatch]:
        """Yield the rows; with a limit, open a file only after the rows of the one before."""
        remaining = self.limit
        # Closing the rows completes the report of a file that was not read to its end.
        with closing(self.rows.batches(report, ahead=remaining is None)) as batches:
            if remaining is None:
                yield from batches
                return
            while remaining:
                batch = next(batches, None)
                if batch is None:
                    return
                yield batch.slice(0, remaining)
                remaining -= min(remaining, batch.num_rows)
