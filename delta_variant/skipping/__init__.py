"""Skipping: which files, row groups and pages hold no row that a predicate asks for.

What is skipped provably holds none; where statistics are absent, undecodable or of another type, it is read.
"""

from .condition import Condition, Leaf, condition_of, leaves
from .files import file_bounds, partition_matches, partition_test
from .keep import Bounds, kept

__all__ = [
    "Bounds",
    "Condition",
    "Leaf",
    "condition_of",
    "file_bounds",
    "kept",
    "leaves",
    "partition_matches",
    "partition_test",
]
