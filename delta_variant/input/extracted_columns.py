"""Columns that are computed while files are read: SQL over the columns of the file and `_metadata`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from .._checks import check_mapping, check_text
from ..data_file.options import JsonOptions
from ..errors import CastError, ExpressionError, error_location
from ..expressions.bind import bind
from ..expressions.evaluate import evaluate, inputs_of, without_cast
from ..expressions.names import NameScope
from ..expressions.parse import parse
from ..expressions.tree import Expression, Extraction, output_type
from ..expressions.tree import inputs as expression_inputs
from ..protocol.schema.arrow import from_arrow, to_arrow, variant_field
from ..protocol.types import VARIANT
from ..variant.moments import current_moment
from ..variant.values import parse_valid_json, plain_variants

METADATA = "_metadata"
METADATA_TYPE = pa.struct([pa.field("file_path", pa.string()), pa.field("file_name", pa.string())])


@dataclass(frozen=True)
class ExtractedColumns:
    """The columns, and the expression of each: its text, and bound to the columns of the file."""

    texts: Mapping[str, str] = field(default_factory=dict)
    expressions: Mapping[str, Expression] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        texts: Mapping[str, str] | None,
        schema: pa.Schema,
        variants: Sequence[str] = (),
        *,
        replaced: Collection[str] = (),
    ) -> ExtractedColumns:
        """Bind the expressions; `variants` are the columns of JSON text that no type marks.

        Columns in `replaced` take the place of those of the file. Raises ExpressionError, with `column`, and
        ValueError for another column that the file has.
        """
        columns = from_arrow(schema, variants)
        names = tuple(field.name for field in columns.fields if field.type == VARIANT)
        readable = to_arrow(columns).append(pa.field(METADATA, METADATA_TYPE))
        scope = NameScope(readable, names, moment=current_moment())
        texts, bound = {} if texts is None else texts, {}
        check_mapping("SQL expressions by the names of columns", "columns", texts)
        for name, text in texts.items():
            check_text("a column name", name)
            if name in schema.names and name not in replaced:
                raise ValueError(f"columns: the file has a column {name!r}: choose another name")
            with error_location(column=name):
                bound[name] = bind(parse(text), scope)
        return cls(texts, bound)

    @property
    def fields(self) -> list[pa.Field[Any]]:
        """Return the fields of the columns. Raise ExpressionError for one without a type."""
        return [_field(name, expression) for name, expression in self.expressions.items()]

    def append(
        self, batch: pa.RecordBatch, file: str, locate: Callable[[int], Mapping[str, Any]], json: JsonOptions
    ) -> pa.RecordBatch:
        """Return a batch of `file` with the columns, NULL where JSON text is invalid.

        Raises CastError with the location of the row, which `locate` returns.
        """
        if not self.expressions:
            return batch
        inputs = expression_inputs(self.expressions.values())
        readable = batch.append_column(METADATA, _metadata(file, batch.num_rows))
        for name in dict.fromkeys(each.column for each in inputs if isinstance(each, Extraction)):
            index = batch.schema.get_field_index(name)
            if not pa.types.is_struct(batch.column(index).type):
                variants, _ = parse_valid_json(
                    batch.column(index), floats=json.floats, duplicate_keys=json.duplicate_keys
                )
                readable = readable.set_column(index, name, variants)
        readable = inputs_of(readable, list(dict.fromkeys(map(without_cast, inputs))))
        for name, expression in self.expressions.items():
            try:
                values = evaluate(expression, readable)
            except CastError as error:
                row = _failing_row(expression, readable)
                message = f"cannot compute {name!r} as `{self.texts[name]}`: {error.message}"
                raise CastError(message, column=name).at(**locate(row)) from error
            if output_type(expression) is None:
                values = plain_variants(values)
            column = _field(name, expression)
            index = batch.schema.get_field_index(name)
            batch = (
                batch.append_column(column, values) if index < 0 else batch.set_column(index, column, values)
            )
        return batch


def _field(name: str, expression: Expression) -> pa.Field[Any]:
    arrow_type = output_type(expression)
    if arrow_type is None:
        return variant_field(name)
    if pa.types.is_null(arrow_type):
        raise ExpressionError("NULL has no type: cast it, as in null::int", column=name)
    return pa.field(name, arrow_type)


def _metadata(file: str, rows: int) -> Any:
    value = {"file_path": file, "file_name": file.rpartition("/")[2]}
    return pa.repeat(pa.scalar(value, METADATA_TYPE), rows)


def _failing_row(expression: Expression, readable: pa.RecordBatch) -> int:
    """Return the first row for which an expression that fails raises CastError."""
    valid, failing = 0, readable.num_rows
    while failing - valid > 1:
        middle = (valid + failing) // 2
        try:
            evaluate(expression, readable.slice(valid, middle - valid))
            valid = middle
        except CastError:
            failing = middle
    return valid
