"""Type widening: the record in the schema, and reads of files of the old type."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.errors import raises_at
from support.planting import Table
from support.tables import read_ids

import delta_variant as dv
from delta_variant.errors import ProtocolError, SchemaError, UnsupportedFeatureError
from delta_variant.protocol.schema.evolution import is_widening
from delta_variant.protocol.types import PrimitiveType, fields_of

WIDENING = {"delta.enableTypeWidening": "true"}
FLOAT = float(np.float32(0.1))

# The columns of PROTOCOL.md, "Type Widening", with values at the ends of their types.
BEFORE: dict[str, Any] = {
    "byte_long": pa.array([-128, 127, None], pa.int8()),
    "short_integer": pa.array([-32768, 32767, 0], pa.int16()),
    "integer_double": pa.array([-(2**31), 2**31 - 1, 7], pa.int32()),
    "integer_decimal": pa.array([-(2**31), 2**31 - 1, 7], pa.int32()),
    "long_decimal": pa.array([-(2**63), 2**63 - 1, 7], pa.int64()),
    "float_double": pa.array([0.1, -2.25, None], pa.float32()),
    "date_timestamp": pa.array([date(1960, 5, 5), date(2024, 2, 29), None], pa.date32()),
    "decimal": pa.array([Decimal("-9999.99"), Decimal("1.25"), None], pa.decimal128(6, 2)),
    "elements": pa.array([[1, None], [], None], pa.list_(pa.int16())),
    "values": pa.array([[("a", date(2020, 1, 1))], [], None], pa.map_(pa.string(), pa.date32())),
    "s": pa.array([{"x": 0.1}, {"x": 2.0}, None], pa.struct([("x", pa.float32())])),
}
CHANGES = {
    "byte_long": "bigint",
    "short_integer": "int",
    "integer_double": "double",
    "integer_decimal": "decimal(12,2)",
    "long_decimal": "decimal(22,2)",
    "float_double": "double",
    "date_timestamp": "timestamp_ntz",
    "decimal": "decimal(10,4)",
    "elements.element": "bigint",
    "values.value": "timestamp_ntz",
    "s.x": "double",
}
AFTER: dict[str, list[Any]] = {
    "byte_long": [-128, 127, None],
    "short_integer": [-32768, 32767, 0],
    "integer_double": [-(2.0**31), 2.0**31 - 1, 7.0],
    "integer_decimal": [Decimal("-2147483648.00"), Decimal("2147483647.00"), Decimal("7.00")],
    "long_decimal": [Decimal(-(2**63)), Decimal(2**63 - 1), Decimal(7)],
    "float_double": [FLOAT, -2.25, None],
    "date_timestamp": [datetime(1960, 5, 5), datetime(2024, 2, 29), None],
    "decimal": [Decimal("-9999.9900"), Decimal("1.2500"), None],
    "elements": [[1, None], [], None],
    "values": [[("a", datetime(2020, 1, 1))], [], None],
    "s": [{"x": FLOAT}, {"x": 2.0}, None],
}


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Return a table with a column for each supported change."""
    uri = str(tmp_path / "t")
    dv.write_table(uri, pa.table({"id": [0, 1, 2], **BEFORE}), configuration=WIDENING)
    return uri


def widen(table: str) -> None:
    for column, new_type in CHANGES.items():
        dv.change_type(table, column, new_type)


def test_files_of_the_old_types_are_read_in_the_new_ones(table: str):
    widen(table)
    read = dv.read_table(table).to_table()
    assert read.drop_columns(["id"]).to_pydict() == AFTER
    assert read.schema.field("integer_decimal").type == pa.decimal128(12, 2)
    assert read.schema.field("elements").type.value_type == pa.int64()


