"""Rules of a data file: that it exists and can be read, and how it stores Variants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from string import ascii_lowercase
from typing import Any

import pyarrow as pa

from ..._arrow import leaf_types
from ...data_file.reader import open_file
from ...errors import DataFileError, DeltaVariantError, MalformedLogError, UnsupportedFeatureError
from ...expressions.types import type_name
from ...log.deletion_vectors import subtract_rows
from ...protocol import properties
from ...protocol.schema.arrow import FIELD_ID
from ...protocol.schema.column_mapping import COLUMN_ID
from ...protocol.schema.conforming import is_unadjusted
from ...protocol.schema.partition_values import partition_value_from_string
from ...protocol.types import StructType, describe
from .findings import Rule, Rules, Severity, Violation
from .statistics_copies import footer_differences
from .subjects import ColumnSubject, FileSubject

DAY = 24 * 3600 * 1000
YEAR = 365 * DAY
OTHER_UNITS = {
    "seconds": range(10 * YEAR // 1000, 200 * YEAR // 1000),
    "microseconds": range(10 * YEAR * 1000, 200 * YEAR * 1000),
    "nanoseconds": range(10 * YEAR * 1000**2, 200 * YEAR * 1000**2),
}
"""The times of the years 1980 to 2170 in other units. In milliseconds, these are not times of data files."""

FILE_RULES = Rules[FileSubject]()
file_rule = FILE_RULES.add
COLUMN_RULES = Rules[ColumnSubject]()
column_rule = COLUMN_RULES.add
ROW_RULES = Rules[ColumnSubject]()
row_rule = ROW_RULES.add


def _error_rule(name: str, what: str) -> Callable[[FileSubject], Iterator[Violation]]:
    """Return the check of a part of the file that is an error if it cannot be read."""

    def check(subject: FileSubject) -> Iterator[Violation]:
        if isinstance(error := getattr(subject, name), DeltaVariantError):
            yield Violation(f"{what} ({error.message})")

    return check


file_rule("F1", "error", "restore the file; without it the table has lost rows")(
    _error_rule("size", "the data file cannot be found")
)


@file_rule("F2", "error", "restore the file that was committed")
def _size(subject: FileSubject) -> Iterator[Violation]:
    expected = subject.add["size"]
    if isinstance(subject.size, int) and subject.size != expected:
        yield Violation(f"the data file has {subject.size:,} bytes, but its add action has {expected:,}")


RESTORE = "restore the file from a backup, and keep this one: its other row groups and pages may be readable"


@file_rule("F3", "error", RESTORE)
def _unreadable(subject: FileSubject) -> Iterator[Violation]:
    if isinstance(subject.size, int) and isinstance(subject.file, DeltaVariantError):
        yield Violation(f"the data file cannot be opened ({subject.file.message})")


@file_rule("F4", "error", "commit the file with its partition values")
def _partition_values(subject: FileSubject) -> Iterator[Violation]:
    columns = subject.table.columns.fields
    fields = {field.name: field for field in columns}
    physical = {
        field.name: each.name for field, each in zip(columns, subject.table.physical.fields, strict=True)
    }
    expected = {physical[name]: fields[name] for name in subject.table.partition_columns if name in fields}
    values = dict(subject.add["partition_values"] or ())
    for name in sorted(set(expected) - set(values)):
        column = expected[name].name
        yield Violation(f"partitionValues has no value for the partition column {column}", column=column)
    for name in sorted(set(values) - set(expected)):
        yield Violation(f"partitionValues has the key {name!r}, which is not a partition column")
    for name in sorted(set(values) & set(expected)):
        column = expected[name].name
        try:
            with suppress(UnsupportedFeatureError):
                partition_value_from_string(values[name], expected[name].type)
        except MalformedLogError as error:
            message = f"invalid value of the partition column {column} ({error.message})"
            yield Violation(message, column=column)


file_rule("F6", "error", "restore the deletion vector; without it deleted rows reappear")(
    _error_rule("deleted", "the deletion vector cannot be read")
)


@file_rule(
    "F7", "error", "readers reject the file or miscount its rows: restore the deletion vector of this file"
)
def _cardinality(subject: FileSubject) -> Iterator[Violation]:
    vector = subject.add["deletion_vector"]
    if subject.opened is None or vector is None:
        return
    rows, stated = subject.opened.num_rows, vector["cardinality"]
    if not isinstance(subject.deleted, bytes):
        return
    try:
        ranges = subtract_rows(subject.deleted, None)
    except DataFileError as error:
        yield Violation(f"the deletion vector cannot be read ({error.message})")
        return
    last = max((end for _, end in ranges), default=0) - 1
    # A malformed bitmap can have a row twice.
    deleted = sum(end - start for start, end in set(ranges))
    if deleted != stated:
        yield Violation(f"the deletion vector has {deleted:,} rows, but its cardinality is {stated:,}")
    if last >= rows:
        yield Violation(f"the deletion vector has the row {last:,}, but the file has {rows:,} rows")


file_rule("F8", "error", RESTORE)(_error_rule("computed", "the data cannot be read"))


@file_rule("F9", "error", "row ids and versions of its rows are unknown: commit the file again with both")
def _row_ids(subject: FileSubject) -> Iterator[Violation]:
    # Readers rely on the ids of all files only where row tracking is enabled, not where it is supported.
    enabled = properties.get(subject.table.configuration, properties.ENABLE_ROW_TRACKING)
    if enabled and subject.add["base_row_id"] is None:
        yield Violation(
            f"the file has no baseRowId, but the table sets {properties.ENABLE_ROW_TRACKING.name}=true"
        )
    first, version, latest = (
        subject.add["base_row_id"],
        subject.add["default_row_commit_version"],
        subject.table.survey.version,
    )
    if first is not None and first < 0:
        yield Violation(f"the baseRowId of the file is {first:,}, expected a number from 0")
    if first is not None and version is None:
        yield Violation("the file has a baseRowId, but no defaultRowCommitVersion")
    if version is not None and not 0 <= version <= latest:
        yield Violation(f"defaultRowCommitVersion is {version:,}, expected a version from 0 to {latest:,}")


@file_rule(
    "F11", "warning", "readers that filter or clean up by age take it for another time: commit the file again"
)
def _modification_time(subject: FileSubject) -> Iterator[Violation]:
    stated = int(subject.add["modification_time"])
    if stated < 0:
        yield Violation(f"modificationTime is {stated}, which is before 1970")
    unit = next((unit for unit, times in OTHER_UNITS.items() if stated in times), None)
    if unit is not None:
        yield Violation(f"modificationTime is {stated}, which is a time in {unit}, expected milliseconds")


@file_rule(
    "T10",
    "error",
    "readers reject the file or convert its values with loss: rewrite the file from its source",
)
def _other_ordinary_type(subject: FileSubject) -> Iterator[Violation]:
    for path, stored, data_type in subject.mismatches:
        name = ".".join(path)
        sentence = f"the column {name} is {type_name(stored)} in the file, expected {describe(data_type)}"
        yield Violation(sentence, column=name)
    for name, reason in subject.overflows.items():
        yield Violation(f"the column {name} has values that its type lacks ({reason})", column=name)


@file_rule("T10", "info", "nothing to do: readers take it for UTC, as early versions of deltalake wrote it")
def _unadjusted(subject: FileSubject) -> Iterator[Violation]:
    for path, stored, data_type in subject.type_differences:
        if is_unadjusted(stored, data_type):
            name = ".".join(path)
            sentence = f"the timestamp {name} is stored without isAdjustedToUTC"
            yield Violation(sentence, column=name)


@file_rule(
    "N1",
    "error",
    "readers return NULL or reject the file: restore the file, or write its rows again from their source",
)
def _missing_not_null(subject: FileSubject) -> Iterator[Violation]:
    if subject.opened is None or not subject.opened.num_rows:
        return
    partitions = set(subject.table.partition_columns)
    fields = zip(subject.table.columns.fields, subject.table.physical.fields, strict=True)
    for field, stored in fields:
        if not field.nullable and field.name not in partitions and subject.column((stored.name,)) is None:
            yield Violation(
                f"the column {field.name} is NOT NULL, but the file lacks it: its values are lost",
                column=field.name,
            )


@file_rule(
    "F12",
    "error",
    "readers return NULL, and the statistics are the evidence: restore the file, or write its rows again",
)
def _lost_column(subject: FileSubject) -> Iterator[Violation]:
    for path in subject.lost_columns:
        name = ".".join(path)
        sentence = (
            f"the file lacks the column {name}, of which the statistics have values: its values are lost"
        )
        yield Violation(sentence, column=name)


@file_rule("W15", "error", "readers that skip row groups or pages by it lose rows: rewrite the file")
def _footer_statistics(subject: FileSubject) -> Iterator[Violation]:
    if not subject.rows or subject.opened is None or isinstance(subject.computed, DeltaVariantError):
        return
    try:
        for name, sentence in footer_differences(subject.opened):
            yield Violation(sentence, column=name)
    except DeltaVariantError as error:
        message = f"the statistics of the footer cannot be compared ({error.message})"
        yield Violation(message, column=error.column)


WITHOUT_ID = "has no field id in the file"


@file_rule(
    "T11", "error", "readers return NULL or other columns: rewrite the file with the ids of the schema"
)
def _field_ids(subject: FileSubject) -> Iterator[Violation]:
    table = subject.table
    if table.mode == "none" or subject.opened is None:
        return
    if not any(FIELD_ID in (field.metadata or {}) for field in subject.opened.schema):
        # In the mode `name`, files can be older than the mapping.
        if table.mode == "id":
            yield Violation("the table maps columns by id, but the file has no field ids")
        return
    # The names in the file, which readers replace by those of the table.
    stored = open_file(table.survey.store, subject.path).schema
    for path, problem in _misplaced(table.columns, table.physical, stored, ()):
        if table.mode == "id" or problem != WITHOUT_ID:
            name = ".".join(path)
            yield Violation(f"the column {name} {problem}", column=name)


def _misplaced(
    logical: StructType, physical: StructType, stored: Iterable[Any], path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the columns whose field id in a file is another one than that of their name, or missing."""
    fields = list(stored)
    by_id = {each.metadata[FIELD_ID]: each for each in fields if FIELD_ID in (each.metadata or {})}
    without_id = {each.name for each in fields if FIELD_ID not in (each.metadata or {})}
    names = {each.name for each in physical.fields}
    for field, column in zip(logical.fields, physical.fields, strict=True):
        where = (*path, column.name)
        found = by_id.get(str(field.metadata.get(COLUMN_ID)).encode())
        if found is None:
            if column.name in without_id:
                yield where, WITHOUT_ID
        elif found.name != column.name and found.name in names:
            problem = (
                f"is the column {found.name} of the file by its field id, but another column has that name"
            )
            yield where, problem
        elif isinstance(field.type, StructType) and isinstance(column.type, StructType):
            parts = found.type if pa.types.is_struct(found.type) else ()
            yield from _misplaced(field.type, column.type, parts, where)


