"""Rewrites copy row groups without changed rows as they are encoded, with the statistics of decoded rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import WriterProperties, write_deltalake
from hypothesis import given
from hypothesis import strategies as st
from support.tables import append_events, read_actions

import delta_variant as dv
from delta_variant import FileOptions
from delta_variant.data_file import writer as file_writer
from delta_variant.log.load import load_snapshot
from delta_variant.operations.optimize import layout
from delta_variant.read.file_reader import FileEntry, TableReader
from delta_variant.write import changed_rows, stored_rows

LONG = "a text of more than 64 bytes, which the statistics of a row group state shortened: "


@pytest.fixture(autouse=True)
def small_row_groups(monkeypatch: pytest.MonkeyPatch, small_files_are_shredded: None) -> None:
    """Make every batch a shredded row group that is large enough to be copied."""
    monkeypatch.setattr(file_writer, "ROW_GROUP_BYTES", 1)
    monkeypatch.setattr(stored_rows, "MIN_COPIED_BYTES", 1)


@pytest.fixture
def copied(moved: tuple[list[int], list[int]]) -> list[int]:
    """Return the list of row groups that are copied from now on."""
    return moved[0]


@pytest.fixture
def replaced(moved: tuple[list[int], list[int]]) -> list[int]:
    """Return the list of row groups that are copied with new values of some columns from now on."""
    return moved[1]


@pytest.fixture
def moved(monkeypatch: pytest.MonkeyPatch) -> tuple[list[int], list[int]]:
    found: tuple[list[int], list[int]] = ([], [])
    copy = file_writer._FileWriter.copy

    def record(writer: Any, file: Any, row_group: int, values: Any = None) -> bool:
        if copy(writer, file, row_group, values):
            found[values is not None].append(row_group)
            return True
        return False

    monkeypatch.setattr(file_writer._FileWriter, "copy", record)
    return found


def events(count: int) -> list[str | None]:
    """Return JSON texts with shredded paths, values of other types, nulls, long texts and lists."""
    residual: list[str | None] = [None, "null", "7", '{"n": "text", "o": 1}', '{"o": {"new": 1}}']
    texts = []
    for number in range(count):
        value = {"n": number, "f": number / 4, "s": LONG + str(number), "l": [number]}
        text = json.dumps({**value, "o": {"a": -number, "b": number > 9}})
        texts.append(residual[number // 11 % len(residual)] if number % 11 == 10 else text)
    return texts


def in_batches(rows: pa.Table, size: int) -> pa.Table:
    """Return rows in batches, of which each becomes a row group."""
    slices = (rows.slice(start, size) for start in range(0, rows.num_rows, size))
    return pa.Table.from_batches([batch for each in slices for batch in each.to_batches()])


def write(
    table: Path,
    texts: Sequence[str | None],
    group: int,
    *,
    files: FileOptions | None = None,
    **columns: Any,
) -> None:
    """Write one file with a row group of each `group` rows."""
    data = {"id": list(range(len(texts))), "event": pa.array(texts, pa.string()), **columns}
    dv.write_table(table, in_batches(pa.table(data), group), variant_columns=["event"], files=files)


def new_file(table: Path) -> Path:
    """Return the file that the last commit added."""
    last = len(list((table / "_delta_log").glob("*.json"))) - 1
    (added,) = read_actions(table, "add", last)
    return table / added["path"]


def row_groups(file: Path) -> list[bytes]:
    """Return the encoded bytes of each row group."""
    data, footer = file.read_bytes(), pq.read_metadata(file)
    found = []
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        chunks = [group.column(leaf) for leaf in range(group.num_columns)]
        starts = [chunk.dictionary_page_offset or chunk.data_page_offset for chunk in chunks]
        ends = [start + chunk.total_compressed_size for start, chunk in zip(starts, chunks, strict=True)]
        found.append(b"".join(data[start:end] for start, end in zip(starts, ends, strict=True)))
    return found


def texts_by_id(table: Path) -> dict[int, str | None]:
    rows = dv.read_table(table, columns={"id": "id", "text": "to_json(event)"}).to_table()
    ids, texts = rows["id"].to_pylist(), rows["text"].to_pylist()
    assert len(set(ids)) == len(ids)
    return dict(zip(ids, texts, strict=True))


def decoding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let rewrites copy no row group."""
    for module in (changed_rows, layout):
        monkeypatch.setattr(module, "copyable_row_groups", lambda *_, **__: ())


