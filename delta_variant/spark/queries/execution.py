"""Run queries of Spark SQL over tables that Spark's catalog need not know, at the speed of our reader."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import pyarrow as pa
from msgspec.structs import replace
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, MapType, StructField, StructType

from ..._logging import get_logger
from ..._text import quote
from ...errors import ExpressionError, TableNotFoundError
from ...log.snapshot import Snapshot
from ...log.timestamps import to_instant
from ...protocol.schema.arrow import from_arrow
from ...read.plan import plan_files
from ...read.rows import load_readable
from ...read.scope import Scope
from ...statements.parse import find_statement
from ...storage.store import RememberedTable, open_store
from ..columns import to_spark
from ..locations import session_options
from ..monitoring import Monitor
from ..readers import LenientQuery, QueryReader, groups_of_table
from ..reading import read_changes, scan, unsupported_by_scan
from ..running import check_session, is_case_sensitive, parallelism, run_task, session_timezone
from ..tasks import TaskTable
from .parsing import literals_of, parse_query, with_values
from .parts import Changes, Query, escape, field, field_name, name_changes, replace_tables
from .preparation import ViewExpander, check_file_metadata, has_file_metadata, without_file_metadata
from .rewriting import Rewriting, TableRead, rewrite
from .statements import SparkStatements
from .table_names import View, find_source, full_name

_LOGGER = get_logger(__name__)

NESTED = (ArrayType, MapType, StructType)
"""Types of values that may have parts which are never NULL."""

SETTINGS = {
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
}
"""The settings with which our parser reads SQL text as Spark does."""


def sql(
    spark: SparkSession,
    query: str,
    args: Mapping[str, Any] | Sequence[Any] | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Run a query or a statement in Spark SQL over tables of this package.

    Tables are named as in `create_view`, by the session's catalog, or by `delta` and their
    location in backquotes, such as s3://bucket/bronze. Tasks extract the paths of Variants that the query
    names, and skip files and rows by its conditions, as `read_table` does with `columns` and `where`. Spark
    evaluates the rest, so the result and the errors are those of Spark. Names of other tables and views are
    Spark's.

    INSERT, UPDATE, DELETE, MERGE, OPTIMIZE, REORG, VACUUM, RESTORE, ALTER TABLE, DESCRIBE HISTORY, DESCRIBE
    DETAIL and SHOW TBLPROPERTIES on these tables, and CREATE TABLE with a location in backquotes, are the
    operations of a `dv.Table` with a `SparkEngine`, and return what they return in Delta on Spark. Spark runs
    other statements unchanged, and all statements without ANSI mode.

    Args:
        spark: A session, classic or of Spark Connect.
        query: The text of the query or the statement.
        args: The values of its parameters, as in `spark.sql`: by name, or by position.
        storage_options: Options of the object stores of all tables, with the keys of deltalake; sent to the
            executors. By default those of the session's settings for Hadoop's file systems.

    Returns:
        The DataFrame. It is of the versions that are the latest now; the next call reads later ones.

    Raises:
        ExpressionError: The query calls `input_file_name()`, names `_metadata` where it is not supported,
            reads a table as of an expression, or names a column that may be of several tables of one name.
        TableNotFoundError: The location of a view does not contain a table.
        UnsupportedFeatureError: This version cannot read a table.
        DeltaVariantError: A table cannot be read; see `read_table`.

    Example:
        >>> import tempfile
        >>> import delta_variant as dv
        >>> from delta_variant import spark as dvs
        >>> table = tempfile.mkdtemp()
        >>> rows = [{"event": {"user": {"id": 1}}}, {"event": {"user": {"id": 2}}}]
        >>> result = dv.write_table(table, rows, variant_columns=["event"])
        >>> dvs.create_view(spark, "bronze", table)
        >>> query = "select event:user.id::bigint as id from bronze where event:user.id::int > 1"
        >>> dvs.sql(spark, query).collect()
        [Row(id=2)]
        >>> dvs.drop_view(spark, "bronze")
    """
    check_session(spark)
    args = None if args is None else dict(args) if isinstance(args, Mapping) else list(args)
    literals = literals_of(args)
    if (text := with_values(query, literals)) is not None:
        query, args, literals = text, None, {}
    statement = find_statement(query, {})
    if statement is not None and _reads_as_spark(spark) and _is_ansi(spark):
        run_query = partial(sql, spark, storage_options=storage_options)
        found = SparkStatements(spark, storage_options, run_query).run(statement)
        return spark.sql(query, args) if found is None else found
    text, changes = name_changes(query)
    parsed = parse_query(text, literals)
    if parsed is None:
        return spark.sql(query, args)
    tables = _Tables(spark, storage_options)
    tables.read_changes(changes)
    expanded = tables.without_views(parsed, literals)
    if expanded is not parsed:
        try:
            return tables.statement(expanded, args).run()
        except AnalysisException as error:
            _LOGGER.debug("Spark does not accept %r: %s", expanded.text, error)
    unexpanded = tables.statement(parsed, args)
    if not unexpanded.sources:
        return spark.sql(query, args)
    try:
        return unexpanded.run()
    except AnalysisException as error:
        check_file_metadata(parsed, str(error))
        # FROM … INSERT INTO is the one text here that Spark would execute, should it be valid.
        if isinstance(error, ParseException) and "insert" not in query.lower():
            _raise_own_error(spark, query, args)
        raise


