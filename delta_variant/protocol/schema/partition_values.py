"""Partition values as text in AddFile (PROTOCOL.md, "Partition Value Serialization") and in folders."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import date, datetime, timezone
from decimal import Context, Decimal
from functools import partial
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa

from ...errors import MalformedLogError, SchemaError, UnsupportedFeatureError
from ...variant.moments import UTC, instant_of
from ..types import DataType, PrimitiveType, decimal_of, describe

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
NOT_FINITE = re.compile(r"[+-]?inf(inity)?|nan", re.ASCII | re.IGNORECASE)
TIMESTAMP = re.compile(
    r"([+-]?\d{4,6})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{1,6})\d*)?)?(Z|[+-]\d\d:\d\d)?",
    re.ASCII,
)
BOOLEANS = {"true": True, "false": False}
LONGEST_DECIMAL = Context(prec=76)


def partition_value_to_string(value: object, data_type: DataType) -> str | None:
    """Return the string of a Python value as pyarrow returns it; null and empty text are None.

    Timestamps are written in UTC as ISO 8601, so that readers do not depend on a session's time zone. Raises
    SchemaError for bytes that are not UTF-8, because the protocol cannot store them.
    """
    if value is None or value in ("", b""):
        return None
    write = WRITERS.get(_kind(data_type))
    if write is None:
        raise SchemaError(f"cannot store a partition value of type {describe(data_type)}")
    return write(value)


def partition_value_from_string(text: str | None, data_type: DataType, timezone: str = UTC) -> Any:
    """Return a partition value as a Python value; null and `""` are None.

    Timestamps are accepted with and without a time zone; without one they are local times in `timezone`, like
    in Spark those of the session. Raises MalformedLogError for text that is not a value of the type, and
    UnsupportedFeatureError for a date or time outside the range of Python.
    """
    if text is None or text == "":
        return None
    read = _reader(data_type, timezone)
    if read is None:
        raise MalformedLogError(f"cannot read a partition value of type {describe(data_type)}")
    try:
        return read(text)
    except (ValueError, KeyError, ArithmeticError) as error:
        raise MalformedLogError(
            f"invalid partition value {text!r}: expected {describe(data_type)}"
        ) from error


def _reader(data_type: DataType, timezone: str) -> Callable[[str], Any] | None:
    if digits := decimal_of(data_type):
        return partial(_read_decimal, digits=digits)
    if _kind(data_type) == "timestamp":
        return partial(_read_timestamp, timezone=timezone)
    return READERS.get(_kind(data_type))


def _kind(data_type: DataType) -> str:
    if decimal_of(data_type):
        return "decimal"
    return data_type.name if isinstance(data_type, PrimitiveType) else ""


def _write_float(value: Any, arrow_type: pa.DataType) -> str:
    """Return the text that Java has for a number: Spark compacts files together whose texts are equal.

    The digits of a `float` are its own: a reader parses them as a double if the column becomes one.
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    shortest = Decimal(pa.scalar(value, arrow_type).cast(pa.string()).as_py()).normalize()
    if shortest and not -3 <= shortest.adjusted() < 7:
        sign, digits, _ = shortest.as_tuple()
        first, *rest = map(str, digits)
        return f"{'-' * sign}{first}.{''.join(rest) or '0'}E{shortest.adjusted()}"
    text = format(shortest, "f")
    return text if "." in text else f"{text}.0"


def _write_binary(value: Any) -> str:
    try:
        return bytes(value).decode("utf-8")
    except UnicodeDecodeError as error:
        raise SchemaError(
            f"invalid partition value {value!r}: Delta can only store bytes that are UTF-8"
        ) from error


def _write_timestamp(value: Any) -> str:
    utc = value.replace(tzinfo=timezone.utc) if value.tzinfo is None else value.astimezone(timezone.utc)
    return f"{utc.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def _write_timestamp_ntz(value: Any) -> str:
    return str(value.isoformat(sep=" ", timespec="microseconds" if value.microsecond else "seconds"))


def _read_integer(bits: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        value = int(_number(text))
        if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            raise ValueError(text)
        return value

    return read


def _read_floating(text: str) -> float:
    return float(text if NOT_FINITE.fullmatch(text) else _number(text))


def _read_decimal(text: str, digits: tuple[int, int]) -> Decimal:
    precision, scale = digits
    value = Decimal(_number(text))
    if value and value.adjusted() >= precision - scale:
        raise ValueError(text)
    exact = (value or Decimal(0)).quantize(Decimal(1).scaleb(-scale), context=LONGEST_DECIMAL)
    if exact != value:
        raise ValueError(text)
    return exact


def _number(text: str) -> str:
    """Return text that Java also parses as a number: Python accepts more digits, and `_` between them."""
    if NUMBER.fullmatch(text) is None:
        raise ValueError(text)
    return text


def _read_date(text: str) -> date:
    return _read_moment(text)[0].date()


def _read_timestamp(text: str, timezone: str) -> datetime:
    moment, zone = _read_moment(text)
    return instant_of(moment, zone or timezone)


def _read_moment(text: str) -> tuple[datetime, str]:
    found = TIMESTAMP.fullmatch(text)
    if found is None:
        raise ValueError(text)
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    if not 0 < int(year) < 10_000:
        raise UnsupportedFeatureError(
            f"cannot read the partition value {text!r} because it is outside the years 1 to 9999"
        )
    microsecond = int((fraction or "").ljust(6, "0"))
    moment = datetime(
        int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), microsecond
    )
    return moment, zone or ""


WRITERS: dict[str, Callable[[Any], str]] = {
    "string": str,
    "byte": str,
    "short": str,
    "integer": str,
    "long": str,
    "float": partial(_write_float, arrow_type=pa.float32()),
    "double": partial(_write_float, arrow_type=pa.float64()),
    "decimal": lambda value: format(value, "f"),
    "boolean": lambda value: "true" if value else "false",
    "binary": _write_binary,
    "date": lambda value: str(value.isoformat()),
    "timestamp": _write_timestamp,
    "timestamp_ntz": _write_timestamp_ntz,
}
READERS: dict[str, Callable[[str], Any]] = {
    "string": str,
    "byte": _read_integer(8),
    "short": _read_integer(16),
    "integer": _read_integer(32),
    "long": _read_integer(64),
    "float": _read_floating,
    "double": _read_floating,
    "boolean": lambda text: BOOLEANS[text.lower()],
    "binary": str.encode,
    "date": _read_date,
    "timestamp_ntz": lambda text: _read_moment(text)[0],
}


NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"

# Polars and DuckDB decode values, but not names. pyarrow leaves out folders that begin with _ or a dot.
_ENCODED = re.compile(r"""^[_.]|[\x00-\x1f\x7f"#%'*/:=?\\{\[\]^]""")


def encode_name(name: str) -> str:
    """Return the name of a column in the name of a folder, as Hive writes it, without a leading _ or dot."""
    return _ENCODED.sub(lambda match: f"%{ord(match[0]):02X}", name)


def folder_of(name: str, value: str | None) -> str:
    encoded = NULL_FOLDER if value is None else quote(value, safe=" ")
    if value == NULL_FOLDER:
        encoded = f"%5F{value[1:]}"
    return f"{encode_name(name)}={encoded}"


def parse_folders(path: str) -> list[tuple[str, str | None]]:
    """Return the columns and the values in the partition folders of a file."""
    pairs = (folder.partition("=") for folder in path.split("/")[:-1] if "=" in folder)
    return [(unquote(name), None if value == NULL_FOLDER else unquote(value)) for name, _, value in pairs]