@pytest.mark.parametrize("file_of_the_log", ["commit", "checkpoint"])
@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("byte_long = 127", [1]),
        ("byte_long > 127", []),
        ("short_integer < -32767", [0]),
        ("integer_double = 2147483647", [1]),
        ("integer_double > 2147483647.5e0", []),
        ("integer_decimal = 2147483647.00", [1]),
        ("integer_decimal < -2147483648.00", []),
        ("long_decimal = 9223372036854775807", [1]),
        ("float_double > 0.1e0", [0]),
        (f"float_double = {FLOAT!r}", [0]),
        ("date_timestamp = timestamp_ntz '1960-05-05 00:00:00'", [0]),
        ("date_timestamp < timestamp_ntz '1960-05-05 00:00:00'", []),
        ("date_timestamp > timestamp_ntz '2024-02-28 23:59:59.999999'", [1]),
        ("decimal = 1.25", [1]),
        ("decimal < -9999.9899", [0]),
        ("s.x > 0.1e0", [0, 1]),
        ("s.x > 0.2e0", [1]),
    ],
)
def test_skipping_by_statistics_of_the_old_type_loses_no_row(
    table: str, where: str, expected: list[int], file_of_the_log: str
):
    if file_of_the_log == "checkpoint":
        dv.set_properties(
            table, {"delta.checkpointInterval": "1", "delta.checkpoint.writeStatsAsStruct": "true"}
        )
    widen(table)
    assert read_ids(table, where) == expected


def test_files_beyond_the_bounds_are_skipped_still(table: str):
    widen(table)
    for where in ("integer_decimal > 2147483648", "date_timestamp > timestamp_ntz '2024-03-01 00:00:00'"):
        assert dv.read_table(table, where=where).explain().files_read == 0


def test_statistics_in_the_digits_of_a_float_are_bounds_of_the_double(tmp_path: Path):
    """Spark writes 0.1 for the float 0.1, which as a double is above 0.1."""
    path = tmp_path / "t"
    dv.write_table(path, pa.table({"f": pa.array([0.1, 0.3], pa.float32())}), configuration=WIDENING)
    Table(path).edit_stats(lambda each: each.update(minValues={"f": 0.1}, maxValues={"f": 0.3}))
    dv.change_type(path, "f", "double")
    third = float(np.float32(0.3))
    assert third > 0.3
    assert dv.read_table(path, where=f"f = {third!r}").to_table().num_rows == 1
    for where in ("f = 0.31e0", "f < 0.09e0"):
        assert dv.read_table(path, where=where).explain().files_read == 0
    statistics = dv.load_snapshot(path).files["stats"]
    assert json.loads(statistics[0].as_py())["minValues"] == {"f": 0.1}
    assert dv.audit_table(path, data=True).findings == ()
    assert dv.repair_statistics(path).files == ()


def test_rows_of_both_types_are_changed_optimized_and_audited(table: str):
    widen(table)
    new = {"id": 3, "byte_long": 2**40, "float_double": 0.1, "date_timestamp": datetime(2024, 2, 29, 1)}
    dv.write_table(table, pa.Table.from_pylist([new]), mode="append")
    dv.update(table, {"short_integer": "100000"}, "integer_double < 0 or id = 3")
    dv.delete(table, "id = 1")
    dv.optimize(table)
    assert read_ids(table, "short_integer = 100000") == [0, 3]
    assert read_ids(table, "byte_long = 1099511627776 and date_timestamp is not null") == [3]
    assert dv.audit_table(table, data=True).findings == ()


@pytest.mark.parametrize("shredding", ["infer", None])
def test_variants_next_to_columns_that_were_widened_are_rewritten(tmp_path: Path, shredding: Any):
    table = str(tmp_path / "t")
    variants = pa.array(['{"a": 1}', '{"a": 2}', '{"a": 3}'], pa.json_())
    data = pa.table({"id": pa.array([1, 2, 3], pa.int8()), "v": variants})
    dv.write_table(table, data, configuration=WIDENING, shredding=shredding)
    dv.change_type(table, "id", "decimal(12,2)")
    dv.update(table, {"v:a": "20", "id": "2.5"}, "id = 2 and v:a::int = 2")
    dv.delete(table, "id = 3")
    new = pa.table({"id": [Decimal("2.50"), Decimal("4.00")], "v": pa.array(['{"a": 21}', "4"], pa.json_())})
    merge = dv.merge(table, new, "target.id = source.id")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    dv.optimize(table)
    read = dv.read_table(table, columns={"id": "id", "v": "to_json(v)"}).to_table().sort_by("id")
    ids_left = [Decimal("1.00"), Decimal("2.50"), Decimal("4.00")]
    assert read.to_pydict() == {"id": ids_left, "v": ['{"a":1}', '{"a":21}', "4"]}
    assert dv.audit_table(table, data=True).findings == ()


