"""Rules of the statistics of a file: their text, and the bounds and null counts of ordinary columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, timedelta
from math import inf
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa

from ...errors import InvalidStatisticsError, MalformedLogError
from ...log.checkpoints.reading import duplicate_statistics
from ...protocol.statistics import (
    MAX_CUT,
    FileStatistics,
    is_cut,
    is_shortened,
    leaves_of,
    to_comparable,
    type_of_bounds,
    value_at,
)
from ...protocol.types import DataType, PrimitiveType, StructType, describe
from .findings import Rules, Violation
from .statistics_copies import SIDES, bounds_of, differences_of_copies, is_near, ordinary_columns
from .subjects import FileSubject, TableSubject

Path: TypeAlias = tuple[str, ...]

UNCHECKED = ("binary", "void", "variant", "geometry", "geography")
"""The types whose bounds have rules of their own, or are not used by readers."""
DAY = r"(?P<year>[+-]?[0-9]{4,})-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
TIME = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]+)?)?(Z|[+-][0-9]{2}(:?[0-9]{2}){0,2})?"
MOMENTS = {
    "date": re.compile(DAY),
    "timestamp": re.compile(f"{DAY}([T ]{TIME})?"),
    "timestamp_ntz": re.compile(f"{DAY}([T ]{TIME})?"),
}
FLOAT, DOUBLE = PrimitiveType("float"), PrimitiveType("double")
NAN = (1, 0.0)
"""Spark orders NaN after all numbers."""
NOT_FINITE = {"-Infinity": (0, -inf), "Infinity": (0, inf), "NaN": NAN}
"""The bounds that Spark writes as text, in their order."""

REPAIR = "run `delta-variant repair-statistics`"
UNUSED = f"{REPAIR}; until then readers ignore it, and do not skip the file by it"
CONTRADICTED = f"if the rows are right, {REPAIR}; until then a reader that skips by it loses rows"
DANGER = f"{REPAIR}; until then a reader that skips by it loses rows"

CHECKPOINT_STATISTICS_RULES = Rules[TableSubject]()
checkpoint_rule = CHECKPOINT_STATISTICS_RULES.add
FILE_STATISTICS_RULES = Rules[FileSubject]()
rule = FILE_STATISTICS_RULES.add


@checkpoint_rule("AU17", "error", "readers use either of the two; write a new checkpoint")
def _inconsistent_copies(subject: TableSubject) -> Iterator[Violation]:
    snapshot = subject.survey.snapshot
    if snapshot is None:
        return
    types = dict(ordinary_columns(subject.physical))
    try:
        for file_path, text, parsed in duplicate_statistics(snapshot):
            for what in differences_of_copies(text, parsed, types):
                sentence = f"stats and stats_parsed of the newest checkpoint differ in {what}"
                yield Violation(sentence, file_path=file_path)
    except MalformedLogError as error:
        yield Violation(f"stats_parsed of the newest checkpoint cannot be decoded ({error.message})")


@rule("ST19", "error", UNUSED)
def _not_statistics(subject: FileSubject) -> Iterator[Violation]:
    if isinstance(subject.decoded, InvalidStatisticsError):
        yield Violation(subject.decoded.message)


@rule("AU11", "error", CONTRADICTED)
def _num_records(subject: FileSubject) -> Iterator[Violation]:
    records = subject.stats.num_records
    if subject.opened is None or records is None:
        return
    if records != subject.opened.num_rows:
        yield Violation(f"numRecords is {records:,}, but the file has {subject.opened.num_rows:,} rows")


@rule("ST15", "error", f"{REPAIR}; PROTOCOL.md requires it")
def _no_num_records(subject: FileSubject) -> Iterator[Violation]:
    if subject.add["deletion_vector"] is not None and subject.stats.num_records is None:
        yield Violation("the file has a deletion vector, but its statistics have no numRecords")


@rule("AU13", "warning", f"{REPAIR}; statistics use the physical names of columns")
def _unknown_names(subject: FileSubject) -> Iterator[Violation]:
    members = (("nullCount", subject.stats.null_count), *zip(SIDES, bounds_of(subject.stats), strict=True))
    if not subject.table.physical.fields:
        return
    for member, values in members:
        for path in _unknown_columns(values, subject.table.physical, ()):
            if subject.column(path) is None:
                yield Violation(
                    f"{member} has {'.'.join(path)}, which is not a column of the table or the file"
                )


def _unknown_columns(
    values: Mapping[str, Any], columns: StructType, path: tuple[str, ...]
) -> Iterator[tuple[str, ...]]:
    types = {field.name: field.type for field in columns.fields}
    for name, value in values.items():
        found = types.get(name)
        if found is None:
            yield (*path, name)
        elif isinstance(found, StructType) and isinstance(value, Mapping):
            yield from _unknown_columns(value, found, (*path, name))


@rule("AU10", "error", DANGER)
def _impossible_null_counts(subject: FileSubject) -> Iterator[Violation]:
    records = subject.stats.num_records
    for path, count in leaves_of(subject.stats.null_count):
        if type(count) is int and (count < 0 or (records is not None and count > records)):
            yield Violation(f"nullCount of {'.'.join(path)} is {count}, but numRecords is {records}")


@rule("AU7", "error", CONTRADICTED)
def _outside(subject: FileSubject) -> Iterator[Violation]:
    # Tight bounds next to a deletion vector need not cover all rows.
    if subject.add["deletion_vector"] is None or not subject.is_tight:
        yield from _ordinary_violations(subject, _is_outside, "does not cover", _cut_offset)
        yield from _outside_exact_bounds(subject)
        yield from _not_finite(subject, "does not cover", is_outside=True)


def _ordinary_violations(
    subject: FileSubject,
    is_violation: Callable[[Any, Any, bool], bool],
    what: str,
    explain: Callable[[Any, Any, Any], str] = lambda *_: "",
) -> Iterator[Violation]:
    computed = subject.computed
    if not isinstance(computed, FileStatistics):
        return
    for path, data_type in subject.ordinary_columns:
        of_bounds = type_of_bounds(data_type, subject.column(path))
        for side, recorded, found in zip(SIDES, bounds_of(subject.stats), bounds_of(computed), strict=True):
            texts = value_at(recorded, path), value_at(found, path)
            stated, actual = (to_comparable(text, of_bounds) for text in texts)
            if None not in (stated, actual) and is_violation(stated, actual, side == SIDES[1]):
                name = ".".join(path)
                sentence = f"{side} of {name} is {texts[0]}, which {what} {texts[1]} in the data"
                yield Violation(sentence + explain(texts[0], stated, actual), column=name)


def _cut_offset(text: Any, stated: Any, actual: Any) -> str:
    """Return why a bound of a timestamp column is not exact, if it lacks the seconds of its offset."""
    if not isinstance(stated, datetime) or abs(stated - actual) > MAX_CUT or not is_cut(text, stated):
        return ""
    return (
        "; its offset lacks the seconds, as Delta on Spark 3.2 and 3.3 writes it, which delta-variant allows "
        "for and other readers do not"
    )


def _is_outside(stated: Any, actual: Any, is_upper: bool) -> bool:
    if isinstance(stated, datetime) and not is_upper:
        # The actual bound is rounded down to a millisecond. The rule of inexact bounds checks finer ones.
        return bool(stated - actual >= timedelta(milliseconds=1))
    return bool(stated < actual if is_upper else stated > actual)


@rule("AU8", "warning", REPAIR)
def _loose(subject: FileSubject) -> Iterator[Violation]:
    if subject.add["deletion_vector"] is None and subject.is_tight:
        yield from _ordinary_violations(subject, _is_loose, "is wider than")
        yield from _bounds_of_nulls(subject)
        yield from _not_finite(subject, "is wider than", is_outside=False)


def _bounds_of_nulls(subject: FileSubject) -> Iterator[Violation]:
    computed = subject.computed
    if not isinstance(computed, FileStatistics) or not computed.num_records:
        return
    for path, _ in subject.ordinary_columns:
        stated = next(
            (value for side in bounds_of(subject.stats) if (value := value_at(side, path)) is not None), None
        )
        if stated is not None and value_at(computed.null_count, path) == computed.num_records:
            name = ".".join(path)
            yield Violation(f"a bound of {name} is {stated}, but all rows are null", column=name)


def _is_loose(stated: Any, actual: Any, is_upper: bool) -> bool:
    if isinstance(stated, str) and is_shortened(stated, actual, is_upper=is_upper):
        return False
    return not is_near(stated, actual) and bool(stated > actual if is_upper else stated < actual)


@rule("AU10", "error", CONTRADICTED)
def _ordinary_null_counts(subject: FileSubject) -> Iterator[Violation]:
    computed = subject.computed
    if not isinstance(computed, FileStatistics):
        return
    is_whole = subject.add["deletion_vector"] is None
    for path, _ in subject.ordinary_columns:
        stated, found = value_at(subject.stats.null_count, path), value_at(computed.null_count, path)
        if subject.lacks(path):
            found = computed.num_records
        if type(stated) is not int or type(found) is not int:
            continue
        if stated != found if is_whole and subject.is_tight else is_false_null_count(subject, stated, found):
            name = ".".join(path)
            yield Violation(
                f"nullCount of {name} is {stated:,}, but the file has {found:,} nulls", column=name
            )


def is_false_null_count(subject: FileSubject, stated: int, found: int) -> bool:
    """Return whether a null count next to wide bounds is wrong: only 0 and `numRecords` have a meaning there.

    See PROTOCOL.md, "Per-file Statistics".
    """
    if subject.is_tight:
        return False
    return (stated == 0 and found > 0) or (stated == subject.stats.num_records and found < stated)


@rule("AU14", "error", f"{REPAIR}; Spark skips the file by it and loses the row")
def _nan_above_bound(subject: FileSubject) -> Iterator[Violation]:
    """Report NaN above an upper bound: it is the greatest value for Spark."""
    computed = subject.computed
    if not isinstance(computed, FileStatistics):
        return
    for path, data_type in subject.ordinary_columns:
        stated = value_at(subject.stats.max_values, path)
        # The kernel computes no bounds of a column with NaN.
        is_suspect = stated is not None and value_at(computed.max_values, path) is None
        if not is_suspect or data_type not in (FLOAT, DOUBLE) or to_comparable(stated, data_type) is None:
            continue
        if not subject.lacks(path) and subject.has_nan(path):
            name = ".".join(path)
            sentence = f"maxValues of {name} is {stated}, but a row has NaN, which Spark orders after it"
            yield Violation(sentence, column=name)


@rule("AU20", "error", f"{REPAIR}; some readers fail on it, others ignore it")
def _forms(subject: FileSubject) -> Iterator[Violation]:
    """Check that each entry has the JSON form of its column's type."""
    members = (("nullCount", subject.stats.null_count), *zip(SIDES, bounds_of(subject.stats), strict=True))
    for member, values in members:
        for path, value, expected in _wrong_forms(values, subject.table.physical, (), member):
            name = ".".join(path)
            stated = msgspec.json.encode(value, enc_hook=str).decode()[:60]
            yield Violation(f"{member} of {name} is {stated}, expected {expected}", column=name)
    partitions = subject.table.physical_partitions
    for name in sorted(partitions & {name for _, values in members for name in values}):
        message = f"the statistics have the partition column {name}, which is not in the file"
        yield Violation(message, column=name)


