"""A driver on a local cluster of two executors, of which one has a fault that `check_cluster` finds.

`python cluster_faults.py FOLDER 1` plants each fault and prints how many were found.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from faults.buckets import new_bucket, s3_server
from pyspark.sql import SparkSession
from spark.tables import write_frame

from delta_variant import spark as dvs
from delta_variant.errors import UnsupportedFeatureError

WRAPPER = Path(__file__).with_name("faulty_python.sh")
SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.driver.memory": "1g",
    # Otherwise Spark repeats a task that fails on one executor on the other.
    "spark.task.maxFailures": "1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
}
WITHOUT_PACKAGE = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "delta_variant":
            raise ModuleNotFoundError(f"No module named {name!r}")
sys.meta_path.insert(0, Blocker())
"""
LATE_CLOCK = """
import time
now = time.time
time.time = lambda: now() - 3600
"""
FILES = {
    "package/sitecustomize.py": WITHOUT_PACKAGE,
    "clock/sitecustomize.py": LATE_CLOCK,
    "version/delta_variant-0.0.9.dist-info/METADATA": "Name: delta-variant\nVersion: 0.0.9\n",
}


class Fault(NamedTuple):
    """A fault: where the table is, the start of the only problem, its remedy, and the error of a write."""

    is_remote: bool
    problem: str
    remedy: str
    error: str = ""


FAULTS = {
    "package": Fault(
        False,
        "cannot import delta_variant on 1 of 2 executors, such as process ",
        "No module named 'delta_variant': the Python of the executors lacks packages",
        "cannot run tasks because of ImportError: No module named 'delta_variant': the Python of the",
    ),
    "version": Fault(
        False,
        "expected delta_variant 0.1.0, got delta_variant 0.0.9 on 1 of 2 executors, such as process ",
        "install the same version on the driver and on each machine",
        "cannot run tasks on the executors: expected delta_variant 0.1.0, as on the driver, got 0.0.9: ",
    ),
    "path": Fault(
        False,
        "cannot find a file that the driver wrote to ",
        "on 1 of 2 executors",
    ),
    "credentials": Fault(
        True,
        "cannot open s3://",
        "give each machine access",
    ),
    "zone": Fault(
        False,
        "expected the time zone UTC+0, got the time zone UTC+9 on 1 of 2 executors",
        "set TZ",
    ),
    "clock": Fault(
        False,
        "expected the clock of the driver, got others on 1 of 2 executors",
        "the first at least 3,5",
    ),
}


def main(folder: Path) -> None:
    for name, text in FILES.items():
        path = folder / "faults" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    shared = folder / "shared"
    shared.mkdir()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        os.environ.pop(name, None)
    with s3_server() as endpoint:
        os.environ |= {
            "FAULTS": str(folder / "faults"),
            "FAULTLESS_PYTHON": sys.executable,
            "PYSPARK_PYTHON": str(WRAPPER),
            "UNSHARED": str(shared),
            "TZ": "UTC",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ALLOW_HTTP": "true",
        }
        builder = SparkSession.builder.master("local-cluster[2,1,512]")
        for name, value in SETTINGS.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
        # Spark sends the keys that its environment has at the start to the executors, as settings of Hadoop.
        keys = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}
        os.environ |= keys
        spark.sparkContext.environment |= keys
        locations = {False: str(shared / "new" / "table"), True: new_bucket(endpoint).table()}
        for location in locations.values():
            check = dvs.check_cluster(spark, location)
            assert (len(check.executors), check.problems, check.unknown) == (2, (), ()), check
        faults = {name: fault for name, fault in FAULTS.items() if name != "path" or can_mount()}
        for name, fault in faults.items():
            find(spark, name, fault, locations[fault.is_remote])
        assert list(shared.iterdir()) == []
        print(f"run 0: {len(faults)} faults", flush=True)
        spark.stop()


def can_mount() -> bool:
    """Return whether this process may give an executor file systems of its own."""
    return (
        subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0
    )


def find(spark: SparkSession, name: str, fault: Fault, location: str) -> None:
    """Raise unless a check finds only the planted fault, and a write of all executors reports its error."""
    # Spark starts other Python processes for another environment.
    spark.sparkContext.environment["PLANTED"] = name
    check = dvs.check_cluster(spark, location)
    print(check, file=sys.stderr)
    assert len(check.executors) == 2, check
    (problem,) = check.problems
    assert problem.startswith(fault.problem), problem
    assert fault.remedy in problem, problem
    # The store was not opened with another version of the package.
    assert len(check.unknown) == (name in ("package", "version")), check
    if fault.error:
        with pytest.raises(UnsupportedFeatureError) as caught:
            write_frame(location, spark.range(0, 10, 1, 4))
        assert str(caught.value).startswith(fault.error), caught.value


if __name__ == "__main__":
    main(Path(sys.argv[1]))
