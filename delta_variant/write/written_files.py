"""The files that a write has written and not yet committed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace

from .._compressed import CompressedSequence, join
from ..data_file.writer import WrittenFile
from ..protocol.actions import AddCDCFile, AddFile, decode_path
from ..read.file_reader import FileEntry

__all__ = ["NO_FILES", "WrittenFiles"]


@dataclass(frozen=True)
class WrittenFiles:
    """Files of a table that are not committed yet: data files, or change data files.

    Attributes:
        files: The description of each file for callers.
        adds: The action that adds each file, in the same order.
        rows: The number of rows in all files.
        bytes: The size of all files.
    """

    files: Sequence[WrittenFile] = ()
    adds: Sequence[AddFile] = ()
    rows: int = 0
    bytes: int = 0

    @classmethod
    def of(cls, files: Sequence[WrittenFile], adds: Sequence[AddFile]) -> WrittenFiles:
        return cls(
            tuple(files), tuple(adds), sum(file.rows for file in files), sum(file.bytes for file in files)
        )

    @classmethod
    def join(cls, parts: Iterable[WrittenFiles]) -> WrittenFiles:
        """Return the files of all parts, compressed if those of a part are."""
        parts = list(parts)
        return cls(
            join(part.files for part in parts),
            join(part.adds for part in parts),
            sum(part.rows for part in parts),
            sum(part.bytes for part in parts),
        )

    def compress(self) -> WrittenFiles:
        """Return the same files with compressed descriptions, which a process can have of very many files."""
        return replace(self, files=CompressedSequence.of(self.files), adds=CompressedSequence.of(self.adds))

    def without(self, paths: Set[str]) -> WrittenFiles:
        """Return the files without those of some paths."""
        if paths.isdisjoint(self.paths()):
            return self
        kept = [each for each in zip(self.files, self.adds, strict=True) if each[0].path not in paths]
        return WrittenFiles.of([file for file, _ in kept], [add for _, add in kept])

    def __len__(self) -> int:
        return len(self.adds)

    def paths(self) -> Iterator[str]:
        """Yield the paths of the files."""
        return (decode_path(add.path) for add in self.adds)

    def entries(self) -> Iterator[FileEntry]:
        """Yield the files as a read takes them."""
        return (
            FileEntry(
                decode_path(add.path),
                add.partition_values,
                size=add.size,
                tags=None if add.tags is None else tuple(add.tags.items()),
            )
            for add in self.adds
        )

    def change_actions(self) -> Iterator[AddCDCFile]:
        """Yield the actions that record the files as change data files."""
        return (
            AddCDCFile(path=add.path, partition_values=add.partition_values, size=add.size, data_change=False)
            for add in self.adds
        )


NO_FILES = WrittenFiles()
