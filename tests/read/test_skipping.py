"""Data skipping only skips files, row groups and pages without matching rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta, timezone
from decimal import Context, Decimal
from math import inf, isfinite, nan, nextafter
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from hypothesis import given
from hypothesis import strategies as st
from support.planting import Table
from support.tables import append_events, read_ids

import delta_variant as dv
from delta_variant.errors import CastError
from delta_variant.expressions.bind import bind_predicate
from delta_variant.expressions.names import NameScope
from delta_variant.expressions.parse import parse as parse_expression
from delta_variant.protocol.statistics import bounds_at, decode_bound
from delta_variant.read.explanation import Explanation
from delta_variant.read.predicate import (
    AllOf,
    AnyOf,
    Comparison,
    Leaf,
    NullTest,
    PartitionTest,
    pruning_predicate_of,
)

# Bounds that Databricks wrote: item_100 and 100 for $['name'] and $['value'], 200 for $['key'].
ITEM_100 = "0rJld6c{^fC42ifwHy+etpjq%zdL820S&x52(>OPwb(Pf00000a.=4fzc]1KfAq7M"
KEY_200 = "0rAfabWhTiwQbUe0S-o32]H.-0000000000"

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("x", pa.int32()), ("f", pa.float64())])


def write_files(table: Path, files: Sequence[Sequence[str | None]], **options: Any) -> None:
    """Write one file for each list of JSON texts; `id` counts all rows."""
    start = 0
    for texts in files:
        append_events(table, texts, start, **options)
        start += len(texts)


def found(table: Path, where: str) -> tuple[list[int], Explanation]:
    """Return the ids of matching rows, and the report of the read."""
    return read_ids(table, where), dv.read_table(str(table), columns=["id"], where=where).explain()


def edit_stats(table: Path, change: Any) -> None:
    """Rewrite the statistics of every AddFile in the log by `change`, from JSON to JSON or text."""
    for commit in (table / "_delta_log").glob("*.json"):
        lines = []
        for action in map(json.loads, commit.read_text().splitlines()):
            if "add" in action:
                stats = change(json.loads(action["add"]["stats"]))
                action["add"]["stats"] = stats if isinstance(stats, str) else json.dumps(stats)
            lines.append(json.dumps(action))
        commit.write_text("\n".join(lines))


def condition(where: str) -> Any:
    bound = bind_predicate(
        parse_expression(where), NameScope(SCHEMA.append(pa.field("e", pa.null())), ("e",))
    )
    return pruning_predicate_of(bound, ["day"])


BIGINT_A = Leaf(("e",), ("a",), pa.int64())
X = Leaf(("x",), None, pa.int32())


def test_a_predicate_is_reduced_to_tests_of_leaves():
    one = Comparison(BIGINT_A, (), ">", pa.scalar(1, pa.int64()))
    assert condition("e:a::bigint > 1") == condition("1 < e:a::bigint") == one
    assert condition("not (e:a::bigint <= 1)") == one
    assert condition("e:a::bigint > 1 and x is null") == AllOf((one, NullTest(X, True)))
    assert condition("not (e:a::bigint <= 1 and x is null)") == AnyOf((one, NullTest(X, False)))
    assert isinstance(condition("day = 'a' or day is null"), PartitionTest)


@pytest.mark.parametrize(
    "where",
    [
        "e:a[0]::bigint > 1",  # statistics do not have paths into arrays
        "e:a::bigint is null",  # statistics do not count nulls per path
        "e:a::boolean = true",
        "e:a::bigint + 1 > 2",
        "e:a::bigint > x",
        "cast(e:a::string as bigint) > 1",  # the order of texts is not that of numbers
        "e:a::bigint = cast('NaN' as double)",  # NaN
        "to_json(e) = '{}'",
        "not (x <=> 1)",
    ],
)
def test_predicates_that_statistics_cannot_decide_select_every_row(where):
    assert condition(where) is None


@pytest.mark.usefixtures("small_files_are_shredded")
def test_files_are_skipped_by_the_bounds_of_a_path(tmp_path):
    write_files(
        tmp_path / "t", [[f'{{"a": {n}}}' for n in range(start, start + 10)] for start in (0, 10, 20)]
    )
    for where, ids, read in [
        ("event:a::bigint = 15", [15], 1),
        ("event:a::bigint > 28", [29], 1),
        ("event:a::bigint >= 29.5", [], 0),
        ("event:a::double < 1.5", [0, 1], 1),
        ("event:a::decimal(4,1) in (5, 25.0)", [5, 25], 2),
        ("event:a::bigint in (3, 25, null, 99)", [3, 25], 2),
        ("event:a::bigint in (-4, 10, 30, 1e3)", [10], 1),
        ("event:a::double in (9.5D, 19D, 29D, 40D)", [19, 29], 2),
        (f"event:a::bigint not in ({', '.join(map(str, range(25)))})", [25, 26, 27, 28, 29], 3),
        ("event:a::bigint between 9 and 10", [9, 10], 2),
        ("event:a::bigint <> 3", [n for n in range(30) if n != 3], 3),
    ]:
        got, explained = found(tmp_path / "t", where)
        assert (got, explained.files_read, explained.files_by_variant_bounds) == (ids, read, 3 - read), where
    assert found(tmp_path / "t", "event:a::bigint not in (3, null)")[1].files_read == 0


@pytest.mark.usefixtures("small_files_are_shredded")
def test_texts_are_skipped_by_their_bytes_and_beginnings(tmp_path):
    texts = [["alpha", "beta"], ["gamma", "z" * 40], ["\ue000", "\U00010000"]]
    write_files(tmp_path / "t", [[json.dumps({"s": text}) for text in file] for file in texts])
    assert found(tmp_path / "t", "event:s::string = 'beta'")[1].files_read == 1
    assert found(tmp_path / "t", "event:s::string like 'ga%'")[0] == [2]
    assert found(tmp_path / "t", "event:s::string like 'ga%'")[1].files_read == 1
    got, explained = found(tmp_path / "t", f"event:s::string = '{'z' * 40}'")
    assert (got, explained.files_read) == ([3], 1)
    # U+E000 is less than U+10000 in UTF-8 order, and greater in UTF-16 order.
    got, explained = found(tmp_path / "t", "event:s::string > '\uf000'")
    assert (got, explained.files_read) == ([5], 1)


@pytest.mark.usefixtures("small_files_are_shredded")
def test_a_file_without_a_bound_for_the_path_is_read(tmp_path):
    """Another type, a missing bound, a missing path, and nulls among numbers."""
    files = [
        ['{"a": 1}'],
        ['{"a": "5"}'],
        ['{"b": 1}'],
        ['{"a": 5}', '{"a": null}'],
        ['{"a": 5}', '{"a": "x"}'],
    ]
    write_files(tmp_path / "t", files)
    got, explained = found(tmp_path / "t", "try_cast(event:a as bigint) = 5")
    assert (got, explained.files_read) == ([1, 3, 5], 4)


def test_nan_is_above_every_bound(tmp_path):
    """Bounds exclude NaN, which is greater than every number."""
    table = str(tmp_path / "t")
    dv.write_table(table, pa.table({"id": [0, 1], "f": [1.0, float("nan")]}))
    dv.write_table(table, pa.table({"id": [2], "f": [9.0]}), mode="append")
    assert found(tmp_path / "t", "f > 5")[0] == [1, 2]
    assert found(tmp_path / "t", "f <> 1")[0] == [1, 2]
    got, explained = found(tmp_path / "t", "f < 5")
    assert (got, explained.files_by_statistics) == ([0], 1)


def test_files_are_skipped_by_partition_values_and_by_columns(tmp_path):
    rows = pa.table({"id": [1, 2, 3, 4], "day": ["a", "a", "b", None]})
    dv.write_table(str(tmp_path / "t"), rows, partition_by=["day"])
    for where, ids, by_partition, by_statistics in [
        ("day = 'b'", [3], 2, 0),
        ("day is null", [4], 2, 0),
        ("day in ('a', 'b') and id > 2", [3], 1, 1),
        ("id is null", [], 0, 3),
        ("false", [], 3, 0),
    ]:
        got, explained = found(tmp_path / "t", where)
        skipped = (explained.files_by_partition_values, explained.files_by_statistics)
        assert (got, skipped) == (ids, (by_partition, by_statistics)), where


def test_a_column_of_nulls_alone_holds_nothing(tmp_path):
    """Paths do not have a `nullCount`, but a column of nulls does not have values at any path."""
    write_files(tmp_path / "t", [[None, None], ['{"a": 1}']])
    got, explained = found(tmp_path / "t", "event:a::bigint is not null")
    assert (got, explained.files_by_variant_bounds) == ([2], 1)


def test_a_timestamp_may_be_above_the_millisecond_in_the_statistics(tmp_path):
    moment = pa.array([1_700_000_000_123_456], pa.timestamp("us", "UTC"))
    dv.write_table(str(tmp_path / "t"), pa.table({"id": [1], "at": moment}))
    assert found(tmp_path / "t", "at > timestamp '2023-11-14 22:13:20.1234Z'")[0] == [1]


def test_bounds_without_the_feature_do_not_count(tmp_path):
    """PROTOCOL.md, "Variant Statistics": bounds need variantShredding, and readers ignore others."""
    table = tmp_path / "t"
    write_files(table, [['{"key": 1}']], shredding=None)
    edit_stats(
        table, lambda stats: {**stats, "minValues": {"event": KEY_200}, "maxValues": {"event": KEY_200}}
    )
    assert found(table, "event:key::bigint = 1")[0] == [0]


@pytest.mark.parametrize(
    "change",
    [
        lambda stats: {},
        lambda stats: "no JSON",
        lambda stats: {**stats, "minValues": None},
        lambda stats: {
            **stats,
            "minValues": {"id": "x", "event": 5},
            "maxValues": {"id": [], "event": {"a": 1}},
        },
        lambda stats: {**stats, "minValues": {"event": "#####"}, "maxValues": {"event": "0rr93"}},
        lambda stats: {**stats, "numRecords": "many", "nullCount": {"id": -1, "event": 1e300}},
        lambda stats: {key: stats[key] for key in stats if key != "maxValues"},
    ],
)
def test_statistics_that_cannot_be_understood_skip_nothing(tmp_path, change):
    write_files(tmp_path / "t", [['{"a": 1}', '{"a": 2}'], ['{"a": 7}']])
    edit_stats(tmp_path / "t", change)
    assert found(tmp_path / "t", "event:a::bigint >= 7 or id = 0")[0] == [0, 2]


@pytest.mark.usefixtures("small_files_are_shredded")
def test_row_groups_and_pages_are_skipped_within_a_file(tmp_path, monkeypatch):
    """Statistics of `typed_value` apply if all rows of `value` are null."""
    monkeypatch.setattr("delta_variant.data_file.writer.ROW_GROUP_BYTES", 1 << 16)
    rows = 120_000
    write_files(tmp_path / "t", [[f'{{"a": {n}, "pad": "{n * 7919 % 99991}"}}' for n in range(rows)]])
    got, explained = found(tmp_path / "t", "event:a::bigint between 60000 and 60002")
    assert got == [60_000, 60_001, 60_002]
    assert explained.row_groups_read < explained.row_groups
    assert explained.rows_decoded < rows / 4
    assert explained.bytes_read < explained.bytes / 3
    assert f"{explained.row_groups_read:,} of {explained.row_groups:,} read" in str(explained)


def test_a_row_group_with_numbers_and_other_values_is_read(tmp_path):
    texts = [f'{{"a": {n}}}' for n in range(1000)]
    texts[500] = '{"a": "7777"}'
    write_files(tmp_path / "t", [texts])
    assert found(tmp_path / "t", "event:a::bigint = 7777")[0] == [500]


def test_skipping_spares_a_reader_an_error_and_adds_none(tmp_path):
    write_files(tmp_path / "t", [['{"a": 1, "b": "x"}'], ['{"a": 2, "b": 3}']])
    assert found(tmp_path / "t", "event:a::bigint = 2 and event:b::bigint = 3")[0] == [1]
    with pytest.raises(CastError, match="cannot cast"):
        found(tmp_path / "t", "event:a::bigint = 1 and event:b::bigint = 3")


def test_the_bulk_decoder_of_bounds_agrees_with_the_scalar_one():
    """Both decode the strings that Databricks wrote."""
    for text in (ITEM_100, KEY_200, "0rAf3bMW#D00%Fx0000000000"):
        bounds = decode_bound(text).to_python()
        assert bounds
        for key, value in bounds.items():
            target = pa.string() if isinstance(value, str) else pa.int64()
            assert bounds_at(pa.array([text]), key, target).to_pylist() == [value]


SCALARS = st.sampled_from(
    [
        "1",
        "2",
        "-3",
        "7",
        "1.5",
        "-0.5",
        "2.25",
        "1e0",
        "-2.5e1",
        '"a"',
        '"b"',
        '"5"',
        '"zz"',
        "true",
        "null",
        "[1]",
    ]
)


@st.composite
def events(draw: st.DrawFn) -> str | None:
    if draw(st.integers(0, 12)) == 0:
        return draw(st.sampled_from([None, "null", "5", '"text"', "[]", "{}"]))
    members = []
    if draw(st.integers(0, 4)):
        members.append(f'"a": {draw(SCALARS)}')
    if draw(st.booleans()):
        inner = draw(st.one_of(SCALARS, SCALARS.map(lambda value: f'{{"b": {value}}}')))
        members.append(f'"n": {inner}')
    return "{" + ", ".join(members) + "}"


ROW = st.tuples(
    events(),
    st.one_of(st.none(), st.integers(-3, 3)),
    st.sampled_from([None, 0.0, -0.0, 1.5, -2.0, float("nan"), float("inf")]),
    st.sampled_from([None, "", "a", "b", "ab", "zz"]),
)

OPERANDS = {
    "try_cast(event:a as bigint)": ("1", "2", "0", "7"),
    "event:a::bigint": ("1", "-3"),
    "try_cast(event:a as decimal(5,1))": ("1.5", "2", "-0.5", "2.3"),
    "try_cast(event:a as double)": ("1.0", "cast('NaN' as double)", "2.25D"),
    "try_cast(event:a as string)": ("'a'", "'5'", "'b'"),
    "try_cast(event:n.b as bigint)": ("1", "2"),
    "try_cast(event:n as string)": ("'a'", "'1'"),
    "x": ("1", "0", "-3", "2.5"),
    "cast(x as decimal(9,2))": ("1", "0.5"),
    "f": ("0.0", "1.5", "cast('NaN' as double)", "2"),
    "s": ("'a'", "'ab'", "''", "'zzz'"),
}


@st.composite
def atoms(draw: st.DrawFn) -> str:
    operand = draw(st.sampled_from(sorted(OPERANDS)))
    values = st.sampled_from(OPERANDS[operand])
    match draw(st.integers(0, 9)):
        case 0:
            return f"{operand} is null"
        case 1:
            return f"{operand} is not null"
        case 2:
            return f"{operand} in ({draw(values)}, {draw(values)})"
        case 3 if "string" in operand or operand == "s":
            return f"{operand} like '{draw(st.sampled_from(['a%', 'z_', '%b', 'ab', '%']))}'"
        case 4:
            return f"{draw(values)} {draw(st.sampled_from(['<', '>=', '=']))} {operand}"
        case _:
            operator = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"]))
            return f"{operand} {operator} {draw(values)}"


PREDICATES = st.recursive(
    atoms(),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda parts: f"({' '.join(parts)})"),
        inner.map(lambda one: f"not ({one})"),
    ),
    max_leaves=4,
)


def truthful_change(kind: int) -> Any:
    """Return a change of statistics that keeps them valid, as other writers may write them."""

    def change(stats: dict[str, Any]) -> dict[str, Any]:
        match kind:
            case 1:
                stats.pop("maxValues", None)
            case 2:
                stats["minValues"] = {
                    name: bound for name, bound in stats.get("minValues", {}).items() if name != "event"
                }
            case 3:
                # Bounds are wider than the values after rows were deleted.
                stats["tightBounds"] = False
                for side, step in (("minValues", -5), ("maxValues", 5)):
                    if "x" in stats.get(side, {}):
                        stats[side]["x"] += step
            case 4:
                stats.pop("nullCount", None)
            case 5:
                stats.get("maxValues", {})["event"] = "%%%%%"
        return stats

    return change


@given(
    files=st.lists(st.lists(ROW, min_size=1, max_size=5), min_size=1, max_size=3),
    wheres=st.lists(PREDICATES, min_size=1, max_size=8),
    kind=st.integers(0, 5),
)
def test_skipped_files_do_not_contain_matching_rows(files, wheres, kind):
    with TemporaryDirectory() as folder:
        table = Path(folder) / "t"
        start = 0
        for rows in files:
            event, x, f, s = zip(*rows, strict=True)
            batch = pa.table(
                {
                    "id": pa.array(range(start, start + len(rows)), pa.int64()),
                    "event": pa.array(event, pa.string()),
                    "x": pa.array(x, pa.int32()),
                    "f": pa.array(f, pa.float64()),
                    "s": pa.array(s, pa.string()),
                }
            )
            dv.write_table(str(table), batch, mode="append", variant_columns=["event"])
            start += len(rows)
        edit_stats(table, truthful_change(kind))
        for where in wheres:
            # Without `where` nothing is skipped. Skipping a row also skips its error.
            with suppress(CastError):
                everything = dv.read_table(str(table), columns={"id": "id", "kept": where}).to_table()
                wanted = everything.filter(pc.fill_null(everything["kept"], False))["id"].to_pylist()
                assert found(table, where)[0] == wanted, where


LAST = (1 << 63) - 1
WIDE = Context(prec=80)
JSON = msgspec.json.Encoder(decimal_format="number")

STORED: dict[str, pa.DataType] = {
    "long": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "date": pa.date32(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
}
FIRST_DAY = -106_751_991 * 86_400_000_000
MOMENTS = [LAST, LAST - 775, LAST - 1000, FIRST_DAY, 0, -1, 1, 999, -999, 1_700_000_000_123_456]
MAX_FLOAT = 3.4028234663852886e38
EXTREMES: dict[str, list[Any]] = {
    "long": [LAST, -LAST - 1, 0, 1, -1, 2**53 + 1, LAST - 1],
    "timestamp": [*MOMENTS, -62_135_596_800_000_001, 253_402_300_800_000_000],
    "timestamp_ntz": MOMENTS,
    "date": [2**31 - 1, -(2**31), 0, -1, 1, 2_932_897, -719_163],
    # 0.1, -0.1 and the smallest float.
    "float": [0.10000000149011612, -0.10000000149011612, 2.0**-149, MAX_FLOAT, 0.0, -0.0, nan, inf, -inf],
    "double": [0.1, -0.1, 5e-324, 1.7976931348623157e308, 0.0, -0.0, nan, inf, -inf],
    "string": [
        "",
        "a",
        "?",
        "x" * 32,
        "x" * 33,
        "x" * 31 + "\U0001f600zz",
        "x" * 32 + "\U0010ffffz",
        "\U0010ffff" * 40,
        "\x7f" * 40,
        "\ue000",
        "\U00010000",
    ],
}
DIGITS = [(9, 2), (15, 2), (16, 2), (18, 0), (18, 2), (19, 0), (20, 20), (38, 0), (38, 2), (38, 18), (38, 38)]


def decimals(precision: int, scale: int, source: Random) -> list[Decimal]:
    """Return the extremes of a decimal type, and neighbors that round to the same double."""
    last = 10**precision - 1
    base = source.randint(10 ** (precision - 1), last - 5)
    units = [
        last,
        -last,
        0,
        1,
        -1,
        base,
        base + 1,
        base + 2,
        -base,
        source.randint(1, 10 ** (precision // 2)),
    ]
    return [Decimal(each).scaleb(-scale, WIDE) for each in units]


def moment_text(micros: int, digits: int) -> str:
    """Return the text of a moment in UTC, also for years that Python does not support."""
    days, rest = divmod(micros, 86_400_000_000)
    year, month, day = civil(days)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    seconds, fraction = divmod(rest, 1_000_000)
    time = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{fraction:06}"
    return f"{sign}{abs(year):04}-{month:02}-{day:02}T{time[: 9 + digits]}"


def civil(days: int) -> tuple[int, int, int]:
    """Return year, month and day; the calendar repeats every 400 years (146,097 days)."""
    cycles, rest = divmod(days + 719_162, 146_097)
    day = date(1, 1, 1) + timedelta(days=rest)
    return day.year + 400 * cycles, day.month, day.day


def by_spark(kind: str, value: Any, side: str) -> Any:
    """Return a bound as Delta on Spark 4.4 prints it: all digits, milliseconds, at most 33 characters."""
    if kind.startswith("timestamp"):
        return moment_text(value, 3) + ("Z" if kind == "timestamp" else "")
    if kind == "date":
        return moment_text(value * 86_400_000_000, 3).partition("T")[0]
    if kind == "float" and isfinite(value):
        return Decimal(str(pa.scalar(value, pa.float32()).cast(pa.string())))
    if kind in ("float", "double") and not isfinite(value):
        return "Infinity" if value > 0 else "-Infinity"
    if kind == "string" and len(value) > 32:
        tail = "\x7f" if value[32] < "\x7f" else "\U0010ffff"
        return value[:32] if side == "minValues" else value[: 32 + 8 * (value[32] == "\U0010ffff")] + tail
    return value


def by_deltalake(kind: str, value: Any, side: str) -> Any:
    """Return a bound as deltalake 1.6 prints it: decimals and floats as doubles."""
    if kind in ("float", "double"):
        return value if isfinite(value) else None
    if not kind.startswith("decimal"):
        return value if kind == "string" else by_spark(kind, value, side)
    precision, scale = map(int, kind[8:-1].split(","))
    units = int(value.scaleb(scale, WIDE))
    if scale == 0:
        return units if precision <= 18 else max(-LAST - 1, min(LAST, int(float(units))))
    number = float(units) / 10.0**scale
    is_too_long = len(str(abs(int(number)))) > precision - scale
    return nextafter(number, 0) if number and is_too_long else number


def statistics_of(kind: str, values: list[Any], write: Any) -> str:
    """Return the statistics of a file with one column `c`, as a writer prints them."""
    known = [value for value in values if value is not None and value == value]
    stats: dict[str, Any] = {"numRecords": len(values), "nullCount": {"c": values.count(None)}}
    # Spark orders NaN above every number, deltalake ignores it.
    has_nan = any(value != value for value in values)
    for side, least in (("minValues", min), ("maxValues", max)):
        if known:
            bound = write(kind, least(known), side)
            stats[side] = {"c": "NaN" if has_nan and write is by_spark and least is max else bound}
    return JSON.encode(stats).decode()


def plant_files(table: Path, kind: str, files: Sequence[tuple[list[Any], str | None]]) -> None:
    """Write a table with the columns `id` and `c` by pyarrow, each file with statistics as text."""
    (table / "_delta_log").mkdir(parents=True)
    features = ["timestampNtz"] if kind == "timestamp_ntz" else []
    fields = [
        {"name": name, "type": type_, "nullable": True, "metadata": {}}
        for name, type_ in (("id", "long"), ("c", kind))
    ]
    metadata = {
        "id": "t",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {},
    }
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": features,
        "writerFeatures": features,
    }
    actions: list[dict[str, Any]] = [{"protocol": protocol}, {"metaData": metadata}]
    start = 0
    for values, stats in files:
        path = table / f"{start}.parquet"
        ids = pa.array(range(start, start + len(values)), pa.int64())
        pq.write_table(pa.table({"id": ids, "c": stored_array(kind, values)}), path, store_schema=False)
        add = {"path": path.name, "partitionValues": {}, "size": path.stat().st_size, "stats": stats}
        actions.append({"add": {**add, "modificationTime": 0, "dataChange": True}})
        start += len(values)
    (table / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)))


def stored_array(kind: str, values: list[Any]) -> Any:
    if kind.startswith("decimal"):
        return pa.array(values, pa.decimal128(*map(int, kind[8:-1].split(","))))
    numbers = {"timestamp": pa.int64(), "timestamp_ntz": pa.int64(), "date": pa.int32()}
    return pa.array(values, numbers.get(kind, STORED[kind])).cast(STORED[kind])


def literal(kind: str, value: Any) -> str:
    if kind.startswith("timestamp"):
        text = moment_text(value, 6)
    elif kind == "date":
        text = moment_text(value * 86_400_000_000, 6).partition("T")[0]
    else:
        text = format(value, "f") if isinstance(value, Decimal) else str(value)
    return f"cast('{text}' as {'bigint' if kind == 'long' else kind})"


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*EXTREMES, *(f"decimal({digits},{scale})" for digits, scale in DIGITS)])
def test_no_row_is_lost_by_the_statistics_of_other_writers(tmp_path, kind):
    source = Random(kind)
    pool = EXTREMES.get(kind) or decimals(*map(int, kind[8:-1].split(",")), source)
    files = []
    for number in range(8):
        values = [source.choice([*pool, None]) for _ in range(source.choice((1, 1, 2, 3)))]
        files.append((values, statistics_of(kind, values, by_deltalake if number % 2 else by_spark)))
    plant_files(tmp_path / "t", kind, files)
    skipped = 0
    for value in (each for each in pool if each == each):
        for operator in ("=", "<>", "<", "<=", ">", ">="):
            where = f"c {operator} {literal(kind, value)}"
            everything = dv.read_table(tmp_path / "t", columns={"id": "id", "kept": where}).to_table()
            wanted = everything.filter(pc.fill_null(everything["kept"], False))["id"].to_pylist()
            got, explained = found(tmp_path / "t", where)
            assert got == wanted, (where, files)
            skipped += len(files) - explained.files_read
    # NaN may exceed the bounds, so half of the comparisons of floating-point numbers cannot skip.
    assert skipped > 4 * len(pool)


def test_the_last_timestamp_is_found_and_deleted(tmp_path):
    """Delta on Spark 4.4 truncates bounds to milliseconds, and adding 999 µs would overflow 64 bits."""
    bound = {"c": "+294247-01-10T04:00:54.775Z"}
    stats = json.dumps({"numRecords": 1, "nullCount": {"c": 0}, "minValues": bound, "maxValues": bound})
    plant_files(tmp_path / "t", "timestamp", [([LAST], stats), ([0], None)])
    for where in ("c > '2024-06-01'", "c = timestamp '+294247-01-10 04:00:54.775807'", "c >= '9999-12-31'"):
        assert found(tmp_path / "t", where)[0] == [0], where
    assert found(tmp_path / "t", "c < '2024-06-01'")[1].files_by_statistics == 1
    assert dv.delete(tmp_path / "t", "c > '2024-06-01'").rows_deleted == 1


@pytest.mark.parametrize(
    "change",
    [
        {"nullCount": {"c": "3"}},
        {"numRecords": "3", "nullCount": {"c": 3}},
        {"numRecords": 3.0, "nullCount": {"c": 3}},
        {"numRecords": -1, "nullCount": {"c": -1}},
        {"minValues": {"c": "8"}, "maxValues": {"c": "9"}},
    ],
)
def test_numbers_of_another_json_kind_are_ignored(tmp_path, change):
    stats = {"numRecords": 3, "nullCount": {"c": 1}, "minValues": {"c": 5}, "maxValues": {"c": 6}, **change}
    plant_files(tmp_path / "t", "long", [([5, 6, None], json.dumps(stats))])
    assert found(tmp_path / "t", "c = 5")[0] == [0]
    assert found(tmp_path / "t", "c is not null")[0] == [0, 1]


@pytest.mark.parametrize(("kind", "value"), [("string", "5"), ("date", 0), ("timestamp", 0)])
def test_texts_and_moments_given_as_numbers_are_ignored(tmp_path, kind, value):
    stats = {"numRecords": 1, "nullCount": {"c": 0}, "minValues": {"c": 2020}, "maxValues": {"c": 2021}}
    plant_files(tmp_path / "t", kind, [([value], json.dumps(stats))])
    assert found(tmp_path / "t", f"c = {literal(kind, value)}")[0] == [0]


def test_decimals_that_deltalake_rounds_are_found(tmp_path):
    """deltalake 1.6 prints decimal bounds as doubles, or as 64-bit integers if the scale is 0."""
    for precision, scale, text in [
        (19, 2, "12345678901234567.89"),
        (38, 0, "123456789012345678901234567890"),
        (38, 0, "-123456789012345678901234567890"),
        (38, 0, "1234567890123456789"),
        (38, 22, "1.0000000000000000000001"),
        (17, 2, "123456789012345.68"),
    ]:
        table = tmp_path / f"{precision} {scale} {text}"
        column = pa.array([Decimal(text)], pa.decimal128(precision, scale))
        write_deltalake(str(table), pa.table({"id": [0], "c": column}))
        for operator in ("=", "<=", ">="):
            where = f"c {operator} cast('{text}' as decimal({precision},{scale}))"
            assert found(table, where)[0] == [0], where


def test_bounds_of_decimals_still_skip(tmp_path):
    """Bounds of fewer than 15 digits are exact, others are widened by 2e-15 of their value."""
    for kind, bound, outside, just_inside in [
        ("decimal(18,2)", "999999999999.99", "1000000000000.00", None),
        ("decimal(38,0)", "99999999999999", "100000000000000", None),
        ("decimal(38,18)", "12.500000000000000000", "12.500000000000026", "12.500000000000025"),
        ("decimal(38,0)", "-12345678901234567890", "-12345678901234543197", "-12345678901234543198"),
    ]:
        table = tmp_path / f"{kind} {bound}"
        bounds = f'"minValues":{{"c":{bound}}},"maxValues":{{"c":{bound}}}'
        stats = f'{{"numRecords":1,"nullCount":{{"c":0}},{bounds}}}'
        plant_files(table, kind, [([Decimal(bound)], stats)])
        for value, files in ((outside, 0), (just_inside, 1), (bound, 1)):
            if value is not None:
                assert found(table, f"c >= cast('{value}' as {kind})")[1].files_read == files, (kind, value)


def _cut(moment: datetime, zone: str) -> str:
    """Return a bound as Delta on Spark 3.2 and 3.3 writes it: without the seconds of its offset."""
    local = moment.astimezone(ZoneInfo(zone))
    minutes = abs(local.utcoffset() or timedelta()) // timedelta(minutes=1)
    sign = "-" if (local.utcoffset() or timedelta()) < timedelta() else "+"
    offset = f"{sign}{minutes // 60:02}:{minutes % 60:02}" if minutes else "Z"
    return f"{local:%Y-%m-%dT%H:%M:%S}.{local.microsecond // 1000:03}{offset}"


@pytest.mark.parametrize(
    ("zone", "local"),
    [
        ("Europe/Berlin", "1850-01-01 01:01:01"),
        ("America/New_York", "1880-05-05 12:00:00"),
        ("Asia/Kolkata", "1800-06-15 00:00:59.999999"),
        ("Europe/Amsterdam", "1930-01-01 00:00:00"),
        ("Africa/Monrovia", "1971-12-31 23:59:59"),
        ("Africa/Accra", "1900-01-01 00:00:00"),
    ],
)
@pytest.mark.parametrize("log", ["commit", "struct", "text"])
def test_bounds_whose_offset_is_cut_to_the_minute_lose_no_row(tmp_path, zone, local, log):
    """delta-io/delta#5249: `+00:53` stands for +00:53:28. The instant comes from Python's time zones."""
    moment = datetime.fromisoformat(local).replace(tzinfo=ZoneInfo(zone)).astimezone(timezone.utc)
    text = _cut(moment, zone)
    dv.write_table(tmp_path, pa.table({"t": pa.array([moment], pa.timestamp("us", "UTC"))}))
    Table(tmp_path).edit_stats(lambda each: each.update(minValues={"t": text}, maxValues={"t": text}))
    if log != "commit":
        is_struct = "true" if log == "struct" else "false"
        options = {"delta.checkpointInterval": "1", "delta.checkpoint.writeStatsAsStruct": is_struct}
        dv.set_properties(
            tmp_path, {**options, "delta.checkpoint.writeStatsAsJson": str(log == "text").lower()}
        )
    literal = _literal(moment)
    for where in (f"t = {literal}", f"t <= {literal}", f"t >= {literal}", f"t in ({literal})"):
        assert dv.read_table(tmp_path, where=where).count() == 1, where
    assert dv.read_table(tmp_path, where=f"t > {literal}").count() == 0
    minutes = timedelta(minutes=3)
    for where in (f"t < {_literal(moment - minutes)}", f"t > {_literal(moment + minutes)}"):
        assert dv.read_table(tmp_path, where=where).explain().files_read == 0, where
    assert dv.delete(tmp_path, where=f"t = {literal}").rows_deleted == 1


