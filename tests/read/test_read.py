"""`read_table`: select columns and rows, from files of every layout."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.archives import unpack_spark_table
from support.errors import raises_at
from support.locations import list_corpus

import delta_variant as dv
from delta_variant.errors import (
    CastError,
    ConflictingValueError,
    DataFileError,
    ExpressionError,
    MalformedVariantError,
    SchemaError,
    StoreError,
    TableNotFoundError,
    VersionNotFoundError,
)

EVENTS = ['{"n":1,"s":"one"}', '{"n":2,"o":{"x":[10,20]}}', '{"n":"three"}', "null", None]
VARIANT_METADATA = {b"ARROW:extension:name": b"arrow.parquet.variant", b"ARROW:extension:metadata": b""}


def table_of(texts: list[str | None]) -> pa.Table:
    return pa.table({"id": range(len(texts)), "event": pa.array(texts, pa.json_())})


def read(table: Any, columns: Any = None, **options: Any) -> list[dict[str, Any]]:
    """Return rows as Python objects in reading order."""
    rows: list[dict[str, Any]] = dv.read_table(table, columns=columns, **options).to_table().to_pylist()
    return rows


@pytest.fixture(params=["infer", None], ids=["shredded", "unshredded"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a table of EVENTS, shredded or not: readers see no difference (VariantShredding.md)."""
    dv.write_table(tmp_path / "t", table_of(EVENTS), shredding=request.param)
    return tmp_path / "t"


# Columns.


def test_all_columns_come_by_default_and_variants_are_marked(table: Path):
    scan = dv.read_table(table)
    assert scan.schema.names == ["id", "event"]
    assert scan.schema.field("event").metadata == VARIANT_METADATA
    binary = {part.name: part.type for part in scan.schema.field("event").type}
    assert binary == {"metadata": pa.binary(), "value": pa.binary()}
    rows = scan.to_table()
    assert rows.column("id").to_pylist() == [0, 1, 2, 3, 4]
    assert dv.to_json(rows.column("event")).to_pylist() == EVENTS


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"s": "event:s::string"}, [{"s": "one"}, *[{"s": None}] * 4]),
        (["event:s::string as s"], [{"s": "one"}, *[{"s": None}] * 4]),
        ({"x": "event:o.x[1]::int"}, [{"x": None}, {"x": 20}, *[{"x": None}] * 3]),
        ({"n": "event:n::string"}, [{"n": "1"}, {"n": "2"}, {"n": "three"}, {"n": None}, {"n": None}]),
        (
            {"n": "try_cast(event:n as bigint)", "id": "id"},
            [{"n": n, "id": id_} for id_, n in enumerate([1, 2, None, None, None])],
        ),
        ({"j": "to_json(event:o)"}, [{"j": None}, {"j": '{"x":[10,20]}'}, *[{"j": None}] * 3]),
        ({"twice": "id * 2"}, [{"twice": 2 * number} for number in range(5)]),
        ({"x": "try_variant_get(event, '$.n', 'int')"}, [{"x": n} for n in (1, 2, None, None, None)]),
    ],
)
def test_columns_are_expressions_over_columns_and_paths(columns: Any, expected: Any, table: Path):
    assert read(table, columns) == expected


def test_a_path_without_a_cast_is_a_variant(table: Path):
    rows = dv.read_table(table, columns={"n": "event:n"}).to_table()
    assert rows.schema.field("n").metadata == VARIANT_METADATA
    assert dv.to_json(rows.column("n")).to_pylist() == ["1", "2", '"three"', None, None]


@pytest.mark.parametrize("columns", [[], {}])
def test_no_columns_still_count_the_rows(columns: Any, table: Path):
    rows = dv.read_table(table, columns=columns).to_table()
    assert (rows.num_rows, rows.num_columns) == (5, 0)
    assert dv.read_table(table, columns=columns, where="id > 2").to_table().num_rows == 2


def test_one_column_may_be_read_twice_under_two_names(table: Path):
    assert read(table, {"a": "id", "b": "id"})[4] == {"a": 4, "b": 4}


