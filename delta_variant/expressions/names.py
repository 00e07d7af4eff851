"""The names that an expression can use, and the time zone of its local times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

import msgspec
import pyarrow as pa

from .._checks import list_names, nearest
from ..errors import ExpressionError
from ..variant.moments import UTC


class NameScope(msgspec.Struct, frozen=True, dict=True):
    """The columns that an expression can use, which of them are Variants, and the time zone of local times.

    `moment` is the time of `current_timestamp()`, which is an error without one.

    Expressions over a wide table resolve each of its columns, so the names of each level are indexed once.
    """

    schema: pa.Schema
    variants: tuple[str, ...] = ()
    timezone: str = UTC
    moment: datetime | None = None

    @cached_property
    def variant_names(self) -> frozenset[str]:
        return frozenset(self.variants)

    @cached_property
    def _indexes(self) -> dict[tuple[str, ...], dict[str, list[pa.Field[Any]]]]:
        return {}

    def fields(
        self, name: str, parents: tuple[str, ...] = (), struct: Iterable[pa.Field[Any]] | None = None
    ) -> list[pa.Field[Any]]:
        """Return the columns with a name, or the fields of `struct`, which the names `parents` lead to.

        A name matches without regard to case. Of several matches, an exact one is the only one.
        """
        index = self._indexes.get(parents)
        if index is None:
            index = self._indexes[parents] = {}
            for field in self.schema if struct is None else struct:
                index.setdefault(field.name.lower(), []).append(field)
        found = index.get(name.lower(), [])
        return [field for field in found if field.name == name] or found if len(found) > 1 else found

    def field(
        self,
        part: str,
        whole: str,
        parents: tuple[str, ...] = (),
        struct: Iterable[pa.Field[Any]] | None = None,
    ) -> pa.Field[Any]:
        """Return the only column or field that `part` of the name `whole` matches; raises ExpressionError."""
        found = self.fields(part, parents, struct)
        if len(found) == 1:
            return found[0]
        names = [field.name for field in (self.schema if struct is None else struct)]
        kind = "columns" if struct is None else "fields"
        problem = f"matches {len(found)} {kind}" if found else "does not exist"
        subject = f"`{part}`" if part == whole else f"`{whole}`: `{part}`"
        hint = "" if found else self._proposal(part, whole, names)
        raise ExpressionError(f"{subject} {problem}; the {kind} are {list_names(names)}{hint}", column=whole)

    def _proposal(self, part: str, whole: str, names: list[str]) -> str:
        """Return a hint at a close name, or at the path of the only Variant column."""
        path = f"{self.variants[0]}:{whole}" if part == whole and len(self.variants) == 1 else None
        return propose_name(part, whole, names, path)


def propose_name(part: str, whole: str, names: Sequence[str], path: str | None) -> str:
    """Return a hint for an unknown `part` of the name `whole`: a name with dots, a close name, or a path."""
    for name in names:
        if "." in name and f".{whole}".lower().endswith(f".{name}".lower()):
            return f"; write `{name}` in backquotes"
    close = nearest(part, names) or path
    return "" if close is None else f"; did you mean `{close}`?"
