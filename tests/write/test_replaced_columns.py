"""An update copies the columns of a row group that it does not set, as they are encoded."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.tables import read_actions

import delta_variant as dv
from delta_variant.data_file import writer as file_writer
from delta_variant.errors import CastError, ConstraintViolationError
from delta_variant.write import changed_rows, stored_rows

ROWS, GROUP = 60, 20
UNANNOTATED = dv.FileOptions(annotate=False)


@pytest.fixture(autouse=True)
def small_row_groups(monkeypatch: pytest.MonkeyPatch, small_files_are_shredded: None) -> None:
    """Make every batch a shredded row group that is large enough to be copied."""
    monkeypatch.setattr(file_writer, "ROW_GROUP_BYTES", 1)
    monkeypatch.setattr(stored_rows, "MIN_COPIED_BYTES", 1)


@pytest.fixture
def replaced(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """Return the positions of the columns that get new values, for each row group that is copied."""
    found: list[list[int]] = []
    copy = file_writer._FileWriter.copy

    def record(writer: Any, file: Any, row_group: int, values: Any = None) -> bool:
        copied = copy(writer, file, row_group, values)
        found.extend([list(values.positions if values else [])] if copied else [])
        return copied

    monkeypatch.setattr(file_writer._FileWriter, "copy", record)
    return found


def rows(seed: int = 0) -> pa.Table:
    """Return rows of several types, in batches of which each becomes a row group."""
    source = random.Random(seed)
    texts = [json.dumps({"n": n, "o": {"s": source.choice("abc") * n}}) for n in range(ROWS)]
    data = {
        "id": list(range(ROWS)),
        "n": [source.choice([None, number % 7]) for number in range(ROWS)],
        "event": texts,
        "s": [source.choice([None, "", "a", "text" * source.randint(1, 30)]) for _ in range(ROWS)],
        "l": pa.array([[None, number][: number % 3] for number in range(ROWS)], pa.list_(pa.int64())),
    }
    table = pa.table(data)
    slices = (table.slice(start, GROUP) for start in range(0, ROWS, GROUP))
    return pa.Table.from_batches([batch for each in slices for batch in each.to_batches()])


def write(table: Path, seed: int = 0, **options: Any) -> None:
    dv.write_table(table, rows(seed), variant_columns=["event"], **options)


def only_file(table: Path) -> Path:
    (path,) = dv.load_snapshot(table).files["path"].to_pylist()
    return table / path


def chunks(file: Path) -> list[dict[str, bytes]]:
    """Return the encoded bytes of each column chunk, for each row group."""
    data, footer = file.read_bytes(), pq.read_metadata(file)
    found = []
    for number in range(footer.num_row_groups):
        group = [footer.row_group(number).column(leaf) for leaf in range(footer.num_columns)]
        starts = {each.path_in_schema: each.dictionary_page_offset or each.data_page_offset for each in group}
        sizes = {each.path_in_schema: each.total_compressed_size for each in group}
        found.append({name: data[start : start + sizes[name]] for name, start in starts.items()})
    return found


def test_other_columns_keep_their_bytes(tmp_path: Path, replaced: list[list[int]]):
    # Polars does not open a file with the annotation.
    write(tmp_path / "t", files=UNANNOTATED)
    before = chunks(only_file(tmp_path / "t"))
    updates = {"n": "id + 1000", "s": "null"}
    result = dv.update(tmp_path / "t", updates, "id in (25, 39)", files=UNANNOTATED)
    assert (result.rows_updated, result.rows_copied) == (2, ROWS - 2)
    assert replaced == [[], [1, 3], []]
    after = chunks(only_file(tmp_path / "t"))
    assert [set(group) for group in after] == [set(group) for group in before]
    differ = [
        {name for name in group if group[name] != old[name]} for group, old in zip(after, before, strict=True)
    ]
    assert differ == [set(), {"n", "s"}, set()]
    expected = rows().to_pydict()
    expected["n"][25], expected["n"][39] = 1025, 1039
    expected["s"][25] = expected["s"][39] = None
    names, file = ["id", "n", "s", "l"], only_file(tmp_path / "t")
    read = [pq.read_table(file).to_pydict(), pl.read_parquet(file).to_dict(as_series=False)]
    assert [{name: each[name] for name in names} for each in read] == [{n: expected[n] for n in names}] * 2
    assert duckdb.sql(f"from '{file}' select id where n > 1000 order by id").fetchall() == [(25,), (39,)]
    assert dv.audit_table(tmp_path / "t", data=True).is_clean


def test_new_values_are_found_by_statistics_and_pages(tmp_path: Path):
    write(tmp_path / "t")
    dv.update(tmp_path / "t", {"n": "-5"}, "id = 30")
    dv.update(tmp_path / "t", {"n": "null"}, "n = 6")
    (added,) = read_actions(tmp_path / "t", "add", 2)
    stats = json.loads(added["stats"])
    assert (stats["minValues"]["n"], stats["maxValues"]["n"]) == (-5, 5)
    left = [None if n == 6 else n for n in rows()["n"].to_pylist()]
    left[30] = -5
    assert stats["nullCount"]["n"] == left.count(None)
    scan = dv.read_table(tmp_path / "t", columns=["id"], where="n = -5")
    assert scan.to_table()["id"].to_pylist() == [30]
    assert scan.explain().row_groups_read == 1


UPDATES: list[tuple[dict[str, str | None], str | None]] = [
    ({"n": "n + 1"}, "id % 9 = 2"),
    ({"n": "id"}, "try_cast(event:n as int) > 33 and s is not null"),
    ({"s": "event:o.s::string", "n": "2"}, "id between 5 and 24"),
    ({"l": "array(id, null)"}, None),
    ({"s": "'new'"}, "to_json(event) like '%b%'"),
    ({"id": "id + 100", "s": "concat(s, '!')"}, "n = 3 or id = 0"),
    ({"event:n": "id + 1", "n": "7"}, "id = 44"),
    ({"event": "null"}, "id < 2"),
]

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "partition": {"partition_by": ["n"]},
    "mapping": {"configuration": {"delta.columnMapping.mode": "name"}},
    "feed": {"configuration": {"delta.enableChangeDataFeed": "true"}},
    "tracking": {"configuration": {"delta.enableRowTracking": "true"}},
    "vectors": {"configuration": {"delta.enableDeletionVectors": "true"}},
}


def as_decoded(change: Callable[[], dv.RewriteResult]) -> dv.RewriteResult:
    """Return the result of a change that copies no row group."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changed_rows, "copyable_row_groups", lambda *_, **__: ())
        return change()


