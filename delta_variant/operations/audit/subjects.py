"""The subjects of rules: a table, a data file of it, and a Variant column of that file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from ..._arrow import arrow_type_at, is_any_list
from ...data_file.reader import (
    Projection,
    RowViolation,
    SchemaViolation,
    TableColumns,
    open_file,
    read,
    stats_of,
    table_columns,
)
from ...errors import DeltaVariantError, InvalidStatisticsError, ProtocolError, SchemaError
from ...log import deletion_vectors
from ...protocol import features, properties
from ...protocol.actions import Metadata, Protocol
from ...protocol.properties import ColumnMappingMode
from ...protocol.schema.column_mapping import physical_name, physical_schema
from ...protocol.schema.conforming import conform, is_unadjusted, may_overflow, mismatches
from ...protocol.schema.json_text import parse as parse_schema
from ...protocol.statistics import Bound, BoundText, FileStatistics, describe_bound, value_at
from ...protocol.statistics import decode as decode_statistics
from ...protocol.table_configuration import stats_columns
from ...protocol.types import VARIANT, DataType, StructType, parts_of
from ...storage import store
from ...storage.objects import StoredFile
from ...variant import paths as variant_paths
from .log_survey import LogSurvey
from .statistics_copies import SIDES, bounds_of, ordinary_columns

Path: TypeAlias = tuple[str, ...]
Value = TypeVar("Value")


class Lazy(Generic[Value]):
    """A value that is computed once for each object.

    Until Python 3.12, `cached_property` has one lock for all objects: threads would check one file at a time.
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute = compute

    def __get__(self, instance: Any, owner: object = None) -> Value:
        """Return the value, which replaces this descriptor in the object."""
        value = instance.__dict__[self._compute.__name__] = self._compute(instance)
        return value


@dataclass(frozen=True)
class VariantColumn:
    """A Variant column: its logical name, and its physical path in data files.

    In the path, `element`, `key` and `value` are the parts of lists and maps. `has_bounds` is true for a path
    of structs only, because statistics have no other columns.
    """

    name: str
    path: Path
    has_bounds: bool


@dataclass(frozen=True)
class TableSubject:
    """A table at one version, with the parts that can be read."""

    survey: LogSurvey

    @property
    def protocol(self) -> Protocol | None:
        return self.survey.protocol

    @property
    def metadata(self) -> Metadata | None:
        return self.survey.metadata

    @property
    def configuration(self) -> Mapping[str, str]:
        """Return the table properties, empty without metadata."""
        return {} if self.metadata is None else self.metadata.configuration

    @cached_property
    def schema(self) -> StructType | SchemaError:
        if self.metadata is None:
            return StructType()
        try:
            return parse_schema(self.metadata.schema_string)
        except SchemaError as error:
            return error

    @property
    def columns(self) -> StructType:
        """Return the schema, without columns if it cannot be parsed."""
        return StructType() if isinstance(self.schema, SchemaError) else self.schema

    @property
    def mode(self) -> ColumnMappingMode:
        """Return the column mapping mode, `none` for an invalid one."""
        try:
            return properties.get(self.configuration, properties.COLUMN_MAPPING_MODE)
        except ProtocolError:
            return "none"

    @property
    def partition_columns(self) -> Sequence[str]:
        """Return the logical names of the partition columns."""
        return () if self.metadata is None else self.metadata.partition_columns

    @cached_property
    def physical(self) -> StructType:
        """Return the schema with physical names, or with logical names if those are invalid."""
        try:
            return physical_schema(self.columns, self.mode)
        except SchemaError:
            return self.columns

    @cached_property
    def stored(self) -> TableColumns:
        return table_columns(self.physical, self.mode)

    @cached_property
    def variants(self) -> tuple[VariantColumn, ...]:
        """Return the Variant columns at any depth."""
        return tuple(_variants(self.columns, self.physical, (), (), True))

    @cached_property
    def physical_names(self) -> frozenset[str]:
        """Return the physical names of the top-level columns."""
        return frozenset(field.name for field in self.physical.fields)

    @cached_property
    def physical_partitions(self) -> frozenset[str]:
        fields = zip(self.columns.fields, self.physical.fields, strict=True)
        return frozenset(stored.name for field, stored in fields if field.name in self.partition_columns)

    @cached_property
    def indexed(self) -> Mapping[Path, DataType]:
        """Return the leaf columns that get statistics by physical path, and their types."""
        try:
            chains = stats_columns(self.columns, self.configuration, self.partition_columns)
            return {
                tuple(physical_name(each, self.mode) for each in chain): chain[-1].type for chain in chains
            }
        except (SchemaError, ProtocolError):
            return {}

    @property
    def shreds(self) -> bool:
        """Return whether the protocol supports `variantShredding` by its stable or its preview name."""
        return self.protocol is not None and features.supports(self.protocol, "variantShredding")


