"""The rows of the parts of a query: joined, grouped, numbered, sorted, combined and exploded."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal as OneOf
from typing import NamedTuple

import msgspec
import pyarrow as pa

from ..errors import ExpressionError
from ..expressions.evaluate import inputs_of, without_cast
from ..expressions.tree import (
    FLIPPED,
    Call,
    Expression,
    Extraction,
    Input,
    Literal,
    conjunction,
    conjuncts,
    describe,
    input_column,
    input_name,
    inputs,
    output_type,
    transform,
)
from ..expressions.tree import Column as ColumnInput
from ..read.query import PARTS, Query, explode
from ..read.scope import Scope
from ..variant.objects import is_variant
from .direct import COMPARISONS
from .functions import GROUPING, Aggregate
from .relations import (
    ROWS,
    Batches,
    Columns,
    Engine,
    Relation,
    Source,
    StoredRows,
    check_keys,
    compute,
    finish,
    head_of,
    of_schema,
    order_by,
    scope_of,
    select_list,
    typed,
)
from .syntax import JoinKind, SortKey


class GroupColumn(NamedTuple):
    """An aggregate of the rows of a group for which `where` is true, in an order."""

    call: Aggregate
    where: Expression | None
    order: tuple[SortKey, ...]


class Grouped(StoredRows):
    """The groups of rows with equal keys, with aggregates; without keys, one group of all rows.

    `sets` has the names of the keys of each grouping set, None for one set of all.
    """

    def __init__(
        self,
        engine: Engine,
        rows: Relation,
        keys: Mapping[str, Expression],
        aggregates: Mapping[str, GroupColumn],
        sets: Sequence[Sequence[str]] | None = None,
    ) -> None:
        check_keys(keys.values(), "group by")
        check_keys((key.value for each in aggregates.values() for key in each.order), "within group")
        self.engine, self.child, self.keys, self.aggregates = engine, rows, keys, aggregates
        self.sets = sets
        of_keys = scope_of(keys, rows.source.scope)
        fields = [*of_keys.schema, *(each.call.field(name) for name, each in aggregates.items())]
        super().__init__(of_schema(pa.schema(fields), of_keys, of_keys.chars), self._load)

    def _load(self, names: Collection[str]) -> Iterable[pa.RecordBatch]:
        columns = Columns("c")
        selected = {name: [columns.key(key)] for name, key in self.keys.items()}
        groups = self._groups({name: sql for name, (sql,) in selected.items()})
        used = {name: each for name, each in self.aggregates.items() if name in names}
        for name, each in used.items():
            where = None if each.where is None else columns.add(each.where)
            take = columns.keys if each.call.name in GROUPING else columns.arguments
            order = order_by([columns.key(key.value) for key in each.order], each.order)
            selected[name] = each.call.columns(take(each.call), where, order=order)
        text = f"select {select_list(selected) if selected else 'count(*)'} from r{groups}"
        found = self.engine.run(text, r=compute(self.child, columns.values))
        return finish(found, selected, {name: each.call for name, each in used.items()}, self.scope.schema)

    def _groups(self, keys: Mapping[str, str]) -> str:
        """Return the clause that groups by the SQL of each key, empty without keys."""
        if self.sets is None:
            return f" group by {', '.join(keys.values())}" if keys else ""
        sets = (f"({', '.join(keys[name] for name in each)})" for each in self.sets)
        # In Spark, no rows have no groups, not even the one without keys, unless it is the only one.
        having = " having count(*) > 0" if len(self.sets) > 1 else ""
        return f" group by grouping sets ({', '.join(sets)}){having}"


class WindowColumn(NamedTuple):
    """A function over the rows of a window."""

    call: Aggregate
    where: Expression | None
    partition: tuple[Expression, ...]
    order: tuple[SortKey, ...]
    frame: str | None


class Numbered(Source):
    """Rows with the values of window functions in addition."""

    def __init__(self, engine: Engine, rows: Relation, windows: Mapping[str, WindowColumn]) -> None:
        for each in windows.values():
            check_keys((*each.partition, *(key.value for key in each.order)), "over")
        self.engine, self.child, self.windows = engine, rows, windows
        known = rows.source.scope
        fields = [each.call.field(name) for name, each in windows.items()]
        self.scope = msgspec.structs.replace(
            known,
            schema=pa.schema([*known.schema, *fields]),
            variants=(*known.variants, *(each.name for each in fields if is_variant(each))),
        )

    def rows(self, wanted: Sequence[Input]) -> Batches:
        of_windows = [each for each in wanted if input_column(each) in self.windows]
        passed = self.engine.as_read([each for each in wanted if each not in of_windows])
        # The evaluation casts the Variants of windows.
        of_windows = list(dict.fromkeys(map(without_cast, of_windows)))
        columns = Columns("c")
        selected = {input_name(each): [columns.add(each)] for each in passed}
        windows = {name: self.windows[name] for name in map(input_column, of_windows)}
        selected.update({name: self._sql(each, columns) for name, each in windows.items()})
        found = self.engine.run(
            f"select {select_list(selected)} from r", r=compute(self.child, columns.values)
        )
        schema = Query.of_expressions({input_name(each): each for each in passed}, None).schema
        fields = [*schema, *(self.scope.schema.field(name) for name in windows)]
        calls = {name: each.call for name, each in windows.items()}
        for batch in finish(found, selected, calls, pa.schema(fields)):
            computed = inputs_of(batch, of_windows)
            arrays = [*(batch.column(name) for name in schema.names), *computed.columns]
            yield pa.record_batch(arrays, names=[*schema.names, *computed.schema.names])

    def _sql(self, window: WindowColumn, columns: Columns) -> list[str]:
        where = None if window.where is None else columns.add(window.where)
        partition = [columns.key(each) for each in window.partition]
        order = order_by([columns.key(each.value) for each in window.order], window.order)
        by = f"partition by {', '.join(partition)}" if partition else ""
        over = f" over ({' '.join(each for each in (by, order, window.frame) if each)})"
        return window.call.columns(columns.arguments(window.call), where, over=over)


class Sorted(StoredRows):
    """The values of expressions: distinct or not, in an order, and some of them."""

    def __init__(
        self,
        engine: Engine,
        rows: Relation,
        columns: Mapping[str, Expression],
        order: Sequence[SortKey],
        bounds: tuple[int | None, int] = (None, 0),
        *,
        distinct: bool = False,
    ) -> None:
        check_keys((key.value for key in order), "order by")
        if distinct:
            check_keys(columns.values(), "distinct")
        self.engine, self.child, self.columns, self.order = engine, rows, columns, order
        self.limit, self.offset = bounds
        self.distinct = distinct
        super().__init__(scope_of(columns, rows.source.scope), self._load)

    def _load(self, names: Collection[str]) -> Iterable[pa.RecordBatch]:
        wanted = {name: each for name, each in self.columns.items() if self.distinct or name in names}
        if not self.distinct and not self.order:
            return self._some(wanted)
        columns = Columns("c")
        add = columns.key if self.distinct else columns.add
        selected = {name: [add(each)] for name, each in wanted.items()}
        keys = [columns.key(each.value) for each in self.order]
        distinct = "distinct " if self.distinct else ""
        text = f"select {distinct}{select_list(selected)} from r {order_by(keys, self.order)}"
        if self.limit is not None:
            text += f" limit {self.limit}"
        if self.offset:
            text += f" offset {self.offset}"
        found = self.engine.run(text, r=compute(self.child, columns.values))
        return finish(found, selected, {}, self.scope.schema)

    def _some(self, wanted: Mapping[str, Expression]) -> Iterator[pa.RecordBatch]:
        """Yield rows in any order, and read no more than needed."""
        skipped, limit = self.offset, self.limit
        for batch in self.child.read(
            dict(wanted) or {ROWS: Literal(pa.scalar(True))}, None if limit is None else limit + skipped
        ):
            yield batch.slice(skipped)
            skipped -= min(skipped, batch.num_rows)


class Combined(StoredRows):
    """The rows of two relations: a union, an intersection or a difference."""

    def __init__(
        self,
        engine: Engine,
        sides: Sequence[tuple[Relation, Mapping[str, Expression]]],
        kind: OneOf["union", "intersect", "except"],
        *,
        is_all: bool,
    ) -> None:
        if not is_all or kind != "union":
            for _, columns in sides:
                check_keys(columns.values(), kind)
        self.engine, self.sides, self.kind, self.is_all = engine, sides, kind, is_all
        relation, columns = sides[0]
        super().__init__(scope_of(columns, relation.source.scope), self._load)

    def _load(self, names: Collection[str]) -> Iterable[pa.RecordBatch]:
        schema = self.scope.schema
        if self.is_all and self.kind == "union":
            return self._all(names)
        selected, relations = {}, {}
        for number, (relation, outputs) in enumerate(self.sides):
            columns = Columns("c")
            keys = [columns.key(each) for each in outputs.values()]
            selected[f"s{number}"] = f"select {', '.join(keys)} from s{number}"
            relations[f"s{number}"] = compute(relation, columns.values)
        operation = f" {self.kind} all " if self.is_all else f" {self.kind} "
        found = self.engine.run(operation.join(selected.values()), **relations)
        return finish(found, {name: [name] for name in schema.names}, {}, schema)

    def _all(self, names: Collection[str]) -> Iterator[pa.RecordBatch]:
        fields = [field for field in self.scope.schema if field.name in names]
        schema = pa.schema(fields or [pa.field(ROWS, pa.bool_())])
        for relation, outputs in self.sides:
            by_position = dict(zip(self.scope.schema.names, outputs.values(), strict=True))
            wanted = {field.name: by_position[field.name] for field in fields}
            for batch in relation.read(wanted or {ROWS: Literal(pa.scalar(True))}):
                arrays = [typed(batch.column(field.name), field.type) for field in schema]
                yield pa.record_batch(arrays, schema=schema)


class Exploded(Source):
    """The rows of a relation with the parts of a Variant of each, as a column of structs."""

    def __init__(self, rows: Relation, name: str, variants: Expression, *, outer: bool) -> None:
        if output_type(variants) is not None:
            raise ExpressionError(f"lateral: expected a Variant, got `{describe(variants)}`")
        self.child, self.name, self.variants, self.outer = rows, name, variants, outer
        known = rows.source.scope
        self.scope = msgspec.structs.replace(known, schema=known.schema.append(pa.field(name, PARTS)))

    def read(
        self, outputs: Mapping[str, Expression], predicate: Expression | None, limit: int | None = None
    ) -> Batches:
        """Yield the values of expressions; conditions without the parts select rows first."""
        parts = [each for each in conjuncts(predicate) if self.name in map(input_column, inputs([each]))]
        before = [each for each in conjuncts(predicate) if each not in parts]
        if not before:
            return super().read(outputs, predicate, limit)
        child = Relation(self.child.source, conjunction(self.child.where, *before))
        narrowed = Exploded(child, self.name, self.variants, outer=self.outer)
        return narrowed.read(outputs, conjunction(*parts), limit)

    def rows(self, wanted: Sequence[Input]) -> Batches:
        uncast = list(dict.fromkeys(map(without_cast, wanted)))
        of_parts = [each for each in uncast if input_column(each) == self.name]
        passed = {input_name(each): each for each in uncast if each not in of_parts}
        for batch in self.child.read({**passed, ROWS: self.variants}):
            yield explode(batch, batch.column(ROWS), self.name, of_parts, outer=self.outer)


class Side(NamedTuple):
    """A side of a join: its rows, and its columns by their names in the join."""

    rows: Relation
    names: Mapping[str, str]


class Joined(Source):
    """The rows of two relations for which a condition is true. A column has a name of its own in the join."""

    def __init__(
        self,
        engine: Engine,
        kind: JoinKind,
        left: Side,
        right: Side,
        on: Callable[[Scope], Expression | None],
    ) -> None:
        self.engine, self.kind, self.sides = engine, kind, (left, right)
        schema, variants, chars = [], [], {}
        for side in self.sides:
            scope = side.rows.source.scope
            for name, stored in side.names.items():
                schema.append(scope.schema.field(stored).with_name(name).with_nullable(True))
                variants += [name] if stored in scope.variant_names else []
                chars.update({name: scope.chars[stored]} if stored in scope.chars else {})
        known = left.rows.source.scope
        self.scope = Scope(pa.schema(schema), tuple(variants), known.timezone, known.moment, chars)
        self.on = on(self.scope)

    def read(
        self, outputs: Mapping[str, Expression], predicate: Expression | None, limit: int | None = None
    ) -> Batches:
        """Yield the values of expressions; conditions on the rows of one side select them first."""
        plan = _JoinPlan(self, predicate)
        query = Query.of_expressions(outputs, conjunction(*plan.after))
        return head_of(map(query.result, plan.rows(query.inputs)), limit)

    def rows(self, wanted: Sequence[Input]) -> Batches:
        return _JoinPlan(self, None).rows(wanted)

    def sides_of(self, expression: Expression) -> set[int]:
        """Return the sides whose columns an expression reads."""
        names = map(input_column, inputs([expression]))
        return {0 if name in self.sides[0].names else 1 for name in names}

    def of_side(self, side: int, expression: Expression) -> Expression:
        """Return an expression over the columns of one side."""
        names = self.sides[side].names

        def change(node: Expression) -> Expression | None:
            if isinstance(node, ColumnInput):
                return msgspec.structs.replace(node, name=names[node.name])
            if isinstance(node, Extraction):
                return msgspec.structs.replace(node, column=names[node.column])
            return None

        return transform(expression, change)


class _JoinPlan:
    """The conditions of a join by where they apply: to rows of a side, to pairs in DuckDB, or to its rows."""

    def __init__(self, join: Joined, predicate: Expression | None) -> None:
        self.join = join
        self.columns = (Columns("l"), Columns("r"))
        self.before: tuple[list[Expression], list[Expression]] = ([], [])
        self.pairs: list[str] = []
        self.after: list[Expression] = []
        for each in conjuncts(join.on):
            self._place(each)
        for each in conjuncts(predicate):
            self._select(each)

    @property
    def kept(self) -> set[int]:
        """The sides whose rows a join keeps without a match."""
        return {"left": {0}, "anti": {0}, "right": {1}, "full": {0, 1}}.get(self.join.kind, set())

    def _select(self, condition: Expression) -> None:
        """Place a condition on the rows of the join."""
        if self.join.engine.is_careful:
            self.after.append(condition)
        elif self.join.kind == "inner":
            self._place(condition)
        else:
            (side,) = sides if len(sides := self.join.sides_of(condition)) == 1 else (None,)
            # Rows of the other side are NULL without a match.
            is_before = side is not None and self.kept | {side} == {side} and self.join.kind != "full"
            is_before = is_before and (side in self.kept or self.join.kind == "semi")
            if is_before and side is not None:
                self.before[side].append(self.join.of_side(side, condition))
            else:
                self.after.append(condition)

    def _place(self, condition: Expression) -> None:
        """Place a condition on pairs of rows."""
        sides = self.join.sides_of(condition)
        if len(sides) < 2:
            side = next(iter(sides), 0)
            of_side = self.join.of_side(side, condition)
            if side in self.kept:
                self.pairs.append(self.columns[side].add(of_side))
            else:
                self.before[side].append(of_side)
        elif (pair := self._comparison(condition)) is not None:
            self.pairs.append(pair)
        elif self.join.kind == "inner":
            self.after.append(condition)
        else:
            raise ExpressionError(
                f"on: `{describe(condition)}` is not supported in a {self.join.kind} join, whose conditions "
                "are on one table or compare an expression of one with an expression of the other"
            )

    def _comparison(self, condition: Expression) -> str | None:
        if not isinstance(condition, Call) or condition.function not in COMPARISONS:
            return None
        left, right = condition.arguments
        sides = [self.join.sides_of(left), self.join.sides_of(right)]
        if sides == [{1}, {0}]:
            left, right = right, left
            function = FLIPPED.get(condition.function, condition.function)
        elif sides == [{0}, {1}]:
            function = condition.function
        else:
            return None
        return f"{self._column(0, left)} {COMPARISONS[function]} {self._column(1, right)}"

    def _column(self, side: int, expression: Expression) -> str:
        return self.columns[side].add(self.join.of_side(side, expression))

    def rows(self, wanted: Sequence[Input]) -> Batches:
        """Yield the rows of the join with some inputs of expressions, each under its `input_name`."""
        join, selected = self.join, {}
        read = join.engine.as_read(wanted)
        for each in read:
            (number,) = join.sides_of(each)
            selected[input_name(each)] = [self._column(number, each)]
        on = " and ".join(self.pairs) or "true"
        text = f"select {select_list(selected)} from l {join.kind} join r on {on}"
        relations = {}
        for name, side, before, columns in zip("lr", join.sides, self.before, self.columns, strict=True):
            rows = Relation(side.rows.source, conjunction(side.rows.where, *before))
            relations[name] = compute(rows, columns.values)
        found = join.engine.run(text, **relations)
        schema = Query.of_expressions({input_name(each): each for each in read}, None).schema
        return finish(found, selected, {}, schema)
