"""The functions of Variants: Spark's answers, properties, and cases with exact values."""

from __future__ import annotations

import datetime
import json
import math
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.errors import raises_at
from support.strategies import json_values, meanings, variant_array, variants

import delta_variant as dv
from delta_variant import ShreddingSchema, Variant, _native, functions, shred
from delta_variant.errors import (
    ArgumentTypeError,
    CastError,
    DeltaVariantError,
    ExpressionError,
    MalformedVariantError,
    SchemaError,
    VariantPathError,
)
from delta_variant.expressions.bind import bind
from delta_variant.expressions.evaluate import evaluate, inputs_of
from delta_variant.expressions.names import NameScope
from delta_variant.expressions.parse import parse
from delta_variant.expressions.tree import inputs

SPARK_ANSWERS = json.loads((Path(__file__).parent / "spark_functions.json").read_text(encoding="utf-8"))
ERROR = {"error": True}
ONE_ROW = pa.record_batch([pa.array([0])], names=["n"])
BROKEN = pa.array([{"metadata": b"\x01\x00\x00", "value": b"\x02"}], functions.parse_json([]).type)


def answer(text: str) -> Any:
    """Return our value of an expression without columns, `ERROR` where it has none."""
    try:
        return evaluate(bind(parse(text), NameScope(pa.schema([]))), ONE_ROW)[0].as_py()
    except DeltaVariantError:
        return ERROR


def parsed(*values: Any) -> pa.StructArray:
    return functions.parse_json([None if value is None else json.dumps(value) for value in values])


def as_json(array: Any) -> list[Any]:
    return [None if text is None else json.loads(text) for text in functions.to_json(array).to_pylist()]


def test_functions_return_what_spark_returns():
    """Spark 4.3; tests/spark/function_cases.py has the expressions."""
    different = [(text, spark, ours) for text, spark in SPARK_ANSWERS if (ours := answer(text)) != spark]
    assert different == []
    assert len(SPARK_ANSWERS) > 1_200


def variants_in(array: Any) -> list[Variant | None]:
    return [None if row is None else Variant(**row) for row in array.to_pylist()]


@given(json_values())
def test_a_value_that_is_inserted_can_be_read_and_deleted(value):
    before, new = parsed({"a": [1]}, {}), Variant.from_python(value)
    after = functions.variant_insert(before, "$.b.c[1]", new)
    assert variants_in(functions.variant_get(after, "$.b.c[1]")) == [new, new]
    assert as_json(functions.variant_delete(after, "$.b")) == [{"a": [1]}, {}]


def parts_of(value: Any) -> list[tuple[int, str | None, Variant]]:
    """Return position, key and value of each field and element."""
    if not isinstance(value, dict | list):
        return []
    fields = sorted(value.items()) if isinstance(value, dict) else [(None, each) for each in value]
    return [(position, key, Variant.from_python(part)) for position, (key, part) in enumerate(fields)]


@given(st.lists(json_values()))
def test_exploded_rows_are_the_parts_of_each_value(values):
    encoded = [Variant.from_python(value) for value in values]
    rows = functions.variant_explode(
        pa.array([{"metadata": each.metadata, "value": each.value} for each in encoded], BROKEN.type)
    )
    columns = [rows[name].to_pylist() for name in ("row", "pos", "key")]
    found = list(zip(*columns, variants_in(rows["value"]), strict=True))
    assert found == [(row, *part) for row, value in enumerate(values) for part in parts_of(value)]


@given(st.lists(variants() | st.none()))
def test_changes_of_any_variant_keep_all_other_values(rows):
    array = variant_array(rows)
    wrapped = functions.to_variant_object(
        pa.StructArray.from_arrays(
            [array],
            fields=[pa.field("x", array.type, metadata={"ARROW:extension:name": "arrow.parquet.variant"})],
        )
    )
    added = functions.variant_set(wrapped, "$.added", "new")
    assert functions.to_json(functions.variant_get(added, "$.added")).to_pylist() == ['"new"'] * len(rows)
    left = functions.variant_delete(added, "$.added")
    null = ("null", b"")
    assert meanings(left) == [{"x": null if value is None else value} for value in meanings(array)]


