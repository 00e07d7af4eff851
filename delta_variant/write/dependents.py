"""Reject changes of a column that constraints or generated columns read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..errors import ExpressionError, SchemaError
from ..expressions.tree import Expression, Name
from ..expressions.tree import transform as transform_expression
from ..log.snapshot import Snapshot
from ..protocol.schema.paths import FieldPath, path_text
from ..protocol.types import StructType, fields_of
from .row_rules import GENERATION_EXPRESSION, INVARIANTS, check_constraints
from .stored_sql import parse_stored

__all__ = ["check_independent", "check_read_columns_stay"]


def check_independent(snapshot: Snapshot, path: FieldPath) -> None:
    """Raise SchemaError if a constraint or a generated column reads the column at `path` or a part of it.

    Delta on Spark does the same, because constraints store the SQL text with the column names in it.
    """
    readers = [what for what, text in _expressions(snapshot, snapshot.schema) if _reads(text, path, snapshot)]
    if readers:
        raise SchemaError(
            f"cannot change the column {path_text(path)!r} because {', '.join(readers)} of {snapshot.uri} "
            f"{'reads' if len(readers) == 1 else 'read'} it",
            table=snapshot.uri,
            column=path_text(path),
        )


def check_read_columns_stay(snapshot: Snapshot, columns: StructType) -> None:
    """Raise SchemaError if the new columns lack one that a constraint or one of their expressions reads."""
    names = {field.name.lower() for field in columns.fields}
    removed = [field.name for field in snapshot.schema.fields if field.name.lower() not in names]
    for what, text in _expressions(snapshot, columns):
        for name in removed:
            if _reads(text, (name,), snapshot):
                raise SchemaError(
                    f"{what} of {snapshot.uri} reads the column {name!r}, which the data does not have: add "
                    "it, or remove what reads it first",
                    table=snapshot.uri,
                    column=name,
                )


def _expressions(snapshot: Snapshot, columns: StructType) -> Iterator[tuple[str, str]]:
    """Yield the SQL text of the constraints of a table and of its columns, each with a description."""
    for name, text in check_constraints(snapshot.properties):
        yield f"the CHECK constraint {name}", text
    for path, field in fields_of(columns):
        for key, what in ((GENERATION_EXPRESSION, "the generated column"), (INVARIANTS, "the invariant of")):
            if key in field.metadata:
                yield f"{what} {path_text(path)}", str(field.metadata[key])


def _reads(text: str, path: FieldPath, snapshot: Snapshot) -> bool:
    try:
        names = _names(parse_stored(text, [field.name for field in snapshot.schema.fields]))
    except ExpressionError:
        # If the expression cannot be parsed, assume that it reads every column whose name occurs in it.
        return re.search(rf"(?<!\w){re.escape(path[0])}(?!\w)", text, re.IGNORECASE) is not None
    return any(_overlap(name, path) for name in names)


def _overlap(name: FieldPath, path: FieldPath) -> bool:
    return all(one.lower() == other.lower() for one, other in zip(name, path, strict=False))


def _names(parsed: Expression) -> list[FieldPath]:
    names: list[FieldPath] = []

    def collect(part: Expression) -> None:
        if isinstance(part, Name):
            names.append(part.parts)

    transform_expression(parsed, collect)
    return names
