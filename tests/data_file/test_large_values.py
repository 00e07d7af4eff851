"""Values of 1 to 128 MiB that compress to almost nothing, in files by this library and by pyarrow."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import delta_variant as dv

pytestmark = pytest.mark.slow

MIB = 1 << 20
SIZES = [1 * MIB, 12 * MIB, 16 * MIB + 1, 30 * MIB, 128 * MIB]


def lengths(table: Path, column: str) -> list[int]:
    """Return the length of each text of a column, read batch by batch; each must be blank."""
    found: list[int] = []
    for batch in dv.read_table(table, columns=[column]).to_batches():
        assert not pc.any(pc.match_substring_regex(batch[column], "[^ ]")).as_py()
        found += pc.binary_length(batch[column]).to_pylist()
    return found


def commit_file(table: Path, name: str) -> None:
    """Commit a Parquet file with a string column `text` as version 0 of a table."""
    fields = [{"name": "text", "type": "string", "nullable": True, "metadata": {}}]
    schema = json.dumps({"type": "struct", "fields": fields})
    add = {"path": name, "partitionValues": {}, "size": (table / name).stat().st_size}
    actions = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": "large-values",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": schema,
                "partitionColumns": [],
                "configuration": {},
            }
        },
        {"add": {**add, "modificationTime": 0, "dataChange": True}},
    ]
    (table / "_delta_log").mkdir()
    lines = "".join(json.dumps(action) + "\n" for action in actions)
    (table / "_delta_log" / f"{0:020}.json").write_text(lines)


@pytest.mark.parametrize("compression", ["zstd", "gzip", "brotli", "snappy", "lz4"])
@pytest.mark.parametrize("size", SIZES)
def test_a_blank_value_written_by_pyarrow_is_read(tmp_path: Path, size: int, compression: str):
    texts = pa.table({"text": pa.array([" " * size])})
    pq.write_table(texts, tmp_path / "blank.parquet", compression=compression)
    commit_file(tmp_path, "blank.parquet")
    assert lengths(tmp_path, "text") == [size]


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("use_dictionary", [True, False])
def test_blank_values_in_pages_of_each_kind_are_read(tmp_path: Path, version: str, use_dictionary: bool):
    texts = pa.table({"text": pa.array([" " * (20 * MIB), None, " " * (40 * MIB)])})
    pq.write_table(
        texts,
        tmp_path / "blank.parquet",
        compression="zstd",
        data_page_version=version,
        use_dictionary=use_dictionary,
    )
    commit_file(tmp_path, "blank.parquet")
    assert [length or 0 for length in lengths(tmp_path, "text")] == [20 * MIB, 0, 40 * MIB]


def test_a_page_of_several_large_values_is_read(tmp_path: Path):
    # pyarrow writes several large values as one page, which only the format limits, to 2 GiB.
    texts = pa.table({"text": pa.array([" " * (64 * MIB)] * 5)})
    pq.write_table(texts, tmp_path / "blank.parquet", compression="zstd", use_dictionary=False)
    commit_file(tmp_path, "blank.parquet")
    assert lengths(tmp_path, "text") == [64 * MIB] * 5


@pytest.mark.parametrize("compression", ["zstd", "gzip"])
@pytest.mark.parametrize("size", SIZES)
def test_a_blank_string_written_here_is_read(tmp_path: Path, size: int, compression: str):
    dv.write_table(
        tmp_path / "t",
        pa.table({"text": pa.array([" " * size])}),
        files=dv.FileOptions(compression=compression),
    )
    assert lengths(tmp_path / "t", "text") == [size]


@pytest.mark.parametrize("shredding", ["infer", None])
@pytest.mark.parametrize("size", [1 * MIB, 16 * MIB + 1, 127 * MIB])
def test_a_blank_string_in_a_variant_is_read(tmp_path: Path, size: int, shredding: str | None):
    events = pa.table({"event": pa.array(['{"text":"' + " " * size + '"}'])})
    dv.write_table(tmp_path / "t", events, variant_columns=["event"], shredding=shredding)
    assert lengths(tmp_path / "t", "event:text::string") == [size]


def test_rows_of_blank_values_survive_a_rewrite(tmp_path: Path):
    texts = [" " * (20 * MIB), "short", " " * (17 * MIB)]
    dv.write_table(tmp_path / "t", pa.table({"text": pa.array(texts)}))
    dv.delete(tmp_path / "t", "text = 'short'")
    assert lengths(tmp_path / "t", "text") == [20 * MIB, 17 * MIB]
