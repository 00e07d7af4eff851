"""The query of a read: bound expressions over the rows of a table and their inputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeGuard

import msgspec
import pyarrow as pa

from ..data_file.reader import filter_rows
from ..errors import ExpressionError
from ..expressions import tree
from ..expressions.evaluate import evaluate, filter_mask, inputs_of, without_cast
from ..expressions.parse import parse_columns, parse_lateral
from ..expressions.tree import (
    Column,
    Expression,
    Extraction,
    Input,
    conjunction,
    conjuncts,
    describe,
    input_column,
    input_name,
    is_whole,
    output_type,
)
from ..expressions.tree import inputs as expression_inputs
from ..protocol.schema.arrow import variant_field
from ..protocol.table_configuration import TableConfiguration
from ..variant.functions import variant_explode, variant_explode_outer
from .predicate import RowCondition, are_conditions, leading_conditions
from .scope import Scope

DICTIONARY = pa.dictionary(pa.int32(), pa.string())
VIEW = pa.string_view()


class Query(msgspec.Struct, frozen=True, dict=True):
    """Expressions bound to a table: the outputs by name, the predicate, and their inputs.

    `hint` is true for each row that the caller keeps, who selects these rows among those of the query.
    `lateral` makes a row for each part of a Variant of the rows that match the predicate. `shredded` has the
    types of the Variant columns that are returned as files store them, by name. `text_types` has the outputs
    of text that are returned as `DICTIONARY` or as views. `required` are the NOT NULL columns of the table.
    """

    outputs: Mapping[str, Expression]
    predicate: Expression | None
    inputs: tuple[Input, ...]
    hint: Expression | None = None
    shredded: Mapping[str, pa.DataType] = msgspec.field(default_factory=dict)
    lateral: _Lateral | None = None
    text_types: Mapping[str, pa.DataType] = msgspec.field(default_factory=dict)
    required: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        table: TableConfiguration,
        columns: Mapping[str, str] | Sequence[str] | None,
        where: str | None,
        lateral: str | None = None,
    ) -> Query:
        """Return the query for the arguments of `read_table`; raises ExpressionError."""
        scope = Scope.of_read(table).with_file_metadata()
        parts = None if lateral is None else _Lateral.of(lateral, scope)
        if parts is not None:
            scope = parts.extend(scope)
        if columns is None:
            outputs = scope.whole_columns()
        else:
            parsed = parse_columns(columns)
            outputs = {name: scope.bind(each) for name, each in parsed.items()}
        predicate = scope.predicate(where)
        if parts is not None:
            predicate, parts = parts.select(predicate)
        required = frozenset(field.name for field in table.schema.fields if not field.nullable)
        return cls({}, predicate, (), lateral=parts, required=required)._with(outputs, None)

    @classmethod
    def of_expressions(cls, outputs: Mapping[str, Expression], predicate: Expression | None) -> Query:
        return cls({}, predicate, ())._with(outputs, None)

    def _with(self, outputs: Mapping[str, Expression], hint: Expression | None) -> Query:
        """Return the query for other outputs, with the inputs that it needs."""
        read = [self._as_read(name, each) for name, each in outputs.items()]
        used = [*read, *(each for each in (self.predicate,) if each is not None)]
        lateral = self.lateral
        if lateral is None:
            inputs = expression_inputs(used)
            return msgspec.structs.replace(self, outputs=outputs, inputs=inputs, hint=hint)
        used += [lateral.variants, *(each for each in (lateral.predicate,) if each is not None)]
        inputs = expression_inputs(used)
        of_parts = tuple(each for each in inputs if input_column(each) == lateral.name)
        of_table = tuple(each for each in inputs if input_column(each) != lateral.name)
        # A hint is about the rows that are returned, not about those of the table.
        return msgspec.structs.replace(
            self,
            outputs=outputs,
            inputs=of_table,
            hint=None,
            lateral=msgspec.structs.replace(lateral, inputs=of_parts),
        )

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([self._field(name, each) for name, each in self.outputs.items()])

    @cached_property
    def _read(self) -> Sequence[tuple[Expression, pa.DataType]]:
        """Return the outputs as they are read from files, with the types of the result."""
        return [(self._as_read(field.name, self.outputs[field.name]), field.type) for field in self.schema]

    def with_text_types(self, types: Mapping[str, pa.DataType]) -> Query:
        """Return the query with these types of some outputs of text, `DICTIONARY` or views."""
        query = msgspec.structs.replace(self, text_types=types)
        return query._with(self.outputs, self.hint)

    def _as_read(self, name: str, bound: Expression) -> Expression:
        """Return an output as it is read from files, which have no views of columns that are not paths."""
        if name in self.text_types and self.lateral is None and is_text_path(bound):
            return msgspec.structs.replace(bound, type=self.text_types[name])
        return bound

    def _field(self, name: str, bound: Expression) -> pa.Field[Any]:
        field = _output_field(name, bound, self.required)
        if name in self.text_types:
            return field.with_type(self.text_types[name])
        if not _is_variant(bound) or bound.column not in self.shredded:
            return field
        return field.with_type(self.shredded[bound.column])

    @property
    def pruning(self) -> Expression | None:
        """Return an expression that is true for each row that is needed, by which files can be skipped."""
        return conjunction(self.predicate, self.hint)

    @property
    def conditions(self) -> list[RowCondition]:
        """Return conditions that are true for each row that is needed, by which rows can be skipped."""
        # A condition on the text at a path is tested on its dictionary.
        outputs = self.outputs.items()
        texts: dict[Input, Any] = {
            each: read
            for name, each in outputs
            if is_text_path(each) and (read := self._as_read(name, each)) != each
        }
        found = leading_conditions(self.predicate, self.hint)
        return [msgspec.structs.replace(each, input=texts.get(each.input, each.input)) for each in found]

    @property
    def is_count(self) -> bool:
        """Return whether the result is the number of rows that meet the conditions."""
        if self.outputs or self.lateral is not None or self.hint is not None or self.predicate is None:
            return False
        return are_conditions(self.predicate)

    def without_outputs(self) -> Query:
        """Return the query for the number of its rows: the predicate alone."""
        return self.narrow((), None)

    def narrow(self, names: Collection[str], hint: Expression | None) -> Query:
        """Return the query for some of its outputs, of rows for which `hint` is true and maybe others."""
        return self._with({name: each for name, each in self.outputs.items() if name in names}, hint)

    def result(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the outputs for the rows of a batch of inputs that match the predicate."""
        mask = None if self.predicate is None else filter_mask(self.predicate, batch)
        if not self.outputs and self.lateral is None:
            return rows_without_columns(batch.num_rows if mask is None else mask.true_count)
        if mask is not None:
            batch = _filtered(batch, mask)
        if self.lateral is not None:
            batch = self.lateral.rows(batch)
        if not self.outputs:
            return rows_without_columns(batch.num_rows)
        arrays = [_cast(evaluate(each, batch), arrow_type) for each, arrow_type in self._read]
        return pa.record_batch(arrays, schema=self.schema)


