"""The content of a table, and estimates of the effect of another shredding or sort order.

Types, nulls, distinct values and examples of paths are those of `describe`, and come from a smaller sample of
its kind, as the estimates do.

- Shredding: the sample is encoded as Parquet with the present schema of its files, with the inferred schema
  and without shredding. The bytes of the table change by the same factors.
- Sort order: a lookup asks for the value of a row that is chosen at random. Before, it reads the files whose
  bounds cover the value, and those without bounds. Afterwards the rows are in as many files of equal size,
  and it reads those that contain the value. A value that the sample has once is assumed to be in
  `sqrt(N / n)` rows, where the sample has `n` rows and the table `N`.
"""

from __future__ import annotations

import math
import tempfile
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa

from .._text import quote
from ..data_file.reader import open_file
from ..data_file.shredding import shredding_of as schemas_of
from ..log.load import load_snapshot
from ..log.snapshot import Snapshot
from ..operations.describe.sample import Sample, choose_files, read_ranges
from ..operations.describe.summary import PathSummary
from ..operations.optimize.layout import leaf_types
from ..operations.write import write_table
from ..protocol.types import VARIANT, fields_of
from ..read.query import Query
from ..storage.store import TableLocation
from ..variant import paths as variant_paths
from ..variant.shredding import ShreddingSchema, infer_shredding_schema
from ..variant.values import EXTENSION, to_json
from .bounds import Bounds, PathBounds, path_bounds
from .inspection import FileShredding, InspectedFile, VariantColumn, data_files, files_of, merge, shredding_of

SAMPLE_ROWS = 4_000
MAX_PATHS = 10_000

Path_: TypeAlias = tuple[str | None, ...]
DECODER = msgspec.json.Decoder()


@dataclass(frozen=True)
class ShreddingChange:
    """The bytes of a Variant column now, and estimates for the inferred schema and without shredding.

    `added` and `removed` are the paths that the inferred schema makes a column, or no longer does.
    """

    now: int
    inferred: int
    unshredded: int
    added: tuple[Path_, ...]
    removed: tuple[Path_, ...]


@dataclass(frozen=True)
class SortChange:
    """The average number of files that a lookup of a path reads, before and after sorting by the path."""

    path: Path_
    before: float
    after: float


@dataclass(frozen=True)
class Column:
    """A Variant column: its shredding, its paths in the sample, its bounds and the estimated changes."""

    shredded: VariantColumn | None
    paths: Mapping[Path_, PathSummary]
    bounds: Sequence[PathBounds]
    shredding: ShreddingChange | None
    sorting: Sequence[SortChange]


@dataclass(frozen=True)
class Exploration:
    """A table, or one data file, with its Variant columns by name."""

    name: str
    version: int | None
    files: int
    rows: int
    bytes: int
    sampled_files: int
    sampled_rows: int
    columns: Mapping[str, Column]


@dataclass(frozen=True)
class _Sample:
    """The number of rows, the files that have them, and the values and paths of each Variant column."""

    rows: int
    files: Sequence[InspectedFile]
    columns: Mapping[str, Any]
    paths: Mapping[str, Mapping[Path_, PathSummary]]


def explore(table: TableLocation, version: int | None = None) -> Exploration:
    """Return the content of a table at `version`, and the estimates.

    Raise DataFileError for a file that cannot be read.
    """
    snapshot = load_snapshot(table, version)
    files = list(files_of(snapshot))
    shredding = merge([shredding_of(file) for file in files])
    sample = _take_sample(snapshot, files, shredding.rows)
    columns = {
        name: _column(path, name, files, shredding, sample)
        for path, name in (files[0].variants.items() if files else ())
    }
    return Exploration(
        snapshot.uri,
        snapshot.version,
        len(files),
        shredding.rows,
        snapshot.num_bytes,
        len(sample.files),
        sample.rows,
        columns,
    )


def _take_sample(snapshot: Snapshot, files: Sequence[InspectedFile], rows: int) -> _Sample:
    variants = (path for path, field in fields_of(snapshot.schema) if field.type == VARIANT)
    names = {f"c{index}": name for index, name in enumerate(variants)}
    query = Query.of(
        snapshot.configuration, {key: ".".join(map(quote, name)) for key, name in names.items()}, None
    )
    sample, chosen = Sample(dict.fromkeys(names)), choose_files(snapshot)
    for batches in read_ranges(snapshot, chosen, query, SAMPLE_ROWS) if names else ():
        sample.add_range(batches)
    paths: dict[str, dict[Path_, PathSummary]] = {".".join(name): {} for name in names.values()}
    for (key, path), each in sample.summaries(rows, {}, {}):
        paths[".".join(names[key])][path] = each
    columns = {
        ".".join(name): pa.chunked_array([batch.column(key) for batch in sample.batches]).combine_chunks()
        for key, name in (names.items() if sample.batches else ())
    }
    of_sample = set(chosen["path"].to_pylist())
    return _Sample(sample.rows, [file for file in files if file.path in of_sample], columns, paths)


def _column(
    path: tuple[str, ...],
    name: str,
    files: Sequence[InspectedFile],
    shredding: FileShredding,
    sample: _Sample,
) -> Column:
    shredded = shredding.columns.get(name)
    values = sample.columns.get(name)
    bounds = [file.bounds.get(path, {}) for file in files]
    return Column(
        shredded,
        sample.paths.get(name, {}),
        list(path_bounds(name, bounds)),
        _shredding_change(path, shredded, values, sample.files) if values is not None else None,
        list(_sort_changes(values, bounds, sample.rows, shredding.rows)),
    )