def _variants(
    logical: DataType, physical: DataType, names: Path, path: Path, has_bounds: bool
) -> Iterator[VariantColumn]:
    if physical == VARIANT:
        yield VariantColumn(".".join(names), path, has_bounds)
    is_struct = isinstance(physical, StructType)
    for (name, part), (step, stored) in zip(parts_of(logical), parts_of(physical), strict=True):
        if is_struct or step != "key":
            yield from _variants(part, stored, (*names, name), (*path, step), has_bounds and is_struct)


@dataclass(frozen=True)
class FileSubject:
    """A data file and its `add` action, a row of FILES_SCHEMA.

    `rows` enables the rules that read the rows.
    """

    table: TableSubject
    add: Mapping[str, Any]
    rows: bool

    @property
    def path(self) -> str:
        """Return the decoded path."""
        return str(self.add["path"])

    @Lazy
    def stored(self) -> StoredFile | DeltaVariantError:
        """Return the size and the modification time of the file, or the error that reading them raises."""
        try:
            return store.file_info(self.table.survey.store, self.path)
        except DeltaVariantError as error:
            return error

    @property
    def size(self) -> int | DeltaVariantError:
        """Return the size of the file in bytes, or the error that reading it raises."""
        return self.stored.size if isinstance(self.stored, StoredFile) else self.stored

    @Lazy
    def file(self) -> Any | DeltaVariantError:
        """Return the open file, or the error that opening it raises."""
        if isinstance(self.size, DeltaVariantError):
            return self.size
        try:
            opened = open_file(self.table.survey.store, self.path, self.table.stored)
            # Most rules read the schema, which can have names that Arrow does not support.
            _ = opened.schema
            opened.check_unambiguous()
        except DeltaVariantError as error:
            return error
        return opened

    @property
    def bytes_read(self) -> int:
        """Return the bytes that were read of the file so far; another thread may be reading it."""
        opened = self.__dict__.get("file")  # The property would open the file.
        return 0 if opened is None or isinstance(opened, DeltaVariantError) else int(opened.bytes_read)

    @property
    def opened(self) -> Any:
        """Return the open file, None if it cannot be opened."""
        return None if isinstance(self.file, DeltaVariantError) else self.file

    def column(self, path: Path) -> Any:
        """Return the Arrow type of a column in the file, also of a dropped column; None without one."""
        return arrow_type_at(self._columns, path)

    @Lazy
    def _columns(self) -> pa.Schema | None:
        """Return the schema of the file, which the kernel makes again for each call; None without one."""
        return None if self.opened is None else self.opened.schema

    def lacks(self, path: Path) -> bool:
        """Return whether the file certainly lacks a column, whose values then are all null."""
        return self.opened is not None and self.column(path) is None

    @Lazy
    def mismatches(self) -> Sequence[tuple[Path, Any, DataType]]:
        """Return path, stored type and type of the leaf columns that the file has in another type."""
        return [found for found in self.type_differences if not is_unadjusted(*found[1:])]

    @Lazy
    def type_differences(self) -> Sequence[tuple[Path, Any, DataType]]:
        """Return the mismatches, and the timestamps that are stored without isAdjustedToUTC."""
        return [
            found
            for field in self.table.physical.fields
            for found in mismatches(self.column((field.name,)), field.type, (field.name,))
        ]

    @Lazy
    def overflows(self) -> Mapping[str, str]:
        """Return the columns with values beyond their type of bytes or shorts, each with the error.

        There are none without `rows`.
        """
        found: dict[str, str] = {}
        if isinstance(self.computed, FileStatistics):
            for field in self.table.physical.fields:
                if may_overflow(self.column((field.name,)), field.type):
                    column = pa.field(field.name, self.column((field.name,)))
                    try:
                        for batch in read(self.opened, self.path, [Projection(column, (field.name,))]):
                            conform(batch, StructType((replace(field, nullable=True),)))
                    except SchemaError as error:
                        found[field.name] = error.message
        return found

    @Lazy
    def lost_columns(self) -> Sequence[Path]:
        """Return the columns of the table that the file lacks although its statistics have values of them."""
        partitions = self.table.physical_partitions
        paths = [path for path, _ in ordinary_columns(self.table.physical)]
        paths += [column.path for column in self.table.variants if column.has_bounds]
        return [
            path
            for path in paths
            if path[0] not in partitions and self.lacks(path) and self._states_values(path)
        ]

    def _states_values(self, path: Path) -> bool:
        """Return whether the statistics say that a column has values: by bounds or by too few nulls."""
        if any(value_at(values, path) is not None for values in bounds_of(self.stats)):
            return True
        nulls, records = value_at(self.stats.null_count, path), self.stats.num_records or 0
        # Next to wide bounds, only 0 and `numRecords` have a meaning.
        return type(nulls) is int and 0 <= nulls < (records if self.is_tight else min(records, 1))

    @Lazy
    def footer(self) -> Mapping[str, Any]:
        """Return the footer, empty if the file cannot be opened."""
        return {} if self.opened is None else self.opened.inspect()

    @Lazy
    def decoded(self) -> FileStatistics | InvalidStatisticsError:
        """Return the statistics, empty ones without any, or the error that decoding them raises."""
        try:
            return decode_statistics(self.add["stats"]) if self.add["stats"] is not None else FileStatistics()
        except InvalidStatisticsError as error:
            return error

    def with_stats(self, stats: str | None) -> FileSubject:
        """Return the file with other statistics, and keep the parts that were read."""
        other = FileSubject(self.table, {**self.add, "stats": stats}, self.rows)
        kept = ("stored", "file", "footer", "computed", "deleted", "mismatches", "overflows")
        other.__dict__.update({name: self.__dict__[name] for name in kept if name in self.__dict__})
        return other

    @property
    def stats(self) -> FileStatistics:
        """Return the statistics, empty ones if the file has no valid statistics."""
        return self.decoded if isinstance(self.decoded, FileStatistics) else FileStatistics()

    @property
    def is_tight(self) -> bool:
        """Return whether bounds are tight, which is the default (PROTOCOL.md, "Per-file Statistics")."""
        return self.stats.tight_bounds is not False

    @Lazy
    def deleted(self) -> bytes | DeltaVariantError | None:
        """Return the bitmap of the deletion vector, None without one, or the error that reading it raises."""
        try:
            return deletion_vectors.load(self.table.survey.store, self.add["deletion_vector"])
        except DeltaVariantError as error:
            return error

    @property
    def live_rows(self) -> int | None:
        """Return the number of rows that are not deleted, None if the file cannot be opened."""
        if self.opened is None:
            return None
        vector = self.add["deletion_vector"]
        return int(self.opened.num_rows) - (0 if vector is None else int(vector["cardinality"]))

    @Lazy
    def columns(self) -> tuple[ColumnSubject, ...]:
        """Return the Variant columns of the table."""
        return tuple(ColumnSubject(self, column) for column in self.table.variants)

    @Lazy
    def computed(self) -> FileStatistics | DeltaVariantError | None:
        """Return statistics of the data with untruncated strings, None without `rows`, or the error."""
        if not self.rows or self.opened is None:
            return None
        try:
            variants = [column.path for column in self.table.variants]
            return self.without_mismatches(stats_of(self.opened, variants, shorten=False))
        except DeltaVariantError as error:
            return error

    def without_mismatches(self, stats: FileStatistics) -> FileStatistics:
        """Return statistics of the file without bounds of columns of another type than the table has."""
        others = {path for path, _, _ in self.mismatches}
        least, greatest = (_without(values, others) for values in (stats.min_values, stats.max_values))
        return replace(stats, min_values=least, max_values=greatest)

    @property
    def ordinary_columns(self) -> Iterator[tuple[Path, DataType]]:
        """Yield the ordinary leaf columns that the file has in the type of the table, with statistics."""
        others = {path for path, _, _ in self.mismatches}
        partitions, lost = self.table.physical_partitions, set(self.lost_columns)
        for path, data_type in ordinary_columns(self.table.physical):
            if path not in others and path not in lost and path[0] not in partitions:
                yield path, data_type

    def has_nan(self, path: Path) -> bool:
        """Return whether a column, which is in the file, has a NaN."""
        return any(pc.any(pc.is_nan(column)).as_py() for column in self._values(path))

    def extremes(self, path: Path) -> Any:
        """Return `min` and `max` of a column without NaN as a scalar of Arrow, null if there is no value.

        The column is in the file. Timestamps become microseconds.
        """
        stored = self.column(path)
        arrow_type = pa.timestamp("us", stored.tz) if pa.types.is_timestamp(stored) else stored
        found: list[Any] = []
        for column in self._values(path):
            if pa.types.is_floating(stored):
                column = column.filter(pc.invert(pc.is_nan(column)))
            found.extend(pc.min_max(column).values())
        return pc.min_max(pa.array(found, arrow_type))

    def _values(self, path: Path) -> Iterator[Any]:
        stored = self.column(path)
        arrow_type = pa.timestamp("us", stored.tz) if pa.types.is_timestamp(stored) else stored
        nested = arrow_type
        for step in reversed(path[1:]):
            nested = pa.struct([pa.field(step, nested)])
        projection = Projection(pa.field("read", nested), path[:1])
        for batch in read(self.opened, self.path, [projection]):
            column: Any = batch.column(0)
            for step in path[1:]:
                column = pc.struct_field(column, step)
            yield column


