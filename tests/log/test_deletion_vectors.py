"""Deletion vectors in the log and in files (PROTOCOL.md, "Deletion Vectors")."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Collection
from itertools import accumulate, chain, groupby, pairwise
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.archives import unpack_spark_table
from support.errors import raises_at

from delta_variant.data_file import reader
from delta_variant.data_file.reader import Projection, open_file
from delta_variant.errors import DataFileError, MalformedLogError, StoreError
from delta_variant.log import deletion_vectors
from delta_variant.log.load import load_snapshot
from delta_variant.protocol import z85
from delta_variant.protocol.actions import DeletionVector
from delta_variant.storage import store

ROWS_7_AND_9 = bytes.fromhex("d1d339640100000000000000000000003a30000001000000000001001000000007000900")
ROW_7 = bytes.fromhex("d1d339640100000000000000000000003a300000010000000000000010000000" + "0700")

FILE = "deletion_vector_00000000-0000-0000-0000-000000000001.bin"


@pytest.fixture(scope="module")
def spark_table(corpora: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a table of delta-spark 4.4.0 whose rows a = 7 and id = 9 were deleted by vectors."""
    return unpack_spark_table(corpora, "d_dv", tmp_path_factory.mktemp("spark"))


def vector(storage_type: str, text: str, **fields: int) -> DeletionVector:
    known = {"size_in_bytes": len(ROWS_7_AND_9), "cardinality": 2, **fields}
    return DeletionVector(storage_type=storage_type, path_or_inline_dv=text, **known)


def framed(data: bytes, *, version: int = 1, checksum: int | None = None) -> bytes:
    """Return a file of one vector (PROTOCOL.md, "Deletion Vector File Storage Format")."""
    checksum = zlib.crc32(data) if checksum is None else checksum
    return bytes([version]) + len(data).to_bytes(4, "big") + data + checksum.to_bytes(4, "big")


def relative(number: int = 1) -> str:
    return z85.encode(UUID(int=number).bytes)


def test_vectors_of_spark_are_loaded_from_their_files(spark_table):
    table = store.open_store(spark_table)
    files = load_snapshot(table).files
    loaded = [deletion_vectors.load(table, row) for row in files["deletion_vector"].to_pylist()]
    assert sorted(loaded, key=str) == sorted([ROWS_7_AND_9, ROW_7, None], key=str)


def test_a_second_vector_of_a_file_is_found_by_its_offset(spark_table):
    descriptor = vector("u", "T8r^a/0!b^HxcshX+l^0", offset=43, size_in_bytes=34, cardinality=1)
    assert deletion_vectors.load(store.open_store(spark_table), descriptor) == ROW_7


def test_an_inline_vector_is_truncated_to_its_size(tmp_path):
    table = store.open_store(tmp_path)
    assert deletion_vectors.load(table, vector("i", z85.encode(ROWS_7_AND_9))) == ROWS_7_AND_9
    padded = vector("i", z85.encode(ROW_7), size_in_bytes=34)
    assert deletion_vectors.load(table, padded) == ROW_7


def test_an_inline_vector_may_have_the_padding_of_delta_kernel_rs(tmp_path):
    """The vector is from the table cdf-table-with-dv of delta-kernel-rs, where it deletes row 3."""
    text = "^Bg9^0rr910000000000iXQKl0rr91000005c8Xg##093"
    loaded = deletion_vectors.load(store.open_store(tmp_path), vector("i", text, size_in_bytes=34))
    assert deletion_vectors.subtract_rows(loaded, None) == [(3, 4)]
    with pytest.raises(MalformedLogError, match="expected 36 bytes, as in its descriptor, got 34"):
        deletion_vectors.load(store.open_store(tmp_path), vector("i", text, size_in_bytes=36))


def test_a_file_without_a_descriptor_has_no_vector(tmp_path):
    assert deletion_vectors.load(store.open_store(tmp_path), None) is None


def test_a_relative_path_starts_with_its_prefix(tmp_path):
    (tmp_path / "ab").mkdir()
    (tmp_path / "ab" / FILE).write_bytes(framed(ROWS_7_AND_9))
    descriptor = vector("u", "ab" + relative(), offset=1)
    assert deletion_vectors.load(store.open_store(tmp_path), descriptor) == ROWS_7_AND_9


