"""Arguments and options that several commands share, and the parser of sizes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal

import typer

from .._redaction import SHORTEST_SECRET

__all__ = [
    "DryRun",
    "Expanded",
    "FileOrTable",
    "Json",
    "ResidualRows",
    "Table",
    "TargetFileSize",
    "Texts",
    "TimeZone",
    "Timestamp",
    "Version",
    "Wide",
    "Yes",
    "parse_pair",
    "parse_pairs",
    "parse_size",
]

Texts = list[str] | None

SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(B|kB|MB|GB|KiB|MiB|GiB)?", re.IGNORECASE | re.ASCII)
UNITS = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}


def _reject_memory(uri: str) -> str:
    if uri.lower().startswith("memory:"):
        raise typer.BadParameter(
            f"cannot use {uri!r} because it exists only in the memory of this command: pass a path or a URI"
        )
    return uri


Table = Annotated[
    str,
    typer.Argument(metavar="TABLE", help="The path or URI of a Delta table.", callback=_reject_memory),
]
FileOrTable = Annotated[str, typer.Argument(metavar="FILE|TABLE", help="A Parquet file or a Delta table.")]
Wide = Annotated[
    bool, typer.Option("--wide", "-w", help="Print all columns and whole cells, even if lines wrap.")
]
Expanded = Annotated[bool, typer.Option("--expanded", "-x", help="Print one line for each column of a row.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not show the plan and ask.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the plan, and change nothing.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Version = Annotated[
    int | None, typer.Option("--version", metavar="N", min=0, help="The table version; latest by default.")
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
ResidualRows = Annotated[
    Literal["separate", "inline"],
    typer.Option(help="Write rows that do not fit the shredded columns to other files, or in order."),
]
TargetFileSize = Annotated[str, typer.Option(metavar="SIZE", help="Target size of data files.")]


def parse_size(text: str) -> int:
    """Return the number of bytes of a size such as 128MB. Raise BadParameter for invalid text."""
    found = SIZE.fullmatch(text.strip())
    if found is None:
        raise typer.BadParameter(f"invalid size {text!r}: expected a number of bytes or a size such as 128MB")
    return int(float(found[1]) * UNITS[(found[2] or "B").lower()])


def parse_pairs(option: str, texts: Texts) -> Mapping[str, str]:
    """Return NAME=VALUE texts as a mapping. Raise BadParameter for invalid ones."""
    pairs: dict[str, str] = {}
    for name, value in (parse_pair(option, text) for text in texts or ()):
        if name in pairs:
            raise typer.BadParameter(f"{option} sets {name!r} twice: pass it once")
        pairs[name] = value
    return pairs


def parse_pair(option: str, text: str | None) -> tuple[str, str]:
    """Return name and value of a text such as NAME=VALUE. Raise BadParameter for another text."""
    name, equals, value = (text or "").partition("=")
    if not equals or not name.strip() or not value.strip():
        # The text of a storage option may be a secret.
        may_be_secret = option == "--storage-option" and len(text or "") >= SHORTEST_SECRET
        shown = "" if may_be_secret else f" {text!r}"
        raise typer.BadParameter(f"invalid {option}{shown}: expected NAME=VALUE")
    return name.strip(), value.strip()