def test_a_partition_column_is_read_in_its_new_type(tmp_path: Path):
    table = str(tmp_path / "t")
    rows = {
        "id": [1, 2, 3],
        "i": pa.array([1, 2, None], pa.int16()),
        "d": pa.array([date(2020, 1, 1), None, date(2021, 1, 1)]),
    }
    dv.write_table(table, pa.table(rows), partition_by=["i", "d"], configuration=WIDENING)
    dv.change_type(table, "i", "decimal(12,1)")
    dv.change_type(table, "d", "timestamp_ntz")
    dv.write_table(
        table,
        pa.table({"id": [4], "i": [Decimal("1.5")], "d": [datetime(2020, 1, 1, 2)]}),
        mode="append",
    )
    read = dv.read_table(table).to_table().sort_by("id").to_pydict()
    assert read["i"] == [Decimal("1.0"), Decimal("2.0"), None, Decimal("1.5")]
    assert read["d"] == [datetime(2020, 1, 1), None, datetime(2021, 1, 1), datetime(2020, 1, 1, 2)]
    assert read_ids(table, "i = 1") == [1]
    assert read_ids(table, "d >= timestamp_ntz '2020-01-01 00:00:00' and i < 2") == [1, 4]


def test_changes_are_on_record_at_the_nearest_field(table: str):
    """PROTOCOL.md, "Type Change Metadata"."""
    dv.change_type(table, "byte_long", "smallint")
    widen(table)
    found = {".".join(path): field for path, field in fields_of(dv.load_snapshot(table).schema)}
    assert {name: field.metadata["delta.typeChanges"] for name, field in found.items() if field.metadata} == {
        "byte_long": [
            {"fromType": "byte", "toType": "short"},
            {"fromType": "short", "toType": "long"},
        ],
        "short_integer": [{"fromType": "short", "toType": "integer"}],
        "integer_double": [{"fromType": "integer", "toType": "double"}],
        "integer_decimal": [{"fromType": "integer", "toType": "decimal(12,2)"}],
        "long_decimal": [{"fromType": "long", "toType": "decimal(22,2)"}],
        "float_double": [{"fromType": "float", "toType": "double"}],
        "date_timestamp": [{"fromType": "date", "toType": "timestamp_ntz"}],
        "decimal": [{"fromType": "decimal(6,2)", "toType": "decimal(10,4)"}],
        "elements": [{"fromType": "short", "toType": "long", "fieldPath": "element"}],
        "values": [{"fromType": "date", "toType": "timestamp_ntz", "fieldPath": "value"}],
        "s.x": [{"fromType": "float", "toType": "double"}],
    }


def test_a_type_with_a_feature_of_its_own_gives_the_protocol_that(table: str):
    assert "timestampNtz" not in dv.load_snapshot(table).protocol.reader_features
    dv.change_type(table, "date_timestamp", "timestamp_ntz")
    assert {"timestampNtz", "typeWidening"} <= set(dv.load_snapshot(table).protocol.reader_features)


@pytest.mark.parametrize(
    ("before", "after", "widens"),
    [
        ("byte", "byte", False),
        ("byte", "long", True),
        ("long", "integer", False),
        ("long", "double", False),
        ("integer", "float", False),
        ("integer", "decimal(10,0)", True),
        ("integer", "decimal(10,1)", False),
        ("byte", "decimal(3,0)", False),
        ("long", "decimal(20,0)", True),
        ("long", "decimal(19,0)", False),
        ("decimal(6,2)", "decimal(7,2)", True),
        ("decimal(6,2)", "decimal(7,3)", True),
        ("decimal(6,2)", "decimal(7,4)", False),
        ("decimal(6,2)", "decimal(6,2)", False),
        ("decimal(6,2)", "decimal(8,1)", False),
        ("double", "decimal(38,18)", False),
        ("date", "timestamp", False),
        ("date", "timestamp_ntz", True),
        ("string", "variant", False),
        ("long", "variant", False),
    ],
)
def test_only_the_changes_of_the_protocol_widen(before: str, after: str, widens: bool):
    assert is_widening(PrimitiveType(before), PrimitiveType(after)) is widens


