"""Wrong arguments raise an error before any other work."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.errors import raises_at

import delta_variant as dv
from delta_variant._checks import check_text, to_integer
from delta_variant.errors import ArgumentTypeError, ExpressionError, SchemaError, StoreError
from delta_variant.storage.options import parse_options

HALF = "\ud800"
SOURCE = pa.table({"k": [1]})


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Return a table with column mapping."""
    data = pa.table({"i": [1, 2], "s": ["a", "b"]})
    dv.write_table(tmp_path / "t", data, configuration={"delta.columnMapping.mode": "name"})
    return str(tmp_path / "t")


@pytest.mark.parametrize("value", [0, 7, np.int64(7), 2**63 - 1])
def test_a_whole_number_is_an_int_whoever_made_it(value: Any):
    assert to_integer("limit", value, 0) == value
    assert type(to_integer("limit", value, 0)) is int


@pytest.mark.parametrize("value", ["7", 7.0, None, True, -1, 2**63])
def test_a_value_that_is_not_an_integer_is_rejected(value: Any):
    with pytest.raises(ValueError, match=r"limit: expected an integer from 0 to 2\*\*63 - 1"):
        to_integer("limit", value, 0)


def test_text_has_whole_characters():
    check_text("name", "Ä😀")
    with pytest.raises(ValueError, match=r"unpaired surrogate"):
        check_text("name", HALF)


NO_TABLE = "expected a path, a URI, a Table or a deltalake.DeltaTable, got"


@pytest.mark.parametrize("value", [None, 5, b"t", ["t"], HALF])
@pytest.mark.parametrize(
    "call",
    [
        dv.read_table,
        dv.load_snapshot,
        dv.delete_all,
        lambda table: dv.delete(table, "i = 1"),
        dv.audit_table,
        dv.vacuum,
        lambda table: dv.update(table, {"i": "1"}),
        lambda table: dv.write_table(table, pa.table({"i": [1]})),
    ],
)
def test_a_wrong_table_argument_is_rejected_with_the_accepted_types(
    call: Callable[[Any], object], value: Any
):
    with pytest.raises(ValueError, match=NO_TABLE):
        call(value)


def append(table: str, **options: Any) -> None:
    """Append rows to a table with invalid options."""
    dv.write_table(table, pa.table({"i": [3], "s": ["c"]}), mode="append", **options)


