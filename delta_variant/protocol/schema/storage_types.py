"""Compare the types in data files with the types of the table.

A file may have a narrower type, as before a type change, and other units and forms of the same values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.types as arrow_types

from ..._arrow import is_any_binary, is_any_text
from ...errors import SchemaError
from ..types import (
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructType,
    decimal_of,
    describe,
    is_geospatial,
)
from .arrow import is_list
from .evolution import is_lossless
from .paths import FieldPath

TIMESTAMP = PrimitiveType("timestamp")
SMALL = (PrimitiveType("byte"), PrimitiveType("short"))
DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}
DIGITS |= {pa.uint8(): 3, pa.uint16(): 5, pa.uint32(): 10, pa.uint64(): 20}
# The physical type of bytes and shorts is INT32, which other writers do not annotate with their width.
INTEGERS = {
    "byte": (pa.int8(), pa.int32()),
    "short": (pa.int8(), pa.int16(), pa.int32(), pa.uint8()),
    "integer": (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16()),
    "long": (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()),
}
DOUBLES = (pa.float16(), pa.float32(), pa.float64(), *INTEGERS["integer"])


def check_readable(stored: Any, data_type: DataType, path: FieldPath) -> None:
    """Raise SchemaError for a column that cannot be read as its type in the table.

    A conversion that fails for each value that it would change is left to the values.
    """
    for leaf, found, expected in mismatches(stored, data_type, path):
        if not _is_checked_by_value(found, expected):
            raise SchemaError(
                f"the file stores {found}, which cannot be read as {describe(expected)} without loss: "
                "rewrite the file with the type of the table"
            ).at(column=".".join(leaf))


def _is_checked_by_value(stored: Any, data_type: DataType) -> bool:
    if not isinstance(data_type, PrimitiveType):
        return False
    is_integer = arrow_types.is_integer(stored)
    if data_type.name in INTEGERS or decimal_of(data_type) is not None:
        return bool(is_integer or arrow_types.is_decimal(stored))
    if data_type.name in ("timestamp", "timestamp_ntz"):
        return bool(arrow_types.is_timestamp(stored))
    if data_type.name == "binary":
        return _is_bytes(stored, allows_text=True)
    if arrow_types.is_decimal(stored):
        return is_lossless(PrimitiveType(f"decimal({stored.precision},{stored.scale})"), data_type)
    return bool(is_integer and data_type.name in ("float", "double"))


def mismatches(
    stored: Any, data_type: DataType, path: FieldPath
) -> Iterator[tuple[FieldPath, Any, DataType]]:
    """Yield path, stored type and type of each leaf that a reader cannot convert without loss."""
    for leaf, found, expected in _leaves(stored, data_type, path):
        if not (isinstance(expected, PrimitiveType) and _fits(found, expected)):
            yield leaf, found, expected


def may_overflow(stored: Any, data_type: DataType) -> bool:
    """Return whether a column has bytes or shorts as INT32 without an annotation of their width."""
    return any(
        found == pa.int32() and expected in SMALL for _, found, expected in _leaves(stored, data_type, ())
    )


def _leaves(stored: Any, data_type: DataType, path: FieldPath) -> Iterator[tuple[FieldPath, Any, DataType]]:
    """Yield path, stored type and type of each leaf, and of a column of another structure as a whole."""
    if data_type in (VARIANT, VOID) or stored is None or arrow_types.is_null(stored):
        return
    if isinstance(data_type, StructType) and arrow_types.is_struct(stored):
        for field in data_type.fields:
            index = stored.get_field_index(field.name)
            if index >= 0:
                yield from _leaves(stored.field(index).type, field.type, (*path, field.name))
    elif isinstance(data_type, ArrayType) and is_list(stored):
        yield from _leaves(stored.value_type, data_type.element_type, (*path, "element"))
    elif isinstance(data_type, MapType) and arrow_types.is_map(stored):
        yield from _leaves(stored.key_type, data_type.key_type, (*path, "key"))
        yield from _leaves(stored.item_type, data_type.value_type, (*path, "value"))
    else:
        yield path, stored.value_type if arrow_types.is_dictionary(stored) else stored, data_type


def is_unadjusted(stored: Any, data_type: DataType) -> bool:
    """Return whether a timestamp is stored without isAdjustedToUTC, as early versions of deltalake did.

    Readers take it for UTC.
    """
    return data_type == TIMESTAMP and bool(arrow_types.is_timestamp(stored))


def _fits(stored: Any, data_type: PrimitiveType) -> bool:
    name, decimal = data_type.name, decimal_of(data_type)
    if decimal is not None:
        return _fits_decimal(stored, *decimal)
    if name in INTEGERS:
        return stored in INTEGERS[name]
    if name == "double":
        return stored in DOUBLES
    if name == "float":
        return stored in (pa.float16(), pa.float32())
    if name == "timestamp":
        return bool(arrow_types.is_timestamp(stored)) and stored.tz is not None
    if name == "timestamp_ntz":
        is_local = arrow_types.is_timestamp(stored) and stored.tz is None
        return bool(is_local or arrow_types.is_date(stored))
    if name == "date":
        return bool(arrow_types.is_date(stored))
    if name == "boolean":
        return bool(arrow_types.is_boolean(stored))
    # Writers before Parquet's logical types store text without an annotation.
    is_bytes = name in ("string", "binary") or is_geospatial(data_type)
    return is_bytes and _is_bytes(stored, allows_text=name != "binary")


def _is_bytes(stored: Any, *, allows_text: bool) -> bool:
    is_binary = is_any_binary(stored) or arrow_types.is_fixed_size_binary(stored)
    return bool(is_binary or (allows_text and is_any_text(stored)))


def _fits_decimal(stored: Any, precision: int, scale: int) -> bool:
    if stored in DIGITS:
        return DIGITS[stored] <= precision - scale
    if not arrow_types.is_decimal(stored):
        return False
    return bool(stored.scale <= scale and stored.precision - stored.scale <= precision - scale)