LOSSLESS = [
    (
        "byte",
        pa.array([-128, 127, None], pa.int8()),
        "decimal(4,1)",
        [Decimal("-128.0"), Decimal("127.0"), None],
    ),
    ("byte", pa.array([-128, 127, None], pa.int8()), "float", [-128.0, 127.0, None]),
    (
        "short",
        pa.array([-(2**15), 2**15 - 1], pa.int16()),
        "decimal(5,0)",
        [Decimal(-(2**15)), Decimal(2**15 - 1)],
    ),
    ("short", pa.array([-(2**15), 2**15 - 1], pa.int16()), "float", [-(2.0**15), 2.0**15 - 1]),
    (
        "long",
        pa.array([-(2**63), 2**63 - 1], pa.int64()),
        "decimal(19,0)",
        [Decimal(-(2**63)), Decimal(2**63 - 1)],
    ),
    ("decimal(2,0)", pa.array([Decimal(-99), Decimal(99)], pa.decimal128(2, 0)), "byte", [-99, 99]),
    ("decimal(18,0)", pa.array([Decimal(10**18 - 1)], pa.decimal128(18, 0)), "long", [10**18 - 1]),
    ("decimal(15,0)", pa.array([Decimal(10**15 - 1)], pa.decimal128(15, 0)), "double", [1e15 - 1]),
    ("string", pa.array(["é", "", None]), "binary", ["é".encode(), b"", None]),
]


def _change_in_log(path: Path, before: str, after: str) -> None:
    def change(schema: dict[str, Any]) -> None:
        changes = [{"fromType": before, "toType": after}]
        schema["fields"][1].update(type=after, metadata={"delta.typeChanges": changes})

    Table(path).edit_schema(change)


@pytest.mark.parametrize(("before", "values", "after", "expected"), LOSSLESS)
def test_changes_that_lose_nothing_are_read_though_no_writer_may_make_them(
    tmp_path: Path, before: str, values: Any, after: str, expected: list[Any]
):
    """delta-kernel-rs reads its table `type-widening`, whose byte column became decimal(4,1)."""
    assert not is_widening(PrimitiveType(before), PrimitiveType(after))
    dv.write_table(tmp_path, pa.table({"id": range(len(values)), "c": values}), configuration=WIDENING)
    _change_in_log(tmp_path, before, after)
    assert dv.read_table(tmp_path).to_table()["c"].to_pylist() == expected
    assert dv.read_table(tmp_path, where="c is not null").count() == len(values) - values.null_count
    if after != "binary":
        least = min(value for value in expected if value is not None)
        assert read_ids(tmp_path, f"c <= {least}") == [expected.index(least)]
        assert read_ids(tmp_path, f"c < {least}") == []
    dv.delete(tmp_path, where="id = 0")
    assert dv.read_table(tmp_path).to_table()["c"].to_pylist() == expected[1:]
    with raises_at(SchemaError, "expected a wider type", column="c"):
        dv.change_type(tmp_path, "c", "boolean")


@pytest.mark.parametrize(
    ("before", "values", "after"),
    [
        ("byte", pa.array([1], pa.int8()), "decimal(3,1)"),
        ("long", pa.array([1], pa.int64()), "double"),
        ("integer", pa.array([1], pa.int32()), "float"),
        ("double", pa.array([1.0]), "float"),
        ("decimal(3,0)", pa.array([Decimal(1)], pa.decimal128(3, 0)), "byte"),
        ("decimal(3,1)", pa.array([Decimal(1)], pa.decimal128(3, 1)), "long"),
        ("long", pa.array([1], pa.int64()), "integer"),
        ("date", pa.array([date(2020, 1, 1)]), "timestamp"),
        ("binary", pa.array([b"a"]), "string"),
    ],
)
def test_changes_that_can_lose_something_are_not_read(tmp_path: Path, before: str, values: Any, after: str):
    dv.write_table(tmp_path, pa.table({"id": [0], "c": values}), configuration=WIDENING)
    _change_in_log(tmp_path, before, after)
    sentence = rf"{before} to {after}, which does not have all of its values".replace("(", r"\(").replace(
        ")", r"\)"
    )
    with raises_at(UnsupportedFeatureError, sentence, column="c"):
        dv.read_table(tmp_path).to_table()