@given(st.lists(variants() | st.none()))
def test_functions_accept_any_valid_variant(rows):
    array = variant_array(rows)
    assert functions.is_valid_variant(array).to_pylist() == [None if row is None else True for row in rows]
    schemas = functions.schema_of_variant(array)
    assert [each is None for each in schemas.to_pylist()] == [row is None for row in rows]
    lengths, keys = functions.variant_array_length(array), functions.variant_keys(array)
    for value, length, names in zip(meanings(array), lengths.to_pylist(), keys.to_pylist(), strict=True):
        assert length == (len(value) if isinstance(value, list) else None)
        assert names == (sorted(value) if isinstance(value, dict) else None)


FUNCTIONS_OF_VARIANTS = [
    functions.is_variant_null,
    functions.schema_of_variant,
    functions.variant_array_length,
    functions.variant_keys,
    functions.variant_explode,
    functions.variant_explode_outer,
    functions.variant_strip_nulls,
    lambda array: functions.try_variant_set(array, "$.a", 1),
    lambda array: functions.variant_delete(array, "$.a"),
]


@pytest.mark.parametrize("function", FUNCTIONS_OF_VARIANTS)
def test_a_shredded_column_has_the_values_of_its_variants(function):
    plain = parsed({"a": 1, "b": [1, None]}, {"a": "x"}, [1], None, {})
    shredded = shred(plain, ShreddingSchema.of({"a": pa.int64(), "b": [pa.int64()]}))
    expected, found = function(plain), function(shredded)
    if isinstance(expected, pa.Table):
        assert found.drop_columns("value").equals(expected.drop_columns("value"))
        expected, found = expected["value"], found["value"]
    if pa.types.is_struct(expected.type):
        expected, found = functions.to_json(expected), functions.to_json(found)
    assert found.equals(expected)


TIMES = [datetime.time(1, 2, 3), None]
DAY = datetime.date(2026, 11, 23)
ARROW_VALUES = [
    (pa.array([255, None], pa.uint8()), [255, None]),
    (pa.array([2**64 - 1], pa.uint64()), [2**64 - 1]),
    (pa.array([1.5], pa.float16()), [1.5]),
    (pa.array([Decimal("1.25")], pa.decimal256(20, 2)), [1.25]),
    (pa.array([DAY], pa.date64()), ["2026-11-23"]),
    (pa.array(TIMES, pa.time32("s")), ["01:02:03", None]),
    (pa.array(TIMES, pa.time64("ns")), ["01:02:03", None]),
    (pa.array([0], pa.timestamp("s")), ["1970-01-01 00:00:00"]),
    (pa.array([b"abcd"], pa.binary(4)), ["YWJjZA=="]),
    (pa.array(["x", None]).dictionary_encode(), ["x", None]),
]
RUNS = pa.RunEndEncodedArray.from_arrays([2, 3], pa.array(["x", None]))


@pytest.mark.parametrize(("values", "expected"), ARROW_VALUES)
def test_arrow_types_that_variants_lack_become_the_next_wider_type(values, expected):
    empty = parsed(*[{} for _ in expected])
    inserted = as_json(functions.variant_set(empty, "$.a", values))
    assert inserted == [None if value is None else {"a": value} for value in expected]
    structs = pa.StructArray.from_arrays([values], ["a"])
    assert as_json(functions.to_variant_object(structs)) == [{"a": value} for value in expected]


def test_run_end_encoded_values_become_variants():
    inserted = functions.variant_set(parsed({}, {}, {}), "$.a", RUNS)
    assert as_json(inserted) == [{"a": "x"}, {"a": "x"}, None]


def test_uuids_stay_uuids_under_every_encoding():
    uuids = pa.array([uuid.UUID(int=5).bytes], pa.binary(16)).cast(pa.uuid())
    encoded = [
        uuids,
        pa.RunEndEncodedArray.from_arrays([1], uuids),
        pa.RunEndEncodedArray.from_arrays([1], pa.StructArray.from_arrays([uuids], ["b"])),
    ]
    found = [functions.variant_set(parsed({}), "$.a", each) for each in encoded]
    schemas = [functions.schema_of_variant(each).to_pylist() for each in found]
    assert schemas == [["OBJECT<a: UUID>"], ["OBJECT<a: UUID>"], ["OBJECT<a: OBJECT<b: UUID>>"]]