@pytest.mark.parametrize(("columns", "name"), [(["nothing"], "nothing"), ({"x": "id:n::int"}, "id")])
def test_an_unknown_column_and_a_path_of_a_scalar_are_rejected(columns: Any, name: str, table: Path):
    with raises_at(ExpressionError, column=name):
        dv.read_table(table, columns=columns)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"x": "event:n::"}, "event:n::"),
        (["event:n::nonsense as x"], "(?i)nonsense"),
        ({"x": "no_such_function(id)"}, "(?i)no_such_function"),
    ],
)
def test_an_invalid_expression_is_rejected_before_reading(columns: Any, sentence: str, table: Path):
    with pytest.raises(ExpressionError, match=sentence):
        dv.read_table(table, columns=columns)


def test_a_value_that_cannot_be_cast_is_an_error_that_names_file_row_and_path(table: Path):
    (added,) = dv.load_snapshot(table).files.column("path").to_pylist()
    with pytest.raises(CastError, match="three") as caught:
        read(table, {"n": "event:n::bigint"})
    assert str(caught.value).startswith(f"{added}")
    assert "row 2" in str(caught.value)
    assert "path $['n']" in str(caught.value)
    assert "try_variant_get" in str(caught.value)


# Predicates.


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("id >= 3", [3, 4]),
        ("event:s::string = 'one'", [0]),
        ("try_cast(event:n as int) > 1", [1]),
        ("event:o.x[0]::int = 10 and id = 1", [1]),
        ("event is null", [4]),
        ("event is not null", [0, 1, 2, 3]),
        ("event:n is null", [3, 4]),
        ("event:s::string = 'one' or id = 4", [0, 4]),
        ("not (id < 4)", [4]),
        ("event:s::string in ('one', 'two')", [0]),
        ("event:s::string like 'o%'", [0]),
        ("id is null", []),
        ("true", [0, 1, 2, 3, 4]),
        ("null", []),
    ],
)
def test_where_keeps_the_rows_for_which_it_is_true(where: str, expected: list[int], table: Path):
    assert [row["id"] for row in read(table, ["id"], where=where)] == expected


@pytest.mark.parametrize("column", ["m", "s", "s.m", "l"])
def test_nested_columns_of_any_type_are_tested_for_null(tmp_path: Path, column: str):
    kind = pa.map_(pa.int64(), pa.string())
    nested = {"id": pa.int64(), "m": kind, "s": pa.struct({"m": kind}), "l": pa.list_(kind)}
    rows = [{"id": 1, "m": [(1, "x")], "s": {"m": [(1, None)]}, "l": [[(1, "x")]]}, {"id": 2}]
    dv.write_table(tmp_path / "t", pa.Table.from_pylist(rows, schema=pa.schema(nested)))
    assert read(tmp_path / "t", ["id"], where=f"{column} is not null") == [{"id": 1}]
    assert dv.update(tmp_path / "t", {"id": "7"}, f"{column} is null").rows_updated == 1
    assert [row["id"] for row in read(tmp_path / "t")] == [1, 7]


MIXED = ['{"kind":"a","n":7}', '{"kind":"b","n":"none"}', '{"kind":"a","n":9}', None]


@pytest.mark.parametrize("shredding", ["infer", None])
@pytest.mark.parametrize(
    ("columns", "where", "expected"),
    [
        ("event:n::bigint", "event:kind::string = 'a'", [7, 9]),
        ("event:n::bigint + id", "id <> 1", [7, 11, None]),
        ("id", "event:kind::string = 'a' and event:n::bigint > 7", [2]),
        ("id", "id = 3 or event:kind::string = 'b' or event:n::bigint > 7", [1, 2, 3]),
        ("id", "not (event:kind::string = 'b' or event:n::bigint > 7)", [0]),
        ("id", "id <> 2 and 10 / (id - 2) < 0", [0, 1]),
        ("id = 1 or event:n::bigint = 9", None, [False, True, True, None]),
    ],
)
def test_rows_that_a_condition_leaves_out_are_not_cast(tmp_path: Path, columns, where, expected, shredding):
    dv.write_table(tmp_path, table_of(MIXED), shredding=shredding)
    found = read(tmp_path, columns={"found": columns}, where=where)
    assert [row["found"] for row in found] == expected


