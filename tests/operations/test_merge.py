"""`merge`: each clause over columns and Variant paths, and the rows that it leaves unchanged."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.errors import raises_at
from support.intercepted_store import commit_first
from support.tables import read_by_id, read_commit

import delta_variant as dv
from delta_variant import _arrow
from delta_variant.errors import (
    CastError,
    CommitConflictError,
    ConstraintViolationError,
    ExpressionError,
    InvalidJsonError,
    MergeAmbiguityError,
    SchemaError,
    UnsupportedFeatureError,
)
from delta_variant.log.load import load_snapshot
from delta_variant.operations.merge import joining
from delta_variant.operations.merge.joining import Join, Sides
from delta_variant.read.scope import Scope


def rows(ids: list[Any], **columns: list[Any]) -> pa.Table:
    texts = [None if number is None else json.dumps({"k": number, "v": f"v{number}"}) for number in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "event": pa.array(texts, pa.string()), **columns})


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Return a table of two files, ids 0 to 2 and 3 to 5."""
    for ids in ([0, 1, 2], [3, 4, 5]):
        dv.write_table(str(tmp_path / "t"), rows(ids), mode="append", variant_columns=["event"])
    return str(tmp_path / "t")


def found(table: str) -> dict[int, str | None]:
    return read_by_id(table, "event:v::string")


SOURCE = pa.table({"key": [1, 9], "new": ["one", "nine"]})
ALL = {number: f"v{number}" for number in range(6)}


def merge_file(table: Path, file: Any, **options: Any) -> None:
    source = dv.read_json(file, column="event", **options) if options else file
    on = "target.event:id::int = source.event:id::int"
    merge = dv.merge(table, source, on, variant_columns=[] if options else ["event"])
    merge.when_matched_update_all().when_not_matched_insert_all().execute()


def test_a_source_of_json_lines_has_its_options(tmp_path: Path):
    table, file = tmp_path / "t", tmp_path / "a.ndjson"
    dv.write_table(table, [{"event": {"id": 1}}], variant_columns=["event"])
    file.write_text('{"id": 1, "x": 1.5, "x": 2.25}\n{"id": 2, "x": 0.5}\n')
    merge_file(table, file, duplicate_keys="last")
    expected = [{"id": 1, "x": Decimal("2.25")}, {"id": 2, "x": Decimal("0.5")}]
    assert [row["event"] for row in dv.read_table(table).to_pylist()] == expected
    merge_file(table, file, duplicate_keys="last", floats="double")
    types = dv.read_table(table, columns=["schema_of_variant(event:x) as type"]).to_pylist()
    assert types == [{"type": "DOUBLE"}, {"type": "DOUBLE"}]


@pytest.mark.parametrize("options", [{}, {"floats": "double"}], ids=["path", "read_json"])
@pytest.mark.parametrize(
    ("line", "message"),
    [(b'{"id"', "a key needs a colon"), (b'"\xff"', "the text is not UTF-8")],
)
def test_invalid_json_in_a_file_of_a_source_has_its_line(tmp_path: Path, line, message, options):
    dv.write_table(tmp_path / "t", [{"event": {"id": 1}}], variant_columns=["event"])
    file = tmp_path / "a.ndjson"
    file.write_bytes(b'{"id": 1}\n\n' + line + b"\n")
    with raises_at(InvalidJsonError, message, file=str(file), line=3):
        merge_file(tmp_path / "t", file, **options)


def test_a_source_that_omits_invalid_values_is_rejected(tmp_path: Path):
    dv.write_table(tmp_path / "t", [{"event": {"id": 1}}], variant_columns=["event"])
    (tmp_path / "a.ndjson").write_text("{\n")
    with pytest.raises(ValueError, match="cannot merge values read with on_invalid='null'"):
        merge_file(tmp_path / "t", tmp_path / "a.ndjson", on_invalid="null")


def test_the_representation_of_a_merge_is_one_line(tmp_path: Path):
    dv.write_table(tmp_path, [{"id": 1}])
    merge = dv.merge(tmp_path, [{"id": 1}], on="target.id = source.id")
    assert repr(merge) == f"<Merge into {tmp_path} on target.id = source.id: no clauses>"
    clauses = merge.when_matched_delete().when_not_matched_insert_all()
    assert repr(clauses).endswith("source.id: matched delete, not matched insert>")