@pytest.mark.parametrize("values", [pa.array([1], pa.time64("ns")), pa.array([1], pa.duration("s"))])
def test_a_value_that_no_variant_has_is_an_error(values):
    with pytest.raises(SchemaError, match=r"cannot convert|expected the Arrow type"):
        functions.variant_set(parsed({}), "$.a", values)


def test_schema_of_variant_agg_merges_arrays_chunks_and_iterators():
    one, other = parsed({"a": 1}, None), parsed({"a": 2.5, "b": [True]})
    expected = "OBJECT<a: DECIMAL(21,1), b: ARRAY<BOOLEAN>>"
    assert functions.schema_of_variant_agg(pa.chunked_array([one, other])) == expected
    assert functions.schema_of_variant_agg(iter([one, other])) == expected
    assert functions.schema_of_variant_agg(parsed()) == "VOID"
    assert functions.schema_of_variant_agg(parsed({"a": 1}, [1])) == "VARIANT"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (pa.array([1, None, 3]), [{"a": 1}, None, {"a": 3}]),
        (parsed([1], None, "x"), [{"a": [1]}, None, {"a": "x"}]),
        (pa.array([{"x": 1}] * 3), [{"a": {"x": 1}}] * 3),
        ([1, {"b": None}], [{"a": [1, {"b": None}]}] * 3),
        (None, [None] * 3),
    ],
)
def test_a_new_value_is_one_for_each_row_or_one_for_all(value, expected):
    assert as_json(functions.variant_set(parsed({}, {}, {}), "$.a", value)) == expected


def test_a_change_that_is_not_possible_names_the_row_and_the_path():
    rows = parsed({"a": {}}, {"a": 5})
    with raises_at(VariantPathError, r"expected an object at \$\['a'\]", row=1, path="$['a']['b']"):
        functions.variant_set(rows, "$.a.b", 1)
    with raises_at(VariantPathError, 'already has a field "a"', row=0, path="$['a']"):
        functions.variant_insert(rows, "$.a", 1)
    with raises_at(VariantPathError, r"expected an array at \$\['a'\]", row=0, path="$['a']"):
        functions.variant_array_append(rows, "$.a", 1)


def test_an_array_is_not_filled_beyond_the_largest_variant():
    with raises_at(VariantPathError, "would be larger than", row=0):
        functions.variant_set(parsed([]), "$[2147483647]", 1)


def test_wrong_arguments_are_errors():
    rows = parsed({}, {})
    for change in (functions.variant_insert, functions.try_variant_set):
        with pytest.raises(ExpressionError, match=r"the path \$ is the Variant itself"):
            change(rows, "$", 1)
    with pytest.raises(ExpressionError, match="expected a path that starts"):
        functions.variant_delete(rows, "a")
    with pytest.raises(ArgumentTypeError, match="at least one path"):
        functions.variant_delete(rows)
    with pytest.raises(ArgumentTypeError, match="expected 2 values"):
        functions.variant_set(rows, "$.a", pa.array([1]))
    with pytest.raises(SchemaError, match="expected structs, maps or lists"):
        functions.to_variant_object(pa.array([1]))


def test_bytes_that_are_not_a_variant_are_errors_of_every_function_but_the_check():
    assert functions.is_valid_variant(BROKEN).to_pylist() == [False]
    for function in FUNCTIONS_OF_VARIANTS[1:]:
        with raises_at(MalformedVariantError, row=0):
            function(BROKEN)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("variant_insert(v, '$', 1)", r"the path \$ is the Variant itself"),
        ("variant_insert(v, n, 1)", "expected a path as a string literal"),
        ("variant_insert(v, '$.a')", r"expected 3 argument\(s\), got 2"),
        ("variant_set(v, '$.a', 1, n)", "expected true or false"),
        ("variant_delete(v)", r"expected at least 2 argument\(s\), got 1"),
        ("variant_keys(n)", "expected a Variant, got `n` of type bigint"),
        ("parse_json(n)", "expected a string, got `n` of type bigint"),
        ("to_variant_object(n)", "expected a struct, a map or an array"),
        ("schema_of_variant_agg(v)", "is not supported"),
    ],
)
def test_a_call_with_wrong_arguments_is_rejected_before_rows_are_read(table_of_values, expression, message):
    with pytest.raises(ExpressionError, match=message):
        dv.read_table(table_of_values, columns=[expression])


