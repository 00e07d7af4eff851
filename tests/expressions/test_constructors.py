"""Arrays, structs and maps that expressions build from columns. `test_functions.py` has Spark's answers."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.errors import raises_at

import delta_variant as dv
from delta_variant import functions
from delta_variant.errors import ArgumentTypeError, CastError, ExpressionError
from delta_variant.expressions.bind import bind
from delta_variant.expressions.evaluate import evaluate
from delta_variant.expressions.names import NameScope
from delta_variant.expressions.parse import parse
from delta_variant.expressions.tree import describe

NUMBERS = st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1))
ROWS = st.lists(st.tuples(NUMBERS, st.one_of(st.none(), st.sampled_from("abc")), NUMBERS), max_size=8)


def batch_of(rows: list[tuple[Any, Any, Any]]) -> pa.RecordBatch:
    types = (pa.int32(), pa.string(), pa.int32())
    columns = [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(types)]
    return pa.record_batch(columns, names=["n", "t", "m"])


def value_of(text: str, batch: pa.RecordBatch) -> list[Any]:
    values = evaluate(bind(parse(text), NameScope(batch.schema)), batch)
    values.validate(full=True)
    return list(values.to_pylist())


@given(ROWS, st.integers(0, 3))
def test_constructors_join_the_columns_row_by_row(rows, start):
    # A slice: the columns start after the start of their buffers.
    batch = batch_of(rows).slice(start)
    rows = rows[start:]
    assert value_of("array(n, m, 7)", batch) == [[n, m, 7] for n, _, m in rows]
    assert value_of("struct(t, n, m as x)", batch) == [{"t": t, "n": n, "x": m} for n, t, m in rows]
    assert value_of("array(struct(t), null)", batch) == [[{"t": t}, None] for _, t, _ in rows]
    assert value_of("map('a', n, 'b', m)", batch) == [[("a", n), ("b", m)] for n, _, m in rows]
    entries = [[("a", n), ("b", m)] for n, _, m in rows]
    assert value_of("map_from_arrays(array('a', 'b'), array(n, m))", batch) == entries
    assert value_of("map_from_entries(array(struct('a', n), struct('b', m as n)))", batch) == entries


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("coalesce(null, array())", []),
        ("array(array(), array(1), array(2.5))", [[], [Decimal("1.0")], [Decimal("2.5")]]),
        (
            "array(struct(1 as a, null as b), struct(2L as A, array('x') as b))",
            [{"a": 1, "b": None}, {"a": 2, "b": ["x"]}],
        ),
        ("array(map('k', null), map('k', 1))", [[("k", None)], [("k", 1)]]),
        ("if(true, array(null), array(date '2026-01-02'))", [None]),
    ],
)
def test_nested_values_have_a_common_type_as_in_spark(text: str, expected: Any):
    assert value_of(text, batch_of([(1, "x", 2)])) == [expected]


@given(ROWS)
def test_a_map_needs_different_keys_in_each_row(rows):
    batch = batch_of(rows)
    wrong = [row for row, (n, _, m) in enumerate(rows) if n is None or m is None or n == m]
    if not wrong:
        assert value_of("map(n, 1, m, 2)", batch) == [[(n, 1), (m, 2)] for n, _, m in rows]
        return
    with pytest.raises(CastError, match=r"a key of a map is null|a map has a key twice"):
        value_of("map(n, 1, m, 2)", batch)
    with pytest.raises(CastError) as raised:
        functions.create_map(batch["n"], batch["t"], batch["m"], batch["t"])
    assert raised.value.row in wrong


def test_a_null_list_and_a_null_pair_make_a_null_map():
    lists = pa.array([["a"], None, ["b", "c"], []], pa.list_(pa.string()))
    pairs = pa.array([[("a", 1)], None, [("b", 1), None], []], pa.list_(pa.struct({"k": "str", "v": "i8"})))
    batch = pa.record_batch([lists, lists, pairs], names=["k", "v", "p"])
    expected = [[("a", "a")], None, [("b", "b"), ("c", "c")], []]
    assert value_of("map_from_arrays(k, v)", batch) == expected
    assert value_of("map_from_arrays(k, v)", batch.slice(1)) == expected[1:]
    assert value_of("map_from_entries(p)", batch) == [[("a", 1)], None, None, []]
    with raises_at(CastError, "a map needs as many values as keys"):
        value_of("map_from_arrays(k, array('x'))", batch)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("map(1e0, 1)", "expected keys of a simple type"),
        ("map(array(1), 1)", "expected keys of a simple type"),
        ("map()", "expected pairs of a key and a value"),
        ("map('a', 1, 'b')", "expected pairs of a key and a value"),
        ("named_struct('a')", "expected pairs of a name and a value"),
        ("named_struct(t, 1)", "expected the name of a field as a string literal, got `t`"),
        ("struct(n, m as n)", "two fields are named 'n'"),
        ("array(n, struct(n))", "requires operands of one type"),
        ("array(parse_json(t), n)", r"got the Variant `parse_json\(t\)` and int: cast it, .* or the others"),
        ("array(cast(n as decimal(38,0)), 0.5)", r"a decimal has at most 38 digits"),
        ("map_from_arrays(n, m)", "expected an array, got `n` of type int"),
        ("map_from_arrays(array(n))", r"expected 2 argument\(s\), got 1"),
        ("map_from_entries(array(n))", "expected an array of structs with two fields"),
        ("map_from_entries(array(n), 1)", r"expected 1 argument\(s\), got 2"),
        ("struct(*)", r"expected an expression, got `\*`"),
        ("array(n)['a']", r"expected an integer, got `'a'` of type string"),
        ("array(n) = array(m)", "cannot compare"),
    ],
)
def test_what_cannot_be_constructed_is_rejected(text, message):
    batch = batch_of([])
    with pytest.raises(ExpressionError, match=message):
        bind(parse(text), NameScope(batch.schema))


@pytest.mark.parametrize(
    "text", ["array(n, m)", "map('a', n)", "named_struct('a', n, 'b', array(m))", "map_from_entries(p)"]
)
def test_a_constructor_is_described_as_sql(text):
    pairs = pa.field("p", pa.list_(pa.struct({"k": pa.string(), "v": pa.int8()})))
    schema = batch_of([]).schema.append(pairs)
    assert describe(bind(parse(text), NameScope(schema))) == text


@pytest.fixture
def table(tmp_path: Path) -> str:
    rows = pa.table({"n": [1, 2, None], "v": ['{"a": {"x": 1}}', None, '{"a": "z", "b": null}']})
    dv.write_table(tmp_path / "t", rows, variant_columns=["v"])
    return str(tmp_path / "t")


def test_variants_stay_variants_in_what_is_constructed(table):
    columns = {"s": "struct(v:a, n)", "l": "array(v, v:b)", "m": "map('k', v:a)"}
    rows = dv.read_table(table, columns=columns).to_pylist()
    assert rows == [
        {"s": {"a": {"x": 1}, "n": 1}, "l": [{"a": {"x": 1}}, None], "m": [("k", {"x": 1})]},
        {"s": {"a": None, "n": 2}, "l": [None, None], "m": [("k", None)]},
        {"s": {"a": "z", "n": None}, "l": [{"a": "z", "b": None}, None], "m": [("k", "z")]},
    ]


def test_an_update_sets_a_variant_that_columns_construct(table):
    dv.update(table, {"v": "to_variant_object(struct(n, v:a as before))"})
    assert dv.read_table(table, columns=["v"]).to_pylist(variants="json") == [
        {"v": '{"before":{"x":1},"n":1}'},
        {"v": '{"before":null,"n":2}'},
        {"v": '{"before":"z","n":null}'},
    ]


def test_arrow_functions_construct_the_same(table):
    rows = dv.read_table(table).to_table()
    built = functions.named_struct("n", rows["n"], "pair", functions.array(rows["v"], rows["v"]))
    sql = dv.read_table(table, columns=["struct(n, array(v, v) as pair) as s"]).to_table()
    assert built.to_pylist() == sql["s"].to_pylist()
    text = functions.to_json(functions.to_variant_object(built)).to_pylist()
    assert text[1] == '{"n":2,"pair":[null,null]}'
    keys = pa.array(["a", "b"])
    assert functions.create_map(keys, keys).to_pylist() == [[("a", "a")], [("b", "b")]]


ONE, TWO = pa.array([1]), pa.array(["x", "y"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: functions.array(), "expected at least one array"),
        (lambda: functions.array(ONE, TWO), "expected arrays of one length"),
        (lambda: functions.array(ONE, TWO[:1]), "expected arrays of one type, got int64, string"),
        (lambda: functions.named_struct("a"), "expected pairs of a name and an array"),
        (lambda: functions.named_struct(ONE, ONE), "expected pairs of a name and an array"),
        (lambda: functions.named_struct("a", ONE, "a", ONE), "expected different names, got 'a', 'a'"),
        (lambda: functions.create_map(ONE), "expected pairs of arrays"),
        (lambda: functions.create_map(pa.array([[1]]), ONE), "expected keys of a simple type"),
    ],
)
def test_arrow_functions_reject_other_arguments(call, message):
    with pytest.raises(ArgumentTypeError, match=message):
        call()


def test_the_name_of_a_field_is_unicode():
    with pytest.raises(ValueError, match=r"the name of a field: .* unpaired surrogate"):
        functions.named_struct("a\ud800", ONE)
