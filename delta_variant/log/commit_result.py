"""The result of an operation that commits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

__all__ = ["CommitResult"]

MAX_TEXT = 40
"""How many characters of a text `repr` prints."""


@dataclass(frozen=True, repr=False)
class CommitResult:
    """The result of an operation that commits to a table.

    Attributes:
        version: The committed version, None if nothing was committed.
        metrics: The metrics of the commit, as `history` returns them, empty without a commit.

    Example:
        >>> import delta_variant as dv
        >>> _ = dv.write_table("clicks", [{"id": 1}])
        >>> dv.set_properties("clicks", {"owner": "ann"})
        CommitResult(version=1)
    """

    version: int | None
    metrics: Mapping[str, int | str] = field(default_factory=dict, kw_only=True)

    def __repr__(self) -> str:
        parts = [f"version={self.version}"]
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name not in ("version", "metrics") and (each.default is MISSING or value != each.default):
                parts.append(f"{each.name}={_short(value)}")
        return f"{type(self).__name__}({', '.join(parts)})"


def _short(value: Any) -> str:
    """Return a value as text; a sequence of files or groups as its length."""
    if isinstance(value, str):
        return repr(value if len(value) <= MAX_TEXT else f"…{value[-MAX_TEXT:]}")
    return f"<{len(value)}>" if isinstance(value, Sequence) else repr(value)
