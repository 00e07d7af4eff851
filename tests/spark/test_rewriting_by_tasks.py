"""Deletes and updates by tasks are those of one process, and failed tasks leave no files."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from spark.tables import on_spark
from spark.twins import FEATURES, content, orphans, outcome, twins
from write.test_row_tracking import tracked

import delta_variant as dv

DELETES = ["id % 7 = 3", "event:n::bigint > 4", "day = 'a'", "id < 31", "event:s::string = 'x' and id > 100"]
UPDATES: list[tuple[dict[str, str | None], str | None]] = [
    ({"event:n": "event:n::bigint + 1"}, "n > 5 and event is not null"),
    ({"day": "'c'", "n": "id"}, "id between 40 and 90"),
    ({"event:s": None, "n": "coalesce(n, 0) + 1"}, "event:s::string = 'y'"),
    ({"n": "null"}, None),
]


@pytest.mark.parametrize("feature", FEATURES)
def test_deletes_and_updates_are_those_of_one_process(spark: SparkSession, tmp_path: Path, feature: str):
    source = random.Random(feature)
    here, there = twins(tmp_path, FEATURES[feature], source)
    deletes: list[tuple[Any, ...]] = [(where,) for where in source.sample(DELETES, 2)]
    for name, arguments in [
        *(("delete", each) for each in deletes),
        *(("update", each) for each in source.sample(UPDATES, 2)),
    ]:
        ours = outcome(partial(getattr(on_spark(spark, there), name), *arguments))
        assert ours == outcome(partial(getattr(dv, name), here, *arguments))
        assert content(there) == content(here)
    assert orphans(there) == set()
    assert dv.audit_table(there, data=True).is_clean
    if feature == "row tracking":
        assert tracked(there) == tracked(here)