def _raise_own_error(spark: SparkSession, query: str, args: Any) -> None:
    """Raise the error of Spark for a text as it is, unless Spark does not know a table of this package.

    Invalid text may have another error with other names in place of its tables: `from` can be a column.
    """
    try:
        spark.sql(query, args)
    except AnalysisException as error:
        if error.getCondition() != "TABLE_OR_VIEW_NOT_FOUND":
            raise error from None


@dataclass(frozen=True)
class _Table:
    """A version of a table that a query reads. `has_files` adds `_metadata`, unless it is there."""

    spark: SparkSession
    snapshot: Snapshot
    storage_options: Mapping[str, str] | None = dataclasses.field(repr=False)
    own_credentials: bool
    has_files: bool = False

    @property
    def scope(self) -> Scope:
        """Return the columns of the table; the moment of the query is known to Spark only."""
        scope = Scope.of_read(self.snapshot.configuration).timeless()
        return scope.with_file_column() if self.has_files else scope

    def _fields(self) -> list[StructField]:
        hidden = pa.schema([self.scope.schema.field(name) for name in self.scope.hidden])
        return [*to_spark(self.snapshot.schema).fields, *to_spark(from_arrow(hidden)).fields]

    def empty(self) -> DataFrame:
        return self.spark.createDataFrame([], StructType(self._fields()))

    def subquery(self) -> str | None:
        """Return a subquery with the columns of the table, None if its text would not have their types."""
        fields = self._fields()
        if not fields or any(not each.nullable or isinstance(each.dataType, NESTED) for each in fields):
            return None
        columns = (f"CAST(NULL AS {each.dataType.simpleString()}) AS {quote(each.name)}" for each in fields)
        return f"(SELECT {', '.join(columns)})"

    def read(self, what: TableRead) -> DataFrame:
        """Return the rows and columns that a query reads, and maybe others."""
        monitor = Monitor(self.spark, "READ", self.snapshot.uri)
        plan = plan_files(self.snapshot, what.predicate)
        monitor.report({**plan.counts, "version": self.snapshot.version})
        files = plan.files
        if what.outputs is None and not unsupported_by_scan(
            self.spark, self.snapshot, files, own_credentials=self.own_credentials
        ):
            return scan(self.spark, self.snapshot, files)
        outputs = what.outputs or self.scope.whole_columns()
        query = LenientQuery.of_outputs(outputs, what.predicate, what.failed)
        task = QueryReader(TaskTable.of(self.snapshot, self.storage_options), None, None, "error", query)
        groups = groups_of_table(files, parallelism(self.spark))
        return run_task(self.spark, groups, task, task.schema)


@dataclass(frozen=True)
class _Frame:
    """Rows that Spark reads."""

    df: DataFrame

    def empty(self) -> DataFrame:
        return self.df.limit(0)

    def subquery(self) -> None:
        """Return None, because no text has the columns."""

    def read(self, what: TableRead) -> DataFrame:
        return self.df


@dataclass(frozen=True)
class _Statement:
    """A query over tables of this package, by the index of their reference."""

    spark: SparkSession
    query: Query
    args: Any
    sources: Mapping[int, _Table | _Frame]

    def run(self) -> DataFrame:
        """Return the result of the query, by tasks where they return what Spark does."""
        expected = self.analyzed()
        rewriting = self._rewriting()
        if rewriting is not None:
            try:
                found = self._run(rewriting.text, rewriting.reads)
                types = _types(found.schema)
            except AnalysisException as error:
                _LOGGER.debug("Spark does not accept %r: %s", rewriting.text, error)
            else:
                if types == _types(expected):
                    _LOGGER.debug("runs as %r", rewriting.text)
                    return found if found.columns == expected.names else found.toDF(*expected.names)
                _LOGGER.debug("%r has columns of other types", rewriting.text)
        _LOGGER.info("Spark runs the query unchanged: %s", self.query.text)
        unchanged = replace_tables(self.query, {number: field(number) for number in self.sources}, {})
        return self._run(unchanged, dict.fromkeys(self.sources, TableRead()))

    def analyzed(self) -> StructType:
        """Return the columns of the query over empty tables, or raise Spark's error."""
        # Spark analyzes a subquery much faster than it makes a DataFrame.
        subqueries = {
            number: subquery
            for number, source in self.sources.items()
            if self.query.tables[number].is_plain and (subquery := source.subquery()) is not None
        }
        try:
            return self._over_empty(subqueries)
        except AnalysisException:
            # The message of this error would have the text of the subqueries.
            return self._over_empty({})

    def _over_empty(self, subqueries: Mapping[int, str]) -> StructType:
        texts = {number: field(number) for number in self.sources}
        texts |= {number: escape(text) for number, text in subqueries.items()}
        frames = {number: self.sources[number].empty() for number in texts.keys() - subqueries.keys()}
        # A session of Spark Connect analyzes a query when its schema is read.
        return self._sql(replace_tables(self.query, texts, {}), frames).schema

    def _rewriting(self) -> Rewriting | None:
        if not _reads_as_spark(self.spark) or any(isinstance(each, _Frame) for each in self.sources.values()):
            return None
        tables = {
            number: source.scope for number, source in self.sources.items() if isinstance(source, _Table)
        }
        # Without ANSI mode, Spark compares values of different types by other rules than the tasks.
        return rewrite(self.query, tables, with_conditions=_is_ansi(self.spark))

    def _run(self, text: str, reads: Mapping[int, TableRead]) -> DataFrame:
        return self._sql(text, {number: self.sources[number].read(read) for number, read in reads.items()})

    def _sql(self, text: str, frames: Mapping[int, DataFrame]) -> DataFrame:
        named = {field_name(number): df for number, df in frames.items()}
        # Without DataFrames, Spark does not take the text for a format.
        return self.spark.sql(text if named else text.format(), self.args, **named)


