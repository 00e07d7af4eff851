"""Write the cases of the kind `decode`: `python protocol_fixtures/build/decode.py`.

All bytes were written manually from VariantEncoding.md. Needs only the standard library.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from case_folder import new_case
from variant_bytes import int8, obj

METADATA = "VariantEncoding.md, Metadata encoding"
HEADER = "VariantEncoding.md, Value encoding"
TYPES = "VariantEncoding.md, Encoding types"
OBJECT = "VariantEncoding.md, Value Data for Object"
ARRAY = "VariantEncoding.md, Value Data for Array"
ORDER = "VariantEncoding.md, Object field ID order and uniqueness"
TEXT = "VariantEncoding.md, String values must be UTF-8 encoded"
VERSIONS = "VariantEncoding.md, Versions and extensions"

NO_NAMES = "01 00 00"
A = "01 01 00 01 61"
A_B = "01 02 00 01 02 6162"
A_B_C = "01 03 00 01 02 03 616263"

MALFORMED = "MalformedVariantError"
NO_JSON = object()
"""The JSON of values without a standard form in JSON."""


@dataclass(frozen=True)
class Keeps:
    """Bytes that follow the rules; `json` is the payload by default."""

    rules: str
    section: str
    about: str
    metadata: str
    value: str
    typed: dict[str, Any]
    json: Any = NO_JSON
    may_reject: bool = False
    """Whether the specification also allows readers to reject the bytes."""


@dataclass(frozen=True)
class Breaks:
    """Bytes that break the rules: rejected, or read as `typed` if given."""

    rules: str
    section: str
    about: str
    metadata: str
    value: str
    typed: dict[str, Any] | None = None
    json: Any = NO_JSON


ONE = obj(a=int8(1))
ONE_TWO = obj(a=int8(1), b=int8(2))

# Each primitive type: its value, its typed value, and its JSON.
PRIMITIVES: dict[str, tuple[str, dict[str, Any], list[Any]]] = {
    "true": ("04", {"boolean": True}, [True]),
    "false": ("08", {"boolean": False}, [False]),
    "int8": ("0c 80", {"int8": -128}, [-128]),
    "int16": ("10 ff7f", {"int16": 32767}, [32767]),
    "int32": ("14 00000080", {"int32": -(2**31)}, [-(2**31)]),
    "int64": ("18 ffffffffffffff7f", {"int64": 2**63 - 1}, [2**63 - 1]),
    "double": ("1c 000000000000f8bf", {"double": -1.5}, [-1.5]),
    "decimal4": ("20 02 85ffffff", {"decimal4": "-1.23"}, [-1.23]),
    "decimal8": ("24 03 79df0d8648700000", {"decimal8": "123456789012.345"}, [123456789012.345]),
    "decimal16": (
        "28 02 fdffffffffffffff ffffffffffffffff",
        {"decimal16": "-0.03"},
        [-0.03],
    ),
    "date": ("2c 01000000", {"date": 1}, ["1970-01-02"]),
    "timestamp": (
        "30 ffffffffffffffff",
        {"timestamp": -1},
        [
            "1969-12-31 23:59:59.999999+00:00",
            "1969-12-31T23:59:59.999999Z",
            "1969-12-31T23:59:59.999999+00:00",
        ],
    ),
    "timestamp_ntz": (
        "34 40420f0000000000",
        {"timestamp_ntz": 1_000_000},
        ["1970-01-01 00:00:01", "1970-01-01T00:00:01"],
    ),
    "float": ("38 0000003f", {"float": 0.5}, [0.5]),
    "binary": ("3c 02000000 00ff", {"binary": "00ff"}, ["AP8="]),
    "string": ("40 02000000 c3a9", {"string": "é"}, ["é"]),
    "time": ("44 ff5fd71d14000000", {"time": 86_399_999_999}, ["23:59:59.999999"]),
    "timestamp_nanos": (
        "48 0100000000000000",
        {"timestamp_nanos": 1},
        [
            "1970-01-01 00:00:00.000000001+00:00",
            "1970-01-01T00:00:00.000000001Z",
            "1970-01-01T00:00:00.000000001+00:00",
        ],
    ),
    "timestamp_ntz_nanos": (
        "4c ffffffffffffffff",
        {"timestamp_ntz_nanos": -1},
        ["1969-12-31 23:59:59.999999999", "1969-12-31T23:59:59.999999999"],
    ),
    "uuid": (
        "50 f24f9b64 81fa 49d1 b74e 8c09a6e31c56",
        {"uuid": "f24f9b64-81fa-49d1-b74e-8c09a6e31c56"},
        ["f24f9b64-81fa-49d1-b74e-8c09a6e31c56"],
    ),
}

METADATA_CASES: dict[str, Keeps | Breaks] = {
    "metadata_without_names": Keeps(
        "E-M1 E-M2 E-M5 E-V3",
        METADATA,
        "Metadata without names has three bytes",
        NO_NAMES,
        "00",
        {"null": None},
    ),
    "metadata_without_offsets": Breaks(
        "E-M5 E-M4", METADATA, "Even without names there is one offset", "01 00", "00"
    ),
    "metadata_of_no_bytes": Breaks("E-M5 E-M1", METADATA, "Metadata is never empty", "", "00"),
    "metadata_version_0": Breaks("E-M1 E-M2", METADATA, "Version 0 is rejected", "00 00 00", "00"),
    "metadata_version_2": Breaks("E-M2", VERSIONS, "Version 2 is rejected", "02 00 00", "00"),
    "metadata_version_15": Breaks("E-M2", VERSIONS, "Version 15 is rejected", "0f 00 00", "00"),
    "metadata_reserved_bit": Keeps(
        "E-M3", METADATA, "Bit 5 of the header is ignored", "21 01 00 01 61", "02 01 00 00 02 0c01", ONE
    ),
    "metadata_offsets_of_2_bytes": Keeps(
        "E-M4",
        METADATA,
        "Offsets may be wider than needed",
        "41 0100 0000 0100 61",
        "02 01 00 00 02 0c01",
        ONE,
    ),
    "metadata_offsets_of_3_bytes": Keeps(
        "E-M4",
        METADATA,
        "Offsets may have three bytes",
        "81 010000 000000 010000 61",
        "02 01 00 00 02 0c01",
        ONE,
    ),
    "metadata_offsets_of_4_bytes": Keeps(
        "E-M4",
        METADATA,
        "Offsets may have four bytes",
        "c1 01000000 00000000 01000000 61",
        "02 01 00 00 02 0c01",
        ONE,
    ),
    "metadata_first_offset_1": Breaks("E-M4", METADATA, "The first offset is 0", "01 01 01 02 6161", "00"),
    "metadata_offsets_decrease": Breaks(
        "E-M4", METADATA, "Offsets never decrease", "01 02 00 02 01 6162", "00"
    ),
    "metadata_last_offset_too_large": Breaks(
        "E-M4", METADATA, "The last offset is the length of the names", "01 01 00 05 61", "00"
    ),
    "metadata_cut_in_offsets": Breaks(
        "E-M4 E-Q5",
        METADATA,
        "A dictionary that ends within its offsets is rejected",
        "c1 01000000 0000",
        "00",
    ),
    "metadata_of_4294967295_names": Breaks(
        "E-M11 E-Q4",
        METADATA,
        "A count of missing names is rejected immediately",
        "c1 ffffffff 00000000",
        "00",
    ),
    "name_not_utf8": Breaks("E-M6", TEXT, "A name that is not UTF-8 is rejected", "01 01 00 01 ff", "00"),
    "names_cut_within_a_character": Breaks(
        "E-M6", TEXT, "Each name is UTF-8, not only all of them together", "01 02 00 01 02 c3a9", "00"
    ),
    "names_of_many_scripts": Keeps(
        "E-M6 E-O3",
        TEXT,
        "Names may have characters of two, three and four bytes",
        "01 03 00 02 05 09 c3a9 e4b896 f09f9880",
        "02 03 00 01 02 00 02 04 06 0c01 0c02 0c03",
        {"object": {"é": int8(1), "世": int8(2), "😀": int8(3)}},
    ),
    "metadata_sorted": Keeps(
        "E-M1 E-M7",
        METADATA,
        "Names may be marked as sorted and unique",
        "11 02 00 01 02 6162",
        "02 02 00 01 00 02 04 0c01 0c02",
        ONE_TWO,
    ),
    "metadata_marked_sorted_and_not": Breaks(
        "E-M7",
        METADATA,
        "Names that are marked as sorted but are not: rejected, or read without using the mark",
        "11 02 00 01 02 6261",
        "02 02 01 00 00 02 04 0c01 0c02",
        ONE_TWO,
    ),
    "metadata_marked_unique_and_not": Breaks(
        "E-M7",
        METADATA,
        "Names that are marked as unique but are not: rejected, or read without using the mark",
        "11 02 00 01 02 6161",
        "02 01 01 00 02 0c01",
        ONE,
    ),
    "metadata_with_a_name_twice": Keeps(
        "E-M7",
        METADATA,
        "Unmarked names may be the same, and a field may use either",
        "01 02 00 01 02 6161",
        "02 01 01 00 02 0c01",
        ONE,
    ),
    "metadata_out_of_order": Keeps(
        "E-M7 E-Q2",
        METADATA,
        "Unmarked names may be in any order; fields are in the order of the names all the same",
        "01 02 00 01 02 6261",
        "02 02 01 00 00 02 04 0c01 0c02",
        ONE_TWO,
    ),
    "empty_name": Keeps(
        "E-M8",
        METADATA,
        "The empty text is a name",
        "01 01 00 00",
        "02 01 00 00 02 0c01",
        {"object": {"": int8(1)}},
    ),
    "bytes_after_metadata": Breaks(
        "E-M9",
        METADATA,
        "Bytes after the names of a metadata column: ignored or rejected",
        "01 00 00 ff",
        "0c01",
        int8(1),
    ),
    "names_that_nothing_uses": Keeps(
        "E-M10",
        METADATA,
        "The dictionary may have names that the value does not use",
        "01 05 00 01 02 03 04 05 6162636465",
        "14 d2040000",
        {"int32": 1234},
    ),
}

VALUE_CASES: dict[str, Keeps | Breaks] = {
    "value_of_no_bytes": Breaks("E-V1 E-Q5", HEADER, "A value is never empty", NO_NAMES, ""),
    "each_basic_type": Keeps(
        "E-V1",
        HEADER,
        "Primitive, short string, object and array are told apart by two bits",
        A,
        "03 04 00 01 03 06 09 00 0561 020000 030000",
        {"array": [{"null": None}, {"string": "a"}, {"object": {}}, {"array": []}]},
    ),
    "bytes_after_value": Breaks(
        "E-V1", HEADER, "Bytes after a value: ignored or rejected", NO_NAMES, "0c01 ff", int8(1)
    ),
    "short_string_empty": Keeps("E-V2", HEADER, "The empty short string", NO_NAMES, "01", {"string": ""}),
    "short_string_of_63_bytes": Keeps(
        "E-V2", HEADER, "The longest short string", NO_NAMES, "fd" + "78" * 63, {"string": "x" * 63}
    ),
    "string_of_64_bytes": Keeps(
        "E-V2",
        HEADER,
        "The shortest string that cannot be short",
        NO_NAMES,
        "40 40000000" + "78" * 64,
        {"string": "x" * 64},
    ),
    "string_longer_than_needed": Keeps(
        "E-V2 E-Q1",
        HEADER,
        "A short text may be a long string",
        NO_NAMES,
        "40 03000000 6e2f61",
        {"string": "n/a"},
    ),
    "short_string_of_3_bytes": Keeps(
        "E-V2 E-Q1", HEADER, "A short string of three bytes", NO_NAMES, "0d 6e2f61", {"string": "n/a"}
    ),
    "short_string_not_utf8": Breaks(
        "E-V2", TEXT, "A short string that is not UTF-8 is rejected", NO_NAMES, "05 ff"
    ),
    "string_not_utf8": Breaks(
        "E-V2", TEXT, "A string that is not UTF-8 is rejected", NO_NAMES, "40 02000000 c328"
    ),
    "short_string_cut": Breaks(
        "E-V2 E-Q5", HEADER, "A short string that is cut is rejected", NO_NAMES, "0d 6e2f"
    ),
    "unknown_primitive": Breaks(
        "E-V4 E-V3", VERSIONS, "An undefined primitive type has no JSON text", NO_NAMES, "54 01"
    ),
    "decimal_scale_beyond_digits": Keeps(
        "E-V5",
        TYPES,
        "A scale may be larger than the number of digits",
        NO_NAMES,
        "20 04 01000000",
        {"decimal4": "0.0001"},
        0.0001,
    ),
    "decimal_scale_38": Keeps(
        "E-V5",
        TYPES,
        "The largest scale",
        NO_NAMES,
        "28 26 01000000000000000000000000000000",
        {"decimal16": "0." + "0" * 37 + "1"},
        1e-38,
    ),
    "decimal8_of_few_digits": Keeps(
        "E-V5",
        TYPES,
        "A decimal may be wider than its digits need",
        NO_NAMES,
        "24 01 0f00000000000000",
        {"decimal8": "1.5"},
        1.5,
    ),
    "decimal16_of_38_digits": Keeps(
        "E-V5",
        TYPES,
        "The most digits",
        NO_NAMES,
        "28 00 ffffffff3f22 8a097ac4865aa84c3b4b",
        {"decimal16": "9" * 38},
        int("9" * 38),
    ),
    "decimal16_of_39_digits": Breaks(
        "E-V5",
        TYPES,
        "A decimal of 39 digits is rejected",
        NO_NAMES,
        "28 00 00000000 4022 8a09 7ac4 865a a84c 3b4b",
    ),
    "decimal_scale_39": Breaks("E-V5", TYPES, "A scale above 38 is rejected", NO_NAMES, "20 27 01000000"),
    "decimal4_of_10_digits": Breaks(
        "E-V5",
        TYPES,
        "A decimal with more digits than its width is for: read, or rejected",
        NO_NAMES,
        "20 00 ffffff7f",
        {"decimal4": "2147483647"},
        2147483647,
    ),
    "time_after_midnight": Breaks(
        "E-V3", TYPES, "A time of 24 hours is rejected", NO_NAMES, "44 0060d71d14000000"
    ),
    "time_before_midnight": Breaks(
        "E-V3", TYPES, "A negative time is rejected", NO_NAMES, "44 ffffffffffffffff"
    ),
    "double_nan": Keeps(
        "E-V7", TYPES, "NaN is a double", NO_NAMES, "1c 000000000000f87f", {"double": "NaN"}, ["NaN", None]
    ),
    "double_infinity": Keeps(
        "E-V7",
        TYPES,
        "Infinity is a double",
        NO_NAMES,
        "1c 000000000000f07f",
        {"double": "Infinity"},
        ["Infinity", "inf", None],
    ),
    "double_negative_infinity": Keeps(
        "E-V7",
        TYPES,
        "Negative infinity is a double",
        NO_NAMES,
        "1c 000000000000f0ff",
        {"double": "-Infinity"},
        ["-Infinity", "-inf", None],
    ),
    "double_negative_zero": Keeps(
        "E-V7", TYPES, "Zero keeps its sign", NO_NAMES, "1c 0000000000000080", {"double": "-0.0"}, -0.0
    ),
    "float_nan": Keeps(
        "E-V7", TYPES, "NaN is a float", NO_NAMES, "38 0000c07f", {"float": "NaN"}, ["NaN", None]
    ),
    "float_is_not_double": Keeps(
        "E-Q1",
        TYPES,
        "A float keeps the digits of a float",
        NO_NAMES,
        "38 cdcccc3d",
        {"float": 0.1},
        [0.1, 0.10000000149011612],
    ),
    "whole_decimal": Keeps(
        "E-Q1",
        "VariantEncoding.md, Equivalence Class",
        "1.00 is the number 1",
        NO_NAMES,
        "28 02 64000000000000000000000000000000",
        {"decimal16": "1.00"},
        1,
    ),
    "string_of_4294967295_bytes": Breaks(
        "E-Q4", HEADER, "A length of missing text is rejected immediately", NO_NAMES, "40 ffffffff 61"
    ),
    "binary_of_4294967295_bytes": Breaks(
        "E-Q4", HEADER, "A length of missing bytes is rejected immediately", NO_NAMES, "3c ffffffff 61"
    ),
}

OBJECT_CASES: dict[str, Keeps | Breaks] = {
    "object_of_two_fields": Keeps(
        "E-O1 E-O3 E-O5 E-O7",
        OBJECT,
        "Fields have their names by id",
        A_B,
        "02 02 00 01 00 02 04 0c01 0c02",
        ONE_TWO,
    ),
    "object_empty": Keeps("E-O8", OBJECT, "An empty object has three bytes", NO_NAMES, "02 00 00", obj()),
    "object_without_offset": Breaks(
        "E-O8 E-O1", OBJECT, "Even an empty object has one offset", NO_NAMES, "02 00"
    ),
    "object_reserved_bit": Keeps("E-O1", OBJECT, "The highest bit is ignored", A, "82 01 00 00 02 0c01", ONE),
    "object_is_large_of_one_field": Keeps(
        "E-O2 E-O1", OBJECT, "The count may have four bytes", A, "42 01000000 00 00 02 0c01", ONE
    ),
    "object_is_large_and_empty": Keeps(
        "E-O2", OBJECT, "The count of none may have four bytes", NO_NAMES, "42 00000000 00", obj()
    ),
    "object_of_widest_ids_and_offsets": Keeps(
        "E-O2 E-O1",
        OBJECT,
        "Ids and offsets may be wider than needed",
        A,
        "7e 01000000 00000000 00000000 02000000 0c01",
        ONE,
    ),
    "object_ids_of_3_bytes": Keeps(
        "E-O1", OBJECT, "Ids may have three bytes", A, "22 01 000000 00 02 0c01", ONE
    ),
    "object_offsets_of_2_bytes": Keeps(
        "E-O1", OBJECT, "Offsets may have two bytes", A, "06 01 00 0000 0200 0c01", ONE
    ),
    "object_is_large_with_a_count_of_one_byte": Breaks(
        "E-O2", OBJECT, "A large object has a count of four bytes", A, "42 01 00 00 02 0c01"
    ),
    "object_of_4294967295_fields": Breaks(
        "E-Q4",
        OBJECT,
        "A count of missing fields is rejected immediately",
        A,
        "42 ffffffff 00 00 02 0c01",
    ),
    "object_values_in_document_order": Keeps(
        "E-O3 E-O4",
        OBJECT,
        "Values may be in another order than the names",
        A_B_C,
        "02 03 00 01 02 04 02 00 06 0c03 0c02 0c01",
        obj(a=int8(1), b=int8(2), c=int8(3)),
    ),
    "object_fields_out_of_order": Breaks(
        "E-O3",
        ORDER,
        "Fields that are not sorted by name: read or rejected, but never lost",
        A_B,
        "02 02 01 00 00 02 04 0c02 0c01",
        ONE_TWO,
    ),
    "object_fields_in_utf16_order": Breaks(
        "E-O3",
        ORDER,
        "Fields in UTF-16 order, as one engine sorts them: read or rejected, but never lost",
        "01 02 00 03 07 efac81 f09f9880",
        "02 02 01 00 00 02 04 0c02 0c01",
        {"object": {"ﬁ": int8(1), "😀": int8(2)}},
    ),
    "object_fields_in_utf8_order": Keeps(
        "E-O3",
        ORDER,
        "U+FB01 comes before U+1F600, as their UTF-8 bytes do",
        "01 02 00 03 07 efac81 f09f9880",
        "02 02 00 01 00 02 04 0c01 0c02",
        {"object": {"ﬁ": int8(1), "😀": int8(2)}},
    ),
    "object_last_offset_too_large": Breaks(
        "E-O4 E-O7", OBJECT, "The last offset is the size of all values", A, "02 01 00 00 05 0c01"
    ),
    "object_last_offset_too_small": Breaks(
        "E-O4 E-O7",
        OBJECT,
        "A value that reaches beyond the last offset is rejected",
        A,
        "02 01 00 00 01 0c01",
    ),
    "object_field_twice_by_one_id": Breaks(
        "E-O5", ORDER, "Duplicate names are rejected", A, "02 02 00 00 00 02 04 0c01 0c02"
    ),
    "object_field_twice_by_two_ids": Breaks(
        "E-O5",
        ORDER,
        "Duplicate names are rejected, even if the name has two ids",
        "01 02 00 01 02 6161",
        "02 02 00 01 00 02 04 0c01 0c02",
    ),
    "object_names_that_differ_in_case": Keeps(
        "E-O6",
        ORDER,
        "a and A are two names",
        "01 02 00 01 02 4161",
        "02 02 00 01 00 02 04 0c02 0c01",
        obj(A=int8(2), a=int8(1)),
    ),
    "object_id_beyond_dictionary": Breaks(
        "E-O7", OBJECT, "An id that is not in the dictionary is rejected", A, "02 01 01 00 02 0c01"
    ),
    "object_offset_beyond_last": Breaks(
        "E-O7", OBJECT, "An offset after the last one is rejected", A, "02 01 00 03 02 0c01 0c01"
    ),
    "object_value_reaches_out": Breaks(
        "E-O7", OBJECT, "A value must lie within its object", A, "02 01 00 00 02 14 01 000000"
    ),
    "object_of_fields_that_share_a_value": Keeps(
        "E-O9",
        OBJECT,
        "Two fields may point to the same bytes",
        A_B,
        "02 02 00 01 00 00 02 0c01",
        obj(a=int8(1), b=int8(1)),
        may_reject=True,
    ),
    "object_with_gaps": Keeps(
        "E-O9",
        OBJECT,
        "Bytes that no field refers to are allowed",
        A,
        "02 01 00 01 04 ff 0c01 ff",
        ONE,
        may_reject=True,
    ),
    "object_of_fields_that_share_an_array": Breaks(
        "E-O9 E-Q4",
        OBJECT,
        "Nested values that share bytes could multiply without bound: rejected, or read",
        A_B,
        "02 02 00 01 00 00 06 03 01 00 02 0c01",
        obj(a={"array": [int8(1)]}, b={"array": [int8(1)]}),
    ),
    "object_in_object": Keeps(
        "E-Q3",
        "VariantEncoding.md, Variant encoding",
        "A nested object takes its names from the one dictionary",
        A_B,
        "02 01 00 00 07 02 01 01 00 02 0c01",
        obj(a=obj(b=int8(1))),
    ),
    "object_by_another_dictionary": Keeps(
        "E-Q2 E-M10",
        ORDER,
        "The same object by a dictionary of other names in another order",
        "01 04 00 01 02 03 04 7a626179",
        "02 02 02 01 00 02 04 0c01 0c02",
        ONE_TWO,
    ),
}

ARRAY_CASES: dict[str, Keeps | Breaks] = {
    "array_of_two": Keeps(
        "E-A1",
        ARRAY,
        "Elements in order",
        NO_NAMES,
        "03 02 00 02 04 0c01 0c02",
        {"array": [int8(1), int8(2)]},
    ),
    "array_empty": Keeps(
        "E-A1", ARRAY, "An empty array has three bytes", NO_NAMES, "03 00 00", {"array": []}
    ),
    "array_without_offset": Breaks("E-A1", ARRAY, "Even an empty array has one offset", NO_NAMES, "03 00"),
    "array_reserved_bits": Keeps(
        "E-A1",
        ARRAY,
        "The three highest bits are ignored",
        NO_NAMES,
        "e3 01 00 02 0c01",
        {"array": [int8(1)]},
    ),
    "array_is_large_of_one": Keeps(
        "E-A1",
        ARRAY,
        "The count may have four bytes",
        NO_NAMES,
        "13 01000000 00 02 0c01",
        {"array": [int8(1)]},
    ),
    "array_offsets_of_3_bytes": Keeps(
        "E-A1",
        ARRAY,
        "Offsets may have three bytes",
        NO_NAMES,
        "0b 01 000000 020000 0c01",
        {"array": [int8(1)]},
    ),
    "array_offsets_of_4_bytes": Keeps(
        "E-A1",
        ARRAY,
        "Offsets may have four bytes",
        NO_NAMES,
        "0f 01 00000000 02000000 0c01",
        {"array": [int8(1)]},
    ),
    "array_of_more_than_there_are": Breaks(
        "E-A1 E-Q5", ARRAY, "A count beyond the bytes is rejected", NO_NAMES, "03 09 00 02 0c01"
    ),
    "array_of_4294967295": Breaks(
        "E-Q4",
        ARRAY,
        "A count of missing elements is rejected immediately",
        NO_NAMES,
        "1f ffffffff 00000000",
    ),
    "array_values_out_of_order": Keeps(
        "E-A2",
        ARRAY,
        "Offset i is the start of element i",
        NO_NAMES,
        "03 02 02 00 04 0c02 0c01",
        {"array": [int8(1), int8(2)]},
        may_reject=True,
    ),
    "array_offset_beyond_last": Breaks(
        "E-A2", ARRAY, "An offset after the last one is rejected", NO_NAMES, "03 01 04 02 0c01 0c01"
    ),
    "array_with_null": Keeps(
        "E-A3",
        ARRAY,
        "A null element is Variant null",
        NO_NAMES,
        "03 02 00 01 03 00 0c01",
        {"array": [{"null": None}, int8(1)]},
    ),
    "array_with_nothing": Breaks(
        "E-A3", ARRAY, "An element of zero bytes is rejected", NO_NAMES, "03 02 00 02 02 0c01"
    ),
}


def primitives() -> dict[str, Keeps | Breaks]:
    """Return each primitive complete, and without its last byte if it has more than its header."""
    cases: dict[str, Keeps | Breaks] = {}
    for name, (value, typed, texts) in PRIMITIVES.items():
        cases[f"primitive_{name}"] = Keeps(
            "E-V3 E-Q5", TYPES, f"The type {name}", NO_NAMES, value, typed, texts
        )
        if name not in ("true", "false"):
            cut = value[:-2]
            cases[f"cut_{name}"] = Breaks("E-V3 E-Q5", TYPES, f"A cut {name} is rejected", NO_NAMES, cut)
    return cases


def many_fields(count: int) -> Keeps:
    """Return an object of null fields, named 000 and up."""
    names = [f"{number:03}" for number in range(count)]
    ends = b"".join((3 * number).to_bytes(2, "little") for number in range(count + 1))
    metadata = b"\x41" + count.to_bytes(2, "little") + ends + "".join(names).encode()
    wide = count > 255
    ids = b"".join(number.to_bytes(2 if wide else 1, "little") for number in range(count))
    offsets = b"".join(number.to_bytes(2, "little") for number in range(count + 1))
    header = bytes([0x56]) + count.to_bytes(4, "little") if wide else bytes([0x06, count])
    value = header + ids + offsets + bytes(count)
    typed = {"object": {name: {"null": None} for name in names}}
    about = f"An object of {count} fields"
    return Keeps("E-O2 E-O8 E-M4", OBJECT, about, metadata.hex(), value.hex(), typed)


def nested_arrays(depth: int) -> Keeps:
    """Return nested arrays of one element each, with null in the innermost."""
    value, typed = b"\x00", {"null": None}
    for _ in range(depth):
        value = b"\x07\x01\x00\x00" + len(value).to_bytes(2, "little") + value
        typed = {"array": [typed]}
    return Keeps("E-M11 E-Q4", ARRAY, f"Arrays nested {depth} deep", "010000", value.hex(), typed)


def plain_json(typed: dict[str, Any]) -> Any:
    """Return the JSON of a typed value whose types all have a standard form."""
    [(kind, payload)] = typed.items()
    if kind == "object":
        return {name: plain_json(field) for name, field in payload.items()}
    if kind == "array":
        return [plain_json(element) for element in payload]
    assert kind in ("null", "boolean", "string", "int8", "int16", "int32", "int64"), kind
    return payload


def expected(case: Keeps | Breaks) -> dict[str, Any]:
    error = {"error": MALFORMED}
    if case.typed is None:
        return error
    texts = plain_json(case.typed) if case.json is NO_JSON else case.json
    answer = {"rows": [case.typed], "json": texts if isinstance(case.json, list) else [texts]}
    may_reject = isinstance(case, Breaks) or case.may_reject
    return {**answer, **error} if may_reject else answer


def main() -> None:
    cases = {**METADATA_CASES, **primitives(), **VALUE_CASES, **OBJECT_CASES, **ARRAY_CASES}
    cases.update({f"object_of_{count}_fields": many_fields(count) for count in (255, 256)})
    cases["nested_100_deep"] = nested_arrays(100)
    for name, case in cases.items():
        given = {"metadata": case.metadata.replace(" ", ""), "value": case.value.replace(" ", "")}
        verdict = "keeps" if isinstance(case, Keeps) else "breaks"
        new_case("decode", name, case.rules, verdict, case.section, case.about, given, expected(case))
    print(f"{len(cases)} cases of decode")


if __name__ == "__main__":
    main()
