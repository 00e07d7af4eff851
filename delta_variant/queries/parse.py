"""Parse a query in the dialect of Spark and Databricks. Its expressions have the grammar of this package."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations, islice, product
from typing import Any, TypeAlias, TypeVar, cast

import msgspec

from .._checks import check_text
from ..expressions.calls import TABLE_FUNCTIONS
from ..expressions.grammar import Grammar
from ..expressions.lexer import GrammarError, Token, parsing, parts_of_name
from ..expressions.tree import Expression, Literal, Name
from .functions import AGGREGATES, WINDOW_FUNCTIONS
from .syntax import (
    ALL,
    AggregateCall,
    Derived,
    Explode,
    Item,
    Join,
    JoinKind,
    Marked,
    Select,
    SetOperation,
    SortKey,
    Source,
    Statement,
    Subquery,
    TableName,
    Values,
    WindowCall,
    mark,
)

Part = TypeVar("Part")

CLAUSES = frozenset(
    {"from", "where", "group", "having", "qualify", "order", "sort", "cluster", "distribute", "limit"}
    | {"offset", "union", "intersect", "except", "minus", "window", "lateral", "tablesample", "pivot"}
    | {"unpivot", "join", "inner", "left", "right", "full", "cross", "natural", "semi", "anti", "on"}
    | {"using", "over", "filter", "within", "for", "version", "timestamp", "as"}
)
"""The words that end an item, so that they are aliases only after `as` or in backquotes."""
PAIRED = frozenset(
    {"order", "group", "sort", "cluster", "distribute", "window", "over", "filter", "within", "for"}
    | {"version", "timestamp", "tablesample", "pivot", "unpivot"}
)
"""Those that begin a clause only with what follows them, so that they are aliases at the end of an item."""
QUERY_ENDS = ("union", "except", "minus", "intersect", "order", "limit", "offset")
"""The words of a query after a query in parentheses."""
JOINS: dict[tuple[str, ...], JoinKind] = {
    ("join",): "inner",
    ("inner", "join"): "inner",
    ("cross", "join"): "inner",
    ("left", "join"): "left",
    ("left", "outer", "join"): "left",
    ("right", "join"): "right",
    ("right", "outer", "join"): "right",
    ("full", "join"): "full",
    ("full", "outer", "join"): "full",
    ("left", "semi", "join"): "semi",
    ("semi", "join"): "semi",
    ("left", "anti", "join"): "anti",
    ("anti", "join"): "anti",
}
JOINS.update(
    (("natural", *words), kind)
    for words, kind in [*JOINS.items()]
    if words[0] != "cross" and kind not in ("semi", "anti")
)
GroupingSets: TypeAlias = Sequence[tuple[Expression, ...]]
MAX_GROUPING_SETS = 65_535
"""The limit of DuckDB, which runs the queries."""


def _rollup(keys: GroupingSets) -> Iterator[GroupingSets]:
    return (keys[:count] for count in range(len(keys), -1, -1))


def _cube(keys: GroupingSets) -> Iterator[GroupingSets]:
    return chain.from_iterable(combinations(keys, count) for count in range(len(keys), -1, -1))


GROUPING_SETS = {"rollup": _rollup, "cube": _cube}


def parse_statement(text: str, parameters: Mapping[str, Literal]) -> tuple[Statement, list[Marked]]:
    """Return the query in a text, and the trees of its marks.

    Raises ExpressionError, which marks the place in the text that is not understood.
    """
    check_text("the query", text)
    grammar = _QueryGrammar(text, parameters)
    with parsing(text):
        statement = grammar.statement()
        grammar.accept(";")
        if grammar.token.kind != "end":
            grammar.fail("a clause of a query or the end")
    return statement, grammar.marked


class _QueryGrammar(Grammar):
    def __init__(self, text: str, parameters: Mapping[str, Literal]) -> None:
        # The lexer of expressions has no semicolon.
        super().__init__(re.sub(r"[\s;]+\Z", "", text))
        self.parameters = parameters
        self.marked: list[Marked] = []
        self.named_windows: list[tuple[int, int, str]] = []
        """The numbers of the marks of the SELECT that name a window, with its position and its name."""

    def statement(self) -> Statement:
        named, self.named_windows = self.named_windows, []
        tables = self._common_tables() if self.accept("with") else ()
        body = self._union()
        order = self._order()
        self._define_windows({})
        self.named_windows = named
        limit = None if not self.accept("limit") or self.accept("all") else self._count("limit")
        offset = self._count("offset") if self.accept("offset") else 0
        return Statement(tables, body, order, limit, offset)

    def _common_tables(self) -> tuple[Derived, ...]:
        if self.is_next("recursive") and self.following.word:
            self.fail("a table name", "recursive queries are not supported")
        return self.take_list(self._common_table)

    def _common_table(self) -> Derived:
        name = self.take_name()
        columns = self.take_names() if self.is_next("(") and not self._encloses_query() else ()
        self.accept("as")
        return Derived(self.enclosed(self.statement), name, columns)

    def _union(self) -> Any:
        left = self._intersection()
        while self.is_next("union", "except", "minus"):
            kind = "union" if self.take().word == "union" else "except"
            left = self._set_operation(kind, left, self._intersection)
        return left

    def _intersection(self) -> Any:
        left = self._select_or_query()
        while self.accept("intersect"):
            left = self._set_operation("intersect", left, self._select_or_query)
        return left

    def _set_operation(self, kind: str, left: Any, read: Callable[[], Any]) -> SetOperation:
        is_all = self.accept("all")
        if not is_all:
            self.accept("distinct")
        return SetOperation(cast(Any, kind), is_all, left, read())

    def _select_or_query(self) -> Any:
        if self.accept("("):
            statement = self.statement()
            self.expect(")")
            return statement
        if self.is_next("values") and self.begins_value(self.following):
            return self._values()
        if self.accept("table"):
            source = TableName(self.take_qualified_name(), None, None, None)
            return Select((Item(None, "*"),), source, None, None, None, None, None, distinct=False)
        if not self.accept("select"):
            self.fail("a query, or a statement that changes, maintains or shows a table")
        return self._select()

    def _values(self) -> Values:
        self.take()
        return Values(self.take_list(self._row))

    def _row(self) -> tuple[Expression, ...]:
        if not self.accept("("):
            return (self.expression(),)
        values = self.take_list(self.expression)
        self.expect(")")
        return values

    def _begins_row(self, token: Token) -> bool:
        """Return whether a token after `values` in FROM begins a row, and not the alias of such a table."""
        return self.begins_value(token) and token.kind not in ("word", "quoted")

    def _select(self) -> Select:
        distinct = self.is_next("distinct") and self.begins_value_or_star(self.following)
        if distinct or (self.is_next("all") and self.begins_value_or_star(self.following)):
            self.take()
        items = self.take_list(self._item)
        source = self._from() if self.accept("from") else None
        where = self.expression() if self.accept("where") else None
        groups, sets = self._groups() if self.accept("group") else (None, None)
        having = self.expression() if self.accept("having") else None
        windows = self._windows()
        qualify = self.expression() if self.accept("qualify") else None
        self._define_windows({**windows, **self._windows()})
        return Select(items, source, where, groups, sets, having, qualify, distinct)

    def _windows(self) -> Mapping[str, WindowCall]:
        """Return the windows of the clause WINDOW by name, none without the clause."""
        return dict(self.take_list(self._named_window)) if self.accept("window") else {}

    def _named_window(self) -> tuple[str, WindowCall]:
        name = self.take_name()
        self.expect("as")
        return name, self._window(AggregateCall("", (), False, None))

    def _define_windows(self, windows: Mapping[str, WindowCall]) -> None:
        """Put the windows of a SELECT in place of their names."""
        for number, start, name in self.named_windows:
            if name not in windows:
                raise GrammarError(start, f"the window `{name}` is not defined", "add WINDOW … AS (…)")
            call = cast(WindowCall, self.marked[number]).call
            self.marked[number] = msgspec.structs.replace(windows[name], call=call)
        self.named_windows = []

    def begins_value_or_star(self, token: Token) -> bool:
        """Return whether an item of SELECT can begin with a token."""
        return self.begins_value(token) or token.text in ("*", ":")

    def _item(self) -> Item:
        start, qualifier = self.position, []
        while self.token.kind in ("word", "quoted") and self.following.text == ".":
            qualifier.append(self.take_name())
            self.take()
        if self.accept("*"):
            return Item(None, "*", qualifier=tuple(qualifier), excluded=self._excluded())
        self.position = start
        start = self.token.start
        value = self.expression()
        text = self.text[start : self.position]
        alias = self._alias()
        column = value.parts[-1] if isinstance(value, Name) and "\0" not in value.parts[0] else text
        return Item(value, column if alias is None else alias)

    def _excluded(self) -> tuple[str, ...]:
        is_listed = self.is_next("except") and self.following.text == "(" and self.take()
        return self.take_names() if is_listed else ()

    def _alias(self) -> str | None:
        if self.accept("as"):
            return self.take_name()
        token = self.token
        is_paired = token.word in PAIRED and (self.following.text == "," or self._ends_item(self.following))
        is_name = token.kind == "quoted" or (
            token.kind == "word" and (is_paired or token.word not in CLAUSES)
        )
        return self.take_name() if is_name and self.position != self.end_of_path else None

    def _from(self) -> Source:
        source = self._joined(None)
        while self.accept(","):
            if self.is_next("lateral"):
                source = self._joined(self._lateral(source))
            else:
                source = Join(source, self._joined(None), "inner", None, ())
        return source

    def _joined(self, source: Source | None) -> Source:
        source = self._table() if source is None else source
        while (words := self._join_words()) is not None:
            is_natural = words[0] == "natural"
            if self.is_next("lateral") and JOINS[words] == "inner" and not is_natural:
                source = self._lateral(source)
                continue
            right = self._table()
            takes_condition = words[0] != "cross" and not is_natural
            on = self.expression() if takes_condition and self.accept("on") else None
            using = self.take_names() if on is None and takes_condition and self.accept("using") else ()
            source = Join(source, right, JOINS[words], on, None if is_natural else using)
        return source

    def _join_words(self) -> tuple[str, ...] | None:
        start, words = self.position, []
        while any(self.token.word in known for known in JOINS):
            words.append(self.take().word)
            if words[-1] == "join" and tuple(words) in JOINS:
                return tuple(words)
        self.position = start
        return None

    def _lateral(self, left: Source) -> Explode:
        self.expect("lateral")
        function = self.token.word
        if function not in TABLE_FUNCTIONS or self.following.text != "(":
            self.fail("variant_explode(…) or variant_explode_outer(…)", "other laterals are not supported")
        self.take()
        arguments = super().arguments(self.expression)
        if len(arguments) != 1:
            self.fail("one argument")
        alias = self._alias()
        return Explode(left, function, arguments[0], alias, self._columns_of(alias))

    def _table(self) -> Source:
        if self.accept("("):
            if not self._begins_query(")"):
                source = self._from()
                self.expect(")")
                return source
            statement = self.statement()
            self.expect(")")
            return self._derived(statement)
        if self.is_next("values") and self._begins_row(self.following):
            return self._derived(Statement((), self._values(), (), None, 0))
        if self._is_call():
            return self._changes()
        parts = self.take_qualified_name()
        version, timestamp = self._time_travel()
        return TableName(parts, version, timestamp, self._alias())

    def _derived(self, statement: Statement) -> Derived:
        alias = self._alias()
        return Derived(statement, alias, self._columns_of(alias))

    def _columns_of(self, alias: str | None) -> tuple[str, ...]:
        return self.take_names() if alias is not None and self.is_next("(") else ()

    def _changes(self) -> TableName:
        """Return a call of `table_changes` with the name of a table, a first and a last version or time."""
        if not self.accept("table_changes"):
            self.fail("a table", "the functions of tables are `table_changes` and `lateral variant_explode`")
        start = self.token.start
        name, *versions = self.enclosed_list(self._constant)
        if not isinstance(name, str) or not all(isinstance(each, int | str) for each in versions):
            raise GrammarError(start, "expected the name of a table, then versions or timestamps")
        if len(versions) not in (1, 2):
            raise GrammarError(start, "expected a first version, and a last one or none")
        return TableName(parts_of_name(name), None, None, self._alias(), tuple(versions))

    def _time_travel(self) -> tuple[int | None, str | None]:
        self.is_next("for") and self.following.word in ("version", "timestamp") and self.take()
        if not (self.is_next("version", "timestamp") and self.following.word == "as"):
            return None, None
        word = self.take().word
        self.take()
        self.expect("of")
        start = self.token.start
        value = self._constant()
        if word == "version" and isinstance(value, int):
            return value, None
        if word == "timestamp" and isinstance(value, str):
            return None, value
        raise GrammarError(start, f"expected {'a version' if word == 'version' else 'a timestamp as text'}")

    def _constant(self) -> Any:
        value = self.value()
        if not isinstance(value, Literal):
            self.fail("a constant")
        return value.value.as_py()

    def _count(self, clause: str) -> int:
        start = self.token.start
        value = self._constant()
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise GrammarError(start, f"{clause}: expected an integer from 0, got {value!r}")
        return value

    def _groups(self) -> tuple[Any, Any]:
        """Return the keys of GROUP BY and its grouping sets, None for one set of all."""
        self.expect("by")
        if self._is_all_items():
            self.take()
            return "all", None
        parts = self.take_list(self._group_part)
        keys = [sets[0] for sets, is_key in parts if is_key]
        found = [sets for sets, _ in parts]
        if len(keys) == len(parts):
            if self.is_next("with") and self.following.word in GROUPING_SETS:
                self.take()
                found = [self._merged(GROUPING_SETS[self.take().word](keys))]
            elif (given := self._grouping_sets()) is not None:
                found = [given]
            else:
                return tuple(chain(*keys)), None
        sets = self._merged(product(*found))
        known = list(dict.fromkeys(chain(*keys, *sets)))
        return tuple(known), tuple(tuple(map(known.index, each)) for each in sets)

    def _group_part(self) -> tuple[GroupingSets, bool]:
        """Return the grouping sets of a part of GROUP BY, and whether it is a key."""
        sets = self._grouping_sets()
        return ([(self.expression(),)], True) if sets is None else (sets, False)

    def _grouping_sets(self) -> GroupingSets | None:
        """Return the sets of ROLLUP, CUBE or GROUPING SETS, None for something else."""
        if self.is_next(*GROUPING_SETS) and self.following.text == "(":
            sets_of = GROUPING_SETS[self.take().word]
            return self._merged(sets_of(self.enclosed_list(self._grouping_set)))
        if self.is_next("grouping") and self.following.word == "sets":
            self.take()
            self.take()
            return self._merged((each,) for each in chain(*self.enclosed_list(self._given_sets)))
        return None

    def _merged(self, parts: Iterable[GroupingSets]) -> GroupingSets:
        """Return a grouping set for the sets that each item joins. Raises GrammarError for too many."""
        sets = [tuple(chain(*each)) for each in islice(parts, MAX_GROUPING_SETS + 1)]
        if len(sets) > MAX_GROUPING_SETS:
            self.fail("fewer keys", f"GROUP BY has more than {MAX_GROUPING_SETS:,} grouping sets")
        return sets

    def _given_sets(self) -> GroupingSets:
        sets = self._grouping_sets()
        return [self._grouping_set()] if sets is None else sets

    def _grouping_set(self) -> tuple[Expression, ...]:
        """Return a key, or the keys in parentheses."""
        start = self.position
        if self.accept("("):
            keys = () if self.is_next(")") else self.take_list(self.expression)
            if self.accept(")") and self.is_next(",", ")"):
                return tuple(keys)
            # The parentheses are those of an expression, as in `(a + 1) * 2`.
            self.position = start
        return (self.expression(),)

    def _order(self) -> tuple[SortKey, ...]:
        if not self.accept("order"):
            return ()
        self.expect("by")
        if self._is_all_items("asc", "desc", "nulls"):
            self.take()
            return (self._directed(ALL),)
        return self.take_list(self._sort_key)

    def _is_all_items(self, *words: str) -> bool:
        """Return whether ALL is next, in place of expressions, before the end of a clause or `words`."""
        return self.is_next("all") and (self._ends_item(self.following) or self.following.word in words)

    def _ends_item(self, token: Token) -> bool:
        """Return whether a token ends the last item of a clause."""
        return token.kind == "end" or token.text == ")" or token.word in CLAUSES

    def _sort_key(self) -> SortKey:
        return self._directed(self.expression())

    def _directed(self, value: Expression) -> SortKey:
        descending = self.accept("desc")
        if not descending:
            self.accept("asc")
        if not self.accept("nulls"):
            return SortKey(value, descending, not descending)
        if not self.is_next("first", "last"):
            self.fail("`first` or `last`")
        return SortKey(value, descending, self.take().word == "first")

    def _mark(self, tree: Marked) -> Name:
        self.marked.append(tree)
        return mark(len(self.marked) - 1)

    # What follows extends the grammar of expressions.

    def _value(self, token: Token) -> Expression:
        if not self.is_next(":"):
            return super()._value(token)
        self.take()
        start, name = self.token.start, self.take_name()
        if name not in self.parameters:
            raise GrammarError(start, f"the parameter `{name}` has no value", "pass it in `parameters`")
        return self.parameters[name]

    def _begins_query(self, *ends: str) -> bool:
        """Return whether a query is next, or one in parentheses before a word of queries or one of `ends`."""
        if self.is_next("("):
            return self._encloses_query(*QUERY_ENDS, *ends)
        return self.is_next("select", "with", "values") and self.begins_value_or_star(self.following)

    def _encloses_query(self, *ends: str) -> bool:
        """Return whether the parentheses at the position have a query, and one of `ends` follows if given."""
        start = self.position
        self.take()
        is_query = self._begins_query(")")
        depth = 1 if is_query else 0
        while depth and self.token.kind != "end":
            depth += {"(": 1, ")": -1}.get(self.take().text, 0)
        found = is_query and (not ends or self.is_next(*ends))
        self.position = start
        return found

    def _subquery(self, kind: Any) -> Name:
        statement = self.statement()
        self.expect(")")
        return self._mark(Subquery(statement, kind))

    def _enclosed(self) -> Expression:
        return self._subquery("value") if self._begins_query() else super()._enclosed()

    def arguments(self, read: Callable[[], Expression]) -> list[Expression]:
        start = self.position
        if self.accept("(") and self._begins_query():
            return [self._subquery("in")]
        self.position = start
        return super().arguments(read)

    def _called(self) -> Expression:
        name = self.token.word
        if name == "exists":
            self.take()
            self.expect("(")
            if not self._begins_query(")"):
                self.fail("`select`")
            return self._subquery("exists")
        if name not in AGGREGATES and name not in WINDOW_FUNCTIONS:
            return super()._called()
        call = self._aggregate()
        if self.accept("over"):
            window = self._window_name()
            return self._mark(self._window(call) if window is None else WindowCall(call, (), (), None))
        if name in WINDOW_FUNCTIONS and name not in AGGREGATES:
            self.fail("`over`")
        return self._mark(call)

    def _aggregate(self) -> AggregateCall:
        token = self.take()
        self.expect("(")
        has_word = self.is_next("distinct", "all") and (
            self.begins_value(self.following) or self.following.text == ":"
        )
        distinct = has_word and self.take().word == "distinct"
        is_count_of_rows = token.word == "count" and not distinct and self.accept("*")
        arguments = () if is_count_of_rows or self.is_next(")") else self.take_list(self.expression)
        if token.word == "count" and not is_count_of_rows and not arguments:
            self.fail("`*` or an expression")
        self.expect(")")
        order = self._order_within_group()
        if token.word == "percentile_cont":
            if len(order) != 1 or order[0].descending:
                self.fail("`within group (order by value)`, ascending")
            arguments, order = (order[0].value, *arguments), ()
        where = None
        if self.is_next("filter") and self.following.text == "(":
            self.take()
            self.take()
            self.expect("where")
            where = self.expression()
            self.expect(")")
        text = self.text[token.start : self.position]
        return AggregateCall(token.word, arguments, distinct, where, text, self._ignores_nulls(), order)

    def _order_within_group(self) -> tuple[SortKey, ...]:
        if not (self.is_next("within") and self.following.word == "group"):
            return ()
        self.take()
        self.take()
        return self.enclosed(lambda: self._order() or self.fail("`order by`"))

    def _ignores_nulls(self) -> bool:
        """Return whether IGNORE NULLS is next, and move past it, or past RESPECT NULLS."""
        has_clause = self.is_next("ignore", "respect") and self.following.word == "nulls"
        if not has_clause:
            return False
        is_ignored = self.take().word == "ignore"
        self.take()
        return is_ignored

    def _window_name(self) -> str | None:
        """Return the name of a window, which can be in parentheses, None for a definition."""
        start, token = self.position, self.token
        is_enclosed = self.accept("(")
        if self.token.kind in ("word", "quoted"):
            name = self.take_name()
            if not is_enclosed or self.accept(")"):
                self.named_windows.append((len(self.marked), token.start, name))
                return name
        self.position = start
        return None

    def _window(self, call: AggregateCall) -> WindowCall:
        self.expect("(")
        partition: tuple[Expression, ...] = ()
        if self.accept("partition"):
            self.expect("by")
            partition = self.take_list(self.expression)
        order: tuple[SortKey, ...] = ()
        if self.accept("order"):
            self.expect("by")
            order = self.take_list(self._sort_key)
        frame = self._frame() if self.is_next("rows", "range") else None
        self.expect(")")
        return WindowCall(call, partition, order, frame)

    def _frame(self) -> str:
        kind = self.take().word
        if self.accept("between"):
            first = self._bound(kind)
            self.expect("and")
            return f"{kind} between {first} and {self._bound(kind)}"
        return f"{kind} {self._bound(kind)}"

    def _bound(self, kind: str) -> str:
        if self.accept("current"):
            self.expect("row")
            return "current row"
        if self.accept("unbounded"):
            distance = "unbounded"
        elif kind == "range":
            self.fail("`unbounded` or `current row`", "ranges of values are not supported")
        else:
            distance = str(self._count("rows"))
        if not self.is_next("preceding", "following"):
            self.fail("`preceding` or `following`")
        return f"{distance} {self.take().word}"