def state(table: Path) -> tuple[list[str], list[Any]]:
    """Return the rows and the statistics of a table, each in an order of its own."""
    found = dv.read_table(table, columns=["id", "n", "to_json(event) as e", "s", "l"]).to_table().to_pylist()
    stats = [json.loads(each) for each in dv.load_snapshot(table).files["stats"].to_pylist()]
    return sorted(map(repr, found)), sorted((_by_column(each) for each in stats), key=repr)


def _by_column(stats: dict[str, Any]) -> list[Any]:
    """Return statistics without physical names, which are random."""
    return [
        stats["numRecords"],
        *(sorted(map(repr, stats[each].values())) for each in ("minValues", "nullCount")),
    ]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("seed", range(2))
def test_rows_and_statistics_are_those_of_decoded_columns(
    tmp_path: Path, options: str, seed: int, replaced: list[list[int]]
):
    tables = [tmp_path / "copied", tmp_path / "decoded"]
    for table in tables:
        write(table, seed, **OPTIONS[options])
    source = random.Random(seed)
    for updates, where in source.sample(UPDATES, 6):
        copied = dv.update(tables[0], updates, where)
        decoded = as_decoded(partial(dv.update, tables[1], updates, where))
        assert (copied.rows_updated, copied.rows_copied) == (decoded.rows_updated, decoded.rows_copied)
        assert state(tables[0]) == state(tables[1]), (updates, where)
    if options == "feed":
        changes = [dv.read_changes(each, start=1).to_table() for each in tables]
        columns = ["id", "n", "s", "_change_type", "_commit_version"]
        one, other = (sorted(map(repr, each.select(columns).to_pylist())) for each in changes)
        assert one == other
    assert dv.audit_table(tables[0], data=True).is_clean
    # Row groups of tracked rows are not copied, and vectors leave most files as they are.
    assert any(replaced) or options in ("tracking", "vectors")


