"""Identify logical files, and drop those that later commits touch (PROTOCOL.md, "Action Reconciliation")."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from .. import _native
from ..protocol.actions import LOCAL_ROOT, LOCAL_URI

__all__ = ["DropFiles", "FileKey", "drop_files", "key_texts"]

FileKey: TypeAlias = tuple[str, str | None]
"""The key of a logical file: its path as `path_key` returns it, and the id of its deletion vector."""

DropFiles: TypeAlias = Callable[[pa.RecordBatch], pa.RecordBatch]


def drop_files(keys: Collection[FileKey]) -> DropFiles:
    """Return a function that drops files from a batch, which it does not copy if it has none of them.

    The batch has the columns `path` and `deletion_vector`, and any others.
    """
    if not keys:
        return lambda batch: batch
    # Most files have no deletion vector, so their paths identify them.
    paths = pa.array([path for path, unique_id in keys if unique_id is None], pa.string())
    texts = pa.array([_key_text(*key) for key in keys if key[1] is not None], pa.string())

    def drop(batch: pa.RecordBatch) -> pa.RecordBatch:
        vectors = batch["deletion_vector"]
        dropped: Any = pc.and_(pc.is_in(_path_keys(batch), value_set=paths), pc.is_null(vectors))
        if len(texts) and vectors.null_count < len(vectors):
            dropped = pc.or_(dropped, pc.is_in(key_texts(batch), value_set=texts))
        if not dropped.true_count:
            return batch
        return _native.filter_rows(batch, pc.invert(dropped))

    return drop


# No path contains NUL, so a path and a dvId joined by it identify the pair.
def _key_text(path: str, unique_id: str | None) -> str:
    return f"{path}\0{unique_id or ''}"


def _path_keys(files: pa.RecordBatch) -> pa.Array[Any]:
    """Return `path_key` of each path."""
    paths: pa.Array[Any] = files["path"]
    if not pc.any(pc.starts_with(paths, "file:", ignore_case=True)).as_py():
        return paths
    keys: pa.Array[Any] = pc.replace_substring_regex(paths, LOCAL_URI.pattern, LOCAL_ROOT)
    return keys


def key_texts(files: pa.RecordBatch) -> pa.Array[Any]:
    """Return the key of each logical file as text."""
    vectors = files["deletion_vector"]
    offset = pc.struct_field(vectors, "offset")
    unique_id = pc.binary_join_element_wise(
        pc.struct_field(vectors, "storage_type"),
        pc.struct_field(vectors, "path_or_inline_dv"),
        pc.coalesce(pc.binary_join_element_wise("@", pc.cast(offset, pa.string()), ""), ""),
        "",
    )
    texts: pa.Array[Any] = pc.binary_join_element_wise(_path_keys(files), pc.coalesce(unique_id, ""), "\0")
    return texts
