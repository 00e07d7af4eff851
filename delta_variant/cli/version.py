"""The version of the command line."""

from __future__ import annotations

from .._version import package_version

__all__ = ["print_version"]


def print_version() -> None:
    """Print the version of the installed package."""
    print(f"delta-variant {package_version()}")
