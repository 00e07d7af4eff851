"""Spark integration: executors read and write data files with the same code, the driver commits."""

# ruff: noqa: E402 - the check comes before the modules that import pyspark

from .._checks import check_installed

check_installed("pyspark", "delta_variant[spark]")
check_installed("sqlglot", "delta_variant[spark]")

from .cluster import ClusterCheck, WorkerReport, check_cluster
from .data_source import register
from .engine import SparkEngine
from .queries.execution import sql
from .queries.table_names import create_view, drop_view
from .reading import read_changes, read_table
from .streams import batch_merger, batch_writer
from .task_errors import restore_errors

__all__ = [
    "ClusterCheck",
    "SparkEngine",
    "WorkerReport",
    "batch_merger",
    "batch_writer",
    "check_cluster",
    "create_view",
    "drop_view",
    "read_changes",
    "read_table",
    "register",
    "restore_errors",
    "sql",
]
