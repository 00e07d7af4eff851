"""SQL types: their names, their grammar, and the Arrow types of their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias
from typing import Literal as OneOf

import pyarrow as pa

from .._arrow import SIMPLE_TYPES, is_any_binary, is_any_text
from .._checks import nearest
from ..variant.objects import is_variant
from ..variant.values import EXTENSION, VARIANT_TYPE
from .lexer import Cursor, GrammarError, read_whole_text

Kind: TypeAlias = OneOf[
    "integer",
    "decimal",
    "floating",
    "string",
    "boolean",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
    "null",
    "nested",
]

NUMERIC: frozenset[Kind] = frozenset({"integer", "decimal", "floating"})
MAX_PRECISION = 38

NAMES = {pa.null(): "void", **{arrow_type: name for name, arrow_type in SIMPLE_TYPES.items()}}

# The decimal digits that Spark uses for each integer type.
INTEGER_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}


def kind_of(arrow_type: pa.DataType) -> Kind:
    """Return the kind of a type. Types of one kind share their rules of coercion."""
    if pa.types.is_timestamp(arrow_type):
        return "timestamp" if arrow_type.tz else "timestamp_ntz"
    for kind, belongs in KINDS.items():
        if belongs(arrow_type):
            return kind
    return "nested"


KINDS: dict[Kind, Callable[[pa.DataType], bool]] = {
    "integer": pa.types.is_signed_integer,
    "decimal": pa.types.is_decimal,
    "floating": pa.types.is_floating,
    "string": is_any_text,
    "boolean": pa.types.is_boolean,
    "binary": is_any_binary,
    "date": pa.types.is_date,
    "null": pa.types.is_null,
}


def as_decimal(arrow_type: pa.DataType) -> Any:
    """Return the decimal type that can hold every value of an integer type, or a decimal type itself."""
    if pa.types.is_decimal(arrow_type):
        return arrow_type
    return pa.decimal128(INTEGER_DIGITS[arrow_type.bit_width], 0)


def type_name(arrow_type: pa.DataType | None, quote: str = "`") -> str:
    """Return the SQL name of a type, `variant` for None; `quote` encloses the names of fields."""
    if arrow_type is None:
        return "variant"
    if pa.types.is_decimal(arrow_type):
        return f"decimal({arrow_type.precision},{arrow_type.scale})"
    if pa.types.is_map(arrow_type):
        value = _name_within(arrow_type.item_field, quote)
        return f"map<{type_name(arrow_type.key_type, quote)},{value}>"
    if pa.types.is_list(arrow_type):
        return f"array<{_name_within(arrow_type.value_field, quote)}>"
    if pa.types.is_dictionary(arrow_type):
        return f"dictionary<{type_name(arrow_type.value_type, quote)}>"
    if pa.types.is_struct(arrow_type):
        fields = (
            f"{quote}{_escaped(each.name, quote)}{quote}:{_name_within(each, quote)}" for each in arrow_type
        )
        return f"struct<{','.join(fields)}>"
    return NAMES.get(arrow_type, str(arrow_type))


def fields_of(arrow_type: Any) -> list[pa.Field[Any]]:
    """Return the fields of a nested type, of a map its key and its value; none of a plain type."""
    if pa.types.is_map(arrow_type):
        return [arrow_type.key_field, arrow_type.item_field]
    return [arrow_type.field(number) for number in range(arrow_type.num_fields)]


def with_fields(arrow_type: Any, fields: Sequence[Any]) -> pa.DataType:
    """Return a nested type with other fields."""
    if pa.types.is_map(arrow_type):
        return pa.map_(*fields)
    return pa.struct(fields) if pa.types.is_struct(arrow_type) else pa.list_(*fields)


def _escaped(name: str, quote: str) -> str:
    return name.replace(quote, 2 * quote) if quote else name


def _name_within(field: pa.Field[Any], quote: str) -> str:
    return type_name(None if is_variant(field) else field.type, quote)


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


TEXT_TYPES = {"char": "char", "character": "char", "varchar": "varchar"}
"""The types of text with a limited width, which columns can have, by their names."""


def read_type(cursor: Cursor, *, of_column: bool = False) -> pa.DataType | None:
    """Return the type at the position, None for `variant`, and move past it; raises GrammarError.

    Columns can have Variants inside other types. Values cannot be cast to such a type.
    """
    token = cursor.token
    written = cursor.take_name()
    name = OTHER_NAMES.get(written.lower(), written.lower())
    if name == "variant":
        return None
    if name in SIMPLE_TYPES:
        return SIMPLE_TYPES[name]
    if name in PARAMETRIC_TYPES:
        return PARAMETRIC_TYPES[name](cursor, of_column)
    known = [*SIMPLE_TYPES, "decimal(p,s)", "array<…>", "struct<…>", "map<…>", "variant"]
    if name in TEXT_TYPES:
        raise GrammarError(token.start, f"`{written}(n)` is a type of whole new columns only", "use string")
    close = nearest(written, [*SIMPLE_TYPES, *PARAMETRIC_TYPES, "variant"])
    hint = "" if close is None else f"; did you mean {close}?"
    raise GrammarError(token.start, f"unknown type `{written}`", f"expected one of {', '.join(known)}{hint}")


def read_column_type(cursor: Cursor) -> tuple[pa.DataType | None, str | None]:
    """Return the type at the position of a column, and the text of `char(n)` or `varchar(n)`, a string."""
    name = TEXT_TYPES.get(cursor.token.text.lower())
    if name is None or cursor.following.text != "(":
        return read_type(cursor, of_column=True), None
    cursor.take()
    cursor.expect("(")
    if not cursor.token.text.isdecimal() or not 1 <= len(cursor.token.text.lstrip("0")) <= 9:
        cursor.fail("a number of characters")
    width = int(cursor.take().text)
    cursor.expect(")")
    return pa.string(), f"{name}({width})"


def type_of_text(text: str, *, of_column: bool = False) -> pa.DataType | None:
    """Return the type that is a whole text, as `read_type` does; raises ExpressionError."""
    return read_whole_text(Cursor(text), partial(read_type, of_column=of_column))


def _decimal(cursor: Cursor, of_column: bool) -> pa.DataType:
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


def _array(cursor: Cursor, of_column: bool) -> pa.DataType:
    cursor.expect("<")
    element = _inner_field(cursor, "element", of_column)
    cursor.expect(">")
    return pa.list_(element)


def _map(cursor: Cursor, of_column: bool) -> pa.DataType:
    cursor.expect("<")
    start = cursor.token.start
    key = read_type(cursor, of_column=of_column)
    if key is None:
        raise GrammarError(start, "a Variant cannot be the key of a map", "use string")
    cursor.expect(",")
    # The stubs of pyarrow lack fields as the values of maps.
    value: Any = _inner_field(cursor, "value", of_column)
    cursor.expect(">")
    return pa.map_(key, value)


def _struct(cursor: Cursor, of_column: bool) -> pa.DataType:
    fields: list[pa.Field[Any]] = []
    if not cursor.accept("<>"):
        cursor.expect("<")
        while True:
            name = cursor.take_name()
            cursor.accept(":")
            fields.append(_inner_field(cursor, name, of_column))
            if not cursor.accept(","):
                break
        cursor.expect(">")
    return pa.struct(fields)


def _inner_field(cursor: Cursor, name: str, of_column: bool) -> pa.Field[Any]:
    start = cursor.token.start
    arrow_type = read_type(cursor, of_column=of_column)
    if arrow_type is not None:
        return pa.field(name, arrow_type)
    if of_column:
        return pa.field(name, VARIANT_TYPE, metadata=EXTENSION)
    raise GrammarError(start, "a Variant inside another type cannot be cast", "extract its parts one by one")


PARAMETRIC_TYPES: dict[str, Callable[[Cursor, bool], pa.DataType]] = {
    "decimal": _decimal,
    "array": _array,
    "map": _map,
    "struct": _struct,
}
