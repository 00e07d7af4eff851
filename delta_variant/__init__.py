"""Variant columns in Delta Lake tables: shredded Parquet, statistics and commits, without a JVM."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .data_file import file_stats
from .errors import DeltaVariantError
from .json_lines import read_json_lines
from .log import load_snapshot
from .read import read_changes, read_table
from .shredding import ShreddingSchema, infer_shredding_schema, shred, unshred
from .snapshot import Snapshot
from .values import try_variant_get, variant_get
from .variant import Variant, parse_json, to_json
from .write import write_table

if TYPE_CHECKING:
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
    from .draft import migrate_draft
    from .repair import repair_table
    from .rewrite import delete, merge, optimize, update
    from .timeline import history, restore

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


# Rooms that are imported when one of their names is first asked for: not every program needs each of them.
_LATER = {
    "alter": (
        "add_columns",
        "add_constraint",
        "change_type",
        "drop_column",
        "drop_constraint",
        "rename_column",
        "set_properties",
        "unset_properties",
    ),
    "audit": ("audit_table",),
    "cleanup": ("vacuum",),
    "draft": ("migrate_draft",),
    "repair": ("repair_table",),
    "rewrite": ("delete", "merge", "optimize", "update"),
    "timeline": ("history", "restore"),
}


def __getattr__(name: str) -> Any:
    # The version is looked up when it is asked for: importlib.metadata takes a tenth of the whole import.
    if name == "__version__":
        from importlib.metadata import version

        return version("delta-variant")
    for room, names in _LATER.items():
        if name in names:
            return getattr(import_module(f".{room}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
