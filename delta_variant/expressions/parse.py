"""Parse SQL text to expressions.

`bind` resolves names against a table and determines every type. `inputs` lists the columns and the
extractions from Variant columns that a reader has to provide, each under its `input_name`. `evaluate` and
`filter_mask` work on batches with those inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from .tree import Aggregate, Expression

__all__ = ["parse", "parse_aggregates", "parse_columns", "parse_lateral", "parse_type"]

# `sql` is imported on demand: importing sqlglot takes longer than the rest of `import delta_variant`.


def parse(text: str) -> Expression:
    """Return the expression in `text`, which is SQL in the Databricks dialect.

    Raises ExpressionError, which quotes the unsupported part and lists the supported syntax.
    """
    from .sql import parse_expression

    return parse_expression(text)


def parse_columns(columns: Mapping[str, str] | Sequence[str] | None) -> dict[str, Expression]:
    """Return the expression of each output column, in order.

    The keys of a mapping are the output names. The name of an item of a sequence is its text, or the alias
    of `expression as name`. None means every column, and the result is empty.
    """
    from .sql import parse_named_expressions

    return parse_named_expressions(columns)


def parse_lateral(text: str) -> tuple[str, Expression, str]:
    """Return the table function in `variant_explode(variant) as name`, its argument, and the name.

    Raises ExpressionError for any other text.
    """
    from .sql import parse_table_function

    return parse_table_function(text)


def parse_aggregates(aggregates: Mapping[str, str] | Sequence[str]) -> dict[str, Aggregate]:
    """Return the aggregate of each output column, in order; the names are those of `parse_columns`."""
    from .sql import parse_aggregates

    return parse_aggregates(aggregates)


def parse_type(text: str) -> pa.DataType | None:
    """Return the Arrow type of a SQL type, None for `variant`; raises ExpressionError for another text."""
    from .sql import parse_sql_type

    return parse_sql_type(text)
