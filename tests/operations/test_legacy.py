"""The legacy layout of an older Spark draft: reads, writes, migrations, and rejection elsewhere."""

from __future__ import annotations

import json
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.errors import raises_at
from support.strategies import Encoded, meanings, shredding_schemas, variant_array, variants

import delta_variant as dv
from delta_variant import ShreddingSchema, errors
from delta_variant.cli import main
from delta_variant.operations import legacy
from delta_variant.operations.legacy import read_legacy_file, shred_legacy, unshred_legacy, write_legacy_file

ROWS = st.lists(st.one_of(st.none(), variants()), min_size=1, max_size=4)

NULL = bytes.fromhex("01000000")
ONE = bytes.fromhex("0100000c01")


def leaf(kind: pa.DataType) -> pa.StructType:
    return pa.struct([("untyped_value", pa.binary()), ("typed_value", kind)])


def objects(**fields: pa.DataType) -> pa.StructType:
    return pa.struct([("untyped_value", pa.binary()), ("object", pa.struct(list(fields.items())))])


def arrays(element: pa.DataType) -> pa.StructType:
    return pa.struct([("untyped_value", pa.binary()), ("array", pa.list_(pa.field("element", element)))])


def read(kind: pa.DataType, *rows: Any, compat: bool = False) -> list[str | None]:
    return dv.to_json(unshred_legacy(pa.array(rows, kind), compat=compat)).to_pylist()


def hex_of(array: pa.StructArray) -> list[tuple[str, str]]:
    return [(row["metadata"].hex(), row["value"].hex()) for row in array.to_pylist()]


# O17: the examples of the draft, byte by byte. Its first schema, and six rows.

EXAMPLE = ShreddingSchema.of({"a": pa.int64(), "b": {"c": pa.string()}})
EXAMPLE_TYPE = objects(a=leaf(pa.int64()), b=objects(c=leaf(pa.string())))

EXAMPLE_JSON = [
    '{"a": 123, "b": {"c": "hello"}}',
    '{"a": 1.23, "b": {"c": "123"}}',
    '{"a": [1,2,3], "b": {"c": null}}',
    '{"a": 123, "c": 456}',
    '{"a": 123, "b": {"c": "hello", "d": 456}}',
    '[{"a": 1, "b": {"c": 2}}, {"a": 3, "b": {"c": 4}}]',
]

MISSING = None
TYPED_A = {"untyped_value": None, "typed_value": 123}


def b(c: Any, untyped: bytes | None = None) -> dict[str, Any]:
    return {"untyped_value": untyped, "object": {"c": c}}


def untyped(text: str) -> dict[str, Any]:
    return {"untyped_value": bytes.fromhex(text), "typed_value": None}


def typed(value: Any) -> dict[str, Any]:
    return {"untyped_value": None, "typed_value": value}


# Metadata is marked as sorted (0x11) where it has names, and 456 is an int16 (0x10).
EXAMPLE_ROWS = [
    {"untyped_value": None, "object": {"a": TYPED_A, "b": b(typed("hello"))}},
    {"untyped_value": None, "object": {"a": untyped("010000 20027b000000"), "b": b(typed("123"))}},
    {
        "untyped_value": None,
        "object": {"a": untyped("010000 0303000204060c010c020c03"), "b": b(untyped("010000 00"))},
    },
    {
        "untyped_value": bytes.fromhex("1101000163 020100000310c801"),
        "object": {"a": TYPED_A, "b": MISSING},
    },
    {
        "untyped_value": None,
        "object": {"a": TYPED_A, "b": b(typed("hello"), bytes.fromhex("1101000164 020100000310c801"))},
    },
    {
        "untyped_value": bytes.fromhex(
            "1103000102036162630302001020020200010002090c0102010200020c02020200010002090c0302010200020c04"
        ),
        "object": None,
    },
]


EXAMPLE_VARIANTS = [
    # {"a", "b", "c"}: a at 0 is int64 123, b is {"c": "hello"} of 11 bytes.
    (
        "11 03 00010203 616263",
        "02 02 0001 00 09 14 187b00000000000000 02 01 02 00 06 15 68656c6c6f",
    ),
    ("11 03 00010203 616263", "02 02 0001 00 06 0f 20027b000000 02 01 02 00 04 0d 313233"),
    ("11 03 00010203 616263", "02 02 0001 00 0c 12 0303000204060c010c020c03 02 01 02 00 01 00"),
    ("11 02 000102 6163", "02 02 0001 00 09 0c 187b00000000000000 10c801"),
    (
        "11 04 0001020304 61626364",
        "02 02 0001 00 09 19 187b00000000000000 02 02 0203 00 06 09 1568656c6c6f 10c801",
    ),
    (
        "11 03 00010203 616263",
        "03 02 00 10 20 02 02 0001 00 02 09 0c01 02 01 02 00 02 0c02"
        " 02 02 0001 00 02 09 0c03 02 01 02 00 02 0c04",
    ),
]


