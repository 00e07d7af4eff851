"""Summaries of sidecars: the bounds of all their files, with which a reader skips a whole sidecar.

PROTOCOL.md leaves the tags of a `sidecar` action to the writer. A tag is invisible to other engines, and is
deleted with its checkpoint. A file of its own would not be: log cleanup deletes from `_sidecars` what no
checkpoint refers to, and nothing elsewhere. A summary that is missing or invalid, or states another file, has
no effect.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from ..._arrow import Array, total
from ..._options import JsonKind
from ...errors import InvalidStatisticsError
from ...expressions.cast import cast_values
from ...protocol.actions import Sidecar
from ...protocol.schema.arrow import to_arrow_type
from ...protocol.schema.evolution import INTEGERS
from ...protocol.statistics import (
    bounds_at,
    counts_of,
    decode,
    describe_bound,
    encode_bound,
    put_at,
    texts_at,
    value_at,
    widen_moments,
)
from ...protocol.types import VARIANT, DataType
from ...variant.values import Variant
from ..file_set import PartitionValues, Summary
from ..snapshot import Snapshot

SUMMARY_TAG = "deltaVariant.summary"


MAX_PARTITIONS = 256
MAX_PARTITION_BYTES = 32 << 10
SIDES = ("minValues", "maxValues")
MOMENT = pa.timestamp("us", "UTC")
TEXTS = ("string", "date", "timestamp", "timestamp_ntz")
"""The types of columns with bounds in a summary. Bounds of others are rounded by some writers."""

VARIANT_TYPES: dict[str, tuple[pa.DataType, Any]] = {
    **dict.fromkeys(("int8", "int16", "int32", "int64"), (pa.int64(), 1)),
    "string": (pa.string(), None),
    "date": (pa.date32(), timedelta(days=1)),
    "timestamp": (MOMENT, timedelta(microseconds=1)),
    "timestamp_ntz": (pa.timestamp("us"), timedelta(microseconds=1)),
}
"""The type that a bound of a path is compared as, and the greatest difference to its exact value.