def _types(schema: StructType) -> list[Any]:
    return [each.dataType for each in schema.fields]


class _Tables:
    """The tables of this package that queries name; each is loaded once."""

    def __init__(self, spark: SparkSession, storage_options: Mapping[str, str] | None) -> None:
        self._spark = spark
        self._storage_options = storage_options
        self._timezone = session_timezone(spark)
        self._find_source = cache(partial(find_source, spark))
        self._loaded: dict[tuple[str, int | None, str | None], _Table] = {}
        self._changes: dict[str, DataFrame] = {}

    def _find(self, name: Sequence[str]) -> str | View | None:
        return None if name[-1] in self._changes else self._find_source(tuple(name))

    def read_changes(self, calls: Mapping[str, Changes]) -> None:
        """Read what calls of `table_changes` return; queries name it by the keys."""
        for key, call in calls.items():
            location = self._find(call.table)
            if not isinstance(location, str):
                raise TableNotFoundError(
                    f"table_changes: cannot find the Delta table {'.'.join(call.table)!r}"
                )
            options = session_options(self._spark, location, self._storage_options)
            start, end = (
                to_instant(each, self._timezone) if isinstance(each, str) else each
                for each in (call.start, call.end)
            )
            table = RememberedTable(location, options)
            self._changes[key] = read_changes(self._spark, table, start=start, end=end)

    def without_views(self, query: Query, parameters: Mapping[str, str] | Sequence[str]) -> Query:
        """Return a query with the text of views of Spark in their place, where it has the same columns."""
        if not any(isinstance(self._find(each.parts), View) for each in query.tables):
            return query

        def analyze(view: Query) -> StructType:
            return self.statement(view, None).analyzed()

        return ViewExpander(self._spark, self._find, analyze).expand(query, parameters)

    def statement(self, query: Query, args: Any) -> _Statement:
        """Return a query over the tables of this package that it names."""
        sources: dict[int, _Table | _Frame] = {}
        for number, table in enumerate(query.tables):
            changes = self._changes.get(table.parts[-1])
            location = self._find(table.parts) if changes is None else None
            if changes is not None:
                sources[number] = _Frame(changes)
            elif isinstance(location, str) and table.has_computed_version:
                raise ExpressionError(
                    f"cannot read {'.'.join(table.parts)} AS OF an expression: write the number of a "
                    "version, or a timestamp as a literal"
                )
            elif isinstance(location, str):
                sources[number] = self._load(location, table.version, table.timestamp)
        tables = {number: each for number, each in sources.items() if isinstance(each, _Table)}
        if tables and has_file_metadata(query):
            tables = {number: dataclasses.replace(each, has_files=True) for number, each in tables.items()}
            sources |= tables
            hidden = {number for number, each in tables.items() if each.scope.hidden}
            query = without_file_metadata(query, hidden)
        if query.has_schemas:
            named = (replace(each, parts=full_name(self._spark, each.parts)) for each in query.tables)
            query = replace(query, tables=list(named))
        return _Statement(self._spark, query, args, sources)

    def _load(self, location: str, version: int | None, timestamp: str | None) -> _Table:
        key = location, version, timestamp
        if key not in self._loaded:
            options = session_options(self._spark, location, self._storage_options)
            moment = None if timestamp is None else to_instant(timestamp, self._timezone)
            snapshot = load_readable(open_store(location, options), version, moment)
            snapshot = snapshot.in_timezone(self._timezone)
            self._loaded[key] = _Table(self._spark, snapshot, options, bool(self._storage_options))
        return self._loaded[key]


def _is_ansi(spark: SparkSession) -> bool:
    return spark.conf.get("spark.sql.ansi.enabled") == "true"


def _reads_as_spark(spark: SparkSession) -> bool:
    """Return whether our parser reads SQL text as Spark does."""
    conf = spark.conf
    return not is_case_sensitive(spark) and all(conf.get(name) == value for name, value in SETTINGS.items())
