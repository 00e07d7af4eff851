"""What a table demands of new rows: constraints, generated columns and defaults.

A constraint has to be true: false and NULL violate it (PROTOCOL.md, "CHECK Constraints", "Column Invariants",
"Generated Columns", "Default Columns").
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import Array
from ..data_file.options import WriteOptions
from ..errors import CastError, ConstraintViolationError, ExpressionError, UnsupportedFeatureError
from ..expressions.cast import cast_values
from ..expressions.evaluate import evaluate, filter_mask
from ..expressions.parse import parse as parse_expression
from ..expressions.tree import Call, Cast, Expression, Extraction, Input, Name, input_name
from ..expressions.tree import describe as describe_expression
from ..expressions.tree import inputs as expression_inputs
from ..protocol.schema.arrow import to_arrow_type
from ..protocol.schema.conforming import conform
from ..protocol.schema.paths import path_text
from ..protocol.types import VARIANT, StructField, StructType, fields_of
from ..scan.in_memory import inputs_of, parse_valid_json_columns
from ..scan.scope import Scope
from ..variant import values as variant_values
from ..variant.moments import UTC

__all__ = ["ComputedColumn", "RowConstraint", "RowRules", "check_constraints"]

CONSTRAINT = "delta.constraints."
INVARIANTS = "delta.invariants"
GENERATION_EXPRESSION = "delta.generationExpression"
DEFAULT = "CURRENT_DEFAULT"

MAX_SHOWN = 100
"""How many characters of a value are shown."""


@dataclass(frozen=True)
class RowConstraint:
    """What has to be true of each row; `column` is the generated column that it is about, if any."""

    name: str
    text: str
    expression: Expression
    column: str | None = None

    def check(self, readable: pa.RecordBatch, where: Callable[[int], str], excused: Collection[int]) -> None:
        """Raise ConstraintViolationError for a row that is not excused, and for which this is not true.

        `readable` has the inputs of the expression; `where` says in words which row it is.
        """
        try:
            fulfilled: Array = filter_mask(self.expression, readable)
        except CastError as error:
            raise CastError(f"{self.name}: {error}") from error
        if fulfilled.false_count:
            violating: Array = pc.invert(fulfilled)
            outside = pc.indices_nonzero(violating)
            row = next((row for row in outside.to_pylist() if row not in excused), None)
            if row is not None:
                values = ", ".join(
                    _shown(readable, each, row) for each in expression_inputs([self.expression])
                )
                raise ConstraintViolationError(f"{where(row)} violates {self.name}, {self.text}: {values}")


@dataclass(frozen=True)
class ComputedColumn:
    """What a column is where rows come without it."""

    name: str
    expression: Expression


@dataclass(frozen=True)
class RowRules:
    """The constraints of a table, and what its columns are where rows come without them."""

    columns: StructType
    constraints: tuple[RowConstraint, ...]
    generated: tuple[ComputedColumn, ...]
    timezone: str

    @classmethod
    def of(cls, columns: StructType, configuration: Mapping[str, str], timezone: str = UTC) -> RowRules:
        """Return the rules of a table; UnsupportedFeatureError names what cannot be evaluated here.

        Local times in their SQL text are those of `timezone`.
        """
        scope = Scope.of(columns, timezone)
        generated = tuple(_generated(columns, scope))
        constraints = [*_check_constraints(configuration, scope), *_invariants(columns, scope)]
        for column in generated:
            field = next(each for each in columns.fields if each.name == column.name)
            constraints.append(_generation_constraint(field, scope))
        return cls(columns, tuple(constraints), generated, timezone)

    @property
    def columns_read(self) -> frozenset[str]:
        """Return the columns that constraints and generated columns read, be it a part of them."""
        read = [each.expression for each in self.constraints]
        read += [each.expression for each in self.generated]
        return frozenset(map(_column_of, expression_inputs(read)))

    def computed_columns(self, given: Collection[str]) -> list[ComputedColumn]:
        """Return what the columns are that are not among those given, defaults first.

        Raises UnsupportedFeatureError for a default that is no constant here.
        """
        names = {name.lower() for name in given}
        missing = [field for field in self.columns.fields if field.name.lower() not in names]
        defaults = [column for field in missing if (column := _default(field, self.timezone)) is not None]
        absent = {field.name for field in missing}
        return [*defaults, *(each for each in self.generated if each.name in absent)]

    def complete(self, batch: pa.RecordBatch, options: WriteOptions) -> pa.RecordBatch:
        """Return rows in the table's columns, those that the batch does not have filled in.

        Raises what `schema.conform` does, and CastError.
        """
        computed = self.computed_columns(batch.schema.names)
        if not computed:
            return conform(batch, self.columns)
        filled = {column.name for column in computed}
        rest = StructType(tuple(field for field in self.columns.fields if field.name not in filled))
        completed = conform(batch, rest)
        for column in computed:
            readable = _readable(completed, self.columns, [column.expression], options)[0]
            values = _evaluated(column.expression, readable, f"the value of the column {column.name}")
            completed = completed.append_column(column.name, values)
        return conform(completed, self.columns)

    def regenerate(self, columns: Mapping[str, Array], assigned: Collection[str]) -> dict[str, Array]:
        """Return columns with those generated anew that read an assigned one and are not assigned."""
        regenerated = dict(columns)
        for column in self.generated:
            read = set(map(_column_of, _inputs(column)))
            if column.name not in assigned and not read.isdisjoint(assigned):
                batch = pa.record_batch(list(columns.values()), names=list(columns))
                readable = inputs_of(batch, _inputs(column))
                what = f"the value of the column {column.name}"
                regenerated[column.name] = _evaluated(column.expression, readable, what)
        return regenerated

    def check(
        self,
        batch: pa.RecordBatch,
        where: Callable[[int], str],
        options: WriteOptions,
        filled: Collection[str] = (),
    ) -> None:
        """Raise ConstraintViolationError for a row of which a constraint is not true.

        The batch is in the table's columns, of which `filled` were filled in; `where` says in words which row
        it is. Text that is not JSON is judged as the NULL that it becomes, and else left to whoever reads it.
        """
        constraints = [each for each in self.constraints if each.column is None or each.column not in filled]
        if not constraints or not batch.num_rows:
            return
        try:
            expressions = [each.expression for each in constraints]
            readable, invalid = _readable(batch, self.columns, expressions, options)
        except CastError as error:
            raise CastError(f"{', '.join(each.name for each in constraints)}: {error}") from error
        excused = set() if options.on_invalid == "null" else invalid
        for constraint in constraints:
            constraint.check(readable, where, excused)


def check_constraints(configuration: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the name and the SQL text of each CHECK constraint."""
    for key, text in configuration.items():
        if key.lower().startswith(CONSTRAINT):
            yield key[len(CONSTRAINT) :], text


