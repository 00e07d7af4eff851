"""SQL expressions: parsing, binding and evaluation."""

from __future__ import annotations

import contextlib
import datetime
import operator
import re
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot.dialects.databricks import Databricks
from support.errors import raises_at

from delta_variant.errors import ArgumentTypeError, CastError, ExpressionError
from delta_variant.expressions.bind import bind, bind_predicate
from delta_variant.expressions.evaluate import evaluate, filter_mask
from delta_variant.expressions.names import NameScope
from delta_variant.expressions.parse import parse, parse_columns, parse_type
from delta_variant.expressions.tree import Column, Extraction, describe, input_name, inputs, output_type

VARIANT = pa.struct([pa.field("metadata", pa.binary()), pa.field("value", pa.binary())])
MARK = {b"ARROW:extension:name": b"arrow.parquet.variant"}
SCHEMA = pa.schema(
    [
        ("a", pa.int64()),
        ("b", pa.int64()),
        ("small", pa.int16()),
        ("amount", pa.decimal128(10, 2)),
        ("fine", pa.decimal128(38, 10)),
        ("finest", pa.decimal128(38, 18)),
        ("thirds", pa.decimal128(3, 3)),
        ("f", pa.float64()),
        ("f32", pa.float32()),
        ("s", pa.string()),
        ("flag", pa.bool_()),
        ("raw", pa.binary()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("tags", pa.list_(pa.string())),
        ("st", pa.struct([("X.y", pa.int64()), pa.field("v", VARIANT, metadata=MARK)])),
        ("Odd Name", pa.int64()),
        ("event", VARIANT),
    ]
)
UTC = datetime.timezone.utc


def bound(text):
    return bind(parse(text), NameScope(SCHEMA, ("event",)))


def only_input(text):
    (source,) = inputs([bound(text)])
    return source


def values(text, **columns):
    """Return the values of `text` over a batch of the named columns of SCHEMA, or over one empty row."""
    columns = columns or {"a": [None]}
    arrays = [
        content if isinstance(content, pa.Array) else pa.array(content, SCHEMA.field(name).type)
        for name, content in columns.items()
    ]
    return evaluate(bound(text), pa.record_batch(arrays, names=list(columns))).to_pylist()


# Variant paths


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("event:user.id", ("user", "id")),
        ("EVENT:User.ID", ("User", "ID")),
        ("`event`:a", ("a",)),
        ("event:items[0].price", ("items", 0, "price")),
        ("event:[3]", (3,)),
        ("event:['odd key']", ("odd key",)),
        ('event:["odd key"]', ("odd key",)),
        ("event:['a.b[0]']", ("a.b[0]",)),
        ("event:a['']", ("a", "")),
        ("event:['🎉'].x", ("🎉", "x")),
        ("event:🎉", ("🎉",)),
        (r"event:['it\'s']", ("it's",)),
        ("event:['it''s']", ("it's",)),
        ("""event:["it's"]""", ("it's",)),
        ("""event:['say "hi"']""", ('say "hi"',)),
        (r"event:['back\\slash']", ("back\\slash",)),
        (r"event:['new\nline']", ("new\nline",)),
        (r"event:['\u00e9']", ("é",)),
        ("event:['*'].`x``y`", ("*", "x`y")),
        ("event:['$.a']", ("$.a",)),
        ("event:['0'][0]", ("0", 0)),
        ("event:select.from.case", ("select", "from", "case")),
        ("event:a:b[1]:c", ("a", "b", 1, "c")),
        ("variant_get(event, '$.a[2].B')", ("a", 2, "B")),
        ("variant_get(event:a, '$.b')", ("a", "b")),
        ("event", ()),
    ],
)
def test_a_variant_path_keeps_every_name_as_written(text, path):
    assert only_input(text) == Extraction("event", path, None)


@pytest.mark.parametrize(
    ("text", "extraction"),
    [
        ("event:a::bigint", Extraction("event", ("a",), pa.int64())),
        ("event::bigint", Extraction("event", (), pa.int64())),
        ("cast(event:a as date)", Extraction("event", ("a",), pa.date32())),
        ("date(event:a)", Extraction("event", ("a",), pa.date32())),
        ("try_cast(event:a as date)", Extraction("event", ("a",), pa.date32(), strict=False)),
        ("event?::date", Extraction("event", (), pa.date32(), strict=False)),
        ("variant_get(event, '$.a', 'bigint')", Extraction("event", ("a",), pa.int64())),
        ("TRY_VARIANT_GET(event, '$.a', 'bigint')", Extraction("event", ("a",), pa.int64(), strict=False)),
        ("try_variant_get(event, '$.a')", Extraction("event", ("a",), None)),
        ("event:a::variant", Extraction("event", ("a",), None)),
        ("event:a::decimal(10,2)", Extraction("event", ("a",), pa.decimal128(10, 2))),
        ("to_json(event)", Extraction("event", (), pa.string(), as_json=True)),
        ("to_json(event:a)", Extraction("event", ("a",), pa.string(), as_json=True)),
        ("st.v:a::int", Extraction("st", ("a",), pa.int32(), fields=("v",))),
    ],
)
def test_a_cast_of_a_path_is_one_typed_extraction(text, extraction):
    expression = bound(text)
    assert inputs([expression]) == (extraction,)
    assert output_type(expression) == extraction.type


def test_a_second_cast_applies_to_the_extracted_value():
    expression = bound("event:a::int::string")
    assert inputs([expression]) == (Extraction("event", ("a",), pa.int32()),)
    assert output_type(expression) == pa.string()


