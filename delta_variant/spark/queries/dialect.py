"""The dialect in which sqlglot reads whole queries. Their expressions are read by `expressions.parse`."""

from __future__ import annotations

from sqlglot.dialects.databricks import Databricks
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from ...expressions.constructors import CONSTRUCTORS

__all__ = ["CAST_TOKENS", "CLOSING", "OPENING", "PARSER_ERRORS", "Dialect"]

CAST_TOKENS = (TokenType.DCOLON, TokenType.QDCOLON)
OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET)
CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET)
# What the functions of sqlglot raise for a call without the arguments that they need.
PARSER_ERRORS = (SqlglotError, AttributeError, IndexError, KeyError, TypeError, ValueError)


class Dialect(Databricks):
    """Databricks SQL in which a doubled quote in a string literal is an escaped quote, as in Spark 4.

    Constructors are parsed as any function: sqlglot would pair the arguments, and drop the last one.
    """

    class Tokenizer(Databricks.Tokenizer):
        STRING_ESCAPES = ["\\", "'", '"']

    class Parser(Databricks.Parser):  # type: ignore[misc,valid-type]
        FUNCTIONS = {
            name: parse
            for name, parse in Databricks.Parser.FUNCTIONS.items()
            if name.lower() not in {"struct", *CONSTRUCTORS} - {"array"}
        }