def _check_constraints(configuration: Mapping[str, str], scope: Scope) -> Iterator[RowConstraint]:
    for name, text in check_constraints(configuration):
        yield _constraint(f"the CHECK constraint {name}", text, scope)


class _Persisted(msgspec.Struct):
    expression: str


class _Invariant(msgspec.Struct):
    expression: _Persisted


def _invariants(columns: StructType, scope: Scope) -> Iterator[RowConstraint]:
    for path, field in fields_of(columns):
        if INVARIANTS not in field.metadata:
            continue
        name, text = f"the invariant of the column {path_text(path)}", str(field.metadata[INVARIANTS])
        try:
            found = msgspec.json.decode(text, type=_Invariant).expression.expression
        except msgspec.MsgspecError as error:
            raise UnsupportedFeatureError(f"{name} is not understood: {text}") from error
        yield _constraint(name, found, scope)


def _generated(columns: StructType, scope: Scope) -> Iterator[ComputedColumn]:
    for path, field in fields_of(columns):
        text = field.metadata.get(GENERATION_EXPRESSION)
        if text is None:
            continue
        with _evaluable(f"the generation expression of the column {path_text(path)}", str(text)):
            if len(path) > 1:
                raise ExpressionError("it is of a field within a column")
            yield ComputedColumn(field.name, scope.bind(_generation(field)))


def _generation(field: StructField) -> Expression:
    parsed = parse_expression(str(field.metadata[GENERATION_EXPRESSION]))
    return Cast(parsed, to_arrow_type(field.type), strict=True)


def _generation_constraint(field: StructField, scope: Scope) -> RowConstraint:
    text = str(field.metadata[GENERATION_EXPRESSION])
    name = f"the generation expression of the column {field.name}"
    with _evaluable(name, text):
        same = scope.bind(Call("<=>", (Name((field.name,)), _generation(field))))
    return RowConstraint(name, text, same, field.name)


def _constraint(name: str, text: str, scope: Scope) -> RowConstraint:
    with _evaluable(name, text):
        constraint = scope.predicate(text)
        assert constraint is not None
    return RowConstraint(name, text, constraint)


def _default(field: StructField, timezone: str) -> ComputedColumn | None:
    """Return the default of a column, None where that is NULL."""
    text = str(field.metadata.get(DEFAULT, "NULL")).strip()
    if text.upper() == "NULL" or field.type == VARIANT:
        return None
    with _evaluable(f"the default of the column {field.name}", text, "give the column"):
        nothing = Scope.of(StructType(()), timezone)
        value = nothing.bind(Cast(parse_expression(text), to_arrow_type(field.type), strict=True))
    return ComputedColumn(field.name, value)


class _evaluable:  # noqa: N801 - used as a context manager
    """Turn what is no expression here into the error that says what this version cannot honour."""

    def __init__(self, name: str, text: str, proposal: str = "write with an engine that can") -> None:
        self._said = f"{name}, {text}, cannot be evaluated by this version ({proposal})"

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, ExpressionError):
            raise UnsupportedFeatureError(f"{self._said}: {error}") from error


def _column_of(source: Input) -> str:
    return source.column if isinstance(source, Extraction) else source.name


def _inputs(column: ComputedColumn) -> Sequence[Input]:
    return expression_inputs([column.expression])


def _readable(
    batch: pa.RecordBatch, columns: StructType, expressions: Iterable[Expression], options: WriteOptions
) -> tuple[pa.RecordBatch, set[int]]:
    """Return the inputs of expressions out of a batch, and the rows of text in it that is not JSON."""
    inputs = expression_inputs(expressions)
    read = {each.column for each in inputs if isinstance(each, Extraction)}
    parsed, invalid = parse_valid_json_columns(batch, columns, read, options)
    return inputs_of(parsed, inputs), invalid


def _evaluated(value: Expression, readable: pa.RecordBatch, what: str) -> Array:
    try:
        return evaluate(value, readable)
    except CastError as error:
        raise CastError(f"{what}: {error}") from error


def _shown(readable: pa.RecordBatch, source: Input, row: int) -> str:
    one: Array = readable.column(input_name(source)).slice(row, 1)
    if pa.types.is_temporal(one.type):
        # Python knows the years 1 to 9999.
        one = cast_values(one, pa.string(), strict=True)
    value = variant_values.to_json(one)[0].as_py() if source.type is None else one[0].as_py()
    is_text = source.type is not None and pa.types.is_string(source.type)
    text = "NULL" if value is None else repr(value) if is_text else str(value)
    shortened = text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
    return f"{describe_expression(source)} = {shortened}"
