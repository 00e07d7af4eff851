"""Infer the shredding schemas of the columns of a file, and shred columns by them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from .. import _native
from .._options import Encoding, Numeric
from ..protocol.schema.arrow import is_variant as is_marked
from ..protocol.statistics import Path
from ..variant.shredding import MAX_DEPTH, MAX_LEAVES, UNSHREDDED, ShreddingSchema, shred
from ..variant.values import VARIANT_TYPE
from .options import WriteOptions

__all__ = ["FileShredding", "encoding", "infer_shredding", "shred_column", "shredded_type"]

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
                    list(parts),
                    MAX_LEAVES,
                    MAX_DEPTH,
                    options.files.spark_compatible,
                    rows,
                    certain_rows,
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