def test_an_absolute_path_is_percent_decoded(tmp_path):
    (tmp_path / "far away.bin").write_bytes(framed(ROWS_7_AND_9))
    (tmp_path / "table").mkdir()
    descriptor = vector("p", f"{tmp_path}/far%20away.bin", offset=1)
    root = store.open_store(tmp_path / "table", {"allow_paths_outside_table": "true"})
    assert deletion_vectors.load(root, descriptor) == ROWS_7_AND_9


@pytest.mark.parametrize("start", [0, 1])
def test_a_vector_without_an_offset_is_the_first_of_its_file(tmp_path, start):
    """delta#6436: delta-spark reads it at byte 0; delta-kernel-rs reads it after the format version."""
    (tmp_path / FILE).write_bytes(framed(ROWS_7_AND_9)[1 - start :])
    descriptor = vector("u", relative(), offset=None)
    assert deletion_vectors.load(store.open_store(tmp_path), descriptor) == ROWS_7_AND_9


def test_an_offset_is_never_where_the_format_version_is(tmp_path):
    (tmp_path / FILE).write_bytes(framed(ROWS_7_AND_9))
    with pytest.raises(MalformedLogError, match="offset 0"):
        deletion_vectors.load(store.open_store(tmp_path), vector("u", relative(), offset=0))


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (framed(ROWS_7_AND_9, version=2), "expected format version 1, got 2"),
        (framed(ROWS_7_AND_9, checksum=0), "its checksum differs"),
        (framed(ROW_7) + b"\0\0", "expected 36 bytes, as in its descriptor, got 34"),
    ],
)
def test_an_invalid_file_is_rejected(tmp_path, data, sentence):
    (tmp_path / FILE).write_bytes(data)
    with pytest.raises(DataFileError, match=sentence) as caught:
        deletion_vectors.load(store.open_store(tmp_path), vector("u", relative(), offset=1))
    assert caught.value.file == FILE


def test_the_error_for_a_missing_file_has_its_name(tmp_path):
    with raises_at(StoreError, "there is no file", file=f"{tmp_path}/{FILE}"):
        deletion_vectors.load(store.open_store(tmp_path), vector("u", relative(), offset=1))


@pytest.mark.parametrize("size", [len(ROWS_7_AND_9) + 1, 2**31 - 1])
def test_a_size_beyond_the_end_of_the_file_is_rejected(tmp_path, size):
    (tmp_path / FILE).write_bytes(framed(ROWS_7_AND_9))
    with raises_at(StoreError, file=f"{tmp_path}/{FILE}"):
        deletion_vectors.load(
            store.open_store(tmp_path), vector("u", relative(), offset=1, size_in_bytes=size)
        )


@pytest.mark.parametrize(
    ("descriptor", "sentence"),
    [
        (vector("x", "abc"), "expected storage type i, p or u, got 'x'"),
        (vector("u", "short"), "it does not end with a UUID"),
        (vector("u", "~" * 20), "invalid z85 character"),
        (vector("i", z85.encode(ROW_7), size_in_bytes=40), "expected 40 bytes, as in its descriptor, got 36"),
        (vector("i", z85.encode(ROWS_7_AND_9), size_in_bytes=-1), "expected -1 bytes"),
        (vector("u", relative(), offset=-5), "offset -5"),
        (vector("u", relative(), offset=1, size_in_bytes=-1), "size -1"),
    ],
)
def test_an_invalid_descriptor_is_rejected(tmp_path, descriptor, sentence):
    with pytest.raises(MalformedLogError, match=sentence):
        deletion_vectors.load(store.open_store(tmp_path), descriptor)


def bitmap_of(rows: Collection[int], *, runs: bool) -> bytes:
    """Encode rows as a `RoaringBitmapArray` (Roaring format specification)."""
    highs = sorted({row >> 32 for row in rows})
    parts = [b"\xd1\xd3\x39\x64", len(highs).to_bytes(8, "little")]
    for high in highs:
        lows = {row & 0xFFFF_FFFF for row in rows if row >> 32 == high}
        parts += [high.to_bytes(4, "little"), bitmap_of_32(lows, runs)]
    return b"".join(parts)


