"""Columns of Spark's type `char(n)`: a read pads text with spaces to n characters, as Spark does.

A comparison of such columns and constants pads all of them to the longest, except `in` with a list that has
another column. Text within structs, arrays and maps is padded by a read, and compared as it is. Bounds of
files are those of the text as it is stored, so a padded column skips no files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import Array
from .tree import PAD, Call, Column, Expression, Literal, transform

COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">=", "<=>", "in"})

Widths: TypeAlias = Mapping[tuple[str, ...], int]
"""The characters of each `char(n)` of a column, by path within it."""
WIDTHS = pa.map_(pa.list_(pa.string()), pa.int32())


def pad_chars(bound: Expression, columns: Mapping[str, Widths], table: str | None = None) -> Expression:
    """Return a bound expression in which the columns of a table are padded to their widths."""

    def widths(node: Expression) -> Widths:
        is_of_table = isinstance(node, Column) and node.table == table
        return columns.get(node.name, {}) if is_of_table and isinstance(node, Column) else {}

    def change(node: Expression) -> Expression | None:
        if found := widths(node):
            return _pad(node, found)
        if not isinstance(node, Call) or node.function not in COMPARISONS or _is_of_columns(node):
            return None
        compared = [_width(each, widths(each)) for each in node.arguments]
        if None in compared or not any(isinstance(each, Column) for each in node.arguments):
            return None
        longest = max(each or 0 for each in compared)
        padded = (_pad(each, {(): longest}) for each in node.arguments)
        return msgspec.structs.replace(node, arguments=tuple(padded))

    return transform(bound, change) if columns else bound


def _is_of_columns(node: Call) -> bool:
    """Return whether a list of options has another column: Spark compares these as a read pads them."""
    options = node.arguments[1:]
    return len(options) > 1 and not all(isinstance(each, Literal) for each in options)


def padded_column(bound: Expression) -> str | None:
    """Return the column that an expression pads, None for any other expression."""
    column = bound.arguments[0] if isinstance(bound, Call) and bound.function == PAD else None
    return column.name if isinstance(column, Column) else None


def pad_values(array: Array, widths: pa.Scalar[Any]) -> Array:
    """Return a column with its text padded; `widths` has pairs of a path and a number of characters."""
    return _padded(array, {tuple(path): characters for path, characters in widths.as_py()})


def _width(compared: Expression, widths: Widths) -> int | None:
    """Return the width of a column or the length of a constant, None for another expression."""
    if isinstance(compared, Literal):
        value = compared.value.as_py()
        return len(value) if isinstance(value, str) else 0 if value is None else None
    return widths.get(())


def _pad(text: Expression, widths: Widths) -> Expression:
    if isinstance(text, Literal):
        value = text.value.as_py()
        return text if value is None else Literal(pa.scalar(value.ljust(widths[()]), text.value.type))
    assert isinstance(text, Column)
    return Call(PAD, (text, Literal(pa.scalar(list(widths.items()), WIDTHS))), text.type)


def _padded(array: Any, widths: Widths) -> Any:
    if () in widths:
        return pc.utf8_rpad(array, widths[()], padding=" ")
    parts: dict[str, dict[tuple[str, ...], int]] = {}
    for (step, *rest), characters in widths.items():
        parts.setdefault(step, {})[tuple(rest)] = characters
    if pa.types.is_struct(array.type):
        fields = list(array.type)
        values = (pc.struct_field(array, [index]) for index in range(len(fields)))
        padded = [
            _padded(each, parts[field.name]) if field.name in parts else each
            for field, each in zip(fields, values, strict=True)
        ]
        return pa.StructArray.from_arrays(padded, fields=fields, mask=array.is_null())
    start, stop = array.offsets[0].as_py(), array.offsets[-1].as_py()
    offsets = pc.subtract(array.offsets, start)
    if pa.types.is_map(array.type):
        keys, items = (
            _padded(each, parts[step]) if step in parts else each
            for step, each in (
                ("key", array.keys.slice(start, stop - start)),
                ("value", array.items.slice(start, stop - start)),
            )
        )
        map_type: Any = array.type
        return pa.MapArray.from_arrays(offsets, keys, items, type=map_type, mask=array.is_null())
    elements = _padded(array.values.slice(start, stop - start), parts["element"])
    return pa.ListArray.from_arrays(offsets, elements, type=array.type, mask=array.is_null())
