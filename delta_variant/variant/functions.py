"""Functions that inspect, compare and make Variants, with the names and the semantics of Spark 4.3."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as arrow_types

from .. import _native
from .._arrow import Array, plain
from ..errors import ArgumentTypeError, SchemaError
from .objects import variants_from_column
from .values import EXTENSION, VARIANT_TYPE, ArrowArray, parse_valid_json, to_arrow_array

NULL_VALUE = b"\x00"
EXPLODED_FIELDS: list[pa.Field[Any]] = [
    pa.field("row", pa.int64(), nullable=False),
    pa.field("pos", pa.int32()),
    pa.field("key", pa.string()),
    pa.field("value", VARIANT_TYPE, metadata=EXTENSION),
]


def try_parse_json(strings: ArrowArray) -> pa.StructArray:
    """Return JSON text as Variants, and null for text that is not JSON.

    Args:
        strings: An array of strings, a chunked array or a list of strings. Null stays null.

    Returns:
        An array of `struct<metadata: binary, value: binary>` with one Variant per row.

    Raises:
        ArgumentTypeError: `strings` is a single string, or not an array.
        SchemaError: `strings` is an array of another type, or contains 2 GiB of text or more.

    Example:
        >>> from delta_variant.functions import to_json, try_parse_json
        >>> to_json(try_parse_json(['{"a": 1}', "{a: 1}"])).to_pylist()
        ['{"a":1}', None]
    """
    return parse_valid_json(strings, floats="decimal", duplicate_keys="error")[0]


def is_valid_variant(variants: ArrowArray) -> pa.BooleanArray:
    """Return whether the bytes of each row are a Variant, to the last nested value.

    Args:
        variants: Variants as an array that is not shredded, or a chunked array.

    Returns:
        An array of booleans. Null stays null.

    Raises:
        ArgumentTypeError: `variants` is not an array.
        SchemaError: `variants` is not an array of Variants.

    Example:
        >>> from delta_variant.functions import is_valid_variant
        >>> is_valid_variant([{"metadata": b"\\x01\\x00\\x00", "value": b"\\x00"}]).to_pylist()
        [True]
    """
    array = to_arrow_array(variants)
    if is_variant_type(array.type) and array.type.get_field_index("typed_value") >= 0:
        raise SchemaError("is_valid_variant: expected Variants that are not shredded: pass unshred(variants)")
    return _native.are_valid(plain(array))


def is_variant_null(variants: ArrowArray) -> pa.BooleanArray:
    """Return whether each row is a Variant null, which is a value and not a missing one.

    Args:
        variants: Variants as an array, shredded or not, or a chunked array.

    Returns:
        An array of booleans without nulls: false for a missing value.

    Raises:
        ArgumentTypeError: `variants` is not an array.
        SchemaError: `variants` is not an array of Variants.

    Example:
        >>> from delta_variant.functions import is_variant_null, parse_json
        >>> is_variant_null(parse_json(["null", "0", None])).to_pylist()
        [True, False, False]
    """
    values = _native.unshred(to_arrow_array(variants), "error")
    is_null: Array = pc.equal(values.field("value"), pa.scalar(NULL_VALUE))
    found: pa.BooleanArray = pc.call_function("and", [values.is_valid(), pc.fill_null(is_null, False)])
    return found


def schema_of_variant(variants: ArrowArray) -> pa.StringArray:
    """Return the type of each Variant in SQL: `OBJECT<id: BIGINT, tags: ARRAY<STRING>>`.

    Integers are `BIGINT`. A decimal has the digits that its value needs. The elements of an array, which may
    differ, have the type that includes all of them, at the end `VARIANT`.

    Args:
        variants: Variants as an array, shredded or not, or a chunked array.

    Returns:
        An array of strings. Null stays null; a Variant null is `VOID`.

    Raises:
        ArgumentTypeError: `variants` is not an array.
        MalformedVariantError: Bytes are not a Variant; `row` is the row.

    Example:
        >>> from delta_variant.functions import parse_json, schema_of_variant
        >>> schema_of_variant(parse_json(['{"id": 7, "price": 1.5}', "[1, null]"])).to_pylist()
        ['OBJECT<id: BIGINT, price: DECIMAL(2,1)>', 'ARRAY<BIGINT>']
    """
    return _native.schema_of_variants(to_arrow_array(variants))


def schema_of_variant_agg(variants: ArrowArray | Iterable[ArrowArray]) -> str:
    """Return the type in SQL that includes all Variants.

    Args:
        variants: Variants as an array, shredded or not, a chunked array, or an iterator over such arrays,
            which are processed one after the other.

    Returns:
        The type, `VOID` if there is no value.

    Raises:
        ArgumentTypeError: `variants` is not an array.
        MalformedVariantError: Bytes are not a Variant; `row` is the row of its array.

    Example:
        >>> from delta_variant.functions import parse_json, schema_of_variant_agg
        >>> schema_of_variant_agg(parse_json(['{"a": 1}', '{"a": 2.5, "b": true}']))
        'OBJECT<a: DECIMAL(21,1), b: BOOLEAN>'
    """
    merged = _native.MergedSchema()
    is_one = isinstance(variants, list | tuple) or not isinstance(variants, Iterable)
    is_one = is_one or hasattr(variants, "__arrow_c_array__") or hasattr(variants, "__arrow_c_stream__")
    for each in [variants] if is_one else variants:
        for chunk in each.chunks if isinstance(each, pa.ChunkedArray) else [each]:
            merged.add(to_arrow_array(chunk))
    return str(merged)


def variant_array_length(variants: ArrowArray) -> pa.Int32Array:
    """Return the number of elements of each array.

    Args:
        variants: Variants as an array, shredded or not, or a chunked array.

    Returns:
        An array of int32, null for null and for every value that is not an array.

    Raises:
        ArgumentTypeError: `variants` is not an array.
        MalformedVariantError: Bytes are not a Variant; `row` is the row.

    Example:
        >>> from delta_variant.functions import parse_json, variant_array_length
        >>> variant_array_length(parse_json(["[1, 2]", "[]", "{}"])).to_pylist()
        [2, 0, None]
    """
    return _native.array_lengths(to_arrow_array(variants))


def variant_contains(variants: ArrowArray, value: Any) -> pa.BooleanArray:
    """Return whether a value occurs in each Variant, at any depth, with the semantics of DuckDB.

    An object contains an object of which it has all fields, and an array an array of which it has all
    elements, in any order. Scalars are equal as in `variant_sort_key`. Names of fields are not values.

    Args:
        variants: Variants as an array, shredded or not, or a chunked array.
        value: An Arrow array with a value or a Variant for each row, or one Python object for all rows.

    Returns:
        An array of booleans, null where the Variant or the value is null.

    Raises:
        ArgumentTypeError: `variants` is not an array, or `value` has another length or type.
        MalformedVariantError: Bytes are not a Variant; `row` is the row.

    Example:
        >>> from delta_variant.functions import parse_json, variant_contains
        >>> events = parse_json(['{"tags": ["a", "b"]}', '{"user": {"id": 7, "name": "ann"}}'])
        >>> variant_contains(events, "b").to_pylist(), variant_contains(events, {"id": 7}).to_pylist()
        ([True, False], [False, True])
    """
    array = to_arrow_array(variants)
    return _native.contains_variants(array, to_variants(value, len(array)))


def variant_keys(variants: ArrowArray) -> pa.ListArray[Any]:
    """Return the names of the fields of each object, in ascending order.

    Args:
        variants: Variants as an array, shredded or not, or a chunked array.

    Returns:
        An array of lists of strings, null for null and for every value that is not an object.

    Raises:
        ArgumentTypeError: `variants` is not an array.
        MalformedVariantError: Bytes are not a Variant; `row` is the row.

    Example:
        >>> from delta_variant.functions import parse_json, variant_keys
        >>> variant_keys(parse_json(['{"b": 1, "a": 2}', "{}", "[]"])).to_pylist()
        [['a', 'b'], [], None]
    """
    return _native.object_keys(to_arrow_array(variants))


def variant_sort_key(variants: ArrowArray) -> pa.BinaryArray:
    """Return a key of each Variant, by which Variants are compared, grouped, joined and sorted.

    Two keys are equal if the values are: exact numbers (integers, decimals) are equal by value, and the
    order of the fields of an object does not matter (VariantEncoding.md, "Equivalence Class"). Keys are in
    the order of the values: null, booleans, exact numbers, floats, doubles, dates, times, timestamps,
    strings, binary, UUIDs, arrays, objects. NaN is the largest of its type.

    Args:
        variants: Variants as an array, shredded or not, or a chunked array.

    Returns:
        An array of binary. Null stays null.

    Raises:
        ArgumentTypeError: `variants` is not an array.
        MalformedVariantError: Bytes are not a Variant; `row` is the row.

    Example:
        >>> import pyarrow.compute as pc
        >>> from delta_variant.functions import parse_json, variant_sort_key
        >>> keys = variant_sort_key(parse_json(["10", '"x"', "9.50", "9.5", "null"]))
        >>> keys[2] == keys[3], pc.sort_indices(keys).to_pylist()
        (True, [4, 2, 3, 0, 1])
    """
    return _native.sort_keys(to_arrow_array(variants))


def variant_explode(variants: ArrowArray) -> pa.Table:
    """Return a row for each field of an object and each element of an array.

    Null, Variant null, scalars, and empty objects and arrays have no rows.

    Args:
        variants: Variants as an array, shredded or not, or a chunked array.

    Returns:
        A table with the columns `row` (int64, the row of the Variant in `variants`), `pos` (int32, the
        position in the object or array from 0), `key` (string, the name of the field, null for an element)
        and `value` (the Variant there).

    Raises:
        ArgumentTypeError: `variants` is not an array.
        MalformedVariantError: Bytes are not a Variant; `row` is the row.

    Example:
        >>> from delta_variant.functions import parse_json, to_json, variant_explode
        >>> rows = variant_explode(parse_json(['["x"]', "5", '{"b": 1, "a": 2}']))
        >>> rows["row"].to_pylist(), rows["key"].to_pylist()
        ([0, 2, 2], [None, 'a', 'b'])
        >>> to_json(rows["value"]).to_pylist()
        ['"x"', '2', '1']
    """
    return _exploded(variants, outer=False)


def variant_explode_outer(variants: ArrowArray) -> pa.Table:
    """Return a row for each field and element, and a row of nulls for a Variant that has none.

    Args:
        variants: Variants as an array, shredded or not, or a chunked array.

    Returns:
        A table as `variant_explode` returns it, in which each row of `variants` occurs at least once.

    Raises:
        ArgumentTypeError: `variants` is not an array.
        MalformedVariantError: Bytes are not a Variant; `row` is the row.

    Example:
        >>> from delta_variant.functions import parse_json, variant_explode_outer
        >>> variant_explode_outer(parse_json(['["x"]', "5"]))["pos"].to_pylist()
        [0, None]
    """
    return _exploded(variants, outer=True)


def _exploded(variants: ArrowArray, *, outer: bool) -> pa.Table:
    batch = _native.explode_variants(to_arrow_array(variants), outer)
    return pa.Table.from_arrays(
        [*batch.columns[:3], batch.column(3).cast(VARIANT_TYPE)], schema=pa.schema(EXPLODED_FIELDS)
    )


def to_variant_object(values: ArrowArray) -> pa.StructArray:
    """Return structs, maps and lists as Variants: structs and maps become objects, lists become arrays.

    Args:
        values: An array or a chunked array of a nested type, at any depth. Keys of maps are strings. A field
            with the extension name `arrow.parquet.variant` stays a Variant. Null stays null, and becomes
            Variant null within a value.

    Returns:
        An array of `struct<metadata: binary, value: binary>` with one Variant per row.

    Raises:
        ArgumentTypeError: `values` is not an array.
        SchemaError: The type is not nested, or contains a type that Variants do not have.

    Example:
        >>> import pyarrow as pa
        >>> from delta_variant.functions import to_json, to_variant_object
        >>> to_json(to_variant_object(pa.array([{"id": 7, "tags": ["x", None]}]))).to_pylist()
        ['{"id":7,"tags":["x",null]}']
    """
    array = to_arrow_array(values)
    if not arrow_types.is_nested(array.type):
        raise SchemaError(f"to_variant_object: expected structs, maps or lists, got {array.type}")
    return variants_from_column(array)


def matches_of(variants: ArrowArray, pattern: Sequence[str | int | None]) -> pa.StructArray:
    """Return an array of the values at a path with wildcards for each Variant; null stays null.

    A wildcard matches each element of an array and each field of an object (RFC 9535, section 2.3.2).
    """
    return _native.matches_of(to_arrow_array(variants), list(pattern))


def to_variants(values: Any, count: int) -> Array:
    """Return an array of values as Variants, or one Python value repeated `count` times.

    Raises ArgumentTypeError if an array has another length, and SchemaError for a type that Variants lack.
    """
    if hasattr(values, "__arrow_c_array__"):
        values = values if isinstance(values, pa.Array) else pa.array(values)
    elif hasattr(values, "__arrow_c_stream__"):
        values = pa.chunked_array(values).combine_chunks()
    else:
        return pa.repeat(_native.from_python([values], False)[0], count)
    if len(values) != count:
        raise ArgumentTypeError(f"expected {count} values, one for each Variant, got {len(values)}")
    array = to_arrow_array(values)
    return array if is_variant_type(array.type) else variants_from_column(values)


def is_variant_type(arrow_type: pa.DataType) -> bool:
    """Return whether an Arrow type is that of Variants, shredded or not."""
    if not isinstance(arrow_type, pa.StructType):
        return False
    names = {field.name for field in arrow_type}
    return {"metadata", "value"} <= names <= {"metadata", "value", "typed_value"}
