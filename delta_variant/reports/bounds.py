"""The bounds of Variant paths, in statistics as JSON with types, and of all files of a table as pictures."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from html import escape
from typing import Any

import msgspec
import pyarrow as pa

from .._text import path_text
from ..errors import InvalidStatisticsError, printable
from ..expressions.parse import parse_type
from ..expressions.types import type_name
from ..protocol.statistics import decode_bound, describe_bound, encode_bound
from ..variant import paths as variant_paths
from ..variant.shredding import infer_shredding_schema, unshred
from ..variant.values import Variant, extract, parse_json

SQL_TYPES = {
    **dict.fromkeys(("int8", "int16", "int32", "int64"), "bigint"),
    **{name: name for name in ("boolean", "float", "double", "date", "string", "binary")},
}
"""The SQL types of most bounds by their names in VariantEncoding.md. Inferring the others is slow."""


class TypedValue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A value as JSON and its SQL type. Integers are `bigint`."""

    type: str
    value: msgspec.Raw


class Bounds(msgspec.Struct, frozen=True):
    """The minimum and the maximum of a path as JSON, and the SQL type of both."""

    type: str
    min: msgspec.Raw | None = None
    max: msgspec.Raw | None = None


def key_text(column: str, path_key: str) -> str:
    """Return the path of a bound in SQL syntax, or its key if that is invalid."""
    try:
        return path_text(column, variant_paths.parse(path_key))
    except InvalidStatisticsError:
        return f"{column} {path_key}"


def decode(text: str) -> dict[str, TypedValue]:
    """Return the values in the z85 text of a bound by path key, or raise InvalidStatisticsError."""
    return {
        path_key: TypedValue(each.type, each.min)
        for path_key, each in decode_sides(text, None).items()
        if each.min is not None
    }


def decode_sides(least: object, greatest: object) -> dict[str, Bounds]:
    """Return the bounds in an entry of minValues and an entry of maxValues, by path key.

    An entry that is not a string has no bounds. Raise InvalidStatisticsError for invalid z85.
    """
    texts = [side if isinstance(side, str) else None for side in (least, greatest)]
    variants = [decode_bound(text) if text is not None else None for text in texts]
    low, high = (_members(variant) if variant else {} for variant in variants)
    types = [(describe_bound(text).bounds or {}) if text is not None else {} for text in texts]
    return {
        path_key: Bounds(
            _common_type([each[path_key].type for each in types if path_key in each])
            or _type_of(path_key, variants),
            low.get(path_key),
            high.get(path_key),
        )
        for path_key in {**low, **high}
    }


def _common_type(types: Sequence[str]) -> str | None:
    """Return the SQL type of bounds of one type that has no parameters, otherwise None."""
    return SQL_TYPES.get(types[0]) if len(set(types)) == 1 else None


def _members(variant: Variant) -> dict[str, msgspec.Raw]:
    text = variant.to_json()
    try:
        return msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except msgspec.ValidationError as error:
        raise InvalidStatisticsError(
            f"invalid bound: expected an object that maps paths to values, got {text}"
        ) from error


def _type_of(path_key: str, variants: Iterable[Variant | None]) -> str:
    values = [extract(_array(variant), [path_key], None, strict=True) for variant in variants if variant]
    arrow_type = infer_shredding_schema(values, spark_compatible=False).field.type
    return "void" if pa.types.is_null(arrow_type) else type_name(arrow_type)


def _array(variant: Variant) -> pa.StructArray:
    parts = [pa.array([variant.metadata], pa.binary()), pa.array([variant.value], pa.binary())]
    return pa.StructArray.from_arrays(parts, ["metadata", "value"])


