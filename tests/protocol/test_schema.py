"""The schema of a table: JSON, Arrow, merging, validity, column mapping, partition values and statistics."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import count

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.errors import raises_at
from support.strategies import arrow_rows

from delta_variant.errors import MalformedLogError, SchemaError, UnsupportedFeatureError
from delta_variant.protocol.schema.arrow import from_arrow, to_arrow
from delta_variant.protocol.schema.column_mapping import assign_column_mapping, physical_name, physical_schema
from delta_variant.protocol.schema.conforming import conform
from delta_variant.protocol.schema.evolution import merge as merge_schemas
from delta_variant.protocol.schema.json_text import parse as parse_schema
from delta_variant.protocol.schema.json_text import to_json as schema_to_json
from delta_variant.protocol.schema.partition_values import (
    partition_value_from_string,
    partition_value_to_string,
)
from delta_variant.protocol.schema.rules import check_consistent, check_partition_columns
from delta_variant.protocol.schema.rules import check_new as check_new_schema
from delta_variant.protocol.table_configuration import stats_columns
from delta_variant.protocol.types import (
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    fields_of,
)

LONG, INTEGER, STRING, BINARY = (PrimitiveType(name) for name in ("long", "integer", "string", "binary"))
VARIANT_STORAGE = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)])
VARIANT_MARK = {b"ARROW:extension:name": b"arrow.parquet.variant", b"ARROW:extension:metadata": b""}


def struct(**types) -> StructType:
    return StructType(tuple(StructField(name, data_type) for name, data_type in types.items()))


def column(data_type) -> StructType:
    return struct(c=data_type)


# ---- JSON


def written_schemas(corpora) -> Iterator[str]:
    for log in (corpora / "delta-golden").glob("*/_delta_log/*.json"):
        for line in log.read_text(encoding="utf-8").splitlines():
            if "metaData" in (action := json.loads(line)):
                yield action["metaData"]["schemaString"]


def test_the_schemas_of_the_golden_tables_come_back_as_the_text_they_were(corpora):
    """Keys, their order and the plain string are those that delta-spark wrote."""
    texts = list(written_schemas(corpora))
    assert any('"elementType":"variant"' in text for text in texts)
    assert [schema_to_json(parse_schema(text)) for text in texts] == texts


def test_the_json_of_every_kind_of_type():
    text = (
        '{"type":"struct","fields":['
        '{"name":"é","type":"decimal(10,2)","nullable":false,"metadata":{"comment":"x","n":1}},'
        '{"name":"a","type":{"type":"array","elementType":"variant","containsNull":true},'
        '"nullable":true,"metadata":{}},'
        '{"name":"m","type":{"type":"map","keyType":"string","valueType":"long","valueContainsNull":false},'
        '"nullable":true,"metadata":{}},'
        '{"name":"s","type":{"type":"struct","fields":[{"name":"v","type":"variant","nullable":true,"metadata":{}}]},'
        '"nullable":true,"metadata":{}}]}'
    )
    parsed = parse_schema(text)
    assert parsed == StructType(
        (
            StructField("é", PrimitiveType("decimal(10,2)"), False, {"comment": "x", "n": 1}),
            StructField("a", ArrayType(VARIANT, True)),
            StructField("m", MapType(STRING, LONG, False)),
            StructField("s", struct(v=VARIANT)),
        )
    )
    assert schema_to_json(parsed) == text


def schema_text(type_text: str) -> str:
    return f'{{"type":"struct","fields":[{{"name":"c","type":{type_text},"nullable":true,"metadata":{{}}}}]}}'


@pytest.mark.parametrize(
    ("type_text", "data_type"),
    [
        ('"variant"', VARIANT),
        ('{"type":"variant"}', VARIANT),
        ('{"type":"array","elementType":{"type":"variant"},"containsNull":false}', ArrayType(VARIANT, False)),
        ('"decimal"', PrimitiveType("decimal(10,0)")),
        ('"decimal( 38 , 38 )"', PrimitiveType("decimal(38,38)")),
    ],
)
def test_parse_reads_both_spellings(type_text, data_type):
    """PROTOCOL.md, "Schema Serialization Format"."""
    assert parse_schema(schema_text(type_text)) == column(data_type)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not valid JSON"),
        ('"long"', "expected a struct"),
        ("[]", "has an unknown type"),
        ('{"type":"struct"}', "has no list 'fields'"),
        ('{"type":"struct","fields":[{"type":"long"}]}', "a field without a name"),
        (schema_text('"int"'), "the column 'c' has the unknown type 'int'"),
        (schema_text('"decimal(39,0)"'), "at most 38 digits"),
        (schema_text('"decimal(5,6)"'), "at most 38 digits"),
        (schema_text("null"), "the column 'c' has an unknown type"),
        (schema_text('{"type":"array"}'), "the column 'c.element' has an unknown type"),
        (schema_text('{"type":"array","elementType":"long","containsNull":1}'), "'containsNull'"),
        (schema_text('"long"').replace("{}", "3"), "field metadata that is not an object"),
    ],
)
def test_parse_rejects_an_invalid_schema_and_names_the_column(text, message):
    with pytest.raises(SchemaError, match=message):
        parse_schema(text)


@pytest.mark.parametrize(
    ("nest", "deepest"),
    [
        (lambda inner: StructType((StructField("a", inner),)), 59),
        (ArrayType, 59),
        # Arrow has the entries of a map as a struct in between.
        (lambda inner: MapType(STRING, inner), 29),
    ],
)
def test_a_column_may_nest_as_deep_as_the_interface_of_arrow_permits(nest, deepest):
    def nested(depth):
        found = LONG
        for _ in range(depth):
            found = nest(found)
        return struct(z=found)

    schema = nested(deepest)
    assert parse_schema(schema_to_json(schema)) == schema
    # The limit of the C interface, in a column of a struct that is a column.
    around = pa.schema([pa.field("r", pa.struct(list(to_arrow(schema))))])
    assert pa.lib.Schema._import_from_c_capsule(around.__arrow_c_schema__()) == around
    with pytest.raises(SchemaError, match=r"the column 'z' .* expected at most 60"):
        parse_schema(schema_to_json(nested(deepest + 1)))
    with pytest.raises(SchemaError, match=r"the column 'z' .* expected at most 60"):
        from_arrow(to_arrow(nested(deepest + 1)))


@pytest.mark.parametrize("depth", [200, 100_000])
def test_parse_rejects_a_schema_that_is_nested_too_deeply(depth):
    type_text = '{"type":"array","elementType":' * depth + '"long"' + "}" * depth
    with pytest.raises(SchemaError, match=r"deeper|not valid JSON"):
        parse_schema(schema_text(type_text))


# ---- Arrow


@pytest.mark.parametrize(
    ("arrow_type", "name"),
    [
        (pa.int8(), "byte"),
        (pa.int16(), "short"),
        (pa.int32(), "integer"),
        (pa.int64(), "long"),
        (pa.uint8(), "short"),
        (pa.uint16(), "integer"),
        (pa.uint32(), "long"),
        (pa.uint64(), "decimal(20,0)"),
        (pa.float16(), "float"),
        (pa.float32(), "float"),
        (pa.float64(), "double"),
        (pa.bool_(), "boolean"),
        (pa.string(), "string"),
        (pa.large_string(), "string"),
        (pa.string_view(), "string"),
        (pa.binary(), "binary"),
        (pa.large_binary(), "binary"),
        (pa.binary_view(), "binary"),
        (pa.binary(4), "binary"),
        (pa.date32(), "date"),
        (pa.date64(), "date"),
        (pa.timestamp("us", "UTC"), "timestamp"),
        (pa.timestamp("ns", "Europe/Berlin"), "timestamp"),
        (pa.timestamp("us"), "timestamp_ntz"),
        (pa.timestamp("s"), "timestamp_ntz"),
        (pa.decimal128(10, 2), "decimal(10,2)"),
        (pa.decimal256(38, 0), "decimal(38,0)"),
        (pa.null(), "void"),
        (pa.dictionary(pa.int8(), pa.string()), "string"),
        (pa.run_end_encoded(pa.int32(), pa.int64()), "long"),
        (pa.uuid(), "binary"),
    ],
)
def test_from_arrow_gives_each_arrow_type_its_delta_type(arrow_type, name):
    assert from_arrow(pa.schema([pa.field("c", arrow_type)])) == column(PrimitiveType(name))


@pytest.mark.parametrize(
    "arrow_type",
    [
        pa.time64("us"),
        pa.duration("us"),
        pa.decimal256(39, 0),
        pa.decimal128(5, -2),
        pa.month_day_nano_interval(),
    ],
)
def test_from_arrow_names_a_column_of_an_unsupported_type(arrow_type):
    with raises_at(SchemaError, "which Delta does not have: cast it, or leave it out", column="s.c"):
        from_arrow(pa.schema([pa.field("s", pa.struct([pa.field("c", arrow_type)]))]))


@pytest.mark.parametrize(
    "arrow_type",
    [
        pa.list_(pa.field("item", pa.int64(), False)),
        pa.large_list(pa.field("item", pa.int64(), False)),
        pa.list_(pa.field("item", pa.int64(), False), 3),
    ],
)
def test_from_arrow_reads_every_kind_of_list(arrow_type):
    assert from_arrow(pa.schema([pa.field("c", arrow_type)])) == column(ArrayType(LONG, False))


def test_from_arrow_keeps_nullability_at_every_depth():
    arrow = pa.schema(
        [
            pa.field("s", pa.struct([pa.field("x", pa.int64(), False)]), False),
            pa.field("m", pa.map_(pa.string(), pa.field("value", pa.int64(), False))),
        ]
    )
    assert from_arrow(arrow) == StructType(
        (
            StructField("s", StructType((StructField("x", LONG, False),)), False),
            StructField("m", MapType(STRING, LONG, False)),
        )
    )


@pytest.mark.parametrize(
    "field",
    [
        pa.field("c", pa.json_()),
        pa.field("c", pa.json_(pa.large_string())),
        pa.field("c", pa.string(), metadata={b"ARROW:extension:name": b"arrow.json"}),
        pa.field("c", VARIANT_STORAGE, metadata=VARIANT_MARK),
        pa.field("c", pa.struct([("value", pa.binary()), ("metadata", pa.binary())]), metadata=VARIANT_MARK),
    ],
)
def test_from_arrow_knows_a_variant_by_its_extension_at_any_depth(field):
    assert from_arrow(pa.schema([field])) == column(VARIANT)
    assert from_arrow(pa.schema([pa.field("s", pa.struct([field]))])) == struct(s=column(VARIANT))
    assert from_arrow(pa.schema([pa.field("a", pa.list_(field))])) == struct(a=ArrayType(VARIANT))


@pytest.mark.parametrize("arrow_type", [pa.string(), pa.large_string(), pa.string_view(), VARIANT_STORAGE])
def test_from_arrow_takes_the_named_columns_for_variants(arrow_type):
    arrow = pa.schema([pa.field("c", arrow_type)])
    assert from_arrow(arrow, ["c"]) == column(VARIANT)
    assert from_arrow(arrow) != column(VARIANT)


def test_from_arrow_rejects_invalid_variant_columns():
    with raises_at(SchemaError, r"expected JSON text or .*, got int64", column="c"):
        from_arrow(pa.schema([pa.field("c", pa.int64())]), ["c"])
    with raises_at(SchemaError, "columns that the data does not have", column="d"):
        from_arrow(pa.schema([pa.field("c", pa.string())]), ["d"])


def test_to_arrow_marks_a_variant_by_field_metadata():
    field = to_arrow(column(VARIANT)).field("c")
    assert field.type == VARIANT_STORAGE
    assert field.metadata == VARIANT_MARK
    nested = to_arrow(column(ArrayType(VARIANT))).field("c").type.value_field
    assert nested.metadata == VARIANT_MARK


EVERY_PRIMITIVE = [
    "string",
    "long",
    "integer",
    "short",
    "byte",
    "float",
    "double",
    "boolean",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
    "variant",
    "void",
    "decimal(38,10)",
]

EVERY_TYPE = StructType(
    (
        *(StructField(name, PrimitiveType(name)) for name in EVERY_PRIMITIVE),
        StructField("s", StructType((StructField("x", VARIANT, False),)), False),
        StructField("a", ArrayType(ArrayType(VARIANT, False), True)),
        StructField("m", MapType(STRING, struct(v=VARIANT), False)),
    )
)


def test_from_arrow_undoes_to_arrow():
    assert from_arrow(to_arrow(EVERY_TYPE)) == EVERY_TYPE


def test_to_arrow_gives_the_ids_of_column_mapping_to_parquet_only_when_asked():
    mapped = StructType((StructField("c", VARIANT, metadata={"delta.columnMapping.id": 7}),))
    assert to_arrow(mapped, field_ids=True).field("c").metadata == {
        **VARIANT_MARK,
        b"PARQUET:field_id": b"7",
    }
    assert to_arrow(mapped).field("c").metadata == VARIANT_MARK


# ---- conform


def conformed(array, data_type):
    return conform(pa.record_batch([array], names=["c"]), column(data_type)).column(0)


def test_conform_puts_columns_in_the_order_names_and_types_of_the_table():
    table = struct(id=LONG, day=PrimitiveType("date"), t=PrimitiveType("timestamp_ntz"), v=VARIANT)
    batch = pa.record_batch(
        {"V": ['{"a":1}'], "ID": pa.array([1], pa.int16()), "t": pa.array([1_000], pa.timestamp("ns"))}
    )
    conformed = conform(batch, table)
    assert conformed.to_pylist() == [
        {"id": 1, "day": None, "t": datetime(1970, 1, 1, microsecond=1), "v": '{"a":1}'}
    ]
    assert conformed.schema.types == [pa.int64(), pa.date32(), pa.timestamp("us"), pa.string()]


def test_conform_reaches_into_structs_and_lists():
    table = struct(s=struct(x=LONG, y=STRING), a=ArrayType(struct(p=LONG, q=LONG)))
    rows = [
        {"s": {"X": 1}, "a": [{"q": 1}, None]},
        {"s": None, "a": None},
        {"s": {"X": None}, "a": []},
        {"s": {"X": 2}, "a": [{"q": 2}]},
    ]
    arrow = pa.schema(
        [
            ("s", pa.struct([("X", pa.int32())])),
            ("a", pa.list_(pa.struct([("q", pa.int8())]))),
        ]
    )
    batch = pa.RecordBatch.from_pylist(rows, schema=arrow)
    expected = [
        {"s": {"x": 1, "y": None}, "a": [{"p": None, "q": 1}, None]},
        {"s": None, "a": None},
        {"s": {"x": None, "y": None}, "a": []},
        {"s": {"x": 2, "y": None}, "a": [{"p": None, "q": 2}]},
    ]
    assert conform(batch, table).to_pylist() == expected
    assert conform(batch.slice(1), table).to_pylist() == expected[1:]
    assert conform(batch, table).schema == to_arrow(table)


ONE_STRUCT = pa.array([{"X": 7}])


@pytest.mark.parametrize(
    "lists",
    [
        pa.FixedSizeListArray.from_arrays(ONE_STRUCT, 1),
        pa.array([[{"X": 7}]], pa.list_view(ONE_STRUCT.type)),
        pa.array([[{"X": 7}]], pa.large_list_view(ONE_STRUCT.type)),
        pa.DictionaryArray.from_arrays(pa.array([0]), pa.array([[{"X": 7}]])),
    ],
    ids=["fixed size list", "list view", "large list view", "dictionary of lists"],
)
def test_conform_finds_fields_by_names_without_case_in_every_kind_of_list(lists):
    table = column(ArrayType(struct(x=LONG)))
    assert conform(pa.record_batch({"c": lists}), table).to_pylist() == [{"c": [{"x": 7}]}]


@given(st.data(), st.integers(0, 4), st.integers(0, 5))
def test_conform_keeps_the_values_of_every_layout_of_arrow(data, depth, count):
    rows = data.draw(arrow_rows(depth, count))
    batch = pa.record_batch([rows.array], names=["c"])
    columns = from_arrow(batch.schema)
    found = conform(batch, columns)
    found.validate(full=True)
    assert found.column(0).to_pylist() == rows.values
    assert found.schema.equals(to_arrow(columns))


def test_conform_accepts_dictionaries_that_arrow_cannot_take_from():
    text = pa.array(["a", None, "c"], pa.string_view())
    dictionary = pa.DictionaryArray.from_arrays(pa.array([2, None, 1, 0]), text)
    nested = pa.DictionaryArray.from_arrays(pa.array([1, 0]), pa.StructArray.from_arrays([text], ["x"])[:2])
    assert conformed(dictionary, STRING).to_pylist() == ["c", None, None, "a"]
    assert conformed(nested, struct(x=STRING)).to_pylist() == [{"x": None}, {"x": "a"}]


def test_conform_names_unsupported_nesting():
    dictionary = pa.DictionaryArray.from_arrays(
        pa.array([], pa.int8()), pa.array([[[1]]], pa.list_(pa.list_(pa.int8(), 1)))
    )
    views = pa.ListViewArray.from_arrays(pa.array([0], pa.int32()), pa.array([0], pa.int32()), dictionary)
    with raises_at(SchemaError, r"cannot read .* list_view<", column="c"):
        conformed(views, ArrayType(ArrayType(ArrayType(LONG))))


def test_conform_keeps_variant_bytes_and_their_mark():
    field = pa.field("v", VARIANT_STORAGE, metadata=VARIANT_MARK)
    batch = pa.RecordBatch.from_pylist(
        [{"v": {"metadata": b"\1\0\0", "value": b"\0"}}], schema=pa.schema([field])
    )
    assert conform(batch, struct(v=VARIANT)).equals(batch, check_metadata=True)


def test_conform_marks_a_variant_that_the_data_lacks():
    table = struct(id=LONG, v=VARIANT, s=struct(x=LONG, w=VARIANT))
    arrow = pa.schema([("id", pa.int64()), ("s", pa.struct([("x", pa.int64())]))])
    batch = pa.RecordBatch.from_pylist([{"id": 1, "s": {"x": 2}}], schema=arrow)
    conformed = conform(batch, table)
    assert conformed.to_pylist() == [{"id": 1, "v": None, "s": {"x": 2, "w": None}}]
    assert conformed.schema.equals(to_arrow(table), check_metadata=True)


@pytest.mark.parametrize(
    ("data", "data_type"),
    [
        (pa.array([1500], pa.timestamp("ns")), "timestamp_ntz"),
        (pa.array([300], pa.int64()), "byte"),
        (pa.array(["x"]), "long"),
        (pa.array(["x"]), "decimal(18,2)"),
    ],
)
def test_conform_rejects_lossy_casts(data, data_type):
    with raises_at(SchemaError, f"^column 'c': cannot cast to {re.escape(data_type)}: ", column="c"):
        conform(pa.record_batch({"c": data}), column(PrimitiveType(data_type)))


def test_conform_rejects_null_in_a_not_null_column():
    table = StructType((StructField("c", LONG, False),))
    with raises_at(SchemaError, "NOT NULL, but has 1 null", column="c"):
        conform(pa.record_batch({"c": pa.array([1, None])}), table)
    inner = StructType((StructField("s", StructType((StructField("x", LONG, False),))),))
    arrow = pa.schema([("s", pa.struct([("x", pa.int64())]))])
    fine = pa.RecordBatch.from_pylist([{"s": None}, {"s": {"x": 1}}], schema=arrow)
    assert conform(fine, inner).to_pylist() == fine.to_pylist()
    broken = pa.RecordBatch.from_pylist([{"s": None}, {"s": {"x": None}}], schema=arrow)
    with raises_at(SchemaError, "NOT NULL, but has 1 null", column="s.x"):
        conform(broken, inner)


LONGS = pa.list_(pa.int64())


@pytest.mark.parametrize(
    "arrow_type",
    [LONGS, pa.large_list(pa.int64()), pa.list_(pa.int64(), 3), pa.list_view(pa.int64())],
    ids=str,
)
def test_conform_rejects_null_elements_but_not_null_lists(arrow_type):
    elements = ArrayType(LONG, False)
    with raises_at(SchemaError, "NOT NULL, but has 1 null", column="c.element"):
        conformed(pa.array([[1, None, 3]], arrow_type), elements)
    rows = [[1, 2, 3], None, [4, 5, 6]]
    assert conformed(pa.array(rows, arrow_type), elements).to_pylist() == rows
    assert conformed(pa.array(rows, arrow_type).slice(1), elements).to_pylist() == rows[1:]


# ---- merge


@pytest.mark.parametrize("mode", ["strict", "merge"])
@pytest.mark.parametrize(
    ("table", "data"),
    [
        (struct(id=LONG, v=VARIANT), struct(V=VARIANT, ID=LONG)),
        (struct(id=LONG, v=VARIANT), struct(id=LONG)),
        (struct(id=LONG), struct(id=INTEGER)),
        (struct(id=LONG), struct(id=VOID)),
        (struct(x=PrimitiveType("double")), struct(x=PrimitiveType("float"))),
        (struct(x=PrimitiveType("decimal(20,2)")), struct(x=PrimitiveType("decimal(10,1)"))),
        (struct(x=PrimitiveType("decimal(12,2)")), struct(x=INTEGER)),
        (struct(v=VARIANT), struct(v=struct(value=BINARY, metadata=BINARY))),
        (struct(s=struct(a=LONG, b=LONG)), struct(s=struct(B=LONG))),
        (struct(a=ArrayType(LONG)), struct(a=ArrayType(INTEGER, False))),
        (struct(m=MapType(STRING, LONG)), struct(m=MapType(STRING, INTEGER))),
    ],
)
def test_data_that_fits_leaves_the_schema_as_it_is(table, data, mode):
    assert merge_schemas(table, data, mode=mode) == table


@pytest.mark.parametrize(
    ("table", "data", "name"),
    [
        (struct(id=LONG), struct(id=LONG, v=VARIANT), "v"),
        (struct(s=struct(a=LONG)), struct(s=struct(a=LONG, w=VARIANT)), "s.w"),
        (struct(a=ArrayType(struct(x=LONG))), struct(a=ArrayType(struct(y=LONG))), "a.element.y"),
    ],
)
def test_strict_rejects_a_new_column_and_names_the_option_to_add_it(table, data, name):
    """Schemas merge as in delta-spark."""
    with raises_at(SchemaError, "no column .*: pass schema_mode='merge'", column=name):
        merge_schemas(table, data, mode="strict")


def test_merge_adds_new_columns_at_the_end_and_nullable():
    """Schemas merge as in delta-spark."""
    table = struct(id=LONG, s=struct(a=LONG), l=ArrayType(struct(x=LONG)))
    data = StructType(
        (
            StructField("v", VARIANT, False),
            StructField("L", ArrayType(struct(y=STRING))),
            StructField("s", StructType((StructField("w", VARIANT, False),))),
        )
    )
    assert merge_schemas(table, data, mode="merge") == struct(
        id=LONG, s=struct(a=LONG, w=VARIANT), l=ArrayType(struct(x=LONG, y=STRING)), v=VARIANT
    )


@pytest.mark.parametrize("mode", ["strict", "merge"])
@pytest.mark.parametrize(
    ("table_type", "data_type", "message"),
    [
        (LONG, STRING, "is long in the table, but string in the data: cast"),
        (INTEGER, LONG, "is integer in the table, but long in the data"),
        (
            VARIANT,
            STRING,
            "is variant in the table, but string in the data: name .* variant_columns",
        ),
        (STRING, VARIANT, "is string in the table, but variant in the data"),
        (struct(a=LONG), VARIANT, "is struct<a: long> in the table"),
        (struct(a=LONG), struct(a=STRING), r"the column 'c\.a' is long in the table, but string in the data"),
        (ArrayType(LONG), ArrayType(STRING), r"the column 'c\.element' is long"),
        (MapType(STRING, LONG), MapType(STRING, STRING), r"the column 'c\.value' is long"),
        (PrimitiveType("timestamp"), PrimitiveType("timestamp_ntz"), "timestamp_ntz in the data"),
        (PrimitiveType("decimal(10,2)"), PrimitiveType("decimal(10,3)"), r"decimal\(10,3\) in the data"),
        (PrimitiveType("decimal(10,2)"), INTEGER, "integer in the data"),
        (PrimitiveType("float"), PrimitiveType("double"), "double in the data"),
    ],
)
def test_types_that_do_not_fit_are_named_with_their_path(table_type, data_type, message, mode):
    """A type never changes to or from Variant."""
    with pytest.raises(SchemaError, match=message) as caught:
        merge_schemas(column(table_type), column(data_type), mode=mode)
    assert caught.value.column.startswith("c")


def test_an_absent_column_must_be_nullable_or_filled_in():
    def only(**options):
        return StructType((StructField("c", LONG, **options),))

    with raises_at(SchemaError, "NOT NULL", column="c"):
        merge_schemas(only(nullable=False), struct(), mode="strict")
    for metadata in ({"CURRENT_DEFAULT": "42"}, {"delta.generationExpression": "a + 1"}):
        filled = only(nullable=False, metadata=metadata)
        assert merge_schemas(filled, struct(), mode="strict") == filled
    null_default = only(metadata={"CURRENT_DEFAULT": "NULL"})
    assert merge_schemas(null_default, struct(), mode="strict") == null_default


def test_an_absent_field_within_a_column_has_no_default():
    nested = StructType((StructField("c", LONG, metadata={"CURRENT_DEFAULT": "42"}),))
    with raises_at(SchemaError, r"add it, because .* 42", column="s.c"):
        merge_schemas(struct(s=nested), struct(s=struct(d=LONG)), mode="merge")


def test_data_with_names_that_differ_by_case_is_rejected():
    with raises_at(SchemaError, "differ at most by case", column="A"):
        merge_schemas(struct(a=LONG), struct(a=LONG, A=LONG), mode="merge")


# ---- rules


def test_check_new_accepts_a_variant_anywhere_but_in_a_map_key():
    """PROTOCOL.md, "Variant Data Type": Variants cannot be compared."""
    check_new_schema(struct(v=VARIANT, a=ArrayType(struct(v=VARIANT)), m=MapType(STRING, VARIANT)))
    for key in (VARIANT, struct(v=VARIANT)):
        with raises_at(SchemaError, "has Variant keys", column="s.m"):
            check_new_schema(struct(s=struct(m=MapType(key, STRING))))


@pytest.mark.parametrize(
    ("new", "column", "message"),
    [
        (struct(), None, "at least one column"),
        (StructType((StructField("a", LONG), StructField("a", LONG))), "a", "differ at most by case"),
        (struct(a=LONG, A=LONG), "A", "differ at most by case"),
        (struct(s=struct(x=LONG, X=LONG)), "s.X", "differ at most by case"),
        (struct(n=VOID), "n", "has no values that show its type"),
        (struct(s=ArrayType(VOID)), "s.element", "has no values that show its type"),
        (StructType((StructField("", LONG),)), "", "empty name"),
        *(
            (StructType((StructField(f"a{c}b", LONG),)), f"a{c}b", "contains the character")
            for c in " ,;{}()\n\t="
        ),
    ],
)
def test_check_new_rejects_an_invalid_schema(new, column, message):
    with raises_at(SchemaError, message, column=column):
        check_new_schema(new)


def test_column_mapping_allows_any_character_in_a_name():
    check_new_schema(StructType((StructField("a b=c", LONG),)), mode="name")


def test_partition_columns_come_back_in_the_spelling_of_the_schema():
    assert check_partition_columns(struct(Day=LONG, id=LONG), ["day"]) == ("Day",)
    assert check_partition_columns(struct(id=LONG), []) == ()


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["v"], "because its type is variant"),
        (["s"], "because its type is struct"),
        (["a"], "because its type is array<long>"),
        (["x"], "no such column"),
        (["id", "ID"], "twice"),
    ],
)
def test_invalid_partition_columns_are_rejected(names, message):
    """PROTOCOL.md, "Variant Data Type": a Variant cannot be a partition column."""
    table = struct(id=LONG, v=VARIANT, s=struct(x=LONG), a=ArrayType(LONG))
    with raises_at(SchemaError, message, column=names[-1]):
        check_partition_columns(table, names)


def test_a_variant_as_map_key_or_partition_column_is_an_error():
    """Such a table is neither read nor written, at any depth of the map."""
    columns = struct(v=VARIANT, m=MapType(STRING, VARIANT), p=STRING)
    check_consistent(columns, ("p",))
    with raises_at(SchemaError, "cannot partition by the Variant column", column="v"):
        check_consistent(columns, ("p", "v"))
    for nested, name in (
        (MapType(VARIANT, STRING), "s.m"),
        (ArrayType(MapType(struct(v=VARIANT), STRING)), "s.m.element"),
    ):
        with raises_at(SchemaError, column=name, rule="T6"):
            check_consistent(struct(s=struct(m=nested)), ())


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["nope"], "which is not a column"),
        (["P"], "which is not a column"),
        (["s.x"], "which is not a column"),
        (["p", "p"], "twice"),
        (["s"], "whose type is struct"),
        (["a"], "whose type is array"),
    ],
)
def test_partition_columns_that_contradict_the_schema_are_an_error(names, sentence):
    columns = struct(p=STRING, s=struct(x=LONG), a=ArrayType(LONG))
    check_consistent(columns, ["p"])
    with raises_at(SchemaError, sentence, column=names[-1], rule="T14"):
        check_consistent(columns, names)


def test_a_name_twice_in_one_struct_is_an_error():
    twice = StructType((StructField("x", LONG, True), StructField("x", STRING, True)))
    for columns, name in ((twice, "x"), (struct(a=ArrayType(twice)), "a.element.x")):
        with raises_at(SchemaError, "several columns", column=name, rule="T14"):
            check_consistent(columns, [])


def test_an_unpaired_surrogate_in_a_schema_is_an_error():
    field = '{"name":"a%s","type":"long","nullable":true,"metadata":{"comment":"%s"}}'
    text = f'{{"type":"struct","fields":[{field}]}}'
    for half in (("\\ud800", ""), ("", "\\uDFFF")):
        with pytest.raises(SchemaError, match="unpaired surrogate"):
            parse_schema(text % half)
    assert parse_schema(text % ("\\ud83d\\ude00", "")).fields[0].name == "a\U0001f600"


def test_a_table_needs_a_column_in_addition_to_its_partition_columns():
    with pytest.raises(SchemaError, match="in addition to its partition columns"):
        check_partition_columns(struct(id=LONG), ["id"])


# ---- column mapping


def numbered_uuids():
    numbers = count(1)
    return lambda: f"uuid-{next(numbers)}"


def test_assign_column_mapping_gives_every_field_an_id_and_a_name_and_nothing_inside_a_variant():
    """PROTOCOL.md, "Column Mapping"."""
    assigned, greatest = assign_column_mapping(
        struct(id=LONG, st=struct(w=VARIANT), a=ArrayType(struct(x=LONG))), 0, new_uuid=numbered_uuids()
    )
    ids = {path: field.metadata["delta.columnMapping.id"] for path, field in fields_of(assigned)}
    assert ids == {("id",): 1, ("st",): 2, ("st", "w"): 3, ("a",): 4, ("a", "element", "x"): 5}
    assert greatest == 5
    assert assigned.fields[0].metadata["delta.columnMapping.physicalName"] == "col-uuid-1"


def test_assign_column_mapping_keeps_existing_names():
    mapped = StructField(
        "a", LONG, metadata={"delta.columnMapping.id": 9, "delta.columnMapping.physicalName": "col-x"}
    )
    assigned, greatest = assign_column_mapping(
        StructType((mapped, StructField("b", VARIANT))), 3, new_uuid=numbered_uuids()
    )
    assert assigned.fields[0] == mapped
    assert assigned.fields[1].metadata == {
        "delta.columnMapping.id": 10,
        "delta.columnMapping.physicalName": "col-uuid-1",
    }
    assert greatest == 10
    assert assign_column_mapping(assigned, 12, new_uuid=numbered_uuids()) == (assigned, 12)


def mapped(name: str, physical: str, data_type: DataType = LONG) -> StructField:
    metadata = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": physical}
    return StructField(name, data_type, metadata=metadata)


def test_physical_paths_are_unique_and_physical_names_need_not_be():
    """PROTOCOL.md, "Column Mapping" (delta#6939)."""
    nested = StructType((mapped("a", "x"), mapped("b", "y")))
    assert physical_schema(StructType((mapped("a", "x"), mapped("s", "y", nested))), "name")
    with raises_at(SchemaError, "several columns have the .*physicalName", column="x", rule="T11"):
        physical_schema(StructType((mapped("a", "x"), mapped("b", "x"))), "name")
    twice = StructType((mapped("a", "z"), mapped("b", "z")))
    with raises_at(SchemaError, column="s.z"):
        physical_schema(StructType((mapped("s", "s", twice),)), "id")


def test_physical_schema_renames_at_every_depth():
    assigned, _ = assign_column_mapping(
        struct(id=LONG, st=struct(w=VARIANT), m=MapType(STRING, struct(x=LONG))), 0, new_uuid=numbered_uuids()
    )
    physical = physical_schema(assigned, "name")
    assert [path for path, _ in fields_of(physical)] == [
        ("col-uuid-1",),
        ("col-uuid-2",),
        ("col-uuid-2", "col-uuid-3"),
        ("col-uuid-4",),
        ("col-uuid-4", "value", "col-uuid-5"),
    ]
    assert physical_schema(assigned, "none") is assigned


def test_a_mapped_table_with_an_unmapped_column_is_rejected():
    with raises_at(SchemaError, r"no delta\.columnMapping\.physicalName", column="c"):
        physical_name(StructField("c", LONG), "id")


# ---- partition values

UTC = timezone.utc

PARTITION_VALUES = [
    ("string", "a b", "a b"),
    ("long", -5, "-5"),
    ("byte", 0, "0"),
    ("double", 1.5, "1.5"),
    ("double", float("inf"), "Infinity"),
    ("double", -0.0, "-0.0"),
    ("double", 9999999.0, "9999999.0"),
    ("double", 0.001, "0.001"),
    # As Spark writes them.
    ("double", 1e7, "1.0E7"),
    ("double", 9.99e-4, "9.99E-4"),
    ("double", -1e300, "-1.0E300"),
    ("double", 123456789.12345679, "1.2345678912345679E8"),
    ("boolean", True, "true"),
    ("boolean", False, "false"),
    ("date", date(2024, 2, 29), "2024-02-29"),
    ("date", date(1, 1, 1), "0001-01-01"),
    ("decimal(10,2)", Decimal("1.50"), "1.50"),
    ("decimal(38,10)", Decimal("0E-10"), "0.0000000000"),
    ("binary", b"\x01\x02", "\x01\x02"),
    ("timestamp", datetime(2024, 1, 2, 3, 4, 5, 6, UTC), "2024-01-02T03:04:05.000006Z"),
    ("timestamp_ntz", datetime(2024, 1, 2, 3, 4, 5), "2024-01-02 03:04:05"),
    ("timestamp_ntz", datetime(2024, 1, 2, 3, 4, 5, 60), "2024-01-02 03:04:05.000060"),
]


@pytest.mark.parametrize(("name", "value", "text"), PARTITION_VALUES)
def test_a_partition_value_has_the_string_of_the_protocol_and_comes_back(name, value, text):
    assert partition_value_to_string(value, PrimitiveType(name)) == text
    assert partition_value_from_string(text, PrimitiveType(name)) == value


@pytest.mark.parametrize(
    ("value", "text"), [(0.1, "0.1"), (-3.4028235e38, "-3.4028235E38"), (16777216.0, "1.6777216E7")]
)
def test_a_float_partition_has_the_text_of_spark_which_it_keeps_as_a_double(value, text):
    as_float = pa.scalar(value, pa.float32()).as_py()
    assert partition_value_to_string(as_float, PrimitiveType("float")) == text
    assert partition_value_from_string(text, PrimitiveType("double")) == value


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("timestamp", "2024-01-02 03:04:05", datetime(2024, 1, 2, 3, 4, 5, 0, UTC)),
        ("timestamp", "2024-01-02 03:04:05.1", datetime(2024, 1, 2, 3, 4, 5, 100_000, UTC)),
        ("timestamp", "2024-01-02T03:04:05+02:30", datetime(2024, 1, 2, 0, 34, 5, 0, UTC)),
        ("timestamp", "2024-01-02T03:04:05-00:30", datetime(2024, 1, 2, 3, 34, 5, 0, UTC)),
        ("timestamp_ntz", "2024-01-02T03:04:05.123456", datetime(2024, 1, 2, 3, 4, 5, 123_456)),
        ("boolean", "TRUE", True),
        ("double", "1.0E10", 1e10),
        ("decimal(5,2)", "-1.5000", Decimal("-1.5")),
        ("decimal(5,2)", "0e99", Decimal(0)),
        ("string", " ", " "),
    ],
)
def test_partition_values_of_other_writers_are_read(name, text, value):
    assert partition_value_from_string(text, PrimitiveType(name)) == value


