"""Shredding: schemas of typed columns, and Variants to and from shredded columns (VariantShredding.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args

import pyarrow as pa

from .. import _native
from .._arrow import SIMPLE_TYPES, is_any_list
from .._checks import check_option, check_text, to_integer
from .._options import Numeric, OnConflict
from ..errors import ArgumentTypeError, ShreddingError
from .values import ArrowArray, to_arrow_array

Spec: TypeAlias = "str | pa.DataType | Mapping[str, Spec] | Sequence[Spec] | None"
"""A type for a leaf, of SQL or Arrow, a mapping for an object, a list of one item for an array, None for
`value`."""

DECIMAL = re.compile(r"decimal\(\s*(\d\d?)\s*,\s*(\d\d?)\s*\)")

MAX_LEAVES = _native.MAX_LEAVES
MAX_DEPTH = _native.MAX_DEPTH


@dataclass(frozen=True)
class ShreddingSchema:
    """The paths of a Variant that have a `typed_value`, and the types of these (VariantShredding.md).

    Attributes:
        field: The schema as an Arrow field: objects are structs with their fields sorted by name, arrays are
            lists, and a path that has only `value` is of the null type.

    Example:
        >>> print(ShreddingSchema.of({"id": "bigint", "tags": ["string"]}))
        struct<id: int64, tags: list<element: string>>
    """

    field: pa.Field[Any]

    @classmethod
    def of(cls, spec: Spec) -> ShreddingSchema:
        """Return the schema of a nested description: `{"id": "bigint", "tags": ["string"]}`.

        Args:
            spec: A SQL type such as `"bigint"` or an Arrow type for a leaf, a dict from names to specs for an
                object, a list of one spec for an array, or None for a path that is not shredded.

        Returns:
            The shredding schema.

        Raises:
            ShreddingError: A type cannot be shredded, or a name contains a NUL character.
            ArgumentTypeError: `spec` is something else.
            ValueError: A text is not the name of a type.

        Example:
            >>> from delta_variant import ShreddingSchema
            >>> ShreddingSchema.of({"id": "bigint", "price": "decimal(9,2)", "tags": ["string"]}).field.type
            StructType(struct<id: int64, price: decimal128(9, 2), tags: list<element: string>>)
        """
        return cls.from_arrow(_arrow_type(spec))

    @classmethod
    def from_arrow(cls, form: pa.DataType | pa.Field[Any]) -> ShreddingSchema:
        """Return the schema of an Arrow type or field.

        Args:
            form: Objects as structs, arrays as lists, and null for a path that is not shredded.

        Returns:
            The shredding schema.

        Raises:
            ShreddingError: A type cannot be shredded, or a name contains a NUL character.

        Example:
            >>> import pyarrow as pa
            >>> from delta_variant import ShreddingSchema
            >>> numbers = ShreddingSchema.of(pa.int64())
            >>> ShreddingSchema.from_arrow(numbers.field) == numbers
            True
        """
        field = form if isinstance(form, pa.Field) else pa.field("typed_value", form)
        _check_names(field.type)
        return cls(_native.check_shredding_schema(field))

    @classmethod
    def of_column(cls, column: pa.DataType) -> ShreddingSchema:
        """Return the schema by which a column is shredded.

        Args:
            column: The type of the column: `struct<metadata, value, typed_value>`.

        Returns:
            The shredding schema.

        Raises:
            ShreddingError: VariantShredding.md does not allow the type.

        Example:
            >>> import pyarrow as pa
            >>> from delta_variant import ShreddingSchema, parse_json, shred
            >>> column = shred(parse_json(["1"]), ShreddingSchema.of(pa.int64()))
            >>> ShreddingSchema.of_column(column.type) == ShreddingSchema.of(pa.int64())
            True
        """
        return cls.from_arrow(_typed(column))

    def __str__(self) -> str:
        return str(self.field.type)


UNSHREDDED = ShreddingSchema(pa.field("typed_value", pa.null()))


def _typed(group: Any) -> pa.DataType:
    """Return the type of the values in a group of `value` and `typed_value`, null without `typed_value`."""
    position = group.get_field_index("typed_value")
    typed_value: pa.DataType = pa.null() if position < 0 else group.field(position).type
    if pa.types.is_struct(typed_value):
        return pa.struct([pa.field(part.name, _typed(part.type)) for part in typed_value])
    if is_any_list(typed_value):
        return pa.list_(_typed(typed_value.value_type))
    return typed_value


def _arrow_type(spec: Spec) -> pa.DataType:
    if spec is None:
        return pa.null()
    if isinstance(spec, pa.DataType):
        return spec
    if isinstance(spec, str):
        return _simple_type(spec)
    if isinstance(spec, Mapping):
        for name in spec:
            check_text("a field name", name)
        return pa.struct([pa.field(name, _arrow_type(part)) for name, part in spec.items()])
    if not isinstance(spec, list | tuple) or len(spec) != 1:
        raise ArgumentTypeError(
            "expected a SQL type such as 'bigint', an Arrow type, a dict for an object, a list of one item "
            f"for an array, or None, got {spec!r}"
        )
    return pa.list_(_arrow_type(spec[0]))


def _simple_type(name: str) -> pa.DataType:
    sizes = DECIMAL.fullmatch(name)
    if sizes is not None and int(sizes[2]) <= int(sizes[1]) in range(1, 39):
        return pa.decimal128(int(sizes[1]), int(sizes[2]))
    check_option("the type of a path", name, (*SIMPLE_TYPES, "decimal(9,2)"))
    return SIMPLE_TYPES[name]


def _check_names(arrow_type: Any) -> None:
    """Raise ShreddingError for a name that Arrow's C interface would truncate."""
    for part in (arrow_type.field(index) for index in range(arrow_type.num_fields)):
        if "\0" in part.name:
            raise ShreddingError(
                f"cannot shred the field {part.name!r} because its name contains a NUL character",
                path=part.name,
            )
        _check_names(part.type)


