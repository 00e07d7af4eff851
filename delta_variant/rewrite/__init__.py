"""Changing the rows that a table has: one commit each, which replaces only files that hold such rows."""

from .deletion import delete
from .merging import Merge, merge
from .result import RewriteResult
from .updating import update

__all__ = ["Merge", "RewriteResult", "delete", "merge", "update"]