def test_a_generated_column_and_a_constraint_follow_the_new_values(tmp_path: Path, replaced):
    columns = "id bigint, s string, double bigint generated always as (id * 2)"
    dv.sql(f"create table delta.`{tmp_path / 't'}` ({columns})")
    dv.add_constraint(tmp_path / "t", "short", "length(s) < 10 or id < 0")
    data = pa.table({"id": list(range(ROWS)), "s": ["a"] * (ROWS - 1) + ["b" * 9]})
    dv.write_table(tmp_path / "t", data, mode="append")
    dv.update(tmp_path / "t", {"id": "id + 1000"}, "id = 7")
    assert replaced == [[0, 2]]
    found = dv.read_table(tmp_path / "t", where="id = 1007").to_pylist()
    assert found == [{"id": 1007, "s": "a", "double": 2014}]
    files = sorted((tmp_path / "t").glob("*.parquet"))
    with pytest.raises(ConstraintViolationError, match="violates the CHECK constraint short"):
        dv.update(tmp_path / "t", {"s": "concat(s, 'xxxxxxxxxx')"}, "id > 8")
    with pytest.raises(CastError, match="'a'"):
        dv.update(tmp_path / "t", {"id": "s::bigint"}, "id = 9")
    assert sorted((tmp_path / "t").glob("*.parquet")) == files


def test_a_merge_replaces_the_columns_that_it_sets(tmp_path: Path, replaced):
    write(tmp_path / "t")
    source = pa.table({"id": [3, 4, 90], "n": [300, 400, 900]})
    merging = dv.merge(tmp_path / "t", source, "target.id = source.id")
    merging.when_matched_update({"n": "source.n"}).when_not_matched_insert_all(
        except_cols=["event", "s", "l"]
    )
    merging = merging.when_matched_update({"n": "source.n + coalesce(target.n, 0)"}, where="source.id = 3")
    merging.when_matched_update({"n": "source.n"}).execute()
    assert replaced == [[1], [], []]
    old = rows()["n"].to_pylist()[3] or 0
    found = dv.read_table(tmp_path / "t", columns=["id", "n"], where="n >= 300").to_pylist()
    assert found == [{"id": 3, "n": 300 + old}, {"id": 4, "n": 400}]


VALUES = {
    "7": 7,
    "1.25": 1.25,
    "-30000000000": -30000000000,
    "'text'": "text",
    "null": None,
    "cast(array(1, null) as variant)": [1, None],
    "cast(named_struct('a', 1) as variant)": {"a": 1},
    "true": True,
}
PATHS = {"n": ("n",), "o.s": ("o", "s"), "o.new": ("o", "new"), "x": ("x",)}


@pytest.mark.parametrize("is_inline", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_few_new_variants_are_stored_as_if_all_were_new(tmp_path: Path, seed: int, is_inline: bool):
    source, count = random.Random(seed), 200
    events = [{"n": n, "o": {"s": source.choice("abc") * (n % 5)}} for n in range(count)]
    files = dv.FileOptions(residual_rows="inline" if is_inline else "separate")
    table = tmp_path / "t"
    data = {"id": list(range(count)), "event": list(map(json.dumps, events))}
    dv.write_table(table, pa.table(data), variant_columns=["event"], files=files)
    for _ in range(4):
        changed = source.sample(range(count), source.randint(1, 9))
        path, value = source.choice(list(PATHS)), source.choice(list(VALUES))
        dv.update(table, {f"event:{path}": value}, f"id in ({', '.join(map(str, changed))})", files=files)
        for number in changed:
            target = events[number]
            for name in PATHS[path][:-1]:
                target = target.setdefault(name, {})
            target[PATHS[path][-1]] = VALUES[value]
    read = dv.read_table(table, columns=["id", "to_json(event) as text"]).to_table().sort_by("id")
    assert [json.loads(text) for text in read["text"].to_pylist()] == events
    assert dv.audit_table(table, data=True).is_clean