def test_rows_that_match_are_updated_and_others_inserted(table: str):
    before = load_snapshot(table).files["path"].to_pylist()
    result = (
        dv.merge(table, SOURCE, "target.event:k::bigint = source.key")
        .when_matched_update({"event:v": "source.new"})
        .when_not_matched_insert({"id": "source.key", "event:v": "source.new"})
        .execute()
    )
    assert found(table) == {**ALL, 1: "one", 9: "nine"}
    assert (result.version, result.rows_updated, result.rows_inserted, result.rows_copied) == (2, 1, 1, 2)
    after = load_snapshot(table).files["path"].to_pylist()
    assert before[1] in after
    assert before[0] not in after
    info = read_commit(table, 2)[0]["commitInfo"]
    assert info["operation"] == "MERGE"
    assert info["operationParameters"] == {
        "predicate": "target.event:k::bigint = source.key",
        "matchedPredicates": '[{"actionType":"update"}]',
        "notMatchedPredicates": '[{"actionType":"insert"}]',
        "notMatchedBySourcePredicates": "[]",
    }
    assert {name: info["operationMetrics"][name] for name in sorted(info["operationMetrics"])[-5:]} == {
        "numSourceRows": "2",
        "numTargetRowsCopied": "2",
        "numTargetRowsDeleted": "0",
        "numTargetRowsInserted": "1",
        "numTargetRowsUpdated": "1",
    }


def test_only_files_that_can_match_are_read(table: str):
    (second,) = [
        row["path"]
        for row in load_snapshot(table).files.to_pylist()
        if json.loads(row["stats"])["minValues"]["id"] == 3
    ]
    (Path(table) / second).write_bytes(b"unreadable")
    result = dv.merge(table, SOURCE, "id = key").when_matched_delete().execute()
    assert (result.rows_deleted, result.rows_copied) == (1, 2)


@pytest.mark.parametrize("on", ["target.id = source.id", "source.id = target.id and target.id < 100"])
def test_all_columns_are_set_and_inserted(table: str, on: str):
    source = rows([2, 7])
    source = source.set_column(1, "event", pa.array(['{"v": "a"}', '{"v": "b"}'], pa.string()))
    merge = dv.merge(table, source, on, variant_columns=["event"])
    result = merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert found(table) == {**ALL, 2: "a", 7: "b"}
    assert (result.rows_updated, result.rows_inserted) == (1, 1)


def test_the_first_clause_that_is_true_counts(table: str):
    source = pa.table({"key": [0, 1, 2, 3, 8, 9], "x": [0, 1, 2, 3, 8, 9]})
    result = (
        dv.merge(table, source, "t.id = s.key", source_alias="s", target_alias="t")
        .when_matched_delete("s.x = 0")
        .when_matched_update({"event:v": "'first'"}, where="s.x < 2")
        .when_matched_update({"event:v": "'second'"}, where="t.id = 2")
        .when_not_matched_insert({"id": "key"}, where="x = 8")
        .execute()
    )
    assert found(table) == {1: "first", 2: "second", 3: "v3", 4: "v4", 5: "v5", 8: None}
    assert (result.rows_deleted, result.rows_updated, result.rows_inserted) == (1, 2, 1)


def test_rows_not_matched_by_the_source_are_updated_or_deleted(table: str):
    result = (
        dv.merge(table, SOURCE, "id = key")
        .when_not_matched_by_source_update({"event:v": "'kept'"}, where="id > 3")
        .when_not_matched_by_source_delete("id = 0")
        .execute()
    )
    assert found(table) == {1: "v1", 2: "v2", 3: "v3", 4: "kept", 5: "kept"}
    assert (result.rows_deleted, result.rows_updated, result.rows_inserted) == (1, 2, 0)


def test_a_merge_that_changes_nothing_commits_nothing(table: str):
    result = dv.merge(table, SOURCE, "id = key and false").when_matched_delete().execute()
    assert result.version is None
    nothing = SOURCE.slice(0, 0)
    result = dv.merge(table, nothing, "id = key").when_matched_delete().when_not_matched_insert_all
    assert dv.merge(table, nothing, "id = key").when_matched_delete().execute().version is None
    assert load_snapshot(table).version == 1