@column_rule("T10", "error", "rewrite the file; no type change converts to Variant")
def _other_type(subject: ColumnSubject) -> Iterator[Violation]:
    if subject.file.opened is None or subject.group is not None:
        return
    found = subject.file.opened.schema
    if len(subject.column.path) == 1 and subject.column.path[0] in found.names:
        arrow_type = found.field(subject.column.path[0]).type
        yield Violation(f"the column {subject.name} is {type_name(arrow_type)} in the file, expected variant")


@column_rule("H8", "error", "add the feature, or rewrite the file without shredding")
def _shredded_without_feature(subject: ColumnSubject) -> Iterator[Violation]:
    if subject.is_shredded and subject.file.table.protocol is not None and not subject.file.table.shreds:
        yield Violation(f"the column {subject.name} is shredded, but the protocol lacks variantShredding")


def _schema_rule(code: str) -> Callable[[ColumnSubject], Iterator[Violation]]:
    def check(subject: ColumnSubject) -> Iterator[Violation]:
        for found in subject.schema_violations:
            if found.rule == code and subject.group is not None:
                yield Violation(
                    f"column {subject.name} at {found.path}: {found.message}", path_key=found.path
                )

    return check


REWRITE = "rewrite the file"

NATIVE_SCHEMA_RULES: tuple[tuple[str, Severity, str], ...] = (
    ("O1", "error", "run `delta-variant migrate`; Delta readers do not support this layout"),
    ("P-S1", "error", REWRITE),
    ("P-S1m", "warning", "nothing to do while it is never null"),
    ("P-S1t", "warning", "rewrite the file; readers cannot recognize a missing value"),
    ("P-S2", "info", "nothing to do for readers that use the schema of the table"),
    ("P-S2v", "error", REWRITE),
    ("P-S3o", "info", "nothing to do while it is never null"),
    ("P-S4", "error", "rewrite the file; every value reads as a Variant null"),
    ("P-S4v", "info", "nothing to do if every value has the shredded type"),
    ("P-S6", "error", REWRITE),
    ("P-S7", "error", "rewrite the file; Spark rejects a null group"),
    ("P-S9", "error", "rewrite the file; readers reject the column"),
    ("P-S10", "error", REWRITE),
    (
        "P-X1",
        "warning",
        "Spark rejects the Variant column: keep a copy of the file, and rewrite it without the column",
    ),
    (
        "P-X2",
        "error",
        "readers reject the Variant column: keep a copy of the file, and rewrite it without the column",
    ),
    ("W10", "error", REWRITE),
)
"""The codes that the native check of a column's Parquet schema reports, each with its severity and remedy.

A code is the id of a rule, and a lower-case letter where the rule has another check with its own severity.
"""

