"""Variant columns in Delta Lake tables: shredded Parquet, statistics and commits, without a JVM."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import errors
from .errors import *  # noqa: F403 - the classes in its `__all__`

if TYPE_CHECKING:
    from ._progress_bar import progress
    from .data_file.options import FileOptions, JsonOptions
    from .data_file.reader import compute_stats
    from .expressions.variant_get import try_variant_get, variant_get
    from .input.files import read_csv
    from .input.json_lines import read_json
    from .log.commit_context import CommitOptions, CommitResult
    from .log.load import load_snapshot
    from .log.snapshot import Snapshot
    from .operations.alter.columns import add_columns, change_type, drop_column, rename_column
    from .operations.alter.constraints import add_constraint, drop_constraint
    from .operations.alter.table_properties import set_properties, unset_properties
    from .operations.audit import Audit, audit_table
    from .operations.audit.findings import Finding
    from .operations.changes import read_changes
    from .operations.clone import CloneResult, clone
    from .operations.convert import convert
    from .operations.create import create_table
    from .operations.delete import delete, delete_all
    from .operations.describe.analyze import Analysis, analyze
    from .operations.describe.describe import describe
    from .operations.describe.summary import Summary
    from .operations.drop_feature import drop_feature
    from .operations.file_stats import file_stats
    from .operations.history import HistoryEntry, history
    from .operations.legacy import Migration, migrate_legacy
    from .operations.log_maintenance import (
        LogCleanupResult,
        LogRepairResult,
        clean_up_log,
        repair_log,
        write_checkpoint,
    )
    from .operations.merge.builder import Merge, merge
    from .operations.optimize.optimize import OptimizeResult, optimize
    from .operations.read import read_table
    from .operations.repair import FileRepairResult, RepairResult, repair_files, repair_statistics
    from .operations.restore import RestoreResult, restore
    from .operations.update import update
    from .operations.vacuum import VacuumResult, vacuum
    from .operations.write import write_table
    from .protocol.statistics import decode_bound, encode_bound
    from .queries.sql import QueryResult, sql
    from .read.aggregate import Aggregation, aggregate
    from .read.explanation import Explanation
    from .read.scan import Scan
    from .read.shredded_columns import shredded_columns
    from .table import Table
    from .variant.shredding import ShreddingSchema, infer_shredding_schema, shred, unshred
    from .variant.values import Variant, parse_json, to_json
    from .views.duckdb import to_duckdb
    from .views.export import ExportResult, export
    from .views.frames import read_delta, scan_delta
    from .write.commit import WriteResult
    from .write.rewrite import RewriteResult

__all__ = [
    "Aggregation",
    "Analysis",
    "Audit",
    "CloneResult",
    "CommitOptions",
    "CommitResult",
    "Explanation",
    "ExportResult",
    "FileOptions",
    "FileRepairResult",
    "Finding",
    "HistoryEntry",
    "JsonOptions",
    "LogCleanupResult",
    "LogRepairResult",
    "Merge",
    "Migration",
    "OptimizeResult",
    "QueryResult",
    "RepairResult",
    "RestoreResult",
    "RewriteResult",
    "Scan",
    "ShreddingSchema",
    "Snapshot",
    "Summary",
    "Table",
    "VacuumResult",
    "Variant",
    "WriteResult",
    "__version__",  # noqa: F405 - `__getattr__` returns it
    "add_columns",
    "add_constraint",
    "aggregate",
    "analyze",
    "audit_table",
    "change_type",
    "clean_up_log",
    "clone",
    "compute_stats",
    "convert",
    "create_table",
    "decode_bound",
    "delete",
    "delete_all",
    "describe",
    "drop_column",
    "drop_constraint",
    "drop_feature",
    "encode_bound",
    "export",
    "file_stats",
    "history",
    "infer_shredding_schema",
    "load_snapshot",
    "merge",
    "migrate_legacy",
    "optimize",
    "parse_json",
    "progress",
    "read_changes",
    "read_csv",
    "read_delta",
    "read_json",
    "read_table",
    "rename_column",
    "repair_files",
    "repair_log",
    "repair_statistics",
    "restore",
    "scan_delta",
    "set_properties",
    "shred",
    "shredded_columns",
    "sql",
    "to_duckdb",
    "to_json",
    "try_variant_get",
    "unset_properties",
    "unshred",
    "update",
    "vacuum",
    "variant_get",
    "write_checkpoint",
    "write_table",
]
__all__ += errors.__all__


# Modules that are imported on the first access to one of their names: few programs need them all, and the
# command line answers --version and shell completion without any.
_LAZY = {
    "_progress_bar": ("progress",),
    "data_file.options": ("FileOptions", "JsonOptions"),
    "data_file.reader": ("compute_stats",),
    "expressions.variant_get": ("try_variant_get", "variant_get"),
    "input.files": ("read_csv",),
    "input.json_lines": ("read_json",),
    "log.commit_context": ("CommitOptions", "CommitResult"),
    "log.load": ("load_snapshot",),
    "log.snapshot": ("Snapshot",),
    "operations.alter.columns": ("add_columns", "change_type", "drop_column", "rename_column"),
    "operations.alter.constraints": ("add_constraint", "drop_constraint"),
    "operations.alter.table_properties": ("set_properties", "unset_properties"),
    "operations.audit": ("Audit", "audit_table"),
    "operations.audit.findings": ("Finding",),
    "operations.changes": ("read_changes",),
    "operations.clone": ("CloneResult", "clone"),
    "operations.convert": ("convert",),
    "operations.create": ("create_table",),
    "operations.delete": ("delete", "delete_all"),
    "operations.describe.analyze": ("Analysis", "analyze"),
    "operations.describe.describe": ("describe",),
    "operations.describe.summary": ("Summary",),
    "operations.drop_feature": ("drop_feature",),
    "operations.file_stats": ("file_stats",),
    "operations.history": ("HistoryEntry", "history"),
    "operations.legacy": ("Migration", "migrate_legacy"),
    "operations.log_maintenance": (
        "LogCleanupResult",
        "LogRepairResult",
        "clean_up_log",
        "repair_log",
        "write_checkpoint",
    ),
    "operations.merge.builder": ("Merge", "merge"),
    "operations.optimize.optimize": ("OptimizeResult", "optimize"),
    "operations.read": ("read_table",),
    "operations.restore": ("RestoreResult", "restore"),
    "operations.repair": ("FileRepairResult", "RepairResult", "repair_files", "repair_statistics"),
    "operations.update": ("update",),
    "operations.vacuum": ("VacuumResult", "vacuum"),
    "operations.write": ("write_table",),
    "protocol.statistics": ("decode_bound", "encode_bound"),
    "queries.sql": ("QueryResult", "sql"),
    "read.aggregate": ("Aggregation", "aggregate"),
    "read.explanation": ("Explanation",),
    "read.scan": ("Scan",),
    "read.shredded_columns": ("shredded_columns",),
    "table": ("Table",),
    "variant.shredding": ("ShreddingSchema", "infer_shredding_schema", "shred", "unshred"),
    "variant.values": ("Variant", "parse_json", "to_json"),
    "views.duckdb": ("to_duckdb",),
    "views.export": ("ExportResult", "export"),
    "views.frames": ("read_delta", "scan_delta"),
    "write.commit": ("WriteResult",),
    "write.rewrite": ("RewriteResult",),
}


def __getattr__(name: str) -> Any:
    # Read on demand: importlib.metadata takes a tenth of the time of `import delta_variant`.
    if name == "__version__":
        from ._version import package_version

        return package_version()
    if name == "functions":
        return import_module(".functions", __name__)
    for module, names in _LAZY.items():
        if name in names:
            globals()[name] = value = getattr(import_module(f".{module}", __name__), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