def test_the_rows_of_the_first_example_are_written_byte_by_byte():
    written = shred_legacy(dv.parse_json(EXAMPLE_JSON), EXAMPLE)
    assert written.type == EXAMPLE_TYPE
    assert written.to_pylist() == EXAMPLE_ROWS


@pytest.mark.parametrize("row", range(6))
def test_a_row_of_the_first_example_is_read_byte_by_byte(row: int):
    expected = tuple(part.replace(" ", "") for part in EXAMPLE_VARIANTS[row])
    assert hex_of(unshred_legacy(pa.array([EXAMPLE_ROWS[row]], EXAMPLE_TYPE))) == [expected]


NESTED = ShreddingSchema.of([{"a": [pa.int64()], "b": pa.int64()}])
NESTED_JSON = [
    '[{"a": [1,2,3], "b": 100}, {"a": [4,5,6], "b": 200}]',
    '[{"a": [1,2,3], "b": 100, "c": "unexpected"}, {"a": [4,5,6], "b": 200}, "not an object"]',
]


def test_the_nested_example_is_written_byte_by_byte():
    fully, partly = shred_legacy(dv.parse_json(NESTED_JSON), NESTED).to_pylist()
    assert fully["untyped_value"] is partly["untyped_value"] is None
    assert [element["untyped_value"] for element in fully["array"]] == [None, None]
    assert [element["untyped_value"] for element in partly["array"]] == [
        bytes.fromhex("11 01 00 01 63 02 01 00 00 0b 29") + b"unexpected",
        None,
        bytes.fromhex("01 00 00 35") + b"not an object",
    ]
    first, second, third = (element["object"] for element in partly["array"])
    assert first == {"a": {"untyped_value": None, "array": [typed(1), typed(2), typed(3)]}, "b": typed(100)}
    assert second == {"a": {"untyped_value": None, "array": [typed(4), typed(5), typed(6)]}, "b": typed(200)}
    assert third is None


def test_the_nested_example_is_read_byte_by_byte():
    rows = [
        {
            "array": [
                {
                    "untyped_value": bytes.fromhex("0101000163 020100000b29") + b"unexpected",
                    "object": {"a": {"array": [{"typed_value": 1}]}, "b": {"typed_value": 2}},
                },
                {"untyped_value": bytes.fromhex("010000 35") + b"not an object"},
            ]
        }
    ]
    array = unshred_legacy(pa.array(rows, arrays(objects(a=arrays(leaf(pa.int64())), b=leaf(pa.int64())))))
    metadata = "11 03 00 01 02 03 616263"
    value = (
        "03 02 00 2a 38"
        " 02 03 00 01 02 00 0d 16 21"
        " 03 01 00 09 18 0100000000000000"
        " 18 0200000000000000"
        " 29 756e6578706563746564"
        " 35 6e6f7420616e206f626a656374"
    )
    assert hex_of(array) == [(bytes.fromhex(metadata).hex(), bytes.fromhex(value).hex())]


# Round trips.


@pytest.mark.slow
@given(ROWS, shredding_schemas())
def test_unshred_legacy_inverts_shred_legacy(rows: list[Encoded | None], schema: pa.DataType):
    written = shred_legacy(variant_array(rows), ShreddingSchema.from_arrow(schema))
    assert meanings(unshred_legacy(written)) == [row and row.meaning for row in rows]


@given(ROWS, shredding_schemas())
def test_written_columns_follow_the_rules_of_the_layout(rows: list[Encoded | None], schema: pa.DataType):
    """O4, O5, O7 to O9, checked by a strict reader."""
    for row in map(plain, shred_legacy(variant_array(rows), ShreddingSchema.from_arrow(schema))):
        if row is not None:
            check_group(row)


def plain(scalar: Any) -> Any:
    """Return a value as a Python object; pyarrow alone has none for nanoseconds."""
    if not scalar.is_valid:
        return None
    if isinstance(scalar, pa.StructScalar):
        return {name: plain(part) for name, part in scalar.items()}
    if isinstance(scalar, pa.ListScalar):
        return [plain(element) for element in scalar]
    return scalar.value if isinstance(scalar, pa.TimestampScalar) else scalar.as_py()


def check_group(row: dict[str, Any]) -> None:
    untyped_value = row["untyped_value"]
    found = [name for name in ("object", "array", "typed_value") if row.get(name) is not None]
    assert len(found) + (untyped_value is not None) == 1 or (
        found == ["object"] and value_of(untyped_value)[0] & 3 == 2
    )
    for group in [*(row.get("object") or {}).values(), *(row.get("array") or [])]:
        if group is not None:
            check_group(group)


def value_of(untyped_value: bytes) -> bytes:
    width = (untyped_value[0] >> 6) + 1
    count = int.from_bytes(untyped_value[1 : 1 + width], "little")
    end = 1 + (count + 2) * width
    return untyped_value[end + int.from_bytes(untyped_value[end - width : end], "little") :]


