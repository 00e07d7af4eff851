"""The files of a log as Arrow tables: rows from and to actions, and the keys of logical files.

See PROTOCOL.md, "Add File and Remove File" and "Action Reconciliation".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache
from itertools import accumulate, chain
from operator import attrgetter
from string import ascii_letters, digits
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from .. import _native
from ..protocol.actions import (
    LOCAL_ROOT,
    LOCAL_URI,
    AddFile,
    DeletionVector,
    RemoveFile,
    decode_path,
    encode_path,
)

_PLAIN_CHARACTERS = f"{ascii_letters}{digits}/_.=-".encode()

_STRING_MAP = pa.map_(pa.string(), pa.string())

_DELETION_VECTOR = pa.struct(
    [
        ("storage_type", pa.string()),
        ("path_or_inline_dv", pa.string()),
        ("offset", pa.int32()),
        ("size_in_bytes", pa.int32()),
        ("cardinality", pa.int64()),
        ("max_row_index", pa.int64()),
    ]
)

FILES_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("encoded_path", pa.string()),
        ("partition_values", _STRING_MAP),
        ("size", pa.int64()),
        ("modification_time", pa.int64()),
        ("stats", pa.string()),
        ("tags", _STRING_MAP),
        ("deletion_vector", _DELETION_VECTOR),
        ("base_row_id", pa.int64()),
        ("default_row_commit_version", pa.int64()),
        ("clustering_provider", pa.string()),
    ]
)
"""The columns of `Snapshot.files`: the fields of an AddFile, `path` decoded and `stats` verbatim.

