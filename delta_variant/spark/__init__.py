"""The Spark pipeline: the same rooms in other hands; executors write and read files, the driver commits."""

from .reading import read_table
from .writing import write_table

__all__ = ["read_table", "write_table"]