@given(rows=ROWS, schema=shredding_schemas())
def test_a_migrated_file_has_equal_values_for_each_schema(
    tmp_path_factory, rows: list[Encoded | None], schema: pa.DataType
):
    folder = tmp_path_factory.mktemp("migration")
    table = pa.table({"id": range(len(rows)), "v": variant_array(rows)})
    write_legacy_file(folder / "old.parquet", table, {"v": ShreddingSchema.from_arrow(schema)})
    dv.migrate_legacy(folder / "old.parquet", folder / "new.parquet")
    new = pq.read_table(folder / "new.parquet")
    assert meanings(dv.unshred(new["v"])) == [row and row.meaning for row in rows]
    assert new["id"].to_pylist() == list(range(len(rows)))


# Schema rules: O1, O3, O6, O15, O18.


def test_members_are_found_in_any_order_and_any_number():
    """O1, O6."""
    members = {
        "untyped_value": pa.binary(),
        "typed_value": pa.int64(),
        "object": pa.struct([("a", leaf(pa.int64()))]),
    }
    for names in (["typed_value"], ["object", "untyped_value"], ["typed_value", "object", "untyped_value"]):
        kind = pa.struct([(name, members[name]) for name in names])
        row = {"typed_value": 1} if "object" not in names else {"object": {"a": {"typed_value": 1}}}
        assert read(kind, row) == ["1" if "object" not in names else '{"a":1}']


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ([("metadata", pa.binary()), ("untyped_value", pa.binary())], r"path \$: .* it has `metadata`"),
        ([("untyped_value", pa.binary()), ("value", pa.binary())], r"path \$: .* it has `value`"),
        ([("untyped_value", pa.binary()), ("note", pa.string())], 'it has a column "note"'),
        ([("_spark_x", pa.int64())], "none of object, array, typed_value and untyped_value"),
        ([("untyped_value", pa.string())], "`untyped_value` is Utf8, not binary"),
        ([("object", pa.int64())], "`object` is Int64, not a group"),
        ([("array", pa.int64())], "`array` is Int64, not a list"),
        ([("object", pa.struct([("a", pa.int64())]))], r"path \$\['a'\]: .* expected a group, got Int64"),
        ([("array", pa.list_(pa.int64()))], r"path \$\[\*\]: .* expected a group, got Int64"),
        ([("object", pa.struct([("a", pa.struct([]))]))], r"path \$\['a'\]: .* it has none of"),
        ([("typed_value", pa.uint64())], "UInt64 cannot be a shredded type"),
        ([("typed_value", pa.float16())], "Float16 cannot be a shredded type"),
        ([("typed_value", pa.list_(pa.int64()))], "not of the type of a scalar"),
    ],
)
def test_a_group_that_violates_the_layout_is_rejected(fields: list[Any], message: str):
    """O1, O15, O18, P-S9."""
    array = pa.nulls(1, pa.struct(fields))
    with pytest.raises(errors.ShreddingError, match=message):
        unshred_legacy(array)


def test_columns_with_an_underscore_next_to_untyped_value_are_ignored():
    """O15, P-X1, P-X5. A field of an object with such a name is data."""
    kind = pa.struct([("_spark_x", pa.int64()), *objects(_id=leaf(pa.int64()))])
    assert read(kind, {"_spark_x": 1, "object": {"_id": {"typed_value": 2}}}) == ['{"_id":2}']


def test_a_group_that_is_nested_too_deeply_is_rejected():
    kind = leaf(pa.int64())
    for _ in range(70):
        kind = arrays(kind)
    with pytest.raises(errors.ShreddingError, match="deeper than 64 levels"):
        unshred_legacy(pa.nulls(1, kind))


# Values: O2, O4, O5, O7 to O12, O16.


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is empty"),
        ("02", "expected version 1, got 2"),
        ("0101000968690c01", "truncated"),
        ("010100026869", "no value after the metadata"),
        ("0100000c", "truncated"),
        ("010000020100000203", "truncated"),
        ("01000002010500020c01", "name id 5"),
    ],
)
def test_an_invalid_untyped_value_is_rejected_with_its_row_and_path(text: str, message: str):
    """O2."""
    rows = [{"object": None}, {"object": {"a": untyped(text)}}]
    with pytest.raises(errors.MalformedVariantError, match=message) as caught:
        read(objects(a=leaf(pa.int64())), *rows)
    assert (caught.value.row, caught.value.path) == (1, "$['a']")


def test_bytes_of_a_row_that_is_not_shredded_are_kept():
    """O2, O16. The unused name, the order of the names and the wide offsets stay."""
    metadata, value = "4102000000010002007a62", "02010000020c01"
    kept = unshred_legacy(pa.array([{"untyped_value": bytes.fromhex(metadata + value)}], leaf(pa.int64())))
    assert hex_of(kept) == [(metadata, value)]


def test_unsorted_fields_of_an_untyped_value_are_sorted():
    untyped_value = bytes.fromhex("01020001027a61" + "02020001000204" + "0c010c02")
    assert read(leaf(pa.int64()), {"untyped_value": untyped_value}) == ['{"a":2,"z":1}']