COLUMN_RULES.extend(
    Rule(code.rstrip(ascii_lowercase), severity, _schema_rule(code), remedy)
    for code, severity, remedy in NATIVE_SCHEMA_RULES
)


@column_rule("W14", "warning", "rewrite the file; without the count no reader can skip its row groups")
def _null_counts(subject: ColumnSubject) -> Iterator[Violation]:
    if not subject.is_shredded:
        return
    path = subject.column.path
    for leaf in subject.file.footer.get("leaves", ()):
        steps = tuple(leaf["path"])
        if steps[: len(path)] == path and steps[-1] == "value" and leaf["null_count"] is None:
            yield Violation(f"the footer has no null count for {'.'.join(steps)}")
            return


@column_rule(
    "P-T",
    "warning",
    "if Spark reads the table, rewrite the file with a schema of "
    "infer_shredding_schema(..., spark_compatible=True)",
)
def _spark_types(subject: ColumnSubject) -> Iterator[Violation]:
    for arrow_type in () if subject.group is None else leaf_types(subject.group):
        if _is_unsupported_by_spark(arrow_type):
            yield Violation(
                f"the column {subject.name} has a typed_value of {type_name(arrow_type)}, "
                "which Spark does not support"
            )
            return


def _is_unsupported_by_spark(arrow_type: Any) -> bool:
    types = pa.types
    is_uuid = types.is_fixed_size_binary(arrow_type) and arrow_type.byte_width == 16
    nanos = types.is_timestamp(arrow_type) and arrow_type.unit == "ns"
    return bool(types.is_time(arrow_type) or nanos or is_uuid)


