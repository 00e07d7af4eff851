"""What Spark's UI and REST API show of an operation: the names of its jobs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from .._redaction import redact_location

__all__ = ["JOB_GROUP", "Monitor"]

JOB_GROUP = "spark.jobGroup.id"
DESCRIPTION = "spark.job.description"


class Monitor:
    """Names the jobs of an operation on a table.

    Jobs have a description with operation, table and step, after the description that the user or a
    streaming query has set. Their group is the operation and the table, unless the user has set one. Jobs of
    Spark Connect have both texts as tags, because its clients cannot set descriptions or groups.
    """

    def __init__(self, spark: SparkSession, operation: str, uri: str) -> None:
        self._spark = spark
        self._name = f"delta_variant {operation} {redact_location(uri)}"
        before = None if is_remote() else spark.sparkContext.getLocalProperty(DESCRIPTION)
        self._prefix = f"{before}: " if before else ""

    @contextmanager
    def step(self, step: str) -> Iterator[None]:
        """Name the jobs that this thread starts in the block."""
        named = _tagged if is_remote() else _described
        with named(self._spark, self._name, f"{self._prefix}{self._name}: {step}"):
            yield


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