@pytest.mark.parametrize("compat", [False, True])
def test_only_one_of_object_array_and_typed_value_may_be_set(compat: bool):
    """O4."""
    kind = pa.struct([*objects(a=leaf(pa.int64())), ("typed_value", pa.int64())])
    assert read(kind, {"typed_value": 1}, {"object": {}}, compat=compat) == ["1", "{}"]
    with raises_at(errors.ConflictingValueError, "only one of object, array and", row=0, path="$"):
        read(kind, {"typed_value": 1, "object": {}}, compat=compat)


def test_a_leaf_with_two_values_is_an_error_except_a_variant_null_with_compat():
    """O5."""
    kind = objects(a=leaf(pa.int64()))
    null_too, one_too = ({"object": {"a": {"untyped_value": each, "typed_value": 7}}} for each in (NULL, ONE))
    for row in (null_too, one_too):
        with pytest.raises(
            errors.ConflictingValueError, match=r"path \$\['a'\]: .* typed_value and untyped_value"
        ):
            read(kind, row)
    assert read(kind, null_too, compat=True) == ['{"a":null}']
    with pytest.raises(errors.ConflictingValueError, match="both set"):
        read(kind, one_too, compat=True)


@pytest.mark.parametrize("compat", [False, True])
def test_an_object_next_to_another_value_is_ambiguous(compat: bool):
    """O7, O8."""
    kind = objects(a=leaf(pa.int64()))
    assert read(kind, {"untyped_value": ONE}, compat=compat) == ["1"]
    with pytest.raises(
        errors.ConflictingValueError, match="object is set, and untyped_value is not an object"
    ):
        read(kind, {"untyped_value": ONE, "object": {}}, compat=compat)


def test_an_array_next_to_an_untyped_value_is_an_error_except_with_compat():
    """O9."""
    kind = arrays(leaf(pa.int64()))
    both = {"untyped_value": ONE, "array": [{"typed_value": 2}]}
    with pytest.raises(errors.ConflictingValueError, match="array and untyped_value are both set"):
        read(kind, both)
    assert read(kind, both, compat=True) == ["[2]"]


def test_a_field_in_object_takes_precedence_over_untyped_value():
    """O10. A field in neither is omitted."""
    leftovers = bytes.fromhex("0101000161" + "02010000020c01")
    kind = objects(a=leaf(pa.int64()), b=leaf(pa.int64()))
    rows = [
        {"untyped_value": leftovers, "object": {"a": {"typed_value": 9}, "b": None}},
        {"untyped_value": leftovers, "object": {"a": {}, "b": {"typed_value": 2}}},
    ]
    assert read(kind, *rows) == ['{"a":9}', '{"a":1,"b":2}']


def test_a_duplicate_name_in_untyped_value_is_an_error():
    """O10."""
    twice = bytes.fromhex("01020001026161" + "02020001000204" + "0c010c02")
    with raises_at(errors.MalformedVariantError, 'two fields called "a"', row=0, path="$"):
        read(objects(b=leaf(pa.int64())), {"untyped_value": twice, "object": {"b": None}})


def test_a_missing_value_is_null_except_in_objects():
    """O3, O11."""
    assert read(leaf(pa.int64()), None, {}) == [None, "null"]
    assert read(arrays(leaf(pa.int64())), {"array": [None, {}]}) == ["[null,null]"]
    assert read(objects(a=leaf(pa.int64())), {"object": {"a": {}}}) == ["{}"]


def test_a_null_field_is_a_variant_null_in_untyped_value():
    """O12."""
    (row,) = shred_legacy(dv.parse_json(['{"a": null}']), ShreddingSchema.of({"a": pa.int64()})).to_pylist()
    assert row == {"untyped_value": None, "object": {"a": untyped("01000000")}}


@pytest.mark.parametrize(
    ("text", "kind", "stored"),
    [
        ("123", pa.int64(), 123),
        ("123", pa.decimal128(9, 2), Decimal("123.00")),
        ("1.230", pa.decimal128(9, 2), Decimal("1.23")),
        ("5.00", pa.int8(), 5),
        ("1.23", pa.int64(), None),
        ("1.234", pa.decimal128(9, 2), None),
        ("300", pa.int8(), None),
        ("1e0", pa.int64(), None),
        ("1e0", pa.decimal128(9, 2), None),
        ('"123"', pa.int64(), None),
        ("1", pa.float64(), None),
        ("1", pa.string(), None),
    ],
)
def test_numbers_are_one_type_and_nothing_else_is_cast(text: str, kind: pa.DataType, stored: Any):
    """O13."""
    (row,) = shred_legacy(dv.parse_json([text]), ShreddingSchema.of(kind)).to_pylist()
    assert row["typed_value"] == stored
    assert (row["untyped_value"] is None) == (stored is not None)


def test_dictionaries_are_merged_and_sorted():
    """O16."""
    rows = [
        {
            "untyped_value": bytes.fromhex("0101000163" + "02010000020c03"),
            "object": {
                "z": {"untyped_value": bytes.fromhex("01020001027a62" + "02020100000204" + "0c040c05")}
            },
        }
    ]
    array = unshred_legacy(pa.array(rows, objects(z=pa.struct([("untyped_value", pa.binary())]))))
    # b, c and z; the object is {"c": 3, "z": {"b": 4 at 0, "z": 5}}.
    assert hex_of(array) == [
        ("110300010203" + "62637a", "0202010200020d" + "0c03" + "02020002000204" + "0c040c05")
    ]


