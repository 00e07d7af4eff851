"""The statistics of a data file: the text of `AddFile.stats` (PROTOCOL.md, "Per-file Statistics").

The bounds of a Variant column are two Variant objects, encoded as z85 text, that map normalized paths to
minimum and maximum values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation
from math import isfinite, isnan, nan
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from .. import _native
from .._options import JsonKind
from ..errors import DataFileError, InvalidStatisticsError, InvalidZ85Error, MalformedVariantError
from ..variant.moments import EPOCH
from ..variant.values import Variant, from_concatenated
from . import z85
from .schema.evolution import INTEGERS
from .types import DataType, PrimitiveType, decimal_of

Path: TypeAlias = tuple[str, ...]
Nested: TypeAlias = Mapping[str, Any]
Shorten: TypeAlias = Callable[[str], str | None]
PREFIX_CHARACTERS = 32
MAX_SCALE = 38
FLOAT, DOUBLE = PrimitiveType("float"), PrimitiveType("double")
MAX_ASCII = "\x7f"
MAX_CUT = timedelta(seconds=59)
"""How many seconds of an offset from UTC Delta on Spark 3.2 and 3.3 omits in the bounds of timestamps."""
CUT_OFFSETS = ((r"[T ].*[+-]\d\d(:?\d\d)?$", 1973), (r"Z$", 1916))
"""Texts with an offset that may be cut, and the year from which on no time zone has seconds in such offsets.

