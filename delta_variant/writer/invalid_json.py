"""Values that are not valid JSON: where they are, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa

from .._system_errors import reason_of
from ..data_file.options import OnInvalid
from ..data_file.writer import InvalidValue
from ..errors import InvalidJsonError, StoreError
from ..storage.store import local_location
from .json_lines import Origin

__all__ = ["BatchOrigin", "InvalidValueHandler", "RejectRecord", "RejectsFile"]


@dataclass(frozen=True)
class BatchOrigin:
    """Where the rows of a batch come from: a batch of the source, which starts at row `first`."""

    origin: Origin | None
    first: int
    positions: pa.Array[Any] | None

    def position(self, row: int) -> int:
        return row if self.positions is None else int(self.positions[row].as_py())

    def where(self, row: int) -> str:
        """Return where a row comes from, in words."""
        position = self.position(row)
        if self.origin is None:
            return f"row {self.first + position} of what is written"
        line, _, _ = self.origin.locate(position, b"", 0, "")
        return f"{self.origin.name}, line {line}"


RejectRecord: TypeAlias = "dict[str, Any]"
"""Where a value is, the reason why it is not JSON, and its text."""


class InvalidValueHandler:
    """What is done with values that are not valid JSON, and how many there were.

    `keep` takes the rejected ones. `partition` is the number of a part of the data whose rows are counted by
    themselves.
    """

    def __init__(
        self,
        on_invalid: OnInvalid,
        keep: Callable[[RejectRecord], None] | None = None,
        partition: int | None = None,
    ) -> None:
        self._on_invalid = on_invalid
        self._keep = keep
        self._partition = partition
        self.count = 0

    def report(self, rows: BatchOrigin, batch: pa.RecordBatch, faults: list[InvalidValue]) -> None:
        """Raise for the first fault, or count them all and keep the rejected rows."""
        for fault in faults:
            text = batch.column(fault.column)[fault.row].as_py()
            text = text.encode() if isinstance(text, str) else text
            where, place, reason = self._place(rows, fault, text, batch.schema.names[fault.column])
            if self._on_invalid == "error":
                raise InvalidJsonError(f"{where}: {reason}")
            if self._on_invalid == "reject" and self._keep is not None:
                self._keep({**place, "reason": reason, "text": text.decode(errors="backslashreplace")})
        self.count += len(faults)

    def _place(
        self, rows: BatchOrigin, fault: InvalidValue, text: bytes, column: str
    ) -> tuple[str, RejectRecord, str]:
        """Return where a fault is, as text and as fields of a reject, and its reason."""
        position = rows.position(fault.row)
        if rows.origin is not None:
            line, place, reason = rows.origin.locate(position, text, fault.offset, fault.message)
            where = f"{rows.origin.name}, line {line}, column {place}"
            return where, {"file": rows.origin.name, "line": line, "column": place}, reason
        row = {"row": rows.first + position}
        if self._partition is not None:
            row = {"partition": self._partition, **row}
        where = ", ".join(f"{name} {number}" for name, number in row.items())
        where = f"{where}, column {column!r}, byte {fault.offset + 1} of the text"
        return where, {**row, "byte": fault.offset + 1}, fault.message


class RejectsFile:
    """The file that rejected values are appended to as JSON lines; it is opened for the first of them.

    Raises StoreError for the URI of a file that is not on a local disk. Each method raises StoreError, which
    names the file, where it cannot be written.
    """

    def __init__(self, path: str | PathLike[str] | None) -> None:
        self._path = None if path is None else local_location("the file of rejects", path)
        self._file: Any = None

    def __enter__(self) -> RejectsFile:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Write what is still held in memory, and close the file."""
        if self._file is not None:
            file, self._file = self._file, None
            with self._naming():
                file.close()

    def keep(self, reject: RejectRecord) -> None:
        """Append one value."""
        with self._naming():
            if self._file is None:
                self._file = open(self._path, "ab")  # type: ignore[arg-type]  # noqa: SIM115 - closed by close
            self._file.write(msgspec.json.encode(reject) + b"\n")

    @contextmanager
    def _naming(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(f"cannot write rejects to {self._path}: {reason_of(error)}") from error