def bitmap_of_32(rows: set[int], runs: bool) -> bytes:
    by_key = groupby(sorted(rows), lambda row: row >> 16)
    groups = [(key, [row & 0xFFFF for row in found]) for key, found in by_key]
    count = len(groups)
    if runs:
        # Every other container has runs.
        flags = bytes(sum(1 << bit for bit in range(0, 8, 2)) for _ in range((count + 7) // 8))
        head = (12347 | (count - 1) << 16).to_bytes(4, "little") + flags
    else:
        head = (12346).to_bytes(4, "little") + count.to_bytes(4, "little")
    head += b"".join(struct.pack("<HH", key, len(lows) - 1) for key, lows in groups)
    bodies = [container(lows, runs and index % 2 == 0) for index, (_, lows) in enumerate(groups)]
    if not runs or count >= 4:
        starts = accumulate((len(body) for body in bodies[:-1]), initial=len(head) + 4 * count)
        head += b"".join(start.to_bytes(4, "little") for start in starts)
    return head + b"".join(bodies)


def container(lows: list[int], as_runs: bool) -> bytes:
    if as_runs:
        spans = [list(span) for _, span in groupby(enumerate(lows), lambda pair: pair[1] - pair[0])]
        pairs = [(span[0][1], len(span) - 1) for span in spans]
        return struct.pack(f"<{1 + 2 * len(pairs)}H", len(pairs), *chain.from_iterable(pairs))
    if len(lows) <= 4096:
        return struct.pack(f"<{len(lows)}H", *lows)
    bits = bytearray(8192)
    for low in lows:
        bits[low // 8] |= 1 << low % 8
    return bytes(bits)


def rows_of(ranges: list[tuple[int, int]]) -> list[int]:
    assert all(start < end for start, end in ranges)
    assert all(first[1] < second[0] for first, second in pairwise(ranges))
    return [row for start, end in ranges for row in range(start, end)]


ROWS = {
    "few": {7, 9, 10, 11, 70_000},
    "many in one container": set(range(0, 60_000, 3)) | {65_535, 65_536},
    "all": set(range(200_000)),
    "five containers": {0, 65_536, 65_537, 131_072, 196_608, 262_144, 300_000},
    "nine containers": {number << 16 for number in range(9)},
}


@pytest.mark.parametrize("runs", [False, True])
@pytest.mark.parametrize("name", ROWS)
def test_the_rows_are_those_that_the_kernel_skips(tmp_path, name, runs):
    data = bitmap_of(ROWS[name], runs=runs)
    found = rows_of(deletion_vectors.subtract_rows(data, None))
    assert found == sorted(ROWS[name])
    pq.write_table(pa.table({"id": range(600_000)}), tmp_path / "f.parquet")
    root = store.open_store(tmp_path)
    projections = [Projection(pa.field("id", pa.int64()), ("id",))]
    left: set[int] = set()
    for batch in reader.read(open_file(root, "f.parquet"), "f", projections, deleted=data):
        left.update(batch.column(0).to_pylist())
    assert left == set(range(600_000)) - ROWS[name]


def test_row_numbers_may_exceed_32_bits():
    rows = {5, (1 << 32) + 3, (1 << 32) + 4}
    assert deletion_vectors.subtract_rows(bitmap_of(rows, runs=False), None) == [
        (5, 6),
        ((1 << 32) + 3, (1 << 32) + 5),
    ]


@given(st.sets(st.integers(0, 1 << 18)), st.sets(st.integers(0, 1 << 18)), st.booleans())
def test_the_rows_of_another_vector_are_subtracted(rows, others, runs):
    first, second = (bitmap_of(each, runs=runs) if each else None for each in (rows, others))
    assert rows_of(deletion_vectors.subtract_rows(first, second)) == sorted(rows - others)


def test_a_truncated_or_damaged_vector_is_rejected():
    whole = bitmap_of({1, 2, 3, 70_000}, runs=True)
    for length in range(len(whole)):
        with pytest.raises(DataFileError, match="malformed deletion vector"):
            deletion_vectors.subtract_rows(whole[:length], None)
    for number in (0, 14):
        damaged = whole[:number] + b"\xff\xff" + whole[number + 2 :]
        with pytest.raises(DataFileError, match="malformed deletion vector"):
            deletion_vectors.subtract_rows(damaged, None)


def test_a_count_beyond_the_data_is_rejected():
    forged = bytes.fromhex("d1d33964 0100000000000000 00000000 3a300000 ffffffff")
    with pytest.raises(DataFileError, match="malformed deletion vector"):
        deletion_vectors.subtract_rows(forged, None)
