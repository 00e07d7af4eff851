"""The version of the installed package."""

from __future__ import annotations

import os
import sys
from functools import cache


@cache
def package_version() -> str:
    """Return the version, or `unknown` for a copy without the metadata of a distribution."""
    # Imported here because the import is slow, and only writes and `--version` need it.
    from importlib.metadata import distributions

    # A search of the archives that Spark adds to the path of a worker takes 50 ms.
    folders = [entry for entry in sys.path if not os.path.isfile(entry)]
    return next((found.version for found in distributions(name="delta-variant", path=folders)), "unknown")
