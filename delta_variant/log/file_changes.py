"""The files that a commit removes and adds, and their lines in the commit file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from types import TracebackType
from typing import BinaryIO, cast

import msgspec
import pyarrow as pa

from ..protocol.actions import Action, AddCDCFile, AddFile, RemoveFile, encode_commit
from .file_tables import FILES_SCHEMA, add_actions, files_table, remove_actions

__all__ = ["CommitText", "FileChanges"]

_ACTIONS_AT_ONCE = 1000
_ROWS_AT_ONCE = 20_000
_LARGEST_IN_MEMORY = 16 << 20
_COPIED_BYTES = 1 << 20


class FileChanges(msgspec.Struct, frozen=True):
    """The files that a commit removes and adds.

    `removed` are rows of `Snapshot.files`. They are removed at `removed_at`, in milliseconds since 1970.
    `added` are actions, or rows of `Snapshot.files`, which need less memory. `data_change=False` states that
    the rows of the table stay the same. `changes` are change data files, and are iterated over once.
    """

    added: Sequence[AddFile] | pa.Table = ()
    removed: pa.Table = pa.Table.from_batches([], FILES_SCHEMA)
    removed_at: int = 0
    data_change: bool = True
    changes: Iterable[AddCDCFile] = ()

    def adds(self) -> Iterator[AddFile]:
        """Yield the actions of the added files."""
        added = add_actions(self.added) if isinstance(self.added, pa.Table) else self.added
        return (msgspec.structs.replace(add, data_change=self.data_change) for add in added)

    def removes(self) -> Iterator[RemoveFile]:
        """Yield the actions of the removed files."""
        return remove_actions(self.removed, self.removed_at, data_change=self.data_change)

    def added_table(self) -> pa.Table:
        """Return the added files as rows of `Snapshot.files`; those of actions have no statistics."""
        if isinstance(self.added, pa.Table):
            return self.added
        starts = range(0, len(self.added), _ROWS_AT_ONCE)
        return pa.concat_tables(
            [
                pa.Table.from_batches([], FILES_SCHEMA),
                *(files_table(_without_stats(self.added[row : row + _ROWS_AT_ONCE])) for row in starts),
            ]
        )


def _without_stats(adds: Iterable[AddFile]) -> list[AddFile]:
    return [msgspec.structs.replace(add, stats=None) for add in adds]


class CommitText:
    """Lines of a commit file, which are in a temporary file if they are long.

    They are encoded while they are added, so that the actions need not be in memory at the same time.
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._file: BinaryIO | None = None

    def __enter__(self) -> CommitText:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, actions: Iterable[Action]) -> list[Action]:
        """Append the lines of actions, and return those that are not on files."""
        others: list[Action] = []
        remaining = iter(actions)
        while some := list(islice(remaining, _ACTIONS_AT_ONCE)):
            self._append(encode_commit(some))
            others += [action for action in some if not isinstance(action, (AddFile, RemoveFile))]
        return others

    def extend(self, other: CommitText) -> None:
        """Append the lines of another text."""
        for part in other.parts():
            self._append(part)

    def parts(self) -> Iterator[bytes]:
        """Yield the text in parts."""
        if self._file is None:
            yield from self._parts
            return
        self._file.seek(0)
        while part := self._file.read(_COPIED_BYTES):
            yield part

    def content(self) -> bytes | BinaryIO:
        """Return the text: bytes, or the temporary file."""
        if self._file is None:
            return b"".join(self._parts)
        self._file.flush()
        return self._file

    def _append(self, data: bytes) -> None:
        if self._file is None and self._size + len(data) > _LARGEST_IN_MEMORY:
            self._file = cast(BinaryIO, tempfile.TemporaryFile(prefix="delta-variant-commit-"))  # noqa: SIM115
            self._file.writelines(self._parts)
            self._parts.clear()
        self._size += len(data)
        if self._file is None:
            self._parts.append(data)
        else:
            self._file.write(data)