def is_text_path(bound: Expression) -> TypeGuard[Extraction]:
    """Return whether an expression is the text at a path, cast to a string."""
    return isinstance(bound, Extraction) and bound.type == pa.string() and not bound.as_json


def _output_field(name: str, bound: Expression, required: Collection[str]) -> pa.Field[Any]:
    column = bound.name if isinstance(bound, Column) else bound.column if _is_variant(bound) else None
    output_type, nullable = tree.output_type(bound), column not in required
    if output_type is None:
        return variant_field(name, nullable=nullable)
    return pa.field(name, output_type, nullable)


def _is_variant(bound: Expression) -> TypeGuard[Extraction]:
    return isinstance(bound, Extraction) and is_whole(bound)


def _filtered(batch: pa.RecordBatch, mask: Any) -> pa.RecordBatch:
    if batch.num_columns:
        return filter_rows(batch, mask)
    return rows_without_columns(mask.true_count)


def rows_without_columns(count: int) -> pa.RecordBatch:
    rows: Any = pa.StructArray.from_buffers(pa.struct([]), count, [None])
    return pa.RecordBatch.from_struct_array(rows)


def _cast(array: Any, arrow_type: pa.DataType) -> Any:
    if array.type == arrow_type:
        return array
    if not pa.types.is_struct(arrow_type) or arrow_type.get_field_index("metadata") != 0:
        return array.cast(arrow_type)
    # A file without the column, or shredded Variants whose `metadata` is a dictionary.
    if array.null_count == len(array):
        return pa.nulls(len(array), arrow_type)
    parts = [array.field(index) for index in range(array.type.num_fields)]
    parts[0] = parts[0].cast(pa.binary())
    return pa.StructArray.from_arrays(parts, fields=list(arrow_type), mask=array.is_null())