@pytest.fixture
def table_of_values(tmp_path):
    rows = [{"n": n, "v": {"id": n, "tags": ["x"] * n}, "text": f'{{"a": {n}}}'} for n in range(4)]
    dv.write_table(tmp_path / "t", rows, variant_columns=["v"])
    return tmp_path / "t"


def test_functions_select_and_compute_columns_of_a_table(table_of_values):
    scan = dv.read_table(
        table_of_values,
        columns={
            "length": "variant_array_length(v:tags)",
            "changed": "variant_set(v, '$.id', n + 1):id::int",
            "parsed": "parse_json(text):a::bigint",
            "variant": "variant_delete(v, '$.tags')",
        },
        where="variant_array_length(v:tags) > 1 and schema_of_variant(v:id) = 'BIGINT'",
    )
    assert scan.to_pylist() == [
        {"length": 2, "changed": 3, "parsed": 2, "variant": {"id": 2}},
        {"length": 3, "changed": 4, "parsed": 3, "variant": {"id": 3}},
    ]
    assert [field.type for field in scan.schema][:3] == [pa.int32(), pa.int32(), pa.int64()]


def test_functions_compute_the_values_of_an_update(table_of_values):
    dv.update(table_of_values, {"v": "variant_set(v, '$.seen', n > 2)"}, where="n >= 2")
    read = dv.read_table(table_of_values, columns=["n", "v:seen::boolean as seen"]).to_pylist()
    assert {row["n"]: row["seen"] for row in read} == {0: None, 1: None, 2: False, 3: True}


def test_an_error_in_a_function_names_the_file_and_the_call(table_of_values):
    scan = dv.read_table(table_of_values, columns=["variant_insert(v, '$.id', 1)"])
    with raises_at(CastError, r"`variant_insert\(v, '\$.id', 1\)`", path="$['id']", row=None) as caught:
        scan.to_table()
    assert str(caught.value.file).endswith(".parquet")


def test_a_function_is_not_called_for_rows_that_a_condition_excludes(table_of_values):
    failing = "n <> 0 or parse_json('{'):a::int = 1"
    with raises_at(CastError, r"`parse_json\('\{'\)`: byte 2 of the text"):
        dv.read_table(table_of_values, where=failing).count()
    assert dv.read_table(table_of_values, where="n >= 0 or parse_json('{'):a::int = 1").count() == 4


@pytest.fixture
def carts(tmp_path):
    rows = [
        {"id": 1, "cart": {"items": [{"name": "pen", "qty": 2}, {"name": "ink", "qty": "?"}], "by": "ann"}},
        {"id": 2, "cart": {"items": []}},
        {"id": 3, "cart": {"items": {"first": 5}}},
        {"id": 4, "cart": None},
    ]
    for row in rows:
        dv.write_table(tmp_path / "carts", [row], mode="append", variant_columns=["cart"])
    return dv.Table(tmp_path / "carts")


def sorted_rows(scan):
    return sorted(scan.to_pylist(), key=repr)


def test_lateral_returns_a_row_for_each_part_with_the_columns_of_its_row(carts):
    scan = carts.scan(lateral="variant_explode(cart:items) as item", columns=["id", "item", "cart:by as who"])
    assert sorted_rows(scan) == [
        {"id": 1, "item": {"pos": 0, "key": None, "value": {"name": "pen", "qty": 2}}, "who": "ann"},
        {"id": 1, "item": {"pos": 1, "key": None, "value": {"name": "ink", "qty": "?"}}, "who": "ann"},
        {"id": 3, "item": {"pos": 0, "key": "first", "value": 5}, "who": None},
    ]
    assert (scan.count(), carts.scan(lateral="variant_explode(cart:items) as item").count()) == (3, 3)


def test_lateral_outer_keeps_rows_without_parts(carts):
    scan = carts.scan(lateral="variant_explode_outer(cart:items) as item", columns=["id", "item.pos as pos"])
    assert sorted(tuple(row.values()) for row in scan.to_pylist() if row["pos"] is None) == [
        (2, None),
        (4, None),
    ]
    assert scan.count() == 5