def _wrong_forms(
    values: Mapping[str, Any], columns: StructType, path: Path, member: str
) -> Iterator[tuple[Path, Any, str]]:
    types = {field.name: field.type for field in columns.fields}
    for name, value in values.items():
        data_type, where = types.get(name), (*path, name)
        if value is None or data_type is None:
            continue
        if isinstance(data_type, StructType):
            if isinstance(value, Mapping):
                yield from _wrong_forms(value, data_type, where, member)
            else:
                yield where, value, "an object with the fields of the struct"
        elif member == "nullCount":
            if type(value) is not int:
                yield where, value, "a number of nulls"
        elif (expected := _expected_form(value, data_type)) is not None:
            yield where, value, expected


def _expected_form(value: Any, data_type: DataType) -> str | None:
    """Return what a bound of a type has to be, None if the value is that."""
    if not isinstance(data_type, PrimitiveType):
        return f"no bounds for {describe(data_type)}, which has no order"
    if data_type.name in MOMENTS:
        return None if _is_moment(value, data_type.name) else f"text of a {data_type.name}"
    if data_type.name.partition("(")[0] in UNCHECKED or to_comparable(value, data_type) is not None:
        return None
    if data_type in (FLOAT, DOUBLE) and value in NOT_FINITE:
        return None
    return f"a value of type {describe(data_type)}"


