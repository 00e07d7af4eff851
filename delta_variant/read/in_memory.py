"""Evaluate the inputs of expressions over rows in memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..data_file.options import WriteOptions
from ..expressions.tree import Column, Input, input_name
from ..protocol.types import VARIANT, StructType
from ..variant import values as variant_values

__all__ = ["inputs_of", "parse_json_columns", "parse_valid_json_columns"]

ROWS = "\0rows"


def inputs_of(batch: pa.RecordBatch, inputs: Sequence[Input]) -> pa.RecordBatch:
    """Return the inputs of expressions as a batch, read from a batch of whole columns.

    Variant columns must hold Variants, not JSON text. Raises CastError for a value that cannot be cast.
    """
    arrays = [_input(batch, each) for each in inputs]
    # An extra column gives the batch its length if there are no inputs.
    rows: Any = pa.nulls(batch.num_rows)
    names = [input_name(each) for each in inputs]
    return pa.record_batch([rows, *arrays], names=[ROWS, *names])


def parse_json_columns(batch: pa.RecordBatch, columns: StructType) -> pa.RecordBatch:
    """Return a batch with Variants instead of JSON text; raises InvalidJsonError."""
    for index, field in enumerate(columns.fields):
        if field.type == VARIANT and not pa.types.is_struct(batch.column(index).type):
            batch = batch.set_column(index, field.name, variant_values.parse_json(batch.column(index)))
    return batch


def parse_valid_json_columns(
    batch: pa.RecordBatch, columns: StructType, names: Collection[str], options: WriteOptions
) -> tuple[pa.RecordBatch, set[int]]:
    """Return a batch with Variants instead of JSON text in some columns, and the rows with invalid JSON."""
    invalid: set[int] = set()
    variants_of_table = {field.name for field in columns.fields if field.type == VARIANT}
    for index, name in enumerate(batch.schema.names):
        is_text = not pa.types.is_struct(batch.schema.field(index).type)
        if name in names and name in variants_of_table and is_text:
            variants, found = variant_values.parse_valid_json(
                batch.column(index), floats=options.json.floats, duplicate_keys=options.json.duplicate_keys
            )
            batch = batch.set_column(index, name, variants)
            invalid.update(each.row for each in found)
    return batch, invalid


def _input(batch: pa.RecordBatch, source: Input) -> Any:
    if isinstance(source, Column):
        return batch.column(source.name)
    variants = batch.column(source.column)
    for name in source.fields:
        variants = pc.struct_field(variants, name)
    if source.as_json:
        found = variant_values.extract(variants, source.path, None, strict=True)
        return variant_values.to_json(found, timezone=source.timezone)
    return variant_values.extract(
        variants, source.path, source.type, strict=source.strict, timezone=source.timezone
    )
