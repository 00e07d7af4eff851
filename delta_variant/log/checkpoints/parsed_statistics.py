"""Convert the statistics of checkpoints between JSON text, `stats`, and columns, `stats_parsed`.

The bounds of a Variant column are z85 in the text and a Variant group in the columns. The group keeps the
bytes, so a round trip returns the same z85 (PROTOCOL.md, "Per-file Statistics"). Malformed statistics become
null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Context, Decimal, InvalidOperation
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from ..._arrow import decode
from ...errors import (
    InvalidStatisticsError,
    MalformedLogError,
    MalformedVariantError,
    ShreddingError,
    UnsupportedFeatureError,
)
from ...protocol import z85
from ...protocol.schema.arrow import to_arrow_type
from ...protocol.schema.partition_values import partition_value_from_string
from ...protocol.statistics import decode_bound, put_at
from ...protocol.types import DataType, PrimitiveType, is_geospatial
from ...variant import shredding
from ...variant import values as variant_values

PathOfNames: TypeAlias = tuple[str, ...]

_DECODER = msgspec.json.Decoder(dict[str, Any], float_hook=Decimal)
_UNBOUNDED = ("binary", "void")
_WIDEST_DECIMAL = Context(prec=38)
# The days of 0000-01-01 and of 10000-01-01.
_FOUR_DIGITS = (-719_528, 2_932_897)


def statistics_type(columns: Iterable[tuple[PathOfNames, DataType]]) -> pa.StructType:
    """Return the type of `stats_parsed` for leaf columns, each with the path of its physical names."""
    counts: dict[str, Any] = {}
    bounds: dict[str, Any] = {}
    for path, data_type in columns:
        put_at(counts, path, pa.int64())
        if _has_bounds(data_type):
            put_at(bounds, path, to_arrow_type(data_type))
    parts: dict[str, Any] = {
        "numRecords": pa.int64(),
        "minValues": bounds,
        "maxValues": bounds,
        "nullCount": counts,
        "tightBounds": pa.bool_(),
    }
    return _struct({name: part for name, part in parts.items() if part != {}})


def _has_bounds(data_type: DataType) -> bool:
    is_ordered = isinstance(data_type, PrimitiveType) and data_type.name not in _UNBOUNDED
    return is_ordered and not is_geospatial(data_type)


def from_text(texts: pa.Array[Any], statistics: pa.StructType) -> Any:
    """Convert statistics in JSON text to columns of `statistics`; invalid text becomes null."""
    return _column([_decode(text) for text in texts.to_pylist()], statistics)


def _struct(parts: Mapping[str, Any]) -> pa.StructType:
    return pa.struct(
        [(name, _struct(part) if isinstance(part, dict) else part) for name, part in parts.items()]
    )


def _decode(text: str | None) -> dict[str, Any] | None:
    try:
        return None if text is None else _DECODER.decode(text)
    except (msgspec.MsgspecError, RecursionError, InvalidOperation):
        return None


def _column(values: Sequence[Any], arrow_type: pa.DataType) -> Any:
    if types.is_struct(arrow_type) and not _is_variant(arrow_type):
        rows = [value if isinstance(value, dict) else None for value in values]
        children = [
            _column([None if row is None else row.get(field.name) for row in rows], field.type)
            for field in arrow_type
        ]
        mask = pa.array([row is None for row in rows], pa.bool_())
        return pa.StructArray.from_arrays(children, fields=list(arrow_type), mask=mask)
    if _is_variant(arrow_type):
        return _variants(values, arrow_type)
    read = next(read for is_type, read in _READERS if is_type(arrow_type))
    return pa.array([None if value is None else read(value, arrow_type) for value in values], arrow_type)


def _variants(values: Sequence[Any], arrow_type: Any) -> pa.StructArray:
    bounds = [_read_variant(value) for value in values]
    # The parts are required. In a null Variant they are empty, because Parquet allows no null there.
    parts = [
        pa.array([b"" if bound is None else getattr(bound, field.name) for bound in bounds], field.type)
        for field in arrow_type
    ]
    mask = pa.array([bound is None for bound in bounds], pa.bool_())
    return pa.StructArray.from_arrays(parts, fields=list(arrow_type), mask=mask)


def _is_variant(arrow_type: pa.DataType) -> bool:
    # Binary columns have no bounds in Delta, so two binary columns with these names are a Variant.
    return types.is_struct(arrow_type) and {"metadata", "value"} <= {
        field.name for field in arrow_type if _is_binary(field.type)
    }


def _is_binary(arrow_type: pa.DataType) -> bool:
    # The metadata of Variants that the native library reads is dictionary encoded.
    value_type = arrow_type.value_type if isinstance(arrow_type, pa.DictionaryType) else arrow_type
    return bool(types.is_binary(value_type) or types.is_large_binary(value_type))


def _read_integer(value: Any, arrow_type: pa.DataType) -> int | None:
    limit = 1 << arrow_type.bit_width - 1
    return value if type(value) is int and -limit <= value < limit else None


def _read_float(value: Any, arrow_type: pa.DataType) -> float | None:
    # For a number that is too great, float(Decimal) is infinite and float(int) raises an error.
    is_number = isinstance(value, (int, Decimal)) and not isinstance(value, bool)
    return float(Decimal(value)) if is_number else None


def _read_decimal(value: Any, arrow_type: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        return None
    try:
        number = Decimal(value).quantize(Decimal(1).scaleb(-arrow_type.scale), context=_WIDEST_DECIMAL)
    except InvalidOperation:
        return None
    return number if number == value and number.adjusted() < arrow_type.precision - arrow_type.scale else None


def _read_boolean(value: Any, arrow_type: pa.DataType) -> bool | None:
    return value if isinstance(value, bool) else None


def _read_string(value: Any, arrow_type: pa.DataType) -> str | None:
    return value if isinstance(value, str) else None


def _read_date(value: Any, arrow_type: pa.DataType) -> date | None:
    try:
        return date.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _read_timestamp(value: Any, arrow_type: Any) -> Any:
    name = "timestamp" if arrow_type.tz else "timestamp_ntz"
    try:
        return partition_value_from_string(value, PrimitiveType(name)) if isinstance(value, str) else None
    except (MalformedLogError, UnsupportedFeatureError):
        return None


def _read_variant(value: Any) -> variant_values.Variant | None:
    try:
        return decode_bound(value) if isinstance(value, str) else None
    except InvalidStatisticsError:
        return None


_READERS: tuple[tuple[Callable[[Any], bool], Callable[[Any, Any], Any]], ...] = (
    (types.is_integer, _read_integer),
    (types.is_floating, _read_float),
    (types.is_decimal, _read_decimal),
    (types.is_boolean, _read_boolean),
    (types.is_string, _read_string),
    (types.is_date, _read_date),
    (types.is_timestamp, _read_timestamp),
)


def to_text(array: Any) -> Any:
    """Convert statistics in columns to JSON text without null members; a null row stays null."""
    write = next((write for is_type, write in _WRITERS if is_type(array.type)), None)
    return pa.nulls(len(array), pa.string()) if write is None else write(array)


def _write_object(array: pa.StructArray) -> Any:
    members = [
        pc.fill_null(_join(f"{msgspec.json.encode(name).decode()}:", to_text(part), ","), "")
        for name, part in zip(array.type.names, array.flatten(), strict=True)
    ]
    whole = _join("{", pc.ascii_rtrim(_join(*members), ",") if members else "", "}")
    return pc.if_else(array.is_valid(), whole, pa.scalar(None, pa.string()))


def _write_plain(array: pa.Array[Any]) -> Any:
    return array.cast(pa.string())


def _write_float(array: pa.Array[Any]) -> Any:
    text = array.cast(pa.string())
    whole = pc.match_substring_regex(text, "^-?[0-9]+$")
    text = pc.if_else(whole, _join(text, ".0"), text)
    return pc.if_else(pc.is_finite(array), text, pa.scalar(None, pa.string()))


def _write_date(array: pa.Array[Any]) -> Any:
    return _join('"', _with_four_digit_years(array).cast(pa.string()), '"')


def _write_timestamp(array: Any) -> Any:
    """Write timestamps rounded down to milliseconds, as the protocol requires.

    The text in the log may have had an offset without its seconds, and so has the text of early moments.
    """
    millis = pc.floor_temporal(array.cast(pa.timestamp(array.type.unit)), unit="millisecond")
    text = pc.strftime(_with_four_digit_years(millis.cast(pa.timestamp("ms"))), "%Y-%m-%dT%H:%M:%S")
    if not array.type.tz:
        return _join('"', text, '"')
    early = pc.less(millis, pa.scalar(datetime(1973, 1, 1), millis.type))
    return _join('"', text, pc.if_else(early, "+00:00", "Z"), '"')


def _with_four_digit_years(array: Any) -> Any:
    """Return dates and timestamps of the years 0 to 9999, and null for others, which have no text form.

    Arrow writes a timestamp of the year 70417 as one of the year 4881.
    """
    first, end = (pa.scalar(days, pa.int32()).cast(pa.date32()).cast(array.type) for days in _FOUR_DIGITS)
    has_text = pc.and_(pc.greater_equal(array, first), pc.less(array, end))
    return pc.if_else(has_text, array, pa.scalar(None, array.type))


def _write_string(array: pa.Array[Any]) -> Any:
    strings = array.cast(pa.string())
    text = _join('"', strings, '"')
    escaped: Any = pc.match_substring_regex(strings, '[\\x00-\\x1f"\\\\]')
    if not pc.any(escaped).as_py():
        return text
    encoded = [msgspec.json.encode(value).decode() for value in strings.filter(escaped).to_pylist()]
    return pc.replace_with_mask(text, pc.fill_null(escaped, False), pa.array(encoded, pa.string()))


def _write_variant(array: Any) -> Any:
    try:
        variant_values.check(array)
        variants: Any = shredding.unshred(array)
    except (MalformedVariantError, ShreddingError):
        if len(array) == 1:
            return pa.nulls(1, pa.string())
        half = len(array) // 2
        return pa.concat_arrays([_write_variant(array[:half]), _write_variant(array[half:])])
    data = pc.binary_join_element_wise(
        decode(pc.struct_field(variants, "metadata")), pc.struct_field(variants, "value"), b""
    ).dictionary_encode()
    texts = pa.array([z85.encode(each) for each in data.dictionary.to_pylist()], pa.string())
    return _join('"', texts.take(data.indices), '"')


def _join(*parts: Any) -> Any:
    return pc.binary_join_element_wise(*parts, "")


_WRITERS: tuple[tuple[Callable[[Any], bool], Callable[[Any], Any]], ...] = (
    (_is_variant, _write_variant),
    (types.is_struct, _write_object),
    (types.is_integer, _write_plain),
    (types.is_boolean, _write_plain),
    (types.is_decimal, _write_plain),
    (types.is_floating, _write_float),
    (types.is_timestamp, _write_timestamp),
    (types.is_date, _write_date),
    (types.is_string, _write_string),
    (types.is_large_string, _write_string),
)