EMPTY_STEPS = ("event:a..b", "event:a.", "event:", "event:a[]", "event:a[].b", "event: = 3", "event:a. = 3")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("event:a[-1]", r"invalid path step \[-1\]"),
        ("event:a[1.5]", r"invalid path step \[1\.5\]"),
        ("event:a[2147483648]", r"from 0 to 2147483647"),
        ("event:a[b]", r"invalid path step \[b\]"),
        *((text, r"empty path step") for text in EMPTY_STEPS),
        ("event:a.*", r"cannot parse"),
        ("event:$.a", r"cannot parse"),
        ("a -> 'b'", r"lambda functions are not supported"),
        ("(a + 1):b", r"`:` and variant_get: expected a Variant, got `\(a \+ 1\)` of type"),
        ("a:b", r"expected a Variant, got `a` of type bigint"),
        ("to_json(s)", r"`to_json`: expected a Variant, got `s` of type string"),
        ("event.user.id", r"`event` is a Variant: write its path after a colon, `event:user.id`"),
        ("st.v.a", r"`st.v` is a Variant: write its path after a colon, `st.v:a`"),
        ("variant_get(event, 'a')", r"\$"),
        ("variant_get(event, '$.a', s)", r"must be string literals"),
        ("variant_get(event, '$.a', 'foo')", r"unknown type `foo`"),
    ],
)
def test_an_invalid_variant_path_is_rejected(text, message):
    with pytest.raises(ExpressionError, match=message):
        bound(text)


@pytest.mark.parametrize(
    ("text", "proposal"),
    [
        ("event:a > 1", "`event:a::bigint`"),
        ("event:a = 'x'", "`event:a::string`"),
        ("event:a < day", "`event:a::date`"),
        ("event:a + 1 > 2", "`event:a::double`"),
        ("event:a and flag", "`event:a::boolean`"),
        ("event:a like 'x%'", "`event:a::string`"),
        ("event:a in (1, 2)", "`event:a::bigint`"),
        ("-event:a", "`event:a::double`"),
        ("coalesce(event:a, 1)", "`event:a::bigint`"),
    ],
)
def test_a_variant_without_a_cast_has_no_order_and_a_cast_is_proposed(text, proposal):
    with pytest.raises(ExpressionError, match=f"Variant.* cast it, as in {proposal}"):
        bound(text)


def test_is_null_of_a_path_needs_no_cast():
    expression = bound("event:a is null")
    (source,) = inputs([expression])
    column = pa.array([None, {"metadata": b"\x01\x00\x00", "value": b"\x00"}], VARIANT)
    assert evaluate(expression, pa.record_batch([column], names=[input_name(source)])).to_pylist() == [
        True,
        False,
    ]


def test_is_variant_null_is_false_for_sql_null_and_for_the_string_null():
    expression = bound("is_variant_null(event:a)")
    (source,) = inputs([expression])
    batch = pa.record_batch([pa.array(["null", None, '"null"', "{}"])], names=[input_name(source)])
    assert evaluate(expression, batch).to_pylist() == [True, False, False, False]


# Names


@pytest.mark.parametrize(
    ("text", "name"), [("A", "a"), ("`odd name`", "Odd Name"), ("DAY", "day"), ("st.`x.Y`", "st")]
)
def test_a_column_is_found_without_regard_to_case(text, name):
    assert only_input(text) == Column(name, SCHEMA.field(name).type)


def test_a_struct_field_is_null_where_its_struct_is():
    content = [{"X.y": 1, "v": None}, None]
    assert values("st.`X.y`", st=content) == [1, None]


def test_an_unknown_column_is_rejected_with_the_known_columns():
    with pytest.raises(ExpressionError, match=r"`zz` does not exist; the columns are a, b, small, .*…"):
        bound("zz = 1")
    with pytest.raises(ExpressionError, match=r"`zz` does not exist; the fields are X.y, v"):
        bound("st.zz = 1")
    with pytest.raises(ExpressionError, match=r"`a` is bigint, which has no fields"):
        bound("a.b = 1")


def test_a_literal_that_cannot_be_cast_is_named_once():
    with pytest.raises(ExpressionError, match=r"^cannot cast 'x' to bigint$"):
        bound("cast('x' as bigint)")
    with pytest.raises(ExpressionError, match=r"^cannot cast 300 to tinyint: Integer value 300 not in range"):
        bound("cast(300 as tinyint)")


@pytest.mark.parametrize("text", ["k.ey = 1", "t.K.ey = 1", "st.k.ey = 1"])
def test_a_name_with_dots_is_proposed_in_backquotes(text):
    schema = pa.schema([("k.ey", pa.int64()), ("st", pa.struct([("k.ey", pa.int64())]))])
    with pytest.raises(ExpressionError, match=r"write `k\.ey` in backquotes$"):
        bind(parse(text), NameScope(schema))


def test_columns_that_differ_in_case_alone_need_their_own_spelling():
    schema = pa.schema([("x", pa.int64()), ("X", pa.string())])
    assert bind(parse("X"), NameScope(schema)) == Column("X", pa.string())
    schema = pa.schema([("xY", pa.int64()), ("Xy", pa.string())])
    with pytest.raises(ExpressionError, match="matches 2 columns"):
        bind(parse("xy"), NameScope(schema))


# Inputs


def test_an_input_is_asked_for_once_in_order_of_first_use():
    expressions = [bound("event:b::int + a"), bound("event:a::int > event:b::int and a = 1")]
    assert [describe(source) for source in inputs(expressions)] == ["event:b::int", "a", "event:a::int"]


def test_different_extractions_have_different_names():
    texts = [
        "event:a",
        "event:['a']['b']",
        "event:['a.b']",
        "event:[0]",
        "event:['0']",
        "event:a::bigint",
        "event:a::int",
        "try_cast(event:a as int)",
        "to_json(event:a)",
        "event:a::string",
        "st.v:a",
        r"event:['a\'][\'b']",
    ]
    names = [input_name(only_input(text)) for text in texts]
    assert len(set(names)) == len(texts)
    assert names == [input_name(only_input(text)) for text in texts]


def test_a_column_named_like_an_extraction_is_rejected():
    name = input_name(only_input("event:a::int"))
    schema = pa.schema([("event", VARIANT), (name, pa.int64())])
    scope = NameScope(schema, ("event",))
    with pytest.raises(ExpressionError, match="rename it"):
        inputs([bind(parse("event:a::int"), scope), bind(parse(f"`{name}`"), scope)])


# Output columns


