"""The older Spark draft of shredding: read, written on demand, and migrated to the present layout.

A Variant column of the draft is a group of `object`, `array`, `typed_value` and `untyped_value`. The draft
was given up for `metadata`, `value` and `typed_value`, and engines read it no more: so its files, on a local
disk, are migrated.
"""

from __future__ import annotations

from .columns import shred_legacy, unshred_legacy
from .files import read_legacy_file, write_legacy_file
from .migration import MigratedFile, Migration, migrate_draft

__all__ = [
    "MigratedFile",
    "Migration",
    "migrate_draft",
    "read_legacy_file",
    "shred_legacy",
    "unshred_legacy",
    "write_legacy_file",
]
