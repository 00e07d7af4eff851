"""Read all rows of a table once, and keep sketches of each data file for `describe`.

The records are in a folder at the root of the table. Its name starts with `_`, so that it cannot have data
files (PROTOCOL.md, "Data Files"), and the vacuums of Spark and deltalake skip it. In `_delta_log`, the
records would lengthen the listings of the log: object stores list all levels of folders.

Sketches are small records that merge, of any number of values. Distinct values are counted by the least
hashes, of which the greatest shows how dense they are (Bar-Yossef et al., "Counting Distinct Elements in a
Data Stream", 2002). The distribution is that of a random sample.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import accumulate
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from ..._arrow import Array, positions_by_number, row_numbers, total
from ..._progress import advance, begin
from ..._text import shorten
from ..._threads import Threads
from ...errors import DataFileError, error_location
from ...log.load import load_with_tombstones
from ...log.snapshot import Snapshot
from ...protocol.schema import json_text
from ...protocol.schema.column_mapping import physical_name
from ...read.file_reader import FileEntry, TableReader, files_of
from ...read.query import Query
from ...storage.store import TableLocation, delete_all, list_files, open_latest, put, read_if_present
from ...variant.functions import variant_explode, variant_sort_key
from ...variant.moments import apply_function
from ...variant.objects import is_variant, variants_from_column
from ...variant.values import VARIANT_TYPE, extract
from .sample import MAX_CHARACTERS, Path
from .summary import PathSummary

FOLDER = "_delta_variant_sketches"
FORMAT = 1
"""The format of the records. Another one makes other names, so that all files are analyzed again."""
RECORDS_AT_ONCE = 8
MAX_FILES = 1_000
"""The statistics and records of a table of more files take longer than the sample."""


@dataclass(frozen=True)
class Analysis:
    """The result of `analyze`.

    Attributes:
        version: The version of the table whose files are analyzed.
        files: The paths of the files that were read, because they had not been analyzed before.
        known: The number of the other files of the version.
        dropped: The number of records that were deleted, because no recent version has their files.

    Example:
        >>> import delta_variant as dv
        >>> _ = dv.write_table("clicks", [{"id": 1}])
        >>> result = dv.analyze("clicks")
        >>> result.version, len(result.files), result.known, result.dropped
        (0, 1, 0, 0)
    """

    version: int
    files: tuple[str, ...]
    known: int
    dropped: int


def analyze(table: TableLocation) -> Analysis:
    """Read the files of a table that were not analyzed before, so that `describe` knows all rows.

    Keeps a record of each data file in the folder `_delta_variant_sketches` of the table: for each column and
    each path of a Variant outside of arrays, its number of values and nulls, the 1,024 least hashes of its
    values, and 128 values of a random sample. Data files do not change, so that the next call reads only new
    files, those with other deletion vectors, and all of them after a change of the schema. Nothing is
    committed. Interrupted calls keep the records of the files that they have read.

    Args:
        table: A path, a URI, a `Table` or a `deltalake.DeltaTable`.

    Returns:
        An `Analysis` with the files that were read.

    Raises:
        TableNotFoundError: There is no table at this location.
        UnsupportedFeatureError: This version cannot read the table.
        DataFileError: A file cannot be read.
        StoreError: A record cannot be written.

    Example:
        >>> import delta_variant as dv
        >>> events = dv.Table("events")
        >>> _ = events.append([{"v": {"n": n % 4}} for n in range(20_000)], variant_columns=["v"])
        >>> len(events.analyze().files), events.analyze().known
        (1, 1)
        >>> path = events.describe().paths[1]
        >>> path.path, path.distinct, "distinct" in path.exact, path.deciles[0]
        ('v:n', 4, True, '0')
    """
    store = open_latest(table)
    # A record that is listed before the version is loaded is not of a later version.
    stored = set(list_files(store, FOLDER))
    snapshot, tombstones = load_with_tombstones(store)
    snapshot.configuration.check_may_read()
    files = dict(zip(_record_paths(snapshot, snapshot.files), files_of(snapshot.files), strict=True))
    new = {record: file for record, file in files.items() if record not in stored}
    begin("analyzing", files=len(new), bytes_=sum(file.size or 0 for file in new.values()))
    reader = TableReader.of(snapshot)
    with Threads(os.cpu_count() or 1) as threads:
        records = threads.map(lambda file: _record_of(reader, file), new.values())
        for (path, file), data in zip(new.items(), records, strict=True):
            put(store, path, data)
            advance(files=1, bytes_=file.size or 0)
    unused = stored.difference(files, _record_paths(snapshot, tombstones))
    delete_all(store, sorted(unused))
    paths = tuple(file.path for file in new.values())
    return Analysis(snapshot.version, paths, len(files) - len(new), len(unused))


def _record_paths(snapshot: Snapshot, files: pa.Table) -> Iterator[str]:
    """Yield the path of the record of each file, or tombstone, with its deletion vector and this schema."""
    schema = json_text.to_json(snapshot.configuration.physical_schema)
    for batch in files.select(["path", "deletion_vector"]).to_batches():
        for row in batch.to_pylist():
            text = msgspec.json.encode([FORMAT, row["path"], row["deletion_vector"], schema])
            yield f"{FOLDER}/{sha256(text).hexdigest()[:32]}.arrow"


def _record_of(reader: TableReader, entry: FileEntry) -> bytes:
    """Return the record of a data file as an Arrow stream."""
    table = reader.version.configuration
    query = Query.of(table, None, None)
    sketches = Sketches(query.schema)
    with error_location(file=entry.path):
        for batch in reader.open(entry).read(query.inputs, None, "error"):
            sketches.add(query.result(batch))
    names = {field.name: physical_name(field, table.mapping_mode) for field in table.schema.fields}
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(sketches.record(names))
    return sink.getvalue().to_pybytes()


def with_analyzed_figures(
    snapshot: Snapshot, found: Iterable[tuple[tuple[str, Path], PathSummary]]
) -> Iterator[tuple[tuple[str, Path], PathSummary]]:
    """Yield summaries with the figures of all rows, if all files of the version are analyzed."""
    records = _records(snapshot) if 0 < snapshot.num_files <= MAX_FILES else []
    mode = snapshot.configuration.mapping_mode
    names = {field.name: physical_name(field, mode) for field in snapshot.schema.fields}
    figures = dict(merge(records)) if records else {}
    for (name, path), summary in found:
        own = figures.get((names[name], path))
        if own is not None:
            summary = _with_figures(summary, own, figures[names[name], ()].rows)
        yield (name, path), summary


def _records(snapshot: Snapshot) -> list[pa.Table]:
    """Return the records of all files of a version, none if a file has none."""
    paths = set(_record_paths(snapshot, snapshot.files))
    if not paths.issubset(list_files(snapshot.store, FOLDER)):
        return []
    with Threads(RECORDS_AT_ONCE) as threads:
        # An `analyze` of a later version may delete them now.
        data = list(threads.map(lambda path: read_if_present(snapshot.store, path), sorted(paths)))
    present = [each for each in data if each is not None]
    try:
        records = [pa.ipc.open_stream(each).read_all() for each in present]
    except (pa.ArrowException, OSError) as error:
        message = f"cannot read the records in {FOLDER}: delete the folder, and analyze the table again"
        raise DataFileError(f"{message} ({error})").at(table=snapshot.uri) from error
    return records if len(records) == len(data) else []


def _with_figures(summary: PathSummary, own: Figures, rows: int) -> PathSummary:
    exact = ("filled", "nulls", "distinct") if own.is_exact else ("filled", "nulls")
    return replace(
        summary,
        filled=own.values / rows if rows else 0.0,
        nulls=own.nulls / rows if rows else 0.0,
        distinct=summary.distinct if "distinct" in summary.exact else own.distinct,
        deciles=own.deciles,
        exact=tuple(dict.fromkeys((*summary.exact, *exact))),
    )


Key: TypeAlias = tuple[str, Path]

SIZE = 1024
"""The hashes and sampled values of a sketch.

