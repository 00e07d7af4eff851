"""Scalar functions and casts have the types and the values of Spark, for constants and for columns."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from spark.scalar_cases import DIFFERENCES, ERROR, ZONES, shown
from support.planting import Table

import delta_variant as dv
from delta_variant.errors import (
    CastError,
    ConstraintViolationError,
    DeltaVariantError,
    ExpressionError,
    UnsupportedFeatureError,
)
from delta_variant.expressions.bind import bind
from delta_variant.expressions.cast import cast_values
from delta_variant.expressions.evaluate import constant_of, evaluate
from delta_variant.expressions.names import NameScope
from delta_variant.expressions.parse import parse
from delta_variant.expressions.scalars import SCALAR_FUNCTIONS
from delta_variant.expressions.scalars.signature import ScalarFunction
from delta_variant.expressions.tree import Call, Cast, Expression, Name
from delta_variant.expressions.types import type_name

SPARK = json.loads(
    (Path(__file__).parent / "spark_scalars.json").read_text(encoding="utf-8"),
    parse_float=lambda text: shown(float(text)),
)
# What can depend on the time zone.
LOCAL = re.compile("date|timestamp|unix")
NO_COLUMNS = pa.schema([])
ONE_ROW = pa.record_batch([pa.array([0])], names=["n"])


def rendered(values: pa.Array) -> list[list[Any]]:
    """Return the type and the value of each row as the recorded answers have them."""
    name = type_name(values.type, "")
    if pa.types.is_date(values.type):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(values.type) and values.type.tz:
        values = values.cast(pa.int64())
    elif pa.types.is_decimal(values.type) or pa.types.is_timestamp(values.type):
        values = cast_values(values, pa.string(), strict=True)
    return [[name, shown(value)] for value in values.to_pylist()]


def answer(text: str, zone: str) -> list[Any]:
    try:
        (found,) = rendered(evaluate(bind(parse(text), NameScope(NO_COLUMNS, (), zone)), ONE_ROW))
    except DeltaVariantError:
        return [ERROR]
    return found


def cases() -> Iterator[tuple[str, str, list[Any]]]:
    """Yield each recorded expression with a time zone and its answer, without the documented differences."""
    for text, first, *second in SPARK:
        if any(difference.search(text) for difference in DIFFERENCES):
            continue
        yield text, ZONES[0], first
        if second or LOCAL.search(text):
            yield text, ZONES[1], second[0] if second else first


def test_constants_have_the_values_of_spark():
    different = [
        (text, zone, spark, ours) for text, zone, spark in cases() if (ours := answer(text, zone)) != spark
    ]
    assert different == []
    assert len(list(cases())) > 8_000


FIXED = dict.fromkeys(("to_date", "to_timestamp", "unix_timestamp"), frozenset({1}))
"""The arguments that must be constants, for functions that expand to other functions."""


def fixed_arguments(tree: Call | Cast) -> frozenset[int]:
    if isinstance(tree, Cast):
        return frozenset()
    function = SCALAR_FUNCTIONS.get(tree.function)
    return (
        function.constant if isinstance(function, ScalarFunction) else FIXED.get(tree.function, frozenset())
    )


def arguments_of(tree: Call | Cast) -> tuple[Expression, ...]:
    return tree.arguments if isinstance(tree, Call) else (tree.operand,)


def with_arguments(tree: Call | Cast, arguments: tuple[Expression, ...]) -> Expression:
    if isinstance(tree, Call):
        return Call(tree.function, arguments)
    return Cast(arguments[0], tree.type, tree.strict)


def test_columns_have_the_values_of_spark():
    """The recorded calls again, as one call of columns for all arguments of the same types."""
    calls: dict[Any, list[tuple[str, list[Any], list[Any]]]] = defaultdict(list)
    for text, zone, spark in cases():
        tree = parse(text)
        if spark == [ERROR] or not isinstance(tree, Call | Cast) or not arguments_of(tree):
            continue
        values = [
            pa.repeat(constant_of(bind(each, NameScope(NO_COLUMNS, (), zone))), 1)
            for each in arguments_of(tree)
        ]
        fixed = fixed_arguments(tree)
        parts = [str(each) if at in fixed else str(each.type) for at, each in enumerate(values)]
        head = tree.function if isinstance(tree, Call) else (str(tree.type), tree.strict)
        calls[(head, zone, *parts)].append((text, values, spark))
    different = []
    for (_, zone, *_), rows in calls.items():
        tree = parse(rows[0][0])
        assert isinstance(tree, Call | Cast)
        columns = [
            pa.concat_arrays(column) for column in zip(*(values for _, values, _ in rows), strict=True)
        ]
        batch = pa.record_batch(columns, names=[f"c{at}" for at in range(len(columns))])
        fixed = fixed_arguments(tree)
        arguments = tuple(
            each if at in fixed else Name((f"c{at}",)) for at, each in enumerate(arguments_of(tree))
        )
        bound = bind(with_arguments(tree, arguments), NameScope(batch.schema, (), zone))
        found = rendered(evaluate(bound, batch))
        assert evaluate(bound, batch.slice(0, 0)).to_pylist() == []
        different += [
            (text, zone, spark, ours)
            for (text, _, spark), ours in zip(rows, found, strict=True)
            if ours != spark
        ]
    assert different == []


def run(text: str, batch: pa.RecordBatch) -> list[Any]:
    return evaluate(bind(parse(text), NameScope(batch.schema)), batch).to_pylist()


MAP = pa.map_(pa.string(), pa.int64())
NESTED = pa.struct({"X": pa.struct({"y": pa.string()})})
NUMBERS = pa.record_batch({"n": pa.array([2, 0, None], pa.int32())})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("case when n <> 0 then 10 / n end", [5.0, None, None]),
        ("case n when 0 then 0e0 when 2 then 10 / n end", [5.0, 0.0, None]),
        ("if(n = 0, 1e0, 10 / n)", [5.0, 1.0, None]),
        ("coalesce(nullif(n, 0), 10 / nullif(n, 0), -1)", [2.0, -1.0, -1.0]),
        ("nvl2(nullif(n, 0), 10 / n, 7e0)", [5.0, 7.0, 7.0]),
    ],
)
def test_only_the_branches_that_a_row_selects_are_evaluated(text: str, expected: list[Any]):
    assert run(text, NUMBERS) == expected


COLLECTIONS = pa.record_batch(
    {
        "l": pa.array([[9], [1, None], None, [], [2, 3]], pa.list_(pa.int64())),
        "m": pa.array([[("a", 0)], [("b", 1), ("a", 2)], None, [], [("a", None)]], MAP),
        "s": pa.array([[], [{"X": {"y": "one"}}], None, [None], [{"X": None}]], pa.list_(NESTED)),
        "n": pa.array([5, 1, 0, None, -1], pa.int32()),
        "key": ["b", "b", "a", "a", None],
    }
).slice(1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("get(l, n)", [None, None, None, None]),
        ("get(l, 0)", [1, None, None, 2]),
        ("try_element_at(l, n)", [1, None, None, 3]),
        ("case when size(l) > 1 then l[1] end", [None, None, None, 3]),
        ("if(size(l) > 1, element_at(l, -2), -5)", [1, -5, -5, 2]),
        ("m['a']", [2, None, None, None]),
        ("m[key]", [1, None, None, None]),
        ("element_at(m, 'b')", [1, None, None, None]),
        ("get(s, 0).x.Y", ["one", None, None, None]),
        ("array(l, array(n::bigint))[1][0]", [1, 0, None, -1]),
        ("m['b'] = 1 or l[0] = 2", [True, None, None, True]),
    ],
)
def test_elements_of_columns(text: str, expected: list[Any]):
    if " or " in text:
        with pytest.raises(CastError, match=r"`l\[0\]`: an array of length 0 has no such element: use `get`"):
            run(text, COLLECTIONS)
        text = text.replace("l[0]", "get(l, 0)")
    assert run(text, COLLECTIONS) == expected


@pytest.mark.parametrize(
    "text", ["case when n = 0 then 10 / n end", "if(n = 2, 1e0, 10 / n)", "coalesce(null, 10 / n)"]
)
def test_a_branch_that_a_row_selects_fails(text: str):
    with pytest.raises(CastError, match="divide by zero"):
        run(text, NUMBERS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("substring('a')", "substring"),
        ("upper(array(1))", "`upper`: expected string"),
        ("year(5)", "`year`: expected a date or a timestamp, got `5` of type int"),
        ("5.5 div 2", "`div`: expected an integer"),
        ("date_format(date '2026-01-01', 'yyyy-ww')", 'letters "ww"'),
        ("date_format(date '2026-01-01', 'VV')", 'letters "VV"'),
        ("to_date('2026', 'yyyy E')", 'letters "E"'),
        ("'a' rlike '(?=a)'", "(?=a)"),
        ("split('a', 'x*')", "matches empty text"),
        ("split('a', '')", "matches empty text"),
        ("split('a', 'b|')", "matches empty text"),
        ("split('a', '^a')", "the assertion '^'"),
        ("regexp_replace('a', 'x*|\\\\\\\\b', '')", "cannot replace the regular expression"),
        ("regexp_replace('a', 'a$', '')", r"(`\z` is the end of the text)"),
        ("regexp_replace('a', '(a)', '$2')", "has no group 2; groups: 1"),
        ("regexp_replace('a', '(a)', '$10')", "at most nine groups"),
        ("regexp_replace('a', 'a', '$')", "cannot replace by '$'"),
        ("regexp_extract('a', 'a')", "has no group 1; groups: 0"),
        ("regexp_extract('a', '(a)', -1)", "no group -1"),
        ("regexp_extract('a', '(a$)')", "`$` in a group"),
        ("regexp_extract('a', '(a*)+', 1)", "a repeated group that matches empty text"),
        ("regexp_extract('a', 'a$', 0)", "the assertion '$'"),
        ("repeat('a')", "repeat"),
        # The grammar of Spark has no comma after `both`, `leading` and `trailing`.
        ("trim(both 'x', 'xa')", "expected `from`"),
        ("trim(leading 'xa')", "expected `from`"),
        ("trim('x' from 'xa' from 'b')", "expected `)`"),
        ("rlike('a', 'a++')", "quantifier"),
        ("size(5)", "`size`: expected an array or a map"),
        ("parse_json('[1]')[0]", "is a Variant: write its path after a colon, `parse_json('[1]'):[0]`"),
        ("array(parse_json('1'))[0]", "cannot take a Variant out of `array(parse_json('1'))`"),
        ("get(map('a', 1), 'a')", "`get`: expected an array"),
        ("map('a', 1)[1]", "`[]`: expected a key of type string, got `1` of type int: cast it"),
        ("named_struct('a', 1).b", "`named_struct('a', 1).b`: `b` does not exist; the fields are a"),
        ("array(1)[0].b", "`array(1)[0]` is int, which has no fields"),
        ("hash(map(1, 2))", "map"),
        ("current_date()", "its value changes"),
    ],
)
def test_what_is_not_supported_is_an_expression_error_that_names_it(text: str, message: str):
    with pytest.raises(ExpressionError) as caught:
        bind(parse(text), NameScope(NO_COLUMNS))
    assert message in str(caught.value)


def test_floating_point_keys_are_not_compared():
    maps = pa.schema({"m": pa.map_(pa.float64(), pa.int64())})
    with pytest.raises(ExpressionError, match=r"`\[\]`: cannot compare keys of type double"):
        bind(parse("m[0e0]"), NameScope(maps))


@pytest.mark.parametrize("name", ["sin", "regexp_count", "explode", "monotonically_increasing_id"])
def test_an_unknown_function_is_an_error_that_names_it(name: str):
    with pytest.raises(ExpressionError, match=name):
        bind(parse(f"{name}('a')"), NameScope(NO_COLUMNS))


def test_all_expressions_of_a_statement_have_one_current_moment(tmp_path: Path):
    before = datetime.now(timezone.utc)
    dv.write_table(tmp_path / "t", pa.table({"n": [1, 2, 3]}))
    texts = {
        "one": "current_timestamp()",
        "other": "now()",
        "day": "current_date",
        "bare": "`Current_Timestamp`",
    }
    where = "current_timestamp() = now() and unix_timestamp() = unix_seconds(current_timestamp())"
    rows = pa.table(dv.read_table(tmp_path / "t", columns=texts, where=where)).to_pylist()
    assert len(rows) == 3
    (moment,) = {row[name] for row in rows for name in ("one", "other", "bare")}
    assert before <= moment <= datetime.now(timezone.utc)
    assert {row["day"] for row in rows} == {moment.date()}


def test_a_column_precedes_a_function_without_parentheses(tmp_path: Path):
    table = dv.Table(tmp_path / "t")
    table.append(pa.table({"n": [1, 2], "Current_Date": [date(2020, 1, 1), None]}))
    (row,) = table.scan(
        columns={"column": "current_date", "today": "current_date()"}, where="n = 1"
    ).to_pylist()
    assert row["column"] == date(2020, 1, 1) < row["today"]
    source = pa.table({"n": [2]})
    merge = table.merge(source, "target.n = source.n")
    merge.when_matched_update({"current_date": "date(current_timestamp)"}).execute()
    assert {each["Current_Date"] for each in table.scan().to_pylist()} == {date(2020, 1, 1), row["today"]}
    with pytest.raises(ExpressionError, match=r"`n.current_date`"):
        table.scan(where="n.current_date = 1").to_pylist()


@pytest.fixture
def events(tmp_path: Path) -> Path:
    path = tmp_path / "events"
    for day in (1, 2, 3):
        at = [datetime(2026, 5, day, hour, tzinfo=timezone.utc) for hour in (1, 13)]
        rows = pa.table({"name": ["Ada", f"x{day}"], "at": at, "n": pa.array([day, -day], pa.int32())})
        dv.write_table(path, rows, mode="append")
    return path


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ("upper(name) = 'ADA'", 3),
        ("substring(name, 1, 1) = 'x'", 3),
        ("date_trunc('day', at) = timestamp '2026-05-02 00:00:00'", 2),
        ("abs(n) = 3", 2),
        ("not startswith(name, 'A')", 3),
        ("case when n < 0 then 5 else n end = 5", 3),
        ("at >= date_sub(date '2026-05-04', 1)", 2),
        ("date_format(at, 'dd') in ('01', '03')", 4),
        ("greatest(n, 0) = 0", 3),
        ("name || n = 'Ada1'", 1),
    ],
)
def test_conditions_over_functions_find_all_rows(events: Path, where: str, count: int):
    assert pa.table(dv.read_table(events, where=where)).num_rows == count


def test_a_constant_call_skips_files(events: Path):
    plan = dv.read_table(events, where="at >= date_sub(date '2026-05-04', 1)").explain()
    assert (plan.files, plan.files_read) == (3, 1)


def test_functions_work_in_updates_merges_and_aggregates(events: Path):
    dv.update(events, {"name": "lower(name)"}, "n > 0")
    names = pa.table(dv.read_table(events, where="n > 0"))["name"].to_pylist()
    assert names == ["ada"] * 3
    source = pa.table({"key": ["ADA"], "m": pa.array([9], pa.int32())})
    merge = dv.merge(
        events, source, "upper(t.name) = s.key and abs(t.n) = 1", target_alias="t", source_alias="s"
    )
    merge.when_matched_update({"n": "greatest(t.n, s.m)"}).execute()
    found = dv.aggregate(events, {"most": "max(abs(n))", "first": "min(date_format(at, 'yyyy-MM'))"}).values
    assert found == {"most": 9, "first": "2026-05"}


GENERATED = {
    "day": "CAST(at AS DATE)",
    "month": "DATE_FORMAT(at, 'yyyy-MM')",
    "quarter": "QUARTER(at)",
    "start": "DATE_TRUNC('HOUR', at)",
    "prefix": "SUBSTRING(name, 1, 2)",
    "tall": "CASE WHEN n > 3 THEN 'tall' ELSE 'small' END",
}
"""Expressions of Delta's own guide."""
COLUMNS = pa.table(
    {
        "at": [datetime(2026, 5, 1, 1, 30, tzinfo=timezone.utc)],
        "name": ["\U0001f600Ada"],
        "n": pa.array([5], pa.int32()),
        "day": pa.array([None], pa.date32()),
        "month": pa.array([None], pa.string()),
        "quarter": pa.array([None], pa.int32()),
        "start": pa.array([None], pa.timestamp("us", "UTC")),
        "prefix": pa.array([None], pa.string()),
        "tall": pa.array([None], pa.string()),
    }
)


