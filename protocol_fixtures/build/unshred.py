"""Write the cases of the kind `unshred`: `python protocol_fixtures/build/unshred.py`.

The columns were written manually from VariantShredding.md and are stored with pyarrow.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
from shredded_files import (
    NULL,
    ONE,
    TWO,
    FileCase,
    array_of,
    group,
    names,
    object_of,
    pair,
    row,
    v,
    variant,
    write_case,
)
from variant_bytes import arr, int8, int64, obj

from delta_variant_conformance.parquet_footer import (
    CONVERTED,
    I32,
    PRECISION,
    SCALE,
    STRUCT,
    TRUE,
    Element,
    logical_type,
)

INT64 = pa.int64()
CONFLICT = "ConflictingValueError"
MALFORMED = "MalformedVariantError"
SHREDDING_ERROR = "ShreddingError"
TYPED = {"on_conflict": "typed"}

OBJECTS = "VariantShredding.md, Objects"
ARRAYS = "VariantShredding.md, Arrays"
TYPES = "VariantShredding.md, Shredded Value Types"
NO_VALUE = "VariantShredding.md, Value Shredding: optional; LogicalTypes.md, VARIANT: a field of the group"
MISSING = "VariantShredding.md, Value Shredding: a missing value where one is required"

A, A_B = names("a"), names("a", "b")
OF_A = object_of(a=INT64)
NEITHER = pair()


def breaks(*arguments: Any, **options: Any) -> FileCase:
    return FileCase(*arguments, verdict="breaks", **options)


# Which rows are missing, null, typed and not (R1 to R4, R13, R18).

ROWS = {
    "sql_null_is_not_variant_null": FileCase(
        "R1 R2 R11 R12 W3 W6",
        "A null group is SQL NULL, and `00` in `value` is Variant null",
        variant(INT64),
        [None, row(residue=NULL), row(1)],
        [None, {"null": None}, int64(1)],
    ),
    "nothing_at_the_root": breaks(
        "R2",
        "A row that is neither null nor has a value is Variant null",
        variant(INT64),
        [row(), row(1)],
        [{"null": None}, int64(1)],
        section=MISSING,
    ),
    "nothing_in_an_array": breaks(
        "R3 W10",
        "An element without any value is Variant null",
        variant(array_of(INT64)),
        [row([NEITHER, pair(1)])],
        [arr({"null": None}, int64(1))],
        section=MISSING,
    ),
    "missing_null_and_set_fields": FileCase(
        "R4 W5 W6",
        "A field without any value is missing, which is another thing than null",
        variant(OF_A),
        [row({"a": NEITHER}, of=A), row({"a": pair(residue=NULL)}, of=A), row({"a": pair(1)}, of=A)],
        [obj(), obj(a={"null": None}), obj(a=int64(1))],
        section=OBJECTS,
    ),
    "fitting_scalar_in_value": FileCase(
        "R13 P-T1",
        "A value of the column's type may be in `value` all the same",
        variant(INT64),
        [row(residue=v("int64", 7)), row(8)],
        [int64(7), int64(8)],
    ),
    "object_of_missing_fields": FileCase(
        "R18 W2 W5",
        "An object whose fields are all missing is an empty one",
        variant(OF_A),
        [row({"a": NEITHER}, of=A)],
        [obj()],
        section=OBJECTS,
    ),
    "object_beside_scalars_and_arrays": FileCase(
        "R5 R6 W3 W2",
        "A value that is not an object is in `value`, and the object's column is null",
        variant(OF_A),
        [row(residue=ONE, of=A), row(residue=v("array", [{"int8": 1}]), of=A), row({"a": pair(1)}, of=A)],
        [int8(1), arr(int8(1)), obj(a=int64(1))],
        section=OBJECTS,
    ),
    "array_beside_scalars_and_objects": FileCase(
        "R3 R5 R9 W4 W10 W3",
        "Values other than arrays are in `value`, and elements of another type in theirs",
        variant(array_of(INT64)),
        [
            row([], of=A),
            row([pair(1), pair(residue=v("string", "x")), pair(residue=NULL)], of=A),
            row(residue=v("object", {"a": {"int8": 1}}, "a"), of=A),
        ],
        [arr(), arr(int64(1), {"string": "x"}, {"null": None}), obj(a=int8(1))],
        section=ARRAYS,
    ),
    "partially_shredded_objects": FileCase(
        "R7 R8 R10 R17 R19 W1 W7 W8 W9",
        "Fields of both columns make one object, by the names of one metadata",
        variant(OF_A),
        [
            row({"a": pair(1)}, v("object", {"b": {"int8": 2}}, "a", "b"), of=A_B),
            row({"a": NEITHER}, v("object", {"b": {"int8": 2}}, "a", "b"), of=A_B),
            row({"a": pair(residue=ONE)}, None, of=A_B),
        ],
        [obj(a=int64(1), b=int8(2)), obj(b=int8(2)), obj(a=int8(1))],
        section=OBJECTS,
    ),
    "arrays_of_objects_of_arrays": FileCase(
        "R23 P-S6 P-S7",
        "Layouts nest to any depth",
        variant(array_of(object_of(a=array_of(object_of(b=INT64))))),
        [
            row(
                [pair({"a": pair([pair({"b": pair(1)}), pair({"b": NEITHER})])}), pair({"a": NEITHER})],
                of=A_B,
            )
        ],
        [arr(obj(a=arr(obj(b=int64(1)), obj())), obj())],
        section=ARRAYS,
    ),
    "objects_of_objects": FileCase(
        "R14 R23 P-S7 W8",
        "Objects within objects, each with fields in both columns",
        variant(object_of(a=object_of(b=INT64))),
        [
            row(
                {"a": pair({"b": pair(1)}, v("object", {"c": {"int8": 2}}, "a", "b", "c"))},
                v("object", {"c": {"int8": 3}}, "a", "b", "c"),
                of=names("a", "b", "c"),
            )
        ],
        [obj(a=obj(b=int64(1), c=int8(2)), c=int8(3))],
        section=OBJECTS,
    ),
    "reserved_bits_in_value": FileCase(
        "E-M3 E-O1 E-A1",
        "Readers ignore the reserved bits of metadata, and of objects and arrays in `value`",
        variant(OF_A),
        # The header of metadata has bit 5, that of the object bit 7, that of the array bits 5 to 7.
        [
            row(
                {"a": pair(1)},
                bytes.fromhex("82 01 01 0006 e3 01 00 02 0c05"),
                of=bytes.fromhex("21 02 00 01 02 6162"),
            )
        ],
        [{"object": {"a": int64(1), "b": {"array": [int8(5)]}}}],
        section="VariantEncoding.md, Value encoding",
    ),
    "fields_sorted_by_utf8": FileCase(
        "R19 E-O3",
        "A shredded field and one that is not come in the order of their UTF-8 bytes",
        variant(pa.struct([pa.field("😀", group(INT64), nullable=False)])),
        [row({"😀": pair(2)}, v("object", {"ﬁ": {"int8": 1}}, "ﬁ", "😀"), of=names("ﬁ", "😀"))],
        [{"object": {"ﬁ": int8(1), "😀": int64(2)}}],
        section=OBJECTS,
    ),
    "rest_in_utf16_order": breaks(
        "R19 E-O3",
        "The fields in `value` are in UTF-16 order, and none is lost",
        variant(OF_A),
        [
            row(
                {"a": pair(1)},
                bytes.fromhex("0202 0201 000204 0c02 0c03"),
                of=names("a", "ﬁ", "😀"),
            )
        ],
        [{"object": {"a": int64(1), "😀": int8(2), "ﬁ": int8(3)}}],
        MALFORMED,
        section=OBJECTS,
    ),
    "whole_objects_keep_their_bytes": FileCase(
        "R20 W8",
        "Rows that are not shredded are read by their own metadata",
        variant(INT64),
        [
            row(residue=v("object", {"a": {"int8": 1}}, "x", "a"), of=names("x", "a")),
            row(residue=v("object", {"a": {"int8": 2}}, "a"), of=A),
        ],
        [obj(a=int8(1)), obj(a=int8(2))],
    ),
}

# Variant null as a row is in separate files (W6), because other files test something else.

NULLS = {
    f"variant_null_beside_{name}": FileCase(
        "P-T5 W6",
        f"Variant null is a value of a row next to {name.replace('_', ' ')} in `typed_value`",
        variant(arrow_type),
        [row(cell, of=A), row(residue=NULL, of=A)],
        [typed_row, {"null": None}],
    )
    for name, arrow_type, cell, typed_row in (
        ("a_number", INT64, 1, int64(1)),
        ("a_text", pa.string(), "x", {"string": "x"}),
        ("an_object", OF_A, {"a": pair(1)}, obj(a=int64(1))),
        ("an_array", array_of(INT64), [pair(1)], arr(int64(1))),
    )
}

# What writers must not write (R5 to R12, R14, R17).

BROKEN = {
    "scalar_in_both": breaks(
        "R5 W1 W3",
        "A scalar in both columns: rejected, or read from `typed_value`",
        variant(INT64),
        [row(1), row(1, TWO)],
        [int64(1), int64(1)],
        CONFLICT,
    ),
    "scalar_in_both_typed": breaks(
        "R5",
        "A scalar in both columns is read from `typed_value`",
        variant(INT64),
        [row(1), row(1, TWO)],
        [int64(1), int64(1)],
        options=TYPED,
    ),
    "array_in_both": breaks(
        "R5 W4",
        "An array in both columns: rejected, or read from `typed_value`",
        variant(array_of(INT64)),
        [row([pair(1)], v("array", [{"int8": 2}]))],
        [arr(int64(1))],
        CONFLICT,
        section=ARRAYS,
    ),
    "array_in_both_typed": breaks(
        "R5",
        "An array in both columns is read from `typed_value`",
        variant(array_of(INT64)),
        [row([pair(1)], v("array", [{"int8": 2}]))],
        [arr(int64(1))],
        options=TYPED,
        section=ARRAYS,
    ),
    "element_in_both": breaks(
        "R5 W10",
        "An element in both columns: rejected, or read from `typed_value`",
        variant(array_of(INT64)),
        [row([pair(1), pair(1, TWO)])],
        [arr(int64(1), int64(1))],
        CONFLICT,
        section=ARRAYS,
    ),
    "field_in_both_of_its_columns": breaks(
        "R5 W1",
        "A field in both of its columns: rejected, or read from `typed_value`",
        variant(OF_A),
        [row({"a": pair(1, TWO)}, of=A)],
        [obj(a=int64(1))],
        CONFLICT,
        section=OBJECTS,
    ),
    "object_beside_a_scalar": breaks(
        "R6 W1",
        "An object with a scalar in `value`: rejected, or the object of its fields",
        variant(OF_A),
        [row({"a": pair(1)}, ONE, of=A)],
        [obj(a=int64(1))],
        CONFLICT,
        section=OBJECTS,
    ),
    "object_beside_a_scalar_typed": breaks(
        "R6",
        "An object with a scalar in `value` is the object of its fields",
        variant(OF_A),
        [row({"a": pair(1)}, ONE, of=A)],
        [obj(a=int64(1))],
        options=TYPED,
        section=OBJECTS,
    ),
    "object_beside_variant_null": breaks(
        "R6 W1",
        "An object with Variant null in `value`: rejected, or the object of its fields",
        variant(OF_A),
        [row({"a": NEITHER}, NULL, of=A)],
        [obj()],
        CONFLICT,
        section=OBJECTS,
    ),
    "shredded_field_in_value_too": breaks(
        "R7 W7",
        "A shredded field that is in `value`, too: rejected, or the shredded one",
        variant(OF_A),
        [row({"a": pair(1)}, v("object", {"a": {"int8": 2}}, "a"), of=A)],
        [obj(a=int64(1))],
        CONFLICT,
        section=OBJECTS,
    ),
    "shredded_field_in_value_too_typed": breaks(
        "R7",
        "A shredded field that is in `value`, too, is read from its own columns",
        variant(OF_A),
        [row({"a": pair(1)}, v("object", {"a": {"int8": 2}}, "a"), of=A)],
        [obj(a=int64(1))],
        options=TYPED,
        section=OBJECTS,
    ),
    "shredded_field_in_value_alone_typed": breaks(
        "R7",
        "A shredded field that is missing in its own columns is missing, whatever `value` has",
        variant(OF_A),
        [row({"a": NEITHER}, v("object", {"a": {"int8": 2}, "b": {"int8": 3}}, "a", "b"), of=A_B)],
        [obj(b=int8(3))],
        options=TYPED,
        section=OBJECTS,
    ),
    "empty_object_in_value": breaks(
        "R8 W2 W7",
        "An empty object in `value` of a column that shreds objects: read, or rejected",
        variant(OF_A),
        [row(residue=v("object", {}), of=A)],
        [obj()],
        CONFLICT,
        section=OBJECTS,
    ),
    "object_in_value": breaks(
        "R8 W2",
        "An object in `value` of a column that shreds objects: read, or rejected",
        variant(OF_A),
        [
            row(residue=v("object", {"a": {"int8": 1}}, "a"), of=A),
            row(residue=v("object", {"b": {"int8": 1}}, "a", "b"), of=A_B),
        ],
        [obj(a=int8(1)), obj(b=int8(1))],
        CONFLICT,
        section=OBJECTS,
    ),
    "empty_object_beside_an_object": breaks(
        "W7",
        "An empty object in `value` adds nothing to a shredded object",
        variant(OF_A),
        [row({"a": pair(1)}, v("object", {}), of=A)],
        [obj(a=int64(1))],
        section=OBJECTS,
    ),
    "array_in_value": breaks(
        "R9 W4",
        "An array in `value` of a column that shreds arrays is read",
        variant(array_of(INT64)),
        [row(residue=v("array", [{"int8": 1}]))],
        [arr(int8(1))],
        section=ARRAYS,
    ),
    "shredded_name_not_in_metadata": breaks(
        "R10 W9",
        "A shredded field whose name the metadata lacks: read with it, or rejected",
        variant(OF_A),
        [
            row({"a": pair(1)}, v("object", {"b": {"int8": 2}}, "b"), of=names("b")),
            row({"a": pair(2)}, of=names()),
        ],
        [obj(a=int64(1), b=int8(2)), obj(a=int64(2))],
        MALFORMED,
        section=OBJECTS,
    ),
    "metadata_null": breaks(
        "R11 P-S1",
        "A row with a value and without metadata is rejected",
        variant(INT64, required=()),
        [row(1), row(1, of=None)],
        error=MALFORMED,
    ),
    "value_of_no_bytes": breaks(
        "R12", "An empty `value` is rejected", variant(INT64), [row(residue=b"")], error=MALFORMED
    ),
    "value_of_no_bytes_unshredded": breaks(
        "R12 P-S3",
        "An empty `value` of an unshredded column is rejected",
        variant(),
        [row(residue=b"")],
        error=MALFORMED,
    ),
    "field_group_null": breaks(
        "R14 P-S7",
        "The group of a shredded field is null: rejected, or the field is missing",
        variant(pa.struct([pa.field("a", group(INT64))])),
        [row({"a": pair(1)}, of=A), row({"a": None}, of=A)],
        [obj(a=int64(1)), obj()],
        CONFLICT,
        section=OBJECTS,
    ),
    "field_group_null_typed": breaks(
        "R14",
        "The group of a shredded field is null: the field is missing",
        variant(pa.struct([pa.field("a", group(INT64))])),
        [row({"a": pair(1)}, of=A), row({"a": None}, of=A)],
        [obj(a=int64(1)), obj()],
        options=TYPED,
        section=OBJECTS,
    ),
    "element_group_null": breaks(
        "P-S6 R3",
        "The group of an element is null: Variant null, or rejected",
        variant(array_of(INT64, optional=True)),
        [row([pair(1), None])],
        [arr(int64(1), {"null": None})],
        CONFLICT,
        section=ARRAYS,
    ),
    "field_twice_in_value": breaks(
        "R17 E-O5",
        "Duplicate names in `value` are rejected",
        variant(OF_A),
        [row({"a": pair(1)}, bytes.fromhex("0202 0101 000204 0c01 0c02"), of=A_B)],
        error=MALFORMED,
        section=OBJECTS,
    ),
    "field_id_beyond_metadata": breaks(
        "W8 E-O7",
        "The fields in `value` have their names from the metadata of their row",
        variant(OF_A),
        [row({"a": pair(1)}, v("object", {"b": {"int8": 2}}, "a", "b"), of=A)],
        error=MALFORMED,
        section=OBJECTS,
    ),
}

# Missing columns (P-S3 to P-S5).

ABSENT = {
    "no_value_at_the_root": FileCase(
        "P-S4 W3",
        "A column may lack `value`, or is rejected without it",
        variant(INT64, order=("metadata", "typed_value")),
        [row(1), None],
        [int64(1), None],
        SHREDDING_ERROR,
        section=NO_VALUE,
    ),
    "no_value_of_a_field": FileCase(
        "P-S4",
        "A shredded field may lack `value`",
        variant(pa.struct([pa.field("a", group(INT64, without_value=True), nullable=False)])),
        [row({"a": {"typed_value": 1}}, of=A), row({"a": {"typed_value": None}}, of=A)],
        [obj(a=int64(1)), obj()],
        section=OBJECTS,
    ),
    "no_value_of_an_element": FileCase(
        "P-S4 P-S6",
        "The elements of a shredded array may lack `value`",
        variant(array_of(INT64, without_value=True)),
        [row([{"typed_value": 1}, {"typed_value": 2}])],
        [arr(int64(1), int64(2))],
        section=ARRAYS,
    ),
    "no_value_of_an_object": FileCase(
        "P-S4",
        "A column of shredded objects may lack `value`, or is rejected without it",
        variant(OF_A, order=("metadata", "typed_value")),
        [row({"a": pair(1)}, of=A), row({"a": NEITHER}, of=A)],
        [obj(a=int64(1)), obj()],
        SHREDDING_ERROR,
        section=NO_VALUE,
    ),
    "no_value_of_an_array": FileCase(
        "P-S4",
        "A column of shredded arrays may lack `value`, or is rejected without it",
        variant(array_of(INT64), order=("metadata", "typed_value")),
        [row([pair(1)]), row([])],
        [arr(int64(1)), arr()],
        SHREDDING_ERROR,
        section=NO_VALUE,
    ),
    "no_typed_value_of_a_field": FileCase(
        "P-S5",
        "A shredded field may lack `typed_value`",
        variant(object_of(a=None)),
        [row({"a": {"value": ONE}}, of=A), row({"a": {"value": None}}, of=A)],
        [obj(a=int8(1)), obj()],
        section=OBJECTS,
    ),
    "no_typed_value_of_an_element": FileCase(
        "P-S5 P-S6",
        "The elements of a shredded array may lack `typed_value`",
        variant(array_of(None)),
        [row([{"value": ONE}, {"value": NULL}])],
        [arr(int8(1), {"null": None})],
        section=ARRAYS,
    ),
    "null_value_of_an_unshredded_row": breaks(
        "P-S3 R2",
        "An unshredded row without `value`: Variant null, or rejected",
        variant(),
        [row(residue=ONE), row()],
        [int8(1), {"null": None}],
        MALFORMED,
        section="VariantEncoding.md, Variant in Parquet",
    ),
    "metadata_alone": breaks(
        "P-S4",
        "A column of `metadata` alone contains only Variant nulls, or is rejected",
        variant(order=("metadata",)),
        [row(), None],
        [{"null": None}, None],
        SHREDDING_ERROR,
    ),
}

# Invalid schemas (P-S6, P-S9, P-S10, P-X2).


def two_levels(column: Element) -> None:
    """Change a three-level list to a two-level one; the levels in the pages stay."""
    array = column.at("typed_value")
    [repeated] = array.children
    [element] = repeated.children
    element.set_repetition("repeated")
    array.children = [element]


def renamed(*path: str, to: str) -> Callable[[Element], None]:
    def change(column: Element) -> None:
        column.at(*path).name = to

    return change


def logical(union: Any) -> Callable[[Element], None]:
    return lambda column: column.at("typed_value").set_logical(union)


# Members of ConvertedType in parquet.thrift.
DECIMAL, INTERVAL = 5, 21


def interval(column: Element) -> None:
    column.at("typed_value").fields[CONVERTED] = (I32, INTERVAL)


MICROS = {2: (STRUCT, {2: (STRUCT, {})})}
TIME_UTC = {7: (STRUCT, {1: (TRUE, True), **MICROS})}
TIME = {7: (STRUCT, {1: (TRUE, False), **MICROS})}


def decimal(precision: int, scale: int) -> Callable[[Element], None]:
    def change(column: Element) -> None:
        leaf = column.at("typed_value")
        leaf.set_logical({5: (STRUCT, {1: (I32, scale), 2: (I32, precision)})})
        leaf.fields.update({CONVERTED: (I32, DECIMAL), SCALE: (I32, scale), PRECISION: (I32, precision)})

    return change


def rejected_type(name: str, typed: pa.DataType, change: Any = None, **parquet: Any) -> FileCase:
    """Return a file whose only row is in `value`, with an invalid type of `typed_value`."""
    return breaks(
        "P-S9 R15",
        f"A `typed_value` of type {name} that no row uses: rejected, or the row read from `value`",
        variant(typed),
        [row(residue=ONE)],
        [int8(1)],
        SHREDDING_ERROR,
        section=TYPES,
        parquet=parquet,
        change=change,
    )


def used_type(name: str, typed: pa.DataType, cell: Any) -> FileCase:
    """Return a file with a row in a `typed_value` of a type that is not a Variant type."""
    about = f"A row in a `typed_value` of type {name} is rejected, because it is not a Variant type"
    return breaks("P-S9 R15", about, variant(typed), [row(cell)], error=SHREDDING_ERROR, section=TYPES)


SCHEMAS = {
    "list_of_two_levels": breaks(
        "P-S6",
        "A two-level list is rejected, or read as a list",
        variant(array_of(INT64)),
        [row([pair(1), pair(2)])],
        [arr(int64(1), int64(2))],
        SHREDDING_ERROR,
        section=ARRAYS,
        change=two_levels,
    ),
    "elements_without_a_group": breaks(
        "P-S6 W10",
        "Elements that are not groups of `value` and `typed_value` are rejected",
        variant(pa.list_(INT64)),
        [row([1, 2])],
        error=SHREDDING_ERROR,
        section=ARRAYS,
    ),
    "fields_without_a_group": breaks(
        "P-S7 W5",
        "Fields that are not groups of `value` and `typed_value` are rejected",
        variant(pa.struct([("a", INT64)])),
        [row({"a": 1}, of=A)],
        error=SHREDDING_ERROR,
        section=OBJECTS,
    ),
    "field_twice_in_the_schema": breaks(
        "P-S10",
        "Shredded fields with duplicate names are rejected",
        variant(object_of(a=INT64, b=INT64)),
        [row({"a": pair(1), "b": pair(2)}, of=A)],
        error=SHREDDING_ERROR,
        section=OBJECTS,
        change=renamed("typed_value", "b", to="a"),
    ),
    "fields_that_differ_in_case": FileCase(
        "P-S10 E-O6",
        "a and A are two shredded fields",
        variant(object_of(A=INT64, a=INT64)),
        [row({"A": pair(2), "a": pair(1)}, of=names("A", "a"))],
        [obj(A=int64(2), a=int64(1))],
        section=OBJECTS,
    ),
    "refused_uint32": rejected_type("INT(32,false)", pa.uint32()),
    "refused_uint64": rejected_type("INT(64,false)", pa.uint64()),
    "refused_fixed_4": rejected_type("FIXED_LEN_BYTE_ARRAY(4)", pa.binary(4)),
    "refused_fixed_16": rejected_type("FIXED_LEN_BYTE_ARRAY(16) without UUID", pa.binary(16)),
    "refused_int96": rejected_type("INT96", pa.timestamp("ns"), use_deprecated_int96_timestamps=True),
    "refused_time_utc": rejected_type("TIME(true,MICROS)", INT64, logical(TIME_UTC)),
    "refused_time_millis": rejected_type("TIME(false,MILLIS)", pa.time32("ms")),
    "refused_time_nanos": rejected_type("TIME(false,NANOS)", pa.time64("ns")),
    "refused_timestamp_millis": rejected_type("TIMESTAMP(true,MILLIS)", pa.timestamp("ms", "UTC")),
    "refused_float16": rejected_type("FLOAT16", pa.float16()),
    "refused_interval": rejected_type("INTERVAL", pa.binary(12), interval),
    "refused_json": rejected_type("JSON", pa.string(), logical(logical_type("JSON"))),
    "refused_bson": rejected_type("BSON", pa.binary(), logical(logical_type("BSON"))),
    "refused_enum": rejected_type("ENUM", pa.string(), logical(logical_type("ENUM"))),
    "refused_map": rejected_type("MAP", pa.map_(pa.string(), INT64)),
    "refused_decimal_of_40_digits": rejected_type("DECIMAL(40,0)", pa.decimal256(40, 0)),
    "used_uint32": used_type("INT(32,false)", pa.uint32(), 2**32 - 1),
    "used_fixed_4": used_type("FIXED_LEN_BYTE_ARRAY(4)", pa.binary(4), b"\x01\x02\x03\x04"),
    "used_float16": used_type("FLOAT16", pa.float16(), 1.5),
    "refused_variant": rejected_type("VARIANT", variant(), logical(logical_type("VARIANT"))),
}

# Every type of `typed_value`, and rows of other types (P-S9, R15, P-T4 to P-T7).


def typed(
    name: str,
    arrow_type: pa.DataType,
    cells: list[Any],
    payloads: list[Any],
    change: Any = None,
    *,
    rules: str = "P-S9 R15",
    **parquet: Any,
) -> FileCase:
    """Return a column of a type, and a row with a value of another type."""
    other = {"int8": 1} if name == "string" else {"string": "x"}
    return FileCase(
        rules,
        f"`typed_value` of type {name}, and a row with a value of another type",
        variant(arrow_type),
        [*(row(cell) for cell in cells), row(residue=v(*next(iter(other.items()))))],
        [*({name: payload} for payload in payloads), other],
        section=TYPES,
        parquet=parquet,
        change=change,
    )


UUID = bytes.fromhex("f24f9b6481fa49d1b74e8c09a6e31c56")
UUID_TEXT = "f24f9b64-81fa-49d1-b74e-8c09a6e31c56"
AS_INTEGERS = {"store_decimal_as_integer": True}


def decimals(precision: int, scale: int, **parquet: Any) -> FileCase:
    """Return decimals of the maximum number of digits, of either sign, and zero."""
    digits = (9,) * precision
    numbers = [Decimal((0, digits, -scale)), Decimal((1, digits, -scale)), Decimal((0, (0,), -scale))]
    name = "decimal4" if precision <= 9 else "decimal8" if precision <= 18 else "decimal16"
    texts = [format(number, "f") for number in numbers]
    arrow_type = pa.decimal128(precision, scale)
    return typed(name, arrow_type, numbers, texts, rules="P-T7 P-S9 R15", **parquet)


# The maximum number of digits of 1, 2, … 16 bytes.
DIGITS = (2, 4, 6, 9, 11, 14, 16, 18, 21, 23, 26, 28, 31, 33, 35, 38)

VALUES = {
    "typed_boolean": typed("boolean", pa.bool_(), [True, False], [True, False]),
    "typed_int8": typed("int8", pa.int8(), [-128, 127], [-128, 127]),
    "typed_int16": typed("int16", pa.int16(), [-32768, 32767], [-32768, 32767]),
    "typed_int32": typed("int32", pa.int32(), [-(2**31), 2**31 - 1], [-(2**31), 2**31 - 1]),
    "typed_int64": typed("int64", INT64, [-(2**63), 2**63 - 1], [-(2**63), 2**63 - 1]),
    "typed_float": typed("float", pa.float32(), [0.5, -0.0, float("inf")], [0.5, "-0.0", "Infinity"]),
    "typed_double": typed("double", pa.float64(), [0.1, -0.0, float("nan")], [0.1, "-0.0", "NaN"]),
    "typed_date": typed("date", pa.date32(), [0, -719162, 19000], [0, -719162, 19000]),
    "typed_time": typed("time", pa.time64("us"), [0, 86_399_999_999], [0, 86_399_999_999]),
    "typed_timestamp": typed(
        "timestamp", pa.timestamp("us", "UTC"), [-1, 1_700_000_000_000_001], [-1, 1_700_000_000_000_001]
    ),
    "typed_timestamp_ntz": typed("timestamp_ntz", pa.timestamp("us"), [-1, 2], [-1, 2]),
    "typed_timestamp_nanos": typed("timestamp_nanos", pa.timestamp("ns", "UTC"), [-1, 2], [-1, 2]),
    "typed_timestamp_ntz_nanos": typed("timestamp_ntz_nanos", pa.timestamp("ns"), [-1, 2], [-1, 2]),
    "typed_binary": typed("binary", pa.binary(), [b"", b"\x00\xff"], ["", "00ff"]),
    "typed_string": typed(
        "string", pa.string(), ["", "é", "x" * 70], ["", "é", "x" * 70], rules="P-S9 P-T6 R15"
    ),
    "typed_uuid": typed("uuid", pa.binary(16), [UUID], [UUID_TEXT], logical(logical_type("UUID"))),
    "decimal_in_int32": decimals(9, 2, **AS_INTEGERS),
    "decimal_of_4_digits_in_int32": decimals(4, 2, **AS_INTEGERS),
    "decimal_in_int64": decimals(18, 18, **AS_INTEGERS),
    "typed_string_not_utf8": breaks(
        "P-T6 E-V2",
        "A string column with invalid UTF-8 is rejected",
        variant(pa.binary()),
        [row(b"\xff")],
        error="DataFileError",
        section=TYPES,
        change=logical({1: (STRUCT, {})}),
    ),
    "typed_decimal_of_too_many_digits": breaks(
        "P-T3 P-T7 E-V5",
        "A number with more digits than its column's precision is rejected, or read",
        variant(pa.int32()),
        [row(99), row(100)],
        [{"decimal4": "9.9"}, {"decimal4": "10.0"}],
        MALFORMED,
        section=TYPES,
        change=decimal(2, 1),
    ),
    "typed_time_of_24_hours": breaks(
        "E-V3 P-S9",
        "A time of 24 hours is rejected",
        variant(INT64),
        [row(86_400_000_000)],
        error=MALFORMED,
        section=TYPES,
        change=logical(TIME),
    ),
    **{
        f"decimal_in_{size}_bytes": decimals(precision, scale=precision // 3)
        for size, precision in enumerate(DIGITS, 1)
    },
}


def main() -> None:
    cases = {**ROWS, **NULLS, **BROKEN, **ABSENT, **SCHEMAS, **VALUES}
    for name, case in cases.items():
        write_case("unshred", name, case)
    print(f"{len(cases)} cases of unshred")


if __name__ == "__main__":
    main()