def test_many_names_need_wide_ids():
    """O16. More than 255 names, in several parts."""
    rows = [json.dumps({f"n{number}": {f"m{number}": number} for number in range(300)})]
    schema = ShreddingSchema.of({f"n{number}": None for number in range(300)})
    written = shred_legacy(dv.parse_json(rows), schema)
    assert json.loads(dv.to_json(unshred_legacy(written))[0].as_py()) == json.loads(rows[0])


def test_the_nesting_limit_applies_to_legacy_values():
    deep = "[" * 999 + "]" * 999
    assert read(
        leaf(pa.int64()), *shred_legacy(dv.parse_json([deep]), ShreddingSchema.of(None)).to_pylist()
    ) == [deep]
    level, nested = bytes.fromhex("00"), b""
    for _ in range(1002):
        nested = bytes([0x0F, 1, 0, 0, 0, 0]) + len(level).to_bytes(4, "little")
        level = nested[:2] + (0).to_bytes(4, "little") + len(level).to_bytes(4, "little") + level
    with pytest.raises(errors.MalformedVariantError, match="nests deeper than 1000"):
        read(objects(a=leaf(pa.int64())), {"object": {"a": untyped("010000" + level.hex())}})


# Ordinary reading rejects the layout.

MIGRATE = "delta-variant migrate SOURCE TARGET"


@pytest.mark.parametrize("kind", [EXAMPLE_TYPE, leaf(pa.int64()), pa.struct([("typed_value", pa.int64())])])
def test_unshred_and_to_json_reject_the_legacy_layout(kind: pa.DataType):
    for function in (dv.unshred, dv.to_json):
        with pytest.raises(errors.ShreddingError, match=MIGRATE):
            function(pa.nulls(1, kind))