def test_rows_before_the_one_that_is_not_cast_come_once(tmp_path: Path):
    texts: list[str | None] = [f'{{"n":{row}}}' for row in range(300_000)]
    texts[200_000] = '{"n":"none"}'
    dv.write_table(tmp_path, table_of(texts))
    found = dv.read_table(tmp_path, columns={"n": "event:n::bigint"}, where="id <> 200000").to_table()
    assert found["n"].to_pylist() == [row for row in range(300_000) if row != 200_000]
    with pytest.raises(CastError, match='cannot cast "none"') as caught:
        read(tmp_path, columns={"n": "event:n::bigint"}, where="id > 7")
    error = caught.value
    assert (error.row, error.column, error.path) == (200_000, "event", "$['n']")
    assert str(error.file).endswith(".parquet")


def test_a_predicate_may_read_columns_that_are_not_returned(table: Path):
    assert read(table, {"n": "event:n::string"}, where="id = 2") == [{"n": "three"}]


@pytest.mark.parametrize("where", ["id +", "nothing = 1", "id", "event:s::string"])
def test_a_predicate_that_is_not_boolean_is_rejected_before_reading(where: str, table: Path):
    with pytest.raises(ExpressionError):
        dv.read_table(table, where=where)


def test_conditions_and_columns_may_be_partition_values(tmp_path: Path):
    data = table_of(["1", "2", "3"]).append_column(
        "day", pa.array([date(2024, 1, 1), date(2024, 1, 2), None])
    )
    dv.write_table(tmp_path / "t", data, partition_by="day")
    assert read(tmp_path / "t", ["id", "day"], where="day = date '2024-01-02'") == [
        {"id": 1, "day": date(2024, 1, 2)}
    ]
    assert read(tmp_path / "t", ["day"], where="event::int = 3") == [{"day": None}]
    assert read(tmp_path / "t", ["id"], where="day is null") == [{"id": 2}]
    only = dv.read_table(tmp_path / "t", columns=["day"]).to_table()
    assert (only.num_rows, only.schema.field("day").type) == (3, pa.date32())


# Versions, snapshots and locations.


def test_an_older_version_has_the_rows_and_the_columns_of_its_time(tmp_path: Path):
    dv.write_table(tmp_path / "t", table_of(["1"]))
    wider = table_of(["2"]).append_column("more", pa.array(["x"]))
    dv.write_table(tmp_path / "t", wider, mode="append", schema_mode="merge")
    assert dv.read_table(tmp_path / "t", version=0).to_table().column_names == ["id", "event"]
    assert len(read(tmp_path / "t", ["id"], version=0)) == 1
    assert sorted(row["more"] or "" for row in read(tmp_path / "t", ["more"])) == ["", "x"]
    with raises_at(VersionNotFoundError, version=2):
        dv.read_table(tmp_path / "t", version=2)


def test_a_snapshot_is_read_as_it_was_loaded(table: Path):
    snapshot = dv.load_snapshot(table)
    dv.write_table(table, table_of(["1"]), mode="append")
    assert len(read(snapshot, ["id"])) == 5
    assert len(read(table, ["id"])) == 6


def test_a_table_is_a_path_a_uri_or_an_object_with_a_uri(table: Path):
    from deltalake import DeltaTable

    for place in (table, str(table), table.as_uri(), DeltaTable(table)):
        assert len(read(place, ["id"])) == 5


def test_no_table_is_an_error(tmp_path: Path):
    with raises_at(TableNotFoundError, table=str(tmp_path / "nothing")):
        dv.read_table(tmp_path / "nothing")


# Files.


def test_a_column_that_a_file_does_not_have_is_null(tmp_path: Path):
    """Files written before the column was added."""
    dv.write_table(tmp_path / "t", pa.table({"id": [9]}))
    dv.write_table(tmp_path / "t", table_of(EVENTS[:1]), mode="append", schema_mode="merge")
    columns = {"id": "id", "n": "event:n::int", "j": "to_json(event)"}
    rows = sorted(read(tmp_path / "t", columns), key=lambda row: row["id"])
    assert rows == [{"id": 0, "n": 1, "j": '{"n":1,"s":"one"}'}, {"id": 9, "n": None, "j": None}]


