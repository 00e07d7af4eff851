"""Optimizations: the rows stay the same, and the plan of a dry run is what a run does."""

from __future__ import annotations

import json
from itertools import pairwise, product
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st
from support.intercepted_store import commit_first
from support.tables import append_events, read_by_id, read_commit

import delta_variant as dv
from delta_variant.errors import CommitConflictError, ExpressionError
from delta_variant.log.load import load_snapshot
from delta_variant.operations.optimize.sorting import places_on_curve


def write(table: Path, texts: list[str | None], first: int = 0, **options: Any) -> None:
    days = ["ab"[number % 2] for number in range(first, first + len(texts))]
    append_events(table, texts, first, {"day": days}, **options)


def stored_rows(table: Path) -> list[dict[str, Any]]:
    """Return the rows of a table with the stored bytes of their Variants."""
    paths = dv.load_snapshot(str(table)).files["path"].to_pylist()
    rows = [row for path in paths for row in pq.read_table(table / path).to_pylist()]
    return sorted(rows, key=lambda row: row["id"])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return a table of four files whose values move from one path to another."""
    for number in range(4):
        name = "new" if number > 1 else "old"
        texts = [f'{{"k": {row}, "{name}": "{row}"}}' for row in range(10 * number, 10 * number + 10)]
        write(tmp_path / "t", texts, 10 * number)
    return tmp_path / "t"


@pytest.mark.usefixtures("small_files_are_shredded")
def test_small_files_are_compacted_and_shredded_by_all_rows(table: Path):
    before = read_by_id(table)
    result = dv.optimize(str(table))
    assert read_by_id(table) == before
    assert (result.version, result.files_before, len(result.files)) == (4, 4, 1)
    (group,) = result.groups
    assert (group.rows, group.gained, group.dropped) == (40, (), ())
    paths = {path.path for path in result.files[0].variants["event"]}
    assert paths == {("k",), ("new",), ("old",)}
    info, *others = read_commit(table, 4)
    assert info["commitInfo"]["operation"] == "OPTIMIZE"
    kinds = [(name, body["dataChange"]) for each in others for name, body in each.items()]
    assert kinds == [("remove", False)] * 4 + [("add", False)]
    assert DeltaTable(table).count() == 40
    assert dv.optimize(str(table)).version is None


def test_a_dry_run_returns_the_plan_of_a_run(table: Path):
    plan = dv.optimize(str(table), dry_run=True)
    assert (plan.version, plan.files) == (None, ())
    assert load_snapshot(table).version == 3
    done = dv.optimize(str(table))
    assert done.groups == plan.groups
    assert plan.bytes_before == done.bytes_before
    assert abs(plan.bytes_after - done.bytes_after) < done.bytes_after / 5
    assert str(plan).splitlines()[0] == "files   4 become about 1"


@pytest.mark.usefixtures("small_files_are_shredded")
def test_reshred_infers_the_schema_from_the_rows_again(tmp_path: Path):
    table = tmp_path / "t"
    schema = dv.ShreddingSchema.of({"old": pa.decimal128(18, 2)})
    write(table, [f'{{"k": {row}, "s": "{row}"}}' for row in range(20)], shredding=schema)
    assert dv.optimize(str(table)).version is None
    plan = dv.optimize(str(table), reshred=True, dry_run=True)
    (group,) = plan.groups
    assert [(leaf.column, leaf.path, leaf.type) for leaf in group.gained] == [
        ("event", ("k",), "bigint"),
        ("event", ("s",), "string"),
    ]
    assert [leaf.path for leaf in group.dropped] == [("old",)]
    assert str(plan).splitlines()[2:] == [
        "gained  event:k  bigint",
        "gained  event:s  string",
        "dropped event:old  decimal(18,2)",
    ]
    before = read_by_id(table)
    assert dv.optimize(str(table), reshred=True).version == 1
    assert read_by_id(table) == before
    assert dv.optimize(str(table), reshred=True).version is None


def test_files_with_the_same_shredding_are_compacted_without_reshredding(tmp_path: Path):
    texts = [['{"n": 1}', '{"n": 2.50}', '{"n": "x"}', None], ['{"n": 4}', '{"n": [1]}', '{"m": 0}', "7"]]
    schema = dv.ShreddingSchema.of({"n": pa.decimal128(18, 2)})
    for first, some in zip((0, 10), texts, strict=True):
        write(tmp_path / "t", some, first, shredding=schema)
    before = stored_rows(tmp_path / "t")
    assert dv.optimize(str(tmp_path / "t")).files_before == 2
    assert stored_rows(tmp_path / "t") == before
    assert dv.audit_table(str(tmp_path / "t"), data=True).is_clean


@pytest.mark.usefixtures("small_files_are_shredded")
def test_files_with_the_target_schema_are_copied_and_others_reshredded(tmp_path: Path):
    texts = [f'{{"n": {number}, "s": "{number}"}}' for number in range(100)]
    write(tmp_path / "t", texts[:50])
    write(tmp_path / "t", texts[50:], 50, shredding=None)
    before = read_by_id(tmp_path / "t")
    result = dv.optimize(str(tmp_path / "t"))
    assert {path.path for path in result.files[0].variants["event"]} == {("n",), ("s",)}
    assert all(path.values == 0 for path in result.files[0].variants["event"])
    assert read_by_id(tmp_path / "t") == before
    assert dv.audit_table(str(tmp_path / "t"), data=True).is_clean


@pytest.mark.usefixtures("small_files_are_shredded")
def test_unshredded_files_are_shredded(tmp_path: Path):
    unshredded = dv.ShreddingSchema.of(None)
    for first in (0, 50):
        write(tmp_path / "t", [f'{{"n": {number}}}' for number in range(50)], first, shredding=unshredded)
    result = dv.optimize(str(tmp_path / "t"))
    assert {path.path for path in result.files[0].variants["event"]} == {("n",)}


@pytest.mark.usefixtures("small_files_are_shredded")
def test_sorting_by_a_path_lets_a_query_skip_files(tmp_path: Path):
    table = tmp_path / "t"
    for first in (0, 1000):
        texts = [
            f'{{"k": {row * 7919 % 2000}, "pad": "{row * 31337}"}}' for row in range(first, first + 1000)
        ]
        write(table, texts, first)
    where = "event:k::bigint = 777"
    assert dv.read_table(str(table), where=where).explain().files_read == 2
    before = read_by_id(table)
    result = dv.optimize(
        str(table), sort_by="event:k::bigint", files=dv.FileOptions(target_file_size=4 << 10)
    )
    assert len(result.files) == 3
    assert read_by_id(table) == before
    explained = dv.read_table(str(table), where=where).explain()
    assert (explained.files_read, explained.rows) == (1, 1)
    keys = [
        dv.read_table(
            str(table),
            columns={"k": "event:k::bigint"},
            where=f"event:k::bigint >= {low} and event:k::bigint < {low + 100}",
        )
        .to_table()["k"]
        .to_pylist()
        for low in (0, 900)
    ]
    assert keys == [list(range(100)), list(range(900, 1000))]


def test_large_rows_are_sorted_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("delta_variant.operations.optimize.sorting.BATCH_BYTES", 2000)
    monkeypatch.setattr("delta_variant.operations.optimize.sorting.BATCH_ROWS", 100)
    # The longest text alone is more than is put together at a time.
    texts = {row: json.dumps({"k": row * 7 % 300, "text": "x" * (row * 13 % 250) * 10}) for row in range(300)}
    for first in range(0, 300, 60):
        write(tmp_path, [texts[row] for row in range(first, first + 60)], first)
    before = read_by_id(tmp_path)
    dv.optimize(tmp_path, sort_by="event:k::bigint")
    assert read_by_id(tmp_path) == before
    columns = {"k": "event:k::bigint"}
    assert dv.read_table(tmp_path, columns=columns).to_table()["k"].to_pylist() == list(range(300))


def test_partitions_are_optimized_separately_and_can_be_selected(tmp_path: Path):
    table = tmp_path / "t"
    for first in (0, 4):
        write(table, [f"{row}" for row in range(first, first + 4)], first, partition_by=["day"])
    before = read_by_id(table)
    result = dv.optimize(str(table), "day = 'a'")
    assert [group.partition_values for group in result.groups] == [{"day": "a"}]
    assert (result.files_before, len(result.files), load_snapshot(table).num_files) == (2, 1, 3)
    assert len(dv.optimize(str(table), sort_by=["id"]).groups) == 2
    assert read_by_id(table) == before


def test_keys_without_an_order_and_other_predicates_are_rejected(table: Path):
    with pytest.raises(ExpressionError, match="have no order"):
        dv.optimize(str(table), sort_by="event:k")
    with pytest.raises(ExpressionError, match="expected only partition columns"):
        dv.optimize(str(table), "id = 1")
    with pytest.raises(ExpressionError, match="no order"):
        dv.optimize(str(table), z_order_by=["id", "event:k"])
    with pytest.raises(ExpressionError, match="exclude each other"):
        dv.optimize(str(table), sort_by="id", z_order_by="id")
    with pytest.raises(ExpressionError, match="expected at most 63 keys, got 64"):
        dv.optimize(str(table), z_order_by=[f"id + {number}" for number in range(64)])


def test_a_z_order_skips_files_for_each_key(tmp_path: Path):
    random = Random(8)
    numbers = [random.randrange(10_000) for _ in range(20_000)]
    skewed = [random.choice([None, "0", "0", "0", f"{random.random():.9f}"]) for _ in numbers]
    found = pa.table({"n": numbers, "s": skewed, "pad": [random.randbytes(16) for _ in numbers]})
    dv.write_table(tmp_path, found)
    result = dv.optimize(tmp_path, z_order_by=["n", "s"], files=dv.FileOptions(target_file_size=20 << 10))
    assert len(result.files) >= 16
    assert dv.read_table(tmp_path).to_table().sort_by("pad") == found.sort_by("pad")
    for name, values in (("n", numbers), ("s", [each for each in skewed if each not in (None, "0")])):
        bounds = dv.file_stats(tmp_path).select([f"min.{name}", f"max.{name}"]).to_pydict().values()
        chosen = random.sample(values, 100)
        read = sum(low <= value <= high for value in chosen for low, high in zip(*bounds, strict=True))
        # Two keys that count alike leave the square root of the number of files.
        assert read / len(chosen) <= 1.5 * len(result.files) ** 0.5


@pytest.mark.parametrize(("keys", "bits"), [(1, 5), (2, 5), (3, 3), (4, 2), (6, 1)])
def test_points_that_follow_each_other_on_the_curve_are_neighbors(keys: int, bits: int):
    points = list(product(range(1 << bits), repeat=keys))
    places = places_on_curve([pa.array(axis, pa.int64()) for axis in zip(*points, strict=True)], bits)
    assert sorted(places.to_pylist()) == list(range(len(points)))
    ordered = [point for _, point in sorted(zip(places.to_pylist(), points, strict=True))]
    for point, following in pairwise(ordered):
        assert sum(abs(one - other) for one, other in zip(point, following, strict=True)) == 1


@pytest.mark.parametrize("name", ["delta.appendOnly", "delta.enableChangeDataFeed"])
def test_a_table_that_forbids_deletes_can_be_optimized(tmp_path: Path, name: str):
    table = tmp_path / "t"
    write(table, ["1"], configuration={name: "true"})
    write(table, ["2"], 1)
    assert dv.optimize(str(table)).version == 2


def test_a_concurrent_append_does_not_conflict_but_a_delete_does(table: Path):
    assert dv.optimize(commit_first(table, lambda: write(table, ["1"], 100))).version == 5
    assert len(read_by_id(table)) == 41
    with pytest.raises(CommitConflictError, match="removed"):
        dv.optimize(commit_first(table, lambda: dv.delete(table, "id = 3")))
    assert len(read_by_id(table)) == 40


def test_a_delete_succeeds_after_a_concurrent_optimize_of_other_files(tmp_path: Path):
    table = tmp_path / "t"
    for first in (0, 4):
        write(table, [f"{row}" for row in range(first, first + 4)], first, partition_by=["day"])
    store = commit_first(table, lambda: dv.optimize(table, "day = 'a'"))
    assert dv.delete(store, "day = 'b' and id = 1").version == 3
    assert set(read_by_id(table)) == set(range(8)) - {1}


@given(
    files=st.lists(
        st.lists(
            st.sampled_from(['{"k": 1}', '{"k": 2.5, "x": [1]}', '{"k": "s"}', "null", None]),
            min_size=1,
            max_size=5,
        ),
        min_size=1,
        max_size=4,
    ),
    order=st.sampled_from(
        [
            {},
            {"sort_by": "id"},
            {"sort_by": ["day", "try_variant_get(event, '$.k', 'double')"]},
            {"z_order_by": ["day", "try_variant_get(event, '$.k', 'double')", "id"]},
        ]
    ),
    numeric=st.sampled_from(["value", "strict"]),
)
def test_an_optimization_keeps_every_row(files, order, numeric):
    with TemporaryDirectory() as folder:
        table, start = Path(folder) / "t", 0
        for texts in files:
            write(table, texts, start, shredding=None if start % 2 else "infer")
            start += len(texts)
        before = read_by_id(table)
        whole = dv.read_table(str(table), columns=["id", "event"]).to_table().to_pylist()
        dv.optimize(str(table), **order, files=dv.FileOptions(numeric=numeric))
        assert read_by_id(table) == before
        if numeric == "strict":
            after = dv.read_table(str(table), columns=["id", "event"]).to_table().to_pylist()
            assert sorted(after, key=lambda row: row["id"]) == sorted(whole, key=lambda row: row["id"])


def test_reshredding_finds_values_that_recur_after_many_rows(tmp_path: Path):
    random = Random(3)
    documents = [
        {
            "t": "x" * 9000,
            **{f"f{field}": {f"{n}": random.choice("nya") for n in range(10)} for field in range(28)},
        }
        for _ in range(500)
    ]
    written = dv.Table(tmp_path)
    written.append([{"v": each} for each in documents * 4], variant_columns=["v"])
    # The first 4 MB have no document twice.
    result = written.optimize(reshred=True)
    assert result.version == 1
    assert result.bytes_after < 0.6 * result.bytes_before


def test_reshredding_delivers_what_the_inferred_schema_promises(tmp_path: Path):
    """The page of `inspect --html` estimates its bytes. A write gives small files fewer columns."""
    rows = [
        {"v": {f"f{field}": (number * 7919 + field) % (10 ** (field % 5 + 2)) for field in range(12)}}
        for number in range(4000)
    ]
    written, chosen = dv.Table(tmp_path / "written"), dv.Table(tmp_path / "chosen")
    written.append(rows, variant_columns=["v"])
    schema = dv.infer_shredding_schema(written.scan().to_table()["v"])
    chosen.append(rows, variant_columns=["v"], shredding=schema)
    written.optimize(reshred=True)
    assert written.snapshot().num_bytes <= 1.01 * chosen.snapshot().num_bytes
    assert written.optimize(reshred=True).version is None
    assert written.scan().to_pylist() == rows