def test_variant_get_rejects_the_legacy_layout():
    with pytest.raises(errors.ShreddingError, match=MIGRATE):
        dv.variant_get(pa.array([{"typed_value": 1}], leaf(pa.int64())), "$", "bigint")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Return the six rows of the example as a legacy file."""
    table = pa.table({"id": range(6), "v": dv.parse_json(EXAMPLE_JSON)})
    write_legacy_file(tmp_path / "old.parquet", table, {"v": EXAMPLE})
    return tmp_path / "old.parquet"


def test_statistics_of_a_legacy_file_are_rejected(old: Path):
    """O14. The values of `typed_value` alone are not bounds."""
    with pytest.raises(errors.ShreddingError, match=MIGRATE) as caught:
        dv.compute_stats(old)
    assert (caught.value.file, caught.value.column) == (str(old), "v")


def test_a_table_with_a_legacy_file_is_rejected(tmp_path: Path, old: Path):
    """O14, for each kind of query."""
    dv.write_table(
        tmp_path / "table",
        pa.table({"id": range(6), "v": dv.parse_json(EXAMPLE_JSON)}),
        variant_columns=["v"],
    )
    (file,) = (tmp_path / "table").glob("*.parquet")
    file.write_bytes(old.read_bytes())
    for columns in (None, {"a": "v:a::bigint"}, {"whole": "v"}):
        with pytest.raises(errors.ShreddingError, match=f"{file.name}.*{MIGRATE}"):
            dv.read_table(tmp_path / "table", columns=columns).to_table()
    with pytest.raises(errors.ShreddingError, match=MIGRATE):
        dv.read_table(tmp_path / "table", where="v:a::bigint = 123").to_table()


def test_a_struct_with_a_field_object_is_not_in_the_legacy_layout(tmp_path: Path):
    struct = pa.array([{"object": "x", "array": [1], "value": 2}])
    pq.write_table(pa.table({"s": struct}), tmp_path / "f.parquet")
    assert dv.compute_stats(tmp_path / "f.parquet").num_records == 1
    with raises_at(errors.DataFileError, "no column in the legacy layout", file=str(tmp_path / "f.parquet")):
        read_legacy_file(tmp_path / "f.parquet")


# Files.


def test_a_legacy_file_can_be_read(old: Path):
    table = read_legacy_file(old).read_all()
    assert table["id"].to_pylist() == list(range(6))
    assert dv.to_json(table["v"]).to_pylist() == dv.to_json(dv.parse_json(EXAMPLE_JSON)).to_pylist()
    assert table.schema.field("v").metadata == {b"ARROW:extension:name": b"arrow.parquet.variant"}


def test_an_error_has_the_file_the_row_and_the_path(tmp_path: Path):
    rows = [{"object": {"a": {"typed_value": 1}}}] * 20_000 + [{"object": {"a": untyped("0100000c")}}]
    pq.write_table(pa.table({"v": pa.array(rows, objects(a=leaf(pa.int64())))}), tmp_path / "f.parquet")
    with pytest.raises(errors.MalformedVariantError) as caught:
        read_legacy_file(tmp_path / "f.parquet").read_all()
    error = caught.value
    assert (error.file, error.row, error.path) == ("f.parquet", 20_000, "$['a']")


def test_a_file_is_written_without_the_annotation_and_with_optional_groups(old: Path):
    """O3."""
    schema = str(pq.ParquetFile(old).schema)
    assert "Variant" not in schema
    assert "optional group field_id=-1 v {" in schema
    assert "optional group field_id=-1 b {" in schema


def test_writing_never_replaces_a_file(old: Path):
    before = old.read_bytes()
    with pytest.raises(errors.DataFileError, match="exists already"):
        write_legacy_file(old, pa.table({"v": dv.parse_json(["1"])}), {"v": EXAMPLE})
    assert old.read_bytes() == before


def test_a_failed_write_leaves_no_files(tmp_path: Path):
    bad = pa.array(
        [{"metadata": b"\x01\x00\x00", "value": b"\x0c"}],
        pa.struct([("metadata", pa.binary()), ("value", pa.binary())]),
    )
    with raises_at(errors.MalformedVariantError, row=0):
        write_legacy_file(tmp_path / "f.parquet", pa.table({"v": bad}), {"v": EXAMPLE})
    assert list(tmp_path.iterdir()) == []


def test_a_legacy_file_cannot_be_written_into_a_table_with_variant_shredding(tmp_path: Path):
    """O19."""
    table = pa.table({"v": dv.parse_json(["1"])})
    dv.write_table(tmp_path / "shredded", table, variant_columns=["v"])
    dv.write_table(tmp_path / "plain", table, variant_columns=["v"], shredding=None)
    with pytest.raises(errors.ShreddingError, match="shredded is a Delta table with variantShredding"):
        write_legacy_file(tmp_path / "shredded" / "day=1" / "f.parquet", table, {"v": EXAMPLE})
    assert write_legacy_file(tmp_path / "plain" / "f.parquet", table, {"v": EXAMPLE}).rows == 1


def test_a_write_rejects_columns_in_the_legacy_layout(tmp_path: Path):
    """O19. Tables have the current layout."""
    with raises_at(errors.SchemaError, column="v"):
        dv.write_table(
            tmp_path / "t", pa.table({"v": pa.array([EXAMPLE_ROWS[0]], EXAMPLE_TYPE)}), variant_columns=["v"]
        )


# Migration.


def migrated(path: Path) -> list[str | None]:
    return dv.to_json(pq.read_table(path)["v"]).to_pylist()


def test_a_file_is_migrated_by_the_same_schema_and_annotated(tmp_path: Path, old: Path):
    before = old.read_bytes()
    (file,) = dv.migrate_legacy(old, tmp_path / "new.parquet").files
    assert (file.path, file.rows, file.columns) == ("old.parquet", 6, ("v",))
    assert migrated(tmp_path / "new.parquet") == dv.to_json(dv.parse_json(EXAMPLE_JSON)).to_pylist()
    parquet = pq.ParquetFile(tmp_path / "new.parquet")
    assert "v (Variant(1))" in str(parquet.schema)
    shredded = dv.shred(dv.parse_json(EXAMPLE_JSON), EXAMPLE)
    assert pq.read_table(tmp_path / "new.parquet")["v"].combine_chunks().field("typed_value").to_pylist() == (
        shredded.field("typed_value").to_pylist()
    )
    assert old.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["new.parquet", "old.parquet"]


@pytest.mark.parametrize(
    ("shredding", "has_typed_value"),
    [("infer", True), (None, False), (ShreddingSchema.of({"z": pa.int8()}), True)],
)
@pytest.mark.usefixtures("small_files_are_shredded")
def test_a_file_is_migrated_with_another_shredding(
    tmp_path: Path, old: Path, shredding: Any, has_typed_value: bool
):
    dv.migrate_legacy(old, tmp_path / "new.parquet", shredding=shredding)
    assert migrated(tmp_path / "new.parquet") == dv.to_json(dv.parse_json(EXAMPLE_JSON)).to_pylist()
    assert ("typed_value" in str(pq.ParquetFile(tmp_path / "new.parquet").schema)) == has_typed_value


def test_a_migration_keeps_other_columns_and_the_row_order(tmp_path: Path):
    schema = pa.schema(
        [
            pa.field("id", pa.int32(), nullable=False),
            pa.field("s", pa.struct([pa.field("n", pa.decimal128(5, 2), nullable=False)])),
            pa.field("m", pa.map_(pa.string(), pa.list_(pa.field("element", pa.date32())))),
        ]
    )
    rows = [{"id": n, "s": {"n": Decimal(n)}, "m": [("k", [None])]} for n in range(500)]
    table = pa.Table.from_pylist(rows, schema).append_column(
        "v", pa.array([{"untyped_value": ONE}] * 500, leaf(pa.int8()))
    )
    pq.write_table(table, tmp_path / "old.parquet", row_group_size=64, store_schema=False)
    dv.migrate_legacy(tmp_path / "old.parquet", tmp_path / "new.parquet")
    columns = ["id", "s", "m"]
    new = pq.read_table(tmp_path / "new.parquet", columns=columns)
    assert new.equals(pq.read_table(tmp_path / "old.parquet", columns=columns))
    assert not new.schema.field("id").nullable


def test_variants_within_structs_lists_and_maps_are_migrated(tmp_path: Path):
    group = pa.array(EXAMPLE_ROWS[:2], EXAMPLE_TYPE)
    table = pa.table(
        {
            "s": pa.StructArray.from_arrays([group], ["v"]),
            "l": pa.ListArray.from_arrays([0, 1, 2], group),
            "m": pa.MapArray.from_arrays([0, 1, 2], ["k", "k"], group),
        }
    )
    pq.write_table(table, tmp_path / "old.parquet")
    (file,) = dv.migrate_legacy(tmp_path / "old.parquet", tmp_path / "new.parquet").files
    assert file.columns == ("s", "l", "m")
    new = pq.read_table(tmp_path / "new.parquet")
    parts = (
        new["s"].combine_chunks().field("v"),
        new["l"].combine_chunks().values,
        new["m"].combine_chunks().items,
    )
    expected = dv.to_json(dv.parse_json(EXAMPLE_JSON[:2])).to_pylist()
    assert [dv.to_json(part).to_pylist() for part in parts] == [expected] * 3
    assert str(pq.ParquetFile(tmp_path / "new.parquet").schema).count("(Variant(1))") == 3


def test_int96_timestamps_keep_their_year(tmp_path: Path):
    import datetime

    old = datetime.datetime(1000, 2, 3, 4, 5, 6, 7)
    table = pa.table(
        {"t": pa.array([old], pa.timestamp("us")), "v": pa.array([{"untyped_value": ONE}], leaf(pa.int8()))}
    )
    pq.write_table(table, tmp_path / "old.parquet", use_deprecated_int96_timestamps=True, store_schema=False)
    dv.migrate_legacy(tmp_path / "old.parquet", tmp_path / "new.parquet")
    (new,) = pq.read_table(tmp_path / "new.parquet")["t"].to_pylist()
    assert new == old.replace(tzinfo=datetime.timezone.utc)


def test_a_file_without_rows_is_migrated(tmp_path: Path):
    write_legacy_file(
        tmp_path / "old.parquet", pa.table({"v": dv.parse_json(["1"])}).slice(1), {"v": EXAMPLE}
    )
    (file,) = dv.migrate_legacy(tmp_path / "old.parquet", tmp_path / "new.parquet").files
    assert file.rows == 0
    assert "v (Variant(1))" in str(pq.ParquetFile(tmp_path / "new.parquet").schema)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a partitioned folder of legacy files and other files."""
    root = tmp_path / "old"
    for day in (1, 2):
        (root / f"_day={day}" / "hour=0").mkdir(parents=True)
        rows = [json.dumps({"a": day, "b": {"c": str(number)}, "x": number}) for number in range(100)]
        table = pa.table({"id": range(100), "v": dv.parse_json(rows)})
        write_legacy_file(root / f"_day={day}" / "hour=0" / "part-0.parquet", table, {"v": EXAMPLE})
    pq.write_table(pa.table({"id": [7]}), root / "plain.parquet")
    (root / "_SUCCESS").write_text("")
    (root / "_temporary").mkdir()
    (root / "_temporary" / "half.parquet").write_text("PAR1")
    (root / ".part.crc").write_text("")
    (root / "notes.txt").write_text("")
    return root


