"""Rules of the rows of a data file: NOT NULL, constraints that writers check, and values that they assign."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...data_file.options import WriteOptions
from ...errors import (
    CastError,
    ConstraintViolationError,
    DeltaVariantError,
    ExpressionError,
    SchemaError,
    UnsupportedFeatureError,
)
from ...expressions.tree import Column, input_name
from ...log.snapshot import TableVersion
from ...protocol.identity_columns import find_identities
from ...protocol.schema.arrow import to_arrow
from ...protocol.schema.char_types import TYPE_TEXT
from ...protocol.types import ArrayType, DataType, MapType, StructField, StructType, fields_of
from ...read.file_reader import POSITION, FileEntry, TableReader
from ...write.row_rules import RowRules
from .findings import Rule, Violation
from .subjects import FileSubject, TableSubject


def _rules(version: TableVersion) -> RowRules:
    return RowRules.of(version.configuration)


def _unsupported(subject: TableSubject) -> Iterator[Violation]:
    if subject.survey.table is not None:
        try:
            _rules(subject.survey.table)
        except (UnsupportedFeatureError, ExpressionError) as error:
            yield Violation(error.message, column=error.column)


def _nulls(subject: FileSubject) -> Iterator[Violation]:
    """Report the nulls of each NOT NULL column that the file has."""
    snapshot = subject.table.survey.table
    if snapshot is None or not subject.rows or subject.opened is None:
        return
    missing = {name for name in subject.table.physical_names if subject.lacks((name,))}
    pairs = zip(snapshot.schema.fields, subject.table.physical.fields, strict=True)
    for field, stored in pairs:
        if stored.name in missing and field.name not in snapshot.partition_columns:
            continue
        if not field.nullable or _forbids_nulls(field.type):
            yield from _nulls_of(subject, snapshot, field)


def _forbids_nulls(data_type: DataType) -> bool:
    """Return whether a part of a type, at any depth, must not be null."""
    if isinstance(data_type, StructType):
        return any(not part.nullable or _forbids_nulls(part.type) for part in data_type.fields)
    if isinstance(data_type, ArrayType):
        return not data_type.contains_null or _forbids_nulls(data_type.element_type)
    if isinstance(data_type, MapType):
        parts = (data_type.key_type, data_type.value_type)
        return not data_type.value_contains_null or any(map(_forbids_nulls, parts))
    return False


def _nulls_of(subject: FileSubject, version: TableVersion, field: StructField) -> Iterator[Violation]:
    count, first = 0, None
    try:
        for batch in _read(subject, version, [field]):
            column: Any = batch.column(0)
            if not field.nullable and column.null_count:
                count += column.null_count
                row = pc.index(column.is_null(), True).as_py()
                first = batch.column(1)[row].as_py() if first is None else first
    except SchemaError as error:
        # The reader names the nested field that is NOT NULL.
        yield Violation(error.message, column=error.column)
    except DeltaVariantError:
        return
    if count:
        more = f" (and {count - 1:,} more rows)" if count > 1 else ""
        yield Violation(
            f"row {first:,} has NULL in the column {field.name}, which is NOT NULL{more}",
            column=field.name,
            row=first,
        )


def _broken_constraints(subject: FileSubject) -> Iterator[Violation]:
    """Report the first row that violates each constraint, generated column or width of a text."""
    snapshot = subject.table.survey.table
    if snapshot is None or not subject.rows or subject.opened is None:
        return
    try:
        rules = _rules(snapshot)
    except (UnsupportedFeatureError, ExpressionError):
        return
    checks = [replace(rules, constraints=(each,)) for each in rules.constraints]
    if any(TYPE_TEXT in field.metadata for _, field in fields_of(snapshot.schema)):
        checks.append(replace(rules, constraints=()))
    if not checks:
        return
    try:
        for batch in _read(subject, snapshot, snapshot.schema.fields):
            broken = []
            for check in checks:
                found = _violation(check, batch)
                if found is not None:
                    yield found
                    broken.append(check)
            checks = [each for each in checks if each not in broken]
            if not checks:
                return
    except DeltaVariantError:
        return


def _invalid_identities(subject: TableSubject) -> Iterator[Violation]:
    if subject.survey.table is not None:
        for name, identity in find_identities(subject.survey.table.schema):
            if identity is None:
                what = "expected a column of type bigint with a start, a step and a highWaterMark of integers"
                yield Violation(f"the metadata of the identity column {name} is invalid: {what}", column=name)


def _assigned_again(subject: FileSubject) -> Iterator[Violation]:
    """Report values that a later write assigns again. GENERATED BY DEFAULT allows values of users."""
    snapshot = subject.table.survey.table
    if snapshot is None:
        return
    columns = zip(snapshot.schema.fields, subject.table.physical.fields, strict=True)
    names = {field.name: stored.name for field, stored in columns}
    for _, identity in find_identities(snapshot.schema):
        if identity is None or identity.allows_explicit:
            continue
        is_rising = identity.step > 0
        bounds = subject.stats.max_values if is_rising else subject.stats.min_values
        value = bounds.get(names[identity.name])
        if type(value) is int and (value >= identity.first if is_rising else value <= identity.first):
            yield Violation(
                f"the identity column {identity.name} has the value {value:,}, but its next value is "
                f"{identity.first:,} by its highWaterMark",
                column=identity.name,
            )


def _violation(rules: RowRules, batch: pa.RecordBatch) -> Violation | None:
    positions = batch.column(batch.num_columns - 1)
    rows = batch.select(batch.schema.names[:-1])

    def locate(row: int) -> dict[str, Any]:
        return {"row": positions[row].as_py()}

    try:
        rules.check(rows, WriteOptions(), locate=locate)
    except (ConstraintViolationError, CastError) as error:
        at = "" if error.row is None else f"row {error.row:,}: "
        return Violation(f"{at}{error.message}", column=error.column, row=error.row)
    return None


def _read(
    subject: FileSubject, version: TableVersion, fields: Sequence[StructField]
) -> Iterator[pa.RecordBatch]:
    """Yield columns of the rows that are not deleted, and last the position of each row in the file."""
    types = to_arrow(StructType(tuple(fields)))
    columns = [Column(field.name, field.type) for field in types]
    names = ("path", "deletion_vector", "base_row_id", "default_row_commit_version", "size", "tags")
    values = dict(subject.add["partition_values"] or ())
    file = FileEntry(partition_values=values, **{name: subject.add[name] for name in names})
    reader = TableReader.of(version).open(file)
    for batch in reader.read([*columns, POSITION], None, "typed"):
        yield batch.rename_columns([*types.names, input_name(POSITION)])


VALUES_AGAIN = "commit a metaData action with valid metadata; writers fail, or assign values that rows have"

CONSTRAINT_RULES: tuple[Rule[TableSubject], ...] = (
    Rule("N4", "error", _invalid_identities, VALUES_AGAIN),
    Rule(
        "N3", "info", _unsupported, "this version cannot check it, nor write to the table; use another engine"
    ),
)

ROW_CONSTRAINT_RULES: tuple[Rule[FileSubject], ...] = (
    Rule("N4", "error", _assigned_again, VALUES_AGAIN),
    Rule(
        "N1", "error", _nulls, "readers rely on the constraint: correct the row with an UPDATE of an engine"
    ),
    Rule(
        "N2",
        "error",
        _broken_constraints,
        "a writer ignored the constraint, and others fail when they rewrite the row: correct the row",
    ),
)
