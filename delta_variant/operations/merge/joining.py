"""Bind expressions over the target and the source of a merge, and join their rows in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from ..._arrow import COPIED_BYTES, Array, parts_by_bytes, row_numbers, value_bytes
from ...errors import ExpressionError
from ...expressions import tree
from ...expressions.bind import bind as bind_expression
from ...expressions.bind import called_without_parentheses
from ...expressions.char_padding import pad_chars
from ...expressions.evaluate import ROW_NUMBERS, evaluate, filter_mask, inputs_of, without_cast
from ...expressions.names import NameScope
from ...expressions.parse import parse as parse_expression
from ...expressions.tree import (
    Call,
    Column,
    Expression,
    Extraction,
    Field,
    Input,
    Name,
    conjunction,
    conjuncts,
    input_column,
    input_name,
    output_type,
)
from ...expressions.tree import inputs as expression_inputs
from ...expressions.tree import transform as transform_expression
from ...expressions.types import kind_of, type_name
from ...read.predicate import RowCondition, membership
from ...read.scope import Scope

Side: TypeAlias = Literal["target", "source"]


@dataclass(frozen=True)
class Sides:
    """The tables of a merge and their aliases; `alias.` is optional if one table only has the column.

    `readable` is the only table that an expression can read, None for both.
    """

    target_alias: str
    target: Scope
    source_alias: str
    source: Scope
    readable: Side | None = None

    def bind(self, parsed: Expression) -> Expression:
        """Return an expression over both tables, whose inputs have their table as an attribute."""
        bound = bind_expression(transform_expression(parsed, self._qualified), self._tables)
        return pad_chars(transform_expression(bound, self._input), self.target.chars, "target")

    @cached_property
    def _tables(self) -> NameScope:
        sides = ((self.target_alias, self.target), (self.source_alias, self.source))
        structs = [pa.field(alias, pa.struct(list(scope.schema))) for alias, scope in sides]
        return NameScope(pa.schema(structs), (), self.target.timezone, self.target.moment)

    def predicate(self, text: str) -> Expression:
        """Return SQL text as a predicate over both tables; raises ExpressionError."""
        bound = self.bind(parse_expression(text))
        bound_type = output_type(bound)
        if bound_type not in (pa.bool_(), pa.null()):
            raise ExpressionError(
                f"expected a boolean expression, got {text!r} of type {type_name(bound_type)}"
            )
        return bound

    def _qualified(self, part: Expression) -> Expression | None:
        if not isinstance(part, Name):
            return None
        first = part.parts[0].lower()
        if len(part.parts) > 1 and first in (self.target_alias.lower(), self.source_alias.lower()):
            return part
        owners = [
            alias
            for alias, scope in ((self.target_alias, self.target), (self.source_alias, self.source))
            if scope.fields(first)
        ]
        if len(owners) == 2 and self.readable is not None:
            owners = [self.target_alias if self.readable == "target" else self.source_alias]
        if len(owners) == 2:
            column = part.parts[0]
            message = (
                f"the column {column!r} is ambiguous because both tables have it: name the table, as in "
                f"{owners[0]}.{column} = {owners[1]}.{column}"
            )
            raise ExpressionError(message, column=column)
        call = None if owners else called_without_parentheses(part)
        return Name((*(owners or [self.target_alias]), *part.parts)) if call is None else call

    def _input(self, part: Expression) -> Expression | None:
        match part:
            case Field(Column(alias, _), name, arrow_type):
                return Column(name, arrow_type, self._side(alias))
            case Extraction(column=alias, fields=(name, *rest)):
                return msgspec.structs.replace(part, column=name, fields=tuple(rest), table=self._side(alias))
            case Column(alias, _):
                raise ExpressionError(f"expected a column, got the table {alias!r}: use {alias}.<column>")
        return None

    def _side(self, alias: str) -> Side:
        return "target" if alias == self.target_alias else "source"


def side_inputs(expressions: Iterable[Expression], side: Side) -> tuple[Input, ...]:
    """Return the inputs that expressions over both tables read from one of them."""
    return tuple(each for each in expression_inputs(expressions) if each.table == side)


def unqualify(part: Expression) -> Any:
    """Return an expression that reads one table as an expression over that table alone."""

    def change(inner: Expression) -> Expression | None:
        return msgspec.structs.replace(inner, table=None) if isinstance(inner, Column | Extraction) else None

    return transform_expression(part, change)


MAX_LISTED_KEYS = 2_000
"""Up to how many different keys files and pages are skipped, and concurrent rows compared, by each key. Of
more keys it is their range: an expression of all of them would take longer than a read."""

MAX_CROSS_ROWS = 1 << 20
"""How many pairs of rows are compared at a time if the predicate has no equality."""

RANGED = frozenset({"integer", "decimal", "string", "date", "timestamp", "timestamp_ntz"})


@dataclass(frozen=True)
class Pairs:
    """The positions of matching rows: in a batch of the table, and in the source."""

    target: Array
    source: Array


@dataclass(frozen=True)
class Key:
    """Expressions over the table and the source that must be equal, or both null if `is_null_safe`."""

    target: Expression
    source: Expression
    is_null_safe: bool = False


@dataclass(frozen=True)
class KeyValues:
    """The values of a key in the source: all distinct values if they are few, else the least and greatest.

    `values` is None if the type of the key has no order. `has_null` is true if a key is null.
    """

    values: Array | None
    are_all: bool
    has_null: bool

    @classmethod
    def of(cls, keys: Array) -> KeyValues:
        """Return the values among keys, of which some may be null."""
        distinct, has_null = pc.unique(keys.drop_null()), keys.null_count > 0
        if len(distinct) and kind_of(keys.type) not in RANGED:
            return cls(None, False, has_null)
        return cls._limited(distinct, has_null, are_all=True)

    @classmethod
    def combine(cls, parts: Sequence[KeyValues]) -> KeyValues:
        """Return the values of a key in several parts of a source, at least one."""
        found = [part.values for part in parts if part.values is not None]
        has_null = any(part.has_null for part in parts)
        if len(found) < len(parts):
            return cls(None, False, has_null)
        distinct = pc.unique(pa.concat_arrays(found))
        return cls._limited(distinct, has_null, are_all=all(part.are_all for part in parts))

    @classmethod
    def _limited(cls, distinct: Array, has_null: bool, *, are_all: bool) -> KeyValues:
        if are_all and len(distinct) <= MAX_LISTED_KEYS:
            return cls(distinct, True, has_null)
        ends = pc.min_max(distinct)
        return cls(pa.array([ends["min"], ends["max"]], distinct.type), False, has_null)

    def predicate(self, key: Key) -> Expression | None:
        """Return a predicate over the table that is true for all of the values, None if it is not known."""
        target = unqualify(key.target)
        predicate = self._predicate(target)
        if predicate is None or not (key.is_null_safe and self.has_null):
            return predicate
        return Call("or", (predicate, Call("is null", (target,), pa.bool_())), pa.bool_())

    def _predicate(self, target: Expression) -> Expression | None:
        if self.values is None:
            return None
        literals = [tree.Literal(value) for value in self.values]
        if self.are_all:
            return Call("in", (target, *literals), pa.bool_()) if literals else tree.Literal(pa.scalar(False))
        least, greatest = literals
        bounds = (Call(">=", (target, least), pa.bool_()), Call("<=", (target, greatest), pa.bool_()))
        return Call("and", bounds, pa.bool_())


@dataclass(frozen=True)
class JoinPredicate:
    """The predicate of a merge: the keys of the join, and the other operands."""

    keys: Sequence[Key]
    rest: Sequence[Expression]

    @classmethod
    def of(cls, on: Expression) -> JoinPredicate:
        """Return the keys and the other operands of a bound predicate over both tables."""
        keys, rest = [], []
        for each in conjuncts(on):
            key = _key_of(each)
            if key is None:
                rest.append(each)
            else:
                keys.append(key)
        return cls(keys, rest)

    @property
    def operands(self) -> list[Expression]:
        return [*(each for key in self.keys for each in (key.target, key.source)), *self.rest]

    def target_predicate(self, source: Sequence[KeyValues]) -> Expression | None:
        """Return a predicate over the table that is true for all rows that may match, None if all may.

        `source` has the values of each key in the source.
        """
        parts = [unqualify(each) for each in self.rest if not side_inputs([each], "source")]
        for key, values in zip(self.keys, source, strict=True):
            bound = values.predicate(key)
            parts += [] if bound is None else [bound]
        return conjunction(*parts)

    def target_keys(self, batch: pa.RecordBatch) -> list[Array]:
        """Return the values of the keys for a batch with inputs of the table."""
        return [_normal(evaluate(unqualify(key.target), batch)) for key in self.keys]

    def source_keys(self, rows: pa.RecordBatch) -> list[Array]:
        keys = [unqualify(key.source) for key in self.keys]
        batch = inputs_of(rows, expression_inputs(keys))
        return [_normal(evaluate(each, batch)) for each in keys]


@dataclass(frozen=True)
class Join:
    """All rows of a source, or of a part of it, and the predicate that joins them with the table."""

    source: pa.RecordBatch
    predicate: JoinPredicate

    def key_values(self) -> list[KeyValues]:
        return [KeyValues.of(keys) for keys in self._source_keys]

    def conditions(self) -> list[RowCondition]:
        """Return conditions that each row of the table that matches a source row meets."""
        keys = zip(self.predicate.keys, self._source_keys, strict=True)
        found = [
            membership(unqualify(key.target), values.drop_null())
            for key, values in keys
            if not key.is_null_safe
        ]
        return [each for each in found if each is not None]

    def pairs(self, batch: pa.RecordBatch) -> Pairs:
        """Return the pairs of matching rows for a batch with inputs of the table."""
        parts = [self._pairs(batch, start, length) for start, length in self._pieces(batch.num_rows)]
        empty: Any = pa.array([], pa.int64())
        return Pairs(
            pa.concat_arrays([empty, *(part.target for part in parts)]),
            pa.concat_arrays([empty, *(part.source for part in parts)]),
        )

    def _pieces(self, rows: int) -> list[tuple[int, int]]:
        length = rows if self.predicate.keys else max(1, MAX_CROSS_ROWS // max(1, self.source.num_rows))
        return [(start, min(length, rows - start)) for start in range(0, rows, max(1, length))]

    def _pairs(self, batch: pa.RecordBatch, start: int, length: int) -> Pairs:
        piece = batch.slice(start, length)
        left, rest = self.predicate.target_keys(piece), self.predicate.rest
        if self._unique_key is not None and left[0].type == self._unique_key.type:
            found = _look_up(left[0], self._unique_key)
        else:
            are_null_safe = [key.is_null_safe for key in self.predicate.keys]
            found = _join(left, self._source_keys, are_null_safe, piece.num_rows, self.source.num_rows)
        if (predicate := conjunction(*rest)) is not None:
            mask = self.mask(piece, found, predicate)
            found = Pairs(found.target.filter(mask), found.source.filter(mask))
        return Pairs(pc.add(found.target, start), found.source)

    def mask(self, batch: pa.RecordBatch, pairs: Pairs, predicate: Expression) -> Array:
        """Return a mask of the pairs for which a predicate over both tables is true."""
        masks: list[Array] = [pa.array([], pa.bool_())]
        for start, length in parts_by_bytes(self.copied_bytes(pairs.source, [predicate])):
            part = Pairs(pairs.target.slice(start, length), pairs.source.slice(start, length))
            masks.append(filter_mask(predicate, self.joined(batch, part, [predicate])))
        return pa.concat_arrays(masks)

    def copied_bytes(self, rows: Array, expressions: Sequence[Expression]) -> Array:
        """Return the bytes that a copy of each source row has, of the inputs that expressions read.

        They are 0 if no row is there many times, or if all copies are small.
        """
        matched = rows.drop_null()
        matching = pc.unique(matched)
        most: int = pc.max(self._row_bytes).as_py() or 0
        if len(matching) == len(matched) or most * len(matched) <= COPIED_BYTES:
            return pa.repeat(pa.scalar(0, pa.int64()), len(rows))
        values = self._source_inputs(side_inputs(expressions, "source"), matching)
        return pc.fill_null(_bytes_of(values).take(pc.index_in(rows, value_set=matching)), 0)

    def joined(
        self, batch: pa.RecordBatch, pairs: Pairs, expressions: Sequence[Expression]
    ) -> pa.RecordBatch:
        """Return the inputs of expressions over both tables, one row for each pair."""
        columns: dict[str, Array] = {"\0": pa.nulls(len(pairs.target))}
        names = frozenset(batch.schema.names)
        for each in side_inputs(expressions, "target"):
            # A reader returns the Variant if the cast of some row fails, which may be in no pair.
            is_cast = input_name(unqualify(each)) in names
            found = each if is_cast else without_cast(each)
            columns[input_name(found)] = batch.column(input_name(unqualify(found))).take(pairs.target)
        if ROW_NUMBERS in names:
            columns[ROW_NUMBERS] = batch.column(ROW_NUMBERS).take(pairs.target)
        read = side_inputs(expressions, "source")
        values = self._source_inputs(read, pairs.source)
        columns.update(zip(map(input_name, read), values.columns[1:], strict=True))
        return pa.record_batch(columns)

    def _source_inputs(self, inputs: Sequence[Input], rows: Array) -> pa.RecordBatch:
        """Return inputs for some source rows; a failing cast in another row is not an error.

        A row that is there many times is read once, because a copy of it may be large.
        """
        matching = pc.unique(rows)
        wanted = [unqualify(each) for each in inputs]
        names = sorted(set(map(input_column, wanted)))
        # An extra column gives the batch its length if there are no inputs.
        picked: dict[str, Array] = {"\0": pa.nulls(len(matching))}
        picked |= {name: self.source.column(name).take(matching) for name in names}
        values = inputs_of(pa.record_batch(picked), wanted)
        if len(matching) == len(rows):
            return values
        positions: Any = pc.index_in(rows, value_set=matching)
        return values.take(positions)

    @cached_property
    def _row_bytes(self) -> Array:
        return _bytes_of(self.source)

    @cached_property
    def _source_keys(self) -> list[Array]:
        return self.predicate.source_keys(self.source)

    @cached_property
    def _unique_key(self) -> Array | None:
        """Return the only key if no two source rows have the same value, else None."""
        if len(self.predicate.keys) != 1 or self.predicate.keys[0].is_null_safe:
            return None
        (values,) = self._source_keys
        if kind_of(values.type) not in RANGED:
            return None
        return values if len(pc.unique(values.drop_null())) == len(values) - values.null_count else None


def _look_up(left: Array, right: Array) -> Pairs:
    """Return the pairs of equal keys; those of the source are unique. Null is equal to nothing."""
    # Arrow makes a hash table of all keys that it searches in, and most batches have a part of the range.
    bounds: Any = pc.min_max(left)
    is_near = pc.and_(pc.greater_equal(right, bounds["min"]), pc.less_equal(right, bounds["max"]))
    positions: Any = pc.index_in(left, value_set=right.filter(is_near), skip_nulls=True)
    found: Array = pc.indices_nonzero(is_near).take(positions)
    targets: Array = pc.indices_nonzero(found.is_valid())
    return Pairs(targets.cast(pa.int64()), found.drop_null().cast(pa.int64()))


def _bytes_of(rows: pa.RecordBatch) -> Array:
    sizes: Array = pa.repeat(pa.scalar(0, pa.int64()), rows.num_rows)
    for column in rows.columns:
        sizes = pc.add(sizes, value_bytes(column))
    return sizes


def _key_of(condition: Expression) -> Key | None:
    """Return the key that a condition compares: `a = b`, `a <=> b`, or `a = b or a is null and b is null`."""
    match condition:
        case Call("=" | "<=>" as operator, (left, right)):
            for target, source in ((left, right), (right, left)):
                if _is_of(target, "target") and _is_of(source, "source"):
                    return Key(target, source, is_null_safe=operator == "<=>")
        case Call("or", (Call("=", compared), Call("and", nulls))) | Call(
            "or", (Call("and", nulls), Call("=", compared))
        ):
            tested = [Call("is null", (operand,), pa.bool_()) for operand in compared]
            if list(nulls) in (tested, tested[::-1]):
                return _key_of(Call("<=>", compared, pa.bool_()))
    return None


def _is_of(part: Expression, side: Side) -> bool:
    read = expression_inputs([part])
    return bool(read) and len(side_inputs([part], side)) == len(read)


def _normal(keys: Array) -> Array:
    """Return keys with equal bytes for equal values: in Spark 0.0 equals -0.0, and NaN equals NaN."""
    if kind_of(keys.type) != "floating":
        return keys
    zeros = pc.add(keys, pa.scalar(0.0, keys.type))
    return pc.if_else(pc.is_nan(zeros), pa.scalar(float("nan"), keys.type), zeros)


def _join(
    left: Sequence[Array],
    right: Sequence[Array],
    are_null_safe: Sequence[bool],
    left_rows: int,
    right_rows: int,
) -> Pairs:
    targets: list[Array] = []
    sources: list[Array] = []
    for target, source, is_null_safe in zip(left, right, are_null_safe, strict=True):
        columns = list(_null_safe(target, source)) if is_null_safe else [(target, source)]
        targets += [column for column, _ in columns]
        sources += [column for _, column in columns]
    if not targets:
        # Without an equality, all pairs of rows are candidates.
        targets, sources = ([pa.repeat(pa.scalar(0), rows)] for rows in (left_rows, right_rows))
    names = [f"key{index}" for index in range(len(targets))]
    table = pa.table([*targets, row_numbers(left_rows)], names=[*names, "target"])
    other = pa.table([*sources, row_numbers(right_rows)], names=[*names, "source"])
    found = table.join(other, names, join_type="inner").select(["target", "source"]).sort_by("target")
    return Pairs(found["target"].combine_chunks(), found["source"].combine_chunks())


def _null_safe(target: Array, source: Array) -> Iterator[tuple[Array, Array]]:
    """Yield columns without nulls that are equal where two keys are equal or both null."""
    yield target.is_null(), source.is_null()
    known = next((keys.drop_null()[0] for keys in (target, source) if keys.null_count < len(keys)), None)
    if known is not None:
        yield tuple(pc.fill_null(keys, known.cast(keys.type)) for keys in (target, source))
