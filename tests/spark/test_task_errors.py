"""Errors of tasks arrive at the driver with their class, message and attributes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from spark.tables import write_frame

import delta_variant as dv
from delta_variant import spark as dvs
from delta_variant.errors import (
    CastError,
    ConflictingValueError,
    ConstraintViolationError,
    DataFileError,
    DeltaVariantError,
    InvalidJsonError,
    UnsupportedFeatureError,
)
from delta_variant.spark.attempts import Job
from delta_variant.spark.executor import EachTask, TaskRunner
from delta_variant.spark.running import run_task
from delta_variant.spark.task_errors import TaskError, report_errors, restore_errors
from delta_variant.spark.tasks import to_executors


def restore(text: str) -> None:
    """Raise what the driver raises for an exception of Spark with a text."""
    with restore_errors():
        raise PySparkException(text)


def reported(error: DeltaVariantError) -> str:
    """Return the text of the TaskError of an error."""
    with pytest.raises(TaskError) as caught, report_errors():
        raise error
    assert caught.value.__cause__ is error
    return str(caught.value)


@pytest.mark.parametrize("stack", ["", "\n SQLSTATE: 39000\n\tat org.apache.spark.Task", "}\n\n\tat x"])
@pytest.mark.parametrize(
    "error",
    [
        InvalidJsonError("expected a value", row=3).at(file="a.ndjson", line=4, column="event"),
        ConflictingValueError('quotes "\n}\u2028 and \ud800', path="$.a", table="s3://b/t", version=9),
        ConstraintViolationError("", rule="x"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_survives_with_its_attributes(error: DeltaVariantError, stack: str):
    text = reported(error)
    assert text.startswith(f"{type(error).__name__}: {error}\n")
    with pytest.raises(type(error)) as caught:
        restore(f"Traceback …: {text}{stack}")
    assert type(caught.value) is type(error)
    assert vars(caught.value) == vars(error)
    assert str(caught.value) == str(error)


def test_a_message_with_the_text_of_another_error_is_restored_as_itself():
    inner = reported(DataFileError("inner", file="a"))
    with pytest.raises(InvalidJsonError) as caught:
        restore(reported(InvalidJsonError(f"the text {inner} is not JSON", row=1)))
    assert caught.value.row == 1


@pytest.mark.parametrize("text", ["", "InvalidJsonError: no", "\ndelta_variant error: {"])
def test_other_errors_of_spark_pass_unchanged(text: str):
    with pytest.raises(PySparkException) as caught:
        restore(text)
    assert type(caught.value) is PySparkException


def test_an_error_of_a_task_arrives_with_its_attributes(spark: SparkSession):
    def fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        raise InvalidJsonError("expected a value", version=2).at(file="a.ndjson", row=3, column="event")

    with pytest.raises(InvalidJsonError) as caught, restore_errors():
        run_task(spark, [1, 2], fail).collect()
    error = caught.value
    assert (error.file, error.row, error.column, error.version) == ("a.ndjson", 3, "event", 2)
    assert str(error) == "a.ndjson, row 3, column 'event': expected a value"
    # Spark's own text has the sentence, too.
    assert f"InvalidJsonError: {error}" in str(error.__cause__)


ACTIONS = {
    "toPandas": lambda df, folder: df.toPandas(),
    "write": lambda df, folder: df.write.parquet(str(folder)),
    # Raises a Py4JJavaError.
    "rdd": lambda df, folder: df.rdd.count(),
}


@pytest.mark.filterwarnings("ignore:toPandas attempted Arrow optimization")
@pytest.mark.parametrize(
    "action",
    [
        "toPandas",
        "write",
        pytest.param("rdd", marks=pytest.mark.classic("RDDs and other objects of the JVM")),
    ],
)
@pytest.mark.parametrize("is_format", [False, True])
def test_every_action_raises_the_error_of_its_task(
    spark: SparkSession, tmp_path: Path, action: str, is_format: bool
):
    table = tmp_path / "t"
    dv.write_table(table, pa.table({"event": pa.array(["1"], pa.json_())}))
    if is_format:
        dvs.register(spark)
        columns = '{"day":"event::date"}'
        df = spark.read.format("delta_variant").option("columns", columns).load(str(table))
    else:
        df = dvs.read_table(spark, table, columns={"day": "event::date"})
    with pytest.raises(CastError) as caught, dvs.restore_errors():
        ACTIONS[action](df, tmp_path / "out")
    assert (caught.value.column, caught.value.row) == ("event", 0)
    assert caught.value.__cause__ is not None


def test_a_write_raises_the_error_of_reading_its_rows(spark: SparkSession, tmp_path: Path):
    result = dv.write_table(tmp_path / "t", pa.table({"id": [1]}))
    file = result.files[0].path
    (tmp_path / "t" / file).write_bytes(b"no Parquet")
    rows = dvs.read_table(spark, tmp_path / "t", reader="kernel")
    with pytest.raises(DataFileError, match=file):
        write_frame(tmp_path / "u", rows)


BLOCKED = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "{module}":
            raise ModuleNotFoundError(f"No module named {{name!r}}")
sys.meta_path.insert(0, Blocker())
from pyspark import cloudpickle
list(cloudpickle.loads(bytes.fromhex("{task}"))(iter([])))
"""


@pytest.mark.parametrize("module", ["delta_variant", "obstore"])
def test_an_executor_without_a_package_says_how_to_install_it(tmp_path: Path, module: str):
    task = to_executors(TaskRunner(str(tmp_path), None, Job.of(None), EachTask("write files", ())))
    script = BLOCKED.format(module=module, task=cloudpickle.dumps(task).hex())
    worker = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    for words in (f"No module named '{module}'", "--archives", "PYSPARK_PYTHON", sys.executable):
        assert words in worker.stderr
    with pytest.raises(UnsupportedFeatureError, match=f"No module named '{module}': .*--archives"):
        restore(worker.stderr)
    # A worker that looks for a data source imports the package itself.
    with pytest.raises(UnsupportedFeatureError, match="set PYSPARK_PYTHON to the interpreter of the driver"):
        restore("in delta_variant ModuleNotFoundError: No module named 'delta_variant'")
    with pytest.raises(PySparkException):
        restore("ModuleNotFoundError: No module named 'other'")
