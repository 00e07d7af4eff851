"""SQL text of `columns=` and `where=` as expressions: parse, bind to a schema, evaluate over Arrow batches.

`parse` reads the Databricks dialect. `bind` resolves names against a table and settles every type. `inputs`
says what a reader has to provide: ordinary columns, and extractions from Variant columns, each under its
`input_name`. `evaluate` and `filter_mask` then work on batches that hold those inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from .binding import bind, bind_predicate
from .casting import cast_values
from .evaluation import ROW_NUMBERS, evaluate, filter_mask, uncast
from .tree import (
    Call,
    Cast,
    Column,
    Expression,
    Extraction,
    Field,
    Input,
    Literal,
    Name,
    Path,
    describe,
    input_name,
    inputs,
    is_whole,
    output_type,
    transform,
)
from .types import kind_of

__all__ = [
    "ROW_NUMBERS",
    "Call",
    "Cast",
    "Column",
    "Expression",
    "Extraction",
    "Field",
    "Input",
    "Literal",
    "Name",
    "Path",
    "bind",
    "bind_predicate",
    "cast_values",
    "describe",
    "evaluate",
    "filter_mask",
    "input_name",
    "inputs",
    "is_whole",
    "kind_of",
    "output_type",
    "parse",
    "parse_columns",
    "parse_type",
    "transform",
    "uncast",
]

# `sql` is imported where it is used: sqlglot takes most of the time that `import delta_variant` may take.


def parse(text: str) -> Expression:
    """Return the expression that `text` writes in the Databricks dialect.

    `ExpressionError` quotes the piece that is not understood and says what is.
    """
    from .sql import parse_expression

    return parse_expression(text)


def parse_columns(columns: Mapping[str, str] | Sequence[str] | None) -> dict[str, Expression]:
    """Return the expression of each output column, in order.

    A mapping gives output names; an item of a sequence is named by its text, or by `as name`. None gives no
    expression: the caller takes every column.
    """
    from .sql import parse_named_expressions

    return parse_named_expressions(columns)


def parse_type(text: str) -> pa.DataType | None:
    """Return the Arrow type of a SQL type, None for `variant`; `ExpressionError` when it is no type."""
    from .sql import parse_sql_type

    return parse_sql_type(text)
