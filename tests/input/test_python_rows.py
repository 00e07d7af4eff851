"""Python objects in and out: rows of dicts, nested columns as Variants, and Variants compared by value."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.errors import raises_at

import delta_variant as dv
from delta_variant.errors import ArgumentTypeError, CastError, SchemaError
from delta_variant.variant.objects import variants_from_column

Variant = dv.Variant

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**38) + 1, 10**38 - 1),
    st.floats(allow_nan=False),
    st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**30), max_value=10**30),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.binary(),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=st.just(dt.timezone.utc), min_value=dt.datetime(2, 1, 1)),
    st.times(),
    st.uuids(),
)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4)
)


def typed(value: Any) -> Any:
    """Return a value whose comparison tells True from 1, and 1 from 1.0."""
    if isinstance(value, dict):
        return {name: typed(each) for name, each in value.items()}
    if isinstance(value, list):
        return [typed(each) for each in value]
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return ("number", Fraction(value))
    return (type(value), value)


@given(VALUES)
def test_objects_come_back_as_they_were(value: Any):
    variant = Variant.from_python(value)
    assert typed(variant.to_python()) == typed(value)
    assert Variant.from_python(variant) == variant
    assert Variant.from_python({"a": [variant]}).get("$.a[0]") == variant
    assert hash(Variant.from_python(variant)) == hash(variant)


def unordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: unordered(value[name]) for name in reversed(value)}
    return list(map(unordered, value)) if isinstance(value, list) else value


@given(VALUES)
def test_the_order_of_fields_does_not_matter(value: Any):
    one, two = Variant.from_python(value), Variant.from_python(unordered(value))
    assert one == two
    assert hash(one) == hash(two)


@pytest.mark.parametrize(
    ("one", "two", "is_equal"),
    [
        (1, Decimal("1.00"), True),
        (100, Decimal("1E+2"), True),
        (2**62, Decimal(2**62), True),
        (1, 1.0, False),
        (1, True, False),
        (0.0, -0.0, True),
        (math.nan, -math.nan, True),
        ("a", b"a", False),
        (None, False, False),
        (dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc), False),
        ({"a": 1, "b": [2, {"c": Decimal("3.0")}]}, {"b": [2, {"c": 3}], "a": Decimal("1.0")}, True),
        ({"a": None}, {}, False),
        ([1, 2], [2, 1], False),
        ("x" * 63, "x" * 64, False),
    ],
)
def test_variants_are_compared_by_value(one: Any, two: Any, is_equal: bool):
    left, right = Variant.from_python(one), Variant.from_python(two)
    assert (left == right) is is_equal
    assert (right == left) is is_equal
    assert len({left, right}) == 2 - is_equal


def test_bytes_of_other_writers_are_compared_by_value():
    short, long = b"\x05a", bytes([16 << 2]) + (1).to_bytes(4, "little") + b"a"
    unused_name = b"\x11\x01\x00\x01z"
    assert Variant(b"\x01\x00\x00", short) == Variant(unused_name, long)
    assert Variant(b"\x01\x00\x00", short) != "a"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (127, 1), (128, 2), (2**15, 4), (2**31, 8), (2**63, 16),
    ],
)  # fmt: skip
def test_an_integer_has_the_narrowest_type(value: int, text: int):
    expected = {1: 2, 2: 3, 4: 5, 8: 9, 16: 18}[text]
    assert len(Variant.from_python(value).value) == expected


@pytest.mark.parametrize(
    ("value", "error", "sentence"),
    [
        (object(), ArgumentTypeError, "a value of type object"),
        ({1, 2}, ArgumentTypeError, "a value of type set"),
        (dt.timedelta(1), ArgumentTypeError, "timedelta"),
        ({1: 2}, ArgumentTypeError, "the key 1"),
        ([{"a": {None: 2}}], ArgumentTypeError, "the key None"),
        ("\ud800", ArgumentTypeError, "surrogate"),
        (10**38, CastError, "more than 38 digits"),
        (Decimal("NaN"), CastError, "finite"),
        (Decimal("1E-39"), CastError, "more than 38 digits"),
        (dt.time(1, tzinfo=dt.timezone.utc), CastError, "time zone"),
    ],
)
def test_an_object_without_a_counterpart_is_rejected(value: Any, error: type[Exception], sentence: str):
    with pytest.raises(error, match=sentence):
        Variant.from_python(value)


def test_an_object_that_contains_itself_is_rejected():
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(dv.DeltaVariantError, match="nests deeper"):
        Variant.from_python(endless)


# Rows.

ROWS = [{"id": 1, "event": {"n": 1, "s": "x"}}, {"id": 2, "event": {"n": None}}, {"id": 3}]


def read(table: Any) -> list[dict[str, Any]]:
    return sorted(dv.read_table(table).to_pylist(), key=lambda row: row["id"])


@pytest.mark.parametrize("kind", [list, tuple, iter, lambda rows: (row for row in rows)])
def test_rows_are_dicts_and_missing_keys_stay_missing(tmp_path: Path, kind: Any):
    dv.write_table(tmp_path, kind(ROWS), variant_columns=["event"])
    assert read(tmp_path) == [
        {"id": 1, "event": {"n": 1, "s": "x"}},
        {"id": 2, "event": {"n": None}},
        {"id": 3, "event": None},
    ]
    texts = {row["id"]: row["event"] for row in dv.read_table(tmp_path).to_pylist(variants="json")}
    assert texts == {1: '{"n":1,"s":"x"}', 2: '{"n":null}', 3: None}


def test_columns_of_the_table_decide_types(tmp_path: Path):
    schema = pa.schema([("id", pa.int32()), ("event", pa.json_()), ("price", pa.decimal128(10, 2))])
    dv.write_table(tmp_path, schema.empty_table())
    dv.write_table(tmp_path, [{"id": 1, "event": [1, {"a": b"x"}], "price": Decimal("1.5")}], mode="append")
    assert read(tmp_path) == [{"id": 1, "event": [1, {"a": b"x"}], "price": Decimal("1.50")}]
    nested = pa.table({"id": pa.array([2], pa.int32()), "event": [{"a": [1.5, None]}]})
    dv.write_table(tmp_path, nested, mode="append")
    assert read(tmp_path)[1] == {"id": 2, "event": {"a": [1.5, None]}, "price": None}


def test_rows_are_the_source_of_a_merge(tmp_path: Path):
    dv.write_table(tmp_path, ROWS, variant_columns=["event"])
    merge = dv.merge(tmp_path, [{"id": 3, "event": {"new": True}}, {"id": 4}], "target.id = source.id")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert read(tmp_path)[2:] == [{"id": 3, "event": {"new": True}}, {"id": 4, "event": None}]


def test_json_texts_need_the_name_of_a_column(tmp_path: Path):
    dv.write_table(tmp_path / "t", ['{"a": 1}', "[2]", None], variant_columns=["event"])
    assert [row["event"] for row in dv.read_table(tmp_path / "t").to_pylist()] == [{"a": 1}, [2], None]
    with pytest.raises(ArgumentTypeError, match="pass variant_columns"):
        dv.write_table(tmp_path / "u", ['{"a": 1}'])
    assert not (tmp_path / "u").exists()


@pytest.mark.parametrize("name", ["e.json", "e.ndjson", "e.jsonl", "e.ndjson.gz"])
@pytest.mark.parametrize("kind", [str, Path])
def test_a_path_is_a_file_of_json(tmp_path: Path, name: str, kind: Any):
    text = b'{"a": 1}\n{"a": 2}\n'
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    dv.write_table(tmp_path / "t", kind(tmp_path / name), variant_columns=["event"])
    dv.write_table(tmp_path / "u", kind(tmp_path / name))
    assert [row["event"] for row in dv.read_table(tmp_path / "t").to_pylist()] == [{"a": 1}, {"a": 2}]
    assert dv.read_table(tmp_path / "u").schema.names == ["value"]
    with pytest.raises(ArgumentTypeError, match="has one column"):
        dv.write_table(tmp_path / "v", kind(tmp_path / name), variant_columns=["a", "b"])


class Point(NamedTuple):
    x: int
    y: int


@dataclass
class Place:
    name: str


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([], "at least one row"),
        ([1], "row 0: .*expected rows that are dicts"),
        ([{"a": 1}, 5], "row 1: .*expected rows that are dicts"),
        ([Point(1, 2)], r"row 0: .*got Point\(x=1, y=2\): pass row\._asdict\(\) for each row"),
        ([Place("a")], r"row 0: .*got Place\(name='a'\): pass dataclasses\.asdict\(row\) for each row"),
        ([{1: 1}], "expected rows that are dicts with column names"),
        ([{"event": "{}"}], "cannot tell whether text in a Variant column is JSON or a string"),
        ([{"event": {"a": object()}}], "a value of type object"),
        ([{"a": 1}, {"a": "x"}], "cannot convert the column 'a' to bigint because of the value 'x'"),
        ('{"a": 1}', "the path of a folder or a JSON, CSV or"),
        ({"a": 1}, "got one dict"),
    ],
)
def test_ambiguous_rows_are_rejected_with_the_remedy(tmp_path: Path, rows: Any, sentence: str):
    named = ["event"] if "event" in str(rows) else []
    with pytest.raises(ArgumentTypeError, match=sentence):
        dv.write_table(tmp_path / "t", rows, variant_columns=named)
    assert not (tmp_path / "t").exists()


BERLIN = dt.timezone(dt.timedelta(hours=1))
NOON = dt.datetime(2026, 1, 1, 12)
NANOSECOND = pd.Timestamp("2026-01-01 00:00:00.000000001")
CHANGED = [
    (pa.int64(), 1.5, "bigint because of the value 1.5: pass whole numbers"),
    (pa.int32(), Decimal("2.5"), "int because of the value Decimal"),
    (pa.float32(), 1e300, "float because of the value 1e[+]300: pass numbers below"),
    (pa.float32(), True, "float because of the value True: pass numbers"),
    (pa.float64(), True, "double because of the value True: pass numbers"),
    (pa.list_(pa.float64()), [1.5, False], "double because of the value False"),
    (pa.list_(pa.int64()), b"ab", "array<bigint> because of the value b'ab': pass lists"),
    (pa.date32(), NOON, "date because of .*: pass dates"),
    (pa.date32(), 5, "date because of the value 5"),
    (pa.timestamp("us", "UTC"), NOON, "timestamp because of .*: pass datetimes with a time zone"),
    (pa.timestamp("us", "UTC"), 5, "timestamp because of the value 5"),
    (pa.timestamp("us"), NOON.replace(tzinfo=BERLIN), "timestamp_ntz .*: pass datetimes without a time zone"),
    (pa.timestamp("us"), NANOSECOND, "timestamp_ntz because of the value Timestamp"),
    (pa.string(), "\ud800", "string because of the value"),
    (pa.list_(pa.int64()), [1, 1.5], "bigint because of the value 1.5"),
    (pa.struct([("a", pa.date32())]), {"a": NOON}, "date because of"),
    (pa.map_(pa.string(), pa.int64()), {"a": 1.5}, "bigint because of the value 1.5"),
]


@pytest.mark.parametrize(("arrow_type", "value", "sentence"), CHANGED)
def test_a_value_that_its_column_cannot_hold_is_an_error(
    tmp_path: Path, arrow_type: Any, value: Any, sentence: str
):
    table = dv.Table(tmp_path / "t")
    table.append(pa.table({"a": pa.nulls(1, arrow_type)}))
    with pytest.raises(ArgumentTypeError, match=f"the column 'a' to {sentence}"):
        table.append([{"a": None}, {"a": value}])
    assert table.count() == 1


def test_objects_within_columns_become_variants(tmp_path: Path):
    table = dv.Table(tmp_path / "t")
    table.create(["s struct<v: variant, n: int>", "l array<variant>", "m map<string, array<variant>>"])
    row = {
        "s": {"v": {"a": [1, None]}, "n": 2},
        "l": [Variant.from_json('"x"'), 1.5, None, {"value": 1}],
        "m": {"k": [Decimal("1.5"), {}]},
    }
    table.append([row, {"s": {"v": None}, "l": []}])
    expected = [
        {
            "s": {"v": {"a": [1, None]}, "n": 2},
            "l": ["x", 1.5, None, {"value": 1}],
            "m": [("k", [Decimal("1.5"), {}])],
        },
        {"s": {"v": None, "n": None}, "l": [], "m": None},
    ]
    assert table.scan().to_pylist() == expected
    table.append(table.scan().to_pylist(variants="bytes"))
    assert table.scan().to_pylist() == expected * 2
    with raises_at(ArgumentTypeError, "cannot tell whether text in a Variant column is JSON", column="l"):
        table.append([{"l": ["x"]}])
    with raises_at(ArgumentTypeError, "because of the value", column="s"):
        table.append([{"s": [1, ("v", 1)]}])
    with raises_at(ArgumentTypeError, "a value of type object", column="s"):
        table.append([{"s": {"v": object()}}])


@pytest.mark.parametrize("value", [Path("x"), 1j, {"a": object()}])
def test_a_value_that_no_variant_holds_is_not_to_be_in_one(tmp_path: Path, value: Any):
    with raises_at(
        ArgumentTypeError, "because of the value .*: pass text, or values of another type", column="a"
    ):
        dv.write_table(tmp_path / "t", [{"a": value}])


@pytest.mark.parametrize("form", [list, iter, pd.DataFrame])
def test_uuids_are_text(tmp_path: Path, form: Any):
    """DuckDB returns its UUIDs as text, too. Bytes could not be compared with the usual spelling."""
    table, key = dv.Table(tmp_path / "t"), UUID(int=7)
    for _ in range(2):
        table.append(form([{"id": key, "l": [str(key)], "n": 1}, {"id": None, "l": [], "n": 2}]))
    assert (
        table.scan(columns=["id", "n"], where=f"id = '{key}'").to_pylist() == [{"id": str(key), "n": 1}] * 2
    )


def test_uuids_have_the_type_of_their_column(tmp_path: Path):
    table, key = dv.Table(tmp_path / "t"), UUID(int=7)
    dv.create_table(tmp_path / "t", {"b": "binary", "s": "struct<l array<string>>", "v": "variant"})
    table.append([{"b": key, "s": {"l": [key]}, "v": [key]}])
    assert table.scan().to_pylist() == [{"b": key.bytes, "s": {"l": [str(key)]}, "v": [key]}]
    new = dv.Table(tmp_path / "new")
    new.append([{"s": {"l": [key, None]}}])
    assert new.scan().to_pylist() == [{"s": {"l": [str(key), None]}}]


def test_a_value_that_its_column_can_hold_is_converted(tmp_path: Path):
    table = dv.Table(tmp_path / "t")
    types = {"n": pa.int64(), "f": pa.float32(), "d": pa.date32(), "at": pa.timestamp("us", "UTC")}
    table.append(pa.table({name: pa.nulls(1, arrow_type) for name, arrow_type in types.items()}))
    table.append([{"n": 2.0, "f": math.inf, "d": dt.datetime(2026, 1, 1), "at": NOON.replace(tzinfo=BERLIN)}])
    eleven = dt.datetime(2026, 1, 1, 11, tzinfo=dt.timezone.utc)
    found = table.scan(where="n is not null").to_pylist()
    assert found == [{"n": 2, "f": math.inf, "d": dt.date(2026, 1, 1), "at": eleven}]


@pytest.mark.parametrize("form", [list, pd.DataFrame])
@pytest.mark.parametrize(
    "values",
    [[dt.date(2026, 1, 1), NOON], [NOON, NOON.replace(tzinfo=BERLIN)], [[dt.date(2026, 1, 1)], [NOON]]],
)
def test_values_of_two_types_are_an_error_where_one_would_change(
    tmp_path: Path, form: Any, values: list[Any]
):
    rows = [{"a": value} for value in values]
    with pytest.raises(ArgumentTypeError, match="variant_columns, or pass values of one type"):
        dv.write_table(tmp_path / "t", form(rows).astype(object) if form is pd.DataFrame else form(rows))


def test_a_late_column_of_an_iterator_is_an_error_with_its_row(tmp_path: Path):
    rows = ({"id": n} if n < 20_000 else {"id": n, "late": 1} for n in range(20_001))
    with raises_at(ArgumentTypeError, "pass a list of rows", row=20_000):
        dv.write_table(tmp_path / "t", rows)


# Arrow columns.


def test_nested_columns_keep_their_types(tmp_path: Path):
    moment = dt.datetime(2026, 1, 1, 12, tzinfo=dt.timezone.utc)
    fields = {
        "i": (pa.int64(), 1),
        "u": (pa.uint64(), 2**64 - 1),
        "d": (pa.decimal128(10, 3), Decimal("1.250")),
        "day": (pa.date32(), dt.date(2026, 1, 1)),
        "ts": (pa.timestamp("ms", "Europe/Berlin"), moment),
        "local": (pa.timestamp("us"), dt.datetime(2026, 1, 1)),
        "b": (pa.binary(), b"x"),
        "uuid": (pa.uuid(), UUID(int=7)),
        "hash": (pa.binary(16), b"0123456789abcdef"),
        "t": (pa.time32("s"), dt.time(1, 2, 3)),
        "f": (pa.float32(), 1.5),
        "none": (pa.int64(), None),
        "m": (pa.map_(pa.string(), pa.int32()), [("k", 5)]),
        "l": (pa.list_(pa.struct([("x", pa.string())])), [{"x": "y"}, None]),
    }
    struct = pa.struct([(name, arrow_type) for name, (arrow_type, _) in fields.items()])
    value = {name: value for name, (_, value) in fields.items()}
    # Arrow does not build arrays of extension types within structs.
    columns = [pa.array([each, None], arrow_type) for arrow_type, each in fields.values()]
    mask = pa.array([False, True])
    table = pa.table({"v": pa.StructArray.from_arrays(columns, fields=list(struct), mask=mask)})
    dv.write_table(tmp_path, table, variant_columns=["v"], shredding=None)
    first, second = dv.read_table(tmp_path).to_pylist()
    assert second == {"v": None}
    assert first["v"] == {**value, "m": {"k": 5}}
    kinds = Variant(**dv.read_table(tmp_path).to_pylist(variants="bytes")[0]["v"])
    number = kinds.get("$.i")
    # An int64 stays one, where JSON text would become int8.
    assert number is not None
    assert number.value[0] >> 2 == 6


LONGS = st.integers(-(2**63), 2**63 - 1)
STRUCTS = st.fixed_dictionaries({"a": st.none() | LONGS, "b": st.lists(NAMES, max_size=3)})


@given(st.lists(st.none() | STRUCTS, max_size=5))
def test_structs_come_back_as_dicts(values: list[Any]):
    arrow_type = pa.struct([("b", pa.list_(pa.string())), ("a", pa.int64())])
    padded = pa.array([None, *values, None], arrow_type)
    variants = variants_from_column(padded.slice(1, len(values)))
    found = [each and Variant(**each).to_python() for each in variants.to_pylist()]
    assert found == values


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        (pa.array([[(1, 2)]], pa.map_(pa.int64(), pa.int64())), "its keys are Int64, not strings"),
        (pa.array([[("k", 1), ("k", 2)]], pa.map_(pa.string(), pa.int64())), "two fields called"),
        (pa.array([5], pa.duration("s")), "Duration"),
    ],
)
def test_a_column_without_a_counterpart_is_an_error_with_its_name(tmp_path: Path, column: Any, sentence: str):
    with raises_at(SchemaError, f"cannot convert .* to Variant: .*{sentence}", column="v"):
        dv.write_table(tmp_path / "t", pa.table({"v": column}), variant_columns=["v"])


def test_dictionaries_views_and_variants_within_structs(tmp_path: Path):
    inner = pa.array(["a", "b"]).dictionary_encode()
    variants = dv.parse_json(['{"z": 1, "a": 2}', "[1]"])
    marked = pa.field("v", variants.type, metadata={"ARROW:extension:name": "arrow.parquet.variant"})
    struct = pa.StructArray.from_arrays(
        [inner, pa.array(["x", None], pa.string_view()), variants],
        fields=[pa.field("d", inner.type), pa.field("s", pa.string_view()), marked],
    )
    dv.write_table(tmp_path, pa.table({"v": struct}), variant_columns=["v"])
    assert [row["v"] for row in dv.read_table(tmp_path).to_pylist()] == [
        {"d": "a", "s": "x", "v": {"z": 1, "a": 2}},
        {"d": "b", "s": None, "v": [1]},
    ]


def test_frames_of_other_libraries_are_written(tmp_path: Path):
    import duckdb
    import pandas as pd

    dv.write_table(tmp_path / "p", pd.DataFrame({"id": [1], "v": [{"a": [1, 2]}]}), variant_columns=["v"])
    assert dv.read_table(tmp_path / "p").to_pylist() == [{"id": 1, "v": {"a": [1, 2]}}]
    relation = duckdb.sql("select 1 as id, {'a': [1.5, null]} as v")
    dv.write_table(tmp_path / "d", relation, variant_columns=["v"])
    assert dv.read_table(tmp_path / "d").to_pylist() == [{"id": 1, "v": {"a": [Decimal("1.5"), None]}}]


def test_columns_of_the_table_are_found_in_any_case(tmp_path: Path):
    import pandas as pd

    dv.create_table(tmp_path, {"Id": "int", "V": "variant"})
    rows = [{"ID": 1, "v": {"a": 1}}]
    for data in (rows, iter(rows), pd.DataFrame({"ID": pd.array([1], "Int32"), "v": [{"a": 1}]})):
        dv.write_table(tmp_path, data, mode="append")
    with_struct = pa.table({"iD": pa.array([1], pa.int32()), "v": [{"a": 1}]})
    dv.write_table(tmp_path, with_struct, mode="append")
    assert dv.read_table(tmp_path).to_pylist() == [{"Id": 1, "V": {"a": 1}}] * 4
    merge = dv.merge(tmp_path, [{"id": 1, "v": [2]}], "target.Id = source.id").when_matched_update_all()
    merge.execute()
    assert dv.read_table(tmp_path).to_pylist() == [{"Id": 1, "V": [2]}] * 4


def test_polars_frames_are_written_lazy_or_not(tmp_path: Path):
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"id": [1], "v": [{"a": [1, 2]}]})
    for name, data in (("e", frame), ("l", frame.lazy())):
        dv.write_table(tmp_path / name, data, variant_columns=["v"])
        assert dv.read_table(tmp_path / name).to_pylist() == [{"id": 1, "v": {"a": [1, 2]}}]


def test_a_missing_key_of_a_dict_in_pandas_stays_missing(tmp_path: Path):
    pd = pytest.importorskip("pandas")
    values = [{"a": 1}, {"b": [1, {"c": 2}]}, None, float("nan"), pd.NaT, pd.NA, {}, [1, "x"]]
    frame = pd.DataFrame({"id": range(8), "v": pd.Series(values, dtype=object), "w": ["x"] * 8}).iloc[::-1]
    dv.write_table(tmp_path, frame, variant_columns=["v"])
    expected = [*values[:2], None, None, None, None, *values[6:]]
    assert read(tmp_path) == [{"id": id_, "v": value, "w": "x"} for id_, value in enumerate(expected)]
    # The column of the table is a Variant, and need not be named.
    dv.write_table(tmp_path, pd.DataFrame({"id": [8], "v": [{"z": None}]}), mode="append")
    assert read(tmp_path)[8] == {"id": 8, "v": {"z": None}, "w": None}
    texts = pd.DataFrame({"id": [9, 10], "v": ['{"a": 1}', None]})
    dv.write_table(tmp_path, texts, variant_columns=["v"], mode="append")
    assert [row["v"] for row in read(tmp_path)[9:]] == [{"a": 1}, None]


def test_scalars_of_several_types_in_pandas_become_variants(tmp_path: Path):
    pd = pytest.importorskip("pandas")
    dv.Table(tmp_path / "t").append(pd.DataFrame({"v": [1, 2.5, None, True]}), variant_columns=["v"])
    assert [row["v"] for row in dv.read_table(tmp_path / "t")] == [1, 2.5, None, True]


def test_an_index_of_pandas_without_a_name_is_left_out(tmp_path: Path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"n": [1, 2, 3]})
    dv.Table(tmp_path / "t").append(frame[frame.n > 1])
    assert dv.read_table(tmp_path / "t").to_pylist() == [{"n": 2}, {"n": 3}]
    dv.Table(tmp_path / "named").append(frame[frame.n > 2].rename_axis("id"))
    assert dv.read_table(tmp_path / "named").to_pylist() == [{"n": 3, "id": 2}]


def test_an_index_of_pandas_with_the_name_of_a_column_is_an_error(tmp_path: Path):
    frame = pd.DataFrame({"a": [1]}, index=pd.Index([5], name="a"))
    with raises_at(ArgumentTypeError, "the index of the frame and a column are both called 'a'", column="a"):
        dv.write_table(tmp_path, frame)


def test_dicts_of_pandas_are_read_in_batches_with_the_row_of_an_error(tmp_path: Path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"id": range(20_000), "v": [{str(n % 3): n} for n in range(20_000)]})
    dv.write_table(tmp_path / "t", frame, variant_columns=["v"])
    assert [row["v"] for row in read(tmp_path / "t")] == frame["v"].tolist()
    frame.at[17_000, "v"] = {"a": object()}
    with raises_at(ArgumentTypeError, "a value of type object", row=17_000, column="v"):
        dv.write_table(tmp_path / "u", frame, variant_columns=["v"])
    frame.at[17_000, "v"] = "text"
    with raises_at(ArgumentTypeError, "JSON or a string", row=17_000, column="v"):
        dv.write_table(tmp_path / "u", frame, variant_columns=["v"])


def test_structs_of_arrow_have_every_key_in_every_row(tmp_path: Path):
    pl = pytest.importorskip("polars")
    rows = [{"a": 1}, {"b": 2}]
    table = pa.table({"v": rows})
    for name, data in (("p", pl.from_arrow(table)), ("a", table)):
        dv.write_table(tmp_path / name, data, variant_columns=["v"])
        assert [row["v"] for row in dv.read_table(tmp_path / name).to_pylist()] == [
            {"a": 1, "b": None},
            {"a": None, "b": 2},
        ]


def test_moments_of_numpy_and_pandas_keep_their_nanoseconds():
    np, pd = pytest.importorskip("numpy"), pytest.importorskip("pandas")
    text = "2026-01-01 00:00:00.123456789"
    local, aware = pd.Timestamp(text), pd.Timestamp(text, tz="Europe/Berlin")
    one, two = np.datetime64(text.replace(" ", "T")), np.datetime64("NaT", "ns")
    array = np.array([one, two])
    found = Variant.from_python(
        {"a": local, "b": aware, "c": one, "d": array, "e": pd.NaT, "f": [pd.NA, two]}
    )
    utc = "2025-12-31 23:00:00.123456789+00:00"
    expected = {"a": text, "b": utc, "c": text, "d": [text, None], "e": None, "f": [None, None]}
    assert json.loads(found.to_json()) == expected
    whole = pd.Timestamp("2026-01-01 00:00:00.123456")
    assert Variant.from_python(whole).to_python() == whole.to_pydatetime()
    far = pd.Timestamp(dt.datetime(3026, 1, 1))
    assert Variant.from_python(far).to_python() == far.to_pydatetime()
    for value in (np.timedelta64(5, "ns"), np.datetime64(5, "ps"), np.array([5], "timedelta64[ns]")):
        with raises_at(ArgumentTypeError, "cannot convert a value of type numpy"):
            Variant.from_python(value)


@pytest.mark.parametrize("one", [{"event": {"user": {"id": 7}}}, {"tags": ["a", "b"]}, {"name": "abc"}, {}])
def test_one_dict_is_rejected_because_its_keys_would_be_rows(tmp_path: Path, one: dict[str, Any]):
    table = dv.Table(tmp_path / "t")
    with pytest.raises(ArgumentTypeError, match=r"got one dict: pass \[row\]"):
        table.append(one)
    with pytest.raises(ArgumentTypeError, match="got one dict"):
        dv.write_table(tmp_path / "t", one, variant_columns=list(one))
    table.append([{"id": 1}])
    with pytest.raises(ArgumentTypeError, match="got one dict"):
        dv.merge(table, one, "target.id = source.id")
    assert table.scan().to_pylist() == [{"id": 1}]


def test_a_file_of_an_unknown_kind_has_its_name_and_a_way_out_in_the_error(tmp_path: Path):
    with pytest.raises(ArgumentTypeError, match=r"got 'x\.txt': pass read_json\(…\) or read_csv\(…\)"):
        dv.write_table(tmp_path / "t", "x.txt")


NESTED = [{"id": 1, "s": {"a": 1}, "list": [{"x": 1}], "map": [("k", {"y": 1})]}]
NESTED_TYPE = pa.schema(
    [
        ("id", pa.int64()),
        ("s", pa.struct([("a", pa.int64())])),
        ("list", pa.list_(pa.struct([("x", pa.int64())]))),
        ("map", pa.map_(pa.string(), pa.struct([("y", pa.int64())]))),
    ]
)
MORE = {
    "s.b": {"s": {"a": 2, "b": "more"}},
    "list.element.z": {"list": [{"x": 2}, {"z": True}]},
    "map.value.z": {"map": {"k": {"y": 2, "z": 3}}},
}


@pytest.fixture
def nested(tmp_path: Path) -> dv.Table:
    table = dv.Table(tmp_path / "nested")
    table.append(pa.Table.from_pylist(NESTED, NESTED_TYPE))
    return table


@pytest.mark.parametrize("column", MORE)
def test_a_field_that_the_table_lacks_is_an_error_or_is_added(nested: dv.Table, column: str):
    """pyarrow leaves it out without an error."""
    row = {"id": 2, **MORE[column]}
    with raises_at(dv.SchemaError, "has no column", column=column):
        nested.append([row])
    nested.append([row], schema_mode="merge")
    [stored] = nested.scan(where="id = 2").to_pylist()
    expected = {
        "s.b": {"a": 2, "b": "more"},
        "list.element.z": [{"x": 2, "z": None}, {"x": None, "z": True}],
        "map.value.z": [("k", {"y": 2, "z": 3})],
    }
    [name] = MORE[column]
    assert stored[name] == expected[column]


def test_a_merge_keeps_the_fields_of_its_source(nested: dv.Table):
    source = [{"id": 1, "s": {"a": 2, "b": "more"}, "list": None, "map": None}]
    merge = nested.merge(source, "target.id = source.id", schema_mode="merge").when_matched_update_all()
    assert merge.execute().rows_updated == 1
    assert nested.head()[0]["s"] == {"a": 2, "b": "more"}


def test_a_field_of_a_later_row_of_an_iterator_is_an_error(tmp_path: Path):
    rows = ({"s": {"a": number} if number < 20_000 else {"b": number}} for number in range(20_001))
    with raises_at(dv.ArgumentTypeError, "fields that the first 16,384 rows lack", column="s", row=16_384):
        dv.write_table(tmp_path, rows)


def test_a_value_of_another_kind_than_a_struct_is_an_error(nested: dv.Table):
    with raises_at(dv.ArgumentTypeError, "because of the value 5", column="s"):
        nested.append([{"id": 2, "s": 5}])
