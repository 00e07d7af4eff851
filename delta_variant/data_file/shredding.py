"""The Variant columns of a data file: find them and their layout, infer shredding schemas, shred columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Generic, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from .. import _native
from .._options import Encoding, Numeric
from ..errors import DataFileError, ShreddingError
from ..protocol.schema.arrow import is_variant as is_marked
from ..protocol.statistics import Path
from ..variant.shredding import MAX_DEPTH, MAX_LEAVES, UNSHREDDED, ShreddingSchema, shred
from ..variant.values import VARIANT_TYPE
from .options import WriteOptions

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


def numeric_of(file: _native.DataFile) -> Numeric:
    """Return how numbers are shredded so that an unchanged Variant of a file keeps its bytes.

    If all values of shredded numeric paths are in `typed_value`, `value` keeps their types.
    """
    leaves = {tuple(leaf["path"]): leaf for leaf in file.inspect()["leaves"]}
    are_typed = all(
        leaf["null_count"] == leaf["num_values"]
        for path, leaf in leaves.items()
        if path[-1] == "value" and _is_number(leaves.get((*path[:-1], "typed_value")))
    )
    return "value" if are_typed else "strict"


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


FileShredding: TypeAlias = ShreddingSchema | Mapping[Path, ShreddingSchema] | None
"""A schema for all Variants of a file, one for each path of a Variant, or None."""


def infer_shredding(
    batches: Sequence[pa.RecordBatch],
    variants: Collection[str],
    options: WriteOptions,
    rows: int | None,
    certain_rows: int | None = None,
) -> dict[Path, ShreddingSchema]:
    """Infer a shredding schema for each Variant of batches of one schema, top-level and within structs.

    Variants with a schema in `options.schemas` keep it. The schemas suit a file of `rows` rows that are like
    those of the batches: the fewer rows, the fewer columns, because each costs bytes in the footer and in the
    log. None suits files of any size. If `rows` is only expected, `certain_rows` are those that the file has
    in any case, which limit the time that is spent.
    """
    found: dict[Path, ShreddingSchema] = {}
    for index, field in enumerate(batches[0].schema if batches else ()):
        arrays = [batch.column(index) for batch in batches]
        for path, parts in _variant_arrays((field.name,), field, arrays, is_variant=field.name in variants):
            found[path] = options.schemas.get(path) or ShreddingSchema(
                _native.infer(
                    list(parts), MAX_LEAVES, MAX_DEPTH, options.files.spark_compatible, rows, certain_rows
                )
            )
    return found


def _variant_arrays(
    path: Path, field: pa.Field[Any], arrays: Sequence[Any], *, is_variant: bool
) -> Iterator[tuple[Path, Sequence[Any]]]:
    if is_variant:
        yield path, arrays
    elif pa.types.is_struct(field.type):
        for index, part in enumerate(field.type):
            parts = [pc.struct_field(array, [index]) for array in arrays]
            yield from _variant_arrays((*path, part.name), part, parts, is_variant=is_marked(part))


def encoding(path: Path, field: pa.Field[Any], shredding: FileShredding, *, is_variant: bool) -> Encoding:
    """Return how the writer encodes a column; Variants are shredded at the top level and within structs."""
    is_struct = pa.types.is_struct(field.type)
    if is_variant:
        if is_struct and field.type.get_field_index("typed_value") >= 0:
            return None
        schema = shredding.get(path) if isinstance(shredding, Mapping) else shredding
        return "variant" if is_struct else "json", (schema or UNSHREDDED).field
    if not is_struct:
        return None
    parts = [encoding((*path, part.name), part, shredding, is_variant=is_marked(part)) for part in field.type]
    return parts if any(parts) else None


@lru_cache(maxsize=64)
def shredded_type(schema: ShreddingSchema) -> pa.DataType:
    """Return the Arrow type of Variants that are shredded by a schema, as a file stores them."""
    return shred_column(pa.array([], VARIANT_TYPE), schema, "strict").type


def shred_column(variants: pa.Array[Any], schema: ShreddingSchema, numeric: Numeric) -> pa.StructArray:
    """Shred Variants by a schema, and return them as a file stores them."""
    shredded = shred(variants, schema, numeric=numeric)
    parts = [shredded.field(index) for index in range(shredded.type.num_fields)]
    parts[0] = parts[0].dictionary_encode()
    fields = [field.with_type(part.type) for field, part in zip(shredded.type, parts, strict=True)]
    return pa.StructArray.from_arrays(parts, fields=fields, mask=shredded.is_null())