@pytest.mark.parametrize("where", [None, "id % 10 in (0, 9)", "id > 69990"])
def test_names_that_only_late_rows_need_are_read_from_there_on(tmp_path: Path, where: str | None):
    texts: list[str | None] = ['{"k":1}'] * 150_000
    for row in (70_000, 149_999):
        texts[row] = '{"k":{"name":"x"}}'
    dv.write_table(tmp_path, table_of(texts))
    found = dv.read_table(tmp_path, columns={"id": "id", "k": "event:k::string"}, where=where).to_table()
    tests = {None: range(150_000), "id > 69990": range(69_991, 150_000)}
    ids = list(tests.get(where, [row for row in range(150_000) if row % 10 in (0, 9)]))
    assert found["id"].to_pylist() == ids
    assert found["k"].to_pylist() == ['{"name":"x"}' if row in (70_000, 149_999) else "1" for row in ids]


def test_files_shredded_in_different_ways_are_one_table(tmp_path: Path):
    """Each file has its own shredding schema, or none."""
    schemas: list[Any] = [
        "infer",
        None,
        dv.ShreddingSchema.of({"n": pa.int64()}),
        dv.ShreddingSchema.of({"n": pa.string(), "o": {"x": [pa.int64()]}}),
        dv.ShreddingSchema.of(pa.bool_()),
    ]
    for shredding in schemas:
        dv.write_table(tmp_path / "t", table_of(EVENTS), mode="append", shredding=shredding)
    rows = read(tmp_path / "t", {"id": "id", "j": "to_json(event)"})
    assert [row["j"] for row in rows] == EVENTS * len(schemas)
    counted = read(tmp_path / "t", {"x": "event:o.x[1]::int"}, where="event:o.x[1]::int = 20")
    assert counted == [{"x": 20}] * len(schemas)


VARIANT_FIELD = {b"ARROW:extension:name": b"arrow.parquet.variant"}


def nested(texts: list[str | None]) -> dict[str, pa.Array]:
    """Return Variants in Spark's order (`value` first) within a struct, a list and a map."""
    parsed = dv.parse_json(texts)
    parts = [parsed.field("value"), parsed.field("metadata")]
    variants = pa.StructArray.from_arrays(parts, ["value", "metadata"], mask=parsed.is_null())
    field = pa.field("v", variants.type, metadata=VARIANT_FIELD)
    ends = pa.array([*range(len(texts)), len(texts)], pa.int32())
    keys = pa.array([str(number) for number in range(len(texts))])
    return {
        "struct": pa.StructArray.from_arrays([variants], fields=[field]),
        "list": pa.ListArray.from_arrays(ends, variants, type=pa.list_(field.with_name("element"))),
        "map": pa.MapArray.from_arrays(
            ends, keys, variants, type=pa.map_(pa.string(), field.with_name("value"))
        ),
    }


@pytest.mark.parametrize("kind", ["struct", "list", "map"])
def test_variants_within_other_columns_come_back(kind: str, tmp_path: Path):
    """PROTOCOL.md, "Variant Data Type": Variants in structs, arrays and map values."""
    data = pa.table({"c": nested(EVENTS)[kind]})
    for rows in (data, data.slice(2)):
        dv.write_table(tmp_path / "t", rows, mode="append", shredding=None)
    found = dv.read_table(tmp_path / "t").to_table().column("c").to_pylist()
    assert found == [*data.column("c").to_pylist(), *data.slice(2).column("c").to_pylist()]


def test_paths_lead_into_variants_within_structs(tmp_path: Path):
    dv.write_table(tmp_path / "t", pa.table({"s": nested(EVENTS)["struct"]}))
    assert read(tmp_path / "t", {"n": "s.v:n::string"}, where="s.v:s::string = 'one'") == [{"n": "1"}]


def only_file(table: Path) -> Path:
    (added,) = dv.load_snapshot(table).files.column("path").to_pylist()
    return table / added


def replace_file(table: Path, data: pa.Table) -> None:
    pq.write_table(data, only_file(table), row_group_size=2)


