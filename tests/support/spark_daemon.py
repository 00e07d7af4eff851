"""The daemon of Spark's Python workers, which imports what they need once: a worker is a fork of it.

Spark starts workers for each plan of a data source, and each would take 1.6 seconds of CPU time to import.
"""

from __future__ import annotations

import pyspark.sql.worker.plan_data_source_read
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import delta_variant.spark  # noqa: F401

if __name__ == "__main__":
    manager()
