"""Warn of a misspelt path, which is NULL in every row, as SQL defines it."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing

import msgspec
import pyarrow as pa

from .._arrow import Array
from .._checks import nearest
from .._logging import get_logger
from ..expressions.tree import Call, Expression, Extraction, describe, is_whole
from ..expressions.tree import inputs as expression_inputs
from ..log.file_set import FileSet
from ..log.snapshot import TableVersion
from ..variant.functions import variant_keys
from ..variant.values import VARIANT_TYPE, extract
from .file_reader import files_of
from .log_statistics import file_bounds
from .plan import prune_files
from .predicate import leaf_of
from .query import Query
from .rows import RowBatches, read_files

_LOGGER = get_logger(__name__)

SAMPLE_ROWS = 256
MAX_FILES = 1_000
"""A table of more files is not searched for the sake of a warning."""


def watch_paths(table: TableVersion, files: FileSet, query: Query, batches: RowBatches) -> RowBatches:
    """Yield the rows of a query, and warn of misspelt paths once all rows were read."""
    outputs = {
        name: each
        for name, each in query.outputs.items()
        if isinstance(each, Extraction) and not is_whole(each)
    }
    is_empty = True
    with closing(batches):
        for batch in batches:
            is_empty = is_empty and not batch.num_rows
            for name in [name for name in outputs if batch.column(name).null_count < batch.num_rows]:
                del outputs[name]
            yield batch
    suspects = [query.predicate] if is_empty and query.predicate is not None else [*outputs.values()]
    warn_of_missing_paths(table, files, suspects)


def warn_of_missing_paths(table: TableVersion, files: FileSet, expressions: Iterable[Expression]) -> None:
    """Log a warning for each path that no file has, if the first rows have one of a similar name."""
    if files.num_files > MAX_FILES:
        return
    for each in expression_inputs(expressions):
        if not isinstance(each, Extraction) or _has_bounds(table, files, each):
            continue
        if (close := _close_path(table, files, each)) is not None:
            missing, proposal = (describe(_whole(each, path)) for path in close)
            _LOGGER.warning(
                "%s: no file has a value of `%s`: did you mean `%s`?", table.uri, missing, proposal
            )


def _has_bounds(table: TableVersion, files: FileSet, wanted: Extraction) -> bool:
    """Return whether statistics prove that a file has a path, so that no file is read."""
    leaf = leaf_of(wanted)
    known = {} if leaf is None else file_bounds(table.configuration, files.table, [leaf])
    return any(each.min.null_count < len(each.min) for each in known.values())


Steps = tuple[str | int, ...]


def _close_path(table: TableVersion, files: FileSet, wanted: Extraction) -> tuple[Steps, Steps] | None:
    """Return the start of a path that no row has, and a similar one that a row of the sample has."""
    values = None
    for length, step in enumerate(wanted.path):
        if isinstance(step, int):
            continue
        values = _sample(table, files, wanted) if values is None else values
        start = wanted.path[:length]
        keys: Array = variant_keys(extract(values, start, None, strict=False)).flatten().unique()
        names = keys.to_pylist()
        if step in names:
            continue
        close, path = nearest(step, names), (*start, step)
        return None if close is None or _exists(table, files, wanted, path) else (path, (*start, close))
    return None


def _whole(wanted: Extraction, path: Steps) -> Extraction:
    return msgspec.structs.replace(wanted, path=path, type=None, as_json=False)


def _sample(table: TableVersion, files: FileSet, wanted: Extraction) -> Array:
    query = Query.of_expressions({"value": _whole(wanted, ())}, None)
    with closing(read_files(table, query, files_of(files.table.slice(0, 1)), None, ahead=False)) as rows:
        batch = next(rows, None)
    return pa.nulls(0, VARIANT_TYPE) if batch is None else batch.column(0).slice(0, SAMPLE_ROWS)


def _exists(table: TableVersion, files: FileSet, wanted: Extraction, path: Steps) -> bool:
    is_null = Call("is null", (_whole(wanted, path),), pa.bool_())
    present = Call("not", (is_null,), pa.bool_())
    plan = prune_files(table.configuration, files, present)
    query = Query.of_expressions({}, present)
    with closing(read_files(table, query, files_of(plan.files), plan.pruning_predicate, ahead=False)) as rows:
        return any(batch.num_rows for batch in rows)
