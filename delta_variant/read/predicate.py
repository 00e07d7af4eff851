"""Reduce a predicate to the part that statistics can decide, and select files, row groups and pages by it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import reduce
from typing import Any, Literal, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import Array
from ..expressions import tree
from ..expressions.cast import cast_values
from ..expressions.patterns import literal_prefix
from ..expressions.tree import (
    FLIPPED,
    NEGATED,
    Call,
    Cast,
    Column,
    ComparisonOperator,
    Expression,
    Extraction,
    Field,
    Input,
    conjuncts,
    output_type,
)
from ..expressions.tree import inputs as expression_inputs
from ..expressions.types import kind_of
from ..variant.moments import UTC
from .scope import FILE_METADATA

Operator: TypeAlias = ComparisonOperator | Literal["prefix"]
PruningPredicate: TypeAlias = "AllOf | AnyOf | Comparison | Membership | NullTest | PartitionTest | None"
"""None stands for a predicate that statistics cannot decide: any row may match."""

EXACT = frozenset({"integer", "decimal"})
ORDERED = EXACT | {"floating", "string", "date", "timestamp", "timestamp_ntz"}
# Casts from timestamp to timestamp_ntz or date, and from timestamp_ntz to timestamp, are missing: they do not
# preserve the order when a clock is set back. The cast from date to timestamp preserves it in every time
# zone, because a clock is never set back by more than one day.
ORDER_PRESERVING = {
    ("string", "string"),
    ("floating", "floating"),
    ("date", "timestamp"),
    ("date", "timestamp_ntz"),
}


class Leaf(msgspec.Struct, frozen=True):
    """A column or a field of structs, and for a Variant the path in it.

    `type` is the Arrow type that the values have in the predicate.
    """

    names: tuple[str, ...]
    path: tuple[str, ...] | None
    type: pa.DataType


class Comparison(msgspec.Struct, frozen=True):
    """`leaf operator value` for a non-null value; the operator `prefix` matches strings that start with it.

    `casts` are the order-preserving casts that are applied to the leaf first, `timezone` is their time zone.
    """

    leaf: Leaf
    casts: tuple[pa.DataType, ...]
    operator: Operator
    value: pa.Scalar[Any]
    timezone: str = UTC


class Membership(msgspec.Struct, frozen=True):
    """`leaf in (values)`, or `leaf not in (values)`.

    `values` are ascending and not null. `casts` and `timezone` are those of a `Comparison`.
    """

    leaf: Leaf
    casts: tuple[pa.DataType, ...]
    values: Array
    is_in: bool
    timezone: str = UTC


class NullTest(msgspec.Struct, frozen=True):
    """`leaf is null`, or `leaf is not null`."""

    leaf: Leaf
    is_null: bool


class PartitionTest(msgspec.Struct, frozen=True):
    """An expression over partition columns only, which is evaluated on the partition values."""

    expression: Expression


class AllOf(msgspec.Struct, frozen=True):
    """A conjunction."""

    parts: tuple[PruningPredicate, ...]


class AnyOf(msgspec.Struct, frozen=True):
    """A disjunction."""

    parts: tuple[PruningPredicate, ...]


def pruning_predicate_of(predicate: Expression, partition_columns: Collection[str]) -> PruningPredicate:
    """Return a predicate over statistics that is true for each row for which bound `predicate` is true."""
    return _Reducer(frozenset(partition_columns)).of(predicate)


def leaves(predicate: PruningPredicate) -> set[Leaf]:
    """Return the leaves whose statistics the predicate needs."""
    return set(_leaves(predicate))


def _leaves(predicate: PruningPredicate) -> Iterator[Leaf]:
    match predicate:
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from _leaves(part)
        case Comparison(leaf) | Membership(leaf) | NullTest(leaf):
            yield leaf


class _Reducer(msgspec.Struct, frozen=True):
    """Reduces predicates over a table with these partition columns."""

    partition_columns: frozenset[str]

    def of(self, predicate: Expression, *, negated: bool = False) -> PruningPredicate:
        if self._is_of_partition(predicate):
            wanted = Call("not", (predicate,), pa.bool_()) if negated else predicate
            return PartitionTest(wanted)
        if not isinstance(predicate, Call):
            return None
        match predicate.function:
            case "not":
                return self.of(predicate.arguments[0], negated=not negated)
            case "and" | "or":
                parts = tuple(self.of(argument, negated=negated) for argument in predicate.arguments)
                return AllOf(parts) if (predicate.function == "and") != negated else AnyOf(parts)
            case "is null":
                return _null_test(predicate.arguments[0], is_null=not negated)
            case "in":
                return _membership(*predicate.arguments, is_in=not negated)
            case "like":
                return None if negated else _like(*predicate.arguments)
            case function:
                return _comparison(function, predicate.arguments, negated)

    def _is_of_partition(self, predicate: Expression) -> bool:
        return all(
            isinstance(each, Column) and each.name in self.partition_columns
            for each in expression_inputs([predicate])
        )


def _membership(operand: Expression, *options: Expression, is_in: bool) -> PruningPredicate:
    literals = [option.value for option in options if isinstance(option, tree.Literal)]
    leaf, casts = _ordered(operand)
    if leaf is None or len(literals) < len(options) or kind_of(literals[0].type) not in ORDERED:
        return None
    if any(_is_nan(literal) for literal in literals):
        return None
    values = pa.array(literals, literals[0].type)
    if values.null_count and not is_in:
        # A value that is not in a list with a null is NULL, which selects nothing.
        return AnyOf(())
    known = pc.unique(values.drop_null())
    return Membership(leaf, casts, known.take(pc.sort_indices(known)), is_in, _timezone_of(operand))


def _timezone_of(operand: Expression) -> str:
    return operand.timezone if isinstance(operand, Cast) else UTC


def _comparison(function: str, arguments: tuple[Expression, ...], negated: bool) -> PruningPredicate:
    left, right = arguments[0], arguments[-1]
    if function == "<=>":
        # Null-safe equality with a null literal matches nulls. Its negation also matches if one side is null.
        function = "=" if not negated else ""
    if function not in FLIPPED:
        return None
    operator = NEGATED[function] if negated else FLIPPED[FLIPPED[function]]
    if isinstance(left, tree.Literal):
        left, right, operator = right, left, FLIPPED[operator]
    if not isinstance(right, tree.Literal):
        return None
    leaf, casts = _ordered(left)
    is_ordered = kind_of(right.value.type) in ORDERED and right.value.is_valid and not _is_nan(right.value)
    if leaf is None or not is_ordered:
        return None
    return Comparison(leaf, casts, operator, right.value, _timezone_of(left))


def _is_nan(value: pa.Scalar[Any]) -> bool:
    return kind_of(value.type) == "floating" and value.as_py() != value.as_py()


def _null_test(operand: Expression, *, is_null: bool) -> PruningPredicate:
    leaf = leaf_of(operand)
    # A path is also null if its value cannot be cast.
    return None if leaf is None or (leaf.path is not None and is_null) else NullTest(leaf, is_null)


def _like(value: Expression, *constants: Expression) -> PruningPredicate:
    leaf, casts = _ordered(value)
    texts = [each.value.as_py() for each in constants if isinstance(each, tree.Literal)]
    prefix = literal_prefix(*texts)
    return Comparison(leaf, casts, "prefix", pa.scalar(prefix)) if leaf and prefix else None


def _ordered(operand: Expression) -> tuple[Leaf | None, tuple[pa.DataType, ...]]:
    """Return the leaf that an expression reads and its casts if all of them preserve the order of values."""
    if not isinstance(operand, Cast):
        return leaf_of(operand), ()
    leaf, casts = _ordered(operand.operand)
    source = output_type(operand.operand)
    if leaf is None or source is None or operand.type is None or not _keeps_order(source, operand.type):
        return None, ()
    return leaf, (*casts, operand.type)


def _keeps_order(source: pa.DataType, target: pa.DataType) -> bool:
    kinds = kind_of(source), kind_of(target)
    return kinds in ORDER_PRESERVING or (kinds[0] in EXACT and kinds[1] in EXACT | {"floating"})


def leaf_of(operand: Expression) -> Leaf | None:
    """Return the column or path that an expression reads, None for any other expression."""
    match operand:
        case Column(name, arrow_type):
            # The file of a row has no statistics.
            return None if name == FILE_METADATA.name else Leaf((name,), None, arrow_type)
        case Field(inner, name, arrow_type):
            outer = leaf_of(inner)
            return outer and Leaf((*outer.names, name), None, arrow_type)
        case Extraction(column, path, arrow_type, _, False, fields, _) if arrow_type is not None:
            names = [step for step in path if isinstance(step, str)]
            # Array elements do not have statistics (PROTOCOL.md, "Variant Statistics").
            return Leaf((column, *fields), tuple(names), arrow_type) if len(names) == len(path) else None
    return None


# Arrow and SQL compare floating-point numbers differently, and values of other types alike.
COMPARED = ORDERED - {"floating"} | {"binary", "boolean"}


class RowCondition(msgspec.Struct, frozen=True):
    """`input operator value` for any of `values`, which have the input's type; `is not null` has none."""

    input: Input
    operator: str
    values: pa.Array[Any] | None


