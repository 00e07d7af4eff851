"""`Scan.to_dataset` and `Scan.to_lazyframe`: what engines push into a scan, and what it reads."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import dataset as arrow_dataset

import delta_variant as dv
from delta_variant.errors import CastError
from delta_variant.expressions.arrow_filter import ArrowFilter
from delta_variant.expressions.tree import describe
from delta_variant.read.scope import Scope

COLUMNS = {"id": "id", "day": "day", "user": "event:user.id::bigint", "type": "event:type::string"}
SHREDDING = dv.ShreddingSchema.of({"user": {"id": pa.int64()}, "type": pa.string()})
FEED = {"delta.enableChangeDataFeed": "true"}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return a table of two files with two rows each."""
    for first, users in ((0, (10, 11)), (2, (20, 21))):
        rows = [
            {"id": first + n, "day": f"d{first}", "event": {"user": {"id": user}, "type": "ab"[n]}}
            for n, user in enumerate(users)
        ]
        configuration = None if first else FEED
        dv.write_table(
            tmp_path / "t",
            rows,
            mode="append",
            variant_columns=["event"],
            shredding=SHREDDING,
            partition_by="day",
            configuration=configuration,
        )
    return tmp_path / "t"


def append_text_as_user(table: Path) -> None:
    """Append a row whose user cannot be cast to the type of its column."""
    row = {"id": 4, "day": "d4", "event": {"user": {"id": "x"}, "type": "b"}}
    dv.write_table(table, [row], mode="append")


def dataset_of(table: Path, **options: Any) -> Any:
    return dv.read_table(table, **{"columns": COLUMNS, **options}).to_dataset()


# The methods of a dataset.


def test_a_dataset_names_its_table_and_columns(tmp_path: Path):
    dv.write_table(tmp_path, pa.table({"id": [1]}))
    text = f"<ScanDataset of {tmp_path} at version 0: id>"
    assert repr(dv.read_table(tmp_path).to_dataset()) == text


def test_a_scan_is_a_dataset_of_pyarrow(table: Path):
    dataset = dataset_of(table)
    assert isinstance(dataset, arrow_dataset.Dataset)
    assert dataset.schema == dv.read_table(table, columns=COLUMNS).schema
    assert dataset.to_table(columns=["type", "id"]).to_pylist()[:2] == [
        {"type": "a", "id": 0},
        {"type": "b", "id": 1},
    ]
    assert dataset.to_table(columns={"next": pc.field("id") + 1}).to_pylist()[0] == {"next": 1}
    assert [batch.num_rows for batch in dataset.to_batches(columns=["id"], batch_size=1)] == [1, 1, 1, 1]
    assert dataset.take([3, 0], columns=["id"]).to_pylist() == [{"id": 3}, {"id": 0}]


def test_columns_of_strings_are_read_as_dictionaries(table: Path):
    # The first files store dictionaries. This one has the text in `value`, and a null.
    events = [{"event": {"type": "b"}}, {"event": {"type": None}}, {"event": {"type": ["x"]}}]
    rows = [{"id": 4 + n, "day": "d4", **event} for n, event in enumerate(events)]
    dv.write_table(table, rows, mode="append", shredding=None)
    columns = {**COLUMNS, "type": "try_cast(event:type as string)", "label": "coalesce(day, '-')"}
    scan = dv.read_table(table, columns=columns)
    dataset = scan.to_dataset(read_dictionary=["type", "day", "label"])
    text = pa.dictionary(pa.int32(), pa.string())
    assert dataset.schema.types == [pa.int64(), text, pa.int64(), text, text]
    assert dataset.to_table().schema == dataset.schema
    assert dataset.to_table().to_pylist() == scan.to_pylist()
    assert dataset.count_rows(pc.field("type") == "b") == 3
    assert [part.count_rows() for part in dataset.get_fragments(pc.field("day") == "d2")] == [2]
    query = "select type, count(*) from dataset group by type order by type nulls first"
    assert duckdb.sql(query).fetchall() == [(None, 1), ('["x"]', 1), ("a", 2), ("b", 3)]


def test_dictionaries_do_not_depend_on_rows_that_a_predicate_excludes(table: Path):
    append_text_as_user(table)
    where = "id < 4 and event:user.id::bigint >= 11 and event:type::string = 'b'"
    scan = dv.read_table(table, columns={"type": "event:type::string"}, where=where)
    assert scan.to_dataset("type").to_table().to_pylist() == [{"type": "b"}, {"type": "b"}]


