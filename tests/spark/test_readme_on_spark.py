"""The Spark code in the README runs on a session, with local folders as buckets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from readme import blocks

import delta_variant as dv

LINES = ['{"user": {"id": 7}, "type": "buy"}', '{"user": {"id": 8}, "type": "view"}']


def test_every_block_for_spark_runs_in_order(spark: SparkSession, tmp_path: Path):
    landing = tmp_path / "landing"
    landing.mkdir()
    (landing / "events.ndjson").write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    names: dict[str, Any] = {"spark": spark}
    found = [block for block in blocks() if block.kind == "python spark"]
    for block in found:
        code = block.code.replace("s3a://bucket", str(tmp_path)).replace("s3://bucket", str(tmp_path))
        exec(compile(code, f"README.md, line {block.line}", "exec"), names)
    # The batch and the stream wrote each line once.
    columns = {"id": "value:user.id::bigint"}
    rows = dv.read_table(tmp_path / "bronze", columns=columns).to_table().to_pylist()
    assert sorted(row["id"] for row in rows) == [7, 7, 8, 8]
    assert len(found) == 3
