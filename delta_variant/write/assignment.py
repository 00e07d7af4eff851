"""Assignments of expressions to columns and paths of Variants."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import Array, row_numbers
from .._checks import check_mapping
from ..data_file.reader import replace_numbers
from ..errors import ExpressionError, SchemaError
from ..expressions.bind import bind as bind_expression
from ..expressions.evaluate import evaluate
from ..expressions.parse import parse as parse_expression
from ..expressions.tree import Cast, Column, Expression, Extraction, Name, input_column, output_type
from ..expressions.tree import inputs as expression_inputs
from ..expressions.types import fields_of, kind_of, type_name, with_fields
from ..protocol.schema.arrow import from_arrow
from ..protocol.schema.conforming import conform
from ..protocol.schema.evolution import merge as merge_schemas
from ..protocol.types import VOID, DataType, StructType, parts_of, path_text
from ..read.scope import Scope
from ..variant import values as variant_values
from ..variant.values import VARIANT_TYPE, plain_variants
from .row_rules import RowRules


@dataclass(frozen=True)
class Assignment:
    """An assignment to a column, or to a path of a Variant column.

    `field` is None for a Variant column. A `value` of None removes the path.
    """

    column: str
    path: tuple[str | int, ...]
    field: pa.Field[Any] | None
    value: Expression | None


def assignments_of(
    updates: Mapping[str, str | None], scope: Scope, bind: Callable[[Expression], Expression]
) -> tuple[Assignment, ...]:
    """Return the assignments of SQL text to columns and paths, with values bound by `bind`.

    Raises ExpressionError for an invalid expression and for two assignments that overlap, SchemaError for
    structs, lists and maps that do not fit their column, and for a source column of JSON text.
    """
    check_mapping("columns or paths to SQL expressions", "updates", updates)
    assignments = tuple(_assignment(name, text, scope, bind) for name, text in updates.items())
    _check_no_overlap(assignments)
    return assignments


def _check_no_overlap(assignments: Iterable[Assignment]) -> None:
    """Raise ExpressionError if the path of an assignment is the start of another path of its column."""
    assigned: set[tuple[str | int, ...]] = set()
    starts: set[tuple[str | int, ...]] = set()
    for each in assignments:
        path = (each.column, *each.path)
        parts = [path[:length] for length in range(1, len(path) + 1)]
        if path in starts or not assigned.isdisjoint(parts):
            raise ExpressionError(f"two assignments to column {each.column!r} overlap", column=each.column)
        assigned.add(path)
        starts.update(parts)


def _assignment(
    name: str, text: str | None, scope: Scope, bind: Callable[[Expression], Expression]
) -> Assignment:
    target = bind_expression(parse_expression(name), scope)
    if isinstance(target, Column):
        if text is None:
            raise _cannot_remove(name)
        field = scope.schema.field(target.name)
        return Assignment(target.name, (), field, _column(text, field, bind))
    if not isinstance(target, Extraction) or target.type is not None or target.fields or target.as_json:
        raise ExpressionError(
            f"cannot set {name!r}: expected a column or a path of a Variant column; for a field of a struct, "
            "set the struct, or use UPDATE in SQL"
        )
    if text is None and not target.path:
        raise _cannot_remove(name)
    value = None if text is None else _part(text, bind)
    if value is not None and not target.path:
        _check_no_json_text(target.column, str(text), value)
    return Assignment(target.column, target.path, None, value)


def _cannot_remove(name: str) -> ExpressionError:
    return ExpressionError(f"cannot remove {name!r} because it is a column: set it to 'null'", column=name)


def _column(text: str, field: pa.Field[Any], bind: Callable[[Expression], Expression]) -> Expression:
    """Return the value of a column cast to its type, but for the order of fields."""
    parsed = parse_expression(text)
    value = bind(parsed)
    given = output_type(value)
    wanted = field.type if given is None else _cast_type(given, field.type)
    if wanted != field.type:
        _check_fits(from_arrow(pa.schema([field])), from_arrow(pa.schema([field.with_type(wanted)])))
    return value if given == wanted else bind(Cast(parsed, wanted, strict=True))


def _cast_type(given: Any, wanted: Any) -> Any:
    """Return the type of a column with the fields of a value of the type `given`, in their order."""
    if kind_of(given) != "nested" or given.id != wanted.id:
        return wanted
    known: dict[Any, Any] = dict(enumerate(fields_of(wanted)))
    if pa.types.is_struct(wanted):
        known = {each.name.lower(): each for each in wanted}
    parts = []
    for number, part in enumerate(fields_of(given)):
        field = known.get(part.name.lower() if pa.types.is_struct(given) else number)
        parts.append(part if field is None else field.with_type(_cast_type(part.type, field.type)))
    return with_fields(wanted, parts)


def _check_fits(table: StructType, given: StructType) -> None:
    merge_schemas(table, given, mode="strict")
    for path in _lacking(table, given, ()):
        name = path_text(path)
        raise SchemaError(f"the assigned value lacks the field {name!r} of the table: add it", column=name)


def _lacking(table: DataType, given: DataType, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the paths of fields that a value lacks. A part of type void, as in `array()`, lacks none."""
    if given == VOID:
        return
    parts = {step.lower(): part for step, part in parts_of(given)}
    for step, part in parts_of(table):
        if step.lower() in parts:
            yield from _lacking(part, parts[step.lower()], (*path, step))
        else:
            yield (*path, step)


