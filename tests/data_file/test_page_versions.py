"""`delta.parquet.format.version`: new data files and checkpoints have the data pages of the table."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark.function_cases import random_document
from support.errors import raises_at

import delta_variant as dv
from delta_variant.errors import ProtocolError

PROPERTY = "delta.parquet.format.version"
ROWS = [{"id": 1, "event": {"a": "x" * 100}}]

# The first field of a page header in the compact protocol of Thrift: its type, a zigzag integer.
VERSIONS = {b"\x15\x00": 1, b"\x15\x06": 2}


def versions(folder: Path, pattern: str = "*.parquet") -> set[int]:
    """Return the versions of the first data pages of all column chunks."""
    found = set()
    for file in folder.glob(pattern):
        content, metadata = file.read_bytes(), pq.ParquetFile(file).metadata
        for group in range(metadata.num_row_groups):
            for column in range(metadata.num_columns):
                start = metadata.row_group(group).column(column).data_page_offset
                found.add(VERSIONS[content[start : start + 2]])
    return found


@pytest.mark.parametrize(("text", "expected"), [(None, 1), ("1.0.0", 1), ("2.12.0", 2), ("2.0.10", 2)])
def test_new_files_have_the_data_pages_of_the_table(tmp_path, text, expected):
    configuration = None if text is None else {PROPERTY: text}
    dv.write_table(tmp_path, ROWS, variant_columns=["event"], configuration=configuration)
    dv.update(tmp_path, {"id": "id + 1"}, where="id = 1")
    for _ in range(10):
        dv.write_table(tmp_path, ROWS, mode="append")
    dv.optimize(tmp_path)
    assert versions(tmp_path) == {expected}
    assert versions(tmp_path, "_delta_log/*.checkpoint.parquet") == {expected}
    assert dv.read_table(tmp_path, where="id = 2").to_pylist() == [{**ROWS[0], "id": 2}]
    assert dv.audit_table(tmp_path, data=True).findings == ()


def test_a_change_of_the_property_leaves_files_as_they_are(tmp_path):
    dv.write_table(tmp_path, ROWS, variant_columns=["event"])
    dv.set_properties(tmp_path, {PROPERTY: "2.12.0"})
    dv.write_table(tmp_path, ROWS, mode="append")
    assert versions(tmp_path) == {1, 2}
    assert dv.read_table(tmp_path).to_pylist() == ROWS * 2


@pytest.mark.parametrize("text", ["2", "2.12", "1.0.1", "3.0.0", "2.x.x", "v2", ""])
def test_other_versions_are_rejected(tmp_path, text):
    with raises_at(ProtocolError, "expected 1.0.0 for data pages of version 1, or 2.MINOR.PATCH"):
        dv.write_table(tmp_path, ROWS, variant_columns=["event"], configuration={PROPERTY: text})


@pytest.mark.parametrize("seed", range(4))
def test_readers_find_the_same_rows_in_both_versions(tmp_path, seed):
    source = random.Random(seed)
    rows = pa.table(
        {
            "n": pa.array([source.choice([None, number]) for number in range(3000)], pa.int32()),
            "s": [source.choice([None, "", "text"]) for _ in range(3000)],
            "none": pa.nulls(3000, pa.string()),
            "l": [source.choice([None, [], [1, None], [2]]) for _ in range(3000)],
            "v": pa.array([json.dumps(random_document(source)) for _ in range(3000)], pa.json_()),
        }
    )
    for text in ("1.0.0", "2.12.0"):
        options = {"compression": source.choice(["none", "zstd", "snappy", "gzip"])}
        configuration = {PROPERTY: text}
        files = dv.FileOptions(**options)
        dv.write_table(tmp_path / text, rows, configuration=configuration, files=files)
    one, two = (dv.read_table(tmp_path / text).to_table() for text in ("1.0.0", "2.12.0"))
    assert one == two
    for name in ("n", "s", "none", "l"):
        by_pyarrow = [pq.read_table(tmp_path / text, columns=[name]) for text in ("1.0.0", "2.12.0")]
        assert by_pyarrow[0] == by_pyarrow[1]
        assert by_pyarrow[0][name].to_pylist() == rows[name].to_pylist()


def first_page_rows(file: Path) -> int:
    """Return the values of the first data page of version 1: a field of its header after integers."""
    content = file.read_bytes()
    at = pq.ParquetFile(file).metadata.row_group(0).column(0).data_page_offset

    def integer() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = content[at]
            at, value, shift = at + 1, value | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                return value >> 1

    while content[at] == 0x15:
        at += 1
        integer()
    at += 2
    return integer()


def test_pages_end_between_the_rows_that_duckdb_decodes_at_once(tmp_path):
    batches = [
        pa.record_batch({"n": pa.array(range(first, first + 15_000))}) for first in range(0, 45_000, 15_000)
    ]
    dv.write_table(tmp_path, pa.RecordBatchReader.from_batches(batches[0].schema, batches))
    [file] = tmp_path.glob("*.parquet")
    assert first_page_rows(file) == 16_384
