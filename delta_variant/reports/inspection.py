"""Inspect data files: their statistics and bounds, and how their Variant columns are shredded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from .._arrow import is_any_list
from .._progress import advance, begin
from ..data_file.options import MAX_STATS_PATHS
from ..data_file.reader import compute_stats, open_file, stats_of, table_columns
from ..data_file.shredding import check_layout, variant_columns
from ..errors import InvalidStatisticsError, error_location
from ..expressions.types import type_name
from ..log.load import load_snapshot
from ..log.snapshot import Snapshot
from ..protocol.actions import is_residual
from ..protocol.schema.column_mapping import physical_schema
from ..protocol.statistics import FileStatistics, decode_or_empty, value_at
from ..protocol.types import VARIANT, fields_of
from ..storage.store import Store, TableLocation, open_store, table_uri
from ..variant import paths as variant_paths
from .bounds import Bounds, decode_sides


@dataclass(frozen=True)
class InspectedFile:
    """A data file with the statistics of the log, or with statistics computed from its data.

    `variants` maps the path of each Variant column in the file to its logical name. With `is_residual`, it
    has the residual rows of other files.
    """

    store: Store
    path: str
    stats: FileStatistics
    variants: Mapping[tuple[str, ...], str]
    is_residual: bool = False

    @cached_property
    def bounds(self) -> Mapping[tuple[str, ...], Mapping[str, Bounds]]:
        """Return the bounds of each Variant column by path key, empty if they cannot be decoded."""
        return {column: _bounds_or_empty(self, column) for column in self.variants}


def data_files(target: TableLocation, version: int | None, *, exact: bool = False) -> Iterator[InspectedFile]:
    """Yield a Parquet file, or the files of a table at `version`.

    `exact=True` computes the statistics of a table from its data instead of reading them from the log.
    """
    file = Path(table_uri(target))
    if not file.is_file():
        snapshot = load_snapshot(target, version)
        files = files_of(snapshot)
        yield from _compute_statistics(snapshot, files) if exact else files
        return
    folder, name = open_store(file.absolute().parent), file.name
    with error_location(file=name):
        variants = variant_columns(open_file(folder, name))
    yield InspectedFile(folder, name, compute_stats(file), {(column,): column for column in variants})


def files_of(snapshot: Snapshot) -> Iterator[InspectedFile]:
    """Yield the files of a table. Statistics that cannot be decoded are empty."""
    mode = snapshot.configuration.mapping_mode
    physical = fields_of(physical_schema(snapshot.schema, mode))
    variants = {
        path: ".".join(logical)
        for (path, field), (logical, _) in zip(physical, fields_of(snapshot.schema), strict=True)
        if field.type == VARIANT
    }
    for row in snapshot.files.select(["path", "stats", "tags"]).to_pylist():
        stats = decode_or_empty(row["stats"])
        yield InspectedFile(snapshot.store, row["path"], stats, variants, is_residual(row["tags"]))


def _compute_statistics(snapshot: Snapshot, files: Iterable[InspectedFile]) -> Iterator[InspectedFile]:
    table = snapshot.configuration
    types = table.stored_stats_columns
    stored = table_columns(physical_schema(snapshot.schema, table.mapping_mode), table.mapping_mode)
    begin("computing statistics", files=snapshot.num_files)
    for file in files:
        stats = stats_of(
            open_file(snapshot.store, file.path, stored),
            [column for column, data_type in types.items() if data_type == VARIANT],
            max_variant_stats_paths=MAX_STATS_PATHS if table.supports_shredding else 0,
            indexed=set(types),
        )
        advance(files=1, rows=stats.num_records or 0)
        yield replace(file, stats=stats)


def _bounds_or_empty(file: InspectedFile, column: tuple[str, ...]) -> Mapping[str, Bounds]:
    try:
        return _decode_bounds(file, column)
    except InvalidStatisticsError:
        return {}


def undecodable_bounds(file: InspectedFile) -> Iterator[str]:
    """Yield a message for each Variant column whose bounds cannot be decoded."""
    for column, name in file.variants.items():
        try:
            _decode_bounds(file, column)
        except InvalidStatisticsError as error:
            yield f"{file.path}: cannot decode the bounds of {name!r}: {error}"


def _decode_bounds(file: InspectedFile, column: tuple[str, ...]) -> Mapping[str, Bounds]:
    return decode_sides(value_at(file.stats.min_values, column), value_at(file.stats.max_values, column))


DECODER = msgspec.json.Decoder(float_hook=Decimal)


class Leaf(msgspec.Struct, frozen=True, omit_defaults=True):
    """A Parquet leaf column: its number of non-null values, None if unknown, and its compressed bytes.

    `only_null` means that it has values, and all of them are Variant null.
    """

    values: int | None
    bytes: int
    only_null: bool = False


UNKNOWN = Leaf(None, 0)


class Node(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A path of a Variant column. None in `path` stands for the elements of a list.

    `type` is the type of `typed_value`: a SQL type, `object`, `array`, or `variant` without `typed_value`.
    Objects and arrays have no leaf column of their own.

    `files` is the number of files with this path, without residual files. Those that are clean have
    nothing in the `value` of the path and of the objects around it, so that other engines read the path
    alone.
    """

    path: tuple[str | None, ...]
    type: str
    files: int = 1
    clean_files: int = 0
    value: Leaf | None = None
    typed_value: Leaf | None = None
    min: msgspec.Raw | None = None
    max: msgspec.Raw | None = None

    @property
    def bytes(self) -> int:
        """Return the compressed bytes of its leaf columns."""
        return sum(leaf.bytes for leaf in (self.typed_value, self.value) if leaf)


