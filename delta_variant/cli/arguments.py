"""Arguments and options that several commands share, and the parser of sizes."""

from __future__ import annotations

import re
from typing import Annotated

import typer

__all__ = ["FileOrTable", "Json", "Table", "TargetFileSize", "TimeZone", "Timestamp", "Version", "parse_size"]

SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(B|kB|MB|GB|KiB|MiB|GiB)?", re.IGNORECASE | re.ASCII)
UNITS = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}

Table = Annotated[str, typer.Argument(metavar="TABLE", help="The path or URI of a Delta table.")]
FileOrTable = Annotated[str, typer.Argument(metavar="FILE|TABLE", help="A Parquet file or a Delta table.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Version = Annotated[
    int | None, typer.Option("--version", min=0, help="The table version; latest by default.")
]
Timestamp = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="The latest version at this time: 2026-11-21T09:30+01:00; UTC by default."
    ),
]
TimeZone = Annotated[
    str,
    typer.Option(metavar="ZONE", help="Time zone of local times in SQL, such as Europe/Berlin or +02:00."),
]
TargetFileSize = Annotated[str, typer.Option(metavar="SIZE", help="Target size of data files.")]


def parse_size(text: str) -> int:
    """Return the number of bytes of a size such as 128MB. Raise BadParameter for invalid text."""
    found = SIZE.fullmatch(text.strip())
    if found is None:
        raise typer.BadParameter(f"invalid size {text!r}: expected a number of bytes or a size such as 128MB")
    return int(float(found[1]) * UNITS[(found[2] or "B").lower()])