def rewritten(
    table: Path, change: Callable[[Path], object], *, copies: bool
) -> tuple[dict[str, Any], list[Any]]:
    """Return the statistics and the rows of a table after a change that copies row groups or decodes them."""
    with pytest.MonkeyPatch.context() as patch:
        if not copies:
            decoding(patch)
        change(table)
    (added,) = read_actions(table, "add", len(list((table / "_delta_log").glob("*.json"))) - 1)
    return json.loads(added["stats"]), dv.read_table(table).to_table().to_pylist()


def test_delete_copies_the_row_groups_without_matching_rows(tmp_path: Path, copied: list[int]):
    write(tmp_path / "t", events(50), 10)
    before = texts_by_id(tmp_path / "t")
    (old,) = (tmp_path / "t").glob("*.parquet")
    result = dv.delete(tmp_path / "t", "id in (3, 4, 33)")
    assert (result.rows_deleted, result.rows_copied) == (3, 47)
    assert copied == [1, 2, 4]
    new = new_file(tmp_path / "t")
    footer = pq.read_metadata(new)
    assert [footer.row_group(group).num_rows for group in range(5)] == [8, 10, 10, 9, 10]
    same = [one == other for one, other in zip(row_groups(old), row_groups(new), strict=True)]
    assert same == [False, True, True, False, True]
    assert texts_by_id(tmp_path / "t") == {n: text for n, text in before.items() if n not in (3, 4, 33)}


def test_delete_combines_small_row_groups_with_those_of_matching_rows(tmp_path: Path, monkeypatch, copied):
    ranges = [(0, 20), (20, 25), (25, 35), (35, 55)]
    rows = [pa.table({"id": list(range(*each))}) for each in ranges]
    batches = [batch for each in rows for batch in each.to_batches()]
    dv.write_table(tmp_path / "t", pa.Table.from_batches(batches))
    monkeypatch.setattr(stored_rows, "MIN_COPIED_BYTES", 1 << 20)
    monkeypatch.setattr(stored_rows, "MIN_COPIED_ROWS", 20)
    monkeypatch.setattr(file_writer, "ROW_GROUP_BYTES", 1 << 20)
    dv.delete(tmp_path / "t", "id = 30")
    assert copied == [0, 3]
    footer = pq.read_metadata(new_file(tmp_path / "t"))
    assert [footer.row_group(group).num_rows for group in range(footer.num_row_groups)] == [20, 14, 20]
    ids = dv.read_table(tmp_path / "t").to_table()["id"].to_pylist()
    assert ids == [number for number in range(55) if number != 30]


def test_the_footer_states_the_same_of_a_copied_row_group(tmp_path: Path):
    write(tmp_path / "t", events(50), 10)
    (old,) = (tmp_path / "t").glob("*.parquet")
    dv.delete(tmp_path / "t", "id = 3")
    before, after = (pq.read_metadata(file).row_group(2) for file in (old, new_file(tmp_path / "t")))
    offsets = {"file_offset", "dictionary_page_offset", "data_page_offset"}
    for leaf in range(before.num_columns):
        one, other = (group.column(leaf).to_dict() for group in (before, after))
        assert {name: one[name] for name in one.keys() - offsets} == {
            name: other[name] for name in other.keys() - offsets
        }
        assert after.column(leaf).has_offset_index
        assert after.column(leaf).has_column_index == before.column(leaf).has_column_index


def test_rows_of_copied_row_groups_are_found_by_statistics_and_pages(tmp_path: Path, monkeypatch, copied):
    monkeypatch.setattr(file_writer, "ROW_GROUP_BYTES", 1 << 20)
    random = Random(1)
    noise = pa.array([random.randbytes(40).hex() for _ in range(60_000)])
    write(tmp_path / "t", [f'{{"n": {number}}}' for number in range(60_000)], 60_000, noise=noise)
    dv.delete(tmp_path / "t", "id = 3")
    assert copied == [1]
    assert len(row_groups(new_file(tmp_path / "t"))) == 2
    for condition in ("event:n::int = 50001", "id = 50001"):
        scan = dv.read_table(tmp_path / "t", columns=["id"], where=condition)
        assert scan.to_table()["id"].to_pylist() == [50001]
        plan = scan.explain()
        assert (plan.row_groups_read, plan.pages_read) == (1, 1)


def test_other_readers_read_a_file_with_copied_row_groups(tmp_path: Path, copied: list[int]):
    files = FileOptions(annotate=False)
    write(tmp_path / "t", events(50), 10, files=files)
    dv.delete(tmp_path / "t", "id = 33", files=files)
    assert copied == [0, 1, 2, 4]
    ids = [number for number in range(50) if number != 33]
    new = new_file(tmp_path / "t")
    assert pq.read_table(new)["id"].to_pylist() == ids
    read = pl.read_parquet(new)
    assert read["id"].to_list() == ids
    assert read["event"].struct.field("value").null_count() == 47


COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i": (pa.int32(), [5, None, -7]),
    "d": (pa.float64(), [0.0, -0.0, 1.5, None]),
    "nan": (pa.float64(), [1.0, float("nan"), 2.0]),
    "f": (pa.float32(), [1.5, -2.5]),
    "small": (pa.decimal128(5, 2), [Decimal("1.25"), Decimal("-9.75"), None]),
    "large": (pa.decimal128(38, 4), [Decimal("12345678901234567890.1234"), Decimal(-1)]),
    "day": (pa.date32(), [date(2024, 2, 29), date(1960, 1, 1)]),
    "at": (pa.timestamp("us", "UTC"), [datetime(2024, 5, 6, 7, 8, 9, 123456, timezone.utc), None]),
    "local": (pa.timestamp("us"), [datetime(1969, 1, 1), datetime(2030, 1, 1)]),
    "b": (pa.bool_(), [True, None]),
    "bytes": (pa.binary(), [b"\xff" * 70, b""]),
    "long": (pa.string(), [LONG + "b", LONG + "a", "c", None]),
    "list": (pa.list_(pa.int64()), [[1, None], [], None]),
    "s": (pa.struct({"x": pa.int64(), "y": pa.string()}), [{"x": 1, "y": "a"}, {"x": None, "y": None}, None]),
    "empty": (pa.int64(), [None]),
}


def merge(table: Path) -> None:
    source = pa.table({"id": [35], "i": pa.array([7], pa.int32())})
    merging = dv.merge(table, source, "t.id = s.id", target_alias="t", source_alias="s")
    merging.when_matched_update({"i": "s.i"}).execute()


def merge_and_delete(table: Path) -> None:
    source = pa.table({"id": [35, 36], "i": pa.array([7, None], pa.int32())})
    merging = dv.merge(table, source, "target.id = source.id").when_matched_delete("source.i is null")
    merging.when_matched_update({"i": "source.i"}).execute()


TEXTS = {"long": "concat('a', long)", "bytes": "null", "s": "named_struct('x', id, 'y', long)", "d": "-d"}

CHANGES: dict[str, tuple[Callable[[Path], object], list[int], list[int]]] = {
    "delete": (lambda table: dv.delete(table, "id in (0, 35)"), [1, 2, 4], []),
    "update": (lambda table: dv.update(table, {"i": "i + 1000"}, "id = 35"), [0, 1, 2, 4], [3]),
    "update of many": (
        lambda table: dv.update(table, TEXTS, "try_cast(event:n as bigint) % 20 < 9"),
        [1, 3],
        [0, 2, 4],
    ),
    "update of all rows": (lambda table: dv.update(table, {"list": "array(id)"}), [], [0, 1, 2, 3, 4]),
    "update of the Variant": (lambda table: dv.update(table, {"event": "null"}, "id = 35"), [0, 1, 2, 4], []),
    "merge": (merge, [0, 1, 2, 4], [3]),
    "merge that deletes": (merge_and_delete, [0, 1, 2, 4], []),
}


@pytest.mark.parametrize("name", CHANGES)
def test_the_statistics_are_those_of_decoded_rows(
    tmp_path: Path, name: str, copied: list[int], replaced: list[int]
):
    change, expected_copied, expected_replaced = CHANGES[name]
    columns = {
        column: pa.array([values[number % len(values)] for number in range(50)], data_type)
        for column, (data_type, values) in COLUMNS.items()
    }
    for folder in ("one", "other"):
        write(tmp_path / folder, events(50), 10, **columns)
    expected, expected_rows = rewritten(tmp_path / "other", change, copies=False)
    assert copied == replaced == []
    stats, rows = rewritten(tmp_path / "one", change, copies=True)
    assert (copied, replaced) == (expected_copied, expected_replaced)
    assert stats == expected
    # Unlike dictionaries, texts are equal if both have a NaN, and show the sign of a zero.
    assert str(rows) == str(expected_rows)
    assert stats["minValues"]["long"].startswith((LONG[:3], "aa"))
    assert "nan" not in stats["minValues"]
    assert stats["nullCount"]["empty"] == stats["numRecords"]


numbers = st.integers(-(10**20), 10**20) | st.decimals(-1000, 1000, places=2).map(float)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=70),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=5,
)


