"""The engine of tables whose operations run on the executors of a Spark session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from .._checks import check_option
from ..execution import Engine
from ..protocol.actions import Txn
from ..storage.store import Memo, RememberedTable, Store, TableLocation, location_key, remember, table_uri
from .executor import SparkExecutor
from .locations import session_options
from .merging import DataFrameSource
from .queries.table_names import resolve_table
from .running import check_session, session_timezone
from .writing import DataFrameRows


@dataclass
class RecalledTables:
    """The tables of one stream, by `location_key`.

    Only those of the last batch are kept, because a stream may merge into another table in each batch.
    """

    _tables: dict[str, TableLocation] = field(default_factory=dict)

    @contextmanager
    def of_batch(self) -> Iterator[None]:
        """Let `recall` return these tables in the block, which belongs to one batch."""
        used: dict[str, TableLocation] = {}
        token = _CURRENT.set((self._tables, used))
        try:
            yield
        finally:
            _CURRENT.reset(token)
            self._tables = used


_CURRENT: ContextVar[tuple[dict[str, TableLocation], dict[str, TableLocation]] | None] = ContextVar(
    "tables of a micro-batch", default=None
)


def recall(table: TableLocation) -> TableLocation:
    """Return a location with the memo of the batch before, or `table` itself outside of micro-batches."""
    current = _CURRENT.get()
    if current is None:
        return table
    remembered = remember(table)
    if remembered is table:
        return table
    before, used = current
    key = location_key(table)
    return used.setdefault(key, before.get(key, remembered))


@dataclass(frozen=True)
class SparkEngine(Engine):
    """Runs the operations of a `delta_variant.Table` on the executors of a Spark session.

    The driver plans each operation and commits it. Executors read and write the data files, with the code
    and the results of one process. A location is a path, a URI, or the name of a Delta table in the
    session's catalog or of a view of `create_view`. Options of the object store are by default those of the
    session's settings for Hadoop's file systems. They are sent to the executors.

    Files of tasks that fail or that Spark repeats are removed. A job that fails commits nothing.

    Attributes:
        spark: A session, classic or of Spark Connect.
        auto_compact: Whether to compact the small files of the partitions that a write or a change of rows
            adds files to, of each that has at least 50, in a commit of its own. A failure is logged, and the
            next write tries again. None, the default, is as the table property
            `delta.autoOptimize.autoCompact` says, False without it.
        optimize_write: Whether a write of a DataFrame distributes its rows by the files that they belong to:
            each partition of the table gets as few files as `target_file_size` permits, instead of one from
            each task. The rows keep their order, are computed once, and are persisted in a compressed form
            while the write runs. None, the default, is as the table property
            `delta.autoOptimize.optimizeWrite` says. Without it, writes to partitioned tables are optimized if
            `spark.sql.adaptive.enabled` is set.
        one_shredding: Whether a write of a DataFrame infers one shredding schema for all files, from the
            first rows of some partitions. The rows are persisted while the write runs, so that they are
            computed once. By default each file has a schema of its own.

    Example:
        >>> import tempfile
        >>> import delta_variant as dv
        >>> from delta_variant import spark as dvs
        >>> table = dv.Table(tempfile.mkdtemp(), engine=dvs.SparkEngine(spark))
        >>> _ = table.append(spark.range(1, 3))
        >>> _ = table.delete("id = 1")
        >>> table.restore(0).version
        2
    """

    spark: SparkSession
    auto_compact: bool | None = field(default=None, kw_only=True)
    optimize_write: bool | None = field(default=None, kw_only=True)
    one_shredding: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        check_session(self.spark)
        check_option("auto_compact", self.auto_compact, (True, False, None))
        check_option("optimize_write", self.optimize_write, (True, False, None))
        check_option("one_shredding", self.one_shredding, (True, False))

    @property
    def timezone(self) -> str:
        """Return the time zone of the session."""
        return session_timezone(self.spark)

    def locate(self, table: TableLocation) -> TableLocation:
        """Return the location of a table: a name is that of the session, as in `read_table`."""
        return recall(resolve_table(self.spark, table))

    def storage_options(
        self, table: TableLocation, storage_options: Mapping[str, str] | None
    ) -> Mapping[str, str] | None:
        """Return the options of the store of a table, with those of the session."""
        return session_options(self.spark, table, storage_options)

    def rows_to_write(self, data: Any, variant_columns: Sequence[str]) -> DataFrameRows | None:
        """Return the rows of a DataFrame to write, None for rows in memory."""
        if not isinstance(data, DataFrame):
            return None
        return DataFrameRows(data, variant_columns, self.optimize_write, self.one_shredding)

    def merge_source(self, source: Any, variant_columns: Sequence[str]) -> DataFrameSource | None:
        """Return the source of a merge for a DataFrame, None for rows in memory."""
        return DataFrameSource.of(source, variant_columns) if isinstance(source, DataFrame) else None

    def executor(
        self, store: Store, storage_options: Mapping[str, str] | None, operation: str, txn: Txn | None
    ) -> SparkExecutor:
        """Return an executor for one operation on a table; raises DeltaVariantError for a stopped session."""
        check_session(self.spark)
        return SparkExecutor(self.spark, store, storage_options, operation, txn, self.auto_compact)


def locate_for(engine: SparkEngine, table: TableLocation) -> RememberedTable:
    """Return the location of a table whose operations run on an engine."""
    location = engine.locate(table)
    options = engine.storage_options(location, None)
    return RememberedTable(table_uri(location), options, getattr(location, "_memo", Memo()), engine)