@pytest.mark.parametrize(
    ("column", "new_type", "sentence"),
    [
        ("long_decimal", "double", "from long to double"),
        ("elements", "array<bigint>", "from array<short>"),
        ("s", "variant", "to variant"),
        ("nothing", "bigint", "no column"),
    ],
)
def test_other_type_changes_are_rejected(table: str, column: str, new_type: str, sentence: str):
    """No type changes to Variant."""
    with raises_at(SchemaError, sentence, column=column):
        dv.change_type(table, column, new_type)
    assert dv.load_snapshot(table).version == 0


def test_a_table_that_does_not_enable_it_keeps_its_types(tmp_path: Path):
    table = str(tmp_path / "t")
    dv.write_table(table, pa.table({"i": pa.array([1], pa.int32())}))
    with pytest.raises(ProtocolError, match=r"set delta\.enableTypeWidening=true first"):
        dv.change_type(table, "i", "bigint")
    dv.set_properties(table, {"delta.feature.typeWidening-preview": "supported", **WIDENING})
    with pytest.raises(UnsupportedFeatureError, match="preview"):
        dv.change_type(table, "i", "bigint")
    dv.set_properties(table, {"delta.feature.typeWidening": "supported"})
    assert dv.change_type(table, "i", "int").version is None  # the type that the column already has
    dv.change_type(table, "i", "bigint")
    assert dv.read_table(table).to_table().schema.field("i").type == pa.int64()


def test_data_of_wider_types_widens_the_columns_that_it_merges_into(tmp_path: Path):
    table = str(tmp_path / "t")
    kinds = [
        ("i", pa.int8()),
        ("f", pa.float32()),
        ("d", pa.date32()),
        ("m", pa.decimal128(6, 2)),
        ("k", pa.int64()),
    ]
    small = pa.schema([*kinds, ("l", pa.list_(pa.struct([("x", pa.int16())])))])
    rows = {"i": 1, "f": 0.5, "d": date(2020, 1, 1), "m": Decimal("1.25"), "k": 7, "l": [{"x": 1}]}
    dv.write_table(table, pa.Table.from_pylist([rows], small))
    wide = {
        **rows,
        "i": 2**40,
        "f": 0.1,
        "d": datetime(2020, 1, 1, 1),
        "m": Decimal("1.3333"),
        "l": [{"x": 2**40}],
    }
    data = pa.Table.from_pylist([wide]).set_column(4, "k", pa.array([9], pa.int16()))
    data = data.set_column(3, "m", pa.array([wide["m"]], pa.decimal128(8, 4)))
    with raises_at(SchemaError, "byte in the table, but long in the data", column="i"):
        dv.write_table(table, data, mode="append", schema_mode="merge")
    dv.set_properties(table, WIDENING)
    with raises_at(SchemaError, "byte in the table, but long in the data", column="i"):
        dv.write_table(table, data, mode="append")
    dv.write_table(table, data, mode="append", schema_mode="merge")
    found = dv.read_table(table).to_table().sort_by("k").to_pylist()
    assert found == [{**rows, "d": datetime(2020, 1, 1)}, {**wide, "k": 9}]
    fields = {".".join(path): field for path, field in fields_of(dv.load_snapshot(table).schema)}
    assert {name: len(each.metadata.get("delta.typeChanges", ())) for name, each in fields.items()} == {
        **dict.fromkeys(("i", "f", "d", "m", "l.element.x"), 1),
        "k": 0,
        "l": 0,
    }
    dv.add_constraint(table, "c", "k > 0")
    other = pa.table({"k": pa.array([Decimal(2**70)], pa.decimal128(22, 0))})
    with raises_at(SchemaError, r"long in the table, but decimal\(22,0\)", column="k"):
        dv.write_table(table, other, mode="append", schema_mode="merge")


def test_data_does_not_widen_a_column_that_a_constraint_reads(tmp_path: Path):
    table = str(tmp_path / "t")
    dv.write_table(table, pa.table({"i": pa.array([1], pa.int32())}), configuration=WIDENING)
    dv.add_constraint(table, "c", "i > 0")
    with raises_at(SchemaError, "the CHECK constraint c", column="i"):
        dv.write_table(table, pa.table({"i": [2**40]}), mode="append", schema_mode="merge")


