"""The interface of an adapter: an engine's name, version and a function for each capability."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

__all__ = ["Cell", "Engine", "NotOfferedError", "Query", "VariantBytes"]


@dataclass(frozen=True)
class VariantBytes:
    """A Variant that an engine returns."""

    metadata: bytes
    value: bytes


Cell: TypeAlias = Any
"""A value of a column: VariantBytes, None for SQL NULL, a Python value, or lists and dicts of them."""


@dataclass(frozen=True)
class Query:
    """A query of the kind `select`: a path of a Variant column, cast to a type.

    Without a condition it returns `id` and `found`, the value of each row. With one, an operator and its
    literal, it returns the `id` of each row for which the condition is true. An empty path is the column
    itself.
    """

    column: str
    path: tuple[str, ...]
    type: str
    where: tuple[Any, ...] = ()


class NotOfferedError(Exception):
    """The engine's public API cannot express this case. This says nothing about the engine's internals."""


@dataclass(frozen=True)
class Engine:
    """The public API of an engine; a function is None if the engine does not have the capability.

    A function raises the errors of the engine, and NotOfferedError if the engine's API cannot express the
    case. `options` are the options of cases that the engine supports, which are passed as keyword arguments.
    """

    name: str
    version: str
    options: frozenset[str] = frozenset()
    to_json: Callable[..., str] | None = None
    """`(file, column)`: the JSON text of the one Variant in an unshredded Parquet file."""
    decode: Callable[..., Mapping[str, Any]] | None = None
    """`(variant)`: the typed value, by the accessors of an engine that has no JSON text."""
    parse_json: Callable[..., VariantBytes] | None = None
    """`(text)`"""
    shred: Callable[..., None] | None = None
    """`(file, column, schema, out)`: write the column of an unshredded file, shredded, to the file `out`."""
    read: Callable[..., Sequence[Cell]] | None = None
    """`(file, column)`: the rows of a Variant column of a Parquet file."""
    read_table: Callable[..., Sequence[Mapping[str, Cell]]] | None = None
    """`(folder, version)`: all rows of a Delta table; version None is the latest."""
    select: Callable[..., Sequence[Mapping[str, Cell]]] | None = None
    """`(folder, query)`: the rows of a Query on a Delta table of all Parquet files in the folder."""
    rewrite: Callable[..., None] | None = None
    """`(folder, delete)`: delete the row with this `id` from a Delta table, or compact it if None."""
    decode_stats: Callable[..., VariantBytes] | None = None
    """`(text)`: the Variant in the z85 text of statistics."""
    encode_stats: Callable[..., str] | None = None
    """`(variant)`: the z85 text for statistics."""
    collect_stats: Callable[..., Mapping[str, Any]] | None = None
    """`(file, column)`: `min` and `max` as VariantBytes or None, and `null_count` if it is counted."""
    load_log: Callable[..., Mapping[str, Any]] | None = None
    """`(folder, version)`: the answer of kind `log`, with the keys in the README of the cases."""
