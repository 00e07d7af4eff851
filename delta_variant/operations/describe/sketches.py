"""Sketches of the values of columns and paths: small records that merge, of any number of values.

Distinct values are counted by the least hashes, of which the greatest shows how dense they are (Bar-Yossef et
al., "Counting Distinct Elements in a Data Stream", 2002). The distribution is that of a random sample.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ..._arrow import Array, positions_by_number, row_numbers, total
from ..._text import shorten
from ...variant.functions import variant_explode, variant_sort_key
from ...variant.moments import apply_function
from ...variant.objects import is_variant, variants_from_column
from ...variant.values import VARIANT_TYPE, extract
from .sample import MAX_CHARACTERS, Path

Key: TypeAlias = tuple[str, Path]

SIZE = 1024
"""The hashes and sampled values of a sketch.

The standard error of a number of distinct values is 1 / √(SIZE - 2), 3 % of it, and that of the rank of a
quantile at most 1 / (2 √SIZE), 2 % of the values. Fewer distinct values than SIZE are counted exactly.
"""
POINTS = 128
"""The values of a sample that a record keeps, each of which stands for as many values."""
DECILES = range(1, 10)
LEAST = pc.SelectKOptions(SIZE, [("order", "ascending")])
MAX_PATHS = 1_000
MAX_KEY_BYTES = 64
ROWS = 16_384
"""The rows that are added at once. The first ones exclude most hashes of the others."""

SCHEMA = pa.schema(
    [
        pa.field("column", pa.string(), False),
        pa.field("path", pa.list_(pa.string()), False),
        pa.field("nulls", pa.int64(), False),
        pa.field("values", pa.int64(), False),
        pa.field("scalars", pa.int64(), False),
        pa.field("hashes", pa.list_(pa.int64()), False),
        pa.field("keys", pa.list_(pa.binary()), False),
        pa.field("texts", pa.list_(pa.string()), False),
    ]
)
"""A record of a file: a row for each column, by its physical name, and each path of a Variant."""

SAMPLE_FIELDS: list[pa.Field[Any]] = [
    pa.field("order", pa.float64()),
    pa.field("key", pa.binary()),
    pa.field("text", pa.string()),
]
SAMPLE = pa.schema(SAMPLE_FIELDS)
NULL: Any = b"\0"
METADATA = b"\1\0\0"
"""The metadata of scalars, without names."""
OBJECTS, ARRAYS = (pa.array([bytes([byte]) for byte in range(kind, 256, 4)]) for kind in (2, 3))
"""The first bytes of the values of objects and arrays (VariantEncoding.md, "Value Metadata")."""


@dataclass
class _Sketch:
    nulls: int = 0
    values: int = 0
    scalars: int = 0
    hashes: Array = field(default_factory=lambda: pa.array([], pa.int64()))
    sample: pa.Table = field(default_factory=SAMPLE.empty_table)

    def count(self, rows: int, nulls: int) -> None:
        """Count rows, some of which are null."""
        self.nulls += nulls
        self.values += rows - nulls

    def add(self, scalars: Array, hashes: Array, variants_of: Callable[[Array], Array]) -> None:
        """Add scalars and the hashes of all of them; `variants_of` returns some of them as Variants."""
        self.scalars += len(scalars)
        order: Array = pc.random(len(scalars))
        if len(self.hashes) == SIZE:
            hashes = hashes.filter(pc.less(hashes, self.hashes[-1]))
        self.hashes = _least_hashes([self.hashes, hashes])
        limit: Any = self.sample["order"][-1] if self.sample.num_rows == SIZE else 1.0
        chosen: Array = pc.indices_nonzero(pc.less(order, limit))
        if len(chosen):
            chosen = chosen.take(pc.call_function("select_k_unstable", [order.take(chosen)], LEAST))
            variants = variants_of(scalars.take(chosen))
            keys = pc.binary_slice(variant_sort_key(variants), 0, MAX_KEY_BYTES)
            texts = pc.utf8_slice_codeunits(
                extract(variants, (), pa.string(), strict=False), 0, MAX_CHARACTERS + 1
            )
            new = pa.table([order.take(chosen), keys, texts], schema=SAMPLE)
            self.sample = pa.concat_tables([self.sample, new]).sort_by("order").slice(0, SIZE)

    def points(self) -> pa.Table:
        """Return values of the sample in their order, evenly spaced."""
        number, count = self.sample.num_rows, min(self.sample.num_rows, POINTS)
        middles = [(2 * point + 1) * number // (2 * count) for point in range(count)]
        return self.sample.sort_by("key").take(pa.array(middles, pa.int64()))


class Sketches:
    """The sketches of the columns of some rows, and of all paths of their Variants."""

    def __init__(self, columns: pa.Schema) -> None:
        self._columns = columns
        self._sketches: dict[str, dict[Path, _Sketch]] = {each.name: {(): _Sketch()} for each in columns}

    def add(self, batch: pa.RecordBatch) -> None:
        for start in range(0, batch.num_rows, ROWS):
            part = batch.slice(start, ROWS)
            for each, column in zip(self._columns, part.columns, strict=True):
                if is_variant(each):
                    self._add_variants(self._sketches[each.name], column)
                else:
                    _add_column(self._sketches[each.name][()], column)

    def _add_variants(self, sketches: dict[Path, _Sketch], column: Array) -> None:
        found: list[tuple[Path, Array, Array]] = [((), column, row_numbers(len(column)))]
        while found and len(sketches) <= MAX_PATHS:
            path, variants, positions = found.pop()
            values = pc.struct_field(variants, "value").take(positions)
            first = pc.binary_slice(values, 0, 1)
            is_null = pc.fill_null(pc.equal(first, NULL), True)
            is_object = pc.is_in(first, OBJECTS)
            is_other = pc.or_(pc.or_(is_null, is_object), pc.is_in(first, ARRAYS))
            sketch = sketches.setdefault(path, _Sketch())
            sketch.count(len(values), total(is_null))
            scalars = values.filter(pc.invert(is_other))
            keys = variant_sort_key(_variants(pc.unique(scalars)))
            sketch.add(scalars, _hashes(keys), _variants)
            parts = variant_explode(variants.take(positions.filter(is_object))).combine_chunks()
            for batch in parts.to_batches():
                names: Array = batch["key"].dictionary_encode()
                for number, of_name in positions_by_number(names.indices):
                    found.append(((*path, names.dictionary[number].as_py()), batch["value"], of_name))

    def record(self, physical_names: Mapping[str, str]) -> pa.Table:
        """Return the record, without Variants that have more than 1,000 paths."""
        rows = (
            {
                "column": physical_names[name],
                "path": path,
                **{each: getattr(sketch, each) for each in ("nulls", "values", "scalars")},
                "hashes": sketch.hashes,
                "keys": (points := sketch.points())["key"].to_pylist(),
                "texts": points["text"].to_pylist(),
            }
            for name, sketches in self._sketches.items()
            if len(sketches) <= MAX_PATHS
            for path, sketch in sketches.items()
        )
        return pa.Table.from_pylist(list(rows), SCHEMA)


def _add_column(sketch: _Sketch, column: Array) -> None:
    sketch.count(len(column), column.null_count)
    if column.null_count < len(column) and not pa.types.is_nested(column.type):
        values = column.drop_null()
        sketch.add(values, _hashes(values), variants_from_column)


def _variants(scalars: Array) -> Array:
    """Return the Variants of the bytes of scalars."""
    metadata = pa.repeat(pa.scalar(METADATA, pa.binary()), len(scalars))
    return pa.StructArray.from_arrays([metadata, scalars], fields=list(VARIANT_TYPE))


def _hashes(values: Array) -> Array:
    return apply_function("xxhash64", [values], len(values))


def _least_hashes(arrays: Iterable[Array]) -> Array:
    hashes: Array = pc.unique(pa.concat_arrays(arrays))
    return hashes.take(pc.sort_indices(hashes)).slice(0, SIZE)


@dataclass(frozen=True)
class Figures:
    """What the records of files say of a column or a path: numbers of rows, and of distinct scalars.

    `distinct` is None without scalars. `deciles` are the nine values between the tenths of the scalars, cast
    to text; there are none if one of them has no text.
    """

    values: int
    nulls: int
    distinct: int | None
    is_exact: bool
    deciles: tuple[str, ...]

    @property
    def rows(self) -> int:
        return self.values + self.nulls


def merge(records: list[pa.Table]) -> Iterator[tuple[Key, Figures]]:
    """Yield the figures of the rows of all files, for columns that all records have, by physical name."""
    rows = pa.concat_tables(records).combine_chunks()
    groups: dict[Key, list[int]] = {}
    names: Any = zip(rows["column"].to_pylist(), rows["path"].to_pylist(), strict=True)
    for at, (name, path) in enumerate(names):
        groups.setdefault((name, tuple(path)), []).append(at)
    for (name, path), positions in groups.items():
        if len(groups[name, ()]) == len(records):
            yield (name, path), _figures(rows.take(pa.array(positions)))


def _figures(rows: pa.Table) -> Figures:
    lists: list[Any] = [rows[name].combine_chunks() for name in ("hashes", "keys", "texts")]
    hashes, keys, texts = (each.flatten() for each in lists)
    least = _least_hashes([hashes])
    is_exact = len(least) < SIZE
    distinct = len(least) if is_exact else round((SIZE - 1) * 2**64 / (least[-1].as_py() + 2**63))
    # Each point of a file stands for as many of its scalars.
    points = zip(rows["scalars"].to_pylist(), pc.list_value_length(rows["keys"]).to_pylist(), strict=True)
    weights = [scalars / number for scalars, number in points for _ in range(number)]
    order = pc.sort_indices(keys).to_pylist()
    ranks = list(accumulate(weights[at] for at in order))
    deciles = [
        texts[order[bisect_left(ranks, tenths * ranks[-1] / 10)]].as_py() for tenths in DECILES if ranks
    ]
    return Figures(
        total(rows["values"]),
        total(rows["nulls"]),
        distinct if ranks else None,
        is_exact,
        () if None in deciles else tuple(shorten(text, MAX_CHARACTERS) for text in deciles),
    )
