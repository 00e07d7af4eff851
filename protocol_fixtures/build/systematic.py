"""Write cases for each type, boundary value and layout: `python protocol_fixtures/build/systematic.py DIR`.

They are the product of the tables below, which is too large for the repository. Values are encoded and
shredded by the specifications, without `delta_variant`. The expected answer is the value that was encoded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from case_folder import Case, new_case, write_parquet
from shredding import UNSHREDDED, group_type, shredded, unshredded
from systematic_tables import write_tables
from variant_bytes import encode

from delta_variant_conformance.parquet_footer import Element, annotate, logical_type, rewrite_schema

Typed = dict[str, Any]
Schema = Any
"""A shredding schema of a case."""


@dataclass(frozen=True)
class Type:
    """A type of the encoding, the column that it is shredded to, and the payloads to test by name."""

    kind: str
    schema: str
    arrow: pa.DataType
    payloads: Mapping[str, Any]


def integers(bits: int) -> dict[str, int]:
    largest = 2 ** (bits - 1) - 1
    return {"smallest": -largest - 1, "minus_one": -1, "zero": 0, "one": 1, "largest": largest}


def floats(largest: float, smallest: float) -> dict[str, Any]:
    specials = {"nan": "NaN", "infinity": "Infinity", "minus_infinity": "-Infinity", "minus_zero": "-0.0"}
    return {**specials, "zero": 0.0, "half": 0.5, "largest": largest, "subnormal": smallest}


def moments(per_second: int, first: int, last: int) -> dict[str, int]:
    """Return times in units per second, between two times in seconds."""
    ends = {"first": first * per_second, "last": (last + 1) * per_second - 1}
    return {**ends, "before_epoch": -1, "epoch": 0, "after_epoch": 1}


# The first and the last second of the years 1 and 9999, and of the years that nanoseconds can express.
YEARS, NANO_YEARS = (-62_135_596_800, 253_402_300_799), (-9_223_372_036, 9_223_372_035)

TYPES = (
    Type("boolean", "boolean", pa.bool_(), {"true": True, "false": False}),
    Type("int8", "int8", pa.int8(), integers(8)),
    Type("int16", "int16", pa.int16(), integers(16)),
    Type("int32", "int32", pa.int32(), integers(32)),
    Type("int64", "int64", pa.int64(), integers(64)),
    Type("float", "float", pa.float32(), floats(3.4028234663852886e38, 1.401298464324817e-45)),
    Type("double", "double", pa.float64(), floats(1.7976931348623157e308, 5e-324)),
    Type(
        "decimal4",
        "decimal(9,2)",
        pa.decimal128(9, 2),
        {"zero": "0.00", "cent": "0.01", "largest": "9999999.99", "smallest": "-9999999.99"},
    ),
    Type(
        "decimal8",
        "decimal(18,6)",
        pa.decimal128(18, 6),
        {"zero": "0.000000", "largest": "999999999999.999999", "smallest": "-999999999999.999999"},
    ),
    Type(
        "decimal16",
        "decimal(38,10)",
        pa.decimal128(38, 10),
        {"zero": "0.0000000000", "largest": f"{'9' * 28}.{'9' * 10}", "smallest": f"-{'9' * 28}.{'9' * 10}"},
    ),
    Type("date", "date", pa.date32(), {"first": -719_162, "before_epoch": -1, "epoch": 0, "last": 2_932_896}),
    Type("time", "time", pa.time64("us"), {"midnight": 0, "noon": 43_200_000_000, "last": 86_399_999_999}),
    Type("timestamp", "timestamp", pa.timestamp("us", "UTC"), moments(10**6, *YEARS)),
    Type("timestamp_ntz", "timestamp_ntz", pa.timestamp("us"), moments(10**6, *YEARS)),
    Type("timestamp_nanos", "timestamp_nanos", pa.timestamp("ns", "UTC"), moments(10**9, *NANO_YEARS)),
    Type("timestamp_ntz_nanos", "timestamp_ntz_nanos", pa.timestamp("ns"), moments(10**9, *NANO_YEARS)),
    Type("binary", "binary", pa.binary(), {"empty": "", "zero": "00", "of_70_bytes": "ff" * 70}),
    Type(
        "string",
        "string",
        pa.string(),
        {
            "empty": "",
            "ascii": "a",
            "nul": "\0",
            "quotes": "\"\\/'",
            "of_63_bytes": "x" * 63,
            "of_64_bytes": "x" * 64,
            "of_two_planes": "\uffff\U0010ffff",
        },
    ),
    Type(
        "uuid",
        "uuid",
        pa.binary(16),
        {"zero": f"{'0' * 8}-0000-0000-0000-{'0' * 12}", "largest": f"{'f' * 8}-ffff-ffff-ffff-{'f' * 12}"},
    ),
)


def other_type(kind: str) -> Type:
    """Return a type that values of a type are never shredded to."""
    name = "boolean" if kind == "string" else "string"
    return next(each for each in TYPES if each.kind == name)


def struct(**fields: pa.DataType) -> pa.DataType:
    return pa.struct(list(fields.items()))


@dataclass(frozen=True)
class Layout:
    """How a value is nested, an object or array of that kind without it, and what it is shredded to.

    `schema` and `arrow` return the shredding of a type and of one that the value does not have. Without
    them the column is not shredded.
    """

    nest: Callable[[Typed], Typed]
    without: Typed | None = None
    schema: Callable[[str, str], Schema] | None = None
    arrow: Callable[[pa.DataType, pa.DataType], pa.DataType] | None = None


def in_object(value: Typed) -> Typed:
    return {"object": {"f": value}}


def in_array(value: Typed) -> Typed:
    return {"array": [value]}


def in_object_of_object(value: Typed) -> Typed:
    return {"object": {"o": in_object(value)}}


EMPTY_OBJECT: Typed = {"object": {}}
EMPTY_ARRAY: Typed = {"array": []}
INT64 = pa.int64()

LAYOUTS = {
    "unshredded": Layout(lambda value: value),
    "in_typed_value": Layout(lambda value: value, None, lambda own, other: own, lambda own, other: own),
    "beside_another_type": Layout(
        lambda value: value, None, lambda own, other: other, lambda own, other: other
    ),
    "in_an_unshredded_object": Layout(in_object, EMPTY_OBJECT),
    "in_a_field": Layout(
        in_object,
        EMPTY_OBJECT,
        lambda own, other: {"object": {"f": own}},
        lambda own, other: struct(f=own),
    ),
    "in_a_field_of_another_type": Layout(
        in_object,
        EMPTY_OBJECT,
        lambda own, other: {"object": {"f": other}},
        lambda own, other: struct(f=other),
    ),
    "in_a_field_that_is_not_shredded": Layout(
        in_object,
        EMPTY_OBJECT,
        lambda own, other: {"object": {"g": "int64"}},
        lambda own, other: struct(g=INT64),
    ),
    "in_a_field_beside_a_missing_one": Layout(
        in_object,
        EMPTY_OBJECT,
        lambda own, other: {"object": {"f": own, "g": "int64"}},
        lambda own, other: struct(f=own, g=INT64),
    ),
    "in_an_unshredded_array": Layout(in_array, EMPTY_ARRAY),
    "in_an_element": Layout(
        in_array, EMPTY_ARRAY, lambda own, other: {"array": own}, lambda own, other: pa.list_(own)
    ),
    "in_an_element_of_another_type": Layout(
        in_array, EMPTY_ARRAY, lambda own, other: {"array": other}, lambda own, other: pa.list_(other)
    ),
    "in_a_field_of_a_field": Layout(
        in_object_of_object,
        in_object({"int8": 1}),
        lambda own, other: {"object": {"o": {"object": {"f": own}}}},
        lambda own, other: struct(o=struct(f=own)),
    ),
    "in_the_rest_of_a_field": Layout(
        in_object_of_object,
        in_object({"int8": 1}),
        lambda own, other: {"object": {"o": {"object": {"g": "int64"}}}},
        lambda own, other: struct(o=struct(g=INT64)),
    ),
    "in_a_field_of_an_element": Layout(
        lambda value: in_array(in_object(value)),
        in_array(EMPTY_OBJECT),
        lambda own, other: {"array": {"object": {"f": own}}},
        lambda own, other: pa.list_(struct(f=own)),
    ),
    "in_an_element_of_a_field": Layout(
        lambda value: in_object(in_array(value)),
        in_object(EMPTY_ARRAY),
        lambda own, other: {"object": {"f": {"array": own}}},
        lambda own, other: struct(f=pa.list_(own)),
    ),
}
"""A name says where the value is."""

# The layouts of the kinds `decode` and `shred`, which have one value in a case.
DECODED = ("unshredded", "in_an_unshredded_object", "in_an_unshredded_array")
SHREDDED = (
    "in_typed_value",
    "beside_another_type",
    "in_a_field",
    "in_a_field_of_another_type",
    "in_an_element",
)

VALUES = "VariantShredding.md, Value Shredding"
ENCODING = "VariantEncoding.md, Encoding types"
NULL: Typed = {"null": None}


@dataclass(frozen=True)
class Written:
    """A case to write, and the rows of its file with the type that they are shredded to."""

    kind: str
    name: str
    rule: str
    section: str
    about: str
    given: Case
    expect: Case
    rows: Sequence[Typed | None] = ()
    arrow: pa.DataType | None = None


def write_all(cases: Path) -> int:
    """Write all cases, and return their number."""
    written = [case for each in TYPES for case in cases_of_type(each)]
    for case in written:
        given, expect = case.given, case.expect
        folder = new_case(
            case.kind, case.name, case.rule, "keeps", case.section, case.about, given, expect, cases=cases
        )
        if case.rows:
            write_file(folder / "v.parquet", case.rows, case.arrow)
    return len(written) + write_tables(cases)


def cases_of_type(each: Type) -> Iterator[Written]:
    other = other_type(each.kind)
    for place, layout in LAYOUTS.items():
        values = {
            f"{each.kind}_{name}_{place}": layout.nest({each.kind: payload})
            for name, payload in each.payloads.items()
        }
        arrow = None if layout.arrow is None else layout.arrow(each.arrow, other.arrow)
        another = layout.nest({other.kind: next(iter(other.payloads.values()))})
        without = [] if layout.without is None else [layout.without]
        for case, value in values.items():
            yield read_case(case, [value], arrow)
            yield read_case(f"{case}_among_others", [value, None, another, *without, value], arrow)
            if place in DECODED:
                yield decode_case(case, value)
            if place in SHREDDED and layout.schema is not None:
                schema = layout.schema(each.schema, other.schema)
                yield shred_case(case, schema, value)
        # One case, because some engines have one null.
        yield read_case(f"{each.kind}_{place}_beside_variant_null", [*values.values(), NULL], arrow)


def read_case(name: str, rows: Sequence[Typed | None], arrow: pa.DataType | None) -> Written:
    about = "Each row is the value that was written, wherever it is stored"
    expect = {"rows": list(rows)}
    return Written("unshred", name, "P-S9", VALUES, about, {"file": "v.parquet"}, expect, rows, arrow)


def decode_case(name: str, value: Typed) -> Written:
    metadata, data = encode(value)
    given = {"metadata": metadata.hex(), "value": data.hex()}
    about = "The value is printed as JSON"
    return Written("decode", name, "E-V3", ENCODING, about, given, {"rows": [value]})


def shred_case(name: str, schema: Schema, value: Typed) -> Written:
    about = "A value is shredded if `typed_value` has its type, and stays in `value` otherwise"
    given, expect = {"file": "v.parquet", "schema": schema}, {"columns": [columns(value, schema)]}
    return Written("shred", name, "W3", VALUES, about, given, expect, [value])


def columns(value: Typed | None, schema: Schema) -> Case:
    """Return the columns of a value, as cases have them."""
    if value is None:
        return {"value": None, "typed_value": None}
    [(kind, payload)] = value.items()
    if kind == "object" and isinstance(schema, dict) and "object" in schema:
        fields = {name: columns(payload.get(name), part) for name, part in schema["object"].items()}
        rest = {name: field for name, field in payload.items() if name not in fields}
        return {"value": {"object": rest} if rest else None, "typed_value": fields}
    if kind == "array" and isinstance(schema, dict) and "array" in schema:
        return {"value": None, "typed_value": [columns(element, schema["array"]) for element in payload]}
    if any(each.kind == kind and each.schema == schema for each in TYPES):
        return {"value": None, "typed_value": payload}
    return {"value": value, "typed_value": None}


def write_file(path: Path, rows: Sequence[Typed | None], arrow: pa.DataType | None) -> None:
    """Write the file of a case: rows of an annotated Variant column, shredded to a type or not."""
    if arrow is None:
        column = pa.array([unshredded(row) for row in rows], UNSHREDDED)
    else:
        column = pa.array([shredded(row, arrow) for row in rows], group_type(arrow))
    ids = pa.array(range(1, len(rows) + 1), pa.int32())
    write_parquet(path, pa.table({"id": ids, "v": column}), store_decimal_as_integer=True)
    if arrow is not None and "fixed_size_binary" in str(arrow):
        rewrite_schema(path, annotate_uuids)
    annotate(path, "v")


def annotate_uuids(element: Element) -> None:
    """Annotate each leaf of 16 bytes as a UUID."""
    if element.fields.get(LENGTH, (0, 0))[1] == 16:
        element.set_logical(logical_type("UUID"))
    for child in element.children:
        annotate_uuids(child)


# The field `type_length` of SchemaElement in parquet.thrift.
LENGTH = 2

if __name__ == "__main__":
    print(f"{write_all(Path(sys.argv[1]) / 'cases'):,} cases")
