"""Parse the statements of Spark SQL that the operations of this package run."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property, partial
from typing import Any, Literal

import pyarrow as pa

from .._checks import check_text
from ..errors import DeltaVariantError
from ..expressions.lexer import GrammarError, parsing
from ..operations.merge.plan import When as Matched
from ..storage.store import TableLocation
from .changes import Assignments, Delete, Insert, Merge, Update, When
from .grammar import StatementGrammar
from .session import Session, Statement, Target, Text
from .tables import (
    Create,
    alteration,
    convert_table,
    optimize_table,
    restore_table,
    show_columns,
    show_detail,
    show_history,
    show_properties,
    vacuum_table,
)

SHOWS_COLUMNS = ("describe [table]", "desc [table]")
"""The words of a statement that Spark runs itself, because it also has views and other tables."""
QUERIES = ("select", "with", "values", "from", "table")
"""The words that begin a query."""


def find_statement(text: str, parameters: Mapping[str, str]) -> ParsedStatement | None:
    """Return the statement in a text, None for a query and for statements that this package does not have."""
    check_text("the query", text)
    statement = ParsedStatement(re.sub(r"[\s;]+\Z", "", text), parameters)
    try:
        return statement if statement.head() else None
    except GrammarError:
        return None


class ParsedStatement(StatementGrammar):
    """A statement whose table is known, and whose other parts are parsed when they are asked for.

    `table` is the name of its table, `words` are those of its rule, and `prefix` the common tables before it.
    """

    words: str
    table: tuple[str, ...]
    prefix = ""

    @property
    def only_shows(self) -> bool:
        """Whether the statement changes nothing."""
        return self.words.startswith(("desc", "show"))

    def locate(self, session: Session) -> TableLocation | None:
        """Return the location of the table, None for a name that the session does not know."""
        if self.words.startswith("convert") and self.table[0].lower() == "parquet":
            return session.find(("delta", *self.table[1:]))
        if not self.words.startswith("create"):
            return session.find(self.table)
        return session.place(self.table, lambda: getattr(self.parsed, "location", None))

    @cached_property
    def parsed(self) -> Statement:
        """The statement after its table.

        Raises ExpressionError, which marks the place in the text that is not understood.
        """
        with parsing(self.text):
            statement = RULES[self.words](self)
            if self.token.kind != "end":
                self.fail("the end of the statement")
        return statement

    def run(self, table: TableLocation, session: Session) -> pa.Table:
        """Run the statement on its table; raises its errors, whose remedies are SQL."""
        try:
            return self.parsed(table, session)
        except DeltaVariantError as error:
            _use_sql(error)
            raise

    def head(self) -> bool:
        """Move past the words of a rule and the name of its table; return whether there is such a rule."""
        if self.is_next("with"):
            self._skip_common_tables()
        words = next((words for words in RULES if self.accept_words(words)), None)
        if words is None:
            return False
        is_path = words in NAMED_BY_PATH and self.token.kind == "string"
        self.words, self.table = words, ("delta", self.string()) if is_path else self.take_qualified_name()
        return True

    def _skip_common_tables(self) -> None:
        start = self.position
        while self.token.kind != "end" and not self.is_next("insert"):
            self._skip()
        self.prefix = self.text[start : self.position] if self.token.kind != "end" else ""

    # Statements that change rows

    def insert(self, *, is_overwrite: bool = False) -> Statement:
        partition: Mapping[str, Text | None] = {}
        if self.accept("partition"):
            partition = dict(self.enclosed_list(lambda: (self.take_name(), self.text_after("="))))
        where = self.expression_text() if not is_overwrite and self.accept_words("replace where") else None
        by_name = self.accept_words("by name")
        columns = None
        if self.is_next("(") and self.following.word not in QUERIES:
            columns = self.take_names()
        if not self.is_next("(", *QUERIES):
            self.fail("a query")
        rows = (self._rows() if self.is_next("values") else None) or self.prefix + self.rest()
        return Insert(Target(self.table), rows, columns, by_name, partition, is_overwrite, where)

    def _rows(self) -> tuple[tuple[Text, ...], ...] | None:
        """Return the rows of VALUES, None if the query goes on or has expressions of its engine."""
        start = self.position
        self.take()
        with suppress(GrammarError):
            rows = self.take_list(self._row)
            if self.token.kind == "end":
                return rows
        self.position = start
        return None

    def _row(self) -> tuple[Text, ...]:
        return self.enclosed_list(self.value_or_default)

    def update(self) -> Statement:
        target = Target(self.table, self.alias("set"))
        self.expect("set")
        self.takes_queries = True
        assignments = self.assignments()
        self.takes_queries = False
        return Update(target, assignments, self.text_after("where"))

    def assignments(self) -> Assignments:
        return self.take_list(self._assignment)

    def _assignment(self) -> tuple[Text, Text]:
        column = self._column()
        if self.is_next(":"):
            self.fail("`=`", "set the whole column: event = variant_set(event, '$.path', value)")
        self.expect("=")
        return column, self.value_or_default()

    def delete(self) -> Statement:
        target = Target(self.table, self.alias("where"))
        return Delete(target, self.text_after("where"))

    def merge(self, *, evolves: bool = False) -> Statement:
        target = Target(self.table, self.alias("using"))
        self.expect("using")
        name, source = (("source",), self.enclosed_query()) if self.is_next("(") else self._table_source()
        given = Target(name, self.alias("on"))
        self.expect("on")
        on = self.expression_text()
        clauses = []
        while self.accept("when"):
            clauses.append(self._clause())
        if not clauses:
            self.fail("`when`")
        return Merge(target, source, given, on, tuple(clauses), evolves)

    def _table_source(self) -> tuple[tuple[str, ...], str]:
        start = self.token.start
        return self.take_qualified_name(), f"select * from {self.text[start : self.position]}"

    def _clause(self) -> When:
        words = next((each for each in MATCHES if self.accept_words(each)), None)
        if words is None:
            self.fail("`matched` or `not matched`")
        rows = MATCHES[words]
        where = self.text_after("and")
        self.expect("then")
        if rows != "not matched" and self.accept("delete"):
            return When(rows, where, is_delete=True)
        self.expect_words("insert" if rows == "not matched" else "update set")
        if rows != "not matched by source" and self.accept("*"):
            return When(rows, where)
        return When(rows, where, updates=self._inserted() if rows == "not matched" else self.assignments())

    def _inserted(self) -> Assignments:
        """Return the assignments in (columns) VALUES (values)."""
        columns = self.enclosed_list(self._column)
        self.expect("values")
        start, values = self.token.start, self._row()
        if len(columns) != len(values):
            raise GrammarError(start, f"expected {len(columns)} values, got {len(values)}")
        return tuple(zip(columns, values, strict=True))

    def _column(self) -> Text:
        start = self.token.start
        self.take_qualified_name()
        return Text(self.text[start : self.position], (0,))

    # Statements that create and alter tables

    def create(self, mode: Literal["error", "ignore", "overwrite"] = "error") -> Statement:
        is_list = self.is_next("(") and self.following.word not in QUERIES
        parts: dict[str, Any] = {"columns": self.enclosed_texts()} if is_list else {}
        while (words := next((each for each in OPTIONS if self.accept_words(each)), None)) is not None:
            name, read = OPTIONS[words]
            if name in parts:
                self.fail("another option", f"{words} is given twice")
            parts[name] = read(self)
        if self.accept("as") or self.is_next("(", *QUERIES):
            parts["query"] = self.rest()
        if not parts:
            self.fail("the columns of the table or a query")
        return Create(mode, **parts)

    def provider(self) -> str:
        if not self.is_next("delta"):
            self.fail("`delta`")
        return self.take().word

    def convert(self) -> Statement:
        collect_stats = not self.accept_words("no statistics")
        partitions = self.enclosed_texts() if self.accept_words("partitioned by") else ()
        return partial(convert_table, partitions=partitions, collect_stats=collect_stats)

    # Statements that maintain and show tables

    def optimize(self) -> Statement:
        where = self.text_after("where")
        columns: tuple[str, ...] = ()
        if self.accept_words("zorder by"):
            columns = self.enclosed_texts() if self.is_next("(") else self.texts()
        return partial(optimize_table, where=None if where is None else where.text, z_order_by=columns)

    def purge(self) -> Statement:
        where = self.text_after("where")
        for symbol in ("apply", "(", "purge", ")"):
            self.expect(symbol)
        return partial(optimize_table, where=None if where is None else where.text, purge=True)

    def vacuum(self) -> Statement:
        hours = None
        self.accept("full")
        if self.accept("retain"):
            hours = float(self.number())
            self.expect("hours")
        return partial(vacuum_table, hours=hours, is_dry_run=self.accept_words("dry run"))

    def restore(self) -> Statement:
        self.accept("to")
        if self.accept_words("version as of"):
            return partial(restore_table, version=int(self.number()))
        self.expect_words("timestamp as of")
        return partial(restore_table, timestamp=self.string())

    def history(self) -> Statement:
        return partial(show_history, limit=int(self.number()) if self.accept("limit") else None)

    def shown_properties(self) -> Statement:
        key = self.enclosed(self.property_key) if self.is_next("(") else None
        return partial(show_properties, key=key)


RULES: Mapping[str, Callable[[ParsedStatement], Statement]] = {
    "insert into [table]": ParsedStatement.insert,
    "insert overwrite [table]": partial(ParsedStatement.insert, is_overwrite=True),
    "update": ParsedStatement.update,
    "delete from": ParsedStatement.delete,
    "merge into": ParsedStatement.merge,
    "merge with schema evolution into": partial(ParsedStatement.merge, evolves=True),
    "create table if not exists": partial(ParsedStatement.create, mode="ignore"),
    "create table": ParsedStatement.create,
    "create or replace table": partial(ParsedStatement.create, mode="overwrite"),
    "convert to delta": ParsedStatement.convert,
    "alter table": alteration,
    "optimize": ParsedStatement.optimize,
    "reorg table": ParsedStatement.purge,
    "vacuum": ParsedStatement.vacuum,
    "restore [table]": ParsedStatement.restore,
    "describe history": ParsedStatement.history,
    "desc history": ParsedStatement.history,
    "describe detail": lambda _: show_detail,
    "desc detail": lambda _: show_detail,
    **dict.fromkeys(SHOWS_COLUMNS, lambda _: show_columns),
    "show tblproperties": ParsedStatement.shown_properties,
}
"""The rule of each statement, by the words before the name of its table."""
NAMED_BY_PATH = frozenset({"optimize", "vacuum"}).union(
    each for each in RULES if each.endswith(("history", "detail"))
)
"""The statements that also take the path of their table as a string."""
MATCHES: Mapping[str, Matched] = {
    "matched": "matched",
    "not matched by source": "not matched by source",
    "not matched [by target]": "not matched",
}
OPTIONS: Mapping[str, tuple[str, Callable[[ParsedStatement], object]]] = {
    "using": ("provider", ParsedStatement.provider),
    "partitioned by": ("partition_by", ParsedStatement.take_names),
    "cluster by": ("cluster_by", ParsedStatement.enclosed_texts),
    "location": ("location", ParsedStatement.string),
    "comment": ("comment", ParsedStatement.string),
    "tblproperties": ("properties", ParsedStatement.properties),
}


REMEDIES: Mapping[str, str] = {
    "mode='append'": "INSERT INTO",
    "mode='overwrite'": "CREATE OR REPLACE TABLE … AS",
    "mode='ignore'": "CREATE TABLE IF NOT EXISTS",
    "schema_mode='merge'": "MERGE WITH SCHEMA EVOLUTION",
    "except_cols": "a list of columns instead of *",
    "enforce_retention_duration=False": "dv.vacuum with enforce_retention_duration=False",
}
"""What to use instead of an argument, by its name, or by its name and its value."""


def _use_sql(error: DeltaVariantError) -> None:
    """Replace the arguments that an error proposes by SQL."""
    found = [REMEDIES.get(f"{name}={value!r}", REMEDIES.get(name)) for name, value in error.remedies]
    if ways := [way for way in found if way is not None]:
        error.message = f"{error.message}: use {' or '.join(ways)}"
        error.remedies = ()