def leading_conditions(*predicates: Expression | None) -> list[RowCondition]:
    """Return conditions that are true for each row for which the bound `predicates` are true.

    These are the operands of `and` before the first that has another form, because rows that later operands
    exclude can raise an error there.
    """
    found: list[RowCondition] = []
    for operand in conjuncts(*predicates):
        condition = _condition(operand)
        if condition is None:
            break
        found.append(condition)
    return found


def are_conditions(predicate: Expression) -> bool:
    """Return whether a bound `predicate` is true for exactly the rows that meet its leading conditions."""
    return all(_condition(operand) is not None for operand in conjuncts(predicate))


def membership(source: Expression, values: Array) -> RowCondition | None:
    """Return the condition that an input is one of some values, None if it cannot be tested."""
    if not isinstance(source, Column | Extraction) or not _is_scalar(source) or source.type != values.type:
        return None
    return RowCondition(source, "=", values)


def _condition(operand: Expression) -> RowCondition | None:
    match operand:
        case Call("not", (Call("is null", (Column() | Extraction() as source,)),)):
            return RowCondition(source, "is not null", None) if _is_scalar(source) else None
        case Call("in", (Column() | Extraction() as source, *options)):
            return _condition_on(source, "=", options)
        case Call(operator, (Column() | Extraction() as source, value)) if operator in FLIPPED:
            return _condition_on(source, operator, [value])
        case Call(operator, (value, Column() | Extraction() as source)) if operator in FLIPPED:
            return _condition_on(source, FLIPPED[operator], [value])
    return None


