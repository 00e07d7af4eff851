"""Rewrite a query so that tasks extract values from Variants and select rows, and Spark does the rest.

Each path or cast over a table becomes a column that tasks read. Conditions stay in the query: those on one
table also leave out rows in the tasks. A strict cast becomes `coalesce(column, cast(failed[0] AS type))`,
where `failed` has the Variants that the tasks could not cast, so that Spark raises its error exactly where it
evaluates the cast.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import CastError, ExpressionError
from ..expressions.evaluate import evaluate, without_cast
from ..expressions.statements import Extract, Item, Query, Span, TableReference
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

__all__ = [
    "LenientQuery",
    "Rewriting",
    "TableRead",
    "escape",
    "field",
    "field_name",
    "replace_tables",
    "rewrite",
]

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


Path = tuple[tuple[int, str], ...]
"""How rows of a table get into a scope: that scope and its source, those of the source, and so on."""


@dataclass(frozen=True)
class _Origin:
    """An expression over the columns of one table, and the items that it is a column of on its path."""

    reference: int
    path: Path
    expression: Expression
    items: tuple[Item, ...] = ()


@dataclass
class _Use:
    """The columns of a table reference that a query uses, and the conditions on it alone by path."""

    columns: set[str] = dataclasses.field(default_factory=set)
    extractions: dict[Extraction, str] = dataclasses.field(default_factory=dict)
    conditions: dict[Path, list[Expression]] = dataclasses.field(default_factory=dict)


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
        self._consumers: dict[int, list[tuple[int, str]]] = {}
        for number, scope in enumerate(query.scopes):
            for alias, derived in scope.derived.items():
                self._consumers.setdefault(derived, []).append((number, alias))
        self._outputs: dict[int, dict[str, _Origin | None] | None] = {}
        self._replaced: dict[Span, tuple[_Origin, Extraction]] = {}
        self._narrow = {number for number in tables if self._is_narrow(number)}
        self._prefix = "extracted"
        names = {name for _, name in query.names}
        while any(name.startswith(self._prefix) for name in names):
            self._prefix += "_"

    def rewrite(self, *, with_conditions: bool) -> Rewriting:
        for scope, found in self._query.extracts:
            self._extract(scope, found)
        if with_conditions:
            self._add_conditions()
        items = self._items_by_number()
        used = self._used_names([item for each in items.values() for item in each])
        for number, columns in self._columns.items():
            self._uses[number].columns |= {columns[name] for name in columns.keys() & used}
        texts = {span: self._text(span) for span in self._replaced}
        for number, columns_of_scope in items.items():
            texts |= self._item_texts(number, columns_of_scope, used)
        reads = {number: self._read(number) for number in self._uses}
        return Rewriting(
            replace_tables(self._query, {number: field(number) for number in self._uses}, texts), reads
        )

    def _is_narrow(self, number: int) -> bool:
        """Return whether the columns of a table that the query names are all that it reads."""
        is_plain = number in self._owners and self._query.tables[number].is_plain
        return is_plain and self._reads_by_name(*self._owners[number])

    def _reads_by_name(self, number: int, source: str) -> bool:
        """Return whether a scope needs only the columns of a source that the query names."""
        scope = self._query.scopes[number]
        if not scope.is_plain or source in scope.stars:
            return False
        has_star = any(source in item.stars for item in scope.items or ())
        return not has_star or self._has_free_items(number)

    def _has_free_items(self, number: int) -> bool:
        """Return whether the result of a scope may have other columns than the query gives it."""
        scope = self._query.scopes[number]
        is_free = scope.is_derived and scope.items is not None
        return is_free and all(self._reads_by_name(*each) for each in self._consumers[number])

    def _extract(self, scope: int, found: Sequence[Extract]) -> None:
        for each in found:
            origin = self._resolve_all(scope, each.expression, sees_outputs=each.sees_outputs)
            if origin is None or not self._can_pass(scope, origin):
                continue
            bound = self._bind(origin)
            if isinstance(bound, Extraction) and _is_readable(bound):
                names = self._uses[origin.reference].extractions
                names.setdefault(bound, f"{self._prefix}{origin.reference}_{len(names)}")
                self._replaced[each.span] = origin, bound
                return

    def _can_pass(self, scope: int, origin: _Origin) -> bool:
        """Return whether a column of a table can get into a scope on the path of another one."""
        (owner, source), *inner = origin.path
        node: int | None = scope
        while node is not None and node != owner:
            if source in self._query.scopes[node].sources:
                return False
            node = self._query.scopes[node].parent
        are_columns = all(isinstance(item.expression, Name) for item in origin.items)
        is_free = all(self._has_free_items(number) for number, _ in inner)
        return origin.reference in self._narrow and are_columns and is_free

    def _items_by_number(self) -> dict[int, list[Item]]:
        """Return the columns of columns, by scope, that the result of the query does not need as they are."""
        return {
            number: [item for item in scope.items or () if isinstance(item.expression, Name)]
            for number, scope in enumerate(self._query.scopes)
            if self._has_free_items(number)
        }

    def _used_names(self, items: Sequence[Item]) -> set[str]:
        """Return the names in the query outside of what is replaced, and of the items without a use."""
        spans = [*self._replaced, *(item.span for item in items)]
        used = {name for position, name in self._query.names if not _is_within(position, spans)}
        unused = [*items]
        while found := [item for item in unused if used.intersection(item.names)]:
            spans = [item.span for item in found]
            used |= {name for position, name in self._query.names if _is_within(position, spans)}
            unused = [item for item in unused if item not in found]
        return used

    def _item_texts(self, number: int, items: Sequence[Item], used: Set[str]) -> dict[Span, str]:
        """Return the replacements of the items of a scope: the columns that have to pass it."""
        stars = {source for item in self._query.scopes[number].items or () for source in item.stars}
        passed: set[str] = set()
        found = {}
        for item in items:
            texts = []
            for origin, bound in self._replaced.values():
                source = dict(origin.path).get(number)
                if item in origin.items and source is not None and source not in stars:
                    texts += self._names(number, origin, bound)
            texts = [text for text in dict.fromkeys(texts) if text not in passed]
            passed.update(texts)
            if used.isdisjoint(item.names):
                found[item.span] = ", ".join(texts) or f"NULL AS {self._prefix}_unused"
            elif texts:
                end = item.span[1] + 1
                found[end, end - 1] = "".join(f", {text}" for text in texts)
        return found

    def _names(self, scope: int, origin: _Origin, bound: Extraction) -> list[str]:
        """Return the names of the columns of an extraction in a scope of its path."""
        source = dict(origin.path)[scope]
        is_table = origin.path[-1] == (scope, source)
        qualifier = "" if is_table or not source else f"{quote(source)}."
        names = [self._uses[origin.reference].extractions[bound]]
        if _is_strict(bound):
            names.append(self._failed(origin.reference))
        return [qualifier + name for name in names]

    def _text(self, span: Span) -> str:
        origin, bound = self._replaced[span]
        name, *failed = self._names(origin.path[0][0], origin, bound)
        if failed:
            strict = [each for each in self._uses[origin.reference].extractions if _is_strict(each)]
            name = f"coalesce({name}, cast({failed[0]}[{strict.index(bound)}] AS {type_name(bound.type)}))"
        alias = self._query.implicit.get(span)
        return name if alias is None else f"{name} AS {quote(alias)}"

    def _failed(self, reference: int) -> str:
        return f"{self._prefix}{reference}_failed"

    def _add_conditions(self) -> None:
        for scope, conjunct in self._query.conjuncts:
            origin = self._resolve_all(scope, conjunct.expression, sees_outputs=False)
            if origin is None or not self._query.tables[origin.reference].is_plain:
                continue
            owner, source = origin.path[0]
            if owner != scope or source not in conjunct.sources:
                continue
            bound = self._bind(origin)
            if bound is not None and _is_condition(bound):
                self._uses[origin.reference].conditions.setdefault(origin.path, []).append(bound)

    def _predicate(self, reference: int, path: Path) -> Expression | None:
        """Return the condition of the rows of a table that a scope needs on a path, None for all rows."""
        number, source = path[0]
        scope = self._query.scopes[number]
        found = [*self._uses[reference].conditions.get(path, ())]
        if scope.is_derived and scope.passes_rows and source not in scope.optional:
            outer = [self._predicate(reference, (each, *path)) for each in self._consumers[number]]
            needed = [each for each in outer if each is not None]
            if len(needed) == len(outer):
                found.append(_connect("or", dict.fromkeys(needed)))
        return _connect("and", found) if found else None

    def _bind(self, origin: _Origin) -> Expression | None:
        try:
            return self._scopes[origin.reference].bind(origin.expression)
        except ExpressionError:
            return None

    def _resolve_all(self, scope: int, expression: Expression, *, sees_outputs: bool) -> _Origin | None:
        """Return the table that all names of an expression belong to, and the expression over its columns."""
        origins: list[_Origin | None] = []

        def resolve(node: Expression) -> Expression | None:
            if not isinstance(node, Name):
                return None
            origins.append(self._resolve(scope, node.parts, sees_outputs=sees_outputs))
            return node if origins[-1] is None else origins[-1].expression

        resolved = transform(expression, resolve)
        known = [each for each in origins if each is not None]
        if not known or len(known) < len(origins) or len({(each.reference, each.path) for each in known}) > 1:
            return None
        items = tuple(dict.fromkeys(item for each in known for item in each.items))
        return _Origin(known[0].reference, known[0].path, resolved, items)

    def _resolve(self, scope: int | None, parts: tuple[str, ...], *, sees_outputs: bool) -> _Origin | None:
        """Return the origin of a name, None if it is not known for certain."""
        while scope is not None:
            here = self._query.scopes[scope]
            parts = self._without_schema(here, parts)
            name = parts[0].lower()
            if len(parts) > 1 and name in here.sources:
                return _field((self._columns_of(scope, name) or {}).get(parts[1].lower()), parts[2:])
            sources = [self._columns_of(scope, each) for each in here.sources]
            if sees_outputs and (name in here.outputs or None in sources):
                return None
            found = [each[name] for each in sources if each is not None and name in each]
            if found:
                return _field(found[0], parts[1:]) if len(found) == 1 else None
            if None in sources:
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

    def _columns_of(self, number: int, source: str) -> Mapping[str, _Origin | None] | None:
        """Return the origin of each column of a source where it is known, None if the columns are not."""
        scope = self._query.scopes[number]
        reference, here = scope.sources[source], (number, source)
        if reference is not None and reference in self._columns:
            columns = self._columns[reference]
            return {name: _Origin(reference, (here,), Name((columns[name],))) for name in columns}
        if source not in scope.derived:
            return None
        columns_of_items = self._outputs_of(scope.derived[source])
        if columns_of_items is None:
            return None
        return {
            name: each and replace(each, path=(here, *each.path)) for name, each in columns_of_items.items()
        }

    def _outputs_of(self, number: int) -> dict[str, _Origin | None] | None:
        """Return the origin of each column of a SELECT where it is known, None if the columns are not."""
        if number not in self._outputs:
            items = self._query.scopes[number].items
            self._outputs[number] = (
                None if items is None else _merge(self._outputs_of_item(number, item) for item in items)
            )
        return self._outputs[number]

    def _outputs_of_item(self, number: int, item: Item) -> dict[str, _Origin | None] | None:
        if item.stars:
            found = _merge(self._columns_of(number, source) for source in item.stars)
            return found and {name: each for name, each in found.items() if name not in item.excluded}
        origin = item.expression and self._resolve_all(number, item.expression, sees_outputs=False)
        known = replace(origin, items=(*origin.items, item)) if origin else None
        return dict.fromkeys(item.names, known)

    def _read(self, reference: int) -> TableRead:
        use = self._uses[reference]
        owner = self._owners.get(reference)
        predicate = None if owner is None else self._predicate(reference, (owner,))
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


def _is_within(position: int, spans: Iterable[Span]) -> bool:
    return any(start <= position <= end for start, end in spans)


def _merge(columns: Iterable[Mapping[str, _Origin | None] | None]) -> dict[str, _Origin | None] | None:
    """Return the columns of several sources; of a name that two of them have, the origin is not known."""
    found: dict[str, _Origin | None] = {}
    for each in columns:
        if each is None:
            return None
        found |= {name: None if name in found else origin for name, origin in each.items()}
    return found


def _field(origin: _Origin | None, parts: tuple[str, ...]) -> _Origin | None:
    """Return the origin of a field of a struct column."""
    if origin is None or not parts:
        return origin
    if not isinstance(origin.expression, Name):
        return None
    return replace(origin, expression=Name((*origin.expression.parts, *parts)))


def _connect(function: str, conditions: Collection[Expression]) -> Expression:
    return Call(function, tuple(conditions), pa.bool_()) if len(conditions) > 1 else next(iter(conditions))


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
