"""SELECT statements over constants, with each expression evaluated by this library.

sqlglot parses a statement. This module makes the rows that it reads, and selects, explodes and sorts them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from sqlglot import exp

from delta_variant import functions
from delta_variant.expressions.bind import bind
from delta_variant.expressions.evaluate import evaluate, inputs_of
from delta_variant.expressions.names import NameScope
from delta_variant.expressions.parse import parse
from delta_variant.expressions.tree import inputs, output_type
from delta_variant.protocol.schema.arrow import variant_field

Tables: TypeAlias = Mapping[str, pa.Table]
Replace: TypeAlias = Callable[[exp.Expression], exp.Expression]
Arguments: TypeAlias = "Sequence[tuple[pa.Field[Any], pa.Array[Any]]]"
Builder: TypeAlias = "Callable[[Arguments], pa.Array[Any]]"

ONE_ROW = pa.table({"\0": [0]})
EXPLODE = {
    "variant_explode": functions.variant_explode,
    "variant_explode_outer": functions.variant_explode_outer,
}
PARTS = ("pos", "key", "value")


class Driver:
    """Runs statements in a dialect. `replace` returns what an expression becomes here, innermost first."""

    def __init__(
        self, dialect: Any, replace: Replace = lambda node: node, calls: Mapping[str, Builder] | None = None
    ) -> None:
        self.dialect = dialect
        self.replace = replace
        self.calls: Mapping[str, Builder] = {"named_struct": _struct_of, **(calls or {})}
        self.tables: dict[str, pa.Table] = {}

    def select(self, sql: str) -> pa.Table:
        """Return the rows of a SELECT statement."""
        return self._query(sqlglot.parse_one(sql.strip().rstrip(";"), read=self.dialect), self.tables)

    def create(self, sql: str) -> None:
        """Create a table of `CREATE TABLE … AS VALUES …`, or drop one."""
        node = sqlglot.parse_one(sql.strip().rstrip(";"), read=self.dialect)
        if isinstance(node, exp.Drop):
            del self.tables[node.find(exp.Table).name]
            return
        columns = [column.name for column in node.this.expressions]
        self.tables[node.this.this.name] = self._values(node.expression.find(exp.Values), columns)

    def _query(self, node: exp.Expression, tables: Tables) -> pa.Table:
        if isinstance(node, exp.Union):
            return concat([self._query(node.this, tables), self._query(node.expression, tables)])
        if isinstance(node, exp.Subquery):
            return self._query(node.this, tables)
        if isinstance(node, exp.Values):
            return self._values(node, _column_names(node))
        for each in node.ctes:
            tables = {**tables, each.alias: self._query(each.this, tables)}
        rows = self._from(node, tables)
        if where := node.args.get("where"):
            rows = rows.filter(self.value(where.this, rows)[1])
        if any(each.find(exp.Count) or _is_aggregate(each) for each in node.expressions):
            return pa.table(
                {each.alias_or_name: self._aggregate(each.unalias(), rows) for each in node.expressions}
            )
        return self._sort(self._project(rows, node.expressions), rows, node.args.get("order"))

    def _from(self, node: exp.Expression, tables: Tables) -> pa.Table:
        source = node.args.get("from_") or node.args.get("from")
        if source is None:
            return ONE_ROW
        rows = self._source(source.this, tables)
        for join in node.args.get("joins") or ():
            rows = self._explode(rows, join.this)
        return rows

    def _source(self, node: exp.Expression, tables: Tables) -> pa.Table:
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            return tables[node.name]
        if isinstance(node, exp.Table):
            return self._explode(ONE_ROW, node).select(PARTS)
        return self._query(node, tables)

    def _explode(self, rows: pa.Table, node: exp.Expression) -> pa.Table:
        """Return the rows with the parts of a Variant: `variant_explode(…)`, which may be `LATERAL`."""
        call = node.find(exp.Anonymous)
        parts = EXPLODE[_name_of(call)](self.value(call.expressions[0], rows)[1])
        rows = rows.take(parts["row"])
        for name in PARTS:
            rows = rows.append_column(_field(name, parts[name], is_variant=name == "value"), parts[name])
        return rows

    def _values(self, node: exp.Values, names: Sequence[str]) -> pa.Table:
        tuples = [each.expressions if isinstance(each, exp.Tuple) else [each] for each in node.expressions]
        return concat(
            [
                _table([self.value(cell, ONE_ROW, name) for cell, name in zip(cells, names, strict=True)])
                for cells in tuples
            ]
        )

    def value(
        self, node: exp.Expression, rows: pa.Table, name: str = ""
    ) -> tuple[pa.Field[Any], pa.Array[Any]]:
        """Return the field and the values of an expression for each row."""
        columns = rows

        def build(each: exp.Expression) -> exp.Expression:
            nonlocal columns
            builder = BUILDERS.get(type(each)) or self.calls.get(_name_of(each))
            if builder is None:
                return each
            column = f"built_{columns.num_columns}"
            array = builder([self.value(argument, rows) for argument in _arguments(each)])
            columns = columns.append_column(column, array)
            return exp.column(column)

        text = self._rewrite(node).transform(build, copy=False).sql("databricks")
        (batch,) = columns.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], columns.schema)]
        variants = [field.name for field in columns.schema if is_variant(field)]
        bound = bind(parse(text), NameScope(columns.schema, tuple(variants)))
        values = evaluate(bound, inputs_of(batch, inputs([bound])))
        values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        return _field(name, values, is_variant=output_type(bound) is None), values

    def _rewrite(self, node: exp.Expression) -> exp.Expression:
        """Return an expression in the functions that this library has, without the names of tables."""
        root = exp.paren(node.copy(), copy=False)
        for each in reversed(list(root.walk(bfs=False))):
            new = exp.column(each.this) if isinstance(each, exp.Column) else self.replace(each)
            if isinstance(each, exp.JSONFormat):
                # For a literal, sqlglot writes an expression that formats JSON text in its place.
                options = [each.args["options"]] if each.args.get("options") else []
                new = exp.Anonymous(this="to_json", expressions=[each.this, *options])
            if new is not each:
                each.replace(new)
        return root.this

    def _project(self, rows: pa.Table, nodes: Sequence[exp.Expression]) -> pa.Table:
        names = [each.alias_or_name or f"column_{number}" for number, each in enumerate(nodes)]
        return _table(
            [self.value(each.unalias(), rows, name) for each, name in zip(nodes, names, strict=True)]
        )

    def _sort(self, selected: pa.Table, rows: pa.Table, order: exp.Order | None) -> pa.Table:
        if order is None:
            return selected
        keys = [each.this.name for each in order.expressions]
        arrays = [selected[key] if key in selected.schema.names else rows[key] for key in keys]
        names = [str(number) for number in range(len(keys))]
        indices = pc.sort_indices(pa.table(arrays, names), [(name, "ascending") for name in names])
        return selected.take(indices)

    def _aggregate(self, node: exp.Expression, rows: pa.Table) -> list[Any]:
        if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
            return [rows.num_rows]
        return [functions.schema_of_variant_agg(self.value(node.expressions[0], rows)[1])]


def _array_of(arguments: Arguments) -> pa.Array[Any]:
    if not arguments:
        return pa.array([[]])
    rows = len(arguments[0][1])
    tables = [_table([(field.with_name("item"), values)]) for field, values in arguments]
    items = concat(tables)["item"].combine_chunks()
    order = [row + rows * number for row in range(rows) for number in range(len(arguments))]
    offsets = [len(arguments) * row for row in range(rows + 1)]
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items.take(pa.array(order, pa.int64())))


def _map_of(arguments: Arguments) -> pa.Array[Any]:
    keys, items = _array_of(arguments[::2]), _array_of(arguments[1::2])
    return pa.MapArray.from_arrays(keys.offsets, keys.values, items.values)


def _struct_of(arguments: Arguments) -> pa.Array[Any]:
    names = [values[0].as_py() for _, values in arguments[::2]]
    fields = [field.with_name(name) for (field, _), name in zip(arguments[1::2], names, strict=True)]
    return pa.StructArray.from_arrays([values for _, values in arguments[1::2]], fields=fields)


BUILDERS: dict[type, Builder] = {
    exp.Array: _array_of,
    exp.Map: _map_of,
    exp.VarMap: _map_of,
    exp.ToMap: _map_of,
    exp.Struct: _struct_of,
}


def _name_of(node: exp.Expression) -> str:
    return node.name.lower() if isinstance(node, exp.Anonymous) else ""


def _arguments(node: exp.Expression) -> list[exp.Expression]:
    """Return the arguments of a constructor: keys and items of a map or struct alternate."""
    if isinstance(node, exp.Map | exp.VarMap):
        keys, values = node.args["keys"].expressions, node.args["values"].expressions
        return [each for pair in zip(keys, values, strict=True) for each in pair]
    if isinstance(node, exp.ToMap):
        node = node.this
    if isinstance(node, exp.Struct):
        return [
            part
            for each in node.expressions
            for part in (exp.Literal.string(each.this.name), each.expression)
        ]
    return list(node.expressions)


def concat(tables: Sequence[pa.Table]) -> pa.Table:
    """Return the rows of tables by position; columns of nulls get the type of the others."""
    names = tables[0].schema.names
    tables = [each.rename_columns(names) for each in tables]
    schema = pa.unify_schemas([each.schema for each in tables], promote_options="permissive")
    fields = [
        next(
            (each.schema.field(name) for each in tables if is_variant(each.schema.field(name))),
            schema.field(name),
        )
        for name in names
    ]
    return pa.concat_tables([each.cast(pa.schema(fields)) for each in tables])


def _table(columns: Arguments) -> pa.Table:
    return pa.Table.from_arrays(
        [values for _, values in columns], schema=pa.schema([field for field, _ in columns])
    )


def _field(name: str, values: Any, *, is_variant: bool) -> pa.Field[Any]:
    return pa.field(name, values.type, metadata=variant_field(name).metadata if is_variant else None)


def is_variant(field: pa.Field[Any]) -> bool:
    return (field.metadata or {}).get(b"ARROW:extension:name") == b"arrow.parquet.variant"


def _is_aggregate(node: exp.Expression) -> bool:
    return _name_of(node.unalias()) == "schema_of_variant_agg"


def _column_names(node: exp.Values) -> list[str]:
    alias = node.args.get("alias")
    width = len(node.expressions[0].expressions) if isinstance(node.expressions[0], exp.Tuple) else 1
    return [each.name for each in alias.columns] if alias else [f"col{number + 1}" for number in range(width)]
