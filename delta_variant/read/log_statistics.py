"""Read partition values and statistics of columns and Variant paths from the log."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Context, Decimal
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import Array
from .._options import JsonKind
from ..errors import CastError, ExpressionError, MalformedLogError, UnsupportedFeatureError
from ..expressions.cast import cast_values
from ..expressions.evaluate import evaluate, filter_mask
from ..expressions.tree import Column, Expression, inputs
from ..expressions.types import NUMERIC, kind_of
from ..protocol.schema.arrow import to_arrow_type
from ..protocol.schema.column_mapping import physical_name
from ..protocol.schema.evolution import types_before
from ..protocol.schema.partition_values import partition_value_from_string
from ..protocol.statistics import bounds_at, counts_of, texts_at, widen_moments
from ..protocol.table_configuration import TableConfiguration
from ..protocol.types import DataType, StructField, StructType
from ..variant.paths import normalize
from .predicate import Bounds, Leaf

TextReader: TypeAlias = Callable[[Array, pa.DataType], Array]

FILES_AT_ONCE = 100_000
"""How many files' statistics are parsed at a time, to bound memory."""

SIDES = ("minValues", "maxValues", "nullCount")

PLACEHOLDER = "\0"

WIDE = r'"tightBounds"\s*:\s*false'

MILLISECOND = 999
"""How many microseconds a timestamp may exceed the maximum in statistics, which has milliseconds."""

LAST_LONG = (1 << 63) - 1
SATURATED = {1: Decimal(LAST_LONG), -1: Decimal(-LAST_LONG - 1)}
"""The upper and lower bounds that delta-rs writes for integral decimals that do not fit into 64 bits."""
EXACT_UNITS = 10**14
ALL_DIGITS = Context(prec=76)

UNEVALUABLE = (CastError, ExpressionError, MalformedLogError, UnsupportedFeatureError)
"""The errors of expressions over partition columns. The read reports them, with the file."""


def file_bounds(table: TableConfiguration, files: pa.Table, leaves: Collection[Leaf]) -> dict[Leaf, Bounds]:
    """Return the bounds of each leaf, one row for each of some files, whose column `stats` is read.

    Leaves without statistics are omitted. Variant bounds are used only if the protocol of the table supports
    the feature variantShredding, which defines them (PROTOCOL.md, "Variant Statistics").
    """
    mode, has_variant_bounds = table.mapping_mode, table.supports_shredding
    fields = {
        leaf: chain
        for leaf in leaves
        if (leaf.path is None or has_variant_bounds)
        and (chain := _fields_at(leaf.names, table.schema)) is not None
    }
    known = {leaf: tuple(physical_name(each, mode) for each in chain) for leaf, chain in fields.items()}
    # Files may store these columns as `float`, with bounds in the decimal digits of a `float`.
    floats = {leaf for leaf, chain in fields.items() if "float" in types_before(chain[-1])}
    texts = files["stats"]
    starts = range(0, max(len(texts), 1), FILES_AT_ONCE)
    parts = [_bounds_in(texts.slice(at, FILES_AT_ONCE), known, floats) for at in starts]
    return {leaf: _joined([part[leaf] for part in parts]) for leaf in known}


def _joined(parts: Sequence[Bounds]) -> Bounds:
    return Bounds(
        *(pa.concat_arrays([getattr(part, name) for part in parts]) for name in Bounds.__struct_fields__)
    )


def _fields_at(names: Sequence[str], struct: DataType) -> list[StructField] | None:
    """Return a column and the struct fields below it, by their names, None if one is missing."""
    chain: list[StructField] = []
    for name in names:
        fields = struct.fields if isinstance(struct, StructType) else ()
        field = next((field for field in fields if field.name == name), None)
        if field is None:
            return None
        chain.append(field)
        struct = field.type
    return chain


def _bounds_in(
    texts: Array, known: Mapping[Leaf, tuple[str, ...]], floats: Collection[Leaf]
) -> dict[Leaf, Bounds]:
    """Return the bounds of leaves, by their physical names, in the statistics of some files."""
    paths: dict[tuple[str, ...], JsonKind] = {("numRecords",): "number"}
    for leaf, names in known.items():
        kind = _json_kind(leaf)
        paths |= {("minValues", *names): kind, ("maxValues", *names): kind}
        paths |= {("nullCount", *names): "number"}
    found = dict(zip(paths, texts_at(texts, list(paths.items())), strict=True))
    rows = counts_of(found[("numRecords",)])
    paths_of = {leaf: [(side, *names) for side in SIDES] for leaf, names in known.items()}
    return {
        leaf: _bounds_of(leaf, [found[path] for path in sides], rows, leaf in floats)
        for leaf, sides in paths_of.items()
    }


