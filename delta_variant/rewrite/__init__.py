"""Changing the rows that a table has: one commit each, which replaces only files that hold such rows."""

from .deletion import delete
from .result import RewriteResult
from .updating import update

__all__ = ["RewriteResult", "delete", "update"]
