"""Scalar functions of the kernel, which Arrow lacks or computes in another way than Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _native
from .moments import UTC

__all__ = ["apply_function"]


def apply_function(name: str, columns: Sequence[Any], rows: int, timezone: str = UTC) -> Any:
    """Return a function of Arrow arrays of `rows` rows, or of one row, which stands for all.

    Raises CastError for a value that has no result, and SchemaError for arguments that are not supported.
    """
    return _native.apply_function(name, list(columns), rows, timezone)
