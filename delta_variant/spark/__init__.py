"""Spark integration: executors read and write data files with the same code, the driver commits."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .._checks import check_installed
from .._pandas import hide_pandas

check_installed("pyspark", "delta_variant[spark]")
check_installed("sqlglot", "delta_variant[spark]")

STREAM_PROCESS = "pyspark.sql.streaming.python_streaming_source_runner"
"""The main module of a process that Spark starts for one stream from a Python data source."""

if getattr(getattr(sys.modules.get("__main__"), "__spec__", None), "name", None) == STREAM_PROCESS:
    hide_pandas()

if TYPE_CHECKING:
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

# Modules that are imported on the first access to one of their names: Spark starts a process of Python for
# each stream and for tasks, which need few of them.
_LAZY = {
    "cluster": ("ClusterCheck", "WorkerReport", "check_cluster"),
    "data_source": ("register",),
    "engine": ("SparkEngine",),
    "queries.execution": ("sql",),
    "queries.table_names": ("create_view", "drop_view"),
    "reading": ("read_changes", "read_table"),
    "streams": ("batch_merger", "batch_writer"),
    "task_errors": ("restore_errors",),
}


def __getattr__(name: str) -> Any:
    for module, names in _LAZY.items():
        if name in names:
            globals()[name] = value = getattr(import_module(f".{module}", __name__), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