`encoded_path` is the path in the log, null if `encode_path` returns the same. An action on the file must
repeat it, because Spark compares the texts, and writers encode different characters.
"""

_TOMBSTONE_FIELDS: list[tuple[str, pa.DataType]] = [
    ("path", pa.string()),
    ("encoded_path", pa.string()),
    ("deletion_timestamp", pa.int64()),
    ("extended_file_metadata", pa.bool_()),
    ("partition_values", _STRING_MAP),
    ("size", pa.int64()),
    ("deletion_vector", _DELETION_VECTOR),
    ("base_row_id", pa.int64()),
    ("default_row_commit_version", pa.int64()),
]
TOMBSTONES_SCHEMA = pa.schema(_TOMBSTONE_FIELDS)
"""The fields of a RemoveFile in a checkpoint, with `path` both decoded and as in the log."""


def files_table(adds: Sequence[AddFile]) -> pa.Table:
    """Return AddFiles as a table of FILES_SCHEMA, with decoded paths."""
    return _table(adds, FILES_SCHEMA)


def add_actions(files: pa.Table) -> Iterator[AddFile]:
    """Yield the AddFiles of rows of FILES_SCHEMA, with paths as in the log."""
    for batch in files.to_batches(_ROWS_AS_OBJECTS):
        for row in batch.to_pylist(maps_as_pydicts="lossy"):
            path, encoded, vector = row.pop("path"), row.pop("encoded_path"), row.pop("deletion_vector")
            yield AddFile(
                path=encoded or encode_path(path),
                partition_values=row.pop("partition_values") or {},
                data_change=True,
                deletion_vector=vector and DeletionVector(**vector),
                **row,
            )


def remove_actions(files: pa.Table, now: int, *, data_change: bool) -> Iterator[RemoveFile]:
    """Yield the RemoveFiles of rows of FILES_SCHEMA, with the fields that readers of changes or row ids need.

    `now` is the time of the removal in milliseconds since 1970.
    """
    for batch in files.to_batches(_ROWS_AS_OBJECTS):
        for row in batch.to_pylist(maps_as_pydicts="lossy"):
            yield RemoveFile(
                path=row["encoded_path"] or encode_path(row["path"]),
                deletion_timestamp=now,
                data_change=data_change,
                extended_file_metadata=row["size"] is not None,
                partition_values=row["partition_values"] or {},
                size=row["size"],
                stats=row["stats"],
                tags=row["tags"],
                deletion_vector=row["deletion_vector"] and DeletionVector(**row["deletion_vector"]),
                base_row_id=row["base_row_id"],
                default_row_commit_version=row["default_row_commit_version"],
            )


def subtract_files(files: pa.Table, others: pa.Table) -> pa.Table:
    """Return the rows of `files` whose logical files are not in `others`; both have FILES_SCHEMA."""
    remaining = drop_files_at_once(files.to_batches(), FileKeys.of_table(others))
    return pa.Table.from_batches(remaining, FILES_SCHEMA)


def tombstones_table(removes: Sequence[RemoveFile]) -> pa.Table:
    """Return RemoveFiles as a table of TOMBSTONES_SCHEMA, with decoded paths."""
    return _table(removes, TOMBSTONES_SCHEMA)


def are_unencoded(paths: pa.StringArray) -> bool:
    """Return whether paths contain no encoded characters; False may also mean that this is unknown."""
    characters = paths.buffers()[2]
    return characters is None or not characters.to_pybytes().translate(None, _PLAIN_CHARACTERS)


def decode_paths(texts: pa.StringArray) -> tuple[Any, Any]:
    """Return the decoded paths, and the paths in the log where `encode_path` returns others, else null.

    The second is None instead of an array of nulls.
    """
    if are_unencoded(texts):
        return texts, None
    paths: list[Any] = texts.to_pylist()
    return (
        pa.array(map(decode_path, paths), texts.type, size=len(texts)),
        pa.array(map(_encoded_path, paths), texts.type, size=len(texts)),
    )


def _encoded_path(text: str) -> str | None:
    return None if encode_path(decode_path(text)) == text else text


def _table(actions: Sequence[AddFile | RemoveFile], schema: pa.Schema) -> pa.Table:
    starts = range(0, len(actions), BATCH_ROWS)
    return pa.Table.from_batches([_batch(actions[row : row + BATCH_ROWS], schema) for row in starts], schema)


def _batch(actions: Sequence[AddFile | RemoveFile], schema: pa.Schema) -> pa.RecordBatch:
    paths, encoded_paths = decode_paths(_plain(actions, schema.field("path")))
    if encoded_paths is None:
        encoded_paths = pa.nulls(len(actions), pa.string(), memory_pool=pool_for_files())
    columns = [
        _COLUMNS.get(field.name, _plain)(actions, field) for field in schema if field.name not in _PATHS
    ]
    return pa.record_batch([paths, encoded_paths, *columns], schema=schema)


def _plain(actions: Sequence[Any], field: Any) -> Any:
    return _array(map(attrgetter(field.name), actions), field.type, len(actions))


def _maps(actions: Sequence[Any], field: Any) -> Any:
    maps = list(map(attrgetter(field.name), actions))
    present = [entries for entries in maps if entries]
    ends = list(accumulate((len(entries or ()) for entries in maps), initial=0))
    keys = _array(list(chain.from_iterable(present)), pa.string())
    values = _array([value for entries in present for value in entries.values()], pa.string())
    array: Any = pa.MapArray
    mask = _array([entries is None for entries in maps], pa.bool_())
    offsets = _array(ends, pa.int32())
    return array.from_arrays(offsets, keys, values, field.type, pool=pool_for_files(), mask=mask)


def _vectors(actions: Sequence[Any], field: Any) -> Any:
    vectors = map(attrgetter(field.name), actions)
    return _array([vector and msgspec.structs.asdict(vector) for vector in vectors], field.type)


def _array(values: Iterable[Any], arrow_type: pa.DataType, size: int | None = None) -> Any:
    return pa.array(values, arrow_type, size=size, memory_pool=pool_for_files())


BATCH_ROWS = 50_000
"""The rows of a batch: few enough that their texts do not exceed the 2 GB of an array."""

_ROWS_AS_OBJECTS = 1000
"""The rows that are Python objects at once; each needs 2 kB."""

_PATHS = ("path", "encoded_path")
"""The first columns of FILES_SCHEMA and TOMBSTONES_SCHEMA."""

_COLUMNS: dict[str, Callable[[Sequence[Any], Any], Any]] = {
    "partition_values": _maps,
    "tags": _maps,
    "deletion_vector": _vectors,
}


def pool_for_files() -> pa.MemoryPool:
    """Return the memory pool for the columns of many files.

    mimalloc, which is Arrow's default, requests huge pages. On a machine with fragmented memory, the kernel
    needs longer to find them than the whole log takes to load. Another pool that the process chose is used.
    """
    default = pa.default_memory_pool()
    return pa.system_memory_pool() if default.backend_name == "mimalloc" else default


def shared_nulls(arrow_type: pa.DataType, count: int) -> pa.Array[Any]:
    """Return nulls, of which the arrays of a type share the memory: large tables have columns of nulls."""
    return _nulls(arrow_type, 1 << count.bit_length())[:count]


@cache
def _nulls(arrow_type: pa.DataType, count: int) -> pa.Array[Any]:
    nulls: pa.Array[Any] = pa.nulls(count, arrow_type)  # type: ignore[call-overload]
    return nulls


FileKey: TypeAlias = tuple[str, str | None]
"""The key of a logical file: its path as `path_key` returns it, and the id of its deletion vector."""

DropFiles: TypeAlias = Callable[[pa.RecordBatch], pa.RecordBatch]

_MOST_CHUNKS = 64


def _no_texts() -> pa.ChunkedArray[Any]:
    return pa.chunked_array([], pa.string())


class FileKeys(msgspec.Struct, frozen=True):
    """Keys of logical files, which may have duplicates.

    Most files have no deletion vector, so that their paths identify them: `paths`. `texts` are the keys of
    the others, as `key_texts` returns them.
    """

    paths: pa.ChunkedArray[Any] = msgspec.field(default_factory=_no_texts)
    texts: pa.ChunkedArray[Any] = msgspec.field(default_factory=_no_texts)

    @classmethod
    def of(cls, keys: Collection[FileKey]) -> FileKeys:
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
                texts.append(key_texts(batch.filter(pc.invert(is_plain))))
        return cls(pa.chunked_array(paths, pa.string()), pa.chunked_array(texts, pa.string()))

    def __len__(self) -> int:
        return len(self.paths) + len(self.texts)

    @property
    def has_duplicates(self) -> bool:
        return any(pc.count_distinct(keys).as_py() < len(keys) for keys in (self.paths, self.texts))

    def union(self, other: FileKeys) -> FileKeys:
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
        texts = pa.chunked_array([key_texts(batch) for batch in batches], pa.string())
        found = pc.or_(found, pc.is_in(texts, value_set=keys.texts))
    mask = pa.concat_arrays([pa.array([], pa.bool_()), *found.chunks])
    sizes = [batch.num_rows for batch in batches]
    starts = accumulate(sizes, initial=0)
    return [mask.slice(start, size) for start, size in zip(starts, sizes, strict=False)]


# No path contains NUL, so a path and a dvId joined by it identify the pair.
def _key_text(path: str, unique_id: str | None) -> str:
    return f"{path}\0{unique_id or ''}"


def path_keys(files: pa.RecordBatch) -> pa.Array[Any]:
    paths: pa.Array[Any] = files["path"]
    if not pc.any(pc.starts_with(paths, "file:", ignore_case=True)).as_py():
        return paths
    keys: pa.Array[Any] = pc.replace_substring_regex(paths, LOCAL_URI.pattern, LOCAL_ROOT)
    return keys


def key_texts(files: pa.RecordBatch) -> pa.Array[Any]:
    """Return the key of each logical file as text: its path key, NUL, and the id of its deletion vector."""
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
