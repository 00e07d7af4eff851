"""The example pipeline keeps every line and processes new lines once."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest
from pyspark.sql import SparkSession
from spark.tables import rows

import delta_variant as dv
from delta_variant import spark as dvs

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "spark_pipeline.py"


@pytest.fixture
def pipeline() -> ModuleType:
    spec = importlib.util.spec_from_file_location("spark_pipeline", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_lines_become_bronze_and_silver_once(spark: SparkSession, tmp_path: Path, pipeline: ModuleType):
    dvs.register(spark)
    lines, bronze, silver = (str(tmp_path / name) for name in ("lines", "bronze", "silver"))
    Path(lines).mkdir()
    for number, license_ in enumerate(["CC0-1.0", "MIT"]):
        entry = json.dumps({"prefix": f"p{number}", "license": license_})
        (Path(lines) / f"{number}.ndjson").write_text(f"{entry}\n{{\n", "utf-8")
        pipeline.run(pipeline.lines_to_bronze(spark, lines, bronze, str(tmp_path)))
        pipeline.run(pipeline.bronze_to_silver(spark, bronze, silver, str(tmp_path)))
    assert rows(tmp_path / "silver", prefix="prefix", license="license", deprecated="deprecated") == [
        {"prefix": "p0", "license": "CC0-1.0", "deprecated": False},
        {"prefix": "p1", "license": "MIT", "deprecated": False},
    ]
    assert len(list((tmp_path / "rejects").iterdir())) == 2
    assert all(dv.audit_table(table, data=True).is_clean for table in (bronze, silver))