def test_null_keys_match_nothing_and_are_inserted(table: str):
    source = pa.table({"key": pa.array([None, 1], pa.int64())})
    result = (
        dv.merge(table, source, "id = key").when_matched_delete().when_not_matched_insert({"id": "key"})
    ).execute()
    assert (result.rows_deleted, result.rows_inserted) == (1, 1)


def test_conditions_without_an_equality_are_joined_too(table: str):
    source = pa.table({"low": [0, 4], "high": [1, 9]})
    dv.merge(table, source, "id between low and high").when_matched_delete().execute()
    assert set(found(table)) == {2, 3}


@pytest.mark.parametrize(
    ("values", "keys", "left"),
    [
        ([0.0, 1.5, float("nan")], [-0.0, float("nan")], [1]),
        (["a", "b", "é"], ["é", "b"], [0]),
        ([True, False, None], [True], [1, 2]),
    ],
)
def test_keys_of_other_types_match_as_sql_compares_them(tmp_path: Path, values, keys, left):
    dv.write_table(str(tmp_path / "t"), pa.table({"id": [0, 1, 2], "x": values}))
    source = pa.table({"key": keys})
    dv.merge(str(tmp_path / "t"), source, "x = key").when_matched_delete().execute()
    assert sorted(dv.read_table(str(tmp_path / "t")).to_table()["id"].to_pylist()) == left


def test_a_row_that_two_would_change_is_an_error_unless_they_only_delete(table: str):
    source = pa.table({"key": [1, 1], "new": ["a", "b"]})
    before = found(table)
    with pytest.raises(MergeAmbiguityError, match="several source rows match the same row"):
        dv.merge(table, source, "id = key").when_matched_update({"event:v": "new"}).execute()
    assert found(table) == before
    one = dv.merge(table, source, "id = key").when_matched_update({"event:v": "new"}, where="new = 'a'")
    assert one.execute().rows_updated == 1
    assert dv.merge(table, source, "id = key").when_matched_delete().execute().rows_deleted == 1


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (
            lambda table: dv.merge(table, SOURCE, "id + key"),
            "expected a boolean expression, got 'id \\+ key' of type bigint$",
        ),
        (
            lambda table: dv.merge(table, SOURCE, "id = key").when_not_matched_insert({"id": "target.id"}),
            "only read columns of the source",
        ),
        (
            lambda table: dv.merge(table, SOURCE, "id = key").when_not_matched_by_source_delete("key = 1"),
            "only read columns of the target",
        ),
    ],
)
def test_an_invalid_merge_is_rejected(table: str, build: Any, sentence: str):
    with pytest.raises(ExpressionError, match=sentence):
        build(table)


@pytest.mark.parametrize(
    ("build", "column"),
    [
        (lambda table: dv.merge(table, SOURCE, "nothing = key"), "target.nothing"),
        (lambda table: dv.merge(table, SOURCE, "source = 1"), "target.source"),
        (lambda table: dv.merge(table, rows([1]), "id = 1", variant_columns=["event"]), "id"),
        (lambda table: dv.merge(table, SOURCE, "id = key").when_matched_update_all(), "id"),
    ],
)
def test_an_unknown_or_ambiguous_column_of_a_merge_is_rejected(table: str, build: Any, column: str):
    with raises_at(ExpressionError, column=column):
        build(table)


@pytest.mark.parametrize(
    ("method", "rows_of_clause"),
    [("when_matched_update_all", "matched"), ("when_not_matched_insert_all", "not matched")],
)
def test_a_column_that_the_source_lacks_is_named_with_the_clause_and_the_remedy(
    table: str, method: str, rows_of_clause: str
):
    merge = dv.merge(table, SOURCE, "id = key")
    sentence = f"clause for rows that are {rows_of_clause} because .* 'id': pass except_cols=\\['id', .*\\]"
    with raises_at(ExpressionError, sentence, column="id"):
        getattr(merge, method)()