def _is_scalar(source: Input) -> bool:
    is_text = isinstance(source, Extraction) and source.as_json
    return source.type is not None and not is_text and kind_of(source.type) in COMPARED


def _condition_on(source: Input, operator: str, options: list[Expression]) -> RowCondition | None:
    values = [each.value for each in options if isinstance(each, tree.Literal)]
    if not _is_scalar(source) or len(values) < len(options):
        return None
    assert source.type is not None
    kinds = {kind_of(value.type) for value in values} | {kind_of(source.type)}
    if len(kinds) > 1 or not all(value.is_valid for value in values):
        return None
    try:
        same_type = [value.cast(source.type) for value in values]
    except pa.ArrowInvalid:
        # A literal outside the range of the type.
        return None
    return RowCondition(source, operator, pa.array(same_type, source.type))


class Bounds(msgspec.Struct, frozen=True):
    """The bounds of a leaf, one row for each unit; a null in `min` or `max` is an unknown bound.

    `all_null` is true if every value is known to be SQL NULL, `no_null` if every value is known not to be.
    """

    min: Array
    max: Array
    all_null: Array
    no_null: Array


def select_units(
    predicate: PruningPredicate,
    count: int,
    bounds: Mapping[Leaf, Bounds],
    partition: Callable[[Expression], Array] | None = None,
) -> Array:
    """Return a mask, without nulls, of the units among `count` that may contain a matching row.

    `partition` returns the units for which an expression over partition columns may be true. A leaf without
    bounds selects all units, as does a partition expression if `partition` is None.
    """
    return _Units(count, bounds, partition).select(predicate)


