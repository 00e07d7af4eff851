"""Stores of a table that call a function before or after each of their calls, or before commits."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from delta_variant.storage.objects import AcceptsUploads, Objects, StoredFile, Upload
from delta_variant.storage.store import Store, TableLocation, open_store

Observer = Callable[[str, str], Any]
"""A function of the name and the key of a call: `("create", "…/_delta_log/00000000000000000001.json")`."""

COMMIT = re.compile(r"(?:.*/)?_delta_log/\d{20}\.json")


def _ignore(call: str, key: str) -> None:
    pass


@dataclass(frozen=True)
class InterceptedObjects:
    """Objects that call `before` and `after` around each call, which fails with an error that these raise."""

    objects: Objects
    before: Observer = _ignore
    after: Observer = _ignore

    def get(self, key: str) -> bytes:
        return self._intercept("get", key)

    def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        return self._intercept("get_ranges", key, ranges)

    def get_end(self, key: str, length: int) -> tuple[int, bytes]:
        return self._intercept("get_end", key, length)

    def head(self, key: str) -> StoredFile:
        return self._intercept("head", key)

    def list_files(self, prefix: str, after: str | None) -> Iterator[StoredFile]:
        return iter(self._intercept("list_files", prefix, after, convert=list))

    def put(self, key: str, data: bytes) -> None:
        self._intercept("put", key, data)

    def create(self, key: str, data: bytes) -> None:
        self._intercept("create", key, data)

    def delete(self, key: str) -> None:
        self._intercept("delete", key)

    def open_upload(self, key: str) -> Upload:
        assert isinstance(self.objects, AcceptsUploads)
        return self._intercept("open_upload", key)

    def _intercept(
        self, call: str, key: str, *arguments: Any, convert: Callable[[Any], Any] = lambda result: result
    ) -> Any:
        self.before(call, key)
        result = convert(getattr(self.objects, call)(key, *arguments))
        self.after(call, key)
        return result


def intercept(
    table: TableLocation,
    storage_options: Mapping[str, str] | None = None,
    *,
    before: Observer = _ignore,
    after: Observer = _ignore,
) -> Store:
    """Return the store of a table that calls `before` and `after` around each of its calls."""
    store = open_store(table, storage_options)
    return replace(store, objects=InterceptedObjects(store.objects, before, after))


def commit_first(table: TableLocation, *others: Callable[[], Any] | None) -> Store:
    """Return the store of a table in which other writers commit first.

    The first function is called right before the first attempt to create a commit, the second right before
    the second attempt, and so on; None stands for an attempt without another writer.
    """
    waiting = iter(others)

    def before(call: str, key: str) -> None:
        if call == "create" and COMMIT.fullmatch(key) and (other := next(waiting, None)) is not None:
            other()

    return intercept(table, before=before)
