"""Rows that DuckDB reads itself, from the data files of a table as a view shows them.

It computes only what it computes as Spark does: conditions, and few functions. All else is read and computed
here, and so are rows for which DuckDB reports an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from .._arrow import total
from ..expressions.tree import (
    FLIPPED,
    Call,
    Cast,
    Column,
    Expression,
    Extraction,
    Input,
    Literal,
    input_name,
    output_type,
)
from ..expressions.tree import inputs as expression_inputs
from ..log.snapshot import Snapshot
from ..read.query import Query
from ..read.scan_rows import TableRows
from ..variant.moments import UTC
from ..views.duckdb import files_source, name_text, text_of, type_text
from ..views.files import View

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MIN_FILE_BYTES = 1 << 18
"""In smaller files, what DuckDB saves of the reading is less than it needs to open them."""

COMPARISONS = {each: each for each in FLIPPED} | {"<=>": "is not distinct from"}
"""The operators of DuckDB for those of Spark."""

DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}

FLOATS = (pa.float32(), pa.float64())

MOMENT = pa.timestamp("us", UTC)

PARTS = ("year", "month", "day", "hour")

FUNCTIONS: dict[tuple[str, tuple[Any, ...]], str] = {
    ("timestamp_micros", (pa.int64(),)): "make_timestamptz({})",
    # A moment without a time zone, so that the one of the session does not matter.
    **{(part, (MOMENT,)): f"{part}(make_timestamp(epoch_us({{}})))::integer" for part in PARTS},
    # Dates of DuckDB may be infinite.
    **{
        (part, (pa.date32(),)): f"if(isfinite({{0}}), {part}({{0}}), error('infinite'))::integer"
        for part in PARTS[:3]
    },
    ("cast", (MOMENT, pa.date32())): "make_timestamp(epoch_us({}))::date",
    # DuckDB may leave out the operation on integers that overflows.
    **{(operator, (pa.float64(),) * 2): f"({{}} {operator} {{}})" for operator in "+-*"},
}
"""The SQL of a function, by its name and the types of its arguments. Parts of a moment are those of UTC."""


class DirectRows(NamedTuple):
    """The values of expressions for the rows of a view for which a condition is true."""

    view: View
    outputs: Mapping[str, str]
    where: str | None

    @classmethod
    def of(cls, snapshot: Snapshot, rows: TableRows) -> DirectRows | None:
        """Return rows that DuckDB reads faster than this library; None if it cannot, or not faster."""
        files = rows.plan.files
        if not files.num_rows or total(files["size"]) < MIN_FILE_BYTES * files.num_rows:
            return None
        if snapshot.store.local_root is None or find_spec("fsspec") is None:
            return None
        query = rows.query
        used = expression_inputs([*query.outputs.values(), *([query.predicate] if query.predicate else ())])
        inputs = {each: f"i{number}" for number, each in enumerate(used)}
        # DuckDB 2.0 breaks off windows over columns whose values are in the names of folders.
        partitions = snapshot.partition_columns
        if not inputs or any(input_name(each) in partitions or not _is_shown(each) for each in inputs):
            return None
        try:
            outputs = {name: _sql(each, inputs) for name, each in query.outputs.items()}
            where = None if query.predicate is None else _sql(query.predicate, inputs)
        except _NotDirectError:
            return None
        columns = Query.of_expressions({name: each for each, name in inputs.items()}, None)
        view = View.as_stored(snapshot, columns, files)
        return None if view is None else cls(view, outputs, where)

    def sql(self, connection: DuckDBPyConnection) -> str:
        """Return the query of the rows, whose files exist as long as the connection."""
        source = files_source(connection, self.view)
        places = self.view.shape.places.items()
        columns = ", ".join(f"{'.'.join(map(name_text, steps))} as {name}" for name, steps in places)
        outputs = ", ".join(f"{text} as {name_text(name)}" for name, text in self.outputs.items())
        where = "" if self.where is None else f" where {self.where}"
        return f"select {outputs} from (select {columns} from {source}){where}"


class _NotDirectError(Exception):
    pass


def _is_shown(source: Input) -> bool:
    """Return whether a view may have an input as a column that is the same in DuckDB."""
    if isinstance(source, Extraction) and (source.as_json or source.fields or not source.path):
        return False
    return _is_comparable(source.type)


def _is_comparable(arrow_type: Any) -> bool:
    """Return whether DuckDB has the values of a type, and compares them as Spark does."""
    return (
        arrow_type in (pa.bool_(), pa.string(), pa.date32(), pa.timestamp("us"), MOMENT, *FLOATS)
        or pa.types.is_signed_integer(arrow_type)
        or pa.types.is_decimal128(arrow_type)
    )


def _sql(expression: Expression, inputs: Mapping[Input, str]) -> str:
    """Return an expression as SQL of DuckDB with the same values; raises _NotDirectError."""
    match expression:
        case Column() | Extraction():
            return inputs[expression]
        case Literal(value):
            return _literal(value)
        case Cast(operand, arrow_type) if _is_wider(output_type(operand), arrow_type):
            return f"{_sql(operand, inputs)}::{type_text(arrow_type)}"
        case Cast(operand, arrow_type, _, timezone):
            return _function("cast", [_sql(operand, inputs)], (output_type(operand), arrow_type), timezone)
        case Call(function, arguments, _, timezone):
            types = tuple(map(output_type, arguments))
            texts = [_sql(each, inputs) for each in arguments]
            return _call(function, texts, types, timezone)
        case _:
            raise _NotDirectError


def _call(function: str, texts: list[str], types: tuple[Any, ...], timezone: str) -> str:
    if function in ("and", "or"):
        return f"({f' {function} '.join(texts)})"
    if function == "not":
        return f"(not {texts[0]})"
    if function == "is null":
        return f"({texts[0]} is null)"
    if function not in (*COMPARISONS, "in", "coalesce"):
        return _function(function, texts, types, timezone)
    if len(set(types)) > 1 or not _is_comparable(types[0]):
        raise _NotDirectError
    if function in COMPARISONS:
        return f"({texts[0]} {COMPARISONS[function]} {texts[1]})"
    first = 1 if function == "in" else 0
    return f"({' '.join(texts[:first])} {function} ({', '.join(texts[first:])}))"


def _function(name: str, texts: list[str], types: tuple[Any, ...], timezone: str) -> str:
    if timezone != UTC or (name, types) not in FUNCTIONS:
        raise _NotDirectError
    return FUNCTIONS[name, types].format(*texts)


def _is_wider(old: Any, new: Any) -> bool:
    """Return whether a cast of integers to integers or decimals keeps each value."""
    digits = DIGITS.get(old, 99)
    if pa.types.is_decimal128(new):
        return bool(new.precision - new.scale >= digits)
    return digits <= DIGITS.get(new, 0)


def _literal(value: pa.Scalar[Any]) -> str:
    arrow_type = value.type
    if not _is_comparable(arrow_type):
        raise _NotDirectError
    if not value.is_valid:
        return f"null::{type_text(arrow_type)}"
    if pa.types.is_timestamp(arrow_type):
        make = "make_timestamp" if arrow_type.tz is None else "make_timestamptz"
        return f"{make}({value.cast(pa.int64()).as_py()})"
    text = str(value.cast(pa.string()).as_py())
    if "\0" in text:
        raise _NotDirectError
    return f"{text_of(text)}::{type_text(arrow_type)}"