@dataclass(frozen=True)
class PathReport:
    """The bounds of one path, compared with the rows.

    Each kind of row that violates a rule is a tuple of the count, the first row and the value in it.
    """

    key: str
    present: int
    min_attained: bool
    max_attained: bool
    nulls: tuple[int, int, str]
    nans: tuple[int, int, str]
    others: tuple[int, int, str]
    below: tuple[int, int, str]
    above: tuple[int, int, str]


@dataclass(frozen=True)
class RowReport:
    """The rows of a Variant column: the number that are not SQL NULL, and the rules that they violate."""

    variants: int
    violations: Sequence[RowViolation]
    paths: Sequence[PathReport]


@dataclass(frozen=True)
class ColumnSubject:
    """A Variant column of a data file."""

    file: FileSubject
    column: VariantColumn

    @property
    def name(self) -> str:
        """Return the column's logical name."""
        return self.column.name

    @Lazy
    def group(self) -> pa.StructType | None:
        """Return the Arrow type of the column in the file, None if it is missing or not a group."""
        found = self.file.column(self.column.path)
        return found if found is not None and pa.types.is_struct(found) else None

    @property
    def is_shredded(self) -> bool:
        """Return whether the file has a `typed_value` for the column."""
        return self.group is not None and self.group.get_field_index("typed_value") >= 0

    @Lazy
    def schema_violations(self) -> Sequence[SchemaViolation]:
        return () if self.file.opened is None else self.file.opened.check_schema(list(self.column.path))

    @Lazy
    def leaves(self) -> Mapping[Path, pa.DataType]:
        """Return the types of the shredded paths that lead through objects only."""
        return {} if self.group is None else dict(_leaves(self.group, ()))

    @Lazy
    def lists(self) -> frozenset[Path]:
        """Return the shredded paths that are arrays."""
        return frozenset() if self.group is None else frozenset(_lists(self.group, ()))

    def entry(self, side: str) -> Any:
        """Return the entry of the column in `minValues` or `maxValues`, None without one."""
        values = dict(zip(SIDES, bounds_of(self.file.stats), strict=True))[side]
        return value_at(values, self.column.path)

    @Lazy
    def sides(self) -> Mapping[str, BoundText | InvalidStatisticsError]:
        """Return the bounds that are strings, decoded or the error, by `minValues` and `maxValues`."""
        decoded: dict[str, BoundText | InvalidStatisticsError] = {}
        for side in SIDES:
            text = self.entry(side)
            if isinstance(text, str):
                try:
                    decoded[side] = describe_bound(text)
                except InvalidStatisticsError as error:
                    decoded[side] = error
        return decoded

    @Lazy
    def bounds(self) -> Mapping[str, Mapping[str, Bound]]:
        """Return the bounds that can be decoded, by side and path key."""
        return {
            side: found.bounds
            for side, found in self.sides.items()
            if isinstance(found, BoundText) and found.bounds is not None
        }

    @Lazy
    def row_report(self) -> RowReport | DeltaVariantError | None:
        """Return the report of the rows, None if they are not read, or the error that reading them raises."""
        deleted = self.file.deleted
        if not self.file.rows or self.group is None or isinstance(deleted, DeltaVariantError):
            return None
        keys = [key for side in self.bounds.values() for key in side]
        paths = [(key, list(names)) for key in dict.fromkeys(keys) if (names := names_of(key)) is not None]
        least, greatest = (_bytes(self.sides.get(side)) for side in SIDES)
        try:
            found = self.file.opened.check_rows(
                list(self.column.path), paths, least, greatest, deleted if self.file.is_tight else None
            )
        except DeltaVariantError as error:
            return error
        described = [PathReport(key, **report) for (key, _), report in zip(paths, found.paths, strict=True)]
        return RowReport(found.variants, found.violations, described)

    @property
    def rows(self) -> RowReport | None:
        return self.row_report if isinstance(self.row_report, RowReport) else None


