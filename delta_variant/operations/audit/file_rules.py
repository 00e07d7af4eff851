"""Rules of a data file: that it is there and whole, and how Variants lie in it (requirements 2, 4, 10)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa

from ...errors import DeltaVariantError, MalformedLogError, UnsupportedFeatureError
from ...protocol import properties
from ...protocol.schema.partition_values import partition_value_from_string
from .findings import Fault, Rule
from .subjects import ColumnSubject, FileSubject

__all__ = ["COLUMN_RULES", "FILE_RULES", "ROW_RULES"]

FIELD_ID = b"PARQUET:field_id"


def _missing(subject: FileSubject) -> Iterator[Fault]:
    if isinstance(subject.size, DeltaVariantError):
        yield Fault(f"the data file cannot be found ({subject.size})")


def _size(subject: FileSubject) -> Iterator[Fault]:
    said = subject.add["size"]
    if isinstance(subject.size, int) and subject.size != said:
        yield Fault(f"the data file has {subject.size:,} bytes, and the log says {said:,}")


def _unreadable(subject: FileSubject) -> Iterator[Fault]:
    if isinstance(subject.size, int) and isinstance(subject.file, DeltaVariantError):
        yield Fault(f"the data file cannot be opened ({subject.file})")


def _partition_values(subject: FileSubject) -> Iterator[Fault]:
    columns = subject.table.columns.fields
    fields = {field.name: field for field in columns}
    stored = {
        field.name: each.name for field, each in zip(columns, subject.table.physical.fields, strict=True)
    }
    wanted = {stored[name]: fields[name] for name in subject.table.partition_columns if name in fields}
    values = dict(subject.add["partition_values"] or ())
    for name in sorted(set(wanted) - set(values)):
        yield Fault(f"partitionValues has nothing for the partition column {wanted[name].name}")
    for name in sorted(set(values) - set(wanted)):
        yield Fault(f"partitionValues names {name!r}, which is no partition column")
    for name in sorted(set(values) & set(wanted)):
        try:
            with suppress(UnsupportedFeatureError):
                partition_value_from_string(values[name], wanted[name].type)
        except MalformedLogError as error:
            yield Fault(f"{error}, of the partition column {wanted[name].name}")


def _deletion_vector(subject: FileSubject) -> Iterator[Fault]:
    if isinstance(subject.deleted, DeltaVariantError):
        yield Fault(f"the deletion vector cannot be read ({subject.deleted})")


def _cardinality(subject: FileSubject) -> Iterator[Fault]:
    vector = subject.add["deletion_vector"]
    if subject.opened is None or vector is None:
        return
    rows, deleted = subject.opened.num_rows, vector["cardinality"]
    if not 0 <= deleted <= rows:
        yield Fault(f"the deletion vector has {deleted:,} rows, and the file {rows:,}")


def _row_ids(subject: FileSubject) -> Iterator[Fault]:
    # Where row tracking is supported and not enabled, nobody relies on ids of all files.
    enabled = properties.get(subject.table.configuration, properties.ENABLE_ROW_TRACKING)
    if enabled and subject.add["base_row_id"] is None:
        yield Fault(f"the file has no baseRowId, and the table sets {properties.ENABLE_ROW_TRACKING.name}")


def _field_ids(subject: FileSubject) -> Iterator[Fault]:
    if subject.table.mode != "id" or subject.opened is None:
        return
    if not any(FIELD_ID in (field.metadata or {}) for field in subject.opened.schema):
        yield Fault("the columns are mapped by id, and the file has no field ids")


def _no_data_rows(subject: FileSubject) -> Iterator[Fault]:
    if isinstance(subject.computed, DeltaVariantError):
        yield Fault(f"the data cannot be read ({subject.computed})")


def _other_type(subject: ColumnSubject) -> Iterator[Fault]:
    if subject.file.opened is None or subject.group is not None:
        return
    found = subject.file.opened.schema
    if len(subject.column.path) == 1 and subject.column.path[0] in found.names:
        arrow_type = found.field(subject.column.path[0]).type
        yield Fault(f"the column {subject.name} is {arrow_type} in the file, and variant in the table")


def _shredded_without_feature(subject: ColumnSubject) -> Iterator[Fault]:
    if subject.is_shredded and subject.file.table.protocol is not None and not subject.file.table.shreds:
        yield Fault(f"the column {subject.name} is shredded, and the protocol lacks variantShredding")


def _of_schema(code: str) -> Callable[[ColumnSubject], Iterator[Fault]]:
    def check(subject: ColumnSubject) -> Iterator[Fault]:
        for found in subject.schema_faults:
            if found.rule == code and subject.group is not None:
                yield Fault(f"column {subject.name} at {found.path}: {found.message}", path_key=found.path)

    return check


def _null_counts(subject: ColumnSubject) -> Iterator[Fault]:
    if not subject.is_shredded:
        return
    path = subject.column.path
    for leaf in subject.file.footer.get("leaves", ()):
        steps = tuple(leaf["path"])
        if steps[: len(path)] == path and steps[-1] == "value" and leaf["null_count"] is None:
            yield Fault(f"the footer has no null count for {'.'.join(steps)}")
            return


def _spark_types(subject: ColumnSubject) -> Iterator[Fault]:
    for arrow_type in _all_leaves(subject.group):
        if _is_refused_by_spark(arrow_type):
            yield Fault(
                f"the column {subject.name} has a typed_value of {arrow_type}, which makes Spark refuse it"
            )
            return


def _all_leaves(arrow_type: Any) -> Iterator[Any]:
    if arrow_type is None:
        return
    if pa.types.is_struct(arrow_type):
        for part in arrow_type:
            yield from _all_leaves(part.type)
    elif pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type):
        yield from _all_leaves(arrow_type.value_type)
    else:
        yield arrow_type


def _is_refused_by_spark(arrow_type: Any) -> bool:
    types = pa.types
    is_uuid = types.is_fixed_size_binary(arrow_type) and arrow_type.byte_width == 16
    nanos = types.is_timestamp(arrow_type) and arrow_type.unit == "ns"
    return bool(types.is_time(arrow_type) or nanos or is_uuid)


def _unreadable_rows(subject: ColumnSubject) -> Iterator[Fault]:
    if isinstance(subject.row_report, DeltaVariantError):
        yield Fault(f"the rows of the column {subject.name} cannot be looked at ({subject.row_report})")


def _of_rows(code: str) -> Callable[[ColumnSubject], Iterator[Fault]]:
    def check(subject: ColumnSubject) -> Iterator[Fault]:
        for found in subject.rows.violations if subject.rows else ():
            if found.rule == code:
                more = f", and {found.count - 1:,} more like it" if found.count > 1 else ""
                yield Fault(
                    f"row {found.row:,}, column {subject.name} at {found.path}: {found.message}{more}",
                    path_key=found.path,
                    row=found.row,
                )

    return check


REWRITE = "write the file anew with a writer that keeps the rule"

FILE_RULES: tuple[Rule[FileSubject], ...] = (
    Rule("F1", "error", _missing, "restore it, or the table lacks its rows"),
    Rule("F2", "error", _size, "the file is not the one that was committed; restore that one"),
    Rule("F3", "error", _unreadable, "restore it, or remove it from the table"),
    Rule("F4", "error", _partition_values, "commit the file with its partition values"),
    Rule("F6", "error", _deletion_vector, "restore it: without it, rows that are deleted come back"),
    Rule("F7", "error", _cardinality, "the vector is that of another file; restore the right one"),
    Rule("F8", "error", _no_data_rows, "restore the file, or remove it from the table"),
    Rule("F9", "error", _row_ids, "commit the file with fresh row ids"),
    Rule("T11", "error", _field_ids, "write the file anew with field ids: readers find no column in it"),
)

COLUMN_RULES: tuple[Rule[ColumnSubject], ...] = (
    Rule("T10", "error", _other_type, "no type is widened to Variant; write the file anew"),
    Rule("H8", "error", _shredded_without_feature, "add the feature, or write the file without shredding"),
    Rule(
        "O1", "error", _of_schema("O1"), "no reader of Delta knows it; `delta-variant migrate` writes it anew"
    ),
    Rule("P-S1", "error", _of_schema("P-S1"), REWRITE),
    Rule("P-S1", "warning", _of_schema("P-S1m"), "no harm as long as it is never null"),
    Rule("P-S1", "warning", _of_schema("P-S1t"), "readers cannot tell what is missing from what is there"),
    Rule("P-S2", "info", _of_schema("P-S2"), "readers that go by the table's schema need none"),
    Rule("P-S2", "error", _of_schema("P-S2v"), REWRITE),
    Rule("P-S3", "info", _of_schema("P-S3o"), "no harm as long as it is never null"),
    Rule("P-S4", "error", _of_schema("P-S4"), "every value reads as a Variant null; " + REWRITE),
    Rule("P-S4", "info", _of_schema("P-S4v"), "allowed where every value is typed"),
    Rule("P-S6", "error", _of_schema("P-S6"), REWRITE),
    Rule("P-S7", "error", _of_schema("P-S7"), "Spark refuses a null group there; " + REWRITE),
    Rule("P-S9", "error", _of_schema("P-S9"), "readers refuse the whole column; " + REWRITE),
    Rule("P-S10", "error", _of_schema("P-S10"), REWRITE),
    Rule("P-X1", "warning", _of_schema("P-X1"), "Spark refuses the column for it; write the file without it"),
    Rule("P-X2", "error", _of_schema("P-X2"), "readers refuse the column for it; write the file without it"),
    Rule("W10", "error", _of_schema("W10"), REWRITE),
    Rule("W14", "warning", _null_counts, "no reader can skip its row groups; write the file anew"),
    Rule("P-T", "warning", _spark_types, "write the file with spark_compatible=True if Spark is to read it"),
)

ROW_RULES: tuple[Rule[ColumnSubject], ...] = (
    Rule("F8", "error", _unreadable_rows, "restore the file, or write it anew"),
    Rule("R2", "warning", _of_rows("R2"), "Spark refuses the row; write a Variant null there"),
    Rule("R3", "error", _of_rows("R3"), "Spark refuses the row; write a Variant null there"),
    Rule("R5", "error", _of_rows("R5"), "readers refuse the row, or read either; write the file anew"),
    Rule("R6", "error", _of_rows("R6"), "readers refuse the row; write the file anew"),
    Rule("R7", "error", _of_rows("R7"), "readers refuse the row, or read either; write the file anew"),
    Rule("R8", "error", _of_rows("R8"), "readers of a path may miss it; write the file anew"),
    Rule("R9", "error", _of_rows("R9"), "readers of a path may miss it; write the file anew"),
    Rule("R10", "error", _of_rows("R10"), "some readers refuse the row; write the file anew"),
    Rule("R11", "error", _of_rows("R11"), "no reader can read the row; write the file anew"),
    Rule("R12", "error", _of_rows("R12"), "no reader can read the row; write the file anew"),
    Rule(
        "R13",
        "info",
        _of_rows("R13"),
        "allowed, and it takes the path its bounds; writing anew helps skipping",
    ),
    Rule("R14", "error", _of_rows("R14"), "Spark refuses the row; write the file anew"),
    Rule("P-S3", "error", _of_rows("P-S3"), "Spark refuses the row; write a Variant null there"),
    Rule("W7", "error", _of_rows("W7"), "readers may refuse the row; write the file anew"),
    Rule("E-M", "error", _of_rows("E-M"), "no reader can read the row; write the file anew"),
    Rule(
        "E-M9", "warning", _of_rows("E-M9"), "readers pass over them; write the file anew to be rid of them"
    ),
    Rule("E-M11", "error", _of_rows("E-M11"), "readers refuse it; write a flatter value"),
    Rule("E-V", "error", _of_rows("E-V"), "no reader can read the row; write the file anew"),
    Rule("E-V3", "error", _of_rows("E-V3"), "no reader can read the value; write the file anew"),
    Rule("E-V4", "warning", _of_rows("E-V4"), "readers of today cannot say what it is"),
    Rule("E-V5", "error", _of_rows("E-V5"), "some readers refuse it; write the wider decimal"),
    Rule("E-O3", "error", _of_rows("E-O3"), "readers miss fields when they search; write the file anew"),
    Rule("E-O5", "error", _of_rows("E-O5"), "readers refuse the row; write the file anew"),
    Rule("E-O7", "error", _of_rows("E-O7"), "no reader can read the row; write the file anew"),
    Rule(
        "X15",
        "warning",
        _of_rows("X15"),
        "readers that search by UTF-8 may miss a field; write the file anew",
    ),
)
