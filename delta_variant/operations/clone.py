"""Clone a table: a new table with the files of one of its versions, copied or referred to."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, cast
from uuid import UUID, uuid4

import msgspec
import pyarrow as pa

from .._progress import advance, begin
from .._threads import Threads
from ..errors import StoreError, UnsupportedFeatureError
from ..execution import Executor, NameFile, executor_of, new_name
from ..log import transaction
from ..log.commit_context import CommitContext, CommitOptions, CommitResult, commit_context, without_txn
from ..log.deletion_vectors import file_path
from ..log.file_tables import FILES_SCHEMA
from ..log.load import load_snapshot
from ..log.snapshot import Snapshot
from ..log.timestamps import Timestamp
from ..protocol import features, properties, z85
from ..protocol.actions import CLUSTERING_DOMAIN, encode_path, is_absolute
from ..protocol.table_configuration import TableConfiguration
from ..storage.store import (
    RememberedTable,
    Store,
    TableLocation,
    absolute_path,
    copy,
    discard,
    exists,
    open_store,
    removing_new_folders,
    storage_options_of,
    table_uri,
)
from ..write.commit import NOT_COMMITTED
from ..write.preparation import load_existing
from ..write.table_changes import name_row_id_columns

BYTES_OF_TASK = 1 << 30
"""The size of the files that a task copies."""

COPIES_AT_ONCE = 8
"""The files that a task copies at once; each that the store does not copy itself needs up to 48 MiB."""

NOT_CLONED = ("encoded_path", "base_row_id", "default_row_commit_version")
"""The columns of `Snapshot.files` that the clone decides itself."""

LOG_PROPERTIES = (
    properties.CHECKPOINT_PROTECTION_VERSION.name,
    properties.IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION.name,
    properties.IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP.name,
)
"""Properties that name versions of the log of the source."""


@dataclass(frozen=True, repr=False)
class CloneResult(CommitResult):
    """The result of a clone.

    Attributes:
        version: The version of the clone, which is 0.
        metrics: The metrics of the commit.
        cloned: The version of the source that was cloned.
        files: The number of data files.
        bytes: The size of the data files, in bytes.

    Example:
        >>> import delta_variant as dv
        >>> _ = dv.write_table("clicks", [{"id": 1}])
        >>> result = dv.clone("clicks", "copy_of_clicks")
        >>> result.version, result.cloned, result.files
        (0, 0, 1)
    """

    cloned: int
    files: int
    bytes: int


def clone(
    table: TableLocation | Snapshot,
    target: TableLocation,
    *,
    shallow: bool = False,
    version: int | None = None,
    timestamp: Timestamp | None = None,
    commit: CommitOptions | None = None,
) -> CloneResult:
    """Create a table with the rows, schema, properties and features of another table, without its history.

    A deep clone, the default, copies the data files, and is independent of the source. A shallow clone copies
    the log alone, and refers to the files of the source: a vacuum of the source can delete files that the
    clone needs, a vacuum of the clone deletes only files of the clone, and each table is written on its own.
    Only handles with the storage option `allow_paths_outside_table` read a shallow clone.

    As in Delta on Spark, clustering columns are cloned, and rows get new row ids. Names, transactions of
    applications and other metadata domains are not cloned.

    Args:
        table: A path, a URI, a `Table`, a `deltalake.DeltaTable` or a `Snapshot`: the source.
        target: The path or the URI of the clone, or its handle. A path uses the storage options of `table`.
        shallow: Refer to the files of the source instead of copying them. False by default.
        version: The version to clone. None, the default, clones the latest one.
        timestamp: A timezone-aware datetime or an ISO 8601 string, instead of `version`. It selects the
            latest version that was committed at that time or before it.
        commit: The metadata of the commit; see `CommitOptions`. None, the default, sets none.

    Returns:
        A `CloneResult` with the version that was cloned, and the number and size of its files.

    Raises:
        TableExistsError: There is a table at `target`.
        TableNotFoundError: There is no Delta log at `table`.
        VersionNotFoundError: The source does not have the version.
        UnsupportedFeatureError: This version cannot write a table with the features of the source, or a
            catalog manages the source.
        StoreError: A file of the source is missing, for example after a vacuum, or cannot be copied.
        ValueError: `version` and `timestamp` are given, or `commit` has a `txn`.

    Example:
        >>> import delta_variant as dv
        >>> _ = dv.write_table("events", [{"id": 1}])
        >>> _ = dv.write_table("events", [{"id": 2}], mode="append")
        >>> _ = dv.clone("events", "events_before", version=0)
        >>> dv.read_table("events_before").to_pylist()
        [{'id': 1}]
    """
    commit = without_txn(commit, "clone")
    source = load_snapshot(table, version, timestamp=timestamp)
    location = _locate_clone(table, target)
    store = open_store(location)
    _check_source(source)
    load_existing(store, "error", remedies=())
    after = _configure_clone(source, store)
    moved = _MovedFiles(source.store, is_shallow=shallow)
    files = moved.move(source.files)
    domains = [each for each in source.domain_metadata.values() if each.domain == CLUSTERING_DOMAIN]
    context = _commit_context(source, commit, is_shallow=shallow)
    with removing_new_folders(store):
        _copy_files(moved.copies, store, location, executor_of(table, source.store, "CLONE"))
        try:
            created = transaction.create_table(store, after, files, context=context, domains=domains)
        except NOT_COMMITTED:
            discard(store, (file.new_path for file in moved.copies))
            raise
    return CloneResult(created, source.version, source.num_files, source.num_bytes, metrics=context.metrics)


def _commit_context(source: Snapshot, commit: CommitOptions, *, is_shallow: bool) -> CommitContext:
    parameters = {
        "source": f"delta.`{absolute_path(source.store, '').rstrip('/')}`",
        "sourceVersion": source.version,
        "isShallow": is_shallow,
    }
    metrics = {
        "sourceTableSize": source.num_bytes,
        "sourceNumOfFiles": source.num_files,
        "numRemovedFiles": 0,
        "removedFilesSize": 0,
        "numCopiedFiles": 0 if is_shallow else source.num_files,
        "copiedFilesSize": 0 if is_shallow else source.num_bytes,
    }
    return commit_context("CLONE", parameters, metrics, commit)


def _locate_clone(table: TableLocation | Snapshot, target: TableLocation) -> TableLocation:
    """Return the location of the clone with its storage options, as it can be sent to tasks."""
    if isinstance(target, Store):
        return target
    options, engine = storage_options_of(target), getattr(table, "engine", None)
    if engine is not None:
        target = engine.locate(target)
        options = engine.storage_options(target, options)
    elif options is None and not isinstance(table, Snapshot):
        options = storage_options_of(table)
    return RememberedTable(table_uri(target), options)


def _check_source(source: Snapshot) -> None:
    source.configuration.check_may_commit()
    if source.configuration.supports(features.CATALOG_MANAGED):
        raise UnsupportedFeatureError(
            f"cannot clone {source.uri} because a catalog manages it and has to create its clones: write its "
            "rows to a new table with convert",
            table=source.uri,
        )


def _configure_clone(source: Snapshot, store: Store) -> TableConfiguration:
    """Return the table of the source with an id of its own, without what names versions or rows of it."""
    configuration = {name: text for name, text in source.properties.items() if name not in LOG_PROPERTIES}
    new_names = name_row_id_columns()
    configuration |= {name: text for name, text in new_names.items() if name in configuration}
    metadata = msgspec.structs.replace(
        source.metadata, id=str(uuid4()), name=None, description=None, configuration=configuration
    )
    return replace(source.configuration, uri=store.uri, metadata=metadata)


class FileCopy(NamedTuple):
    """A file of the source, its path in the clone, and its size, 0 if it is unknown."""

    path: str
    new_path: str
    size: int


@dataclass
class _MovedFiles:
    """The paths of files in the clone: absolute ones in a shallow clone, those of copies in a deep one.

    A copy has a new name in the folder of the file, so that no other clone to the same place has it.
    """

    store: Store
    is_shallow: bool
    copies: list[FileCopy] = field(default_factory=list)
    _vectors: dict[str, UUID] = field(default_factory=dict)

    def move(self, files: pa.Table) -> pa.Table:
        """Return rows of `Snapshot.files` with the paths in the clone, and without row ids."""
        batches = [self._move_batch(batch) for batch in files.to_batches()]
        return pa.Table.from_batches(batches, FILES_SCHEMA)

    def _move_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        names = ("path", "size", "deletion_vector")
        paths, sizes, vectors = (cast(Any, batch[name].to_pylist()) for name in names)
        moved: dict[str, list[Any]] = {
            "path": [self._move_file(path, size) for path, size in zip(paths, sizes, strict=True)],
            "deletion_vector": [vector and self._move_vector(vector) for vector in vectors],
            **dict.fromkeys(NOT_CLONED, [None] * batch.num_rows),
        }
        for name, values in moved.items():
            index = FILES_SCHEMA.get_field_index(name)
            column = FILES_SCHEMA.field(index)
            batch = batch.set_column(index, column, pa.array(values, column.type))
        return batch

    def _move_file(self, path: str, size: int) -> str:
        if self.is_shallow:
            return absolute_path(self.store, path)
        folder = "" if _is_outside(path) else posixpath.dirname(path)
        new_path = posixpath.join(folder, f"{new_name(len(self.copies))}.parquet")
        self.copies.append(FileCopy(path, new_path, size))
        return new_path

    def _move_vector(self, vector: dict[str, Any]) -> dict[str, Any]:
        path = file_path(vector)
        if path is None:
            return vector
        if self.is_shallow:
            text = encode_path(absolute_path(self.store, path))
            return {**vector, "storage_type": "p", "path_or_inline_dv": text}
        # Vectors of many data files share a file.
        if path not in self._vectors:
            self._vectors[path] = uuid4()
            self.copies.append(FileCopy(path, f"deletion_vector_{self._vectors[path]}.bin", 0))
        text = z85.encode(self._vectors[path].bytes)
        return {**vector, "storage_type": "u", "path_or_inline_dv": text}


def _is_outside(path: str) -> bool:
    return is_absolute(path) or posixpath.normpath(path).startswith("../")


def _copy_some(clone: TableLocation, files: Sequence[FileCopy], store: Store, name: NameFile) -> None:
    """Copy files to the clone; a run that is repeated replaces them by the same content."""
    target = open_store(clone)
    with Threads(COPIES_AT_ONCE) as threads:
        done = threads.map(lambda file: copy(store, file.path, target, file.new_path), files)
        for file, _ in zip(files, done, strict=True):
            advance(files=1, bytes_=file.size)


def _copy_files(files: Sequence[FileCopy], store: Store, clone: TableLocation, executor: Executor) -> None:
    """Copy files to the clone; after an error, remove the copies."""
    if not files:
        return
    size = sum(file.size for file in files)
    begin("copying", files=len(files), bytes_=size)
    groups = executor.split(files, lambda file: file.size, limit=BYTES_OF_TASK, total=size)
    try:
        for _ in executor.run("copy files", (partial(_copy_some, clone, tuple(group)) for group in groups)):
            pass
        _check_shared(store, files)
    except BaseException:
        discard(store, (file.new_path for file in files))
        raise


def _check_shared(store: Store, files: Sequence[FileCopy]) -> None:
    """Raise StoreError if tasks copied files to disks of their own, where this process does not find them."""
    if store.local_root is None:
        return
    for file in files:
        if not exists(store, file.new_path):
            raise StoreError(
                f"cannot clone to {store.uri} because the driver does not find {file.new_path}, which a task "
                "copied: executors have a disk of their own there; pass the URI of an object store, or of a "
                "mount that every machine has",
                table=store.uri,
                file=file.new_path,
            )
