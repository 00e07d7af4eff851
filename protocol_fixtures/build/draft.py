"""Write the cases of files in the layout of the older Spark draft: `python protocol_fixtures/build/draft.py`.

Needs pyarrow but not `delta_variant`. Bytes in hex were written manually from the draft and from
VariantEncoding.md.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
from case_folder import new_case, write_parquet
from shredding import Json
from variant_bytes import encode, int8, int64, obj, text

SECTION = "Spark Variant shredding draft, "
LAYOUT = SECTION + "Parquet Layout"
UNSHREDDED = SECTION + "Unshredded values"
RECONSTRUCTING = SECTION + "Reconstructing a Variant"
COMPATIBILITY = SECTION + "Backward and forward compatibility"
EXAMPLE = SECTION + "Parquet Example"
NESTED = SECTION + "Nested Parquet Example"
SEMANTICS = SECTION + "Shredding Semantics"

NULL: Json = {"null": None}

# Types. The members of a group are in the given order and optional, as in the draft's examples.


def group(**members: pa.DataType) -> pa.StructType:
    return pa.struct(list(members.items()))


def leaf(kind: pa.DataType) -> pa.StructType:
    return group(untyped_value=pa.binary(), typed_value=kind)


def objects(**fields: pa.DataType) -> pa.StructType:
    return group(untyped_value=pa.binary(), object=pa.struct(list(fields.items())))


def arrays(element: pa.DataType) -> pa.StructType:
    return group(untyped_value=pa.binary(), array=pa.list_(pa.field("element", element)))


INT = pa.int64()

# Values.


def bare(typed: Json) -> bytes:
    """Return an `untyped_value`: metadata followed by value."""
    return b"".join(encode(typed))


def keeps(
    name: str, rules: str, section: str, about: str, kind: pa.DataType, rows: list[Any], expect: list[Any]
) -> None:
    """Write a case of a file that is read."""
    _case(name, rules, "keeps", section, about, kind, rows, {"rows": expect}, "strict")


def breaks(
    name: str,
    rules: str,
    section: str,
    about: str,
    kind: pa.DataType,
    rows: list[Any],
    error: str,
    **options: Any,
) -> None:
    """Write a case of a file that is rejected."""
    _case(name, rules, "breaks", section, about, kind, rows, {"error": error}, "strict", **options)


def _case(
    name: str,
    rules: str,
    verdict: str,
    section: str,
    about: str,
    kind: pa.DataType,
    rows: list[Any],
    expect: Json,
    draft: str | None,
    **options: Any,
) -> None:
    given, draft_option = {"file": "file.parquet"}, None if draft is None else {"draft": draft}
    folder = new_case(
        "file", f"draft_{name}", rules, verdict, section, about, given, expect, options=draft_option
    )
    write_parquet(folder / "file.parquet", pa.table({"v": pa.array(rows, kind)}), **options)


def detection() -> None:
    """Write the cases of O1, O3, O6, O15 and O18."""
    keeps(
        "members_in_any_order",
        "O1",
        LAYOUT,
        "Members are found by their names, wherever they stand",
        group(
            typed_value=INT,
            object=pa.struct([("a", group(typed_value=INT, untyped_value=pa.binary()))]),
            untyped_value=pa.binary(),
        ),
        [
            {"typed_value": 1, "object": None, "untyped_value": None},
            {"typed_value": None, "object": {"a": {"typed_value": 2}}, "untyped_value": None},
            {"typed_value": None, "object": None, "untyped_value": bare(text("x"))},
        ],
        [int64(1), obj(a=int64(2)), text("x")],
    )
    breaks(
        "mixed_with_metadata",
        "O1",
        LAYOUT,
        "A group of members of both layouts is of neither",
        group(metadata=pa.binary(), value=pa.binary(), untyped_value=pa.binary()),
        [{"metadata": bytes.fromhex("010000"), "value": b"\x0c\x01", "untyped_value": None}],
        "ShreddingError",
    )
    breaks(
        "mixed_within",
        "O1",
        LAYOUT,
        "A field of an object has members of the draft, and none of the present layout",
        objects(a=group(value=pa.binary(), typed_value=INT)),
        [{"object": {"a": {"value": None, "typed_value": 1}}}],
        "ShreddingError",
    )
    _case(
        "is_not_the_present_layout",
        "O1",
        "breaks",
        "VariantShredding.md, Value Shredding",
        "A reader of the current layout rejects a group without metadata",
        leaf(INT),
        [{"typed_value": 1}],
        {"error": "ShreddingError"},
        None,
    )
    required = pa.struct(
        [
            pa.field("untyped_value", pa.binary()),
            pa.field("object", pa.struct([pa.field("a", leaf(INT), nullable=False)])),
        ]
    )
    keeps(
        "required_groups",
        "O3",
        LAYOUT,
        "Groups may be required",
        required,
        [{"object": {"a": {"typed_value": 1}}}, {"object": {"a": {}}}],
        [obj(a=int64(1)), obj()],
    )
    keeps(
        "null_group_is_missing",
        "O3",
        LAYOUT,
        "A null group is a missing field, like a group of nulls",
        objects(a=leaf(INT), b=leaf(INT)),
        [{"object": {"a": None, "b": {"typed_value": 2}}}, {"object": {"a": {}, "b": {"typed_value": 2}}}],
        [obj(b=int64(2)), obj(b=int64(2))],
    )
    keeps(
        "no_untyped_value",
        "O6",
        LAYOUT,
        "untyped_value may be omitted",
        group(object=pa.struct([("a", group(typed_value=INT))])),
        [{"object": {"a": {"typed_value": 1}}}, {"object": {"a": None}}],
        [obj(a=int64(1)), obj()],
    )
    keeps(
        "no_typed_value",
        "O6",
        LAYOUT,
        "typed_value may be omitted",
        objects(a=group(untyped_value=pa.binary())),
        [{"object": {"a": {"untyped_value": bare(text("x"))}}}],
        [obj(a=text("x"))],
    )
    keeps(
        "underscore_columns_are_ignored",
        "O15",
        COMPATIBILITY,
        "Other columns whose names begin with _ are ignored",
        group(
            _metadata_key_paths=pa.binary(),
            untyped_value=pa.binary(),
            _spark_hint=pa.int32(),
            typed_value=INT,
        ),
        [{"_metadata_key_paths": b"\x01", "_spark_hint": 7, "typed_value": 1}],
        [int64(1)],
    )
    keeps(
        "underscore_fields_are_data",
        "O15 P-X5",
        COMPATIBILITY,
        "A field of an object whose name begins with _ is data",
        objects(_id=leaf(INT), typed_value=leaf(INT), metadata=leaf(INT)),
        [{"object": {name: {"typed_value": 1} for name in ("_id", "typed_value", "metadata")}}],
        [obj(_id=int64(1), metadata=int64(1), typed_value=int64(1))],
    )
    breaks(
        "unknown_column",
        "O15",
        COMPATIBILITY,
        "A column that the draft does not know is an incompatible extension",
        group(untyped_value=pa.binary(), typed_value=INT, note=pa.string()),
        [{"typed_value": 1, "note": None}],
        "ShreddingError",
    )
    breaks(
        "group_without_members",
        "O18",
        LAYOUT,
        "A group has one of the four members at least",
        objects(a=group(_x=INT)),
        [{"object": {"a": {"_x": 1}}}],
        "ShreddingError",
    )
    keeps(
        "leaf_of_any_value",
        "O18",
        LAYOUT,
        "A leaf can store an arbitrary value",
        leaf(INT),
        [{"untyped_value": bare(each)} for each in (obj(a=int8(1)), {"array": [NULL]}, {"boolean": True})],
        [obj(a=int8(1)), {"array": [NULL]}, {"boolean": True}],
    )
    breaks(
        "unsigned_typed_value",
        "O18 P-S9",
        LAYOUT,
        "A type that is not a Variant type is rejected, even if no row uses it",
        leaf(pa.uint32()),
        [{"untyped_value": bare(int8(1))}],
        "ShreddingError",
    )
    breaks(
        "int96_typed_value",
        "O18 P-S9",
        LAYOUT,
        "INT96 is rejected",
        leaf(pa.timestamp("us")),
        [{"untyped_value": bare(int8(1))}],
        "ShreddingError",
        use_deprecated_int96_timestamps=True,
    )
    breaks(
        "typed_value_of_a_struct",
        "O18 P-S9",
        LAYOUT,
        "typed_value is a leaf: an object is in object",
        leaf(pa.struct([("a", leaf(INT))])),
        [{"untyped_value": bare(int8(1))}],
        "ShreddingError",
    )


def bytes_of_values() -> None:
    """Write the cases of O2 and O16."""
    kind = group(untyped_value=pa.binary())
    keeps(
        "metadata_in_front_of_value",
        "O2",
        LAYOUT,
        "The metadata of the draft's example takes six bytes, and the rest is the value",
        kind,
        [{"untyped_value": bytes.fromhex("010100026869" + "02010000020c01")}],
        [obj(hi=int8(1))],
    )
    breaks(
        "metadata_without_value",
        "O2",
        LAYOUT,
        "A value follows the metadata",
        kind,
        [{"untyped_value": bytes.fromhex("010100026869")}],
        "MalformedVariantError",
    )
    breaks(
        "metadata_cut_short",
        "O2",
        LAYOUT,
        "The last offset points past the end of the bytes",
        kind,
        [{"untyped_value": bytes.fromhex("0101000968690c01")}],
        "MalformedVariantError",
    )
    keeps(
        "dictionaries_are_united",
        "O16",
        LAYOUT,
        "Each part has a dictionary of its own, and one name has another id in each",
        objects(a=group(untyped_value=pa.binary()), b=group(untyped_value=pa.binary())),
        [
            {
                # The names b and z have the ids 0 and 1 in one dictionary, and 1 and 0 in the other.
                "untyped_value": bytes.fromhex("0101000163" + "02010000020c03"),
                "object": {
                    "a": {"untyped_value": bytes.fromhex("0102000102627a" + "02020001000204" + "0c010c02")},
                    "b": {"untyped_value": bytes.fromhex("01020001027a62" + "02020100000204" + "0c040c05")},
                },
            }
        ],
        [obj(a=obj(b=int8(1), z=int8(2)), b=obj(b=int8(4), z=int8(5)), c=int8(3))],
    )
    breaks(
        "name_of_another_dictionary",
        "O16",
        LAYOUT,
        "A name id counts in the dictionary of its own part",
        objects(a=group(untyped_value=pa.binary())),
        [
            {
                "untyped_value": bytes.fromhex("01020001026362" + "02010000020c03"),
                "object": {"a": {"untyped_value": bytes.fromhex("0101000162" + "02010100020c01")}},
            }
        ],
        "MalformedVariantError",
    )


def reconstruction() -> None:
    """Write the cases of O4, O5, and O7 to O12."""
    three = group(
        untyped_value=pa.binary(),
        object=pa.struct([("a", leaf(INT))]),
        array=pa.list_(pa.field("element", leaf(INT))),
        typed_value=INT,
    )
    keeps(
        "all_members_in_one_group",
        "O4",
        LAYOUT,
        "A group may have object, array and typed_value, one of which is set",
        three,
        [
            {"object": {"a": {"typed_value": 1}}},
            {"array": [{"typed_value": 2}]},
            {"typed_value": 3},
            {"untyped_value": bare(text("x"))},
        ],
        [obj(a=int64(1)), {"array": [int64(2)]}, int64(3), text("x")],
    )
    breaks(
        "object_and_typed_value",
        "O4",
        RECONSTRUCTING,
        "Only one of object, array and typed_value may be set",
        three,
        [{"object": {"a": None}, "typed_value": 3}],
        "ConflictingValueError",
    )
    breaks(
        "object_and_array",
        "O4",
        RECONSTRUCTING,
        "Only one of object, array and typed_value may be set",
        three,
        [{"object": {"a": None}, "array": []}],
        "ConflictingValueError",
    )
    leaf_both = [{"untyped_value": bytes.fromhex("01000000"), "typed_value": 1}]
    keeps(
        "leaf_states",
        "O5",
        LAYOUT,
        "A leaf is missing, of any type, or of the type of its column",
        objects(a=leaf(INT)),
        [
            {"object": {"a": {}}},
            {"object": {"a": {"untyped_value": bare(text("n/a"))}}},
            {"object": {"a": {"typed_value": 1}}},
        ],
        [obj(), obj(a=text("n/a")), obj(a=int64(1))],
    )
    breaks(
        "leaf_of_both",
        "O5",
        LAYOUT,
        "typed_value with a Variant null in untyped_value is invalid by the draft's table",
        leaf(INT),
        leaf_both,
        "ConflictingValueError",
    )
    _case(
        "leaf_of_both_by_the_algorithm",
        "O5",
        "breaks",
        RECONSTRUCTING,
        "The draft's algorithm returns the Variant null in untyped_value, and not typed_value",
        leaf(INT),
        leaf_both,
        {"rows": [NULL]},
        "compat",
    )
    _case(
        "leaf_of_two_values",
        "O5",
        "breaks",
        RECONSTRUCTING,
        "The draft's algorithm rejects a typed_value with another value in untyped_value",
        leaf(INT),
        [{"untyped_value": bare(int8(2)), "typed_value": 1}],
        {"error": "ConflictingValueError"},
        "compat",
    )
    keeps(
        "object_in_part",
        "O7",
        UNSHREDDED,
        "Fields without a column are in an object in untyped_value",
        objects(c=leaf(INT)),
        [{"untyped_value": bare(obj(d=int8(2), a=int8(1))), "object": {"c": {"typed_value": 3}}}],
        [obj(a=int8(1), c=int64(3), d=int8(2))],
    )
    breaks(
        "object_beside_a_number",
        "O7",
        RECONSTRUCTING,
        "object with an untyped_value that is not an object is ambiguous",
        objects(c=leaf(INT)),
        [{"untyped_value": bare(int8(2)), "object": {"c": {"typed_value": 3}}}],
        "ConflictingValueError",
    )
    keeps(
        "values_of_another_kind",
        "O8",
        UNSHREDDED,
        "Values other than objects and arrays are in the untyped_value of their group",
        objects(c=arrays(leaf(INT))),
        [
            {"untyped_value": bare({"array": [int8(1)]})},
            {"object": {"c": {"untyped_value": bare(obj(x=int8(1)))}}},
        ],
        [{"array": [int8(1)]}, obj(c=obj(x=int8(1)))],
    )
    breaks(
        "array_beside_object",
        "O8",
        UNSHREDDED,
        "If an array is in untyped_value, object is null",
        objects(c=leaf(INT)),
        [{"untyped_value": bare({"array": []}), "object": {"c": None}}],
        "ConflictingValueError",
    )
    elements = [
        {"typed_value": 1},
        {"untyped_value": bare(text("x"))},
        {"untyped_value": bytes.fromhex("01000000")},
    ]
    keeps(
        "array_whole",
        "O9",
        UNSHREDDED,
        "An array is shredded whole, and a missing element is Variant null",
        arrays(leaf(INT)),
        [{"array": elements}, {"array": []}, {"array": [None, {}]}],
        [{"array": [int64(1), text("x"), NULL]}, {"array": []}, {"array": [NULL, NULL]}],
    )
    array_both = [{"untyped_value": bare({"array": [int8(2)]}), "array": [{"typed_value": 1}]}]
    breaks(
        "array_of_both",
        "O9",
        UNSHREDDED,
        "Only one of array and untyped_value may be set",
        arrays(leaf(INT)),
        array_both,
        "ConflictingValueError",
    )
    _case(
        "array_of_both_by_the_algorithm",
        "O9",
        "breaks",
        RECONSTRUCTING,
        "The draft's algorithm gives the array, and does not look at untyped_value",
        arrays(leaf(INT)),
        array_both,
        {"rows": [{"array": [int64(1)]}]},
        "compat",
    )
    keeps(
        "field_of_both",
        "O10",
        RECONSTRUCTING,
        "A field that is missing in object is looked for in untyped_value; otherwise that in object counts",
        objects(a=leaf(INT), b=leaf(INT)),
        [
            {"untyped_value": bare(obj(a=int8(1))), "object": {"a": None, "b": {"typed_value": 2}}},
            {"untyped_value": bare(obj(a=int8(1))), "object": {"a": {"typed_value": 9}, "b": None}},
        ],
        [obj(a=int8(1), b=int64(2)), obj(a=int64(9))],
    )
    breaks(
        "field_twice",
        "O10",
        RECONSTRUCTING,
        "The keys of an object are a set: a duplicate name in untyped_value is rejected",
        objects(c=leaf(INT)),
        [
            {
                "untyped_value": bytes.fromhex("01020001026161" + "02020001000204" + "0c010c02"),
                "object": {"c": {"typed_value": 3}},
            }
        ],
        "MalformedVariantError",
    )
    keeps(
        "nothing_at_the_top",
        "O11",
        LAYOUT,
        "A null group is SQL NULL, and one of nulls is Variant null",
        leaf(INT),
        [None, {"untyped_value": None, "typed_value": None}],
        [None, NULL],
    )
    keeps(
        "null_field",
        "O12",
        EXAMPLE,
        "Variant null is a value, in untyped_value",
        objects(c=leaf(INT)),
        [{"object": {"c": {"untyped_value": bytes.fromhex("01000000")}}}, {"object": {"c": {}}}],
        [obj(c=NULL), obj()],
    )
    keeps(
        "number_of_another_type",
        "O13",
        SEMANTICS,
        "A number comes back in the type of its column",
        leaf(pa.decimal128(9, 2)),
        [{"typed_value": Decimal("123.00")}],
        [{"decimal4": "123.00"}],
    )


def examples() -> None:
    """Write the cases of O17."""
    kind = objects(a=leaf(INT), b=objects(c=leaf(pa.string())))
    hello = {"untyped_value": None, "object": {"c": {"typed_value": "hello"}}}
    keeps(
        "example_rows",
        "O17",
        EXAMPLE,
        "The six rows of the draft's first example",
        kind,
        [
            {"object": {"a": {"typed_value": 123}, "b": hello}},
            {
                "object": {
                    "a": {"untyped_value": bytes.fromhex("010000" + "20027b000000")},
                    "b": {"object": {"c": {"typed_value": "123"}}},
                }
            },
            {
                "object": {
                    "a": {"untyped_value": bytes.fromhex("010000" + "0303000204060c010c020c03")},
                    "b": {"object": {"c": {"untyped_value": bytes.fromhex("01000000")}}},
                }
            },
            {
                "untyped_value": bytes.fromhex("0101000163" + "020100000310c801"),
                "object": {"a": {"typed_value": 123}, "b": None},
            },
            {
                "object": {
                    "a": {"typed_value": 123},
                    "b": {
                        "untyped_value": bytes.fromhex("0101000164" + "020100000310c801"),
                        "object": {"c": {"typed_value": "hello"}},
                    },
                }
            },
            {
                "untyped_value": bytes.fromhex(
                    "010300010203616263"
                    + "0302001020"
                    + "020200010002090c01"
                    + "02010200020c02"
                    + "020200010002090c03"
                    + "02010200020c04"
                )
            },
        ],
        [
            obj(a=int64(123), b=obj(c=text("hello"))),
            obj(a={"decimal4": "1.23"}, b=obj(c=text("123"))),
            obj(a={"array": [int8(1), int8(2), int8(3)]}, b=obj(c=NULL)),
            obj(a=int64(123), c={"int16": 456}),
            obj(a=int64(123), b=obj(c=text("hello"), d={"int16": 456})),
            {"array": [obj(a=int8(1), b=obj(c=int8(2))), obj(a=int8(3), b=obj(c=int8(4)))]},
        ],
    )
    element = group(
        untyped_value=pa.binary(),
        object=pa.struct(
            [
                ("a", arrays(group(typed_value=INT, untyped_value=pa.binary()))),
                ("b", group(typed_value=INT, untyped_value=pa.binary())),
            ]
        ),
    )

    def shredded(numbers: list[int], b: int) -> Json:
        return {"a": {"array": [{"typed_value": number} for number in numbers]}, "b": {"typed_value": b}}

    def whole(numbers: list[int], b: int, **rest: Json) -> Json:
        return obj(a={"array": [int64(number) for number in numbers]}, b=int64(b), **rest)

    keeps(
        "example_nested",
        "O17",
        NESTED,
        "The arrays of the draft's nested example",
        arrays(element),
        [
            {"array": [{"object": shredded([1, 2, 3], 100)}, {"object": shredded([4, 5, 6], 200)}]},
            {
                "array": [
                    {
                        "untyped_value": bytes.fromhex(
                            "0101000163" + "020100000b" + "29" + b"unexpected".hex()
                        ),
                        "object": shredded([1, 2, 3], 100),
                    },
                    {"untyped_value": None, "object": shredded([4, 5, 6], 200)},
                    {"untyped_value": bytes.fromhex("010000" + "35" + b"not an object".hex())},
                ]
            },
        ],
        [
            {"array": [whole([1, 2, 3], 100), whole([4, 5, 6], 200)]},
            {
                "array": [
                    whole([1, 2, 3], 100, c=text("unexpected")),
                    whole([4, 5, 6], 200),
                    text("not an object"),
                ]
            },
        ],
    )
    breaks(
        "example_with_an_impossible_value",
        "O17",
        NESTED,
        "The element whose string is cut short is rejected",
        arrays(element),
        [{"array": [{"untyped_value": bytes.fromhex("010000" + "35" + b"not an objec".hex())}]}],
        "MalformedVariantError",
    )


if __name__ == "__main__":
    detection()
    bytes_of_values()
    reconstruction()
    examples()