REFUSED: list[tuple[Callable[[Any], object], type[Exception], str]] = [
    (lambda t: dv.read_table(t, version="0"), ValueError, "version: expected an integer, got '0'"),
    (lambda t: dv.read_table(t, version=0.0), ValueError, "version: expected an integer, got 0.0"),
    (lambda t: dv.read_table(t, timestamp=date(2026, 1, 1)), ValueError, "expected a timezone-aware"),
    (
        lambda t: dv.read_changes(t, start=b"0"),
        ValueError,
        "start: expected a version, a timezone-aware datetime or an ISO 8601 string, got b'0'",
    ),
    (lambda t: dv.history(t, "1"), ValueError, "limit: expected an integer from 0 to .*, got '1'"),
    (lambda t: dv.read_table(t, where=f"s = '{HALF}'"), ExpressionError, "unpaired surrogate"),
    (lambda t: dv.read_table(t, columns={HALF: "i"}), ValueError, "a column name: "),
    (lambda t: dv.delete(t, f"s = '{HALF}'"), ExpressionError, "unpaired surrogate"),
    (lambda t: dv.update(t, {"s": f"'{HALF}'"}), ExpressionError, "unpaired surrogate"),
    (
        lambda t: dv.merge(t, SOURCE, "i = k", source_alias=5),
        ValueError,
        "source_alias: expected a string, got 5",
    ),
    (lambda t: dv.merge(t, SOURCE, "i = k", target_alias=HALF), ValueError, "unpaired surrogate"),
    (lambda t: dv.update(t, None), ValueError, "updates: expected a dict of .*, got None"),
    (lambda t: dv.rename_column(t, "s", HALF), ValueError, "new_name: .*unpaired surrogate"),
    (lambda t: dv.rename_column(t, "s", 5), ValueError, "new_name: expected a string, got 5"),
    (lambda t: dv.drop_column(t, None), ValueError, "column: expected a name or a tuple of names, got None"),
    (lambda t: dv.add_columns(t, {HALF: "int"}), ValueError, "unpaired surrogate"),
    (
        lambda t: dv.add_columns(t, {"x": 5}),
        ValueError,
        "type of 'x': expected SQL text or an Arrow type, got 5",
    ),
    (lambda t: dv.set_properties(t, {"x": HALF}), ValueError, "unpaired surrogate"),
    (lambda t: dv.set_properties(t, {5: "x"}), ValueError, "a property name: expected a string, got 5"),
    (lambda t: dv.unset_properties(t, [5]), ValueError, "an item of names: expected a string, got 5"),
    (lambda t: dv.add_constraint(t, "a", None), ValueError, "check: expected a string, got None"),
    (lambda t: dv.add_constraint(t, 5, "i > 0"), ValueError, "name: expected a string, got 5"),
    (lambda t: dv.add_constraint(t, HALF, "i > 0"), ValueError, "unpaired surrogate"),
    (
        lambda t: dv.repair_statistics(t, max_variant_stats_paths=-1),
        ValueError,
        "max_variant_stats_paths: expected an integer from 0 to .*, got -1",
    ),
    (
        lambda t: dv.read_table(t, columns=5),
        TypeError,
        "columns: expected a list of SQL expressions, or a dict .*, got 5",
    ),
    (
        lambda t: dv.read_table(dv.Table(t, ["x"])),
        ValueError,
        r"storage_options: expected a dict",
    ),
    (lambda t: dv.add_columns(t, None), ValueError, "columns: expected a mapping .*, got None"),
    (lambda t: dv.add_columns(t, ["x"]), ValueError, r"columns: expected a mapping .*, got \['x'\]"),
    (lambda t: dv.unset_properties(t, 5), ValueError, "names: expected a list of names, got 5"),
    (lambda t: dv.vacuum(t, "168"), ValueError, "retention_hours: expected a finite number .*, got '168'"),
    (lambda t: dv.vacuum(t, True), ValueError, "retention_hours: expected a finite number .*, got True"),
    (lambda t: dv.optimize(t, sort_by=5), ValueError, "sort_by: expected a list of expressions, got 5"),
    (
        lambda t: dv.optimize(t, files=dv.FileOptions(target_file_size="1")),
        ValueError,
        "target_file_size: expected a number",
    ),
    (
        lambda t: append(t, files=dv.FileOptions(target_file_size=float("nan"))),
        ValueError,
        "target_file_size: expected a number",
    ),
    (
        lambda t: append(t, variant_columns="s"),
        ValueError,
        "variant_columns: expected a list of names, got 's'",
    ),
    (lambda t: append(t, variant_columns=5), ValueError, "variant_columns: expected a list of names, got 5"),
    (lambda t: append(t, partition_by=5), ValueError, "partition_by: expected a list of names, got 5"),
]


def merge(table: str) -> Any:
    return dv.merge(table, SOURCE, "target.i = source.k")


