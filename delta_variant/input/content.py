"""The bytes of an input file: decompressed, and as UTF-8."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from io import BufferedReader, RawIOBase
from itertools import chain
from typing import Any, BinaryIO, NamedTuple, TypeAlias

import pyarrow as pa

from .._system_errors import reason_of
from ..errors import DeltaVariantError, SourceError
from ..storage.inputs import InputFile

PIECE_BYTES = 4 << 20
"""How much content is yielded at a time."""

BUFFER_BYTES = 64 << 10

COMPRESSED_BYTES = 256 << 10
"""How much of a compressed file is read at a time."""


class _Continued:
    """A file of which the first bytes were read already, and which its reader must not close."""

    closed = False

    def __init__(self, head: bytes, file: Any) -> None:
        self._head = head
        self._file = file

    def read(self, size: int) -> bytes:
        if not self._head:
            return bytes(self._file.read(size) or b"")
        taken, self._head = self._head[:size], self._head[size:]
        return taken + self.read(size - len(taken)) if len(taken) < size else taken

    def close(self) -> None:
        """Do nothing."""


def _read_plain(file: Any) -> Iterator[bytes]:
    return iter(lambda: file.read(PIECE_BYTES), b"")


def _read_zstd(file: Any) -> Iterator[bytes]:
    return _read_plain(pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd"))


def _read_streams(file: Any, new_decompressor: Callable[[], Any]) -> Iterator[bytes]:
    """Yield the content of all streams of a file; Python's own readers silently skip damaged streams."""
    data = file.read(COMPRESSED_BYTES)
    while data:
        decompressor = new_decompressor()
        while not decompressor.eof:
            if decompressor.needs_input and not data:
                data = file.read(COMPRESSED_BYTES)
                if not data:
                    raise EOFError("the compressed data is truncated")
            yield decompressor.decompress(data, PIECE_BYTES)
            data = b""
        data = decompressor.unused_data.lstrip(b"\0") or file.read(COMPRESSED_BYTES).lstrip(b"\0")


class Compression(NamedTuple):
    """A compression: the suffixes of its files, the bytes with which they begin, and their reader."""

    suffixes: tuple[str, ...]
    magic: bytes
    read: Callable[[Any], Iterator[bytes]]


COMPRESSIONS = (
    Compression(
        (".gz", ".gzip"), b"\x1f\x8b", lambda file: _read_plain(gzip.GzipFile(fileobj=file, mode="rb"))
    ),
    Compression((".zst",), b"\x28\xb5\x2f\xfd", _read_zstd),
    Compression((".xz",), b"\xfd7zXZ\0", partial(_read_streams, new_decompressor=lzma.LZMADecompressor)),
    Compression((".bz2",), b"BZh", partial(_read_streams, new_decompressor=bz2.BZ2Decompressor)),
)
COMPRESSED_SUFFIXES = tuple(suffix for each in COMPRESSIONS for suffix in each.suffixes)
MAGIC_BYTES = max(len(each.magic) for each in COMPRESSIONS)

# The mark of UTF-16 is the beginning of the one of UTF-32.
ENCODINGS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
MARK_BYTES = 4

Source: TypeAlias = InputFile | BinaryIO


def stem_of(name: str) -> str:
    """Return the lower-case name of a file without the suffix of a compression."""
    name = name.lower()
    suffix = next((suffix for suffix in COMPRESSED_SUFFIXES if name.endswith(suffix)), "")
    return name.removesuffix(suffix)


class Content:
    """The content of a source: its name, its bytes as UTF-8, and how many bytes were read.

    `damaged` is the class of the error for content that cannot be decompressed or decoded.
    """

    def __init__(self, source: Source, damaged: type[DeltaVariantError] = SourceError) -> None:
        self._owned = isinstance(source, InputFile)
        self._damaged = damaged
        if isinstance(source, InputFile):
            self.name = source.name
            self._file: Any = source.open()
        else:
            is_standard_input = source is sys.stdin.buffer
            self.name = (
                "standard input" if is_standard_input else str(getattr(source, "name", "the open file"))
            )
            self._file = source
        self._taken = 0

    def __enter__(self) -> Content:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._owned:
            self._file.close()

    def taken(self) -> int:
        """Return how many bytes were read, before decompression if the source is a path."""
        return int(self._file.tell()) if self._owned else self._taken

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes, decompressed and as UTF-8.

        Raises the error of damaged content, and SourceError for a source that cannot be read.
        """
        try:
            # A loop would keep each piece in memory while its values are written.
            yield from _as_utf8(map(self._count, self._decompress()))
        except SourceError:
            raise
        except UnicodeDecodeError as error:
            raise self._damaged(f"cannot decode {self.name}: {error}", file=self.name) from error
        except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                message = f"cannot read {self.name}: {reason_of(error)}"
                raise SourceError(message, file=self.name) from error
            raise self._damaged(f"cannot decompress {self.name}: {error}", file=self.name) from error

    def open(self) -> BufferedReader:
        """Return the bytes, decompressed and as UTF-8, as a file; its reads raise what `pieces` raises."""
        return BufferedReader(_File(self.pieces()), BUFFER_BYTES)

    def _decompress(self) -> Iterator[bytes]:
        head = b""
        while len(head) < MAGIC_BYTES and (more := self._file.read(MAGIC_BYTES - len(head))):
            head += more
        file, name = _Continued(head, self._file), self.name.lower()
        by_magic = (each.read for each in COMPRESSIONS if head.startswith(each.magic))
        by_name = (each.read for each in COMPRESSIONS if name.endswith(each.suffixes))
        return next(chain(by_magic, by_name), _read_plain)(file)

    def _count(self, piece: bytes) -> bytes:
        self._taken += len(piece)
        return piece


class _File(RawIOBase):
    """A file of pieces of bytes."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        count = min(len(buffer), len(self._rest))
        buffer[:count], self._rest = self._rest[:count], self._rest[count:]
        return count


def _as_utf8(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield text as UTF-8 if it begins with the byte order mark of UTF-16 or UTF-32, else unchanged."""
    first = [b""]
    while len(first[0]) < MARK_BYTES and (more := next(pieces, None)) is not None:
        first[0] += more
        del more
    encoding = next((encoding for mark, encoding in ENCODINGS if first[0].startswith(mark)), None)
    if encoding is None:
        yield first.pop()
        yield from pieces
        return
    decoder = codecs.getincrementaldecoder(encoding)()
    for piece in chain(first, pieces):
        yield decoder.decode(piece).encode()
    yield decoder.decode(b"", True).encode()