def test_a_timestamp_in_any_zone_is_written_in_utc():
    zone = timezone(timedelta(hours=2))
    value = datetime(2024, 1, 2, 3, 4, 5, tzinfo=zone)
    assert partition_value_to_string(value, PrimitiveType("timestamp")) == "2024-01-02T01:04:05.000000Z"


@pytest.mark.parametrize("name", ["string", "long", "binary", "timestamp"])
def test_null_and_the_empty_string_are_the_same_partition_value(name):
    assert partition_value_from_string("", PrimitiveType(name)) is None
    assert partition_value_from_string(None, PrimitiveType(name)) is None
    assert partition_value_to_string(None, PrimitiveType(name)) is None
    assert partition_value_to_string("", STRING) is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("long", "x"),
        ("date", "2024-02-30"),
        ("boolean", "1"),
        ("timestamp", "noon"),
        ("decimal(5,2)", "a"),
        ("decimal(5,2)", "NaN"),
        ("decimal(5,2)", "1.234"),
        ("decimal(5,2)", "1234"),
        ("decimal(5,2)", "1e-99999999"),
        ("byte", "300"),
        ("long", "99999999999999999999"),
        ("long", "1_000"),
        ("long", "٣"),
        ("double", "1_0"),
        ("variant", "1"),
    ],
)
def test_an_invalid_partition_value_is_rejected(name, text):
    with pytest.raises(MalformedLogError, match="partition value"):
        partition_value_from_string(text, PrimitiveType(name))


