"""Write the cases of the kind `file`: `python protocol_fixtures/build/files.py`.

Files as other writers leave them: annotations, the order of columns, further columns, names, encodings.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import Any

import pyarrow as pa
from shredded_files import (
    NULL,
    ONE,
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

from delta_variant_conformance.parquet_footer import Element

GROUP = "VariantShredding.md, Value Shredding"
ANNOTATION = "LogicalTypes.md, VARIANT"
NOT_ANNOTATED = "VariantEncoding.md, Variant in Parquet: the group is to be annotated"
UNSHREDDED = "VariantEncoding.md, Variant in Parquet"
EXTRA = "specs/spark-shredding-draft.md: names that begin with an underscore"

INT64 = pa.int64()
A, A_B = names("a"), names("a", "b")


def mixed(**options: Any) -> FileCase:
    """Return a shredded object, one with additional fields, a scalar and SQL NULL.

    Variant null as a row has files of its own: these are about something else.
    """
    kind = object_of(a=INT64, b=pa.string())
    rest = v("object", {"c": {"int8": 3}}, "a", "b", "c")
    a_b_c = names("a", "b", "c")
    return FileCase(
        "P-S1",
        "",
        variant(kind, **options),
        [
            row({"a": pair(1), "b": pair("x")}, of=A_B),
            row({"a": pair(2), "b": pair(residue=ONE)}, rest, of=a_b_c),
            row(residue=v("string", "y"), of=names()),
            None,
        ],
        [
            {"object": {"a": {"int64": 1}, "b": {"string": "x"}}},
            {"object": {"a": {"int64": 2}, "b": {"int8": 1}, "c": {"int8": 3}}},
            {"string": "y"},
            None,
        ],
        section=GROUP,
    )


def about(case: FileCase, rules: str, sentence: str, section: str = GROUP, **options: Any) -> FileCase:
    return replace(case, rules=rules, about=sentence, section=section, **options)


ORDERS = {
    "order_" + "_".join(order): about(
        mixed(order=order), "P-S1", f"Members in the order {', '.join(order)}: they are found by name"
    )
    for order in permutations(("metadata", "value", "typed_value"))
}

SCALARS = FileCase(
    "P-S3",
    "",
    variant(required=("metadata", "value")),
    [row(residue=ONE), row(residue=v("object", {"a": {"int8": 1}}, "a"), of=A), None],
    [{"int8": 1}, {"object": {"a": {"int8": 1}}}, None],
    section=UNSHREDDED,
)

ANNOTATIONS = {
    "annotated": about(mixed(), "P-S2 P-X2", "A group annotated VARIANT(1)", ANNOTATION),
    "annotated_without_a_version": about(
        mixed(),
        "P-S2",
        "A group annotated VARIANT without a version of the specification: read, or rejected",
        "LogicalTypes.md, VARIANT: the version is to be there; parquet.thrift: it is optional",
        version=None,
        error="DataFileError",
    ),
    "annotated_version_2": about(
        mixed(),
        "P-S2",
        "A group annotated VARIANT(2) is rejected",
        ANNOTATION,
        version=2,
        verdict="breaks",
        typed=None,
        error="DataFileError",
    ),
    "not_annotated": about(
        mixed(),
        "P-S2",
        "A shredded group without annotation, in a column that is known to be a Variant: read, or rejected",
        NOT_ANNOTATED,
        annotated=False,
        error="DataFileError",
    ),
    "not_annotated_unshredded": about(
        SCALARS,
        "P-S2 P-S3",
        "An unshredded group without annotation, as Spark 4.0 writes it: read, or rejected",
        NOT_ANNOTATED,
        annotated=False,
        error="DataFileError",
    ),
    "not_annotated_value_first": about(
        replace(SCALARS, type=variant(order=("value", "metadata"), required=("metadata", "value"))),
        "P-S1 P-S2",
        "An unshredded group of `value` and `metadata` without annotation: read, or rejected",
        NOT_ANNOTATED,
        annotated=False,
        error="DataFileError",
    ),
    "not_annotated_optional_metadata": about(
        mixed(required=()),
        "P-S1 P-S2",
        "Neither an annotation nor a required `metadata`: read, or rejected",
        NOT_ANNOTATED,
        annotated=False,
        error="DataFileError",
    ),
    "not_annotated_typed_value_alone": about(
        FileCase(
            "", "", variant(INT64, order=("metadata", "typed_value")), [row(1), None], [{"int64": 1}, None]
        ),
        "P-S2 P-S4",
        "A group of `metadata` and `typed_value` alone, without annotation: read, or rejected",
        NOT_ANNOTATED,
        annotated=False,
        error="DataFileError",
    ),
}

MEMBERS = {
    "unshredded": about(
        SCALARS, "P-S3", "Required `metadata` and `value`, as the specification asks for", UNSHREDDED
    ),
    "unshredded_optional_value": about(
        replace(SCALARS, type=variant()), "P-S3", "An optional `value` that no row lacks", UNSHREDDED
    ),
    "optional_metadata": about(mixed(required=()), "P-S1", "An optional `metadata` that no row lacks"),
    "required_value": about(
        FileCase("", "", variant(None, required=("metadata", "value")), [row(residue=ONE)], [{"int8": 1}]),
        "P-S1",
        "A required `value`",
    ),
    "required_column": about(
        replace(mixed(), rows=mixed().rows[:3], typed=(mixed().typed or ())[:3], required=True),
        "P-S12",
        "A column without SQL NULL",
    ),
    "no_metadata": about(
        FileCase("", "", variant(INT64, order=("value", "typed_value")), [row(1)]),
        "P-S1",
        "A group without `metadata` is rejected",
        verdict="breaks",
        error="ShreddingError",
    ),
    "metadata_is_text": about(
        FileCase(
            "",
            "",
            pa.struct([pa.field("metadata", pa.string(), nullable=False), pa.field("value", pa.binary())]),
            [{"metadata": "\x01\x00\x00", "value": ONE}],
        ),
        "P-S1",
        "A `metadata` annotated as text is rejected",
        verdict="breaks",
        error="ShreddingError",
    ),
    "value_is_a_number": about(
        FileCase(
            "",
            "",
            pa.struct([pa.field("metadata", pa.binary(), nullable=False), pa.field("value", INT64)]),
            [{"metadata": names(), "value": 1}],
        ),
        "P-S1",
        "A `value` that is not binary is rejected",
        verdict="breaks",
        error="ShreddingError",
    ),
}

UNDERSCORED = pa.field("_source", pa.string())


def with_extra(
    sentence: str, rules: str, arrow_type: pa.DataType, rows: list[Any], typed: list[Any]
) -> FileCase:
    return FileCase(
        rules, sentence, arrow_type, rows, typed, verdict="breaks", section=EXTRA, error="ShreddingError"
    )


def one_field(*more: pa.Field[Any]) -> pa.DataType:
    return pa.struct([pa.field("a", group(INT64, *more), nullable=False)])


def one_element(*more: pa.Field[Any]) -> pa.DataType:
    return pa.list_(pa.field("element", group(INT64, *more), nullable=False))


OTHER = pa.field("other", INT64)
EXTRAS = {
    "underscored_at_the_root": with_extra(
        "A member whose name begins with an underscore: ignored, or rejected",
        "P-X1 P-X3",
        variant(INT64, UNDERSCORED),
        [{**row(1), "_source": "x"}],
        [{"int64": 1}],
    ),
    "underscored_in_a_field": with_extra(
        "A member with an underscore in the group of a field: ignored, or rejected",
        "P-X1 P-X3",
        variant(one_field(UNDERSCORED)),
        [row({"a": {**pair(1), "_source": "x"}}, of=A)],
        [{"object": {"a": {"int64": 1}}}],
    ),
    "underscored_in_an_element": with_extra(
        "A member with an underscore in the group of an element: ignored, or rejected",
        "P-X1 P-X3",
        variant(one_element(UNDERSCORED)),
        [row([{**pair(1), "_source": "x"}])],
        [{"array": [{"int64": 1}]}],
    ),
    "other_at_the_root": replace(
        with_extra(
            "An additional member is rejected", "P-X2", variant(INT64, OTHER), [{**row(1), "other": 2}], []
        ),
        typed=None,
    ),
    "other_in_a_field": replace(
        with_extra(
            "An additional member in the group of a field is rejected",
            "P-X2",
            variant(one_field(OTHER)),
            [row({"a": {**pair(1), "other": 2}}, of=A)],
            [],
        ),
        typed=None,
    ),
    "other_in_an_element": replace(
        with_extra(
            "An additional member in the group of an element is rejected",
            "P-X2",
            variant(one_element(OTHER)),
            [row([{**pair(1), "other": 2}])],
            [],
        ),
        typed=None,
    ),
    "metadata_in_a_field": replace(
        with_extra(
            "A `metadata` of a field's own is rejected",
            "P-X2 W8",
            variant(one_field(pa.field("metadata", pa.binary()))),
            [row({"a": {**pair(1), "metadata": A}}, of=A)],
            [],
        ),
        typed=None,
    ),
    "shredded_field_with_an_underscore": FileCase(
        "P-X5",
        "A shredded field called _id is a field as any other",
        variant(object_of(_id=INT64)),
        [row({"_id": pair(1)}, of=names("_id"))],
        [{"object": {"_id": {"int64": 1}}}],
        section=EXTRA,
    ),
}


def other_list_names(column: Element) -> None:
    array = column.at("typed_value")
    array.at("list").name = "bag"
    array.at("bag", "element").name = "item"


LAYOUT_NAMES = ("", "a.b", "element", "key", "list", "metadata", "typed_value", "value")


def field_names(*dictionary: str) -> FileCase:
    """Return objects of these names: all shredded, then each name in `value` alone."""
    numbers = {name: number for number, name in enumerate(dictionary)}
    typed = {name: pair(number) for name, number in numbers.items()}
    first = {"object": {name: {"int64": number} for name, number in numbers.items()}}
    none = {name: pair() for name in dictionary}
    others = [f"{name}!" for name in dictionary]
    others_typed = {"object": {name: {"int8": 1} for name in others}}
    both = sorted([*dictionary, *others])
    return FileCase(
        "P-S8",
        "Shredded fields may have any name, including those of the layout: they are resolved level by level",
        variant(object_of(**dict.fromkeys(dictionary, INT64))),
        [
            row(typed, of=names(*dictionary)),
            row(none, v("object", {name: {"int8": 1} for name in others}, *both), of=names(*both)),
        ],
        [first, others_typed],
    )


def nested_names() -> FileCase:
    """Return three nested objects, all called value."""
    inner = object_of(value=object_of(value=INT64))
    levels = pair({"value": pair({"value": pair(7)})})
    return FileCase(
        "P-S8",
        "Objects called value within each other",
        variant(object_of(value=inner)),
        [row({"value": levels}, of=names("value"))],
        [{"object": {"value": {"object": {"value": {"object": {"value": {"int64": 7}}}}}}}],
    )


NAMES = {
    "names_of_the_layout": field_names(*LAYOUT_NAMES),
    "names_of_the_layout_nested": nested_names(),
    "name_like_a_variant_group": FileCase(
        "P-S8 P-S9",
        "A shredded object with fields called metadata and value is not a Variant",
        variant(object_of(metadata=pa.binary(), value=pa.binary())),
        [row({"metadata": pair(b"\x01"), "value": pair(b"\x02")}, of=names("metadata", "value"))],
        [{"object": {"metadata": {"binary": "01"}, "value": {"binary": "02"}}}],
    ),
    "list_and_element_of_other_names": FileCase(
        "P-S6",
        "The groups of a list may have other names",
        variant(array_of(INT64)),
        [row([pair(1), pair(2)])],
        [{"array": [{"int64": 1}, {"int64": 2}]}],
        change=other_list_names,
    ),
}


def stored(sentence: str, **parquet: Any) -> FileCase:
    return about(
        mixed(), "P-S1", sentence, "parquet-format, Encodings.md and Compression.md", parquet=parquet
    )


SPARK_SCHEMA = (
    '{"type":"struct","fields":[{"name":"id","type":"integer","nullable":true,"metadata":{}},'
    '{"name":"v","type":"variant","nullable":true,"metadata":{"__VARIANT_METADATA_KEY":'
    '{"path":"$.a","failOnError":true,"timeZoneId":"UTC"}}}]}'
)

STORAGE = {
    "dictionary_pages": stored("Dictionary pages in every column", use_dictionary=True),
    "data_pages_v2": stored("Data pages of version 2", data_page_version="2.0", compression="snappy"),
    "delta_byte_array": stored(
        "DELTA_BYTE_ARRAY and DELTA_BINARY_PACKED",
        column_encoding={
            "v.metadata": "DELTA_BYTE_ARRAY",
            "v.value": "DELTA_BYTE_ARRAY",
            "v.typed_value.a.typed_value": "DELTA_BINARY_PACKED",
            "v.typed_value.b.typed_value": "DELTA_BYTE_ARRAY",
        },
    ),
    "delta_length_byte_array": stored(
        "DELTA_LENGTH_BYTE_ARRAY",
        column_encoding={
            "v.metadata": "DELTA_LENGTH_BYTE_ARRAY",
            "v.value": "DELTA_LENGTH_BYTE_ARRAY",
            "v.typed_value.b.typed_value": "DELTA_LENGTH_BYTE_ARRAY",
        },
    ),
    "byte_stream_split": stored(
        "BYTE_STREAM_SPLIT", column_encoding={"v.typed_value.a.typed_value": "BYTE_STREAM_SPLIT"}
    ),
    "compressed_snappy": stored("Snappy", compression="snappy"),
    "compressed_gzip": stored("Gzip", compression="gzip"),
    "compressed_zstd": stored("Zstandard", compression="zstd"),
    "compressed_lz4": stored("LZ4_RAW", compression="lz4"),
    "compressed_brotli": stored("Brotli", compression="brotli"),
    "row_group_a_row": stored("A row group for each row", row_group_size=1),
    "without_statistics": stored("The file has no statistics", write_statistics=False),
    "with_page_index": stored("With a page index", write_page_index=True),
    "large_binary_in_arrow": about(
        mixed(),
        "P-S1",
        "An embedded Arrow schema that calls the columns large: only the Parquet schema counts",
        parquet={"store_schema": True},
        arrow_large=True,
    ),
    "leaked_spark_metadata": about(
        mixed(),
        "P-S1",
        "A schema of Spark in the footer, with the metadata of a pushed-down path that leaked into it",
        key_values={"org.apache.spark.sql.parquet.row.metadata": SPARK_SCHEMA},
    ),
}

MORE = {
    "variant_null_children": FileCase(
        "P-T5 R4 W6",
        "Variant null in a field, in an element and within a value",
        variant(object_of(a=INT64, b=array_of(INT64))),
        [
            row({"a": pair(residue=NULL), "b": pair([pair(residue=NULL), pair(1)])}, of=A_B),
            row({"a": pair(residue=v("array", [{"null": None}])), "b": pair(residue=NULL)}, of=A_B),
        ],
        [
            {"object": {"a": {"null": None}, "b": {"array": [{"null": None}, {"int64": 1}]}}},
            {"object": {"a": {"array": [{"null": None}]}, "b": {"null": None}}},
        ],
    ),
    "variant_null_row": FileCase(
        "P-T5 W6",
        "Variant null as a row, between an object and SQL NULL",
        variant(object_of(a=INT64)),
        [row({"a": pair(1)}, of=A), row(residue=NULL, of=A), None],
        [{"object": {"a": {"int64": 1}}}, {"null": None}, None],
    ),
    "variant_null_unshredded": FileCase(
        "P-S3 W6",
        "Variant null and SQL NULL as rows of an unshredded column",
        variant(required=("metadata", "value")),
        [row(residue=ONE), row(residue=NULL), None],
        [{"int8": 1}, {"null": None}, None],
        section=UNSHREDDED,
    ),
    "variant_null_in_all_rows": FileCase(
        "P-T5 W6",
        "All rows are Variant null: none is in `typed_value`",
        variant(INT64),
        [row(residue=NULL), row(residue=NULL)],
        [{"null": None}, {"null": None}],
    ),
    "rows_of_other_shapes": FileCase(
        "R20 E-M10",
        "Each row has a dictionary of its own, with names that nothing uses",
        variant(object_of(a=INT64)),
        [
            row({"a": pair(1)}, of=names("z", "a", "y")),
            row({"a": pair(2)}, v("object", {"q": {"int8": 1}}, "q", "a"), of=names("q", "a")),
        ],
        [{"object": {"a": {"int64": 1}}}, {"object": {"a": {"int64": 2}, "q": {"int8": 1}}}],
    ),
    "no_rows": FileCase("P-S1", "A file without rows", variant(INT64), [], []),
    "no_rows_of_a_refused_type": FileCase(
        "P-S9 R15",
        "A type that `typed_value` cannot have, in a file without rows: rejected, or zero rows",
        variant(pa.uint32()),
        [],
        [],
        error="ShreddingError",
        verdict="breaks",
    ),
}


def main() -> None:
    cases = {**ORDERS, **ANNOTATIONS, **MEMBERS, **EXTRAS, **NAMES, **STORAGE, **MORE}
    for name, case in cases.items():
        write_case("file", name, case)
    print(f"{len(cases)} cases of file")


if __name__ == "__main__":
    main()