def test_columns_are_named_by_mapping_by_alias_or_by_their_text():
    assert list(parse_columns({"user": "event:user.id::bigint", "day": "day"})) == ["user", "day"]
    assert list(parse_columns(["event:user.id::bigint", "a + 1 as Next", "`Odd Name`"])) == [
        "event:user.id::bigint",
        "Next",
        "Odd Name",
    ]
    assert parse_columns(None) == {}


def test_columns_reject_a_string_and_a_repeated_name():
    with pytest.raises(ArgumentTypeError, match="expected a list of SQL expressions"):
        parse_columns("day")
    with pytest.raises(ExpressionError, match="two columns are named 'day'"):
        parse_columns(["day", "a as day"])


# Literals


@pytest.mark.parametrize(
    ("text", "expected", "arrow_type"),
    [
        ("1", 1, pa.int32()),
        ("-2147483648", -(2**31), pa.int32()),
        ("2147483648", 2**31, pa.int64()),
        ("-9223372036854775808", -(2**63), pa.int64()),
        ("9223372036854775808", Decimal(2**63), pa.decimal128(19, 0)),
        ("1.50", Decimal("1.50"), pa.decimal128(3, 2)),
        (".5", Decimal("0.5"), pa.decimal128(1, 1)),
        ("0.001", Decimal("0.001"), pa.decimal128(3, 3)),
        ("1e3", 1000.0, pa.float64()),
        ("1.5e-1", 0.15, pa.float64()),
        ("1.5BD", Decimal("1.5"), pa.decimal128(2, 1)),
        ("0.3D", 0.3, pa.float64()),
        ("10L", 10, pa.int64()),
        ("'x'", "x", pa.string()),
        ('"x"', "x", pa.string()),
        ("'it''s'", "it's", pa.string()),
        (r"'tab\t\\'", "tab\t\\", pa.string()),
        (r"r'raw\t'", r"raw\t", pa.string()),
        ("'🎉'", "🎉", pa.string()),
        ("true", True, pa.bool_()),
        ("null", None, pa.null()),
        ("null::int", None, pa.int32()),
        ("X'00Ff'", b"\x00\xff", pa.binary()),
        ("date '2026-01-31'", datetime.date(2026, 1, 31), pa.date32()),
        ("timestamp '2026-01-01'", datetime.datetime(2026, 1, 1, tzinfo=UTC), pa.timestamp("us", "UTC")),
        (
            "timestamp '2026-01-01T10:00:00.5+02:00'",
            datetime.datetime(2026, 1, 1, 8, 0, 0, 500000, tzinfo=UTC),
            pa.timestamp("us", "UTC"),
        ),
        ("timestamp_ntz '2026-01-01 10:00'", datetime.datetime(2026, 1, 1, 10), pa.timestamp("us")),
    ],
)
def test_a_literal_has_its_exact_value_and_type(text, expected, arrow_type):
    array = evaluate(bound(text), pa.record_batch([pa.array([1, 2])], names=["a"]))
    assert array.to_pylist() == [expected, expected]
    assert array.type == arrow_type


@pytest.mark.parametrize(
    "text",
    [
        "date '2026-02-30'",
        "timestamp 'noon'",
        "X'0g'",
        "time '01:02:03'",
        "1" * 39,
        "9" * 5000,
        "5e",
        "1e-",
        ". 1.",
        "1e400",
        "1e39f",
        "1e999999999999999999999bd",
        "128Y",
        "1.5L",
        r"'\ud83d'",
        r"'\Uffffffff'",
        "interval 1 day",
        "interval '1' day",
    ],
)
def test_an_invalid_literal_is_rejected(text):
    with pytest.raises(ExpressionError):
        bound(text)


def test_a_typed_literal_can_be_cast():
    assert values("date '2026-01-31'::string") == ["2026-01-31"]


# Keywords


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("not", "`not`"),
        ("not = in", "`not` = `in`"),
        ("not in in (and)", "not (`in` in (`and`))"),
        ("case = 4 or not case is null", "`case` = 4 or not (`case` is null)"),
        ("case when not then else else end end", "case when `not` then `else` else `end` end"),
        ("case when when then then end", "case when `when` then `then` end"),
        ("from between between and and", "`from` between `between` and `and`"),
        ("user.values.show", "`user`.`values`.`show`"),
        ("interval - 1", "`interval` - 1"),
        ("event:not.case.null is not null", "event:['not']['case']['null'] is not null"),
        ("event:7d.0x1f.1e5.12", "event:['7d']['0x1f']['1e5']['12']"),
        ("event : a . `b c` [ 0 ] [ 'd' ]", "event:a['b c'][0]['d']"),
    ],
)
def test_a_keyword_is_a_name_where_it_is_not_an_operator(text, meant):
    assert parse(text) == parse(meant)


# Taken from Spark 4.2, whose plans show the parentheses.
@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        ("a = b > c", "(a = b) > c"),
        ("a <> b <= c", "(a <> b) <= c"),
        ("a = b between c and d = e", "(a = b) between c and (d = e)"),
        ("a = b in (c)", "(a = b) in (c)"),
        ("a < b is null", "(a < b) is null"),
        ("not a = b and c or d", "((not (a = b)) and c) or d"),
        ("! a is null", "not (a is null)"),
        ("a - b - c * d % e", "(a - b) - ((c * d) % e)"),
        ("- a * b", "(- a) * b"),
        ("-5::string", "cast(-5 as string)"),
        ("a is distinct from b = c", "not (a <=> (b = c))"),
        ("a not like any ('x', 'y')", "not (a like 'x') or not (a like 'y')"),
        ("/* a /* b */ c */ a -- d\n + b", "a + b"),
    ],
)
def test_operators_group_as_in_spark(text, grouped):
    assert parse(text) == parse(grouped)


# Unsupported SQL


