"""Variant values: from JSON text and to it, by path, and as Python objects (VariantEncoding.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args

import pyarrow as pa

from .. import _native
from .._arrow import decoded
from .._checks import check_option
from .._options import DuplicateKeys, Floats, OnConflict
from ..errors import ArgumentTypeError, InvalidJsonError, SchemaError
from .moments import UTC, check_timezone
from .paths import parse_path

__all__ = [
    "ArrowArray",
    "Variant",
    "check",
    "extract",
    "from_concatenated",
    "parse_json",
    "parse_valid_json",
    "remove_path",
    "set_path",
    "to_arrow_array",
    "to_json",
]

ArrowArray: TypeAlias = Any
"""A pyarrow array or chunked array, any object with `__arrow_c_array__`, or a list of Python values."""

TEXT = (str, bytes, bytearray)
TABULAR = (pa.Table, pa.RecordBatchReader)
# pa.array would take the characters, the bytes or the keys of these for values, or reads a set in any order.
NOT_ARRAYS = (*TEXT, *TABULAR, memoryview, Mapping, set, frozenset)


def to_arrow_array(values: ArrowArray) -> Any:
    """Return `values` as one pyarrow array of its storage type.

    Raises ArgumentTypeError for values that are not a sequence, and SchemaError for text of 2 GiB or more.
    """
    if not isinstance(values, pa.Array | pa.ChunkedArray):
        values = _new_array(values)
    try:
        return decoded(values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values)
    except pa.ArrowInvalid as error:
        raise SchemaError(f"{error}: take fewer rows at a time, such as chunk by chunk") from error


def _new_array(values: Any) -> Any:
    if isinstance(values, NOT_ARRAYS):
        kind = type(values).__name__
        raise ArgumentTypeError(f"expected an array or a list of values, got {kind}{_hint(values)}")
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError) as error:
        raise ArgumentTypeError(f"expected an array or a list of values: {error}") from error


def _hint(values: Any) -> str:
    if isinstance(values, TEXT):
        return ": put a single value into a list"
    return ": pass one of its columns" if isinstance(values, TABULAR) else ""


def parse_json(
    strings: ArrowArray, *, floats: Floats = "decimal", duplicate_keys: DuplicateKeys = "error"
) -> pa.StructArray:
    """Return JSON text as Variants, a `struct<metadata: binary, value: binary>`; null stays null.

    Numbers are typed as Spark's `parse_json` types them: integers as the narrowest of int8 to int64, plain
    decimals of up to 38 digits as decimal, the rest as double; `floats="double"` makes every number with a
    fraction a double. Raises InvalidJsonError, which names row and column, for text that is not JSON, and for
    two fields of one name unless `duplicate_keys="last"` (VariantEncoding.md, "Object"). Raises
    ArgumentTypeError for a single text instead of an array or a list of them.
    """
    check_option("floats", floats, get_args(Floats))
    check_option("duplicate_keys", duplicate_keys, get_args(DuplicateKeys))
    text = to_arrow_array(strings)
    if pa.types.is_null(text.type):
        text = text.cast(pa.string())
    variants, invalid = _native.parse_json(text, floats, duplicate_keys)
    if invalid:
        first = invalid[0]
        raise InvalidJsonError(f"row {first.row}, column {first.offset + 1}: {first.message}", row=first.row)
    return variants


def parse_valid_json(
    strings: ArrowArray, *, floats: Floats, duplicate_keys: DuplicateKeys
) -> tuple[pa.StructArray, list[int]]:
    """Return what `parse_json` returns, with null for text that is not valid, and the rows of such text."""
    text = to_arrow_array(strings)
    if pa.types.is_null(text.type):
        text = text.cast(pa.string())
    variants, invalid = _native.parse_json(text, floats, duplicate_keys)
    return variants, [each.row for each in invalid]


def check(variants: ArrowArray) -> None:
    """Raise MalformedVariantError, which names the row, unless all bytes are Variants."""
    _native.validate(to_arrow_array(variants))


def to_json(
    variants: ArrowArray, *, on_conflict: OnConflict = "error", timezone: str = UTC
) -> pa.StringArray:
    """Return the JSON text of Variants, shredded or not, as Spark's `to_json` prints it; null stays null.

    Timestamps are local times in `timezone`, with their offset from UTC. Raises ArgumentTypeError for a value
    that is not an array, ValueError for an unknown time zone.
    """
    check_timezone(timezone)
    check_option("on_conflict", on_conflict, get_args(OnConflict))
    return _native.to_json(to_arrow_array(variants), on_conflict, timezone)


def extract(
    variants: ArrowArray,
    path: Sequence[str | int],
    arrow_type: pa.DataType | None,
    *,
    strict: bool,
    timezone: str = UTC,
) -> Any:
    """Return what lies at `path` cast to an Arrow type; None asks for the Variants themselves.

    A missing path and a Variant null are null. A value that cannot be cast raises CastError when `strict`,
    and is null otherwise. Dates, and text and timestamps without time zone, are local times in `timezone`.
    """
    target = VARIANT_TYPE if arrow_type is None else arrow_type
    return _native.variant_get(to_arrow_array(variants), list(path), target, strict, timezone)


def set_path(variants: ArrowArray, path: Sequence[str | int], values: ArrowArray) -> pa.StructArray:
    """Return Variants in which `values`, scalars or Variants, lie at `path`, row by row.

    NULL in `values` is Variant null there. An object on the way that is missing or null is made, and so is
    the whole Variant where it is NULL; all else keeps its bytes. Raises VariantPathError where something else
    is on the way, or an array has no such element.
    """
    return _native.set_path(to_arrow_array(variants), list(path), to_arrow_array(values))


def remove_path(variants: ArrowArray, path: Sequence[str | int]) -> pa.StructArray:
    """Return Variants without what lies at `path`, if anything does; all else keeps its bytes."""
    return _native.remove_path(to_arrow_array(variants), list(path))


VARIANT_TYPE = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)])


@dataclass(frozen=True)
class Variant:
    """One Variant: its metadata and its value, as the Parquet Variant encoding has them.

    Two Variants are equal when their bytes are.
    """

    metadata: bytes
    value: bytes

    @classmethod
    def from_json(cls, text: str, *, floats: Floats = "decimal") -> Variant:
        """Return the Variant of one JSON text.

        Raises InvalidJsonError, and ArgumentTypeError for a value that is not text.
        """
        if not isinstance(text, str | bytes):
            raise ArgumentTypeError(f"expected JSON text, got {text!r}")
        return cls._of(parse_json([text], floats=floats))

    @classmethod
    def _of(cls, variants: Any) -> Variant:
        row = variants[0].as_py()
        return cls(row["metadata"], row["value"])

    def _array(self) -> Any:
        return pa.array([{"metadata": self.metadata, "value": self.value}], VARIANT_TYPE)

    def get(self, path: str) -> Variant | None:
        """Return the Variant at a path such as `$.a[0]`, or None where there is none."""
        found = extract(self._array(), parse_path(path), None, strict=True)
        return Variant._of(found) if found[0].is_valid else None

    def to_json(self) -> str:
        """Return the value as JSON text, as Spark's `to_json` prints it."""
        return str(to_json(self._array())[0].as_py())

    def to_python(self) -> Any:
        """Return the value as Python objects: dict, list, str, int, Decimal, float, datetime and so on.

        Raises CastError for what Python cannot hold, such as a year after 9999.
        """
        return _native.to_python(self.metadata, self.value)

    def __repr__(self) -> str:
        return f"Variant.from_json({self.to_json()!r})"


def from_concatenated(data: bytes) -> Variant:
    """Return the Variant in `metadata‖value`, whose end may be zero padding; also in `value‖metadata` (Z5).

    Raises MalformedVariantError.
    """
    return Variant(*_native.split_variant(data))