def test_a_clause_that_reads_one_table_needs_no_alias(table: str):
    """As in Spark, which resolves these clauses over one of the tables."""
    source = pa.table({"id": [1, 9], "event": ['{"v": "new"}', '{"v": "newer"}']})
    merge = dv.merge(table, source, "target.id = source.id", variant_columns=["event"])
    merge = merge.when_not_matched_insert({"id": "id + 1", "event": "event"}, "id > 8")
    merge = merge.when_not_matched_by_source_update({"id": "-id"}, "id > 1")
    assert merge.execute().rows_inserted == 1
    ids = [row["id"] for row in dv.read_table(table, columns=["id"])]
    assert sorted(ids) == sorted([10, *(-row if row > 1 else row for row in ALL)])
    with raises_at(ExpressionError, "the column 'id' is ambiguous", column="id"):
        merge.when_matched_delete("id = 1")


def test_a_variant_without_its_extension_type_is_one_where_the_table_has_a_variant(table: str):
    values = dv.parse_json(['{"v": "new"}'])
    source = pa.table(
        {"id": [1], "EVENT": pa.StructArray.from_arrays(values.flatten(), ["metadata", "value"])}
    )
    merge = dv.merge(table, source, "target.id = source.id and source.event:v::string = 'new'")
    merge.when_matched_update_all().execute()
    assert found(table) == {**ALL, 1: "new"}


def test_columns_to_leave_out_are_found_without_regard_to_case_and_must_exist(table: str):
    source = pa.table({"id": [1, 9], "event": ['{"v": "new"}', '{"v": "new"}']})
    merge = dv.merge(table, source, "target.id = source.id", variant_columns=["event"])
    merge.when_matched_update_all(except_cols=["EVENT"]).execute()
    assert found(table) == ALL
    with raises_at(ExpressionError, "`evnt` does not exist; .* did you mean `event`", column="evnt"):
        merge.when_not_matched_insert_all(except_cols=["evnt"])


@pytest.mark.parametrize(
    ("rows", "method", "column", "values"),
    [
        ("matched", "when_matched_update", "id", {"id": "key"}),
        ("not matched", "when_not_matched_insert", "key", {"id": "key"}),
        ("not matched by source", "when_not_matched_by_source_update", "id", {"id": "0"}),
    ],
)
def test_a_clause_that_never_applies_is_rejected(
    table: str, rows: str, method: str, column: str, values: dict
):
    merge = dv.merge(table, pa.table({"key": [1]}), "id = key")
    for where in (f"{column} = 1", None):
        merge = getattr(merge, method)(values, where=where)
    with pytest.raises(dv.ExpressionError, match=f"rows that are {rows} would never apply"):
        getattr(merge, method)(values, where=f"{column} = 2")


def test_a_merge_without_clauses_is_rejected(table: str):
    with pytest.raises(ValueError, match="no clause"):
        dv.merge(table, SOURCE, "id = key").execute()


def test_equal_aliases_are_rejected(table: str):
    with pytest.raises(ValueError, match="source_alias: expected another name than target_alias, got 'X'"):
        dv.merge(table, [{"id": 1}], "X.id = x.id", source_alias="X", target_alias="x")


@pytest.mark.slow
def test_a_source_that_is_too_large_for_one_batch_is_rejected(table: str):
    half = pa.record_batch({"id": pa.repeat(1, 1100), "text": pa.repeat("x" * 1_000_000, 1100)})
    with pytest.raises(ValueError, match="2 GiB: merge the source in parts"):
        dv.merge(table, pa.Table.from_batches([half, half]), "target.id = source.id")