def test_strings_of_parts_of_variants_are_dictionaries(tmp_path: Path):
    rows = [{"event": {"items": [{"k": "x"}, {"k": "y"}]}}, {"event": {"items": [{"k": "x"}]}}]
    dv.write_table(tmp_path / "t", rows, variant_columns=["event"])
    lateral = "variant_explode(event:items) as item"
    scan = dv.read_table(tmp_path / "t", columns={"k": "item.value:k::string"}, lateral=lateral)
    assert scan.to_dataset("k").to_table().to_pylist() == [{"k": "x"}, {"k": "y"}, {"k": "x"}]
    assert scan.to_lazyframe().collect().to_dicts() == [{"k": "x"}, {"k": "y"}, {"k": "x"}]


def test_columns_of_strings_are_read_as_views(table: Path):
    # Few of the rows have one of many values, a file has the text in `value`, and another lacks the path.
    many = [{"id": 4 + n, "day": "d4", "event": {"type": f"a long text, number {n}"}} for n in range(300)]
    dv.write_table(table, many, mode="append", shredding=SHREDDING)
    events = [{"event": {"type": None}}, {"event": {"type": ["x"]}}, {"event": None}]
    others = [{"id": 304 + n, "day": "d5", **event} for n, event in enumerate(events)]
    dv.write_table(table, others, mode="append", shredding=None)
    columns = {**COLUMNS, "type": "try_cast(event:type as string)", "label": "coalesce(day, '-')"}
    scan = dv.read_table(table, columns=columns)
    dataset = scan.to_dataset("label", string_views=True)
    text = pa.dictionary(pa.int32(), pa.string())
    assert dataset.schema.types == [pa.int64(), pa.string_view(), pa.int64(), pa.string_view(), text]
    assert dataset.to_table().schema == dataset.schema
    assert dataset.to_table().to_pylist() == scan.to_pylist()
    found = dataset.to_table(columns=["type", "label"], filter=pc.starts_with(pc.field("day"), "d0"))
    assert found.to_pylist() == [{"type": "a", "label": "d0"}, {"type": "b", "label": "d0"}]
    assert found.schema.types == [pa.string_view(), text]
    few = dv.read_table(table, columns=columns, where="id in (0, 7, 303, 305)")
    found = few.to_dataset(string_views=True).to_table()["type"].to_pylist()
    assert found == ["a", "a long text, number 3", "a long text, number 299", '["x"]']
    query = "select count(distinct type), max(type) from views"
    views = scan.to_dataset(string_views=True)
    assert duckdb.sql(query).fetchall() == [(303, "b")]
    del views


def test_views_do_not_depend_on_rows_that_a_predicate_excludes(table: Path):
    append_text_as_user(table)
    where = "id < 4 and event:user.id::bigint >= 11 and event:type::string = 'b'"
    scan = dv.read_table(table, columns={"type": "event:type::string"}, where=where)
    assert scan.to_dataset(string_views=True).to_table().to_pylist() == [{"type": "b"}, {"type": "b"}]


@pytest.mark.parametrize(
    "condition",
    [
        pc.field("type") == "b",
        (pc.field("user") > 10) & pc.field("type").is_valid(),
        (pc.field("user") > 10) | pc.field("type").isin(["b", "c"]),
        pc.field("type").is_null() & (pc.field("day") != "d2"),
        pc.field("at") >= 0.5,
        pc.starts_with(pc.field("day"), "d"),
    ],
    ids=str,
)
def test_a_fragment_selects_the_rows_that_pyarrow_selects(condition: pc.Expression, table: Path):
    append_text_as_user(table)
    rows = [
        {"id": 5, "day": None, "event": {"at": math.nan}},
        {"id": 6, "day": "d2", "event": {"at": 0.5, "type": "a"}},
    ]
    dv.write_table(table, rows, mode="append")
    columns = {"user": "try_cast(event:user.id as bigint)", "at": "event:at::double"}
    dataset = dv.read_table(table, columns={**COLUMNS, **columns}).to_dataset()
    in_memory = arrow_dataset.dataset(dataset.to_table())
    expected = in_memory.to_table(columns=["type", "id"], filter=condition).to_pylist()
    parts = [part.scanner(columns=["type", "id"], filter=condition) for part in dataset.get_fragments()]
    assert [row for part in parts for row in part.to_table().to_pylist()] == expected
    assert [part.projected_schema.names for part in parts] == [["type", "id"]] * len(parts)


