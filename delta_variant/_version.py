"""The version of the installed package."""

from __future__ import annotations

from functools import cache


@cache
def package_version() -> str:
    """Return the version, or `unknown` for a copy without the metadata of a distribution."""
    # Imported here because the import is slow, and only writes and `--version` need it.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("delta-variant")
    except PackageNotFoundError:
        return "unknown"
