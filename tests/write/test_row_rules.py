"""Constraints, generated columns and defaults apply to the new rows of every operation."""

from __future__ import annotations

import json
from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError
from support.errors import raises_at
from support.intercepted_store import commit_first
from support.planting import Table
from support.tables import list_files, read_rows

import delta_variant as dv
from delta_variant.errors import (
    CastError,
    CommitConflictError,
    ConstraintViolationError,
    ExpressionError,
    InvalidJsonError,
    SchemaError,
    UnsupportedFeatureError,
)

REQUIRED = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("s", pa.struct([pa.field("x", pa.int64(), nullable=False)])),
        pa.field("n", pa.int64()),
    ]
)
REQUIRED_ROWS = pa.table([[1, 2], [{"x": 1}, None], [1, None]], schema=REQUIRED)
ROWS = pa.table({"id": [1, 2], "amount": [5, 6], "event": ['{"n": 1}', '{"n": 2}']})


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Return a table of two rows."""
    uri = str(tmp_path / "t")
    dv.write_table(uri, ROWS, variant_columns=["event"])
    return uri


NEEDED = {
    "delta.generationExpression": "generatedColumns",
    "delta.invariants": "invariants",
    "CURRENT_DEFAULT": "allowColumnDefaults",
}


def planted(path: Path, columns: pa.Table, metadata: dict[str, dict[str, Any]], **options: Any) -> str:
    """Create an empty table, set the field metadata of its columns, and return its path."""
    dv.write_table(path, columns.slice(0, 0), **options)

    def change(document: dict[str, Any]) -> None:
        for field in document["fields"]:
            field["metadata"].update(metadata.get(field["name"], {}))
            field["nullable"] = not field["metadata"].pop("not null", False)

    needed = {NEEDED[key] for keys in metadata.values() for key in keys if key in NEEDED}

    def add_features(protocol: dict[str, Any]) -> None:
        listed = {"appendOnly", "invariants", *protocol.get("writerFeatures", ()), *needed}
        protocol.update(minWriterVersion=7, writerFeatures=sorted(listed))

    Table(path).edit_schema(change)
    Table(path).edit("protocol", add_features)
    return str(path)


# CHECK constraints


def test_a_constraint_goes_to_the_properties_and_its_feature_to_the_protocol(table: str):
    assert dv.add_constraint(table, "Positive", "amount > 0").version == 1
    snapshot = dv.load_snapshot(table)
    assert snapshot.properties["delta.constraints.positive"] == "amount > 0"
    assert "checkConstraints" in snapshot.protocol.writer_features
    with pytest.raises(SchemaError, match="has a constraint 'POSITIVE' already"):
        dv.add_constraint(table, "POSITIVE", "id > 0")
    assert dv.drop_constraint(table, "positive").version == 2
    assert "delta.constraints.positive" not in dv.load_snapshot(table).properties
    with pytest.raises(SchemaError, match="has no constraint 'positive'"):
        dv.drop_constraint(table, "positive")


@pytest.mark.parametrize(
    ("check", "error", "sentence"),
    [
        ("amount > 5", ConstraintViolationError, r"the CHECK constraint c, amount > 5: amount = 5"),
        ("event:n::int <> 2", ConstraintViolationError, r"event:n::int = 2"),
        # NULL is not true (PROTOCOL.md, "CHECK Constraints").
        ("event:x::int > 0", ConstraintViolationError, r"event:x::int = NULL"),
        ("amount", ExpressionError, "expected a boolean expression, got `amount`"),
        ("nothing > 1", ExpressionError, "nothing"),
        ("soundex(id) > 1", ExpressionError, "not supported"),
    ],
)
def test_a_constraint_that_is_not_true_of_all_rows_is_not_added(table: str, check: str, error, sentence: str):
    with pytest.raises(error, match=sentence):
        dv.add_constraint(table, "c", check)
    assert dv.load_snapshot(table).version == 0


def test_rows_that_come_in_between_have_to_be_checked(table: str):
    store = commit_first(table, lambda: dv.write_table(table, pa.table({"amount": [-1]}), mode="append"))
    with raises_at(CommitConflictError, "added rows that this operation may have to see", version=1):
        dv.add_constraint(store, "c", "amount > 0")


def test_deleted_rows_need_not_satisfy_a_constraint(table: str):
    dv.delete(table, "amount = 5")
    assert dv.add_constraint(table, "c", "amount = 6").version == 2


@pytest.fixture
def constrained(table: str) -> str:
    """Return a table with constraints over a column and a path."""
    dv.add_constraint(table, "positive", "amount > 0")
    dv.add_constraint(table, "n", "event:n::int is not null and event:n::int < 100")
    return table


def source(**columns: Any) -> pa.Table:
    return pa.table({name: [value] for name, value in columns.items()})


def merge_insert(table: str) -> None:
    rows = source(id=9, amount=-1, event='{"n": 1}')
    dv.merge(
        table, rows, "target.id = source.id", variant_columns=["event"]
    ).when_not_matched_insert_all().execute()


def merge_update(table: str) -> None:
    rows = source(id=2, amount=0)
    dv.merge(table, rows, "target.id = source.id").when_matched_update({"amount": "source.amount"}).execute()


BREAKING = {
    "append": lambda t: dv.write_table(
        t, source(id=9, amount=0, event='{"n": 1}'), mode="append", variant_columns=["event"]
    ),
    "null": lambda t: dv.write_table(
        t, source(id=9, event='{"n": 1}'), mode="append", variant_columns=["event"]
    ),
    "path": lambda t: dv.write_table(
        t, source(amount=1, event='{"n": 100}'), mode="append", variant_columns=["event"]
    ),
    "overwrite": lambda t: dv.write_table(t, source(amount=-1), mode="overwrite"),
    "replace where": lambda t: dv.write_table(t, source(id=1, amount=-1), mode="overwrite", where="id = 1"),
    "update": lambda t: dv.update(t, {"amount": "amount - 6"}),
    "update of a path": lambda t: dv.update(t, {"event:n": None}, "id = 2"),
    "merge insert": merge_insert,
    "merge update": merge_update,
}


@pytest.mark.parametrize("flow", BREAKING)
def test_a_flow_that_would_break_a_constraint_commits_nothing(constrained: str, flow: str):
    before = list_files(constrained)
    with pytest.raises(ConstraintViolationError, match="violates the CHECK constraint"):
        BREAKING[flow](constrained)
    assert list_files(constrained) == before


def test_flows_that_keep_the_constraints_go_through(constrained: str):
    dv.write_table(
        constrained, source(id=3, amount=7, event='{"n": 3}'), mode="append", variant_columns=["event"]
    )
    dv.update(constrained, {"amount": "amount + 1", "event:n": "id + 10"}, "id > 1")
    # The constraint reads a Variant that the update copies in shredded form.
    dv.update(constrained, {"amount": "amount + 0"})
    rows = source(id=4, amount=1, event='{"n": 4}')
    merge = dv.merge(constrained, rows, "target.id = source.id", variant_columns=["event"])
    merge.when_not_matched_insert_all().execute()
    dv.delete(constrained, "id = 1")
    dv.optimize(constrained)
    assert read_rows(constrained, "id", "amount", "event:n::int as n") == [
        {"id": 2, "amount": 7, "n": 12},
        {"id": 3, "amount": 8, "n": 13},
        {"id": 4, "amount": 1, "n": 4},
    ]


def test_an_error_has_file_line_constraint_and_values(constrained: str, tmp_path: Path):
    dv.drop_constraint(constrained, "positive")
    file = tmp_path / "new.ndjson"
    file.write_text('{"n": 1}\n\n{"n": "7", "m": 1}\n{"n": 100}\n')
    with pytest.raises(
        ConstraintViolationError,
        match=r"the row violates the CHECK constraint n, event:n::int is .*: event:n::int = 100",
    ) as caught:
        dv.write_table(constrained, dv.read_json(file, column="event"), mode="append")
    assert (caught.value.file, caught.value.line) == (str(file), 4)
    rows = pa.table({"amount": [1, 2, 3], "event": ['{"n": 1}', '{"n": 2}', None]})
    with raises_at(ConstraintViolationError, "the CHECK constraint n", row=2):
        dv.write_table(constrained, rows, mode="append", variant_columns=["event"])


def test_constraints_see_null_for_invalid_json_if_it_becomes_null(constrained: str, tmp_path: Path):
    rows = pa.table({"amount": [1, 2], "event": ['{"n": 1}', "{"]})
    options: dict[str, Any] = {"mode": "append", "variant_columns": ["event"]}
    with pytest.raises(InvalidJsonError):
        dv.write_table(constrained, rows, **options)
    with raises_at(ConstraintViolationError, r"event:n::int = NULL", row=1):
        dv.write_table(constrained, rows, json=dv.JsonOptions(on_invalid="null"), **options)
    result = dv.write_table(
        constrained, rows, json=dv.JsonOptions(on_invalid="reject", rejects=tmp_path / "rejects"), **options
    )
    assert (result.rows, result.invalid) == (1, 1)


def test_an_error_of_a_cast_names_the_constraint(constrained: str):
    rows = source(amount=1, event='{"n": "x"}')
    with raises_at(CastError, "the CHECK constraint n: .*x", row=0, path="$['n']"):
        dv.write_table(constrained, rows, mode="append", variant_columns=["event"])


def test_a_constraint_that_cannot_be_evaluated_rejects_all_new_rows_and_no_existing_row(table: str):
    Table(Path(table)).set_property("delta.constraints.c", "soundex(amount) > 0")
    flows = [
        lambda: dv.write_table(table, ROWS, mode="append", variant_columns=["event"]),
        lambda: dv.write_table(table, ROWS, mode="overwrite", variant_columns=["event"]),
        lambda: dv.update(table, {"amount": "1"}),
        lambda: dv.merge(table, ROWS, "target.id = source.id").when_matched_update({"amount": "1"}).execute(),
    ]
    before = list_files(table)
    for flow in flows:
        with pytest.raises(UnsupportedFeatureError, match=r"the CHECK constraint c, soundex\(amount\) > 0"):
            flow()
    assert list_files(table) == before
    assert dv.delete(table, "id = 1").rows_copied == 1
    dv.optimize(table)
    dv.drop_constraint(table, "c")
    dv.write_table(table, ROWS, mode="append", variant_columns=["event"])
    assert read_rows(table, "id") == [{"id": 1}, {"id": 2}, {"id": 2}]


def test_existing_rows_are_not_checked_again(table: str):
    """A writer that ignores a constraint, or a session with another time zone, may have added them."""
    Table(Path(table)).set_property("delta.constraints.c", "amount > 5")
    dv.update(table, {"amount": "7"}, "id = 2")
    dv.write_table(table, source(id=2, amount=8), mode="overwrite", where="id = 2")
    assert read_rows(table, "id", "amount") == [{"id": 1, "amount": 5}, {"id": 2, "amount": 8}]
    with pytest.raises(ConstraintViolationError, match=r"an updated row violates .* amount = 5"):
        dv.update(table, {"event:n": "3"}, "id = 1")


def test_a_table_is_created_with_constraints(tmp_path: Path):
    options: dict[str, Any] = {"configuration": {"delta.constraints.c": "id > 0"}}
    with pytest.raises(ConstraintViolationError):
        dv.write_table(tmp_path / "t", source(id=0), **options)
    dv.write_table(tmp_path / "t", source(id=1), **options)
    assert "checkConstraints" in dv.load_snapshot(tmp_path / "t").protocol.writer_features


def test_deltalake_keeps_our_constraints_and_we_keep_its(tmp_path: Path):
    table = str(tmp_path / "t")
    dv.write_table(table, source(id=1))
    dv.add_constraint(table, "ours", "id > 0")
    with pytest.raises(DeltaError, match="failed validation check"):
        write_deltalake(table, source(id=-1), mode="append")
    write_deltalake(table, source(id=2), mode="append")
    DeltaTable(table).alter.add_constraint({"theirs": "id < 10"})
    with pytest.raises(ConstraintViolationError, match="the CHECK constraint theirs, id < 10: id = 10"):
        dv.write_table(table, source(id=10), mode="append")
    for name in ("theirs", "ours"):
        dv.drop_constraint(table, name)
    dv.add_columns(table, {"x": "string"})
    write_deltalake(table, source(id=-10, x="a"), mode="append")
    assert read_rows(table) == [{"id": -10, "x": "a"}, {"id": 1, "x": None}, {"id": 2, "x": None}]


# Invariants


def test_an_invariant_of_a_column_holds(tmp_path: Path):
    """PROTOCOL.md, "Column Invariants"."""
    invariant = json.dumps({"expression": {"expression": "x > 3"}})
    table = planted(tmp_path / "t", pa.table({"x": [1]}), {"x": {"delta.invariants": invariant}})
    dv.write_table(table, pa.table({"x": [4]}), mode="append")
    for value in (3, None):
        with raises_at(ConstraintViolationError, "invariant .*x > 3: x = ", column="x", row=1):
            dv.write_table(table, pa.table({"x": pa.array([5, value], pa.int64())}), mode="append")


@pytest.mark.parametrize("text", ["{}", "x > 3", '{"expression":{"expression":"f(x)"}}'])
def test_an_invalid_invariant_rejects_the_append(tmp_path: Path, text: str):
    table = planted(tmp_path / "t", pa.table({"x": [1]}), {"x": {"delta.invariants": text}})
    with raises_at(UnsupportedFeatureError, "the invariant", column="x"):
        dv.write_table(table, pa.table({"x": [4]}), mode="append")


# Generated columns

GENERATED = {
    "day": {"delta.generationExpression": "CAST(at AS DATE)"},
    "double": {"delta.generationExpression": "n * 2", "not null": True},
    "user": {"delta.generationExpression": "event:user::string"},
}
COLUMNS = pa.table(
    {
        "at": pa.array([datetime(2026, 1, 1, 5)]),
        "n": pa.array([1], pa.int32()),
        "event": pa.array(['{"user": "x"}'], pa.json_()),
        "day": pa.array([None], pa.date32()),
        "double": pa.array([None], pa.int64()),
        "user": pa.array([None], pa.string()),
    }
)
GIVEN = ["at", "n", "event"]


@pytest.fixture
def generating(tmp_path: Path) -> str:
    """Return an empty table with generated columns, one of which is the partition column."""
    return planted(tmp_path / "t", COLUMNS, GENERATED, partition_by="day")


def test_generated_columns_are_computed_where_the_data_has_none(generating: str):
    dv.write_table(generating, COLUMNS.select(GIVEN), mode="append")
    assert read_rows(generating, "day", "`double`", "user") == [
        {"day": date(2026, 1, 1), "double": 2, "user": "x"}
    ]
    (path,) = Path(generating).glob("day=*/*.parquet")
    assert path.parent.name == "day=2026-01-01"


def test_given_values_must_equal_the_generation_expression(generating: str):
    """PROTOCOL.md, "Generated Columns": `(<value> <=> <generation expression>) IS TRUE`."""
    right = {"day": [date(2026, 1, 1)], "double": [2], "user": ["x"]}
    given = COLUMNS.select(GIVEN)
    for name, values in right.items():
        given = given.append_column(name, pa.array(values))
    dv.write_table(generating, given, mode="append")
    nulls = pa.table(
        {"at": pa.nulls(1, pa.timestamp("us")), "n": pa.array([1], pa.int32()), "day": pa.nulls(1)}
    )
    dv.write_table(generating, nulls, mode="append")
    for name, wrong in (("double", 3), ("user", None), ("day", date(2026, 1, 2))):
        column = pa.array([wrong], COLUMNS.schema.field(name).type)
        broken = given.set_column(given.schema.get_field_index(name), name, column)
        with raises_at(ConstraintViolationError, "the generation expression", column=name, row=0):
            dv.write_table(generating, broken, mode="append")


def test_generated_columns_follow_the_columns_that_they_read(generating: str):
    dv.write_table(generating, pa.concat_tables([COLUMNS.select(GIVEN)] * 2), mode="append")
    dv.update(generating, {"n": "n + 1", "at": "timestamp_ntz '2027-05-05 00:00:00'", "event:user": "'y'"})
    assert (
        read_rows(generating, "day", "n", "`double`", "user")
        == [{"day": date(2027, 5, 5), "n": 2, "double": 4, "user": "y"}] * 2
    )
    with raises_at(ConstraintViolationError, "the generation expression", column="double"):
        dv.update(generating, {"`double`": "7"})
    dv.update(generating, {"`double`": "10", "n": "5"})
    assert read_rows(generating, "`double`") == [{"double": 10}] * 2


def test_a_merge_computes_generated_columns(generating: str):
    dv.write_table(generating, COLUMNS.select(GIVEN), mode="append")
    rows = pa.table({"key": [1, 8], "at": [datetime(2026, 3, 3)] * 2})
    merge = dv.merge(generating, rows, "target.n = source.key")
    merge = merge.when_matched_update({"n": "n + 1"})
    merge.when_not_matched_insert({"n": "source.key", "at": "source.at"}).execute()
    assert read_rows(generating, "n", "`double`", "day") == [
        {"n": 2, "double": 4, "day": date(2026, 1, 1)},
        {"n": 8, "double": 16, "day": date(2026, 3, 3)},
    ]


def test_a_predicate_of_an_overwrite_sees_generated_columns(generating: str):
    dv.write_table(generating, COLUMNS.select(GIVEN), mode="append")
    new = COLUMNS.select(GIVEN).set_column(1, "n", pa.array([7], pa.int32()))
    dv.write_table(generating, new, mode="overwrite", where="day = date '2026-01-01'")
    assert read_rows(generating, "`double`") == [{"double": 14}]


def test_copied_rows_are_not_checked_against_generation_expressions(generating: str):
    dv.write_table(generating, pa.concat_tables([COLUMNS.select(GIVEN)] * 3), mode="append")
    dv.write_table(generating, COLUMNS.select(GIVEN), mode="append")
    dv.delete(generating, "n = 2")
    dv.optimize(generating)
    assert read_rows(generating, "`double`", "user") == [{"double": 2, "user": "x"}] * 4


def test_values_that_do_not_fit_name_the_column(generating: str):
    big = COLUMNS.select(GIVEN).set_column(1, "n", pa.array([2**31 - 1], pa.int32()))
    with raises_at(CastError, "overflow", column="double"):
        dv.write_table(generating, big, mode="append")


@pytest.mark.parametrize("text", ["uuid()", "nothing + 1", "soundex('x')"])
def test_an_expression_that_cannot_be_evaluated_rejects_the_append(tmp_path: Path, text: str):
    columns = COLUMNS.select(["at", "n"])
    table = planted(tmp_path / "t", columns, {"n": {"delta.generationExpression": text}})
    for rows in (columns, columns.select(["at"])):
        with raises_at(UnsupportedFeatureError, "the generation expression", column="n"):
            dv.write_table(table, rows, mode="append")


def test_a_column_that_a_generated_column_reads_cannot_be_removed(generating: str):
    dv.set_properties(generating, {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"})
    with raises_at(SchemaError, "the generated column double", column="n"):
        dv.drop_column(generating, "n")
    with raises_at(SchemaError, "the generated column user", column="event"):
        dv.rename_column(generating, "event", "e")
    with raises_at(SchemaError, "the generated column double", column="n"):
        dv.change_type(generating, "n", "bigint")
    dv.rename_column(generating, "double", "twice")
    dv.write_table(generating, COLUMNS.select(GIVEN), mode="append")
    assert read_rows(generating, "twice") == [{"twice": 2}]


# Defaults


@pytest.fixture
def with_defaults(tmp_path: Path) -> str:
    """Return an empty table with defaults, one of which is not supported."""
    columns = pa.table(
        {
            "id": [1],
            "n": pa.array([1], pa.int16()),
            "s": ["x"],
            "at": [datetime(2026, 1, 1)],
            "v": pa.array(["1"], pa.json_()),
        }
    )
    defaults = {
        "n": {"CURRENT_DEFAULT": "40 + 2", "not null": True},
        "s": {"CURRENT_DEFAULT": "'none'"},
        "at": {"CURRENT_DEFAULT": "monotonically_increasing_id()"},
        "v": {"CURRENT_DEFAULT": "NULL"},
    }
    return planted(tmp_path / "t", columns, defaults)


def test_a_constant_default_is_the_value_of_an_absent_column(with_defaults: str):
    at = pa.array([datetime(2026, 1, 1)] * 2)
    dv.write_table(with_defaults, pa.table({"id": [1, 2], "s": [None, "y"], "at": at}), mode="append")
    assert read_rows(with_defaults, "id", "n", "s", "to_json(v) as v") == [
        {"id": 1, "n": 42, "s": None, "v": None},
        {"id": 2, "n": 42, "s": "y", "v": None},
    ]
    rows = pa.table({"key": [3], "at": at.slice(1)})
    merge = dv.merge(with_defaults, rows, "target.id = source.key")
    merge.when_not_matched_insert({"id": "source.key", "at": "source.at"}).execute()
    assert read_rows(with_defaults, "id", "n", "s")[2] == {"id": 3, "n": 42, "s": "none"}


def test_a_default_that_cannot_be_computed_has_to_be_given(with_defaults: str):
    before = list_files(with_defaults)
    with raises_at(UnsupportedFeatureError, r"the default .* monotonically_increasing_id\(\)", column="at"):
        dv.write_table(with_defaults, pa.table({"id": [1]}), mode="append")
    merge = dv.merge(with_defaults, pa.table({"key": [3]}), "target.id = source.key")
    with raises_at(UnsupportedFeatureError, "the default", column="at"):
        merge.when_not_matched_insert({"id": "source.key"}).execute()
    assert list_files(with_defaults) == before


# Together with other features


@pytest.mark.parametrize(
    "configuration",
    [
        {"delta.enableChangeDataFeed": "true"},
        {"delta.enableRowTracking": "true"},
        {"delta.columnMapping.mode": "name"},
        {
            "delta.enableInCommitTimestamps": "true",
            "delta.enableRowTracking": "true",
            "delta.enableChangeDataFeed": "true",
        },
    ],
)
def test_rules_apply_together_with_other_features(tmp_path: Path, configuration: dict[str, str]):
    """Change data files and files with row ids have further columns."""
    table = planted(tmp_path / "t", COLUMNS, GENERATED, configuration=configuration)
    dv.add_constraint(table, "small", "n < 10")
    dv.write_table(table, pa.concat_tables([COLUMNS.select(GIVEN)] * 2), mode="append")
    dv.update(table, {"n": "n + 1"})
    rows = pa.table({"key": [2, 8], "at": [datetime(2026, 3, 3)] * 2})
    merge = dv.merge(table, rows.slice(1), "target.n = source.key")
    merge.when_not_matched_insert({"n": "source.key", "at": "source.at"}).execute()
    dv.delete(table, "n = 8 and `double` = 16")
    before = list_files(table)
    for update in ({"n": "20"}, {"`double`": "1"}):
        with pytest.raises(ConstraintViolationError):
            dv.update(table, update)
    with pytest.raises(ConstraintViolationError):
        dv.merge(table, rows, "target.n = source.key").when_matched_update({"n": "source.key + 8"}).execute()
    assert list_files(table) == before
    assert read_rows(table, "n", "`double`", "day") == [{"n": 2, "double": 4, "day": date(2026, 1, 1)}] * 2
    assert dv.audit_table(table, data=True).findings == ()


def test_a_violation_shows_a_timestamp_beyond_the_years_of_python(tmp_path: Path):
    uri = str(tmp_path / "t")
    rows = pa.table({"at": pa.array([2**63 - 1], pa.int64()).cast(pa.timestamp("us", "UTC"))})
    dv.write_table(uri, rows.slice(0, 0))
    dv.add_constraint(uri, "recent", "year(at) < 40000")
    with pytest.raises(ConstraintViolationError, match=r"at = \+294247-01-10 04:00:54\.775807"):
        dv.write_table(uri, rows, mode="append")


# NOT NULL


def nullability(table: str | Path) -> dict[str, bool]:
    return {field.name: field.nullable for field in dv.load_snapshot(str(table)).schema.fields}


def test_a_new_table_has_the_nullability_of_its_arrow_schema_as_in_deltalake(tmp_path: Path):
    dv.write_table(tmp_path / "t", REQUIRED_ROWS)
    write_deltalake(tmp_path / "d", REQUIRED_ROWS)
    schemas = [json.loads(DeltaTable(tmp_path / name).schema().to_json()) for name in ("t", "d")]
    assert schemas[0] == schemas[1]
    assert nullability(tmp_path / "t") == {"id": False, "s": True, "n": True}


@pytest.mark.parametrize(
    "write",
    [
        lambda table, nulls: dv.write_table(table, nulls, mode="append"),
        lambda table, nulls: dv.write_table(table, nulls, mode="append", schema_mode="merge"),
        lambda table, nulls: dv.write_table(table, nulls, mode="overwrite"),
        lambda table, nulls: dv.update(table, {"id": "null"}),
        lambda table, nulls: dv.update(table, {"id": "n"}),
        lambda table, nulls: dv.merge(table, nulls, on="false").when_not_matched_insert_all().execute(),
        lambda table, nulls: (
            dv.merge(table, nulls, on="target.n = source.n")
            .when_matched_update({"id": "source.id"})
            .execute()
        ),
    ],
)
def test_no_write_puts_a_null_into_a_required_column(tmp_path: Path, write):
    table = str(tmp_path / "t")
    dv.write_table(table, REQUIRED_ROWS)
    nulls = pa.table({"id": pa.array([None], pa.int64()), "s": [{"x": 1}], "n": [1]})
    with raises_at(SchemaError, "NOT NULL", column="id"):
        write(table, nulls)
    assert dv.load_snapshot(table).version == 0


def test_required_partition_columns_and_variants_reject_nulls(tmp_path: Path):
    table = str(tmp_path / "t")
    schema = pa.schema([pa.field("day", pa.string(), False), pa.field("event", pa.json_(), False)])
    dv.write_table(table, pa.table([["mon"], ["{}"]], schema=schema), partition_by="day")
    for row, column in (({"day": None, "event": {}}, "day"), ({"day": "mon", "event": None}, "event")):
        with raises_at(SchemaError, "NOT NULL", column=column):
            dv.write_table(table, [row], mode="append")
    invalid = pa.table([["mon"], ["{"]], schema=schema)
    with pytest.raises(SchemaError, match="non-nullable"):
        dv.write_table(table, invalid, mode="append", json=dv.JsonOptions(on_invalid="null"))
    assert dv.read_table(table).to_pylist() == [{"day": "mon", "event": {}}]


@pytest.mark.parametrize("kind", ["dicts", "pandas", "Polars", "DuckDB", "JSON"])
def test_rows_without_an_arrow_schema_have_nullable_columns(tmp_path: Path, kind: str):
    rows = pa.table({"id": [1]})
    (tmp_path / "rows.ndjson").write_text("1\n")
    data = {
        "dicts": lambda: rows.to_pylist(),
        "pandas": lambda: rows.to_pandas(),
        "Polars": lambda: pl.from_arrow(rows),
        "DuckDB": lambda: duckdb.sql("select 1 as id"),
        "JSON": lambda: dv.read_json(str(tmp_path / "rows.ndjson"), column="id"),
    }
    dv.write_table(tmp_path / "t", data[kind]())
    assert nullability(tmp_path / "t") == {"id": True}


def test_an_overwrite_of_the_schema_takes_the_nullability_of_the_data(tmp_path: Path):
    table = str(tmp_path / "t")
    dv.write_table(table, REQUIRED_ROWS)
    swapped = pa.schema([pa.field("id", pa.int64()), REQUIRED.field("s"), pa.field("n", pa.int64(), False)])
    rows = pa.table([[None], [None], [1]], schema=swapped)
    dv.write_table(table, rows, mode="overwrite", schema_mode="overwrite")
    assert nullability(table) == {"id": True, "s": True, "n": False}


def test_columns_that_an_append_adds_are_nullable(tmp_path: Path):
    table = str(tmp_path / "t")
    dv.write_table(table, [{"a": 1}])
    rows = pa.table([[2], [3]], schema=pa.schema([pa.field("a", pa.int64()), REQUIRED.field("id")]))
    dv.write_table(table, rows, mode="append", schema_mode="merge")
    assert nullability(table) == {"a": True, "id": True}


def test_a_read_and_a_conversion_keep_required_columns(tmp_path: Path):
    dv.write_table(tmp_path / "t", REQUIRED_ROWS)
    assert dv.read_table(tmp_path / "t").schema == REQUIRED
    computed = dv.read_table(tmp_path / "t", columns={"id": "id", "next": "id + 1"}, where="n = 1")
    assert computed.to_table().schema == pa.schema([REQUIRED.field("id"), pa.field("next", pa.int64())])
    dv.convert(tmp_path / "t", tmp_path / "copy")
    assert dv.load_snapshot(str(tmp_path / "copy")).schema == dv.load_snapshot(str(tmp_path / "t")).schema


def test_a_column_that_all_parquet_files_require_is_not_null(tmp_path: Path):
    pq.write_table(REQUIRED_ROWS, tmp_path / "a.parquet")
    pq.write_table(REQUIRED_ROWS.select(["id"]), tmp_path / "b.parquet")
    dv.convert(tmp_path / "a.parquet", tmp_path / "one")
    assert nullability(tmp_path / "one") == {"id": False, "s": True, "n": True}
    pq.write_table(pa.table({"n": [7]}), tmp_path / "c.parquet")
    dv.convert([tmp_path / f"{name}.parquet" for name in "abc"], tmp_path / "all")
    assert nullability(tmp_path / "all") == {"id": True, "s": True, "n": True}
    assert read_rows(str(tmp_path / "all"))[-1] == {"id": None, "s": None, "n": 7}


# Identity columns


@pytest.fixture
def numbered(tmp_path: Path) -> str:
    """Return a table with an identity column and two files of two rows."""
    uri = str(tmp_path / "numbered")
    rows = pa.table({"id": [1, 2], "v": ["a", "b"]})
    dv.write_table(uri, rows, configuration={"delta.enableTypeWidening": "true"})
    dv.write_table(uri, pa.table({"id": [3, 4], "v": ["c", "d"]}), mode="append")

    def add_identity(document: dict[str, Any]) -> None:
        names = {"start": 1, "step": 1, "highWaterMark": 4, "allowExplicitInsert": False}
        document["fields"][0]["metadata"] = {f"delta.identity.{name}": value for name, value in names.items()}

    Table(Path(uri)).edit_schema(add_identity)
    Table(Path(uri)).edit("protocol", lambda each: each["writerFeatures"].append("identityColumns"))
    return uri


def test_rows_of_a_table_with_an_identity_column_can_be_changed_and_removed(numbered: str):
    before = dv.load_snapshot(numbered).schema
    dv.update(numbered, {"v": "'B'"}, "id = 2")
    dv.delete(numbered, "v = 'a'")
    removed = pa.table({"id": [3]})
    dv.merge(numbered, removed, on="target.id = source.id").when_matched_delete().execute()
    new = pa.table({"id": [4], "v": ["D"]})
    merge = dv.merge(numbered, new, on="target.id = source.id")
    merge.when_matched_update_all(except_cols=["id"]).execute()
    dv.optimize(numbered)
    rows = [{"id": 2, "v": "B"}, {"id": 4, "v": "D"}]
    assert sorted(read_rows(numbered), key=lambda row: row["id"]) == rows
    assert dv.load_snapshot(numbered).schema == before


@pytest.mark.parametrize(
    ("error", "message", "write"),
    [
        (
            SchemaError,
            "cannot write values of",
            lambda table, rows: dv.write_table(table, rows, mode="append"),
        ),
        (
            SchemaError,
            "cannot write values of",
            lambda table, rows: dv.write_table(table, rows, mode="overwrite"),
        ),
        (
            SchemaError,
            "cannot write values of",
            lambda table, rows: dv.write_table(table, rows, mode="overwrite", schema_mode="overwrite"),
        ),
        (
            SchemaError,
            "cannot write values of",
            lambda table, rows: (
                dv.merge(table, rows, on="target.id = source.id").when_not_matched_insert_all().execute()
            ),
        ),
        (UnsupportedFeatureError, "cannot change", lambda table, rows: dv.update(table, {"id": "7"})),
        (
            UnsupportedFeatureError,
            "cannot change",
            lambda table, rows: dv.change_type(table, "id", "decimal(20,0)"),
        ),
        (
            UnsupportedFeatureError,
            "cannot change",
            lambda table, rows: (
                dv.merge(table, rows, on="target.id = source.id").when_matched_update_all().execute()
            ),
        ),
    ],
)
def test_no_write_sets_an_identity_column(
    numbered: str, error: type[dv.DeltaVariantError], message: str, write
):
    version = dv.load_snapshot(numbered).version
    with raises_at(error, f"{message} .*'id'", column="id"):
        write(numbered, pa.table({"id": [4], "v": ["x"]}))
    assert dv.load_snapshot(numbered).version == version


IDENTITIES = ["id bigint GENERATED ALWAYS AS IDENTITY (START WITH 10 INCREMENT BY 5)", "v string"]


def values(table: dv.Table) -> dict[str, int]:
    return {row["v"]: row["id"] for row in table}


def mark(table: dv.Table, column: int = 0) -> int | None:
    """Return the high water mark in the log."""
    field = json.loads(table.snapshot().metadata.schema_string)["fields"][column]
    return field["metadata"].get("delta.identity.highWaterMark")


@pytest.fixture
def counting(tmp_path: Path) -> dv.Table:
    """Return a table without rows whose column `id` is GENERATED ALWAYS AS IDENTITY."""
    table = dv.Table(tmp_path / "counting")
    table.create(IDENTITIES)
    return table


def test_each_writer_assigns_the_values_of_an_identity_column(counting: dv.Table):
    assert mark(counting) is None
    counting.append([{"v": "a"}, {"v": "b"}])
    assert (values(counting), mark(counting)) == ({"a": 10, "b": 15}, 15)
    counting.append(pa.table({"v": pa.array([], pa.string())}))
    counting.update({"v": "'B'"}, where="v = 'b'")
    merge = counting.merge([{"v": "a"}, {"v": "c"}, {"v": "d"}], "target.v = source.v")
    merge.when_matched_delete().when_not_matched_insert({"v": "source.v"}).execute()
    assert (values(counting), mark(counting)) == ({"B": 15, "c": 20, "d": 25}, 25)
    counting.overwrite([{"v": "C"}], where="v in ('c', 'C')")
    assert (values(counting), mark(counting)) == ({"B": 15, "C": 30, "d": 25}, 30)
    counting.optimize()
    counting.delete("v = 'C'")
    counting.overwrite([{"v": "z"}])
    assert (values(counting), mark(counting)) == ({"z": 35}, 35)
    assert counting.audit(data=True).is_clean


def test_many_rows_of_many_batches_and_partitions_get_different_values(tmp_path: Path):
    table = dv.Table(tmp_path / "t")
    table.create([*IDENTITIES, "p bigint", "twice bigint GENERATED ALWAYS AS (id * 2)"], partition_by="p")
    rows = pa.table(
        {"v": [str(number) for number in range(5000)], "p": [number % 3 for number in range(5000)]}
    )
    table.append(pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=700)))
    assert values(table) == {str(number): 10 + 5 * number for number in range(5000)}
    assert all(row["twice"] == 2 * row["id"] for row in table)
    assert mark(table) == 10 + 5 * 4999


def test_values_that_are_given_do_not_move_the_high_water_mark(tmp_path: Path):
    table = dv.Table(tmp_path / "t")
    table.create(["id bigint GENERATED BY DEFAULT AS IDENTITY (INCREMENT BY -1)", "v string"])
    # As Delta on Spark: -1 is assigned although the second row has it.
    table.append([{"v": "a", "id": 50}, {"v": "b", "id": -1}, {"v": "c", "id": None}])
    assert (values(table), mark(table)) == ({"a": 50, "b": -1, "c": None}, None)
    table.append([{"v": "d"}, {"v": "e"}])
    merge = table.merge([{"v": "f", "n": 7}, {"v": "g", "n": 8}], "target.v = source.v")
    merge = merge.when_not_matched_insert({"v": "source.v", "id": "source.n"}, where="source.n = 7")
    merge.when_not_matched_insert({"v": "source.v"}).execute()
    found = values(table)
    assert (found["d"], found["e"], found["f"]) == (1, 0, 7)
    assert found["g"] < 0
    assert mark(table) <= found["g"]


def test_rejected_rows_leave_gaps(counting: dv.Table, tmp_path: Path):
    dv.add_columns(counting, {"j": "variant"})
    rows = pa.table({"v": ["a", "b", "c"], "j": ["1", "{", "2"]})
    options = dv.JsonOptions(on_invalid="reject", rejects=tmp_path / "rejects")
    counting.append(rows, variant_columns=["j"], json=options)
    assert (values(counting), mark(counting)) == ({"a": 10, "c": 20}, 20)


def test_concurrent_appends_conflict(counting: dv.Table):
    """The same values would be assigned by both."""
    store = commit_first(counting, lambda: counting.append([{"v": "first"}]))
    with pytest.raises(dv.CommitConflictError):
        dv.write_table(store, [{"v": "second"}], mode="append")
    assert values(counting) == {"first": 10}
    assert len(list(Path(counting.table_uri).glob("*.parquet"))) == 1


@pytest.mark.parametrize("operation", ["delete", "optimize", "update"])
def test_a_concurrent_append_does_not_conflict_with_an_operation_on_other_rows(
    counting: dv.Table, operation: str
):
    dv.set_properties(counting, {"delta.isolationLevel": "WriteSerializable"})
    counting.append([{"v": "a"}])
    counting.append([{"v": "b"}])
    store = commit_first(counting, lambda: counting.append([{"v": "c"}]))
    {
        "delete": lambda: dv.delete(store, "v = 'a'"),
        "update": lambda: dv.update(store, {"v": "'A'"}, where="v = 'a'"),
        "optimize": lambda: dv.optimize(store),
    }[operation]()
    expected = {"b": 15, "c": 20, **{"delete": {}, "update": {"A": 10}, "optimize": {"a": 10}}[operation]}
    assert (values(counting), mark(counting)) == (expected, 20)
    [append, *_] = [entry for entry in counting.history() if entry.operation == "WRITE"]
    commit = Path(counting.table_uri) / "_delta_log" / f"{append.version:020}.json"
    # Delta on Spark writes this tag, and ignores the metadata of commits that have it.
    info = json.loads(commit.read_text().splitlines()[0])["commitInfo"]
    assert info["tags"] == {"delta.identity.schemaUpdate": "true"}
    assert counting.audit(data=True).is_clean


def test_a_concurrent_change_of_the_schema_conflicts(counting: dv.Table):
    counting.append([{"v": "a"}])
    for write in (
        lambda table: dv.delete(table, "v = 'a'"),
        lambda table: dv.write_table(table, [{"v": "b"}], mode="append"),
    ):
        store = commit_first(counting, lambda: dv.set_properties(counting, {"owner": str(counting.version)}))
        with pytest.raises(CommitConflictError, match="changed the metadata"):
            write(store)
    store = commit_first(counting, lambda: counting.append([{"v": "c"}]))
    with pytest.raises(CommitConflictError, match="changed the metadata"):
        dv.set_properties(store, {"owner": "us"})
    assert mark(counting) == 15


def test_rows_for_a_table_that_another_writer_creates_get_values(tmp_path: Path):
    table = dv.Table(tmp_path / "t")

    def create() -> None:
        table.create(IDENTITIES)
        table.append([{"v": "first"}])

    dv.write_table(commit_first(table, create), [{"v": "second"}, {"v": "third"}], mode="append")
    assert (values(table), mark(table)) == ({"first": 10, "second": 15, "third": 20}, 20)


def test_values_beyond_bigint_are_an_error(tmp_path: Path):
    table = dv.Table(tmp_path / "t")
    table.create([f"id bigint GENERATED ALWAYS AS IDENTITY (START WITH {(1 << 63) - 2})", "v string"])
    table.append([{"v": "a"}, {"v": "b"}])
    with pytest.raises(ConstraintViolationError, match="bigint has no value 9223372036854775808"):
        table.append([{"v": "c"}])
    assert values(table) == {"a": (1 << 63) - 2, "b": (1 << 63) - 1}


def test_a_renamed_and_a_dropped_identity_column(tmp_path: Path):
    table = dv.Table(tmp_path / "t")
    table.create(IDENTITIES, configuration={"delta.columnMapping.mode": "name"})
    table.append([{"v": "a"}])
    dv.rename_column(table, "id", "number")
    table.append([{"v": "b"}])
    assert {row["v"]: row["number"] for row in table} == {"a": 10, "b": 15}
    dv.drop_column(table, "number")
    table.append([{"v": "c"}])
    assert sorted(row["v"] for row in table) == ["a", "b", "c"]


# Constraints of deltalake, which quotes names


QUOTED = pa.table({"Name": ["Ada"], "a-b": [1], "n": [1], "S": [{"X": 1}]})
VIOLATED = pa.table({"Name": [""], "a-b": [-1], "n": [-1], "S": [{"X": -1}]})


@pytest.mark.parametrize(
    "check",
    [
        "\"Name\" <> ''",
        "\"Name\" LIKE 'A%'",
        "\"Name\" IN ('Ada', 'Bob')",
        '"a-b" > 0',
        '"a-b" BETWEEN 0 AND 5 AND n > 0',
        '"Name" IS NOT NULL AND "Name" != \'\'',
    ],
)
def test_constraints_that_deltalake_stores_with_quoted_names_are_checked(tmp_path: Path, check: str):
    table = str(tmp_path / "t")
    write_deltalake(table, QUOTED)
    DeltaTable(table).alter.add_constraint({"c": check})
    assert '"' in DeltaTable(table).metadata().configuration["delta.constraints.c"]
    with pytest.raises(DeltaError):
        write_deltalake(table, VIOLATED, mode="append")
    for write in (
        lambda: dv.write_table(table, VIOLATED, mode="append"),
        lambda: dv.update(table, {"`Name`": "''", "`a-b`": "-1"}),
        lambda: dv.merge(table, VIOLATED, on="false").when_not_matched_insert_all().execute(),
    ):
        with pytest.raises(ConstraintViolationError, match="the CHECK constraint c"):
            write()
    dv.write_table(table, QUOTED, mode="append")
    assert read_rows(table) == QUOTED.to_pylist() * 2
    dv.set_properties(table, {"delta.columnMapping.mode": "name"})
    with pytest.raises(SchemaError, match="the CHECK constraint c"):
        dv.rename_column(table, "`Name`" if "Name" in check else "`a-b`", "other")


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ("\"nAme\" != ''", "reads no column"),
        ("'Name' != ''", "reads no column"),
        ("1 = 1", "reads no column"),
        ('"Name" != "none"', "only some of"),
    ],
)
def test_a_constraint_that_may_not_mean_a_column_rejects_every_write(
    tmp_path: Path, check: str, message: str
):
    table = str(tmp_path / "t")
    dv.write_table(table, QUOTED, configuration={"delta.constraints.c": "n > 0"})
    Table(Path(table)).edit(
        "metaData", lambda each: each["configuration"].update({"delta.constraints.c": check})
    )
    with pytest.raises(UnsupportedFeatureError, match=message):
        dv.write_table(table, QUOTED, mode="append")
    with pytest.raises(ExpressionError, match=message):
        dv.add_constraint(table, "d", check)
    dv.drop_constraint(table, "c")
    dv.write_table(table, QUOTED, mode="append")


def test_text_of_spark_in_double_quotes_stays_text(tmp_path: Path):
    table = str(tmp_path / "t")
    checks = {"a": '`Name` in ("Ada", "Bob")', "b": '-- "Name"\n `Name` != \'a "Name" b\''}
    configuration = {f"delta.constraints.{name}": text for name, text in checks.items()}
    dv.write_table(table, QUOTED, configuration=configuration)
    with pytest.raises(ConstraintViolationError, match="the CHECK constraint a"):
        dv.write_table(table, VIOLATED, mode="append")


def test_generated_columns_and_invariants_may_quote_names(tmp_path: Path):
    text = json.dumps({"expression": {"expression": '"a-b" > 0'}})
    metadata = {"n": {"delta.generationExpression": '"a-b" + 1'}, "Name": {"delta.invariants": text}}
    table = planted(tmp_path / "t", QUOTED, metadata)
    dv.write_table(table, QUOTED.drop_columns(["n"]), mode="append")
    assert read_rows(table)[0]["n"] == 2
    with raises_at(ConstraintViolationError, "invariant", column="Name"):
        dv.write_table(table, VIOLATED.drop_columns(["n"]), mode="append")


# Empty values of partition columns


@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.large_string(), pa.string_view()])
@pytest.mark.parametrize(
    ("rule", "error"),
    [("not null", SchemaError), ("check", ConstraintViolationError), ("invariant", ConstraintViolationError)],
)
def test_an_empty_partition_value_is_the_null_that_will_be_read(
    tmp_path: Path, kind: pa.DataType, rule: str, error: type[dv.DeltaVariantError]
):
    invariant = json.dumps({"expression": {"expression": "k is not null"}})
    metadata = {"not null": {"not null": True}, "invariant": {"delta.invariants": invariant}}.get(rule, {})
    configuration = {"delta.constraints.c": "k is not null"} if rule == "check" else {}
    rows = pa.table({"k": pa.array(["a"], kind), "n": [1]})
    table = planted(tmp_path / "t", rows, {"k": metadata}, partition_by="k", configuration=configuration)
    dv.write_table(table, rows, mode="append")
    empty = pa.table({"k": pa.array([""], kind), "n": [2]})
    for write in (
        lambda: dv.write_table(table, empty, mode="append"),
        lambda: dv.write_table(table, empty, mode="overwrite"),
        lambda: dv.update(table, {"k": "''" if kind != pa.binary() else "cast('' as binary)"}),
        lambda: dv.merge(table, empty, on="false").when_not_matched_insert_all().execute(),
        lambda: dv.merge(table, empty, on="target.n = source.n - 1").when_matched_update_all().execute(),
    ):
        with pytest.raises(error):
            write()
    assert dv.load_snapshot(table).version == 1


def test_generated_columns_and_predicates_see_an_empty_partition_value_as_null(tmp_path: Path):
    rows = pa.table({"k": [""], "g": pa.array([None], pa.string()), "n": [1]})
    metadata = {"g": {"delta.generationExpression": "coalesce(k, 'none')"}}
    table = planted(tmp_path / "t", rows, metadata, partition_by=["k"])
    dv.write_table(table, rows.drop_columns(["g"]), mode="append")
    assert read_rows(table) == [{"k": None, "g": "none", "n": 1}]
    with pytest.raises(dv.errors.PredicateViolationError):
        dv.write_table(table, rows.drop_columns(["g"]), mode="overwrite", where="k = ''")
    dv.update(table, {"k": "''", "n": "2"})
    assert read_rows(table) == [{"k": None, "g": "none", "n": 2}]


@pytest.mark.parametrize("kind", [pa.string(), pa.binary()])
def test_rows_with_an_empty_generated_partition_value_can_be_changed(tmp_path: Path, kind: pa.DataType):
    rows = pa.table({"t": ["", "a"], "g": pa.array(["", "a"], kind), "n": [1, 2]})
    metadata = {"g": {"delta.generationExpression": "t"}}
    table = planted(tmp_path / "t", rows, metadata, partition_by=["g"])
    dv.write_table(table, rows.drop_columns(["g"]), mode="append")
    dv.write_table(table, rows, mode="append")
    assert dv.update(table, {"n": "n + 10"}).rows_updated == 4
    merge = dv.merge(table, pa.table({"t": [""]}), "target.t = source.t")
    assert merge.when_matched_update({"n": "n + 10"}).execute().rows_updated == 2
    assert sorted(row["n"] for row in read_rows(table, "n")) == [12, 12, 21, 21]
    assert not dv.audit_table(table, data=True).findings
    with pytest.raises(ConstraintViolationError):
        dv.write_table(table, rows.set_column(0, "t", pa.array(["b", "a"])), mode="append")


def test_an_empty_value_of_another_column_stays_empty(tmp_path: Path):
    table = str(tmp_path / "t")
    dv.write_table(table, pa.table({"k": ["a"], "t": [""]}), partition_by="k")
    assert read_rows(table) == [{"k": "a", "t": ""}]


# VARCHAR and CHAR of Spark: `tests/interop/test_spark_row_rules.py` compares the accepted rows with Spark's


WIDE = pa.table(
    {
        "c": pa.array(["ab"], pa.string()),
        "s": pa.array([{"v": "abc", "l": ["x"]}], pa.struct({"v": pa.string(), "l": pa.list_(pa.string())})),
        "m": pa.array([[("k", "v")]], pa.map_(pa.string(), pa.string())),
        "plain": ["unlimited"],
    }
)
WIDTHS = {
    "c": "varchar(3)",
    "s": "struct<v:varchar(3),l:array<char(2)>>",
    "m": "map<varchar(2),char(2)>",
}
TOO_WIDE: dict[str, tuple[str, list[Any]]] = {
    "c": ("c", ["abc", None, "äöüß"]),
    "s.v": ("s", [{"v": "abc", "l": []}, None, {"v": "abcd", "l": []}]),
    "s.l.element": ("s", [{"v": "", "l": ["ab", None]}, {"v": "", "l": None}, {"v": "", "l": ["x", "abc"]}]),
    "m.key": ("m", [[], [("ab", "x"), ("b", "x")], [("abc", "x")]]),
    "m.value": ("m", [[("a", "xy"), ("b", None)], None, [("a", "x"), ("b", "xyz")]]),
}


@pytest.fixture
def limited(tmp_path: Path) -> str:
    """Return a table of one row with widths as Spark stores them."""
    metadata = {name: {"__CHAR_VARCHAR_TYPE_STRING": text} for name, text in WIDTHS.items()}
    table = planted(tmp_path / "t", WIDE, metadata)
    dv.write_table(table, WIDE, mode="append")
    return table


@pytest.mark.parametrize("path", TOO_WIDE)
def test_text_that_is_too_long_is_rejected_with_its_row_and_width(limited: str, path: str):
    column, values = TOO_WIDE[path]
    rows = pa.table({column: pa.array(values, WIDE.schema.field(column).type), "plain": ["x", "y", "z"]})
    with raises_at(ConstraintViolationError, r"char\(\d\).*has \d characters", column=path, row=2):
        dv.write_table(limited, rows, mode="append", schema_mode="merge")
    dv.write_table(limited, rows.slice(0, 2), mode="append", schema_mode="merge")
    assert dv.read_table(limited).count() == 3


def test_no_write_stores_text_that_is_too_long(limited: str):
    long = WIDE.set_column(0, "c", pa.array(["toolong"]))
    for write in (
        lambda: dv.write_table(limited, long, mode="append"),
        lambda: dv.write_table(limited, long, mode="overwrite"),
        lambda: dv.update(limited, {"c": "plain"}),
        lambda: (
            dv.merge(limited, long, on="target.plain = source.plain")
            .when_matched_update({"c": "source.c"})
            .execute()
        ),
        lambda: dv.merge(limited, long, on="false").when_not_matched_insert_all().execute(),
    ):
        with raises_at(ConstraintViolationError, "'(toolong|unlimited)' has", column="c"):
            write()
    assert dv.load_snapshot(limited).version == 1


def test_defaults_are_checked_too_and_a_field_has_a_width_of_its_own(tmp_path: Path):
    metadata = {"d": {"__CHAR_VARCHAR_TYPE_STRING": "char(2)", "CURRENT_DEFAULT": "'abc'"}}
    table = planted(tmp_path / "t", pa.table({"d": ["x"], "n": [1]}), metadata)
    with raises_at(ConstraintViolationError, r"char\(2\) of the column d: 'abc'", column="d"):
        dv.write_table(table, [{"n": 1}], mode="append")
    nested = planted(tmp_path / "n", pa.table({"s": [{"v": "x"}]}), {})

    def limit(document: dict[str, Any]) -> None:
        document["fields"][0]["type"]["fields"][0]["metadata"] = {"__CHAR_VARCHAR_TYPE_STRING": "varchar(1)"}

    Table(Path(nested)).edit_schema(limit)
    with raises_at(ConstraintViolationError, column="s.v"):
        dv.write_table(nested, [{"s": {"v": "xy"}}], mode="append")


def test_a_renamed_field_keeps_its_width_under_the_old_name_as_in_spark(limited: str):
    dv.set_properties(limited, {"delta.columnMapping.mode": "name"})
    dv.rename_column(limited, "s.v", "renamed")
    dv.rename_column(limited, "c", "code")
    for row, column in (({"s": {"renamed": "long", "l": []}}, "s.renamed"), ({"code": "long"}, "code")):
        with raises_at(ConstraintViolationError, column=column):
            dv.write_table(limited, pa.Table.from_pylist([{"plain": "", **row}]), mode="append")


def test_types_of_fields_that_were_dropped_or_cannot_be_parsed(tmp_path: Path):
    rows = pa.table({"s": [{"v": "x", "w": "long"}]})
    types = "struct<old:array<struct<x:char(1),`y:z`:decimal(10,2)>>,v:varchar(1),d:decimal(3,1)>"
    table = planted(tmp_path / "t", rows, {"s": {"__CHAR_VARCHAR_TYPE_STRING": types}})
    dv.write_table(table, rows, mode="append")
    with raises_at(ConstraintViolationError, column="s.v"):
        dv.write_table(table, pa.table({"s": [{"v": "xy", "w": ""}]}), mode="append")
    broken = planted(tmp_path / "b", rows, {"s": {"__CHAR_VARCHAR_TYPE_STRING": "struct<v:varchar(1)"}})
    with raises_at(UnsupportedFeatureError, "cannot parse the type", column="s"):
        dv.write_table(broken, rows, mode="append")
