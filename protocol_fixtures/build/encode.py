"""Write the cases of the kind `encode`: `python protocol_fixtures/build/encode.py`.

The bytes were written manually from VariantEncoding.md: numbers in the narrowest type, short strings of up to
63 bytes, names sorted and marked as sorted, values in the order of the document.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from case_folder import Case, new_case
from variant_bytes import int8

NUMBERS = "VariantEncoding.md, Encoding types"
TEXT = "VariantEncoding.md, String values must be UTF-8 encoded"
METADATA = "VariantEncoding.md, Metadata encoding"
OBJECT = "VariantEncoding.md, Value Data for Object"
ARRAY = "VariantEncoding.md, Value Data for Array"
ORDER = "VariantEncoding.md, Object field ID order and uniqueness"

NO_NAMES = "010000"

Typed = dict[str, Any]


@dataclass(frozen=True)
class Text:
    """JSON text and its Variant: ours writes `metadata` and `value`, and `also` is correct, too."""

    rules: str
    about: str
    json: str
    typed: Typed
    value: str
    metadata: str = NO_NAMES
    section: str = NUMBERS
    also: Sequence[Typed] = ()


@dataclass(frozen=True)
class Rejected:
    """Text that cannot become a Variant."""

    rules: str
    about: str
    json: str
    section: str = NUMBERS


def number(text: str, kind: str, value: str) -> Text:
    return Text("E-V6 E-V3", f"{text} is the narrowest integer that holds it", text, {kind: int(text)}, value)


def double(text: str, value: float, data: str, about: str) -> Text:
    return Text("E-V6", about, text, {"double": value}, "1c" + data)


LARGEST = "9" * 38

NUMBER_CASES: dict[str, Text | Rejected] = {
    "int8_largest": number("127", "int8", "0c 7f"),
    "int8_smallest": number("-128", "int8", "0c 80"),
    "int16_next": number("128", "int16", "10 8000"),
    "int16_smallest": number("-32768", "int16", "10 0080"),
    "int32_next": number("32768", "int32", "14 00800000"),
    "int32_smallest": number("-2147483648", "int32", "14 00000080"),
    "int64_next": number("2147483648", "int64", "18 0000008000000000"),
    "int64_smallest": number("-9223372036854775808", "int64", "18 0000000000000080"),
    "integer_beyond_int64": Text(
        "E-V6",
        "An integer outside of int64 is a decimal",
        "9223372036854775808",
        {"decimal16": "9223372036854775808"},
        "28 00 00000000000000800000000000000000",
        also=[{"double": 9.223372036854775808e18}],
    ),
    "integer_of_38_digits": Text(
        "E-V6 E-V5",
        "The largest decimal",
        LARGEST,
        {"decimal16": LARGEST},
        "28 00 ffffffff3f228a097ac4865aa84c3b4b",
        also=[{"double": 1e38}],
    ),
    "integer_of_39_digits": double(
        "1" + "0" * 38, 1e38, "b1a1162ad3ced247", "An integer of 39 digits is a double"
    ),
    "fraction": Text(
        "E-V6",
        "A plain fraction is a decimal",
        "1.5",
        {"decimal4": "1.5"},
        "20 01 0f000000",
        also=[{"double": 1.5}],
    ),
    "fraction_negative": Text(
        "E-V6",
        "A negative fraction",
        "-0.01",
        {"decimal4": "-0.01"},
        "20 02 ffffffff",
        also=[{"double": -0.01}],
    ),
    "fraction_of_10_digits": Text(
        "E-V6",
        "A decimal of ten digits takes eight bytes",
        "12345678.90",
        {"decimal8": "12345678.90"},
        "24 02 d202964900000000",
        also=[{"double": 12345678.9}],
    ),
    "fraction_of_19_digits": Text(
        "E-V6",
        "A decimal of nineteen digits takes sixteen bytes",
        "1.000000000000000001",
        {"decimal16": "1.000000000000000001"},
        "28 12 010064a7b3b6e00d0000000000000000",
        also=[{"double": 1.0}],
    ),
    "exponent": double("1e2", 100.0, "0000000000005940", "A number with an exponent is a double"),
    "exponent_negative": double("-5E-1", -0.5, "000000000000e0bf", "An exponent in capitals, and negative"),
}

OTHER_CASES: dict[str, Text | Rejected] = {
    "null": Text(
        "E-V3 E-M5 E-M3", "null is Variant null, with metadata of three bytes", "null", {"null": None}, "00"
    ),
    "true": Text("E-V3", "true", " true ", {"boolean": True}, "04"),
    "false": Text("E-V3", "false", "false", {"boolean": False}, "08"),
    "text_empty": Text("E-V2", "The empty text", '""', {"string": ""}, "01", section=TEXT),
    "text_of_63_bytes": Text(
        "E-V2",
        "The longest short string",
        '"' + "x" * 63 + '"',
        {"string": "x" * 63},
        "fd" + "78" * 63,
        section=TEXT,
    ),
    "text_of_64_bytes": Text(
        "E-V2",
        "The shortest string that cannot be short",
        '"' + "x" * 64 + '"',
        {"string": "x" * 64},
        "40 40000000" + "78" * 64,
        section=TEXT,
    ),
    "text_of_32_characters_of_2_bytes": Text(
        "E-V2",
        "The length of a string is that of its UTF-8",
        '"' + "é" * 32 + '"',
        {"string": "é" * 32},
        "40 40000000" + "c3a9" * 32,
        section=TEXT,
    ),
    "text_with_escapes": Text(
        "E-V2",
        "Escapes, and a pair of surrogates",
        r'"\u00e9\n\"\\\/\ud83d\ude00"',
        {"string": 'é\n"\\/😀'},
        "29 c3a9 0a 22 5c 2f f09f9880",
        section=TEXT,
    ),
    "text_with_a_lone_surrogate": Rejected(
        "E-V2 P-T6", "A lone surrogate cannot be encoded in UTF-8", r'"\ud83d"', TEXT
    ),
    "array_empty": Text(
        "E-A1", "An empty array has three bytes", "[]", {"array": []}, "03 00 00", section=ARRAY
    ),
    "array_with_null": Text(
        "E-A1 E-A2 E-A3",
        "Elements lie in order, and null is one of them",
        '[1, null, "a"]',
        {"array": [int8(1), {"null": None}, {"string": "a"}]},
        "03 03 00 02 03 05 0c01 00 0561",
        section=ARRAY,
    ),
    "object_empty": Text(
        "E-O8", "An empty object has three bytes", "{}", {"object": {}}, "02 00 00", section=OBJECT
    ),
    "object_sorted": Text(
        "E-O1 E-O3 E-O4 E-M1 E-M7",
        "Names are sorted, and values stay in the order of the document",
        '{"c": 3, "b": 2, "a": 1}',
        {"object": {"a": int8(1), "b": int8(2), "c": int8(3)}},
        "02 03 00 01 02 04 02 00 06 0c03 0c02 0c01",
        "11 03 00 01 02 03 616263",
        OBJECT,
    ),
    "object_sorted_by_utf8": Text(
        "E-O3",
        "U+FB01 comes before U+1F600, as their UTF-8 bytes do",
        '{"😀": 1, "ﬁ": 2}',
        {"object": {"ﬁ": int8(2), "😀": int8(1)}},
        "02 02 00 01 02 00 04 0c01 0c02",
        "11 02 00 03 07 efac81 f09f9880",
        ORDER,
    ),
    "object_with_an_empty_name": Text(
        "E-M8",
        "The empty text is a name",
        '{"": 1}',
        {"object": {"": int8(1)}},
        "02 01 00 00 02 0c01",
        "11 01 00 00",
        METADATA,
    ),
    "object_names_that_differ_in_case": Text(
        "E-O6",
        "a and A are two names",
        '{"a": 1, "A": 2}',
        {"object": {"A": int8(2), "a": int8(1)}},
        "02 02 00 01 02 00 04 0c01 0c02",
        "11 02 00 01 02 4161",
        ORDER,
    ),
    "object_names_once": Text(
        "E-M10 E-Q3",
        "A name is in the dictionary once, wherever it is used",
        '{"a": {"a": 1}}',
        {"object": {"a": {"object": {"a": int8(1)}}}},
        "02 01 00 00 07 02 01 00 00 02 0c01",
        "11 01 00 01 61",
        METADATA,
    ),
    "object_with_a_name_twice": Rejected("E-O5", "Duplicate names are rejected", '{"a": 1, "a": 2}', ORDER),
    "object_with_a_name_twice_escaped": Rejected(
        "E-O5", "Duplicate names are rejected, however they are escaped", r'{"a": 1, "\u0061": 2}', ORDER
    ),
    "dictionary_of_256_bytes": Text(
        "E-M4",
        "Names of 256 bytes need offsets of two",
        '{"' + "n" * 256 + '": null}',
        {"object": {"n" * 256: {"null": None}}},
        "02 01 00 00 01 00",
        "51 0100 0000 0001" + "6e" * 256,
        METADATA,
    ),
    "object_of_256_bytes": Text(
        "E-O8 E-O1",
        "Values of 256 bytes need offsets of two",
        '{"a": "' + "x" * 251 + '"}',
        {"object": {"a": {"string": "x" * 251}}},
        "06 01 00 0000 0001 40 fb000000" + "78" * 251,
        "11 01 00 01 61",
        OBJECT,
    ),
    "array_of_256": Text(
        "E-A1 E-O2",
        "More than 255 elements have a count of four bytes",
        "[" + ",".join(["null"] * 256) + "]",
        {"array": [{"null": None}] * 256},
        "17 00010000" + "".join(index.to_bytes(2, "little").hex() for index in range(257)) + "00" * 256,
        section=ARRAY,
    ),
    "text_after_the_value": Rejected("E-V6", "One text is one value", "1 2"),
    "number_with_a_leading_zero": Rejected("E-V6", "Numbers have no leading zeros", "01"),
    "nan_is_no_json": Rejected("E-V6 E-V7", "JSON has no NaN", "NaN"),
}


def main() -> None:
    cases = {**NUMBER_CASES, **OTHER_CASES}
    for name, case in cases.items():
        verdict, given = "keeps" if isinstance(case, Text) else "breaks", {"json": case.json}
        new_case("encode", name, case.rules, verdict, case.section, case.about, given, expected(case))
    print(f"{len(cases)} cases of encode")


def expected(case: Text | Rejected) -> Case:
    if isinstance(case, Rejected):
        return {"error": "InvalidJsonError"}
    also = {"also": list(case.also)} if case.also else {}
    written = {"metadata": case.metadata.replace(" ", ""), "value": case.value.replace(" ", "")}
    return {"rows": [case.typed], **also, "hex": written}


if __name__ == "__main__":
    main()
