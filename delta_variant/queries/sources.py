"""Rows that are grouped, numbered, sorted, united or exploded."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal as OneOf
from typing import NamedTuple

import msgspec
import pyarrow as pa

from ..errors import ExpressionError
from ..expressions.evaluate import inputs_of, without_cast
from ..expressions.tree import (
    Expression,
    Input,
    Literal,
    conjunction,
    conjuncts,
    describe,
    input_column,
    input_name,
    inputs,
    output_type,
)
from ..read.query import PARTS, Query, explode
from ..variant.objects import is_variant
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
    of_schema,
    order_by,
    scope_of,
    select_list,
    typed,
)
from .syntax import SortKey


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
