"""The statistics of the data files of a table as rows, with the bounds of Variants decoded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import Array
from .._checks import check_option
from .._options import JsonKind
from ..errors import InvalidStatisticsError
from ..expressions.cast import cast_values
from ..expressions.parse import parse_type
from ..expressions.tree import Column
from ..expressions.types import NUMERIC, kind_of, type_name
from ..log.snapshot import Snapshot
from ..log.timestamps import Timestamp
from ..protocol.schema.arrow import to_arrow_type
from ..protocol.schema.column_mapping import physical_name
from ..protocol.statistics import Bound, bounds_at, counts_of, describe_bound, texts_at
from ..protocol.types import VARIANT
from ..read.file_reader import TableReader, files_of
from ..read.log_statistics import partition_values, recorded_rows
from ..read.predicate import Leaf
from ..read.rows import load_readable
from ..read.shredded_columns import path_name, shredded_types
from ..storage.store import TableLocation
from ..variant import paths as variant_paths

Level: TypeAlias = Literal["file", "row_group", "page"]
Path: TypeAlias = tuple[str, ...]

TYPES: dict[str, pa.DataType] = {
    **dict.fromkeys(("int8", "int16", "int32", "int64"), pa.int64()),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    **dict.fromkeys(("timestamp", "timestamp_nanos"), pa.timestamp("us", "UTC")),
    **dict.fromkeys(("timestamp_ntz", "timestamp_ntz_nanos"), pa.timestamp("us")),
}
"""The Arrow types of bounds by their names in VariantEncoding.md. Decimals have the scale of the bound."""

RANGE: list[pa.Field[Any]] = [
    pa.field("path", pa.string()),
    pa.field("first_row", pa.int64()),
    pa.field("num_records", pa.int64()),
]
"""The first columns of row groups and pages."""

NUMBER = "\0number"
"""The number of the row that a row of the long form belongs to."""


def file_stats(
    table: TableLocation | Snapshot,
    *,
    level: Level = "file",
    long: bool = False,
    version: int | None = None,
    timestamp: Timestamp | None = None,
) -> pa.Table:
    """Return the statistics of the data files of a table: a row for each file.

    The columns and paths are those for which the properties of the table ask statistics. Bounds of strings
    may be shortened, and those of timestamps are rounded down to milliseconds, as writers store them. Bounds
    of a path have its type, the common type of numbers, or of dates and timestamps, if files differ, and
    string otherwise.

    Args:
        table: A path, a URI, a `Table`, a `Snapshot` or a `deltalake.DeltaTable`.
        level: `"file"`, the default, returns what the log says. `"row_group"` and `"page"` return what the
            footers and the page indexes of the files say, as a scan uses it to skip rows.
        long: Return a row for each file and column or path instead, with the bounds as text. False by
            default.
        version: The version to read. None, the default, reads the latest version.
        timestamp: A timezone-aware datetime or an ISO 8601 string, as in `read_table`. None by default.

    Returns:
        A table that starts with `path` (string), `size_bytes` (int64), `modification_time` (timestamp),
        `num_records` (int64, deleted rows included), `num_deleted` (int64, rows of the deletion vector) and
        `tags` (map), and has `partition.NAME` for each partition column. Then follow `null_count.NAME`
        (int64), `min.NAME` and `max.NAME` for each column, and `min.NAME` and `max.NAME` for each path of a
        Variant, such as `min.event.user.id`; a column that no file has bounds of has neither. At the other
        levels it starts with `path`, `first_row` and `num_records`, and has no null counts. With `long` the
        columns are those at the start, and `column`, `type`, `null_count`, `min` and `max`. What is not known
        is null.

    Raises:
        TableNotFoundError: There is no table at this location.
        VersionNotFoundError: The log does not have the version or the timestamp.
        UnsupportedFeatureError: This version cannot read the table.
        DataFileError: A file cannot be opened, at the levels `"row_group"` and `"page"`.

    Example:
        >>> import delta_variant as dv, pyarrow as pa
        >>> rows = [{"id": 1, "event": {"user": 7}}, {"id": 2, "event": {"user": 9}}]
        >>> schema = dv.ShreddingSchema.of({"user": pa.int64()})
        >>> _ = dv.write_table("clicks", rows, variant_columns=["event"], shredding=schema)
        >>> stats = dv.file_stats("clicks")
        >>> stats.select(["num_records", "min.id", "max.id", "min.event.user", "max.event.user"]).to_pylist()
        [{'num_records': 2, 'min.id': 1, 'max.id': 2, 'min.event.user': 7, 'max.event.user': 9}]
    """
    check_option("level", level, ("file", "row_group", "page"))
    check_option("long", long, (True, False))
    snapshot = load_readable(table, version, timestamp)
    rows = _long if long else _wide
    if level == "file":
        return rows(_files(snapshot), _columns(snapshot))
    return rows(*_ranges(snapshot, is_page=level == "page"))


@dataclass(frozen=True)
class _Column:
    """A column, or a path of a Variant, by its name, and what is known about it: an array of each kind.

    The type is None for a whole Variant.
    """

    name: str
    type: pa.DataType | None
    arrays: Mapping[str, Array]

    @classmethod
    def of(cls, name: str, arrow_type: pa.DataType | None, **arrays: Array) -> _Column:
        """Return a column without the kinds of which nothing is known."""
        known = {kind: array for kind, array in arrays.items() if array.null_count < len(array)}
        return cls(name, arrow_type, known)


def _files(snapshot: Snapshot) -> dict[str, Array]:
    files, table = snapshot.files, snapshot.configuration
    partitions = (Column(name, snapshot.arrow_schema.field(name).type) for name in table.partition_columns)
    return {
        "path": files["path"],
        "size_bytes": files["size"],
        "modification_time": files["modification_time"].cast(pa.timestamp("ms", "UTC")),
        "num_records": recorded_rows(files),
        "num_deleted": pc.fill_null(pc.struct_field(files["deletion_vector"], "cardinality"), 0),
        "tags": files["tags"],
        **{f"partition.{each.name}": partition_values(table, files, each) for each in partitions},
    }


def _columns(snapshot: Snapshot) -> Iterator[_Column]:
    """Yield the columns and paths with statistics in the log."""
    for names, stored, arrow_type in _leaves(snapshot):
        kind = _json_kind(arrow_type)
        paths = [(("minValues", *stored), kind), (("maxValues", *stored), kind)]
        least, greatest, nulls = texts_at(
            snapshot.files["stats"], [*paths, (("nullCount", *stored), "number")]
        )
        name, counts = ".".join(names), counts_of(nulls)
        if arrow_type is None:
            yield _Column.of(name, None, null_count=counts)
            yield from _columns_of_paths(name, least, greatest)
        elif pa.types.is_nested(arrow_type):
            yield _Column.of(name, arrow_type, null_count=counts)
        else:
            low, high = (cast_values(side, arrow_type, strict=False) for side in (least, greatest))
            yield _Column.of(name, arrow_type, null_count=counts, min=low, max=high)


def _json_kind(arrow_type: pa.DataType | None) -> JsonKind:
    kind = "string" if arrow_type is None else kind_of(arrow_type)
    return "number" if kind in NUMERIC else "boolean" if kind == "boolean" else "string"


def _leaves(snapshot: Snapshot) -> Iterator[tuple[Path, Path, pa.DataType | None]]:
    """Yield the names of each column with statistics in the table and in its files, and its type."""
    table = snapshot.configuration
    for chain in table.stats_columns:
        stored = tuple(physical_name(field, table.mapping_mode) for field in chain)
        arrow_type = None if chain[-1].type == VARIANT else to_arrow_type(chain[-1].type)
        yield tuple(field.name for field in chain), stored, arrow_type


def _columns_of_paths(name: str, least: Array, greatest: Array) -> Iterator[_Column]:
    for (path, key), types in sorted(_types_of_paths(least, greatest).items()):
        arrow_type = _common_type(types)
        low, high = (
            _texts_at(side, key) if arrow_type is None else bounds_at(side, key, arrow_type)
            for side in (least, greatest)
        )
        yield _Column.of(name + path_name(path), arrow_type or pa.string(), min=low, max=high)


def _types_of_paths(*sides: Array) -> dict[tuple[Path, str], set[pa.DataType]]:
    """Return the types of the bounds of each path and its key. An entry that cannot be decoded has none."""
    types: dict[tuple[Path, str], set[pa.DataType]] = {}
    for text in pc.unique(pa.concat_arrays(sides)).drop_null().to_pylist():
        try:
            bounds = (describe_bound(text).bounds or {}).items()
            typed = [((variant_paths.parse(key), key), _type_of(bound)) for key, bound in bounds]
        except InvalidStatisticsError:
            continue
        for path, arrow_type in typed:
            if arrow_type is not None:
                types.setdefault(path, set()).add(arrow_type)
    return types


def _type_of(bound: Bound) -> pa.DataType | None:
    """Return the Arrow type of a bound, None for a type without an order."""
    return TYPES.get(bound.type) if bound.scale is None else pa.decimal128(38, bound.scale)


def _common_type(types: set[pa.DataType]) -> pa.DataType | None:
    """Return a type that all bounds can be cast to, None if some are numbers and others are not."""
    kinds = set(map(kind_of, types))
    if len(types) == 1:
        return next(iter(types))
    if kinds <= {"integer", "decimal"}:
        return pa.decimal128(38, max(each.scale for each in types if pa.types.is_decimal(each)))
    return pa.float64() if kinds <= NUMERIC else None


def _texts_at(texts: Array, key: str) -> Array:
    return pa.array((_text_at(text, key) for text in texts.to_pylist()), pa.string(), size=len(texts))


def _text_at(text: str | None, key: str) -> str | None:
    try:
        bounds = {} if text is None else describe_bound(text).bounds or {}
    except InvalidStatisticsError:
        return None
    bound = bounds.get(key)
    if bound is None:
        return None
    return msgspec.json.decode(bound.text, type=str) if bound.text.startswith('"') else bound.text


def _ranges(snapshot: Snapshot, *, is_page: bool) -> tuple[dict[str, Array], list[_Column]]:
    """Return the row groups or pages of all files, and the columns and paths with bounds in the footers."""
    named = list(_leaves_of_footers(snapshot))
    leaves = [leaf for _, leaf in named]
    sides: list[pa.Field[Any]] = [
        pa.field(f"{kind}.{name}", leaf.type) for name, leaf in named for kind in ("min", "max")
    ]
    schema = pa.schema([*RANGE, *sides])
    parts = [schema.empty_table()]
    for file in TableReader.of(snapshot).open_all(files_of(snapshot.files)):
        groups = range(len(file.row_groups)) if is_page else None
        units = file.units(leaves, groups)
        first = [start for start, _ in units.rows]
        rows = [end - start for start, end in units.rows]
        extremes = [side for least, greatest, _, _ in units.known for side in (least, greatest)]
        parts.append(pa.table([[file.file.path] * len(rows), first, rows, *extremes], schema=schema))
    arrays = [each.combine_chunks() for each in pa.concat_tables(parts).columns]
    start, lows, highs = arrays[: len(RANGE)], arrays[len(RANGE) :: 2], arrays[len(RANGE) + 1 :: 2]
    columns = [
        _Column.of(name, leaf.type, min=low, max=high)
        for (name, leaf), low, high in zip(named, lows, highs, strict=True)
    ]
    return dict(zip((each.name for each in RANGE), start, strict=True)), columns


def _leaves_of_footers(snapshot: Snapshot) -> Iterator[tuple[str, Leaf]]:
    paths = shredded_types(snapshot, snapshot.files)
    for names, _, arrow_type in _leaves(snapshot):
        name = ".".join(names)
        if arrow_type is not None and not pa.types.is_nested(arrow_type):
            yield name, Leaf(names, None, arrow_type)
        for (variant, path), sql_type in paths.items():
            if variant == names and (typed := parse_type(sql_type)) is not None:
                yield name + path_name(path), Leaf(names, path, typed)


def _wide(start: Mapping[str, Array], columns: Iterable[_Column]) -> pa.Table:
    # A column `a.b` and a field `b` of `a` have the same name.
    table = pa.table({**start})
    for column in columns:
        for kind, array in column.arrays.items():
            table = table.append_column(f"{kind}.{column.name}", array)
    return table


def _long(start: Mapping[str, Array], columns: Iterable[_Column]) -> pa.Table:
    """Return a row for each row of the start and each column with a statistic there, in the order of both."""
    table = pa.table({**start})
    rows = [_rows_of(table, column) for column in (_Column("", None, {}), *columns)]
    known: Any = pc.field("null_count").is_valid() | pc.field("min").is_valid() | pc.field("max").is_valid()
    return pa.concat_tables(rows).filter(known).sort_by(NUMBER).drop_columns([NUMBER])


def _rows_of(table: pa.Table, column: _Column) -> pa.Table:
    rows = table.num_rows
    unknown: Array = pa.nulls(rows)
    counts, *sides = (column.arrays.get(kind, unknown) for kind in ("null_count", "min", "max"))
    texts = [cast_values(side, pa.string(), strict=True) for side in sides]
    names = [pa.repeat(text, rows) for text in (column.name, type_name(column.type))]
    added = [*names, counts.cast(pa.int64()), *texts, pa.array(range(rows), pa.int64())]
    for name, array in zip(("column", "type", "null_count", "min", "max", NUMBER), added, strict=True):
        table = table.append_column(name, array)
    return table
