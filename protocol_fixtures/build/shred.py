"""Write the cases of the kind `shred`: `python protocol_fixtures/build/shred.py`.

Unshredded files, written by pyarrow, and the columns that they are shredded into.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from case_folder import Case, new_case, write_parquet
from shredded_files import names, row, variant
from variant_bytes import encode, int8, obj

from delta_variant_conformance.parquet_footer import annotate

VALUES = "VariantShredding.md, Value Shredding"
TYPES = "VariantShredding.md, Shredded Value Types"
OBJECTS = "VariantShredding.md, Objects"
ARRAYS = "VariantShredding.md, Arrays"

Typed = dict[str, Any]


@dataclass(frozen=True)
class Shredding:
    """Rows, a shredding schema, and the columns of each row; None is SQL NULL."""

    rules: str
    about: str
    schema: Any
    rows: Sequence[tuple[Typed | None, Typed | None]]
    section: str = VALUES
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Rejected:
    """Bytes that cannot be shredded, because they are not a Variant."""

    rules: str
    about: str
    schema: Any
    metadata: bytes
    value: str
    section: str = VALUES


def pair(typed: Any = None, residue: Typed | None = None) -> Typed:
    return {"value": residue, "typed_value": typed}


def fits(kind: str, payload: Any, typed: Any = None) -> tuple[Typed, Typed]:
    """Return a value that is stored in `typed_value`, with another payload if given."""
    return {kind: payload}, pair(payload if typed is None else typed)


def stays(kind: str, payload: Any) -> tuple[Typed, Typed]:
    """Return a value that stays in `value`."""
    return {kind: payload}, pair(residue={kind: payload})


NULL = {"null": None}
MISSING = pair()
VARIANT_NULL = stays("null", None)

NUMBERS = {
    "int64_by_value": Shredding(
        "P-T1 P-T2",
        "Exact whole numbers of any type are shredded as int64; a double and a text are not",
        "int64",
        [
            fits("int8", -1),
            fits("int16", 300),
            fits("int32", 70000),
            fits("int64", 2**63 - 1),
            fits("decimal4", "5.00", 5),
            stays("decimal4", "5.50"),
            stays("decimal16", "9223372036854775808"),
            stays("double", 5.0),
            stays("float", 5.0),
            stays("string", "5"),
            stays("boolean", True),
        ],
        section=TYPES,
    ),
    "int8_within_its_range": Shredding(
        "P-T1",
        "Numbers beyond the range of the column stay in `value`",
        "int8",
        [fits("int8", 127), fits("int64", -128), stays("int16", 128), stays("int64", -129)],
        section=TYPES,
    ),
    "int16_within_its_range": Shredding(
        "P-T1",
        "Numbers beyond the range of the column stay in `value`",
        "int16",
        [fits("int8", 1), fits("int32", 32767), stays("int32", 32768)],
        section=TYPES,
    ),
    "int32_within_its_range": Shredding(
        "P-T1",
        "Numbers beyond the range of the column stay in `value`",
        "int32",
        [fits("int8", 1), fits("int64", -(2**31)), stays("int64", 2**31)],
        section=TYPES,
    ),
    "decimal_9_2_without_loss": Shredding(
        "P-T1 P-T2 P-T3",
        "Scales change only without loss, and nothing else becomes a decimal",
        "decimal(9,2)",
        [
            fits("int8", 123, "123.00"),
            fits("decimal4", "1.1", "1.10"),
            fits("decimal4", "-1.230", "-1.23"),
            fits("decimal16", "9999999.99"),
            stays("decimal4", "1.234"),
            stays("int32", 10_000_000),
            stays("decimal8", "10000000.00"),
            stays("double", 1.5),
            stays("float", 1.5),
            stays("string", "1.5"),
        ],
        section=TYPES,
    ),
    "decimal_18_0": Shredding(
        "P-T1 P-T3",
        "Integers as decimals of 18 digits",
        "decimal(18,0)",
        [fits("int8", 1, "1"), fits("int64", 10**18 - 1, "9" * 18), stays("int64", 10**18)],
        section=TYPES,
    ),
    "decimal_38_10": Shredding(
        "P-T1 P-T3 P-T7",
        "Decimals of 38 digits, also negative",
        "decimal(38,10)",
        [
            fits("decimal4", "-0.01", "-0.0100000000"),
            fits("int64", -(2**63), f"{-(2**63)}.0000000000"),
            fits("decimal16", "-" + "9" * 28 + "." + "9" * 10),
            stays("decimal16", "9" * 29),
        ],
        section=TYPES,
    ),
    "strict_int64": Shredding(
        "P-T1",
        "Numbers of another type stay in `value`, and so keep their type",
        "int64",
        [stays("int8", 1), stays("int32", 1), fits("int64", 1), stays("decimal4", "1")],
        section=TYPES,
        options={"numeric": "strict"},
    ),
    "strict_decimal_9_2": Shredding(
        "P-T1",
        "Decimals of another width or scale stay in `value`, and so keep their type",
        "decimal(9,2)",
        [
            fits("decimal4", "1.50"),
            stays("decimal4", "1.5"),
            stays("decimal8", "1.50"),
            stays("decimal16", "1.50"),
            stays("int8", 1),
        ],
        section=TYPES,
        options={"numeric": "strict"},
    ),
    "double_alone": Shredding(
        "P-T1 P-T4",
        "Only doubles are shredded as doubles, and keep the sign of zero and NaN",
        "double",
        [
            fits("double", 1.5),
            fits("double", "-0.0"),
            fits("double", "NaN"),
            fits("double", "-Infinity"),
            stays("float", 1.5),
            stays("int8", 1),
            stays("decimal4", "1.5"),
        ],
        section=TYPES,
    ),
    "float_alone": Shredding(
        "P-T1 P-T4",
        "Only floats are shredded as floats",
        "float",
        [fits("float", 1.5), fits("float", "-0.0"), stays("double", 1.5), stays("int8", 1)],
        section=TYPES,
    ),
}

UUID = "f24f9b64-81fa-49d1-b74e-8c09a6e31c56"


def alone(name: str, payloads: Sequence[Any], *others: tuple[str, Any]) -> Shredding:
    """Return values of one type, which are shredded, and others, which are not."""
    rows = [
        *(fits(name, payload) for payload in payloads),
        *(stays(*other) for other in others),
    ]
    about = f"Only values of type {name} are shredded as such"
    return Shredding("P-T1", about, name, rows, section=TYPES)


KINDS = {
    "boolean_alone": alone("boolean", [True, False], ("int8", 1), ("string", "true")),
    "string_alone": alone("string", ["", "é", "x" * 64], ("int8", 1), ("binary", "61")),
    "binary_alone": alone("binary", ["", "00ff"], ("string", "a")),
    "date_alone": alone("date", [0, -719162], ("timestamp", 0), ("int32", 0)),
    "time_alone": alone("time", [0, 86_399_999_999], ("int64", 0)),
    "timestamp_alone": alone("timestamp", [-1], ("timestamp_ntz", -1), ("int64", 1)),
    "timestamp_ntz_alone": alone("timestamp_ntz", [-1], ("timestamp", -1)),
    "timestamp_beside_nanoseconds": alone("timestamp", [-1], ("timestamp_nanos", -1000)),
    "timestamp_ntz_beside_nanoseconds": alone("timestamp_ntz", [-1], ("timestamp_ntz_nanos", 1000)),
    "timestamp_nanos_alone": alone("timestamp_nanos", [-1], ("timestamp", 1), ("timestamp_ntz_nanos", 1)),
    "timestamp_ntz_nanos_alone": alone("timestamp_ntz_nanos", [-1], ("timestamp_ntz", 1), ("date", 1)),
    "uuid_alone": alone("uuid", [UUID], ("string", UUID)),
}

A_INT64 = {"object": {"a": "int64"}}

LAYOUT_NAMES = ("", "a.b", "element", "key", "list", "metadata", "typed_value", "value")

NESTED = {
    "objects": Shredding(
        "W1 W2 W3 W5 W6 W7 W8 W9",
        "An object is in `typed_value`, and in `value` are only its other fields; all else is in `value`",
        A_INT64,
        [
            (obj(a=int8(1)), pair({"a": pair(1)})),
            (obj(a=int8(1), b=int8(2)), pair({"a": pair(1)}, obj(b=int8(2)))),
            (obj(b=int8(2)), pair({"a": MISSING}, obj(b=int8(2)))),
            (obj(), pair({"a": MISSING})),
            (obj(a=NULL), pair({"a": pair(residue=NULL)})),
            (obj(a={"string": "x"}), pair({"a": pair(residue={"string": "x"})})),
            stays("int8", 1),
            stays("array", [int8(1)]),
            (None, None),
        ],
        section=OBJECTS,
    ),
    "objects_in_objects": Shredding(
        "W1 W7 W8 P-S7",
        "Fields that are not shredded stay in `value` at the level of their object",
        {"object": {"a": A_INT64}},
        [
            (
                obj(a=obj(a=int8(1), b=int8(2)), c=obj(a=int8(3))),
                pair({"a": pair({"a": pair(1)}, obj(b=int8(2)))}, obj(c=obj(a=int8(3)))),
            ),
            (obj(a=int8(1)), pair({"a": pair(residue=int8(1))})),
            (obj(a=obj()), pair({"a": pair({"a": MISSING})})),
        ],
        section=OBJECTS,
    ),
    "arrays": Shredding(
        "W4 W10 W6",
        "An array is in `typed_value` whole; all else is in `value`",
        {"array": "int64"},
        [
            (
                {"array": [int8(1), {"string": "x"}, NULL]},
                pair([pair(1), pair(residue={"string": "x"}), pair(residue=NULL)]),
            ),
            ({"array": []}, pair([])),
            stays("int8", 1),
            stays("object", {"a": int8(1)}),
            (None, None),
        ],
        section=ARRAYS,
    ),
    "arrays_of_objects": Shredding(
        "W4 W5 W7 W10",
        "Elements are shredded as rows are",
        {"array": A_INT64},
        [
            (
                {"array": [obj(a=int8(1), b=int8(2)), obj(), int8(3)]},
                pair([pair({"a": pair(1)}, obj(b=int8(2))), pair({"a": MISSING}), pair(residue=int8(3))]),
            )
        ],
        section=ARRAYS,
    ),
    "arrays_of_arrays": Shredding(
        "W4 W10",
        "Arrays within arrays",
        {"array": {"array": "int64"}},
        [({"array": [{"array": [int8(1)]}, int8(2)]}, pair([pair([pair(1)]), pair(residue=int8(2))]))],
        section=ARRAYS,
    ),
    "elements_without_a_type": Shredding(
        "W4 W10 P-S5",
        "Elements that have only `value`",
        {"array": None},
        [({"array": [int8(1), NULL]}, pair([pair(residue=int8(1)), pair(residue=NULL)]))],
        section=ARRAYS,
    ),
    "a_field_without_a_type": Shredding(
        "W5 W6 P-S5",
        "A field that has only `value` is shredded all the same",
        {"object": {"a": None}},
        [
            (obj(a=obj(b=int8(1))), pair({"a": pair(residue=obj(b=int8(1)))})),
            (obj(b=int8(1)), pair({"a": MISSING}, obj(b=int8(1)))),
        ],
        section=OBJECTS,
    ),
    "names_of_the_layout": Shredding(
        "P-S8 W13",
        "Fields of any name are shredded",
        {"object": dict.fromkeys(LAYOUT_NAMES, "int64")},
        [({"object": dict.fromkeys(LAYOUT_NAMES, int8(1))}, pair(dict.fromkeys(LAYOUT_NAMES, pair(1))))],
        section=OBJECTS,
    ),
    "names_that_differ_in_case": Shredding(
        "E-O6 P-S10",
        "a and A are two fields",
        A_INT64,
        [(obj(A=int8(2), a=int8(1)), pair({"a": pair(1)}, obj(A=int8(2))))],
        section=OBJECTS,
    ),
    "name_that_differs_in_case_from_the_shredded_one": Shredding(
        "E-O6 P-S10",
        "The shredded field Foo does not take foo, which stays in `value`",
        {"object": {"Foo": "int64"}},
        [
            (obj(foo=int8(2)), pair({"Foo": MISSING}, obj(foo=int8(2)))),
            (obj(Foo=int8(1), foo=int8(2)), pair({"Foo": pair(1)}, obj(foo=int8(2)))),
        ],
        section=OBJECTS,
    ),
    "name_that_begins_like_a_shredded_one": Shredding(
        "E-O6 W7",
        "A shredded field does not take those whose names begin with its name, or are the beginning of it",
        {"object": {"path": "int64"}},
        [
            (
                obj(path=int8(1), pathpath=int8(2), pat=int8(3)),
                pair({"path": pair(1)}, obj(pathpath=int8(2), pat=int8(3))),
            )
        ],
        section=OBJECTS,
    ),
    "rest_of_an_object_in_part": Shredding(
        "W1 W7",
        "The fields of an object that are not shredded stay in `value`, each with its value",
        {"object": {"id": "int64"}},
        [
            (
                obj(
                    id=int8(number),
                    name={"string": name},
                    city={"string": "Oslo"},
                    tags=obj(x={"null": None}),
                ),
                pair(
                    {"id": pair(number)},
                    obj(name={"string": name}, city={"string": "Oslo"}, tags=obj(x={"null": None})),
                ),
            )
            for number, name in ((1, "Ada"), (2, ""))
        ],
        section=OBJECTS,
    ),
    "names_with_an_underscore": Shredding(
        "P-X1 P-X3 P-X5",
        "A field called _id is shredded like any other, and no member is added",
        {"object": {"_id": "int64"}},
        [({"object": {"_id": int8(1), "_x": int8(2)}}, pair({"_id": pair(1)}, {"object": {"_x": int8(2)}}))],
        section=OBJECTS,
    ),
    "nothing_shredded": Shredding(
        "P-S3",
        "Without shredding schema all values are in `value`",
        None,
        [stays("int8", 1), stays("object", {"a": int8(1)}), (None, None)],
        section="VariantEncoding.md, Variant in Parquet",
    ),
}

# Variant null as a row is in separate files, because other files test something else.
NULLS = {
    f"variant_null_beside_{name}": Shredding(
        "P-T5 W6",
        "Variant null is in `value` and is not SQL NULL",
        schema,
        [fitting, VARIANT_NULL, (None, None)],
    )
    for name, schema, fitting in (
        ("a_number", "int64", fits("int64", 1)),
        ("a_text", "string", fits("string", "x")),
        ("an_object", A_INT64, (obj(a=int8(1)), pair({"a": pair(1)}))),
        ("an_array", {"array": "int64"}, ({"array": [int8(1)]}, pair([pair(1)]))),
    )
}
NULLS["variant_null_unshredded"] = Shredding(
    "P-S3 W6",
    "Variant null is in `value` of an unshredded column and is not SQL NULL",
    None,
    [stays("int8", 1), VARIANT_NULL, (None, None)],
    section="VariantEncoding.md, Variant in Parquet",
)

A = names("a")
REJECTED = {
    "a_field_twice": Rejected(
        "W7 E-O5", "Two fields of one name are not shredded", A_INT64, A, "02 02 00 00 00 02 04 0c01 0c02"
    ),
    "a_field_twice_in_the_rest": Rejected(
        "W7 E-O5",
        "Two fields of one name that are not shredded are not copied",
        {"object": {"b": "int64"}},
        A,
        "02 02 00 00 00 02 04 0c01 0c02",
    ),
    "a_name_id_without_a_name": Rejected(
        "W8 W9 E-O7", "A field whose name the metadata lacks is not copied", A_INT64, A, "02 01 01 00 02 0c01"
    ),
    "a_text_that_is_not_utf8": Rejected(
        "P-T6", "A string that is not UTF-8 is not shredded", "string", A, "05 ff"
    ),
    "a_text_in_the_rest_that_is_not_utf8": Rejected(
        "P-T6 W11", "A string that is not UTF-8 is not copied", "int64", A, "03 01 00 02 05ff"
    ),
    "an_array_cut_short": Rejected(
        "W4 W11",
        "What is shredded is checked to its last byte",
        {"array": "int64"},
        A,
        "03 02 00 02 04 0c01 0c",
    ),
}


def main() -> None:
    shreddings = {**NUMBERS, **KINDS, **NESTED, **NULLS}
    for name, case in shreddings.items():
        rows = [None if typed is None else _row(typed) for typed, _ in case.rows]
        _write(name, case, "keeps", rows, {"columns": [column for _, column in case.rows]}, case.options)
    for name, rejected in REJECTED.items():
        rows = [row(residue=bytes.fromhex(rejected.value), of=rejected.metadata)]
        _write(name, rejected, "breaks", rows, {"error": "MalformedVariantError"})
    print(f"{len(shreddings) + len(REJECTED)} cases of shred")


def _row(typed: Typed) -> dict[str, Any]:
    metadata, value = encode(typed)
    return row(residue=value, of=metadata)


def _write(
    name: str,
    case: Shredding | Rejected,
    verdict: str,
    rows: Sequence[dict[str, Any] | None],
    expect: Case,
    options: Case | None = None,
) -> None:
    given = {"file": "v.parquet", "schema": case.schema}
    folder = new_case(
        "shred", name, case.rules, verdict, case.section, case.about, given, expect, options=options
    )
    column: Any = pa.array(list(rows), variant(required=("metadata", "value")))
    table = pa.table({"id": pa.array(range(1, len(column) + 1), pa.int32()), "v": column})
    write_parquet(folder / "v.parquet", table)
    annotate(folder / "v.parquet", "v")


if __name__ == "__main__":
    main()