def test_a_column_without_a_type_gets_any(tmp_path: Path):
    """PROTOCOL.md, "Void Type"."""
    path = tmp_path / "t"
    dv.write_table(path, pa.table({"id": [1]}))

    def change(document: dict[str, Any]) -> None:
        document["fields"].append({"name": "x", "type": "void", "nullable": True, "metadata": {}})

    Table(path).edit_schema(change)
    assert dv.read_table(path).to_table()["x"].to_pylist() == [None]
    assert read_ids(str(path), "x is null") == [1]
    assert read_ids(str(path), "x is not null or id > 1") == []
    dv.change_type(path, "x", "variant")
    dv.write_table(path, pa.table({"id": [2], "x": pa.array(["[1]"], pa.json_())}), mode="append")
    assert sorted(dv.read_table(path, columns=["x:[0]::int as n"]).to_table()["n"].to_pylist(), key=str) == [
        1,
        None,
    ]


def test_a_change_on_record_that_the_protocol_does_not_have_is_not_read(tmp_path: Path):
    """PROTOCOL.md, "Reader Requirements for Type Widening"."""
    path = tmp_path / "t"
    dv.write_table(path, pa.table({"i": [1]}), configuration=WIDENING)

    def change(document: dict[str, Any]) -> None:
        document["fields"][0]["metadata"] = {
            "delta.typeChanges": [{"fromType": "string", "toType": "long", "tableVersion": 1}]
        }

    Table(path).edit_schema(change)
    with raises_at(UnsupportedFeatureError, "changed from string to long", column="i"):
        dv.read_table(path)
    with raises_at(UnsupportedFeatureError, "changed from string to long", column="i"):
        dv.delete(path, "i = 1")


@pytest.mark.parametrize(
    "recorded", [7, ["x"], [{"fromType": "short"}], [{"fromType": 1, "toType": 2}], {"a": 1}]
)
def test_an_invalid_record_of_type_changes_is_an_error(tmp_path: Path, recorded: Any):
    path = tmp_path / "t"
    dv.write_table(path, pa.table({"i": [1]}))
    Table(path).edit_schema(
        lambda each: each["fields"][0]["metadata"].update({"delta.typeChanges": recorded})
    )
    with raises_at(SchemaError, r"invalid delta\.typeChanges", column="i"):
        dv.read_table(path)


def test_records_of_changes_outlive_other_changes_of_the_schema(table: str):
    dv.change_type(table, "decimal", "decimal(10,4)")
    dv.set_properties(table, {"delta.columnMapping.mode": "name"})
    dv.rename_column(table, "decimal", "d")
    dv.add_columns(table, {"more": "int"})
    text = dv.load_snapshot(table).metadata.schema_string
    (field,) = [each for each in json.loads(text)["fields"] if each["name"] == "d"]
    assert field["metadata"]["delta.typeChanges"] == [{"fromType": "decimal(6,2)", "toType": "decimal(10,4)"}]
    dv.change_type(table, "d", "decimal(38,10)")
    assert read_ids(table, "d = 1.25") == [1]


ANY_VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any], Any]] = {
    "smallint": (pa.int8(), st.integers(-128, 127), 1),
    "bigint": (pa.int16(), st.integers(-(2**15), 2**15 - 1), 1),
    "double": (pa.int32(), st.integers(-(2**31), 2**31 - 1), 0.5),
    "decimal(13,3)": (pa.int32(), st.integers(-(2**31), 2**31 - 1), Decimal("0.001")),
    "decimal(22,2)": (pa.int64(), st.integers(-(2**63), 2**63 - 1), Decimal("0.01")),
    "double of float": (pa.float32(), st.floats(-(2.0**80), 2.0**80, width=32), 2.0**-60),
    "timestamp_ntz": (pa.date32(), st.dates(date(1, 1, 2)), timedelta(microseconds=1)),
    "decimal(20,4)": (pa.decimal128(6, 2), st.decimals(-9999, 9999, places=2), Decimal("0.0001")),
}


def literal(value: Any) -> str:
    """Return a value of a wider type as SQL text."""
    if isinstance(value, datetime):
        return f"timestamp_ntz '{value.isoformat(sep=' ')}'"
    return (
        f"cast('{value!r}' as double)"
        if isinstance(value, float)
        else format(value, "f" if isinstance(value, Decimal) else "")
    )