def test_a_condition_selects_rows_of_the_table_and_parts(carts):
    lateral = "variant_explode(cart:items) as item"
    scan = carts.scan(
        lateral=lateral,
        where="id < 3 and item.value:name::string = 'pen' and item.value:qty::int > 1",
        columns={"name": "item.value:name::string", "row": "id + item.pos"},
    )
    # The quantity "?" is not cast, because another part of the condition excludes its row.
    assert scan.to_pylist() == [{"name": "pen", "row": 1}]
    assert scan.explain().files_read == 2
    assert carts.scan(lateral=lateral, where="item.pos = 1").count() == 1
    with raises_at(CastError, "item"):
        carts.scan(lateral=lateral, where="item.value:qty::int > 1").count()


def test_lateral_goes_with_limits_datasets_and_lazy_frames(carts):
    scan = carts.scan(
        lateral="variant_explode(cart:items) as item", columns={"id": "id", "n": "item.value:qty::string"}
    )
    assert len(carts.scan(lateral="variant_explode(cart:items) as item", limit=2).to_pylist()) == 2
    found = scan.to_dataset().to_table(filter=pc.field("n") == "2")
    assert found.to_pylist() == [{"id": 1, "n": "2"}]
    assert scan.to_dataset().to_table(columns=["id"]).num_rows == 3


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"lateral": "cart:items as item"}, ExpressionError, "expected `variant_explode"),
        ({"lateral": "variant_explode(cart:items)"}, ExpressionError, "expected `variant_explode"),
        ({"lateral": "variant_explode(id) as item"}, ExpressionError, "expected a Variant, got `id`"),
        ({"lateral": "variant_explode(cart) as ID"}, ExpressionError, "the table has a column 'ID'"),
        (
            {"lateral": "variant_explode(cart) as x", "columns": ["x.other"]},
            ExpressionError,
            "does not exist",
        ),
        ({"lateral": "variant_explode(cart) as x", "variants": "shredded"}, ValueError, "needs variants="),
        (
            {"columns": ["variant_explode(cart)"]},
            ExpressionError,
            r"pass lateral='variant_explode\(…\) as item'",
        ),
    ],
)
def test_an_invalid_lateral_is_rejected(carts, arguments, error, message):
    with pytest.raises(error, match=message):
        carts.scan(**arguments)


def test_a_path_with_wildcards_returns_the_array_of_its_matches():
    rows = parsed({"a": [{"b": 1}, {"b": [2]}, 3]}, {"a": {"x": {"b": 4}}}, {"c": 1}, None)
    assert as_json(functions.variant_get(rows, "$.a[*].b")) == [[1, [2]], [4], None, None]
    assert as_json(functions.variant_get(rows, "$[*][*]")) == [
        [{"b": 1}, {"b": [2]}, 3],
        [{"b": 4}],
        [],
        None,
    ]
    assert functions.variant_get(parsed([1, 2]), "$[*]", "array<bigint>").to_pylist() == [[1, 2]]
    shredded = shred(rows, ShreddingSchema.of({"a": [{"b": pa.int64()}]}))
    assert as_json(functions.variant_get(shredded, "$.a[*].b")) == [[1, [2]], [4], None, None]


def test_a_wildcard_in_a_column_and_a_condition(carts):
    scan = carts.scan(
        columns={"names": "cart:items[*].name::array<string>", "n": "variant_array_length(cart:items[*])"},
        where="variant_array_length(cart:items[*].name) > 0",
    )
    assert scan.to_pylist() == [{"names": ["pen", "ink"], "n": 2}]


def test_only_reads_accept_wildcards():
    with pytest.raises(ExpressionError, match="only variant_get accepts the wildcard"):
        functions.variant_set(parsed({}), "$.a[*]", 1)


@given(st.lists(variants(), min_size=2, max_size=6))
def test_sort_keys_are_equal_if_and_only_if_the_values_are(rows):
    array = variant_array(rows)
    values, keys = variants_in(array), functions.variant_sort_key(array).to_pylist()
    for one, key in zip(values, keys, strict=True):
        for other, other_key in zip(values, keys, strict=True):
            assert (one == other) == (key == other_key)