def shredded(value: list[bytes | None], typed: list[int | None]) -> pa.Table:
    """Return Variants shredded as int64, built without the library."""
    parts = [
        pa.array([b"\x01\x00\x00"] * len(value)),
        pa.array(value, pa.binary()),
        pa.array(typed, pa.int64()),
    ]
    group = pa.StructArray.from_arrays(parts, ["metadata", "value", "typed_value"])
    return pa.table({"id": range(len(value)), "event": group})


def test_files_without_the_annotation_are_read(table: Path):
    """Spark 4.0 does not write the annotation (docs/audit-rules.md, P-S2)."""
    replace_file(table, shredded([None, b"\x0c\x07", None], [5, None, 6]))
    assert read(table, {"x": "event::bigint"}) == [{"x": 5}, {"x": 7}, {"x": 6}]


def test_a_value_missing_in_both_columns_at_the_top_is_variant_null(table: Path):
    """VariantShredding.md, "Value Shredding": readers must return Variant null."""
    replace_file(table, shredded([None], [None]))
    assert read(table, {"j": "to_json(event)"}) == [{"j": "null"}]


def test_conflicting_values_are_an_error_or_the_typed_one(table: Path):
    """An error has file and row; `on_conflict="typed"` reads what parquet-testing expects."""
    replace_file(table, shredded([None, None, None, b"\x0c\x07"], [1, 2, 3, 4]))
    name = only_file(table).name
    with pytest.raises(ConflictingValueError) as caught:
        read(table, {"j": "to_json(event)"})
    assert (caught.value.file, caught.value.row, caught.value.column) == (name, 3, "event")
    assert caught.value.path is not None
    assert read(table, {"j": "to_json(event)"}, on_conflict="typed")[3] == {"j": "4"}


def test_malformed_bytes_are_an_error_that_names_file_and_row(table: Path):
    replace_file(table, shredded([None, None, b"\x0c"], [1, 2, None]))
    with raises_at(MalformedVariantError, file=only_file(table).name, row=2, column="event"):
        read(table, {"j": "to_json(event)"})


def test_a_file_that_is_not_parquet_is_an_error_with_its_path(table: Path):
    file = only_file(table)
    for data in (b"", b"no parquet at all", file.read_bytes()[:-20]):
        file.write_bytes(data)
        with pytest.raises(DataFileError, match=f"^{file.name}: "):
            read(table)


def test_a_missing_file_is_an_error_with_its_path(table: Path):
    file = only_file(table)
    file.unlink()
    with pytest.raises((DataFileError, StoreError), match=file.name):
        read(table)


def test_only_files_with_the_right_field_ids_fill_columns_mapped_by_id(tmp_path: Path):
    """PROTOCOL.md, Reader Requirements for Column Mapping: ids that a file does not have are null."""
    dv.write_table(tmp_path / "t", table_of(["1"]), configuration={"delta.columnMapping.mode": "id"})
    file = only_file(tmp_path / "t")
    names = pq.ParquetFile(file).schema_arrow.names
    with_ids = pa.schema(
        [
            pa.field("renamed", pa.int64(), metadata={"PARQUET:field_id": "1"}),
            pa.field(names[1], pa.int64(), metadata={"PARQUET:field_id": "77"}),
        ]
    )
    pq.write_table(pa.table([[5], [6]], schema=with_ids), file)
    assert read(tmp_path / "t") == [{"id": 5, "event": None}]


# Tables that other engines wrote.


def test_the_checkpointed_table_of_nested_variants_is_read(corpora: Path):
    """Delta's golden table; its info.txt has the query that wrote it: `{"key": id}` everywhere."""
    rows = read(corpora / "delta-golden/spark-variant-checkpoint")
    # 100 rows, and two appends of the rows 0 and 1.
    assert sorted(row["id"] for row in rows) == sorted([*range(100), 0, 1])

    def text(variant: dict[str, bytes] | None) -> str | None:
        return None if variant is None else dv.Variant(variant["metadata"], variant["value"]).to_json()

    for row in rows:
        expected = f'{{"key":{row["id"]}}}'
        assert text(row["v"]) == expected
        assert list(map(text, row["array_of_variants"])) == [expected, None, expected, None, expected]
        assert text(row["struct_of_variants"]["v"]) == expected
        assert {key: text(value) for key, value in row["map_of_variants"]} == {
            str(row["id"]): expected,
            "nullKey": None,
        }
        structs = [each and text(each["v"]) for each in row["array_of_struct_of_variants"]]
        assert structs == [expected, None, None, expected, None, expected]
        assert list(map(text, row["struct_of_array_of_variants"]["v"])) == [None, expected]


