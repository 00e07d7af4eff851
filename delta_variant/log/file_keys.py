"""Identify logical files, and drop those that later commits touch (PROTOCOL.md, "Action Reconciliation")."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import accumulate
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from .. import _native
from ..protocol.actions import LOCAL_ROOT, LOCAL_URI

__all__ = ["DropFiles", "FileKey", "FileKeys", "drop_files", "drop_files_at_once", "path_keys"]

FileKey: TypeAlias = tuple[str, str | None]
"""The key of a logical file: its path as `path_key` returns it, and the id of its deletion vector."""

DropFiles: TypeAlias = Callable[[pa.RecordBatch], pa.RecordBatch]

_MOST_CHUNKS = 64


def _no_texts() -> pa.ChunkedArray[Any]:
    return pa.chunked_array([], pa.string())


class FileKeys(msgspec.Struct, frozen=True):
    """Keys of logical files, which may have duplicates.

    Most files have no deletion vector, so that their paths identify them: `paths`. `texts` are the keys of
    the others, as `_key_texts` returns them.
    """

    paths: pa.ChunkedArray[Any] = msgspec.field(default_factory=_no_texts)
    texts: pa.ChunkedArray[Any] = msgspec.field(default_factory=_no_texts)

    @classmethod
    def of(cls, keys: Collection[FileKey]) -> FileKeys:
        """Return the keys of actions."""
        paths = pa.array([path for path, unique_id in keys if unique_id is None], pa.string())
        texts = pa.array([_key_text(*key) for key in keys if key[1] is not None], pa.string())
        return cls(pa.chunked_array([paths]), pa.chunked_array([texts]))

    @classmethod
    def of_table(cls, files: pa.Table) -> FileKeys:
        """Return the keys of the rows of a table with the columns `path` and `deletion_vector`."""
        paths, texts = [], []
        for batch in files.select(["path", "deletion_vector"]).to_batches():
            is_plain = pc.is_null(batch["deletion_vector"])
            paths.append(path_keys(batch).filter(is_plain))
            if is_plain.true_count < batch.num_rows:
                texts.append(_key_texts(batch.filter(pc.invert(is_plain))))
        return cls(pa.chunked_array(paths, pa.string()), pa.chunked_array(texts, pa.string()))

    def __len__(self) -> int:
        return len(self.paths) + len(self.texts)

    @property
    def has_duplicates(self) -> bool:
        """Return whether two of the keys are equal."""
        return any(pc.count_distinct(keys).as_py() < len(keys) for keys in (self.paths, self.texts))

    def union(self, other: FileKeys) -> FileKeys:
        """Return the keys of both."""
        return FileKeys(_union(self.paths, other.paths), _union(self.texts, other.texts))


def _union(one: pa.ChunkedArray[Any], other: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    chunks = [chunk for chunk in (*one.chunks, *other.chunks) if len(chunk)]
    joined: Any = pa.chunked_array(chunks, pa.string())
    return joined if len(chunks) <= _MOST_CHUNKS else pa.chunked_array([pc.unique(joined)])


def drop_files(keys: FileKeys) -> DropFiles:
    """Return a function that drops files from a batch, which it does not copy if it has none of them.

    The batch has the columns `path` and `deletion_vector`, and any others.
    """
    if not keys:
        return lambda batch: batch
    return lambda batch: _drop(batch, *_are_in([batch], keys))


def drop_files_at_once(batches: Iterable[pa.RecordBatch], keys: FileKeys) -> list[pa.RecordBatch]:
    """Drop files from batches as `drop_files` does, but hash the keys once for all of them."""
    present = list(batches)
    if not keys or not present:
        return present
    return [_drop(batch, mask) for batch, mask in zip(present, _are_in(present, keys), strict=True)]


def _drop(batch: pa.RecordBatch, dropped: pa.BooleanArray) -> pa.RecordBatch:
    if not dropped.true_count:
        return batch
    remaining: pa.RecordBatch = _native.filter_rows(batch, pc.invert(dropped))
    return remaining


def _are_in(batches: Sequence[pa.RecordBatch], keys: FileKeys) -> list[pa.BooleanArray]:
    """Return for each batch, of which there is at least one, the files that the keys identify."""
    paths = pa.chunked_array([path_keys(batch) for batch in batches], pa.string())
    vectors = pa.chunked_array([batch["deletion_vector"] for batch in batches])
    found: Any = pc.and_(pc.is_in(paths, value_set=keys.paths), pc.is_null(vectors))
    if len(keys.texts) and vectors.null_count < len(vectors):
        texts = pa.chunked_array([_key_texts(batch) for batch in batches], pa.string())
        found = pc.or_(found, pc.is_in(texts, value_set=keys.texts))
    mask = pa.concat_arrays([pa.array([], pa.bool_()), *found.chunks])
    sizes = [batch.num_rows for batch in batches]
    starts = accumulate(sizes, initial=0)
    return [mask.slice(start, size) for start, size in zip(starts, sizes, strict=False)]


# No path contains NUL, so a path and a dvId joined by it identify the pair.
def _key_text(path: str, unique_id: str | None) -> str:
    return f"{path}\0{unique_id or ''}"


def path_keys(files: pa.RecordBatch) -> pa.Array[Any]:
    """Return `path_key` of each path."""
    paths: pa.Array[Any] = files["path"]
    if not pc.any(pc.starts_with(paths, "file:", ignore_case=True)).as_py():
        return paths
    keys: pa.Array[Any] = pc.replace_substring_regex(paths, LOCAL_URI.pattern, LOCAL_ROOT)
    return keys


def _key_texts(files: pa.RecordBatch) -> pa.Array[Any]:
    """Return the key of each logical file as text."""
    vectors = files["deletion_vector"]
    offset = pc.struct_field(vectors, "offset")
    unique_id = pc.binary_join_element_wise(
        pc.struct_field(vectors, "storage_type"),
        pc.struct_field(vectors, "path_or_inline_dv"),
        pc.coalesce(pc.binary_join_element_wise("@", pc.cast(offset, pa.string()), ""), ""),
        "",
    )
    texts: pa.Array[Any] = pc.binary_join_element_wise(path_keys(files), pc.coalesce(unique_id, ""), "\0")
    return texts
