"""Changing the rows that a table has: one commit each, which replaces only files that hold such rows."""

from .deletion import delete
from .layout import LeafPath
from .merging import Merge, merge
from .optimization import Optimization, optimize
from .result import RewriteResult
from .updating import update

__all__ = ["LeafPath", "Merge", "Optimization", "RewriteResult", "delete", "merge", "optimize", "update"]