@pytest.mark.parametrize("text", ["+10000-01-01", "0000-12-31"])
def test_a_partition_value_outside_the_years_of_python_is_rejected(text):
    with pytest.raises(UnsupportedFeatureError, match="years 1 to 9999"):
        partition_value_from_string(text, PrimitiveType("date"))


def test_bytes_without_a_string_cannot_be_a_partition_value():
    with pytest.raises(SchemaError, match="bytes that are UTF-8"):
        partition_value_to_string(b"\xff", BINARY)
    with pytest.raises(SchemaError, match="of type variant"):
        partition_value_to_string(b"x", VARIANT)


@given(st.datetimes(timezones=st.just(UTC)))
def test_timestamps_come_back_exactly(value):
    text = partition_value_to_string(value, PrimitiveType("timestamp"))
    assert partition_value_from_string(text, PrimitiveType("timestamp")) == value


# ---- statistics


def names_of(paths) -> list[str]:
    return [".".join(field.name for field in path) for path in paths]


def many_columns(number: int) -> StructType:
    return StructType((StructField("id", LONG), *(StructField(f"v{n}", VARIANT) for n in range(number))))


@pytest.mark.parametrize(
    ("configuration", "number"), [({}, 32), ({"delta.dataSkippingNumIndexedCols": "10"}, 10)]
)
def test_a_variant_counts_as_one_column(configuration, number):
    """PROTOCOL.md, "Per-file Statistics"."""
    expected = ["id", *(f"v{n}" for n in range(number - 1))]
    assert names_of(stats_columns(many_columns(50), configuration)) == expected