@pytest.mark.parametrize(
    ("text", "piece"),
    [
        ("", "got the end"),
        ("select 1", "got `1`"),
        ("a; b", "got `;`"),
        ("a b", "got `b`"),
        ("a in (select 1)", "subqueries"),
        ("a in ()", "at least one value"),
        ("soundex(s)", "`soundex` is not supported"),
        ("count(*)", "pass it to `Table.aggregate`"),
        ("cast(s as date format 'x')", r"expected `\)`, got `format`"),
        ("tags[0", r"expected `\]`"),
        ("(event:a).b", r"got `\.`"),
        ("x.*", r"got `\*`"),
        ("*", "omit the columns to read all of them"),
        (":param", "got `:`"),
        ("coalesce(distinct a)", "got `distinct`"),
        ("(a, b)", r"struct\("),
        ("a is null = flag", "got `=`"),
        ("a = not flag", "got `flag`"),
        ("a /* b", "the comment does not end"),
        ("'a", "closing '"),
        ("case when flag then 1", "expected `end`, got the end"),
        ("case when flag then case end", "quote a column of this name: `case`"),
        ("s like 'a' escape b", "a string literal"),
    ],
)
def test_unsupported_sql_is_rejected_and_quoted(text, piece):
    with pytest.raises(ExpressionError, match=piece):
        bound(text)


def test_an_error_marks_its_place_in_a_long_text():
    text = " and ".join(f"a{number} = {number}" for number in range(30))
    with pytest.raises(ExpressionError) as caught:
        parse(f"{text} oops {text}\nand b")
    first, line, caret, *_ = str(caught.value).split("\n")
    assert (
        first == f"cannot parse SQL at character {len(text) + 2}: expected an operator or the end, got `oops`"
    )
    assert line[caret.index("^") :].startswith("oops")
    assert len(line) <= 80
    with pytest.raises(ExpressionError, match=r"character 7.*\n  b c\n    \^"):
        parse("a\n+\n\nb c".replace("+\n\n", "+\n"))


@pytest.mark.parametrize(
    "text", ["event:IMDB Rating", "event:IMDB Rating = 3", "a = 1 and event:IMDB Rating is null"]
)
def test_a_space_in_a_path_step_does_not_begin_an_alias(text):
    for read in (parse, lambda text: parse_columns([text])):
        with pytest.raises(ExpressionError, match=r"quote a name with spaces: \['IMDB Rating'\]"):
            read(text)
    assert list(parse_columns(["event:IMDB as Rating", "event:x::int y"])) == ["Rating", "y"]


@pytest.mark.parametrize("name", sorted(Databricks.Parser.FUNCTIONS))
def test_a_call_of_any_function_is_supported_or_an_expression_error(name):
    for arguments in ("", "a", "a, b", "a, b, c", "a, b, c, a"):
        with contextlib.suppress(ExpressionError):
            bound(f"{name}({arguments})")


@pytest.mark.parametrize(
    ("text", "takes"),
    [
        ("mod(a, 2, 3)", "2 arguments, got 3"),
        ("nvl(a, b, a)", "2 arguments, got 3"),
        ("date(s, 'yyyy')", "1 argument, got 2"),
        ("int(coalesce(a, b), 1)", "1 argument, got 2"),
        ("1 + string(tags, (a))", "1 argument, got 2"),
        ("coalesce()", "1 or more arguments, got 0"),
        ("variant_get(event)", "2 to 3 arguments, got 1"),
    ],
)
def test_a_call_with_another_number_of_arguments_is_rejected(text, takes):
    with pytest.raises(ExpressionError, match=f"takes {takes}"):
        parse(text)


def test_a_call_may_have_the_most_arguments():
    assert bound("int(coalesce(a, b))") == bound("cast(coalesce(a, b) as int)")
    assert bound("mod(a, coalesce(b, 1, 2))") == bound("a % coalesce(b, 1, 2)")


@pytest.mark.parametrize("opening", ["(", "not ", "a + ", "coalesce(a, "])
def test_deep_nesting_raises_an_expression_error(opening):
    with pytest.raises(ExpressionError, match="nested"):
        parse(opening * 2000 + "a" + ")" * (2000 * opening.count("(")))


def test_a_long_chain_of_conditions_is_not_deep():
    text = " or ".join(f"a = {number}" for number in range(2000))
    assert values(text, a=[1999, 2000, None]) == [True, False, None]


# Comparisons and logic


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 2", [False, True, False, None]),
        ("a == 2", [False, True, False, None]),
        ("a <> 2", [True, False, True, None]),
        ("a != 2", [True, False, True, None]),
        ("a < 2", [True, False, False, None]),
        ("a <= 2", [True, True, False, None]),
        ("2 < a", [False, False, True, None]),
        ("a >= 2", [False, True, True, None]),
        ("a <=> 2", [False, True, False, False]),
        ("a <=> null", [False, False, False, True]),
        ("a = null", [None, None, None, None]),
        ("a between 2 and 3", [False, True, True, None]),
        ("a not between 2 and 3", [True, False, False, None]),
        ("a in (1, 3)", [True, False, True, None]),
        ("a not in (1, 3)", [False, True, False, None]),
        ("a in (1, null)", [True, None, None, None]),
        ("a not in (1, null)", [False, None, None, None]),
        ("a in (1, a)", [True, True, True, None]),
        ("a is null", [False, False, False, True]),
        ("a is not null", [True, True, True, False]),
        ("(a > 1) is true", [False, True, True, False]),
        ("(a > 1) is not true", [True, False, False, True]),
        ("not a > 1", [True, False, False, None]),
        ("a > 1 or null", [None, True, True, None]),
        ("a > 1 and null", [False, None, None, None]),
        ("coalesce(a, 9) = 9", [False, False, False, True]),
        ("true", [True, True, True, True]),
        ("1 < 2 and 'a' < 'b'", [True, True, True, True]),
    ],
)
def test_a_condition_has_the_truth_of_sql(text, expected):
    assert values(text, a=[1, 2, 3, None]) == expected


def test_where_keeps_the_rows_where_it_is_true():
    batch = pa.record_batch([pa.array([1, 2, None], pa.int64())], names=["a"])
    assert filter_mask(bound("a > 1"), batch).to_pylist() == [False, True, False]
    assert filter_mask(bound("null"), batch).to_pylist() == [False, False, False]
    assert filter_mask(bound("true"), batch).to_pylist() == [True, True, True]


