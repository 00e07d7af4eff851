"""Rewrite a query so that tasks extract values from Variants and select rows, and Spark does the rest.

Each path or cast over a table becomes a column that tasks read. Conditions stay in the query: those on one
table also leave out rows in the tasks. A strict cast becomes `coalesce(column, cast(failed[0] AS type))`,
where `failed` has the Variants that the tasks could not cast, so that Spark raises its error exactly where it
evaluates the cast.

A derived table passes the columns that tasks read instead of those that only the replaced text uses. Where
several SELECTs make one result, each of them names its columns alike, and has one of Variants for each cast.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ..._text import quote
from ...expressions.tree import Call, Expression, Extraction, Literal, Name, VariantCall, is_strict_cast, walk
from ...expressions.types import kind_of, type_name
from ...read.scope import Scope
from .column_names import Group, Layout, Names, Origin, Path, Slot
from .parts import Extract, Item, Query, Span, escape, field, is_within, replace_tables

CONSTANT = Literal(pa.scalar(True))
"""The column of rows of which the query reads none."""


@dataclass(frozen=True)
class TableRead:
    """What a query reads of one table reference.

    `outputs` has the columns by name, and is None if the query needs all of them. `predicate` leaves out
    files, and rows if there are outputs. `failed` is the name of an array of the Variants that the strict
    casts among the outputs cannot cast.
    """

    predicate: Expression | None = None
    outputs: Mapping[str, Expression] | None = None
    failed: str | None = None


@dataclass(frozen=True)
class Rewriting:
    """A query with fields for the DataFrames of its tables, and what these read, by table reference."""

    text: str
    reads: Mapping[int, TableRead]


@dataclass
class _Use:
    """The columns of a table reference that a query uses, and the conditions on it alone by path."""

    columns: set[str] = dataclasses.field(default_factory=set)
    extractions: dict[Extraction, str] = dataclasses.field(default_factory=dict)
    conditions: dict[Path, list[Expression]] = dataclasses.field(default_factory=dict)


def rewrite(query: Query, tables: Mapping[int, Scope], *, with_conditions: bool) -> Rewriting:
    """Return a query in which tasks extract values and, `with_conditions`, leave out rows and files.

    `tables` has the columns of the tables by the index of their reference.
    """
    return _Rewriter(query, tables).rewrite(with_conditions=with_conditions)


@dataclass(frozen=True)
class _Extracted:
    """What tasks extract for a part of the text, for each of its origins.

    `name` is that of the column in the result of a set operation, None if the text has one origin.
    """

    origins: Sequence[Origin]
    extractions: Sequence[Extraction]
    name: str | None


class _Rewriter:
    def __init__(self, query: Query, tables: Mapping[int, Scope]) -> None:
        self._query = query
        self._tables = tables
        self._names = Names(query, tables)
        self._layout = Layout(query, self._names)
        self._uses = {number: _Use() for number in tables}
        self._owners = {
            reference: (number, alias)
            for number, scope in enumerate(query.scopes)
            for alias, reference in scope.sources.items()
            if reference in tables
        }
        self._replaced: dict[Span, _Extracted] = {}
        self._combined: dict[tuple[tuple[int, Extraction], ...], str] = {}
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
        groups = self._groups()
        used = self._used_names([each for found in groups.values() for each in found])
        for number, use in self._uses.items():
            use.columns |= {name for name in self._tables[number].schema.names if name.lower() in used}
        texts = {span: self._text(span) for span in self._replaced}
        for number in groups:
            texts |= self._texts_of_scope(number, groups[number])
        reads = {number: self._read(number) for number in self._uses}
        fields = {number: field(number) for number in self._uses}
        escaped = {span: escape(text) for span, text in texts.items()}
        return Rewriting(replace_tables(self._query, fields, escaped), reads)

    def _is_narrow(self, number: int) -> bool:
        """Return whether the columns of a table that the query names are all that it reads."""
        is_plain = number in self._owners and self._query.tables[number].is_plain
        return is_plain and self._layout.reads_by_name(*self._owners[number])

    def _extract(self, scope: int, found: Sequence[Extract]) -> None:
        """Have tasks extract the outermost of the values at one position that they can."""
        for each in found:
            origins = self._names.resolve(scope, each.expression, sees_outputs=each.sees_outputs)
            bound = [self._names.bind(origin) for origin in origins]
            extractions = [each for each in bound if isinstance(each, Extraction) and _is_readable(each)]
            if not origins or len(extractions) < len(origins):
                continue
            if not all(self._can_pass(scope, origin) for origin in origins):
                continue
            for origin, extraction in zip(origins, extractions, strict=True):
                names = self._uses[origin.reference].extractions
                names.setdefault(extraction, f"{self._prefix}{origin.reference}_{len(names)}")
            self._replaced[each.span] = _Extracted(origins, extractions, self._name(origins, extractions))
            return

    def _name(self, origins: Sequence[Origin], extractions: Sequence[Extraction]) -> str | None:
        """Return the name of a column of several origins in the result of their set operation."""
        if len(origins) == 1:
            return None
        references = (each.reference for each in origins)
        key = tuple(zip(references, extractions, strict=True))
        return self._combined.setdefault(key, f"{self._prefix}_{len(self._combined)}")

    def _can_pass(self, scope: int, origin: Origin) -> bool:
        """Return whether a column of a table can get into a scope on the path of another one."""
        (owner, source), *inner = origin.path
        node: int | None = scope
        while node is not None and node != owner:
            if source in self._query.scopes[node].sources:
                return False
            node = self._query.scopes[node].parent
        items = [self._item(number, index) for number, index, _ in origin.steps]
        are_columns = all(item.stars or isinstance(item.expression, Name) for item in items)
        is_free = all(self._layout.is_free(number) for number, _ in inner)
        return origin.reference in self._narrow and are_columns and is_free

    def _item(self, number: int, index: int) -> Item:
        return (self._query.scopes[number].items or ())[index]

    def _groups(self) -> dict[int, list[Group]]:
        """Return the groups of the slots of each scope whose columns can change."""
        found: dict[int, list[Group]] = {}
        for number, scope in enumerate(self._query.scopes):
            if number not in found:
                groups = self._layout.groups(number)
                is_shared = self._layout.is_combined(number) and self._layout.is_free(number)
                found |= dict.fromkeys(scope.branches if is_shared else (number,), groups)
        return found

    def _used_names(self, groups: Sequence[Group]) -> set[str]:
        """Return the names in the query outside of what is replaced, and in the slots that are used."""
        spans = [*self._replaced, *(span for group in groups for span in group.spans)]
        for number, scope in enumerate(self._query.scopes):
            spans += self._layout.listed_stars(number)
            spans += [scope.names_span] if self._layout.is_free(number) else []
        used = {name for position, name in self._query.names if not is_within(position, spans)}
        unused = [*groups]
        while found := [each for each in unused if each.is_used or used.intersection(each.names)]:
            for group in found:
                group.is_used = True
                used |= group.names
                used |= {name for position, name in self._query.names if is_within(position, group.spans)}
            unused = [each for each in unused if not each.is_used]
        return used

    def _texts_of_scope(self, number: int, groups: Sequence[Group]) -> dict[Span, str]:
        """Return the replacements of the items of a scope, and of the names after its alias."""
        slots = [*self._layout.slots(number)]
        is_by_position = self._layout.is_by_position(number) and self._layout.is_free(number)
        renamed = self._query.scopes[number].names if is_by_position else ()
        texts: dict[int, list[str]] = {}
        names: list[str] = []
        passed: set[str] = set()
        found: dict[Span, str] = {}
        for position, (slot, group) in enumerate(zip(slots, groups, strict=True)):
            item = self._item(number, slot.item)
            columns = [each for each in self._passing(number, slot) if each[1] not in passed]
            passed.update(name for _, name in columns)
            if group.is_used:
                own = _of_star(slot) if item.stars else ""
                columns.insert(0, (own, quote(renamed[position]) if renamed else ""))
            elif not columns and (is_by_position or not item.stars):
                columns = [(f"NULL AS {self._prefix}_unused", f"{self._prefix}_unused")]
            texts.setdefault(slot.item, []).extend(text for text, _ in columns)
            names += [name for _, name in columns]
        for index, columns_of_item in texts.items():
            found |= self._text_of_item(self._item(number, index), columns_of_item)
        if renamed:
            found[self._query.scopes[number].names_span] = f"({', '.join(names)})"
        return found

    def _text_of_item(self, item: Item, texts: Sequence[str]) -> dict[Span, str]:
        """Return the replacement of an item by its columns; the text "" stands for the item itself."""
        if item.stars:
            return {item.span: ", ".join(texts) or f"NULL AS {self._prefix}_unused"}
        if texts[0]:
            return {item.span: ", ".join(texts)}
        end = item.span[1] + 1
        return {(end, end - 1): "".join(f", {text}" for text in texts[1:])} if texts[1:] else {}

    def _passing(self, number: int, slot: Slot) -> list[tuple[str, str]]:
        """Return the columns of extractions that pass a slot of a scope: their text there, and their name."""
        found: dict[tuple[str, str], None] = {}
        for extracted in self._replaced.values():
            for origin, extraction in zip(extracted.origins, extracted.extractions, strict=True):
                depth = next((at for at, (each, _) in enumerate(origin.path) if each == number), 0)
                if depth > 0 and (number, slot.item, slot.name) in origin.steps:
                    found |= dict.fromkeys(self._columns(extracted, origin, extraction, depth))
        return [*found]

    def _columns(
        self, extracted: _Extracted, origin: Origin, extraction: Extraction, depth: int
    ) -> Iterator[tuple[str, str]]:
        """Yield the columns of an extraction in a scope of its path: their text there, and their name."""
        is_named = any(self._layout.is_combined(number) for number, _ in origin.path[depth + 1 :])
        will_be_named = depth > 0 and self._layout.is_combined(origin.path[depth][0])
        own = self._uses[origin.reference].extractions[extraction]
        failed = f"{self._prefix}{origin.reference}_failed"
        source = origin.path[depth][1]
        qualifier = "" if depth == len(origin.path) - 1 or not source else f"{quote(source)}."
        if is_named:
            yield f"{qualifier}{extracted.name}", f"{extracted.name}"
        elif will_be_named:
            yield f"{qualifier}{own} AS {extracted.name}", f"{extracted.name}"
        else:
            yield f"{qualifier}{own}", own
        if not is_strict_cast(extraction):
            return
        if is_named:
            yield f"{qualifier}{extracted.name}_failed", f"{extracted.name}_failed"
        elif will_be_named:
            element = self._failed_cast(origin.reference, extraction, qualifier + failed)
            yield f"{element} AS {extracted.name}_failed", f"{extracted.name}_failed"
        else:
            yield f"{qualifier}{failed}", failed

    def _failed_cast(self, reference: int, extraction: Extraction, array: str) -> str:
        strict = [each for each in self._uses[reference].extractions if is_strict_cast(each)]
        return f"{array}[{strict.index(extraction)}]"

    def _text(self, span: Span) -> str:
        extracted = self._replaced[span]
        origin, extraction = extracted.origins[0], extracted.extractions[0]
        (text, _), *failed = self._columns(extracted, origin, extraction, 0)
        for variant, _ in failed:
            if extracted.name is None:
                variant = self._failed_cast(origin.reference, extraction, variant)
            text = f"coalesce({text}, cast({variant} AS {type_name(extraction.type)}))"
        alias = self._query.implicit.get(span)
        return text if alias is None else f"{text} AS {quote(alias)}"

    def _add_conditions(self) -> None:
        for scope, conjunct in self._query.conjuncts:
            for origin in self._names.resolve(scope, conjunct.expression, sees_outputs=False):
                owner, source = origin.path[0]
                is_plain = self._query.tables[origin.reference].is_plain
                if not is_plain or owner != scope or source not in conjunct.sources:
                    continue
                bound = self._names.bind(origin)
                if bound is not None and _is_condition(bound):
                    self._uses[origin.reference].conditions.setdefault(origin.path, []).append(bound)

    def _predicate(self, reference: int, path: Path) -> Expression | None:
        """Return the condition of the rows of a table that a scope needs on a path, None for all rows."""
        number, source = path[0]
        scope = self._query.scopes[number]
        found = [*self._uses[reference].conditions.get(path, ())]
        if scope.is_derived and scope.passes_rows and source not in scope.optional:
            outer = [self._predicate(reference, (each, *path)) for each in self._layout.consumers[number]]
            needed = [each for each in outer if each is not None]
            if len(needed) == len(outer):
                found.append(_connect("or", dict.fromkeys(needed)))
        return _connect("and", found) if found else None

    def _read(self, reference: int) -> TableRead:
        use = self._uses[reference]
        owner = self._owners.get(reference)
        scope = self._tables[reference]
        predicate = None if owner is None else self._predicate(reference, (owner,))
        predicate = None if predicate is None else scope.of_file(predicate)
        is_scanned = not use.extractions and predicate is None and not scope.hidden
        if reference not in self._narrow or is_scanned:
            return TableRead(predicate)
        outputs: dict[str, Expression] = {
            name: scope.bind(Name((name,))) for name in scope.schema.names if name in use.columns
        }
        outputs |= {name: each for each, name in use.extractions.items()}
        outputs = {name: scope.of_file(each) for name, each in outputs.items()}
        failed = f"{self._prefix}{reference}_failed" if any(map(is_strict_cast, outputs.values())) else None
        return TableRead(predicate, outputs or {f"{self._prefix}{reference}_row": CONSTANT}, failed)


def _of_star(slot: Slot) -> str:
    return f"{quote(slot.source)}.{quote(slot.name)}" if slot.source else quote(slot.name)


def _connect(function: str, conditions: Collection[Expression]) -> Expression:
    return Call(function, tuple(conditions), pa.bool_()) if len(conditions) > 1 else next(iter(conditions))


def _is_readable(extraction: Extraction) -> bool:
    return not extraction.as_json and (extraction.type is None or kind_of(extraction.type) != "nested")


def _is_condition(bound: Expression) -> bool:
    """Return whether a predicate has no function of Variants, whose errors a fallback would not see."""
    return not any(isinstance(node, VariantCall) for node in walk(bound))