@given(
    data=st.data(),
    new_type=st.sampled_from(sorted(ANY_VALUES)),
    operator=st.sampled_from(["=", "<", ">=", "<>"]),
)
def test_predicates_find_the_same_rows_as_a_full_scan(data: st.DataObject, new_type: str, operator: str):
    arrow_type, values, margin = ANY_VALUES[new_type]
    rows = data.draw(st.lists(values | st.none(), min_size=1, max_size=5).filter(any))
    with TemporaryDirectory() as folder:
        dv.write_table(folder, pa.table({"x": pa.array(rows, arrow_type)}), configuration=WIDENING)
        dv.change_type(folder, "x", new_type.split(" of ")[0])
        read = dv.read_table(folder).to_table()["x"]
        dv.write_table(folder, pa.table({"x": read.slice(0, 1)}), mode="append")
        known = data.draw(st.sampled_from([value for value in read.to_pylist() if value is not None]))
        condition = f"x {operator} {literal(known + data.draw(st.sampled_from([0, 1, -1])) * margin)}"
        found = dv.read_table(folder, where=condition).to_table()["x"]
        expected = dv.read_table(folder, columns={"x": "x", "fits": condition}).to_table()
        assert found.to_pylist() == expected.filter(expected["fits"])["x"].to_pylist()


# Every change of PROTOCOL.md, "Type Widening"; decimals with exactly the required digits and with more.
INTEGERS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "byte": (pa.int8(), [-128, 127, 0, None]),
    "short": (pa.int16(), [-32768, 32767, 0, None]),
    "integer": (pa.int32(), [-(2**31), 2**31 - 1, 7, None]),
    "long": (pa.int64(), [-(2**63), 2**63 - 1, 7, None]),
}
NARROW: dict[str, tuple[pa.DataType, list[Any]]] = {
    **INTEGERS,
    "float": (pa.float32(), [FLOAT, -2.25, float(np.float32(3.14)), None]),
    "date": (pa.date32(), [date(1960, 5, 5), date(2024, 2, 29), date(1, 1, 2), None]),
    "decimal(6,2)": (pa.decimal128(6, 2), [Decimal("-9999.99"), Decimal("1.25"), Decimal("0.00"), None]),
}
SMALL = ("byte", "short", "integer")
EVERY_CHANGE = [
    *((before, after) for index, before in enumerate(INTEGERS) for after in list(INTEGERS)[index + 1 :]),
    *((before, "double") for before in (*SMALL, "float")),
    ("date", "timestamp_ntz"),
    *((before, f"decimal({digits})") for before in SMALL for digits in ("10,0", "11,1", "12,2", "38,28")),
    *(("long", f"decimal({digits})") for digits in ("20,0", "21,1", "38,18")),
    *(("decimal(6,2)", f"decimal({digits})") for digits in ("7,2", "7,3", "10,4", "38,34")),
]


def in_wide_type(value: Any, after: str) -> Any:
    """Return a value as one of a wider type."""
    if after == "timestamp_ntz":
        return datetime(value.year, value.month, value.day)
    return float(value) if after == "double" else Decimal(value) if "decimal" in after else value


def as_sql(value: Any, after: str) -> str:
    """Return a value of a wider type as SQL text."""
    if after == "timestamp_ntz":
        return f"timestamp_ntz '{value.isoformat(sep=' ')}'"
    name = {"short": "smallint", "integer": "int", "long": "bigint"}.get(after, after)
    return f"cast('{value:f}' as {name})" if "decimal" in after else f"cast('{value}' as {name})"