The standard error of a number of distinct values is 1 / √(SIZE - 2), 3 % of it, and that of the rank of a
quantile at most 1 / (2 √SIZE), 2 % of the values. Fewer distinct values than SIZE are counted exactly.
"""
POINTS = 128
"""The values of a sample that a record keeps, each of which stands for as many values."""
DECILES = range(1, 10)
LEAST = pc.SelectKOptions(SIZE, [("order", "ascending")])
MAX_PATHS = 1_000
MAX_KEY_BYTES = 64
ROWS = 16_384
"""The rows that are added at once. The first ones exclude most hashes of the others."""

SCHEMA = pa.schema(
    [
        pa.field("column", pa.string(), False),
        pa.field("path", pa.list_(pa.string()), False),
        pa.field("nulls", pa.int64(), False),
        pa.field("values", pa.int64(), False),
        pa.field("scalars", pa.int64(), False),
        pa.field("hashes", pa.list_(pa.int64()), False),
        pa.field("keys", pa.list_(pa.binary()), False),
        pa.field("texts", pa.list_(pa.string()), False),
    ]
)
"""A record of a file: a row for each column, by its physical name, and each path of a Variant."""

SAMPLE_FIELDS: list[pa.Field[Any]] = [
    pa.field("order", pa.float64()),
    pa.field("key", pa.binary()),
    pa.field("text", pa.string()),
]
SAMPLE = pa.schema(SAMPLE_FIELDS)
NULL: Any = b"\0"
METADATA = b"\1\0\0"
"""The metadata of scalars, without names."""
OBJECTS, ARRAYS = (pa.array([bytes([byte]) for byte in range(kind, 256, 4)]) for kind in (2, 3))
"""The first bytes of the values of objects and arrays (VariantEncoding.md, "Value Metadata")."""


@dataclass
class _Sketch:
    nulls: int = 0
    values: int = 0
    scalars: int = 0
    hashes: Array = field(default_factory=lambda: pa.array([], pa.int64()))
    sample: pa.Table = field(default_factory=SAMPLE.empty_table)

    def count(self, rows: int, nulls: int) -> None:
        """Count rows, some of which are null."""
        self.nulls += nulls
        self.values += rows - nulls

    def add(self, scalars: Array, hashes: Array, variants_of: Callable[[Array], Array]) -> None:
        """Add scalars and the hashes of all of them; `variants_of` returns some of them as Variants."""
        self.scalars += len(scalars)
        order: Array = pc.random(len(scalars))
        if len(self.hashes) == SIZE:
            hashes = hashes.filter(pc.less(hashes, self.hashes[-1]))
        self.hashes = _least_hashes([self.hashes, hashes])
        limit: Any = self.sample["order"][-1] if self.sample.num_rows == SIZE else 1.0
        chosen: Array = pc.indices_nonzero(pc.less(order, limit))
        if len(chosen):
            chosen = chosen.take(pc.call_function("select_k_unstable", [order.take(chosen)], LEAST))
            variants = variants_of(scalars.take(chosen))
            keys = pc.binary_slice(variant_sort_key(variants), 0, MAX_KEY_BYTES)
            texts = pc.utf8_slice_codeunits(
                extract(variants, (), pa.string(), strict=False), 0, MAX_CHARACTERS + 1
            )
            new = pa.table([order.take(chosen), keys, texts], schema=SAMPLE)
            self.sample = pa.concat_tables([self.sample, new]).sort_by("order").slice(0, SIZE)

    def points(self) -> pa.Table:
        """Return values of the sample in their order, evenly spaced."""
        number, count = self.sample.num_rows, min(self.sample.num_rows, POINTS)
        middles = [(2 * point + 1) * number // (2 * count) for point in range(count)]
        return self.sample.sort_by("key").take(pa.array(middles, pa.int64()))


class Sketches:
    """The sketches of the columns of some rows, and of all paths of their Variants."""

    def __init__(self, columns: pa.Schema) -> None:
        self._columns = columns
        self._sketches: dict[str, dict[Path, _Sketch]] = {each.name: {(): _Sketch()} for each in columns}

    def add(self, batch: pa.RecordBatch) -> None:
        for start in range(0, batch.num_rows, ROWS):
            part = batch.slice(start, ROWS)
            for each, column in zip(self._columns, part.columns, strict=True):
                if is_variant(each):
                    self._add_variants(self._sketches[each.name], column)
                else:
                    _add_column(self._sketches[each.name][()], column)

    def _add_variants(self, sketches: dict[Path, _Sketch], column: Array) -> None:
        found: list[tuple[Path, Array, Array]] = [((), column, row_numbers(len(column)))]
        while found and len(sketches) <= MAX_PATHS:
            path, variants, positions = found.pop()
            values = pc.struct_field(variants, "value").take(positions)
            first = pc.binary_slice(values, 0, 1)
            is_null = pc.fill_null(pc.equal(first, NULL), True)
            is_object = pc.is_in(first, OBJECTS)
            is_other = pc.or_(pc.or_(is_null, is_object), pc.is_in(first, ARRAYS))
            sketch = sketches.setdefault(path, _Sketch())
            sketch.count(len(values), total(is_null))
            scalars = values.filter(pc.invert(is_other))
            keys = variant_sort_key(_variants(pc.unique(scalars)))
            sketch.add(scalars, _hashes(keys), _variants)
            parts = variant_explode(variants.take(positions.filter(is_object))).combine_chunks()
            for batch in parts.to_batches():
                names: Array = batch["key"].dictionary_encode()
                for number, of_name in positions_by_number(names.indices):
                    found.append(((*path, names.dictionary[number].as_py()), batch["value"], of_name))

    def record(self, physical_names: Mapping[str, str]) -> pa.Table:
        """Return the record, without Variants that have more than 1,000 paths."""
        rows = (
            {
                "column": physical_names[name],
                "path": path,
                **{each: getattr(sketch, each) for each in ("nulls", "values", "scalars")},
                "hashes": sketch.hashes,
                "keys": (points := sketch.points())["key"].to_pylist(),
                "texts": points["text"].to_pylist(),
            }
            for name, sketches in self._sketches.items()
            if len(sketches) <= MAX_PATHS
            for path, sketch in sketches.items()
        )
        return pa.Table.from_pylist(list(rows), SCHEMA)


def _add_column(sketch: _Sketch, column: Array) -> None:
    sketch.count(len(column), column.null_count)
    if column.null_count < len(column) and not pa.types.is_nested(column.type):
        values = column.drop_null()
        sketch.add(values, _hashes(values), variants_from_column)


def _variants(scalars: Array) -> Array:
    """Return the Variants of the bytes of scalars."""
    metadata = pa.repeat(pa.scalar(METADATA, pa.binary()), len(scalars))
    return pa.StructArray.from_arrays([metadata, scalars], fields=list(VARIANT_TYPE))


def _hashes(values: Array) -> Array:
    return apply_function("xxhash64", [values], len(values))


def _least_hashes(arrays: Iterable[Array]) -> Array:
    hashes: Array = pc.unique(pa.concat_arrays(arrays))
    return hashes.take(pc.sort_indices(hashes)).slice(0, SIZE)


@dataclass(frozen=True)
class Figures:
    """What the records of files say of a column or a path: numbers of rows, and of distinct scalars.

    `distinct` is None without scalars. `deciles` are the nine values between the tenths of the scalars, cast
    to text; there are none if one of them has no text.
    """

    values: int
    nulls: int
    distinct: int | None
    is_exact: bool
    deciles: tuple[str, ...]

    @property
    def rows(self) -> int:
        return self.values + self.nulls


def merge(records: list[pa.Table]) -> Iterator[tuple[Key, Figures]]:
    """Yield the figures of the rows of all files, for columns that all records have, by physical name."""
    rows = pa.concat_tables(records).combine_chunks()
    groups: dict[Key, list[int]] = {}
    names: Any = zip(rows["column"].to_pylist(), rows["path"].to_pylist(), strict=True)
    for at, (name, path) in enumerate(names):
        groups.setdefault((name, tuple(path)), []).append(at)
    for (name, path), positions in groups.items():
        if len(groups[name, ()]) == len(records):
            yield (name, path), _figures(rows.take(pa.array(positions)))


def _figures(rows: pa.Table) -> Figures:
    lists: list[Any] = [rows[name].combine_chunks() for name in ("hashes", "keys", "texts")]
    hashes, keys, texts = (each.flatten() for each in lists)
    least = _least_hashes([hashes])
    is_exact = len(least) < SIZE
    distinct = len(least) if is_exact else round((SIZE - 1) * 2**64 / (least[-1].as_py() + 2**63))
    # Each point of a file stands for as many of its scalars.
    points = zip(rows["scalars"].to_pylist(), pc.list_value_length(rows["keys"]).to_pylist(), strict=True)
    weights = [scalars / number for scalars, number in points for _ in range(number)]
    order = pc.sort_indices(keys).to_pylist()
    ranks = list(accumulate(weights[at] for at in order))
    deciles = [
        texts[order[bisect_left(ranks, tenths * ranks[-1] / 10)]].as_py() for tenths in DECILES if ranks
    ]
    return Figures(
        total(rows["values"]),
        total(rows["nulls"]),
        distinct if ranks else None,
        is_exact,
        () if None in deciles else tuple(shorten(text, MAX_CHARACTERS) for text in deciles),
    )
