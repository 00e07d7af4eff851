"""The Spark code in README.md and docs/ runs on a session, with a local folder as the bucket."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from support.documents import Page, pages

import delta_variant as dv

PAGES = [page for page in pages() if page.blocks("python spark")]
CLASSIC = {"docs/guides/spark.md": pytest.mark.classic("the id of a streaming query")}
LINES = ['{"user": {"id": 7}, "type": "buy"}', '{"user": {"id": 8}, "type": "view"}']


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=CLASSIC.get(page.name, ())) for page in PAGES], ids=str
)
def test_every_block_for_spark_runs_in_order(spark: SparkSession, page: Page, tmp_path: Path):
    landing = tmp_path / "bucket" / "landing"
    landing.mkdir(parents=True)
    (landing / "events.ndjson").write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    names: dict[str, Any] = {"spark": spark}
    for block in page.blocks("python spark"):
        code = block.with_bucket(tmp_path / "bucket").code
        exec(compile(code, block.origin, "exec"), names)
    if page.name == "docs/guides/spark.md":
        # The batch and the stream wrote each line once, and the view a third one.
        columns = {"id": "value:user.id::bigint"}
        rows = dv.read_table(tmp_path / "bucket" / "bronze", columns=columns).to_pylist()
        assert sorted(row["id"] for row in rows) == [7, 7, 8, 8, 9]
        orders = dv.read_table(tmp_path / "bucket" / "orders", columns={"row": "to_json(row)"}).to_pylist()
        assert sorted(order["row"] for order in orders) == [
            '{"id":1,"status":"paid"}',
            '{"id":3,"status":"new"}',
        ]


def test_the_guide_to_spark_has_blocks_that_run():
    assert "docs/guides/spark.md" in {page.name for page in PAGES}