def shred(variants: ArrowArray, schema: ShreddingSchema, *, numeric: Numeric = "value") -> pa.StructArray:
    """Return Variants as a shredded `struct<metadata, value, typed_value>`.

    A value is stored in `typed_value` if it has the column's type, and in `value` otherwise.

    Args:
        variants: Variants as an array of `struct<metadata, value>`, or a chunked array.
        schema: The paths to shred and their types.
        numeric: `"value"` also stores an exact number of another type in `typed_value` if the column can hold
            it without loss. `"strict"` does not, so that every number keeps its type.

    Returns:
        A struct array with one row per Variant.

    Raises:
        ArgumentTypeError: `variants` is not an array, or `schema` is not a ShreddingSchema.
        MalformedVariantError: Bytes are not a Variant; `row` is the row.
        SchemaError: `variants` is an array of another type.
        ValueError: `numeric` is not one of its values.

    Example:
        >>> import pyarrow as pa
        >>> from delta_variant import ShreddingSchema, parse_json, shred
        >>> shredded = shred(parse_json(['{"id": 7}']), ShreddingSchema.of({"id": pa.int64()}))
        >>> shredded[0]["typed_value"]["id"]["typed_value"].as_py()
        7
    """
    check_option("numeric", numeric, get_args(Numeric))
    if not isinstance(schema, ShreddingSchema):
        raise ArgumentTypeError(
            f"expected a ShreddingSchema, got {schema!r}: build one with ShreddingSchema.of"
        )
    return _native.shred(to_arrow_array(variants), schema.field, numeric)


def unshred(shredded: ArrowArray, *, on_conflict: OnConflict = "error") -> pa.StructArray:
    """Return a shredded column as Variants, a `struct<metadata: binary, value: binary>`.

    Args:
        shredded: An array of `struct<metadata, value, typed_value>`, or a chunked array.
        on_conflict: `"error"` raises an error if `value` and `typed_value` of a row contradict each other,
            `"typed"` reads `typed_value`.

    Returns:
        A struct array with one Variant per row.

    Raises:
        ArgumentTypeError: `shredded` is not an array.
        ConflictingValueError: Two values of a row contradict each other and `on_conflict` is `"error"`.
        ShreddingError: The array is not a shredded Variant column.
        ValueError: `on_conflict` is not one of its values.

    Example:
        >>> import pyarrow as pa
        >>> from delta_variant import ShreddingSchema, parse_json, shred, to_json, unshred
        >>> shredded = shred(parse_json(['{"id": 7}']), ShreddingSchema.of({"id": pa.int64()}))
        >>> to_json(unshred(shredded)).to_pylist()
        ['{"id":7}']
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
    """Return a shredding schema for a sample: the majority type of each path that is frequent enough.

    Args:
        variants: Variants or JSON text: an array, or a list of arrays.
        max_leaves: The maximum number of leaf columns.
        max_depth: The maximum number of nested objects and arrays.
        spark_compatible: Whether to omit types that Spark cannot read and for which it rejects the whole
            column: time, timestamps in nanoseconds and uuid.

    Returns:
        The shredding schema.

    Raises:
        ArgumentTypeError: `variants` is a single string, or a limit is not an integer.
        ValueError: A limit is negative.

    Example:
        >>> from delta_variant import infer_shredding_schema
        >>> print(infer_shredding_schema(['{"id": 1}', '{"id": 2}']))
        struct<id: int64>
    """
    leaves, depth = to_integer("max_leaves", max_leaves, 0), to_integer("max_depth", max_depth, 0)
    parts = variants if isinstance(variants, list | tuple) and not _is_text(variants) else [variants]
    arrays = [to_arrow_array(part) for part in parts]
    return ShreddingSchema(_native.infer(arrays, leaves, depth, spark_compatible))


def _is_text(values: Sequence[Any]) -> bool:
    return all(value is None or isinstance(value, str) for value in values)
