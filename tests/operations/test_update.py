"""`update`: set columns and paths of Variants in matching rows only."""

from __future__ import annotations

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.errors import raises_at
from support.tables import append_events, read_by_id

import delta_variant as dv
from delta_variant.errors import CastError, ExpressionError, SchemaError, VariantPathError
from delta_variant.log.listing import commit_file_name
from delta_variant.log.load import load_snapshot
from delta_variant.variant import values as variant_values

TEXTS = ['{"user": {"id": 1, "email": "a"}, "n": 1}', '{"n": 2}', '{"user": null}', "null", None]


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Return a table of two files with a Variant and columns of several types."""
    write(tmp_path / "t", TEXTS)
    write(tmp_path / "t", ['{"user": "text"}', "[1, {}]"], first=5)
    return str(tmp_path / "t")


def write(table: Path, texts: list[str | None], first: int = 0, **options: Any) -> None:
    ids = range(first, first + len(texts))
    columns = {"name": [f"n{number}" for number in ids], "s": [{"x": number} for number in ids]}
    append_events(table, texts, first, columns, **options)


def test_a_path_is_set_in_the_rows_that_match(table: str):
    result = dv.update(table, {"event:user.email": "'x'"}, "id < 2")
    assert (result.version, result.rows_updated, result.rows_copied, result.files_removed) == (2, 2, 3, 1)
    assert read_by_id(table) == {
        0: '{"n":1,"user":{"email":"x","id":1}}',
        1: '{"n":2,"user":{"email":"x"}}',
        2: '{"user":null}',
        3: "null",
        4: None,
        5: '{"user":"text"}',
        6: "[1,{}]",
    }


def test_objects_that_are_missing_or_null_on_the_way_are_made(table: str):
    dv.update(table, {"event:user.name": "name"}, "id in (2, 3, 4)")
    found = read_by_id(table)
    assert [found[number] for number in (2, 3, 4)] == [f'{{"user":{{"name":"n{n}"}}}}' for n in (2, 3, 4)]


@pytest.mark.parametrize(
    ("path", "number", "sentence"),
    [
        ("event:user.email", 5, r"\$\['user'\]\['email'\]: .*expected an object at \$\['user'\], got string"),
        ("event:a", 6, r"expected an object at \$, got array"),
        ("variant_get(event, '$[2]')", 6, "has 2 elements, and index 2 is out of range"),
        ("event:user[0]", 1, "expected an array at .*, got missing"),
    ],
)
def test_a_path_through_another_kind_is_an_error_and_changes_nothing(table: str, path, number, sentence):
    before = read_by_id(table)
    with pytest.raises(VariantPathError, match=sentence):
        dv.update(table, {path: "1"}, f"id = {number}")
    assert read_by_id(table) == before
    assert len(list(Path(table).glob("*.parquet"))) == 2


@pytest.mark.parametrize(
    ("updates", "error", "sentence"),
    [
        ({"event:a.b": "1"}, VariantPathError, r"\$\['a'\]\['b'\]: cannot set"),
        ({"id": "cast(name as bigint)"}, CastError, r"`cast\(name as bigint\)`"),
    ],
)
def test_an_error_of_a_value_has_the_file_and_the_row_in_it(
    tmp_path: Path, updates: dict[str, str | None], error: type[Exception], sentence: str
):
    write(tmp_path / "t", ['{"a": {}}', '{"a": "x"}'])
    with pytest.raises(error, match=sentence) as caught:
        dv.update(str(tmp_path / "t"), updates, "id = 1")
    assert re.fullmatch(r"part-[^ ]*\.parquet", str(caught.value.file))
    assert caught.value.row == 1
    assert ", row 1" in str(caught.value)


def test_expressions_are_evaluated_for_matching_rows_only(table: str):
    dv.update(
        table,
        {"event:user.email": "event:user.email::string", "id": "cast(10 / (1 - id) as bigint)"},
        "id = 0",
    )
    assert read_by_id(table)[10] == '{"n":1,"user":{"email":"a","id":1}}'


def test_a_failed_cast_in_a_predicate_has_its_file(tmp_path: Path):
    table = dv.Table(tmp_path)
    files = [table.append([{"id": each, "s": text}]).files[0].path for each, text in enumerate(("1", "x"))]
    for change in (lambda where: table.delete(where), lambda where: table.update({"id": "0"}, where)):
        with raises_at(CastError, "cannot cast 'x'", file=files[1]):
            change("s::bigint > 0")


def test_casts_apply_to_matching_rows_only(tmp_path: Path):
    texts = ['{"kind":"a","n":7}', '{"kind":"b","n":"none"}', None]
    dv.write_table(tmp_path, pa.table({"n": pa.nulls(3, pa.int64()), "event": pa.array(texts, pa.json_())}))
    dv.update(
        tmp_path, {"n": "event:n::bigint", "event:n": "event:n::bigint + 1"}, "event:kind::string = 'a'"
    )
    rows = dv.read_table(tmp_path, columns={"n": "n", "event": "to_json(event)"}).to_table().to_pylist()
    assert rows == [
        {"n": 7, "event": '{"kind":"a","n":8}'},
        {"n": None, "event": texts[1]},
        {"n": None, "event": None},
    ]
    with raises_at(CastError, 'cannot cast "none"', path="$['n']") as caught:
        dv.update(tmp_path, {"n": "event:n::bigint"})
    assert str(caught.value.file).startswith("part-")


def test_elements_of_arrays_and_whole_variants_are_set(table: str):
    dv.update(table, {"variant_get(event, '$[1].a')": "variant_get(event, '$[0]')"}, "id = 6")
    dv.update(table, {"event": "event:user"}, "id = 0")
    dv.update(table, {"event": "id * 1.5"}, "id = 1")
    dv.update(table, {"event": "null"}, "id = 2")
    found = read_by_id(table)
    assert [found[number] for number in (0, 1, 2, 6)] == ['{"email":"a","id":1}', "1.5", None, '[1,{"a":1}]']


def test_null_is_variant_null_in_a_path(table: str):
    dv.update(table, {"event:n": "null", "event:m": "cast(null as bigint)"}, "id = 1")
    assert read_by_id(table)[1] == '{"m":null,"n":null}'


def test_paths_are_removed_where_they_are(table: str):
    dv.update(table, {"event:user.email": None, "event:missing.x": None}, "id < 3")
    assert read_by_id(table) == {
        0: '{"n":1,"user":{"id":1}}',
        1: '{"n":2}',
        2: '{"user":null}',
        3: "null",
        4: None,
        5: '{"user":"text"}',
        6: "[1,{}]",
    }
    dv.update(table, {"variant_get(event, '$[0]')": None}, "id = 6")
    dv.update(table, {"event:user": None}, "id = 0")
    assert (read_by_id(table)[0], read_by_id(table)[6]) == ('{"n":1}', "[{}]")


def test_scalars_get_the_types_that_parse_json_gives_them(table: str):
    updates = {
        "event:i": "cast(300 as bigint)",
        "event:d": "cast('1.50' as decimal(10,2))",
        "event:f": "cast(0.5 as double)",
        "event:b": "true",
        "event:t": "date '2026-01-02'",
        "event:ts": "timestamp '2026-01-02 03:04:05Z'",
        "event:x": "x'00ff'",
        "event:s": "name",
    }
    dv.update(table, updates, "id = 1")
    (row,) = dv.read_table(table, columns=["event"], where="id = 1").to_table().to_pylist()
    found = dv.Variant(row["event"]["metadata"], row["event"]["value"])
    assert found.to_json() == (
        '{"b":true,"d":1.5,"f":0.5,"i":300,"n":2,"s":"n1","t":"2026-01-02","ts":"2026-01-02 03:04:05+00:00",'
        '"x":"AP8="}'
    )


def test_columns_are_set_and_cast(table: str):
    dv.update(table, {"name": "id", "ID": "id + 10"}, "id = 1")
    assert read_by_id(table, "name") == {0: "n0", 2: "n2", 3: "n3", 4: "n4", 5: "n5", 6: "n6", 11: "1"}
    assert read_by_id(table, "s.x")[11] == 1


def test_values_are_those_of_the_row_as_it_was(table: str):
    dv.update(table, {"name": "cast(id as string)", "id": "event:n::bigint + 100"}, "id = 1")
    assert read_by_id(table, "name")[102] == "1"


@pytest.mark.parametrize(
    ("updates", "sentence"),
    [
        ({"s.x": "1"}, "cannot set 's.x'"),
        ({"event:a": "1", "event:a.b": "2"}, "two assignments"),
        ({"event:a": "1", "event": "event"}, "two assignments"),
        ({"name": "'x'", "NAME": "'y'"}, "two assignments"),
        ({"event:a": "s"}, "cannot convert 's' to a Variant .*: use `cast.s as variant.`$"),
        ({"id": "s"}, "cannot cast `s` .* to bigint"),
        ({"1 + 1": "1"}, "cannot set '1 \\+ 1'"),
    ],
)
def test_an_invalid_assignment_is_rejected(table: str, updates, sentence):
    with pytest.raises(ExpressionError, match=sentence):
        dv.update(table, updates)


@pytest.mark.parametrize(
    ("column", "value", "cause"),
    [
        ("nothing", "1", "does not exist"),
        ("name", None, "because it is a column"),
        ("event", None, "because it is a column"),
    ],
)
def test_an_assignment_that_a_column_does_not_allow_is_rejected(table: str, column: str, value, cause: str):
    with raises_at(ExpressionError, cause, column=column):
        dv.update(table, {column: value})


def test_empty_updates_are_rejected(table: str):
    with pytest.raises(ValueError, match="updates is empty"):
        dv.update(table, {})


def test_a_value_that_does_not_fit_is_an_error(table: str):
    with pytest.raises(CastError, match=r"`cast\(name as bigint\)`: cannot cast 'n\d' to bigint"):
        dv.update(table, {"id": "cast(name as bigint)"})


def test_rows_move_to_the_partition_that_they_are_given(tmp_path: Path):
    rows = pa.table({"id": [1, 2, 3], "day": ["a", "a", "b"]})
    dv.write_table(str(tmp_path / "t"), rows, partition_by=["day"])
    dv.update(str(tmp_path / "t"), {"day": "'c'"}, "id = 1")
    assert read_by_id(str(tmp_path / "t"), "day") == {1: "c", 2: "a", 3: "b"}
    values = load_snapshot(tmp_path / "t").files["partition_values"].to_pylist()
    assert sorted(values) == [[("day", "a")], [("day", "b")], [("day", "c")]]


def test_a_null_for_a_not_null_column_is_rejected(tmp_path: Path):
    dv.write_table(str(tmp_path / "t"), pa.table({"id": [1]}))
    commit = tmp_path / "t" / commit_file_name(0)
    commit.write_text(commit.read_text().replace(r"\"nullable\":true", r"\"nullable\":false"))
    with raises_at(SchemaError, "NOT NULL", column="id"):
        dv.update(str(tmp_path / "t"), {"id": "null"})


def test_other_values_keep_their_bytes(tmp_path: Path):
    texts = ['{"z": {"q": [1, 2.50]}, "a": 300}', '{"z": {"q": {"w": null}}}']
    write(tmp_path / "t", [*texts, "1"], shredding=None)
    before = dv.read_table(str(tmp_path / "t"), columns={"id": "id", "q": "event:z.q"}).to_table()
    dv.update(str(tmp_path / "t"), {"event:z.new": "1", "event:b": "'x'"}, "id < 2")
    after = dv.read_table(str(tmp_path / "t"), columns={"id": "id", "q": "event:z.q"}).to_table()
    values = [[row["q"] and row["q"]["value"] for row in each.to_pylist()] for each in (before, after)]
    assert values[0] == values[1]


@pytest.mark.parametrize("broken", range(6))
def test_a_failed_rewrite_removes_all_new_files(tmp_path: Path, broken: int):
    for number in range(6):
        write(tmp_path / "t", ['{"n": "1"}', '{"n": "x"}' if number == broken else '{"n": "2"}'])
    before = sorted(path.name for path in (tmp_path / "t").rglob("*") if path.is_file())
    with raises_at(CastError, path="$['n']"):
        dv.update(str(tmp_path / "t"), {"event:n": "event:n::bigint"})
    assert sorted(path.name for path in (tmp_path / "t").rglob("*") if path.is_file()) == before


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-300, 300), st.text("abé", max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abcé"), inner, max_size=3)
    ),
    max_leaves=8,
)


def set_in(value: Any, path: list[str], new: Any) -> Any:
    """Return the expected result of `set_path`, or raise TypeError if the path cannot be set."""
    if not path:
        return new
    if value is not None and not isinstance(value, dict):
        raise TypeError
    value = value or {}
    return {**value, path[0]: set_in(value.get(path[0]), path[1:], new)}


@given(JSON, st.lists(st.sampled_from("abcdé"), max_size=3), JSON)
def test_set_path_equals_its_model_in_python(value, path, new):
    variants, values = (dv.parse_json([json.dumps(each)]) for each in (value, new))
    try:
        expected = set_in(value, path, new)
    except TypeError:
        with pytest.raises(VariantPathError):
            variant_values.set_path(variants, path, values)
        return
    made = variant_values.set_path(variants, path, values)
    variant_values.check(made)
    assert json.loads(dv.to_json(made)[0].as_py()) == expected


@given(JSON, st.lists(st.sampled_from("abcdé"), min_size=1, max_size=3))
def test_remove_path_reverts_set_path(value, path):
    variants = dv.parse_json([json.dumps(value)])
    removed = variant_values.remove_path(variants, path)
    variant_values.check(removed)
    assert not dv.variant_get(removed, "$" + "".join(f"[{json.dumps(step)}]" for step in path))[0].is_valid
    try:
        made = variant_values.set_path(variants, path, pa.array(["new"]))
    except VariantPathError:
        return
    if not dv.variant_get(variants, "$" + "".join(f"[{json.dumps(step)}]" for step in path[:-1])).null_count:
        parent = value
        for step in path[:-1]:
            parent = parent[step]
        if isinstance(parent, dict) and path[-1] not in parent:
            assert dv.to_json(variant_values.remove_path(made, path)) == dv.to_json(variants)


@given(
    values=st.lists(st.one_of(st.none(), st.integers(-3, 3)), min_size=1, max_size=8),
    where=st.sampled_from(
        ["event:n::bigint > 0", "id % 2 = 0", "event:n is null", "not (event:n::bigint = 1)"]
    ),
)
def test_update_changes_exactly_the_rows_for_which_the_condition_is_true(values, where):
    with TemporaryDirectory() as folder:
        table = f"{folder}/t"
        write(Path(table), [json.dumps({"n": value}) for value in values])
        matching = set(dv.read_table(table, columns=["id"], where=where).to_table()["id"].to_pylist())
        before = read_by_id(table)
        result = dv.update(table, {"event:m": "id", "name": "'set'"}, where)
        after, names = read_by_id(table), read_by_id(table, "name")
        assert result.rows_updated == len(matching)
        for number, text in before.items():
            wanted = {**json.loads(str(text)), "m": number} if number in matching else json.loads(str(text))
            assert json.loads(after[number]) == wanted
            assert names[number] == ("set" if number in matching else f"n{number}")


@pytest.mark.usefixtures("small_files_are_shredded")
def test_a_path_keeps_its_bounds_after_numbers_are_set(tmp_path: Path):
    table = tmp_path / "t"
    write(table, [f'{{"n": {number}, "d": {number}.25}}' for number in range(10, 20)])
    before = load_snapshot(table).files["stats"].to_pylist()
    dv.update(str(table), {"event:n": "12", "event:d": "12.5"}, "id = 3")
    assert load_snapshot(table).files["stats"].to_pylist() == before
    for where, files in (("event:n::bigint = 9", 1), ("event:d::decimal(10,2) > 19.25", 1), ("id = 3", 0)):
        assert dv.read_table(str(table), where=where).explain().files_by_variant_bounds == files
    assert read_by_id(str(table))[3] == '{"d":12.5,"n":12}'


@pytest.mark.parametrize("shredded", [True, False])
def test_numbers_that_a_file_has_apart_keep_their_types(tmp_path: Path, shredded: bool):
    table = str(tmp_path / "t")
    variants = dv.parse_json(['{"n": 1, "l": [1]}', '{"n": 2, "l": [300]}', '{"n": 70000}'])
    schema = dv.ShreddingSchema.of({"n": pa.int32(), "l": pa.list_(pa.int64())}) if shredded else None
    rows = pa.table({"id": [0, 1, 2], "event": variants})
    dv.write_table(
        table, rows, variant_columns=["event"], files=dv.FileOptions(numeric="strict"), shredding=schema
    )
    before = dv.read_table(table).to_table()["event"].to_pylist()
    dv.update(table, {"event:m": "5"}, "id = 0")
    assert dv.read_table(table).to_table()["event"].to_pylist()[1:] == before[1:]


def test_a_part_without_a_type_is_null_or_empty(tmp_path: Path):
    """As in an UPDATE of Delta on Spark."""
    parts = pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.string())]))])
    schema = pa.schema([("s", parts), ("l", pa.list_(parts)), ("m", pa.map_(pa.string(), parts))])
    row = {"a": 1, "b": {"c": "x"}}
    dv.write_table(tmp_path, pa.table({"s": [row], "l": [[row]], "m": [[("k", row)]]}, schema))
    dv.update(tmp_path, {"s": "named_struct('a', 2, 'b', null)", "l": "array()", "m": "map('k', null)"})
    assert dv.read_table(tmp_path).to_pylist() == [{"s": {"a": 2, "b": None}, "l": [], "m": [("k", None)]}]
    dv.update(tmp_path, {"l": "array(null, null)"})
    assert dv.read_table(tmp_path, columns=["l"]).to_pylist() == [{"l": [None, None]}]
    with pytest.raises(dv.errors.SchemaError, match=r"lacks the field 's\.b\.c'"):
        dv.update(tmp_path, {"s": "named_struct('a', 2, 'b', named_struct())"})


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        ("s", "named_struct('y', 3, 'x', '8')", {"x": 8, "y": "3"}),
        ("s", "named_struct('X', 7.9D, 'y', date'2020-01-02')", {"x": 7, "y": "2020-01-02"}),
        ("a", "array(named_struct('v', 5L, 'u', true))", [{"u": 1, "v": "5"}]),
        ("m", "map(1, '2.5')", [("1", 2.5)]),
    ],
    ids=str,
)
def test_parts_are_cast_by_the_names_of_their_fields(tmp_path: Path, column: str, value: str, expected: Any):
    """As in an UPDATE of Delta on Spark."""
    of_list = pa.list_(pa.struct([("u", pa.int32()), ("v", pa.string())]))
    schema = {"s": pa.struct([("x", pa.int64()), ("y", pa.string())]), "a": of_list}
    schema["m"] = pa.map_(pa.string(), pa.float64())
    dv.write_table(tmp_path, pa.Table.from_pylist([{"s": None}], schema=pa.schema(list(schema.items()))))
    dv.update(tmp_path, {column: value})
    assert dv.read_table(tmp_path, columns=[column]).to_pylist() == [{column: expected}]


@pytest.mark.parametrize(
    ("value", "error", "sentence"),
    [
        ("array('q')", dv.errors.CastError, "'q'"),
        ("array(date'2020-01-01')", dv.errors.ExpressionError, "from array<date> to array<bigint>"),
    ],
    ids=str,
)
def test_parts_that_cannot_be_cast_are_errors(tmp_path: Path, value: str, error: Any, sentence: str):
    dv.write_table(tmp_path, pa.table({"a": pa.array([[1]], pa.list_(pa.int64()))}))
    with pytest.raises(error, match=sentence):
        dv.update(tmp_path, {"a": value})
    assert dv.read_table(tmp_path).to_pylist() == [{"a": [1]}]