NOT_LISTS: list[Any] = [b"s", {"s": 1}, 5]
NOT_TEXTS: list[Any] = [b"s", {"s": 1}, 5, ["s"]]
NOT_MAPPINGS: list[Any] = ["s", b"s", ["s"], 5]
LISTS: list[tuple[str, Callable[[str, Any], object]]] = [
    ("columns", lambda t, value: dv.read_table(t, columns=value)),
    ("columns", lambda t, value: dv.read_changes(t, start=1, columns=value)),
    ("variant_columns", lambda t, value: append(t, variant_columns=value)),
    ("variant_columns", lambda t, value: dv.merge(t, SOURCE, "i = k", variant_columns=value)),
    ("except_cols", lambda t, value: merge(t).when_not_matched_insert_all(except_cols=value)),
    ("names", lambda t, value: dv.unset_properties(t, value)),
    ("files", lambda t, value: dv.audit_table(t, files=value)),
    ("files", lambda t, value: dv.repair_statistics(t, files=value)),
]
ONE_OR_MORE: list[tuple[str, Callable[[str, Any], object]]] = [
    ("partition_by", lambda t, value: append(t, partition_by=value)),
    ("sort_by", lambda t, value: dv.optimize(t, sort_by=value)),
]
WRONG_TYPES: list[tuple[Callable[[str, Any], object], list[Any]]] = [
    *((call, ["s", *NOT_LISTS] if name != "columns" else ["s", b"s", 5]) for name, call in LISTS),
    *((call, NOT_LISTS) for _, call in ONE_OR_MORE),
    (lambda t, value: dv.read_table(value), [b"t", {"t": 1}, 5, ["t"], None]),
    (lambda t, value: dv.read_table(t, where=value), NOT_TEXTS),
    (lambda t, value: dv.read_table(t, version=value), ["0", b"0", 0.5, True, [0]]),
    (lambda t, value: dv.read_table(t, timestamp=value), [b"2026", 5, date(2026, 1, 1)]),
    (lambda t, value: dv.history(t, value), ["1", b"1", [1]]),
    (lambda t, value: dv.restore(t, value), ["1", b"1", [1]]),
    (lambda t, value: dv.vacuum(t, value), ["1", b"1", [1], True]),
    (lambda t, value: dv.delete(t, value), [*NOT_TEXTS, None]),
    (lambda t, value: dv.update(t, value), [*NOT_MAPPINGS, None]),
    (lambda t, value: dv.update(t, {"i": value}), NOT_TEXTS),
    (lambda t, value: dv.merge(t, value, "i = k"), ["s", b"s", {"k": 1}, 5, [1], None, iter("s")]),
    (lambda t, value: dv.merge(t, SOURCE, value), [*NOT_TEXTS, None]),
    (lambda t, value: merge(t).when_matched_update(value), [*NOT_MAPPINGS, None]),
    (lambda t, value: merge(t).when_not_matched_insert(value), [*NOT_MAPPINGS, None]),
    (lambda t, value: merge(t).when_matched_delete(value), NOT_TEXTS),
    (lambda t, value: dv.optimize(t, value), NOT_TEXTS),
    (lambda t, value: dv.optimize(t, files=dv.FileOptions(target_file_size=value)), ["1", b"1", [1]]),
    (lambda t, value: dv.drop_column(t, value), [b"s", {"s": 1}, 5, {"s"}, None, [5]]),
    (lambda t, value: dv.rename_column(t, value, "z"), [b"s", {"s": 1}, 5, None]),
    (lambda t, value: dv.add_columns(t, value), ["s", b"s", 5, ["x"], None]),
    (lambda t, value: dv.change_type(t, "i", value), [b"int", 5, {"i": 1}, None]),
    (lambda t, value: dv.set_properties(t, value), [*NOT_MAPPINGS, None]),
    (lambda t, value: dv.set_properties(t, {"x": value}), NOT_TEXTS),
    (lambda t, value: dv.add_constraint(t, "c", value), NOT_TEXTS),
    (lambda t, value: dv.drop_constraint(t, value), NOT_TEXTS),
    (lambda t, value: dv.load_snapshot(dv.Table(t, value)), ["s", b"s", ["s"], 5]),
    (lambda t, value: dv.load_snapshot(dv.Table(t, {"timeout": value})), NOT_TEXTS),
    (
        lambda t, value: dv.write_table(t, value, mode="append"),
        ["s", b"s", {"i": 1}, 5, [1], None, iter("s")],
    ),
    (lambda t, value: dv.write_table(t, SOURCE, mode=value), [b"append", 5, ["append"]]),
    (lambda t, value: append(t, files=dv.FileOptions(compression=value)), [b"zstd", 5]),
    (lambda t, value: append(t, shredding=value), [b"infer", 5, {"event": pa.int64()}]),
    (lambda t, value: append(t, configuration=value), ["s", b"s", ["s"], 5]),
    (
        lambda t, value: append(t, json=dv.JsonOptions(on_invalid="reject", rejects=value)),
        [b"r", 5, {"r": 1}, ["r"]],
    ),
    (
        lambda t, value: append(t, commit=dv.CommitOptions(txn=value)),
        ["s", b"s", {"s": 1}, 5, ("a", "1"), (5, 1)],
    ),
    (lambda t, value: dv.compute_stats(value), [b"x", {"x": 1}, 5, None]),
    (lambda t, value: dv.migrate_legacy(value, f"{t}-new"), [b"x", {"x": 1}, 5, None]),
    (lambda t, value: dv.migrate_legacy(t, value), [b"x", {"x": 1}, 5, None]),
    (lambda t, value: dv.read_json(value), [b"x", {"x": 1}, 5, None, iter("x"), [5]]),
]


