"""The remedies that errors name, in the options of the command line instead of Python's arguments."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import DeltaVariantError

__all__ = ["message_of"]

OPTIONS: Mapping[tuple[str, object], str] = {
    ("enforce_retention_duration", False): "--no-enforce-retention",
    ("shredding", None): "--shredding none",
}
"""The options of arguments that differ by more than dashes."""


def message_of(error: Exception) -> str:
    """Return the message of an error. A remedy of a DeltaVariantError is an option of the command line."""
    return error.text(_option) if isinstance(error, DeltaVariantError) else str(error)


def _option(name: str, value: object) -> str:
    known = OPTIONS.get((name, value))
    return known or f"--{name.replace('_', '-')} {value}"
