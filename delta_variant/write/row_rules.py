"""Apply the rules of a table to new rows: constraints, generated columns, defaults and identity columns.

A constraint must be true. False and NULL violate it (PROTOCOL.md, "CHECK Constraints", "Column Invariants",
"Generated Columns", "Default Columns"). Text of the types `char(n)` and `varchar(n)` has at most n
characters. Like Delta on Spark, writes do not pad it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import Array, row_numbers
from ..data_file.options import WriteOptions
from ..errors import (
    CastError,
    ConstraintViolationError,
    ExpressionError,
    PredicateViolationError,
    SchemaError,
    UnsupportedFeatureError,
)
from ..expressions.cast import cast_values
from ..expressions.evaluate import evaluate, filter_mask, inputs_of
from ..expressions.parse import parse as parse_expression
from ..expressions.tree import (
    Call,
    Cast,
    Expression,
    Extraction,
    Input,
    Literal,
    Name,
    input_column,
    input_name,
)
from ..expressions.tree import describe as describe_expression
from ..expressions.tree import inputs as expression_inputs
from ..input.invalid_json import Batches, BatchOrigin, RowLocator, parse_valid_json_columns
from ..protocol.identity_columns import IdentityColumn, assigned_identities, find_identities
from ..protocol.schema.arrow import to_arrow_type
from ..protocol.schema.char_types import TYPE_TEXT, Width, widths_of
from ..protocol.schema.conforming import conform
from ..protocol.table_configuration import TableConfiguration
from ..protocol.types import (
    GENERATION_EXPRESSION,
    INVARIANTS,
    VARIANT,
    FieldPath,
    PrimitiveType,
    StructField,
    StructType,
    default_of,
    fields_of,
    path_text,
)
from ..read.scope import Scope
from ..variant import values as variant_values
from .stored_sql import check_constraints, parse_stored

TEXT_TYPES = (PrimitiveType("string"), PrimitiveType("binary"))
UPDATED = "an updated row"

MAX_SHOWN = 100
"""How many characters of a value a message shows."""


@dataclass(frozen=True)
class RowConstraint:
    """An expression that must be true for every row, with its description for messages and its SQL text.

    `column` is the generated column, or the column with the invariant. `is_generated` states that the
    constraint compares a generated column with its expression.
    """

    name: str
    text: str
    expression: Expression
    column: str | None = None
    is_generated: bool = False

    def check(
        self,
        readable: pa.RecordBatch,
        locate: RowLocator,
        subject: str = "the row",
        excused: Collection[int] = (),
    ) -> None:
        """Raise ConstraintViolationError for the first violating row that is not excused.

        `readable` has the inputs of the expression. `locate` returns the location of a row of the batch,
        `subject` is the subject of the message.
        """
        try:
            is_satisfied: Array = filter_mask(self.expression, readable)
        except CastError as error:
            raise _evaluation_error(self.name, error, self.column) from error
        if not is_satisfied.false_count:
            return
        is_violated: Array = pc.invert(is_satisfied)
        violating = pc.indices_nonzero(is_violated).to_pylist()
        row = next((row for row in violating if row not in excused), None)
        if row is not None:
            inputs = expression_inputs([self.expression])
            values = ", ".join(_describe_value(readable, each, row) for each in inputs)
            message = f"{subject} violates {self.name}, {self.text}: {values}"
            raise ConstraintViolationError(message, column=self.column).at(**locate(row))


@dataclass(frozen=True)
class ComputedColumn:
    """The default or generated value of a column that incoming rows lack."""

    name: str
    expression: Expression


@dataclass(frozen=True)
class RowRules:
    """The constraints of a table, the widths of its text, its generated columns and its defaults.

    `partition_texts` are the partition columns in which an empty value is NULL.
    """

    columns: StructType
    constraints: tuple[RowConstraint, ...]
    generated: tuple[ComputedColumn, ...]
    timezone: str
    partition_texts: frozenset[str]
    widths: _TextWidths
    has_identity: bool

    @classmethod
    def of(cls, table: TableConfiguration) -> RowRules:
        """Return the rules of a table.

        Raises UnsupportedFeatureError for an expression that this version cannot evaluate.
        """
        columns = table.row_columns
        scope = Scope.of_columns(columns, table.timezone)
        generated = tuple(_generated(columns, scope))
        checks = (
            _constraint(f"the CHECK constraint {name}", text, scope)
            for name, text in check_constraints(table.properties)
        )
        constraints = [*checks, *_invariants(columns, scope)]
        texts = frozenset(
            field.name
            for field in columns.fields
            if field.name in table.partition_columns and field.type in TEXT_TYPES
        )
        for column in generated:
            field = next(each for each in columns.fields if each.name == column.name)
            constraints.append(_generation_constraint(field, scope, is_partition_text=field.name in texts))
        has_identity = any(find_identities(columns))
        widths = _TextWidths.of(columns)
        return cls(columns, tuple(constraints), generated, table.timezone, texts, widths, has_identity)

    @property
    def apply_to_whole_rows(self) -> bool:
        """Return whether rows that have all columns have to be checked or changed."""
        return bool(self.constraints or self.partition_texts or self.widths.by_path)

    @property
    def columns_read(self) -> frozenset[str]:
        """Return the columns that constraints and generated columns read, as a whole or in part."""
        read = [each.expression for each in self.constraints]
        read += [each.expression for each in self.generated]
        return frozenset(map(input_column, expression_inputs(read)))

    def computed_columns(self, given: Collection[str]) -> list[ComputedColumn]:
        """Return the values of the columns that are not in `given`, defaults first.

        Raises UnsupportedFeatureError for a default that is not a supported constant expression.
        """
        names = {name.lower() for name in given}
        missing = [field for field in self.columns.fields if field.name.lower() not in names]
        defaults = [column for field in missing if (column := _default(field, self.timezone)) is not None]
        absent = {field.name for field in missing}
        return [*defaults, *(each for each in self.generated if each.name in absent)]

    def filled_columns(self, given: Collection[str]) -> frozenset[str]:
        """Return the columns that get values although they are not in `given`."""
        names = [each.name for each in self.computed_columns(given)]
        return frozenset((*names, *(each.name for each in self._assigned(given))))

    def _assigned(self, given: Collection[str]) -> list[IdentityColumn]:
        return assigned_identities(self.columns, given) if self.has_identity else []

    def complete(
        self, batch: pa.RecordBatch, options: WriteOptions, locate: RowLocator, position: int = 0
    ) -> pa.RecordBatch:
        """Return rows with all columns of the table as they will be read, also those that they lack.

        These are defaults, generated columns and identity columns, which depend on the position of the first
        row among all rows that a write adds. Raises SchemaError for rows that do not fit the columns, and
        CastError. See `RowConstraint.check` for `locate`.
        """
        given = batch.schema.names
        computed, filled = self.computed_columns(given), self.filled_columns(given)
        rest = StructType(tuple(field for field in self.columns.fields if field.name not in filled))
        completed = conform(batch, rest)
        for name in self.partition_texts - filled:
            index = completed.schema.get_field_index(name)
            stored = self._stored(name, completed.column(index), locate)
            completed = completed.set_column(index, completed.schema.field(index), stored)
        for identity in self._assigned(given):
            values = identity.values(position, batch.num_rows)
            completed = completed.append_column(identity.name, values)
        for column in computed:
            readable = _readable(completed, self.columns, [column.expression], options)[0]
            value = self._stored(column.name, _evaluate(column, readable), locate)
            completed = completed.append_column(column.name, value)
        return conform(completed, self.columns)

    def recomputed(self, assigned: Collection[str]) -> list[ComputedColumn]:
        """Return the generated columns that read assigned columns, and are not assigned themselves."""
        return [
            each
            for each in self.generated
            if each.name not in assigned and not set(map(input_column, _inputs(each))).isdisjoint(assigned)
        ]

    def complete_assigned(self, columns: Mapping[str, Array], assigned: Collection[str]) -> dict[str, Array]:
        """Return columns with assigned values as they will be read, and generated columns that read them."""
        completed = {
            name: self._stored(name, column, _locate_nowhere) if name in assigned else column
            for name, column in columns.items()
        }
        for column in self.recomputed(assigned):
            batch = pa.record_batch(completed)
            value = _evaluate(column, inputs_of(batch, _inputs(column)))
            completed[column.name] = self._stored(column.name, value, _locate_nowhere)
        return completed

    def check_updated(self, columns: dict[str, Array]) -> None:
        """Raise ConstraintViolationError for an updated row that violates a constraint."""
        self.check(pa.record_batch(columns), WriteOptions(), locate=_locate_nowhere, subject=UPDATED)

    def _stored(self, name: str, column: Array, locate: RowLocator) -> Array:
        """Return a column as it will be read: an empty value of a partition column is NULL."""
        if name not in self.partition_texts:
            return column
        length: Array = pc.binary_length(column)
        has_no_text: Any = pc.equal(length, pa.scalar(0))
        is_empty: Array = pc.fill_null(has_no_text, False)
        if not is_empty.true_count:
            return column
        field = next(each for each in self.columns.fields if each.name == name)
        if not field.nullable:
            raise SchemaError(
                f"the partition column {name!r} is NOT NULL, but has an empty value: Delta stores it as NULL",
                column=name,
            ).at(**locate(pc.index(is_empty, True).as_py()))
        return pc.if_else(is_empty, pa.scalar(None, column.type), column)

    def check(
        self,
        batch: pa.RecordBatch,
        options: WriteOptions,
        *,
        locate: RowLocator,
        subject: str = "the row",
        computed: Collection[str] = (),
    ) -> None:
        """Raise ConstraintViolationError for a row that violates a constraint.

        The batch has the columns of the table, of which this object computed those in `computed`. Invalid
        JSON counts as NULL if `options` replaces it by NULL. Otherwise constraints skip its rows, because the
        writer raises an error for them or rejects them. See `RowConstraint.check` for `locate` and `subject`.
        """
        constraints = [
            each for each in self.constraints if not (each.is_generated and each.column in computed)
        ]
        if not batch.num_rows:
            return
        self.widths.check(batch, locate, subject)
        if not constraints:
            return
        try:
            expressions = [each.expression for each in constraints]
            readable, invalid = _readable(batch, self.columns, expressions, options)
        except CastError as error:
            raise _evaluation_error(", ".join(each.name for each in constraints), error) from error
        excused = set() if options.json.on_invalid == "null" else invalid
        for constraint in constraints:
            constraint.check(readable, locate, subject, excused)


class _Persisted(msgspec.Struct):
    expression: str


class _Invariant(msgspec.Struct):
    expression: _Persisted


def _invariants(columns: StructType, scope: Scope) -> Iterator[RowConstraint]:
    for path, field in fields_of(columns):
        if INVARIANTS not in field.metadata:
            continue
        column, text = path_text(path), str(field.metadata[INVARIANTS])
        name = f"the invariant of the column {column}"
        try:
            found = msgspec.json.decode(text, type=_Invariant).expression.expression
        except msgspec.MsgspecError as error:
            message = f"cannot parse {name}: expected a JSON object with expression.expression, got {text}"
            raise UnsupportedFeatureError(message, column=column) from error
        yield _constraint(name, found, scope, column)


def _generated(columns: StructType, scope: Scope) -> Iterator[ComputedColumn]:
    for path, field in fields_of(columns):
        text = field.metadata.get(GENERATION_EXPRESSION)
        if text is None:
            continue
        column = path_text(path)
        with _reject_unsupported(f"the generation expression of the column {column}", str(text), column):
            if len(path) > 1:
                raise ExpressionError("only top-level columns can be generated")
            yield ComputedColumn(field.name, scope.timeless().bind(_generation(field, scope)))


def _generation(field: StructField, scope: Scope) -> Expression:
    parsed = parse_stored(str(field.metadata[GENERATION_EXPRESSION]), scope.schema.names)
    return Cast(parsed, to_arrow_type(field.type), strict=True)


def _generation_constraint(field: StructField, scope: Scope, *, is_partition_text: bool) -> RowConstraint:
    text = str(field.metadata[GENERATION_EXPRESSION])
    name = f"the generation expression of the column {field.name}"
    with _reject_unsupported(name, text, field.name):
        generated = _generation(field, scope)
        if is_partition_text:
            # An empty value is stored as NULL, and every row is checked as it is stored.
            generated = Call("nullif", (generated, Literal(pa.scalar("", to_arrow_type(field.type)))))
        is_equal = scope.timeless().bind(Call("<=>", (Name((field.name,)), generated)))
    return RowConstraint(name, text, is_equal, field.name, is_generated=True)


def _constraint(name: str, text: str, scope: Scope, column: str | None = None) -> RowConstraint:
    with _reject_unsupported(name, text, column):
        return RowConstraint(name, text, constraint_predicate(text, scope), column)


def constraint_predicate(text: str, scope: Scope) -> Expression:
    """Return the predicate of a constraint; raises ExpressionError also for one that reads no column."""
    predicate = scope.condition(parse_stored(text, scope.schema.names))
    if not expression_inputs([predicate]):
        raise ExpressionError(
            "it reads no column: drop the constraint, and quote names of columns with backquotes"
        )
    return predicate


def _default(field: StructField, timezone: str) -> ComputedColumn | None:
    """Return the default of a column, None if it is NULL."""
    text = default_of(field)
    if text is None or field.type == VARIANT:
        return None
    remedy = "add the column to the data"
    with _reject_unsupported(f"the default of the column {field.name}", text, field.name, remedy):
        no_columns = Scope.of_columns(StructType(()), timezone)
        value = no_columns.bind(Cast(parse_expression(text), to_arrow_type(field.type), strict=True))
    return ComputedColumn(field.name, value)


@contextmanager
def _reject_unsupported(
    name: str, text: str, column: str | None, remedy: str = "write with an engine that supports it"
) -> Iterator[None]:
    """Raise UnsupportedFeatureError for an expression that this version cannot parse or bind."""
    try:
        yield
    except ExpressionError as error:
        message = f"this version cannot evaluate {name}, {text}: {error.message}; {remedy}"
        raise UnsupportedFeatureError(message, column=column) from error


def _evaluation_error(what: str, error: CastError, column: str | None = None) -> CastError:
    """Return a CastError that names the evaluated expression and has the column of a rule."""
    message = f"cannot evaluate {what}: {error.message}"
    return CastError(message, column=column).at(
        file=error.file, row=error.row, column=error.column, path=error.path
    )


def _locate_nowhere(row: int) -> Mapping[str, Any]:
    return {}


def _inputs(column: ComputedColumn) -> Sequence[Input]:
    return expression_inputs([column.expression])


def _readable(
    batch: pa.RecordBatch, columns: StructType, expressions: Iterable[Expression], options: WriteOptions
) -> tuple[pa.RecordBatch, set[int]]:
    """Return the inputs of expressions over a batch, and the rows with invalid JSON."""
    inputs = expression_inputs(expressions)
    read = {each.column for each in inputs if isinstance(each, Extraction)}
    parsed, invalid = parse_valid_json_columns(batch, columns, read, options)
    return inputs_of(parsed, inputs), invalid


def _evaluate(column: ComputedColumn, readable: pa.RecordBatch) -> Array:
    try:
        return evaluate(column.expression, readable)
    except CastError as error:
        raise _evaluation_error(f"the value of the column {column.name}", error, column.name) from error


def _describe_value(readable: pa.RecordBatch, source: Input, row: int) -> str:
    one: Array = readable.column(input_name(source)).slice(row, 1)
    if pa.types.is_temporal(one.type):
        # Python's datetime has the years 1 to 9999 only.
        one = cast_values(one, pa.string(), strict=True)
    value = variant_values.to_json(one)[0].as_py() if source.type is None else one[0].as_py()
    is_text = source.type is not None and pa.types.is_string(source.type)
    text = "NULL" if value is None else repr(value) if is_text else str(value)
    return f"{describe_expression(source)} = {_shorten(text)}"


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def complete_rows(
    batches: Batches, table: TableConfiguration, options: WriteOptions, predicate: Expression | None = None
) -> Batches:
    """Return batches as the table stores them, with defaults and generated columns, and check each row.

    Raises ConstraintViolationError for a row that violates a constraint, UnsupportedFeatureError for an
    expression that this version cannot evaluate, and PredicateViolationError for a row for which `predicate`,
    that of an overwrite, is not true.
    """
    rules = RowRules.of(table)
    first = 0
    for batch, origin in batches:
        locate = BatchOrigin(origin, first, None).locate
        computed = rules.filled_columns(batch.schema.names)
        if computed or rules.apply_to_whole_rows:
            batch = rules.complete(batch, options, locate, first)
            rules.check(batch, options, locate=locate, computed=computed)
        if predicate is not None:
            outside = _first_outside(conform(batch, table.schema), table.schema, predicate, options)
            if outside is not None:
                raise PredicateViolationError(
                    "the row does not match the predicate of the overwrite, "
                    f"{describe_expression(predicate)}: remove the row, or pass a predicate that matches it"
                ).at(**locate(outside))
        first += batch.num_rows
        yield batch, origin


def _first_outside(
    batch: pa.RecordBatch, columns: StructType, predicate: Expression, options: WriteOptions
) -> int | None:
    parsed, invalid = parse_valid_json_columns(batch, columns, batch.schema.names, options)
    matching = filter_mask(predicate, inputs_of(parsed, expression_inputs([predicate])))
    # The writer rejects rows with invalid JSON or raises an error for them.
    excused = set() if options.json.on_invalid == "null" else invalid
    return next((row for row, fits in enumerate(matching) if not fits.as_py() and row not in excused), None)


@dataclass(frozen=True)
class _TextWidths:
    """The types of text whose width is limited, by path, which may have steps such as `element`."""

    by_path: Mapping[FieldPath, Width]

    @classmethod
    def of(cls, columns: StructType) -> _TextWidths:
        """Return the widths of columns; raises UnsupportedFeatureError for a type that cannot be parsed."""
        return cls(dict(width for path, field in fields_of(columns) for width in _widths(path, field)))

    def check(self, batch: pa.RecordBatch, locate: RowLocator, subject: str) -> None:
        """Raise ConstraintViolationError for a value with more characters than its type allows.

        See `RowConstraint.check` for `locate` and `subject`.
        """
        for path, width in self.by_path.items():
            text, rows = _values(batch.column(path[0]), path[1:], row_numbers(batch.num_rows))
            characters: Array = pc.utf8_length(text)
            is_long: Any = pc.greater(characters, pa.scalar(width.characters))
            position = pc.index(is_long, True).as_py()
            if position >= 0:
                value = text[position].as_py()
                raise ConstraintViolationError(
                    f"{subject} violates {width} of the column {path_text(path)}: {_shorten(value)!r} has "
                    f"{len(value)} characters",
                    column=".".join(path),
                ).at(**locate(rows[position].as_py()))


def _values(array: Array, path: FieldPath, rows: Array) -> tuple[Array, Array]:
    if not path:
        return array, rows
    if pa.types.is_struct(array.type):
        # Fields of null structs are null in the result, whatever their buffers have.
        return _values(pc.struct_field(array, path[0]), path[1:], rows)
    if pa.types.is_map(array.type):
        entries = pa.ListArray.from_arrays(array.offsets, array.keys if path[0] == "key" else array.items)
    else:
        entries = array
    return _values(entries.flatten(), path[1:], rows.take(pc.list_parent_indices(entries)))


def _widths(path: FieldPath, field: StructField) -> Iterator[tuple[FieldPath, Width]]:
    try:
        found = widths_of(field)
    except ValueError as error:
        raise UnsupportedFeatureError(
            f"cannot parse the type {field.metadata[TYPE_TEXT]!r} of the column {path_text(path)}: write "
            "with an engine that supports it",
            column=".".join(path),
        ) from error
    yield from (((*path, *inner), width) for inner, width in found.items())
