"""The checksums of pages: pyarrow accepts ours, and damaged bytes are errors."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.errors import raises_at

import delta_variant as dv
from delta_variant import _native
from delta_variant.errors import DataFileError, MalformedLogError, SourceError

ROWS = pa.table({"id": range(30_000), "s": [f"text {number % 700}" for number in range(30_000)]})
CODECS = ("zstd", "snappy", "gzip", "lz4", "none")


def write(folder: Path, codec: str = "none", **properties: str) -> Path:
    """Write a table of one file, and return the file."""
    configuration = {"delta.parquet.compression.codec": codec, **properties}
    dv.write_table(folder, ROWS, configuration=configuration)
    (file,) = folder.glob("*.parquet")
    return file


def flip(file: Path, position: int) -> None:
    content = bytearray(file.read_bytes())
    content[position] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize("version", ["1.0.0", "2.12.0"])
@pytest.mark.parametrize("codec", CODECS)
def test_pyarrow_verifies_the_pages_that_are_written(tmp_path: Path, codec: str, version: str) -> None:
    file = write(tmp_path, codec, **{"delta.parquet.format.version": version})
    assert pq.read_table(file, page_checksum_verification=True).equals(ROWS)
    # pyarrow finds a changed byte, so there is a checksum that it can compare.
    flip(file, file.stat().st_size // 2)
    with pytest.raises(OSError, match="CRC"):
        pq.read_table(file, page_checksum_verification=True)


def test_pyarrow_verifies_the_pages_of_a_checkpoint(tmp_path: Path) -> None:
    properties = {"delta.checkpointInterval": "1", "delta.parquet.compression.codec": "none"}
    dv.write_table(tmp_path, [{"id": 1}], configuration=properties)
    dv.write_table(tmp_path, [{"id": 2}], mode="append")
    (file,) = tmp_path.glob("_delta_log/*1.checkpoint.parquet")
    assert pq.read_table(file, page_checksum_verification=True).num_rows == 4
    for found in tmp_path.glob("_delta_log/*"):
        if found not in (file, tmp_path / "_delta_log/_last_checkpoint"):
            found.unlink()
    assert dv.load_snapshot(tmp_path).num_files == 2
    metadata = pq.read_metadata(file)
    files = metadata.row_group(metadata.num_row_groups - 1)
    columns = [files.column(number) for number in range(files.num_columns)]
    (paths,) = [column for column in columns if column.path_in_schema == "add.path"]
    # The last byte of a chunk is one of a page, and not of the header that precedes it.
    flip(file, (paths.dictionary_page_offset or paths.data_page_offset) + paths.total_compressed_size - 1)
    with pytest.raises(OSError, match="CRC"):
        pq.read_table(file, page_checksum_verification=True)
    with pytest.raises(MalformedLogError, match="checksum"):
        _ = dv.load_snapshot(tmp_path).files


def test_a_damaged_page_is_an_error_that_names_the_file_and_the_column(tmp_path: Path) -> None:
    file = write(tmp_path)
    flip(file, pq.read_metadata(file).row_group(0).column(0).total_compressed_size // 2)
    message = re.escape("the checksum of a page of row group 0 does not match its bytes")
    with raises_at(DataFileError, message, column="id"):
        dv.read_table(tmp_path).to_table()
    assert dv.read_table(tmp_path, columns=["s"]).to_table().num_rows == ROWS.num_rows
    assert {each.rule for each in dv.audit_table(tmp_path, data=True).findings} == {"F8"}


@pytest.mark.parametrize("operation", ["optimize", "delete", "update"])
def test_a_damaged_page_is_not_copied_to_another_file(tmp_path: Path, operation: str) -> None:
    file = write(tmp_path)
    dv.write_table(tmp_path, ROWS, mode="append")
    flip(file, pq.read_metadata(file).row_group(0).column(0).total_compressed_size // 2)
    calls: dict[str, Any] = {
        "optimize": lambda: dv.optimize(tmp_path),
        "delete": lambda: dv.delete(tmp_path, "s = 'text 1'"),
        "update": lambda: dv.update(tmp_path, {"s": "'x'"}, "s = 'text 1'"),
    }
    with pytest.raises(DataFileError, match="checksum"):
        calls[operation]()
    assert dv.load_snapshot(tmp_path).version == 1


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_the_pages_of_other_writers_are_verified(version: str) -> None:
    sink = io.BytesIO()
    pq.write_table(ROWS, sink, data_page_version=version, write_page_checksum=True)
    content = bytearray(sink.getvalue())
    rows = _native.DataFile(bytes(content), "a.parquet").read_leaves([0, 1], [0], 1 << 20)
    assert pa.Table.from_batches(list(rows)).equals(ROWS)
    content[len(content) // 3] ^= 1
    with pytest.raises(DataFileError, match="checksum"):
        list(_native.DataFile(bytes(content), "a.parquet").read_leaves([0, 1], [0], 1 << 20))


def test_a_damaged_input_file_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "input.parquet"
    pq.write_table(ROWS, file, write_page_checksum=True, compression="none", use_dictionary=False)
    flip(file, 50_000)
    with pytest.raises(SourceError, match="CRC"):
        dv.convert(file, tmp_path / "table")
