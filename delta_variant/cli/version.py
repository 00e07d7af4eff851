"""The version of the installed package."""

from __future__ import annotations

__all__ = ["print_version"]


def print_version() -> None:
    """Print the version of the installed package."""
    # Imported here, because the start of every command imports this module.
    from importlib.metadata import version

    print(f"delta-variant {version('delta-variant')}")