@given(
    st.lists(st.none() | json_values.map(json.dumps), min_size=2, max_size=40),
    st.integers(1, 8),
    st.sets(st.integers(0, 39), min_size=1, max_size=6),
)
def test_random_rows_are_the_same_whether_they_are_copied_or_decoded(texts, group, deleted):
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_writer, "ROW_GROUP_BYTES", 1)
        patch.setattr(stored_rows, "MIN_COPIED_BYTES", 1)
        tables = [Path(folder) / name for name in ("copied", "decoded")]
        ids = ", ".join(map(str, deleted | {0}))
        found = []
        for table in tables:
            write(table, texts, group)
            before = texts_by_id(table)
            expected = {number: text for number, text in before.items() if number not in deleted | {0}}
            if table.name == "decoded":
                decoding(patch)
            dv.delete(table, f"id in ({ids})")
            assert texts_by_id(table) == expected
            adds = read_actions(table, "add", 1) if expected else []
            found.append([json.loads(add["stats"]) for add in adds])
        assert found[0] == found[1]
        assert dv.Table(tables[0]).audit(data=True).findings == ()


def test_a_table_of_partitions_copies_row_groups(tmp_path: Path, copied: list[int]):
    rows = pa.table({"id": list(range(40)), "p": ["a b"] * 40, "v": [str(number) for number in range(40)]})
    dv.write_table(tmp_path / "t", in_batches(rows, 10), partition_by=["p"])
    dv.delete(tmp_path / "t", "id < 10 or id = 39")
    assert copied == [1, 2]
    (added,) = read_actions(tmp_path / "t", "add", 1)
    assert added["partitionValues"] == {"p": "a b"}
    found = dv.read_table(tmp_path / "t").to_table().to_pylist()
    assert found == [{"id": number, "p": "a b", "v": str(number)} for number in range(10, 39)]


def test_the_change_data_feed_has_the_changed_rows_alone(tmp_path: Path, copied, replaced):
    write(tmp_path / "t", events(50), 10)
    dv.set_properties(tmp_path / "t", {"delta.enableChangeDataFeed": "true"})
    dv.update(tmp_path / "t", {"id": "id + 100"}, "id = 13")
    assert (copied, replaced) == ([0, 2, 3, 4], [1])
    changes = dv.read_changes(tmp_path / "t", start=2).to_table().to_pylist()
    assert sorted((row["_change_type"], row["id"]) for row in changes) == [
        ("update_postimage", 113),
        ("update_preimage", 13),
    ]


def test_tracked_rows_are_not_copied_because_their_ids_become_a_column(tmp_path: Path, copied: list[int]):
    rows = in_batches(pa.table({"id": list(range(30))}), 10)
    dv.write_table(tmp_path / "t", rows, configuration={"delta.enableRowTracking": "true"})
    name = load_snapshot(tmp_path / "t").properties["delta.rowTracking.materializedRowIdColumnName"]
    dv.delete(tmp_path / "t", "id = 13")
    assert copied == []
    found = pq.read_table(new_file(tmp_path / "t"), columns=["id", name])
    assert found["id"].to_pylist() == found[name].to_pylist() == [n for n in range(30) if n != 13]


def test_another_compression_is_applied_to_all_rows(tmp_path: Path, copied: list[int]):
    write(tmp_path / "t", events(50), 10)
    dv.delete(tmp_path / "t", "id = 13", files=FileOptions(compression="snappy"))
    assert copied == []
    footer = pq.read_metadata(new_file(tmp_path / "t"))
    codecs = {footer.row_group(group).column(0).compression for group in range(footer.num_row_groups)}
    assert codecs == {"SNAPPY"}
    assert texts_by_id(tmp_path / "t").keys() == set(range(50)) - {13}


def test_row_groups_of_another_writer_are_copied(tmp_path: Path, copied: list[int]):
    properties = WriterProperties(max_row_group_size=10)
    write_deltalake(tmp_path / "t", pa.table({"id": list(range(50))}), writer_properties=properties)
    dv.delete(tmp_path / "t", "id = 13")
    assert copied == [0, 2, 3, 4]
    ids = dv.read_table(tmp_path / "t").to_table()["id"].to_pylist()
    assert ids == [number for number in range(50) if number != 13]


def test_a_new_column_is_written_in_all_rows(tmp_path: Path, copied: list[int]):
    write(tmp_path / "t", events(50), 10)
    dv.add_columns(tmp_path / "t", {"more": "string"})
    dv.delete(tmp_path / "t", "id = 13")
    assert copied == []
    assert pq.read_schema(new_file(tmp_path / "t")).names == ["id", "event", "more"]
    assert dv.read_table(tmp_path / "t", columns=["more"]).to_table()["more"].null_count == 49