def test_filters_on_views_select_rows_in_fragments(table: Path):
    dataset = dv.read_table(table, columns=COLUMNS).to_dataset(string_views=True)
    for condition in (pc.field("type") == "b", pc.field("type").isin(["b", "c"])):
        parts = [part.scanner(columns=["id"], filter=condition) for part in dataset.get_fragments()]
        assert [row["id"] for part in parts for row in part.to_table().to_pylist()] == [1, 3]
        assert sum(part.count_rows() for part in parts) == 2
        counted = [part.scanner(columns=[], filter=condition) for part in dataset.get_fragments()]
        assert sum(batch.num_rows for part in counted for batch in part.to_batches()) == 2
        assert dataset.count_rows(filter=condition) == 2
    assert dataset.count_rows(filter=pc.starts_with(pc.field("type"), "b")) == 2


def test_only_columns_of_strings_are_dictionaries(table: Path):
    scan = dv.read_table(table, columns=COLUMNS)
    with pytest.raises(
        ValueError, match=r"expected a column of strings, got 'user': the scan has 'day', 'type'$"
    ):
        scan.to_dataset(read_dictionary=["user"])
    with pytest.raises(dv.ArgumentTypeError, match="read_dictionary"):
        scan.to_dataset(read_dictionary={"type": True})  # type: ignore[arg-type]


def test_a_dataset_can_be_read_many_times_and_stays_at_its_version(table: Path):
    dataset = dataset_of(table)
    dv.delete_all(table)
    assert [dataset.to_table(columns=["id"]).num_rows for _ in range(2)] == [4, 4]


def test_the_first_rows_open_no_more_files_than_needed(table: Path, opened: list[str]):
    assert dataset_of(table).head(2, ["id"]).num_rows == 2
    assert len(opened) == 1


def test_a_filter_with_a_number_of_rows_filters_first(table: Path):
    dataset = dataset_of(table)
    assert dataset.head(1, columns=["id"], filter=pc.field("id") > 0).to_pylist() == [{"id": 1}]


def test_counts_come_from_the_log(table: Path, opened: list[str]):
    dataset = dataset_of(table)
    assert dataset.count_rows() == 4
    assert dataset.to_table(columns=[]).num_rows == 4
    assert dataset.scanner(columns=[]).count_rows() == 4
    assert opened == []


def test_a_count_with_a_filter_reads_only_its_column(table: Path):
    append_text_as_user(table)
    assert dataset_of(table).count_rows(pc.field("type") == "b") == 3


def test_a_filtered_dataset_combines_its_filters(table: Path):
    filtered = dataset_of(table).filter(pc.field("id") > 0)
    assert filtered.count_rows() == 3
    assert filtered.filter(pc.field("type") == "a").to_table(columns=["id"]).to_pylist() == [{"id": 2}]
    assert filtered.head(1, columns=["id"]).to_pylist() == [{"id": 1}]
    with pytest.raises(ValueError, match="cannot split a filtered dataset"):
        filtered.get_fragments()


def test_sorts_and_joins_read_the_rows_into_memory(table: Path):
    dataset = dataset_of(table, columns=["id", "day"])
    assert dataset.sort_by([("id", "descending")]).to_table()["id"].to_pylist() == [3, 2, 1, 0]
    other = arrow_dataset.InMemoryDataset(pa.table({"id": [3], "n": [7]}))
    joined = dataset.join(other, "id", join_type="inner")
    assert joined.to_table().to_pylist() == [{"id": 3, "day": "d2", "n": 7}]
    itself = dataset.join(dataset, "id", right_suffix="_2", join_type="inner")
    assert itself.to_table().num_rows == 4
    nearest = arrow_dataset.InMemoryDataset(pa.table({"id": [0, 2], "day": ["d0", "d2"], "n": [1, 2]}))
    found = dataset.join_asof(nearest, "id", "day", -9).to_table()
    assert found["n"].to_pylist() == [1, 1, 2, 2]


def test_fragments_are_the_files_that_may_match(table: Path, opened: list[str]):
    fragments = list(dataset_of(table).get_fragments(pc.field("user") < 12))
    assert opened == []
    (fragment,) = fragments
    assert fragment.physical_schema.names == list(COLUMNS)
    assert fragment.count_rows() == 2
    assert fragment.count_rows(pc.field("id") == 1) == 1
    assert fragment.to_table(columns=["user"]).to_pylist() == [{"user": 10}, {"user": 11}]
    assert [batch.num_rows for batch in fragment.to_batches(columns=["id"])] == [2]
    assert fragment.partition_expression.equals(pc.scalar(True))


