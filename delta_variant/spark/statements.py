"""Rewrite a query so that tasks extract values from Variants and select rows, and Spark does the rest.

Each path or cast over a table becomes a column that tasks read. Conditions stay in the query: those on one
table also leave out rows in the tasks. A strict cast becomes `coalesce(column, cast(failed[0] AS type))`,
where `failed` has the Variants that the tasks could not cast, so that Spark raises its error exactly where it
evaluates the cast.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import CastError, ExpressionError
from ..expressions.evaluate import evaluate, without_cast
from ..expressions.statements import Extract, Query, TableReference
from ..expressions.statements import Scope as StatementScope
from ..expressions.tree import (
    Call,
    Expression,
    Extraction,
    Literal,
    Name,
    VariantCall,
    input_name,
    transform,
)
from ..expressions.types import kind_of, type_name
from ..log.snapshot import Snapshot
from ..operations.read.query import Query as RowQuery
from ..protocol.schema.arrow import variant_field
from ..scan.scope import Scope
from ..variant import values as variants
from .columns import quote

__all__ = ["LenientQuery", "Rewriting", "replace_tables", "rewrite"]

CONSTANT = Literal(pa.scalar(True))
"""The column of rows of which the query reads none."""


class LenientQuery(RowQuery, frozen=True):
    """A query whose batches have all rows, and the Variants that cannot be cast, if a cast fails.

    The output `failed` has an array of Variants for a row with a failed cast, one for each strict cast among
    the outputs, else NULL.
    """

    failed: str | None = None

    @classmethod
    def of_outputs(
        cls, outputs: Mapping[str, Expression], predicate: Expression | None, failed: str | None = None
    ) -> LenientQuery:
        """Return the query for bound expressions; the output `failed` is added."""
        added = {} if failed is None else {failed: Literal(pa.scalar(None, VARIANTS))}
        query = cls({}, predicate, (), failed=failed)._with({**outputs, **added}, None)
        assert isinstance(query, LenientQuery)
        return query

    def result(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the outputs for the rows that match the predicate, or for all rows if a cast fails."""
        try:
            return super().result(batch)
        except CastError:
            return self._all_rows(batch)

    def _all_rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays: dict[str, Any] = {}
        failed = []
        for name, each in self.outputs.items():
            if not _is_strict(each):
                arrays[name] = evaluate(each, batch)
                continue
            arrays[name], rest = _cast_or_keep(each, batch)
            failed.append(rest)
        if self.failed is not None:
            arrays[self.failed] = _arrays_of_failed(failed, batch.num_rows)
        schema = self.schema
        return pa.record_batch([arrays[name].cast(schema.field(name).type) for name in arrays], schema=schema)


def _is_strict(each: Expression) -> bool:
    return isinstance(each, Extraction) and each.type is not None and each.strict


def _cast_or_keep(each: Any, batch: pa.RecordBatch) -> tuple[Any, Any]:
    """Return the values of a strict cast, NULL where it fails, and the Variants where it does."""
    if input_name(each) in batch.schema.names:
        return batch.column(input_name(each)), pa.nulls(batch.num_rows, VARIANTS.value_type)
    raw: Any = batch.column(input_name(without_cast(each)))
    found = variants.extract(raw, (), each.type, strict=False, timezone=each.timezone)
    parts = [raw.field(name).cast(pa.binary()) for name in ("metadata", "value")]
    is_failed = pc.and_(found.is_null(), raw.is_valid())
    kept = pa.StructArray.from_arrays(
        [pc.if_else(is_failed, part, b"") for part in parts],
        fields=list(VARIANTS.value_type),
        mask=pc.invert(is_failed),
    )
    return found, kept


def _arrays_of_failed(failed: Sequence[Any], rows: int) -> Any:
    """Return for each row the array of its Variants, NULL for a row without any."""
    has_any = pa.repeat(pa.scalar(False), rows)
    for each in failed:
        has_any = pc.or_(has_any, each.is_valid())
    flags = [bool(each) for each in has_any.to_pylist()]
    numbers = [number * rows + row for row, flag in enumerate(flags) if flag for number in range(len(failed))]
    offsets = [0]
    for flag in flags:
        offsets.append(offsets[-1] + flag * len(failed))
    values = pa.concat_arrays(failed).take(pa.array(numbers, pa.int64()))
    from_arrays: Any = pa.ListArray.from_arrays
    return from_arrays(pa.array(offsets, pa.int32()), values, type=VARIANTS, mask=pc.invert(has_any))


VARIANTS: Any = pa.list_(variant_field("element"))


@dataclass(frozen=True)
class TableRead:
    """What a query reads of one table reference.

    `query` is None if it needs all columns. `predicate` leaves out files, and rows if there is a query.
    """

    predicate: Expression | None
    query: LenientQuery | None


