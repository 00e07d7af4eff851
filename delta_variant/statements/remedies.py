"""The remedies of errors in the words of SQL, because a statement has no arguments of Python."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import DeltaVariantError

REMEDIES: Mapping[str, str] = {
    "mode='append'": "INSERT INTO",
    "mode='overwrite'": "CREATE OR REPLACE TABLE … AS",
    "mode='ignore'": "CREATE TABLE IF NOT EXISTS",
    "schema_mode='merge'": "MERGE WITH SCHEMA EVOLUTION",
    "except_cols": "a list of columns instead of *",
    "enforce_retention_duration=False": "dv.vacuum with enforce_retention_duration=False",
}
"""What to use instead of an argument, by its name, or by its name and its value."""


def use_sql(error: DeltaVariantError) -> None:
    """Replace the arguments that an error proposes by SQL."""
    found = [REMEDIES.get(f"{name}={value!r}", REMEDIES.get(name)) for name, value in error.remedies]
    if ways := [way for way in found if way is not None]:
        error.message = f"{error.message}: use {' or '.join(ways)}"
        error.remedies = ()
