"""A scan as a dataset of pyarrow, into which engines push projections and filters.

This module is imported on demand, because importing `pyarrow.dataset` takes a while.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import and_
from typing import Any, NoReturn, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
from pyarrow.dataset import InMemoryDataset, Scanner

from ..data_file.reader import filter_rows
from ..errors import printable
from ..expressions.arrow_filter import ArrowFilter
from ..expressions.evaluate import filter_mask
from ..expressions.tree import Column, Expression
from .explanation import ReadReport
from .query import DICTIONARY, VIEW, rows_without_columns
from .scan_rows import ScanRows

Columns: TypeAlias = "Sequence[str] | Mapping[str, pc.Expression] | None"

# The stubs of pyarrow lack arguments of these classes.
arrow_dataset: Any = pyarrow.dataset

SPECIAL_FIELDS = frozenset({"__batch_index", "__filename", "__fragment_index", "__last_in_fragment"})
"""Columns that pyarrow adds to datasets of files; for other datasets their values have no meaning."""


class _Unreadable:
    """A file whose reading raises an error."""

    closed = False

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def size(self, *_: object) -> NoReturn:
        raise NotImplementedError(
            "cannot read a dataset of delta_variant in C++: call its methods, such as scanner or to_table"
        )

    tell = seek = read = size


_UNREADABLE: Any = _Unreadable()


class ScanDataset(arrow_dataset.UnionDataset):  # type: ignore[misc]
    """The rows of a scan as a dataset.

    Python methods of `Dataset` are overridden. C++ code, such as a union of datasets, cannot call them: it
    finds a child whose reading raises an error, so that it neither fails without a message nor finds no rows.
    """

    def __init__(self, rows: ScanRows, condition: pc.Expression | None = None) -> None:
        """Create a dataset of the rows for which `condition` is true, None for all."""
        layout = arrow_dataset.IpcFileFormat()
        unreadable = layout.make_fragment(pa.PythonFile(_UNREADABLE, mode="r"))
        super().__init__(rows.schema, [arrow_dataset.FileSystemDataset([unreadable], rows.schema, layout)])
        self._rows = rows
        self._condition = condition

    def __repr__(self) -> str:
        names = ", ".join(self._rows.schema.names)
        return printable(f"<ScanDataset of {self._rows.uri} at version {self._rows.version}: {names}>")

    def scanner(
        self,
        columns: Columns = None,
        filter: Any = None,  # noqa: A002
        batch_size: int | None = None,
        **options: Any,
    ) -> Scanner:
        """Return a scanner, which reads once; the parameters are those of `Dataset.scanner`."""
        return _scanner(self._rows, columns, _all_of(self._condition, filter), batch_size, options)

    def head(
        self,
        num_rows: int,
        columns: Columns = None,
        filter: Any = None,  # noqa: A002
        **options: Any,
    ) -> pa.Table:
        """Return the first rows; the parameters are those of `Dataset.head`."""
        if self._condition is None and filter is None:
            return _scanner(self._rows.head(num_rows), columns, None, None, options).to_table()
        return self.scanner(columns, filter, **options).head(num_rows)

    def count_rows(self, filter: pc.Expression | None = None, **options: Any) -> int:  # noqa: A002
        """Return the number of rows; without a filter, it comes from the log where that has it."""
        if self._condition is None and filter is None:
            return self._rows.count()
        known = _Selection.of(self._rows, [], _all_of(self._condition, filter))
        return (known or self.scanner(columns=[], filter=filter, **options)).count_rows()

    def get_fragments(self, filter: pc.Expression | None = None) -> Iterator[Any]:  # noqa: A002
        """Yield a fragment for each data file that may have rows for which `filter` is true."""
        if self._condition is not None:
            raise ValueError("cannot split a filtered dataset into fragments: pass the filter here instead")
        pushed = self._rows.push(None, filter)
        return (_Fragment(part) for part in pushed.parts())

    def filter(self, expression: pc.Expression) -> ScanDataset:
        """Return the dataset of the rows for which an expression is true."""
        return ScanDataset(self._rows, _all_of(self._condition, expression))

    def sort_by(self, sorting: Any, **options: Any) -> InMemoryDataset:
        """Return the sorted rows, which are read into memory."""
        found: InMemoryDataset = arrow_dataset.InMemoryDataset(self.to_table().sort_by(sorting, **options))
        return found

    def join(self, right_dataset: Any, *arguments: Any, **options: Any) -> InMemoryDataset:
        """Return the rows joined with those of another dataset; both are read into memory."""
        found: InMemoryDataset = _in_memory(self).join(_in_memory(right_dataset), *arguments, **options)
        return found

    def join_asof(self, right_dataset: Any, *arguments: Any, **options: Any) -> InMemoryDataset:
        """Return the rows joined with the nearest ones of another dataset; both are read into memory."""
        other = _in_memory(right_dataset)
        found: InMemoryDataset = _in_memory(self).join_asof(other, *arguments, **options)
        return found

    def replace_schema(self, schema: pa.Schema) -> ScanDataset:
        """Return the dataset if it has this schema; raises NotImplementedError for another one."""
        if schema.equals(self.schema):
            return self
        raise NotImplementedError("cannot replace the schema of a scan: pass other columns to read_table")

    def __reduce__(self) -> NoReturn:
        raise TypeError("cannot pickle a dataset of delta_variant: pass the location of the table instead")


class _Fragment:
    """Some rows of a dataset, with the methods of `pyarrow.dataset.Fragment` that engines call."""

    def __init__(self, rows: ScanRows) -> None:
        self._rows = rows

    @property
    def physical_schema(self) -> pa.Schema:
        return self._rows.schema

    @property
    def partition_expression(self) -> pc.Expression:
        return pc.scalar(True)

    def scanner(
        self,
        schema: pa.Schema | None = None,
        columns: Columns = None,
        filter: pc.Expression | None = None,  # noqa: A002
        batch_size: int | None = None,
        **options: Any,
    ) -> Scanner | _Selection:
        known = _Selection.of(self._rows, columns, filter)
        return known or _scanner(self._rows, columns, filter, batch_size, options)

    def to_table(self, schema: pa.Schema | None = None, **options: Any) -> pa.Table:
        return self.scanner(schema, **options).to_table()

    def to_batches(self, schema: pa.Schema | None = None, **options: Any) -> Iterator[pa.RecordBatch]:
        return self.scanner(schema, **options).to_batches()

    def count_rows(self, filter: pc.Expression | None = None, **options: Any) -> int:  # noqa: A002
        return ScanDataset(self._rows).count_rows(filter, **options)


class _Selection:
    """Rows and columns of a fragment, with the methods of `pyarrow.dataset.Scanner` that engines call.

    A scanner of pyarrow takes as long as the decoding: it passes the rows through a plan on its own threads.
    Batches have the size in which they are decoded.
    """

    def __init__(self, rows: ScanRows, columns: Sequence[str], condition: Expression | None) -> None:
        self._rows = rows
        self._columns = list(columns)
        self._condition = condition

    @classmethod
    def of(cls, rows: ScanRows, columns: Columns, condition: pc.Expression | None) -> _Selection | None:
        """Return the selection, None if only pyarrow can compute it."""
        outputs: dict[str, Expression] = {
            field.name: Column(field.name, _plain(field)) for field in rows.schema
        }
        names = list(outputs) if columns is None else columns
        if (
            isinstance(names, Mapping)
            or not outputs.keys() >= set(names)
            or not (names or condition is not None)
        ):
            return None
        if condition is None:
            return cls(rows.push(names, None), names, None)
        known = ArrowFilter.of(condition, outputs)
        return cls(rows.push(names, condition), names, known.pruning) if known.is_exact else None

    @property
    def projected_schema(self) -> pa.Schema:
        return pa.schema([self._rows.schema.field(name) for name in self._columns])

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        for batch, mask in self._matches():
            found = batch if mask is None else filter_rows(batch, mask)
            yield found.select(self._columns) if self._columns else rows_without_columns(found.num_rows)

    def _matches(self) -> Iterator[tuple[pa.RecordBatch, Any]]:
        """Yield batches, and which of their rows match, None if all do."""
        for batch in self._rows.batches(ReadReport()):
            yield batch, None if self._condition is None else filter_mask(self._condition, batch)

    def to_reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def to_table(self) -> pa.Table:
        return self.to_reader().read_all()

    def count_rows(self) -> int:
        return sum(batch.num_rows if mask is None else mask.true_count for batch, mask in self._matches())


def _plain(field: pa.Field[Any]) -> pa.DataType:
    return pa.string() if field.type in (DICTIONARY, VIEW) else field.type


def _scanner(
    rows: ScanRows, columns: Columns, condition: Any, batch_size: int | None, options: Mapping[str, Any]
) -> Scanner:
    """Return a scanner over the columns that are needed, which filters and projects."""
    outputs = rows.outputs
    names = outputs if columns is None else _names_in(columns, rows)
    if special := SPECIAL_FIELDS & set(names) - outputs.keys():
        raise ValueError(f"cannot read the column {min(special)} because a scan has no files for pyarrow")
    if condition is not None and VIEW in rows.schema.types:
        reader, condition = _filtered(rows, names, condition), None
    else:
        pushed = rows.push([name for name in names if name in outputs], condition)
        reader = pa.RecordBatchReader.from_batches(pushed.schema, _batches(pushed, batch_size))
    if columns is None:
        columns = list(outputs)
    if batch_size is not None:
        options = {**options, "batch_size": batch_size}
    scanner: Scanner = arrow_dataset.Scanner.from_batches(
        reader, columns=columns, filter=condition, **options
    )
    return scanner


def _filtered(rows: ScanRows, names: Iterable[str], condition: pc.Expression) -> pa.RecordBatchReader:
    """Return the rows for which a filter is true, which pyarrow can select if they have no views."""
    types = {field.name: DICTIONARY for field in rows.schema if field.type == DICTIONARY}
    # A column keeps the number of rows in a cast. That of the filter is read anyway.
    read = ArrowFilter.of(condition, rows.outputs).columns or rows.schema.names
    columns = list(names) or sorted(read)[:1]
    found = _scanner(rows.with_text_types(types), columns, condition, None, {})
    schema = pa.schema([rows.schema.field(name) for name in found.projected_schema.names])

    def batches() -> Iterator[pa.RecordBatch]:
        # A scanner reads ahead from this call on, and DataFusion needs the schema alone of some.
        for batch in found.to_batches():
            yield batch.cast(schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _names_in(columns: Any, rows: ScanRows) -> set[str]:
    """Return the columns that a projection reads."""
    if not isinstance(columns, Mapping):
        return set(columns)
    read = (ArrowFilter.of(each, rows.outputs).columns for each in columns.values())
    return set().union(*read)


def _batches(rows: ScanRows, batch_size: int | None) -> Iterator[pa.RecordBatch]:
    """Yield rows in batches of at most `batch_size`; nothing is read for the number of rows alone."""
    if not rows.schema.names:
        yield rows_without_columns(rows.count())
        return
    for batch in rows.batches(ReadReport()):
        step = batch_size or batch.num_rows
        yield from (batch.slice(first, step) for first in range(0, batch.num_rows, step))


def _all_of(*conditions: pc.Expression | None) -> pc.Expression | None:
    known = [each for each in conditions if each is not None]
    return reduce(and_, known) if known else None


def _in_memory(dataset: Any) -> Any:
    is_ours = isinstance(dataset, ScanDataset)
    return arrow_dataset.InMemoryDataset(dataset.to_table()) if is_ours else dataset
