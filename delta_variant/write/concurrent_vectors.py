"""Rebase a commit on top of others that marked rows of the same files, with vectors of the rows of both.

A concurrent commit that marks rows of a file removes the file and adds it again with another deletion vector.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from ..data_file.reader import RowRange
from ..errors import DeltaVariantError
from ..log.conflicts import RowReads, Vector
from ..log.deletion_vectors import file_path, subtract_rows
from ..log.file_tables import files_table, path_keys
from ..log.pending_commit import RebasedFiles
from ..log.snapshot import TableVersion
from ..protocol.actions import AddFile, decode_path, file_key
from ..read.file_reader import load_deleted
from ..storage.store import discard
from .deletion_vectors import VectorWriter


class AddedAgain(msgspec.Struct, frozen=True):
    """A file that another commit added again with another vector.

    The serialized vectors are `rows_before`, None without deleted rows, and `rows_after`. `deleted` are the
    rows that only the new one has.
    """

    before: Vector
    after: AddFile
    rows_before: bytes | None
    rows_after: bytes | None
    deleted: Sequence[RowRange]

    @property
    def key(self) -> str:
        return file_key(self.after)[0]


class ConcurrentVectors(RowReads):
    """The files that a commit read, and the vectors that it writes again after a lost race."""

    def __init__(self, table: TableVersion) -> None:
        self._table = table
        self._others: dict[str, AddFile] = {}
        """The latest actions of other commits on files whose rows this commit moves or marks, by path key."""
        self._is_rebased = True
        self._files = RebasedFiles()
        self._written: tuple[str, ...] = ()

    def find_conflict(self, before: Vector, after: AddFile) -> str | None:
        """Return the conflict with a concurrent commit that added a file again, None if its rows permit it.

        Args:
            before: The deletion vector that the operation read.
            after: The action of the concurrent commit.
        """
        path = decode_path(after.path)
        try:
            read, other = (load_deleted(self._table, each) for each in (before, after.deletion_vector))
            if subtract_rows(read, other):
                return f"returned deleted rows of {path}, which this operation read"
            if not self._may_follow(AddedAgain(before, after, read, other, subtract_rows(other, read))):
                return f"deleted rows of {path}, which this operation read"
        except DeltaVariantError as error:
            return f"changed {path}, and its rows cannot be compared: {error.message}"
        return None

    def rebase(self, files: RebasedFiles) -> RebasedFiles:
        """Return the files with the vectors of both commits, which are written to the table."""
        if self._is_rebased:
            return files
        vectors = VectorWriter(self._table.store)
        try:
            adds = list(self._adds(vectors))
            written = vectors.close()
        except BaseException:
            vectors.discard()
            raise
        discard(self._table.store, self._written)
        self._written, self._is_rebased = written, True
        _, unchanged = split_files(files.before, self._others)
        before = pa.concat_tables([unchanged, files_table([*self._others.values()])])
        self._files = RebasedFiles(before, adds, self._count(before, adds))
        return self._files

    @property
    def metrics(self) -> Mapping[str, int]:
        """Return the metrics of the commit that a rebase changed."""
        return self._files.metrics

    def paths(self) -> Sequence[str]:
        """Return the paths of the vectors that a rebase wrote."""
        return self._written

    def find_unused(self, paths: Iterable[str]) -> Collection[str]:
        """Return those of some files of vectors that a rebase replaced completely."""
        if not self._others:
            return ()
        vectors = (add.deletion_vector for add in self._files.after)
        return set(paths).difference(file_path(each) or "" for each in vectors if each is not None)

    @abstractmethod
    def divide(
        self, removed: pa.Table, adds: Sequence[AddFile]
    ) -> tuple[pa.Table, Sequence[AddFile], RebasedFiles]:
        """Divide removed and added files into those that stay the same after a lost race, and the others.

        `removed` are rows of `Snapshot.files`.
        """

    @abstractmethod
    def may_match(self, adds: Sequence[AddFile]) -> bool:
        """Return whether files that other commits add may have a row that the operation has to see."""

    @abstractmethod
    def _may_follow(self, file: AddedAgain) -> bool:
        """Return whether the commit can follow one that deleted rows of a file."""

    @abstractmethod
    def _adds(self, vectors: VectorWriter) -> Iterator[AddFile]:
        """Yield the actions of all files that the commit adds on top of the others."""

    @abstractmethod
    def _count(self, removed: pa.Table, adds: Sequence[AddFile]) -> Mapping[str, int]:
        """Return metrics of a commit that removes some files and adds others."""

    def _follow(self, other: AddFile) -> None:
        """Let the next attempt follow an action of another commit."""
        self._others[file_key(other)[0]] = other
        self._is_rebased = False


def split_files(files: pa.Table, keys: Collection[str]) -> tuple[pa.Table, pa.Table]:
    """Return the files, rows of `Snapshot.files`, whose path keys are among some, and the others."""
    wanted = pa.array(list(keys), pa.string())
    masks = [pc.is_in(path_keys(batch), value_set=wanted) for batch in files.to_batches()]
    mask = pa.chunked_array(masks, pa.bool_())
    return files.filter(mask), files.filter(pc.invert(mask))
