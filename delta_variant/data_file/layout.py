"""Find the Variant columns of a data file and the layout that stores them.

Only the schema and the footer of the file are read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Generic, TypeVar

import pyarrow as pa

from .. import _native
from ..errors import DataFileError, ShreddingError
from ..protocol.statistics import Path
from ..variant.shredding import ShreddingSchema

__all__ = [
    "PerSchema",
    "check_layout",
    "numbers_are_typed",
    "shredding_of",
    "variant_columns",
    "variant_paths",
]

MAX_SCHEMAS = 8

Value = TypeVar("Value")


class PerSchema(Generic[Value]):
    """Values that depend on the schema of a file only, and are computed once for files that share it.

    Holds the last few schemas, each with one open file.
    """

    def __init__(self) -> None:
        self._known: tuple[tuple[_native.DataFile, Value], ...] = ()

    def of(self, file: _native.DataFile, compute: Callable[[], Value]) -> Value:
        """Return the value of a file with the same schema, or compute it."""
        for known, value in self._known:
            if known.has_schema_of(file):
                return value
        value = compute()
        self._known = (*self._known[1 - MAX_SCHEMAS :], (file, value))
        return value


def shredding_of(file: _native.DataFile) -> Mapping[Path, ShreddingSchema]:
    """Return the shredding schema of each Variant of a file, both top-level and within structs.

    Raises ShreddingError for a Variant in the legacy Spark layout, or in an invalid layout.
    """
    return {path: ShreddingSchema.of_column(_column_type(file.schema, path)) for path in variant_paths(file)}


def numbers_are_typed(file: _native.DataFile) -> bool:
    """Return whether all values of shredded numeric paths are in `typed_value`.

    In that case, `numeric="value"` keeps the type of each value of the file.
    """
    leaves = {tuple(leaf["path"]): leaf for leaf in file.inspect()["leaves"]}
    return all(
        leaf["null_count"] == leaf["num_values"]
        for path, leaf in leaves.items()
        if path[-1] == "value" and _is_number(leaves.get((*path[:-1], "typed_value")))
    )


def _is_number(leaf: Mapping[str, Any] | None) -> bool:
    return leaf is not None and leaf["logical_type"] != "STRING"


def _column_type(fields: Any, path: Path) -> Any:
    found = fields.field(fields.get_field_index(path[0])).type
    return _column_type(found, path[1:]) if path[1:] else found


def variant_columns(file: _native.DataFile) -> list[str]:
    """Return the names of the top-level Variant columns of a file.

    Raises DataFileError for an annotation of a version other than 1 (docs/audit-rules.md, P-S2v), and
    ShreddingError for a Variant in the legacy Spark layout.
    """
    return [path[0] for path in variant_paths(file) if len(path) == 1]


def variant_paths(file: _native.DataFile) -> Iterator[Path]:
    """Yield the paths of the Variants of a file, both top-level and within structs."""
    check_layout(file)
    annotated = dict(_annotated(file))
    for field in file.schema:
        yield from _variants_in(field, (), annotated)


def check_layout(file: _native.DataFile) -> None:
    """Raise ShreddingError for a file that has a Variant in the legacy Spark layout."""
    for field in file.schema:
        if not _native.legacy_column(field)[0].equals(field):
            raise ShreddingError(
                f"column {field.name!r} is shredded in the legacy Spark layout (object, array, typed_value, "
                "untyped_value); convert the file with `delta-variant migrate SOURCE TARGET`",
                column=field.name,
            )


def _variants_in(field: pa.Field[Any], parents: Path, annotated: Collection[Path]) -> Iterator[Path]:
    path = (*parents, field.name)
    if path in annotated or _is_variant_group(field.type):
        yield path
    elif pa.types.is_struct(field.type):
        for part in field.type:
            yield from _variants_in(part, path, annotated)


def _annotated(file: _native.DataFile) -> Iterator[tuple[Path, int | None]]:
    for path, version in file.inspect()["variants"]:
        if version not in (None, 1):
            column = ".".join(path)
            raise DataFileError(
                f"column {column!r} has the unsupported annotation VARIANT({version}): expected VARIANT(1)",
                column=column,
            )
        yield tuple(path), version


def _is_variant_group(arrow_type: pa.DataType) -> bool:
    if not pa.types.is_struct(arrow_type):
        return False
    names = {part.name for part in arrow_type}
    return "metadata" in names and bool(names & {"value", "typed_value"}) and names <= VARIANT_MEMBERS


VARIANT_MEMBERS = {"metadata", "value", "typed_value"}
