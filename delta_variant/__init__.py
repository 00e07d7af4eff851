"""Variant columns in Delta Lake tables: shredded Parquet, statistics and commits, without a JVM."""

from __future__ import annotations

from .alter import (
    add_columns,
    add_constraint,
    change_type,
    drop_column,
    drop_constraint,
    rename_column,
    set_properties,
    unset_properties,
)
from .audit import audit_table
from .cleanup import vacuum
from .data_file import file_stats
from .draft import migrate_draft
from .errors import DeltaVariantError
from .json_lines import read_json_lines
from .log import load_snapshot
from .read import read_changes, read_table
from .repair import repair_table
from .rewrite import delete, merge, optimize, update
from .shredding import ShreddingSchema, infer_shredding_schema, shred, unshred
from .snapshot import Snapshot
from .timeline import history, restore
from .values import try_variant_get, variant_get
from .variant import Variant, parse_json, to_json
from .write import write_table

__all__ = [
    "DeltaVariantError",
    "ShreddingSchema",
    "Snapshot",
    "Variant",
    "__version__",
    "add_columns",
    "add_constraint",
    "audit_table",
    "change_type",
    "delete",
    "drop_column",
    "drop_constraint",
    "file_stats",
    "history",
    "infer_shredding_schema",
    "load_snapshot",
    "merge",
    "migrate_draft",
    "optimize",
    "parse_json",
    "read_changes",
    "read_json_lines",
    "read_table",
    "rename_column",
    "repair_table",
    "restore",
    "set_properties",
    "shred",
    "to_json",
    "try_variant_get",
    "unset_properties",
    "unshred",
    "update",
    "vacuum",
    "variant_get",
    "write_table",
]


def __getattr__(name: str) -> str:
    # The version is looked up when it is asked for: importlib.metadata takes a tenth of the whole import.
    if name == "__version__":
        from importlib.metadata import version

        return version("delta-variant")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
