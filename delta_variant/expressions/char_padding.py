"""Columns of Spark's type `char(n)`: a read pads text with spaces to n characters, as Spark does.

A comparison of such columns and constants pads all of them to the longest. Bounds of files are those of the
text as it is stored, so a padded column skips no files.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pyarrow as pa

from .tree import PAD, Call, Column, Expression, Literal, transform

__all__ = ["pad_chars", "padded_column"]

COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">=", "<=>", "in"})


def pad_chars(bound: Expression, widths: Mapping[str, int]) -> Expression:
    """Return a bound expression in which the columns of `widths` are padded to their number of characters."""

    def change(node: Expression) -> Expression | None:
        if isinstance(node, Column) and node.name in widths:
            return _pad(node, widths[node.name])
        if not isinstance(node, Call) or node.function not in COMPARISONS:
            return None
        compared = [_width(each, widths) for each in node.arguments]
        if None in compared or not any(isinstance(each, Column) for each in node.arguments):
            return None
        longest = max(each or 0 for each in compared)
        return msgspec.structs.replace(node, arguments=tuple(_pad(each, longest) for each in node.arguments))

    return transform(bound, change) if widths else bound


def padded_column(bound: Expression) -> str | None:
    """Return the column that an expression pads, None for any other expression."""
    column = bound.arguments[0] if isinstance(bound, Call) and bound.function == PAD else None
    return column.name if isinstance(column, Column) else None


def _width(compared: Expression, widths: Mapping[str, int]) -> int | None:
    """Return the width of a column or the length of a constant, None for another expression."""
    if isinstance(compared, Column):
        return widths.get(compared.name)
    if isinstance(compared, Literal):
        value = compared.value.as_py()
        return len(value) if isinstance(value, str) else 0 if value is None else None
    return None


def _pad(text: Expression, width: int) -> Expression:
    if isinstance(text, Literal):
        value = text.value.as_py()
        return text if value is None else Literal(pa.scalar(value.ljust(width), text.value.type))
    return Call(PAD, (text, Literal(pa.scalar(width, pa.int32()))), pa.string())
