"""`delta.parquet.compression.codec`: new data files and checkpoints have the compression of the table."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.errors import raises_at

import delta_variant as dv
from delta_variant.errors import ProtocolError

ROWS = [{"id": 1, "event": {"a": "x" * 100}}]
CODEC = "delta.parquet.compression.codec"


def codecs(table: Path, pattern: str = "*.parquet") -> list[str]:
    """Return the codec of each file, oldest file first."""
    files = sorted(table.glob(pattern), key=lambda path: path.stat().st_mtime_ns)
    return [pq.ParquetFile(file).metadata.row_group(0).column(0).compression for file in files]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("snappy", "SNAPPY"), ("GZIP", "GZIP"), ("lz4_raw", "LZ4"), ("none", "UNCOMPRESSED"), ("zstd", "ZSTD")],
)
def test_new_files_have_the_codec_of_the_table(tmp_path, text, expected):
    dv.write_table(tmp_path, ROWS, variant_columns=["event"], configuration={CODEC: text})
    dv.write_table(tmp_path, ROWS, mode="append")
    dv.update(tmp_path, {"id": "id + 1"}, where="id = 1")
    assert set(codecs(tmp_path)) == {expected}
    for _ in range(10):
        dv.write_table(tmp_path, ROWS, mode="append")
    assert codecs(tmp_path, "_delta_log/*.checkpoint.parquet") == [expected]


def test_an_option_takes_precedence_and_later_writes_do_not_follow_it(tmp_path):
    dv.write_table(tmp_path, ROWS, variant_columns=["event"], configuration={CODEC: "gzip"})
    dv.write_table(tmp_path, ROWS, mode="append", files=dv.FileOptions(compression="snappy"))
    dv.write_table(tmp_path, ROWS, mode="append")
    assert codecs(tmp_path) == ["GZIP", "SNAPPY", "GZIP"]
    dv.set_properties(tmp_path, {CODEC: "uncompressed"})
    dv.optimize(tmp_path)
    assert codecs(tmp_path)[-1] == "UNCOMPRESSED"


def test_a_codec_that_is_not_written_is_rejected(tmp_path):
    with raises_at(ProtocolError, "expected zstd, snappy, gzip, lz4, or none"):
        dv.write_table(tmp_path, ROWS, variant_columns=["event"], configuration={CODEC: "brotli"})
