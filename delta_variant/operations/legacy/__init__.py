"""Read, write and migrate local Parquet files in the legacy shredding layout of an older Spark draft.

A Variant column in the legacy layout is a group of `object`, `array`, `typed_value` and `untyped_value`.
VariantShredding.md replaced it with `metadata`, `value` and `typed_value`, and no current engine reads it.
"""

from __future__ import annotations

from .files import read_legacy_file, shred_legacy, unshred_legacy, write_legacy_file
from .migration import MigratedFile, Migration, migrate_legacy

__all__ = [
    "MigratedFile",
    "Migration",
    "migrate_legacy",
    "read_legacy_file",
    "shred_legacy",
    "unshred_legacy",
    "write_legacy_file",
]
