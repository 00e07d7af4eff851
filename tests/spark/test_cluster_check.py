"""A check of the executors finds what differs from the driver, and leaves nothing at the location."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from spark.cluster_runs import run_driver

from delta_variant import spark as dvs
from delta_variant.errors import StoreError, TableNotFoundError, UnsupportedFeatureError
from delta_variant.spark import task_errors
from delta_variant.spark.attempts import Job
from delta_variant.spark.cluster import MAX_SKEW_SECONDS
from delta_variant.spark.task_errors import restore_errors


@pytest.mark.nightly
@pytest.mark.timeout(300)
@pytest.mark.classic("RDDs and other objects of the JVM")
def test_a_check_finds_each_of_six_faults_on_a_cluster(tmp_path: Path):
    run_driver("cluster_faults.py", tmp_path, 1, seconds_per_run=240)


def test_a_session_without_faults_has_no_problems(spark: SparkSession, tmp_path: Path):
    check = dvs.check_cluster(spark, tmp_path / "new" / "table")
    assert check.problems == ()
    assert [(each.storage, each.import_error) for each in check.executors] == [("", None)]
    assert check.executors[0].package == check.driver.package
    assert check.executors[0].build == check.driver.build
    assert abs(check.executors[0].clock) < MAX_SKEW_SECONDS
    assert list(tmp_path.iterdir()) == []
    title, headings, driver, executor, *notes = repr(check).splitlines()
    assert title == f"Cluster check of {tmp_path / 'new' / 'table'}"
    assert headings.split()[:2] == ["process", "host"]
    assert (driver.split()[0], executor.split()[0]) == ("driver", "executor")
    assert driver.endswith("same")
    assert executor.endswith("same")
    assert bool(check.unknown) == (notes != ["problems: none"])


@pytest.mark.classic("core-site.xml and the configuration of the JVM")
def test_a_location_that_the_driver_cannot_use_is_an_error(spark: SparkSession, tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file"):
        dvs.check_cluster(spark, tmp_path / "file")
    with pytest.raises(TableNotFoundError, match="nowhere"):
        dvs.check_cluster(spark, "nowhere")


ENVIRONMENTS = {
    "ImportError: expected delta_variant 0.2, as on the driver, got 0.1: install the same": (
        "cannot run tasks on the executors: expected delta_variant 0.2, as on the driver, got 0.1: install "
        "the same version on the driver and on each machine"
    ),
    # As PySpark 4.2 says it.
    "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.10 than that in driver: 3.11, P": (
        "cannot run tasks on the executors: expected Python 3.11, as on the driver, got 3.10: set "
        "PYSPARK_PYTHON or spark.pyspark.python to the same Python on each machine"
    ),
}


@pytest.mark.parametrize("text", ENVIRONMENTS)
def test_another_version_on_an_executor_is_one_sentence(text: str):
    with pytest.raises(UnsupportedFeatureError) as caught, restore_errors():
        raise PySparkException(f"Traceback …\n{text}\n\tat org.apache.spark")
    assert str(caught.value) == ENVIRONMENTS[text]


def test_what_spark_sends_to_tasks_knows_the_package_of_the_driver(monkeypatch: pytest.MonkeyPatch):
    job: Any = Job("identity", "run")
    content = pickle.dumps(job)
    assert pickle.loads(content) == job
    monkeypatch.setattr(task_errors, "package_version", lambda: "0.0.9")
    with pytest.raises(
        ImportError, match=r"expected delta_variant \S+, as on the driver, got 0\.0\.9: install"
    ):
        pickle.loads(content)