def _literal(moment: datetime) -> str:
    return f"timestamp '{moment.replace(tzinfo=None).isoformat()}Z'"


def test_bounds_with_a_whole_offset_skip_to_the_second(tmp_path):
    moment = datetime(2024, 3, 1, 12, 0, 0, tzinfo=timezone.utc)
    dv.write_table(tmp_path, pa.table({"t": pa.array([moment], pa.timestamp("us", "UTC"))}))
    for text in ("2024-03-01T12:00:00.000Z", "2024-03-01T13:00:00.000+01:00"):
        Table(tmp_path).edit_stats(lambda each, t=text: each.update(minValues={"t": t}, maxValues={"t": t}))
        second = timedelta(seconds=1)
        for where in (f"t <= {_literal(moment - second)}", f"t >= {_literal(moment + second)}"):
            assert dv.read_table(tmp_path, where=where).explain().files_read == 0, where


def test_an_audit_explains_a_cut_offset(tmp_path):
    moment = datetime(1850, 1, 1, 1, 1, 1, tzinfo=ZoneInfo("Europe/Berlin")).astimezone(timezone.utc)
    dv.write_table(tmp_path, pa.table({"t": pa.array([moment], pa.timestamp("us", "UTC"))}))
    text = _cut(moment, "Europe/Berlin")
    Table(tmp_path).edit_stats(lambda each: each.update(minValues={"t": text}, maxValues={"t": text}))
    messages = [each.message for each in dv.audit_table(tmp_path, data=True).findings if each.rule == "AU7"]
    assert any("its offset lacks the seconds" in message for message in messages)
    dv.repair_statistics(tmp_path, dry_run=False)
    assert dv.audit_table(tmp_path, data=True).findings == ()
