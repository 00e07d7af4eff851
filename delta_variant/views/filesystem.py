"""Views as a file system of fsspec: `variant://PATH` is a folder of plain Parquet files."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar

import fsspec

from ..errors import StoreError, TableNotFoundError
from ..log.timestamps import Timestamp
from ..storage.store import open_store
from .files import OpenFile, View, ViewFile
from .shape import check_strict


class VariantFileSystem(fsspec.AbstractFileSystem):  # type: ignore[misc]
    """The typed columns of tables as folders of Parquet files, which can be read and not written.

    The folder of a table is `variant://` and its path or URI. fsspec, and with it pandas, find this class
    by the protocol; pyarrow and DuckDB take an object of it. An object reads a table when its folder is
    listed first; `invalidate_cache`, or a new object, reads the latest version again.

    Args:
        columns: SQL expressions of columns, as in `to_duckdb`. None, the default, is each column that has no
            Variant, and each shredded path.
        strict: Whether a value that cannot be cast to the type of its path is an error, True by default, or
            NULL. False is for the shredded paths, without `columns`.
        version: The version to read. None, the default, reads the latest version.
        timestamp: A timezone-aware datetime or an ISO 8601 string, as in `read_table`. None by default.
        table_options: Options of the store of the tables, as in `Table`. None by default.

    Example:
        >>> import pandas as pd
        >>> import pyarrow as pa
        >>> import delta_variant as dv
        >>> schema = dv.ShreddingSchema.of({"user": {"id": pa.int64()}})
        >>> rows = [{"id": 1, "event": {"user": {"id": 7}}}]
        >>> _ = dv.write_table("clicks", rows, variant_columns=["event"], shredding=schema)
        >>> frame = pd.read_parquet("variant://clicks")
        >>> frame["event"][0]["typed_value"]["user"]["id"]
        7
    """

    protocol = "variant"

    # Otherwise fsspec keeps the first object, and pandas reads the version that this has seen.
    cachable = False

    _added: ClassVar[dict[str, View]] = {}
    """Views that each file system has, whatever its options."""

    def __init__(
        self,
        columns: Mapping[str, str] | Sequence[str] | None = None,
        strict: bool = True,
        version: int | None = None,
        timestamp: Timestamp | None = None,
        table_options: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        check_strict(strict, columns)
        self._columns = columns
        self._strict = strict
        self._version = version
        self._timestamp = timestamp
        self._table_options = table_options
        self._views: dict[str, View] = {}

    @classmethod
    def add(cls, path: str, view: View, reader: object) -> None:
        """Show a view as a folder, in each file system, as long as its reader exists."""
        cls._added[path] = view
        weakref.finalize(reader, cls._added.pop, path, None)

    def invalidate_cache(self, path: str | None = None) -> None:
        """Forget the tables, or the one at a path, so that their latest versions are read."""
        known = list(self._views) if path is None else [self._table_of(self._strip_protocol(path))]
        for table in known:
            self._views.pop(table, None)

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        """Return the files and folders in a folder of a view."""
        path = self._strip_protocol(path)
        files, inner = self._find(path)
        entries: dict[str, dict[str, Any]] = {}
        for name, file in files.items():
            if name == inner:
                entries[path] = _entry(path, file)
            elif name.startswith(_folder(inner)):
                step, slash, _rest = name[len(_folder(inner)) :].partition("/")
                below = f"{path}/{step}"
                entries[below] = _entry(below, None if slash else file)
        if inner and not entries:
            raise FileNotFoundError(path)
        return list(entries.values()) if detail else list(entries)

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Return the type and the size of a file or a folder."""
        path = self._strip_protocol(path)
        files, inner = self._find(path)
        if inner and inner not in files and not any(name.startswith(_folder(inner)) for name in files):
            raise FileNotFoundError(path)
        return _entry(path, files.get(inner))

    def modified(self, path: str) -> datetime:
        """Return when the table of a file was read: another version may show the file with another footer."""
        return self._view_at(self._table_of(self._strip_protocol(path))).created

    def _open(self, path: str, mode: str = "rb", **_: Any) -> OpenFile:
        if mode != "rb":
            raise PermissionError(f"cannot write {path} because a view can only be read")
        files, inner = self._find(path)
        if inner not in files:
            raise FileNotFoundError(path)
        return files[inner].open()

    def _table_of(self, path: str) -> str:
        """Return the table that a path is in; raises FileNotFoundError if it is in none."""
        folders = list(_folders(path))
        for folder in folders:
            if folder in self._added or folder in self._views:
                return folder
        for folder in folders:
            try:
                self._views[folder] = self._view(folder)
            except (StoreError, TableNotFoundError):
                continue
            return folder
        raise FileNotFoundError(f"{path} is not in a Delta table")

    def _view_at(self, folder: str) -> View:
        return self._added.get(folder) or self._views[folder]

    def _view(self, path: str) -> View:
        store = open_store(path, self._table_options)
        at: Any = {"version": self._version, "timestamp": self._timestamp}
        return View.of(store, self._columns, strict=self._strict, **at)

    def _find(self, path: str) -> tuple[Mapping[str, ViewFile], str]:
        """Return the files of the table that a path is in, by name, and the path in it."""
        table = self._table_of(path)
        return self._view_at(table).by_name, path[len(table) + 1 :]


def _folders(path: str) -> Iterator[str]:
    """Yield a path and the folders that it is in, without the scheme of a URI."""
    while path and not path.endswith("/"):
        yield path
        path = path.rpartition("/")[0]


def _folder(name: str) -> str:
    return name and f"{name}/"


def _entry(name: str, file: ViewFile | None) -> dict[str, Any]:
    if file is None:
        return {"name": name, "size": 0, "type": "directory"}
    return {"name": name, "size": file.size, "type": "file"}
