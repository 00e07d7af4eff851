"""The Spark pipeline: the same rooms in other hands; executors write and read files, the driver commits."""

from .auditing import audit_table, repair_table
from .data_source import register
from .optimizing import optimize
from .reading import read_table
from .streams import batch_writer
from .writing import write_table

__all__ = ["audit_table", "batch_writer", "optimize", "read_table", "register", "repair_table", "write_table"]