@pytest.mark.parametrize("arrow_type", [pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")], ids=str)
def test_years_that_python_does_not_support_are_matched_and_shown(tmp_path: Path, arrow_type: pa.DataType):
    days: Any = pa.array([2_932_897, 20_000], pa.int32()).cast(pa.date32()).cast(arrow_type)
    dv.write_table(tmp_path, pa.table({"id": [1, 2], "day": days}))
    with pytest.raises(ConstraintViolationError, match=r"day = \+10000-01-01"):
        dv.add_constraint(tmp_path, "known", "day < '2030-01-01'")
    merge = dv.merge(tmp_path, pa.table({"key": days[:1]}), "day = key")
    assert merge.when_matched_delete().execute().rows_deleted == 1
    assert dv.read_table(tmp_path).to_table()["id"].to_pylist() == [2]
    with raises_at(SchemaError, "years 1 to 9999", column="day"):
        dv.write_table(tmp_path / "by day", pa.table({"id": [1, 2], "day": days}), partition_by=["day"])


def test_a_source_that_is_not_arrow_data_is_rejected(table: str):
    with pytest.raises(
        ValueError, match=r"the source: expected an object with __arrow_c_stream__ .*, got None"
    ):
        dv.merge(table, None, "target.id = source.id")


@pytest.mark.parametrize("encode", ["dictionary", "runs"])
def test_strings_of_a_source_may_be_encoded_at_any_depth(tmp_path: Path, encode: str):
    text = pa.array(["a", None], pa.string_view())
    texts: Any = pa.DictionaryArray.from_arrays(pa.array([0, 0, 1]), text)
    if encode == "runs":
        texts = pa.RunEndEncodedArray.from_arrays([2, 3], text)
    structs = pa.StructArray.from_arrays([texts], ["x"])
    lists = pa.ListArray.from_arrays([0, 1, 2, 3], texts)
    batch = pa.record_batch([pa.array([1, 2, 3]), texts, structs, lists], names=["id", "t", "s", "l"])
    path = str(tmp_path / "t")
    dv.write_table(path, batch)
    dv.delete(path, "id > 1")
    merge = dv.merge(path, pa.Table.from_batches([batch[:2], batch[2:]]), "target.id = source.id")
    result = merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert (result.rows_updated, result.rows_inserted) == (1, 2)
    assert sorted(dv.read_table(path).to_table().to_pylist(), key=lambda row: row["id"]) == [
        {"id": number, "t": text, "s": {"x": text}, "l": [text]}
        for number, text in [(1, "a"), (2, "a"), (3, None)]
    ]


@pytest.mark.parametrize("value", ["source.event", "event_text"])
def test_a_source_column_of_strings_is_rejected_as_a_whole_variant(table: str, value: str):
    source = rows([1, 9]).append_column("event_text", pa.array(["{}", "{}"], pa.large_string()))
    merge = dv.merge(table, source, "target.id = source.id")
    sentence = (
        "the column 'event' is variant in the table and string in the source: add it to "
        f"variant_columns if it has JSON text, or use `cast({value} as string)` for Variant strings"
    )
    for clause in (merge.when_matched_update, merge.when_not_matched_insert):
        with pytest.raises(SchemaError, match=f"^{re.escape(sentence)}$"):
            clause({"event": value})
    for all_columns in (merge.when_matched_update_all, merge.when_not_matched_insert_all):
        with raises_at(SchemaError, "add it to variant_columns", column="event"):
            all_columns()


def test_text_of_a_source_becomes_variants_that_are_strings_where_it_is_cast(table: str):
    merge = dv.merge(table, pa.table({"key": [1], "text": ["a"]}), "id = key")
    merge.when_matched_update({"event": "cast(source.text as string)"}).execute()
    read = dv.read_table(table, columns={"event": "to_json(event)"}, where="id = 1").to_table()
    assert read["event"].to_pylist() == ['"a"']


INNER = pa.field("x", pa.int64())
NOT_NULL = INNER.with_nullable(False)
TEXT = pa.field("y", pa.string())


@pytest.mark.parametrize(
    ("of_table", "of_source", "new"),
    [
        (pa.struct([INNER]), pa.struct([NOT_NULL]), {"x": 2}),
        (pa.struct([NOT_NULL]), pa.struct([INNER]), {"x": 2}),
        (pa.list_(INNER), pa.list_(NOT_NULL), [2]),
        (pa.list_(NOT_NULL), pa.list_(INNER), [2]),
        (pa.map_(pa.string(), INNER), pa.map_(pa.string(), NOT_NULL), [("k", 2)]),
        (pa.map_(pa.string(), NOT_NULL), pa.map_(pa.string(), INNER), [("k", 2)]),
        (pa.struct([INNER, TEXT]), pa.struct([TEXT, pa.field("X", pa.int8())]), {"y": "b", "X": 2}),
        (pa.list_(pa.struct([INNER])), pa.list_(pa.struct([pa.field("X", pa.int32())]), 1), [{"X": 2}]),
    ],
    ids=str,
)
def test_nested_source_values_are_converted_as_in_an_append(
    tmp_path: Path, of_table: Any, of_source: Any, new: Any
):
    path = str(tmp_path / "t")
    fields = [pa.field("id", pa.int64()), pa.field("c", of_table)]
    dv.write_table(path, pa.Table.from_pylist([{"id": 1}, {"id": 3}], schema=pa.schema(fields)))
    source = pa.table({"id": [1, 2], "c": pa.array([new, new], of_source)})
    merge = dv.merge(path, source, "target.id = source.id")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    merged = dv.read_table(path).to_table().sort_by("id")
    dv.write_table(f"{path}a", merged.slice(0, 0))
    dv.write_table(f"{path}a", source, mode="append")
    appended = dv.read_table(f"{path}a").to_table()["c"].to_pylist()
    assert merged["c"].to_pylist() == [*appended, None]


@pytest.mark.parametrize(
    ("of_table", "of_source", "row", "column", "sentence"),
    [
        (pa.struct([NOT_NULL]), pa.struct([INNER]), {"x": None}, "c.x", "is NOT NULL"),
        (pa.list_(NOT_NULL), pa.list_(INNER), [None], "c.element", "is NOT NULL"),
        (pa.struct([INNER, TEXT]), pa.struct([INNER]), {"x": 1}, "c.y", "lacks the field"),
        (pa.struct([INNER]), pa.struct([INNER, TEXT]), {"x": 1}, "c.y", "the table has no column"),
    ],
    ids=["null in struct", "null in list", "field too few", "field too many"],
)
def test_nested_source_values_that_do_not_fit_are_rejected(
    tmp_path: Path, of_table: Any, of_source: Any, row: Any, column: str, sentence: str
):
    path = str(tmp_path / "t")
    fields = [pa.field("id", pa.int64()), pa.field("c", of_table)]
    dv.write_table(path, pa.Table.from_pylist([{"id": 1}], schema=pa.schema(fields)))
    source = pa.table({"id": [1], "c": pa.array([row], of_source)})
    with raises_at(SchemaError, sentence, column=column):
        dv.merge(path, source, "target.id = source.id").when_matched_update_all().execute()
    assert load_snapshot(path).version == 0


def test_only_values_of_rows_that_a_clause_changes_are_cast(tmp_path: Path):
    texts = ['{"n":1}', '{"n":"none"}', '{"n":3}']
    event = pa.array(texts, pa.json_())
    dv.write_table(tmp_path, pa.table({"id": [1, 2, 3], "n": pa.nulls(3, pa.int64()), "event": event}))
    source = pa.table({"key": [1, 9, 3], "event": event})
    merge = dv.merge(tmp_path, source, "id = key and key < 3")
    merge = merge.when_matched_update({"n": "target.event:n::bigint + source.event:n::bigint"})
    result = merge.when_not_matched_by_source_update({"n": "target.event:n::bigint"}, "id = 3").execute()
    assert (result.rows_updated, result.rows_inserted) == (2, 0)
    assert dv.read_table(tmp_path, columns=["id", "n"]).to_table().to_pydict() == {
        "id": [1, 2, 3],
        "n": [2, None, 3],
    }
    with raises_at(CastError, "none", row=0, path="$['n']"):
        dv.merge(tmp_path, source, "id = key").when_not_matched_insert(
            {"n": "source.event:n::bigint"}
        ).execute()


def test_a_predicate_casts_the_values_of_matched_rows_only(tmp_path: Path):
    texts = ['{"n":"none"}', '{"n":1}', '{"n":"two"}', '{"n":3}']
    dv.write_table(tmp_path, pa.table({"id": [1, 2, 3, 4], "event": pa.array(texts, pa.json_())}))
    merge = dv.merge(tmp_path, pa.table({"key": [2, 4]}), "id = key")
    merge = merge.when_matched_update({"event:n": "0"}, where="target.event:n::bigint = 1")
    assert merge.execute().rows_updated == 1
    assert read_by_id(str(tmp_path), "event:n::string") == {1: "none", 2: "0", 3: "two", 4: "3"}
    failing = dv.merge(tmp_path, pa.table({"key": [2, 3]}), "id = key")
    failing = failing.when_matched_delete("target.event:n::bigint = 0")
    with raises_at(CastError, "two", row=2):
        failing.execute()


def test_an_append_only_table_takes_inserts_alone(tmp_path: Path):
    table = str(tmp_path / "t")
    dv.write_table(table, pa.table({"id": [1]}), configuration={"delta.appendOnly": "true"})
    merge = dv.merge(table, SOURCE, "id = key")
    assert merge.when_not_matched_insert({"id": "key"}).execute().rows_inserted == 1
    with raises_at(UnsupportedFeatureError, "appendOnly", table=table):
        merge.when_matched_delete().execute()


def test_a_merge_conflicts_with_an_append_that_may_match(table: str):
    def append() -> None:
        dv.write_table(table, rows([9]), mode="append", variant_columns=["event"])

    merge = dv.merge(commit_first(table, append), SOURCE, "id = key").when_not_matched_insert({"id": "key"})
    with raises_at(CommitConflictError, "added rows", version=2):
        merge.execute()


NULL_SAFE = ("target.k <=> source.k", "source.k = target.k or (target.k is null and source.k is null)")


@pytest.mark.parametrize("on", NULL_SAFE)
@pytest.mark.parametrize(
    ("kind", "here", "there"),
    [
        (pa.int64(), [1, None, 3], [None, 1, 7]),
        (pa.string(), ["", None, "b"], ["b", None, "x"]),
        (pa.float64(), [0.0, float("nan"), None], [-0.0, None, float("nan")]),
        (pa.decimal128(9, 2), [Decimal("1.50"), None], [None, Decimal("2.00")]),
        (pa.bool_(), [True, None], [None, False]),
        (pa.binary(), [None, None], [None]),
        (pa.int32(), [5, 6], [None, 6]),
    ],
    ids=str,
)
def test_null_keys_match_null_keys_of_a_null_safe_predicate(tmp_path: Path, on: str, kind, here, there):
    """The predicate joins by hash: a comparison of all pairs would take hours for large tables."""
    table, changes = str(tmp_path / "t"), pa.table({"k": pa.array(there, kind), "n": range(len(there))})
    dv.write_table(table, pa.table({"k": pa.array(here, kind), "n": pa.nulls(len(here), pa.int64())}))
    assert len(joining.JoinPredicate.of(sides_of(table, changes).predicate(on)).keys) == 1
    dv.merge(table, changes, on).when_matched_update_all().when_not_matched_insert_all().execute()
    keys = [*here, *(key for key in there if sql_key(key) not in map(sql_key, here))]
    numbers = {sql_key(key): number for number, key in enumerate(there)}
    expected = [(sql_key(key), numbers.get(sql_key(key))) for key in keys]
    rows = dv.read_table(table).to_table().to_pylist()
    assert sorted(((sql_key(row["k"]), row["n"]) for row in rows), key=str) == sorted(expected, key=str)


def sql_key(value: Any) -> Any:
    """Return a value that is equal to those of equal keys in Spark."""
    return "NaN" if isinstance(value, float) and value != value else value


def sides_of(table: str, changes: pa.Table) -> Sides:
    scopes = (Scope.of(load_snapshot(table).configuration), Scope(changes.schema))
    return Sides("target", scopes[0], "source", scopes[1])


@given(
    keys=st.lists(st.integers(0, 9), max_size=8, unique=True),
    cut=st.integers(0, 6),
    clauses=st.sets(
        st.sampled_from(["update", "delete", "insert", "by source update", "by source delete"]), min_size=1
    ),
    bound=st.integers(0, 9),
)
def test_a_merge_equals_its_model_in_python(keys, cut, clauses, bound):
    with TemporaryDirectory() as folder:
        table = f"{folder}/t"
        for ids in (list(range(cut)), list(range(cut, 7))):
            if ids:
                dv.write_table(table, rows(ids), mode="append", variant_columns=["event"])
        source = pa.table({"key": pa.array(keys, pa.int64())})
        merge = dv.merge(table, source, "event:k::bigint = key")
        expected: dict[int, str | None] = {number: f"v{number}" for number in range(7)}
        matching, others = set(keys) & set(expected), set(expected) - set(keys)
        if "delete" in clauses:
            merge = merge.when_matched_delete(f"key < {bound}")
        if "update" in clauses:
            merge = merge.when_matched_update({"event:v": "'u'"})
        if "insert" in clauses:
            merge = merge.when_not_matched_insert({"id": "key", "event:v": "'i'"}, where=f"key >= {bound}")
        if "by source delete" in clauses:
            merge = merge.when_not_matched_by_source_delete(f"id < {bound}")
        if "by source update" in clauses:
            merge = merge.when_not_matched_by_source_update({"event:v": "'s'"})
        for number in matching:
            if "delete" in clauses and number < bound:
                del expected[number]
            elif "update" in clauses:
                expected[number] = "u"
        for number in others:
            if "by source delete" in clauses and number < bound:
                del expected[number]
            elif "by source update" in clauses:
                expected[number] = "s"
        if "insert" in clauses:
            expected |= {number: "i" for number in keys if number not in range(7) and number >= bound}
        merge.execute()
        assert found(table) == dict(sorted(expected.items()))


def test_an_error_of_a_cast_names_the_source_and_its_column(table: str):
    merge = dv.merge(table, SOURCE, "id = key").when_matched_update({"id": "new::bigint"})
    with pytest.raises(
        CastError,
        match=r"^part-.*\.parquet, row \d: `cast\(source\.new as bigint\)`: cannot cast 'one' to bigint",
    ):
        merge.execute()


def test_rows_that_match_one_large_row_are_changed_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The rows and the changes are those of one part; each part copies at most three values."""
    configuration = {"delta.enableChangeDataFeed": "true"}
    text = "x" * 1000
    source = pa.table({"user": [1, 2], "doc": pa.array([f'{{"text":"{text}"}}', "{}"], pa.json_())})
    copied: list[int] = []

    def joined(join: Join, batch: Any, pairs: Any, expressions: Any) -> pa.RecordBatch:
        values = real_joined(join, batch, pairs, expressions)
        copied.append(pc.sum(pc.equal(join.source["user"].take(pairs.source), 1)).as_py() or 0)
        return values

    real_joined = Join.joined
    monkeypatch.setattr(Join, "joined", joined)
    results = []
    for name, limit in (("whole", joining.COPIED_BYTES), ("parts", 3500)):
        for module in (_arrow, joining):
            monkeypatch.setattr(module, "COPIED_BYTES", limit)
        data = {"id": range(40), "user": [number % 4 for number in range(40)], "event": ["{}"] * 40}
        table = tmp_path / name
        dv.write_table(table, pa.table(data), variant_columns=["event"], configuration=configuration)
        merge = dv.merge(table, source, "target.user = source.user")
        merge = merge.when_matched_delete("source.doc:text is not null and target.id = 21")
        merge = merge.when_matched_update({"event": "source.doc"}, where="source.doc:text::string <> 'y'")
        result = merge.when_matched_update({"event:n": "target.id"}).execute()
        assert (result.rows_updated, result.rows_deleted, max(copied)) == (
            19,
            1,
            10 if name == "whole" else 3,
        )
        copied.clear()
        columns = {"id": "id", "text": "to_json(event)"}
        read = dv.read_table(table, columns=columns).to_table().sort_by("id").to_pylist()
        changes = dv.read_changes(table, start=1).to_table()
        changes = changes.select(["id", "user", "_change_type"]).sort_by(
            [("id", "ascending"), ("_change_type", "ascending")]
        )
        results.append((read, changes.to_pylist()))
    assert results[0] == results[1]
    expected = {
        n: json.dumps({"text": text}, separators=(",", ":"))
        if n % 4 == 1
        else f'{{"n":{n}}}'
        if n % 4 == 2
        else "{}"
        for n in range(40)
        if n != 21
    }
    assert {row["id"]: row["text"] for row in results[1][0]} == expected
    assert len(results[1][1]) == 2 * 19 + 1