@pytest.mark.parametrize(
    "use",
    [
        lambda dataset: arrow_dataset.Scanner.from_dataset(dataset).to_table(),
        lambda dataset: arrow_dataset.dataset([dataset, dataset]).to_table(),
        lambda dataset: dataset.replace_schema(pa.schema([("id", pa.int32())])),
    ],
)
def test_code_that_cannot_call_the_methods_finds_an_error(use: Callable[[Any], Any], table: Path):
    with pytest.raises(NotImplementedError):
        use(dataset_of(table))


def test_a_dataset_cannot_be_pickled(table: Path):
    with pytest.raises(TypeError, match="pass the location of the table"):
        pickle.dumps(dataset_of(table))


def test_a_dataset_is_written_by_pyarrow(table: Path, tmp_path: Path):
    arrow_dataset.write_dataset(dataset_of(table, columns=["id"]), tmp_path / "out", format="parquet")
    assert arrow_dataset.dataset(tmp_path / "out").count_rows() == 4


@pytest.mark.parametrize("columns", [["nothing"], {"n": pc.field("nothing")}])
def test_an_unknown_column_is_an_error_of_pyarrow(columns: Any, table: Path):
    with pytest.raises(pa.ArrowInvalid, match="No match for FieldRef"):
        dataset_of(table).to_table(columns=columns)
    with pytest.raises(pa.ArrowInvalid, match="No match for FieldRef"):
        dataset_of(table).to_table(columns=["id"], filter=pc.field("nothing") > 1)


def test_special_fields_of_file_datasets_are_rejected(table: Path):
    with pytest.raises(ValueError, match="__filename"):
        dataset_of(table).to_table(columns=["__filename"])


# What is read.


def test_only_the_requested_paths_are_read(table: Path):
    append_text_as_user(table)
    dataset = dataset_of(table)
    assert dataset.to_table(columns=["type"]).num_rows == 5
    with pytest.raises(CastError, match="bigint") as caught:
        dataset.to_table(columns=["user"])
    assert (caught.value.row, caught.value.path) == (0, "$['user']['id']")


@pytest.mark.parametrize(
    ("condition", "files"),
    [
        (pc.field("day") == "d2", 1),
        (pc.field("day").isin(["d0", "d1"]), 1),
        (pc.field("id") < 2, 1),
        (pc.field("user") > 15, 1),
        ((pc.field("user") > 15) & (pc.utf8_length(pc.field("type")) == 1), 1),
        (~(pc.field("id") >= 2), 1),
        (pc.field("id") > 99, 0),
        (pc.utf8_length(pc.field("day")) == 2, 2),
        ((pc.field("id") > 99) | (pc.utf8_length(pc.field("day")) == 2), 2),
    ],
    ids=str,
)
def test_filters_skip_files(condition: pc.Expression, files: int, table: Path, opened: list[str]):
    dataset_of(table).to_table(columns=["id"], filter=condition & pc.field("type").is_valid())
    assert len(opened) == files


def test_duckdb_pushes_filters_and_columns(table: Path, opened: list[str]):
    dataset = dataset_of(table)  # noqa: F841 - DuckDB finds it by its name
    assert duckdb.sql("select type from dataset where user < 12 and day = 'd0'").fetchall() == [
        ("a",),
        ("b",),
    ]
    assert len(opened) == 1
    assert duckdb.sql("select count(*), max(type) from dataset").fetchall() == [(4, "b")]


def test_duckdb_reads_whole_variants_of_a_dataset(table: Path):
    dataset = dv.read_table(table).to_dataset()  # noqa: F841 - DuckDB finds it by its name
    query = "select event.user.id::varchar as u, typeof(event) as t from dataset where id = 3"
    assert duckdb.sql(query).fetchall() == [("21", "VARIANT")]


def test_polars_scans_a_dataset(table: Path, opened: list[str]):
    frame = pl.scan_pyarrow_dataset(dataset_of(table))
    assert frame.filter(pl.col("user") < 12).select("id").collect()["id"].to_list() == [0, 1]
    assert len(opened) == 1


