"""Parse SQL text to expressions.

`bind` then resolves names against a table and settles every type. `inputs` lists what a reader has to
provide: ordinary columns, and extractions from Variant columns, each under its `input_name`. `evaluate` and
`filter_mask` work on batches that hold those inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from .tree import Expression

__all__ = ["parse", "parse_columns", "parse_type"]

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