def _check_no_json_text(column: str, text: str, value: Expression) -> None:
    """Raise SchemaError for a source column of strings, because JSON text would become Variant strings."""
    if not (isinstance(value, Column) and isinstance(parse_expression(text), Name)):
        return
    if value.table == "source" and kind_of(value.type) == "string":
        raise SchemaError(
            f"the column {column!r} is variant in the table and string in the source: add it to "
            f"variant_columns if it has JSON text, or use `cast({text} as string)` for Variant strings",
            column=column,
        )


def _part(text: str, bind: Callable[[Expression], Expression]) -> Expression:
    """Return the value of a Variant or of a path in one."""
    value = bind(parse_expression(text))
    arrow_type = output_type(value)
    if arrow_type is not None and kind_of(arrow_type) == "nested":
        raise ExpressionError(
            f"cannot convert {text!r} to a Variant because it has the type {type_name(arrow_type)}: "
            f"use `cast({text} as variant)`"
        )
    return value


def assign(
    columns: Mapping[str, Array], assignments: Sequence[Assignment], batch: pa.RecordBatch
) -> dict[str, Array]:
    """Return columns after assignments, whose values are evaluated over `batch`."""
    assigned = dict(columns)
    for each in assignments:
        value = None if each.value is None else evaluate(each.value, batch)
        before = assigned.get(each.column)
        assigned[each.column] = (
            plain_variants(_variants(each, before, value))
            if each.field is None
            else _conformed(value, each.field)
        )
    return assigned


def _conformed(value: Array, field: pa.Field[Any]) -> Array:
    """Return the value of an ordinary column in its type, which nested values may not have yet."""
    if value.type == field.type:
        return value
    columns = from_arrow(pa.schema([field]))
    return conform(pa.record_batch([value], names=[field.name]), columns).column(0)


def _variants(each: Assignment, before: Array, value: Array) -> Array:
    if value is None:
        return variant_values.remove_path(before, each.path)
    if each.path:
        return variant_values.set_path(before, each.path, value)
    if pa.types.is_struct(value.type):
        return value
    made = variant_values.set_path(pa.nulls(len(value), VARIANT_TYPE), (), value)
    return pc.if_else(value.is_valid(), made, pa.scalar(None, made.type))


@dataclass(frozen=True)
class ColumnRoles:
    """What a change of rows does with the columns of a table.

    Attributes:
        copied: The Variant columns that only pass through, and are accepted in shredded form.
        passed: The columns that pass through unread.
        replaced: The columns that each update sets to values that do not depend on them.
        assigned: The columns that updates may set.
        compared: Those of them that often keep their values, which is then worth a comparison.
        may_remove: Whether the change may also remove rows.
    """

    copied: frozenset[str]
    passed: frozenset[str] = frozenset()
    replaced: frozenset[str] = frozenset()
    assigned: frozenset[str] = frozenset()
    compared: frozenset[str] = frozenset()
    may_remove: bool = True

    @classmethod
    def of(
        cls,
        scope: Scope,
        rules: RowRules,
        updates: Sequence[Sequence[Assignment]],
        *,
        tested: Iterable[Expression] = (),
        values: Iterable[Expression],
        may_remove: bool = False,
    ) -> ColumnRoles:
        """Return the roles of the columns if some updates apply to rows, each to some of them.

        `tested` are the conditions that are evaluated again, and `values` all that assigned values read.
        """
        set_by = [frozenset(each.column for each in update if not each.path) for update in updates]
        set_by = set_by or [frozenset()]
        assigned = frozenset(each.column for update in updates for each in update)
        assigned |= {each.name for each in rules.recomputed(assigned)}
        tested, read = expression_inputs(tested), expression_inputs(values)
        names = frozenset(map(input_column, read))
        whole = expression_inputs(scope.whole_columns().values())
        unset = frozenset(scope.schema.names) - assigned - rules.columns_read
        return cls(
            copied=scope.variants_unread_by([*tested, *read]) & unset,
            passed=unset - names - {input_column(each) for each in tested if each in whole},
            replaced=frozenset.intersection(*set_by) - names - set(map(input_column, tested)),
            assigned=assigned,
            may_remove=may_remove,
        )


def replace_rows(
    before: Mapping[str, Array], mask: Array, changed: Mapping[str, Array], variants: Collection[str]
) -> Iterator[Array]:
    """Yield each column of `before`, with the rows that `mask` selects replaced by the rows of `changed`.

    `variants` has the names of the Variant columns.
    """
    if mask.false_count == 0:
        return iter([changed[name] for name in before])
    replaced = pc.indices_nonzero(mask).cast(pa.int64())
    return replace_numbered(before, row_numbers(len(mask)), changed, replaced, variants)


def replace_numbered(
    before: Mapping[str, Array],
    numbers: Array,
    changed: Mapping[str, Array],
    replaced: Array,
    variants: Collection[str],
) -> Iterator[Array]:
    """Yield each column of `before`, with some rows replaced by the rows of `changed`.

    `numbers` are the ascending numbers of the rows of `before`, and `replaced` those of the rows of
    `changed`. `variants` has the names of the Variant columns.
    """
    for name, column in before.items():
        if changed[name] is column:
            yield column
            continue
        both = [column, changed[name]]
        old, new = map(plain_variants, both) if name in variants else both
        yield replace_numbers(old, numbers, new, replaced)
