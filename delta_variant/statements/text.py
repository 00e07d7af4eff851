"""Replace parts of the text of a query: tables by the fields of DataFrames in `spark.sql`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from .parts import Query, Span, TableReference

__all__ = ["escape", "field", "field_name", "quote", "replace_tables"]


def quote(name: str) -> str:
    """Return a name as a quoted SQL identifier."""
    return "`" + name.replace("`", "``") + "`"


def field_name(reference: int) -> str:
    """Return the name of the DataFrame of a table reference."""
    return f"t{reference}"


def field(reference: int) -> str:
    """Return the text for the DataFrame of a table reference."""
    return f"{{{field_name(reference)}}}"


def replace_tables(query: Query, sources: Mapping[int, str], others: Mapping[Span, str]) -> str:
    """Return the text of a query for `spark.sql` with other sources in place of tables.

    `others` are further replacements by their span.
    """
    replacements = dict(others)
    for number, source in sources.items():
        table = query.tables[number]
        alias = f" AS {quote(table.parts[-1])}" if table.takes_alias else ""
        replacements[table.span] = f"{source}{alias}"
        for span in _qualifiers(query, table):
            if not any(start <= span[0] <= end for start, end in others):
                replacements[span] = ""
    parts, position = [], 0
    for (start, end), text in sorted(replacements.items()):
        parts += [escape(query.text[position:start]), text]
        position = end + 1
    return "".join([*parts, escape(query.text[position:])])


def escape(text: str) -> str:
    """Return a text in which no brace begins a field."""
    return text.replace("{", "{{").replace("}", "}}")


def _qualifiers(query: Query, table: TableReference) -> Iterator[tuple[int, int]]:
    """Yield the spans of catalogs and schemas that the table's own name begins with in names of columns."""
    if table.alias is None:
        for span, parts in query.qualifiers:
            if _lower(parts) == _lower(table.parts[-len(parts) :]):
                yield span


def _lower(parts: Sequence[str]) -> list[str]:
    return [part.lower() for part in parts]
