"""The remedies that errors name, in the options of the command line instead of Python's arguments."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import DeltaVariantError

__all__ = ["message_of"]

OPTIONS: Mapping[tuple[str, object], str] = {
    ("enforce_retention_duration", False): "--no-enforce-retention",
    ("on_invalid", "reject"): "--on-invalid reject --rejects FILE",
    ("shredding", None): "--shredding none",
}
"""The options of arguments that differ by more than dashes."""

OTHER_WAYS: Mapping[str, str] = {"except_cols": "--set for each column to set"}
"""Options of the command line that replace an argument of Python."""


def message_of(error: DeltaVariantError) -> str:
    """Return the message of an error, whose remedies are options of the command line."""
    return error.text(_option)


def _option(name: str, value: object) -> str:
    if name in OTHER_WAYS:
        return OTHER_WAYS[name]
    return OPTIONS.get((name, value)) or f"--{name.replace('_', '-')} {value}"