def test_timestamps_are_equal_by_value_in_both_units():
    """VariantEncoding.md, "Equivalence Class"."""
    moments = pa.array([-1, 0, 1_000_000, 1_000_000_001], pa.timestamp("ns", "UTC"))
    micros = moments.cast(pa.timestamp("us", "UTC"), safe=False)
    nanos_keys = functions.variant_sort_key(_native.variants_of(moments)).to_pylist()
    micros_keys = functions.variant_sort_key(_native.variants_of(micros)).to_pylist()
    assert [a == b for a, b in zip(nanos_keys, micros_keys, strict=True)] == [False, True, True, False]
    assert nanos_keys == sorted(nanos_keys)
    one, other = variants_in(_native.variants_of(moments)), variants_in(_native.variants_of(micros))
    assert [a == b for a, b in zip(one, other, strict=True)] == [False, True, True, False]


NUMBERS_IN_ORDER = [
    "-1e37",
    "-10.5",
    "-10",
    "-9.99",
    "-0.001",
    "0",
    "0.0001",
    "0.5",
    "1",
    "9",
    "10",
    "10.25",
    "1e37",
]


def in_order(values: Any) -> bool:
    keys = functions.variant_sort_key(values).to_pylist()
    return keys == sorted(keys) and len(set(keys)) == len(keys)


def test_sort_keys_are_in_the_order_of_the_values():
    exact = [Decimal(text) for text in NUMBERS_IN_ORDER]
    doubles = [-math.inf, -1e300, -1.5, 0.0, 5e-324, 1.5, math.inf, math.nan]
    texts = ["", "\0", "\0a", "a", "a\0", "aa", "b", "é"]
    lists = [[], [None], [None, None], [False], [1], [1, 1], [2], ["a"], [[]]]
    objects = [{}, {"a": 1}, {"a": 1, "b": 0}, {"a": 2}, {"b": 0}]
    ranked = [None, False, True, *exact, *doubles, *texts, b"", b"\0", *lists, *objects]
    encoded = [Variant.from_python(value) for value in ranked]
    assert in_order(pa.array([{"metadata": v.metadata, "value": v.value} for v in encoded], BROKEN.type))


@given(
    st.lists(
        st.decimals(allow_nan=False, allow_infinity=False, places=7, min_value=-(10**9), max_value=10**9)
    )
)
def test_sort_keys_of_exact_numbers_are_in_their_order(numbers):
    encoded = [Variant.from_python(number) for number in numbers]
    keys = functions.variant_sort_key(
        pa.array([{"metadata": v.metadata, "value": v.value} for v in encoded], BROKEN.type)
    )
    by_key = [number for _, number in sorted(zip(keys.to_pylist(), numbers, strict=True))]
    assert by_key == sorted(numbers)


def test_variants_are_merge_keys_by_their_sort_keys(table_of_values):
    source = pa.table({"key": ['{"n": 2.0}', '{"n": 9}'], "new": ["x", "y"]})
    on = "variant_sort_key(target.v:id) = variant_sort_key(parse_json(source.key):n)"
    dv.merge(table_of_values, source, on=on).when_matched_update({"text": "source.new"}).execute()
    found = dv.read_table(table_of_values, columns=["n", "text"], where="text = 'x'").to_pylist()
    assert found == [{"n": 2, "text": "x"}]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("coalesce(v, w)", [{"a": 1}, 7, None]),
        ("coalesce(v:a, w)", [1, 7, None]),
        ("nvl(w, parse_json('\"x\"'))", [8, 7, "x"]),
        ("if(n > 1, w, v)", [{"a": 1}, 7, None]),
        ("case n when 1 then null when 2 then v else cast(n as variant) end", [None, None, 3]),
        ("nvl2(v, variant_set(v, '$.a', n), w)", [{"a": 1}, 7, None]),
        ("case when n = 2 then parse_json(t) end", [None, [2], None]),
        ("coalesce(w, parse_json(t), v)", [8, 7, None]),
    ],
)
def test_conditions_select_variants_and_evaluate_no_other(text: str, expected: list[Any]):
    fields = ["n", "t", "v", "w"]
    columns = [
        pa.array([1, 2, 3]),
        pa.array(["{", "[2]", None]),
        parsed({"a": 1}, None, None),
        parsed(8, 7, None),
    ]
    batch = pa.record_batch(columns, names=fields)
    expression = bind(parse(text), NameScope(batch.schema, ("v", "w")))
    assert as_json(evaluate(expression, inputs_of(batch, inputs([expression])))) == expected