def test_a_folder_is_migrated_with_equal_values_and_names(tmp_path: Path, folder: Path):
    result = dv.migrate_legacy(folder, tmp_path / "new")
    names = ["_day=1/hour=0/part-0.parquet", "_day=2/hour=0/part-0.parquet", "plain.parquet"]
    assert [file.path for file in result.files] == names
    assert [file.columns for file in result.files] == [("v",), ("v",), ()]
    assert result.others == ("notes.txt",)
    found = sorted(path.relative_to(tmp_path / "new").as_posix() for path in (tmp_path / "new").rglob("*.*"))
    assert found == names
    for name in names[:2]:
        assert (
            migrated(tmp_path / "new" / name)
            == dv.to_json(read_legacy_file(folder / name).read_all()["v"]).to_pylist()
        )
    assert (tmp_path / "new" / names[2]).read_bytes() == (folder / names[2]).read_bytes()


def test_an_empty_folder_can_be_the_target(tmp_path: Path, folder: Path):
    (tmp_path / "new").mkdir()
    dv.migrate_legacy(folder, tmp_path / "new")
    assert (tmp_path / "new" / "plain.parquet").exists()


def test_a_failed_migration_leaves_no_files_and_can_be_repeated(tmp_path: Path, folder: Path):
    bad = folder / "_day=2" / "hour=0" / "part-1.parquet"
    pq.write_table(pa.table({"v": pa.array([{"untyped_value": b"\x02"}], leaf(pa.int8()))}), bad)
    with raises_at(errors.MalformedVariantError, file="_day=2/hour=0/part-1.parquet", row=0):
        dv.migrate_legacy(folder, tmp_path / "new")
    assert os.listdir(tmp_path) == ["old"]
    bad.unlink()
    assert len(dv.migrate_legacy(folder, tmp_path / "new").files) == 3