def _is_moment(value: Any, name: str) -> bool:
    """Return whether a bound is the text of a date or timestamp. Python does not have all years."""
    found = MOMENTS[name].fullmatch(value) if isinstance(value, str) else None
    if found is None or len(found["year"]) != 4 or found["year"] == "0000":
        return found is not None
    try:
        date.fromisoformat(value[:10])
    except ValueError:
        return False
    return True


@rule("AU21", "info", f"{REPAIR}; readers cannot skip the file by them")
def _incomplete(subject: FileSubject) -> Iterator[Violation]:
    """Report statistics that readers could use, and that the file lacks."""
    if subject.add["stats"] is None:
        yield Violation("the file has no statistics")
        return
    if isinstance(subject.decoded, InvalidStatisticsError):
        return
    if subject.stats.num_records is None:
        yield Violation("the statistics have no numRecords")
    computed = subject.computed
    if not isinstance(computed, FileStatistics):
        return
    indexed = subject.table.indexed
    for path, _ in subject.ordinary_columns:
        least, greatest = (value_at(values, path) for values in bounds_of(subject.stats))
        found = [value_at(values, path) for values in bounds_of(computed)]
        if path not in indexed or found[0] is None:
            continue
        # A long string can lack the upper bound: a truncated one must still be greater than the string.
        is_lacking = least is None or (greatest is None and not isinstance(found[1], str | None))
        if is_lacking or value_at(subject.stats.null_count, path) is None:
            name = ".".join(path)
            yield Violation(f"the statistics lack bounds or nullCount of {name}", column=name)
    for variant in subject.table.variants:
        counts = (value_at(each.null_count, variant.path) for each in (subject.stats, computed))
        if variant.path in indexed and next(counts) is None and next(counts) is not None:
            yield Violation(f"the statistics lack nullCount of {variant.name}", column=variant.name)


