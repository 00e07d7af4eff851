"""An object store in a dictionary: cheap to copy, with modification times that a test chooses."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from delta_variant.storage.objects import StoredFile


@dataclass(frozen=True)
class MemoryObjects:
    """Files in memory by their keys, each with its modification time in milliseconds since 1970."""

    clock: Callable[[], int]
    files: dict[str, tuple[bytes, int]] = field(default_factory=dict)

    def copy(self) -> MemoryObjects:
        """Return a store of the same files, which changes independently."""
        return MemoryObjects(self.clock, dict(self.files))

    def get(self, key: str) -> bytes:
        return self._find(key)[0]

    def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        data = self.get(key)
        return [data[start:end] for start, end in ranges]

    def get_end(self, key: str, length: int) -> tuple[int, bytes]:
        data = self.get(key)
        return len(data), data[-length:]

    def head(self, key: str) -> StoredFile:
        data, time = self._find(key)
        return StoredFile(key, len(data), time)

    def list_files(self, prefix: str, after: str | None) -> Iterator[StoredFile]:
        folder = f"{prefix}/" if prefix else ""
        for key, (data, time) in sorted(self.files.items()):
            if key.startswith(folder) and (after is None or key > after):
                yield StoredFile(key, len(data), time)

    def put(self, key: str, data: bytes) -> None:
        self.files[key] = (bytes(data), self.clock())

    def create(self, key: str, data: bytes) -> None:
        if key in self.files:
            raise FileExistsError(errno.EEXIST, "the file exists", key)
        self.put(key, data)

    def delete(self, key: str) -> None:
        self._find(key)
        del self.files[key]

    def open_upload(self, key: str) -> MemoryUpload:
        return MemoryUpload(lambda data: self.put(key, data))

    def _find(self, key: str) -> tuple[bytes, int]:
        if key not in self.files:
            raise FileNotFoundError(errno.ENOENT, "there is no such file", key)
        return self.files[key]


@dataclass(frozen=True)
class MemoryUpload:
    """A file that exists once it is closed."""

    put: Callable[[bytes], None]
    parts: list[bytes] = field(default_factory=list)

    def write(self, data: bytes) -> None:
        self.parts.append(bytes(data))

    def close(self) -> None:
        self.put(b"".join(self.parts))

    def abort(self) -> None:
        self.parts.clear()


def contents(objects: MemoryObjects) -> Mapping[str, bytes]:
    """Return the bytes of each file."""
    return {key: data for key, (data, _) in objects.files.items()}