def test_a_file_with_deleted_rows_has_no_row_groups_to_copy(tmp_path: Path):
    write(tmp_path / "t", events(50), 10)
    snapshot = load_snapshot(tmp_path / "t")
    table = TableReader.of(snapshot)
    (path,) = snapshot.files["path"].to_pylist()
    deleted = FileEntry(path, {}, {"storageType": "u"})
    assert stored_rows.copyable_row_groups(table.open(deleted), None) == ()
    assert stored_rows.copyable_row_groups(table.open(FileEntry(path, {})), None) == [0, 1, 2, 3, 4]


def append_three_files(table: Path) -> None:
    for first in (0, 20, 40):
        append_events(table, [f'{{"n": {number}}}' for number in range(first, first + 20)], first)


def test_optimize_copies_large_row_groups_and_writes_small_ones(tmp_path: Path, monkeypatch, copied):
    append_three_files(tmp_path / "t")
    large = [sum(map(len, row_groups(file))) for file in (tmp_path / "t").glob("*.parquet")]
    append_events(tmp_path / "t", ['{"n": 60}'], 60)
    monkeypatch.setattr(stored_rows, "MIN_COPIED_BYTES", min(large))
    dv.optimize(tmp_path / "t")
    assert copied == [0, 0, 0]
    assert texts_by_id(tmp_path / "t") == {number: f'{{"n":{number}}}' for number in range(61)}
    (added,) = read_actions(tmp_path / "t", "add", 4)
    stats = json.loads(added["stats"])
    assert (stats["numRecords"], stats["minValues"]["id"], stats["maxValues"]["id"]) == (61, 0, 60)
    assert dv.read_table(tmp_path / "t", where="event:n::int = 61").explain().files_by_variant_bounds == 1


def test_optimize_combines_row_groups_below_the_limit(tmp_path: Path, monkeypatch, copied):
    append_three_files(tmp_path / "t")
    monkeypatch.setattr(file_writer, "ROW_GROUP_BYTES", 16 << 20)
    monkeypatch.setattr(stored_rows, "MIN_COPIED_BYTES", 4 << 20)
    dv.optimize(tmp_path / "t")
    assert copied == []
    assert [pq.read_metadata(new_file(tmp_path / "t")).row_group(0).num_rows] == [60]


def test_optimize_copies_no_row_group_whose_rows_it_sorts_or_shreds_again(
    tmp_path: Path, monkeypatch, copied
):
    append_three_files(tmp_path / "t")
    append_events(tmp_path / "t", ['{"m": "x"}'] * 20, 60)
    dv.optimize(tmp_path / "t")
    dv.optimize(tmp_path / "t", sort_by="id")
    assert copied == []
    assert texts_by_id(tmp_path / "t").keys() == set(range(80))


def hide_objects(table: Path) -> None:
    """Put objects of the rows 10 to 19 into `value`, where a path that is a shredded column should not be."""
    (file,) = table.glob("*.parquet")
    rows = dv.read_table(table).to_table().combine_chunks()
    column = rows["event"].chunk(0)
    metadata, value = (column.field(name) for name in ("metadata", "value"))
    hidden = [10 <= number < 20 for number in range(30)]
    value = pa.array([each if hides else None for each, hides in zip(value.to_pylist(), hidden, strict=True)])
    numbers = [None if hides else number for number, hides in enumerate(hidden)]
    field = pa.StructArray.from_arrays(
        [pa.nulls(30, pa.binary()), pa.array(numbers, pa.int64())], ["value", "typed_value"]
    )
    required = [pa.field("n", field.type, nullable=False)]
    typed = pa.StructArray.from_arrays([field], fields=required, mask=pa.array(hidden))
    event = pa.StructArray.from_arrays(
        [metadata.cast(pa.binary()), value, typed],
        fields=[
            pa.field("metadata", pa.binary(), nullable=False),
            pa.field("value", pa.binary()),
            pa.field("typed_value", typed.type),
        ],
    )
    pq.write_table(pa.table({"id": rows["id"], "event": event}), file, row_group_size=10)


def test_a_path_that_is_hidden_in_a_copied_row_group_has_no_bounds(tmp_path: Path, copied: list[int]):
    write(tmp_path / "t", [f'{{"n": {number}}}' for number in range(30)], 10)
    hide_objects(tmp_path / "t")
    dv.delete(tmp_path / "t", "id = 0")
    assert copied == []
    dv.delete(tmp_path / "t", "id = 1")
    assert copied == [1, 2]
    (added,) = read_actions(tmp_path / "t", "add", 2)
    assert json.loads(added["stats"])["minValues"] == {"id": 2}
