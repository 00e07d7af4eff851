"""Shredding: which paths of a Variant are typed columns, and Variants as such columns and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args

import pyarrow as pa

from .. import _native
from .._checks import check_option, check_text, whole_number
from .._options import Numeric, OnConflict
from ..errors import ArgumentTypeError, ShreddingError
from .values import ArrowArray, to_arrow_array

__all__ = ["ShreddingSchema", "infer_shredding_schema", "shred", "unshred"]

Spec: TypeAlias = "pa.DataType | Mapping[str, Spec] | Sequence[Spec] | None"
"""An Arrow type for a leaf, a mapping for an object, a list of one for an array, None for `value` alone."""

MAX_LEAVES = _native.MAX_LEAVES
MAX_DEPTH = _native.MAX_DEPTH


@dataclass(frozen=True)
class ShreddingSchema:
    """Which paths of a Variant have a `typed_value`, and of which type (VariantShredding.md).

    `field` is its Arrow form: the type of the values alone, objects as structs, arrays as lists, and the null
    type where there is only `value`. Fields of an object are in the order of their names.
    """

    field: pa.Field[Any]

    @classmethod
    def of(cls, spec: Spec) -> ShreddingSchema:
        """Return the schema of a nested description: `{"id": pa.int64(), "tags": [pa.string()]}`.

        Raises ShreddingError for a type that cannot be shredded, ArgumentTypeError for other
        objects.
        """
        return cls.from_arrow(_arrow_type(spec))

    @classmethod
    def from_arrow(cls, form: pa.DataType | pa.Field[Any]) -> ShreddingSchema:
        """Return the schema of an Arrow form; raises ShreddingError for a type that cannot be shredded."""
        field = form if isinstance(form, pa.Field) else pa.field("typed_value", form)
        _check_names(field.type)
        return cls(_native.check_shredding_schema(field))

    @classmethod
    def of_column(cls, column: pa.DataType) -> ShreddingSchema:
        """Return the schema that a shredded column, `struct<metadata, value, typed_value>`, is shredded by.

        Raises ShreddingError for one that the specification does not allow.
        """
        return cls.from_arrow(_typed(column))

    def __str__(self) -> str:
        return str(self.field.type)


UNSHREDDED = ShreddingSchema(pa.field("typed_value", pa.null()))


def _typed(group: Any) -> pa.DataType:
    """Return the type of the values in a group of `value` and `typed_value`, null without the latter."""
    position = group.get_field_index("typed_value")
    typed_value: pa.DataType = pa.null() if position < 0 else group.field(position).type
    if pa.types.is_struct(typed_value):
        return pa.struct([pa.field(part.name, _typed(part.type)) for part in typed_value])
    if pa.types.is_list(typed_value) or pa.types.is_large_list(typed_value):
        return pa.list_(_typed(typed_value.value_type))
    return typed_value


def _arrow_type(spec: Spec) -> pa.DataType:
    if spec is None:
        return pa.null()
    if isinstance(spec, pa.DataType):
        return spec
    if isinstance(spec, Mapping):
        for name in spec:
            check_text("the name of a field", name)
        return pa.struct([pa.field(name, _arrow_type(part)) for name, part in spec.items()])
    if not isinstance(spec, list | tuple) or len(spec) != 1:
        raise ArgumentTypeError(
            f"{spec!r} is no shredding schema: give an Arrow type such as pa.int64(), a dict of names for an "
            "object, a list of one for an array, or None"
        )
    return pa.list_(_arrow_type(spec[0]))


def _check_names(arrow_type: Any) -> None:
    """Raise ShreddingError for a name that would end early where it crosses to the kernel."""
    for part in (arrow_type.field(index) for index in range(arrow_type.num_fields)):
        if "\0" in part.name:
            raise ShreddingError(f"the field {part.name!r} cannot be shredded: its name has a NUL character")
        _check_names(part.type)


def shred(variants: ArrowArray, schema: ShreddingSchema, *, numeric: Numeric = "value") -> pa.StructArray:
    """Return Variants as `struct<metadata, value, typed_value>`, each value where it fits.

    A value goes to `typed_value` when it is of the column's type, or an exact number that the column holds
    without loss; everything else stays in `value`. `numeric="strict"` leaves numbers of another type than the
    column's in `value`, too: then every value comes back with the type that it had. Raises ArgumentTypeError
    for variants that are not an array, and for a schema that is not a ShreddingSchema.
    """
    check_option("numeric", numeric, get_args(Numeric))
    if not isinstance(schema, ShreddingSchema):
        raise ArgumentTypeError(
            f"expected a ShreddingSchema, got {schema!r}: build one with ShreddingSchema.of"
        )
    return _native.shred(to_arrow_array(variants), schema.field, numeric)


def unshred(shredded: ArrowArray, *, on_conflict: OnConflict = "error") -> pa.StructArray:
    """Return shredded columns as Variants, a `struct<metadata: binary, value: binary>`.

    Raises ShreddingError for columns that are no shredded Variant, and ConflictingValueError where `value`
    and `typed_value` contradict each other, unless `on_conflict="typed"`. Raises ArgumentTypeError for a
    value that is not an array.
    """
    check_option("on_conflict", on_conflict, get_args(OnConflict))
    return _native.unshred(to_arrow_array(shredded), on_conflict)


def infer_shredding_schema(
    variants: ArrowArray | Sequence[ArrowArray],
    *,
    max_leaves: int = MAX_LEAVES,
    max_depth: int = MAX_DEPTH,
    spark_compatible: bool = True,
) -> ShreddingSchema:
    """Return the schema that suits Variants, or JSON text: the majority type of each path that pays its
    column.

    `spark_compatible` leaves out the types that make Spark refuse the whole column: time, timestamps of
    nanoseconds, uuid. Raises ArgumentTypeError for a single text instead of an array or a list of them.
    """
    leaves, depth = whole_number("max_leaves", max_leaves, 0), whole_number("max_depth", max_depth, 0)
    parts = variants if isinstance(variants, list | tuple) and not _is_text(variants) else [variants]
    arrays = [to_arrow_array(part) for part in parts]
    return ShreddingSchema(_native.infer(arrays, leaves, depth, spark_compatible))


def _is_text(values: Sequence[Any]) -> bool:
    return all(value is None or isinstance(value, str) for value in values)
