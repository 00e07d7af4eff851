"""Results of writes that are in memory as compressed pickles, and the commits that are made of them."""

from __future__ import annotations

import pickle
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.processes import run_program

import delta_variant as dv
from delta_variant import _compressed
from delta_variant._compressed import CompressedSequence, join
from delta_variant.data_file.writer import ShreddedPath, WrittenFile
from delta_variant.protocol.actions import AddCDCFile, AddFile
from delta_variant.protocol.statistics import FileStatistics
from delta_variant.read.file_reader import FileEntry
from delta_variant.write.commit import WriteResult
from delta_variant.write.partitions import NO_FILES, WrittenFiles


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the number of items of each block that is decoded from now on; blocks have up to 10."""
    monkeypatch.setattr(_compressed, "BLOCK_ITEMS", 10)
    counts: list[int] = []

    def loads(data: Any) -> Any:
        items = pickle.loads(data)
        counts.append(len(items))
        return items

    monkeypatch.setattr(_compressed, "pickle", type("_", (), {"loads": loads, "dumps": pickle.dumps}))
    return counts


class TestCompressedSequence:
    def test_items_are_decoded_a_block_at_a_time(self, decoded):
        items = CompressedSequence.of(iter(range(25)))
        assert (len(items), decoded) == (25, [])
        iterator = iter(items)
        assert ([next(iterator) for _ in range(11)], decoded) == (list(range(11)), [10, 10])
        assert (list(iterator), decoded) == (list(range(11, 25)), [10, 10, 5])

    def test_an_index_decodes_its_block_once(self, decoded):
        items = CompressedSequence.of(range(25))
        assert ([items[index] for index in (3, 9, 0)], decoded) == ([3, 9, 0], [10])
        assert (items[-1], items[9:12], decoded) == (24, (9, 10, 11), [10, 5, 10, 10])
        for index in (25, -26):
            with pytest.raises(IndexError):
                items[index]

    @given(st.lists(st.integers(0, 9), max_size=45), st.slices(45), st.sampled_from([1, 7, 1000]))
    def test_it_is_the_tuple_of_its_items(self, items, part, size):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_compressed, "BLOCK_ITEMS", size)
            compressed = CompressedSequence.of(items)
        assert (len(compressed), tuple(compressed)) == (len(items), tuple(items))
        assert compressed == tuple(items)
        assert tuple(items) == compressed
        assert [compressed[index] for index in range(-len(items), len(items))] == items + items
        assert compressed[part] == tuple(items)[part]
        assert pickle.loads(pickle.dumps(compressed)) == compressed

    @pytest.mark.parametrize("other", [(0, 1), (0, 1, 3), (0, 1, 2, 3), [0, 1, 2]])
    def test_other_items_or_a_list_are_not_equal(self, other):
        assert CompressedSequence.of(range(3)) != other

    def test_a_pickle_has_no_decoded_items(self):
        items = CompressedSequence.of(["x" * 1000] * 5000)
        before = pickle.dumps(items)
        assert items[2500] == "x" * 1000
        assert pickle.dumps(items) == before
        assert len(before) < 20_000

    def test_parts_are_joined_without_decoding_them(self, decoded):
        assert join([(1, 2), (), (3,)]) == (1, 2, 3)
        items = join([CompressedSequence.of(range(12)), (12, 13), CompressedSequence.of(range(14, 16))])
        assert (len(items), decoded) == (16, [])
        assert isinstance(items, CompressedSequence)
        assert items == tuple(range(16))


FILES = (
    WrittenFile(
        "day=2026-11-24/a b%.parquet",
        3,
        100,
        FileStatistics(3, {"x": 0}, {"x": 0.1, "d": Decimal("1.50")}, {"x": 1e300, "d": Decimal("2.00")}),
        {"v": (ShreddedPath(("user", None, "id"), pa.decimal128(5, 2), 3, 0),)},
    ),
    WrittenFile(
        "day=__HIVE_DEFAULT_PARTITION__/b.parquet",
        1,
        10,
        FileStatistics(1, {"x": 1}),
        {"v": (ShreddedPath(("at",), pa.timestamp("us", "UTC"), 0, 1),)},
        is_residual=True,
    ),
)


def add(path: str, day: str | None, size: int, stats: str, tags: dict[str, str | None] | None) -> AddFile:
    return AddFile(
        path=path,
        partition_values={"day": day},
        size=size,
        modification_time=7,
        data_change=True,
        stats=stats,
        tags=tags,
    )


ADDS = (
    add("day=2026-11-24/a%20b%25.parquet", "2026-11-24", 100, FILES[0].stats.to_json(), None),
    add(
        "day=__HIVE_DEFAULT_PARTITION__/b.parquet",
        None,
        10,
        FILES[1].stats.to_json(),
        {"deltaVariant.residualRows": "true"},
    ),
)
WRITTEN = WrittenFiles.of(FILES, ADDS)


class TestWrittenFiles:
    def test_compressed_files_are_the_same_files(self):
        sent = pickle.loads(pickle.dumps(WRITTEN.compress()))
        assert (len(sent), sent.rows, sent.bytes) == (2, 4, 110)
        assert (tuple(sent.files), tuple(sent.adds)) == (FILES, ADDS)
        assert [type(each) for each in sent.files[0].stats.min_values.values()] == [float, Decimal]
        assert sent == WRITTEN

    @pytest.mark.parametrize("written", [WRITTEN, WRITTEN.compress()])
    def test_files_are_read_discarded_and_recorded_by_their_decoded_paths(self, written):
        assert list(written.paths()) == [file.path for file in FILES]
        assert list(written.entries()) == [
            FileEntry(FILES[0].path, {"day": "2026-11-24"}, size=100),
            FileEntry(FILES[1].path, {"day": None}, size=10, tags=(("deltaVariant.residualRows", "true"),)),
        ]
        assert [each.is_residual for each in written.entries()] == [False, True]
        assert list(written.change_actions()) == [
            AddCDCFile(
                path=each.path, partition_values=each.partition_values, size=each.size, data_change=False
            )
            for each in ADDS
        ]

    def test_parts_are_joined_and_divided(self):
        more = WrittenFiles.of(FILES[:1], ADDS[:1])
        assert WrittenFiles.join([]) == NO_FILES
        assert WrittenFiles.join([more, NO_FILES, WRITTEN]) == WrittenFiles(
            (FILES[0], *FILES), (ADDS[0], *ADDS), 7, 210
        )
        joined = WrittenFiles.join([more, WRITTEN.compress()])
        assert (tuple(joined.files), len(joined), joined.rows) == ((FILES[0], *FILES), 3, 7)
        assert joined.without({"other"}) is joined
        assert WRITTEN.compress().without({FILES[0].path}) == WrittenFiles(FILES[1:], ADDS[1:], 1, 10)


def test_a_result_prints_the_number_of_files():
    result = WriteResult(1, rows=4, files=WRITTEN.compress().files)
    assert repr(result) == "WriteResult(version=1, rows=4, files=<2>)"
    assert result == WriteResult(1, rows=4, files=FILES)


MEASURE = """
import sys, resource
import pyarrow as pa
import delta_variant as dv
from delta_variant.data_file.options import WriteOptions
from delta_variant.data_file.writer import ShreddedPath, WrittenFile
from delta_variant.write.commit import commit_files
from delta_variant.write.preparation import TableOptions, WriteRequest, load_existing, plan_write
from delta_variant.write.commit import WriteResult
from delta_variant.protocol.actions import AddFile
from delta_variant.protocol.statistics import FileStatistics
from delta_variant.storage.store import open_store
from delta_variant.log.commit_context import CommitOptions
from delta_variant.write.partitions import WrittenFiles

