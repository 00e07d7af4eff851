"""Spark integration: executors read and write data files with the same code, the driver commits."""

from .auditing import audit_table, repair_statistics
from .data_source import register
from .optimizing import optimize
from .reading import read_table
from .streams import batch_writer
from .writing import write_table

__all__ = [
    "audit_table",
    "batch_writer",
    "optimize",
    "read_table",
    "register",
    "repair_statistics",
    "write_table",
]
