"""Tables as frames of Polars and pandas, with a typed column for each shredded path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .._checks import check_installed
from ..log.snapshot import Snapshot
from ..log.timestamps import Timestamp
from ..operations.read import read_table
from ..read.rows import load_readable
from ..storage.store import TableLocation
from .shape import check_strict, typed_paths

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


def scan_delta(
    table: TableLocation | Snapshot,
    *,
    columns: Mapping[str, str] | Sequence[str] | None = None,
    strict: bool = True,
    version: int | None = None,
    timestamp: Timestamp | None = None,
) -> pl.LazyFrame:
    """Return a lazy frame of Polars with the columns and the typed paths of a table.

    Polars opens no table with the feature `variantShredding` itself. It pushes its projection, its predicate
    and its row limit into this frame, as into that of `Scan.to_lazyframe`.

    Args:
        table: A path, a URI, a `Table`, a `Snapshot` or a `deltalake.DeltaTable`.
        columns: SQL expressions, as in `read_table`. None, the default, is each column, with whole Variants
            as JSON text, and each shredded path, by the names and types of `shredded_columns`; lists are
            among them.
        strict: Whether a value that cannot be cast to the type of its path is an error, True by default, or
            NULL. False is for the shredded paths, without `columns`.
        version: The version to read. None, the default, reads the latest version.
        timestamp: A timezone-aware datetime or an ISO 8601 string, as in `read_table`. None by default.

    Returns:
        A `polars.LazyFrame`.

    Raises:
        ModuleNotFoundError: Polars is not installed.
        TableNotFoundError: There is no table at this location.
        DeltaVariantError: The table cannot be read; see `read_table`.

    Example:
        >>> import polars as pl
        >>> import pyarrow as pa
        >>> import delta_variant as dv
        >>> schema = dv.ShreddingSchema.of({"user": {"id": pa.int64()}})
        >>> rows = [{"id": 1, "event": {"user": {"id": 7}}}]
        >>> _ = dv.write_table("clicks", rows, variant_columns=["event"], shredding=schema)
        >>> dv.scan_delta("clicks").filter(pl.col("event.user.id") == 7).collect().rows()
        [(1, '{"user":{"id":7}}', 7)]
    """
    check_installed("polars", "polars")
    check_strict(strict, columns)
    snapshot = load_readable(table, version, timestamp)
    if columns is None:
        columns = typed_paths(snapshot, strict=strict)
    return read_table(snapshot, columns=columns).to_lazyframe()


def read_delta(
    table: TableLocation | Snapshot,
    *,
    columns: Mapping[str, str] | Sequence[str] | None = None,
    where: str | None = None,
    strict: bool = True,
    version: int | None = None,
    timestamp: Timestamp | None = None,
) -> pd.DataFrame:
    """Return a data frame of pandas with the columns and the typed paths of a table.

    Args:
        table: A path, a URI, a `Table`, a `Snapshot` or a `deltalake.DeltaTable`.
        columns: SQL expressions, as in `read_table`. None, the default, is each column, with whole Variants
            as Python objects, and each shredded path, as in `scan_delta`.
        where: An SQL predicate. Only rows for which it is true are read. None, the default, reads all.
        strict: Whether a value that cannot be cast to the type of its path is an error, True by default, or
            NULL. False is for the shredded paths, without `columns`.
        version: The version to read. None, the default, reads the latest version.
        timestamp: A timezone-aware datetime or an ISO 8601 string, as in `read_table`. None by default.

    Returns:
        A `pandas.DataFrame`.

    Raises:
        ModuleNotFoundError: pandas is not installed.
        TableNotFoundError: There is no table at this location.
        DeltaVariantError: The table cannot be read; see `read_table`.

    Example:
        >>> import pyarrow as pa
        >>> import delta_variant as dv
        >>> schema = dv.ShreddingSchema.of({"user": {"id": pa.int64()}})
        >>> rows = [{"id": 1, "event": {"user": {"id": 7}}}]
        >>> _ = dv.write_table("clicks", rows, variant_columns=["event"], shredding=schema)
        >>> dv.read_delta("clicks", where="id < 5")["event.user.id"].tolist()
        [7]
    """
    check_strict(strict, columns)
    snapshot = load_readable(table, version, timestamp)
    if columns is None:
        columns = typed_paths(snapshot, strict=strict)
    return read_table(snapshot, columns=columns, where=where).to_pandas()
