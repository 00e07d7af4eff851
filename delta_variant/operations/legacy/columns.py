"""Variants as columns of the draft, and back."""

from __future__ import annotations

import pyarrow as pa

from ... import _native
from ...variant.shredding import ShreddingSchema
from ...variant.values import ArrowArray, to_arrow_array

__all__ = ["shred_draft", "unshred_draft"]


def shred_draft(variants: ArrowArray, schema: ShreddingSchema) -> pa.StructArray:
    """Return Variants as columns of the draft, each value in a typed column where it fits.

    A value fits where it does for `shred`: when it is of the column's type, or an exact number that the
    column holds without loss. All else is in an `untyped_value`, a Variant with metadata of its own.
    """
    return _native.shred_legacy(to_arrow_array(variants), schema.field)


def unshred_draft(columns: ArrowArray, *, compat: bool = False) -> pa.StructArray:
    """Return columns of the draft as Variants, a `struct<metadata: binary, value: binary>`.

    Raises ShreddingError for columns that are not of the draft, and ConflictingValueError where they
    contradict each other. `compat` gives what the draft's algorithm gives where its rules forbid the columns:
    Variant null for a Variant null beside a `typed_value`, and the array for one beside an `untyped_value`.
    """
    return _native.unshred_legacy(to_arrow_array(columns), compat)
