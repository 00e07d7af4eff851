"""The source of a stream: the files of one version in order, then those that each later commit adds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from ..errors import SchemaError, UnsupportedFeatureError
from ..log.commits import read_commits
from ..log.load import load_snapshot
from ..log.snapshot import Snapshot
from ..protocol import features
from ..protocol.actions import Action, AddFile, Metadata, Protocol, RemoveFile, decode_path
from ..protocol.schema.json_text import parse as parse_schema
from ..scan.reader import FileEntry, files_of
from ..storage.store import Store

__all__ = ["Follower", "Position", "Step"]


@dataclass(frozen=True)
class Position:
    """The progress of a stream: `index` files of those that a version adds, or contains if `is_initial`."""

    version: int
    index: int = 0
    is_initial: bool = False

    @classmethod
    def of(cls, offset: dict[str, Any]) -> Position:
        """Return the position of an offset in a checkpoint of Spark."""
        return cls(**offset)

    @property
    def offset(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Step:
    """A file, or None for the end of a version, and the position after it."""

    file: FileEntry | None
    size: int
    after: Position


@dataclass(frozen=True)
class Follower:
    """Follows a table, whose schema must stay that of `snapshot`."""

    store: Store
    snapshot: Snapshot

    def latest(self) -> int:
        """Return the latest version."""
        return load_snapshot(self.store).version

    def steps(self, start: Position, last: int | None = None) -> Iterator[Step]:
        """Yield the steps after a position, up to and including the version `last`.

        Raises UnsupportedFeatureError for a commit that changes or removes rows, and SchemaError for one that
        changes the schema.
        """
        if start.is_initial:
            yield from self._files_of_version(start)
            start = Position(start.version + 1)
        for version, actions in read_commits(self.store, start.version - 1):
            if last is not None and version > last:
                return
            yield from self._added_files(version, actions, start.index if version == start.version else 0)

    def _files_of_version(self, start: Position) -> Iterator[Step]:
        files = load_snapshot(self.store, start.version).files.sort_by("path")
        sizes = files["size"].to_pylist()
        for number, (file, size) in enumerate(zip(files_of(files), sizes, strict=True)):
            if number >= start.index:
                yield Step(file, size or 0, Position(start.version, number + 1, True))
        yield Step(None, 0, Position(start.version + 1))

    def _added_files(self, version: int, actions: list[Action], first: int) -> Iterator[Step]:
        for action in actions:
            self._check(version, action)
        added = [action for action in actions if isinstance(action, AddFile) and action.data_change]
        for number, add in enumerate(added[first:], first):
            yield Step(_data_file(add), add.size, Position(version, number + 1))
        yield Step(None, 0, Position(version + 1))

    def _check(self, version: int, action: Action) -> None:
        if isinstance(action, RemoveFile) and action.data_change:
            raise UnsupportedFeatureError(
                f"cannot stream version {version} of {self.store.uri} because it changes or removes rows, "
                "and a stream reads only appends: start a new query, of the whole table or with "
                f"starting_version={version + 1}",
                table=self.store.uri,
                version=version,
            )
        if isinstance(action, Protocol):
            features.check_may_read(action, self.snapshot.schema, self.store.uri)
        if isinstance(action, Metadata) and parse_schema(action.schema_string) != self.snapshot.schema:
            raise SchemaError(
                f"version {version} of {self.store.uri} changes the schema: restart the query to continue "
                "with the new schema",
                table=self.store.uri,
                version=version,
            )


def _data_file(add: AddFile) -> FileEntry:
    vector = None if add.deletion_vector is None else msgspec.structs.asdict(add.deletion_vector)
    return FileEntry(decode_path(add.path), add.partition_values, vector)
