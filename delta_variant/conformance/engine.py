"""What an adapter of the kit is: an engine's name and version, and a function for each thing it can do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

__all__ = ["Cell", "Engine", "NotOfferedError", "VariantBytes"]


@dataclass(frozen=True)
class VariantBytes:
    """A Variant as an engine hands it out."""

    metadata: bytes
    value: bytes


Cell: TypeAlias = Any
"""A value of a column: VariantBytes, None for SQL NULL, a Python value, or lists and dicts of them."""


class NotOfferedError(Exception):
    """The engine has no door for what a case asks: that says nothing about what is behind its adapter."""


@dataclass(frozen=True)
class Engine:
    """An engine behind its doors; None where it has no such door.

    A function raises what the engine raises, and NotOfferedError where the door lacks a part that the case
    needs. `options` are the options of cases that the engine has; they come as keyword arguments.
    """

    name: str
    version: str
    options: frozenset[str] = frozenset()
    to_json: Callable[..., str] | None = None
    """`(file, column)`: the JSON text of the one Variant in an unshredded Parquet file."""
    parse_json: Callable[..., VariantBytes] | None = None
    """`(text)`"""
    shred: Callable[..., None] | None = None
    """`(file, column, schema, out)`: write the column of an unshredded file, shredded, to the file `out`."""
    read: Callable[..., Sequence[Cell]] | None = None
    """`(file, column)`: the rows of a Variant column of a Parquet file."""
    read_table: Callable[..., Sequence[Mapping[str, Cell]]] | None = None
    """`(folder, version)`: all rows of a Delta table, None for the latest version."""
    decode_stats: Callable[..., VariantBytes] | None = None
    """`(text)`: the Variant in the z85 text of statistics."""
    encode_stats: Callable[..., str] | None = None
    """`(variant)`: z85 text for statistics."""
    collect_stats: Callable[..., Mapping[str, Any]] | None = None
    """`(file, column)`: `min` and `max` as VariantBytes or None, `null_count` where the engine counts."""
    load_log: Callable[..., Mapping[str, Any]] | None = None
    """`(folder, version)`: what the README of the cases lists as the answer of kind `log`."""
