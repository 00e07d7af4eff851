"""A read as an object, which can be run many times, and the forms in which it returns rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import pyarrow as pa

from .._checks import check_installed, check_option, one_or_more, to_integer
from .._html import MAX_ROWS, html_table
from ..errors import CastError, printable
from ..expressions.types import type_name
from ..variant.objects import (
    UNREPRESENTABLE,
    VariantForm,
    check_representable,
    columns_of_objects,
    is_variant,
    rows_of,
    variants_as_json,
)
from .explanation import Explanation, ReadReport
from .query import DICTIONARY, VIEW
from .scan_rows import ScanRows

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from pyarrow.dataset import Dataset


class Rows(ABC):
    """Rows as Arrow batches, and the other forms in which they are returned."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """Return the Arrow schema of the rows, in which Variant columns are marked as extension types."""

    @abstractmethod
    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Return the rows as an iterator over Arrow batches."""

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream of Arrow batches, which can be read once.

        Returns:
            A `pyarrow.RecordBatchReader`. It raises the errors of `to_batches` while it is read.

        Example:
            >>> import delta_variant as dv
            >>> _ = dv.write_table("clicks", [{"id": 1}, {"id": 2}])
            >>> dv.read_table("clicks").to_reader().read_all().num_rows
            2
        """
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def to_table(self) -> pa.Table:
        """Return the rows as one Arrow table.

        Returns:
            A `pyarrow.Table` with Variants as `struct<metadata, value>`.

        Raises:
            DeltaVariantError: A row cannot be read; see `to_batches`.

        Example:
            >>> import delta_variant as dv
            >>> _ = dv.write_table("clicks", [{"id": 1}, {"id": 2}])
            >>> dv.read_table("clicks", where="id > 1").to_table()["id"].to_pylist()
            [2]
        """
        return pa.Table.from_batches(self.to_batches(), self.schema)

    def to_pylist(self, variants: VariantForm = "python") -> list[dict[str, Any]]:
        """Return the rows as Python dicts.

        Args:
            variants: The form of Variants: `"python"`, the default, as the objects of `Variant.to_python`,
                `"json"` as JSON text, `"bytes"` as dicts of `metadata` and `value`.

        Returns:
            A dict for each row, by column name.

        Raises:
            CastError: Python cannot represent a value, such as a date after the year 9999 or nanoseconds.
            DeltaVariantError: A row cannot be read; see `to_batches`.
            ValueError: `variants` is not one of its values.

        Example:
            >>> import delta_variant as dv
            >>> _ = dv.write_table("clicks", [{"event": {"a": 1}}], variant_columns=["event"])
            >>> dv.read_table("clicks").to_pylist()
            [{'event': {'a': 1}}]
            >>> dv.read_table("clicks").to_pylist(variants="json")
            [{'event': '{"a":1}'}]
        """
        check_option("variants", variants, get_args(VariantForm))
        return list(self._objects(variants))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the rows as Python dicts, a batch at a time; see `to_pylist`."""
        return self._objects("python")

    def _objects(self, variants: VariantForm) -> Iterator[dict[str, Any]]:
        before = 0
        for batch in self.to_batches():
            try:
                rows = rows_of(batch, variants)
            except CastError as error:
                error.row = None if error.row is None else error.row + before
                raise
            yield from rows
            before += len(rows)

    def to_pandas(self, variants: VariantForm = "python") -> pd.DataFrame:
        """Return the rows as a pandas data frame; needs pandas.

        Args:
            variants: The form of Variants, as in `to_pylist`. `"python"` by default.

        Returns:
            A `pandas.DataFrame`. Columns with Variants have the type `object`.

        Raises:
            ImportError: pandas is not installed.
            CastError: Python cannot represent a value; see `to_pylist`.
            DeltaVariantError: A row cannot be read; see `to_pylist`.
            ValueError: `variants` is not one of its values.

        Example:
            >>> import delta_variant as dv
            >>> _ = dv.write_table("clicks", [{"id": 1}, {"id": 2}])
            >>> dv.read_table("clicks").to_pandas().shape
            (2, 1)
        """
        check_installed("pandas", "pandas")
        import pandas as pd

        check_option("variants", variants, get_args(VariantForm))
        table = self.to_table()
        try:
            frame: pd.DataFrame = table.to_pandas()
        except UNREPRESENTABLE as error:
            check_representable(table, error)
            raise
        for index, values in columns_of_objects(table, variants).items():
            frame.isetitem(index, pd.Series(values, frame.index, dtype=object))
        return frame

    def to_polars(self, variants: Literal["json", "bytes"] = "json") -> pl.DataFrame:
        """Return the rows as a Polars data frame; needs Polars, which has no Variant type.

        Args:
            variants: The form of Variants: `"json"`, the default, as JSON text, `"bytes"` as structs of
                `metadata` and `value`, which Polars marks as an extension type.

        Returns:
            A `polars.DataFrame`.

        Raises:
            ImportError: Polars is not installed.
            DeltaVariantError: A row cannot be read; see `to_batches`.
            ValueError: `variants` is not one of its values.

        Example:
            >>> import delta_variant as dv
            >>> _ = dv.write_table("clicks", [{"id": 1}, {"id": 2}])
            >>> dv.read_table("clicks").to_polars().shape
            (2, 1)
        """
        check_installed("polars", "polars")
        import polars as pl

        check_option("variants", variants, ("json", "bytes"))
        table = self.to_table()
        frame = pl.from_arrow(variants_as_json(table) if variants == "json" else table)
        assert isinstance(frame, pl.DataFrame)
        return frame

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the rows as a stream of the Arrow PyCapsule interface."""
        stream: object = self.to_reader().__arrow_c_stream__(requested_schema)  # type: ignore[no-untyped-call]
        return stream

    def _headings(self) -> list[str]:
        """Return the name and the type of each column."""
        types = ("variant" if is_variant(each) else type_name(each.type) for each in self.schema)
        return [f"{name} {type_}" for name, type_ in zip(self.schema.names, types, strict=True)]

    def _table_of(self, rows: list[dict[str, Any]]) -> str:
        """Return the first rows as a table for notebooks."""
        return html_table(repr(self)[1:-1], self._headings(), [list(row.values()) for row in rows])


class Scan(Rows):
    """A read of one version of a table. Each method reads the rows again.

    `read_table` and `read_changes` return it. DuckDB, Polars, pandas and pyarrow take it directly, because it
    has `__arrow_c_stream__`. `for row in scan` yields its rows as dicts.

    Example:
        >>> import delta_variant as dv
        >>> _ = dv.write_table("clicks", pa.table({"id": [1, 2, 3]}))
        >>> scan = dv.read_table("clicks", where="id > 1")
        >>> scan.count()
        2
        >>> scan.to_pylist()
        [{'id': 2}, {'id': 3}]
    """

    def __init__(self, rows: ScanRows, limit: int | None) -> None:
        """Create a scan of `rows`; raises ValueError or ArgumentTypeError for an invalid limit."""
        self._rows = replace(rows, limit=None if limit is None else to_integer("limit", limit, 0))

    @property
    def limit(self) -> int | None:
        """Return the maximum number of rows, None for all rows."""
        return self._rows.limit

    @property
    def uri(self) -> str:
        """Return the URI or the path of the table."""
        return self._rows.uri

    @property
    def version(self) -> int:
        """Return the version of the table that is read, for changes the last one."""
        return self._rows.version

    @property
    def schema(self) -> pa.Schema:
        """Return the Arrow schema of the rows, in which Variant columns are marked as extension types."""
        return self._rows.schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Return the rows as an iterator over Arrow batches, which are read as they are requested.

        Returns:
            An iterator over `pyarrow.RecordBatch`.

        Raises:
            DataFileError: A file cannot be read.
            MalformedVariantError: A Variant is invalid.
            ConflictingValueError: `value` and `typed_value` of a shredded Variant contradict each other.
            CastError: A value cannot be cast.

        Example:
            >>> import delta_variant as dv
            >>> _ = dv.write_table("clicks", [{"id": 1}, {"id": 2}])
            >>> [batch.num_rows for batch in dv.read_table("clicks").to_batches()]
            [2]
        """
        return self._rows.batches(ReadReport())

    def to_dataset(self, read_dictionary: str | Sequence[str] = (), *, string_views: bool = False) -> Dataset:
        """Return the rows as a dataset of pyarrow, into which engines push projections and filters.

        DuckDB, DataFusion and Polars (`scan_pyarrow_dataset`) accept it. A query reads only the columns that
        it needs, and of Variants only the paths in them. Filters of comparisons, null tests and lists of
        values skip files, row groups and pages by statistics. The result of each filter is that
        of pyarrow, whatever it contains. The dataset always reads the version of the scan.

        Args:
            read_dictionary: The name of a column of strings that is read as a dictionary,
                `dictionary<int32, string>`, or a list of names, as in pyarrow. Engines group and join by a
                column of few distinct strings faster then. No column by default.
            string_views: Whether the other columns of strings have the type `string_view`, by which
                DataFusion groups and joins faster. False by default, because pyarrow has few functions for
                this type.

        Returns:
            A `pyarrow.dataset.Dataset` with the columns of the scan. Name the paths that queries need in
            `columns` of the scan; see `shredded_columns` for all of them.

        Raises:
            ArgumentTypeError: `read_dictionary` is not a string or a list.
            ValueError: `read_dictionary` has a name that is not that of a column of strings.
            DeltaVariantError: While rows are read: see `to_batches`.

        Example:
            >>> import delta_variant as dv
            >>> rows = [{"event": {"id": 1}}, {"event": {"id": 2}}]
            >>> _ = dv.write_table("clicks", rows, variant_columns=["event"])
            >>> dataset = dv.read_table("clicks", columns={"id": "event:id::bigint"}).to_dataset()
            >>> import pyarrow.compute as pc
            >>> dataset.to_table(filter=pc.field("id") > 1).to_pylist()
            [{'id': 2}]
        """
        from .dataset import ScanDataset

        names = one_or_more("names of columns", "read_dictionary", read_dictionary)
        strings = [field.name for field in self.schema if field.type == pa.string()]
        for name in names:
            if name not in strings:
                raise ValueError(
                    f"read_dictionary: expected a column of strings, got {name!r}: the scan has "
                    f"{', '.join(map(repr, strings)) or 'none'}"
                )
        views = dict.fromkeys(strings, VIEW) if string_views else {}
        return ScanDataset(self._rows.with_text_types({**views, **dict.fromkeys(names, DICTIONARY)}))

    def to_lazyframe(self, variants: Literal["json", "bytes"] = "json") -> pl.LazyFrame:
        """Return the rows as a lazy frame of Polars, which reads what its query needs; needs Polars.

        Polars pushes its projection, its predicate and its row limit into the scan. Predicates that it can
        express for pyarrow skip files, row groups and pages by statistics. Polars applies each predicate to
        the rows that are read, with its own rules.

        Args:
            variants: The form of Variants, as in `to_polars`. `"json"` by default.

        Returns:
            A `polars.LazyFrame`. Each `collect` reads the rows again, from the version of the scan.

        Raises:
            ImportError: Polars is not installed.
            DeltaVariantError: While rows are read: see `to_batches`.
            ValueError: `variants` is not one of its values.

        Example:
            >>> import delta_variant as dv
            >>> rows = [{"event": {"id": 1}}, {"event": {"id": 2}}]
            >>> _ = dv.write_table("clicks", rows, variant_columns=["event"])
            >>> frame = dv.read_table("clicks", columns={"id": "event:id::bigint"}).to_lazyframe()
            >>> frame.select("id").sum().collect().item()
            3
        """
        check_installed("polars", "polars")
        check_option("variants", variants, ("json", "bytes"))
        from .lazy_frame import lazy_frame

        return lazy_frame(self._rows, variants)

    def count(self) -> int:
        """Return the number of rows.

        It comes from the statistics and deletion vectors in the log where these decide, which is without a
        predicate, or with one over partition columns. Otherwise only the columns of the predicate are read.
        Values of the selected columns are not read, so errors in them are not raised.

        Returns:
            The number of rows, at most `limit`.

        Raises:
            DeltaVariantError: The predicate cannot be evaluated; see `to_batches`.

        Example:
            >>> import delta_variant as dv
            >>> _ = dv.write_table("clicks", [{"id": 1}, {"id": 2}])
            >>> dv.read_table("clicks", where="id > 1").count()
            1
        """
        return self._rows.count()

    def explain(self) -> Explanation:
        """Read the rows, and return what was read and what was skipped.

        Returns:
            An `Explanation`, whose text is a short report.

        Raises:
            DeltaVariantError: A row cannot be read; see `to_batches`.

        Example:
            >>> import delta_variant as dv
            >>> _ = dv.write_table("clicks", [{"id": 1}, {"id": 2}])
            >>> dv.read_table("clicks", where="id > 5").explain().files_read
            0
        """
        report = ReadReport()
        rows = sum(batch.num_rows for batch in self._rows.batches(report))
        return report.explain(rows)

    def __repr__(self) -> str:
        limit = "" if self.limit is None else f", limit={self.limit}"
        columns = ", ".join(self.schema.names)
        return printable(f"<Scan of {self.uri} at version {self.version}: {columns}{limit}>")

    def _repr_html_(self) -> str | None:
        limit = MAX_ROWS + 1 if self.limit is None else min(self.limit, MAX_ROWS + 1)
        try:
            rows = Scan(self._rows, limit).to_pylist(variants="json")
        except CastError:
            # A notebook shows the text of the scan instead.
            return None
        types = ["variant" if is_variant(each) else type_name(each.type) for each in self.schema]
        first = f", the first {MAX_ROWS} rows" if len(rows) > MAX_ROWS else ""
        caption = f"{self.uri} at version {self.version}{first}"
        cells = [list(row.values()) for row in rows[:MAX_ROWS]]
        return html_table(caption, self.schema.names, cells, types=types)
