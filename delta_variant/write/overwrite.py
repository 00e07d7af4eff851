"""Check that the new rows of an overwrite satisfy its predicate."""

from __future__ import annotations

import pyarrow as pa

from ..data_file.options import WriteOptions
from ..errors import PredicateViolationError
from ..expressions.evaluate import filter_mask
from ..expressions.tree import Expression
from ..expressions.tree import describe as describe_expression
from ..expressions.tree import inputs as expression_inputs
from ..input.invalid_json import BatchOrigin
from ..protocol.schema.conforming import conform
from ..protocol.types import StructType
from ..read.in_memory import inputs_of, parse_valid_json_columns
from .partitions import Batches

__all__ = ["check_overwrite_predicate"]


def check_overwrite_predicate(
    batches: Batches, columns: StructType, predicate: Expression | None, options: WriteOptions
) -> Batches:
    """Return the batches; iterating raises PredicateViolationError for a row that does not match."""
    return batches if predicate is None else _checked(batches, columns, predicate, options)


def _checked(batches: Batches, columns: StructType, predicate: Expression, options: WriteOptions) -> Batches:
    first = 0
    for batch, origin in batches:
        outside = _first_outside(conform(batch, columns), columns, predicate, options)
        if outside is not None:
            raise PredicateViolationError(
                f"the row does not match the predicate of the overwrite, {describe_expression(predicate)}: "
                "remove the row, or pass a predicate that matches it"
            ).at(**BatchOrigin(origin, first, None).locate(outside))
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