def task(first):
    paths = {"v": tuple(ShreddedPath((f"p{n}",), pa.int64(), 1, 0) for n in range(9))}
    files = [
        WrittenFile(f"part-{n:08}.parquet", 1, 9, FileStatistics(1, {"id": 0}, {"id": n}, {"id": n}), paths)
        for n in range(first, first + 1000)
    ]
    adds = [
        AddFile(
            path=file.path,
            partition_values={},
            size=9,
            modification_time=1,
            data_change=True,
            stats=file.stats.to_json(),
        )
        for file in files
    ]
    return WrittenFiles.of(files, adds).compress()

store = open_store(sys.argv[1])
snapshot = load_existing(store, "append")
options = TableOptions(None, None, None, None, None, "append", None, "UTC")
request = WriteRequest(snapshot.schema, WriteOptions(), options)
write = plan_write(store, snapshot, request, CommitOptions())
task(0)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
result = commit_files(write, WrittenFiles.join(task(first) for first in range(0, 200_000, 1000)))
print(result.rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize("tracked", [False, True])
def test_the_commit_of_many_files_needs_less_memory_than_their_objects(tmp_path, tracked):
    configuration = {"delta.enableRowTracking": "true"} if tracked else None
    dv.write_table(tmp_path, [{"id": 1}], configuration=configuration)
    rows, kilobytes = map(int, run_program(MEASURE, tmp_path).split())
    assert rows == 200_000
    # The objects of these files are 300 MB.
    assert kilobytes < 100_000
    snapshot = dv.load_snapshot(tmp_path)
    assert (snapshot.num_files, snapshot.num_bytes - 9 * rows > 0) == (200_001, True)
    assert pc.sum(snapshot.files["base_row_id"]).as_py() == (200_000 * 200_001 // 2 if tracked else None)