PARTS = pa.struct([pa.field("pos", pa.int32()), pa.field("key", pa.string()), variant_field("value")])


def explode(
    batch: pa.RecordBatch, variants: Any, name: str, wanted: Sequence[Input], *, outer: bool
) -> pa.RecordBatch:
    """Return a batch with a row for each part of its Variants, and inputs of the parts, a column `name`."""
    parts = (variant_explode_outer if outer else variant_explode)(variants).combine_chunks()
    columns = [parts[field.name].combine_chunks() for field in PARTS]
    structs = pa.StructArray.from_arrays(columns, fields=list(PARTS))
    rows = batch.take(parts["row"].combine_chunks())
    read = inputs_of(pa.record_batch([structs], names=[name]), wanted)
    for each in wanted:
        rows = rows.append_column(input_name(each), read.column(input_name(each)))
    return rows


class _Lateral(msgspec.Struct, frozen=True):
    """The parts of a Variant as a column `name` of structs `pos`, `key` and `value`, and a row for each part.

    `predicate` selects the rows after that; it may read the table as well. `inputs` are what it and the
    outputs read of the column.
    """

    name: str
    variants: Expression
    outer: bool
    predicate: Expression | None = None
    inputs: tuple[Input, ...] = ()

    @classmethod
    def of(cls, text: str, scope: Scope) -> _Lateral:
        """Return `variant_explode(variant) as name`, bound to a table; raises ExpressionError."""
        function, argument, name = parse_lateral(text)
        variants = scope.bind(argument)
        if output_type(variants) is not None:
            raise ExpressionError(f"lateral: expected a Variant, got `{describe(variants)}`")
        if name.lower() in (column.lower() for column in scope.schema.names):
            raise ExpressionError(
                f"lateral: the table has a column {name!r}: name the parts, as in `{function}(…) as part`",
                column=name,
            )
        return cls(name, variants, function == "variant_explode_outer")

    def extend(self, scope: Scope) -> Scope:
        """Return the scope of expressions that can read the parts."""
        return msgspec.structs.replace(scope, schema=scope.schema.append(pa.field(self.name, PARTS)))

    def reads(self, expression: Expression) -> bool:
        return self.name in map(input_column, expression_inputs([expression]))

    def select(self, predicate: Expression | None) -> tuple[Expression | None, _Lateral]:
        """Return what a predicate says about rows of the table, and the parts that the rest of it selects."""
        of_table: list[Expression] = []
        of_parts: list[Expression] = []
        for each in conjuncts(predicate):
            (of_parts if self.reads(each) else of_table).append(each)
        return conjunction(*of_table), msgspec.structs.replace(self, predicate=conjunction(*of_parts))

    def rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch of inputs with a row for each part, and the inputs of the parts."""
        # Casts are left to the evaluation, which excludes rows first.
        wanted = list(dict.fromkeys(map(without_cast, self.inputs)))
        rows = explode(batch, evaluate(self.variants, batch), self.name, wanted, outer=self.outer)
        return rows if self.predicate is None else rows.filter(filter_mask(self.predicate, rows))
