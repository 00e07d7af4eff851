"""Variant values: JSON parsing and printing, access by path, and Python objects (VariantEncoding.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args

import pyarrow as pa
import pyarrow.compute as pc

from .. import _native
from .._arrow import Array, decode, first_invalid_row, validate
from .._checks import check_option
from .._html import html_text
from .._options import DuplicateKeys, Floats, OnConflict
from ..errors import ArgumentTypeError, InvalidJsonError, SchemaError
from .moments import UTC, check_timezone
from .paths import parse_path

ArrowArray: TypeAlias = Any
"""An Arrow array, any object with `__arrow_c_array__` or `__arrow_c_stream__`, or a list of Python values."""

EXTENSION = {b"ARROW:extension:name": b"arrow.parquet.variant"}
"""The metadata of an Arrow field that is a Variant."""

LAST_DUPLICATE = ("duplicate_keys", "last")
"""The option that accepts objects with two fields of one name, for messages."""

TEXT = (str, bytes, bytearray)
TABULAR = (pa.Table, pa.RecordBatchReader)
# pa.array would use the characters, bytes or keys of these as values, or read a set in an arbitrary order.
NOT_ARRAYS = (*TEXT, *TABULAR, memoryview, Mapping, set, frozenset)


def to_arrow_array(values: ArrowArray) -> Any:
    """Return `values` as one pyarrow array of its storage type.

    Raises ArgumentTypeError for values that are not a sequence, and SchemaError for 2 GiB of text or more and
    for invalid offsets and values.
    """
    if not isinstance(values, pa.Array | pa.ChunkedArray):
        values = _new_array(values)
    try:
        validate(values)
    except pa.ArrowInvalid as error:
        message = f"invalid array of type {values.type}: {error}: make it again from its values"
        raise SchemaError(message).at(row=first_invalid_row(values)) from error
    try:
        return decode(values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values)
    except pa.ArrowInvalid as error:
        raise SchemaError(f"{error}: pass fewer rows at a time, for example each chunk") from error
    except pa.ArrowNotImplementedError as error:
        raise SchemaError(f"cannot read an array of type {values.type}: {error}: cast it first") from error


def _new_array(values: Any) -> Any:
    if isinstance(values, NOT_ARRAYS):
        kind = type(values).__name__
        raise ArgumentTypeError(f"expected an array or a list of values, got {kind}{_hint(values)}")
    try:
        is_stream = hasattr(values, "__arrow_c_stream__") and not hasattr(values, "__arrow_c_array__")
        return pa.chunked_array(values) if is_stream else pa.array(values)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise ArgumentTypeError(f"expected an array or a list of values: {error}") from error


def _hint(values: Any) -> str:
    if isinstance(values, TEXT):
        return ": pass a list of one value"
    return ": pass one of its columns" if isinstance(values, TABULAR) else ""


def parse_json(
    strings: ArrowArray, *, floats: Floats = "decimal", duplicate_keys: DuplicateKeys = "error"
) -> pa.StructArray:
    """Return JSON text as Variants.

    Numbers get the types that Spark's `parse_json` gives them: an integer the narrowest of int8 to int64, a
    plain decimal of up to 38 digits decimal, and every other number double.

    Args:
        strings: An array of strings, a chunked array or a list of strings. Null stays null.
        floats: The type of a number with a fraction: `"decimal"` where it fits, or always `"double"`.
        duplicate_keys: Whether an object with two fields of one name is an `"error"`, or the `"last"` field
            wins (VariantEncoding.md, "Object").

    Returns:
        An array of `struct<metadata: binary, value: binary>` with one Variant per row.

    Raises:
        InvalidJsonError: Text is not JSON; `row` is its row.
        ArgumentTypeError: `strings` is a single string, or not an array.
        SchemaError: `strings` is an array of another type, or contains 2 GiB of text or more.
        ValueError: An option is not one of its values.

    Example:
        >>> from delta_variant import parse_json, to_json
        >>> to_json(parse_json(['{"a": 1.50}', None])).to_pylist()
        ['{"a":1.5}', None]
    """
    check_option("floats", floats, get_args(Floats))
    check_option("duplicate_keys", duplicate_keys, get_args(DuplicateKeys))
    variants, invalid = parse_valid_json(strings, floats=floats, duplicate_keys=duplicate_keys)
    if invalid:
        first = invalid[0]
        remedies = (LAST_DUPLICATE,) if first.is_duplicate else ()
        raise _invalid_json(first, remedies)
    return variants


def _invalid_json(
    value: _native.InvalidValue, remedies: tuple[tuple[str, str], ...] = ()
) -> InvalidJsonError:
    message = f"byte {value.offset + 1} of the text: {value.message}"
    return InvalidJsonError(message, remedies=remedies).at(row=value.row)


def parse_valid_json(
    strings: ArrowArray, *, floats: Floats, duplicate_keys: DuplicateKeys
) -> tuple[pa.StructArray, list[_native.InvalidValue]]:
    """Return JSON text as Variants, with null for invalid text, and the invalid text."""
    text = to_arrow_array(strings)
    if pa.types.is_null(text.type):
        text = text.cast(pa.string())
    return _native.parse_json(text, floats, duplicate_keys)


def check(variants: ArrowArray) -> None:
    """Raise MalformedVariantError, which has the row, unless all bytes are Variants."""
    _native.validate(to_arrow_array(variants))


def to_json(
    variants: ArrowArray, *, on_conflict: OnConflict = "error", timezone: str = UTC
) -> pa.StringArray:
    """Return the JSON text of Variants as Spark's `to_json` prints it.

    Args:
        variants: Variants as an array, shredded or not, or a chunked array. Null stays null.
        on_conflict: `"error"` raises an error if `value` and `typed_value` of a shredded row contradict each
            other, `"typed"` reads `typed_value`.
        timezone: The time zone in which timestamps are printed, with their offset from UTC: a region of the
            IANA database such as `Europe/Berlin`, or an offset such as `+02:00`.

    Returns:
        An array of strings.

    Raises:
        ArgumentTypeError: `variants` is not an array.
        MalformedVariantError: Bytes are not a Variant; `row` is the row.
        ConflictingValueError: Two values of a row contradict each other and `on_conflict` is `"error"`.
        ShreddingError: The array is not a shredded Variant column.
        ValueError: The time zone is unknown, or `on_conflict` is not one of its values.

    Example:
        >>> from delta_variant import parse_json, to_json
        >>> to_json(parse_json(['{"b": true, "a": [1, null]}'])).to_pylist()
        ['{"a":[1,null],"b":true}']
    """
    check_timezone(timezone)
    check_option("on_conflict", on_conflict, get_args(OnConflict))
    return _native.to_json(to_arrow_array(variants), on_conflict, timezone)


def extract(
    variants: Array,
    path: Sequence[str | int],
    arrow_type: pa.DataType | None,
    *,
    strict: bool,
    timezone: str = UTC,
) -> Any:
    """Return the value at `path` of each row cast to an Arrow type, or as a Variant if the type is None.

    A missing path and a Variant null are null. A value that cannot be cast raises CastError if `strict`, and
    is null otherwise. Dates, and text and timestamps without time zone, are local times in `timezone`.
    """
    target = VARIANT_TYPE if arrow_type is None else arrow_type
    return _native.variant_get(decode(variants), list(path), target, strict, timezone)


def set_path(variants: ArrowArray, path: Sequence[str | int], values: ArrowArray) -> pa.StructArray:
    """Return Variants with each of `values`, which are scalars or Variants, set at `path`.

    NULL in `values` becomes a Variant null. A parent that is missing or null becomes an object, and so does a
    Variant that is NULL. Everything else keeps its bytes. Raises VariantPathError if a parent is not an
    object, or if an array does not have the element.
    """
    return _native.set_path(to_arrow_array(variants), list(path), to_arrow_array(values))


def remove_path(variants: ArrowArray, path: Sequence[str | int]) -> pa.StructArray:
    """Return Variants without the value at `path`; everything else keeps its bytes."""
    return _native.remove_path(to_arrow_array(variants), list(path))


VARIANT_TYPE = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)])


@dataclass(frozen=True)
class Variant:
    """One Variant value in the Parquet Variant encoding (VariantEncoding.md).

    Two Variants are equal if their values are: the order of the fields of an object does not matter, and
    exact numbers (integers and decimals) and timestamps (in microseconds and nanoseconds) are equal by value.
    Other types differ: 1 and the double 1.0, a float and a double (VariantEncoding.md, "Equivalence Class").

    Attributes:
        metadata: The dictionary of the field names.
        value: The encoded value.

    Example:
        >>> from delta_variant import Variant
        >>> event = Variant.from_json('{"user": {"id": 7}}')
        >>> event.get("$.user.id").to_python()
        7
    """

    metadata: bytes
    value: bytes

    @classmethod
    def from_json(cls, text: str, *, floats: Floats = "decimal") -> Variant:
        """Return one JSON text as a Variant.

        Args:
            text: JSON text as str or bytes.
            floats: The type of a number with a fraction: `"decimal"` where it fits, or always `"double"`.

        Returns:
            The Variant.

        Raises:
            InvalidJsonError: The text is not JSON.
            ArgumentTypeError: `text` is neither str nor bytes.

        Example:
            >>> from delta_variant import Variant
            >>> Variant.from_json('{"a": 1.5}').to_python()
            {'a': Decimal('1.5')}
        """
        if not isinstance(text, str | bytes):
            raise ArgumentTypeError(f"expected JSON text, got {text!r}")
        variants, invalid = parse_valid_json([text], floats=floats, duplicate_keys="error")
        if invalid:
            raise _invalid_json(invalid[0])
        return cls._of(variants)

    @classmethod
    def from_python(cls, value: Any) -> Variant:
        """Return a Python object as a Variant.

        Args:
            value: None, bool, int, float, Decimal, str, bytes, date, datetime, time, UUID, a Variant, or
                dicts and lists of them. An int has the narrowest type that holds it, beyond 64 bits decimal.
                A datetime with a time zone is a timestamp, one without is a local time.

        Returns:
            The Variant.

        Raises:
            ArgumentTypeError: A value has another type, or a key of a dict is not a string.
            CastError: A number has more than 38 digits, or a Decimal is not finite.

        Example:
            >>> from delta_variant import Variant
            >>> Variant.from_python({"a": [1, None]}).to_json()
            '{"a":[1,null]}'
        """
        return cls._of(_native.from_python([value], True))

    @classmethod
    def _of(cls, variants: Any) -> Variant:
        row = variants[0].as_py()
        return cls(row["metadata"], row["value"])

    def _array(self) -> Any:
        return pa.array([{"metadata": self.metadata, "value": self.value}], VARIANT_TYPE)

    def get(self, path: str) -> Variant | None:
        """Return the Variant at a path.

        Args:
            path: A path such as `$.a[0]` or `$['first name']`.

        Returns:
            The Variant, or None if the path does not exist.

        Raises:
            ExpressionError: The path is invalid.
            MalformedVariantError: The bytes are not a Variant.

        Example:
            >>> from delta_variant import Variant
            >>> value = Variant.from_json('{"a": [1, 2]}')
            >>> value.get("$.a[1]").to_python()
            2
            >>> value.get("$.b") is None
            True
        """
        found = extract(self._array(), parse_path(path), None, strict=True)
        return Variant._of(found) if found[0].is_valid else None

    def to_json(self) -> str:
        """Return the value as JSON text, as Spark's `to_json` prints it.

        Raises:
            MalformedVariantError: The bytes are not a Variant.

        Example:
            >>> from delta_variant import Variant
            >>> Variant.from_python({"b": 1, "a": 2}).to_json()
            '{"a":2,"b":1}'
        """
        return str(to_json(self._array())[0].as_py())

    def to_python(self) -> Any:
        """Return the value as Python objects: dict, list, str, int, Decimal, float, datetime and so on.

        Raises:
            CastError: Python has no such value, for example for a year after 9999.
            MalformedVariantError: The bytes are not a Variant.

        Example:
            >>> from delta_variant import Variant
            >>> Variant.from_json('[1, "x", null]').to_python()
            [1, 'x', None]
        """
        return _native.to_python(self.metadata, self.value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Variant):
            return NotImplemented
        if (self.metadata, self.value) == (other.metadata, other.value):
            return True
        return _native.canonical(self.metadata, self.value) == _native.canonical(other.metadata, other.value)

    def __hash__(self) -> int:
        return hash(_native.canonical(self.metadata, self.value))

    def __repr__(self) -> str:
        return f"Variant.from_json({self.to_json()!r})"

    def _repr_html_(self) -> str:
        return f"<code>{html_text(self.to_json())}</code>"


def from_concatenated(data: bytes) -> Variant:
    """Return the Variant in `metadata‖value`, also with zero padding at the end, or in `value‖metadata`.

    Some writers store the parts in the second order. Raises MalformedVariantError.
    """
    return Variant(*_native.split_variant(data))


def plain_variants(variants: Array) -> Array:
    """Return Variants, with children in any order, in the Arrow type of Variant columns."""
    parts = [pc.fill_null(variants.field(name), b"") for name in ("metadata", "value")]
    return pa.StructArray.from_arrays(parts, fields=list(VARIANT_TYPE), mask=variants.is_null())
