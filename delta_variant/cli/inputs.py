"""Open the JSON input of `write`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import pyarrow as pa

from ..errors import SourceError
from ..writer.json_lines import JsonLines, Origin, Progress, read_json

__all__ = ["open_inputs"]


@dataclass(frozen=True)
class NotEmpty(JsonLines):
    """JSON files with at least one value in total."""

    def batches(self) -> Iterator[tuple[pa.RecordBatch, Origin]]:
        """Yield the values. Raise SourceError at the end if there were none."""
        is_empty = True
        for batch in super().batches():
            is_empty = False
            yield batch
        if is_empty:
            raise SourceError(
                "the input contains no values: check the program that produced it, or pass --allow-empty"
            )


def open_inputs(inputs: Sequence[str], column: str, *, allow_empty: bool, progress: Progress) -> JsonLines:
    """Return the values of JSON files as an Arrow stream."""
    lines = read_json(inputs, column=column, progress=progress)
    return (
        lines if allow_empty else NotEmpty(**{each.name: getattr(lines, each.name) for each in fields(lines)})
    )