def test_the_shredded_table_of_databricks_is_read(corpora: Path):
    columns = {
        "i": "i",
        "id": "v:id::int",
        "name": "v:name::int",
        "nid": "nv.v:id::int",
        "nname": "nv.v:name::int",
    }
    rows = sorted(
        read(corpora / "delta-golden/variant-stats-no-checkpoint", columns), key=lambda row: row["id"]
    )
    assert [row["id"] for row in rows] == list(range(10))
    assert [row["name"] for row in rows] == [10 - number for number in range(10)]
    assert [row["i"] for row in rows] == [100 + number for number in range(10)]
    assert [row["nid"] for row in rows] == [10 + number for number in range(10)]
    assert [row["nname"] for row in rows] == [20 - number for number in range(10)]


def test_files_with_percent_signs_in_their_names_are_read(corpora: Path):
    columns = {"key": "v:key::int", "i": "s.i", "j": "s.j"}
    rows = sorted(
        read(corpora / "delta-golden/variant-stats-with-struct-no-checkpoint", columns),
        key=lambda row: row["i"],
    )
    assert rows == [{"key": 200 + n, "i": 200 + n, "j": f"str_{200 + n}"} for n in range(10)]


# Each table was written for one feature; the names of the tables are those of the corpus.
SPARK_TABLES = [path.name.removesuffix(".tar.gz") for path in list_corpus("delta-spark/*.tar.gz")]


@pytest.mark.usefixtures("corpora")
def test_the_tables_of_spark_are_all_there():
    assert len(SPARK_TABLES) == 19


@pytest.mark.parametrize("name", SPARK_TABLES)
def test_a_table_of_spark_has_all_rows_that_are_not_deleted(name: str, corpora: Path, tmp_path: Path):
    """Compare the number of rows with the Parquet footers; tests/interop compares the values with Spark."""
    root = unpack_spark_table(corpora, name, tmp_path)
    files = dv.load_snapshot(root).files
    paths = files.column("path").to_pylist()
    rows = sum(pq.ParquetFile(root / path).metadata.num_rows for path in paths)
    deleted = sum(each["cardinality"] for each in files.column("deletion_vector").to_pylist() if each)
    found = dv.read_table(root).to_table()
    assert found.num_rows == rows - deleted > 0


@pytest.mark.parametrize("mode", ["name", "id"])
def test_an_error_names_the_column_as_the_table_does(tmp_path: Path, mode: str):
    rows = pa.table({"n": [{"i": 1, "l": [{"j": 2}]}], "v": ['{"a": 1}']})
    mapped = {"delta.columnMapping.mode": mode}
    dv.write_table(tmp_path / "t", rows, variant_columns=["v"], configuration=mapped)
    (file,) = (tmp_path / "t").glob("*.parquet")
    good = pq.read_table(file)

    def damage(column: int, value: Any) -> None:
        field = good.schema.field(column)
        # Fields are found by their ids, which are in the metadata.
        damaged = pa.struct(
            [each.with_metadata(field.type.field(each.name).metadata) for each in pa.array([value]).type]
        )
        column_values = pa.array([value], damaged)
        pq.write_table(good.set_column(column, field.with_type(damaged), column_values), file)

    damage(1, {"metadata": b"\x01\x00\x00", "value": b"\x0c"})
    with raises_at(MalformedVariantError, column="v", file=file.name) as caught:
        dv.read_table(tmp_path / "t", columns={"a": "v:a::int"}).to_table()
    assert "col-" not in str(caught.value)
    with raises_at(MalformedVariantError, column="v"):
        dv.read_table(tmp_path / "t").to_pylist()
    names = [part.name for part in good.schema.field(0).type]
    damage(0, {names[0]: "x", names[1]: None})
    with raises_at(SchemaError, "cannot be read as long without loss", column="n.i") as error:
        dv.read_table(tmp_path / "t").to_table()
    assert "col-" not in str(error.value)
