"""The time zones of Spark's legacy calendar, compared with the table that Spark itself applies."""

from __future__ import annotations

import json
import zipfile
from bisect import bisect_right
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark

from delta_variant.data_file.reader import NativeFile

RULES = "julian-gregorian-rebase-micros.json"


def _rules_of_spark() -> list[dict[str, Any]]:
    for path in sorted((Path(pyspark.__file__).parent / "jars").glob("spark-*.jar")):
        with zipfile.ZipFile(path) as jar:
            if RULES in jar.namelist():
                rules: list[dict[str, Any]] = json.loads(jar.read(RULES))
                return rules
    raise AssertionError(f"no JAR of Spark has {RULES}")


def test_timestamps_of_all_time_zones_are_those_of_spark():
    rules = _rules_of_spark()
    assert len(rules) > 600
    for zone in rules:
        switches = zone["switches"]
        seconds = [moment for switch in switches for moment in (switch - 1, switch, switch + 3600)][1:]
        expected = [each + zone["diffs"][bisect_right(switches, each) - 1] for each in seconds]
        keys = {
            "org.apache.spark.version": "3.5.1",
            "org.apache.spark.legacyDateTime": "",
            "org.apache.spark.timeZone": zone["tz"],
        }
        column = pa.array([each * 1_000_000 for each in seconds], pa.timestamp("us", "UTC"))
        data = BytesIO()
        pq.write_table(pa.table({"t": column}).replace_schema_metadata(keys), data)
        file = NativeFile(data.getvalue(), "zone.parquet")
        (batch,) = file.read_leaves([0], [0], len(seconds))
        assert batch.column(0).cast(pa.int64()).to_pylist() == [each * 1_000_000 for each in expected], zone[
            "tz"
        ]
