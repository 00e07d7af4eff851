"""Conversion between Variants and columns in the legacy layout."""

from __future__ import annotations

import pyarrow as pa

from ... import _native
from ...variant.shredding import ShreddingSchema
from ...variant.values import ArrowArray, to_arrow_array

__all__ = ["shred_legacy", "unshred_legacy"]


def shred_legacy(variants: ArrowArray, schema: ShreddingSchema) -> pa.StructArray:
    """Return Variants as columns in the legacy layout, shredded by a schema.

    A value is stored in `typed_value` under the same conditions as for `shred`: it has the type of the
    column, or it is an exact number that the column represents without loss. Any other value is stored in
    `untyped_value`, a Variant with its own metadata.

    Args:
        variants: An Arrow array of Variants, `struct<metadata: binary, value: binary>`.
        schema: The shredding schema of the column.

    Returns:
        An array of the same length, with the groups of the legacy layout.

    Raises:
        MalformedVariantError: A value is not a valid Variant.

    Example:
        >>> import delta_variant as dv, pyarrow as pa
        >>> from delta_variant.operations.legacy import shred_legacy
        >>> schema = dv.ShreddingSchema.of({"id": pa.int64()})
        >>> shred_legacy(dv.parse_json(['{"id": 7}']), schema).field("object").type.names
        ['id']
    """
    return _native.shred_legacy(to_arrow_array(variants), schema.field)


def unshred_legacy(columns: ArrowArray, *, compat: bool = False) -> pa.StructArray:
    """Return columns in the legacy layout as Variants.

    Args:
        columns: An Arrow array with the groups of the legacy layout.
        compat: Reproduce the algorithm of the draft for columns that violate its rules: a Variant null next
            to a `typed_value` is a Variant null, and an array next to an `untyped_value` is the array.

    Returns:
        An array of Variants, `struct<metadata: binary, value: binary>`, of the same length.

    Raises:
        ShreddingError: The columns are not in the legacy layout.
        ConflictingValueError: Two columns of a row contradict each other.

    Example:
        >>> import delta_variant as dv, pyarrow as pa
        >>> from delta_variant.operations.legacy import shred_legacy, unshred_legacy
        >>> schema = dv.ShreddingSchema.of({"id": pa.int64()})
        >>> dv.to_json(unshred_legacy(shred_legacy(dv.parse_json(['{"id": 7}']), schema))).to_pylist()
        ['{"id":7}']
    """
    return _native.unshred_legacy(to_arrow_array(columns), compat)