def test_where_must_be_boolean():
    assert bind_predicate(parse("a > 1"), NameScope(SCHEMA, ("event",))) == bound("a > 1")
    with pytest.raises(ExpressionError, match=r"where: expected a boolean .* type bigint") as caught:
        bind_predicate(parse("a"), NameScope(SCHEMA, ("event",)))
    assert caught.value.column == "a"
    with raises_at(ExpressionError, "`event:ok::boolean`", column="event"):
        bind_predicate(parse("event:ok"), NameScope(SCHEMA, ("event",)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s like 'a%'", [True, True, False, None]),
        ("s not like 'a%'", [False, False, True, None]),
        ("s like 'a_c'", [True, True, False, None]),
        (r"s like 'a\_c'", [False, True, False, None]),
        (r"s like 'a\\_c'", [False, True, False, None]),
        (r"s like 'a\\\\_'", [False, False, False, None]),
        ("s like '%.c'", [False, False, False, None]),
    ],
)
def test_like_knows_its_wildcards_and_its_escape(text, expected):
    assert values(text, s=["a🎉c", "a_c", "xac", None]) == expected


@pytest.mark.parametrize(
    "text", ["s like s", r"s like 'a\\'", r"s like r'\x'", "tags like '1%'", "s like null"]
)
def test_like_takes_a_string_and_a_literal_pattern(text):
    with pytest.raises(ExpressionError, match="like"):
        bound(text)


def test_nan_equals_itself_and_is_above_every_number_as_in_spark():
    nan, inf = float("nan"), float("inf")
    rows = {"f": [nan, 1.0, inf, None]}
    assert values("f > 1e0", **rows) == [True, False, True, None]
    assert values("f <= 1e0", **rows) == [False, True, False, None]
    assert values("f < 'NaN'::double", **rows) == [False, True, True, None]
    assert values("f = 'NaN'::double", **rows) == [True, False, False, None]
    assert values("f <> f", **rows) == [False, False, False, None]
    assert values("f >= f", **rows) == [True, True, True, None]
    assert values("f in ('NaN'::double, 0e0)", f=[nan, -0.0, 1.0]) == [True, True, False]


# Coercion


@pytest.mark.parametrize(
    ("text", "columns", "expected"),
    [
        ("amount > 20", {"amount": [Decimal("20.00"), Decimal("20.01")]}, [False, True]),
        ("amount = 20.005", {"amount": [Decimal("20.00")]}, [False]),
        ("a < 10.5", {"a": [10, 11, 2**63 - 1]}, [True, False, False]),
        ("a = 10.0", {"a": [10, 11]}, [True, False]),
        ("fine > a", {"fine": [Decimal("1.0000000001")], "a": [1]}, [True]),
        ("f = 0.3", {"f": [0.3, 0.1 + 0.2]}, [True, False]),
        ("amount = f", {"amount": [Decimal("0.30")], "f": [0.3]}, [True]),
        ("f32 = 0.1", {"f32": [0.1]}, [False]),
        ("small = 100000", {"small": [1]}, [False]),
        ("a = f", {"a": [2**53 + 1], "f": [2.0**53]}, [True]),
        ("s = 1", {"s": [" 1 ", "01", "+1", "2", None]}, [True, True, True, False, None]),
        ("a > '5'", {"a": [6, 5]}, [True, False]),
        ("amount > '20.5'", {"amount": [Decimal("20.51")]}, [True]),
        (
            "day >= '2026-01-02'",
            {"day": [datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)]},
            [False, True],
        ),
        ("at > '2026-01-01 10:00'", {"at": [datetime.datetime(2026, 1, 1, 10, 0, 1, tzinfo=UTC)]}, [True]),
        (
            "at > day",
            {"at": [datetime.datetime(2026, 1, 1, tzinfo=UTC)], "day": [datetime.date(2026, 1, 1)]},
            [False],
        ),
        ("raw = X'01'", {"raw": [b"\x01", b"\x02"]}, [True, False]),
        ("raw = 's'", {"raw": [b"s", b"\x73\x00", None]}, [True, False, None]),
        ("flag = false", {"flag": [True, False]}, [False, True]),
        ("flag > 'no'", {"flag": [True, False, None]}, [True, False, None]),
        ("a like '1%'", {"a": [10, 21, None]}, [True, False, None]),
    ],
)
def test_operands_of_a_comparison_meet_in_the_type_of_spark(text, columns, expected):
    assert values(text, **columns) == expected


def test_a_literal_takes_the_type_of_its_column_where_it_fits_exactly():
    comparison = bound("event:n::bigint > 20 and event:d::decimal(10,2) <= 7.5")
    assert [str(output_type(argument)) for call in comparison.arguments for argument in call.arguments] == [
        "int64",
        "int64",
        "decimal128(10, 2)",
        "decimal128(10, 2)",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "a = true",
        "day = 1",
        "tags = tags",
        "at > 5",
        "s + 1",
        "day + 1L",
        "a and flag",
    ],
)
def test_operands_without_a_common_type_are_rejected(text):
    with pytest.raises(ExpressionError):
        bound(text)


def test_text_that_is_not_a_number_fails_a_comparison_with_a_number():
    with pytest.raises(CastError, match="cannot cast 'x' to bigint; use try_cast to get null instead"):
        values("s = 1", s=["1", "x"])


# Arithmetic


@pytest.mark.parametrize(
    ("text", "expected", "arrow_type"),
    [
        ("a + b", 10, pa.int64()),
        ("a - b * 2", 1, pa.int64()),
        ("-a", -7, pa.int64()),
        ("a / b", 7 / 3, pa.float64()),
        ("a % b", 1, pa.int64()),
        ("-a % b", -1, pa.int64()),
        ("a % -b", 1, pa.int64()),
        ("(a + b) * 2", 20, pa.int64()),
        ("a + 0.5", Decimal("7.5"), pa.decimal128(22, 1)),
        ("a * 1e0", 7.0, pa.float64()),
        ("1 + 1", 2, pa.int32()),
        ("1 / 4", 0.25, pa.float64()),
        ("0.5 * 0.5", Decimal("0.25"), pa.decimal128(3, 2)),
        ("a + null", None, pa.int64()),
    ],
)
def test_arithmetic_has_the_result_and_type_of_spark(text, expected, arrow_type):
    batch = pa.record_batch([pa.array([7], pa.int64()), pa.array([3], pa.int64())], names=["a", "b"])
    array = evaluate(bound(text), batch)
    assert (array.to_pylist(), array.type) == ([expected], arrow_type)


