"""Files that no footer can show, written once as plain columns into a folder of the user's cache."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import pyarrow as pa

from .._system_errors import reason_of
from ..errors import StoreError

FOLDER = "DELTA_VARIANT_CACHE"
"""The environment variable with the folder of the cache."""

MAX_BYTES = 10 << 30
"""If all files have more bytes, those that were not used for the longest time are removed …"""

MIN_SECONDS = 24 * 3600
"""… unless they were used within this time: a view needs its files while readers use it."""


GROUP_ROWS = 1 << 18
GROUP_BYTES = 128 << 20
"""A row group ends at as many rows or decoded bytes, whichever come first."""


def cached(
    key: str, schema: pa.Schema, rows: Callable[[], Iterable[pa.RecordBatch]], folder: Path | None = None
) -> Path:
    """Return the file of a key in a folder, by default that of the cache. It is written if it is not there.

    Processes share the files: each one is complete once it has its name. A file that is removed while a
    reader has it open stays readable to it. Raises StoreError if the file cannot be written.
    """
    folder = folder or _folder()
    path = folder / f"{hashlib.sha256(key.encode()).hexdigest()}.parquet"
    try:
        os.utime(path)
    except FileNotFoundError:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _write(path, schema, rows())
        except OSError as error:
            raise StoreError(f"cannot write {path}: {reason_of(error)}", file=str(path)) from error
        _forget(folder)
    return path


def _write(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    # Imported here, because it takes long, and many views write no file.
    import pyarrow.parquet as pq

    with NamedTemporaryFile(dir=path.parent, suffix=".tmp", delete=False) as sink:
        try:
            bounded: Any = _bounded_leaves(schema)
            options: Any = {"compression": "zstd", "write_page_index": True, "write_statistics": bounded}
            with pq.ParquetWriter(sink, schema, **options) as writer:
                for group in _groups(batches):
                    writer.write_table(pa.Table.from_batches(group, schema), row_group_size=GROUP_ROWS)
            sink.close()
            Path(sink.name).replace(path)
        except BaseException:
            # A disk that is full rejects the rest of the buffer, too.
            with suppress(OSError):
                sink.close()
            Path(sink.name).unlink()
            raise


def _bounded_leaves(schema: pa.Schema) -> list[str]:
    """Return all leaves but floating-point numbers: pyarrow bounds them without NaN, which is greater."""
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.ParquetWriter(sink, schema).close()
    stored = pq.ParquetFile(pa.BufferReader(sink.getvalue())).schema
    leaves = map(stored.column, range(len(stored.names)))
    return [leaf.path for leaf in leaves if leaf.physical_type not in ("FLOAT", "DOUBLE")]


def _groups(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    group: list[pa.RecordBatch] = []
    for batch in batches:
        group.append(batch)
        if (
            sum(each.num_rows for each in group) >= GROUP_ROWS
            or sum(each.nbytes for each in group) >= GROUP_BYTES
        ):
            yield group
            group = []
    if group:
        yield group


def _forget(folder: Path) -> None:
    """Remove files that were not used for the longest time, those of killed processes among them."""
    found: list[tuple[float, int, Path]] = []
    for each in folder.iterdir():
        try:
            status = each.stat()
        except FileNotFoundError:
            # Another process removed it.
            continue
        found.append((status.st_mtime, status.st_size, each))
    total = sum(size for _, size, _ in found)
    for used, size, path in sorted(found):
        if total <= MAX_BYTES or used > time.time() - MIN_SECONDS:
            return
        path.unlink(missing_ok=True)
        total -= size


def _folder() -> Path:
    if (named := os.environ.get(FOLDER)) is not None:
        return Path(named)
    home = Path.home()
    places: dict[str, Any] = {"darwin": home / "Library" / "Caches", "win32": os.environ.get("LOCALAPPDATA")}
    base = places.get(sys.platform) or os.environ.get("XDG_CACHE_HOME") or home / ".cache"
    return Path(base) / "delta-variant" / "views"