def write_narrow_table(path: Path, before: str, after: str, *, plain: bool) -> list[Any]:
    """Write a table with a file by pyarrow and statistics of the type before; return values of the one after.

    In `plain` files bytes and shorts are INT32 without an annotation, and decimals integers.
    """
    arrow_type, values = NARROW[before]
    stored = pa.int32() if plain and before in SMALL else arrow_type
    columns = {
        "id": pa.array(range(4), pa.int64()),
        "x": pa.array(values, stored),
        "s": pa.array([{"x": each} for each in values], pa.struct([("x", stored)])),
        "l": pa.array([[each] for each in values], pa.list_(stored)),
        "m": pa.array([[(values[0], each)] for each in values], pa.map_(stored, stored)),
    }
    (path / "_delta_log").mkdir(parents=True)
    file = path / "narrow.parquet"
    pq.write_table(
        pa.table(columns), file, store_schema=False, store_decimal_as_integer=plain, write_page_index=plain
    )
    names = ["typeWidening", "timestampNtz"]
    versions = {"minReaderVersion": 3, "minWriterVersion": 7}
    metadata = {
        "id": "narrow",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": wide_fields(before, after)}),
        "partitionColumns": [],
        "configuration": WIDENING,
    }
    state = file.stat()
    add = {
        "path": file.name,
        "partitionValues": {},
        "size": state.st_size,
        "modificationTime": state.st_mtime_ns // 1_000_000,
    }
    actions = [
        {"protocol": {**versions, "readerFeatures": names, "writerFeatures": names}},
        {"metaData": metadata},
        {"add": {**add, "dataChange": True, "stats": json.dumps(narrow_stats(before))}},
    ]
    log = path / "_delta_log" / f"{0:020d}.json"
    log.write_text("".join(json.dumps(action) + "\n" for action in actions), encoding="utf-8")
    return [None if each is None else in_wide_type(each, after) for each in values]


def narrow_stats(before: str) -> dict[str, Any]:
    """Return the statistics of a narrow file, the digits of floats as Spark prints them."""
    known = [each for each in NARROW[before][1] if each is not None]
    as_json = {"date": date.isoformat, "float": lambda each: float(str(np.float32(each)))}
    low, high = (as_json.get(before, float if "decimal" in before else int)(f(known)) for f in (min, max))
    return {
        "numRecords": 4,
        "minValues": {"id": 0, "x": low, "s": {"x": low}},
        "maxValues": {"id": 3, "x": high, "s": {"x": high}},
        "nullCount": {"id": 0, "x": 1, "s": {"x": 1}, "l": 0, "m": 0},
    }


def wide_fields(before: str, after: str) -> list[dict[str, Any]]:
    """Return the fields of a schema whose types went from one to the other, wherever a type can be."""
    change = {"fromType": before, "toType": after}
    struct = {"type": "struct", "fields": [schema_field("x", after, change)]}
    array = {"type": "array", "elementType": after, "containsNull": True}
    pairs = {"type": "map", "keyType": after, "valueType": after, "valueContainsNull": True}
    return [
        schema_field("id", "long"),
        schema_field("x", after, change),
        schema_field("s", struct),
        schema_field("l", array, {**change, "fieldPath": "element"}),
        schema_field("m", pairs, *({**change, "fieldPath": part} for part in ("key", "value"))),
    ]


def schema_field(name: str, data_type: Any, *changes: dict[str, str]) -> dict[str, Any]:
    metadata = {"delta.typeChanges": list(changes)} if changes else {}
    return {"name": name, "type": data_type, "nullable": True, "metadata": metadata}


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize(("before", "after"), EVERY_CHANGE)
def test_files_of_other_writers_are_read_and_changed_in_the_wide_type(
    tmp_path: Path, before: str, after: str, plain: bool
):
    path = tmp_path / "t"
    wide = write_narrow_table(path, before, after, plain=plain)
    assert dv.read_table(path).to_table().to_pydict() == {
        "id": [0, 1, 2, 3],
        "x": wide,
        "s": [{"x": each} for each in wide],
        "l": [[each] for each in wide],
        "m": [[(wide[0], each)] for each in wide],
    }
    assert dv.audit_table(path, data=True).findings == ()
    for column in ("x", "s.x"):
        for value in wide[:3]:
            text = as_sql(value, after)
            assert read_ids(str(path), f"{column} = {text}") == [wide.index(value)]
            assert read_ids(str(path), f"{column} < {text}") == [n for n in range(3) if wide[n] < value]
    dv.delete(path, f"x = {as_sql(wide[1], after)}")
    dv.update(path, {"x": as_sql(wide[1], after)}, f"s.x = {as_sql(wide[0], after)}")
    dv.optimize(path)
    rows = dv.read_table(path, columns={"id": "id", "x": "x", "s": "s.x"}).to_table().sort_by("id")
    assert rows.to_pydict() == {"id": [0, 2, 3], "x": [wide[1], wide[2], None], "s": [wide[0], wide[2], None]}
    assert dv.audit_table(path, data=True).findings == ()
