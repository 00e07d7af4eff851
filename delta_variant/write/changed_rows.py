"""The rows of a file before and after a change, and their change data."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from operator import methodcaller
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import COPIED_BYTES, Array
from .._packing import pack_by_size
from .._progress import advance
from ..data_file.reader import RowRange, filter_rows
from ..data_file.shredding import PerSchema, numeric_of, shred_column
from ..errors import CastError, VariantPathError, error_location
from ..expressions.tree import Expression, input_column, input_name, output_type
from ..expressions.tree import inputs as expression_inputs
from ..protocol.schema.column_mapping import physical_name
from ..protocol.table_configuration import TableConfiguration
from ..protocol.types import DataType, has_variant, parts_of, primitives_of
from ..read.file_reader import POSITION, FileReader, Stored, evaluate_columns
from ..read.plan import plan_rows
from ..read.predicate import PruningPredicate
from ..read.row_tracking import RowTracking, append_row_ids
from ..read.scope import Scope
from ..variant.values import VARIANT_TYPE
from .assignment import replace_numbered
from .rewrite import ChangedBatch, ChangeWriter, RowChange
from .stored_rows import Replacement, StoredRows, copyable_row_groups, read_or_copy


def find_changes(file: FileReader, pruning_predicate: PruningPredicate, change: RowChange) -> Array:
    """Return the numbers of the changed rows in a file, counting deleted ones, in ascending order."""
    if not callable(change.changes):
        return change.changes
    numbers: list[Array] = [pa.array([], pa.int64())]
    rows = plan_rows(file, pruning_predicate).rows
    if rows != []:
        inputs, before = list(dict.fromkeys([*change.tested, POSITION])), 0
        for seen, batch in file.read_matching(inputs, change.conditions, rows, "error"):
            advance(rows=seen - before)
            before = seen
            with error_location(file=file.file.path):
                numbers.append(batch.column(POSITION.name).filter(change.changes(batch)))
    return pa.concat_arrays(numbers)


MOST_REPLACED = 1 / 16
"""The share of rows up to which changed rows are read on their own, which decodes their pages twice."""

MAX_GAP = 8
"""The number of unchanged rows between changed ones that are read with them, for fewer ranges of rows."""


def _ranges(rows: Array) -> list[RowRange]:
    """Return few ranges that have some rows of a file, given their numbers in ascending order."""
    is_last: Array = pc.greater(pc.subtract(rows[1:], rows[:-1]), pa.scalar(MAX_GAP))
    firsts = [rows[0].as_py(), *rows[1:].filter(is_last).to_pylist()]
    lasts = [*rows[:-1].filter(is_last).to_pylist(), rows[-1].as_py()]
    return [(first, last + 1) for first, last in zip(firsts, lasts, strict=True)]


def read_remaining_rows(
    file: FileReader,
    rows: Array,
    change: RowChange,
    shredded: frozenset[str],
    writer: ChangeWriter | None,
    *,
    samples: PerSchema[pa.RecordBatch],
    as_pages: bool,
) -> Iterator[pa.RecordBatch | StoredRows]:
    """Yield the rows of a file that remain after a change of some, as they are written to another file.

    `rows` are the numbers of the changed rows in ascending order. Row groups without any are copied where
    possible, and with `as_pages` the columns of others that do not change. The Variant columns in `shredded`
    are returned as the file stores them. `samples` are as in `read_or_copy`.
    """
    columns = Scope.of(file.table.version.configuration).whole_columns()
    copied, assigned = shredded & change.columns.copied, shredded - change.columns.copied

    def read(ranges: Sequence[RowRange] | None) -> Iterator[pa.RecordBatch]:
        ranges = ranges or [(0, file.native.num_rows)]
        changed = _rows_in(rows, ranges)
        if len(changed) <= MOST_REPLACED * sum(end - start for start, end in ranges):
            yield from _read_around(file, columns, changed, change, shredded, ranges, writer)
            return
        shred = _shredder(file, assigned)
        for _, after, moving in _read_after(file, change, copied, ranges, writer):
            yield shred(after.with_row_ids(moving))

    def read_columns(names: frozenset[str], group: RowRange) -> Iterator[pa.RecordBatch]:
        values = {name: each for name, each in columns.items() if name in names}
        return _read_around(file, values, _rows_in(rows, [group]), change, frozenset(), [group], writer)

    def read_before(group: RowRange) -> Iterator[pa.RecordBatch]:
        return _read_around(file, columns, rows[:0], change, shredded, [group], None)

    replaced = _replaced_columns(file, rows, change, as_pages=as_pages)
    replacements = {
        number: Replacement(names, partial(read_columns, names), read_before)
        for number, names in replaced.items()
        # Without columns, rows are read for their change data.
        if names or (writer is not None and len(_rows_in(rows, [file.row_groups[number]])))
    }
    return read_or_copy(file, read, replaced.keys(), samples, replacements=replacements, as_pages=as_pages)


def _replaced_columns(
    file: FileReader, rows: Array, change: RowChange, *, as_pages: bool
) -> dict[int, frozenset[str]]:
    """Return the row groups of a file that can be copied after a change, each with its columns that cannot.

    These are the columns that change, and those of which another file cannot have the pages.
    """
    table = file.table.version.configuration
    copyable = copyable_row_groups(file, RowTracking.of(table))
    changed = {each for each in copyable if len(_rows_in(rows, [file.row_groups[each]]))}
    if not as_pages or not copyable:
        return dict.fromkeys((each for each in copyable if each not in changed), frozenset())
    plain = [field for field in table.schema.fields if not has_variant(field.type)]
    names = {physical_name(field, table.mapping_mode): field.name for field in plain}
    converted = frozenset(names[each] for each in file.native.converted_columns if each in names)
    if changed and not change.columns.may_remove:
        differing = change.columns.assigned - _unchanged_columns(file, rows, change)
        if _are_replaceable(differing, table):
            return {each: converted | (differing if each in changed else frozenset()) for each in copyable}
    return {each: converted for each in copyable if each not in changed}


FIRST_COMPARED = 64
"""How many changed rows are compared first, which is enough for most columns that change."""


def _unchanged_columns(file: FileReader, rows: Array, change: RowChange) -> frozenset[str]:
    """Return the compared columns whose values are the same, to the bit, after the change of rows.

    Nested columns with floating-point numbers are not compared.
    """
    table = file.table.version.configuration
    columns = Scope.of(table).whole_columns()
    same = {
        field.name
        for field in table.schema.fields
        if field.name in change.columns.compared and not (parts_of(field.type) and _has_floats(field.type))
    }
    for some in (rows[:FIRST_COMPARED], rows[FIRST_COMPARED:]):
        if not same or not len(some):
            break
        unread = change.columns.passed | (change.columns.replaced - same)
        for read, after, _ in _read_after(file, change, frozenset(), _ranges(some), None, unread):
            before = evaluate_columns({name: columns[name] for name in same}, read).filter(after.updated)
            new = after.rows.filter(after.updated.filter(after.remaining))
            same -= {name for name in same if not _is_same(before.column(name), new.column(name))}
            if not same:
                return frozenset()
    return frozenset(same)


def _has_floats(data_type: DataType) -> bool:
    return not primitives_of(data_type).isdisjoint(("float", "double"))


FLOAT_BITS = {pa.float32(): pa.int32(), pa.float64(): pa.int64()}
"""Types that compare floating-point numbers by their bits: zeros have signs."""


def _is_same(one: Array, other: Array) -> bool:
    if one.type == other.type and (bits := FLOAT_BITS.get(one.type)) is not None:
        one, other = one.view(bits), other.view(bits)
    return bool(one.equals(other))


def _are_replaceable(columns: Collection[str], table: TableConfiguration) -> bool:
    """Return whether row groups can be copied with new values of some columns.

    New Variants may be residual, and new partition values are those of another file.
    """
    return not any(
        has_variant(field.type) or field.name in table.partition_columns
        for field in table.schema.fields
        if field.name in columns
    )


def _shredder(file: FileReader, names: Collection[str]) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """Return a function that shreds some Variants of rows as in a file that shreds them."""
    schemas = {name: schema for name in names if (schema := file.shredding((name,))) is not None}
    numeric = numeric_of(file.native) if schemas else "value"

    def shred(rows: pa.RecordBatch) -> pa.RecordBatch:
        for name, schema in schemas.items():
            index = rows.schema.get_field_index(name)
            column = shred_column(rows.column(index), schema, numeric)
            rows = rows.set_column(index, rows.schema.field(index).with_type(column.type), column)
        return rows

    return shred


def _rows_in(rows: Array, ranges: Sequence[RowRange]) -> Array:
    """Return those of the numbers of rows, in ascending order, that are in some ranges."""
    position = methodcaller("as_py")
    bounds = [[bisect_left(rows, each, key=position) for each in group] for group in ranges]
    return pa.concat_arrays([rows[:0], *(rows[start:end] for start, end in bounds)])


def _read_around(
    file: FileReader,
    columns: Mapping[str, Expression],
    rows: Array,
    change: RowChange,
    shredded: frozenset[str],
    ranges: Sequence[RowRange],
    writer: ChangeWriter | None,
) -> Iterator[pa.RecordBatch]:
    """Yield some columns of the rows of a file that remain after a change, like `read_remaining_rows`.

    The changed rows are read on their own, so that the others do not pass through the change. Both are read
    in the order of the file, so that few changed rows are in memory, however large they become.
    """
    table = file.table.version.configuration
    tracking, assigned = RowTracking.of(table), shredded - change.columns.copied
    variants = Scope.of(table).variant_names - assigned
    # Dictionaries of text differ from those of new rows.
    stored: dict[str, Stored] = {name: None if name in assigned else "stored" for name in shredded}
    parts = _changed_parts(file, rows, change, _shredder(file, assigned), writer)
    if change.removes:
        if writer is not None:
            # The rows are only written to the change data.
            deque(parts, maxlen=0)
        file, parts = file.without(rows), iter(())
    part, kept = next(parts, None), change.columns.copied | change.columns.passed
    inputs = expression_inputs([*columns.values(), POSITION])
    for read, moving in file.read_with_row_ids(inputs, tracking, stored, ranges):
        batch, numbers = append_row_ids(evaluate_columns(columns, read), moving), read.column(POSITION.name)
        while part is not None and batch.num_rows:
            # The rows up to the last one of the part.
            length = len(_rows_in(numbers, [(0, part.changed[-1].as_py() + 1)]))
            if length:
                yield part.replace(batch.slice(0, length), numbers.slice(0, length), kept, variants)
            if length < batch.num_rows:
                part = next(parts, None)
            batch, numbers = batch.slice(length), numbers.slice(length)
        yield batch


@dataclass(frozen=True)
class _ChangedPart:
    """Some changed rows of a file: their numbers, which of them are updated, and the values of these."""

    changed: Array
    is_updated: Array
    rows: pa.RecordBatch

    def replace(
        self, batch: pa.RecordBatch, numbers: Array, kept: Collection[str], variants: Collection[str]
    ) -> pa.RecordBatch:
        """Return rows with these numbers: the updated ones with new values, and none that is deleted.

        The columns in `kept` do not change.
        """
        changed = _rows_in(self.changed, [(numbers[0].as_py(), numbers[-1].as_py() + 1)])
        if not len(changed):
            return batch
        updated = self.changed.filter(self.is_updated)
        before = dict(zip(batch.schema.names, batch.columns, strict=True))
        after = {name: before[name] if name in kept else self.rows.column(name) for name in before}
        merged = replace_numbered(before, numbers, after, updated, variants)
        rows = pa.record_batch(list(merged), names=list(before))
        deleted = changed.filter(pc.invert(pc.is_in(changed, value_set=updated)))
        return filter_rows(rows, pc.invert(pc.is_in(numbers, value_set=deleted))) if len(deleted) else rows


def _changed_parts(
    file: FileReader,
    rows: Array,
    change: RowChange,
    shred: Callable[[pa.RecordBatch], pa.RecordBatch],
    writer: ChangeWriter | None,
) -> Iterator[_ChangedPart]:
    """Yield the changed rows of a file in parts of about `COPIED_BYTES`, with null in columns that pass."""
    passed = change.columns.passed if writer is None else frozenset()
    read = read_updated_rows(file, rows, change, writer, passed) if len(rows) else iter(())
    for run in pack_by_size(read, lambda part: part[2].nbytes, COPIED_BYTES):
        changed, is_updated, after = zip(*run, strict=True)
        (whole,) = pa.Table.from_batches(after).combine_chunks().to_batches() or after[:1]
        yield _ChangedPart(pa.concat_arrays(changed), pa.concat_arrays(is_updated), shred(whole))


def read_updated_rows(
    file: FileReader,
    rows: Array,
    change: RowChange,
    writer: ChangeWriter | None,
    unread: frozenset[str] = frozenset(),
) -> Iterator[tuple[Array, Array, pa.RecordBatch]]:
    """Yield numbers of changed rows, which of them are updated, and the new values of these with row ids.

    The columns in `unread` are null.
    """
    unread |= change.columns.replaced if writer is None else frozenset()
    count = 0
    # Files can be shredded differently, so that Variants are copied as they are without shredding.
    for _, after, moving in _read_after(file, change, frozenset(), _ranges(rows), writer, unread):
        is_updated = after.updated.filter(after.changed)
        if len(is_updated):
            new = after.with_row_ids(moving).filter(after.updated.filter(after.remaining))
            yield rows[count : count + len(is_updated)], is_updated, new
        count += len(is_updated)
    # Otherwise changed rows would be removed whose new values are nowhere.
    assert count == len(rows), f"{file.file.path}: {count} of {len(rows)} rows changed"


def _read_after(
    file: FileReader,
    change: RowChange,
    copied: frozenset[str],
    ranges: Sequence[RowRange] | None,
    writer: ChangeWriter | None,
    unread: frozenset[str] = frozenset(),
) -> Iterator[tuple[pa.RecordBatch, ChangedBatch, pa.RecordBatch | None]]:
    """Yield rows of a file before and after a change, with the row ids that they had; write their changes.

    The columns in `unread` are null before the change.
    """
    table = file.table.version.configuration
    tracking = RowTracking.of(table)
    wholes = expression_inputs(Scope.of(table).whole_columns().values())
    absent = [each for each in wholes if input_column(each) in unread]
    inputs = [each for each in dict.fromkeys([*change.inputs, POSITION]) if each not in absent]
    stored: dict[str, Stored] = dict.fromkeys(copied, "stored")
    for read, moving in file.read_with_row_ids(inputs, tracking, stored, ranges):
        batch, first = read, 0
        for each in absent:
            absent_type: Any = output_type(each) or VARIANT_TYPE
            batch = batch.append_column(input_name(each), pa.nulls(read.num_rows, absent_type))
        with _errors_in(file.file.path, change, batch):
            for after in change.apply(batch):
                length = len(after.remaining)
                before = batch.slice(first, length)
                if writer is not None:
                    _add_changes(writer, table, before, after)
                yield before, after, None if moving is None else moving.slice(first, length)
                first += length


@contextmanager
def _errors_in(path: str, change: RowChange, batch: pa.RecordBatch) -> Iterator[None]:
    """Add the file and the row in it to errors, whose row counts some of the changed rows of a batch."""
    try:
        yield
    except (CastError, VariantPathError) as error:
        error.row = None
        error.at(file=path, row=_failing_row(change, batch))
        raise


def _failing_row(change: RowChange, batch: pa.RecordBatch) -> int:
    """Return the number in its file of the first row of a batch whose change is an error."""
    start, end = 0, batch.num_rows
    while end - start > 1:
        middle = (start + end) // 2
        try:
            deque(change.apply(batch.slice(start, middle - start)), maxlen=0)
            start = middle
        except (CastError, VariantPathError):
            end = middle
    row: int = batch.column(POSITION.name)[start].as_py()
    return row


def _add_changes(
    writer: ChangeWriter, table: TableConfiguration, batch: pa.RecordBatch, after: ChangedBatch
) -> None:
    columns = Scope.of(table).whole_columns()
    deleted: Array = pc.invert(after.remaining)
    writer.add(evaluate_columns(columns, batch.filter(deleted)), "delete")
    writer.add(evaluate_columns(columns, batch.filter(after.updated)), "update_preimage")
    writer.add(after.rows.filter(after.updated.filter(after.remaining)), "update_postimage")