def _scalars(values: Any) -> dict[Path_, Counter[str]]:
    """Return the scalars of paths that are not within arrays, as JSON with their counts."""
    found: dict[Path_, Counter[str]] = {}
    for text in to_json(values).to_pylist():
        if text is not None:
            _count(DECODER.decode(text), (), found)
    return found


def _count(value: Any, path: Path_, found: dict[Path_, Counter[str]]) -> None:
    if isinstance(value, dict):
        for name, member in value.items():
            _count(member, (*path, name), found)
    elif path and value is not None and not isinstance(value, list) and len(found) < MAX_PATHS:
        found.setdefault(path, Counter())[msgspec.json.encode(value).decode()] += 1


def _shredding_change(
    path: tuple[str, ...], shredded: VariantColumn | None, values: Any, files: Sequence[InspectedFile]
) -> ShreddingChange | None:
    if shredded is None or not len(values) or values.null_count == len(values):
        return None
    typical = [file for file in files if not file.is_residual] or files
    schemas = Counter(schemas_of(open_file(file.store, file.path)).get(path) for file in typical)
    present = schemas.most_common(1)[0][0]
    inferred = infer_shredding_schema(values)
    now = shredded.bytes
    sizes = [_encoded_bytes(values, schema) for schema in (present, inferred, None)]
    before, after = (
        {path for path, _ in leaf_types(schema.field.type)} if schema else set()
        for schema in (present, inferred)
    )
    return ShreddingChange(
        now,
        round(now * sizes[1] / sizes[0]),
        round(now * sizes[2] / sizes[0]),
        tuple(sorted(after - before, key=str)),
        tuple(sorted(before - after, key=str)),
    )


def _encoded_bytes(values: Any, schema: ShreddingSchema | None) -> int:
    """Return the compressed bytes of Variants in a Parquet file that is written with a shredding schema."""
    marked = pa.field("v", values.type, metadata=EXTENSION)
    with tempfile.TemporaryDirectory() as folder:
        data = pa.Table.from_arrays([values], schema=pa.schema([marked]))
        write_table(folder, data, variant_columns=["v"], shredding=schema)
        # Residual rows are in files of their own.
        shredding = merge([shredding_of(file) for file in data_files(folder, None)])
    return max(shredding.columns["v"].bytes, 1)


def _sort_changes(
    values: Any, bounds: Sequence[Mapping[str, Bounds]], sampled_rows: int, rows: int
) -> Iterator[SortChange]:
    """Yield the changes for the paths that are scalars, by the files saved and the rows that have them."""
    if len(bounds) < 2 or values is None:
        return
    changes: list[tuple[SortChange, int]] = []
    for path, scalars in _scalars(values).items():
        before = files_before_sort(scalars, _sides(bounds, path), len(bounds))
        after = files_after_sort(scalars, sampled_rows, rows, len(bounds))
        changes.append((SortChange(path, before, after), scalars.total()))
    # A path that few rows have is not worth a sort order.
    changes.sort(key=lambda each: (each[0].after - each[0].before) * each[1])
    yield from (change for change, _ in changes)


def _sides(bounds: Sequence[Mapping[str, Bounds]], path: Path_) -> list[tuple[Any, Any]]:
    key = variant_paths.normalize([step for step in path if step is not None])
    found = (each.get(key) for each in bounds)
    return [
        (DECODER.decode(each.min), DECODER.decode(each.max))
        for each in found
        if each is not None and each.min is not None and each.max is not None
    ]


def files_before_sort(scalars: Mapping[str, int], sides: Sequence[tuple[Any, Any]], files: int) -> float:
    """Return the average number of `files` that a lookup reads. Files without bounds are always read."""
    kinds = {_kind(side) for pair in sides for side in pair}
    values = [(DECODER.decode(text), count) for text, count in scalars.items()]
    if len(kinds) != 1 or {_kind(value) for value, _ in values} != kinds:
        # The order of values of several types depends on the reader, so it reads all files.
        return float(files)
    starts, ends = (sorted(each) for each in zip(*sides, strict=True))
    hits = sum(count * (bisect_right(starts, value) - bisect_left(ends, value)) for value, count in values)
    return hits / sum(scalars.values()) + files - len(sides)


def _kind(value: Any) -> str:
    return (
        "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__
    )


def files_after_sort(scalars: Mapping[str, int], sampled_rows: int, rows: int, files: int) -> float:
    """Return the average number of `files` of equal size that a lookup reads if the rows are sorted."""
    decoded = ((DECODER.decode(text), count) for text, count in scalars.items())
    values = sorted((_kind(value), value, count) for value, count in decoded)
    ratio = max(rows / sampled_rows, 1)
    per_file = max(rows, sampled_rows) / files
    position = hits = 0.0
    for *_, count in values:
        width = math.sqrt(ratio) if count == 1 else count * ratio
        first, last = int(position / per_file), math.ceil((position + width) / per_file - 1e-9)
        hits += count * max(min(last, files) - first, 1)
        position += count * ratio
    return hits / sum(scalars.values())
