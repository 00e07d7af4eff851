"""`write_checkpoint`: deltalake reads the table without the commits before it."""

from __future__ import annotations

import json
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

import delta_variant as dv
from delta_variant.log.load import load_snapshot


@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_a_table_is_read_from_its_checkpoint_alone(tmp_path: Path, policy: str):
    table = dv.Table(tmp_path)
    table.append(pa.table({"id": [1, 2]}), configuration={"delta.checkpointPolicy": policy})
    table.delete("id = 1")
    assert table.checkpoint() == 1
    assert table.checkpoint() == 1, "writes it again"
    log = tmp_path / "_delta_log"
    assert json.loads((log / "_last_checkpoint").read_text())["version"] == 1
    for commit in (*log.glob("*0.json"), *log.glob("*.crc")):
        commit.unlink()
    assert load_snapshot(tmp_path).num_files == 1
    assert dv.Table(tmp_path).head() == [{"id": 2}]
    other = deltalake.DeltaTable(tmp_path)
    assert (other.version(), len(other.file_uris())) == (1, 1)
    if policy == "classic":
        # to_pyarrow_table rejects tables with v2Checkpoint.
        assert other.to_pyarrow_table()["id"].to_pylist() == [2]


def test_a_table_is_required(tmp_path: Path):
    with pytest.raises(dv.TableNotFoundError):
        dv.write_checkpoint(tmp_path / "missing")
    dv.write_table(tmp_path / "t", [{"id": 1}])
    with pytest.raises(ValueError, match="without as_of"):
        dv.Table(tmp_path / "t").as_of(0).checkpoint()