class _Units(msgspec.Struct, frozen=True):
    """Units with their bounds. A recursive closure would keep them in memory as a reference cycle."""

    count: int
    bounds: Mapping[Leaf, Bounds]
    partition: Callable[[Expression], Array] | None

    def select(self, part: PruningPredicate) -> Array:
        everything = pa.repeat(pa.scalar(True), self.count)
        match part:
            case AllOf(parts):
                return reduce(pc.and_, map(self.select, parts), everything)
            case AnyOf(parts):
                return reduce(pc.or_, map(self.select, parts), pc.invert(everything))
            case PartitionTest(expression) if self.partition is not None:
                return self.partition(expression)
            case NullTest() if part.leaf in self.bounds:
                known = self.bounds[part.leaf]
                return pc.invert(known.no_null if part.is_null else known.all_null)
            case Comparison() | Membership() if part.leaf in self.bounds:
                return _compared(part, self.bounds[part.leaf])
        return everything


def _compared(test: Comparison | Membership, bounds: Bounds) -> Array:
    value = test.values if isinstance(test, Membership) else test.value
    least, greatest = (
        _cast(each, (*test.casts, value.type), test.timezone) for each in (bounds.min, bounds.max)
    )
    compare = IS_IN[test.is_in] if isinstance(test, Membership) else POSSIBLE[test.operator]
    possible = compare(least, greatest, value)
    return pc.and_(pc.fill_null(possible, True), pc.invert(bounds.all_null))


def _cast(values: Array, types: Iterable[pa.DataType], timezone: str) -> Array:
    for arrow_type in types:
        values = cast_values(values, arrow_type, strict=False, timezone=timezone)
    return values


def _equal(least: Array, greatest: Array, value: Any) -> Array:
    return pc.and_kleene(pc.less_equal(least, value), pc.greater_equal(greatest, value))


def _not_equal(least: Array, greatest: Array, value: Any) -> Array:
    if kind_of(value.type) == "floating":
        # Bounds exclude NaN, which differs from every number.
        return pa.nulls(len(least), pa.bool_())
    return pc.or_kleene(pc.not_equal(least, value), pc.not_equal(greatest, value))


def _below(kernel: Callable[[Array, Any], Array]) -> Callable[[Array, Array, Any], Array]:
    return lambda least, greatest, value: kernel(least, value)


def _above(kernel: Callable[[Array, Any], Array]) -> Callable[[Array, Array, Any], Array]:
    def compare(least: Array, greatest: Array, value: Any) -> Array:
        # Bounds exclude NaN, which Spark orders above every number.
        return (
            pa.nulls(len(greatest), pa.bool_())
            if kind_of(value.type) == "floating"
            else kernel(greatest, value)
        )

    return compare


def _prefixed(least: Array, greatest: Array, value: Any) -> Array:
    length = len(value.as_py())
    begins = pc.utf8_slice_codeunits(least, 0, length)
    return pc.and_kleene(pc.less_equal(begins, value), pc.greater_equal(greatest, value))


def _contains(least: Array, greatest: Array, values: Array) -> Array:
    """Return whether a value lies between the bounds: fewer are less than `least` than up to `greatest`."""
    before = pc.fill_null(_count(values, least, bisect_left), 0)
    return pc.less(before, pc.fill_null(_count(values, greatest, bisect_right), len(values)))


def _excludes(least: Array, greatest: Array, values: Array) -> Array:
    """Return whether a value that is not among `values` may lie between the bounds."""
    if kind_of(values.type) == "floating":
        # Bounds exclude NaN, which differs from every number.
        return pa.nulls(len(least), pa.bool_())
    return pc.or_kleene(pc.not_equal(least, greatest), pc.invert(_contains(least, greatest, values)))


def _count(values: Array, bounds: Array, bisect: Callable[[list[Any], Any], int]) -> Array:
    """Return the position of each bound in the ascending `values`, null for an unknown bound."""
    if kind_of(values.type) == "decimal":
        # Arrow cannot search decimals.
        ascending = values.to_pylist()
        counts = [None if each is None else bisect(ascending, each) for each in bounds.to_pylist()]
        return pa.array(counts, pa.uint64())
    compute: Any = pc
    options = compute.SearchSortedOptions(side="left" if bisect is bisect_left else "right")
    return pc.call_function("search_sorted", [values, bounds], options)


IS_IN: dict[bool, Callable[[Array, Array, Array], Array]] = {True: _contains, False: _excludes}
POSSIBLE: dict[str, Callable[[Array, Array, Any], Array]] = {
    "=": _equal,
    "<>": _not_equal,
    "<": _below(pc.less),
    "<=": _below(pc.less_equal),
    ">": _above(pc.greater),
    ">=": _above(pc.greater_equal),
    "prefix": _prefixed,
}