@rule("AU22", "warning", f"{REPAIR}; readers take them for bounds of the live rows")
def _tight_next_to_vector(subject: FileSubject) -> Iterator[Violation]:
    if subject.add["deletion_vector"] is not None and subject.add["stats"] is not None and subject.is_tight:
        yield Violation("the bounds are marked as tight, but the file has a deletion vector")


def _outside_exact_bounds(subject: FileSubject) -> Iterator[Violation]:
    """Check bounds that the kernel does not compute exactly by the values in the file.

    The data has NaN, infinities, years of five digits or Booleans, or the bound has microseconds.
    """
    computed = subject.computed
    if not isinstance(computed, FileStatistics):
        return
    for path, data_type in subject.ordinary_columns:
        of_bounds = type_of_bounds(data_type, subject.column(path))
        for side, recorded, found in zip(SIDES, bounds_of(subject.stats), bounds_of(computed), strict=True):
            text = value_at(recorded, path)
            stated = to_comparable(text, of_bounds)
            has_microseconds = isinstance(stated, datetime) and stated.microsecond % 1000 != 0
            is_exact = value_at(found, path) is not None and not has_microseconds
            if is_exact or stated is None or not _is_of_type(stated, subject.column(path)):
                continue
            extremes = subject.extremes(path)
            extreme = extremes["max" if side == SIDES[1] else "min"]
            if extreme.is_valid and _excludes(stated, extreme, is_upper=side == SIDES[1]):
                name = ".".join(path)
                value = extreme.cast(pa.string()).as_py()
                sentence = f"{side} of {name} is {text}, which does not cover {value} in the data"
                yield Violation(sentence, column=name)


def _is_of_type(stated: Any, arrow_type: Any) -> bool:
    """Return whether a bound has the type of a column whose exact bounds JSON may not be able to state."""
    if arrow_type is None:
        return False
    if isinstance(stated, date):
        is_timestamp = isinstance(stated, datetime)
        return bool((pa.types.is_timestamp if is_timestamp else pa.types.is_date32)(arrow_type))
    if isinstance(stated, bool):
        return bool(pa.types.is_boolean(arrow_type))
    return isinstance(stated, float) and bool(pa.types.is_floating(arrow_type))


def _excludes(stated: Any, extreme: Any, *, is_upper: bool) -> bool:
    """Return whether a bound does not cover an extreme, an Arrow scalar whose value Python may not have."""
    margin = 0
    if isinstance(stated, date):
        # Upper bounds of timestamps are rounded down to milliseconds, and readers add one.
        margin = 1000 if isinstance(stated, datetime) else 0
        stated, found = pa.scalar(stated, extreme.type).value, extreme.value
    else:
        found = extreme.as_py()
    return bool(stated + margin < found if is_upper else stated > found)


def _not_finite(subject: FileSubject, what: str, *, is_outside: bool) -> Iterator[Violation]:
    """Check bounds that are NaN or infinite, which only readers of Spark use."""
    if not isinstance(subject.computed, FileStatistics):
        return
    for path, data_type in subject.ordinary_columns:
        for side, recorded in zip(SIDES, bounds_of(subject.stats), strict=True):
            stated = value_at(recorded, path)
            if data_type not in (FLOAT, DOUBLE) or not isinstance(stated, str) or stated not in NOT_FINITE:
                continue
            is_upper = side == SIDES[1]
            actual = _extreme(subject, path, is_upper=is_upper)
            if actual is None or actual == NOT_FINITE[stated]:
                continue
            if (NOT_FINITE[stated] < actual) is (is_upper is is_outside):
                name, value = ".".join(path), "NaN" if actual == NAN else actual[1]
                yield Violation(
                    f"{side} of {name} is {stated}, which {what} {value} in the data", column=name
                )


def _extreme(subject: FileSubject, path: tuple[str, ...], *, is_upper: bool) -> tuple[int, float] | None:
    """Return the least or the greatest value of a column by its place in the order, None without a value."""
    if subject.lacks(path):
        return None
    extreme = subject.extremes(path)["max" if is_upper else "min"]
    if (is_upper or not extreme.is_valid) and subject.has_nan(path):
        return NAN
    return (0, extreme.as_py()) if extreme.is_valid else None