def _bounds_of(leaf: Leaf, texts: Sequence[Array], rows: Array, was_float: bool) -> Bounds:
    least, greatest, counts = texts
    nulls = counts_of(counts)
    # numRecords and nullCount include deleted rows, so all_null and no_null still hold for the rest.
    all_null, no_null = _are_equal(nulls, rows), _are_equal(nulls, 0)
    if leaf.path is not None:
        key = normalize(leaf.path)
        lower, upper = (bounds_at(side, key, leaf.type) for side in (least, greatest))
        return Bounds(lower, upper, all_null, pa.repeat(pa.scalar(False), len(rows)))
    read = READERS.get(kind_of(leaf.type), _unknown)
    lower, upper = read(least, leaf.type), read(greatest, leaf.type)
    if was_float:
        # 0.1 as a float is slightly greater than 0.1 as a double.
        lower = pc.min_element_wise(lower, read(least, pa.float32()).cast(leaf.type))
        upper = pc.max_element_wise(upper, read(greatest, pa.float32()).cast(leaf.type))
    if kind_of(leaf.type) == "timestamp":
        lower, upper = widen_moments(least, lower, -1), widen_moments(greatest, upper, 1)
    return Bounds(_lowered(lower), _raised(upper), all_null, no_null)


def _json_kind(leaf: Leaf) -> JsonKind:
    is_number = leaf.path is None and kind_of(leaf.type) in NUMERIC
    return "number" if is_number else "string"


def _are_equal(counts: Array, others: Any) -> Array:
    return pc.fill_null(pc.equal(counts, others), False)


def _number(texts: Array, arrow_type: pa.DataType) -> Array:
    # Accepts exponents as JSON does. Decimals are wide enough for every bound of the type.
    values = cast_values(texts, arrow_type, strict=False)
    if kind_of(arrow_type) != "floating":
        return values
    return pc.if_else(pc.is_finite(values), values, pa.scalar(None, arrow_type))


def _unknown(texts: Array, arrow_type: pa.DataType) -> Array:
    unknown: Any = pa.nulls(len(texts))
    return unknown.cast(arrow_type)


def _lowered(least: Array) -> Array:
    return _widened(least, -1) if pa.types.is_decimal(least.type) else least


def _raised(greatest: Array) -> Array:
    if pa.types.is_decimal(greatest.type):
        return _widened(greatest, 1)
    if not pa.types.is_timestamp(greatest.type):
        return greatest
    # Clamp first, so that the sum does not overflow.
    latest = pa.scalar(LAST_LONG - MILLISECOND, greatest.type)
    lowered = pc.if_else(pc.greater(greatest, latest), latest, greatest)
    return pc.add(lowered, pa.scalar(MILLISECOND, pa.duration("us")))


def _widened(bounds: Array, sign: int) -> Array:
    """Return decimal bounds, widened by the rounding error that a writer may have introduced.

    delta-rs computes a bound in doubles (the unscaled value divided by a power of ten), takes the next
    double toward zero for some values, and prints the shortest digits, or a 64-bit integer if the scale
    is 0. Spark's bounds are exact, but the text does not reliably distinguish the two writers: a checkpoint
    that only has `stats_parsed` pads rounded digits to the scale.

    These steps round at most eight times by half a unit in the last place of a double, 2^-53 of the value:
    together by less than 2e-15. A bound of fewer than 15 digits at the column's scale is therefore off by
    less than half a unit of the scale, and rounding it to the scale recovers the exact value. Any other
    bound is widened by 2e-15 of its value, which prunes almost as much.
    """
    precision, scale = bounds.type.precision, bounds.type.scale
    exact = pa.scalar(Decimal(EXACT_UNITS).scaleb(-scale), pa.decimal128(38, scale))
    if not pc.any(pc.greater_equal(pc.abs(bounds), exact)).as_py():
        return bounds
    widened = [
        bound if bound is None else _moved(bound, sign, precision, scale) for bound in bounds.to_pylist()
    ]
    return pa.array(widened, bounds.type)


