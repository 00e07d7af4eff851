"""Functions that change arrays of Variants, with the names and the semantics of Spark 4.3."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from .. import _native
from .._options import Change
from ..errors import ArgumentTypeError, ExpressionError
from .functions import to_variants
from .paths import parse_path
from .values import ArrowArray, to_arrow_array


def variant_insert(variants: ArrowArray, path: str, value: Any) -> pa.StructArray:
    """Return Variants with a new field, or with a new element before the one at an index.

    Missing objects and arrays on the path are created. An array that is shorter than the index is filled
    with Variant nulls.

    Args:
        variants: Variants as an array, shredded or not, or a chunked array.
        path: A path such as `$.user.id` or `$.items[0]`, not `$`.
        value: An Arrow array with a value or a Variant for each row, or one Python object for all rows. Null
            makes the result null; a Variant null is `Variant.from_json("null")`.

    Returns:
        An array of `struct<metadata: binary, value: binary>`. Null stays null.

    Raises:
        VariantPathError: The object already has the field, or a step meets another kind of value; `row` is
            the row. `try_variant_insert` returns null for it.
        ExpressionError: The path is invalid, or `$`.
        MalformedVariantError: Bytes are not a Variant; `row` is the row.
        ArgumentTypeError: `variants` is not an array, or `value` has another length or type.

    Example:
        >>> from delta_variant.functions import parse_json, to_json, variant_insert
        >>> to_json(variant_insert(parse_json(['{"a": [1, 2]}']), "$.a[1]", "x")).to_pylist()
        ['{"a":[1,"x",2]}']
    """
    return _change_path("variant_insert", variants, path, value, "insert", strict=True)


def try_variant_insert(variants: ArrowArray, path: str, value: Any) -> pa.StructArray:
    """Return Variants with a new field or element, and null where `variant_insert` fails.

    Args:
        variants: Variants as an array, shredded or not, or a chunked array.
        path: A path such as `$.user.id` or `$.items[0]`, not `$`.
        value: The new value, as in `variant_insert`.

    Returns:
        An array of `struct<metadata: binary, value: binary>`.

    Raises:
        ExpressionError: The path is invalid, or `$`.
        MalformedVariantError: Bytes are not a Variant; `row` is the row.
        ArgumentTypeError: `variants` is not an array, or `value` has another length or type.

    Example:
        >>> from delta_variant.functions import parse_json, to_json, try_variant_insert
        >>> to_json(try_variant_insert(parse_json(['{"a": 1}', "{}"]), "$.a", 2)).to_pylist()
        [None, '{"a":2}']
    """
    return _change_path("try_variant_insert", variants, path, value, "insert", strict=False)


def variant_set(
    variants: ArrowArray, path: str, value: Any, *, create_if_missing: bool = True
) -> pa.StructArray:
    """Return Variants with the value at a path replaced, or created.

    Missing objects and arrays on the path are created. An array that is shorter than the index is filled
    with Variant nulls.

    Args:
        variants: Variants as an array, shredded or not, or a chunked array.
        path: A path such as `$.user.id` or `$.items[0]`, not `$`.
        value: The new value, as in `variant_insert`.
        create_if_missing: Whether a missing field or element is created, by default True. Otherwise a
            Variant without it stays as it is.

    Returns:
        An array of `struct<metadata: binary, value: binary>`. Null stays null.

    Raises:
        VariantPathError: A step meets another kind of value; `row` is the row. `try_variant_set` returns
            null for it.
        ExpressionError: The path is invalid, or `$`.
        MalformedVariantError: Bytes are not a Variant; `row` is the row.
        ArgumentTypeError: `variants` is not an array, or `value` has another length or type.

    Example:
        >>> from delta_variant.functions import parse_json, to_json, variant_set
        >>> to_json(variant_set(parse_json(['{"a": 1}', "{}"]), "$.b.c", True)).to_pylist()
        ['{"a":1,"b":{"c":true}}', '{"b":{"c":true}}']
    """
    change: Change = "set" if create_if_missing else "replace"
    return _change_path("variant_set", variants, path, value, change, strict=True)


def try_variant_set(
    variants: ArrowArray, path: str, value: Any, *, create_if_missing: bool = True
) -> pa.StructArray:
    """Return Variants with the value at a path replaced or created, and null where `variant_set` fails.

    Args:
        variants: Variants as an array, shredded or not, or a chunked array.
        path: A path such as `$.user.id` or `$.items[0]`, not `$`.
        value: The new value, as in `variant_insert`.
        create_if_missing: Whether a missing field or element is created, by default True.

    Returns:
        An array of `struct<metadata: binary, value: binary>`.

    Raises:
        ExpressionError: The path is invalid, or `$`.
        MalformedVariantError: Bytes are not a Variant; `row` is the row.
        ArgumentTypeError: `variants` is not an array, or `value` has another length or type.

    Example:
        >>> from delta_variant.functions import parse_json, to_json, try_variant_set
        >>> to_json(try_variant_set(parse_json(['{"a": 1}', "[1]"]), "$.a", 2)).to_pylist()
        ['{"a":2}', None]
    """
    change: Change = "set" if create_if_missing else "replace"
    return _change_path("try_variant_set", variants, path, value, change, strict=False)


def variant_array_append(variants: ArrowArray, path: str, value: Any) -> pa.StructArray:
    """Return Variants with a new element at the end of the array at a path.

    Args:
        variants: Variants as an array, shredded or not, or a chunked array.
        path: A path such as `$.items`, or `$` for the Variant itself. A Variant without it stays as it is.
        value: The new element, as in `variant_insert`.

    Returns:
        An array of `struct<metadata: binary, value: binary>`. Null stays null.

    Raises:
        VariantPathError: The value is not an array, or a step meets another kind of value; `row` is the row.
            `try_variant_array_append` returns null for it.
        ExpressionError: The path is invalid.
        MalformedVariantError: Bytes are not a Variant; `row` is the row.
        ArgumentTypeError: `variants` is not an array, or `value` has another length or type.

    Example:
        >>> from delta_variant.functions import parse_json, to_json, variant_array_append
        >>> to_json(variant_array_append(parse_json(['{"a": [1]}', "{}"]), "$.a", "x")).to_pylist()
        ['{"a":[1,"x"]}', '{}']
    """
    return _change_path("variant_array_append", variants, path, value, "append", strict=True)


def try_variant_array_append(variants: ArrowArray, path: str, value: Any) -> pa.StructArray:
    """Return Variants with a new element at the end of an array, and null where there is another value.

    Args:
        variants: Variants as an array, shredded or not, or a chunked array.
        path: A path such as `$.items`, or `$` for the Variant itself. A Variant without it stays as it is.
        value: The new element, as in `variant_insert`.

    Returns:
        An array of `struct<metadata: binary, value: binary>`.

    Raises:
        ExpressionError: The path is invalid.
        MalformedVariantError: Bytes are not a Variant; `row` is the row.
        ArgumentTypeError: `variants` is not an array, or `value` has another length or type.

    Example:
        >>> from delta_variant.functions import parse_json, to_json, try_variant_array_append
        >>> to_json(try_variant_array_append(parse_json(["[1]", "5"]), "$", None)).to_pylist()
        [None, None]
        >>> to_json(try_variant_array_append(parse_json(["[1]", "5"]), "$", 2)).to_pylist()
        ['[1,2]', None]
    """
    return _change_path("try_variant_array_append", variants, path, value, "append", strict=False)


def _change_path(
    function: str, variants: ArrowArray, path: str, value: Any, change: Change, *, strict: bool
) -> pa.StructArray:
    """Return Variants with a change at a path; `strict` raises VariantPathError where it cannot be made."""
    steps = parse_path(path)
    if not steps and change != "append":
        raise ExpressionError(f"{function}: the path $ is the Variant itself; name a field or an index")
    array = to_arrow_array(variants)
    return _native.change_path(array, list(steps), to_variants(value, len(array)), change, strict)


def variant_delete(variants: ArrowArray, *paths: str) -> pa.StructArray:
    """Return Variants without the values at paths.

    Args:
        variants: Variants as an array, shredded or not, or a chunked array.
        *paths: Paths such as `$.user.id` or `$.items[0]`, not `$`, which are applied one after the other. A
            path that does not exist is ignored.

    Returns:
        An array of `struct<metadata: binary, value: binary>`. Null stays null.

    Raises:
        ExpressionError: A path is invalid, or `$`.
        MalformedVariantError: Bytes are not a Variant; `row` is the row.
        ArgumentTypeError: `variants` is not an array, or there is no path.

    Example:
        >>> from delta_variant.functions import parse_json, to_json, variant_delete
        >>> to_json(variant_delete(parse_json(['{"a": [1, 2], "b": 3}']), "$.a[0]", "$.b")).to_pylist()
        ['{"a":[2]}']
    """
    if not paths:
        raise ArgumentTypeError("variant_delete: expected at least one path")
    steps = [list(parse_path(path)) for path in paths]
    if [] in steps:
        raise ExpressionError("variant_delete: the path $ is the Variant itself; name a field or an index")
    return _native.delete_paths(to_arrow_array(variants), steps)


def variant_strip_nulls(variants: ArrowArray, *, include_arrays: bool = True) -> pa.StructArray:
    """Return Variants without the fields and elements that are Variant null, at all depths.

    Args:
        variants: Variants as an array, shredded or not, or a chunked array.
        include_arrays: Whether elements of arrays are removed, too, by default True.

    Returns:
        An array of `struct<metadata: binary, value: binary>`. Null stays null, and so does a Variant that is
        itself null.

    Raises:
        ArgumentTypeError: `variants` is not an array.
        MalformedVariantError: Bytes are not a Variant; `row` is the row.

    Example:
        >>> from delta_variant.functions import parse_json, to_json, variant_strip_nulls
        >>> to_json(variant_strip_nulls(parse_json(['{"a": null, "b": [1, null]}']))).to_pylist()
        ['{"b":[1]}']
    """
    return _native.strip_nulls(to_arrow_array(variants), include_arrays)