@pytest.mark.parametrize(
    "text",
    [
        "a + 9223372036854775807",
        "a / 0",
        "a % 0",
        "1.5 / a / 0",
        "1.5 % (a - a)",
        "1e0 % 0",
        "1e0 / (a - a)",
        "a * 9223372036854775807",
    ],
)
def test_overflow_and_division_by_zero_are_errors_as_in_ansi_mode(text):
    with pytest.raises(CastError, match=r"overflow|(?i:divide by zero)"):
        values(text, a=[2])


def test_decimal_arithmetic_beyond_38_digits_is_rejected():
    with pytest.raises(ExpressionError, match="requires more than 38 digits"):
        bound("fine * fine")


# Casts of ordinary columns


@pytest.mark.parametrize(
    ("text", "columns", "expected"),
    [
        ("f::int", {"f": [1.9, -1.9, None]}, [1, -1, None]),
        ("amount::bigint", {"amount": [Decimal("-1.99")]}, [-1]),
        (
            "amount::decimal(9,1)",
            {"amount": [Decimal("1.25"), Decimal("-1.25")]},
            [Decimal("1.3"), Decimal("-1.3")],
        ),
        ("amount::double", {"amount": [Decimal("0.30"), Decimal("1.10")]}, [0.3, 1.1]),
        ("amount::string", {"amount": [Decimal("1.50")]}, ["1.50"]),
        ("a::smallint", {"a": [32767]}, [32767]),
        ("a::decimal(5,2)", {"a": [123]}, [Decimal("123.00")]),
        ("a::string", {"a": [-5]}, ["-5"]),
        ("a::boolean", {"a": [0, 2]}, [False, True]),
        ("flag::int", {"flag": [True, False]}, [1, 0]),
        ("flag::string", {"flag": [True]}, ["true"]),
        ("s::boolean", {"s": ["YES", "f", " 1 ", None]}, [True, False, True, None]),
        ("s::bigint", {"s": ["\t+07\n"]}, [7]),
        ("s::double", {"s": ["1e3", "-Infinity", ".5"]}, [1000.0, float("-inf"), 0.5]),
        ("s::decimal(4,1)", {"s": ["1.25", "1e2"]}, [Decimal("1.3"), Decimal("100.0")]),
        # Arrow's own division by more than 10^9 is wrong here.
        ("s::decimal(22,2)", {"s": ["9223372036854775807", "0.125"]}, [Decimal(2**63 - 1), Decimal("0.13")]),
        ("s::decimal(10,2)", {"s": ["-2E-38285", "1e-9999999"]}, [Decimal("0.00")] * 2),
        # Java's BigDecimal does not have these scales, nor Spark a zero with as many digits.
        ("try_cast(s as decimal(10,2))", {"s": [f"1e-{'9' * 5000}", f"0e{'9' * 30}"]}, [None, None]),
        (
            "try_cast(s as decimal(10,2))",
            {"s": ["0e37", "0e38", "1e-2147483648"]},
            [Decimal("0.00"), None, None],
        ),
        ("s::double", {"s": ["1d", "1D", "1.5f", "-1F"]}, [1.0, 1.0, 1.5, -1.0]),
        ("try_cast(s as double)", {"s": ["1dd", "d", "infd", "0x1p3", "-nan"]}, [None] * 5),
        ("s::decimal(10,2)", {"s": [f"0.{'0' * 3000}25e3000"]}, [Decimal("0.25")]),
        ("s::decimal(12,3)", {"s": [f"540.4504{'0' * 70}1"]}, [Decimal("540.450")]),
        ("try_cast(s as decimal(5,2))", {"s": ["1e99999999999999999999", "1e3", "1e2"]}, [None, None, 100]),
        ("fine::decimal(20,0)", {"fine": [Decimal("18446744073709551615.5")]}, [Decimal(2**64)]),
        ("finest::bigint", {"finest": [Decimal("4294967295.999999999999999999")]}, [2**32 - 1]),
        (
            "try_cast(fine as decimal(38,38))",
            {"fine": [Decimal(7439), Decimal("0.5")]},
            [None, Decimal("0.5")],
        ),
        ("thirds::int", {"thirds": [Decimal("0.999"), Decimal("-0.5")]}, [0, 0]),
        ("a % -1", {"a": [-(2**31), 7, None]}, [0, 0, None]),
        ("cast(f as float) / cast(3 as float)", {"f": [1.0]}, [1 / 3]),
        ("s::date", {"s": ["2026-01-31"]}, [datetime.date(2026, 1, 31)]),
        (
            "s::date",
            {"s": ["2026-1-2", "2026-01-02T10:00:00Z", " 2026-01-02 10:00:00", "2026"]},
            [*[datetime.date(2026, 1, 2)] * 3, datetime.date(2026, 1, 1)],
        ),
        (
            "try_cast(s as timestamp)",
            {"s": ["2026-01-01T10:00:00+19:00", "2026-01-01 10:00:00.1234567", "2026-01-01 10:00:00+0100"]},
            [
                None,
                *(datetime.datetime(2026, 1, 1, hour, 0, 0, us, UTC) for hour, us in ((10, 123456), (9, 0))),
            ],
        ),
        (
            "s::timestamp_ntz",
            {"s": ["2026-01-01T10:00:00+01:00"]},
            [datetime.datetime(2026, 1, 1, 10)],
        ),
        ("day::string", {"day": [2_932_897, -800_000]}, ["+10000-01-01", "-0221-09-04"]),
        (
            "s::timestamp",
            {"s": ["2026-01-01", "2026-01-01T10:00:00-01:00"]},
            [datetime.datetime(2026, 1, 1, tzinfo=UTC), datetime.datetime(2026, 1, 1, 11, tzinfo=UTC)],
        ),
        ("s::binary", {"s": ["é"]}, [b"\xc3\xa9"]),
        (
            "at::date",
            {"at": [datetime.datetime(1969, 12, 31, 23, tzinfo=UTC)]},
            [datetime.date(1969, 12, 31)],
        ),
        (
            "at::string",
            {"at": [datetime.datetime(2026, 1, 1, 10, 0, 20, 500000, tzinfo=UTC)]},
            ["2026-01-01 10:00:20.5"],
        ),
        ("local::string", {"local": [datetime.datetime(2026, 1, 1, 10)]}, ["2026-01-01 10:00:00"]),
        ("day::timestamp", {"day": [datetime.date(2026, 1, 1)]}, [datetime.datetime(2026, 1, 1, tzinfo=UTC)]),
        ("cast(array(a, null) as array<string>)", {"a": [1, 2]}, [["1", None], ["2", None]]),
        ("try_cast(array('1', s) as array<int>)", {"s": ["x", "2"]}, [[1, None], [1, 2]]),
        ("cast(array(array(), array(a)) as array<array<double>>)", {"a": [1]}, [[[], [1.0]]]),
        (
            "cast(named_struct('x', a, 'y', s) as struct<y: string, x: date>)",
            {"a": [1], "s": ["2026-01-02"]},
            [{"y": "1", "x": datetime.date(2026, 1, 2)}],
        ),
        ("cast(map(a, s) as map<string, int>)", {"a": [7], "s": ["8"]}, [[("7", 8)]]),
        ("cast(if(a > 1, array(s), null) as array<int>)", {"a": [1, 2], "s": ["x", "3"]}, [None, [3]]),
    ],
)
def test_a_cast_has_the_result_of_spark(text, columns, expected):
    assert values(text, **columns) == expected