def names_of(key: str) -> Path | None:
    """Return the names of a path key, None for an invalid one."""
    try:
        return variant_paths.parse(key)
    except InvalidStatisticsError:
        return None


def _bytes(side: BoundText | InvalidStatisticsError | None) -> bytes | None:
    return side.data if isinstance(side, BoundText) and side.bounds is not None else None


def _without(values: Mapping[str, Any], paths: Collection[Path], parents: Path = ()) -> Mapping[str, Any]:
    """Return a member of the statistics without the columns at some paths."""
    kept = {}
    for name, value in values.items():
        path = (*parents, name)
        if path not in paths:
            kept[name] = _without(value, paths, path) if isinstance(value, Mapping) else value
    return kept


def _typed_value(group: pa.DataType) -> pa.DataType | None:
    index = group.get_field_index("typed_value") if pa.types.is_struct(group) else -1
    return group.field(index).type if index >= 0 else None


def _leaves(group: pa.DataType, path: Path) -> Iterator[tuple[Path, pa.DataType]]:
    typed = _typed_value(group)
    if typed is None or is_any_list(typed):
        return
    if pa.types.is_struct(typed):
        for part in typed:
            yield from _leaves(part.type, (*path, part.name))
    else:
        yield path, typed


def _lists(group: pa.DataType, path: Path) -> Iterator[Path]:
    typed = _typed_value(group)
    if typed is None:
        return
    if is_any_list(typed):
        yield path
    elif pa.types.is_struct(typed):
        for part in typed:
            yield from _lists(part.type, (*path, part.name))
