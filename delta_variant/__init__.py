"""Variant columns in Delta Lake tables: shredded Parquet, statistics and commits, without a JVM."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .data_file.statistics import file_stats
from .errors import DeltaVariantError
from .expressions.variant_get import try_variant_get, variant_get
from .log.load import load_snapshot
from .log.snapshot import Snapshot
from .operations.changes import read_changes
from .operations.read import read_table
from .operations.write import write_table
from .variant.shredding import ShreddingSchema, infer_shredding_schema, shred, unshred
from .variant.values import Variant, parse_json, to_json
from .writer.json_lines import read_json

if TYPE_CHECKING:
    from .operations.alter.columns import add_columns, drop_column, rename_column
    from .operations.alter.constraints import add_constraint, drop_constraint
    from .operations.alter.table_properties import set_properties, unset_properties
    from .operations.alter.type_change import change_type
    from .operations.audit import audit_table
    from .operations.delete import delete, delete_all
    from .operations.history import history
    from .operations.legacy.migration import migrate_legacy
    from .operations.merge.builder import merge
    from .operations.optimize.optimize import optimize
    from .operations.restore import restore
    from .operations.statistics_repair import repair_statistics
    from .operations.update import update
    from .operations.vacuum import vacuum

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
    "delete_all",
    "drop_column",
    "drop_constraint",
    "file_stats",
    "history",
    "infer_shredding_schema",
    "load_snapshot",
    "merge",
    "migrate_legacy",
    "optimize",
    "parse_json",
    "read_changes",
    "read_json",
    "read_table",
    "rename_column",
    "repair_statistics",
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


# Modules that are imported on the first access to one of their names, because few programs need them all.
_LAZY = {
    "operations.alter.columns": (
        "add_columns",
        "drop_column",
        "rename_column",
    ),
    "operations.alter.constraints": (
        "add_constraint",
        "drop_constraint",
    ),
    "operations.alter.table_properties": (
        "set_properties",
        "unset_properties",
    ),
    "operations.alter.type_change": ("change_type",),
    "operations.audit": ("audit_table",),
    "operations.delete": (
        "delete",
        "delete_all",
    ),
    "operations.history": ("history",),
    "operations.legacy.migration": ("migrate_legacy",),
    "operations.merge.builder": ("merge",),
    "operations.optimize.optimize": ("optimize",),
    "operations.restore": ("restore",),
    "operations.statistics_repair": ("repair_statistics",),
    "operations.update": ("update",),
    "operations.vacuum": ("vacuum",),
}


def __getattr__(name: str) -> Any:
    # Read on demand: importlib.metadata takes a tenth of the time of `import delta_variant`.
    if name == "__version__":
        from importlib.metadata import version

        return version("delta-variant")
    for module, names in _LAZY.items():
        if name in names:
            return getattr(import_module(f".{module}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