A decimal, for example, is compared as an integer.
"""


_DECODER = msgspec.json.Decoder(Summary)


def tags_of(summary: Summary) -> dict[str, str | None]:
    return {SUMMARY_TAG: msgspec.json.encode(summary).decode()}


def summary_of(sidecar: Sidecar) -> Summary | None:
    """Return the summary in the tags of a sidecar, None if it has none that is of this file."""
    text = (sidecar.tags or {}).get(SUMMARY_TAG)
    try:
        summary = None if text is None else _DECODER.decode(text)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        return None
    is_of_file = summary is not None and (summary.sidecar, summary.size_in_bytes) == (
        sidecar.path,
        sidecar.size_in_bytes,
    )
    return summary if is_of_file else None


@dataclass(frozen=True)
class StatsLeaf:
    """A column with bounds, by its physical names, or a path in a Variant column, by its `key`."""

    names: tuple[str, ...]
    key: str | None
    type: pa.DataType
    rounding: Any = None

    @property
    def is_number(self) -> bool:
        return self.key is None and pa.types.is_integer(self.type)

    def values(self, texts: Array, sign: int) -> Array:
        """Return lower (-1) or upper (1) bounds as values that can be compared.

        They are null for a bound that is missing or invalid.
        """
        if self.key is not None:
            return bounds_at(texts, self.key, self.type)
        values: Array = cast_values(texts, self.type, strict=False)
        return widen_moments(texts, values, sign) if self.type == MOMENT else values


class LeafBounds(msgspec.Struct, frozen=True):
    """The bounds of a leaf, one row for each file; `all_null` is true if a file has no values."""

    texts: tuple[Array, Array]
    values: tuple[Array, Array]
    all_null: Array


class _Counts(msgspec.Struct, frozen=True):
    """The number of rows of each file, and of nulls by column."""

    rows: Array
    nulls: dict[tuple[str, ...], Array]


def bounds_of(
    stats: pa.ChunkedArray[Any], leaves: Sequence[StatsLeaf]
) -> tuple[dict[StatsLeaf, LeafBounds], _Counts]:
    """Return the bounds of leaves, and the counts of rows and nulls, in the statistics of files."""
    paths: dict[tuple[str, ...], JsonKind] = {("numRecords",): "number"}
    for leaf in leaves:
        kind: JsonKind = "number" if leaf.is_number else "string"
        paths |= {_path(side, leaf): kind for side in SIDES}
        paths |= {_path("nullCount", leaf): "number"}
    texts = dict(zip(paths, texts_at(stats, list(paths.items())), strict=True))
    counts = _Counts(
        counts_of(texts[("numRecords",)]),
        {leaf.names: counts_of(texts[_path("nullCount", leaf)]) for leaf in leaves},
    )
    found = {}
    for leaf in leaves:
        least, greatest = (texts[_path(side, leaf)] for side in SIDES)
        all_null: Array = pc.equal(counts.nulls[leaf.names], counts.rows)
        all_null = pc.fill_null(all_null, False)
        values = leaf.values(least, -1), leaf.values(greatest, 1)
        found[leaf] = LeafBounds((least, greatest), values, all_null)
    return found, counts


def _path(member: str, leaf: StatsLeaf) -> tuple[str, ...]:
    return (member, *leaf.names)


def leaves_of(state: Snapshot, stats: pa.ChunkedArray[Any]) -> list[StatsLeaf]:
    """Return the columns and paths that may have bounds in all of some files."""
    columns = state.configuration.stored_stats_columns
    return list(chain.from_iterable(_leaves(names, kind, stats) for names, kind in columns.items()))


def _leaves(names: tuple[str, ...], data_type: DataType, stats: pa.ChunkedArray[Any]) -> Iterator[StatsLeaf]:
    if data_type == VARIANT:
        yield from _paths(names, stats)
    elif getattr(data_type, "name", None) in (*INTEGERS, *TEXTS):
        yield StatsLeaf(names, None, to_arrow_type(data_type))


def _paths(names: tuple[str, ...], stats: pa.ChunkedArray[Any]) -> Iterator[StatsLeaf]:
    """Yield the paths in the bounds of the first file that has some: others are not in those of all files."""
    for text in stats.to_pylist():
        try:
            least = value_at(decode(text).min_values, names) if text else None
            bounds = describe_bound(least).bounds if isinstance(least, str) else None
        except InvalidStatisticsError:
            continue
        if bounds:
            for key, bound in bounds.items():
                if bound.type in VARIANT_TYPES:
                    yield StatsLeaf(names, key, *VARIANT_TYPES[bound.type])
            return


def summarize(
    files: pa.Table, leaves: Sequence[StatsLeaf], partitions: Sequence[str], sidecar: str, size_in_bytes: int
) -> Summary:
    """Return the summary of the files in a sidecar.

    `partitions` are the physical names of the partition columns.
    """
    num_bytes = total(files["size"])
    partition_values = _distinct(files, partitions)
    stats = msgspec.json.encode(_merge(files["stats"], leaves)).decode()
    return Summary(sidecar, size_in_bytes, files.num_rows, num_bytes, stats, partition_values)


def _merge(stats: pa.ChunkedArray[Any], leaves: Sequence[StatsLeaf]) -> dict[str, Any]:
    """Return the statistics of all files together."""
    found, counts = bounds_of(stats, leaves)
    rows = counts.rows
    merged: dict[str, Any] = {} if rows.null_count else {"numRecords": total(rows)}
    for number, side in enumerate(SIDES):
        objects: dict[tuple[str, ...], dict[str, Any]] = {}
        for leaf, bounds in found.items():
            value = _merged(leaf, bounds, number)
            if value is not None and leaf.key is not None:
                objects.setdefault(leaf.names, {})[leaf.key] = value
            elif value is not None:
                put_at(merged, (side, *leaf.names), value)
        for names, members in objects.items():
            put_at(merged, (side, *names), encode_bound(Variant.from_python(members)))
    for names, nulls in counts.nulls.items():
        if not nulls.null_count:
            put_at(merged, ("nullCount", *names), total(nulls))
    return merged


def _merged(leaf: StatsLeaf, bounds: LeafBounds, number: int) -> Any:
    """Return the least or greatest bound of all files with values; None if one of them is unknown."""
    values = bounds.values[number]
    unknown: Any = pc.and_(values.is_null(), pc.invert(bounds.all_null))
    extreme: Any = (pc.min, pc.max)[number](values)
    if unknown.true_count or not extreme.is_valid:
        return None
    if leaf.key is not None:
        return _widened(leaf, extreme, (-1, 1)[number])
    text: str = bounds.texts[number][pc.index(values, extreme).as_py()].as_py()
    # The text is kept, because readers differ in how they parse it.
    return msgspec.Raw(text.encode()) if leaf.is_number else text


def _widened(leaf: StatsLeaf, extreme: Any, sign: int) -> Any:
    try:
        value = extreme.as_py() if leaf.rounding is None else extreme.as_py() + sign * leaf.rounding
    except (OverflowError, ValueError):
        # Python has no dates before the year 1 and after the year 9999.
        return None
    return value if not isinstance(value, int) or -(1 << 63) <= value < 1 << 63 else None


def _distinct(files: pa.Table, partitions: Sequence[str]) -> PartitionValues | None:
    if not partitions:
        return None
    columns = [pc.map_lookup(files["partition_values"], name, "first") for name in partitions]
    names = [str(number) for number in range(len(partitions))]
    found = pa.table(columns, names=names).group_by(names).aggregate([])
    if found.num_rows > MAX_PARTITIONS:
        return None
    rows = [dict(zip(partitions, row.values(), strict=True)) for row in found.to_pylist()]
    return rows if len(msgspec.json.encode(rows)) <= MAX_PARTITION_BYTES else None
