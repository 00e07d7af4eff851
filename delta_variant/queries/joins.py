"""Rows of two relations that belong together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import pyarrow as pa

from ..errors import ExpressionError
from ..expressions.tree import (
    FLIPPED,
    Call,
    Expression,
    Extraction,
    Input,
    conjunction,
    conjuncts,
    describe,
    input_column,
    input_name,
    inputs,
    transform,
)
from ..expressions.tree import Column as ColumnInput
from ..read.query import Query
from ..read.scope import Scope
from .direct import COMPARISONS
from .relations import Batches, Columns, Engine, Relation, Source, compute, finish, head_of, select_list
from .syntax import JoinKind


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
