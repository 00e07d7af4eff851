"""The path of Python in the processes of the data source: a folder of PySpark instead of its archive."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from delta_variant import spark as dvs
from delta_variant.spark.data_source import PYTHON_PATH
from delta_variant.spark.python_path.sitecustomize import without_archive

LIB = Path(pyspark.__file__).parent / "python" / "lib"


def started(program: str, *path: str | Path) -> str:
    """Run a program in a process with a path, as Spark starts it."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.strip()


def test_a_process_imports_pyspark_from_the_folder_that_pip_installed():
    archives = [LIB / "pyspark.zip", *LIB.glob("py4j-*.zip")]
    program = "import pyspark; print(pyspark.__file__)"
    assert started(program, *archives) == str(LIB / "pyspark.zip" / "pyspark" / "__init__.py")
    assert started(program, *archives, PYTHON_PATH) == pyspark.__file__


def test_the_folder_of_a_distribution_replaces_the_archive(tmp_path: Path):
    archive = str(tmp_path / "python" / "lib" / "pyspark.zip")
    assert without_archive([archive, "other.zip"]) == [archive, "other.zip"]
    package = tmp_path / "python" / "pyspark"
    package.mkdir(parents=True)
    # An installation by pip has such a folder without modules.
    assert without_archive([archive, "other.zip"]) == [archive, "other.zip"]
    (package / "__init__.py").touch()
    assert without_archive([archive, "other.zip"]) == [str(package.parent), "other.zip"]


def test_the_archive_stays_if_the_path_lacks_the_folder_of_pip():
    archive, parent = str(LIB / "pyspark.zip"), str(LIB.parents[2])
    assert without_archive([archive, "elsewhere"]) == [archive, "elsewhere"]
    assert without_archive([archive, "elsewhere", parent]) == ["elsewhere", parent]


def test_another_module_of_the_name_takes_the_place_of_this_one(tmp_path: Path):
    (tmp_path / "sitecustomize.py").write_text("marker = __file__\n")
    program = f"import sys, sitecustomize; print(sitecustomize.marker, {PYTHON_PATH!r} in sys.path)"
    assert started(program, PYTHON_PATH, tmp_path) == f"{tmp_path / 'sitecustomize.py'} False"


@pytest.mark.classic("the faster start of Python")
def test_only_the_data_source_gets_the_path(spark: SparkSession, monkeypatch: pytest.MonkeyPatch):
    environment = spark.sparkContext.environment
    seen: list[str] = []
    monkeypatch.setattr(type(spark.dataSource), "register", lambda *_: seen.append(environment["PYTHONPATH"]))
    monkeypatch.delitem(environment, "PYTHONPATH", raising=False)
    dvs.register(spark)
    assert "PYTHONPATH" not in environment
    monkeypatch.setitem(environment, "PYTHONPATH", "mine")
    dvs.register(spark)
    assert environment["PYTHONPATH"] == "mine"
    assert seen == [PYTHON_PATH, os.pathsep.join((PYTHON_PATH, "mine"))]
