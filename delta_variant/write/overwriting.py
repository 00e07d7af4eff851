"""The rows that may take the place of others: those for which the predicate of the overwrite is true."""

from __future__ import annotations

import pyarrow as pa

from .. import expression, schema, variant
from ..data_file import WriteOptions
from ..data_types import VARIANT, StructType
from ..errors import PredicateViolationError
from ..expression import Expression
from ..table_files import Batches, inputs_of

__all__ = ["only_matching"]


def only_matching(
    batches: Batches, columns: StructType, predicate: Expression | None, options: WriteOptions
) -> Batches:
    """Return batches that raise PredicateViolationError for a row of which the predicate is not true."""
    return batches if predicate is None else _checked(batches, columns, predicate, options)


def _checked(batches: Batches, columns: StructType, predicate: Expression, options: WriteOptions) -> Batches:
    first = 0
    for batch, origin in batches:
        outside = _first_outside(schema.conform(batch, columns), columns, predicate, options)
        if outside is not None:
            raise PredicateViolationError(
                f"row {first + outside} of the data does not fulfil {expression.describe(predicate)}: "
                "leave it out, or overwrite by a predicate that it fulfils"
            )
        first += batch.num_rows
        yield batch, origin


def _first_outside(
    batch: pa.RecordBatch, columns: StructType, predicate: Expression, options: WriteOptions
) -> int | None:
    parsed, invalid = _with_variants(batch, columns, options)
    matching = expression.filter_mask(predicate, inputs_of(parsed, expression.inputs([predicate])))
    # What is not valid JSON is an error of its own, or left out.
    excused = set() if options.on_invalid == "null" else invalid
    return next((row for row, fits in enumerate(matching) if not fits.as_py() and row not in excused), None)


def _with_variants(
    batch: pa.RecordBatch, columns: StructType, options: WriteOptions
) -> tuple[pa.RecordBatch, set[int]]:
    """Return a batch whose JSON text is Variants, and the rows of text that is not valid."""
    invalid: set[int] = set()
    for index, field in enumerate(columns.fields):
        if field.type == VARIANT and not pa.types.is_struct(batch.schema.field(index).type):
            variants, rows = variant.parse_valid_json(
                batch.column(index), floats=options.floats, duplicate_keys=options.duplicate_keys
            )
            batch = batch.set_column(index, field.name, variants)
            invalid.update(rows)
    return batch, invalid