@pytest.mark.parametrize(
    ("call", "value"), [(call, value) for call, values in WRONG_TYPES for value in values]
)
def test_an_argument_of_the_wrong_type_is_a_type_error(
    table: str, call: Callable[[str, Any], object], value: Any
):
    dv.set_properties(table, {"delta.enableChangeDataFeed": "true"})
    with pytest.raises(ArgumentTypeError) as raised:
        call(table, value)
    # Callers that caught the ValueError or the library's own class still do.
    assert isinstance(raised.value, TypeError)
    assert isinstance(raised.value, ValueError)
    assert isinstance(raised.value, dv.DeltaVariantError)
    assert dv.load_snapshot(table).version == 1


VARIANTS = dv.parse_json(["1", "2"])
SCHEMA = dv.ShreddingSchema.of(pa.int64())
OF_ARRAYS: dict[str, Callable[[Any], object]] = {
    "parse_json": dv.parse_json,
    "to_json": dv.to_json,
    "shred": lambda values: dv.shred(values, SCHEMA),
    "unshred": dv.unshred,
    "infer_shredding_schema": dv.infer_shredding_schema,
    "variant_get": lambda values: dv.variant_get(values, "$"),
    "try_variant_get": lambda values: dv.try_variant_get(values, "$"),
}


@pytest.mark.parametrize("name", OF_ARRAYS)
@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ("12", "got str: pass a list of one value"),
        (b"12", "got bytes: pass a list of one value"),
        (bytearray(b"12"), "got bytearray: pass a list of one value"),
        (memoryview(b"12"), "got memoryview"),
        ({"a": 1}, "got dict"),
        ({"1"}, "got set"),
        (None, "NoneType"),
        (5, "int"),
        (pa.table({"a": ["1"]}), "got Table: pass one of its columns"),
        (pa.table({"a": ["1"]}).to_reader(), "got RecordBatchReader: pass one of its columns"),
        (["1", 2], "expected an array or a list of values"),
    ],
)
def test_a_single_value_is_not_an_array(name: str, values: Any, sentence: str):
    with pytest.raises(ArgumentTypeError, match=sentence):
        OF_ARRAYS[name](values)


@pytest.mark.parametrize(
    "values",
    [
        ["1", "2"],
        ("1", "2"),
        (text for text in ("1", "2")),
        np.array(["1", "2"]),
        pa.array(["1", "2"]),
        pa.chunked_array([["1"], ["2"]]),
        [b"1", b"2"],
    ],
)
def test_json_text_is_taken_from_every_sequence(values: Any):
    assert dv.to_json(dv.parse_json(values)).to_pylist() == ["1", "2"]


