"""The grammar of SQL types, and the Arrow types of their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from .._arrow import SIMPLE_TYPES
from .._checks import nearest
from .lexer import Cursor, GrammarError, too_deep
from .types import MAX_PRECISION

__all__ = ["PARAMETRIC_TYPES", "read_type", "type_of_text"]

OTHER_NAMES = {
    "bool": "boolean",
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "dec": "decimal",
    "numeric": "decimal",
    "text": "string",
    "timestamp_ltz": "timestamp",
}


def read_type(cursor: Cursor) -> pa.DataType | None:
    """Return the type at the position, None for `variant`, and move past it; raises GrammarError."""
    token = cursor.token
    written = cursor.take_name()
    name = OTHER_NAMES.get(written.lower(), written.lower())
    if name == "variant":
        return None
    if name in SIMPLE_TYPES:
        return SIMPLE_TYPES[name]
    if name in PARAMETRIC_TYPES:
        return PARAMETRIC_TYPES[name](cursor)
    known = [*SIMPLE_TYPES, "decimal(p,s)", "array<…>", "struct<…>", "map<…>", "variant"]
    close = nearest(written, [*SIMPLE_TYPES, *PARAMETRIC_TYPES, "variant"])
    hint = "" if close is None else f"; did you mean {close}?"
    raise GrammarError(token.start, f"unknown type `{written}`", f"expected one of {', '.join(known)}{hint}")


def type_of_text(text: str) -> pa.DataType | None:
    """Return the type that is a whole text, None for `variant`; raises ExpressionError."""
    cursor = Cursor(text)
    try:
        arrow_type = read_type(cursor)
        cursor.expect_end()
    except GrammarError as failure:
        raise failure.error(text) from None
    except RecursionError as error:
        raise too_deep(text) from error
    return arrow_type


def _decimal(cursor: Cursor) -> pa.DataType:
    start = cursor.position
    sizes: list[int] = []
    if cursor.accept("("):
        sizes.append(_size(cursor))
        if cursor.accept(","):
            sizes.append(_size(cursor))
        cursor.expect(")")
    precision, scale = (*sizes, *(10, 0)[len(sizes) :])
    if not 1 <= precision <= MAX_PRECISION or not 0 <= scale <= precision:
        raise GrammarError(
            start,
            f"decimal(p,s) requires 1 <= p <= {MAX_PRECISION} and 0 <= s <= p, got ({precision},{scale})",
        )
    return pa.decimal128(precision, scale)


def _size(cursor: Cursor) -> int:
    # No size has more digits, and converting thousands of them is slow.
    if not cursor.token.text.isdecimal() or len(cursor.token.text) > 3:
        cursor.fail("a number of digits")
    return int(cursor.take().text)


def _array(cursor: Cursor) -> pa.DataType:
    cursor.expect("<")
    element = _inner_type(cursor)
    cursor.expect(">")
    return pa.list_(pa.field("element", element))


def _map(cursor: Cursor) -> pa.DataType:
    cursor.expect("<")
    key = _inner_type(cursor)
    cursor.expect(",")
    value = _inner_type(cursor)
    cursor.expect(">")
    return pa.map_(key, value)


def _struct(cursor: Cursor) -> pa.DataType:
    fields: list[pa.Field[Any]] = []
    if not cursor.accept("<>"):
        cursor.expect("<")
        while True:
            name = cursor.take_name()
            cursor.accept(":")
            fields.append(pa.field(name, _inner_type(cursor)))
            if not cursor.accept(","):
                break
        cursor.expect(">")
    return pa.struct(fields)


def _inner_type(cursor: Cursor) -> pa.DataType:
    start = cursor.token.start
    arrow_type = read_type(cursor)
    if arrow_type is None:
        raise GrammarError(
            start, "a Variant inside another type cannot be cast", "extract its parts one by one"
        )
    return arrow_type


PARAMETRIC_TYPES: dict[str, Callable[[Cursor], pa.DataType]] = {
    "decimal": _decimal,
    "array": _array,
    "map": _map,
    "struct": _struct,
}