@pytest.mark.parametrize(
    ("text", "columns", "expected"),
    [
        ("length(s)", {"s": ["aé😀 ", "", None]}, [4, 0, None]),
        ("char_length('abc')", {"s": ["x"]}, [3]),
        ("year(day)", {"day": [datetime.date(1969, 12, 31), datetime.date(1, 1, 1), None]}, [1969, 1, None]),
        ("month(local)", {"local": [datetime.datetime(2024, 2, 29, 23, 59)]}, [2]),
        ("dayofmonth(day)", {"day": [datetime.date(2024, 2, 29)]}, [29]),
        # The part of an instant is that in UTC.
        ("day(at)", {"at": [datetime.datetime(2024, 3, 1, 0, 30, tzinfo=UTC)]}, [1]),
        ("hour(at)", {"at": [datetime.datetime(1969, 7, 20, 20, 17, 40, tzinfo=UTC)]}, [20]),
        ("year(date '2020-05-06') * 100 + month(day)", {"day": [datetime.date(2024, 2, 29)]}, [202002]),
    ],
)
def test_parts_of_text_and_time_are_those_of_spark(text, columns, expected):
    assert values(text, **columns) == expected


FAR_DAYS = pa.array([2**31 - 1, -(2**31)], pa.int32()).cast(pa.date32())
FAR_MICROS = pa.array([2**63 - 1, -(2**63), 25_000_000 * 86_400_000_000], pa.int64())


@pytest.mark.parametrize(
    ("part", "days", "micros"),
    [
        ("year", [5_881_580, -5_877_641], [294_247, -290_308, 70_417]),
        ("month", [7, 6], [1, 12, 9]),
        ("day", [11, 23], [10, 21, 4]),
        ("hour", None, [4, 19, 0]),
    ],
)
def test_parts_of_dates_beyond_the_years_of_16_bits_are_exact(part, days, micros):
    for column, arrow_type in (("at", pa.timestamp("us", "UTC")), ("local", pa.timestamp("us"))):
        assert values(f"{part}({column})", **{column: FAR_MICROS.cast(arrow_type)}) == micros
    if days is not None:
        assert values(f"{part}(day)", day=FAR_DAYS) == days
        assert values(f"{part}(date '+5881580-07-11')", a=[0]) == days[:1]


@given(st.lists(st.none() | st.datetimes(), min_size=1))
def test_parts_of_dates_are_those_of_python(moments):
    for part in ("year", "month", "day", "hour"):
        expected = [moment and getattr(moment, part) for moment in moments]
        assert values(f"{part}(local)", local=moments) == expected
        if part != "hour":
            assert values(f"{part}(day)", day=[moment and moment.date() for moment in moments]) == expected


def test_a_message_shows_a_timestamp_beyond_the_years_of_python():
    where = bound("local = timestamp_ntz '+294247-01-10 04:00:54.775807'")
    assert describe(where) == "(local = +294247-01-10 04:00:54.775807)"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("length(tags)", "`length`: expected a string or binary, got `tags` of type array<string>"),
        ("year(a)", "`year`: expected a date or a timestamp, got `a` of type bigint"),
        ("hour(flag)", "`hour`: expected a timestamp, got `flag` of type boolean"),
    ],
)
def test_arguments_of_other_types_are_rejected(text, sentence):
    with pytest.raises(ExpressionError, match=sentence):
        bound(text)


@pytest.mark.parametrize(
    ("name", "target", "content", "expected"),
    [
        (
            "s",
            "bigint",
            ["1", "x", "1.0", "0x10", "9223372036854775808", ""],
            [1, None, None, None, None, None],
        ),
        ("s", "date", ["2026-02-28", "2026-02-30", "today"], [datetime.date(2026, 2, 28), None, None]),
        ("s", "boolean", ["true", "si"], [True, None]),
        ("a", "tinyint", [127, 128, None, -129], [127, None, None, None]),
        ("a", "decimal(3,1)", [99, 100], [Decimal("99.0"), None]),
        ("f", "int", [1.5, 3e9, float("nan")], [1, None, None]),
        ("amount", "decimal(3,1)", [Decimal("99.94"), Decimal("99.95")], [Decimal("99.9"), None]),
        ("raw", "string", [b"ok", b"\xff"], ["ok", None]),
    ],
)
def test_a_value_that_does_not_fit_breaks_a_cast_and_is_null_in_try_cast(name, target, content, expected):
    assert values(f"try_cast({name} as {target})", **{name: content}) == expected
    with pytest.raises(CastError, match=rf"`cast\({name} as "):
        values(f"{name}::{target}", **{name: content})


