"""Values that are not valid JSON: where they are, and what becomes of them."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import Any

import msgspec
import pyarrow as pa

from .. import data_file
from ..data_file import Fault
from ..errors import InvalidJsonError
from ..json_lines import Origin

__all__ = ["Faults", "Rows"]


@dataclass(frozen=True)
class Rows:
    """Where the rows of a batch come from: a batch of the source, which starts at row `first`."""

    origin: Origin | None
    first: int
    positions: pa.Array[Any] | None

    def position(self, row: int) -> int:
        return row if self.positions is None else int(self.positions[row].as_py())


class Faults:
    """What is done with values that are not valid JSON, and how many there were."""

    def __init__(self, on_invalid: data_file.OnInvalid, rejects: str | PathLike[str] | None) -> None:
        self._on_invalid = on_invalid
        self._rejects = rejects
        self._file: Any = None
        self.count = 0

    def __enter__(self) -> Faults:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._file is not None:
            self._file.close()

    def report(self, rows: Rows, batch: pa.RecordBatch, faults: list[Fault]) -> None:
        """Raise for the first fault, or count them all and keep the rejected rows."""
        for fault in faults:
            text = batch.column(fault.column)[fault.row].as_py()
            text = text.encode() if isinstance(text, str) else text
            where, place, reason = _place(rows, fault, text, batch.schema.names[fault.column])
            if self._on_invalid == "error":
                raise InvalidJsonError(f"{where}: {reason}")
            if self._on_invalid == "reject":
                self._keep({**place, "reason": reason, "text": text.decode(errors="backslashreplace")})
        self.count += len(faults)

    def _keep(self, reject: dict[str, Any]) -> None:
        if self._file is None:
            self._file = open(self._rejects, "ab")  # type: ignore[arg-type]  # noqa: SIM115 - closed by __exit__
        self._file.write(msgspec.json.encode(reject) + b"\n")


def _place(rows: Rows, fault: Fault, text: bytes, column: str) -> tuple[str, dict[str, Any], str]:
    """Return where a fault is, as text and as fields of a reject, and its reason."""
    position = rows.position(fault.row)
    if rows.origin is None:
        row = rows.first + position
        where = f"row {row}, column {column!r}, byte {fault.offset + 1} of the text"
        return where, {"row": row, "byte": fault.offset + 1}, fault.message
    line, place, reason = rows.origin.locate(position, text, fault.offset, fault.message)
    where = f"{rows.origin.name}, line {line}, column {place}"
    return where, {"file": rows.origin.name, "line": line, "column": place}, reason
