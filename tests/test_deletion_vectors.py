"""Deletion vectors in the log and in files of their own (PROTOCOL.md, Deletion Vectors)."""

from __future__ import annotations

import tarfile
import zlib
from pathlib import Path
from uuid import UUID

import pytest

from delta_variant import deletion_vectors, log, store, z85
from delta_variant.actions import DeletionVector
from delta_variant.errors import DataFileError, MalformedLogError, StoreError

ROWS_7_AND_9 = bytes.fromhex("d1d339640100000000000000000000003a30000001000000000001001000000007000900")
ROW_7 = bytes.fromhex("d1d339640100000000000000000000003a300000010000000000000010000000" + "0700")

FILE = "deletion_vector_00000000-0000-0000-0000-000000000001.bin"


@pytest.fixture(scope="module")
def spark_table(corpora: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a table of delta-spark 4.4.0 whose rows a = 7 and id = 9 were deleted by vectors."""
    folder = tmp_path_factory.mktemp("spark")
    with tarfile.open(corpora / "delta-spark" / "d_dv.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "d_dv"


def vector(storage_type: str, text: str, **fields: int) -> DeletionVector:
    known = {"size_in_bytes": len(ROWS_7_AND_9), "cardinality": 2, **fields}
    return DeletionVector(storage_type=storage_type, path_or_inline_dv=text, **known)


def framed(data: bytes, *, version: int = 1, checksum: int | None = None) -> bytes:
    """Return a file of one vector, as PROTOCOL.md lays it out."""
    checksum = zlib.crc32(data) if checksum is None else checksum
    return bytes([version]) + len(data).to_bytes(4, "big") + data + checksum.to_bytes(4, "big")


def relative(number: int = 1) -> str:
    return z85.encode(UUID(int=number).bytes)


def test_the_vectors_that_spark_wrote_are_loaded_from_their_files(spark_table):
    table = store.open_store(spark_table)
    files = log.load_snapshot(table).files
    loaded = [deletion_vectors.load(table, row) for row in files["deletion_vector"].to_pylist()]
    assert sorted(loaded, key=str) == sorted([ROWS_7_AND_9, ROW_7, None], key=str)


def test_a_second_vector_of_a_file_is_found_by_its_offset(spark_table):
    descriptor = vector("u", "T8r^a/0!b^HxcshX+l^0", offset=43, size_in_bytes=34, cardinality=1)
    assert deletion_vectors.load(store.open_store(spark_table), descriptor) == ROW_7


def test_an_inline_vector_is_cut_to_its_size(tmp_path):
    table = store.open_store(tmp_path)
    assert deletion_vectors.load(table, vector("i", z85.encode(ROWS_7_AND_9))) == ROWS_7_AND_9
    padded = vector("i", z85.encode(ROW_7), size_in_bytes=34)
    assert deletion_vectors.load(table, padded) == ROW_7


def test_no_descriptor_is_no_vector(tmp_path):
    assert deletion_vectors.load(store.open_store(tmp_path), None) is None


def test_a_relative_file_lies_below_its_prefix(tmp_path):
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


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (framed(ROWS_7_AND_9, version=2), "version 02, and only 1 is known"),
        (framed(ROWS_7_AND_9, checksum=0), "does not match its checksum"),
        (framed(ROW_7) + b"\0\0", "has 34 bytes, and its descriptor says 36"),
    ],
)
def test_a_file_that_is_not_what_it_should_be_is_refused(tmp_path, data, sentence):
    (tmp_path / FILE).write_bytes(data)
    with pytest.raises(DataFileError, match=sentence):
        deletion_vectors.load(store.open_store(tmp_path), vector("u", relative(), offset=1))


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(StoreError, match=FILE):
        deletion_vectors.load(store.open_store(tmp_path), vector("u", relative(), offset=1))


@pytest.mark.parametrize("size", [len(ROWS_7_AND_9) + 1, 2**31 - 1])
def test_a_size_beyond_the_end_of_the_file_is_refused(tmp_path, size):
    (tmp_path / FILE).write_bytes(framed(ROWS_7_AND_9))
    with pytest.raises((DataFileError, StoreError), match=FILE):
        deletion_vectors.load(
            store.open_store(tmp_path), vector("u", relative(), offset=1, size_in_bytes=size)
        )


@pytest.mark.parametrize(
    ("descriptor", "sentence"),
    [
        (vector("x", "abc"), "storage type 'x': i, p and u are known"),
        (vector("u", "short"), "does not end with the uuid"),
        (vector("u", "~" * 20), "is not a z85 character"),
        (vector("i", z85.encode(ROW_7), size_in_bytes=40), "has 36 bytes, and its descriptor says 40"),
        (vector("i", z85.encode(ROWS_7_AND_9), size_in_bytes=-1), "its descriptor says -1"),
        (vector("u", relative(), offset=-5), "impossible offset"),
        (vector("u", relative(), offset=1, size_in_bytes=-1), "impossible offset or size"),
    ],
)
def test_a_descriptor_that_cannot_be_understood_is_refused(tmp_path, descriptor, sentence):
    with pytest.raises(MalformedLogError, match=sentence):
        deletion_vectors.load(store.open_store(tmp_path), descriptor)