@dataclass(frozen=True)
class Rewriting:
    """A query with fields for the DataFrames of its tables, and what these read, by table reference."""

    text: str
    reads: Mapping[int, TableRead]


@dataclass
class _Use:
    """The columns of a table reference that a query uses, and the conditions on it alone."""

    columns: set[str] = field(default_factory=set)
    extractions: dict[Extraction, str] = field(default_factory=dict)
    conditions: list[Expression] = field(default_factory=list)


def field_name(reference: int) -> str:
    """Return the name of the DataFrame of a table reference."""
    return f"t{reference}"


def replace_tables(query: Query, references: Sequence[int], others: Mapping[tuple[int, int], str]) -> str:
    """Return the text of a query for `spark.sql` with DataFrames in place of tables.

    `others` are further replacements by their span.
    """
    replacements = dict(others)
    for number in references:
        table = query.tables[number]
        alias = f" AS {quote(table.parts[-1])}" if table.takes_alias else ""
        replacements[table.span] = f"{{{field_name(number)}}}{alias}"
        for span in _qualifiers(query, table):
            if not any(start <= span[0] <= end for start, end in others):
                replacements[span] = ""
    parts, position = [], 0
    for (start, end), text in sorted(replacements.items()):
        parts += [_escape(query.text[position:start]), text]
        position = end + 1
    return "".join([*parts, _escape(query.text[position:])])


