"""Convert Parquet files, or an unshredded Delta table, to a table with shredded Variant columns."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from os import PathLike, fspath

import pyarrow as pa

from .._checks import one_or_more, texts_of
from ..data_file.options import FileOptions, Shredding
from ..errors import SourceError, TableNotFoundError
from ..input.tabular_files import open_parquet
from ..log.commit_context import CommitOptions
from ..log.load import load_snapshot
from ..log.snapshot import Snapshot
from ..storage.inputs import InputFile, is_remote, is_web, list_inputs
from ..storage.store import TableLocation, open_latest, open_store, storage_options_of
from ..storage.uris import local_location
from ..write.commit import WriteResult
from ..write.preparation import load_existing
from .read import read_table
from .write import write_table

SUFFIX = ".parquet"


def convert(
    source: str | PathLike[str] | Sequence[str | PathLike[str]],
    table: TableLocation,
    *,
    variant_columns: Sequence[str] = (),
    partition_by: str | Sequence[str] | None = None,
    configuration: Mapping[str, str] | None = None,
    shredding: Shredding = "infer",
    files: FileOptions | None = None,
    commit: CommitOptions | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> WriteResult:
    """Write the rows of Parquet files or a Delta table to a new table with shredded Variants.

    The table appears with one commit, and the source is not changed. Columns in the names of Hive partition
    folders (`day=2026-11-21/`) become columns, which are integers if all of their values are, and strings
    otherwise. A Parquet column with `metadata`, `value` and perhaps `typed_value` is a Variant. Table
    properties, constraints and column mapping of a Delta source are not copied.

    Args:
        source: A Delta table; or Parquet files, folders of them, globs, and URIs.
        table: The path or URI of the new table.
        variant_columns: The names of columns with JSON text that become Variants. Empty by default.
        partition_by: The partition columns of the new table. None, the default, takes those of the source.
        configuration: Table properties of the new table. None by default.
        shredding: How to shred Variants, as in `write_table`. `"infer"` by default.
        files: How new files are written. None, the default, uses the defaults of `FileOptions`.
        commit: What the commit records for its caller. None, the default, records nothing.
        storage_options: Options of the object store of the source, with the keys of deltalake. None, the
            default, takes those of the handle `table`.

    Returns:
        A `WriteResult` with the number of rows and the new files.

    Raises:
        TableExistsError: There is a table at `table`.
        SourceNotFoundError: The source does not exist, or has no Parquet file.
        SourceError: A file cannot be read.
        SchemaError: Files have columns of different types, or a type that Delta does not have.
        InvalidJsonError: A value of `variant_columns` is not valid JSON.
        UnsupportedFeatureError: This version cannot read the Delta source.
        ArgumentTypeError: An argument has the wrong type.
        ValueError: An argument has an invalid value.

    Example:
        >>> import tempfile
        >>> import pyarrow as pa
        >>> import pyarrow.parquet as pq
        >>> from delta_variant import convert
        >>> folder = tempfile.mkdtemp()
        >>> pq.write_table(pa.table({"event": ['{"id": 7}']}), f"{folder}/events.parquet")
        >>> convert(f"{folder}/events.parquet", f"{folder}/table", variant_columns=["event"]).rows
        1
    """
    texts_of("names", "variant_columns", variant_columns)
    paths = [fspath(each) for each in ([source] if isinstance(source, str | PathLike) else source)]
    if storage_options is None:
        storage_options = storage_options_of(table)
    load_existing(open_latest(table), "error", remedies=())
    delta = _delta_table(paths, storage_options)
    rows, partitions = _parquet(paths, storage_options) if delta is None else _delta(delta)
    return write_table(
        table,
        rows,
        variant_columns=variant_columns,
        partition_by=partitions
        if partition_by is None
        else one_or_more("names", "partition_by", partition_by),
        configuration=configuration,
        shredding=shredding,
        files=files,
        commit=commit,
    )


def _delta_table(paths: Sequence[str], storage_options: Mapping[str, str] | None) -> Snapshot | None:
    """Return the source if it is a Delta table, None if it consists of Parquet files."""
    found = []
    for path in paths:
        if _may_be_table(path):
            try:
                found.append(load_snapshot(open_store(path, storage_options)))
            except TableNotFoundError:
                continue
    if found and len(paths) > 1:
        raise SourceError(
            f"cannot convert {found[0].uri} together with other sources: convert one Delta table"
        )
    return found[0] if found else None


def _may_be_table(path: str) -> bool:
    if is_remote(path):
        return not path.endswith(SUFFIX) and "*" not in path
    return not is_web(path) and os.path.isdir(local_location("the source", path))


def _delta(snapshot: Snapshot) -> tuple[pa.RecordBatchReader, Sequence[str]]:
    return read_table(snapshot).to_reader(), snapshot.partition_columns


def _parquet(
    paths: Sequence[str], storage_options: Mapping[str, str] | None
) -> tuple[pa.RecordBatchReader, Sequence[str]]:
    files = list_inputs(paths, [SUFFIX], storage_options)
    return open_parquet(files, hive=True), _hive_columns(files)


def _hive_columns(files: Sequence[InputFile]) -> list[str]:
    folders = (folder for file in files for folder in file.path.split("/")[:-1])
    return list(dict.fromkeys(folder.split("=", 1)[0] for folder in folders if "=" in folder))
