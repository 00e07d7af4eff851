"""Write the odd rows of other files in a thread of their own."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future
from typing import Any

import pyarrow as pa

from .._threads import Threads
from ..input.invalid_json import PartRows
from ..input.json_lines import Origin
from .partitions import OddRowsWriter, PartitionValues
from .written_files import WrittenFiles

__all__ = ["BackgroundOddRowsWriter"]

MAX_WAITING = 4
"""How many batches of odd rows wait for the thread. Each is small: see `FileSeries`."""


class BackgroundOddRowsWriter(OddRowsWriter):
    """Writes odd rows while the files that set them apart are written, which is done by one thread.

    Errors are raised by the next call.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._thread = Threads(1)
        self._begun: deque[Future[None]] = deque()

    def set_apart(self, values: PartitionValues, rows: pa.RecordBatch) -> None:
        """Add rows with the columns of files of a partition."""
        if len(self._begun) == MAX_WAITING:
            self._begun.popleft().result()
        self._begun.append(self._thread.submit(super().set_apart, values, rows))

    def take_few(self, values: PartitionValues, schema: pa.Schema) -> list[pa.RecordBatch]:
        """Return the odd rows of a partition, and keep none of them, if they are too few for a file."""
        self._wait()
        return super().take_few(values, schema)

    def add(self, batch: pa.RecordBatch, origin: Origin | PartRows | None = None, first: int = 0) -> None:
        """Write a batch."""
        self._wait()
        super().add(batch, origin, first)

    def _wait(self) -> None:
        while self._begun:
            self._begun.popleft().result()

    def close(self) -> WrittenFiles:
        """Finish all files and return them."""
        self._wait()
        self._thread.shutdown()
        return super().close()

    def discard(self) -> None:
        """Remove all files written so far."""
        self._thread.shutdown(cancel_futures=True)
        super().discard()