class VariantColumn(msgspec.Struct, frozen=True):
    """A Variant column: its metadata, and its paths, parents first."""

    metadata: Leaf
    paths: tuple[Node, ...]

    @property
    def bytes(self) -> int:
        return self.metadata.bytes + sum(node.bytes for node in self.paths)


class FileShredding(msgspec.Struct, frozen=True, kw_only=True):
    """The shredding of one data file, or of all files of a table.

    `residual_files` of the files have `residual_rows`, which were separated from the other files.
    """

    rows: int
    files: int = 1
    residual_rows: int = 0
    residual_files: int = 0
    bytes: int
    row_groups: int
    created_by: tuple[str, ...]
    columns: dict[str, VariantColumn]


def shredding_of(subject: InspectedFile) -> FileShredding:
    """Return the shredding of a file, with the bounds of its statistics.

    Raise DataFileError for an unreadable file, and ShreddingError for one in the legacy Spark layout.
    """
    file = open_file(subject.store, subject.path)
    check_layout(file)
    footer = file.inspect()
    groups = {column: _group_type(file.schema, column) for column in subject.variants}
    columns = {
        subject.variants[column]: _variant_column(group, footer, column, subject)
        for column, group in groups.items()
        if group is not None
    }
    return FileShredding(
        rows=footer["rows"],
        residual_rows=footer["rows"] if subject.is_residual else 0,
        residual_files=int(subject.is_residual),
        bytes=footer["bytes"],
        row_groups=footer["row_groups"],
        created_by=tuple(filter(None, [footer["created_by"]])),
        columns=columns,
    )


def _group_type(fields: Any, column: Sequence[str]) -> Any:
    """Return the type of a column, or None if the column was added after the file was written."""
    found = {field.name: field.type for field in fields}.get(column[0])
    return found if found is None or len(column) == 1 else _group_type(found, column[1:])


def _variant_column(
    group: pa.StructType, footer: Mapping[str, Any], column: tuple[str, ...], subject: InspectedFile
) -> VariantColumn:
    # The leaves are in schema order, independent of the names of list groups.
    leaves = (_leaf(leaf) for leaf in footer["leaves"] if tuple(leaf["path"][: len(column)]) == column)
    own, nodes = _group(group, (), leaves)
    nodes = [_with_bounds(node, subject.bounds[column]) for node in nodes]
    if subject.is_residual:
        nodes = [msgspec.structs.replace(node, files=0, clean_files=0) for node in nodes]
    return VariantColumn(own.get("metadata", Leaf(0, 0)), tuple(nodes))


def _leaf(leaf: Mapping[str, Any]) -> Leaf:
    nulls = leaf["null_count"]
    values = None if nulls is None else leaf["num_values"] - nulls
    is_null = bool(leaf["path"][-1] == "value" and leaf["is_variant_null"])
    return Leaf(values, leaf["compressed_bytes"], bool(values) and is_null)