@pytest.mark.parametrize(
    "call",
    [
        lambda: dv.shred(VARIANTS, pa.int64()),
        lambda: dv.shred(VARIANTS, {"a": pa.int64()}),
        lambda: dv.shred(VARIANTS, None),
        lambda: dv.shred(VARIANTS, SCHEMA, numeric=5),
        lambda: dv.parse_json(["1"], floats=5),
        lambda: dv.parse_json(["1"], duplicate_keys=None),
        lambda: dv.to_json(VARIANTS, on_conflict=5),
        lambda: dv.unshred(VARIANTS, on_conflict=5),
        lambda: dv.variant_get(VARIANTS, 5),
        lambda: dv.variant_get(VARIANTS, b"$"),
        lambda: dv.variant_get(VARIANTS, ["$"]),
        lambda: dv.variant_get(VARIANTS, "$", 5),
        lambda: dv.try_variant_get(VARIANTS, "$", b"bigint"),
        lambda: dv.infer_shredding_schema(VARIANTS, max_leaves="5"),
        lambda: dv.infer_shredding_schema(VARIANTS, max_depth=5.0),
        lambda: dv.infer_shredding_schema([VARIANTS, "12"]),
        lambda: dv.Variant.from_json(5),
        lambda: dv.Variant.from_json(["1"]),
        lambda: dv.Variant.from_json(None),
        lambda: dv.Variant.from_json("1").get(5),
    ],
)
def test_functions_of_variants_name_an_argument_of_the_wrong_type(call: Callable[[], object]):
    with pytest.raises(ArgumentTypeError):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: dv.parse_json(["1"], floats="float"),
        lambda: dv.to_json(VARIANTS, on_conflict="value"),
        lambda: dv.shred(VARIANTS, SCHEMA, numeric="lax"),
        lambda: dv.infer_shredding_schema(VARIANTS, max_leaves=-1),
        lambda: dv.infer_shredding_schema(VARIANTS, max_depth=-1),
    ],
)
def test_functions_of_variants_name_a_value_out_of_range(call: Callable[[], object]):
    with pytest.raises(ValueError, match=r"expected (one of|an integer)") as raised:
        call()
    assert not isinstance(raised.value, TypeError)


def test_names_may_come_from_a_generator(table: str):
    dv.set_properties(table, {"a": "1", "b": "2", "c": "3"})
    dv.unset_properties(table, (name for name in ("a", "b")))
    configuration = dv.load_snapshot(table).properties
    assert [name for name in "abc" if name in configuration] == ["c"]


def test_columns_left_out_of_an_insert_are_whole_names(tmp_path: Path):
    dv.write_table(tmp_path / "t", pa.table({"i": [1], "id": [1]}))
    source = pa.table({"i": [2], "id": [3]})
    clause = dv.merge(tmp_path / "t", source, "target.i = source.i")
    clause.when_not_matched_insert_all(except_cols=["id"]).execute()
    rows = dv.read_table(tmp_path / "t", where="i = 2").to_table().to_pylist()
    assert rows == [{"i": 2, "id": None}]


@pytest.mark.parametrize(("call", "error", "sentence"), REFUSED)
def test_a_wrong_argument_is_rejected_without_a_commit(
    table: str, call: Callable[[Any], object], error: type[Exception], sentence: str
):
    with pytest.raises(error, match=sentence):
        call(table)
    assert dv.load_snapshot(table).version == 0


def test_a_negative_number_of_paths_is_rejected(table: str):
    (file,) = Path(table).rglob("*.parquet")
    with pytest.raises(
        ValueError, match=r"max_variant_stats_paths: expected an integer from 0 to .*, got -1"
    ):
        dv.compute_stats(file, max_variant_stats_paths=-1)


@pytest.mark.parametrize("source", [io.StringIO("1\n"), b"1\n", bytearray(b"1"), None, 5, [b"1"]])
def test_a_source_of_json_is_a_path_or_a_binary_file(source: Any):
    with pytest.raises(TypeError, match=r"source: expected a path, a URI, a glob"):
        dv.read_json(source)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"max_value_bytes": -1}, "max_value_bytes: expected an integer from 0 to .*, got -1"),
        ({"format": "csv"}, "format: expected one of 'auto', 'lines', 'array', 'documents', got 'csv'"),
        ({"column": 5}, "column: expected a string, got 5"),
    ],
)
def test_invalid_json_options_are_rejected_before_a_read(options: dict[str, Any], sentence: str):
    with pytest.raises(ValueError, match=sentence):
        dv.read_json(io.BytesIO(b"1\n"), **options)