def generating(path: Path, expressions: dict[str, str]) -> Path:
    dv.write_table(path, COLUMNS.slice(0, 0))

    def change(document: dict[str, Any]) -> None:
        for field in document["fields"]:
            if field["name"] in expressions:
                field["metadata"]["delta.generationExpression"] = expressions[field["name"]]

    Table(path).edit_schema(change)
    return path


def test_generated_columns_are_computed_and_checked(tmp_path: Path):
    path = generating(tmp_path / "t", GENERATED)
    given = COLUMNS.select(["at", "name", "n"])
    dv.write_table(path, given, mode="append")
    (row,) = pa.table(dv.read_table(path)).select(list(GENERATED)).to_pylist()
    assert row == {
        "day": date(2026, 5, 1),
        "month": "2026-05",
        "quarter": 2,
        "start": datetime(2026, 5, 1, 1, tzinfo=timezone.utc),
        "prefix": "\U0001f600A",
        "tall": "tall",
    }
    with pytest.raises(ConstraintViolationError, match="SUBSTRING"):
        dv.write_table(path, given.append_column("prefix", pa.array(["Ad"])), mode="append")


def test_a_generated_column_cannot_depend_on_the_current_time(tmp_path: Path):
    path = generating(tmp_path / "t", {"day": "CURRENT_DATE()"})
    with pytest.raises(
        UnsupportedFeatureError, match="cannot use `current_date` here because its value changes"
    ):
        dv.write_table(path, COLUMNS.select(["at", "name", "n"]), mode="append")


