"""Complete and check the new rows of a write."""

from __future__ import annotations

import pyarrow as pa

from ..data_file.options import WriteOptions
from ..errors import PredicateViolationError
from ..expressions.evaluate import filter_mask
from ..expressions.tree import Expression
from ..expressions.tree import describe as describe_expression
from ..expressions.tree import inputs as expression_inputs
from ..input.invalid_json import Batches, BatchOrigin
from ..protocol.schema.conforming import conform
from ..protocol.table_configuration import TableConfiguration
from ..protocol.types import StructType
from ..read.in_memory import inputs_of, parse_valid_json_columns
from .row_rules import RowRules

__all__ = ["complete_rows"]


def complete_rows(
    batches: Batches, table: TableConfiguration, options: WriteOptions, predicate: Expression | None = None
) -> Batches:
    """Return batches as the table stores them, with defaults and generated columns, and check each row.

    Raises ConstraintViolationError for a row that violates a constraint, UnsupportedFeatureError for an
    expression that this version cannot evaluate, and PredicateViolationError for a row for which `predicate`,
    that of an overwrite, is not true.
    """
    rules = RowRules.of(table)
    first = 0
    for batch, origin in batches:
        locate = BatchOrigin(origin, first, None).locate
        computed = {column.name for column in rules.computed_columns(batch.schema.names)}
        if computed or rules.apply_to_whole_rows:
            batch = rules.complete(batch, options, locate)
            rules.check(batch, options, locate=locate, computed=computed)
        if predicate is not None:
            outside = _first_outside(conform(batch, table.schema), table.schema, predicate, options)
            if outside is not None:
                raise PredicateViolationError(
                    "the row does not match the predicate of the overwrite, "
                    f"{describe_expression(predicate)}: remove the row, or pass a predicate that matches it"
                ).at(**locate(outside))
        first += batch.num_rows
        yield batch, origin


def _first_outside(
    batch: pa.RecordBatch, columns: StructType, predicate: Expression, options: WriteOptions
) -> int | None:
    parsed, invalid = parse_valid_json_columns(batch, columns, batch.schema.names, options)
    matching = filter_mask(predicate, inputs_of(parsed, expression_inputs([predicate])))
    # The writer rejects rows with invalid JSON or raises an error for them.
    excused = set() if options.json.on_invalid == "null" else invalid
    return next((row for row, fits in enumerate(matching) if not fits.as_py() and row not in excused), None)