@pytest.mark.parametrize(
    "text", ["tags::string", "day::int", "flag::date", "local::bigint", "raw::boolean", "a::timestamp_ntz"]
)
def test_a_cast_that_spark_refuses_is_rejected(text):
    with pytest.raises(ExpressionError, match="cannot cast"):
        bound(text)


def test_coalesce_takes_the_first_value_in_the_common_type():
    assert values("coalesce(a, amount, 0)", a=[None, 1], amount=[Decimal("2.50"), None]) == [
        Decimal("2.50"),
        Decimal("1.00"),
    ]
    assert values("coalesce(s, 'none')", s=[None, "x"]) == ["none", "x"]


# Types


@pytest.mark.parametrize(
    ("text", "arrow_type"),
    [
        ("bigint", pa.int64()),
        ("LONG", pa.int64()),
        ("int", pa.int32()),
        ("smallint", pa.int16()),
        ("tinyint", pa.int8()),
        ("float", pa.float32()),
        ("double", pa.float64()),
        ("string", pa.string()),
        ("boolean", pa.bool_()),
        ("binary", pa.binary()),
        ("date", pa.date32()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("timestamp_ntz", pa.timestamp("us")),
        ("decimal", pa.decimal128(10, 0)),
        ("decimal(5)", pa.decimal128(5, 0)),
        ("decimal(38, 10)", pa.decimal128(38, 10)),
        ("array<int>", pa.list_(pa.int32())),
        ("map<string,array<date>>", pa.map_(pa.string(), pa.list_(pa.date32()))),
        ("struct<Id:bigint,`odd name`:string>", pa.struct([("Id", pa.int64()), ("odd name", pa.string())])),
        ("variant", None),
    ],
)
def test_a_sql_type_has_its_arrow_type(text, arrow_type):
    assert parse_type(text) == arrow_type


@pytest.mark.parametrize(
    "text",
    [
        "",
        "foo",
        "int(5)",
        "timestamp(3)",
        "decimal(39,0)",
        "decimal(2,3)",
        "array<variant>",
        "interval",
        "void",
        "datetime",
        "struct<a:int not null>",
        "array<" * 500 + "int" + ">" * 500,
        "varchar(3)",
    ],
)
def test_an_unknown_type_is_rejected(text):
    with pytest.raises(ExpressionError):
        parse_type(text)


# Properties

TRUTHS = {
    "and": lambda x, y: False if x is False or y is False else None if x is None or y is None else True,
    "or": lambda x, y: True if x is True or y is True else None if x is None or y is None else False,
}
COMPARISONS = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def compare(symbol):
    return lambda x, y: None if x is None or y is None else COMPARISONS[symbol](x, y)


operands = st.sampled_from([("a", lambda a, b: a), ("b", lambda a, b: b)]) | st.one_of(
    st.integers(-3, 3), st.none()
).map(lambda n: ("null" if n is None else str(n), lambda a, b: n))
comparisons = st.tuples(operands, st.sampled_from(sorted(COMPARISONS)), operands).map(
    lambda part: (
        f"{part[0][0]} {part[1]} {part[2][0]}",
        lambda a, b: compare(part[1])(part[0][1](a, b), part[2][1](a, b)),
    )
)
null_tests = operands.map(lambda part: (f"{part[0]} is null", lambda a, b: part[1](a, b) is None))


def combined(conditions):
    negated = conditions.map(
        lambda part: (f"not ({part[0]})", lambda a, b: None if (x := part[1](a, b)) is None else not x)
    )
    joined = st.tuples(conditions, st.sampled_from(["and", "or"]), conditions).map(
        lambda part: (
            f"({part[0][0]}) {part[1]} ({part[2][0]})",
            lambda a, b: TRUTHS[part[1]](part[0][1](a, b), part[2][1](a, b)),
        )
    )
    return negated | joined


conditions = st.recursive(comparisons | null_tests, combined, max_leaves=8)
nullable = st.none() | st.integers(-3, 3)


@given(conditions, st.lists(st.tuples(nullable, nullable), min_size=1, max_size=8))
def test_any_condition_agrees_with_a_row_by_row_evaluation(condition, rows):
    text, reference = condition
    left, right = (list(column) for column in zip(*rows, strict=True))
    assert values(text, a=left, b=right) == [reference(a, b) for a, b in rows]


@given(st.lists(st.text(max_size=6), min_size=1, max_size=3))
def test_any_name_can_be_written_between_quotes(names):
    quoted = "".join("['{}']".format(name.replace("\\", "\\\\").replace("'", "\\'")) for name in names)
    assert only_input(f"event:{quoted}") == Extraction("event", tuple(names), None)


@given(st.text(max_size=30))
def test_any_text_is_an_expression_or_an_expression_error(text):
    with contextlib.suppress(ExpressionError):
        bound(text)


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("event:@proc::string", "['@proc']"),
        ("event:a.@type", "['@type']"),
        ("event:$id", "['$id']"),
    ],
)
def test_a_name_with_special_characters_is_rejected_with_its_quoted_form(text: str, quoted: str):
    with pytest.raises(ExpressionError, match=re.escape(f"special characters: quote the name, {quoted}")):
        parse(text)


def test_a_literal_after_a_sign_plus_has_the_digits_of_its_type_as_in_spark():
    result = bound("+ 9223372036854775807 * amount")
    assert output_type(result) == pa.decimal128(20 + SCHEMA.field("amount").type.precision + 1, 2)
    assert values("+ a", a=[1, None]) == [1, None]
