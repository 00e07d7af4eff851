"""Statements over tables that a Spark session names; their operations run on its executors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr
from pyspark.sql.types import StructType as SparkStruct

from ..._logging import get_logger
from ...errors import ExpressionError
from ...protocol.schema.json_text import parse as parse_schema
from ...protocol.types import DataType, StructField, StructType
from ...statements.parse import SHOWS_COLUMNS, ParsedStatement
from ...storage.store import Memo, RememberedTable, TableLocation, table_uri
from ..columns import to_spark
from ..engine import SparkEngine
from ..running import session_timezone
from .table_names import FORMATS, find_source, full_name

_LOGGER = get_logger(__name__)

DYNAMIC = "spark.sql.sources.partitionOverwriteMode"


@dataclass(frozen=True)
class DataFrameResult:
    """The rows of a query; see `Rows`."""

    data: DataFrame

    @property
    def names(self) -> Sequence[str]:
        return self.data.columns

    @property
    def types(self) -> Sequence[DataType]:
        return [each.type for each in parse_schema(self._numbered.schema.json()).fields]

    @property
    def _numbered(self) -> DataFrame:
        return self.data.toDF(*(f"c{number}" for number in range(len(self.data.columns))))

    def in_order(self, types: Sequence[DataType]) -> DataFrameResult:
        if list(types) == self.types:
            return self
        fields = (StructField(f"c{number}", each) for number, each in enumerate(types))
        ordered = self._numbered.to(to_spark(StructType(tuple(fields))).toNullable())
        return DataFrameResult(ordered.toDF(*self.data.columns))

    def first(self, count: int) -> pa.Table:
        return self.data.limit(count).toArrow()

    def select(self, columns: Mapping[str, tuple[str, DataType]]) -> DataFrame:
        fields = to_spark(StructType(tuple(StructField(name, kind) for name, (_, kind) in columns.items())))
        types = [each.dataType for each in fields.toNullable()]
        values = zip(columns.items(), types, strict=True)
        return self._numbered.select(
            *(expr(text).cast(kind).alias(name) for (name, (text, _)), kind in values)
        )


@dataclass(frozen=True)
class SparkStatements:
    """The session of statements; see `Session`. `query` returns the rows of a query."""

    spark: SparkSession
    storage_options: Mapping[str, str] | None = field(repr=False)
    query: Callable[[str], DataFrame]

    @property
    def timezone(self) -> str:
        return session_timezone(self.spark)

    @property
    def is_dynamic(self) -> bool:
        return str(self.spark.conf.get(DYNAMIC, "static")).lower() == "dynamic"

    def find(self, name: Sequence[str]) -> TableLocation | None:
        """Return the location of a Delta table, None for names of other tables and views."""
        found = find_source(self.spark, name)
        if not isinstance(found, str):
            return None
        engine = SparkEngine(self.spark)
        options = engine.storage_options(found, self.storage_options)
        return RememberedTable(found, options, Memo.of_handle(), engine)

    def place(self, name: Sequence[str], location: Callable[[], str | None]) -> TableLocation | None:
        """Return where a table is created: a path. Names belong to the catalog of Spark."""
        return self.find(name) if name[0].lower() in FORMATS and location() is None else None

    def full_name(self, name: Sequence[str]) -> tuple[str, ...]:
        return tuple(name) if name[0].lower() in FORMATS else full_name(self.spark, name)

    def rows(self, query: str) -> DataFrameResult:
        return DataFrameResult(self.query(query))

    def run(self, statement: ParsedStatement) -> DataFrame | None:
        """Return the rows of a statement, None for one that Spark has to run."""
        location = None if statement.words in SHOWS_COLUMNS else statement.locate(self)
        if location is None:
            return None
        try:
            _ = statement.parsed
        except ExpressionError as error:
            # This package has some clauses of ALTER TABLE.
            if statement.words != "alter table":
                raise
            _LOGGER.info("Spark runs the statement: %s", error)
            return None
        rows = statement.run(location, self)
        if not statement.only_shows:
            # Spark keeps what CACHE TABLE has read of a table.
            self.spark.catalog.refreshByPath(table_uri(location))
        if not rows.num_columns:
            return self.spark.createDataFrame([], SparkStruct([]))
        return self.spark.createDataFrame(rows)