def test_minus_one_gives_all_columns_and_zero_none():
    """PROTOCOL.md, "Per-file Statistics"."""
    assert len(stats_columns(many_columns(50), {"delta.dataSkippingNumIndexedCols": "-1"})) == 51
    assert stats_columns(many_columns(50), {"delta.dataSkippingNumIndexedCols": "0"}) == ()


def test_named_columns_override_the_number_whatever_their_case():
    """PROTOCOL.md, "Per-file Statistics"."""
    configuration = {"delta.dataSkippingStatsColumns": "V20,v40,id", "delta.dataSkippingNumIndexedCols": "1"}
    assert names_of(stats_columns(many_columns(50), configuration)) == ["id", "v20", "v40"]


def test_a_struct_stands_for_its_leaves_and_partition_columns_have_none():
    """PROTOCOL.md, "Per-file Statistics"."""
    table = struct(day=LONG, s=struct(x=LONG, w=VARIANT), a=ArrayType(VARIANT), z=LONG)
    assert names_of(stats_columns(table, {}, ["Day"])) == ["s.x", "s.w", "a", "z"]
    named = {"delta.dataSkippingStatsColumns": "s,day"}
    assert names_of(stats_columns(table, named, ["day"])) == ["s.x", "s.w"]
    assert names_of(stats_columns(table, {"delta.dataSkippingStatsColumns": "s.w.deeper"})) == []
