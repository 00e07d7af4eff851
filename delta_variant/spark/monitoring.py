"""What Spark's UI and REST API show of an operation: the names of its jobs, and an entry with its metrics."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from .._logging import get_logger
from .._redaction import redact_location

JOB_GROUP = "spark.jobGroup.id"
DESCRIPTION = "spark.job.description"
EXECUTION_ID = "spark.sql.execution.root.id"
UTIL = ("AccumulatorContext", "JsonProtocol")
EVENTS = "org.apache.spark.sql.execution.ui.SparkListener"

_LOGGER = get_logger(__name__)


class Monitor:
    """Names the jobs of an operation on a table, and reports its metrics.

    Jobs have a description with operation, table and step, after the description that the user or a
    streaming query has set. Their group is the operation and the table, unless the user has set one. Jobs of
    Spark Connect have both texts as tags, because its clients cannot set descriptions or groups.
    """

    def __init__(self, spark: SparkSession, operation: str, uri: str) -> None:
        self._spark = spark
        self._name = f"delta_variant {operation} {redact_location(uri)}"
        self._started = time.time()
        before = None if is_remote() else spark.sparkContext.getLocalProperty(DESCRIPTION)
        self._prefix = f"{before}: " if before else ""

    @contextmanager
    def step(self, step: str) -> Iterator[None]:
        """Name the jobs that this thread starts in the block."""
        named = _tagged if is_remote() else _described
        with named(self._spark, self._name, f"{self._prefix}{self._name}: {step}"):
            yield

    def report(self, metrics: Mapping[str, int | str]) -> None:
        """Add an entry with the metrics of the operation to the SQL page of the UI; not on Spark Connect."""
        if is_remote():
            return
        counts = {name: int(value) for name, value in metrics.items() if str(value).isdecimal()}
        try:
            _post(self._spark, f"{self._prefix}{self._name}", self._name, self._started, counts)
        except Exception as error:  # These classes of Spark may change, and a cluster may not permit them.
            _LOGGER.debug("cannot report the metrics of %s: %s", self._name, error)


@contextmanager
def _described(spark: SparkSession, group: str, description: str) -> Iterator[None]:
    context: Any = spark.sparkContext
    before = {name: context.getLocalProperty(name) for name in (JOB_GROUP, DESCRIPTION)}
    context.setLocalProperty(DESCRIPTION, description)
    if before[JOB_GROUP] is None:
        context.setLocalProperty(JOB_GROUP, group)
    try:
        yield
    finally:
        for name, value in before.items():
            context.setLocalProperty(name, value)


@contextmanager
def _tagged(spark: SparkSession, group: str, description: str) -> Iterator[None]:
    # A tag cannot have a comma.
    tags = {text.replace(",", "%2C") for text in (group, description)} - spark.getTags()
    for tag in tags:
        spark.addTag(tag)
    try:
        yield
    finally:
        for tag in tags:
            spark.removeTag(tag)


def _post(
    spark: SparkSession, description: str, name: str, started: float, counts: Mapping[str, int]
) -> None:
    """Post the events of an execution that has run, from JSON, as the history server reads them."""
    session: Any = spark
    context = session.sparkContext
    session._jsparkSession.sharedState()  # It has the listener of the SQL page.
    jvm, bus = context._jvm, context._jsc.sc().listenerBus()
    executions = getattr(jvm.org.apache.spark.sql.execution, "SQLExecution$")
    execution = getattr(executions, "MODULE$").nextExecutionId()
    # Each look-up of a class or a method is a request to the JVM.
    accumulators, protocol = (getattr(jvm.org.apache.spark.util, name) for name in UTIL)
    new_id = accumulators.newId
    ids = {text: new_id() for text in counts}
    start = {
        # A micro-batch is an execution, which has those of its operations.
        "rootExecutionId": int(context.getLocalProperty(EXECUTION_ID) or execution),
        "description": description,
        "details": "",
        "physicalPlanDescription": "\n".join((name, *(f"{text}: {count}" for text, count in counts.items()))),
        "sparkPlanInfo": _plan(name, ids),
        "time": int(started * 1000),
        "modifiedConfigs": {},
        "jobTags": [],
    }
    events: dict[str, dict[str, Any]] = {
        "SQLExecutionStart": start,
        "DriverAccumUpdates": {"accumUpdates": [[ids[text], count] for text, count in counts.items()]},
        "SQLExecutionEnd": {"time": int(time.time() * 1000)},
    }
    for event, fields in events.items():
        text = json.dumps({"Event": EVENTS + event, "executionId": execution, **fields})
        bus.post(protocol.sparkEventFromJson(text))


def _plan(name: str, accumulators: Mapping[str, int]) -> dict[str, Any]:
    metrics = [
        {"name": text, "accumulatorId": number, "metricType": _metric_type(text)}
        for text, number in accumulators.items()
    ]
    return {"nodeName": name, "simpleString": name, "children": [], "metadata": {}, "metrics": metrics}


def _metric_type(name: str) -> str:
    return "size" if "Bytes" in name or name.startswith("size of") else "sum"