Monrovia had -00:44:30 until 1972. Accra had -00:00:52 until 1915, which is printed as `Z`.
"""
MAX_CHARACTER = "\U0010ffff"
"""Appended to a truncated upper bound, so that it is greater than every text with the prefix."""


@dataclass(frozen=True)
class FileStatistics:
    """The statistics of the rows of a file.

    `null_count`, `min_values` and `max_values` mirror the schema by physical names: a struct is a mapping.
    Bounds are JSON values, with numbers that have a fraction or an exponent as Decimal, so that no digit is
    lost. Those of a Variant column are z85 text, which `decode_bound` decodes.
    """

    num_records: int | None = None
    null_count: Nested = field(default_factory=dict)
    min_values: Nested = field(default_factory=dict)
    max_values: Nested = field(default_factory=dict)
    tight_bounds: bool | None = None

    def to_json(self) -> str:
        """Return the text of `AddFile.stats`."""
        entries = {
            "numRecords": self.num_records,
            "minValues": _digits(self.min_values),
            "maxValues": _digits(self.max_values),
            "nullCount": self.null_count,
            "tightBounds": self.tight_bounds,
        }
        present = {key: value for key, value in entries.items() if value is not None}
        return msgspec.json.encode(present).decode()


def _digits(value: Any) -> Any:
    """Return bounds with each decimal as a JSON number that has all its digits."""
    if isinstance(value, Mapping):
        return {name: _digits(part) for name, part in value.items()}
    if isinstance(value, Decimal):
        # A large exponent, which another writer may have written, would expand to any number of digits.
        is_plain = -MAX_SCALE <= int(value.as_tuple().exponent) <= 0
        return msgspec.Raw((format(value, "f") if is_plain else str(value)).encode())
    return value


class _Entries(msgspec.Struct):
    """The known members of the statistics; others are ignored."""

    numRecords: int | None = None  # noqa: N815 - the name in the text
    nullCount: dict[str, Any] | None = None  # noqa: N815
    minValues: dict[str, Any] | None = None  # noqa: N815
    maxValues: dict[str, Any] | None = None  # noqa: N815
    tightBounds: bool | None = None  # noqa: N815


_DECODER = msgspec.json.Decoder(_Entries, float_hook=Decimal)


def decode(text: str) -> FileStatistics:
    """Return the statistics in the text of `AddFile.stats`; raises InvalidStatisticsError."""
    try:
        entries = _DECODER.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError, InvalidOperation) as error:
        raise InvalidStatisticsError(f"invalid statistics: {error}") from error
    return FileStatistics(
        entries.numRecords,
        entries.nullCount or {},
        entries.minValues or {},
        entries.maxValues or {},
        entries.tightBounds,
    )


def decode_or_empty(text: str | None) -> FileStatistics:
    """Return the statistics in a text, empty ones without a valid text."""
    try:
        return decode(text) if text else FileStatistics()
    except InvalidStatisticsError:
        return FileStatistics()


def value_at(values: Nested, path: Path) -> Any:
    """Return the value of a column in a member of the statistics, None if it is absent."""
    found: Any = values
    for step in path:
        found = found.get(step) if isinstance(found, Mapping) else None
    return found


def leaves_of(values: Nested, parents: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield the path and the value of each leaf column in a member of the statistics."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from leaves_of(value, (*parents, name))
        else:
            yield (*parents, name), value


def encode_bound(bounds: Variant) -> str:
    """Return the text of a Variant column in `minValues` or `maxValues`, the inverse of `decode_bound`.

    Args:
        bounds: An object that maps normalized paths, such as `$['user']['id']`, to values.

    Returns:
        Metadata and value, padded with zeros to blocks of four bytes, as z85 text.

    Example:
        >>> import delta_variant as dv
        >>> dv.encode_bound(dv.Variant.from_python({"$['user']": 7}))
        '5DI>rbWhTsB7Gwtt(>3b00iMl'
    """
    return z85.encode(bounds.metadata + bounds.value)


def variant_bytes(text_bytes: int) -> int:
    """Return how many bytes of Variants fit into z85 text of a length."""
    return text_bytes // z85.BLOCK_CHARACTERS * z85.BLOCK_BYTES


def decode_bound(text: str) -> Variant:
    """Return the bounds of a Variant column, whose text is an entry of `minValues` or `maxValues`.

    Args:
        text: z85 text, also in the form of the examples in PROTOCOL.md, whose last block is cut.

    Returns:
        An object that maps normalized paths (PROTOCOL.md, "Variant Statistics") to values.

    Raises:
        InvalidStatisticsError: The text is not z85, or its bytes are not a Variant.

    Example:
        >>> import delta_variant as dv
        >>> dv.decode_bound("5DI>rbWhTsB7Gwtt(>3b00iMl").to_python()
        {"$['user']": 7}
    """
    try:
        return from_concatenated(z85.decode(text))
    except (InvalidZ85Error, MalformedVariantError) as error:
        raise InvalidStatisticsError(f"cannot decode {text!r} as a Variant: {error}") from error


def texts_at(
    texts: pa.ChunkedArray[Any], json_paths: Sequence[tuple[Sequence[str], JsonKind]]
) -> list[pa.StringArray]:
    """Return the values at paths in the statistics of many files, as one array of strings for each path.

    Each of `json_paths` is a path of names from the root, and the kind of its JSON value. The result has the
    content of a string, or the digits of a number; null if there is no value of the kind, or the statistics
    are not JSON.
    """
    wanted = [(list(path), kind) for path, kind in json_paths]
    parts = [_native.json_leaves(chunk, wanted) for chunk in texts.chunks]
    empty: Any = pa.array([], pa.string())
    return [pa.concat_arrays([empty, *column]) for column in zip(*parts, strict=True)] or [empty] * len(
        wanted
    )


def counts_of(numbers: pa.StringArray) -> pa.Int64Array:
    """Return JSON numbers as counts of rows, null for a number that cannot be a count."""
    texts: Any = numbers
    is_count: Any = pc.match_substring_regex(texts, "^[0-9]{1,18}$")
    counts: pa.Int64Array = pc.if_else(is_count, texts, pa.scalar(None, pa.string())).cast(pa.int64())
    return counts


def bounds_at(texts: pa.StringArray, path_key: str, arrow_type: pa.DataType) -> pa.Array[Any]:
    """Return the bound of one path in many statistics entries of a Variant column, cast to an Arrow type.

    Null for an entry that cannot be decoded, lacks the path, or has a bound whose order differs from that of
    the type.
    """
    return _native.bound_column(texts, path_key, arrow_type)


@dataclass(frozen=True)
class Bound:
    """One bound of one path: its type in VariantEncoding.md, the scale of a decimal, and JSON text."""

    type: str
    scale: int | None
    text: str


@dataclass(frozen=True)
class BoundText:
    """The content of a statistics entry, including the form in which it is encoded.

    `bounds` are by path key, or None if the Variant is not an object. `rest` are the bytes after the Variant,
    which should be fewer than four zero bytes. `is_cut` means that the last z85 block is shorter than five
    characters.
    """

    data: bytes
    bounds: Mapping[str, Bound] | None
    is_value_first: bool
    rest: bytes
    is_cut: bool


def describe_bound(text: str) -> BoundText:
    """Return the content of a statistics entry; raises InvalidStatisticsError."""
    try:
        data = z85.decode(text)
        entry = _native.describe_bound(data)
    except (InvalidZ85Error, MalformedVariantError) as error:
        raise InvalidStatisticsError(f"cannot decode {text!r} as a Variant: {error}") from error
    members = (
        None
        if entry.bounds is None
        else {each.key: Bound(each.type_name, each.scale, each.text) for each in entry.bounds}
    )
    return BoundText(data, members, entry.is_value_first, entry.rest, len(text) % z85.BLOCK_CHARACTERS != 0)


def from_report(
    num_records: int,
    columns: Sequence[Any],
    names: Sequence[str],
    indexed: Collection[Path] | None,
    *,
    shorten: bool = True,
) -> FileStatistics:
    """Return the statistics of a file from the kernel's report of its columns.

    `indexed` are the leaf columns that get statistics, None for all. `shorten=False` does not truncate long
    strings of ordinary columns. Raises DataFileError for two fields of one name.
    """
    ends: tuple[Shorten, Shorten] = (
        (lambda text: text[:PREFIX_CHARACTERS], _shorten_up) if shorten else (str, str)
    )
    null_count: dict[str, Any] = {}
    bounds: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    for name, column in zip(names, columns, strict=True):
        for path, nulls, least, greatest in _leaves(name, column, ends):
            if indexed is not None and path not in indexed:
                continue
            if value_at(null_count, path) is not None:
                name = ".".join(path)
                raise DataFileError(f"ambiguous column {name!r}: the file has two of this name", column=name)
            put_at(null_count, path, nulls)
            for side, value in zip(bounds, (least, greatest), strict=True):
                if value is not None:
                    put_at(side, path, value)
    return FileStatistics(num_records, null_count, *bounds)


def _leaves(name: str, column: Any, ends: tuple[Shorten, Shorten]) -> list[tuple[Path, int, Any, Any]]:
    if isinstance(column, dict):
        least, greatest = column["bounds"] or (None, None)
        return [((name,), column["nulls"], least and z85.encode(least), greatest and z85.encode(greatest))]
    return [
        (tuple(leaf.path), leaf.nulls, _bound(leaf.min, ends[0]), _bound(leaf.max, ends[1]))
        for leaf in column
    ]


def put_at(target: dict[str, Any], path: Path, value: Any) -> None:
    """Set the value of a column in a member of the statistics."""
    for step in path[:-1]:
        target = target.setdefault(step, {})
    target[path[-1]] = value


def _bound(row: Any, shorten: Shorten) -> Any:
    """Return a bound, given as an array of one row or the bytes of a Variant, as the JSON value of Delta."""
    if row is None:
        return None
    if isinstance(row, bytes):
        return z85.encode(row)
    if pa.types.is_timestamp(row.type):
        return _timestamp(row[0].value, row.type)
    if pa.types.is_date32(row.type):
        return _date(row[0].value)
    value = row[0].as_py()
    if isinstance(value, str):
        return shorten(value)
    return None if isinstance(value, float) and not isfinite(value) else value


UNITS_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def _timestamp(units: int, arrow_type: Any) -> str | None:
    """Return a timestamp rounded down to milliseconds, as PROTOCOL.md requires; None after the year 9999."""
    try:
        moment = EPOCH + timedelta(milliseconds=units * 1000 // UNITS_PER_SECOND[arrow_type.unit])
    except OverflowError:
        return None
    return moment.isoformat(timespec="milliseconds") + ("Z" if arrow_type.tz else "")


def _date(days: int) -> str | None:
    try:
        return (EPOCH + timedelta(days=days)).date().isoformat()
    except OverflowError:
        return None


def _shorten_up(text: str) -> str | None:
    if len(text) <= PREFIX_CHARACTERS:
        return text
    prefix, following = text[:PREFIX_CHARACTERS], text[PREFIX_CHARACTERS]
    if following < MAX_ASCII:
        return prefix + MAX_ASCII
    return prefix + MAX_CHARACTER if following < MAX_CHARACTER else None


MIN_PREFIX_CHARACTERS = 16
"""The shortest prefix to which other writers truncate bounds."""


def is_shortened(bound: str, longer: str, *, is_upper: bool) -> bool:
    """Return whether a bound is a valid truncation of a longer string.

    A lower bound may end in `?`, with which other writers replace half of a surrogate pair.
    """
    if len(bound) <= MIN_PREFIX_CHARACTERS:
        return False
    if is_upper:
        # Spark appends a character that is greater than the next one, delta-rs raises the last character.
        is_cut = len(longer) >= len(bound) and bound[-1] > longer[len(bound) - 1]
        return is_cut and longer.startswith(bound[:-1])
    return longer.startswith(bound.removesuffix("?"))


def to_comparable(value: Any, data_type: DataType) -> Any:
    """Return a JSON bound of an ordinary column as a value that can be compared, None if it is invalid."""
    if not isinstance(data_type, PrimitiveType):
        return None
    try:
        return _comparable(value, data_type)
    except (ValueError, ArithmeticError):
        return None


def widen_moments(texts: Any, moments: Any, sign: int) -> Any:
    """Return bounds of a timestamp column, lower (-1) or higher (1) by what a cut offset may omit.

    `moments` are the parsed `texts`. Both are Arrow arrays.
    """
    if not pc.any(pc.less(moments, _first_of(1973, moments.type))).as_py():
        return moments
    margin = pa.scalar(MAX_CUT, pa.duration("us"))
    # Clamp first, so that the difference does not overflow.
    lowest = pc.add(pa.scalar(-(1 << 63), moments.type), margin)
    clamped = pc.if_else(pc.less(moments, lowest), lowest, moments)
    widened = (pc.add if sign > 0 else pc.subtract)(clamped, margin)
    for pattern, end in CUT_OFFSETS:
        may_be_cut = pc.and_(
            pc.match_substring_regex(texts, pattern), pc.less(moments, _first_of(end, moments.type))
        )
        moments = pc.if_else(pc.fill_null(may_be_cut, False), widened, moments)
    return moments


def is_cut(text: Any, moment: datetime) -> bool:
    """Return whether a bound of a timestamp column may lack the seconds of its offset from UTC."""
    return any(
        isinstance(text, str) and bool(re.search(pattern, text)) and moment.year < end
        for pattern, end in CUT_OFFSETS
    )


def _first_of(year: int, arrow_type: Any) -> Any:
    return pa.scalar(datetime(year, 1, 1, tzinfo=timezone.utc if arrow_type.tz else None), arrow_type)


def type_of_bounds(data_type: DataType, stored: pa.DataType | None) -> DataType:
    """Return the type of the bounds of a column in one file.

    This is the column's type, except that a file written before a column was widened from `float` to `double`
    has bounds with the digits of a float. `stored` is the Arrow type of the column in the file.
    """
    was_float = stored is not None and pa.types.is_float32(stored)
    return FLOAT if was_float and data_type == DOUBLE else data_type


def _comparable(value: Any, data_type: PrimitiveType) -> Any:
    if isinstance(value, bool):
        return value if data_type.name == "boolean" else None
    if data_type.name in INTEGERS or decimal_of(data_type):
        return Decimal(value) if isinstance(value, int | Decimal) else None
    if data_type in (FLOAT, DOUBLE):
        number = _floating(value, data_type) if isinstance(value, int | float | Decimal) else nan
        return None if isnan(number) else number
    if not isinstance(value, str):
        return None
    if data_type.name == "string":
        # The order of code points is the order of their UTF-8 bytes.
        return value
    if data_type.name == "date":
        return date.fromisoformat(value)
    if data_type.name in ("timestamp", "timestamp_ntz"):
        return _moment(value)
    return None


def _floating(value: float | Decimal, data_type: PrimitiveType) -> float:
    if data_type == DOUBLE:
        return float(value)
    # Writers print the shortest digits that parse to the float: 0.1 for 0.100000001490116.
    number: float = pa.scalar(str(value)).cast(pa.float32()).as_py()
    return number


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text.replace("Z", "+00:00").replace(" ", "T"))
    moment = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    return moment.astimezone(timezone.utc)
