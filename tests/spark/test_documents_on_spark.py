"""The Spark code in README.md and docs/ runs and prints its comments, with a local folder as the bucket."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from support.documents import Page, pages, run_python

PAGES = [page for page in pages() if page.blocks("python spark")]
CLASSIC = {"docs/guides/spark/stream.md": pytest.mark.classic("the id of a streaming query")}
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
        run_python(block.with_bucket(tmp_path / "bucket"), names)


def test_the_guides_to_spark_have_blocks_that_run():
    guides = {page.name for page in pages() if page.name.startswith("docs/guides/spark/")}
    assert len(guides) == 6
    assert guides <= {page.name for page in PAGES}
