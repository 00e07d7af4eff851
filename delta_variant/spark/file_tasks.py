"""The task that writes rows of a DataFrame to files."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import msgspec
import pyarrow as pa
from pyspark import TaskContext

from ..errors import UnsupportedFeatureError
from ..execution import NameFile
from ..input.invalid_json import Batches, InvalidValueHandler
from ..operations.write import WriteTask, WrittenRows
from ..protocol.identity_columns import assigned_identities
from ..protocol.table_configuration import TableConfiguration
from ..storage import store as storage
from ..storage.store import Store, open_store
from .attempts import Attempt, Job

MAX_OPEN_PARTITIONS = 16
"""Partitions of the table that a task keeps open if its rows are not sorted by partition."""

REJECTS_BYTES = 8 << 20


@dataclass(frozen=True)
class FileTask:
    """Writes the rows of a partition of a DataFrame.

    `rejects` is the folder for rows with invalid JSON, and `write` has the fields by which rejects name the
    write, such as a micro-batch.
    """

    step: ClassVar[str] = "write files"
    task: WriteTask
    rejects: str | None
    storage_options: Mapping[str, str] | None = field(repr=False)
    write: Mapping[str, Any]

    def run(self, store: Store, name: NameFile, batches: Iterator[pa.RecordBatch]) -> Iterator[WrittenRows]:
        """Yield the new files, nothing without rows."""
        written = self.write_groups(store, name, [self.task.apply_rules((batch, None) for batch in batches)])
        if written.files or written.invalid:
            yield written

    def write_groups(self, store: Store, name: NameFile, groups: Iterable[Batches]) -> WrittenRows:
        """Write groups of rows that the rules have passed, each to files of its own."""
        folder = None if self.rejects is None else open_store(self.rejects, self.storage_options)
        context = TaskContext.get()
        with _Rejects(folder, name) as rejects:
            on_invalid, partition = self.task.options.json.on_invalid, context.partitionId() if context else 0
            invalid_values = InvalidValueHandler(on_invalid, rejects.keep, partition, self.write)
            files = self.task.write(store, name, groups, invalid_values)
        return WrittenRows(files, invalid_values.count, rejects.name).compress()


def attempt_of(table: Store, job: Job) -> Attempt:
    """Return a new attempt for the task that runs in this process."""
    context = TaskContext.get()
    return Attempt(table, job, 0 if context is None else context.partitionId())


class _Rejects:
    """Files of rejected values as JSON lines, each of about REJECTS_BYTES."""

    def __init__(self, folder: Store | None, name: NameFile) -> None:
        self._folder = folder
        self._name = name
        self._lines: list[bytes] = []
        self._bytes = 0
        self._files = 0
        self.name: str | None = None

    def __enter__(self) -> _Rejects:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if error is None:
            self._flush()

    def keep(self, reject: dict[str, object]) -> None:
        line = msgspec.json.encode(reject) + b"\n"
        self._lines.append(line)
        self._bytes += len(line)
        if self._bytes >= REJECTS_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._lines and self._folder is not None:
            self.name = f"{self._name(self._files)}.ndjson"
            storage.put(self._folder, self.name, b"".join(self._lines))
            self._files += 1
        self._lines, self._bytes = [], 0


def check_no_identities(table: TableConfiguration, given: Collection[str]) -> None:
    """Raise UnsupportedFeatureError for an identity column that is not in `given`."""
    for identity in assigned_identities(table.schema, given):
        raise UnsupportedFeatureError(
            f"cannot add rows to {table.uri} because merges of large sources and the format delta_variant do "
            f"not assign its identity column {identity.name!r}: add the rows with append or INSERT INTO",
            table=table.uri,
            column=identity.name,
        )
