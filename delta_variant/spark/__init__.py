"""Spark integration: executors read and write data files with the same code, the driver commits."""

# ruff: noqa: E402 - the check comes before the modules that import pyspark

from .._checks import check_installed

check_installed("pyspark", "delta_variant[spark]")
check_installed("sqlglot", "delta_variant[spark]")

from .auditing import audit_table, repair_statistics
from .data_source import register
from .engine import SparkEngine
from .merging import merge
from .optimizing import optimize
from .queries.execution import sql
from .queries.table_names import create_view, drop_view
from .reading import read_changes, read_table
from .rewriting import delete, update
from .streams import batch_merger, batch_writer
from .task_errors import restore_errors
from .writing import write_table

__all__ = [
    "SparkEngine",
    "audit_table",
    "batch_merger",
    "batch_writer",
    "create_view",
    "delete",
    "drop_view",
    "merge",
    "optimize",
    "read_changes",
    "read_table",
    "register",
    "repair_statistics",
    "restore_errors",
    "sql",
    "update",
    "write_table",
]
