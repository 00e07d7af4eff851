"""Skipping leaves out what provably holds no wanted row, and nothing else (requirements D1 to D9)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import delta_variant as dv
from delta_variant import expression
from delta_variant.errors import CastError
from delta_variant.read import Explanation
from delta_variant.skipping import condition_of
from delta_variant.skipping.condition import AllOf, AnyOf, Comparison, Leaf, NullTest, PartitionTest
from delta_variant.stats import bounds_at, decode_bound

# What Databricks wrote (requirements 6.4): item_100 and 100 for $['name'] and $['value'], 200 for $['key'].
ITEM_100 = "0rJld6c{^fC42ifwHy+etpjq%zdL820S&x52(>OPwb(Pf00000a.=4fzc]1KfAq7M"
KEY_200 = "0rAfabWhTiwQbUe0S-o32]H.-0000000000"

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("x", pa.int32()), ("f", pa.float64())])


def write_files(table: Path, files: Sequence[Sequence[str | None]], **options: Any) -> None:
    """Write one file for each list of JSON texts; `id` counts all rows."""
    start = 0
    for texts in files:
        ids = list(range(start, start + len(texts)))
        rows = pa.table({"id": ids, "event": pa.array(texts, pa.string())})
        dv.write_table(str(table), rows, mode="append", variant_columns=["event"], **options)
        start += len(texts)


def found(table: Path, where: str) -> tuple[list[int], Explanation]:
    """Return the ids that a predicate finds, and how."""
    ids = dv.read_table(str(table), columns=["id"], where=where).read_all()["id"].to_pylist()
    return sorted(ids), dv.read_table(str(table), columns=["id"], where=where, explain=True)


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
    bound = expression.bind_predicate(expression.parse(where), SCHEMA.append(pa.field("e", pa.null())), ["e"])
    return condition_of(bound, ["day"])


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
        "e:a[0]::bigint > 1",  # no path in statistics leads into an array (K4)
        "e:a::bigint is null",  # no nulls are counted by path (D3)
        "e:a::boolean = true",
        "e:a::bigint + 1 > 2",
        "e:a::bigint > x",
        "cast(e:a::string as bigint) > 1",  # the order of texts is not that of numbers
        "e:a::bigint = cast('NaN' as double)",  # D5
        "to_json(e) = '{}'",
        "not (x <=> 1)",
    ],
)
def test_what_statistics_cannot_tell_keeps_every_row(where):
    assert condition(where) is None


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
        ("event:a::bigint between 9 and 10", [9, 10], 2),
        ("event:a::bigint <> 3", [n for n in range(30) if n != 3], 3),
    ]:
        got, explained = found(tmp_path / "t", where)
        assert (got, explained.files_read, explained.files_by_variant_bounds) == (ids, read, 3 - read), where


def test_texts_are_skipped_by_their_bytes_and_beginnings(tmp_path):
    texts = [["alpha", "beta"], ["gamma", "z" * 40], ["\ue000", "\U00010000"]]
    write_files(tmp_path / "t", [[json.dumps({"s": text}) for text in file] for file in texts])
    assert found(tmp_path / "t", "event:s::string = 'beta'")[1].files_read == 1
    assert found(tmp_path / "t", "event:s::string like 'ga%'")[0] == [2]
    assert found(tmp_path / "t", "event:s::string like 'ga%'")[1].files_read == 1
    got, explained = found(tmp_path / "t", f"event:s::string = '{'z' * 40}'")
    assert (got, explained.files_read) == ([3], 1)
    # In bytes, U+E000 is below U+10000; in UTF-16 it would be above (X15).
    got, explained = found(tmp_path / "t", "event:s::string > '\uf000'")
    assert (got, explained.files_read) == ([5], 1)


def test_a_path_that_a_file_has_no_bound_of_is_read(tmp_path):
    """D2, D4: another class, a side or a whole path that is absent, a null beside the numbers."""
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
    """D5: a file may hold NaN beside its bounds, which is greater than every number."""
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
    """D3: `nullCount` of the column, where it is all rows, is the one count that tells of its paths."""
    write_files(tmp_path / "t", [[None, None], ['{"a": 1}']])
    got, explained = found(tmp_path / "t", "event:a::bigint is not null")
    assert (got, explained.files_by_variant_bounds) == ([2], 1)


def test_a_timestamp_may_be_above_the_millisecond_in_the_statistics(tmp_path):
    moment = pa.array([1_700_000_000_123_456], pa.timestamp("us", "UTC"))
    dv.write_table(str(tmp_path / "t"), pa.table({"id": [1], "at": moment}))
    assert found(tmp_path / "t", "at > timestamp '2023-11-14 22:13:20.1234Z'")[0] == [1]


def test_bounds_without_the_feature_do_not_count(tmp_path):
    """T8: a table that does not support variantShredding has no bounds of Variants, whatever is written."""
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


def test_row_groups_and_pages_are_skipped_within_a_file(tmp_path, monkeypatch):
    """D6: by the statistics of `typed_value`, where no row of its `value` is set."""
    monkeypatch.setattr("delta_variant.data_file.ROW_GROUP_BYTES", 1 << 16)
    rows = 120_000
    write_files(tmp_path / "t", [[f'{{"a": {n}, "pad": "{n * 7919 % 99991}"}}' for n in range(rows)]])
    got, explained = found(tmp_path / "t", "event:a::bigint between 60000 and 60002")
    assert got == [60_000, 60_001, 60_002]
    assert explained.row_groups_read < explained.row_groups
    assert explained.rows_decoded < rows / 4
    assert explained.bytes_read < explained.bytes / 3
    assert f"{explained.row_groups_read:,} of {explained.row_groups:,} read" in str(explained)


def test_a_row_group_with_other_values_beside_its_numbers_is_read(tmp_path):
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
    """kernel.md: pyzmq is the reference; both decode the strings of requirements 6.4 alike."""
    for text in (ITEM_100, KEY_200, "0rAf3bMW#D00%Fx0000000000"):
        for key, value in decode_bound(text).to_python().items():
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
    """Return a change of statistics after which they still hold, as other writers leave them."""

    def change(stats: dict[str, Any]) -> dict[str, Any]:
        match kind:
            case 1:
                stats.pop("maxValues", None)
            case 2:
                stats["minValues"] = {
                    name: bound for name, bound in stats.get("minValues", {}).items() if name != "event"
                }
            case 3:
                # Wider bounds, as they are once rows were deleted.
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


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    files=st.lists(st.lists(ROW, min_size=1, max_size=5), min_size=1, max_size=3),
    wheres=st.lists(PREDICATES, min_size=1, max_size=8),
    kind=st.integers(0, 5),
)
def test_what_is_skipped_holds_no_wanted_row(files, wheres, kind):
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
            # Without `where` nothing is skipped. An error that a skipped row would have raised may be spared.
            with suppress(CastError):
                everything = dv.read_table(str(table), columns={"id": "id", "kept": where}).read_all()
                wanted = everything.filter(pc.fill_null(everything["kept"], False))["id"].to_pylist()
                assert found(table, where)[0] == wanted, where
