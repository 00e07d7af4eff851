"""The Spark pipeline: the same rooms in other hands; executors write and read files, the driver commits."""

from .data_source import register
from .reading import read_table
from .streams import batch_writer
from .writing import write_table

__all__ = ["batch_writer", "read_table", "register", "write_table"]