def encode(text: str) -> str:
    """Return a JSON object that maps path keys to values as the z85 text of a bound.

    A value has the type that `parse_json` infers, or the type in `{"type": …, "value": …}`, the format of
    `decode`. Raise InvalidStatisticsError for any other text, ExpressionError for an unknown type, and
    CastError for a value that is not of its type.
    """
    try:
        values = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        columns = [_column(value) for value in values.values()]
    except msgspec.DecodeError as error:
        raise InvalidStatisticsError(
            f"invalid bound: expected a JSON object that maps paths to values ({error})"
        ) from error
    objects = pa.StructArray.from_buffers(pa.struct([]), 1, [None])
    if columns:
        objects = pa.StructArray.from_arrays(columns, list(values))
    names = parse_json([msgspec.json.encode(dict.fromkeys(values)).decode()]).field("metadata")
    parts = [names, pa.nulls(1, pa.binary()), objects]
    shredded = pa.StructArray.from_arrays(parts, ["metadata", "value", "typed_value"])
    return encode_bound(Variant(*(part[0].as_py() for part in unshred(shredded).flatten())))


def _column(value: msgspec.Raw) -> pa.StructArray:
    """Return a shredded column of one row. Unshredding it creates a Variant of any Arrow type."""
    text = bytes(value).decode()
    if text.startswith("["):
        raise msgspec.ValidationError("a list cannot be a bound")
    if not text.startswith("{"):
        return pa.StructArray.from_arrays([parse_json([text]).field("value")], ["value"])
    typed = msgspec.json.decode(text, type=TypedValue)
    arrow_type = parse_type(typed.type)
    if arrow_type is None or pa.types.is_nested(arrow_type):
        raise msgspec.ValidationError(f"{typed.type} cannot be a bound")
    cast: Any = extract(parse_json([bytes(typed.value).decode()]), [], arrow_type, strict=True)
    if cast.null_count:
        raise msgspec.ValidationError("null cannot be a bound")
    return pa.StructArray.from_arrays([pa.nulls(1, pa.binary()), cast], ["value", "typed_value"])


WIDTH = 640
MAX_BARS = 160
BAR_HEIGHTS = ((24, 8), (60, 5), (MAX_BARS, 3))
"""The height of a bar in pixels, for at most this many files."""

BINS = 96
EXACT = ("tinyint", "smallint", "int", "bigint")
DENSITY_HEIGHT = 26
MAX_HEIGHT = 256


@dataclass(frozen=True)
class PathBounds:
    """The bounds of one path in the files that have both, as intervals on an axis in ascending order.

    `least` and `greatest` are the ends of the axis as text. `is_to_scale` is false for strings, whose
    positions are their ranks. `files` counts all files of the table.
    """

    column: str
    key: str
    type: str
    intervals: tuple[tuple[float, float], ...]
    least: str
    greatest: str
    is_to_scale: bool
    files: int

    @property
    def read_by_lookup(self) -> float:
        """Return the average number of files that a lookup of one value reads, with those without bounds.

        The average is over the ends of the bounds.
        """
        starts = sorted(low for low, _ in self.intervals)
        ends = sorted(high for _, high in self.intervals)
        looked_up = [*starts, *ends]
        hits = [bisect_right(starts, value) - bisect_left(ends, value) for value in looked_up]
        return sum(hits) / len(hits) + self.files - len(self.intervals)


def path_bounds(column: str, files: Sequence[Mapping[str, Bounds]]) -> Iterator[PathBounds]:
    """Yield the bounds of each path for which some file has a minimum and a maximum, ordered by path."""
    whole: dict[str, list[Bounds]] = {}
    for bounds in files:
        for key, side in bounds.items():
            if side.min is not None and side.max is not None:
                whole.setdefault(key, []).append(side)
    for key in sorted(whole):
        yield _on_axis(column, key, whole[key], len(files))


