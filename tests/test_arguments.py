"""Wrong arguments are a sentence, and nothing is done."""

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

import delta_variant as dv
from delta_variant.arguments import check_text, whole_number
from delta_variant.errors import ExpressionError, SchemaError, StoreError
from delta_variant.storage_options import sort_options

HALF = "\ud800"
SOURCE = pa.table({"k": [1]})


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Return a table that maps its columns."""
    data = pa.table({"i": [1, 2], "s": ["a", "b"]})
    dv.write_table(tmp_path / "t", data, configuration={"delta.columnMapping.mode": "name"})
    return str(tmp_path / "t")


@pytest.mark.parametrize("value", [0, 7, np.int64(7), 2**63 - 1])
def test_a_whole_number_is_an_int_whoever_made_it(value: Any):
    assert whole_number("limit", value, 0) == value
    assert type(whole_number("limit", value, 0)) is int


@pytest.mark.parametrize("value", ["7", 7.0, None, True, -1, 2**63])
def test_what_is_no_whole_number_is_refused(value: Any):
    with pytest.raises(ValueError, match=r"limit is .*: give a whole number from 0 to 2\*\*63 - 1"):
        whole_number("limit", value, 0)


def test_text_has_whole_characters():
    check_text("name", "Ä😀")
    with pytest.raises(ValueError, match=r"half of a surrogate pair is no character"):
        check_text("name", HALF)


NO_TABLE = "a table is a path, a URI or a deltalake.DeltaTable, and not"


@pytest.mark.parametrize("value", [None, 5, b"t", ["t"], HALF])
@pytest.mark.parametrize(
    "call",
    [
        dv.read_table,
        dv.load_snapshot,
        dv.delete,
        dv.audit_table,
        dv.vacuum,
        lambda table: dv.update(table, {"i": "1"}),
        lambda table: dv.write_table(table, pa.table({"i": [1]})),
    ],
)
def test_what_is_no_table_is_told_what_one_is(call: Callable[[Any], object], value: Any):
    with pytest.raises(ValueError, match=NO_TABLE):
        call(value)


def append(table: str, **options: Any) -> None:
    """Append rows to a table with options that are wrong."""
    dv.write_table(table, pa.table({"i": [3], "s": ["c"]}), mode="append", **options)


REFUSED: list[tuple[Callable[[Any], object], type[Exception], str]] = [
    (lambda t: dv.read_table(t, version="0"), ValueError, "version is '0': give a whole number"),
    (lambda t: dv.read_table(t, version=0.0), ValueError, "version is 0.0: give a whole number"),
    (lambda t: dv.read_table(t, timestamp=date(2026, 1, 1)), ValueError, "no datetime that knows its time"),
    (lambda t: dv.read_changes(t, starting_version="0"), ValueError, "starting_version is '0'"),
    (lambda t: dv.history(t, "1"), ValueError, "limit is '1'"),
    (lambda t: dv.read_table(t, where=f"s = '{HALF}'"), ExpressionError, "half of a surrogate pair"),
    (lambda t: dv.read_table(t, columns={HALF: "i"}), ValueError, "the name of a column is"),
    (lambda t: dv.delete(t, f"s = '{HALF}'"), ExpressionError, "half of a surrogate pair"),
    (lambda t: dv.update(t, {"s": f"'{HALF}'"}), ExpressionError, "half of a surrogate pair"),
    (lambda t: dv.merge(t, SOURCE, "i = k", source_alias=5), ValueError, "source_alias is 5: give text"),
    (lambda t: dv.merge(t, SOURCE, "i = k", target_alias=HALF), ValueError, "half of a surrogate pair"),
    (lambda t: dv.update(t, None), ValueError, "updates is None: give a dict"),
    (lambda t: dv.rename_column(t, "s", HALF), ValueError, "new_name is .*half of a surrogate pair"),
    (lambda t: dv.rename_column(t, "s", 5), ValueError, "new_name is 5: give text"),
    (lambda t: dv.drop_column(t, None), ValueError, "a column is None: give its name"),
    (lambda t: dv.add_columns(t, {HALF: "int"}), ValueError, "half of a surrogate pair"),
    (lambda t: dv.add_columns(t, {"x": 5}), ValueError, "the type of x is 5: give SQL text"),
    (lambda t: dv.set_properties(t, {"x": HALF}), ValueError, "half of a surrogate pair"),
    (lambda t: dv.set_properties(t, {5: "x"}), ValueError, "the name of a property is 5"),
    (lambda t: dv.unset_properties(t, [5]), ValueError, "the name of a property is 5"),
    (lambda t: dv.add_constraint(t, "a", None), ValueError, "check is None: give text"),
    (lambda t: dv.add_constraint(t, 5, "i > 0"), ValueError, "name is 5: give text"),
    (lambda t: dv.add_constraint(t, HALF, "i > 0"), ValueError, "half of a surrogate pair"),
    (lambda t: dv.repair_table(t, max_variant_stats_paths=-1), ValueError, "max_variant_stats_paths is -1"),
    (lambda t: dv.read_table(t, columns=5), ExpressionError, "columns is 5: give a list of expressions"),
    (
        lambda t: dv.read_table(t, storage_options=["x"]),
        ValueError,
        r"storage_options is \['x'\]: give a dict",
    ),
    (lambda t: dv.add_columns(t, None), ValueError, "columns is None: give a dict of names to types"),
    (lambda t: dv.add_columns(t, ["x"]), ValueError, r"columns is \['x'\]: give a dict of names to types"),
    (lambda t: dv.unset_properties(t, 5), ValueError, "names is 5: give a list of names"),
    (lambda t: dv.vacuum(t, "168"), ValueError, "retention_hours is a number from 0, and not '168'"),
    (lambda t: dv.vacuum(t, True), ValueError, "retention_hours is a number from 0, and not True"),
    (lambda t: dv.optimize(t, sort_by=5), ValueError, "sort_by is 5: give a list of expressions"),
    (lambda t: dv.optimize(t, target_file_size="1"), ValueError, "target_file_size is a number of bytes"),
    (lambda t: append(t, target_file_size=float("nan")), ValueError, "target_file_size is a number of bytes"),
    (lambda t: append(t, variant_columns="s"), ValueError, "variant_columns is the text 's': give a list"),
    (lambda t: append(t, variant_columns=5), ValueError, "variant_columns is 5: give a list of names"),
    (lambda t: append(t, partition_by=5), ValueError, "partition_by is 5: give a list of names"),
]


@pytest.mark.parametrize(("call", "error", "sentence"), REFUSED)
def test_a_wrong_argument_is_refused_and_nothing_is_committed(
    table: str, call: Callable[[Any], object], error: type[Exception], sentence: str
):
    with pytest.raises(error, match=sentence):
        call(table)
    assert dv.load_snapshot(table).version == 0


def test_the_statistics_of_a_file_have_no_fewer_paths_than_none(table: str):
    (file,) = Path(table).rglob("*.parquet")
    with pytest.raises(ValueError, match="max_variant_stats_paths is -1"):
        dv.file_stats(file, max_variant_stats_paths=-1)


@pytest.mark.parametrize("source", [io.StringIO("1\n"), b"1\n", bytearray(b"1"), None, 5, [b"1"]])
def test_a_source_of_json_is_a_path_or_a_binary_file(source: Any):
    with pytest.raises(ValueError, match=r"a source is .*: give a path, a glob"):
        dv.read_json_lines(source)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"max_value_bytes": -1}, "max_value_bytes is -1"),
        ({"format": "csv"}, "format is one of 'auto', 'lines', 'array', and not 'csv'"),
        ({"column": 5}, "column is 5: give text"),
    ],
)
def test_options_of_json_are_refused_before_it_is_read(options: dict[str, Any], sentence: str):
    with pytest.raises(ValueError, match=sentence):
        dv.read_json_lines(io.BytesIO(b"1\n"), **options)


@pytest.mark.parametrize("spec", [{"a": "bigint"}, ["a"], "bigint", 5, {"a": []}, [pa.int64(), pa.int64()]])
def test_what_is_no_shredding_schema_is_told_what_one_is(spec: Any):
    with pytest.raises(ValueError, match=r"is no shredding schema: give an Arrow type such as pa\.int64"):
        dv.ShreddingSchema.of(spec)


def test_a_storage_option_that_is_no_text_is_refused_without_its_value():
    with pytest.raises(ValueError, match=r"^storage option password is of the type bytes: give text$"):
        sort_options({"password": b"secret"})  # type: ignore[dict-item]


@pytest.mark.parametrize("retries", ["-1", "99999999999999999999"])
def test_a_number_of_retries_that_there_cannot_be_is_refused(retries: str):
    with pytest.raises(StoreError, match="no value that is understood"):
        sort_options({"max_retries": retries})


def test_the_last_column_is_not_dropped(tmp_path: Path):
    configuration = {"delta.columnMapping.mode": "name"}
    dv.write_table(tmp_path / "t", pa.table({"p": [1]}), configuration=configuration)
    with pytest.raises(SchemaError, match=r"the column p is the only one of .*/t, which needs one"):
        dv.drop_column(tmp_path / "t", "p")


def test_a_constraint_is_stored_without_what_ends_a_statement(table: str):
    dv.add_constraint(table, "positive", "i > 0; ")
    assert dv.load_snapshot(table).configuration["delta.constraints.positive"] == "i > 0"


def test_text_and_numbers_of_numpy_are_written_as_any_other(tmp_path: Path):
    x, one = np.str_("x"), np.int64(1)
    dv.write_table(tmp_path / "t", pa.table({"i": [1]}), name=x, configuration={x: x}, txn=(x, one))
    dv.set_properties(tmp_path / "t", {"team": np.str_("us")})
    dv.delete(tmp_path / "t", np.str_("i = 1"))
    (file,) = (tmp_path / "t").glob("*.parquet")
    os.utime(file, (1, 1))
    dv.vacuum(tmp_path / "t", np.float64(0), dry_run=False, enforce_retention_duration=False)
    snapshot = dv.load_snapshot(tmp_path / "t", one)
    assert (snapshot.metadata.name, snapshot.configuration) == ("x", {"x": "x", "team": "us"})
    assert snapshot.txns["x"].version == 1
    predicates = [
        entry.commit_info["operationParameters"].get("predicate") for entry in dv.history(file.parent)
    ]
    assert predicates.count('["i = 1"]') == 1


def test_a_retention_beyond_all_time_keeps_every_file(table: str):
    dv.delete(table)
    assert dv.vacuum(table, 1e300).files == ()


def test_an_overwrite_without_a_column_that_a_constraint_reads_names_both(table: str):
    dv.add_constraint(table, "positive", "i > 0")
    with pytest.raises(
        SchemaError, match=r"positive of .* reads the column i, .*: drop the constraint first"
    ):
        dv.write_table(table, pa.table({"s": ["c"]}), mode="overwrite", schema_mode="overwrite")
    dv.drop_constraint(table, "positive")
    dv.write_table(table, pa.table({"s": ["c"]}), mode="overwrite", schema_mode="overwrite")
    assert dv.load_snapshot(table).schema.fields[0].name == "s"