@pytest.mark.parametrize("condition", [None, pc.field("id") >= 0])
def test_a_limit_of_the_scan_counts_rows_before_they_are_filtered(condition: Any, table: Path):
    dataset = dataset_of(table, limit=2)
    assert dataset.to_table(columns=["id"], filter=condition)["id"].to_pylist() == [0, 1]
    assert dataset.count_rows() == 2
    assert dataset.to_table(columns=["id"], filter=pc.field("id") > 1).num_rows == 0
    assert [part.count_rows() for part in dataset.get_fragments()] == [2]


def test_changes_are_a_dataset(table: Path):
    dataset = dv.read_changes(table, start=0, columns=["id", "_commit_version"]).to_dataset()
    assert dataset.to_table(filter=pc.field("_commit_version") == 1)["id"].to_pylist() == [2, 3]
    assert [part.count_rows() for part in dataset.get_fragments()] == [2, 2]


def test_names_with_line_breaks_are_filtered_but_skip_nothing(tmp_path: Path, opened: list[str]):
    name = "n'\nliteral: '0"
    for value in (1, 2):
        rows = pa.table({"id": [value], "other": [value]})
        dv.write_table(tmp_path / "t", rows, mode="append")
    dataset = dv.read_table(tmp_path / "t", columns={name: "id", "other": "other"}).to_dataset()
    assert dataset.to_table(filter=pc.field(name) == 2).to_pylist() == [{name: 2, "other": 2}]
    assert len(opened) == 2


# Lazy frames.


def test_a_lazy_frame_pushes_its_query_into_the_scan(table: Path, opened: list[str]):
    frame = dv.read_table(table, columns=COLUMNS).to_lazyframe()
    assert frame.collect_schema() == {
        "id": pl.Int64,
        "day": pl.String,
        "user": pl.Int64,
        "type": pl.String,
    }
    assert opened == []
    query = frame.filter((pl.col("user") < 12) & (pl.col("type").str.len_chars() == 1)).select("id")
    assert query.collect()["id"].to_list() == [0, 1]
    assert len(opened) == 1
    assert frame.select("type").collect()["type"].to_list() == ["a", "b", "a", "b"]


def test_a_lazy_frame_stops_at_its_number_of_rows(table: Path, opened: list[str]):
    frame = dv.read_table(table, columns=COLUMNS).to_lazyframe()
    assert frame.head(2).filter(pl.col("id") > 0).select("id").collect()["id"].to_list() == [1]
    assert len(opened) == 1
    assert frame.filter(pl.col("id") > 0).head(2).select("id").collect()["id"].to_list() == [1, 2]


def test_lazy_frames_are_collected_together_and_streamed(table: Path):
    frame = dv.read_table(table, columns=["id"]).to_lazyframe()
    queries = [frame.filter(pl.col("id") >= least) for least in range(20)]
    for engine in ("in-memory", "streaming"):
        found = pl.collect_all(queries, engine=engine)
        assert [each.height for each in found] == [4, 3, 2, 1, *[0] * 16]
    assert frame.filter(pl.col("id") > 0).join(queries[2], on="id").collect().height == 2


def test_a_lazy_frame_without_rows_has_its_columns(table: Path):
    frame = dv.read_table(table, columns=COLUMNS).to_lazyframe()
    assert frame.filter(pl.col("id") > 99).select("type").collect().schema == {"type": pl.String}
    assert frame.select(pl.len()).collect().item() == 4


def test_variants_of_a_lazy_frame_are_json_text_or_bytes(table: Path):
    scan = dv.read_table(table, columns=["id", "event"])
    text = scan.to_lazyframe().filter(pl.col("id") == 1).select("event").collect().item()
    assert text == '{"type":"b","user":{"id":11}}'
    assert scan.to_lazyframe().filter(pl.col("event").str.contains("11")).collect()["id"].to_list() == [1]
    stored = scan.to_lazyframe(variants="bytes").select("event").head(1).collect()["event"].to_list()
    assert dv.Variant(**stored[0]).to_python() == {"type": "a", "user": {"id": 10}}
    with pytest.raises(ValueError, match="variants"):
        scan.to_lazyframe(variants="python")  # type: ignore[arg-type]


# Reduction of filters.

