"""Say what a table or a file has: its columns and paths, with their types, fill and values.

Figures are those of a sample, and those of all rows where the statistics in the log prove them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..._arrow import SIMPLE_TYPES
from ..._checks import to_integer
from ..._text import quote, shorten
from ...input.files import names_file, open_path
from ...input.invalid_json import parse_json_columns
from ...input.json_lines import JsonLines
from ...log.deletion_vectors import count_deleted_rows
from ...log.snapshot import Snapshot
from ...log.timestamps import Timestamp
from ...protocol import properties
from ...protocol.schema.arrow import from_arrow, variant_field
from ...protocol.types import VARIANT, StructType, sql_type
from ...read.aggregate import known_aggregates
from ...read.log_statistics import file_bounds
from ...read.predicate import Bounds, Leaf
from ...read.query import Query
from ...read.rows import known_rows, load_readable
from ...read.shredded_columns import paths_of, shredded_types
from ...storage.inputs import InputFile
from ...storage.store import TableLocation
from ...variant.shredding import MAX_DEPTH, MAX_LEAVES, infer_shredding_schema
from ...variant.values import parse_valid_json
from .analyze import MAX_FILES, with_analyzed_figures
from .sample import MAX_CHARACTERS, Path, Sample, choose_files, read_ranges
from .summary import PathSummary, Summary

SAMPLE_ROWS = 10_000


def describe(
    source: TableLocation | Snapshot | JsonLines | pa.RecordBatchReader,
    *,
    version: int | None = None,
    timestamp: Timestamp | None = None,
    since: int | None = None,
    sample_rows: int = SAMPLE_ROWS,
) -> Summary:
    """Return what a table or files have: each column and path with its types, fill and values.

    The figures are those of a sample: 32 ranges of rows, evenly spaced in up to 16 files, or the first rows
    of other input. The number of distinct values in all rows is estimated (Charikar et al.,
    "Towards Estimation Error Guarantees for Distinct Values", 2000). Fill, nulls, minimum and maximum are
    those of all rows where the statistics in the log prove them; `PathSummary.exact` names these. If
    `analyze` has read all files of the version, fill, nulls and deciles are those of all rows, and the number
    of distinct values is that of all rows or estimated from them.

    Args:
        source: A path, a URI, a `Table`, a `Snapshot` or a `deltalake.DeltaTable`; or data that is not in a
            table yet: the path of a file of JSON, CSV or Parquet, the result of `read_json` or `read_csv`, or
            another stream of Arrow data.
        version: The version to read. None, the default, reads the latest version.
        timestamp: A timezone-aware datetime or an ISO 8601 string, as in `read_table`. None by default.
        since: An earlier version of the table, whose sample is compared: `change` of each path says whether
            it is new, has other types, or vanished. None by default.
        sample_rows: The number of rows in the sample, 10,000 by default.

    Returns:
        A `Summary`: an Arrow stream, which pyarrow, Polars and DuckDB read, and a table in a terminal and in
        a notebook.

    Raises:
        TableNotFoundError: There is no table at this location.
        VersionNotFoundError: The log does not have the version or the timestamp.
        UnsupportedFeatureError: This version cannot read the table.
        DataFileError: A file cannot be read.
        ValueError: `sample_rows` is less than 1, or `since` is not earlier than the version that is read.

    Example:
        >>> import delta_variant as dv
        >>> rows = [{"event": {"n": 1}}, {"event": {"n": 2}}, {"event": {"n": None}}]
        >>> _ = dv.write_table("clicks", rows, variant_columns=["event"])
        >>> print(dv.describe("clicks").paths[1].types, dv.describe("clicks").paths[1].max)
        {'bigint': 1.0} 2
    """
    limit = to_integer("sample_rows", sample_rows, 1)
    if names_file(source):
        found = describe(open_path(source, "describe", ()), sample_rows=limit)
        return replace(found, source=str(source))
    if isinstance(source, JsonLines):
        return _describe_json(source, limit)
    if isinstance(source, pa.RecordBatchReader):
        return _describe_stream(source, limit)
    snapshot = load_readable(source, version, timestamp)
    summary = _describe_table(snapshot, limit)
    if since is None:
        return summary
    if to_integer("since", since, 0) >= snapshot.version:
        raise ValueError(f"since: expected a version earlier than {snapshot.version}, got {since}")
    before = _describe_table(load_readable(source, since), limit)
    return replace(summary, paths=tuple(_changes(before.paths, summary.paths)), since=since)


def _describe_table(snapshot: Snapshot, limit: int) -> Summary:
    names = _names(snapshot.schema)
    variants = [name for name, kind in names.items() if kind is None]
    sample, files = Sample(names), choose_files(snapshot)
    for batches in read_ranges(snapshot, files, Query.of(snapshot.configuration, None, None), limit):
        sample.add_range(batches)
    columns: dict[tuple[str, Path], str] = {}
    for (column, path), name in (shredded_types(snapshot, files) if variants else {}).items():
        # Variants within structs are values of their column.
        if len(column) == 1:
            columns[column[0], path] = name
    rows, deleted = known_rows(snapshot), count_deleted_rows(snapshot.files)
    why = dict(_reasons(snapshot, sample, variants, columns))
    found = with_analyzed_figures(snapshot, sample.summaries(rows, columns, why))
    paths = _with_exact_figures(snapshot, rows, names, found)
    return Summary(snapshot.uri, snapshot.version, rows, sample.rows, 0, tuple(paths), deleted_rows=deleted)


def _names(columns: StructType) -> dict[str, str | None]:
    """Return the SQL types of columns by name, None for Variants."""
    return {each.name: None if each.type == VARIANT else sql_type(each.type) for each in columns.fields}


def _changes(before: Sequence[PathSummary], after: Sequence[PathSummary]) -> Iterator[PathSummary]:
    """Yield the paths after a change, then those that only were before it."""
    known = {each.path: each for each in before if each.types}
    for each in after:
        earlier = known.pop(each.path, None)
        if earlier is None and each.types:
            yield replace(each, change="new")
        elif earlier is not None and each.types and earlier.types.keys() != each.types.keys():
            yield replace(each, change="changed")
        else:
            yield each
    for each in known.values():
        yield replace(each, filled=0.0, nulls=0.0, column=None, reason=None, change="vanished", exact=())


def _describe_json(source: JsonLines, limit: int) -> Summary:
    sample, invalid = Sample({source.column: None}), 0
    name = next((each.name for each in source.sources if isinstance(each, InputFile)), "an open file")
    for batch, _ in source.batches():
        text = batch.column(0).slice(0, limit - sample.rows)
        variants, wrong = parse_valid_json(
            text, floats=source.json.floats, duplicate_keys=source.json.duplicate_keys
        )
        invalid += len(wrong)
        kept = variants.filter(variants.is_valid())
        sample.add(pa.record_batch([kept], schema=pa.schema([variant_field(source.column)])))
        if sample.rows + invalid >= limit:
            return _summary_of_rows(name, None, sample, invalid)
    return _summary_of_rows(name, sample.rows, sample, invalid)


def _describe_stream(source: pa.RecordBatchReader, limit: int) -> Summary:
    columns = from_arrow(source.schema)
    sample = Sample(_names(columns))
    for batch in source:
        sample.add(parse_json_columns(batch.slice(0, limit - sample.rows), columns))
        if sample.rows >= limit:
            return _summary_of_rows("a stream", None, sample, 0)
    return _summary_of_rows("a stream", sample.rows, sample, 0)


def _summary_of_rows(name: str, rows: int | None, sample: Sample, invalid: int) -> Summary:
    paths = tuple(each for _, each in sample.summaries(rows, {}, {}))
    return Summary(name, None, rows, sample.rows, invalid, paths)


UNLIMITED = 100_000
MAJORITY = 0.75
"""If more than a quarter of the values of a path have other types, its column does not make rows residual."""


def _reasons(
    snapshot: Snapshot, sample: Sample, variants: Collection[str], columns: Collection[tuple[str, Path]]
) -> Iterator[tuple[tuple[str, Path], str]]:
    """Yield why each path in a sample that has scalars is not in `columns`, those with a Parquet column."""
    is_shredded = snapshot.configuration.enables_shredding
    is_shredded = is_shredded and snapshot.configuration.get(properties.COMPATIBILITY) != "unshredded"
    for name in variants:
        arrays = [batch.column(name) for batch in sample.batches]
        worthwhile, frequent = (
            (_inferred(arrays), _inferred(arrays, max_leaves=UNLIMITED))
            if is_shredded and arrays
            else (set(), set())
        )
        for path, types in sample.scalar_paths(name):
            if (name, path) in columns:
                continue
            if not is_shredded:
                reason = "not shredded"
            elif None in path:
                reason = "in an array"
            elif len(path) > MAX_DEPTH:
                reason = "too deep"
            elif max(types.values()) < MAJORITY * types.total():
                reason = "mixed types"
            elif path in worthwhile:
                reason = "small file"
            elif path in frequent:
                reason = "too many"
            else:
                reason = "too rare"
            yield (name, path), reason


def _inferred(arrays: Sequence[Any], max_leaves: int = MAX_LEAVES) -> set[Path]:
    """Return the paths that are worth a column in a file of any size."""
    paths = paths_of(infer_shredding_schema(arrays, max_leaves=max_leaves).field.type)
    return {path for path, arrow_type in paths if not pa.types.is_struct(arrow_type)}


FINER: Mapping[str, pa.DataType] = {
    "tinyint": pa.decimal128(38, 18),
    "smallint": pa.decimal128(38, 18),
    "int": pa.decimal128(38, 18),
    "bigint": pa.decimal128(38, 18),
    "date": pa.timestamp("us"),
}
"""The types whose bounds in the log are values, and types that show whether a Variant has a finer value."""


def _with_exact_figures(
    snapshot: Snapshot,
    rows: int | None,
    columns: Mapping[str, str | None],
    found: Iterable[tuple[tuple[str, Path], PathSummary]],
) -> Iterator[PathSummary]:
    """Yield summaries with the figures of all rows where the log has them.

    `columns` has the SQL type of each column, None for Variants.
    """
    summaries = dict(found)
    if not rows or snapshot.num_files > MAX_FILES:
        yield from summaries.values()
        return
    typed = _typed_paths(snapshot, summaries)
    for (name, path), each in summaries.items():
        kind, expression = columns[name] if not path else typed.get((name, path)), quote(name)
        if path:
            expression = f"{expression}:{each.path[len(name) + 1 :]}::{kind}"
        yield each if kind is None else _with_figures(snapshot, rows, each, expression, kind)


def _with_figures(
    snapshot: Snapshot, rows: int, each: PathSummary, expression: str, kind: str
) -> PathSummary:
    names = {"filled": f"count({expression})"}
    if kind in SIMPLE_TYPES or kind.startswith("decimal("):
        names |= {"min": f"min({expression})", "max": f"max({expression})"}
    known = known_aggregates(snapshot, names)
    figures: dict[str, Any] = {}
    for name, value in known.items():
        if name == "filled":
            filled = value.as_py() / rows
            figures |= {"filled": filled, "nulls": 1 - filled}
        else:
            figures[name] = _text(value)
    others = (name for name in each.exact if name not in figures)
    return replace(each, **figures, exact=(*others, *figures))


def _typed_paths(
    snapshot: Snapshot, summaries: Mapping[tuple[str, Path], PathSummary]
) -> dict[tuple[str, Path], str]:
    """Return the type of each path of a Variant whose bounds in all files are of one type of `FINER`."""
    kinds = {
        (name, path): next(iter(each.types))
        for (name, path), each in summaries.items()
        if path and None not in path and len(each.types) == 1 and each.types.keys() <= FINER.keys()
    }
    # Few paths have bounds: the first file tells.
    for files in (snapshot.files.slice(0, 1), snapshot.files):
        leaves = {key: _leaves(key, kind) for key, kind in kinds.items()}
        every = [leaf for pair in leaves.values() for leaf in pair]
        bounds = file_bounds(snapshot.configuration, files, every)
        for key, (own, finer) in leaves.items():
            if own not in bounds or not _are_whole(bounds[own], bounds[finer]):
                del kinds[key]
    return kinds


def _leaves(key: tuple[str, Path], kind: str) -> tuple[Leaf, Leaf]:
    (name, path) = key
    steps: Any = path
    return Leaf((name,), steps, SIMPLE_TYPES[kind]), Leaf((name,), steps, FINER[kind])


def _are_whole(own: Bounds, finer: Bounds) -> bool:
    """Return whether all files have bounds, which are the same in both types."""
    pairs: list[Any] = [(own.min, finer.min), (own.max, finer.max)]
    equal = (pc.equal(values.cast(others.type), others) for values, others in pairs)
    return all(pc.all(pc.fill_null(each, False)).as_py() for each in equal)


def _text(value: Any) -> str | None:
    text = value.cast(pa.string()).as_py()
    return None if text is None else shorten(text, MAX_CHARACTERS)