def test_constraints_can_call_functions(tmp_path: Path):
    dv.write_table(tmp_path / "t", pa.table({"code": ["ABC"], "n": [1]}))
    dv.add_constraint(tmp_path / "t", "code", "code rlike '^[A-Z]{3}$' and length(trim(code)) = 3")
    dv.write_table(tmp_path / "t", pa.table({"code": ["XYZ"], "n": [2]}), mode="append")
    with pytest.raises(ConstraintViolationError, match="code = 'xy'"):
        dv.write_table(tmp_path / "t", pa.table({"code": ["xy"], "n": [2]}), mode="append")


EPOCH_MILLIS = 1_785_542_400_123
MOMENT = datetime(2026, 8, 1, 0, 0, 0, 123_000, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(v:ts::bigint / 1000)::timestamp", MOMENT),
        ("timestamp_millis(v:ts::bigint)", MOMENT),
        ("bigint(v:ts)", EPOCH_MILLIS),
        ("(d)::string", "1.0E7"),
        ("string(1.5e0)", "1.5"),
        ("length(b)", 3),
        ("b::boolean", None),
    ],
)
def test_casts_of_columns_and_paths(tmp_path: Path, text: str, expected: Any):
    rows = pa.table({"v": [f'{{"ts": {EPOCH_MILLIS}}}'], "d": [1e7], "b": [b"abc"]})
    dv.write_table(tmp_path / "t", rows, variant_columns=["v"])
    if text == "b::boolean":
        with pytest.raises(ExpressionError, match="from binary to boolean"):
            pa.table(dv.read_table(tmp_path / "t", columns={"it": text}))
        return
    (row,) = pa.table(dv.read_table(tmp_path / "t", columns={"it": text})).to_pylist()
    assert row["it"] == expected