@pytest.mark.parametrize("spec", [5, {"a": []}, [pa.int64(), pa.int64()]])
def test_an_invalid_shredding_spec_is_rejected_with_the_accepted_types(spec: Any):
    with pytest.raises(TypeError, match="expected a SQL type such as 'bigint', an Arrow type"):
        dv.ShreddingSchema.of(spec)


@pytest.mark.parametrize("name", ["variant", "decimal(39,0)", "decimal(4,5)", "decimal(0,0)", "BIGINT", "a"])
def test_an_unknown_type_of_a_shredding_spec_is_rejected_with_those_that_exist(name: str):
    with pytest.raises(ValueError, match=r"expected one of 'tinyint', .*'decimal\(9,2\)', got"):
        dv.ShreddingSchema.of({"path": [name]})


def test_a_shredding_spec_has_types_of_sql_or_arrow():
    spec: Any = {"id": "bigint", "price": "decimal(9, 2)", "at": "timestamp", "days": ["date"], "note": None}
    arrow = {
        "id": pa.int64(),
        "price": pa.decimal128(9, 2),
        "at": pa.timestamp("us", "UTC"),
        "days": [pa.date32()],
        "note": None,
    }
    assert dv.ShreddingSchema.of(spec) == dv.ShreddingSchema.of(arrow)


def test_a_storage_option_that_is_not_text_is_rejected_without_its_value():
    with pytest.raises(TypeError, match=r"password: expected a string, got a value of type bytes$"):
        parse_options({"password": b"secret"})  # type: ignore[dict-item]


@pytest.mark.parametrize("retries", ["-1", "99999999999999999999"])
def test_an_invalid_number_of_retries_is_rejected(retries: str):
    with pytest.raises(StoreError, match="invalid value"):
        parse_options({"max_retries": retries})


def test_the_last_column_is_not_dropped(tmp_path: Path):
    configuration = {"delta.columnMapping.mode": "name"}
    dv.write_table(tmp_path / "t", pa.table({"p": [1]}), configuration=configuration)
    with raises_at(SchemaError, "the only column", column="p"):
        dv.drop_column(tmp_path / "t", "p")


def test_a_constraint_is_stored_without_the_end_of_the_statement(table: str):
    dv.add_constraint(table, "positive", "i > 0; ")
    assert dv.load_snapshot(table).properties["delta.constraints.positive"] == "i > 0"


def test_text_and_numbers_of_numpy_are_written_as_any_other(tmp_path: Path):
    x, one = np.str_("x"), np.int64(1)
    dv.write_table(
        tmp_path / "t",
        pa.table({"i": [1]}),
        name=x,
        configuration={x: x},
        commit=dv.CommitOptions(txn=(x, one)),
    )
    dv.set_properties(tmp_path / "t", {"team": np.str_("us")})
    dv.delete(tmp_path / "t", np.str_("i = 1"))
    (file,) = (tmp_path / "t").glob("*.parquet")
    os.utime(file, (1, 1))
    dv.vacuum(tmp_path / "t", np.float64(0), dry_run=False, enforce_retention_duration=False)
    snapshot = dv.load_snapshot(tmp_path / "t", one)
    assert (snapshot.metadata.name, snapshot.properties) == ("x", {"x": "x", "team": "us"})
    assert snapshot.txns["x"].version == 1
    predicates = [
        entry.commit_info["operationParameters"].get("predicate") for entry in dv.history(file.parent)
    ]
    assert predicates.count('["i = 1"]') == 1


def test_a_retention_beyond_all_time_keeps_every_file(table: str):
    dv.delete_all(table)
    assert dv.vacuum(table, 1e300).files == ()


def test_an_overwrite_without_a_column_that_a_constraint_reads_names_both(table: str):
    dv.add_constraint(table, "positive", "i > 0")
    with raises_at(SchemaError, r"positive .* add it, or remove what reads it first", column="i"):
        dv.write_table(table, pa.table({"s": ["c"]}), mode="overwrite", schema_mode="overwrite")
    dv.drop_constraint(table, "positive")
    dv.write_table(table, pa.table({"s": ["c"]}), mode="overwrite", schema_mode="overwrite")
    assert dv.load_snapshot(table).schema.fields[0].name == "s"
