"""The rows of a table: out of its data files, into new ones, and from file to file when some of them change.

What is read here are files that a snapshot lists, and what is written becomes part of the table by a commit.
"""

from .arrow_data import batches_of
from .changes import cdc_file
from .dependents import check_constrained_stay, check_independent
from .faults import Faults, RejectsFile
from .in_memory import inputs_of, parsed, with_variants
from .plan import FilePlan, RowPlan, may_hold, plan_files, plan_rows
from .reading import DataFile, OpenFile, Table, files_of
from .rewriting import (
    Changed,
    Rewritten,
    RowChange,
    count_rows,
    delete_rows,
    is_of_partitions,
    rewrite_rows,
    with_inserted,
)
from .row_rules import Condition, RowRules
from .row_tracking import RowTracking, beside
from .scope import Scope
from .target import Target, allowed, engine_info, mapped, now, tracked
from .writing import (
    Batches,
    PartitionFile,
    add_file,
    discard,
    new_name,
    new_rows,
    with_one_shredding,
    write_files,
)

__all__ = [
    "Batches",
    "Changed",
    "Condition",
    "DataFile",
    "Faults",
    "FilePlan",
    "OpenFile",
    "PartitionFile",
    "RejectsFile",
    "Rewritten",
    "RowChange",
    "RowPlan",
    "RowRules",
    "RowTracking",
    "Scope",
    "Table",
    "Target",
    "add_file",
    "allowed",
    "batches_of",
    "beside",
    "cdc_file",
    "check_constrained_stay",
    "check_independent",
    "count_rows",
    "delete_rows",
    "discard",
    "engine_info",
    "files_of",
    "inputs_of",
    "is_of_partitions",
    "mapped",
    "may_hold",
    "new_name",
    "new_rows",
    "now",
    "parsed",
    "plan_files",
    "plan_rows",
    "rewrite_rows",
    "tracked",
    "with_inserted",
    "with_one_shredding",
    "with_variants",
    "write_files",
]
