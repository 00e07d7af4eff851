"""What differs between the supported versions of PySpark, and between classic sessions and Spark Connect."""

from __future__ import annotations

from inspect import signature
from typing import Any

import pyarrow as pa
import pyspark
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType as SparkStruct

from ..errors import UnsupportedFeatureError

try:
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # it has no types
except ImportError:  # A client of Spark Connect needs no JVM.
    SPARK_ERRORS: tuple[type[Exception], ...] = (PySparkException,)
else:
    SPARK_ERRORS = (PySparkException, Py4JJavaError)

INSTALLED = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
"""The major and the minor version of PySpark."""

# Arrow's timestamps are in UTC by default before the parameter `timezone`, which PySpark 4.2 has.
_IN_UTC: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}


def arrow_schema(spark_schema: SparkStruct) -> pa.Schema:
    """Return the Arrow schema that Spark expects for rows of a schema."""
    return to_arrow_schema(spark_schema, **_IN_UTC)


def check_version(oldest: tuple[int, int], what: str, remedy: str) -> None:
    """Raise UnsupportedFeatureError if the installed PySpark is older than a version."""
    if oldest > INSTALLED:
        raise UnsupportedFeatureError(
            f"cannot {what} with PySpark {pyspark.__version__} because its Python data sources lack the "
            f"interface: upgrade to PySpark {oldest[0]}.{oldest[1]}, or {remedy}"
        )