def _group(
    group: pa.StructType, path: tuple[str | None, ...], leaves: Iterator[Leaf], is_clean: bool = True
) -> tuple[dict[str, Leaf], list[Node]]:
    """Return the leaf columns of a group of `value` and `typed_value`, and its nodes, parents first.

    `is_clean` means that nothing is in the `value` of the objects around the group.
    """
    own: dict[str, Leaf] = {}
    below: list[Node] = []
    kind = "variant"
    # The `value` of a shredded object comes before its fields.
    for part in group:
        if part.name == "typed_value":
            kind = _kind(part.type)
            is_clean = is_clean and _is_empty(own.get("value"))
        if part.name == "typed_value" and kind in ("object", "array"):
            below = [
                node
                for name, child in _children(part.type)
                for node in _group(child, (*path, name), leaves, is_clean)[1]
            ]
        else:
            own[part.name] = next(leaves, UNKNOWN)
    clean = int(is_clean and kind != "variant")
    value, typed_value = own.get("value"), own.get("typed_value")
    return own, [Node(path=path, type=kind, clean_files=clean, value=value, typed_value=typed_value), *below]


def _is_empty(value: Leaf | None) -> bool:
    """Return whether engines need not read a `value`, because it has nothing but Variant null."""
    return value is None or value.values == 0 or value.only_null


def _kind(arrow_type: pa.DataType) -> str:
    if pa.types.is_struct(arrow_type):
        return "object"
    return "array" if is_any_list(arrow_type) else type_name(arrow_type)


def _children(arrow_type: Any) -> Iterator[tuple[str | None, Any]]:
    if is_any_list(arrow_type):
        yield None, arrow_type.value_type
    else:
        yield from ((part.name, part.type) for part in arrow_type)


def _with_bounds(node: Node, bounds: Mapping[str, Bounds]) -> Node:
    # Paths within list elements never have bounds.
    if not bounds or None in node.path:
        return node
    found = bounds.get(_path_key(node.path))
    if found is None:
        return node
    return msgspec.structs.replace(node, min=found.min, max=found.max)


# The files of a table have mostly the same paths.
@lru_cache(maxsize=2**14)
def _path_key(path: tuple[Any, ...]) -> str:
    return variant_paths.normalize(path)


def merge(parts: Sequence[FileShredding]) -> FileShredding:
    """Return the shredding of all files of a table: the sums of values and bytes, and the widest bounds.

    A path with several types occurs once for each type, and has bounds if every file has them.
    """
    names = dict.fromkeys(name for part in parts for name in part.columns)
    return FileShredding(
        rows=sum(part.rows for part in parts),
        files=len(parts),
        residual_rows=sum(part.residual_rows for part in parts),
        residual_files=sum(part.residual_files for part in parts),
        bytes=sum(part.bytes for part in parts),
        row_groups=sum(part.row_groups for part in parts),
        created_by=tuple(dict.fromkeys(writer for part in parts for writer in part.created_by)),
        columns={
            name: _merge_columns([part.columns[name] for part in parts if name in part.columns])
            for name in names
        },
    )


def _merge_columns(columns: Sequence[VariantColumn]) -> VariantColumn:
    groups: dict[tuple[Any, ...], list[Node]] = {}
    for column in columns:
        for node in column.paths:
            groups.setdefault((node.path, node.type), []).append(node)
    # Parents precede their children, and siblings are sorted by name, as in one file.
    ordered = sorted(
        map(_merge_nodes, groups.values()),
        key=lambda node: [(step is not None, step or "") for step in node.path],
    )
    return VariantColumn(_add(column.metadata for column in columns) or Leaf(0, 0), tuple(ordered))


def _merge_nodes(nodes: Sequence[Node]) -> Node:
    return msgspec.structs.replace(
        nodes[0],
        files=sum(node.files for node in nodes),
        clean_files=sum(node.clean_files for node in nodes),
        value=_add(node.value for node in nodes),
        typed_value=_add(node.typed_value for node in nodes),
        min=_extreme(min, [node.min for node in nodes]),
        max=_extreme(max, [node.max for node in nodes]),
    )


def _add(leaves: Iterable[Leaf | None]) -> Leaf | None:
    present = [leaf for leaf in leaves if leaf is not None]
    if not present:
        return None
    counts = [leaf.values for leaf in present if leaf.values is not None]
    values = sum(counts) if len(counts) == len(present) else None
    only_null = bool(values) and all(leaf.only_null or leaf.values == 0 for leaf in present)
    return Leaf(values, sum(leaf.bytes for leaf in present), only_null)


def _extreme(choose: Any, bounds: Sequence[msgspec.Raw | None]) -> msgspec.Raw | None:
    whole = [bound for bound in bounds if bound is not None]
    if len(whole) < len(bounds):
        return None
    values = [DECODER.decode(bound) for bound in whole]
    # NaN is a string in JSON, which does not compare with a number.
    if len({isinstance(value, str) for value in values}) > 1:
        return None
    return whole[values.index(choose(values))]