def _on_axis(column: str, key: str, sides: Sequence[Bounds], files: int) -> PathBounds:
    values = [tuple(json.loads(bytes(bound or b"null")) for bound in (side.min, side.max)) for side in sides]
    types = sorted({side.type for side in sides})
    pairs = [(_number(low, types[0]), _number(high, types[0])) for low, high in values]
    intervals = [(low, high) for low, high in pairs if low is not None and high is not None]
    # Exact numbers of all widths and scales have one order (VariantEncoding.md, Equivalence Class).
    is_one_class = len(types) == 1 or all(name in EXACT or name.startswith("decimal") for name in types)
    is_to_scale = is_one_class and len(intervals) == len(values)
    if not is_to_scale:
        order = {text: rank for rank, text in enumerate(sorted({str(v) for pair in values for v in pair}))}
        intervals = [(float(order[str(low)]), float(order[str(high)])) for low, high in values]
    least = min(zip(intervals, values, strict=True), key=lambda each: each[0][0])[1][0]
    greatest = max(zip(intervals, values, strict=True), key=lambda each: each[0][1])[1][1]
    types_text = (
        types[0] if len(types) == 1 else "numbers of several types" if is_to_scale else "several types"
    )
    return PathBounds(
        column, key, types_text, tuple(sorted(intervals)), str(least), str(greatest), is_to_scale, files
    )


def _number(value: Any, type_name: str) -> float | None:
    if isinstance(value, int | float):
        return float(value)
    if not isinstance(value, str) or not type_name.startswith(("date", "timestamp")):
        return None
    try:
        moment = datetime.fromisoformat(value.replace("Z", "+00:00"))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()


def picture(bounds: PathBounds) -> str:
    """Return an SVG with a bar for each file from its minimum to its maximum, and the overlap below."""
    shown = _sample(bounds.intervals)
    height = next(height for most, height in BAR_HEIGHTS if len(shown) <= most)
    low = min(pair[0] for pair in bounds.intervals)
    span = max(pair[1] for pair in bounds.intervals) - low
    bars = len(shown) * (height + 1) + 6
    total = bars + DENSITY_HEIGHT
    range_ = f"from {bounds.least} to {bounds.greatest}"
    label = escape(printable(f"{len(bounds.intervals)} of {bounds.files} files have bounds, {range_}"))
    # Without an aspect ratio the picture is always as wide as the axis below.
    size = f'viewBox="0 0 {WIDTH} {total}" height="{min(total, MAX_HEIGHT)}" preserveAspectRatio="none"'
    parts = [f'<svg {size} role="img" aria-label="{label}">']
    for position, (start, end) in enumerate(shown):
        left, right = (WIDTH * (each - low) / span if span else 0.0 for each in (start, end))
        width = max(right - left, 2.0)
        left = min(left, WIDTH - width)
        box = f'x="{left:.1f}" y="{position * (height + 1)}" width="{width:.1f}" height="{height}"'
        parts.append(f'<rect class="bounds" {box}/>')
    parts += _density(bounds, low, span, bars)
    return "".join([*parts, "</svg>"])


def _sample(intervals: Sequence[tuple[float, float]]) -> Sequence[tuple[float, float]]:
    if len(intervals) <= MAX_BARS:
        return intervals
    return [intervals[index * len(intervals) // MAX_BARS] for index in range(MAX_BARS)]


def _density(bounds: PathBounds, low: float, span: float, top: int) -> Iterator[str]:
    """Yield a strip of columns, each as high as the share of files whose bounds cover the column."""
    covered = [0] * BINS
    for start, end in bounds.intervals:
        first, last = (min(int(BINS * (each - low) / span), BINS - 1) if span else 0 for each in (start, end))
        for index in range(first, last + 1 if span else BINS):
            covered[index] += 1
    width = WIDTH / BINS
    for index, count in enumerate(covered):
        height = DENSITY_HEIGHT * count / len(bounds.intervals)
        box = f'x="{index * width:.2f}" y="{top + DENSITY_HEIGHT - height:.1f}"'
        if count:
            yield f'<rect class="overlap" {box} width="{width + 0.2:.2f}" height="{height:.1f}"/>'
