"""`variant_explode` in a read: a row for each part of a Variant, with the columns of its row."""

from __future__ import annotations

import msgspec
import pyarrow as pa

from ..errors import ExpressionError
from ..expressions.evaluate import evaluate, filter_mask, without_cast
from ..expressions.parse import parse_lateral
from ..expressions.tree import Call, Column, Expression, Input, describe, input_name, output_type
from ..expressions.tree import inputs as expression_inputs
from ..protocol.schema.arrow import variant_field
from ..variant.functions import variant_explode, variant_explode_outer
from .in_memory import inputs_of
from .scope import Scope

__all__ = ["Lateral"]

PARTS = pa.struct([pa.field("pos", pa.int32()), pa.field("key", pa.string()), variant_field("value")])


class Lateral(msgspec.Struct, frozen=True):
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
    def of(cls, text: str, scope: Scope) -> Lateral:
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
        """Return whether an expression reads the parts."""
        return any(self.has(each) for each in expression_inputs([expression]))

    def has(self, source: Input) -> bool:
        """Return whether an input is of the parts."""
        return (source.name if isinstance(source, Column) else source.column) == self.name

    def select(self, predicate: Expression | None) -> tuple[Expression | None, Lateral]:
        """Return what a predicate says about rows of the table, and the parts that the rest of it selects."""
        of_table: list[Expression] = []
        of_parts: list[Expression] = []
        for each in _conjuncts(predicate):
            (of_parts if self.reads(each) else of_table).append(each)
        return _conjunction(of_table), msgspec.structs.replace(self, predicate=_conjunction(of_parts))

    def rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch of inputs with a row for each part, and the inputs of the parts."""
        explode = variant_explode_outer if self.outer else variant_explode
        parts = explode(evaluate(self.variants, batch)).combine_chunks()
        columns = [parts[field.name].combine_chunks() for field in PARTS]
        structs = pa.StructArray.from_arrays(columns, fields=list(PARTS))
        rows = batch.take(parts["row"].combine_chunks())
        # Casts are left to the evaluation, which excludes rows first.
        wanted = list(dict.fromkeys(map(without_cast, self.inputs)))
        read = inputs_of(pa.record_batch([structs], names=[self.name]), wanted)
        for each in wanted:
            rows = rows.append_column(input_name(each), read.column(input_name(each)))
        return rows if self.predicate is None else rows.filter(filter_mask(self.predicate, rows))


def _conjuncts(predicate: Expression | None) -> tuple[Expression, ...]:
    if isinstance(predicate, Call) and predicate.function == "and":
        return tuple(part for each in predicate.arguments for part in _conjuncts(each))
    return () if predicate is None else (predicate,)


def _conjunction(parts: list[Expression]) -> Expression | None:
    return Call("and", tuple(parts), pa.bool_()) if len(parts) > 1 else next(iter(parts), None)