def test_an_interrupted_migration_leaves_no_file(tmp_path: Path, old: Path, monkeypatch: pytest.MonkeyPatch):
    def interrupted(*_: Any, **__: Any) -> Any:
        assert (tmp_path / ".new.parquet.unfinished" / "old.parquet").exists()
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "link", interrupted)
    with pytest.raises(KeyboardInterrupt):
        dv.migrate_legacy(old, tmp_path / "new.parquet")
    assert os.listdir(tmp_path) == ["old.parquet"]


def test_the_folder_of_a_killed_migration_is_reported(tmp_path: Path, old: Path):
    (tmp_path / ".new.parquet.unfinished").mkdir()
    with pytest.raises(
        errors.DataFileError, match=r"\.new\.parquet\.unfinished exists already: .*delete the folder"
    ):
        dv.migrate_legacy(old, tmp_path / "new.parquet")


def test_an_existing_target_is_not_replaced(tmp_path: Path, old: Path, folder: Path):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").write_text("mine")
    for source, target in (
        (old, tmp_path / "taken" / "file"),
        (folder, tmp_path / "taken"),
        (old, tmp_path / "taken"),
    ):
        with pytest.raises(errors.DataFileError, match="exists already"):
            dv.migrate_legacy(source, target)
    assert (tmp_path / "taken" / "file").read_text() == "mine"


def test_a_target_within_the_source_is_rejected(folder: Path):
    for target in (folder, folder / "new"):
        with pytest.raises(errors.DataFileError, match="is within the source"):
            dv.migrate_legacy(folder, target)


def test_an_invalid_source_is_rejected(tmp_path: Path):
    with pytest.raises(errors.DataFileError, match="there is no file or folder"):
        dv.migrate_legacy(tmp_path / "none", tmp_path / "new")
    (tmp_path / "empty").mkdir()
    with pytest.raises(errors.DataFileError, match=r"no files with names that end in \.parquet"):
        dv.migrate_legacy(tmp_path / "empty", tmp_path / "new")
    pq.write_table(pa.table({"id": [1]}), tmp_path / "plain.parquet")
    with pytest.raises(errors.DataFileError, match="nothing to migrate"):
        dv.migrate_legacy(tmp_path / "plain.parquet", tmp_path / "new")
    dv.write_table(tmp_path / "table", pa.table({"id": [1]}))
    with pytest.raises(errors.DataFileError, match="contains a Delta table"):
        dv.migrate_legacy(tmp_path / "table", tmp_path / "new")
    with pytest.raises(ValueError, match="shredding: expected one of 'same', 'infer', None"):
        dv.migrate_legacy(tmp_path / "plain.parquet", tmp_path / "new", shredding="all")


def test_compat_applies_to_the_files_of_a_migration(tmp_path: Path):
    rows = pa.array([{"untyped_value": NULL, "typed_value": 1}], leaf(pa.int64()))
    pq.write_table(pa.table({"v": rows}), tmp_path / "old.parquet")
    with raises_at(errors.ConflictingValueError, file="old.parquet", row=0):
        dv.migrate_legacy(tmp_path / "old.parquet", tmp_path / "new.parquet")
    dv.migrate_legacy(tmp_path / "old.parquet", tmp_path / "new.parquet", compat=True)
    assert migrated(tmp_path / "new.parquet") == ["null"]


# The command line.


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as stopped:
        main([str(argument) for argument in arguments])
    return int(stopped.value.code or 0)


def test_the_command_prints_a_summary(tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]):
    assert run("migrate", folder, tmp_path / "new") == 0
    out = capsys.readouterr().out
    assert "2 files with 200 rows in the current layout" in out
    assert "1 file had no column in the older layout: copied" in out
    assert "_day=1/hour=0/part-0.parquet" in out


def test_the_command_prints_json(tmp_path: Path, old: Path, capsys: pytest.CaptureFixture[str]):
    assert run("migrate", old, tmp_path / "new.parquet", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["rows"], report["files"][0]["columns"], report["others"]) == (6, ["v"], [])
    assert report["bytes"] == (tmp_path / "new.parquet").stat().st_size


def test_the_command_exits_with_2_and_an_error(tmp_path: Path, old: Path, capsys: pytest.CaptureFixture[str]):
    assert run("migrate", old, old) == 2
    assert "is within the source" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["inspect", "stats"])
def test_inspect_and_stats_name_the_migrate_command(
    old: Path, command: str, capsys: pytest.CaptureFixture[str]
):
    assert run(command, old) == 2
    assert "old.parquet: column 'v' is shredded in the legacy Spark layout" in capsys.readouterr().err


def test_each_public_name_of_the_package_has_a_docstring():
    assert all(getattr(legacy, name).__doc__ for name in legacy.__all__)