SCHEMA = pa.schema(
    [
        ("i", pa.int64()),
        ("d", pa.decimal128(9, 2)),
        ("f", pa.float64()),
        ("t", pa.string()),
        ("on", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("s", pa.struct([("x", pa.int64())])),
        ("v", pa.struct([("metadata", pa.binary()), ("value", pa.binary())])),
    ]
)
number, ratio, text = pc.field("i"), pc.field("f"), pc.field("t")
NULL = pc.scalar(pa.scalar(None, pa.bool_()))


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (number > 5, "(i > 5)"),
        (pc.scalar(5) > number, "(i < 5)"),
        (number == pa.scalar(5, pa.uint8()), "(i = 5)"),
        (number >= 5.0, "(i >= 5)"),
        (number >= 5.5, None),
        (number >= 2.0**53, None),
        (number == pa.scalar(None, pa.int64()), None),
        (~(number > 5), "(i <= 5)"),
        (~(ratio > 5.0), None),
        (ratio > 5.0, "(f > 5.0)"),
        (ratio == float("nan"), None),
        (~(number != 5), "(i = 5)"),
        (text == pa.scalar("x", pa.large_string()), "(t = 'x')"),
        (pc.field("d") > 1.5, None),
        (pc.field("on") > pa.scalar(0, pa.timestamp("us")), None),
        (
            pc.field("at") > pa.scalar(1000, pa.timestamp("ns", "UTC")),
            "(at > 1970-01-01 00:00:00.000001+00:00)",
        ),
        (pc.field("at") > pa.scalar(1, pa.timestamp("ns", "UTC")), None),
        (pc.field("s", "x") > 5, "(s.x > 5)"),
        (pc.field("v", "value") == b"x", None),
        (pc.field("v").is_valid(), None),
        (number.is_null(), "i is null"),
        (~number.is_null(), "(not i is null)"),
        (ratio.is_null(nan_is_null=True), None),
        (number.is_valid(), "(not i is null)"),
        (number.isin([1, 2]), "i in (1, 2)"),
        (number.isin([1, None]), None),
        (pc.is_in(number, pa.array([1, None]), skip_nulls=True), "i in (1)"),
        (number.isin(range(200)), "((i >= 0) and (i <= 199))"),
        (~number.isin([1, 2]), None),
        (pc.if_else(number.is_valid(), number.isin([1]), NULL), "((not i is null) and i in (1))"),
        (pc.if_else(number.is_valid(), number.isin([1]), number > 5), None),
        (ratio.isin([1.0, float("nan")]), None),
        ((number > 5) & pc.starts_with(text, "x"), "(i > 5)"),
        ((number > 5) | pc.starts_with(text, "x"), None),
        (~((number > 5) | pc.starts_with(text, "x")), "(i <= 5)"),
        (~((number > 5) & (number < 9)), "((i <= 5) or (i >= 9))"),
        (number + 1 > 5, None),
        (pc.scalar(False), None),
    ],
    ids=str,
)
def test_filters_are_reduced_to_weaker_expressions(condition: pc.Expression, expected: str | None):
    outputs = Scope(SCHEMA, ("v",), "UTC").whole_columns()
    pruning = ArrowFilter.of(condition, outputs).pruning
    assert (None if pruning is None else describe(pruning)) == expected


@pytest.mark.parametrize(
    ("condition", "is_exact"),
    [
        (number > 5, True),
        ((number > 5) & (text == "x"), True),
        ((number > 5) | text.is_null(), True),
        (number.isin([1, 2]), True),
        (pc.field("at") > pa.scalar(1000, pa.timestamp("ns", "UTC")), True),
        (number.isin(range(200)), False),
        (ratio > 5.0, False),
        (ratio.isin([5.0]), False),
        ((number > 5) & pc.starts_with(text, "x"), False),
        (pc.or_(number > 5, text == "x"), False),
        (~(number > 5), False),
        (pc.scalar(True), False),
    ],
    ids=str,
)
def test_expressions_of_some_filters_are_exact(condition: pc.Expression, is_exact: bool):
    outputs = Scope(SCHEMA, ("v",), "UTC").whole_columns()
    assert ArrowFilter.of(condition, outputs).is_exact is is_exact


def test_a_filter_names_its_columns():
    outputs = Scope(SCHEMA, ("v",), "UTC").whole_columns()
    condition = (pc.field("s", "x") > 5) & pc.starts_with(text, "x")
    assert ArrowFilter.of(condition, outputs).columns == {"s", "t"}


def test_a_filter_that_cannot_be_serialized_reads_all_columns():
    outputs = Scope(SCHEMA, ("v",), "UTC").whole_columns()
    deep = number > 0
    for least in range(3000):
        deep = deep | (number > least)
    for condition in (pc.field(0) > 5, deep):
        assert ArrowFilter.of(condition, outputs) == ArrowFilter(frozenset(outputs), None)