def _moved(bound: Decimal, sign: int, precision: int, scale: int) -> Decimal | None:
    if bound == SATURATED[sign]:
        return None
    units = int(bound.scaleb(scale, ALL_DIGITS))
    if abs(units) < EXACT_UNITS:
        return bound
    error = -(-abs(units) * 2 // 10**15)
    last = 10**precision - 1
    return Decimal(min(max(units + sign * error, -last), last)).scaleb(-scale, ALL_DIGITS)


READERS: dict[str, TextReader] = {
    **dict.fromkeys(NUMERIC, _number),
    "string": lambda texts, arrow_type: texts.cast(arrow_type),
    **dict.fromkeys(("date", "timestamp", "timestamp_ntz"), partial(cast_values, strict=False)),
}


def is_of_partitions(table: TableConfiguration, expression: Expression | None) -> bool:
    """Return whether an expression reads partition columns only, so that it has one value for each file."""
    read = [] if expression is None else inputs([expression])
    return all(isinstance(each, Column) and each.name in table.partition_columns for each in read)


def partition_test(table: TableConfiguration, files: pa.Table) -> Callable[[Expression], Array]:
    """Return a function from an expression over partition columns to a mask of the files to select.

    An expression that cannot be evaluated selects all files, so that the read reports the error.
    """

    def test(expression: Expression) -> Array:
        try:
            return partition_matches(table, files, expression)
        except UNEVALUABLE:
            return pa.repeat(pa.scalar(True), files.num_rows)

    return test


def partition_matches(table: TableConfiguration, files: pa.Table, expression: Expression) -> Array:
    """Return a mask, without nulls, of the files for which an expression over partition columns is true.

    Raises CastError, MalformedLogError and UnsupportedFeatureError if it cannot be evaluated.
    """
    return filter_mask(expression, _inputs_of_partitions(table, files, expression))


def row_counts(files: pa.Table) -> Array:
    """Return the number of rows of each file, rows of `Snapshot.files`; null if the log does not say it.

    Rows that a deletion vector removes are not counted.
    """
    deleted: Array = pc.struct_field(files["deletion_vector"].combine_chunks(), "cardinality")
    zero: Any = pa.scalar(0, pa.int64())
    remaining: Array = pc.subtract(recorded_rows(files), pc.fill_null(deleted, 0))
    is_count: Array = pc.greater_equal(remaining, zero)
    return pc.if_else(is_count, remaining, pa.scalar(None, pa.int64()))


def recorded_rows(files: pa.Table) -> pa.Int64Array:
    """Return the number of rows of each file, deleted ones included; null if the log does not say it."""
    (numbers,) = texts_at(files["stats"], [(("numRecords",), "number")])
    return counts_of(numbers)


def null_counts(table: TableConfiguration, files: pa.Table, names: tuple[str, ...]) -> Array:
    """Return how many values of a column are null in each file, deleted rows included; null if unknown."""
    chain = _fields_at(names, table.schema)
    if chain is None:
        return pa.nulls(files.num_rows, pa.int64())
    physical = (physical_name(each, table.mapping_mode) for each in chain)
    (numbers,) = texts_at(files["stats"], [(("nullCount", *physical), "number")])
    return counts_of(numbers)


def are_tight(files: pa.Table) -> Array:
    """Return whether the statistics of each file are those of its rows, and not of rows that were deleted.

    PROTOCOL.md, "Per-file Statistics": bounds are tight unless `tightBounds` is false.
    """
    has_no_deletions: Array = pc.is_null(files["deletion_vector"].combine_chunks())
    # The text elsewhere makes the statistics of a file unknown, which is safe.
    texts: Array = files["stats"].combine_chunks()
    is_wide: Array = pc.match_substring_regex(texts, WIDE)
    return pc.and_(has_no_deletions, pc.invert(pc.fill_null(is_wide, True)))


def partition_values(table: TableConfiguration, files: pa.Table, expression: Expression) -> Array:
    """Return the value of an expression over partition columns for each file.

    Raises CastError, MalformedLogError and UnsupportedFeatureError if it cannot be evaluated.
    """
    return evaluate(expression, _inputs_of_partitions(table, files, expression))


def _inputs_of_partitions(
    table: TableConfiguration, files: pa.Table, expression: Expression
) -> pa.RecordBatch:
    """Return the values of the partition columns that an expression reads for each file."""
    # An extra column gives the batch its length if there are no inputs.
    columns = {PLACEHOLDER: files["path"].combine_chunks()}
    for each in inputs([expression]):
        name = each.name  # type: ignore[union-attr]
        (field,) = (field for field in table.schema.fields if field.name == name)
        texts = pc.map_lookup(files["partition_values"], physical_name(field, table.mapping_mode), "first")
        codes = texts.combine_chunks().dictionary_encode()
        values = [
            partition_value_from_string(text, field.type, table.timezone)
            for text in codes.dictionary.to_pylist()
        ]
        columns[name] = pa.array(values, to_arrow_type(field.type)).take(codes.indices)
    return pa.record_batch(columns)