def _escape(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _qualifiers(query: Query, table: TableReference) -> Iterator[tuple[int, int]]:
    """Yield the spans of catalogs and schemas that the table's own name begins with in names of columns."""
    if table.alias is None:
        for span, parts in query.qualifiers:
            if _lower(parts) == _lower(table.parts[-len(parts) :]):
                yield span


def _lower(parts: Sequence[str]) -> list[str]:
    return [part.lower() for part in parts]


def rewrite(query: Query, tables: Mapping[int, Snapshot], *, with_conditions: bool) -> Rewriting:
    """Return a query in which tasks extract values and, `with_conditions`, leave out rows and files.

    `tables` has the tables by the index of their reference.
    """
    return _Rewriter(query, tables).rewrite(with_conditions=with_conditions)


class _Rewriter:
    def __init__(self, query: Query, tables: Mapping[int, Snapshot]) -> None:
        self._query = query
        self._scopes = {number: Scope.of(each.schema, each.timezone) for number, each in tables.items()}
        self._columns = {
            number: {name.lower(): name for name in scope.schema.names}
            for number, scope in self._scopes.items()
        }
        self._uses = {number: _Use() for number in tables}
        self._owners = {
            reference: (number, alias)
            for number, scope in enumerate(query.scopes)
            for alias, reference in scope.sources.items()
            if reference in tables
        }
        self._narrow = {number for number in tables if self._is_narrow(number)}
        self._prefix = "extracted"
        names = {name for _, name in query.names}
        while any(name.startswith(self._prefix) for name in names):
            self._prefix += "_"

    def rewrite(self, *, with_conditions: bool) -> Rewriting:
        replacements: dict[tuple[int, int], tuple[int, Extraction]] = {}
        for scope, found in self._query.extracts:
            if (replacement := self._extract(scope, found)) is not None:
                replacements |= replacement
        if with_conditions:
            self._add_conditions()
        for position, name in self._query.names:
            if not any(start <= position <= end for start, end in replacements):
                for number, columns in self._columns.items():
                    if name in columns:
                        self._uses[number].columns.add(columns[name])
        texts = {span: self._text(reference, each) for span, (reference, each) in replacements.items()}
        reads = {number: self._read(number) for number in self._uses}
        return Rewriting(replace_tables(self._query, [*self._uses], texts), reads)

    def _is_narrow(self, number: int) -> bool:
        """Return whether the columns of a table that the query names are all that it reads."""
        if number not in self._owners or not self._query.tables[number].is_plain:
            return False
        scope, alias = self._owners[number]
        return self._query.scopes[scope].is_plain and alias not in self._query.scopes[scope].stars

    def _extract(
        self, scope: int, found: Sequence[Extract]
    ) -> dict[tuple[int, int], tuple[int, Extraction]] | None:
        for each in found:
            resolved = self._resolve_all(scope, each.expression, is_output=True)
            if resolved is None:
                continue
            reference, expression = resolved
            bound = self._bind(reference, expression)
            if reference in self._narrow and isinstance(bound, Extraction) and _is_readable(bound):
                names = self._uses[reference].extractions
                names.setdefault(bound, f"{self._prefix}{reference}_{len(names)}")
                return {each.span: (reference, bound)}
        return None

    def _text(self, reference: int, extraction: Extraction) -> str:
        name = self._uses[reference].extractions[extraction]
        if not _is_strict(extraction):
            return name
        strict = [each for each in self._uses[reference].extractions if _is_strict(each)]
        failed = f"{self._failed(reference)}[{strict.index(extraction)}]"
        return f"coalesce({name}, cast({failed} AS {type_name(extraction.type)}))"

    def _failed(self, reference: int) -> str:
        return f"{self._prefix}{reference}_failed"

    def _add_conditions(self) -> None:
        for scope, conjunct in self._query.conjuncts:
            resolved = self._resolve_all(scope, conjunct.expression, is_output=False)
            if resolved is None:
                continue
            reference, expression = resolved
            owner, alias = self._owners.get(reference, (None, None))
            if owner != scope or alias not in conjunct.sources or not self._query.tables[reference].is_plain:
                continue
            bound = self._bind(reference, expression)
            if bound is not None and _is_condition(bound):
                self._uses[reference].conditions.append(bound)

    def _bind(self, reference: int, expression: Expression) -> Expression | None:
        try:
            return self._scopes[reference].bind(expression)
        except ExpressionError:
            return None

    def _resolve_all(
        self, scope: int, expression: Expression, *, is_output: bool
    ) -> tuple[int, Expression] | None:
        """Return the table that all names of an expression belong to, and the expression over its columns."""
        references: set[int | None] = set()

        def resolve(node: Expression) -> Expression | None:
            if not isinstance(node, Name):
                return None
            found = self._resolve(scope, node.parts, is_output=is_output)
            references.add(None if found is None else found[0])
            return node if found is None else Name(found[1])

        resolved = transform(expression, resolve)
        if len(references) != 1 or (reference := references.pop()) is None:
            return None
        return reference, resolved

    def _resolve(
        self, scope: int | None, parts: tuple[str, ...], *, is_output: bool
    ) -> tuple[int, tuple[str, ...]] | None:
        """Return the table and the column of a name, None if they are not known for certain."""
        while scope is not None:
            here = self._query.scopes[scope]
            parts = self._without_schema(here, parts)
            if len(parts) > 1 and parts[0].lower() in here.sources:
                reference = here.sources[parts[0].lower()]
                column = self._columns.get(-1 if reference is None else reference, {}).get(parts[1].lower())
                return None if column is None or reference is None else (reference, (column, *parts[2:]))
            if is_output and parts[0].lower() in here.outputs:
                # ORDER BY and HAVING prefer the columns of the result.
                return None
            found = self._candidates(here, parts[0].lower())
            if found:
                return (found[0][0], (found[0][1], *parts[1:])) if len(found) == 1 else None
            if any(each not in self._columns for each in here.sources.values()):
                return None
            scope = here.parent
        return None

    def _without_schema(self, scope: StatementScope, parts: tuple[str, ...]) -> tuple[str, ...]:
        """Return a name without the catalog and the schema of a table of the scope that has no alias."""
        tables = [self._query.tables[each] for each in scope.sources.values() if each is not None]
        for table in tables:
            for length in range(2, len(table.parts) + 1):
                names = _lower(table.parts[-length:])
                if table.alias is None and len(parts) > length and _lower(parts[:length]) == names:
                    return parts[length - 1 :]
        return parts

    def _candidates(self, scope: StatementScope, name: str) -> list[tuple[int, str]]:
        found = [each for each in scope.sources.values() if each is not None and each in self._columns]
        return [(each, self._columns[each][name]) for each in found if name in self._columns[each]]

    def _read(self, reference: int) -> TableRead:
        use = self._uses[reference]
        predicate = _conjunction(use.conditions)
        if reference not in self._narrow or (not use.extractions and predicate is None):
            return TableRead(predicate, None)
        scope = self._scopes[reference]
        outputs: dict[str, Expression] = {
            name: scope.bind(Name((name,))) for name in scope.schema.names if name in use.columns
        }
        outputs |= {name: each for each, name in use.extractions.items()}
        failed = self._failed(reference) if any(map(_is_strict, outputs.values())) else None
        outputs = outputs or {f"{self._prefix}{reference}_row": CONSTANT}
        return TableRead(predicate, LenientQuery.of_outputs(outputs, predicate, failed))


def _conjunction(conditions: Sequence[Expression]) -> Expression | None:
    if len(conditions) < 2:
        return next(iter(conditions), None)
    return Call("and", tuple(conditions), pa.bool_())


def _is_readable(extraction: Extraction) -> bool:
    return not extraction.as_json and (extraction.type is None or kind_of(extraction.type) != "nested")


def _is_condition(bound: Expression) -> bool:
    """Return whether a predicate has no function of Variants, whose errors a fallback would not see."""
    found: list[Expression] = []

    def visit(node: Expression) -> None:
        if isinstance(node, VariantCall):
            found.append(node)

    transform(bound, visit)
    return not found