@row_rule("F8", "error", RESTORE)
def _unreadable_rows(subject: ColumnSubject) -> Iterator[Violation]:
    if isinstance(subject.row_report, DeltaVariantError):
        yield Violation(
            f"the rows of the column {subject.name} cannot be read ({subject.row_report.message})"
        )


def _row_rule(code: str) -> Callable[[ColumnSubject], Iterator[Violation]]:
    def check(subject: ColumnSubject) -> Iterator[Violation]:
        for found in subject.rows.violations if subject.rows else ():
            if found.rule == code:
                more = f" (and {found.count - 1:,} more rows)" if found.count > 1 else ""
                yield Violation(
                    f"row {found.row:,}, column {subject.name} at {found.path}: {found.message}{more}",
                    path_key=found.path,
                    row=found.row,
                )

    return check


WRITE_NULL = "rewrite the file with a Variant null; Spark rejects the row"
EITHER_VALUE = (
    "readers reject the row or return either value: decide which is right, and rewrite the file with that one"
)
UNREADABLE = "no reader can read the row: write it again from its source, and keep a copy of the file"

NATIVE_ROW_RULES: tuple[tuple[str, Severity, str], ...] = (
    ("R2", "warning", WRITE_NULL),
    ("R3", "error", WRITE_NULL),
    ("R5", "error", EITHER_VALUE),
    ("R6", "error", EITHER_VALUE),
    ("R7", "error", EITHER_VALUE),
    ("R8", "error", "rewrite the file; readers of a path can miss the object"),
    ("R9", "error", "rewrite the file; readers of a path can miss the array"),
    ("R10", "error", "rewrite the file; some readers reject the row"),
    ("R11", "error", UNREADABLE),
    ("R12", "error", UNREADABLE),
    ("R13", "info", "allowed, but the path cannot have bounds; rewrite the file to allow data skipping"),
    ("R14", "error", "rewrite the file; Spark rejects the row"),
    ("P-S3", "error", WRITE_NULL),
    ("W7", "error", "rewrite the file; some readers reject the row"),
    ("E-M", "error", UNREADABLE),
    ("E-M9", "warning", "readers ignore the bytes; rewrite the file to remove them"),
    ("E-M11", "error", "rewrite the file with a value that is nested less deeply; readers reject this one"),
    ("E-V", "error", UNREADABLE),
    ("E-V3", "error", UNREADABLE),
    ("E-V4", "warning", "upgrade this library if a newer version of the specification defines the type"),
    ("E-V5", "error", "rewrite the file with a wider decimal type; some readers reject the value"),
    ("E-O3", "error", "rewrite the file; readers that search for a field can miss it"),
    ("E-O5", "error", EITHER_VALUE),
    ("E-O7", "error", UNREADABLE),
    ("X15", "warning", "rewrite the file; readers that search by UTF-8 order can miss a field"),
)
"""The codes that the native check of a column's rows reports, each with its severity and remedy."""

ROW_RULES.extend(Rule(code, severity, _row_rule(code), remedy) for code, severity, remedy in NATIVE_ROW_RULES)
